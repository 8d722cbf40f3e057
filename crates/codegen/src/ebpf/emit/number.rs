//! Numbers in registers.

use ir::field::meta;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, OnesSum, Term, TermId};
use ir::{Base, Field};

use super::super::insn::{self, Cond, Op};
use super::{ABORT, CONTEXT, DATA, Emitter, LENGTH, LOAD_BYTES, STACK};
use crate::Lack;

/// Registers that hold numbers while others are computed; 0 is for what is needed in between.
const NUMBERS: u8 = 5;
/// The longest run of bytes that is summed up in place.
const SUMMED: u64 = 128;
/// The longest run of bytes of which only the packet says how long it is.
const WINDOW: u64 = 64;

/// Accesses that cover so many bytes.
pub(super) fn pieces(mut offset: i32, mut bytes: usize) -> impl Iterator<Item = (i32, u8)> {
    std::iter::from_fn(move || {
        let size = [8, 4, 2, 1].into_iter().find(|size| *size <= bytes)?;
        let piece = (offset, size as u8);
        (offset, bytes) = (offset + size as i32, bytes - size);
        Some(piece)
    })
}

pub(super) const fn size(bytes: u8) -> u8 {
    match bytes {
        1 => insn::BYTE,
        2 => insn::HALF,
        4 => insn::WORD,
        _ => insn::DOUBLE,
    }
}

impl Emitter<'_, '_> {
    pub(super) fn register(&self, depth: u8) -> Result<u8, Lack> {
        match depth < NUMBERS {
            true => Ok(1 + depth),
            false => Err(Lack::Room("registers", usize::from(depth) + 1, usize::from(NUMBERS))),
        }
    }

    /// The low 64 bits of a term, in register `1 + depth`; those above may be used.
    pub(super) fn value(&mut self, term: TermId, depth: u8) -> Result<u8, Lack> {
        self.bits(term, 0, 64, depth)
    }

    /// `width` bits of a term, at most 64, from bit `low` on.
    pub(super) fn bits(
        &mut self,
        term: TermId,
        low: u32,
        width: u32,
        depth: u8,
    ) -> Result<u8, Lack> {
        let to = self.register(depth)?;
        let program = self.program;
        match program.term(term) {
            Term::Const(value) => {
                let value = value.checked_shr(low).unwrap_or(0) as u64;
                self.set(to, if width < 64 { value & ((1 << width) - 1) } else { value });
            }
            Term::Input(field) if *field == meta::LEN => {
                self.op(insn::copy(to, LENGTH));
                self.part(to, low, width, u32::MAX.into());
            }
            Term::Input(field) => self.input(*field, low, width, depth)?,
            Term::Position(_) => return Err(Lack::Field("a header's mark".into())),
            Term::Bound(lookup, index) => {
                let at = self.bound(*lookup, *index)?;
                if program.flows(*lookup).is_some() {
                    if low >= 64 {
                        self.set(to, 0);
                        return Ok(to);
                    }
                    let most = self.most(term);
                    self.op(insn::load_stored(to, STACK, at));
                    self.part(to, low, width.min(64 - low), most);
                    return Ok(to);
                }
                if low + width <= 64 || low >= 64 {
                    self.op(insn::load_stored(to, STACK, at + if low >= 64 { 8 } else { 0 }));
                    self.part(to, low % 64, width, u64::MAX);
                } else {
                    let above = self.register(depth + 1)?;
                    self.op(insn::load_stored(to, STACK, at));
                    self.part(to, low, 64 - low, u64::MAX);
                    self.op(insn::load_stored(above, STACK, at + 8));
                    self.part(above, 0, low + width - 64, u64::MAX);
                    self.op(insn::alu_number(Op::Lsh, above, (64 - low) as i32));
                    self.op(insn::alu(Op::Or, to, above));
                }
            }
            Term::Cell(..) => return Err(Lack::Cells),
            // The kernel's clock is not that of workers.
            Term::Now => return Err(Lack::Clock),
            Term::Slice { of, low: from, width: all } => {
                let (from, all) = (u32::from(*from), u32::from(*all));
                match low < all {
                    true => drop(self.bits(*of, from + low, width.min(all - low), depth)?),
                    false => self.set(to, 0),
                }
            }
            Term::Concat { high, low: lower, width: beside } => {
                let beside = u32::from(*beside);
                if low >= beside {
                    self.bits(*high, low - beside, width, depth)?;
                } else if low + width <= beside || self.is_zero(*high) {
                    self.bits(*lower, low, width.min(beside - low), depth)?;
                } else {
                    self.bits(*high, 0, width - (beside - low), depth)?;
                    self.op(insn::alu_number(Op::Lsh, to, (beside - low) as i32));
                    let lower = self.bits(*lower, low, beside - low, depth + 1)?;
                    self.op(insn::alu(Op::Or, to, lower));
                }
            }
            Term::Binary(op, a, b) => self.binary(term, *op, (*a, *b), (low, width), depth)?,
            Term::Choose(atom, a, b) => {
                let (yes, no, done) = (self.label(), self.label(), self.label());
                self.test(atom, yes, no, depth)?;
                self.bind(yes);
                self.bits(*a, low, width, depth)?;
                self.goto(done);
                self.bind(no);
                self.bits(*b, low, width, depth)?;
                self.bind(done);
            }
            Term::NonZero(of) => {
                let (_, most) = self.exact(*of)?;
                self.value(*of, depth)?;
                let done = self.label();
                self.jump_number(Cond::Ne, to, 0, 0, done, 0);
                self.set(to, 0xffff);
                self.bind(done);
                self.part(to, low, width, most.max(0xffff));
            }
            Term::Sum16 { offset, length } => {
                self.sum(*offset, *length, depth)?;
                self.part(to, low, width, 0xffff);
            }
            Term::OnesSum(sum) => {
                self.ones(sum, depth)?;
                self.part(to, low, width, 0xffff);
            }
            Term::Map(of, mapping) => {
                let cases: Vec<_> =
                    mapping.intervals().iter().map(|(l, h, value)| (*l, *h, *value)).collect();
                if cases.len() > 64 {
                    return Err(Lack::Room("ranges of a map", cases.len(), 64));
                }
                let done = self.label();
                let mut labels = Vec::new();
                let intervals = cases
                    .iter()
                    .map(|(l, h, value)| {
                        let label = self.label();
                        labels.push((label, *value));
                        (*l, *h, label)
                    })
                    .collect();
                let otherwise = self.label();
                labels.push((otherwise, 0));
                self.scan(*of, intervals, otherwise, depth)?;
                for (label, value) in labels {
                    self.bind(label);
                    if self.checked.is_none() {
                        self.lines.pop();
                        continue;
                    }
                    let value = value.checked_shr(low).unwrap_or(0) as u64;
                    self.set(to, if width < 64 { value & ((1 << width) - 1) } else { value });
                    self.goto(done);
                }
                self.bind(done);
            }
            Term::Hash(function, numbers) => {
                let ir::hash::HashFunction::MixedFnv1a = function;
                self.hash(numbers, depth)?;
                self.part(to, low, width, u64::MAX);
            }
        }
        Ok(to)
    }

    fn is_zero(&self, term: TermId) -> bool {
        matches!(self.program.term(term), Term::Const(0))
    }

    /// `width` bits from bit `low` on of a register whose number is at most `most`.
    pub(super) fn part(&mut self, reg: u8, low: u32, width: u32, most: u64) {
        if low >= 64 {
            return self.set(reg, 0);
        }
        if low > 0 {
            self.op(insn::alu_number(Op::Rsh, reg, low as i32));
        }
        match width {
            _ if width >= 64 || most >> low >> width == 0 => {}
            0..=31 => self.op(insn::alu_number(Op::And, reg, ((1_u32 << width) - 1) as i32)),
            32 => self.op(insn::copy_word(reg, reg)),
            _ => {
                self.op(insn::alu_number(Op::Lsh, reg, 64 - width as i32));
                self.op(insn::alu_number(Op::Rsh, reg, 64 - width as i32));
            }
        }
    }

    /// So many bytes are there; if not, goes elsewhere.
    pub(super) fn require(&mut self, bytes: u32, otherwise: super::Label) {
        if self.checked.is_none_or(|checked| checked < bytes) {
            self.short(bytes, otherwise);
        }
    }

    fn is_there(&self, bytes: u32) -> bool {
        self.checked.is_some_and(|checked| checked >= bytes)
            || self.facts.least_length(self.program) >= bytes
    }

    fn input(&mut self, field: Field, low: u32, width: u32, depth: u8) -> Result<(), Lack> {
        let to = self.register(depth)?;
        if field.base != Base::Data {
            return Err(Lack::Field(field.to_string()));
        }
        if low >= u32::from(field.width) {
            self.set(to, 0);
            return Ok(());
        }
        let width = width.min(u32::from(field.width) - low) as u16;
        let field = Field::bits(Base::Data, field.offset + field.width - low as u16 - width, width);
        let (first, end) = field.byte_range();
        if end - first > 8 {
            // Nine bytes: in two parts.
            let below = 8 * end as u16 - 8 - field.offset;
            let upper = Field::bits(Base::Data, field.offset, below);
            let lower = Field::bits(Base::Data, field.offset + below, field.width - below);
            self.input(upper, 0, below.into(), depth)?;
            self.op(insn::alu_number(Op::Lsh, to, lower.width.into()));
            self.input(lower, 0, lower.width.into(), depth + 1)?;
            self.op(insn::alu(Op::Or, to, self.register(depth + 1)?));
            return Ok(());
        }
        // Bytes that are not there read as 0.
        let absent = (!self.is_there(end as u32)).then(|| self.label());
        self.require(end as u32, absent.unwrap_or(ABORT));
        for (index, (offset, bytes)) in pieces(first as i32, end - first).enumerate() {
            let part = if index == 0 { to } else { self.register(depth + 1)? };
            self.op(insn::load_memory(size(bytes), part, DATA, offset as i16));
            if bytes > 1 {
                self.op(insn::from_network(part, i32::from(bytes) * 8));
            }
            if index > 0 {
                self.op(insn::alu_number(Op::Lsh, to, i32::from(bytes) * 8));
                self.op(insn::alu(Op::Or, to, part));
            }
        }
        let behind = 8 * end - usize::from(field.offset) - usize::from(field.width);
        let most = u64::MAX >> (64 - 8 * (end - first));
        self.part(to, behind as u32, field.width.into(), most);
        if let Some(absent) = absent {
            let done = self.label();
            self.goto(done);
            self.bind(absent);
            self.set(to, 0);
            self.bind(done);
        }
        Ok(())
    }

    fn binary(
        &mut self,
        term: TermId,
        op: BinaryOp,
        (a, b): (TermId, TermId),
        (low, width): (u32, u32),
        depth: u8,
    ) -> Result<(), Lack> {
        let to = self.register(depth)?;
        let constant = match self.program.term(b) {
            Term::Const(value) => Some(*value),
            _ => None,
        };
        let bitwise = match op {
            BinaryOp::And => Some(Op::And),
            BinaryOp::Or => Some(Op::Or),
            BinaryOp::Xor => Some(Op::Xor),
            _ => None,
        };
        if let Some(op) = bitwise {
            self.bits(a, low, width, depth)?;
            let other = self.bits(b, low, width, depth + 1)?;
            self.op(insn::alu(op, to, other));
            return Ok(());
        }
        match (op, constant) {
            (BinaryOp::Shl, Some(by)) if by < 128 => {
                let by = by as u32;
                if low >= by {
                    self.bits(a, low - by, width, depth)?;
                } else if low + width <= by {
                    self.set(to, 0);
                } else {
                    self.bits(a, 0, low + width - by, depth)?;
                    self.op(insn::alu_number(Op::Lsh, to, (by - low) as i32));
                }
                return Ok(());
            }
            (BinaryOp::Shr, Some(by)) if by < 128 => {
                self.bits(a, low + by as u32, width, depth)?;
                return Ok(());
            }
            (BinaryOp::Shl | BinaryOp::Shr, Some(_)) => {
                self.set(to, 0);
                return Ok(());
            }
            _ => {}
        }
        // The low 64 bits of these follow from the low 64 bits of what they are made from.
        let wraps = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul);
        let most = match self.exact(term) {
            Ok((_, most)) => most,
            Err(_) if wraps && low + width <= 64 => u64::MAX,
            Err(lack) => return Err(lack),
        };
        if !wraps {
            self.exact(a)?;
            self.exact(b)?;
        }
        self.value(a, depth)?;
        let alu = match op {
            BinaryOp::Add => Op::Add,
            BinaryOp::Sub => Op::Sub,
            BinaryOp::Mul => Op::Mul,
            BinaryOp::Div => Op::Div,
            BinaryOp::Rem if constant.is_some_and(|by| by != 0) => Op::Mod,
            BinaryOp::Min | BinaryOp::Max => {
                let (other, done) = (self.value(b, depth + 1)?, self.label());
                let cond = if op == BinaryOp::Min { Cond::Le } else { Cond::Ge };
                self.jump(cond, to, other, done);
                self.op(insn::copy(to, other));
                self.bind(done);
                self.part(to, low, width, most);
                return Ok(());
            }
            BinaryOp::Rem => return Err(Lack::Number("remainders")),
            BinaryOp::Shl if self.most(b) < 64 => Op::Lsh,
            _ => return Err(Lack::Number("shifts by other numbers than constants")),
        };
        match constant {
            Some(by) => {
                let other = if by > i32::MAX as u128 { self.register(depth + 1)? } else { 0 };
                self.alu_number(alu, to, by as u64, other);
            }
            None => {
                let other = self.value(b, depth + 1)?;
                self.op(insn::alu(alu, to, other));
            }
        }
        self.part(to, low, width, most);
        Ok(())
    }

    /// Adds carries until a sum has 16 bits.
    fn fold(&mut self, depth: u8, mut most: u128) -> Result<(), Lack> {
        let sum = self.register(depth)?;
        while most > 0xffff {
            self.op(insn::copy(0, sum));
            self.op(insn::alu_number(Op::Rsh, 0, 16));
            self.op(insn::alu_number(Op::And, sum, 0xffff));
            self.op(insn::alu(Op::Add, sum, 0));
            most = if most == 0x1_0000 { 0xffff } else { 0xffff + (most >> 16) };
        }
        Ok(())
    }

    /// The most that a number is whatever was tested before.
    pub(super) fn most(&self, term: TermId) -> u64 {
        let most = self.program.numbers_where(term, |_| None).bounds.1;
        u64::try_from(most).unwrap_or(u64::MAX)
    }

    fn ones(&mut self, sum: &OnesSum, depth: u8) -> Result<(), Lack> {
        let to = self.register(depth)?;
        let mut most = u128::from(sum.constant);
        let mut begun = false;
        let parts =
            sum.plus.iter().map(|t| (*t, false)).chain(sum.minus.iter().map(|t| (*t, true)));
        for (part, is_minus) in parts {
            self.exact(part)?;
            // Whoever reads this does not know what was tested before.
            let high = self.most(part);
            if is_minus && high > 0xffff {
                return Err(Lack::Number("differences of wide numbers"));
            }
            let of = self.value(part, if begun { depth + 1 } else { depth })?;
            if is_minus {
                self.op(insn::alu_number(Op::Xor, of, 0xffff));
            }
            if begun {
                self.op(insn::alu(Op::Add, to, of));
            }
            begun = true;
            most += if is_minus { 0xffff } else { u128::from(high) };
        }
        if most > u64::MAX.into() {
            return Err(Lack::Number("sums of more than 64 bits"));
        }
        match begun {
            true if sum.constant != 0 => {
                self.op(insn::alu_number(Op::Add, to, sum.constant.into()));
            }
            true => {}
            false => self.set(to, sum.constant.into()),
        }
        self.fold(depth, most)?;
        if sum.complement {
            self.op(insn::alu_number(Op::Xor, to, 0xffff));
        }
        Ok(())
    }

    /// A sum over bytes: 0 if they are not all there. Words are added as they lie in memory; their sum
    /// is turned round.
    fn sum(&mut self, offset: u16, length: TermId, depth: u8) -> Result<(), Lack> {
        let to = self.register(depth)?;
        let (least, most) = self.exact(length)?;
        if least == most && most <= SUMMED {
            let end = u32::from(offset) + most as u32;
            if most == 0 {
                self.set(to, 0);
                return Ok(());
            }
            let absent = (!self.is_there(end)).then(|| self.label());
            self.require(end, absent.unwrap_or(ABORT));
            self.add_words(DATA, offset as i16, most as usize, depth)?;
            if let Some(absent) = absent {
                let done = self.label();
                self.goto(done);
                self.bind(absent);
                self.set(to, 0);
                self.bind(done);
            }
            return Ok(());
        }
        // Calls lose registers.
        if most > WINDOW || depth > 0 {
            return Err(Lack::Number("a sum over more than 64 bytes"));
        }
        self.value(length, 0)?;
        let before = self.held;
        let window = self.hold(WINDOW as i32)?;
        let (absent, done) = (self.label(), self.label());
        for at in (0..WINDOW as i16).step_by(8) {
            self.op(insn::store_number(insn::DOUBLE, STACK, window + at, 0));
        }
        self.op(insn::copy(4, to));
        self.set(1, 0);
        self.jump_number(Cond::Eq, 4, 0, u64::MAX, absent, 0);
        self.jump_number(Cond::Gt, 4, WINDOW, u64::MAX, absent, 0);
        self.op(insn::copy(1, CONTEXT));
        self.set(2, offset.into());
        self.op(insn::copy(3, STACK));
        self.op(insn::advance(3, window.into()));
        self.op(insn::call(LOAD_BYTES));
        self.set(1, 0);
        self.jump_number(Cond::Ne, 0, 0, u64::MAX, absent, 0);
        self.add_words(STACK, window, WINDOW as usize, depth)?;
        self.goto(done);
        self.bind(absent);
        self.bind(done);
        self.held = before;
        Ok(())
    }

    /// The folded sum of bytes at a place.
    fn add_words(&mut self, base: u8, at: i16, bytes: usize, depth: u8) -> Result<(), Lack> {
        let to = self.register(depth)?;
        let mut most = 0_u128;
        for (index, (offset, bytes)) in words(at.into(), bytes).enumerate() {
            let part = if index == 0 { to } else { 0 };
            self.op(insn::load_memory(size(bytes), part, base, offset as i16));
            if index > 0 {
                self.op(insn::alu(Op::Add, to, part));
            }
            most += (1 << (8 * bytes)) - 1;
        }
        self.fold(depth, most)?;
        self.op(insn::from_network(to, 16));
        Ok(())
    }

    /// FNV-1a with a final mix; the zero bytes of a number's upper half are one multiplication.
    fn hash(&mut self, numbers: &[TermId], depth: u8) -> Result<(), Lack> {
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        let (to, part, factor) =
            (self.register(depth)?, self.register(depth + 1)?, self.register(depth + 2)?);
        self.set(to, 0xcbf2_9ce4_8422_2325);
        for number in numbers {
            let is_wide = self.exact(*number).is_err();
            for half in [64, 0] {
                if half == 64 && !is_wide {
                    self.set(factor, PRIME.wrapping_pow(8));
                    self.op(insn::alu(Op::Mul, to, factor));
                    continue;
                }
                for byte in (0..8).rev() {
                    self.bits(*number, half + 8 * byte, 8, depth + 1)?;
                    self.op(insn::alu(Op::Xor, to, part));
                    self.set(factor, PRIME);
                    self.op(insn::alu(Op::Mul, to, factor));
                }
            }
        }
        for mix in [Some(0xd6e8_feb8_6659_fd93), None] {
            self.op(insn::copy(0, to));
            self.op(insn::alu_number(Op::Rsh, 0, 32));
            self.op(insn::alu(Op::Xor, to, 0));
            if let Some(mix) = mix {
                self.set(factor, mix);
                self.op(insn::alu(Op::Mul, to, factor));
            }
        }
        Ok(())
    }

    /// Goes where a condition leads.
    pub(super) fn test(
        &mut self,
        atom: &Atom,
        yes: super::Label,
        no: super::Label,
        depth: u8,
    ) -> Result<(), Lack> {
        match atom {
            Atom::Test(term, set) => {
                let intervals = set.intervals().iter().map(|(low, high)| (*low, *high, yes));
                self.scan(*term, intervals.collect(), no, depth)
            }
            Atom::Compare(op, a, b) => {
                if a == b {
                    self.goto(if op.holds(0, 0) { yes } else { no });
                    return Ok(());
                }
                let cond = match op {
                    CompareOp::Eq => Cond::Eq,
                    CompareOp::Ne => Cond::Ne,
                    CompareOp::Lt => Cond::Lt,
                    CompareOp::Le => Cond::Le,
                    CompareOp::Gt => Cond::Gt,
                    CompareOp::Ge => Cond::Ge,
                };
                if self.exact(*a).is_ok() && self.exact(*b).is_ok() {
                    let (a, b) = (self.value(*a, depth)?, self.value(*b, depth + 1)?);
                    self.jump(cond, a, b, yes);
                    self.goto(no);
                    return Ok(());
                }
                if !self.is_in_pieces(*a) || !self.is_in_pieces(*b) {
                    return Err(Lack::Comparison);
                }
                let strict = match cond {
                    Cond::Le => Cond::Lt,
                    Cond::Ge => Cond::Gt,
                    cond => cond,
                };
                let (x, y) = (self.bits(*a, 64, 64, depth)?, self.bits(*b, 64, 64, depth + 1)?);
                match strict {
                    Cond::Eq => self.jump(Cond::Ne, x, y, no),
                    Cond::Ne => self.jump(Cond::Ne, x, y, yes),
                    strict => {
                        self.jump(strict, x, y, yes);
                        self.jump(Cond::Ne, x, y, no);
                    }
                }
                let (x, y) = (self.bits(*a, 0, 64, depth)?, self.bits(*b, 0, 64, depth + 1)?);
                self.jump(cond, x, y, yes);
                self.goto(no);
                Ok(())
            }
        }
    }

    /// Whether all its bits can be computed, 64 at a time.
    pub(super) fn is_in_pieces(&self, term: TermId) -> bool {
        let of = |term: &TermId| self.exact(*term).is_ok() || self.is_in_pieces(*term);
        match self.program.term(term) {
            Term::Const(_) | Term::Input(_) | Term::Bound(..) | Term::Map(..) => true,
            Term::Slice { of: term, .. } => of(term),
            Term::Concat { high, low, .. } => of(high) && of(low),
            Term::Choose(_, a, b) => of(a) && of(b),
            Term::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor, a, b) => of(a) && of(b),
            _ => self.exact(term).is_ok(),
        }
    }
}

/// Accesses of four bytes at most that cover so many.
fn words(mut offset: i32, mut bytes: usize) -> impl Iterator<Item = (i32, u8)> {
    std::iter::from_fn(move || {
        let size = [4, 2, 1].into_iter().find(|size| *size <= bytes)?;
        let piece = (offset, size as u8);
        (offset, bytes) = (offset + size as i32, bytes - size);
        Some(piece)
    })
}
