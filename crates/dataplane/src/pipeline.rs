//! Programs executed natively: the synthesised data plane.
//!
//! A burst is decided first: each packet gets the exit that its path leads to. Only then is
//! anything done, exit by exit. What elements would have counted is counted by exit, and told to
//! them when somebody asks.

mod burst;
mod cache;
mod cells;
mod classifiers;
mod compile;
mod entry;
mod gate;
mod gates;
mod lanes;
mod plan;
mod prepared;
mod range_table;
mod scalar;
mod simd;
mod sites;
mod tables;
mod wide;
mod words;
mod write;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use elements::cells::Cells;
use elements::flow_access::FoundFlows;
use ir::program::{Effect, End, Exit, LookupId, Program, Step, StepId, TermId};
use ir::{NodeId, Port, Reason};
use net::{Batch, Packet};
use smallvec::SmallVec;

use crate::router::{Delivery, Taker, Warmth};
use crate::{Stage, StageContext};
use burst::Burst;
use cache::{FlowCache, Missed};
use cells::{CellColumns, CellTable};
use classifiers::Classifiers;
pub(crate) use classifiers::Library;
use compile::Compiler;
use gate::Group;
use lanes::Lanes;
use plan::{Node, Plan, Site};
pub use prepared::Prepared;
use prepared::Ranges;
use scalar::Scalar;
use sites::{Builder, Compiled, ExitLengths, most_lookups};
pub(crate) use tables::Table;
use tables::Tables;
use words::Layout;

/// Instead of a plan's and a cache entry's number.
const NONE: u32 = u32::MAX;

/// What a pipeline must know of the chain that it stands in.
pub(crate) trait Surroundings {
    /// The element of a full name.
    fn node(&self, name: &str) -> Option<NodeId>;
    /// The flows that an element refers to.
    fn table(&self, node: NodeId) -> Option<Table>;
    /// Cells that an element refers to, by name.
    fn cells(&self, node: NodeId, name: &str) -> Option<Cells>;
    /// The element and all that packets can get to from it.
    fn behind(&self, node: NodeId) -> BTreeSet<NodeId>;
    /// What programs look keys up in.
    fn classifiers(&self) -> &Library;
    /// How often packets would have come to beginnings of cycles on the path to an exit, or on that of
    /// one of its copies.
    fn loops(&self, exit: &Exit, leaving: &Exit) -> u32;
    /// How many elements there are.
    fn elements(&self) -> usize;
    /// The elements from which packets can get to some, these included.
    fn before(&self, elements: &[NodeId]) -> Vec<bool>;
    /// Whether an element calls handlers.
    fn calls_handlers(&self, node: NodeId) -> bool;
}

/// What becomes of a packet that comes to an element while a burst is decided.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It waits for its turn: nothing that comes after changes flows that the program looks up, and packets before it may
    /// come to this element later.
    Waits,
    /// The element takes it at once: packets behind it find what it changes, and it may end where the program's packets do.
    Runs,
    /// The same, but the element may look at what was not counted yet: all packets behind it wait.
    Ends,
}

/// Where packets go that are not dropped.
struct Target {
    to: Port,
    taker: Taker,
    /// How often they would have come to beginnings of cycles.
    loops: u32,
    /// The elements that what goes there may get to.
    behind: BTreeSet<NodeId>,
    /// By number of those before: whether paths from there and from here may meet.
    meets: Vec<bool>,
    /// Which tables may change before a packet that goes there comes to rest.
    changes: Vec<bool>,
    /// Whether cells of the program may.
    changes_cells: bool,
    /// Those that go there at present.
    batch: Option<Batch>,
}

impl Target {
    fn may_change(&self) -> MayChange {
        MayChange { flows: self.changes.contains(&true), cells: self.changes_cells }
    }
}

/// What a program depends on that may change before packets come to rest.
#[derive(Clone, Copy, Default)]
struct MayChange {
    flows: bool,
    cells: bool,
}

impl MayChange {
    fn any(self) -> bool {
        self.flows || self.cells
    }

    fn or(self, other: Self) -> Self {
        Self { flows: self.flows || other.flows, cells: self.cells || other.cells }
    }
}

/// What an exit comes to besides what is written.
struct Outcome {
    /// The number of the target; packets without one are dropped.
    target: Option<u16>,
    dropped: Option<(NodeId, Reason)>,
    /// Lengths that are summed up.
    lengths: Vec<TermId>,
    /// Counters by owner and name, and the index of the length that they sum up.
    counters: Vec<(NodeId, &'static str, usize)>,
    notes: Vec<(NodeId, Reason)>,
    /// Packets that were not told yet, the sums of their lengths, and of those that were dropped.
    packets: u64,
    sums: Vec<u64>,
    dropped_bytes: u64,
    /// Packets whose path was not reported yet.
    passed: u64,
}

/// Executes a program.
pub(crate) struct Pipeline {
    program: Counted,
    classifiers: Rc<Classifiers>,
    scalar: Scalar,
    tables: Tables,
    cells: Rc<CellTable>,
    cell_columns: CellColumns,
    /// Cells that lanes pass gates by.
    gates: Vec<Group>,
    lanes: Lanes,
    nodes: Vec<Node>,
    /// By step: the site where the flow cache is asked before.
    asks: Vec<Option<u16>>,
    plans: Vec<Plan>,
    /// By plan: what may change until packets have come to rest where it sends them, so that what depends on it must wait.
    barriers: Vec<MayChange>,
    /// By plan: what may change until copies have come to rest.
    by_copies: Vec<MayChange>,
    /// Whether packets that were decided, but wait for their turn, may change cells.
    cells_wait: bool,
    sites: Vec<Site>,
    /// Of the time, what the expiry of flows does not depend on.
    tick: u64,
    cache: FlowCache,
    burst: Burst,
    outcomes: Vec<Outcome>,
    /// The index of each exit's outcome, by step.
    outcome_of: Vec<u32>,
    targets: Vec<Target>,
    /// Targets that packets go to at present, in the order of their first packets.
    used: Vec<u16>,
    /// Where each packet of the burst goes: its target's number, or [`DROP`].
    decided: Vec<u16>,
    /// Packets that elements made of others, each before the packet of this number.
    extra: Vec<(usize, Delivery)>,
    copies: Vec<Copied>,
    /// By element.
    arrivals: Rc<[Arrival]>,
    /// Whether a packet may have to come to rest before those behind it are decided.
    may_end: bool,
}

/// A program that other threads may hold, too; to hold on to it for a packet takes no atomic
/// operation.
type Counted = Rc<Arc<Program>>;

/// A copy of a packet.
struct Copied {
    /// It leaves before the packet of this number, and before copies that were made later.
    before: usize,
    order: usize,
    target: u16,
    packet: Packet,
}

/// Instead of a target's number: the packet is dropped.
const DROP: u16 = u16::MAX;

/// The exit that a step is.
fn exit(program: &Program, step: StepId) -> Option<&Exit> {
    match program.step(step) {
        Step::Exit(exit) => Some(exit),
        _ => None,
    }
}

/// The table of a lookup. It may do without one if every packet may as well be taken for one
/// without a flow: the element's native code sees to it then.
fn table_of(
    program: &Program,
    lookup: LookupId,
    chain: &dyn Surroundings,
) -> Result<Option<Table>, String> {
    let asked = &program.lookups[usize::from(lookup.0)];
    let Some(state) = program.flows_of(lookup) else {
        return Err(format!("{lookup} is in a table of prefixes, which programs are lowered from"));
    };
    let owner = chain.node(&state.owner);
    let table = owner.into_iter().chain([state.element]).find_map(|node| chain.table(node));
    if table.is_some() {
        return Ok(table);
    }
    let harmless = program.steps.iter().all(|step| match step {
        Step::Lookup { lookup: other, miss, .. } if *other == lookup => exit(program, *miss)
            .is_some_and(|exit| match exit.end {
                End::Push { to, native } => native && to.node == asked.element,
                End::Drop { .. } | End::Handoff { .. } => false,
            }),
        _ => true,
    });
    match harmless {
        true => Ok(None),
        false => Err(format!("flows of '{}' can only be looked up by elements", state.owner)),
    }
}

impl Pipeline {
    pub(crate) fn new(prepared: &Prepared, chain: &dyn Surroundings) -> Result<Self, String> {
        let program = Rc::new(Arc::clone(&prepared.program));
        let lookups = (0..program.lookups.len()).map(|l| LookupId(l as u16));
        let tables = lookups.map(|l| table_of(&program, l, chain)).collect::<Result<_, _>>()?;
        let tables = Tables::new(tables);
        let cells = Rc::new(CellTable::new(&program, chain)?);
        let missed = &chain.classifiers().missed;
        let classifiers = Rc::new(Classifiers::new(&program, chain.classifiers()));
        let mut pipeline = Self {
            lanes: Lanes::default(),
            nodes: Vec::new(),
            asks: Vec::new(),
            plans: Vec::new(),
            barriers: Vec::new(),
            by_copies: Vec::new(),
            cells_wait: false,
            sites: Vec::new(),
            tick: 0,
            cache: FlowCache::new(tables.len(), 0, Rc::clone(missed)),
            burst: Burst::default(),
            scalar: Scalar::new(Rc::clone(&program), Rc::clone(&classifiers), Rc::clone(&cells)),
            classifiers,
            tables,
            cells,
            cell_columns: CellColumns::default(),
            gates: Vec::new(),
            outcomes: Vec::new(),
            outcome_of: vec![u32::MAX; program.steps.len()],
            targets: Vec::new(),
            used: Vec::new(),
            decided: Vec::new(),
            extra: Vec::new(),
            copies: Vec::new(),
            arrivals: Rc::default(),
            may_end: false,
            program: Rc::clone(&program),
        };
        for (step, exit) in program.exits() {
            for leaving in exit.all() {
                let outcome = pipeline.outcome(leaving, chain.loops(exit, leaving), chain);
                pipeline.outcomes.push(outcome);
            }
            pipeline.outcome_of[step.0 as usize] = pipeline.outcomes.len() as u32 - 1;
        }
        pipeline.arrivals = pipeline.arrivals(chain);
        let hands_off = |target: &Target| matches!(target.taker, Taker::Continuation(_));
        pipeline.may_end =
            pipeline.arrivals.contains(&Arrival::Ends) || pipeline.targets.iter().any(hands_off);
        pipeline.compile(&prepared.ranges, missed);
        pipeline.may_end |= program.exits().any(|(step, exit)| {
            let number = pipeline.outcome_of[step.0 as usize] as usize;
            pipeline.copies_change(number, exit.copies.len()).any()
        });
        Ok(pipeline)
    }

    fn arrivals(&self, chain: &dyn Surroundings) -> Rc<[Arrival]> {
        if self.tables.len() == 0 && !self.targets.iter().any(|t| t.changes_cells) {
            return Rc::default();
        }
        let of_these = |node: &NodeId| {
            let table = chain.table(*node).and_then(|table| self.tables.number(&table));
            table.is_some() || self.cells.is_changed_by(*node, &self.program, chain)
        };
        let owners: Vec<NodeId> = (0..chain.elements()).filter(of_these).collect();
        // Where packets that wait for their turn may come.
        let waiting: BTreeSet<NodeId> = self
            .targets
            .iter()
            .filter(|t| !t.may_change().any())
            .flat_map(|t| &t.behind)
            .copied()
            .collect();
        let exits = self.program.exits();
        let passed: BTreeSet<NodeId> =
            exits.flat_map(|(_, exit)| &exit.visited).map(|port| port.node).collect();
        let arrival = |(node, changes)| match (changes, chain.calls_handlers(node)) {
            (true, true) => Arrival::Ends,
            (true, false) => Arrival::Runs,
            (false, false) if passed.contains(&node) && !waiting.contains(&node) => Arrival::Runs,
            (false, _) => Arrival::Waits,
        };
        (0..).zip(chain.before(&owners)).map(arrival).collect()
    }

    fn compile(&mut self, ranges: &Ranges, missed: &Rc<Missed>) {
        let mut compiler = Compiler::new(&self.program, ranges);
        let lookups = (0..self.program.lookups.len() as u16).map(LookupId);
        for lookup in lookups.clone() {
            if let Some(columns) = self.tables.key_columns(lookup) {
                compiler.set_key_columns(lookup, columns);
            }
        }
        let exits = self.program.exits().map(|(step, exit)| {
            let outcome = self.outcome_of[step.0 as usize];
            let all = &self.outcomes[outcome as usize - exit.copies.len()..=outcome as usize];
            let lengths = all.iter().map(|outcome| &outcome.lengths[..]).collect();
            (step, ExitLengths { outcome, lengths })
        });
        let exits: HashMap<StepId, ExitLengths<'_>> = exits.collect();
        let compiled = Builder::build(&mut compiler, &exits, &self.classifiers);
        self.gates = std::mem::take(&mut compiler.gates.groups);
        let lanes = std::mem::take(&mut compiler.lanes);
        let layouts: Vec<Layout> = lookups.map(|l| compiler.layout(l).clone()).collect();
        drop((compiler, exits));
        let Compiled { nodes, asks, plans, sites, tick } = compiled;
        let flows = if sites.is_empty() {
            0
        } else {
            most_lookups(&self.program).first().copied().unwrap_or(0)
        };
        self.cache = FlowCache::new(self.tables.len(), flows, Rc::clone(missed));
        let bindings = lanes.bindings(&layouts);
        self.cell_columns = CellColumns::new(&lanes, &self.program);
        let found = |l: &Layout| FoundFlows::new(l.values.into(), l.common.into());
        let found = layouts.iter().map(found).collect();
        self.burst = Burst::new(nodes.len(), plans.len(), bindings, found);
        let copies = |plan: &Plan| self.copies_change(plan.outcome as usize, plan.copies.len());
        let all = |p: &Plan| self.copies_change(p.outcome as usize + 1, p.copies.len() + 1);
        let by_copies = plans.iter().map(copies).collect();
        self.barriers = plans.iter().map(all).collect();
        self.by_copies = by_copies;
        (self.lanes, self.nodes, self.asks, self.plans) = (lanes, nodes, asks, plans);
        (self.sites, self.tick) = (sites, tick);
    }

    /// What may change where the copies go, so many, that leave before an outcome.
    fn copies_change(&self, outcome: usize, copies: usize) -> MayChange {
        let targets = self.outcomes[outcome - copies..outcome].iter().filter_map(|o| o.target);
        let changes = targets.map(|target| self.targets[usize::from(target)].may_change());
        changes.fold(MayChange::default(), MayChange::or)
    }

    fn outcome(&mut self, exit: &Exit, loops: u32, chain: &dyn Surroundings) -> Outcome {
        let (mut lengths, mut counters, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for effect in &exit.effects {
            match effect {
                Effect::Count { counter, length } => {
                    let at = lengths.iter().position(|l| l == length).unwrap_or_else(|| {
                        lengths.push(*length);
                        lengths.len() - 1
                    });
                    let state = &self.program.state[usize::from(counter.0)];
                    let owner = chain.node(&state.owner).unwrap_or(state.element);
                    counters.push((owner, state.name, at));
                }
                Effect::Note { element, reason } => notes.push((*element, *reason)),
                Effect::Update { .. } | Effect::Set { .. } => {}
            }
        }
        let (target, dropped) = match exit.end {
            End::Push { to, native } => {
                let taker = if native { Taker::Element } else { Taker::Stage };
                (Some(self.target(to, taker, loops, chain)), None)
            }
            End::Handoff { to } => {
                let taker = Taker::Continuation(to);
                (Some(self.target(self.program.entry, taker, 0, chain)), None)
            }
            End::Drop { element, reason } => (None, Some((element, reason))),
        };
        let sums = vec![0; lengths.len()];
        Outcome {
            target,
            dropped,
            lengths,
            counters,
            notes,
            packets: 0,
            sums,
            dropped_bytes: 0,
            passed: 0,
        }
    }

    fn target(&mut self, to: Port, taker: Taker, loops: u32, chain: &dyn Surroundings) -> u16 {
        let same = |t: &Target| (t.to, t.taker, t.loops) == (to, taker, loops);
        let at = self.targets.iter().position(same).unwrap_or_else(|| {
            let mut changes = vec![false; self.tables.len()];
            let behind = chain.behind(to.node);
            for table in behind.iter().filter_map(|&node| chain.table(node)) {
                if let Some(number) = self.tables.number(&table) {
                    changes[usize::from(number)] = true;
                }
            }
            let changes_cells =
                behind.iter().any(|&n| self.cells.is_changed_by(n, &self.program, chain));
            let meets = self.targets.iter().map(|t| !t.behind.is_disjoint(&behind)).collect();
            let batch = None;
            let target = Target { to, taker, loops, behind, meets, changes, changes_cells, batch };
            self.targets.push(target);
            self.targets.len() - 1
        });
        at as u16
    }

    /// Sends packets where they were decided to go.
    fn distribute(&mut self, batch: &mut Batch, cx: &mut StageContext<'_>) {
        let Some(&first) = self.decided.first() else { return };
        // All of them are looked at, eight at a time.
        let differ = self.decided.iter().fold(0, |differ, number| differ | number ^ first);
        if differ == 0 && self.extra.is_empty() && self.copies.is_empty() {
            match self.targets.get(usize::from(first)) {
                None => cx.core.pool.recycle_all(batch),
                Some(&Target { to, taker, loops, .. }) => {
                    let whole = std::mem::replace(batch, cx.core.batch());
                    cx.push(to, whole, taker, loops);
                }
            }
            return;
        }
        let mut copies = std::mem::take(&mut self.copies);
        copies.sort_unstable_by_key(|copy| (copy.before, copy.order));
        if self.extra.is_empty() && !self.any_meet(&copies) {
            // Order matters to each target alone.
            for Copied { target, packet, .. } in copies.drain(..) {
                self.collect(target, packet, cx);
            }
            if differ == 0 && !self.used.contains(&first) && first != DROP {
                let whole = std::mem::replace(batch, cx.core.batch());
                self.used.push(first);
                self.targets[usize::from(first)].batch = Some(whole);
            }
            let decided = std::mem::take(&mut self.decided);
            for (packet, &number) in batch.drain().zip(&decided) {
                self.collect(number, packet, cx);
            }
            self.decided = decided;
        } else {
            self.distribute_in_order(batch, copies.drain(..), cx);
        }
        self.copies = copies;
        send(&mut self.used, &mut self.targets, cx);
    }

    /// Whether the paths of packets and copies that go to different targets may meet.
    fn any_meet(&self, copies: &[Copied]) -> bool {
        let mut numbers = SmallVec::<[u16; 8]>::new();
        let mut last = DROP;
        for number in copies.iter().map(|copy| copy.target).chain(self.decided.iter().copied()) {
            if number != last && number != DROP && !numbers.contains(&number) {
                numbers.push(number);
            }
            last = number;
        }
        let others = |at: usize| numbers[..at].iter();
        let meet = |at: usize| others(at).any(|&other| self.meet(numbers[at], other));
        (1..numbers.len()).any(meet)
    }

    /// Whether the paths of packets that go to two targets may meet, so that their order matters.
    fn meet(&self, a: u16, b: u16) -> bool {
        let meets = &self.targets[usize::from(a.max(b))].meets;
        meets.get(usize::from(a.min(b))) == Some(&true)
    }

    /// Puts a packet with those that go where it goes.
    #[inline]
    fn collect(&mut self, number: u16, packet: Packet, cx: &mut StageContext<'_>) {
        match self.targets.get_mut(usize::from(number)) {
            None => cx.core.pool.recycle(packet),
            Some(target) => {
                let batch = target.batch.get_or_insert_with(|| {
                    self.used.push(number);
                    cx.core.batch()
                });
                batch.push(packet);
            }
        }
    }

    /// Sends packets, copies, and what elements made of packets, one after the other where paths meet.
    fn distribute_in_order(
        &mut self,
        batch: &mut Batch,
        copies: impl Iterator<Item = Copied>,
        cx: &mut StageContext<'_>,
    ) {
        let mut extra = std::mem::take(&mut self.extra).into_iter().peekable();
        let decided = std::mem::take(&mut self.decided);
        let mut waiting = copies.peekable();
        let mut last = None;
        for (at, (packet, &number)) in batch.drain().zip(&decided).enumerate() {
            while let Some((_, Delivery { to, batch, taker, loops })) =
                extra.next_if(|(before, _)| *before == at)
            {
                send(&mut self.used, &mut self.targets, cx);
                cx.push(to, batch, taker, loops);
            }
            let before = std::iter::from_fn(|| waiting.next_if(|copy| copy.before == at));
            let before = before.map(|copy| (copy.target, copy.packet));
            for (number, packet) in before.chain([(number, packet)]) {
                if last.replace(number) != Some(number)
                    && number != DROP
                    && self.used.iter().any(|&other| self.meet(number, other))
                {
                    send(&mut self.used, &mut self.targets, cx);
                }
                self.collect(number, packet, cx);
            }
        }
        self.decided = decided;
    }
}

/// Sends what was collected for targets.
fn send(used: &mut Vec<u16>, targets: &mut [Target], cx: &mut StageContext<'_>) {
    for number in used.drain(..) {
        let target = &mut targets[usize::from(number)];
        if let Some(batch) = target.batch.take() {
            cx.push(target.to, batch, target.taker, target.loops);
        }
    }
}

impl Stage for Pipeline {
    fn process(&mut self, batch: &mut Batch, cx: &mut StageContext<'_>) {
        let now = cx.now();
        self.tables.expire(now);
        self.decided.clear();
        self.cells_wait = false;
        let mut done = 0;
        while done < batch.len() {
            let packets = batch.as_mut_slice().get_mut(done..).unwrap_or_default();
            let most = packets.len().min(lanes::LANES);
            let chunk = self.chunk(&mut packets[..most], now, cx);
            done += chunk;
            if chunk < most || self.burst.ended {
                break;
            }
        }
        let mut rest = None;
        if done < batch.len() {
            let mut later = cx.core.batch();
            batch.split_to(done, &mut later);
            rest = Some(later);
        }
        self.distribute(batch, cx);
        if let Some(rest) = rest {
            cx.push(self.program.entry, rest, Taker::of(&self.program), 0);
        }
    }

    fn warmth(&self) -> Warmth {
        self.cache.warmth()
    }

    fn settle(&mut self, cx: &mut StageContext<'_>) {
        for outcome in self.outcomes.iter_mut().filter(|o| o.packets > 0) {
            let packets = std::mem::take(&mut outcome.packets);
            outcome.passed += packets;
            for &(owner, name, length) in &outcome.counters {
                cx.count(owner, name, packets, outcome.sums[length]);
            }
            for &(element, reason) in &outcome.notes {
                cx.noted(element, reason, packets);
            }
            if let Some((element, reason)) = outcome.dropped {
                cx.dropped(element, reason, packets, outcome.dropped_bytes);
            }
            outcome.sums.fill(0);
            outcome.dropped_bytes = 0;
        }
    }

    fn report_paths(&mut self, cx: &mut StageContext<'_>) {
        let exits = self.program.exits().flat_map(|(_, exit)| exit.all());
        for (outcome, exit) in self.outcomes.iter_mut().zip(exits) {
            let passed = std::mem::take(&mut outcome.passed);
            if passed > 0 {
                cx.passed(exit, passed);
            }
        }
    }
}
