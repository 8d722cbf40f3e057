//! What is wrong with a configuration, or may not be as it was meant.

use std::fmt;

use ir::{Diagnostic, Sources};

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
