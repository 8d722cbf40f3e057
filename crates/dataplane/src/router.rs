//! The router: a chain's elements, connected, and the worker that moves packets through them.
//!
//! Packets are pushed depth first: what an element emits first is carried to the end of its path
//! before what it emits next, as in Click. The path is kept on an explicit stack, so that a long
//! or cyclic chain cannot exhaust the thread's.

mod arrivals;
mod carry;
mod change;
mod cycles;
mod elsewhere;
mod handlers;
mod leases;
mod lifetime;
mod program_use;
mod programs;
mod sleep;
mod stage;
mod tap;
mod waiting;
mod warmth;
mod watch;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io::Write;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use elements::Element;
use elements::context::{Context, Outputs, Services, Tally, WorkerResources};
use elements::device::{ControlSocketRequest, OwnedPorts};
use elements::element::{Handler, HandlerCalls, Traffic, Work};
use ir::{Graph, NodeId, Port, Reason};
use net::{Batch, Packet};

use crate::clock::Clock;
use crate::functions::Functions;
use crate::guarded_path;
use crate::io::Waiter;
use crate::latency::{Latency, Sampler};
use crate::pipeline::Library;
use crate::stats::Load;
use arrivals::Arrivals;
pub(crate) use carry::Delivery;
pub use carry::Taker;
use cycles::{Cycle, LoopCount, MAX_TURNS, cycles};
pub use elsewhere::Elsewhere;
pub use handlers::Reading;
pub use leases::{Allows, Lease, Leased, Leases};
pub use lifetime::Lifetime;
pub use program_use::ProgramUse;
pub use programs::Programs;
use sleep::Turn;
use stage::Stages;
pub use stage::{Stage, StageContext};
pub use tap::{Tap, Tapped, Taps};
pub use warmth::Warmth;
use watch::Journeys;

/// An output that nothing is connected to.
const UNCONNECTED: Reason = Reason("unconnected-output");
/// Handlers that are written after one round before the rest waits for the next.
const MAX_LATER_WRITES: u32 = 1000;
/// Stops that an element may take over one after the other.
const MAX_STOPS: u32 = 1000;

/// An element with what belongs to it while it works.
struct Cell {
    element: Box<dyn Element>,
    outputs: Outputs,
    tally: Tally,
}

struct Node {
    name: String,
    class: String,
    config: Arc<str>,
    inputs: usize,
    handlers: &'static [Handler],
    /// Whether it calls handlers by itself.
    calls: bool,
    task: Task,
    /// When the element is to be woken.
    alarm: Option<u64>,
    /// Whether a run waits for that.
    keeps_run: bool,
    /// Absent while the element works.
    cell: Option<Box<Cell>>,
    /// Where each output leads.
    to: Vec<Option<Port>>,
    /// How many packets left by each output.
    left: Vec<u64>,
    /// What each pulled input comes from.
    from: Vec<Option<Port>>,
    /// The stage that takes what comes to an input, if the element does not.
    stages: Vec<Option<u32>>,
    cycle: Cycle,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    /// The element has none.
    None,
    Running,
    /// There is nothing to do unless somebody writes a handler.
    Ended,
}

/// A handler that is to be written when no element is at work.
struct LaterWrite {
    from: NodeId,
    handler: String,
    value: String,
}

/// Where the router's words go.
pub trait Listener {
    /// A line of output of an element such as Print.
    fn message(&mut self, text: &str);
    /// Text for the standard output, as it is: lines end where it says so.
    fn output(&mut self, text: &str);
    /// Something went wrong at an element while the chain ran.
    fn error(&mut self, element: &str, text: &str);
}

/// Collects what is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// Lines of output.
    pub messages: Vec<String>,
    /// Text for the standard output.
    pub output: String,
    /// Errors, with the element in front.
    pub errors: Vec<String>,
}

impl Listener for Transcript {
    fn message(&mut self, text: &str) {
        self.messages.push(text.to_string());
    }

    fn output(&mut self, text: &str) {
        self.output.push_str(text);
    }

    fn error(&mut self, element: &str, text: &str) {
        self.errors.push(format!("{element}: {text}"));
    }
}

/// All but the worker's own possessions, so that both can be lent at once.
struct Nodes {
    /// The chain's elements, and taps behind them.
    nodes: Vec<Node>,
    /// How many of them are the chain's elements.
    elements: usize,
    names: HashMap<String, NodeId>,
    /// Batches to deliver, the next one last.
    stack: Vec<Delivery>,
    stages: Stages,
    /// Packets that are traced.
    journeys: Journeys,
    functions: Rc<Functions>,
    sampler: Sampler,
    /// What came to those whose place was taken.
    before: Arrivals,
    /// What programs look keys up in.
    classifiers: Library,
    /// Alarms of the nodes; those that a node no longer has are passed over.
    timers: BinaryHeap<Reverse<(u64, NodeId)>>,
    /// Nodes that are to be woken and keep a run until then.
    keeping: usize,
    later: VecDeque<LaterWrite>,
    /// How many times the driver must still be told to stop.
    runcount: i64,
    errors: u64,
    listener: Box<dyn Listener>,
    globals: Vec<(String, Arc<str>)>,
    /// Where relative paths of files count from.
    folder: PathBuf,
    /// Whether elements may write files.
    writes_files: bool,
    loops: LoopCount,
    /// How often a burst may come to beginnings of cycles, copies included.
    max_turns: u32,
}

/// A chain, ready to run or running on this thread.
pub struct Router {
    nodes: Nodes,
    core: WorkerResources,
    clock: Box<dyn Clock>,
    /// Elements with tasks, in the order of their turns.
    tasks: Vec<Turn>,
    phase: Phase,
    planner: Option<Planner>,
    /// Whether the planner is to be called in any case.
    planning: bool,
    waiter: Waiter,
    load: Load,
    /// Whether there was something to do in the round before.
    busy: bool,
    /// Kept for its storage.
    waits_on: Vec<RawFd>,
    leases: leases::Given,
    /// Whether a handler that was written from outside has stopped the driver.
    was_stopped: bool,
}

/// Makes stages for entries that lost theirs, see [`Programs::stale`]; now or at a later call. Says
/// whether it is to be called at the next round in any case.
pub type Planner = Box<dyn FnMut(&mut Router) -> bool>;

/// How far a router's life is.
#[derive(Clone, Copy)]
enum Phase {
    New,
    Running,
    /// Its elements hold nothing any more, and devices are let go.
    Finished,
}

/// Why a run came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// There is more to do at once.
    Busy,
    /// Nothing to do before this time.
    Until(u64),
    /// Nothing to do before this time, and then only what keeps no run ([`Element::keeps_run`]), unless somebody writes a
    /// handler.
    IdleUntil(u64),
    /// Nothing to do unless somebody writes a handler.
    Idle,
    /// An element told the driver to stop.
    Stopped,
}

impl Router {
    /// Connects the elements of a graph, which must be in the graph's order. `seed` makes random
    /// choices repeatable.
    pub fn new(
        graph: &Graph,
        elements: Vec<Box<dyn Element>>,
        clock: Box<dyn Clock>,
        seed: u64,
        listener: Box<dyn Listener>,
    ) -> Self {
        assert_eq!(graph.nodes.len(), elements.len());
        let mut nodes: Vec<Node> = graph
            .nodes
            .iter()
            .zip(elements)
            .zip(cycles(graph))
            .map(|((n, element), cycle)| Node {
                name: n.name.clone(),
                class: n.class.clone(),
                config: n.config.as_str().into(),
                inputs: n.inputs.len(),
                handlers: element.handlers(),
                calls: element.handler_calls() != HandlerCalls::None,
                task: if element.has_task() { Task::Running } else { Task::None },
                alarm: None,
                keeps_run: element.keeps_run(),
                cell: Some(Box::new(Cell {
                    element,
                    outputs: Outputs::new(n.outputs.len()),
                    tally: Tally::default(),
                })),
                to: vec![None; n.outputs.len()],
                left: vec![0; n.outputs.len()],
                from: vec![None; n.inputs.len()],
                stages: vec![None; n.inputs.len()],
                cycle,
            })
            .collect();
        for edge in &graph.edges {
            nodes[edge.from.node].to[edge.from.port] = Some(edge.to);
            nodes[edge.to.node].from[edge.to.port] = Some(edge.from);
        }
        let names = nodes.iter().enumerate().map(|(i, n)| (n.name.clone(), i)).collect();
        let functions = Functions::new(nodes.iter().map(|node| node.name.as_str()));
        let before = Arrivals {
            elements: vec![0; nodes.len()],
            functions: vec![0; functions.names().len()],
        };
        let functions = Rc::new(functions);
        let tasks = (0..nodes.len()).filter(|&n| nodes[n].task != Task::None);
        let tasks = tasks.map(|n| Turn::new(graph, &nodes, n)).collect();
        let mut core = WorkerResources::new(seed);
        let mut clock = clock;
        core.now = clock.now();
        Self {
            nodes: Nodes {
                elements: nodes.len(),
                nodes,
                names,
                stack: Vec::new(),
                stages: Stages::default(),
                journeys: Journeys::new(),
                sampler: Sampler::default(),
                functions,
                before,
                classifiers: Library::default(),
                timers: BinaryHeap::new(),
                keeping: 0,
                later: VecDeque::new(),
                runcount: 1,
                errors: 0,
                listener,
                globals: Vec::new(),
                folder: PathBuf::new(),
                writes_files: true,
                loops: LoopCount::default(),
                max_turns: MAX_TURNS,
            },
            core,
            clock,
            tasks,
            phase: Phase::New,
            planner: None,
            planning: false,
            waiter: Waiter::default(),
            load: Load::default(),
            busy: false,
            waits_on: Vec::new(),
            leases: leases::Given::default(),
            was_stopped: false,
        }
    }

    /// One round: due timers, then every task once, everything they push carried to its end.
    /// All of it happens at one time.
    pub fn round(&mut self) -> Rest {
        let rest = self.turn();
        self.busy = rest == Rest::Busy;
        rest
    }

    /// How busy the worker has been, up to the round before the last.
    pub fn load(&self) -> Load {
        self.load
    }

    fn turn(&mut self) -> Rest {
        if self.planning || !self.nodes.stages.stale.is_empty() {
            self.plan();
        }
        self.nodes.classifiers.tend();
        let now = self.clock.now();
        if self.busy {
            self.load.rounds += 1;
            self.load.busy += now.saturating_sub(self.core.now);
        }
        self.core.now = now;
        let mut worked = false;
        match self.phase {
            Phase::Running => {}
            Phase::New => {
                self.phase = Phase::Running;
                self.steer();
                for node in 0..self.nodes.nodes.len() {
                    self.nodes.wake(&mut self.core, node);
                }
            }
            Phase::Finished => return Rest::Stopped,
        }
        worked |= self.fire_timers();
        for i in 0..self.tasks.len() {
            let node = self.tasks[i].node;
            if self.nodes.runcount <= 0
                || self.nodes.nodes[node].task == Task::Ended
                || self.tasks[i].sleeps(&self.nodes.nodes)
            {
                continue;
            }
            let work = self.nodes.run(&mut self.core, node);
            self.tasks[i].idle = work == Work::Idle;
            match work {
                Work::Done => worked = true,
                Work::Idle => {}
                Work::Ended => {
                    self.nodes.nodes[node].task = Task::Ended;
                    worked = true;
                }
            }
        }
        if self.nodes.runcount <= 0 {
            if !self.nodes.take_over_stop(&mut self.core) {
                return Rest::Stopped;
            }
            worked = true;
        }
        if worked || !self.nodes.later.is_empty() {
            return Rest::Busy;
        }
        match self.nodes.next_alarm() {
            Some(time) if time <= self.core.now => Rest::Busy,
            Some(time) if self.nodes.keeping > 0 || self.awaits() => Rest::Until(time),
            Some(time) => Rest::IdleUntil(time),
            None => Rest::Idle,
        }
    }

    /// Steers packets to what elements allocate to their workers: now, and not before, what
    /// this router allocates counts.
    fn steer(&mut self) {
        let owned = self.owned();
        let Nodes { nodes, listener, .. } = &mut self.nodes;
        for node in nodes {
            if let Some(cell) = &mut node.cell
                && let Err(why) = cell.element.steer(&owned)
            {
                listener.error(&node.name, &why);
            }
        }
    }

    /// What elements allocate.
    fn owned(&self) -> Vec<OwnedPorts> {
        let cells = self.nodes.nodes.iter().filter_map(|node| node.cell.as_ref());
        cells.flat_map(|cell| cell.element.owned()).collect()
    }

    /// Wakes those whose time has come; one that asks again at once waits for the next round.
    fn fire_timers(&mut self) -> bool {
        let mut fired = false;
        for _ in 0..self.nodes.timers.len() {
            match self.nodes.next_alarm() {
                Some(time) if time <= self.core.now && self.nodes.runcount > 0 => {}
                _ => break,
            }
            if let Some(Reverse((_, node))) = self.nodes.timers.pop() {
                self.nodes.silence(node);
                self.nodes.wake(&mut self.core, node);
                fired = true;
            }
        }
        fired
    }

    /// Runs until an element stops the driver, nothing is left to do, or `interrupted` says so;
    /// it is asked once a round.
    pub fn run(&mut self, mut interrupted: impl FnMut(&mut Router, Rest) -> bool) -> Rest {
        loop {
            let rest = self.round();
            if interrupted(self, rest) {
                return rest;
            }
            match rest {
                Rest::Busy => self.waiter.worked(),
                Rest::Until(time) => self.wait(Some(time), None),
                Rest::Idle if self.awaits() => self.wait(None, None),
                Rest::Idle | Rest::IdleUntil(_) | Rest::Stopped => return rest,
            }
        }
    }

    /// Times some bursts from now on, see [`crate::latency`], or none any more.
    pub fn sample_latency(&mut self, on: bool) {
        self.nodes.sampler = match on {
            true => Sampler::new(&self.nodes.functions),
            false => Sampler::default(),
        };
    }

    /// How long bursts took that were timed.
    pub(crate) fn latencies(&self) -> Vec<Latency> {
        self.nodes.sampler.latencies(|node| self.nodes.nodes[node].name.clone())
    }

    /// The programs that replace elements.
    pub fn programs(&mut self) -> Programs<'_> {
        Programs(self)
    }

    /// The leases of flows that it gives.
    pub fn leases(&mut self) -> Leases<'_> {
        Leases(self)
    }

    /// The taps in the chain's connections.
    pub fn taps(&mut self) -> Taps<'_> {
        Taps(self)
    }

    #[cold]
    fn plan(&mut self) {
        if let Some(mut planner) = self.planner.take() {
            self.planning = planner(self);
            self.planner.get_or_insert(planner);
        }
    }

    /// Lets every element flush what it holds; a round does nothing from now on.
    pub fn finish(&mut self) {
        self.phase = Phase::Finished;
        self.nodes.settle(&mut self.core);
        // Sinks come last: they take what others still emit.
        for sinks in [false, true] {
            for node in 0..self.nodes.nodes.len() {
                if self.nodes.nodes[node].to.is_empty() == sinks {
                    self.nodes.lend(&mut self.core, node, |element, cx| element.finish(cx));
                    self.nodes.deliver(&mut self.core);
                }
            }
        }
    }

    /// Pushes packets into an input of an element, and carries them to the end of their path.
    pub fn push(&mut self, to: Port, batch: Batch) {
        self.core.now = self.clock.now();
        self.nodes.stack.push(Delivery { to, batch, taker: Taker::Stage, loops: 0 });
        self.nodes.deliver(&mut self.core);
    }

    /// Pulls a packet out of an output of an element.
    pub fn pull(&mut self, from: Port) -> Option<Packet> {
        self.core.now = self.clock.now();
        let packet = self.nodes.pull_from(&mut self.core, from);
        self.nodes.deliver(&mut self.core);
        packet
    }

    /// Nanoseconds of the router's clock, now.
    pub fn time(&mut self) -> u64 {
        self.clock.now()
    }

    /// The worker's possessions.
    pub fn core(&mut self) -> &mut WorkerResources {
        &mut self.core
    }

    /// Tells the driver to stop, however often it was to be told; an element may still take the
    /// matter over.
    pub fn stop(&mut self) {
        self.nodes.runcount = self.nodes.runcount.min(0);
    }

    /// Where relative paths of the files that scripts read and write count from.
    pub fn set_folder(&mut self, folder: PathBuf) {
        self.nodes.folder = folder;
    }

    /// Sets how often a burst may come to where a cycle begins, copies included, before it is taken
    /// to multiply for ever.
    pub fn limit_turns(&mut self, turns: u32) {
        self.nodes.max_turns = turns;
    }

    /// Lets nothing that elements write into files reach them.
    pub fn forbid_writing(&mut self) {
        self.nodes.writes_files = false;
    }

    /// The control sockets that elements ask for, with the elements' names.
    pub fn control_sockets(&self) -> Vec<(String, ControlSocketRequest)> {
        let of = |n: &Node| Some((n.name.clone(), n.cell.as_ref()?.element.control_socket()?));
        self.nodes.elements().iter().filter_map(of).collect()
    }

    /// Says a line to whoever listens.
    pub fn message(&mut self, text: &str) {
        self.nodes.listener.message(text);
    }

    /// Number of errors that elements met while running.
    pub fn errors(&self) -> u64 {
        self.nodes.errors
    }

    /// Reads `element.handler parameter`, or a global handler without an element.
    ///
    /// # Errors
    /// A message for whoever asked.
    pub fn read_handler(&mut self, handler: &str) -> Result<String, String> {
        self.core.now = self.clock.now();
        let value = self.nodes.read(None, handler, &mut self.core);
        self.nodes.deliver(&mut self.core);
        value
    }

    /// Writes `element.handler`.
    ///
    /// # Errors
    /// A message for whoever asked.
    pub fn write_handler(&mut self, handler: &str, value: &str) -> Result<(), String> {
        self.core.now = self.clock.now();
        let before = self.nodes.runcount;
        let result = self.nodes.write(None, handler, value, &mut self.core);
        self.nodes.deliver(&mut self.core);
        self.was_stopped |= self.nodes.runcount < before;
        result
    }

    /// Sets what a global read handler (`version`, `config` …) answers.
    pub fn set_global(&mut self, name: &str, value: String) {
        self.nodes.globals.retain(|(n, _)| n != name);
        self.nodes.globals.push((name.to_string(), value.into()));
    }

    /// All elements: name, class, what they dropped or noted, and what they took in or sent.
    pub fn report(&mut self) -> impl Iterator<Item = (&str, &str, &Tally, Option<Traffic>)> {
        self.nodes.settle(&mut self.core);
        self.nodes.elements().iter().map(|n| {
            let cell = n.cell.as_ref().expect("no element is at work");
            (n.name.as_str(), n.class.as_str(), &cell.tally, cell.element.traffic())
        })
    }

    /// The handlers of an element that are not private, the general ones included; of the router if
    /// the name is empty.
    pub fn handlers(&self, element: &str) -> Option<Vec<Handler>> {
        let node = match element {
            "" => None,
            name => Some(*self.nodes.names.get(name)?),
        };
        Some(self.nodes.all_handlers(node))
    }

    /// Whether a handler counts something, so that its values on several cores add up.
    pub(crate) fn adds_up(&self, handler: &str) -> bool {
        self.nodes.adds_up(handler)
    }

    /// Whether there is a handler `element.handler` that can be read, or written.
    pub fn has_handler(&self, handler: &str, write: bool) -> bool {
        self.nodes.handler_exists(None, handler, write)
    }

    /// An element by its full name, to look at its model or state.
    pub fn element(&mut self, name: &str) -> Option<&dyn Element> {
        self.nodes.settle(&mut self.core);
        let node = *self.nodes.names.get(name)?;
        self.nodes.nodes[node].cell.as_ref().map(|c| &*c.element)
    }
}

impl Nodes {
    /// The chain's elements.
    fn elements(&self) -> &[Node] {
        &self.nodes[..self.elements]
    }

    /// Calls an element in its surroundings and puts what it emitted on the stack; `None` if it
    /// is at work already.
    fn lend<R>(
        &mut self,
        core: &mut WorkerResources,
        node: NodeId,
        work: impl FnOnce(&mut dyn Element, &mut Context<'_>) -> R,
    ) -> Option<R> {
        self.lend_for(core, node, work, |_| None)
    }

    /// The same, where a packet may be among what is returned, which left by an output.
    fn lend_for<R>(
        &mut self,
        core: &mut WorkerResources,
        node: NodeId,
        work: impl FnOnce(&mut dyn Element, &mut Context<'_>) -> R,
        packet: impl FnOnce(&mut R) -> Option<(usize, &mut Packet)>,
    ) -> Option<R> {
        let mut cell = self.nodes[node].cell.take()?;
        let before = self.look_at(&cell, None);
        let Cell { element, outputs, tally } = &mut *cell;
        let mut result = work(&mut **element, &mut Context::new(core, tally, outputs, self, node));
        if let Some(before) = before {
            self.look_back(core, node, &mut cell, packet(&mut result).into_iter(), &before);
        }
        self.collect(core, node, &mut cell);
        self.nodes[node].cell = Some(cell);
        Some(result)
    }

    /// Puts what an element emitted on the stack, the first emitted on top.
    fn collect(&mut self, core: &mut WorkerResources, node: NodeId, cell: &mut Cell) {
        if cell.outputs.is_empty() {
            return;
        }
        for (port, mut batch) in cell.outputs.drain_reversed() {
            match self.nodes[node].leave(port, batch.len()) {
                Some(to) => {
                    let loops = self.loops.now;
                    self.stack.push(Delivery { to, batch, taker: Taker::Stage, loops });
                }
                None => {
                    drop_all(core, &mut cell.tally, &mut batch, UNCONNECTED);
                    core.recycle_batch(batch);
                }
            }
        }
    }

    fn wake(&mut self, core: &mut WorkerResources, node: NodeId) {
        self.settle(core);
        if node >= self.elements {
            self.stop_old_traces(core, node);
        }
        self.lend(core, node, |element, cx| element.wake(cx));
        self.deliver(core);
    }

    fn run(&mut self, core: &mut WorkerResources, node: NodeId) -> Work {
        let work = self.lend(core, node, |element, cx| element.run(cx)).unwrap_or(Work::Idle);
        self.deliver(core);
        work
    }

    /// Asks the elements, the last declared first, whether one takes over the stops that the
    /// driver was told.
    fn take_over_stop(&mut self, core: &mut WorkerResources) -> bool {
        self.settle(core);
        for _ in 0..MAX_STOPS {
            let taken = (0..self.nodes.len())
                .rev()
                .any(|node| self.lend(core, node, |element, cx| element.on_stop(cx)) == Some(true));
            self.deliver(core);
            if !taken {
                break;
            }
            self.runcount += 1;
            if self.runcount > 0 {
                return true;
            }
        }
        false
    }

    /// Has an element not woken any more.
    fn silence(&mut self, node: NodeId) {
        if self.nodes[node].alarm.take().is_some() {
            self.keeping -= usize::from(self.nodes[node].keeps_run);
        }
    }

    /// When the next element is to be woken.
    fn next_alarm(&mut self) -> Option<u64> {
        while let Some(&Reverse((time, node))) = self.timers.peek() {
            if self.nodes[node].alarm == Some(time) {
                return Some(time);
            }
            self.timers.pop();
        }
        None
    }

    /// Carries everything on the stack to the end of its path, then writes the handlers that
    /// were put off.
    fn deliver(&mut self, core: &mut WorkerResources) {
        self.carry(core);
        for _ in 0..MAX_LATER_WRITES {
            let Some(LaterWrite { from, handler, value }) = self.later.pop_front() else { return };
            if let Err(why) = self.write(Some(from), &handler, &value, core) {
                Services::error(self, from, &format!("{handler}: {why}"));
            }
            self.carry(core);
        }
    }

    fn pull_from(&mut self, core: &mut WorkerResources, from: Port) -> Option<Packet> {
        let pull = |element: &mut dyn Element, cx: &mut Context<'_>| element.pull(from.port, cx);
        let pulled = self.lend_for(core, from.node, pull, |p| Some((from.port, p.as_mut()?)));
        pulled.flatten()
    }
}

fn drop_all(core: &mut WorkerResources, tally: &mut Tally, batch: &mut Batch, reason: Reason) {
    if !batch.is_empty() {
        tally.drop_all(reason, batch.len() as u64, batch.bytes());
        core.pool.recycle_all(batch);
    }
}

impl Services for Nodes {
    fn pull(&mut self, core: &mut WorkerResources, node: NodeId, input: usize) -> Option<Packet> {
        let from = self.nodes[node].from.get(input).copied().flatten()?;
        let packet = self.pull_from(core, from)?;
        self.nodes[from.node].leave(from.port, 1);
        if !self.journeys.is_empty() {
            self.pulled(core, node, &packet);
        }
        Some(packet)
    }

    fn wake_at(&mut self, node: NodeId, time: u64) {
        if self.nodes[node].alarm.is_none_or(|alarm| time < alarm) {
            if self.nodes[node].alarm.replace(time).is_none() {
                self.keeping += usize::from(self.nodes[node].keeps_run);
            }
            self.timers.push(Reverse((time, node)));
        }
    }

    fn stop(&mut self) {
        self.runcount -= 1;
    }

    fn read_handler(
        &mut self,
        core: &mut WorkerResources,
        node: NodeId,
        handler: &str,
    ) -> Result<String, String> {
        debug_assert!(self.nodes[node].calls, "{} calls {handler}", self.nodes[node].name);
        self.read(Some(node), handler, core)
    }

    fn write_handler(
        &mut self,
        core: &mut WorkerResources,
        node: NodeId,
        handler: &str,
        value: &str,
    ) -> Result<(), String> {
        debug_assert!(self.nodes[node].calls, "{} calls {handler}", self.nodes[node].name);
        self.write(Some(node), handler, value, core)
    }

    fn write_later(&mut self, node: NodeId, handler: &str, value: &str) {
        debug_assert!(self.nodes[node].calls, "{} calls {handler}", self.nodes[node].name);
        let (handler, value) = (handler.to_string(), value.to_string());
        self.later.push_back(LaterWrite { from: node, handler, value });
    }

    fn has_handler(&self, node: NodeId, handler: &str, write: bool) -> bool {
        self.handler_exists(Some(node), handler, write)
    }

    fn message(&mut self, text: &str) {
        self.listener.message(text);
    }

    fn output(&mut self, text: &str) {
        self.listener.output(text);
    }

    fn read_file(&mut self, path: &str, most: u64) -> Result<Vec<u8>, String> {
        let read = match path {
            "-" => crate::file::read_all(std::io::stdin(), most),
            path => crate::file::read(&self.folder.join(path), most),
        };
        read.map_err(|e| e.to_string())
    }

    fn write_file(&mut self, path: &str, bytes: &[u8], append: bool) -> Result<(), String> {
        if !self.writes_files {
            return Ok(());
        }
        let file = guarded_path::create(&self.folder.join(path), append);
        file.and_then(|mut file| file.write_all(bytes)).map_err(|e| e.to_string())
    }

    fn error(&mut self, node: NodeId, text: &str) {
        self.errors += 1;
        let name = std::mem::take(&mut self.nodes[node].name);
        self.listener.error(&name, text);
        self.nodes[node].name = name;
    }

    fn runcount(&self) -> i64 {
        self.runcount
    }
}
