//! Numbers that are known: what lookups found is, where an entry stands for one row of a table.

use std::collections::BTreeMap;
use std::sync::Arc;

use ir::program::{Atom, LookupId, Program, Step, StepId, Term, TermId};
use ir::{Base, Field};

/// The rows that lookups found.
pub(crate) type Rows = BTreeMap<LookupId, Arc<[u128]>>;

/// The bytes that a packet came in with, where those are known, too.
pub(crate) type Bytes<'a> = Option<&'a [u8]>;

/// What a number is.
pub(crate) fn evaluate(
    program: &Program,
    term: TermId,
    rows: &Rows,
    bytes: Bytes<'_>,
) -> Option<u128> {
    // Operands stand before what is made from them; most terms have few.
    let mut known: BTreeMap<TermId, Option<u128>> = BTreeMap::new();
    let mut waiting = vec![term];
    while let Some(&term) = waiting.last() {
        let operands = program.terms.get(term.0 as usize)?.operands();
        let open = operands.iter().find(|o| **o < term && !known.contains_key(o));
        match open {
            Some(&open) => waiting.push(open),
            None => {
                let of = |term: TermId| known.get(&term).copied().flatten();
                let value = compute(program.term(term), rows, bytes, of);
                known.insert(term, value);
                waiting.pop();
            }
        }
    }
    known.remove(&term).flatten()
}

fn compute(
    term: &Term,
    rows: &Rows,
    bytes: Bytes<'_>,
    of: impl Fn(TermId) -> Option<u128>,
) -> Option<u128> {
    Some(match term {
        Term::Const(value) => *value,
        Term::Input(field) => match field.base {
            Base::Data => read(bytes?, *field),
            _ if *field == ir::field::meta::LEN => bytes?.len() as u128,
            _ => return None,
        },
        Term::Bound(lookup, index) => *rows.get(lookup)?.get(usize::from(*index)).unwrap_or(&0),
        Term::Binary(op, a, b) => op.apply(of(*a)?, of(*b)?),
        Term::Slice { of: whole, low, width } => {
            let shifted = of(*whole)?.checked_shr((*low).into()).unwrap_or(0);
            shifted & ones(u32::from(*width))
        }
        Term::Concat { high, low, width } => {
            of(*high)?.checked_shl((*width).into()).unwrap_or(0) | of(*low)?
        }
        Term::OnesSum(sum) => {
            if sum.operands().any(|term| of(term).is_none()) {
                return None;
            }
            sum.value(|term| of(term).unwrap_or_default())
        }
        Term::NonZero(sum) => match of(*sum)? {
            0 => 0xffff,
            sum => sum,
        },
        Term::Choose(atom, yes, no) => {
            let holds = match atom {
                Atom::Test(term, set) => set.contains(of(*term)?),
                Atom::Compare(op, a, b) => op.holds(of(*a)?, of(*b)?),
            };
            of(if holds { *yes } else { *no })?
        }
        Term::Map(number, table) => table.get(of(*number)?),
        Term::Hash(function, numbers) => {
            let numbers: Option<Vec<u128>> = numbers.iter().map(|&term| of(term)).collect();
            function.hash(numbers?).into()
        }
        Term::Sum16 { offset, length } => {
            let from = usize::from(*offset);
            let to = from.checked_add(usize::try_from(of(*length)?).ok()?)?;
            bytes?.get(from..to).map_or(0, |bytes| {
                let sum: u64 = bytes
                    .chunks(2)
                    .map(|pair| {
                        u64::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]))
                    })
                    .sum();
                (0..3).fold(sum, |sum, _| (sum & 0xffff) + (sum >> 16)).into()
            })
        }
        Term::Position(_) | Term::Cell(..) | Term::Now => return None,
    })
}

/// Where a packet gets to for which lookups found these rows, as far as only they decide.
pub(crate) fn behind(program: &Program, mut at: StepId, rows: &Rows) -> StepId {
    let value = |term: TermId| evaluate(program, term, rows, None);
    loop {
        let next = match program.step(at) {
            Step::Test { atom: Atom::Test(term, set), yes, no, .. } => {
                value(*term).map(|value| if set.contains(value) { *yes } else { *no })
            }
            Step::Switch { on, cases, otherwise, .. } => value(*on).map(|value| {
                let case = cases.iter().find(|case| case.0.contains(value));
                case.map_or(*otherwise, |case| case.1)
            }),
            _ => None,
        };
        match next {
            Some(next) if next > at => at = next,
            _ => return at,
        }
    }
}

/// So many ones.
pub(crate) fn ones(width: u32) -> u128 {
    u128::MAX.checked_shr(128 - width.min(128)).unwrap_or(0)
}

/// A field of some bytes; what lies beyond them is 0 as a whole.
fn read(bytes: &[u8], field: Field) -> u128 {
    let (from, to) = field.byte_range();
    let Some(bytes) = bytes.get(from..to) else { return 0 };
    let after = 8 * to - usize::from(field.offset) - usize::from(field.width);
    // A field of 128 bits that starts within a byte touches 17.
    let wide = bytes.iter().take(16).fold(0u128, |sum, byte| sum << 8 | u128::from(*byte));
    let whole = match bytes.get(16) {
        Some(last) => wide << (8 - after) | u128::from(last >> after),
        None => wide >> after,
    };
    whole & ones(field.width.into())
}
