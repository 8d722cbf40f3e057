//! The reference interpreter of programs: what one does to a packet, as simply as possible.

use std::collections::HashMap;

use net::{Header, Packet, PacketType, Pool};

use super::{
    Atom, Effect, End, Entries, Exit, LookupId, Mark, Program, StateId, Step, StepId, Term, TermId,
    Write, Writes,
};
use crate::Base;
use crate::graph::NodeId;
use crate::interp::{self, Fault};
use crate::model::{Reason, StateDecl, StateKind};
use crate::state::{Flows, StateValue, Store};

/// What surrounds a program while it runs.
pub trait Environment {
    /// Nanoseconds of the worker's clock.
    fn now(&self) -> u64;
    /// A reason was counted at an element without a drop.
    fn note(&mut self, element: NodeId, reason: Reason);
    /// The packet came to a step.
    fn reached(&mut self, _step: StepId) {}
    /// Copies a packet.
    fn copy(&mut self, packet: &Packet) -> Packet {
        Pool::new().copy(packet)
    }
    /// A copy left, or was dropped, as an exit says.
    fn copied(&mut self, _exit: &Exit, _copy: Packet) {}
    /// No flow was known under a key.
    fn missed(&mut self, _flows: StateId, _key: &[u128]) {}
}

/// Takes a packet through a program: decides, and then does what the exit says. The packet is to
/// go on, or be dropped, as the exit's [`End`] says.
///
/// # Errors
/// A [`Fault`] if the program is wrong; the packet and the state are then unspecified.
pub fn interpret<'a>(
    program: &'a Program,
    packet: &mut Packet,
    store: &mut Store,
    environment: &mut dyn Environment,
) -> Result<&'a Exit, Fault> {
    let mut run = Run {
        program,
        packet,
        store,
        environment,
        values: vec![None; program.terms.len()],
        found: HashMap::new(),
    };
    let exit = run.decide()?;
    // All is computed from the packet, and from state, as they were.
    for term in exit.terms() {
        run.value(term)?;
    }
    for leaving in exit.all() {
        for effect in &leaving.effects {
            run.effect(effect)?;
        }
        let mut copy = None;
        if !std::ptr::eq(leaving, exit) {
            let made = run.environment.copy(run.packet);
            copy = Some(std::mem::replace(run.packet, made));
        }
        match leaving.end {
            End::Push { .. } | End::Handoff { .. } => run.apply(&leaving.writes)?,
            // Nobody will see what is written into a packet that is dropped; its length is counted.
            End::Drop { .. } => {
                let length = run.left(&leaving.writes)?;
                run.resize(leaving.writes.start, length)?;
            }
        }
        if let Some(packet) = copy {
            let copy = std::mem::replace(run.packet, packet);
            run.environment.copied(leaving, copy);
        }
    }
    Ok(exit)
}

fn malformed<T>(what: String) -> Result<T, Fault> {
    Err(Fault::Malformed(what))
}

/// A flow that a lookup found.
struct FoundFlow {
    key: Vec<u128>,
    /// The direction's values, then the common cells.
    numbers: Vec<u128>,
}

struct Run<'a, 'b> {
    program: &'a Program,
    packet: &'b mut Packet,
    store: &'b mut Store,
    environment: &'b mut dyn Environment,
    /// The terms that were computed so far.
    values: Vec<Option<u128>>,
    found: HashMap<LookupId, FoundFlow>,
}

impl<'a> Run<'a, '_> {
    /// Goes from step to step until there is an exit.
    fn decide(&mut self) -> Result<&'a Exit, Fault> {
        let mut at = StepId(0);
        loop {
            let Some(step) = self.program.steps.get(at.0 as usize) else {
                return malformed(format!("there is no step {}", at.0));
            };
            self.environment.reached(at);
            let next = match step {
                Step::Exit(exit) => return Ok(exit),
                Step::Test { atom, yes, no, .. } => {
                    if self.holds(atom)? {
                        *yes
                    } else {
                        *no
                    }
                }
                Step::Switch { on, cases, otherwise, .. } => {
                    let value = self.value(*on)?;
                    let case = cases.iter().find(|(set, _)| set.contains(value));
                    case.map_or(*otherwise, |(_, step)| *step)
                }
                Step::Classify { keys, rules, arms, otherwise, .. } => {
                    let keys = self.numbers(keys)?;
                    let matches = |cube: &Vec<(u8, _)>| {
                        cube.iter().all(|(key, set): &(u8, crate::IntervalSet)| {
                            keys.get(usize::from(*key)).is_some_and(|&value| set.contains(value))
                        })
                    };
                    match rules.iter().find(|rule| rule.cubes.iter().any(matches)) {
                        None => *otherwise,
                        Some(rule) => match arms.get(rule.arm as usize) {
                            Some(arm) => *arm,
                            None => return malformed(format!("there is no arm {}", rule.arm)),
                        },
                    }
                }
                Step::Lookup { lookup, hit, miss } => {
                    if self.look_up(*lookup)? {
                        *hit
                    } else {
                        *miss
                    }
                }
            };
            if next <= at {
                return malformed(format!("step {} leads back to step {}", at.0, next.0));
            }
            at = next;
        }
    }

    fn look_up(&mut self, lookup: LookupId) -> Result<bool, Fault> {
        let Some(asked) = self.program.lookups.get(usize::from(lookup.0)) else {
            return malformed(format!("there is no lookup {}", lookup.0));
        };
        let key = self.numbers(&asked.key)?;
        let now = self.environment.now();
        let flows = match self.program.tables.get(usize::from(asked.table.0)).map(|t| &t.entries) {
            Some(Entries::Flows(flows)) => *flows,
            Some(Entries::Prefixes(table)) => {
                let entry = table.lookup(key.first().copied().unwrap_or_default());
                let Some(entry) = entry else { return Ok(false) };
                // Rows may have different lengths: what is not there is 0.
                let mut numbers = entry.row.to_vec();
                numbers.resize(asked.values.into(), 0);
                self.found.insert(lookup, FoundFlow { key, numbers });
                return Ok(true);
            }
            Some(Entries::Rules(_)) | None => {
                return malformed(format!("lookup {} is in no table", lookup.0));
            }
        };
        let Some((flow, side)) = self.flows(flows)?.find(&key, now) else {
            self.environment.missed(flows, &key);
            return Ok(false);
        };
        let values = flow.values[side].iter().take(asked.values.into());
        let common = flow.common.iter().take(asked.common.into());
        let numbers: Vec<u128> = values.chain(common).copied().collect();
        if numbers.len() != usize::from(asked.values) + usize::from(asked.common) {
            return malformed(format!("lookup {} binds more than there is", lookup.0));
        }
        self.found.insert(lookup, FoundFlow { key, numbers });
        Ok(true)
    }

    fn effect(&mut self, effect: &Effect) -> Result<(), Fault> {
        match effect {
            Effect::Count { counter, length } => {
                let length = self.value(*length)?;
                match self.state(*counter)? {
                    StateValue::Counter { packets, bytes } => {
                        *packets += 1;
                        *bytes = bytes.wrapping_add(length as u64);
                    }
                    _ => return malformed("not a counter".into()),
                }
            }
            Effect::Note { element, reason } => self.environment.note(*element, *reason),
            Effect::Update { lookup, common, expiry, guarantee } => {
                let common = self.numbers(common)?;
                let time = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
                let expiry = time(self.value(*expiry)?);
                let guarantee = time(self.value(*guarantee)?);
                let Some(FoundFlow { key, .. }) = self.found.get(lookup) else {
                    return malformed(format!("lookup {} found nothing to update", lookup.0));
                };
                let key = key.clone();
                let now = self.environment.now();
                let Some(flows) = self.program.flows(*lookup) else {
                    return malformed(format!("lookup {} is in no flows", lookup.0));
                };
                self.flows(flows)?.update(&key, common, expiry, guarantee, now);
            }
            Effect::Set { cells, index, value } => {
                let value = self.value(*value)?;
                let of = self.program.state.get(usize::from(cells.0));
                let Some(StateKind::Cells { width, .. }) = of.map(|of| &of.kind) else {
                    return malformed(format!("state {} is no cells", cells.0));
                };
                let value = value & low_bits((*width).min(128) as u8);
                *self.cell(*cells, *index)? = value;
            }
        }
        Ok(())
    }

    fn state(&mut self, state: StateId) -> Result<&mut StateValue, Fault> {
        let Some(of) = self.program.state.get(usize::from(state.0)) else {
            return malformed(format!("there is no state {}", state.0));
        };
        let declared = StateDecl { owner: None, name: of.name, kind: of.kind.clone() };
        Ok(self.store.entry(&of.owner, &declared))
    }

    fn flows(&mut self, state: StateId) -> Result<&mut Flows, Fault> {
        match self.state(state)? {
            StateValue::Flows(flows) => Ok(flows),
            _ => malformed("not a flow table".into()),
        }
    }

    fn cell(&mut self, state: StateId, index: u16) -> Result<&mut u128, Fault> {
        match self.state(state)? {
            StateValue::Cells(cells) => cells
                .get_mut(usize::from(index))
                .ok_or_else(|| Fault::Malformed(format!("there is no cell {index}"))),
            _ => malformed(format!("state {} is no cells", state.0)),
        }
    }

    fn holds(&mut self, atom: &Atom) -> Result<bool, Fault> {
        Ok(match atom {
            Atom::Test(term, set) => set.contains(self.value(*term)?),
            Atom::Compare(op, a, b) => op.holds(self.value(*a)?, self.value(*b)?),
        })
    }

    fn numbers(&mut self, terms: &[TermId]) -> Result<Vec<u128>, Fault> {
        terms.iter().map(|&term| self.value(term)).collect()
    }

    /// The value of a term. Operands are computed first, without recursion: terms may be nested
    /// as deeply as a chain is long.
    fn value(&mut self, term: TermId) -> Result<u128, Fault> {
        let mut waiting = vec![term];
        while let Some(&term) = waiting.last() {
            let Some(known) = self.values.get(term.0 as usize) else {
                return malformed(format!("there is no term {}", term.0));
            };
            if known.is_none() {
                let operands = self.program.term(term).operands();
                if let Some(late) = operands.iter().find(|&&o| o >= term) {
                    return malformed(format!("term {} is made from term {}", term.0, late.0));
                }
                if let Some(&first) = operands.iter().find(|o| self.known(**o).is_none()) {
                    waiting.push(first);
                    continue;
                }
                self.values[term.0 as usize] = Some(match self.program.term(term) {
                    Term::Cell(cells, index) => *self.cell(*cells, *index)?,
                    term => self.compute(term)?,
                });
            }
            waiting.pop();
        }
        self.known(term).ok_or_else(|| Fault::Malformed(format!("term {} has no value", term.0)))
    }

    fn known(&self, term: TermId) -> Option<u128> {
        self.values.get(term.0 as usize).copied().flatten()
    }

    /// Computes a term whose operands are known, and which is no cell.
    fn compute(&self, term: &Term) -> Result<u128, Fault> {
        let known = |term: &TermId| self.known(*term).unwrap_or_default();
        Ok(match term {
            Term::Const(value) => *value,
            Term::Input(field) => match field.base {
                Base::Header(_) => return malformed(format!("{field} is not resolved")),
                Base::Data => interp::read(self.packet, *field).or_else(|fault| match fault {
                    Fault::OutOfBounds(_) => Ok(0),
                    fault => Err(fault),
                })?,
                Base::Annotation | Base::Carried | Base::Meta => interp::read(self.packet, *field)?,
            },
            Term::Position(header) => match self.packet.header_offset(*header) {
                Some(offset) => u128::from(offset as i32 as u32),
                None => 0x8000_0000,
            },
            Term::Bound(lookup, index) => {
                let found = self.found.get(lookup);
                match found.and_then(|f| f.numbers.get(usize::from(*index))) {
                    Some(&value) => value,
                    None => return malformed(format!("lookup {} bound no {index}", lookup.0)),
                }
            }
            Term::Sum16 { offset, length } => {
                let range = || {
                    let (at, n) = (usize::from(*offset), usize::try_from(known(length)).ok()?);
                    self.packet.data().get(at..at.checked_add(n)?)
                };
                range().map_or(0, interp::sum16)
            }
            Term::Binary(op, a, b) => op.apply(known(a), known(b)),
            Term::Slice { of, low, width } => {
                let value = known(of).checked_shr(u32::from(*low)).unwrap_or(0);
                value & low_bits(*width)
            }
            Term::Concat { high, low, width } => {
                if known(low) & !low_bits(*width) != 0 {
                    return malformed(format!("{} has more than {width} bits", known(low)));
                }
                known(high).checked_shl(u32::from(*width)).unwrap_or(0) | known(low)
            }
            Term::OnesSum(sum) => sum.value(|term| known(&term)),
            Term::NonZero(sum) => match known(sum) {
                0 => 0xffff,
                sum => sum,
            },
            Term::Choose(atom, yes, no) => {
                let holds = match atom {
                    Atom::Test(term, set) => set.contains(known(term)),
                    Atom::Compare(op, a, b) => op.holds(known(a), known(b)),
                };
                known(if holds { yes } else { no })
            }
            Term::Map(of, table) => table.get(known(of)),
            Term::Hash(function, numbers) => function.hash(numbers.iter().map(known)).into(),
            Term::Cell(..) => return malformed("a cell is not computed".into()),
            Term::Now => self.environment.now().into(),
        })
    }

    /// How long the data is to be in the end.
    fn left(&mut self, writes: &Writes) -> Result<Option<usize>, Fault> {
        let Some(length) = writes.length else { return Ok(None) };
        Ok(Some(usize::try_from(self.value(length)?).unwrap_or(usize::MAX)))
    }

    /// Moves the data's edges.
    fn resize(&mut self, start: i32, length: Option<usize>) -> Result<(), Fault> {
        match usize::try_from(start) {
            Ok(pulled) if pulled <= self.packet.len() => self.packet.pull(pulled),
            Err(_) if start > -65536 => self.packet.push(start.unsigned_abs() as usize),
            _ => return Err(Fault::OutOfBounds(format!("a start at {start}"))),
        }
        self.packet.truncate(length.unwrap_or(usize::MAX));
        Ok(())
    }

    fn written(&mut self, writes: &[Write]) -> Result<Vec<u128>, Fault> {
        writes.iter().map(|write| self.value(write.value)).collect()
    }

    /// Computes all that is written from the packet as it came in, then writes.
    fn apply(&mut self, writes: &Writes) -> Result<(), Fault> {
        let bytes = self.written(&writes.bytes)?;
        let annotations = self.written(&writes.annotations)?;
        let carried = self.written(&writes.carried)?;
        let length = self.left(writes)?;
        let mut marks = [None; 3];
        for (mark, to) in marks.iter_mut().zip(writes.marks) {
            if let Mark::At(term) = to {
                *mark = Some(self.value(term)? as u32 as i32);
            }
        }
        let packet_type = writes.packet_type.map(|t| self.value(t)).transpose()?;
        let timestamp = writes.timestamp.map(|t| self.value(t)).transpose()?;

        // What lies before the data that is left is written too: it may be pushed again.
        let first = writes.bytes.iter().map(|write| write.offset).fold(0, i32::min);
        self.resize(first, None)?;
        for (write, value) in writes.bytes.iter().zip(bytes) {
            let at = write.offset.checked_sub(first).and_then(|at| usize::try_from(at).ok());
            put(self.packet.data_mut(), at, *write, value, "data")?;
        }
        for (write, value) in writes.annotations.iter().zip(annotations) {
            let at = usize::try_from(write.offset).ok();
            put(self.packet.annotations_mut().bytes_mut(), at, *write, value, "anno")?;
        }
        for (write, value) in writes.carried.iter().zip(carried) {
            let at = usize::try_from(write.offset).ok();
            put(self.packet.carried_mut(), at, *write, value, "carried")?;
        }
        let Some(start) = writes.start.checked_sub(first) else {
            return Err(Fault::OutOfBounds(format!("a start at {}", writes.start)));
        };
        self.resize(start, length)?;
        let headers = [Header::Mac, Header::Network, Header::Transport];
        for ((header, mark), at) in headers.into_iter().zip(writes.marks).zip(marks) {
            match (mark, at) {
                (Mark::Clear, _) => self.packet.clear_header(header),
                (_, Some(at)) => {
                    let from_start = at as isize - writes.start as isize;
                    self.packet.set_header_offset(header, from_start);
                }
                _ => {}
            }
        }
        if let Some(value) = packet_type {
            self.packet.set_packet_type(PacketType::from_u8(value as u8));
        }
        if let Some(value) = timestamp {
            self.packet.set_timestamp(value as u64);
        }
        Ok(())
    }
}

fn low_bits(width: u8) -> u128 {
    match width {
        0 => 0,
        width => u128::MAX.checked_shr(128u32.saturating_sub(width.into())).unwrap_or(u128::MAX),
    }
}

/// Writes the low bytes of a value.
fn put(
    bytes: &mut [u8],
    at: Option<usize>,
    write: Write,
    value: u128,
    base: &str,
) -> Result<(), Fault> {
    let length = usize::from(write.length);
    let to = at.and_then(|at| bytes.get_mut(at..at.checked_add(length)?));
    match (to, value.to_be_bytes().get(16usize.saturating_sub(length)..)) {
        (Some(to), Some(from)) if from.len() == length => to.copy_from_slice(from),
        _ => {
            let (offset, length) = (write.offset, write.length);
            return Err(Fault::OutOfBounds(format!("{base}[{offset}] of {length} bytes")));
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use net::Pool;

    use super::*;
    use crate::field::{Field, anno, eth, meta};
    use crate::graph::Port;
    use crate::hash::HashFunction;
    use crate::interval::IntervalSet;
    use crate::model::{BinaryOp, CompareOp, StateKind};
    use crate::program::{ClassifyRule, Lookup, OnesSum, StateOf, Table, TableId};
    use crate::state::Flow;

    #[derive(Default)]
    struct World {
        now: u64,
        noted: Vec<(NodeId, Reason)>,
        steps: Vec<u32>,
    }

    impl Environment for World {
        fn now(&self) -> u64 {
            self.now
        }

        fn note(&mut self, element: NodeId, reason: Reason) {
            self.noted.push((element, reason));
        }

        fn reached(&mut self, step: StepId) {
            self.steps.push(step.0);
        }
    }

    const ENTRY: Port = Port { node: 0, port: 0 };
    const OUT: End = End::Push { to: Port { node: 9, port: 1 }, native: false };

    fn exit(effects: Vec<Effect>, writes: Writes, end: End) -> Step {
        Step::Exit(Box::new(Exit {
            effects,
            writes,
            end,
            barrier: None,
            visited: vec![ENTRY],
            copies: vec![],
        }))
    }

    fn program(terms: Vec<Term>, steps: Vec<Step>) -> Program {
        let (state, tables, lookups) = (Vec::new(), Vec::new(), Vec::new());
        Program { entry: ENTRY, continuation: None, terms, state, tables, lookups, steps }
    }

    /// A packet of these bytes with nothing but zeros before them.
    fn packet(bytes: &[u8]) -> Packet {
        let mut packet = Pool::new().packet(&[&[0; 64], bytes].concat());
        packet.pull(64);
        packet
    }

    fn run(program: &Program, packet: &mut Packet) -> Result<End, Fault> {
        let mut world = World::default();
        interpret(program, packet, &mut Store::new(), &mut world).map(|exit| exit.end)
    }

    /// The value of the last term, by the timestamp.
    fn value(terms: Vec<Term>, packet: &mut Packet) -> Result<u64, Fault> {
        let timestamp = Some(TermId(terms.len() as u32 - 1));
        let writes = Writes { timestamp, ..Writes::default() };
        run(&program(terms, vec![exit(Vec::new(), writes, OUT)]), packet)?;
        Ok(packet.timestamp())
    }

    fn byte(at: u16) -> Term {
        Term::Input(Field::bytes(Base::Data, at, 1))
    }

    #[test]
    fn terms_have_the_values_they_should() {
        let t = TermId;
        let of = |terms| value(terms, &mut packet(&[0x81, 0x02, 0xff, 0xfe, 0x05]));
        assert_eq!(of(vec![Term::Const(7)]), Ok(7));
        assert_eq!(of(vec![Term::Input(Field::bits(Base::Data, 4, 8))]), Ok(0x10));
        // Beyond the packet, even partly, there are zeros.
        assert_eq!(of(vec![Term::Input(Field::bytes(Base::Data, 4, 1))]), Ok(5));
        assert_eq!(of(vec![Term::Input(Field::bytes(Base::Data, 4, 2))]), Ok(0));
        assert_eq!(of(vec![Term::Input(meta::LEN)]), Ok(5));
        assert_eq!(of(vec![Term::Position(Header::Network)]), Ok(0x8000_0000));
        let sum = |offset, length| {
            of(vec![Term::Const(length), Term::Sum16 { offset, length: TermId(0) }])
        };
        assert_eq!(sum(0, 5), Ok(0x8102 + 0xfffe + 0x0500 - 0xffff));
        assert_eq!(sum(1, 2), Ok(0x02ff));
        assert_eq!(sum(1, 5), Ok(0));
        let of = |terms: &[Term]| value(terms.to_vec(), &mut packet(&[1, 2]));
        let two = [Term::Const(0x1234), Term::Const(3)];
        let with = |term: Term| of(&[&two[..], &[term]].concat());
        assert_eq!(with(Term::Binary(BinaryOp::Sub, t(0), t(1))), Ok(0x1231));
        assert_eq!(with(Term::Slice { of: t(0), low: 4, width: 8 }), Ok(0x23));
        assert_eq!(with(Term::Concat { high: t(0), low: t(1), width: 2 }), Ok(0x1234 << 2 | 3));
        assert!(with(Term::Concat { high: t(0), low: t(1), width: 1 }).is_err());
        let function = HashFunction::MixedFnv1a;
        let hash = function.hash([3]);
        assert_eq!(with(Term::Hash(function, vec![t(1)])), Ok(hash));
        let less = Atom::Compare(CompareOp::Lt, t(0), t(1));
        assert_eq!(with(Term::Choose(less, t(0), t(1))), Ok(3));
        let fold = |sum| of(&[Term::Const(sum), Term::OnesSum(OnesSum::of(t(0)))]);
        assert_eq!((fold(0), fold(0xffff), fold(0x1_0001)), (Ok(0), Ok(0xffff), Ok(2)));
        let non_zero = |sum| of(&[Term::Const(sum), Term::NonZero(t(0))]);
        assert_eq!((non_zero(0), non_zero(5)), (Ok(0xffff), Ok(5)));
    }

    #[test]
    fn operands_stand_before_a_term() {
        let late = [1, 0].map(|n| Term::NonZero(TermId(n))).to_vec();
        assert!(value(late, &mut packet(&[])).is_err());
        // Deep terms take no stack.
        let deep: Vec<Term> = std::iter::once(Term::Const(1))
            .chain((0..200_000).map(|i| Term::Binary(BinaryOp::Add, TermId(i), TermId(0))))
            .collect();
        assert_eq!(value(deep, &mut packet(&[])), Ok(200_001));
    }

    #[test]
    fn values_are_of_the_packet_as_it_came_in() {
        // The two addresses change places, and one is what the other was.
        let terms = vec![Term::Input(eth::DST), Term::Input(eth::SRC)];
        let write = |offset, value| Write { offset, length: 6, value: TermId(value) };
        let writes = Writes { bytes: vec![write(0, 1), write(6, 0)], ..Writes::default() };
        let program = program(terms, vec![exit(Vec::new(), writes, OUT)]);
        let mut swapped = packet(&[1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 8, 0]);
        assert_eq!(run(&program, &mut swapped), Ok(OUT));
        assert_eq!(swapped.data(), [2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 8, 0]);
        assert!(matches!(run(&program, &mut packet(&[1; 11])), Err(Fault::OutOfBounds(_))));
    }

    #[test]
    fn a_header_is_taken_off_and_another_put_on() {
        let terms = vec![Term::Const(0xaabb), Term::Const(3), Term::Const(-2i128 as u128)];
        let write = |offset| Write { offset, length: 2, value: TermId(0) };
        let marks = [Mark::Clear, Mark::At(TermId(1)), Mark::Keep];
        let mut bytes = vec![write(-2)];
        let writes = |start, bytes| Writes {
            start,
            bytes,
            marks,
            annotations: Vec::new(),
            ..Writes::default()
        };
        let mut packet = packet(&[1, 2, 3, 4, 5]);
        let mut run = |writes| {
            packet.set_header_offset(Header::Mac, 0);
            packet.set_header_offset(Header::Transport, 4);
            let program = program(terms.clone(), vec![exit(Vec::new(), writes, OUT)]);
            let end = self::run(&program, &mut packet);
            let headers = [Header::Mac, Header::Network, Header::Transport];
            (end, packet.data().to_vec(), headers.map(|h| packet.header_offset(h)))
        };
        let pushed = vec![0, 0xaa, 0xbb, 1, 2, 3, 4, 5];
        let three = [None, Some(6), Some(7)];
        assert_eq!(run(writes(-3, bytes.clone())), (Ok(OUT), pushed, three));
        // What is written before the data that is left is there when it is pushed again.
        bytes.push(write(3));
        let pulled = vec![0xbb, 3, 4, 5];
        assert_eq!(run(writes(4, bytes)), (Ok(OUT), pulled, [None, Some(-1), Some(0)]));
        let again = vec![0, 0xaa, 0xbb, 0xaa, 0xbb, 3, 4, 5];
        let (end, data, _) = run(Writes { start: -4, ..Writes::default() });
        assert_eq!((end, data), (Ok(OUT), again));
        assert!(run(Writes { start: 9, ..Writes::default() }).0.is_err());
    }

    #[test]
    fn data_is_cut_and_annotations_are_written() {
        let terms = vec![Term::Const(3), Term::Input(anno::PAINT), Term::Const(2)];
        let paint = Write { offset: 0, length: 1, value: TermId(1) };
        let writes = Writes {
            start: 1,
            length: Some(TermId(0)),
            annotations: vec![paint],
            packet_type: Some(TermId(2)),
            ..Writes::default()
        };
        let program = program(terms, vec![exit(Vec::new(), writes, OUT)]);
        let mut packet = packet(&[1, 2, 3, 4, 5, 6]);
        packet.annotations_mut().set_u8(net::annotation::PAINT, 42);
        assert_eq!(run(&program, &mut packet), Ok(OUT));
        assert_eq!(packet.data(), [2, 3, 4]);
        assert_eq!(packet.annotations().bytes()[0], 42);
        assert_eq!(packet.packet_type(), PacketType::Multicast);
    }

    #[test]
    fn steps_lead_where_they_should() {
        let drop = |n| {
            let end = End::Drop { element: n, reason: Reason("here") };
            exit(Vec::new(), Writes::default(), end)
        };
        let set = IntervalSet::range;
        let rule =
            |cubes: Vec<_>, arm| ClassifyRule { cubes: cubes.into(), arm, number: arm, span: None };
        let rules = vec![
            rule(vec![vec![(0, set(1, 1)), (1, set(5, 9))]], 1),
            rule(vec![vec![(0, set(2, 2))], vec![(1, set(7, 7))]], 0),
        ];
        let s = StepId;
        let steps = vec![
            Step::Test {
                atom: Atom::Test(TermId(0), Arc::new(set(0, 9))),
                yes: s(1),
                no: s(2),
                element: 0,
            },
            Step::Classify {
                table: None,
                keys: vec![TermId(0), TermId(1)],
                rules: rules.into(),
                arms: vec![s(3), s(4)],
                otherwise: s(2),
                element: 0,
            },
            Step::Switch {
                on: TermId(1),
                cases: vec![(set(10, 19), s(3)), (set(20, 29), s(4))],
                otherwise: s(5),
                element: 0,
            },
            drop(3),
            drop(4),
            drop(5),
        ];
        let program = program(vec![byte(0), byte(1)], steps);
        let end = |a, b| match run(&program, &mut packet(&[a, b])) {
            Ok(End::Drop { element, .. }) => element,
            other => panic!("{other:?}"),
        };
        assert_eq!(end(1, 5), 4);
        assert_eq!((end(2, 5), end(1, 4), end(3, 7)), (3, 5, 3));
        assert_eq!((end(1, 7), end(3, 12), end(30, 29), end(30, 30)), (4, 3, 4, 5));
        let mut world = World::default();
        let mut packet = packet(&[3, 15]);
        assert!(interpret(&program, &mut packet, &mut Store::new(), &mut world).is_ok());
        assert_eq!(world.steps, [0, 1, 2, 3]);
    }

    /// Looks a byte up, writes what is bound and updates the flow.
    pub(in super::super) fn with_flows() -> Program {
        let lookup = LookupId(0);
        let terms = vec![
            byte(0),
            Term::Bound(lookup, 0),
            Term::Bound(lookup, 1),
            Term::Const(1),
            Term::Binary(BinaryOp::Add, TermId(2), TermId(3)),
            Term::Now,
            Term::Const(100),
            Term::Binary(BinaryOp::Add, TermId(5), TermId(6)),
        ];
        let counted = Effect::Count { counter: StateId(1), length: TermId(6) };
        let noted = Effect::Note { element: 4, reason: Reason("seen") };
        let (expiry, guarantee) = (TermId(7), TermId(5));
        let update = Effect::Update { lookup, common: vec![TermId(4)], expiry, guarantee };
        let write = Write { offset: 1, length: 2, value: TermId(1) };
        let writes = Writes { bytes: vec![write], ..Writes::default() };
        let dropped = End::Drop { element: 2, reason: Reason("unknown-flow") };
        let steps = vec![
            Step::Lookup { lookup, hit: StepId(1), miss: StepId(2) },
            exit(vec![counted, update, noted], writes, OUT),
            exit(Vec::new(), Writes { start: 1, ..Writes::default() }, dropped),
        ];
        let state = |name, kind| StateOf { owner: "nat".into(), element: 0, name, kind };
        let lookups = vec![Lookup {
            table: TableId(0),
            key: vec![TermId(0)],
            values: 1,
            common: 1,
            element: 0,
        }];
        let flows = state("flows", StateKind::Flows { capacity: 4, widths: Vec::new() });
        let state = vec![flows, state("hits", StateKind::Counter)];
        let entries = Entries::Flows(StateId(0));
        let tables = vec![Table { element: 0, widths: vec![8], entries }];
        Program { entry: ENTRY, continuation: None, terms, state, tables, lookups, steps }
    }

    #[test]
    fn flows_are_found_updated_and_expire() {
        let program = with_flows();
        let mut flows = Flows::new(4);
        let flow = Flow {
            keys: [vec![7], vec![8]],
            values: [vec![0x0102], vec![0x0304]],
            common: vec![40],
            expiry: 10,
            guarantee: 0,
        };
        assert!(flows.insert(flow, 0));
        let mut store = Store::new();
        store.set("nat", "flows", StateValue::Flows(flows));
        let mut at = |now, key| {
            let mut world = World { now, ..World::default() };
            let mut packet = packet(&[key, 0, 0]);
            let exit = interpret(&program, &mut packet, &mut store, &mut world);
            let end = exit.expect("it is well formed").end;
            let Some(StateValue::Flows(flows)) = store.get("nat", "flows") else { panic!() };
            let flow = flows.iter().next().expect("the flow stays");
            let state = (flow.common[0], flow.expiry, flow.guarantee);
            (end == OUT, packet.data().to_vec(), state, world.noted.len())
        };
        assert_eq!(at(9, 7), (true, vec![7, 1, 2], (41, 109, 9), 1));
        assert_eq!(at(20, 8), (true, vec![8, 3, 4], (42, 120, 20), 1));
        // One that misses is dropped with the length that it had by then.
        assert_eq!(at(21, 9), (false, vec![0, 0], (42, 120, 20), 0));
        assert_eq!(at(120, 7), (false, vec![0, 0], (42, 120, 20), 0));
        assert_eq!(store.counter("nat", "hits"), (2, 200));
    }

    #[test]
    fn what_no_lookup_bound_is_a_fault() {
        let mut program = with_flows();
        program.steps.remove(0);
        assert!(matches!(run(&program, &mut packet(&[7, 0, 0])), Err(Fault::Malformed(_))));
        let mut program = with_flows();
        program.lookups[0].common = 2;
        let mut store = Store::new();
        let mut flows = Flows::new(1);
        let (keys, values) = ([vec![7], vec![8]], [vec![1], vec![2]]);
        flows.insert(Flow { keys, values, common: vec![0], expiry: 9, guarantee: 0 }, 0);
        store.set("nat", "flows", StateValue::Flows(flows));
        let ran = interpret(&program, &mut packet(&[7]), &mut store, &mut World::default());
        assert!(matches!(ran, Err(Fault::Malformed(_))));
    }

    #[test]
    fn steps_only_lead_forwards() {
        let circle =
            Step::Switch { on: TermId(0), cases: Vec::new(), otherwise: StepId(0), element: 0 };
        assert!(run(&program(vec![Term::Const(0)], vec![circle]), &mut packet(&[])).is_err());
        assert!(run(&program(Vec::new(), Vec::new()), &mut packet(&[])).is_err());
    }
}
