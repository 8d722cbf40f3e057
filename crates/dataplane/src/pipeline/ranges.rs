//! What numbers a program's terms can be.

use ir::IntervalSet;
use ir::field::meta;
use ir::model::BinaryOp;
use ir::program::{Atom, Program, Term, TermId};

/// The least and the greatest number that a term can be, where numbers that wrapped below 0 count
/// as negative; `None` if nothing useful is known.
pub(super) type Range = Option<(i128, i128)>;

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

/// The range of each term.
pub(super) fn ranges(program: &Program) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::with_capacity(program.terms.len());
    for term in &program.terms {
        let of = |t: &ir::program::TermId| ranges[t.0 as usize];
        // Of one that did not wrap.
        let whole = |t: &ir::program::TermId| of(t).filter(|r| r.0 >= 0);
        let range = match term {
            Term::Const(value) => {
                let value = *value as i128;
                checked(Some(value), Some(value))
            }
            // No packet is as long as that; sums of lengths stay small.
            Term::Input(field) if *field == meta::LEN || *field == meta::HEADROOM => bits(24),
            Term::Input(field) => bits(field.width.into()),
            Term::Position(_) => bits(32),
            Term::Bound(lookup, index) => {
                let flows = program.flows_of(*lookup);
                bits(flows.map_or(128, |flows| flows.kind.width(usize::from(*index))).into())
            }
            Term::Sum16 { .. } | Term::Fold(_) => bits(16),
            Term::Slice { of: t, low, width } => match (whole(t), bits((*width).into())) {
                (Some((_, high)), Some((_, most))) => Some((0, most.min(high >> low.min(&127)))),
                (_, range) => range,
            },
            Term::Concat { high, width, .. } => {
                whole(high).filter(|_| *width < 64).and_then(|(low, high)| {
                    checked(Some(low << width), Some(((high + 1) << width) - 1))
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
                    BinaryOp::Add => both
                        .and_then(|((l, h), (m, i))| checked(l.checked_add(m), h.checked_add(i))),
                    BinaryOp::Sub => both
                        .and_then(|((l, h), (m, i))| checked(l.checked_sub(i), h.checked_sub(m))),
                    BinaryOp::Mul => wholes
                        .and_then(|((l, h), (m, i))| checked(l.checked_mul(m), h.checked_mul(i))),
                    BinaryOp::And => match (whole(a), whole(b)) {
                        (Some((_, h)), Some((_, i))) => Some((0, h.min(i))),
                        (known, other) => known.or(other).map(|(_, high)| (0, high)),
                    },
                    BinaryOp::Or | BinaryOp::Xor => {
                        wholes.map(|((_, h), (_, i))| (0, ones(h.max(i))))
                    }
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
        };
        ranges.push(range);
    }
    ranges
}

/// `x` of a checksum that is the complement of `x` or, rather than 0, 0xffff.
pub(super) fn complement(program: &Program, term: &Term) -> Option<TermId> {
    let Term::Choose(Atom::Test(of, set), yes, no) = term else { return None };
    let Term::Binary(BinaryOp::Sub, all, subtracted) = program.term(*no) else { return None };
    let is_all = |t: &TermId| *program.term(*t) == Term::Const(0xffff);
    let is_it = is_all(yes) && is_all(all) && subtracted == of && set.as_single() == Some(0xffff);
    is_it.then_some(*of)
}

/// Whether a condition holds for all numbers that a term can be, or for none.
pub(super) fn is_decided(ranges: &[Range], atom: &Atom) -> bool {
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
pub(super) fn fits(range: Range) -> bool {
    range.is_some_and(|(low, high)| low >= 0 && high <= u32::MAX.into())
}
