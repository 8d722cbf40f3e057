//! Places where packets decide, as the steps of a program.

use std::collections::HashMap;

use ir::IntervalSet;
use ir::field::meta;
use ir::program::{Atom, Program, Term};

use super::code::{self, Instr};
use super::deparser::Update;
use super::lexer::Failure;
use super::machine::{Continuation, Machine, Next, State, Stop, undefined};
use super::output::{is_open, output};
use crate::symbolic::graph::{self, Node};
use crate::symbolic::output::{Output, lost, of_tagged};
use crate::{Device, Segment};

/// Places of a program.
const MOST_PLACES: usize = 1 << 18;

/// The state in which the control begins.
fn begin(machine: &mut Machine<'_>) -> Result<State, Failure> {
    machine.code = code::compile(machine.control)?;
    let at_end = machine.updates.iter().flat_map(Update::reads).cloned().collect();
    machine.live = code::live(machine.control, &machine.code, at_end);
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
    let mut index: HashMap<Continuation, usize> = HashMap::new();
    let mut waiting: Vec<(usize, Continuation)> = Vec::new();
    let mut add = |machine: &Machine<'_>,
                   mut place: Continuation,
                   waiting: &mut Vec<(usize, Continuation)>,
                   nodes: &mut Vec<Option<Node>>| {
        forget(machine, &mut place);
        *index.entry(place).or_insert_with_key(|place| {
            nodes.push(None);
            waiting.push((nodes.len() - 1, place.clone()));
            nodes.len() - 1
        })
    };
    let first = Continuation { at: 0, first: None, state };
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
            Next::Lookup { lookup, keys, rules, places, miss } => {
                let places: Vec<usize> = places
                    .into_iter()
                    .map(|place| add(&machine, place, &mut waiting, &mut nodes))
                    .collect();
                Node::Lookup { lookup, keys, rules, miss: places[miss], places }
            }
            Next::End(state) => {
                let exit = output(&mut machine, &state, emitted).and_then(|output| match output {
                    Some(output) => output.exit(&mut machine.terms, segment, base, device),
                    None => Ok(lost(&segment.program, "undefined")),
                });
                Node::End(Box::new(exit.map_err(|why| (0, why))?))
            }
        };
        nodes[number] = Some(node);
    }
    graph::program(nodes, root, machine.terms, &segment.program)
        .ok_or_else(|| (0, "it leads back to where it was".to_string()))
}

/// What comes behind a place; where all is executed, the parser goes on if that matters.
fn next(machine: &mut Machine<'_>, place: &Continuation) -> Result<Next, Failure> {
    let mut next = machine.go(place)?;
    if let Next::End(state) = &mut next
        && !state.undefined
    {
        let end = machine.code.len();
        let parsing = std::rc::Rc::clone(&machine.parsing);
        while is_open(machine, state) {
            if machine.spend().is_err() {
                return Err((0, "it takes too long".into()));
            }
            match parsing.step(machine, state) {
                Ok(()) => {}
                Err(Stop::Fail(why)) => return Err((0, why)),
                Err(Stop::Undefined) => return Ok(undefined(state.clone())),
                Err(Stop::Ask(ask)) => {
                    let with = |parse, holds| {
                        let mut state = State { parse, ..state.clone() };
                        machine.learn(&mut state, &ask.atom, holds);
                        Continuation { at: end, first: None, state }
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
fn forget(machine: &Machine<'_>, place: &mut Continuation) {
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

/// Checks that a frame from the cores leaves by the port that its tag names.
pub(super) fn back(mut machine: Machine<'_>, emitted: &[usize], port: u32) -> Result<(), Failure> {
    let state = begin(&mut machine)?;
    let mut place = Continuation { at: 0, first: None, state };
    let wrong =
        |why: String| (0, format!("frames from the cores do not leave by port {port}: {why}"));
    let number = |machine: &Machine<'_>, term| of_tagged(&machine.terms, term, port);
    loop {
        let (atom, next) = match next(&mut machine, &place)? {
            Next::End(state) => {
                let output = output(&mut machine, &state, emitted).map_err(wrong)?;
                let is_right = |output: &Output| {
                    output.port == Some(port) && output.is_untagged(&machine.terms)
                };
                return match output.as_ref().is_some_and(is_right) {
                    true => Ok(()),
                    false => Err(wrong("they leave elsewhere, or as something else".into())),
                };
            }
            Next::Lookup { .. } => return Err(wrong("more than the tag is looked at".into())),
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
