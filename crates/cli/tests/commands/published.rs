//! The chains that papers are measured with, as examples: they run, are synthesised and proven, and are drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::program::Folder;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The examples, by name.
fn chains() -> Vec<String> {
    let folder = fs::read_dir(root().join("examples/published")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".click")?.to_string())).collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

fn path(chain: &str) -> String {
    root().join(format!("examples/published/{chain}.click")).to_string_lossy().into_owned()
}

/// A row of the table: what a chain becomes.
fn row(chain: &str, folder: &Folder) -> String {
    let json: Value =
        serde_json::from_str(folder.run(["synth", &path(chain), "--json"]).well()).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let (mut counts, mut why) = (BTreeMap::new(), BTreeMap::<String, BTreeSet<String>>::new());
    let programs = json["programs"].as_array().unwrap();
    for class in programs.iter().flat_map(|program| program["classes"].as_array().unwrap()) {
        let mut kind = text(&class["egress"]["kind"]);
        if kind == "handed-over" || kind == "goes-on" {
            kind = "left".to_string();
            let element = text(&class["egress"]["element"]["class"]);
            why.entry(text(&class["barrier"])).or_default().insert(element);
        }
        *counts.entry(kind).or_insert(0) += 1;
    }
    let count = |kind| counts.get(kind).copied().unwrap_or(0);
    let why = why.into_iter().map(|(why, elements)| {
        format!("{why}: {}", elements.into_iter().collect::<Vec<_>>().join(", "))
    });
    let why: Vec<String> = why.collect();
    format!(
        "| [{chain}](../examples/published/{chain}.click) | {} | {} | {} | {} | {} |",
        programs.len(),
        count("leaves"),
        count("dropped"),
        count("left"),
        if why.is_empty() { "nothing".to_string() } else { why.join("; ") },
    )
}

#[test]
fn the_table_says_what_published_chains_become() {
    let (folder, page) = (Folder::new(), root().join("docs/published-chains.md"));
    let rows: Vec<String> = chains().iter().map(|chain| row(chain, &folder)).collect();
    let text = fs::read_to_string(&page).unwrap();
    let is_row = |line: &&str| line.starts_with("| [");
    if std::env::var_os("BLESS").is_some() {
        let head = text.lines().take_while(|line| !is_row(line));
        let tail = text.lines().skip_while(|line| !is_row(line)).skip_while(is_row);
        let all: Vec<&str> = head.chain(rows.iter().map(String::as_str)).chain(tail).collect();
        fs::write(&page, all.join("\n") + "\n").unwrap();
        return;
    }
    let shown: Vec<&str> = text.lines().filter(is_row).collect();
    assert_eq!(shown, rows, "BLESS=1 writes the table of docs/published-chains.md");
}

#[test]
fn published_chains_run_and_are_proven_and_drawn() {
    for chain in chains() {
        let (folder, path) = (Folder::new(), path(&chain));
        folder.run(["run", &path, "-q"]).well();
        let written = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let captures: Vec<_> = written.filter(|e| e.metadata().unwrap().len() > 1000).collect();
        assert!(!captures.is_empty(), "{chain} writes no packets");
        let verified = folder.run(["verify", &path]);
        assert_eq!(verified.code, Some(0), "{chain}: {verified:?}");
        assert!(verified.out.starts_with("equal "), "{chain}: {}", verified.out);
        folder.run(["graph", &path, "-o", "chain.svg"]).well();
        assert!(folder.read("chain.svg").ends_with("</svg>\n"));
    }
}
