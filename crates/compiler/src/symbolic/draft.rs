//! A program in the making: steps in any order, terms that may not be needed.

use foldhash::HashMap;

use ir::Port;
use ir::Program;
use ir::program::{Lookup, StateOf, Step, StepId, Table};

use super::terms::Terms;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub entry: Port,
    pub terms: Terms,
    pub state: Vec<StateOf>,
    pub tables: Vec<Table>,
    pub lookups: Vec<Lookup>,
    /// In any order.
    pub steps: Vec<Step>,
    pub root: StepId,
}

impl Draft {
    /// The program: equal steps are one, steps that decide nothing are left out, and what is not
    /// needed is gone.
    pub(crate) fn finish(mut self) -> Program {
        let steps = std::mem::take(&mut self.steps).into_iter().map(Some).collect();
        let mut merged = Merge {
            open: steps,
            steps: Vec::new(),
            index: HashMap::default(),
            of: HashMap::default(),
        };
        let root = merged.step(self.root);
        let steps = merged.steps;
        // Children were made before their parents: in reverse, parents come first.
        let mut used = vec![false; steps.len()];
        used[root.0 as usize] = true;
        for i in (0..=root.0 as usize).rev() {
            if used[i] {
                steps[i].next().for_each(|n| used[n.0 as usize] = true);
            }
        }
        let mut place = vec![StepId(0); steps.len()];
        let order = (0..steps.len()).rev().filter(|&i| used[i]);
        order.zip(0..).for_each(|(from, to)| place[from] = StepId(to));
        let kept = steps.into_iter().zip(&used).rev().filter(|(_, used)| **used);
        let steps: Vec<Step> = kept
            .map(|(mut step, _)| {
                step.map_next(|s| place[s.0 as usize]);
                step
            })
            .collect();
        let Self { entry, terms, state, tables, lookups, .. } = self;
        Program {
            entry,
            continuation: None,
            terms: terms.into_all(),
            state,
            tables,
            lookups,
            steps,
        }
        .normal()
    }
}

/// Makes equal steps one, from the exits up.
struct Merge {
    /// Those of the draft that have no merged form yet.
    open: Vec<Option<Step>>,
    steps: Vec<Step>,
    /// Hash of a step to those that have it.
    index: HashMap<u64, Vec<StepId>>,
    of: HashMap<StepId, StepId>,
}

impl Merge {
    /// The merged form of a step of the draft; on an explicit stack, as chains may be long.
    fn step(&mut self, root: StepId) -> StepId {
        let mut stack = vec![root];
        while let Some(&at) = stack.last() {
            let waiting = stack.len();
            let step = &mut self.open[at.0 as usize];
            let next = step.iter().flat_map(Step::next);
            stack.extend(next.filter(|n| !self.of.contains_key(n)));
            if stack.len() > waiting {
                continue;
            }
            if let Some(mut step) = step.take() {
                step.map_next(|s| self.of[&s]);
                let merged = self.intern(step);
                self.of.insert(at, merged);
            }
            stack.pop();
        }
        self.of[&root]
    }

    fn intern(&mut self, mut step: Step) -> StepId {
        if let Step::Switch { cases, otherwise, .. } = &mut step {
            let otherwise = *otherwise;
            cases.retain(|(set, to)| *to != otherwise && !set.is_empty());
            let mut joined: Vec<(Vec<ir::IntervalSet>, StepId)> = Vec::new();
            for (set, to) in cases.drain(..) {
                match joined.iter_mut().find(|(_, t)| *t == to) {
                    Some((all, _)) => all.push(set),
                    None => joined.push((vec![set], to)),
                }
            }
            let union = |(sets, to): &(Vec<_>, _)| (ir::IntervalSet::union_of(sets), *to);
            cases.extend(joined.iter().map(union));
        }
        // A step that leads to one place only decides nothing; but a lookup may bind what follows.
        if !matches!(step, Step::Exit(_) | Step::Lookup { .. }) {
            let mut next = step.next();
            if let Some(first) = next.next()
                && next.all(|n| n == first)
            {
                return first;
            }
        }
        let hash = hash(&step);
        let same = self.index.entry(hash).or_default();
        if let Some(&known) = same.iter().find(|k| self.steps[k.0 as usize] == step) {
            return known;
        }
        let id = StepId(self.steps.len() as u32);
        same.push(id);
        self.steps.push(step);
        id
    }
}

/// A hash under which equal steps fall together; rules are distinguished by where they lie.
fn hash(step: &Step) -> u64 {
    use std::hash::{BuildHasher, Hash, Hasher};
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    std::mem::discriminant(step).hash(&mut hasher);
    step.next().for_each(|n| n.hash(&mut hasher));
    match step {
        Step::Test { atom, element, .. } => (atom, element).hash(&mut hasher),
        Step::Switch { on, element, .. } => (on, element).hash(&mut hasher),
        Step::Classify { keys, element, .. } => (keys, element).hash(&mut hasher),
        Step::Lookup { lookup, .. } => lookup.hash(&mut hasher),
        Step::Exit(exit) => exit.hash(&mut hasher),
    }
    hasher.finish()
}
