//! Where a program asks the flow cache, and what the entries there hold.
//!
//! Packets with the same inputs to all lookups take the same path, but for conditions on other
//! things (lengths, flags, the time to live). Such a condition is computed for every packet, and
//! an entry says which of them matter to it and what they must come to.

use std::collections::{BTreeSet, HashMap, HashSet};

use elements::flow_access::columns;
use ir::Field;
use ir::model::BinaryOp;
use ir::program::{Atom, Program, Step, StepId, Term, TermId};

use super::cache::{RARELY, SLOTS};
use super::classifiers::Classifiers;
use super::compile::{Compiler, Known, Residual, reachable, sets_of};
use super::entry::CachedExit;
use super::gate::Gates;
use super::lanes::{Cond, MOST_TESTS, Part, Reg};
use super::plan::{Node, Plan, Site, node, plan, updates};

/// Conditions on packets that one cache entry may depend on.
const MOST_CONDITIONS: usize = 32;
/// Bits of numbers that mostly are the same in all packets of a flow.
const NARROW: u16 = 8;
/// Where fewer flows are looked up and no list of rules is, finding these takes less time than a cache entry.
const FEWEST_LOOKUPS: usize = 2;
/// Where so many flows are looked up, an entry pays sooner.
const MANY_LOOKUPS: usize = 4;
/// Programs with more steps ask tables packet by packet.
const MOST_STEPS: usize = 100_000;

/// A program, compiled.
pub(super) struct Compiled {
    pub(super) nodes: Vec<Node>,
    /// By step: the site where the flow cache is asked before.
    pub(super) asks: Vec<Option<u16>>,
    pub(super) plans: Vec<Plan>,
    pub(super) sites: Vec<Site>,
    /// Of the time, what the expiry of flows does not depend on.
    pub(super) tick: u64,
}

impl Compiled {
    /// Makes tests one where lanes come to the next only from the one before.
    fn chain_tests(&mut self) {
        let mut before = vec![0u32; self.nodes.len()];
        for node in &self.nodes {
            node.next().for_each(|to| before[to.0 as usize] += 1);
        }
        // From the last on, so that what is appended is complete.
        for at in (0..self.nodes.len()).rev() {
            let Node::Tests { conds, yes, .. } = &self.nodes[at] else { continue };
            let (length, next) = (conds.len(), yes.0 as usize);
            let Node::Tests { conds: more, .. } = &self.nodes[next] else { continue };
            if before[next] != 1 || self.asks[next].is_some() || length + more.len() > MOST_TESTS {
                continue;
            }
            let appended = std::mem::replace(&mut self.nodes[next], Node::Scalar);
            if let Node::Tests { needs, conds, no, yes } = &mut self.nodes[at]
                && let Node::Tests { needs: more, conds: after, no: others, yes: last } = appended
            {
                let all: BTreeSet<Reg> = needs.iter().copied().chain(more).collect();
                *needs = all.into_iter().collect();
                conds.extend(after);
                no.extend(others);
                *yes = last;
            }
        }
    }
}

/// An exit's outcome, as the compiler must know it.
pub(super) struct ExitLengths<'a> {
    pub(super) outcome: u32,
    /// Of copies, in order, and of the packet.
    pub(super) lengths: Vec<&'a [TermId]>,
}

pub(super) struct Builder<'c, 'a> {
    compiler: &'c mut Compiler<'a>,
    exits: &'c HashMap<StepId, ExitLengths<'c>>,
    classifiers: &'c Classifiers,
    /// By step: how many flows are looked up from there on, at the most.
    lookups: Vec<usize>,
    /// Absent if times are computed so that entries cannot follow.
    tick: Option<u64>,
    /// By step: the last step that all lanes have been at that come to it; [`NONE`] if there is
    /// none.
    dominators: Vec<u32>,
    /// By step: whether all lanes that come to it have been at a site.
    asked: Vec<bool>,
    /// By step: whether lanes that looked up flows come to it. What these bound, no key of the flow cache has.
    behind_flows: Vec<bool>,
    compiled: Compiled,
}

const NONE: u32 = u32::MAX;
/// Steps on the path to one that are asked what is known when lanes come to it.
const MOST_DOMINATORS: usize = 64;

impl<'c, 'a> Builder<'c, 'a> {
    pub(super) fn build(
        compiler: &'c mut Compiler<'a>,
        exits: &'c HashMap<StepId, ExitLengths<'c>>,
        classifiers: &'c Classifiers,
    ) -> Compiled {
        let program = compiler.program();
        let lookups = most_lookups(program);
        let tick = tick(program).filter(|_| program.steps.len() <= MOST_STEPS);
        let nodes = program.steps.iter().map(|_| Node::Scalar).collect();
        let tick_mask = tick.unwrap_or(0);
        let compiled = Compiled {
            nodes,
            asks: vec![None; program.steps.len()],
            plans: Vec::new(),
            sites: Vec::new(),
            tick: tick_mask,
        };
        let dominators = vec![NONE; program.steps.len()];
        let asked = vec![false; program.steps.len()];
        let behind_flows = asked.clone();
        let mut builder = Self {
            compiler,
            exits,
            classifiers,
            lookups,
            tick,
            dominators,
            asked,
            behind_flows,
            compiled,
        };
        builder.compiler.gates = Gates::new(builder.compiler);
        builder.visit();
        builder.share_words();
        builder.compiled.chain_tests();
        builder.compiled
    }

    /// Decides what each step becomes that lanes can come to.
    fn visit(&mut self) {
        let program = self.compiler.program();
        let mut reached = vec![false; program.steps.len()];
        if let Some(first) = reached.first_mut() {
            *first = true;
        }
        for at in 0..program.steps.len() {
            if !reached[at] {
                continue;
            }
            let step = StepId(at as u32);
            let made = match program.step(step) {
                Step::Exit(exit) => {
                    let ExitLengths { outcome, lengths } = &self.exits[&step];
                    plan(self.compiler, (step, exit), *outcome, lengths, None).map(|plan| {
                        self.compiled.plans.push(plan);
                        Node::Exit(self.compiled.plans.len() as u32 - 1)
                    })
                }
                other => {
                    let may_ask = self.lookups[at] > 0 && !self.asked[at] && !self.behind_flows[at];
                    if let Some(site) = may_ask.then(|| self.site(step)).flatten() {
                        self.compiled.asks[at] = u16::try_from(self.compiled.sites.len()).ok();
                        self.compiled.sites.push(site);
                        self.asked[at] = true;
                    }
                    node(self.compiler, step).inspect(|_| {
                        let is_lookup = matches!(other, Step::Lookup { .. });
                        let behind_flows = self.behind_flows[at] || is_lookup;
                        other.next().for_each(|to| {
                            self.behind_flows[to.0 as usize] |= behind_flows;
                            self.lead(at as u32, to.0 as usize, reached[to.0 as usize]);
                            reached[to.0 as usize] = true;
                        });
                    })
                }
            };
            self.set(at, made);
        }
    }

    /// Has words read together, before anything else.
    fn share_words(&mut self) {
        let lanes = &mut self.compiler.lanes;
        lanes.share_words();
        let Compiled { nodes, plans, sites, .. } = &mut self.compiled;
        let nodes = nodes.iter_mut().filter_map(Node::needs_mut);
        let (plans, sites) = (plans.iter_mut(), sites.iter_mut());
        let all = nodes.chain(plans.map(|p| &mut p.needs)).chain(sites.flat_map(Site::needs_mut));
        for needs in all {
            *needs = needs.iter().copied().filter(|&reg| !lanes.is_there(reg)).collect();
        }
    }

    /// Lanes come from one step to another, which others came to `before`.
    fn lead(&mut self, from: u32, to: usize, before: bool) {
        let (mut a, mut b) = (from, if before { self.dominators[to] } else { from });
        while a != b {
            // Steps lead to later ones only.
            let later = if a != NONE && (b == NONE || a > b) { &mut a } else { &mut b };
            *later = self.dominators[*later as usize];
        }
        self.dominators[to] = a;
        self.asked[to] = self.asked[from as usize] && (self.asked[to] || !before);
    }

    /// Sets what is done at a step, and takes out of what it and its site need the columns that are known whenever lanes
    /// come to it.
    fn set(&mut self, at: usize, node: Option<Node>) {
        let mut known: HashSet<Reg> = HashSet::new();
        let Compiled { nodes, asks, plans, sites, .. } = &mut self.compiled;
        let next = |at: &u32| Some(self.dominators[*at as usize]).filter(|at| *at != NONE);
        for before in std::iter::successors(next(&(at as u32)), next).take(MOST_DOMINATORS) {
            known.extend(nodes[before as usize].needs());
            let site = asks[before as usize].map(|site| &sites[usize::from(site)]);
            known.extend(site.iter().flat_map(|site| &site.needs));
        }
        let mut leave_out = |needs: &mut Box<[Reg]>| {
            *needs = needs.iter().copied().filter(|reg| !known.contains(reg)).collect();
            known.extend(needs.iter());
        };
        if let Some(site) = asks[at] {
            leave_out(&mut sites[usize::from(site)].needs);
        }
        let Some(mut node) = node else { return };
        match &mut node {
            Node::Exit(plan) => leave_out(&mut plans[*plan as usize].needs),
            node => node.needs_mut().into_iter().for_each(leave_out),
        }
        nodes[at] = node;
    }

    /// The site at a step, if packets with the same inputs to lookups take the same path from there.
    fn site(&mut self, step: StepId) -> Option<Site> {
        self.tick?;
        if self.compiled.sites.len() >= usize::from(u16::MAX) {
            return None;
        }
        let program = self.compiler.program();
        let region = reachable(program, step);
        let is_list = |at: &StepId| matches!(program.step(*at), Step::Classify { .. });
        if self.lookups[step.0 as usize] < FEWEST_LOOKUPS && !region.iter().any(is_list) {
            return None;
        }
        let inputs = self.inputs(&region)?;
        let known = Known { fixed: fixed(program, &inputs) };
        let decides = |key: &TermId| known.fixed[key.0 as usize];
        match program.step(step) {
            Step::Classify { keys, .. } if keys.iter().any(decides) => {}
            step if is_fixed(step, &known) => {}
            _ => return None,
        }
        let key = self.key(&inputs)?;
        let one_of = if self.lookups[step.0 as usize] < MANY_LOOKUPS { RARELY } else { 1 };
        let mut site =
            Site { one_of, needs: Box::default(), key, conditions: Vec::new(), exits: Vec::new() };
        // By step: which conditions decide there or before.
        let mut deciding: HashMap<StepId, u32> = HashMap::new();
        // Steps behind a question about the time: what becomes of packets there, no entry says.
        let mut timed: HashSet<StepId> = HashSet::new();
        for &at in &region {
            let own = self.deciding(at, &known, &mut site.conditions)?;
            let all = own | deciding.get(&at).copied().unwrap_or(0);
            deciding.insert(at, all);
            program.step(at).next().for_each(|to| *deciding.entry(to).or_default() |= all);
            if timed.contains(&at) || asks_time(program, at) {
                timed.extend(program.step(at).next());
            }
        }
        for &at in &region {
            if let Some(exit) = self.exits.get(&at)
                && !timed.contains(&at)
                && let Some(cached) =
                    self.cached_exit((at, deciding[&at]), &known, &mut site.conditions)
            {
                site.exits.push((exit.outcome, cached));
            }
        }
        if site.exits.is_empty() {
            return None;
        }
        let conditions = site.conditions.iter().flat_map(|c| c.operands()).flatten();
        let wanted: Vec<Reg> = site.key.iter().map(|k| k.0).chain(conditions).collect();
        site.needs = self.compiler.lanes.needs(wanted);
        Some(site)
    }

    /// What flows are looked up by in some steps, the first of which the site is at, and what lists ask there, but for
    /// numbers of which they ask few sets: these are conditions. Before a lookup, lists add narrow numbers only, as the
    /// protocol is: with others, such as a packet's length, hardly a key would come again.
    fn inputs(&self, region: &[StepId]) -> Option<Vec<TermId>> {
        let program = self.compiler.program();
        let is_lookup = |at: &StepId| matches!(program.step(*at), Step::Lookup { .. });
        let most = if region.first().is_some_and(is_lookup) { u16::MAX } else { NARROW };
        let mut leaves = Vec::new();
        for &at in region {
            match program.step(at) {
                Step::Lookup { lookup, .. } => {
                    let key = &program.lookups[usize::from(lookup.0)].key;
                    add_leaves(program, key, &mut leaves)?;
                }
                Step::Classify { keys, .. } => {
                    let many =
                        |(place, _): &(usize, _)| self.classifiers.asked(at, *place).is_none();
                    for (_, key) in keys.iter().enumerate().filter(many) {
                        let mut of_key = Vec::new();
                        add_leaves(program, &[*key], &mut of_key)?;
                        of_key.retain(|leaf| !leaves.contains(leaf));
                        let width = |leaf: &TermId| self.compiler.width(*leaf);
                        if of_key.iter().all(|leaf| width(leaf) <= most) {
                            leaves.extend(of_key);
                        }
                    }
                }
                _ => {}
            }
        }
        let bits: u32 = leaves.iter().map(|&t| u32::from(self.compiler.width(t))).sum();
        (bits <= 128).then_some(leaves)
    }

    /// The conditions on packets that decide at a step.
    fn deciding(&mut self, at: StepId, known: &Known, all: &mut Vec<Cond>) -> Option<u32> {
        let step = self.compiler.program().step(at);
        if is_fixed(step, known) {
            return Some(0);
        }
        match step {
            Step::Test { atom, .. } if self.compiler.is_decided(atom) => Some(0),
            Step::Test { atom, .. } => match self.compiler.packet_atom(atom) {
                Some(cond) => number(cond, all),
                None => atom
                    .operands()
                    .iter()
                    .try_fold(0, |bits, &term| Some(bits | self.choices(term, known, all)?)),
            },
            Step::Switch { on, .. } if self.compiler.is_bound(*on) => None,
            Step::Switch { on, cases, .. } => cases.iter().try_fold(0, |bits, (set, _)| {
                Some(bits | number(self.compiler.case(*on, set)?, all)?)
            }),
            Step::Classify { keys, .. } => {
                let differing = |(_, key): &(usize, &TermId)| !known.fixed[key.0 as usize];
                let mut differing = keys.iter().enumerate().filter(differing);
                let classifiers = self.classifiers;
                differing.try_fold(0, |bits, (place, &key)| {
                    classifiers.asked(at, place)?.try_fold(bits, |bits, set| {
                        let atom = Atom::Test(key, set.clone().into());
                        let cond = self.compiler.packet_atom(&atom)?;
                        Some(bits | number(cond, all)?)
                    })
                })
            }
            _ => None,
        }
    }

    fn cached_exit(
        &mut self,
        (at, mut relevant): (StepId, u32),
        known: &Known,
        conditions: &mut Vec<Cond>,
    ) -> Option<CachedExit> {
        let Step::Exit(exit) = self.compiler.program().step(at) else { return None };
        let changing = |term: &TermId| self.compiler.is_changing(*term);
        let writes_cells = sets_of(exit).next().is_some();
        if writes_cells || !exit.copies.is_empty() || exit.terms().iter().any(changing) {
            return None;
        }
        let ExitLengths { outcome, lengths } = self.exits.get(&at)?;
        for (common, times) in updates(exit) {
            for &term in common.iter().chain(&times) {
                relevant |= self.choices(term, known, conditions)?;
            }
        }
        let mut residual = Residual::new(known);
        let plan = plan(self.compiler, (at, exit), *outcome, lengths, Some(&mut residual))?;
        let slots = residual.slots;
        if slots.len() > SLOTS {
            return None;
        }
        let number = self.compiled.plans.len() as u32;
        let exit = CachedExit::new(self.compiler, (number, &slots), relevant)?;
        self.compiled.plans.push(plan);
        Some(exit)
    }

    /// The conditions on packets that a number depends on, if it depends on nothing else of them.
    fn choices(&mut self, term: TermId, known: &Known, all: &mut Vec<Cond>) -> Option<u32> {
        let program = self.compiler.program();
        let (mut waiting, mut seen) = (vec![term], vec![false; program.terms.len()]);
        let mut deciding = 0;
        while let Some(term) = waiting.pop() {
            let at = term.0 as usize;
            if known.fixed[at] || std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match program.term(term) {
                Term::Choose(atom, a, b) => {
                    if !atom.operands().iter().all(|t| known.fixed[t.0 as usize]) {
                        match self.compiler.packet_atom(atom) {
                            Some(cond) => deciding |= number(cond, all)?,
                            // What it compares is itself chosen by such conditions.
                            None => waiting.extend(atom.operands()),
                        }
                    }
                    waiting.extend([*a, *b]);
                }
                Term::Now => {}
                Term::Input(_) | Term::Position(_) | Term::Cell(..) | Term::Sum16 { .. } => {
                    return None;
                }
                other => waiting.extend(other.operands()),
            }
        }
        Some(deciding)
    }

    /// Where each input goes in a key of two words.
    fn key(&mut self, inputs: &[TermId]) -> Option<Vec<Part>> {
        let mut taken = [0u8; 2];
        let mut key = Vec::new();
        // Parts of at most 32 bits.
        let mut parts: Vec<(u16, TermId, Reg)> = Vec::new();
        for &input in inputs {
            let width = self.compiler.width(input);
            let words = self.compiler.words(input, columns(width), &mut None)?;
            let widths = (0..).map(|word| (width - 32 * word).min(32));
            parts.extend(widths.zip(words).map(|(width, reg)| (width, input, reg)));
        }
        parts.sort_by_key(|&(width, term, reg)| (std::cmp::Reverse(width), term, reg));
        for (width, _, reg) in parts {
            let word = taken.iter().position(|&bits| u16::from(bits) + width <= 64)?;
            key.push((reg, word as u8, taken[word]));
            taken[word] += width as u8;
        }
        Some(key)
    }
}

/// Whether what a step decides depends on the time.
fn asks_time(program: &Program, at: StepId) -> bool {
    let mut waiting = match program.step(at) {
        Step::Test { atom, .. } => atom.operands().to_vec(),
        Step::Switch { on, .. } => vec![*on],
        Step::Classify { keys, .. } => keys.clone(),
        Step::Lookup { lookup, .. } => program.lookups[usize::from(lookup.0)].key.clone(),
        Step::Exit(_) => Vec::new(),
    };
    let mut seen = HashSet::new();
    while let Some(term) = waiting.pop() {
        if seen.insert(term) {
            match program.term(term) {
                Term::Now => return true,
                other => waiting.extend(other.operands()),
            }
        }
    }
    false
}

/// By step: how many flows packets look up from there on, at the most.
pub(super) fn most_lookups(program: &Program) -> Vec<usize> {
    let mut lookups = vec![0; program.steps.len()];
    // Steps lead to later ones only.
    for (at, step) in program.steps.iter().enumerate().rev() {
        let most = |next: StepId| lookups[next.0 as usize];
        lookups[at] = match step {
            Step::Lookup { hit, miss, .. } => most(*miss).max(most(*hit) + 1),
            step => step.next().map(most).max().unwrap_or(0),
        };
    }
    lookups
}

/// The bit of a condition.
fn number(cond: Cond, all: &mut Vec<Cond>) -> Option<u32> {
    let at = all.iter().position(|c| *c == cond).unwrap_or_else(|| {
        all.push(cond);
        all.len() - 1
    });
    (at < MOST_CONDITIONS).then(|| 1 << at)
}

/// Adds what of the packet some terms are made from, leaving out what lookups bind.
fn add_leaves(program: &Program, terms: &[TermId], leaves: &mut Vec<TermId>) -> Option<()> {
    let mut waiting = terms.to_vec();
    let mut seen = vec![false; program.terms.len()];
    while let Some(term) = waiting.pop() {
        if std::mem::replace(&mut seen[term.0 as usize], true) {
            continue;
        }
        match program.term(term) {
            Term::Const(_) | Term::Bound(..) => {}
            Term::Now | Term::Cell(..) | Term::Sum16 { .. } => return None,
            Term::Input(_) | Term::Position(_) => {
                if !leaves.contains(&term) {
                    leaves.push(term);
                }
            }
            other => waiting.extend(other.operands()),
        }
    }
    Some(())
}

/// By term: whether it is the same for all packets with the same inputs.
fn fixed(program: &Program, inputs: &[TermId]) -> Vec<bool> {
    // A part of a field that is looked at is as fixed as the field.
    let covers = |whole: Field, part: Field| {
        let end = |f: Field| u32::from(f.offset) + u32::from(f.width);
        whole.base == part.base && whole.offset <= part.offset && end(part) <= end(whole)
    };
    let is_part = |part: Field| {
        inputs.iter().any(|input| match program.term(*input) {
            Term::Input(whole) => covers(*whole, part),
            _ => false,
        })
    };
    let mut fixed = Vec::with_capacity(program.terms.len());
    for (at, term) in program.terms.iter().enumerate() {
        fixed.push(match term {
            Term::Const(_) | Term::Bound(..) => true,
            Term::Now | Term::Cell(..) | Term::Sum16 { .. } => false,
            Term::Input(field) => is_part(*field),
            Term::Position(_) => inputs.contains(&TermId(at as u32)),
            other => other.operands().iter().all(|t| fixed[t.0 as usize]),
        });
    }
    fixed
}

fn is_fixed(step: &Step, known: &Known) -> bool {
    let all = |terms: &[TermId]| terms.iter().all(|t| known.fixed[t.0 as usize]);
    match step {
        Step::Test { atom, .. } => all(&atom.operands()),
        Step::Switch { on, .. } => all(&[*on]),
        Step::Classify { keys, .. } => all(keys),
        Step::Lookup { .. } | Step::Exit(_) => true,
    }
}

/// Of the time, the bits that updates of flows do not look at; `None` if updates use the time in
/// any other form than counting from the end of a tick on. Of ticks of several lengths the shortest counts.
fn tick(program: &Program) -> Option<u64> {
    let mut mask = u64::MAX;
    // By term: not made from the time, or so far after the end of a tick.
    let mut from_now = vec![Some(false); program.terms.len()];
    for (at, term) in program.terms.iter().enumerate() {
        let of = |t: &TermId| from_now[t.0 as usize];
        let timeless = |terms: &[TermId]| terms.iter().all(|t| of(t) == Some(false));
        from_now[at] = match term {
            Term::Now | Term::Cell(..) => None,
            Term::Binary(BinaryOp::Or, a, b) => match (program.term(*a), program.term(*b)) {
                (Term::Now, Term::Const(ones)) | (Term::Const(ones), Term::Now) => {
                    let ones = u64::try_from(*ones).ok().filter(|n| n & n.wrapping_add(1) == 0);
                    ones.map(|ones| {
                        mask = mask.min(ones);
                        true
                    })
                }
                _ => timeless(&[*a, *b]).then_some(false),
            },
            Term::Binary(BinaryOp::Add, a, b) => match (of(a), of(b)) {
                (Some(false), Some(later)) | (Some(later), Some(false)) => Some(later),
                _ => None,
            },
            Term::Choose(atom, a, b) => match (of(a), of(b)) {
                (Some(a), Some(b)) if timeless(&atom.operands()) => Some(a | b),
                _ => None,
            },
            other => timeless(&other.operands()).then_some(false),
        };
    }
    for (_, exit) in program.exits() {
        for (common, times) in updates(exit) {
            if times.iter().any(|t| from_now[t.0 as usize].is_none())
                || common.iter().any(|t| from_now[t.0 as usize] != Some(false))
            {
                return None;
            }
        }
    }
    Some(mask)
}

#[cfg(test)]
mod tests {
    use ir::model::Reason;
    use ir::program::{ClassifyRule, End, Exit, Lookup, LookupId, TableId};
    use ir::{Base, IntervalSet, Port};

    use super::*;
    use crate::pipeline::classifiers::Library;
    use crate::pipeline::prepared::Prepared;

    /// A list that looks at a number by which flows are looked up behind it, and at another of so many bytes for sets from
    /// `0..=1` on.
    fn list_and_lookup(bytes: u16, sets: u128) -> Program {
        let rule = |i: u128| {
            let key = |high| IntervalSet::range(0, high);
            let cubes = [vec![(0, key(10 * i)), (1, key(i % sets + 1))]].into();
            ClassifyRule { cubes, arm: 0, number: i as u32, span: None }
        };
        let lookup =
            Lookup { table: TableId(0), key: vec![TermId(0)], values: 1, common: 0, element: 0 };
        let drop = Exit {
            effects: vec![],
            writes: Default::default(),
            end: End::Drop { element: 0, reason: Reason("") },
            barrier: None,
            visited: vec![],
            copies: vec![],
        };
        Program {
            continuation: None,
            entry: Port { node: 0, port: 0 },
            terms: [(0, 4), (4, bytes)]
                .map(|(at, bytes)| Term::Input(Field::bytes(Base::Data, at, bytes)))
                .into(),
            state: vec![],
            tables: vec![],
            lookups: vec![lookup],
            steps: vec![
                Step::Classify {
                    table: None,
                    keys: vec![TermId(0), TermId(1)],
                    rules: (0..100).map(rule).collect(),
                    arms: vec![StepId(1)],
                    otherwise: StepId(2),
                    element: 0,
                },
                Step::Lookup { lookup: LookupId(0), hit: StepId(2), miss: StepId(2) },
                Step::Exit(drop.into()),
            ],
        }
    }

    #[test]
    fn the_cache_is_asked_before_lists_of_which_little_else_is_asked() {
        let asks = |bytes, sets| {
            let prepared = Prepared::new(list_and_lookup(bytes, sets));
            let mut compiler = Compiler::new(prepared.program(), &prepared.ranges);
            let exits = [(StepId(2), ExitLengths { outcome: 0, lengths: vec![&[]] })].into();
            let classifiers = Classifiers::new(prepared.program(), &Library::default());
            let compiled = Builder::build(&mut compiler, &exits, &classifiers);
            let site = compiled.sites.first()?;
            Some((compiled.asks, site.key.len(), site.exit(0)?.relevant.count_ones()))
        };
        assert_eq!(asks(4, 3), Some((vec![Some(0), None, None], 1, 3)));
        assert_eq!(asks(1, 50), Some((vec![Some(0), None, None], 2, 0)));
        // Keys that have the other number, too, would rarely come again; and an entry for one lookup saves nothing.
        assert_eq!(asks(4, 50), None);
    }
}
