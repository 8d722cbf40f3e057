//! What a program asks of the fields that classes are distinguished by.

use std::collections::{BTreeMap, BTreeSet};

use ir::program::{Atom, ClassifyRule, Step, StepId, Term, TermId};
use ir::{Field, IntervalSet, Program, RangeMap};

use super::FIELDS;

/// What a step asks.
pub(super) enum Question {
    /// In which of these disjoint sets, which hold all its numbers, a field is; for each the steps
    /// that packets may go on to.
    Number(Field, Vec<(IntervalSet, Vec<StepId>)>),
    /// Which rule matches first.
    Rules(Rules),
    /// What tells no classes apart.
    Other(Vec<StepId>),
    /// Nothing: packets of a class leave here.
    End,
}

/// A list of rules, as conjunctions.
pub(super) struct Rules {
    /// Fields that they look at.
    pub(super) fields: Vec<Field>,
    /// In order of precedence.
    pub(super) conjunctions: Vec<Conjunction>,
    /// Where packets go that none matches.
    pub(super) otherwise: StepId,
}

pub(super) struct Conjunction {
    /// By index of the field.
    pub(super) sets: Vec<(usize, IntervalSet)>,
    /// Whether it asks nothing else.
    pub(super) is_exact: bool,
    /// Where packets go that match.
    pub(super) to: StepId,
}

/// What each step of a program asks.
pub(super) struct Questions {
    pub(super) steps: Vec<Question>,
    leads_on: Vec<bool>,
    /// By step, the owner of the table of flows that it looks in.
    pub(super) tables: BTreeMap<usize, String>,
}

impl Questions {
    /// What a program asks; `is_end` tells the exits that packets of a class leave by.
    pub(super) fn of(program: &Program, is_end: impl Fn(StepId) -> bool) -> Self {
        let mut leads_on = vec![false; program.steps.len()];
        for (at, step) in program.steps.iter().enumerate().rev() {
            leads_on[at] = match step {
                Step::Exit(_) => is_end(StepId(at as u32)),
                _ => step.next().any(|to| leads_on[to.0 as usize]),
            };
        }
        let mut tables = BTreeMap::new();
        let ask = |(at, step): (usize, &Step)| match step {
            Step::Exit(_) if leads_on[at] => Question::End,
            Step::Lookup { lookup, .. } => {
                if let Some(state) = program.flows_of(*lookup)
                    // What is found by one number is no flow but a neighbour.
                    && program.lookups[usize::from(lookup.0)].key.len() > 1
                {
                    tables.insert(at, state.owner.clone());
                }
                Question::Other(step.next().collect())
            }
            _ => question(program, step).unwrap_or_else(|| Question::Other(step.next().collect())),
        };
        let steps = program.steps.iter().enumerate().map(ask).collect();
        Self { steps, leads_on, tables }
    }

    /// Whether a step leads to where packets of a class leave.
    pub(super) fn leads_on(&self, step: StepId) -> bool {
        self.leads_on.get(step.0 as usize) == Some(&true)
    }
}

/// `None` if it is about no field that classes are distinguished by.
fn question(program: &Program, step: &Step) -> Option<Question> {
    match step {
        Step::Test { atom: Atom::Test(term, set), yes, no, .. } => {
            number(program, *term, &[((**set).clone(), *yes)], *no)
        }
        Step::Switch { on, cases, otherwise, .. } => number(program, *on, cases, *otherwise),
        Step::Classify { keys, rules, arms, otherwise, .. } => {
            let rules = Rules::of(program, keys, rules, arms, *otherwise);
            match rules.fields[..] {
                [] => None,
                [field] => {
                    let all = rules.conjunctions.iter().map(|one| one.is_exact).enumerate();
                    let sets = rules.by(0, all, rules.otherwise);
                    Some(Question::Number(field, sets))
                }
                _ => Some(Question::Rules(rules)),
            }
        }
        _ => None,
    }
}

fn number(
    program: &Program,
    term: TermId,
    cases: &[(IntervalSet, StepId)],
    otherwise: StepId,
) -> Option<Question> {
    let (field, mapping) = matchable(program, term)?;
    let full = IntervalSet::full(field.width);
    let numbers = |(set, to): &(IntervalSet, StepId)| {
        let set = match mapping {
            Some(mapping) => mapping.preimage(set),
            None => set.clone(),
        };
        (full.intersect(&set), vec![*to])
    };
    // They are disjoint.
    let mut sets: Vec<(IntervalSet, Vec<StepId>)> = cases.iter().map(numbers).collect();
    let rest = full.subtract(&IntervalSet::union_of(sets.iter().map(|(set, _)| set)));
    sets.push((rest, vec![otherwise]));
    sets.retain(|(set, _)| !set.is_empty());
    Some(Question::Number(field, sets))
}

/// The field that a number is, or that a table maps to it.
fn matchable(program: &Program, term: TermId) -> Option<(Field, Option<&RangeMap>)> {
    let (of, mapping) = match program.term(term) {
        Term::Map(of, mapping) => (program.term(*of), Some(&**mapping)),
        of => (of, None),
    };
    let Term::Input(input) = of else { return None };
    FIELDS.iter().any(|known| known.holds(*input)).then_some((*input, mapping))
}

impl Rules {
    fn of(
        program: &Program,
        keys: &[TermId],
        rules: &[ClassifyRule],
        arms: &[StepId],
        otherwise: StepId,
    ) -> Self {
        let mut fields = Vec::new();
        let places: Vec<Option<usize>> = keys
            .iter()
            .map(|&key| {
                let (field, None) = matchable(program, key)? else { return None };
                fields.push(field);
                Some(fields.len() - 1)
            })
            .collect();
        let mut conjunctions = Vec::new();
        for rule in rules {
            let Some(&to) = arms.get(rule.arm as usize) else { continue };
            for cube in rule.cubes.iter() {
                let place = |key: u8| places.get(usize::from(key)).copied().flatten();
                let sets = cube.iter().filter_map(|(key, set)| Some((place(*key)?, set.clone())));
                let is_exact = cube.iter().all(|(key, _)| place(*key).is_some());
                conjunctions.push(Conjunction { sets: sets.collect(), is_exact, to });
            }
        }
        Self { fields, conjunctions, otherwise }
    }

    /// The numbers of a field as disjoint sets, for each the steps that packets may go on to, of
    /// those that match in all other fields these conjunctions, or perhaps match them; `last` is
    /// where they go if they match none.
    pub(super) fn by(
        &self,
        field: usize,
        some: impl Iterator<Item = (usize, bool)>,
        last: StepId,
    ) -> Vec<(IntervalSet, Vec<StepId>)> {
        let full = IntervalSet::full(self.fields[field].width);
        // Numbers at which a conjunction begins to hold, or ends to.
        let mut edges: Vec<(u128, bool, usize, bool)> = Vec::new();
        for (at, is_exact) in some {
            let set = self.conjunctions[at].set(field).map_or(full.clone(), |s| s.intersect(&full));
            for &(low, high) in set.intervals() {
                edges.push((low, true, at, is_exact));
                edges.extend(high.checked_add(1).map(|behind| (behind, false, at, is_exact)));
            }
        }
        edges.sort_unstable();
        let mut exact = BTreeSet::new();
        let mut holding: BTreeMap<StepId, BTreeSet<usize>> = BTreeMap::new();
        let mut sets: BTreeMap<Vec<StepId>, Vec<(u128, u128)>> = BTreeMap::new();
        let (mut from, mut edges) = (0, edges.into_iter().peekable());
        loop {
            while let Some((_, begins, at, is_exact)) = edges.next_if(|edge| edge.0 == from) {
                let to = self.conjunctions[at].to;
                let of_step = holding.entry(to).or_default();
                if begins {
                    of_step.insert(at);
                    exact.extend(is_exact.then_some(at));
                } else {
                    of_step.remove(&at);
                    exact.remove(&at);
                    if of_step.is_empty() {
                        holding.remove(&to);
                    }
                }
            }
            let surely = exact.first();
            let is_tried = |all: &BTreeSet<usize>| match (all.first(), surely) {
                (Some(first), Some(surely)) => first <= surely,
                (first, _) => first.is_some(),
            };
            let mut steps: Vec<StepId> =
                holding.iter().filter(|(_, all)| is_tried(all)).map(|(to, _)| *to).collect();
            if surely.is_none() && !steps.contains(&last) {
                steps.push(last);
                steps.sort_unstable();
            }
            let next = edges.peek().map(|edge| edge.0);
            let to = next.map_or(u128::MAX, |next| next - 1);
            sets.entry(steps).or_default().push((from, to));
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        let set = |(steps, all)| (IntervalSet::from_intervals(all).intersect(&full), steps);
        let mut sets: Vec<_> = sets.into_iter().map(set).collect();
        sets.retain(|(set, _)| !set.is_empty());
        sets
    }
}

impl Conjunction {
    /// What it asks of a field.
    pub(super) fn set(&self, field: usize) -> Option<&IntervalSet> {
        self.sets.iter().find(|(of, _)| *of == field).map(|(_, set)| set)
    }
}
