//! A program that a reader makes of rules: from the ends of paths to the first step.

use std::collections::{BTreeMap, HashMap};

use ir::model::BinaryOp;
use ir::program::{Atom, End, Exit, Program, Step, StepId, Term, TermId, Writes};
use ir::{Base, Field, IntervalSet, Port, Reason};

/// Steps that a program is read as.
const MOST_STEPS: usize = 1 << 20;

/// The line that it is about, from 1, or 0, and why.
pub(crate) type Failure = (usize, String);

/// Bits of the packet as it came in.
pub(crate) fn data(offset: u16, width: u16) -> Field {
    Field::bits(Base::Data, offset, width)
}

/// The terms of a program, each once.
pub(crate) struct Terms {
    all: Vec<Term>,
    known: HashMap<Term, TermId>,
}

impl Terms {
    #[allow(clippy::mutable_key_type, reason = "what a range map caches is no part of what it is")]
    fn new(all: Vec<Term>) -> Self {
        let known = (0..).map(TermId).zip(&all).map(|(id, term)| (term.clone(), id)).collect();
        Self { all, known }
    }

    /// A term; its operands are some already.
    pub(crate) fn add(&mut self, term: Term) -> TermId {
        let next = TermId(self.all.len() as u32);
        let id = *self.known.entry(term.clone()).or_insert(next);
        if id == next {
            self.all.push(term);
        }
        id
    }

    pub(crate) fn input(&mut self, field: Field) -> TermId {
        self.add(Term::Input(field))
    }

    pub(crate) fn constant(&mut self, value: u128) -> TermId {
        self.add(Term::Const(value))
    }

    /// An operation on a term and a number.
    pub(crate) fn with(&mut self, op: BinaryOp, term: TermId, number: u128) -> TermId {
        let number = self.constant(number);
        self.add(Term::Binary(op, term, number))
    }
}

/// A step of a draft, by index: those that it leads to are there before it.
pub(crate) type At = usize;

/// A program in the making.
pub(crate) struct Draft {
    pub(crate) terms: Terms,
    entry: Port,
    steps: Vec<Step>,
    exits: HashMap<Exit, At>,
}

impl Draft {
    /// The draft of a program that stands for another, with that one's terms.
    pub(crate) fn new(of: &Program) -> Self {
        let terms = Terms::new(of.terms.clone());
        Self { terms, entry: of.entry, steps: Vec::new(), exits: HashMap::new() }
    }

    /// The program from a step on.
    pub(crate) fn program(self, root: At, of: &Program) -> Program {
        Program {
            entry: of.entry,
            continuation: of.continuation,
            terms: self.terms.all,
            state: of.state.clone(),
            tables: of.tables.clone(),
            lookups: of.lookups.clone(),
            steps: in_order(self.steps, StepId(root as u32)),
        }
    }

    /// # Errors
    /// There are too many.
    pub(crate) fn step(&mut self, step: Step) -> Result<At, Failure> {
        if self.steps.len() >= MOST_STEPS {
            return Err((0, format!("it is more than {MOST_STEPS} steps")));
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    /// # Errors
    /// There are too many steps.
    pub(crate) fn test(&mut self, atom: Atom, yes: At, no: At) -> Result<At, Failure> {
        if yes == no {
            return Ok(yes);
        }
        let element = self.entry.node;
        let [yes, no] = [yes, no].map(|at| StepId(at as u32));
        self.step(Step::Test { atom, yes, no, element })
    }

    /// The step of a number: the first set that it is in counts.
    ///
    /// # Errors
    /// There are too many steps.
    pub(crate) fn switch<'a>(
        &mut self,
        on: TermId,
        width: u16,
        rules: impl Iterator<Item = (&'a IntervalSet, At)>,
        otherwise: At,
    ) -> Result<At, Failure> {
        let mut left = IntervalSet::full(width);
        // Sets that lead to one step are one case.
        let mut cases: BTreeMap<At, Vec<(u128, u128)>> = BTreeMap::new();
        for (set, to) in rules {
            let set = left.intersect(set);
            left = left.subtract(&set);
            if to != otherwise && !set.is_empty() {
                cases.entry(to).or_default().extend(set.intervals());
            }
        }
        let case = |(to, set)| (IntervalSet::from_intervals(set), StepId(to as u32));
        let cases: Vec<(IntervalSet, StepId)> = cases.into_iter().map(case).collect();
        match &cases[..] {
            [] => Ok(otherwise),
            [(set, yes)] => {
                self.test(Atom::Test(on, set.clone().into()), yes.0 as usize, otherwise)
            }
            _ => {
                let (element, otherwise) = (self.entry.node, StepId(otherwise as u32));
                self.step(Step::Switch { on, cases, otherwise, element })
            }
        }
    }

    /// # Errors
    /// There are too many steps.
    pub(crate) fn exit(&mut self, exit: Exit) -> Result<At, Failure> {
        if let Some(&at) = self.exits.get(&exit) {
            return Ok(at);
        }
        let at = self.step(Step::Exit(Box::new(exit.clone())))?;
        self.exits.insert(exit, at);
        Ok(at)
    }

    /// Packets of which the rules do not say what becomes are dropped.
    ///
    /// # Errors
    /// There are too many steps.
    pub(crate) fn lost(&mut self, reason: Reason) -> Result<At, Failure> {
        self.exit(Exit {
            effects: Vec::new(),
            writes: Writes::default(),
            end: End::Drop { element: self.entry.node, reason },
            barrier: None,
            visited: vec![self.entry],
            copies: Vec::new(),
        })
    }
}

/// A rule whose conditions depend on the packet.
pub(crate) struct Rule<K> {
    /// Which one it is.
    pub(crate) entry: usize,
    /// What it matches, by field.
    pub(crate) sets: Vec<(K, IntervalSet)>,
    pub(crate) to: At,
}

/// Makes one rule of neighbours that lead to one step and differ in one field, as prefixes of a range do.
pub(crate) fn joined<K: PartialEq>(rules: Vec<Rule<K>>) -> Vec<Rule<K>> {
    let mut joined: Vec<Rule<K>> = Vec::with_capacity(rules.len());
    for rule in rules {
        joined.push(rule);
        while let [.., last, next] = &mut joined[..] {
            let field = differing(&last.sets, &next.sets).filter(|_| last.to == next.to);
            let Some(field) = field else { break };
            last.sets[field].1 = last.sets[field].1.union(&next.sets[field].1);
            joined.pop();
        }
    }
    joined
}

/// The one field in which two conditions on the same fields differ.
fn differing<K: PartialEq>(a: &[(K, IntervalSet)], b: &[(K, IntervalSet)]) -> Option<usize> {
    let same = a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0);
    let mut differ = (0..a.len()).filter(|&at| same && a[at].1 != b[at].1);
    let first = differ.next()?;
    differ.next().is_none().then_some(first)
}

/// Steps in an order in which each stands behind those that lead to it, of an order in which it stands before them;
/// without those that none leads to.
pub(crate) fn in_order(mut steps: Vec<Step>, root: StepId) -> Vec<Step> {
    let mut reached = vec![false; steps.len()];
    if let Some(root) = reached.get_mut(root.0 as usize) {
        *root = true;
    }
    for at in (0..steps.len()).rev() {
        if reached[at] {
            steps[at].next().for_each(|next| reached[next.0 as usize] = true);
        }
    }
    let mut number = vec![StepId(0); steps.len()];
    let all = (0..steps.len()).rev().filter(|&at| reached[at]);
    for (at, id) in all.zip((0..).map(StepId)) {
        number[at] = id;
    }
    let mut at = 0;
    steps.retain(|_| {
        at += 1;
        reached[at - 1]
    });
    steps.reverse();
    for step in &mut steps {
        step.map_next(|next| number[next.0 as usize]);
    }
    steps
}
