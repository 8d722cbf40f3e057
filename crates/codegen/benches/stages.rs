//! Placing pipelines of 10 to 100 tables in the stages of Tofino 1: microseconds a check. Functions of chains that are
//! asked for together: how often a second.
//!
//! `cargo bench -p catena-codegen --bench stages`
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Instant;

use catena_codegen::stages::{
    Action, FieldId, Hardware, Joint, Key, MatchKind, Member, Members, Pipeline, Room, Table, place,
};
use fastrand::Rng;

const ROUNDS: usize = 101;
/// How often the same questions are asked of a switch that knows none of them.
const RUNS: usize = 9;

/// Tables that read and write some of many fields, so that some depend on each other.
fn pipeline(random: &mut Rng, tables: usize) -> Pipeline {
    let mut all = Pipeline::default();
    for at in 0..(3 * tables).min(200) {
        all.field(&format!("f{at}"), random.choice([8, 16, 32]).unwrap_or(8), None);
    }
    let count = all.fields.len() as u32;
    for at in 0..tables {
        let kind = random.choice([MatchKind::Exact, MatchKind::Exact, MatchKind::Ternary]);
        let key = |random: &mut Rng| Key {
            field: FieldId(random.u32(..count)),
            kind: kind.unwrap_or(MatchKind::Exact),
        };
        let keys = (0..random.usize(1..4)).map(|_| key(random)).collect();
        let writes = vec![FieldId(random.u32(..count)), FieldId(random.u32(..count))];
        let actions = vec![Action { writes, data: 32, ..Action::default() }];
        let entries = random.u64(1..4000);
        all.table(Table { name: format!("t{at}"), keys, actions, entries, ..Table::default() });
    }
    all
}

fn main() {
    let Ok(Room::Stages(stages)) = Hardware::known("tofino-1").map(|hardware| hardware.room) else {
        return;
    };
    for tables in [10, 25, 50, 100] {
        let random = &mut Rng::with_seed(tables as u64);
        let mut times = Vec::new();
        let mut needed = Vec::new();
        for _ in 0..ROUNDS {
            let all = pipeline(random, tables);
            let start = Instant::now();
            let placed = black_box(place(&all, &stages));
            times.push(start.elapsed().as_secs_f64() * 1e6);
            needed.extend(placed.map(|placement| placement.stages));
        }
        times.sort_by(f64::total_cmp);
        needed.sort_unstable();
        println!(
            "{tables} tables: {:.0} µs (median of {ROUNDS} pipelines; {:.0} to {:.0}), {} stages in the median",
            times[ROUNDS / 2],
            times[0],
            times[ROUNDS - 1],
            needed.get(needed.len() / 2).copied().unwrap_or(0),
        );
    }
    for (chains, functions) in [(4, 5), (20, 5)] {
        asked(chains, functions);
    }
}

/// Asks for some of the functions of chains together, each of three tables.
fn asked(chains: usize, functions: usize) {
    let random = &mut Rng::with_seed(chains as u64);
    let member = |random: &mut Rng| {
        let pipeline = pipeline(random, 3);
        Some(Member { name: String::new(), pipeline, numbers: 1, forks: false })
    };
    let all: Vec<Members> = (0..chains)
        .map(|_| Members {
            all: (0..functions).map(|_| member(random)).collect(),
            edges: (1..functions).map(|to| (to - 1, to)).collect(),
        })
        .collect();
    let question = |random: &mut Rng| {
        let placed = (0..chains).flat_map(|chain| (0..functions).map(move |at| (chain, at)));
        placed.filter(|_| random.u8(..10) > 0).collect::<Vec<_>>()
    };
    let questions: Vec<_> = (0..ROUNDS).map(|_| question(random)).collect();
    let run = |_| {
        let joint = Joint::new(&all, Hardware::known("tofino-1").ok());
        let start = Instant::now();
        for placed in &questions {
            let _ = black_box(joint.holds(placed));
        }
        ROUNDS as f64 / start.elapsed().as_secs_f64()
    };
    let mut rates: Vec<f64> = (0..RUNS).map(run).collect();
    rates.sort_by(f64::total_cmp);
    println!(
        "{chains} chains of {functions} functions: asked {:.0} times a second (median of {RUNS} runs; {:.0} to {:.0})",
        rates[RUNS / 2],
        rates[0],
        rates[RUNS - 1]
    );
}
