//! The experiments of Quadrant on scaling (§3.6.3, §3.6.4) and of Metron (its figure 9), with streams of a generator.

use scale::{Nanos, Settings};

use crate::chain::{Chain, CoreCosts, Function};
use crate::rack::Rack;
use crate::report::Report;
use crate::scheme::{Outlook, Scheme, Setup};
use crate::streams::Streams;
use crate::trace::Until;

const US: Nanos = 1_000;
const S: Nanos = 1_000_000_000;

/// Chains of Quadrant's evaluation: name, network functions, and cores of Metron that are printed on average, or that are taken
/// where none are printed.
pub const CHAINS: [(&str, u64, f64); 3] =
    [("chain 1", 2, 3.61 / 1.12), ("chain 2", 3, 11.66), ("chain 3", 2, 3.61 / 1.12)];
/// SLOs of figure 3.7.
pub const SLOS: [Nanos; 5] = [70 * US, 100 * US, 130 * US, 160 * US, 190 * US];
/// Shares of flows of figure 3.8, in percent, with the latencies that are printed, in microseconds.
pub const FASTER: [(u32, f64); 6] =
    [(0, 46.0), (20, 45.8), (40, 45.9), (60, 46.3), (80, 44.8), (95, 45.3)];
/// What is tried for alpha and beta, which are not printed.
pub const SWEPT: [(f64, f64); 5] = [(0.4, 0.6), (0.5, 0.7), (0.6, 0.8), (0.7, 0.9), (0.8, 0.95)];
/// Packets a second of 18 Gbps in packets of 1,024 bytes.
const PEAK: f64 = 18e9 / 8.0 / 1024.0;
/// Flows at the same time: 10 begin in a second, and the most are reached after 60 s.
const FLOWS: f64 = 600.0;
/// The same in as many times less time: policies decide at the same times, and flows come and go faster for them.
const HASTE: f64 = 20.0;
/// Cycles of a switch between the processes of network functions (§3.6.5).
const SWITCH: u64 = 2143;
/// Load to which Metron's cores are taken to be filled.
const FILLED: f64 = 0.7;

/// A run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Which of the chains.
    pub chain: usize,
    /// The policy.
    pub policy: &'static str,
    /// The SLO.
    pub slo: Nanos,
    /// Percent of the flows that are faster by 30 % for half of their time.
    pub faster: u32,
    /// Alpha and beta; those that are set if not said.
    pub thresholds: Option<(f64, f64)>,
    /// Whether the rate-adjusting term of equation 3.4 counts.
    pub adjust: bool,
}

impl Trial {
    /// One of Quadrant.
    pub fn quadrant(chain: usize, slo: Nanos) -> Self {
        Self { chain, policy: "quadrant", slo, faster: 0, thresholds: None, adjust: true }
    }

    /// Those of figure 3.8.
    pub fn faster(share: u32) -> Self {
        Self { faster: share, ..Self::quadrant(0, SLOS[0]) }
    }

    /// One with other thresholds.
    pub fn swept(thresholds: (f64, f64), adjust: bool) -> Self {
        Self { thresholds: Some(thresholds), adjust, ..Self::quadrant(1, SLOS[0]) }
    }

    /// One of Metron.
    pub fn metron(chain: usize) -> Self {
        Self { policy: "metron-load", ..Self::quadrant(chain, SLOS[4]) }
    }

    /// All, each once.
    pub fn all() -> Vec<Self> {
        let chains = 0..CHAINS.len();
        let sevens = chains.clone().flat_map(|of| SLOS.map(|slo| Self::quadrant(of, slo)));
        let eights = FASTER[1..].iter().map(|(share, _)| Self::faster(*share));
        let swept =
            SWEPT.iter().flat_map(|of| [true, false].map(|adjust| Self::swept(*of, adjust)));
        sevens.chain(eights).chain(swept).chain(chains.map(Self::metron)).collect()
    }

    /// Runs it.
    ///
    /// # Errors
    /// What cannot be.
    pub fn run(&self) -> Result<Report, String> {
        let is_quadrant = self.policy == "quadrant";
        let (name, functions, cores) = CHAINS[self.chain];
        let poll = if is_quadrant { SWITCH * functions } else { CoreCosts::default().poll };
        let core = CoreCosts { hertz: 2_400_000_000, poll, ..CoreCosts::default() };
        let cycles = (cores * FILLED / PEAK * core.hertz as f64) as u64;
        let rack = Rack { servers: vec![32; 8], core, link: 100_000_000_000, ..Rack::default() };
        let rate = PEAK / FLOWS;
        let streams = Streams {
            // Metron moves no core twice in 3 s: it begins with all flows.
            flows: if is_quadrant { 0 } else { FLOWS as u32 },
            arrivals: if is_quadrant { FLOWS / 60.0 * HASTE } else { 0.0 },
            duration: (60e9 / HASTE) as u64,
            rate,
            faster: (f64::from(self.faster) / 100.0, 1.3),
            profile: Vec::new(),
            size: 1024,
            seed: 1,
        };
        let mut settings = Settings::default();
        settings.guards.swings = 0;
        settings.quadrant.adjust = self.adjust;
        if let Some((alpha, beta)) = self.thresholds {
            (settings.quadrant.alpha, settings.quadrant.beta) = (alpha, beta);
        }
        let (warmup, end) = if is_quadrant { (3 * S, 5 * S) } else { (8 * S, 10 * S) };
        let initial = if is_quadrant { 1 } else { cores.ceil() as usize };
        let chain = plain(name, cycles);
        run(self.policy, (rack, chain, settings), (self.slo, initial), (&streams, warmup, end))
    }
}

/// A chain of which only the sum of all functions is known. Flows cost nothing besides: they are few.
fn plain(name: &str, cycles: u64) -> Chain {
    let functions = vec![Function { name: name.into(), cycles, per_kilobyte: 0 }];
    let source = "cores that Metron is printed to use".into();
    Chain {
        name: name.into(),
        functions,
        setup: 2000,
        touch: 0,
        cools: 100_000,
        adopt: 2000,
        source,
    }
}

fn run(
    policy: &str,
    (rack, chain, settings): (Rack, Chain, Settings),
    (slo, initial): (Nanos, usize),
    (streams, warmup, end): (&Streams, Nanos, Nanos),
) -> Result<Report, String> {
    let setup = Setup {
        scheme: Scheme::named(policy)?,
        rack,
        chain,
        settings,
        slo,
        seed: streams.seed,
        warmup,
        initial,
        gap: (1e9 / PEAK) as u64,
        size: streams.size,
        outlook: Outlook::default(),
    };
    setup.run(&mut Until { trace: streams.play(), end })
}

/// Metron's figure 9: seconds, and Gbps that are injected then. The text has a start on 4 cores, loads that rise suddenly at 10, 17, 42,
/// 70 and 97 s, one that rises while Metron lags behind from 84 to 90 s, between 1 and 6 cores, and a link of 10 Gbps. All else of the curve is
/// ours.
pub const INJECTED: [(u64, f64); 19] = [
    (0, 5.0),
    (10, 5.0),
    (11, 6.5),
    (17, 6.5),
    (18, 8.5),
    (26, 8.5),
    (32, 2.0),
    (41, 1.0),
    (42, 1.0),
    (43, 5.0),
    (58, 5.0),
    (66, 2.5),
    (70, 2.5),
    (71, 7.0),
    (84, 7.0),
    (90, 9.5),
    (96, 4.0),
    (98, 7.5),
    (105, 7.5),
];

/// Bytes of its packets on average.
const SIZE: u16 = 988;

/// Packets a second that are injected at a time of figure 9.
pub fn injected(gbps: f64) -> f64 {
    gbps * 1e9 / 8.0 / f64::from(SIZE)
}

/// Replays figure 9.
///
/// # Errors
/// What cannot be.
pub fn metron_9() -> Result<Report, String> {
    let flows = 2000;
    let profile = INJECTED.iter().map(|(at, gbps)| (at * S, *gbps)).collect();
    let rate = injected(1.0) / f64::from(flows);
    let streams = Streams {
        flows,
        arrivals: 0.0,
        duration: 105 * S,
        rate,
        faster: (0.0, 1.0),
        profile,
        size: SIZE,
        seed: 1,
    };
    let core = CoreCosts { hertz: 2_600_000_000, ..CoreCosts::default() };
    // 10 Gbps fill six cores up to what overloads one.
    let settings = Settings::default();
    let cycles = 6.0 * settings.metron.over / injected(10.0) * core.hertz as f64;
    let rack = Rack { servers: vec![16], core, link: 10_000_000_000, ..Rack::default() };
    let chain = plain("ACL, NAPT", cycles as u64);
    run("metron-load", (rack, chain, settings), (500 * US, 4), (&streams, 0, 105 * S))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_are_there_once() {
        let all = Trial::all();
        assert!(all.iter().enumerate().all(|(at, of)| !all[..at].contains(of)));
        assert!(all.contains(&Trial::faster(20)) && all.contains(&Trial::metron(2)));
        // Without faster flows, figure 3.8 has a run of figure 3.7.
        assert!(all.contains(&Trial::faster(0)));
    }
}
