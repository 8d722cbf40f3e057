//! Parsing.

mod op;
mod program;
mod term;

pub use program::{Programs, parse_programs};

use std::ops::Range;

use net::Header;

use super::intern::intern;
use super::lexer::{Lexer, Token, name};
use crate::diagnostic::{Diagnostic, FileId, Span, nearest};
use crate::field::{Base, Field};
use crate::hash::HashFunction;
use crate::header_space::HeaderSpace;
use crate::model::{Cond, Expr, Model, Reg, StateDecl, StateRef};

/// How deeply blocks, conditions and expressions may be nested in one another.
pub const MAX_DEPTH: u32 = 96;

/// How deep an expression's tree may be; a chain of operators makes one that leans to the left.
const MAX_TREE_DEPTH: u32 = 256;

/// After so many errors the rest of a text is left alone.
const MAX_ERRORS: usize = 20;

/// Reads a model.
///
/// # Errors
/// Every error of the text, up to a limit.
pub fn parse_model(file: FileId, text: &str) -> Result<Model, Vec<Diagnostic>> {
    parse(file, text, |p| p.model())
}

/// Reads a condition. State can be named by number only.
///
/// # Errors
/// The first error of the text.
pub fn parse_cond(file: FileId, text: &str) -> Result<Cond, Vec<Diagnostic>> {
    parse(file, text, |p| p.cond())
}

/// Reads an expression. State can be named by number only.
///
/// # Errors
/// The first error of the text.
pub fn parse_expr(file: FileId, text: &str) -> Result<Expr, Vec<Diagnostic>> {
    parse(file, text, |p| p.expr())
}

/// Reads a header space of at most `limit` cubes: `everything`, `nothing`, or a condition about
/// fields alone.
///
/// # Errors
/// What is wrong with the text, or that it takes too many cubes.
pub fn parse_header_space(
    file: FileId,
    text: &str,
    limit: usize,
) -> Result<HeaderSpace, Vec<Diagnostic>> {
    parse(file, text, |parser| {
        if parser.takes("everything") {
            return Ok(HeaderSpace::full());
        } else if parser.takes("nothing") {
            return Ok(HeaderSpace::empty());
        }
        let start = parser.at.clone();
        let cond = parser.cond()?;
        let span = start.start..parser.end;
        match HeaderSpace::from_cond(&cond, limit) {
            Ok(Some(space)) => Ok(space),
            Ok(None) => {
                Err(parser.error_at(span, "not-a-space", "this is not about header fields alone"))
            }
            Err(e) => Err(parser.error_at(span, "space-too-large", &e.to_string())),
        }
    })
}

fn parse<T>(
    file: FileId,
    text: &str,
    what: impl FnOnce(&mut Parser<'_>) -> Parsed<T>,
) -> Result<T, Vec<Diagnostic>> {
    if u32::try_from(text.len()).is_err() {
        return Err(vec![Diagnostic::error("text-too-long", "the text is longer than 4 GiB")]);
    }
    let mut lexer = Lexer { text, position: 0 };
    let (token, at) = lexer.next();
    let mut parser = Parser {
        file,
        lexer,
        token,
        at,
        end: 0,
        nesting: 0,
        depth: 0,
        state: Vec::new(),
        errors: Vec::new(),
    };
    let result = what(&mut parser).and_then(|result| {
        if parser.token == Token::End { Ok(result) } else { Err(parser.expected("the end")) }
    });
    match result {
        Ok(result) if parser.errors.is_empty() => Ok(result),
        _ => Err(parser.errors),
    }
}

/// The error was reported.
struct Failed;

type Parsed<T> = Result<T, Failed>;

struct Parser<'a> {
    file: FileId,
    lexer: Lexer<'a>,
    /// The token at hand and its bytes.
    token: Token<'a>,
    at: Range<usize>,
    /// One past the token before.
    end: usize,
    nesting: u32,
    /// Depth of the deepest tree among the operands read so far.
    depth: u32,
    state: Vec<StateDecl>,
    errors: Vec<Diagnostic>,
}

impl<'a> Parser<'a> {
    fn bump(&mut self) {
        self.end = self.at.end;
        (self.token, self.at) = self.lexer.next();
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Failed {
        self.errors.push(diagnostic);
        Failed
    }

    fn error_at(&mut self, at: Range<usize>, code: &'static str, message: &str) -> Failed {
        let span = Span::new(self.file, at.start, at.end);
        self.report(Diagnostic::error(code, message).label(span, ""))
    }

    fn expected(&mut self, what: &str) -> Failed {
        let message = match &self.token {
            Token::Bad(why) => (*why).to_string(),
            Token::End => format!("expected {what}, found the end of the text"),
            _ => format!("expected {what}, found `{}`", &self.lexer.text[self.at.clone()]),
        };
        self.error_at(self.at.clone(), "syntax", &message)
    }

    fn takes(&mut self, text: &str) -> bool {
        let taken = match &self.token {
            Token::Word(word) => *word == text,
            Token::Symbol(symbol) => *symbol == text,
            _ => false,
        };
        if taken {
            self.bump();
        }
        taken
    }

    fn expect(&mut self, text: &str) -> Parsed<()> {
        if self.takes(text) { Ok(()) } else { Err(self.expected(&format!("`{text}`"))) }
    }

    /// Goes one level deeper.
    fn nested<T>(&mut self, what: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= MAX_DEPTH {
            return Err(self.error_at(self.at.clone(), "too-deep", "this is nested too deeply"));
        }
        self.nesting += 1;
        let result = what(self);
        self.nesting -= 1;
        result
    }

    /// The tree that was read becomes one level deeper.
    fn deepen(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_TREE_DEPTH {
            return Err(self.error_at(self.at.clone(), "too-deep", "this is nested too deeply"));
        }
        Ok(())
    }

    /// Things between commas up to a closing symbol.
    fn list<T>(
        &mut self,
        close: &str,
        mut each: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut things = Vec::new();
        while !self.takes(close) {
            if !things.is_empty() {
                self.expect(",")?;
            }
            things.push(each(self)?);
        }
        Ok(things)
    }

    fn tuple(&mut self) -> Parsed<Vec<Expr>> {
        self.expect("(")?;
        self.list(")", Self::expr)
    }

    fn regs(&mut self) -> Parsed<Vec<Reg>> {
        self.expect("(")?;
        self.list(")", Self::reg)
    }

    fn interned(&mut self, text: &str, at: Range<usize>) -> Parsed<&'static str> {
        intern(text).ok_or_else(|| {
            self.error_at(at, "too-many-names", "there is no room for more distinct names")
        })
    }

    /// A name, which may hold hyphens or stand in quotes, and where it stands.
    fn any_name(&mut self, what: &str) -> Parsed<(String, Range<usize>)> {
        let at = self.at.clone();
        if let Token::Text(text) = &self.token {
            let text = text.clone();
            self.bump();
            return Ok((text, at));
        }
        let name = name(&self.lexer.text[at.start..]);
        if name.is_empty() {
            return Err(self.expected(what));
        }
        let at = at.start..at.start + name.len();
        (self.at, self.lexer.position) = (at.clone(), at.end);
        self.bump();
        Ok((name.to_string(), at))
    }

    /// A name that is kept for the life of the process.
    fn name(&mut self, what: &str) -> Parsed<&'static str> {
        let (name, at) = self.any_name(what)?;
        self.interned(&name, at)
    }

    fn number(&mut self) -> Parsed<u128> {
        match self.token {
            Token::Number(value) | Token::Address(value, _) => {
                self.bump();
                Ok(value)
            }
            _ => Err(self.expected("a number")),
        }
    }

    /// A number that may be negative.
    fn constant(&mut self) -> Parsed<u128> {
        let negative = self.takes("-");
        let value = self.number()?;
        Ok(if negative { value.wrapping_neg() } else { value })
    }

    fn small<T: TryFrom<u128>>(&mut self) -> Parsed<T> {
        let at = self.at.clone();
        let number = self.number()?;
        T::try_from(number).map_err(|_| self.error_at(at, "number-too-large", "this is too large"))
    }

    fn width(&mut self) -> Parsed<u16> {
        let at = self.at.clone();
        match self.number()? {
            width @ 1..=128 => Ok(width as u16),
            _ => Err(self.error_at(at, "bad-width", "a width is 1 to 128 bits")),
        }
    }

    fn reg(&mut self) -> Parsed<Reg> {
        match self.token {
            Token::Word(word) if reg(word).is_some() => {
                self.bump();
                reg(word).ok_or(Failed)
            }
            _ => Err(self.expected("a register")),
        }
    }

    fn base(&mut self) -> Parsed<Base> {
        match self.token {
            Token::Word(word) if base(word).is_some() => {
                self.bump();
                base(word).ok_or(Failed)
            }
            _ => Err(self.expected("`data`, `mac`, `net`, `transport`, `anno` or `meta`")),
        }
    }

    fn header(&mut self) -> Parsed<Header> {
        let at = self.at.clone();
        match self.base()? {
            Base::Header(header) => Ok(header),
            _ => Err(self.error_at(at, "syntax", "expected `mac`, `net` or `transport`")),
        }
    }

    /// A field, the token at hand being the word it begins with.
    fn field(&mut self) -> Parsed<Field> {
        let Token::Word(word) = self.token else { return Err(self.expected("a field")) };
        let start = self.at.start;
        self.bump();
        match base(word) {
            Some(base) if self.takes("[") => {
                let offset: u16 = self.small()?;
                self.expect("+")?;
                let width = self.width()?;
                self.expect("]")?;
                if u32::from(offset) + u32::from(width) > u32::from(u16::MAX) {
                    let at = start..self.end;
                    return Err(self.error_at(at, "bad-field", "no field ends beyond bit 65535"));
                }
                return Ok(Field::bits(base, offset, width));
            }
            _ => {}
        }
        self.expect(".")?;
        if !matches!(self.token, Token::Word(_)) {
            return Err(self.expected("a field's name"));
        }
        self.bump();
        let field = &self.lexer.text[start..self.end];
        Field::named(field).ok_or_else(|| {
            let span = Span::new(self.file, start, self.end);
            let mut error =
                Diagnostic::error("unknown-field", format!("there is no field `{field}`"))
                    .label(span, "");
            if let Some(near) = nearest(field, Field::all_named().map(|(name, _)| name)) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            self.report(error)
        })
    }

    fn state_ref(&mut self) -> Parsed<StateRef> {
        if self.takes("#") {
            return self.small().map(StateRef);
        }
        let start = self.at.start;
        let name = self.name("a name of state")?;
        match self.state.iter().position(|d| d.name == name) {
            Some(i) => Ok(StateRef(i as u16)),
            None => {
                let span = Span::new(self.file, start, self.end);
                let mut error =
                    Diagnostic::error("unknown-state", format!("no state `{name}` is declared"))
                        .label(span, "");
                if let Some(near) = nearest(name, self.state.iter().map(|d| d.name)) {
                    error = error.help(format!("did you mean `{near}`?"));
                }
                Err(self.report(error))
            }
        }
    }
}

fn reg(word: &str) -> Option<Reg> {
    let digits = word.strip_prefix('r')?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok().map(Reg))?
}

fn hash_function(word: &str) -> Option<HashFunction> {
    HashFunction::ALL.iter().copied().find(|function| function.name() == word)
}

fn base(word: &str) -> Option<Base> {
    let bases = [
        Base::Data,
        Base::Header(Header::Mac),
        Base::Header(Header::Network),
        Base::Header(Header::Transport),
        Base::Annotation,
        Base::Carried,
        Base::Meta,
    ];
    bases.into_iter().find(|b| b.to_string() == word)
}
