//! Experiments of two papers on placement, computed from their published input: Lemur's figures 2.2 and 2.3, and
//! Metron's figure 8.
//!
//! `cargo xtask figures lemur` writes `docs/lemur.md`, `docs/metron-placement.md` and their plots. The bench alone prints the pages:
//! `cargo bench -p catena-bench --bench lemur -- [--write FOLDER]`
#![allow(clippy::print_stdout, clippy::print_stderr)]

extern crate catena_bench as bench;
extern crate codegen as catena_codegen;

mod fleets;
#[path = "../paper/mod.rs"]
mod paper;
mod stages;
#[path = "../../../codegen/tests/stages/lemur.rs"]
mod tables;

use std::path::PathBuf;
use std::time::Instant;

use bench::plot::{Groups, Look, Scale, Shape};
use bench::statistics::Spread;
use paper::Page;
use placement::{
    Card, FixedOrder, Kind, Plan, Policy, Problem, Replication, Roomy, Switch, at_real_rates,
    check, lemur, place,
};

const GBPS: f64 = 1e9;

/// A figure of the paper: its file, its letter, its chains, and how many steps of δ it has.
type Figure = (&'static str, char, &'static [usize], usize);

const FIGURES: [Figure; 5] = [
    ("lemur-2-2a.svg", 'a', &[1, 2, 3, 4], 4),
    ("lemur-2-2b.svg", 'b', &[1, 2, 3], 8),
    ("lemur-2-2c.svg", 'c', &[1, 2, 4], 6),
    ("lemur-2-2d.svg", 'd', &[1, 3, 4], 5),
    ("lemur-2-2e.svg", 'e', &[2, 3, 4], 6),
];

const POLICIES: [(Policy, Look); 7] = [
    (Policy::Exact, Look::Synthesised(2)),
    (Policy::Improved, Look::Synthesised(1)),
    (Policy::Lemur, Look::Synthesised(0)),
    (Policy::HwPreferred, Look::Elements(0)),
    (Policy::Greedy, Look::Elements(1)),
    (Policy::SwPreferred, Look::Elements(2)),
    (Policy::MinBounce, Look::Reference(0)),
];

fn plan(problem: &Problem, switch: &dyn Switch, policy: Policy) -> Option<Plan> {
    let plan = place(problem, switch, policy, &mut || true).ok()?;
    let wrong = check(problem, switch, &plan).err();
    assert_eq!(wrong, None, "{policy}");
    Some(plan)
}

/// The sum of all rates in Gb/s.
fn rate(problem: &Problem, policy: Policy) -> Option<f64> {
    plan(problem, &Roomy, policy).map(|plan| plan.rate() / GBPS)
}

fn cell(rate: Option<f64>) -> String {
    rate.map_or("–".into(), |rate| format!("{rate:.2}"))
}

fn main() {
    let mut folder = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--write" => folder = arguments.next().map(PathBuf::from),
            "--bench" => {}
            _ => {
                eprintln!("cannot make sense of `{argument}`");
                return;
            }
        }
    }
    let begun = Instant::now();
    let mut page = Page::beginning(BEGINNING.into());
    comparison(&mut page);
    components(&mut page);
    errors(&mut page);
    devices(&mut page);
    stages::limit(&mut page);
    stages::program(&mut page);
    delays(&mut page);
    additions(&mut page);
    page.finish("lemur.md", folder.clone());
    fleets::page().finish("metron-placement.md", folder);
    eprintln!("{:.1} s", begun.elapsed().as_secs_f64());
}

const BEGINNING: &str = "\
# Lemur's experiments on placement

Lemur (chapter 2 of Jianfeng Wang's doctoral thesis) places chains of network functions on a switch, SmartNICs and the cores of servers so that
each gets its SLO. These are its experiments on placement, with what the thesis states beside what Catena computes. Written by a program; to repeat it:

```sh
cargo xtask figures lemur
```

## Method

Nothing is measured here: rates are predictions from cycles, as Lemur's own are. Lemur's bars are measurements on its testbed, and it prints them
without numbers; what its text states stands beside each table.

- The input is as published: cores of 1.7 GHz, packets of 1,500 bytes, one server of 16 cores, of which 2 take packets apart, and a link
  of 40 Gb/s. Cycles are those of its profiles; branches have equal shares; IPv4Fwd runs on the switch only.
- A chain's least rate is δ times what its slowest function does on one core; its greatest is 100 Gb/s.
- `exact`, `improved` and `lemur` are policies of [`catena place`](howto-place.md), as are the others. Lemur's rules hold: neither NAT nor Limiter
  is replicated, nor what branches or merges.
- Every plan passed the checker, which computes all constraints anew.
- The switch holds all that can run on it, as in Lemur's experiments but one, the stage limit.
";

fn comparison(page: &mut Page) {
    let mut counts = [0; POLICIES.len()];
    let (mut sets, mut missed) = (0, [0; 2]);
    let mut tables = Vec::new();
    for (file, letter, chains, steps) in FIGURES {
        let deltas: Vec<f64> = (1..=steps).map(|step| step as f64 / 2.0).collect();
        let mut rates: Vec<Vec<Option<f64>>> = Vec::new();
        for delta in &deltas {
            let problem = lemur::problem(chains, *delta);
            rates.push(POLICIES.iter().map(|(policy, _)| rate(&problem, *policy)).collect());
        }
        for of_set in &rates {
            sets += 1;
            counts
                .iter_mut()
                .zip(of_set)
                .for_each(|(count, rate)| *count += usize::from(rate.is_some()));
            for (missed, at) in missed.iter_mut().zip([1, 2]) {
                let is_best =
                    of_set[at].zip(of_set[0]).is_some_and(|(own, best)| own > best - 1e-3);
                *missed += usize::from(!is_best);
            }
        }
        tables.push((file, letter, chains, deltas, rates));
    }
    page.put(format_args!("\n## Sets of chains that are feasible (figure 2.2a–e)\n"));
    page.put(format_args!(
        "Of {sets} sets of chains and δ. Lemur states that it and brute force find a plan for all, and the others for 17–76 % of them.\n"
    ));
    let names = POLICIES.iter().map(|(policy, _)| policy.to_string());
    page.head(&["".to_string()].into_iter().chain(names).collect::<Vec<_>>());
    page.row(["feasible".to_string()].into_iter().chain(counts.iter().map(ToString::to_string)));
    let share = |count: &usize| format!("{:.0} %", 100.0 * *count as f64 / f64::from(sets));
    page.row(["share".to_string()].into_iter().chain(counts.iter().map(share)));
    page.put(format_args!(
        "\nLemur's heuristic finds the optimum in all but one (published); here `lemur` misses it in {}, `improved` in {}.",
        missed[1], missed[0]
    ));
    page.put(format_args!(""));
    for (file, letter, chains, deltas, rates) in tables {
        let title = format!("Figure 2.2{letter}: chains {}", words(chains));
        page.put(format_args!("## {title}\n\nGb/s in all; – where there is no plan.\n"));
        let names = POLICIES.iter().map(|(policy, _)| policy.to_string());
        let head = ["δ".to_string(), "least".to_string()].into_iter().chain(names);
        page.head(&head.collect::<Vec<_>>());
        for (delta, rates) in deltas.iter().zip(&rates) {
            let problem = lemur::problem(chains, *delta);
            let least: f64 = problem.chains.iter().map(|chain| chain.slo.min / GBPS).sum();
            let cells = rates.iter().map(|rate| cell(*rate));
            page.row([format!("{delta}"), format!("{least:.1}")].into_iter().chain(cells));
        }
        let bar = |rate: Option<f64>| Shape::Bar(Spread::of([rate.unwrap_or(0.0)]));
        let series = POLICIES.iter().enumerate().map(|(at, (policy, look))| {
            let bars = rates.iter().map(|rates| bar(rates[at])).collect();
            (policy.to_string(), *look, bars)
        });
        let groups = Groups {
            title: title.clone(),
            across: "least rates, in δ".into(),
            groups: deltas.iter().map(|delta| format!("{delta}×")).collect(),
            up: Scale::linear("Gb/s", rates.iter().flatten().flatten().copied()),
            series: series.collect(),
        };
        page.plot(file, &title, groups.draw());
    }
}

fn words(chains: &[usize]) -> String {
    let names: Vec<String> = chains.iter().map(ToString::to_string).collect();
    names.join(", ")
}

fn components(page: &mut Page) {
    page.put(format_args!(
        "## Figure 2.2f: without profiles, without allocation of cores\n\nChains 1, 2, 3. Lemur: without profiles less is gained, and nothing \
         is feasible at higher δ; without allocation δ = 0.5 is all.\n"
    ));
    let policies = [Policy::Lemur, Policy::NoProfile, Policy::NoCoreAllocation];
    let names = policies.iter().map(ToString::to_string);
    page.head(&["δ".to_string()].into_iter().chain(names).collect::<Vec<_>>());
    for delta in [0.5, 1.0, 1.5] {
        let problem = lemur::problem(&[1, 2, 3], delta);
        let cells = policies.iter().map(|policy| cell(rate(&problem, *policy)));
        page.row([format!("{delta}")].into_iter().chain(cells));
    }
}

/// Plans that are made with cycles that are too low by a share, at the true rates.
fn errors(page: &mut Page) {
    page.put(format_args!(
        "\n## Errors in the profiles (§2.6.2)\n\nPlans of the heuristic are made with all cycles too low by a share. *As good* are those that gain \
         as much as with the true cycles; *failing* are those that break a least rate with them. Lemur: the same marginal throughput up to 8 %.\n"
    ));
    page.head(&["error", "as good, of 29", "less is gained", "failing", "which fail"]);
    for percent in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] {
        let (mut same, mut less, mut failing) = (0, 0, Vec::new());
        for (_, letter, chains, steps) in FIGURES {
            for step in 1..=steps {
                let delta = step as f64 / 2.0;
                let right = lemur::problem(chains, delta);
                let mut wrong = right.clone();
                for function in wrong.chains.iter_mut().flat_map(|chain| &mut chain.functions) {
                    function.core_cycles *= 1.0 - f64::from(percent) / 100.0;
                }
                let best = rate(&right, Policy::Lemur);
                let blind = plan(&wrong, &Roomy, Policy::Lemur);
                let real = blind.and_then(|plan| at_real_rates(&right, &plan));
                match (best, real.map(|plan| plan.rate() / GBPS)) {
                    (Some(best), Some(real)) if real > best - 1e-3 => same += 1,
                    (_, Some(_)) => less += 1,
                    (_, None) => failing.push(format!("{letter} {delta}×")),
                }
            }
        }
        page.row([
            format!("{percent} %"),
            same.to_string(),
            less.to_string(),
            failing.len().to_string(),
            failing.join(", "),
        ]);
    }
}

fn devices(page: &mut Page) {
    page.put(format_args!(
        "\n## Figure 2.3a: two servers\n\nChains 1, 2, 3 on servers of 8 cores, of which 2 take packets apart. Lemur: one server gets less than half \
         of two at δ = 0.5, and nothing at 1.5.\n"
    ));
    page.head(&["δ", "one server", "two servers"]);
    for delta in [0.5, 1.0, 1.5] {
        let on = |servers: usize| {
            let hosts = (0..servers).map(|at| lemur::host(&format!("s{at}"), 6)).collect();
            let problem = Problem { hosts, ..lemur::problem(&[1, 2, 3], delta) };
            cell(rate(&problem, Policy::Exact))
        };
        page.row([format!("{delta}"), on(1), on(2)]);
    }
    page.put(format_args!(
        "\n## Figure 2.3b: a SmartNIC\n\nChain 5, whose FastEncrypt runs on a card 10 times as fast as on a core (Lemur: \"more than 10 times\"). \
         Lemur's least rates are not stated; with a card it comes close to 40 Gb/s.\n"
    ));
    page.head(&["δ", "without a card", "with a card"]);
    for delta in [0.5, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0] {
        let with = |card: Option<Card>| {
            let mut problem = lemur::problem(&[5], delta);
            problem.hosts[0].card = card;
            cell(rate(&problem, Policy::Exact))
        };
        page.row([format!("{delta}"), with(None), with(Some(Card { hertz: 1.7e9 }))]);
    }
    page.put(format_args!(
        "\n## Figure 2.3c: an OpenFlow switch\n\nChain 3 with its ACL on an OpenFlow switch, whose tables are in a fixed order (ACL before forwarding) and \
         whose VLAN numbers are the tags, or on cores. LB has no table there.\n"
    ));
    let mut problem = lemur::problem(&[3], 0.0);
    problem.replication = Replication::Lemur;
    let only = |problem: &mut Problem, function: usize| {
        problem.chains[0].functions[function].runs_on = vec![Kind::Core];
    };
    only(&mut problem, 3);
    let switch = FixedOrder {
        tables: vec![vec![None, Some(0), None, None, Some(1)]],
        edges: vec![problem.chains[0].edges.clone()],
        tags: 4094,
    };
    let exact = |problem: &Problem| {
        let plan = plan(problem, &switch, Policy::Exact);
        plan.map(|plan| plan.rate() / GBPS)
    };
    let on_switch = exact(&problem);
    only(&mut problem, 1);
    let on_cores = exact(&problem);
    let two = |rate: Option<f64>| rate.map_or("–".into(), |rate| format!("{rate:.2} Gb/s"));
    page.head(&["", "Lemur, measured", "here, predicted"]);
    page.row(["ACL on OpenFlow".into(), "7.71 Gb/s".into(), two(on_switch)]);
    page.row(["ACL on cores".into(), "0.69 Gb/s".into(), two(on_cores)]);
}

fn delays(page: &mut Page) {
    page.put(format_args!(
        "\n## Delays (§2.6.3)\n\nChains 1 and 4 at δ = 0.5 with 12 us to the server and back. Lemur: over 21 Gb/s within 45 us, 9 within 25, with delays \
         that it does not state.\n"
    ));
    page.head(&["within", "Gb/s"]);
    for delay in [None, Some(60e-6), Some(45e-6), Some(35e-6), Some(25e-6)] {
        let mut problem = lemur::problem(&[1, 4], 0.5);
        let host = &mut problem.hosts[0];
        host.link_delay = 6e-6 - problem.packet_bits / host.link_rate;
        problem.chains.iter_mut().for_each(|chain| chain.slo.delay = delay);
        let within = delay.map_or("any time".into(), |delay| format!("{:.0} us", delay * 1e6));
        page.row([within, cell(rate(&problem, Policy::Exact))]);
    }
}

fn additions(page: &mut Page) {
    page.put(format_args!(
        "\n## What Catena adds\n\nThe optimum in Gb/s at δ = 0.5 and at the last δ of each figure. Tags bring packets to their cores, so that all 16 run \
         functions. NAT replicates, as each replica has ports of its own; so do branches and merges. Each alone, then all.\n"
    ));
    page.head(&["chains", "δ", "Lemur's rules", "16 cores", "NAT", "branches", "all"]);
    for (_, _, chains, steps) in FIGURES {
        for delta in [0.5, steps as f64 / 2.0] {
            let with = |cores: bool, nat: bool, branches: bool| {
                let mut problem = lemur::problem(chains, delta);
                if cores {
                    problem.hosts[0].cores = 16;
                }
                if branches {
                    problem.replication = Replication::Model;
                }
                for function in problem.chains.iter_mut().flat_map(|chain| &mut chain.functions) {
                    function.replicates |= nat && function.name.starts_with("NAT");
                }
                cell(rate(&problem, Policy::Exact))
            };
            page.row([
                words(chains),
                format!("{delta}"),
                with(false, false, false),
                with(true, false, false),
                with(false, true, false),
                with(false, false, true),
                with(true, true, true),
            ]);
        }
    }
}
