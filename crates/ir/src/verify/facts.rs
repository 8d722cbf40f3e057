//! What is known of a packet and of the registers at a point of a model.

use std::collections::{BTreeMap, BTreeSet};

use net::{Header, annotation};

use crate::field::{Base, Field, meta};
use crate::model::{BinaryOp, Expr, Reg};

/// Least and greatest value that a number can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) low: u128,
    pub(super) high: u128,
}

impl Range {
    pub(super) const ANY: Self = Self { low: 0, high: u128::MAX };

    pub(super) fn new(low: u128, high: u128) -> Self {
        Self { low, high }
    }

    pub(super) fn single(value: u128) -> Self {
        Self::new(value, value)
    }

    pub(super) fn hull(self, other: Self) -> Self {
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// The range of an operation's result; [`Range::ANY`] where it could wrap around.
    pub(super) fn binary(op: BinaryOp, a: Self, b: Self) -> Self {
        let checked = |low: Option<u128>, high: Option<u128>| match (low, high) {
            (Some(low), Some(high)) => Self::new(low, high),
            _ => Self::ANY,
        };
        let shift = |n: u128| u32::try_from(n).unwrap_or(u32::MAX);
        match op {
            BinaryOp::Add => checked(a.low.checked_add(b.low), a.high.checked_add(b.high)),
            BinaryOp::Sub => checked(a.low.checked_sub(b.high), a.high.checked_sub(b.low)),
            BinaryOp::Mul => checked(a.low.checked_mul(b.low), a.high.checked_mul(b.high)),
            BinaryOp::Div => {
                // A divisor of 0 makes 0.
                let low = if b.low == 0 { 0 } else { a.low / b.high };
                Self::new(low, a.high / b.low.max(1))
            }
            BinaryOp::Rem => Self::new(0, a.high.min(b.high.saturating_sub(1))),
            BinaryOp::And => Self::new(0, a.high.min(b.high)),
            BinaryOp::Or | BinaryOp::Xor => {
                let bits = (a.high | b.high).leading_zeros();
                Self::new(0, u128::MAX.checked_shr(bits).unwrap_or(0))
            }
            BinaryOp::Shl if shift(b.high) <= a.high.leading_zeros() => checked(
                a.low.checked_shl(shift(b.low)).or(Some(0)),
                a.high.checked_shl(shift(b.high)).or(Some(0)),
            ),
            BinaryOp::Shl => Self::ANY,
            BinaryOp::Shr => Self::new(
                a.low.checked_shr(shift(b.high)).unwrap_or(0),
                a.high.checked_shr(shift(b.low)).unwrap_or(0),
            ),
            BinaryOp::Min => Self::new(a.low.min(b.low), a.high.min(b.high)),
            BinaryOp::Max => Self::new(a.low.max(b.low), a.high.max(b.high)),
        }
    }
}

/// A register that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    range: Range,
    /// The field of [`meta`] that it still equals.
    length: Option<Field>,
}

/// What is known of a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    /// It is set.
    set: bool,
    /// At least so many bytes lie from it to the end of the data.
    available: u64,
    /// Its distance from the first data byte.
    at: Option<u64>,
}

/// What holds on every path to a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    registers: BTreeMap<Reg, Known>,
    /// Registers that are written on some path.
    perhaps: BTreeSet<Reg>,
    /// The data have at least so many bytes.
    length: u64,
    marks: [Mark; 3],
    /// Whether the packet, state or anything else may have been changed.
    pub(super) changed: bool,
}

/// No packet is as long.
const LONGEST: u64 = 1 << 32;

impl Facts {
    /// What holds on both of two paths.
    pub(super) fn join(mut self, other: &Self) -> Self {
        self.registers.retain(|reg, known| match other.registers.get(reg) {
            Some(theirs) => {
                known.range = known.range.hull(theirs.range);
                known.length = known.length.filter(|_| known.length == theirs.length);
                true
            }
            None => false,
        });
        self.perhaps.extend(&other.perhaps);
        self.length = self.length.min(other.length);
        for (mine, theirs) in self.marks.iter_mut().zip(&other.marks) {
            mine.set &= theirs.set;
            mine.available = mine.available.min(theirs.available);
            mine.at = mine.at.filter(|_| mine.at == theirs.at);
        }
        self.changed |= other.changed;
        self
    }

    /// What holds whatever changed between `before` and here: for loops that do not settle.
    pub(super) fn widen(mut self, before: &Self) -> Self {
        for (reg, known) in &mut self.registers {
            if before.registers.get(reg).is_none_or(|b| b.range != known.range) {
                known.range = Range::ANY;
            }
        }
        if self.length != before.length {
            self.length = 0;
        }
        for (mine, theirs) in self.marks.iter_mut().zip(&before.marks) {
            if mine.available != theirs.available {
                mine.available = 0;
            }
        }
        self
    }

    /// Draws conclusions from where headers lie in the data.
    fn settle(&mut self) {
        for mark in &mut self.marks {
            if let Some(at) = mark.at {
                if mark.available > 0 {
                    self.length = self.length.max(mark.available.saturating_add(at));
                }
                mark.available = mark.available.max(self.length.saturating_sub(at));
            }
            mark.set |= mark.available > 0;
        }
    }

    /// Bytes that can be read from a base, for sure.
    pub(super) fn readable(&self, base: Base) -> u64 {
        match base {
            Base::Data => self.length,
            Base::Header(header) => self.marks[header as usize].available,
            Base::Annotation => annotation::SIZE as u64,
            Base::Carried | Base::Meta => 0,
        }
    }

    pub(super) fn is_set(&self, header: Header) -> bool {
        self.marks[header as usize].set
    }

    /// The range of a register that is written on every path.
    pub(super) fn register(&self, reg: Reg) -> Option<Range> {
        self.registers.get(&reg).map(|known| match known.length {
            Some(field) => Range::new(known.range.low.max(self.field(field).low), known.range.high),
            None => known.range,
        })
    }

    /// Whether a register is written on some path.
    pub(super) fn is_perhaps_written(&self, reg: Reg) -> bool {
        self.perhaps.contains(&reg)
    }

    pub(super) fn bind(&mut self, reg: Reg, range: Range, expr: Option<&Expr>) {
        let length = match expr {
            Some(Expr::Field(field)) if base_of(*field).is_some() => Some(*field),
            Some(Expr::Reg(other)) => self.registers.get(other).and_then(|known| known.length),
            _ => None,
        };
        self.registers.insert(reg, Known { range, length });
        self.perhaps.insert(reg);
    }

    pub(super) fn field(&self, field: Field) -> Range {
        match base_of(field) {
            Some(base) => Range::new(self.readable(base).into(), LONGEST.into()),
            None => Range::new(0, field.max()),
        }
    }

    /// Takes in that an expression is in a range; `false` if it cannot be.
    pub(super) fn assume(&mut self, expr: &Expr, range: Range) -> bool {
        match expr {
            Expr::Reg(reg) => {
                let Some(known) = self.registers.get_mut(reg) else { return true };
                known.range.low = known.range.low.max(range.low);
                known.range.high = known.range.high.min(range.high);
                if known.range.low > known.range.high {
                    return false;
                }
                match known.length {
                    Some(field) => self.assume(&Expr::Field(field), range),
                    None => true,
                }
            }
            Expr::Field(field) => {
                let low = u64::try_from(range.low).unwrap_or(u64::MAX);
                match base_of(*field) {
                    Some(Base::Data) => self.length = self.length.max(low),
                    Some(Base::Header(header)) => {
                        let available = &mut self.marks[header as usize].available;
                        *available = (*available).max(low);
                    }
                    _ if range.low == 0 => {}
                    _ => match *field {
                        meta::HAS_MAC => self.marks[Header::Mac as usize].set = true,
                        meta::HAS_NET => self.marks[Header::Network as usize].set = true,
                        meta::HAS_TRANSPORT => self.marks[Header::Transport as usize].set = true,
                        _ => {}
                    },
                }
                self.settle();
                range.low <= range.high
            }
            Expr::Binary(BinaryOp::Add, a, b) => match (&**a, &**b) {
                (e, Expr::Const(c)) | (Expr::Const(c), e)
                    if self.is_small(e) && *c <= u128::from(u64::MAX) =>
                {
                    let (low, high) = (range.low.saturating_sub(*c), range.high.checked_sub(*c));
                    high.is_some_and(|high| self.assume(e, Range::new(low, high)))
                }
                _ => true,
            },
            Expr::Binary(BinaryOp::Sub, e, c) => match **c {
                Expr::Const(c) if self.is_small(e) && self.simple(e).low >= c => {
                    let up = |v: u128| v.saturating_add(c);
                    self.assume(e, Range::new(up(range.low), up(range.high)))
                }
                _ => true,
            },
            Expr::Binary(BinaryOp::Min, a, b) => {
                let range = Range::new(range.low, u128::MAX);
                self.assume(a, range) && self.assume(b, range)
            }
            _ => true,
        }
    }

    fn is_small(&self, expr: &Expr) -> bool {
        self.simple(expr).high <= u128::from(u64::MAX)
    }

    /// The range of a register or a field.
    fn simple(&self, expr: &Expr) -> Range {
        match expr {
            Expr::Field(field) => self.field(*field),
            Expr::Reg(reg) => self.register(*reg).unwrap_or(Range::ANY),
            _ => Range::ANY,
        }
    }

    /// `Some(n)` if an expression is at most `n` less than the bytes that a base leads to.
    pub(super) fn at_most_available(&self, expr: &Expr, base: Base) -> Option<u128> {
        match expr {
            Expr::Field(field) if base_of(*field) == Some(base) => Some(0),
            Expr::Reg(reg) => {
                let length = self.registers.get(reg)?.length?;
                self.at_most_available(&Expr::Field(length), base)
            }
            Expr::Binary(BinaryOp::Sub, e, c) => match **c {
                Expr::Const(c) if self.simple(e).low >= c => {
                    self.at_most_available(e, base)?.checked_add(c)
                }
                _ => None,
            },
            Expr::Binary(BinaryOp::Min, a, b) => {
                self.at_most_available(a, base).or_else(|| self.at_most_available(b, base))
            }
            _ => None,
        }
    }

    /// Registers no longer equal what was the length.
    fn lengths_change(&mut self) {
        self.changed = true;
        self.registers.values_mut().for_each(|known| known.length = None);
    }

    /// Bytes are removed from the front, or added there if the number is negative.
    pub(super) fn pull(&mut self, bytes: Range) {
        self.lengths_change();
        let negative = bytes.low >> 127 == 1;
        let moved = u64::try_from(if negative { bytes.high.wrapping_neg() } else { bytes.high });
        let exact = bytes.low == bytes.high;
        match moved {
            Ok(n) if negative && exact => {
                self.length = self.length.saturating_add(n);
                self.marks.iter_mut().for_each(|m| m.at = m.at.and_then(|at| at.checked_add(n)));
            }
            Ok(n) if !negative => {
                let whole = exact && n <= self.length;
                self.length = self.length.saturating_sub(n);
                let back = |at: u64| at.checked_sub(n).filter(|_| whole);
                self.marks.iter_mut().for_each(|m| m.at = m.at.and_then(back));
            }
            _ => {
                self.length = 0;
                self.marks.iter_mut().for_each(|m| m.at = None);
            }
        }
    }

    pub(super) fn truncate(&mut self, length: Range) {
        self.lengths_change();
        let least = u64::try_from(length.low).unwrap_or(u64::MAX);
        self.length = self.length.min(least);
        for mark in &mut self.marks {
            let left = mark.at.map_or(0, |at| least.saturating_sub(at));
            mark.available = mark.available.min(left);
        }
    }

    pub(super) fn extend(&mut self, bytes: Range) {
        self.lengths_change();
        let n = u64::try_from(bytes.low).unwrap_or(0);
        self.length = self.length.saturating_add(n);
        for mark in self.marks.iter_mut().filter(|m| m.available > 0) {
            mark.available = mark.available.saturating_add(n);
        }
        self.settle();
    }

    /// A header is marked at a position. `from` is the header from which it was counted.
    pub(super) fn mark(&mut self, header: Header, from: Option<Header>, offset: Range) {
        self.lengths_change();
        let start = match from {
            Some(from) => self.marks[from as usize],
            None => Mark { set: true, available: self.length, at: Some(0) },
        };
        let furthest = u64::try_from(offset.high).ok().filter(|&n| n <= 65535 && start.set);
        let exact = furthest.filter(|_| offset.low == offset.high);
        self.marks[header as usize] = Mark {
            set: furthest.is_some(),
            available: furthest.map_or(0, |n| start.available.saturating_sub(n)),
            at: start.at.zip(exact).and_then(|(at, n)| at.checked_add(n)),
        };
    }

    pub(super) fn unmark(&mut self, header: Header) {
        self.lengths_change();
        self.marks[header as usize] = Mark::default();
    }
}

/// The base whose bytes a field of [`meta`] counts.
fn base_of(field: Field) -> Option<Base> {
    Some(match field {
        meta::LEN => Base::Data,
        meta::AVAIL_MAC => Base::Header(Header::Mac),
        meta::AVAIL_NET => Base::Header(Header::Network),
        meta::AVAIL_TRANSPORT => Base::Header(Header::Transport),
        _ => return None,
    })
}
