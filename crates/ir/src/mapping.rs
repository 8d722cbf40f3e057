//! Tables of numbers: which number each of many stands for.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::interval::IntervalSet;

/// Maps numbers to numbers, interval by interval; numbers in no interval to 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mapping {
    /// Of the intervals: tables are large, and asked for often.
    hash: u64,
    /// Least and greatest number, and what they are mapped to; disjoint, in order.
    intervals: Vec<(u128, u128, u128)>,
}

impl Hash for Mapping {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl Mapping {
    /// Of intervals that are disjoint: their least and greatest number, and what all of theirs are
    /// mapped to.
    pub fn new(mut intervals: Vec<(u128, u128, u128)>) -> Self {
        intervals.retain(|&(low, high, value)| low <= high && value != 0);
        intervals.sort_unstable();
        intervals.dedup_by(|next, before| {
            let joined = before.2 == next.2 && before.1.checked_add(1) == Some(next.0);
            if joined {
                before.1 = next.1;
            }
            joined
        });
        let mut hasher = DefaultHasher::new();
        intervals.hash(&mut hasher);
        Self { hash: hasher.finish(), intervals }
    }

    /// The intervals of numbers that are not mapped to 0, in order.
    pub fn intervals(&self) -> &[(u128, u128, u128)] {
        &self.intervals
    }

    /// What a number is mapped to.
    pub fn get(&self, number: u128) -> u128 {
        let at = self.intervals.partition_point(|&(_, high, _)| high < number);
        self.intervals.get(at).filter(|interval| interval.0 <= number).map_or(0, |i| i.2)
    }

    /// What the numbers of a set are mapped to.
    pub fn image(&self, of: &IntervalSet) -> IntervalSet {
        let mut values = Vec::new();
        for &(low, high) in of.intervals() {
            let from = self.intervals.partition_point(|interval| interval.1 < low);
            let mut at = Some(low);
            for &(first, last, value) in &self.intervals[from..] {
                if first > high {
                    break;
                }
                if at.is_some_and(|at| at < first) {
                    values.push((0, 0));
                }
                values.push((value, value));
                at = last.checked_add(1);
            }
            if at.is_some_and(|at| at <= high) {
                values.push((0, 0));
            }
        }
        IntervalSet::from_intervals(values)
    }

    /// The numbers of 128 bits that are mapped into a set.
    pub fn preimage(&self, set: &IntervalSet) -> IntervalSet {
        let inside = |value: u128| set.contains(value);
        let mut numbers = Vec::new();
        let mut at = Some(0);
        for &(low, high, value) in &self.intervals {
            if inside(0)
                && let Some(at) = at
                && at < low
            {
                numbers.push((at, low - 1));
            }
            if inside(value) {
                numbers.push((low, high));
            }
            at = high.checked_add(1);
        }
        if inside(0)
            && let Some(at) = at
        {
            numbers.push((at, u128::MAX));
        }
        IntervalSet::from_intervals(numbers)
    }

    /// The same numbers mapped to what something makes of what they are mapped to now; 0 must
    /// stay 0.
    pub fn map(&self, mut make: impl FnMut(u128) -> u128) -> Self {
        let mut known: BTreeMap<u128, u128> = BTreeMap::new();
        let mut make = |value| *known.entry(value).or_insert_with(|| make(value));
        Self::new(self.intervals.iter().map(|&(l, h, value)| (l, h, make(value))).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mapping() -> impl Strategy<Value = Mapping> {
        proptest::collection::vec((0u128..4, 0u128..6, 0u128..4), 0..6).prop_map(|parts| {
            let (mut at, mut intervals) = (0, Vec::new());
            for (gap, length, value) in parts {
                intervals.push((at + gap, at + gap + length, value));
                at += gap + length + 1;
            }
            Mapping::new(intervals)
        })
    }

    proptest! {
        #[test]
        fn images_are_those_of_each_number(
            mapping in mapping(),
            parts in proptest::collection::vec((0u128..60, 0u128..9), 0..4),
        ) {
            let parts = parts.into_iter().map(|(low, more)| (low, low + more));
            let set = IntervalSet::from_intervals(parts.collect());
            let values: Vec<u128> = (0..80).filter(|&n| set.contains(n)).map(|n| mapping.get(n)).collect();
            let image = mapping.image(&set);
            let preimage = mapping.preimage(&set);
            let doubled = mapping.map(|value| value / 2);
            for n in 0..80 {
                prop_assert_eq!(image.contains(n), values.contains(&n));
                prop_assert_eq!(preimage.contains(n), set.contains(mapping.get(n)));
                prop_assert_eq!(doubled.get(n), mapping.get(n) / 2);
            }
            prop_assert_eq!(preimage.contains(u128::MAX), set.contains(0));
        }
    }
}
