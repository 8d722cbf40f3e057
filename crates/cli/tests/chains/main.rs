//! Whole chains, through every way of executing them.
#![allow(clippy::print_stderr, unreachable_pub)]

mod change;
mod classes;
mod conformance;
mod devices;
mod differential;
mod exits;
mod filetests;
mod following;
mod handover;
mod law;
mod listing;
mod lists;
mod outcome;
mod private_handlers;
mod programs;
mod room;
mod scripts;
mod support;
mod tables;
mod time;
mod traffic;
mod translation;
mod witnesses;
