//! The rules as JSON: each has to say what a command says.

use serde_json::{Map, Value};

use super::text::{self, Entry};
use crate::draft::Failure;

/// # Errors
/// A rule that differs from the command in its place.
pub(super) fn check(text: &str, entries: &[Entry]) -> Result<(), Failure> {
    let document: Value =
        serde_json::from_str(text).map_err(|why| (why.line(), why.to_string()))?;
    let rules = document.get("rules").and_then(Value::as_array);
    let rules = rules.ok_or_else(|| (0, "it has no 'rules'".to_string()))?;
    if rules.len() != entries.len() {
        let message =
            format!("it has {} rules, and there are {} commands", rules.len(), entries.len());
        return Err((0, message));
    }
    for ((number, rule), entry) in (1usize..).zip(rules).zip(entries) {
        let said = words(rule).ok_or_else(|| (0, format!("rule {number} is none")))?;
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let read = text::entry(entry.line, &said);
        let read = read.map_err(|why| (0, format!("rule {number}: {why}")))?;
        if read != *entry {
            let message = format!("rule {number} is not the command of line {}", entry.line);
            return Err((0, message));
        }
    }
    Ok(())
}

/// A rule as the words of a command.
fn words(rule: &Value) -> Option<Vec<String>> {
    let mut words: Vec<String> = ["flow", "create"].map(String::from).into();
    words.push(rule.get("port")?.as_u64()?.to_string());
    for attribute in ["group", "priority"] {
        words.extend([attribute.to_string(), rule.get(attribute)?.as_u64()?.to_string()]);
    }
    if rule.get("ingress")?.as_bool()? {
        words.push("ingress".into());
    }
    words.push("pattern".into());
    let none = Map::new();
    for item in rule.get("pattern")?.as_array()? {
        words.push(item.get("type")?.as_str()?.into());
        for how in ["spec", "mask"] {
            let fields = item.get(how).map_or(Some(&none), Value::as_object)?;
            for (field, value) in fields {
                words.extend([field.clone(), how.to_string(), value.as_str()?.to_string()]);
            }
        }
        words.push("/".into());
    }
    words.extend(["end".to_string(), "actions".to_string()]);
    for act in rule.get("actions")?.as_array()? {
        words.push(act.get("type")?.as_str()?.into());
        let arguments = act.get("conf").map_or(Some(&none), Value::as_object)?;
        for (name, value) in arguments {
            words.extend([name.clone(), value.as_str()?.to_string()]);
        }
        words.push("/".into());
    }
    words.push("end".into());
    Some(words)
}
