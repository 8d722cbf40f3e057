//! A load's host, the host that is measured and the host that frames end at, in a row; and programs that end with
//! the bench.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_setaffinity};

/// How long anything may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// The CPU that loads, and the one that is measured.
pub(crate) const LOADING: usize = 0;
pub(crate) const MEASURED: usize = 1;

/// MAC addresses of the measured host's interfaces.
pub(crate) const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];
/// The station that frames are sent to. The host at the end is another one, so that it drops them at once.
pub(crate) const NEXT_MAC: &str = "02:00:00:00:01:02";

/// Runs a program to its end.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{program}: {e}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {}: {said}", arguments.join(" "));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

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

/// Namespaces `load`, `middle` (eth0 to the load, eth1 to the end) and `end`.
pub(crate) struct Bed {
    name: String,
    pub(crate) folder: PathBuf,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let name = format!("catena{}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let bed = Self { name, folder };
        for host in ["load", "middle", "end"] {
            run("ip", &["netns", "add", &bed.host(host)]);
            bed.on(host, "sh", &["-c", "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6"]);
        }
        for (i, far) in ["load", "end"].into_iter().enumerate() {
            let (middle, far_host, eth) = (bed.host("middle"), bed.host(far), format!("eth{i}"));
            let mut link = vec!["link", "add", &eth, "netns", &middle, "address", MACS[i]];
            link.extend(["type", "veth", "peer", "name", "veth0", "netns", &far_host]);
            run("ip", &link);
            for (host, interface) in [("middle", eth.as_str()), (far, "veth0")] {
                bed.on(host, "ip", &["link", "set", interface, "up"]);
            }
        }
        bed
    }

    fn host(&self, host: &str) -> String {
        format!("{}{host}", self.name)
    }

    /// Runs a program on a host to its end.
    pub(crate) fn on(&self, host: &str, program: &str, arguments: &[&str]) -> String {
        run("ip", &[&["netns", "exec", &self.host(host), program], arguments].concat())
    }

    /// A program that will run on a host, on these CPUs.
    pub(crate) fn command(&self, host: &str, cpus: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        // What else runs on the machine shall not take much of the CPUs.
        command.args(["netns", "exec", &self.host(host), "nice", "-n", "-20", "taskset", "-c"]);
        command.args([cpus, program]);
        command
    }

    /// Has the calling thread be on a host, and on the CPU that loads.
    pub(crate) fn enter(&self, host: &str) {
        use std::os::fd::AsFd;
        let path = format!("/run/netns/{}", self.host(host));
        let namespace = std::fs::File::open(path).expect("the namespace");
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("to enter the namespace");
        bind(LOADING);
        let _ = rustix::process::nice(-20);
    }

    /// Runs a chain between the interfaces, on the CPU that is measured, and waits until it has begun.
    pub(crate) fn catena(&self, chain: &str, arguments: &[&str]) -> Process {
        self.catena_on(&MEASURED.to_string(), chain, &[arguments, &["--control", "none"]].concat())
    }

    /// The same on these CPUs, a worker each.
    pub(crate) fn catena_on(&self, cpus: &str, chain: &str, arguments: &[&str]) -> Process {
        let file = self.folder.join("chain.click");
        std::fs::write(&file, chain).expect("the chain is written");
        let mut command = self.command("middle", cpus, env!("CARGO_BIN_EXE_catena"));
        command.arg("run").arg(&file).args(arguments).args(["--cores", cpus]);
        Process::start(command, ", mtu ", 2)
    }

    /// A number that the kernel counts for an interface.
    pub(crate) fn count(&self, host: &str, interface: &str, counter: &str) -> u64 {
        let path = format!("/sys/class/net/{interface}/statistics/{counter}");
        self.on(host, "cat", &[&path]).trim().parse().expect("a number")
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for host in ["load", "middle", "end"] {
            let _ = Command::new("ip").args(["netns", "del", &self.host(host)]).output();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Binds the calling thread to a CPU.
pub(crate) fn bind(cpu: usize) {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    sched_setaffinity(None, &cpus).expect("to be bound to a CPU");
}

/// A program that runs until this is dropped.
pub(crate) struct Process(Child);

impl Process {
    /// Starts it and waits until it has said something so many times, on the standard error.
    pub(crate) fn start(mut command: Command, says: &str, times: usize) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"));
        let errors = child.stderr.take().expect("the standard error");
        let process = Self(child);
        let mut said = String::new();
        let mut lines = BufReader::new(errors);
        while said.matches(says).count() < times {
            let read = lines.read_line(&mut said).unwrap_or(0);
            assert!(read > 0, "{command:?} ended: {said}");
        }
        // It may go on speaking; nobody listens.
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        process
    }

    /// Starts it; somebody else will know when it has begun.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}")))
    }

    /// One whose standard input and output somebody else has.
    pub(crate) fn of(child: Child) -> Self {
        Self(child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(self.0.id() as i32) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            pause(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Lets time pass.
#[allow(clippy::disallowed_methods, reason = "what is measured is what is done in a while")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Waits until a file is there.
pub(crate) fn wait_for(path: &Path) {
    let begin = Instant::now();
    while !path.exists() {
        assert!(begin.elapsed() < PATIENCE, "{} never came", path.display());
        pause(Duration::from_millis(5));
    }
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
