//! What can be told of a packet's path from outside.

use ir::model::{Reason, StateDecl, StateKind};
use ir::program::{End, Exit, Program};
use ir::state::{Flow, StateValue, Store};
use ir::{NodeId, program};
use net::{Packet, Pool};

use super::Comparison;
use crate::prove::witness::Witness;

/// A flow that is in a table when a packet comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The table's owner.
    pub owner: String,
    /// The table's name.
    pub name: &'static str,
    /// What the table is.
    pub kind: StateKind,
    /// The key that finds it.
    pub key: Vec<u128>,
    /// What is bound then.
    pub values: Vec<u128>,
    /// The common cells.
    pub common: Vec<u128>,
}

/// An input port at which packets are handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The element.
    pub element: String,
    /// Its port.
    pub port: usize,
    /// Whether its native code takes them.
    pub native: bool,
}

/// What became of a packet, or of one of its copies.
#[derive(Clone, Debug, PartialEq)]
pub enum Fate {
    /// It came to an input port so.
    Arrived(Queue, Box<Witness>),
    /// It was dropped at an element, so many bytes long.
    Dropped(String, Reason, usize),
    /// The model or the program is wrong.
    Fault(String),
}

/// What a packet did and became.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// What became of the packet and its copies, in order.
    pub fates: Vec<Fate>,
    /// Reasons that were counted without a drop, by element, in order of their names.
    pub notes: Vec<(String, Reason)>,
    /// State that the packet changed, or all that counts: owner, name, value.
    pub state: Vec<(String, String, StateValue)>,
    /// The input ports that it came through.
    pub visited: Vec<(String, usize)>,
}

impl Observation {
    /// Forgets all but what became of the packet and its copies.
    pub(super) fn only_fates(&mut self) {
        self.notes.clear();
        self.state.clear();
        self.visited.clear();
    }
}

/// Whether two do the same with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// The same.
    Same,
    /// Something else.
    Different,
    /// It cannot be told, and why.
    Unclear(String),
}

/// Time that flows of a [`Held`] live on.
const LIFE: u64 = 1_000_000_000_000;

/// Puts flows into tables.
pub(super) fn hold(store: &mut Store, flows: &[Held], now: u64) {
    for (i, held) in flows.iter().enumerate() {
        let declared = StateDecl { owner: None, name: held.name, kind: held.kind.clone() };
        if let StateValue::Flows(table) = store.entry(&held.owner, &declared) {
            // Nothing looks up a key of this length.
            let other = vec![i as u128; held.key.len() + 1];
            let values = [held.values.clone(), held.values.clone()];
            let flow = Flow {
                keys: [held.key.clone(), other],
                values,
                common: held.common.clone(),
                expiry: now.saturating_add(LIFE),
                guarantee: now.saturating_add(LIFE),
            };
            table.insert(flow, now);
        }
    }
}

struct Surroundings<'a> {
    now: u64,
    name: &'a dyn Fn(NodeId) -> String,
    notes: Vec<(String, Reason)>,
    /// What became of copies, and the input ports that they came through.
    fates: Vec<Fate>,
    visited: Vec<(String, usize)>,
}

impl Surroundings<'_> {
    /// A packet left, or was dropped, as an exit says.
    fn left(&mut self, exit: &Exit, packet: &Packet) {
        self.visited.extend(exit.visited.iter().map(|p| ((self.name)(p.node), p.port)));
        let arrived = |element, port, native| {
            let queue = Queue { element, port, native };
            Fate::Arrived(queue, Box::new(Witness::of(packet, self.now)))
        };
        self.fates.push(match exit.end {
            End::Drop { element, reason } => {
                Fate::Dropped((self.name)(element), reason, packet.len())
            }
            End::Push { to, native } => arrived((self.name)(to.node), to.port, native),
            End::Handoff { to } => arrived(to.to_string(), 0, false),
        });
    }
}

impl program::interp::Environment for Surroundings<'_> {
    fn now(&self) -> u64 {
        self.now
    }

    fn note(&mut self, element: NodeId, reason: Reason) {
        self.notes.push(((self.name)(element), reason));
    }

    fn copied(&mut self, exit: &Exit, copy: Packet) {
        self.left(exit, &copy);
    }
}

/// State as it is compared: what is as at the beginning is left out.
pub(super) fn state_of(store: &Store) -> Vec<(String, String, StateValue)> {
    let counts = |value: &StateValue| match value {
        StateValue::Counter { packets, bytes } => (*packets, *bytes) != (0, 0),
        StateValue::Cells(_) => true,
        StateValue::Flows(flows) => !flows.is_empty(),
    };
    let all = store.iter().filter(|entry| counts(entry.2));
    all.map(|(owner, name, value)| (owner.to_string(), name.to_string(), value.clone())).collect()
}

fn observe(
    program: &Program,
    name: &dyn Fn(NodeId) -> String,
    packet: &Witness,
    flows: &[Held],
) -> Observation {
    let mut store = Store::new();
    hold(&mut store, flows, packet.now);
    let (notes, fates, visited) = (Vec::new(), Vec::new(), Vec::new());
    let mut around = Surroundings { now: packet.now, name, notes, fates, visited };
    let mut pool = Pool::new();
    let mut moving = packet.packet(&mut pool);
    let result = program::interp::interpret(program, &mut moving, &mut store, &mut around);
    match result {
        Err(fault) => around.fates.push(Fate::Fault(fault.to_string())),
        Ok(exit) => around.left(exit, &moving),
    }
    pool.recycle(moving);
    around.notes.sort();
    let Surroundings { notes, fates, visited, .. } = around;
    Observation { fates, notes, state: state_of(&store), visited }
}

/// What both programs do with a packet.
pub(super) fn both(
    comparison: &Comparison<'_>,
    packet: &Witness,
    flows: &[Held],
) -> (Observation, Observation) {
    let Comparison { a, b, names_a, names_b, .. } = comparison;
    (observe(a, names_a, packet, flows), observe(b, names_b, packet, flows))
}
