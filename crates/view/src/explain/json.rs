//! A story for programs.

use dataplane::trace::{Decision, Fate, Seen};
use ir::Span;
use serde_json::{Value, json};

use super::Story;
use super::anatomy::describe;
use super::difference::{Change, changes};
use super::synthesised;

/// Everything: what was sent in, and every step in the order in which they happened.
pub fn to_json(story: &Story<'_>) -> Value {
    let packets: Vec<Value> = story
        .packets
        .iter()
        .map(|(packet, into)| json!({ "packet": packet, "into": into }))
        .collect();
    let place = |span: Span| {
        let at = story.sources.line_column(span.file, span.start);
        json!({ "file": story.sources.name(span.file), "line": at.line, "column": at.column })
    };
    let steps = story.trace.steps.iter().enumerate().map(|(id, step)| {
        let node = &story.graph.nodes[step.node];
        let outcomes: Vec<Value> = step
            .outcomes
            .iter()
            .map(|outcome| {
                let mut value = match &outcome.fate {
                    Fate::Left(port) => {
                        let to = story.after(step, *port);
                        json!({
                            "fate": "left", "port": port,
                            "to": to.map(|p| &story.graph.nodes[p.node].name), "to_port": to.map(|p| p.port),
                        })
                    }
                    Fate::Dropped(reason) => json!({ "fate": "dropped", "reason": reason.0 }),
                    Fate::Sent(to) => json!({ "fate": "sent", "device": to }),
                    Fate::Kept => json!({ "fate": "kept" }),
                    Fate::UsedUp => json!({ "fate": "ended" }),
                };
                if let Some(packet) = &outcome.packet {
                    value["packet"] = seen(packet);
                    if let Some(before) = &step.before {
                        value["changes"] = changes(before, packet).iter().map(change).collect();
                    }
                }
                value["made_here"] = json!(outcome.made);
                value["next"] = json!(outcome.next);
                value
            })
            .collect();
        json!({
            "step": id,
            "cause": step.phase.checked_sub(1).filter(|p| *p < story.packets.len()),
            "element": node.name,
            "class": node.class,
            "config": node.config,
            "place": place(node.span),
            "input": step.input,
            "from": step.from.map(|(step, outcome)| json!({ "step": step, "outcome": outcome })),
            "packet": step.before.as_ref().map(seen),
            "decisions": step.decisions.iter().map(|d| decision(d, &place)).collect::<Vec<_>>(),
            "noted": step.notes.iter().map(|r| r.0).collect::<Vec<_>>(),
            "messages": step.messages,
            "synthesised": synthesised::to_json(story, id),
            "outcomes": outcomes,
        })
    });
    json!({ "packets": packets, "steps": steps.collect::<Vec<_>>(), "messages": story.trace.messages })
}

fn seen(packet: &Seen) -> Value {
    let hex: String = packet.data().iter().map(|b| format!("{b:02x}")).collect();
    json!({ "bytes": hex, "description": describe(packet) })
}

/// Numbers of more than 53 bits as text: not every reader of JSON has them.
fn number(value: u128) -> Value {
    match u64::try_from(value) {
        Ok(value) if value < 1 << 53 => json!(value),
        _ => json!(value.to_string()),
    }
}

fn decision(decision: &Decision, place: &impl Fn(Span) -> Value) -> Value {
    let numbers = |all: &[u128]| all.iter().map(|n| number(*n)).collect::<Vec<_>>();
    match decision {
        Decision::Matched(Some((text, span))) => {
            json!({ "decision": "matched", "rule": text, "place": span.map(place) })
        }
        Decision::Matched(None) => json!({ "decision": "matched", "rule": null }),
        Decision::LookedUp { key, entry, .. } => {
            let entry = entry.as_ref().map(|(prefix, length, row)| {
                json!({ "prefix": number(*prefix), "length": length, "yields": numbers(row) })
            });
            json!({ "decision": "looked-up", "key": number(*key), "entry": entry })
        }
        Decision::KnownFlow(key, reverse) => {
            json!({ "decision": "known-flow", "key": numbers(key), "reverse": reverse })
        }
        Decision::UnknownFlow(key) => json!({ "decision": "unknown-flow", "key": numbers(key) }),
        Decision::NewFlow([forward, reverse]) => json!({
            "decision": "new-flow", "key": numbers(forward), "reverse_key": numbers(reverse),
        }),
        Decision::FullTable => json!({ "decision": "full-table" }),
        Decision::Opaque(why) => json!({ "decision": "opaque", "why": why }),
    }
}

fn change(change: &Change) -> Value {
    match change {
        Change::Field { name, before, after } => {
            json!({ "change": "field", "name": name, "before": before, "after": after })
        }
        Change::Removed { bytes, front, what } => {
            json!({ "change": "removed", "bytes": bytes, "front": front, "headers": what })
        }
        Change::Added { bytes, front, what } => {
            json!({ "change": "added", "bytes": bytes, "front": front, "headers": what })
        }
        Change::Replaced { before, after } => {
            json!({ "change": "replaced", "before": before, "after": after })
        }
        Change::Mark { header, before, after } => {
            json!({ "change": "mark", "header": header, "before": before, "after": after })
        }
    }
}
