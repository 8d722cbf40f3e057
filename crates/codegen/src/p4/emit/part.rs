//! A segment that becomes a part of the pipeline: what its steps are made of, and what leads where.

use std::collections::{BTreeMap, BTreeSet};

use ir::IntervalSet;
use ir::layout::{Facts, Layouts};
use ir::program::{Atom, LookupId, Program, Step, StepId, Term, TermId};

use super::super::Arch;
use super::checksum::Sums;
use super::exit;
use super::nodes::{Plan, Tree};
use super::number::{Numbers, Rows};
use super::steps::routes;
use crate::Segment;
use crate::headers::{Instance, Placed, placed};
use crate::number::behind;
use crate::rule::prefixes;

/// Branches within branches.
const MOST_DEPTH: usize = 12;
/// Masks of a step that may be rows of a table of trees, and those of one test.
const MOST_MASKS: usize = 192;
const MOST_OF_TEST: usize = 8;
/// Entries of a lookup that is a step of a tree.
const MOST_FOUND: usize = 8;

/// How many masks a set becomes.
pub(super) fn masks(set: &IntervalSet, width: u16) -> usize {
    match set.as_masked(width) {
        Some(_) => 1,
        None => prefixes(set, width, MOST_OF_TEST).map_or(usize::MAX, |all| all.len()),
    }
}

/// A segment that becomes a part of the pipeline.
pub(super) struct Part<'a> {
    arch: Arch,
    pub(super) segment: &'a Segment,
    /// What its steps are counted from.
    pub(super) base: u32,
    layouts: Layouts,
    places: Vec<Vec<Placed>>,
    /// By step: how many lead to it.
    pub(super) leading: Vec<usize>,
    pub(super) wanted: Vec<BTreeSet<LookupId>>,
    pub(super) plan: Plan,
    /// The words that are taken off checksums.
    sums: Sums,
}

/// By step: the lookups whose numbers are used there or behind.
fn wanted(program: &Program) -> Vec<BTreeSet<LookupId>> {
    let mut of_terms: Vec<BTreeSet<LookupId>> = Vec::with_capacity(program.terms.len());
    for term in &program.terms {
        let mut set: BTreeSet<LookupId> = term
            .operands()
            .iter()
            .flat_map(|operand| of_terms[operand.0 as usize].clone())
            .collect();
        if let Term::Bound(lookup, _) = term {
            set.insert(*lookup);
        }
        of_terms.push(set);
    }
    let mut all = vec![BTreeSet::new(); program.steps.len()];
    for (at, step) in program.steps.iter().enumerate().rev() {
        let mut terms = match step {
            Step::Exit(exit) => exit::terms(exit),
            step => step.terms(),
        };
        if let Step::Lookup { lookup, .. } = step {
            terms.extend(&program.lookups[usize::from(lookup.0)].key);
        }
        let mut set: BTreeSet<LookupId> =
            step.next().flat_map(|next| all[next.0 as usize].clone()).collect();
        if let Step::Lookup { lookup, .. } = step {
            set.remove(lookup);
        }
        set.extend(terms.iter().flat_map(|term| of_terms[term.0 as usize].clone()));
        all[at] = set;
    }
    all
}

impl<'a> Part<'a> {
    pub(super) fn new(arch: Arch, segment: &'a Segment, base: u32, sums: Sums) -> Self {
        let program = &segment.program;
        let mut leading = vec![0; program.steps.len()];
        for next in program.steps.iter().flat_map(Step::next) {
            leading[next.0 as usize] += 1;
        }
        Self {
            arch,
            segment,
            base,
            layouts: Layouts::of(program),
            places: segment.layouts.iter().map(placed).collect(),
            leading,
            wanted: wanted(program),
            plan: Plan::default(),
            sums,
        }
    }

    fn facts(&self, at: StepId) -> Option<&Facts> {
        self.layouts.facts(at)
    }

    pub(super) fn numbers<'p>(&'p self, at: StepId, rows: &'p Rows) -> Numbers<'p> {
        let placed = self.places.get(at.0 as usize).map_or(&[][..], Vec::as_slice);
        Numbers {
            arch: self.arch,
            program: &self.segment.program,
            placed,
            facts: self.facts(at),
            rows,
            slots: Some(&self.plan.slots),
            sums: Some(&self.sums),
            before: None,
            variables: 0,
        }
    }

    pub(super) fn found(&self, lookup: LookupId, index: u8) -> String {
        self.numbers(StepId(0), &Rows::new()).found(lookup, index)
    }

    /// Whether a step is an `if`, should it be no row of a table.
    pub(super) fn is_condition(&self, at: StepId) -> bool {
        let Step::Test { atom, .. } = self.segment.program.step(at) else { return false };
        self.numbers(at, &Rows::new()).condition(atom).is_ok()
    }

    /// Whether a step stands in the branch of the `if` that leads to it.
    pub(super) fn is_within(&self, to: StepId, depth: usize) -> bool {
        let is_alone = self.leading[to.0 as usize] <= 1 && depth < MOST_DEPTH;
        is_alone && self.is_condition(to) && !self.is_short(to)
    }

    /// Where an `if` leads to.
    pub(super) fn leaves(&self, at: StepId) -> BTreeSet<StepId> {
        let mut found = BTreeSet::new();
        let mut waiting = vec![(at, 0)];
        while let Some((at, depth)) = waiting.pop() {
            for next in self.segment.program.step(at).next() {
                match self.is_within(next, depth + 1) {
                    true => waiting.push((next, depth + 1)),
                    false => drop(found.insert(next)),
                }
            }
        }
        found
    }

    /// How many masks a step's tests are, if they are that.
    fn masks(&self, at: StepId) -> Option<usize> {
        let program = &self.segment.program;
        let (keys, sets): (Vec<TermId>, Vec<(TermId, &IntervalSet)>) = match program.step(at) {
            Step::Test { atom: Atom::Test(term, set), .. } => (vec![*term], vec![(*term, &**set)]),
            Step::Switch { on, cases, .. } => {
                (vec![*on], cases.iter().map(|case| (*on, &case.0)).collect())
            }
            Step::Classify { keys, rules, .. } => {
                let tests = rules.iter().flat_map(|rule| rule.cubes.iter().flatten());
                let tests = tests.map(|(key, set)| (keys[usize::from(*key)], set));
                (keys.clone(), tests.collect())
            }
            Step::Lookup { lookup, .. } => {
                let (key, table) = routes(program, *lookup).ok()?;
                let is_few = table.len() <= MOST_FOUND && program.width(key) == table.width();
                let of = self.numbers(at, &Rows::new()).whole(key).ok()?;
                return (is_few && of.is_plain()).then(|| table.len());
            }
            _ => return None,
        };
        let rows = Rows::new();
        let mut numbers = self.numbers(at, &rows);
        for key in keys {
            let of = numbers.whole(key).ok()?;
            of.is_plain().then_some(())?;
        }
        let test = matches!(program.step(at), Step::Test { .. });
        let mut all = 0_usize;
        for (term, set) in sets {
            let width = program.width(term).max(1);
            let mut own = masks(set, width);
            if test {
                own = own.min(masks(&set.complement(width), width));
            }
            all = all.checked_add(own)?;
        }
        Some(all)
    }

    /// Whether a step's tests are few, so that they may be rows of a table of trees.
    pub(super) fn is_short(&self, at: StepId) -> bool {
        self.masks(at).is_some_and(|masks| masks <= MOST_MASKS)
    }

    /// Headers that have to be there for a step's numbers to be known.
    pub(super) fn needed(&self, at: StepId) -> BTreeSet<Instance> {
        let rows = Rows::new();
        let mut numbers = self.numbers(at, &rows);
        let program = &self.segment.program;
        let mut terms = program.step(at).terms();
        if let Step::Lookup { lookup, .. } = program.step(at) {
            terms.extend(&program.lookups[usize::from(lookup.0)].key);
        }
        terms.iter().filter_map(|term| numbers.whole(*term).ok()).flat_map(|of| of.needs).collect()
    }

    /// Bits of the key of a table of trees.
    pub(super) fn bits<'t>(&self, trees: impl Iterator<Item = &'t Tree>) -> u32 {
        let rows = Rows::new();
        let mut keys: BTreeMap<String, u32> = BTreeMap::new();
        for row in trees.flat_map(|tree| &tree.rows) {
            for (term, (at, _)) in &row.tests {
                if let Ok(of) = self.numbers(*at, &rows).whole(*term) {
                    keys.insert(of.text, of.width.into());
                }
            }
        }
        keys.values().sum()
    }

    /// Where a packet gets to for which lookups found these rows, as far as only they decide.
    pub(super) fn behind(&self, at: StepId, rows: &Rows) -> StepId {
        behind(&self.segment.program, at, rows)
    }
}
