//! Tables: what packets are looked up in, each once however many paths lead to it.
//!
//! A table belongs to an element and keeps what the element's model says: its prefixes, its rules or
//! its flows, shared and not copied. Steps name it and bring the numbers to look up, since the same
//! field is another term on another path.

use std::sync::Arc;

use super::{ClassifyRule, StateId};
use crate::graph::NodeId;
use crate::interval::IntervalSet;
use crate::prefix_table::PrefixTable;

/// Index of a [`Table`] in its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u16);

/// A table that packets are looked up in.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The element that it belongs to, or through whose model it was met.
    pub element: NodeId,
    /// Widths of its keys in bits.
    pub widths: Vec<u16>,
    /// What it holds.
    pub entries: Entries,
}

/// What a table holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Entries {
    /// Flows, which packets add and remove: a [`crate::model::StateKind::Flows`].
    Flows(StateId),
    /// Prefixes, of which the longest counts.
    Prefixes(Arc<PrefixTable>),
    /// Rules, of which the first counts.
    Rules(Arc<[ClassifyRule]>),
}

/// How entries of a table match one of its keys, in the terms of P4's match kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchKind {
    /// Every entry names one number.
    Exact,
    /// Entries name prefixes, and the longest counts.
    Lpm,
    /// Entries name bits that count.
    Ternary,
    /// Entries name ranges.
    Range,
}

impl Table {
    /// Whether both are the same table: entries are shared, not copied.
    pub fn is_same(&self, other: &Self) -> bool {
        self.element == other.element
            && match (&self.entries, &other.entries) {
                (Entries::Flows(a), Entries::Flows(b)) => a == b,
                (Entries::Prefixes(a), Entries::Prefixes(b)) => Arc::ptr_eq(a, b),
                (Entries::Rules(a), Entries::Rules(b)) => Arc::ptr_eq(a, b),
                _ => false,
            }
    }
}

impl MatchKind {
    /// Its name: `exact`, `lpm`, `ternary` or `range`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Lpm => "lpm",
            Self::Ternary => "ternary",
            Self::Range => "range",
        }
    }
}

impl Table {
    /// How its entries match each key.
    pub fn kinds(&self) -> Vec<MatchKind> {
        match &self.entries {
            Entries::Flows(_) => vec![MatchKind::Exact; self.widths.len()],
            Entries::Prefixes(_) => vec![MatchKind::Lpm; self.widths.len()],
            Entries::Rules(rules) => rule_kinds(rules, self.widths.len()),
        }
    }

    /// How many entries it has as it is; `None` if packets add them.
    pub fn len(&self) -> Option<usize> {
        match &self.entries {
            Entries::Flows(_) => None,
            Entries::Prefixes(table) => Some(table.len()),
            Entries::Rules(rules) => Some(rules.len()),
        }
    }

    /// Whether it has no entries and never will.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// What it is called: `routes`, `rules` or `flows`.
    pub fn sort(&self) -> &'static str {
        match self.entries {
            Entries::Flows(_) => "flows",
            Entries::Prefixes(_) => "routes",
            Entries::Rules(_) => "rules",
        }
    }
}

fn rule_kinds(rules: &[ClassifyRule], keys: usize) -> Vec<MatchKind> {
    let mut kinds = vec![MatchKind::Exact; keys];
    for cube in rules.iter().flat_map(|rule| rule.cubes.iter()) {
        let mut asked = vec![false; keys];
        for (key, set) in cube {
            let key = usize::from(*key);
            let (Some(kind), Some(asked)) = (kinds.get_mut(key), asked.get_mut(key)) else {
                continue;
            };
            *asked = true;
            *kind = (*kind).max(set_kind(set));
        }
        for (kind, asked) in kinds.iter_mut().zip(asked) {
            *kind = if asked { *kind } else { (*kind).max(MatchKind::Ternary) };
        }
    }
    kinds
}

/// The least kind of match that names a set by one entry for each of its intervals.
fn set_kind(set: &IntervalSet) -> MatchKind {
    let aligned = |&(low, high): &(u128, u128)| {
        let free = low ^ high;
        free.checked_add(1).is_none_or(u128::is_power_of_two) && low & free == 0
    };
    if set.intervals().iter().all(|(low, high)| low == high) {
        MatchKind::Exact
    } else if set.intervals().iter().all(aligned) {
        MatchKind::Ternary
    } else {
        MatchKind::Range
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_the_least_that_name_all_entries() {
        let (one, prefix) = (IntervalSet::single, IntervalSet::prefix(32, 0x0a00_0000, 8));
        let rule = |cube: Vec<(u8, IntervalSet)>| ClassifyRule {
            cubes: [cube].into(),
            arm: 0,
            number: 0,
            span: None,
        };
        let kinds = |rules: Vec<ClassifyRule>| {
            let entries = Entries::Rules(rules.into());
            Table { element: 0, widths: vec![32, 16], entries }.kinds()
        };
        use MatchKind::{Exact, Range, Ternary};
        let exact = rule(vec![(0, one(1)), (1, one(2))]);
        assert_eq!(kinds(vec![exact.clone()]), [Exact, Exact]);
        assert_eq!(kinds(vec![exact.clone(), rule(vec![(0, one(1))])]), [Exact, Ternary]);
        let wide = rule(vec![(0, prefix), (1, IntervalSet::range(1, 1024))]);
        assert_eq!(kinds(vec![wide, exact]), [Ternary, Range]);
    }
}
