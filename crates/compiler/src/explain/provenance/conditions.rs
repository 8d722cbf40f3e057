//! What is known of the packets that come to an exit.

use std::collections::BTreeMap;
use std::rc::Rc;

use ir::model::CompareOp;
use ir::program::{Atom, LookupId, Step, StepId, TermId};
use ir::{IntervalSet, NodeId, Program};

use super::{Branch, branches};

/// A set of more intervals than this is no longer told exactly where paths meet.
const MAX_INTERVALS: usize = 4096;

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConditionSubject {
    /// A number.
    Number(TermId),
    /// Two numbers.
    Compare(CompareOp, TermId, TermId),
    /// The rules of an element.
    Rules(NodeId),
    /// A flow table.
    Flow(LookupId),
}

/// An answer that all packets of a class have, or the union of theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The numbers that it can be; for rules, their numbers; for a comparison or a flow, 1 if it
    /// holds or is there, and 0 if not.
    pub set: Rc<IntervalSet>,
    /// Whether packets that no rule matches belong to it.
    pub unmatched: bool,
    /// The elements that asked, in their order.
    pub elements: Rc<Vec<NodeId>>,
    /// When it was asked first, for order.
    pub order: usize,
}

/// What is known of the packets that come to a step: each of these holds for all of them. Where
/// several paths meet, that is less than is known on each.
pub type Conditions = BTreeMap<ConditionSubject, Condition>;

/// The conditions of every exit of a program that packets come to.
pub fn conditions(program: &Program) -> Vec<(StepId, Conditions)> {
    let mut at: Vec<Option<Conditions>> = program.steps.iter().map(|_| None).collect();
    if let Some(entry) = at.first_mut() {
        *entry = Some(Conditions::new());
    }
    let mut exits = Vec::new();
    for (i, step) in program.steps.iter().enumerate() {
        let Some(known) = at[i].take() else { continue };
        if let Step::Exit(_) = step {
            exits.push((StepId(i as u32), known));
            continue;
        }
        for (branch, to) in branches(step) {
            let mut known = known.clone();
            learn(program, step, branch, i, &mut known);
            if is_contradiction(&known) {
                continue;
            }
            let Some(there) = at.get_mut(to.0 as usize) else { continue };
            *there = Some(match there.take() {
                None => known,
                Some(other) => meet(program, other, &known),
            });
        }
    }
    exits
}

/// The paths to each exit of a program, one by one.
#[derive(Clone, Debug)]
pub struct Alternatives<'a> {
    program: &'a Program,
    /// The steps that lead to each.
    before: Vec<Vec<usize>>,
}

impl<'a> Alternatives<'a> {
    /// The paths through a program.
    pub fn of(program: &'a Program) -> Self {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); program.steps.len()];
        for (i, step) in program.steps.iter().enumerate() {
            for next in step.next() {
                if let Some(list) = before.get_mut(next.0 as usize)
                    && list.last() != Some(&i)
                {
                    list.push(i);
                }
            }
        }
        Self { program, before }
    }

    /// What is known of packets on each path to an exit beyond what is known on all, `common`:
    /// packets of the class are those for which `common` holds and one of these. Paths that another
    /// covers are left out. `None` if there are more paths than `limit`.
    pub fn at(&self, exit: StepId, common: &Conditions, limit: usize) -> Option<Vec<Conditions>> {
        let Self { program, before } = self;
        let mut paths = Vec::new();
        let mut work: Vec<Vec<usize>> = vec![vec![exit.0 as usize]];
        while let Some(path) = work.pop() {
            let first = *path.last()?;
            if first == 0 {
                paths.push(path);
            } else {
                work.extend(before.get(first)?.iter().map(|&step| {
                    let mut longer = path.clone();
                    longer.push(step);
                    longer
                }));
            }
            if paths.len() + work.len() > limit {
                return None;
            }
        }
        let mut all: Vec<Conditions> = Vec::new();
        for path in paths {
            let mut known = Conditions::new();
            for (&from, &to) in path.iter().rev().zip(path.iter().rev().skip(1)) {
                let step = program.steps.get(from)?;
                let mut then: Option<Conditions> = None;
                for (branch, _) in branches(step).into_iter().filter(|b| b.1.0 as usize == to) {
                    let mut known = known.clone();
                    learn(program, step, branch, from, &mut known);
                    then = Some(match then {
                        None => known,
                        Some(other) => meet(program, other, &known),
                    });
                }
                known = then?;
            }
            let contradiction = is_contradiction(&known);
            known.retain(|asked, condition| {
                common.get(asked).is_none_or(|c| !c.says_as_much_as(condition))
            });
            if !contradiction {
                all.push(known);
            }
        }
        let covers = |a: &Conditions, b: &Conditions| {
            a.iter().all(|(asked, weak)| b.get(asked).is_some_and(|c| c.says_as_much_as(weak)))
        };
        let mut left: Vec<Conditions> = Vec::new();
        for known in all {
            if !left.iter().any(|other| covers(other, &known)) {
                left.retain(|other| !covers(&known, other));
                left.push(known);
            }
        }
        Some(left)
    }
}

/// Whether no packet is like that: one condition rules another out.
fn is_contradiction(known: &Conditions) -> bool {
    known.iter().any(|(asked, c)| !matches!(asked, ConditionSubject::Rules(_)) && c.set.is_empty())
}

impl Condition {
    /// Whether `weak` follows from this one.
    fn says_as_much_as(&self, weak: &Condition) -> bool {
        self.set.is_subset(&weak.set) && (weak.unmatched || !self.unmatched)
    }
}

/// What a step tells of packets that go one of its paths.
fn learn(program: &Program, step: &Step, branch: Branch, order: usize, known: &mut Conditions) {
    let yes_or_no = |yes: bool| IntervalSet::single(u128::from(yes));
    match (step, branch) {
        (Step::Test { atom: Atom::Test(term, set), element, .. }, Branch::Yes) => {
            add(known, ConditionSubject::Number(*term), (**set).clone(), *element, order);
        }
        (Step::Test { atom: Atom::Test(term, set), element, .. }, _) => {
            let set = set.complement(program.width(*term));
            add(known, ConditionSubject::Number(*term), set, *element, order);
        }
        (Step::Test { atom: Atom::Compare(op, a, b), element, .. }, branch) => {
            let holds = yes_or_no(branch == Branch::Yes);
            add(known, ConditionSubject::Compare(*op, *a, *b), holds, *element, order);
        }
        (Step::Switch { on, cases, element, .. }, Branch::Case(case)) => {
            let set = cases.get(case).map_or(IntervalSet::empty(), |c| c.0.clone());
            add(known, ConditionSubject::Number(*on), set, *element, order);
        }
        (Step::Switch { on, cases, element, .. }, _) => {
            let asked = IntervalSet::union_of(cases.iter().map(|(set, _)| set));
            let set = IntervalSet::full(program.width(*on)).subtract(&asked);
            add(known, ConditionSubject::Number(*on), set, *element, order);
        }
        (Step::Classify { rules, element, .. }, branch) => {
            let taken = rules.iter().filter(|r| branch == Branch::Arm(r.arm as usize));
            let numbers: Vec<(u128, u128)> =
                taken.map(|r| (u128::from(r.number), u128::from(r.number))).collect();
            let condition = Condition {
                set: Rc::new(IntervalSet::from_intervals(numbers)),
                unmatched: branch == Branch::Otherwise,
                elements: Rc::new(vec![*element]),
                order,
            };
            known.insert(ConditionSubject::Rules(*element), condition);
        }
        (Step::Lookup { lookup, .. }, branch) => {
            let Some(of) = program.lookups.get(usize::from(lookup.0)) else { return };
            let found = yes_or_no(branch == Branch::Hit);
            add(known, ConditionSubject::Flow(*lookup), found, of.element, order);
        }
        (Step::Exit(_), _) => {}
    }
}

fn add(
    known: &mut Conditions,
    asked: ConditionSubject,
    set: IntervalSet,
    element: NodeId,
    order: usize,
) {
    match known.get_mut(&asked) {
        None => {
            let elements = Rc::new(vec![element]);
            let new = Condition { set: Rc::new(set), unmatched: false, elements, order };
            known.insert(asked, new);
        }
        Some(old) => {
            let both = old.set.intersect(&set);
            // Who only asks what is known already decides nothing.
            if both != *old.set {
                old.set = Rc::new(both);
                if !old.elements.contains(&element) {
                    Rc::make_mut(&mut old.elements).push(element);
                }
            }
        }
    }
}

/// What is known of packets that came on either of two paths.
fn meet(program: &Program, mut all: Conditions, other: &Conditions) -> Conditions {
    all.retain(|asked, condition| {
        let Some(same) = other.get(asked) else { return false };
        condition.order = condition.order.min(same.order);
        if !Rc::ptr_eq(&condition.elements, &same.elements) {
            let new: Vec<NodeId> = same.elements.iter().copied().collect();
            for element in new {
                if !condition.elements.contains(&element) {
                    Rc::make_mut(&mut condition.elements).push(element);
                }
            }
        }
        condition.unmatched |= same.unmatched;
        if !Rc::ptr_eq(&condition.set, &same.set) && condition.set != same.set {
            if condition.set.intervals().len() + same.set.intervals().len() > MAX_INTERVALS {
                return false;
            }
            condition.set = Rc::new(condition.set.union(&same.set));
        }
        match asked {
            ConditionSubject::Number(term) => !condition.set.is_full(program.width(*term)),
            ConditionSubject::Compare(..) | ConditionSubject::Flow(_) => {
                condition.set.as_single().is_some()
            }
            ConditionSubject::Rules(_) => true,
        }
    });
    all
}
