//! Network functions as processes on hosts in a row, between a load and an end.
//!
//! Hosts are network namespaces, links are veth pairs. One thread sends frames when they are due and takes those that come
//! out, on a CPU of its own; all network functions share another CPU.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bench::arrivals::Arrivals;
use bench::profile::counters::{Missing, by_source};
use bench::profile::formula::BySource;
use bench::profile::process::{self, Usage};
use bench::profile::system::Policy;
use bench::receive::{Expected, Receiver};
use bench::send::{BURST, Pace, Plan, Source, Turns, send};
use bench::stamp::{HostClock, StampClock};
use dataplane::clock::{Clock, Time};
use dataplane::io::{Binding, Bindings, InterfaceSpec, Mode};
use elements::device::{Device, DeviceRequest};
use lab::live::{MACS, Network, Process};
use rustix::thread::{CpuSet, sched_setaffinity};

/// The CPU that loads, and the one that network functions share.
const LOADING: usize = 0;
pub(crate) const MEASURED: usize = 1;
/// The station that network functions send to. Nobody has it, so the kernel drops a frame once the device has a copy.
const NOBODY: &str = "02:00:00:00:09:09";
/// Time before which every frame that is still to come has come.
const REST: Duration = Duration::from_millis(200);
/// Of a load that is not measured: caches are filled, and programs are installed.
const WARM: f64 = 0.15;

/// What all measurements need.
pub(crate) struct Testbed {
    /// The program that runs network functions.
    catena: PathBuf,
    /// Raised by signals, so that everything is left as it was found.
    interrupted: Arc<AtomicBool>,
    /// The weight of this session among others, before.
    autogroup: Option<String>,
    /// Where tracefs was mounted for this.
    mounted: bool,
}

/// The weight of this session's programs: where the kernel groups programs by session (autogroup, sched(7)), nice values count
/// among a session's own only.
const AUTOGROUP: &str = "/proc/self/autogroup";
/// Where system calls are counted.
const TRACEFS: &str = "/sys/kernel/tracing";

impl Testbed {
    /// Says why not if nothing can be measured here.
    pub(crate) fn find(catena: Option<PathBuf>) -> Result<Self, String> {
        if let Some(why) = lab::live::network::impossible() {
            return Err(why.into());
        }
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return Err("it takes two CPUs".into());
        }
        // Cargo puts benches into a folder beside the programs.
        let beside = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("catena"));
        let catena = catena.or_else(beside).filter(|path| path.exists()).ok_or(
            "the program is missing: build it with `cargo build --release -p catena-cli`, or name it with --catena",
        )?;
        let interrupted = Arc::<AtomicBool>::default();
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))
                .map_err(|e| format!("signals: {e}"))?;
        }
        let text = std::fs::read_to_string(AUTOGROUP).unwrap_or_default();
        let autogroup = text.split_whitespace().last().map(str::to_string);
        let _ = std::fs::write(AUTOGROUP, "-20");
        let is_mounted = std::path::Path::new(TRACEFS).join("events").exists();
        let mounted = !is_mounted
            && Command::new("mount")
                .args(["-t", "tracefs", "tracefs", TRACEFS])
                .status()
                .is_ok_and(|status| status.success());
        Ok(Self { catena, interrupted, autogroup, mounted })
    }

    /// Whether it is to end.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if let Some(before) = &self.autogroup {
            let _ = std::fs::write(AUTOGROUP, before);
        }
        if self.mounted {
            let _ = Command::new("umount").arg(TRACEFS).status();
        }
    }
}

/// What stands between network functions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    /// Links.
    Links,
    /// A host with a bridge of the kernel's on either side of a single network function.
    Bridges,
}

/// Hosts in a row: `load`, one for each network function, `end`.
pub(crate) struct Row {
    network: Network,
    length: usize,
}

fn host(number: usize) -> String {
    format!("nf{number}")
}

impl Row {
    pub(crate) fn new(length: usize, between: Between) -> Self {
        let mut network = Network::new(&["load", "end"]);
        (1..=length).for_each(|number| network.add(&host(number)));
        let (first, last) = (host(1), host(length));
        match between {
            Between::Links => {
                network.link([(&first, "eth0"), ("load", "veth0")], MACS[0], &[]);
                for number in 1..length {
                    let (near, far) = (host(number + 1), host(number));
                    network.link([(&near, "eth0"), (&far, "eth1")], MACS[0], &[]);
                }
                network.link([(&last, "eth1"), ("end", "veth0")], MACS[1], &[]);
            }
            Between::Bridges => {
                network.add("switch");
                for (bridge, interface, far) in [("br0", "eth0", "load"), ("br1", "eth1", "end")] {
                    network.ip("switch", &["link", "add", bridge, "type", "bridge"]);
                    network.ip("switch", &["link", "set", bridge, "up"]);
                    for (other, its) in [(first.as_str(), interface), (far, "veth0")] {
                        let port = format!("{bridge}-{other}");
                        network.link([(other, its), ("switch", &port)], NOBODY, &[]);
                        network.ip("switch", &["link", "set", &port, "master", bridge]);
                    }
                }
            }
        }
        Self { network, length }
    }

    /// Has the kernel of the only host forward frames.
    pub(crate) fn forward(&self) {
        let script = format!(
            "set -e; ip addr add 10.0.0.254/8 dev eth0; ip addr add 30.0.1.1/24 dev eth1
             echo 1 > /proc/sys/net/ipv4/ip_forward
             ip neigh replace 30.0.1.254 lladdr {NOBODY} dev eth1
             ip route add 20.0.0.0/8 via 30.0.1.254"
        );
        self.network.on(&host(1), "sh", &["-c", &script]);
    }

    /// Starts the network functions: routers that share a CPU.
    pub(crate) fn start(&self, testbed: &Testbed, how: &How) -> Vec<Process> {
        let one = |number: usize| {
            let host = host(number);
            let file = self.network.file(&host, &router(number));
            let mut command = self.network.command(&host, "nice");
            command.args(["-n", "-19", "taskset", "-c", &MEASURED.to_string()]);
            match how.policy {
                Policy::Other => &mut command,
                Policy::Batch => command.args(["chrt", "--batch", "0"]),
                Policy::RoundRobin => command.args(["chrt", "--rr", "1"]),
                Policy::Fifo => command.args(["chrt", "--fifo", "1"]),
            };
            command.arg(&testbed.catena).arg("run").arg(file);
            command.args(["--in", "in=eth0", "--out", "out=eth1", "--control", "none"]);
            command.args(["--io", &how.io, "--poll", how.poll, "--cores", &MEASURED.to_string()]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            let mut process = Process::start(&mut command);
            process.wait_for_lines(", mtu ", 2);
            process
        };
        (1..=self.length).map(one).collect()
    }

    /// Offers a load, and then another one while the processes are watched, if there are any; nothing if it was interrupted.
    pub(crate) fn measure(
        &self,
        testbed: &Testbed,
        load: Load,
        (processes, while_watched): (&[Process], Load),
    ) -> Option<Measured> {
        let pids: Vec<u32> = processes.iter().map(Process::id).collect();
        std::thread::scope(|scope| {
            let measuring = scope.spawn(move || {
                let mut ends = Ends::open(&self.network);
                ends.offer(testbed, Load { seconds: WARM, ..load })?;
                let arrived = ends.offer(testbed, load)?;
                if pids.is_empty() {
                    return Some(Measured { arrived, profile: None });
                }
                let mut watched = None;
                let mut offer = |_| {
                    watched = ends.offer(testbed, while_watched);
                    false
                };
                // Until the load has ended, and not until a time.
                let (hour, clock) = (Duration::from_secs(3600), HostClock::new(CLOCK));
                let report = process::watch(&pids, hour, &clock, &mut offer).expect("processes");
                let profile = Some(Profile::of(&report, watched?.came));
                Some(Measured { arrived, profile })
            });
            measuring.join().expect("a measurement")
        })
    }
}

/// How network functions run.
#[derive(Clone)]
pub(crate) struct How {
    pub(crate) io: String,
    pub(crate) poll: &'static str,
    pub(crate) policy: Policy,
}

/// The basic router of figure 5.3.
fn router(number: usize) -> String {
    format!(
        "FromDevice(in) -> Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> RadixIPLookup(20.0.0.0/8 0)
           -> DropBroadcasts -> DecIPTTL -> FixIPSrc(172.16.{number}.1) -> IPFragmenter(1500)
           -> EtherEncap(0x0800, {}, {NOBODY}) -> ToDevice(out);",
        MACS[1]
    )
}

/// A load: packets per second, bytes of a frame without frame check sequence, and how long.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) rate: f64,
    pub(crate) size: u16,
    pub(crate) seconds: f64,
}

/// What came of a load.
pub(crate) struct Arrived {
    /// Percentiles 1, 25, 50, 75 and 99 of the latency, in microseconds.
    pub(crate) percentiles: [f64; 5],
    /// The share of the packets that did not come.
    pub(crate) lost: f64,
    /// Packets per second that came while it was sent.
    pub(crate) rate: f64,
    /// Whether the sender sent fewer packets per second than asked.
    pub(crate) slower: bool,
    came: u64,
}

/// What the profiler counts of network functions, of a packet.
pub(crate) struct Profile {
    /// Microseconds on the CPU.
    pub(crate) run: f64,
    /// Wait/RunTime.
    pub(crate) wait: f64,
    /// SchedContention/RunTime.
    pub(crate) contention: f64,
    /// The formula's events.
    pub(crate) events: BySource,
    /// What could not be counted.
    pub(crate) missing: Vec<Missing>,
}

impl Profile {
    fn of(report: &process::Report, packets: u64) -> Self {
        // The worker is the thread that runs; others of a process wait for commands.
        let worker = |process: &process::Process| -> Usage {
            let threads = process.threads.iter().map(|thread| &thread.usage);
            threads.max_by_key(|usage| usage.run).cloned().unwrap_or_default()
        };
        let workers: Vec<Usage> = report.processes.iter().map(worker).collect();
        let sum = |of: fn(&Usage) -> u64| workers.iter().map(of).sum::<u64>() as f64;
        let run = sum(|usage| usage.run);
        let events: Vec<_> =
            workers.iter().map(|usage| (by_source(&usage.counts), packets)).collect();
        Self {
            run: run / packets as f64 / 1e3,
            wait: sum(|usage| usage.wait) / run,
            contention: sum(|usage| usage.contention) / run,
            events: BySource::per_packet(&events),
            missing: report.missing.clone(),
        }
    }
}

/// What came of a load, and what the profiler found under another one.
pub(crate) struct Measured {
    pub(crate) arrived: Arrived,
    pub(crate) profile: Option<Profile>,
}

/// The clock of stamps.
const CLOCK: StampClock = StampClock::Monotonic;

/// A clock that is always awake: between two packets, the thread takes what has come.
struct Awake(HostClock);

impl Time for Awake {
    fn now(&self) -> u64 {
        Time::now(&self.0)
    }

    fn wait_until(&self, _: u64) {
        std::hint::spin_loop();
    }

    fn patience(&self, limit: Duration) -> Duration {
        limit
    }

    fn clock(&self) -> std::io::Result<Box<dyn Clock>> {
        self.0.clock()
    }
}

/// The devices at both ends.
struct Ends {
    to: Box<dyn Device + Send>,
    from: Box<dyn Device + Send>,
}

/// Opens the interface of the load or the end, in the namespace of the calling thread.
fn open(receive: bool) -> Box<dyn Device + Send> {
    let mode = Some(Mode::AfPacketMmsg);
    let spec = InterfaceSpec { name: "veth0".into(), mode, batch: None, shared: false };
    let mut bindings = Bindings::default();
    bindings.inputs.insert("veth0".into(), Binding::Interface(spec.clone()));
    bindings.outputs.insert("veth0".into(), Binding::Interface(spec));
    let request = DeviceRequest::Interface { name: "veth0".into(), receive };
    bindings.open_device(&request).expect("veth0")
}

impl Ends {
    /// In a thread of its own, which stays on the host at the end and on the CPU that loads.
    fn open(network: &Network) -> Self {
        let mut cpus = CpuSet::new();
        cpus.set(LOADING);
        sched_setaffinity(None, &cpus).expect("to be bound to a CPU");
        let _ = rustix::process::nice(-20);
        network.enter("load");
        let to = open(false);
        network.enter("end");
        Self { to, from: open(true) }
    }

    /// Sends frames, each when it is due, and takes what comes; nothing if it was interrupted.
    fn offer(&mut self, testbed: &Testbed, load: Load) -> Option<Arrived> {
        // What an earlier load left.
        let mut left = Receiver::new(&mut *self.from);
        while left.take().expect("frames are received").0 > 0 {}
        let receiver = RefCell::new(Receiver::new(&mut *self.from));
        let take = || receiver.borrow_mut().take().expect("frames are received").0;
        let generated = format!("gen:proto=udp,size={},flows=1", load.size);
        let mut source = || {
            let mut bindings = Bindings::default();
            bindings.inputs.insert("in".into(), Binding::source(&generated)?);
            let request = DeviceRequest::Interface { name: "in".into(), receive: true };
            Ok(bindings.open_device(&request)? as Box<dyn Device>)
        };
        let mut source = Source::new(&mut source).expect("traffic");
        let plan = Plan {
            pace: Pace::Rate(load.rate, Arrivals::Constant, 1),
            count: None,
            seconds: Some(load.seconds),
            stamp: Some((CLOCK, 1)),
            turns: Turns::default(),
            burst: BURST,
        };
        // It is asked whether to stop all the time: that is when to look for frames.
        let came_meanwhile = Cell::new(0);
        let is_stopped = || {
            came_meanwhile.set(came_meanwhile.get() + take());
            testbed.is_interrupted()
        };
        let time = Awake(HostClock::new(CLOCK));
        let sent = send(&mut *self.to, &mut source, &plan, Some(&time), &is_stopped);
        let sent = sent.expect("frames are sent");
        let expected = Expected { each: Some(sent.packets), ..Expected::default() };
        let mut last = Instant::now();
        while last.elapsed() < REST && !receiver.borrow().has(&expected) {
            if take() > 0 {
                last = Instant::now();
            }
        }
        if testbed.is_interrupted() {
            return None;
        }
        let receipt = receiver.into_inner().finish(&expected).expect("a receipt");
        let came: u64 = receipt.streams.iter().map(|stream| stream.received).sum();
        let at = |share| receipt.latencies.value_at_quantile(share) as f64 / 1e3;
        Some(Arrived {
            percentiles: [0.01, 0.25, 0.5, 0.75, 0.99].map(at),
            lost: 1.0 - came as f64 / sent.packets.max(1) as f64,
            rate: came_meanwhile.get() as f64 / sent.seconds.unwrap_or(load.seconds),
            slower: sent.slower,
            came,
        })
    }
}
