//! Taps: elements that are put into connections while a chain runs, and taken out again. A
//! connection without one is what it always was.

use std::collections::BTreeSet;

use elements::Element;
use elements::context::{Context, Outputs, Tally};
use ir::{Model, NodeId, Port};
use net::Batch;

use super::{Cell, Cycle, Node, Nodes, Router, Stage, StageContext, Task};

/// An element in a connection.
#[derive(Debug, PartialEq, Eq)]
pub struct Tap(NodeId);

/// Where a tap is: the output that leads to it, and the input that it leads to. Both may be
/// other taps'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tapped {
    /// The tap, as a node behind the chain's own.
    pub node: NodeId,
    /// What comes before it.
    pub from: Port,
    /// What comes behind it.
    pub to: Port,
}

/// The taps in the connections of a router's chain.
pub struct Taps<'a>(pub(super) &'a mut Router);

impl Taps<'_> {
    /// Puts an element with one input and one output into a connection. It must let every packet
    /// pass as it is. Programs that lead over the connection are taken out; a planner can make
    /// others that end there and begin behind it, see [`Taps::all`]. `None` if there is no
    /// such connection.
    pub fn insert(&mut self, from: Port, to: Port, element: Box<dyn Element>) -> Option<Tap> {
        let nodes = &mut self.0.nodes;
        let next = nodes.nodes.get(from.node)?.to.get(from.port).copied().flatten()?;
        if nodes.behind_taps(next) != to {
            return None;
        }
        let id = nodes.tap(element);
        let port = Port { node: id, port: 0 };
        nodes.nodes[id].from[0] = Some(from);
        nodes.nodes[id].to[0] = Some(next);
        nodes.nodes[from.node].to[from.port] = Some(port);
        nodes.relink(next, from, port);
        nodes.uninstall_before(&mut self.0.core, from.node);
        Some(Tap(id))
    }

    /// The same with a stage, made for a tap of this number, that sends all packets on to what is
    /// behind the tap ([`StageContext::behind_tap`]). `None` if there is no such connection.
    pub(crate) fn insert_stage<S: Stage + 'static>(
        &mut self,
        from: Port,
        to: Port,
        stage: impl FnOnce(NodeId) -> S,
    ) -> Option<Tap> {
        let tap = self.insert(from, to, Box::new(Pass))?;
        let stage = Box::new(stage(tap.0));
        let place = (Port { node: tap.0, port: 0 }, None);
        self.0.nodes.install_at(place, BTreeSet::new(), 0, stage);
        Some(tap)
    }

    /// Takes a tap out again; whoever made programs for the connection is to make others.
    pub fn remove(&mut self, tap: Tap) {
        let nodes = &mut self.0.nodes;
        nodes.stop_tracing(Some(tap.0), "the trace ended");
        nodes.discard_stage(Port { node: tap.0, port: 0 });
        let Some(Node { from, to, cell, .. }) = nodes.nodes.get_mut(tap.0) else { return };
        if let Some(cell) = cell {
            // Whoever listens to its element shall hear that nothing more comes.
            cell.element = Box::new(Pass);
        }
        let (Some(from), Some(to)) = (from[0].take(), to[0].take()) else { return };
        nodes.nodes[from.node].to[from.port] = Some(to);
        nodes.relink(to, Port { node: tap.0, port: 0 }, from);
        let (before, behind) = (nodes.before_taps(from), nodes.behind_taps(to));
        // What began behind the tap may be part of what comes before it again.
        if nodes.uninstall_before(&mut self.0.core, before.node) || !nodes.stages.stale.is_empty() {
            nodes.take_out(&mut self.0.core, behind);
        }
    }

    /// The taps in the chain's connections.
    pub fn all(&self) -> Vec<Tapped> {
        let taps = self.0.nodes.nodes.iter().enumerate().skip(self.0.nodes.elements);
        let tapped = |(node, tap): (NodeId, &Node)| {
            Some(Tapped { node, from: tap.from[0]?, to: tap.to[0]? })
        };
        taps.filter_map(tapped).collect()
    }
}

impl StageContext<'_> {
    /// What a tap leads to: where its connection leads, or another tap in it.
    pub(crate) fn behind_tap(&self, tap: NodeId) -> Option<Port> {
        self.nodes.nodes.get(tap)?.to.first().copied().flatten()
    }
}

/// The element of a tap that is a stage.
struct Pass;

impl Element for Pass {
    fn push(&mut self, _: usize, _: &mut Batch, _: &mut Context<'_>) {}

    fn model(&self) -> Model {
        Model::opaque("packets are traced from here on")
    }
}

impl Nodes {
    /// A node for a tap that is nowhere yet.
    fn tap(&mut self, element: Box<dyn Element>) -> NodeId {
        let cell = Cell { element, outputs: Outputs::new(1), tally: Tally::default() };
        let node = Node {
            name: "tap".to_string(),
            class: String::new(),
            config: "".into(),
            inputs: 1,
            handlers: &[],
            calls: false,
            task: Task::None,
            alarm: None,
            keeps_run: true,
            cell: Some(Box::new(cell)),
            to: vec![None],
            left: vec![0],
            from: vec![None],
            stages: vec![None],
            cycle: Cycle::None,
        };
        let mut taps = self.nodes.iter().enumerate().skip(self.elements);
        match taps.find(|(_, tap)| tap.to[0].is_none()).map(|(id, _)| id) {
            Some(free) => {
                self.nodes[free] = node;
                free
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    /// Has an input come from another output. Of several outputs that are connected to it, only
    /// one is known to it; it is pushed then, and does not ask.
    fn relink(&mut self, input: Port, old: Port, new: Port) {
        let from = &mut self.nodes[input.node].from[input.port];
        if *from == Some(old) {
            *from = Some(new);
        }
    }

    /// The input that an input leads to through taps.
    pub(super) fn behind_taps(&self, mut to: Port) -> Port {
        while to.node >= self.elements
            && let Some(next) = self.nodes[to.node].to[0]
        {
            to = next;
        }
        to
    }

    /// The output that leads to an output through taps.
    pub(super) fn before_taps(&self, mut from: Port) -> Port {
        while from.node >= self.elements
            && let Some(next) = self.nodes[from.node].from[0]
        {
            from = next;
        }
        from
    }
}
