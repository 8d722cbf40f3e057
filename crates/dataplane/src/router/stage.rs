//! Stages: what replaces the elements behind an input, and their place in the router.

use std::collections::{BTreeSet, HashMap};

use elements::Element;
use elements::cells::Cells;
use elements::context::WorkerResources;
use elements::element::HandlerCalls;
use ir::program::{Continuation, Effect, End, Exit, Program, Step};
use ir::{Model, NodeId, Port, Reason};
use net::{Batch, Packet};

use super::program_use::{By, Preference, ProgramUse, Timed};
use super::warmth::Warmth;
use super::{Delivery, Node, Nodes, Taker};
use crate::pipeline::{Arrival, Library, Surroundings, Table};

/// Executes a program: takes the packets that come to its entry, in the place of the elements.
///
/// What elements count may be told later, all at once: the router asks for it
/// ([`Stage::settle`]) before anybody can see the difference.
pub trait Stage {
    /// Takes the packets that came to the entry, in the order in which they came, and leaves the
    /// batch empty.
    fn process(&mut self, batch: &mut Batch, cx: &mut StageContext<'_>);

    /// Reports all that was counted and not reported yet.
    fn settle(&mut self, _cx: &mut StageContext<'_>) {}

    /// Reports through which inputs packets went, as far as it was not reported yet
    /// ([`StageContext::passed`]): asked for by those who want to know, and at the end.
    fn report_paths(&mut self, _cx: &mut StageContext<'_>) {}

    /// How well its flow cache knows the packets that come, if it has one.
    fn warmth(&self) -> Warmth {
        Warmth::default()
    }
}

/// Something that an element has to count.
#[derive(Clone, Copy)]
pub(super) enum Credit {
    Count { state: &'static str, packets: u64, bytes: u64 },
    Dropped { reason: Reason, packets: u64, bytes: u64 },
    Noted { reason: Reason, packets: u64 },
}

/// What surrounds a stage while it works.
pub struct StageContext<'a> {
    /// The worker's resources.
    pub core: &'a mut WorkerResources,
    pub(super) nodes: &'a mut Nodes,
}

impl StageContext<'_> {
    /// Nanoseconds of the worker's clock.
    #[inline]
    pub fn now(&self) -> u64 {
        self.core.now
    }

    /// Sends packets to an input. What is sent first is carried to the end of its path before what
    /// is sent next. `loops` are those of the exit that they took ([`StageContext::loops`]); none where they took no path yet.
    #[inline]
    pub fn push(&mut self, to: Port, batch: Batch, taker: Taker, loops: u32) {
        self.nodes.stages.out.push(Delivery { to, batch, taker, loops });
    }

    /// Takes packets through elements' native code at once: see [`Nodes::run_ahead`].
    pub(crate) fn run_ahead(
        &mut self,
        delivery: Delivery,
        arrivals: &[Arrival],
        out: &mut Vec<Delivery>,
    ) -> bool {
        self.nodes.run_ahead(self.core, delivery, arrivals, out)
    }

    /// Whether packets are traced on their paths at present, so that none is taken anywhere at once.
    pub(crate) fn is_watched(&self) -> bool {
        !self.nodes.journeys.is_empty()
    }

    /// Whether a stage takes what comes to an input.
    pub(crate) fn has_stage(&self, to: Port) -> bool {
        self.nodes.nodes[to.node].stages.get(to.port).is_some_and(Option::is_some)
    }

    /// What surrounds the stage.
    pub(crate) fn surroundings(&self) -> &dyn Surroundings {
        self.nodes
    }

    /// How often packets would have come to beginnings of cycles on the path to an exit, or on that of one of its
    /// copies.
    pub fn loops(&self, exit: &Exit, leaving: &Exit) -> u32 {
        self.nodes.loops_to(exit, leaving)
    }

    /// Gives a packet back to the pool, counted as dropped at an element with this many bytes.
    pub fn drop(&mut self, element: NodeId, packet: Packet, reason: Reason, bytes: u64) {
        self.dropped(element, reason, 1, bytes);
        self.core.pool.recycle(packet);
    }

    /// Counts packets, and the sum of their bytes, as dropped at an element.
    pub fn dropped(&mut self, element: NodeId, reason: Reason, packets: u64, bytes: u64) {
        self.nodes.credit(element, Credit::Dropped { reason, packets, bytes });
    }

    /// Counts a reason at an element for packets that were not dropped.
    pub fn noted(&mut self, element: NodeId, reason: Reason, packets: u64) {
        self.nodes.credit(element, Credit::Noted { reason, packets });
    }

    /// Counts packets, and the sum of their bytes, in a declared counter of an element.
    pub fn count(&mut self, element: NodeId, state: &'static str, packets: u64, bytes: u64) {
        self.nodes.credit(element, Credit::Count { state, packets, bytes });
    }

    /// Counts packets that went through inputs, from the entry on, and to another if they were not
    /// dropped, as an exit says.
    pub fn passed(&mut self, exit: &Exit, packets: u64) {
        let to = match exit.end {
            End::Push { to, .. } => Some(to),
            End::Drop { .. } | End::Handoff { .. } => None,
        };
        self.nodes.passed(&exit.visited, to, packets);
    }

    /// Tells the user about an error at an element.
    pub fn error(&mut self, element: NodeId, text: &str) {
        elements::context::Services::error(self.nodes, element, text);
    }

    /// An element's full name.
    pub fn name(&self, element: NodeId) -> &str {
        &self.nodes.nodes[element].name
    }

    /// The element of a full name.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.names.get(name).copied()
    }

    /// An element, to hand its declared state to and fro.
    pub fn element(&mut self, element: NodeId) -> Option<&mut dyn Element> {
        let cell = self.nodes.nodes[element].cell.as_mut()?;
        Some(&mut *cell.element)
    }
}

struct Installed {
    entry: Port,
    /// If it is a part of the entry's program: where it goes on.
    continuation: Option<Continuation>,
    /// The elements whose models the program was made from.
    elements: BTreeSet<NodeId>,
    /// The most that elements would have counted on one of its paths.
    loops: u32,
    /// Of a program that the elements in its place may be faster than.
    preference: Option<Preference>,
    /// Absent while it works.
    stage: Option<Box<dyn Stage>>,
}

impl Installed {
    /// Whether elements may as well take what comes to it: neither do they take what is at a tap, nor what a program
    /// handed off.
    fn is_alternative(&self) -> bool {
        self.continuation.is_none() && !self.elements.is_empty()
    }

    /// Has it chosen as is said from now on.
    fn set_program_use(&mut self, program_use: ProgramUse) {
        let chooses = program_use == ProgramUse::WhereFaster && self.is_alternative();
        self.preference = chooses.then(Preference::default);
    }
}

/// The stages of a router.
pub(super) struct Stages {
    /// By number; `None` once taken out.
    all: Vec<Option<Installed>>,
    /// How programs are chosen.
    program_use: ProgramUse,
    /// Draws for [`ProgramUse::Drawn`].
    draws: fastrand::Rng,
    /// The stages that go on where an entry's program handed off. Programs are made again one by one,
    /// so each has continuations of its own.
    continuations: HashMap<(Port, Continuation), u32>,
    /// What the stage at work sent.
    out: Vec<Delivery>,
    /// Whether a stage may have something to tell.
    unsettled: bool,
    /// What elements that are at work have to count.
    owed: Vec<(NodeId, Credit)>,
    /// Entries of stages that were taken out.
    pub(super) stale: Vec<Port>,
}

impl Default for Stages {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            program_use: ProgramUse::default(),
            draws: fastrand::Rng::with_seed(0),
            continuations: HashMap::new(),
            out: Vec::new(),
            unsettled: false,
            owed: Vec::new(),
            stale: Vec::new(),
        }
    }
}

impl Stages {
    /// Sets how programs are chosen.
    pub(super) fn set_program_use(&mut self, program_use: ProgramUse) {
        self.program_use = program_use;
        if let ProgramUse::Drawn(seed) = program_use {
            self.draws.seed(seed);
        }
        self.all.iter_mut().flatten().for_each(|installed| installed.set_program_use(program_use));
    }

    /// The elements in whose place a stage stands.
    pub(super) fn elements(&self, number: u32) -> impl Iterator<Item = NodeId> + '_ {
        let installed = self.all.get(number as usize).and_then(Option::as_ref);
        installed.into_iter().flat_map(|installed| installed.elements.iter().copied())
    }
}

/// The elements that a program was made from.
fn elements_of(program: &Program) -> BTreeSet<NodeId> {
    let mut all = BTreeSet::from([program.entry.node]);
    all.extend(program.state.iter().map(|s| s.element));
    all.extend(program.lookups.iter().map(|l| l.element));
    for step in &program.steps {
        match step {
            Step::Test { element, .. }
            | Step::Switch { element, .. }
            | Step::Classify { element, .. } => {
                all.insert(*element);
            }
            Step::Lookup { .. } => {}
            Step::Exit(exit) => exit.all().for_each(|exit| {
                all.extend(exit.visited.iter().map(|p| p.node));
                if let End::Drop { element, .. } = exit.end {
                    all.insert(element);
                }
                for effect in &exit.effects {
                    if let Effect::Note { element, .. } = effect {
                        all.insert(*element);
                    }
                }
            }),
        }
    }
    all
}

impl Surroundings for Nodes {
    fn node(&self, name: &str) -> Option<NodeId> {
        self.names.get(name).copied()
    }

    fn table(&self, node: NodeId) -> Option<Table> {
        self.nodes[node].cell.as_ref()?.element.flows()
    }

    fn cells(&self, node: NodeId, name: &str) -> Option<Cells> {
        self.nodes[node].cell.as_ref()?.element.cells(name)
    }

    fn behind(&self, node: NodeId) -> BTreeSet<NodeId> {
        let mut reached = BTreeSet::from([node]);
        let mut waiting = vec![node];
        while let Some(node) = waiting.pop() {
            for to in self.nodes[node].to.iter().flatten() {
                if reached.insert(to.node) {
                    waiting.push(to.node);
                }
            }
        }
        reached
    }

    fn classifiers(&self) -> &Library {
        &self.classifiers
    }

    fn loops(&self, exit: &Exit, leaving: &Exit) -> u32 {
        self.loops_to(exit, leaving)
    }

    fn elements(&self) -> usize {
        self.nodes.len()
    }

    fn before(&self, elements: &[NodeId]) -> Vec<bool> {
        let mut from = vec![Vec::new(); self.nodes.len()];
        for (node, of) in self.nodes.iter().enumerate() {
            of.to.iter().flatten().for_each(|to| from[to.node].push(node));
        }
        let mut reached = vec![false; self.nodes.len()];
        let mut waiting = elements.to_vec();
        while let Some(node) = waiting.pop() {
            if !std::mem::replace(&mut reached[node], true) {
                waiting.extend(&from[node]);
            }
        }
        reached
    }

    fn calls_handlers(&self, node: NodeId) -> bool {
        let Node { cell, stages, .. } = &self.nodes[node];
        // A tap's stage may send packets through elements that do.
        let is_stage = node >= self.elements && stages.iter().any(Option::is_some);
        let calls = |element: &dyn Element| element.handler_calls() != HandlerCalls::None;
        is_stage || cell.as_ref().is_none_or(|cell| calls(&*cell.element))
    }
}

impl Nodes {
    pub(super) fn install(
        &mut self,
        core: &mut WorkerResources,
        program: &Program,
        stage: Box<dyn Stage>,
    ) {
        let entry = program.entry;
        if program.continuation.is_none() {
            self.take_out(core, entry);
            self.stages.stale.retain(|&port| port != entry);
        }
        let loops = self.most_loops(program);
        let place = (entry, program.continuation);
        self.install_at(place, elements_of(program), loops, stage);
    }

    /// Puts a stage in the place of elements, or where a program goes on.
    pub(super) fn install_at(
        &mut self,
        (entry, continuation): (Port, Option<Continuation>),
        elements: BTreeSet<NodeId>,
        loops: u32,
        stage: Box<dyn Stage>,
    ) {
        let all = &mut self.stages.all;
        let number = all.iter().position(Option::is_none).unwrap_or_else(|| {
            all.push(None);
            all.len() - 1
        });
        match continuation {
            None => match self.nodes[entry.node].stages.get_mut(entry.port) {
                Some(place) => *place = Some(number as u32),
                None => return,
            },
            Some(at) => drop(self.stages.continuations.insert((entry, at), number as u32)),
        }
        let stage = Some(stage);
        let mut installed =
            Installed { entry, continuation, elements, loops, preference: None, stage };
        installed.set_program_use(self.stages.program_use);
        all[number] = Some(installed);
    }

    /// Takes out the stages that an element's meaning went into; whether there were any.
    pub(super) fn uninstall(&mut self, core: &mut WorkerResources, element: NodeId) -> bool {
        self.take_out_if(core, |installed| installed.elements.contains(&element))
    }

    /// Takes out programs from which packets can get to an element, which were made for what is there; whether there
    /// were any.
    pub(super) fn uninstall_before(&mut self, core: &mut WorkerResources, element: NodeId) -> bool {
        let before = self.before(&[element]);
        self.take_out_if(core, |installed| installed.elements.iter().any(|&node| before[node]))
    }

    /// Takes out what an entry's program became for good.
    pub(super) fn discard_stage(&mut self, entry: Port) {
        self.remove(|installed| installed.entry == entry);
    }

    /// Takes out what an entry's program became.
    pub(super) fn take_out(&mut self, core: &mut WorkerResources, entry: Port) {
        self.take_out_if(core, |installed| installed.entry == entry);
    }

    /// Takes out all parts of the programs of which one is such a one; whether there were any.
    fn take_out_if(
        &mut self,
        core: &mut WorkerResources,
        which: impl Fn(&Installed) -> bool,
    ) -> bool {
        self.report_paths(core);
        let these = self.stages.all.iter().flatten().filter(|&installed| which(installed));
        let entries: Vec<Port> = these.map(|installed| installed.entry).collect();
        let taken_out = self.remove(|installed| entries.contains(&installed.entry));
        self.stages.stale.extend(&taken_out);
        !taken_out.is_empty()
    }

    /// Removes stages; the entries of their programs.
    fn remove(&mut self, which: impl Fn(&Installed) -> bool) -> Vec<Port> {
        let mut entries = Vec::new();
        for installed in &mut self.stages.all {
            let Some(removed) = installed.take_if(|installed| which(installed)) else { continue };
            match removed.continuation {
                Some(at) => drop(self.stages.continuations.remove(&(removed.entry, at))),
                None => {
                    self.nodes[removed.entry.node].stages[removed.entry.port] = None;
                    entries.push(removed.entry);
                }
            }
        }
        entries
    }

    /// The model of an element, if it went into a program that is in use.
    pub(super) fn model_in_use(&self, node: NodeId) -> Option<Model> {
        let used = self.stages.all.iter().flatten().any(|i| i.elements.contains(&node));
        let cell = self.nodes[node].cell.as_ref().filter(|_| used)?;
        Some(cell.element.model())
    }

    /// The stage that takes what comes to an input, if elements need not.
    #[inline]
    pub(super) fn stage(&self, to: Port, taker: Taker) -> Option<u32> {
        let number = match taker {
            // What a tap's stage takes no element could.
            Taker::Element if to.node < self.elements => return None,
            Taker::Stage | Taker::Element => {
                self.nodes[to.node].stages.get(to.port).copied().flatten()?
            }
            Taker::Continuation(at) => self.stages.continuations.get(&(to, at)).copied()?,
        };
        let installed = self.stages.all.get(number as usize)?.as_ref()?;
        self.may_enter(installed.loops).then_some(number)
    }

    /// The nodes at which programs begin that elements are faster than, as was found so far.
    pub(super) fn slower_programs(&self) -> impl Iterator<Item = NodeId> {
        let is_slower = |installed: &&Installed| {
            installed.preference.as_ref().is_some_and(|preference| preference.by() == By::Elements)
        };
        self.stages.all.iter().flatten().filter(is_slower).map(|installed| installed.entry.node)
    }

    /// The stage that takes a burst that comes to an input, if elements need not and do not take less time. `timed` is
    /// the burst that is timed at present.
    #[inline]
    pub(super) fn choose_stage(
        &mut self,
        to: Port,
        taker: Taker,
        packets: usize,
        timed: &mut Option<Timed>,
    ) -> Option<u32> {
        let stage = self.stage(to, taker)?;
        let Stages { all, program_use, draws, .. } = &mut self.stages;
        let installed = all[stage as usize].as_mut()?;
        let Some(preference) = installed.preference.as_mut() else {
            let is_drawn =
                matches!(program_use, ProgramUse::Drawn(_)) && installed.is_alternative();
            return (!is_drawn || draws.bool()).then_some(stage);
        };
        let by = if timed.is_some() {
            preference.by()
        } else {
            let (by, is_timed) = preference.next();
            *timed = is_timed.then(|| Timed::begin(stage, by, packets, self.stack.len()));
            by
        };
        (by == By::Program).then_some(stage)
    }

    /// A burst that was timed is at the end of its path.
    #[cold]
    pub(super) fn was_timed(&mut self, timed: &Timed) {
        let (time, packets) = timed.end();
        let installed = self.stages.all.get_mut(timed.stage as usize).and_then(Option::as_mut);
        let Some(Installed { preference: Some(preference), stage, .. }) = installed else { return };
        let warmth = stage.as_ref().map(|stage| stage.warmth()).unwrap_or_default();
        preference.learn(timed.by, time, packets, warmth);
    }

    /// Lets a stage take a batch, which is empty then.
    #[inline]
    pub(super) fn enter(&mut self, core: &mut WorkerResources, number: u32, batch: &mut Batch) {
        self.with_stage(core, number, |stage, cx| stage.process(batch, cx));
        self.stages.unsettled = true;
        for delivery in &mut self.stages.out {
            self.loops.turns += delivery.loops;
            delivery.loops += self.loops.now;
        }
        self.stack.extend(self.stages.out.drain(..).rev());
    }

    fn with_stage(
        &mut self,
        core: &mut WorkerResources,
        number: u32,
        work: impl FnOnce(&mut dyn Stage, &mut StageContext<'_>),
    ) {
        let slot = self.stages.all.get_mut(number as usize);
        let stage = slot.and_then(|s| s.as_mut()).and_then(|i| i.stage.take());
        let Some(mut stage) = stage else { return };
        work(&mut *stage, &mut StageContext { core, nodes: self });
        if let Some(Some(installed)) = self.stages.all.get_mut(number as usize) {
            installed.stage = Some(stage);
        }
    }

    /// Has the elements count what stages counted for them.
    #[inline]
    pub(super) fn settle(&mut self, core: &mut WorkerResources) {
        if self.stages.unsettled {
            self.settle_all(core);
        }
    }

    #[cold]
    fn settle_all(&mut self, core: &mut WorkerResources) {
        self.stages.unsettled = false;
        for (node, credit) in std::mem::take(&mut self.stages.owed) {
            self.credit(node, credit);
        }
        for number in 0..self.stages.all.len() {
            self.with_stage(core, number as u32, |stage, cx| stage.settle(cx));
        }
    }

    /// Has stages tell all that they counted, also through which inputs packets went.
    pub(super) fn report_paths(&mut self, core: &mut WorkerResources) {
        self.settle(core);
        for number in 0..self.stages.all.len() {
            self.with_stage(core, number as u32, |stage, cx| stage.report_paths(cx));
        }
    }

    pub(super) fn credit(&mut self, node: NodeId, credit: Credit) {
        let Some(cell) = &mut self.nodes[node].cell else {
            self.stages.owed.push((node, credit));
            self.stages.unsettled = true;
            return;
        };
        match credit {
            Credit::Count { state, packets, bytes } => cell.element.credit(state, packets, bytes),
            Credit::Dropped { reason, packets, bytes } => {
                cell.tally.drop_all(reason, packets, bytes);
            }
            Credit::Noted { reason, packets } => cell.tally.note_all(reason, packets),
        }
    }
}
