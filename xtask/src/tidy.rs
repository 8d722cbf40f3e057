//! The project's own rules, checked without compiling anything.
//!
//! A rule is a function from the [`Tree`] of files to what it found; [`rules`] holds the lists that
//! the rules read, with every exception and its reason.

mod code;
mod crates;
mod dependencies;
mod elements;
mod modules;
pub(crate) mod pages;
mod rules;
mod tree;
mod words;

use std::fmt;

use crate::Result;
use tree::Tree;

/// A place where a rule does not hold.
struct Finding {
    path: String,
    /// From 1; 0 for the whole file.
    line: usize,
    message: String,
}

fn at(path: &str, line: usize, message: impl Into<String>) -> Finding {
    Finding { path: path.to_owned(), line, message: message.into() }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: [(&str, Rule); 17] = [
    ("floors", crates::floors),
    ("reserved", crates::reserved),
    ("lints", crates::lints),
    ("clippy-files", crates::clippy_files),
    ("unsafe-files", code::unsafe_files),
    ("long-files", code::long_files),
    ("circles", modules::circles),
    ("quiet", code::quiet),
    ("unfinished", code::unfinished),
    ("registered", elements::registered),
    ("in-folders", elements::in_folders),
    ("unnamed", elements::unnamed),
    ("links", pages::links),
    ("chapters", pages::chapters),
    ("changelog", pages::changelog),
    ("machine-paths", pages::machine_paths),
    ("terms", words::terms),
];

/// Checks every rule and prints all that was found.
pub(crate) fn run() -> Result {
    let tree = Tree::read()?;
    let mut count = 0;
    let mut report = |rule: &str, found: Vec<Finding>| {
        for finding in &found {
            println!("{finding} [{rule}]");
        }
        count += found.len();
    };
    for (name, rule) in RULES {
        report(name, rule(&tree));
    }
    report("dependencies", dependencies::check(&tree)?);
    if count > 0 {
        return Err(format!("tidy found {count} places that break a rule").into());
    }
    println!("{} files, {} rules: tidy", tree.files.len(), RULES.len() + 1);
    Ok(())
}

#[cfg(test)]
fn messages(found: Vec<Finding>) -> Vec<String> {
    found.iter().map(Finding::to_string).collect()
}
