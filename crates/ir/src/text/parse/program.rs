//! Programs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use net::Header;

use super::super::lexer::Token;
use super::super::print::level;
use super::{Parsed, Parser, base, hash_function};
use crate::diagnostic::{Diagnostic, FileId, Span};
use crate::field::Base;
use crate::graph::{NodeId, Port};
use crate::interval::IntervalSet;
use crate::model::{BinaryOp, CompareOp, Reason, StateKind};
use crate::prefix_table::{PrefixEntry, PrefixTable};
use crate::program::{
    Atom, Barrier, ClassifyRule, Continuation, Effect, End, Entries, Exit, Lookup, LookupId, Mark,
    OnesSum, Program, StateId, StateOf, Step, StepId, Table, TableId, Term, TermId, Write,
};
use crate::range_map::RangeMap;

/// Programs that were read, and the names of the elements that they name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Programs {
    /// In the order of the text, each in normal form.
    pub programs: Vec<Program>,
    /// Names by number.
    pub names: BTreeMap<NodeId, String>,
}

/// Reads programs, as [`Program::text`] writes them. They are well formed.
///
/// # Errors
/// The first error of the text, or all that is wrong with a program.
pub fn parse_programs(file: FileId, text: &str) -> Result<Programs, Vec<Diagnostic>> {
    super::parse(file, text, |p| {
        let mut read = Programs::default();
        while p.token != Token::End {
            let at = p.at.clone();
            let program = p.program(&mut read.names)?;
            let problems = crate::program::verify::verify(&program);
            if !problems.is_empty() {
                let span = Span::new(p.file, at.start, at.end);
                p.errors.extend(problems.into_iter().map(|problem| {
                    Diagnostic::error(
                        problem.code,
                        format!("{}: {}", problem.place, problem.message),
                    )
                    .label(span, "in this program")
                }));
                return Err(super::Failed);
            }
            read.programs.push(program.normal());
        }
        Ok(read)
    })
}

/// A program in the making.
#[derive(Default)]
struct Making {
    terms: Vec<Term>,
    index: HashMap<Term, TermId>,
    /// Terms that were named.
    named: HashMap<u32, TermId>,
    state: Vec<StateOf>,
    tables: Vec<Table>,
    lookups: Vec<Lookup>,
    /// This program's elements.
    elements: HashMap<String, NodeId>,
}

impl Making {
    fn term(&mut self, term: Term) -> TermId {
        let next = TermId(self.terms.len() as u32);
        *self.index.entry(term).or_insert_with_key(|term| {
            self.terms.push(term.clone());
            next
        })
    }
}

const OPERATORS: [BinaryOp; 10] = [
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

const COMPARISONS: [CompareOp; 6] =
    [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

impl Parser<'_> {
    fn program(&mut self, names: &mut BTreeMap<NodeId, String>) -> Parsed<Program> {
        let mut making = Making::default();
        self.expect("program")?;
        self.expect("behind")?;
        // Its element's name is told in the next line.
        self.expect("[")?;
        let port = self.small()?;
        self.expect("]")?;
        let entry = self.element_name()?;
        let continuation = match self.takes("from") {
            true => Some(self.continuation()?),
            false => None,
        };
        if self.takes("elements") {
            loop {
                let node: u32 = self.small()?;
                let (name, at) = self.any_name("an element's name")?;
                let node = node as NodeId;
                let other = names.insert(node, name.clone()).is_some_and(|other| other != name);
                if making.elements.insert(name, node).is_some_and(|other| other != node) || other {
                    let message = "this element has another name or number elsewhere";
                    return Err(self.error_at(at, "duplicate-element", message));
                }
                if !self.takes(",") {
                    break;
                }
            }
        }
        let node = self.node_of(&making, entry)?;
        while self.takes("state") {
            self.state(&mut making)?;
        }
        while self.takes("table") {
            self.table(&mut making)?;
        }
        let mut steps = Vec::new();
        loop {
            if let Some(name) = self.numbered('t') {
                self.bump();
                self.expect("=")?;
                let term = self.term(&mut making, level::OR)?;
                making.named.insert(name, term);
            } else if self.numbered('l') == Some(making.lookups.len() as u32) {
                self.bump();
                self.expect(":")?;
                self.binding_lookup(&mut making)?;
            } else if self.numbered('s') == Some(steps.len() as u32) {
                self.bump();
                self.expect(":")?;
                steps.push(self.step(&mut making)?);
            } else {
                break;
            }
        }
        if self.token != Token::End && self.token != Token::Word("program") {
            return Err(self.expected(&format!("step s{}", steps.len())));
        }
        let Making { terms, state, tables, lookups, .. } = making;
        let entry = Port { node, port };
        Ok(Program { entry, continuation, terms, state, tables, lookups, steps })
    }

    fn continuation(&mut self) -> Parsed<Continuation> {
        self.expect("continuation")?;
        Ok(Continuation(self.small()?))
    }

    /// The number of a word such as `t6`.
    fn numbered(&self, letter: char) -> Option<u32> {
        let Token::Word(word) = self.token else { return None };
        let digits = word.strip_prefix(letter)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
    }

    fn step_id(&mut self) -> Parsed<StepId> {
        let id = self.numbered('s').ok_or(()).map_err(|()| self.expected("a step"))?;
        self.bump();
        Ok(StepId(id))
    }

    fn lookup_id(&mut self) -> Parsed<LookupId> {
        let id = self.numbered('l').and_then(|id| u16::try_from(id).ok());
        let id = id.ok_or(()).map_err(|()| self.expected("a lookup"))?;
        self.bump();
        Ok(LookupId(id))
    }

    /// The name of an element, or its number.
    fn element_name(&mut self) -> Parsed<Result<String, NodeId>> {
        if self.takes("#") {
            let node: u32 = self.small()?;
            return Ok(Err(node as NodeId));
        }
        self.any_name("an element's name").map(|(name, _)| Ok(name))
    }

    fn node_of(&mut self, making: &Making, name: Result<String, NodeId>) -> Parsed<NodeId> {
        match name {
            Err(node) => Ok(node),
            Ok(name) => match making.elements.get(&name) {
                Some(node) => Ok(*node),
                None => {
                    let message = format!("`{name}` is not among the elements of the program");
                    Err(self.error_at(
                        self.end.saturating_sub(name.len())..self.end,
                        "unknown-element",
                        &message,
                    ))
                }
            },
        }
    }

    fn node(&mut self, making: &Making) -> Parsed<NodeId> {
        let name = self.element_name()?;
        self.node_of(making, name)
    }

    fn port(&mut self, making: &Making) -> Parsed<Port> {
        self.expect("[")?;
        let port = self.small()?;
        self.expect("]")?;
        Ok(Port { port, node: self.node(making)? })
    }

    fn text(&mut self) -> Parsed<String> {
        match &self.token {
            Token::Text(text) => {
                let text = text.clone();
                self.bump();
                Ok(text)
            }
            _ => Err(self.expected("a text in quotes")),
        }
    }

    fn widths(&mut self) -> Parsed<Vec<u16>> {
        self.expect("(")?;
        self.list(")", Self::width)
    }

    fn state(&mut self, making: &mut Making) -> Parsed<()> {
        let name = self.name("a name of state")?;
        self.expect("of")?;
        let owner = self.text()?;
        self.expect("at")?;
        let element = self.node(making)?;
        self.expect(":")?;
        let kind = if self.takes("counter") {
            StateKind::Counter
        } else if self.takes("flows") {
            let capacity = self.small()?;
            StateKind::Flows { capacity, widths: self.widths()? }
        } else {
            self.expect("cells")?;
            let width = self.width()?;
            self.expect("(")?;
            StateKind::Cells { width, initial: self.list(")", Self::constant)? }
        };
        making.state.push(StateOf { owner, element, name, kind });
        Ok(())
    }

    fn state_id(&mut self, making: &Making) -> Parsed<StateId> {
        if self.takes("#") {
            return self.small().map(StateId);
        }
        let start = self.at.start;
        let name = self.name("a name of state")?;
        self.expect("of")?;
        let owner = self.text()?;
        match making.state.iter().position(|s| s.name == name && s.owner == owner) {
            Some(at) => Ok(StateId(at as u16)),
            None => Err(self.error_at(start..self.end, "unknown-state", "this was not declared")),
        }
    }

    fn table_id(&mut self) -> Parsed<TableId> {
        self.expect("table")?;
        self.small().map(TableId)
    }

    fn table(&mut self, making: &mut Making) -> Parsed<()> {
        let at = self.at.clone();
        if self.small::<u16>()? != making.tables.len() as u16 {
            return Err(self.error_at(at, "syntax", "tables are numbered from 0 on"));
        }
        let element = self.node(making)?;
        self.expect(":")?;
        let (widths, entries);
        if self.takes("routes") {
            let at = self.at.clone();
            widths = self.widths()?;
            let [width] = widths[..] else {
                return Err(self.error_at(at, "bad-width", "routes have one key"));
            };
            let mut all = Vec::new();
            while matches!(self.token, Token::Number(_) | Token::Address(..)) {
                let at = self.at.clone();
                let prefix = self.number()?;
                self.expect("/")?;
                let length: u16 = self.small()?;
                let first = |length| IntervalSet::prefix(width, prefix, length).intervals()[0].0;
                if length > width || first(length) != prefix {
                    return Err(self.error_at(
                        at.start..self.end,
                        "bad-prefix",
                        "this is not a prefix",
                    ));
                }
                self.expect("=>")?;
                self.expect("(")?;
                let row = self.list(")", Self::constant)?;
                all.push(PrefixEntry { prefix, length, row: row.into(), span: None });
            }
            entries = Entries::Prefixes(Arc::new(PrefixTable::new(width, all)));
        } else if self.takes("rules") {
            widths = self.widths()?;
            entries = Entries::Rules(self.rules(making, &[])?.into());
        } else {
            let state = self.state_id(making)?;
            widths = self.widths()?;
            entries = Entries::Flows(state);
        }
        making.tables.push(Table { element, widths, entries });
        Ok(())
    }

    fn rules(&mut self, making: &mut Making, keys: &[TermId]) -> Parsed<Vec<ClassifyRule>> {
        let mut rules = Vec::new();
        while let Token::Number(_) = self.token {
            let number = self.small()?;
            self.expect(":")?;
            let mut cubes = Vec::new();
            if !self.takes("false") {
                loop {
                    let mut cube = Vec::new();
                    if !self.takes("true") {
                        loop {
                            cube.push(self.key_test(making, keys)?);
                            if !self.takes("&&") {
                                break;
                            }
                        }
                    }
                    cubes.push(cube);
                    if !self.takes("||") {
                        break;
                    }
                }
            }
            self.expect("arm")?;
            let arm = self.small()?;
            let mut span = None;
            if self.takes("span") {
                let file = FileId(self.small()?);
                self.expect(":")?;
                let start = self.small()?;
                self.expect("..")?;
                span = Some(Span { file, start, end: self.small()? });
            }
            rules.push(ClassifyRule { cubes: cubes.into(), arm, number, span });
        }
        Ok(rules)
    }

    fn key_test(&mut self, making: &mut Making, keys: &[TermId]) -> Parsed<(u8, IntervalSet)> {
        if self.takes("key") {
            let key = self.small()?;
            return Ok((key, self.related_set()?));
        }
        let start = self.at.start;
        let term = self.term(making, level::NUMBER)?;
        let key = keys.iter().position(|&key| key == term).and_then(|at| u8::try_from(at).ok());
        match key {
            Some(key) => Ok((key, self.related_set()?)),
            None => Err(self.error_at(start..self.end, "bad-cube", "this is not among the keys")),
        }
    }

    /// `== 6` or `in {6, 17}`.
    fn related_set(&mut self) -> Parsed<IntervalSet> {
        if self.takes("==") {
            return Ok(IntervalSet::single(self.constant()?));
        }
        self.expect("in")?;
        self.set()
    }

    fn binding_lookup(&mut self, making: &mut Making) -> Parsed<()> {
        let element = self.node(making)?;
        self.expect("find")?;
        let table = self.table_id()?;
        let key = self.terms(making)?;
        self.expect("binding")?;
        let values = self.small()?;
        self.expect("+")?;
        making.lookups.push(Lookup { table, key, values, common: self.small()?, element });
        Ok(())
    }

    fn terms(&mut self, making: &mut Making) -> Parsed<Vec<TermId>> {
        self.expect("(")?;
        self.list(")", |p| p.term(making, level::OR))
    }

    /// A term whose operators bind at least so tightly.
    fn term(&mut self, making: &mut Making, least: u8) -> Parsed<TermId> {
        self.nested(|p| {
            let mut term = p.operand(making)?;
            loop {
                let Token::Symbol(symbol) = p.token else { return Ok(term) };
                if symbol == "." {
                    p.bump();
                    p.expect("bits")?;
                    p.expect("(")?;
                    let low = p.small()?;
                    p.expect("+")?;
                    let width = p.small()?;
                    p.expect(")")?;
                    term = making.term(Term::Slice { of: term, low, width });
                    continue;
                }
                let known = OPERATORS.iter().filter_map(|op| Some((*op, op.operator()?)));
                let mut known = known.filter(|(_, of)| of.0 == symbol && least <= of.1);
                let Some((op, (_, level))) = known.next() else { return Ok(term) };
                p.bump();
                let other = p.term(making, level + 1)?;
                term = making.term(Term::Binary(op, term, other));
            }
        })
    }

    fn operand(&mut self, making: &mut Making) -> Parsed<TermId> {
        if self.takes("(") {
            let term = self.term(making, level::OR)?;
            self.expect(")")?;
            return Ok(term);
        }
        if let Some(name) = self.numbered('t') {
            let at = self.at.clone();
            self.bump();
            let known = making.named.get(&name).copied();
            return known
                .ok_or(())
                .map_err(|()| self.error_at(at, "no-such-term", "this was not defined before"));
        }
        if self.numbered('l').is_some() {
            let lookup = self.lookup_id()?;
            self.expect(".")?;
            return Ok(making.term(Term::Bound(lookup, self.small()?)));
        }
        let word = match self.token {
            Token::Number(_) | Token::Address(..) | Token::Symbol("-") => {
                let value = self.constant()?;
                return Ok(making.term(Term::Const(value)));
            }
            Token::Symbol("~") => {
                self.bump();
                self.expect("ones")?;
                return self.ones_sum(making, true);
            }
            Token::Word(word) => word,
            _ => return Err(self.expected("a number")),
        };
        if let Some(function) = hash_function(word) {
            self.bump();
            let all = self.terms(making)?;
            return Ok(making.term(Term::Hash(function, all)));
        }
        let known = [
            "now", "position", "sum16", "concat", "ones", "nonzero", "choose", "map", "min", "max",
            "cell",
        ];
        if !known.contains(&word) {
            let field = self.field()?;
            return Ok(making.term(Term::Input(field)));
        }
        self.bump();
        if word == "now" {
            return Ok(making.term(Term::Now));
        }
        if word == "ones" {
            return self.ones_sum(making, false);
        }
        self.expect("(")?;
        let term = match word {
            "position" => Term::Position(self.header()?),
            "cell" => {
                let cells = self.state_id(making)?;
                self.expect(",")?;
                Term::Cell(cells, self.small()?)
            }
            "sum16" => {
                let offset = self.small()?;
                self.expect(",")?;
                Term::Sum16 { offset, length: self.term(making, level::OR)? }
            }
            "concat" => {
                let [high, low] = self.two(making)?;
                self.expect(",")?;
                Term::Concat { high, low, width: self.small()? }
            }
            "nonzero" => Term::NonZero(self.term(making, level::OR)?),
            "choose" => {
                let atom = self.atom(making)?;
                self.expect(",")?;
                let [yes, no] = self.two(making)?;
                Term::Choose(atom, yes, no)
            }
            "map" => {
                let of = self.term(making, level::OR)?;
                self.expect(",")?;
                let mut intervals = Vec::new();
                while !self.takes("else") {
                    let set = self.set()?;
                    let value = self.constant()?;
                    intervals.extend(set.intervals().iter().map(|&(low, high)| (low, high, value)));
                    self.expect(",")?;
                }
                if self.number()? != 0 {
                    return Err(self.error_at(
                        self.at.clone(),
                        "syntax",
                        "all else is mapped to 0",
                    ));
                }
                Term::Map(of, Arc::new(RangeMap::new(intervals)))
            }
            _ => {
                let [a, b] = self.two(making)?;
                let op = if word == "min" { BinaryOp::Min } else { BinaryOp::Max };
                Term::Binary(op, a, b)
            }
        };
        self.expect(")")?;
        Ok(making.term(term))
    }

    /// What follows `ones`.
    fn ones_sum(&mut self, making: &mut Making, complement: bool) -> Parsed<TermId> {
        let mut sum = OnesSum { complement, ..OnesSum::default() };
        self.expect("(")?;
        loop {
            if self.takes("~") {
                sum.minus.push(self.term(making, level::UNARY)?);
            } else if let Token::Number(_) = self.token {
                sum.constant = self.small()?;
            } else {
                sum.plus.push(self.term(making, level::UNARY)?);
            }
            if !self.takes("+") {
                self.expect(")")?;
                return Ok(making.term(Term::OnesSum(sum)));
            }
        }
    }

    fn two(&mut self, making: &mut Making) -> Parsed<[TermId; 2]> {
        let first = self.term(making, level::OR)?;
        self.expect(",")?;
        Ok([first, self.term(making, level::OR)?])
    }

    fn atom(&mut self, making: &mut Making) -> Parsed<Atom> {
        let marked = self.takes("compare");
        if marked {
            self.expect("(")?;
        }
        let term = self.term(making, level::NUMBER)?;
        if !marked && self.takes("in") {
            return Ok(Atom::Test(term, Arc::new(self.set()?)));
        }
        let symbol = if let Token::Symbol(symbol) = self.token { symbol } else { "" };
        let Some(op) = COMPARISONS.into_iter().find(|op| op.operator() == symbol) else {
            return Err(self.expected("a comparison"));
        };
        self.bump();
        let is_number =
            matches!(self.token, Token::Number(_) | Token::Address(..) | Token::Symbol("-"));
        if op == CompareOp::Eq && !marked && is_number {
            return Ok(Atom::Test(term, Arc::new(IntervalSet::single(self.constant()?))));
        }
        let other = self.term(making, level::NUMBER)?;
        if marked {
            self.expect(")")?;
        }
        Ok(Atom::Compare(op, term, other))
    }

    fn step(&mut self, making: &mut Making) -> Parsed<Step> {
        if self.takes("exit") {
            let mut copies = Vec::new();
            while self.takes("copy") {
                copies.push(self.exit(making)?);
            }
            return Ok(Step::Exit(Box::new(Exit { copies, ..self.exit(making)? })));
        }
        if self.takes("find") {
            let lookup = self.lookup_id()?;
            let hit = self.step_id()?;
            self.expect("else")?;
            return Ok(Step::Lookup { lookup, hit, miss: self.step_id()? });
        }
        let element = self.node(making)?;
        if self.takes("if") {
            let atom = self.atom(making)?;
            let yes = self.step_id()?;
            self.expect("else")?;
            return Ok(Step::Test { atom, yes, no: self.step_id()?, element });
        }
        if self.takes("switch") {
            let on = self.term(making, level::OR)?;
            let mut cases = Vec::new();
            while !self.takes("else") {
                let set = self.set()?;
                cases.push((set, self.step_id()?));
                self.expect(",")?;
            }
            return Ok(Step::Switch { on, cases, otherwise: self.step_id()?, element });
        }
        self.expect("classify")?;
        let at = self.at.clone();
        let table = match self.token {
            Token::Word("table") => Some(self.table_id()?),
            _ => None,
        };
        let keys = self.terms(making)?;
        self.expect("arms")?;
        let mut arms = Vec::new();
        while !self.takes("else") {
            if !arms.is_empty() {
                self.expect(",")?;
            }
            arms.push(self.step_id()?);
        }
        let otherwise = self.step_id()?;
        let rules = match table.map(|TableId(id)| making.tables.get(usize::from(id))) {
            None => self.rules(making, &keys)?.into(),
            Some(Some(Table { entries: Entries::Rules(rules), .. })) => Arc::clone(rules),
            Some(_) => return Err(self.error_at(at, "no-such-table", "there are no such rules")),
        };
        Ok(Step::Classify { table, keys, rules, arms, otherwise, element })
    }

    fn exit(&mut self, making: &mut Making) -> Parsed<Exit> {
        self.expect("visited")?;
        let mut exit = Exit {
            effects: Vec::new(),
            writes: Default::default(),
            end: End::Drop { element: 0, reason: Reason("") },
            barrier: None,
            visited: Vec::new(),
            copies: Vec::new(),
        };
        while self.token == Token::Symbol("[") {
            exit.visited.push(self.port(making)?);
            if !self.takes(",") {
                break;
            }
        }
        loop {
            if self.takes("count") {
                let counter = self.state_id(making)?;
                self.expect("by")?;
                let length = self.term(making, level::OR)?;
                exit.effects.push(Effect::Count { counter, length });
            } else if self.takes("note") {
                let reason = Reason(self.name("a reason")?);
                self.expect("at")?;
                let element = self.node(making)?;
                exit.effects.push(Effect::Note { element, reason });
            } else if self.takes("update") {
                let lookup = self.lookup_id()?;
                self.expect("common")?;
                let common = self.terms(making)?;
                self.expect("expiry")?;
                let expiry = self.term(making, level::OR)?;
                self.expect("guarantee")?;
                let guarantee = self.term(making, level::OR)?;
                exit.effects.push(Effect::Update { lookup, common, expiry, guarantee });
            } else if self.takes("set") {
                let cells = self.state_id(making)?;
                self.expect("[")?;
                let index = self.small()?;
                self.expect("]")?;
                self.expect("=")?;
                let value = self.term(making, level::OR)?;
                exit.effects.push(Effect::Set { cells, index, value });
            } else if self.takes("start") {
                exit.writes.start = self.signed()?;
            } else if self.takes("length") {
                exit.writes.length = Some(self.term(making, level::OR)?);
            } else if self.takes("unmark") {
                let header = self.header()?;
                exit.writes.marks[header as usize] = Mark::Clear;
            } else if self.takes("mark") {
                let header: Header = self.header()?;
                self.expect("at")?;
                exit.writes.marks[header as usize] = Mark::At(self.term(making, level::OR)?);
            } else if self.takes("type") {
                self.expect("=")?;
                exit.writes.packet_type = Some(self.term(making, level::OR)?);
            } else if self.takes("timestamp") {
                self.expect("=")?;
                exit.writes.timestamp = Some(self.term(making, level::OR)?);
            } else if let Token::Word(word) = self.token
                && let Some(to @ (Base::Data | Base::Annotation | Base::Carried)) = base(word)
            {
                self.bump();
                let write = self.write(making)?;
                let writes = &mut exit.writes;
                match to {
                    Base::Data => writes.bytes.push(write),
                    Base::Carried => writes.carried.push(write),
                    _ => writes.annotations.push(write),
                }
            } else {
                break;
            }
        }
        if self.takes("push") {
            let to = self.port(making)?;
            let native = self.takes(",");
            if native {
                self.expect("slow")?;
                self.expect("path")?;
            }
            exit.end = End::Push { to, native };
        } else if self.takes("hand") {
            self.expect("off")?;
            self.expect("to")?;
            exit.end = End::Handoff { to: self.continuation()? };
        } else {
            self.expect("drop")?;
            let reason = Reason(self.name("a reason")?);
            self.expect("at")?;
            exit.end = End::Drop { element: self.node(making)?, reason };
        }
        if self.takes("because") {
            let at = self.at.clone();
            let code = self.name("a barrier")?;
            exit.barrier = Some(if code == Barrier::Opaque("").code() {
                let at = self.at.clone();
                let why = self.text()?;
                Barrier::Opaque(self.interned(&why, at)?)
            } else if let Some(known) = Barrier::KNOWN.iter().find(|b| b.code() == code) {
                *known
            } else {
                return Err(self.error_at(at, "unknown-barrier", "there is no such barrier"));
            });
        }
        Ok(exit)
    }

    fn signed(&mut self) -> Parsed<i32> {
        let at = self.at.clone();
        let value = self.constant()? as i128;
        i32::try_from(value).map_err(|_| self.error_at(at, "number-too-large", "this is too large"))
    }

    /// `[8..10] = …`
    fn write(&mut self, making: &mut Making) -> Parsed<Write> {
        let start = self.at.start;
        self.expect("[")?;
        let offset = self.signed()?;
        self.expect("..")?;
        let end = self.signed()?;
        self.expect("]")?;
        self.expect("=")?;
        let length = end.checked_sub(offset).and_then(|length| u8::try_from(length).ok());
        let Some(length) = length else {
            return Err(self.error_at(start..self.end, "bad-width", "this is no run of bytes"));
        };
        Ok(Write { offset, length, value: self.term(making, level::OR)? })
    }
}
