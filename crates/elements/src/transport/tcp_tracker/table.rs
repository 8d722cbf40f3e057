//! The connections of a tracker: flows in a flow table, each with its connection beside it.

use std::cell::RefCell;
use std::rc::Rc;

use ir::StateValue;
use ir::state::{Flow as Declared, Flows};

use super::connection::{Connection, NUMBERS, State};
use super::segment::Seen;
use crate::element_state::ElementState;
use crate::flow_table::slab::Beside;
use crate::flow_table::{self, Addresses, FlowHit, FlowKey, FlowOf, GroupFlows, HandedOver};

/// What the declared flows are called.
pub(super) const STATE: &str = "connections";
/// Numbers that the flow table itself declares of a flow.
const COMMON: usize = 4;

/// Widths of all numbers that are declared of a flow.
pub(super) fn widths<A: Addresses>() -> Vec<u16> {
    let table = [A::WIDTH, 16, A::WIDTH, 16, 16, 1, 8, 16, 8, 8];
    table.into_iter().chain([32; NUMBERS]).collect()
}

/// Connections of a burst that may begin, at the most.
const MOST_BEGUN: usize = 64;

/// How long connections are remembered without a packet, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeouts {
    pub opening: u64,
    pub open: u64,
    pub over: u64,
}

impl Timeouts {
    fn all(self) -> [u64; 3] {
        [self.opening, self.open, self.over]
    }
}

/// Which of the timeouts connections in a state have.
fn class(state: State) -> usize {
    match state {
        State::SynSent | State::BothSent | State::SynReceived => 0,
        State::Established | State::HalfClosed => 1,
        State::Closed | State::Reset => 2,
    }
}

/// See the module.
pub(super) struct Table<A: Addresses> {
    /// Shared with whoever puts flows into groups. Each has the state of its connection.
    pub(super) flows: Rc<RefCell<flow_table::Table<A>>>,
    /// By the flow's number.
    connections: Beside<Connection>,
    /// Connections whose SYN came in this burst, and may pass or not.
    begun: Vec<(FlowKey<A>, Connection)>,
    /// When the burst came.
    now: u64,
    timeouts: Timeouts,
    classes: [u16; 3],
}

/// A table that goes to the chain that comes next.
struct Whole<A>(HandedOver<A>, Beside<Connection>, Timeouts);

/// What goes to another worker.
struct Group<A>(GroupFlows<A>, Vec<(FlowKey<A>, Connection)>);

impl<A: Addresses> Table<A> {
    pub(super) fn new(capacity: u64, timeouts: Timeouts) -> Self {
        let mut flows = flow_table::Table::new(capacity);
        let classes = timeouts.all().map(|timeout| flows.class(timeout, 0));
        let flows = Rc::new(RefCell::new(flows));
        let (connections, begun) = (Beside::new(), Vec::new());
        Self { flows, connections, begun, now: 0, timeouts, classes }
    }

    /// Tells the time, before anything is done at that time.
    pub(super) fn expire(&mut self, now: u64) {
        // All packets of a burst come at one time.
        if std::mem::replace(&mut self.now, now) != now {
            self.begun.clear();
        }
        let mut flows = self.flows.borrow_mut();
        flows.expire(now);
        if flows.is_mixed() {
            flows.regroup(class_of(self.classes));
        }
    }

    /// Asks for the memory that finding flows touches, all of a batch at once; see [`Table::find`].
    pub(super) fn prefetch(&self, batch: &mut [Seen<A>]) {
        let flows = self.flows.borrow();
        for seen in &mut *batch {
            seen.at = flows.hashed(seen.at.key);
            flows.prefetch_bucket(&seen.at);
        }
        flows.guess(batch, |seen| (seen.at.hash, &mut seen.guess));
        for guess in batch.iter().filter_map(|seen| seen.guess) {
            self.connections.prefetch(guess >> 1);
        }
    }

    /// The number of a flow, and the end that a packet with the key is from.
    #[inline]
    pub(super) fn find(&self, seen: &Seen<A>, now: u64) -> Option<FlowHit> {
        let flows = self.flows.borrow();
        let guessed = seen.guess.and_then(|guess| flows.is(guess, &seen.at));
        let found = guessed.or_else(|| flows.holder(&seen.at));
        found.filter(|&(number, _)| flows.flow(number).expiry() > now)
    }

    /// The connection of a flow.
    #[inline]
    pub(super) fn connection(&self, number: u32) -> &Connection {
        self.connections.get(number)
    }

    /// Works on the connection of a flow. If that gives no error, the connection had a packet.
    #[inline]
    pub(super) fn change<E>(
        &mut self,
        number: u32,
        now: u64,
        work: impl FnOnce(&mut Connection) -> Result<(), E>,
    ) -> Result<(), E> {
        let connection = self.connections.get_mut(number);
        work(connection)?;
        let mut flows = self.flows.borrow_mut();
        flows.set_state(number, connection.state as u8);
        flows.touch(number, self.classes[class(connection.state)], now);
        Ok(())
    }

    /// The connection of a segment whose SYN came in this burst, and from which end the segment is.
    pub(super) fn begun(&mut self, key: &FlowKey<A>) -> Option<(&mut Connection, usize)> {
        let end = |held: &FlowKey<A>| [*held, held.reverse()].iter().position(|held| held == key);
        self.begun.iter_mut().find_map(|(held, connection)| Some((connection, end(held)?)))
    }

    /// A SYN came that may begin a connection.
    pub(super) fn begin(&mut self, key: FlowKey<A>, connection: Connection) {
        if self.begun.len() >= MOST_BEGUN {
            self.begun.remove(0);
        }
        self.begun.push((key, connection));
    }

    /// Takes the connection that a SYN of this burst begins, as later segments of the burst left it.
    pub(super) fn take_begun(&mut self, key: &FlowKey<A>) -> Option<Connection> {
        let at = self.begun.iter().position(|(held, _)| held == key)?;
        Some(self.begun.swap_remove(at).1)
    }

    /// Adds a connection; whether there is room for it.
    pub(super) fn add(
        &mut self,
        key: FlowKey<A>,
        connection: Connection,
        group: u16,
        now: u64,
    ) -> bool {
        let mut flow = FlowOf::new(key, key.reverse());
        (flow.protocol, flow.state) = (key.map as u8, connection.state as u8);
        let class = self.classes[class(connection.state)];
        let Some(number) = self.flows.borrow_mut().insert(flow, class, now) else { return false };
        self.flows.borrow_mut().set_group(number, group);
        self.connections.set(number, connection);
        true
    }

    /// Sets the connections of flows that were added.
    fn set_all(&mut self, all: impl IntoIterator<Item = (FlowKey<A>, Connection)>) {
        for (key, connection) in all {
            let flows = self.flows.borrow();
            let held = flows.holder(&flows.hashed(key));
            drop(flows);
            if let Some((number, _)) = held {
                self.connections.set(number, connection);
            }
        }
    }

    /// The flows as declared, of a group or all.
    fn declared(&self, group: Option<u16>) -> Flows {
        let table = self.flows.borrow();
        let flows = table.export(group);
        let mut all = Flows::new(flows.capacity());
        for flow in flows.iter() {
            let key = FlowKey::<A>::from_numbers(&flow.keys[0]);
            let held = key.and_then(|key| table.holder(&table.hashed(key)));
            let connection = held.map(|(n, _)| self.connections.get(n));
            if let Some(connection) = connection {
                let mut flow = flow.clone();
                flow.common.extend(connection.numbers().map(u128::from));
                all.insert(flow, flows.clock());
            }
        }
        all
    }

    /// Takes over declared flows.
    fn restore(&mut self, declared: &Flows) {
        let (mut flows, mut connections) = (Flows::new(declared.capacity()), Vec::new());
        for flow in declared.iter() {
            let (common, rest) = flow.common.split_at(flow.common.len().min(COMMON));
            let mut numbers = [0; NUMBERS];
            numbers.iter_mut().zip(rest).for_each(|(number, &value)| *number = value as u32);
            let key = FlowKey::<A>::from_numbers(&flow.keys[0]);
            if let (Some(key), Some(connection)) = (key, Connection::from_numbers(&numbers)) {
                connections.push((key, connection));
                flows
                    .insert(Declared { common: common.to_vec(), ..flow.clone() }, declared.clock());
            }
        }
        self.flows.borrow_mut().import(&flows, class_of(self.classes), |_| [0; 2]);
        self.set_all(connections);
    }

    pub(super) fn export(&mut self, name: &str, to: &mut ElementState) {
        match to.group() {
            group if to.is_copy() => {
                to.declared.set(name, STATE, StateValue::Flows(self.declared(group)));
            }
            None => {
                let connections = std::mem::replace(&mut self.connections, Beside::new());
                let flows = self.flows.borrow_mut().hand_over();
                to.native = Some(Box::new(Whole(flows, connections, self.timeouts)));
            }
            Some(group) => {
                let mut flows = self.flows.borrow_mut();
                let numbers = flows.in_order().into_iter().map(|(number, _)| number);
                let numbers = numbers.filter(|&number| flows.group(number) == group);
                let connection = |number: u32| *self.connections.get(number);
                let all = numbers.map(|n| (flows.flow(n).key(0), connection(n))).collect();
                to.native = Some(Box::new(Group(flows.export_group(group), all)));
            }
        }
    }

    pub(super) fn import(&mut self, name: &str, from: &mut ElementState, now: u64) {
        if let Some(group) = from.take_native::<Group<A>>() {
            let Group(flows, connections) = *group;
            self.flows.borrow_mut().import_group(flows, now, class_of(self.classes));
            self.set_all(connections);
        } else if let Some(whole) = from.take_native::<Whole<A>>() {
            let Whole(handed_over, connections, timeouts) = *whole;
            let mut flows = self.flows.borrow_mut();
            flows.take_over(handed_over);
            self.connections = connections;
            if timeouts != self.timeouts {
                flows.change_timeouts();
            }
            self.classes = self.timeouts.all().map(|timeout| flows.class(timeout, 0));
        } else if let Some(StateValue::Flows(flows)) = from.declared.get(name, STATE) {
            self.restore(flows);
        }
    }
}

/// The class of a flow by its state.
fn class_of<A: Addresses>(classes: [u16; 3]) -> impl Fn(&FlowOf<A>) -> Option<u16> {
    move |flow| Some(classes[class(State::of(flow.state)?)])
}
