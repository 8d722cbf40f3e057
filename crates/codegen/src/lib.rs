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

pub use target::{
    Device, File, Lack, Presumed, Presumption, Segment, Servers, Tables, Target, Unread,
};

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

/// The names of targets, each once.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&str> = targets().iter().map(|target| target.name()).collect();
    names.dedup();
    names
}

/// The architectures that targets are for.
pub fn architectures() -> Vec<&'static str> {
    targets().iter().filter_map(|target| target.arch()).collect()
}

/// The target of that name or label; the one for the usual architecture, if there are several.
pub fn target(name: &str) -> Option<&'static dyn Target> {
    let is = |target: &&dyn Target| target.label() == name || target.name() == name;
    targets().iter().copied().find(is)
}

/// The target of that name for an architecture. If none is named, a device says which: it is the usual hardware of one of them.
///
/// # Errors
/// There is none.
pub fn target_for(
    name: &str,
    arch: Option<&str>,
    device: Option<&str>,
) -> Result<&'static dyn Target, String> {
    let known = target(name).ok_or_else(|| format!("there is no target '{name}'"))?;
    let all = || targets().iter().copied().filter(|target| target.name() == name);
    match arch {
        Some(arch) => all().find(|target| target.arch() == Some(arch)).ok_or_else(|| {
            let there: Vec<&str> = all().filter_map(|target| target.arch()).collect();
            match there.is_empty() {
                true => format!("{name} has no architectures, and cannot be for '{arch}'"),
                false => format!("{name} is for {}, not for '{arch}'", there.join(" or ")),
            }
        }),
        None => {
            let is_for = |target: &&dyn Target| device.is_some() && target.hardware() == device;
            Ok(all().find(is_for).unwrap_or(known))
        }
    }
}
