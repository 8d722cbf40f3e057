//! Push and pull: who moves packets over each connection.
//!
//! A class says of each port whether it is push, pull or agnostic. An agnostic port is what the
//! other end of its connection is, and agnostic ports of one element between which packets go
//! are all alike. What remains agnostic is push.

use std::collections::{HashMap, HashSet, VecDeque};

use elements::flow_code::flows;
use ir::{Diagnostic, Graph, NodeId, Processing};

use crate::frontend::expand::Flat;
use crate::frontend::report::Report;

/// Elements named on the path between the ports of a conflict.
const MAX_PATH: usize = 8;
/// Pairs of ports of one element that a flow code is looked up for.
const MAX_FLOW_PAIRS: usize = 1 << 16;

/// Decides the processing of every port and checks the connections that depend on it.
pub(crate) fn resolve(flat: &mut Flat, report: &mut Report) {
    let mut ports = Ports::new(flat);
    ports.spread(flat, report);
    let graph = &mut flat.graph;
    for (node, &[inputs, outputs]) in graph.nodes.iter_mut().zip(&ports.first) {
        let decided = |slot: (usize, &mut Processing), first: usize| {
            *slot.1 = match ports.value[first + slot.0] {
                Processing::Agnostic => Processing::Push,
                value => value,
            };
        };
        node.inputs.iter_mut().enumerate().for_each(|slot| decided(slot, inputs));
        node.outputs.iter_mut().enumerate().for_each(|slot| decided(slot, outputs));
    }
    check_reuse(graph, report);
}

/// Why two ports are alike.
#[derive(Clone, Copy)]
enum Why {
    /// They are connected: an index into the edges.
    Edge(usize),
    /// Packets go from one to the other inside an element.
    Inside,
}

/// The ports of all elements, numbered; numbers beyond stand for all agnostic ports of an element.
struct Ports {
    /// The numbers of the first input and the first output of each node.
    first: Vec<[usize; 2]>,
    owner: Vec<NodeId>,
    value: Vec<Processing>,
    alike: Vec<Vec<(usize, Why)>>,
}

impl Ports {
    fn new(flat: &Flat) -> Self {
        let graph = &flat.graph;
        let mut ports =
            Ports { first: Vec::new(), owner: Vec::new(), value: Vec::new(), alike: Vec::new() };
        for (id, node) in graph.nodes.iter().enumerate() {
            let code = flat.classes[id].map_or("a/a", |c| c.processing);
            let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
            let sides = [(inputs, node.inputs.len()), (outputs, node.outputs.len())];
            let first = sides.map(|(codes, number)| {
                let first = ports.value.len();
                let codes = codes.as_bytes();
                for port in 0..number {
                    let value = match codes.get(port).or(codes.last()) {
                        Some(b'h') => Processing::Push,
                        Some(b'l') => Processing::Pull,
                        _ => Processing::Agnostic,
                    };
                    ports.add(id, value);
                }
                first
            });
            ports.first.push(first);
        }
        for (id, node) in graph.nodes.iter().enumerate() {
            if let Some(class) = flat.classes[id] {
                ports.join(id, class.flow, node.inputs.len(), node.outputs.len());
            }
        }
        for (index, edge) in graph.edges.iter().enumerate() {
            let from = ports.first[edge.from.node][1] + edge.from.port;
            let to = ports.first[edge.to.node][0] + edge.to.port;
            ports.tie(from, to, Why::Edge(index));
        }
        ports
    }

    fn add(&mut self, owner: NodeId, value: Processing) -> usize {
        self.owner.push(owner);
        self.value.push(value);
        self.alike.push(Vec::new());
        self.value.len() - 1
    }

    fn tie(&mut self, a: usize, b: usize, why: Why) {
        self.alike[a].push((b, why));
        self.alike[b].push((a, why));
    }

    /// Ties the agnostic ports of an element between which packets go.
    fn join(&mut self, node: NodeId, flow: &str, inputs: usize, outputs: usize) {
        let [first_input, first_output] = self.first[node];
        let agnostic = |ports: &Self, first: usize, number: usize| -> Vec<usize> {
            let numbers = first..first + number;
            numbers.filter(|&p| ports.value[p] == Processing::Agnostic).collect()
        };
        let ins = agnostic(self, first_input, inputs);
        let outs = agnostic(self, first_output, outputs);
        if ins.is_empty() || outs.is_empty() {
            return;
        }
        if flow != "x/x" && ins.len() * outs.len() <= MAX_FLOW_PAIRS {
            for &input in &ins {
                for &output in &outs {
                    if flows(flow, input - first_input, output - first_output) {
                        self.tie(input, output, Why::Inside);
                    }
                }
            }
            return;
        }
        let hub = self.add(node, Processing::Agnostic);
        for port in ins.into_iter().chain(outs) {
            self.tie(hub, port, Why::Inside);
        }
    }

    /// Spreads what is known to all ports that are alike, and reports where it contradicts.
    fn spread(&mut self, flat: &Flat, report: &mut Report) {
        let number = self.value.len();
        // The port whose class decided, and the port before on the path from it.
        let mut root: Vec<usize> = (0..number).collect();
        let mut before = root.clone();
        let mut queue: VecDeque<usize> =
            (0..number).filter(|&p| self.value[p] != Processing::Agnostic).collect();
        let mut clashes = Vec::new();
        while let Some(port) = queue.pop_front() {
            for &(other, why) in &self.alike[port] {
                if self.value[other] == Processing::Agnostic {
                    self.value[other] = self.value[port];
                    root[other] = root[port];
                    before[other] = port;
                    queue.push_back(other);
                } else if self.value[other] != self.value[port] && port < other {
                    clashes.push((port, other, why));
                }
            }
        }
        let mut reported = HashSet::new();
        for (a, b, why) in clashes {
            let (push, pull) = if self.value[a] == Processing::Push { (a, b) } else { (b, a) };
            if reported.insert((root[push], root[pull])) {
                let clash = Clash { push, pull, why, root: &root, before: &before };
                report.add(self.describe(flat, &clash));
            }
        }
    }

    /// `output 0 of 'x'`, for the port of this number.
    fn name(&self, flat: &Flat, port: usize) -> String {
        let node = self.owner[port];
        let [inputs, outputs] = self.first[node];
        let (kind, number) =
            if port >= outputs { ("output", port - outputs) } else { ("input", port - inputs) };
        format!("{kind} {number} of '{}'", flat.graph.nodes[node].name)
    }

    fn describe(&self, flat: &Flat, clash: &Clash<'_>) -> Diagnostic {
        let graph = &flat.graph;
        // The end that packets come from, and the one that they go to.
        let (up, down) = match clash.why {
            Why::Edge(index) => {
                let edge = &graph.edges[index];
                let from = self.first[edge.from.node][1] + edge.from.port;
                if from == clash.push { (clash.push, clash.pull) } else { (clash.pull, clash.push) }
            }
            Why::Inside => (clash.push.min(clash.pull), clash.push.max(clash.pull)),
        };
        let path = |start: usize| {
            let mut path = vec![self.owner[start]];
            let mut at = start;
            while clash.before[at] != at {
                at = clash.before[at];
                path.push(self.owner[at]);
            }
            path
        };
        let mut ports = path(up);
        ports.reverse();
        ports.extend(path(down));
        ports.dedup();
        let roots = [clash.root[up], clash.root[down]];
        let ends = roots.map(|root| self.owner[root]);
        let names: Vec<String> = ports
            .iter()
            .filter(|node| !ends.contains(node))
            .map(|&node| format!("'{}'", graph.nodes[node].name))
            .collect();
        let [first, second] = roots.map(|r| format!("{} {}", self.value[r], self.name(flat, r)));
        let mut message = format!("{first} is connected to {second}");
        if names.len() > MAX_PATH {
            let half = MAX_PATH / 2;
            let (start, end) = (names[..half].join(", "), names[names.len() - half..].join(", "));
            message = format!("{message} through {start} … {end}");
        } else if !names.is_empty() {
            message = format!("{message} through {}", names.join(", "));
        }
        let mut error = Diagnostic::error("push-pull", message);
        if let Why::Edge(index) = clash.why {
            error = error.label(graph.edges[index].span, "push meets pull here");
        }
        for root in roots {
            let is = format!("{} is {}", self.name(flat, root), self.value[root]);
            error = error.label(graph.nodes[self.owner[root]].span, is);
        }
        let help = if self.value[up] == Processing::Push {
            "a Queue between them turns push into pull"
        } else {
            "an Unqueue between them turns pull into push"
        };
        error.help(help)
    }
}

/// Two ports that would have to be alike and are not.
struct Clash<'a> {
    push: usize,
    pull: usize,
    why: Why,
    root: &'a [usize],
    before: &'a [usize],
}

/// A push output leads to one input, and a pull input is fed by one output.
fn check_reuse(graph: &Graph, report: &mut Report) {
    let mut first: HashMap<(bool, ir::Port), usize> = HashMap::new();
    for (index, edge) in graph.edges.iter().enumerate() {
        for (output, port) in [(true, edge.from), (false, edge.to)] {
            let node = &graph.nodes[port.node];
            let side = if output { &node.outputs } else { &node.inputs };
            let active = if output { Processing::Push } else { Processing::Pull };
            if side[port.port] != active {
                continue;
            }
            let Some(&before) = first.get(&(output, port)) else {
                first.insert((output, port), index);
                continue;
            };
            let before = &graph.edges[before];
            let end = |e: &ir::Edge| {
                let (port, kind) = if output { (e.to, "input") } else { (e.from, "output") };
                format!("to {kind} {} of '{}'", port.port, graph.nodes[port.node].name)
            };
            let (kind, help) = if output {
                ("push output", "a Tee copies packets to several outputs")
            } else {
                ("pull input", "a scheduler such as RoundRobinSched takes turns between inputs")
            };
            let name = &node.name;
            report.add(
                Diagnostic::error(
                    "port-reused",
                    format!("{kind} {} of '{name}' is connected more than once", port.port),
                )
                .label(edge.span, end(edge))
                .label(before.span, end(before))
                .help(help),
            );
        }
    }
}
