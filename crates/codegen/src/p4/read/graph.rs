//! Places where packets decide, as the steps of a program.

use std::collections::HashMap;
use std::sync::Arc;

use ir::field::meta;
use ir::program::{Atom, ClassifyRule, Exit, Program, Step, StepId, Term, TermId};
use ir::{IntervalSet, NodeId};

use super::code::{self, Instr};
use super::lexer::Failure;
use super::machine::{Machine, Next, Place, Rules, State, Stop, undefined};
use super::output::{Output, is_open, lost, output};
use crate::draft::in_order;
use crate::{Device, Segment};

/// Places of a program.
const MOST_PLACES: usize = 1 << 18;

/// What a place is.
enum Node {
    Test(Atom, usize, usize),
    Table { keys: Vec<TermId>, rules: Rules, places: Vec<usize>, otherwise: usize },
    End(Box<Exit>),
}

/// The state in which the control begins.
fn begin(machine: &mut Machine<'_>) -> Result<State, Failure> {
    machine.code = code::compile(machine.control)?;
    machine.live = code::live(machine.control, &machine.code);
    let parsing = std::rc::Rc::clone(&machine.parsing);
    let mut state = State { parse: parsing.start()?, ..State::default() };
    parsing.begin(machine, &mut state)?;
    Ok(state)
}

/// The program that the control is for packets of a segment.
pub(super) fn program(
    mut machine: Machine<'_>,
    emitted: &[usize],
    segment: &Segment,
    base: u32,
    device: &Device<'_>,
) -> Result<Program, Failure> {
    let state = begin(&mut machine)?;
    let mut nodes: Vec<Option<Node>> = Vec::new();
    let mut index: HashMap<Place, usize> = HashMap::new();
    let mut waiting: Vec<(usize, Place)> = Vec::new();
    let mut add = |machine: &Machine<'_>,
                   mut place: Place,
                   waiting: &mut Vec<(usize, Place)>,
                   nodes: &mut Vec<Option<Node>>| {
        forget(machine, &mut place);
        *index.entry(place).or_insert_with_key(|place| {
            nodes.push(None);
            waiting.push((nodes.len() - 1, place.clone()));
            nodes.len() - 1
        })
    };
    let first = Place { at: 0, first: None, state };
    let root = add(&machine, first, &mut waiting, &mut nodes);
    while let Some((number, place)) = waiting.pop() {
        if nodes.len() > MOST_PLACES {
            return Err((0, format!("it is more than {MOST_PLACES} steps")));
        }
        let node = match next(&mut machine, &place)? {
            Next::Test(test) => {
                let (atom, yes, no) = *test;
                let yes = add(&machine, yes, &mut waiting, &mut nodes);
                Node::Test(atom, yes, add(&machine, no, &mut waiting, &mut nodes))
            }
            Next::Table { keys, rules, places, otherwise } => {
                let places: Vec<usize> = places
                    .into_iter()
                    .map(|place| add(&machine, place, &mut waiting, &mut nodes))
                    .collect();
                Node::Table { keys, rules, otherwise: places[otherwise], places }
            }
            Next::End(state) => {
                let exit = output(&mut machine, &state, emitted).and_then(|output| match output {
                    Some(output) => output.exit(&mut machine, segment, base, device),
                    None => Ok(lost(&segment.program, "undefined")),
                });
                Node::End(Box::new(exit.map_err(|why| (0, why))?))
            }
        };
        nodes[number] = Some(node);
    }
    let order = order(&nodes, root)?;
    let steps = steps(nodes, &order, &machine, segment.program.entry.node);
    let of = &segment.program;
    Ok(Program {
        entry: of.entry,
        continuation: of.continuation,
        terms: machine.terms.into_all(),
        state: of.state.clone(),
        tables: of.tables.clone(),
        lookups: of.lookups.clone(),
        steps,
    })
}

/// What comes behind a place; where all is executed, the parser goes on if that matters.
fn next(machine: &mut Machine<'_>, place: &Place) -> Result<Next, Failure> {
    let mut next = machine.go(place)?;
    if let Next::End(state) = &mut next
        && !state.undefined
    {
        let end = machine.code.len();
        let parsing = std::rc::Rc::clone(&machine.parsing);
        while is_open(machine, state) {
            match parsing.step(machine, state) {
                Ok(()) => {}
                Err(Stop::Fail(why)) => return Err((0, why)),
                Err(Stop::Undefined) => return Ok(undefined(state.clone())),
                Err(Stop::Ask(ask)) => {
                    let with = |parse, holds| {
                        let mut state = State { parse, ..state.clone() };
                        machine.learn(&mut state, &ask.atom, holds);
                        Place { at: end, first: None, state }
                    };
                    let (yes, no) = (with(ask.yes, true), with(ask.no, false));
                    return Ok(Next::Test(Box::new((ask.atom, yes, no))));
                }
            }
        }
    }
    Ok(next)
}

/// Leaves out what is not read any more.
fn forget(machine: &Machine<'_>, place: &mut Place) {
    let here = machine.live.get(place.at);
    let action = place.first.as_ref().map(|(action, _)| &machine.control.actions[*action]);
    let mut by_action = std::collections::BTreeSet::new();
    if let Some(action) = action {
        code::read_by(&action.body, &mut by_action);
    }
    let verifies = here.is_some_and(|live| live.contains("checksum_error"));
    let open = machine.parsing.open(&place.state.parse, &machine.headers);
    // What the parser was asked says which entries of a table match.
    let looks_up = matches!(machine.code.get(place.at), Some(Instr::Apply(..)));
    place.state.known.retain(|of, _| match machine.terms.term(*of) {
        _ if verifies || looks_up => true,
        Term::Input(field) if *field == meta::LEN => !place.state.parse.is_done(),
        Term::Input(field) => open.contains(&(field.offset.into(), field.width)),
        _ => false,
    });
    place.state.vars.retain(|name, _| {
        let local = name.split_once('.');
        match local {
            Some(("meta" | "local", field)) => {
                here.is_some_and(|live| live.contains(field)) || by_action.contains(field)
            }
            _ => true,
        }
    });
}

/// Places in an order in which each stands behind those that it leads to.
fn order(nodes: &[Option<Node>], root: usize) -> Result<Vec<usize>, Failure> {
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
                    Some(Node::Table { places, .. }) => places.clone(),
                    _ => Vec::new(),
                };
                if next.iter().any(|next| marks[*next] == 1) {
                    return Err((0, "it leads back to where it was".into()));
                }
                stack.extend(next.into_iter().filter(|next| marks[*next] == 0));
            }
        }
    }
    Ok(done)
}

/// The steps, equal ones once; the first is the root.
fn steps(
    mut nodes: Vec<Option<Node>>,
    order: &[usize],
    machine: &Machine<'_>,
    element: NodeId,
) -> Vec<Step> {
    let mut all: Vec<Step> = Vec::new();
    let mut tests: HashMap<(Atom, StepId, StepId), StepId> = HashMap::new();
    let mut exits: HashMap<Exit, StepId> = HashMap::new();
    let mut at: Vec<StepId> = vec![StepId(0); nodes.len()];
    let push = |all: &mut Vec<Step>, step: Step| {
        all.push(step);
        StepId(all.len() as u32 - 1)
    };
    for &place in order {
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
                table(&mut all, machine, keys, rules, &places, otherwise, element)
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
    in_order(all, root)
}

fn table(
    all: &mut Vec<Step>,
    machine: &Machine<'_>,
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
            let mut left = IntervalSet::range(0, machine.terms.bounds(keys[*key]).1);
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

/// Checks that a frame from the cores leaves by the port that its tag names.
pub(super) fn back(mut machine: Machine<'_>, emitted: &[usize], port: u32) -> Result<(), Failure> {
    let state = begin(&mut machine)?;
    let mut place = Place { at: 0, first: None, state };
    let wrong =
        |why: String| (0, format!("frames from the cores do not leave by port {port}: {why}"));
    // What is known of it.
    let number = |machine: &Machine<'_>, term: TermId| -> Option<u128> {
        match machine.terms.term(term) {
            Term::Input(field) if *field == meta::LEN => Some(64),
            Term::Input(field) => {
                let tag = 0x88a8_u128 << 16 | u128::from(port);
                let (from, end) = (u32::from(field.offset), u32::from(field.offset + field.width));
                // Priority and the bit behind it may be anything.
                let is_known = (from >= 96 && end <= 112) || (from >= 116 && end <= 128);
                is_known.then(|| tag >> (128 - end) & super::terms::ones(field.width))
            }
            _ => None,
        }
    };
    loop {
        let (atom, next) = match next(&mut machine, &place)? {
            Next::End(state) => {
                let output = output(&mut machine, &state, emitted).map_err(wrong)?;
                let is_right =
                    |output: &Output| output.port == Some(port) && output.is_untagged(&machine);
                return match output.as_ref().is_some_and(is_right) {
                    true => Ok(()),
                    false => Err(wrong("they leave elsewhere, or as something else".into())),
                };
            }
            Next::Test(test) => (test.0, [test.1, test.2]),
            Next::Table { keys, rules, mut places, otherwise } => {
                let matches = |(at, set): &(usize, IntervalSet)| {
                    number(&machine, keys[*at]).map(|value| set.contains(value))
                };
                let mut to = otherwise;
                for (sets, place) in &rules {
                    let all: Option<Vec<bool>> = sets.iter().map(matches).collect();
                    match all {
                        None => return Err(wrong("more than the tag is looked at".into())),
                        Some(all) if all.iter().all(|is| *is) => {
                            to = *place;
                            break;
                        }
                        Some(_) => {}
                    }
                }
                place = places.swap_remove(to);
                continue;
            }
        };
        let Atom::Test(term, set) = &atom else {
            return Err(wrong("two numbers are compared".into()));
        };
        let value = number(&machine, *term)
            .ok_or_else(|| wrong("more than the tag is looked at".into()))?;
        let [yes, no] = next;
        place = if set.contains(value) { yes } else { no };
    }
}
