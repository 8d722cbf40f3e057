//! Terms of two programs as one: each number is brought to a normal form, and equal forms are one.
//!
//! The rules are the verifier's own: what the optimiser takes to be equal is not believed here.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ir::field::meta;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, LookupId, OnesSum, Term, TermId};
use ir::{Base, Field, IntervalSet, RangeMap};

/// A lookup in a flow table, by what is looked up where: two that agree find the same flow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lookup {
    /// Owner and name of the table.
    pub(crate) table: (String, &'static str),
    /// What is looked up.
    pub(crate) key: Vec<TermId>,
}

/// A condition in its normal form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Condition {
    /// It always or never holds.
    Const(bool),
    /// It holds if the atom does.
    Is(Atom),
    /// It holds if the atom does not.
    Not(Atom),
}

impl Condition {
    /// The opposite.
    pub(crate) fn negate(self) -> Self {
        match self {
            Condition::Const(value) => Condition::Const(!value),
            Condition::Is(atom) => Condition::Not(atom),
            Condition::Not(atom) => Condition::Is(atom),
        }
    }
}

/// A sum of terms with coefficients, and a constant; all modulo 2^128.
#[derive(Clone, Debug, Default)]
pub(crate) struct Linear {
    /// Terms and their coefficients, in order; none is 0.
    pub(crate) terms: Vec<(TermId, u128)>,
    /// The constant.
    pub(crate) constant: u128,
}

impl Linear {
    fn add(&mut self, term: TermId, coefficient: u128) {
        match self.terms.binary_search_by_key(&term, |t| t.0) {
            Ok(i) => {
                self.terms[i].1 = self.terms[i].1.wrapping_add(coefficient);
                if self.terms[i].1 == 0 {
                    self.terms.remove(i);
                }
            }
            Err(i) if coefficient != 0 => self.terms.insert(i, (term, coefficient)),
            Err(_) => {}
        }
    }

    fn add_all(&mut self, other: &Linear, factor: u128) {
        for &(term, coefficient) in &other.terms {
            self.add(term, coefficient.wrapping_mul(factor));
        }
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
    }
}

struct Info {
    term: Term,
    /// The least and the greatest number that it can be.
    bounds: (u128, u128),
    /// What of the packet and of state it is made from: see [`Arena::leaves`].
    leaves: u128,
}

/// All terms, each once and in its normal form, behind its operands.
#[derive(Default)]
pub(crate) struct Arena {
    terms: Vec<Info>,
    ids: HashMap<Term, TermId>,
    lookups: Vec<Lookup>,
    lookup_ids: HashMap<Lookup, LookupId>,
    /// Widths of what lookups bind, where they are declared.
    widths: HashMap<(LookupId, u8), u16>,
    /// Bits of what tables map numbers to, by lowest bit and width: tables are large.
    of_maps: HashMap<(TermId, u32, u32), TermId>,
}

fn ones(width: u32) -> u128 {
    match width {
        0 => 0,
        width => u128::MAX >> (128 - width.min(128)),
    }
}

fn width_of(max: u128) -> u32 {
    128 - max.leading_zeros()
}

/// Where a place of the packet or of state is marked in [`Arena::leaves`].
fn mark(kind: u32, number: u32) -> u128 {
    1 << (kind.wrapping_mul(37).wrapping_add(number) % 128)
}

fn field_leaves(field: Field) -> u128 {
    let (first, last) = field.byte_range();
    let kind = match field.base {
        Base::Data => 0,
        Base::Annotation => 1,
        Base::Meta => 2,
        Base::Carried => 3,
        Base::Header(header) => 4 + header as u32,
    };
    // A field of the packet reads as 0 if the packet is too short.
    let length = if field.base == Base::Data { field_leaves(meta::LEN) } else { 0 };
    (first..last.max(first + 1)).fold(length, |leaves, byte| leaves | mark(kind, byte as u32))
}

impl Arena {
    /// A term.
    pub(crate) fn term(&self, id: TermId) -> &Term {
        &self.terms[id.0 as usize].term
    }

    /// The least and the greatest number that a term can be.
    pub(crate) fn bounds(&self, id: TermId) -> (u128, u128) {
        self.terms[id.0 as usize].bounds
    }

    /// What a term is made from, as a set of 128 marks. Terms whose sets are apart have nothing in
    /// common: the opposite need not hold.
    pub(crate) fn leaves(&self, id: TermId) -> u128 {
        self.terms[id.0 as usize].leaves
    }

    /// The leaves of a condition.
    pub(crate) fn atom_leaves(&self, atom: &Atom) -> u128 {
        atom.operands().into_iter().fold(0, |leaves, term| leaves | self.leaves(term))
    }

    /// A lookup.
    pub(crate) fn lookup(&self, id: LookupId) -> &Lookup {
        &self.lookups[usize::from(id.0)]
    }

    /// The mark of a lookup's outcome in sets of leaves.
    pub(crate) fn lookup_leaves(&self, id: LookupId) -> u128 {
        let key = self.lookup(id).key.iter().fold(0, |leaves, &term| leaves | self.leaves(term));
        key | mark(7, id.0.into())
    }

    /// A term in its normal form, if there is one.
    pub(crate) fn find(&self, term: &Term) -> Option<TermId> {
        self.ids.get(term).copied()
    }

    /// The number of terms.
    pub(crate) fn len(&self) -> usize {
        self.terms.len()
    }

    /// The conditions on which some terms depend.
    pub(crate) fn choices(&self, terms: &[TermId]) -> Vec<Atom> {
        let mut seen: HashSet<TermId> = terms.iter().copied().collect();
        let (mut waiting, mut atoms) = (terms.to_vec(), Vec::new());
        while let Some(term) = waiting.pop() {
            let term = self.term(term);
            if let Term::Choose(atom, ..) = term
                && !atoms.contains(atom)
            {
                atoms.push(atom.clone());
            }
            waiting.extend(term.operands().into_iter().filter(|&t| seen.insert(t)));
        }
        atoms
    }

    /// A lookup, known or new.
    pub(crate) fn add_lookup(&mut self, lookup: Lookup) -> LookupId {
        let next = LookupId(self.lookups.len() as u16);
        let id = *self.lookup_ids.entry(lookup.clone()).or_insert(next);
        if id == next {
            self.lookups.push(lookup);
        }
        id
    }

    /// Declares how many bits a number has that a lookup binds.
    pub(crate) fn declare_width(&mut self, lookup: LookupId, index: u8, width: u16) {
        self.widths.insert((lookup, index), width);
    }

    /// A constant.
    pub(crate) fn constant(&mut self, value: u128) -> TermId {
        self.intern(Term::Const(value))
    }

    /// The constant that a term is, if it is one.
    pub(crate) fn as_constant(&self, id: TermId) -> Option<u128> {
        match self.term(id) {
            Term::Const(value) => Some(*value),
            _ => None,
        }
    }

    /// The normal form of a term whose operands are in this arena.
    pub(crate) fn make(&mut self, term: Term) -> TermId {
        match term {
            Term::Binary(op, a, b) => self.binary(op, a, b),
            Term::Slice { of, low, width } => self.slice(of, low.into(), width.into()),
            Term::Concat { high, low, width } => self.concat(high, low, width.into()),
            Term::OnesSum(sum) => {
                let mut all = Linear { terms: Vec::new(), constant: sum.excess().into() };
                sum.plus.iter().for_each(|&t| all.add_all(&self.linear(t), 1));
                sum.minus.iter().for_each(|&t| all.add_all(&self.linear(t), u128::MAX));
                let of = self.sum(&all);
                let folded = self.fold(of);
                if sum.complement { self.complement(folded, 0xffff) } else { folded }
            }
            Term::NonZero(of) => match (self.as_constant(of), self.bounds(of)) {
                (Some(0), _) => self.constant(0xffff),
                (_, (1.., _)) => of,
                _ => self.intern(Term::NonZero(of)),
            },
            Term::Choose(atom, a, b) => self.choose(atom, a, b),
            Term::Map(of, table) => self.map(of, &table),
            Term::Hash(function, numbers) => {
                let constants: Option<Vec<u128>> =
                    numbers.iter().map(|&n| self.as_constant(n)).collect();
                match constants {
                    Some(numbers) => self.constant(function.hash(numbers).into()),
                    None => self.intern(Term::Hash(function, numbers)),
                }
            }
            other => self.intern(other),
        }
    }

    fn intern(&mut self, term: Term) -> TermId {
        if let Some(&id) = self.ids.get(&term) {
            return id;
        }
        let id = TermId(self.terms.len() as u32);
        let bounds = self.bounds_of(&term);
        let leaves = match &term {
            Term::Const(_) => 0,
            Term::Input(field) => field_leaves(*field),
            Term::Position(header) => mark(8, *header as u32),
            Term::Bound(lookup, index) => {
                self.lookup_leaves(*lookup) | mark(9, u32::from(lookup.0) * 16 + u32::from(*index))
            }
            Term::Sum16 { offset, length } => self.leaves(*length) | mark(10, u32::from(*offset)),
            Term::Now => mark(11, 0),
            other => other.operands().into_iter().fold(0, |l, t| l | self.leaves(t)),
        };
        self.terms.push(Info { term: term.clone(), bounds, leaves });
        self.ids.insert(term, id);
        id
    }

    fn bounds_of(&self, term: &Term) -> (u128, u128) {
        let of = |id: &TermId| self.bounds(*id);
        match term {
            Term::Const(value) => (*value, *value),
            Term::Input(field) => (0, (*field).max()),
            Term::Position(_) => (0, u32::MAX.into()),
            Term::Bound(lookup, index) => {
                let width = self.widths.get(&(*lookup, *index)).copied().unwrap_or(128);
                (0, ones(width.into()))
            }
            Term::Sum16 { .. } => (0, 0xffff),
            Term::Now | Term::Hash(..) => (0, u64::MAX.into()),
            Term::OnesSum(sum) => {
                let (least, most) = sum.only().map_or((0, u128::MAX), |of_| of(&of_));
                (least.min(1), most.min(0xffff))
            }
            // Imported as what a lookup binds.
            Term::Cell(..) => (0, u128::MAX),
            Term::NonZero(t) => (1, of(t).1.max(0xffff)),
            Term::Slice { width, .. } => (0, ones((*width).into())),
            Term::Concat { high, low, width } => {
                let ((hl, hh), (ll, lh)) = (of(high), of(low));
                let shift = |n: u128| n.checked_shl((*width).into()).unwrap_or(0);
                if width_of(hh) + u32::from(*width) > 128 {
                    return (0, u128::MAX);
                }
                (shift(hl) | ll, shift(hh) | lh)
            }
            Term::Choose(_, a, b) => (of(a).0.min(of(b).0), of(a).1.max(of(b).1)),
            Term::Map(number, table) => {
                ends(&table.image(&self.range(*number))).unwrap_or((0, u128::MAX))
            }
            Term::Binary(op, a, b) => apply_to_bounds(*op, of(a), of(b)),
        }
    }

    /// A term as a sum.
    pub(crate) fn linear(&self, id: TermId) -> Linear {
        let mut sum = Linear::default();
        self.add_linear(id, 1, &mut sum);
        sum
    }

    fn add_linear(&self, id: TermId, factor: u128, sum: &mut Linear) {
        let mut waiting = vec![(id, factor)];
        while let Some((id, factor)) = waiting.pop() {
            match self.term(id) {
                Term::Const(value) => {
                    sum.constant = sum.constant.wrapping_add(value.wrapping_mul(factor));
                }
                Term::Binary(BinaryOp::Add, a, b) => waiting.extend([(*a, factor), (*b, factor)]),
                Term::Binary(BinaryOp::Mul, a, b) if self.as_constant(*b).is_some() => {
                    let constant = self.as_constant(*b).unwrap_or(0);
                    waiting.push((*a, factor.wrapping_mul(constant)));
                }
                Term::Concat { high, low, width } if self.as_constant(*low).is_some() => {
                    let low = self.as_constant(*low).unwrap_or(0);
                    sum.constant = sum.constant.wrapping_add(low.wrapping_mul(factor));
                    waiting.push((*high, factor.wrapping_mul(1 << width)));
                }
                _ => sum.add(id, factor),
            }
        }
    }

    /// The term of a sum.
    pub(crate) fn sum(&mut self, sum: &Linear) -> TermId {
        // Bits beside bits are a concatenation, however they were put together.
        let parts: Vec<(TermId, u128)> = sum.terms.clone();
        if let ([(high, c)], low) = (&parts[..], sum.constant)
            && c.is_power_of_two()
            && *c > 1
            && low < *c
        {
            let low = self.constant(low);
            return self.concat(*high, low, c.trailing_zeros());
        }
        if let ([(a, ca), (b, cb)], 0) = (&parts[..], sum.constant) {
            let fits = |low: TermId, c: u128| c.is_power_of_two() && self.bounds(low).1 < c;
            if *ca == 1 && *cb > 1 && fits(*a, *cb) {
                return self.concat(*b, *a, cb.trailing_zeros());
            }
            if *cb == 1 && *ca > 1 && fits(*b, *ca) {
                return self.concat(*a, *b, ca.trailing_zeros());
            }
        }
        let mut result: Option<TermId> = None;
        for (term, coefficient) in parts {
            let part = if coefficient == 1 {
                term
            } else {
                let coefficient = self.constant(coefficient);
                self.intern(Term::Binary(BinaryOp::Mul, term, coefficient))
            };
            result = Some(match result {
                None => part,
                Some(result) => self.intern(Term::Binary(BinaryOp::Add, result, part)),
            });
        }
        match result {
            None => self.constant(sum.constant),
            Some(result) if sum.constant == 0 => result,
            Some(result) => {
                let constant = self.constant(sum.constant);
                self.intern(Term::Binary(BinaryOp::Add, result, constant))
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: TermId, b: TermId) -> TermId {
        let (x, y) = (self.as_constant(a), self.as_constant(b));
        if let (Some(x), Some(y)) = (x, y) {
            return self.constant(op.apply(x, y));
        }
        let ((al, ah), (bl, bh)) = (self.bounds(a), self.bounds(b));
        match (op, x, y) {
            (BinaryOp::Add | BinaryOp::Sub, ..) => {
                let mut sum = self.linear(a);
                let factor = if op == BinaryOp::Add { 1 } else { u128::MAX };
                sum.add_all(&self.linear(b), factor);
                self.sum(&sum)
            }
            (BinaryOp::Mul, Some(c), _) => self.scale(b, c),
            (BinaryOp::Mul, _, Some(c)) => self.scale(a, c),
            (BinaryOp::Shl, _, Some(n)) if n >= 128 => self.constant(0),
            (BinaryOp::Shl, _, Some(n)) => self.scale(a, 1 << n),
            (BinaryOp::Shr, _, Some(n)) => match width_of(ah) {
                width if u128::from(width) <= n => self.constant(0),
                width => self.slice(a, n as u32, width - n as u32),
            },
            (BinaryOp::Div, _, Some(c)) if c.is_power_of_two() => {
                let n = self.constant(c.trailing_zeros().into());
                self.binary(BinaryOp::Shr, a, n)
            }
            (BinaryOp::Rem, _, Some(c)) if c.is_power_of_two() => {
                self.slice(a, 0, c.trailing_zeros())
            }
            (BinaryOp::Rem, _, Some(c)) if ah < c => a,
            (BinaryOp::And, Some(mask), _) => self.and_mask(b, mask),
            (BinaryOp::And, _, Some(mask)) => self.and_mask(a, mask),
            (BinaryOp::Or | BinaryOp::Xor, _, Some(0)) => a,
            (BinaryOp::Or | BinaryOp::Xor, Some(0), _) => b,
            (BinaryOp::Xor, Some(c), _) if c == ones(width_of(c)) && bh <= c => {
                self.complement(b, c)
            }
            (BinaryOp::Xor, _, Some(c)) if c == ones(width_of(c)) && ah <= c => {
                self.complement(a, c)
            }
            (BinaryOp::Or | BinaryOp::Xor, ..) => {
                let beside = |high: TermId, low: TermId| match *self.term(high) {
                    Term::Concat { high, low: zero, width }
                        if self.as_constant(zero) == Some(0)
                            && width_of(self.bounds(low).1) <= width.into() =>
                    {
                        Some((high, low, u32::from(width)))
                    }
                    _ => None,
                };
                match beside(a, b).or(beside(b, a)) {
                    Some((high, low, width)) => self.concat(high, low, width),
                    None if a == b && op == BinaryOp::Or => a,
                    None if a == b => self.constant(0),
                    None => self.intern(Term::Binary(op, a.min(b), a.max(b))),
                }
            }
            (BinaryOp::And, ..) if a == b => a,
            (BinaryOp::Min, ..) if a == b || ah <= bl => a,
            (BinaryOp::Min, ..) if bh <= al => b,
            (BinaryOp::Max, ..) if a == b || bh <= al => a,
            (BinaryOp::Max, ..) if ah <= bl => b,
            (BinaryOp::And | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max, ..) => {
                self.intern(Term::Binary(op, a.min(b), a.max(b)))
            }
            _ => self.intern(Term::Binary(op, a, b)),
        }
    }

    fn scale(&mut self, term: TermId, factor: u128) -> TermId {
        let mut sum = Linear::default();
        sum.add_all(&self.linear(term), factor);
        self.sum(&sum)
    }

    /// All bits of a number of at most the width of `all`, inverted.
    fn complement(&mut self, term: TermId, all: u128) -> TermId {
        let mut sum = Linear { terms: Vec::new(), constant: all };
        sum.add_all(&self.linear(term), u128::MAX);
        self.sum(&sum)
    }

    fn and_mask(&mut self, term: TermId, mask: u128) -> TermId {
        let low = mask.trailing_zeros();
        let width = mask.count_ones();
        if mask == 0 {
            return self.constant(0);
        }
        if ones(width) << low != mask {
            let mask = self.constant(mask);
            return self.intern(Term::Binary(BinaryOp::And, term.min(mask), term.max(mask)));
        }
        let kept = self.slice(term, low, width);
        self.scale(kept, 1 << low)
    }

    fn is_bitwise(&self, term: TermId) -> bool {
        matches!(self.term(term), Term::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor, ..))
    }

    /// `width` bits of a number, from bit `low` on.
    pub(crate) fn slice(&mut self, of: TermId, low: u32, width: u32) -> TermId {
        let (least, most) = self.bounds(of);
        if low >= width_of(most) || width == 0 {
            return self.constant(0);
        }
        if least == most {
            return self.constant(least >> low & ones(width));
        }
        let width = width.min(width_of(most) - low);
        if low == 0 && width == width_of(most) {
            return of;
        }
        match self.term(of).clone() {
            Term::Slice { of, low: inner, .. } => self.slice(of, low + u32::from(inner), width),
            Term::Concat { high, low: lower, width: at } => {
                let at = u32::from(at);
                if low >= at {
                    self.slice(high, low - at, width)
                } else if low + width <= at {
                    self.slice(lower, low, width)
                } else {
                    let upper = self.slice(high, 0, low + width - at);
                    let lower = self.slice(lower, low, at - low);
                    self.concat(upper, lower, at - low)
                }
            }
            Term::Input(field) if matches!(field.base, Base::Data | Base::Annotation) => {
                let from_left = u32::from(field.width) - low - width;
                let offset = field.offset + from_left as u16;
                self.intern(Term::Input(Field::bits(field.base, offset, width as u16)))
            }
            Term::Map(number, table) => {
                if let Some(&known) = self.of_maps.get(&(of, low, width)) {
                    return known;
                }
                let table = table.map(|value| value >> low & ones(width));
                let slice = self.map(number, &Arc::new(table));
                self.of_maps.insert((of, low, width), slice);
                slice
            }
            Term::Choose(atom, a, b) => {
                let (a, b) = (self.slice(a, low, width), self.slice(b, low, width));
                self.choose(atom, a, b)
            }
            // Not through rounds of them, each of which would double the work.
            Term::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Xor), a, b)
                if ![a, b].iter().any(|of| self.is_bitwise(*of)) =>
            {
                let (a, b) = (self.slice(a, low, width), self.slice(b, low, width));
                self.binary(op, a, b)
            }
            _ => self.intern(Term::Slice { of, low: low as u8, width: width as u8 }),
        }
    }

    /// A number and `width` bits behind it.
    fn concat(&mut self, high: TermId, low: TermId, width: u32) -> TermId {
        match width {
            0 => return high,
            128.. => return low,
            _ => {}
        }
        if let Term::Concat { high: first, low: second, width: inner } = *self.term(high)
            && u32::from(inner) + width <= 128
        {
            let rest = self.concat(second, low, width);
            return self.concat(first, rest, u32::from(inner) + width);
        }
        // Bits that are beside each other in one field are put together first.
        if let Term::Concat { high: first, low: second, width: inner } = *self.term(low)
            && let Some(between @ 1..) = width.checked_sub(inner.into())
        {
            let joined = self.concat(high, first, between);
            if !matches!(self.term(joined), Term::Concat { .. }) {
                return self.concat(joined, second, inner.into());
            }
        }
        match (self.term(high).clone(), self.term(low).clone()) {
            (Term::Const(0), _) => low,
            (Term::Const(h), Term::Const(l)) if width < 128 => self.constant(h << width | l),
            (Term::Input(h), Term::Input(l))
                if h.base == l.base
                    && matches!(h.base, Base::Data | Base::Annotation)
                    && u32::from(l.width) == width
                    && h.offset.checked_add(h.width) == Some(l.offset)
                    && h.width + l.width <= 128 =>
            {
                self.intern(Term::Input(Field::bits(h.base, h.offset, h.width + l.width)))
            }
            (Term::Slice { of: h, low: at, width: wide }, Term::Slice { of: l, low: from, .. })
                if h == l && u32::from(from) + width == u32::from(at) =>
            {
                self.slice(h, from.into(), u32::from(wide) + width)
            }
            (Term::Slice { of, low: at, .. }, _)
                if u32::from(at) == width && self.is_low_part(low, of, width) =>
            {
                let wide = width_of(self.bounds(high).1);
                self.slice(of, 0, wide + width)
            }
            _ => self.intern(Term::Concat { high, low, width: width as u8 }),
        }
    }

    fn is_low_part(&self, low: TermId, of: TermId, width: u32) -> bool {
        matches!(*self.term(low), Term::Slice { of: other, low: 0, width: w }
            if other == of && u32::from(w) == width)
    }

    /// A sum folded to 16 bits. What was folded before need not be: the sum stays 0 only for 0.
    fn fold(&mut self, of: TermId) -> TermId {
        if let Some(value) = self.as_constant(of) {
            return self.constant(if value == 0 { 0 } else { (value - 1) % 0xffff + 1 });
        }
        if self.bounds(of).1 <= 0xffff {
            return of;
        }
        let mut sum = self.linear(of);
        // Only sums of what cannot wrap may be looked into.
        let mut total = sum.constant;
        let mut small = sum.constant < 1 << 64;
        let mut unfolded = Linear { terms: Vec::new(), constant: sum.constant };
        for &(term, coefficient) in &sum.terms {
            let (inner, most) = match self.term(term) {
                Term::OnesSum(sum) if let Some(inner) = sum.only() => {
                    (self.linear(inner), self.bounds(inner).1)
                }
                _ => (Linear { terms: vec![(term, 1)], constant: 0 }, self.bounds(term).1),
            };
            small &= coefficient < 1 << 32 && most < 1 << 64;
            total = total.saturating_add(most.saturating_mul(coefficient));
            unfolded.add_all(&inner, coefficient);
        }
        if small && total < 1 << 100 {
            sum = unfolded;
        }
        self.reduce_constant(&mut sum);
        let of = self.sum(&sum);
        self.intern(Term::OnesSum(OnesSum::of(of)))
    }

    /// Multiples of 0xffff make no difference to what is folded and never 0.
    fn reduce_constant(&self, sum: &mut Linear) {
        let mut taken: u128 = 0;
        for &(term, coefficient) in &sum.terms {
            let most = self.bounds(term).1;
            let off = coefficient.wrapping_neg();
            if most >= 1 << 64 || coefficient.min(off) >= 1 << 32 {
                return;
            }
            if off < coefficient {
                taken = taken.saturating_add(off * most);
            }
        }
        if let Some(rest @ 1..) = sum.constant.checked_sub(taken)
            && sum.constant < 1 << 100
        {
            sum.constant = taken + (rest - 1) % 0xffff + 1;
        }
    }

    fn map(&mut self, of: TermId, table: &Arc<RangeMap>) -> TermId {
        match table.image(&self.range(of)).as_single() {
            Some(value) => self.constant(value),
            None => self.intern(Term::Map(of, Arc::clone(table))),
        }
    }

    fn choose(&mut self, atom: Atom, a: TermId, b: TermId) -> TermId {
        if a == b {
            return a;
        }
        match self.condition(atom) {
            Condition::Const(true) => a,
            Condition::Const(false) => b,
            Condition::Is(atom) => self.intern(Term::Choose(atom, a, b)),
            Condition::Not(atom) => self.intern(Term::Choose(atom, b, a)),
        }
    }

    /// The numbers between a term's bounds.
    pub(crate) fn range(&self, term: TermId) -> IntervalSet {
        let (least, most) = self.bounds(term);
        IntervalSet::range(least, most)
    }

    /// The normal form of a condition over terms of this arena.
    pub(crate) fn condition(&mut self, atom: Atom) -> Condition {
        match atom {
            Atom::Test(term, set) => self.test(term, &set),
            Atom::Compare(op, a, b) => self.compare(op, a, b),
        }
    }

    /// The normal form of a test. Of the two forms that it has, the one whose set does not hold the
    /// least number is taken.
    fn test(&mut self, term: TermId, set: &IntervalSet) -> Condition {
        let (term, set) = self.reduce(term, set);
        let range = self.range(term);
        let set = set.intersect(&range);
        if set.is_empty() {
            return Condition::Const(false);
        }
        if set == range {
            return Condition::Const(true);
        }
        if let Term::Choose(atom, a, b) = self.term(term).clone()
            && let (Some(a), Some(b)) = (self.as_constant(a), self.as_constant(b))
        {
            return match (set.contains(a), set.contains(b)) {
                (true, false) => Condition::Is(atom),
                (false, true) => Condition::Not(atom),
                (both, _) => Condition::Const(both),
            };
        }
        match set.contains(self.bounds(term).0) {
            true => Condition::Not(Atom::Test(term, range.subtract(&set).into())),
            false => Condition::Is(Atom::Test(term, set.into())),
        }
    }

    /// A test on a number as a test on the one number that it is made from.
    pub(crate) fn reduce(&self, term: TermId, set: &IntervalSet) -> (TermId, IntervalSet) {
        let (mut term, mut set) = (term, set.clone());
        loop {
            let sum = self.linear(term);
            match (&sum.terms[..], sum.constant, self.term(term)) {
                ([(inner, 1)], constant, _) if constant != 0 => {
                    set = shift(&set, constant);
                    term = *inner;
                }
                ([(inner, u128::MAX)], constant, _) => {
                    set = reflect(&set, constant);
                    term = *inner;
                }
                (_, _, Term::Concat { high, low, width })
                    if self.as_constant(*low).is_some()
                        && width_of(self.bounds(*high).1) + u32::from(*width) <= 128 =>
                {
                    set = behind(&set, self.as_constant(*low).unwrap_or(0), (*width).into());
                    term = *high;
                }
                (_, _, Term::Map(number, table)) => {
                    set = table.preimage(&set);
                    term = *number;
                }
                _ => return (term, set),
            }
            set = set.intersect(&self.range(term));
        }
    }

    fn compare(&mut self, op: CompareOp, a: TermId, b: TermId) -> Condition {
        // Everything is said with "equal" and "less or equal".
        match op {
            CompareOp::Ne => return self.compare(CompareOp::Eq, a, b).negate(),
            CompareOp::Lt => return self.compare(CompareOp::Le, b, a).negate(),
            CompareOp::Gt => return self.compare(CompareOp::Le, a, b).negate(),
            CompareOp::Ge => return self.compare(CompareOp::Le, b, a),
            CompareOp::Eq | CompareOp::Le => {}
        }
        let equal = op == CompareOp::Eq;
        if a == b {
            return Condition::Const(true);
        }
        match (self.as_constant(a), self.as_constant(b)) {
            (_, Some(b)) if equal => return self.test(a, &IntervalSet::single(b)),
            (Some(a), _) if equal => return self.test(b, &IntervalSet::single(a)),
            (_, Some(b)) => return self.test(a, &IntervalSet::range(0, b)),
            (Some(a), _) => return self.test(b, &IntervalSet::range(a, u128::MAX)),
            _ => {}
        }
        let ((al, ah), (bl, bh)) = (self.bounds(a), self.bounds(b));
        if equal {
            if ah < bl || bh < al {
                return Condition::Const(false);
            }
            return Condition::Is(Atom::Compare(CompareOp::Eq, a.min(b), a.max(b)));
        }
        if ah <= bl {
            return Condition::Const(true);
        }
        if al > bh {
            return Condition::Const(false);
        }
        Condition::Is(Atom::Compare(CompareOp::Le, a, b))
    }
}

/// Bounds of an operation's result from those of its operands.
pub(crate) fn apply_to_bounds(
    op: BinaryOp,
    (al, ah): (u128, u128),
    (bl, bh): (u128, u128),
) -> (u128, u128) {
    let all = (0, u128::MAX);
    match op {
        BinaryOp::Add => ah.checked_add(bh).map_or(all, |high| (al + bl, high)),
        BinaryOp::Sub if al >= bh => (al - bh, ah - bl),
        BinaryOp::Mul => ah.checked_mul(bh).map_or(all, |high| (al * bl, high)),
        BinaryOp::Div => (0, ah),
        BinaryOp::Rem if bh > 0 => (0, ah.min(bh - 1)),
        BinaryOp::And => (0, ah.min(bh)),
        BinaryOp::Or | BinaryOp::Xor => (0, ones(width_of(ah.max(bh)))),
        BinaryOp::Shr => (0, ah),
        BinaryOp::Min => (al.min(bl), ah.min(bh)),
        BinaryOp::Max => (al.max(bl), ah.max(bh)),
        _ => all,
    }
}

/// The least and the greatest number of a set.
pub(crate) fn ends(set: &IntervalSet) -> Option<(u128, u128)> {
    Some((set.min()?, set.max()?))
}

/// The numbers that are in a set once `by` is added to them.
pub(crate) fn shift(set: &IntervalSet, by: u128) -> IntervalSet {
    let mut intervals = Vec::with_capacity(set.intervals().len() + 1);
    for &(low, high) in set.intervals() {
        let (low, high) = (low.wrapping_sub(by), high.wrapping_sub(by));
        match low <= high {
            true => intervals.push((low, high)),
            false => intervals.extend([(0, high), (low, u128::MAX)]),
        }
    }
    IntervalSet::from_intervals(intervals)
}

/// The numbers that are in a set once they are taken from `from`.
fn reflect(set: &IntervalSet, from: u128) -> IntervalSet {
    let mut intervals = Vec::with_capacity(set.intervals().len() + 1);
    for &(low, high) in set.intervals() {
        let (low, high) = (from.wrapping_sub(high), from.wrapping_sub(low));
        match low <= high {
            true => intervals.push((low, high)),
            false => intervals.extend([(0, high), (low, u128::MAX)]),
        }
    }
    IntervalSet::from_intervals(intervals)
}

/// The numbers that are in a set with the bits of `low` behind them.
fn behind(set: &IntervalSet, low: u128, width: u32) -> IntervalSet {
    let intervals = set.intervals().iter().filter_map(|&(first, last)| {
        // The least n with n << width | low >= first, and the greatest with … <= last.
        let up = first.saturating_sub(low).div_ceil(1 << width);
        let down = last.checked_sub(low)? >> width;
        (up <= down).then_some((up, down))
    });
    IntervalSet::from_intervals(intervals.collect())
}
