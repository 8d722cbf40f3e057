//! How long packets take: the time of some bursts, at elements, programs and network functions.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ir::{NodeId, Port};

use crate::functions::Functions;

/// Of so many bursts one is timed: a prime, so that it is not always the same task's.
const PERIOD: u32 = 127;

/// Decimal digits to which values are distinguished: their buckets are a sixteenth wide at most.
const DIGITS: u8 = 1;
/// The greatest value that is distinguished from greater ones: an hour.
const LONGEST: u64 = 3_600_000_000_000;

/// How often values came, in nanoseconds, and their exact sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    values: hdrhistogram::Histogram<u64>,
    sum: u64,
    spent: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        let values = hdrhistogram::Histogram::new_with_max(LONGEST, DIGITS);
        let values = values.expect("constants that a histogram can have");
        Self { values, sum: 0, spent: 0 }
    }
}

impl Histogram {
    /// Adds a value that came so many times.
    pub fn add(&mut self, value: u64, times: u64) {
        self.values.saturating_record_n(value, times);
        self.sum = self.sum.saturating_add(value.saturating_mul(times));
        self.spent = self.spent.saturating_add(value);
    }

    /// Adds another's values.
    pub fn merge(&mut self, other: &Self) {
        self.values.add(&other.values).expect("histograms of the same bounds");
        self.sum = self.sum.saturating_add(other.sum);
        self.spent = self.spent.saturating_add(other.spent);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.values.len()
    }

    /// How many values are not greater than this one, which is the greatest of its bucket.
    pub fn below(&self, greatest: u64) -> u64 {
        self.values.count_between(0, greatest)
    }

    /// The sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The sum of what was added, each once however often it came: the time that all bursts took together, where
    /// [`Histogram::sum`] counts it for each packet.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Buckets with values: the greatest value of each, and how many it has.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let recorded = self.values.iter_recorded();
        recorded.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }
}

/// What a latency is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Of {
    /// From when a burst is pushed into the chain until it is where it leaves it, at this element.
    Chain,
    /// A network function: what is spent in its elements and programs.
    Function,
    /// The program that begins at this element.
    Program,
    /// An element's native code.
    Element,
}

/// How long bursts took somewhere, counted for each of their packets.
#[derive(Clone, Debug)]
pub struct Latency {
    /// What it is of.
    pub of: Of,
    /// Its name.
    pub name: String,
    /// Nanoseconds.
    pub histogram: Histogram,
}

/// Times some bursts.
#[derive(Default)]
pub(crate) struct Sampler {
    /// Bursts until the next that is timed; none is while it is 0.
    left: u32,
    histograms: HashMap<(Of, Port), Histogram>,
    functions: Rc<Functions>,
    /// Of the burst that is timed: time and packets by network function.
    spent: Vec<(Duration, u64)>,
}

/// A burst that is timed.
pub(crate) struct Timing {
    begin: Instant,
    last: Instant,
}

impl Sampler {
    pub(crate) fn new(functions: &Rc<Functions>) -> Self {
        let spent = vec![(Duration::ZERO, 0); functions.names().len()];
        Self { left: PERIOD, histograms: HashMap::new(), functions: Rc::clone(functions), spent }
    }

    /// Whether the next burst is to be timed.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        self.left = self.left.wrapping_sub(1);
        self.left == 0
    }

    #[cold]
    #[expect(
        clippy::disallowed_methods,
        reason = "code takes real time, whatever time it simulates"
    )]
    pub(crate) fn begin(&mut self) -> Timing {
        self.left = PERIOD;
        let now = Instant::now();
        Timing { begin: now, last: now }
    }

    /// A burst of so many packets was somewhere; `leaves` if that is the end of its path.
    #[expect(
        clippy::disallowed_methods,
        reason = "code takes real time, whatever time it simulates"
    )]
    pub(crate) fn passed(
        &mut self,
        timing: &mut Timing,
        (of, at): (Of, Port),
        elements: impl Iterator<Item = NodeId>,
        (packets, leaves): (u64, bool),
    ) {
        let now = Instant::now();
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        let time = now.duration_since(timing.last);
        timing.last = now;
        self.histograms.entry((of, at)).or_default().add(nanoseconds(time), packets);
        if let Some(function) = self.functions.of_all(elements) {
            let (spent, most) = &mut self.spent[function];
            (*spent, *most) = (*spent + time, packets.max(*most));
        }
        if leaves {
            let all = nanoseconds(now.duration_since(timing.begin));
            self.histograms.entry((Of::Chain, at)).or_default().add(all, packets);
        }
    }

    pub(crate) fn end(&mut self) {
        for (function, (time, packets)) in self.spent.iter_mut().enumerate() {
            if *packets > 0 {
                let at = (Of::Function, Port { node: function, port: 0 });
                let histogram = self.histograms.entry(at).or_default();
                histogram.add(time.as_nanos() as u64, *packets);
            }
            (*time, *packets) = (Duration::ZERO, 0);
        }
    }

    /// What was measured so far, in the order of the chain; `name` gives an element's.
    pub(crate) fn latencies(&self, name: impl Fn(NodeId) -> String) -> Vec<Latency> {
        let mut all: Vec<_> = self.histograms.iter().collect();
        all.sort_by_key(|(key, _)| **key);
        let latency = |(&(of, at), histogram): (&(Of, Port), &Histogram)| Latency {
            of,
            name: match (of, at.port) {
                (Of::Function, _) => self.functions.names()[at.node].clone(),
                (_, 0) => name(at.node),
                (_, port) => format!("[{port}]{}", name(at.node)),
            },
            histogram: histogram.clone(),
        };
        all.into_iter().map(latency).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_values_to_a_sixteenth() {
        let mut histogram = Histogram::default();
        let values = [0, 1, 9, 31, 100, 255, 12_345, 1 << 40];
        values.iter().for_each(|value| histogram.add(*value, 2));
        histogram.merge(&histogram.clone());
        let buckets: Vec<_> = histogram.buckets().collect();
        assert_eq!((buckets.len(), histogram.count()), (values.len(), 4 * values.len() as u64));
        for (value, (greatest, count)) in values.into_iter().zip(buckets) {
            assert!(value <= greatest && (greatest - value) * 16 <= value, "{value}: {greatest}");
            assert_eq!(count, 4);
        }
        assert_eq!(histogram.sum(), 4 * values.iter().sum::<u64>());
        assert_eq!(histogram.below(255), 6 * 4);
        histogram.add(u64::MAX, 1);
        assert!(histogram.buckets().last().is_some_and(|(greatest, _)| greatest >= LONGEST));
    }
}
