//! Carrying a packet through the elements while a trace watches.

use std::cell::RefCell;

use elements::context::{Context, Core};
use ir::interp::{self, FlowEvent};
use ir::model::{Rule, StateKind};
use ir::program::interp::interpret;
use ir::state::Flow;
use ir::{NodeId, Port, Program, Reason, StateValue, Store};
use ir::{PrefixEntry, PrefixTable};
use net::{Batch, Packet};

use super::{Cell, Delivery, Nodes, StageContext, UNCONNECTED, drop_all};
use crate::trace::{Decision, Fate, Passage, Seen, Step, Steps, Trace, watched};

/// Visits of one packet that are watched; what goes round in circles is not watched for ever.
const MOST_VISITS: usize = 1000;
/// How often something is interpreted until all flows are known that it asks for.
const MOST_LOOKUPS: usize = 16;

impl StageContext<'_> {
    /// Carries packets to the end of their way, now.
    pub fn carry(&mut self, to: Port, batch: Batch) {
        self.nodes.aside(self.core, to, batch, |nodes, core| nodes.carry(core));
    }

    /// The same for one packet, by the elements' own code; tells what happened, and what programs
    /// would have done.
    pub fn follow(&mut self, to: Port, packet: Packet, programs: &[Program]) -> Vec<Step> {
        let trace = RefCell::new(Trace::default());
        trace.borrow_mut().phase = 1;
        let mut batch = self.core.batch();
        batch.push(packet);
        self.nodes.settle(self.core);
        self.nodes.aside(self.core, to, batch, |nodes, core| {
            nodes.carry_watched(core, &trace, programs);
        });
        trace.into_inner().steps
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
    /// Does something with a delivery alone on the stack.
    fn aside(
        &mut self,
        core: &mut Core,
        to: Port,
        batch: Batch,
        work: impl FnOnce(&mut Self, &mut Core),
    ) {
        if batch.is_empty() {
            return core.recycle_batch(batch);
        }
        let others = std::mem::take(&mut self.stack);
        self.stack.push(Delivery { to, batch, native: false });
        work(self, core);
        self.stack = others;
    }

    fn carry_watched(&mut self, core: &mut Core, trace: &RefCell<Trace>, programs: &[Program]) {
        for _ in 0..MOST_VISITS {
            let Some(Delivery { to, mut batch, .. }) = self.stack.pop() else { return };
            if batch.len() > 1 {
                let mut rest = core.batch();
                batch.split_to(1, &mut rest);
                self.stack.push(Delivery { to, batch: rest, native: false });
            }
            if to.node >= self.elements {
                let next = self.visit(core, to, batch, false);
                let next = next.map(|(to, batch)| Delivery { to, batch, native: false });
                self.stack.extend(next);
            } else if let Some(packet) = batch.pop() {
                core.recycle_batch(batch);
                self.visit_watched(core, trace, programs, to, packet);
            }
        }
        self.carry(core);
    }

    fn visit_watched(
        &mut self,
        core: &mut Core,
        trace: &RefCell<Trace>,
        programs: &[Program],
        to: Port,
        packet: Packet,
    ) {
        let passage = self.passage(core, trace, programs, to, &packet);
        let decisions = self.decisions(core, to, &packet);
        let Some(mut cell) = self.nodes[to.node].cell.take() else { return };
        let Cell { element, outputs, tally } = &mut *cell;
        let before = element.traffic();
        let mut cx = Context::new(core, tally, outputs, self, to.node);
        let first = trace.borrow().steps.len();
        let ((), stay) = watched(
            (&mut **element, to.node),
            trace,
            Some((to.port, packet)),
            &mut cx,
            |_, _, _| passage,
            |element, batch, cx| {
                decisions.into_iter().for_each(|decision| trace.borrow_mut().decided(decision));
                element.push(to.port, batch, cx);
            },
        );
        // What a sink took is outside, or will be.
        let after = element.traffic();
        if after.is_some_and(|after| !after.source) && self.nodes[to.node].to.is_empty() {
            let config = &self.nodes[to.node].config;
            let sent = before.map(|t| t.packets) < after.map(|t| t.packets);
            let mut trace = trace.borrow_mut();
            let outcomes = trace.steps[first..].iter_mut().flat_map(|step| &mut step.outcomes);
            for outcome in outcomes.filter(|o| sent && matches!(o.fate, Fate::Kept | Fate::UsedUp))
            {
                outcome.fate = Fate::Sent(config.clone());
            }
        }
        if stay.is_empty() {
            core.recycle_batch(stay);
        } else {
            match self.nodes[to.node].to.first().copied().flatten() {
                Some(to) => self.stack.push(Delivery { to, batch: stay, native: false }),
                None => drop_all(core, &mut cell.tally, stay, UNCONNECTED),
            }
        }
        self.collect(core, to.node, &mut cell);
        self.nodes[to.node].cell = Some(cell);
    }

    /// What the program that begins at an input would do with a packet that comes there.
    fn passage(
        &self,
        core: &mut Core,
        trace: &RefCell<Trace>,
        programs: &[Program],
        at: Port,
        packet: &Packet,
    ) -> Option<Passage> {
        let number = programs.iter().position(|program| program.entry == at)?;
        let (program, identity) = (&programs[number], packet.identity());
        if trace.borrow().is_inside(identity, at) {
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
            let through = &exit.ok()?.through;
            let mut learned = false;
            for (flows, key) in &steps.missed {
                let declared = declared.get(usize::from(flows.0));
                learned |= declared.is_some_and(|d| self.learn(&mut store, d, key, core.now));
            }
            if !learned {
                trace.borrow_mut().enter(identity, through);
                return Some(Passage { program: number, steps: steps.reached, after });
            }
        }
        None
    }

    /// What an element is about to decide about a packet, as its model says.
    fn decisions(&self, core: &mut Core, at: Port, packet: &Packet) -> Vec<Decision> {
        let node = &self.nodes[at.node];
        let Some(cell) = &node.cell else { return Vec::new() };
        let model = cell.element.model();
        let declared = model.state.iter().map(|state| {
            let owner = state.owner.as_deref().unwrap_or(&node.name);
            let id = self.names.get(owner).copied().unwrap_or(at.node);
            (id, owner, state.name, &state.kind)
        });
        let declared: Vec<Declared<'_>> = declared.collect();
        let mut store = self.known(&declared);
        for _ in 0..MOST_LOOKUPS {
            let (mut copy, mut states) = (core.pool.copy(packet), store.clone());
            let mut heard = Deciding { now: core.now, decisions: Vec::new(), missed: Vec::new() };
            let name = &node.name;
            let end = interp::interpret(&model, name, at.port, &mut copy, &mut states, &mut heard);
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
    fn known(&self, declared: &[Declared<'_>]) -> Store {
        let mut store = Store::new();
        for &(owner, name, state, kind) in declared {
            let element = self.nodes[owner].cell.as_ref().map(|cell| &cell.element);
            match element.filter(|element| element.flows().is_none()) {
                Some(element) if store.get(name, state).is_none() => {
                    element.export(name, &mut store);
                }
                Some(_) => {}
                None => store.set(name, state, StateValue::initial(kind)),
            }
        }
        store
    }

    /// Adds the flow of a key that was not known, if there is one; whether there was.
    fn learn(&self, store: &mut Store, declared: &Declared<'_>, key: &[u128], now: u64) -> bool {
        let &(owner, name, state, kind) = declared;
        let narrow: Option<Vec<u64>> = key.iter().map(|&n| u64::try_from(n).ok()).collect();
        let find = || {
            let flows = self.nodes[owner].cell.as_ref()?.element.flows()?;
            flows.borrow().find(&narrow?, now)
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
        let wide = |numbers: &[u64]| numbers.iter().map(|&n| u128::from(n)).collect::<Vec<_>>();
        // Nobody asks for the other direction, whose key is not known.
        let other = vec![u128::MAX, flows.len() as u128];
        let flow = Flow {
            keys: [key.to_vec(), other],
            values: [wide(&found.values), Vec::new()],
            common: wide(&found.common),
            expiry: found.expiry,
            guarantee: 0,
        };
        flows.insert(flow, now)
    }
}
