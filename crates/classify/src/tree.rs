//! Hash tables and decision trees: from thousands of rules to the few that a key may match.
//!
//! Where rules fix the leading bits of one dimension or two, a hash table of these bits leads to the few that share them
//! (TupleMerge, Daly et al.), and mostly to none at all. The others stand in trees: a node compares the number of one
//! dimension with up to 15 bounds at once, so that thousands of rules are distinguished in three or four steps wherever
//! their bounds lie (HyperSplit's choice of bounds, but many at a time). Both end in leaves, short lists that are compared
//! four cubes at once. The keys of a batch go side by side, each step prefetching what the next one reads. Tables and
//! trees are taken by their least rules: whoever writes rules mostly puts narrow ones first, so that many keys have found
//! theirs in the first table, and go past all that has only greater ones.

use crate::Classifier;
use crate::block::{self, Layout, NO_RULE};
use crate::rule_set::{Key, MAX_DIMENSIONS, RuleSet};
use crate::simd::{CacheLine, Isa, Level, Portable, Task, prefetch, run};

mod grow;

/// Children of a node.
const FANOUT: usize = 16;
/// What takes no more bytes than this is in a near cache anyway.
const NEAR: usize = 32 << 10;
/// Keys that a batch takes through the forest side by side.
const LANES: usize = 32;
/// Hash tables and trees of a forest, at most.
const MAX_PARTS: usize = 4;

/// References to nodes have this bit; the others are to leaves. The rest is the place of the first line.
const NODE: u32 = 1 << 31;
/// Refers to nothing: a leaf without cubes.
const EMPTY: u32 = 0;

/// What a lookup costs besides, as [`Classifier::cost`] counts.
const FIXED_COST: usize = 25;
/// What a part costs every key, also those that go past it.
const PART_COST: usize = 15;
/// What a look into a table costs.
const TABLE_COST: usize = 20;
/// What a step down a tree costs.
const NODE_COST: usize = 28;
/// What a block of a leaf costs.
const BLOCK_COST: usize = 25;
/// What a line costs, of a forest that takes no more bytes than these: in a near cache and in farther ones.
const LINE_COST: [(usize, usize); 3] = [(NEAR, 0), (4 << 20, 3), (usize::MAX, 10)];

/// A table by the leading bits of one or two numbers.
#[derive(Clone, Debug)]
struct Table {
    /// The places of two numbers in spread keys, and their bits that count.
    numbers: [(usize, u32); 2],
    /// Bits of a hash that are left aside.
    shift: u32,
    /// The first of its slots.
    first: usize,
}

impl Table {
    /// The slot of a spread key.
    #[inline(always)]
    fn slot(&self, key: &CacheLine) -> usize {
        let number = |(place, mask): (usize, u32)| u64::from(key.0[place % MAX_DIMENSIONS] & mask);
        let [a, b] = self.numbers;
        self.first + (hash(number(a), number(b)) >> self.shift) as usize
    }
}

/// Mixes two numbers, of which the upper bits are used.
#[inline(always)]
fn hash(a: u64, b: u64) -> u64 {
    a.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(b.wrapping_mul(0xd6e8_feb8_6659_fd93))
}

/// Where some of the rules are found.
#[derive(Clone, Debug)]
struct Part {
    /// The least of its rules.
    least: u32,
    search: Search,
}

/// How to come to rules.
#[derive(Clone, Debug)]
enum Search {
    /// By what stands in a table.
    Table(Table),
    /// Down a tree from this root.
    Tree(u32),
}

/// The structure for many rules.
#[derive(Clone, Debug)]
pub struct Forest {
    level: Level,
    layout: Layout,
    /// Tables, and trees for what no table takes, by their least rules.
    parts: Vec<Part>,
    /// What stands below each hash of the tables.
    slots: Vec<u32>,
    /// Nodes and leaves. A node has a line of bounds and one of children: child `i` takes numbers from `bounds[i - 1]` on
    /// and below `bounds[i]`. Unused bounds are at the end and repeat the last. Behind the 15 bounds stands the
    /// dimension's place in spread keys.
    lines: Vec<CacheLine>,
    /// Nodes of trees, and cubes in leaves.
    nodes: usize,
    entries: usize,
    /// Bytes of tables and lines.
    memory: usize,
}

impl Forest {
    /// Grows trees over the rules.
    pub fn new(rules: &RuleSet) -> Self {
        Self::at(Level::widest(), rules)
    }

    pub(crate) fn at(level: Level, rules: &RuleSet) -> Self {
        grow::forest(level, rules)
    }

    /// The child of a node that a spread key belongs to.
    #[inline(always)]
    fn child(&self, isa: impl Isa, node: u32, key: &CacheLine) -> u32 {
        let [bounds, children] =
            self.lines[node as usize..].first_chunk().expect("a node has two lines");
        let number = key.0[bounds.0[FANOUT - 1] as usize % MAX_DIMENSIONS];
        children.0[isa.rank(bounds, number) as usize % FANOUT]
    }
}

/// Lanes of a batch, a bit each; the least comes first.
#[derive(Clone, Copy)]
struct Lanes(u32);

impl Lanes {
    /// Adds a lane if so.
    #[inline(always)]
    fn add(&mut self, lane: usize, is_added: bool) {
        self.0 |= u32::from(is_added) << lane;
    }

    /// Those at nodes, and those at leaves, if all are at the same place.
    #[inline(always)]
    fn all_at(self, at: u32) -> [Self; 2] {
        [at & NODE != 0, at.cast_signed() > 0].map(|so| Self(if so { self.0 } else { 0 }))
    }
}

impl Iterator for Lanes {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let lane = self.0.trailing_zeros() as usize % LANES;
        let next = (self.0 != 0).then_some(lane);
        self.0 &= self.0.wrapping_sub(1);
        next
    }
}

struct Walk<'a> {
    forest: &'a Forest,
    keys: &'a [Key],
    found: &'a mut [Option<u32>],
}

impl Task for Walk<'_> {
    #[inline(always)]
    fn run<const W: usize>(self, isa: impl Isa) {
        let mut keys = [CacheLine([0; 16]); LANES];
        let far = self.forest.memory > NEAR;
        for (from, found) in self.keys.chunks(LANES).zip(self.found.chunks_mut(LANES)) {
            for (key, from) in keys.iter_mut().zip(from) {
                *key = isa.spread(from, &self.forest.layout.order);
            }
            let best = if far {
                self.forest.walk::<W, true>(isa, &keys, from.len())
            } else {
                self.forest.walk::<W, false>(isa, &keys, from.len())
            };
            for (found, best) in found.chunks_mut(16).zip(&best) {
                for (found, &rule) in found.iter_mut().zip(&best.0) {
                    *found = (rule != NO_RULE).then_some(rule);
                }
            }
        }
    }
}

impl Forest {
    /// Brings a node or a leaf near.
    #[inline(always)]
    fn prefetch<const W: usize>(&self, at: u32) {
        let first = (at % NODE) as usize;
        (first..first + block::lines(W).max(2)).for_each(|line| prefetch(&self.lines, line));
    }

    /// Takes so many of the spread keys through one part after the other, and gives the least rule for each. A key goes
    /// past parts whose rules are all greater than what it found before. No branch depends on where a single key goes.
    /// With `FAR`, each step prefetches what the next one reads.
    #[inline(always)]
    fn walk<const W: usize, const FAR: bool>(
        &self,
        isa: impl Isa,
        keys: &[CacheLine; LANES],
        count: usize,
    ) -> [CacheLine; 2] {
        let mut best = [CacheLine([NO_RULE; 16]); 2];
        let mut at = [EMPTY; LANES];
        let all = u32::MAX >> (LANES - count);
        for part in &self.parts {
            let [lower, upper] = best.each_ref().map(|line| isa.not_above(line, part.least));
            let coming = Lanes(all & !(lower | upper << 16));
            let (mut nodes, mut leaves) = (Lanes(0), Lanes(0));
            match &part.search {
                Search::Table(table) => {
                    if FAR {
                        for lane in coming {
                            at[lane] = table.slot(&keys[lane]) as u32;
                            prefetch(&self.slots, at[lane] as usize);
                        }
                    }
                    for lane in coming {
                        let slot = if FAR { at[lane] as usize } else { table.slot(&keys[lane]) };
                        let root = self.slots[slot];
                        if FAR {
                            self.prefetch::<W>(root);
                        }
                        at[lane] = root;
                        nodes.add(lane, root & NODE != 0);
                        leaves.add(lane, root.cast_signed() > 0);
                    }
                }
                Search::Tree(root) => {
                    at = [*root; LANES];
                    [nodes, leaves] = coming.all_at(*root);
                }
            }
            while nodes.0 != 0 {
                for lane in std::mem::replace(&mut nodes, Lanes(0)) {
                    let child = self.child(isa, at[lane] % NODE, &keys[lane]);
                    if FAR {
                        self.prefetch::<W>(child);
                    }
                    at[lane] = child;
                    nodes.add(lane, child & NODE != 0);
                    leaves.add(lane, child.cast_signed() > 0);
                }
            }
            while leaves.0 != 0 {
                for lane in std::mem::replace(&mut leaves, Lanes(0)) {
                    let block = &self.lines[at[lane] as usize..];
                    let found = block::find::<W>(isa, block, &keys[lane]);
                    let best = &mut best[lane / 16].0[lane % 16];
                    *best = found.rule.min(*best);
                    at[lane] += block::lines(W) as u32;
                    leaves.0 |= found.continues << lane;
                }
            }
        }
        best
    }
}

impl Forest {
    /// What a key costs in the tables and trees, if this is its rule.
    fn trace(&self, key: &Key, rule: u32) -> usize {
        let spread = Portable.spread(key, &self.layout.order);
        let far = |(most, _): &&(usize, usize)| self.memory <= *most;
        let line = LINE_COST.iter().find(far).map_or(0, |(_, cost)| *cost);
        let mut cost = self.parts.len() * PART_COST;
        for part in self.parts.iter().filter(|part| part.least <= rule) {
            let mut at = match &part.search {
                Search::Table(table) => {
                    cost += TABLE_COST + line;
                    self.slots[table.slot(&spread)]
                }
                Search::Tree(root) => *root,
            };
            while at & NODE != 0 {
                cost += NODE_COST + 2 * line;
                at = self.child(Portable, at % NODE, &spread);
            }
            if at != EMPTY {
                let blocks = self.layout.compared(&self.lines[at as usize..], key);
                cost += blocks * (BLOCK_COST + block::lines(self.layout.width) * line);
            }
        }
        cost
    }
}

impl Classifier for Forest {
    fn lookup(&self, key: &Key) -> Option<u32> {
        let mut found = [None];
        self.lookup_batch(std::slice::from_ref(key), &mut found);
        found[0]
    }

    fn lookup_batch(&self, keys: &[Key], found: &mut [Option<u32>]) {
        let width = self.layout.width;
        run(self.level, width, Walk { forest: self, keys, found: &mut found[..keys.len()] });
    }

    fn describe(&self) -> String {
        let tables = self.parts.iter().filter(|p| matches!(p.search, Search::Table(_))).count();
        let trees = self.parts.len() - tables;
        let (nodes, entries) = (self.nodes, self.entries);
        format!(
            "{tables} hash tables and {trees} decision trees of {nodes} nodes and {entries} entries"
        )
    }

    fn memory(&self) -> usize {
        self.memory
    }

    fn cost(&self, key: &Key) -> usize {
        FIXED_COST + self.trace(key, self.lookup(key).unwrap_or(NO_RULE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BitVector, Linear};

    /// Every level finds what a scan of the definition finds.
    #[test]
    fn levels_agree() {
        let mut random = fastrand::Rng::with_seed(11);
        for width in 1..=MAX_DIMENSIONS {
            let greatest = [1000, u32::MAX, 256, 65536, 7, 70, u32::MAX, 9];
            let mut rules = RuleSet::new(&greatest[..width], 600);
            for rule in 0..600 {
                let mut cube = rules.everything(rule);
                for (d, &greatest) in greatest[..width].iter().enumerate() {
                    if random.u8(..4) > 0 {
                        let (a, b) = (random.u32(..=greatest), random.u32(..=greatest / 8));
                        (cube.low[d], cube.high[d]) = (a, a.saturating_add(b).min(greatest));
                    }
                }
                rules.push(cube).unwrap();
            }
            let key = |_| {
                std::array::from_fn(|d| greatest[..width].get(d).map_or(0, |&g| random.u32(..=g)))
            };
            let keys: Vec<Key> = (0..300).map(key).collect();
            let defined =
                |key: &Key| rules.cubes().iter().find(|c| c.contains(key)).map(|c| c.rule);
            let expected: Vec<_> = keys.iter().map(defined).collect();
            for level in Level::available() {
                let mut found = vec![None; keys.len()];
                Forest::at(level, &rules).lookup_batch(&keys, &mut found);
                assert_eq!(found, expected, "forest, {level:?}, {width}");
                Linear::at(level, &rules).lookup_batch(&keys, &mut found);
                assert_eq!(found, expected, "list, {level:?}, {width}");
                BitVector::at(level, &rules).lookup_batch(&keys, &mut found);
                assert_eq!(found, expected, "bit vectors, {level:?}, {width}");
            }
        }
    }
}
