//! The pages as a book: `docs/` and what it links to, as HTML made by mdBook.
//!
//! Pages link to pages and files beside `docs/`. So the book is built in a copy of the repository's folders that
//! holds `docs/` and all that can be reached from it by links; pages that no chapter names follow at the end.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::command::{self, cargo, root};
use crate::tidy::pages::{prose, resolve, targets};

/// What `--book` installs where no mdBook is found.
const VERSION: &str = "0.5.4";

/// Builds the book into `target/book`, with the mdBook that is installed. If there is none, it is installed below
/// `target` first, or nothing is built where that was not asked for.
pub(super) fn build(install: bool) -> Result {
    let own = root().join("target/tools/bin/mdbook");
    let installed = |program: &Path| {
        std::process::Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|o| o.status.success())
    };
    let found =
        [PathBuf::from("mdbook"), own.clone()].into_iter().find(|program| installed(program));
    let program = match (found, install) {
        (Some(program), _) => program,
        (None, false) => {
            println!(
                "no mdbook: the pages are not made into a book; `cargo xtask docs --book` installs it"
            );
            return Ok(());
        }
        (None, true) => {
            let what =
                ["install", "mdbook", "--locked", "--version", VERSION, "--no-default-features"];
            let to = ["--features", "search", "--root", "target/tools"];
            command::run(cargo(what).args(to).args(["--target-dir", "target/tools/build"]))?;
            own
        }
    };
    let source = root().join("target/book-source");
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    stage(&source)?;
    let to = root().join("target/book");
    command::run(command::at_root(program).arg("build").arg(&source).arg("--dest-dir").arg(to))?;
    println!("target/book/index.html");
    Ok(())
}

/// Copies `docs/` and what is linked to from there.
fn stage(to: &Path) -> Result {
    let mut waiting: VecDeque<String> = files("docs")?.into();
    let mut seen: BTreeSet<String> = waiting.iter().cloned().collect();
    let mut beside = Vec::new();
    while let Some(path) = waiting.pop_front() {
        let (from, copy) = (root().join(&path), to.join(&path));
        if !from.is_file() {
            continue;
        }
        fs::create_dir_all(copy.parent().unwrap_or(to))?;
        fs::copy(&from, &copy)?;
        if !path.ends_with(".md") {
            continue;
        }
        let text = fs::read_to_string(&from)?;
        let links = prose(&text).flat_map(|(_, line)| targets(line));
        let files =
            links.filter(|link| !link.contains("://")).map(|l| l.split('#').next().unwrap_or(l));
        for target in files.filter_map(|file| resolve(&path, file)) {
            if seen.insert(target.clone()) {
                waiting.push_back(target);
            }
        }
        beside.push(path);
    }
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md"))?;
    let chapters: BTreeSet<String> =
        summary.lines().flat_map(targets).filter_map(|t| resolve("docs/SUMMARY.md", t)).collect();
    let mut summary = summary
        .lines()
        .map(|line| line.replace("](../", "](/").replace("](", "](docs/").replace("](docs//", "]("))
        .collect::<Vec<_>>()
        .join("\n");
    summary.push_str("\n\n# More pages\n\n");
    beside.retain(|path| !chapters.contains(path) && path != "docs/SUMMARY.md");
    beside.sort();
    for path in beside {
        let text = fs::read_to_string(root().join(&path))?;
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(&path);
        summary.push_str(&format!("- [{title}]({path})\n"));
    }
    fs::write(to.join("SUMMARY.md"), summary)?;
    fs::rename(to.join("docs/book.toml"), to.join("book.toml"))?;
    fs::remove_file(to.join("docs/SUMMARY.md"))?;
    Ok(())
}

/// The files below a folder, by their paths from the root.
fn files(folder: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join(folder))? {
        let path = format!("{folder}/{}", entry?.file_name().to_string_lossy());
        match root().join(&path).is_dir() {
            true => found.extend(files(&path)?),
            false => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}
