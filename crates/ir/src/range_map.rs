//! Range maps: which number each of many stands for, interval by interval.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::OnceLock;

use foldhash::fast::FixedState;

use crate::interval::{IntervalSet, seek};

/// Maps numbers to numbers, interval by interval; numbers in no interval to 0.
#[derive(Clone, Debug)]
pub struct RangeMap {
    /// Of the intervals: tables are large, and asked for often.
    hash: u64,
    /// Least and greatest number, and what they are mapped to; disjoint, in order.
    intervals: Vec<(u128, u128, u128)>,
    /// Whether there is nothing between them.
    is_dense: bool,
    /// What their numbers are mapped to, without 0 and with it.
    values: [OnceLock<IntervalSet>; 2],
}

impl PartialEq for RangeMap {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.intervals == other.intervals
    }
}

impl Eq for RangeMap {}

impl PartialOrd for RangeMap {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RangeMap {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.hash, &self.intervals).cmp(&(other.hash, &other.intervals))
    }
}

impl Hash for RangeMap {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl RangeMap {
    /// Of intervals that are disjoint: their least and greatest number, and what all of theirs are
    /// mapped to.
    pub fn new(mut intervals: Vec<(u128, u128, u128)>) -> Self {
        intervals.sort_unstable();
        Self::ordered(intervals)
    }

    /// The same of intervals in order.
    fn ordered(mut intervals: Vec<(u128, u128, u128)>) -> Self {
        intervals.retain(|&(low, high, value)| low <= high && value != 0);
        intervals.dedup_by(|next, before| {
            let joined = before.2 == next.2 && before.1.checked_add(1) == Some(next.0);
            if joined {
                before.1 = next.1;
            }
            joined
        });
        let hash = FixedState::default().hash_one(&intervals);
        let adjoin = |pair: &[(u128, u128, u128)]| pair[0].1.checked_add(1) == Some(pair[1].0);
        let is_dense = intervals.windows(2).all(adjoin);
        Self { hash, intervals, is_dense, values: Default::default() }
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
        // Whether all intervals have numbers of the set, and whether others of it are in none.
        let (all, beside) = match (of.intervals(), &self.intervals[..]) {
            (&[(low, high)], [first, .., last]) if low <= first.0 && last.1 <= high => {
                (true, !self.is_dense || low < first.0 || last.1 < high)
            }
            _ => {
                let (mut met, mut beside) = (0, false);
                self.meet(of, |value| match value {
                    Some(_) => met += 1,
                    None => beside = true,
                });
                (met == self.intervals.len(), beside)
            }
        };
        let set_of = |mut numbers: Vec<u128>| {
            numbers.extend(beside.then_some(0));
            numbers.sort_unstable();
            numbers.dedup();
            IntervalSet::from_intervals(numbers.into_iter().map(|n| (n, n)).collect())
        };
        if all {
            let values = || set_of(self.intervals.iter().map(|interval| interval.2).collect());
            return self.values[usize::from(beside)].get_or_init(values).clone();
        }
        let mut numbers = Vec::new();
        self.meet(of, |value| numbers.extend(value));
        set_of(numbers)
    }

    /// Visits what each interval that has numbers of a set is mapped to, once and in order; `None`
    /// wherever numbers of the set are in no interval.
    fn meet(&self, of: &IntervalSet, mut visit: impl FnMut(Option<u128>)) {
        let (mut at, mut visited) = (0, 0);
        for &(low, high) in of.intervals() {
            at = seek(&self.intervals, at, |interval| interval.1 < low);
            let mut next = Some(low);
            while let Some(&(first, last, value)) = self.intervals.get(at)
                && first <= high
            {
                if next.is_some_and(|next| next < first) {
                    visit(None);
                }
                if visited <= at {
                    visit(Some(value));
                    visited = at + 1;
                }
                next = last.checked_add(1);
                // It may have numbers of the next interval of the set, too.
                if last > high {
                    break;
                }
                at += 1;
            }
            if next.is_some_and(|next| next <= high) {
                visit(None);
            }
        }
    }

    /// The numbers of 128 bits that are mapped into a set.
    pub fn preimage(&self, set: &IntervalSet) -> IntervalSet {
        let zero = set.contains(0);
        let mut numbers = Vec::new();
        let mut at = Some(0);
        for &(low, high, value) in &self.intervals {
            if zero
                && let Some(at) = at
                && at < low
            {
                numbers.push((at, low - 1));
            }
            if set.contains(value) {
                numbers.push((low, high));
            }
            at = high.checked_add(1);
        }
        if zero && let Some(at) = at {
            numbers.push((at, u128::MAX));
        }
        IntervalSet::from_intervals(numbers)
    }

    /// The same numbers mapped to what something makes of what they are mapped to now; 0 must
    /// stay 0.
    pub fn map(&self, make: impl Fn(u128) -> u128) -> Self {
        Self::ordered(self.intervals.iter().map(|&(l, h, value)| (l, h, make(value))).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mapping() -> impl Strategy<Value = RangeMap> {
        proptest::collection::vec((0u128..4, 0u128..6, 0u128..4), 0..6).prop_map(|parts| {
            let (mut at, mut intervals) = (0, Vec::new());
            for (gap, length, value) in parts {
                intervals.push((at + gap, at + gap + length, value));
                at += gap + length + 1;
            }
            RangeMap::new(intervals)
        })
    }

    proptest! {
        #[test]
        fn images_are_those_of_each_number(
            mapping in mapping(),
            parts in proptest::collection::vec((0u128..60, 0u128..9), 0..4),
        ) {
            let parts = parts.into_iter().map(|(low, more)| (low, low + more));
            let mut sets = vec![IntervalSet::from_intervals(parts.collect())];
            // Also sets that hold all intervals, or all but what is between them.
            sets.push(IntervalSet::range(0, 79));
            let inside = mapping.intervals().iter().map(|i| (i.0, i.1)).collect();
            sets.push(IntervalSet::from_intervals(inside));
            for set in sets {
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
}
