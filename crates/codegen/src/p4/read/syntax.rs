//! The syntax of the part of P4_16 that is read.

use std::collections::HashMap;

use super::lexer::{Failure, Token, tokens};

/// Blocks and brackets within each other.
const MOST_DEPTH: usize = 96;

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitXor,
    BitAnd,
    Left,
    Right,
    Concat,
    Plus,
    Minus,
    Times,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Number(Option<u16>, u128),
    Path(Vec<String>),
    Call(Vec<String>, Vec<Expr>),
    /// Bits from the first number down to the second.
    Slice(Box<Expr>, u16, u16),
    Not(Box<Expr>),
    Invert(Box<Expr>),
    Binary(Op, Box<Expr>, Box<Expr>),
    Cast(u16, Box<Expr>),
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
}

/// A statement with its line.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Statement {
    Assign(usize, Vec<String>, Expr),
    Call(usize, Vec<String>, Vec<Expr>),
    Declare(usize, u16, String, Option<Expr>),
    If(usize, Expr, Vec<Statement>, Vec<Statement>),
}

/// What a number is compared with where a parser chooses.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Case {
    Any,
    Is(Expr),
    Masked(Expr, Expr),
    Range(Expr, Expr),
}

/// Where a state of a parser leads.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Transition {
    To(String),
    Select(Expr, Vec<(Case, String)>),
}

/// A state of a parser.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParserState {
    pub(super) line: usize,
    pub(super) name: String,
    pub(super) statements: Vec<Statement>,
    pub(super) transition: Transition,
}

/// A parameter: the name of its type, and its own.
pub(super) type Parameter = (String, String);

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bits(u16),
    Named(String),
}

/// An action.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Action {
    pub(super) name: String,
    pub(super) parameters: Vec<(String, u16)>,
    pub(super) body: Vec<Statement>,
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Table {
    pub(super) line: usize,
    pub(super) name: String,
    /// Expressions with how they are written and matched.
    pub(super) keys: Vec<(Expr, String, String)>,
    pub(super) actions: Vec<String>,
    pub(super) otherwise: Option<(String, Vec<Expr>)>,
    pub(super) size: usize,
}

/// A parser or a control.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Control {
    pub(super) line: usize,
    pub(super) parameters: Vec<Parameter>,
    pub(super) states: Vec<ParserState>,
    pub(super) variables: Vec<(String, u16)>,
    /// Counters, and how many each has.
    pub(super) counters: Vec<(String, usize)>,
    /// Units that sum up checksums.
    pub(super) checksums: Vec<String>,
    pub(super) actions: Vec<Action>,
    pub(super) tables: Vec<Table>,
    pub(super) apply: Vec<Statement>,
}

/// A program.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Source {
    pub(super) constants: HashMap<String, (u16, u128)>,
    pub(super) headers: HashMap<String, Vec<(String, Type)>>,
    pub(super) structs: HashMap<String, Vec<(String, Type)>>,
    pub(super) controls: HashMap<String, Control>,
    /// What was made, by its name: of what, from what.
    pub(super) instances: HashMap<String, (String, Vec<String>)>,
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    depth: usize,
}

type Read<T> = Result<T, Failure>;

/// Reads a program.
pub(super) fn source(text: &str) -> Read<Source> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0 };
    let mut source = Source::default();
    while parser.at < parser.tokens.len() {
        parser.top(&mut source)?;
    }
    Ok(source)
}

/// How an expression is written.
pub(super) fn written(of: &Expr) -> String {
    match of {
        Expr::Number(Some(width), value) => format!("{width}w{value}"),
        Expr::Number(None, value) => value.to_string(),
        Expr::Path(path) => path.join("."),
        Expr::Call(path, _) => format!("{}()", path.join(".")),
        Expr::Slice(of, high, low) => format!("{}[{high}:{low}]", written(of)),
        _ => String::new(),
    }
}

impl Parser {
    fn line(&self) -> usize {
        let last = self.tokens.len().saturating_sub(1);
        self.tokens.get(self.at.min(last)).map_or(1, |token| token.0)
    }

    fn fail<T>(&self, expected: &str) -> Read<T> {
        let found = match self.tokens.get(self.at) {
            Some((_, Token::Name(name))) => format!("'{name}'"),
            Some((_, Token::Number(_, value))) => value.to_string(),
            Some((_, Token::Sign(sign))) => format!("'{sign}'"),
            None => "the end".into(),
        };
        Err((self.line(), format!("{expected} was expected, not {found}")))
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at), Some((_, Token::Sign(of))) if *of == sign)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.tokens.get(self.at), Some((_, Token::Name(of))) if of == word)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.at += usize::from(is);
        is
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> Read<()> {
        if self.take(sign) { Ok(()) } else { self.fail(&format!("'{sign}'")) }
    }

    fn expect_word(&mut self, word: &str) -> Read<()> {
        if self.take_word(word) { Ok(()) } else { self.fail(&format!("'{word}'")) }
    }

    fn name(&mut self) -> Read<String> {
        match self.tokens.get(self.at) {
            Some((_, Token::Name(name))) => {
                let name = name.clone();
                self.at += 1;
                Ok(name)
            }
            _ => self.fail("a name"),
        }
    }

    fn number(&mut self) -> Read<u128> {
        match self.tokens.get(self.at) {
            Some((_, Token::Number(_, value))) => {
                let value = *value;
                self.at += 1;
                Ok(value)
            }
            _ => self.fail("a number"),
        }
    }

    fn path(&mut self) -> Read<Vec<String>> {
        let mut path = vec![self.name()?];
        while self.take(".") {
            path.push(self.name()?);
        }
        Ok(path)
    }

    /// `bit<16>`, behind `bit`.
    fn width(&mut self) -> Read<u16> {
        self.expect("<")?;
        let width = self.number()?;
        self.expect(">")?;
        match u16::try_from(width) {
            Ok(width @ 1..=128) => Ok(width),
            _ => Err((self.line(), format!("{width} is no number of bits from 1 to 128"))),
        }
    }

    fn of_type(&mut self) -> Read<Type> {
        match self.take_word("bit") {
            true => Ok(Type::Bits(self.width()?)),
            false => Ok(Type::Named(self.name()?)),
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= MOST_DEPTH {
            return Err((self.line(), "too many things are within each other".into()));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn top(&mut self, source: &mut Source) -> Read<()> {
        let line = self.line();
        let twice = |name: &str| Err((line, format!("'{name}' is declared twice")));
        if self.take_word("const") {
            self.expect_word("bit")?;
            let width = self.width()?;
            let name = self.name()?;
            self.expect("=")?;
            let value = self.number()?;
            self.expect(";")?;
            if value > u128::MAX >> (128 - width) {
                return Err((line, format!("'{name}' does not fit")));
            }
            return match source.constants.insert(name.clone(), (width, value)) {
                Some(_) => twice(&name),
                None => Ok(()),
            };
        }
        let is_header = self.is_word("header");
        if is_header || self.is_word("struct") {
            self.at += 1;
            let name = self.name()?;
            self.expect("{")?;
            let mut fields: Vec<(String, Type)> = Vec::new();
            while !self.take("}") {
                let of = self.of_type()?;
                let field = self.name()?;
                self.expect(";")?;
                if fields.iter().any(|known| known.0 == field) {
                    return twice(&field);
                }
                fields.push((field, of));
            }
            let all = if is_header { &mut source.headers } else { &mut source.structs };
            return match all.insert(name.clone(), fields) {
                Some(_) => twice(&name),
                None => Ok(()),
            };
        }
        if self.is_word("parser") || self.is_word("control") {
            self.at += 1;
            let name = self.name()?;
            let control = self.control(line)?;
            return match source.controls.insert(name.clone(), control) {
                Some(_) => twice(&name),
                None => Ok(()),
            };
        }
        // A package: what it is made from are names, with or without brackets.
        let of = self.name()?;
        self.expect("(")?;
        let mut from = Vec::new();
        while !self.take(")") {
            from.push(self.name()?);
            if self.take("(") {
                self.expect(")")?;
            }
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        let name = self.name()?;
        self.expect(";")?;
        match source.instances.insert(name.clone(), (of, from)) {
            Some(_) => twice(&name),
            None => Ok(()),
        }
    }

    fn control(&mut self, line: usize) -> Read<Control> {
        let mut control = Control { line, ..Control::default() };
        self.expect("(")?;
        while !self.take(")") {
            let _ = ["in", "out", "inout"].into_iter().any(|word| self.take_word(word));
            let of = self.name()?;
            control.parameters.push((of, self.name()?));
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        self.expect("{")?;
        while !self.take("}") {
            self.local(&mut control)?;
        }
        let mut names: Vec<&String> = control.actions.iter().map(|of| &of.name).collect();
        names.extend(control.tables.iter().map(|of| &of.name));
        names.extend(control.states.iter().map(|of| &of.name));
        names.extend(control.variables.iter().map(|of| &of.0));
        names.extend(control.counters.iter().map(|of| &of.0));
        names.extend(&control.checksums);
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        match names.len() == count {
            true => Ok(control),
            false => Err((line, "a name is declared twice in it".into())),
        }
    }

    fn local(&mut self, control: &mut Control) -> Read<()> {
        let line = self.line();
        if self.take_word("state") {
            let name = self.name()?;
            self.expect("{")?;
            let mut statements = Vec::new();
            while !self.is_word("transition") {
                statements.push(self.statement()?);
            }
            self.at += 1;
            let transition = self.transition()?;
            self.expect("}")?;
            control.states.push(ParserState { line, name, statements, transition });
            return Ok(());
        }
        if self.take_word("action") {
            let name = self.name()?;
            self.expect("(")?;
            let mut parameters = Vec::new();
            while !self.take(")") {
                self.expect_word("bit")?;
                let width = self.width()?;
                parameters.push((self.name()?, width));
                if !self.is(")") {
                    self.expect(",")?;
                }
            }
            let body = self.block()?;
            control.actions.push(Action { name, parameters, body });
            return Ok(());
        }
        if self.take_word("table") {
            let table = self.table(line)?;
            control.tables.push(table);
            return Ok(());
        }
        if self.take_word("apply") {
            control.apply = self.block()?;
            return Ok(());
        }
        if self.take_word("bit") {
            let width = self.width()?;
            control.variables.push((self.name()?, width));
            return self.expect(";");
        }
        if self.take_word("counter") {
            self.expect("(")?;
            let count = self.number()?;
            self.expect(",")?;
            self.path()?;
            self.expect(")")?;
            control.counters.push((self.name()?, usize::try_from(count).unwrap_or(usize::MAX)));
            return self.expect(";");
        }
        if self.take_word("Checksum") {
            self.expect("(")?;
            self.expect(")")?;
            control.checksums.push(self.name()?);
            return self.expect(";");
        }
        if self.take_word("Counter") {
            self.expect("<")?;
            self.of_type()?;
            self.expect(",")?;
            // Two brackets that close together are one word.
            self.expect_word("bit")?;
            self.expect("<")?;
            self.number()?;
            if !self.take(">>") {
                self.expect(">")?;
                self.expect(">")?;
            }
            self.expect("(")?;
            let count = self.number()?;
            self.expect(",")?;
            self.path()?;
            self.expect(")")?;
            control.counters.push((self.name()?, usize::try_from(count).unwrap_or(usize::MAX)));
            return self.expect(";");
        }
        self.fail("a state, an action, a table, a variable, a counter, a checksum or 'apply'")
    }

    fn transition(&mut self) -> Read<Transition> {
        if !self.take_word("select") {
            let to = self.name()?;
            self.expect(";")?;
            return Ok(Transition::To(to));
        }
        self.expect("(")?;
        let on = self.expression()?;
        self.expect(")")?;
        self.expect("{")?;
        let mut cases = Vec::new();
        while !self.take("}") {
            let case = if self.take_word("default") || self.take_word("_") {
                Case::Any
            } else {
                let low = self.operand()?;
                if self.take("&&&") {
                    Case::Masked(low, self.operand()?)
                } else if self.take("..") {
                    Case::Range(low, self.operand()?)
                } else {
                    Case::Is(low)
                }
            };
            self.expect(":")?;
            cases.push((case, self.name()?));
            self.expect(";")?;
        }
        Ok(Transition::Select(on, cases))
    }

    fn table(&mut self, line: usize) -> Read<Table> {
        let name = self.name()?;
        let mut table = Table {
            line,
            name,
            keys: Vec::new(),
            actions: Vec::new(),
            otherwise: None,
            size: 1024,
        };
        self.expect("{")?;
        while !self.take("}") {
            if self.take_word("key") {
                self.expect("=")?;
                self.expect("{")?;
                while !self.take("}") {
                    let of = self.expression()?;
                    self.expect(":")?;
                    let kind = self.name()?;
                    self.expect(";")?;
                    let text = written(&of);
                    table.keys.push((of, text, kind));
                }
            } else if self.take_word("actions") {
                self.expect("=")?;
                self.expect("{")?;
                while !self.take("}") {
                    table.actions.push(self.name()?);
                    self.expect(";")?;
                }
            } else if self.take_word("default_action") {
                self.expect("=")?;
                let action = self.name()?;
                let arguments = if self.is("(") { self.arguments()? } else { Vec::new() };
                table.otherwise = Some((action, arguments));
                self.expect(";")?;
            } else if self.take_word("size") {
                self.expect("=")?;
                table.size = usize::try_from(self.number()?).unwrap_or(usize::MAX);
                self.expect(";")?;
            } else {
                return self.fail("'key', 'actions', 'default_action' or 'size'");
            }
        }
        Ok(table)
    }

    fn block(&mut self) -> Read<Vec<Statement>> {
        self.expect("{")?;
        let mut all = Vec::new();
        while !self.take("}") {
            all.push(self.statement()?);
        }
        Ok(all)
    }

    fn statement(&mut self) -> Read<Statement> {
        let line = self.line();
        if self.take_word("if") {
            return self.deeper(|this| this.branches(line));
        }
        if self.take_word("bit") {
            let width = self.width()?;
            let name = self.name()?;
            let value = if self.take("=") { Some(self.expression()?) } else { None };
            self.expect(";")?;
            return Ok(Statement::Declare(line, width, name, value));
        }
        let path = self.path()?;
        if self.is("(") {
            let arguments = self.arguments()?;
            self.expect(";")?;
            return Ok(Statement::Call(line, path, arguments));
        }
        self.expect("=")?;
        let value = self.expression()?;
        self.expect(";")?;
        Ok(Statement::Assign(line, path, value))
    }

    fn branches(&mut self, line: usize) -> Read<Statement> {
        self.expect("(")?;
        let when = self.expression()?;
        self.expect(")")?;
        let yes = self.block()?;
        let mut no = Vec::new();
        if self.take_word("else") {
            no = match self.is_word("if") {
                true => vec![self.statement()?],
                false => self.block()?,
            };
        }
        Ok(Statement::If(line, when, yes, no))
    }

    fn arguments(&mut self) -> Read<Vec<Expr>> {
        self.expect("(")?;
        let mut all = Vec::new();
        while !self.take(")") {
            all.push(self.expression()?);
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        Ok(all)
    }

    pub(super) fn expression(&mut self) -> Read<Expr> {
        self.deeper(|this| {
            let when = this.binary(0)?;
            if !this.take("?") {
                return Ok(when);
            }
            let yes = this.expression()?;
            this.expect(":")?;
            let no = this.expression()?;
            Ok(Expr::Choose(Box::new(when), Box::new(yes), Box::new(no)))
        })
    }

    /// Operators, those that bind least first.
    fn binary(&mut self, level: usize) -> Read<Expr> {
        const LEVELS: [&[(&str, Op)]; 10] = [
            &[("||", Op::Or)],
            &[("&&", Op::And)],
            &[("==", Op::Equal), ("!=", Op::Unequal)],
            &[("<=", Op::LessEqual), (">=", Op::GreaterEqual), ("<", Op::Less), (">", Op::Greater)],
            &[("|", Op::BitOr)],
            &[("^", Op::BitXor)],
            &[("&", Op::BitAnd)],
            &[("<<", Op::Left), (">>", Op::Right)],
            &[("++", Op::Concat), ("+", Op::Plus), ("-", Op::Minus)],
            &[("*", Op::Times)],
        ];
        let Some(signs) = LEVELS.get(level) else { return self.operand() };
        let mut left = self.binary(level + 1)?;
        let mut count = 0;
        while let Some((_, op)) = signs.iter().find(|(sign, _)| self.is(sign)) {
            self.at += 1;
            count += 1;
            if count > 4096 {
                return Err((self.line(), "an expression is too long".into()));
            }
            let right = self.binary(level + 1)?;
            left = Expr::Binary(*op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn operand(&mut self) -> Read<Expr> {
        self.deeper(|this| {
            if this.take("!") {
                return Ok(Expr::Not(Box::new(this.operand()?)));
            }
            if this.take("~") {
                return Ok(Expr::Invert(Box::new(this.operand()?)));
            }
            let mut of = this.primary()?;
            while this.take("[") {
                let high = this.number()?;
                this.expect(":")?;
                let low = this.number()?;
                this.expect("]")?;
                let fits = high < 128 && low <= high;
                if !fits {
                    return Err((this.line(), "these bits are none".into()));
                }
                of = Expr::Slice(Box::new(of), high as u16, low as u16);
            }
            Ok(of)
        })
    }

    fn primary(&mut self) -> Read<Expr> {
        if let Some((_, Token::Number(width, value))) = self.tokens.get(self.at) {
            let of = Expr::Number(*width, *value);
            self.at += 1;
            return Ok(of);
        }
        if self.take("{") {
            let mut all = Vec::new();
            while !self.take("}") {
                all.push(self.expression()?);
                if !self.is("}") {
                    self.expect(",")?;
                }
            }
            return Ok(Expr::List(all));
        }
        if self.take("(") {
            if self.take_word("bit") {
                let width = self.width()?;
                self.expect(")")?;
                return Ok(Expr::Cast(width, Box::new(self.operand()?)));
            }
            let of = self.expression()?;
            self.expect(")")?;
            return Ok(of);
        }
        let path = self.path()?;
        match self.is("(") {
            true => Ok(Expr::Call(path, self.arguments()?)),
            false => Ok(Expr::Path(path)),
        }
    }
}
