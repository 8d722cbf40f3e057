//! Longest-prefix match for IPv4 and IPv6 addresses.
//!
//! A few prefixes are kept as sorted ranges that fit in the nearest cache. Many are kept in a
//! Poptrie (Asai and Ohara): a table over the first 16 bits, then nodes of 64 children that are
//! compressed by counting bits.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

/// An address as a number.
pub trait Address: Copy + Ord + Debug {
    /// Its width in bits.
    const BITS: u8;
    /// The least address.
    const ZERO: Self;
    /// `width` (at most 16) bits from bit `offset` on, counted from the most significant; bits
    /// beyond the last are 0.
    fn bits(self, offset: u8, width: u8) -> usize;
    /// The address whose first 16 bits are these, and whose other bits are 0.
    fn from_first(bits: u16) -> Self;
    /// The first `length` bits, with zeros behind.
    #[must_use]
    fn first(self, length: u8) -> Self;
    /// The first `length` bits, with ones behind.
    #[must_use]
    fn last(self, length: u8) -> Self;
    /// The next address, if there is one.
    fn next(self) -> Option<Self>;
    /// How many of the ascending numbers are not above this address.
    fn rank(self, starts: &[Self]) -> usize;
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

        fn from_first(bits: u16) -> Self {
            <$type>::from(bits) << (<$type>::BITS - 16)
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
    fn rank(self, starts: &[Self]) -> usize {
        // Comparing with all is a handful of vector instructions, and no branch to mispredict.
        starts.iter().map(|&s| usize::from(s <= self)).sum()
    }
}

impl Address for u128 {
    address!(u128);

    #[inline]
    fn rank(self, starts: &[Self]) -> usize {
        starts.partition_point(|&s| s <= self)
    }
}

/// Up to so many prefixes are kept as ranges.
const FEW: usize = 24;
/// The first bits, which index a table.
const DIRECT: u8 = 16;
/// Bits that a node tells apart.
const STRIDE: u8 = 6;

/// Prefixes and the numbers (below 2^31) that they stand for.
#[derive(Clone, Debug)]
pub struct PrefixMap<A: Address> {
    /// By address and length: a prefix comes before those inside it.
    prefixes: BTreeMap<(A, u8), u32>,
    index: Index<A>,
}

#[derive(Clone, Debug)]
enum Index<A> {
    Ranges { starts: Vec<A>, values: Vec<Option<u32>> },
    Trie(Trie),
}

impl<A: Address> Default for PrefixMap<A> {
    fn default() -> Self {
        let index = Index::Ranges { starts: Vec::new(), values: Vec::new() };
        Self { prefixes: BTreeMap::new(), index }
    }
}

impl<A: Address> FromIterator<((A, u8), u32)> for PrefixMap<A> {
    /// Of several numbers for a prefix, the last counts.
    fn from_iter<I: IntoIterator<Item = ((A, u8), u32)>>(prefixes: I) -> Self {
        let clean = |((address, length), value): ((A, u8), u32)| {
            ((address.first(length), length.min(A::BITS)), value)
        };
        let mut map = Self::default();
        map.prefixes = prefixes.into_iter().map(clean).collect();
        map.rebuild();
        map
    }
}

impl<A: Address> PrefixMap<A> {
    /// The number of the longest prefix that the address has.
    #[inline]
    pub fn lookup(&self, address: A) -> Option<u32> {
        match &self.index {
            Index::Ranges { starts, values } => {
                address.rank(starts).checked_sub(1).and_then(|i| values[i])
            }
            Index::Trie(trie) => trie.lookup(address),
        }
    }

    /// The number of exactly this prefix.
    pub fn get(&self, address: A, length: u8) -> Option<u32> {
        self.prefixes.get(&(address.first(length), length)).copied()
    }

    /// Adds a prefix, or changes its number; gives the number that it had.
    pub fn insert(&mut self, address: A, length: u8, value: u32) -> Option<u32> {
        let (address, length) = (address.first(length), length.min(A::BITS));
        let old = self.prefixes.insert((address, length), value);
        self.update(address, length);
        old
    }

    /// Removes a prefix; gives the number that it had.
    pub fn remove(&mut self, address: A, length: u8) -> Option<u32> {
        let old = self.prefixes.remove(&(address.first(length), length))?;
        self.update(address.first(length), length);
        Some(old)
    }

    /// Prefixes and their numbers, by address, shorter prefixes first.
    pub fn iter(&self) -> impl Iterator<Item = ((A, u8), u32)> + '_ {
        self.prefixes.iter().map(|(&prefix, &value)| (prefix, value))
    }

    /// Number of prefixes.
    pub fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.prefixes.is_empty()
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
        match &mut self.index {
            Index::Trie(trie) if self.prefixes.len() > FEW && !trie.is_wasteful() => {
                let first = address.bits(0, DIRECT);
                let last = address.last(length).bits(0, DIRECT);
                trie.fill(&self.prefixes, first, last);
            }
            _ => self.rebuild(),
        }
    }

    fn rebuild(&mut self) {
        self.index = if self.prefixes.len() > FEW {
            Index::Trie(Trie::new(&self.prefixes))
        } else {
            ranges(&self.prefixes)
        };
    }
}

/// The ranges of addresses that a few prefixes make.
fn ranges<A: Address>(prefixes: &BTreeMap<(A, u8), u32>) -> Index<A> {
    let ends = prefixes.keys().filter_map(|&(address, length)| address.last(length).next());
    let mut starts: Vec<A> = prefixes.keys().map(|k| k.0).chain(ends).collect();
    starts.sort_unstable();
    starts.dedup();
    let values = starts.iter().map(|&start| longest(prefixes, start, A::BITS)).collect();
    Index::Ranges { starts, values }
}

/// The number of the longest prefix of at most `length` bits that the address has.
fn longest<A: Address>(prefixes: &BTreeMap<(A, u8), u32>, address: A, length: u8) -> Option<u32> {
    (0..=length).rev().find_map(|l| prefixes.get(&(address.first(l), l)).copied())
}

/// In references: a number or nothing follows, not the index of a node.
const LEAF: u32 = 1 << 31;
/// The reference to no number.
const NOTHING: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Which children are nodes.
    nodes: u64,
    /// Where among the other children a run of equal references starts.
    runs: u64,
    /// Index of the first child that is a node.
    first_node: u32,
    /// Index of the first run.
    first_run: u32,
}

#[derive(Clone, Debug)]
struct Trie {
    direct: Vec<u32>,
    nodes: Vec<Node>,
    leaves: Vec<u32>,
    /// Size of nodes and leaves when all were in use.
    fresh: usize,
}

impl Trie {
    fn new<A: Address>(prefixes: &BTreeMap<(A, u8), u32>) -> Self {
        let direct = vec![NOTHING; 1 << DIRECT];
        let mut trie = Self { direct, nodes: Vec::new(), leaves: Vec::new(), fresh: 0 };
        trie.fill(prefixes, 0, (1 << DIRECT) - 1);
        trie.fresh = trie.nodes.len() + trie.leaves.len();
        trie
    }

    /// Whether changes left more behind than there is in use.
    fn is_wasteful(&self) -> bool {
        self.nodes.len() + self.leaves.len() > 2 * self.fresh + 4096
    }

    fn memory(&self) -> usize {
        size_of_val(&self.direct[..]) + size_of_val(&self.nodes[..]) + size_of_val(&self.leaves[..])
    }

    #[inline]
    fn lookup<A: Address>(&self, address: A) -> Option<u32> {
        let mut at = self.direct[address.bits(0, DIRECT)];
        let mut offset = DIRECT;
        while at & LEAF == 0 {
            let node = &self.nodes[at as usize];
            let child = address.bits(offset, STRIDE);
            let up_to = u64::MAX >> (63 - child);
            at = if node.nodes >> child & 1 == 1 {
                node.first_node + (node.nodes & up_to).count_ones() - 1
            } else {
                let run = node.first_run + (node.runs & up_to).count_ones() - 1;
                self.leaves[run as usize]
            };
            offset += STRIDE;
        }
        (at != NOTHING).then_some(at & !LEAF)
    }

    /// Fills entries `first..=last` of the table anew.
    fn fill<A: Address>(&mut self, prefixes: &BTreeMap<(A, u8), u32>, first: usize, last: usize) {
        let low = A::from_first(first as u16);
        let high = A::from_first(last as u16).last(DIRECT);
        let common = ((first ^ last) as u16).leading_zeros() as u8;
        let around = longest(prefixes, low, common).map_or(NOTHING, |v| v | LEAF);
        self.direct[first..=last].fill(around);
        let inside = (Bound::Included((low, 0)), Bound::Included((high, A::BITS)));
        let mut long: Vec<(A, u8, u32)> = Vec::new();
        for (&(address, length), &value) in prefixes.range(inside) {
            if length > DIRECT {
                long.push((address, length, value | LEAF));
            } else {
                let until = address.last(length).bits(0, DIRECT).min(last);
                self.direct[address.bits(0, DIRECT)..=until].fill(value | LEAF);
            }
        }
        for group in long.chunk_by(|a, b| a.0.bits(0, DIRECT) == b.0.bits(0, DIRECT)) {
            let slot = group[0].0.bits(0, DIRECT);
            let at = self.nodes.len();
            self.nodes.push(Node::default());
            self.grow(at, DIRECT, group, self.direct[slot]);
            self.direct[slot] = at as u32;
        }
    }

    /// Makes the node at index `at`, which tells bits from `offset` on apart: `prefixes` are
    /// longer than `offset` bits and have these in common.
    fn grow<A: Address>(&mut self, at: usize, offset: u8, prefixes: &[(A, u8, u32)], around: u32) {
        let mut children = [around; 1 << STRIDE];
        let reach = offset + STRIDE;
        for &(address, length, value) in prefixes.iter().filter(|p| p.1 <= reach) {
            let last = address.last(length).bits(offset, STRIDE);
            // Bits beyond the address are 0 in lookups; filling what they could be does no harm.
            let last = if reach > A::BITS { last | ((1 << (reach - A::BITS)) - 1) } else { last };
            children[address.bits(offset, STRIDE)..=last].fill(value);
        }
        let long: Vec<_> = prefixes.iter().copied().filter(|p| p.1 > reach).collect();
        let groups = || long.chunk_by(|a, b| a.0.bits(offset, STRIDE) == b.0.bits(offset, STRIDE));
        let mut node = Node {
            first_node: self.nodes.len() as u32,
            first_run: self.leaves.len() as u32,
            ..Node::default()
        };
        for group in groups() {
            node.nodes |= 1 << group[0].0.bits(offset, STRIDE);
            self.nodes.push(Node::default());
        }
        let mut run = None;
        for (child, &reference) in children.iter().enumerate() {
            if node.nodes >> child & 1 == 0 && run != Some(reference) {
                node.runs |= 1 << child;
                self.leaves.push(reference);
                run = Some(reference);
            }
        }
        self.nodes[at] = node;
        for (i, group) in groups().enumerate() {
            let child = group[0].0.bits(offset, STRIDE);
            self.grow(node.first_node as usize + i, reach, group, children[child]);
        }
    }
}
