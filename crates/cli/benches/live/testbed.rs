//! A load's host, the host that is measured and the host that frames end at, in a row.

use std::ops::Deref;
use std::process::{Command, Stdio};
use std::time::Duration;

use lab::live::{Catena, MACS, Network, Process};
use rustix::thread::{CpuSet, sched_setaffinity};

/// The program that is measured.
pub(crate) const CATENA: Catena = Catena(env!("CARGO_BIN_EXE_catena"));

/// The CPU that loads, and the one that is measured.
pub(crate) const LOADING: usize = 0;
pub(crate) const MEASURED: usize = 1;

/// The station that frames are sent to. The host at the end is another one, so that it drops them at once.
pub(crate) const NEXT_MAC: &str = "02:00:00:00:01:02";

/// Has this session's programs go before other sessions', until it is dropped: where the kernel groups programs by
/// session (autogroup, sched(7)), nice values count among a session's own only.
pub(crate) struct Ahead(Option<String>);

impl Ahead {
    const FILE: &str = "/proc/self/autogroup";

    pub(crate) fn new() -> Self {
        let now = std::fs::read_to_string(Self::FILE).unwrap_or_default();
        let before = now.split_whitespace().last().map(str::to_string);
        let _ = std::fs::write(Self::FILE, "-20");
        Self(before)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = std::fs::write(Self::FILE, before);
        }
    }
}

/// Hosts `load`, `middle` (eth0 to the load, eth1 to the end) and `end`.
pub(crate) struct Testbed(Network);

impl Deref for Testbed {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.0
    }
}

impl Testbed {
    pub(crate) fn new() -> Self {
        let network = Network::new(&["load", "middle", "end"]);
        for (interface, far, mac) in [("eth0", "load", MACS[0]), ("eth1", "end", MACS[1])] {
            network.link([("middle", interface), (far, "veth0")], mac, &[]);
        }
        Self(network)
    }

    /// A program that will run on a host, on these CPUs.
    pub(crate) fn command_on(&self, host: &str, cpus: &str, program: &str) -> Command {
        // What else runs on the machine shall not take much of the CPUs.
        let mut command = self.command(host, "nice");
        command.args(["-n", "-20", "taskset", "-c", cpus, program]);
        command
    }

    /// Has the calling thread be on a host, and on the CPU that loads.
    pub(crate) fn enter_loading(&self, host: &str) {
        self.enter(host);
        bind(LOADING);
        let _ = rustix::process::nice(-20);
    }

    /// Runs a chain between the interfaces, on the CPU that is measured, and waits until it has begun.
    pub(crate) fn catena(&self, chain: &str, arguments: &[&str]) -> Process {
        self.catena_on(&MEASURED.to_string(), chain, &[arguments, &["--control", "none"]].concat())
    }

    /// The same on these CPUs, a worker each.
    pub(crate) fn catena_on(&self, cpus: &str, chain: &str, arguments: &[&str]) -> Process {
        let mut command = self.command_on("middle", cpus, CATENA.0);
        command.arg("run").arg(self.file("chain", chain)).args(arguments).args(["--cores", cpus]);
        let mut process = start(&mut command);
        process.wait_for_lines(", mtu ", 2);
        process
    }

    /// A number that the kernel counts for an interface.
    pub(crate) fn count(&self, host: &str, interface: &str, counter: &str) -> u64 {
        let path = format!("/sys/class/net/{interface}/statistics/{counter}");
        self.on(host, "cat", &[&path]).trim().parse().expect("a number")
    }
}

/// Binds the calling thread to a CPU.
pub(crate) fn bind(cpu: usize) {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).expect("to be bound to a CPU");
}

/// Starts a program of which nothing but its standard error is read.
pub(crate) fn start(command: &mut Command) -> Process {
    Process::start(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()))
}

/// Lets time pass.
#[allow(clippy::disallowed_methods, reason = "what is measured is what is done in a while")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// What the CPUs have done so far, in hundredths of a second.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    /// All that the measured CPU did.
    measured: u64,
    /// Work on frames that came, on the CPU that loads.
    beside: u64,
}

impl Work {
    pub(crate) fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").expect("/proc/stat");
        let of = |cpu: usize| -> Vec<u64> {
            let name = format!("cpu{cpu} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&name)).expect("the CPU");
            line.split_whitespace().filter_map(|n| n.parse().ok()).collect()
        };
        // user, nice, system, idle, iowait, irq, softirq, steal
        let (measured, loading) = (of(MEASURED), of(LOADING));
        Self { measured: [0, 1, 2, 5, 6].iter().map(|&i| measured[i]).sum(), beside: loading[6] }
    }

    /// CPUs that were busy for what is measured since then, on the average.
    pub(crate) fn since(self, before: Self, elapsed: Duration) -> f64 {
        let ticks = self.measured - before.measured + self.beside - before.beside;
        ticks as f64 / 100.0 / elapsed.as_secs_f64()
    }
}
