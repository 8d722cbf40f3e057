//! How tables are chosen and trees are grown.
//!
//! One table after the other is taken for the rules whose leading bits distinguish them, as long as it saves more than
//! it costs; how many of them stay is decided by what lookups cost, which knows what keys go past because of the rule
//! that they match.
//!
//! Cubes that are wide in the dimension of a split stand in many children. To keep that in check,
//! cubes are grouped by the dimensions that they are narrow in, each group with a tree of its own
//! (EffiCuts, CutSplit), and a budget caps the entries of all leaves: where it is spent, leaves
//! grow longer instead. Groups are put together again where one tree costs less than two.

use std::collections::BTreeMap;

use super::{
    BLOCK_COST, EMPTY, FANOUT, Forest, MAX_PARTS, NODE, NODE_COST, PART_COST, Part, Search,
    TABLE_COST, Table, hash,
};
use crate::block::{Layout, NO_RULE};
use crate::classifier::{mean_cost, points};
use crate::rule_set::{Cube, Key, MAX_DIMENSIONS, RuleSet};
use crate::simd::{CUBES, CacheLine, Isa, Level, Portable};
use crate::{Classifier, Linear, TupleSpace};

/// Lists of so many cubes are not split.
const LEAF: usize = 8;
/// Entries in leaves for every cube of a tree, and so many more that small trees may be generous.
const REPLICATION: usize = 6;
const SPARE: usize = 4096;
/// Entries for each bucket of a table, besides.
const BUCKET_SPARE: usize = 16;
/// How much a split's growth in entries counts against it: as this power, with at most so
/// many cubes. The more there are, the farther the memory is that lookups wait for.
const GROWTH: [(usize, f64); 3] = [(1 << 12, 0.1), (1 << 15, 0.3), (usize::MAX, 0.6)];
/// A split that leaves lists more than this part as long is not worth a step.
const WORTHWHILE: f64 = 0.98;
/// Depth that no tree exceeds.
const MAX_DEPTH: usize = 24;
/// Which groups share a tree is tried out on so many cubes.
const TRIED: usize = 8192;
/// By how much more than on these few cubes lookups cost in trees over twice as many, at the least: 0.19 to 0.25 was
/// measured, with 100,000 rules.
const DOUBLED: f64 = 0.18;
/// Bounds of a split are chosen among those of so many cubes, and what comes of it is told from so many.
const BOUNDING: usize = 512;
const TELLING: usize = 2048;

/// Bits of a table's hash, at most.
const MAX_BITS: u32 = 20;
/// Hash tables of a forest, at most: groups need trees too.
const MAX_TABLES: usize = MAX_PARTS - 1;

/// Leading bits that a table may hash, in eighths of a dimension.
const LENGTHS: [u32; 7] = [8, 7, 6, 5, 4, 2, 0];
/// Bits of the hash by which buckets are counted.
const COUNTED: u32 = 17;

/// A key to try structures with, and its rule or [`NO_RULE`].
type Trial = (Key, u32);

/// Some keys with their rules, from what is made quickly: hash tables, or a list where these distinguish little.
fn trials(rules: &RuleSet) -> Vec<Trial> {
    let keys = points(rules);
    let (tuples, list) = (TupleSpace::new(rules), Linear::new(rules));
    let some = &keys[..keys.len().min(8)];
    let dear = mean_cost(&tuples, some) > mean_cost(&list, some);
    let quick: &dyn Classifier = if dear { &list } else { &tuples };
    keys.iter().map(|key| (*key, quick.lookup(key).unwrap_or(NO_RULE))).collect()
}

/// Grows trees over the rules.
pub(super) fn forest(level: Level, rules: &RuleSet) -> Forest {
    let keys = trials(rules);
    let telling = telling(rules);
    let mut rest: Vec<u32> = (0..rules.cubes().len() as u32).collect();
    let mut best: Option<(usize, Forest)> = None;
    let mut tables = Forest::bare(level, rules);
    let grown = |tables: &Forest, groups: Vec<Vec<u32>>| {
        let mut forest = tables.clone();
        groups.into_iter().for_each(|members| forest.add_tree(rules, members));
        forest.parts.sort_by_key(|part| part.least);
        (forest.mean_cost(&keys), forest)
    };
    let offer = |best: &mut Option<(usize, Forest)>, new: (usize, Forest)| {
        if best.as_ref().is_none_or(|best| new.0 < best.0) {
            *best = Some(new);
        }
    };
    // Trees over all rules take longest to grow, and are not if they promise no more than others hold.
    let mut without_tables: Option<(usize, Vec<Vec<u32>>)> = None;
    loop {
        let groups = groups(rules, &rest, telling);
        let most = MAX_PARTS - tables.parts.len();
        let (promised, groups) = merged(level, rules, groups, most, &keys);
        let table =
            (tables.parts.len() < MAX_TABLES).then(|| best_table(rules, &rest, telling, &keys));
        let table = table.flatten();
        if let (Some(promised), Some(_), true) = (promised, table, tables.parts.is_empty()) {
            without_tables = Some((promised, groups));
        } else {
            let new = grown(&tables, groups);
            // Tables that cost so much more do not lead to anything better.
            let is_dear = |least: usize| new.0 > least + least / 4;
            let ends = |best: &Option<(usize, Forest)>| best.as_ref().is_some_and(|b| is_dear(b.0));
            if !ends(&best)
                && let Some((_, groups)) =
                    without_tables.take_if(|(promised, _)| is_dear(*promised))
            {
                offer(&mut best, grown(&Forest::bare(level, rules), groups));
            }
            if ends(&best) {
                break;
            }
            offer(&mut best, new);
        }
        let Some(masks) = table else { break };
        let inside = |&m: &u32| fits(&rules.cubes()[m as usize], telling, masks);
        let (members, others): (Vec<u32>, Vec<u32>) = rest.into_iter().partition(inside);
        rest = others;
        tables.add_table(rules, telling, masks, &members);
    }
    let least = best.as_ref().map_or(usize::MAX, |best| best.0);
    if let Some((_, groups)) = without_tables.filter(|(promised, _)| *promised < least) {
        offer(&mut best, grown(&Forest::bare(level, rules), groups));
    }
    best.expect("a forest").1
}

/// Whether the cube's numbers agree in all these bits of two dimensions.
fn fits(cube: &Cube, telling: [usize; 2], masks: [u32; 2]) -> bool {
    (0..2).all(|i| (cube.low[telling[i]] ^ cube.high[telling[i]]) & masks[i] == 0)
}

/// The most telling dimensions: those with the most different ranges.
fn telling(rules: &RuleSet) -> [usize; 2] {
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
    [telling[0], telling[1]]
}

/// Counts the buckets of a table, or of one that is as likely to put two keys together.
struct Buckets {
    masks: [u32; 2],
    telling: [usize; 2],
    counts: Vec<u16>,
}

impl Buckets {
    fn bucket(&self, key: &Key) -> usize {
        let [a, b] = [0, 1].map(|i| u64::from(key[self.telling[i]] & self.masks[i]));
        (hash(a, b) >> (u64::BITS - COUNTED)) as usize
    }

    /// What the table is worth: what it saves the keys that come to the rest of the rules, less what it costs those that
    /// come to it, in tenths of nanoseconds.
    fn worth(
        masks: [u32; 2],
        telling: [usize; 2],
        inside: &[&Cube],
        rest: &[&Cube],
        keys: &[Trial],
    ) -> f64 {
        let mut buckets = Self { masks, telling, counts: vec![0; 1 << COUNTED] };
        for cube in inside {
            let bucket = buckets.bucket(&cube.low);
            buckets.counts[bucket] = buckets.counts[bucket].saturating_add(1);
        }
        let cost = |key: &Key| match buckets.counts[buckets.bucket(key)] {
            0 => 0.0,
            count => tree_cost(count.into()),
        };
        // Keys go past what has no rule as little as theirs.
        let come = |least: u32| keys.iter().filter(move |(_, rule)| least <= *rule);
        let least = |first: Option<&&Cube>| first.map_or(NO_RULE, |cube| cube.rule);
        let outside = rest.iter().find(|cube| !fits(cube, telling, masks));
        let coming = |least| come(least).count() as f64;
        let here = come(least(inside.first())).map(|(key, _)| cost(key) / 2.0 + TABLE_COST as f64);
        let tree = tree_cost(rest.len());
        let outside_part = 1.0 - inside.len() as f64 / rest.len() as f64;
        let before = coming(least(rest.first())) * tree;
        let behind = coming(least(outside)) * tree * outside_part;
        (before - behind - here.sum::<f64>()) / keys.len() as f64 - PART_COST as f64
    }
}

/// About what a tree over so many rules costs.
fn tree_cost(rules: usize) -> f64 {
    let blocks = (rules as f64 / CUBES as f64).max(1.0);
    BLOCK_COST as f64 + NODE_COST as f64 * blocks.log2() / 2.0
}

/// The leading bits of the most telling dimensions by which a table of some of the rules is best made, if any.
fn best_table(
    rules: &RuleSet,
    rest: &[u32],
    telling: [usize; 2],
    keys: &[Trial],
) -> Option<[u32; 2]> {
    let masks = |d: usize| {
        let unused = rules.greatest()[d].leading_zeros();
        let width = 32 - unused;
        let kept = LENGTHS.map(|eighths| (eighths * width).div_ceil(8));
        kept.map(|kept| {
            u32::MAX.checked_shl(width - kept).unwrap_or(0)
                & u32::MAX.checked_shr(unused).unwrap_or(0)
        })
    };
    let [first, second] = telling.map(masks);
    let cubes: Vec<&Cube> = rest.iter().map(|&m| &rules.cubes()[m as usize]).collect();
    let (mut best, mut counts) = ((0.0, None), Vec::new());
    for masks in
        first.iter().flat_map(|&a| second.iter().map(move |&b| [a, b])).filter(|m| *m != [0; 2])
    {
        let inside: Vec<&Cube> =
            cubes.iter().copied().filter(|cube| fits(cube, telling, masks)).collect();
        // Longer ones come first: a shorter one that takes no more rules is worth less.
        if inside.len() <= LEAF || counts.contains(&inside.len()) {
            continue;
        }
        counts.push(inside.len());
        let worth = Buckets::worth(masks, telling, &inside, &cubes, keys);
        if worth > best.0 {
            best = (worth, Some(masks));
        }
    }
    best.1
}

impl Forest {
    /// A forest without rules.
    fn bare(level: Level, rules: &RuleSet) -> Self {
        Self {
            level,
            layout: Layout::new(rules),
            parts: Vec::new(),
            slots: Vec::new(),
            // What the reference to nothing refers to.
            lines: vec![CacheLine([0; 16])],
            nodes: 0,
            entries: 0,
            memory: 0,
        }
    }

    /// What the keys cost on average.
    fn mean_cost(&self, keys: &[Trial]) -> usize {
        keys.iter().map(|(key, rule)| self.trace(key, *rule)).sum::<usize>() / keys.len().max(1)
    }

    /// Adds a table of some cubes, in order of their rules, by these bits of the two most telling dimensions.
    fn add_table(
        &mut self,
        rules: &RuleSet,
        telling: [usize; 2],
        masks: [u32; 2],
        members: &[u32],
    ) {
        let cubes = rules.cubes();
        let place = |d: usize| self.layout.dimensions().position(|t| t == d).unwrap_or(0);
        let bits = members.len().next_power_of_two().trailing_zeros().clamp(1, MAX_BITS - 1) + 1;
        let table = Table {
            numbers: [(place(telling[0]), masks[0]), (place(telling[1]), masks[1])],
            shift: 64 - bits,
            first: self.slots.len(),
        };
        self.slots.resize(self.slots.len() + (1 << bits), EMPTY);
        let hashed = members.iter().map(|&m| {
            (table.slot(&Portable.spread(&cubes[m as usize].low, &self.layout.order)), m)
        });
        let mut hashed: Vec<(usize, u32)> = hashed.collect();
        hashed.sort_unstable();
        let growth = growth(members.len());
        for bucket in hashed.chunk_by(|a, b| a.0 == b.0) {
            let members: Vec<u32> = bucket.iter().map(|b| b.1).collect();
            let budget = members.len() * REPLICATION + BUCKET_SPARE;
            self.slots[bucket[0].0] = Builder::new(self, rules, growth).plant(members, budget);
        }
        self.add(rules, members, Search::Table(table));
    }

    /// Adds a tree over some cubes, in order of their rules.
    fn add_tree(&mut self, rules: &RuleSet, members: Vec<u32>) {
        let budget = members.len() * REPLICATION + SPARE;
        let growth = growth(members.len());
        let root = Builder::new(self, rules, growth).plant(members.clone(), budget);
        self.add(rules, &members, Search::Tree(root));
    }

    fn add(&mut self, rules: &RuleSet, members: &[u32], search: Search) {
        let least = members.first().map_or(NO_RULE, |&m| rules.cubes()[m as usize].rule);
        self.parts.push(Part { least, search });
        self.memory = size_of_val(&self.slots[..]) + size_of_val(&self.lines[..]);
    }
}

/// How much a split's growth counts in a tree over so many cubes.
fn growth(members: usize) -> f64 {
    GROWTH.iter().find(|(size, _)| members <= *size).map_or(1.0, |g| g.1)
}

/// Groups cubes by which of the two most telling dimensions they are narrow in.
fn groups(rules: &RuleSet, rest: &[u32], telling: [usize; 2]) -> Vec<Vec<u32>> {
    let cubes = rules.cubes();
    // Narrow: less than a 256th of what there is.
    let narrow = |c: &Cube, d: usize| (c.high[d] - c.low[d]) <= rules.greatest()[d] >> 8;
    let mut groups = vec![Vec::new(); 4];
    for &i in rest {
        let cube = &cubes[i as usize];
        let kind = telling.iter().fold(0, |k, &d| k << 1 | usize::from(narrow(cube, d)));
        groups[kind].push(i);
    }
    groups.retain(|g| !g.is_empty());
    groups
}

/// Puts groups together as long as that makes lookups cheaper, as tried out on some cubes. Also gives what lookups
/// cost then, at the least, if that was tried out.
fn merged(
    level: Level,
    rules: &RuleSet,
    groups: Vec<Vec<u32>>,
    most: usize,
    keys: &[Trial],
) -> (Option<usize>, Vec<Vec<u32>>) {
    if groups.len() < 2 {
        return (None, groups);
    }
    let step = (rules.cubes().len() / TRIED).max(1);
    // Sets of groups are bits.
    let members = |set: u32, step: usize| {
        let groups = groups.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
        let mut members: Vec<u32> =
            groups.flat_map(|(_, g)| g.iter().copied().step_by(step)).collect();
        members.sort_unstable();
        members
    };
    // What keys cost in a tree over some cubes of some groups.
    let mut trials: BTreeMap<u32, usize> = BTreeMap::new();
    let mut total = |sets: &[u32]| -> usize {
        let trial = |&set: &u32| {
            *trials.entry(set).or_insert_with(|| {
                let mut forest = Forest::bare(level, rules);
                forest.add_tree(rules, members(set, step));
                forest.mean_cost(keys)
            })
        };
        sets.iter().map(trial).sum()
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
                let forced = sets.len() > most && better.is_none();
                if cost < best || forced {
                    (best, better) = (cost, Some(tried));
                }
            }
        }
        match better {
            Some(better) => sets = better,
            None => {
                let least = best as f64 * (1.0 + DOUBLED * (step as f64).log2());
                let groups = sets.into_iter().map(|set| members(set, 1)).collect();
                return (Some(least as usize), groups);
            }
        }
    }
}

struct Builder<'a> {
    rules: &'a RuleSet,
    cubes: &'a [Cube],
    /// The dimensions that distinguish rules, in the order of spread keys.
    dimensions: Vec<usize>,
    growth: f64,
    forest: &'a mut Forest,
}

/// How to split a region.
struct Split {
    dimension: usize,
    /// Which of the dimensions that distinguish rules that is.
    place: u32,
    bounds: Vec<u32>,
    /// Mean length of the children's lists, weighed by their length, times the growth in entries.
    score: f64,
}

impl Split {
    /// Tells which child a number belongs to.
    fn ranking(&self) -> impl Fn(u32) -> usize + use<> {
        let (mut line, last) = (CacheLine([u32::MAX; FANOUT]), self.bounds.len());
        line.0[..last].copy_from_slice(&self.bounds);
        move |number| (Portable.rank(&line, number) as usize).min(last)
    }
}

impl<'a> Builder<'a> {
    fn new(forest: &'a mut Forest, rules: &'a RuleSet, growth: f64) -> Self {
        let dimensions = forest.layout.dimensions().collect();
        Self { rules, cubes: rules.cubes(), dimensions, growth, forest }
    }

    /// Grows the tree of some cubes; gives its root.
    fn plant(&mut self, members: Vec<u32>, budget: usize) -> u32 {
        self.grow(members, &self.rules.everything(0), budget, MAX_DEPTH)
    }

    /// Grows the tree of a region, whose leaves may hold `budget` entries; gives its root.
    fn grow(&mut self, mut members: Vec<u32>, region: &Cube, budget: usize, depth: usize) -> u32 {
        self.prune(&mut members, region);
        let split = (members.len() > LEAF && depth > 0)
            .then(|| self.best_split(&members, region, budget))
            .flatten();
        let Some(split) = split else { return self.leaf(&members) };
        self.forest.nodes += 1;
        let at = self.forest.lines.len();
        let mut bounds = [*split.bounds.last().unwrap_or(&0); FANOUT];
        bounds[..split.bounds.len()].copy_from_slice(&split.bounds);
        bounds[FANOUT - 1] = split.place;
        self.forest.lines.extend([CacheLine(bounds), CacheLine([EMPTY; FANOUT])]);
        let d = split.dimension;
        let parts = split.bounds.len() + 1;
        let room = || Vec::with_capacity(members.len() / parts);
        let mut inner: Vec<Vec<u32>> = std::iter::repeat_with(room).take(parts).collect();
        let rank = split.ranking();
        for &m in &members {
            let cube = &self.cubes[m as usize];
            for part in &mut inner[rank(cube.low[d])..=rank(cube.high[d])] {
                part.push(m);
            }
        }
        let total: usize = inner.iter().map(Vec::len).sum();
        drop(members);
        let mut part = *region;
        let mut children = Vec::with_capacity(FANOUT);
        for (i, inner) in inner.into_iter().enumerate() {
            part.low[d] = if i == 0 { region.low[d] } else { split.bounds[i - 1] };
            part.high[d] = split.bounds.get(i).map_or(region.high[d], |b| b - 1);
            let share = (budget as u128 * inner.len() as u128 / total as u128) as usize;
            children.push(self.grow(inner, &part, share, depth - 1));
        }
        // Repeated bounds rank every larger number past them: the last child stands for all.
        let last = children.last().copied().unwrap_or(EMPTY);
        children.resize(FANOUT, last);
        self.forest.lines[at + 1].0.copy_from_slice(&children);
        at as u32 | NODE
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
        let at = self.forest.lines.len();
        self.forest.layout.push(&mut self.forest.lines, cubes);
        at as u32
    }

    /// The split that leaves the shortest lists, if any is worth it within the budget.
    fn best_split(&self, members: &[u32], region: &Cube, budget: usize) -> Option<Split> {
        let splits = self
            .dimensions
            .iter()
            .zip(0..)
            .filter_map(|(&d, place)| self.split(members, region, budget, d, place));
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
        let cubes = self.cubes;
        let some = |most: usize| {
            let step = members.len().div_ceil(most);
            members.iter().step_by(step).map(move |&m| &cubes[m as usize])
        };
        let mut ends = Vec::with_capacity(2 * BOUNDING);
        for cube in some(BOUNDING) {
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
        let mut bounds: Vec<u32> = (1..FANOUT).map(|i| ends[i * ends.len() / FANOUT]).collect();
        bounds.dedup();
        let mut split = Split { dimension: d, place, bounds, score: 0.0 };
        // How many cubes reach from one part to another.
        let mut reach = [[0u32; FANOUT]; FANOUT];
        let (told, rank) = (some(TELLING).len(), split.ranking());
        for cube in some(TELLING) {
            reach[rank(cube.low[d])][rank(cube.high[d])] += 1;
        }
        loop {
            let parts = split.bounds.len() + 1;
            let mut counts = vec![0; parts];
            let mut inside = 0u32;
            for (part, count) in counts.iter_mut().enumerate() {
                inside += reach[part].iter().sum::<u32>();
                *count = inside as usize;
                inside -= reach.iter().map(|from| from[part]).sum::<u32>();
            }
            let total: usize = counts.iter().sum();
            if total * members.len() <= budget * told {
                let mut sum = 0.0;
                for (from, row) in reach[..parts].iter().enumerate() {
                    let mut lists = 0;
                    for (width, (to, &count)) in (1..).zip(counts.iter().enumerate().skip(from)) {
                        lists += count;
                        sum += f64::from(row[to]) * lists as f64 / f64::from(width);
                    }
                }
                let n = told as f64;
                let part = sum / (n * n) * (total as f64 / n).powf(self.growth);
                split.score = part * members.len() as f64;
                return Some(split);
            }
            if split.bounds.len() < 2 {
                return None;
            }
            // Every other bound goes.
            split.bounds = split.bounds.iter().copied().skip(1).step_by(2).collect();
            let mut halved = [[0u32; FANOUT]; FANOUT];
            for (from, row) in reach.iter().enumerate() {
                for (to, n) in row.iter().enumerate() {
                    halved[from / 2][to / 2] += n;
                }
            }
            reach = halved;
        }
    }
}
