//! The tables that a chain's packets are looked up in, each once.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use ir::field::eth;
use ir::layout::{Layouts, Name};
use ir::model::StateKind;
use ir::program::{Entries, MatchKind, Step, StepId, Table, Term, TermId};
use ir::{Graph, IntervalSet, NodeId, Program, Sources};
use serde_json::{Value, json};

use crate::paint::{Paint, count};

/// A table and where it is looked up.
struct Listed<'a> {
    program: &'a Program,
    table: &'a Table,
    /// Widths of its keys in bits: the widest that are looked up.
    widths: Vec<u16>,
    /// The steps that look something up in it, and the terms of that.
    lookups: Vec<(&'a Program, StepId, &'a [TermId])>,
}

/// What tells tables apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Identity<'a> {
    /// Owner and name of flows.
    Flows(&'a str, &'a str),
    /// The element, and where its entries lie, which all programs share.
    Entries(NodeId, usize),
}

impl<'a> Identity<'a> {
    fn of(program: &'a Program, table: &'a Table) -> Self {
        match &table.entries {
            Entries::Flows(state) => {
                let state = &program.state[usize::from(state.0)];
                Self::Flows(&state.owner, state.name)
            }
            Entries::Prefixes(all) => Self::Entries(table.element, Arc::as_ptr(all).addr()),
            Entries::Rules(all) => Self::Entries(table.element, all.as_ptr().addr()),
        }
    }
}

/// The tables of programs. A table of an element that is in several programs is listed once.
fn listed(programs: &[Program]) -> Vec<Listed<'_>> {
    let mut all: BTreeMap<Identity<'_>, Listed<'_>> = BTreeMap::new();
    for program in programs {
        for (id, table) in program.tables.iter().enumerate() {
            let steps = (0..).map(StepId).zip(&program.steps);
            let lookups = steps.filter_map(|(at, step)| match step {
                Step::Classify { table: Some(of), keys, .. } if usize::from(of.0) == id => {
                    Some((program, at, &keys[..]))
                }
                Step::Lookup { lookup, .. } => {
                    let lookup = &program.lookups[usize::from(lookup.0)];
                    (usize::from(lookup.table.0) == id).then_some((program, at, &lookup.key[..]))
                }
                _ => None,
            });
            let new = || {
                let widths = table.widths.clone();
                Listed { program, table, widths, lookups: Vec::new() }
            };
            let listed = all.entry(Identity::of(program, table)).or_insert_with(new);
            listed.lookups.extend(lookups);
            let widths = listed.widths.iter_mut().zip(&table.widths);
            widths.for_each(|(known, width)| *known = (*known).max(*width));
        }
    }
    all.into_values().collect()
}

/// A key as it is looked up first, or where it is a field first.
fn key_text(of: &Listed<'_>, at: usize) -> String {
    let is_field = |(program, _, keys): &&(&Program, StepId, &[TermId])| {
        keys.get(at).is_some_and(|term| matches!(program.term(*term), Term::Input(_)))
    };
    let lookup = of.lookups.iter().find(is_field).or(of.lookups.first());
    let Some((program, step, keys)) = lookup else { return "not looked up".into() };
    match keys.get(at).map(|term| program.term(*term)) {
        Some(Term::Input(field)) => {
            let layouts = Layouts::of(program);
            let layout = layouts.at(*step);
            // What tells frames by their types asks for what is behind before it is known what that is.
            let is_type = |key: &TermId| *program.term(*key) == Term::Input(eth::TYPE);
            let tells_frames = keys.iter().any(is_type);
            let is_known = |name: &Name| {
                let header = &layout.headers()[name.header];
                !(tells_frames && header.assumed && header.kind.is_network())
            };
            let name = layout.name_of(*field).filter(is_known);
            name.map_or_else(|| field_text(*field), |name| name.text)
        }
        Some(Term::Bound(lookup, index)) => {
            let owner = program.flows_of(*lookup).map(|flows| flows.owner.as_str());
            format!("number {index} of {}", owner.unwrap_or("a route"))
        }
        Some(Term::Const(value)) => value.to_string(),
        Some(_) => "computed".into(),
        None => "not looked up".into(),
    }
}

fn field_text(field: ir::Field) -> String {
    match field.base {
        ir::Base::Data => format!("data[{}+{}]", field.offset, field.width),
        _ => field.to_string(),
    }
}

/// Who owns a table: its element, or the owner of its flows.
fn owner<'a>(of: &'a Listed<'_>, graph: &'a Graph) -> (&'a str, NodeId) {
    let element = of.table.element;
    let name = match of.table.entries {
        Entries::Flows(state) => of.program.state[usize::from(state.0)].owner.as_str(),
        Entries::Prefixes(_) | Entries::Rules(_) => graph.nodes[element].name.as_str(),
    };
    let node = graph.nodes.iter().position(|node| node.name == name);
    (name, node.unwrap_or(element))
}

fn capacity(of: &Listed<'_>) -> Option<u64> {
    let Entries::Flows(state) = of.table.entries else { return None };
    match of.program.state[usize::from(state.0)].kind {
        StateKind::Flows { capacity, .. } => Some(capacity),
        StateKind::Counter | StateKind::Cells { .. } => None,
    }
}

/// An entry: what matches, what it leads to, and where it was written.
struct Entry {
    matches: String,
    action: String,
    place: String,
}

fn address(width: u16, value: u128) -> String {
    match width {
        32 => std::net::Ipv4Addr::from_bits(value as u32).to_string(),
        128 => std::net::Ipv6Addr::from_bits(value).to_string(),
        _ => value.to_string(),
    }
}

/// A number of a row: a next hop, or something small as a port.
fn row_number(value: u128) -> String {
    match value {
        ..0x100_0000 => value.to_string(),
        0x100_0000..0x1_0000_0000 => address(32, value),
        _ => address(128, value),
    }
}

fn numbers(width: u16, set: &IntervalSet) -> String {
    let one = |&(low, high): &(u128, u128)| {
        let free = low ^ high;
        let aligned = free.checked_add(1).is_none_or(u128::is_power_of_two) && low & free == 0;
        if low == high {
            address(width, low)
        } else if aligned && matches!(width, 32 | 128) {
            let length = u32::from(width).saturating_sub(free.count_ones());
            format!("{}/{length}", address(width, low))
        } else {
            format!("{}-{}", address(width, low), address(width, high))
        }
    };
    set.intervals().iter().map(one).collect::<Vec<_>>().join(", ")
}

fn entries(of: &Listed<'_>, sources: &Sources, limit: usize) -> Vec<Entry> {
    match &of.table.entries {
        Entries::Flows(_) => Vec::new(),
        Entries::Prefixes(table) => {
            let entry = |entry: &ir::PrefixEntry| Entry {
                matches: format!("{}/{}", address(table.width(), entry.prefix), entry.length),
                action: entry.row.iter().map(|&n| row_number(n)).collect::<Vec<_>>().join(", "),
                place: entry.span.map_or(String::new(), |span| sources.landmark(span)),
            };
            table.entries().take(limit).map(entry).collect()
        }
        Entries::Rules(rules) => {
            let cube = |cube: &Vec<(u8, IntervalSet)>| {
                let test = |(key, set): &(u8, IntervalSet)| {
                    let width = of.table.widths[usize::from(*key)];
                    format!("key {key} {}", numbers(width, set))
                };
                match cube.is_empty() {
                    true => "all".into(),
                    false => cube.iter().map(test).collect::<Vec<_>>().join(" and "),
                }
            };
            let entry = |rule: &ir::program::ClassifyRule| Entry {
                matches: match rule.span {
                    Some(span) => sources.slice(span).trim().to_string(),
                    None => rule.cubes.iter().map(cube).collect::<Vec<_>>().join(" or "),
                },
                action: format!("arm {}", rule.arm),
                place: rule.span.map_or(String::new(), |span| sources.landmark(span)),
            };
            rules.iter().take(limit).map(entry).collect()
        }
    }
}

/// All tables as text; of each no more than `limit` entries.
pub fn text(
    graph: &Graph,
    sources: &Sources,
    programs: &[Program],
    limit: usize,
    paint: Paint,
) -> String {
    let mut text = String::new();
    for of in &listed(programs) {
        let (name, node) = owner(of, graph);
        let element = &graph.nodes[node];
        let size = match (of.table.len(), capacity(of)) {
            (Some(entries), _) => count(entries, "entry").replace("entrys", "entries"),
            (None, Some(capacity)) => format!("at most {capacity} entries, which packets make"),
            (None, None) => "entries that packets make".into(),
        };
        let head = format!("{name} :: {}, {}: {size}", element.class, of.table.sort());
        let _ =
            writeln!(text, "{}  {}", paint.bold(&head), paint.dim(&sources.landmark(element.span)));
        let kinds: Vec<MatchKind> = of.table.kinds();
        for (at, (width, kind)) in of.widths.iter().zip(kinds).enumerate() {
            let (key, bits) = (key_text(of, at), count(usize::from(*width), "bit"));
            let _ = writeln!(text, "  key {at}: {key}, {bits}, {}", kind.name());
        }
        let _ = writeln!(text, "  looked up in {}", count(of.lookups.len(), "place"));
        for Entry { matches, action, place } in entries(of, sources, limit) {
            let _ = writeln!(text, "    {matches} -> {action}  {}", paint.dim(&place));
        }
        let more = of.table.len().unwrap_or(0).saturating_sub(limit);
        if more > 0 {
            let _ = writeln!(text, "    {}", paint.dim(&format!("… {more} more")));
        }
    }
    text
}

/// The same as JSON, with all entries.
pub fn to_json(graph: &Graph, sources: &Sources, programs: &[Program]) -> Value {
    let tables = listed(programs);
    let table = |of: &Listed<'_>| {
        let (name, node) = owner(of, graph);
        let keys = of.widths.iter().zip(of.table.kinds()).enumerate();
        let key = |(at, (width, kind)): (usize, (&u16, MatchKind))| json!({ "key": key_text(of, at), "width": width, "match": kind.name() });
        let entry =
            |e: Entry| json!({ "matches": e.matches, "action": e.action, "place": e.place });
        json!({
            "owner": name,
            "class": graph.nodes[node].class,
            "kind": of.table.sort(),
            "keys": keys.map(key).collect::<Vec<_>>(),
            "size": of.table.len(),
            "capacity": capacity(of),
            "lookups": of.lookups.len(),
            "entries": entries(of, sources, usize::MAX).into_iter().map(entry).collect::<Vec<_>>(),
        })
    };
    json!({ "tables": tables.iter().map(table).collect::<Vec<_>>() })
}
