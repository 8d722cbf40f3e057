//! A program executed for one packet: always possible, and what packets off the usual paths
//! take.

use std::rc::Rc;

use elements::flow_access::FoundFlow;
use ir::interp;
use ir::program::{
    Atom, Effect, Exit, LookupId, Mark, Program, StateId, Step, StepId, Term, TermId,
};
use ir::{Base, Field};
use net::{Header, Packet, PacketType};
use smallvec::SmallVec;

use super::Counted;
use super::cells::CellTable;
use super::classifiers::Classifiers;
use super::compile::sets_of;
use super::tables::Tables;

/// How deeply terms are computed by recursion.
const MOST_NESTED: usize = 512;

/// The steps of a program and what is computed on the path.
pub(super) struct Scalar {
    program: Counted,
    classifiers: Rc<Classifiers>,
    table: Rc<CellTable>,
    /// By term.
    cells: Vec<Cell>,
    epoch: u32,
    /// By lookup: the terms that it binds, and which of its numbers they are.
    binds: Vec<Vec<(TermId, u8)>>,
    scratch: Vec<u128>,
    numbers: Vec<u128>,
    /// What each lookup found on the packet's path.
    found: Vec<Option<FoundFlow>>,
    /// The lookups that found something.
    hits: Vec<LookupId>,
    /// Whether something was computed from what a lookup had not bound yet.
    unbound: bool,
    now: u64,
}

/// A number, and the epoch in which it was computed.
#[derive(Clone, Copy)]
struct Cell {
    value: u128,
    epoch: u32,
}

/// The epoch of constants.
const ALWAYS: u32 = u32::MAX;

/// Whether a condition holds for these values.
#[inline]
fn decide(atom: &Atom, mut value: impl FnMut(TermId) -> u128) -> bool {
    match atom {
        Atom::Test(term, set) => set.contains(value(*term)),
        Atom::Compare(op, a, b) => op.holds(value(*a), value(*b)),
    }
}

fn low_bits(width: u8) -> u128 {
    match width {
        0 => 0,
        width => u128::MAX.checked_shr(128u32.saturating_sub(width.into())).unwrap_or(u128::MAX),
    }
}

/// A field of the data; 0 if it lies beyond.
fn read_data(data: &[u8], field: Field) -> u128 {
    let (first, last) = field.byte_range();
    let Some(bytes) = data.get(first..last) else { return 0 };
    if bytes.len() > 16 {
        return bytes
            .iter()
            .fold((0u128, 0), |(value, at), &byte| {
                let below = i32::from(field.offset % 8 + field.width) - 8 * (at + 1);
                let byte = u128::from(byte);
                (value | if below >= 0 { byte << below } else { byte >> -below }, at + 1)
            })
            .0
            & field.max();
    }
    let value = bytes.iter().fold(0u128, |value, &byte| value << 8 | u128::from(byte));
    let behind = last * 8 - usize::from(field.offset) - usize::from(field.width);
    value >> behind & field.max()
}

impl Scalar {
    pub(super) fn new(
        program: Counted,
        classifiers: Rc<Classifiers>,
        table: Rc<CellTable>,
    ) -> Self {
        let mut binds = vec![Vec::new(); program.lookups.len()];
        for (term, id) in program.terms.iter().zip(0..) {
            if let Term::Bound(lookup, index) = term {
                binds[usize::from(lookup.0)].push((TermId(id), *index));
            }
        }
        let cell = |term: &Term| match term {
            Term::Const(value) => Cell { value: *value, epoch: ALWAYS },
            _ => Cell { value: 0, epoch: 0 },
        };
        Self {
            classifiers,
            table,
            cells: program.terms.iter().map(cell).collect(),
            epoch: 0,
            binds,
            scratch: Vec::new(),
            numbers: Vec::new(),
            found: vec![None; program.lookups.len()],
            hits: Vec::new(),
            unbound: false,
            now: 0,
            program,
        }
    }

    /// Forgets the packet before.
    pub(super) fn start(&mut self, now: u64) {
        self.forget_values();
        for lookup in self.hits.drain(..) {
            self.found[usize::from(lookup.0)] = None;
        }
        self.now = now;
    }

    fn forget_values(&mut self) {
        self.unbound = false;
        self.epoch += 1;
        if self.epoch == ALWAYS {
            self.cells
                .iter_mut()
                .filter(|cell| cell.epoch < ALWAYS)
                .for_each(|cell| cell.epoch = 0);
            self.epoch = 1;
        }
    }

    /// The value of a term.
    #[inline]
    pub(super) fn value(&mut self, term: TermId, packet: &Packet) -> u128 {
        self.known(term).unwrap_or_else(|| {
            let program = Rc::clone(&self.program);
            self.nested(&program, term, packet, 0)
        })
    }

    /// The value of a term, if it is known.
    #[inline]
    fn known(&self, term: TermId) -> Option<u128> {
        let Cell { value, epoch } = self.cells[term.0 as usize];
        (epoch == self.epoch || epoch == ALWAYS).then_some(value)
    }

    /// Makes known what a lookup bound.
    fn bind(&mut self, lookup: LookupId) {
        let Some(found) = &self.found[usize::from(lookup.0)] else { return };
        let asked = &self.program.lookups[usize::from(lookup.0)];
        for &(term, index) in &self.binds[usize::from(lookup.0)] {
            let number = match index.checked_sub(asked.values) {
                None => found.values.get(usize::from(index)),
                Some(index) => found.common.get(usize::from(index)),
            };
            let value = number.copied().unwrap_or(0);
            self.cells[term.0 as usize] = Cell { value, epoch: self.epoch };
        }
    }

    /// The value of a term that is not known, so many others deep in it.
    fn nested(&mut self, program: &Program, term: TermId, packet: &Packet, depth: usize) -> u128 {
        let at = term.0 as usize;
        if let Term::Bound(..) = &program.terms[at] {
            self.unbound = true;
            return 0;
        }
        if depth > MOST_NESTED {
            self.compute_operands(program, term, packet);
        }
        let get = |of: &mut Self, term| match of.known(term) {
            Some(value) => value,
            None => of.nested(program, term, packet, depth + 1),
        };
        let value = self.compute(&program.terms[at], packet, get);
        self.cells[at] = Cell { value, epoch: self.epoch };
        value
    }

    /// Computes all that a term is made of, without recursion: terms may be nested as deeply as a
    /// chain is long.
    #[cold]
    fn compute_operands(&mut self, program: &Program, term: TermId, packet: &Packet) {
        let mut waiting = vec![term];
        while let Some(&next) = waiting.last() {
            let operands = program.terms[next.0 as usize].operands();
            let is_missing = |of: &&TermId| {
                !matches!(program.term(**of), Term::Bound(..)) && self.known(**of).is_none()
            };
            if let Some(&missing) = operands.iter().find(is_missing) {
                waiting.push(missing);
                continue;
            }
            waiting.pop();
            if next != term && self.known(next).is_none() {
                self.nested(program, next, packet, 0);
            }
        }
    }

    /// The value of a term made of others; of two to choose from, only the one that is chosen is asked for.
    #[inline]
    fn compute(
        &mut self,
        term: &Term,
        packet: &Packet,
        mut get: impl FnMut(&mut Self, TermId) -> u128,
    ) -> u128 {
        match term {
            Term::Const(value) => *value,
            Term::Input(field) => match field.base {
                Base::Data => read_data(packet.data(), *field),
                _ => interp::read(packet, *field).unwrap_or(0),
            },
            Term::Position(header) => match packet.header_offset(*header) {
                Some(offset) => u128::from(offset as i32 as u32),
                None => 0x8000_0000,
            },
            Term::Bound(..) => 0,
            Term::Sum16 { offset, length } => {
                let length = get(self, *length);
                let range = || {
                    let (at, n) = (usize::from(*offset), usize::try_from(length).ok()?);
                    packet.data().get(at..at.checked_add(n)?)
                };
                range().map_or(0, interp::sum16)
            }
            Term::Binary(op, a, b) => op.apply(get(self, *a), get(self, *b)),
            Term::Slice { of, low, width } => {
                get(self, *of).checked_shr(u32::from(*low)).unwrap_or(0) & low_bits(*width)
            }
            Term::Concat { high, low, width } => {
                get(self, *high).checked_shl(u32::from(*width)).unwrap_or(0) | get(self, *low)
            }
            Term::OnesSum(sum) => sum.value(|term| get(self, term)),
            Term::NonZero(sum) => match get(self, *sum) {
                0 => 0xffff,
                sum => sum,
            },
            Term::Choose(atom, yes, no) => {
                let holds = decide(atom, |term| get(self, term));
                get(self, if holds { *yes } else { *no })
            }
            Term::Map(of, table) => table.get(get(self, *of)),
            Term::Hash(function, numbers) => {
                function.hash(numbers.iter().map(|&n| get(self, n))).into()
            }
            Term::Cell(cells, index) => self.table.get(*cells, *index).into(),
            Term::Now => self.now.into(),
        }
    }

    /// Whether a condition holds.
    pub(super) fn holds(&mut self, atom: &Atom, packet: &Packet) -> bool {
        decide(atom, |term| self.value(term, packet))
    }

    /// Goes on from a step to an exit. What was computed and found on the path there must be known
    /// or is computed again.
    pub(super) fn walk(&mut self, from: StepId, packet: &Packet, tables: &Tables) -> StepId {
        let mut at = from;
        loop {
            at = self.walk_on(at, packet);
            match self.ask(at, packet) {
                Some(lookup) => at = self.look_up(at, lookup, tables),
                None => return at,
            }
        }
    }

    /// Goes on from a step to a lookup or an exit.
    fn walk_on(&mut self, from: StepId, packet: &Packet) -> StepId {
        let program = Rc::clone(&self.program);
        let mut at = from;
        loop {
            at = match program.step(at) {
                Step::Exit(_) | Step::Lookup { .. } => return at,
                Step::Test { atom, yes, no, .. } => {
                    if self.holds(atom, packet) {
                        *yes
                    } else {
                        *no
                    }
                }
                Step::Switch { on, cases, otherwise, .. } => {
                    let value = self.value(*on, packet);
                    let case = cases.iter().find(|(set, _)| set.contains(value));
                    case.map_or(*otherwise, |(_, step)| *step)
                }
                Step::Classify { keys, arms, otherwise, .. } => {
                    let mut key = [0; classify::MAX_DIMENSIONS];
                    for (number, term) in key.iter_mut().zip(keys) {
                        *number = u32::try_from(self.value(*term, packet)).unwrap_or(u32::MAX);
                    }
                    let arm = self.classifiers.lookup(at, &key);
                    arm.and_then(|arm| arms.get(arm as usize)).copied().unwrap_or(*otherwise)
                }
            };
        }
    }

    /// Computes what a step looks up, if it does.
    pub(super) fn ask(&mut self, at: StepId, packet: &Packet) -> Option<LookupId> {
        let program = Rc::clone(&self.program);
        let Step::Lookup { lookup, .. } = program.step(at) else { return None };
        let asked = &program.lookups[usize::from(lookup.0)];
        self.numbers.clear();
        for &term in &asked.key {
            let number = self.value(term, packet);
            self.numbers.push(number);
        }
        Some(*lookup)
    }

    /// Looks up what was asked for at a step; gives the next.
    pub(super) fn look_up(&mut self, at: StepId, lookup: LookupId, tables: &Tables) -> StepId {
        let Step::Lookup { hit, miss, .. } = *self.program.step(at) else { return at };
        let Some(found) = tables.find(lookup, &self.numbers, self.now) else {
            return miss;
        };
        self.found[usize::from(lookup.0)] = Some(found);
        self.hits.push(lookup);
        if self.unbound {
            self.forget_values();
            (0..self.hits.len()).for_each(|at| self.bind(self.hits[at]));
        } else {
            self.bind(lookup);
        }
        hit
    }

    /// Updates flows as an exit and its copies say.
    pub(super) fn update(&mut self, exit: &Exit, packet: &Packet, tables: &Tables) {
        for effect in exit.all().flat_map(|exit| &exit.effects) {
            if let Effect::Update { lookup, common, expiry, guarantee } = effect {
                let found = self.found[usize::from(lookup.0)].as_ref();
                let Some(number) = found.map(|found| found.number) else { continue };
                let mut numbers = std::mem::take(&mut self.numbers);
                numbers.clear();
                numbers.extend(common.iter().map(|&term| self.value(term, packet)));
                let mut time = |term| u64::try_from(self.value(term, packet)).unwrap_or(u64::MAX);
                let (expiry, guarantee) = (time(*expiry), time(*guarantee));
                let to = (number, &numbers[..], expiry, guarantee);
                tables.update(*lookup, to, self.now);
                self.numbers = numbers;
            }
        }
    }

    /// What an exit writes to cells.
    pub(super) fn sets(
        &mut self,
        exit: &Exit,
        packet: &Packet,
    ) -> SmallVec<[(StateId, u16, u64); 2]> {
        sets_of(exit)
            .map(|(cells, at, value)| (cells, at, self.value(value, packet) as u64))
            .collect()
    }

    /// The length of the data that is left after an exit's writes.
    pub(super) fn length(&mut self, exit: &Exit, packet: &Packet) -> u64 {
        let left = packet.len() as i64 - i64::from(exit.writes.start);
        let left = u64::try_from(left).unwrap_or(0);
        match exit.writes.length {
            Some(term) => left.min(u64::try_from(self.value(term, packet)).unwrap_or(u64::MAX)),
            None => left,
        }
    }

    /// Computes all that is written from the packet as it came in, then writes.
    pub(super) fn write(&mut self, exit: &Exit, packet: &mut Packet) {
        let writes = &exit.writes;
        let mut values = std::mem::take(&mut self.scratch);
        values.clear();
        let all = writes.bytes.iter().chain(&writes.annotations).chain(&writes.carried);
        values.extend(all.map(|write| write.value).map(|term| self.value(term, packet)));
        let length = writes.length.map(|term| self.value(term, packet));
        let marks = writes.marks.map(|mark| match mark {
            Mark::At(term) => self.value(term, packet) as u32 as i32,
            _ => 0,
        });
        let packet_type = writes.packet_type.map(|term| self.value(term, packet));
        let timestamp = writes.timestamp.map(|term| self.value(term, packet));

        // What lies before the data that is left is written too: it may be pushed again.
        let first =
            writes.bytes.iter().map(|write| write.offset).fold(writes.start.min(0), i32::min);
        packet.push(first.unsigned_abs() as usize);
        let (bytes, rest) = values.split_at(writes.bytes.len());
        let (annotations, carried) = rest.split_at(writes.annotations.len());
        for (write, value) in writes.bytes.iter().zip(bytes) {
            put(packet.data_mut(), write.offset - first, write.length, *value);
        }
        for (write, value) in writes.annotations.iter().zip(annotations) {
            let area = &mut packet.annotations_mut().bytes_mut()[..];
            put(area, write.offset, write.length, *value);
        }
        for (write, value) in writes.carried.iter().zip(carried) {
            put(packet.carried_mut(), write.offset, write.length, *value);
        }
        packet.pull(usize::try_from(writes.start - first).unwrap_or(0));
        if let Some(length) = length {
            packet.truncate(usize::try_from(length).unwrap_or(usize::MAX));
        }
        let headers = [Header::Mac, Header::Network, Header::Transport];
        for ((header, mark), at) in headers.into_iter().zip(writes.marks).zip(marks) {
            match mark {
                Mark::Keep => {}
                Mark::Clear => packet.clear_header(header),
                Mark::At(_) => {
                    packet.set_header_offset(header, at as isize - writes.start as isize);
                }
            }
        }
        if let Some(value) = packet_type {
            packet.set_packet_type(PacketType::from_u8(value as u8));
        }
        if let Some(value) = timestamp {
            packet.set_timestamp(value as u64);
        }
        self.scratch = values;
    }
}

/// Writes the low bytes of a value, if there is room for them.
fn put(bytes: &mut [u8], at: i32, length: u8, value: u128) {
    let length = usize::from(length).min(16);
    let range = usize::try_from(at).ok().and_then(|at| bytes.get_mut(at..at + length));
    debug_assert!(range.is_some(), "programs test lengths before they write");
    if let Some(range) = range {
        range.copy_from_slice(&value.to_be_bytes()[16 - length..]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ir::Port;
    use ir::model::BinaryOp;

    use super::*;
    use crate::pipeline::classifiers::Library;

    fn program(terms: Vec<Term>) -> Program {
        let entry = Port { node: 0, port: 0 };
        Program {
            entry,
            continuation: None,
            terms,
            state: vec![],
            tables: vec![],
            lookups: vec![],
            steps: vec![],
        }
    }

    fn scalar(program: &Program) -> Scalar {
        let classifiers = Classifiers::new(program, &Library::default());
        let mut scalar =
            Scalar::new(Rc::new(Arc::new(program.clone())), Rc::new(classifiers), Rc::default());
        scalar.start(0);
        scalar
    }

    #[test]
    fn terms_may_be_nested_as_deeply_as_a_chain_is_long() {
        let terms: Vec<Term> = std::iter::once(Term::Const(1))
            .chain((0..200_000).map(|i| Term::Binary(BinaryOp::Add, TermId(i), TermId(0))))
            .collect();
        let last = TermId(terms.len() as u32 - 1);
        let mut scalar = scalar(&program(terms));
        assert_eq!(scalar.value(last, &net::Pool::new().alloc(0)), 200_001);
    }
}
