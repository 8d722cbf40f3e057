//! What superbursts do to a trace's latency (Ironside §4.2.2): whales alone, and minnows alone; and the search for traffic
//! in which they do as much as published.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use scale::Nanos;
use serde::Serialize;

use crate::generate::{Generated, Traffic};
use crate::histogram::Histogram;
use crate::random::{LogUniform, Random};
use crate::trace::{Key, Trace, Until, symmetric_hash};

/// What a packet takes on the light, medium and heavy chain of §4.2.2.
pub const SERVICES: [Nanos; 3] = [5_000, 10_000, 20_000];
/// The published 99th percentiles of a trace, in microseconds: table 4.1 (whales), then table 4.2 (minnows), by chain.
pub type Published = [f64; 6];
/// What is published of a trace; nothing of one that is not in the tables.
pub fn published(trace: &str) -> Option<Published> {
    match trace {
        "backbone" => Some([831.3, 2690.0, 6648.0, 4029.0, 3830.0, 4671.0]),
        "as" => Some([53.8, 578.0, 3584.0, 3062.0, 14_241.0, 14_558.0]),
        _ => None,
    }
}

/// Packets of a trace that are held at the most: minnows are found in the whole of it.
const MOST: usize = 100_000_000;
/// Cores that flows are hashed to at the most.
const MOST_CORES: u32 = 256;
/// The median that minnows are allowed, in times of what a packet takes (§4.2.2).
const MEDIAN: Nanos = 10;

/// What was found of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Superbursts {
    /// 99th percentiles by chain, in nanoseconds, if each flow has a core of its own.
    pub whales: [Nanos; 3],
    /// The same if flows are hashed to cores, and the packets of each come evenly.
    pub minnows: [Nanos; 3],
    /// The cores that this takes by chain: the fewest with a median below ten times what a packet takes.
    pub cores: [u32; 3],
    /// Packets of the trace.
    pub packets: u64,
    /// Flows of the trace.
    pub flows: u64,
    /// Nanoseconds of the trace.
    pub time: Nanos,
}

/// A flow within the trace.
struct Life {
    hash: u32,
    first: u64,
    last: u64,
    packets: u64,
    /// By chain: until when its own core is busy.
    free: [u64; 3],
}

impl Superbursts {
    /// Those of a trace, which is read to its end.
    ///
    /// # Errors
    /// What is wrong with the trace, that it has no packets or too many.
    pub fn of(trace: &mut dyn Trace) -> Result<Self, String> {
        let mut numbers: HashMap<Key, u32, FixedState> =
            HashMap::with_hasher(FixedState::with_seed(0));
        let mut lives: Vec<Life> = Vec::new();
        let mut alone = [const { Histogram::new() }; 3];
        let (mut packets, mut time) = (0, 0);
        while let Some(arrival) = trace.next()? {
            let at = arrival.at;
            let number = *numbers.entry(arrival.key).or_insert_with(|| {
                let hash = symmetric_hash(&arrival.key);
                lives.push(Life { hash, first: at, last: at, packets: 0, free: [0; 3] });
                lives.len() as u32 - 1
            });
            let life = &mut lives[number as usize];
            (life.last, life.packets) = (at, life.packets + 1);
            for (chain, service) in SERVICES.iter().enumerate() {
                life.free[chain] = life.free[chain].max(at) + service;
                alone[chain].add(life.free[chain] - at);
            }
            (packets, time) = (packets + 1, at);
            if packets > MOST {
                return Err(format!(
                    "the trace has more than {MOST} packets: say a shorter --time"
                ));
            }
        }
        if packets == 0 {
            return Err("the trace has no packets of IP".into());
        }
        let evenly = evenly(&lives, packets);
        let (mut minnows, mut cores) = ([0; 3], [0; 3]);
        for (chain, service) in SERVICES.into_iter().enumerate() {
            (minnows[chain], cores[chain]) = hashed(&evenly, service, time);
        }
        let whales = std::array::from_fn(|at| alone[at].percentile(990, 0).unwrap_or(0));
        let (packets, flows) = (packets as u64, lives.len() as u64);
        Ok(Self { whales, minnows, cores, packets, flows, time })
    }

    /// By table and chain: its 99th percentile in microseconds.
    pub fn all(&self) -> Published {
        let of = |at: usize| if at < 3 { self.whales[at] } else { self.minnows[at - 3] };
        std::array::from_fn(|at| of(at) as f64 / 1e3)
    }

    /// The greatest factor by which it is off what is published.
    pub fn off(&self, published: &Published) -> f64 {
        self.all()
            .iter()
            .zip(published)
            .map(|(found, of)| (found / of).max(of / found))
            .fold(1.0, f64::max)
    }
}

/// Times and hashes of all packets, if those of each flow come evenly between its first and its last.
fn evenly(lives: &[Life], packets: usize) -> Vec<(u64, u32)> {
    let mut all = Vec::with_capacity(packets);
    for life in lives {
        let (between, gaps) = (life.last - life.first, (life.packets - 1).max(1));
        let at = |packet: u64| {
            life.first + (u128::from(between) * u128::from(packet) / u128::from(gaps)) as u64
        };
        all.extend((0..life.packets).map(|packet| (at(packet), life.hash)));
    }
    all.sort_unstable();
    all
}

/// The 99th percentile on the fewest cores whose median is within bounds, and how many these are.
fn hashed(packets: &[(u64, u32)], service: Nanos, time: Nanos) -> (Nanos, u32) {
    // With fewer, the queues of all would grow for ever.
    let load = packets.len() as u64 * service / time.max(1);
    let (mut cores, mut latency) = (load.max(1) as u32, Histogram::new());
    loop {
        let mut free = vec![0u64; cores as usize];
        latency.clear();
        for (at, hash) in packets {
            let free = &mut free[(hash % cores) as usize];
            *free = (*free).max(*at) + service;
            latency.add(*free - at);
        }
        let median = latency.percentile(500, 0).unwrap_or(0);
        if median < MEDIAN * service || cores >= MOST_CORES {
            return (latency.percentile(990, 0).unwrap_or(0), cores);
        }
        cores += 1;
    }
}

/// A search for traffic whose superbursts are as published.
pub struct Fit {
    /// The best so far.
    pub traffic: Traffic,
    /// What was found of it.
    pub found: Superbursts,
    published: Published,
    time: Nanos,
    random: Random,
}

impl Fit {
    /// One that begins with some traffic, of which so much time is looked at.
    ///
    /// # Errors
    /// That it has no packets or too many.
    pub fn new(traffic: &Traffic, published: &Published, time: Nanos) -> Result<Self, String> {
        let found = measure(traffic, time)?;
        let (traffic, published, random) =
            (traffic.clone(), *published, Random::new(traffic.seed ^ 0xf17));
        Ok(Self { traffic, found, published, time, random })
    }

    /// Changes some of what is not published, and keeps it if that is better. Whether it was.
    ///
    /// # Errors
    /// That there are too many packets.
    pub fn step(&mut self) -> Result<bool, String> {
        let mut next = self.traffic.clone();
        for _ in 0..1 + self.random.below(3) {
            let factor = LogUniform::new(0.5, 2.0).of(self.random.unit());
            let factor = if self.random.chance(0.5) { factor } else { 1.0 + (factor - 1.0) / 5.0 };
            match self.random.below(12) {
                0 => next.whales = (next.whales * factor).min(0.2),
                1 => next.whale[0] = (next.whale[0] * factor).clamp(2.0, 1e5),
                2 => next.whale[1] *= factor,
                3 => next.train = (next.train * factor).clamp(1.0, 100.0),
                4 => next.gap = (next.gap * factor).clamp(100.0, 1e5),
                5 => next.pace[0] = (next.pace[0] * factor).clamp(2e3, next.pace[1]),
                6 => next.pace[1] = (next.pace[1] * factor).clamp(next.pace[0], 1e9),
                7 => next.crowd = (next.crowd * factor).clamp(1e6, 1e9),
                8 => next.shape = (next.shape * (0.8 + 0.2 * factor)).clamp(0.5, 3.0),
                9 => next.packets[0] = (next.packets[0] * factor).clamp(1.0, 100.0),
                10 => next.single = (next.single * factor).min(0.8),
                _ => next.crowded = (next.crowded * factor).min(0.9 * next.arrivals / next.peak),
            }
        }
        if next.check().is_err() {
            return Ok(false);
        }
        let found = measure(&next, self.time)?;
        let is_better = self.error(&found) < self.error(&self.found);
        if is_better {
            (self.traffic, self.found) = (next, found);
        }
        Ok(is_better)
    }

    /// How far it is off: the greatest factor counts most, and the others a little.
    fn error(&self, found: &Superbursts) -> f64 {
        let all = found.all();
        let off = all.iter().zip(&self.published).map(|(found, of)| (found / of).max(of / found));
        found.off(&self.published) + 0.1 * off.sum::<f64>()
    }
}

/// What is found of the begin of some traffic.
///
/// # Errors
/// That there are no packets or too many.
fn measure(traffic: &Traffic, end: Nanos) -> Result<Superbursts, String> {
    Superbursts::of(&mut Until { trace: Generated::new(traffic), end })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Arrival;

    fn of(times: &[(u64, u32)]) -> Superbursts {
        let arrival = |(at, source): &(u64, u32)| Arrival {
            at: *at,
            key: Key { source: *source, ..Key::default() },
            size: 100,
        };
        Superbursts::of(&mut times.iter().map(arrival).collect::<Vec<_>>().into_iter().fuse())
            .unwrap()
    }

    /// By hand: of 100 packets of one flow that come every 4 µs, the last but one waits for 98 services of 5 µs, and came at 392 µs.
    #[test]
    fn a_whale_queues_at_a_core_of_its_own() {
        let found = of(&(0..100).map(|at| (at * 4_000, 1)).collect::<Vec<_>>());
        let near = |found: u64, expected: u64| {
            assert!(found.abs_diff(expected) * 100 < expected, "{found} {expected}")
        };
        near(found.whales[0], 99 * 5_000 - 98 * 4_000);
        near(found.whales[2], 99 * 20_000 - 98 * 4_000);
        // Hashing does not divide it: the median is above bounds on any number of cores.
        near(found.minnows[2], found.whales[2]);
        assert_eq!((found.packets, found.flows, found.time), (100, 1, 396_000));
    }

    /// Flows that send a train each, at the same time: alone none of them waits, evenly spread none does, and together all do.
    #[test]
    fn a_train_is_no_burst_once_its_flow_is_shaped() {
        let trains = |gap: u64| {
            // Eight packets at once, and one a second later.
            let flow = |source: u32| (0..8).map(move |_| (0, source)).chain([(gap, source)]);
            let mut all: Vec<(u64, u32)> = (0..4).flat_map(flow).collect();
            all.sort_unstable();
            of(&all)
        };
        let found = trains(1_000_000_000);
        assert!(found.whales[0] >= 39_900, "{found:?}");
        assert!(found.minnows[0] < 25_000, "{found:?}");
    }

    /// All of the backbone's six, and all but one of the other trace's, are within 25 % of what is printed.
    #[test]
    fn traces_have_the_superbursts_that_are_printed() {
        let traces =
            [("backbone", Traffic::backbone(), 6), ("as", Traffic::autonomous_system(), 5)];
        for (name, traffic, expected) in traces {
            let found = measure(&traffic, 2_000_000_000).unwrap().all();
            let printed = published(name).unwrap();
            let near = found.iter().zip(&printed).filter(|(a, b)| (*a / *b).max(*b / *a) <= 1.25);
            assert!(near.count() >= expected, "{name}: {found:?}, printed {printed:?}");
        }
    }

    #[test]
    fn an_empty_trace_is_refused() {
        let why = Superbursts::of(&mut std::iter::empty().fuse()).unwrap_err();
        assert_eq!(why, "the trace has no packets of IP");
    }

    /// A search from traffic that is off comes nearer, and again to the same end.
    #[test]
    fn a_search_comes_nearer_and_is_repeatable() {
        let traffic =
            Traffic { arrivals: 2000.0, peak: 3000.0, duration: 1e8, ..Traffic::backbone() };
        let run = || {
            let mut fit =
                Fit::new(&traffic, &[100.0, 300.0, 900.0, 300.0, 500.0, 900.0], 100_000_000)
                    .unwrap();
            let before = fit.found.off(&fit.published);
            for _ in 0..12 {
                fit.step().unwrap();
            }
            (before, fit.found.off(&fit.published), fit.traffic)
        };
        let (before, after, traffic) = run();
        assert!(after < before, "{before} {after}");
        assert_eq!(run(), (before, after, traffic));
    }
}
