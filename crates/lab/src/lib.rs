//! What tests and benches of several crates share: chains in every execution mode, random packets, what can
//! be seen of both, hosts with links on which programs run, and switches. Only tests and benches depend on it, so it may depend on crates of all floors.
#![forbid(unsafe_code)]

pub mod callgrind;
pub mod chain;
pub mod live;
pub mod outcome;
pub mod ovs;
pub mod packets;
