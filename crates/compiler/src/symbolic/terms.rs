//! Terms, made so that equal numbers are, as far as can be told, one term.
//!
//! Sums are kept as linear combinations of other terms. That is what makes offsets, lengths and
//! time-to-lives add up along a chain, and what lets many updates of a checksum become one:
//! inverting 16 bits is `0xffff - x`, and `fold(fold(a) + b)` is `fold(a + b)` (RFC 1624).

use foldhash::HashMap;
use ir::field::{Base, Field};
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, LookupId, StateId, Term, TermId};
use ir::{IntervalSet, Mapping};
use net::Header;
use std::sync::Arc;

/// `constant + Σ coefficient · term`, exactly as it stands where nothing wraps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Linear {
    /// In the order of the terms; no coefficient is 0.
    pub terms: Vec<(TermId, i128)>,
    pub constant: i128,
}

/// Coefficients and constants beyond this are not followed: they could overflow.
const LARGE: i128 = 1 << 96;

impl Linear {
    fn constant(constant: i128) -> Self {
        Self { terms: Vec::new(), constant }
    }

    fn term(term: TermId) -> Self {
        Self { terms: vec![(term, 1)], constant: 0 }
    }

    /// `self + factor · other`; `None` if it grows beyond what is followed.
    pub(crate) fn add(&self, other: &Self, factor: i128) -> Option<Self> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let (term, coefficient) = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some(&&(x, c)), Some(&&(y, d))) if x == y => {
                    a.next();
                    b.next();
                    (x, c + d.checked_mul(factor)?)
                }
                (Some(&&(x, c)), Some(&&(y, _))) if x < y => {
                    a.next();
                    (x, c)
                }
                (Some(&&(x, c)), None) => {
                    a.next();
                    (x, c)
                }
                (_, Some(&&(y, d))) => {
                    b.next();
                    (y, d.checked_mul(factor)?)
                }
            };
            if coefficient != 0 {
                terms.push((term, coefficient));
            }
        }
        let constant = self.constant.checked_add(other.constant.checked_mul(factor)?)?;
        let sum = Self { terms, constant };
        let small = |n: i128| n.abs() < LARGE;
        (small(constant) && sum.terms.iter().all(|t| small(t.1))).then_some(sum)
    }

    /// What is added, and what is taken off.
    pub(crate) fn sides(&self) -> (Self, Self) {
        let part = |sign: i128| Self {
            terms: self.terms.iter().filter(|t| t.1 * sign > 0).map(|t| (t.0, t.1.abs())).collect(),
            constant: (self.constant * sign).max(0),
        };
        (part(1), part(-1))
    }

    /// The least and the greatest value, given those of the terms.
    pub(crate) fn bounds(&self, of: impl Fn(TermId) -> (u128, u128)) -> Option<(i128, i128)> {
        let (mut low, mut high) = (self.constant, self.constant);
        for &(term, coefficient) in &self.terms {
            let (least, most) = of(term);
            let product = |v: u128| i128::try_from(v).ok().and_then(|v| v.checked_mul(coefficient));
            let (a, b) = (product(least)?, product(most)?);
            low = low.checked_add(a.min(b))?;
            high = high.checked_add(a.max(b))?;
        }
        Some((low, high))
    }
}

/// An atom, or what it comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decided {
    /// It always or never holds.
    Known(bool),
    /// It holds when the atom does, or, with `false`, when the atom does not.
    Open(Atom, bool),
}

impl Decided {
    pub(crate) fn negate(self) -> Self {
        match self {
            Self::Known(value) => Self::Known(!value),
            Self::Open(atom, holds) => Self::Open(atom, !holds),
        }
    }
}

fn mask(width: u32) -> u128 {
    if width == 0 { 0 } else { u128::MAX >> (128 - width.min(128)) }
}

fn bits(value: u128) -> u32 {
    128 - value.leading_zeros()
}

/// The terms of a program in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms {
    terms: Vec<Term>,
    index: HashMap<Term, TermId>,
    /// The least and the greatest value of each term, whatever the packet.
    bounds: Vec<(u128, u128)>,
    /// Each as a sum; a term that is none is its own only part.
    linear: Vec<Linear>,
    /// Bits of what tables map numbers to, by lowest bit and width: tables are large.
    of_maps: HashMap<(TermId, u32, u32), TermId>,
}

impl Terms {
    pub(crate) fn get(&self, term: TermId) -> &Term {
        &self.terms[term.0 as usize]
    }

    pub(crate) fn into_all(self) -> Vec<Term> {
        self.terms
    }

    /// The least and the greatest value that a term can have.
    pub(crate) fn bounds(&self, term: TermId) -> (u128, u128) {
        self.bounds[term.0 as usize]
    }

    pub(crate) fn as_constant(&self, term: TermId) -> Option<u128> {
        match self.get(term) {
            Term::Const(value) => Some(*value),
            _ => None,
        }
    }

    fn intern(&mut self, term: Term, bounds: (u128, u128)) -> TermId {
        if let Some(&id) = self.index.get(&term) {
            return id;
        }
        let id = TermId(self.terms.len() as u32);
        self.linear.push(match term {
            Term::Const(value) if value < LARGE as u128 => Linear::constant(value as i128),
            _ => Linear::term(id),
        });
        self.terms.push(term.clone());
        self.bounds.push(bounds);
        self.index.insert(term, id);
        id
    }

    pub(crate) fn constant(&mut self, value: u128) -> TermId {
        self.intern(Term::Const(value), (value, value))
    }

    pub(crate) fn input(&mut self, field: Field) -> TermId {
        self.intern(Term::Input(field), (0, field.max()))
    }

    pub(crate) fn position(&mut self, header: Header) -> TermId {
        self.intern(Term::Position(header), (0, u32::MAX.into()))
    }

    /// A number of `width` bits that a lookup binds.
    pub(crate) fn bound(&mut self, lookup: LookupId, index: u8, width: u16) -> TermId {
        self.intern(Term::Bound(lookup, index), (0, mask(width.into())))
    }

    /// What a cell of `width` bits holds.
    pub(crate) fn cell(&mut self, cells: StateId, index: u16, width: u16) -> TermId {
        self.intern(Term::Cell(cells, index), (0, mask(width.into())))
    }

    pub(crate) fn now(&mut self) -> TermId {
        self.intern(Term::Now, (0, u64::MAX.into()))
    }

    pub(crate) fn sum16(&mut self, offset: u16, length: TermId) -> TermId {
        self.intern(Term::Sum16 { offset, length }, (0, 0xffff))
    }

    pub(crate) fn hash(&mut self, numbers: Vec<TermId>) -> TermId {
        let constants: Option<Vec<u128>> = numbers.iter().map(|&t| self.as_constant(t)).collect();
        match constants {
            Some(constants) => self.constant(ir::hash::hash(constants).into()),
            None => self.intern(Term::Hash(numbers), (0, u64::MAX.into())),
        }
    }

    /// The term as a linear combination; the term itself if it is not a sum.
    pub(crate) fn linear(&self, term: TermId) -> &Linear {
        &self.linear[term.0 as usize]
    }

    /// The canonical term of a linear combination. Wraps at 128 bits, as sums of terms do.
    pub(crate) fn sum_of(&mut self, linear: &Linear) -> TermId {
        let [rest @ .., last] = &linear.terms[..] else {
            return self.constant(linear.constant as u128);
        };
        if linear.constant == 0 && rest.is_empty() && last.1 == 1 {
            return last.0;
        }
        // Positive parts first, so that no part of the sum wraps if the sum does not.
        let mut parts: Vec<(TermId, i128)> = linear.terms.clone();
        parts.sort_by_key(|&(t, c)| (c < 0, t));
        let mut sum: Option<TermId> = None;
        let mut constant = linear.constant;
        if constant > 0 && parts[0].1 < 0 {
            sum = Some(self.constant(constant as u128));
            constant = 0;
        }
        for (term, coefficient) in parts {
            let product = match coefficient.unsigned_abs() {
                1 => term,
                factor => {
                    let factor = self.constant(factor);
                    self.raw(BinaryOp::Mul, term, factor)
                }
            };
            sum = Some(match sum {
                None => product,
                Some(sum) if coefficient < 0 => self.raw(BinaryOp::Sub, sum, product),
                Some(sum) => self.raw(BinaryOp::Add, sum, product),
            });
            if coefficient < 0 && sum == Some(product) {
                // A negative number alone: 0 - x.
                let zero = self.constant(0);
                sum = Some(self.raw(BinaryOp::Sub, zero, product));
            }
        }
        let mut sum = sum.unwrap_or(last.0);
        if constant != 0 {
            let op = if constant < 0 { BinaryOp::Sub } else { BinaryOp::Add };
            let constant = self.constant(constant.unsigned_abs());
            sum = self.raw(op, sum, constant);
        }
        let known = linear.bounds(|t| self.bounds(t)).filter(|&(low, _)| low >= 0);
        if let Some((low, high)) = known {
            self.bounds[sum.0 as usize] = (low as u128, high as u128);
        }
        let known = &mut self.linear[sum.0 as usize];
        if known.terms == [(sum, 1)] {
            *known = linear.clone();
        }
        sum
    }

    /// The operation as it stands.
    fn raw(&mut self, op: BinaryOp, a: TermId, b: TermId) -> TermId {
        let bounds = self.bounds_of(op, self.bounds(a), self.bounds(b));
        self.intern(Term::Binary(op, a, b), bounds)
    }

    fn bounds_of(&self, op: BinaryOp, a: (u128, u128), b: (u128, u128)) -> (u128, u128) {
        let all = (0, u128::MAX);
        match op {
            BinaryOp::Add => match (a.0.checked_add(b.0), a.1.checked_add(b.1)) {
                (Some(low), Some(high)) => (low, high),
                _ => all,
            },
            BinaryOp::Sub if a.0 >= b.1 => (a.0 - b.1, a.1 - b.0),
            BinaryOp::Mul => match (a.0.checked_mul(b.0), a.1.checked_mul(b.1)) {
                (Some(low), Some(high)) => (low, high),
                _ => all,
            },
            BinaryOp::Sub => all,
            BinaryOp::Div => (0, a.1),
            BinaryOp::Rem => (0, if b.1 == 0 { 0 } else { a.1.min(b.1 - 1) }),
            BinaryOp::And => (0, a.1.min(b.1)),
            BinaryOp::Or | BinaryOp::Xor => (0, mask(bits(a.1).max(bits(b.1)))),
            BinaryOp::Shl => match u32::try_from(b.1) {
                Ok(by) if by < 128 && bits(a.1) + by <= 128 => (0, a.1 << by),
                _ => all,
            },
            BinaryOp::Shr => (0, a.1),
            BinaryOp::Min => (a.0.min(b.0), a.1.min(b.1)),
            BinaryOp::Max => (a.0.max(b.0), a.1.max(b.1)),
        }
    }

    /// An operation on two numbers.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: TermId, b: TermId) -> TermId {
        let constants = (self.as_constant(a), self.as_constant(b));
        if let (Some(x), Some(y)) = constants {
            return self.constant(op.apply(x, y));
        }
        let small = |c: u128| (c < LARGE as u128).then_some(c as i128);
        // Two's complement: a large constant is a small negative one.
        let signed = |c: u128| small(c).or_else(|| small(c.wrapping_neg()).map(|n| -n));
        match (op, constants) {
            (BinaryOp::Add | BinaryOp::Sub, _) => {
                let constant = |c: Option<u128>| c.and_then(signed).map(Linear::constant);
                let [x, y] = [constant(constants.0), constant(constants.1)];
                let (x, y) =
                    (x.as_ref().unwrap_or(self.linear(a)), y.as_ref().unwrap_or(self.linear(b)));
                let factor = if op == BinaryOp::Add { 1 } else { -1 };
                match x.add(y, factor) {
                    Some(sum) => self.sum_of(&sum),
                    None => self.raw(op, a, b),
                }
            }
            (BinaryOp::Mul, (Some(_), None)) => self.binary(op, b, a),
            (BinaryOp::Mul, (_, Some(factor))) => self.multiply(a, factor),
            (BinaryOp::Shl, (_, Some(by))) if by < 90 => self.multiply(a, 1 << by),
            (BinaryOp::Shl | BinaryOp::Shr, (_, Some(by))) if by >= 128 => self.constant(0),
            (BinaryOp::Shr, (_, Some(by))) => {
                let width = bits(self.bounds(a).1).saturating_sub(by as u32);
                self.slice(a, by as u32, width)
            }
            (BinaryOp::And | BinaryOp::Or | BinaryOp::Xor, (Some(_), None)) => {
                self.binary(op, b, a)
            }
            (BinaryOp::And, (_, Some(wanted))) => self.and(a, wanted),
            (BinaryOp::Or | BinaryOp::Xor, (_, Some(0))) => a,
            (BinaryOp::Xor, (_, Some(ones)))
                if ones & ones.wrapping_add(1) == 0 && self.bounds(a).1 <= ones =>
            {
                // All bits that there are: what is left to the greatest number.
                let all = self.constant(ones);
                self.binary(BinaryOp::Sub, all, a)
            }
            (BinaryOp::Rem, (_, Some(by))) if self.bounds(a).1 < by => a,
            (BinaryOp::Min, _) if self.bounds(a).1 <= self.bounds(b).0 => a,
            (BinaryOp::Min, _) if self.bounds(b).1 <= self.bounds(a).0 => b,
            (BinaryOp::Max, _) if self.bounds(a).1 <= self.bounds(b).0 => b,
            (BinaryOp::Max, _) if self.bounds(b).1 <= self.bounds(a).0 => a,
            (BinaryOp::Min | BinaryOp::Max | BinaryOp::And | BinaryOp::Or, _) if a == b => a,
            (BinaryOp::Xor, _) if a == b => self.constant(0),
            _ => self.raw(op, a, b),
        }
    }

    fn multiply(&mut self, a: TermId, factor: u128) -> TermId {
        let product = i128::try_from(factor)
            .ok()
            .filter(|&f| f < LARGE)
            .and_then(|f| Linear::default().add(self.linear(a), f));
        match product {
            Some(product) => self.sum_of(&product),
            None => {
                let factor = self.constant(factor);
                self.raw(BinaryOp::Mul, a, factor)
            }
        }
    }

    fn and(&mut self, a: TermId, wanted: u128) -> TermId {
        let wanted = wanted & mask(bits(self.bounds(a).1));
        let low = wanted.trailing_zeros();
        if wanted == 0 {
            return self.constant(0);
        }
        let ones = wanted >> low;
        if ones & ones.wrapping_add(1) == 0 {
            let slice = self.slice(a, low, bits(ones));
            return self.multiply(slice, 1 << low);
        }
        let wanted = self.constant(wanted);
        self.raw(BinaryOp::And, a, wanted)
    }

    /// `width` bits of a number from bit `low` on.
    pub(crate) fn slice(&mut self, of: TermId, low: u32, width: u32) -> TermId {
        let all = bits(self.bounds(of).1);
        let width = width.min(all.saturating_sub(low));
        if width == 0 {
            return self.constant(0);
        }
        if low == 0 && width == all {
            return of;
        }
        if let Term::Map(number, table) = self.get(of) {
            if let Some(&known) = self.of_maps.get(&(of, low, width)) {
                return known;
            }
            let (number, table) = (*number, table.map(|value| value >> low & mask(width)));
            let slice = self.map(number, &Arc::new(table));
            self.of_maps.insert((of, low, width), slice);
            return slice;
        }
        match *self.get(of) {
            Term::Const(value) => self.constant(value >> low & mask(width)),
            Term::Input(field) if field.base != Base::Meta => {
                let offset = u32::from(field.offset) + u32::from(field.width) - low - width;
                self.input(Field::bits(field.base, offset as u16, width as u16))
            }
            Term::Slice { of, low: under, .. } => self.slice(of, low + u32::from(under), width),
            Term::Concat { high, low: tail, width: cut } => {
                let cut = u32::from(cut);
                if low >= cut {
                    self.slice(high, low - cut, width)
                } else if low + width <= cut {
                    self.slice(tail, low, width)
                } else {
                    let upper = self.slice(high, 0, low + width - cut);
                    let lower = self.slice(tail, low, cut - low);
                    self.concat(upper, lower, cut - low)
                }
            }
            _ => {
                let bounds = (0, mask(width).min(self.bounds(of).1 >> low));
                self.intern(Term::Slice { of, low: low as u8, width: width as u8 }, bounds)
            }
        }
    }

    /// `high << width | low`.
    pub(crate) fn concat(&mut self, high: TermId, low: TermId, width: u32) -> TermId {
        if width == 0 || self.as_constant(high) == Some(0) {
            return if width == 0 { high } else { low };
        }
        match (self.get(high), self.get(low)) {
            (&Term::Const(h), &Term::Const(l)) => return self.constant(h << width | l),
            (&Term::Input(h), &Term::Input(l))
                if h.base == l.base
                    && h.base != Base::Meta
                    && u32::from(l.width) == width
                    && h.offset + h.width == l.offset
                    && h.width + l.width <= 128 =>
            {
                return self.input(Field::bits(h.base, h.offset, h.width + l.width));
            }
            (
                &Term::Slice { of: a, low: from, width: upper },
                &Term::Slice { of: b, low: under, width: lower },
            ) if a == b && u32::from(lower) == width && from == under + lower => {
                return self.slice(a, under.into(), u32::from(upper) + width);
            }
            _ => {}
        }
        let (h, l) = (self.bounds(high), self.bounds(low));
        let bounds = (h.0 << width | l.0, h.1 << width | l.1);
        self.intern(Term::Concat { high, low, width: width as u8 }, bounds)
    }

    /// A sum folded to 16 bits.
    pub(crate) fn fold(&mut self, sum: TermId) -> TermId {
        let mut linear = self.linear(sum).clone();
        // fold(fold(a) + b) = fold(a + b), if neither is negative.
        loop {
            let inner = linear.terms.iter().find_map(|&(t, c)| match self.get(t) {
                Term::Fold(inner) if c == 1 => Some((t, *inner)),
                _ => None,
            });
            let Some((fold, inner)) = inner else { break };
            let Some(rest) = linear.add(&Linear::term(fold), -1) else { break };
            let positive = |l: &Linear| l.bounds(|t| self.bounds(t)).is_some_and(|b| b.0 >= 0);
            let inner = self.linear(inner);
            match rest.add(inner, 1).filter(|_| positive(&rest) && positive(inner)) {
                Some(sum) => linear = sum,
                None => break,
            }
        }
        // Multiples of 0xffff make no difference to a sum that is not 0.
        let rest = Linear { terms: linear.terms.clone(), constant: 0 };
        if let Some((floor, _)) = rest.bounds(|t| self.bounds(t)) {
            while linear.constant > 0xffff && floor.saturating_add(linear.constant) > 0x1_fffe {
                linear.constant -= 0xffff;
            }
        }
        let sum = self.sum_of(&linear);
        match self.as_constant(sum) {
            Some(0) => sum,
            Some(value) => self.constant((value - 1) % 0xffff + 1),
            None => {
                let least = u128::from(self.bounds(sum).0 > 0);
                self.intern(Term::Fold(sum), (least, 0xffff))
            }
        }
    }

    /// What a table maps a number to.
    pub(crate) fn map(&mut self, of: TermId, table: &Arc<Mapping>) -> TermId {
        let (low, high) = self.bounds(of);
        let image = table.image(&IntervalSet::range(low, high));
        let ends = (IntervalSet::min(&image), IntervalSet::max(&image));
        let bounds = (ends.0.unwrap_or(0), ends.1.unwrap_or(0));
        match image.as_single() {
            Some(value) => self.constant(value),
            None => self.intern(Term::Map(of, Arc::clone(table)), bounds),
        }
    }

    /// 0xffff instead of 0.
    pub(crate) fn non_zero(&mut self, value: TermId) -> TermId {
        if self.bounds(value).0 > 0 {
            return value;
        }
        if self.as_constant(value).is_some() {
            return self.constant(0xffff);
        }
        let value = self.through_non_zero(value).unwrap_or(value);
        let high = self.bounds(value).1.max(0xffff);
        self.intern(Term::NonZero(value), (1, high))
    }

    /// An update of a UDP checksum that was updated before, as one update: of
    /// `0xffff - fold(0xffff - nz(0xffff - fold(a)) + b)` the same with `fold(a + b)`. Inside of
    /// [`Term::NonZero`] only: the two differ in which zero they are.
    fn through_non_zero(&mut self, value: TermId) -> Option<TermId> {
        let inverted = |terms: &Self, t: TermId| -> Option<TermId> {
            let linear = terms.linear(t);
            match linear.terms[..] {
                [(fold, -1)] if linear.constant == 0xffff => match terms.get(fold) {
                    Term::Fold(sum) => Some(*sum),
                    _ => None,
                },
                _ => None,
            }
        };
        let sum = inverted(self, value)?;
        let linear = self.linear(sum);
        let (updated, before) = linear.terms.iter().find_map(|&(t, c)| match self.get(t) {
            Term::NonZero(inner) if c == -1 => Some((t, inverted(self, *inner)?)),
            _ => None,
        })?;
        let rest = linear.add(&Linear::term(updated), 1)?.add(&Linear::constant(0xffff), -1)?;
        let before = self.linear(before);
        let positive = |l: &Linear| l.bounds(|t| self.bounds(t)).is_some_and(|b| b.0 >= 0);
        if !positive(&rest) || !positive(before) {
            return None;
        }
        let sum = self.sum_of(&rest.add(before, 1)?);
        let fold = self.fold(sum);
        let all = self.constant(0xffff);
        Some(self.binary(BinaryOp::Sub, all, fold))
    }

    /// `then` if the condition holds, else `otherwise`.
    pub(crate) fn choose(&mut self, when: Decided, then: TermId, otherwise: TermId) -> TermId {
        let (atom, then, otherwise) = match when {
            _ if then == otherwise => return then,
            Decided::Known(true) => return then,
            Decided::Known(false) => return otherwise,
            Decided::Open(atom, true) => (atom, then, otherwise),
            Decided::Open(atom, false) => (atom, otherwise, then),
        };
        if let Atom::Test(term, set) = &atom
            && let Some(value) = set.as_single()
            && self.as_constant(then) == Some(0xffff)
            && self.is_zero_at(otherwise, *term, value)
        {
            return self.non_zero(otherwise);
        }
        let (a, b) = (self.bounds(then), self.bounds(otherwise));
        self.intern(Term::Choose(atom, then, otherwise), (a.0.min(b.0), a.1.max(b.1)))
    }

    /// Whether a number is 0 exactly where a part of it has a value.
    fn is_zero_at(&self, number: TermId, part: TermId, value: u128) -> bool {
        let linear = self.linear(number);
        match (&linear.terms[..], i128::try_from(value)) {
            ([(term, factor)], Ok(value)) if *term == part => {
                factor.checked_mul(value).and_then(|v| v.checked_add(linear.constant)) == Some(0)
            }
            _ => false,
        }
    }

    /// The condition that a number is in a set.
    pub(crate) fn test(&mut self, term: TermId, set: &IntervalSet) -> Decided {
        if let Term::Slice { of, low: 0, width } = *self.get(term) {
            // A sum that wraps around at the width of its only part.
            let linear = self.linear(of);
            if let [(part, 1)] = linear.terms[..]
                && linear.constant != 0
                && self.bounds(part) == (0, mask(width.into()))
            {
                let modulus = 1i128.checked_shl(width.into()).filter(|_| width < 100);
                if let Some(modulus) = modulus {
                    let set = set.intersect(&IntervalSet::full(width.into()));
                    let shifted = shift(&set, -linear.constant.rem_euclid(modulus), modulus);
                    return self.test(part, &shifted);
                }
            }
        }
        if let Term::Map(of, table) = self.get(term) {
            let (of, numbers) = (*of, table.preimage(set));
            return self.test(of, &numbers);
        }
        let linear = self.linear(term);
        if let [(part, 1)] = linear.terms[..]
            && part != term
        {
            return self.test(part, &shift_wrapping(set, linear.constant));
        }
        if let [(part, factor)] = linear.terms[..]
            && part != term
            && linear.bounds(|t| self.bounds(t)).is_some_and(|b| b.0 >= 0)
        {
            return self.test(part, &unscaled(set, factor, linear.constant));
        }
        let (low, high) = self.bounds(term);
        let possible = IntervalSet::range(low, high);
        if possible.is_subset(set) {
            return Decided::Known(true);
        }
        let set = set.intersect(&possible);
        if set.is_empty() {
            return Decided::Known(false);
        }
        Decided::Open(Atom::Test(term, Arc::new(set)), true)
    }

    /// The condition that two numbers compare so.
    pub(crate) fn compare(&mut self, op: CompareOp, a: TermId, b: TermId) -> Decided {
        let ((a_low, a_high), (b_low, b_high)) = (self.bounds(a), self.bounds(b));
        match op {
            CompareOp::Ne => return self.compare(CompareOp::Eq, a, b).negate(),
            CompareOp::Gt => return self.compare(CompareOp::Lt, b, a),
            CompareOp::Ge => return self.compare(CompareOp::Le, b, a),
            CompareOp::Lt => return self.compare(CompareOp::Le, b, a).negate(),
            CompareOp::Eq if a == b => return Decided::Known(true),
            CompareOp::Eq if a_high < b_low || b_high < a_low => return Decided::Known(false),
            CompareOp::Le if a == b || a_high <= b_low => return Decided::Known(true),
            CompareOp::Le if a_low > b_high => return Decided::Known(false),
            CompareOp::Eq | CompareOp::Le => {}
        }
        match (op, self.as_constant(a), self.as_constant(b)) {
            (CompareOp::Eq, _, Some(c)) => return self.test(a, &IntervalSet::single(c)),
            (CompareOp::Eq, Some(c), _) => return self.test(b, &IntervalSet::single(c)),
            (CompareOp::Le, _, Some(c)) => return self.test(a, &IntervalSet::range(0, c)),
            (CompareOp::Le, Some(c), _) => {
                return self.test(b, &IntervalSet::range(c, u128::MAX));
            }
            _ => {}
        }
        let (a, b) = if op == CompareOp::Eq && a > b { (b, a) } else { (a, b) };
        Decided::Open(Atom::Compare(op, a, b), true)
    }
}

/// The numbers `v` below `modulus` for which `v - by` (mod `modulus`) is in the set.
fn shift(set: &IntervalSet, by: i128, modulus: i128) -> IntervalSet {
    let mut all = Vec::new();
    for &(low, high) in set.intervals() {
        let low = (low as i128 + by).rem_euclid(modulus) as u128;
        let high = (high as i128 + by).rem_euclid(modulus) as u128;
        if low <= high {
            all.push((low, high));
        } else {
            all.extend([(0, high), (low, modulus as u128 - 1)]);
        }
    }
    IntervalSet::from_intervals(all)
}

/// The numbers `v` of 128 bits for which `v + constant`, wrapping, is in the set.
fn shift_wrapping(set: &IntervalSet, constant: i128) -> IntervalSet {
    let mut all = Vec::new();
    for &(low, high) in set.intervals() {
        let by = constant as u128;
        let (low, high) = (low.wrapping_sub(by), high.wrapping_sub(by));
        if low <= high {
            all.push((low, high));
        } else {
            all.extend([(0, high), (low, u128::MAX)]);
        }
    }
    IntervalSet::from_intervals(all)
}

/// The numbers `v` for which `factor · v + constant` is in the set; nothing wraps.
fn unscaled(set: &IntervalSet, factor: i128, constant: i128) -> IntervalSet {
    let mut all = Vec::new();
    for &(low, high) in set.intervals() {
        let signed = |v: u128| i128::try_from(v).unwrap_or(i128::MAX / 2).min(i128::MAX / 2);
        let (low, high) = (signed(low) - constant, signed(high) - constant);
        let (low, high) = if factor > 0 { (low, high) } else { (-high, -low) };
        let by = factor.abs();
        let (low, high) =
            (low.div_euclid(by) + i128::from(low.rem_euclid(by) != 0), high.div_euclid(by));
        if high >= 0 && low <= high {
            all.push((low.max(0) as u128, high as u128));
        }
    }
    IntervalSet::from_intervals(all)
}
