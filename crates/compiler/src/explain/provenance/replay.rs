//! What the elements on a path read and write: their models are gone through with what is known of
//! the packet, to the output on which it leaves.

use std::collections::HashMap;

use ir::field::meta;
use ir::model::{CompareOp, Rule};
use ir::program::{Atom, End, Exit, Step, Term};
use ir::{Base, Cond, Expr, Field, Graph, IntervalSet, Model, NodeId, Op, Port, Program, Reason};

use super::{Branch, Path};

/// Operations of one element that are followed, on all of its paths together.
const MAX_OPERATIONS: usize = 20_000;
/// Bytes of a header that is complete.
const COMPLETE: u128 = 60;
/// Paths through one element that are followed.
const MAX_FORKS: usize = 512;

/// What a place counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Space {
    /// Where the packet's data started when it came to the program.
    Entry,
    /// Something in the packet whose place is not known.
    Somewhere(Base),
    /// The annotation area.
    Annotation,
    /// What is no bytes of the packet.
    Meta,
}

/// A run of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BitRange {
    /// What it counts from.
    pub space: Space,
    /// Its first bit; negative before the start.
    pub start: i32,
    /// Number of bits.
    pub width: u32,
}

impl BitRange {
    /// Whether it lies in the packet's bytes.
    pub fn is_packet(&self) -> bool {
        matches!(self.space, Space::Entry | Space::Somewhere(_))
    }

    /// Whether the two share a bit, as far as is known.
    pub fn overlaps(&self, other: &BitRange) -> bool {
        let end = |p: &BitRange| p.start.saturating_add_unsigned(p.width);
        self.space == other.space && self.start < end(other) && other.start < end(self)
    }
}

/// What an element did to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The input port that the packet came to.
    pub at: Port,
    /// Places in its bytes that were read; not those that a checksum was computed over.
    pub reads: Vec<BitRange>,
    /// Places that were written, annotations too.
    pub writes: Vec<BitRange>,
    /// Places that the element writes on some other path through it.
    pub might_write: Vec<BitRange>,
    /// Conditions, rules, routes and flows that decided what comes next.
    pub decisions: usize,
    /// Checksums that were checked.
    pub verified: usize,
    /// Checksums that were written.
    pub updated: usize,
    /// Flow tables that were looked into.
    pub flows: usize,
    /// Tables of prefixes and lists of rules that were looked into.
    pub tables: usize,
    /// Headers that were stripped or pushed.
    pub moves: usize,
    /// Whether the data's end may have been moved.
    pub cut: bool,
    /// Whether the mark of the MAC, network or transport header was set or taken away.
    pub marks: [bool; 3],
    /// Where the network header was when the packet left, in bytes from the entry's start.
    pub network: Option<i32>,
    /// Where the transport header was.
    pub transport: Option<i32>,
}

impl Visit {
    fn new(at: Port) -> Self {
        Self {
            at,
            reads: Vec::new(),
            writes: Vec::new(),
            might_write: Vec::new(),
            decisions: 0,
            verified: 0,
            updated: 0,
            flows: 0,
            tables: 0,
            moves: 0,
            cut: false,
            marks: [false; 3],
            network: None,
            transport: None,
        }
    }
}

/// Goes through models again.
pub struct Replayer<'a> {
    graph: &'a Graph,
    models: &'a [Model],
    to: HashMap<Port, Port>,
    /// The fields that each list of rules looks at.
    rules: HashMap<*const Rule, Vec<Field>>,
    /// The fields that each element writes on some path.
    writes: HashMap<NodeId, Vec<Field>>,
}

/// How a visit must end.
enum Goal {
    Port(usize),
    Reason(Reason),
    Any,
}

/// A register: its number if it is known, and whether it is a checksum.
type Register = (Option<u128>, bool);

#[derive(Clone)]
struct State<'a> {
    visit: Visit,
    registers: HashMap<u16, Register>,
    /// Where the data starts, in bytes from the entry's start.
    start: Option<i32>,
    /// Where it may end, likewise.
    end: Option<IntervalSet>,
    /// The marks, likewise; the outer is `None` if it is not known whether there is one.
    marks: [Option<Option<i32>>; 3],
    /// What was written so far on the whole path, and its number if it is known.
    written: Vec<(BitRange, Option<u128>)>,
    stack: Vec<(&'a [Op], usize)>,
    operations: usize,
    /// Whether marked headers are taken to be in the packet as a whole.
    complete: bool,
}

/// What is known of the packet as it came in.
struct Known {
    facts: HashMap<Field, IntervalSet>,
    marks: [Option<Option<i32>>; 3],
}

impl<'a> Replayer<'a> {
    /// For the elements of a graph and their models.
    pub fn new(graph: &'a Graph, models: &'a [Model]) -> Self {
        let to = graph.edges.iter().map(|e| (e.from, e.to)).collect();
        Self { graph, models, to, rules: HashMap::new(), writes: HashMap::new() }
    }

    /// What the elements do that a packet comes through on a path to an exit. Where it is not known
    /// what an element does, the shortest of what it may do is told.
    pub fn visits(&mut self, program: &Program, path: &Path, exit: &Exit) -> Vec<Visit> {
        let known = known(program, path);
        let mut state = State {
            visit: Visit::new(program.entry),
            registers: HashMap::new(),
            start: Some(0),
            end: known.facts.get(&meta::LEN).cloned(),
            marks: known.marks,
            written: Vec::new(),
            stack: Vec::new(),
            operations: 0,
            complete: true,
        };
        let mut visits = Vec::with_capacity(exit.visited.len());
        for (i, &at) in exit.visited.iter().enumerate() {
            let goal = match (exit.visited.get(i + 1), exit.end) {
                (Some(&next), _) => self.goal(at, next),
                (None, End::Push { to, .. }) => self.goal(at, to),
                (None, End::Drop { reason, .. }) => Goal::Reason(reason),
                (None, End::Handoff { .. }) => Goal::Any,
            };
            state.visit = Visit::new(at);
            state.registers.clear();
            state.stack.clear();
            state.operations = 0;
            if let Some(block) = self.models.get(at.node).and_then(|m| m.input(at.port)) {
                state.stack.push((block, 0));
            }
            // Most headers are complete; if this one leads nowhere, it is not.
            state.complete = true;
            let mut after = self.visit(&known, state.clone(), &goal);
            if after.is_none() {
                state.complete = false;
                after = self.visit(&known, state.clone(), &goal);
            }
            if let Some(after) = after {
                state = after;
            } else {
                // Nothing is known of what follows.
                (state.start, state.end, state.marks) = (None, None, [None; 3]);
            }
            let fields = self
                .writes
                .entry(at.node)
                .or_insert_with(|| self.models.get(at.node).map_or_else(Vec::new, written_by));
            let place = |f: &Field| state.place(f.base, f.offset.into(), f.width.into());
            state.visit.might_write = fields.iter().map(place).collect();
            state.visit.network = state.marks[1].flatten();
            state.visit.transport = state.marks[2].flatten();
            visits.push(state.visit.clone());
        }
        visits
    }

    fn goal(&self, at: Port, next: Port) -> Goal {
        let outputs = self.graph.nodes.get(at.node).map_or(0, |n| n.outputs.len());
        let leads = |&port: &usize| self.to.get(&Port { node: at.node, port }) == Some(&next);
        (0..outputs).find(leads).map_or(Goal::Any, Goal::Port)
    }

    /// The end of the shortest path through an element that ends as it must.
    fn visit(&mut self, known: &Known, state: State<'a>, goal: &Goal) -> Option<State<'a>> {
        let mut best: Option<State<'a>> = None;
        let mut work = vec![state];
        let (mut budget, mut forks) = (MAX_OPERATIONS, 0);
        while let Some(mut state) = work.pop() {
            loop {
                if budget == 0 || best.as_ref().is_some_and(|b| b.operations <= state.operations) {
                    break;
                }
                let Some((block, next)) = state.stack.last_mut() else {
                    break;
                };
                let block: &'a [Op] = block;
                let Some(op) = block.get(*next) else {
                    state.stack.pop();
                    continue;
                };
                *next += 1;
                budget -= 1;
                state.operations += 1;
                let mut paths = Vec::new();
                match self.operate(known, &mut state, op, &mut paths) {
                    Ended::No => {}
                    Ended::Port(port) => {
                        let meets = match goal {
                            Goal::Port(wanted) => port.is_none_or(|p| p == *wanted as u128),
                            Goal::Reason(reason) => {
                                matches!(reason.0, "unconnected-output" | "no-such-port")
                            }
                            Goal::Any => true,
                        };
                        if meets {
                            best = Some(state);
                        }
                        break;
                    }
                    Ended::Drop(reason) => {
                        if matches!(goal, Goal::Reason(wanted) if *wanted == reason) {
                            best = Some(state);
                        }
                        break;
                    }
                    Ended::Unknown => break,
                }
                if let Some((first, others)) = paths.split_first() {
                    for other in others.iter().rev() {
                        if forks < MAX_FORKS {
                            forks += 1;
                            let mut fork = state.clone();
                            fork.stack.push((other, 0));
                            work.push(fork);
                        }
                    }
                    state.stack.push((first, 0));
                }
            }
        }
        best
    }

    /// Carries an operation out; `paths` are the blocks of which one comes next.
    fn operate(
        &mut self,
        known: &Known,
        state: &mut State<'a>,
        op: &'a Op,
        paths: &mut Vec<&'a [Op]>,
    ) -> Ended {
        state.visit.decisions += usize::from(match op {
            // The element itself does not ask what is expected.
            Op::If(..) => op.blocks().flatten().any(|op| !matches!(op, Op::Expect(_))),
            Op::Match { .. } | Op::Lookup { .. } | Op::FlowLookup { .. } => true,
            _ => false,
        });
        match op {
            Op::Let(reg, expr) => {
                let value = (state.eval(known, expr), state.sums(expr));
                state.registers.insert(reg.0, value);
            }
            Op::Set(field, expr) => {
                let place = state.place(field.base, i128::from(field.offset), field.width.into());
                state.write(known, place, expr);
            }
            Op::Store { base, offset, width, value } => {
                let place = match state.eval(known, offset) {
                    Some(offset) => state.place(*base, offset as i128 * 8, (*width).into()),
                    None => BitRange {
                        space: Space::Somewhere(*base),
                        start: 0,
                        width: u32::from(*width),
                    },
                };
                state.write(known, place, value);
            }
            Op::If(cond, then, otherwise) => {
                if state.verifies(cond) {
                    state.visit.verified += 1;
                }
                match state.holds(known, cond) {
                    Some(true) => paths.push(then),
                    Some(false) => paths.push(otherwise),
                    None => paths.extend([&then[..], &otherwise[..]]),
                }
            }
            Op::Match { rules, arms, otherwise } => {
                state.visit.tables += 1;
                let fields = self.rules.entry(rules.as_ptr()).or_insert_with(|| fields_of(rules));
                for field in fields.clone() {
                    state.read(field);
                }
                paths.extend(arms.iter().map(|a| &a[..]));
                paths.push(otherwise);
            }
            Op::Lookup { key, bind, miss, .. } => {
                state.visit.tables += 1;
                state.eval(known, key);
                bind.iter().for_each(|reg| {
                    state.registers.insert(reg.0, (None, false));
                });
                // Who has missed goes on as the block of the miss says.
                const HIT: &[Op] = &[];
                paths.extend([HIT, &miss[..]]);
            }
            Op::FlowLookup { key, value, common, .. } => {
                state.visit.flows += 1;
                key.iter().for_each(|k| {
                    state.eval(known, k);
                });
                for reg in value.iter().chain(common) {
                    state.registers.insert(reg.0, (None, false));
                }
            }
            Op::Expect(_) | Op::FlowUpdate { .. } | Op::Note(_) | Op::Count(_) => {}
            Op::Pull(by) => {
                state.visit.moves += 1;
                let by = state.eval(known, by).and_then(|b| i32::try_from(b as i128).ok());
                state.start = state.start.zip(by).and_then(|(s, b)| s.checked_add(b));
            }
            Op::Truncate(to) => {
                state.eval(known, to);
                state.visit.cut = true;
                state.end = None;
            }
            Op::Extend(_) => {
                state.visit.cut = true;
                state.end = None;
            }
            Op::Mark(header, at) => {
                let at = state.eval(known, at).and_then(|a| i32::try_from(a as i128).ok());
                state.marks[*header as usize] = state.start.zip(at).map(|(s, a)| s.checked_add(a));
                state.visit.marks[*header as usize] = true;
            }
            Op::Unmark(header) => {
                state.marks[*header as usize] = Some(None);
                state.visit.marks[*header as usize] = true;
            }
            Op::Fresh => {
                state.marks = [Some(None); 3];
                state.visit.marks = [true; 3];
                let width = net::annotation::SIZE as u32 * 8;
                let all = BitRange { space: Space::Annotation, start: 0, width };
                state.visit.writes.push(all);
                state.written.push((all, None));
                for field in [meta::TYPE, meta::TIMESTAMP] {
                    let place = state.place(field.base, field.offset.into(), field.width.into());
                    state.visit.writes.push(place);
                }
            }
            Op::Read(reg, ..) => drop(state.registers.insert(reg.0, (None, false))),
            Op::Emit(port) => return Ended::Port(state.eval(known, port)),
            Op::Drop(reason) => return Ended::Drop(*reason),
            Op::Opaque(_)
            | Op::Repeat { .. }
            | Op::Break
            | Op::FlowInsert { .. }
            | Op::Allocate { .. } => return Ended::Unknown,
            // Copies go their own path, and no packet is made from what a cell is to hold.
            Op::Write(..) | Op::EmitCopy(_) => {}
        }
        Ended::No
    }
}

enum Ended {
    No,
    Port(Option<u128>),
    Drop(Reason),
    /// Programs do not come here.
    Unknown,
}

/// What the decisions of a path tell.
fn known(program: &Program, path: &Path) -> Known {
    let mut known = Known { facts: HashMap::new(), marks: [None; 3] };
    for (step, branch) in &path.decisions {
        let (term, set) = match (program.step(*step), branch) {
            (Step::Test { atom: Atom::Test(term, set), .. }, Branch::Yes) => {
                (*term, (**set).clone())
            }
            (Step::Test { atom: Atom::Test(term, set), .. }, Branch::No) => {
                (*term, set.complement(program.width(*term)))
            }
            (Step::Switch { on, cases, .. }, Branch::Case(case)) if *case < cases.len() => {
                (*on, cases[*case].0.clone())
            }
            _ => continue,
        };
        match program.term(term) {
            Term::Input(field) => {
                let fact = known.facts.entry(*field);
                fact.and_modify(|old| *old = old.intersect(&set)).or_insert(set);
            }
            Term::Position(header) => {
                if let Some(at) = set.as_single() {
                    let there = (at != 0x8000_0000).then_some(at as u32 as i32);
                    known.marks[*header as usize] = Some(there);
                }
            }
            _ => {}
        }
    }
    known
}

impl State<'_> {
    fn place(&self, base: Base, bit: i128, width: u32) -> BitRange {
        let bit = i32::try_from(bit).unwrap_or(i32::MAX / 2);
        let from = match base {
            Base::Data => self.start,
            Base::Header(header) => self.marks[header as usize].flatten(),
            Base::Annotation => return BitRange { space: Space::Annotation, start: bit, width },
            Base::Carried | Base::Meta => {
                return BitRange { space: Space::Meta, start: bit, width };
            }
        };
        match from.and_then(|from| from.checked_mul(8)?.checked_add(bit)) {
            Some(start) => BitRange { space: Space::Entry, start, width },
            None => BitRange { space: Space::Somewhere(base), start: bit, width },
        }
    }

    fn read(&mut self, field: Field) -> BitRange {
        let place = self.place(field.base, field.offset.into(), field.width.into());
        if place.is_packet() && !self.visit.reads.contains(&place) {
            self.visit.reads.push(place);
        }
        place
    }

    fn write(&mut self, known: &Known, place: BitRange, value: &Expr) {
        let number = self.eval(known, value);
        if self.sums(value) && place.is_packet() {
            self.visit.updated += 1;
        }
        self.visit.writes.push(place);
        self.written.retain(|(old, _)| !old.overlaps(&place));
        self.written.push((place, number));
    }

    /// How many bytes there may be from a place to the data's end, if anything is known of it.
    fn bytes_from(&self, at: i32) -> Option<IntervalSet> {
        let from = |end: u128| match at {
            at if at < 0 => end.saturating_add(at.unsigned_abs().into()),
            at => end.saturating_sub(at.unsigned_abs().into()),
        };
        let ends = self.end.as_ref()?.intervals();
        Some(IntervalSet::from_intervals(ends.iter().map(|(a, b)| (from(*a), from(*b))).collect()))
    }

    /// The numbers that a field may have.
    fn possible(&mut self, known: &Known, field: Field) -> Option<IntervalSet> {
        if field.base == Base::Meta {
            let mark = |i: usize| {
                let there = self.marks[i]?;
                Some(IntervalSet::single(u128::from(there.is_some())))
            };
            let available = |i: usize| match self.marks[i] {
                Some(Some(at)) => {
                    let known = self.bytes_from(at);
                    let complete = self.complete.then(|| IntervalSet::range(COMPLETE, u128::MAX));
                    match (known, complete) {
                        (Some(a), Some(b)) if a.intersects(&b) => Some(a.intersect(&b)),
                        (known, complete) => known.or(complete),
                    }
                }
                Some(None) => Some(IntervalSet::single(0)),
                None => None,
            };
            return match field {
                meta::LEN => self.bytes_from(self.start?),
                meta::AVAIL_MAC => available(0),
                meta::AVAIL_NET => available(1),
                meta::AVAIL_TRANSPORT => available(2),
                meta::HAS_MAC => mark(0),
                meta::HAS_NET => mark(1),
                meta::HAS_TRANSPORT => mark(2),
                _ => None,
            };
        }
        let place = self.read(field);
        if let Some((old, number)) = self.written.iter().rfind(|(old, _)| old.overlaps(&place)) {
            return number.filter(|_| *old == place).map(IntervalSet::single);
        }
        let base = match place.space {
            Space::Entry => Base::Data,
            Space::Annotation => Base::Annotation,
            _ => return None,
        };
        let start = u16::try_from(place.start).ok()?;
        known.facts.get(&Field { base, offset: start, width: field.width }).cloned()
    }

    /// The number that an expression is, if it is known; notes what it reads.
    fn eval(&mut self, known: &Known, expr: &Expr) -> Option<u128> {
        match expr {
            Expr::Const(value) => Some(*value),
            Expr::Field(field) => self.possible(known, *field)?.as_single(),
            Expr::Reg(reg) => self.registers.get(&reg.0)?.0,
            Expr::Load { base, offset, width } => {
                let offset = self.eval(known, offset)?;
                let bit = u16::try_from(offset.checked_mul(8)?).ok()?;
                if !(1..=128).contains(width) {
                    return None;
                }
                self.possible(known, Field::bits(*base, bit, *width))?.as_single()
            }
            Expr::Position(header) => {
                let (at, start) = (self.marks[*header as usize].flatten()?, self.start?);
                Some(i128::from(at.checked_sub(start)?) as u128)
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.eval(known, a), self.eval(known, b));
                Some(op.apply(a?, b?))
            }
            Expr::Choose(cond, then, otherwise) => match self.holds(known, cond) {
                Some(true) => self.eval(known, then),
                Some(false) => self.eval(known, otherwise),
                None => {
                    let (a, b) = (self.eval(known, then), self.eval(known, otherwise));
                    a.filter(|_| a == b)
                }
            },
            Expr::Sum16 { offset, length, .. } | Expr::ByteSum { offset, length, .. } => {
                self.eval(known, offset);
                self.eval(known, length);
                None
            }
            Expr::Fold16(sum) => {
                self.eval(known, sum);
                None
            }
            Expr::Hash(_, all) => {
                all.iter().for_each(|e| {
                    self.eval(known, e);
                });
                None
            }
            Expr::Now | Expr::Random(..) => None,
        }
    }

    fn holds(&mut self, known: &Known, cond: &Cond) -> Option<bool> {
        match cond {
            Cond::Const(value) => Some(*value),
            Cond::Test(Expr::Field(field), set) => {
                let possible = self.possible(known, *field)?;
                match (possible.is_subset(set), possible.intersects(set)) {
                    (true, _) => Some(true),
                    (_, false) => Some(false),
                    _ => None,
                }
            }
            Cond::Test(expr, set) => Some(set.contains(self.eval(known, expr)?)),
            Cond::Compare(op, a, b) => {
                let (a, b) = (self.eval(known, a), self.eval(known, b));
                Some(CompareOp::holds(*op, a?, b?))
            }
            Cond::All(all) => {
                let mut answer = Some(true);
                for cond in all {
                    match self.holds(known, cond) {
                        Some(false) => return Some(false),
                        None => answer = None,
                        Some(true) => {}
                    }
                }
                answer
            }
            Cond::Any(any) => {
                let mut answer = Some(false);
                for cond in any {
                    match self.holds(known, cond) {
                        Some(true) => return Some(true),
                        None => answer = None,
                        Some(false) => {}
                    }
                }
                answer
            }
            Cond::Not(inner) => self.holds(known, inner).map(|h| !h),
            Cond::FlowExists(_, key) => {
                self.visit.flows += 1;
                key.iter().for_each(|e| {
                    self.eval(known, e);
                });
                None
            }
        }
    }

    /// Whether a condition checks a checksum.
    fn verifies(&self, cond: &Cond) -> bool {
        match cond {
            Cond::Test(expr, _) => self.sums(expr),
            Cond::Compare(_, a, b) => self.sums(a) || self.sums(b),
            Cond::All(all) | Cond::Any(all) => all.iter().any(|c| self.verifies(c)),
            Cond::Not(inner) => self.verifies(inner),
            Cond::Const(_) | Cond::FlowExists(..) => false,
        }
    }

    /// Whether an expression computes a ones' complement sum.
    fn sums(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Sum16 { .. } | Expr::Fold16(_) => true,
            Expr::Binary(_, a, b) | Expr::Choose(_, a, b) => self.sums(a) || self.sums(b),
            Expr::Reg(reg) => self.registers.get(&reg.0).is_some_and(|r| r.1),
            _ => false,
        }
    }
}

/// The fields that a model writes, whatever the path.
fn written_by(model: &Model) -> Vec<Field> {
    let mut fields = Vec::new();
    let mut waiting: Vec<&Op> = model.inputs.iter().flatten().collect();
    while let Some(op) = waiting.pop() {
        match op {
            Op::Set(field, _) if !fields.contains(field) => fields.push(*field),
            _ => waiting.extend(op.blocks().flatten()),
        }
    }
    fields
}

/// The fields that rules look at.
fn fields_of(rules: &[Rule]) -> Vec<Field> {
    fn of_expr(expr: &Expr, fields: &mut Vec<Field>) {
        match expr {
            Expr::Field(field) if !fields.contains(field) => fields.push(*field),
            Expr::Binary(_, a, b) => {
                of_expr(a, fields);
                of_expr(b, fields);
            }
            _ => {}
        }
    }
    fn of_cond(cond: &Cond, fields: &mut Vec<Field>) {
        match cond {
            Cond::Test(expr, _) => of_expr(expr, fields),
            Cond::Compare(_, a, b) => {
                of_expr(a, fields);
                of_expr(b, fields);
            }
            Cond::All(all) | Cond::Any(all) => all.iter().for_each(|c| of_cond(c, fields)),
            Cond::Not(inner) => of_cond(inner, fields),
            Cond::Const(_) | Cond::FlowExists(..) => {}
        }
    }
    let mut fields = Vec::new();
    rules.iter().for_each(|rule| of_cond(&rule.when, &mut fields));
    fields
}
