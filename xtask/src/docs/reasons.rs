//! The reference of drop reasons, from the constants in the code and their doc comments.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::Result;
use crate::command::root;

/// Crates whose packets are counted by reason. What the compiler names, elements or the data plane define.
const CRATES: [&str; 2] = ["crates/dataplane/src", "crates/elements/src"];

/// A reason's meaning, and who counts packets under it.
#[derive(Default)]
struct Entry {
    meaning: String,
    by: Vec<String>,
}

/// The page.
pub(super) fn page() -> Result<String> {
    let mut entries = BTreeMap::new();
    for folder in CRATES {
        visit(&root().join(folder), &mut |path, text| collect(path, text, &mut entries))?;
    }
    let undocumented: Vec<&str> = entries
        .iter()
        .filter(|(_, e)| e.meaning.is_empty())
        .map(|(name, _)| name.as_str())
        .collect();
    if !undocumented.is_empty() {
        return Err(format!("reasons without a doc comment: {}", undocumented.join(", ")).into());
    }
    let mut text = String::from(
        "# Drop reasons\n\nEach packet that ends in a chain is counted by element and reason. `catena run` prints the counts at the \
         end, `catena ctl counters` while a chain runs. A packet that an element sends to an error output is counted \
         by reason, too, but is not lost. This page is generated from the code.\n\n\
         | reason | meaning | counted by |\n|---|---|---|\n",
    );
    for (name, Entry { meaning, mut by }) in entries {
        by.sort();
        by.dedup();
        let by: Vec<String> = by.iter().map(|by| format!("`{by}`")).collect();
        let _ =
            writeln!(text, "| `{name}` | {} | {} |", meaning.replace('|', "\\|"), by.join(", "));
    }
    Ok(text)
}

/// Calls `each` with every Rust file below a folder, in order.
fn visit(folder: &Path, each: &mut impl FnMut(&Path, &str)) -> Result {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            visit(&path, each)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            each(&path, &fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// Adds the reasons that a file defines: `const NAME: Reason = Reason("name");` with a doc comment.
fn collect(path: &Path, text: &str, entries: &mut BTreeMap<String, Entry>) {
    // Tests stand last in a file.
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    for (at, _) in text.match_indices(": Reason =") {
        let Some((name, _)) = text[at..]
            .split_once("Reason(\"")
            .filter(|(before, _)| !before.contains(';'))
            .and_then(|(_, rest)| rest.split_once('"'))
        else {
            continue;
        };
        let entry = entries.entry(name.to_owned()).or_default();
        let start = text[..at].rfind('\n').unwrap_or(0);
        let above = text[..start].lines().rev().map_while(|l| l.trim_start().strip_prefix("///"));
        let mut meaning: Vec<&str> = above.map(str::trim).collect();
        meaning.reverse();
        if entry.meaning.is_empty() {
            entry.meaning = meaning.join(" ");
        }
        entry.by.extend(counters(path, text));
    }
}

/// The elements of a file, by the first line of their manuals, or the file where there are none or many.
fn counters(path: &Path, text: &str) -> Vec<String> {
    let manuals =
        text.split("element! {").skip(1).filter_map(|rest| rest.trim_start().strip_prefix("/// "));
    let is_name = |c: char| c.is_alphanumeric();
    let names: Vec<String> = manuals
        .map(|line| line.chars().take_while(|c| is_name(*c)).collect::<String>())
        .filter(|name| name.starts_with(char::is_uppercase))
        .collect();
    if (1..=4).contains(&names.len()) {
        return names;
    }
    let path = path.strip_prefix(root().join("crates")).unwrap_or(path);
    vec![path.with_extension("").to_string_lossy().replace("/src/", "/")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_a_meaning_and_those_who_count_it() {
        let text = "element! {\n    /// Sink(N) -- drops\n    Sink {}\n}\n\
                    /// It is\n/// too late.\npub(crate) const LATE: Reason = Reason(\"late\");\n\
                    #[cfg(test)]\nmod tests { const X: Reason = Reason(\"x\"); }";
        let mut entries = BTreeMap::new();
        collect(Path::new("sink.rs"), text, &mut entries);
        let found: Vec<_> =
            entries.iter().map(|(n, e)| (n.as_str(), e.meaning.as_str(), &e.by)).collect();
        assert_eq!(found, [("late", "It is too late.", &vec!["Sink".to_owned()])]);
    }

    #[test]
    fn every_reason_has_a_meaning() {
        assert!(page().is_ok_and(|page| page.contains("| `no-route` | ")));
    }
}
