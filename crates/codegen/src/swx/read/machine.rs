//! Symbolic execution of instructions: from place to place, where the packet decides.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, Term, TermId};
use ir::{Base, IntervalSet, MAX_MASK_INTERVALS};

use super::super::spec::Failure;
use super::code::{Action, Code, Op, Operand};
use crate::symbolic::graph::Rules;
use crate::symbolic::output::Output;
use crate::symbolic::terms::{Terms, ones};

/// The state of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// So many bits of it were extracted.
    came: u32,
    /// Headers that are there: where they lay, if they were extracted.
    valid: BTreeMap<usize, Option<u32>>,
    /// Fields that were written.
    fields: BTreeMap<(usize, usize), TermId>,
    meta: BTreeMap<usize, TermId>,
    emitted: Vec<usize>,
    counted: Option<TermId>,
    /// Whether the table that was just looked up matched.
    hit: Option<bool>,
    /// What the search for headers found out of numbers.
    known: BTreeMap<TermId, IntervalSet>,
}

/// Whether a mask's numbers are more intervals than a set takes ([`IntervalSet::masked`]).
fn has_many_gaps(width: u16, mask: u128) -> bool {
    let free = (ones(width) & !mask).unbounded_shr(mask.trailing_zeros());
    free.count_ones() > MAX_MASK_INTERVALS.ilog2()
}

/// Where execution goes on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Continuation {
    at: usize,
    state: State,
}

/// What comes next.
pub(super) enum Next {
    /// What decides, and where it leads if it holds, and if not.
    Test(Atom, Box<(Continuation, Continuation)>),
    /// Keys, rules by the places that they lead to, and that of the rest.
    Table {
        keys: Vec<TermId>,
        rules: Rules,
        places: Vec<Continuation>,
        otherwise: usize,
    },
    End(Output),
    /// Anything may happen.
    Undefined,
}

/// Why execution stops.
enum Stop {
    Undefined,
    Fail(String),
}

fn fail<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fail(why.into()))
}

/// What a condition is.
enum Cond {
    Known(bool),
    Is(Atom),
}

pub(super) struct Machine<'a> {
    code: &'a Code,
    pub(super) terms: Terms,
    port: u32,
    /// Instructions and entries that may still be looked at.
    budget: usize,
}

impl<'a> Machine<'a> {
    pub(super) fn new(code: &'a Code, port: u32, terms: Vec<Term>) -> Self {
        Self { code, terms: Terms::new(terms), port, budget: 1 << 24 }
    }

    /// Where all packets begin.
    pub(super) fn start(&self) -> Continuation {
        Continuation { at: 0, state: State::default() }
    }

    fn spend(&mut self) -> Result<(), Stop> {
        match self.budget.checked_sub(1) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => fail("it takes too long"),
        }
    }

    fn width(&self, of: Operand, action: Option<&Action>) -> Option<u16> {
        match of {
            Operand::Header(header, field) => Some(self.code.headers[header].fields[field].1),
            Operand::Meta(field) => Some(self.code.metadata[field].1),
            Operand::Argument(field) => action.map(|action| action.arguments[field].1),
            Operand::Number(_) => None,
        }
    }

    fn get(&mut self, state: &State, of: Operand, arguments: &[TermId]) -> Result<TermId, Stop> {
        match of {
            Operand::Number(value) => Ok(self.terms.constant(value.into())),
            Operand::Argument(at) => arguments.get(at).copied().ok_or(Stop::Undefined),
            Operand::Meta(field) => state.meta.get(&field).copied().ok_or(Stop::Undefined),
            Operand::Header(header, field) => {
                let place = state.valid.get(&header).ok_or(Stop::Undefined)?;
                if let Some(value) = state.fields.get(&(header, field)) {
                    return Ok(*value);
                }
                let Some(from) = place else { return Err(Stop::Undefined) };
                let fields = &self.code.headers[header].fields;
                let before: u32 = fields[..field].iter().map(|field| u32::from(field.1)).sum();
                match u16::try_from(from + before) {
                    Ok(bit) => Ok(self.terms.data(bit, fields[field].1)),
                    Err(_) => fail("a header lies far behind"),
                }
            }
        }
    }

    fn set(
        &mut self,
        state: &mut State,
        to: Operand,
        value: TermId,
        width: u16,
    ) -> Result<(), Stop> {
        let value = match self.terms.bounds(value).1 <= ones(width) {
            true => value,
            false => self.terms.slice(value, 0, width),
        };
        match to {
            Operand::Meta(field) => drop(state.meta.insert(field, value)),
            Operand::Header(header, field) => {
                if !state.valid.contains_key(&header) {
                    return Err(Stop::Undefined);
                }
                if !state.emitted.is_empty() {
                    return fail("a header is written behind the first that is emitted");
                }
                state.fields.insert((header, field), value);
            }
            _ => return fail("that is not written"),
        }
        Ok(())
    }

    /// What moves and computes.
    fn run(
        &mut self,
        state: &mut State,
        op: &Op,
        action: Option<&Action>,
        arguments: &[TermId],
    ) -> Result<(), Stop> {
        self.spend()?;
        let (to, value) = match *op {
            Op::Move(to, from) => (to, self.get(state, from, arguments)?),
            Op::Compute(op, to, from) => {
                let (a, b) = (self.get(state, to, arguments)?, self.get(state, from, arguments)?);
                (to, self.compute(op, a, b)?)
            }
            _ => return Ok(()),
        };
        let width = self.width(to, action).unwrap_or(64);
        self.set(state, to, value, width)
    }

    fn compute(&mut self, op: BinaryOp, a: TermId, b: TermId) -> Result<TermId, Stop> {
        let terms = &mut self.terms;
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) && terms.value(b).is_none_or(|by| by >= 64) {
            return fail("a number is shifted by what is no constant below 64");
        }
        if op == BinaryOp::Xor
            && let Some(mask) = terms.value(b)
            && mask > 0
            && mask & mask.wrapping_add(1) == 0
            && terms.bounds(a).1 <= mask
        {
            return Ok(terms.invert(a, (128 - mask.leading_zeros()) as u16));
        }
        if op == BinaryOp::Or
            && let Some(both) = behind(terms, a, b)
        {
            return Ok(both);
        }
        let all = terms.binary(op, a, b, 64);
        Ok(self.summed(all))
    }

    /// The sum over the words of an IPv4 header without options, if a number is that.
    fn summed(&mut self, of: TermId) -> TermId {
        let Term::OnesSum(sum) = self.terms.term(of) else { return of };
        if sum.complement || sum.constant != 0 || !sum.minus.is_empty() {
            return of;
        }
        let words = sum.plus.iter().map(|term| match self.terms.term(*term) {
            Term::Input(field) if field.base == Base::Data && field.width % 16 == 0 => {
                Some((field.offset, field.width))
            }
            _ => None,
        });
        let Some(mut words) = words.collect::<Option<Vec<_>>>() else { return of };
        words.sort_unstable();
        let is_one = words.windows(2).all(|pair| pair[0].0 + pair[0].1 == pair[1].0);
        let bits: u32 = words.iter().map(|word| u32::from(word.1)).sum();
        match words.first() {
            Some((first, _)) if is_one && bits == 160 && first % 8 == 0 => {
                let (offset, length) = (first / 8, self.terms.constant(20));
                self.terms.add(Term::Sum16 { offset, length })
            }
            _ => of,
        }
    }

    /// Whether a number is in a set, by what is known of it.
    fn within(&self, state: &State, of: TermId, set: IntervalSet) -> Cond {
        let (low, high) = self.terms.bounds(of);
        let all = IntervalSet::range(low, high);
        let all = state.known.get(&of).map_or(all.clone(), |known| known.intersect(&all));
        if all.is_subset(&set) || !all.intersects(&set) {
            return Cond::Known(all.intersects(&set));
        }
        Cond::Is(Atom::Test(of, Arc::new(set)))
    }

    fn compare(&self, state: &State, op: CompareOp, a: TermId, b: TermId) -> Cond {
        let Some(than) = self.terms.value(b) else {
            return match (self.terms.value(a), op) {
                _ if a == b => Cond::Known(op.holds(0, 0)),
                (Some(value), _) => {
                    let turned = match op {
                        CompareOp::Lt => CompareOp::Gt,
                        CompareOp::Gt => CompareOp::Lt,
                        op => op,
                    };
                    self.within(state, b, numbers(turned, value))
                }
                (None, _) => Cond::Is(Atom::Compare(op, a, b)),
            };
        };
        self.within(state, a, numbers(op, than))
    }

    /// What comes behind a place.
    ///
    /// # Errors
    /// The line of an instruction that is not understood, and why.
    pub(super) fn next(&mut self, place: &Continuation) -> Result<Next, Failure> {
        let mut place = place.clone();
        loop {
            let Some((line, op)) = self.code.ops.get(place.at) else {
                return Err((0, "a packet is neither sent nor dropped".into()));
            };
            match self.execute(&mut place, op) {
                Ok(None) => {}
                Ok(Some(next)) => return Ok(next),
                Err(Stop::Undefined) => return Ok(Next::Undefined),
                Err(Stop::Fail(why)) => return Err((*line, why)),
            }
        }
    }

    fn execute(&mut self, place: &mut Continuation, op: &Op) -> Result<Option<Next>, Stop> {
        self.spend()?;
        let (here, state) = (place.at, &mut place.state);
        place.at += 1;
        match *op {
            Op::Receive(field) => {
                if here != 0 {
                    return fail("packets are received first, and once");
                }
                let port = self.terms.constant(self.port.into());
                state.meta.insert(field, port);
            }
            Op::Extract(header) => {
                let bits = self.code.headers[header].bits;
                let first = state.came;
                state.came += bits;
                let is_written = state.fields.keys().any(|field| field.0 == header);
                if state.valid.insert(header, Some(first)).is_some() || is_written {
                    return fail("a header is extracted twice");
                }
            }
            Op::Validate(header) => {
                // Its fields hold nothing that is known.
                if state.valid.insert(header, None).is_some() {
                    return fail("a header is made valid that is");
                }
            }
            Op::Invalidate(header) => {
                if state.valid.remove(&header).is_none() {
                    return Err(Stop::Undefined);
                }
                state.fields.retain(|field, _| field.0 != header);
            }
            Op::Emit(header) => {
                if state.emitted.contains(&header) {
                    return fail("a header is emitted twice");
                }
                if state.valid.contains_key(&header) {
                    state.emitted.push(header);
                }
            }
            Op::Move(..) | Op::Compute(..) => self.run(state, op, None, &[])?,
            Op::Count(number) => {
                let number = self.get(state, number, &[])?;
                if state.counted.replace(number).is_some() {
                    return fail("a packet is counted twice");
                }
            }
            Op::Jump(to) => place.at = to,
            Op::JumpValid(to, header, valid) => {
                if state.valid.contains_key(&header) == valid {
                    place.at = to;
                }
            }
            Op::JumpHit(to, hit) => match state.hit.take() {
                Some(was) if was == hit => place.at = to,
                Some(_) => {}
                None => return fail("no table was looked up just before"),
            },
            Op::JumpIf(op, to, a, b) => {
                let (a, b) = (self.get(state, a, &[])?, self.get(state, b, &[])?);
                match self.compare(state, op, a, b) {
                    Cond::Known(true) => place.at = to,
                    Cond::Known(false) => {}
                    Cond::Is(atom) => return self.fork(place, atom, to),
                }
            }
            Op::Drop => {
                let counted = self.counted(state.counted)?;
                let mut output = Output::default();
                output.counted = counted;
                return Ok(Some(Next::End(output)));
            }
            Op::Send(port) => {
                let port = self.get(state, port, &[])?;
                return self.send(state, port).map(|output| Some(Next::End(output)));
            }
            Op::Table(table) => return self.table(place, table).map(Some),
            Op::Return => return fail("'return' ends actions"),
        }
        Ok(None)
    }

    fn fork(
        &mut self,
        place: &mut Continuation,
        atom: Atom,
        to: usize,
    ) -> Result<Option<Next>, Stop> {
        // A jump over one move is a choice of two numbers.
        if to == place.at + 1
            && let Some((_, Op::Move(target, from))) = self.code.ops.get(place.at)
            && let Ok(moved) = self.get(&place.state, *from, &[])
            && let Ok(kept) = self.get(&place.state, *target, &[])
        {
            let chosen = self.choose(atom, kept, moved);
            let width = self.width(*target, None).unwrap_or(64);
            self.set(&mut place.state, *target, chosen, width)?;
            place.at = to;
            return Ok(None);
        }
        // What headers follow is known from then on.
        let (mut yes, mut no) = (place.clone(), place.clone());
        yes.at = to;
        if self.code.parses[place.at - 1]
            && let Atom::Test(of, set) = &atom
        {
            let (low, high) = self.terms.bounds(*of);
            let all = IntervalSet::range(low, high);
            let all = place.state.known.get(of).map_or(all.clone(), |known| known.intersect(&all));
            yes.state.known.insert(*of, all.intersect(set));
            no.state.known.insert(*of, all.subtract(set));
        }
        Ok(Some(Next::Test(atom, Box::new((self.forget(yes), self.forget(no))))))
    }

    /// One number where an atom holds, else another.
    fn choose(&mut self, atom: Atom, yes: TermId, no: TermId) -> TermId {
        // 0 becomes 0xffff.
        if let Atom::Test(of, set) = &atom
            && *of == yes
            && self.terms.value(no) == Some(0xffff)
            && self.terms.bounds(*of) == (0, 0xffff)
            && **set == IntervalSet::range(1, u64::MAX.into())
        {
            let zero = Atom::Test(*of, Arc::new(IntervalSet::single(0)));
            return self.terms.choose(zero, no, yes);
        }
        self.terms.choose(atom, yes, no)
    }

    /// Leaves out what is not read any more.
    fn forget(&self, mut place: Continuation) -> Continuation {
        let live = &self.code.live[place.at];
        place.state.meta.retain(|field, _| live.contains(field));
        place
    }

    fn table(&mut self, place: &mut Continuation, table: usize) -> Result<Next, Stop> {
        let code = self.code;
        let table = &code.tables[table];
        let state = &place.state;
        let mut keys = Vec::new();
        // The key of entries that a number is a part of, its lowest bit, and how many it has: of masks with many gaps, each
        // byte is looked at by itself.
        let mut parts: Vec<(usize, u16, u16)> = Vec::new();
        for (at, (field, _)) in table.keys.iter().enumerate() {
            let key = self.get(state, Operand::Meta(*field), &[])?;
            let width = code.metadata[*field].1;
            let mut masks = table.entries.iter().map(|entry| entry.matches[at].1);
            if masks.any(|mask| has_many_gaps(width, mask)) {
                for low in (0..width).step_by(8) {
                    let bits = (width - low).min(8);
                    keys.push(self.terms.slice(key, low, bits));
                    parts.push((at, low, bits));
                }
            } else {
                keys.push(key);
                parts.push((at, 0, width));
            }
        }
        let mut places: Vec<Continuation> = Vec::new();
        let mut index: HashMap<(usize, &[u128]), usize> = HashMap::new();
        let mut rules: Rules = Vec::new();
        let mut otherwise = None;
        let mut masks: HashMap<(u16, u128, u128), IntervalSet> = HashMap::new();
        'entries: for entry in &table.entries {
            self.spend()?;
            let mut sets = Vec::new();
            for (at, &(of, low, width)) in parts.iter().enumerate() {
                let (value, mask) = entry.matches[of];
                let (value, mask) = (value >> low & ones(width), mask >> low & ones(width));
                if mask == 0 {
                    continue;
                }
                let set = match masks.get(&(width, value, mask)) {
                    Some(set) => set.clone(),
                    None => {
                        let Some(set) = IntervalSet::masked(width, value, mask) else {
                            return fail("a mask has many gaps");
                        };
                        masks.insert((width, value, mask), set.clone());
                        set
                    }
                };
                match self.within(state, keys[at], set.clone()) {
                    Cond::Known(true) => {}
                    Cond::Known(false) => continue 'entries,
                    Cond::Is(_) => sets.push((at, set)),
                }
            }
            let to = match index.get(&(entry.action, &entry.arguments[..])) {
                Some(to) => *to,
                None => {
                    let led = self.act(place, entry.action, &entry.arguments, true)?;
                    places.push(led);
                    index.insert((entry.action, &entry.arguments), places.len() - 1);
                    places.len() - 1
                }
            };
            if sets.is_empty() {
                otherwise = Some(to);
                break;
            }
            rules.push((sets, to));
        }
        let otherwise = match otherwise {
            Some(otherwise) => otherwise,
            None => {
                places.push(self.act(place, table.default, &[], false)?);
                places.len() - 1
            }
        };
        Ok(Next::Table { keys, rules, places, otherwise })
    }

    /// The place behind a table whose entry has an action.
    fn act(
        &mut self,
        place: &Continuation,
        action: usize,
        arguments: &[u128],
        hit: bool,
    ) -> Result<Continuation, Stop> {
        let action = &self.code.actions[action];
        let mut led = place.clone();
        let is_asked = matches!(self.code.ops.get(place.at), Some((_, Op::JumpHit(..))));
        led.state.hit = is_asked.then_some(hit);
        let arguments: Vec<TermId> =
            arguments.iter().map(|value| self.terms.constant(*value)).collect();
        for (_, op) in &action.ops {
            if let Op::Return = op {
                break;
            }
            self.run(&mut led.state, op, Some(action), &arguments)?;
        }
        Ok(self.forget(led))
    }

    fn counted(&self, of: Option<TermId>) -> Result<Option<u128>, Stop> {
        match of {
            None => Ok(None),
            Some(of) => match self.terms.value(of) {
                Some(number) => Ok(Some(number)),
                None => fail("what is counted is no constant"),
            },
        }
    }

    fn send(&mut self, state: &State, port: TermId) -> Result<Output, Stop> {
        let mut fields: Vec<(u16, TermId)> = Vec::new();
        for &header in &state.emitted {
            for (field, (_, width)) in self.code.headers[header].fields.iter().enumerate() {
                let value = self.get(state, Operand::Header(header, field), &[])?;
                fields.push((*width, value));
            }
        }
        let mut output = Output::default();
        output.counted = self.counted(state.counted)?;
        output.fields(&mut self.terms, state.came, &fields).map_err(Stop::Fail)?;
        output.leaves = Some(port);
        output.port = self.terms.value(port).and_then(|port| u32::try_from(port).ok());
        Ok(output)
    }
}

/// Bits that are put behind others: in the place of bits that are 0.
fn behind(terms: &mut Terms, a: TermId, b: TermId) -> Option<TermId> {
    let bits = 128 - terms.bounds(b).1.leading_zeros();
    let is_free = |low: u128| low.trailing_zeros() >= bits;
    match *terms.term(a) {
        Term::Const(low) if low > 0 && is_free(low) && terms.value(b).is_none() => {
            let high = terms.constant(low >> bits);
            Some(terms.concat(high, b, bits as u16))
        }
        Term::Concat { high, low, width } if u32::from(width) >= bits => match terms.value(low)? {
            0 => Some(terms.concat(high, b, width.into())),
            low if is_free(low) => {
                let low = terms.constant(low >> bits);
                let high = terms.concat(high, low, u16::from(width) - bits as u16);
                Some(terms.concat(high, b, bits as u16))
            }
            _ => None,
        },
        _ => None,
    }
}

/// The numbers that compare so with another.
fn numbers(op: CompareOp, than: u128) -> IntervalSet {
    let most = u128::from(u64::MAX);
    let below =
        |high: Option<u128>| high.map_or(IntervalSet::empty(), |high| IntervalSet::range(0, high));
    match op {
        CompareOp::Eq => IntervalSet::single(than),
        CompareOp::Ne => IntervalSet::single(than).complement(64),
        CompareOp::Lt => below(than.checked_sub(1)),
        CompareOp::Le => below(Some(than)),
        CompareOp::Gt if than >= most => IntervalSet::empty(),
        CompareOp::Gt => IntervalSet::range(than + 1, most),
        CompareOp::Ge => IntervalSet::range(than, most),
    }
}
