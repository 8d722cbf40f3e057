//! How long packets take: the time of some bursts, at elements, programs and network functions.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use ir::{NodeId, Port};

use crate::functions::Functions;

/// Values of one magnitude are told apart by so many bits: to an eighth.
const BITS: u32 = 3;
/// Buckets up to the greatest number.
const BUCKETS: usize = ((64 - BITS as usize) + 1) << BITS;
/// Of so many bursts one is timed: a prime, so that it is not always the same task's.
const PERIOD: u32 = 127;

/// How often values came, in nanoseconds, to an eighth of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Histogram {
    buckets: Vec<u64>,
    sum: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], sum: 0 }
    }
}

/// The bucket of a value.
fn bucket(value: u64) -> usize {
    match (63 - (value | 1).leading_zeros()).checked_sub(BITS) {
        None => value as usize,
        Some(shift) => ((shift as usize) << BITS) + (value >> shift) as usize,
    }
}

/// The greatest value of a bucket.
fn greatest(bucket: usize) -> u64 {
    match (bucket >> BITS).checked_sub(1) {
        None => bucket as u64,
        Some(shift) => {
            let first = ((bucket & ((1 << BITS) - 1)) | (1 << BITS)) as u64;
            (first << shift) + ((1u64 << shift) - 1)
        }
    }
}

impl Histogram {
    /// Adds a value that came so many times.
    pub fn add(&mut self, value: u64, times: u64) {
        self.buckets[bucket(value)] += times;
        self.sum = self.sum.saturating_add(value.saturating_mul(times));
    }

    /// Adds another's values.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, more)| *sum += more);
        self.sum = self.sum.saturating_add(other.sum);
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The sum of all values.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Buckets with values: the greatest value of each, and how many it has.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let full = self.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        full.map(|(bucket, count)| (greatest(bucket), *count))
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
    /// An element's own code.
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
    pub(crate) fn begin(&mut self) -> Timing {
        self.left = PERIOD;
        let now = Instant::now();
        Timing { begin: now, last: now }
    }

    /// A burst of so many packets was somewhere; `leaves` if that is the end of its way.
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
    fn buckets_hold_values_to_an_eighth() {
        let mut last = None;
        for bucket in 0..BUCKETS {
            let most = greatest(bucket);
            assert_eq!(super::bucket(most), bucket);
            assert!(last.is_none_or(|last| super::bucket(last + 1) == bucket && most > last));
            last = Some(most);
        }
        assert_eq!(last, Some(u64::MAX));
        for value in [1u64, 9, 100, 12_345, 1 << 40] {
            let error = greatest(bucket(value)) - value;
            assert!(error * 8 <= value, "{value}: {error}");
        }
    }
}
