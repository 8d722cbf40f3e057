//! The time from a handler that changes one rule of an access list until the chain's new program
//! runs, for ACL -> router -> NAPT, and where it goes. Times are the thread's CPU time; `wall` is what the
//! clock on the wall says of the whole. `start` is configuring the chain and making its first program.
//!
//! `cargo bench -p catena-cli --bench changes -- [FILTER…] [--changes N]`
//!
//! The rows of `write` to `install` are taken step by step, without the session that does all of it at
//! the next round; `whole` is what a user sees: the handler is written, and a round later the program
//! is there. Between two changes, packets pass for a while.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod support;

use std::time::{Duration, Instant};

use cpu_time::ThreadTime;

use catena_cli::session::Path;
use compiler::Synthesizer;
use support::{Chain, Data, RuleSet, Spread, isp};

/// What is measured, in this order.
const PHASES: [&str; 8] =
    ["write", "models", "synthesise", "install", "sum", "whole", "wall", "start"];
/// Packets pass so long between two changes.
const BETWEEN: Duration = Duration::from_millis(150);

/// What is written, change by change: every other one takes the one before back.
fn change(number: usize, rules: u32) -> (&'static str, String) {
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

/// The times of changes, in milliseconds.
fn measure(data: &Data, (set, rules): RuleSet, changes: usize) -> [Vec<f64>; PHASES.len()] {
    let name = format!("{set}-{rules}");
    let chain = Chain::new(name, isp((set, rules)), &data.reaching((set, rules), 60));
    let mut times: [Vec<f64>; PHASES.len()] = Default::default();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;

    let (loaded, mut router) = data.load(&chain, Path::Native);
    let graph = &loaded.graph;
    let filter = graph.nodes.iter().find(|node| node.class == "IPFilter").expect("an access list");
    let mut models = || -> Vec<ir::Model> {
        graph.nodes.iter().map(|n| router.element(&n.name).expect("an element").model()).collect()
    };
    let mut synthesizer = Synthesizer::new(graph.clone(), models());
    router.install_programs(synthesizer.synthesize().programs);
    for number in 0..changes {
        let (handler, value) = change(number, rules);
        for _ in 0..1000 {
            router.round();
        }
        let start = ThreadTime::now();
        router.write_handler(&format!("{}.{handler}", filter.name), &value).expect("a rule");
        let written = ThreadTime::now();
        router.stale();
        for (id, node) in graph.nodes.iter().enumerate() {
            synthesizer.change(id, router.element(&node.name).expect("an element").model());
        }
        let asked = ThreadTime::now();
        let programs = synthesizer.synthesize().programs;
        let synthesised = ThreadTime::now();
        let refused = router.install_programs(programs);
        let installed = ThreadTime::now();
        assert!(refused.is_empty(), "{refused:?}");
        let marks = [start, written, asked, synthesised, installed];
        for (phase, marks) in times.iter_mut().zip(marks.windows(2)) {
            phase.push(milliseconds(marks[1].duration_since(marks[0])));
        }
        times[4].push(milliseconds(installed.duration_since(start)));
    }

    let start = ThreadTime::now();
    let (_, mut router) = data.load(&chain, Path::Synthesised);
    times[7].push(milliseconds(start.elapsed()));
    for number in 0..changes {
        let (handler, value) = change(number, rules);
        let between = Instant::now();
        while between.elapsed() < BETWEEN {
            router.round();
        }
        let (start, wall) = (ThreadTime::now(), Instant::now());
        router.write_handler(&format!("{}.{handler}", filter.name), &value).expect("a rule");
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
    print!("{:<12}", "rules, ms");
    PHASES.iter().for_each(|phase| print!(" {phase:>22}"));
    println!();
    for set in ["acl1", "fw1", "ipc1"] {
        for rules in [250, 700, 8500] {
            let name = format!("{set}-{rules}");
            if !filters.is_empty() && !filters.iter().any(|f| name.contains(f.as_str())) {
                continue;
            }
            print!("{name:<12}");
            for times in measure(&data, (set, rules), changes) {
                let spread = Spread::of(times.iter().copied());
                print!(" {:>22}", format!("{:.2} ({})", spread.median, spread.range()));
            }
            println!();
        }
    }
}
