//! What numbers a program's terms can be: widths and ranges. Verifying proofs has its own, on purpose.

use std::collections::{BTreeSet, HashMap};

use super::{Atom, Entries, LookupId, Program, StateId, Term, TermId};
use crate::IntervalSet;
use crate::field::meta;
use crate::model::{BinaryOp, StateKind};

/// The least and the greatest number that a term can be, where numbers that wrapped below 0 count
/// as negative; `None` if nothing useful is known.
pub type Range = Option<(i128, i128)>;

/// Ranges beyond this are not followed.
const FAR: i128 = 1 << 100;

fn bits(width: u32) -> Range {
    (width <= 64).then(|| (0, (1i128 << width) - 1))
}

fn checked(low: Option<i128>, high: Option<i128>) -> Range {
    low.zip(high).filter(|(low, high)| *low > -FAR && *high < FAR)
}

/// The numbers with no more bits than the greatest.
fn ones(high: i128) -> i128 {
    (1i128 << (128 - high.leading_zeros())) - 1
}

/// What is known of the numbers that a term can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// They have at most so many bits, 1 to 128.
    pub width: u16,
    /// The least and the greatest.
    pub range: Range,
}

impl Program {
    /// What numbers each term can be.
    pub fn numbers(&self) -> Vec<Numbers> {
        let mut all: Vec<Numbers> = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let numbers = numbers(self, term, |operand| all[operand.0 as usize]);
            all.push(numbers);
        }
        all
    }

    /// How many bits the numbers have that a term can be, 1 to 128.
    ///
    /// # Panics
    /// If the program has no such term.
    pub fn width(&self, term: TermId) -> u16 {
        self.numbers_where(term, |_| None).width
    }

    /// What numbers a term can be where more is known of some that it is made from.
    ///
    /// # Panics
    /// If the program has no such term.
    pub fn numbers_where(&self, term: TermId, known: impl Fn(TermId) -> Range) -> Numbers {
        let (mut made_from, mut waiting) = (BTreeSet::new(), vec![term]);
        while let Some(term) = waiting.pop() {
            if made_from.insert(term) {
                waiting.extend(self.term(term).operands());
            }
        }
        let mut all: HashMap<TermId, Numbers> = HashMap::new();
        for term in made_from {
            let mut numbers = numbers(self, self.term(term), |operand| all[&operand]);
            let both = numbers.range.zip(known(term));
            let both = both.map(|((l, h), (m, i))| (l.max(m), h.min(i))).filter(|(l, h)| l <= h);
            numbers.range = both.or(numbers.range);
            all.insert(term, numbers);
        }
        all[&term]
    }
}

/// Whether a term is made from no others.
fn is_leaf(term: &Term) -> bool {
    matches!(
        term,
        Term::Const(_)
            | Term::Input(_)
            | Term::Position(_)
            | Term::Bound(..)
            | Term::Cell(..)
            | Term::Now
    )
}

fn bits_of(value: u128) -> u16 {
    128 - value.leading_zeros() as u16
}

fn bound_width(program: &Program, lookup: LookupId, index: u8) -> u16 {
    if let Some(flows) = program.flows_of(lookup) {
        return flows.kind.width(usize::from(index));
    }
    let lookup = program.lookups.get(usize::from(lookup.0));
    let table = lookup.and_then(|lookup| program.tables.get(usize::from(lookup.table.0)));
    match table.map(|table| &table.entries) {
        Some(Entries::Prefixes(prefixes)) => prefixes.number_width(usize::from(index)),
        _ => 128,
    }
}

fn cell_width(program: &Program, cells: StateId) -> u16 {
    match program.state.get(usize::from(cells.0)).map(|state| &state.kind) {
        Some(StateKind::Cells { width, .. }) => *width,
        _ => 128,
    }
}

/// What numbers a term can be, by those that its operands can be.
fn numbers(program: &Program, term: &Term, known: impl Fn(TermId) -> Numbers) -> Numbers {
    let range = range(program, term, &known);
    let most = match range {
        // What is read has the width of where it is read from.
        Some((low, high)) if low >= 0 && !is_leaf(term) => bits_of(high as u128),
        _ => 128,
    };
    let width = width(program, term, &known).min(most).clamp(1, 128);
    Numbers { width, range }
}

fn width(program: &Program, term: &Term, known: &impl Fn(TermId) -> Numbers) -> u16 {
    let of = |term: &TermId| known(*term).width;
    match term {
        Term::Const(value) => bits_of(*value),
        Term::Input(field) => field.width,
        Term::Position(_) => 32,
        Term::Bound(lookup, index) => bound_width(program, *lookup, *index),
        Term::Cell(cells, _) => cell_width(program, *cells),
        Term::Sum16 { .. } | Term::Fold(_) => 16,
        Term::NonZero(sum) => of(sum).max(16),
        Term::Slice { of: whole, low, width } => {
            of(whole).saturating_sub((*low).into()).min((*width).into())
        }
        Term::Concat { high, width, .. } => of(high).saturating_add((*width).into()),
        Term::Choose(_, yes, no) => of(yes).max(of(no)),
        Term::Map(_, table) => {
            bits_of(table.intervals().iter().map(|interval| interval.2).max().unwrap_or(0))
        }
        Term::Hash(_) | Term::Now => 64,
        Term::Binary(op, a, b) => match op {
            BinaryOp::Add => of(a).max(of(b)) + 1,
            // Below 0 it wraps.
            BinaryOp::Sub => 128,
            BinaryOp::Mul => of(a) + of(b),
            BinaryOp::And | BinaryOp::Min => of(a).min(of(b)),
            BinaryOp::Or | BinaryOp::Xor | BinaryOp::Max => of(a).max(of(b)),
            BinaryOp::Div | BinaryOp::Shr => of(a),
            BinaryOp::Rem => of(a).min(of(b)),
            BinaryOp::Shl => match program.terms.get(b.0 as usize) {
                Some(Term::Const(by)) => {
                    u16::try_from(*by).map_or(128, |by| of(a).saturating_add(by))
                }
                _ => 128,
            },
        },
    }
}

fn range(program: &Program, term: &Term, known: &impl Fn(TermId) -> Numbers) -> Range {
    let of = |t: &TermId| known(*t).range;
    // Of one that did not wrap.
    let whole = |t: &TermId| of(t).filter(|r| r.0 >= 0);
    match term {
        Term::Const(value) => {
            let value = *value as i128;
            checked(Some(value), Some(value))
        }
        // No packet is as long as that; sums of lengths stay small.
        Term::Input(field) if *field == meta::LEN || *field == meta::HEADROOM => bits(24),
        Term::Input(field) => bits(field.width.into()),
        Term::Position(_) => bits(32),
        Term::Bound(lookup, index) => bits(bound_width(program, *lookup, *index).into()),
        Term::Cell(cells, _) => bits(cell_width(program, *cells).into()),
        Term::Sum16 { .. } | Term::Fold(_) => bits(16),
        Term::Slice { of: t, low, width } => match (whole(t), bits((*width).into())) {
            (Some((_, high)), Some((_, most))) => Some((0, most.min(high >> low.min(&127)))),
            (_, range) => range,
        },
        Term::Concat { high, width, .. } => {
            whole(high).filter(|_| *width < 64).and_then(|(low, high)| {
                let times = 1i128 << width;
                checked(low.checked_mul(times), (high + 1).checked_mul(times).map(|end| end - 1))
            })
        }
        Term::NonZero(t) => whole(t).map(|(_, high)| (1, high.max(0xffff))),
        Term::Choose(..) if let Some(of) = complement(program, term) => {
            whole(&of).map(|(low, high)| (1.max(0xffff - high), (0xffff - low).max(0xffff)))
        }
        Term::Choose(_, a, b) => of(a).zip(of(b)).map(|((l, h), (m, i))| (l.min(m), h.max(i))),
        Term::Map(_, table) => {
            let most = table.intervals().iter().map(|interval| interval.2).max().unwrap_or(0);
            checked(Some(0), i128::try_from(most).ok())
        }
        Term::Hash(_) | Term::Now => bits(64),
        Term::Binary(op, a, b) => {
            let both = of(a).zip(of(b));
            let wholes = whole(a).zip(whole(b));
            match op {
                BinaryOp::Add => {
                    both.and_then(|((l, h), (m, i))| checked(l.checked_add(m), h.checked_add(i)))
                }
                BinaryOp::Sub => {
                    both.and_then(|((l, h), (m, i))| checked(l.checked_sub(i), h.checked_sub(m)))
                }
                BinaryOp::Mul => {
                    wholes.and_then(|((l, h), (m, i))| checked(l.checked_mul(m), h.checked_mul(i)))
                }
                BinaryOp::And => match (whole(a), whole(b)) {
                    (Some((_, h)), Some((_, i))) => Some((0, h.min(i))),
                    (known, other) => known.or(other).map(|(_, high)| (0, high)),
                },
                BinaryOp::Or | BinaryOp::Xor => wholes.map(|((_, h), (_, i))| (0, ones(h.max(i)))),
                BinaryOp::Min => wholes.map(|((l, h), (m, i))| (l.min(m), h.min(i))),
                BinaryOp::Max => wholes.map(|((l, h), (m, i))| (l.max(m), h.max(i))),
                BinaryOp::Div => whole(a).map(|(_, high)| (0, high)),
                BinaryOp::Rem => whole(b).map(|(_, most)| {
                    let high = whole(a).map_or(i128::MAX, |(_, high)| high);
                    (0, high.min((most - 1).max(0)))
                }),
                BinaryOp::Shl => whole(a).zip(whole(b)).and_then(|((_, h), (_, by))| {
                    let by = u32::try_from(by).ok().filter(|by| *by < 64)?;
                    checked(Some(0), h.checked_mul(1 << by))
                }),
                BinaryOp::Shr => whole(a).map(|(_, high)| (0, high)),
            }
        }
    }
}

/// `x` of a checksum that is the complement of `x` or, rather than 0, 0xffff.
pub fn complement(program: &Program, term: &Term) -> Option<TermId> {
    let Term::Choose(Atom::Test(of, set), yes, no) = term else { return None };
    let Term::Binary(BinaryOp::Sub, all, subtracted) = program.term(*no) else { return None };
    let is_all = |t: &TermId| *program.term(*t) == Term::Const(0xffff);
    let is_it = is_all(yes) && is_all(all) && subtracted == of && set.as_single() == Some(0xffff);
    is_it.then_some(*of)
}

/// Whether a condition holds for all numbers that a term can be, or for none.
pub fn is_decided(ranges: &[Range], atom: &Atom) -> bool {
    let Atom::Test(term, set) = atom else { return false };
    match ranges[term.0 as usize] {
        Some((low, high)) if low >= 0 => {
            let all = IntervalSet::range(low as u128, high as u128);
            all.is_subset(set) || !all.intersects(set)
        }
        _ => false,
    }
}

/// Whether 32 bits hold such numbers as they are.
pub fn fits(range: Range) -> bool {
    range.is_some_and(|(low, high)| low >= 0 && high <= u32::MAX.into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use net::Pool;

    use super::*;
    use crate::graph::Port;
    use crate::model::{CompareOp, Reason};
    use crate::program::interp::{Environment, interpret};
    use crate::program::{End, Exit, Step, Write, Writes};
    use crate::{Base, Field, Mapping, NodeId, Store};

    /// Terms of one random program.
    const TERMS: usize = 40;

    struct World;

    impl Environment for World {
        fn now(&self) -> u64 {
            u64::MAX / 3
        }
        fn note(&mut self, _: NodeId, _: Reason) {}
    }

    /// A term made from some of those before it.
    fn term(random: &mut fastrand::Rng, terms: &[Term]) -> Term {
        let mut before = || TermId(random.u32(..terms.len() as u32));
        let (a, b, c) = (before(), before(), before());
        let set = IntervalSet::range(random.u128(..1000), random.u128(1000..1 << 40));
        let atom = match random.bool() {
            true => Atom::Test(c, Arc::new(set)),
            false => Atom::Compare(CompareOp::Lt, b, c),
        };
        let ops = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Div,
            BinaryOp::Rem,
            BinaryOp::And,
            BinaryOp::Or,
            BinaryOp::Xor,
            BinaryOp::Shl,
            BinaryOp::Shr,
            BinaryOp::Min,
            BinaryOp::Max,
        ];
        match random.u8(..20) {
            0 => Term::Const(random.u128(..) >> random.u32(..128)),
            1 => {
                let width = random.u16(1..=128);
                Term::Input(Field::bits(Base::Data, random.u16(..512), width))
            }
            2 => Term::Input(meta::LEN),
            3 => Term::Position(net::Header::Network),
            4 => Term::Sum16 { offset: random.u16(..40), length: a },
            5 => Term::Fold(a),
            6 => Term::NonZero(a),
            7 => Term::Hash(vec![a, b]),
            8 => Term::Now,
            9 => {
                let low = random.u128(..1 << 20);
                let all = vec![(low, low + random.u128(..1000), random.u128(..1 << 20))];
                Term::Map(a, Arc::new(Mapping::new(all)))
            }
            10 => Term::Choose(atom, a, b),
            11 | 12 => {
                let low = random.u8(..128);
                Term::Slice { of: a, low, width: random.u8(1..=128 - low) }
            }
            13 => {
                // What has no more bits than there is room for.
                let lows = terms.iter().enumerate().filter_map(|(at, term)| match term {
                    Term::Slice { width, .. } => Some((TermId(at as u32), *width)),
                    _ => None,
                });
                let lows: Vec<(TermId, u8)> = lows.collect();
                match lows.get(random.usize(..=lows.len())) {
                    Some((low, width)) => Term::Concat { high: a, low: *low, width: *width },
                    None => Term::Const(7),
                }
            }
            _ => Term::Binary(ops[random.usize(..ops.len())], a, b),
        }
    }

    /// The numbers that the terms of a program are for a packet.
    fn values(program: &Program, data: &[u8]) -> Vec<u128> {
        let mut packet = Pool::new().packet(data);
        packet.set_header_offset(net::Header::Network, 14);
        let mut store = Store::new();
        interpret(program, &mut packet, &mut store, &mut World).expect("it runs");
        let written = packet.data().chunks(16).take(program.terms.len());
        written.map(|bytes| u128::from_be_bytes(bytes.try_into().unwrap())).collect()
    }

    #[test]
    fn terms_are_no_other_numbers_than_is_said() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let mut terms = vec![Term::Const(14), Term::Input(Field::bits(Base::Data, 128, 16))];
            while terms.len() < TERMS {
                terms.push(term(&mut random, &terms));
            }
            let write = |term: usize| Write {
                offset: 16 * term as i32,
                length: 16,
                value: TermId(term as u32),
            };
            let writes = Writes { bytes: (0..TERMS).map(write).collect(), ..Writes::default() };
            let end = End::Push { to: Port { node: 1, port: 0 }, native: true };
            let exit = Exit {
                effects: vec![],
                writes,
                end,
                barrier: None,
                visited: vec![],
                copies: vec![],
            };
            let program = Program {
                continuation: None,
                tables: Vec::new(),
                entry: Port { node: 0, port: 0 },
                terms,
                state: Vec::new(),
                lookups: Vec::new(),
                steps: vec![Step::Exit(Box::new(exit))],
            };
            let numbers = program.numbers();
            for _ in 0..4 {
                let data: Vec<u8> = (0..16 * TERMS + 32).map(|_| random.u8(..)).collect();
                for (at, value) in values(&program, &data).into_iter().enumerate() {
                    let (said, term) = (numbers[at], &program.terms[at]);
                    assert_eq!(program.width(TermId(at as u32)), said.width);
                    let fits = said.width == 128 || value < 1 << said.width;
                    assert!(fits, "{term:?} is {value}, of {said:?}");
                    if let Some((low, high)) = said.range {
                        let inside = (low..=high).contains(&(value as i128));
                        assert!(inside, "{term:?} is {value}, of {said:?}");
                    }
                }
            }
        }
    }
}
