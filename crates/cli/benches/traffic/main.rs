//! Chains under traffic of many kinds, element by element and synthesised as by default: one core, in memory.
//!
//! `cargo bench -p catena-cli --bench traffic -- [CHAIN… TRAFFIC…] [--rounds N] [--packets N] [--quick] [--json] [--table]
//! [--only bare|elements|synthesised|program] [--instructions] [--list]`
//!
//! A word selects the chain of this name, or traffic whose name has all its parts: `conn10`, `open1M-zipf0`. Every round
//! starts each variant anew, lets the traffic settle and measures stretches of 10,000 packets. All see the same
//! packets at the same times by a clock that goes on with the packets, so that a stretch of one round is
//! the same work in every other; before, one round checks that all variants send the same bytes.
//!
//! `--only` runs one variant; `program` is the synthesised chain whose program takes all bursts. `--instructions` runs
//! each under callgrind and prints instructions per packet.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod chains;
mod devices;
mod fastclick;
mod report;
#[path = "../../../bench/benches/support/mod.rs"]
mod support;
mod workload;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;

use cpu_time::ThreadTime;
use dataplane::clock::VirtualClock;
use dataplane::{ProgramUse, Router};
use engine::session::Path as Execution;

use chains::{BARE, CHAINS, Chain};
use devices::{Memory, Sent};
use fastclick::FastClick;
use report::{Finding, Output, Taken};
use workload::{Traffic, Workload};

/// Packets that a source hands on at a time.
const BURST: usize = 32;
/// Bursts of a stretch: 10,016 packets, and the replies to them.
const STRETCH: usize = 313;
/// When the clock starts, in nanoseconds since 1970.
const START: u64 = 1_800_000_000_000_000_000;

/// How a chain runs.
#[derive(Clone, Copy, PartialEq)]
enum Variant {
    Bare,
    Elements,
    Synthesised,
    /// Synthesised, and the program takes all bursts.
    Program,
}

use Variant::{Bare, Elements, Program, Synthesised};

impl Variant {
    const ALL: [Self; 4] = [Bare, Elements, Synthesised, Program];
    /// Those that are compared.
    const COMPARED: [Self; 3] = [Bare, Elements, Synthesised];

    fn name(self) -> &'static str {
        match self {
            Bare => "bare",
            Elements => "elements",
            Synthesised => "synthesised",
            Program => "program",
        }
    }
}

/// A chain under some traffic.
struct Case<'a> {
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
    /// How many packets were measured.
    received: u64,
    sent: Sent,
}

impl Run {
    fn mean(&self) -> f64 {
        self.stretches.iter().sum::<f64>() / self.stretches.len() as f64
    }
}

impl Case<'_> {
    fn stretches(&self) -> usize {
        (self.packets as usize).div_ceil(BURST * STRETCH)
    }

    /// Starts a variant, lets the traffic settle and measures.
    fn run(&self, variant: Variant, digests: bool) -> Run {
        self.run_in_bursts(variant, digests, BURST)
    }

    /// The same in bursts of so many packets.
    fn run_in_bursts(&self, variant: Variant, digests: bool, burst: usize) -> Run {
        let chain = if variant == Bare { &BARE } else { self.chain };
        let path = match variant {
            Bare | Elements => Execution::Native,
            Synthesised | Program => Execution::Synthesised,
        };
        let clock = VirtualClock::new(START);
        let gap = self.traffic.gap(self.chain.tables);
        let mut devices = Memory::new(&self.workload, (clock.clone(), gap), digests);
        let source = format!("FromDump(in, BURST {burst})");
        let text = chain.text(&self.workload, &source, "ToDump(out)");
        let (_, mut router) = support::load(
            chain.name,
            text,
            Path::new("."),
            &mut devices,
            Box::new(clock),
            path,
            support::FASTEST,
        );
        if variant == Program {
            router.programs().set_use(ProgramUse::Always);
        }
        let received = &*devices.received;
        let begin = ThreadTime::now();
        (0..self.workload.settle / BURST as u64 * (BURST / burst) as u64).for_each(|_| {
            router.round();
        });
        let start = begin.elapsed().as_nanos() as f64 / received.get() as f64;
        received.set(0);
        let mut stretches = Vec::with_capacity(self.stretches());
        measured_stretches(&mut router, received, &mut stretches, BURST / burst);
        Run { start, stretches, received: received.get(), sent: devices.sent.get() }
    }
}

/// Moves as many stretches of packets as there is room for, and notes nanoseconds per packet. Callgrind
/// counts what happens in here.
#[inline(never)]
fn measured_stretches(
    router: &mut Router,
    received: &Cell<u64>,
    stretches: &mut Vec<f64>,
    rounds_of_burst: usize,
) {
    while stretches.len() < stretches.capacity() {
        let (before, begin) = (received.get(), ThreadTime::now());
        (0..STRETCH * rounds_of_burst).for_each(|_| {
            router.round();
        });
        let packets = (received.get() - before) as f64;
        stretches.push(begin.elapsed().as_nanos() as f64 / packets);
    }
}

/// What is asked for.
struct Request {
    words: Vec<String>,
    rounds: usize,
    packets: u64,
    json: bool,
    table: bool,
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
            table: false,
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
                "--table" => request.table = true,
                "--only" => {
                    let name = next();
                    let found = Variant::ALL.into_iter().find(|variant| variant.name() == name);
                    request.only = Some(found.expect("bare, elements, synthesised or program"));
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

fn main() -> ExitCode {
    let request = Request::read();
    let (chains, traffic) = request.select(Traffic::all(captures().as_deref()));
    if request.list {
        chains.iter().for_each(|chain| println!("{}", chain.name));
        traffic.iter().for_each(|traffic| println!("{}", traffic.name));
        return ExitCode::SUCCESS;
    }
    if request.instructions {
        println!(
            "{:<12} {:<22} {:>8} {:>9} {:>12} {:>8}",
            "chain", "traffic", "bare", "elements", "synthesised", "program"
        );
    } else if !request.json && request.only.is_none() {
        println!("{}", Finding::header());
    }
    let has_fastclick = request.only.is_none() && !request.instructions && FastClick::is_there();
    let mut findings = Vec::new();
    for traffic in &traffic {
        let mut workload = None;
        for chain in &chains {
            if request.instructions {
                instructions(chain, traffic, &request);
                continue;
            }
            let kept = workload.take().filter(|_| !traffic.depends_on_tables());
            let most = request.packets + (STRETCH * BURST) as u64;
            let drawn = kept.unwrap_or_else(|| Rc::new(traffic.draw(most, chain.tables)));
            let case =
                Case { chain, traffic, workload: Rc::clone(&drawn), packets: request.packets };
            workload = Some(drawn);
            if let Some(variant) = request.only {
                alone(&case, variant, request.rounds);
                continue;
            }
            let finding = compare(&case, request.rounds, has_fastclick);
            println!("{}", if request.json { finding.json() } else { finding.line() });
            findings.push(finding);
        }
    }
    if !findings.is_empty() && !request.json {
        let passed = findings.iter().filter(|finding| finding.passes()).count();
        println!("{passed} of {} pass", findings.len());
    }
    if request.table {
        print!("{}", report::table(&findings));
    }
    match findings.iter().any(|finding| finding.output == Output::Different) {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Compares what all variants send, and measures them in turns.
fn compare(case: &Case<'_>, rounds: usize, has_fastclick: bool) -> Finding {
    let check = [Elements, Synthesised].map(|variant| case.run(variant, true));
    let [expected, other] = check.each_ref().map(|run| run.sent);
    // Elements that split a batch send each part on its own. A translator behind them then meets flows in another order, and
    // gives them other ports. Packets that come one by one have one order.
    let is_same_one_by_one = || {
        let [elements, other] =
            [Elements, Synthesised].map(|variant| case.run_in_bursts(variant, true, 1).sent);
        elements == other
    };
    let output = match () {
        () if expected == other => Output::Same,
        () if (Sent { digest: expected.digest, ..other }) == expected => Output::OtherOrder,
        () if is_same_one_by_one() => Output::OtherOrder,
        () => Output::Different,
    };
    // Replies that come back would need FastClick to make them.
    let packets = (case.stretches() * STRETCH * BURST) as u64;
    let fastclick =
        (has_fastclick && !case.workload.replies).then(|| FastClick::new(&case.workload, packets));
    let (mut runs, mut click) = (Variant::COMPARED.map(|_| Vec::new()), Vec::new());
    for _ in 0..rounds {
        for (variant, runs) in Variant::COMPARED.into_iter().zip(&mut runs) {
            let run = case.run(variant, false);
            runs.push(run);
        }
        if let Some(fastclick) = &fastclick {
            let take = |chain: &Chain| fastclick.run(chain, &case.workload);
            // Its source is not ours.
            let bare = runs[0].last().map_or(0.0, Run::mean);
            click.push(take(case.chain) - take(&BARE) + bare);
        }
    }
    let [bare, elements, synthesised] = runs.each_ref().map(|runs| Taken::of(runs));
    Finding {
        chain: case.chain.name,
        traffic: case.traffic.name.clone(),
        packets: check[0].received,
        sent: expected.packets,
        bare,
        elements,
        synthesised,
        fastclick: click,
        output,
    }
}

/// Runs one variant.
fn alone(case: &Case<'_>, variant: Variant, rounds: usize) {
    let runs: Vec<Run> = (0..rounds).map(|_| case.run(variant, false)).collect();
    let taken = Taken::of(&runs);
    println!(
        "{} {} {}: {} packets measured in each of {rounds} rounds, {} ns per packet, worst stretch {:.2} of the median",
        case.chain.name,
        case.traffic.name,
        variant.name(),
        runs[0].received,
        taken.time,
        taken.worst,
    );
}

/// Has callgrind count the instructions of each variant, and prints how many a packet takes.
fn instructions(chain: &Chain, traffic: &Traffic, request: &Request) {
    let count = |variant: Variant| {
        if request.only.is_some_and(|only| only != variant) {
            return "-".to_owned();
        }
        let out = std::env::temp_dir().join(format!("catena-traffic-{}.out", std::process::id()));
        let result = Command::new("valgrind")
            .args(["--tool=callgrind", "--toggle-collect=traffic::measured_stretches*"])
            .arg(format!("--callgrind-out-file={}", out.display()))
            .arg(std::env::current_exe().expect("this program"))
            .args(["--only", variant.name(), "--rounds", "1"])
            .args(["--packets", &request.packets.to_string(), chain.name, &traffic.name])
            .output()
            .expect("valgrind runs");
        let _ = std::fs::remove_file(&out);
        let [printed, errors] =
            [&result.stdout, &result.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        let number =
            |text: &str| text.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
        let collected = errors.lines().find_map(|l| number(l.split("Collected : ").nth(1)?));
        let packets = printed.lines().find_map(|l| number(l.split(": ").nth(1)?));
        match (collected, packets) {
            (Some(collected), Some(packets)) => format!("{:.0}", collected / packets),
            _ => panic!("{} {}: {printed}{errors}", chain.name, traffic.name),
        }
    };
    let [bare, elements, synthesised, program] = Variant::ALL.map(count);
    println!(
        "{:<12} {:<22} {bare:>8} {elements:>9} {synthesised:>12} {program:>8}",
        chain.name, traffic.name
    );
}
