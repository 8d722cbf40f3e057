//! Reading a configuration, or a part of one, while the element runs.

use std::collections::HashMap;

use click::config::Text;
use ir::{Diagnostic, FileId, Processing, Severity, Sources, Span};

use crate::configure::{Allowance, Configure, Failed, Files, Shared, Surroundings, WorkerShare};
use crate::context::Context;
use crate::names::Names;

/// Errors that are reported; of more there is only the number.
const MAX_ERRORS: usize = 8;
/// Bytes of a file that a running chain reads rules from, at the most.
const MAX_FILE: u64 = 64 << 20;

/// What an element keeps of what it was configured with, so that it can be configured again.
pub(crate) struct Reconfigure {
    name: String,
    class: String,
    names: Names,
    outputs: Vec<Processing>,
    part: WorkerShare,
}

impl Reconfigure {
    /// What `cx` tells.
    pub(crate) fn new(cx: &Configure<'_>) -> Self {
        Self {
            name: cx.name().to_string(),
            class: cx.class().to_string(),
            names: cx.names().clone(),
            outputs: cx.output_processing().to_vec(),
            part: cx.part(),
        }
    }

    /// The element's full name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The names that were defined when it was configured.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// Reads a configuration. Spans that come of it mean nothing.
    ///
    /// # Errors
    /// What is wrong with it, for whoever wrote the handler.
    pub(crate) fn read<T>(
        &mut self,
        config: &str,
        cx: &mut Context<'_>,
        read: impl FnOnce(&mut Configure<'_>) -> Result<T, Failed>,
    ) -> Result<T, String> {
        let mut sources = Sources::new();
        let file = sources.add("", config);
        let span = Span::new(file, 0, config.len());
        let arguments = Text::new(config, span).arguments();
        let mut diagnostics = Vec::new();
        let around = Surroundings {
            sources: &mut sources,
            files: &mut Folder(cx),
            names: &mut self.names,
            shared: &mut Shared::default(),
            elements: &HashMap::new(),
            diagnostics: &mut diagnostics,
            memory: &mut Allowance::default(),
            part: self.part,
        };
        let element = (&self.name[..], &self.class[..], span);
        let mut cx = Configure::new(element, arguments, (&[], &self.outputs), around);
        let made = read(&mut cx);
        let errors: Vec<&Diagnostic> =
            diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
        match made {
            Ok(made) if errors.is_empty() => Ok(made),
            _ => Err(words(&errors, &sources, file)),
        }
    }
}

/// Errors in a line, with their columns. Of what is wrong in a file only the place is shown: whoever
/// may write the handler may not be allowed to read the file.
fn words(errors: &[&Diagnostic], sources: &Sources, written: FileId) -> String {
    let mut words: Vec<String> = errors
        .iter()
        .take(MAX_ERRORS)
        .map(|error| {
            let at = match error.span() {
                Some(span) if span.file == written => {
                    let at = sources.line_column(written, span.start);
                    match at.line {
                        1 => format!("column {}: ", at.column),
                        line => format!("line {line}, column {}: ", at.column),
                    }
                }
                Some(span) => return format!("{} is wrong", sources.landmark(span)),
                None => String::new(),
            };
            let help = error.help.iter().map(|help| format!(" ({help})")).collect::<String>();
            format!("{at}{}{help}", error.message)
        })
        .collect();
    if let Some(more) = errors.len().checked_sub(MAX_ERRORS).filter(|n| *n > 0) {
        words.push(format!("{more} more"));
    }
    words.join("; ")
}

/// Files that a running chain can read.
struct Folder<'a, 'b>(&'a mut Context<'b>);

impl Files for Folder<'_, '_> {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        let bytes = self.0.services().read_file(path, MAX_FILE)?;
        Ok(sources.add(path, String::from_utf8_lossy(&bytes).into_owned()))
    }
}
