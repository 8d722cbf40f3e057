//! Code compiled once for each set of vector instructions, and run with the widest that the
//! processor has. The code itself is the same for all: loops over columns, which the compiler
//! turns into vector instructions.
#![allow(unsafe_code, reason = "instructions that not every processor has")]

pub(super) use classify::Level;

/// Code to run. `run` must be `#[inline(always)]`, and all that is to use the instructions.
pub(super) trait Task {
    type Result;

    fn run(self) -> Self::Result;
}

/// Runs the task with the instructions of a level.
#[inline]
pub(super) fn run<T: Task>(level: Level, task: T) -> T::Result {
    match level {
        Level::Portable => portable(task),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: levels come from `Level::available`, which found the features in the processor.
        Level::Avx2 => unsafe { with_avx2(task) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 => unsafe { with_avx512(task) },
    }
}

#[inline(never)]
fn portable<T: Task>(task: T) -> T::Result {
    task.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
fn with_avx2<T: Task>(task: T) -> T::Result {
    task.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,avx512f,avx512vl,avx512bw,avx512dq")]
fn with_avx512<T: Task>(task: T) -> T::Result {
    task.run()
}
