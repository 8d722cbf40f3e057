//! Files that people write in YAML: their errors have places.

use serde::de::DeserializeOwned;
use serde_saphyr::{Location, Spanned};

use crate::diagnostic::{Diagnostic, FileId, Span};

/// A YAML file while it is read: what is wrong with it is collected.
#[derive(Debug)]
pub struct Reading {
    file: FileId,
    code: &'static str,
    /// What is wrong.
    pub found: Vec<Diagnostic>,
}

impl Reading {
    /// Reads a text as it is written; errors have this code. `help` is what to do about a text that is no YAML.
    ///
    /// # Errors
    /// Why it is none.
    pub fn of<T: DeserializeOwned>(
        file: FileId,
        text: &str,
        code: &'static str,
        help: Option<&str>,
    ) -> Result<(T, Self), Vec<Diagnostic>> {
        // No more than a text can have without aliases, which stand for others again and again.
        let (nodes, events) = (text.len().max(250_000), text.len().max(1_000_000));
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_nodes: nodes, max_events: events },
        };
        serde_saphyr::from_str_with_options(text, options)
            .map(|written| (written, Self { file, code, found: Vec::new() }))
            .map_err(|why| {
                let at = why.location().map_or(Span::new(file, 0, 0), |at| span(file, text, at));
                let error =
                    Diagnostic::error(code, why.without_snippet().to_string()).label(at, "");
                vec![match help {
                    Some(help) => error.help(help),
                    None => error,
                }]
            })
    }

    /// Where a value stands.
    pub fn span<T>(&self, at: &Spanned<T>) -> Span {
        // Values that were read have places in bytes.
        span(self.file, "", at.referenced)
    }

    /// Says what is wrong at a place, and what to do.
    pub fn wrong<T>(&mut self, at: &Spanned<T>, message: String, help: Option<String>) {
        let at = self.span(at);
        let error = Diagnostic::error(self.code, message).label(at, "");
        self.found.push(match help {
            Some(help) => error.help(help),
            None => error,
        });
    }

    /// A quantity; 0 if it is none, which is told.
    pub fn quantity(&mut self, text: &Spanned<String>, unit: crate::quantity::Unit) -> f64 {
        crate::quantity::parse(&text.value, unit).unwrap_or_else(|why| {
            self.wrong(text, why, None);
            0.0
        })
    }
}

/// The range of bytes of a place in a text.
fn span(file: FileId, text: &str, at: Location) -> Span {
    let number = |number: Option<u64>| number.and_then(|number| usize::try_from(number).ok());
    let length = number(at.span().byte_len()).unwrap_or(0);
    let start = number(at.span().byte_offset()).filter(|start| *start > 0).unwrap_or_else(|| {
        // Some errors have a line and a column alone.
        let line = usize::try_from(at.line()).unwrap_or(1).saturating_sub(1);
        let column = usize::try_from(at.column()).unwrap_or(1).saturating_sub(1);
        let before: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let rest = text.get(before..).unwrap_or_default();
        before + rest.char_indices().nth(column).map_or(0, |(at, _)| at)
    });
    Span::new(file, start, start.saturating_add(length))
}
