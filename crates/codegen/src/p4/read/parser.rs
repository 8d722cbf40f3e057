//! The parser of a P4 program, executed as far as it is asked for.

use ir::IntervalSet;
use ir::field::meta;
use ir::program::{Term, TermId};
use std::collections::{BTreeSet, HashMap};

use super::super::Arch;
use super::lexer::Failure;
use super::machine::{Ask, Cond, Machine, State, Stop};
use super::syntax::{Case, Control, Source, Statement, Transition, Type};

/// Bytes that every frame has: on Ethernet, and on a Tofino's ports.
pub(super) fn least_frame(arch: Arch) -> u32 {
    match arch {
        Arch::V1model => 14,
        Arch::Tna => 60,
    }
}

/// States that are passed without a look at the packet.
const MOST_TURNS: usize = 4096;

/// Words that are taken off checksums on one path.
const MOST_WORDS: usize = 1024;

/// A header of the packet.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub(super) name: String,
    pub(super) fields: Vec<(String, u16)>,
    pub(super) bits: u32,
}

/// Headers of the program, by the fields of a struct.
pub(super) fn headers(source: &Source, of: &str) -> Result<Vec<Header>, Failure> {
    let fail = |message: String| (0, message);
    let all = source.structs.get(of).ok_or_else(|| fail(format!("there is no struct '{of}'")))?;
    let header = |(name, of): &(String, Type)| {
        let Type::Named(of) = of else { return Err(fail(format!("'{name}' is no header"))) };
        let fields =
            source.headers.get(of).ok_or_else(|| fail(format!("there is no header '{of}'")))?;
        let field = |(name, of): &(String, Type)| match of {
            Type::Bits(width) => Ok((name.clone(), *width)),
            Type::Named(_) => Err(fail(format!("'{name}' has no width"))),
        };
        let fields = fields.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let bits: u32 = fields.iter().map(|field| u32::from(field.1)).sum();
        match bits.is_multiple_of(8) && bits > 0 && bits <= 2048 {
            true => Ok(Header { name: name.clone(), fields, bits }),
            false => Err(fail(format!("'{name}' has {bits} bits"))),
        }
    };
    all.iter().map(header).collect()
}

/// How far the parser came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Progress {
    /// The state; `None` if it is done.
    at: Option<usize>,
    /// Statements and cases of the state that were passed.
    passed: usize,
    cases: usize,
    /// Bits that were extracted.
    pub(super) bits: u32,
    /// Headers that were extracted, and their first bits.
    pub(super) found: Vec<(usize, u32)>,
    /// Whether the packet ended within a header.
    pub(super) failed: bool,
    /// Words that were taken off checksums, by the unit.
    taken: Vec<(usize, TermId)>,
}

impl Progress {
    pub(super) fn is_done(&self) -> bool {
        self.at.is_none()
    }

    fn done(mut self, failed: bool) -> Self {
        (self.at, self.passed, self.cases) = (None, 0, 0);
        self.failed |= failed;
        self
    }
}

/// A state of the parser.
struct Known {
    line: usize,
    /// Headers that are extracted, and what metadata get.
    steps: Vec<Step>,
    transition: Transition,
    /// Headers that are extracted here or behind.
    reach: BTreeSet<usize>,
}

enum Step {
    Extract(usize),
    /// Fields of headers are taken off a checksum, by the number of its unit.
    Subtract(usize, Vec<(usize, String)>),
    /// What is left is put in metadata.
    Deposit(usize, String),
    Set(String, super::syntax::Expr),
}

pub(super) struct Parsing {
    states: Vec<Known>,
    names: HashMap<String, usize>,
    arch: Arch,
}

/// The fields that a list names.
pub(super) fn fields(
    all: &[Header],
    hdr: &str,
    of: &[super::syntax::Expr],
    line: usize,
) -> Result<Vec<(usize, String)>, Failure> {
    let one = |of: &super::syntax::Expr| {
        let super::syntax::Expr::Path(path) = of else { return None };
        let [root, header, field] = &path[..] else { return None };
        let at = all.iter().position(|known| known.name == *header && root == hdr)?;
        all[at].fields.iter().any(|known| known.0 == *field).then(|| (at, field.clone()))
    };
    let found: Option<Vec<_>> = of.iter().map(one).collect();
    found.ok_or_else(|| (line, "fields of headers were expected".into()))
}

impl Parsing {
    pub(super) fn new(
        arch: Arch,
        control: &Control,
        all: &[Header],
        packet: &str,
        hdr: &str,
    ) -> Result<Self, Failure> {
        let names: HashMap<String, usize> =
            control.states.iter().map(|state| state.name.clone()).zip(0..).collect();
        let mut states = Vec::new();
        for state in &control.states {
            let mut steps = Vec::new();
            for statement in &state.statements {
                match statement {
                    Statement::Call(line, path, arguments) => {
                        let path: Vec<&str> = path.iter().map(String::as_str).collect();
                        let argument = match &arguments[..] {
                            [super::syntax::Expr::Path(path)] => path.join("."),
                            _ => String::new(),
                        };
                        let intrinsic = control.parameters.get(3).map(|of| of.1.as_str());
                        match path[..] {
                            [of, "extract"]
                                if of == packet
                                    && arch == Arch::Tna
                                    && Some(argument.as_str()) == intrinsic => {}
                            [of, "advance"]
                                if of == packet
                                    && arch == Arch::Tna
                                    && argument == "PORT_METADATA_SIZE" => {}
                            [of, "extract"] if of == packet => {
                                let name = argument
                                    .strip_prefix(hdr)
                                    .and_then(|name| name.strip_prefix('.'));
                                let header = all
                                    .iter()
                                    .position(|header| Some(header.name.as_str()) == name);
                                let header = header
                                    .ok_or_else(|| (*line, format!("'{argument}' is no header")))?;
                                steps.push(Step::Extract(header));
                            }
                            [unit, call @ ("subtract" | "subtract_all_and_deposit")] => {
                                let unit = control.checksums.iter().position(|of| of == unit);
                                let unit =
                                    unit.ok_or_else(|| (*line, "there is no such unit".into()))?;
                                let step = match (call, &arguments[..]) {
                                    ("subtract", [super::syntax::Expr::List(of)]) => {
                                        Step::Subtract(unit, fields(all, hdr, of, *line)?)
                                    }
                                    ("subtract", _) => {
                                        return Err((*line, "a list was expected".into()));
                                    }
                                    _ => Step::Deposit(unit, argument),
                                };
                                steps.push(step);
                            }
                            _ => return Err((*line, "a parser cannot call that".into())),
                        }
                    }
                    Statement::Assign(_, path, value) => {
                        steps.push(Step::Set(path.join("."), value.clone()))
                    }
                    Statement::Declare(line, ..) | Statement::If(line, ..) => {
                        return Err((*line, "a parser extracts, and sets metadata".into()));
                    }
                }
            }
            let transition = state.transition.clone();
            states.push(Known { line: state.line, steps, transition, reach: BTreeSet::new() });
        }
        let mut parsing = Self { states, names, arch };
        parsing.reach()?;
        Ok(parsing)
    }

    fn target(&self, line: usize, name: &str) -> Result<Option<usize>, Failure> {
        match name {
            "accept" | "reject" => Ok(None),
            name => match self.names.get(name) {
                Some(state) => Ok(Some(*state)),
                None => Err((line, format!("there is no state '{name}'"))),
            },
        }
    }

    /// Finds what is extracted behind each state.
    fn reach(&mut self) -> Result<(), Failure> {
        let mut leads: Vec<Vec<usize>> = Vec::new();
        for state in &mut self.states {
            state.reach = state
                .steps
                .iter()
                .filter_map(
                    |step| if let Step::Extract(header) = step { Some(*header) } else { None },
                )
                .collect();
        }
        for state in &self.states {
            let is_deposit = |step: &Step| matches!(step, Step::Deposit(..));
            let behind = state.steps.iter().skip_while(|step| !is_deposit(step));
            let extracts = behind.skip(1).any(|step| !is_deposit(step));
            let names: Vec<&String> = match &state.transition {
                Transition::To(name) => vec![name],
                Transition::Select(_, cases) => cases.iter().map(|case| &case.1).collect(),
            };
            let is_last = |name: &&String| matches!(name.as_str(), "accept" | "reject");
            let goes_on = names.iter().any(|name| {
                let next = self.names.get(*name).map(|at| &self.states[*at].steps);
                !is_last(name) && next.is_some_and(|steps| !steps.iter().all(is_deposit))
            });
            if state.steps.iter().any(is_deposit) && (extracts || goes_on) {
                let why = "what is extracted behind it would be taken off what is deposited";
                return Err((state.line, why.into()));
            }
            let targets = names.into_iter().map(|name| self.target(state.line, name));
            leads.push(targets.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect());
        }
        loop {
            let mut grew = false;
            for (at, to) in
                leads.iter().enumerate().flat_map(|(at, all)| all.iter().map(move |to| (at, *to)))
            {
                let more: Vec<usize> =
                    self.states[to].reach.difference(&self.states[at].reach).copied().collect();
                grew |= !more.is_empty();
                self.states[at].reach.extend(more);
            }
            if !grew {
                return Ok(());
            }
        }
    }

    pub(super) fn start(&self) -> Result<Progress, Failure> {
        let at = self
            .names
            .get("start")
            .copied()
            .ok_or((0, "the parser has no state 'start'".to_string()))?;
        Ok(Progress { at: Some(at), ..Progress::default() })
    }

    /// Whether the parser may come to extract a header.
    pub(super) fn may_find(&self, progress: &Progress, header: usize) -> bool {
        progress.at.is_some_and(|at| self.states[at].reach.contains(&header))
    }

    /// Headers that the parser may come to extract.
    pub(super) fn may_follow<'a>(
        &'a self,
        progress: &Progress,
    ) -> impl Iterator<Item = usize> + 'a {
        progress.at.into_iter().flat_map(|at| self.states[at].reach.iter().copied())
    }

    /// Headers that are extracted one behind the other: the second may come behind the first.
    pub(super) fn orders(&self) -> BTreeSet<(usize, usize)> {
        let mut all = BTreeSet::new();
        for state in &self.states {
            let mut before: Vec<usize> = Vec::new();
            for step in &state.steps {
                if let Step::Extract(header) = step {
                    all.extend(before.iter().map(|first| (*first, *header)));
                    before.push(*header);
                }
            }
            let names: Vec<&String> = match &state.transition {
                Transition::To(name) => vec![name],
                Transition::Select(_, cases) => cases.iter().map(|case| &case.1).collect(),
            };
            for next in names.into_iter().filter_map(|name| self.names.get(name)) {
                for first in &before {
                    all.extend(self.states[*next].reach.iter().map(|then| (*first, *then)));
                }
            }
        }
        all
    }

    /// Sets what the parser sets before it looks at the packet.
    pub(super) fn begin(
        &self,
        machine: &mut Machine<'_>,
        state: &mut State,
    ) -> Result<(), Failure> {
        for _ in 0..MOST_TURNS {
            let Some(at) = state.parse.at else { return Ok(()) };
            let known = &self.states[at];
            match known.steps.get(state.parse.passed) {
                Some(Step::Extract(_) | Step::Subtract(..) | Step::Deposit(..)) => return Ok(()),
                Some(Step::Set(path, value)) => {
                    machine.set_early(state, path, value).map_err(|why| (known.line, why))?;
                    state.parse.passed += 1;
                }
                None => match self.step(machine, state) {
                    Ok(()) => {}
                    Err(Stop::Ask(_) | Stop::Undefined) => return Ok(()),
                    Err(Stop::Fail(why)) => return Err((known.line, why)),
                },
            }
        }
        Err((0, "the parser never ends".into()))
    }

    /// Goes on by one statement or case.
    pub(super) fn step(&self, machine: &mut Machine<'_>, state: &mut State) -> Result<(), Stop> {
        let Some(at) = state.parse.at else { return Ok(()) };
        let known = &self.states[at];
        if let Some(step) = known.steps.get(state.parse.passed) {
            let header = match step {
                Step::Extract(header) => *header,
                Step::Subtract(unit, of) => {
                    self.subtract(machine, state, *unit, of)?;
                    state.parse.passed += 1;
                    return Ok(());
                }
                Step::Deposit(unit, path) => {
                    let of = state.parse.taken.iter().filter(|of| of.0 == *unit);
                    let words: Vec<TermId> = of.map(|of| of.1).collect();
                    state.parse.taken.retain(|of| of.0 != *unit);
                    let rest = machine.terms.checksum(&words);
                    machine.deposit(state, path, rest).map_err(Stop::Fail)?;
                    state.parse.passed += 1;
                    return Ok(());
                }
                Step::Set(..) => {
                    return Err(Stop::Fail("metadata are set after a header was extracted".into()));
                }
            };
            if state.parse.found.iter().any(|found| found.0 == header)
                || state.parse.found.len() > 64
            {
                return Err(Stop::Fail("a header is extracted twice".into()));
            }
            let end = state.parse.bits + machine.headers[header].bits;
            let bytes = end / 8;
            let length = machine.terms.add(Term::Input(meta::LEN));
            let set = IntervalSet::range(bytes.into(), meta::LEN.max());
            let is_there = match machine.within(state, length, set) {
                _ if bytes <= least_frame(self.arch) => true,
                Cond::Known(is_there) => is_there,
                Cond::Is(atom, _) => {
                    let (yes, no) = (state.parse.clone(), state.parse.clone().done(true));
                    return Err(Stop::Ask(Box::new(Ask { atom, yes, no })));
                }
            };
            if !is_there {
                state.parse = state.parse.clone().done(true);
                return Ok(());
            }
            state.parse.found.push((header, state.parse.bits));
            state.parse.bits = end;
            state.parse.passed += 1;
            return Ok(());
        }
        let go = |state: &mut State, name: &str| {
            let to = self.target(known.line, name).map_err(|why| Stop::Fail(why.1))?;
            if name == "reject" && self.arch == Arch::Tna {
                state.parse.failed = true;
            }
            (state.parse.at, state.parse.passed, state.parse.cases) = (to, 0, 0);
            Ok(())
        };
        let (on, cases) = match &known.transition {
            Transition::To(name) => return go(state, name),
            Transition::Select(on, cases) => (on, cases),
        };
        let Some((case, name)) = cases.get(state.parse.cases) else {
            let failed = self.arch == Arch::Tna;
            state.parse = state.parse.clone().done(failed);
            return Ok(());
        };
        if *case == Case::Any {
            return go(state, name);
        }
        let (term, width) = machine.early(state, on)?;
        let number = |machine: &mut Machine<'_>, of: &super::syntax::Expr| {
            machine.constant(of, width).ok_or_else(|| Stop::Fail("a constant was expected".into()))
        };
        let set = match case {
            Case::Any => IntervalSet::full(width),
            Case::Is(of) => IntervalSet::single(number(machine, of)?),
            Case::Masked(value, mask) => {
                let (value, mask) = (number(machine, value)?, number(machine, mask)?);
                let set = IntervalSet::masked(width, value, mask);
                set.ok_or_else(|| Stop::Fail("a mask has many gaps".into()))?
            }
            Case::Range(low, high) => {
                IntervalSet::range(number(machine, low)?, number(machine, high)?)
            }
        };
        match machine.within(state, term, set) {
            Cond::Known(true) => go(state, name),
            Cond::Known(false) => {
                state.parse.cases += 1;
                Ok(())
            }
            Cond::Is(atom, _) => {
                let mut yes = state.clone();
                go(&mut yes, name)?;
                let no = Progress { cases: state.parse.cases + 1, ..state.parse.clone() };
                Err(Stop::Ask(Box::new(Ask { atom, yes: yes.parse, no })))
            }
        }
    }

    /// Takes fields of headers off a checksum.
    fn subtract(
        &self,
        machine: &mut Machine<'_>,
        state: &mut State,
        unit: usize,
        of: &[(usize, String)],
    ) -> Result<(), Stop> {
        let mut numbers = Vec::new();
        for (header, field) in of {
            let place = machine.place(state, *header, field);
            let place = place.and_then(|(bit, width)| Some((u16::try_from(bit).ok()?, width)));
            let Some((bit, width)) = place else {
                return Err(Stop::Fail("what was not extracted is taken off a checksum".into()));
            };
            numbers.push((width, machine.terms.data(bit, width)));
        }
        let words = machine.terms.words(&numbers);
        let words = words.ok_or_else(|| Stop::Fail("a checksum is taken off no words".into()))?;
        if state.parse.taken.len() + words.len() > MOST_WORDS {
            return Err(Stop::Fail("too much is taken off a checksum".into()));
        }
        state.parse.taken.extend(words.into_iter().map(|word| (unit, word)));
        Ok(())
    }

    /// Places of fields that the parser may still look at: first bits and widths.
    pub(super) fn open(&self, progress: &Progress, headers: &[Header]) -> BTreeSet<(u32, u16)> {
        let mut all = BTreeSet::new();
        let mut seen: BTreeSet<(usize, u32)> = BTreeSet::new();
        let mut waiting: Vec<Progress> = vec![progress.clone()];
        while let Some(Progress { at, passed, mut bits, mut found, .. }) = waiting.pop() {
            let Some(at) = at else { continue };
            if !seen.insert((at, bits)) || seen.len() > MOST_OPEN {
                continue;
            }
            let state = &self.states[at];
            for step in state.steps.iter().skip(passed) {
                if let Step::Extract(header) = step {
                    found.push((*header, bits));
                    bits += headers[*header].bits;
                }
            }
            let names: Vec<&String> = match &state.transition {
                Transition::To(name) => vec![name],
                Transition::Select(on, cases) => {
                    let path =
                        if let super::syntax::Expr::Path(path) = on { &path[..] } else { &[] };
                    if let [_, header, field] = path
                        && let Some((header, from)) =
                            found.iter().find(|of| headers[of.0].name == *header)
                    {
                        let mut bit = *from;
                        for (name, width) in &headers[*header].fields {
                            if name == field {
                                all.insert((bit, *width));
                            }
                            bit += u32::from(*width);
                        }
                    }
                    cases.iter().map(|case| &case.1).collect()
                }
            };
            for next in names.into_iter().filter_map(|name| self.names.get(name)) {
                let found = found.clone();
                waiting.push(Progress { at: Some(*next), bits, found, ..Progress::default() });
            }
        }
        all
    }
}

/// Places that the parser may come to, that are looked at ahead.
const MOST_OPEN: usize = 256;

impl Progress {
    /// The same where the parser goes no further.
    pub(super) fn at_rest(mut self) -> Self {
        self.at = None;
        self
    }
}
