//! The headers that programs look at: their parse graphs, for people and programs.

use std::fmt::Write as _;

use ir::layout::{Edge, HeaderUse, Layouts, ParseGraph, Usage};
use ir::{Graph, Program};
use serde_json::{Value, json};

use crate::explain::say;
use crate::paint::{Paint, count};

/// A program's parse graph, and where its packets come in.
fn graph(program: &Program, chain: &Graph) -> (String, ParseGraph) {
    let entry = chain.nodes.get(program.entry.node).map_or("?", |node| node.name.as_str());
    (entry.to_string(), ParseGraph::of(program, &Layouts::of(program)))
}

/// As text.
pub fn text(programs: &[Program], chain: &Graph, paint: Paint) -> String {
    let mut text = String::new();
    for program in programs {
        let (entry, graph) = graph(program, chain);
        let separator = if text.is_empty() { "" } else { "\n" };
        let headers = count(graph.headers.len(), "header");
        let _ = writeln!(text, "{separator}{}  {headers}", paint.bold(&format!("→ {entry}")));
        for (index, header) in graph.headers.iter().enumerate() {
            header_text(&graph, index, header, paint, &mut text);
        }
        if !graph.unnamed.is_empty() {
            let bits = |(start, width): &(i32, u32)| match (start % 8, width % 8) {
                (0, 0) if *width == 8 => format!("{}", start / 8),
                (0, 0) => format!("{}..{}", start / 8, (start + *width as i32) / 8),
                _ => format!("bits {start}..{}", start + *width as i32),
            };
            let all: Vec<String> = graph.unnamed.iter().map(bits).collect();
            let _ = writeln!(text, "\n  in no known header: bytes {}", all.join(", "));
        }
        if !graph.lengths.is_empty() {
            let all: Vec<String> = graph.lengths.iter().map(u128::to_string).collect();
            let _ = writeln!(text, "\n  other lengths tested: {}", all.join(", "));
        }
    }
    if text.is_empty() {
        text.push_str("nothing became a program\n");
    }
    text
}

fn header_text(
    graph: &ParseGraph,
    index: usize,
    header: &HeaderUse,
    paint: Paint,
    text: &mut String,
) {
    let offsets: Vec<String> = header.offsets.iter().map(i32::to_string).collect();
    let options = if header.options { ", options" } else { "" };
    let title = format!("{:<10}", header.name);
    let _ = writeln!(text, "\n  {}  at byte {}{options}", paint.bold(&title), offsets.join(", "));
    let mut line = |name: &str, what: &str| {
        let _ = writeln!(text, "    {name:<12}{what}");
    };
    for edge in graph.edges.iter().filter(|edge| edge.to == index) {
        line("found by", &found_by(graph, edge));
    }
    let available = &header.availability;
    let mut needs = format!("{} bytes", available.needed);
    if !available.tested.is_empty() {
        let tested: Vec<String> = available.tested.iter().map(u16::to_string).collect();
        needs += &format!("; tested: {}", tested.join(", "));
    }
    if !available.compared.is_empty() {
        let all: Vec<&str> = available.compared.iter().map(String::as_str).collect();
        needs += &format!("; length compared with {}", all.join(", "));
    }
    line("needs", &needs);
    for what in ["decides", "reads", "writes"] {
        let is = |usage: &Usage| match what {
            "decides" => usage.decides,
            "reads" => usage.read,
            _ => usage.written,
        };
        let fields = header.fields.iter().filter(|field| is(field.1));
        let names: Vec<&str> = fields.map(|field| field.0.as_str()).collect();
        let sum = (what == "reads" && header.summed).then_some("its checksum");
        let names: Vec<&str> = names.into_iter().chain(sum).collect();
        if !names.is_empty() {
            line(what, &names.join(", "));
        }
    }
}

/// `eth.type 0x0800 (IPv4)`.
fn found_by(graph: &ParseGraph, edge: &Edge) -> String {
    let Some(from) = edge.from.map(|from| &graph.headers[from]) else {
        return "packets begin with it".to_string();
    };
    match edge.select {
        Some(select) => {
            let name = "inner.".repeat(from.depth.into()) + &from.kind.field_name(select.field);
            format!("{name} {}", say((from.kind, select.field), select.value))
        }
        None => format!("behind {}: not tested, elements take it for granted", from.name),
    }
}

/// As JSON.
pub fn to_json(programs: &[Program], chain: &Graph) -> Value {
    let all: Vec<Value> = programs.iter().map(|program| program_json(program, chain)).collect();
    json!({ "programs": all })
}

fn program_json(program: &Program, chain: &Graph) -> Value {
    let (entry, graph) = graph(program, chain);
    let name = |index: usize| graph.headers[index].name.as_str();
    let headers: Vec<Value> = graph
        .headers
        .iter()
        .map(|header| {
            let fields: Vec<Value> = header
                .fields
                .iter()
                .map(|(name, usage)| {
                    json!({
                        "name": name, "decides": usage.decides, "read": usage.read,
                        "written": usage.written,
                    })
                })
                .collect();
            json!({
                "name": header.name,
                "offsets": header.offsets,
                "length": header.kind.length(),
                "options": header.options,
                "summed": header.summed,
                "needs_bytes": header.availability.needed,
                "tested_bytes": header.availability.tested,
                "length_compared_with": header.availability.compared,
                "fields": fields,
            })
        })
        .collect();
    let edges: Vec<Value> = graph
        .edges
        .iter()
        .map(|edge| {
            let from = edge.from.map(|from| &graph.headers[from]);
            let select = edge.select.zip(from).map(|(select, from)| {
                let field = from.kind.field_name(select.field);
                let field = "inner.".repeat(from.depth.into()) + &field;
                json!({ "field": field, "value": select.value as u64 })
            });
            json!({ "from": edge.from.map(name), "to": name(edge.to), "select": select })
        })
        .collect();
    let unnamed: Vec<Value> =
        graph.unnamed.iter().map(|(bit, width)| json!({ "bit": bit, "width": width })).collect();
    let lengths: Vec<u64> = graph.lengths.iter().map(|length| *length as u64).collect();
    json!({
        "entry": { "element": entry, "port": program.entry.port },
        "headers": headers,
        "edges": edges,
        "unnamed": unnamed,
        "lengths_tested": lengths,
    })
}
