//! The pages: commands that they show are accepted, those that need neither root nor a running chain do
//! what they say, and the configurations that they show are the files that they name.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::program::Folder;

/// A block of code on a page.
struct Block {
    page: String,
    line: usize,
    /// What follows the fence: `sh`, `sh root`, `click` …
    kind: String,
    text: String,
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The pages that people follow: README.md and those in `docs/`.
fn pages() -> Vec<PathBuf> {
    let docs = fs::read_dir(root().join("docs")).expect("docs").map(|e| e.expect("a file").path());
    let mut pages: Vec<_> =
        docs.filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

fn blocks(page: &Path) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut inside = false;
    for (number, line) in fs::read_to_string(page).expect("a page").lines().enumerate() {
        match (line.strip_prefix("```"), inside) {
            (Some(_), true) => inside = false,
            (Some(kind), false) => {
                let name = page.file_name().expect("a name").to_string_lossy().into_owned();
                let (kind, text) = (kind.to_string(), String::new());
                found.push(Block { page: name, line: number + 1, kind, text });
                inside = true;
            }
            (None, true) => {
                let block = found.last_mut().expect("a block was begun");
                block.text += line;
                block.text.push('\n');
            }
            (None, false) => {}
        }
    }
    found
}

/// The words of a command line, without quotes and what stands behind `#`, `&`, `|` or `>`.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ' ') => words.push(String::new()),
            (None, '#' | '&' | '|' | '>' | ';') => break,
            (_, c) => words.last_mut().expect("a word").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The command lines of `catena` in a block, its name first.
fn commands(block: &Block) -> impl Iterator<Item = Vec<String>> {
    let joined = block.text.replace("\\\n", " ");
    let lines: Vec<String> = joined.lines().map(str::to_string).collect();
    lines.into_iter().filter_map(|line| {
        let words = words(&line.replace("cargo run --release --", "catena"));
        let at = words.iter().position(|word| word == "catena")?;
        // `ip netns exec HOST catena …` and `sudo catena …` count, a folder's name does not.
        let is_command = at == 0 || ["sudo", "ip", "timeout"].contains(&words[0].as_str());
        is_command.then(|| words[at..].to_vec())
    })
}

#[test]
fn shown_commands_are_accepted() {
    let mut count = 0;
    for block in pages().iter().flat_map(|page| blocks(page)) {
        if !block.kind.starts_with("sh") {
            continue;
        }
        for command in commands(&block) {
            let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
            if let Err(why) = catena_cli::check_arguments(&arguments) {
                panic!("{}:{}: {}: {why}", block.page, block.line, command.join(" "));
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count}");
}

#[test]
fn shown_commands_run() {
    let folder = Folder::new();
    for name in ["examples", "docs"] {
        symlink(root().join(name), folder.path().join(name)).expect("a link");
    }
    let mut count = 0;
    for block in pages().iter().flat_map(|page| blocks(page)).filter(|block| block.kind == "sh") {
        for command in commands(&block) {
            folder.run(&command[1..]).well();
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
}

#[test]
fn shown_configurations_are_the_files_that_they_name() {
    let mut count = 0;
    for block in blocks(&root().join("docs/tutorial.md")).iter().filter(|b| b.kind == "click") {
        let named = block.text.strip_prefix("// ").and_then(|rest| rest.split_once(':'));
        let (name, _) = named.expect("a configuration begins with its file's name");
        let file = fs::read_to_string(root().join("docs/tutorial").join(name)).expect(name);
        assert_eq!(block.text, file, "docs/tutorial.md:{}", block.line);
        count += 1;
    }
    assert_eq!(count, 3);
}
