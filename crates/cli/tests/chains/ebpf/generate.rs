//! From programs to instructions. What is loaded and stored is checked to be there where tests of the program's do
//! not say so by themselves, but only where `ir::layout` knows that it is.

use std::collections::{BTreeMap, BTreeSet};

use ir::field::meta;
use ir::layout::{Facts, Layouts};
use ir::model::{BinaryOp, CompareOp};
use ir::program::{
    Atom, Effect, End, Exit, LookupId, Mark, Program, Step, StepId, Term, TermId, Write,
};
use ir::{Base, Field, IntervalSet};

use super::insn::{
    CONTEXT, Call, Cond, DATA, DATA_END, Insn, Label, Op, Operand, ROW, Reg, STACK, context,
};
use super::{key_slot, value_slot};

/// Why a program is not generated.
type Refused<T> = Result<T, String>;

/// Registers that hold numbers while others are computed.
const NUMBERS: u8 = 5;

struct Generator<'a> {
    program: &'a Program,
    layouts: &'a Layouts,
    code: Vec<Insn>,
    /// Numbers of lookups before each, for their places on the stack.
    bound: Vec<usize>,
    labels: u32,
    /// What is known at the step.
    facts: Facts,
    /// So many bytes of data are there, by the instructions; the least where several lead.
    checked: Option<u32>,
    waiting: BTreeMap<Label, u32>,
    /// Where numbers stand on the stack that calls gave.
    called: BTreeMap<TermId, i32>,
}

/// The instructions of a program.
pub fn generate(program: &Program, layouts: &Layouts) -> Refused<Vec<Insn>> {
    let mut bound = vec![0];
    for lookup in &program.lookups {
        let before = bound.last().copied().unwrap_or_default();
        bound.push(before + usize::from(lookup.values) + usize::from(lookup.common));
    }
    let mut generator = Generator {
        program,
        layouts,
        code: Vec::new(),
        bound,
        labels: 0,
        facts: Facts::default(),
        checked: Some(0),
        waiting: BTreeMap::new(),
        called: BTreeMap::new(),
    };
    for (index, step) in program.steps.iter().enumerate() {
        let at = StepId(index as u32);
        generator.bind(Label::Step(at));
        // Where no jump leads no packet comes.
        if generator.checked.is_none() {
            generator.code.pop();
            continue;
        }
        generator.step(at, step).map_err(|why| format!("s{index}: {why}"))?;
    }
    if generator.waiting.contains_key(&Label::Abort) {
        generator.bind(Label::Abort);
        generator.code.push(Insn::Abort);
    }
    Ok(generator.code)
}

impl Generator<'_> {
    fn label(&mut self) -> Label {
        self.labels += 1;
        Label::Within(self.labels)
    }

    fn bind(&mut self, label: Label) {
        // What comes next needs no jump.
        if matches!(self.code.last(), Some(Insn::Goto(to)) if *to == label) {
            self.code.pop();
        }
        let waiting = self.waiting.remove(&label);
        self.checked = self.checked.into_iter().chain(waiting).min();
        self.code.push(Insn::Label(label));
    }

    fn jumps(&mut self, to: Label) {
        let checked = self.checked.unwrap_or(0);
        self.waiting.entry(to).and_modify(|least| *least = checked.min(*least)).or_insert(checked);
    }

    fn jump(&mut self, cond: Cond, a: Reg, b: Operand, to: Label) {
        self.jumps(to);
        self.code.push(Insn::Jump(cond, a, b, to));
    }

    fn goto(&mut self, to: Label) {
        self.jumps(to);
        self.code.push(Insn::Goto(to));
        self.checked = None;
    }

    fn short(&mut self, bytes: u32, to: Label, known: Option<u32>) {
        self.jumps(to);
        self.code.push(Insn::Short(bytes, to, known));
        self.checked = self.checked.max(Some(bytes));
    }

    fn alu(&mut self, op: Op, to: Reg, from: Operand) {
        self.code.push(Insn::Alu(op, to, from));
    }

    /// So many bytes of data are there; `moved` if the data starts earlier than when the packet came in.
    fn require(&mut self, bytes: u32, moved: u32) -> Refused<()> {
        if self.checked.is_some_and(|checked| checked >= bytes) {
            return Ok(());
        }
        let known = self.facts.least_length(self.program) + moved;
        if known < bytes {
            return Err(format!("{bytes} bytes are looked at, and {known} are known to be there"));
        }
        self.short(bytes, Label::Abort, Some(known));
        Ok(())
    }

    /// The least and the greatest number of a term, if 64 bits hold it.
    fn exact(&self, term: TermId) -> Refused<(u64, u64)> {
        let range = self.facts.range(self.program, term);
        let number = |n: i128| u64::try_from(n).ok();
        let exact = range.and_then(|(low, high)| Some((number(low)?, number(high)?)));
        exact.ok_or_else(|| format!("t{} may have more than 64 bits: {range:?}", term.0))
    }

    /// The low 64 bits of a term, in register `r1 + depth`; those above may be used.
    fn value(&mut self, term: TermId, depth: u8) -> Refused<Reg> {
        let to = Reg(1 + depth);
        if depth >= NUMBERS {
            return Err(format!("t{} takes too many registers", term.0));
        }
        if let Some(slot) = self.called.get(&term) {
            self.code.push(Insn::Load(8, to, STACK, *slot));
            return Ok(to);
        }
        let program = self.program;
        match program.term(term) {
            Term::Const(value) => self.alu(Op::Mov, to, Operand::Imm(*value as u64)),
            Term::Input(field) => self.input(*field, depth)?,
            Term::Bound(lookup, index) => {
                let slot = self.bound_slot(*lookup, (*index).into());
                self.code.push(Insn::Load(8, to, STACK, slot));
            }
            Term::Cell(..) => return Err("a cell decides".into()),
            Term::Sum16 { offset, length } => self.sum(*offset, *length, depth)?,
            Term::Binary(BinaryOp::Min, a, b) => {
                for term in [*a, *b] {
                    self.exact(term)?;
                }
                self.value(*a, depth)?;
                let (other, least) = (self.value(*b, depth + 1)?, self.label());
                self.jump(Cond::Le, to, Operand::Reg(other), least);
                self.alu(Op::Mov, to, Operand::Reg(other));
                self.bind(least);
            }
            Term::Binary(op, a, b) => {
                let alu = match op {
                    BinaryOp::Add => Op::Add,
                    BinaryOp::Sub => Op::Sub,
                    BinaryOp::Mul => Op::Mul,
                    BinaryOp::And => Op::And,
                    BinaryOp::Or => Op::Or,
                    BinaryOp::Xor => Op::Xor,
                    BinaryOp::Shl | BinaryOp::Shr if self.exact(*b)?.1 < 64 => {
                        if *op == BinaryOp::Shl {
                            Op::Lsh
                        } else {
                            self.exact(*a)?;
                            Op::Rsh
                        }
                    }
                    op => return Err(format!("t{} is a {op:?}", term.0)),
                };
                self.value(*a, depth)?;
                let operand = match program.term(*b) {
                    Term::Const(value) => Operand::Imm(*value as u64),
                    _ => Operand::Reg(self.value(*b, depth + 1)?),
                };
                self.alu(alu, to, operand);
            }
            Term::Slice { of, low, width } if low + width <= 64 => {
                self.value(*of, depth)?;
                self.part(to, *low, *width);
            }
            Term::Concat { high, low, width } if *width < 64 => {
                self.value(*high, depth)?;
                self.alu(Op::Lsh, to, Operand::Imm((*width).into()));
                let low = self.value(*low, depth + 1)?;
                self.alu(Op::Or, to, Operand::Reg(low));
            }
            Term::OnesSum(sum) => {
                let mut most = u64::from(sum.constant);
                self.alu(Op::Mov, to, Operand::Imm(most));
                for (part, is_minus) in
                    sum.plus.iter().map(|t| (t, false)).chain(sum.minus.iter().map(|t| (t, true)))
                {
                    let of = self.value(*part, depth + 1)?;
                    if is_minus {
                        self.alu(Op::Xor, of, Operand::Imm(0xffff));
                    }
                    self.alu(Op::Add, to, Operand::Reg(of));
                    let high = if is_minus { 0xffff } else { self.exact(*part)?.1 };
                    most = most.checked_add(high).ok_or("a sum wraps")?;
                }
                self.fold(depth, most)?;
                if sum.complement {
                    self.alu(Op::Xor, to, Operand::Imm(0xffff));
                }
            }
            other => return Err(format!("t{} is {other:?}", term.0)),
        }
        Ok(to)
    }

    /// `width` bits from bit `low` on.
    fn part(&mut self, reg: Reg, low: u8, width: u8) {
        if low > 0 {
            self.alu(Op::Rsh, reg, Operand::Imm(low.into()));
        }
        if width < 64 {
            self.alu(Op::And, reg, Operand::Imm((1 << width) - 1));
        }
    }

    /// Adds carries until a sum has 16 bits.
    fn fold(&mut self, depth: u8, mut most: u64) -> Refused<()> {
        let (sum, high) = (Reg(1 + depth), Reg(2 + depth));
        if most > 0xffff && depth + 1 >= NUMBERS {
            return Err("a sum takes too many registers".into());
        }
        while most > 0xffff {
            self.alu(Op::Mov, high, Operand::Reg(sum));
            self.alu(Op::Rsh, high, Operand::Imm(16));
            self.alu(Op::And, sum, Operand::Imm(0xffff));
            self.alu(Op::Add, sum, Operand::Reg(high));
            most = if most == 0x1_0000 { 0xffff } else { 0xffff + (most >> 16) };
        }
        Ok(())
    }

    fn bound_slot(&self, lookup: LookupId, index: usize) -> i32 {
        value_slot(self.bound[usize::from(lookup.0)] + index)
    }

    fn input(&mut self, field: Field, depth: u8) -> Refused<()> {
        let to = Reg(1 + depth);
        let (first, end) = field.byte_range();
        let base = match field.base {
            _ if field == meta::LEN => {
                self.alu(Op::Mov, to, Operand::Reg(DATA_END));
                self.alu(Op::Sub, to, Operand::Reg(DATA));
                return Ok(());
            }
            _ if field == meta::TYPE => {
                self.code.push(Insn::Load(1, to, CONTEXT, context::TYPE));
                return Ok(());
            }
            Base::Data => {
                self.require(end as u32, 0)?;
                DATA
            }
            Base::Annotation => CONTEXT,
            _ => return Err(format!("{field} is read")),
        };
        if end - first > 8 {
            return Err(format!("{field} takes more than 64 bits"));
        }
        for (index, (offset, bytes)) in pieces(first as i32, end - first).enumerate() {
            let part = if index == 0 { to } else { Reg(to.0 + 1) };
            self.code.push(Insn::Load(bytes, part, base, offset));
            if bytes > 1 {
                self.code.push(Insn::Be(part, 8 * bytes));
            }
            if index > 0 {
                self.alu(Op::Lsh, to, Operand::Imm((8 * bytes).into()));
                self.alu(Op::Or, to, Operand::Reg(part));
            }
        }
        let behind = 8 * end - usize::from(field.offset) - usize::from(field.width);
        if usize::from(field.width) < 8 * (end - first) {
            self.part(to, behind as u8, field.width as u8);
        }
        Ok(())
    }

    /// A sum over bytes: 0 if they are not all there.
    fn sum(&mut self, offset: u16, length: TermId, depth: u8) -> Refused<()> {
        let (least, most) = self.exact(length)?;
        let (offset, to, part) = (u32::from(offset), Reg(1 + depth), Reg(2 + depth));
        let is_even = match self.program.term(length) {
            Term::Const(length) => length % 2 == 0,
            Term::Binary(BinaryOp::Mul, _, by) => {
                matches!(self.program.term(*by), Term::Const(by) if by % 2 == 0)
            }
            _ => false,
        };
        if !is_even || most > 64 || depth + 2 >= NUMBERS {
            return Err(format!("a sum over {least} to {most} bytes"));
        }
        let (beyond, done) = (self.label(), self.label());
        if least < most {
            self.value(length, depth + 2)?;
        }
        self.require(offset + least as u32, 0)?;
        self.alu(Op::Mov, to, Operand::Imm(0));
        for at in (0..most as u32).step_by(2) {
            if at >= least as u32 {
                self.jump(Cond::Le, Reg(3 + depth), Operand::Imm(at.into()), done);
                self.short(offset + at + 2, beyond, None);
            }
            self.code.push(Insn::Load(2, part, DATA, (offset + at) as i32));
            self.code.push(Insn::Be(part, 16));
            self.alu(Op::Add, to, Operand::Reg(part));
        }
        if least < most {
            self.goto(done);
            self.bind(beyond);
            self.alu(Op::Mov, to, Operand::Imm(0));
        }
        self.bind(done);
        self.fold(depth, 0xffff * most.div_ceil(2))
    }

    /// Goes where the interval that a number lies in leads.
    fn scan(
        &mut self,
        term: TermId,
        mut intervals: Vec<(u128, u128, Label)>,
        otherwise: Label,
    ) -> Refused<()> {
        intervals.sort();
        if *self.program.term(term) == Term::Input(meta::LEN) {
            for (low, high, to) in intervals {
                let bytes = |n: u128| u32::try_from(n).map_err(|_| "a length".to_string());
                if self.checked < Some(bytes(low)?) {
                    self.short(bytes(low)?, otherwise, None);
                }
                match high >= meta::LEN.max() {
                    true => self.goto(to),
                    false => self.short(bytes(high)? + 1, to, None),
                }
            }
        } else {
            let (_, most) = self.exact(term)?;
            let reg = self.value(term, 0)?;
            for (low, high, to) in intervals {
                let number = |n: u128| u64::try_from(n).unwrap_or(u64::MAX);
                let imm = |n: u128| Operand::Imm(number(n));
                if low == high {
                    self.jump(Cond::Eq, reg, imm(low), to);
                    continue;
                }
                if low > 0 {
                    self.jump(Cond::Lt, reg, imm(low), otherwise);
                }
                match high >= most.into() {
                    true => self.goto(to),
                    false => self.jump(Cond::Le, reg, imm(high), to),
                }
            }
        }
        if self.checked.is_some() {
            self.goto(otherwise);
        }
        Ok(())
    }

    fn step(&mut self, at: StepId, step: &Step) -> Refused<()> {
        let program = self.program;
        match self.layouts.facts(at) {
            Some(facts) => self.facts = facts.clone(),
            // No packet comes here.
            None => {
                self.goto(Label::Abort);
                return Ok(());
            }
        }
        let to = |set: &IntervalSet, label: Label| -> Vec<(u128, u128, Label)> {
            set.intervals().iter().map(|(low, high)| (*low, *high, label)).collect()
        };
        match step {
            Step::Test { atom: Atom::Test(term, set), yes, no, .. } => {
                self.scan(*term, to(set, Label::Step(*yes)), Label::Step(*no))?;
            }
            Step::Test { atom: Atom::Compare(op, a, b), yes, no, .. } => {
                self.exact(*a)?;
                self.exact(*b)?;
                let (a, b) = (self.value(*a, 0)?, self.value(*b, 1)?);
                let cond = match op {
                    CompareOp::Eq => Cond::Eq,
                    CompareOp::Ne => Cond::Ne,
                    CompareOp::Lt => Cond::Lt,
                    CompareOp::Le => Cond::Le,
                    CompareOp::Gt => Cond::Gt,
                    CompareOp::Ge => Cond::Ge,
                };
                self.jump(cond, a, Operand::Reg(b), Label::Step(*yes));
                self.goto(Label::Step(*no));
            }
            Step::Switch { on, cases, otherwise, .. } => {
                let cases = cases.iter().flat_map(|(set, step)| to(set, Label::Step(*step)));
                self.scan(*on, cases.collect(), Label::Step(*otherwise))?;
            }
            Step::Classify { keys, rules, arms, otherwise, .. } => {
                for rule in rules.iter() {
                    for cube in rule.cubes.iter() {
                        let next = self.label();
                        // What is there is asked before it is looked at.
                        let is_length = |key: u8| {
                            *program.term(keys[usize::from(key)]) == Term::Input(meta::LEN)
                        };
                        let mut tests: Vec<&(u8, IntervalSet)> = cube.iter().collect();
                        tests.sort_by_key(|test| !is_length(test.0));
                        for (key, set) in tests {
                            let (term, holds) = (keys[usize::from(*key)], self.label());
                            self.scan(term, to(set, holds), next)?;
                            self.bind(holds);
                            self.facts = self.facts.clone().with(program, term, set);
                        }
                        self.goto(Label::Step(arms[rule.arm as usize]));
                        self.bind(next);
                        self.facts = self.layouts.facts(at).cloned().unwrap_or_default();
                    }
                }
                self.goto(Label::Step(*otherwise));
            }
            Step::Lookup { lookup, hit, miss } => {
                let asked = &program.lookups[usize::from(lookup.0)];
                for (number, key) in asked.key.iter().enumerate() {
                    self.exact(*key)?;
                    let key = self.value(*key, 0)?;
                    self.code.push(Insn::Store(8, STACK, key_slot(number), Operand::Reg(key)));
                }
                self.code.push(Insn::Call(Call::Lookup(*lookup)));
                self.jump(Cond::Eq, ROW, Operand::Imm(0), Label::Step(*miss));
                for index in 0..usize::from(asked.values) {
                    let slot = self.bound_slot(*lookup, index);
                    self.code.push(Insn::Load(8, Reg(1), ROW, 8 * index as i32));
                    self.code.push(Insn::Store(8, STACK, slot, Operand::Reg(Reg(1))));
                }
                self.goto(Label::Step(*hit));
            }
            Step::Exit(exit) => self.exit(at, exit)?,
        }
        Ok(())
    }

    /// Computes what is written from the packet as it came in, then writes it.
    fn exit(&mut self, at: StepId, exit: &Exit) -> Refused<()> {
        if !exit.copies.is_empty() {
            return Err("copies leave".into());
        }
        for effect in &exit.effects {
            match effect {
                Effect::Count { counter, length } => {
                    self.value(*length, 1)?;
                    self.code.push(Insn::Call(Call::Count(*counter)));
                }
                Effect::Note { element, reason } => {
                    self.code.push(Insn::Call(Call::Note(*element, *reason)));
                }
                Effect::Update { .. } => return Err("a flow is updated".into()),
                Effect::Set { .. } => {}
            }
        }
        // Calls lose registers: what they give is kept on the stack. Cells are read before any is written.
        let (program, mut slots) = (self.program, BTreeMap::new());
        let first = self.bound[program.lookups.len()];
        let (mut waiting, mut all) = (exit.terms(), BTreeSet::new());
        while let Some(term) = waiting.pop() {
            if all.insert(term) {
                waiting.extend(program.term(term).operands());
            }
        }
        for term in all {
            let call = match *program.term(term) {
                Term::Cell(cells, index) => Call::Cell(cells, index),
                Term::Now => Call::Now,
                Term::Sum16 { offset, length } => {
                    self.exact(length)?;
                    self.value(length, 1)?;
                    Call::Sum(offset)
                }
                _ => continue,
            };
            let slot = value_slot(first + slots.len());
            self.code.push(Insn::Call(call));
            self.code.push(Insn::Store(8, STACK, slot, Operand::Reg(ROW)));
            slots.insert(term, slot);
            self.called.insert(term, slot);
        }
        let writes = &exit.writes;
        let is_drop = matches!(exit.end, End::Drop { .. });
        if matches!(exit.end, End::Handoff { .. }) || !writes.carried.is_empty() {
            return Err("it is handed off".into());
        }
        let marks = writes.marks.iter().filter_map(|mark| match mark {
            Mark::At(term) => Some(*term),
            Mark::Keep | Mark::Clear => None,
        });
        let bytes = writes.bytes.iter().chain(&writes.annotations).map(|write| write.value);
        let written = bytes.chain(marks).chain(writes.packet_type).chain(writes.timestamp);
        let sets = exit.effects.iter().filter_map(|effect| match effect {
            Effect::Set { cells, index, value } => Some((*cells, *index, *value)),
            _ => None,
        });
        let all = written.filter(|_| !is_drop).chain(writes.length);
        let all = all.chain(sets.clone().map(|(_, _, value)| value));
        for term in all {
            let is_const = matches!(self.program.term(term), Term::Const(_));
            if !is_const && !slots.contains_key(&term) {
                let slot = value_slot(first + slots.len());
                let value = self.value(term, 0)?;
                self.code.push(Insn::Store(8, STACK, slot, Operand::Reg(value)));
                slots.insert(term, slot);
            }
        }
        for (cells, index, value) in sets {
            let value = self.again(value, &slots);
            self.alu(Op::Mov, Reg(2), value);
            self.code.push(Insn::Call(Call::SetCell(cells, index)));
        }
        let mut start = 0;
        if !is_drop {
            let first = writes.bytes.iter().map(|write| write.offset).fold(0, i32::min);
            self.adjust_head(first);
            for write in &writes.bytes {
                let end = write.offset - first + i32::from(write.length);
                self.require(end as u32, first.unsigned_abs())?;
                self.write(*write, DATA, -first, &slots)?;
            }
            for write in &writes.annotations {
                self.write(*write, CONTEXT, 0, &slots)?;
            }
            for (number, mark) in (0..).zip(&writes.marks) {
                let value = match mark {
                    Mark::Keep => continue,
                    Mark::Clear => Operand::Imm(context::UNMARKED),
                    Mark::At(term) => self.again(*term, &slots),
                };
                self.code.push(Insn::Store(4, CONTEXT, context::MARKS + 4 * number, value));
            }
            if let Some(term) = writes.packet_type {
                let value = self.again(term, &slots);
                self.code.push(Insn::Store(1, CONTEXT, context::TYPE, value));
            }
            if let Some(term) = writes.timestamp {
                let value = self.again(term, &slots);
                self.code.push(Insn::Store(8, CONTEXT, context::TIMESTAMP, value));
            }
            start = first;
        }
        if writes.start > 0 && writes.start as u32 > self.facts.least_length(self.program) {
            return Err(format!("{} bytes are pulled that may not be there", writes.start));
        }
        self.adjust_head(writes.start - start);
        if let Some(length) = writes.length {
            let value = self.again(length, &slots);
            self.alu(Op::Mov, Reg(2), value);
            self.code.push(Insn::Call(Call::Truncate));
        }
        self.code.push(Insn::Exit(at));
        self.called.clear();
        self.checked = None;
        Ok(())
    }

    fn adjust_head(&mut self, by: i32) {
        if by != 0 {
            self.code.extend([Insn::Call(Call::AdjustHead(by)), Insn::Reload]);
            self.checked = Some(0);
        }
    }

    /// A number that was computed before.
    fn again(&mut self, term: TermId, slots: &BTreeMap<TermId, i32>) -> Operand {
        match (self.program.term(term), slots.get(&term)) {
            (Term::Const(value), _) => Operand::Imm(*value as u64),
            (_, slot) => {
                let slot = slot.copied().expect("it was computed");
                self.code.push(Insn::Load(8, Reg(1), STACK, slot));
                Operand::Reg(Reg(1))
            }
        }
    }

    fn write(
        &mut self,
        write: Write,
        base: Reg,
        moved: i32,
        slots: &BTreeMap<TermId, i32>,
    ) -> Refused<()> {
        let length = usize::from(write.length);
        let all: Vec<(i32, u8)> = pieces(write.offset + moved, length).collect();
        if let Term::Const(value) = self.program.term(write.value) {
            let bytes = value.to_be_bytes();
            let mut rest = &bytes[16 - length..];
            for (offset, size) in all {
                let (piece, behind) = rest.split_at(size.into());
                rest = behind;
                // As bytes lie in memory.
                let number = piece.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
                self.code.push(Insn::Store(size, base, offset, Operand::Imm(number)));
            }
            return Ok(());
        }
        let [(offset, size)] = all[..] else {
            return Err(format!("{length} bytes are written"));
        };
        let value = self.again(write.value, slots);
        if size > 1 {
            self.code.push(Insn::Be(Reg(1), 8 * size));
        }
        self.code.push(Insn::Store(size, base, offset, value));
        Ok(())
    }
}

/// Accesses that cover so many bytes.
fn pieces(mut offset: i32, mut bytes: usize) -> impl Iterator<Item = (i32, u8)> {
    std::iter::from_fn(move || {
        let size = [8, 4, 2, 1].into_iter().find(|size| *size <= bytes)?;
        let piece = (offset, size as u8);
        (offset, bytes) = (offset + size as i32, bytes - size);
        Some(piece)
    })
}
