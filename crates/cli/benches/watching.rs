//! What it costs that a chain can be watched: latency sampling, which is always on in `catena run`, against none;
//! telling what was done once (a scrape); and a connection that was tapped before, against one that never was. Before
//! that (`listing`), how long packets wait while flows are listed.
//! One core, in memory, as in the bench `chains`; synthesised. Times are the thread's CPU time.
//!
//! `cargo bench -p catena-cli --bench watching -- [FILTER…] [--rounds N] [--packets N]`
//!
//! What is compared takes turns in one router (sampling) or in two (taps), first one and then the other going
//! first; a ratio is that of two neighbours. Two routers that are alike are compared, too: what is told of taps is
//! nothing unless it is more than that.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../../bench/benches/support/mod.rs"]
mod support;

use std::path::Path as Folder;
use std::time::{Duration, Instant};

use dataplane::clock::RealClock;
use dataplane::io::{Binding, Bindings};
use dataplane::{ProgramUse, Reading, Router, Transcript};
use elements::Element;
use elements::configure::WorkerShare;
use elements::context::Context;
use engine::session::{self, Path, Setup};
use ir::{Model, Port, Sources};
use net::Batch;

use support::{Chain, Data, Disk, Running, isp, napts, percentile, routers};

/// Lets everything pass.
struct Pass;

impl Element for Pass {
    fn push(&mut self, _: usize, _: &mut Batch, _: &mut Context<'_>) {}

    fn model(&self) -> Model {
        Model::opaque("a tap")
    }
}

/// Taps the first connection of a chain, and takes the tap out again.
fn tap_once(router: &mut Router) {
    let from = Port { node: 0, port: 0 };
    let to = |node| router.taps().insert(from, Port { node, port: 0 }, Box::new(Pass));
    let tap = (1..1000).find_map(to).expect("the first connection");
    router.round();
    router.taps().remove(tap);
    router.round();
}

/// How much more a step takes in the second state than in the first, in percent: the median of all rounds, and
/// between what half of them lie.
fn compare(
    rounds: usize,
    running: &mut [Running],
    mut step: impl FnMut(&mut [Running], usize) -> f64,
) -> String {
    let more = |round: usize| {
        let mut times = [0.0; 2];
        for state in if round.is_multiple_of(2) { [0, 1] } else { [1, 0] } {
            times[state] = step(running, state);
        }
        (times[1] / times[0] - 1.0) * 100.0
    };
    let mut all: Vec<f64> = (0..rounds).map(more).collect();
    all.sort_by(f64::total_cmp);
    let [low, median, high] = [0.25, 0.5, 0.75].map(|share| percentile(&all, share));
    format!("{median:.2} ({low:.1} to {high:.1})")
}

/// How many flows are listed.
const FLOWS: [u32; 3] = [1000, 32_000, 526_000];

/// A chain whose devices are generated, started.
fn started(name: &str, text: String, source: Option<String>) -> Router {
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let mut bindings = Bindings::default();
    let source = source.map(|source| Binding::source(&source).expect("a generator"));
    bindings.inputs.extend(source.map(|source| ("in".to_string(), source)));
    let setup = Setup {
        part: WorkerShare::default(),
        files: &mut Disk(Folder::new("")),
        devices: &mut bindings,
        clock: Box::new(RealClock::new()),
        listener: Box::new(Transcript::default()),
        seed: 1,
        path: Path::Synthesised,
        background: None,
        program_use: ProgramUse::WhereFaster,
        cut: None,
        unproven: false,
    };
    let started = session::start(&mut sources, file, Vec::new(), setup, &mut Vec::new());
    let (_, mut router) = started.expect("a chain");
    router.run(|_, _| false);
    router
}

/// How often each handler is listed.
const LISTINGS: usize = 5;

/// The longest that the machine keeps a thread from its work, in µs, seen in so much time.
fn longest_stall(time: Duration) -> f64 {
    let (begin, mut last, mut longest) = (Instant::now(), Duration::ZERO, Duration::ZERO);
    while last < time {
        let now = begin.elapsed();
        (last, longest) = (now, longest.max(now - last));
    }
    longest.as_secs_f64() * 1e6
}

/// How long packets wait while a handler is read: for a slice of it, between two rounds, and for all of it at once,
/// as scripts in the chain read it. A slice's own time is its shortest of several listings: in the others, the machine
/// did something else meanwhile.
fn list(what: &str, router: &mut Router, handler: &str) -> usize {
    let (mut times, mut own, mut listed) = (Vec::new(), Vec::new(), 0);
    for _ in 0..LISTINGS {
        let (mut from, mut slices) = (Some(0), 0);
        listed = 0;
        while let Some(at) = from {
            let begin = Instant::now();
            let read = router.read_slice(handler, at);
            let time = begin.elapsed().as_secs_f64() * 1e6;
            let Ok(Reading::Slice(slice)) = read else { panic!("{read:?}") };
            match own.get_mut(slices) {
                Some(own) => *own = time.min(*own),
                None => own.push(time),
            }
            times.push(time);
            (from, slices, listed) = (slice.next, slices + 1, listed + slice.records.len());
        }
    }
    let stall = longest_stall(Duration::from_secs_f64(times.iter().sum::<f64>() / 1e6));
    [&mut times, &mut own].into_iter().for_each(|times| times.sort_by(f64::total_cmp));
    let [median, late, longest] = [0.5, 0.99, 1.0].map(|share| percentile(&times, share));
    let begin = Instant::now();
    drop(router.read_handler(handler));
    let all = begin.elapsed();
    println!(
        "{what:<32} {:>8} {:>30} {:>10.1} {stall:>10.1} {:>14}",
        own.len(),
        format!("{median:.1}, {late:.1}, {longest:.1} µs"),
        percentile(&own, 1.0),
        format!("{all:.1?}")
    );
    listed
}

fn listing() {
    println!(
        "{:<32} {:>8} {:>30} {:>10} {:>10} {:>14}",
        "listing", "slices", "a slice: median, p99, longest", "own, µs", "stall, µs", "all at once"
    );
    for flows in FLOWS {
        let text = format!(
            "FromDevice(in) -> Strip(14) -> CheckIPHeader
                -> nat :: IPRewriter(keep 0 0, MAPPING_CAPACITY {flows}) -> Discard;"
        );
        let source = format!("gen:flows={flows},count={}", 4 * flows);
        let mut router = started("flows", text, Some(source));
        let listed = list(&format!("{flows} flows"), &mut router, "nat.table");
        assert_eq!(listed, 2 * flows as usize, "both directions");
    }
    let chain = "Idle -> t :: ARPQuerier(10.0.0.1/8, 2:0:0:0:0:1) -> Discard; Idle -> [1] t;";
    let mut router = started("neighbours", chain.to_string(), None);
    for n in 0..65_536 {
        let value = format!("{} 2:0:0:0:0:2", std::net::Ipv4Addr::from_bits(0x0a01_0000 + n));
        router.write_handler("t.insert", &value).expect("a neighbour");
    }
    list("65,536 neighbours", &mut router, "t.table");
    let host = |n: u32| std::net::Ipv4Addr::from_bits(0x0a00_0000 + 256 * n);
    let rules: String = (0..100_000).map(|n| format!("allow src host {}, ", host(n))).collect();
    let chain = format!("Idle -> f :: IPFilter({rules} deny all) -> Discard;");
    let mut router = started("rules", chain, None);
    for handler in ["f.rules", "f.program", "f.config"] {
        list(&format!("100,000 rules, {handler}"), &mut router, handler);
    }
    router.write_handler("f.rule_remove", "1").expect("a rule");
    list("100,000 rules, changed, f.config", &mut router, "f.config");
    let routes: Vec<String> = (0..600_000).map(|n| format!("{}/24 0", host(n))).collect();
    let chain = format!("Idle -> r :: RadixIPLookup({}) -> Discard;", routes.join(", "));
    let mut router = started("routes", chain, None);
    for handler in ["r.table", "r.config"] {
        list(&format!("600,000 routes, {handler}"), &mut router, handler);
    }
}

fn main() {
    let (mut filters, mut rounds, mut packets) = (Vec::new(), 201usize, 60_000u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse().ok()).expect("a number");
        match argument.as_str() {
            "--rounds" => rounds = number() as usize,
            "--packets" => packets = number(),
            "--bench" => {}
            _ => filters.push(argument),
        }
    }
    if filters.is_empty() || filters.iter().any(|filter| filter == "listing") {
        listing();
    }
    let Some(data) = Data::find() else { return };
    let mix = data.mix(60);
    let list = ("acl1", 8500);
    let chains = [
        Chain::new("bare", String::new(), &mix),
        Chain::new("strip+check", "-> Strip(14) -> CheckIPHeader".into(), &mix),
        Chain::new("routers-10", routers(10), &mix),
        Chain::new("napts-1", napts(1), &mix),
        Chain::new("acl-router-napt-8500", isp(list), &data.reaching(list, 60)),
    ];
    println!(
        "{:<22} {:>9} {:>26} {:>24} {:>24} {:>10}",
        "chain",
        "ns/packet",
        "sampling costs, %",
        "tapped before, %",
        "the same twice, %",
        "a scrape"
    );
    for chain in chains {
        if !filters.is_empty() && !filters.iter().any(|f| chain.name.contains(f.as_str())) {
            continue;
        }
        let mut running =
            [data.start(&chain, Path::Synthesised), data.start(&chain, Path::Synthesised)];
        running.iter_mut().for_each(Running::warm);
        let alike = compare(rounds, &mut running, |all, state| all[state].take(packets));
        let sampling = compare(rounds, &mut running[..1], |all, state| {
            all[0].router().sample_latency(state == 1);
            all[0].take(packets)
        });
        if chain.name != "bare" {
            tap_once(running[1].router());
        }
        running.iter_mut().for_each(Running::warm);
        running[0].router().sample_latency(false);
        let tapped = compare(rounds, &mut running, |all, state| all[state].take(packets));
        running[0].router().sample_latency(true);
        running[0].warm();
        let scrapes = 200;
        let begin = Instant::now();
        (0..scrapes).for_each(|_| drop(running[0].router().stats()));
        let scrape = begin.elapsed() / scrapes;
        let nanoseconds = running[0].take(packets);
        println!(
            "{:<22} {:>9.1} {:>26} {:>24} {:>24} {:>10}",
            chain.name,
            nanoseconds,
            sampling,
            tapped,
            alike,
            format!("{scrape:.1?}"),
        );
    }
}
