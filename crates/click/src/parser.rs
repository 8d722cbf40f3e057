//! Text to syntax tree. After an error the parser goes on with what follows, so that all errors of a
//! file are found in one pass.

use ir::{Diagnostic, FileId, Sources, Span, nearest};

use crate::ast::{
    Body, Class, Compound, Config, Define, Definition, ElementClass, File, Group, Name, Parameter,
    Require, Requirement, RequirementKind, Statement,
};
use crate::lexer::{ConfigEnd, Lexer, Token, TokenKind, closing_quote, is_space, line_end};

mod chain;

/// Compounds and groups nest at most this deep.
pub const MAX_DEPTH: usize = 64;

/// The highest port number that may be written.
pub const MAX_PORT: u32 = 65_535;

/// Tokens and arguments of a file at the most: what is made of each takes hundreds of bytes.
pub const MAX_TOKENS: usize = 1 << 21;

/// A file with more errors than this is not read to its end.
const MAX_DIAGNOSTICS: usize = 200;

/// Parses a file, and returns the sources of the `#line` directives in it. The tree holds all that could
/// be made sense of; it is the whole file only if no diagnostic is an error.
pub fn parse(sources: &mut Sources, file: FileId) -> (File, Vec<Diagnostic>) {
    let text = sources.text(file).clone();
    if u32::try_from(text.len()).is_err() {
        let error = Diagnostic::error("file-too-large", "the file is larger than 4 GiB")
            .label(Span::new(file, 0, 0), "");
        return (File::default(), vec![error]);
    }
    let mut parser = Parser::new(file, &text);
    let statements = parser.statements();
    let tokens = parser.tokens;
    let (lexer, diagnostics) = parser.finish();
    let mut name = sources.name(file).to_owned();
    for directive in lexer.directives {
        match directive.name {
            Some(given) if given.is_empty() => name = sources.name(file).to_owned(),
            Some(given) => name = given,
            None => {}
        }
        sources.add_origin(file, directive.at, name.clone(), directive.line);
    }
    (File { statements, comments: lexer.comments, tokens }, diagnostics)
}

/// Something that waits for its closing delimiter.
#[derive(Clone, Copy)]
struct Open {
    closer: TokenKind,
    span: Span,
}

struct Parser<'a> {
    file: FileId,
    text: &'a str,
    lexer: Lexer<'a>,
    token: Token,
    /// Where the last token that was taken ends.
    end: usize,
    /// How many were taken.
    tokens: usize,
    diagnostics: Vec<Diagnostic>,
    open: Vec<Open>,
    /// Delimiters that were never closed.
    unclosed: Vec<Span>,
    /// A configuration was never closed: parsing goes on inside it, but only once.
    reopened: bool,
}

/// A syntax error was reported and the parser has to find a place to go on.
struct Lost;

type Parsed<T> = Result<T, Lost>;

impl<'a> Parser<'a> {
    fn new(file: FileId, text: &'a str) -> Self {
        let mut lexer = Lexer::new(file, text);
        let token = lexer.token();
        Parser {
            file,
            text,
            lexer,
            token,
            end: 0,
            tokens: 0,
            diagnostics: Vec::new(),
            open: Vec::new(),
            unclosed: Vec::new(),
            reopened: false,
        }
    }

    fn finish(mut self) -> (Lexer<'a>, Vec<Diagnostic>) {
        if let Some(&innermost) = self.unclosed.first()
            && self.diagnostics.len() <= MAX_DIAGNOSTICS
        {
            let what = &self.text[innermost.range()];
            let mut error =
                Diagnostic::error("unclosed-delimiter", format!("this `{what}` is never closed"))
                    .label(innermost, "opens here");
            for &span in self.unclosed.iter().skip(1).take(7) {
                error = error.label(span, "neither is this one");
            }
            let closer = match what {
                "{" => "}",
                "[" => "]",
                _ => ")",
            };
            let end = Span::new(self.file, self.text.len(), self.text.len());
            self.diagnostics.push(
                error
                    .label(end, format!("expected `{closer}` before the end of the file"))
                    .help(format!("add the missing `{closer}`")),
            );
        }
        let mut diagnostics = std::mem::take(&mut self.lexer.diagnostics);
        diagnostics.append(&mut self.diagnostics);
        diagnostics.sort_by_key(|d| d.span().map(|span| span.start));
        (self.lexer, diagnostics)
    }

    // Tokens

    fn bump(&mut self) -> Token {
        let token = self.token;
        self.end = token.end;
        self.count(1);
        self.token = self.lexer.token();
        token
    }

    /// Counts tokens; when there are too many, the file ends here.
    fn count(&mut self, more: usize) {
        let before = self.tokens;
        self.tokens += more;
        if (before..self.tokens).contains(&MAX_TOKENS) {
            let message = format!("the file has more than {MAX_TOKENS} tokens and arguments");
            let error = Diagnostic::error("file-too-large", message);
            let here = self.span(self.token);
            self.diagnostics.push(error.label(here, "the rest of the file is not read"));
            self.lexer.seek(self.text.len());
        }
    }

    fn seek(&mut self, at: usize) {
        self.lexer.seek(at);
        self.token = self.lexer.token();
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.token.kind == kind
    }

    fn eat(&mut self, kind: TokenKind) -> Option<Token> {
        self.at(kind).then(|| self.bump())
    }

    fn span(&self, token: Token) -> Span {
        Span::new(self.file, token.start, token.end)
    }

    fn span_from(&self, start: usize) -> Span {
        Span::new(self.file, start, self.end.max(start))
    }

    fn token_text(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }

    fn name(&self, token: Token) -> Name {
        Name { text: self.token_text(token).to_owned(), span: self.span(token) }
    }

    /// What the next token is, in words.
    fn found(&self) -> String {
        match self.token.kind {
            TokenKind::End => "the end of the file".to_owned(),
            _ => {
                let text = self.token_text(self.token);
                let short: String = text.chars().take(32).collect();
                format!("`{}`", short.escape_debug())
            }
        }
    }

    // Errors

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() == MAX_DIAGNOSTICS {
            let here = self.span(self.token);
            self.diagnostics.push(
                Diagnostic::error("too-many-errors", "too many errors")
                    .label(here, "the rest of the file is not read"),
            );
            self.seek(self.text.len());
        }
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        }
    }

    fn expected(&mut self, what: &str) -> Diagnostic {
        let span = self.span(self.token);
        Diagnostic::error("unexpected-token", format!("expected {what}, found {}", self.found()))
            .label(span, format!("expected {what}"))
    }

    /// Goes to where the next statement may start.
    fn recover(&mut self) {
        loop {
            match self.token.kind {
                TokenKind::End
                | TokenKind::Semicolon
                | TokenKind::ElementClass
                | TokenKind::Require
                | TokenKind::Define => return,
                TokenKind::Bars if self.closes_outer(TokenKind::CloseBrace) => return,
                kind if self.closes_outer(kind) => return,
                TokenKind::OpenParen | TokenKind::OpenBrace => self.skip_balanced(),
                _ => {
                    self.bump();
                }
            }
        }
    }

    /// Skips what the next token opens, with its closing delimiter.
    fn skip_balanced(&mut self) {
        let opener = self.token;
        if self.at(TokenKind::OpenParen) {
            self.skip_config();
            return;
        }
        self.bump();
        let mut depth = 1;
        while depth > 0 {
            match self.token.kind {
                TokenKind::End => {
                    self.unclosed.push(self.span(opener));
                    return;
                }
                TokenKind::OpenParen => {
                    self.skip_config();
                    continue;
                }
                TokenKind::OpenBrace => depth += 1,
                TokenKind::CloseBrace => depth -= 1,
                _ => {}
            }
            self.bump();
        }
    }

    fn skip_config(&mut self) {
        let opener = self.token;
        self.lexer.seek(opener.end);
        let (_, end) = self.lexer.config();
        self.token = self.lexer.token();
        match end {
            ConfigEnd::Closed => {
                self.bump();
            }
            _ => self.unclosed.push(self.span(opener)),
        }
    }

    /// Whether a delimiter that is open further out waits for this token.
    fn closes_outer(&self, kind: TokenKind) -> bool {
        self.open.iter().any(|open| open.closer == kind)
    }

    fn nested(&self) -> bool {
        !self.open.is_empty()
    }

    // Statements

    /// Statements up to what closes the innermost open delimiter (not taken), or the end.
    fn statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        loop {
            let misspelt = self.is_misspelt_elementclass();
            match self.token.kind {
                TokenKind::End => return statements,
                TokenKind::Semicolon => {
                    self.bump();
                }
                TokenKind::CloseBrace | TokenKind::CloseParen
                    if self.closes_outer(self.token.kind) =>
                {
                    return statements;
                }
                TokenKind::Bars if self.closes_outer(TokenKind::CloseBrace) => return statements,
                TokenKind::CloseBrace | TokenKind::CloseParen | TokenKind::Bars => {
                    let (found, span) = (self.found(), self.span(self.token));
                    let message = match self.token.kind {
                        TokenKind::Bars => "`||` separates the overloads of a compound",
                        _ => "nothing is open that it could close",
                    };
                    self.report(
                        Diagnostic::error("unexpected-token", format!("unexpected {found}"))
                            .label(span, message),
                    );
                    self.bump();
                }
                TokenKind::ElementClass => self.statement(&mut statements, Self::elementclass),
                TokenKind::Define => self.statement(&mut statements, Self::define),
                TokenKind::Require => self.statement(&mut statements, Self::require),
                TokenKind::Identifier if misspelt => {
                    let span = self.span(self.token);
                    let found = self.found();
                    self.report(
                        Diagnostic::error("unexpected-token", format!("unknown keyword {found}"))
                            .label(span, "")
                            .help("did you mean `elementclass`?"),
                    );
                    self.statement(&mut statements, Self::elementclass);
                }
                TokenKind::Identifier
                | TokenKind::OpenBracket
                | TokenKind::OpenBrace
                | TokenKind::OpenParen
                | TokenKind::Arrow
                | TokenKind::DoubleArrow
                | TokenKind::ContextArrow => self.chain(&mut statements),
                kind => {
                    let mut error = self.expected("a statement");
                    if let Some(help) = match (kind, self.token_text(self.token)) {
                        (TokenKind::Provide, _) => Some("`provide` is reserved and does nothing"),
                        (TokenKind::Bar, _) => {
                            Some("parameters of a compound are variables: `{ $a, KEYWORD $b | … }`")
                        }
                        (TokenKind::Dots, _) => {
                            Some("`...` stands last in a compound, after `||`: `{ … || ... }`")
                        }
                        (_, "#") => Some("comments start with `//`"),
                        _ => None,
                    } {
                        error = error.help(help);
                    }
                    self.report(error);
                    self.bump();
                    self.recover();
                }
            }
        }
    }

    fn statement(
        &mut self,
        statements: &mut Vec<Statement>,
        parse: fn(&mut Self) -> Parsed<Statement>,
    ) {
        match parse(self) {
            Ok(statement) => statements.push(statement),
            Err(Lost) => self.recover(),
        }
    }

    /// `elementclas X {`, which would otherwise be three statements.
    fn is_misspelt_elementclass(&mut self) -> bool {
        let word = self.token_text(self.token);
        self.at(TokenKind::Identifier)
            && word.len() > 8
            && nearest(word, ["elementclass"]).is_some()
            && self.lexer.peek().kind == TokenKind::Identifier
    }

    fn elementclass(&mut self) -> Parsed<Statement> {
        let keyword = self.bump();
        let Some(name) = self.eat(TokenKind::Identifier) else {
            let error = self.expected("the name of the new class");
            self.report(error.help("write `elementclass Name { … }`"));
            if self.at(TokenKind::OpenBrace) {
                let _ = self.compound();
            }
            return Err(Lost);
        };
        let name = self.name(name);
        let class = match self.token.kind {
            TokenKind::OpenBrace => Class::Compound(self.compound()?),
            TokenKind::Identifier => {
                let old = self.bump();
                Class::Named(self.name(old))
            }
            _ => {
                let error = self.expected("`{` or the name of a class");
                self.report(error.help(
                    "write `elementclass Name { … }`, or `elementclass Name OtherName` for a synonym",
                ));
                return Err(Lost);
            }
        };
        Ok(Statement::ElementClass(ElementClass {
            name,
            class,
            span: self.span_from(keyword.start),
        }))
    }

    fn keyword_config(&mut self, keyword: Token, example: &str) -> Parsed<Config> {
        if !self.at(TokenKind::OpenParen) {
            let error = self.expected(&format!("`(` after `{}`", self.token_text(keyword)));
            self.report(error.help(format!("write `{example}`")));
            return Err(Lost);
        }
        Ok(self.config())
    }

    fn define(&mut self) -> Parsed<Statement> {
        let keyword = self.bump();
        let config = self.keyword_config(keyword, "define($NAME value)")?;
        let mut definitions = Vec::new();
        for argument in config.arguments() {
            if argument.text.is_empty() {
                continue;
            }
            let (variable, value) = argument.split_word();
            let name = variable.text.strip_prefix('$').unwrap_or("");
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                let mut error = Diagnostic::error(
                    "bad-definition",
                    format!("`{}` is not a variable", variable.text.escape_debug()),
                )
                .label(variable.span, "expected `$NAME`");
                if variable.text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
                    error = error.help(format!("did you mean `${}`?", variable.text));
                }
                self.report(error);
                continue;
            }
            let variable = Name { text: name.to_owned(), span: variable.span };
            definitions.push(Definition { variable, value });
        }
        Ok(Statement::Define(Define { definitions, config, span: self.span_from(keyword.start) }))
    }

    fn require(&mut self) -> Parsed<Statement> {
        let keyword = self.bump();
        let config = self.keyword_config(keyword, "require(package NAME)")?;
        let mut requirements = Vec::new();
        for argument in config.arguments() {
            let words: Vec<String> = argument
                .words()
                .map(|word| String::from_utf8_lossy(&word.unquote()).into_owned())
                .collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let kind = match words[..] {
                [] => continue,
                ["compact_config"] => RequirementKind::CompactConfig,
                ["package", name] => RequirementKind::Package(name.to_owned()),
                ["library", path] => RequirementKind::Library(path.to_owned()),
                [name] if !matches!(name, "package" | "library" | "") => {
                    RequirementKind::Package(name.to_owned())
                }
                _ => {
                    self.report(
                        Diagnostic::error("bad-requirement", "requirement is not understood")
                            .label(argument.span, "")
                            .help("write `package NAME`, `library FILE` or `compact_config`"),
                    );
                    continue;
                }
            };
            requirements.push(Requirement { kind, span: argument.span });
        }
        Ok(Statement::Require(Require {
            requirements,
            config,
            span: self.span_from(keyword.start),
        }))
    }

    // What encloses statements

    /// Opens a compound or group; the next token is its delimiter.
    fn enter(&mut self, closer: TokenKind) -> Parsed<Token> {
        if self.open.len() < MAX_DEPTH {
            let span = self.span(self.token);
            self.open.push(Open { closer, span });
            return Ok(self.bump());
        }
        let span = self.span(self.token);
        self.report(
            Diagnostic::error("nesting-too-deep", "compounds and groups are nested too deep")
                .label(span, format!("deeper than {MAX_DEPTH}")),
        );
        self.skip_balanced();
        Err(Lost)
    }

    /// Takes the closing delimiter of what was opened last.
    fn leave(&mut self) {
        let Some(open) = self.open.pop() else { return };
        if self.eat(open.closer).is_some() {
            return;
        }
        if self.at(TokenKind::End) {
            self.unclosed.push(open.span);
            return;
        }
        let what = &self.text[open.span.range()];
        let error = self.expected(open.closer.describe());
        self.report(error.label(open.span, format!("to close this `{what}`")));
    }

    fn group(&mut self) -> Parsed<Group> {
        let start = self.enter(TokenKind::CloseParen)?.start;
        let statements = self.statements();
        self.leave();
        Ok(Group { statements, span: self.span_from(start) })
    }

    fn compound(&mut self) -> Parsed<Compound> {
        let start = self.enter(TokenKind::CloseBrace)?.start;
        let mut bodies = Vec::new();
        let mut extends = None;
        loop {
            if self.at(TokenKind::Dots) {
                let dots = self.bump();
                let span = self.span(dots);
                if bodies.is_empty() || !self.at(TokenKind::CloseBrace) {
                    self.report(
                        Diagnostic::error("bad-extension", "`...` stands last in a compound")
                            .label(span, "")
                            .help("write `{ … || ... }`"),
                    );
                }
                extends = Some(span);
            }
            if extends.is_none() || !self.at(TokenKind::CloseBrace) {
                bodies.push(self.body());
            }
            if self.eat(TokenKind::Bars).is_none() {
                break;
            }
        }
        self.leave();
        if bodies.is_empty() {
            let here = Span::new(self.file, self.end, self.end);
            bodies.push(Body { parameters: Vec::new(), statements: Vec::new(), span: here });
        }
        Ok(Compound { bodies, extends, span: self.span_from(start) })
    }

    fn body(&mut self) -> Body {
        let start = self.end;
        let parameters = self.parameters();
        let statements = self.statements();
        Body { parameters, statements, span: Span::new(self.file, start, self.token.start) }
    }

    /// `$a, KEYWORD $b |`, or nothing if the body starts with a statement.
    fn parameters(&mut self) -> Vec<Parameter> {
        let mut parameters: Vec<Parameter> = Vec::new();
        if self.eat(TokenKind::Bar).is_some() {
            return parameters;
        }
        loop {
            let keyword = match self.token.kind {
                TokenKind::Identifier if self.lexer.peek().kind == TokenKind::Variable => {
                    let keyword = self.bump();
                    Some(self.name(keyword))
                }
                TokenKind::Variable => None,
                _ if parameters.is_empty() => return parameters,
                _ => {
                    let error = self.expected("a parameter");
                    self.report(error.help("a `|` follows the last parameter"));
                    return parameters;
                }
            };
            let token = self.bump();
            let text = self.token_text(token)[1..].to_owned();
            let variable = Name { text, span: self.span(token) };
            if variable.text.is_empty() {
                self.report(
                    Diagnostic::error("bad-parameter", "the parameter has no name")
                        .label(variable.span, "expected `$NAME`"),
                );
            }
            let parameter = Parameter { keyword, variable };
            self.check_parameter(&parameters, &parameter);
            parameters.push(parameter);
            if self.eat(TokenKind::Bar).is_some() {
                return parameters;
            }
            if self.eat(TokenKind::Comma).is_none() {
                let error = self.expected("`,` or `|`");
                self.report(error.help("a `|` follows the last parameter"));
                if !self.at(TokenKind::Variable) {
                    return parameters;
                }
            }
        }
    }

    fn check_parameter(&mut self, before: &[Parameter], new: &Parameter) {
        let text = |keyword: &Option<Name>| keyword.as_ref().map(|k| k.text.clone());
        if let Some(old) = before.iter().find(|p| p.variable.text == new.variable.text) {
            self.report(
                Diagnostic::error(
                    "bad-parameter",
                    format!("parameter `${}` is declared twice", new.variable.text),
                )
                .label(new.variable.span, "")
                .label(old.variable.span, "first declared here"),
            );
        }
        if let Some(keyword) = &new.keyword
            && let Some(old) = before.iter().find(|p| text(&p.keyword) == text(&new.keyword))
        {
            self.report(
                Diagnostic::error(
                    "bad-parameter",
                    format!("keyword `{}` is declared twice", keyword.text),
                )
                .label(keyword.span, "")
                .label(old.span(), "first declared here"),
            );
        }
        if let Some(last) = before.last()
            && (last.is_rest() || last.keyword.is_some() && new.keyword.is_none())
        {
            self.report(
                Diagnostic::error("bad-parameter", "parameters are out of order")
                    .label(new.span(), "")
                    .label(last.span(), "stands before it")
                    .help("positional parameters come first, then keywords, then `__REST__`"),
            );
        }
    }

    // Configurations

    fn optional_config(&mut self) -> Option<Config> {
        self.at(TokenKind::OpenParen).then(|| self.config())
    }

    /// The configuration that the next token opens.
    fn config(&mut self) -> Config {
        let open = self.token;
        self.lexer.seek(open.end);
        let (mut text, end) = self.lexer.config();
        let commas = text.bytes().filter(|byte| *byte == b',').count();
        match end {
            ConfigEnd::Closed => {
                let span = Span::new(self.file, open.end, self.lexer.position());
                self.count(commas);
                self.token = self.lexer.token();
                self.bump();
                return Config { text, span };
            }
            ConfigEnd::UnclosedQuote(at) => {
                let span = Span::new(self.file, at, at + 1);
                let mark = &self.text[at..at + 1];
                self.report(
                    Diagnostic::error("unclosed-quote", "this quotation is never closed")
                        .label(span, "starts here")
                        .help(format!("add the missing `{mark}`")),
                );
            }
            ConfigEnd::Unclosed => self.unclosed.push(Span::new(self.file, open.start, open.end)),
        }
        // What was probably meant ends with the statement; the rest is read once for its own errors.
        let length = if self.reopened { text.len() } else { probable_end(&text) };
        self.reopened = true;
        text.truncate(length);
        let at = open.end + length;
        self.end = at;
        self.seek(at);
        if matches!(end, ConfigEnd::UnclosedQuote(_)) && self.at(TokenKind::CloseParen) {
            self.bump();
        }
        Config { text, span: Span::new(self.file, open.end, at) }
    }
}

/// Where a configuration that is never closed was probably meant to end: before an arrow, a semicolon
/// or a brace, or at the line's end if a quotation is open.
fn probable_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b';' | b'{' | b'}', _) | (b'-' | b'=', Some(b'>')) => return at,
            (b'/', Some(b'/')) => at = line_end(bytes, at),
            (b'"' | b'\'', _) => match closing_quote(bytes, at) {
                Some(end) => at = end,
                None => {
                    let end = line_end(bytes, at);
                    let tail = text[at..end].find([')', ';']);
                    return tail.map_or(end, |tail| at + tail);
                }
            },
            _ => at += 1,
        }
    }
    let trailing = bytes.iter().rev().take_while(|&&b| is_space(b)).count();
    bytes.len() - trailing
}
