//! A program in the making: steps in any order, terms that may not be needed.

use foldhash::HashMap;

use ir::Port;
use ir::Program;
use ir::program::{Atom, Effect, FlowLookup, Mark, StateOf, Step, StepId, Term, TermId};

use super::terms::Terms;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub entry: Port,
    pub terms: Terms,
    pub state: Vec<StateOf>,
    pub lookups: Vec<FlowLookup>,
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
                map_next(&mut step, |s| place[s.0 as usize]);
                step
            })
            .collect();
        let mut renumber = Renumber::new(&self);
        for step in &steps {
            renumber.need(step);
        }
        renumber.finish(self.entry, steps)
    }
}

/// Replaces the steps that a step leads to.
pub(crate) fn map_next(step: &mut Step, mut to: impl FnMut(StepId) -> StepId) {
    match step {
        Step::Test { yes, no, .. } => (*yes, *no) = (to(*yes), to(*no)),
        Step::Switch { cases, otherwise, .. } => {
            cases.iter_mut().for_each(|c| c.1 = to(c.1));
            *otherwise = to(*otherwise);
        }
        Step::Classify { arms, otherwise, .. } => {
            arms.iter_mut().for_each(|a| *a = to(*a));
            *otherwise = to(*otherwise);
        }
        Step::Flow { hit, miss, .. } => (*hit, *miss) = (to(*hit), to(*miss)),
        Step::Exit(_) => {}
    }
}

/// Replaces the terms that a step names itself.
pub(crate) fn map_terms(step: &mut Step, mut to: impl FnMut(TermId) -> TermId) {
    match step {
        Step::Test { atom, .. } => map_atom(atom, &mut to),
        Step::Switch { on, .. } => *on = to(*on),
        Step::Classify { keys, .. } => keys.iter_mut().for_each(|k| *k = to(*k)),
        Step::Flow { .. } => {}
        Step::Exit(exit) => {
            for effect in &mut exit.effects {
                match effect {
                    Effect::Count { length, .. } => *length = to(*length),
                    Effect::Note { .. } => {}
                    Effect::Update { common, expiry, guarantee, .. } => {
                        common.iter_mut().for_each(|c| *c = to(*c));
                        (*expiry, *guarantee) = (to(*expiry), to(*guarantee));
                    }
                }
            }
            let writes = &mut exit.writes;
            for write in writes.bytes.iter_mut().chain(&mut writes.annotations) {
                write.value = to(write.value);
            }
            for term in [&mut writes.length, &mut writes.packet_type, &mut writes.timestamp] {
                *term = term.map(&mut to);
            }
            for mark in &mut writes.marks {
                if let Mark::At(at) = mark {
                    *at = to(*at);
                }
            }
        }
    }
}

fn map_atom(atom: &mut Atom, to: &mut impl FnMut(TermId) -> TermId) {
    match atom {
        Atom::Test(t, _) => *t = to(*t),
        Atom::Compare(_, a, b) => (*a, *b) = (to(*a), to(*b)),
    }
}

/// Replaces the operands of a term.
fn map_operands(term: &mut Term, to: &mut impl FnMut(TermId) -> TermId) {
    match term {
        Term::Const(_) | Term::Input(_) | Term::Position(_) | Term::Bound(..) | Term::Now => {}
        Term::Sum16 { length: t, .. } | Term::Slice { of: t, .. } => *t = to(*t),
        Term::Fold(t) | Term::NonZero(t) | Term::Map(t, _) => *t = to(*t),
        Term::Binary(_, a, b) | Term::Concat { high: a, low: b, .. } => (*a, *b) = (to(*a), to(*b)),
        Term::Choose(atom, a, b) => {
            map_atom(atom, to);
            (*a, *b) = (to(*a), to(*b));
        }
        Term::Hash(all) => all.iter_mut().for_each(|t| *t = to(*t)),
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
                map_next(&mut step, |s| self.of[&s]);
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
        if !matches!(step, Step::Exit(_) | Step::Flow { .. }) {
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

/// A hash under which equal steps fall together; rules are told apart by where they lie.
fn hash(step: &Step) -> u64 {
    use std::hash::{BuildHasher, Hash, Hasher};
    let mut hasher = foldhash::fast::FixedState::default().build_hasher();
    std::mem::discriminant(step).hash(&mut hasher);
    step.next().for_each(|n| n.hash(&mut hasher));
    match step {
        Step::Test { atom, element, .. } => (atom, element).hash(&mut hasher),
        Step::Switch { on, element, .. } => (on, element).hash(&mut hasher),
        Step::Classify { keys, element, .. } => (keys, element).hash(&mut hasher),
        Step::Flow { lookup, .. } => lookup.hash(&mut hasher),
        Step::Exit(exit) => exit.hash(&mut hasher),
    }
    hasher.finish()
}

/// Keeps the terms, lookups and state that are needed, and numbers them anew.
struct Renumber<'a> {
    draft: &'a Draft,
    needed: Vec<bool>,
    lookups: Vec<bool>,
    state: Vec<bool>,
}

impl<'a> Renumber<'a> {
    fn new(draft: &'a Draft) -> Self {
        Self {
            draft,
            needed: vec![false; draft.terms.all().len()],
            lookups: vec![false; draft.lookups.len()],
            state: vec![false; draft.state.len()],
        }
    }

    fn need(&mut self, step: &Step) {
        let mut terms = step.terms();
        match step {
            Step::Flow { lookup, .. } => self.lookup(lookup.0, &mut terms),
            Step::Exit(exit) => {
                for effect in &exit.effects {
                    match effect {
                        Effect::Count { counter, .. } => self.state[usize::from(counter.0)] = true,
                        Effect::Update { lookup, .. } => self.lookup(lookup.0, &mut terms),
                        Effect::Note { .. } => {}
                    }
                }
            }
            _ => {}
        }
        while let Some(term) = terms.pop() {
            let at = term.0 as usize;
            if !self.needed[at] {
                self.needed[at] = true;
                let term = self.draft.terms.get(term);
                terms.extend(term.operands());
                if let Term::Bound(lookup, _) = term {
                    self.lookup(lookup.0, &mut terms);
                }
            }
        }
    }

    fn lookup(&mut self, lookup: u16, terms: &mut Vec<TermId>) {
        let at = usize::from(lookup);
        if !std::mem::replace(&mut self.lookups[at], true) {
            let lookup = &self.draft.lookups[at];
            terms.extend(&lookup.key);
            self.state[usize::from(lookup.flows.0)] = true;
        }
    }

    fn finish(self, entry: Port, mut steps: Vec<Step>) -> Program {
        fn places(needed: &[bool]) -> Vec<usize> {
            let mut next = 0;
            let place = |&n: &bool| {
                next += usize::from(n);
                next.wrapping_sub(1)
            };
            needed.iter().map(place).collect()
        }
        let (terms, lookups, state) =
            (places(&self.needed), places(&self.lookups), places(&self.state));
        let mut term = |t: TermId| TermId(terms[t.0 as usize] as u32);
        let lookup_at =
            |l: ir::program::LookupId| ir::program::LookupId(lookups[usize::from(l.0)] as u16);
        let state_at =
            |s: ir::program::StateId| ir::program::StateId(state[usize::from(s.0)] as u16);
        for step in &mut steps {
            map_terms(step, &mut term);
            match step {
                Step::Flow { lookup, .. } => *lookup = lookup_at(*lookup),
                Step::Exit(exit) => {
                    for effect in &mut exit.effects {
                        match effect {
                            Effect::Count { counter, .. } => *counter = state_at(*counter),
                            Effect::Update { lookup, .. } => *lookup = lookup_at(*lookup),
                            Effect::Note { .. } => {}
                        }
                    }
                }
                _ => {}
            }
        }
        let kept = |(needed, of): (&bool, usize)| needed.then_some(of);
        let all = self.draft.terms.all();
        let new_terms = self.needed.iter().zip(0..).filter_map(kept).map(|at| {
            let mut new = all[at].clone();
            map_operands(&mut new, &mut term);
            if let Term::Bound(lookup, _) = &mut new {
                *lookup = lookup_at(*lookup);
            }
            new
        });
        let new_terms = new_terms.collect();
        let new_lookups = self.lookups.iter().zip(0..).filter_map(kept).map(|at| {
            let mut new = self.draft.lookups[at].clone();
            new.key.iter_mut().for_each(|k| *k = term(*k));
            new.flows = state_at(new.flows);
            new
        });
        let new_lookups = new_lookups.collect();
        let new_state =
            self.state.iter().zip(0..).filter_map(kept).map(|at| self.draft.state[at].clone());
        Program { entry, terms: new_terms, state: new_state.collect(), lookups: new_lookups, steps }
    }
}
