//! First-match rules against first-match rules, exactly.
//!
//! What rules leave to those behind them is told in pieces: boxes, of what each key can be.

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use ir::IntervalSet;
use ir::program::TermId;

use super::decisions::{Classify, Cube, NodeRef};

/// A part of the space of all keys: what each may be, by dimension.
pub(crate) type Piece = Vec<IntervalSet>;

/// How many pieces of one kind are kept as examples.
pub(crate) const SAMPLES: usize = 4;

/// Rules that are followed exactly: what they leave to others says much, and is told in few pieces.
pub(crate) const FEW: usize = 8;

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

/// Where a packet may come to two targets.
pub(crate) struct Sample {
    /// Keys that lead there.
    pub(crate) piece: Piece,
    /// But for rules of the first and of the second list that stand before these.
    pub(crate) before: [usize; 2],
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

fn holds(cube: &Cube, piece: &Piece) -> bool {
    cube.iter().all(|(d, set)| piece[usize::from(*d)].is_subset(set))
}

pub(crate) fn inside(piece: &Piece, cube: &Cube) -> Option<Piece> {
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

pub(crate) fn spend(budget: &mut u64, effort: usize) -> Result<(), Exhausted> {
    *budget = budget.checked_sub(effort as u64).ok_or(Exhausted)?;
    Ok(())
}

impl Rules {
    /// None: all leads to one place.
    pub(crate) fn none() -> Self {
        Self { rules: Vec::new(), otherwise: 0 }
    }

    /// Where rules may lead; if they are many, those behind others included that leave nothing.
    pub(crate) fn parts(
        &self,
        space: &Space,
        budget: &mut u64,
        mut sink: impl FnMut(&Piece, NodeRef),
    ) -> Result<(), Exhausted> {
        if self.rules.len() <= FEW {
            let all: Vec<u32> = (0..self.rules.len() as u32).collect();
            return self.walk(&all, space.all.clone(), budget, |part, to| sink(&part, to));
        }
        for (cube, target) in &self.rules {
            if let Some(part) = inside(&space.all, cube) {
                sink(&part, *target);
            }
        }
        sink(&space.all, self.otherwise);
        Ok(())
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

    /// Where all of a piece leads that no other rules than these meet, if that is one target.
    pub(crate) fn only(&self, some: &[u32], piece: &Piece) -> Option<NodeRef> {
        let mut targets = some.iter().map(|&at| self.rules[at as usize].1);
        let is_whole = some.last().is_some_and(|&last| holds(self.cube(last), piece));
        let first = targets.next().unwrap_or(self.otherwise);
        let is_one = targets.all(|target| target == first);
        (is_one && (is_whole || first == self.otherwise)).then_some(first)
    }

    /// Whether a rule matches whatever is in a piece.
    pub(crate) fn holds(&self, rule: u32, piece: &Piece) -> bool {
        holds(self.cube(rule), piece)
    }

    /// A rule's conditions.
    pub(crate) fn cube(&self, rule: u32) -> &Cube {
        &self.rules[rule as usize].0
    }

    /// The least and the greatest number of a key for each of some rules that test it.
    pub(crate) fn ends<'a>(
        &'a self,
        some: &'a [u32],
        key: usize,
    ) -> impl Iterator<Item = (u128, u128)> + 'a {
        some.iter().filter_map(move |&at| {
            let (_, set) = self.cube(at).iter().find(|(d, _)| usize::from(*d) == key)?;
            Some((set.min()?, set.max()?))
        })
    }

    /// Numbers for the rules of two lists: equal conditions have one.
    pub(crate) fn numbers(&self, other: &Rules) -> [Vec<u32>; 2] {
        let mut known: HashMap<&Cube, u32> = HashMap::new();
        [self, other].map(|list| {
            let mut all = Vec::with_capacity(list.rules.len());
            for (cube, _) in &list.rules {
                let next = known.len() as u32;
                all.push(*known.entry(cube).or_insert(next));
            }
            all
        })
    }

    /// Of some rules, in their order, those that still meet a piece which became narrower in one key, up to one that
    /// holds all of it.
    pub(crate) fn meeting(&self, some: &[u32], piece: &Piece, key: usize) -> Rc<[u32]> {
        let mut left = Vec::new();
        for &at in some {
            let cube = &self.rules[at as usize].0;
            let narrower = cube.iter().find(|(d, _)| usize::from(*d) == key);
            if narrower.is_some_and(|(_, set)| !piece[key].intersects(set)) {
                continue;
            }
            left.push(at);
            if holds(cube, piece) {
                break;
            }
        }
        left.into()
    }

    /// Where a piece leads that no other rules than these meet, part by part.
    pub(crate) fn walk(
        &self,
        some: &[u32],
        piece: Piece,
        budget: &mut u64,
        mut sink: impl FnMut(Piece, NodeRef),
    ) -> Result<(), Exhausted> {
        let of = |at: usize| some.get(at).map(|&at| &self.rules[at as usize]);
        let mut waiting = vec![(piece, 0usize)];
        while let Some((piece, from)) = waiting.pop() {
            let next = (from..some.len()).find(|&j| of(j).is_some_and(|of| meets(&piece, &of.0)));
            let at = next.unwrap_or(some.len());
            spend(budget, 1 + (at - from) / 16)?;
            let Some((cube, target)) = of(at) else {
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
}
