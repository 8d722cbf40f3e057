//! Switches that speak OpenFlow 1.3, above all Open vSwitch.
//!
//! [`Plan`] compares what a switch has with what it shall have, entry by entry; [`Switch`] is the
//! connection, and carries a plan out. Entries of a chain are known by their cookies ([`Mark`]).

mod client;
mod failure;
mod mark;
mod order;
mod plan;
mod switch;

pub use failure::{Failure, Refusal};
pub use mark::Mark;
pub use plan::{Change, Foreign, Plan};
pub use switch::{About, Odd, Site, Switch, meters};
