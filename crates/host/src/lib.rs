//! Network functions in processes of their own, and network namespaces, links and switches, on one host.
//!
//! A [`HostChain`] is run by a [`Service`]: it starts the NFs, gives them memory and the turn, and replaces those that fail.
//!
//! All that is made stands in a [`Journal`] before it is there, and is taken down again: by who made it, or by who finds
//! the journal after a crash. Nothing is removed that was not made here.
// One file allows itself `unsafe`: `cargo xtask tidy` says which, and why.
#![deny(unsafe_code)]

mod beside;
mod cgroup;
mod chain;
mod confine;
pub mod container;
pub mod doctor;
pub mod fabric;
mod failure;
pub mod image;
mod journal;
mod launch;
mod log;
pub mod manifest;
mod namespace;
mod ovs;
mod process;
mod rack;
pub mod scheduler;
mod script;
pub mod service;
pub mod state;
mod sys;
pub mod tuning;

pub use beside::{Hear, Programs, is_of_run};
pub use confine::Limits;
pub use failure::Failure;
pub use journal::{Gone, Journal, Opened};
pub use manifest::HostChain;
pub use namespace::{Counters, Namespace, is_interface_name};
pub use ovs::OpenVSwitch;
pub use process::{Process, run};
pub use rack::{Device, Plan};
pub use service::Service;
