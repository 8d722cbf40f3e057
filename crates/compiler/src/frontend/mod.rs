//! From text to a flat [`Chain`] and its elements: files are loaded, compounds expanded, names and
//! variables resolved, ports counted, processing decided, elements configured.

mod check;
mod connect;
mod elaborate;
mod expand;
mod flatten;
mod instantiate;
mod join;
mod load;
mod ports;
mod processing;
pub(crate) mod report;
mod scope;
mod stand_ins;
mod variables;

pub use elaborate::{Chain, Limits, Options, elaborate};
pub use flatten::flatten;
pub use instantiate::{Elements, instantiate, instantiate_part};
pub use join::{Back, Joined, JoinedPart, Joining, Taken, join};
pub use stand_ins::Device;
