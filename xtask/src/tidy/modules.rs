//! Rules about the modules of a crate.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::rules::{IN_CIRCLES, WITHOUT_CIRCLES};
use super::tree::{RustFile, Token, Tree};
use super::{Finding, at};

/// A module's path inside of its crate.
type Module<'t> = Vec<&'t str>;

/// What each module of a folder imports of its siblings, with what is in them.
type Siblings<'t> = BTreeMap<&'t str, BTreeSet<&'t str>>;

/// Modules of a folder do not import each other in a circle, whatever of them does. A module and what is in it may.
pub(super) fn circles(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut needed = BTreeSet::new();
    for (source, files) in sources(tree) {
        for (folder, siblings) in folders(&files) {
            let path = format!("{source}/{}", folder.join("/"));
            let path = path.trim_end_matches('/');
            for circle in circles_of(&siblings) {
                let members: BTreeSet<&str> = circle.iter().copied().collect();
                let is_it = |(at, all, _): &(&str, &[&str], &str)| {
                    *at == path && members.iter().all(|member| all.contains(member))
                };
                match IN_CIRCLES.iter().position(is_it) {
                    Some(exception) => drop(needed.insert(exception)),
                    None => found.push(at(
                        path,
                        0,
                        format!("modules import each other in a circle: {}", circle.join(" -> ")),
                    )),
                }
            }
        }
    }
    for (number, (path, ..)) in IN_CIRCLES.iter().enumerate() {
        if !needed.contains(&number) {
            found.push(at(path, 0, "needs its place in IN_CIRCLES no longer"));
        }
    }
    found
}

/// The files of each crate, by the folder of its sources.
fn sources(tree: &Tree) -> BTreeMap<&str, Vec<(Module<'_>, &RustFile)>> {
    let mut all: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for file in &tree.rust {
        let of_crate = |name: &str| {
            let rest = file.path.strip_prefix("crates/")?.strip_prefix(name)?;
            rest.strip_prefix("/src/")
        };
        let Some(rest) = WITHOUT_CIRCLES.into_iter().find_map(of_crate) else { continue };
        let source = &file.path[..file.path.len() - rest.len() - 1];
        let mut module: Module<'_> = rest.trim_end_matches(".rs").split('/').collect();
        if matches!(module.last(), Some(&("mod" | "lib" | "main"))) {
            module.pop();
        }
        all.entry(source).or_default().push((module, file));
    }
    all
}

fn folders<'t>(files: &[(Module<'t>, &'t RustFile)]) -> BTreeMap<Module<'t>, Siblings<'t>> {
    let modules: BTreeSet<&[&str]> = files.iter().map(|(module, _)| &module[..]).collect();
    let mut folders: BTreeMap<Module<'t>, Siblings<'t>> = BTreeMap::new();
    for (module, file) in files {
        for path in paths(module, &file.tokens) {
            let Some(to) = (0..=path.len()).rev().map(|n| &path[..n]).find(|p| modules.contains(p))
            else {
                continue;
            };
            let common = module.iter().zip(to).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (module.get(common), to.get(common)) {
                let siblings = folders.entry(module[..common].to_vec()).or_default();
                siblings.entry(from).or_default().insert(to);
            }
        }
    }
    folders
}

/// The paths in a file that start with `crate` or `super`, from the crate on.
fn paths<'t>(module: &Module<'t>, tokens: &'t [Token]) -> Vec<Module<'t>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let is_path = tokens.get(at + 1).is_some_and(|next| next.text == ":");
        let start = match token.text.as_str() {
            "crate" => Some(Vec::new()),
            "super" => Some(module[..module.len().saturating_sub(1)].to_vec()),
            _ => None,
        };
        at += 1;
        if let Some(start) = start.filter(|_| is_path && !token.test) {
            at = branches(tokens, at, start, &mut found);
        }
    }
    found
}

/// Reads what follows a path's first words, and where it branches, all branches; gives where it ends.
fn branches<'t>(
    tokens: &'t [Token],
    mut at: usize,
    mut path: Module<'t>,
    found: &mut Vec<Module<'t>>,
) -> usize {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    while text(at) == ":" && text(at + 1) == ":" {
        match text(at + 2) {
            "{" => {
                at += 3;
                while !matches!(text(at), "}" | "") {
                    let mut branch = path.clone();
                    branch.push(text(at));
                    at = branches(tokens, at + 1, branch, found).max(at + 1);
                }
                return at;
            }
            "super" => drop(path.pop()),
            word => path.push(word),
        }
        at += 3;
    }
    found.push(path);
    at
}

/// For each set of modules that import each other in circles, a shortest circle through the first of them.
fn circles_of<'t>(siblings: &Siblings<'t>) -> Vec<Vec<&'t str>> {
    let mut seen = BTreeSet::new();
    let mut circles = Vec::new();
    for &first in siblings.keys() {
        if seen.contains(first) {
            continue;
        }
        let mut before: BTreeMap<&str, &str> = BTreeMap::new();
        let mut waiting = VecDeque::from([first]);
        while let Some(module) = waiting.pop_front() {
            for &to in siblings.get(module).into_iter().flatten() {
                if !before.contains_key(to) {
                    before.insert(to, module);
                    waiting.push_back(to);
                }
            }
        }
        if let Some(&last) = before.get(first) {
            let mut circle = vec![first, last];
            while let Some(&module) = circle.last().filter(|module| **module != first) {
                circle.push(before[module]);
            }
            circle.reverse();
            seen.extend(circle.iter().copied());
            circles.push(circle);
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let mut found = messages(circles(&Tree::of(files)));
        found.retain(|message| !message.contains("IN_CIRCLES"));
        found
    }

    #[test]
    fn circles_of_modules_are_found() {
        let files = [
            ("crates/classify/src/lib.rs", "mod a; mod b; mod c; use a::A;"),
            ("crates/classify/src/a.rs", "use crate::{b::{self, B}, C};"),
            ("crates/classify/src/b/mod.rs", "mod d; mod e;"),
            ("crates/classify/src/b/d.rs", "use super::e::E; fn f() { crate::c::f() }"),
            ("crates/classify/src/b/e.rs", "use super::d;"),
            ("crates/classify/src/c.rs", "use super::a::{A};"),
        ];
        assert_eq!(
            found(&files),
            [
                "crates/classify/src: modules import each other in a circle: a -> b -> c -> a",
                "crates/classify/src/b: modules import each other in a circle: d -> e -> d",
            ]
        );
    }

    #[test]
    fn what_is_inside_of_one_another_or_in_tests_is_no_circle() {
        let files = [
            ("crates/classify/src/lib.rs", "mod a; mod b; use crate::a::A;"),
            (
                "crates/classify/src/a.rs",
                "use crate::b::B; use super::thing; mod inner { use super::X; }",
            ),
            ("crates/classify/src/a/deep.rs", "use super::Y; use crate::a::Z;"),
            ("crates/classify/src/b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
        ];
        assert_eq!(found(&files), [] as [&str; 0]);
    }
}
