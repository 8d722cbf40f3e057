//! Flows that a device has leases of: what of a flow it needs to leave as it is, and who may give leases.
//!
//! A device goes by what a flow is, and changes nothing of it. So an exit that changes a flow is divided: into one for
//! packets that leave what both directions share as it is, of which only the time matters, and one for the others. Whoever
//! gives leases asks now and then which flows had packets, and has them live on as the elements would have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use codegen::ebpf::lease::{Leases, Promise, leases, promises};
use ir::model::CompareOp;
use ir::program::{Atom, Effect, End, Exit, LookupId, Step, StepId, Term, TermId};
use ir::{NodeId, Port, Program};

use super::Compiled;
use super::offload::element;

/// Conditions for one flow at most; an exit with more stays as it is.
const MOST: usize = 64;
/// How deep in a number a condition is looked for.
const DEEP: u8 = 8;

/// Whether packets leave a number as it is, by conditions.
enum Tree {
    Same,
    Other,
    Ask(Atom, Box<Tree>, Box<Tree>),
}

impl Tree {
    fn size(&self) -> usize {
        match self {
            Tree::Same | Tree::Other => 0,
            Tree::Ask(_, yes, no) => 1 + yes.size() + no.size(),
        }
    }
}

/// Terms that can become more.
struct Terms {
    all: Vec<Term>,
    known: HashMap<Term, TermId>,
}

impl Terms {
    #[allow(clippy::mutable_key_type, reason = "what a range map caches is no part of what it is")]
    fn new(all: Vec<Term>) -> Self {
        let mut known = HashMap::new();
        for (term, at) in all.iter().zip(0..) {
            known.entry(term.clone()).or_insert(TermId(at));
        }
        Self { all, known }
    }

    fn get(&self, term: TermId) -> &Term {
        &self.all[term.0 as usize]
    }

    fn add(&mut self, term: Term) -> TermId {
        let next = TermId(self.all.len() as u32);
        let id = *self.known.entry(term.clone()).or_insert(next);
        if id == next {
            self.all.push(term);
        }
        id
    }

    /// The numbers that a number is one of, if a condition chooses.
    fn choice(&mut self, term: TermId, depth: u8) -> Option<(Atom, TermId, TermId)> {
        let depth = depth.checked_sub(1)?;
        match self.get(term).clone() {
            Term::Choose(atom, yes, no) => Some((atom, yes, no)),
            Term::Binary(op, a, b) => {
                if let Some((atom, yes, no)) = self.choice(a, depth) {
                    let mut of = |a| self.add(Term::Binary(op, a, b));
                    return Some((atom, of(yes), of(no)));
                }
                let (atom, yes, no) = self.choice(b, depth)?;
                let mut of = |b| self.add(Term::Binary(op, a, b));
                Some((atom, of(yes), of(no)))
            }
            _ => None,
        }
    }

    /// A condition on a number that another condition chooses from two that are known, as that one: and whether it is the
    /// opposite.
    fn simple(&mut self, atom: Atom) -> (Atom, bool) {
        let Atom::Test(term, set) = &atom else { return (atom, false) };
        let Some((inner, yes, no)) = self.choice(*term, DEEP) else { return (atom, false) };
        let (&Term::Const(yes), &Term::Const(no)) = (self.get(yes), self.get(no)) else {
            return (atom, false);
        };
        match (set.contains(yes), set.contains(no)) {
            (true, false) => (inner, false),
            (false, true) => (inner, true),
            _ => (atom, false),
        }
    }

    /// Whether a number is another one.
    fn same(&mut self, term: TermId, as_is: TermId, known: &mut Vec<(Atom, bool)>) -> Tree {
        if term == as_is {
            return Tree::Same;
        }
        let Some((atom, yes, no)) = self.choice(term, DEEP) else {
            let equal = Atom::Compare(CompareOp::Eq, term, as_is);
            return Tree::Ask(equal, Box::new(Tree::Same), Box::new(Tree::Other));
        };
        let (atom, is_opposite) = self.simple(atom);
        let (yes, no) = if is_opposite { (no, yes) } else { (yes, no) };
        if let Some((_, holds)) = known.iter().find(|(other, _)| *other == atom) {
            return self.same(if *holds { yes } else { no }, as_is, known);
        }
        if known.len() > MOST {
            return Tree::Other;
        }
        let [yes, no] = [(yes, true), (no, false)].map(|(to, holds)| {
            known.push((atom.clone(), holds));
            let tree = self.same(to, as_is, known);
            known.pop();
            Box::new(tree)
        });
        Tree::Ask(atom, yes, no)
    }

    /// A term in which others stand for some.
    fn replaced(&mut self, term: TermId, with: &mut BTreeMap<TermId, TermId>) -> TermId {
        let (mut made_from, mut waiting) = (BTreeSet::new(), vec![term]);
        while let Some(term) = waiting.pop() {
            if !with.contains_key(&term) && made_from.insert(term) {
                waiting.extend(self.get(term).operands());
            }
        }
        for term in made_from {
            let mut made = self.get(term).clone();
            made.map_operands(|of| with.get(&of).copied().unwrap_or(of));
            let made = self.add(made);
            with.insert(term, made);
        }
        with.get(&term).copied().unwrap_or(term)
    }
}

/// Where steps lead, by number, or to one of two exits.
struct Divided {
    tests: Vec<Step>,
    settled: Exit,
}

/// Divides an exit; none if it leaves flows as they are, or that cannot be told.
fn divide(
    program: &Program,
    terms: &mut Terms,
    exit: &Exit,
    node: NodeId,
    first: u32,
) -> Option<Divided> {
    let mut settled = exit.clone();
    let mut trees: Vec<Tree> = Vec::new();
    for effect in &mut settled.effects {
        let Effect::Update { lookup, common, expiry, guarantee } = effect else { continue };
        let (values, bound) = {
            let of = &program.lookups[usize::from(lookup.0)];
            (of.values, usize::from(of.common))
        };
        // What is not bound cannot be compared.
        if common.len() > bound {
            return None;
        }
        let mut with = BTreeMap::new();
        for (term, index) in common.iter_mut().zip(values..) {
            let as_is = terms.add(Term::Bound(*lookup, index));
            if *term != as_is {
                trees.push(terms.same(*term, as_is, &mut Vec::new()));
                with.insert(*term, as_is);
                *term = as_is;
            }
        }
        *expiry = terms.replaced(*expiry, &mut with);
        *guarantee = terms.replaced(*guarantee, &mut with);
    }
    let size: usize = trees.iter().map(Tree::size).sum();
    let is_known = |tree: &Tree| !matches!(tree, Tree::Other);
    if trees.is_empty() || size > MOST || !trees.iter().all(is_known) {
        return None;
    }
    let end = first + size as u32;
    let (same, other) = (StepId(end), StepId(end + 1));
    let mut tests: Vec<Option<Step>> = (0..size).map(|_| None).collect();
    let mut next = first;
    for tree in &trees {
        let behind = match next + tree.size() as u32 {
            at if at == end => same,
            at => StepId(at),
        };
        place(tree, &mut next, (behind, other), (first, node), &mut tests);
    }
    let tests = tests.into_iter().flatten().collect();
    Some(Divided { tests, settled })
}

/// Puts the conditions of a tree behind each other, each before those it leads to; where it begins.
fn place(
    tree: &Tree,
    next: &mut u32,
    (same, other): (StepId, StepId),
    (first, element): (u32, NodeId),
    tests: &mut [Option<Step>],
) -> StepId {
    match tree {
        Tree::Same => same,
        Tree::Other => other,
        Tree::Ask(atom, yes, no) => {
            let at = *next;
            *next += 1;
            let yes = place(yes, next, (same, other), (first, element), tests);
            let no = place(no, next, (same, other), (first, element), tests);
            let test = Step::Test { atom: atom.clone(), yes, no, element };
            tests[(at - first) as usize] = Some(test);
            StepId(at)
        }
    }
}

/// The same program, in which exits that change flows are divided, if a device could do them: see the module.
pub(super) fn settle(program: Program, is_wire: &dyn Fn(Port) -> bool) -> Program {
    let could = |exit: &Exit| match exit.end {
        End::Push { to, .. } => is_wire(to),
        End::Drop { .. } => true,
        End::Handoff { .. } => false,
    };
    let mut terms = Terms::new(program.terms.clone());
    let (mut starts, mut steps): (Vec<StepId>, Vec<(Step, bool)>) = (Vec::new(), Vec::new());
    for (index, step) in program.steps.iter().enumerate() {
        let first = steps.len() as u32;
        starts.push(StepId(first));
        let node = element(&program, StepId(index as u32));
        let divided = match step {
            Step::Exit(exit) if could(exit) => divide(&program, &mut terms, exit, node, first),
            _ => None,
        };
        if let Some(Divided { tests, settled }) = divided {
            // These have their numbers already.
            steps.extend(tests.into_iter().map(|test| (test, true)));
            steps.push((Step::Exit(Box::new(settled)), true));
        }
        steps.push((step.clone(), false));
    }
    if steps.len() == program.steps.len() {
        return program;
    }
    let steps = steps.into_iter().map(|(mut step, is_placed)| {
        if !is_placed {
            step.map_next(|next| starts[next.0 as usize]);
        }
        step
    });
    let steps = steps.collect();
    Program { steps, terms: terms.all, ..program }.normal()
}

/// A lookup of a device in a table of flows.
#[derive(Clone, Debug)]
struct Use {
    program: Arc<Program>,
    lookup: LookupId,
    /// What is always the same of its key.
    key: Vec<Option<u128>>,
    /// Until when flows live, and may not be evicted, after packets.
    until: Vec<(TermId, TermId)>,
    promises: Vec<Promise>,
}

/// Who gives a device leases of the flows of a table.
#[derive(Clone, Debug)]
pub struct Lessor {
    /// The table.
    pub of: Leases,
    uses: Vec<Use>,
}

/// The tables of flows that a device has leases of.
pub fn lessors(compiled: &Compiled) -> Vec<Lessor> {
    let programs: Vec<Arc<Program>> =
        compiled.parts.iter().map(|part| Arc::new(part.offload.segment.program.clone())).collect();
    let all = leases(programs.iter().map(|program| &**program));
    let lessor = |of: Leases| {
        let uses = programs.iter().flat_map(|program| uses(program, &of)).collect();
        Lessor { of, uses }
    };
    all.into_iter().map(lessor).collect()
}

fn uses(program: &Arc<Program>, of: &Leases) -> Vec<Use> {
    let mut all: Vec<Use> = Vec::new();
    for step in &program.steps {
        let Step::Lookup { lookup, .. } = *step else { continue };
        if !of.has(program, lookup) || all.iter().any(|one| one.lookup == lookup) {
            continue;
        }
        let constant = |term: &TermId| match program.term(*term) {
            Term::Const(value) => Some(*value),
            _ => None,
        };
        let key = program.lookups[usize::from(lookup.0)].key.iter().map(constant).collect();
        let effects = program.exits().flat_map(|(_, exit)| &exit.effects);
        let mut until: Vec<(TermId, TermId)> = effects
            .filter_map(|effect| match effect {
                Effect::Update { lookup: of, expiry, guarantee, .. } if *of == lookup => {
                    Some((*expiry, *guarantee))
                }
                _ => None,
            })
            .collect();
        until.sort_unstable();
        until.dedup();
        let promises = promises(program, lookup);
        all.push(Use { program: Arc::clone(program), lookup, key, until, promises });
    }
    all
}

impl Lessor {
    /// Whether the device may have a lease under a key of a flow of which lookups bind these numbers, and that lives until
    /// `prolonged`, and may not be evicted until then, if a packet comes now that changes nothing else: whatever packets the
    /// device lets pass do just that. Until when, at most until `expiry`: conditions come out then as they do now.
    pub fn allows(
        &self,
        key: &[u128],
        bound: &[u128],
        (now, expiry): (u64, u64),
        prolonged: (u64, u64),
    ) -> Option<u64> {
        let is_meant = |one: &&Use| {
            let same = |(own, other): (&Option<u128>, &u128)| own.is_none_or(|own| own == *other);
            one.key.len() == key.len() && one.key.iter().zip(key).all(same)
        };
        let mut until = None;
        for one in self.uses.iter().filter(is_meant) {
            let number = |term| value(&one.program, one.lookup, bound, now, term);
            let prolongs = |(expiry, guarantee): &(TermId, TermId)| {
                number(*expiry) == Some(prolonged.0.into())
                    && number(*guarantee) == Some(prolonged.1.into())
            };
            if !one.until.iter().all(prolongs) {
                return None;
            }
            let last = one.promises.iter().try_fold(expiry, |until, promise| {
                last(now, until, |at| one.keeps(promise, bound, at))
            })?;
            until = Some(until.map_or(last, |until: u64| until.min(last)));
        }
        until
    }
}

impl Use {
    /// Whether a condition comes out as promised at a time.
    fn keeps(&self, promise: &Promise, bound: &[u128], at: u64) -> bool {
        let number = |term: &TermId| value(&self.program, self.lookup, bound, at, *term);
        let holds = match &promise.atom {
            Atom::Test(term, set) => number(term).map(|number| set.contains(number)),
            Atom::Compare(op, a, b) => number(a).zip(number(b)).map(|(a, b)| op.holds(a, b)),
        };
        holds == Some(promise.holds)
    }
}

/// The last time from `now` to `end` up to which something is so that is so now: it changes once.
fn last(now: u64, end: u64, is_so: impl Fn(u64) -> bool) -> Option<u64> {
    let (mut from, mut to) = (now, end.max(now));
    if !is_so(from) {
        return None;
    }
    while from < to {
        let middle = to - (to - from) / 2;
        if is_so(middle) { from = middle } else { to = middle - 1 }
    }
    Some(from)
}

/// What a term is that follows from a flow and the time.
fn value(
    program: &Program,
    lookup: LookupId,
    bound: &[u128],
    now: u64,
    term: TermId,
) -> Option<u128> {
    let (mut made_from, mut waiting) = (BTreeSet::new(), vec![term]);
    while let Some(term) = waiting.pop() {
        if made_from.insert(term) {
            waiting.extend(program.term(term).operands());
        }
    }
    let mut all: BTreeMap<TermId, u128> = BTreeMap::new();
    for term in made_from {
        let of = |term: &TermId| all.get(term).copied();
        let number = match program.term(term) {
            Term::Const(value) => *value,
            Term::Now => now.into(),
            Term::Bound(of, index) if *of == lookup => *bound.get(usize::from(*index))?,
            Term::Binary(op, a, b) => op.apply(of(a)?, of(b)?),
            Term::Slice { of: whole, low, width } => {
                let ones = u128::MAX.checked_shr(128 - u32::from(*width)).unwrap_or(0);
                of(whole)?.checked_shr((*low).into()).unwrap_or(0) & ones
            }
            Term::Choose(atom, yes, no) => {
                let holds = match atom {
                    Atom::Test(term, set) => set.contains(of(term)?),
                    Atom::Compare(op, a, b) => op.holds(of(a)?, of(b)?),
                };
                of(if holds { yes } else { no })?
            }
            _ => return None,
        };
        all.insert(term, number);
    }
    all.get(&term).copied()
}
