//! Tuple space: rules in hash tables by the bits that they fix, which change in constant time.
//!
//! A table hashes some bits of a key and serves all rules that fix those bits and perhaps more
//! (TupleMerge, Daly et al.). Tables start coarse, so that there are few; a rule whose bucket is
//! full goes to a finer table.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::Classifier;
use crate::linear::Packed;
use crate::rule_set::{Cube, Key, MAX_DIMENSIONS, RuleSet};

/// What looking into a table costs, as [`Classifier::cost`] counts.
const TABLE_COST: usize = 150;
/// What a rule of its bucket costs.
const ENTRY_COST: usize = 60;

/// A bucket of so many rules is full, and a finer table takes the next one, if there can be one.
const FULL: u32 = 8;
/// More tables than this are not made, except one that takes everything.
const MAX_TABLES: usize = 96;
/// No entry, no table.
const NONE: u32 = u32::MAX;

/// Hashes a number quickly. Numbers are the operator's, not the traffic's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mixed(u64);

/// Makes [`Mixed`].
pub(crate) type Mixing = BuildHasherDefault<Mixed>;

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, number: u64) {
        self.0 = fold(number ^ 0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9);
    }
}

/// Multiplies, and folds the product's halves.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    first: u32,
    count: u32,
}

#[derive(Clone, Debug)]
struct Table {
    /// The bits that are hashed.
    mask: Key,
    /// No rule in it is less than this.
    least: u64,
    buckets: HashMap<u64, Bucket, Mixing>,
}

impl Table {
    #[inline]
    fn hash(&self, key: &Key) -> u64 {
        let word = |i: usize| {
            let [low, high] = [2 * i, 2 * i + 1].map(|d| u64::from(key[d] & self.mask[d]));
            low | high << 32
        };
        let left = fold(word(0) ^ 0x9e37_79b9_7f4a_7c15, word(1) ^ 0xbf58_476d_1ce4_e5b9);
        let right = fold(word(2) ^ 0x94d0_49bb_1331_11eb, word(3) ^ 0xd6e8_feb8_6659_fd93);
        fold(left ^ 0xa076_1d64_78bd_642f, right ^ 0xe703_7ed1_a0b4_28db)
    }
}

#[derive(Clone, Debug)]
struct Entry {
    cube: Packed,
    rule: u64,
    table: u32,
    /// Neighbours in the bucket.
    next: u32,
    previous: u32,
    hash: u64,
}

/// Rules in hash tables. A rule's number says its place: the least that matches is found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuples {
    /// The greatest number of each dimension.
    greatest: Key,
    tables: Vec<Table>,
    /// The tables by their least rule.
    order: Vec<u32>,
    /// The tables, those that hash most bits first.
    finest: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl Tuples {
    /// No rules over dimensions with these greatest numbers, and room for some.
    pub(crate) fn new(greatest: Key, room: usize) -> Self {
        Self { greatest, entries: Vec::with_capacity(room), ..Self::default() }
    }

    /// All cubes with their rules, in no order.
    pub(crate) fn cubes(&self) -> impl Iterator<Item = (u64, Cube)> {
        let used = self.entries.iter().filter(|entry| entry.table != NONE);
        used.map(|entry| (entry.rule, entry.cube.unpacked()))
    }

    /// Takes all rules out, keeping the memory of entries.
    pub(crate) fn clear(&mut self) {
        self.tables.clear();
        self.order.clear();
        self.finest.clear();
        self.entries.clear();
        self.free.clear();
    }

    /// Adds a cube; gives its entry, by which it is removed.
    pub(crate) fn insert(&mut self, cube: &Cube, rule: u64) -> u32 {
        let (table, hash) = self.choose(cube);
        let at = self.free.pop().unwrap_or(self.entries.len() as u32);
        let entry =
            Entry { cube: Packed::new(cube), rule, table, next: NONE, previous: NONE, hash };
        match self.entries.get_mut(at as usize) {
            Some(place) => *place = entry,
            None => self.entries.push(entry),
        }
        let home = &mut self.tables[table as usize];
        let bucket = home.buckets.entry(hash).or_insert(Bucket { first: NONE, count: 0 });
        let next = std::mem::replace(&mut bucket.first, at);
        bucket.count += 1;
        self.entries[at as usize].next = next;
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.previous = at;
        }
        if rule < home.least {
            home.least = rule;
            let tables = &self.tables;
            let place = self.order.iter().position(|&t| t == table).unwrap_or(0);
            let new = self.order.partition_point(|&t| tables[t as usize].least < rule);
            if new < place {
                self.order[new..=place].rotate_right(1);
            }
        }
        at
    }

    /// Removes an entry that `insert` gave.
    pub(crate) fn remove(&mut self, at: u32) {
        let Entry { table, next, previous, hash, .. } = self.entries[at as usize];
        let buckets = &mut self.tables[table as usize].buckets;
        if let Some(bucket) = buckets.get_mut(&hash) {
            bucket.count -= 1;
            if bucket.first == at {
                bucket.first = next;
            }
            if bucket.count == 0 {
                buckets.remove(&hash);
            }
        }
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.previous = previous;
        }
        if let Some(previous) = self.entries.get_mut(previous as usize) {
            previous.next = next;
        }
        self.entries[at as usize].table = NONE;
        self.free.push(at);
        let emptied = &mut self.tables[table as usize];
        if emptied.buckets.is_empty() {
            emptied.least = u64::MAX;
            self.order.retain(|&t| t != table);
            self.order.push(table);
        }
    }

    /// The least wanted rule below `bound` that holds the key.
    #[inline]
    pub(crate) fn lookup(
        &self,
        key: &Key,
        bound: u64,
        wanted: impl Fn(u64) -> bool,
    ) -> Option<u64> {
        self.trace(key, bound, wanted).0
    }

    /// The same, with how many tables and rules were looked at.
    #[inline(always)]
    pub(crate) fn trace(
        &self,
        key: &Key,
        bound: u64,
        wanted: impl Fn(u64) -> bool,
    ) -> (Option<u64>, [usize; 2]) {
        let (mut best, mut looked) = (bound, [0; 2]);
        for &table in &self.order {
            let table = &self.tables[table as usize];
            if best <= table.least {
                break;
            }
            looked[0] += 1;
            let bucket = table.buckets.get(&table.hash(key));
            let mut at = bucket.map_or(NONE, |bucket| bucket.first);
            while let Some(entry) = self.entries.get(at as usize) {
                looked[1] += 1;
                if entry.rule < best && entry.cube.contains(key) && wanted(entry.rule) {
                    best = entry.rule;
                }
                at = entry.next;
            }
        }
        ((best < bound).then_some(best), looked)
    }

    /// The table for a cube that fixes these bits, and the hash of its bucket there: the finest
    /// there is whose bucket is not full, or a new one.
    fn choose(&mut self, cube: &Cube) -> (u32, u64) {
        let fixed = fixed_bits(cube, &self.greatest, GRAINS - 1);
        let fits = |t: &u32| covers(&fixed, &self.tables[*t as usize].mask);
        let finest = self.finest.iter().copied().find(fits);
        let mut wanted = fixed_bits(cube, &self.greatest, 0);
        if let Some(finest) = finest {
            let table = &self.tables[finest as usize];
            let hash = table.hash(&cube.low);
            if table.buckets.get(&hash).is_none_or(|bucket| bucket.count < FULL) {
                return (finest, hash);
            }
            let finer = (1..GRAINS).map(|grain| fixed_bits(cube, &self.greatest, grain));
            let mut finer = finer.filter(|m| covers(m, &table.mask) && *m != table.mask);
            match finer.next() {
                Some(mask) if self.tables.len() < MAX_TABLES => wanted = mask,
                _ => return (finest, hash),
            }
        } else if self.tables.len() >= MAX_TABLES {
            wanted = Key::default();
        }
        let table = Table { mask: wanted, least: u64::MAX, buckets: HashMap::default() };
        let hash = table.hash(&cube.low);
        self.tables.push(table);
        let bits = |mask: &Key| mask.iter().map(|m| m.count_ones()).sum::<u32>();
        let finer = |t: &u32| bits(&self.tables[*t as usize].mask) > bits(&wanted);
        let at = self.finest.partition_point(finer);
        self.finest.insert(at, self.tables.len() as u32 - 1);
        self.order.push(self.tables.len() as u32 - 1);
        (self.tables.len() as u32 - 1, hash)
    }

    pub(crate) fn memory(&self) -> usize {
        let buckets: usize = self.tables.iter().map(|t| t.buckets.capacity()).sum();
        size_of_val(&self.entries[..]) + buckets * (size_of::<(u64, Bucket)>() + 1)
    }
}

/// Whether `mask` holds all bits of `other`.
fn covers(mask: &Key, other: &Key) -> bool {
    (0..MAX_DIMENSIONS).all(|d| mask[d] & other[d] == other[d])
}

/// Masks that round the bits of a table down, coarse first.
const GRAINS: usize = 3;

/// The leading bits that all numbers of a cube share in a dimension with this greatest number,
/// or fewer, so that more cubes share a table.
fn fixed_bits(cube: &Cube, greatest: &Key, grain: usize) -> Key {
    std::array::from_fn(|d| {
        let width = 32 - greatest[d].leading_zeros();
        let unused = greatest[d].leading_zeros();
        let fixed = (cube.low[d] ^ cube.high[d]).leading_zeros() - unused;
        let kept = match (grain, width) {
            (0, 32) => fixed.min(16) / 16 * 16,
            (0, _) => 0,
            (1, 32) => fixed / 8 * 8,
            (1, _) if fixed < width => 0,
            _ => fixed,
        };
        let ones = |bits: u32| u32::MAX.checked_shl(32 - bits).unwrap_or(0);
        ones(unused + kept) & !ones(unused)
    })
}

/// The structure that is made quickly: hash tables by the bits that rules fix.
#[derive(Clone, Debug)]
pub struct TupleSpace(Tuples);

impl TupleSpace {
    /// Takes the rules' cubes.
    pub fn new(rules: &RuleSet) -> Self {
        let mut tuples = Tuples::new(*rules.greatest(), rules.cubes().len());
        for cube in rules.cubes() {
            tuples.insert(cube, cube.rule.into());
        }
        Self(tuples)
    }
}

impl Classifier for TupleSpace {
    fn lookup(&self, key: &Key) -> Option<u32> {
        self.0.lookup(key, u64::MAX, |_| true).map(|rule| rule as u32)
    }

    fn describe(&self) -> String {
        format!("{} hash tables of {} cubes", self.0.tables.len(), self.0.entries.len())
    }

    fn memory(&self) -> usize {
        self.0.memory()
    }

    fn cost(&self, key: &Key) -> usize {
        let (_, [tables, entries]) = self.0.trace(key, u64::MAX, |_| true);
        TABLE_COST * tables + ENTRY_COST * entries
    }
}
