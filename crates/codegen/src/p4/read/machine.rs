//! Symbolic execution of a control: what statements do to the state of a packet of which nothing is known.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use ir::IntervalSet;
use ir::field::meta;
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, LookupId, Program, Term, TermId};

use super::super::Arch;
use super::code::Instr;
use super::deparser::Update;
use super::entries::Entry;
use super::parser::{Header, Parsing, Progress};
use super::syntax::{Action, Control, Expr, Op, Statement};
use crate::symbolic::graph::Rules;
use crate::symbolic::terms::{Terms, ones};

/// The port of packets that are dropped (v1model).
pub(super) const DROP_PORT: u128 = 511;

/// What is asked of the packet, and how far the parser is by the answer.
pub(super) struct Ask {
    pub(super) atom: Atom,
    pub(super) yes: Progress,
    pub(super) no: Progress,
}

/// Why execution stops.
pub(super) enum Stop {
    Ask(Box<Ask>),
    /// It depends on what is not there: anything may happen.
    Undefined,
    Fail(String),
}

/// A path on which anything may happen.
pub(super) fn undefined(state: State) -> Next {
    Next::End(State { undefined: true, ..state })
}

pub(super) fn fail<T>(why: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Fail(why.into()))
}

/// A number of so many bits; not known if it is read from what is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Val {
    pub(super) width: u16,
    pub(super) of: Option<TermId>,
}

/// The state of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) parse: Progress,
    /// Metadata, variables and fields that were written, by their names here.
    pub(super) vars: BTreeMap<String, Val>,
    /// Headers that were made valid or invalid.
    pub(super) valid: BTreeMap<usize, bool>,
    /// What was found out of bits of the packet.
    pub(super) known: BTreeMap<TermId, IntervalSet>,
    pub(super) counted: Option<Val>,
    pub(super) truncated: Option<Val>,
    /// Whether anything may happen to it.
    pub(super) undefined: bool,
}

/// What a parameter of a control is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Packet,
    Headers,
    Metadata,
    Standard,
    Intrinsic,
    FromParser,
    ForDeparser,
    ForTm,
}

/// The names of a control's parameters.
pub(super) type Scope = HashMap<String, Root>;

/// Values of an action's parameters and variables.
pub(super) type Locals = HashMap<String, Val>;

/// A condition.
pub(super) enum Cond {
    Known(bool),
    /// An atom, and whether it has to hold.
    Is(Atom, bool),
}

/// An argument of an action that an entry names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Argument {
    Number(u128),
    /// What a lookup found.
    Found(TermId),
}

/// Where execution goes on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Continuation {
    pub(super) at: usize,
    /// An action that comes first, with its arguments.
    pub(super) first: Option<(usize, Vec<Argument>)>,
    pub(super) state: State,
}

/// What comes next.
pub(super) enum Next {
    Test(Box<(Atom, Continuation, Continuation)>),
    /// Keys, rules by the places that they lead to, and that of the rest.
    Table {
        keys: Vec<TermId>,
        rules: Rules,
        places: Vec<Continuation>,
        otherwise: usize,
    },
    /// A lookup of the segment; by what it found, the rules say where packets go.
    Lookup {
        lookup: LookupId,
        keys: Vec<TermId>,
        rules: Rules,
        places: Vec<Continuation>,
        miss: usize,
    },
    End(State),
}

pub(super) struct Machine<'a> {
    pub(super) arch: Arch,
    pub(super) terms: Terms,
    /// The program that stands for the same.
    pub(super) of: Option<&'a Program>,
    pub(super) headers: Vec<Header>,
    pub(super) metadata: HashMap<String, u16>,
    pub(super) constants: &'a HashMap<String, (u16, u128)>,
    pub(super) parsing: Rc<Parsing>,
    pub(super) control: &'a Control,
    pub(super) scope: Scope,
    pub(super) parser_scope: Scope,
    /// The checksum that is verified: condition, fields, and what it is compared with.
    pub(super) verified: Option<(Scope, Expr, Vec<Expr>, Vec<String>)>,
    pub(super) code: Vec<Instr>,
    /// By instruction: variables that are read there or behind.
    pub(super) live: Vec<BTreeSet<String>>,
    pub(super) entries: &'a [Vec<Entry>],
    /// Checksums that the deparser updates.
    pub(super) updates: &'a [Update],
    pub(super) port: u32,
    /// Statements that may still be executed.
    pub(super) budget: usize,
}

impl Machine<'_> {
    pub(super) fn spend(&mut self) -> Result<(), Stop> {
        match self.budget.checked_sub(1) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => fail("it takes too long"),
        }
    }

    /// Whether a header is there.
    fn is_valid(&mut self, state: &mut State, header: usize) -> Result<bool, Stop> {
        if let Some(valid) = state.valid.get(&header) {
            return Ok(*valid);
        }
        let parsing = Rc::clone(&self.parsing);
        loop {
            self.spend()?;
            if state.parse.found.iter().any(|found| found.0 == header) {
                return Ok(true);
            }
            if !parsing.may_find(&state.parse, header) {
                return Ok(false);
            }
            parsing.step(self, state)?;
        }
    }

    fn header(&self, name: &str) -> Result<usize, Stop> {
        match self.headers.iter().position(|header| header.name == name) {
            Some(header) => Ok(header),
            None => fail(format!("there is no header '{name}'")),
        }
    }

    /// A field of a header as it came in: its first bit, and its width.
    pub(super) fn place(&self, state: &State, header: usize, field: &str) -> Option<(u32, u16)> {
        let from = state.parse.found.iter().find(|found| found.0 == header)?.1;
        let mut bit = from;
        for (name, width) in &self.headers[header].fields {
            if name == field {
                return Some((bit, *width));
            }
            bit += u32::from(*width);
        }
        None
    }

    /// What a field of a header holds.
    pub(super) fn field(
        &mut self,
        state: &mut State,
        header: usize,
        field: &str,
    ) -> Result<Val, Stop> {
        let fields = &self.headers[header].fields;
        let Some((_, width)) = fields.iter().find(|of| of.0 == field) else {
            return fail(format!("there is no field '{field}'"));
        };
        let width = *width;
        if !self.is_valid(state, header)? {
            return Ok(Val { width, of: None });
        }
        let name = format!("hdr.{}.{field}", self.headers[header].name);
        if let Some(value) = state.vars.get(&name) {
            return Ok(*value);
        }
        match self.place(state, header, field) {
            Some((bit, width)) => {
                let Ok(bit) = u16::try_from(bit) else { return fail("it is far behind") };
                Ok(Val { width, of: Some(self.terms.data(bit, width)) })
            }
            None => Ok(Val { width, of: None }),
        }
    }

    pub(super) fn known(&mut self, value: u128, width: u16) -> Val {
        Val { width, of: Some(self.terms.constant(value)) }
    }

    fn path(
        &mut self,
        scope: &Scope,
        path: &[String],
        state: &mut State,
        locals: &Locals,
    ) -> Result<Val, Stop> {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        if let [name] = parts[..] {
            if let Some(value) = locals.get(name) {
                return Ok(*value);
            }
            if let Some(value) = state.vars.get(&format!("local.{name}")) {
                return Ok(*value);
            }
            if let Some((_, width)) = self.control.variables.iter().find(|of| of.0 == name) {
                return Ok(Val { width: *width, of: None });
            }
            if let Some(&(width, value)) = self.constants.get(name) {
                return Ok(self.known(value, width));
            }
        }
        match (scope.get(parts[0]), &parts[1..]) {
            (Some(Root::Headers), [header, field]) => {
                let header = self.header(header)?;
                self.field(state, header, field)
            }
            (Some(Root::Metadata), [field]) => match self.metadata.get(*field) {
                Some(&width) => {
                    let known = state.vars.get(&format!("meta.{field}")).copied();
                    Ok(known.unwrap_or(Val { width, of: None }))
                }
                None => fail(format!("there are no metadata '{field}'")),
            },
            (Some(Root::Standard | Root::Intrinsic), ["ingress_port"]) => {
                let port = self.port.into();
                Ok(self.known(port, 9))
            }
            (Some(Root::Standard), ["packet_length"]) => {
                Ok(Val { width: 32, of: Some(self.terms.add(Term::Input(meta::LEN))) })
            }
            (Some(Root::Standard), ["checksum_error"]) => self.checksum_error(state),
            _ => fail(format!("'{}' is not known", path.join("."))),
        }
    }

    /// 1 if the checksum that is verified is wrong.
    fn checksum_error(&mut self, state: &mut State) -> Result<Val, Stop> {
        let Some((scope, when, fields, with)) = self.verified.clone() else {
            return Ok(self.known(0, 1));
        };
        // Nothing was written when it was verified.
        let mut then =
            State { parse: state.parse.clone(), known: state.known.clone(), ..State::default() };
        then.vars = state
            .vars
            .iter()
            .filter(|var| var.0.starts_with("early."))
            .map(|(k, v)| (k.clone(), *v))
            .collect();
        let holds = self.all_hold(&scope, &when, &mut then)?;
        if !holds {
            state.parse = then.parse;
            return Ok(self.known(0, 1));
        }
        let zero = match &with[..] {
            [_, field] => {
                then.vars.get(&format!("early.{field}")).and_then(|of| self.terms.value(of.of?))
            }
            _ => None,
        };
        if zero != Some(0) {
            return fail(
                "a checksum over itself is 0 if it is right, and is compared with something else",
            );
        }
        let mut next: Option<(u16, u16)> = None;
        for of in &fields {
            let of = self.eval(&scope, of, &mut then, &Locals::new(), None)?;
            let Some(Term::Input(field)) = of.of.map(|of| self.terms.term(of)) else {
                return fail("a checksum is verified over what is no field of the packet");
            };
            next = match next {
                None => Some((field.offset, field.offset + field.width)),
                Some((from, end)) if end == field.offset => Some((from, end + field.width)),
                _ => {
                    return fail(
                        "a checksum is verified over fields that are not beside each other",
                    );
                }
            };
        }
        let Some((from, end)) = next.filter(|(from, end)| from % 8 == 0 && (end - from) % 16 == 0)
        else {
            return fail("a checksum is verified over parts of words");
        };
        state.parse = then.parse;
        let length = self.terms.constant(u128::from(end - from) / 8);
        let sum = self.terms.add(Term::Sum16 { offset: from / 8, length });
        let (right, wrong) = (self.terms.constant(0), self.terms.constant(1));
        let atom = Atom::Test(sum, Arc::new(IntervalSet::single(0xffff)));
        Ok(Val { width: 1, of: Some(self.terms.choose(atom, right, wrong)) })
    }

    /// Whether a conjunction holds.
    fn all_hold(&mut self, scope: &Scope, when: &Expr, state: &mut State) -> Result<bool, Stop> {
        if let Expr::Binary(Op::And, a, b) = when {
            return Ok(self.all_hold(scope, a, state)? && self.all_hold(scope, b, state)?);
        }
        match self.cond(scope, when, state, &Locals::new())? {
            Cond::Known(holds) => Ok(holds),
            Cond::Is(atom, is) => {
                // What is found out is kept.
                if !is || !matches!(atom, Atom::Test(..)) {
                    return fail("the condition of a checksum is no number of a field");
                }
                let (yes, no) = (state.parse.clone(), state.parse.clone());
                Err(Stop::Ask(Box::new(Ask { atom, yes, no })))
            }
        }
    }

    /// A constant.
    pub(super) fn constant(&mut self, of: &Expr, width: u16) -> Option<u128> {
        let value = match of {
            Expr::Number(own, value) => own.is_none_or(|own| own == width).then_some(*value)?,
            Expr::Path(path) => match &path[..] {
                [name] => self.constants.get(name).filter(|of| of.0 == width)?.1,
                _ => return None,
            },
            _ => return None,
        };
        (value <= ones(width)).then_some(value)
    }

    /// A number that the parser looks at.
    pub(super) fn early(&mut self, state: &mut State, of: &Expr) -> Result<(TermId, u16), Stop> {
        let scope = self.parser_scope.clone();
        let mut then = State { parse: state.parse.clone(), ..State::default() };
        // Only what was extracted is looked at: the parser is not asked to go on.
        then.parse = then.parse.at_rest();
        let value = self.eval(&scope, of, &mut then, &Locals::new(), None)?;
        match value.of {
            Some(of) => Ok((of, value.width)),
            None => Err(Stop::Undefined),
        }
    }

    /// Puts what is left of a checksum in metadata.
    pub(super) fn deposit(
        &mut self,
        state: &mut State,
        path: &str,
        rest: TermId,
    ) -> Result<(), String> {
        let field = path.split_once('.').filter(|(root, field)| {
            self.parser_scope.get(*root) == Some(&Root::Metadata)
                && self.metadata.get(*field) == Some(&16)
        });
        let (_, field) = field.ok_or("a checksum is deposited in 16 bits of metadata")?;
        state.vars.insert(format!("meta.{field}"), Val { width: 16, of: Some(rest) });
        Ok(())
    }

    /// Metadata that the parser sets.
    pub(super) fn set_early(
        &mut self,
        state: &mut State,
        path: &str,
        value: &Expr,
    ) -> Result<(), String> {
        let (root, field) = path.split_once('.').ok_or("only metadata are set there")?;
        let width = self
            .metadata
            .get(field)
            .copied()
            .filter(|_| self.parser_scope.get(root) == Some(&Root::Metadata));
        let width = width.ok_or("only metadata are set there")?;
        let value = self.constant(value, width).ok_or("a constant was expected")?;
        let value = self.known(value, width);
        state.vars.insert(format!("meta.{field}"), value);
        state.vars.insert(format!("early.{field}"), value);
        Ok(())
    }

    pub(super) fn eval(
        &mut self,
        scope: &Scope,
        of: &Expr,
        state: &mut State,
        locals: &Locals,
        hint: Option<u16>,
    ) -> Result<Val, Stop> {
        self.spend()?;
        if self.terms.len() > 1 << 21 {
            return fail("it computes too much");
        }
        let both =
            |this: &mut Self, a: &Expr, b: &Expr, state: &mut State| -> Result<(Val, Val), Stop> {
                let is_bare = matches!(a, Expr::Number(None, _));
                let (a, b) = if is_bare {
                    let b = this.eval(scope, b, state, locals, hint)?;
                    (this.eval(scope, a, state, locals, Some(b.width))?, b)
                } else {
                    let a = this.eval(scope, a, state, locals, hint)?;
                    let b = this.eval(scope, b, state, locals, Some(a.width))?;
                    (a, b)
                };
                if a.width == b.width { Ok((a, b)) } else { fail("two numbers have other widths") }
            };
        match of {
            Expr::Number(width, value) => match width.or(hint) {
                Some(width) if *value <= ones(width) => Ok(self.known(*value, width)),
                Some(_) => fail("a number does not fit"),
                None => fail("a number has no width"),
            },
            Expr::Path(path) => self.path(scope, path, state, locals),
            Expr::Call(path, arguments) => match (&path[..], &arguments[..]) {
                ([root, header, call], [])
                    if call == "isValid" && scope.get(root) == Some(&Root::Headers) =>
                {
                    let header = self.header(header)?;
                    let valid = self.is_valid(state, header)?;
                    Ok(self.known(valid.into(), 1))
                }
                _ => fail(format!("'{}' is no function", path.join("."))),
            },
            Expr::Slice(of, high, low) => {
                let of = self.eval(scope, of, state, locals, None)?;
                if *high >= of.width {
                    return fail("bits are beyond a number");
                }
                let width = high - low + 1;
                Ok(Val { width, of: of.of.map(|of| self.terms.slice(of, *low, width)) })
            }
            Expr::Invert(of) => {
                let of = self.eval(scope, of, state, locals, hint)?;
                Ok(Val { width: of.width, of: of.of.map(|term| self.terms.invert(term, of.width)) })
            }
            Expr::Cast(width, of) => {
                let of = self.eval(scope, of, state, locals, None)?;
                let cut = |terms: &mut Terms, term| {
                    if *width < of.width { terms.slice(term, 0, *width) } else { term }
                };
                Ok(Val { width: *width, of: of.of.map(|term| cut(&mut self.terms, term)) })
            }
            Expr::Choose(when, yes, no) => {
                let when = self.cond(scope, when, state, locals)?;
                let (yes, no) = both(self, yes, no, state)?;
                let (atom, yes, no) = match when {
                    Cond::Known(holds) => return Ok(if holds { yes } else { no }),
                    Cond::Is(atom, true) => (atom, yes, no),
                    Cond::Is(atom, false) => (atom, no, yes),
                };
                let of = yes.of.zip(no.of).map(|(yes, no)| self.terms.choose(atom, yes, no));
                Ok(Val { width: yes.width, of })
            }
            Expr::Binary(Op::Concat, a, b) => {
                let a = self.eval(scope, a, state, locals, None)?;
                let b = self.eval(scope, b, state, locals, None)?;
                if a.width + b.width > 128 {
                    return fail("a number has more than 128 bits");
                }
                let of = a.of.zip(b.of).map(|(high, low)| self.terms.concat(high, low, b.width));
                Ok(Val { width: a.width + b.width, of })
            }
            Expr::Binary(op @ (Op::Left | Op::Right), a, b) => {
                let a = self.eval(scope, a, state, locals, hint)?;
                let by = self.eval(scope, b, state, locals, Some(8))?;
                let op = if *op == Op::Left { BinaryOp::Shl } else { BinaryOp::Shr };
                if by.of.and_then(|by| self.terms.value(by)).is_none_or(|by| by >= 128) {
                    return fail("a number is shifted by what is no constant");
                }
                let of = a.of.zip(by.of).map(|(of, by)| self.terms.binary(op, of, by, a.width));
                Ok(Val { width: a.width, of })
            }
            Expr::Binary(op, a, b) => {
                let op = match op {
                    Op::Plus => BinaryOp::Add,
                    Op::Minus => BinaryOp::Sub,
                    Op::Times => BinaryOp::Mul,
                    Op::BitAnd => BinaryOp::And,
                    Op::BitOr => BinaryOp::Or,
                    Op::BitXor => BinaryOp::Xor,
                    _ => return fail("a condition is no number"),
                };
                let (a, b) = both(self, a, b, state)?;
                let of = a.of.zip(b.of).map(|(x, y)| self.terms.binary(op, x, y, a.width));
                Ok(Val { width: a.width, of })
            }
            Expr::Not(_) | Expr::List(_) => fail("a number was expected"),
        }
    }

    /// A condition: a comparison, or several that say which numbers of a set one is.
    pub(super) fn cond(
        &mut self,
        scope: &Scope,
        of: &Expr,
        state: &mut State,
        locals: &Locals,
    ) -> Result<Cond, Stop> {
        if let Expr::Path(path) = of
            && let [word] = &path[..]
            && (word == "true" || word == "false")
        {
            return Ok(Cond::Known(word == "true"));
        }
        if let Expr::Call(..) = of {
            let valid = self.eval(scope, of, state, locals, None)?;
            return Ok(Cond::Known(valid.of.and_then(|of| self.terms.value(of)) == Some(1)));
        }
        let Expr::Binary(op, a, b) = of else { return fail("a condition was expected") };
        if let Op::And | Op::Or = op {
            let a = self.cond(scope, a, state, locals)?;
            let b = self.cond(scope, b, state, locals)?;
            return self.joined(state, *op == Op::And, a, b);
        }
        let op = match op {
            Op::Equal => CompareOp::Eq,
            Op::Unequal => CompareOp::Ne,
            Op::Less => CompareOp::Lt,
            Op::LessEqual => CompareOp::Le,
            Op::Greater => CompareOp::Gt,
            Op::GreaterEqual => CompareOp::Ge,
            _ => return fail("a condition was expected"),
        };
        // Bits under a mask.
        if let (Expr::Binary(Op::BitAnd, of, mask), CompareOp::Eq | CompareOp::Ne) = (&**a, op)
            && let (Expr::Number(_, mask), Expr::Number(_, value)) = (&**mask, &**b)
        {
            let of = self.eval(scope, of, state, locals, None)?;
            let Some(term) = of.of else { return Err(Stop::Undefined) };
            let set = match value & !mask {
                0 => IntervalSet::masked(of.width, *value, *mask),
                _ => Some(IntervalSet::empty()),
            };
            let Some(set) = set.filter(|_| *mask <= ones(of.width)) else {
                return fail("a mask is too wide, or leaves too many numbers");
            };
            let set = if op == CompareOp::Eq { set } else { set.complement(of.width) };
            return Ok(match self.terms.value(term) {
                Some(value) => Cond::Known(set.contains(value)),
                None => self.within(state, term, set),
            });
        }
        let is_bare = matches!(**a, Expr::Number(None, _));
        let (a, b) = if is_bare {
            let b = self.eval(scope, b, state, locals, None)?;
            (self.eval(scope, a, state, locals, Some(b.width))?, b)
        } else {
            let a = self.eval(scope, a, state, locals, None)?;
            (a, self.eval(scope, b, state, locals, Some(a.width))?)
        };
        if a.width != b.width {
            return fail("two numbers that are compared have other widths");
        }
        let (Some(x), Some(y)) = (a.of, b.of) else {
            return Err(Stop::Undefined);
        };
        let turned = |op| match op {
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
            op => op,
        };
        match (self.terms.value(x), self.terms.value(y)) {
            (Some(x), Some(y)) => Ok(Cond::Known(op.holds(x, y))),
            (None, Some(y)) => Ok(self.test(state, x, op, y, a.width)),
            (Some(x), None) => Ok(self.test(state, y, turned(op), x, a.width)),
            (None, None) if x == y => Ok(Cond::Known(op.holds(0, 0))),
            (None, None) => Ok(Cond::Is(Atom::Compare(op, x, y), true)),
        }
    }

    /// That both conditions hold, or one of both.
    fn joined(&self, state: &State, both: bool, a: Cond, b: Cond) -> Result<Cond, Stop> {
        match (a, b) {
            (Cond::Known(known), other) | (other, Cond::Known(known)) => {
                Ok(if known == both { other } else { Cond::Known(known) })
            }
            (Cond::Is(a, x), Cond::Is(b, y)) if a == b => Ok(match x == y {
                true => Cond::Is(a, x),
                false => Cond::Known(!both),
            }),
            // Neither of two sets: none of both together.
            (Cond::Is(Atom::Test(a, x), is), Cond::Is(Atom::Test(b, y), also))
                if a == b && is == also =>
            {
                let set = if both == is { x.intersect(&y) } else { x.union(&y) };
                Ok(match self.within(state, a, set) {
                    Cond::Known(holds) => Cond::Known(holds == is),
                    Cond::Is(atom, holds) => Cond::Is(atom, holds == is),
                })
            }
            _ => fail("a condition on two numbers has two others in it"),
        }
    }

    fn test(&mut self, state: &State, of: TermId, op: CompareOp, than: u128, width: u16) -> Cond {
        let most = ones(width);
        let below = |high: Option<u128>| {
            high.map_or(IntervalSet::empty(), |high| IntervalSet::range(0, high))
        };
        let set = match op {
            CompareOp::Eq => IntervalSet::single(than),
            CompareOp::Ne => IntervalSet::single(than).complement(width),
            CompareOp::Lt => below(than.checked_sub(1)),
            CompareOp::Le => below(Some(than)),
            CompareOp::Gt if than >= most => IntervalSet::empty(),
            CompareOp::Gt => IntervalSet::range(than + 1, most),
            CompareOp::Ge => IntervalSet::range(than, most),
        };
        self.within(state, of, set)
    }

    /// Whether a number is in a set.
    pub(super) fn within(&self, state: &State, of: TermId, set: IntervalSet) -> Cond {
        let (low, high) = self.terms.bounds(of);
        let all = IntervalSet::range(low, high);
        let all = state.known.get(&of).map_or(all.clone(), |known| known.intersect(&all));
        if all.is_subset(&set) || !all.intersects(&set) {
            return Cond::Known(all.intersects(&set));
        }
        // Of two numbers that were chosen from, one, both or none may be in it.
        if let Term::Choose(atom, yes, no) = self.terms.term(of)
            && let (Some(yes), Some(no)) = (self.terms.value(*yes), self.terms.value(*no))
        {
            return match (set.contains(yes), set.contains(no)) {
                (yes, no) if yes == no => Cond::Known(yes),
                (yes, _) => Cond::Is(atom.clone(), yes),
            };
        }
        Cond::Is(Atom::Test(of, Arc::new(set)), true)
    }

    fn assign(
        &mut self,
        scope: &Scope,
        path: &[String],
        value: &Expr,
        state: &mut State,
        locals: &mut Locals,
    ) -> Result<(), Stop> {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        let (name, width, header) = match (scope.get(parts[0]), &parts[1..]) {
            (Some(Root::Headers), [header, field]) => {
                let header = self.header(header)?;
                let found = self.headers[header].fields.iter().find(|of| of.0 == *field);
                let Some((_, width)) = found else {
                    return fail(format!("there is no field '{field}'"));
                };
                (format!("hdr.{}.{field}", self.headers[header].name), *width, Some(header))
            }
            (Some(Root::Metadata), [field]) => match self.metadata.get(*field) {
                Some(width) => (format!("meta.{field}"), *width, None),
                None => return fail(format!("there are no metadata '{field}'")),
            },
            (Some(Root::Standard), ["egress_spec"])
            | (Some(Root::ForTm), ["ucast_egress_port"]) => ("egress".into(), 9, None),
            (Some(Root::ForDeparser), ["drop_ctl"]) => ("drop".into(), 3, None),
            (None, []) => match locals.get(parts[0]) {
                Some(known) => {
                    let width = known.width;
                    let value = self.eval(scope, value, state, locals, Some(width))?;
                    if value.width != width {
                        return fail("a number of another width is assigned");
                    }
                    locals.insert(parts[0].into(), value);
                    return Ok(());
                }
                None => match self.control.variables.iter().find(|of| of.0 == parts[0]) {
                    Some((name, width)) => (format!("local.{name}"), *width, None),
                    None => return fail(format!("there is no variable '{}'", parts[0])),
                },
            },
            _ => return fail(format!("'{}' is not written", path.join("."))),
        };
        let value = self.eval(scope, value, state, locals, Some(width))?;
        if value.width != width {
            return fail("a number of another width is assigned");
        }
        // Nothing is written to a header that is not there.
        if let Some(header) = header
            && !self.is_valid(state, header)?
        {
            return Ok(());
        }
        state.vars.insert(name, value);
        Ok(())
    }

    /// Executes a statement that decides nothing.
    pub(super) fn run(
        &mut self,
        statement: &Statement,
        state: &mut State,
        locals: &mut Locals,
    ) -> Result<(), Stop> {
        self.spend()?;
        let scope = self.scope.clone();
        match statement {
            Statement::Assign(_, path, value) => self.assign(&scope, path, value, state, locals),
            Statement::Declare(_, width, name, value) => {
                let value = match value {
                    Some(value) => self.eval(&scope, value, state, locals, Some(*width))?,
                    None => Val { width: *width, of: None },
                };
                if value.width != *width {
                    return fail("a number of another width is assigned");
                }
                match locals.insert(name.clone(), value) {
                    None => Ok(()),
                    Some(_) => fail(format!("'{name}' is declared twice")),
                }
            }
            Statement::Call(_, path, arguments) => {
                self.call(&scope, path, arguments, state, locals)
            }
            Statement::If(..) => fail("actions decide nothing"),
        }
    }

    fn call(
        &mut self,
        scope: &Scope,
        path: &[String],
        arguments: &[Expr],
        state: &mut State,
        locals: &Locals,
    ) -> Result<(), Stop> {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        match (&parts[..], arguments) {
            ([root, header, call @ ("setValid" | "setInvalid")], [])
                if scope.get(*root) == Some(&Root::Headers) =>
            {
                let header = self.header(header)?;
                let was = self.is_valid(state, header)?;
                let valid = *call == "setValid";
                if valid && !was {
                    // Its fields hold nothing that is known.
                    for (field, width) in self.headers[header].fields.clone() {
                        let name = format!("hdr.{}.{field}", self.headers[header].name);
                        state.vars.insert(name, Val { width, of: None });
                    }
                }
                state.valid.insert(header, valid);
                Ok(())
            }
            ([counter, "count"], [number])
                if self.control.counters.iter().any(|of| of.0 == *counter) =>
            {
                let number = self.eval(scope, number, state, locals, Some(32))?;
                match state.counted.replace(number) {
                    None => Ok(()),
                    Some(_) => fail("a packet is counted twice"),
                }
            }
            (["mark_to_drop"], [Expr::Path(of)]) if matches!(&of[..], [of] if scope.get(of) == Some(&Root::Standard)) =>
            {
                let port = self.known(DROP_PORT, 9);
                state.vars.insert("egress".into(), port);
                Ok(())
            }
            (["truncate"], [length]) if self.arch == Arch::V1model => {
                let length = self.eval(scope, length, state, locals, Some(32))?;
                match state.truncated.replace(length) {
                    None => Ok(()),
                    Some(_) => fail("a packet is cut twice"),
                }
            }
            _ => fail(format!("'{}' is not called there", path.join("."))),
        }
    }

    pub(super) fn perform(
        &mut self,
        action: &Action,
        arguments: Vec<Val>,
        state: &mut State,
    ) -> Result<(), Stop> {
        if arguments.len() != action.parameters.len() {
            return fail(format!("'{}' has other parameters", action.name));
        }
        let mut locals = Locals::new();
        for ((name, width), value) in action.parameters.iter().zip(arguments) {
            if value.width != *width {
                return fail(format!("'{name}' has another width"));
            }
            locals.insert(name.clone(), value);
        }
        action.body.iter().try_for_each(|statement| self.run(statement, state, &mut locals))
    }
}
