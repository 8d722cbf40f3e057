//! A rack with superbursts: what each policy makes of it, repeatable, in order, each flow with one owner.

use sim::{Arrival, Chain, Generated, Key, Outlook, Rack, Report, Scheme, Setup, Traffic, Until};

const MS: u64 = 1_000_000;

fn traffic(seed: u64) -> Traffic {
    Traffic { arrivals: 30_000.0, peak: 90_000.0, duration: 1e9, seed, ..Traffic::backbone() }
}

fn setup(policy: &str, slo: u64) -> Setup {
    let rack = Rack { servers: vec![16, 16], ..Rack::default() };
    let chain = Chain::named("chain1").unwrap();
    let mut trace = Until { trace: Generated::new(&traffic(1)), end: 300 * MS };
    let outlook = Outlook::of(&mut trace, &chain, &rack, slo).unwrap();
    Setup {
        scheme: Scheme::named(policy).unwrap(),
        rack,
        chain,
        settings: scale::Settings::default(),
        slo,
        seed: 1,
        warmup: 0,
        initial: outlook.initial(),
        gap: outlook.gap,
        size: outlook.size,
        outlook,
    }
}

fn run(setup: &Setup) -> Report {
    setup.run(&mut Until { trace: Generated::new(&traffic(1)), end: 300 * MS }).unwrap()
}

#[test]
fn every_policy_runs_in_order_and_again_to_the_same_report() {
    let names = Scheme::ALL.iter().map(|(name, _)| *name).chain(["ironside-on-demand"]);
    for name in names {
        let setup = setup(name, 300_000);
        let report = run(&setup);
        assert_eq!((report.out_of_order, report.two_owners), (0, 0), "{name}");
        assert!(report.packets > 50_000 && report.loss() < 0.5, "{name}: {report:?}");
        assert!(report.cores >= 1.0 && report.cores <= 32.0, "{name}: {report:?}");
        assert_eq!(report, run(&setup), "{name}");
    }
}

/// A burst of many flows at once: one core has far too much for the SLO, and lends.
#[test]
fn bursts_are_lent_and_the_slo_holds() {
    let burst = |at: u64| {
        let flow = move |number: u64| {
            let key = Key {
                source: (at / MS) as u32,
                ports: [(number % 300) as u16, 1],
                ..Key::default()
            };
            Arrival { at: at + number * 100, key, size: 1000 }
        };
        (0..900).map(flow)
    };
    let trace = || (0..20).flat_map(|number| burst(number * 5 * MS)).fuse();
    let run = |policy: &str| {
        let mut setup = setup(policy, 500_000);
        setup.initial = 1;
        setup.rack.servers = vec![16];
        setup.run(&mut trace()).unwrap()
    };
    let (with, without) = (run("ironside"), run("ironside-no-core-mapper"));
    assert!(without.latency.p99.unwrap() > 1_200_000, "{without:?}");
    assert!(with.latency.p99.unwrap() <= 500_000, "{with:?}");
    assert!(with.lends > 0 && with.lent < 5.0 && with.lost == 0, "{with:?}");
    assert!(run("ours").cores <= with.cores);
}

/// Flows last for milliseconds and Quadrant decides every 50: where new ones go must not wait for that, nor all go to one core.
#[test]
fn quadrant_spreads_new_flows_between_decisions() {
    let mut setup = setup("quadrant", 500_000);
    setup.warmup = 100 * MS;
    let report = run(&setup);
    assert!(report.loss() < 0.02, "{report:?}");
    assert!(report.cores < 12.0, "{report:?}");
}

/// Where a whole batch lasts longer than half of the SLO, batches of ours end before.
#[test]
fn batches_of_ours_leave_time_for_an_epoch() {
    let run = |policy: &str| {
        let mut setup = setup(policy, 100_000);
        setup.chain = Chain::named("chain2").unwrap();
        setup.rack.servers = vec![32];
        run(&setup).latency.p99.unwrap()
    };
    let (ours, theirs) = (run("ours"), run("ironside"));
    assert!(ours <= 100_000 && theirs > ours, "{ours} {theirs}");
}

/// zeek#2209 and one heavy flow that no balancer moves: the chain is split for it.
#[test]
fn a_flow_that_exceeds_a_core_has_its_chain_split() {
    // 3,500 cycles at 2.8 GHz are 1.25 µs; packets come every microsecond.
    let trace = || {
        (0..40_000u64).map(|at| Arrival { at: at * 1000, key: Key::default(), size: 1000 }).fuse()
    };
    let run = |policy: &str| {
        let mut setup = setup(policy, 400_000);
        (setup.initial, setup.gap, setup.size) = (1, 1000, 1000);
        setup.run(&mut trace()).unwrap()
    };
    let with = run("ironside");
    assert!(with.splits > 0 && with.out_of_order == 0, "{with:?}");
    let without = run("rss++");
    assert!(with.lost < without.lost, "{} {}", with.lost, without.lost);
    assert!(with.latency.p99 < without.latency.p99);
}

/// On slow cores, flows whose chain is split are lent as well.
#[test]
fn a_flow_that_is_split_and_lent_has_one_owner() {
    let traffic = Traffic { seed: 1, ..Traffic::backbone() };
    let trace = || Until { trace: Generated::new(&traffic), end: 100 * MS };
    let mut setup = setup("ironside", 200_000);
    setup.rack.servers = vec![14];
    setup.rack.core.hertz = 1_700_000_000;
    setup.outlook = Outlook::of(&mut trace(), &setup.chain, &setup.rack, setup.slo).unwrap();
    setup.initial = setup.outlook.initial();
    (setup.gap, setup.size) = (setup.outlook.gap, setup.outlook.size);
    let report = setup.run(&mut trace()).unwrap();
    assert!(report.splits > 0 && report.lends > 0, "{report:?}");
    assert_eq!((report.out_of_order, report.two_owners), (0, 0), "{report:?}");
}

#[test]
fn what_cannot_be_is_refused_with_a_number() {
    let refused = |setup: &Setup| setup.run(&mut std::iter::empty().fuse()).unwrap_err();
    assert!(
        refused(&setup("rss", 3000)).contains("an SLO of 3 us is less than one packet takes alone")
    );
    let mut many = setup("rss", 300_000);
    many.initial = 33;
    assert!(refused(&many).contains("33 cores are asked for, and the rack has 32"));
}
