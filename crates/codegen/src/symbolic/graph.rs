//! Places where packets decide, as the steps of a program.

use std::collections::HashMap;
use std::sync::Arc;

use ir::program::{Atom, ClassifyRule, Exit, LookupId, Program, Step, StepId, TermId};
use ir::{IntervalSet, NodeId};

use super::terms::Terms;
use crate::draft::in_order;

/// Rules of a table: numbers that keys have to be, and where they lead.
pub(crate) type Rules = Vec<(Vec<(usize, IntervalSet)>, usize)>;

/// What a place is.
pub(crate) enum Node {
    Test(Atom, usize, usize),
    Table {
        keys: Vec<TermId>,
        rules: Rules,
        places: Vec<usize>,
        otherwise: usize,
    },
    /// A lookup of the segment: by what it found, the rules say where packets go.
    Lookup {
        lookup: LookupId,
        keys: Vec<TermId>,
        rules: Rules,
        places: Vec<usize>,
        miss: usize,
    },
    End(Box<Exit>),
}

/// Places in an order in which each stands behind those that it leads to.
fn order(nodes: &[Option<Node>], root: usize) -> Option<Vec<usize>> {
    // 0: not met, 1: what it leads to is being met, 2: done.
    let mut marks = vec![0_u8; nodes.len()];
    let (mut stack, mut done) = (vec![root], Vec::new());
    while let Some(&at) = stack.last() {
        match marks[at] {
            2 => drop(stack.pop()),
            1 => {
                marks[at] = 2;
                done.push(at);
                stack.pop();
            }
            _ => {
                marks[at] = 1;
                let next = match &nodes[at] {
                    Some(Node::Test(_, yes, no)) => vec![*yes, *no],
                    Some(Node::Table { places, .. } | Node::Lookup { places, .. }) => {
                        places.clone()
                    }
                    _ => Vec::new(),
                };
                if next.iter().any(|next| marks[*next] == 1) {
                    return None;
                }
                stack.extend(next.into_iter().filter(|next| marks[*next] == 0));
            }
        }
    }
    Some(done)
}

/// The program of places, equal ones once, in the place of a segment's; the first step is the root. None if a place leads
/// back to itself.
pub(crate) fn program(
    mut nodes: Vec<Option<Node>>,
    root: usize,
    terms: Terms,
    of: &Program,
) -> Option<Program> {
    let order = order(&nodes, root)?;
    let element = of.entry.node;
    let mut all: Vec<Step> = Vec::new();
    let mut tests: HashMap<(Atom, StepId, StepId), StepId> = HashMap::new();
    let mut exits: HashMap<Exit, StepId> = HashMap::new();
    let mut at: Vec<StepId> = vec![StepId(0); nodes.len()];
    let push = |all: &mut Vec<Step>, step: Step| {
        all.push(step);
        StepId(all.len() as u32 - 1)
    };
    for &place in &order {
        at[place] = match nodes[place].take() {
            Some(Node::Test(atom, yes, no)) => {
                let (yes, no) = (at[yes], at[no]);
                match yes == no {
                    true => yes,
                    false => *tests
                        .entry((atom.clone(), yes, no))
                        .or_insert_with(|| push(&mut all, Step::Test { atom, yes, no, element })),
                }
            }
            Some(Node::Table { keys, rules, places, otherwise }) => {
                let places: Vec<StepId> = places.iter().map(|place| at[*place]).collect();
                let otherwise = at[otherwise];
                table(&mut all, &terms, keys, rules, &places, otherwise, element)
            }
            Some(Node::Lookup { lookup, keys, rules, places, miss }) => {
                let places: Vec<StepId> = places.iter().map(|place| at[*place]).collect();
                let last = rules.last().map_or(0, |rule| rule.1);
                let hit = table(&mut all, &terms, keys, rules, &places, places[last], element);
                push(&mut all, Step::Lookup { lookup, hit, miss: at[miss] })
            }
            Some(Node::End(exit)) => match exits.get(&*exit) {
                Some(step) => *step,
                None => {
                    let step = push(&mut all, Step::Exit(exit.clone()));
                    exits.insert(*exit, step);
                    step
                }
            },
            None => StepId(0),
        };
    }
    let root = order.last().map_or(StepId(0), |place| at[*place]);
    Some(Program {
        entry: of.entry,
        continuation: of.continuation,
        terms: terms.into_all(),
        state: of.state.clone(),
        tables: of.tables.clone(),
        lookups: of.lookups.clone(),
        steps: in_order(all, root),
    })
}

fn table(
    all: &mut Vec<Step>,
    terms: &Terms,
    keys: Vec<TermId>,
    mut rules: Rules,
    places: &[StepId],
    otherwise: StepId,
    element: NodeId,
) -> StepId {
    while rules.last().is_some_and(|rule| places[rule.1] == otherwise) {
        rules.pop();
    }
    let mut used: Vec<usize> =
        rules.iter().flat_map(|rule| rule.0.iter().map(|test| test.0)).collect();
    used.sort_unstable();
    used.dedup();
    let step = match &used[..] {
        [] => return otherwise,
        [key] => {
            let mut left = IntervalSet::range(0, terms.bounds(keys[*key]).1);
            let mut cases: Vec<(StepId, Vec<IntervalSet>)> = Vec::new();
            for (sets, to) in &rules {
                let mine = sets[0].1.intersect(&left);
                if mine.is_empty() {
                    continue;
                }
                left = left.subtract(&mine);
                let to = places[*to];
                match cases.iter_mut().find(|case| case.0 == to) {
                    Some(case) => case.1.push(mine),
                    None => cases.push((to, vec![mine])),
                }
            }
            cases.retain(|case| case.0 != otherwise);
            let case = |(to, sets): (StepId, Vec<IntervalSet>)| (IntervalSet::union_of(&sets), to);
            let cases: Vec<_> = cases.into_iter().map(case).collect();
            match &cases[..] {
                [] => return otherwise,
                [(set, to)] => Step::Test {
                    atom: Atom::Test(keys[*key], Arc::new(set.clone())),
                    yes: *to,
                    no: otherwise,
                    element,
                },
                _ => Step::Switch { on: keys[*key], cases, otherwise, element },
            }
        }
        used => {
            let mut arms: Vec<StepId> = Vec::new();
            let mut made = Vec::with_capacity(rules.len());
            for (number, (sets, to)) in (0..).zip(rules) {
                let to = places[to];
                let arm = arms.iter().position(|arm| *arm == to).unwrap_or_else(|| {
                    arms.push(to);
                    arms.len() - 1
                });
                let place = |key: usize| used.binary_search(&key).unwrap_or(0) as u8;
                let cube: Vec<(u8, IntervalSet)> =
                    sets.into_iter().map(|(key, set)| (place(key), set)).collect();
                made.push(ClassifyRule {
                    cubes: Arc::new([cube]),
                    arm: arm as u32,
                    number,
                    span: None,
                });
            }
            let keys = used.iter().map(|key| keys[*key]).collect();
            Step::Classify { table: None, keys, rules: made.into(), arms, otherwise, element }
        }
    };
    all.push(step);
    StepId(all.len() as u32 - 1)
}
