//! The tokens of nftables' language.

use std::ops::Range;

use crate::classify::pattern::text::Wrong;

/// A token with the byte it starts at; strings have their quotes. The end of a line is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn range(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }

    pub(super) fn wrong(self, message: impl Into<String>) -> Wrong {
        Wrong::new(self.range(), message)
    }
}

/// Splits a text. Comments are left out.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    const MARKS: &str = "{}()|&,;<>=!\"#\n";
    let mut all = Vec::with_capacity(text.len() / 5 + 1);
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = match first {
            '\n' => 1,
            _ if first.is_whitespace() => {
                at += first.len_utf8();
                continue;
            }
            // A line that goes on.
            '\\' if rest[1..].trim_start_matches([' ', '\t', '\r']).starts_with('\n') => {
                at += rest.find('\n').map_or(rest.len(), |end| end + 1);
                continue;
            }
            '#' => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            '"' => rest[1..].find('"').map_or(rest.len(), |end| end + 2),
            '=' | '!' | '<' | '>' if rest[1..].starts_with('=') => 2,
            _ if MARKS.contains(first) => 1,
            _ => rest.find(|c: char| c.is_whitespace() || MARKS.contains(c)).unwrap_or(rest.len()),
        };
        all.push(Token { text: &rest[..length], start: at });
        at += length;
    }
    all
}
