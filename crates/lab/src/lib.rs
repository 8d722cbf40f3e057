//! What tests of several crates share: chains in every execution mode, random packets, and what can
//! be seen of both. Only tests and benches depend on it, so it may depend on crates of all floors.
#![forbid(unsafe_code)]

pub mod chain;
pub mod outcome;
pub mod packets;
