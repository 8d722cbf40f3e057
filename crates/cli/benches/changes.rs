//! The time from a handler that changes one rule of an access list, or one route of a full table, until
//! the chain's new program runs, for ACL -> router -> NAPT and for a router, and where it goes. Times are the thread's CPU time; `wall` is what the
//! clock on the wall says of the whole. `start` is configuring the chain and making its first program.
//!
//! Kinds of rules take turns: one of those that the paths of packets do not depend on, and such as they do.
//!
//! `cargo bench -p catena-cli --bench changes -- [FILTER…] [--changes N]`
//!
//! The rows of `write` to `install` are taken step by step, without the session that does all of it at
//! the next round; `whole` is what a user sees: the handler is written, and a round later the program
//! is there. Between two changes, packets pass for a while.
#![allow(clippy::print_stdout, clippy::print_stderr)]

#[path = "../../bench/benches/support/mod.rs"]
mod support;

use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use compiler::Synthesizer;
use cpu_time::ThreadTime;
use dataplane::Prepared;
use engine::session::Path;

use support::{Chain, Data, RuleSet, Spread, isp};

/// What is measured, in this order.
const PHASES: [&str; 8] =
    ["write", "models", "synthesise", "install", "sum", "whole", "wall", "start"];
/// Packets pass so long between two changes, or as much longer than the last one took as keeps a
/// chain from making programs all the time.
const BETWEEN: Duration = Duration::from_millis(150);
const REST: u32 = 12;

/// The handler that is written for a change of this number, and what, where there are so many rules
/// or routes; every other one takes the one before back.
type Change = fn(usize, u32) -> (&'static str, String);

/// A chain, and changes of one of its elements.
struct Subject {
    chain: Chain,
    /// The class of the element that changes.
    class: &'static str,
    /// How many rules or routes there are.
    size: u32,
}

impl Subject {
    /// An access list, a router and a NAPT.
    fn list(data: &Data, (set, rules): RuleSet) -> Self {
        let chain = Chain::new("", isp((set, rules)), &data.reaching((set, rules), 60));
        Self { chain, class: "IPFilter", size: rules }
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
        Self { chain, class: "RadixIPLookup", size }
    }
}

/// Rules that come and go: such as there are many, one that asks for what no other does, and the last
/// that leads where no other does.
const RULES: [(&str, Change); 3] = [
    ("", |number, rules| rule(number, rules, "tcp dst port 4711")),
    ("-field", |number, rules| rule(number, rules, "ip ttl 7")),
    ("-last", |number, rules| match number % 2 {
        0 => ("rule_remove", (rules + 1).to_string()),
        _ => ("rule_insert", format!("{} deny all", rules + 1)),
    }),
];

/// A rule, at places all over the list.
fn rule(number: usize, rules: u32, what: &str) -> (&'static str, String) {
    let at = (number as u64 / 2).wrapping_mul(2_654_435_761) % u64::from(rules) + 1;
    let [high, low] = [number / 256, number % 256];
    match number % 2 {
        0 => ("rule_insert", format!("{at} deny src host 10.77.{high}.{low} && {what}")),
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

/// The times of changes of each kind, in milliseconds.
fn measure(
    data: &Data,
    subject: &Subject,
    changes: &[Change],
    count: usize,
) -> Vec<[Vec<f64>; PHASES.len()]> {
    let Subject { chain, class, size } = subject;
    let mut times = vec![[(); PHASES.len()].map(|()| Vec::new()); changes.len()];
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    // A change and what takes it back, of one kind after the other.
    let all = (0..count / 2).flat_map(|pair| {
        let kinds = changes.iter().enumerate();
        kinds.flat_map(move |(kind, of)| {
            [2 * pair, 2 * pair + 1].map(|number| (kind, of(number, *size)))
        })
    });

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
    router.programs().install(kept.iter().cloned());
    for (kind, (handler, value)) in all.clone() {
        for _ in 0..1000 {
            router.round();
        }
        let start = ThreadTime::now();
        router.write_handler(&format!("{}.{handler}", element.name), &value).expect("a change");
        let written = ThreadTime::now();
        router.programs().stale();
        for (id, node) in graph.nodes.iter().enumerate() {
            synthesizer.change(id, router.element(&node.name).expect("an element").model());
        }
        let asked = ThreadTime::now();
        let programs = prepare(&mut synthesizer);
        let synthesised = ThreadTime::now();
        let refused = router.programs().install(programs.iter().cloned());
        let installed = ThreadTime::now();
        assert!(refused.is_empty(), "{refused:?}");
        let marks = [start, written, asked, synthesised, installed];
        for (phase, marks) in times[kind].iter_mut().zip(marks.windows(2)) {
            phase.push(milliseconds(marks[1].duration_since(marks[0])));
        }
        times[kind][4].push(milliseconds(installed.duration_since(start)));
        drop(std::mem::replace(&mut kept, programs));
    }

    let start = ThreadTime::now();
    let (_, mut router) = data.load(chain, Path::Synthesised);
    let start = milliseconds(start.elapsed());
    times.iter_mut().for_each(|times| times[7].push(start));
    let mut rest = BETWEEN;
    for (kind, (handler, value)) in all {
        let between = Instant::now();
        while between.elapsed() < rest {
            router.round();
        }
        let (start, wall) = (ThreadTime::now(), Instant::now());
        router.write_handler(&format!("{}.{handler}", element.name), &value).expect("a change");
        router.round();
        times[kind][5].push(milliseconds(start.elapsed()));
        times[kind][6].push(milliseconds(wall.elapsed()));
        assert!(!router.programs().is_stale(), "its program is there");
        rest = BETWEEN.max(REST * wall.elapsed());
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
    print!("{:<18}", "ms");
    PHASES.iter().for_each(|phase| print!(" {phase:>22}"));
    println!();
    let is_wanted =
        |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f.as_str()));
    let rows = |name: &str, kinds: &[(&str, Change)], subject: &dyn Fn() -> Subject| {
        let kinds = kinds.iter().map(|(kind, change)| (format!("{name}{kind}"), *change));
        let (names, kinds): (Vec<String>, Vec<Change>) =
            kinds.filter(|(name, _)| is_wanted(name)).unzip();
        if kinds.is_empty() {
            return;
        }
        for (name, times) in names.iter().zip(measure(&data, &subject(), &kinds, changes)) {
            print!("{name:<18}");
            for times in times {
                let spread = Spread::of(times);
                print!(" {:>22}", format!("{:.2} ({})", spread.median, spread.range()));
            }
            println!();
        }
    };
    for set in ["acl1", "fw1", "ipc1"] {
        for rules in [250, 700, 8500] {
            rows(&format!("{set}-{rules}"), &RULES, &|| Subject::list(&data, (set, rules)));
        }
    }
    for routes in [10_000, 100_000, 1_000_000] {
        rows(&format!("routes-{routes}"), &[("", route)], &|| Subject::router(&data, routes));
    }
}
