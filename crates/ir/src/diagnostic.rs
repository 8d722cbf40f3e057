//! Errors and warnings as data: what is wrong, where, and how to mend it.
//!
//! A [`Diagnostic`] carries labelled [`Span`]s into the [`Sources`] that were read. Many are
//! collected in one pass; rendering them is the business of whoever prints.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A source text that was read: a file, or an expression from the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// A range of bytes `start..end` in one source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The text that the range counts in.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes `start..end` of `file`.
    pub fn new(file: FileId, start: usize, end: usize) -> Self {
        Self { file, start: start as u32, end: end as u32 }
    }

    /// The smallest span that covers both; both must be of one file.
    pub fn to(self, other: Span) -> Span {
        debug_assert_eq!(self.file, other.file);
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The range as indices into the text.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A line and a column, both counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: Arc<str>,
    /// Byte offsets at which lines start.
    lines: Vec<u32>,
    /// `#line`-style directives: from this byte on, the text claims to be `name:line`.
    origins: Vec<(u32, String, u32)>,
}

/// Every source text read so far, by [`FileId`].
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// No text yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text under the name that people know it by.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<Arc<str>>) -> FileId {
        let text = text.into();
        let lines = std::iter::once(0)
            .chain(text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i as u32 + 1))
            .collect();
        self.files.push(Source { name: name.into(), text, lines, origins: Vec::new() });
        FileId(self.files.len() as u32 - 1)
    }

    /// Records that from byte `at` on the text stands for line `line` of `name`
    /// (cpp's `# 12 "file"` directives, which Click accepts).
    pub fn add_origin(&mut self, file: FileId, at: usize, name: String, line: u32) {
        self.files[file.0 as usize].origins.push((at as u32, name, line));
    }

    /// All texts with their names, in the order in which they were added.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Arc<str>)> {
        self.files.iter().map(|source| (source.name.as_str(), &source.text))
    }

    /// The name of a text.
    pub fn name(&self, file: FileId) -> &str {
        &self.files[file.0 as usize].name
    }

    /// The text itself.
    pub fn text(&self, file: FileId) -> &Arc<str> {
        &self.files[file.0 as usize].text
    }

    /// Bytes of all texts together.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|source| source.text.len() as u64).sum()
    }

    /// The text under a span.
    pub fn slice(&self, span: Span) -> &str {
        &self.text(span.file)[span.range()]
    }

    /// Where byte `at` of `file` stands.
    pub fn line_column(&self, file: FileId, at: u32) -> LineColumn {
        let source = &self.files[file.0 as usize];
        let line = source.lines.partition_point(|&start| start <= at) - 1;
        let start = source.lines[line] as usize;
        let end = (at as usize).clamp(start, source.text.len());
        let column = source.text.get(start..end).map_or(end - start, |s| s.chars().count());
        LineColumn { line: line as u32 + 1, column: column as u32 + 1 }
    }

    /// The landmark `file:line` of a span, following `#line` directives, as Click prints it.
    pub fn landmark(&self, span: Span) -> String {
        let (file, line) = self.origin(span);
        format!("{file}:{line}")
    }

    /// The file and line of a span, following `#line` directives.
    pub fn origin(&self, span: Span) -> (&str, u32) {
        let source = &self.files[span.file.0 as usize];
        let line = self.line_column(span.file, span.start).line;
        match source.origins.iter().rev().find(|(at, ..)| *at <= span.start) {
            Some((at, name, origin)) => {
                let base = self.line_column(span.file, *at).line;
                (name, origin + (line - base))
            }
            None => (&source.name, line),
        }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something to know; nothing is wrong.
    Note,
    /// It runs, but probably not as meant.
    Warning,
    /// It does not run.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// A span with what is to be said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// What the label points at.
    pub span: Span,
    /// What is said there; may be empty.
    pub message: String,
}

/// One error, warning or note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Stable identifier in kebab case, such as `unknown-element`.
    pub code: &'static str,
    /// One sentence without a full stop.
    pub message: String,
    /// The first label is the primary one.
    pub labels: Vec<Label>,
    /// How to mend it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message)
    }

    /// A warning.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message)
    }

    /// Something to know.
    pub fn note(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, code, message)
    }

    fn new(severity: Severity, code: &'static str, message: impl Into<String>) -> Self {
        Self { severity, code, message: message.into(), labels: Vec::new(), help: None }
    }

    /// Adds a label; the first one added is the primary one.
    #[must_use]
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label { span, message: message.into() });
        self
    }

    /// Says how to mend it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Where the primary label points.
    pub fn span(&self) -> Option<Span> {
        self.labels.first().map(|l| l.span)
    }
}

/// Whether any of these is an error.
pub fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|d| d.severity == Severity::Error)
}

/// Longer words are not compared with others, which would take long.
const LONGEST_WORD: usize = 200;

/// The candidate nearest to `word` by edit distance, if it is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let (lower, most) = (word.to_lowercase(), 1 + word.len() / 4);
    candidates
        .into_iter()
        .filter(|c| c.chars().count().abs_diff(word.chars().count()) <= most)
        .map(|c| (edit_distance(&lower, &c.to_lowercase()), c))
        .min_by_key(|&(d, c)| (d, c.len()))
        .filter(|&(d, _)| d <= most)
        .map(|(_, c)| c)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_count_characters() {
        let mut sources = Sources::new();
        let file = sources.add("a.click", "é -> b;\nc");
        assert_eq!(sources.line_column(file, 0), LineColumn { line: 1, column: 1 });
        assert_eq!(sources.line_column(file, 2), LineColumn { line: 1, column: 2 });
        assert_eq!(sources.line_column(file, 9), LineColumn { line: 2, column: 1 });
        assert_eq!(sources.landmark(Span::new(file, 9, 10)), "a.click:2");
    }

    #[test]
    fn landmarks_follow_line_directives() {
        let mut sources = Sources::new();
        let file = sources.add("a.click", "x\n# 40 \"b.click\"\ny\nz");
        sources.add_origin(file, 17, "b.click".into(), 40);
        assert_eq!(sources.landmark(Span::new(file, 0, 1)), "a.click:1");
        assert_eq!(sources.landmark(Span::new(file, 19, 20)), "b.click:41");
    }

    #[test]
    fn nearest_suggests_only_what_is_near() {
        assert_eq!(nearest("IPFiltr", ["IPFilter", "Idle"]), Some("IPFilter"));
        assert_eq!(nearest("Nonesuch", ["IPFilter", "Idle"]), None);
        assert_eq!(nearest("Idl", ["I", "Idle123", "Idle"]), Some("Idle"));
        assert_eq!(nearest(&"n".repeat(999), [&*"n".repeat(1000)]), None);
    }
}
