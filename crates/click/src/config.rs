//! Configuration strings: splitting at commas and spaces, quotation, comments, variables.
//!
//! A configuration is first [expanded](Text::expand), then [split](Text::arguments) at its commas;
//! an argument is split at spaces by [`Argument::words`] and loses its quotation marks by [`unquote`].
//! Single quotes hide everything; double quotes hide commas, spaces and comments but expand variables
//! and backslash escapes; `\<48 65 6c>` stands for bytes in hexadecimal, inside double quotes and bare.
//!
//! The same functions serve text that comes from no file, such as a handler's value ([`Text::bare`]).

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use ir::Span;

use crate::ast::Config;
use crate::lexer::{closing_angle, closing_quote, comment_end, is_space};

/// Variables nested deeper than this in `$(…)` stay as they are.
const MAX_NESTED_EXPANSION: u32 = 32;

/// An argument that comes from more places than these knows only where it is used.
const MAX_PIECES: usize = 8;

/// Where a text comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Byte for byte from under the span.
    Exact,
    /// From the span, but not byte for byte.
    Inside,
    /// From no source text; the span means nothing.
    Nowhere,
}

/// A piece of a configuration: one argument, or one word of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The text with its quotation marks, without comments and outer white space.
    pub text: String,
    /// Where it stands. If it came through a variable, the place where the variable got its value; if
    /// only a part of it did, the place where it is used. The default span if it comes from no source.
    pub span: Span,
    origin: Origin,
    /// Where its parts come from, if from several places.
    pieces: Option<Arc<[Piece]>>,
}

impl Argument {
    /// A text that comes from no source: a handler's value, a word of the command line.
    pub fn bare(text: impl Into<String>) -> Self {
        Self::of(text.into(), Span::default(), Origin::Nowhere)
    }

    /// A text made from what stands under the span.
    pub fn at(text: impl Into<String>, span: Span) -> Self {
        Self::of(text.into(), span, Origin::Inside)
    }

    fn of(text: String, span: Span, origin: Origin) -> Self {
        Argument { text, span, origin, pieces: None }
    }

    /// Whether the span means something.
    pub fn has_source(&self) -> bool {
        self.origin != Origin::Nowhere
    }

    /// Where a range of the text's bytes stands: exactly if that is known, else the whole argument.
    pub fn locate(&self, range: Range<usize>) -> Span {
        if let Some(pieces) = &self.pieces {
            let end = range.end.min(self.text.len());
            return span_of(pieces, range.start.min(end)..end, &mut 0).0;
        }
        if self.origin != Origin::Exact {
            return self.span;
        }
        let end = range.end.min(self.text.len());
        let start = range.start.min(end);
        sub_span(self.span, start, end)
    }

    /// A part of the text, with its span. The range must be one that `str` accepts.
    pub fn slice(&self, range: Range<usize>) -> Argument {
        if let Some(pieces) = &self.pieces {
            return argument(&self.text, pieces, range, &mut 0);
        }
        let text = self.text[range.clone()].to_owned();
        Self::of(text, self.locate(range), self.origin)
    }

    /// The words of the argument: what stands between unquoted white space and comments.
    pub fn words(&self) -> impl Iterator<Item = Argument> + '_ {
        word_ranges(&self.text).map(|range| self.slice(range))
    }

    /// The first word and what follows it; either may be empty.
    pub fn split_word(&self) -> (Argument, Argument) {
        let bytes = self.text.as_bytes();
        let start = skip_blank(bytes, 0);
        let end = word_end(bytes, start);
        let rest = skip_blank(bytes, end);
        (self.slice(start..end), self.slice(rest..self.text.len()))
    }

    /// The keyword and its value, if the argument looks like `KEYWORD value`: the keyword is made of
    /// letters, digits and `_ : . ? !`, and a value follows after white space.
    pub fn keyword(&self) -> Option<(&str, Argument)> {
        let bytes = self.text.as_bytes();
        let is_keyword =
            |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b':' | b'.' | b'?' | b'!');
        let end = bytes.iter().take_while(|b| is_keyword(b)).count();
        let value = end + bytes[end..].iter().take_while(|&&b| is_space(b)).count();
        if end == 0 || value == end || value == bytes.len() {
            return None;
        }
        Some((&self.text[..end], self.slice(value..bytes.len())))
    }

    /// The bytes that the argument stands for.
    pub fn unquote(&self) -> Vec<u8> {
        unquote(&self.text)
    }

    /// Replaces variables by their values; see [`Text::expand`].
    pub fn expand(&self, lookup: &mut Lookup<'_>) -> Argument {
        let pieces = match &self.pieces {
            Some(pieces) => pieces.to_vec(),
            None => {
                let (end, span, origin) = (self.text.len(), self.span, self.origin);
                vec![Piece { end, span, origin, home: None }]
            }
        };
        let text = Text { text: Cow::Borrowed(&self.text), pieces };
        let expanded = text.expand(lookup);
        expanded.argument(0..expanded.text.len(), &mut 0)
    }
}

/// What a `$` in a configuration asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable<'a> {
    /// `$name` or `${name}`: letters, digits and `_`; or the single sign `?` or `#`.
    Name(&'a str),
    /// `$(handler call)`, with the text between the parentheses.
    Call(&'a str),
}

/// Gives a variable its value, or leaves it as it is written.
pub type Lookup<'a> = dyn FnMut(Variable<'_>) -> Option<Argument> + 'a;

/// The text of a configuration, each byte of which knows where it came from.
#[derive(Clone, Debug)]
pub struct Text<'a> {
    text: Cow<'a, str>,
    /// In order, without gaps, none of them empty.
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    /// One past its last byte in the text.
    end: usize,
    span: Span,
    origin: Origin,
    /// Where the variable stands that this is the value of.
    home: Option<Span>,
}

impl Piece {
    /// The piece's span for `range` of its bytes, counted from its own start.
    fn located(&self, range: Range<usize>) -> Span {
        match self.origin {
            Origin::Exact => sub_span(self.span, range.start, range.end),
            _ => self.span,
        }
    }
}

impl Config {
    /// The text with its place in the source.
    pub fn text(&self) -> Text<'_> {
        Text::new(&self.text, self.span)
    }

    /// The arguments, without expanding variables.
    pub fn arguments(&self) -> Vec<Argument> {
        self.text().arguments()
    }

    /// Replaces variables by their values; see [`Text::expand`].
    pub fn expand(&self, lookup: &mut Lookup<'_>) -> Text<'_> {
        if self.text.contains('$') { self.text().expand(lookup) } else { self.text() }
    }
}

impl<'a> Text<'a> {
    /// The text under a span.
    pub fn new(text: &'a str, span: Span) -> Self {
        let exact = text.len() == (span.end - span.start) as usize;
        let origin = if exact { Origin::Exact } else { Origin::Inside };
        Self::of_piece(text, span, origin)
    }

    /// A text that comes from no source.
    pub fn bare(text: &'a str) -> Self {
        Self::of_piece(text, Span::default(), Origin::Nowhere)
    }

    fn of_piece(text: &'a str, span: Span, origin: Origin) -> Self {
        let pieces = vec![Piece { end: text.len(), span, origin, home: None }];
        Text { text: Cow::Borrowed(text), pieces }
    }

    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Splits at unquoted commas. Comments become single spaces, outer white space goes, and an empty
    /// argument after the last comma does not count.
    pub fn arguments(&self) -> Vec<Argument> {
        self.first_arguments(usize::MAX)
    }

    /// The same, but no more than the first `most`.
    pub fn first_arguments(&self, most: usize) -> Vec<Argument> {
        let mut arguments = Vec::new();
        let mut piece = 0;
        for raw in raw_arguments(&self.text).take(most) {
            arguments.push(match raw {
                RawArgument::Plain(range) => self.argument(range, &mut piece),
                RawArgument::Commented(range, text) => {
                    let whole = self.argument(range, &mut piece);
                    let origin = if whole.has_source() { Origin::Inside } else { Origin::Nowhere };
                    Argument::of(text, whole.span, origin)
                }
            });
        }
        arguments
    }

    /// The argument in `range`; `cursor` is a piece at or before it and is moved on.
    fn argument(&self, range: Range<usize>, cursor: &mut usize) -> Argument {
        argument(&self.text, &self.pieces, range, cursor)
    }

    /// Replaces variables by their values: `$name`, `${name}`, `${name-default}`, `${name:-default}` (the
    /// default replaces an empty value, too), `$?`, `$#` and
    /// `$(call)`, in bare text and inside double quotes (where the value is escaped), but not inside
    /// single quotes or comments. What `lookup` does not know stays as it is.
    ///
    /// Expansion comes before splitting: a value with commas makes several arguments.
    pub fn expand(&self, lookup: &mut Lookup<'_>) -> Text<'static> {
        self.expand_nested(lookup, 0)
    }

    fn expand_nested(&self, lookup: &mut Lookup<'_>, depth: u32) -> Text<'static> {
        let text = &*self.text;
        let bytes = text.as_bytes();
        let mut output = Output { source: self, text: String::new(), pieces: Vec::new(), piece: 0 };
        let mut copied = 0;
        let mut quote = 0;
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'\\' if quote == b'"' => at += 2,
                b'\'' | b'"' => {
                    if quote == 0 {
                        quote = byte;
                    } else if quote == byte {
                        quote = 0;
                    }
                    at += 1;
                }
                b'/' if quote == 0 && matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                    at = comment_end(bytes, at);
                }
                b'$' if quote != b'\'' => {
                    let (found, end) = match variable_at(text, at) {
                        Reference::None => {
                            at += 1;
                            continue;
                        }
                        Reference::Unclosed => break,
                        Reference::Found(found, end) => (found, end),
                    };
                    let (value, fallback) = match found {
                        VariableReference::Name { name, default, fills_empty } => {
                            let value = lookup(Variable::Name(name));
                            let value = value.filter(|v| !(fills_empty && v.text.is_empty()));
                            (value.or_else(|| default.map(Argument::bare)), None)
                        }
                        VariableReference::Call { call, nested } => {
                            if nested && depth < MAX_NESTED_EXPANSION {
                                let inner = Text::bare(call).expand_nested(lookup, depth + 1);
                                let inner = inner.as_str();
                                let value = lookup(Variable::Call(inner));
                                (value, Some(format!("$({inner})")))
                            } else {
                                (lookup(Variable::Call(call)), None)
                            }
                        }
                    };
                    // A call that is left as it is, but for what is nested in it, is no value.
                    let quoted = quote == b'"' && value.is_some();
                    let value = value.or_else(|| fallback.map(Argument::bare));
                    if let Some(value) = value {
                        output.copy(copied..at);
                        output.value(&value, quoted, at..end);
                        copied = end;
                    }
                    at = end;
                }
                _ => at += 1,
            }
        }
        output.copy(copied..text.len());
        Text { text: Cow::Owned(output.text), pieces: output.pieces }
    }
}

/// The argument in `range` of a text; `cursor` is a piece at or before it and is moved on.
fn argument(text: &str, pieces: &[Piece], range: Range<usize>, cursor: &mut usize) -> Argument {
    let (span, origin, parts) = span_of(pieces, range.clone(), cursor);
    let parts = (2..=MAX_PIECES).contains(&parts.len()).then(|| {
        let within = |(index, piece): (usize, &Piece)| {
            let from = range.start.clamp(start_of(pieces, index), piece.end);
            let to = piece.end.min(range.end);
            let span = piece.located(from - start_of(pieces, index)..to - start_of(pieces, index));
            Piece { end: to - range.start, span, ..*piece }
        };
        pieces.iter().enumerate().skip(parts.start).take(parts.len()).map(within).collect()
    });
    Argument { text: text[range].to_owned(), span, origin, pieces: parts }
}

fn start_of(pieces: &[Piece], index: usize) -> usize {
    index.checked_sub(1).map_or(0, |before| pieces[before].end)
}

/// Where a range of a text stands, and which of its pieces are in it.
fn span_of(
    pieces: &[Piece],
    range: Range<usize>,
    cursor: &mut usize,
) -> (Span, Origin, Range<usize>) {
    while pieces.get(*cursor).is_some_and(|p| p.end <= range.start) && *cursor + 1 < pieces.len() {
        *cursor += 1;
    }
    let mut last = *cursor;
    while last + 1 < pieces.len() && pieces[last].end < range.end {
        last += 1;
    }
    let Some(piece) = pieces.get(*cursor) else {
        return (Span::default(), Origin::Nowhere, 0..0);
    };
    let start = start_of(pieces, *cursor);
    if last == *cursor {
        let inside = range.start.saturating_sub(start)..range.end.saturating_sub(start);
        return (piece.located(inside), piece.origin, last..last + 1);
    }
    // Several pieces: from where the first stands to where the last stands, both as written.
    let mut span: Option<Span> = None;
    for index in [*cursor, last] {
        let piece = &pieces[index];
        let start = start_of(pieces, index);
        let from = range.start.clamp(start, piece.end) - start;
        let to = range.end.clamp(start, piece.end) - start;
        let here = match (piece.home, piece.origin) {
            (Some(home), _) => home,
            (None, Origin::Nowhere) => continue,
            (None, _) => piece.located(from..to),
        };
        span = Some(match span {
            Some(span) if span.file == here.file => span.to(here),
            Some(span) => span,
            None => here,
        });
    }
    match span {
        Some(span) => (span, Origin::Inside, *cursor..last + 1),
        None => (Span::default(), Origin::Nowhere, *cursor..last + 1),
    }
}

/// An expanded text in the making.
struct Output<'s, 'a> {
    source: &'s Text<'a>,
    text: String,
    pieces: Vec<Piece>,
    /// The source's piece that copying has come to.
    piece: usize,
}

impl Output<'_, '_> {
    /// Copies a range of the source that lies behind all copied before.
    fn copy(&mut self, range: Range<usize>) {
        let source = self.source;
        let mut at = range.start;
        while at < range.end {
            let Some(piece) = source.pieces.get(self.piece) else { break };
            if piece.end <= at {
                self.piece += 1;
                continue;
            }
            let start = if self.piece == 0 { 0 } else { source.pieces[self.piece - 1].end };
            let end = piece.end.min(range.end);
            self.text.push_str(&source.text[at..end]);
            let span = piece.located(at - start..end - start);
            let (origin, home) = (piece.origin, piece.home);
            self.pieces.push(Piece { end: self.text.len(), span, origin, home });
            at = end;
        }
    }

    /// Adds a variable's value in place of what stands at `range` of the source.
    fn value(&mut self, value: &Argument, quoted: bool, range: Range<usize>) {
        let place = self.source.argument(range, &mut self.piece.clone());
        let home = place.has_source().then_some(place.span);
        let quoted_text;
        let text = if quoted {
            let text = quote(value.text.as_bytes());
            quoted_text = text[1..text.len() - 1].to_owned();
            &quoted_text
        } else {
            &value.text
        };
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        let (span, origin) = match (value.origin, home) {
            (Origin::Nowhere, Some(home)) => (home, Origin::Inside),
            (Origin::Exact, _) if quoted => (value.span, Origin::Inside),
            (origin, _) => (value.span, origin),
        };
        self.pieces.push(Piece { end: self.text.len(), span, origin, home });
    }
}

enum Reference<'a> {
    None,
    /// Nothing closes `${` or `$(`.
    Unclosed,
    /// With the end of the reference.
    Found(VariableReference<'a>, usize),
}

enum VariableReference<'a> {
    /// The default also replaces an empty value if `fills_empty`.
    Name {
        name: &'a str,
        default: Option<&'a str>,
        fills_empty: bool,
    },
    Call {
        call: &'a str,
        nested: bool,
    },
}

/// The variable at the `$` in `text[at]`.
fn variable_at(text: &str, at: usize) -> Reference<'_> {
    let bytes = text.as_bytes();
    match bytes.get(at + 1) {
        Some(b'{') => {
            let Some(length) = text[at + 2..].find('}') else {
                return Reference::Unclosed;
            };
            let inside = &text[at + 2..at + 2 + length];
            let (name, default) = match inside.split_once('-') {
                Some((name, default)) => (name, Some(default)),
                None => (inside, None),
            };
            let (name, fills_empty) = match name.strip_suffix(':') {
                Some(name) if default.is_some() => (name, true),
                _ => (name, false),
            };
            let found = VariableReference::Name { name, default, fills_empty };
            Reference::Found(found, at + 3 + length)
        }
        Some(b'(') => {
            let (mut level, mut quote, mut nested) = (1, 0, false);
            let mut end = at + 2;
            while level > 0 {
                let Some(&byte) = bytes.get(end) else {
                    return Reference::Unclosed;
                };
                match byte {
                    b'(' if quote == 0 => level += 1,
                    b')' if quote == 0 => level -= 1,
                    b'\'' | b'"' if quote == 0 => quote = byte,
                    b'\'' | b'"' if quote == byte => quote = 0,
                    b'\\' if quote != b'\'' => end += 1,
                    b'$' if quote != b'\'' => nested = true,
                    _ => {}
                }
                end += 1;
            }
            Reference::Found(VariableReference::Call { call: &text[at + 2..end - 1], nested }, end)
        }
        Some(b'?' | b'#') => Reference::Found(
            VariableReference::Name {
                name: &text[at + 1..at + 2],
                default: None,
                fills_empty: false,
            },
            at + 2,
        ),
        _ => {
            let name = bytes[at + 1..].iter();
            let length = name.take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
            if length == 0 {
                return Reference::None;
            }
            let end = at + 1 + length;
            Reference::Found(
                VariableReference::Name {
                    name: &text[at + 1..end],
                    default: None,
                    fills_empty: false,
                },
                end,
            )
        }
    }
}

fn sub_span(span: Span, start: usize, end: usize) -> Span {
    let base = span.start as usize;
    Span::new(span.file, base + start, base + end)
}

/// Where an argument stands in its configuration.
enum RawArgument {
    Plain(Range<usize>),
    /// With comments inside; the text has them replaced.
    Commented(Range<usize>, String),
}

impl RawArgument {
    fn is_empty(&self) -> bool {
        matches!(self, RawArgument::Plain(range) if range.is_empty())
    }
}

/// The arguments of a configuration in one pass.
fn raw_arguments(text: &str) -> impl Iterator<Item = RawArgument> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        if at >= text.len() {
            return None;
        }
        let (argument, end) = raw_argument(text, at, true);
        at = end + 1;
        (!argument.is_empty() || end < text.len()).then_some(argument)
    })
}

/// The argument that starts at `at`, and the place of the comma or the end behind it.
fn raw_argument(text: &str, at: usize, stop_at_comma: bool) -> (RawArgument, usize) {
    let bytes = text.as_bytes();
    let start = skip_blank(bytes, at);
    let (mut left, mut right) = (start, start);
    let mut at = start;
    let mut commented = false;
    let mut joined = String::new();
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b if is_space(b) => at += 1,
            b'/' if matches!(bytes.get(at + 1), Some(b'/' | b'*')) => {
                at = comment_end(bytes, at);
                commented = true;
            }
            b',' if stop_at_comma => break,
            _ => {
                if commented {
                    joined.push_str(&text[left..right]);
                    joined.push(' ');
                    left = at;
                    commented = false;
                }
                at = skip_item(bytes, at);
                right = at;
            }
        }
    }
    let argument = if joined.is_empty() {
        RawArgument::Plain(left..right)
    } else {
        joined.push_str(&text[left..right]);
        RawArgument::Commented(start..right, joined)
    };
    (argument, at)
}

/// An argument as it is written in a configuration, for the formatter; ranges count in its text.
pub(crate) struct WrittenArgument {
    /// Comments before it.
    pub(crate) before: Vec<Range<usize>>,
    /// With the comments inside it; empty for an empty argument.
    pub(crate) text: Range<usize>,
    /// Comments after it, also those behind its comma on the same line.
    pub(crate) after: Vec<Range<usize>>,
    /// Whether it stands on another line than what precedes it.
    pub(crate) starts_line: bool,
}

/// The arguments of a configuration as they are written, and comments that belong to none of them.
pub(crate) fn written_arguments(text: &str) -> (Vec<WrittenArgument>, Vec<Range<usize>>) {
    let bytes = text.as_bytes();
    let breaks = |range: Range<usize>| text[range].contains(['\n', '\r']);
    let mut arguments: Vec<WrittenArgument> = Vec::new();
    let mut at = 0;
    loop {
        let start = at;
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let mut core: Option<Range<usize>> = None;
        while let Some(&byte) = bytes.get(at) {
            match (byte, bytes.get(at + 1)) {
                (b',', _) => break,
                (b, _) if is_space(b) => at += 1,
                (b'/', Some(b'/' | b'*')) => {
                    let end = comment_end(bytes, at);
                    if core.is_some() { &mut after } else { &mut before }.push(at..end);
                    at = end;
                }
                _ => {
                    let from = core.map_or(at, |core| core.start);
                    at = skip_item(bytes, at);
                    core = Some(from..at);
                    after.clear();
                }
            }
        }
        let first = before.first().or(core.as_ref()).map_or(at, |range| range.start);
        let starts_line = breaks(start..first);
        // Comments behind the comma belong to the argument before it if they end its line.
        if let Some(last) = arguments.last_mut() {
            let mut end = start;
            let mut count = 0;
            while let Some(comment) = before.get(count).filter(|c| !breaks(end..c.start)) {
                end = comment.end;
                count += 1;
            }
            let next = before.get(count).or(core.as_ref()).map_or(at, |range| range.start);
            let ends_line = breaks(end..next) || core.is_none() && at == bytes.len();
            if ends_line {
                last.after.extend(before.drain(..count));
            }
        }
        if core.is_none() && at == bytes.len() {
            return (arguments, before);
        }
        let text = core.unwrap_or(at..at);
        arguments.push(WrittenArgument { before, text, after, starts_line });
        if at == bytes.len() {
            return (arguments, Vec::new());
        }
        at += 1;
    }
}

/// Past a quotation, a `\<…>` or a single byte.
fn skip_item(bytes: &[u8], at: usize) -> usize {
    match (bytes[at], bytes.get(at + 1)) {
        (b'\'' | b'"', _) => closing_quote(bytes, at).unwrap_or(bytes.len()),
        (b'\\', Some(b'<')) => closing_angle(bytes, at).unwrap_or(bytes.len()),
        _ => at + 1,
    }
}

/// Past white space and comments.
fn skip_blank(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (Some(&b), _) if is_space(b) => at += 1,
            (Some(b'/'), Some(b'/' | b'*')) => at = comment_end(bytes, at),
            _ => return at,
        }
    }
}

/// Where the word at `at` ends: before white space, a comment or the end.
fn word_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match (bytes.get(at), bytes.get(at + 1)) {
            (None, _) | (Some(b'/'), Some(b'/' | b'*')) => return at,
            (Some(&b), _) if is_space(b) => return at,
            _ => at = skip_item(bytes, at),
        }
    }
}

fn word_ranges(text: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = skip_blank(bytes, at);
        at = word_end(bytes, start);
        (start < at).then_some(start..at)
    })
}

/// Splits a text at unquoted white space.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    word_ranges(text).map(|range| &text[range])
}

/// The bytes that a text stands for: comments are removed, quotations lose their marks, and backslash
/// escapes count inside double quotes (`\<…>` everywhere but in single quotes).
pub fn unquote(text: &str) -> Vec<u8> {
    let (argument, _) = raw_argument(text, 0, false);
    let text = match &argument {
        RawArgument::Plain(range) => &text[range.clone()],
        RawArgument::Commented(_, text) => text,
    };
    let bytes = text.as_bytes();
    let mut output = Vec::with_capacity(bytes.len());
    let mut quote = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' if quote == 0 => quote = byte,
            b'"' | b'\'' if quote == byte => quote = 0,
            b'\\'
                if at + 1 < bytes.len()
                    && (quote == b'"' || quote == 0 && bytes[at + 1] == b'<') =>
            {
                at = unescape(bytes, at, &mut output);
                continue;
            }
            _ => output.push(byte),
        }
        at += 1;
    }
    output
}

/// Appends what the backslash at `at` stands for and returns where it ends. A byte follows it.
fn unescape(bytes: &[u8], at: usize, output: &mut Vec<u8>) -> usize {
    let digit = |at: usize, radix: u32| {
        bytes.get(at).and_then(|&b| char::from(b).to_digit(radix)).map(|d| d as u8)
    };
    let plain = match bytes[at + 1] {
        b'\r' => return at + if bytes.get(at + 2) == Some(&b'\n') { 3 } else { 2 },
        b'\n' => return at + 2,
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'0'..=b'7' => {
            let (mut value, mut end) = (0u8, at + 1);
            while end < at + 4 {
                let Some(d) = digit(end, 8) else { break };
                value = value.wrapping_mul(8).wrapping_add(d);
                end += 1;
            }
            output.push(value);
            return end;
        }
        b'x' => {
            let (mut value, mut end) = (0u8, at + 2);
            while let Some(d) = digit(end, 16) {
                value = value.wrapping_mul(16).wrapping_add(d);
                end += 1;
            }
            output.push(value);
            return end;
        }
        b'<' => {
            let mut high = None;
            let mut end = at + 2;
            while let Some(&byte) = bytes.get(end) {
                match byte {
                    b'>' => return end + 1,
                    b'/' if matches!(bytes.get(end + 1), Some(b'/' | b'*')) => {
                        end = comment_end(bytes, end);
                        continue;
                    }
                    _ => {}
                }
                if let Some(d) = digit(end, 16) {
                    match high.take() {
                        Some(high) => output.push(high << 4 | d),
                        None => high = Some(d),
                    }
                }
                end += 1;
            }
            return end;
        }
        other => other,
    };
    output.push(plain);
    at + 2
}

/// A double-quoted text that [`unquote`] turns into these bytes; bytes outside ASCII become octal.
pub fn quote(bytes: &[u8]) -> String {
    let mut output = String::with_capacity(bytes.len() + 2);
    output.push('"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' | b'$' => output.extend(['\\', char::from(byte)]),
            b'\t' => output.push_str("\\t"),
            b'\r' => output.push_str("\\r"),
            b'\n' => output.push_str("\\n"),
            b' '..=b'~' => output.push(char::from(byte)),
            _ => {
                output.push('\\');
                output.extend([6, 3, 0].map(|shift| char::from(b'0' + (byte >> shift & 7))));
            }
        }
    }
    output.push('"');
    output
}
