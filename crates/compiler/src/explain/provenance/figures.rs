//! How much is done to a packet on a path: by the chain's elements, and by the program.

use std::collections::HashSet;

use ir::program::{Exit, Step, Term};
use ir::{Base, Model, Op, Program};

use super::{Path, Visit, closure, is_sum};

/// What is done to a packet of a class, of the paths that lead to it on the one with the fewest
/// decisions. Places that overlap count as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Elements that it visits; a program counts as one.
    pub elements: usize,
    /// Decisions that are taken; one of an element may be about several things, one of a program
    /// is about one.
    pub decisions: usize,
    /// Places in its bytes that are read; a chain's elements read anew.
    pub reads: usize,
    /// Places in its bytes that are written.
    pub writes: usize,
    /// Checksums that are checked.
    pub verified: usize,
    /// Checksums that are written.
    pub updated: usize,
    /// Flow tables that are looked into.
    pub flows: usize,
    /// Route tables and lists of rules that are looked into; lists of a few rules may have become
    /// decisions of the program.
    pub tables: usize,
    /// Headers that are stripped or pushed.
    pub moves: usize,
}

/// Figures of the elements that a packet came through.
pub fn of_chain(visits: &[Visit]) -> Figures {
    let mut all = Figures { elements: visits.len(), ..Figures::default() };
    for visit in visits {
        let bits = |p: &super::BitRange| (p.space, p.start, p.start + p.width as i32);
        all.reads += separate(visit.reads.iter().map(bits).collect());
        all.writes += separate(visit.writes.iter().filter(|w| w.is_packet()).map(bits).collect());
        all.decisions += visit.decisions;
        all.verified += visit.verified;
        all.updated += visit.updated;
        all.flows += visit.flows;
        all.tables += visit.tables;
        all.moves += visit.moves;
    }
    all
}

/// Figures of a program's path to an exit.
pub fn of_path(program: &Program, models: &[Model], path: &Path, exit: &Exit) -> Figures {
    let mut all = Figures { elements: 1, decisions: path.decisions.len(), ..Figures::default() };
    let mut terms = exit.terms();
    for (step, _) in &path.decisions {
        let step = program.step(*step);
        terms.extend(step.terms());
        match step {
            Step::Test { .. } => {
                all.verified += usize::from(step.terms().iter().any(|t| program.verifies(*t)));
            }
            Step::Switch { element, .. } => {
                let model = models.get(*element);
                all.tables += usize::from(model.is_some_and(has_table));
            }
            Step::Classify { .. } => all.tables += 1,
            Step::Lookup { lookup, .. } => {
                all.flows += 1;
                if let Some(lookup) = program.lookups.get(usize::from(lookup.0)) {
                    terms.extend(&lookup.key);
                }
            }
            Step::Exit(_) => {}
        }
    }
    let places = closure(program, terms).into_iter().filter_map(|t| match program.term(t) {
        Term::Input(field) if field.base == Base::Data => {
            Some((0, i32::from(field.offset), i32::from(field.offset) + i32::from(field.width)))
        }
        _ => None,
    });
    all.reads = separate(places.collect());
    all.writes = exit.writes.bytes.len();
    all.updated = exit.writes.bytes.iter().filter(|w| is_sum(program, w.value)).count();
    all.moves = usize::from(exit.writes.start != 0);
    all
}

/// How many runs of places there are that overlap one another.
fn separate<S: Ord + Copy>(mut places: Vec<(S, i32, i32)>) -> usize {
    places.sort_unstable();
    let mut count = 0;
    let mut last: Option<(S, i32)> = None;
    for (space, start, end) in places {
        match last {
            Some((before, until)) if before == space && start < until => {
                last = Some((space, until.max(end)));
            }
            _ => {
                count += 1;
                last = Some((space, end));
            }
        }
    }
    count
}

/// Whether a model looks into a table of prefixes.
fn has_table(model: &Model) -> bool {
    let mut waiting: Vec<&Op> = model.inputs.iter().flatten().collect();
    let mut seen: HashSet<*const Op> = HashSet::new();
    while let Some(op) = waiting.pop() {
        if matches!(op, Op::Lookup { .. }) {
            return true;
        }
        if seen.insert(op) {
            waiting.extend(op.blocks().flatten());
        }
    }
    false
}
