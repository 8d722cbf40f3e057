//! Simplification: fewer decisions on the path that most packets take.
//!
//! A chain asks the same number again and again: ten routers compare the time-to-live ten times.
//! Where a path asks a number for the first time, all that it will ask of it is asked at once; who
//! passes is asked no more, and all others take the path as it was.

use foldhash::HashMap;

use ir::IntervalSet;
use ir::program::{Atom, Step, StepId, TermId};

use crate::symbolic::draft::Draft;
use crate::symbolic::facts::Facts;
use crate::symbolic::terms::Decided;

/// Questions that are brought forward in a program.
const MAX_HOISTS: usize = 256;

/// Simplifies a program in the making.
pub(crate) fn simplify(draft: &mut Draft) {
    let lengths = lengths(draft);
    let mut simplify = Simplify { draft, lengths, done: HashMap::default(), hoists: 0 };
    simplify.draft.root = simplify.path(simplify.draft.root);
}

/// For each step, through how many inputs a packet can still come, an end that is no barrier
/// counting for more.
fn lengths(draft: &Draft) -> HashMap<StepId, usize> {
    let mut lengths: HashMap<StepId, usize> = HashMap::default();
    let mut stack = vec![draft.root];
    while let Some(&at) = stack.last() {
        if lengths.contains_key(&at) {
            stack.pop();
            continue;
        }
        let step = &draft.steps[at.0 as usize];
        if let Step::Exit(exit) = step {
            lengths.insert(at, 2 * exit.visited.len() + usize::from(exit.barrier.is_none()));
            stack.pop();
            continue;
        }
        let open: Vec<StepId> = step.next().filter(|n| !lengths.contains_key(n)).collect();
        if open.is_empty() {
            let longest = step.next().map(|n| lengths[&n]).max().unwrap_or(0);
            lengths.insert(at, longest);
            stack.pop();
        } else {
            stack.extend(open);
        }
    }
    lengths
}

struct Simplify<'a> {
    draft: &'a mut Draft,
    lengths: HashMap<StepId, usize>,
    done: HashMap<StepId, StepId>,
    hoists: usize,
}

impl Simplify<'_> {
    /// Simplifies the long paths that lead on from a step.
    fn path(&mut self, root: StepId) -> StepId {
        // Paths are followed on a stack of steps whose long successors are still to be done.
        let mut stack = vec![root];
        while let Some(&at) = stack.last() {
            if self.done.contains_key(&at) {
                stack.pop();
                continue;
            }
            if let Some(hoisted) = self.hoist(at) {
                stack.push(hoisted);
                self.done.insert(at, hoisted);
                continue;
            }
            let long = self.lengths[&at];
            let step = &self.draft.steps[at.0 as usize];
            let next: Vec<StepId> = step.next().filter(|n| self.lengths[n] == long).collect();
            let open: Vec<StepId> =
                next.iter().copied().filter(|n| !self.done.contains_key(n)).collect();
            if !open.is_empty() {
                stack.extend(open);
                continue;
            }
            stack.pop();
            if next.iter().all(|&n| self.resolve(n) == n) {
                self.done.insert(at, at);
                continue;
            }
            let mut step = step.clone();
            step.map_next(|n| if next.contains(&n) { self.resolve(n) } else { n });
            let new = self.push(step, long);
            self.done.insert(at, new);
            self.done.entry(new).or_insert(new);
        }
        self.resolve(root)
    }

    /// What a step became at last.
    fn resolve(&self, mut step: StepId) -> StepId {
        while let Some(&next) = self.done.get(&step)
            && next != step
        {
            step = next;
        }
        step
    }

    fn push(&mut self, step: Step, length: usize) -> StepId {
        self.draft.steps.push(step);
        let id = StepId(self.draft.steps.len() as u32 - 1);
        self.lengths.insert(id, length);
        id
    }

    /// The longest path on from a step.
    fn main(&self, at: StepId) -> Option<StepId> {
        let step = &self.draft.steps[at.0 as usize];
        let long = self.lengths[&at];
        step.next().find(|n| self.lengths[n] == long)
    }

    /// Brings what a step and later ones on its longest path ask of one number together.
    fn hoist(&mut self, at: StepId) -> Option<StepId> {
        if self.hoists >= MAX_HOISTS {
            return None;
        }
        let (on, first) = self.passing(at)?;
        let mut passing = first.clone();
        let (mut step, mut asked) = (self.main(at)?, 1);
        loop {
            if let Some((other, set)) = self.passing(step)
                && other == on
            {
                let both = passing.intersect(&set);
                if !both.is_empty() && both != passing {
                    passing = both;
                    asked += 1;
                }
            }
            match self.main(step) {
                Some(next) => step = next,
                None => break,
            }
        }
        if asked < 2 || passing == first {
            return None;
        }
        let Decided::Open(atom, true) = self.draft.terms.test(on, &passing) else { return None };
        let element = element_of(&self.draft.steps[at.0 as usize])?;
        self.hoists += 1;
        let mut facts = Facts::default();
        facts.restrict(on, passing);
        let fast = self.restrict(at, &facts);
        let length = self.lengths[&at];
        // The path as it was asks what it asks; it is not looked at again.
        let slow = self.draft.steps[at.0 as usize].clone();
        let slow = self.push(slow, 0);
        self.done.insert(slow, slow);
        Some(self.push(Step::Test { atom, yes: fast, no: slow, element }, length))
    }

    /// The number that a step asks, and those with which a packet stays on the longest path.
    fn passing(&self, at: StepId) -> Option<(TermId, IntervalSet)> {
        let long = self.lengths[&at];
        let stays = |n: &StepId| self.lengths[n] == long;
        match &self.draft.steps[at.0 as usize] {
            Step::Test { atom: Atom::Test(term, set), yes, no, .. } => {
                match (stays(yes), stays(no)) {
                    (true, false) => Some((*term, (**set).clone())),
                    (false, true) => {
                        let (low, high) = self.draft.terms.bounds(*term);
                        Some((*term, IntervalSet::range(low, high).subtract(set)))
                    }
                    _ => None,
                }
            }
            Step::Switch { on, cases, otherwise, .. } => {
                let mut long = cases.iter().filter(|(_, n)| stays(n));
                match (long.next(), long.next(), stays(otherwise)) {
                    (Some((set, _)), None, false) => Some((*on, set.clone())),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The steps from here on for packets of which something is known.
    fn restrict(&mut self, root: StepId, facts: &Facts) -> StepId {
        let mut of: HashMap<StepId, StepId> = HashMap::default();
        let mut stack = vec![root];
        while let Some(&at) = stack.last() {
            if of.contains_key(&at) {
                stack.pop();
                continue;
            }
            let Draft { steps, terms, .. } = &mut *self.draft;
            let step = &steps[at.0 as usize];
            let only = match step {
                Step::Test { atom, yes, no, .. } => {
                    let atom = Decided::Open(atom.clone(), true);
                    let known = facts.resolve(terms, &atom);
                    known.map(|holds| if holds { *yes } else { *no })
                }
                Step::Switch { on, cases, otherwise, .. } => {
                    let possible = facts.set(terms, *on);
                    match cases.iter().find(|(set, _)| possible.is_subset(set)) {
                        Some((_, to)) => Some(*to),
                        None if cases.iter().all(|(s, _)| !s.intersects(&possible)) => {
                            Some(*otherwise)
                        }
                        None => None,
                    }
                }
                _ => None,
            };
            let next: Vec<StepId> = only.map_or_else(|| step.next().collect(), |n| vec![n]);
            let open: Vec<StepId> = next.iter().copied().filter(|n| !of.contains_key(n)).collect();
            if !open.is_empty() {
                stack.extend(open);
                continue;
            }
            let new = if let Some(only) = only {
                of[&only]
            } else if next.iter().all(|n| of[n] == *n) {
                at
            } else {
                let length = next.iter().map(|n| self.lengths[&of[n]]).max().unwrap_or(0);
                let mut step = step.clone();
                step.map_next(|n| of[&n]);
                self.push(step, length)
            };
            of.insert(at, new);
            stack.pop();
        }
        of[&root]
    }
}

fn element_of(step: &Step) -> Option<ir::NodeId> {
    match step {
        Step::Test { element, .. } | Step::Switch { element, .. } => Some(*element),
        _ => None,
    }
}
