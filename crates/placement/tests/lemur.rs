//! Lemur's experiments with its published input (§2.6.1 and 2.6.2): chains of table 2.2 with the cycles of its
//! profiles, one server behind one switch.

use placement::{
    Bound, Chain, Edge, Function, Host, Kind, Plan, Policy, Problem, Replication, Roomy, Site, Slo,
    check, place,
};

const GBPS: f64 = 1e9;

/// Cycles on a core, what else can run it, and whether several cores can.
fn function(class: &str, name: String) -> Function {
    let (core_cycles, on, replicates): (f64, &[Kind], bool) = match class {
        "BPF" => (976.0, &[Kind::Switch, Kind::Core], true),
        "ACL" => (985.0, &[Kind::Switch, Kind::Core], true),
        "Limiter" => (20.0, &[Kind::Core], false),
        "UrlFilter" => (6_994.0, &[Kind::Core], true),
        "Tunnel" => (289.0, &[Kind::Switch, Kind::Core], true),
        "Detunnel" => (230.0, &[Kind::Switch, Kind::Core], true),
        "Encrypt" => (9_123.0, &[Kind::Core], true),
        "LB" => (564.0, &[Kind::Switch, Kind::Core], true),
        "NAT" => (519.0, &[Kind::Switch, Kind::Core], false),
        "Dedup" => (33_186.0, &[Kind::Core], true),
        "Monitor" => (310.0, &[Kind::Core], true),
        "IPv4Fwd" => (0.0, &[Kind::Switch], true),
        _ => panic!("no function {class}"),
    };
    Function { name, runs_on: on.to_vec(), core_cycles, card_cycles: 0.0, replicates }
}

fn chain(number: usize, delta: f64) -> Chain {
    let (classes, branches): (&[&str], Vec<(usize, usize, f64)>) = match number {
        1 => (
            &["BPF", "ACL", "Limiter", "BPF", "UrlFilter", "Detunnel", "Encrypt", "IPv4Fwd"],
            vec![(0, 1, 0.5), (0, 5, 0.5), (1, 2, 1.0), (2, 3, 1.0), (3, 4, 0.5), (3, 5, 0.5)]
                .into_iter()
                .chain([(4, 5, 1.0), (5, 6, 1.0), (6, 7, 1.0)])
                .collect(),
        ),
        2 => (
            &["Encrypt", "LB", "NAT", "NAT", "NAT", "IPv4Fwd"],
            [(0, 1, 1.0)]
                .into_iter()
                .chain((2..5).flat_map(|nat| [(1, nat, 1.0 / 3.0), (nat, 5, 1.0)]))
                .collect(),
        ),
        3 => (
            &["Dedup", "ACL", "Limiter", "LB", "IPv4Fwd"],
            (0..4).map(|at| (at, at + 1, 1.0)).collect(),
        ),
        4 => (
            &[
                "Dedup", "ACL", "Monitor", "Tunnel", "BPF", "LB", "Limiter", "ACL", "LB",
                "Limiter", "ACL", "LB", "Limiter", "ACL", "IPv4Fwd",
            ],
            (0..4)
                .map(|at| (at, at + 1, 1.0))
                .chain([5, 8, 11].into_iter().flat_map(|at| {
                    [
                        (4, at, 1.0 / 3.0),
                        (at, at + 1, 1.0),
                        (at + 1, at + 2, 1.0),
                        (at + 2, 14, 1.0),
                    ]
                }))
                .collect(),
        ),
        _ => panic!("no chain {number}"),
    };
    let functions: Vec<Function> = classes
        .iter()
        .enumerate()
        .map(|(at, class)| function(class, format!("{class}{at}")))
        .collect();
    let slowest = functions.iter().map(|of| of.core_cycles).fold(0.0, f64::max);
    Chain {
        name: format!("chain {number}"),
        edges: branches.into_iter().map(|(from, to, share)| Edge { from, to, share }).collect(),
        // δ times what the slowest function does on one core.
        slo: Slo {
            min: delta * 1.7e9 * PACKET / slowest,
            max: 100.0 * GBPS,
            delay: None,
            price: 1.0,
        },
        functions,
    }
}

const PACKET: f64 = 12_000.0;

fn problem(chains: &[usize], delta: f64) -> Problem {
    Problem {
        chains: chains.iter().map(|number| chain(*number, delta)).collect(),
        hosts: vec![host("s1", 14)],
        packet_bits: PACKET,
        replication: Replication::Lemur,
        headroom: 0.0,
    }
}

fn host(name: &str, cores: usize) -> Host {
    Host {
        name: name.into(),
        cores,
        hertz: 1.7e9,
        link_rate: 40.0 * GBPS,
        link_delay: 0.0,
        card: None,
    }
}

fn plan(problem: &Problem, policy: Policy) -> Option<Plan> {
    let plan = place(problem, &Roomy, policy, &mut || true).ok()?;
    assert_eq!(check(problem, &Roomy, &plan).err(), None, "{policy}");
    Some(plan)
}

/// All sets of figure 2.2, (a) to (e).
fn sets() -> Vec<(Vec<usize>, f64)> {
    let last: [(&[usize], usize); 5] =
        [(&[1, 2, 3, 4], 4), (&[1, 2, 3], 8), (&[1, 2, 4], 6), (&[1, 3, 4], 5), (&[2, 3, 4], 6)];
    let steps = |(chains, steps): (&[usize], usize)| {
        let chains = chains.to_vec();
        (1..=steps).map(move |step| (chains.clone(), step as f64 / 2.0))
    };
    last.into_iter().flat_map(steps).collect()
}

#[test]
fn as_many_sets_are_feasible_as_published() {
    let sets = sets();
    assert_eq!(sets.len(), 29);
    let feasible = |policy| {
        sets.iter()
            .filter(|(chains, delta)| plan(&problem(chains, *delta), policy).is_some())
            .count()
    };
    for (policy, expected) in [
        (Policy::Exact, 29),
        (Policy::Lemur, 29),
        (Policy::HwPreferred, 22),
        (Policy::Greedy, 22),
        (Policy::SwPreferred, 5),
        (Policy::MinBounce, 5),
    ] {
        assert_eq!(feasible(policy), expected, "{policy}");
    }
}

#[test]
fn optima_are_the_published_and_the_heuristic_finds_them() {
    let mut missed = Vec::new();
    for (chains, delta) in sets() {
        let problem = problem(&chains, delta);
        let exact = plan(&problem, Policy::Exact).expect("it is feasible");
        assert_eq!(exact.bound, Bound::Best);
        let heuristic = plan(&problem, Policy::Lemur).expect("it is feasible");
        let improved = plan(&problem, Policy::Improved).expect("it is feasible");
        let close = |plan: &Plan| plan.rate() > exact.rate() * (1.0 - 1e-6);
        assert!(close(&improved), "{chains:?} at {delta}: {} of {}", improved.rate(), exact.rate());
        if !close(&heuristic) {
            missed.push((chains, delta, heuristic.rate() / exact.rate()));
        }
    }
    assert!(missed.len() <= 1, "{missed:?}");
}

#[test]
fn rates_are_the_published() {
    for (chains, delta, expected) in [
        (&[1, 2, 3, 4][..], 0.5, 27.5),
        (&[1, 2, 3], 0.5, 29.2),
        (&[1, 2, 4], 0.5, 29.2),
        (&[1, 3, 4], 0.5, 21.3),
        (&[2, 3, 4], 0.5, 28.0),
        (&[1, 2, 3, 4], 2.0, 18.1),
        (&[1, 2, 3], 4.0, 20.4),
        (&[1, 2, 4], 3.0, 22.0),
        (&[1, 3, 4], 2.5, 13.3),
        (&[2, 3, 4], 3.0, 17.1),
    ] {
        let rate = plan(&problem(chains, delta), Policy::Exact).expect("it is feasible").rate();
        assert!((rate / GBPS - expected).abs() < 0.06, "{chains:?} at {delta}: {rate}");
    }
    // Exact goes on to 4, 3 and 4.
    for (chains, last) in [(&[1, 2, 4][..], 4.0), (&[1, 3, 4], 3.0), (&[2, 3, 4], 4.0)] {
        assert!(plan(&problem(chains, last), Policy::Exact).is_some(), "{chains:?}");
        assert!(plan(&problem(chains, last + 0.5), Policy::Exact).is_none(), "{chains:?}");
    }
}

#[test]
fn without_profiles_or_cores_less_is_possible() {
    let rates = |policy| {
        [0.5, 1.0, 1.5].map(|delta| {
            let plan = plan(&problem(&[1, 2, 3], delta), policy);
            plan.map(|plan| (plan.rate() / GBPS * 10.0).round() / 10.0)
        })
    };
    assert_eq!(rates(Policy::NoProfile), [Some(25.2), None, None]);
    assert_eq!(rates(Policy::NoCoreAllocation), [Some(5.1), Some(5.1), None]);
}

#[test]
fn two_servers_do_more_than_one() {
    let rates = |hosts: &[&str]| {
        [0.5, 1.0, 1.5].map(|delta| {
            let mut problem = problem(&[1, 2, 3], delta);
            problem.hosts = hosts.iter().map(|name| host(name, 6)).collect();
            let plan = plan(&problem, Policy::Exact);
            plan.map(|plan| (plan.rate() / GBPS * 10.0).round() / 10.0)
        })
    };
    assert_eq!(rates(&["s1"]), [Some(11.3), Some(7.3), None]);
    // All replicas of a group are on one host; if they were on both, 24.7 were possible at first.
    assert_eq!(rates(&["s1", "s2"]), [Some(23.0), Some(20.7), Some(19.1)]);
}

/// A plan with any one number wrong is found out.
#[test]
fn the_checker_finds_what_is_wrong() {
    let problem = problem(&[1, 2, 3, 4], 0.5);
    let right = plan(&problem, Policy::Exact).expect("it is feasible");
    let wrong = |change: &dyn Fn(&mut Plan), expected: &str| {
        let mut plan = right.clone();
        change(&mut plan);
        let found = check(&problem, &Roomy, &plan).expect_err(expected);
        assert!(found.iter().any(|why| why.contains(expected)), "{expected}: {found:?}");
    };
    wrong(&|plan| plan.chains[0].rate *= 1.01, "cycles of");
    wrong(&|plan| plan.chains[2].rate *= 0.01, "chain chain 3: least rate");
    wrong(&|plan| plan.chains[3].cores[0] += 1, "s1: cores");
    wrong(&|plan| plan.chains[3].cores.push(1), "groups of functions");
    wrong(&|plan| plan.chains[0].cores[0] = 0, "groups of functions");
    wrong(&|plan| plan.chains[1].sites[0] = Site::Switch, "does not run on a switch");
    wrong(&|plan| plan.chains[1].sites[0] = Site::Core(1), "is on no host");
    wrong(&|plan| drop(plan.chains.pop()), "the plan has 3 chains");
}

#[test]
fn delays_cost_rate() {
    for (delay, expected) in [(None, 22.9), (Some(45e-6), 13.9), (Some(35e-6), 9.6)] {
        let mut problem = problem(&[1, 4], 0.5);
        // 12 us to the server and back.
        problem.hosts[0].link_delay = 6e-6 - PACKET / problem.hosts[0].link_rate;
        problem.chains.iter_mut().for_each(|chain| chain.slo.delay = delay);
        let rate = plan(&problem, Policy::Exact).expect("it is feasible").rate() / GBPS;
        assert!((rate - expected).abs() < 0.06, "{delay:?}: {rate}");
    }
}
