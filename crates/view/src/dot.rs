//! Pictures of chains in the language of Graphviz.

use std::fmt::Write;

use ir::Graph;

use crate::picture::{Picture, title};

/// Writes a chain as a digraph: compounds as clusters, elements as records with their ports.
pub fn write(picture: &Picture, graph: &Graph, name: &str) -> String {
    let mut text = format!("digraph {} {{\n", quoted(name));
    text.push_str("  graph [rankdir=TB, fontname=\"Helvetica\", fontsize=11, compound=true];\n");
    text.push_str("  node [shape=record, fontname=\"Helvetica\", fontsize=10, style=rounded];\n");
    text.push_str("  edge [arrowsize=0.6, fontname=\"Helvetica\", fontsize=8];\n");
    group(picture, graph, None, 1, &mut text);
    for edge in &graph.edges {
        let pulled = graph.nodes[edge.from.node].outputs.get(edge.from.port);
        let style = match pulled {
            Some(ir::Processing::Pull) => " [style=dashed, arrowhead=onormal]",
            _ => "",
        };
        let _ = writeln!(
            text,
            "  n{}:o{}:s -> n{}:i{}:n{style};",
            edge.from.node, edge.from.port, edge.to.node, edge.to.port
        );
    }
    text + "}\n"
}

/// The elements and compounds of a compound.
fn group(picture: &Picture, graph: &Graph, inside: Option<usize>, level: usize, text: &mut String) {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); graph.groups.len() + 1];
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); graph.groups.len() + 1];
    let index = |inside: Option<usize>| inside.unwrap_or(graph.groups.len());
    for (i, g) in graph.groups.iter().enumerate() {
        children[index(g.parent)].push(i);
    }
    for (i, n) in graph.nodes.iter().enumerate() {
        members[index(n.group)].push(i);
    }
    // Compounds that are open: what is left to do of each.
    let mut open = vec![(index(inside), 0)];
    while let Some((at, next)) = open.pop() {
        let depth = level + open.len();
        if next == 0 {
            for &n in &members[at] {
                node(picture, graph, n, depth, text);
            }
        }
        if let Some(&child) = children[at].get(next) {
            open.push((at, next + 1));
            let heading = &picture.compounds[child];
            let label = quoted(&title(&heading.name, &heading.class));
            let pad = "  ".repeat(depth);
            let _ = writeln!(text, "{pad}subgraph cluster_{child} {{");
            let _ = writeln!(text, "{pad}  label={label}; style=rounded; color=gray;");
            open.push((child, 0));
        } else if !open.is_empty() {
            let _ = writeln!(text, "{}}}", "  ".repeat(depth - 1));
        }
    }
}

fn node(picture: &Picture, graph: &Graph, n: usize, depth: usize, text: &mut String) {
    let (label, node) = (&picture.elements[n], &graph.nodes[n]);
    let ports = |letter: char, count: usize| {
        let port = |p: usize| match count {
            1 => format!("<{letter}{p}>"),
            _ => format!("<{letter}{p}> {p}"),
        };
        let ports: Vec<String> = (0..count).map(port).collect();
        (count > 0).then(|| format!("{{{}}}", ports.join("|")))
    };
    let mut words = record(&title(&label.name, &label.class));
    for line in &label.config {
        words.push_str("\\n");
        words.push_str(&record(line));
    }
    let parts = [ports('i', node.inputs.len()), Some(words), ports('o', node.outputs.len())];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let pad = "  ".repeat(depth);
    let _ = writeln!(
        text,
        "{pad}n{n} [label=\"{{{}}}\", tooltip={}];",
        parts.join("|"),
        quoted(&label.tooltip)
    );
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// Text in a record's field.
fn record(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if matches!(c, '{' | '}' | '|' | '<' | '>' | '"' | '\\' | ' ') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
