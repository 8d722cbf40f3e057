//! Tokens of the Click language, and the raw text of configurations.

use ir::{Diagnostic, FileId, Span};

/// Errors about directives beyond this number are not reported.
const MAX_DIAGNOSTICS: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    End,
    Identifier,
    Variable,
    Arrow,
    DoubleArrow,
    ContextArrow,
    Colons,
    Bars,
    Dots,
    ElementClass,
    Require,
    Provide,
    Define,
    Bar,
    Comma,
    Semicolon,
    Dash,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
    /// Text that no token starts with.
    Unknown,
}

impl TokenKind {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            TokenKind::End => "the end of the file",
            TokenKind::Identifier => "a name",
            TokenKind::Variable => "a variable",
            TokenKind::Arrow => "`->`",
            TokenKind::DoubleArrow => "`=>`",
            TokenKind::ContextArrow => "`~>`",
            TokenKind::Colons => "`::`",
            TokenKind::Bars => "`||`",
            TokenKind::Dots => "`...`",
            TokenKind::ElementClass => "`elementclass`",
            TokenKind::Require => "`require`",
            TokenKind::Provide => "`provide`",
            TokenKind::Define => "`define`",
            TokenKind::Bar => "`|`",
            TokenKind::Comma => "`,`",
            TokenKind::Semicolon => "`;`",
            TokenKind::Dash => "`-`",
            TokenKind::OpenBracket => "`[`",
            TokenKind::CloseBracket => "`]`",
            TokenKind::OpenBrace => "`{`",
            TokenKind::CloseBrace => "`}`",
            TokenKind::OpenParen => "`(`",
            TokenKind::CloseParen => "`)`",
            TokenKind::Unknown => "unknown text",
        }
    }

    pub(crate) fn is_arrow(self) -> bool {
        matches!(self, TokenKind::Arrow | TokenKind::DoubleArrow | TokenKind::ContextArrow)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A `#line` directive: from byte `at` on the text stands for `line` of `name`
/// (`None`: the name stays; empty: the file's own name).
#[derive(Debug)]
pub(crate) struct LineDirective {
    pub(crate) at: usize,
    pub(crate) name: Option<String>,
    pub(crate) line: u32,
}

/// How the text of a configuration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConfigEnd {
    Closed,
    /// The text ended first.
    Unclosed,
    /// The text ended inside the quotation that starts here.
    UnclosedQuote(usize),
}

pub(crate) struct Lexer<'a> {
    file: FileId,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// Comments and directives between tokens, in order.
    pub(crate) comments: Vec<Span>,
    pub(crate) directives: Vec<LineDirective>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Trivia before this byte have been recorded.
    recorded: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(file: FileId, text: &'a str) -> Self {
        let mut lexer = Lexer {
            file,
            text,
            bytes: text.as_bytes(),
            at: 0,
            comments: Vec::new(),
            directives: Vec::new(),
            diagnostics: Vec::new(),
            recorded: 0,
        };
        if text.starts_with('\u{feff}') {
            lexer.at = '\u{feff}'.len_utf8();
        }
        if text[lexer.at..].starts_with("#!") {
            let start = lexer.at;
            lexer.at = line_end(lexer.bytes, start);
            lexer.record_comment(start);
        }
        lexer
    }

    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Goes on at byte `at`.
    pub(crate) fn seek(&mut self, at: usize) {
        self.at = at.min(self.bytes.len());
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn record_comment(&mut self, start: usize) {
        if start >= self.recorded {
            self.comments.push(Span::new(self.file, start, self.at));
            self.recorded = self.at;
        }
    }

    fn skip_trivia(&mut self) {
        while let Some(byte) = self.byte(0) {
            let start = self.at;
            match byte {
                b if is_space(b) => self.at += 1,
                b'/' if self.byte(1) == Some(b'/') => {
                    self.at = line_end(self.bytes, start + 2);
                    self.record_comment(start);
                }
                b'/' if self.byte(1) == Some(b'*') => {
                    let close = find(self.bytes, start + 2, b"*/");
                    if close.is_none() && start >= self.recorded {
                        let span = Span::new(self.file, start, start + 2);
                        self.diagnostics.push(
                            Diagnostic::warning("unclosed-comment", "comment is never closed")
                                .label(span, "starts here and hides the rest of the file")
                                .help("close it with `*/`"),
                        );
                    }
                    self.at = close.map_or(self.bytes.len(), |close| close + 2);
                    self.record_comment(start);
                }
                b'#' if at_line_start(self.bytes, start) => {
                    self.at = line_end(self.bytes, start);
                    let new = start >= self.recorded;
                    self.record_comment(start);
                    if new {
                        self.line_directive(start);
                    }
                }
                _ => break,
            }
        }
    }

    /// Reads the directive at `start`, up to its line's end.
    fn line_directive(&mut self, start: usize) {
        let end = line_end(self.bytes, start);
        let rest = self.text[start + 1..end].trim_start_matches([' ', '\t']);
        let rest = match rest.strip_prefix("line") {
            Some(after) if after.starts_with([' ', '\t']) => after.trim_start_matches([' ', '\t']),
            _ => rest,
        };
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            if self.diagnostics.len() >= MAX_DIAGNOSTICS {
                return;
            }
            self.diagnostics.push(
                Diagnostic::error("unknown-directive", "unknown preprocessor directive")
                    .label(Span::new(self.file, start, end), "expected `# LINE \"FILE\"`")
                    .help("comments start with `//`"),
            );
            return;
        }
        let line = rest[..digits].parse().unwrap_or(u32::MAX).min(1_000_000_000);
        let name = rest[digits..].trim_start_matches([' ', '\t']);
        let name = name.starts_with('"').then(|| {
            let close = closing_quote(name.as_bytes(), 0).unwrap_or(name.len());
            String::from_utf8_lossy(&crate::config::unquote(&name[..close])).into_owned()
        });
        self.directives.push(LineDirective { at: after_newline(self.bytes, end), name, line });
    }

    /// The next token.
    pub(crate) fn token(&mut self) -> Token {
        self.skip_trivia();
        let start = self.at;
        let Some(byte) = self.byte(0) else {
            return Token { kind: TokenKind::End, start, end: start };
        };
        let (kind, length) = match (byte, self.byte(1)) {
            (b, _) if is_name(b) => (TokenKind::Identifier, self.name_length()),
            (b'$', _) => {
                let tail = &self.bytes[start + 1..];
                let name = tail.iter().take_while(|&&b| b.is_ascii_alphanumeric() || b == b'_');
                (TokenKind::Variable, 1 + name.count())
            }
            (b'~', _) => {
                let tail = &self.bytes[start + 1..];
                let name = tail.iter().take_while(|&&b| b.is_ascii_alphanumeric() || b == b'/');
                let name = name.count();
                match tail.get(name) {
                    Some(b'>') => (TokenKind::ContextArrow, name + 2),
                    _ => (TokenKind::Unknown, 1),
                }
            }
            (b'-', Some(b'>')) => (TokenKind::Arrow, 2),
            (b'=', Some(b'>')) => (TokenKind::DoubleArrow, 2),
            (b':', Some(b':')) => (TokenKind::Colons, 2),
            (b'|', Some(b'|')) => (TokenKind::Bars, 2),
            (b'.', Some(b'.')) if self.byte(2) == Some(b'.') => (TokenKind::Dots, 3),
            (b'|', _) => (TokenKind::Bar, 1),
            (b',', _) => (TokenKind::Comma, 1),
            (b';', _) => (TokenKind::Semicolon, 1),
            (b'-', _) => (TokenKind::Dash, 1),
            (b'[', _) => (TokenKind::OpenBracket, 1),
            (b']', _) => (TokenKind::CloseBracket, 1),
            (b'{', _) => (TokenKind::OpenBrace, 1),
            (b'}', _) => (TokenKind::CloseBrace, 1),
            (b'(', _) => (TokenKind::OpenParen, 1),
            (b')', _) => (TokenKind::CloseParen, 1),
            (b, _) if b.is_ascii_punctuation() => (TokenKind::Unknown, 1),
            _ => {
                let foreign = |b: &&u8| !b.is_ascii_graphic() && !is_space(**b);
                (TokenKind::Unknown, self.bytes[start..].iter().take_while(foreign).count())
            }
        };
        self.at = start + length;
        let kind = match kind {
            TokenKind::Identifier => match &self.text[start..self.at] {
                "elementclass" => TokenKind::ElementClass,
                "require" => TokenKind::Require,
                "provide" => TokenKind::Provide,
                "define" => TokenKind::Define,
                _ => kind,
            },
            _ => kind,
        };
        Token { kind, start, end: self.at }
    }

    /// Letters, digits, `_` and `@`, with single slashes between them.
    fn name_length(&self) -> usize {
        let tail = &self.bytes[self.at..];
        let mut length = 0;
        loop {
            length += tail[length..].iter().take_while(|&&b| is_name(b)).count();
            match tail.get(length..length + 2) {
                Some(&[b'/', b]) if is_name(b) => length += 1,
                _ => return length,
            }
        }
    }

    /// The token after the next one, without moving.
    pub(crate) fn peek(&mut self) -> Token {
        let at = self.at;
        let token = self.token();
        self.at = at;
        token
    }

    /// Reads the text of a configuration up to the `)` that closes it, which is not read. Returns the
    /// text, in which directives are blanked so that offsets stay true.
    pub(crate) fn config(&mut self) -> (String, ConfigEnd) {
        let start = self.at;
        let bytes = self.bytes;
        let mut depth = 1u32;
        let mut blanked = Vec::new();
        let mut end = ConfigEnd::Unclosed;
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'(' => depth += 1,
                b')' => {
                    depth -= 1;
                    if depth == 0 {
                        end = ConfigEnd::Closed;
                        break;
                    }
                }
                b'#' if at_line_start(bytes, at) => {
                    let end = line_end(bytes, at);
                    if at >= self.recorded {
                        self.recorded = end;
                        self.line_directive(at);
                    }
                    blanked.push(at..end);
                    at = end;
                    continue;
                }
                b'/' | b'\'' | b'"' | b'\\' => match skip_hidden(bytes, at) {
                    Hidden::No => {}
                    Hidden::Until(after) => {
                        at = after;
                        continue;
                    }
                    Hidden::Unclosed => {
                        if matches!(byte, b'\'' | b'"') {
                            end = ConfigEnd::UnclosedQuote(at);
                        }
                        at = bytes.len();
                        break;
                    }
                },
                _ => {}
            }
            at += 1;
        }
        self.at = at;
        let mut text = self.text[start..at].to_owned();
        for range in blanked {
            let range = range.start - start..range.end - start;
            let blanks = " ".repeat(range.len());
            text.replace_range(range, &blanks);
        }
        (text, end)
    }
}

/// Whether the text at a quotation mark, slash or backslash hides what follows.
enum Hidden {
    No,
    Until(usize),
    Unclosed,
}

/// Quotations, comments and `\<…>` strings hide parentheses and commas.
fn skip_hidden(bytes: &[u8], at: usize) -> Hidden {
    let until = |end: Option<usize>| end.map_or(Hidden::Unclosed, Hidden::Until);
    match (bytes[at], bytes.get(at + 1)) {
        (b'\'' | b'"', _) => until(closing_quote(bytes, at)),
        (b'/', Some(b'/')) => Hidden::Until(line_end(bytes, at + 2)),
        (b'/', Some(b'*')) => until(find(bytes, at + 2, b"*/").map(|close| close + 2)),
        (b'\\', Some(b'<')) => until(closing_angle(bytes, at)),
        _ => Hidden::No,
    }
}

/// White space as C's `isspace` has it.
pub(crate) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'@'
}

fn at_line_start(bytes: &[u8], at: usize) -> bool {
    at == 0 || matches!(bytes[at - 1], b'\n' | b'\r')
}

/// Where the line's text ends: at `\n`, `\r` or the end.
pub(crate) fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or(&[]);
    at + rest.iter().position(|&b| b == b'\n' || b == b'\r').unwrap_or(rest.len())
}

fn after_newline(bytes: &[u8], at: usize) -> usize {
    match bytes.get(at..) {
        Some([b'\r', b'\n', ..]) => at + 2,
        Some([_, ..]) => at + 1,
        _ => at,
    }
}

fn find(bytes: &[u8], from: usize, pattern: &[u8; 2]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(2).position(|window| window == pattern).map(|found| from + found)
}

/// One past the quotation mark that closes the quotation at `at`.
pub(crate) fn closing_quote(bytes: &[u8], at: usize) -> Option<usize> {
    let quote = bytes[at];
    let mut at = at + 1;
    loop {
        match *bytes.get(at)? {
            byte if byte == quote => return Some(at + 1),
            b'\\' if quote == b'"' => match bytes.get(at + 1)? {
                b'<' => at = closing_angle(bytes, at)?,
                _ => at += 2,
            },
            _ => at += 1,
        }
    }
}

/// One past the `>` that closes the `\<` at `at`; comments inside hide it.
pub(crate) fn closing_angle(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 2;
    loop {
        match (*bytes.get(at)?, bytes.get(at + 1)) {
            (b'>', _) => return Some(at + 1),
            (b'/', Some(b'/' | b'*')) => at = comment_end(bytes, at),
            _ => at += 1,
        }
    }
}

/// One past the comment at `at`.
pub(crate) fn comment_end(bytes: &[u8], at: usize) -> usize {
    if bytes.get(at + 1) == Some(&b'/') {
        line_end(bytes, at + 2)
    } else {
        find(bytes, at + 2, b"*/").map_or(bytes.len(), |close| close + 2)
    }
}
