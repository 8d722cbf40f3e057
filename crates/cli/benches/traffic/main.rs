//! Chains under traffic of many kinds, element by element and synthesised as by default: one core, in memory.
//!
//! `cargo bench -p catena-cli --bench traffic -- [CHAIN… TRAFFIC…] [--rounds N] [--packets N] [--quick] [--json]
//! [--only bare|elements|synthesised] [--instructions] [--list]`
//!
//! A word selects the chain of this name, or traffic whose name has all its parts: `conn10`, `open1M-zipf0`. Every round
//! starts each variant anew, lets the traffic settle and measures stretches of 10,000 packets. All see the same
//! packets at the same times by a clock that goes on with the packets, so that a stretch of one round is
//! the same work in every other; before, one round checks that all variants send the same bytes.
//!
//! `--only` runs one variant. `--instructions` runs each under callgrind and prints instructions per packet.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod chains;
#[path = "../support/mod.rs"]
mod support;
mod workload;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use catena_cli::session::Path as Execution;
use chains::{BARE, CHAINS, Chain};
use cpu_time::ThreadTime;
use dataplane::Router;
use dataplane::clock::VirtualClock;
use elements::configure::Devices;
use elements::device::{Device, DeviceRequest, Received};
use net::{Batch, Pool};
use serde_json::json;
use support::Spread;
use workload::{Source, Traffic, Workload};

/// Packets that a source hands on at a time.
const BURST: usize = 32;
/// Bursts of a stretch: 10,016 packets.
const STRETCH: usize = 313;
/// What the time of synthesised chains may be in relation to the better of the others.
const SLOWER: f64 = 1.05;
/// What a variant's worst stretch may be in relation to its median.
const WORSE: f64 = 1.3;

/// How a chain runs.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Bare,
    Elements,
    Synthesised,
}

use Variant::{Bare, Elements, Synthesised};

impl Variant {
    const ALL: [Self; 3] = [Bare, Elements, Synthesised];

    fn name(self) -> &'static str {
        match self {
            Bare => "bare",
            Elements => "elements",
            Synthesised => "synthesised",
        }
    }
}

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sent {
    packets: u64,
    bytes: u64,
    /// Of all bytes, if they are looked at.
    digest: u64,
}

/// A device that keeps a count of what is sent, and a digest where it is asked to.
struct Sink {
    sent: Rc<RefCell<Sent>>,
    digests: bool,
}

impl Device for Sink {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        let mut sent = self.sent.borrow_mut();
        for packet in batch.iter() {
            sent.packets += 1;
            sent.bytes += packet.len() as u64;
            if self.digests {
                let mix = |n: u64, word: u64| {
                    (n ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
                };
                sent.digest = mix(sent.digest, packet.len() as u64);
                for word in packet.data().chunks(8) {
                    let mut bytes = [0; 8];
                    bytes[..word.len()].copy_from_slice(word);
                    sent.digest = mix(sent.digest, u64::from_le_bytes(bytes));
                }
            }
        }
        pool.recycle_all(batch);
        Ok(())
    }
}

/// What a chain reads from and writes to.
struct Memory<'a> {
    workload: &'a Rc<Workload>,
    clock: (VirtualClock, u64),
    sent: &'a Rc<RefCell<Sent>>,
    digests: bool,
}

impl Devices for Memory<'_> {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        Ok(match request {
            DeviceRequest::CaptureOut { .. } => {
                Box::new(Sink { sent: Rc::clone(self.sent), digests: self.digests })
            }
            _ => Box::new(Source::new(self.workload, self.clock.clone())),
        })
    }
}

/// A chain under some traffic.
struct Cell<'a> {
    chain: &'a Chain,
    traffic: &'a Traffic,
    workload: Rc<Workload>,
    packets: u64,
}

/// What a variant took in a round.
#[derive(Default)]
struct Run {
    /// Nanoseconds per packet before the traffic settled.
    start: f64,
    /// Nanoseconds per packet of each stretch.
    stretches: Vec<f64>,
    sent: Sent,
}

impl Run {
    fn mean(&self) -> f64 {
        self.stretches.iter().sum::<f64>() / self.stretches.len() as f64
    }
}

impl Cell<'_> {
    fn stretches(&self) -> usize {
        (self.packets as usize).div_ceil(BURST * STRETCH)
    }

    /// Starts a variant, lets the traffic settle and measures.
    fn run(&self, variant: Variant, digests: bool) -> Run {
        let chain = if variant == Bare { &BARE } else { self.chain };
        let path = if variant == Synthesised { Execution::Synthesised } else { Execution::Native };
        let (clock, sent) = (VirtualClock::new(1_700_000_000 << 30), Rc::default());
        let gap = self.traffic.gap(self.chain.tables);
        let mut devices =
            Memory { workload: &self.workload, clock: (clock.clone(), gap), sent: &sent, digests };
        let text = chain.text(&self.workload, BURST);
        let (_, mut router) =
            support::load(chain.name, text, Path::new("."), &mut devices, Box::new(clock), path);
        let settle = self.workload.settle / BURST as u64;
        let begin = ThreadTime::now();
        (0..settle).for_each(|_| {
            router.round();
        });
        let start = begin.elapsed().as_nanos() as f64 / (settle * BURST as u64) as f64;
        let mut stretches = Vec::with_capacity(self.stretches());
        measured_stretches(&mut router, &mut stretches);
        let sent = *sent.borrow();
        Run { start, stretches, sent }
    }
}

/// Moves as many stretches of packets as there is room for, and notes nanoseconds per packet. Callgrind
/// counts what happens in here.
#[inline(never)]
fn measured_stretches(router: &mut Router, stretches: &mut Vec<f64>) {
    while stretches.len() < stretches.capacity() {
        let begin = ThreadTime::now();
        (0..STRETCH).for_each(|_| {
            router.round();
        });
        let packets = (STRETCH * BURST) as f64;
        stretches.push(begin.elapsed().as_nanos() as f64 / packets);
    }
}

/// What a variant took in all rounds.
struct Taken {
    time: Spread,
    means: Vec<f64>,
    starts: Vec<f64>,
    /// The worst stretch in relation to the median one, of what each stretch took at least.
    worst: f64,
}

impl Taken {
    fn of(runs: &[Run]) -> Self {
        let means: Vec<f64> = runs.iter().map(Run::mean).collect();
        let starts = runs.iter().map(|run| run.start).collect();
        let least = |at: usize| Spread::of(runs.iter().map(|run| run.stretches[at])).least;
        let stretches = Spread::of((0..runs[0].stretches.len()).map(least));
        let worst = stretches.greatest / stretches.median;
        Self { time: Spread::of(means.iter().copied()), means, starts, worst }
    }
}

/// What is asked for.
struct Request {
    words: Vec<String>,
    rounds: usize,
    packets: u64,
    json: bool,
    only: Option<Variant>,
    instructions: bool,
    list: bool,
}

impl Request {
    fn read() -> Self {
        let mut request = Self {
            words: Vec::new(),
            rounds: 5,
            packets: 200_000,
            json: false,
            only: None,
            instructions: false,
            list: false,
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut next = || arguments.next().expect("a value");
            match argument.as_str() {
                "--rounds" => request.rounds = next().parse().expect("a number"),
                "--packets" => request.packets = next().parse().expect("a number"),
                "--quick" => (request.rounds, request.packets) = (3, 100_000),
                "--json" => request.json = true,
                "--only" => {
                    let name = next();
                    let found = Variant::ALL.into_iter().find(|variant| variant.name() == name);
                    request.only = Some(found.expect("bare, elements or synthesised"));
                }
                "--instructions" => request.instructions = true,
                "--list" => request.list = true,
                "--bench" => {}
                _ => request.words.push(argument),
            }
        }
        request
    }

    /// The chains and the traffic that words select.
    fn select(&self, all: Vec<Traffic>) -> (Vec<&'static Chain>, Vec<Traffic>) {
        let names_chain = |word: &&String| CHAINS.iter().any(|chain| chain.name == **word);
        let (chains, traffic): (Vec<_>, Vec<_>) = self.words.iter().partition(names_chain);
        let has_parts = |name: &str, word: &str| {
            name == word || word.split('-').all(|part| name.split('-').any(|p| p == part))
        };
        for word in &traffic {
            assert!(all.iter().any(|t| has_parts(&t.name, word)), "no chain or traffic: {word}");
        }
        let selected = CHAINS
            .iter()
            .filter(|chain| chains.is_empty() || chains.iter().any(|name| **name == chain.name));
        let is_wanted =
            |t: &Traffic| traffic.is_empty() || traffic.iter().any(|word| has_parts(&t.name, word));
        (selected.collect(), all.into_iter().filter(is_wanted).collect())
    }
}

/// The captures of the shared data folder.
fn captures() -> Option<PathBuf> {
    let shared = std::env::var_os("CATENA_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let folder = shared.join("data/pcap");
    if !folder.is_dir() {
        eprintln!("captures are not run: {} is missing", folder.display());
        return None;
    }
    Some(folder)
}

fn main() {
    let request = Request::read();
    let (chains, traffic) = request.select(Traffic::all(captures().as_deref()));
    if request.list {
        chains.iter().for_each(|chain| println!("{}", chain.name));
        traffic.iter().for_each(|traffic| println!("{}", traffic.name));
        return;
    }
    if !request.json && request.only.is_none() {
        println!(
            "{:<12} {:<24} {:>6} {:>24} {:>24} {:>6} {:>6} {:>12}",
            "chain",
            "traffic",
            "bare",
            "elements",
            "synthesised",
            "ratio",
            "start",
            "worst stretch"
        );
    }
    let mut failed = 0;
    for traffic in &traffic {
        let mut workload = None;
        for chain in &chains {
            if request.instructions {
                instructions(chain, traffic, &request);
                continue;
            }
            let kept = workload.take().filter(|_| !traffic.depends_on_tables());
            let drawn = kept
                .unwrap_or_else(|| Rc::new(traffic.draw(request.packets + 10_016, chain.tables)));
            let cell =
                Cell { chain, traffic, workload: Rc::clone(&drawn), packets: request.packets };
            workload = Some(drawn);
            match request.only {
                Some(variant) => alone(&cell, variant, request.rounds),
                None => failed += usize::from(!compare(&cell, &request)),
            }
        }
    }
    if failed > 0 && !request.json {
        println!("{failed} did not pass");
    }
}

/// Measures all variants in turns and prints what they took; whether the synthesised one passes.
fn compare(cell: &Cell<'_>, request: &Request) -> bool {
    let sent = [Elements, Synthesised].map(|variant| cell.run(variant, true).sent);
    let name = format!("{} {}", cell.chain.name, cell.traffic.name);
    assert_eq!(sent[0], sent[1], "{name}: elements and programs sent different packets");
    let mut runs = Variant::ALL.map(|_| Vec::new());
    for _ in 0..request.rounds {
        for (variant, runs) in Variant::ALL.into_iter().zip(&mut runs) {
            let run = cell.run(variant, false);
            let counts = |sent: Sent| (sent.packets, sent.bytes);
            assert!(variant == Bare || counts(run.sent) == counts(sent[0]), "{name}: counts");
            runs.push(run);
        }
    }
    let [bare, elements, synthesised] = runs.each_ref().map(|runs| Taken::of(runs));
    let ratio = Spread::of_ratios(&synthesised.means, &elements.means).median;
    let start = Spread::of_ratios(&synthesised.starts, &elements.starts).median;
    let (is_slower, is_worse) = (ratio > SLOWER, synthesised.worst > WORSE);
    if request.json {
        let variant = |taken: &Taken| {
            json!({
                "median": taken.time.median, "least": taken.time.least, "greatest": taken.time.greatest,
                "start": Spread::of(taken.starts.iter().copied()).median, "worst_stretch": taken.worst,
            })
        };
        let line = json!({
            "chain": cell.chain.name, "traffic": cell.traffic.name, "rounds": request.rounds,
            "packets": cell.stretches() * STRETCH * BURST, "sent": sent[0].packets,
            "bare": variant(&bare), "elements": variant(&elements), "synthesised": variant(&synthesised),
            "ratio": ratio, "start_ratio": start, "passes": !(is_slower || is_worse),
        });
        println!("{line}");
    } else {
        println!(
            "{:<12} {:<24} {:>6.1} {:>24} {:>24} {:>6.2} {:>6.2} {:>5.2} {:>6.2}{}{}",
            cell.chain.name,
            cell.traffic.name,
            bare.time.median,
            elements.time.to_string(),
            synthesised.time.to_string(),
            ratio,
            start,
            elements.worst,
            synthesised.worst,
            if is_slower { "  slower" } else { "" },
            if is_worse { "  uneven" } else { "" },
        );
    }
    !(is_slower || is_worse)
}

/// Runs one variant.
fn alone(cell: &Cell<'_>, variant: Variant, rounds: usize) {
    let runs: Vec<Run> = (0..rounds).map(|_| cell.run(variant, false)).collect();
    let taken = Taken::of(&runs);
    println!(
        "{} {} {}: {} packets measured in each of {rounds} rounds, {} ns per packet, worst stretch {:.2} of the median",
        cell.chain.name,
        cell.traffic.name,
        variant.name(),
        cell.stretches() * STRETCH * BURST,
        taken.time,
        taken.worst,
    );
}

/// Has callgrind count the instructions of each variant, and prints how many a packet takes.
fn instructions(chain: &Chain, traffic: &Traffic, request: &Request) {
    let counts = Variant::ALL.map(|variant| {
        if request.only.is_some_and(|only| only != variant) {
            return "-".to_owned();
        }
        let out = std::env::temp_dir().join(format!("catena-traffic-{}", std::process::id()));
        let result = Command::new("valgrind")
            .args(["--tool=callgrind", "--toggle-collect=traffic::measured_stretches*"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(std::env::current_exe().expect("this program"))
            .args(["--only", variant.name(), "--rounds", "1"])
            .args(["--packets", &request.packets.to_string(), chain.name, &traffic.name])
            .output()
            .expect("valgrind runs");
        let _ = std::fs::remove_file(&out);
        let text = String::from_utf8_lossy(&result.stderr).into_owned();
        let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1));
        let collected: f64 = collected.and_then(|n| n.trim().parse().ok()).expect("a count");
        let packets = (request.packets as usize).div_ceil(BURST * STRETCH) * BURST * STRETCH;
        format!("{:.0}", collected / packets as f64)
    });
    let [bare, elements, synthesised] = counts;
    println!(
        "{:<12} {:<24} instructions per packet: bare {bare}, elements {elements}, synthesised {synthesised}",
        chain.name, traffic.name
    );
}
