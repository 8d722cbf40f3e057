//! Rates: what an instance did between two readings of its counters.

use std::collections::BTreeMap;

use dataplane::stats::Interval;
use serde::Serialize;

use super::protocol::{
    CountersAnswer, Counts, ElementCounts, LatencyCounts, LatencyOf, WorkerCounts,
};

/// What was done between two readings; rates are those of a second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rates {
    /// How long that was.
    pub seconds: f64,
    /// By worker.
    pub cores: Vec<CoreRates>,
    /// By network function, in the order of their names.
    pub functions: Vec<ElementRates>,
    /// By element, in the order of the chain.
    pub elements: Vec<ElementRates>,
    /// Where packets were dropped.
    pub drops: Vec<Drops>,
    /// How long bursts took.
    pub latencies: Vec<Percentiles>,
}

/// What a worker did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreRates {
    /// The worker.
    pub worker: usize,
    /// The CPU that it is bound to.
    pub cpu: Option<usize>,
    /// Packets that came in.
    #[serde(rename = "in")]
    pub taken: f64,
    /// Packets that went out.
    #[serde(rename = "out")]
    pub given: f64,
    /// Packets that were dropped.
    pub dropped: f64,
    /// The share of time in which there was something to do.
    pub busy: f64,
    /// That time by the packets that came in.
    pub ns_per_packet: Option<f64>,
    /// The same in cycles of the CPU.
    pub cycles_per_packet: Option<f64>,
    /// Packets that came in, by round in which there was something to do.
    pub packets_per_round: Option<f64>,
    /// Packets that wait in its receive queues now, where the kernel says so.
    pub waiting: Option<u64>,
    /// Packets that are held now.
    pub held: u64,
    /// Flows that are known now.
    pub flows: u64,
}

/// What an element or a network function did. What nobody counts is absent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ElementRates {
    /// Its name.
    pub name: String,
    /// Its class; nothing of a network function.
    pub class: String,
    /// Packets that came.
    pub packets: Option<f64>,
    /// Packets that a source took in.
    #[serde(rename = "in")]
    pub taken: Option<f64>,
    /// Packets that a sink sent.
    #[serde(rename = "out")]
    pub given: Option<f64>,
    /// Bits of both, and of what a counter counts.
    pub bits: Option<f64>,
    /// Packets that were dropped.
    pub dropped: f64,
    /// Packets that are held now.
    pub held: u64,
    /// Flows that are known now.
    pub flows: u64,
}

/// Packets that an element dropped for a reason.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Drops {
    /// The element.
    pub name: String,
    /// The reason.
    pub reason: String,
    /// How many.
    pub dropped: f64,
}

/// Nanoseconds that so many of all packets did not exceed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// What the latency is of.
    pub of: LatencyOf,
    /// The name of that.
    pub name: String,
    /// Packets that were timed.
    pub packets: u64,
    /// Half of them.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
}

/// What was counted; `None` where nobody counts.
#[derive(Clone, Copy, Default)]
struct Sums {
    packets: Option<u64>,
    taken: Option<u64>,
    given: Option<u64>,
    bytes: Option<u64>,
    dropped: u64,
    held: u64,
    flows: u64,
}

/// Adds what is known.
fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum.get_or_insert(0) += more;
    }
}

impl From<&ElementCounts> for Sums {
    fn from(element: &ElementCounts) -> Self {
        let mut bytes = None;
        for traffic in [element.taken, element.given, element.counted] {
            add(&mut bytes, traffic.map(|traffic| traffic.bytes));
        }
        Self {
            packets: element.packets,
            taken: element.taken.map(|traffic| traffic.packets),
            given: element.given.map(|traffic| traffic.packets),
            bytes,
            dropped: element.dropped.values().sum(),
            held: element.held,
            flows: element.flows,
        }
    }
}

impl Sums {
    fn add(&mut self, other: Self) {
        add(&mut self.packets, other.packets);
        add(&mut self.taken, other.taken);
        add(&mut self.given, other.given);
        add(&mut self.bytes, other.bytes);
        self.dropped += other.dropped;
        self.held += other.held;
        self.flows += other.flows;
    }

    /// What came since; counters may have been reset in between.
    fn since(self, before: Self) -> Self {
        let since = |now: Option<u64>, before: Option<u64>| {
            now.map(|now| now.saturating_sub(before.unwrap_or(0)))
        };
        Self {
            packets: since(self.packets, before.packets),
            taken: since(self.taken, before.taken),
            given: since(self.given, before.given),
            bytes: since(self.bytes, before.bytes),
            dropped: self.dropped.saturating_sub(before.dropped),
            ..self
        }
    }

    fn line(self, name: &str, class: &str, interval: Interval) -> ElementRates {
        let rate = |count: u64| interval.rate(0, count);
        ElementRates {
            name: name.to_string(),
            class: class.to_string(),
            packets: self.packets.map(rate),
            taken: self.taken.map(rate),
            given: self.given.map(rate),
            bits: self.bytes.map(|bytes| rate(bytes) * 8.0),
            dropped: rate(self.dropped),
            held: self.held,
            flows: self.flows,
        }
    }
}

fn sums(counts: &Counts) -> BTreeMap<&str, Sums> {
    counts.elements.iter().map(|element| (element.name.as_str(), element.into())).collect()
}

fn core(before: Option<&WorkerCounts>, after: &WorkerCounts) -> CoreRates {
    let (none, now) = (Counts::default(), &after.counts);
    let then = before.map_or(&none, |before| &before.counts);
    // Of a worker that was not there before nothing is known of the time before.
    let interval = Interval::between(before.map_or(now.now, |_| then.now), now.now);
    let sums_then = sums(then);
    let mut sum = Sums::default();
    for element in &now.elements {
        let former = sums_then.get(element.name.as_str()).copied().unwrap_or_default();
        sum.add(Sums::from(element).since(former));
    }
    let since = |of: fn(&Counts) -> u64| of(now).saturating_sub(of(then));
    let (taken, busy, rounds) = (since(|c| c.taken), since(|c| c.busy), since(|c| c.rounds));
    let ns_per_packet = (taken > 0).then(|| busy as f64 / taken as f64);
    CoreRates {
        worker: after.worker,
        cpu: after.cpu,
        taken: interval.rate(0, taken),
        given: interval.rate(then.given, now.given),
        dropped: interval.rate(0, sum.dropped),
        busy: (interval.rate(0, busy) / 1e9).min(1.0),
        ns_per_packet,
        cycles_per_packet: ns_per_packet.zip(after.mhz).map(|(ns, mhz)| ns * mhz / 1e3),
        packets_per_round: (rounds > 0).then(|| taken as f64 / rounds as f64),
        waiting: (!after.waiting.is_empty()).then(|| after.waiting.values().sum()),
        held: sum.held,
        flows: sum.flows,
    }
}

impl Rates {
    /// From one reading to the next.
    pub fn between(before: &CountersAnswer, after: &CountersAnswer) -> Self {
        let cores = after.workers.iter().map(|worker| {
            let former = before.workers.iter().find(|former| former.worker == worker.worker);
            core(former, worker)
        });
        let none = Counts::default();
        let (then, now) =
            (before.all.as_ref().unwrap_or(&none), after.all.as_ref().unwrap_or(&none));
        let interval = Interval::between(then.now, now.now);
        let sums_then = sums(then);
        let mut functions: BTreeMap<&str, Sums> = BTreeMap::new();
        let (mut elements, mut drops) = (Vec::new(), Vec::new());
        for element in &now.elements {
            let (name, class) = (element.name.as_str(), element.class.as_str());
            let former = sums_then.get(name).copied().unwrap_or_default();
            let since = Sums::from(element).since(former);
            elements.push(since.line(name, class, interval));
            if let Some((function, _)) = name.split_once('/') {
                // What comes from one of its elements to another does not come to it, and what is counted
                // inside is not all that passes.
                let is_device = since.taken.is_some() || since.given.is_some();
                let bytes = since.bytes.filter(|_| is_device);
                functions.entry(function).or_default().add(Sums { packets: None, bytes, ..since });
            }
            let before = then.elements.iter().find(|before| before.name == element.name);
            for (reason, count) in &element.dropped {
                let before = before.and_then(|before| before.dropped.get(reason));
                let before = before.copied().unwrap_or(0);
                if *count > before {
                    let (name, reason) = (name.to_string(), reason.clone());
                    drops.push(Drops { name, reason, dropped: interval.rate(before, *count) });
                }
            }
        }
        let came = |counts: &Counts, function: &str| {
            let found = counts.functions.iter().find(|counted| counted.name == function);
            found.map(|counted| counted.packets)
        };
        for (function, sums) in &mut functions {
            let before = came(then, function).unwrap_or(0);
            sums.packets = came(now, function).map(|now| now.saturating_sub(before));
        }
        let functions = functions.into_iter().map(|(name, sums)| sums.line(name, "", interval));
        Self {
            seconds: interval.seconds(),
            cores: cores.collect(),
            functions: functions.collect(),
            elements,
            drops,
            latencies: now.latencies.iter().filter_map(|now| percentiles(then, now)).collect(),
        }
    }
}

/// Percentiles of what was timed since; nothing if nothing was.
fn percentiles(then: &Counts, now: &LatencyCounts) -> Option<Percentiles> {
    let former = then.latencies.iter().find(|l| (l.of, &l.name) == (now.of, &now.name));
    let former = former.map_or(&[][..], |former| &former.buckets);
    let was = |most: u64| former.iter().find(|bucket| bucket.0 == most).map_or(0, |b| b.1);
    let buckets = now.buckets.iter().map(|&(most, count)| (most, count.saturating_sub(was(most))));
    let buckets: Vec<(u64, u64)> = buckets.collect();
    let packets: u64 = buckets.iter().map(|bucket| bucket.1).sum();
    let of = |thousandth: u64| {
        let wanted = (packets * thousandth).div_ceil(1000).max(1);
        let mut sum = 0;
        let reached = buckets.iter().find(|bucket| {
            sum += bucket.1;
            sum >= wanted
        });
        reached.or(buckets.last()).map_or(0, |bucket| bucket.0)
    };
    (packets > 0).then(|| Percentiles {
        of: now.of,
        name: now.name.clone(),
        packets,
        p50: of(500),
        p90: of(900),
        p99: of(990),
        p999: of(999),
    })
}

#[cfg(test)]
mod tests {
    use super::super::protocol::{FunctionCounts, Traffic};
    use super::*;

    fn reading(now: u64, taken: u64, dropped: u64, busy: u64) -> CountersAnswer {
        let traffic = Traffic { packets: taken, bytes: taken * 100 };
        let element = |name: &str, class: &str| ElementCounts {
            name: name.to_string(),
            class: class.to_string(),
            ..ElementCounts::default()
        };
        let device = ElementCounts {
            taken: Some(traffic),
            packets: Some(taken),
            dropped: [("x".to_string(), dropped)].into(),
            held: 3,
            ..element("f/in", "FromDevice")
        };
        let script = element("f/s", "Script");
        let counter = ElementCounts { counted: Some(traffic), ..element("f/c", "Counter") };
        let function = FunctionCounts { name: "f".to_string(), packets: taken / 2 };
        let counts = Counts { now, taken, busy, rounds: taken / 10, ..Counts::default() };
        let own = Counts { elements: vec![device.clone()], ..counts.clone() };
        let all =
            Counts { elements: vec![device, script, counter], functions: vec![function], ..counts };
        let waiting = [("left".to_string(), 5), ("right".to_string(), 2)].into();
        let (cpu, mhz) = (Some(2), Some(2000.0));
        let worker = WorkerCounts { worker: 0, cpu, mhz, waiting, counts: own };
        CountersAnswer { workers: vec![worker], all: Some(all) }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn rates_are_what_came_since() {
        let (before, after) =
            (reading(SECOND, 100, 5, 1000), reading(3 * SECOND, 300, 25, 401_000));
        let got = Rates::between(&before, &after);
        let core = &got.cores[0];
        assert_eq!((got.seconds, core.taken, core.dropped), (2.0, 100.0, 10.0));
        assert_eq!((core.ns_per_packet, core.cycles_per_packet), (Some(2000.0), Some(4000.0)));
        assert_eq!((core.packets_per_round, core.busy), (Some(10.0), 0.0002));
        assert_eq!(core.waiting, Some(7));
        assert_eq!(got.functions[0].bits, Some(80_000.0), "the device's");
        assert_eq!(got.elements[2].bits, Some(80_000.0));
        assert_eq!(got.elements[0].packets, Some(100.0));
        assert_eq!(got.functions[0].packets, Some(50.0));
        // What nobody counts is not zero.
        assert_eq!((got.elements[0].given, got.elements[1].packets), (None, None));
        assert_eq!((got.drops[0].reason.as_str(), got.drops[0].dropped), ("x", 10.0));
    }

    #[test]
    fn counters_that_were_reset_and_workers_that_came_have_no_rates() {
        let (later, earlier) = (reading(SECOND, 300, 5, 9), reading(2 * SECOND, 100, 5, 10));
        assert_eq!(Rates::between(&later, &earlier).cores[0].taken, 0.0);
        let nothing = CountersAnswer { workers: Vec::new(), all: None };
        assert_eq!(Rates::between(&nothing, &later).cores[0].taken, 0.0);
        assert_eq!(Rates::between(&later, &later).elements[0].packets, Some(0.0), "no time passed");
        assert!(Rates::between(&later, &nothing).elements.is_empty());
    }

    #[test]
    fn percentiles_are_of_what_came_since() {
        let counts = |buckets: &[(u64, u64)]| {
            let (of, name, sum) = (LatencyOf::Element, "x".to_string(), 0);
            let latency = LatencyCounts { of, name, sum, buckets: buckets.to_vec() };
            Counts { latencies: vec![latency], ..Counts::default() }
        };
        let (then, now) = (counts(&[(10, 5)]), counts(&[(10, 5), (20, 990), (30, 10)]));
        let got = percentiles(&then, &now.latencies[0]).unwrap();
        assert_eq!((got.p50, got.p99, got.p999, got.packets), (20, 20, 30, 1000));
        assert_eq!(percentiles(&then, &then.latencies[0]), None);
    }
}
