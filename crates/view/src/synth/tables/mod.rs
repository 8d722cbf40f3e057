//! The tables that a chain's packets are looked up in, each once: who owns it, its keys, its entries and what they
//! lead to.

mod actions;
mod keys;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use ir::layout::Layouts;
use ir::model::StateKind;
use ir::program::{Entries, MatchKind, StateOf, Step, StepId, Table};
use ir::{Graph, IntervalSet, Model, NodeId, Op, Program, Sources};
use serde_json::{Value, json};

use actions::Actions;
use keys::{Key, Site};

use crate::paint::{Paint, count};

/// A table and where it is looked up.
struct Listed<'a> {
    program: &'a Program,
    table: &'a Table,
    /// The steps that look something up in it.
    sites: Vec<Site<'a>>,
}

impl Listed<'_> {
    /// The state that its flows are.
    fn state(&self) -> Option<&StateOf> {
        match self.table.entries {
            Entries::Flows(state) => self.program.state.get(usize::from(state.0)),
            Entries::Prefixes(_) | Entries::Rules(_) => None,
        }
    }
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
fn listed<'a>(programs: &'a [Program], layouts: &'a [Layouts]) -> Vec<Listed<'a>> {
    let mut all: BTreeMap<Identity<'_>, Listed<'_>> = BTreeMap::new();
    for (program, layouts) in programs.iter().zip(layouts) {
        for (id, table) in program.tables.iter().enumerate() {
            let steps = (0..).map(StepId).zip(&program.steps);
            let sites = steps.filter_map(|(at, step)| {
                let (element, keys) = match step {
                    Step::Classify { table: Some(of), keys, element, .. }
                        if usize::from(of.0) == id =>
                    {
                        (*element, &keys[..])
                    }
                    Step::Lookup { lookup, .. } => {
                        let lookup = &program.lookups[usize::from(lookup.0)];
                        if usize::from(lookup.table.0) != id {
                            return None;
                        }
                        (lookup.element, &lookup.key[..])
                    }
                    _ => return None,
                };
                Some(Site { program, layouts, step: at, element, keys })
            });
            let new = || Listed { program, table, sites: Vec::new() };
            all.entry(Identity::of(program, table)).or_insert_with(new).sites.extend(sites);
        }
    }
    all.into_values().collect()
}

/// All operations of a model, those within others too.
fn ops(model: &Model) -> impl Iterator<Item = &Op> {
    let mut waiting: Vec<&Op> = model.inputs.iter().rev().flat_map(|b| b.iter().rev()).collect();
    std::iter::from_fn(move || {
        let op = waiting.pop()?;
        let within: Vec<&Op> = op.blocks().flatten().collect();
        waiting.extend(within.into_iter().rev());
        Some(op)
    })
}

/// Whether entries were made of these rules of a model.
fn is_of_rules(entries: &[ir::program::ClassifyRule], rules: &[ir::model::Rule]) -> bool {
    let all = || {
        entries
            .iter()
            .zip(rules)
            .all(|(entry, rule)| (entry.span, entry.arm) == (rule.span, rule.arm))
    };
    entries.len() == rules.len() && all()
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
    let name = match of.state() {
        Some(state) => state.owner.as_str(),
        None => graph.nodes[element].name.as_str(),
    };
    let node = graph.nodes.iter().position(|node| node.name == name);
    (name, node.unwrap_or(element))
}

fn capacity(of: &Listed<'_>) -> Option<u64> {
    match of.state()?.kind {
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

/// A chain whose tables are listed.
#[derive(Clone, Copy)]
pub struct Tabled<'a> {
    /// The chain.
    pub graph: &'a Graph,
    /// What its elements mean.
    pub models: &'a [Model],
    /// The programs that [`compiler::synthesize_tables`] makes of them.
    pub programs: &'a [Program],
    /// Where it was written.
    pub sources: &'a Sources,
}

impl Tabled<'_> {
    fn layouts(&self) -> Vec<Layouts> {
        self.programs.iter().map(Layouts::of).collect()
    }

    fn keys(&self, of: &Listed<'_>) -> Vec<(Key, MatchKind)> {
        keys::keys(of, self.models).into_iter().zip(of.table.kinds()).collect()
    }

    /// All tables as text; of each no more than `limit` entries.
    pub fn text(&self, limit: usize, paint: Paint) -> String {
        let Self { graph, sources, .. } = self;
        let mut text = String::new();
        let layouts = self.layouts();
        for of in &listed(self.programs, &layouts) {
            let (name, node) = owner(of, graph);
            let element = &graph.nodes[node];
            let size = match (of.table.len(), capacity(of)) {
                (Some(entries), _) => count(entries, "entry").replace("entrys", "entries"),
                (None, Some(capacity)) => format!("at most {capacity} entries, which packets make"),
                (None, None) => "entries that packets make".into(),
            };
            let head = format!("{name} :: {}, {}: {size}", element.class, of.table.sort());
            let place = sources.landmark(element.span);
            let _ = writeln!(text, "{}  {}", paint.bold(&head), paint.dim(&place));
            for (at, (Key { name, width }, kind)) in self.keys(of).into_iter().enumerate() {
                let bits = count(width.into(), "bit");
                let _ = writeln!(text, "  key {at}: {name}, {bits}, {}", kind.name());
            }
            let _ = writeln!(text, "  looked up in {}", count(of.sites.len(), "place"));
            let actions = Actions::of(self, of);
            if !actions.row.is_empty() {
                let _ = writeln!(text, "  an entry has: {}", actions.row.join(", "));
            }
            for (arm, action) in &actions.arms {
                let _ = writeln!(text, "  arm {arm}: {action}");
            }
            for (output, to) in &actions.outputs {
                let _ = writeln!(text, "  output {output}: {to}");
            }
            if !actions.default.is_empty() {
                let _ = writeln!(text, "  default: {}", actions.default);
            }
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
    pub fn to_json(&self) -> Value {
        let Self { graph, sources, .. } = self;
        let layouts = self.layouts();
        let table = |of: &Listed<'_>| {
            let (name, node) = owner(of, graph);
            let key = |(key, kind): (Key, MatchKind)| json!({ "key": key.name, "width": key.width, "match": kind.name() });
            let entry =
                |e: Entry| json!({ "matches": e.matches, "action": e.action, "place": e.place });
            let actions = Actions::of(self, of);
            let arm = |(arm, action): &(u32, String)| json!({ "arm": arm, "action": action });
            let output =
                |(output, to): &(u128, String)| json!({ "output": *output as u64, "to": to });
            json!({
                "owner": name,
                "class": graph.nodes[node].class,
                "kind": of.table.sort(),
                "keys": self.keys(of).into_iter().map(key).collect::<Vec<_>>(),
                "size": of.table.len(),
                "capacity": capacity(of),
                "lookups": of.sites.len(),
                "row": actions.row,
                "arms": actions.arms.iter().map(arm).collect::<Vec<_>>(),
                "outputs": actions.outputs.iter().map(output).collect::<Vec<_>>(),
                "default": actions.default,
                "entries": entries(of, sources, usize::MAX).into_iter().map(entry).collect::<Vec<_>>(),
            })
        };
        let tables = listed(self.programs, &layouts);
        json!({ "tables": tables.iter().map(table).collect::<Vec<_>>() })
    }
}
