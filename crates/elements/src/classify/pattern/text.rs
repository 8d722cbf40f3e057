//! The words of a pattern, and what is wrong with them.

use std::ops::Range;

use click::config::Argument;
use ir::{Diagnostic, FileId, Span};

/// A pattern's text and where it stands.
#[derive(Clone, Copy)]
pub(crate) enum Text<'a> {
    /// An argument of a configuration.
    Argument(&'a Argument),
    /// A line of a file, at this byte.
    Line(&'a str, FileId, usize),
}

impl<'a> Text<'a> {
    pub(crate) fn as_str(&self) -> &'a str {
        match *self {
            Text::Argument(argument) => &argument.text,
            Text::Line(text, ..) => text,
        }
    }

    /// Where some of its bytes stand.
    pub(crate) fn locate(&self, range: Range<usize>) -> Span {
        match *self {
            Text::Argument(argument) => argument.locate(range),
            Text::Line(_, file, at) => Span::new(file, at + range.start, at + range.end),
        }
    }

    /// Where all of it stands.
    pub(crate) fn span(&self) -> Span {
        self.locate(0..self.as_str().len())
    }
}

/// Something wrong with a pattern.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wrong {
    /// What.
    pub(crate) message: String,
    /// How to mend it.
    pub(crate) help: Option<String>,
    /// The bytes of the text that it is about.
    pub(crate) range: Range<usize>,
}

impl Wrong {
    pub(crate) fn new(range: Range<usize>, message: impl Into<String>) -> Self {
        Self { message: message.into(), help: None, range }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn diagnostic(self, text: &Text<'_>) -> Diagnostic {
        let error =
            Diagnostic::error("bad-pattern", self.message).label(text.locate(self.range), "");
        match self.help {
            Some(help) => error.help(help),
            None => error,
        }
    }
}

/// A word, with the byte it starts at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
}

impl Word<'_> {
    pub(crate) fn range(self) -> Range<usize> {
        self.start..self.start + self.text.len()
    }
}

/// Splits a pattern: operators and brackets are words of their own, and whatever names, numbers
/// and addresses are made of sticks together. Quotation marks do not count.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-./@_:".contains(c);
    let mut words = Vec::with_capacity(text.len() / 5 + 1);
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '"' || c == '\'');
        let Some(first) = rest.chars().next() else { return words };
        let length = match rest.find(|c| !inner(c)) {
            Some(0) => {
                let pair = rest.as_bytes().get(..2);
                let double = matches!(pair, Some(b"&&" | b"||" | b"<=" | b">=" | b"!=" | b"=="));
                if double { 2 } else { first.len_utf8() }
            }
            Some(length) => length,
            None => rest.len(),
        };
        words.push(Word { text: &rest[..length], start: text.len() - rest.len() });
        rest = &rest[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_part_words() {
        let split = |text| words(text).iter().map(|w| w.text).collect::<Vec<_>>();
        assert_eq!(
            split("src&&!(10.0.0.1/8||x)"),
            ["src", "&&", "!", "(", "10.0.0.1/8", "||", "x", ")"]
        );
        assert_eq!(
            split(" tcp[12:1] & 0xf0 >=5 "),
            ["tcp", "[", "12:1", "]", "&", "0xf0", ">=", "5"]
        );
        assert_eq!(split("a ? b : c"), ["a", "?", "b", ":", "c"]);
        assert_eq!(split("<=>é!"), ["<=", ">", "é", "!"]);
        assert_eq!(split(""), [""; 0]);
        assert_eq!(words("ip  'frag'")[1], Word { text: "frag", start: 5 });
    }
}
