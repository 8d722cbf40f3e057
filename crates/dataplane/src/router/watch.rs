//! Tracing packets through the elements: what each was given, what it decided, and what became of
//! the packets, also of those that wait in elements.
//!
//! A packet that is traced carries a trace id. While there are any, whatever an element emitted or
//! gave back is looked at after it has worked.

use std::collections::BTreeMap;
use std::sync::Arc;

use elements::context::{Services, Tally, WorkerResources};
use elements::element::Traffic;
use elements::element_state::{ElementState, Scope};
use ir::interp::{self, FlowEvent};
use ir::model::{Rule, StateKind};
use ir::program::interp::interpret;
use ir::state::Flow;
use ir::{NodeId, Port, PrefixEntry, PrefixTable, Reason, StateValue, Store};
use net::{Batch, Packet};

use super::{Cell, Delivery, Nodes, StageContext, Taker};
use crate::trace::{Decision, Fate, Journey, Passage, Seen, Steps, grown};

/// Packets that are traced at a time; more are not begun with.
const MOST_JOURNEYS: usize = 256;
/// Nanoseconds after which a packet that waits is not traced any further.
const LONGEST: u64 = 10_000_000_000;
/// Packets that an element gives back while it works, at most; some more than a burst.
const MOST_BACK: usize = 512;
/// How often something is interpreted until all flows are known that it asks for.
const MOST_LOOKUPS: usize = 16;

const WAITED: &str = "it waited for 10 s";
const MOVED: &str = "its traffic went to another worker";

/// The packets that are traced, by their trace ids.
pub(super) type Journeys = BTreeMap<u16, Journey>;

/// What was so before an element worked.
pub(super) struct Before {
    tally: Tally,
    traffic: Option<Traffic>,
    /// The trace id of the packet that is pushed.
    pushed: Option<u16>,
}

impl StageContext<'_> {
    /// Carries packets to the end of their path, now.
    pub fn carry(&mut self, to: Port, batch: Batch) {
        self.nodes.aside(self.core, to, batch);
    }

    /// Whether another packet can be traced.
    pub(crate) fn can_trace(&self) -> bool {
        self.nodes.journeys.len() < MOST_JOURNEYS
    }

    /// Whether a packet is traced already.
    pub(crate) fn is_traced(&self, packet: &Packet) -> bool {
        self.nodes.journeys.contains_key(&packet.trace_id())
    }

    /// Carries a packet to the end of its path or to where it waits, by the elements' native code, and
    /// follows it from there on, too.
    pub(crate) fn begin_trace(&mut self, to: Port, mut packet: Packet, mut journey: Journey) {
        let trace_id = self.core.pool.fresh_trace_id();
        packet.set_trace_id(trace_id);
        journey.begin(&packet, self.core.now);
        self.nodes.wake_at(journey.tap, self.core.now + LONGEST);
        self.nodes.journeys.insert(trace_id, journey);
        let mut batch = self.core.batch();
        batch.push(packet);
        self.carry(to, batch);
    }
}

/// Hears what a model decides.
struct Deciding {
    now: u64,
    decisions: Vec<Decision>,
    missed: Vec<Vec<u128>>,
}

impl interp::Environment for Deciding {
    fn now(&self) -> u64 {
        self.now
    }

    fn random(&mut self, low: u64, _: u64) -> u64 {
        low
    }

    fn emit_copy(&mut self, _: usize, _: &Packet) {}

    fn note(&mut self, _: Reason) {}

    fn matched(&mut self, rule: Option<&Rule>) {
        self.decisions.push(Decision::matched(rule));
    }

    fn looked_up(&mut self, key: u128, table: &PrefixTable, entry: Option<&PrefixEntry>) {
        self.decisions.push(Decision::looked_up(key, table.width(), entry));
    }

    fn flow(&mut self, event: FlowEvent<'_>) {
        if let FlowEvent::Missed(key) = event {
            self.missed.push(key.to_vec());
        }
        self.decisions.push(Decision::flow(event));
    }
}

/// Declared state: owner, its name, the state's name, what it is.
type Declared<'a> = (NodeId, &'a str, &'static str, &'a StateKind);

impl Nodes {
    /// Carries a delivery to the end of its path, alone on the stack.
    fn aside(&mut self, core: &mut WorkerResources, to: Port, batch: Batch) {
        if batch.is_empty() {
            return core.recycle_batch(batch);
        }
        let (others, before) = (std::mem::take(&mut self.stack), self.loops);
        self.stack.push(Delivery { to, batch, taker: Taker::Stage, loops: before.now });
        self.carry(core);
        (self.stack, self.loops) = (others, before);
    }

    /// What to carry on of a batch while packets are traced: those that are come alone, to
    /// the element's native code, and the others before and behind them wait for their turn. Whether
    /// the element's native code must take what is left in the batch.
    pub(super) fn single_out(
        &mut self,
        core: &mut WorkerResources,
        to: Port,
        batch: &mut Batch,
        taker: Taker,
    ) -> Taker {
        let expected = |packet: &Packet| {
            self.journeys.get(&packet.trace_id()).is_some_and(|journey| journey.expects(packet))
        };
        let Some(first) = batch.iter().position(expected).filter(|_| to.node < self.elements)
        else {
            return taker;
        };
        let mut rest = core.batch();
        batch.split_to(first.max(1), &mut rest);
        match rest.is_empty() {
            true => core.recycle_batch(rest),
            false => {
                let loops = self.loops.now;
                self.stack.push(Delivery { to, batch: rest, taker, loops });
            }
        }
        if first == 0 {
            self.settle(core);
            batch.iter().for_each(|packet| self.arrive(core, to, packet));
        }
        if first == 0 { Taker::Element } else { taker }
    }

    /// Notes that a packet that is traced comes to an element.
    fn arrive(&mut self, core: &mut WorkerResources, to: Port, packet: &Packet) {
        let decisions = self.decisions(core, to, packet);
        let trace_id = packet.trace_id();
        let passage = self.passage(core, trace_id, to, packet);
        if let Some(journey) = self.journeys.get_mut(&trace_id) {
            let step = journey.arrive(to.node, Some(to.port), packet, core.now);
            journey.about(step, passage, decisions);
        }
    }

    /// Notes that an element pulled a packet, if that is traced.
    #[cold]
    pub(super) fn pulled(&mut self, core: &WorkerResources, node: NodeId, packet: &Packet) {
        if node < self.elements
            && let Some(journey) = self.journeys.get_mut(&packet.trace_id())
            && journey.expects(packet)
        {
            journey.arrive(node, None, packet, core.now);
        }
    }

    /// What to tell [`Nodes::look_back`], if packets are traced.
    #[inline]
    pub(super) fn look_at(&self, cell: &Cell, batch: Option<&Batch>) -> Option<Box<Before>> {
        if self.journeys.is_empty() {
            return None;
        }
        let pushed = batch.filter(|batch| batch.len() == 1).and_then(|batch| batch.iter().next());
        let pushed =
            pushed.map(Packet::trace_id).filter(|trace_id| self.journeys.contains_key(trace_id));
        let (tally, traffic) = (cell.tally.clone(), cell.element.traffic());
        Some(Box::new(Before { tally, traffic, pushed }))
    }

    /// Looks what an element that has worked did with packets that are traced. `also` are
    /// packets that leave besides those that it emitted, and by which output.
    #[cold]
    pub(super) fn look_back<'a>(
        &mut self,
        core: &mut WorkerResources,
        node: NodeId,
        cell: &'a mut Cell,
        also: impl Iterator<Item = (usize, &'a mut Packet)>,
        before: &Before,
    ) {
        if node >= self.elements {
            return;
        }
        let Cell { element, outputs, tally } = cell;
        let emitted = outputs.iter_mut();
        let emitted = emitted.flat_map(|(port, batch)| batch.iter_mut().map(move |p| (port, p)));
        for (port, packet) in emitted.chain(also) {
            if packet.trace_id() == 0
                && let Some(trace_id) = before.pushed
            {
                packet.set_trace_id(trace_id);
            }
            if let Some(journey) = self.journeys.get_mut(&packet.trace_id()) {
                let is_connected = self.nodes[node].to.get(port).is_some_and(Option::is_some);
                journey.leave(Port { node, port }, packet, is_connected, core.now);
            }
        }
        let lost = grown(&before.tally, tally);
        let mut drops = lost
            .iter()
            .flat_map(|(line, dropped, _)| std::iter::repeat_n(line.reason, *dropped as usize));
        let traffic = element.traffic().filter(|t| !t.source && self.nodes[node].to.is_empty());
        let sent = traffic.is_some_and(|t| before.traffic.map(|t| t.packets) < Some(t.packets));
        for (trace_id, journey) in &mut self.journeys {
            for identity in journey.in_element(node) {
                let is_back = core.pool.came_back(identity, MOST_BACK);
                // What a device took is outside, or will be.
                let is_sent = sent && (is_back || element.held() == 0);
                let fate = match is_back.then(|| drops.next()).flatten() {
                    Some(reason) => Fate::Dropped(reason),
                    None if is_sent => Fate::Sent(self.nodes[node].config.to_string()),
                    None if is_back => Fate::UsedUp,
                    None => {
                        journey.keep(identity);
                        continue;
                    }
                };
                journey.end(identity, node, fate, core.now);
            }
            if before.pushed == Some(*trace_id) {
                let notes = lost
                    .iter()
                    .flat_map(|(line, _, noted)| std::iter::repeat_n(line.reason, *noted as usize));
                journey.note(node, notes.collect());
            }
        }
        self.tell(|_, journey| match journey.goes_too_far() {
            None => journey.is_over().then_some(None),
            circles => Some(circles),
        });
    }

    /// Stops tracing packets whose journeys are over, and tells of them: `is_over` yields
    /// why, if that is not that they were traced to their end.
    fn tell(&mut self, is_over: impl Fn(u16, &Journey) -> Option<Option<&'static str>>) {
        let all = self.journeys.iter();
        let over: Vec<_> =
            all.filter_map(|(&trace_id, j)| Some((trace_id, is_over(trace_id, j)?))).collect();
        for (trace_id, why) in over {
            let Some(journey) = self.journeys.remove(&trace_id) else { continue };
            if self.journeys.values().all(|other| other.tap != journey.tap) {
                self.silence(journey.tap);
            }
            journey.tell(why);
        }
    }

    /// Stops tracing packets that were begun with at a tap, or any.
    pub(super) fn stop_tracing(&mut self, tap: Option<NodeId>, why: &'static str) {
        self.tell(|_, j| tap.is_none_or(|tap| j.tap == tap).then_some(Some(why)));
    }

    /// Stops tracing a packet that goes to another worker.
    pub(super) fn let_go(&mut self, core: &mut WorkerResources, packet: &mut Packet) {
        let gone = packet.trace_id();
        packet.set_trace_id(0);
        self.tell(|trace_id, _| (trace_id == gone).then_some(Some(MOVED)));
        core.pool.let_go();
    }

    /// Stops tracing packets that have waited long since they came by a tap.
    pub(super) fn stop_old_traces(&mut self, core: &WorkerResources, tap: NodeId) {
        let now = core.now;
        let late = |journey: &Journey| journey.tap == tap && journey.began + LONGEST <= now;
        self.tell(|_, journey| late(journey).then_some(Some(WAITED)));
        let next = self.journeys.values().filter(|j| j.tap == tap).map(|j| j.began).min();
        if let Some(began) = next {
            self.wake_at(tap, began + LONGEST);
        }
    }

    /// What the program that begins at an input would do with a packet that comes there.
    fn passage(
        &mut self,
        core: &mut WorkerResources,
        trace_id: u16,
        at: Port,
        packet: &Packet,
    ) -> Option<Passage> {
        let journey = self.journeys.get(&trace_id)?;
        let programs = Arc::clone(&journey.programs);
        let number = programs.iter().position(|program| program.entry == at)?;
        let (program, identity) = (&programs[number], packet.identity());
        if journey.trace.is_inside(identity, at) {
            return None;
        }
        let declared = program.state.iter().map(|state| {
            let owner = self.names.get(&state.owner).copied().unwrap_or(state.element);
            (owner, state.owner.as_str(), state.name, &state.kind)
        });
        let declared: Vec<Declared<'_>> = declared.collect();
        let mut store = self.known(&declared);
        for _ in 0..MOST_LOOKUPS {
            let (mut copy, mut states) = (core.pool.copy(packet), store.clone());
            let mut steps = Steps::new(core.now);
            let exit = interpret(program, &mut copy, &mut states, &mut steps);
            let after = Seen::of(&copy);
            core.pool.recycle(copy);
            let visited = &exit.ok()?.visited;
            let mut learned = false;
            for (flows, key) in &steps.missed {
                let declared = declared.get(usize::from(flows.0));
                learned |= declared.is_some_and(|d| self.learn(&mut store, d, key, core.now));
            }
            if !learned {
                self.journeys.get_mut(&trace_id)?.trace.enter(identity, visited);
                return Some(Passage { program: number, steps: steps.reached, after });
            }
        }
        None
    }

    /// What an element is about to decide about a packet, as its model says.
    fn decisions(
        &mut self,
        core: &mut WorkerResources,
        at: Port,
        packet: &Packet,
    ) -> Vec<Decision> {
        let node = &self.nodes[at.node];
        let Some(cell) = &node.cell else { return Vec::new() };
        let (model, name) = (cell.element.model(), node.name.clone());
        let declared = model.state.iter().map(|state| {
            let owner = state.owner.as_deref().unwrap_or(&name);
            let id = self.names.get(owner).copied().unwrap_or(at.node);
            (id, owner, state.name, &state.kind)
        });
        let declared: Vec<Declared<'_>> = declared.collect();
        let mut store = self.known(&declared);
        for _ in 0..MOST_LOOKUPS {
            let (mut copy, mut states) = (core.pool.copy(packet), store.clone());
            let mut heard = Deciding { now: core.now, decisions: Vec::new(), missed: Vec::new() };
            let end = interp::interpret(&model, &name, at.port, &mut copy, &mut states, &mut heard);
            core.pool.recycle(copy);
            let mut learned = false;
            for key in &heard.missed {
                for declared in &declared {
                    learned |= self.learn(&mut store, declared, key, core.now);
                }
            }
            if !learned {
                if let Ok(interp::End::Opaque(why)) = end {
                    heard.decisions.push(Decision::Opaque(why));
                }
                return heard.decisions;
            }
        }
        Vec::new()
    }

    /// Declared state, but for flows: those are too many, and asked for one by one.
    fn known(&mut self, declared: &[Declared<'_>]) -> Store {
        let mut known = ElementState::copy(Scope::All);
        for &(owner, name, state, kind) in declared {
            let element = self.nodes[owner].cell.as_mut().map(|cell| &mut cell.element);
            match element.filter(|element| element.flows().is_none()) {
                Some(element) if known.declared.get(name, state).is_none() => {
                    element.export(name, &mut known);
                }
                Some(_) => {}
                None => known.declared.set(name, state, StateValue::initial(kind)),
            }
        }
        known.declared
    }

    /// Adds the flow of a key that was not known, if there is one; whether there was.
    fn learn(&self, store: &mut Store, declared: &Declared<'_>, key: &[u128], now: u64) -> bool {
        let &(owner, name, state, kind) = declared;
        let find = || {
            let flows = self.nodes[owner].cell.as_ref()?.element.flows()?;
            flows.borrow().find(key, now)
        };
        let (StateKind::Flows { .. }, Some(StateValue::Flows(flows))) =
            (kind, store.get_mut(name, state))
        else {
            return false;
        };
        if flows.find(key, now).is_some() {
            return false;
        }
        let Some(found) = find() else { return false };
        // Nobody asks for the other direction, whose key is not known.
        let other = vec![u128::MAX, flows.len() as u128];
        let flow = Flow {
            keys: [key.to_vec(), other],
            values: [found.values.to_vec(), Vec::new()],
            common: found.common.to_vec(),
            expiry: found.expiry,
            guarantee: 0,
        };
        flows.insert(flow, now)
    }
}
