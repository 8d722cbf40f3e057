//! Rules about crates: who imports whom, and that the lints reach everybody.

use toml::{Table, Value};

use super::rules::{BESIDE, FLOORS, NOT_IMPORTED, RESERVED, TESTED_WITH};
use super::tree::{Manifest, Tree};
use super::{Finding, at};

/// Which floor a crate stands on; `None` for a package that is not part of the house.
fn floor(name: &str) -> Option<usize> {
    FLOORS.iter().position(|names| names.contains(&name))
}

/// Crates import only crates of lower floors.
pub(super) fn floors(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for Manifest { path, name, .. } in house(tree) {
        if floor(name).is_none() && !BESIDE.contains(&name.as_str()) {
            found.push(at(path, 0, format!("`{name}` stands on no floor; give it one in FLOORS")));
        }
    }
    for manifest in house(tree) {
        let Manifest { path, name, .. } = manifest;
        let Some(own) = floor(name) else { continue };
        for dependency in manifest.imports() {
            if BESIDE.contains(&dependency) {
                let text = format!("`{name}` imports `{dependency}`, which is for tests only");
                found.push(at(path, 0, text));
            }
        }
        let imports: Vec<&str> = manifest.imports().collect();
        let for_tests = |dependency: &str| {
            let names =
                |(who, what, _): &(&str, &[&str], &str)| who == name && what.contains(&dependency);
            !imports.contains(&dependency) && TESTED_WITH.iter().any(names)
        };
        for dependency in manifest.dependencies() {
            if let Some(other) = floor(dependency)
                && other >= own
                && !for_tests(dependency)
            {
                found.push(at(
                    path,
                    0,
                    format!("`{name}` (floor {own}) imports `{dependency}` (floor {other})"),
                ));
            }
            for (_, _, why) in
                NOT_IMPORTED.iter().filter(|(who, what, _)| who == name && *what == dependency)
            {
                found.push(at(path, 0, format!("`{name}` imports `{dependency}`: {why}")));
            }
        }
    }
    found
}

/// Some dependencies are for some crates only.
pub(super) fn reserved(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for manifest in &tree.manifests {
        let Manifest { path, name, .. } = manifest;
        for (what, who, why) in RESERVED {
            if !who.contains(&name.as_str()) && manifest.dependencies().any(|d| d == what) {
                let who = who.join("` and `");
                found.push(at(path, 0, format!("only `{who}` may use `{what}`: {why}")));
            }
        }
    }
    found
}

/// Every package takes the lints of the workspace.
pub(super) fn lints(tree: &Tree) -> Vec<Finding> {
    let takes = |manifest: &&Manifest| {
        manifest.toml.get("lints").and_then(|lints| lints.get("workspace")?.as_bool()) == Some(true)
    };
    tree.manifests
        .iter()
        .filter(|manifest| !manifest.toml.contains_key("workspace") && !takes(manifest))
        .map(|manifest| at(&manifest.path, 0, "lacks `[lints] workspace = true`"))
        .collect()
}

/// A crate's `clippy.toml` replaces that of the root, so it must repeat all of it.
pub(super) fn clippy_files(tree: &Tree) -> Vec<Finding> {
    let parse = |path: &str| tree.text(path).map(str::parse::<Table>);
    let Some(Ok(root)) = parse("clippy.toml") else {
        return vec![at("clippy.toml", 0, "missing, or not TOML")];
    };
    let mut found = Vec::new();
    for path in tree.files.keys().filter(|path| path.ends_with("/clippy.toml")) {
        let Some(Ok(own)) = parse(path) else {
            found.push(at(path, 0, "not TOML"));
            continue;
        };
        for (key, value) in &root {
            let repeated = match (value, own.get(key)) {
                (Value::Array(all), Some(Value::Array(own))) => all.iter().all(|v| own.contains(v)),
                (value, own) => own == Some(value),
            };
            if !repeated {
                found.push(at(
                    path,
                    0,
                    format!("does not repeat `{key}` of the root's clippy.toml"),
                ));
            }
        }
    }
    found
}

fn house(tree: &Tree) -> impl Iterator<Item = &Manifest> {
    tree.manifests.iter().filter(|manifest| manifest.path.starts_with("crates/"))
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    fn manifest(name: &str, rest: &str) -> String {
        format!("[package]\nname = \"catena-{name}\"\n{rest}")
    }

    #[test]
    fn imports_go_down() {
        let net = manifest("net", "[dev-dependencies]\nir.workspace = true");
        let ir = manifest("ir", "[dependencies]\nnet.workspace = true\nserde = \"1\"");
        let click = manifest("click", "[dependencies]\nclassify.workspace = true");
        let tree = Tree::of(&[
            ("crates/net/Cargo.toml", &net),
            ("crates/ir/Cargo.toml", &ir),
            ("crates/click/Cargo.toml", &click),
        ]);
        assert_eq!(
            messages(floors(&tree)),
            [
                "crates/click/Cargo.toml: `click` (floor 2) imports `classify` (floor 2)",
                "crates/net/Cargo.toml: `net` (floor 0) imports `ir` (floor 1)",
            ]
        );
    }

    #[test]
    fn tests_may_import_what_stands_beside_the_house() {
        let lab = manifest("lab", "[dependencies]\nclick.workspace = true");
        let ir = manifest("ir", "[dev-dependencies]\nlab.workspace = true");
        let net = manifest("net", "[dependencies]\nlab.workspace = true");
        let elements = manifest("elements", "[dev-dependencies]\nengine.workspace = true");
        let tree = Tree::of(&[
            ("crates/lab/Cargo.toml", &lab),
            ("crates/ir/Cargo.toml", &ir),
            ("crates/net/Cargo.toml", &net),
            ("crates/elements/Cargo.toml", &elements),
        ]);
        assert_eq!(
            messages(floors(&tree)),
            ["crates/net/Cargo.toml: `net` imports `lab`, which is for tests only"]
        );
        let elements = manifest("elements", "[dependencies]\nengine.workspace = true");
        let found = floors(&Tree::of(&[("crates/elements/Cargo.toml", &elements)]));
        assert!(messages(found)[0].contains("`elements` (floor 3) imports `engine` (floor 5)"));
    }

    #[test]
    fn some_imports_are_wrong_though_they_go_down() {
        let text = manifest("dataplane", "[dependencies]\nclick.workspace = true");
        let found = floors(&Tree::of(&[("crates/dataplane/Cargo.toml", &text)]));
        assert!(messages(found)[0].contains("`dataplane` imports `click`: "));
    }

    #[test]
    fn a_crate_needs_a_floor() {
        let found = floors(&Tree::of(&[("crates/utils/Cargo.toml", &manifest("utils", ""))]));
        assert!(messages(found)[0].contains("`utils` stands on no floor"));
    }

    #[test]
    fn reserved_dependencies_are_kept() {
        let text = "[dependencies]\ntokio = \"1\"";
        let tree = Tree::of(&[
            ("crates/cli/Cargo.toml", &manifest("cli", text)),
            ("crates/net/Cargo.toml", &manifest("net", text)),
        ]);
        let found = messages(reserved(&tree));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/net/Cargo.toml: only `control` and `cli` may use"));
    }

    #[test]
    fn lints_reach_every_package() {
        let tree = Tree::of(&[
            ("crates/net/Cargo.toml", &manifest("net", "[lints]\nworkspace = true")),
            ("crates/ir/Cargo.toml", &manifest("ir", "")),
            ("fuzz/libfuzzer/Cargo.toml", &manifest("libfuzzer", "[workspace]")),
        ]);
        assert_eq!(
            messages(lints(&tree)),
            ["crates/ir/Cargo.toml: lacks `[lints] workspace = true`"]
        );
    }

    #[test]
    fn a_clippy_file_repeats_that_of_the_root() {
        let tree = Tree::of(&[
            ("clippy.toml", "a = true\nb = [{ path = 'x' }]"),
            ("crates/ir/clippy.toml", "a = true\nb = [{ path = 'y' }, { path = 'x' }]"),
            ("crates/net/clippy.toml", "a = true\nb = [{ path = 'y' }]"),
        ]);
        assert_eq!(
            messages(clippy_files(&tree)),
            ["crates/net/clippy.toml: does not repeat `b` of the root's clippy.toml"]
        );
    }
}
