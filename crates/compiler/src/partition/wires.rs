//! Where a chain meets wires: the entries behind what receives frames, and the inputs that lead to what
//! sends them.

use std::collections::BTreeMap;

use click::config::Text;
use elements::element::Boundary;
use elements::registry;
use ir::{Graph, Port, Processing};

/// The wires of a chain, by the names of devices or files.
#[derive(Clone, Debug, Default)]
pub struct Wires {
    /// By entry: whose frames come there. Nothing else does.
    pub ingress: BTreeMap<Port, Vec<String>>,
    /// By input port: where packets leave that come there, perhaps through a queue.
    pub egress: BTreeMap<Port, String>,
}

impl Wires {
    /// The wires of a chain. `frames` tells by element whether the packets that it makes are frames as an interface
    /// receives them.
    pub fn of(graph: &Graph, frames: impl Fn(usize) -> bool) -> Self {
        let mut wires = Self::default();
        let boundary = |node: usize| registry::find(&graph.nodes[node].class)?.boundary;
        let name = |node: usize| {
            let arguments = Text::bare(&graph.nodes[node].config).arguments();
            arguments.first().map_or_else(String::new, |first| first.text.clone())
        };
        for node in 0..graph.nodes.len() {
            match boundary(node) {
                Some(Boundary::Ingress) => {
                    let Some(entry) = graph.successors(Port { node, port: 0 }).next() else {
                        continue;
                    };
                    let mut feeders = graph.predecessors(entry);
                    let comes_in = |from: Port| {
                        from.port == 0
                            && boundary(from.node) == Some(Boundary::Ingress)
                            && frames(from.node)
                    };
                    if feeders.all(comes_in) {
                        wires.ingress.entry(entry).or_default().push(name(node));
                    }
                }
                Some(Boundary::Egress) => {
                    let input = Port { node, port: 0 };
                    for to in [input].into_iter().chain(queues_before(graph, input)) {
                        wires.egress.insert(to, name(node));
                    }
                }
                None => {}
            }
        }
        wires
    }

    /// The names of all wires, each once.
    pub fn names(&self) -> Vec<&str> {
        let all = self.ingress.values().flatten().chain(self.egress.values());
        let mut names: Vec<&str> = all.map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// What packets are pushed to, and pulled from by this input alone.
fn queues_before(graph: &Graph, input: Port) -> impl Iterator<Item = Port> + '_ {
    graph.predecessors(input).filter_map(|from| {
        let node = graph.nodes.get(from.node)?;
        let is_queue = node.inputs == [Processing::Push] && node.outputs == [Processing::Pull];
        is_queue.then_some(Port { node: from.node, port: 0 })
    })
}
