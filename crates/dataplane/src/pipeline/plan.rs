//! What a program becomes: a node for each step, and a plan for each exit.

use std::sync::Arc;

use elements::flow_access::FoundFlows;
use ir::model::BinaryOp;
use ir::program::{Effect, End, Exit, LookupId, Mark, Program, Step, StepId, Term, TermId, Write};

use super::cells::{self, CellUse};
use super::compile::{Compiler, Residual};
use super::entry::CachedExit;
use super::gate::Gate;
use super::lanes::{Cond, LANES, Lanes, Op, Part, Reg, lanes_where};
use super::prepared::is_small;
use super::range_table::RangeTable;
use super::simd::{Isa, Task};

/// Bytes that one exit's writes may lie apart.
pub(super) const WINDOW: usize = 64;

/// What is done with the lanes that come to a step.
pub(super) enum Node {
    /// Conditions one after the other: where lanes go for which one does not hold, and where those
    /// for which all do.
    Tests {
        needs: Box<[Reg]>,
        conds: Vec<Cond>,
        no: Vec<StepId>,
        yes: StepId,
    },
    /// A few cases: each with its condition.
    Cases {
        needs: Box<[Reg]>,
        cases: Vec<(Cond, StepId)>,
        otherwise: StepId,
    },
    /// Many cases: the steps of ranges, by number.
    Switch {
        needs: Box<[Reg]>,
        of: Reg,
        steps: Arc<RangeTable>,
    },
    Classify {
        needs: Box<[Reg]>,
        keys: Vec<Reg>,
        arms: Vec<StepId>,
        otherwise: StepId,
    },
    /// A burst of lookups in a flow table.
    Flow {
        needs: Box<[Reg]>,
        lookup: LookupId,
        key: Vec<Reg>,
        hit: StepId,
        miss: StepId,
    },
    /// Lanes go on in the order of packets.
    Gate(Box<Gate>),
    /// The number of the plan.
    Exit(u32),
    /// Packets go on one by one.
    Scalar,
}

impl Node {
    /// Where lanes go on.
    pub(super) fn next(&self) -> impl Iterator<Item = StepId> {
        let all: Vec<StepId> = match self {
            Node::Tests { no, yes, .. } => no.iter().copied().chain([*yes]).collect(),
            Node::Cases { cases, otherwise, .. } => {
                cases.iter().map(|case| case.1).chain([*otherwise]).collect()
            }
            Node::Switch { steps, .. } => steps.values().map(StepId).collect(),
            Node::Classify { arms, otherwise, .. } => {
                arms.iter().copied().chain([*otherwise]).collect()
            }
            Node::Flow { hit, miss, .. } => vec![*hit, *miss],
            Node::Gate(gate) => gate.arms.iter().map(|arm| arm.to).collect(),
            Node::Exit(_) | Node::Scalar => Vec::new(),
        };
        all.into_iter()
    }

    /// What is known of all lanes that go on from here.
    pub(super) fn needs(&self) -> &[Reg] {
        match self {
            Node::Tests { needs, .. }
            | Node::Cases { needs, .. }
            | Node::Switch { needs, .. }
            | Node::Classify { needs, .. }
            | Node::Flow { needs, .. } => needs,
            Node::Gate(gate) => &gate.needs,
            Node::Exit(_) | Node::Scalar => &[],
        }
    }

    pub(super) fn needs_mut(&mut self) -> Option<&mut Box<[Reg]>> {
        match self {
            Node::Tests { needs, .. }
            | Node::Cases { needs, .. }
            | Node::Switch { needs, .. }
            | Node::Classify { needs, .. }
            | Node::Flow { needs, .. } => Some(needs),
            Node::Gate(gate) => Some(&mut gate.needs),
            Node::Exit(_) | Node::Scalar => None,
        }
    }
}

/// A store of the lower bytes of a column's numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub(super) at: u8,
    pub(super) width: Width,
    pub(super) of: Reg,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Width {
    One,
    Two,
    Four,
}

/// Sixteen bytes of which some are the same in all packets: those that are not kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    pub(super) at: u8,
    pub(super) keep: [u8; 16],
    pub(super) bytes: [u8; 16],
}

/// What is written into an area.
#[derive(Debug, Default)]
pub(super) struct Stores {
    pub(super) constants: Vec<Constants>,
    pub(super) columns: Vec<Store>,
}

impl Stores {
    pub(super) fn is_empty(&self) -> bool {
        self.constants.is_empty() && self.columns.is_empty()
    }

    /// Adds a byte that is the same in all packets; `size` is that of the area.
    fn constant(&mut self, at: usize, byte: u8, size: usize) {
        let start = (at / 16 * 16).min(size - 16);
        let new = Constants { at: start as u8, keep: [0xff; 16], bytes: [0; 16] };
        let found = self.constants.iter().position(|c| usize::from(c.at) == start);
        let found = found.unwrap_or_else(|| {
            self.constants.push(new);
            self.constants.len() - 1
        });
        let constants = &mut self.constants[found];
        (constants.keep[at - start], constants.bytes[at - start]) = (0, byte);
    }
}

/// What becomes of a header's mark.
#[derive(Clone, Copy, Debug)]
pub(super) enum NewMark {
    Keep,
    Clear,
    /// So far from where the data starts afterwards.
    At(i32),
    /// So far from where the data started.
    Computed(Reg),
}

/// An exit for many packets at once.
pub(super) struct Plan {
    pub(super) outcome: u32,
    pub(super) needs: Box<[Reg]>,
    /// Lengths that are summed up.
    pub(super) lengths: Vec<Reg>,
    /// How far the data's start moves.
    pub(super) start: i32,
    /// To which length the data is cut.
    pub(super) length: Option<Reg>,
    /// Where the window of the stores starts, from where the data starts afterwards.
    pub(super) window: i32,
    pub(super) stores: Stores,
    /// Into the annotation area.
    pub(super) annotations: Stores,
    pub(super) carried: Stores,
    pub(super) marks: [NewMark; 3],
    pub(super) packet_type: Option<Reg>,
    pub(super) timestamp: Option<[Reg; 2]>,
    /// Updates of flows, in order; none if the flow cache says what becomes of packets.
    pub(super) updates: Vec<Update>,
    /// The cells that it and its copies use.
    pub(super) cells: Vec<CellUse>,
    /// What becomes of copies; what they need, the plan needs.
    pub(super) copies: Vec<Plan>,
}

/// An update of the flow that a lookup found.
pub(super) struct Update {
    pub(super) lookup: LookupId,
    pub(super) common: Vec<Reg>,
    pub(super) expiry: Time,
    pub(super) guarantee: Time,
}

/// A time that an update sets: one of some, by index.
pub(super) struct Time {
    of: Reg,
    moments: Vec<Moment>,
}

impl Time {
    /// What it comes to for a lane, in nanoseconds of the worker's clock.
    #[inline]
    pub(super) fn at(&self, lanes: &Lanes, lane: usize, now: u64) -> u64 {
        let index = match &self.moments[..] {
            [only] => return only.at(now),
            _ => lanes.column(self.of)[lane] as usize,
        };
        self.moments.get(index).map_or(0, |moment| moment.at(now))
    }
}

impl Update {
    /// The lanes in which it changes more of flows than a packet does that only prolongs them.
    #[inline]
    pub(super) fn changes(&self, lanes: &Lanes, found: &FoundFlows, now: u64) -> u32 {
        lanes.run(Changes { update: self, lanes, found, now })
    }
}

struct Changes<'a> {
    update: &'a Update,
    lanes: &'a Lanes,
    found: &'a FoundFlows,
    now: u64,
}

impl Task for Changes<'_> {
    type Result = u32;

    #[inline(always)]
    fn run(self, isa: impl Isa) -> u32 {
        let Self { update, lanes, found, now } = self;
        let mut differ = [0; LANES];
        for (reg, before) in update.common.iter().zip(&found.common) {
            let column = lanes.column(*reg);
            for lane in 0..LANES {
                differ[lane] |= column[lane] ^ before[lane];
            }
        }
        let times = [(&update.expiry, &found.expiries), (&update.guarantee, &found.guarantees)];
        for (Time { of, moments }, before) in times {
            let differs = |moment: &Moment, lane: usize| {
                let bits = before[lane] ^ moment.at(now);
                bits as u32 | (bits >> 32) as u32
            };
            if let [only] = &moments[..] {
                for (lane, differ) in differ.iter_mut().enumerate() {
                    *differ |= differs(only, lane);
                }
                continue;
            }
            let column = lanes.column(*of);
            for (moment, at) in moments.iter().zip(0..) {
                for (lane, differ) in differ.iter_mut().enumerate() {
                    let is_it = u32::from(column[lane] == at).wrapping_neg();
                    *differ |= differs(moment, lane) & is_it;
                }
            }
        }
        isa.signs(&lanes_where(|lane| differ[lane] != 0))
    }
}

/// A time that depends on the clock alone.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Moment {
    /// Bits that are set in the time before anything is added; `None` if it is an absolute time.
    ticks: Option<u64>,
    more: u64,
}

impl Moment {
    #[inline]
    fn at(self, now: u64) -> u64 {
        self.ticks.map_or(0, |ticks| now | ticks).saturating_add(self.more)
    }

    fn plus(self, other: Moment) -> Option<Moment> {
        let ticks = match (self.ticks, other.ticks) {
            (Some(_), Some(_)) => return None,
            (ticks, other) => ticks.or(other),
        };
        Some(Moment { ticks, more: self.more.checked_add(other.more)? })
    }
}

/// How deeply the terms of times may be nested.
const DEEPEST: usize = 8;

/// A column for which of some moments a term comes to, each plus another; so many terms deep.
fn moment(
    compiler: &mut Compiler<'_>,
    (term, plus, depth): (TermId, Moment, usize),
    moments: &mut Vec<Moment>,
) -> Option<Reg> {
    if depth > DEEPEST {
        return None;
    }
    let program = compiler.program();
    let constant = |term: &TermId| match program.term(*term) {
        Term::Const(number) => u64::try_from(*number).ok(),
        _ => None,
    };
    let alone = match program.term(term) {
        Term::Const(_) => Moment { ticks: None, more: constant(&term)? },
        Term::Now => Moment { ticks: Some(0), more: 0 },
        Term::Binary(BinaryOp::Or, a, b) => {
            let ticks = match (program.term(*a), program.term(*b)) {
                (Term::Now, _) => constant(b)?,
                (_, Term::Now) => constant(a)?,
                _ => return None,
            };
            Moment { ticks: Some(ticks), more: 0 }
        }
        Term::Binary(BinaryOp::Add, a, b) => {
            // One of them has one value.
            let mut single = Vec::new();
            let none = Moment { ticks: None, more: 0 };
            for (one, other) in [(a, b), (b, a)] {
                single.clear();
                if moment(compiler, (*one, none, depth + 1), &mut single).is_some()
                    && single.len() == 1
                {
                    return moment(compiler, (*other, plus.plus(single[0])?, depth + 1), moments);
                }
            }
            return None;
        }
        Term::Choose(atom, a, b) => {
            let cond = compiler.atom(atom)?;
            let a = moment(compiler, (*a, plus, depth + 1), moments)?;
            let b = moment(compiler, (*b, plus, depth + 1), moments)?;
            return Some(compiler.op(Op::Choose((cond, a, b).into())));
        }
        _ => return None,
    };
    let moment = alone.plus(plus)?;
    let at = moments.iter().position(|m| *m == moment).unwrap_or_else(|| {
        moments.push(moment);
        moments.len() - 1
    });
    Some(compiler.op(Op::Const(u32::try_from(at).ok()?)))
}

fn time(compiler: &mut Compiler<'_>, term: TermId, regs: &mut Vec<Reg>) -> Option<Time> {
    let mut moments = Vec::new();
    let of = moment(compiler, (term, Moment { ticks: None, more: 0 }, 0), &mut moments)?;
    if moments.len() > 1 {
        regs.push(of);
    }
    Some(Time { of, moments })
}

/// The steps as nodes, but for sites and exits, which only the caller knows.
pub(super) fn node(compiler: &mut Compiler<'_>, at: StepId) -> Option<Node> {
    if compiler.program().step(at).terms().into_iter().any(|term| compiler.is_changing(term)) {
        return compiler.gates.take(at).map(|gate| Node::Gate(gate.into()));
    }
    match compiler.program().step(at) {
        Step::Test { atom, yes, no, .. } => {
            let cond = compiler.atom(atom)?;
            let needs = compiler.lanes.needs(cond.operands().into_iter().flatten());
            Some(Node::Tests { needs, conds: vec![cond], no: vec![*no], yes: *yes })
        }
        Step::Switch { on, cases, otherwise, .. } => {
            let of = compiler.exactly(*on)?;
            let (needs, otherwise) = (compiler.lanes.needs([of]), *otherwise);
            if is_small(cases) {
                let cases = cases.iter().map(|(set, to)| Some((compiler.case(*on, set)?, *to)));
                let cases = cases.collect::<Option<Vec<_>>>()?;
                if let [(cond, yes)] = &cases[..] {
                    let (conds, no) = (vec![cond.clone()], vec![otherwise]);
                    return Some(Node::Tests { needs, conds, no, yes: *yes });
                }
                return Some(Node::Cases { needs, cases, otherwise });
            }
            Some(Node::Switch { needs, of, steps: compiler.prepared().switch(at)? })
        }
        Step::Classify { keys, arms, otherwise, .. } => {
            // Of packets that come here, keys have 32 bits: of all others it does not matter.
            let keys: Vec<Reg> =
                keys.iter().map(|&key| compiler.term(key)).collect::<Option<_>>()?;
            let needs = compiler.lanes.needs(keys.iter().copied());
            Some(Node::Classify { needs, keys, arms: arms.clone(), otherwise: *otherwise })
        }
        Step::Lookup { lookup, hit, miss } => {
            let keys = &compiler.program().lookups[usize::from(lookup.0)].key;
            if keys.iter().any(|&key| compiler.is_changing(key)) {
                return None;
            }
            let columns = compiler.layout(*lookup).key;
            let mut key = Vec::new();
            for (at, &term) in keys.iter().enumerate() {
                let count = columns.get(at).copied().unwrap_or(1);
                key.extend(compiler.words(term, count, &mut None)?);
            }
            let needs = compiler.lanes.needs(key.iter().copied());
            Some(Node::Flow { needs, lookup: *lookup, key, hit: *hit, miss: *miss })
        }
        Step::Exit(_) => None,
    }
}

/// Makes stores of writes whose offsets count from `first`, into an area of `size` bytes.
fn stores(
    program: &Program,
    writes: &[Write],
    (first, size): (i32, usize),
    mut value: impl FnMut(TermId, u8) -> Option<Reg>,
) -> Option<Stores> {
    let mut stores = Stores::default();
    for write in writes {
        let at = usize::try_from(write.offset.checked_sub(first)?).ok()?;
        let length = usize::from(write.length);
        if at + length > size || length > 16 {
            return None;
        }
        if let Term::Const(number) = program.term(write.value) {
            for (at, &byte) in (at..).zip(&number.to_be_bytes()[16 - length..]) {
                stores.constant(at, byte, size);
            }
            continue;
        }
        // Word by word, the lowest of which stands last.
        for (word, end) in (0..).zip((1..=length).rev().step_by(4)) {
            let (bytes, width) = match end {
                1 => (1, Width::One),
                2 => (2, Width::Two),
                3 => return None,
                _ => (4, Width::Four),
            };
            let of = value(write.value, word)?;
            stores.columns.push(Store { at: (at + end - bytes) as u8, width, of });
        }
    }
    Some(stores)
}

/// The plan of an exit, with numbers from the flow cache if it is left there; `None` if it takes
/// more than columns can do.
pub(super) fn plan(
    compiler: &mut Compiler<'_>,
    (at, exit): (StepId, &Exit),
    outcome: u32,
    lengths: &[&[TermId]],
    mut with: Option<&mut Residual<'_>>,
) -> Option<Plan> {
    let program = compiler.program();
    let [of_copies @ .., lengths] = lengths else { return None };
    let first = outcome.checked_sub(of_copies.len() as u32)?;
    let copies = exit.copies.iter().zip(of_copies).zip(first..);
    let copies = copies
        .map(|((copy, lengths), outcome)| plan(compiler, (at, copy), outcome, &[lengths], None));
    let mut copies = copies.collect::<Option<Vec<Plan>>>()?;
    let updates = copies.iter_mut().flat_map(|copy| std::mem::take(&mut copy.updates)).collect();
    let is_direct = with.is_none();
    let mut word = |compiler: &mut Compiler<'_>, term: TermId, word: u8| match &mut with {
        Some(with) => compiler.residual((term, word), with),
        None => compiler.word(term, word, &mut None),
    };
    let mut value = |compiler: &mut Compiler<'_>, term: TermId| word(compiler, term, 0);
    let mut regs: Vec<Reg> = Vec::new();
    let mut exactly = |compiler: &mut Compiler<'_>, term: TermId| {
        let reg = compiler.is_whole(term).then(|| value(compiler, term)).flatten()?;
        regs.push(reg);
        Some(reg)
    };
    let lengths = lengths.iter().map(|&l| exactly(compiler, l)).collect::<Option<Vec<Reg>>>()?;
    let writes = &exit.writes;
    let mut plan = Plan {
        outcome,
        needs: Box::default(),
        lengths,
        start: writes.start,
        length: match writes.length {
            Some(length) => Some(exactly(compiler, length)?),
            None => None,
        },
        window: 0,
        stores: Stores::default(),
        annotations: Stores::default(),
        carried: Stores::default(),
        marks: [NewMark::Keep; 3],
        packet_type: None,
        timestamp: None,
        updates,
        cells: Vec::new(),
        copies,
    };
    if !matches!(exit.end, End::Drop { .. }) {
        for (mark, to) in plan.marks.iter_mut().zip(writes.marks) {
            *mark = match to {
                Mark::Keep => NewMark::Keep,
                Mark::Clear => NewMark::Clear,
                Mark::At(term) => match program.term(term) {
                    Term::Const(at) => NewMark::At((*at as u32 as i32).checked_sub(writes.start)?),
                    _ => {
                        let reg = value(compiler, term)?;
                        regs.push(reg);
                        NewMark::Computed(reg)
                    }
                },
            };
        }
        if let Some(term) = writes.packet_type {
            let reg = value(compiler, term)?;
            regs.push(reg);
            plan.packet_type = Some(reg);
        }
        let first = writes.bytes.iter().map(|write| write.offset).min().unwrap_or(0);
        plan.window = first.checked_sub(writes.start)?;
        let mut register = |term, at| {
            let reg = word(compiler, term, at)?;
            regs.push(reg);
            Some(reg)
        };
        plan.stores = stores(program, &writes.bytes, (first, WINDOW), &mut register)?;
        plan.timestamp = match writes.timestamp {
            Some(term) => Some([register(term, 0)?, register(term, 1)?]),
            None => None,
        };
        let area = (0, net::annotation::SIZE);
        plan.annotations = stores(program, &writes.annotations, area, &mut register)?;
        plan.carried = stores(program, &writes.carried, (0, net::CARRIED), &mut register)?;
    }
    if is_direct {
        for effect in &exit.effects {
            if let Effect::Update { lookup, common, expiry, guarantee } = effect {
                let mut terms = common.iter().chain([expiry, guarantee]);
                if !compiler.layout(*lookup).shares_words
                    || terms.any(|&term| compiler.is_changing(term))
                {
                    return None;
                }
                let common: Vec<Reg> =
                    common.iter().map(|&term| compiler.exactly(term)).collect::<Option<_>>()?;
                regs.extend(&common);
                let expiry = time(compiler, *expiry, &mut regs)?;
                let guarantee = time(compiler, *guarantee, &mut regs)?;
                plan.updates.push(Update { lookup: *lookup, common, expiry, guarantee });
            }
        }
    }
    plan.cells = cells::uses(compiler, (at, exit), &mut regs)?;
    regs.extend(plan.copies.iter().flat_map(|copy| &copy.needs));
    plan.needs = compiler.lanes.needs(regs);
    Some(plan)
}

/// The updates of flows that an exit makes.
pub(super) fn updates(exit: &Exit) -> impl Iterator<Item = (&[TermId], [TermId; 2])> {
    exit.effects.iter().filter_map(|effect| match effect {
        Effect::Update { common, expiry, guarantee, .. } => {
            Some((&common[..], [*expiry, *guarantee]))
        }
        _ => None,
    })
}

/// Where the flow cache is asked.
pub(super) struct Site {
    /// Of frequent keys, one of so many gets an entry each time.
    pub(super) one_of: u64,
    pub(super) needs: Box<[Reg]>,
    /// The key's numbers, and where each goes.
    pub(super) key: Vec<Part>,
    /// Conditions on the packet that its path may depend on.
    pub(super) conditions: Vec<Cond>,
    /// By outcome, in order: what entries that lead to an exit hold.
    pub(super) exits: Vec<(u32, CachedExit)>,
}

impl Site {
    /// What entries that lead to an exit hold, by its outcome.
    pub(super) fn exit(&self, outcome: u32) -> Option<&CachedExit> {
        let at = self.exits.binary_search_by_key(&outcome, |exit| exit.0).ok()?;
        Some(&self.exits[at].1)
    }

    /// The columns that a key is made from, and those that its entries are.
    pub(super) fn needs_mut(&mut self) -> impl Iterator<Item = &mut Box<[Reg]>> {
        let exits = self.exits.iter_mut().map(|(_, exit)| &mut exit.needs);
        exits.chain([&mut self.needs])
    }
}
