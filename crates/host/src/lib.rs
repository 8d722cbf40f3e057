//! Network namespaces, links and switches on one host.
//!
//! All that is made stands in a [`Journal`] before it is there, and is taken down again: by who made it, or by who finds
//! the journal after a crash. Nothing is removed that was not made here.
#![forbid(unsafe_code)]

mod failure;
mod journal;
mod namespace;
mod ovs;
mod process;
mod rack;

pub use failure::Failure;
pub use journal::{Gone, Journal, Opened};
pub use namespace::{Namespace, is_interface_name};
pub use ovs::OpenVSwitch;
pub use process::{Process, run};
pub use rack::{Device, Plan};
