//! Numbers of more than 32 bits, as several columns: one for each 32 bits, the lowest first. So Ethernet and IPv6
//! addresses are keys of flows, are written and compared, and times are asked for, of all packets at once.

use ir::IntervalSet;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{LookupId, Term, TermId};

use super::compile::{Compiler, Residual, ones};
use super::lanes::{Cond, Op, Reg};
use super::words::{BITS, part};

/// Words of the widest number.
const WORDS: u8 = 4;
/// A set of wide numbers is tested for so many intervals.
const MOST_INTERVALS: usize = 8;

type With<'w, 'r, 'k> = &'w mut Option<&'r mut Residual<'k>>;

impl Compiler<'_> {
    /// A word that a lookup binds.
    pub(super) fn bound_word(&self, lookup: LookupId, index: u8, word: u8) -> Option<Op> {
        let (first, words) = *self.layout(lookup).numbers.get(usize::from(index))?;
        Some(match word < words {
            true => Op::Bound(lookup.0, first.checked_add(word)?),
            false => Op::Const(0),
        })
    }

    /// How many words a number has, if it is never negative.
    fn word_count(&self, term: TermId) -> Option<u8> {
        match self.range(term) {
            Some((..0, _)) => None,
            Some((_, high)) => {
                Some((128 - high.leading_zeros()).div_ceil(BITS).clamp(1, WORDS.into()) as u8)
            }
            None => Some(WORDS),
        }
    }

    /// Columns for all words of a number that is not negative, if these are so many; 0 where it has fewer.
    pub(super) fn words(
        &mut self,
        term: TermId,
        count: u8,
        with: With<'_, '_, '_>,
    ) -> Option<Vec<Reg>> {
        if self.word_count(term)? > count {
            return None;
        }
        (0..count).map(|word| self.word(term, word, with)).collect()
    }

    /// A word of a term but the lowest.
    pub(super) fn make_word(
        &mut self,
        term: TermId,
        word: u8,
        with: With<'_, '_, '_>,
    ) -> Option<Reg> {
        if word >= WORDS {
            return Some(self.op(Op::Const(0)));
        }
        let at = u32::from(word) * BITS;
        let op = match self.program().term(term) {
            Term::Const(value) => Op::Const((value >> at) as u32),
            Term::Input(field) => match part(*field, word) {
                Some(field) => return self.input(field),
                None => Op::Const(0),
            },
            Term::Bound(..) if with.is_some() => return None,
            Term::Bound(lookup, index) => self.bound_word(*lookup, *index, word)?,
            Term::Now => Op::Now(word),
            Term::Slice { of, low, width } => {
                let left = u32::from(*width).saturating_sub(at);
                return match left {
                    0 => Some(self.op(Op::Const(0))),
                    left => self.slice(*of, (u32::from(*low) + at, left), with),
                };
            }
            Term::Concat { high, low, width } => {
                let width = u32::from(*width);
                if at >= width {
                    return self.slice(*high, (at - width, BITS), with);
                }
                let low = self.word(*low, word, with)?;
                if at + BITS <= width {
                    return Some(low);
                }
                let high = self.word(*high, 0, with)?;
                Op::Or(self.op(Op::Shl(high, (width - at) as u8)), low)
            }
            Term::Binary(op, a, b) => match op {
                BinaryOp::And => Op::And(self.word(*a, word, with)?, self.word(*b, word, with)?),
                BinaryOp::Or => Op::Or(self.word(*a, word, with)?, self.word(*b, word, with)?),
                BinaryOp::Xor => Op::Xor(self.word(*a, word, with)?, self.word(*b, word, with)?),
                BinaryOp::Add => return Some(self.add((*a, *b), word, with)?.0),
                BinaryOp::Shr => match self.program().term(*b) {
                    Term::Const(by @ 0..128) => {
                        return self.slice(*a, (*by as u32 + at, BITS), with);
                    }
                    _ => return None,
                },
                _ => return None,
            },
            Term::Choose(atom, a, b) => {
                let cond = self.cond(atom, with)?;
                let (a, b) = (self.word(*a, word, with)?, self.word(*b, word, with)?);
                Op::Choose((cond, a, b).into())
            }
            _ => return None,
        };
        Some(self.op(op))
    }

    /// At most 32 bits of a term, from the bit `low` on.
    pub(super) fn slice(
        &mut self,
        of: TermId,
        (low, bits): (u32, u32),
        with: With<'_, '_, '_>,
    ) -> Option<Reg> {
        let (word, shift) = (u8::try_from(low / BITS).ok()?, low % BITS);
        let mut all = match word < WORDS {
            true => self.word(of, word, with)?,
            false => self.op(Op::Const(0)),
        };
        if shift > 0 {
            all = self.op(Op::Shr(all, shift as u8));
            if bits > BITS - shift && word + 1 < WORDS {
                let above = self.word(of, word + 1, with)?;
                let above = self.op(Op::Shl(above, (BITS - shift) as u8));
                all = self.op(Op::Or(all, above));
            }
        }
        Some(self.bits(all, 0, ones(bits)))
    }

    /// A word of a sum, and what is carried from it: 0 or 1.
    fn add(
        &mut self,
        (a, b): (TermId, TermId),
        word: u8,
        with: With<'_, '_, '_>,
    ) -> Option<(Reg, Reg)> {
        let [zero, one] = [0, 1].map(|number| self.op(Op::Const(number)));
        let (x, y) = (self.word(a, word, with)?, self.word(b, word, with)?);
        let sum = self.op(Op::Add(x, y));
        let mut carry =
            self.op(Op::Choose((Cond::Compare(CompareOp::Lt, sum, x), one, zero).into()));
        if word == 0 {
            return Some((sum, carry));
        }
        let (_, before) = self.add((a, b), word - 1, with)?;
        let all = self.op(Op::Add(sum, before));
        let more = Cond::Compare(CompareOp::Lt, all, sum);
        let more = self.op(Op::Choose((more, one, zero).into()));
        carry = self.op(Op::Or(carry, more));
        Some((all, carry))
    }

    /// A column that is 1 where a number is less than another, else 0.
    fn less(&mut self, a: &[Reg], b: &[Reg]) -> Reg {
        let [zero, one] = [0, 1].map(|number| self.op(Op::Const(number)));
        // From the lowest word on: each decides unless it is the same in both.
        a.iter().zip(b).fold(zero, |below, (&a, &b)| {
            let less = Cond::Compare(CompareOp::Lt, a, b);
            let less = self.op(Op::Choose((less, one, zero).into()));
            let same = Cond::Compare(CompareOp::Eq, a, b);
            self.op(Op::Choose((same, below, less).into()))
        })
    }

    /// A column that is 1 where numbers are the same, else 0.
    fn same(&mut self, a: &[Reg], b: &[Reg]) -> Reg {
        let [zero, one] = [0, 1].map(|number| self.op(Op::Const(number)));
        a.iter().zip(b).fold(one, |same, (&a, &b)| {
            self.op(Op::Choose((Cond::Compare(CompareOp::Eq, a, b), same, zero).into()))
        })
    }

    /// Compares two numbers of which one may have more than 32 bits.
    pub(super) fn wide_compare(
        &mut self,
        op: CompareOp,
        (a, b): (TermId, TermId),
        with: With<'_, '_, '_>,
    ) -> Option<Cond> {
        let count = self.word_count(a)?.max(self.word_count(b)?);
        let (a, b) = (self.words(a, count, with)?, self.words(b, count, with)?);
        let (of, holds) = match op {
            CompareOp::Eq => (self.same(&a, &b), 1),
            CompareOp::Ne => (self.same(&a, &b), 0),
            CompareOp::Lt => (self.less(&a, &b), 1),
            CompareOp::Ge => (self.less(&a, &b), 0),
            CompareOp::Gt => (self.less(&b, &a), 1),
            CompareOp::Le => (self.less(&b, &a), 0),
        };
        Some(Cond::Range { of, low: holds, span: 0 })
    }

    /// Tests whether a number of more than 32 bits is in a set.
    pub(super) fn wide_test(
        &mut self,
        term: TermId,
        set: &IntervalSet,
        with: With<'_, '_, '_>,
    ) -> Option<Cond> {
        let most = self.range(term).map_or(u128::MAX, |range| range.1 as u128);
        let count = self.word_count(term)?;
        let words = self.words(term, count, with)?;
        if set.intervals().len() > MOST_INTERVALS {
            return None;
        }
        let [zero, one] = [0, 1].map(|number| self.op(Op::Const(number)));
        let mut of = zero;
        for &(low, high) in set.intervals() {
            if low > most {
                continue;
            }
            let mut constant = |number: u128| -> Vec<Reg> {
                let word = |at: u8| (number >> (u32::from(at) * BITS)) as u32;
                (0..count).map(|at| self.op(Op::Const(word(at)))).collect()
            };
            let (low, high) = (constant(low), constant(high.min(most)));
            let inside = match low == high {
                true => self.same(&words, &low),
                false => {
                    let below = self.less(&words, &low);
                    let above = self.less(&high, &words);
                    let outside = self.op(Op::Or(below, above));
                    self.op(Op::Xor(outside, one))
                }
            };
            of = self.op(Op::Or(of, inside));
        }
        Some(Cond::Range { of, low: 1, span: 0 })
    }
}
