//! Numbers, conditions and sets.

use super::super::lexer::Token;
use super::super::print::level;
use super::{Parsed, Parser, hash_function, reg};
use crate::field::Base;
use crate::interval::IntervalSet;
use crate::model::{BinaryOp, CompareOp, Cond, Expr};

/// What an operand turned out to be.
enum Term {
    Number(Expr),
    Cond(Cond),
}

impl<'a> Parser<'a> {
    pub(super) fn set(&mut self) -> Parsed<IntervalSet> {
        self.expect("{")?;
        let intervals = self.list("}", |p| {
            let (at, token) = (p.at.clone(), p.token.clone());
            let low = p.number()?;
            if p.takes("..") {
                return Ok((low, p.number()?));
            } else if p.takes("/") {
                let length: u16 = p.small()?;
                return match token {
                    Token::Address(_, width) if length <= width => {
                        let prefix = IntervalSet::prefix(width, low, length);
                        Ok(prefix.intervals().first().copied().unwrap_or((low, low)))
                    }
                    _ => Err(p.error_at(at.start..p.end, "bad-prefix", "this is not a prefix")),
                };
            }
            Ok((low, low))
        })?;
        Ok(IntervalSet::from_intervals(intervals))
    }

    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        let at = self.at.start;
        let term = self.nested(|p| p.binary(level::NUMBER))?;
        self.as_number(term, at)
    }

    pub(super) fn cond(&mut self) -> Parsed<Cond> {
        let at = self.at.start;
        let term = self.nested(|p| p.binary(level::OR))?;
        self.as_cond(term, at)
    }

    fn as_number(&mut self, term: Term, start: usize) -> Parsed<Expr> {
        match term {
            Term::Number(expr) => Ok(expr),
            Term::Cond(_) => {
                let message = "expected a number, found a condition";
                Err(self.error_at(start..self.end, "syntax", message))
            }
        }
    }

    fn as_cond(&mut self, term: Term, start: usize) -> Parsed<Cond> {
        match term {
            Term::Cond(cond) => Ok(cond),
            Term::Number(_) => {
                let message = "expected a condition, found a number";
                Err(self.error_at(start..self.end, "syntax", message))
            }
        }
    }

    /// Operands and operators that bind at least so tightly.
    fn binary(&mut self, least: u8) -> Parsed<Term> {
        let start = self.at.start;
        let around = std::mem::take(&mut self.depth);
        let mut term = self.unary()?;
        loop {
            let symbol = match self.token {
                Token::Symbol(symbol) => symbol,
                Token::Word("in") => "in",
                Token::Word("not") => "not",
                _ => break,
            };
            let operator = BINARY.iter().filter_map(|op| Some((*op, op.operator()?)));
            let mut operator = operator.filter(|(_, of)| of.0 == symbol && least <= of.1);
            if let Some((op, (_, level))) = operator.next() {
                self.bump();
                let a = self.as_number(term, start)?;
                let at = self.at.start;
                let b = self.nested(|p| p.binary(level + 1))?;
                let b = self.as_number(b, at)?;
                term = Term::Number(Expr::Binary(op, Box::new(a), Box::new(b)));
                // A chain of operators is a tree that leans to the left: each step adds to it.
                self.deepen()?;
            } else if symbol == "&&" && least <= level::AND {
                let mut all = vec![self.as_cond(term, start)?];
                self.chain("&&", level::COMPARE, &mut all)?;
                term = Term::Cond(Cond::All(all));
            } else if symbol == "||" && least <= level::OR {
                let mut any = vec![self.as_cond(term, start)?];
                self.chain("||", level::AND, &mut any)?;
                term = Term::Cond(Cond::Any(any));
            } else if least <= level::COMPARE
                && let Some(relation) = relation(symbol)
            {
                self.bump();
                let a = self.as_number(term, start)?;
                term = Term::Cond(self.related(a, relation)?);
            } else {
                break;
            }
        }
        self.deepen()?;
        self.depth = self.depth.max(around);
        Ok(term)
    }

    fn chain(&mut self, symbol: &str, level: u8, conds: &mut Vec<Cond>) -> Parsed<()> {
        while self.takes(symbol) {
            let start = self.at.start;
            let term = self.nested(|p| p.binary(level))?;
            conds.push(self.as_cond(term, start)?);
        }
        Ok(())
    }

    /// What stands to the right of a relation.
    fn related(&mut self, a: Expr, relation: Relation) -> Parsed<Cond> {
        let op = match relation {
            Relation::In => return Ok(Cond::Test(a, self.set()?)),
            Relation::NotIn => {
                self.expect("in")?;
                return Ok(Cond::Not(Box::new(Cond::Test(a, self.set()?))));
            }
            Relation::Compare(op) => op,
        };
        let start = self.at.start;
        let b = self.nested(|p| p.binary(level::NUMBER))?;
        let b = self.as_number(b, start)?;
        Ok(match (op, b) {
            (CompareOp::Eq, b) => a.eq(b),
            (CompareOp::Ne, b @ Expr::Const(_)) => a.ne(b),
            (CompareOp::Lt, b @ Expr::Const(_)) => a.lt(b),
            (CompareOp::Le, b @ Expr::Const(_)) => a.le(b),
            (CompareOp::Gt, b @ Expr::Const(_)) => a.gt(b),
            (CompareOp::Ge, b @ Expr::Const(_)) => a.ge(b),
            (op, b) => Cond::Compare(op, a, b),
        })
    }

    fn unary(&mut self) -> Parsed<Term> {
        if self.takes("!") {
            let start = self.at.start;
            let term = self.nested(Self::unary)?;
            self.deepen()?;
            return Ok(Term::Cond(Cond::Not(Box::new(self.as_cond(term, start)?))));
        } else if self.takes("(") {
            let term = self.nested(|p| p.binary(level::OR))?;
            self.expect(")")?;
            return Ok(term);
        }
        match self.token {
            Token::Number(_) | Token::Address(..) | Token::Symbol("-") => {
                Ok(Term::Number(Expr::Const(self.constant()?)))
            }
            Token::Word(word) => self.function(word),
            _ => Err(self.expected("a number or a condition")),
        }
    }

    /// What begins with a word.
    fn function(&mut self, word: &'a str) -> Parsed<Term> {
        if let Some(reg) = reg(word) {
            self.bump();
            return Ok(Term::Number(Expr::Reg(reg)));
        }
        if let Some(function) = hash_function(word) {
            self.bump();
            self.expect("(")?;
            return Ok(Term::Number(Expr::Hash(function, self.list(")", Self::expr)?)));
        }
        let known = FUNCTIONS.contains(&word);
        if !known {
            return Ok(Term::Number(Expr::Field(self.field()?)));
        }
        self.bump();
        match word {
            "true" => return Ok(Term::Cond(Cond::Const(true))),
            "false" => return Ok(Term::Cond(Cond::Const(false))),
            "now" => return Ok(Term::Number(Expr::Now)),
            _ => self.expect("(")?,
        }
        Ok(match word {
            "all" => Term::Cond(Cond::All(self.list(")", Self::cond)?)),
            "any" => Term::Cond(Cond::Any(self.list(")", Self::cond)?)),
            "exists" => {
                let flows = self.state_ref()?;
                let more = self.takes(",");
                let key = if more { self.list(")", Self::expr)? } else { Vec::new() };
                if !more {
                    self.expect(")")?;
                }
                Term::Cond(Cond::FlowExists(flows, key))
            }
            _ => {
                let term = self.call(word)?;
                self.expect(")")?;
                term
            }
        })
    }

    /// The arguments of a function that has a fixed number of them.
    fn call(&mut self, word: &str) -> Parsed<Term> {
        Ok(Term::Number(match word {
            "min" | "max" => {
                let a = self.expr()?;
                self.expect(",")?;
                let b = self.expr()?;
                if word == "min" { a.min(b) } else { a.max(b) }
            }
            "choose" => {
                let cond = self.cond()?;
                self.expect(",")?;
                let then = self.expr()?;
                self.expect(",")?;
                Expr::choose(cond, then, self.expr()?)
            }
            "fold16" => self.expr()?.fold16(),
            "load" => {
                let (base, offset, width) = self.place()?;
                Expr::load(base, offset, width)
            }
            "sum16" | "bytesum" => {
                let base = self.base()?;
                self.expect(",")?;
                let offset = self.expr()?;
                self.expect(",")?;
                let length = Box::new(self.expr()?);
                let offset = Box::new(offset);
                if word == "sum16" {
                    Expr::Sum16 { base, offset, length }
                } else {
                    Expr::ByteSum { base, offset, length }
                }
            }
            "position" => Expr::Position(self.header()?),
            "random" => {
                let low = self.number()?;
                self.expect(",")?;
                Expr::Random(low, self.number()?)
            }
            _ => return Ok(Term::Cond(self.comparison()?)),
        }))
    }

    /// `net, r0 + 2, 16`
    pub(super) fn place(&mut self) -> Parsed<(Base, Expr, u16)> {
        let base = self.base()?;
        self.expect(",")?;
        let offset = self.expr()?;
        self.expect(",")?;
        Ok((base, offset, self.width()?))
    }

    /// `a < 6`, kept as a comparison.
    fn comparison(&mut self) -> Parsed<Cond> {
        let a = self.expr()?;
        let symbol = if let Token::Symbol(symbol) = self.token { symbol } else { "" };
        let Some(Relation::Compare(op)) = relation(symbol) else {
            return Err(self.expected("a comparison"));
        };
        self.bump();
        Ok(Cond::Compare(op, a, self.expr()?))
    }
}

const FUNCTIONS: &[&str] = &[
    "true", "false", "now", "all", "any", "exists", "min", "max", "choose", "load", "fold16",
    "sum16", "bytesum", "position", "random", "compare",
];

const BINARY: [BinaryOp; 10] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Shl,
    BinaryOp::Shr,
];

enum Relation {
    In,
    NotIn,
    Compare(CompareOp),
}

fn relation(symbol: &str) -> Option<Relation> {
    let ops =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];
    match symbol {
        "in" => Some(Relation::In),
        "not" => Some(Relation::NotIn),
        _ => ops.into_iter().find(|op| op.operator() == symbol).map(Relation::Compare),
    }
}
