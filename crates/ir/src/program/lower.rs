//! Lowering: a program with tables of prefixes becomes one without.

use std::sync::Arc;

use super::{Atom, Entries, LookupId, Program, Step, Term};
use crate::interval::IntervalSet;
use crate::range_map::RangeMap;

impl Program {
    /// The same program for executors that have no tables of prefixes: each lookup becomes a test
    /// whether some prefix matches, and each number of a row a range map.
    ///
    /// # Panics
    /// If the program refers to what it does not have; see [`super::verify`].
    pub fn lower(self) -> Self {
        // Keys stand before what their lookups bind then.
        let mut program = self.normal();
        let columns: Vec<Option<(IntervalSet, Vec<Arc<RangeMap>>)>> = program
            .lookups
            .iter()
            .map(|lookup| match &program.tables[usize::from(lookup.table.0)].entries {
                Entries::Prefixes(table) => Some(table.columns()),
                Entries::Flows(_) | Entries::Rules(_) => None,
            })
            .collect();
        let of = |lookup: LookupId| columns[usize::from(lookup.0)].as_ref();
        for term in &mut program.terms {
            if let Term::Bound(lookup, index) = *term
                && let Some((_, maps)) = of(lookup)
            {
                let key = program.lookups[usize::from(lookup.0)].key[0];
                *term = match maps.get(usize::from(index)) {
                    Some(map) => Term::Map(key, Arc::clone(map)),
                    // No row has as many numbers.
                    None => Term::Const(0),
                };
            }
        }
        for step in &mut program.steps {
            if let Step::Lookup { lookup, hit, miss } = *step
                && let Some((keys, _)) = of(lookup)
            {
                let asked = &program.lookups[usize::from(lookup.0)];
                let atom = match keys.is_empty() {
                    // No set is empty: nothing is compared with itself and differs.
                    true => Atom::Compare(crate::model::CompareOp::Ne, asked.key[0], asked.key[0]),
                    false => Atom::Test(asked.key[0], Arc::new(keys.clone())),
                };
                *step = Step::Test { atom, yes: hit, no: miss, element: asked.element };
            }
        }
        program.normal()
    }
}
