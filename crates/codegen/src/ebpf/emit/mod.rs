//! From programs to instructions.
//!
//! A step becomes a block, an exit computes what it writes from the frame as it came in and then
//! writes it. Bytes are touched only behind a check against the frame's end, by constant offsets from
//! a pointer that is loaded anew whenever an edge of the frame moved: so the kernel's verifier knows
//! every access to be within bounds.

pub(super) mod exit;
mod lease;
mod number;
mod steps;
mod tree;
mod walk;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use ir::layout::{Facts, Layouts};
use ir::program::{Effect, End, LookupId, Step, StepId, Term, TermId};
use ir::{NodeId, Program, Span};

use super::Block;
use super::insn::{self, ALWAYS, AsmLine, Cond, Op};
use super::lease::Leases;
use super::object::{Code, Map, MapKind, counters_map};
use crate::{Device, Lack};

/// The context, the frame's first byte, the byte behind its last, and how long it was.
const CONTEXT: u8 = 6;
const DATA: u8 = 7;
const END: u8 = 8;
const LENGTH: u8 = 9;
const STACK: u8 = 10;

/// Bytes of stack.
const STACK_SIZE: i32 = 512;
/// Where keys of lookups are put: 24 bytes.
const KEY: i16 = -24;

const MAP_LOOKUP: i32 = 1;
/// The clock as of the last tick: at most a few milliseconds late, and cheap.
const TICK: i32 = 160;
pub(super) const ADJUST_HEAD: i32 = 44;
pub(super) const REDIRECT_MAP: i32 = 51;
const ADJUST_TAIL: i32 = 65;
const LOAD_BYTES: i32 = 189;

const XDP_ABORTED: i32 = 0;
pub(super) const XDP_DROP: i32 = 1;
const XDP_TX: i32 = 3;

type Label = u32;
/// Where packets go of which a test fails that never does.
const ABORT: Label = u32::MAX;
/// Where nothing leads.
const NOWHERE: Label = u32::MAX - 1;

/// What the device has, and the maps that its programs use.
pub(super) struct Around<'a> {
    /// The device; `None` if it is only asked whether something can be done.
    pub(super) device: Option<&'a Device<'a>>,
    /// The maps.
    pub(super) maps: Vec<Map>,
    /// The map of the device's ports.
    pub(super) ports: Option<usize>,
    /// Tables of flows that it has leases of, and their maps.
    leases: Vec<(Leases, Option<[usize; 2]>)>,
}

impl<'a> Around<'a> {
    pub(super) fn new(device: Option<&'a Device<'a>>, leases: Vec<Leases>) -> Self {
        let leases = leases.into_iter().map(|leases| (leases, None)).collect();
        Self { device, maps: Vec::new(), ports: None, leases }
    }
}

/// A program of a segment, and which step's block begins at which instruction.
pub(super) struct Emitted {
    pub(super) code: Code,
    pub(super) blocks: Vec<Block>,
}

pub(super) struct Emitter<'a, 'b> {
    program: &'a Program,
    layouts: Option<&'a Layouts>,
    around: &'b mut Around<'a>,
    /// The segment's number, and where its packets come in.
    number: usize,
    ingress: &'a [u32],
    lines: Vec<AsmLine<Label>>,
    blocks: Vec<Block>,
    labels: Label,
    /// What is known at the step.
    facts: Facts,
    /// So many bytes are there, by the instructions; the least where several lead. `None` where no
    /// packet comes.
    checked: Option<u32>,
    waiting: BTreeMap<Label, u32>,
    /// Which numbers that lookups bind are wanted at a step or behind it.
    wanted: Vec<BTreeSet<(LookupId, u8)>>,
    /// Where these numbers are on the stack, from its far end on, and where that part ends.
    bound: BTreeMap<(LookupId, u8), i16>,
    /// Where the numbers of slots are that lookups found, in the same part.
    slots: BTreeMap<LookupId, i16>,
    bound_end: i32,
    /// Where the part begins that holds numbers of an exit.
    held: i32,
    /// The map of counters.
    counters: usize,
    /// Tables that are maps, by lookup.
    tables: BTreeMap<LookupId, usize>,
}

/// The lookups' numbers that terms are made from.
fn wanted_by_terms(program: &Program) -> Vec<BTreeSet<(LookupId, u8)>> {
    let mut all: Vec<BTreeSet<(LookupId, u8)>> = Vec::with_capacity(program.terms.len());
    for term in &program.terms {
        let mut set = BTreeSet::new();
        if let Term::Bound(lookup, index) = term {
            set.insert((*lookup, *index));
        }
        for operand in term.operands() {
            set.extend(all[operand.0 as usize].iter().copied());
        }
        all.push(set);
    }
    all
}

/// The terms that are computed at a step: what a flow becomes is up to those who own it.
fn computed(step: &Step) -> Vec<TermId> {
    let Step::Exit(exit) = step else { return step.terms() };
    let mut exit = exit.clone();
    exit.effects.retain(|effect| !matches!(effect, Effect::Update { .. }));
    exit.terms()
}

fn wanted(program: &Program) -> Vec<BTreeSet<(LookupId, u8)>> {
    if program.lookups.is_empty() {
        return vec![BTreeSet::new(); program.steps.len()];
    }
    let of_terms = wanted_by_terms(program);
    let mut all = vec![BTreeSet::new(); program.steps.len()];
    for (index, step) in program.steps.iter().enumerate().rev() {
        let mut terms: Vec<TermId> = computed(step);
        if let Step::Lookup { lookup, .. } = step {
            terms.extend(&program.lookups[usize::from(lookup.0)].key);
        }
        let mut set: BTreeSet<(LookupId, u8)> = BTreeSet::new();
        for next in step.next() {
            set.extend(all[next.0 as usize].iter().copied());
        }
        if let Step::Lookup { lookup, .. } = step {
            set.retain(|(other, _)| other != lookup);
        }
        for term in terms {
            set.extend(of_terms[term.0 as usize].iter().copied());
        }
        all[index] = set;
    }
    all
}

impl<'a, 'b> Emitter<'a, 'b> {
    /// For a segment, or for single steps of a program if nothing is known of them.
    pub(super) fn new(
        program: &'a Program,
        layouts: Option<&'a Layouts>,
        around: &'b mut Around<'a>,
        number: usize,
        ingress: &'a [u32],
    ) -> Self {
        let wanted = layouts.map_or_else(Vec::new, |_| wanted(program));
        Self {
            program,
            layouts,
            around,
            number,
            ingress,
            lines: Vec::new(),
            blocks: Vec::new(),
            labels: program.steps.len() as Label,
            facts: Facts::default(),
            checked: Some(0),
            waiting: BTreeMap::new(),
            wanted,
            bound: BTreeMap::new(),
            slots: BTreeMap::new(),
            bound_end: -STACK_SIZE,
            held: i32::from(KEY),
            counters: 0,
            tables: BTreeMap::new(),
        }
    }

    /// The whole program.
    pub(super) fn emit(mut self) -> Result<Emitted, (StepId, Lack)> {
        let start = StepId(0);
        let words = exit::counted_lengths(self.program) + 2;
        self.counters = self.map(Map {
            name: counters_map(self.number),
            kind: MapKind::PerCpuArray,
            key: 4,
            value: 8 * words as u32,
            room: self.program.steps.len() as u32,
            flags: 0,
            entries: Vec::new(),
        });
        self.op(insn::copy(CONTEXT, 1));
        self.reload();
        self.op(insn::copy(LENGTH, END));
        self.op(insn::alu(Op::Sub, LENGTH, DATA));
        let program = self.program;
        for (index, step) in program.steps.iter().enumerate() {
            let at = StepId(index as u32);
            self.bind(at.0);
            // Where no jump leads no packet comes.
            if self.checked.is_none() {
                self.lines.pop();
                continue;
            }
            self.block(at, element(program, step), None);
            self.step(at, step).map_err(|lack| (at, lack))?;
        }
        if self.waiting.contains_key(&ABORT) {
            self.bind(ABORT);
            self.op(insn::set(0, XDP_ABORTED));
            self.op(insn::EXIT);
        }
        self.shorten();
        let (words, starts) = insn::assemble_lines(&self.lines).map_err(|_| {
            (start, Lack::Room("instructions", self.lines.len(), MOST_INSTRUCTIONS))
        })?;
        if words.len() > MOST_INSTRUCTIONS {
            return Err((start, Lack::Room("instructions", words.len(), MOST_INSTRUCTIONS)));
        }
        for block in &mut self.blocks {
            block.first = starts[block.first];
        }
        let blocks = std::mem::take(&mut self.blocks);
        let mut maps = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            if word & 0xff == 0x18 {
                if word >> 12 & 0xf == 1 {
                    maps.push((at, (word >> 32) as usize));
                }
                at += 1;
            }
            at += 1;
        }
        let words = words
            .iter()
            .enumerate()
            .map(|(at, word)| match maps.iter().any(|map| map.0 == at) {
                true => word & 0xffff_ffff,
                false => *word,
            })
            .collect();
        let (name, section) = names(self.number, self.around);
        Ok(Emitted { code: Code { name, section, words, maps }, blocks })
    }

    /// Lets jumps to jumps lead where these lead.
    fn shorten(&mut self) {
        let (mut leads, mut next) = (HashMap::new(), None);
        for line in self.lines.iter().rev() {
            match line {
                AsmLine::Label(label) => {
                    if let Some(to) = next {
                        leads.insert(*label, to);
                    }
                }
                AsmLine::If(ALWAYS, .., to) => next = Some(*leads.get(to).unwrap_or(to)),
                AsmLine::If(..) | AsmLine::Do(_) => next = None,
            }
        }
        for line in &mut self.lines {
            if let AsmLine::If(.., to) = line
                && let Some(further) = leads.get(to)
            {
                *to = *further;
            }
        }
        // What nothing leads to any more, which may be all that led to something else.
        loop {
            let used: BTreeSet<Label> = self
                .lines
                .iter()
                .filter_map(|line| match line {
                    AsmLine::If(.., to) => Some(*to),
                    AsmLine::Do(_) | AsmLine::Label(_) => None,
                })
                .collect();
            let (mut dead, mut changed) = (false, false);
            for line in &mut self.lines {
                match line {
                    AsmLine::Label(label) => dead &= !used.contains(label),
                    _ if dead => {
                        *line = AsmLine::Label(NOWHERE);
                        changed = true;
                    }
                    AsmLine::Do(insn::EXIT) | AsmLine::If(ALWAYS, ..) => dead = true,
                    AsmLine::Do(_) | AsmLine::If(..) => {}
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// What comes next is about this.
    fn block(&mut self, step: StepId, element: NodeId, span: Option<Span>) {
        self.blocks.push(Block { first: self.lines.len(), step, element, span });
    }

    fn map(&mut self, map: Map) -> usize {
        self.around.maps.push(map);
        self.around.maps.len() - 1
    }

    fn label(&mut self) -> Label {
        self.labels += 1;
        self.labels
    }

    fn op(&mut self, word: u64) {
        self.lines.push(AsmLine::Do(word));
    }

    fn ops(&mut self, words: [u64; 2]) {
        words.into_iter().for_each(|word| self.op(word));
    }

    fn bind(&mut self, label: Label) {
        // What comes next needs no jump.
        if matches!(self.lines.last(), Some(AsmLine::If(ALWAYS, .., to)) if *to == label) {
            self.lines.pop();
        }
        // A jump over another one is that one, on the opposite condition.
        if let [.., AsmLine::If(code, a, b, number, over), AsmLine::If(ALWAYS, .., to)] =
            self.lines[..]
            && over == label
            && let Some(code) = insn::opposite(code)
        {
            self.lines.truncate(self.lines.len() - 2);
            self.lines.push(AsmLine::If(code, a, b, number, to));
        }
        let waiting = self.waiting.remove(&label);
        self.checked = self.checked.into_iter().chain(waiting).min();
        self.lines.push(AsmLine::Label(label));
    }

    fn jumps(&mut self, to: Label) {
        let checked = self.checked.unwrap_or(0);
        self.waiting.entry(to).and_modify(|least| *least = checked.min(*least)).or_insert(checked);
    }

    fn goto(&mut self, to: Label) {
        self.jumps(to);
        self.lines.push(AsmLine::If(ALWAYS, 0, 0, 0, to));
        self.checked = None;
    }

    fn jump(&mut self, cond: Cond, a: u8, b: u8, to: Label) {
        self.jumps(to);
        self.lines.push(AsmLine::If(cond.register(), a, b, 0, to));
    }

    /// Compares a register, whose number is at most `most`, with a number; the other register may be
    /// used.
    fn jump_number(&mut self, cond: Cond, reg: u8, number: u64, most: u64, to: Label, other: u8) {
        if most <= u32::MAX.into() && number <= u32::MAX.into() {
            self.jumps(to);
            self.lines.push(AsmLine::If(cond.word(), reg, 0, number as u32 as i32, to));
        } else if let Ok(number) = i32::try_from(number) {
            self.jumps(to);
            self.lines.push(AsmLine::If(cond.number(), reg, 0, number, to));
        } else {
            self.set(other, number);
            self.jump(cond, reg, other, to);
        }
    }

    fn set(&mut self, to: u8, number: u64) {
        match (i32::try_from(number), u32::try_from(number)) {
            (Ok(number), _) => self.op(insn::set(to, number)),
            (_, Ok(number)) => self.op(insn::set_word(to, number as i32)),
            _ => self.ops(insn::load_number(to, number)),
        }
    }

    /// `to op= number`; the other register may be used.
    fn alu_number(&mut self, op: Op, to: u8, number: u64, other: u8) {
        match i32::try_from(number) {
            Ok(number) => self.op(insn::alu_number(op, to, number)),
            Err(_) => {
                self.set(other, number);
                self.op(insn::alu(op, to, other));
            }
        }
    }

    /// Goes elsewhere if there are not so many bytes.
    fn short(&mut self, bytes: u32, to: Label) {
        self.jumps(to);
        self.op(insn::copy(0, DATA));
        self.op(insn::advance(0, bytes as i32));
        self.lines.push(AsmLine::If(insn::GREATER, 0, END, 0, to));
        self.checked = self.checked.max(Some(bytes));
    }

    /// The frame's edges.
    fn reload(&mut self) {
        self.op(insn::load_memory(insn::WORD, DATA, CONTEXT, 0));
        self.op(insn::load_memory(insn::WORD, END, CONTEXT, 4));
        self.checked = Some(0);
    }

    /// Bytes of stack for an exit.
    fn hold(&mut self, bytes: i32) -> Result<i16, Lack> {
        let at = self.held - bytes;
        if at < self.bound_end {
            return Err(Lack::Room(
                "bytes of stack",
                (STACK_SIZE + 8) as usize,
                STACK_SIZE as usize,
            ));
        }
        self.held = at;
        Ok(at as i16)
    }

    /// Where a number is that a lookup binds: 16 bytes, the lower half first; 8 bytes of what is in flows.
    fn bound(&mut self, lookup: LookupId, index: u8) -> Result<i16, Lack> {
        if let Some(at) = self.bound.get(&(lookup, index)) {
            return Ok(*at);
        }
        let bytes = if self.program.flows(lookup).is_some() { 8 } else { 16 };
        let at = self.keep(bytes)?;
        self.bound.insert((lookup, index), at);
        Ok(at)
    }

    /// Bytes of stack from here on.
    fn keep(&mut self, bytes: i32) -> Result<i16, Lack> {
        let at = self.bound_end;
        if at + bytes > self.held {
            return Err(Lack::Room(
                "bytes of stack",
                (STACK_SIZE + bytes) as usize,
                STACK_SIZE as usize,
            ));
        }
        self.bound_end += bytes;
        Ok(at as i16)
    }

    /// A number that is no greater than another is a length; what it can be, if 64 bits hold it.
    fn exact(&self, term: TermId) -> Result<(u64, u64), Lack> {
        let range = self.facts.range(self.program, term);
        let number = |n: i128| u64::try_from(n).ok();
        let exact = range.and_then(|(low, high)| Some((number(low)?, number(high)?)));
        exact.ok_or(Lack::Number("numbers of more than 64 bits"))
    }
}

/// The element that a step is about.
fn element(program: &Program, step: &Step) -> NodeId {
    match step {
        Step::Test { element, .. } | Step::Switch { element, .. } => *element,
        Step::Classify { element, .. } => *element,
        Step::Lookup { lookup, .. } => program.lookups[usize::from(lookup.0)].element,
        Step::Exit(exit) => match exit.end {
            End::Drop { element, .. } => element,
            End::Push { to, .. } => to.node,
            End::Handoff { .. } => program.entry.node,
        },
    }
}

/// The kernel's limit.
const MOST_INSTRUCTIONS: usize = 1_000_000;

/// Name and section of a segment's program.
fn names(number: usize, around: &Around<'_>) -> (String, String) {
    match around.device.map_or(1, |device| device.segments.len()) {
        0 | 1 => ("catena".into(), "xdp".into()),
        _ => (format!("catena{number}"), format!("xdp/{number}")),
    }
}
