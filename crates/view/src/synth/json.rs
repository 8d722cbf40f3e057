//! A report for programs.

use compiler::explain::provenance::{Condition, ConditionSubject, Conditions, Figures};
use ir::program::Barrier;
use ir::{NodeId, Span};
use serde_json::{Value, json};

use super::text::destination;
use super::{Became, Class, Egress, Report, Words, in_order, one_rule};

/// Everything.
pub fn to_json(report: &Report<'_>) -> Value {
    let notes: Vec<Value> = report
        .synthesis
        .notes
        .iter()
        .map(|n| json!({ "element": element(report, n.element), "message": n.message }))
        .collect();
    let programs: Vec<Value> = report.programs.iter().map(|b| program(report, b)).collect();
    json!({
        "file": report.name,
        "elements": report.graph.nodes.len(),
        "programs": programs,
        "notes": notes,
        "elaboration_ns": report.cost.elaboration.as_nanos() as u64,
        "synthesis_ns": report.cost.synthesis.as_nanos() as u64,
        "proof_ns": report.cost.proof.as_nanos() as u64,
        "description_ns": report.cost.description.as_nanos() as u64,
        "programs_proven": report.cost.proven,
        "peak_memory_bytes": report.cost.peak,
    })
}

fn place(report: &Report<'_>, span: Span) -> Value {
    let at = report.sources.line_column(span.file, span.start);
    json!({ "file": report.sources.name(span.file), "line": at.line, "column": at.column })
}

fn element(report: &Report<'_>, node: NodeId) -> Value {
    match report.graph.nodes.get(node) {
        Some(known) => json!({
            "name": known.name, "class": known.class, "place": place(report, known.span),
        }),
        None => Value::Null,
    }
}

fn elements(report: &Report<'_>, all: &[NodeId]) -> Vec<Value> {
    all.iter().map(|n| element(report, *n)).collect()
}

fn figures(figures: Figures) -> Value {
    json!({
        "elements": figures.elements,
        "decisions": figures.decisions,
        "reads": figures.reads,
        "writes": figures.writes,
        "checksums_verified": figures.verified,
        "checksums_updated": figures.updated,
        "flow_lookups": figures.flows,
        "table_lookups": figures.tables,
        "headers_moved": figures.moves,
    })
}

fn program(report: &Report<'_>, became: &Became<'_>) -> Value {
    let program = became.program;
    let classes: Vec<Value> = became.classes.iter().map(|c| class(report, became, c)).collect();
    json!({
        "entry": { "element": element(report, program.entry.node), "port": program.entry.port },
        "fed_by": elements(report, &became.feeders),
        "steps": program.steps.len(),
        "terms": program.terms.len(),
        "rules": became.rules(),
        "flow_lookups": program.lookups.len(),
        "bytes": became.size,
        "classes": classes,
        "text": program.text(report.graph).to_string(),
    })
}

fn class(report: &Report<'_>, became: &Became<'_>, class: &Class<'_>) -> Value {
    let words = report.words(became.program, class);
    let either: Option<Vec<Value>> = class.alternatives.is_some().then(|| {
        let either = class.either(words);
        either.iter().map(|(known, words)| json!(conditions(report, words, known))).collect()
    });
    let operations: Vec<Value> = class
        .done(&words)
        .into_iter()
        .map(|done| {
            let field = (!done.name.is_empty()).then_some(&done.name);
            json!({
                "field": field, "what": done.what, "elements": elements(report, &done.elements),
            })
        })
        .collect();
    let (kind, at, reason) = match class.egress {
        Egress::Leaves(node) => ("leaves", node, None),
        Egress::GoesOn(node) => ("goes-on", node, None),
        Egress::HandedOver(node) => ("handed-over", node, None),
        Egress::Dropped(node, reason) => ("dropped", node, Some(reason)),
    };
    let ports = |p: &ir::Port| json!({ "element": report.element(p.node), "port": p.port });
    json!({
        "class": class.number,
        "step": format!("s{}", class.step.0),
        "paths": u64::try_from(class.paths).ok(),
        "destination": destination(report, class),
        "egress": { "kind": kind, "element": element(report, at), "reason": reason },
        "barrier": class.exit.barrier.map(|why| why.to_string()),
        "barrier_code": class.exit.barrier.map(Barrier::code),
        "conditions": conditions(report, &words, &class.known),
        "either": either,
        "operations": operations,
        "visited": class.exit.visited.iter().map(ports).collect::<Vec<_>>(),
        "chain": figures(class.chain),
        "program": figures(class.figures),
    })
}

fn conditions(report: &Report<'_>, words: &Words<'_>, known: &Conditions) -> Vec<Value> {
    let said = |(asked, condition): (&ConditionSubject, &Condition)| {
        let mut value = json!({
            "condition": words.condition(asked, condition),
            "elements": elements(report, &condition.elements),
        });
        if let ConditionSubject::Rules(node) = asked {
            // First and last of each run, counted from 0.
            let runs = condition.set.intervals().iter();
            value["rules_of"] = json!(report.element(*node));
            value["rules"] = runs.map(|(low, high)| json!([*low as u64, *high as u64])).collect();
            value["unmatched"] = json!(condition.unmatched);
        }
        if let Some(span) = one_rule(words, asked, condition) {
            value["place"] = place(report, span);
        }
        value
    };
    in_order(known).into_iter().map(said).collect()
}
