//! What numbers terms can be: widths and ranges. Verifying proofs has its own, on purpose.

use std::collections::{BTreeSet, HashMap};

use super::{Atom, Entries, LookupId, OnesSum, Program, StateId, Term, TermId};
use crate::IntervalSet;
use crate::field::meta;
use crate::model::{BinaryOp, StateKind};

/// The least and the greatest number that a term can be, where numbers that wrapped below 0 count
/// as negative; `None` if nothing useful is known.
pub type Range = Option<(i128, i128)>;

/// Negative numbers, and sums with them, are not followed beyond this.
const FAR: i128 = 1 << 100;

/// What is known of the numbers that a term can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// They have at most so many bits, 1 to 128.
    pub width: u16,
    /// The least and the greatest of 128 bits.
    pub bounds: (u128, u128),
    /// The least and the greatest, if they are no large numbers.
    pub range: Range,
}

fn bits_of(value: u128) -> u16 {
    128 - value.leading_zeros() as u16
}

fn ones(width: u16) -> u128 {
    u128::MAX.checked_shr(128 - u32::from(width.min(128))).unwrap_or(0)
}

impl Numbers {
    const ANY: Self = Self { width: 128, bounds: (0, u128::MAX), range: None };

    /// All of so many bits.
    pub fn of_width(width: u16) -> Self {
        Self::between(0, ones(width))
    }

    fn between(low: u128, high: u128) -> Self {
        let range = (high < FAR as u128).then_some((low as i128, high as i128));
        Self { width: bits_of(high).max(1), bounds: (low, high), range }
    }

    /// From and to what may be negative, if neither end is too large.
    fn signed(low: Option<i128>, high: Option<i128>) -> Option<Self> {
        let near = |end: &i128| (-FAR..FAR).contains(end);
        let (low, high) = (low.filter(near)?, high.filter(near)?);
        Some(match low {
            0.. => Self::between(low as u128, high as u128),
            _ => Self { range: Some((low, high)), ..Self::ANY },
        })
    }

    /// Whether 32 bits hold such numbers as they are.
    pub fn fits(&self) -> bool {
        self.bounds.1 <= u32::MAX.into()
    }

    /// What numbers a term can be, by those that its operands can be.
    pub fn of(term: &Term, known: impl Fn(TermId) -> Self) -> Self {
        let of = |term: &TermId| known(*term).bounds;
        let between = |ends: (u128, u128)| Self::between(ends.0, ends.1);
        match term {
            Term::Const(value) => Self::between(*value, *value),
            Term::Input(field) => Self::of_width(field.width),
            Term::Position(_) => Self::of_width(32),
            Term::Bound(..) | Term::Cell(..) => Self::ANY,
            Term::Sum16 { .. } => Self::of_width(16),
            Term::OnesSum(sum) => {
                let (low, high) = total(sum, known).bounds;
                let (low, high) = (low.min(1), high.min(0xffff));
                between(if sum.complement { (0xffff - high, 0xffff - low) } else { (low, high) })
            }
            Term::NonZero(sum) => between((1, of(sum).1.max(0xffff))),
            Term::Slice { of: whole, low, width } => {
                let high = of(whole).1.checked_shr((*low).into()).unwrap_or(0);
                between((0, high.min(ones((*width).into()))))
            }
            Term::Concat { high, low, width } => {
                let ((least, most), low) = (of(high), of(low));
                match u16::from(*width) + bits_of(most) {
                    ..=128 if *width < 128 => {
                        between((least << width | low.0, most << width | low.1))
                    }
                    _ => Self::ANY,
                }
            }
            Term::Choose(_, yes, no) => {
                let (yes, no) = (known(*yes), known(*no));
                let either = (yes.bounds.0.min(no.bounds.0), yes.bounds.1.max(no.bounds.1));
                let signed = yes.range.zip(no.range).and_then(|((low, high), (other, most))| {
                    Self::signed(Some(low.min(other)), Some(high.max(most)))
                });
                signed.unwrap_or(between(either))
            }
            Term::Map(number, table) => {
                let (low, high) = of(number);
                let image = table.image(&IntervalSet::range(low, high));
                between((
                    IntervalSet::min(&image).unwrap_or(0),
                    IntervalSet::max(&image).unwrap_or(0),
                ))
            }
            Term::Hash(..) | Term::Now => Self::of_width(64),
            Term::Binary(op, a, b) => binary(*op, known(*a), known(*b)),
        }
    }
}

/// What is folded in a ones' complement sum.
pub fn total(sum: &OnesSum, known: impl Fn(TermId) -> Numbers) -> Numbers {
    let mut ends = (u128::from(sum.constant), Some(u128::from(sum.constant)));
    for term in &sum.plus {
        let (low, high) = known(*term).bounds;
        ends = (ends.0.wrapping_add(low), ends.1.and_then(|most| most.checked_add(high)));
    }
    for term in &sum.minus {
        let (low, high) = known(*term).bounds;
        let least = 0xffff_u128.saturating_sub(high);
        let most = if high > 0xffff { None } else { Some(0xffff - low) };
        ends = (ends.0.wrapping_add(least), ends.1.zip(most).and_then(|(a, b)| a.checked_add(b)));
    }
    ends.1.map_or(Numbers::ANY, |most| Numbers::between(ends.0, most))
}

fn binary(op: BinaryOp, a: Numbers, b: Numbers) -> Numbers {
    let ((l, h), (m, i)) = (a.bounds, b.bounds);
    let between = |low, high| Numbers::between(low, high);
    let both = a.range.zip(b.range);
    let known = match op {
        BinaryOp::Add => both
            .and_then(|((l, h), (m, i))| Numbers::signed(l.checked_add(m), h.checked_add(i)))
            .or_else(|| h.checked_add(i).map(|high| between(l + m, high))),
        BinaryOp::Sub => both
            .and_then(|((l, h), (m, i))| Numbers::signed(l.checked_sub(i), h.checked_sub(m)))
            .or_else(|| (l >= i).then(|| between(l - i, h - m))),
        BinaryOp::Mul => h.checked_mul(i).map(|high| between(l * m, high)),
        BinaryOp::Div | BinaryOp::Shr => Some(between(0, h)),
        BinaryOp::Rem => Some(between(0, h.min(i.saturating_sub(1)))),
        BinaryOp::And => Some(between(0, h.min(i))),
        BinaryOp::Or | BinaryOp::Xor => Some(between(0, ones(bits_of(h.max(i))))),
        BinaryOp::Shl => match u16::try_from(i) {
            Ok(by) if by < 128 && bits_of(h) + by <= 128 => Some(between(0, h << by)),
            _ => None,
        },
        BinaryOp::Min => Some(between(l.min(m), h.min(i))),
        BinaryOp::Max => Some(between(l.max(m), h.max(i))),
    };
    known.unwrap_or(Numbers::ANY)
}

impl Program {
    /// What numbers each term can be.
    pub fn numbers(&self) -> Vec<Numbers> {
        let mut all: Vec<Numbers> = Vec::with_capacity(self.terms.len());
        for term in &self.terms {
            let numbers = self.numbers_of(term, |operand| all[operand.0 as usize]);
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
            let numbers = self.numbers_of(self.term(term), |operand| all[&operand]);
            let both = numbers.range.zip(known(term));
            let both = both.map(|((l, h), (m, i))| (l.max(m), h.min(i))).filter(|(l, h)| l <= h);
            let numbers = match both {
                Some((low, high)) => Numbers::signed(Some(low), Some(high)).unwrap_or(numbers),
                None => numbers,
            };
            all.insert(term, numbers);
        }
        all[&term]
    }

    /// How many bits a cell has.
    fn cell_width(&self, cells: StateId) -> u16 {
        match self.state.get(usize::from(cells.0)).map(|state| &state.kind) {
            Some(StateKind::Cells { width, .. }) => *width,
            _ => 128,
        }
    }

    /// How many bits a number has that a lookup binds.
    pub fn bound_width(&self, lookup: LookupId, index: u8) -> u16 {
        if let Some(flows) = self.flows_of(lookup) {
            return flows.kind.width(usize::from(index));
        }
        let lookup = self.lookups.get(usize::from(lookup.0));
        let table = lookup.and_then(|lookup| self.tables.get(usize::from(lookup.table.0)));
        match table.map(|table| &table.entries) {
            Some(Entries::Prefixes(prefixes)) => prefixes.number_width(usize::from(index)),
            _ => 128,
        }
    }

    fn numbers_of(&self, term: &Term, known: impl Fn(TermId) -> Numbers) -> Numbers {
        match term {
            // No packet is as long as that; sums of lengths stay small.
            Term::Input(field) if *field == meta::LEN || *field == meta::HEADROOM => {
                Numbers { width: field.width, ..Numbers::of_width(24) }
            }
            Term::Bound(lookup, index) => Numbers::of_width(self.bound_width(*lookup, *index)),
            Term::Cell(cells, _) => Numbers::of_width(self.cell_width(*cells)),
            term => Numbers::of(term, known),
        }
    }
}

/// Whether a condition holds for all numbers that a term can be, or for none.
pub fn is_decided(numbers: &[Numbers], atom: &Atom) -> bool {
    let Atom::Test(term, set) = atom else { return false };
    let (low, high) = numbers[term.0 as usize].bounds;
    let all = IntervalSet::range(low, high);
    all.is_subset(set) || !all.intersects(set)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use net::Pool;

    use super::*;
    use crate::graph::Port;
    use crate::hash::HashFunction;
    use crate::model::{CompareOp, Reason};
    use crate::program::interp::{Environment, interpret};
    use crate::program::{End, Exit, Step, Write, Writes};
    use crate::{Base, Field, NodeId, RangeMap, Store};

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
            5 => {
                let words = terms.iter().enumerate().filter_map(|(at, term)| match term {
                    Term::Sum16 { .. } | Term::OnesSum(_) => Some(TermId(at as u32)),
                    Term::Input(field) if field.width <= 16 => Some(TermId(at as u32)),
                    _ => None,
                });
                let minus = words.take(random.usize(..4)).collect();
                let (complement, constant) = (random.bool(), random.u16(..));
                Term::OnesSum(OnesSum { complement, plus: vec![a, b], minus, constant })
            }
            6 => Term::NonZero(a),
            7 => Term::Hash(HashFunction::MixedFnv1a, vec![a, b]),
            8 => Term::Now,
            9 => {
                let low = random.u128(..1 << 20);
                let all = vec![(low, low + random.u128(..1000), random.u128(..1 << 20))];
                Term::Map(a, Arc::new(RangeMap::new(all)))
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
                    let inside = (said.bounds.0..=said.bounds.1).contains(&value);
                    assert!(inside, "{term:?} is {value}, of {said:?}");
                    if let Some((low, high)) = said.range {
                        let inside = (low..=high).contains(&(value as i128));
                        assert!(inside, "{term:?} is {value}, of {said:?}");
                    }
                }
            }
        }
    }
}
