//! Streams: flows that send packets of one size at a constant rate, as hardware generators do. Their number, their rate, or the rate of all
//! over time changes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::trace::{Arrival, Key, Trace};

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Streams {
    /// Flows at the start.
    pub flows: u32,
    /// Flows that begin in a second.
    pub arrivals: f64,
    /// Nanoseconds that a flow lasts; those of the start last as long as the trace.
    pub duration: u64,
    /// Packets a second of a flow.
    pub rate: f64,
    /// Share of the flows that are faster for half of their time, and by how much.
    pub faster: (f64, f64),
    /// The rates of all flows over time, as a factor at some times in nanoseconds, with lines between; 1 if there are none.
    pub profile: Vec<(u64, f64)>,
    /// Bytes of a packet.
    pub size: u16,
    /// Seed of all choices.
    pub seed: u64,
}

impl Streams {
    /// The factor of all rates at a time.
    fn factor(&self, at: u64) -> f64 {
        let after = self.profile.partition_point(|(time, _)| *time <= at);
        match (after.checked_sub(1).and_then(|of| self.profile.get(of)), self.profile.get(after)) {
            (Some((from, low)), Some((to, high))) => {
                low + (high - low) * (at - from) as f64 / (to - from).max(1) as f64
            }
            (Some((_, factor)), None) | (None, Some((_, factor))) => *factor,
            (None, None) => 1.0,
        }
    }

    /// The trace of them.
    pub fn play(&self) -> impl Trace + 'static {
        let mut of = Playing {
            random: Random::new(self.seed),
            streams: self.clone(),
            lives: Vec::new(),
            next: BinaryHeap::new(),
            begins: 0,
        };
        for _ in 0..self.flows {
            of.begin(0, u64::MAX);
        }
        of
    }
}

/// A flow that sends.
struct Life {
    key: Key,
    ends: u64,
    /// From when until when it is faster.
    fast: (u64, u64),
}

/// Streams as they come.
struct Playing {
    streams: Streams,
    random: Random,
    lives: Vec<Life>,
    next: BinaryHeap<Reverse<(u64, u32)>>,
    begins: u64,
}

impl Playing {
    fn begin(&mut self, at: u64, ends: u64) {
        let Streams { faster: (share, _), duration, rate, .. } = self.streams;
        let fast = match self.random.chance(share) {
            true => {
                let from = at + (self.random.unit() * duration as f64 / 2.0) as u64;
                (from, from + duration / 2)
            }
            false => (0, 0),
        };
        let key = Key {
            source: self.random.below(u32::MAX),
            destination: self.random.below(u32::MAX),
            ports: [self.random.below(65_536) as u16, 443],
            protocol: 6,
        };
        // Phases differ.
        let first = at + (self.random.unit() * 1e9 / rate.max(1e-3)) as u64;
        self.lives.push(Life { key, ends, fast });
        self.next.push(Reverse((first, self.lives.len() as u32 - 1)));
    }
}

impl Trace for Playing {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        loop {
            let due = self.next.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
            if self.streams.arrivals > 0.0 && self.begins <= due {
                let at = self.begins;
                self.begin(at, at.saturating_add(self.streams.duration));
                self.begins += (1e9 / self.streams.arrivals) as u64;
                continue;
            }
            let Some(Reverse((at, number))) = self.next.pop() else { return Ok(None) };
            let life = &self.lives[number as usize];
            if at >= life.ends {
                continue;
            }
            let is_fast = (life.fast.0..life.fast.1).contains(&at);
            let faster = if is_fast { self.streams.faster.1 } else { 1.0 };
            let rate = self.streams.rate * self.streams.factor(at) * faster;
            self.next.push(Reverse((at + (1e9 / rate.max(1e-3)).max(1.0) as u64, number)));
            return Ok(Some(Arrival { at, key: life.key, size: self.streams.size }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Until;

    fn count(streams: &Streams, from: u64, to: u64) -> usize {
        let mut trace = Until { trace: streams.play(), end: to };
        let (mut count, mut last) = (0, 0);
        while let Some(arrival) = trace.next().unwrap() {
            assert!(arrival.at >= last, "{arrival:?}");
            last = arrival.at;
            count += usize::from(arrival.at >= from);
        }
        count
    }

    const S: u64 = 1_000_000_000;

    fn streams() -> Streams {
        Streams {
            flows: 100,
            arrivals: 0.0,
            duration: 2 * S,
            rate: 100.0,
            faster: (0.0, 1.3),
            profile: Vec::new(),
            size: 1024,
            seed: 1,
        }
    }

    #[test]
    fn rates_are_those_asked_for() {
        let near = |found: usize, expected: f64| {
            assert!((found as f64 / expected - 1.0).abs() < 0.02, "{found} {expected}")
        };
        near(count(&streams(), 0, S), 10_000.0);
        // Twice as much from the first second on, with a line before.
        let profile = vec![(0, 1.0), (S, 2.0)];
        let rising = Streams { profile, ..streams() };
        near(count(&rising, 0, S), 15_000.0);
        near(count(&rising, S, 2 * S), 20_000.0);
        // Half of all flows are faster by 30 % half of their time, once flows come and go evenly.
        let moving = Streams { flows: 0, arrivals: 50.0, faster: (0.5, 1.3), ..streams() };
        near(count(&moving, 4 * S, 6 * S), 20_000.0 * 1.075);
    }
}
