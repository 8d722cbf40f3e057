//! Whole chains, through every execution mode.
#![allow(clippy::print_stderr, unreachable_pub)]

mod change;
mod classes;
mod conformance;
mod counts;
mod devices;
mod differential;
mod ebpf;
mod exits;
mod filetests;
mod flood;
mod following;
mod handover;
mod listing;
mod lists;
mod mistakes;
mod offload_page;
mod p4;
mod private_handlers;
mod programs;
mod room;
mod rte_flow;
mod scripts;
mod split;
mod support;
mod swx;
mod tables;
mod targets;
mod time;
mod translation;
mod witnesses;

use lab::{outcome, packets as traffic};
