//! What is right by the rules of the language and cannot have been meant.

use elements::flow_code::flows;
use ir::{Diagnostic, NodeId};

use crate::frontend::expand::Flat;
use crate::frontend::report::Report;

/// Elements of a closed circle that are pointed at.
const MAX_SHOWN: usize = 4;

/// Warns of elements that feed only one another: no packet ever comes to them.
pub(crate) fn check(flat: &Flat, report: &mut Report) {
    let graph = &flat.graph;
    let mut leads: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        leads[edge.from.node].push(edge.to.node);
    }
    // An element that no input of its own leads through may be a source.
    let begins = |node: &NodeId| {
        let (inputs, flow) = (graph.nodes[*node].inputs.len(), flat.classes[*node].map(|c| c.flow));
        inputs == 0 || flow.is_none_or(|f| f != "x/x" && !flows(f, 0, 0))
    };
    let mut waiting: Vec<NodeId> = (0..graph.nodes.len()).filter(begins).collect();
    let mut fed = vec![false; graph.nodes.len()];
    waiting.iter().for_each(|&node| fed[node] = true);
    while let Some(node) = waiting.pop() {
        for &next in &leads[node] {
            if !std::mem::replace(&mut fed[next], true) {
                waiting.push(next);
            }
        }
    }
    // One warning for each circle and what hangs on it.
    for start in 0..graph.nodes.len() {
        if fed[start] {
            continue;
        }
        let mut circle = Vec::new();
        let mut waiting = vec![start];
        fed[start] = true;
        while let Some(node) = waiting.pop() {
            circle.push(node);
            for &next in &leads[node] {
                if !std::mem::replace(&mut fed[next], true) {
                    waiting.push(next);
                }
            }
        }
        let names: Vec<String> = circle
            .iter()
            .take(MAX_SHOWN)
            .map(|&node| format!("'{}'", graph.nodes[node].name))
            .collect();
        let more = if circle.len() > MAX_SHOWN { " …" } else { "" };
        let message = format!("no packet can reach {}{more}", names.join(", "));
        let mut warning = Diagnostic::warning("unreachable", message);
        for &node in circle.iter().take(MAX_SHOWN) {
            warning = warning.label(graph.nodes[node].span, "");
        }
        report.add(warning.help("they are fed only by one another; connect a source to them"));
    }
}
