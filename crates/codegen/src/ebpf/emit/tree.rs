//! Decision trees (HiCuts, HyperSplit): a long list of rules as comparisons of numbers with constants.
//!
//! A tree is grown from its root. Where many rules may match, the numbers are cut in two where
//! that leaves least to be distinguished; where few may, or no cut separates them, the first rule is tested and
//! the others follow. Equal nodes are one, so a tree is a graph without circles.
//!
//! A rule that crosses a cut stands on both sides. How many may, and how many rules are tested one after the other, is what
//! attempts at a tree differ in: the first one that has room is taken.

use std::collections::HashMap;

use ir::IntervalSet;

use crate::Lack;

/// The most comparisons on a path.
const DEPTH: usize = 500;
/// The most nodes.
const NODES: usize = 1 << 17;
/// The most rules that are looked at in an attempt, over all nodes while they are grown.
const WORK: usize = 1 << 23;
/// Lists this short are searched for rules that others shadow.
const SHORT: usize = 24;
/// Nodes that there may always be, and for each conjunction, until the last attempts take what there is.
const FEW: (usize, usize) = (4096, 8);
/// What is tried, one after the other: rules that are tested one after the other, and how much more there may be to tell
/// apart behind a cut than before it.
const ATTEMPTS: [(usize, f64); 4] = [(4, 1.8), (8, 1.8), (16, 1.8), (16, 1.2)];

/// A conjunction of a rule: numbers that match by key, and where it leads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cube<'a> {
    pub(super) tests: &'a [(u8, IntervalSet)],
    pub(super) arm: u32,
}

/// Where a comparison leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum To {
    Node(u32),
    Arm(u32),
}

/// A comparison with a number. A key of more than 64 bits has two columns, that of its upper bits first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cut {
    pub(super) column: u8,
    pub(super) cut: u64,
    /// If the number is less than the cut.
    pub(super) below: To,
    /// If it is not.
    pub(super) from: To,
}

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    /// Whether a number is less than another.
    Cut(Cut),
    /// Whether a conjunction holds, all at once.
    Rule { cube: u32, yes: To, no: To },
}

/// A range of a column, both ends included.
pub(super) type Range = (u8, u64, u64);

/// A tree. What a node leads to stands before it.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    pub(super) root: To,
    /// By conjunction: its ranges, if it is tested at once.
    pub(super) ranges: Vec<Option<Vec<Range>>>,
}

/// The columns of keys by the greatest number that each can be, one or two for each.
pub(super) fn columns(keys: &[u128]) -> usize {
    keys.iter().map(|most| 1 + usize::from(*most > u64::MAX.into())).sum()
}

impl Tree {
    /// Grows a tree for conjunctions in order of precedence; where none matches, `otherwise` is the
    /// arm. Keys are given by the greatest number that each can be. `at_once` is whether a conjunction can be tested as a
    /// whole.
    ///
    /// # Errors
    /// It would be too large.
    pub(super) fn grow(
        keys: &[u128],
        cubes: &[Cube<'_>],
        otherwise: u32,
        at_once: bool,
    ) -> Result<Self, Lack> {
        let mut all = cubes.to_vec();
        all.push(Cube { tests: &[], arm: otherwise });
        let mut next = 0;
        let columns = keys.iter().map(|most| {
            let (column, is_wide) = (next, *most > u64::MAX.into());
            next += 1 + u8::from(is_wide);
            (column, is_wide)
        });
        let columns: Vec<(u8, bool)> = columns.collect();
        let of = |cube: &Cube<'_>| if at_once { ranges(&columns, cube.tests) } else { None };
        let ranges: Vec<Option<Vec<Range>>> = cubes.iter().map(of).collect();
        let few = (FEW.0 + FEW.1 * cubes.len()).min(NODES);
        let mut attempts = [few, NODES].into_iter().flat_map(|most| ATTEMPTS.map(|of| (most, of)));
        let attempt = |(most, (leaf, limit))| {
            let mut grower = Grower {
                columns: &columns,
                area: keys.iter().map(|most| (0, *most)).collect(),
                cubes: &all,
                ranges: &ranges,
                leaf,
                limit,
                most,
                nodes: Vec::new(),
                known: HashMap::new(),
                work: 0,
            };
            let list = grower.left((0..all.len() as u32).collect());
            grower.grow(list, 0).map(|root| (grower.nodes, root))
        };
        let mut grown = Err(Lack::Room("attempts", 1, 0));
        while let (true, Some(next)) = (grown.is_err(), attempts.next()) {
            grown = attempt(next);
        }
        grown.map(|(nodes, root)| Self { nodes, root, ranges })
    }
}

/// A conjunction as ranges of columns, where it can be told so.
fn ranges(columns: &[(u8, bool)], tests: &[(u8, IntervalSet)]) -> Option<Vec<Range>> {
    let mut all = Vec::with_capacity(tests.len());
    for (key, set) in tests {
        let [(low, high)] = *set.intervals() else { return None };
        let (column, is_wide) = columns[usize::from(*key)];
        if !is_wide {
            all.push((column, low as u64, high as u64));
            continue;
        }
        let (from, to) = ((low >> 64) as u64, (high >> 64) as u64);
        let below = (low as u64, high as u64);
        match below {
            (0, u64::MAX) => all.push((column, from, to)),
            _ if from == to => all.extend([(column, from, to), (column + 1, below.0, below.1)]),
            _ => return None,
        }
    }
    Some(all)
}

struct Grower<'a> {
    cubes: &'a [Cube<'a>],
    ranges: &'a [Option<Vec<Range>>],
    /// By key: its first column, and whether there are two.
    columns: &'a [(u8, bool)],
    /// Rules that remain, at most, where they are tested one after the other.
    leaf: usize,
    /// How much there may be to tell apart behind a cut, as a share of what there is before.
    limit: f64,
    /// The most nodes.
    most: usize,
    /// The numbers that keys can be here.
    area: Vec<(u128, u128)>,
    nodes: Vec<Node>,
    known: HashMap<Node, u32>,
    work: usize,
}

/// Numbers of a set between two others: the intervals.
fn within(set: &IntervalSet, (low, high): (u128, u128)) -> &[(u128, u128)] {
    let all = set.intervals();
    let from = all.partition_point(|interval| interval.1 < low);
    let to = all.partition_point(|interval| interval.0 <= high);
    all.get(from..to).unwrap_or(&[])
}

fn covers(set: &IntervalSet, (low, high): (u128, u128)) -> bool {
    matches!(within(set, (low, high)), [(l, h)] if *l <= low && *h >= high)
}

/// How much there is to tell apart between so many rules.
fn effort(rules: usize) -> f64 {
    let rules = rules as f64;
    rules * (1.0 + rules).log2()
}

impl<'a> Grower<'a> {
    fn cube(&self, number: u32) -> Cube<'a> {
        self.cubes[number as usize]
    }

    fn matches_all(&self, number: u32) -> bool {
        let holds = |(key, set): &(u8, IntervalSet)| covers(set, self.area[usize::from(*key)]);
        self.cube(number).tests.iter().all(holds)
    }

    fn may_match(&self, number: u32) -> bool {
        let meets =
            |(key, set): &(u8, IntervalSet)| !within(set, self.area[usize::from(*key)]).is_empty();
        self.cube(number).tests.iter().all(meets)
    }

    /// Whether one rule matches whatever another one does.
    fn shadows(&self, one: u32, other: u32) -> bool {
        self.cube(one).tests.iter().all(|(key, set)| {
            let area = self.area[usize::from(*key)];
            if covers(set, area) {
                return true;
            }
            let test = self.cube(other).tests.iter().find(|test| test.0 == *key);
            test.is_some_and(|(_, of)| {
                within(of, area)
                    .iter()
                    .all(|(l, h)| covers(set, (*l.max(&area.0), *h.min(&area.1))))
            })
        })
    }

    /// The rules that decide something here, the last of which matches whatever comes.
    fn left(&self, mut list: Vec<u32>) -> Vec<u32> {
        list.retain(|rule| self.may_match(*rule));
        if let Some(last) = list.iter().position(|rule| self.matches_all(*rule)) {
            list.truncate(last + 1);
        }
        if list.len() <= SHORT {
            let mut kept: Vec<u32> = Vec::with_capacity(list.len());
            for rule in list {
                if !kept.iter().any(|before| self.shadows(*before, rule)) {
                    kept.push(rule);
                }
            }
            list = kept;
        }
        // Those before the last that lead where it does.
        while let [.., before, last] = list[..]
            && self.cube(before).arm == self.cube(last).arm
        {
            list.pop();
            list.pop();
            list.push(last);
        }
        list
    }

    fn node(&mut self, node: Node) -> Result<To, Lack> {
        if let Some(known) = self.known.get(&node) {
            return Ok(To::Node(*known));
        }
        let number = self.nodes.len();
        if number >= self.most {
            return Err(Lack::Room("nodes of a tree", number + 1, self.most));
        }
        self.nodes.push(node);
        self.known.insert(node, number as u32);
        Ok(To::Node(number as u32))
    }

    fn cut(&mut self, column: u8, cut: u64, below: To, from: To) -> Result<To, Lack> {
        match cut {
            _ if below == from => Ok(below),
            0 => Ok(from),
            _ => self.node(Node::Cut(Cut { column, cut, below, from })),
        }
    }

    /// A comparison of a key.
    fn compare(&mut self, key: u8, cut: u128, below: To, from: To) -> Result<To, Lack> {
        let (column, is_wide) = self.columns[usize::from(key)];
        if !is_wide {
            return self.cut(column, cut as u64, below, from);
        }
        let (upper, lower) = ((cut >> 64) as u64, cut as u64);
        let equal = self.cut(column + 1, lower, below, from)?;
        let at_least = match upper.checked_add(1) {
            Some(next) => self.cut(column, next, equal, from)?,
            None => equal,
        };
        self.cut(column, upper, below, at_least)
    }

    /// By halves: where numbers lead, from the first of each on.
    fn search(&mut self, key: u8, all: &[(u128, To)]) -> Result<To, Lack> {
        match all {
            [(_, to)] => Ok(*to),
            _ => {
                let (below, from) = all.split_at(all.len() / 2);
                let cut = from[0].0;
                let (below, from) = (self.search(key, below)?, self.search(key, from)?);
                self.compare(key, cut, below, from)
            }
        }
    }

    /// Leads on if a key is in a set.
    fn member(&mut self, key: u8, set: &IntervalSet, yes: To, no: To) -> Result<To, Lack> {
        let area = self.area[usize::from(key)];
        let (mut all, mut next) = (Vec::new(), Some(area.0));
        for (low, high) in within(set, area) {
            let low = *low.max(&area.0);
            if next.is_some_and(|next| next < low) {
                all.push((next.unwrap_or(low), no));
            }
            all.push((low, yes));
            next = high.checked_add(1).filter(|next| *next <= area.1);
        }
        all.extend(next.map(|next| (next, no)));
        self.search(key, &all)
    }

    /// The cut that leaves least to tell apart: its key and number, and what is left.
    fn best(&self, rules: &[u32]) -> Option<(u8, u128, f64)> {
        let keys = self.area.len();
        let mut ends: Vec<(Vec<u128>, Vec<u128>)> = vec![(Vec::new(), Vec::new()); keys];
        let mut cuts: Vec<Vec<u128>> = vec![Vec::new(); keys];
        for rule in rules {
            for (key, set) in self.cube(*rule).tests {
                let (key, area) = (usize::from(*key), self.area[usize::from(*key)]);
                let all = within(set, area);
                let (Some(first), Some(last)) = (all.first(), all.last()) else { continue };
                ends[key].0.push(first.0.max(area.0));
                ends[key].1.push(last.1.min(area.1));
                for (low, high) in all {
                    cuts[key].extend((*low > area.0).then_some(*low));
                    cuts[key].extend((*high < area.1).then(|| *high + 1));
                }
            }
        }
        let mut best: Option<(u8, u128, f64)> = None;
        for (key, ((mut lows, mut highs), mut cuts)) in ends.into_iter().zip(cuts).enumerate() {
            let untested = rules.len() - lows.len().min(rules.len());
            lows.sort_unstable();
            highs.sort_unstable();
            cuts.sort_unstable();
            cuts.dedup();
            let (mut low, mut high) = (0, 0);
            for cut in cuts {
                low += lows[low..].iter().take_while(|number| **number < cut).count();
                high += highs[high..].iter().take_while(|number| **number < cut).count();
                let left = effort(untested + low) + effort(untested + highs.len() - high);
                if best.is_none_or(|best| left < best.2) {
                    best = Some((key as u8, cut, left));
                }
            }
        }
        best
    }

    /// A tree for rules of which the last one matches whatever comes.
    fn grow(&mut self, list: Vec<u32>, depth: usize) -> Result<To, Lack> {
        self.work += list.len();
        if self.work > WORK {
            return Err(Lack::Room("steps to grow a tree", self.work, WORK));
        }
        if depth > DEPTH {
            return Err(Lack::Room("comparisons one after the other", depth, DEPTH));
        }
        let Some((last, rules)) = list.split_last() else { return Ok(To::Arm(0)) };
        let Some(first) = rules.first() else { return Ok(To::Arm(self.cube(*last).arm)) };
        let best = if rules.len() > self.leaf { self.best(rules) } else { None };
        if let Some((key, cut, left)) = best
            && left < self.limit * effort(rules.len())
        {
            let at = usize::from(key);
            let (low, high) = self.area[at];
            self.area[at] = (low, cut - 1);
            let below = self.left(list.clone());
            let below = self.grow(below, depth + 1)?;
            self.area[at] = (cut, high);
            let from = self.left(list);
            let from = self.grow(from, depth + 1)?;
            self.area[at] = (low, high);
            return self.compare(key, cut, below, from);
        }
        let Cube { tests, arm } = self.cube(*first);
        let rest = self.left(list[1..].to_vec());
        if self.ranges[*first as usize].is_some() {
            let no = self.grow(rest, depth + 2)?;
            let (cube, yes) = (*first, To::Arm(arm));
            return if no == yes { Ok(no) } else { self.node(Node::Rule { cube, yes, no }) };
        }
        // Each interval takes two comparisons, on a path that fails at the last.
        let no = self.grow(rest, depth + 2 * tests.len())?;
        let mut to = To::Arm(arm);
        for (key, set) in tests {
            to = self.member(*key, set, to, no)?;
        }
        Ok(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where numbers lead, rule by rule.
    fn linear(cubes: &[Cube<'_>], numbers: &[u128], otherwise: u32) -> u32 {
        let holds = |test: &(u8, IntervalSet)| test.1.contains(numbers[usize::from(test.0)]);
        cubes.iter().find(|cube| cube.tests.iter().all(holds)).map_or(otherwise, |cube| cube.arm)
    }

    /// Where a tree leads, and by how many comparisons.
    fn walked(tree: &Tree, keys: &[u128], numbers: &[u128]) -> (u32, usize) {
        let mut columns = Vec::new();
        for (most, number) in keys.iter().zip(numbers) {
            if *most > u64::MAX.into() {
                columns.push((number >> 64) as u64);
            }
            columns.push(*number as u64);
        }
        let (mut at, mut count) = (tree.root, 0);
        while let To::Node(number) = at {
            at = match tree.nodes[number as usize] {
                Node::Cut(Cut { column, cut, below, from }) => {
                    count += 1;
                    if columns[usize::from(column)] < cut { below } else { from }
                }
                Node::Rule { cube, yes, no } => {
                    count += 2;
                    let ranges = tree.ranges[cube as usize].as_ref().expect("it has ranges");
                    let holds = |(column, low, high): &Range| {
                        (*low..=*high).contains(&columns[usize::from(*column)])
                    };
                    if ranges.iter().all(holds) { yes } else { no }
                }
            };
        }
        let To::Arm(arm) = at else { unreachable!("it left the loop") };
        (arm, count)
    }

    const KEYS: [u128; 5] = [u32::MAX as u128, u32::MAX as u128, 0xff, 0xffff, u128::MAX];

    fn number(random: &mut fastrand::Rng, most: u128) -> u128 {
        // Few different ones, so that rules meet.
        let number = random.u128(..) & 0x1f;
        let width = 128 - most.leading_zeros();
        match random.u8(..4) {
            0 => random.u128(0..=most),
            1 => most - number.min(most),
            2 if width > 8 => number << (width - 8),
            _ => number.min(most),
        }
    }

    fn rules(random: &mut fastrand::Rng, count: usize) -> Vec<(Vec<(u8, IntervalSet)>, u32)> {
        let rule = |random: &mut fastrand::Rng| {
            let mut tests = Vec::new();
            for (key, most) in KEYS.iter().enumerate() {
                if random.u8(..4) == 0 {
                    continue;
                }
                let mut intervals = Vec::new();
                for _ in 0..random.usize(1..3) {
                    let (a, b) = (number(random, *most), number(random, *most));
                    intervals.push(if random.bool() { (a, a) } else { (a.min(b), a.max(b)) });
                }
                tests.push((key as u8, IntervalSet::from_intervals(intervals)));
            }
            (tests, random.u32(..5))
        };
        (0..count).map(|_| rule(random)).collect()
    }

    #[test]
    fn a_tree_leads_where_its_list_does() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut arms = [0; 6];
        for round in 0..60 {
            let rules = rules(&mut random, [1, 3, 20, 60][round % 4]);
            let cubes: Vec<Cube<'_>> =
                rules.iter().map(|(tests, arm)| Cube { tests, arm: *arm }).collect();
            let tree = Tree::grow(&KEYS, &cubes, 5, round % 3 > 0).expect("it fits");
            for _ in 0..400 {
                let near = random.usize(..rules.len());
                let numbers: Vec<u128> = (0..KEYS.len())
                    .map(|key| {
                        let test = rules[near].0.iter().find(|test| usize::from(test.0) == key);
                        match test.and_then(|test| random.choice(test.1.intervals())) {
                            Some((low, high)) => match random.u8(..6) {
                                0 => low.saturating_sub(1),
                                1 => high.saturating_add(1).min(KEYS[key]),
                                2 => *high,
                                _ => *low,
                            },
                            None => number(&mut random, KEYS[key]),
                        }
                    })
                    .collect();
                let (arm, count) = walked(&tree, &KEYS, &numbers);
                assert_eq!(arm, linear(&cubes, &numbers, 5), "round {round}: {numbers:?}");
                assert!(count <= 3 * DEPTH, "{count} comparisons");
                arms[arm as usize] += 1;
            }
        }
        assert!(arms.iter().all(|count| *count > 100), "{arms:?}");
    }

    /// Rules for single numbers take few comparisons each.
    #[test]
    fn a_tree_is_shallow_and_small_where_rules_are_apart() {
        let rules: Vec<(Vec<(u8, IntervalSet)>, u32)> = (0..4096_u32)
            .map(|at| {
                let number = u128::from(at.wrapping_mul(0x9e37_79b9));
                (vec![(0, IntervalSet::single(number)), (3, IntervalSet::single(80))], at % 2)
            })
            .collect();
        let cubes: Vec<Cube<'_>> =
            rules.iter().map(|(tests, arm)| Cube { tests, arm: *arm }).collect();
        let tree = Tree::grow(&KEYS, &cubes, 2, true).expect("it fits");
        assert!(tree.nodes.len() < 2 * rules.len(), "{} nodes", tree.nodes.len());
        for (tests, _) in &rules {
            let mut numbers = [0, 0, 0, 80, 0];
            numbers[0] = tests[0].1.as_single().expect("a number");
            let (_, count) = walked(&tree, &KEYS, &numbers);
            assert!(count <= 20, "{count} comparisons");
        }
    }

    /// A firewall's: any source, or any destination, and ranges of ports.
    #[test]
    fn rules_that_overlap_have_room() {
        let mut random = fastrand::Rng::with_seed(5);
        let rules: Vec<(Vec<(u8, IntervalSet)>, u32)> = (0..1000)
            .map(|at| {
                let mut tests = vec![(2, IntervalSet::single([6, 17][at % 2]))];
                for key in [0, 1] {
                    let bits = [0, 0, 8, 24, 32][random.usize(..5)];
                    let low = (random.u128(..1 << 32) >> (32 - bits)) << (32 - bits);
                    if bits > 0 {
                        tests.push((key, IntervalSet::range(low, low + (1 << (32 - bits)) - 1)));
                    }
                }
                let port = random.u128(..1024);
                let (low, high) = [(0, 1023), (1024, 0xffff), (port, port)][random.usize(..3)];
                tests.push((3, IntervalSet::range(low, high)));
                (tests, at as u32 % 2)
            })
            .collect();
        let cubes: Vec<Cube<'_>> =
            rules.iter().map(|(tests, arm)| Cube { tests, arm: *arm }).collect();
        let tree = Tree::grow(&KEYS, &cubes, 2, true).expect("it fits");
        assert!(tree.nodes.len() < 12_000, "{} nodes", tree.nodes.len());
        for _ in 0..1000 {
            let numbers = KEYS.map(|most| random.u128(0..=most));
            let numbers = [numbers[0], numbers[1], 6, numbers[3] % 2048, 0];
            let (arm, count) = walked(&tree, &KEYS, &numbers);
            assert_eq!(arm, linear(&cubes, &numbers, 2));
            assert!(count <= 60, "{count} comparisons");
        }
    }

    /// Rules of which each cuts all others anew.
    #[test]
    fn a_hostile_list_has_no_room() {
        let mut random = fastrand::Rng::with_seed(3);
        let rules: Vec<(Vec<(u8, IntervalSet)>, u32)> = (0..4000)
            .map(|at| {
                let mut test = |key: u8| {
                    let most = KEYS[usize::from(key)];
                    let (a, b) = (random.u128(0..=most / 2), random.u128(most / 2..=most));
                    (key, IntervalSet::range(a, b))
                };
                ((0..5).map(&mut test).collect(), at)
            })
            .collect();
        let cubes: Vec<Cube<'_>> =
            rules.iter().map(|(tests, arm)| Cube { tests, arm: *arm }).collect();
        assert!(matches!(Tree::grow(&KEYS, &cubes, 9, true), Err(Lack::Room(..))));
    }

    #[test]
    fn what_leads_to_one_place_is_not_asked() {
        let tests = [(0, IntervalSet::range(3, 9))];
        let rules = [Cube { tests: &tests, arm: 1 }, Cube { tests: &tests, arm: 0 }];
        let tree = Tree::grow(&KEYS, &rules, 1, true).expect("it fits");
        assert_eq!(tree.root, To::Arm(1));
    }
}
