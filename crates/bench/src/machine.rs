//! The machine that is measured on: what it is, how much CPU time it takes, and what it takes away.

use std::time::{SystemTime, UNIX_EPOCH};

use dataplane::clock::{RealClock, Time};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::statistics::Samples;

/// What a measurement needs of a machine besides the time.
pub trait Meter {
    /// CPU time of this thread, in nanoseconds.
    fn cpu_time(&self) -> u64;
    /// The time stamp counter, where there is one that runs evenly.
    fn cycles(&self) -> Option<u64>;
    /// Cycles of that counter in a second.
    fn frequency(&self) -> Option<f64>;
    /// For how many nanoseconds this thread wanted to run so far and could not: other threads ran, or, as far as the
    /// hypervisor reports it, other virtual machines.
    fn taken(&self) -> u64;
}

/// This machine.
pub struct Machine {
    counter: quanta::Clock,
    has_counter: bool,
    /// CPUs that the process may use.
    cpus: usize,
    /// The CPU that this thread is bound to.
    cpu: Option<usize>,
}

/// Nanoseconds of a tick of `/proc/stat`: the kernel reports a hundredth of a second, whatever its own ticks are.
const TICK: u64 = 10_000_000;

impl Machine {
    /// Binds this thread to a CPU: the last that it may use, unless another is asked for.
    ///
    /// # Errors
    /// If this thread may not run there.
    pub fn bind(cpu: Option<usize>) -> Result<Self, String> {
        let allowed = sched_getaffinity(None).map_err(|e| format!("the CPUs to run on: {e}"))?;
        let last = (0..CpuSet::MAX_CPU).rev().find(|&cpu| allowed.is_set(cpu));
        let chosen = cpu.or(last);
        if let Some(cpu) = chosen {
            if cpu >= CpuSet::MAX_CPU || !allowed.is_set(cpu) {
                return Err(format!("this process may not run on CPU {cpu}"));
            }
            bind_thread(cpu).map_err(|e| format!("CPU {cpu}: {e}"))?;
        }
        Ok(Self::with(chosen, allowed))
    }

    /// Leaves this thread where it runs: others are bound.
    ///
    /// # Errors
    /// If the system does not say where it may run.
    pub fn unbound() -> Result<Self, String> {
        let allowed = sched_getaffinity(None).map_err(|e| format!("the CPUs to run on: {e}"))?;
        Ok(Self::with(None, allowed))
    }

    fn with(cpu: Option<usize>, allowed: CpuSet) -> Self {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let has_counter = ["constant_tsc", "nonstop_tsc"].iter().all(|flag| flags.contains(flag));
        let cpus = allowed.count() as usize;
        Self { counter: quanta::Clock::new(), has_counter, cpus, cpu }
    }

    /// What there is to know of it; the command line is its caller's to tell.
    pub fn environment(&self) -> Environment {
        let read = |path: String| std::fs::read_to_string(path).ok().map(|t| t.trim().to_string());
        let info = read("/proc/cpuinfo".into()).unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        let is_virtual = info.lines().any(|l| l.starts_with("flags") && l.contains(" hypervisor"));
        let governor = self.cpu.and_then(|cpu| {
            read(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
        });
        let load = read("/proc/loadavg".into());
        let isolated = read("/sys/devices/system/cpu/isolated".into());
        Environment {
            processor: model.map_or_else(|| "unknown".into(), |(_, name)| name.trim().to_string()),
            cpus: self.cpus,
            cpu: self.cpu,
            is_virtual,
            isolated: isolated.filter(|cpus| !cpus.is_empty()),
            governor,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            load_average: load.and_then(|l| l.split(' ').next()?.parse().ok()),
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("CATENA_COMMIT").map(Into::into),
            frequency: self.frequency(),
            clock: Some(Clock::examine(&RealClock::new())),
            command: Vec::new(),
            debug_build: cfg!(debug_assertions),
            unix_time: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
        }
    }
}

impl Meter for Machine {
    fn cpu_time(&self) -> u64 {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn cycles(&self) -> Option<u64> {
        self.has_counter.then(|| self.counter.raw())
    }

    fn frequency(&self) -> Option<f64> {
        const CYCLES: u64 = 1 << 40;
        let nanoseconds = self.counter.delta_as_nanos(0, CYCLES).max(1);
        self.has_counter.then(|| CYCLES as f64 / nanoseconds as f64 * 1e9)
    }

    fn taken(&self) -> u64 {
        let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let waited: u64 =
            schedstat.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let name = self.cpu.map_or("cpu".to_string(), |cpu| format!("cpu{cpu}"));
        let line = stat.lines().find(|line| line.split(' ').next() == Some(&*name));
        let stolen = line.and_then(|line| line.split_whitespace().nth(8)?.parse().ok());
        waited + stolen.unwrap_or(0u64) * TICK
    }
}

/// Binds this thread to a CPU, also to one that the thread that started it may not use.
pub(crate) fn bind_thread(cpu: usize) -> std::io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(None, &only)?)
}

/// The clock that times are taken by, as it was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// What the kernel takes the time from, where it says so.
    pub source: Option<String>,
    /// The least difference of two looks that differ, in nanoseconds: shorter times are not distinguished.
    pub resolution: u64,
    /// What a look takes, in nanoseconds: the least that any time that is taken is too long.
    pub overhead: f64,
    /// By what share it runs faster than the hardware's counter, which nobody sets or slows down.
    pub drift: f64,
}

impl Clock {
    /// Looks, and rounds of them of which the median counts: others may have the CPU meanwhile.
    const LOOKS: u64 = 1000;
    const ROUNDS: usize = 21;
    /// How long it is compared with the hardware's counter, in nanoseconds.
    const LENGTH: u64 = 20_000_000;
    /// A drift of more than this share is no synchronising of clocks, which is 0.05 % at the most.
    const STEADY: f64 = 0.001;
    /// A look that takes longer, in nanoseconds, is a system call's or a device's.
    const SLOW: f64 = 1000.0;

    /// Looks at a clock often, and compares the kernel's with the hardware's.
    pub fn examine(time: &dyn Time) -> Self {
        let mut resolution = u64::MAX;
        let mut round = || {
            let begin = time.now();
            let mut before = begin;
            for _ in 0..Self::LOOKS {
                let now = time.now();
                if now > before {
                    resolution = resolution.min(now - before);
                }
                before = now;
            }
            before.saturating_sub(begin) as f64 / Self::LOOKS as f64
        };
        let overhead = Samples::of((0..Self::ROUNDS).map(|_| round()).collect()).median;
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let source = std::fs::read_to_string(source).ok().map(|name| name.trim().to_string());
        let (begin, raw) = both_clocks();
        time.wait_until(time.now() + Self::LENGTH);
        let (end, raw_end) = both_clocks();
        let drift = (end - begin) as f64 / (raw_end - raw).max(1) as f64 - 1.0;
        // One that stood still for all looks is coarser than that.
        Self { source, resolution: resolution.min(Self::LENGTH), overhead, drift }
    }

    /// What there is to say against it.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let source = self.source.as_deref().unwrap_or("unknown");
        if self.drift.abs() > Self::STEADY {
            remarks.push(format!(
                "the clock is not steady: it runs {:.2} % {} than the hardware's counter, and all times and rates are wrong by it",
                100.0 * self.drift.abs(),
                if self.drift > 0.0 { "faster" } else { "slower" }
            ));
        }
        if self.overhead > Self::SLOW {
            remarks.push(format!(
                "the clock is slow: a look takes {:.1} µs (source: {source}); times are too long by it",
                self.overhead / 1e3
            ));
        }
        remarks
    }

    /// In words.
    pub(crate) fn describe(&self) -> String {
        let source = self.source.as_ref().map_or_else(String::new, |source| format!("{source}, "));
        format!("{source}steps of {} ns, a look takes {:.0} ns", self.resolution, self.overhead)
    }
}

/// The kernel's clock and the hardware's at the same time, or nearly: of several looks the closest.
fn both_clocks() -> (i64, i64) {
    let look = |clock| {
        let time = clock_gettime(clock);
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    };
    let looks = (0..10).map(|_| {
        let before = look(ClockId::Monotonic);
        let raw = look(ClockId::MonotonicRaw);
        let after = look(ClockId::Monotonic);
        (after - before, before + (after - before) / 2, raw)
    });
    let closest = looks.min_by_key(|(apart, ..)| *apart);
    closest.map_or((0, 0), |(_, kernel, raw)| (kernel, raw))
}

impl Environment {
    /// How many CPUs the process could use, in words.
    pub(crate) fn count_of_cpus(&self) -> String {
        format!("{} CPU{}", self.cpus, if self.cpus == 1 { "" } else { "s" })
    }
}

/// What a measurement was taken on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Environment {
    /// The processor's name.
    pub processor: String,
    /// CPUs that the process could use.
    pub cpus: usize,
    /// The CPU that was measured on.
    pub cpu: Option<usize>,
    /// Whether it is a virtual machine.
    pub is_virtual: bool,
    /// CPUs that the kernel's scheduler leaves alone, if any.
    pub isolated: Option<String>,
    /// How the kernel chooses the CPU's frequency, where it does.
    pub governor: Option<String>,
    /// The kernel's release.
    pub kernel: String,
    /// Threads that ran or wanted to in the minute before.
    pub load_average: Option<f64>,
    /// Catena's version.
    pub version: String,
    /// The commit that it was built from, perhaps with changes; nothing where it was not built from a repository.
    #[serde(default)]
    pub commit: Option<String>,
    /// Cycles of the time stamp counter in a second, where it runs evenly.
    #[serde(default)]
    pub frequency: Option<f64>,
    /// The clock that times are taken by.
    #[serde(default)]
    pub clock: Option<Clock>,
    /// The command line.
    #[serde(default)]
    pub command: Vec<String>,
    /// Whether Catena was built without optimisation: figures mean little then.
    pub debug_build: bool,
    /// When, in seconds since 1970.
    pub unix_time: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::tests::{LOOK, Simulated};

    #[test]
    fn looks_at_a_clock_tell_its_steps() {
        let clock = Clock::examine(&Simulated::default());
        assert_eq!((clock.resolution, clock.overhead), (LOOK, LOOK as f64));
    }

    #[test]
    fn a_clock_that_is_slow_or_uneven_is_remarked() {
        let good =
            Clock { source: Some("tsc".into()), resolution: 20, overhead: 21.4, drift: 4e-4 };
        assert!(good.remarks().is_empty());
        assert_eq!(good.describe(), "tsc, steps of 20 ns, a look takes 21 ns");
        let bad = Clock { source: Some("hpet".into()), overhead: 1300.0, drift: -0.02, ..good };
        let remarks = bad.remarks();
        assert!(remarks[0].contains("not steady: it runs 2.00 % slower"), "{remarks:?}");
        assert!(remarks[1].contains("a look takes 1.3 µs (source: hpet)"), "{remarks:?}");
    }
}
