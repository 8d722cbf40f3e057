//! How workers are woken: by frames that others hand to them, and by what they are told.
//!
//! `tests/wake.rs` tries every order of these files' atomic operations, with its own [`sync`] and [`signal`].

mod bell;
mod mailbox;
mod signal;

mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, Ordering, fence};
    pub(super) use std::sync::{Mutex, MutexGuard};
}

pub(crate) use bell::{Bell, Sleeper};
pub(crate) use mailbox::Mailbox;
