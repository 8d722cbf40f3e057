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

impl From<Intervals> for Shared {
    fn from(intervals: Intervals) -> Self {
        match intervals[..] {
            [] => Self::default(),
            [interval] => Self::Few(Some(interval)),
            _ => Self::Many(intervals[..].into()),
        }
    }
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

    /// The union of any closed intervals, in any order.
    pub fn from_intervals(mut intervals: Vec<(u128, u128)>) -> Self {
        intervals.retain(|(low, high)| low <= high);
        intervals.sort_unstable();
        let mut merged = Intervals::new();
        for (low, high) in intervals {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self(merged.into())
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
        let (mut i, mut j, mut out) = (0, 0, Intervals::new());
        while let (Some(&(al, ah)), Some(&(bl, bh))) = (self.0.get(i), other.0.get(j)) {
            if al.max(bl) <= ah.min(bh) {
                out.push((al.max(bl), ah.min(bh)));
            }
            if ah < bh { i += 1 } else { j += 1 }
        }
        Self(out.into())
    }

    /// Whether some number is in both.
    pub fn intersects(&self, other: &Self) -> bool {
        let (mut i, mut j) = (0, 0);
        while let (Some(&(al, ah)), Some(&(bl, bh))) = (self.0.get(i), other.0.get(j)) {
            if al.max(bl) <= ah.min(bh) {
                return true;
            }
            if ah < bh { i += 1 } else { j += 1 }
        }
        false
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
        self.intersect(&other.complement(128))
    }

    /// Whether every number here is in `other`.
    pub fn is_subset(&self, other: &Self) -> bool {
        self.0.iter().all(|&(low, high)| {
            let i = other.0.partition_point(|&(_, h)| h < low);
            other.0.get(i).is_some_and(|&(l, h)| l <= low && high <= h)
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
}
