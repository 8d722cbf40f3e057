//! Scheduling classes of processes and threads, and their cores.

use std::io::{Error, Result};
use std::time::Duration;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::manifest::Policy;
use crate::sys;

/// What a thread is scheduled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// The class; `Cooperative` is FIFO.
    pub policy: Policy,
    /// The priority of real-time classes.
    pub priority: u32,
    /// The slice of the others.
    pub slice: Option<Duration>,
}

/// Gives a thread a class; 0 is the calling one.
///
/// # Errors
/// If the kernel refuses.
pub fn set_class(thread: u32, class: Class) -> Result<()> {
    let (policy, is_real_time) = match class.policy {
        Policy::Cooperative | Policy::Fifo => (libc::SCHED_FIFO, true),
        Policy::RoundRobin => (libc::SCHED_RR, true),
        Policy::Batch => (libc::SCHED_BATCH, false),
        Policy::Other => (libc::SCHED_OTHER, false),
    };
    let slice = class.slice.filter(|_| !is_real_time).map_or(0, |of| of.as_nanos() as u64);
    let priority = if is_real_time { class.priority } else { 0 };
    sys::sched_setattr(thread, policy as u32, priority, slice)
}

/// Whether this process may run threads of FIFO: tried by a thread that ends.
///
/// # Errors
/// Why not.
pub fn may_be_fifo() -> Result<()> {
    let class = Class { policy: Policy::Fifo, priority: 1, slice: None };
    std::thread::spawn(move || set_class(0, class))
        .join()
        .unwrap_or_else(|_| Err(Error::other("a thread panicked")))
}

/// The cores that the calling thread may use.
pub fn cores() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect()
}

/// Pins a thread to a core; `None` is the calling one.
///
/// # Errors
/// If there is no such core.
pub fn pin(thread: Option<u32>, core: usize) -> Result<()> {
    bind(thread, &[core])
}

/// Has a thread run on some cores only; `None` is the calling one.
///
/// # Errors
/// If none of them is there.
pub fn bind(thread: Option<u32>, cores: &[usize]) -> Result<()> {
    let mut set = CpuSet::new();
    cores.iter().filter(|core| **core < CpuSet::MAX_CPU).for_each(|core| set.set(*core));
    let thread = thread.and_then(|of| Pid::from_raw(of as i32));
    Ok(sched_setaffinity(thread, &set)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_the_class_and_core_that_it_was_given() {
        let class =
            Class { policy: Policy::Batch, priority: 0, slice: Some(Duration::from_millis(3)) };
        let last = *cores().last().expect("a core");
        let seen = std::thread::spawn(move || {
            set_class(0, class).expect("anybody may");
            pin(None, last).expect("it is one of ours");
            let sched = std::fs::read_to_string("/proc/thread-self/sched").unwrap_or_default();
            (cores(), sched)
        });
        let (cores, sched) = seen.join().expect("it ends");
        assert_eq!(cores, [last]);
        let policy =
            sched.lines().find(|line| line.starts_with("policy")).expect("the kernel says it");
        assert!(policy.ends_with(&libc::SCHED_BATCH.to_string()), "{policy}");
        assert!(pin(None, 100_000).is_err());
    }
}
