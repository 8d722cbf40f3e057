//! The library of network functions: one file an element (or a few that are one thing), each
//! with its configuration, its model, its push and its manual. The folder of an element is its
//! [`element::Category`].
#![forbid(unsafe_code)]

pub mod argument;
pub mod cells;
pub mod configure;
pub mod context;
pub mod device;
#[macro_use]
pub mod element;
pub mod flow_access;
pub mod flow_code;
pub mod interpreted;
pub mod listing;
pub mod names;
pub mod process;
pub mod registry;
pub mod rule_packets;
pub mod selector;

mod cipher;
pub mod element_state;
mod flow_table;
mod handler_call;
mod header_check;
mod lru_table;
mod rate;
mod reconfigure;
mod token_bucket;

// Elements, a folder for each category.
mod classify;
mod control;
mod ethernet;
mod io;
mod ip;
mod ip6;
mod lookup;
mod nat;
mod payload;
mod plumbing;
mod queue;
mod switch;
mod transport;
mod tunnel;

pub use element::Element;
