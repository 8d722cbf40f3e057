//! The machine that is measured on: what it is, how much CPU time it takes, and what it takes away.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
            let mut only = CpuSet::new();
            only.set(cpu);
            sched_setaffinity(None, &only).map_err(|e| format!("CPU {cpu}: {e}"))?;
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
    /// The command line.
    #[serde(default)]
    pub command: Vec<String>,
    /// Whether Catena was built without optimisation: figures mean little then.
    pub debug_build: bool,
    /// When, in seconds since 1970.
    pub unix_time: u64,
}
