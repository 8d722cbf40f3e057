//! What is known of a packet on a path through a chain.

use std::collections::BTreeMap;

use ir::IntervalSet;
use ir::field::{Base, Field};
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, Term, TermId};

use super::terms::{Decided, Linear, Terms};

/// Conditions that hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// What numbers are restricted to, in the order of the terms.
    sets: Vec<(TermId, IntervalSet)>,
    /// Sums that are at most so much.
    at_most: Vec<(Linear, i128)>,
    /// Comparisons of other kinds that were decided.
    compared: Vec<(Atom, bool)>,
    /// Whether nothing is left for some number.
    contradicts: bool,
}

/// How deep terms are looked into.
const DEPTH: u32 = 12;

impl Facts {
    /// What a number can be, as far as is known.
    pub(crate) fn set(&self, terms: &Terms, term: TermId) -> IntervalSet {
        self.set_within(terms, term, DEPTH)
    }

    fn set_within(&self, terms: &Terms, term: TermId, depth: u32) -> IntervalSet {
        let (low, high) = terms.bounds(term);
        let mut set = match self.place(term) {
            Ok(at) => self.sets[at].1.clone(),
            Err(_) => IntervalSet::range(low, high),
        };
        if depth == 0 || low == high || set.as_single().is_some() {
            return set;
        }
        let bounds = |t: TermId| self.bounds_within(terms, t, depth - 1);
        match terms.get(term) {
            Term::Input(field) => {
                if let Some((low, high)) = self.field_bounds(terms, *field, term) {
                    set = set.intersect(&IntervalSet::range(low, high));
                }
            }
            Term::Slice { of, low, width } => {
                let (least, most) = bounds(*of);
                let cut = |v: u128| v >> low & (u128::MAX >> (128 - u32::from(*width)));
                if least >> low >> width == most >> low >> width {
                    set = set.intersect(&IntervalSet::range(cut(least), cut(most)));
                }
            }
            Term::Concat { high, low, width } => {
                let (h, l) = (bounds(*high), bounds(*low));
                let range = IntervalSet::range(h.0 << width | l.0, h.1 << width | l.1);
                set = set.intersect(&range);
            }
            Term::Choose(atom, a, b) => {
                let chosen = match self.holds(terms, atom, depth - 1) {
                    Some(true) => self.set_within(terms, *a, depth - 1),
                    Some(false) => self.set_within(terms, *b, depth - 1),
                    None => {
                        let a = self.set_within(terms, *a, depth - 1);
                        a.union(&self.set_within(terms, *b, depth - 1))
                    }
                };
                set = set.intersect(&chosen);
            }
            Term::Map(of, table) => {
                let image = table.image(&self.set_within(terms, *of, depth - 1));
                set = set.intersect(&image);
            }
            Term::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => {
                let (a, b) = (bounds(*a), bounds(*b));
                let range = match op {
                    BinaryOp::Min => (a.0.min(b.0), a.1.min(b.1)),
                    _ => (a.0.max(b.0), a.1.max(b.1)),
                };
                set = set.intersect(&IntervalSet::range(range.0, range.1));
            }
            Term::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, ..) | Term::OnesSum(_) => {
                let linear = terms.linear(term);
                if linear.terms != [(term, 1)]
                    && let Some((low, high)) = self.linear_bounds(terms, linear, depth - 1)
                    && low >= 0
                {
                    set = set.intersect(&IntervalSet::range(low as u128, high as u128));
                }
            }
            _ => {}
        }
        set
    }

    /// The least and the greatest that a number can be.
    pub(crate) fn bounds(&self, terms: &Terms, term: TermId) -> (u128, u128) {
        self.bounds_within(terms, term, DEPTH)
    }

    fn bounds_within(&self, terms: &Terms, term: TermId, depth: u32) -> (u128, u128) {
        let set = self.set_within(terms, term, depth);
        // An empty set means that no packet comes here: any answer is right.
        (IntervalSet::min(&set).unwrap_or(0), IntervalSet::max(&set).unwrap_or(0))
    }

    fn linear_bounds(&self, terms: &Terms, linear: &Linear, depth: u32) -> Option<(i128, i128)> {
        let (mut low, mut high) = linear.bounds(|t| self.bounds_within(terms, t, depth))?;
        for (known, most) in &self.at_most {
            if known.terms == linear.terms {
                high = high.min(most - known.constant + linear.constant);
            } else if known.terms.len() == linear.terms.len()
                && known.terms.iter().zip(&linear.terms).all(|(a, b)| a.0 == b.0 && a.1 == -b.1)
            {
                low = low.max(known.constant - most + linear.constant);
            }
        }
        Some((low, high))
    }

    /// What is known of a field from fields that share bits with it.
    fn field_bounds(&self, terms: &Terms, field: Field, itself: TermId) -> Option<(u128, u128)> {
        if field.base == Base::Meta {
            return None;
        }
        let (start, end) = (u32::from(field.offset), u32::from(field.offset + field.width));
        let (mut known, mut value) = (0u128, 0u128);
        for &(term, ref set) in &self.sets {
            let Term::Input(other) = terms.get(term) else { continue };
            if term == itself || !other.overlaps(field) {
                continue;
            }
            // Leading bits that all its numbers share.
            let (Some(low), Some(high)) = (set.min(), set.max()) else { continue };
            let shared = u32::from(other.width) - (128 - (low ^ high).leading_zeros());
            let other_start = u32::from(other.offset);
            for bit in other_start.max(start)..(other_start + shared).min(end) {
                let from = u32::from(other.width) - 1 - (bit - other_start);
                let to = u32::from(field.width) - 1 - (bit - start);
                known |= 1 << to;
                value |= (low >> from & 1) << to;
            }
        }
        (known != 0).then(|| (value, value | field.max() & !known))
    }

    /// Whether a condition holds, if that is known.
    pub(crate) fn resolve(&self, terms: &mut Terms, decided: &Decided) -> Option<bool> {
        match decided {
            Decided::Known(value) => Some(*value),
            Decided::Open(atom, holds) => {
                let known = self.holds(terms, atom, DEPTH).or_else(|| self.sum_is(terms, atom));
                known.map(|known| known == *holds)
            }
        }
    }

    /// A comparison of two sums, what is taken off on one side being added to the other: then
    /// neither side wraps, whatever the packet.
    pub(crate) fn plain(&self, terms: &mut Terms, decided: Decided) -> Decided {
        let Decided::Open(Atom::Compare(op, a, b), holds) = decided else { return decided };
        let (x, y) = (terms.linear(a), terms.linear(b));
        let proper =
            |l: &Linear| self.linear_bounds(terms, l, DEPTH).is_some_and(|(low, _)| low >= 0);
        let sides = x.add(y, -1).filter(|_| proper(x) && proper(y)).map(|sum| sum.sides());
        let decided = match sides {
            Some((more, less)) => {
                let (more, less) = (terms.sum_of(&more), terms.sum_of(&less));
                terms.compare(op, more, less)
            }
            None => Decided::Open(Atom::Compare(op, a, b), true),
        };
        if holds { decided } else { decided.negate() }
    }

    fn holds(&self, terms: &Terms, atom: &Atom, depth: u32) -> Option<bool> {
        if depth == 0 {
            return None;
        }
        match atom {
            Atom::Test(term, set) => {
                let possible = self.set_within(terms, *term, depth);
                if possible.is_subset(set) {
                    Some(true)
                } else if !possible.intersects(set) {
                    Some(false)
                } else {
                    None
                }
            }
            Atom::Compare(op, a, b) => {
                if let Some((_, value)) = self.compared.iter().find(|(known, _)| known == atom) {
                    return Some(*value);
                }
                // Where neither side wraps, numbers compare as sums do.
                let (x, y) = (terms.linear(*a), terms.linear(*b));
                let proper = |l: &Linear| {
                    self.linear_bounds(terms, l, depth - 1).is_some_and(|(low, _)| low >= 0)
                };
                if !proper(x) || !proper(y) {
                    return None;
                }
                let (low, high) = self.linear_bounds(terms, &x.add(y, -1)?, depth - 1)?;
                match op {
                    CompareOp::Le if high <= 0 => Some(true),
                    CompareOp::Le if low > 0 => Some(false),
                    CompareOp::Eq if (low, high) == (0, 0) => Some(true),
                    CompareOp::Eq if high < 0 || low > 0 => Some(false),
                    _ => None,
                }
            }
        }
    }

    /// Whether a ones' complement sum is right, where that follows from another being right:
    /// what is added to a sum and taken off a checksum comes to a multiple of 0xffff.
    fn sum_is(&self, terms: &mut Terms, atom: &Atom) -> Option<bool> {
        let Atom::Test(term, set) = atom else { return None };
        let sum = terms.folded(*term)?;
        if set.as_single() != Some(0xffff) || self.linear_bounds(terms, &sum, DEPTH)?.0 <= 0 {
            return None;
        }
        let mut residue = Residue::default();
        residue.add_sum(self, terms, &sum, 1, DEPTH)?;
        residue.constant().map(|rest| rest == 0)
    }

    /// Takes a condition as given.
    pub(crate) fn assume(&mut self, terms: &Terms, atom: &Atom, holds: bool) {
        match atom {
            Atom::Test(term, set) => {
                let possible = self.set(terms, *term);
                let set = if holds { possible.intersect(set) } else { possible.subtract(set) };
                self.restrict(*term, set);
            }
            Atom::Compare(op, a, b) => {
                self.compared.push((atom.clone(), holds));
                let (x, y) = (terms.linear(*a), terms.linear(*b));
                let proper = |l: &Linear| {
                    self.linear_bounds(terms, l, DEPTH).is_some_and(|(low, _)| low >= 0)
                };
                if !proper(x) || !proper(y) {
                    return;
                }
                match (op, holds) {
                    (CompareOp::Le, true) => self.assume_at_most(terms, x.add(y, -1), 0),
                    // Not a <= b: b - a <= -1.
                    (CompareOp::Le, false) => self.assume_at_most(terms, y.add(x, -1), -1),
                    (CompareOp::Eq, true) => {
                        self.assume_at_most(terms, x.add(y, -1), 0);
                        self.assume_at_most(terms, y.add(x, -1), 0);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Takes as given that a number is in a set.
    pub(crate) fn restrict(&mut self, term: TermId, set: IntervalSet) {
        self.contradicts |= set.is_empty();
        match self.place(term) {
            Ok(at) => self.sets[at].1 = set,
            Err(at) => self.sets.insert(at, (term, set)),
        }
    }

    /// Where a number's set stands, or would.
    fn place(&self, term: TermId) -> Result<usize, usize> {
        self.sets.binary_search_by_key(&term, |(term, _)| *term)
    }

    fn assume_at_most(&mut self, terms: &Terms, sum: Option<Linear>, most: i128) {
        let Some(sum) = sum else { return };
        // What this says of each part, the others being as small as can be.
        for &(part, factor) in &sum.terms {
            let mut rest = sum.clone();
            rest.terms.retain(|&(t, _)| t != part);
            let Some((least, _)) = self.linear_bounds(terms, &rest, DEPTH) else { continue };
            let room = most - least;
            let possible = self.set(terms, part);
            let allowed = if factor > 0 {
                match u128::try_from(room.div_euclid(factor)) {
                    Ok(high) => IntervalSet::range(0, high),
                    Err(_) => IntervalSet::empty(),
                }
            } else {
                // factor · x <= room, so x >= room / factor, rounded up.
                let by = -factor;
                let low = (-room).div_euclid(by) + i128::from((-room).rem_euclid(by) != 0);
                IntervalSet::range(u128::try_from(low).unwrap_or(0), u128::MAX)
            };
            if !possible.is_subset(&allowed) {
                self.restrict(part, possible.intersect(&allowed));
            }
        }
        self.at_most.push((sum, most));
    }

    /// Whether no packet can be like this.
    pub(crate) fn is_contradiction(&self) -> bool {
        self.contradicts
    }

    /// The number that a term must be.
    pub(crate) fn single(&self, terms: &Terms, term: TermId) -> Option<u128> {
        self.set(terms, term).as_single()
    }

    /// A number cut to `width` bits: the number itself where it is known to fit.
    pub(crate) fn cut(&self, terms: &mut Terms, term: TermId, width: u32) -> TermId {
        let fits = self.bounds(terms, term).1 <= u128::MAX >> (128 - width);
        if fits { term } else { terms.slice(term, 0, width) }
    }

    /// The lesser of two numbers, if it is known which is.
    pub(crate) fn min(&self, terms: &mut Terms, a: TermId, b: TermId) -> TermId {
        let (le, ge) = (terms.compare(CompareOp::Le, a, b), terms.compare(CompareOp::Le, b, a));
        if self.resolve(terms, &le) == Some(true) {
            a
        } else if self.resolve(terms, &ge) == Some(true) {
            b
        } else {
            terms.binary(BinaryOp::Min, a, b)
        }
    }
}

/// A number's remainder by 0xffff as a combination of the packet's bits and of what is not looked
/// into.
#[derive(Default)]
struct Residue {
    parts: BTreeMap<TermId, u64>,
    rest: u64,
}

impl Residue {
    /// The remainder, if it does not depend on anything.
    fn constant(&self) -> Option<u64> {
        self.parts.values().all(|&c| c == 0).then_some(self.rest)
    }

    /// Adds `factor` times a number that does not wrap.
    fn add(
        &mut self,
        facts: &Facts,
        terms: &mut Terms,
        term: TermId,
        factor: i128,
        depth: u32,
    ) -> Option<()> {
        let factor_here = factor.rem_euclid(0xffff) as u64;
        if let Some(value) = facts.single(terms, term) {
            let value = (value % 0xffff) as u64;
            self.rest = (self.rest + value * factor_here) % 0xffff;
            return Some(());
        }
        let depth = depth.checked_sub(1)?;
        let linear = terms.linear(term);
        if linear.terms != [(term, 1)] {
            let linear = linear.clone();
            return self.add_sum(facts, terms, &linear, factor, depth + 1);
        }
        if let Some(sum) = terms.folded(term) {
            return self.add_sum(facts, terms, &sum, factor, depth);
        }
        match *terms.get(term) {
            Term::NonZero(inner) => return self.add(facts, terms, inner, factor, depth),
            Term::Binary(BinaryOp::Rem, inner, by) if terms.as_constant(by) == Some(0xffff) => {
                return self.add(facts, terms, inner, factor, depth);
            }
            Term::Slice { of, low: 0, width } if facts.bounds(terms, of).1 >> width == 0 => {
                return self.add(facts, terms, of, factor, depth);
            }
            Term::Concat { high, low, width } => {
                let weight = 1i128 << (width % 16);
                self.add(facts, terms, high, weight * i128::from(factor_here), depth)?;
                return self.add(facts, terms, low, factor, depth);
            }
            Term::Input(field) if field.base != Base::Meta => {
                for bit in 0..field.width {
                    let one = Field::bits(field.base, field.offset + field.width - 1 - bit, 1);
                    let one = terms.input(one);
                    let weight = (factor_here << (bit % 16)) % 0xffff;
                    match facts.single(terms, one) {
                        Some(value) => self.rest = (self.rest + value as u64 * weight) % 0xffff,
                        None => self.part(one, weight),
                    }
                }
                return Some(());
            }
            _ => {}
        }
        // 16 bits at a time: 65536 is 1.
        let width = 128 - terms.bounds(term).1.leading_zeros();
        if width <= 16 {
            self.part(term, factor_here);
            return Some(());
        }
        for low in (0..width).step_by(16) {
            let slice = terms.slice(term, low, 16);
            self.part(slice, factor_here);
        }
        Some(())
    }

    fn add_sum(
        &mut self,
        facts: &Facts,
        terms: &mut Terms,
        sum: &Linear,
        factor: i128,
        depth: u32,
    ) -> Option<()> {
        if facts.linear_bounds(terms, sum, DEPTH)?.0 < 0 {
            return None;
        }
        let factor = factor.rem_euclid(0xffff);
        let constant = sum.constant.rem_euclid(0xffff) * factor;
        self.rest = (self.rest + constant as u64) % 0xffff;
        sum.terms.iter().try_for_each(|&(part, coefficient)| {
            self.add(facts, terms, part, coefficient.rem_euclid(0xffff) * factor, depth)
        })
    }

    fn part(&mut self, term: TermId, factor: u64) {
        let sum = self.parts.entry(term).or_default();
        *sum = (*sum + factor) % 0xffff;
    }
}
