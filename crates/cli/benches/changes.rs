//! The time from a handler that changes one rule of an access list, or one route of a full table, until
//! the chain's new program runs, for ACL -> router -> NAPT and for a router, and where it goes. Times are the thread's CPU time; `wall` is what the
//! clock on the wall says of the whole. `start` is configuring the chain and making its first program.
//!
//! `cargo bench -p catena-cli --bench changes -- [FILTER…] [--changes N]`
//!
//! The rows of `write` to `install` are taken step by step, without the session that does all of it at
//! the next round; `whole` is what a user sees: the handler is written, and a round later the program
//! is there. Between two changes, packets pass for a while.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use cpu_time::ThreadTime;

use catena_cli::session::Path;
use compiler::Synthesizer;
use dataplane::Prepared;
use support::{Chain, Data, RuleSet, Spread, isp};

/// What is measured, in this order.
const PHASES: [&str; 8] =
    ["write", "models", "synthesise", "install", "sum", "whole", "wall", "start"];
/// Packets pass so long between two changes.
const BETWEEN: Duration = Duration::from_millis(150);

/// A chain, and changes of one of its elements.
struct Subject {
    chain: Chain,
    /// The class of the element that changes.
    class: &'static str,
    /// The handler that is written for a change, and what; every other one takes the one before
    /// back.
    change: fn(usize, u32) -> (&'static str, String),
    /// How many rules or routes there are.
    size: u32,
}

impl Subject {
    /// An access list, a router and a NAPT.
    fn list(data: &Data, (set, rules): RuleSet) -> Self {
        let chain = Chain::new("", isp((set, rules)), &data.reaching((set, rules), 60));
        Self { chain, class: "IPFilter", change: rule, size: rules }
    }

    /// A router with all IPv4 prefixes of a routing table, or a part of them.
    fn router(data: &Data, most: usize) -> Self {
        let prefixes = data.prefixes();
        let part = prefixes.len().div_ceil(most);
        let (mut routes, mut size) = ("0.0.0.0/0 10.0.0.1 0".to_owned(), 1);
        for (prefix, origin) in prefixes.iter().step_by(part) {
            let _ = write!(routes, ", {prefix} 10.0.{}.1 {}", origin % 64, origin % 4);
            size += 1;
        }
        let body = format!(
            "-> Strip(14) -> CheckIPHeader -> routes :: RadixIPLookup({routes}); \
             routes[0], routes[1], routes[2], routes[3] => {{
                 input[0], input[1], input[2], input[3] -> output;
             }} -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02)"
        );
        let chain = Chain::new("", body, &data.mix(60));
        Self { chain, class: "RadixIPLookup", change: route, size }
    }
}

/// A rule, at places all over the list.
fn rule(number: usize, rules: u32) -> (&'static str, String) {
    let at = (number as u64 / 2).wrapping_mul(2_654_435_761) % u64::from(rules) + 1;
    match number % 2 {
        0 => (
            "rule_insert",
            format!(
                "{at} deny src host 10.77.{}.{} && tcp dst port 4711",
                number / 256,
                number % 256
            ),
        ),
        _ => ("rule_remove", at.to_string()),
    }
}

/// A route, all over the addresses.
fn route(number: usize, _: u32) -> (&'static str, String) {
    let network = Ipv4Addr::from_bits((number as u32 / 2).wrapping_mul(2_654_435_761) & !0xff);
    match number % 2 {
        0 => ("set", format!("{network}/25 10.0.7.1 3")),
        _ => ("remove", format!("{network}/25")),
    }
}

/// The times of changes, in milliseconds.
fn measure(data: &Data, subject: &Subject, changes: usize) -> [Vec<f64>; PHASES.len()] {
    let Subject { chain, class, change, size } = subject;
    let mut times: [Vec<f64>; PHASES.len()] = Default::default();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;

    let (loaded, mut router) = data.load(chain, Path::Native);
    let graph = &loaded.graph;
    let element = graph.nodes.iter().find(|node| node.class == *class).expect("the element");
    let mut models = || -> Vec<ir::Model> {
        graph.nodes.iter().map(|n| router.element(&n.name).expect("an element").model()).collect()
    };
    let mut synthesizer = Synthesizer::new(graph.clone(), models());
    let prepare = |synthesizer: &mut Synthesizer| -> Vec<Prepared> {
        synthesizer.synthesize().programs.into_iter().map(Prepared::new).collect()
    };
    // Another thread gives back the memory of those that are not used any more.
    let mut kept = prepare(&mut synthesizer);
    router.install_programs(kept.iter().cloned());
    for number in 0..changes {
        let (handler, value) = change(number, *size);
        for _ in 0..1000 {
            router.round();
        }
        let start = ThreadTime::now();
        router.write_handler(&format!("{}.{handler}", element.name), &value).expect("a change");
        let written = ThreadTime::now();
        router.stale();
        for (id, node) in graph.nodes.iter().enumerate() {
            synthesizer.change(id, router.element(&node.name).expect("an element").model());
        }
        let asked = ThreadTime::now();
        let programs = prepare(&mut synthesizer);
        let synthesised = ThreadTime::now();
        let refused = router.install_programs(programs.iter().cloned());
        let installed = ThreadTime::now();
        assert!(refused.is_empty(), "{refused:?}");
        let marks = [start, written, asked, synthesised, installed];
        for (phase, marks) in times.iter_mut().zip(marks.windows(2)) {
            phase.push(milliseconds(marks[1].duration_since(marks[0])));
        }
        times[4].push(milliseconds(installed.duration_since(start)));
        drop(std::mem::replace(&mut kept, programs));
    }

    let start = ThreadTime::now();
    let (_, mut router) = data.load(chain, Path::Synthesised);
    times[7].push(milliseconds(start.elapsed()));
    for number in 0..changes {
        let (handler, value) = change(number, *size);
        let between = Instant::now();
        while between.elapsed() < BETWEEN {
            router.round();
        }
        let (start, wall) = (ThreadTime::now(), Instant::now());
        router.write_handler(&format!("{}.{handler}", element.name), &value).expect("a change");
        router.round();
        times[5].push(milliseconds(start.elapsed()));
        times[6].push(milliseconds(wall.elapsed()));
    }
    times
}

fn main() {
    let (mut filters, mut changes) = (Vec::new(), 40usize);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--changes" => {
                changes = arguments.next().and_then(|n| n.parse().ok()).expect("a number")
            }
            "--bench" => {}
            _ => filters.push(argument),
        }
    }
    let Some(data) = Data::find() else { return };
    print!("{:<12}", "ms");
    PHASES.iter().for_each(|phase| print!(" {phase:>22}"));
    println!();
    let row = |name: &str, subject: &dyn Fn() -> Subject| {
        if !filters.is_empty() && !filters.iter().any(|f| name.contains(f.as_str())) {
            return;
        }
        print!("{name:<12}");
        for times in measure(&data, &subject(), changes) {
            let spread = Spread::of(times.iter().copied());
            print!(" {:>22}", format!("{:.2} ({})", spread.median, spread.range()));
        }
        println!();
    };
    for set in ["acl1", "fw1", "ipc1"] {
        for rules in [250, 700, 8500] {
            row(&format!("{set}-{rules}"), &|| Subject::list(&data, (set, rules)));
        }
    }
    for routes in [10_000, 100_000, 1_000_000] {
        row(&format!("routes-{routes}"), &|| Subject::router(&data, routes));
    }
}
