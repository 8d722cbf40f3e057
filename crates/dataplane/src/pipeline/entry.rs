//! Cache entries, made from the columns of the walk that found a packet's flows and its exit.

use super::Pipeline;
use super::cache::{CacheEntry, Member, SLOTS};
use super::compile::{Compiler, Slot, Sum};
use super::lanes::{Lanes, Packets, Reg, lanes_of};
use ir::program::LookupId;
use net::Packet;

/// A [`Sum`] of columns.
struct ColumnSum {
    /// Factors, columns, and whether these hold signed numbers.
    terms: Vec<(i64, Reg, bool)>,
    more: i64,
}

impl ColumnSum {
    fn new(compiler: &mut Compiler<'_>, sum: &Sum) -> Option<Self> {
        let terms = sum.terms.iter().map(|&(factor, term)| {
            let (reg, is_signed) = compiler.number(term)?;
            Some((factor, reg, is_signed))
        });
        Some(Self { terms: terms.collect::<Option<_>>()?, more: sum.more })
    }

    fn regs(&self) -> impl Iterator<Item = Reg> {
        self.terms.iter().map(|term| term.1)
    }

    fn value(&self, lanes: &Lanes, lane: usize) -> i128 {
        self.terms.iter().fold(self.more.into(), |total, &(factor, reg, is_signed)| {
            let number = lanes.column(reg)[lane];
            let number = if is_signed { i64::from(number as i32) } else { number.into() };
            total + i128::from(factor) * i128::from(number)
        })
    }

    /// The remainder by 0xffff.
    fn residue(&self, lanes: &Lanes, lane: usize) -> u32 {
        self.value(lanes, lane).rem_euclid(0xffff) as u32
    }
}

/// What the number in a slot is computed from.
enum Source {
    Column(Reg),
    /// See [`Slot::Sum`].
    Sum {
        sum: ColumnSum,
        congruent: ColumnSum,
    },
    Residue(ColumnSum),
}

impl Source {
    fn new(compiler: &mut Compiler<'_>, slot: &Slot) -> Option<Self> {
        Some(match slot {
            Slot::Term(term, word) => Source::Column(compiler.word(*term, *word, &mut None)?),
            Slot::Sum { sum, congruent } => Source::Sum {
                sum: ColumnSum::new(compiler, sum)?,
                congruent: ColumnSum::new(compiler, congruent)?,
            },
            Slot::Residue(sum) => Source::Residue(ColumnSum::new(compiler, sum)?),
        })
    }

    fn regs(&self) -> Vec<Reg> {
        match self {
            Source::Column(reg) => vec![*reg],
            Source::Sum { sum, congruent } => sum.regs().chain(congruent.regs()).collect(),
            Source::Residue(sum) => sum.regs().collect(),
        }
    }

    /// The number of a lane; `None` if it does not fit.
    fn number(&self, lanes: &Lanes, lane: usize) -> Option<u32> {
        Some(match self {
            Source::Column(reg) => lanes.column(*reg)[lane],
            Source::Sum { sum, congruent } => match congruent.residue(lanes, lane) {
                0 => match sum.value(lanes, lane) {
                    ..0 => return None,
                    0 => 0,
                    _ => 0xffff,
                },
                residue => residue,
            },
            Source::Residue(sum) => match sum.residue(lanes, lane) {
                0 => 0xffff,
                residue => residue,
            },
        })
    }
}

/// An exit that entries of the flow cache lead to.
pub(super) struct CachedExit {
    /// The number of the plan.
    plan: u32,
    /// Conditions that decide on a path to it, or what it does to flows.
    pub(super) relevant: u32,
    pub(super) needs: Box<[Reg]>,
    slots: Vec<Source>,
}

impl CachedExit {
    /// An exit with the plan of this number, which takes some numbers from the cache; `None` if columns do not hold these.
    pub(super) fn new(
        compiler: &mut Compiler<'_>,
        (plan, slots): (u32, &[Slot]),
        relevant: u32,
    ) -> Option<Self> {
        let sources = slots.iter().map(|slot| Source::new(compiler, slot));
        let slots: Vec<Source> = sources.collect::<Option<_>>()?;
        let needs = compiler.lanes.needs(slots.iter().flat_map(Source::regs));
        Some(Self { plan, relevant, needs, slots })
    }
}

impl Pipeline {
    /// Adds what becomes of a lane to the flow cache, which holds for as long as the flows that it found.
    #[inline(never)]
    pub(super) fn remember(&mut self, packets: &[Packet], lane: usize, now: u64) {
        let Self { lanes, plans, sites, burst, tables, cache, tick, .. } = self;
        let Some(direct) = plans.get(burst.plan_of[lane] as usize) else { return };
        let number = burst.sites[lane];
        let site = sites.get(usize::from(number));
        let Some(exit) = site.and_then(|site| site.exit(direct.outcome)) else { return };
        // A packet behind this one may hold numbers of an entry of the same key that was removed since.
        let same =
            |other: usize| burst.keys[other] == burst.keys[lane] && burst.sites[other] == number;
        if burst.removed && lanes_of(burst.cached & u32::MAX << lane).any(same) {
            return;
        }
        burst.members.clear();
        let mut until = u64::MAX;
        for (found, lookup) in burst.found.iter().zip(0..) {
            let (bit, lookup) = (1 << lane, LookupId(lookup));
            if found.lanes & bit == 0 {
                // What was looked up in vain may be there later.
                if burst.looked_up[usize::from(lookup.0)] & bit != 0 {
                    return;
                }
                continue;
            }
            let Some(table) = tables.of(lookup) else { return };
            let flow = found.numbers[lane];
            let prolonged = direct.updates.iter().any(|update| update.lookup == lookup);
            until = until.min(tables.expiry(table, flow).saturating_sub(1));
            burst.members.push(Member { table, number: flow, prolonged });
        }
        if !lanes.knows(&exit.needs) {
            lanes.compute(&exit.needs, &Packets::new(packets, &mut burst.spare), &[]);
        }
        let mut slots = [0; SLOTS];
        for (slot, source) in slots.iter_mut().zip(&exit.slots) {
            let Some(number) = source.number(lanes, lane) else { return };
            *slot = number;
        }
        let entry = CacheEntry {
            key: burst.keys[lane],
            until: until.min(now | *tick),
            relevant: exit.relevant,
            holds: burst.holds[lane] & exit.relevant,
            plan: exit.plan,
            site: number,
            flows: 0,
            slots,
        };
        cache.insert(burst.hashes[lane], entry, &burst.members);
    }
}

#[cfg(test)]
mod tests {
    use ir::model::BinaryOp;
    use ir::program::{OnesSum, Program, Term, TermId};
    use ir::{Base, Field, Port};

    use super::*;
    use crate::pipeline::lanes::Spare;
    use crate::pipeline::prepared::Ranges;

    /// `a` becomes `b`, `b` becomes `c`: what checksums change by is what `a` and `c` differ by.
    #[test]
    fn sums_of_what_translators_change_are_sums_of_what_is_left() {
        let mut terms: Vec<Term> =
            (0..3).map(|i| Term::Input(Field::bytes(Base::Data, 2 * i, 2))).collect();
        let mut add = |term| {
            terms.push(term);
            TermId(terms.len() as u32 - 1)
        };
        let all = add(Term::Const(0xffff));
        let mut change = |from: u32, to: u32| {
            let more = add(Term::Binary(BinaryOp::Add, TermId(to), all));
            let less = add(Term::Binary(BinaryOp::Sub, more, TermId(from)));
            add(Term::Binary(BinaryOp::Rem, less, all))
        };
        let sum = Sum { terms: vec![(1, change(0, 1)), (1, change(1, 2))], more: 0 };
        let (plus, minus) = (vec![TermId(1)], vec![TermId(0)]);
        let checksum = add(Term::OnesSum(OnesSum { complement: true, plus, minus, constant: 5 }));
        let entry = Port { node: 0, port: 0 };
        let program = Program {
            entry,
            continuation: None,
            terms,
            state: vec![],
            tables: vec![],
            lookups: vec![],
            steps: vec![],
        };
        let (mut pool, ranges) = (net::Pool::new(), Ranges::default());
        let mut compiler = Compiler::new(&program, &ranges);
        let congruent = compiler.congruent(&sum);
        assert_eq!(congruent, Sum { terms: vec![(1, TermId(2)), (-1, TermId(0))], more: 0 });
        let of_checksum = compiler.congruent(&Sum { terms: vec![(1, checksum)], more: 0 });
        assert_eq!(of_checksum, Sum { terms: vec![(-1, TermId(1)), (1, TermId(0))], more: -5 });

        let slot = Slot::Sum { sum, congruent };
        let source = Source::new(&mut compiler, &slot).expect("columns hold such numbers");
        let needs = compiler.lanes.needs(source.regs());
        let lanes = &mut compiler.lanes;
        let numbers = [0u16, 1, 2, 0x7fff, 0xfffe, 0xffff];
        let all = numbers.iter().flat_map(|&a| numbers.map(|b| numbers.map(|c| (a, b, c))));
        for (a, b, c) in all.flatten() {
            let mut packet = pool.alloc(6);
            for (bytes, number) in packet.data_mut().chunks_mut(2).zip([a, b, c]) {
                bytes.copy_from_slice(&number.to_be_bytes());
            }
            let change = |from: u16, to: u16| (u32::from(to) + 0xffff - u32::from(from)) % 0xffff;
            let expected = match change(a, b) + change(b, c) {
                0 => 0,
                sum => (sum - 1) % 0xffff + 1,
            };
            let mut spare = Spare::default();
            let packets = Packets::new(std::slice::from_ref(&packet), &mut spare);
            lanes.start(&packets);
            lanes.compute(&needs, &packets, &[]);
            assert_eq!(source.number(lanes, 0), Some(expected), "{a} {b} {c}");
        }
    }
}
