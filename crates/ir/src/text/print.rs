//! Printing.

use std::fmt::{self, Display, Formatter, Write};

use super::lexer::is_word;
use crate::field::Base;
use crate::model::{
    BinaryOp, Block, CompareOp, Cond, Expr, FlowSide, Model, Op, Reason, Reg, StateDecl, StateKind,
    StateRef,
};
use crate::notation::{Notation, Number, Numbers};

/// How tightly the operators bind; the parser reads them by the same table.
pub(crate) mod level {
    pub(crate) const OR: u8 = 1;
    pub(crate) const AND: u8 = 2;
    pub(crate) const COMPARE: u8 = 3;
    pub(crate) const NUMBER: u8 = 4;
    pub(crate) const UNARY: u8 = 9;
}

impl BinaryOp {
    /// The operator and how tightly it binds; `None` for those that are written as functions.
    pub(crate) fn operator(self) -> Option<(&'static str, u8)> {
        Some(match self {
            BinaryOp::Or => ("|", level::NUMBER),
            BinaryOp::Xor => ("^", 5),
            BinaryOp::And => ("&", 6),
            BinaryOp::Shl => ("<<", 7),
            BinaryOp::Shr => (">>", 7),
            BinaryOp::Add => ("+", 8),
            BinaryOp::Sub => ("-", 8),
            BinaryOp::Mul => ("*", level::UNARY),
            BinaryOp::Div => ("/", level::UNARY),
            BinaryOp::Rem => ("%", level::UNARY),
            BinaryOp::Min | BinaryOp::Max => return None,
        })
    }
}

impl CompareOp {
    pub(crate) fn operator(self) -> &'static str {
        match self {
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }
}

/// Small negative numbers in two's complement are written as such.
const MOST_NEGATIVE: i128 = -65536;

pub(crate) struct Constant(pub(crate) u128);

impl Display for Constant {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 as i128 {
            negative @ MOST_NEGATIVE..0 => write!(f, "{negative}"),
            _ => write!(f, "{}", self.0),
        }
    }
}

impl Display for Reg {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// A name, in quotes if it could be mistaken for something else.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_word(self.0) { f.write_str(self.0) } else { write!(f, "{:?}", self.0) }
    }
}

struct Printer<'a, 'f, 'b> {
    f: &'a mut Formatter<'f>,
    state: &'b [StateDecl],
    indent: usize,
}

impl Printer<'_, '_, '_> {
    fn put(&mut self, thing: impl Display) -> fmt::Result {
        write!(self.f, "{thing}")
    }

    fn list<T>(
        &mut self,
        things: &[T],
        mut each: impl FnMut(&mut Self, &T) -> fmt::Result,
    ) -> fmt::Result {
        things.iter().enumerate().try_for_each(|(i, thing)| {
            self.put(if i == 0 { "" } else { ", " })?;
            each(self, thing)
        })
    }

    fn exprs(&mut self, exprs: &[Expr]) -> fmt::Result {
        self.list(exprs, |p, e| p.expr(e, level::NUMBER))
    }

    /// `(a, b)`
    fn tuple(&mut self, exprs: &[Expr]) -> fmt::Result {
        self.put("(")?;
        self.exprs(exprs)?;
        self.put(")")
    }

    fn regs(&mut self, regs: &[Reg]) -> fmt::Result {
        self.put("(")?;
        self.list(regs, |p, r| p.put(r))?;
        self.put(")")
    }

    fn state_ref(&mut self, state: StateRef) -> fmt::Result {
        let same = |name| self.state.iter().filter(|d| d.name == name).count() > 1;
        match self.state.get(usize::from(state.0)) {
            Some(d) if is_word(d.name) && !same(d.name) => self.put(d.name),
            _ => write!(self.f, "#{}", state.0),
        }
    }

    /// A call of a function on bytes.
    fn bytes(&mut self, function: &str, base: Base, args: &[&Expr]) -> fmt::Result {
        write!(self.f, "{function}({base}")?;
        for arg in args {
            self.put(", ")?;
            self.expr(arg, level::NUMBER)?;
        }
        self.put(")")
    }

    fn expr(&mut self, expr: &Expr, least: u8) -> fmt::Result {
        match expr {
            Expr::Const(value) => self.put(Constant(*value)),
            Expr::Field(field) => self.put(field),
            Expr::Reg(reg) => self.put(reg),
            Expr::Load { base, offset, width } => {
                self.bytes("load", *base, &[offset, &Expr::Const(u128::from(*width))])
            }
            Expr::Position(header) => write!(self.f, "position({})", Base::Header(*header)),
            Expr::Binary(op, a, b) => match op.operator() {
                Some((operator, level)) => {
                    self.put(if level < least { "(" } else { "" })?;
                    self.expr(a, level)?;
                    write!(self.f, " {operator} ")?;
                    self.expr(b, level + 1)?;
                    self.put(if level < least { ")" } else { "" })
                }
                None => {
                    self.put(if *op == BinaryOp::Min { "min(" } else { "max(" })?;
                    self.expr(a, level::NUMBER)?;
                    self.put(", ")?;
                    self.expr(b, level::NUMBER)?;
                    self.put(")")
                }
            },
            Expr::Choose(cond, then, otherwise) => {
                self.put("choose(")?;
                self.cond(cond, level::OR)?;
                self.put(", ")?;
                self.expr(then, level::NUMBER)?;
                self.put(", ")?;
                self.expr(otherwise, level::NUMBER)?;
                self.put(")")
            }
            Expr::Sum16 { base, offset, length } => self.bytes("sum16", *base, &[offset, length]),
            Expr::ByteSum { base, offset, length } => {
                self.bytes("bytesum", *base, &[offset, length])
            }
            Expr::Fold16(sum) => {
                self.put("fold16(")?;
                self.expr(sum, level::NUMBER)?;
                self.put(")")
            }
            Expr::Hash(function, numbers) => {
                self.put(function.name())?;
                self.tuple(numbers)
            }
            Expr::Now => self.put("now"),
            Expr::Random(low, high) => write!(self.f, "random({low}, {high})"),
        }
    }

    /// `a == 6`, `a in {…}` or the opposite.
    fn test(&mut self, cond: &Cond, holds: bool) -> fmt::Result {
        let Cond::Test(expr, set) = cond else { return self.cond(cond, level::OR) };
        let notation = match expr {
            Expr::Field(field) => Notation::of(*field),
            _ => Notation::Decimal,
        };
        self.expr(expr, level::NUMBER)?;
        match set.as_single() {
            Some(value) => {
                self.put(if holds { " == " } else { " != " })?;
                self.constant(notation, value)
            }
            None => {
                self.put(if holds { " in " } else { " not in " })?;
                self.put(Numbers(notation, set))
            }
        }
    }

    fn constant(&mut self, notation: Notation, value: u128) -> fmt::Result {
        match notation {
            Notation::Decimal => self.put(Constant(value)),
            _ => self.put(Number(notation, value)),
        }
    }

    fn conds(&mut self, conds: &[Cond]) -> fmt::Result {
        self.list(conds, |p, c| p.cond(c, level::OR))?;
        self.put(")")
    }

    fn cond(&mut self, cond: &Cond, least: u8) -> fmt::Result {
        let own = match cond {
            Cond::Any(any) if any.len() > 1 => level::OR,
            Cond::All(all) if all.len() > 1 => level::AND,
            Cond::Compare(_, _, Expr::Const(_)) => level::UNARY,
            Cond::Test(..) | Cond::Compare(..) => level::COMPARE,
            Cond::Not(inner) if matches!(**inner, Cond::Test(..)) => level::COMPARE,
            _ => level::UNARY,
        };
        self.put(if own < least { "(" } else { "" })?;
        match cond {
            Cond::Const(value) => self.put(value)?,
            Cond::Test(..) => self.test(cond, true)?,
            Cond::Not(inner) if matches!(**inner, Cond::Test(..)) => self.test(inner, false)?,
            Cond::Not(inner) => {
                self.put("!")?;
                self.cond(inner, level::UNARY)?;
            }
            Cond::Compare(op, a, b) => {
                let constant = matches!(b, Expr::Const(_));
                self.put(if constant { "compare(" } else { "" })?;
                self.expr(a, level::NUMBER)?;
                write!(self.f, " {} ", op.operator())?;
                self.expr(b, level::NUMBER)?;
                self.put(if constant { ")" } else { "" })?;
            }
            Cond::All(all) if all.len() > 1 => {
                for (i, cond) in all.iter().enumerate() {
                    self.put(if i == 0 { "" } else { " && " })?;
                    self.cond(cond, level::COMPARE)?;
                }
            }
            Cond::Any(any) if any.len() > 1 => {
                for (i, cond) in any.iter().enumerate() {
                    self.put(if i == 0 { "" } else { " || " })?;
                    self.cond(cond, level::AND)?;
                }
            }
            Cond::All(all) => {
                self.put("all(")?;
                self.conds(all)?;
            }
            Cond::Any(any) => {
                self.put("any(")?;
                self.conds(any)?;
            }
            Cond::FlowExists(flows, key) => {
                self.put("exists(")?;
                self.state_ref(*flows)?;
                self.put(if key.is_empty() { "" } else { ", " })?;
                self.exprs(key)?;
                self.put(")")?;
            }
        }
        self.put(if own < least { ")" } else { "" })
    }

    fn line(&mut self) -> fmt::Result {
        self.put("\n")?;
        (0..self.indent).try_for_each(|_| self.put("  "))
    }

    /// ` {`, the operations, `}`.
    fn block(&mut self, block: &Block) -> fmt::Result {
        self.put(" {")?;
        self.indent += 1;
        for op in block {
            self.line()?;
            self.op(op)?;
        }
        self.indent -= 1;
        self.line()?;
        self.put("}")
    }

    /// ` else { … }` if there is anything in it.
    fn otherwise(&mut self, block: &Block) -> fmt::Result {
        match &block[..] {
            [] => Ok(()),
            [next @ Op::If(..)] => {
                self.put(" else ")?;
                self.op(next)
            }
            _ => {
                self.put(" else")?;
                self.block(block)
            }
        }
    }

    fn side(&mut self, name: &str, side: &FlowSide) -> fmt::Result {
        self.line()?;
        write!(self.f, "  {name} ")?;
        self.tuple(&side.key)?;
        self.put(" => ")?;
        self.tuple(&side.value)
    }

    /// A word and an expression.
    fn word(&mut self, word: &str, expr: &Expr) -> fmt::Result {
        self.put(word)?;
        self.expr(expr, level::NUMBER)
    }

    fn op(&mut self, op: &Op) -> fmt::Result {
        match op {
            Op::Let(reg, expr) => {
                self.put(reg)?;
                self.word(" = ", expr)
            }
            Op::Set(field, expr) => {
                write!(self.f, "set {field} = ")?;
                match expr {
                    Expr::Const(value) => self.constant(Notation::of(*field), *value),
                    expr => self.expr(expr, level::NUMBER),
                }
            }
            Op::Store { base, offset, width, value } => {
                self.bytes("store", *base, &[offset, &Expr::Const(u128::from(*width))])?;
                self.word(" = ", value)
            }
            Op::If(cond, then, otherwise) => {
                self.put("if ")?;
                self.cond(cond, level::OR)?;
                self.block(then)?;
                self.otherwise(otherwise)
            }
            Op::Match { rules, arms, otherwise } => {
                self.put("match {")?;
                self.indent += 1;
                for rule in rules.iter() {
                    self.line()?;
                    self.put("rule ")?;
                    self.cond(&rule.when, level::OR)?;
                    write!(self.f, " => {}", rule.arm)?;
                    if !rule.text.is_empty() {
                        write!(self.f, " {:?}", rule.text)?;
                    }
                }
                for (i, arm) in arms.iter().enumerate() {
                    self.line()?;
                    write!(self.f, "arm {i}")?;
                    self.block(arm)?;
                }
                if !otherwise.is_empty() {
                    self.line()?;
                    self.put("else")?;
                    self.block(otherwise)?;
                }
                self.indent -= 1;
                self.line()?;
                self.put("}")
            }
            Op::Lookup { table, key, bind, miss } => {
                self.word("lookup ", key)?;
                write!(self.f, " width {} bind ", table.width())?;
                self.regs(bind)?;
                self.put(" {")?;
                self.indent += 1;
                let notation = match key {
                    Expr::Field(field) if field.width == table.width() => Notation::of(*field),
                    _ => Notation::Decimal,
                };
                for entry in table.entries() {
                    self.line()?;
                    write!(self.f, "{}/{} => (", Number(notation, entry.prefix), entry.length)?;
                    self.list(&entry.row, |p, value| p.put(Constant(*value)))?;
                    self.put(")")?;
                }
                self.indent -= 1;
                self.line()?;
                self.put("}")?;
                self.otherwise(miss)
            }
            Op::Repeat { limit, body } => {
                write!(self.f, "repeat {limit}")?;
                self.block(body)
            }
            Op::Break => self.put("break"),
            Op::Expect(cond) => {
                self.put("expect ")?;
                self.cond(cond, level::OR)
            }
            Op::Pull(expr) => self.word("pull ", expr),
            Op::Truncate(expr) => self.word("truncate ", expr),
            Op::Extend(expr) => self.word("extend ", expr),
            Op::Mark(header, expr) => {
                write!(self.f, "mark {} at ", Base::Header(*header))?;
                self.expr(expr, level::NUMBER)
            }
            Op::Unmark(header) => write!(self.f, "unmark {}", Base::Header(*header)),
            Op::Fresh => self.put("fresh"),
            Op::Count(state) => {
                self.put("count ")?;
                self.state_ref(*state)
            }
            Op::Read(reg, state, index) => {
                write!(self.f, "read {reg} = ")?;
                self.state_ref(*state)?;
                self.word("[", index)?;
                self.put("]")
            }
            Op::Write(state, index, expr) => {
                self.put("write ")?;
                self.state_ref(*state)?;
                self.word("[", index)?;
                self.word("] = ", expr)
            }
            Op::FlowLookup { flows, key, value, common, miss } => {
                self.put("find ")?;
                self.state_ref(*flows)?;
                self.tuple(key)?;
                self.put(" bind ")?;
                self.regs(value)?;
                self.put(" common ")?;
                self.regs(common)?;
                self.otherwise(miss)
            }
            Op::FlowUpdate { flows, key, common, expiry, guarantee } => {
                self.put("update ")?;
                self.state_ref(*flows)?;
                self.tuple(key)?;
                self.put(" common ")?;
                self.tuple(common)?;
                self.word(" expiry ", expiry)?;
                self.word(" guarantee ", guarantee)
            }
            Op::FlowInsert { flows, forward, reverse, common, expiry, guarantee, full } => {
                self.put("insert ")?;
                self.state_ref(*flows)?;
                self.side("forward", forward)?;
                self.side("reverse", reverse)?;
                self.line()?;
                self.put("  common ")?;
                self.tuple(common)?;
                self.word(" expiry ", expiry)?;
                self.word(" guarantee ", guarantee)?;
                self.otherwise(full)
            }
            Op::Allocate { bind, range: (low, high), start, flows, key, exhausted } => {
                write!(self.f, "allocate {bind} in {low}..{high}")?;
                self.word(" from ", start)?;
                self.put(" unless ")?;
                self.state_ref(*flows)?;
                self.tuple(key)?;
                self.otherwise(exhausted)
            }
            Op::Note(reason) => write!(self.f, "note {}", Name(reason.0)),
            Op::EmitCopy(port) => self.word("copy ", port),
            Op::Emit(port) => self.word("emit ", port),
            Op::Drop(Reason(reason)) => write!(self.f, "drop {}", Name(reason)),
            Op::Opaque(why) => write!(self.f, "opaque {}", Name(why)),
        }
    }
}

fn printer<'a, 'f, 'b>(f: &'a mut Formatter<'f>, state: &'b [StateDecl]) -> Printer<'a, 'f, 'b> {
    Printer { f, state, indent: 0 }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        printer(f, &[]).expr(self, level::OR)
    }
}

impl Display for Cond {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        printer(f, &[]).cond(self, level::OR)
    }
}

impl Display for Op {
    /// State is named by its number, since its declarations are not at hand.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        printer(f, &[]).op(self)
    }
}

/// Numbers in brackets.
fn list<T: Display>(f: &mut Formatter<'_>, numbers: &[T]) -> fmt::Result {
    f.write_str(" [")?;
    for (i, number) in numbers.iter().enumerate() {
        write!(f, "{}{number}", if i == 0 { "" } else { ", " })?;
    }
    f.write_str("]")
}

impl Display for StateDecl {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "state {}", Name(self.name))?;
        if let Some(owner) = &self.owner {
            write!(f, " of {owner:?}")?;
        }
        match &self.kind {
            StateKind::Counter => f.write_str(": counter"),
            StateKind::Flows { capacity, widths } => {
                write!(f, ": flows {capacity}")?;
                if widths.is_empty() { Ok(()) } else { list(f, widths) }
            }
            StateKind::Cells { width, initial } => {
                write!(f, ": cells {width}")?;
                list(f, initial)
            }
        }
    }
}

impl Display for Model {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for declared in &self.state {
            writeln!(f, "{declared}")?;
        }
        for (i, block) in self.inputs.iter().enumerate() {
            if i > 0 || !self.state.is_empty() {
                f.write_char('\n')?;
            }
            write!(f, "input {i}")?;
            printer(f, &self.state).block(block)?;
            f.write_char('\n')?;
        }
        Ok(())
    }
}
