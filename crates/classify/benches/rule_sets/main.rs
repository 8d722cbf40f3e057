//! Nanoseconds per lookup of the structures on ClassBench's rule sets and on made ones, in
//! batches of 32, with DPDK's `rte_acl` next to them where the feature `rte-acl` is on. Every
//! round measures every subject once on the same keys, so that what the machine does meanwhile
//! touches all alike; the median of the rounds is given with the least and the greatest.
//!
//! `cargo bench -p catena-classify --bench rule_sets [--features rte-acl] -- [FILTER…] [--rounds N] [--seeds N]`
//!
//! `--seeds` makes so many sets of each kind and size. With `rte_acl`, a table of all sets comes last, the worst first.
//! `--structures` measures every structure beside the one that is chosen; `--updates` measures
//! rules that are added and removed between batches of lookups instead.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod classbench;
#[cfg(feature = "rte-acl")]
mod rte_acl;

use std::hint::black_box;
use std::time::{Duration, Instant};

use catena_classify::{
    BitVector, Classifier, Forest, Key, Linear, RuleSet, TupleSpace, Updatable, build,
};
use classbench::{FLAVOURS, MIXED};
use cpu_time::ThreadTime;

/// Keys of a trace: many enough that neither caches nor branch prediction know them all.
const KEYS: usize = 1 << 16;
const BATCH: usize = 32;

/// What looks up keys, and its name.
struct Subject {
    name: String,
    built: Duration,
    memory: usize,
    lookup: Box<dyn FnMut()>,
    samples: Vec<f64>,
}

fn ours(
    name: &str,
    build: fn(&RuleSet) -> Box<dyn Classifier>,
    rules: &RuleSet,
    keys: &[Key],
) -> Subject {
    let start = Instant::now();
    let classifier = build(rules);
    let built = start.elapsed();
    let keys = keys.to_vec();
    let (memory, name) = (classifier.memory(), format!("{name}: {}", classifier.describe()));
    let cost = keys.iter().map(|k| classifier.cost(k)).sum::<usize>() as f64 / KEYS as f64;
    let name = format!("{name} (cost {cost:.0})");
    let mut found = [None; BATCH];
    let lookup = Box::new(move || {
        for keys in keys.chunks(BATCH) {
            classifier.lookup_batch(black_box(keys), &mut found);
            black_box(&found);
        }
    });
    Subject { name, built, memory, lookup, samples: Vec::new() }
}

#[cfg(feature = "rte-acl")]
fn theirs(rules: &RuleSet, keys: &[Key], subjects: &mut Vec<Subject>) {
    use std::rc::Rc;
    let start = Instant::now();
    let mut acl = match rte_acl::RteAcl::new(rules) {
        Ok(acl) => acl,
        Err(error) => return println!("  rte_acl cannot build it: error {error}"),
    };
    let (built, memory) = (start.elapsed(), acl.memory);
    let packets: Rc<Vec<rte_acl::Packet>> = Rc::new(keys.iter().map(rte_acl::packet).collect());
    let pointers: Rc<Vec<*const u8>> = Rc::new(packets.iter().map(|p| p.as_ptr()).collect());
    let check = |acl: &rte_acl::RteAcl| {
        let mut found = [0; BATCH];
        let classifier = build(rules);
        for (keys, packets) in keys.chunks(BATCH).zip(pointers.chunks(BATCH)) {
            acl.lookup(packets, &mut found);
            for (key, found) in keys.iter().zip(found) {
                assert_eq!(classifier.lookup(key), found.checked_sub(1), "{key:?}");
            }
        }
    };
    let algorithms = acl.algorithms();
    check(&acl);
    let acl = Rc::new(std::cell::RefCell::new(acl));
    for (algorithm, number) in algorithms.into_iter().take(3) {
        let (acl, packets, pointers) = (Rc::clone(&acl), Rc::clone(&packets), Rc::clone(&pointers));
        let mut found = [0; BATCH];
        let lookup = Box::new(move || {
            acl.borrow_mut().choose(number);
            black_box(&packets);
            for pointers in pointers.chunks(BATCH) {
                acl.borrow().lookup(black_box(pointers), &mut found);
                black_box(&found);
            }
        });
        let name = format!("rte_acl {algorithm}");
        subjects.push(Subject { name, built, memory, lookup, samples: Vec::new() });
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Measures the subjects; gives their medians.
fn report(set: &str, rules: &RuleSet, rounds: usize, subjects: &mut [Subject]) -> Vec<f64> {
    subjects.iter_mut().for_each(|s| (s.lookup)());
    for _ in 0..rounds {
        for subject in subjects.iter_mut() {
            let start = ThreadTime::now();
            (subject.lookup)();
            subject.samples.push(start.elapsed().as_nanos() as f64 / KEYS as f64);
        }
    }
    let count = rules.cubes().len();
    for subject in subjects.iter() {
        let low = subject.samples.iter().copied().fold(f64::INFINITY, f64::min);
        let high = subject.samples.iter().copied().fold(0.0, f64::max);
        println!(
            "{set:<12} {:>7.1} ns ({low:>5.1}-{high:>6.1}) {:>9.1} ms {:>8.1} B/rule  {}",
            median(&subject.samples),
            subject.built.as_secs_f64() * 1e3,
            subject.memory as f64 / count as f64,
            subject.name,
        );
    }
    subjects.iter().map(|subject| median(&subject.samples)).collect()
}

/// Prints each set's figures beside those of the fastest `rte_acl`, the worst set first.
fn compare(mut rows: Vec<(String, f64, f64)>) {
    let times = |row: &(String, f64, f64)| row.2 / row.1;
    rows.sort_by(|a, b| times(a).total_cmp(&times(b)));
    for row in &rows {
        println!(
            "{:<20} {:>7.1} ns, rte_acl {:>7.1} ns: {:.2} times",
            row.0,
            row.1,
            row.2,
            times(row)
        );
    }
}

/// Adds and removes rules one by one between batches of lookups, and rebuilds in the end.
fn update(set: &str, rules: &RuleSet) {
    let cubes = rules.cubes();
    // Every tenth rule comes later.
    let mut first = RuleSet::new(rules.greatest(), cubes.len());
    for cube in cubes.iter().filter(|c| c.rule % 10 != 9) {
        first.push(*cube).expect("room");
    }
    let start = Instant::now();
    let mut updatable = Updatable::new(&first);
    println!(
        "{set:<12} {} rules in {:.0} ms, {:.0} B/rule",
        updatable.len(),
        start.elapsed().as_secs_f64() * 1e3,
        updatable.memory() as f64 / updatable.len() as f64
    );
    let keys = classbench::trace(rules, KEYS, 1, 7);
    let mut random = fastrand::Rng::with_seed(1);
    let mut batches = keys.chunks(BATCH).cycle();
    let mut found = [None; BATCH];
    for count in [0, 10, 100, 1000] {
        let (mut inserts, mut removes) = (Vec::new(), Vec::new());
        while updatable.changes() < count {
            let i = random.usize(..cubes.len() / 10) * 10 + 9;
            let start = Instant::now();
            updatable.insert(cubes[i].rule.into(), black_box(&cubes[i..=i]));
            inserts.push(start.elapsed().as_nanos() as f64);
            let gone = u64::from(cubes[random.usize(..cubes.len())].rule);
            let start = Instant::now();
            let removed = black_box(updatable.remove(gone));
            if removed {
                removes.push(start.elapsed().as_nanos() as f64);
            }
            updatable.lookup_batch(batches.next().expect("endless"), &mut found);
        }
        let lookups: Vec<f64> = (0..9)
            .map(|_| {
                let start = ThreadTime::now();
                for keys in keys.chunks(BATCH) {
                    updatable.lookup_batch(black_box(keys), &mut found);
                    black_box(&found);
                }
                start.elapsed().as_nanos() as f64 / KEYS as f64
            })
            .collect();
        let p99 = |v: &mut Vec<f64>| {
            v.sort_by(f64::total_cmp);
            v.get(v.len() * 99 / 100).copied().unwrap_or(f64::NAN)
        };
        println!("{set:<12} {count:>6} changes: lookup {:>6.1} ns", median(&lookups));
        for (what, times) in [("insert", &mut inserts), ("remove", &mut removes)] {
            if !times.is_empty() {
                println!("{what:>27}: {:>4.0} ns, p99 {:>5.0}", median(times), p99(times));
            }
        }
    }
    let start = Instant::now();
    let rebuild = updatable.rebuild();
    let asked = start.elapsed();
    let rebuilt = rebuild.build();
    let built = start.elapsed() - asked;
    let start = Instant::now();
    let old = updatable.adopt(rebuilt);
    println!(
        "{set:<12} rebuild: {:.0} us to ask, {:.0} ms to build elsewhere, {:.0} us to adopt",
        asked.as_secs_f64() * 1e6,
        built.as_secs_f64() * 1e3,
        start.elapsed().as_secs_f64() * 1e6
    );
    drop(old);
}

fn main() {
    let (mut filters, mut rounds, mut seeds) = (Vec::new(), 15, 1);
    let (mut structures, mut updating) = (false, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse().ok()).expect("a number");
        match argument.as_str() {
            "--rounds" => rounds = number(),
            "--seeds" => seeds = number(),
            "--structures" => structures = true,
            "--updates" => updating = true,
            "--bench" => {}
            _ => filters.push(argument),
        }
    }
    let wanted = |name: &str| filters.is_empty() || filters.iter().any(|f| name.contains(f));
    let mut sets: Vec<(String, Box<dyn Fn() -> RuleSet>)> = Vec::new();
    match classbench::shared() {
        Some(folder) => {
            for name in ["acl1_1k", "fw1_1k", "ipc1_1k", "acl1_10k", "fw1_10k", "ipc1_10k"] {
                let path = folder.join("data/classbench").join(name);
                let text = std::fs::read_to_string(&path).expect("a rule set");
                sets.push((
                    name.into(),
                    Box::new(move || classbench::read(&text).expect("ClassBench's format")),
                ));
            }
        }
        None => eprintln!("ClassBench's own sets are not measured: no shared folder"),
    }
    let sizes = [("100", 100), ("1k", 1_000), ("5k", 5_000), ("10k", 10_000), ("100k", 100_000)];
    for (size, count) in sizes {
        let mixed = MIXED.into_iter().filter(|_| count <= 5_000);
        for flavour in FLAVOURS.into_iter().chain(mixed) {
            for seed in 1..=seeds {
                let name = match seed {
                    1 => format!("{}-{size}", flavour.name),
                    _ => format!("{}-{size}.{seed}", flavour.name),
                };
                sets.push((name, Box::new(move || flavour.rules(count, seed as u64))));
            }
        }
    }
    for (size, count) in [("1k", 1_000), ("10k", 10_000), ("100k", 100_000)] {
        for kind in classbench::HOSTILE {
            sets.push((
                format!("hostile-{kind}-{size}"),
                Box::new(move || classbench::hostile(kind, count, 1)),
            ));
        }
    }
    let mut rows = Vec::new();
    for (name, rules) in sets.iter().filter(|s| wanted(&s.0)) {
        let rules = rules();
        if updating {
            update(name, &rules);
            continue;
        }
        for (kind, burst) in [("uniform", 1), ("flows", 16)] {
            let keys = classbench::trace(&rules, KEYS, burst, 7);
            let mut subjects = vec![ours("catena", build, &rules, &keys)];
            if structures {
                subjects.push(ours("", |r| Box::new(Forest::new(r)), &rules, &keys));
                subjects.push(ours("", |r| Box::new(TupleSpace::new(r)), &rules, &keys));
                if rules.cubes().len() <= 20_000 {
                    subjects.push(ours("", |r| Box::new(Linear::new(r)), &rules, &keys));
                    subjects.push(ours("", |r| Box::new(BitVector::new(r)), &rules, &keys));
                }
            }
            let own = subjects.len();
            #[cfg(feature = "rte-acl")]
            if !name.starts_with("hostile") {
                theirs(&rules, &keys, &mut subjects);
            }
            let set = format!("{name} {kind}");
            let medians = report(&set, &rules, rounds, &mut subjects);
            if let Some(theirs) = medians[own..].iter().copied().reduce(f64::min) {
                rows.push((set, medians[0], theirs));
            }
        }
    }
    compare(rows);
}
