//! Connections of a chain by the names that people give them.

use std::collections::HashSet;

use dataplane::ports::InUse;
use ir::{Edge, Graph, NodeId, Port, Terminal, Wire, nearest};

use super::protocol::{self, Piece};
use crate::error::Error;
use crate::instance::{Configuration, TapPoint};

/// What clients are sent of the connections that are tapped.
pub(super) fn piece(places: &[TapPoint]) -> Piece {
    let edge = |place: &TapPoint| protocol::Edge {
        edge: place.name.clone(),
        place: place.landmark.clone(),
    };
    Piece::Edges(places.iter().map(edge).collect())
}

/// What a name stands for: elements, and what is meant by its ports.
enum Named {
    Element(NodeId),
    /// A compound: an index into the graph's groups, and the elements in it.
    Group(usize, HashSet<NodeId>),
    /// The elements that receive from an interface or send to it.
    Interface(HashSet<NodeId>),
}

/// A name with the port written in front of it, or behind it.
struct End {
    named: Named,
    input: Option<usize>,
    output: Option<usize>,
}

impl Named {
    fn holds(&self, node: NodeId) -> bool {
        match self {
            Self::Element(element) => *element == node,
            Self::Group(_, elements) | Self::Interface(elements) => elements.contains(&node),
        }
    }
}

impl End {
    /// Whether a connection leaves it.
    fn begins(&self, edge: &Edge, graph: &Graph) -> bool {
        let port = match (&self.named, self.output) {
            (_, None) => true,
            (Named::Group(group, _), Some(port)) => {
                let wires = graph.wires.iter();
                reaches(graph, Terminal::Output(*group, port), edge.from, &|terminal| {
                    wires.clone().filter(|w| w.to == terminal).map(|w| w.from).collect()
                })
            }
            (_, Some(port)) => edge.from.port == port,
        };
        port && self.named.holds(edge.from.node) && !self.is_inside(edge.to.node)
    }

    /// Whether a connection leads to it.
    fn ends(&self, edge: &Edge, graph: &Graph) -> bool {
        let port = match (&self.named, self.input) {
            (_, None) => true,
            (Named::Group(group, _), Some(port)) => {
                let wires = graph.wires.iter();
                reaches(graph, Terminal::Input(*group, port), edge.to, &|terminal| {
                    wires.clone().filter(|w: &&Wire| w.from == terminal).map(|w| w.to).collect()
                })
            }
            (_, Some(port)) => edge.to.port == port,
        };
        port && self.named.holds(edge.to.node) && !self.is_inside(edge.from.node)
    }

    /// Whether an element is one of a compound's, whose own connections do not count.
    fn is_inside(&self, node: NodeId) -> bool {
        matches!(&self.named, Named::Group(_, elements) if elements.contains(&node))
    }
}

/// Whether a compound's port leads to an element's port, wire by wire.
fn reaches(
    graph: &Graph,
    from: Terminal,
    to: Port,
    next: &dyn Fn(Terminal) -> Vec<Terminal>,
) -> bool {
    let mut waiting = vec![from];
    for _ in 0..=graph.wires.len() {
        let Some(terminal) = waiting.pop() else { break };
        if terminal == Terminal::Node(to) {
            return true;
        }
        waiting.extend(next(terminal));
    }
    false
}

/// `[1]` in front of a text or behind it.
fn brackets(text: &str) -> Result<(Option<usize>, &str, Option<usize>), String> {
    let number =
        |text: &str| text.trim().parse().map_err(|_| format!("'{text}' is no number of a port"));
    let (mut name, mut input, mut output) = (text.trim(), None, None);
    if let Some((port, rest)) = name.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        (input, name) = (Some(number(port)?), rest.trim());
    }
    if let Some((rest, port)) = name.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) {
        (output, name) = (Some(number(port)?), rest.trim());
    }
    Ok((input, name, output))
}

/// Resolves names in a configuration.
pub(super) struct Names<'a> {
    pub(super) configuration: &'a Configuration,
    /// What elements asked for.
    pub(super) devices: &'a InUse,
    /// Names in the chain with the interfaces that they are bound to.
    pub(super) interfaces: &'a [(String, String)],
}

impl Names<'_> {
    fn graph(&self) -> &Graph {
        &self.configuration.chain().graph
    }

    fn end(&self, text: &str) -> Result<End, String> {
        let (input, name, output) = brackets(text)?;
        Ok(End { named: self.named(name)?, input, output })
    }

    fn named(&self, name: &str) -> Result<Named, String> {
        let (graph, chain) = (self.graph(), self.configuration.chain());
        // An element or compound of a device's name is there for it: its own connections, inside and
        // outside, would show each packet twice, or those of one direction only.
        let bound = self.interfaces.iter().filter(|(_, interface)| interface == name);
        let names = bound.map(|(name, _)| name.as_str()).chain([name]);
        let elements = names.flat_map(|name| self.devices.elements_at(name));
        let elements: HashSet<NodeId> = elements.filter_map(|name| chain.find(name)).collect();
        if !elements.is_empty() {
            return Ok(Named::Interface(elements));
        }
        if let Some(element) = chain.find(name) {
            return Ok(Named::Element(element));
        }
        if let Some(group) = graph.groups.iter().position(|group| group.name == name) {
            let inside = |node: &NodeId| {
                let rest = graph.nodes[*node].name.strip_prefix(name);
                rest.is_some_and(|rest| rest.starts_with('/'))
            };
            return Ok(Named::Group(group, (0..graph.nodes.len()).filter(inside).collect()));
        }
        let elements = graph.nodes.iter().map(|node| node.name.as_str());
        let groups = graph.groups.iter().map(|group| group.name.as_str());
        let interfaces = self.interfaces.iter().flat_map(|(name, to)| [name.as_str(), to]);
        Err(match nearest(name, elements.chain(groups).chain(interfaces)) {
            Some(near) => {
                format!("there is no element or interface '{name}'; did you mean {near}?")
            }
            None => format!("there is no element, network function or interface '{name}'"),
        })
    }

    /// The connections that a text means: `A -> B`, those from one to another; `A[1]`, those that
    /// leave an output; `[1]B`, those that come to an input; `A`, all that lead to or from it. A
    /// name is an element's, a compound's or an interface's.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(super) fn edges(&self, text: &str) -> Result<Vec<TapPoint>, Error> {
        let graph = self.graph();
        let end = |text: &str| self.end(text).map_err(Error::Connection);
        let found: Vec<&Edge> = match text.split_once("->") {
            Some((from, to)) => {
                let (from, to) = (end(from)?, end(to)?);
                let meant = |e: &&Edge| from.begins(e, graph) && to.ends(e, graph);
                graph.edges.iter().filter(meant).collect()
            }
            None => {
                let end = end(text)?;
                let (comes, leaves) = match (end.input, end.output) {
                    (None, None) => (true, true),
                    (input, output) => (input.is_some(), output.is_some()),
                };
                let meant =
                    |e: &&Edge| comes && end.ends(e, graph) || leaves && end.begins(e, graph);
                graph.edges.iter().filter(meant).collect()
            }
        };
        if found.is_empty() {
            return Err(Error::NoConnection(text.to_string()));
        }
        Ok(found.into_iter().map(|edge| self.place(edge)).collect())
    }

    /// The connections by which packets come in.
    pub(super) fn entrances(&self) -> Vec<TapPoint> {
        let graph = self.graph();
        let comes_in = |edge: &&Edge| graph.nodes[edge.from.node].inputs.is_empty();
        graph.edges.iter().filter(comes_in).map(|edge| self.place(edge)).collect()
    }

    fn place(&self, edge: &Edge) -> TapPoint {
        let nodes = &self.graph().nodes;
        let port = |port: usize| if port == 0 { String::new() } else { format!("[{port}]") };
        let (from, to) = (&nodes[edge.from.node].name, &nodes[edge.to.node].name);
        let name = format!("{from}{} -> {}{to}", port(edge.from.port), port(edge.to.port));
        let landmark = self.configuration.sources().landmark(edge.span);
        TapPoint { from: edge.from, to: edge.to, name, landmark }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_go_by_many_names() {
        let text = "in :: InfiniteSource -> s :: Switch; s[0] -> nf :: { input -> c :: Counter -> t :: Tee;
            t[0] -> output; t[1] -> [1] output } -> q :: Queue -> d :: Discard;
            nf[1] -> e :: Discard; s[1] -> e;";
        let configuration = Configuration::of_text("a.click", text, &Default::default()).unwrap();
        let devices = InUse::default();
        let names = Names { configuration: &configuration, devices: &devices, interfaces: &[] };
        let all = |text: &str| -> Vec<String> {
            names.edges(text).unwrap().into_iter().map(|place| place.name).collect()
        };
        assert_eq!(all("s"), ["in -> s", "s -> nf/c", "s[1] -> e"]);
        assert_eq!(all("s[1]"), ["s[1] -> e"]);
        assert_eq!(all("[0] s"), ["in -> s"]);
        assert_eq!(all("s -> e"), ["s[1] -> e"]);
        assert_eq!(all("nf"), ["s -> nf/c", "nf/t -> q", "nf/t[1] -> e"]);
        assert_eq!(all("nf[1]"), ["nf/t[1] -> e"]);
        assert_eq!(all("[0]nf"), ["s -> nf/c"]);
        assert_eq!(all("nf -> e"), ["nf/t[1] -> e"]);
        assert_eq!(all("nf/c -> nf/t"), ["nf/c -> nf/t"]);
        assert_eq!(all("q [0] -> [0] d"), ["q -> d"]);
        assert_eq!(names.edges("d").unwrap()[0].landmark, "a.click:2");
        assert_eq!(names.entrances()[0].name, "in -> s");
        let wrong = |text: &str| names.edges(text).unwrap_err().to_string();
        assert!(wrong("nf/d").contains("did you mean"), "{}", wrong("nf/d"));
        assert!(wrong("e -> s").contains("there is no connection 'e -> s'"));
        assert!(wrong("s[x]").contains("no number of a port"));
        assert!(wrong("").contains("there is no element"));
        assert!(wrong("s[7]").contains("there is no connection"));
    }
}
