//! What it costs to bring a frame to the worker that has its flow (Metron's figures 6 and 7): by tags and by a hash, which
//! the driver's XDP program looks at, by a worker that does nothing else, and by workers that hand frames to each other.
//!
//! Each chain runs on one worker, and on two where dispatch takes two. CPU time per frame is that of rounds in which
//! there was something to do, of the worker on CPU 1, while CPU 0 sends a burst now and then; who is on CPU 1 changes, so
//! that all are measured alike. What more cores would do follows from these times.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dataplane::io::{Polling, Waiter};
use elements::device::Wake;
use lab::live::{MACS, Process};
use net::{Batch, Pool};
use serde_json::Value;

use crate::Arguments;
use crate::load::{Flood, open};
use crate::rules::List;
use crate::support::{Data, Spread, percentile};
use crate::testbed::{CATENA, MEASURED, NEXT_MAC, Testbed, pause};

/// Rules of the access list.
const RULES: u32 = 700;
/// Groups that tags are for, and cores that the model is told for.
const GROUPS: usize = 2;
const CORES: [usize; 5] = [1, 2, 4, 8, 16];
/// Between two bursts; there is time for all that a burst asks for.
const PAUSE: Duration = Duration::from_micros(200);
/// Between two frames whose latency is measured, and how many there are: all workers sleep.
const REST: Duration = Duration::from_millis(1);
const FRAMES: usize = 500;
/// Flows that they are of.
const FLOWS: usize = 50;

/// How frames find their worker.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Method {
    Tags,
    Hash,
    Software,
    HandOff,
}

impl Method {
    fn hands_on(self) -> bool {
        matches!(self, Method::Software | Method::HandOff)
    }

    /// What workers together cost for a frame, by how long each of two took, is what so many
    /// can carry in a second, in thousands; `alone` is what one takes that need not hand on.
    fn model(self, cores: usize, took: &[f64], alone: f64) -> Option<f64> {
        let n = cores as f64;
        let per_frame = match self {
            Method::Tags | Method::Hash => took[0] / n,
            Method::Software if cores < 2 => return None,
            Method::Software => took[0].max(took[1] / (n - 1.0)),
            // Of two workers, a frame comes to the wrong one half the time.
            Method::HandOff => {
                let handing = 2.0 * (took.iter().sum::<f64>() - alone);
                (alone + handing * (n - 1.0) / n) / n
            }
        };
        Some(1e6 / per_frame)
    }
}

/// A chain, and how its frames find their worker.
struct Case {
    name: &'static str,
    method: Method,
    chain: String,
    frames: Arc<Vec<Vec<u8>>>,
    /// By round: nanoseconds per frame of each worker.
    took: Vec<Vec<f64>>,
    /// By round and workers: thousand frames per second; median latency in microseconds.
    rates: Vec<Vec<f64>>,
    latencies: Vec<Vec<f64>>,
}

/// Frames with the tags of groups, as a switch sets them: all of a flow the same.
fn tagged(frames: &[Vec<u8>]) -> Arc<Vec<Vec<u8>>> {
    let mut frames = frames.to_vec();
    for frame in &mut frames {
        let flow: usize = frame[26..38].iter().map(|&byte| usize::from(byte)).sum();
        frame[..6].copy_from_slice(&[0x02, 0xca, 0x7e, 0, 0, (flow % GROUPS) as u8]);
    }
    Arc::new(frames)
}

impl Case {
    fn new(name: &'static str, method: Method, chain: String, frames: &[Vec<u8>]) -> Self {
        let frames = match method {
            Method::Tags => tagged(frames),
            _ => Arc::new(frames.to_vec()),
        };
        let (took, rates, latencies) = Default::default();
        Self { name, method, chain, frames, took, rates, latencies }
    }

    /// A testbed in which the chain runs on these CPUs, a worker each.
    fn start(&self, cpus: &str) -> (Arc<Testbed>, Process) {
        let testbed = Arc::new(Testbed::new());
        let socket = testbed.folder().join("ctl").display().to_string();
        let mut how = vec!["--in", "in=eth0", "--out", "out=eth1", "--io", "af-xdp,batch=32"];
        how.extend(["--control", &socket, "--dispatch"]);
        let groups = GROUPS.to_string();
        match self.method {
            Method::Tags => how.extend(["tags=mac", "--groups", &groups]),
            Method::Hash => how.push("hash"),
            Method::Software => how.push("software"),
            Method::HandOff => how.push("hand-off"),
        }
        let process = testbed.catena_on(cpus, &self.chain, &how);
        (testbed, process)
    }

    /// Nanoseconds per frame that a worker takes, the one on the CPU that is measured.
    fn time(&self, cpus: &str, worker: usize, seconds: f64) -> f64 {
        let (testbed, process) = self.start(cpus);
        let flood = Flood::start(&testbed, &self.frames, Some(PAUSE));
        // Flows are known and tables are filled before.
        pause(Duration::from_secs_f64(seconds));
        let before = Done::now(&testbed, worker);
        pause(Duration::from_secs_f64(seconds));
        let after = Done::now(&testbed, worker);
        drop((flood, process));
        (after.busy - before.busy) / (after.frames - before.frames)
    }

    /// Thousand frames per second that leave while as many come as CPU 0 can send.
    fn rate(&self, cpus: &str, seconds: f64) -> f64 {
        let (testbed, process) = self.start(cpus);
        let flood = Flood::start(&testbed, &self.frames, None);
        pause(Duration::from_secs_f64(seconds));
        let count = || testbed.count("middle", "eth1", "tx_packets");
        let (begin, before) = (Instant::now(), count());
        pause(Duration::from_secs_f64(seconds));
        let rate = (count() - before) as f64 / 1e3 / begin.elapsed().as_secs_f64();
        drop((flood, process));
        rate
    }

    /// The median latency in microseconds of frames that come one by one, when all sleep.
    fn latency(&self, cpus: &str) -> f64 {
        let (testbed, process) = self.start(cpus);
        let frames = Arc::clone(&self.frames);
        let measure = move || {
            testbed.enter_loading("load");
            let mut to = open(false);
            testbed.enter_loading("end");
            let mut from = open(true);
            let Some(Wake::Readable(descriptor)) = from.wait_on() else { return Vec::new() };
            let (mut pool, mut batch) = (Pool::new(), Batch::new());
            let mut latencies = Vec::new();
            for frame in frames.iter().take(FLOWS).cycle().take(2 * FRAMES) {
                pause(REST);
                batch.push(pool.packet(frame));
                let begin = Instant::now();
                to.send(&mut batch, &mut pool).expect("a frame is sent");
                let mut waiter = Waiter::new(Polling::Adaptive);
                while batch.is_empty() && begin.elapsed() < Duration::from_millis(100) {
                    from.receive(1, &mut batch, &mut pool).expect("frames are received");
                    if batch.is_empty() {
                        waiter.wait(&[descriptor], false, Duration::from_millis(10));
                    }
                }
                if !batch.is_empty() {
                    latencies.push(begin.elapsed().as_nanos() as f64 / 1e3);
                }
                pool.recycle_all(&mut batch);
            }
            // Without the first of each flow, which elements handle.
            latencies.split_off(latencies.len() / 2)
        };
        let mut latencies = std::thread::spawn(measure).join().expect("latencies");
        drop(process);
        latencies.sort_by(f64::total_cmp);
        percentile(&latencies, 0.5)
    }

    fn measure(&mut self, seconds: f64) {
        let one = MEASURED.to_string();
        let took = match self.method.hands_on() {
            true => vec![self.time("1,0", 0, seconds), self.time("0,1", 1, seconds)],
            false => vec![self.time(&one, 0, seconds)],
        };
        self.took.push(took);
        let workers: &[&str] = if self.method.hands_on() { &["0,1"] } else { &[&one, "0,1"] };
        self.rates.push(workers.iter().map(|cpus| self.rate(cpus, seconds)).collect());
        self.latencies.push(workers.iter().map(|cpus| self.latency(cpus)).collect());
    }

    /// The median of the rounds, of one column.
    fn middle(all: &[Vec<f64>], column: usize) -> Option<Spread> {
        let values: Vec<f64> = all.iter().filter_map(|row| row.get(column).copied()).collect();
        (!values.is_empty()).then(|| Spread::of(values))
    }
}

/// What a chain has done so far.
struct Done {
    /// Nanoseconds that a worker was busy.
    busy: f64,
    /// Frames that all workers took into the chain.
    frames: f64,
}

impl Done {
    fn now(testbed: &Testbed, worker: usize) -> Self {
        let told = CATENA.ctl(&testbed.folder().join("ctl"), &["--json", "counters"]);
        let told: Value = serde_json::from_str(&told).expect("counters");
        let busy = told["workers"][worker]["busy"].as_f64().expect("how long it was busy");
        Self { busy, frames: told["all"]["in"].as_f64().expect("how many came in") }
    }
}

pub(crate) fn run(arguments: &Arguments) {
    let Some(data) = Data::find() else { return };
    let list = List::read(&data, RULES, [2, 0, 0, 0, 0, 1]);
    let [from, to] = [MACS[1], NEXT_MAC];
    let folder = std::env::temp_dir().join(format!("catena-dispatch{}", std::process::id()));
    std::fs::write(&folder, list.click()).expect("rules are written");
    let chain = |functions: String| {
        format!("{}\nFromDevice(in) {functions} -> ToDevice(out);", data.functions())
    };
    let wire = chain(format!("-> Strip(14) -> EtherEncap(0x0800, {from}, {to})"));
    let firewall = chain(format!("-> F({}, {from}, {to})", folder.display()));
    let napt = chain(format!("-> RI(1, 172.16.1.1, {from}, {to}) -> N(30.0.1.1, {from}, {to})"));
    let named = [("tags", Method::Tags), ("hash", Method::Hash)];
    let handing = [("software", Method::Software), ("hand-off", Method::HandOff)];
    for (title, chain, elsewhere) in
        [("access list", &firewall, Some(&wire)), ("router, NAPT", &napt, None)]
    {
        if !arguments.wants(title) {
            continue;
        }
        let of = |(name, method): (&'static str, Method)| {
            Case::new(name, method, chain.clone(), &list.frames)
        };
        let mut cases: Vec<Case> = named.into_iter().chain(handing).map(of).collect();
        cases.extend(elsewhere.map(|chain| {
            Case::new("tags, the list elsewhere", Method::Tags, chain.clone(), &list.frames)
        }));
        for _ in 0..arguments.rounds {
            for case in &mut cases {
                if arguments.interrupted() {
                    return;
                }
                case.measure(arguments.seconds);
            }
        }
        tell(title, &cases);
    }
    let _ = std::fs::remove_file(&folder);
}

/// Shows what was measured of a chain, and what more cores would do.
fn tell(title: &str, cases: &[Case]) {
    println!("{title}");
    println!(
        "{:<26} {:>22} {:>22} {:>10} {:>10} {:>12} {:>12}",
        "", "ns/frame, worker 0", "worker 1", "kpps, 1", "2 workers", "latency, 1", "2 workers"
    );
    for case in cases {
        let of = |all: &[Vec<f64>], column: usize| {
            let spread = Case::middle(all, column);
            spread.map_or("-".to_string(), |spread| spread.to_string())
        };
        // Who takes two workers has no column of one.
        let skipped = usize::from(case.method.hands_on());
        let middle = |all: &[Vec<f64>], column: usize| {
            let spread = column.checked_sub(skipped).and_then(|column| Case::middle(all, column));
            spread.map_or("-".to_string(), |spread| format!("{:.1}", spread.median))
        };
        println!(
            "{:<26} {:>22} {:>22} {:>10} {:>10} {:>12} {:>12}",
            case.name,
            of(&case.took, 0),
            of(&case.took, 1),
            middle(&case.rates, 0),
            middle(&case.rates, 1),
            middle(&case.latencies, 0),
            middle(&case.latencies, 1),
        );
    }
    println!("by the model, thousand frames a second on so many cores");
    let hash = cases.iter().find(|case| case.method == Method::Hash);
    let alone = hash.and_then(|case| Case::middle(&case.took, 0)).map_or(f64::NAN, |s| s.median);
    for case in cases {
        let took: Vec<f64> =
            (0..2).filter_map(|i| Case::middle(&case.took, i)).map(|s| s.median).collect();
        print!("{:<26}", case.name);
        for cores in CORES {
            let rate = case.method.model(cores, &took, alone);
            print!(" {:>9}", rate.map_or("-".to_string(), |rate| format!("{rate:.0}")));
        }
        println!();
    }
}
