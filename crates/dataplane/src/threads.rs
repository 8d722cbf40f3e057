//! Which CPUs threads run on.

use std::cell::Cell;
use std::num::NonZeroU64;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// CPUs for all but workers.
#[derive(Clone, Copy)]
pub(crate) struct Spare {
    cpus: CpuSet,
    /// Whether they are the workers' all the same, as there are no others.
    pub(crate) shared: bool,
}

impl Spare {
    /// `None` if no worker is bound to a CPU.
    pub(crate) fn of_bound(workers: &[Option<usize>]) -> Option<Self> {
        workers.iter().any(Option::is_some).then(|| Self::of(workers)).flatten()
    }

    fn of(workers: &[Option<usize>]) -> Option<Self> {
        let all = sched_getaffinity(None).ok()?;
        let mut cpus = all;
        workers.iter().flatten().for_each(|&cpu| cpus.unset(cpu));
        let shared = cpus.count() == 0;
        Some(Self { cpus: if shared { all } else { cpus }, shared })
    }

    /// Takes the thread there.
    pub(crate) fn enter(&self) {
        let _ = sched_setaffinity(None, &self.cpus);
    }
}

thread_local! {
    /// Where a worker's thread starts others.
    pub(crate) static SPARE: Cell<Option<Spare>> = const { Cell::new(None) };
}

/// Does something in a thread of its own, not on the core of the worker that asks for it.
///
/// # Errors
/// If the system gives no thread.
pub fn aside(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let spare = SPARE.get();
    let thread = std::thread::Builder::new().name(name.to_string());
    thread.spawn(move || {
        spare.iter().for_each(Spare::enter);
        work();
    })?;
    Ok(())
}

/// Binds this thread to a CPU.
pub(crate) fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    // A CPU that is not there was refused before.
    let _ = sched_setaffinity(None, &set);
}

/// Has the kernel wake this thread when a time has come, and not up to 50 µs later, as is usual.
pub(crate) fn be_punctual() {
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// The CPUs that this process may use.
pub fn cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => Vec::new(),
    }
}
