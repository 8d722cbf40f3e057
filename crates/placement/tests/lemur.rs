//! Lemur's experiments with its published input (§2.6.1 and 2.6.2): chains of table 2.2 with the cycles of its
//! profiles, one server behind one switch.

use placement::lemur::{self, host, problem};
use placement::{
    Bound, Demand, Kind, Plan, Policy, Problem, Roomy, Site, Wish, check, explain, place,
};

const GBPS: f64 = 1e9;

const PACKET: f64 = 12_000.0;

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
    // Replicas of a group are on both, where that helps.
    assert_eq!(rates(&["s1", "s2"]), [Some(24.7), Some(20.7), Some(19.1)]);
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
    wrong(&|plan| *plan.chains[3].cores[0].entry(0).or_default() += 1, "s1: cores");
    wrong(&|plan| plan.chains[3].cores.push([(0, 1)].into()), "groups of functions");
    wrong(&|plan| plan.chains[0].cores[0].clear(), "groups of functions");
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

/// However little time there is, there is a plan if any policy finds one, and it says how good it is at worst.
#[test]
fn there_is_a_plan_without_time() {
    for (chains, delta) in sets() {
        let problem = problem(&chains, delta);
        let best = plan(&problem, Policy::Exact).expect("it is feasible").rate();
        for policy in [Policy::Lemur, Policy::Improved, Policy::Exact] {
            for asked in [0, 1, 10, 100] {
                let mut left = asked;
                let mut go_on = || {
                    left -= i32::from(left > 0);
                    left > 0
                };
                let plan = place(&problem, &Roomy, policy, &mut go_on)
                    .unwrap_or_else(|why| panic!("{chains:?} at {delta}: {}", why.words(&problem)));
                assert_eq!(check(&problem, &Roomy, &plan).err(), None);
                assert!(plan.rate() <= best * (1.0 + 1e-6));
                let least: f64 = problem.chains.iter().map(|chain| chain.slo.min).sum();
                match plan.bound {
                    Bound::Best => assert!(plan.rate() >= best * (1.0 - 1e-6)),
                    Bound::AtMost(most) => assert!(most + least >= best * (1.0 - 1e-6)),
                    Bound::Unknown => assert_eq!(policy, Policy::Lemur),
                }
            }
        }
    }
}

/// Many chains on many servers, with a plan within a hundredth of what no plan exceeds.
#[test]
fn many_chains_find_a_place() {
    let chain = |at: usize| {
        let mut chain = lemur::chain(at % 5 + 1, 0.2);
        chain.name = format!("c{at}");
        (chain.slo.max, chain.slo.price) = (10.0 * GBPS, (at % 3 + 1) as f64);
        chain
    };
    let many = Problem {
        chains: (0..100).map(chain).collect(),
        hosts: (0..12).map(|at| host(&format!("s{at}"), 16)).collect(),
        ..problem(&[], 1.0)
    };
    let plan = plan(&many, Policy::Improved).expect("there is room");
    let gained = many.chains.iter().zip(&plan.chains);
    let gained: f64 =
        gained.map(|(chain, placed)| chain.slo.price * (placed.rate - chain.slo.min)).sum();
    match plan.bound {
        Bound::AtMost(most) => assert!(gained > 0.99 * most, "{gained} of {most}"),
        bound => assert_eq!(bound, Bound::Best),
    }
}

/// What cannot be placed comes with demands of which none is there in vain, and remedies that suffice.
#[test]
fn what_cannot_be_placed_is_explained() {
    let mut problem = problem(&[1, 3, 4], 3.5);
    problem.chains[0].wishes.push(Wish::Never(0, vec![Kind::Switch]));
    let found = explain(&problem, &Roomy, &mut || true).expect("it is not feasible");
    assert!(found.is_proven, "{}", found.words(&problem));
    let has_plan = |problem: &Problem| plan(problem, Policy::Exact).is_some();
    let drop = |problem: &mut Problem, demand: &Demand| match *demand {
        Demand::Least(chain) => problem.chains[chain].slo.min = 0.0,
        Demand::Delay(chain) => problem.chains[chain].slo.delay = None,
        Demand::Wish(chain, wish) => std::mem::drop(problem.chains[chain].wishes.remove(wish)),
    };
    let mut only = problem.clone();
    for chain in &mut only.chains {
        (chain.slo.min, chain.wishes) = (0.0, Vec::new());
    }
    for demand in &found.conflict {
        match *demand {
            Demand::Least(chain) => only.chains[chain].slo.min = problem.chains[chain].slo.min,
            Demand::Delay(_) => {}
            Demand::Wish(chain, _) => {
                only.chains[chain].wishes = problem.chains[chain].wishes.clone();
            }
        }
    }
    assert!(!has_plan(&only), "{}", found.words(&problem));
    for demand in &found.conflict {
        let mut fewer = only.clone();
        drop(&mut fewer, demand);
        assert!(has_plan(&fewer), "{}", demand.words(&problem));
    }
    let words = found.words(&problem);
    for expected in ["chain chain 4: min", "-> ", "more core"] {
        assert!(words.contains(expected), "{words}");
    }
    let feasible = lemur::problem(&[1, 3, 4], 2.5);
    assert_eq!(explain(&feasible, &Roomy, &mut || true), None);
}

/// Where no change suffices alone, two do, and less of either does not.
#[test]
fn what_takes_two_changes_is_explained() {
    let mut problem = problem(&[1, 3], 0.5);
    for chain in &mut problem.chains {
        chain.slo.min = 60.0 * GBPS;
    }
    let found = explain(&problem, &Roomy, &mut || true).expect("it is not feasible");
    let words = found.words(&problem);
    assert_eq!((found.conflict.len(), found.others.len()), (1, 1), "{words}");
    assert!(words.contains("without all of these, these conflict:"), "{words}");
    let remedies: Vec<&str> = found.remedies.iter().map(|remedy| remedy.words.as_str()).collect();
    let both = |remedy: &&str| remedy.contains("chain 1: min") && remedy.contains("chain 3: min");
    assert!(remedies.iter().any(both), "{words}");
    assert!(found.remedies.iter().all(|remedy| remedy.is_least), "{words}");
}
