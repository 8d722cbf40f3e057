//! First-match rules against first-match rules, exactly.
//!
//! Rules that stand in both lists in one order need no look: only what the other rules take away
//! from them, or leave to them, can differ. So the effort is that of the rules that are not in
//! both, which for an optimiser's removal of shadowed rules is small however long the list is.

use std::collections::{HashMap, HashSet, VecDeque};

use ir::IntervalSet;
use ir::program::TermId;

use super::decisions::{Classify, Cube, NodeRef};

/// A part of the space of all keys: what each may be, by dimension.
pub(crate) type Piece = Vec<IntervalSet>;

/// How many pieces of one kind are kept as examples.
const SAMPLES: usize = 4;

/// More work than is allowed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exhausted;

/// First-match rules over common dimensions, restricted to what can come.
pub(crate) struct Rules {
    rules: Vec<(Cube, NodeRef)>,
    otherwise: NodeRef,
}

/// Keys of one or two lists of rules, and what they may be.
pub(crate) struct Space {
    /// The keys.
    pub(crate) keys: Vec<TermId>,
    /// What they may be.
    pub(crate) all: Piece,
}

/// Two targets that a packet may come to.
pub(crate) struct Pair {
    /// By the first list.
    pub(crate) a: NodeRef,
    /// By the second.
    pub(crate) b: NodeRef,
    /// Where that may be; not all.
    pub(crate) samples: Vec<Sample>,
}

/// Where a packet may come to two targets.
pub(crate) struct Sample {
    /// Keys that lead there.
    pub(crate) piece: Piece,
    /// But for rules of the first and of the second list that stand before these.
    before: [usize; 2],
}

impl Space {
    /// The keys of lists of rules, and what is known of them.
    pub(crate) fn new<'a>(
        lists: impl IntoIterator<Item = &'a Classify>,
        known: impl Fn(TermId) -> IntervalSet,
    ) -> Self {
        let mut keys: Vec<TermId> = Vec::new();
        for list in lists {
            for &key in &list.keys {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        let all = keys.iter().map(|&key| known(key)).collect();
        Self { keys, all }
    }

    /// A list's rules that can match at all, up to one that always does.
    pub(crate) fn rules(&self, list: &Classify) -> Rules {
        let place: Vec<u8> = list
            .keys
            .iter()
            .map(|key| self.keys.iter().position(|k| k == key).unwrap_or(0) as u8)
            .collect();
        let mut rules = Vec::with_capacity(list.rules.len());
        let mut otherwise = list.otherwise;
        for (cube, target) in &list.rules {
            let (mut possible, mut certain) = (true, true);
            let mut moved: Cube = Vec::with_capacity(cube.len());
            for (key, set) in cube {
                let dimension = place[usize::from(*key)];
                let all = &self.all[usize::from(dimension)];
                possible &= set.intersects(all);
                if !all.is_subset(set) {
                    certain = false;
                    moved.push((dimension, set.clone()));
                }
            }
            if !possible {
                continue;
            }
            if certain {
                otherwise = *target;
                break;
            }
            moved.sort_by_key(|m| m.0);
            rules.push((moved, *target));
        }
        // What the last rules share with the rest, they need not say.
        while rules.last().is_some_and(|rule| rule.1 == otherwise) {
            rules.pop();
        }
        Rules { rules, otherwise }
    }
}

fn meets(piece: &Piece, cube: &Cube) -> bool {
    cube.iter().all(|(d, set)| piece[usize::from(*d)].intersects(set))
}

fn overlap(a: &Cube, b: &Cube) -> bool {
    let (mut i, mut j) = (0, 0);
    while let (Some((x, s)), Some((y, t))) = (a.get(i), b.get(j)) {
        if x == y && !s.intersects(t) {
            return false;
        }
        if x <= y {
            i += 1;
        }
        if y <= x {
            j += 1;
        }
    }
    true
}

fn inside(piece: &Piece, cube: &Cube) -> Option<Piece> {
    let mut inside = piece.clone();
    for (d, set) in cube {
        let both = inside[usize::from(*d)].intersect(set);
        if both.is_empty() {
            return None;
        }
        inside[usize::from(*d)] = both;
    }
    Some(inside)
}

/// The part of a piece that a cube does not hold, as disjoint pieces. They meet.
fn outside(mut piece: Piece, cube: &Cube, out: &mut Vec<Piece>) {
    for (d, set) in cube {
        let d = usize::from(*d);
        let rest = piece[d].subtract(set);
        if !rest.is_empty() {
            let mut part = piece.clone();
            part[d] = rest;
            out.push(part);
        }
        piece[d] = piece[d].intersect(set);
    }
}

fn spend(budget: &mut u64, effort: usize) -> Result<(), Exhausted> {
    *budget = budget.checked_sub(effort as u64).ok_or(Exhausted)?;
    Ok(())
}

impl Rules {
    /// Where rules may lead, with examples, those behind others included that leave nothing.
    pub(crate) fn targets(&self, space: &Space) -> Vec<(NodeRef, Vec<Piece>)> {
        let mut targets: Vec<(NodeRef, Vec<Piece>)> = Vec::new();
        let mut place: HashMap<NodeRef, usize> = HashMap::new();
        let mut add = |target: NodeRef, piece: Option<Piece>| {
            let at = *place.entry(target).or_insert_with(|| {
                targets.push((target, Vec::new()));
                targets.len() - 1
            });
            if targets[at].1.len() < SAMPLES {
                targets[at].1.extend(piece);
            }
        };
        for (cube, target) in &self.rules {
            add(*target, inside(&space.all, cube));
        }
        add(self.otherwise, None);
        targets
    }

    /// The part of a rule that no earlier one takes, as disjoint pieces; the rule behind the last
    /// matches all that is left.
    pub(crate) fn effective(
        &self,
        rule: usize,
        space: &Space,
        budget: &mut u64,
    ) -> Result<Vec<Piece>, Exhausted> {
        let all = Cube::new();
        let own = self.rules.get(rule).map_or(&all, |r| &r.0);
        let mut pieces: Vec<Piece> = inside(&space.all, own).into_iter().collect();
        spend(budget, rule.min(self.rules.len()) / 16)?;
        for (cube, _) in self.rules.iter().take(rule).filter(|(cube, _)| overlap(cube, own)) {
            if pieces.is_empty() {
                break;
            }
            spend(budget, pieces.len())?;
            let mut left = Vec::with_capacity(pieces.len());
            for piece in pieces {
                match meets(&piece, cube) {
                    true => outside(piece, cube, &mut left),
                    false => left.push(piece),
                }
            }
            pieces = left;
        }
        Ok(pieces)
    }

    /// How many rules there are, and one for what they leave.
    pub(crate) fn len(&self) -> usize {
        self.rules.len() + 1
    }

    /// Where a rule leads.
    pub(crate) fn target(&self, rule: usize) -> NodeRef {
        self.rules.get(rule).map_or(self.otherwise, |r| r.1)
    }

    /// A part of a piece that none of these rules takes. What is left of it is kept as large as
    /// possible, so that a part is found soon where there is one.
    fn free(
        lists: [(&Rules, usize); 2],
        piece: Piece,
        budget: &mut u64,
    ) -> Result<Option<Piece>, Exhausted> {
        let size = |piece: &Piece| -> f64 {
            let length = |set: &IntervalSet| -> f64 {
                set.intervals().iter().map(|&(low, high)| (high - low) as f64 + 1.0).sum()
            };
            piece.iter().map(|set| length(set).ln()).sum()
        };
        let mut waiting = vec![(piece, [0; 2])];
        while let Some((piece, from)) = waiting.pop() {
            let met = [0, 1].map(|side: usize| {
                let (rules, end) = (&lists[side].0.rules, lists[side].1);
                (from[side]..end.min(rules.len())).find(|&at| meets(&piece, &rules[at].0))
            });
            let passed =
                |side: usize| met[side].unwrap_or(lists[side].1).saturating_sub(from[side]);
            spend(budget, 1 + (passed(0) + passed(1)) / 16)?;
            let (side, at) = match met {
                [Some(at), _] => (0, at),
                [None, Some(at)] => (1, at),
                [None, None] => return Ok(Some(piece)),
            };
            let mut next = [0, 1].map(|side: usize| met[side].unwrap_or(lists[side].1));
            next[side] = at + 1;
            let mut rest = Vec::new();
            outside(piece, &lists[side].0.rules[at].0, &mut rest);
            rest.sort_by(|a, b| size(a).total_cmp(&size(b)));
            waiting.extend(rest.into_iter().map(|piece| (piece, next)));
        }
        Ok(None)
    }

    /// A part of a sample of two lists' targets that leads there for certain.
    pub(crate) fn part_of(
        &self,
        other: &Rules,
        sample: &Sample,
        budget: &mut u64,
    ) -> Result<Option<Piece>, Exhausted> {
        let [here, there] = sample.before;
        Self::free([(self, here), (other, there)], sample.piece.clone(), budget)
    }

    /// Parts of rules that only one of two lists has, where they lead to different targets.
    pub(crate) fn changed(
        &self,
        other: &Rules,
        space: &Space,
        budget: &mut u64,
    ) -> Vec<(Piece, NodeRef, NodeRef)> {
        let (here, common) = self.common(other);
        let shared: HashSet<usize> = common.iter().map(|pair| pair.1).collect();
        let there = (0..other.rules.len()).filter(|rule| !shared.contains(rule));
        let mut here: Vec<usize> = here.into_iter().collect();
        here.sort_unstable();
        let all = here.into_iter().map(|rule| (self, rule));
        let mut parts = Vec::new();
        for (list, rule) in all.chain(there.map(|rule| (other, rule))) {
            let Some(own) = inside(&space.all, &list.rules[rule].0) else { continue };
            let Ok(Some(part)) = Self::free([(list, rule), (list, 0)], own, budget) else {
                continue;
            };
            // One key of it: where that leads is known in both.
            let least = |set: &IntervalSet| set.intervals().first().map(|interval| interval.0);
            let key: Option<Vec<u128>> = part.iter().map(least).collect();
            let Some(key) = key else { continue };
            let leads = |list: &Rules| {
                let matches =
                    |cube: &Cube| cube.iter().all(|(d, set)| set.contains(key[usize::from(*d)]));
                let first = list.rules.iter().find(|rule| matches(&rule.0));
                first.map_or(list.otherwise, |rule| rule.1)
            };
            let (a, b) = (leads(self), leads(other));
            if a != b {
                parts.push((key.iter().map(|&number| IntervalSet::single(number)).collect(), a, b));
                if parts.len() == SAMPLES {
                    break;
                }
            }
        }
        parts
    }

    /// Where a piece leads, part by part.
    pub(crate) fn walk(
        &self,
        piece: Piece,
        budget: &mut u64,
        mut sink: impl FnMut(Piece, NodeRef),
    ) -> Result<(), Exhausted> {
        let mut waiting = vec![(piece, 0usize)];
        while let Some((piece, from)) = waiting.pop() {
            let next = (from..self.rules.len()).find(|&j| meets(&piece, &self.rules[j].0));
            let at = next.unwrap_or(self.rules.len());
            spend(budget, 1 + (at - from) / 16)?;
            let Some((cube, target)) = self.rules.get(at) else {
                sink(piece, self.otherwise);
                continue;
            };
            if let Some(inside) = inside(&piece, cube) {
                sink(inside, *target);
            }
            let mut rest = Vec::new();
            outside(piece, cube, &mut rest);
            waiting.extend(rest.into_iter().map(|piece| (piece, at + 1)));
        }
        Ok(())
    }

    /// Rules that stand in both lists in one order, as many as there are: their indices; and those
    /// of the other rules here.
    fn common(&self, other: &Rules) -> (HashSet<usize>, Vec<(usize, usize)>) {
        let mut there: HashMap<&Cube, VecDeque<usize>> = HashMap::new();
        for (j, (cube, _)) in other.rules.iter().enumerate() {
            there.entry(cube).or_default().push_back(j);
        }
        // The longest row of rules whose places there rise: by its length, where a row of that
        // length ends with the least place, and what stands before each rule in its row.
        let mut ends: Vec<(usize, usize)> = Vec::new();
        let mut before: HashMap<usize, (usize, usize)> = HashMap::new();
        for (i, (cube, _)) in self.rules.iter().enumerate() {
            let Some(j) = there.get_mut(cube).and_then(VecDeque::pop_front) else { continue };
            let length = ends.partition_point(|end| end.1 < j);
            if let Some(&last) = length.checked_sub(1).and_then(|n| ends.get(n)) {
                before.insert(i, last);
            }
            match ends.get_mut(length) {
                Some(end) => *end = (i, j),
                None => ends.push((i, j)),
            }
        }
        let mut common: Vec<(usize, usize)> =
            std::iter::successors(ends.last().copied(), |(i, _)| before.get(i).copied()).collect();
        common.reverse();
        let mut only: HashSet<usize> = (0..self.rules.len()).collect();
        only.retain(|i| common.binary_search_by_key(i, |pair| pair.0).is_err());
        (only, common)
    }

    /// Every pair of targets that a packet may come to by two lists. Pairs of which no packet is
    /// may be among them, but only of rules that are in both lists.
    pub(crate) fn pairs(
        &self,
        other: &Rules,
        space: &Space,
        budget: &mut u64,
    ) -> Result<Vec<Pair>, Exhausted> {
        let mut pairs: Vec<Pair> = Vec::new();
        let mut place: HashMap<(NodeRef, NodeRef), usize> = HashMap::new();
        let mut add = |a: NodeRef, b: NodeRef, piece: Option<Piece>, before: [usize; 2]| {
            let at = *place.entry((a, b)).or_insert_with(|| {
                pairs.push(Pair { a, b, samples: Vec::new() });
                pairs.len() - 1
            });
            if pairs[at].samples.len() < SAMPLES {
                pairs[at].samples.extend(piece.map(|piece| Sample { piece, before }));
            }
        };
        let (only_here, common) = self.common(other);
        for &(i, j) in &common {
            let piece = || inside(&space.all, &self.rules[i].0);
            let (a, b) = (self.rules[i].1, other.rules[j].1);
            add(a, b, if a == b { None } else { piece() }, [i, j]);
        }
        let (a, b) = (self.otherwise, other.otherwise);
        let rest = if a == b { None } else { Some(space.all.clone()) };
        add(a, b, rest, [self.rules.len(), other.rules.len()]);
        let here: Vec<usize> = (0..self.rules.len()).filter(|i| only_here.contains(i)).collect();
        for rule in here {
            for piece in self.effective(rule, space, budget)? {
                other.walk(piece, budget, |part, b| {
                    add(self.rules[rule].1, b, Some(part), [0, 0]);
                })?;
            }
        }
        let shared: HashSet<usize> = common.iter().map(|c| c.1).collect();
        for rule in (0..other.rules.len()).filter(|j| !shared.contains(j)) {
            for piece in other.effective(rule, space, budget)? {
                self.walk(piece, budget, |part, a| {
                    add(a, other.rules[rule].1, Some(part), [0, 0]);
                })?;
            }
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// For some keys, a least number and how many more.
    type Ranges = Vec<(u8, u128, u128)>;

    fn classify(rules: Vec<(Ranges, NodeRef)>) -> Classify {
        let cube = |c: Ranges| {
            let mut cube: Cube = Vec::new();
            for (key, low, length) in c {
                if cube.iter().all(|(k, _)| *k != key) {
                    cube.push((key, IntervalSet::range(low, (low + length).min(7))));
                }
            }
            cube
        };
        let rules = rules.into_iter().map(|(c, target)| (cube(c), target)).collect();
        Classify { keys: vec![TermId(0), TermId(1)], rules, otherwise: 0 }
    }

    fn first(list: &Classify, x: u128, y: u128) -> NodeRef {
        let matches = |cube: &Cube| cube.iter().all(|(k, s)| s.contains([x, y][usize::from(*k)]));
        list.rules.iter().find(|r| matches(&r.0)).map_or(list.otherwise, |r| r.1)
    }

    fn lists() -> impl Strategy<Value = (Classify, Classify)> {
        let cube = proptest::collection::vec((0u8..2, 0u128..8, 0u128..5), 0..3);
        let rules = proptest::collection::vec((cube, 0u32..3), 0..7);
        (rules.clone(), rules, any::<u8>()).prop_map(|(a, b, mix)| {
            // Mostly the same rules, so that what they share plays a part.
            let mut other = a.clone();
            for (i, rule) in b.into_iter().enumerate() {
                match mix >> i & 1 {
                    0 if i < other.len() => drop(other.remove(i)),
                    _ => other.insert(i.min(other.len()), rule),
                }
            }
            (classify(a), classify(other))
        })
    }

    proptest! {
        #[test]
        fn pairs_are_those_of_all_packets((a, b) in lists(), low in 0u128..4) {
            let known = |key: TermId| match key.0 {
                0 => IntervalSet::range(low, 7),
                _ => IntervalSet::range(0, 7),
            };
            let space = Space::new([&a, &b], known);
            let (ra, rb) = (space.rules(&a), space.rules(&b));
            let pairs = ra.pairs(&rb, &space, &mut 100_000).unwrap();
            let found: HashSet<(NodeRef, NodeRef)> = pairs.iter().map(|p| (p.a, p.b)).collect();
            for x in low..8 {
                for y in 0..8 {
                    let pair = (first(&a, x, y), first(&b, x, y));
                    prop_assert!(found.contains(&pair), "{pair:?} at {x} {y}");
                }
            }
            // The parts of single rules are exact.
            let mut seen = HashSet::new();
            for rule in 0..ra.len() {
                for piece in ra.effective(rule, &space, &mut 100_000).unwrap() {
                    for x in (low..8).filter(|&x| piece[0].contains(x)) {
                        for y in (0..8).filter(|&y| piece[1].contains(y)) {
                            prop_assert_eq!(first(&a, x, y), ra.target(rule));
                            prop_assert!(seen.insert((x, y)));
                        }
                    }
                }
            }
            prop_assert_eq!(seen.len() as u128, (8 - low) * 8);
        }
    }

    #[test]
    fn two_rules_that_changed_places_are_all_that_differs() {
        let mut rules: Vec<(Ranges, NodeRef)> =
            (0..64).map(|i| (vec![(0, i % 8, 0), (1, i / 8, 0)], 1 + (i % 3) as u32)).collect();
        let one = classify(rules.clone());
        rules.swap(3, 50);
        let other = classify(rules);
        let space = Space::new([&one], |_| IntervalSet::range(0, 7));
        let (a, b) = (space.rules(&one), space.rules(&other));
        let (only, common) = a.common(&b);
        assert_eq!((only, common.len()), (HashSet::from([3, 50]), 62));
        // They exclude one another.
        let pairs = a.pairs(&b, &space, &mut 1000).unwrap();
        assert!(pairs.iter().all(|pair| pair.a == pair.b));
    }

    #[test]
    fn a_shadowed_rule_may_go_and_another_may_not() {
        let wide = (vec![(0, 0, 4)], 1);
        let narrow = (vec![(0, 1, 1)], 2);
        let last = (vec![(1, 3, 0)], 3);
        let all = classify(vec![wide.clone(), narrow.clone(), last.clone()]);
        let less = classify(vec![wide.clone(), last.clone()]);
        let swapped = classify(vec![narrow, wide, last]);
        let space = Space::new([&all], |_| IntervalSet::range(0, 7));
        let differ = |a: &Classify, b: &Classify| {
            let pairs = space.rules(a).pairs(&space.rules(b), &space, &mut 1000).unwrap();
            pairs.iter().any(|p| p.a != p.b)
        };
        assert!(!differ(&all, &less) && !differ(&less, &all));
        assert!(differ(&all, &swapped) && differ(&swapped, &less));
    }
}
