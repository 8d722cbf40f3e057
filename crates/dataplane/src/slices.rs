//! Slices of what a handler lists, put together.

use elements::listing::{self, Slice};

use crate::router::Reading;

/// How often a listing begins anew, at the most, because it has changed.
const RESTARTS: usize = 20;

/// The slices of a listing that have been read, all of one version.
#[derive(Debug)]
pub(crate) struct Slices {
    handler: String,
    all: Vec<Slice>,
    next: Option<u64>,
    restarts: usize,
}

impl Slices {
    /// None yet of what a handler lists.
    pub(crate) fn new(handler: String) -> Self {
        Self { handler, all: Vec::new(), next: Some(0), restarts: 0 }
    }

    /// The handler.
    pub(crate) fn handler(&self) -> &str {
        &self.handler
    }

    /// Where the next slice begins, if one is missing.
    pub(crate) fn next(&self) -> Option<u64> {
        self.next
    }

    /// Adds the next slice. One of another version begins the listing anew. Gives the value of a handler that lists
    /// nothing.
    ///
    /// # Errors
    /// If it changes too often, or lists no more.
    pub(crate) fn add(&mut self, reading: Reading) -> Result<Option<String>, String> {
        match reading {
            Reading::Whole(value) if self.all.is_empty() => return Ok(Some(value)),
            Reading::Whole(_) => return Err(format!("'{}' ended meanwhile", self.handler)),
            Reading::Slice(slice)
                if self.all.first().is_none_or(|first| first.version == slice.version) =>
            {
                self.next = slice.next;
                self.all.push(slice);
            }
            Reading::Slice(_) if self.restarts < RESTARTS => {
                self.restarts += 1;
                (self.next, self.all) = (Some(0), Vec::new());
            }
            Reading::Slice(_) => {
                let handler = &self.handler;
                return Err(format!("'{handler}' changes faster than it is read; read it again"));
            }
        }
        Ok(None)
    }

    /// All of them.
    pub(crate) fn into_all(self) -> Vec<Slice> {
        self.all
    }

    /// Their text.
    pub(crate) fn render(self) -> String {
        listing::render(self.all)
    }
}
