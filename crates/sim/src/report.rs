//! What a run is found to be.

use scale::{Nanos, Note};
use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;

/// Nanoseconds of the windows in which the SLO is looked at.
const WINDOW: Nanos = 100_000_000;

/// Nanoseconds of a second.
const SECOND: Nanos = 1_000_000_000;

/// Counted while it runs.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) latency: Histogram,
    pub(crate) lost: u64,
    pub(crate) out_of_order: u64,
    pub(crate) two_owners: u64,
    pub(crate) decisions: u64,
    pub(crate) moves: u64,
    pub(crate) migrated: u64,
    pub(crate) lends: u64,
    pub(crate) lent_flows: u64,
    pub(crate) splits: u64,
    pub(crate) boosts: u64,
    pub(crate) nic_updates: u64,
    pub(crate) switch_updates: u64,
    pub(crate) dedicated: u128,
    pub(crate) lent: u128,
    pub(crate) busy: u128,
    pub(crate) most_cores: u32,
    pub(crate) flows: u64,
    pub(crate) most_alive: usize,
    pub(crate) notes: Vec<Note>,
    /// By second of the trace: packets that left, packets that were lost, and nanoseconds of cores.
    seconds: Vec<(u64, u64, u64)>,
    /// By window: packets that arrived in it and are done, and those of them that were late or lost.
    windows: Vec<(u64, u64)>,
}

impl Tally {
    /// A packet that arrived at a time left after so long, or never.
    pub(crate) fn left(&mut self, at: u64, latency: Option<u64>, slo: Nanos) {
        match latency {
            Some(latency) => self.latency.add(latency),
            None => self.lost += 1,
        }
        let number = (at / WINDOW) as usize;
        if number >= self.windows.len() {
            self.windows.resize(number + 1, (0, 0));
        }
        let window = &mut self.windows[number];
        window.0 += 1;
        window.1 += u64::from(latency.is_none_or(|latency| latency > slo));
    }

    /// A packet left, or was lost, at a time; the warm-up counts, too.
    pub(crate) fn passed(&mut self, at: u64, is_lost: bool) {
        let second = self.second(at);
        second.0 += u64::from(!is_lost);
        second.1 += u64::from(is_lost);
    }

    /// A core was in use from one time to another.
    pub(crate) fn used(&mut self, mut from: u64, to: u64) {
        while from < to {
            let end = (from / SECOND + 1) * SECOND;
            self.second(from).2 += end.min(to) - from;
            from = end;
        }
    }

    fn second(&mut self, at: u64) -> &mut (u64, u64, u64) {
        let number = (at / SECOND) as usize;
        if number >= self.seconds.len() {
            self.seconds.resize(number + 1, (0, 0, 0));
        }
        &mut self.seconds[number]
    }

    /// Windows with packets, and those in which more than a hundredth of them were late or lost.
    fn windows(&self) -> [u64; 2] {
        let count = |broken: bool| {
            let has = |(all, late): &&(u64, u64)| *all > 0 && (!broken || late * 100 > *all);
            self.windows.iter().filter(has).count() as u64
        };
        [count(false), count(true)]
    }
}

/// Percentiles of latencies, in nanoseconds; nothing where it is infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// The median.
    pub p50: Option<Nanos>,
    /// 99th percentile.
    pub p99: Option<Nanos>,
    /// 99.9th percentile.
    pub p999: Option<Nanos>,
}

/// A second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Second {
    /// Packets that left.
    pub packets: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Cores on average.
    pub cores: f64,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The policy.
    pub policy: String,
    /// The SLO, in nanoseconds.
    pub slo: Nanos,
    /// The seed.
    pub seed: u64,
    /// How long it was measured, in nanoseconds.
    pub time: Nanos,
    /// Packets that arrived then.
    pub packets: u64,
    /// Flows that began.
    pub flows: u64,
    /// Most flows that were alive at a time.
    pub flows_alive: usize,
    /// Packets that were lost.
    pub lost: u64,
    /// Latencies of packets that were not lost.
    pub latency: Latencies,
    /// Their mean, in nanoseconds.
    pub mean: f64,
    /// The greatest, in nanoseconds.
    pub worst: Nanos,
    /// Latencies where those of lost packets are infinite.
    pub with_losses: Latencies,
    /// Cores on average: dedicated and lent together.
    pub cores: f64,
    /// Dedicated cores on average.
    pub dedicated: f64,
    /// Auxiliary cores on average.
    pub lent: f64,
    /// Cores that polled and found nothing, on average.
    pub idle: f64,
    /// Most cores at a time.
    pub most_cores: u32,
    /// Windows of 100 ms, and those in which more than 1 % of packets were late or lost.
    pub windows: [u64; 2],
    /// Packets that overtook others of their flow.
    pub out_of_order: u64,
    /// Packets that were served while another core had packets of their flow.
    pub two_owners: u64,
    /// Decisions of policies above cores, and buckets, groups and prefixes that moved.
    pub decisions: u64,
    /// Buckets and groups that moved.
    pub moves: u64,
    /// Flows that moved by order of a controller.
    pub migrated: u64,
    /// Times that a core lent flows to another one.
    pub lends: u64,
    /// Flows that were lent.
    pub lent_flows: u64,
    /// Times that a chain was split for a flow.
    pub splits: u64,
    /// Times that a core began to only deal.
    pub boosts: u64,
    /// Changes of NICs' tables.
    pub nic_updates: u64,
    /// Changes of the switch's rules.
    pub switch_updates: u64,
    /// Events that happened, packets among them.
    pub events: u64,
    /// By second of the trace, with what is not measured at its start.
    pub seconds: Vec<Second>,
    /// What policies had to say.
    pub notes: Vec<Note>,
}

impl Report {
    /// Lost packets among all.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / self.packets.max(1) as f64
    }

    pub(crate) fn of(
        policy: &str,
        slo: Nanos,
        seed: u64,
        time: Nanos,
        tally: Tally,
        events: u64,
    ) -> Self {
        let percentiles = |infinite| Latencies {
            p50: tally.latency.percentile(500, infinite),
            p99: tally.latency.percentile(990, infinite),
            p999: tally.latency.percentile(999, infinite),
        };
        let second = |(packets, lost, time): &(u64, u64, u64)| Second {
            packets: *packets,
            lost: *lost,
            cores: *time as f64 / SECOND as f64,
        };
        let cores = |sum: u128| sum as f64 / time.max(1) as f64;
        Self {
            policy: policy.into(),
            slo,
            seed,
            time,
            packets: tally.latency.count() + tally.lost,
            flows: tally.flows,
            flows_alive: tally.most_alive,
            lost: tally.lost,
            latency: percentiles(0),
            mean: tally.latency.mean(),
            worst: tally.latency.most(),
            with_losses: percentiles(tally.lost),
            cores: cores(tally.dedicated + tally.lent),
            dedicated: cores(tally.dedicated),
            lent: cores(tally.lent),
            idle: cores((tally.dedicated + tally.lent).saturating_sub(tally.busy)),
            most_cores: tally.most_cores,
            windows: tally.windows(),
            out_of_order: tally.out_of_order,
            two_owners: tally.two_owners,
            decisions: tally.decisions,
            moves: tally.moves,
            migrated: tally.migrated,
            lends: tally.lends,
            lent_flows: tally.lent_flows,
            splits: tally.splits,
            boosts: tally.boosts,
            nic_updates: tally.nic_updates,
            switch_updates: tally.switch_updates,
            events,
            seconds: tally.seconds.iter().map(second).collect(),
            notes: tally.notes,
        }
    }
}
