//! Text for terminals: its colours, and what of other people's text may go there.
//!
//! Names, handlers' values and configurations are other people's text. Whoever prints sends all of it through
//! [`shown`].

use std::borrow::Cow;
use std::fmt::Write as _;

/// Stand around the code of a style until the text is written: [`shown`] makes an escape sequence of them, and of
/// nothing else. They are noncharacters, which texts do not have.
const STYLE: char = '\u{fdd0}';
const STYLED: char = '\u{fdd1}';

/// The styles that there are: a text can have no others, such as one that hides it.
const STYLES: [&str; 13] =
    ["0", "1", "2", "31", "32", "33", "34", "36", "91", "92", "93", "94", "96"];

/// A text with the styles of escape sequences in it, which come from ourselves.
pub fn styled(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (code, rest) = part.split_once('m').unwrap_or_default();
        out.push_str(&format!("{STYLE}{code}{STYLED}{rest}"));
    }
    out
}

/// A text as terminals may get it: characters that control them, or change the order of others, are
/// escaped (`\u001b`, as in JSON). Only styles of [`Paint`] work.
pub fn shown(text: &str) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = rest.find(is_escaped) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let style = from.strip_prefix(STYLE).and_then(|behind| {
            let is_it = |code| Some((code, behind.strip_prefix(code)?.strip_prefix(STYLED)?));
            STYLES.into_iter().find_map(is_it)
        });
        if let Some((code, behind)) = style {
            let _ = write!(out, "\x1b[{code}m");
            rest = behind;
            continue;
        }
        let mut chars = from.chars();
        let control = chars.next().unwrap_or_default();
        rest = chars.as_str();
        if control == '\r' && rest.starts_with('\n') {
            out.push(control);
        } else {
            let _ = write!(out, "\\u{:04x}", u32::from(control));
        }
    }
    Cow::Owned(out + rest)
}

/// A text without styles, as terminals may get it.
pub fn plain(text: &str) -> Cow<'_, str> {
    match text.contains(STYLE) {
        true => Cow::Owned(shown(&text.replace(STYLE, "\u{fffd}")).into_owned()),
        false => shown(text),
    }
}

/// Whether a character does something to a terminal, or is one of the marks of styles.
fn is_escaped(c: char) -> bool {
    let bidirectional = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    c.is_control() && !matches!(c, '\n' | '\t') || bidirectional || matches!(c, STYLE | STYLED)
}

/// As much of a text without colours as a terminal of this size shows at once, the cursor's line
/// at its end included; the last line states how many are missing.
pub fn fit(text: &str, columns: usize, rows: usize) -> String {
    let (lines, room) = (text.lines().count(), rows.saturating_sub(1).max(1));
    let shown = if lines > room { room.saturating_sub(1) } else { lines };
    let mut out = String::new();
    for line in text.lines().take(shown) {
        out.extend(line.chars().take(columns));
        out.push('\n');
    }
    if lines > shown {
        let missing = format!("  … {} more", count(lines - shown, "line"));
        out.extend(missing.chars().take(columns));
        out.push('\n');
    }
    out
}

/// Text with colours, if there are any.
#[derive(Clone, Copy, Debug)]
pub struct Paint(
    /// Whether there are.
    pub bool,
);

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.0 && !text.is_empty() {
            format!("{STYLE}{code}{STYLED}{text}{STYLE}0{STYLED}")
        } else {
            text.to_string()
        }
    }

    /// Bold.
    pub fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    /// Dim.
    pub fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    /// In blue.
    pub fn blue(self, text: &str) -> String {
        self.with("34", text)
    }

    /// In red.
    pub fn red(self, text: &str) -> String {
        self.with("31", text)
    }

    /// In green.
    pub fn green(self, text: &str) -> String {
        self.with("32", text)
    }

    /// In yellow.
    pub fn yellow(self, text: &str) -> String {
        self.with("33", text)
    }

    /// In cyan.
    pub fn cyan(self, text: &str) -> String {
        self.with("36", text)
    }
}

/// `1 error`, `2 errors`.
pub fn count(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{n} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::{Paint, fit, plain, shown, styled};

    #[test]
    fn only_our_own_styles_get_to_terminals() {
        let hostile = "\x1b[2J\x1b]0;x\x07 \x1b[31m\r\u{9b}8m\u{202e}\x7f";
        let harmless = "\\u001b[2J\\u001b]0;x\\u0007 \\u001b[31m\\u000d\\u009b8m\\u202e\\u007f";
        assert_eq!(shown(hostile), harmless);
        assert_eq!(shown(&Paint(true).red(hostile)), format!("\x1b[31m{harmless}\x1b[0m"));
        assert_eq!(shown("a\tµ\r\nb\n"), "a\tµ\r\nb\n");
        assert_eq!(shown("\u{fdd0}8\u{fdd1}"), "\\ufdd08\\ufdd1");
        assert_eq!(plain("\u{fdd0}31\u{fdd1}"), "\u{fffd}31\\ufdd1");
        let text = "\x1b[1m\x1b[91merror\x1b[0m: m \x1b[0m";
        assert_eq!(shown(&styled(text)), text);
    }

    #[test]
    fn what_does_not_fit_is_cut_and_told() {
        assert_eq!(fit("abc\nde\n", 80, 24), "abc\nde\n");
        assert_eq!(fit("µbc\nde\n", 2, 3), "µb\nde\n");
        assert_eq!(fit("a\nb\nc\nd\n", 80, 4), "a\nb\n  … 2 lines more\n");
        assert_eq!(fit("a\nb\n", 80, 1), "  … 2 lines more\n");
        assert_eq!(fit("", 0, 0), "");
    }
}
