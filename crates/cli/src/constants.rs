//! Constants that the command line sets by name, such as `metron.over=0.8`.

use ir::nearest;
use serde_json::Value;

/// Sets the value at a path of names.
fn set(all: &mut Value, option: &str, key: &str, text: &str) -> Result<(), String> {
    let mut at = all;
    for name in key.split('.') {
        let names: Vec<String> =
            at.as_object().map(|of| of.keys().cloned().collect()).unwrap_or_default();
        let near = nearest(name, names.iter().map(String::as_str));
        let help = near.map_or(String::new(), |near| format!(": did you mean '{near}'?"));
        at = at
            .get_mut(name)
            .ok_or_else(|| format!("{option} {key}: there is no '{name}'{help}"))?;
    }
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.into()));
    let is_same = at.is_object() == value.is_object() && at.is_number() == value.is_number();
    if !is_same {
        return Err(format!("{option} {key}: '{text}' cannot replace {at}"));
    }
    *at = value;
    Ok(())
}

/// Sets all of `KEY=VALUE`, which an option of this name gives.
///
/// # Errors
/// There is no such name, the value is none for it, or there is no `=`.
pub(crate) fn set_all(all: &mut Value, option: &str, pairs: &[String]) -> Result<(), String> {
    pairs.iter().try_for_each(|pair| {
        let (key, text) =
            pair.split_once('=').ok_or_else(|| format!("{option} {pair}: KEY=VALUE"))?;
        set(all, option, key, text)
    })
}

/// Values with their names, line by line.
pub(crate) fn list(of: &Value, name: &str, text: &mut String) {
    match of {
        Value::Object(all) => {
            for (key, value) in all {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                list(value, &name, text);
            }
        }
        value => text.push_str(&format!("{name}={value}\n")),
    }
}

/// Constants of scaling policies, some of them set.
///
/// # Errors
/// As [`set_all`].
pub(crate) fn policies(
    usual: scale::Settings,
    option: &str,
    pairs: &[String],
) -> Result<scale::Settings, String> {
    let mut value = serde_json::to_value(usual).map_err(|why| why.to_string())?;
    set_all(&mut value, option, pairs)?;
    serde_json::from_value(value).map_err(|why| format!("{option}: {why}"))
}
