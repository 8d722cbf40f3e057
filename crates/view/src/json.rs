//! A chain as JSON for other programs: its elements, compounds and connections, and what its programs execute.
//!
//! The format has a version, [`VERSION`]. Members may be added to it; if one leaves or means something else, the
//! version is another.

use std::collections::BTreeSet;

use ir::{Graph, Node, NodeId, Port, Processing, Program, Sources};
use serde_json::{Value, json};

/// Version of the format.
pub const VERSION: u32 = 1;

/// Writes a chain and the programs that elements of it become. `None` where there are none, as the chain has errors.
pub fn write(graph: &Graph, programs: Option<&[Program]>, sources: &Sources, name: &str) -> Value {
    let executed: Vec<BTreeSet<NodeId>> = programs.into_iter().flatten().map(executed).collect();
    let element = |(id, element): (NodeId, &Node)| {
        let (file, line) = sources.origin(element.span);
        let fused: Vec<usize> =
            (0..).zip(&executed).filter(|(_, all)| all.contains(&id)).map(|all| all.0).collect();
        json!({
            "id": id,
            "name": element.name,
            "class": element.class,
            "config": element.config,
            "file": file,
            "line": line,
            "compound": element.group,
            "inputs": element.inputs.iter().map(|p| p.to_string()).collect::<Vec<_>>(),
            "outputs": element.outputs.iter().map(|p| p.to_string()).collect::<Vec<_>>(),
            "programs": programs.map(|_| fused),
        })
    };
    let compound = |(id, compound): (usize, &ir::Group)| {
        let (file, line) = sources.origin(compound.span);
        json!({
            "id": id,
            "name": compound.name,
            "class": compound.class,
            "file": file,
            "line": line,
            "compound": compound.parent,
        })
    };
    let edge = |edge: &ir::Edge| {
        let (file, line) = sources.origin(edge.span);
        let processing = graph.nodes[edge.from.node].outputs.get(edge.from.port);
        json!({
            "from": port(edge.from),
            "to": port(edge.to),
            "processing": processing.unwrap_or(&Processing::Agnostic).to_string(),
            "file": file,
            "line": line,
        })
    };
    let program = |((id, program), all): ((usize, &Program), &BTreeSet<NodeId>)| {
        json!({
            "id": id,
            "entry": port(program.entry),
            "elements": all,
            "steps": program.steps.len(),
            "exits": program.exits().count(),
        })
    };
    json!({
        "format": "catena-graph",
        "version": VERSION,
        "file": name,
        "elements": graph.nodes.iter().enumerate().map(element).collect::<Vec<_>>(),
        "compounds": graph.groups.iter().enumerate().map(compound).collect::<Vec<_>>(),
        "edges": graph.edges.iter().map(edge).collect::<Vec<_>>(),
        "programs": programs.map(|programs| {
            programs.iter().enumerate().zip(&executed).map(program).collect::<Vec<_>>()
        }),
    })
}

/// The elements that packets pass within a program.
fn executed(program: &Program) -> BTreeSet<NodeId> {
    let exits = program.exits().flat_map(|(_, exit)| exit.all());
    exits.flat_map(|exit| &exit.visited).map(|port| port.node).collect()
}

fn port(port: Port) -> Value {
    json!({ "element": port.node, "port": port.port })
}
