//! What the kernel is asked for that no library has.
#![allow(unsafe_code)]

use std::io::{Error, Result};

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
