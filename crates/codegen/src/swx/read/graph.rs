//! Places where packets decide, as the steps of a program.

use std::collections::HashMap;

use ir::program::{Atom, Program};

use super::super::spec::Failure;
use super::code::Code;
use super::machine::{Continuation, Machine, Next};
use crate::symbolic::graph::{self, Node};
use crate::symbolic::output::{lost, of_tagged};
use crate::{Device, Segment};

/// Places of a program.
const MOST_PLACES: usize = 1 << 18;

/// The program that the instructions are for packets of a segment that came by a port.
pub(super) fn program(
    code: &Code,
    port: u32,
    segment: &Segment,
    base: u32,
    device: &Device<'_>,
) -> Result<Program, Failure> {
    let of = &segment.program;
    let mut machine = Machine::new(code, port, of.terms.clone());
    let mut nodes: Vec<Option<Node>> = Vec::new();
    let mut index: HashMap<Continuation, usize> = HashMap::new();
    let mut waiting: Vec<(usize, Continuation)> = Vec::new();
    let mut add = |place: Continuation,
                   waiting: &mut Vec<(usize, Continuation)>,
                   nodes: &mut Vec<Option<Node>>| {
        *index.entry(place).or_insert_with_key(|place| {
            nodes.push(None);
            waiting.push((nodes.len() - 1, place.clone()));
            nodes.len() - 1
        })
    };
    let root = add(machine.start(), &mut waiting, &mut nodes);
    while let Some((number, place)) = waiting.pop() {
        if nodes.len() > MOST_PLACES {
            return Err((0, format!("it is more than {MOST_PLACES} steps")));
        }
        let node = match machine.next(&place)? {
            Next::Test(atom, next) => {
                let (yes, no) = *next;
                let yes = add(yes, &mut waiting, &mut nodes);
                Node::Test(atom, yes, add(no, &mut waiting, &mut nodes))
            }
            Next::Table { keys, rules, places, otherwise } => {
                let all = places.into_iter().map(|place| add(place, &mut waiting, &mut nodes));
                let places: Vec<usize> = all.collect();
                Node::Table { keys, rules, otherwise: places[otherwise], places }
            }
            Next::End(output) if output.leaves.is_some() && output.port.is_none() => {
                return Err((0, "the port that a packet leaves by is no constant".into()));
            }
            Next::End(output) => {
                let exit = output.exit(&mut machine.terms, segment, base, device);
                Node::End(Box::new(exit.map_err(|why| (0, why))?))
            }
            Next::Undefined => Node::End(Box::new(lost(of, "undefined"))),
        };
        nodes[number] = Some(node);
    }
    graph::program(nodes, root, machine.terms, of)
        .ok_or_else(|| (0, "it leads back to where it was".to_string()))
}

/// Checks that a frame from the cores leaves by the port that its tag names, without the tag.
pub(super) fn back(code: &Code, port: u32, device: &Device<'_>) -> Result<(), Failure> {
    let mut machine = Machine::new(code, device.cores, Vec::new());
    let mut place = machine.start();
    let wrong =
        |why: &str| Err((0, format!("frames from the cores do not leave by port {port}: {why}")));
    loop {
        place = match machine.next(&place)? {
            Next::Test(Atom::Test(of, set), next) => match of_tagged(&machine.terms, of, port) {
                Some(value) if set.contains(value) => next.0,
                Some(_) => next.1,
                None => return wrong("more than the tag is looked at"),
            },
            Next::End(output) => {
                let to = output.leaves.and_then(|to| of_tagged(&machine.terms, to, port));
                return match to == Some(port.into()) && output.is_untagged(&machine.terms) {
                    true => Ok(()),
                    false => wrong("they leave elsewhere, or as something else"),
                };
            }
            _ => return wrong("more than the tag is looked at"),
        };
    }
}
