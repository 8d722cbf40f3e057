//! Running chains: workers, devices, handlers, and the element-by-element path.
// A few files allow themselves `unsafe`: `cargo xtask tidy` lists them, and why.
#![deny(unsafe_code)]

pub mod all_cores;
pub mod capture;
pub mod change;
pub mod clock;
pub mod control_socket;
pub mod file;
mod functions;
pub mod guarded_path;
mod interpreted;
mod interpreted_program;
pub mod io;
pub mod latency;
mod pipeline;
pub mod ports;
mod router;
mod slices;
pub mod stats;
mod thread_owned;
mod threads;
pub mod trace;
mod wake;
pub mod worker;

pub use interpreted::Interpreted;
pub use interpreted_program::InterpretedProgram;
pub use pipeline::Prepared;
pub use router::{
    Allows, Elsewhere, Lease, Leased, Leases, Lifetime, Listener, Planner, ProgramUse, Programs,
    Reading, Rest, Router, Stage, StageContext, Taker, Tap, Tapped, Taps, Transcript, Warmth,
};
