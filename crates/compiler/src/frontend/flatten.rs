//! A chain as Click text without compounds.

use std::fmt::Write;

use ir::{Edge, NodeId};

use crate::Chain;

/// Lines of connections are broken before they get longer than this.
const WIDTH: usize = 80;

/// Writes a chain as Click text: what it requires, its elements in their order, its connections.
/// Reading the text yields the same elements and connections again.
pub fn flatten(chain: &Chain) -> String {
    let mut text = String::new();
    for package in &chain.requirements {
        let _ = writeln!(text, "require(package {package});");
    }
    text + &body(chain, &|_| None)
}

/// The same without what it requires, as a compound has it. Inputs of the compound may replace elements.
pub(super) fn body(chain: &Chain, input: &dyn Fn(NodeId) -> Option<usize>) -> String {
    let mut text = String::new();
    for (node, of) in chain.graph.nodes.iter().enumerate() {
        if input(node).is_none() {
            let _ = writeln!(text, "{} :: {};", of.name, declaration(chain, node));
        }
    }
    if !chain.graph.edges.is_empty() {
        text.push('\n');
        connections(chain, input, &mut text);
    }
    text
}

/// An element's class and arguments.
pub(super) fn declaration(chain: &Chain, node: NodeId) -> String {
    let class = &chain.graph.nodes[node].class;
    let mut arguments: Vec<_> = chain.arguments[node].iter().map(|a| closed(&a.text)).collect();
    if arguments.last().is_some_and(|last| last.is_empty()) {
        arguments.push(String::new());
    }
    match arguments.is_empty() {
        true => class.clone(),
        false => format!("{class}({})", arguments.join(", ")),
    }
}

/// Writes the edges as chains that are as long as they can be, sources first.
fn connections(chain: &Chain, input: &dyn Fn(NodeId) -> Option<usize>, text: &mut String) {
    let mut graph = chain.graph.clone();
    let of_input: Vec<Option<usize>> = (0..graph.nodes.len()).map(input).collect();
    for (node, _) in of_input.iter().enumerate().filter(|(_, of)| of.is_some()) {
        graph.nodes[node].name = "input".into();
    }
    for edge in &mut graph.edges {
        if let Some(port) = of_input[edge.from.node] {
            edge.from.port = port;
        }
    }
    let mut leaving: Vec<Vec<&Edge>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        leaving[edge.from.node].push(edge);
    }
    for edges in &mut leaving {
        // The next one last.
        edges.sort_by(|a, b| b.from.cmp(&a.from).then(b.to.cmp(&a.to)));
    }
    let (sources, others): (Vec<NodeId>, Vec<NodeId>) =
        (0..graph.nodes.len()).partition(|&node| graph.nodes[node].inputs.is_empty());
    for start in sources.into_iter().chain(others) {
        while !leaving[start].is_empty() {
            let mut line = graph.nodes[start].name.len();
            text.push_str(&graph.nodes[start].name);
            let mut at = start;
            while let Some(edge) = leaving[at].pop() {
                let output = match edge.from.port {
                    0 => String::new(),
                    port => format!("[{port}]"),
                };
                let input = match edge.to.port {
                    0 => String::new(),
                    port => format!("[{port}]"),
                };
                at = edge.to.node;
                let step = format!("-> {input}{}", graph.nodes[at].name);
                text.push_str(&output);
                if line + output.len() + step.len() >= WIDTH {
                    text.push_str("\n    ");
                    line = 4;
                } else {
                    text.push(' ');
                    line += 1 + output.len();
                }
                line += step.len();
                text.push_str(&step);
            }
            text.push_str(";\n");
        }
    }
}

/// The argument as it can stand between parentheses: one whose own do not match, which only a
/// variable can bring about, is quoted.
fn closed(argument: &str) -> String {
    if !argument.contains(['(', ')', '"', '\'', '\\', '/', '#']) {
        return argument.to_owned();
    }
    let mut sources = ir::Sources::new();
    let text = format!("x :: X({argument});");
    let file = sources.add("", text);
    let (parsed, errors) = click::parse(&mut sources, file);
    let same = errors.is_empty()
        && matches!(
            &parsed.statements[..],
            [click::ast::Statement::Declaration(declaration)]
                if declaration.config.as_ref().is_some_and(|c| c.text == argument)
        );
    if same { argument.to_owned() } else { click::config::quote(argument.as_bytes()) }
}
