//! Models, their state, blocks and operations.

use std::sync::Arc;

use super::super::lexer::Token;
use super::{Failed, MAX_ERRORS, Parsed, Parser, reg};
use crate::diagnostic::{Diagnostic, Span, nearest};
use crate::model::{
    Block, Expr, FlowSide, Model, Op, Reason, Rule, StateDecl, StateKind, StateRef,
};
use crate::{PrefixEntry, PrefixTable};

impl Parser<'_> {
    pub(super) fn model(&mut self) -> Parsed<Model> {
        while self.takes("state") {
            let declared = self.state_decl()?;
            self.state.push(declared);
            if self.state.len() > usize::from(u16::MAX) {
                return Err(self.error_at(self.at.clone(), "too-much-state", "too much state"));
            }
        }
        let mut inputs = Vec::new();
        while self.takes("input") {
            let at = self.at.clone();
            if self.number()? != inputs.len() as u128 {
                let message = format!("expected input {}: inputs come in order", inputs.len());
                self.error_at(at, "input-order", &message);
            }
            inputs.push(self.block()?);
        }
        Ok(Model { state: std::mem::take(&mut self.state), inputs })
    }

    fn state_decl(&mut self) -> Parsed<StateDecl> {
        let name = self.name("a name")?;
        let mut owner = None;
        if self.takes("of") {
            let Token::Text(text) = &self.token else { return Err(self.expected("a quoted name")) };
            owner = Some(text.clone());
            self.bump();
        }
        self.expect(":")?;
        let kind = if self.takes("counter") {
            StateKind::Counter
        } else if self.takes("flows") {
            let capacity = self.small()?;
            let widths = if self.takes("[") { self.list("]", Self::width)? } else { Vec::new() };
            StateKind::Flows { capacity, widths }
        } else if self.takes("cells") {
            let width = self.width()?;
            self.expect("[")?;
            StateKind::Cells { width, initial: self.list("]", Self::constant)? }
        } else {
            return Err(self.expected("`counter`, `cells` or `flows`"));
        };
        Ok(StateDecl { owner, name, kind })
    }

    fn block(&mut self) -> Parsed<Block> {
        self.expect("{")?;
        self.nested(|p| {
            let mut ops = Vec::new();
            while !p.takes("}") {
                match p.op() {
                    Ok(op) => ops.push(op),
                    Err(Failed) => p.recover()?,
                }
            }
            Ok(ops)
        })
    }

    /// After an error: goes on at the next operation that begins a line of this block.
    fn recover(&mut self) -> Parsed<()> {
        let mut braces = 0;
        while self.errors.len() < MAX_ERRORS && self.errors.iter().all(|e| e.code != "too-deep") {
            let first_of_line = self.lexer.text[self.end..self.at.start].contains('\n');
            match self.token {
                Token::End => return Err(Failed),
                Token::Symbol("}") if braces == 0 => return Ok(()),
                Token::Symbol("}") => braces -= 1,
                Token::Symbol("{") => braces += 1,
                Token::Word(word)
                    if braces == 0 && first_of_line && !CONTINUATIONS.contains(&word) =>
                {
                    return Ok(());
                }
                _ => {}
            }
            self.bump();
        }
        Err(Failed)
    }

    fn otherwise(&mut self) -> Parsed<Block> {
        if !self.takes("else") {
            return Ok(Vec::new());
        }
        if matches!(self.token, Token::Word("if")) {
            return Ok(vec![self.nested(Self::op)?]);
        }
        self.block()
    }

    fn op(&mut self) -> Parsed<Op> {
        let Token::Word(word) = self.token else { return Err(self.expected("an operation")) };
        if let Some(reg) = reg(word) {
            self.bump();
            self.expect("=")?;
            return Ok(Op::Let(reg, self.expr()?));
        }
        if !OPERATIONS.contains(&word) {
            let mut error = Diagnostic::error(
                "unknown-operation",
                format!("expected an operation, found `{word}`"),
            )
            .label(Span::new(self.file, self.at.start, self.at.end), "");
            if let Some(near) = nearest(word, OPERATIONS.iter().copied()) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            self.bump();
            return Err(self.report(error));
        }
        self.bump();
        Ok(match word {
            "set" => {
                let field = self.field()?;
                self.expect("=")?;
                Op::Set(field, self.expr()?)
            }
            "store" => {
                self.expect("(")?;
                let (base, offset, width) = self.place()?;
                self.expect(")")?;
                self.expect("=")?;
                Op::Store { base, offset, width, value: self.expr()? }
            }
            "if" => {
                let cond = self.cond()?;
                let then = self.block()?;
                Op::If(cond, then, self.otherwise()?)
            }
            "match" => self.match_op()?,
            "lookup" => self.lookup()?,
            "repeat" => {
                let limit = self.small()?;
                Op::Repeat { limit, body: self.block()? }
            }
            "break" => Op::Break,
            "expect" => Op::Expect(self.cond()?),
            "pull" => Op::Pull(self.expr()?),
            "truncate" => Op::Truncate(self.expr()?),
            "extend" => Op::Extend(self.expr()?),
            "mark" => {
                let header = self.header()?;
                self.expect("at")?;
                Op::Mark(header, self.expr()?)
            }
            "unmark" => Op::Unmark(self.header()?),
            "fresh" => Op::Fresh,
            "count" => Op::Count(self.state_ref()?),
            "read" => {
                let reg = self.reg()?;
                self.expect("=")?;
                let (state, index) = self.cell()?;
                Op::Read(reg, state, index)
            }
            "write" => {
                let (state, index) = self.cell()?;
                self.expect("=")?;
                Op::Write(state, index, self.expr()?)
            }
            "note" => Op::Note(Reason(self.name("a reason")?)),
            "copy" => Op::EmitCopy(self.expr()?),
            "emit" => Op::Emit(self.expr()?),
            "drop" => Op::Drop(Reason(self.name("a reason")?)),
            "opaque" => Op::Opaque(self.name("a reason")?),
            _ => self.flow_op(word)?,
        })
    }

    fn cell(&mut self) -> Parsed<(StateRef, Expr)> {
        let state = self.state_ref()?;
        self.expect("[")?;
        let index = self.expr()?;
        self.expect("]")?;
        Ok((state, index))
    }

    fn match_op(&mut self) -> Parsed<Op> {
        self.expect("{")?;
        let mut rules = Vec::new();
        while self.takes("rule") {
            let when = self.cond()?;
            self.expect("=>")?;
            let arm = self.small()?;
            let mut text: Arc<str> = "".into();
            if let Token::Text(written) = &self.token {
                text = written.as_str().into();
                self.bump();
            }
            rules.push(Rule { when: when.into(), arm, text, span: None });
        }
        let mut arms = Vec::new();
        while self.takes("arm") {
            let at = self.at.clone();
            if self.number()? != arms.len() as u128 {
                let message = format!("expected arm {}: arms come in order", arms.len());
                self.error_at(at, "arm-order", &message);
            }
            arms.push(self.block()?);
        }
        let otherwise = self.otherwise()?;
        self.expect("}")?;
        Ok(Op::Match { rules: rules.into(), arms, otherwise })
    }

    fn lookup(&mut self) -> Parsed<Op> {
        let key = self.expr()?;
        self.expect("width")?;
        let width = self.width()?;
        self.expect("bind")?;
        let bind = self.regs()?;
        self.expect("{")?;
        let mut entries = Vec::new();
        while !self.takes("}") {
            let prefix = self.number()?;
            self.expect("/")?;
            let length = self.small()?;
            self.expect("=>")?;
            self.expect("(")?;
            let row = self.list(")", Self::constant)?;
            entries.push(PrefixEntry { prefix, length, row: row.into(), span: None });
        }
        let table = Arc::new(PrefixTable::new(width, entries));
        Ok(Op::Lookup { table, key, bind, miss: self.otherwise()? })
    }

    fn side(&mut self) -> Parsed<FlowSide> {
        let key = self.tuple()?;
        self.expect("=>")?;
        Ok(FlowSide { key, value: self.tuple()? })
    }

    /// `expiry …` and `guarantee …`
    fn times(&mut self) -> Parsed<(Expr, Expr)> {
        self.expect("expiry")?;
        let expiry = self.expr()?;
        self.expect("guarantee")?;
        Ok((expiry, self.expr()?))
    }

    fn flow_op(&mut self, word: &str) -> Parsed<Op> {
        if word == "allocate" {
            let bind = self.reg()?;
            self.expect("in")?;
            let low = self.number()?;
            self.expect("..")?;
            let range = (low, self.number()?);
            self.expect("from")?;
            let start = self.expr()?;
            self.expect("unless")?;
            let flows = self.state_ref()?;
            let key = self.tuple()?;
            return Ok(Op::Allocate {
                bind,
                range,
                start,
                flows,
                key,
                exhausted: self.otherwise()?,
            });
        }
        let flows = self.state_ref()?;
        Ok(match word {
            "find" => {
                let key = self.tuple()?;
                self.expect("bind")?;
                let value = self.regs()?;
                self.expect("common")?;
                let common = self.regs()?;
                Op::FlowLookup { flows, key, value, common, miss: self.otherwise()? }
            }
            "update" => {
                let key = self.tuple()?;
                self.expect("common")?;
                let common = self.tuple()?;
                let (expiry, guarantee) = self.times()?;
                Op::FlowUpdate { flows, key, common, expiry, guarantee }
            }
            _ => {
                self.expect("forward")?;
                let forward = self.side()?;
                self.expect("reverse")?;
                let reverse = self.side()?;
                self.expect("common")?;
                let common = self.tuple()?;
                let (expiry, guarantee) = self.times()?;
                let full = self.otherwise()?;
                Op::FlowInsert { flows, forward, reverse, common, expiry, guarantee, full }
            }
        })
    }
}

const OPERATIONS: &[&str] = &[
    "set", "store", "if", "match", "lookup", "repeat", "break", "expect", "pull", "truncate",
    "extend", "mark", "unmark", "fresh", "count", "read", "write", "note", "copy", "emit", "drop",
    "opaque", "find", "update", "insert", "allocate",
];

/// What may begin a line without beginning an operation.
const CONTINUATIONS: &[&str] = &["rule", "arm", "else", "forward", "reverse", "common"];
