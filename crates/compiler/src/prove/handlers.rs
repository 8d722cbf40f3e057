//! What handlers may change while chains run.
//!
//! Scripts, triggers and ends of sources call handlers when time or packets make them. A model says
//! what an element does as it is configured; what a handler may change is compared as elements are
//! that only their native code can speak for, by name, and whoever calls handlers must do so alike.

use std::collections::BTreeSet;

use elements::configure::scopes;
use elements::element::HandlerCalls;
use ir::{Model, NodeId, Processing};

use super::alignment::{ORDINALS, arguments};
use super::subjects::Subjects;

/// Why the model of an element that handlers may change says nothing.
const CHANGED: &str = "handlers may change it";

/// The elements that handler calls of a chain's own elements may reach.
pub(super) fn reached(chain: &Subjects) -> Vec<bool> {
    let nodes = &chain.graph.nodes;
    let mut reached = vec![false; nodes.len()];
    for caller in 0..nodes.len() {
        match chain.calls(caller) {
            HandlerCalls::None => {}
            HandlerCalls::Of(names) => {
                targets(chain, caller, names).for_each(|target| reached[target] = true);
            }
            HandlerCalls::Any => return vec![true; nodes.len()],
        }
    }
    // What lends its configuration to others (patterns, mappers) changes those.
    let lends = |node: NodeId| {
        let ports = nodes[node].inputs.len() + nodes[node].outputs.len();
        ports == 0 && *chain.calls(node) == HandlerCalls::None
    };
    match (0..nodes.len()).any(|node| reached[node] && lends(node)) {
        true => vec![true; nodes.len()],
        false => reached,
    }
}

/// The elements of these names, as an element's compound sees them.
fn targets<'a>(
    chain: &'a Subjects,
    caller: NodeId,
    names: &'a [String],
) -> impl Iterator<Item = NodeId> + 'a {
    let graph = &chain.graph;
    names.iter().filter_map(move |name| {
        scopes(&graph.nodes[caller].name).find_map(|scope| graph.find(&format!("{scope}{name}")))
    })
}

/// The chain as programs are made of it to compare it with another. Models of what handlers may
/// change say nothing; elements with a model do the same where packets are pulled through them as
/// where they are pushed.
pub(super) fn prepared(chain: &Subjects, reached: &[bool]) -> Subjects {
    let mut prepared = chain.clone();
    for (node, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
        let state = std::mem::take(&mut prepared.models[node].state);
        prepared.models[node] = Model { state, ..Model::opaque(CHANGED) };
    }
    for (node, model) in prepared.graph.nodes.iter_mut().zip(&prepared.models) {
        if node.inputs[..] == [Processing::Pull] && !model.is_opaque() {
            node.inputs[0] = Processing::Push;
        }
    }
    prepared
}

/// Callers of handlers of one chain that the other lacks, in words.
pub(super) fn unlike_callers(
    chains: [&Subjects; 2],
    names: &[Vec<String>; 2],
    words: impl Fn(usize, NodeId) -> String,
) -> Vec<String> {
    type Caller<'a> = (&'a str, Vec<String>, Option<BTreeSet<&'a str>>);
    let callers = |side: usize| -> Vec<(NodeId, Caller<'_>)> {
        let chain = chains[side];
        let caller = |node: NodeId| {
            let called = match chain.calls(node) {
                HandlerCalls::None => return None,
                HandlerCalls::Any => None,
                HandlerCalls::Of(all) => Some(all),
            };
            let called =
                called.map(|all| targets(chain, node, all).map(|t| &*names[side][t]).collect());
            let of = &chain.graph.nodes[node];
            Some((node, (&*of.class, arguments(&of.class, &of.config), called)))
        };
        (0..chain.graph.nodes.len()).filter_map(caller).collect()
    };
    let all = [callers(0), callers(1)];
    let mut unlike = Vec::new();
    for side in [0, 1] {
        let mut others: Vec<&Caller<'_>> = all[1 - side].iter().map(|(_, caller)| caller).collect();
        for (node, caller) in &all[side] {
            match others.iter().position(|other| *other == caller) {
                Some(at) => drop(others.remove(at)),
                None => unlike.push(format!(
                    "{} of the {} chain calls handlers, and no element of the {} chain calls the same",
                    words(side, *node),
                    ORDINALS[side],
                    ORDINALS[1 - side],
                )),
            }
        }
    }
    unlike
}
