//! Metron's figure 8: chains on one of two servers that are asked for their loads.

use std::time::Instant;

use bench::plot::{Groups, Look, Scale, Shape};
use bench::statistics::Spread;
use placement::{
    Chain, Edge, Function, Kind, Problem, Replication, Roomy, Slo, check, lemur, two_choices,
};

use crate::paper::{Page, thousands};

/// A chain whose stateless part the switch runs, and whose state takes one core.
fn chain(number: usize) -> Chain {
    let function = |name: &str, on: Kind| Function {
        name: name.into(),
        runs_on: vec![on],
        core_cycles: 1_000.0,
        card_cycles: 0.0,
        replicates: true,
        entries: 0,
        flows: 0,
        waits: 0.0,
    };
    Chain {
        name: format!("c{number}"),
        functions: vec![function("stateless", Kind::Switch), function("stateful", Kind::Core)],
        edges: vec![Edge { from: 0, to: 1, share: 1.0 }],
        slo: Slo { min: 1e6, max: 1e9, delay: None, price: 1.0 },
        wishes: Vec::new(),
    }
}

const SERVERS: [usize; 3] = [16, 128, 1_024];
const CHAINS: [usize; 3] = [200, 1_000, 10_000];
const ROUNDS: u64 = 15;

pub(crate) fn page() -> Page {
    let mut page = Page::beginning(BEGINNING.into());
    page.head(&[
        "servers",
        "chains",
        "uniform",
        "uniform or next to it",
        "loads asked for",
        "of everybody",
        "us a chain",
    ]);
    let mut near: Vec<[Spread; 2]> = Vec::new();
    let mut names = Vec::new();
    for servers in SERVERS {
        for chains in CHAINS {
            let (mut uniform, mut next, mut asked, mut took) = (vec![], vec![], 0, vec![]);
            let problem = Problem {
                chains: (0..chains).map(chain).collect(),
                hosts: (0..servers)
                    .map(|at| {
                        let mut host = lemur::host(&format!("s{at}"), 2 * chains / servers + 8);
                        host.link_rate = 1e12;
                        host
                    })
                    .collect(),
                replication: Replication::Model,
                ..lemur::problem(&[], 1.0)
            };
            for seed in 0..ROUNDS {
                let begun = Instant::now();
                let found = two_choices(&problem, &Roomy, seed + 1).expect("there is room");
                took.push(begun.elapsed().as_secs_f64() * 1e6 / chains as f64);
                assert_eq!(check(&problem, &Roomy, &found.plan).err(), None);
                asked = found.loads;
                let mut cores = vec![0_usize; servers];
                let on = found.plan.chains.iter().flat_map(|placed| &placed.cores).flatten();
                on.for_each(|(host, of)| cores[*host] += of);
                let equal = (chains as f64 / servers as f64).round() as usize;
                let share = |off: usize| {
                    let near = cores.iter().filter(|of| of.abs_diff(equal) <= off);
                    100.0 * near.count() as f64 / servers as f64
                };
                uniform.push(share(0));
                next.push(share(1));
            }
            let (uniform, next) = (Spread::of(uniform), Spread::of(next));
            page.row([
                thousands(servers as u64),
                thousands(chains as u64),
                format!("{:.0} %", uniform.median),
                format!("{:.0} %", next.median),
                thousands(asked as u64),
                thousands((chains * servers) as u64),
                format!("{:.1}", Spread::of(took).median),
            ]);
            names.push(format!("{servers} / {chains}"));
            near.push([uniform, next]);
        }
    }
    let bars = |at: usize| near.iter().map(|of| Shape::Bar(of[at])).collect();
    let groups = Groups {
        title: "Metron's figure 8a: how near to uniform".into(),
        across: "servers / chains".into(),
        groups: names,
        up: Scale::linear("servers, %", [100.0]),
        series: vec![
            ("uniform".into(), Look::Synthesised(2), bars(0)),
            ("uniform or next to it".into(), Look::Synthesised(0), bars(1)),
        ],
    };
    page.plot("metron-8a.svg", "Metron's figure 8a", groups.draw());
    page
}

const BEGINNING: &str = "\
# Metron's figure 8: two choices

Metron (Katsikas et al., NSDI 2018, §2.3.3 and 3.1.3) asks two servers at random for their loads and gives a chain to the less loaded. This
repeats its study of how near to uniform that comes. Written by a program; to repeat it: `cargo xtask figures lemur`.

Each chain takes one core. A server is *uniform* if it has as many chains as an equal share rounds to; *next to it* is one more or
less. Medians of 15 rounds with other random numbers. Metron states that about 40 % of decisions are uniform, whatever the size, and about 90 %
uniform or nearly so. An answer's size is not compared: what is counted is how many servers are asked, where asking everybody takes a question to each server
for each chain. Times are those of a machine with other work.

";
