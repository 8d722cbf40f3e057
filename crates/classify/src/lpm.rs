//! Longest-prefix match for IPv4 and IPv6 addresses.
//!
//! A few prefixes are kept as sorted ranges that fit in the nearest cache. Many are kept in a
//! Poptrie (Asai and Ohara): a table over the first bits, then nodes of 64 children that are
//! compressed by counting bits.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::simd::{Isa, Level, Task, run};

mod trie;

use trie::Trie;

/// An address as a number.
pub trait Address: Copy + Ord + Debug {
    /// Its width in bits.
    const BITS: u8;
    /// The least address.
    const ZERO: Self;
    /// `width` (at most 32) bits from bit `offset` on, counted from the most significant; bits
    /// beyond the last are 0.
    fn bits(self, offset: u8, width: u8) -> usize;
    /// The address whose first `width` bits are these, and whose other bits are 0.
    fn from_first(bits: usize, width: u8) -> Self;
    /// The first `length` bits, with zeros behind.
    #[must_use]
    fn first(self, length: u8) -> Self;
    /// The first `length` bits, with ones behind.
    #[must_use]
    fn last(self, length: u8) -> Self;
    /// The next address, if there is one.
    fn next(self) -> Option<Self>;
    /// How many of the ascending numbers are not above this address.
    fn rank(self, starts: &[[Self; LANES]]) -> usize;
}

macro_rules! address {
    ($type:ty) => {
        const BITS: u8 = <$type>::BITS as u8;
        const ZERO: Self = 0;

        #[inline]
        fn bits(self, offset: u8, width: u8) -> usize {
            let left = self.checked_shl(u32::from(offset)).unwrap_or(0);
            (left >> (<$type>::BITS - u32::from(width))) as usize
        }

        fn from_first(bits: usize, width: u8) -> Self {
            (bits as $type) << (<$type>::BITS - u32::from(width))
        }

        fn first(self, length: u8) -> Self {
            self & !<$type>::MAX.checked_shr(u32::from(length)).unwrap_or(0)
        }

        fn last(self, length: u8) -> Self {
            self | <$type>::MAX.checked_shr(u32::from(length)).unwrap_or(0)
        }

        fn next(self) -> Option<Self> {
            self.checked_add(1)
        }
    };
}

impl Address for u32 {
    address!(u32);

    #[inline]
    fn rank(self, starts: &[[Self; LANES]]) -> usize {
        // Comparing with all is a handful of vector instructions, and no branch to mispredict.
        let mut above = [0; LANES];
        for starts in starts {
            for (above, &start) in above.iter_mut().zip(starts) {
                *above += u32::from(start > self);
            }
        }
        starts.len() * LANES - above.iter().sum::<u32>() as usize
    }
}

impl Address for u128 {
    address!(u128);

    #[inline]
    fn rank(self, starts: &[[Self; LANES]]) -> usize {
        starts.as_flattened().partition_point(|&s| s <= self)
    }
}

/// Ranges that are compared at once.
const LANES: usize = 8;
/// Up to so many prefixes are kept as ranges.
const FEW: usize = 24;
/// From so many prefixes on, the table is over more bits.
const MANY: usize = 1 << 16;

/// Prefixes and the numbers (below 2^31) that they stand for.
#[derive(Clone, Debug)]
pub struct PrefixMap<A: Address> {
    prefixes: Prefixes<A>,
    /// The prefixes of a bit at least.
    index: Index<A>,
    /// The number of the prefix that all addresses have: it comes and goes without a change to the index.
    everywhere: Option<u32>,
}

/// Prefixes in order.
#[derive(Clone, Debug)]
struct Prefixes<A> {
    /// By address and length: a prefix comes before those inside it.
    map: BTreeMap<(A, u8), u32>,
    /// How many there are of each length.
    counts: Vec<u32>,
}

impl<A: Address> Default for Prefixes<A> {
    fn default() -> Self {
        Self { map: BTreeMap::new(), counts: vec![0; usize::from(A::BITS) + 1] }
    }
}

impl<A: Address> Prefixes<A> {
    fn insert(&mut self, address: A, length: u8, value: u32) -> Option<u32> {
        let old = self.map.insert((address, length), value);
        self.counts[usize::from(length)] += u32::from(old.is_none());
        old
    }

    fn remove(&mut self, address: A, length: u8) -> Option<u32> {
        let old = self.map.remove(&(address, length))?;
        self.counts[usize::from(length)] -= 1;
        Some(old)
    }

    /// The number of the longest prefix of 1 to `length` bits that the address has.
    fn longest(&self, address: A, length: u8) -> Option<u32> {
        let used = |l: &u8| self.counts[usize::from(*l)] > 0;
        let mut lengths = (1..=length).rev().filter(used);
        lengths.find_map(|l| self.map.get(&(address.first(l), l)).copied())
    }

    /// Those of a bit at least that start in a range of addresses.
    fn within(&self, low: A, high: A) -> impl Iterator<Item = (A, u8, u32)> + '_ {
        let inside = self.map.range((low, 1)..=(high, A::BITS));
        inside.map(|(&(address, length), &value)| (address, length, value))
    }
}

#[derive(Clone, Debug)]
enum Index<A> {
    /// Where ranges start, in ascending order, filled up with the last; the value before the first,
    /// and that of each.
    Ranges {
        starts: Vec<[A; LANES]>,
        values: Vec<Option<u32>>,
    },
    Trie(Trie),
}

impl<A: Address> Default for PrefixMap<A> {
    fn default() -> Self {
        let prefixes = Prefixes::default();
        Self { index: ranges(&prefixes), prefixes, everywhere: None }
    }
}

impl<A: Address> FromIterator<((A, u8), u32)> for PrefixMap<A> {
    /// Of several numbers for a prefix, the last counts.
    fn from_iter<I: IntoIterator<Item = ((A, u8), u32)>>(prefixes: I) -> Self {
        let clean = |((address, length), value): ((A, u8), u32)| {
            ((address.first(length), length.min(A::BITS)), value)
        };
        let mut map = Self::default();
        map.prefixes.map = prefixes.into_iter().map(clean).collect();
        for (_, length) in map.prefixes.map.keys() {
            map.prefixes.counts[usize::from(*length)] += 1;
        }
        map.everywhere = map.get(A::ZERO, 0);
        map.rebuild();
        map
    }
}

impl<A: Address> PrefixMap<A> {
    /// The number of the longest prefix that the address has.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<u32> {
        let found = match &self.index {
            Index::Ranges { starts, values } => values[address.rank(starts)],
            Index::Trie(trie) => trie.lookup(address),
        };
        found.or(self.everywhere)
    }

    /// Looks several addresses up at once, which hides the latency of memory.
    ///
    /// # Panics
    /// If `found` is shorter than `addresses`.
    pub fn lookup_batch(&self, addresses: &[A], found: &mut [Option<u32>]) {
        let found = &mut found[..addresses.len()];
        match &self.index {
            Index::Ranges { starts, values } => {
                for (address, found) in addresses.iter().zip(found) {
                    *found = values[address.rank(starts)].or(self.everywhere);
                }
            }
            Index::Trie(trie) => {
                let everywhere = self.everywhere;
                run(Level::widest(), 1, Walk { trie, addresses, everywhere, found });
            }
        }
    }

    /// The number of exactly this prefix.
    pub fn get(&self, address: A, length: u8) -> Option<u32> {
        self.prefixes.map.get(&(address.first(length), length)).copied()
    }

    /// Adds a prefix, or changes its number; gives the number that it had.
    pub fn insert(&mut self, address: A, length: u8, value: u32) -> Option<u32> {
        let (address, length) = (address.first(length), length.min(A::BITS));
        let old = self.prefixes.insert(address, length, value);
        self.update(address, length);
        old
    }

    /// Removes a prefix; gives the number that it had.
    pub fn remove(&mut self, address: A, length: u8) -> Option<u32> {
        let old = self.prefixes.remove(address.first(length), length)?;
        self.update(address.first(length), length);
        Some(old)
    }

    /// Prefixes and their numbers, by address, shorter prefixes first.
    pub fn iter(&self) -> impl Iterator<Item = ((A, u8), u32)> + '_ {
        self.prefixes.map.iter().map(|(&prefix, &value)| (prefix, value))
    }

    /// Number of prefixes.
    pub fn len(&self) -> usize {
        self.prefixes.map.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.prefixes.map.is_empty()
    }

    /// Bytes of memory that lookups touch.
    pub fn memory(&self) -> usize {
        match &self.index {
            Index::Ranges { starts, values } => size_of_val(&starts[..]) + size_of_val(&values[..]),
            Index::Trie(trie) => trie.memory(),
        }
    }

    /// Brings the index up to date where a prefix changed.
    fn update(&mut self, address: A, length: u8) {
        if length == 0 {
            self.everywhere = self.get(A::ZERO, 0);
            return;
        }
        let count = self.prefixes.map.len();
        match &mut self.index {
            Index::Trie(trie) if count > FEW && trie.suits(count) => {
                trie.update(&self.prefixes, address, length);
            }
            _ => self.rebuild(),
        }
    }

    fn rebuild(&mut self) {
        self.index = if self.prefixes.map.len() > FEW {
            Index::Trie(Trie::new(&self.prefixes))
        } else {
            ranges(&self.prefixes)
        };
    }
}

struct Walk<'a, A> {
    trie: &'a Trie,
    addresses: &'a [A],
    everywhere: Option<u32>,
    found: &'a mut [Option<u32>],
}

impl<A: Address> Task for Walk<'_, A> {
    #[inline(always)]
    fn run<const W: usize>(self, _: impl Isa) {
        self.trie.lookup_batch(self.addresses, self.everywhere, self.found);
    }
}

/// The ranges of addresses that a few prefixes make.
fn ranges<A: Address>(prefixes: &Prefixes<A>) -> Index<A> {
    let ends = prefixes.map.keys().filter_map(|&(address, length)| address.last(length).next());
    let mut starts: Vec<A> = prefixes.map.keys().map(|k| k.0).chain(ends).collect();
    starts.sort_unstable();
    starts.dedup();
    if let Some(&last) = starts.last() {
        starts.resize(starts.len().next_multiple_of(LANES), last);
    }
    let values = starts.iter().map(|&start| prefixes.longest(start, A::BITS));
    let values = std::iter::once(None).chain(values).collect();
    Index::Ranges { starts: starts.as_chunks().0.to_vec(), values }
}
