//! Entries of tables: as JSON in the terms of P4Runtime, and as commands for `simple_switch_CLI`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::pipeline::{Call, Entry, Kind, Match, Pipeline, Table};
use crate::Device;
use crate::number::ones;

/// The table of ports that frames from the cores leave by.
fn ports(device: &Device<'_>) -> std::collections::BTreeSet<u32> {
    device.egress.values().copied().collect()
}

/// The lowest priority of entries; greater ones come first.
fn priority(table: &Table, index: usize) -> usize {
    table.entries.len() - index
}

fn hex(value: u128) -> String {
    format!("{value:#x}")
}

fn action(pipeline: &Pipeline, call: &Call) -> Value {
    let of = &pipeline.actions[call.action];
    let params = of.parameters.iter().zip(&call.arguments);
    let params: Vec<Value> =
        params.map(|((name, _), value)| json!({ "name": name, "value": hex(*value) })).collect();
    json!({ "name": format!("Ingress.{}", of.name), "params": params })
}

fn entry(pipeline: &Pipeline, table: &Table, index: usize, entry: &Entry) -> Value {
    let mut all = Vec::new();
    for (key, of) in table.keys.iter().zip(&entry.matches) {
        let name = &key.text;
        all.push(match *of {
            // What matches whatever comes is left out.
            Match::Any => continue,
            Match::Exact(value) if key.kind == Kind::Exact => {
                json!({ "field": name, "exact": { "value": hex(value) } })
            }
            Match::Exact(value) => {
                json!({ "field": name, "lpm": { "value": hex(value), "prefix_len": key.width } })
            }
            Match::Prefix(_, 0) => continue,
            Match::Prefix(value, length) => {
                json!({ "field": name, "lpm": { "value": hex(value), "prefix_len": length } })
            }
            Match::Masked(value, mask) => {
                json!({ "field": name, "ternary": { "value": hex(value), "mask": hex(mask) } })
            }
            Match::Range(low, high) => {
                json!({ "field": name, "range": { "low": hex(low), "high": hex(high) } })
            }
        });
    }
    let mut of = json!({ "table": format!("Ingress.{}", table.name), "match": all });
    of["action"] = action(pipeline, &entry.call);
    if table.has_priorities() {
        of["priority"] = json!(priority(table, index));
    }
    of["origin"] = json!(entry.origin);
    of
}

/// One entry a line.
pub(super) fn json(pipeline: &Pipeline, device: &Device<'_>) -> String {
    let mut all: Vec<Value> = Vec::new();
    for port in ports(device) {
        all.push(json!({
            "table": "Ingress.ports",
            "match": [{ "field": "hdr.tag.vid", "exact": { "value": hex(port.into()) } }],
            "action": { "name": "Ingress.back", "params": [{ "name": "port", "value": hex(port.into()) }] },
        }));
    }
    for table in &pipeline.tables {
        let entries = table.entries.iter().enumerate();
        all.extend(entries.map(|(index, of)| entry(pipeline, table, index, of)));
    }
    let lines: Vec<String> = all.iter().map(Value::to_string).collect();
    format!("{{\"entries\":[\n{}\n]}}\n", lines.join(",\n"))
}

fn matched(key: &super::pipeline::Key, of: Match) -> String {
    let all = ones(key.width.into());
    match (of, key.kind) {
        (Match::Any, Kind::Range) => format!("0x0->{all:#x}"),
        (Match::Any, Kind::Lpm) => "0x0/0".into(),
        (Match::Any, _) => "0x0&&&0x0".into(),
        (Match::Exact(value), _) => hex(value),
        (Match::Prefix(value, length), _) => format!("{value:#x}/{length}"),
        (Match::Masked(value, mask), _) => format!("{value:#x}&&&{mask:#x}"),
        (Match::Range(low, high), _) => format!("{low:#x}->{high:#x}"),
    }
}

/// The commands. Of priorities, lower ones come first there.
pub(super) fn commands(pipeline: &Pipeline, device: &Device<'_>) -> String {
    let mut text = String::from("# simple_switch_CLI < commands.txt\n");
    for port in ports(device) {
        let _ = writeln!(text, "table_add Ingress.ports Ingress.back {port:#x} => {port:#x}");
    }
    for table in &pipeline.tables {
        let mut said = "";
        for (index, of) in table.entries.iter().enumerate() {
            if of.origin != said {
                said = &of.origin;
                let _ = writeln!(text, "# {said}");
            }
            let name = &pipeline.actions[of.call.action].name;
            let keys: Vec<String> =
                table.keys.iter().zip(&of.matches).map(|(key, of)| matched(key, *of)).collect();
            let arguments: Vec<String> =
                of.call.arguments.iter().map(|value| hex(*value)).collect();
            let _ = write!(
                text,
                "table_add Ingress.{} Ingress.{name} {} => {}",
                table.name,
                keys.join(" "),
                arguments.join(" ")
            );
            if table.has_priorities() {
                let _ = write!(text, " {}", index + 1);
            }
            text.push('\n');
        }
    }
    text
}
