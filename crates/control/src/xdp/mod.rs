//! Interfaces of this host whose frames the kernel's XDP programs take.
//!
//! Programs are attached over rtnetlink: they stay when the process ends, go with the interface, and need no file system.
//! [`Plan`] compares what is attached with what shall be, and [`Device`] carries it out. Programs of a chain are known by
//! their name.

mod device;
mod failure;
mod plan;

pub use device::{About, Device};
pub use failure::Failure;
pub use plan::{Artefact, Plan, Port, State};

/// The name of a chain's programs, as the kernel has it: 15 letters at most.
fn name(chain: &str) -> String {
    format!("{PREFIX}{:08x}", crate::number(chain) as u32)
}

const PREFIX: &str = "catena_";

/// Whether a program of this name is that of some chain.
fn is_any(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|rest| rest.len() == 8)
}
