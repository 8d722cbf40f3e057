//! Terms, made so that equal numbers are, as far as can be told, one term.
//!
//! Sums are kept as linear combinations of other terms. That is what makes offsets, lengths and
//! time-to-lives add up along a chain, and what lets many updates of a checksum become one:
//! inverting 16 bits is `0xffff - x`, and `fold(fold(a) + b)` is `fold(a + b)` (RFC 1624).

use foldhash::HashMap;
use ir::field::{Base, Field};
use ir::hash::HashFunction;
use ir::interp::fold16;
use ir::model::{BinaryOp, CompareOp};
use ir::program::numbers::Numbers;
use ir::program::{Atom, LookupId, OnesSum, StateId, Term, TermId};
use ir::{IntervalSet, RangeMap};
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
    /// What numbers each can be, whatever the packet.
    numbers: Vec<Numbers>,
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
        self.numbers[term.0 as usize].bounds
    }

    /// How many bits a term has.
    pub(crate) fn width(&self, term: TermId) -> u16 {
        self.numbers[term.0 as usize].width
    }

    pub(crate) fn as_constant(&self, term: TermId) -> Option<u128> {
        match self.get(term) {
            Term::Const(value) => Some(*value),
            _ => None,
        }
    }

    fn intern(&mut self, term: Term) -> TermId {
        if let Some(&id) = self.index.get(&term) {
            return id;
        }
        let numbers = Numbers::of(&term, |operand| self.numbers[operand.0 as usize]);
        self.add(term, numbers)
    }

    fn add(&mut self, term: Term, numbers: Numbers) -> TermId {
        let id = TermId(self.terms.len() as u32);
        self.linear.push(match term {
            Term::Const(value) if value < LARGE as u128 => Linear::constant(value as i128),
            _ => Linear::term(id),
        });
        self.terms.push(term.clone());
        self.numbers.push(numbers);
        self.index.insert(term, id);
        id
    }

    pub(crate) fn constant(&mut self, value: u128) -> TermId {
        self.intern(Term::Const(value))
    }

    pub(crate) fn input(&mut self, field: Field) -> TermId {
        self.intern(Term::Input(field))
    }

    pub(crate) fn position(&mut self, header: Header) -> TermId {
        self.intern(Term::Position(header))
    }

    /// A number of `width` bits that a lookup binds.
    pub(crate) fn bound(&mut self, lookup: LookupId, index: u8, width: u16) -> TermId {
        let term = Term::Bound(lookup, index);
        match self.index.get(&term) {
            Some(&known) => known,
            None => self.add(term, Numbers::of_width(width)),
        }
    }

    /// What a cell of `width` bits holds.
    pub(crate) fn cell(&mut self, cells: StateId, index: u16, width: u16) -> TermId {
        let term = Term::Cell(cells, index);
        match self.index.get(&term) {
            Some(&known) => known,
            None => self.add(term, Numbers::of_width(width)),
        }
    }

    pub(crate) fn now(&mut self) -> TermId {
        self.intern(Term::Now)
    }

    pub(crate) fn sum16(&mut self, offset: u16, length: TermId) -> TermId {
        self.intern(Term::Sum16 { offset, length })
    }

    pub(crate) fn hash(&mut self, function: HashFunction, numbers: Vec<TermId>) -> TermId {
        let constants: Option<Vec<u128>> = numbers.iter().map(|&t| self.as_constant(t)).collect();
        match constants {
            Some(constants) => self.constant(function.hash(constants).into()),
            None => self.intern(Term::Hash(function, numbers)),
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
        if let ([(fold, -1)], 0xffff) = (&linear.terms[..], linear.constant)
            && let Term::OnesSum(sum) = self.get(*fold)
        {
            let checksum = OnesSum { complement: !sum.complement, ..sum.clone() };
            let id = self.intern(Term::OnesSum(checksum));
            self.linear[id.0 as usize] = linear.clone();
            return id;
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
            let product = self.product(term, coefficient.unsigned_abs());
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
        let known = &mut self.linear[sum.0 as usize];
        if known.terms == [(sum, 1)] {
            *known = linear.clone();
        }
        sum
    }

    /// The operation as it stands.
    fn raw(&mut self, op: BinaryOp, a: TermId, b: TermId) -> TermId {
        self.intern(Term::Binary(op, a, b))
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
            _ => self.intern(Term::Slice { of, low: low as u8, width: width as u8 }),
        }
    }

    /// `high << width | low`.
    pub(crate) fn concat(&mut self, high: TermId, low: TermId, width: u32) -> TermId {
        if width == 0 || self.as_constant(high) == Some(0) {
            return if width == 0 { high } else { low };
        }
        let low = self.slice(low, 0, width);
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
        self.intern(Term::Concat { high, low, width: width as u8 })
    }

    /// A sum folded to 16 bits.
    pub(crate) fn fold(&mut self, sum: TermId) -> TermId {
        let mut linear = self.linear(sum).clone();
        // fold(fold(a) + b) = fold(a + b), if neither is negative.
        let positive =
            |terms: &Self, l: &Linear| l.bounds(|t| terms.bounds(t)).is_some_and(|b| b.0 >= 0);
        loop {
            let mut single = linear.terms.iter().filter(|t| t.1 == 1);
            let inner = single.find_map(|&(t, _)| Some((t, self.folded(t)?)));
            let Some((fold, inner)) = inner else { break };
            let Some(rest) = linear.add(&Linear::term(fold), -1) else { break };
            match rest.add(&inner, 1).filter(|_| positive(self, &rest) && positive(self, &inner)) {
                Some(sum) => linear = sum,
                None => break,
            }
        }
        if linear.terms.is_empty() {
            return self.constant(fold16(linear.constant as u128));
        }
        let sum = self.words(&linear).unwrap_or_else(|| OnesSum::of(self.sum_of(&linear)));
        self.intern(Term::OnesSum(sum))
    }

    /// What is folded in a ones' complement sum.
    pub(crate) fn folded(&self, term: TermId) -> Option<Linear> {
        let Term::OnesSum(sum @ OnesSum { complement: false, .. }) = self.get(term) else {
            return None;
        };
        let all = sum.plus.iter().map(|t| (t, 1)).chain(sum.minus.iter().map(|t| (t, -1)));
        all.into_iter().try_fold(Linear::constant(sum.excess().into()), |total, (&term, sign)| {
            total.add(self.linear(term), sign)
        })
    }

    /// The words whose ones' complement sum a linear combination comes to; `None` if it wraps, or
    /// takes off what are no words.
    fn words(&mut self, linear: &Linear) -> Option<OnesSum> {
        let (low, _) = linear.bounds(|t| self.bounds(t)).filter(|bounds| bounds.0 >= 0)?;
        let taken = linear.terms.iter().filter(|t| t.1 < 0);
        let minus: Option<Vec<TermId>> =
            taken.map(|&(t, c)| (c == -1 && self.bounds(t).1 <= 0xffff).then_some(t)).collect();
        let minus = minus?;
        // Multiples of 0xffff make no difference to a sum that is not 0.
        let constant = linear.constant - 0xffff * minus.len() as i128;
        let constant = match u16::try_from(constant) {
            Ok(constant) => constant,
            Err(_) if low > 0 => (constant - 1).rem_euclid(0xffff) as u16 + 1,
            Err(_) => return None,
        };
        let added = linear.terms.iter().filter(|t| t.1 > 0).copied().collect::<Vec<_>>();
        let plus = added.into_iter().map(|(t, c)| self.product(t, c as u128)).collect();
        Some(OnesSum { complement: false, plus, minus, constant })
    }

    fn product(&mut self, term: TermId, factor: u128) -> TermId {
        if factor == 1 {
            return term;
        }
        let by = self.constant(factor);
        let product = self.raw(BinaryOp::Mul, term, by);
        self.linear[product.0 as usize] =
            Linear { terms: vec![(term, factor as i128)], constant: 0 };
        product
    }

    /// What a table maps a number to.
    pub(crate) fn map(&mut self, of: TermId, table: &Arc<RangeMap>) -> TermId {
        let (low, high) = self.bounds(of);
        match table.image(&IntervalSet::range(low, high)).as_single() {
            Some(value) => self.constant(value),
            None => self.intern(Term::Map(of, Arc::clone(table))),
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
        self.intern(Term::NonZero(value))
    }

    /// An update of a UDP checksum that was updated before, as one update: of
    /// `0xffff - fold(0xffff - nz(0xffff - fold(a)) + b)` the same with `fold(a + b)`. Inside of
    /// [`Term::NonZero`] only: the two differ in which zero they are.
    fn through_non_zero(&mut self, value: TermId) -> Option<TermId> {
        let inverted = |terms: &Self, t: TermId| -> Option<Linear> {
            match terms.linear(t) {
                Linear { terms: sum, constant: 0xffff } => match sum[..] {
                    [(fold, -1)] => terms.folded(fold),
                    _ => None,
                },
                _ => None,
            }
        };
        let linear = inverted(self, value)?;
        let (updated, before) = linear.terms.iter().find_map(|&(t, c)| match self.get(t) {
            Term::NonZero(inner) if c == -1 => Some((t, inverted(self, *inner)?)),
            _ => None,
        })?;
        let rest = linear.add(&Linear::term(updated), 1)?.add(&Linear::constant(0xffff), -1)?;
        let positive = |l: &Linear| l.bounds(|t| self.bounds(t)).is_some_and(|b| b.0 >= 0);
        if !positive(&rest) || !positive(&before) {
            return None;
        }
        let sum = self.sum_of(&rest.add(&before, 1)?);
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
        self.intern(Term::Choose(atom, then, otherwise))
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
