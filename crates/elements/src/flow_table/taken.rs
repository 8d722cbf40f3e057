//! Which numbers of a pool are taken, so that a free one is found soon however few are left.
//!
//! For each group of keys that differ in one number only (a NAT's port towards one destination)
//! the taken numbers are a tree of 64-bit words: a set bit in the lowest layer is a taken number,
//! one above it a word that is full. Words without a set bit do not exist.
//!
//! Trying one number after the other is as good as long as few are taken. So groups are counted,
//! many together by a hash, and have a tree only while they are crowded, those of small pools once a search
//! took long. It is enough to count some of the
//! numbers: where few of these are taken, a free one is near. What was taken before there was a tree is not in
//! it, and is noted when somebody comes across it: a number that is set is taken, but not the
//! other direction.

use net::flow::FlowHash;

use super::Key;
use super::index::Index;
use super::sizes::Sizes;
use super::slab::{Linked, NONE, Slab};

/// What the numbers of a [`Pool`] are in the keys of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Destination ports.
    Ports,
    /// Destination addresses.
    Addresses,
    /// Destination ports that are ICMP identifiers; see [`crate::nat::rewriter::echo_port`].
    Identifiers,
}

/// Numbers that a pattern hands out, as the keys of answers that arrive at a rewriter have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    /// The rewriter.
    pub member: u8,
    pub numbers: Numbers,
    /// The least and the greatest destination address.
    pub addresses: (u32, u32),
    /// The least and the greatest destination port.
    pub ports: (u16, u16),
}

/// Counts of groups.
const CROWDS: usize = 1 << 14;

/// Groups that have the same place.
#[derive(Clone, Copy, Default)]
struct Crowd {
    /// Numbers of theirs that are counted and taken; what several pools have counts for each.
    taken: u32,
    /// How many numbers their trees have.
    set: u32,
}

impl Crowd {
    /// Whether they have trees, or are to have them.
    #[inline]
    fn is_crowded(self, sizes: &Sizes) -> bool {
        self.taken >= sizes.crowded || self.set > 0
    }
}

impl Pool {
    fn kind(&self) -> usize {
        self.numbers as usize
    }

    /// Whether the number of a key of answers is one that is counted.
    fn counts(&self, key: &Key, sizes: &Sizes) -> bool {
        sizes.is_counted(match self.numbers {
            Numbers::Ports | Numbers::Identifiers => key.dst_port().into(),
            Numbers::Addresses => key.dst(),
        })
    }

    /// Whether answers to a flow that uses a number of the pool carry such a key.
    #[inline]
    fn covers(&self, key: &Key) -> bool {
        let (addresses, ports) = (self.addresses, self.ports);
        (addresses.0..=addresses.1).contains(&key.dst())
            && (ports.0..=ports.1).contains(&key.dst_port())
            && key.map >> 8 == u16::from(self.member)
            && (self.numbers != Numbers::Identifiers
                || key.src_port() == key.dst_port().wrapping_add(1))
    }
}

/// The group of a key among pools of a kind, with 32 low bits to spare, and its number.
#[inline]
fn group_and_number(kind: usize, key: &Key) -> (u128, u32) {
    let map = u128::from(key.map) << 112;
    let (src, dst) = (u128::from(key.src()), u128::from(key.dst()));
    let (src_port, dst_port) = (u128::from(key.src_port()), u128::from(key.dst_port()));
    match kind {
        0 => (map | src << 80 | dst << 48 | src_port << 32, u32::from(key.dst_port())),
        1 => (map | src << 80 | src_port << 64 | dst_port << 48, key.dst()),
        _ => (map | src << 80 | dst << 48, u32::from(key.dst_port())),
    }
}

/// A word of a tree.
#[derive(Clone, Copy)]
struct Word {
    /// Group, kind, layer and place in the layer.
    key: u128,
    bits: u64,
    link: u32,
}

impl Linked for Word {
    const UNUSED: Self = Self { key: 0, bits: 0, link: NONE };

    fn link(&mut self) -> &mut u32 {
        &mut self.link
    }
}

#[inline]
fn hash_of(hash: &FlowHash, key: u128) -> u64 {
    hash.two((key >> 64) as u64, key as u64)
}

/// Where a key's group is counted among pools of a kind.
#[inline]
fn crowd_of(hash: &FlowHash, kind: usize, key: &Key) -> usize {
    let (addresses, ports) = match kind {
        0 => (key.addresses, key.ports & 0xffff_0000),
        1 => (key.addresses & !0xffff_ffff, key.ports),
        _ => (key.addresses, 0),
    };
    let rest = u64::from(ports) << 32 | u64::from(key.map) << 8 | kind as u64;
    hash.two(addresses, rest) as usize % CROWDS
}

/// See the module.
pub(super) struct Taken {
    hash: FlowHash,
    pools: Vec<Pool>,
    crowds: Box<[Crowd]>,
    /// How many of them are crowded.
    crowded: usize,
    trees: Trees,
    sizes: Sizes,
}

impl Taken {
    pub(super) fn new(hash: FlowHash, sizes: Sizes) -> Self {
        let (crowds, trees) = (vec![Crowd::default(); CROWDS].into(), Trees::new(hash.clone()));
        Self { hash, pools: Vec::new(), crowds, crowded: 0, trees, sizes }
    }

    /// Watches a pool from now on; false if it was watched already.
    pub(super) fn watch(&mut self, pool: Pool) -> bool {
        let new = !self.watches(pool);
        if new {
            self.pools.push(pool);
        }
        new
    }

    /// The pools that are watched.
    pub(super) fn pools(&self) -> &[Pool] {
        &self.pools
    }

    pub(super) fn clear(&mut self) {
        self.crowds.fill(Crowd::default());
        self.crowded = 0;
        self.trees = Trees::new(self.hash.clone());
    }

    /// Notes that a key came into use.
    #[inline]
    pub(super) fn add(&mut self, key: &Key) {
        if self.may_count(key) {
            (0..self.pools.len()).for_each(|pool| self.count(pool, key));
        }
    }

    /// Whether anybody counts a key, unless it is of no pool. Most are not, and do not pay for it.
    #[inline]
    fn may_count(&self, key: &Key) -> bool {
        self.crowded > 0
            || self.sizes.is_counted(key.dst_port().into())
            || self.sizes.is_counted(key.dst())
    }

    #[inline(never)]
    fn count(&mut self, pool: usize, key: &Key) {
        let pool = &self.pools[pool];
        if !pool.covers(key) {
            return;
        }
        let crowd = &mut self.crowds[crowd_of(&self.hash, pool.kind(), key)];
        let before = crowd.is_crowded(&self.sizes);
        crowd.taken += u32::from(pool.counts(key, &self.sizes));
        if crowd.is_crowded(&self.sizes) {
            crowd.set += u32::from(self.trees.set(pool.kind(), key));
            self.crowded += usize::from(!before);
        }
    }

    /// Notes that a key of a pool is in use that came into use before its group was crowded.
    pub(super) fn note(&mut self, pool: Pool, key: &Key) {
        let crowd = &mut self.crowds[crowd_of(&self.hash, pool.kind(), key)];
        self.crowded += usize::from(!crowd.is_crowded(&self.sizes));
        crowd.set += u32::from(self.trees.set(pool.kind(), key));
    }

    /// Notes that a key is no longer in use.
    #[inline]
    pub(super) fn remove(&mut self, key: &Key) {
        if self.may_count(key) {
            (0..self.pools.len()).for_each(|pool| self.uncount(pool, key));
        }
    }

    #[inline(never)]
    fn uncount(&mut self, pool: usize, key: &Key) {
        let pool = &self.pools[pool];
        if !pool.covers(key) {
            return;
        }
        let crowd = &mut self.crowds[crowd_of(&self.hash, pool.kind(), key)];
        let before = crowd.is_crowded(&self.sizes);
        crowd.taken -= u32::from(pool.counts(key, &self.sizes));
        if before {
            crowd.set -= u32::from(self.trees.unset(pool.kind(), key));
            self.crowded -= usize::from(!crowd.is_crowded(&self.sizes));
        }
    }

    /// Whether so many of the group's numbers are taken that [`Taken::first_free`] should be asked.
    pub(super) fn is_crowded(&self, pool: Pool, key: &Key) -> bool {
        self.crowds[crowd_of(&self.hash, pool.kind(), key)].is_crowded(&self.sizes)
    }

    /// The least number from `from` to `to` that is not known to be taken, if the pool is watched
    /// and the group crowded: `key` is any key of the group.
    pub(super) fn first_free(&self, pool: Pool, key: &Key, from: u32, to: u32) -> Option<u32> {
        let (group, _) = group_and_number(pool.kind(), key);
        self.trees.first_free(group, pool.kind(), from, to)
    }

    /// How many numbers are known to be taken in all groups: of those that are counted, and in trees.
    #[cfg(test)]
    pub(super) fn counted(&self) -> (u32, u32) {
        assert_eq!(
            self.crowded,
            self.crowds.iter().filter(|crowd| crowd.is_crowded(&self.sizes)).count()
        );
        self.crowds.iter().fold((0, 0), |(taken, set), c| (taken + c.taken, set + c.set))
    }

    pub(super) fn watches(&self, pool: Pool) -> bool {
        self.pools.contains(&pool)
    }
}

/// Sets of numbers, by kind of pool and group.
struct Trees {
    hash: FlowHash,
    words: Slab<Word>,
    index: Index,
}

impl Trees {
    fn new(hash: FlowHash) -> Self {
        Self { hash, words: Slab::new(), index: Index::new() }
    }

    fn word_key(group: u128, kind: usize, layer: u32, place: u64) -> u128 {
        group | (kind as u128) << 30 | u128::from(layer) << 27 | u128::from(place & 0x7ff_ffff)
    }

    fn find(&self, key: u128) -> Option<u32> {
        self.index.find(hash_of(&self.hash, key), |n| self.words.get(n).key == key)
    }

    fn bits(&self, key: u128) -> u64 {
        self.find(key).map_or(0, |n| self.words.get(n).bits)
    }

    /// Adds a key's number to its group's set; whether it was not there.
    #[cold]
    fn set(&mut self, kind: usize, key: &Key) -> bool {
        let (group, number) = group_and_number(kind, key);
        let mut place = u64::from(number);
        let mut new = true;
        for layer in 0.. {
            let key = Self::word_key(group, kind, layer, place >> 6);
            let bit = 1 << (place & 63);
            let full = match self.find(key) {
                Some(n) => {
                    let word = self.words.get_mut(n);
                    new &= layer > 0 || word.bits & bit == 0;
                    word.bits |= bit;
                    word.bits == u64::MAX
                }
                None => {
                    let n = self.words.insert(Word { key, bits: bit, link: 0 });
                    let (words, hash) = (&self.words, &self.hash);
                    let word_hash = |n: u32| hash_of(hash, words.get(n).key);
                    self.index.insert(hash_of(hash, key), n, &word_hash);
                    false
                }
            };
            if !full {
                break;
            }
            place >>= 6;
        }
        new
    }

    /// Removes a key's number from its group's set; whether it was there.
    #[cold]
    fn unset(&mut self, kind: usize, key: &Key) -> bool {
        let (group, number) = group_and_number(kind, key);
        let mut place = u64::from(number);
        let mut was_there = false;
        for layer in 0.. {
            let key = Self::word_key(group, kind, layer, place >> 6);
            let Some(n) = self.find(key) else { break };
            let word = self.words.get_mut(n);
            if layer == 0 {
                was_there = word.bits >> (place & 63) & 1 != 0;
            }
            let was_full = word.bits == u64::MAX;
            word.bits &= !(1 << (place & 63));
            if word.bits == 0 {
                self.words.remove(n);
                self.index.remove(hash_of(&self.hash, key), n);
            }
            if !was_full {
                break;
            }
            place >>= 6;
        }
        was_there
    }

    /// The least number from `from` to `to` that is not in a set.
    fn first_free(&self, group: u128, kind: usize, from: u32, to: u32) -> Option<u32> {
        let word = |layer, place| self.bits(Self::word_key(group, kind, layer, place));
        let (mut layer, mut place) = (0u32, u64::from(from));
        // Up, past what is full, …
        loop {
            let free = !word(layer, place >> 6) & u64::MAX << (place & 63);
            if free != 0 {
                place = place & !63 | u64::from(free.trailing_zeros());
                break;
            }
            (layer, place) = (layer + 1, (place >> 6) + 1);
        }
        // … and down again, to the first of what is not.
        while layer > 0 {
            layer -= 1;
            place = place << 6 | u64::from((!word(layer, place)).trailing_zeros());
        }
        u32::try_from(place).ok().filter(|n| *n <= to)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_the_first_free_number(
            taken in proptest::collection::btree_set(0u32..600, 0..600),
            given_up in proptest::collection::vec(0u32..600, 0..200),
            from in 0u32..600,
            base in prop_oneof![Just(0u32), Just(4000), Just(u32::MAX - 700)],
        ) {
            let mut trees = Trees::new(FlowHash::new(1));
            let kind = Numbers::Addresses as usize;
            let key = |n: u32| Key::new(6, 7, 1, base.wrapping_add(n), 2);
            let (group, _) = group_and_number(kind, &key(0));
            let mut taken = taken;
            taken.iter().for_each(|&n| assert!(trees.set(kind, &key(n))));
            for n in given_up {
                assert_eq!(trees.unset(kind, &key(n)), taken.remove(&n));
            }
            let expected = (from..=600).find(|n| !taken.contains(n)).map(|n| base + n);
            prop_assert_eq!(trees.first_free(group, kind, base + from, base + 600), expected);
            taken.iter().for_each(|&n| assert!(trees.unset(kind, &key(n))));
            prop_assert_eq!(trees.words.len(), 0);
        }
    }

    #[test]
    fn a_full_pool_of_ports_is_seen_at_once() {
        let pool =
            Pool { member: 0, numbers: Numbers::Ports, addresses: (9, 9), ports: (1024, 65535) };
        // With the port that crowds the group.
        for (sizes, crowds) in [(Sizes::SMALL, 1032), (Sizes::USUAL, 1536)] {
            let mut taken = Taken::new(FlowHash::new(1), sizes);
            taken.watch(pool);
            let key = |port| Key::new(17, 1, 53, 9, port);
            for port in (1025..=65535).chain([1024]) {
                assert_eq!(taken.is_crowded(pool, &key(0)), port == 1024 || port > crowds);
                taken.add(&key(port));
            }
            // The tree is told of what was there before.
            for port in 1025..crowds {
                assert_eq!(taken.first_free(pool, &key(0), 1024, 65535), Some(port.into()));
                taken.note(pool, &key(port));
            }
            assert_eq!(taken.first_free(pool, &key(0), 1024, 65535), None);
            taken.remove(&key(60_000));
            assert_eq!(taken.first_free(pool, &key(0), 1024, 65535), Some(60_000));
            assert_eq!(taken.first_free(pool, &key(0), 60_001, 65535), None);
            let other = Key::new(6, 1, 53, 9, 0);
            assert_eq!(taken.first_free(pool, &other, 1024, 65535), Some(1024));
        }
    }

    #[test]
    fn a_group_that_was_left_is_not_crowded() {
        let pool =
            Pool { member: 0, numbers: Numbers::Ports, addresses: (9, 9), ports: (1024, 65535) };
        let mut taken = Taken::new(FlowHash::new(1), Sizes::SMALL);
        taken.watch(pool);
        let key = |port| Key::new(17, 1, 53, 9, port);
        (0..2).for_each(|_| {
            (2000..4000).for_each(|port| taken.add(&key(port)));
            assert!(taken.is_crowded(pool, &key(0)) && taken.trees.words.len() > 0);
            (2000..4000).for_each(|port| taken.remove(&key(port)));
            assert!(!taken.is_crowded(pool, &key(0)));
            assert_eq!((taken.trees.words.len(), taken.counted()), (0, (0, 0)));
        });
    }
}
