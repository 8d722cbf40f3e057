//! Texts that live as long as the program.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// How many bytes of names are kept at the most.
pub const MAX_INTERNED: usize = 1 << 20;

struct Interned {
    names: BTreeSet<&'static str>,
    bytes: usize,
}

static INTERNED: Mutex<Interned> = Mutex::new(Interned { names: BTreeSet::new(), bytes: 0 });

/// The same text for the program's life; `None` if that would be more than [`MAX_INTERNED`] bytes.
pub(super) fn intern(text: &str) -> Option<&'static str> {
    let mut interned = INTERNED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = interned.names.get(text) {
        return Some(known);
    }
    interned.bytes = interned.bytes.checked_add(text.len()).filter(|&n| n <= MAX_INTERNED)?;
    let name: &'static str = Box::leak(text.into());
    interned.names.insert(name);
    Some(name)
}
