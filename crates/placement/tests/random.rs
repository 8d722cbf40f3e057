//! Small random racks: what the solver finds is what plain enumeration finds.

use std::collections::BTreeSet;

use fastrand::Rng;
use placement::{
    Bound, Chain, Edge, Function, Host, Kind, Policy, Problem, Replication, Roomy, Shape, Site,
    Slo, Switch, check, place,
};

/// It holds so many functions, and some not together.
struct Small {
    room: usize,
    apart: [(usize, usize); 2],
}

impl Switch for Small {
    fn fits(&self, placed: &[(usize, usize)]) -> Result<(), String> {
        let both = self.apart.iter().all(|of| placed.contains(of));
        match placed.len() > self.room || both {
            true => Err("it is full".into()),
            false => Ok(()),
        }
    }
}

fn chain(random: &mut Rng, name: usize) -> Chain {
    let count = random.usize(1..5);
    let function = |random: &mut Rng, at: usize| {
        let on = [&[Kind::Switch][..], &[Kind::Core], &[Kind::Switch, Kind::Core]];
        Function {
            name: format!("f{at}"),
            runs_on: random.choice(on).unwrap_or(&[Kind::Core]).to_vec(),
            core_cycles: random.u32(100..5000).into(),
            card_cycles: 0.0,
            replicates: random.bool(),
            entries: 0,
            flows: 0,
            waits: 0.0,
        }
    };
    let functions: Vec<Function> = (0..count).map(|at| function(random, at)).collect();
    let mut edges: Vec<Edge> = Vec::new();
    for to in 1..count {
        edges.push(Edge { from: random.usize(..to), to, share: 1.0 });
    }
    // A diamond, sometimes.
    if count == 4 && random.bool() {
        edges = [(0, 1), (0, 2), (1, 3), (2, 3)]
            .map(|(from, to)| Edge { from, to, share: 1.0 })
            .to_vec();
    }
    for from in 0..count {
        let out = edges.iter().filter(|edge| edge.from == from).count();
        edges.iter_mut().filter(|edge| edge.from == from).for_each(|e| e.share = 1.0 / out as f64);
    }
    let min = f64::from(random.u32(0..3)) * 1e9;
    let max = min + f64::from(random.u32(0..20)) * 1e9;
    let delay = random.bool().then(|| f64::from(random.u32(5..40)) * 1e-6);
    let price = f64::from(random.u32(1..4));
    Chain {
        name: format!("c{name}"),
        functions,
        edges,
        slo: Slo { min, max, delay, price },
        wishes: Vec::new(),
    }
}

/// All assignments of each place to one of some values.
fn all<T: Clone>(places: &[Vec<T>]) -> Vec<Vec<T>> {
    let mut all = vec![Vec::new()];
    for values in places {
        let with = |one: &Vec<T>| {
            values
                .iter()
                .map(|value| [one.as_slice(), std::slice::from_ref(value)].concat())
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// A chain's placements: the rate that its cores allow, cores, passes of the link in each direction, what is on the switch.
type Placement = (f64, usize, [f64; 2], BTreeSet<usize>);

fn placements(problem: &Problem, chain: &Chain) -> Vec<Placement> {
    let host = &problem.hosts[0];
    let count = chain.functions.len();
    let mut share = vec![0.0; count];
    share[0] = 1.0;
    for to in 1..count {
        share[to] =
            chain.edges.iter().filter(|e| e.to == to).map(|e| share[e.from] * e.share).sum();
    }
    let mut found = Vec::new();
    for kinds in all(&chain.functions.iter().map(|f| f.runs_on.clone()).collect::<Vec<_>>()) {
        let on = |at: usize| kinds[at] == Kind::Core;
        let is_last = |at: usize| !chain.edges.iter().any(|e| e.from == at);
        let mut passes = [if on(0) { 1.0 } else { 0.0 }, 0.0];
        for edge in &chain.edges {
            let part = share[edge.from] * edge.share;
            if !on(edge.from) && on(edge.to) {
                passes[0] += part
            }
            if on(edge.from) && !on(edge.to) {
                passes[1] += part
            }
        }
        passes[1] +=
            (0..count).filter(|&at| is_last(at) && on(at)).map(|at| share[at]).sum::<f64>();
        // Each packet has a tag there.
        let tagged = (problem.packet_bits + problem.tag_bits) / problem.packet_bits;
        let passes = passes.map(|often| often * tagged);
        // The longest path, by all of them.
        let hop = host.link_delay + (problem.packet_bits + problem.tag_bits) / host.link_rate;
        let mut paths = vec![vec![0]];
        let mut longest = 0.0_f64;
        while let Some(path) = paths.pop() {
            let last = *path.last().unwrap();
            if is_last(last) {
                let ends = [on(0), on(last)].iter().filter(|end| **end).count();
                let turns = path.windows(2).filter(|w| on(w[0]) != on(w[1])).count();
                let run =
                    path.iter().filter(|at| on(**at)).map(|at| chain.functions[*at].core_cycles);
                longest = longest.max((ends + turns) as f64 * hop + run.sum::<f64>() / host.hertz);
            }
            let next = chain.edges.iter().filter(|e| e.from == last);
            paths.extend(next.map(|e| [path.as_slice(), &[e.to]].concat()));
        }
        if chain.slo.delay.is_some_and(|delay| longest > delay) {
            continue;
        }
        // Functions in one group have the same color.
        let mut color: Vec<usize> = (0..count).collect();
        for _ in 0..count {
            for edge in &chain.edges {
                if on(edge.from) && on(edge.to) {
                    let least = color[edge.from].min(color[edge.to]);
                    color[edge.from] = least;
                    color[edge.to] = least;
                }
            }
        }
        let groups: BTreeSet<usize> = (0..count).filter(|&at| on(at)).map(|at| color[at]).collect();
        let cores =
            all(&groups.iter().map(|_| (1..=host.cores).collect()).collect::<Vec<Vec<usize>>>());
        for cores in cores {
            let mut rate = chain.slo.max;
            let mut is_possible = true;
            for (group, cores) in groups.iter().zip(&cores) {
                let members = || (0..count).filter(|&at| on(at) && color[at] == *group);
                let cycles: f64 =
                    members().map(|at| share[at] * chain.functions[at].core_cycles).sum();
                rate = rate.min(*cores as f64 * host.hertz * problem.packet_bits / cycles);
                let forks = |at: usize| {
                    chain.edges.iter().filter(|e| e.from == at).count() > 1
                        || chain.edges.iter().filter(|e| e.to == at).count() > 1
                };
                let replicates = members().all(|at| {
                    chain.functions[at].replicates
                        && !(problem.replication == Replication::Lemur && forks(at))
                });
                is_possible &= *cores == 1 || replicates;
            }
            if is_possible && rate >= chain.slo.min {
                let there = (0..count).filter(|&at| !on(at)).collect();
                found.push((rate, cores.iter().sum(), passes, there));
            }
        }
    }
    found
}

/// The best rates of two chains over a link, at the corners of what is possible.
fn most(problem: &Problem, chosen: &[Placement]) -> Option<f64> {
    let link = problem.hosts[0].link_rate;
    let slo = |at: usize| problem.chains[at].slo;
    let holds = |rates: &[f64]| {
        let inside = rates
            .iter()
            .enumerate()
            .all(|(at, rate)| *rate >= slo(at).min - 1.0 && *rate <= chosen[at].0 + 1.0);
        inside
            && (0..2).all(|direction| {
                rates.iter().zip(chosen).map(|(r, c)| r * c.2[direction]).sum::<f64>() <= link + 1.0
            })
    };
    let ends = |at: usize| {
        let mut ends = vec![slo(at).min, chosen[at].0];
        if chosen.len() == 1 {
            ends.extend(
                (0..2)
                    .filter(|direction| chosen[0].2[*direction] > 0.0)
                    .map(|direction| link / chosen[0].2[direction]),
            );
        }
        ends
    };
    let mut corners: Vec<Vec<f64>> = all(&(0..chosen.len()).map(ends).collect::<Vec<_>>());
    if let [a, b] = chosen {
        for direction in 0..2 {
            for end in [slo(0).min, a.0] {
                corners.push(vec![end, (link - end * a.2[direction]) / b.2[direction]]);
            }
            for end in [slo(1).min, b.0] {
                corners.push(vec![(link - end * b.2[direction]) / a.2[direction], end]);
            }
        }
        let det = a.2[0] * b.2[1] - a.2[1] * b.2[0];
        corners.push(vec![link * (b.2[1] - b.2[0]) / det, link * (a.2[0] - a.2[1]) / det]);
    }
    let gain = |rates: &Vec<f64>| {
        rates.iter().enumerate().map(|(at, r)| slo(at).price * (r - slo(at).min)).sum::<f64>()
    };
    corners
        .iter()
        .filter(|rates| rates.iter().all(|r| r.is_finite()) && holds(rates))
        .map(gain)
        .reduce(f64::max)
}

/// The best of all plans on one host.
fn enumerated(problem: &Problem, switch: &dyn Switch) -> Option<f64> {
    let mut best: Option<f64> = None;
    let per_chain: Vec<Vec<Placement>> =
        problem.chains.iter().map(|chain| placements(problem, chain)).collect();
    for chosen in all(&per_chain) {
        let cores: usize = chosen.iter().map(|of| of.1).sum();
        let placed: Vec<(usize, usize)> = chosen
            .iter()
            .enumerate()
            .flat_map(|(at, of)| of.3.iter().map(move |function| (at, *function)))
            .collect();
        if cores <= problem.hosts[0].cores
            && switch.fits(&placed).is_ok()
            && let Some(gain) = most(problem, &chosen)
        {
            best = Some(best.map_or(gain, |best| best.max(gain)));
        }
    }
    best
}

/// On two hosts there is at least what each chain on one of them gains, and never more than is said.
#[test]
fn two_hosts_are_no_worse_than_each_alone() {
    let mut random = Rng::with_seed(11);
    let mut more = 0;
    for round in 0..200 {
        let chains: Vec<Chain> = (0..2).map(|at| chain(&mut random, at)).collect();
        let host = |random: &mut Rng, name: &str| Host {
            name: name.into(),
            cores: random.usize(1..5),
            hertz: 2e9,
            link_rate: f64::from(random.u32(2..40)) * 1e9,
            link_delay: 1e-6,
            card: None,
        };
        let mut hosts = vec![host(&mut random, "a"), host(&mut random, "b")];
        if random.bool() {
            hosts[1] = Host { name: "b".into(), ..hosts[0].clone() };
        }
        let replication = if random.bool() { Replication::Lemur } else { Replication::Model };
        let problem = Problem {
            chains,
            hosts,
            packet_bits: 8000.0,
            tag_bits: 800.0,
            replication,
            headroom: 0.0,
        };
        let alone = |chains: &[usize], host: usize| {
            let chains = chains.iter().map(|at| problem.chains[*at].clone()).collect::<Vec<_>>();
            let hosts = vec![problem.hosts[host].clone()];
            match chains.is_empty() {
                true => Some(0.0),
                false => enumerated(&Problem { chains, hosts, ..problem.clone() }, &Roomy),
            }
        };
        let splits: [[&[usize]; 2]; 4] =
            [[&[0, 1], &[]], [&[], &[0, 1]], [&[0], &[1]], [&[1], &[0]]];
        let sums = splits.iter().filter_map(|[a, b]| Some(alone(a, 0)? + alone(b, 1)?));
        let apart = sums.reduce(f64::max);
        let found = place(&problem, &Roomy, Policy::Exact, &mut || true).ok();
        let gain = found.as_ref().map(|plan| {
            assert_eq!(check(&problem, &Roomy, plan).err(), None, "round {round}");
            let of = plan.chains.iter().zip(&problem.chains);
            of.map(|(p, c)| c.slo.price * (p.rate - c.slo.min)).sum::<f64>()
        });
        if let Some(apart) = apart {
            let gain = gain.expect("there is a plan");
            let said = match found.map(|plan| plan.bound) {
                Some(Bound::AtMost(most)) => most,
                _ => gain,
            };
            assert!(said >= apart * (1.0 - 1e-6) - 1e4, "round {round}: {said} and {apart}");
            assert!(said >= gain * (1.0 - 1e-6), "round {round}: {said} and {gain}");
            more += usize::from(gain > apart * (1.0 + 1e-6));
        }
    }
    assert!(more > 10, "{more} gain by both");
}

#[test]
fn exact_is_what_enumeration_finds() {
    let mut random = Rng::with_seed(7);
    let (mut feasible, mut tight) = (0, 0);
    for round in 0..400 {
        let chains: Vec<Chain> = (0..random.usize(1..3)).map(|at| chain(&mut random, at)).collect();
        let host = Host {
            name: "s".into(),
            cores: random.usize(1..6),
            hertz: 2e9,
            link_rate: f64::from(random.u32(2..40)) * 1e9,
            link_delay: 1e-6,
            card: None,
        };
        let replication = if random.bool() { Replication::Lemur } else { Replication::Model };
        let problem = Problem {
            chains,
            hosts: vec![host],
            packet_bits: 8000.0,
            tag_bits: 800.0,
            replication,
            headroom: 0.0,
        };
        let function = |random: &mut Rng| {
            let chain = random.usize(..problem.chains.len());
            (chain, random.usize(..problem.chains[chain].functions.len()))
        };
        let apart = [function(&mut random), function(&mut random)];
        let switch = Small { room: random.usize(0..6), apart };
        let best = enumerated(&problem, &switch);
        let found = place(&problem, &switch, Policy::Exact, &mut || true).ok();
        let gain = found.as_ref().map(|plan| {
            assert_eq!(plan.bound, Bound::Best, "round {round}");
            assert_eq!(check(&problem, &switch, plan).err(), None, "round {round}");
            // No core could be taken away.
            for (chain, placed) in problem.chains.iter().zip(&plan.chains) {
                let shape = Shape::of(&problem, chain, placed.sites.clone());
                let cores: Vec<usize> = placed.cores.iter().map(|on| on[&0]).collect();
                for group in (0..cores.len()).filter(|group| cores[*group] > 1) {
                    let mut fewer = cores.clone();
                    fewer[group] -= 1;
                    assert!(shape.rate(&problem, chain, &fewer) < placed.rate, "round {round}");
                }
            }
            plan.chains
                .iter()
                .zip(&problem.chains)
                .map(|(p, c)| c.slo.price * (p.rate - c.slo.min))
                .sum::<f64>()
        });
        match (best, gain) {
            (Some(best), Some(gain)) => {
                assert!((best - gain).abs() < 1e4 + best * 1e-6, "round {round}: {best} and {gain}")
            }
            (best, gain) => assert_eq!(best, gain, "round {round}"),
        }
        // What other policies find is never better, and holds, too.
        for (_, policy) in Policy::ALL {
            if let Ok(plan) = place(&problem, &switch, policy, &mut || true) {
                assert_eq!(check(&problem, &switch, &plan).err(), None, "round {round}: {policy}");
                let all = plan
                    .chains
                    .iter()
                    .zip(&problem.chains)
                    .map(|(p, c)| c.slo.price * (p.rate - c.slo.min))
                    .sum::<f64>();
                assert!(
                    gain.is_some_and(|gain| all <= gain * (1.0 + 1e-6) + 1e4),
                    "round {round}: {policy}"
                );
            }
        }
        feasible += usize::from(gain.is_some());
        tight += usize::from(
            gain.is_some() && place(&problem, &Roomy, Policy::Exact, &mut || true).ok() != found,
        );
    }
    assert!(feasible > 100 && tight > 10, "{feasible} feasible, {tight} by the switch's grace");
}

#[test]
fn what_is_wrong_is_named() {
    let mut random = Rng::with_seed(1);
    let mut right = chain(&mut random, 0);
    right.slo = Slo { min: 2e9, max: 1e9, delay: Some(0.0), price: 0.0 };
    right.functions[0].runs_on.clear();
    let found = right.faults().join("\n");
    for expected in
        ["least rate is above", "no time above 0", "price is not above 0", "nothing can run f0"]
    {
        assert!(found.contains(expected), "{expected}: {found}");
    }
    assert_eq!(Site::Card(3).host(), Some(3));
}
