//! Ports: connections are led through the ports of compounds, and counted.

use std::collections::{HashMap, HashSet};

use ir::{Diagnostic, Edge, Port, Processing, Span, Terminal, Wire};

use crate::frontend::connect::count;
use crate::frontend::expand::{Flat, FlatLink, Pin, Relay, Unit};
use crate::frontend::report::Report;

/// Connections between elements.
const MAX_EDGES: usize = 1 << 19;
/// Ports of compounds that all connections together are led through.
const MAX_STEPS: usize = 1 << 23;

/// Leads the connections of a chain through its compounds and checks the numbers of ports; then
/// the graph has its edges, and its nodes as many ports as they are to have.
pub(crate) fn connect(flat: &mut Flat, report: &mut Report) {
    let used = used_ports(flat);
    let table = Relays::new(&flat.links);
    table.check(flat, report);
    lead(flat, &table, report);
    flat.graph.wires = wires(flat, &table);
    count_ports(flat, &used, report);
}

/// Numbers of input and output ports of each node that connections mention.
fn used_ports(flat: &Flat) -> Vec<[Vec<(u32, Span)>; 2]> {
    let mut used = vec![[Vec::new(), Vec::new()]; flat.graph.nodes.len()];
    for link in &flat.links {
        for (side, (unit, port)) in [(0, link.to), (1, link.from)] {
            if let Unit::Node(node) = unit {
                used[node][side].push((port, link.span));
            }
        }
    }
    for side in used.iter_mut().flatten() {
        side.sort_by_key(|&(port, _)| port);
        side.dedup_by_key(|&mut (port, _)| port);
    }
    used
}

/// What leaves and enters each port of a relay.
struct Relays {
    /// Indices of links.
    leaving: HashMap<(usize, u32), Vec<usize>>,
    /// The first link.
    entering: HashMap<(usize, u32), usize>,
}

impl Relays {
    fn new(links: &[FlatLink]) -> Self {
        let mut relays = Relays { leaving: HashMap::new(), entering: HashMap::new() };
        for (index, link) in links.iter().enumerate() {
            if let (Unit::Relay(relay), port) = link.from {
                relays.leaving.entry((relay, port)).or_default().push(index);
            }
            if let (Unit::Relay(relay), port) = link.to {
                relays.entering.entry((relay, port)).or_insert(index);
            }
        }
        relays
    }

    /// Reports ports of compounds and groups that have only one side.
    fn check(&self, flat: &Flat, report: &mut Report) {
        let mut half: Vec<(usize, u32, usize, bool)> = Vec::new();
        for (&(relay, port), &link) in &self.entering {
            if !self.leaving.contains_key(&(relay, port)) {
                half.push((relay, port, link, true));
            }
        }
        for (&(relay, port), links) in &self.leaving {
            if !self.entering.contains_key(&(relay, port)) {
                half.push((relay, port, links[0], false));
            }
        }
        half.sort_unstable();
        for (relay, port, link, entered) in half {
            let span = flat.links[link].span;
            let Relay { instance, span: declared, output, broken, .. } = &flat.relays[relay];
            if report.is_full() {
                return;
            }
            if *broken {
                continue;
            }
            let name = match instance {
                Some(name) => format!("'{name}'"),
                None => "the group".to_owned(),
            };
            let side = if *output { "output" } else { "input" };
            // Entered from outside, or left to the outside: the inside does not have the port.
            let error = if entered != *output {
                let message = format!("{name} has no {side} {port}");
                let there = self.ports(relay, *output);
                Diagnostic::error("no-such-port", message)
                    .label(span, "connected here")
                    .label(*declared, format!("has {}", count(there, side)))
            } else {
                let message = format!("{side} {port} of {name} is not connected");
                Diagnostic::error(
                    ["unconnected-input", "unconnected-output"][usize::from(*output)],
                    message,
                )
                .label(*declared, "")
                .label(span, "used here inside it")
            };
            report.add(error);
        }
    }

    /// How many ports the inside of a compound or group has on a side.
    fn ports(&self, relay: usize, output: bool) -> usize {
        let last = if output {
            self.entering.keys().filter(|k| k.0 == relay).map(|k| k.1).max()
        } else {
            self.leaving.keys().filter(|k| k.0 == relay).map(|k| k.1).max()
        };
        last.map_or(0, |last| last as usize + 1)
    }
}

/// Follows every connection from an element to the elements that it leads to.
fn lead(flat: &mut Flat, relays: &Relays, report: &mut Report) {
    let mut edges = Vec::new();
    let mut known = HashSet::new();
    let mut steps = 0;
    let mut stack: Vec<Pin> = Vec::new();
    let mut visited: HashSet<(usize, u32)> = HashSet::new();
    for link in &flat.links {
        let (Unit::Node(node), port) = link.from else { continue };
        let from = Port { node, port: port as usize };
        visited.clear();
        stack.push(link.to);
        let (mut arrived, mut broken) = (false, false);
        while let Some((unit, port)) = stack.pop() {
            steps += 1;
            match unit {
                Unit::Node(node) => {
                    arrived = true;
                    let to = Port { node, port: port as usize };
                    if known.insert((from, to)) {
                        edges.push(Edge { from, to, span: link.span });
                    }
                }
                Unit::Relay(relay) => match relays.leaving.get(&(relay, port)) {
                    Some(links) if visited.insert((relay, port)) => {
                        stack.extend(links.iter().rev().map(|&l| flat.links[l].to));
                    }
                    Some(_) => {}
                    None => broken = true,
                },
            }
            if edges.len() > MAX_EDGES || steps > MAX_STEPS {
                report.add(
                    Diagnostic::error("chain-too-large", "the chain has too many connections")
                        .label(link.span, "the limit is reached here"),
                );
                flat.graph.edges = edges;
                return;
            }
        }
        if !arrived && !broken {
            report.add(
                Diagnostic::error("empty-cycle", "this connection leads to no element")
                    .label(link.span, "goes round through compounds that hold nothing"),
            );
        }
    }
    flat.graph.edges = edges;
}

/// The connections as they were written, but led through the ports of groups.
fn wires(flat: &Flat, relays: &Relays) -> Vec<Wire> {
    let terminal = |(unit, port): Pin| match unit {
        Unit::Node(node) => Some(Terminal::Node(Port { node, port: port as usize })),
        Unit::Relay(relay) => {
            let Relay { group, output, .. } = flat.relays[relay];
            let side = if output { Terminal::Output } else { Terminal::Input };
            group.map(|group| side(group, port as usize))
        }
    };
    let mut wires = Vec::new();
    let mut visited: HashSet<(usize, u32)> = HashSet::new();
    let mut stack = Vec::new();
    for link in &flat.links {
        let Some(from) = terminal(link.from) else { continue };
        visited.clear();
        stack.push(link.to);
        while let Some(pin) = stack.pop() {
            match (terminal(pin), pin) {
                (Some(to), _) => wires.push(Wire { from, to, span: link.span }),
                (None, (Unit::Relay(relay), port)) if visited.insert((relay, port)) => {
                    let leaving = relays.leaving.get(&(relay, port)).into_iter().flatten();
                    stack.extend(leaving.rev().map(|&l| flat.links[l].to));
                }
                _ => {}
            }
            if wires.len() > MAX_EDGES {
                return wires;
            }
        }
    }
    wires
}

/// Gives each node the number of ports that its class says and reports what does not fit.
fn count_ports(flat: &mut Flat, used: &[[Vec<(u32, Span)>; 2]], report: &mut Report) {
    for (node, used) in used.iter().enumerate() {
        let highest = [0, 1].map(|side| used[side].last().map_or(0, |u| u.0 as usize + 1));
        let class = flat.classes[node];
        let ports = class.and_then(|c| PortCount::parse(c.ports)).map(|c| c.choose(highest));
        let [inputs, outputs] = ports.unwrap_or(highest);
        let element = &mut flat.graph.nodes[node];
        element.inputs = vec![Processing::Agnostic; inputs];
        element.outputs = vec![Processing::Agnostic; outputs];
        if ports.is_none() {
            continue;
        }
        let element = &flat.graph.nodes[node];
        let what = format!("'{}'", element.name);
        let has = format!(
            "{} has {} and {}",
            element.class,
            count(inputs, "input"),
            count(outputs, "output")
        );
        if used.iter().all(Vec::is_empty) && inputs + outputs > 0 {
            report.add(
                Diagnostic::error("unconnected-element", format!("{what} is not connected"))
                    .label(element.span, has)
                    .help("connect it or remove it"),
            );
            continue;
        }
        for (side, number) in [(0, inputs), (1, outputs)] {
            let kind = ["input", "output"][side];
            for &(port, span) in used[side].iter().filter(|u| u.0 as usize >= number) {
                let mut error =
                    Diagnostic::error("no-such-port", format!("{what} has no {kind} {port}"))
                        .label(span, "connected here")
                        .label(element.span, &has);
                match number {
                    0 => {}
                    1 => error = error.help(format!("its only {kind} is 0")),
                    _ => {
                        error = error.help(format!("its {kind}s count from 0 to {}", number - 1));
                    }
                }
                report.add(error);
            }
            let missing = gaps(&used[side], number);
            if missing.is_empty() {
                continue;
            }
            let (code, help) = match side {
                0 => ("unconnected-input", "connect it, to an Idle if it is to receive nothing"),
                _ => (
                    "unconnected-output",
                    "connect it, to a Discard if what comes out is to be dropped",
                ),
            };
            let plural = missing.len() > 1 || missing[0].contains('-');
            let (s, are) = if plural { ("s", "are") } else { ("", "is") };
            let missing = missing.join(", ");
            let message = format!("{kind}{s} {missing} of {what} {are} not connected");
            let mut error = Diagnostic::error(code, message).label(element.span, &has);
            if let Some(&(port, span)) = used[side].first() {
                error = error.label(span, format!("{kind} {port} is"));
            }
            report.add(error.help(help));
        }
    }
    let nodes = &flat.graph.nodes;
    flat.graph.edges.retain(|edge| {
        edge.from.port < nodes[edge.from.node].outputs.len()
            && edge.to.port < nodes[edge.to.node].inputs.len()
    });
}

/// The ports below `number` that are not used: `1`, `3-7`.
fn gaps(used: &[(u32, Span)], number: usize) -> Vec<String> {
    let mut gaps = Vec::new();
    let mut next = 0;
    let ends = used.iter().map(|u| u.0 as usize).filter(|&p| p < number).chain([number]);
    for end in ends {
        match end - next {
            0 => {}
            1 => gaps.push(next.to_string()),
            _ => gaps.push(format!("{next}-{}", end - 1)),
        }
        next = end + 1;
    }
    if gaps.len() > 8 {
        gaps.truncate(8);
        gaps.push("…".to_owned());
    }
    gaps
}

/// A class's numbers of ports: Click's `1/1-2`, `-/=`, `1-/=+`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortCount {
    inputs: (usize, usize),
    outputs: Outputs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outputs {
    Between(usize, usize),
    /// As many as inputs and so many more.
    LikeInputs(usize),
}

impl PortCount {
    fn parse(code: &str) -> Option<Self> {
        let (inputs, outputs) = code.split_once('/').unwrap_or((code, code));
        let inputs = range(inputs)?;
        let outputs = match outputs.strip_prefix('=') {
            Some(plus) if plus.bytes().all(|b| b == b'+') => Outputs::LikeInputs(plus.len()),
            Some(_) => return None,
            None => {
                let (low, high) = range(outputs)?;
                Outputs::Between(low, high)
            }
        };
        Some(PortCount { inputs, outputs })
    }

    /// The numbers of ports that an element gets of which so many are connected.
    fn choose(self, [inputs, outputs]: [usize; 2]) -> [usize; 2] {
        let inputs = inputs.clamp(self.inputs.0, self.inputs.1);
        let outputs = match self.outputs {
            Outputs::Between(low, high) => outputs.clamp(low, high),
            Outputs::LikeInputs(more) => inputs + more,
        };
        [inputs, outputs]
    }
}

/// `2`, `1-3`, `1-`, `-3`, `-`.
fn range(code: &str) -> Option<(usize, usize)> {
    match code.split_once('-') {
        None => code.parse().ok().map(|n| (n, n)),
        Some((low, high)) => {
            let low = if low.is_empty() { 0 } else { low.parse().ok()? };
            let high = if high.is_empty() { usize::MAX } else { high.parse().ok()? };
            (low <= high).then_some((low, high))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_counts_are_clicks() {
        let choose = |code, used| PortCount::parse(code).map(|c| c.choose(used));
        assert_eq!(choose("1/1-2", [1, 0]), Some([1, 1]));
        assert_eq!(choose("1/1-2", [0, 5]), Some([1, 2]));
        assert_eq!(choose("-/=", [3, 1]), Some([3, 3]));
        assert_eq!(choose("1-/=+", [2, 0]), Some([2, 3]));
        assert_eq!(choose("-/-", [0, 7]), Some([0, 7]));
        assert_eq!(choose("2", [0, 7]), Some([2, 2]));
        assert_eq!(choose("0/1-", [1, 4]), Some([0, 4]));
        assert_eq!(PortCount::parse("x/1"), None);
    }

    #[test]
    fn gaps_are_ranges() {
        let used = |ports: &[u32]| ports.iter().map(|&p| (p, Span::default())).collect::<Vec<_>>();
        assert_eq!(gaps(&used(&[0, 2, 6]), 8), ["1", "3-5", "7"]);
        assert!(gaps(&used(&[0, 1]), 2).is_empty());
    }
}
