//! What tests and benches of several crates share: chains in every execution mode, random packets, what can
//! be seen of both, and hosts with links on which programs run. Only tests and benches depend on it, so it may depend on crates of all floors.
#![forbid(unsafe_code)]

pub mod chain;
pub mod live;
pub mod outcome;
pub mod packets;
