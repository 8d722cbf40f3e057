//! Targets: what parts of a chain become on devices that are no cores.
//!
//! A [`Target`] says what its devices can decide and do, so that a program can be cut where they
//! cannot; turns the part that is theirs, a [`Device`]'s [`Segment`]s, into an artefact that people
//! can load without Catena; and reads an artefact back as programs, so that a proof compares what a
//! device was given with what it should do. Readers share no code with emitters.
#![forbid(unsafe_code)]

mod draft;
pub mod ebpf;
mod headers;
mod leave;
mod number;
pub mod openflow;
mod p4;
mod rte_flow;
mod rule;
pub mod stages;
pub mod swx;
mod symbolic;
mod target;

pub use target::{Device, File, Lack, Presumed, Presumption, Segment, Tables, Target, Unread};

/// All targets.
pub fn targets() -> &'static [&'static dyn Target] {
    static ALL: [&dyn Target; 10] = [
        &openflow::OPENFLOW,
        &openflow::OVS,
        &ebpf::EBPF,
        &p4::V1MODEL,
        &p4::TNA,
        &swx::SWX,
        &rte_flow::GENERIC,
        &rte_flow::I40E,
        &rte_flow::IXGBE,
        &rte_flow::MLX5,
    ];
    &ALL
}

/// The target of that name.
pub fn target(name: &str) -> Option<&'static dyn Target> {
    targets().iter().copied().find(|target| target.name() == name)
}
