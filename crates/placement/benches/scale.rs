//! How long plans take, and how good they are: from four chains behind one server to a thousand servers.
//!
//! `cargo bench -p catena-placement --bench scale` runs all; a number of chains behind `--` only that one.
#![allow(clippy::print_stdout, reason = "benches report")]

use std::time::{Duration, Instant};

use fastrand::Rng;
use placement::{
    Bound, Chain, Placed, Plan, Policy, Problem, Replication, Roomy, change, check, lemur, place,
    without_hosts,
};

/// Chains 1 to 5 of Lemur, by turns, with costs of their own: none is like another.
fn chains(random: &mut Rng, count: usize) -> Vec<Chain> {
    let chain = |at: usize| {
        let mut chain = lemur::chain(at % 5 + 1, 1.0);
        chain.name = format!("c{at}");
        for function in &mut chain.functions {
            function.core_cycles *= 0.8 + 0.4 * random.f64();
        }
        chain.slo.min = 0.45e9 * random.f64() + 0.05e9;
        chain.slo.max = 10e9;
        chain.slo.price = f64::from(random.u32(1..4));
        chain
    };
    (0..count).map(chain).collect()
}

/// Chains on alike servers of 16 cores.
fn rack(random: &mut Rng, count: usize, hosts: usize) -> Problem {
    Problem {
        chains: chains(random, count),
        hosts: (0..hosts).map(|at| lemur::host(&format!("s{at}"), 16)).collect(),
        replication: Replication::Model,
        ..lemur::problem(&[], 1.0)
    }
}

/// The most memory that this process had so far, in MiB.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) / 1024
}

fn gain(problem: &Problem, plan: &Plan) -> f64 {
    let of = problem.chains.iter().zip(&plan.chains);
    of.map(|(chain, placed)| chain.slo.price * (placed.rate - chain.slo.min)).sum()
}

fn run(what: &str, problem: &Problem, policy: Policy, limit: Duration) -> Option<Plan> {
    let begun = Instant::now();
    let plan = place(problem, &Roomy, policy, &mut || begun.elapsed() < limit);
    let took = begun.elapsed();
    match plan {
        Ok(plan) => {
            let wrong = check(problem, &Roomy, &plan).err();
            assert_eq!(wrong, None, "{what}");
            let gap = match plan.bound {
                Bound::Best => "best".to_string(),
                Bound::AtMost(most) => {
                    format!("gap {:.2} %", 100.0 * (1.0 - gain(problem, &plan) / most))
                }
                Bound::Unknown => "gap unknown".into(),
            };
            println!(
                "{what}: {:.3} s, {:.1} Gb/s, {gap}, {} MiB",
                took.as_secs_f64(),
                plan.rate() / 1e9,
                memory()
            );
            Some(plan)
        }
        Err(why) => {
            println!("{what}: {:.3} s, {}", took.as_secs_f64(), why.words(problem));
            None
        }
    }
}

/// How often a change is placed.
const RUNS: usize = 9;

/// What follows a plan when a chain comes, and when a server fails.
fn changes(what: &str, problem: &Problem, plan: Plan) {
    let last: Vec<Option<Placed>> = plan.chains.into_iter().map(Some).collect();
    let next = |what: String, problem: &Problem, last: &[Option<Placed>], down: &[usize]| {
        let run = || {
            let begun = Instant::now();
            let changed = change(problem, &Roomy, last, down, &mut || true);
            (begun.elapsed().as_secs_f64(), changed)
        };
        let mut runs: Vec<_> = std::iter::repeat_with(run).take(RUNS).collect();
        runs.sort_by(|a, b| a.0.total_cmp(&b.0));
        let took =
            format!("{:.3} s ({:.3} to {:.3})", runs[RUNS / 2].0, runs[0].0, runs[RUNS - 1].0);
        match runs.swap_remove(0).1 {
            Ok(changed) => {
                let wrong = check(&without_hosts(problem, down), &Roomy, &changed.plan).err();
                assert_eq!(wrong, None, "{what}");
                println!(
                    "{what}: {took}, {} functions move, {:.1} Gb/s",
                    changed.moved.len(),
                    changed.plan.rate() / 1e9
                );
            }
            Err(why) => println!("{what}: {took}, {}", why.words(problem)),
        }
    };
    let mut more = problem.clone();
    more.chains.push(Chain { name: "more".into(), ..problem.chains[0].clone() });
    let with: Vec<_> = last.iter().cloned().chain([None]).collect();
    next(format!("{what}: one chain more"), &more, &with, &[]);
    next(format!("{what}: one server less"), problem, &last, &[problem.hosts.len() / 2]);
}

fn main() {
    let only: Option<usize> = std::env::args().find_map(|of| of.parse().ok());
    let is_wanted = |chains: usize| only.is_none_or(|only| only == chains);
    if is_wanted(4) {
        for delta in [0.5, 1.0, 1.5, 2.0] {
            let mut lemur = lemur::problem(&[1, 2, 3, 4], delta);
            for policy in [Policy::Lemur, Policy::Improved, Policy::Exact] {
                let _ = run(&format!("4 chains, {delta}, {policy}"), &lemur, policy, Duration::MAX);
            }
            lemur.replication = Replication::Model;
            let _ =
                run(&format!("4 chains, {delta}, own rules"), &lemur, Policy::Exact, Duration::MAX);
        }
    }
    for (count, hosts, seconds) in [(20, 8, 30), (1_000, 128, 5), (10_000, 1_024, 60)] {
        if is_wanted(count) {
            let problem = rack(&mut Rng::with_seed(count as u64), count, hosts);
            let limit = Duration::from_secs(seconds);
            let what = format!("{count} chains on {hosts} servers");
            let _ =
                run(&format!("{what}, 1 s"), &problem, Policy::Improved, Duration::from_secs(1));
            if let Some(plan) = run(&what, &problem, Policy::Improved, limit) {
                changes(&what, &problem, plan);
            }
        }
    }
}
