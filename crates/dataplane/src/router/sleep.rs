//! When a task sleeps: a source while nothing downstream has room for its packets, an element that
//! found nothing to pull while nothing waits upstream.
//!
//! These are Click's notifiers, but nobody notifies: what stores packets is asked before each turn of
//! a task. So a swap, a handler that sets a capacity or packets that are handed over leave nothing
//! to put right.

use std::collections::HashSet;

use elements::Element;
use elements::flow_code::flows;
use elements::registry;
use ir::{Graph, NodeId, Port, Processing};

use super::Node;

/// A task and what it waits for.
pub(super) struct Turn {
    pub(super) node: NodeId,
    /// Elements of which one must have room; `None` if there is always room.
    room: Option<Box<[NodeId]>>,
    /// Elements of which one must have packets; `None` if there may always be some.
    packets: Option<Box<[NodeId]>>,
    /// Whether it had nothing to do the last time.
    pub(super) idle: bool,
}

impl Turn {
    /// The turn of an element with a task, in a graph of which the nodes are connected.
    pub(super) fn new(graph: &Graph, nodes: &[Node], node: NodeId) -> Self {
        let waits = element(nodes, node).is_some_and(Element::waits_for_room);
        Self {
            node,
            room: if waits { downstream(graph, nodes, node) } else { None },
            packets: upstream(graph, nodes, node),
            idle: false,
        }
    }

    /// Whether there is nothing that the task could do.
    #[inline]
    pub(super) fn sleeps(&self, nodes: &[Node]) -> bool {
        let none = |storage: &Option<Box<[NodeId]>>, has: fn(&dyn Element) -> bool| {
            storage
                .as_deref()
                .is_some_and(|all| !all.iter().any(|&node| element(nodes, node).is_none_or(has)))
        };
        none(&self.room, |element| element.has_room() != Some(false))
            || self.idle
                && none(&self.packets, |element| {
                    element.has_packets().unwrap_or_else(|| element.held() > 0)
                })
    }
}

fn element(nodes: &[Node], node: NodeId) -> Option<&dyn Element> {
    Some(&*nodes[node].cell.as_ref()?.element)
}

fn flow_code(graph: &Graph, node: NodeId) -> &'static str {
    registry::find(&graph.nodes[node].class).map_or("x/x", |class| class.flow)
}

/// What reports room where the packets that an element pushes may end; `None` if some end
/// elsewhere.
fn downstream(graph: &Graph, nodes: &[Node], source: NodeId) -> Option<Box<[NodeId]>> {
    let mut storage = Vec::new();
    let mut seen = HashSet::new();
    let mut next: Vec<Port> = nodes[source].to.iter().flatten().copied().collect();
    while let Some(at) = next.pop() {
        if !seen.insert(at) {
            continue;
        }
        if element(nodes, at.node)?.has_room().is_some() {
            storage.push(at.node);
            continue;
        }
        let code = flow_code(graph, at.node);
        let outputs = nodes[at.node].to.iter().enumerate();
        let mut ends = true;
        for (port, &to) in outputs.filter(|&(port, _)| flows(code, at.port, port)) {
            if graph.nodes[at.node].outputs[port] == Processing::Pull {
                return None;
            }
            ends &= to.is_none();
            next.extend(to);
        }
        if ends {
            return None;
        }
    }
    (!storage.is_empty()).then(|| storage.into())
}

/// What may hold packets that an element pulls, itself included; `None` if they may come from
/// elsewhere, or it does not pull.
fn upstream(graph: &Graph, nodes: &[Node], task: NodeId) -> Option<Box<[NodeId]>> {
    let mut holders = vec![task];
    let mut seen = HashSet::new();
    let mut next = pulled(graph, nodes, task, |_| true)?;
    while let Some(at) = next.pop() {
        if !seen.insert(at) {
            continue;
        }
        holders.push(at.node);
        if element(nodes, at.node)?.has_packets().is_none() {
            let code = flow_code(graph, at.node);
            next.extend(pulled(graph, nodes, at.node, |input| flows(code, input, at.port))?);
        }
    }
    Some(holders.into())
}

/// Where the inputs of an element come from that a condition holds of; `None` if there is none, or
/// one is pushed to.
fn pulled(
    graph: &Graph,
    nodes: &[Node],
    node: NodeId,
    which: impl Fn(usize) -> bool,
) -> Option<Vec<Port>> {
    let mut from = Vec::new();
    let inputs = graph.nodes[node].inputs.iter().enumerate();
    for (input, &processing) in inputs.filter(|&(input, _)| which(input)) {
        if processing != Processing::Pull {
            return None;
        }
        from.extend(nodes[node].from[input]);
    }
    (!from.is_empty()).then_some(from)
}
