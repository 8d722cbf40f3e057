//! Parts of programs: a program is cut at some of its steps, so that a switch or a card decides
//! which of them a packet comes to, and a core goes on there without deciding it again (Metron
//! §3.1, SNF §7.5.4).
//!
//! Programs write nothing before an exit, so a packet that is handed off is as it came in. With it
//! go the number of the step and what lookups in tables of prefixes bound that later steps want.
//! Flows are looked up again: they may change meanwhile, and the part that goes on has them.

mod compile;
mod cores;
mod counts;
mod leases;
mod not_compiled;
mod offload;
mod presumed;
mod prove;
mod site;
mod tags;
mod wire;
mod wires;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use ir::program::{
    Continuation, Effect, End, Entries, Exit, LookupId, Ref, StateId, Step, StepId, Table, TableId,
    Term, TermId, Write, verify,
};
use ir::{Base, Field, Program};
use net::CARRIED;

pub use compile::{Compiled, Divided, DividedPath, Division, Part, Share, compile, divide};
pub use cores::{TAG, behind, on_cores};
pub use counts::{Counted, Credit};
pub use leases::{Lessor, lessors};
pub use not_compiled::{NotCompiled, Origin};
pub use offload::{Class, Ends, Handoff, Offload, Stay, offload};
pub use prove::Assured;
pub use site::{RateLimit, ServerAt, Site, SitePort, Trust};
pub use tags::{Tags, is_tag, meter};
pub use wire::from_wire;
pub use wires::Wires;

/// A program in parts.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Decides, and hands packets off.
    pub front: Program,
    /// By step of the front: the step of the whole that it is, or that packets are handed off at.
    pub front_steps: Vec<StepId>,
    /// The parts that go on, by their continuations.
    pub continuations: Vec<Program>,
    /// Steps where it could not be cut.
    pub refused: Vec<(StepId, Refused)>,
}

/// Why a program cannot be cut at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It begins there.
    Root,
    /// There is no such step.
    NoStep,
    /// Later steps want so many bytes, or more, of what earlier ones found: more than a packet carries.
    CarriesTooMuch(usize),
    /// Flows that earlier steps found are wanted, and where those were not found, packets went to
    /// different steps.
    UnlikeMisses,
    /// Whether a lookup was made depends on the path that led there.
    Uncertain,
    /// Earlier steps decided by a cell that later ones use: other packets may change it in between.
    SharedCell,
    /// There are no numbers left for continuations.
    NoNumber,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refused::Root => f.write_str("the program begins there"),
            Refused::NoStep => f.write_str("there is no such step"),
            Refused::CarriesTooMuch(bytes) => {
                write!(f, "{bytes} bytes or more would be carried, {CARRIED} can be")
            }
            Refused::UnlikeMisses => {
                f.write_str("packets without a flow that is wanted there go to different steps")
            }
            Refused::Uncertain => {
                f.write_str("whether a lookup was made depends on the path that leads there")
            }
            Refused::SharedCell => {
                f.write_str("the program decides by a cell before, and uses it from there on")
            }
            Refused::NoNumber => f.write_str("there are too many continuations"),
        }
    }
}

/// Cuts a program at steps. Continuations are numbered from `first` on, in the order of the steps;
/// a step that packets come to behind another of them only has none.
pub fn partition(program: &Program, at: &BTreeSet<StepId>, first: Continuation) -> Partition {
    let there = StepId(program.steps.len() as u32);
    let mut refused: Vec<_> = at.range(there..).map(|&step| (step, Refused::NoStep)).collect();
    let lookups = Lookups::of(program);
    let (mut continuations, mut handoffs) = (Vec::new(), BTreeMap::new());
    let mut reached = BTreeSet::new();
    let mut waiting = BTreeSet::from([StepId(0)]);
    while let Some(step) = waiting.pop_first() {
        reached.insert(step);
        if at.contains(&step) {
            let number = u16::try_from(continuations.len()).ok();
            let number = number.and_then(|more| first.0.checked_add(more)).map(Continuation);
            match Rest::new(program, &lookups, step, number) {
                Ok(part) => {
                    continuations.push(part.program);
                    handoffs.insert(step, part.handoff);
                    continue;
                }
                Err(why) => refused.push((step, why)),
            }
        }
        waiting.extend(program.step(step).next());
    }
    let front = restrict(program, &[], &reached, &handoffs).normal();
    Partition { front, front_steps: reached.into_iter().collect(), continuations, refused }
}

/// The steps that packets come to from some, those included.
fn reach(program: &Program, from: impl IntoIterator<Item = StepId>) -> BTreeSet<StepId> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<StepId> = from.into_iter().collect();
    while let Some(step) = waiting.pop() {
        if reached.insert(step) {
            waiting.extend(program.step(step).next());
        }
    }
    reached
}

/// The program with only these steps, some of them replaced, behind others. Those before lead to steps
/// as the whole program numbers them, and to each other by numbers behind these.
fn restrict(
    program: &Program,
    before: &[Step],
    steps: &BTreeSet<StepId>,
    instead: &BTreeMap<StepId, Exit>,
) -> Program {
    let own = (program.steps.len() as u32..).map(StepId).take(before.len());
    let numbers: BTreeMap<StepId, StepId> =
        own.chain(steps.iter().copied()).zip((0..).map(StepId)).collect();
    let kept = steps.iter().map(|step| match instead.get(step) {
        Some(exit) => Step::Exit(Box::new(exit.clone())),
        None => program.step(*step).clone(),
    });
    let mut steps: Vec<Step> = before.iter().cloned().chain(kept).collect();
    for step in &mut steps {
        step.map_next(|next| numbers[&next]);
    }
    Program { steps, ..program.clone() }
}

/// What the terms of a program are made from.
struct Lookups {
    /// By term: the lookups that bound it, directly or through its operands.
    of_terms: Vec<BTreeSet<LookupId>>,
}

impl Lookups {
    fn of(program: &Program) -> Self {
        let mut of_terms: Vec<BTreeSet<LookupId>> = Vec::with_capacity(program.terms.len());
        for term in &program.terms {
            let mut all = BTreeSet::new();
            for operand in term.operands() {
                all.extend(&of_terms[operand.0 as usize]);
            }
            if let Term::Bound(lookup, _) = term {
                all.insert(*lookup);
            }
            of_terms.push(all);
        }
        Self { of_terms }
    }

    fn of_all<'a>(
        &'a self,
        terms: impl IntoIterator<Item = &'a TermId>,
    ) -> impl Iterator<Item = LookupId> {
        terms.into_iter().flat_map(|term| &self.of_terms[term.0 as usize]).copied()
    }

    /// The lookups that a step itself wants to have hit.
    fn wanted(&self, program: &Program, step: &Step) -> BTreeSet<LookupId> {
        let mut wanted: BTreeSet<LookupId> = self.of_all(&step.terms()).collect();
        match step {
            Step::Lookup { lookup, .. } => {
                wanted.extend(self.of_all(&program.lookups[usize::from(lookup.0)].key));
            }
            Step::Exit(exit) => {
                let effects = exit.all().flat_map(|exit| &exit.effects);
                wanted.extend(effects.filter_map(|effect| match effect {
                    Effect::Update { lookup, .. } => Some(*lookup),
                    Effect::Count { .. } | Effect::Note { .. } | Effect::Set { .. } => None,
                }));
            }
            Step::Test { .. } | Step::Switch { .. } | Step::Classify { .. } => {}
        }
        wanted
    }

    /// By step, of those that packets come to from some: the lookups that are wanted from there on, and
    /// must have hit before.
    fn live(
        &self,
        program: &Program,
        steps: &BTreeSet<StepId>,
    ) -> BTreeMap<StepId, BTreeSet<LookupId>> {
        let mut live: BTreeMap<StepId, BTreeSet<LookupId>> = BTreeMap::new();
        for &id in steps.iter().rev() {
            let step = program.step(id);
            let mut here = BTreeSet::new();
            for next in step.next() {
                here.extend(live.get(&next).into_iter().flatten());
                if let Step::Lookup { lookup, hit, miss } = step
                    && next == *hit
                    && hit != miss
                {
                    here.remove(lookup);
                }
            }
            here.extend(self.wanted(program, step));
            live.insert(id, here);
        }
        live
    }
}

/// The part of a program that goes on at a step.
struct Rest {
    program: Program,
    /// How packets are handed off to it, in terms of the whole program.
    handoff: Exit,
}

impl Rest {
    fn new(
        program: &Program,
        lookups: &Lookups,
        at: StepId,
        number: Option<Continuation>,
    ) -> Result<Self, Refused> {
        let number = number.ok_or(Refused::NoNumber)?;
        if at.0 == 0 {
            return Err(Refused::Root);
        }
        // Lookups of flows that are made again, with where packets go without one.
        let mut again: BTreeMap<LookupId, StepId> = BTreeMap::new();
        let steps = loop {
            let steps = reach(program, again.values().copied().chain([at]));
            let live = lookups.live(program, &steps);
            let mut wanted = live[&at].clone();
            for (lookup, miss) in &again {
                wanted.extend(lookups.of_all(&program.lookups[usize::from(lookup.0)].key));
                wanted.extend(&live[miss]);
            }
            let mut flows = wanted.into_iter().filter(|&l| program.flows(l).is_some());
            match flows.find(|lookup| !again.contains_key(lookup)) {
                Some(lookup) => drop(again.insert(lookup, miss_of(program, lookup, at)?)),
                None => break steps,
            }
        };
        let mut order: Vec<LookupId> = again.keys().copied().collect();
        order.sort_by_key(|&lookup| before(program, lookup, at).next());
        let behind = (program.steps.len() as u32 + 1..).map(StepId);
        let hits = behind.take(order.len().saturating_sub(1)).chain([at]);
        let lookup = |(lookup, hit)| Step::Lookup { lookup, hit, miss: again[&lookup] };
        let first: Vec<Step> = order.into_iter().zip(hits).map(lookup).collect();
        let before = (0..).map(StepId).zip(leading(program, at));
        let before = before.filter_map(|(step, leads)| (leads && step != at).then_some(step));
        let decided = cells(program, before);
        if !decided.is_disjoint(&cells(program, steps.iter().copied())) {
            return Err(Refused::SharedCell);
        }
        let part = restrict(program, &first, &steps, &BTreeMap::new());
        let part = Program { continuation: Some(number), ..part };
        let (part, carried) = carry(program, part)?;
        match verify::is_well_formed(&part) {
            true => Ok(Self { program: part, handoff: Exit::handoff(number, carried) }),
            false => Err(Refused::Uncertain),
        }
    }
}

/// By step: whether it leads to one, or is that.
fn leading(program: &Program, at: StepId) -> Vec<bool> {
    let mut leads = vec![false; program.steps.len()];
    for (i, step) in program.steps.iter().enumerate().rev() {
        leads[i] = i == at.0 as usize || step.next().any(|next| leads[next.0 as usize]);
    }
    leads
}

/// The cells that steps read or write.
fn cells(program: &Program, steps: impl Iterator<Item = StepId>) -> BTreeSet<(StateId, u16)> {
    let mut all = BTreeSet::new();
    let mut terms = BTreeSet::new();
    for step in steps {
        let step = program.step(step);
        terms.extend(step.terms());
        match step {
            Step::Lookup { lookup, .. } => {
                terms.extend(&program.lookups[usize::from(lookup.0)].key);
            }
            Step::Exit(exit) => {
                let effects = exit.all().flat_map(|exit| &exit.effects);
                all.extend(effects.filter_map(|effect| match effect {
                    Effect::Set { cells, index, .. } => Some((*cells, *index)),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    while let Some(term) = terms.pop_last() {
        if let Term::Cell(cells, index) = program.term(term) {
            all.insert((*cells, *index));
        }
        terms.extend(program.term(term).operands());
    }
    all
}

/// The lookups from whose hit packets come to a step: where they are made, and where packets go that have
/// no such flow.
fn before(
    program: &Program,
    lookup: LookupId,
    at: StepId,
) -> impl Iterator<Item = (StepId, StepId)> {
    let leads = leading(program, at);
    (0..).map(StepId).zip(&program.steps).filter_map(move |(id, step)| match step {
        Step::Lookup { lookup: made, hit, miss } if *made == lookup && leads[hit.0 as usize] => {
            Some((id, *miss))
        }
        _ => None,
    })
}

/// Where packets go for which a lookup before a step finds no flow.
fn miss_of(program: &Program, lookup: LookupId, at: StepId) -> Result<StepId, Refused> {
    let mut misses = before(program, lookup, at).map(|made| made.1);
    let first = misses.next().ok_or(Refused::Uncertain)?;
    match misses.all(|other| program.step(other) == program.step(first)) {
        true => Ok(first),
        false => Err(Refused::UnlikeMisses),
    }
}

/// Has a part, its terms still those of the whole program, read from what is carried what lookups bound
/// that it does not make, and what was carried to the whole. Also gives what is to be carried.
fn carry(whole: &Program, mut part: Program) -> Result<(Program, Vec<Write>), Refused> {
    let made: BTreeSet<LookupId> = part.steps.iter().filter_map(made).collect();
    let keys = made.iter().flat_map(|lookup| &part.lookups[usize::from(lookup.0)].key);
    let mut used = vec![false; part.terms.len()];
    for term in part.steps.iter().flat_map(Step::terms).chain(keys.copied()) {
        used[term.0 as usize] = true;
    }
    // Operands stand before what is made from them.
    for (at, term) in part.terms.iter().enumerate().rev() {
        if used[at] {
            term.operands().iter().for_each(|operand| used[operand.0 as usize] = true);
        }
    }
    let mut carried = Vec::new();
    let mut end = 0;
    for at in (0..part.terms.len()).filter(|&at| used[at]) {
        match &part.terms[at] {
            Term::Bound(lookup, _) if !made.contains(lookup) => {}
            Term::Input(field) if field.base == Base::Carried => {}
            _ => continue,
        }
        let value = TermId(at as u32);
        let width = whole.width(value);
        let bytes = width.div_ceil(8);
        carried.push(Write { offset: end.into(), length: bytes as u8, value });
        end += bytes;
        if usize::from(end) <= CARRIED {
            part.terms[at] = Term::Input(Field::bits(Base::Carried, 8 * end - width, width));
        } else if end > 1000 {
            break;
        }
    }
    match usize::from(end) {
        0..=CARRIED => Ok((part.normal(), carried)),
        bytes => Err(Refused::CarriesTooMuch(bytes)),
    }
}

fn made(step: &Step) -> Option<LookupId> {
    match step {
        Step::Lookup { lookup, .. } => Some(*lookup),
        _ => None,
    }
}

/// Why parts are no whole program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// No part goes on where packets are handed off to.
    NoPart(Continuation),
    /// A part reads what is not carried to it.
    NotCarried(Continuation, Field),
    /// Packets would be handed off in a circle.
    Circle(Continuation),
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Apart::NoPart(to) => write!(f, "no part goes on at {to}"),
            Apart::NotCarried(to, field) => write!(f, "{field} is not carried to {to}"),
            Apart::Circle(to) => write!(f, "packets come to {to} again and again"),
        }
    }
}

/// The whole program that parts are: what they do together, to compare with the one that was cut.
///
/// # Errors
/// If the parts do not fit together.
pub fn join(front: &Program, continuations: &[Program]) -> Result<Program, Apart> {
    let mut joining = Joining { whole: front.clone(), continuations };
    let of_front = |step| (step, Vec::new());
    let mut open: Vec<(usize, Vec<Continuation>)> = (0..front.steps.len()).map(of_front).collect();
    let mut redirected = BTreeMap::new();
    while let Some((at, path)) = open.pop() {
        let Step::Exit(exit) = &joining.whole.steps[at] else { continue };
        let End::Handoff { to } = exit.end else { continue };
        if path.contains(&to) {
            return Err(Apart::Circle(to));
        }
        let carried = exit.writes.carried.clone();
        let root = joining.whole.steps.len();
        joining.append(to, &carried)?;
        redirected.insert(StepId(at as u32), StepId(root as u32));
        let path = [&path[..], &[to]].concat();
        open.extend((root..joining.whole.steps.len()).map(|step| (step, path.clone())));
    }
    let mut whole = joining.whole;
    // Of one handoff to the next.
    let end = |mut step: StepId| {
        while let Some(&next) = redirected.get(&step) {
            step = next;
        }
        step
    };
    for step in &mut whole.steps {
        step.map_next(end);
    }
    let steps = reach(&whole, [end(StepId(0))]);
    Ok(restrict(&whole, &[], &steps, &BTreeMap::new()).normal())
}

struct Joining<'a> {
    whole: Program,
    continuations: &'a [Program],
}

impl Joining<'_> {
    /// Adds the steps of a part to which this is carried.
    fn append(&mut self, to: Continuation, carried: &[Write]) -> Result<(), Apart> {
        let part = self.continuations.iter().find(|part| part.continuation == Some(to));
        let part = part.ok_or(Apart::NoPart(to))?;
        let whole = &mut self.whole;
        let state: Vec<StateId> = part
            .state
            .iter()
            .map(|of| {
                let same = |s: &ir::program::StateOf| (&s.owner, s.name) == (&of.owner, of.name);
                StateId(position(&mut whole.state, of.clone(), |s, _| same(s)) as u16)
            })
            .collect();
        let tables: Vec<TableId> = part
            .tables
            .iter()
            .map(|table| {
                let mut table = table.clone();
                if let Entries::Flows(of) = &mut table.entries {
                    *of = state[usize::from(of.0)];
                }
                TableId(position(&mut whole.tables, table, Table::is_same) as u16)
            })
            .collect();
        // Lookups are made from terms, and terms from lookups: each finds those before it.
        let (first_lookup, first_step) = (whole.lookups.len() as u16, whole.steps.len() as u32);
        let mut terms: Vec<TermId> = Vec::with_capacity(part.terms.len());
        for term in &part.terms {
            let mut term = term.clone();
            term.map_operands(|operand| terms[operand.0 as usize]);
            let term = match term {
                Term::Bound(lookup, index) => Term::Bound(LookupId(first_lookup + lookup.0), index),
                Term::Cell(cells, index) => Term::Cell(state[usize::from(cells.0)], index),
                Term::Input(field) if field.base == Base::Carried => {
                    let (of, low) =
                        carried_in(carried, field).ok_or(Apart::NotCarried(to, field))?;
                    if low == 0 && whole.width(of) <= field.width {
                        terms.push(of);
                        continue;
                    }
                    Term::Slice { of, low, width: field.width as u8 }
                }
                term => term,
            };
            terms.push(TermId(whole.terms.len() as u32));
            whole.terms.push(term);
        }
        for lookup in &part.lookups {
            let mut lookup = lookup.clone();
            lookup.table = tables[usize::from(lookup.table.0)];
            lookup.key.iter_mut().for_each(|term| *term = terms[term.0 as usize]);
            whole.lookups.push(lookup);
        }
        for step in &part.steps {
            let mut step = step.clone();
            step.map_next(|next| StepId(first_step + next.0));
            step.map_terms(|term| terms[term.0 as usize]);
            step.map_refs(|named| match named {
                Ref::Lookup(lookup) => lookup.0 += first_lookup,
                Ref::Table(table) => *table = tables[usize::from(table.0)],
                Ref::State(of) => *of = state[usize::from(of.0)],
            });
            whole.steps.push(step);
        }
        Ok(())
    }
}

/// Where something that is the same stands, or is put.
fn position<T>(all: &mut Vec<T>, one: T, same: impl Fn(&T, &T) -> bool) -> usize {
    all.iter().position(|known| same(known, &one)).unwrap_or_else(|| {
        all.push(one);
        all.len() - 1
    })
}

/// The number that is carried where a field lies, and the lowest of its bits that are the field's.
fn carried_in(carried: &[Write], field: Field) -> Option<(TermId, u8)> {
    let (first, end) = (i32::from(field.offset), i32::from(field.offset + field.width));
    let there = carried.iter().find(|write| {
        8 * write.offset <= first && end <= 8 * (write.offset + i32::from(write.length))
    })?;
    let low = 8 * (there.offset + i32::from(there.length)) - end;
    Some((there.value, u8::try_from(low).ok()?))
}
