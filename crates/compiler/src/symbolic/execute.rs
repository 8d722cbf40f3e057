//! Carries a packet of which nothing is known through models, and forks where it matters.

mod lookup;

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use classify::MAX_DIMENSIONS;
use ir::PrefixTable;
use ir::model::{BinaryOp, Block, Reg, Rule, StateKind, StateRef};
use ir::program::{
    Barrier, ClassifyRule, Effect, End, Entries, Exit, Lookup, LookupId, StateId, StateOf, Step,
    StepId, Table, TableId, Term, TermId,
};
use ir::{Expr, IntervalSet, Model, Op, Reason};
use ir::{Graph, NodeId, Port, Processing};

use super::cache::{Cache, Known, RuleDependence};
use super::draft::Draft;
use super::facts::Facts;
use super::packet::{MarkAt, Packet, Stop, field_at};
use super::rules::{Rules, tests};
use super::split::{Split, split};
use super::table::Table as PrefixRows;
use super::terms::{Decided, Terms};

/// An output that nothing is connected to; as the router counts it.
const UNCONNECTED: Reason = Reason("unconnected-output");
/// A port that does not exist; as elements count it.
const NO_SUCH_PORT: Reason = Reason("no-such-port");

/// A program has at most so many steps; a chain that takes more is executed in stages.
pub(crate) const MAX_STEPS: usize = 10_000;
/// An input that so many paths come to is a good place to begin a further stage.
const MANY_PATHS: usize = 64;
/// A path leads through so many inputs at the most.
pub(crate) const MAX_LENGTH: usize = 500;
/// Where paths multiply, no more steps are taken once it shows where.
const MULTIPLYING_STEPS: usize = 300;
/// For each step that may be taken, paths come to so many inputs at the most.
const MAX_WORK_PER_STEP: usize = 8;
/// Different lookups in flow tables.
const MAX_LOOKUPS: u16 = 4096;
/// So many outputs, rules or different rows of a table make paths of their own; of larger tables,
/// each number is looked up where it is wanted.
const MAX_ROWS: usize = 64;
/// How often packets are distinguished so that rules look at fewer numbers.
const MAX_SPLITS: usize = 64;

/// Tests of a list of rules that are executed one after the other: of each, more is known than of
/// the one before.
const MAX_TESTS: usize = 2000;

const NO_CELL: Stop = Stop::Unsupported(Barrier::Cells);
const TOO_SHORT: Stop = Stop::Unsupported(Barrier::TooShort);
/// Numbers that are tried one by one are at most so large.
const MAX_TRIED: u128 = 64;

/// What surrounds the elements.
pub(crate) struct Chain<'a> {
    pub graph: &'a Graph,
    pub models: &'a [Model],
    /// Where each connected output leads.
    pub to: HashMap<Port, Port>,
    /// Inputs at which programs end because another begins there.
    pub stages: HashSet<Port>,
    /// Elements that are not looked into, and why.
    pub opaque: Vec<Option<Barrier>>,
    /// Whether paths are followed, too, that few packets take: headers with options, and packets too
    /// short for what is pulled. A proof wants them; programs leave them to elements.
    pub explore_rare_paths: bool,
    /// Whether tables stay whole, as targets want them; or else, as the data plane wants them, they
    /// are specialised for each path: rules that cannot match are left out, and the rows of small
    /// tables make paths of their own.
    pub tables: bool,
}

impl Chain<'_> {
    /// The element and all that packets can get to from it.
    fn behind(&self, node: NodeId) -> HashSet<NodeId> {
        let mut reached = HashSet::from([node]);
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            let outputs = 0..self.graph.nodes[node].outputs.len();
            let next = outputs.filter_map(|port| self.to.get(&Port { node, port }));
            waiting.extend(next.map(|to| to.node).filter(|&to| reached.insert(to)));
        }
        reached
    }

    /// Whether a program can begin at an input: models say what becomes of packets there.
    pub(crate) fn is_program_input(&self, input: Port) -> bool {
        let pushed = self.graph.nodes[input.node].inputs[input.port] != Processing::Pull;
        pushed && self.opaque[input.node].is_none()
    }
}

/// What a block belongs to.
#[derive(Clone, Copy)]
struct Frame<'a> {
    block: &'a [Op],
    next: usize,
}

/// A packet on its path.
#[derive(Clone)]
pub(super) struct Path<'a> {
    pub(super) facts: Facts,
    pub(super) packet: Packet,
    pub(super) registers: Vec<Option<TermId>>,
    effects: Vec<Effect>,
    visited: Vec<Port>,
    /// Lookups that found a flow, the latest last.
    found: Vec<LookupId>,
    /// Lookups that found nothing.
    missed: Vec<LookupId>,
    /// Flows that were changed on the path: what was bound may no longer be so.
    changed: Vec<TableId>,
    stack: Vec<Frame<'a>>,
    at: Port,
    /// How things stood when it came to the element.
    before: Rc<Before>,
    /// What cells hold that were written on the path.
    cells: Vec<((StateId, u16), TermId)>,
    /// What became of copies, and packets that wait until their copies have left, the latest last.
    copies: Vec<Exit>,
    originals: Vec<Original<'a>>,
}

/// What is undone if an element's native code takes the packet.
#[derive(Clone)]
struct Before {
    packet: Packet,
    effects: usize,
    copies: usize,
    cells: Vec<((StateId, u16), TermId)>,
}

/// A packet that waits while its copy is on its path.
#[derive(Clone)]
struct Original<'a> {
    packet: Packet,
    registers: Vec<Option<TermId>>,
    effects: Vec<Effect>,
    visited: Vec<Port>,
    stack: Vec<Frame<'a>>,
    at: Port,
    before: Rc<Before>,
}

impl<'a> Path<'a> {
    /// Sets the packet aside: from here on, a copy is on its path.
    fn copy(&mut self) {
        self.originals.push(Original {
            packet: self.packet.clone(),
            registers: self.registers.clone(),
            effects: std::mem::take(&mut self.effects),
            visited: std::mem::replace(&mut self.visited, vec![self.at]),
            stack: self.stack.clone(),
            at: self.at,
            before: Rc::clone(&self.before),
        });
    }

    /// The copy left: the packet goes on.
    fn resume(&mut self, original: Original<'a>, copy: Exit) {
        let Original { packet, registers, effects, visited, stack, at, before } = original;
        (self.packet, self.registers, self.effects) = (packet, registers, effects);
        (self.visited, self.stack, self.at, self.before) = (visited, stack, at, before);
        self.copies.push(copy);
    }

    fn remember(&mut self) {
        self.before = Rc::new(Before {
            packet: self.packet.clone(),
            effects: self.effects.len(),
            copies: self.copies.len(),
            cells: self.cells.clone(),
        });
    }
}

/// What comes after an operation.
enum Next<'a> {
    /// The next operation.
    Go,
    /// A block first.
    Enter(&'a [Op]),
    /// The packet leaves on a port.
    Emit(usize),
    /// A copy leaves on a port.
    Copy(usize),
    /// It is dropped.
    Drop(Reason),
    /// A step was made whose successors go on.
    Forked(Step),
}

/// A step where a path ends, or the packet that goes on after its copy left.
type Ended<'a> = ControlFlow<Step, Path<'a>>;

/// In which order paths are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Each to its end before the next, which takes the least memory.
    Single,
    /// All of them step by step, until it shows where they multiply.
    Abreast,
}

/// Too many steps; see [`Machine::run`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct TooManySteps {
    /// Steps that were taken, and inputs that paths came to.
    pub work: usize,
    /// Where to cut the chain.
    pub cut: Option<Cut>,
}

/// An input at which paths should end because another program begins there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cut {
    /// So many paths come there: the first input that many come to, or else that most do.
    Many(Port, usize),
    /// Paths come there through too many elements.
    Long(Port),
    /// Copies of packets come there, and their path forks behind it: each of a packet's own paths would go on with each of
    /// its copy's.
    Copy(Port),
}

pub(crate) struct Machine<'a> {
    chain: &'a Chain<'a>,
    entry: Port,
    pub(super) terms: Terms,
    state: Vec<StateOf>,
    tables: Vec<Table>,
    lookups: Vec<Lookup>,
    /// How often packets were distinguished for lists of rules that look at too much.
    splits: usize,
    steps: Vec<Option<Step>>,
    work: VecDeque<(StepId, Path<'a>)>,
    visits: HashMap<Port, usize>,
    /// All of them.
    entered: usize,
    /// The first input that many paths came to.
    many: Option<Port>,
    /// One that a path came to through too many others.
    long: Option<Port>,
    /// The first input that a copy came to whose path forked.
    copy: Option<Port>,
    cache: &'a mut Cache,
    /// By element: those that packets can get to from there.
    behind: HashMap<NodeId, HashSet<NodeId>>,
}

impl<'a> Machine<'a> {
    /// A program's draft for packets that come to an input, of at most [`MAX_STEPS`] steps, the
    /// inputs that its paths come to, and the work that it was.
    pub(crate) fn run(
        chain: &'a Chain<'a>,
        cache: &'a mut Cache,
        entry: Port,
        order: Order,
    ) -> Result<(Draft, HashSet<Port>, usize), TooManySteps> {
        let mut machine = Self {
            chain,
            entry,
            terms: Terms::default(),
            state: Vec::new(),
            tables: Vec::new(),
            lookups: Vec::new(),
            splits: 0,
            steps: Vec::new(),
            work: VecDeque::new(),
            visits: HashMap::new(),
            entered: 0,
            many: None,
            long: None,
            copy: None,
            cache,
            behind: HashMap::new(),
        };
        let packet = Packet::new(&mut machine.terms, machine.chain.explore_rare_paths);
        let path = Path {
            facts: Facts::default(),
            before: Rc::new(Before {
                packet: packet.clone(),
                effects: 0,
                copies: 0,
                cells: Vec::new(),
            }),
            packet,
            registers: Vec::new(),
            effects: Vec::new(),
            visited: Vec::new(),
            found: Vec::new(),
            missed: Vec::new(),
            changed: Vec::new(),
            stack: Vec::new(),
            at: entry,
            cells: Vec::new(),
            copies: Vec::new(),
            originals: Vec::new(),
        };
        let root = machine.reserve();
        let mut first = path;
        machine.enter(&mut first, entry);
        machine.work.push_back((root, first));
        while let Some((slot, path)) = match order {
            Order::Single => machine.work.pop_back(),
            Order::Abreast => machine.work.pop_front(),
        } {
            let step = machine.advance(path);
            machine.steps[slot.0 as usize] = Some(step);
            let shows = order == Order::Abreast && machine.many.is_some();
            let most = if shows { MULTIPLYING_STEPS } else { MAX_STEPS };
            let is_too_much =
                machine.steps.len() > most || machine.work() > MAX_WORK_PER_STEP * most;
            let is_long = order == Order::Single && machine.long.is_some();
            if is_too_much || is_long || machine.copy.is_some() {
                return Err(machine.too_many());
            }
        }
        if machine.long.is_some() {
            return Err(machine.too_many());
        }
        let work = machine.work();
        let steps = machine.steps.into_iter().flatten().collect();
        let draft = Draft {
            entry,
            terms: machine.terms,
            state: machine.state,
            tables: machine.tables,
            lookups: machine.lookups,
            steps,
            root,
        };
        Ok((draft, machine.visits.into_keys().collect(), work))
    }

    /// Steps that were taken, and inputs that paths came to.
    fn work(&self) -> usize {
        self.steps.len() + self.entered
    }

    fn too_many(&self) -> TooManySteps {
        let behind = self.visits.iter().filter(|(port, _)| **port != self.entry);
        let busiest =
            || behind.max_by_key(|(port, paths)| (**paths, **port)).map(|(port, _)| *port);
        let many = |at| Cut::Many(at, self.visits[&at]);
        let cut = self.many.map(many).or(self.long.map(Cut::Long));
        let cut = self.copy.map(Cut::Copy).or(cut);
        TooManySteps { work: self.work(), cut: cut.or_else(|| busiest().map(many)) }
    }

    fn reserve(&mut self) -> StepId {
        self.steps.push(None);
        StepId(self.steps.len() as u32 - 1)
    }

    /// Sets a packet at the start of an element's block.
    fn enter(&mut self, path: &mut Path<'a>, to: Port) {
        self.entered += 1;
        let visits = self.visits.entry(to).or_default();
        *visits += 1;
        if *visits == MANY_PATHS && self.many.is_none() {
            self.many = Some(to);
        }
        path.at = to;
        path.visited.push(to);
        path.remember();
        path.registers.clear();
        path.stack.clear();
        if let Some(block) = self.chain.models[to.node].input(to.port) {
            path.stack.push(Frame { block, next: 0 });
        }
    }

    /// Lets a packet go on until its path forks or ends.
    fn advance(&mut self, mut path: Path<'a>) -> Step {
        loop {
            let ended = if path.facts.is_contradiction() {
                // No packet comes here: any end is right, so the simplest.
                self.give_up(path, Barrier::Unreachable)
            } else {
                match self.next(&mut path) {
                    Ok(Next::Go) => continue,
                    Ok(Next::Enter(block)) => {
                        path.stack.push(Frame { block, next: 0 });
                        continue;
                    }
                    Ok(Next::Forked(step)) => return step,
                    Ok(Next::Drop(reason)) => self.drop(path, reason),
                    Ok(Next::Emit(port)) => self.emits(path, port),
                    Ok(Next::Copy(port)) => {
                        path.copy();
                        self.emits(path, port)
                    }
                    Err(Stop::Split(decided)) => {
                        if let Some(frame) = path.stack.last_mut() {
                            frame.next -= 1;
                        }
                        self.split(path, decided)
                    }
                    Err(Stop::Unsupported(why)) => self.give_up(path, why),
                }
            };
            match ended {
                ControlFlow::Break(step) => return step,
                ControlFlow::Continue(goes_on) => path = goes_on,
            }
        }
    }

    /// Does the next operation.
    fn next(&mut self, path: &mut Path<'a>) -> Result<Next<'a>, Stop> {
        while let Some(frame) = path.stack.last_mut() {
            let block: &'a [Op] = frame.block;
            if let Some(op) = block.get(frame.next) {
                frame.next += 1;
                return self.operate(path, op);
            }
            path.stack.pop();
        }
        Err(Stop::Unsupported(Barrier::NoEnd))
    }

    /// A packet, or a copy, leaves its element on a port.
    fn emits(&mut self, mut path: Path<'a>, port: usize) -> Ended<'a> {
        let from = Port { node: path.at.node, port };
        if port >= self.chain.graph.nodes[from.node].outputs.len() {
            return self.drop(path, NO_SUCH_PORT);
        }
        let Some(&to) = self.chain.to.get(&from) else {
            return self.drop(path, UNCONNECTED);
        };
        if self.chain.stages.contains(&to) {
            return self.leave(path, to, false, Some(Barrier::NextStage));
        }
        if path.visited.len() >= MAX_LENGTH && self.chain.is_program_input(to) {
            // Others may tell more: this one waits for the next attempt.
            self.long = Some(to);
            return self.leave(path, to, false, Some(Barrier::NextStage));
        }
        if let Some(why) = self.chain.opaque[to.node] {
            return self.leave(path, to, true, Some(why));
        }
        let originals = path.originals.iter().flat_map(|original| &original.visited);
        if path.visited.iter().chain(originals).any(|&visited| visited == to) {
            return self.leave(path, to, true, Some(Barrier::Loop));
        }
        self.enter(&mut path, to);
        ControlFlow::Continue(path)
    }

    /// A small number, found by asking for each that it may be.
    fn exact(&mut self, path: &Path<'a>, term: TermId) -> Result<Option<i32>, Stop> {
        if let Some(known) = path.facts.single(&self.terms, term) {
            return Ok(i32::try_from(known).ok());
        }
        let (least, most) = path.facts.bounds(&self.terms, term);
        if most > MAX_TRIED {
            return Ok(None);
        }
        Err(Stop::Split(self.terms.test(term, &IntervalSet::single(least))))
    }

    /// Forks on a condition; both paths do the operation again, knowing it.
    fn split(&mut self, path: Path<'a>, decided: Decided) -> Ended<'a> {
        let Decided::Open(atom, _) = decided else {
            return self.give_up(path, Barrier::Decided);
        };
        let element = path.at.node;
        let (mut yes, mut no) = (path.clone(), path);
        yes.facts.assume(&self.terms, &atom, true);
        no.facts.assume(&self.terms, &atom, false);
        let (yes, no) = (self.later(yes), self.later(no));
        ControlFlow::Break(Step::Test { atom, yes, no, element })
    }

    fn later(&mut self, path: Path<'a>) -> StepId {
        if !path.originals.is_empty() {
            self.copy = self.copy.or(path.visited.get(1).copied());
        }
        let slot = self.reserve();
        self.work.push_back((slot, path));
        slot
    }

    /// The element's native code takes the packet as it came to it.
    fn give_up(&mut self, mut path: Path<'a>, why: Barrier) -> Ended<'a> {
        let before = Rc::clone(&path.before);
        path.packet = before.packet.clone();
        path.effects.truncate(before.effects);
        path.copies.truncate(before.copies);
        path.cells.clone_from(&before.cells);
        path.visited.pop();
        let at = path.at;
        self.leave(path, at, true, Some(why))
    }

    fn drop(&mut self, path: Path<'a>, reason: Reason) -> Ended<'a> {
        let element = path.at.node;
        self.exit(path, End::Drop { element, reason }, None)
    }

    fn leave(
        &mut self,
        path: Path<'a>,
        to: Port,
        native: bool,
        barrier: Option<Barrier>,
    ) -> Ended<'a> {
        self.exit(path, End::Push { to, native }, barrier)
    }

    fn exit(&mut self, mut path: Path<'a>, end: End, barrier: Option<Barrier>) -> Ended<'a> {
        let dropped = matches!(end, End::Drop { .. });
        let Some(writes) = path.packet.writes(&mut self.terms, dropped) else {
            // Bytes next to what was written are not known: let the elements do it.
            return self.give_up(path, Barrier::PartialWrite);
        };
        let (effects, visited) =
            (std::mem::take(&mut path.effects), std::mem::take(&mut path.visited));
        let mut exit = Exit { effects, writes, end, barrier, visited, copies: Vec::new() };
        if let Some(original) = path.originals.pop() {
            path.resume(original, exit);
            return ControlFlow::Continue(path);
        }
        exit.copies = path.copies;
        let is_new = |((cells, index), value): &((StateId, u16), TermId)| {
            *self.terms.get(*value) != Term::Cell(*cells, *index)
        };
        let cells = path.cells.into_iter().filter(is_new);
        let set = cells.map(|((cells, index), value)| Effect::Set { cells, index, value });
        exit.effects.extend(set);
        ControlFlow::Break(Step::Exit(Box::new(exit)))
    }

    /// Whether a copy that left may come to what shares a piece of state, before the packet
    /// itself gets to it.
    fn is_ahead(&mut self, path: &Path<'a>, state: StateId) -> bool {
        let chain = self.chain;
        let StateOf { owner, name, .. } = &self.state[usize::from(state.0)];
        path.copies.iter().any(|copy| {
            let End::Push { to, .. } = copy.end else { return false };
            let behind = self.behind.entry(to.node).or_insert_with(|| chain.behind(to.node));
            behind.iter().any(|&node| {
                let its = |decl: &ir::model::StateDecl| {
                    let of = decl.owner.as_ref().unwrap_or(&chain.graph.nodes[node].name);
                    (of, decl.name) == (owner, *name)
                };
                chain.models[node].state.iter().any(its)
            })
        })
    }

    fn operate(&mut self, path: &mut Path<'a>, op: &'a Op) -> Result<Next<'a>, Stop> {
        match op {
            Op::Let(reg, expr) => {
                let value = self.expr(path, expr)?;
                bind(path, *reg, value);
            }
            Op::Set(field, expr) => {
                let value = self.expr(path, expr)?;
                let value = path.facts.cut(&mut self.terms, value, field.width.into());
                path.packet.write(&mut self.terms, &path.facts, *field, value)?;
            }
            Op::Store { base, offset, width, value } => {
                let offset = self.constant(path, offset)?;
                let field = field_at(*base, offset, *width)?;
                let value = self.expr(path, value)?;
                let value = path.facts.cut(&mut self.terms, value, (*width).into());
                path.packet.write(&mut self.terms, &path.facts, field, value)?;
            }
            Op::If(cond, then, otherwise) => {
                let block = if self.cond(path, cond)? { then } else { otherwise };
                return Ok(Next::Enter(block));
            }
            Op::Expect(cond) => {
                if !self.cond(path, cond)? {
                    return Err(Stop::Unsupported(Barrier::Unexpected));
                }
            }
            Op::Match { rules, arms, otherwise } => {
                return self.matches(path, rules, arms, otherwise);
            }
            Op::Lookup { table, key, bind: regs, miss } => {
                let key = self.expr(path, key)?;
                return self.lookup(path, table, key, regs, miss);
            }
            Op::Pull(expr) => {
                let by = self.constant(path, expr)? as i128;
                let mut by = i32::try_from(by).map_err(|_| Stop::Unsupported(Barrier::PullsFar))?;
                if by > 0 {
                    let length = path.packet.length(&mut self.terms);
                    let enough = IntervalSet::range(by as u128, u128::MAX);
                    let enough = self.terms.test(length, &enough);
                    match path.facts.resolve(&mut self.terms, &enough) {
                        Some(true) => {}
                        Some(false) if self.chain.explore_rare_paths => {
                            by = self.exact(path, length)?.ok_or(TOO_SHORT)?;
                        }
                        Some(false) => return Err(TOO_SHORT),
                        None => return Err(Stop::Split(enough)),
                    }
                }
                path.packet.start = path
                    .packet
                    .start
                    .checked_add(by)
                    .filter(|s| s.abs() < 4096)
                    .ok_or(Stop::Unsupported(Barrier::PullsFar))?;
            }
            Op::Truncate(expr) => {
                let length = self.expr(path, expr)?;
                let start = self.terms.constant(i128::from(path.packet.start) as u128);
                let end = self.terms.binary(BinaryOp::Add, length, start);
                path.packet.end = path.facts.min(&mut self.terms, end, path.packet.end);
            }
            Op::Mark(header, expr) => {
                let at = self.expr(path, expr)?;
                let start = self.terms.constant(i128::from(path.packet.start) as u128);
                let at = self.terms.binary(BinaryOp::Add, at, start);
                path.packet.marks[*header as usize] = MarkAt::At(at);
            }
            Op::Unmark(header) => path.packet.marks[*header as usize] = MarkAt::Nowhere,
            Op::Fresh => path.packet.refresh(&mut self.terms),
            Op::Count(state) => {
                let counter = self.state(path, *state);
                let length = path.packet.length(&mut self.terms);
                path.effects.push(Effect::Count { counter, length });
            }
            Op::FlowLookup { flows, key, value, common, miss: _ } => {
                let key = self.numbers(path, key)?;
                let table = self.flows(path, *flows, &key);
                if path.changed.contains(&table) {
                    return Err(Stop::Unsupported(Barrier::ChangedFlows));
                }
                if let Entries::Flows(state) = self.tables[usize::from(table.0)].entries
                    && self.is_ahead(path, state)
                {
                    return Err(Stop::Unsupported(Barrier::Copies));
                }
                let (values, commons) = (value.len() as u8, common.len() as u8);
                let (lookup, known) = self.look_up(path, table, key, [values, commons])?;
                let regs = value.iter().chain(common).copied();
                if known.is_some() {
                    self.bind_flow(path, lookup, regs);
                    return Ok(Next::Go);
                }
                let mut hit = path.clone();
                hit.found.push(lookup);
                self.bind_flow(&mut hit, lookup, regs);
                let missed = path.clone();
                let hit = self.later(hit);
                let miss = match self.give_up(missed, Barrier::NewFlow) {
                    ControlFlow::Continue(path) => self.later(path),
                    ControlFlow::Break(step) => {
                        let slot = self.reserve();
                        self.steps[slot.0 as usize] = Some(step);
                        slot
                    }
                };
                return Ok(Next::Forked(Step::Lookup { lookup, hit, miss }));
            }
            Op::FlowUpdate { flows, key, common, expiry, guarantee } => {
                let key = self.numbers(path, key)?;
                let common = self.numbers(path, common)?;
                let (expiry, guarantee) = (self.expr(path, expiry)?, self.expr(path, guarantee)?);
                let table = self.flows(path, *flows, &key);
                let of = |l: &LookupId| {
                    let known = &self.lookups[usize::from(l.0)];
                    known.table == table && known.key == key
                };
                let lookup = path.found.iter().copied().find(of);
                let lookup = lookup.ok_or(Stop::Unsupported(Barrier::OtherFlow))?;
                path.changed.push(table);
                path.effects.push(Effect::Update { lookup, common, expiry, guarantee });
            }
            Op::Note(reason) => {
                path.effects.push(Effect::Note { element: path.at.node, reason: *reason });
            }
            Op::Emit(port) => {
                let port = self.expr(path, port)?;
                return self.emit(path, port);
            }
            Op::Drop(reason) => return Ok(Next::Drop(*reason)),
            Op::Opaque(why) => return Err(Stop::Unsupported(Barrier::Opaque(why))),
            Op::Repeat { .. } | Op::Break => return Err(Stop::Unsupported(Barrier::Repeats)),
            Op::Extend(_) => return Err(Stop::Unsupported(Barrier::Extends)),
            Op::Read(reg, state, index) => {
                let (cell, width) = self.cell(path, *state, index)?;
                let written = path.cells.iter().find(|(of, _)| *of == cell);
                let value = match written {
                    Some((_, value)) => *value,
                    None => self.terms.cell(cell.0, cell.1, width),
                };
                bind(path, *reg, value);
            }
            Op::Write(state, index, value) => {
                let (cell, width) = self.cell(path, *state, index)?;
                let value = self.expr(path, value)?;
                let value = path.facts.cut(&mut self.terms, value, width.into());
                match path.cells.iter_mut().find(|(of, _)| *of == cell) {
                    Some((_, held)) => *held = value,
                    None => path.cells.push((cell, value)),
                }
            }
            Op::FlowInsert { .. } | Op::Allocate { .. } => {
                return Err(Stop::Unsupported(Barrier::NewFlow));
            }
            Op::EmitCopy(port) => {
                let port = self.expr(path, port)?;
                return Ok(match self.emit(path, port)? {
                    Next::Emit(port) => Next::Copy(port),
                    forked => forked,
                });
            }
        }
        Ok(Next::Go)
    }

    /// A cell, and its width.
    fn cell(
        &mut self,
        path: &Path<'a>,
        state: StateRef,
        index: &Expr,
    ) -> Result<((StateId, u16), u16), Stop> {
        let index = self.expr(path, index)?;
        let index = path.facts.single(&self.terms, index).ok_or(NO_CELL)?;
        let index = u16::try_from(index).map_err(|_| NO_CELL)?;
        let cells = self.state(path, state);
        let kind = self.state.get(usize::from(cells.0)).map(|state| &state.kind);
        let Some(StateKind::Cells { width, initial }) = kind else { return Err(NO_CELL) };
        let width = *width;
        if usize::from(index) >= initial.len() {
            return Err(NO_CELL);
        }
        match self.is_ahead(path, cells) {
            true => Err(Stop::Unsupported(Barrier::Copies)),
            false => Ok(((cells, index), width)),
        }
    }

    /// Sends the packet out of a port that is a number: each port is a path of its own.
    fn emit(&mut self, path: &mut Path<'a>, port: TermId) -> Result<Next<'a>, Stop> {
        if let Some(port) = path.facts.single(&self.terms, port) {
            return Ok(Next::Emit(usize::try_from(port).unwrap_or(usize::MAX)));
        }
        let outputs = self.chain.graph.nodes[path.at.node].outputs.len();
        if outputs > MAX_ROWS {
            return Err(Stop::Unsupported(Barrier::TooManyOutputs));
        }
        let possible = path.facts.set(&self.terms, port);
        if IntervalSet::min(&possible).is_none_or(|least| least >= outputs as u128) {
            return Ok(Next::Emit(usize::MAX));
        }
        let cases: Vec<IntervalSet> =
            (0..outputs).map(|p| IntervalSet::single(p as u128)).collect();
        Ok(Next::Forked(self.switch(path, port, cases)))
    }

    /// Forks on the set that a number lies in; every path does the operation again, knowing it.
    fn switch(&mut self, path: &Path<'a>, on: TermId, cases: Vec<IntervalSet>) -> Step {
        let mut rest = path.facts.set(&self.terms, on);
        let mut made = Vec::with_capacity(cases.len());
        let mut again = path.clone();
        if let Some(frame) = again.stack.last_mut() {
            frame.next -= 1;
        }
        for set in cases {
            let set = set.intersect(&rest);
            if set.is_empty() {
                continue;
            }
            rest = rest.subtract(&set);
            let mut path = again.clone();
            self.assume_in(&mut path, on, &set);
            made.push((set, self.later(path)));
        }
        let mut otherwise = again;
        if rest.is_empty()
            && let Some((_, last)) = made.pop()
        {
            return Step::Switch { on, cases: made, otherwise: last, element: path.at.node };
        }
        self.assume_in(&mut otherwise, on, &rest);
        let otherwise = self.later(otherwise);
        Step::Switch { on, cases: made, otherwise, element: path.at.node }
    }

    fn assume_in(&mut self, path: &mut Path<'a>, term: TermId, set: &IntervalSet) {
        if let Decided::Open(atom, holds) = self.terms.test(term, set) {
            path.facts.assume(&self.terms, &atom, holds);
        }
        path.facts.restrict(term, set.clone());
    }

    fn state(&mut self, path: &Path<'a>, state: StateRef) -> StateId {
        let element = path.at.node;
        let name = &self.chain.graph.nodes[element].name;
        let Some(declared) = self.chain.models[element].state.get(usize::from(state.0)) else {
            return StateId(u16::MAX);
        };
        let owner = declared.owner.as_ref().unwrap_or(name);
        let known = self.state.iter().position(|s| s.owner == *owner && s.name == declared.name);
        let at = known.unwrap_or_else(|| {
            self.state.push(StateOf {
                owner: owner.clone(),
                element,
                name: declared.name,
                kind: declared.kind.clone(),
            });
            self.state.len() - 1
        });
        StateId(at as u16)
    }
}

fn bind(path: &mut Path<'_>, reg: Reg, value: TermId) {
    let at = usize::from(reg.0);
    if path.registers.len() <= at {
        path.registers.resize(at + 1, None);
    }
    path.registers[at] = Some(value);
}
