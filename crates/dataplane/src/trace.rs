//! Watching packets: what each element was given, what it decided and what became of it.
//!
//! Every element is wrapped; the wrappers write what they see into one [`Trace`]. Elements with a
//! model are interpreted, so that their decisions can be told. Nothing of this touches a router
//! that is not watched.

mod journey;
pub mod live;
mod observed;
mod passage;
mod seen;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use elements::Element;
use elements::configure::Devices;
use elements::device::{Device, DeviceRequest, Received};
use ir::PrefixEntry;
use ir::interp::FlowEvent;
use ir::model::Rule;
use ir::{Graph, NodeId, Port, Program, Reason, Span, Store};
use net::{Batch, Packet, Pool};

use crate::{Interpreted, Listener};

pub(crate) use journey::Journey;
pub(crate) use observed::grown;
pub use passage::Passage;
pub(crate) use passage::Steps;
pub use seen::Seen;

/// Index of a [`Step`].
pub type StepId = usize;

/// What an element decided about a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The rule that matched: what was written in the configuration, and where. Both are absent
    /// if no rule did.
    Matched(Option<(String, Option<Span>)>),
    /// A key was looked up by longest prefix.
    LookedUp {
        /// The key.
        key: u128,
        /// Width of the key in bits.
        width: u16,
        /// The prefix found, its length and the numbers it yields.
        entry: Option<(u128, u16, Vec<u128>)>,
    },
    /// A flow was known under the key; whether the packet is of the reply direction.
    KnownFlow(Vec<u128>, bool),
    /// No flow was known under the key.
    UnknownFlow(Vec<u128>),
    /// A flow is made: its key, and that of the answers.
    NewFlow([Vec<u128>; 2]),
    /// The flow table had no room.
    FullTable,
    /// The element's native code took the packet, because of this.
    Opaque(&'static str),
}

impl Decision {
    pub(crate) fn matched(rule: Option<&Rule>) -> Self {
        Self::Matched(rule.map(|r| (r.text.to_string(), r.span)))
    }

    pub(crate) fn looked_up(key: u128, width: u16, entry: Option<&PrefixEntry>) -> Self {
        let entry = entry.map(|e| (e.prefix, e.length, e.row.to_vec()));
        Self::LookedUp { key, width, entry }
    }

    pub(crate) fn flow(event: FlowEvent<'_>) -> Self {
        match event {
            FlowEvent::Found { key, reverse, .. } => Self::KnownFlow(key.to_vec(), reverse),
            FlowEvent::Missed(key) => Self::UnknownFlow(key.to_vec()),
            FlowEvent::Adding(flow) => Self::NewFlow(flow.keys.clone()),
            FlowEvent::Full => Self::FullTable,
        }
    }
}

/// What became of a packet at an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It left on this output.
    Left(usize),
    /// It was dropped.
    Dropped(Reason),
    /// It was given to the outside.
    Sent(String),
    /// The element has it still.
    Kept,
    /// It ended here; what it carried was used.
    UsedUp,
}

/// A packet that left an element, or did not.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What became of it.
    pub fate: Fate,
    /// The packet then; absent if it was dropped.
    pub packet: Option<Seen>,
    /// The step that it went on with.
    pub next: Option<StepId>,
    /// Whether the packet is another one than came in: a copy, or one that the element made.
    pub made: bool,
    /// Whose packet it was.
    identity: usize,
}

/// A packet's visit to an element.
#[derive(Clone, Debug)]
pub struct Step {
    /// The element.
    pub node: NodeId,
    /// The input by which the packet was pushed; none if it was pulled or the element made it.
    pub input: Option<usize>,
    /// The packet as it came.
    pub before: Option<Seen>,
    /// The step and the outcome that it came from.
    pub from: Option<(StepId, usize)>,
    /// What was decided.
    pub decisions: Vec<Decision>,
    /// Reasons counted without a drop.
    pub notes: Vec<Reason>,
    /// What the element said.
    pub messages: Vec<String>,
    /// The packet's path through the program that begins here, if one does.
    pub passage: Option<Passage>,
    /// What came of it.
    pub outcomes: Vec<Outcome>,
    /// Nanoseconds of the clock.
    pub time: u64,
    /// The [`Trace::phase`] in which it happened.
    pub phase: usize,
}

/// All that was seen.
#[derive(Default)]
pub struct Trace {
    /// The visits, in their order.
    pub steps: Vec<Step>,
    /// What elements said while they handled no packet.
    pub messages: Vec<String>,
    /// Counted up by whoever watches, to tell apart what follows from one packet and from another.
    pub phase: usize,
    /// Visits that are going on, the innermost last.
    open: Vec<StepId>,
    /// Packets that were pulled by the visits that are going on.
    pulled: Vec<Vec<Pulled>>,
    /// Where the packets that live now were last seen, by their identities.
    live: HashMap<usize, (StepId, usize)>,
    /// Packets that sources are to take in.
    inlets: HashMap<String, Rc<RefCell<Inlet>>>,
    /// What the chain became.
    programs: Rc<[Program]>,
    /// By packets' identities: the phase in which a program was asked about one last, and the
    /// inputs through which it takes it.
    inside: HashMap<usize, (usize, HashSet<Port>)>,
    /// The state of the elements.
    store: Option<Rc<RefCell<Store>>>,
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// A packet that was pulled: whose, what it was, and where it came from.
type Pulled = (usize, Seen, (StepId, usize));

/// A source's packets.
#[derive(Default)]
struct Inlet {
    waiting: VecDeque<Vec<u8>>,
    ended: bool,
    link_type: u32,
    /// The device's name, or the file's.
    name: String,
}

impl Trace {
    /// Nothing seen yet.
    pub fn new() -> Rc<RefCell<Self>> {
        Rc::default()
    }

    /// A trace of visits that were seen before, see [`live`].
    pub fn of(steps: Vec<Step>) -> Self {
        Self { steps, ..Self::default() }
    }

    /// Wraps the elements of a graph, which must be initialized and in the graph's order.
    pub fn watch(
        trace: &Rc<RefCell<Self>>,
        graph: &Graph,
        elements: Vec<Box<dyn Element>>,
    ) -> Vec<Box<dyn Element>> {
        let store = Rc::new(RefCell::new(Store::new()));
        trace.borrow_mut().store = Some(Rc::clone(&store));
        let wrap = |(id, element): (NodeId, Box<dyn Element>)| {
            let node = &graph.nodes[id];
            let inlet = trace.borrow().inlets.get(&node.name).cloned();
            // What makes packets of its own is left alone: only what is asked for runs.
            let silent = inlet.is_none() && node.inputs.is_empty() && !node.outputs.is_empty();
            let element = Interpreted::traced(element, &node.name, &store, Some(Rc::clone(trace)));
            let watched = observed::Observed::new(element, id, Rc::clone(trace), inlet, silent);
            Box::new(watched) as Box<dyn Element>
        };
        elements.into_iter().enumerate().map(wrap).collect()
    }

    /// Whether the element of this name takes packets in from outside.
    pub fn is_source(&self, element: &str) -> bool {
        self.inlets.contains_key(element)
    }

    /// The elements that take packets in from a device or file of this name.
    pub fn sources_of(&self, name: &str) -> impl Iterator<Item = &str> {
        self.inlets.iter().filter(move |(_, i)| i.borrow().name == name).map(|(e, _)| e.as_str())
    }

    /// Gives a source a packet to take in.
    pub fn take_in(&mut self, element: &str, frame: Vec<u8>) {
        if let Some(inlet) = self.inlets.get(element) {
            inlet.borrow_mut().waiting.push_back(frame);
        }
    }

    /// Sets the link type number of what sources take in.
    pub fn set_link_type(&mut self, link_type: u32) {
        self.inlets.values().for_each(|i| i.borrow_mut().link_type = link_type);
    }

    /// Lets all sources come to their end.
    pub fn end_sources(&mut self) {
        self.inlets.values().for_each(|i| i.borrow_mut().ended = true);
    }

    fn current(&mut self) -> Option<&mut Step> {
        let step = *self.open.last()?;
        self.steps.get_mut(step)
    }

    pub(crate) fn decided(&mut self, decision: Decision) {
        if let Some(step) = self.current() {
            step.decisions.push(decision);
        }
    }

    fn sent(&mut self, packet: &Packet, to: &str) {
        let Some(&step) = self.open.last() else { return };
        let (fate, packet) = (Fate::Sent(to.to_string()), Outcome::seen(packet));
        self.steps[step].outcomes.push(Outcome { fate, ..packet });
    }
}

impl Outcome {
    fn kept() -> Self {
        Self { fate: Fate::Kept, packet: None, next: None, made: false, identity: 0 }
    }

    fn seen(packet: &Packet) -> Self {
        let (identity, packet) = (packet.identity(), Some(Seen::of(packet)));
        Self { packet, identity, ..Self::kept() }
    }

    fn dropped(reason: Reason) -> Self {
        Self { fate: Fate::Dropped(reason), ..Self::kept() }
    }
}

impl Step {
    fn new(node: NodeId, time: u64, phase: usize) -> Self {
        Self {
            node,
            input: None,
            before: None,
            from: None,
            decisions: Vec::new(),
            notes: Vec::new(),
            messages: Vec::new(),
            passage: None,
            outcomes: Vec::new(),
            time,
            phase,
        }
    }
}

/// Devices that take in what a trace is given and show it what is sent; nothing is opened.
pub struct Stage(pub Rc<RefCell<Trace>>);

impl Devices for Stage {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        self.open_for("", request)
    }

    fn open_for(
        &mut self,
        element: &str,
        request: &DeviceRequest,
    ) -> Result<Box<dyn Device>, String> {
        let (receives, name) = match request {
            DeviceRequest::CaptureIn { path } => (true, path),
            DeviceRequest::CaptureOut { path, .. } => (false, path),
            DeviceRequest::Interface { name, receive } => (*receive, name),
        };
        if !receives {
            return Ok(Box::new(Outlet { trace: Rc::clone(&self.0), name: name.clone() }));
        }
        let inlet =
            Rc::new(RefCell::new(Inlet { link_type: 1, name: name.clone(), ..Inlet::default() }));
        self.0.borrow_mut().inlets.insert(element.to_string(), Rc::clone(&inlet));
        Ok(Box::new(Source(inlet)))
    }
}

struct Source(Rc<RefCell<Inlet>>);

impl Device for Source {
    fn receive(
        &mut self,
        _: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let mut inlet = self.0.borrow_mut();
        if let Some(frame) = inlet.waiting.pop_front() {
            batch.push(pool.packet(&frame));
        }
        let over = inlet.ended && inlet.waiting.is_empty();
        Ok(if over { Received::End } else { Received::More })
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.drain().for_each(|p| pool.recycle(p));
        Err("a source cannot be sent to".to_string())
    }

    fn link_type(&self) -> u32 {
        self.0.borrow().link_type
    }
}

struct Outlet {
    trace: Rc<RefCell<Trace>>,
    name: String,
}

impl Device for Outlet {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        for packet in batch.drain() {
            self.trace.borrow_mut().sent(&packet, &self.name);
            pool.recycle(packet);
        }
        Ok(())
    }
}

/// Hears what elements say, and notes it with the packet that they handle.
pub struct Hearing(pub Rc<RefCell<Trace>>);

impl Hearing {
    fn note(&self, text: String) {
        let mut trace = self.0.borrow_mut();
        match trace.current() {
            Some(step) => step.messages.push(text),
            None => trace.messages.push(text),
        }
    }
}

impl Listener for Hearing {
    fn message(&mut self, text: &str) {
        self.note(text.to_string());
    }

    fn output(&mut self, text: &str) {
        self.note(text.trim_end_matches('\n').to_string());
    }

    fn error(&mut self, element: &str, text: &str) {
        self.note(format!("error: {element}: {text}"));
    }
}
