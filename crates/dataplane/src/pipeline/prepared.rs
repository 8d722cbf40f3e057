//! Programs of which what takes longest to compile is done already: the tables of what they look
//! up in many ranges, as routers with many routes do, and what long lists of rules ask. Any thread can do that.

use std::collections::HashMap;
use std::sync::Arc;

use ir::program::{ClassifyRule, Program, Step, StepId, Term};
use ir::{IntervalSet, Mapping};

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
    mappings: Vec<(Arc<Mapping>, Option<Arc<RangeTable>>)>,
    asked: HashMap<StepId, Vec<Asked>>,
}

/// The sets that rules ask of one of their keys, if they are few.
type Asked = Option<Vec<IntervalSet>>;

/// More are many.
const FEW_SETS: usize = 4;

impl Prepared {
    /// Makes the tables of a program.
    pub fn new(program: Program) -> Self {
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
            if let Step::Classify { keys, rules, .. } = step {
                ranges.asked.insert(StepId(id), asked(rules, keys.len()));
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

    fn find(&self, mapping: &Arc<Mapping>) -> Option<&Option<Arc<RangeTable>>> {
        let mut known = self.mappings.iter();
        known.find(|(known, _)| Arc::ptr_eq(known, mapping)).map(|(_, table)| table)
    }

    /// The steps that a switch leads to.
    pub(super) fn switch(&self, step: StepId) -> Option<Arc<RangeTable>> {
        self.switches.get(&step).cloned()
    }

    /// What the rules of a list ask, by key.
    pub(super) fn asked(&self, step: StepId) -> &[Asked] {
        self.asked.get(&step).map_or(&[], |asked| asked)
    }

    /// What a mapping maps numbers to, if all have 32 bits.
    pub(super) fn mapping(&self, mapping: &Arc<Mapping>) -> Option<Arc<RangeTable>> {
        self.find(mapping).cloned().flatten()
    }
}

/// What rules ask of so many keys.
fn asked(rules: &[ClassifyRule], keys: usize) -> Vec<Asked> {
    let mut asked = vec![Some(Vec::new()); keys];
    for (key, set) in rules.iter().flat_map(|rule| rule.cubes.iter().flatten()) {
        let Some(of_key) = asked.get_mut(usize::from(*key)) else { continue };
        let Some(sets) = of_key else { continue };
        if !sets.contains(set) {
            sets.push(set.clone());
            if sets.len() > FEW_SETS {
                *of_key = None;
            }
        }
    }
    asked
}

/// Whether the cases of a switch are better tested one after the other.
pub(super) fn is_small(cases: &[(IntervalSet, StepId)]) -> bool {
    let intervals: usize = cases.iter().map(|(set, _)| set.intervals().len()).sum();
    cases.len() <= 6 && intervals <= 24
}
