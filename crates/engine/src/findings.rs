//! What is wrong with a configuration, or may not be as it was meant.

use std::fmt;

use ir::{Diagnostic, Label, Sources};

use crate::control::protocol;

/// Diagnostics with the texts that they point into.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// In the order in which they were found.
    pub diagnostics: Vec<Diagnostic>,
    /// Every text that was read.
    pub sources: Sources,
}

impl Findings {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// The same for other processes, without the texts.
    pub fn reported(&self) -> Vec<protocol::Diagnostic> {
        let label = |Label { span, message, .. }: &Label| {
            let start = self.sources.line_column(span.file, span.start);
            let end = self.sources.line_column(span.file, span.end);
            protocol::Label {
                file: self.sources.name(span.file).to_string(),
                line: start.line,
                column: start.column,
                end_line: end.line,
                end_column: end.column,
                message: message.clone(),
            }
        };
        let diagnostic = |found: &Diagnostic| protocol::Diagnostic {
            severity: found.severity.to_string(),
            code: found.code.to_string(),
            message: found.message.clone(),
            labels: found.labels.iter().map(label).collect(),
            help: found.help.clone(),
        };
        self.diagnostics.iter().map(diagnostic).collect()
    }
}

/// A line for each, without the text that it is about.
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.diagnostics.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            if let Some(span) = diagnostic.span() {
                write!(f, "{}: ", self.sources.landmark(span))?;
            }
            let Diagnostic { severity, code, message, .. } = diagnostic;
            write!(f, "{severity}[{code}]: {message}")?;
        }
        Ok(())
    }
}
