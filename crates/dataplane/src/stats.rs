//! What a worker has done: counts that it keeps anyway, collected when somebody asks.

use std::time::Duration;

use elements::context::Tallied;
use elements::element::Traffic;

use crate::latency::Latency;

/// How busy a worker has been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Rounds in which there was something to do.
    pub rounds: u64,
    /// How long they took, in nanoseconds.
    pub busy: u64,
}

/// The time between two readings of counters: what rates are computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval(f64);

impl Interval {
    /// Between two times of a clock, in nanoseconds.
    pub fn between(before: u64, now: u64) -> Self {
        Self::of(Duration::from_nanos(now.saturating_sub(before)))
    }

    /// Of this length.
    pub fn of(length: Duration) -> Self {
        Self(length.as_secs_f64())
    }

    /// Its length in seconds.
    pub fn seconds(self) -> f64 {
        self.0
    }

    /// What was counted a second: nothing if no time has passed, or the counter was reset meanwhile.
    pub fn rate(self, before: u64, now: u64) -> f64 {
        if self.0 > 0.0 { now.saturating_sub(before) as f64 / self.0 } else { 0.0 }
    }
}

/// What an element holds at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holding {
    /// Packets.
    pub packets: usize,
    /// Flows.
    pub flows: usize,
}

/// What one element has done.
#[derive(Clone, Debug)]
pub struct ElementStats {
    /// Its full name.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Packets that came to its inputs; of an element that has none, those that left it. `None` for
    /// one without ports.
    pub packets: Option<u64>,
    /// What it took in or sent, for a source or a sink.
    pub traffic: Option<Traffic>,
    /// Packets and bytes of the counter that it declares, if it does.
    pub counter: Option<(u64, u64)>,
    /// What it dropped or sent to an error output, by reason, in the order of their names: which came
    /// first depends on how packets are carried.
    pub tally: Vec<Tallied>,
    /// What it holds.
    pub holding: Holding,
}

/// What a network function, an outermost compound, has done.
#[derive(Clone, Debug)]
pub struct FunctionStats {
    /// Its name.
    pub name: String,
    /// Packets that came into it, from elements outside or from those without inputs inside.
    pub packets: u64,
}

/// What a worker has done.
#[derive(Clone, Debug)]
pub struct Stats {
    /// Nanoseconds of the worker's clock.
    pub now: u64,
    /// How busy it has been.
    pub load: Load,
    /// Packet buffers that are in use: by packets that elements hold, or devices.
    pub buffers: usize,
    /// By element, in the order of the chain.
    pub elements: Vec<ElementStats>,
    /// By network function, in the order of the chain.
    pub functions: Vec<FunctionStats>,
    /// How long bursts took, where that was measured.
    pub latencies: Vec<Latency>,
}

impl Stats {
    /// Adds what another worker of the same chain did.
    pub fn add(&mut self, other: &Stats) {
        self.load.rounds += other.load.rounds;
        self.load.busy += other.load.busy;
        self.buffers += other.buffers;
        self.add_latencies(other);
        for (sum, more) in self.functions.iter_mut().zip(&other.functions) {
            sum.packets += more.packets;
        }
        for (sum, more) in self.elements.iter_mut().zip(&other.elements) {
            if let (Some(sum), Some(more)) = (&mut sum.packets, more.packets) {
                *sum += more;
            }
            if let (Some(sum), Some(more)) = (&mut sum.traffic, more.traffic) {
                sum.packets += more.packets;
                sum.bytes += more.bytes;
            }
            if let (Some(sum), Some(more)) = (&mut sum.counter, more.counter) {
                *sum = (sum.0.wrapping_add(more.0), sum.1.wrapping_add(more.1));
            }
            sum.holding.packets += more.holding.packets;
            sum.holding.flows += more.holding.flows;
            for line in &more.tally {
                match sum.tally.binary_search_by_key(&line.reason.0, |l| l.reason.0) {
                    Ok(at) => {
                        let l = &mut sum.tally[at];
                        l.dropped += line.dropped;
                        l.dropped_bytes += line.dropped_bytes;
                        l.noted += line.noted;
                    }
                    Err(at) => sum.tally.insert(at, *line),
                }
            }
        }
    }

    fn add_latencies(&mut self, other: &Stats) {
        for more in &other.latencies {
            let same = |l: &&mut Latency| (l.of, &l.name) == (more.of, &more.name);
            match self.latencies.iter_mut().find(same) {
                Some(sum) => sum.histogram.merge(&more.histogram),
                None => self.latencies.push(more.clone()),
            }
        }
    }

    /// Packets that came in, and those that went out.
    pub fn packets(&self) -> (u64, u64) {
        let sum = |source| {
            let traffic = self.elements.iter().filter_map(|e| e.traffic);
            traffic.filter(|t| t.source == source).map(|t| t.packets).sum()
        };
        (sum(true), sum(false))
    }
}
