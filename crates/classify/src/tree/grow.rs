//! How trees are grown.
//!
//! Cubes that are wide in the dimension of a split stand in many children. To keep that in check,
//! cubes are grouped by the dimensions that they are narrow in, each group with a tree of its own
//! (EffiCuts, CutSplit), and a budget caps the entries of all leaves: where it is spent, leaves
//! grow longer instead. Groups are put together again where one tree costs less than two.

use std::collections::BTreeMap;

use super::{EMPTY, Forest, LEAF, Node, Tree, WAYS};
use crate::block::{Blocks, NO_RULE};
use crate::classifier::sample;
use crate::rule_set::{Cube, MAX_DIMENSIONS, RuleSet};
use crate::simd::{CUBES, Isa, Level, Line, Portable};

/// Entries in leaves for every cube of the set.
const REPLICATION: usize = 6;
/// How much a split's growth in entries counts against it: as this power, in sets of at most so
/// many cubes. The more there are, the farther the memory is that lookups wait for.
const GROWTH: [(usize, f64); 3] = [(1 << 12, 0.1), (1 << 15, 0.3), (usize::MAX, 0.6)];
/// A split that leaves lists more than this part as long is not worth a step.
const WORTHWHILE: f64 = 0.98;
/// Depth that no tree exceeds.
const MAX_DEPTH: usize = 24;
/// Which groups share a tree is tried out on so many cubes.
const TRIED: usize = 8192;
/// Bounds of a split are chosen among those of so many cubes.
const SAMPLED: usize = 512;

/// Grows trees over the rules.
pub(super) fn forest(level: Level, rules: &RuleSet) -> Forest {
    let groups = merged(level, rules, groups(rules));
    plant(level, rules, &groups)
}

/// A tree for each group.
fn plant(level: Level, rules: &RuleSet, groups: &[Vec<u32>]) -> Forest {
    let cubes = rules.cubes();
    let mut forest = Forest {
        level,
        trees: Vec::new(),
        nodes: Vec::new(),
        blocks: Blocks::for_rules(rules),
        entries: 0,
    };
    forest.blocks.push_empty();
    let small_enough = |(size, _): &&(usize, f64)| cubes.len() <= *size;
    let growth = GROWTH.iter().find(small_enough).map_or(1.0, |g| g.1);
    for members in groups {
        let least = members.iter().map(|&m| cubes[m as usize].rule).min().unwrap_or(0);
        let budget = members.len() * REPLICATION + 64;
        let dimensions = forest.blocks.dimensions().to_vec();
        let mut builder = Builder { cubes, dimensions, growth, forest: &mut forest };
        let root = builder.grow(members.clone(), &rules.everything(0), budget, MAX_DEPTH);
        let deepest = depth(&forest.nodes, root);
        forest.trees.push(Tree { root, least, deepest });
    }
    forest.trees.sort_by_key(|tree| tree.least);
    forest
}

/// Steps from a node to the farthest leaf.
fn depth(nodes: &[Node], at: u32) -> u8 {
    if at & LEAF != 0 {
        return 0;
    }
    let children = nodes[at as usize].children.0.iter();
    children.map(|&child| depth(nodes, child) + 1).max().unwrap_or(0)
}

/// Groups cubes by which of the two most telling dimensions they are narrow in.
fn groups(rules: &RuleSet) -> Vec<Vec<u32>> {
    let cubes = rules.cubes();
    let distinct = |d: usize| {
        let step = (cubes.len() / TRIED).max(1);
        let mut ranges: Vec<_> =
            cubes.iter().step_by(step).map(|c| (c.low[d], c.high[d])).collect();
        ranges.sort_unstable();
        ranges.dedup();
        std::cmp::Reverse(ranges.len())
    };
    let mut telling: Vec<usize> = (0..MAX_DIMENSIONS).collect();
    telling.sort_by_cached_key(|&d| distinct(d));
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

/// A tree over some cubes of some groups: its least rule, and what keys cost and find in it.
struct Trial {
    least: u32,
    outcomes: Vec<(usize, u32)>,
}

/// What lookups in these trees cost together.
fn cost(trials: &mut [&Trial]) -> usize {
    trials.sort_by_key(|trial| trial.least);
    let keys = trials.first().map_or(0, |trial| trial.outcomes.len());
    let lookup = |key: usize| {
        let (mut cost, mut best) = (0, NO_RULE);
        for trial in trials.iter().filter(|trial| !trial.outcomes.is_empty()) {
            if best > trial.least {
                let (more, found) = trial.outcomes[key];
                (cost, best) = (cost + more, best.min(found));
            }
        }
        cost
    };
    (0..keys).map(lookup).sum()
}

/// Puts groups together as long as that makes lookups cheaper, as tried out on some cubes.
fn merged(level: Level, rules: &RuleSet, groups: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    if groups.len() < 2 {
        return groups;
    }
    let keys = sample(rules);
    let step = (rules.cubes().len() / TRIED).max(1);
    // Sets of groups are bits.
    let members = |set: u32, step: usize| {
        let groups = groups.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
        let mut members: Vec<u32> =
            groups.flat_map(|(_, g)| g.iter().copied().step_by(step)).collect();
        members.sort_unstable();
        members
    };
    let mut trials: BTreeMap<u32, Trial> = BTreeMap::new();
    let mut total = |sets: &[u32]| {
        for &set in sets {
            trials.entry(set).or_insert_with(|| {
                let forest = plant(level, rules, &[members(set, step)]);
                let outcomes = keys.iter().map(|key| forest.trace(key)).collect();
                Trial { least: forest.trees[0].least, outcomes }
            });
        }
        cost(&mut sets.iter().map(|set| &trials[set]).collect::<Vec<_>>())
    };
    let mut sets: Vec<u32> = (0..groups.len()).map(|i| 1 << i).collect();
    let mut best = total(&sets);
    loop {
        let mut better = None;
        for a in 0..sets.len() {
            for b in a + 1..sets.len() {
                let mut tried = sets.clone();
                tried[a] |= tried.swap_remove(b);
                let cost = total(&tried);
                if cost < best {
                    (best, better) = (cost, Some(tried));
                }
            }
        }
        match better {
            Some(better) => sets = better,
            None => return sets.into_iter().map(|set| members(set, 1)).collect(),
        }
    }
}

struct Builder<'a> {
    cubes: &'a [Cube],
    dimensions: Vec<u8>,
    growth: f64,
    forest: &'a mut Forest,
}

/// A way to split a region.
struct Split {
    dimension: usize,
    /// Which of the dimensions that tell rules apart that is.
    place: u32,
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
        let split = (members.len() > CUBES && depth > 0)
            .then(|| self.best_split(&members, region, budget))
            .flatten();
        let Some(split) = split else { return self.leaf(&members) };
        let at = self.forest.nodes.len();
        let mut bounds = [*split.bounds.last().unwrap_or(&0); WAYS];
        bounds[..split.bounds.len()].copy_from_slice(&split.bounds);
        bounds[WAYS - 1] = split.place;
        self.forest.nodes.push(Node { bounds: Line(bounds), children: Line([EMPTY; WAYS]) });
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
            let mut inner: Vec<u32> = Vec::with_capacity(count);
            inner.extend(members.iter().copied().filter(inside));
            debug_assert_eq!(inner.len(), count);
            let share = (budget as u128 * count as u128 / split.total as u128) as usize;
            children.push(self.grow(inner, &part, share, depth - 1));
        }
        // Repeated bounds rank every larger number past them: the last child stands for all.
        let last = children.last().copied().unwrap_or(EMPTY);
        children.resize(WAYS, last);
        self.forest.nodes[at].children.0.copy_from_slice(&children);
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
        if members.is_empty() {
            return EMPTY;
        }
        self.forest.entries += members.len();
        let cubes = members.iter().map(|&m| &self.cubes[m as usize]);
        self.forest.blocks.push(cubes) as u32 | LEAF
    }

    /// The split that leaves the shortest lists, if any is worth it within the budget.
    fn best_split(&self, members: &[u32], region: &Cube, budget: usize) -> Option<Split> {
        let splits =
            self.dimensions.iter().zip(0..).filter_map(|(&d, place)| {
                self.split(members, region, budget, usize::from(d), place)
            });
        let best = splits.min_by(|a, b| a.score.total_cmp(&b.score))?;
        (best.score < WORTHWHILE * members.len() as f64).then_some(best)
    }

    /// The finest split in a dimension that the budget allows, its bounds taken so that about as
    /// many cubes start or end in one part as in another.
    fn split(
        &self,
        members: &[u32],
        region: &Cube,
        budget: usize,
        d: usize,
        place: u32,
    ) -> Option<Split> {
        let step = members.len().div_ceil(SAMPLED);
        let mut ends = Vec::with_capacity(2 * SAMPLED);
        for &m in members.iter().step_by(step) {
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
        let mut bounds: Vec<u32> = (1..WAYS).map(|i| ends[i * ends.len() / WAYS]).collect();
        bounds.dedup();
        let mut starts = [0usize; WAYS];
        let mut stops = [0usize; WAYS];
        let mut line = Line([u32::MAX; WAYS]);
        line.0[..bounds.len()].copy_from_slice(&bounds);
        let rank = |number: u32| (Portable.rank(&line, number) as usize).min(bounds.len());
        for &m in members {
            let cube = &self.cubes[m as usize];
            starts[rank(cube.low[d])] += 1;
            stops[rank(cube.high[d])] += 1;
        }
        let (mut starts, mut stops) =
            (starts[..=bounds.len()].to_vec(), stops[..=bounds.len()].to_vec());
        loop {
            let mut inside = 0;
            let count = |(start, stop): (&usize, &usize)| {
                let count = inside + start;
                inside = count - stop;
                count
            };
            let counts: Vec<usize> = starts.iter().zip(&stops).map(count).collect();
            let total: usize = counts.iter().sum();
            if total <= budget {
                let squares: f64 = counts.iter().map(|&n| n as f64 * n as f64).sum();
                let n = members.len() as f64;
                let score = squares / n * (total as f64 / n).powf(self.growth);
                return Some(Split { dimension: d, place, bounds, counts, total, score });
            }
            if bounds.len() < 2 {
                return None;
            }
            // Every other bound goes.
            bounds = bounds.iter().copied().skip(1).step_by(2).collect();
            let halved = |v: &[usize]| v.chunks(2).map(|pair| pair.iter().sum()).collect();
            (starts, stops) = (halved(&starts), halved(&stops));
        }
    }
}
