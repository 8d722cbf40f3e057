//! The value of terms for one packet.

use std::collections::HashMap;

use ir::field::meta;
use ir::program::{Atom, LookupId, Term, TermId};
use ir::{Base, Field};
use net::Header;

use super::Witness;
use crate::prove::Arena;

/// A packet, and the numbers that lookups are taken to bind.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    /// The packet.
    pub(crate) witness: Witness,
    /// What lookups bind; 0 if nothing else is said.
    pub(crate) bound: HashMap<(LookupId, u8), u128>,
}

/// Values of terms that were computed for a packet as it is.
#[derive(Default)]
pub(crate) struct Memo {
    /// Counts the packet's changes, from 1 on.
    change: u32,
    /// For each term, when it was computed and its value.
    known: Vec<(u32, u128)>,
}

impl Memo {
    /// For terms of this arena.
    pub(crate) fn new(arena: &Arena) -> Self {
        Self { change: 1, known: vec![(0, 0); arena.len()] }
    }

    /// The packet has changed.
    pub(crate) fn forget(&mut self) {
        self.change += 1;
    }

    fn get(&self, term: TermId) -> Option<u128> {
        let &(change, value) = self.known.get(term.0 as usize)?;
        (change == self.change).then_some(value)
    }

    fn put(&mut self, term: TermId, value: u128) {
        if let Some(known) = self.known.get_mut(term.0 as usize) {
            *known = (self.change, value);
        }
    }
}

/// Ones' complement sum, folded and not inverted.
pub(crate) fn sum16(bytes: &[u8]) -> u128 {
    (!net::checksum::checksum(bytes)).into()
}

fn low_bits(width: u32) -> u128 {
    u128::MAX.checked_shr(128u32.saturating_sub(width)).unwrap_or(0)
}

fn read_bits(bytes: &[u8], field: Field) -> u128 {
    let (first, last) = field.byte_range();
    let Some(bytes) = bytes.get(first..last) else { return 0 };
    let (from, to) = (usize::from(field.offset), usize::from(field.offset + field.width));
    (from..to)
        .fold(0, |value, bit| value << 1 | u128::from(bytes[bit / 8 - first] >> (7 - bit % 8) & 1))
}

/// Writes a field; `false` if it lies beyond.
fn write_bits(bytes: &mut [u8], field: Field, value: u128) -> bool {
    let (first, last) = field.byte_range();
    let Some(bytes) = bytes.get_mut(first..last) else { return false };
    let (from, to) = (usize::from(field.offset), usize::from(field.offset + field.width));
    for (i, bit) in (from..to).rev().enumerate() {
        let mask = 1 << (7 - bit % 8);
        let byte = &mut bytes[bit / 8 - first];
        if value >> i & 1 == 1 { *byte |= mask } else { *byte &= !mask }
    }
    true
}

impl Values {
    /// A packet; lookups bind zeros.
    pub(crate) fn new(witness: Witness) -> Self {
        Self { witness, bound: HashMap::new() }
    }

    fn available(&self, header: Header) -> u128 {
        let at = self.witness.marks[header as usize].map(i64::from);
        at.map_or(0, |at| (self.witness.frame.len() as i64 - at).max(0) as u128)
    }

    fn input(&self, field: Field) -> u128 {
        let has = |h: Header| u128::from(self.witness.marks[h as usize].is_some());
        match (field.base, field) {
            (Base::Data, _) => read_bits(&self.witness.frame, field),
            (Base::Annotation, _) => read_bits(&self.witness.annotations, field),
            (_, meta::LEN) => self.witness.frame.len() as u128,
            (_, meta::AVAIL_MAC) => self.available(Header::Mac),
            (_, meta::AVAIL_NET) => self.available(Header::Network),
            (_, meta::AVAIL_TRANSPORT) => self.available(Header::Transport),
            (_, meta::HAS_MAC) => has(Header::Mac),
            (_, meta::HAS_NET) => has(Header::Network),
            (_, meta::HAS_TRANSPORT) => has(Header::Transport),
            (_, meta::TYPE) => self.witness.packet_type as u128,
            (_, meta::TIMESTAMP) => self.witness.timestamp.into(),
            (_, meta::HEADROOM) => self.witness.headroom as u128,
            _ => 0,
        }
    }

    /// Makes a field of the packet this number, as far as it can be.
    pub(crate) fn set_input(&mut self, field: Field, value: u128) -> bool {
        match (field.base, field) {
            (Base::Data, _) => write_bits(&mut self.witness.frame, field, value),
            (Base::Annotation, _) => write_bits(&mut self.witness.annotations, field, value),
            (_, meta::LEN) if value <= 100_000 => {
                self.witness.frame.resize(value as usize, 0);
                true
            }
            (_, meta::TYPE) if value <= 4 => {
                self.witness.packet_type = net::PacketType::from_u8(value as u8);
                true
            }
            (_, meta::HEADROOM) if value <= 4096 => {
                self.witness.headroom = value as usize;
                true
            }
            (_, meta::TIMESTAMP) => {
                self.witness.timestamp = value as u64;
                true
            }
            _ => false,
        }
    }

    /// The value of a term.
    pub(crate) fn value(&self, arena: &Arena, term: TermId) -> u128 {
        self.value_in(arena, term, &mut Memo::new(arena))
    }

    /// The value of a term, by what was computed before.
    pub(crate) fn value_in(&self, arena: &Arena, term: TermId, memo: &mut Memo) -> u128 {
        match arena.term(term) {
            Term::Const(value) => return *value,
            Term::Input(field) => return self.input(*field),
            _ => {}
        }
        if let Some(known) = memo.get(term) {
            return known;
        }
        let mut of = |t: &TermId| self.value_in(arena, *t, memo);
        let value = match arena.term(term) {
            Term::Const(value) => *value,
            Term::Input(field) => self.input(*field),
            Term::Position(header) => match self.witness.marks[*header as usize] {
                Some(at) => u128::from(at as u32),
                None => 0x8000_0000,
            },
            Term::Bound(lookup, index) => self.bound.get(&(*lookup, *index)).copied().unwrap_or(0),
            Term::Sum16 { offset, length } => {
                let (at, length) = (usize::from(*offset), of(length));
                let end = usize::try_from(length).ok().and_then(|n| at.checked_add(n));
                let bytes = end.and_then(|end| self.witness.frame.get(at..end));
                bytes.map_or(0, sum16)
            }
            Term::Binary(op, a, b) => op.apply(of(a), of(b)),
            Term::Slice { of: t, low, width } => {
                of(t).checked_shr((*low).into()).unwrap_or(0) & low_bits((*width).into())
            }
            Term::Concat { high, low, width } => {
                of(high).checked_shl((*width).into()).unwrap_or(0) | of(low)
            }
            Term::OnesSum(sum) => sum.value(|t| of(&t)),
            Term::NonZero(t) => match of(t) {
                0 => 0xffff,
                value => value,
            },
            Term::Choose(atom, a, b) => {
                let holds = match atom {
                    Atom::Test(t, set) => set.contains(of(t)),
                    Atom::Compare(op, x, y) => op.holds(of(x), of(y)),
                };
                of(if holds { a } else { b })
            }
            Term::Map(number, table) => table.get(of(number)),
            Term::Hash(function, numbers) => function.hash(numbers.iter().map(of)).into(),
            Term::Now => self.witness.now.into(),
            // Imported as what a lookup binds.
            Term::Cell(..) => 0,
        };
        memo.put(term, value);
        value
    }
}
