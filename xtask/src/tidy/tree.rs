//! The repository as tidy sees it: its files, its crates, and the tokens of its Rust code.

use std::collections::BTreeMap;
use std::fs;
use std::str::FromStr;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use toml::Table;

use crate::Result;
use crate::command::{self, root};

/// Every file that git tracks or would track, by its path from the root.
pub(super) struct Tree {
    /// The texts; `None` stands for a file that is not UTF-8.
    pub(super) files: BTreeMap<String, Option<String>>,
    pub(super) rust: Vec<RustFile>,
    pub(super) manifests: Vec<Manifest>,
}

/// The `Cargo.toml` of a package.
pub(super) struct Manifest {
    pub(super) path: String,
    /// The name inside the workspace: `net` for `catena-net`.
    pub(super) name: String,
    pub(super) toml: Table,
}

/// A Rust file as tokens: comments and the insides of strings cannot be mistaken for code.
pub(super) struct RustFile {
    pub(super) path: String,
    pub(super) tokens: Vec<Token>,
    /// Lines of the file, without those of test items.
    pub(super) lines: usize,
}

pub(super) struct Token {
    pub(super) text: String,
    pub(super) line: usize,
    /// Whether it stands in code that only tests compile.
    pub(super) test: bool,
}

impl Tree {
    pub(super) fn read() -> Result<Self> {
        let list = command::read(command::at_root("git").args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let mut files = BTreeMap::new();
        for path in list.split('\0').filter(|path| !path.is_empty()) {
            // A file that was deleted but not yet from the index is no longer part of the tree.
            if let Ok(bytes) = fs::read(root().join(path)) {
                files.insert(path.to_owned(), String::from_utf8(bytes).ok());
            }
        }
        Self::new(files)
    }

    fn new(files: BTreeMap<String, Option<String>>) -> Result<Self> {
        let mut rust = Vec::new();
        let mut manifests = Vec::new();
        for (path, text) in &files {
            let Some(text) = text else { continue };
            if path.ends_with(".rs") {
                rust.push(RustFile::parse(path, text)?);
            } else if path.ends_with("/Cargo.toml") {
                manifests.push(Manifest::parse(path, text)?);
            }
        }
        Ok(Self { files, rust, manifests })
    }

    /// The files that are text, with their texts.
    pub(super) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Whether the path is a file, or a folder that holds one.
    pub(super) fn holds(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(p, _)| p.starts_with(&folder))
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let own = |&(path, text): &(&str, &str)| (path.to_owned(), Some(text.to_owned()));
        Self::new(files.iter().map(own).collect()).expect("the sample parses")
    }
}

impl Manifest {
    fn parse(path: &str, text: &str) -> Result<Self> {
        let toml = Table::from_str(text).map_err(|error| format!("{path}: {error}"))?;
        let package = toml.get("package").and_then(|package| package.get("name")?.as_str());
        let name = inside_name(package.unwrap_or_default()).to_owned();
        Ok(Self { path: path.to_owned(), name, toml })
    }

    /// Every dependency of every kind, by the name that its package has inside the workspace.
    pub(super) fn dependencies(&self) -> impl Iterator<Item = &str> {
        self.of_kinds(&["dependencies", "dev-dependencies", "build-dependencies"])
    }

    /// The same without those of tests, benches and build scripts.
    pub(super) fn imports(&self) -> impl Iterator<Item = &str> {
        self.of_kinds(&["dependencies"])
    }

    fn of_kinds(&self, kinds: &'static [&'static str]) -> impl Iterator<Item = &str> {
        let targets = self.toml.get("target").and_then(|targets| targets.as_table());
        std::iter::once(&self.toml)
            .chain(targets.into_iter().flat_map(Table::values).filter_map(|t| t.as_table()))
            .flat_map(|table| kinds.iter().filter_map(|kind| table.get(*kind)?.as_table()))
            .flatten()
            .map(|(key, value)| {
                inside_name(value.get("package").and_then(|name| name.as_str()).unwrap_or(key))
            })
    }
}

fn inside_name(package: &str) -> &str {
    package.strip_prefix("catena-").unwrap_or(package)
}

impl RustFile {
    fn parse(path: &str, text: &str) -> Result<Self> {
        let stream = TokenStream::from_str(text)
            .map_err(|error| format!("{path}:{}: not Rust: {error}", error.span().start().line))?;
        let mut reader = Reader { tokens: Vec::new(), test_lines: 0 };
        let folder = |name: &str| path.starts_with(&name[1..]) || path.contains(name);
        let test = ["/tests/", "/benches/", "/examples/", "/fuzz/"].into_iter().any(folder)
            || path.ends_with("/tests.rs");
        reader.read(stream, test);
        let lines = if test { 0 } else { text.lines().count() - reader.test_lines };
        Ok(Self { path: path.to_owned(), tokens: reader.tokens, lines })
    }

    /// The tokens that are not test code, in windows of `N`.
    pub(super) fn windows<const N: usize>(&self) -> impl Iterator<Item = (usize, [&str; N])> {
        self.tokens.windows(N).filter(|window| !window[0].test).map(|window| {
            let mut words = [""; N];
            for (word, token) in words.iter_mut().zip(window) {
                *word = &token.text;
            }
            (window[0].line, words)
        })
    }
}

struct Reader {
    tokens: Vec<Token>,
    test_lines: usize,
}

impl Reader {
    fn read(&mut self, stream: TokenStream, test: bool) {
        // The line of the attribute that made the present item a test item.
        let mut item: Option<usize> = None;
        let mut trees = stream.into_iter().peekable();
        while let Some(tree) = trees.next() {
            let start = tree.span().start().line;
            let end = tree.span().end().line;
            if !test
                && item.is_none()
                && is_punct(&tree, '#')
                && matches!(trees.peek(), Some(TokenTree::Group(group)) if is_test_attribute(group))
            {
                item = Some(start);
            }
            let in_test = test || item.is_some();
            let ends_item = is_punct(&tree, ';')
                || matches!(&tree, TokenTree::Group(g) if g.delimiter() == Delimiter::Brace);
            match tree {
                TokenTree::Group(group) => {
                    let (open, close) = match group.delimiter() {
                        Delimiter::Parenthesis => ("(", ")"),
                        Delimiter::Brace => ("{", "}"),
                        Delimiter::Bracket => ("[", "]"),
                        Delimiter::None => ("", ""),
                    };
                    self.push(open, start, in_test);
                    self.read(group.stream(), in_test);
                    self.push(close, end, in_test);
                }
                other => self.push(&other.to_string(), start, in_test),
            }
            if ends_item && let Some(first) = item.take() {
                self.test_lines += end - first + 1;
            }
        }
    }

    fn push(&mut self, text: &str, line: usize, test: bool) {
        self.tokens.push(Token { text: text.to_owned(), line, test });
    }
}

fn is_punct(tree: &TokenTree, wanted: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

/// Whether this is the `[…]` of `#[test]`, `#[cfg(test)]` or the like.
fn is_test_attribute(group: &Group) -> bool {
    let words: Vec<String> =
        group.to_string().split(|c: char| !c.is_alphanumeric()).map(Into::into).collect();
    let has = |word: &str| words.iter().any(|w| w == word);
    group.delimiter() == Delimiter::Bracket
        && has("test")
        && !has("not")
        && (has("cfg") || !group.to_string().contains('('))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "// unsafe\nfn f() { \"unsafe\"; }\n\n#[cfg(test)]\nmod tests {\n    fn g() {\n        unsafe {}\n    }\n}\nfn h() {}\n";

    #[test]
    fn comments_strings_and_test_items_are_distinguished() {
        let file = RustFile::parse("crates/net/src/a.rs", SAMPLE).unwrap();
        let found: Vec<_> =
            file.tokens.iter().filter(|t| t.text == "unsafe").map(|t| (t.line, t.test)).collect();
        assert_eq!(found, [(7, true)]);
        assert!(file.tokens.iter().any(|t| t.text == "h" && !t.test));
        assert_eq!(file.lines, 4);
    }

    #[test]
    fn a_condition_that_excludes_tests_makes_no_test_item() {
        let text = "#[cfg(not(test))]\nfn f() { x }\n#[derive(test)]\nstruct X;";
        let file = RustFile::parse("src/a.rs", text).unwrap();
        assert!(file.tokens.iter().all(|token| !token.test));
    }

    #[test]
    fn whole_files_are_test_code_by_their_place() {
        let file = RustFile::parse("crates/net/tests/a.rs", "fn f() {}").unwrap();
        assert!(file.tokens.iter().all(|token| token.test));
        assert_eq!(file.lines, 0);
    }

    #[test]
    fn folders_are_held_when_they_hold_a_file() {
        let tree = Tree::of(&[("docs/a.md", ""), ("docs-old.md", "")]);
        assert!(tree.holds("docs") && tree.holds("docs/a.md"));
        assert!(!tree.holds("doc") && !tree.holds("docs/b.md"));
    }

    #[test]
    fn dependencies_of_all_kinds_are_seen_by_their_inside_names() {
        let tree = Tree::of(&[(
            "crates/ir/Cargo.toml",
            "[package]\nname = \"catena-ir\"\n[dependencies]\nnet.workspace = true\n\
             [dev-dependencies]\nx = { package = \"catena-click\" }\n\
             [target.'cfg(unix)'.build-dependencies]\ncatena-sim = \"1\"",
        )]);
        let manifest = &tree.manifests[0];
        assert_eq!(manifest.name, "ir");
        assert_eq!(manifest.dependencies().collect::<Vec<_>>(), ["net", "click", "sim"]);
    }
}
