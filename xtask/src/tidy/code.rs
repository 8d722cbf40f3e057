//! Rules about Rust code.

use super::rules::{LONG_FILES, MAX_LINES, TALKATIVE, THIS_FILE, UNFINISHED, UNSAFE_FILES};
use super::tree::{RustFile, Tree};
use super::{Finding, at};

/// `unsafe` stands in the files that are listed for it. (That each block gives its reason is
/// clippy's to check.)
pub(super) fn unsafe_files(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in tree.rust.iter().filter(|file| !listed(&UNSAFE_FILES, &file.path)) {
        if let Some(token) = file.tokens.iter().find(|token| token.text == "unsafe") {
            found.push(at(
                &file.path,
                token.line,
                "`unsafe` in a file that UNSAFE_FILES does not list",
            ));
        }
    }
    found.extend(stale(tree, "UNSAFE_FILES", &UNSAFE_FILES, |file| {
        file.tokens.iter().any(|token| token.text == "unsafe")
    }));
    found
}

/// Files are short enough to be read.
pub(super) fn long_files(tree: &Tree) -> Vec<Finding> {
    let long = |file: &RustFile| file.lines > MAX_LINES;
    let mut found: Vec<_> = tree
        .rust
        .iter()
        .filter(|file| long(file) && !listed(&LONG_FILES, &file.path))
        .map(|file| {
            let lines = file.lines;
            at(&file.path, 0, format!("{lines} lines beside tests; at most {MAX_LINES}"))
        })
        .collect();
    found.extend(stale(tree, "LONG_FILES", &LONG_FILES, long));
    found
}

const PRINTING: [&str; 5] = ["print", "println", "eprint", "eprintln", "dbg"];
const READING: [&str; 6] = ["var", "var_os", "vars", "vars_os", "args", "args_os"];

/// Only the command line program prints and reads the environment.
pub(super) fn quiet(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let quiet = |file: &&RustFile| !TALKATIVE.iter().any(|folder| file.path.starts_with(folder));
    for file in tree.rust.iter().filter(quiet) {
        for (line, [name, bang]) in file.windows() {
            if bang == "!" && PRINTING.contains(&name) {
                found.push(at(&file.path, line, format!("`{name}!` outside the command line")));
            }
        }
        for (line, words) in file.windows() {
            if let ["env", ":", ":", name] = words
                && READING.contains(&name)
            {
                found.push(at(&file.path, line, format!("`env::{name}` outside the command line")));
            }
        }
    }
    found
}

/// Nothing is left half done.
pub(super) fn unfinished(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts().filter(|(p, _)| p.ends_with(".rs") && *p != THIS_FILE) {
        for (number, line) in text.lines().enumerate() {
            for mark in UNFINISHED.into_iter().filter(|mark| has_word(line, mark)) {
                found.push(at(
                    path,
                    number + 1,
                    format!("`{mark}`: finish it, or say in words what is absent"),
                ));
            }
        }
    }
    found
}

/// Whether `mark` stands in the line and is not part of a longer word.
fn has_word(line: &str, mark: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(mark).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + mark.len()..].chars().next();
        let open = mark.starts_with(inner) && before.is_some_and(inner);
        let close = mark.ends_with(char::is_uppercase) && after.is_some_and(inner);
        !open && !close
    })
}

fn listed(list: &[(&str, &str)], path: &str) -> bool {
    list.iter().any(|(listed, _)| *listed == path)
}

/// Exceptions that are no longer needed.
fn stale(
    tree: &Tree,
    name: &str,
    list: &[(&str, &str)],
    needed: impl Fn(&RustFile) -> bool,
) -> Vec<Finding> {
    let idle = |path: &&str| !tree.rust.iter().any(|file| file.path == **path && needed(file));
    let paths = list.iter().map(|(path, _)| *path).filter(idle);
    paths.map(|path| at(path, 0, format!("needs its place in {name} no longer"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn unsafe_code_is_found_and_unsafe_words_are_not() {
        let tree = Tree::of(&[
            ("crates/net/src/a.rs", "// unsafe\nfn f() {\n    unsafe { g() }\n}"),
            ("crates/net/src/b.rs", "/// unsafe\nfn f() { \"unsafe\"; }"),
        ]);
        let found = messages(unsafe_files(&tree));
        assert_eq!(found.len(), 1 + UNSAFE_FILES.len());
        assert!(found[0].starts_with("crates/net/src/a.rs:3: `unsafe`"));
    }

    #[test]
    fn tests_do_not_make_a_file_long() {
        let item = "fn f() {}\n".repeat(MAX_LINES);
        let tests = format!("{item}#[cfg(test)]\nmod tests {{\n{item}}}\n");
        let tree =
            Tree::of(&[("src/a.rs", &format!("{item}\nfn g() {{}}\n")), ("src/b.rs", &tests)]);
        let found = messages(long_files(&tree));
        assert_eq!(found.len(), 1 + LONG_FILES.len());
        assert!(found[0].starts_with("src/a.rs: 902 lines beside tests"), "{found:?}");
    }

    #[test]
    fn only_the_command_line_prints() {
        let text = "fn f() {\n    println!(\"\");\n    std::env::var(\"X\");\n}\n#[test]\nfn g() { eprintln!(\"\") }";
        let tree = Tree::of(&[("crates/cli/src/main.rs", text), ("crates/net/src/lib.rs", text)]);
        assert_eq!(
            messages(quiet(&tree)),
            [
                "crates/net/src/lib.rs:2: `println!` outside the command line",
                "crates/net/src/lib.rs:3: `env::var` outside the command line",
            ]
        );
    }

    #[test]
    fn unfinished_work_is_found_also_in_comments() {
        for mark in UNFINISHED {
            let tree = Tree::of(&[("src/a.rs", &format!("fn f() {{}}\n// {mark} \n"))]);
            assert!(messages(unfinished(&tree))[0].starts_with("src/a.rs:2: "), "{mark}");
            let longer = Tree::of(&[("src/a.rs", &format!("// A{mark}S_x"))]);
            assert!(mark.starts_with('#') || unfinished(&longer).is_empty(), "{mark}");
        }
    }
}
