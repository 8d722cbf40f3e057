//! What entries of tables lead to: outputs and the elements behind them, or exits.

use std::collections::BTreeSet;
use std::sync::Arc;

use ir::model::{Block, Reg, StateKind};
use ir::program::{End, Entries, Exit, Step};
use ir::{Cond, Expr, Graph, Model, NodeId, Op, Port, Program};

use super::super::flows;
use super::{Listed, Tabled, is_of_rules, ops};

/// What entries of a table lead to.
#[derive(Debug, Default)]
pub(super) struct Actions {
    /// The arms that rules name, and where they lead to.
    pub(super) arms: Vec<(u32, String)>,
    /// What the numbers of an entry are.
    pub(super) row: Vec<String>,
    /// Where outputs that entries name lead to.
    pub(super) outputs: Vec<(u128, String)>,
    /// What becomes of packets that match no entry; empty if it is not known.
    pub(super) default: String,
}

impl Actions {
    pub(super) fn of(chain: &Tabled<'_>, of: &Listed<'_>) -> Self {
        let element = of.table.element;
        let model = chain.models.get(element);
        let text = |block: &Block, rest: &[&Op]| block_text(chain.graph, element, block, rest);
        match &of.table.entries {
            Entries::Rules(entries) => {
                let found = model.and_then(|model| {
                    find(
                        model,
                        &|op| matches!(op, Op::Match { rules, .. } if is_of_rules(entries, rules)),
                    )
                });
                let Some((Op::Match { arms, otherwise, .. }, rest)) = found else {
                    return Self::default();
                };
                let named: BTreeSet<u32> = entries.iter().map(|rule| rule.arm).collect();
                let arm = |arm: u32| Some((arm, text(arms.get(arm as usize)?, &rest)));
                Self {
                    arms: named.into_iter().filter_map(arm).collect(),
                    default: text(otherwise, &rest),
                    ..Self::default()
                }
            }
            Entries::Prefixes(entries) => {
                let found = model.and_then(|model| {
                    find(
                        model,
                        &|op| matches!(op, Op::Lookup { table, .. } if Arc::ptr_eq(table, entries)),
                    )
                });
                let (Some(model), Some((Op::Lookup { bind, miss, .. }, rest))) = (model, found)
                else {
                    return Self::default();
                };
                let uses: Vec<Use> = bind.iter().map(|reg| Use::of(ops(model), *reg)).collect();
                let column = uses.iter().position(|is| *is == Use::Output);
                let of_output =
                    |at: usize| entries.entries().filter_map(move |e| e.row.get(at).copied());
                let outputs: BTreeSet<u128> = column.into_iter().flat_map(of_output).collect();
                let to = |output: u128| (output, leads_to(chain.graph, element, output));
                Self {
                    row: uses.iter().map(Use::text).collect(),
                    outputs: outputs.into_iter().map(to).collect(),
                    default: text(miss, &rest),
                    ..Self::default()
                }
            }
            Entries::Flows(_) => {
                let Some(state) = of.state() else { return Self::default() };
                let kind = flows::Table::of(state.name, &state.kind);
                let count = match &state.kind {
                    StateKind::Flows { widths, .. } => widths.len(),
                    StateKind::Counter | StateKind::Cells { .. } => 0,
                };
                let value = |at: usize| match kind.value(at as u8) {
                    Some(name) => name.to_string(),
                    None => format!("value {}", at + 1),
                };
                Self {
                    row: (0..count).map(value).collect(),
                    default: misses(chain.graph, of),
                    ..Self::default()
                }
            }
        }
    }
}

/// What an element does with a number of a row.
#[derive(PartialEq, Eq)]
enum Use {
    /// Packets leave by the output that it is.
    Output,
    /// It is written to a field; with `true`, only where it is not 0.
    Field(ir::Field, bool),
    Other,
}

impl Use {
    fn of<'a>(mut ops: impl Iterator<Item = &'a Op>, reg: Reg) -> Self {
        let set = |op: &Op| match op {
            Op::Set(field, Expr::Reg(from)) if *from == reg => Some(*field),
            _ => None,
        };
        let found = ops.find_map(|op| match op {
            Op::Emit(Expr::Reg(from)) if *from == reg => Some(Self::Output),
            Op::If(cond, then, _) if is_not_zero(cond, reg) => {
                then.iter().find_map(set).map(|field| Self::Field(field, true))
            }
            op => set(op).map(|field| Self::Field(field, false)),
        });
        found.unwrap_or(Self::Other)
    }

    fn text(&self) -> String {
        match self {
            Self::Output => "output".into(),
            Self::Field(field, false) => format!("new {field}"),
            Self::Field(field, true) => format!("new {field} unless 0"),
            Self::Other => "a number".into(),
        }
    }
}

/// Whether a condition is that a number is not 0.
fn is_not_zero(cond: &Cond, reg: Reg) -> bool {
    let Cond::Not(is) = cond else { return false };
    matches!(&**is, Cond::Test(Expr::Reg(of), set) if *of == reg && set.as_single() == Some(0))
}

/// The input ports that an output leads to, as they stand in a configuration.
fn leads_to(graph: &Graph, node: NodeId, output: u128) -> String {
    let port = usize::try_from(output).unwrap_or(usize::MAX);
    let all = graph.successors(Port { node, port });
    let names: Vec<String> = all.map(|to| port_name(graph, to)).collect();
    if names.is_empty() { "drop no-such-port".into() } else { names.join(", ") }
}

fn port_name(graph: &Graph, to: Port) -> String {
    let name = graph.nodes.get(to.node).map_or("?", |node| node.name.as_str());
    match to.port {
        0 => name.to_string(),
        port => format!("[{port}] {name}"),
    }
}

/// An operation of a model, with what comes behind it.
fn find<'a>(model: &'a Model, is: &dyn Fn(&Op) -> bool) -> Option<(&'a Op, Vec<&'a Op>)> {
    fn within<'a>(
        block: &'a Block,
        behind: &[&'a Op],
        is: &dyn Fn(&Op) -> bool,
    ) -> Option<(&'a Op, Vec<&'a Op>)> {
        block.iter().enumerate().find_map(|(at, op)| {
            let rest: Vec<&Op> = block[at + 1..].iter().chain(behind.iter().copied()).collect();
            match is(op) {
                true => Some((op, rest)),
                false => op.blocks().find_map(|block| within(block, &rest, is)),
            }
        })
    }
    model.inputs.iter().find_map(|block| within(block, &[], is))
}

/// Whether no packet gets behind an operation.
fn ends(op: &Op) -> bool {
    match op {
        Op::Emit(_) | Op::Drop(_) | Op::Opaque(_) => true,
        Op::If(..) | Op::Match { .. } => op.blocks().all(|block| block.iter().any(ends)),
        _ => false,
    }
}

/// How packets leave an element by a block of its model, and what comes behind it.
fn block_text(graph: &Graph, node: NodeId, block: &Block, rest: &[&Op]) -> String {
    let mut all = Vec::new();
    let mut ops = block.iter().chain(rest.iter().copied());
    leave(graph, node, &mut ops, &mut all);
    all.join(", or ")
}

/// Adds how packets leave by some operations, of which one comes behind the other.
fn leave(graph: &Graph, node: NodeId, ops: &mut dyn Iterator<Item = &Op>, all: &mut Vec<String>) {
    for op in ops {
        let text = match op {
            Op::Emit(Expr::Const(output)) => {
                Some(format!("output {output} -> {}", leads_to(graph, node, *output)))
            }
            Op::Emit(_) => Some("an output that is computed".into()),
            Op::Drop(reason) => Some(format!("drop {}", reason.0)),
            Op::Opaque(why) => Some(format!("slow path: {why}")),
            op => {
                op.blocks().for_each(|block| leave(graph, node, &mut block.iter(), all));
                None
            }
        };
        all.extend(text.filter(|text| !all.contains(text)));
        if ends(op) {
            return;
        }
    }
}

/// Where packets go of which no entry is known.
fn misses(graph: &Graph, of: &Listed<'_>) -> String {
    let name = |node: NodeId| graph.nodes.get(node).map_or("?", |node| node.name.as_str());
    let end = |program: &Program, exit: &Exit| match exit.end {
        End::Push { to, native: true } => format!("slow path of {}", name(to.node)),
        End::Push { to, native: false } => format!("-> {}", port_name(graph, to)),
        End::Drop { reason, .. } => format!("drop {}", reason.0),
        End::Handoff { .. } => format!("slow path of {}", name(program.entry.node)),
    };
    let mut all: Vec<String> = Vec::new();
    for site in &of.sites {
        let Step::Lookup { miss, .. } = site.program.step(site.step) else { continue };
        let text = match site.program.step(*miss) {
            Step::Exit(exit) => end(site.program, exit),
            Step::Test { element, .. }
            | Step::Switch { element, .. }
            | Step::Classify { element, .. } => format!("goes on at {}", name(*element)),
            Step::Lookup { lookup, .. } => {
                let lookup = &site.program.lookups[usize::from(lookup.0)];
                format!("goes on at {}", name(lookup.element))
            }
        };
        if !all.contains(&text) {
            all.push(text);
        }
    }
    all.join(", or ")
}
