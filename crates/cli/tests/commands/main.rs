//! The program as people start it.
#![allow(clippy::print_stderr, unreachable_pub)]

mod bench;
mod bounds;
mod check;
mod click;
mod compile;
mod ctl;
mod elements;
mod errors;
mod explain;
mod fmt;
mod graph;
mod growth;
mod host;
mod load;
mod nfs;
mod offload;
mod pages;
mod place;
mod profile;
mod program;
mod run;
mod sim;
mod sockets;
mod synth;
mod verify;
