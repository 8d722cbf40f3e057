//! What is known of a packet along its path: conditions that held or not, and what follows from them.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use ir::field::meta;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, LookupId, Term, TermId};
use ir::{Base, Field, IntervalSet};

use super::arena::{Arena, Condition, apply_to_bounds, ends, shift};

/// Sets of more intervals than this are not remembered; that only knows less.
const MAX_INTERVALS: usize = 1 << 14;
/// Fields up to this width are reasoned about number by number where fields overlap.
const MAX_ENUMERATED: u16 = 8;

/// Something learned that can be forgotten again.
enum Learned {
    Set(TermId, Option<IntervalSet>),
    Compare(Atom, Option<bool>),
    Lookup(LookupId, Option<bool>),
    Class(u32, Option<u32>),
}

/// What is known. Facts are learned and forgotten in the manner of a stack.
#[derive(Default)]
pub(crate) struct Knowledge {
    sets: HashMap<TermId, IntervalSet>,
    compares: HashMap<Atom, bool>,
    lookups: HashMap<LookupId, bool>,
    /// Where classifications led: node of the classification, node behind it.
    classes: HashMap<u32, u32>,
    log: Vec<Learned>,
    ranges: RefCell<HashMap<TermId, IntervalSet>>,
    /// Leaves of what excluded a number of a field.
    excluding: u128,
}

impl Knowledge {
    /// How much is known: to be given to [`Knowledge::forget`].
    pub(crate) fn level(&self) -> usize {
        self.log.len()
    }

    /// Forgets what was learned since.
    pub(crate) fn forget(&mut self, level: usize) {
        fn restore<K: Eq + Hash, V>(map: &mut HashMap<K, V>, key: K, before: Option<V>) {
            match before {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        if self.log.len() > level {
            self.ranges.get_mut().clear();
        }
        for learned in self.log.drain(level..).rev() {
            match learned {
                Learned::Set(term, before) => restore(&mut self.sets, term, before),
                Learned::Compare(atom, before) => restore(&mut self.compares, atom, before),
                Learned::Lookup(lookup, before) => restore(&mut self.lookups, lookup, before),
                Learned::Class(class, before) => restore(&mut self.classes, class, before),
            }
        }
    }

    /// Learns that a number is in a set; `false` if it cannot be.
    pub(crate) fn learn_set(&mut self, arena: &Arena, term: TermId, set: &IntervalSet) -> bool {
        let (term, set) = arena.reduce(term, set);
        let known = self.known(arena, term);
        let both = known.intersect(&set);
        if both.is_empty() {
            return false;
        }
        if both != known && both.intervals().len() <= MAX_INTERVALS {
            self.ranges.get_mut().clear();
            let before = self.sets.insert(term, both);
            self.log.push(Learned::Set(term, before));
            return self.is_possible_beside(arena, term);
        }
        true
    }

    /// Whether fields that overlap a field, and what is made from it, can be what is known of them.
    fn is_possible_beside(&mut self, arena: &Arena, term: TermId) -> bool {
        let Term::Input(field) = *arena.term(term) else { return true };
        let leaves = arena.leaves(term);
        let depends = |other: &&TermId| match arena.term(**other) {
            Term::Input(place) => **other != term && place.overlaps(field),
            _ => arena.leaves(**other) & leaves != 0,
        };
        let empty = |other: &&TermId| self.known(arena, **other).is_empty();
        let excluding = self.sets.keys().filter(depends).find(empty);
        self.excluding |= excluding.map_or(0, |&other| arena.leaves(other));
        excluding.is_none()
    }

    /// The leaves of what excluded numbers of fields since this was asked: where all of them count in a
    /// [`Knowledge::fingerprint`], it stands for that, too.
    pub(crate) fn take_excluding(&mut self) -> u128 {
        std::mem::take(&mut self.excluding)
    }

    /// Adds to these leaves.
    pub(crate) fn exclude_by(&mut self, leaves: u128) {
        self.excluding |= leaves;
    }

    /// Learns whether a condition holds; `false` if it cannot.
    pub(crate) fn learn(&mut self, arena: &Arena, atom: &Atom, holds: bool) -> bool {
        if let Some(known) = self.truth(arena, atom) {
            return known == holds;
        }
        match atom {
            Atom::Test(term, set) if holds => self.learn_set(arena, *term, set),
            Atom::Test(term, set) => {
                let other = arena.range(*term).subtract(set);
                self.learn_set(arena, *term, &other)
            }
            Atom::Compare(op, a, b) => {
                self.ranges.get_mut().clear();
                let before = self.compares.insert(atom.clone(), holds);
                self.log.push(Learned::Compare(atom.clone(), before));
                // The bounds of either side hold for the other.
                let (ka, kb) = (self.known(arena, *a), self.known(arena, *b));
                let (Some((al, ah)), Some((bl, bh))) = (ends(&ka), ends(&kb)) else {
                    return false;
                };
                match (op, holds) {
                    (CompareOp::Eq, true) => {
                        self.learn_set(arena, *a, &kb) && self.learn_set(arena, *b, &ka)
                    }
                    (CompareOp::Le, true) => {
                        self.learn_set(arena, *a, &IntervalSet::range(0, bh))
                            && self.learn_set(arena, *b, &IntervalSet::range(al, u128::MAX))
                    }
                    (CompareOp::Le, false) => {
                        // b < a; neither bound is at the edge, or the truth would be known.
                        let above = IntervalSet::range(bl.saturating_add(1), u128::MAX);
                        let below = IntervalSet::range(0, ah.saturating_sub(1));
                        self.learn_set(arena, *a, &above) && self.learn_set(arena, *b, &below)
                    }
                    _ => true,
                }
            }
        }
    }

    /// Learns whether a lookup finds a flow.
    pub(crate) fn learn_lookup(&mut self, lookup: LookupId, hit: bool) {
        self.ranges.get_mut().clear();
        let before = self.lookups.insert(lookup, hit);
        self.log.push(Learned::Lookup(lookup, before));
    }

    /// Whether a lookup finds a flow, if that is known.
    pub(crate) fn lookup(&self, lookup: LookupId) -> Option<bool> {
        self.lookups.get(&lookup).copied()
    }

    /// The lookups that find no flow.
    pub(crate) fn missed(&self) -> impl Iterator<Item = LookupId> + '_ {
        self.lookups.iter().filter(|(_, hit)| !**hit).map(|(&lookup, _)| lookup)
    }

    /// Learns where a classification led.
    pub(crate) fn learn_class(&mut self, class: u32, to: u32) {
        let before = self.classes.insert(class, to);
        self.log.push(Learned::Class(class, before));
    }

    /// Where classifications led.
    pub(crate) fn classes(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.classes.iter().map(|(&class, &to)| (class, to))
    }

    /// Whether a condition holds, if that is known.
    pub(crate) fn truth(&self, arena: &Arena, atom: &Atom) -> Option<bool> {
        match atom {
            Atom::Test(term, set) => {
                let known = self.known(arena, *term);
                if known.is_subset(set) {
                    Some(true)
                } else if !known.intersects(set) {
                    Some(false)
                } else {
                    None
                }
            }
            Atom::Compare(op, a, b) => {
                if let Some(&known) = self.compares.get(atom) {
                    return Some(known);
                }
                let (ka, kb) = (self.known(arena, *a), self.known(arena, *b));
                let ((al, ah), (bl, bh)) = (ends(&ka)?, ends(&kb)?);
                match op {
                    CompareOp::Eq if !ka.intersects(&kb) => Some(false),
                    CompareOp::Eq if al == ah && bl == bh => Some(al == bl),
                    CompareOp::Eq => {
                        // Neither less nor greater is what is left.
                        let le = |a, b| self.compares.get(&Atom::Compare(CompareOp::Le, a, b));
                        match (le(*a, *b), le(*b, *a)) {
                            (Some(true), Some(true)) => Some(true),
                            (Some(false), _) | (_, Some(false)) => Some(false),
                            _ => None,
                        }
                    }
                    CompareOp::Le if ah <= bl => Some(true),
                    CompareOp::Le if al > bh => Some(false),
                    CompareOp::Le => {
                        let equal = Atom::Compare(CompareOp::Eq, *a.min(b), *a.max(b));
                        let back = Atom::Compare(CompareOp::Le, *b, *a);
                        match (self.compares.get(&equal), self.compares.get(&back)) {
                            (Some(true), _) => Some(true),
                            // Not above, or not below: then below or equal.
                            (_, Some(false)) => Some(true),
                            (Some(false), Some(true)) => Some(false),
                            _ => None,
                        }
                    }
                    _ => None,
                }
            }
        }
    }

    /// The numbers that a term may be. All of them are in the set; some of the set may not be.
    pub(crate) fn known(&self, arena: &Arena, term: TermId) -> IntervalSet {
        if let Term::Const(value) = arena.term(term) {
            return IntervalSet::single(*value);
        }
        if self.log.is_empty() {
            return arena.range(term);
        }
        if let Some(known) = self.ranges.borrow().get(&term) {
            return known.clone();
        }
        let derived = self.derive(arena, term).intersect(&arena.range(term));
        let known = match self.sets.get(&term) {
            Some(set) => derived.intersect(set),
            None => derived,
        };
        self.ranges.borrow_mut().insert(term, known.clone());
        known
    }

    /// What follows for a term from what is known of others.
    fn derive(&self, arena: &Arena, term: TermId) -> IntervalSet {
        let all = IntervalSet::full(128);
        let known = |t: &TermId| self.known(arena, *t);
        let ends = |t: &TermId| ends(&known(t)).unwrap_or((0, u128::MAX));
        let between = |(low, high): (u128, u128)| IntervalSet::range(low, high);
        match arena.term(term) {
            Term::Input(field) if *field == meta::LEN => self.derive_length(arena, term),
            Term::Input(field) => self.derive_field(arena, term, *field),
            Term::Binary(BinaryOp::Add, ..) => {
                let sum = arena.linear(term);
                if let [(inner, 1)] = sum.terms[..] {
                    return shift(&known(&inner), sum.constant.wrapping_neg());
                }
                let mut total = (sum.constant, sum.constant);
                for (inner, coefficient) in &sum.terms {
                    let (low, high) = ends(inner);
                    // A coefficient beyond half of all numbers takes away.
                    let taken = coefficient.wrapping_neg();
                    let next = if taken < *coefficient {
                        let (low, high) = (low.checked_mul(taken), high.checked_mul(taken));
                        let (Some(low), Some(high)) = (low, high) else { return all };
                        total.0.checked_sub(high).zip(total.1.checked_sub(low))
                    } else {
                        let low = low.checked_mul(*coefficient);
                        let high = high.checked_mul(*coefficient);
                        let (Some(low), Some(high)) = (low, high) else { return all };
                        total.0.checked_add(low).zip(total.1.checked_add(high))
                    };
                    let Some(next) = next else { return self.difference(arena, &sum.terms, all) };
                    total = next;
                }
                between(total)
            }
            Term::Binary(op, a, b) => between(apply_to_bounds(*op, ends(a), ends(b))),
            Term::Slice { of, low, width } => project(&known(of), (*low).into(), (*width).into()),
            Term::Concat { high, low, width } => {
                let ((hl, hh), (ll, lh)) = (ends(high), ends(low));
                let (h, w) = (known(high), u32::from(*width));
                if 128 - hh.leading_zeros() + w > 128 {
                    return all;
                }
                match h.as_single() {
                    Some(single) => {
                        let up = |n: u128| single << w | n;
                        let low = known(low);
                        let moved = low.intervals().iter().map(|&(l, h)| (up(l), up(h)));
                        IntervalSet::from_intervals(moved.collect())
                    }
                    None => between((hl << w | ll, hh << w | lh)),
                }
            }
            Term::Choose(atom, a, b) => match self.truth(arena, atom) {
                Some(true) => known(a),
                Some(false) => known(b),
                None => known(a).union(&known(b)),
            },
            Term::Map(number, table) => table.image(&known(number)),
            Term::OnesSum(sum) if let Some(of) = sum.only() => match ends(&of) {
                (_, 0..=0xffff) => known(&of),
                _ => all,
            },
            Term::NonZero(of) => {
                let one = IntervalSet::single(0);
                let known = known(of);
                match known.contains(0) {
                    true => known.subtract(&one).union(&IntervalSet::single(0xffff)),
                    false => known,
                }
            }
            _ => all,
        }
    }

    /// What is known of `a - b + constant` when it is known that `b <= a`: it does not wrap.
    fn difference(&self, arena: &Arena, terms: &[(TermId, u128)], all: IntervalSet) -> IntervalSet {
        let (plus, minus) = match *terms {
            [(a, 1), (b, u128::MAX)] | [(b, u128::MAX), (a, 1)] => (a, b),
            _ => return all,
        };
        let sum = Atom::Compare(CompareOp::Le, minus, plus);
        match self.compares.get(&sum) {
            Some(true) => {
                let most = ends(&self.known(arena, plus)).map_or(u128::MAX, |e| e.1);
                let least = ends(&self.known(arena, minus)).map_or(0, |e| e.0);
                IntervalSet::range(0, most.saturating_sub(least))
            }
            _ => all,
        }
    }

    /// What numbers that are no greater than the packet's length say of it, and fields that are not 0.
    /// What was learned of fields counts alone: what they are derived from may be the length.
    fn derive_length(&self, arena: &Arena, length: TermId) -> IntervalSet {
        let least = self.compares.iter().filter_map(|(atom, holds)| {
            let Atom::Compare(CompareOp::Le, low, high) = atom else { return None };
            let sum = arena.linear(*low);
            let [(inner, 1)] = sum.terms[..] else { return None };
            if !holds || *high != length || sum.constant > u32::MAX.into() {
                return None;
            }
            let tested = self.sets.get(&inner).and_then(|set| set.min()).unwrap_or(0);
            let (least, most) = arena.bounds(inner);
            (most <= u32::MAX.into()).then(|| least.max(tested) + sum.constant)
        });
        // What lies beyond the packet reads as 0.
        let there = self.sets.iter().filter_map(|(term, set)| match arena.term(*term) {
            Term::Input(field) if field.base == Base::Data && !set.contains(0) => {
                Some(field.byte_range().1 as u128)
            }
            _ => None,
        });
        IntervalSet::range(least.chain(there).max().unwrap_or(0), u128::MAX)
    }

    /// What fields that overlap say of a field.
    fn derive_field(&self, arena: &Arena, term: TermId, field: Field) -> IntervalSet {
        let mut set = IntervalSet::full(field.width);
        // What lies beyond the packet reads as 0.
        if field.base == Base::Data
            && let Some(length) = arena.find(&Term::Input(meta::LEN))
            && let Some((_, most)) = ends(&self.known(arena, length))
            && most < field.byte_range().1 as u128
        {
            return IntervalSet::single(0);
        }
        if !matches!(field.base, Base::Data | Base::Annotation) {
            return set;
        }
        let end = |f: Field| u32::from(f.offset) + u32::from(f.width);
        // Bits that are known of a wide field, and which.
        let mut bits = (0u128, 0u128);
        // Fields that end with it.
        let mut lower: Vec<(u16, &IntervalSet)> = Vec::new();
        for (&other, known) in &self.sets {
            let Term::Input(place) = *arena.term(other) else { continue };
            if other == term || !place.overlaps(field) {
                continue;
            }
            let around = place.offset <= field.offset && end(place) >= end(field);
            if !around && end(place) == end(field) {
                lower.push((place.width, known));
            }
            if around {
                let known = &self.narrowed(arena, place, known);
                let low = (end(place) - end(field)) as u8;
                set = set.intersect(&project(known, low.into(), field.width.into()));
            } else if place.offset <= field.offset {
                // Its low bits are the field's first.
                let shared = (end(place) - u32::from(field.offset)) as u16;
                let first = project(known, 0, shared.into());
                set = set.intersect(&widen(&first, u32::from(field.width - shared)));
            } else if field.width <= MAX_ENUMERATED {
                let shared = end(field).min(end(place)) - u32::from(place.offset);
                let (skip, low) = (
                    end(place).saturating_sub(end(field)),
                    end(field) - u32::from(place.offset) - shared,
                );
                let part = project(known, skip, shared);
                let fits = |n: &u128| part.contains(n >> low & ((1 << shared) - 1));
                let fitting = (0..=field.max()).filter(fits).map(|n| (n, n));
                set = set.intersect(&IntervalSet::from_intervals(fitting.collect()));
            } else if end(place) <= end(field)
                && let Some(value) = known.as_single()
            {
                let low = end(field) - end(place);
                bits = (bits.0 | value << low, bits.1 | place.max() << low);
            }
        }
        // Such as the group bit of an address, or all parts of it.
        let wild = !bits.1 & field.max() & !((1u128 << bits.1.trailing_zeros().min(127)) - 1);
        if bits.1 != 0
            && wild.count_ones() <= MAX_ENUMERATED.into()
            && let Some(masked) = IntervalSet::masked(field.width, bits.0, bits.1)
        {
            set = set.intersect(&masked);
        }
        lower.sort_unstable_by_key(|(width, _)| Reverse(*width));
        for (width, known) in lower {
            if let Some(all) = with_lower(&set, width, known) {
                set = set.intersect(&all);
            }
        }
        set
    }

    /// What is known of a wide field where its upper part is one number.
    fn narrowed(&self, arena: &Arena, place: Field, known: &IntervalSet) -> IntervalSet {
        let upper = place.width.checked_sub(64).filter(|width| *width > 0).and_then(|width| {
            let upper = arena.find(&Term::Input(Field::bits(place.base, place.offset, width)))?;
            self.sets.get(&upper)?.as_single()
        });
        match upper {
            Some(upper) => {
                let all = IntervalSet::range(upper << 64, upper << 64 | u128::from(u64::MAX));
                known.intersect(&all)
            }
            None => known.clone(),
        }
    }

    /// A number that tells apart what is known of anything with these leaves.
    pub(crate) fn fingerprint(&self, arena: &Arena, leaves: u128) -> u64 {
        fn hash(item: impl Hash) -> u64 {
            let mut hasher = DefaultHasher::new();
            item.hash(&mut hasher);
            hasher.finish()
        }
        // The order in which facts are kept does not matter: their hashes are added.
        let mut sum = 0u64;
        for (term, set) in &self.sets {
            if arena.leaves(*term) & leaves != 0 {
                sum = sum.wrapping_add(hash((0, term, set)));
            }
        }
        for (atom, holds) in &self.compares {
            if arena.atom_leaves(atom) & leaves != 0 {
                sum = sum.wrapping_add(hash((1, atom, holds)));
            }
        }
        for (lookup, hit) in &self.lookups {
            if arena.lookup_leaves(*lookup) & leaves != 0 {
                sum = sum.wrapping_add(hash((2, lookup, hit)));
            }
        }
        for class in &self.classes {
            sum = sum.wrapping_add(hash((3, class)));
        }
        sum
    }

    /// A term with what is known put into it.
    pub(crate) fn resolve(&self, arena: &mut Arena, term: TermId) -> TermId {
        self.resolve_in(arena, term, &mut HashMap::new())
    }

    fn resolve_in(
        &self,
        arena: &mut Arena,
        term: TermId,
        done: &mut HashMap<TermId, TermId>,
    ) -> TermId {
        if let Some(&known) = done.get(&term) {
            return known;
        }
        let resolved = if let Some(value) = self.known(arena, term).as_single() {
            arena.constant(value)
        } else {
            let mut of = |arena: &mut Arena, t: TermId| self.resolve_in(arena, t, done);
            match arena.term(term).clone() {
                Term::Choose(atom, a, b) => match self.truth(arena, &atom) {
                    Some(true) => of(arena, a),
                    Some(false) => of(arena, b),
                    None => {
                        let (a, b) = (of(arena, a), of(arena, b));
                        arena.make(Term::Choose(atom, a, b))
                    }
                },
                Term::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => {
                    let below = match arena.condition(Atom::Compare(CompareOp::Le, a, b)) {
                        Condition::Const(value) => Some(value),
                        Condition::Is(atom) => self.truth(arena, &atom),
                        Condition::Not(atom) => self.truth(arena, &atom).map(|t| !t),
                    };
                    let (a, b) = (of(arena, a), of(arena, b));
                    match (below, op) {
                        (Some(true), BinaryOp::Min) | (Some(false), BinaryOp::Max) => a,
                        (Some(_), _) => b,
                        (None, op) => arena.make(Term::Binary(op, a, b)),
                    }
                }
                Term::Binary(op, a, b) => {
                    let (a, b) = (of(arena, a), of(arena, b));
                    arena.make(Term::Binary(op, a, b))
                }
                Term::Slice { of: t, low, width } => {
                    let of = of(arena, t);
                    arena.make(Term::Slice { of, low, width })
                }
                Term::Concat { high, low, width } => {
                    let (high, low) = (of(arena, high), of(arena, low));
                    arena.make(Term::Concat { high, low, width })
                }
                Term::OnesSum(mut sum) => {
                    sum.map_operands(|t| of(arena, t));
                    arena.make(Term::OnesSum(sum))
                }
                Term::NonZero(t) => {
                    let inner = of(arena, t);
                    match self.known(arena, t).contains(0) {
                        true => arena.make(Term::NonZero(inner)),
                        false => inner,
                    }
                }
                Term::Sum16 { offset, length } => {
                    let length = of(arena, length);
                    arena.make(Term::Sum16 { offset, length })
                }
                Term::Map(number, table) => {
                    let number = of(arena, number);
                    arena.make(Term::Map(number, table))
                }
                Term::Hash(function, numbers) => {
                    let numbers = numbers.into_iter().map(|t| of(arena, t)).collect();
                    arena.make(Term::Hash(function, numbers))
                }
                _ => term,
            }
        };
        done.insert(term, resolved);
        resolved
    }
}

/// What `width` bits from bit `low` on can be when the number is in a set.
fn project(set: &IntervalSet, low: u32, width: u32) -> IntervalSet {
    let max = if width >= 128 { u128::MAX } else { (1u128 << width) - 1 };
    let mut intervals = Vec::with_capacity(set.intervals().len());
    for &(first, last) in set.intervals() {
        let up = |n: u128| n.checked_shr(low).unwrap_or(0);
        let (first, last) = (up(first), up(last));
        let (a, b) = (first & max, last & max);
        if last - first >= max {
            return IntervalSet::range(0, max);
        }
        match a <= b {
            true => intervals.push((a, b)),
            false => intervals.extend([(a, max), (0, b)]),
        }
    }
    IntervalSet::from_intervals(intervals)
}

/// The numbers whose first bits are in a set, with any `free` bits behind.
fn widen(set: &IntervalSet, free: u32) -> IntervalSet {
    let wide = set.intervals().iter().map(|&(l, h)| {
        let rest = (1u128.checked_shl(free).unwrap_or(0)).wrapping_sub(1);
        (l.checked_shl(free).unwrap_or(0), h.checked_shl(free).unwrap_or(0) | rest)
    });
    IntervalSet::from_intervals(wide.collect())
}

/// The numbers whose last `width` bits are in a set, if all before these are the same in the numbers that are possible.
fn with_lower(possible: &IntervalSet, width: u16, lower: &IntervalSet) -> Option<IntervalSet> {
    let (first, last) = ends(possible)?;
    let free = (1u128.checked_shl(width.into())?).wrapping_sub(1);
    if (first ^ last) & !free != 0 {
        return None;
    }
    let up = |number: u128| first & !free | number & free;
    let moved = lower.intervals().iter().map(|&(low, high)| (up(low), up(high)));
    Some(IntervalSet::from_intervals(moved.collect()))
}
