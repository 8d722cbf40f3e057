//! An elaborated chain: elements, the compounds they came from, and the edges between ports.

use std::fmt;

use crate::Span;

/// Index of a [`Node`].
pub type NodeId = usize;

/// Who moves packets over a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Processing {
    /// Whichever the other end says; nobody did.
    #[default]
    Agnostic,
    /// The upstream element.
    Push,
    /// The downstream element.
    Pull,
}

impl fmt::Display for Processing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Processing::Agnostic => "agnostic",
            Processing::Push => "push",
            Processing::Pull => "pull",
        })
    }
}

/// An element of the chain.
#[derive(Clone, Debug)]
pub struct Node {
    /// Full name, such as `nat/rw` or `Strip@3`.
    pub name: String,
    /// Class, such as `Strip`.
    pub class: String,
    /// Configuration, variables expanded.
    pub config: String,
    /// Where it was declared.
    pub span: Span,
    /// The innermost compound it stands in: an index into [`Graph::groups`].
    pub group: Option<usize>,
    /// Processing of each input port.
    pub inputs: Vec<Processing>,
    /// Processing of each output port.
    pub outputs: Vec<Processing>,
}

/// An instance of a compound element: a network function, as people see it.
#[derive(Clone, Debug)]
pub struct Group {
    /// Full name.
    pub name: String,
    /// Class of the compound; empty for an anonymous one.
    pub class: String,
    /// Where the instance was declared.
    pub span: Span,
    /// The compound around it.
    pub parent: Option<usize>,
}

/// One end of a [`Wire`]. A compound's port is met from outside and from inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// A port of an element.
    Node(Port),
    /// An input of a compound, an index into [`Graph::groups`], and its number: wires lead to it
    /// outside, and from it inside.
    Input(usize, usize),
    /// An output of a compound and its number: wires lead to it inside, and from it outside.
    Output(usize, usize),
}

/// A connection as it was written: it ends at the ports of compounds. [`Edge`]s say where
/// connections lead in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Where it comes from.
    pub from: Terminal,
    /// Where it leads to.
    pub to: Terminal,
    /// Where it was written.
    pub span: Span,
}

/// One end of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Port {
    /// The element.
    pub node: NodeId,
    /// Port number.
    pub port: usize,
}

/// A connection of an output port to an input port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Output port.
    pub from: Port,
    /// Input port.
    pub to: Port,
    /// Where it was written.
    pub span: Span,
}

/// An elaborated chain. Elements stand in the order of their declaration.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The elements.
    pub nodes: Vec<Node>,
    /// The connections, in the order in which they were written.
    pub edges: Vec<Edge>,
    /// The compounds that were expanded, each behind the one around it.
    pub groups: Vec<Group>,
    /// The connections from compound to compound, for pictures of the chain.
    pub wires: Vec<Wire>,
}

impl Graph {
    /// The element of that name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|n| n.name == name)
    }

    /// Where an output port leads.
    pub fn successors(&self, from: Port) -> impl Iterator<Item = Port> + '_ {
        self.edges.iter().filter(move |e| e.from == from).map(|e| e.to)
    }

    /// What leads to an input port.
    pub fn predecessors(&self, to: Port) -> impl Iterator<Item = Port> + '_ {
        self.edges.iter().filter(move |e| e.to == to).map(|e| e.from)
    }
}
