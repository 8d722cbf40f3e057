//! Sets of numbers as unions of disjoint intervals (SNF's packet filters, §7.2.1.1).

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

/// A set of numbers of at most 128 bits: sorted, disjoint, non-adjacent closed intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IntervalSet(Shared);

/// Intervals that are put together.
type Intervals = SmallVec<[(u128, u128); 8]>;

/// Most sets are one interval: no allocation then. Clones share others, of which there may be many.
#[derive(Clone)]
enum Shared {
    Few(Option<(u128, u128)>),
    Many(Arc<[(u128, u128)]>),
}

impl Deref for Shared {
    type Target = [(u128, u128)];

    #[inline]
    fn deref(&self) -> &[(u128, u128)] {
        match self {
            Self::Few(interval) => interval.as_slice(),
            Self::Many(intervals) => intervals,
        }
    }
}

impl From<&[(u128, u128)]> for Shared {
    fn from(intervals: &[(u128, u128)]) -> Self {
        match *intervals {
            [] => Self::default(),
            [interval] => Self::Few(Some(interval)),
            _ => Self::Many(intervals.into()),
        }
    }
}

impl From<Intervals> for Shared {
    fn from(intervals: Intervals) -> Self {
        Self::from(&intervals[..])
    }
}

/// Index of the first item from `from` on that does not lie before what is sought. The farther it is
/// away, the longer it takes: to go through a small list along a large one takes hardly more steps
/// than the small one has items.
pub(crate) fn seek<T>(items: &[T], from: usize, is_before: impl Fn(&T) -> bool) -> usize {
    let (mut low, mut step) = (from, 1);
    while items.get(low + step - 1).is_some_and(&is_before) {
        low += step;
        step *= 2;
    }
    let high = items.len().min(low + step - 1);
    low + items[low..high].partition_point(is_before)
}

impl Default for Shared {
    fn default() -> Self {
        Self::Few(None)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq::<[_]>(&**self, &**other) || **self == **other
    }
}

impl Eq for Shared {}

impl Hash for Shared {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl PartialOrd for Shared {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Shared {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

/// How many intervals [`IntervalSet::masked`] makes at the most.
pub const MAX_MASK_INTERVALS: u32 = 1 << 12;

impl IntervalSet {
    /// The empty set.
    pub const fn empty() -> Self {
        Self(Shared::Few(None))
    }

    /// All numbers of `width` bits.
    pub fn full(width: u16) -> Self {
        Self(Shared::Few(Some((0, u128::MAX >> (128 - width)))))
    }

    /// One number.
    pub fn single(value: u128) -> Self {
        Self(Shared::Few(Some((value, value))))
    }

    /// `low..=high`; empty if `low > high`.
    pub fn range(low: u128, high: u128) -> Self {
        if low <= high { Self(Shared::Few(Some((low, high)))) } else { Self::empty() }
    }

    /// The numbers of `width` bits whose first `length` bits are those of `value`.
    pub fn prefix(width: u16, value: u128, length: u16) -> Self {
        let free = u128::MAX.checked_shr(u32::from(128 - width + length)).unwrap_or(0);
        let low = value & (u128::MAX >> (128 - width)) & !free;
        Self(Shared::Few(Some((low, low | free))))
    }

    /// The numbers of `width` bits with `number & mask == value & mask`. `None` if that takes
    /// more than [`MAX_MASK_INTERVALS`] intervals.
    pub fn masked(width: u16, value: u128, mask: u128) -> Option<Self> {
        let all = u128::MAX >> (128 - width);
        let (mask, value) = (mask & all, value & mask & all);
        let low = if mask == 0 { all } else { (1u128 << mask.trailing_zeros()) - 1 };
        // Wild bits above the lowest tested one multiply the intervals.
        let wild = !mask & all & !low;
        if wild.count_ones() > MAX_MASK_INTERVALS.ilog2() {
            return None;
        }
        let mut subset = 0u128;
        let mut intervals = Vec::with_capacity(1 << wild.count_ones());
        loop {
            intervals.push((value | subset, value | subset | low));
            // Next subset of the wild bits, in ascending order.
            subset = subset.wrapping_sub(wild) & wild;
            if subset == 0 {
                break;
            }
        }
        Some(Self::from_intervals(intervals))
    }

    /// Value and mask of a set of numbers of a width that is all numbers with some bits the same.
    pub fn as_masked(&self, width: u16) -> Option<(u128, u128)> {
        let all = u128::MAX >> (128 - width);
        let (value, most) = (self.min()?, self.max().filter(|most| *most <= all)?);
        // The least number has all other bits 0, the greatest has them all 1.
        let wild = value ^ most;
        let low = 1u128.checked_shl(wild.trailing_ones()).unwrap_or(0).wrapping_sub(1);
        let runs = 1usize.checked_shl((wild & !low).count_ones())?;
        let is_run = |(from, to): &(u128, u128)| {
            from & low == 0 && from & !wild == value && to - from == low
        };
        (self.0.len() == runs && self.0.iter().all(is_run)).then_some((value, all & !wild))
    }

    /// The union of any closed intervals, in any order.
    pub fn from_intervals(mut intervals: Vec<(u128, u128)>) -> Self {
        intervals.retain(|(low, high)| low <= high);
        // Mostly they are a few runs in order, which a stable sort merges.
        intervals.sort();
        intervals.dedup_by(|next, last| {
            let joined = next.0 <= last.1.saturating_add(1);
            if joined {
                last.1 = last.1.max(next.1);
            }
            joined
        });
        Self(Shared::from(&intervals[..]))
    }

    /// The union of sets. It takes hardly longer for many of them than for one as large.
    pub fn union_of<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sets = sets.into_iter();
        let (Some(first), second) = (sets.next(), sets.next()) else { return Self::empty() };
        let Some(second) = second else { return first.clone() };
        let all = [first, second].into_iter().chain(sets);
        Self::from_intervals(all.flat_map(|set| set.intervals()).copied().collect())
    }

    /// The intervals, ascending.
    pub fn intervals(&self) -> &[(u128, u128)] {
        &self.0
    }

    /// Whether it holds no number.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it holds every number of `width` bits.
    pub fn is_full(&self, width: u16) -> bool {
        self.0[..] == [(0, u128::MAX >> (128 - width))]
    }

    /// The number, if it holds exactly one.
    pub fn as_single(&self) -> Option<u128> {
        match self.0[..] {
            [(low, high)] if low == high => Some(low),
            _ => None,
        }
    }

    /// How many numbers it holds, or `u128::MAX` if more.
    pub fn count(&self) -> u128 {
        self.0.iter().fold(0u128, |n, (l, h)| n.saturating_add((h - l).saturating_add(1)))
    }

    /// Whether it holds `value`.
    pub fn contains(&self, value: u128) -> bool {
        let i = self.0.partition_point(|&(_, high)| high < value);
        self.0.get(i).is_some_and(|&(low, _)| low <= value)
    }

    /// The least number.
    pub fn min(&self) -> Option<u128> {
        self.0.first().map(|i| i.0)
    }

    /// The greatest number.
    pub fn max(&self) -> Option<u128> {
        self.0.last().map(|i| i.1)
    }

    /// Numbers in both.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        for (all, part) in [(self, other), (other, self)] {
            if let ([(low, high)], Some(least), Some(most)) = (&*all.0, part.min(), part.max())
                && *low <= least
                && most <= *high
            {
                return part.clone();
            }
        }
        let mut out = Intervals::new();
        self.meet(other, |low, high| {
            out.push((low, high));
            true
        });
        Self(out.into())
    }

    /// Whether some number is in both.
    pub fn intersects(&self, other: &Self) -> bool {
        let mut meet = false;
        self.meet(other, |_, _| {
            meet = true;
            false
        });
        meet
    }

    /// Visits the intervals of numbers in both, in order, as long as `visit` wants more.
    fn meet(&self, other: &Self, mut visit: impl FnMut(u128, u128) -> bool) {
        let (mut i, mut j) = (0, 0);
        while let (Some(&(al, ah)), Some(&(bl, bh))) = (self.0.get(i), other.0.get(j)) {
            if ah < bl {
                i = seek(&self.0, i + 1, |interval| interval.1 < bl);
            } else if bh < al {
                j = seek(&other.0, j + 1, |interval| interval.1 < al);
            } else if !visit(al.max(bl), ah.min(bh)) {
                return;
            } else if ah < bh {
                i += 1;
            } else {
                j += 1;
            }
        }
    }

    /// Numbers in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::from_intervals(self.0.iter().chain(&*other.0).copied().collect())
    }

    /// Numbers of `width` bits that it does not hold.
    #[must_use]
    pub fn complement(&self, width: u16) -> Self {
        let max = u128::MAX >> (128 - width);
        let (mut out, mut next) = (Intervals::new(), Some(0));
        for &(low, high) in &*self.0 {
            if let Some(start) = next.filter(|&s| s < low) {
                out.push((start, low - 1));
            }
            next = high.checked_add(1);
        }
        if let Some(start) = next.filter(|&s| s <= max) {
            out.push((start, max));
        }
        Self(out.into())
    }

    /// Numbers in this one and not in `other`.
    #[must_use]
    pub fn subtract(&self, other: &Self) -> Self {
        let (mut out, mut at) = (Intervals::new(), 0);
        for &(low, high) in &*self.0 {
            at = seek(&other.0, at, |interval| interval.1 < low);
            let mut rest = Some(low);
            for &(l, h) in other.0[at..].iter().take_while(|interval| interval.0 <= high) {
                if let Some(start) = rest.filter(|&start| start < l) {
                    out.push((start, l - 1));
                }
                rest = h.checked_add(1);
            }
            if let Some(start) = rest.filter(|&start| start <= high) {
                out.push((start, high));
            }
        }
        Self(out.into())
    }

    /// Whether every number here is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        let mut at = 0;
        std::ptr::eq::<[_]>(&*self.0, &*other.0)
            || self.0.iter().all(|&(low, high)| {
                at = seek(&other.0, at, |interval| interval.1 < low);
                other.0.get(at).is_some_and(|&(l, h)| l <= low && high <= h)
            })
    }
}

impl fmt::Display for IntervalSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (i, (low, high)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            if low == high {
                write!(f, "{comma}{low}")?
            } else {
                write!(f, "{comma}{low}..{high}")?
            }
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn masks_convert_without_loss() {
        let set = IntervalSet::masked(8, 0b0100_0001, 0b1100_0001).unwrap();
        for v in 0..256u128 {
            assert_eq!(set.contains(v), v & 0b1100_0001 == 0b0100_0001, "{v}");
        }
        assert!(IntervalSet::masked(8, 0, 0).unwrap().is_full(8));
        assert_eq!(IntervalSet::masked(128, 1, 1), None);
        assert_eq!(IntervalSet::masked(128, 5, u128::MAX).unwrap().as_single(), Some(5));
        // All sets of numbers of four bits: those that a mask stands for are distinguished.
        let masked = (0..256u128).map(|both| (both & (both >> 4), both >> 4));
        let masked: BTreeSet<(u128, u128)> = masked.collect();
        for numbers in 0..1u128 << 16 {
            let of = (0..16).filter(|number| numbers >> number & 1 == 1);
            let set = IntervalSet::from_intervals(of.map(|number| (number, number)).collect());
            let is = |of: &&(u128, u128)| IntervalSet::masked(4, of.0, of.1).as_ref() == Some(&set);
            assert_eq!(set.as_masked(4), masked.iter().find(is).copied(), "{set}");
        }
        assert_eq!(IntervalSet::full(128).as_masked(128), Some((0, 0)));
        assert_eq!(IntervalSet::full(8).as_masked(4), None);
    }

    #[test]
    fn prefixes_cover_their_range() {
        assert_eq!(
            IntervalSet::prefix(32, 0x0a00_0001, 8),
            IntervalSet::range(0x0a00_0000, 0x0aff_ffff)
        );
        assert!(IntervalSet::prefix(32, 0, 0).is_full(32));
        assert_eq!(IntervalSet::prefix(32, 7, 32).as_single(), Some(7));
        assert!(IntervalSet::prefix(128, 0, 0).is_full(128));
    }

    #[test]
    fn algebra_agrees_with_sets_of_numbers() {
        let sets: Vec<IntervalSet> = (0u32..256)
            .map(|bits| {
                IntervalSet::from_intervals(
                    (0..8).filter(|i| bits >> i & 1 == 1).map(|i| (i as u128, i as u128)).collect(),
                )
            })
            .collect();
        for (a, x) in sets.iter().enumerate() {
            assert_eq!(x.complement(3), sets[!a & 255]);
            for (b, y) in sets.iter().enumerate() {
                assert_eq!(x.intersect(y), sets[a & b]);
                assert_eq!(x.union(y), sets[a | b]);
                assert_eq!(x.subtract(y), sets[a & !b]);
                assert_eq!(x.is_subset(y), a & !b == 0);
                assert_eq!(x.intersects(y), a & b != 0);
            }
        }
    }
    /// The same where one set has many more intervals than the other, which are passed over then.
    #[test]
    fn algebra_of_small_and_large_sets_agrees_with_sets_of_numbers() {
        let random = &mut fastrand::Rng::with_seed(2);
        for sizes in [[0, 200], [1, 200], [3, 200], [40, 200], [200, 2]] {
            let mut set = |size: usize| {
                let numbers: BTreeSet<u128> = (0..size).map(|_| random.u128(..600)).collect();
                let intervals = numbers.iter().map(|&number| (number, number)).collect();
                (IntervalSet::from_intervals(intervals), numbers)
            };
            for _ in 0..20 {
                let ((x, a), (y, b)) = (set(sizes[0]), set(sizes[1]));
                let has = |set: &IntervalSet, numbers: BTreeSet<u128>| {
                    let listed = |&(low, high): &(u128, u128)| low..=high;
                    assert!(set.intervals().iter().flat_map(listed).eq(numbers));
                };
                has(&x.intersect(&y), &a & &b);
                has(&x.subtract(&y), &a - &b);
                has(&y.subtract(&x), &b - &a);
                has(&IntervalSet::union_of([&x, &y, &x]), &a | &b);
                assert_eq!(x.intersects(&y), !a.is_disjoint(&b));
                assert_eq!(x.is_subset(&y), a.is_subset(&b));
                assert!(x.intersect(&y).is_subset(&y));
            }
        }
    }
}
