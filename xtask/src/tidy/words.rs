//! Rules about words: texts use the field's terms.

use super::rules::WORDS;
use super::tree::Tree;
use super::{Finding, at};

/// The kinds of files that hold sentences.
const ENDINGS: [&str; 7] = [".rs", ".md", ".click", ".test", ".c", ".h", ".yaml"];

/// Texts that spell the words: of this rule, and inputs that once were found.
const EXCEPT: [&str; 2] = ["xtask/src/tidy/", "fuzz/corpus/"];

/// What begins a line of a comment, and is no word of a sentence that goes on there.
const MARKERS: [&str; 8] = ["//", "///", "//!", "/*", "*", "#", "\"", "\\"];

/// Home-made words are absent from comments, pages and messages, also where a line ends in between.
pub(super) fn terms(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_prose = |path: &str| {
        let spells = EXCEPT.iter().any(|folder| path.starts_with(folder));
        !spells && ENDINGS.iter().any(|ending| path.ends_with(ending))
    };
    for (path, text) in tree.texts().filter(|(path, _)| is_prose(path)) {
        let words = words(text);
        for start in 0..words.len() {
            let rest = &words[start..];
            for (phrase, term) in WORDS.iter().filter(|(phrase, _)| begins_with(rest, phrase)) {
                let length = phrase.split(' ').count();
                let said: Vec<&str> = rest[..length].iter().map(|word| &word.text[..]).collect();
                let said = said.join(" ");
                found.push(at(path, rest[0].line, format!("`{said}`: the term is {term}")));
            }
        }
    }
    found
}

struct Word {
    text: String,
    line: usize,
}

/// The words of a text in small letters, without the punctuation around them.
fn words(text: &str) -> Vec<Word> {
    let of_line = |(number, line): (usize, &str)| {
        let words = line.split_whitespace().filter(|word| !MARKERS.contains(word));
        let bare = |word: &str| {
            let text = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            Word { text: text.to_lowercase(), line: number + 1 }
        };
        words.map(bare).collect::<Vec<_>>()
    };
    text.lines().enumerate().flat_map(of_line).collect()
}

/// Whether words begin with a phrase: words with spaces in between, of each all that may stand there.
fn begins_with(words: &[Word], phrase: &str) -> bool {
    let mut rest = words.iter();
    phrase
        .split(' ')
        .all(|any| rest.next().is_some_and(|word| any.split('|').any(|one| one == word.text)))
}

#[cfg(test)]
mod tests {
    use super::super::messages;
    use super::*;

    #[test]
    fn home_made_words_are_found_also_across_lines() {
        let rust = "//! A program takes the\n//! place of elements.\nfn parted_by() { \"it was Parted,\" }\n";
        let page = "Ports are given out.\nRooms are party.\n";
        let tree =
            Tree::of(&[("crates/net/src/a.rs", rust), ("docs/a.md", page), ("a.pcap", page)]);
        assert_eq!(
            messages(terms(&tree)),
            [
                "crates/net/src/a.rs:1: `takes the place of`: the term is replaces, or hot-swaps",
                "crates/net/src/a.rs:3: `parted`: the term is partitioned",
                "docs/a.md:1: `given out`: the term is allocated",
            ]
        );
    }

    #[test]
    fn each_phrase_is_found() {
        for (phrase, _) in WORDS {
            let one = phrase.split(' ').map(|any| any.split('|').next_back().unwrap_or_default());
            let text = one.collect::<Vec<_>>().join("\n");
            assert!(!terms(&Tree::of(&[("a.md", &text)])).is_empty(), "{phrase}");
        }
    }
}
