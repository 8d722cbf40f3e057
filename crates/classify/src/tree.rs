//! Decision trees: nodes that split the space sixteen ways, leaves that are short lists.
//!
//! A node compares the number of one dimension with up to 15 bounds and fills two cache lines, so
//! that thousands of rules are told apart in three or four steps wherever their bounds lie
//! (HyperSplit's choice of bounds, but many at a time). Cubes that are wide in the dimension of
//! a split stand in many children. To keep that in check, cubes are grouped by the dimensions
//! that they are narrow in, each group with a tree of its own (EffiCuts, CutSplit), and a
//! budget caps the entries of all leaves: where it is spent, leaves grow longer instead.

use crate::Classifier;
use crate::linear::Packed;
use crate::rule_set::{Cube, Key, MAX_DIMENSIONS, RuleSet};

/// Children of a node.
const WAYS: usize = 16;
/// A leaf of so many cubes is not split.
const BUCKET: usize = 4;
/// Entries in leaves for every cube of the set.
const REPLICATION: usize = 6;
/// Depth that no tree exceeds.
const MAX_DEPTH: usize = 24;
/// Keys that a batch walks down the trees side by side.
const LANES: usize = 32;

/// With fewer entries than this all is in the nearest caches, and there is no latency to hide.
const NEAR: usize = 2048;

/// What a step down a tree costs, as [`Classifier::cost`] counts.
const NODE_COST: usize = 8;
/// What an entry of a leaf costs.
const ENTRY_COST: usize = 6;

/// References to leaves have this bit; the others are to nodes.
const LEAF: u32 = 1 << 31;
/// The leaf without cubes.
const EMPTY: u32 = u32::MAX;
/// Marks the last entry of a leaf in `Forest::rules`.
const LAST: u32 = 1 << 31;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Node {
    /// Child `i` takes numbers from `bounds[i - 1]` on and below `bounds[i]`. Unused bounds are
    /// at the end and repeat the last.
    bounds: [u32; WAYS - 1],
    dimension: u32,
    children: [u32; WAYS],
}

impl Node {
    #[inline]
    fn child(&self, key: &Key) -> u32 {
        let number = key[self.dimension as usize % MAX_DIMENSIONS];
        let rank: u32 = self.bounds.iter().map(|&b| u32::from(b <= number)).sum();
        self.children[rank as usize % WAYS]
    }
}

#[derive(Clone, Copy, Debug)]
struct Tree {
    root: u32,
    /// The least rule in it: a key that matches a lesser one need not look.
    least: u32,
}

/// The structure for many rules.
#[derive(Clone, Debug)]
pub struct Forest {
    trees: Vec<Tree>,
    nodes: Vec<Node>,
    /// Entries of leaves, those of a leaf in order of their rules.
    cubes: Vec<Packed>,
    rules: Vec<u32>,
}

impl Forest {
    /// Grows trees over the rules, which must have numbers below 2^31.
    pub fn new(rules: &RuleSet) -> Self {
        let cubes = rules.cubes();
        let mut forest =
            Self { trees: Vec::new(), nodes: Vec::new(), cubes: Vec::new(), rules: Vec::new() };
        let mut groups = group(rules);
        groups.sort_by_key(|g| (cubes[g[0] as usize].rule, usize::MAX - g.len()));
        for members in groups {
            let least = cubes[members[0] as usize].rule;
            let budget = members.len() * REPLICATION + 64;
            let mut builder = Builder { cubes, forest: &mut forest };
            let root = builder.grow(members, &rules.everything(0), budget, MAX_DEPTH);
            forest.trees.push(Tree { root, least });
        }
        forest
    }

    /// The entry that a key matches in a leaf.
    #[inline]
    fn scan(&self, leaf: u32, key: &Key) -> Option<u32> {
        if leaf == EMPTY {
            return None;
        }
        let start = (leaf & !LEAF) as usize;
        for (cube, &rule) in self.cubes[start..].iter().zip(&self.rules[start..]) {
            if cube.contains(key) {
                return Some(rule & !LAST);
            }
            if rule & LAST != 0 {
                break;
            }
        }
        None
    }

    /// Puts the lesser of two matches first.
    #[inline]
    fn better(best: Option<u32>, found: Option<u32>) -> Option<u32> {
        match (best, found) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (best, found) => best.or(found),
        }
    }
}

impl Classifier for Forest {
    fn lookup(&self, key: &Key) -> Option<u32> {
        let mut best = None;
        for tree in &self.trees {
            if best.is_some_and(|b| b <= tree.least) {
                break;
            }
            let mut at = tree.root;
            while at & LEAF == 0 {
                at = self.nodes[at as usize].child(key);
            }
            best = Self::better(best, self.scan(at, key));
        }
        best
    }

    fn lookup_batch(&self, keys: &[Key], found: &mut [Option<u32>]) {
        if self.cubes.len() < NEAR {
            for (key, found) in keys.iter().zip(&mut found[..keys.len()]) {
                *found = self.lookup(key);
            }
            return;
        }
        for (keys, found) in keys.chunks(LANES).zip(found[..keys.len()].chunks_mut(LANES)) {
            found.fill(None);
            for tree in &self.trees {
                // All keys take a step before any takes the next: the loads overlap.
                let mut at = [EMPTY; LANES];
                for (at, best) in at.iter_mut().zip(&*found) {
                    let settled = best.is_some_and(|b| b <= tree.least);
                    *at = if settled { EMPTY } else { tree.root };
                }
                let mut walking = true;
                while walking {
                    walking = false;
                    for (at, key) in at.iter_mut().zip(keys) {
                        if *at & LEAF == 0 {
                            *at = self.nodes[*at as usize].child(key);
                            walking = true;
                        }
                    }
                }
                for ((at, key), best) in at.iter().zip(keys).zip(found.iter_mut()) {
                    *best = Self::better(*best, self.scan(*at, key));
                }
            }
        }
    }

    fn describe(&self) -> String {
        let (trees, nodes, entries) = (self.trees.len(), self.nodes.len(), self.cubes.len());
        format!("{trees} decision trees of {nodes} nodes and {entries} entries")
    }

    fn memory(&self) -> usize {
        size_of_val(&self.nodes[..]) + size_of_val(&self.cubes[..]) + size_of_val(&self.rules[..])
    }

    fn cost(&self, key: &Key) -> usize {
        let (mut cost, mut best) = (0, None);
        for tree in &self.trees {
            if best.is_some_and(|b| b <= tree.least) {
                break;
            }
            let mut at = tree.root;
            while at & LEAF == 0 {
                cost += NODE_COST;
                at = self.nodes[at as usize].child(key);
            }
            if at != EMPTY {
                let leaf = (at & !LEAF) as usize..;
                let entries = self.cubes[leaf.clone()].iter().zip(&self.rules[leaf]);
                let passed = entries.take_while(|(c, r)| !c.contains(key) && **r & LAST == 0);
                cost += ENTRY_COST * (1 + passed.count());
            }
            best = Self::better(best, self.scan(at, key));
        }
        cost
    }
}

/// Groups cubes by which of the two most telling dimensions they are narrow in.
fn group(rules: &RuleSet) -> Vec<Vec<u32>> {
    let cubes = rules.cubes();
    let distinct = |d: usize| {
        let mut ranges: Vec<_> = cubes.iter().map(|c| (c.low[d], c.high[d])).collect();
        ranges.sort_unstable();
        ranges.dedup();
        ranges.len()
    };
    let mut telling: Vec<usize> = (0..MAX_DIMENSIONS).collect();
    telling.sort_by_key(|&d| std::cmp::Reverse(distinct(d)));
    // Narrow: less than a 256th of what there is.
    let narrow = |c: &Cube, d: usize| (c.high[d] - c.low[d]) <= rules.greatest()[d] >> 8;
    let mut groups = vec![Vec::new(); 4];
    for (i, cube) in (0u32..).zip(cubes) {
        let kind = telling[..2].iter().fold(0, |k, &d| k << 1 | usize::from(narrow(cube, d)));
        groups[kind].push(i);
    }
    groups.retain(|g| !g.is_empty());
    groups
}

struct Builder<'a> {
    cubes: &'a [Cube],
    forest: &'a mut Forest,
}

/// A way to split a region.
struct Split {
    dimension: usize,
    bounds: Vec<u32>,
    /// How many cubes each child has.
    counts: Vec<usize>,
    /// Sum of `counts`.
    total: usize,
    /// Mean length of the children's lists, weighed by their length, times the growth in entries.
    score: f64,
}

impl Builder<'_> {
    /// Grows the tree of a region, whose leaves may hold `budget` entries; gives its root.
    fn grow(&mut self, mut members: Vec<u32>, region: &Cube, budget: usize, depth: usize) -> u32 {
        self.prune(&mut members, region);
        let split = (members.len() > BUCKET && depth > 0)
            .then(|| self.best_split(&members, region, budget))
            .flatten();
        let Some(split) = split else { return self.leaf(&members) };
        let at = self.forest.nodes.len();
        let mut bounds = [*split.bounds.last().unwrap_or(&0); WAYS - 1];
        bounds[..split.bounds.len()].copy_from_slice(&split.bounds);
        self.forest.nodes.push(Node {
            bounds,
            dimension: split.dimension as u32,
            children: [EMPTY; WAYS],
        });
        let mut part = *region;
        let mut children = Vec::with_capacity(WAYS);
        for (i, &count) in split.counts.iter().enumerate() {
            let d = split.dimension;
            part.low[d] = if i == 0 { region.low[d] } else { split.bounds[i - 1] };
            part.high[d] = split.bounds.get(i).map_or(region.high[d], |b| b - 1);
            let inside = |&m: &u32| {
                let cube = &self.cubes[m as usize];
                cube.low[d] <= part.high[d] && part.low[d] <= cube.high[d]
            };
            let inner: Vec<u32> = members.iter().copied().filter(inside).collect();
            debug_assert_eq!(inner.len(), count);
            let share = (budget as u128 * count as u128 / split.total as u128) as usize;
            children.push(self.grow(inner, &part, share, depth - 1));
        }
        // Repeated bounds rank every larger number past them: the last child stands for all.
        let last = children.last().copied().unwrap_or(EMPTY);
        children.resize(WAYS, last);
        self.forest.nodes[at].children.copy_from_slice(&children);
        at as u32
    }

    /// Removes cubes that can match no key of the region because a lesser rule takes it.
    fn prune(&self, members: &mut Vec<u32>, region: &Cube) {
        let all = members.iter().position(|&m| self.cubes[m as usize].covers(region));
        if let Some(all) = all {
            members.truncate(all + 1);
        }
        if members.len() > 32 {
            return;
        }
        let clipped = |m: u32| {
            let mut cube = self.cubes[m as usize];
            for d in 0..MAX_DIMENSIONS {
                cube.low[d] = cube.low[d].max(region.low[d]);
                cube.high[d] = cube.high[d].min(region.high[d]);
            }
            cube
        };
        let mut kept: Vec<Cube> = Vec::with_capacity(members.len());
        members.retain(|&m| {
            let cube = clipped(m);
            let wanted = !kept.iter().any(|k| k.covers(&cube));
            if wanted {
                kept.push(cube);
            }
            wanted
        });
    }

    fn leaf(&mut self, members: &[u32]) -> u32 {
        let Some((&last, rest)) = members.split_last() else { return EMPTY };
        let at = self.forest.cubes.len() as u32;
        for &m in rest {
            self.forest.cubes.push(Packed::new(&self.cubes[m as usize]));
            self.forest.rules.push(self.cubes[m as usize].rule);
        }
        self.forest.cubes.push(Packed::new(&self.cubes[last as usize]));
        self.forest.rules.push(self.cubes[last as usize].rule | LAST);
        at | LEAF
    }

    /// The split that leaves the shortest lists, if any is worth it within the budget.
    fn best_split(&self, members: &[u32], region: &Cube, budget: usize) -> Option<Split> {
        let splits = (0..MAX_DIMENSIONS).filter_map(|d| self.split(members, region, budget, d));
        let best = splits.min_by(|a, b| a.score.total_cmp(&b.score))?;
        (best.score < 0.95 * members.len() as f64).then_some(best)
    }

    /// The finest split in a dimension that the budget allows, its bounds taken so that about as
    /// many cubes start or end in one part as in another.
    fn split(&self, members: &[u32], region: &Cube, budget: usize, d: usize) -> Option<Split> {
        let mut ends = Vec::with_capacity(2 * members.len());
        for &m in members {
            let cube = &self.cubes[m as usize];
            if cube.low[d] > region.low[d] {
                ends.push(cube.low[d]);
            }
            if cube.high[d] < region.high[d] {
                ends.push(cube.high[d] + 1);
            }
        }
        if ends.is_empty() {
            return None;
        }
        ends.sort_unstable();
        let mut ways = WAYS;
        while ways > 1 {
            let mut bounds: Vec<u32> = (1..ways).map(|i| ends[i * ends.len() / ways]).collect();
            bounds.dedup();
            let mut starts = [0usize; WAYS + 1];
            let mut stops = [0usize; WAYS + 1];
            let rank = |number: u32| bounds.iter().filter(|&&b| b <= number).count();
            for &m in members {
                let cube = &self.cubes[m as usize];
                starts[rank(cube.low[d])] += 1;
                stops[rank(cube.high[d]) + 1] += 1;
            }
            let mut inside = 0;
            let counts: Vec<usize> = (0..=bounds.len())
                .map(|i| {
                    inside += starts[i];
                    inside -= stops[i];
                    inside
                })
                .collect();
            let total: usize = counts.iter().sum();
            if total <= budget {
                let squares: f64 = counts.iter().map(|&n| n as f64 * n as f64).sum();
                let score = squares / members.len() as f64;
                return Some(Split { dimension: d, bounds, counts, total, score });
            }
            ways /= 2;
        }
        None
    }
}
