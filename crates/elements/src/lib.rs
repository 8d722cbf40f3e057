//! The library of network functions: one file an element (or a few that are one thing), each
//! with its configuration, its model, its push and its manual.
#![forbid(unsafe_code)]

pub mod argument;
pub mod configure;
pub mod context;
pub mod device;
#[macro_use]
pub mod element;
pub mod names;
pub mod registry;

mod counter;
mod dec_ip_ttl;
mod discard;
mod from_dump;
mod queue;
mod strip;
mod tee;
mod to_dump;

pub use element::Element;
