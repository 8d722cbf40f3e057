//! What runs a chain on this host.
#![forbid(unsafe_code)]

mod closed;
pub mod control;
mod files;
mod findings;
pub mod groups;
mod installer;
pub mod instance;
pub mod privileges;
pub mod session;
pub mod system_calls;

pub use closed::Closed;
pub use files::{Disk, read_bytes};
pub use findings::Findings;
