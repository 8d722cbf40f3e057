//! Rules as devices match them, whatever fields they know: which bits a number is, which header lies where in the packets of a
//! rule, which masks make up a set of numbers, and how long the rows of lookups matter.

mod conditions;
mod lists;

use std::collections::BTreeSet;

use ir::field::ip;
use ir::layout::{Evidence, Kind, Layout, Start};
use ir::program::{LookupId, Program, Step, Term, TermId};
use ir::{Base, Field, IntervalSet};

pub(crate) use conditions::{Conditions, Key};
pub(crate) use lists::{ListRule, Lists, Matcher, Node, Packets, decide, does, lack};

/// The bits of the packet that a term is.
pub(crate) fn input_bits(program: &Program, term: TermId) -> Option<Field> {
    let field = match program.term(term) {
        Term::Input(field) => *field,
        Term::Slice { of, low, width } => {
            let Term::Input(field) = program.term(*of) else { return None };
            let (low, width) = (u16::from(*low), u16::from(*width));
            let before = field.width.checked_sub(low + width).filter(|_| width > 0)?;
            Field::bits(field.base, field.offset.checked_add(before)?, width)
        }
        _ => return None,
    };
    Some(field)
}

/// What is known of the packets that a conjunction matches: what it says itself, and where headers
/// lie whatever matches.
struct Said<'a> {
    layout: &'a Layout,
    numbers: Vec<(Field, &'a IntervalSet)>,
}

impl Evidence for Said<'_> {
    fn bits(&self, start: i32, width: u32) -> Option<IntervalSet> {
        let same =
            |field: &Field| (i32::from(field.offset), u32::from(field.width)) == (start, width);
        if let Some((_, set)) = self.numbers.iter().find(|(field, _)| same(field)) {
            return Some((*set).clone());
        }
        let headers = self.layout.headers();
        headers.iter().enumerate().find_map(|(at, header)| {
            let words = header.bit(ip::HL) == start && width == u32::from(ip::HL.width);
            if header.kind == Kind::Ipv4 && words && header.options == Some(false) {
                return Some(IntervalSet::single(5));
            }
            let (select, before) = (header.select?, headers[..at].iter().rev());
            let mut places =
                before.map(|before| (before.bit(select.field), u32::from(select.field.width)));
            let known = !header.assumed && places.any(|place| place == (start, width));
            known.then(|| IntervalSet::single(select.value))
        })
    }

    fn reaches(&self, _: i32) -> bool {
        true
    }
}

/// Which header lies where in packets that a rule's cube matches: a rule on ports says itself that it is about TCP.
pub(crate) fn layout_of(
    program: &Program,
    layout: &Layout,
    keys: &[TermId],
    cube: &[(u8, IntervalSet)],
) -> Layout {
    let fields = cube.iter().filter_map(|(key, set)| {
        let term = *keys.get(usize::from(*key))?;
        let field = input_bits(program, term).filter(|field| field.base == Base::Data)?;
        Some((field, set))
    });
    let said = Said { layout, numbers: fields.collect() };
    let start = Start { frame: Some(0), network: None, transport: None, kind: None };
    Layout::parse(&said, start)
}

/// The fewest prefixes that make up a set of numbers of a width: value and mask of each. None if they are more than `most`.
pub(crate) fn prefixes(
    set: &IntervalSet,
    width: u16,
    most: usize,
) -> Result<Vec<(u128, u128)>, Option<usize>> {
    let all = u128::MAX >> (128 - width);
    let mut found = Vec::new();
    for &(mut low, high) in set.intervals() {
        loop {
            let aligned = if low == 0 { u32::from(width) } else { low.trailing_zeros() };
            let room = (high - low).checked_add(1).map_or(128, u128::ilog2);
            let bits = aligned.min(room).min(u32::from(width));
            let free = u128::MAX.checked_shr(128 - bits).unwrap_or(0);
            found.push((low, all & !free));
            if found.len() > most {
                return Err(None);
            }
            match (low | free).checked_add(1) {
                Some(next) if next <= high => low = next,
                _ => break,
            }
        }
    }
    Ok(found)
}

/// By step: lookups whose rows are used there or later.
pub(crate) fn live(program: &Program) -> Vec<BTreeSet<LookupId>> {
    let mut bound: Vec<BTreeSet<LookupId>> = Vec::with_capacity(program.terms.len());
    for term in &program.terms {
        let of = |term: &TermId| bound.get(term.0 as usize).cloned().unwrap_or_default();
        let mut all: BTreeSet<LookupId> = term.operands().iter().flat_map(of).collect();
        if let Term::Bound(lookup, _) = term {
            all.insert(*lookup);
        }
        bound.push(all);
    }
    let mut live = vec![BTreeSet::new(); program.steps.len()];
    for (at, step) in program.steps.iter().enumerate().rev() {
        let mut here = BTreeSet::new();
        for next in step.next() {
            let mut later = live[next.0 as usize].clone();
            if let Step::Lookup { lookup, hit, .. } = step
                && next == *hit
            {
                later.remove(lookup);
            }
            here.append(&mut later);
        }
        let mut terms = step.terms();
        if let Step::Lookup { lookup, .. } = step {
            terms.extend(program.lookups.get(usize::from(lookup.0)).iter().flat_map(|l| &l.key));
        }
        here.extend(terms.iter().flat_map(|term| &bound[term.0 as usize]));
        live[at] = here;
    }
    live
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_make_up_a_set_and_nothing_else() {
        for (low, high) in [(0, 255), (1, 254), (7, 7), (3, 128), (0, 0), (255, 255), (16, 31)] {
            let set = IntervalSet::range(low, high);
            let masks = prefixes(&set, 8, 99).unwrap();
            for number in 0..256 {
                let count = masks.iter().filter(|(v, m)| number & m == *v).count();
                assert_eq!(count, usize::from(set.contains(number)), "{number} of {low}..{high}");
            }
        }
        assert_eq!(prefixes(&IntervalSet::full(128), 128, 1).unwrap(), [(0, 0)]);
        assert_eq!(prefixes(&IntervalSet::range(1, 65534), 16, 30).unwrap().len(), 30);
        assert_eq!(prefixes(&IntervalSet::range(1, 65534), 16, 29), Err(None));
    }
}
