//! Programs of which what takes longest to compile is done already: the tables of what they look
//! up in many ranges, as routers with many routes do. Any thread can do that.

use std::collections::HashMap;
use std::sync::Arc;

use ir::program::{Program, Step, StepId, Term};
use ir::{IntervalSet, RangeMap};

use super::range_table::RangeTable;

/// A program and its tables; clones share them.
#[derive(Clone)]
pub struct Prepared {
    pub(crate) program: Arc<Program>,
    pub(super) ranges: Arc<Ranges>,
}

/// See the module.
#[derive(Default)]
pub(super) struct Ranges {
    switches: HashMap<StepId, Arc<RangeTable>>,
    mappings: Vec<(Arc<RangeMap>, Option<Arc<RangeTable>>)>,
}

impl Prepared {
    /// Makes the tables of a program; one with tables of prefixes is lowered first.
    pub fn new(program: Program) -> Self {
        let program = if program.has_prefixes() { program.lower() } else { program };
        let ranges = Arc::new(Ranges::of(&program));
        Self { program: Arc::new(program), ranges }
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether there are clones.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.program) > 1
    }
}

impl Ranges {
    fn of(program: &Program) -> Self {
        let mut ranges = Self::default();
        for (step, id) in program.steps.iter().zip(0..) {
            if let Step::Switch { cases, otherwise, .. } = step
                && !is_small(cases)
            {
                let table = RangeTable::of_cases(cases, *otherwise);
                ranges.switches.insert(StepId(id), Arc::new(table));
            }
        }
        for term in &program.terms {
            if let Term::Map(_, mapping) = term
                && ranges.find(mapping).is_none()
            {
                let table = RangeTable::of_mapping(mapping).map(Arc::new);
                ranges.mappings.push((Arc::clone(mapping), table));
            }
        }
        ranges
    }

    fn find(&self, mapping: &Arc<RangeMap>) -> Option<&Option<Arc<RangeTable>>> {
        let mut known = self.mappings.iter();
        known.find(|(known, _)| Arc::ptr_eq(known, mapping)).map(|(_, table)| table)
    }

    /// The steps that a switch leads to.
    pub(super) fn switch(&self, step: StepId) -> Option<Arc<RangeTable>> {
        self.switches.get(&step).cloned()
    }

    /// What a mapping maps numbers to, if all have 32 bits.
    pub(super) fn mapping(&self, mapping: &Arc<RangeMap>) -> Option<Arc<RangeTable>> {
        self.find(mapping).cloned().flatten()
    }
}

/// Whether the cases of a switch are better tested one after the other.
pub(super) fn is_small(cases: &[(IntervalSet, StepId)]) -> bool {
    let intervals: usize = cases.iter().map(|(set, _)| set.intervals().len()).sum();
    cases.len() <= 6 && intervals <= 24
}
