//! What benches of whole chains share: the chains and traffic of the reference measurements, run
//! on one core in memory (frames copied from memory -> chain -> a device that keeps nothing).
#![allow(dead_code, unused_imports, reason = "each bench takes what it needs")]

mod traffic;

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;
use dataplane::clock::{Clock, RealClock};
use dataplane::{ProgramUse, Router, Transcript};
use elements::configure::{Devices, Files, WorkerShare, Zeroizing};
use elements::device::{Device, DeviceRequest};
use engine::session::{self, Path as Execution, Setup};
use ir::{FileId, Sources};

pub(crate) use bench::statistics::{Spread, percentile};
use traffic::Nowhere;
pub(crate) use traffic::{Frames, Source};

/// The set of rules that a chain's access list is: its name and how many rules it has.
pub(crate) type RuleSet = (&'static str, u32);

/// A chain between a source of frames and a device that keeps none.
pub(crate) struct Chain {
    pub(crate) name: String,
    /// What stands between the source and the device: `-> Strip(14) -> …`, or nothing.
    pub(crate) body: String,
    /// Further statements: what side outputs lead to.
    pub(crate) beside: String,
    /// Packets that the source hands on at a time.
    pub(crate) burst: u32,
    /// Packets that it takes before all flows are known, or as many go as come.
    pub(crate) settle: u64,
    pub(crate) traffic: Rc<Frames>,
}

impl Chain {
    pub(crate) fn new(name: impl Into<String>, body: String, traffic: &Rc<Frames>) -> Self {
        let (name, traffic) = (name.into(), Rc::clone(traffic));
        Self { name, body, beside: String::new(), burst: 32, settle: 0, traffic }
    }
}

/// This many routers, one after the other.
pub(crate) fn routers(n: u32) -> String {
    let router = |i: u32| format!("-> R({i}, 172.16.{i}.1, 02:00:00:00:01:01, 02:00:00:00:01:02) ");
    (1..=n).map(router).collect()
}

/// This many NAPTs, one after the other.
pub(crate) fn napts(n: u32) -> String {
    let napt = |i: u32| format!("-> N(30.0.{i}.1, 02:00:00:01:01:01, 02:00:00:01:01:02) ");
    (1..=n).map(napt).collect()
}

/// This many NAPTs, one after the other, with room for 4 million flows that live so many seconds after their last packet.
pub(crate) fn large_napts(n: u32, seconds: u32) -> String {
    let napt = |i: u32| {
        format!(
            "-> Strip(14) -> CheckIPHeader -> rw{i} :: IPRewriter(pattern 30.0.{i}.1 1024-65535 - - 0 1, \
             MAPPING_CAPACITY 4000000, UDP_TIMEOUT {seconds}, UDP_STREAMING_TIMEOUT {seconds}, UDP_GUARANTEE 1) \
             -> EtherEncap(0x0800, 02:00:00:01:01:01, 02:00:00:01:01:02) "
        )
    };
    (1..=n).map(napt).collect()
}

/// The file of an access list, as chains name it.
pub(crate) fn list((set, rules): RuleSet) -> String {
    format!("../isp-acl/{set}-{rules}.ipfilter.gz")
}

/// An access list.
pub(crate) fn filter(set: RuleSet) -> String {
    format!("-> F({}, 02:00:00:02:01:01, 02:00:00:02:01:02) ", list(set))
}

/// An ISP's edge: an access list, a router and a NAPT.
pub(crate) fn isp(set: RuleSet) -> String {
    access(set) + &napts(1)
}

/// The access list and the router of an ISP's edge.
pub(crate) fn access(set: RuleSet) -> String {
    filter(set) + "-> RI(1, 172.16.1.1, 02:00:00:00:01:01, 02:00:00:00:01:02) "
}

/// The folder of shared data: chains, access lists and traffic.
pub(crate) struct Data {
    folder: PathBuf,
    /// The network functions that chains are made of.
    functions: String,
    /// Traffic that was read, by its file and the size of its frames.
    traffic: RefCell<HashMap<(PathBuf, usize), Rc<Frames>>>,
}

impl Data {
    /// Finds the folder, or says that it is missing.
    pub(crate) fn find() -> Option<Self> {
        let shared = std::env::var_os("CATENA_SHARED").map_or_else(
            || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
            PathBuf::from,
        );
        if !shared.is_dir() {
            eprintln!("not run: {} is missing", shared.display());
            return None;
        }
        let folder = shared.join("data/bench-chains");
        let functions = std::fs::read_to_string(folder.join("nfs.click")).expect("nfs.click");
        Some(Self { folder, functions, traffic: RefCell::default() })
    }

    /// A folder of files that chains name, and what chains begin with.
    pub(crate) fn in_folder(folder: &Path, functions: &str) -> Self {
        Self { folder: folder.into(), functions: functions.into(), traffic: RefCell::default() }
    }

    /// 10,000 flows of TCP and UDP in frames of this size.
    pub(crate) fn mix(&self, size: usize) -> Rc<Frames> {
        self.frames("mix-10k-60.pcap.gz", size)
    }

    /// 10,000 flows of UDP in frames of this size.
    pub(crate) fn udp(&self, size: usize) -> Rc<Frames> {
        self.frames("udp-10k-60.pcap.gz", size)
    }

    /// Packets that reach every rule of an access list, in frames of this size.
    pub(crate) fn reaching(&self, (set, rules): RuleSet, size: usize) -> Rc<Frames> {
        self.frames(&format!("../isp-acl/{set}-{rules}.pcap.gz"), size)
    }

    /// The folder that paths of access lists start from.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The network functions that chains are made of.
    pub(crate) fn functions(&self) -> &str {
        &self.functions
    }

    /// The IPv4 prefixes of a full routing table, and the number of the system that each belongs to.
    pub(crate) fn prefixes(&self) -> Vec<(String, u32)> {
        let file = self.folder.join("../prefixes/rib-2015-11-01.tsv.gz");
        let text = read_text(&file).expect("the routing table");
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        let is_ipv4 = |prefix: &str| prefix.contains('/') && !prefix.contains(':');
        let lines = lines.filter(|(prefix, _)| is_ipv4(prefix));
        lines.map(|(prefix, origin)| (prefix.to_owned(), origin.parse().unwrap_or(0))).collect()
    }

    /// The text of an access list.
    pub(crate) fn text(&self, set: RuleSet) -> String {
        read_text(&self.folder.join(list(set))).expect("the access list")
    }

    fn frames(&self, file: &str, size: usize) -> Rc<Frames> {
        let path = self.folder.join(file);
        let key = (path, size);
        if let Some(frames) = self.traffic.borrow().get(&key) {
            return Rc::clone(frames);
        }
        let frames = Rc::new(Frames::read(&key.0, size));
        self.traffic.borrow_mut().insert(key, Rc::clone(&frames));
        frames
    }

    /// Configures a chain.
    pub(crate) fn start(&self, chain: &Chain, path: Execution) -> Running {
        let start = Instant::now();
        let (_, router) = self.load(chain, path);
        let mut running = Running::new(&chain.name, router, chain.burst, &chain.traffic);
        (running.settle, running.configured) = (chain.settle, start.elapsed());
        running
    }

    /// A chain's graph and the router that runs it.
    pub(crate) fn load(&self, chain: &Chain, path: Execution) -> (compiler::Chain, Router) {
        let text = format!(
            "{}\nFromDump(in, BURST {}) {} -> ToDump(out);\n{}",
            self.functions, chain.burst, chain.body, chain.beside
        );
        let devices = &mut Memory(&chain.traffic);
        load(&chain.name, text, &self.folder, devices, Box::new(RealClock::new()), path, FASTEST)
    }
}

/// Programs are whole, and run where they are faster than elements.
pub(crate) const FASTEST: (ProgramUse, Option<session::Cut>) = (ProgramUse::WhereFaster, None);

/// The graph of a configuration, whose files are in a folder, and the router that runs it, with its programs in parts if
/// they are cut.
pub(crate) fn load(
    name: &str,
    text: String,
    folder: &Path,
    devices: &mut dyn Devices,
    clock: Box<dyn Clock>,
    path: Execution,
    (program_use, cut): (ProgramUse, Option<session::Cut>),
) -> (compiler::Chain, Router) {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let setup = Setup {
        part: WorkerShare::default(),
        files: &mut Disk(folder),
        devices,
        clock,
        listener: Box::new(Transcript::default()),
        seed: 1,
        path,
        background: None,
        program_use,
        cut,
        unproven: false,
    };
    let mut diagnostics = Vec::new();
    session::start(&mut sources, file, Vec::new(), setup, &mut diagnostics).unwrap_or_else(|| {
        let messages: Vec<&str> = diagnostics.iter().map(|d| d.message.as_str()).collect();
        panic!("{name}: {}", messages.join("; "))
    })
}

/// A chain that runs.
pub(crate) struct Running {
    pub(crate) name: String,
    burst: u64,
    cycle: u64,
    settle: u64,
    router: Router,
    /// How long it took to configure.
    pub(crate) configured: Duration,
    /// What was measured, in nanoseconds per packet.
    pub(crate) samples: Vec<f64>,
}

impl Running {
    /// A router whose source gives so many packets of this traffic at a time.
    pub(crate) fn new(name: &str, router: Router, burst: u32, traffic: &Frames) -> Self {
        Self {
            name: name.into(),
            burst: burst.into(),
            cycle: traffic.cycle() as u64,
            settle: 0,
            router,
            configured: Duration::ZERO,
            samples: Vec::new(),
        }
    }

    /// Moves as many packets as the chain takes to settle.
    pub(crate) fn settle(&mut self) {
        for _ in 0..self.settle / self.burst {
            self.router.round();
        }
    }

    /// Moves every frame of the traffic once, so that what other chains left in the caches is gone.
    pub(crate) fn warm(&mut self) {
        for _ in 0..self.cycle / self.burst {
            self.router.round();
        }
    }

    /// Moves this many packets and adds the thread's CPU nanoseconds per packet to the samples.
    pub(crate) fn measure(&mut self, packets: u64) {
        let took = self.take(packets);
        self.samples.push(took);
    }

    /// Moves this many packets and returns the thread's CPU nanoseconds per packet.
    pub(crate) fn take(&mut self, packets: u64) -> f64 {
        let bursts = packets / self.burst;
        let start = ThreadTime::now();
        for _ in 0..bursts {
            self.router.round();
        }
        start.elapsed().as_nanos() as f64 / (bursts * self.burst) as f64
    }

    /// What carries its packets.
    pub(crate) fn router(&mut self) -> &mut Router {
        &mut self.router
    }

    /// Moves this many packets and returns how many nanoseconds each burst took, by the wall's clock.
    pub(crate) fn bursts(&mut self, packets: u64) -> Vec<f64> {
        let mut before = Instant::now();
        (0..packets / self.burst)
            .map(|_| {
                self.router.round();
                let now = Instant::now();
                let took = now - before;
                before = now;
                took.as_nanos() as f64
            })
            .collect()
    }
}

/// Every source is the traffic, and what is sent is gone.
struct Memory<'a>(&'a Rc<Frames>);

impl Devices for Memory<'_> {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        Ok(match request {
            DeviceRequest::CaptureOut { .. } => Box::new(Nowhere),
            _ => Box::new(Source::new(Rc::clone(self.0))),
        })
    }
}

/// Files beside the chains, compressed or not.
pub(crate) struct Disk<'a>(pub(crate) &'a Path);

impl Files for Disk<'_> {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        let text = read_text(&self.0.join(path)).map_err(|e| e.to_string())?;
        Ok(sources.add(path, text))
    }

    fn key(&mut self, _: &Sources, _: FileId, path: &str) -> Result<Zeroizing<String>, String> {
        read_text(&self.0.join(path)).map(Zeroizing::new).map_err(|e| e.to_string())
    }

    /// The same in every run.
    fn entropy(&mut self) -> Result<[u8; 16], String> {
        Ok([7; 16])
    }
}

fn read_text(path: &Path) -> std::io::Result<String> {
    let bytes = std::fs::read(path)?;
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let mut text = String::new();
    let mut decoder = flate2::read::MultiGzDecoder::new(&bytes[..]);
    std::io::Read::read_to_string(&mut decoder, &mut text)?;
    Ok(text)
}
