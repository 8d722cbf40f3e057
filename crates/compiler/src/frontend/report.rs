//! Reporting of diagnostics: none twice, and not more than anyone would read.

use std::collections::HashSet;

use ir::{Diagnostic, Severity, Span};

/// Further errors are not reported.
const MAX_ERRORS: usize = 200;
/// Errors beyond this many come without a search for the nearest name.
const MAX_SUGGESTIONS: usize = 50;

/// Collects diagnostics. What is said about a place is said once, however many instances of a
/// compound it is true of.
#[derive(Default)]
pub(crate) struct Report {
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Codes and places reported, with the message where it counts.
    seen: HashSet<(&'static str, Vec<Span>, String)>,
    errors: usize,
}

impl Report {
    /// Adds a diagnostic unless its like was reported for the same place. Returns its index, or
    /// `None` if it was not added.
    pub(crate) fn add(&mut self, diagnostic: Diagnostic) -> Option<usize> {
        self.add_once(diagnostic, String::new())
    }

    /// Like [`Report::add`], for messages that do not name the instance: several may be true of a
    /// place.
    pub(crate) fn add_message(&mut self, diagnostic: Diagnostic) {
        let message = diagnostic.message.clone();
        self.add_once(diagnostic, message);
    }

    fn add_once(&mut self, diagnostic: Diagnostic, message: String) -> Option<usize> {
        let places = diagnostic.labels.iter().map(|label| label.span).collect();
        if !self.seen.insert((diagnostic.code, places, message)) {
            return None;
        }
        if diagnostic.severity == Severity::Error {
            self.errors += 1;
            if self.errors > MAX_ERRORS {
                if self.errors == MAX_ERRORS + 1 {
                    let mut last = Diagnostic::error("too-many-errors", "too many errors");
                    if let Some(span) = diagnostic.span() {
                        last = last.label(span, "further ones are not shown");
                    }
                    self.diagnostics.push(last);
                }
                return None;
            }
        }
        self.diagnostics.push(diagnostic);
        Some(self.diagnostics.len() - 1)
    }

    /// Whether there is an error.
    pub(crate) fn failed(&self) -> bool {
        self.errors > 0
    }

    /// Whether nothing more will be reported.
    pub(crate) fn is_full(&self) -> bool {
        self.errors > MAX_ERRORS
    }

    /// Whether it is still worth while to look for what may have been meant.
    pub(crate) fn suggests(&self) -> bool {
        self.errors < MAX_SUGGESTIONS
    }
}
