//! Where a program comes from: the conditions that lead to each of its exits, with the elements
//! that asked, and what each element that a packet came through would have read and written.

mod conditions;
mod figures;
mod replay;
#[cfg(test)]
mod tests;

pub use conditions::{Alternatives, Condition, ConditionSubject, Conditions, conditions};
pub use figures::{Figures, of_chain, of_path};
pub use replay::{BitRange, Replayer, Space, Visit};

use std::collections::HashSet;

use ir::Program;
use ir::program::{ClassifyRule, Step, StepId, Term, TermId};

/// Which branch a packet takes from a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// The condition holds.
    Yes,
    /// It does not.
    No,
    /// The case of a switch, by index.
    Case(usize),
    /// The arm of a classification, by index.
    Arm(usize),
    /// No case or rule matches.
    Otherwise,
    /// There is such a flow.
    Hit,
    /// There is none.
    Miss,
}

/// The paths on from a step that packets can take, in the order of its text.
pub fn branches(step: &Step) -> Vec<(Branch, StepId)> {
    match step {
        Step::Test { yes, no, .. } => vec![(Branch::Yes, *yes), (Branch::No, *no)],
        Step::Switch { cases, otherwise, .. } => {
            let cases = cases.iter().enumerate().map(|(i, (_, to))| (Branch::Case(i), *to));
            cases.chain([(Branch::Otherwise, *otherwise)]).collect()
        }
        Step::Classify { rules, arms, otherwise, .. } => {
            let arms = arms.iter().enumerate().map(|(i, to)| (Branch::Arm(i), *to));
            let none_left = rules.iter().any(ClassifyRule::takes_all);
            let missed = (!none_left).then_some((Branch::Otherwise, *otherwise));
            arms.chain(missed).collect()
        }
        Step::Lookup { hit, miss, .. } => vec![(Branch::Hit, *hit), (Branch::Miss, *miss)],
        Step::Exit(_) => Vec::new(),
    }
}

/// A packet's path from the first step of a program to an exit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// The steps that decide, and how they decide.
    pub decisions: Vec<(StepId, Branch)>,
}

/// A step that decides, and how it does.
type Decision = (StepId, Branch);

/// For each step of a program, a path of the fewest decisions that leads there; none if no path
/// does.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Number of decisions before it, and the last of them.
    before: Vec<Option<(usize, Option<Decision>)>>,
    counts: Vec<u128>,
}

impl Paths {
    /// The paths through a program.
    pub fn of(program: &Program) -> Self {
        let n = program.steps.len();
        let mut paths = Self { before: vec![None; n], counts: vec![0; n] };
        if let Some(first) = paths.before.first_mut() {
            *first = Some((0, None));
            paths.counts[0] = 1;
        }
        for (i, step) in program.steps.iter().enumerate() {
            let Some((length, _)) = paths.before[i] else { continue };
            let mut led: HashSet<StepId> = HashSet::new();
            for (branch, to) in branches(step) {
                let at = to.0 as usize;
                if at <= i || at >= n {
                    continue;
                }
                if led.insert(to) {
                    paths.counts[at] = paths.counts[at].saturating_add(paths.counts[i]);
                }
                if paths.before[at].is_none_or(|(known, _)| length + 1 < known) {
                    paths.before[at] = Some((length + 1, Some((StepId(i as u32), branch))));
                }
            }
        }
        paths
    }

    /// How many paths lead to a step; `u128::MAX` if they are more. Some of them may be such that
    /// no packet takes them.
    pub fn count(&self, step: StepId) -> u128 {
        self.counts.get(step.0 as usize).copied().unwrap_or(0)
    }

    /// The path of the fewest decisions.
    pub fn shortest(&self, step: StepId) -> Path {
        let mut decisions = Vec::new();
        let mut at = step;
        while let Some(Some((_, Some(before)))) = self.before.get(at.0 as usize) {
            decisions.push(*before);
            at = before.0;
        }
        decisions.reverse();
        Path { decisions }
    }
}

/// All terms that some are made from, these included, each once.
pub fn closure(program: &Program, terms: impl IntoIterator<Item = TermId>) -> Vec<TermId> {
    let (mut waiting, mut seen) = (terms.into_iter().collect::<Vec<_>>(), HashSet::new());
    while let Some(term) = waiting.pop() {
        if let Some(made) = program.terms.get(term.0 as usize)
            && seen.insert(term)
        {
            waiting.extend(made.operands());
        }
    }
    let mut all: Vec<TermId> = seen.into_iter().collect();
    all.sort_unstable();
    all
}

/// Whether a number is made from a ones' complement sum, as checksums are.
pub fn is_sum(program: &Program, term: TermId) -> bool {
    closure(program, [term])
        .into_iter()
        .any(|t| matches!(program.term(t), Term::OnesSum(_) | Term::Sum16 { .. }))
}
