//! Which of many ranges a number is in.

use std::collections::HashMap;

use classify::lpm::PrefixMap;
use ir::program::StepId;
use ir::{IntervalSet, RangeMap};

use super::simd::{Column, LANES};

/// Of so many ranges, the one is found as the longest prefix of a number is: that takes fewer
/// places in memory than halving.
const MANY: usize = 500;

/// Numbers by range.
pub(super) struct RangeTable {
    found_by: Found,
    /// The number of each range, each once, and behind them that of no range.
    values: Vec<u32>,
}

enum Found {
    /// Ranges in order, and the indices of their numbers.
    Halving(Vec<(u32, u32, u32)>),
    Prefixes(Box<PrefixMap<u32>>),
}

impl RangeTable {
    /// Of ranges from a least to a greatest number, each with a number; they are disjoint.
    pub(super) fn new(mut ranges: Vec<(u32, u32, u32)>, otherwise: u32) -> Self {
        ranges.sort_unstable();
        let (mut values, mut known) = (Vec::new(), HashMap::new());
        for (.., value) in &mut ranges {
            *value = *known.entry(*value).or_insert_with(|| {
                values.push(*value);
                values.len() as u32 - 1
            });
        }
        values.push(otherwise);
        let found_by = match ranges.len() {
            ..MANY => Found::Halving(ranges),
            _ => Found::Prefixes(Box::new(ranges.into_iter().flat_map(prefixes).collect())),
        };
        Self { found_by, values }
    }

    /// The steps that the cases of a switch lead to.
    pub(super) fn of_cases(cases: &[(IntervalSet, StepId)], otherwise: StepId) -> Self {
        let of_case = |(set, to): &(_, StepId)| {
            let to = to.0;
            let all = ranges_of(set, (0, u32::MAX.into())).unwrap_or_default();
            all.into_iter().map(move |(low, high)| (low, high, to))
        };
        Self::new(cases.iter().flat_map(of_case).collect(), otherwise.0)
    }

    /// What a mapping maps numbers of 32 bits to, if all of that has 32 bits.
    pub(super) fn of_mapping(mapping: &RangeMap) -> Option<Self> {
        // Numbers beyond 32 bits are not asked for.
        let small = mapping.intervals().iter().filter(|interval| interval.0 <= u32::MAX.into());
        let range = |&(low, high, value): &(u128, u128, u128)| {
            let high = u32::try_from(high).unwrap_or(u32::MAX);
            Some((low as u32, high, u32::try_from(value).ok()?))
        };
        Some(Self::new(small.map(range).collect::<Option<Vec<_>>>()?, 0))
    }

    /// All numbers that there are.
    pub(super) fn values(&self) -> impl Iterator<Item = u32> {
        self.values.iter().copied()
    }

    /// Finds the numbers of keys.
    pub(super) fn find_all(&self, keys: &Column, out: &mut Column) {
        let none = self.values.len() - 1;
        match &self.found_by {
            Found::Halving(ranges) => {
                for (key, out) in keys.iter().zip(out) {
                    let at = ranges.partition_point(|&(_, high, _)| high < *key);
                    let range = ranges.get(at).filter(|range| range.0 <= *key);
                    *out = self.values[range.map_or(none, |range| range.2 as usize)];
                }
            }
            Found::Prefixes(map) => {
                let mut found = [None; LANES];
                map.lookup_batch(keys, &mut found);
                for (found, out) in found.iter().zip(out) {
                    *out = self.values[found.map_or(none, |value| value as usize)];
                }
            }
        }
    }
}

/// The prefixes that make up a range.
fn prefixes((low, high, value): (u32, u32, u32)) -> impl Iterator<Item = ((u32, u8), u32)> {
    let mut next = Some(low);
    std::iter::from_fn(move || {
        let low = next?;
        let mut free = low.trailing_zeros().min(32);
        // No further than the last number.
        while free > 0 && u64::from(low) + (1 << free) - 1 > u64::from(high) {
            free -= 1;
        }
        let last = u64::from(low) + (1 << free) - 1;
        next = u32::try_from(last + 1).ok().filter(|&next| next <= high);
        Some(((low, 32 - free as u8), value))
    })
}

/// What a set holds of the numbers of a range, by their lower 32 bits.
pub(super) fn ranges_of(set: &IntervalSet, (least, most): (i128, i128)) -> Option<Vec<(u32, u32)>> {
    // As 128-bit numbers: those from 0 on, and those that wrapped.
    let wrapped = (least < 0).then_some((least as u128, u128::MAX));
    if most >= (1 << 32) + least.min(0) || least < -(1 << 31) {
        return None;
    }
    let parts = [(most >= 0).then_some((0, most as u128)), wrapped];
    let mut ranges = Vec::new();
    for (from, to) in parts.into_iter().flatten() {
        for &(low, high) in set.intervals() {
            if low.max(from) <= high.min(to) {
                ranges.push((low.max(from) as u32, high.min(to) as u32));
            }
        }
    }
    ranges.sort_unstable();
    Some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few ranges are halved, many are prefixes: the same comes of both, at every edge.
    #[test]
    fn a_number_is_found_in_its_range() {
        let random = &mut fastrand::Rng::with_seed(5);
        for count in [0, 1, 7, 2 * MANY] {
            let (mut ranges, mut low) = (Vec::new(), 0u32);
            for _ in 0..count {
                low += random.u32(..2) * random.u32(..1 << 20);
                let bits = random.u32(..21);
                let high = low + random.u32(..1 << bits);
                ranges.push((low, high, random.u32(..)));
                low = high + 1;
            }
            if let Some(last) = ranges.last_mut() {
                last.1 = u32::MAX;
            }
            let table = RangeTable::new(ranges.clone(), 7);
            let edges = ranges.iter().flat_map(|&(low, high, _)| {
                [low, high, low.saturating_sub(1), high.saturating_add(1)]
            });
            let keys: Vec<u32> = edges.chain([0, 1, u32::MAX]).collect();
            for keys in keys.chunks(LANES) {
                let (mut column, mut out) = ([0; LANES], [0; LANES]);
                column[..keys.len()].copy_from_slice(keys);
                table.find_all(&column, &mut out);
                for (key, found) in keys.iter().zip(out) {
                    let range = ranges.iter().find(|(low, high, _)| low <= key && key <= high);
                    assert_eq!(found, range.map_or(7, |range| range.2), "{key} of {count}");
                }
            }
        }
    }
}
