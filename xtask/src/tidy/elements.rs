//! Rules about elements: each is registered, stands in the folder of its category, and nobody but
//! their crate calls one by its name.

use super::rules::WORDS_THAT_ARE_ALSO_ELEMENTS;
use super::tree::{RustFile, Token, Tree};
use super::{Finding, at};

const CRATE: &str = "crates/elements/";
const SOURCES: &str = "crates/elements/src/";
const REGISTRY: &str = "crates/elements/src/registry.rs";

/// An `element! { /// manual… Type { … class: "Name" … } }`.
struct Definition<'a> {
    file: &'a RustFile,
    line: usize,
    /// The Rust type.
    type_name: &'a str,
    /// The name in configurations: that of the type, unless `class:` says another.
    class: &'a str,
}

/// Every element that is defined is in the registry.
pub(super) fn registered(tree: &Tree) -> Vec<Finding> {
    let registry = tree.rust.iter().find(|file| file.path == REGISTRY);
    let listed = |type_name: &str| {
        registry
            .into_iter()
            .flat_map(RustFile::windows)
            .any(|(_, words)| matches!(words, [":", ":", name, ","] if name == type_name))
    };
    definitions(tree)
        .filter(|definition| !listed(definition.type_name))
        .map(|Definition { file, line, type_name, .. }| {
            at(&file.path, line, format!("`{type_name}` is not in the registry, {REGISTRY}"))
        })
        .collect()
}

/// Every element stands in the folder of its category.
pub(super) fn in_folders(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &tree.rust {
        let Some(path) = file.path.strip_prefix(SOURCES) else { continue };
        let Some((folder, _)) = path.split_once('/') else { continue };
        for (line, words) in file.windows() {
            let ["category", ":", category] = words else { continue };
            if category.to_lowercase() != folder {
                let text = format!("an element of the category {category} in the folder {folder}");
                found.push(at(&file.path, line, text));
            }
        }
    }
    found
}

/// Who wants to know what an element does reads its model, not its name.
pub(super) fn unnamed(tree: &Tree) -> Vec<Finding> {
    let classes: Vec<String> = definitions(tree).map(|d| format!("\"{}\"", d.class)).collect();
    let mut found = Vec::new();
    let outside =
        |file: &&RustFile| file.path.starts_with("crates/") && !file.path.starts_with(CRATE);
    for file in tree.rust.iter().filter(outside) {
        for (line, [word]) in file.windows() {
            let excused = |(path, name, _): &(&str, &str, &str)| {
                *path == file.path && *name == word.trim_matches('"')
            };
            if classes.iter().any(|class| class == word)
                && !WORDS_THAT_ARE_ALSO_ELEMENTS.iter().any(excused)
            {
                found.push(at(
                    &file.path,
                    line,
                    format!("{word} is an element's name: ask its model"),
                ));
            }
        }
    }
    found
}

fn definitions(tree: &Tree) -> impl Iterator<Item = Definition<'_>> {
    tree.rust.iter().filter(|file| file.path.starts_with(CRATE)).flat_map(|file| {
        let is_start = |at: &usize| {
            let words = file.tokens[*at..].iter().take(3).map(|token| token.text.as_str());
            words.eq(["element", "!", "{"])
        };
        (0..file.tokens.len()).filter(is_start).filter_map(|start| definition(file, start + 3))
    })
}

/// The definition whose first token, of the manual or the type, is `tokens[start]`.
fn definition(file: &RustFile, start: usize) -> Option<Definition<'_>> {
    let is = |token: &Token, text: &str| token.text == text;
    let body = &file.tokens[start..];
    let mut depth = 0;
    let end = body.iter().position(|token| {
        depth += i32::from(is(token, "{")) - i32::from(is(token, "}"));
        depth < 0
    })?;
    let body = &body[..end];
    let open = body.iter().position(|token| is(token, "{"))?;
    let name = body[..open].last()?;
    if body[..open].iter().rev().nth(1).is_some_and(|token| is(token, "$")) {
        // A template of definitions: what it makes and nobody registers, the compiler calls unused.
        return None;
    }
    let class = body[open..]
        .windows(3)
        .find(|window| is(&window[0], "class") && is(&window[1], ":"))
        .map_or(name.text.as_str(), |window| window[2].text.trim_matches('"'));
    Some(Definition { file, line: name.line, type_name: &name.text, class })
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    const STRIP: &str = "element! {\n    /// Strip(LENGTH) -- { strips }\n    Strip { category: Ip6, ports: \"1/1\" }\n}\n\
                         element! {\n    /// Other\n    Renamed { category: Nat, samples: [(\"\", 1, 1)], class: \"Un\" }\n}\n";

    fn tree(registry: &str, click: &str) -> Tree {
        Tree::of(&[
            (REGISTRY, registry),
            ("crates/elements/src/ip6/strip.rs", STRIP),
            ("crates/click/src/lib.rs", click),
        ])
    }

    #[test]
    fn every_element_is_registered() {
        let registry = "macro_rules! classes { ($to:ident) => { $to! { ip6::strip::Strip, } } }";
        assert_eq!(
            messages(registered(&tree(registry, ""))),
            [
                "crates/elements/src/ip6/strip.rs:7: `Renamed` is not in the registry, crates/elements/src/registry.rs"
            ]
        );
    }

    #[test]
    fn elements_stand_in_the_folder_of_their_category() {
        assert_eq!(
            messages(in_folders(&tree("", ""))),
            [
                "crates/elements/src/ip6/strip.rs:7: an element of the category Nat in the folder ip6"
            ]
        );
    }

    #[test]
    fn elements_are_not_called_by_name() {
        let click = "fn f() { [\"Strip\", \"Renamed\", \"Un\", \"Stripe\"] }\n#[test]\nfn g() { \"Strip\" }";
        assert_eq!(
            messages(unnamed(&tree("", click))),
            [
                "crates/click/src/lib.rs:1: \"Strip\" is an element's name: ask its model",
                "crates/click/src/lib.rs:1: \"Un\" is an element's name: ask its model",
            ]
        );
    }
}
