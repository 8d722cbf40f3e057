//! The simulator against formulas of queueing theory, within 1 %.

use sim::{Arrival, Chain, CoreCosts, Function, Key, Outlook, Rack, Report, Scheme, Setup};

/// One core without a network, whose chain takes what is given.
fn one_core(cycles: u64, per_kilobyte: u64, (batch, poll): (usize, u64), gap: u64) -> Setup {
    let functions = vec![Function { name: "f".into(), cycles, per_kilobyte }];
    let core = CoreCosts { hertz: 1_000_000_000, batch, poll, put: 0, take: 0 };
    Setup {
        scheme: Scheme::named("rss").unwrap(),
        rack: Rack {
            servers: vec![1],
            core,
            link: u64::MAX,
            wire: 0,
            ring: 1 << 20,
            ..Rack::default()
        },
        chain: Chain {
            name: "one".into(),
            functions,
            setup: 0,
            touch: 0,
            cools: 0,
            adopt: 0,
            source: String::new(),
        },
        settings: scale::Settings::default(),
        slo: 1_000_000_000,
        seed: 1,
        warmup: 0,
        initial: 1,
        gap,
        size: 1000,
        outlook: Outlook::default(),
    }
}

/// Poisson arrivals; sizes are exponential if they are to be.
fn run(setup: &Setup, count: usize, mean: f64, exponential: bool) -> Report {
    let mut random = fastrand::Rng::with_seed(7);
    let mut draw = move |mean: f64| -(1.0 - random.f64()).ln() * mean;
    let mut now = 0.0;
    let arrivals = (0..count).map(|number| {
        now += draw(mean);
        let size =
            if exponential { draw(4000.0).round().clamp(1.0, 65_535.0) as u16 } else { 1000 };
        let key = Key { source: number as u32 % 64, ..Key::default() };
        Arrival { at: now as u64, key, size }
    });
    setup.run(&mut arrivals.fuse()).unwrap()
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{found} is not {expected}");
}

/// M/D/1: a packet waits ρ/2(1-ρ) service times.
#[test]
fn constant_service() {
    for (mean, load) in [(20_000.0, 0.5), (12_500.0, 0.8)] {
        let setup = one_core(10_000, 0, (1, 0), mean as u64);
        let report = run(&setup, 1_500_000, mean, false);
        near(report.mean, 10_000.0 * (1.0 + load / (2.0 * (1.0 - load))));
    }
}

/// M/M/1: a packet stays 1/(1-ρ) service times, and the 99th percentile is ln 100 of these.
#[test]
fn exponential_service() {
    let setup = one_core(0, 2_500, (1, 0), 20_000);
    let report = run(&setup, 1_500_000, 20_000.0, true);
    near(report.mean, 20_000.0);
    near(report.latency.p99.unwrap() as f64, 20_000.0 * 100f64.ln());
}

/// Batches of any size that take a constant D: a packet that comes while the core is idle stays D, another one half a D more.
#[test]
fn batch_service() {
    let setup = one_core(1, 0, (1 << 12, 100_000), 20_000);
    let mut setup = setup;
    setup.rack.core.batch = 1 << 12;
    let report = run(&setup, 500_000, 20_000.0, false);
    let (d, a) = (100_000.0, 5.0f64);
    near(report.mean, d * (1.0 + 0.5 * a / (a + (-a).exp())));
}

/// A cost that is wrong on purpose is seen.
#[test]
fn a_wrong_cost_fails() {
    let setup = one_core(10_300, 0, (1, 0), 20_000);
    let report = run(&setup, 300_000, 20_000.0, false);
    assert!((report.mean / 15_000.0 - 1.0).abs() > 0.02);
}
