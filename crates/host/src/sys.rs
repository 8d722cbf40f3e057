//! What the kernel is asked for that no library has.
#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, LinkNameSpaceType, configure_capability_in_ambient_set,
    move_into_link_name_space, set_capabilities, set_keep_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};
use seccompiler::{BpfProgram, apply_filter};

/// `struct sched_attr` of sched_setattr(2), its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Gives a thread a scheduling class; 0 is the calling one. The slice is in nanoseconds, 0 as the system has it.
pub(crate) fn sched_setattr(thread: u32, policy: u32, priority: u32, slice: u64) -> Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy,
        flags: 0,
        nice: 0,
        priority,
        runtime: slice,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads as many bytes as `size` says, which are there.
    let set = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, &raw const attributes, 0) };
    if set == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Has no program that is started from now on inherit a descriptor, but for its input and output.
pub(crate) fn keep_descriptors() {
    // SAFETY: no descriptor is closed here, and none is used across `exec`.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// What a program that is started has, and what not.
pub(crate) struct Confinement {
    /// The namespace whose network it has; this process's if none is named.
    pub(crate) network: Option<File>,
    /// Who it is, with the capabilities that it keeps; this process's user if nobody is named.
    pub(crate) user: Option<(u32, CapabilitySet)>,
    /// System calls.
    pub(crate) filters: [BpfProgram; 2],
    /// Resources.
    pub(crate) limits: Vec<(Resource, u64)>,
}

/// Has a program that is started give up what it does not need: its user, resources beyond limits, new privileges, system calls.
pub(crate) fn confine(command: &mut Command, to: Confinement) {
    let give_up = move || {
        if let Some(network) = &to.network {
            move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))?;
        }
        if let Some((number, capabilities)) = to.user {
            become_user(number, capabilities)?;
        }
        for (resource, most) in &to.limits {
            // It may have less already.
            let most = getrlimit(*resource).maximum.map_or(*most, |has| has.min(*most));
            setrlimit(*resource, Rlimit { current: Some(most), maximum: Some(most) })?;
        }
        rustix::thread::set_no_new_privs(true)?;
        to.filters
            .iter()
            .try_for_each(|filter| apply_filter(filter).map_err(|_| Error::last_os_error()))
    };
    // SAFETY: between fork and exec it calls the kernel alone; it takes no lock and allocates nothing.
    unsafe { command.pre_exec(give_up) };
}

/// Has the calling thread, the only one, be another user, who has these capabilities, also when it runs another program.
fn become_user(number: u32, capabilities: CapabilitySet) -> Result<()> {
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    set_keep_capabilities(!capabilities.is_empty())?;
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    if !capabilities.is_empty() {
        let (effective, permitted, inheritable) = (capabilities, capabilities, capabilities);
        set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?;
        for one in capabilities.iter() {
            configure_capability_in_ambient_set(one, true)?;
        }
    }
    Ok(())
}
