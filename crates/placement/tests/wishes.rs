//! Wishes and fairness.

use placement::{
    Chain, Edge, Function, Host, Kind, Plan, Policy, Problem, Replication, Roomy, Site, Slo, Wish,
    check, fair, place,
};

/// Functions one behind the other, each of which the switch and cores can run.
fn chain(name: &str, count: usize, max: f64) -> Chain {
    let function = |at: usize| Function {
        name: format!("f{at}"),
        runs_on: vec![Kind::Switch, Kind::Core],
        core_cycles: 1000.0,
        card_cycles: 0.0,
        replicates: true,
        entries: 0,
        flows: 0,
        waits: 0.0,
    };
    Chain {
        name: name.into(),
        functions: (0..count).map(function).collect(),
        edges: (1..count).map(|to| Edge { from: to - 1, to, share: 1.0 }).collect(),
        slo: Slo { min: 1e8, max, delay: None, price: 1.0 },
        wishes: Vec::new(),
    }
}

fn problem(chains: Vec<Chain>, cores: usize) -> Problem {
    let host = |name: &str| Host {
        name: name.into(),
        cores,
        hertz: 1e9,
        link_rate: 40e9,
        link_delay: 1e-6,
        card: None,
    };
    Problem {
        chains,
        hosts: vec![host("s1"), host("s2")],
        packet_bits: 10_000.0,
        tag_bits: 0.0,
        replication: Replication::Model,
        headroom: 0.0,
    }
}

fn kinds(plan: &Plan) -> Vec<Kind> {
    plan.chains[0].sites.iter().map(|site| site.kind()).collect()
}

#[test]
fn every_policy_keeps_to_wishes_or_has_no_plan() {
    let wishes: [(&[Wish], bool); 6] = [
        (&[Wish::Only(1, vec![Kind::Core])], true),
        (&[Wish::Never(1, vec![Kind::Switch])], true),
        // What one may not, those together with it do not.
        (&[Wish::Together(0, 2), Wish::Together(2, 3), Wish::Never(3, vec![Kind::Switch])], true),
        (&[Wish::Apart(0, 1)], false),
        (&[Wish::Apart(0, 3), Wish::Together(0, 1), Wish::Only(1, vec![Kind::Switch])], false),
        (&[Wish::Together(0, 3), Wish::Apart(1, 3), Wish::Never(0, vec![Kind::Switch])], false),
    ];
    for (wishes, by_kinds) in wishes {
        let mut one = chain("c", 4, 1e9);
        one.wishes = wishes.to_vec();
        let problem = problem(vec![one, chain("d", 2, 1e9)], 8);
        for (name, policy) in Policy::ALL {
            match place(&problem, &Roomy, policy, &mut || true) {
                Ok(plan) => {
                    assert!(check(&problem, &Roomy, &plan).is_ok(), "{name} {wishes:?}");
                    for wish in wishes {
                        let is_met = match wish {
                            Wish::Only(at, on) => on.contains(&kinds(&plan)[*at]),
                            Wish::Never(at, on) => !on.contains(&kinds(&plan)[*at]),
                            Wish::Together(a, b) => kinds(&plan)[*a] == kinds(&plan)[*b],
                            Wish::Apart(a, b) => {
                                let sites = &plan.chains[0].sites;
                                sites[*a] != sites[*b] || sites[*a] != Site::Switch
                            }
                        };
                        assert!(is_met, "{name} {wish:?} {plan:?}");
                    }
                }
                Err(why) => {
                    let must = by_kinds || matches!(policy, Policy::Improved | Policy::Exact);
                    assert!(!must, "{name} {wishes:?}: {why:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_left_goes_to_those_that_have_least() {
    // A core gives 10 Gb/s to a function. One chain is worth more, and one asks for little.
    let on_core = |name: &str, max: f64, price: f64| {
        let mut chain = chain(name, 1, max);
        chain.functions[0].runs_on = vec![Kind::Core];
        chain.slo.price = price;
        chain
    };
    let chains = vec![on_core("a", 100e9, 1.0), on_core("b", 100e9, 3.0), on_core("c", 5e9, 1.0)];
    let mut problem = problem(chains, 5);
    problem.hosts.truncate(1);
    let rates = |plan: Plan| -> Vec<f64> {
        plan.chains.iter().map(|chain| (chain.rate / 1e8).round() / 10.0).collect()
    };
    let most = place(&problem, &Roomy, Policy::Exact, &mut || true).unwrap();
    let shared = fair(&problem, &Roomy, &mut || true).unwrap();
    assert!(check(&problem, &Roomy, &shared).is_ok());
    // The link of 40 Gb/s: most of it goes to what is worth most, or as much to each as it asks for.
    let (most, shared) = (rates(most), rates(shared));
    assert!(most[1] >= 29.0 && most[0] < 11.0, "{most:?}");
    assert!((17.0..=18.0).contains(&shared[0].min(shared[1])), "{shared:?}");
    assert_eq!(shared[2], 5.0, "{shared:?}");
}
