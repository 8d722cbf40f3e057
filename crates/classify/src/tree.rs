//! Decision trees: nodes that split the space sixteen ways, leaves that are short lists.
//!
//! A node compares the number of one dimension with up to 15 bounds at once, so that thousands of
//! rules are told apart in three or four steps wherever their bounds lie (HyperSplit's choice of
//! bounds, but many at a time), and a leaf compares the key with eight cubes at once. The keys of
//! a batch go down side by side, each step bringing near what the next one reads.

use crate::Classifier;
use crate::block::{Blocks, NO_RULE, View};
use crate::rule_set::{Key, MAX_DIMENSIONS, RuleSet};
use crate::simd::{Isa, Level, Line, Portable, Task, prefetch, run};

mod grow;

/// Children of a node.
const WAYS: usize = 16;
/// What takes no more bytes than this is in a near cache anyway.
const NEAR: usize = 96 << 10;
/// Keys that a batch walks down the trees side by side.
const LANES: usize = 32;

/// References to leaves have this bit; the others are to nodes.
const LEAF: u32 = 1 << 31;
/// The leaf without cubes: the first block.
const EMPTY: u32 = LEAF;

/// What a tree costs that is looked into, as [`Classifier::cost`] counts: its leaf included.
const TREE_COST: usize = 70;
/// What a step down a tree costs.
const NODE_COST: usize = 23;
/// What another block of a long leaf costs.
const BLOCK_COST: usize = 60;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(128))]
struct Node {
    /// Child `i` takes numbers from `bounds[i - 1]` on and below `bounds[i]`. Unused bounds are
    /// at the end and repeat the last. Behind the 15 bounds stands the dimension's place in
    /// permuted keys.
    bounds: Line,
    children: Line,
}

impl Node {
    #[inline(always)]
    fn child(&self, isa: impl Isa, key: &Key) -> u32 {
        let number = key[self.bounds.0[WAYS - 1] as usize % MAX_DIMENSIONS];
        self.children.0[isa.rank(&self.bounds, number) as usize % WAYS]
    }
}

#[derive(Clone, Copy, Debug)]
struct Tree {
    root: u32,
    /// The least rule in it: a key that matches a lesser one need not look.
    least: u32,
    /// Steps to the farthest leaf.
    deepest: u8,
}

/// The structure for many rules.
#[derive(Clone, Debug)]
pub struct Forest {
    level: Level,
    trees: Vec<Tree>,
    nodes: Vec<Node>,
    blocks: Blocks,
    /// Cubes in leaves.
    entries: usize,
}

impl Forest {
    /// Grows trees over the rules.
    pub fn new(rules: &RuleSet) -> Self {
        Self::at(Level::widest(), rules)
    }

    pub(crate) fn at(level: Level, rules: &RuleSet) -> Self {
        grow::forest(level, rules)
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
        let blocks = self.forest.blocks.view::<W>();
        let far = self.forest.memory() > NEAR;
        let mut permuted = [[0; MAX_DIMENSIONS]; LANES];
        for (keys, found) in self.keys.chunks(LANES).zip(self.found.chunks_mut(LANES)) {
            for (permuted, key) in permuted.iter_mut().zip(keys) {
                *permuted = blocks.permuted(isa, key);
            }
            let mut best = [NO_RULE; LANES];
            let mut lanes = Lanes { isa, keys: &permuted, count: keys.len(), best: &mut best };
            for tree in &self.forest.trees {
                if far {
                    lanes.walk::<W, true>(tree, &self.forest.nodes, blocks);
                } else {
                    lanes.walk::<W, false>(tree, &self.forest.nodes, blocks);
                }
            }
            for (found, &rule) in found.iter_mut().zip(&best[..keys.len()]) {
                *found = (rule != NO_RULE).then_some(rule);
            }
        }
    }
}

/// Keys on their way.
struct Lanes<'a, I> {
    isa: I,
    keys: &'a [Key; LANES],
    /// How many of the keys count.
    count: usize,
    /// The least rule found for each.
    best: &'a mut [u32; LANES],
}

impl<I: Isa> Lanes<'_, I> {
    /// Takes the keys down a tree. No branch depends on where a single key goes. With `FAR`, each
    /// step brings near what the next one reads.
    #[inline(always)]
    fn walk<const W: usize, const FAR: bool>(
        &mut self,
        tree: &Tree,
        nodes: &[Node],
        blocks: View<'_, W>,
    ) {
        let count = self.count.min(LANES);
        let mut at = [EMPTY; LANES];
        let mut walking = [0u8; LANES];
        let mut left = 0;
        for (lane, (at, &best)) in at[..count].iter_mut().zip(&*self.best).enumerate() {
            let wants = best > tree.least;
            *at = if wants { tree.root } else { EMPTY };
            walking[left % LANES] = lane as u8;
            left += usize::from(wants);
        }
        if left == 0 {
            return;
        }
        let mut depth = 0;
        while left > 0 && depth < tree.deepest {
            depth += 1;
            let mut still = 0;
            for i in 0..left.min(LANES) {
                let lane = usize::from(walking[i]) % LANES;
                let child = nodes[at[lane] as usize].child(self.isa, &self.keys[lane]);
                let walks = child & LEAF == 0;
                if FAR {
                    prefetch(nodes, if walks { child as usize } else { 0 });
                }
                at[lane] = child;
                walking[still % LANES] = lane as u8;
                still += usize::from(walks);
            }
            left = still;
        }
        if FAR {
            for at in &at[..count] {
                blocks.prefetch((at & !LEAF) as usize);
            }
        }
        for ((&at, key), best) in at[..count].iter().zip(self.keys).zip(&mut *self.best) {
            *best = (*best).min(blocks.find(self.isa, (at & !LEAF) as usize, key));
        }
    }
}

impl Forest {
    /// What looking a key up costs, and the rule found or [`NO_RULE`].
    fn trace(&self, key: &Key) -> (usize, u32) {
        let (mut cost, mut best) = (0, NO_RULE);
        let permuted = self.blocks.order().map(|d| key[d as usize]);
        for tree in &self.trees {
            if best <= tree.least {
                continue;
            }
            let mut at = tree.root;
            cost += TREE_COST;
            while at & LEAF == 0 {
                cost += NODE_COST;
                at = self.nodes[at as usize].child(Portable, &permuted);
            }
            let (blocks, rule) = self.blocks.compared((at & !LEAF) as usize, key);
            cost += BLOCK_COST * (blocks - 1);
            best = best.min(rule);
        }
        (cost, best)
    }
}

impl Classifier for Forest {
    fn lookup(&self, key: &Key) -> Option<u32> {
        let mut found = [None];
        self.lookup_batch(std::slice::from_ref(key), &mut found);
        found[0]
    }

    fn lookup_batch(&self, keys: &[Key], found: &mut [Option<u32>]) {
        let width = self.blocks.width();
        run(self.level, width, Walk { forest: self, keys, found: &mut found[..keys.len()] });
    }

    fn describe(&self) -> String {
        let (trees, nodes, entries) = (self.trees.len(), self.nodes.len(), self.entries);
        format!("{trees} decision trees of {nodes} nodes and {entries} entries")
    }

    fn memory(&self) -> usize {
        size_of_val(&self.nodes[..]) + self.blocks.memory()
    }

    fn cost(&self, key: &Key) -> usize {
        self.trace(key).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Linear;

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
            }
        }
    }
}
