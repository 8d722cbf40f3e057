//! Network functions of a chain: its outermost compounds, how they are connected, what a device does of each, and whether
//! several cores can run it.

mod candidate;
mod shared;

use std::collections::BTreeMap;

use elements::registry;
use ir::{Graph, Model, NodeId, Op, Span, Terminal};

use crate::partition::Wires;

pub use candidate::{Around, Candidate, candidate};
pub use shared::shared;

/// A network function: an outermost compound, or elements next to each other that are in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name; that of its class, if it has none of its own.
    pub name: String,
    /// Its class.
    pub class: String,
    /// Its name in the chain.
    pub full_name: String,
    /// Its elements.
    pub elements: Vec<NodeId>,
    /// Where it is written.
    pub span: Span,
}

impl Function {
    fn new(name: &str, class: &str, span: Span) -> Self {
        let (name, class) = (name.to_string(), class.to_string());
        Self { full_name: name.clone(), name, class, elements: Vec::new(), span }
    }
}

/// The network functions of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions {
    /// All, in the order in which they are written.
    pub all: Vec<Function>,
    /// From which output of a function to which.
    pub links: Vec<(usize, usize, usize)>,
    /// Functions that packets enter, each with the wires that they come from.
    pub entries: BTreeMap<usize, Vec<String>>,
    /// Outputs at which packets leave the chain, each with the wire.
    pub exits: Vec<(usize, usize, String)>,
}

/// What stands at one end of a connection, seen from outside of compounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Unit {
    /// A compound.
    Group(usize),
    /// An element that is in none.
    Element(NodeId),
}

impl Functions {
    /// Those of a chain. What receives and sends frames is none, and neither is a compound around that.
    pub fn of(graph: &Graph, wires: &Wires) -> Self {
        let root = |mut group: usize| {
            while let Some(parent) = graph.groups[group].parent {
                group = parent;
            }
            group
        };
        let unit = |node: NodeId| match graph.nodes[node].group {
            Some(group) => Unit::Group(root(group)),
            None => Unit::Element(node),
        };
        // What stands for wires, by their names.
        let mut outside: BTreeMap<Unit, String> = BTreeMap::new();
        for (node, of) in graph.nodes.iter().enumerate() {
            let is_boundary =
                registry::find(&of.class).is_some_and(|class| class.boundary.is_some());
            let queue = wires.egress.iter().find(|(port, _)| port.node == node);
            if is_boundary || queue.is_some() {
                let name = match (unit(node), queue) {
                    (Unit::Group(group), _) => graph.groups[group].name.clone(),
                    (_, Some((_, wire))) => wire.clone(),
                    _ => wires_of(wires, graph, node).unwrap_or_else(|| of.name.clone()),
                };
                outside.insert(unit(node), name);
            }
        }
        let mut functions = Self::default();
        let mut numbers: BTreeMap<Unit, usize> = BTreeMap::new();
        for (group, of) in graph.groups.iter().enumerate() {
            if of.parent.is_none() && !outside.contains_key(&Unit::Group(group)) {
                numbers.insert(Unit::Group(group), functions.all.len());
                functions.all.push(Function::new(&of.name, &of.class, of.span));
            }
        }
        for (first, members) in loose(graph, &|node| {
            unit(node) == Unit::Element(node) && !outside.contains_key(&unit(node))
        }) {
            let of = &graph.nodes[first];
            members.iter().for_each(|node| {
                numbers.insert(Unit::Element(*node), functions.all.len());
            });
            functions.all.push(Function::new(&of.name, &of.class, of.span));
        }
        for node in 0..graph.nodes.len() {
            if let Some(at) = numbers.get(&unit(node)) {
                functions.all[*at].elements.push(node);
            }
        }
        functions.connect(graph, &numbers, &outside);
        functions.name();
        functions
    }

    fn connect(
        &mut self,
        graph: &Graph,
        numbers: &BTreeMap<Unit, usize>,
        outside: &BTreeMap<Unit, String>,
    ) {
        let is_outermost = |group: usize| graph.groups[group].parent.is_none();
        let end = |terminal: Terminal| match terminal {
            Terminal::Node(port) if graph.nodes[port.node].group.is_none() => {
                Some((Unit::Element(port.node), port.port))
            }
            Terminal::Input(group, port) | Terminal::Output(group, port) if is_outermost(group) => {
                Some((Unit::Group(group), port))
            }
            _ => None,
        };
        // Outputs of elements that are one function together are numbered in the order in which they lead on.
        let mut outputs: BTreeMap<usize, Vec<(Unit, usize)>> = BTreeMap::new();
        for wire in &graph.wires {
            // From the input of a compound, and to its output, connections are inside it.
            let is_inside =
                matches!(wire.from, Terminal::Input(..)) || matches!(wire.to, Terminal::Output(..));
            let (Some((from, port)), Some((to, _)), false) =
                (end(wire.from), end(wire.to), is_inside)
            else {
                continue;
            };
            match (numbers.get(&from), numbers.get(&to)) {
                (Some(from_at), Some(to_at)) if from_at == to_at && from != to => {}
                (Some(from_at), to_at) => {
                    let output = match from {
                        Unit::Group(_) => port,
                        Unit::Element(_) => {
                            let known = outputs.entry(*from_at).or_default();
                            let at = known.iter().position(|of| *of == (from, port));
                            at.unwrap_or_else(|| {
                                known.push((from, port));
                                known.len() - 1
                            })
                        }
                    };
                    match (to_at, outside.get(&to)) {
                        (Some(to), _) => self.links.push((*from_at, output, *to)),
                        (None, Some(wire)) => self.exits.push((*from_at, output, wire.clone())),
                        (None, None) => {}
                    }
                }
                (None, Some(to)) => {
                    if let Some(wire) = outside.get(&from) {
                        let wires = self.entries.entry(*to).or_default();
                        if !wires.contains(wire) {
                            wires.push(wire.clone());
                        }
                    }
                }
                (None, None) => {}
            }
        }
    }

    /// Names functions that have none by their classes.
    fn name(&mut self) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for function in &mut self.all {
            if function.name.contains('@') && !function.class.is_empty() {
                let count = counts.entry(function.class.clone()).or_default();
                *count += 1;
                function.name = match count {
                    1 => function.class.clone(),
                    more => format!("{}@{more}", function.class),
                };
            }
        }
    }
}

impl Functions {
    /// How many outputs of a function are connected.
    pub fn outputs(&self, function: usize) -> usize {
        let links = self.links.iter().map(|(from, output, _)| (*from, *output));
        let exits = self.exits.iter().map(|(from, output, _)| (*from, *output));
        let own = links.chain(exits).filter(|(from, _)| *from == function);
        own.collect::<std::collections::BTreeSet<_>>().len()
    }
}

impl Function {
    /// Rules or routes of its longest list; nothing without lists.
    pub fn rules(&self, models: &[Model]) -> Option<u64> {
        fn longest<'a>(ops: impl Iterator<Item = &'a Op>) -> usize {
            let of = |op: &'a Op| {
                let own = match op {
                    Op::Match { rules, .. } => rules.len(),
                    Op::Lookup { table, .. } => table.entries().count(),
                    _ => 0,
                };
                own.max(longest(op.blocks().flatten()))
            };
            ops.map(of).max().unwrap_or(0)
        }
        let blocks = self.elements.iter().filter_map(|node| models.get(*node));
        let rules = longest(blocks.flat_map(|model| model.inputs.iter().flatten()));
        (rules > 0).then_some(rules as u64)
    }
}

/// The wire that an element stands at.
fn wires_of(wires: &Wires, graph: &Graph, node: NodeId) -> Option<String> {
    let egress =
        wires.egress.iter().find(|(port, _)| port.node == node).map(|(_, wire)| wire.clone());
    egress.or_else(|| {
        let behind = graph.successors(ir::Port { node, port: 0 }).next()?;
        wires.ingress.get(&behind)?.first().cloned()
    })
}

/// Elements of which each is connected with another, by the first of each.
fn loose(graph: &Graph, is_one: &dyn Fn(NodeId) -> bool) -> BTreeMap<NodeId, Vec<NodeId>> {
    let mut first: Vec<NodeId> = (0..graph.nodes.len()).collect();
    fn root(first: &[NodeId], mut at: NodeId) -> NodeId {
        while first[at] != at {
            at = first[at];
        }
        at
    }
    for edge in &graph.edges {
        if is_one(edge.from.node) && is_one(edge.to.node) {
            let (a, b) = (root(&first, edge.from.node), root(&first, edge.to.node));
            first[a.max(b)] = a.min(b);
        }
    }
    let mut all: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for node in (0..graph.nodes.len()).filter(|node| is_one(*node)) {
        all.entry(root(&first, node)).or_default().push(node);
    }
    all
}
