//! A router that replaces another.

use std::collections::{BTreeSet, HashMap};

use super::{Node, Router};
use elements::Element;
use elements::context::Context;
use elements::element_state::{ElementState, Scope, UNCLAIMED};
use elements::listing::Tuple;
use ir::Store;
use ir::model::StateKind;

use crate::change::{
    Declaration, Distributed, ElementCounts, Handover, HandoverState, Inventory, Plan, TakenOver,
};
use crate::io::Dispatch;
use crate::stats::{ElementStats, FunctionStats, Holding, Stats};

fn holding(element: &dyn Element) -> Holding {
    let flows = element.flows().map_or(0, |flows| flows.borrow().count());
    Holding { packets: element.held(), flows }
}

impl Router {
    /// What was done so far. Costs time in proportion to the number of elements, not of packets.
    pub fn stats(&mut self) -> Stats {
        // A worker that waits for packets has not looked at the clock for a while.
        let (now, load) = (self.time(), self.load());
        let ((elements, functions), latencies) = (self.counts(), self.latencies());
        let buffers = self.core().pool.outstanding();
        Stats { now, load, buffers, elements, functions, latencies }
    }

    /// What the elements may keep. It asks them for their models, which takes time: to be called
    /// before the router runs.
    pub fn inventory(&self) -> Inventory {
        let declaration = |node: &Node| {
            let model = node.cell.as_ref().map(|cell| cell.element.model()).unwrap_or_default();
            let flows = |kind: &StateKind| matches!(kind, StateKind::Flows { .. });
            let shares = model.state.iter().filter(|declared| flows(&declared.kind));
            let shares = shares.filter_map(|declared| declared.owner.clone()).next();
            let own = model.state.into_iter().filter(|declared| declared.owner.is_none());
            Declaration {
                name: node.name.clone(),
                class: node.class.clone(),
                config: node.config.to_string(),
                state: own.map(|declared| (declared.name, declared.kind)).collect(),
                shares,
                starts_over: node.cell.as_ref().is_some_and(|cell| cell.element.starts_over()),
            }
        };
        Inventory { elements: self.nodes.elements().iter().map(declaration).collect() }
    }

    /// What each element has done, and what came to network functions.
    pub(crate) fn counts(&mut self) -> (Vec<ElementStats>, Vec<FunctionStats>) {
        self.nodes.report_paths(&mut self.core);
        let arrivals = self.nodes.arrivals();
        let functions = self.nodes.functions.names().iter().zip(arrivals.functions);
        let functions =
            functions.map(|(name, packets)| FunctionStats { name: name.clone(), packets });
        let functions = functions.collect();
        let all =
            self.nodes.elements().iter().zip(arrivals.elements).filter_map(|(node, packets)| {
                let cell = node.cell.as_ref()?;
                let has_ports = node.inputs > 0 || !node.to.is_empty();
                let mut tally = cell.tally.lines().to_vec();
                tally.sort_unstable_by_key(|line| line.reason.0);
                Some(ElementStats {
                    name: node.name.clone(),
                    class: node.class.clone(),
                    packets: has_ports.then_some(packets),
                    traffic: cell.element.traffic(),
                    counter: cell.element.counted(),
                    tally,
                    holding: holding(&*cell.element),
                })
            });
        (all.collect(), functions)
    }

    /// What elements hold now: packets and flows.
    pub fn holdings(&self) -> HashMap<String, Holding> {
        let mut all = HashMap::new();
        for node in self.nodes.elements() {
            let Some(cell) = &node.cell else { continue };
            let holding = holding(&*cell.element);
            if holding != Holding::default() {
                all.insert(node.name.clone(), holding);
            }
        }
        all
    }

    /// How many packets of each group ([`net::Packet::group`]) are queued now.
    pub fn queued(&self) -> HashMap<u16, u64> {
        let mut all = HashMap::new();
        let cells = self.nodes.elements().iter().filter_map(|node| node.cell.as_ref());
        for cell in cells {
            cell.element.queued(&mut |packet| *all.entry(packet.group()).or_default() += 1);
        }
        all
    }

    /// Gives away everything that another router can go on with. This one must not run any more.
    pub fn hand_over(&mut self) -> Handover {
        self.nodes.deliver(&mut self.core);
        self.nodes.report_paths(&mut self.core);
        self.nodes.stop_tracing(None, "the configuration changed");
        let arrivals = self.nodes.arrivals();
        let count = self.nodes.elements;
        let mut elements = Vec::new();
        for (node, packets) in self.nodes.nodes[..count].iter_mut().zip(arrivals.elements) {
            let Some(cell) = &mut node.cell else { continue };
            let (name, tally) = (node.name.clone(), std::mem::take(&mut cell.tally));
            elements.push(ElementCounts { name, tally, packets });
        }
        let functions = self.nodes.functions.names().iter().cloned();
        let functions = functions.zip(arrivals.functions).collect();
        let state = self.export(Scope::All);
        let seed = self.core.rng.u64(..);
        let core = std::mem::replace(&mut self.core, elements::context::WorkerResources::new(seed));
        let (errors, load) = (self.nodes.errors, self.load);
        Handover { core, state, errors, load, elements, functions }
    }

    /// Packets that elements hold and that do not go along with their groups.
    pub fn holds_back(&self) -> usize {
        let cells = self.nodes.nodes.iter().filter_map(|node| node.cell.as_ref());
        cells.filter(|cell| !cell.element.parts_packets()).map(|cell| cell.element.held()).sum()
    }

    /// Gives elements declared state, and takes it from them again: flows in the groups that dispatch finds them in,
    /// and all else. Flows that `stay` are there again afterwards; otherwise what was there is gone.
    pub fn distribute(&mut self, state: &Store, stay: bool, dispatch: &Dispatch) -> Distributed {
        let has_state = |name: &str| state.iter().any(|(owner, ..)| owner == name);
        let is_table =
            |name: &str, element: &dyn Element| has_state(name) && element.flows().is_some();
        let own = stay.then(|| self.export_of(ElementState::new, Scope::All, is_table));
        self.import(HandoverState::declared(state.clone()));
        let (owned, pool) = (self.owned(), &mut self.core.pool);
        let mut groups = BTreeSet::new();
        let mut group_of = |flow: Option<([Tuple; 2], u8)>| {
            let mut of = |tuple: Tuple, protocol| {
                let packet = tuple.packet(protocol, pool);
                let group = dispatch.group_of(&packet, &owned);
                pool.recycle(packet);
                group
            };
            let group = match flow {
                _ if dispatch.groups() == 0 => 0,
                None => return None,
                Some(([there, back], protocol)) => {
                    let group = of(there, protocol);
                    (group == of(back, protocol)).then_some(group)?
                }
            };
            groups.insert(group);
            Some(group)
        };
        let mut lost = 0;
        for node in self.nodes.elements().iter().filter(|node| has_state(&node.name)) {
            let flows = node.cell.as_ref().and_then(|cell| cell.element.flows());
            lost += flows.map_or(0, |flows| flows.borrow_mut().regroup(&mut group_of));
        }
        let mut give =
            |group| (group, self.export_of(ElementState::new, Scope::Group(group), is_table));
        let flows = groups.into_iter().map(&mut give).collect();
        let mut rest = self.state();
        own.into_iter().for_each(|own| self.import(own));
        rest.retain(|owner, name| state.get(owner, name).is_some());
        Distributed { flows, rest, lost }
    }

    /// A copy of the declared state of all elements.
    pub fn state(&mut self) -> Store {
        self.copy(Scope::All)
    }

    /// A copy of the declared state of a scope.
    pub fn copy(&mut self, scope: Scope) -> Store {
        self.export_of(ElementState::copy, scope, |_, _| true).declared
    }

    /// What the elements keep of a scope: of everything, for the router that replaces this one, which must not run any
    /// more; of a group ([`net::Packet::group`]), for that of another worker, while this one goes on with all else.
    pub fn export(&mut self, scope: Scope) -> HandoverState {
        self.export_of(ElementState::new, scope, |_, _| true)
    }

    fn export_of(
        &mut self,
        asked: fn(Scope) -> ElementState,
        scope: Scope,
        is_meant: impl Fn(&str, &dyn Element) -> bool,
    ) -> HandoverState {
        self.nodes.settle(&mut self.core);
        let mut all = HandoverState::default();
        for node in 0..self.nodes.nodes.len() {
            let Node { cell: Some(cell), name, .. } = &mut self.nodes.nodes[node] else { continue };
            if !is_meant(name, &*cell.element) {
                continue;
            }
            let mut state = asked(scope);
            std::mem::swap(&mut state.declared, &mut all.declared);
            cell.element.export(name, &mut state);
            std::mem::swap(&mut state.declared, &mut all.declared);
            if state.is_empty() {
                continue;
            }
            let name = name.clone();
            if state.group().is_some() {
                state
                    .packets
                    .iter_mut()
                    .for_each(|packet| self.nodes.let_go(&mut self.core, packet));
            }
            all.elements.push((name, state));
        }
        all
    }

    /// Takes what [`Router::export`] of a router of the same chain gave: at any time, but for everything, which is
    /// taken before this one runs.
    pub fn import(&mut self, state: HandoverState) {
        self.core.now = self.clock.now();
        for (_, state) in state.elements.iter().filter(|(_, state)| state.group().is_some()) {
            state.packets.iter().for_each(|packet| self.core.pool.adopt(packet));
        }
        self.import_at(state);
    }

    /// The same, at the time that it is; gives the number of packets that no element has taken.
    fn import_at(&mut self, HandoverState { mut declared, elements }: HandoverState) -> u64 {
        self.nodes.settle(&mut self.core);
        let is_part = declared.iter().next().is_none();
        let mut elements: HashMap<String, ElementState> = elements.into_iter().collect();
        for node in 0..self.nodes.nodes.len() {
            let given = elements.remove(&self.nodes.nodes[node].name);
            if is_part && given.is_none() {
                continue;
            }
            let mut state = given.unwrap_or_else(|| ElementState::copy(Scope::All));
            std::mem::swap(&mut state.declared, &mut declared);
            let name = self.nodes.nodes[node].name.clone();
            let import = |element: &mut dyn Element, cx: &mut Context<'_>| {
                element.import(&name, &mut state, cx.now());
                state.refused.drain(..).for_each(|(packet, reason)| cx.drop(packet, reason));
                state.packets.drain(..).for_each(|packet| cx.drop(packet, UNCLAIMED));
            };
            self.nodes.lend(&mut self.core, node, import);
            std::mem::swap(&mut state.declared, &mut declared);
        }
        let unclaimed: Vec<_> = elements.into_values().flat_map(|state| state.packets).collect();
        let count = unclaimed.len() as u64;
        unclaimed.into_iter().for_each(|packet| self.core.pool.recycle(packet));
        // Packets that there is no room for leave where such packets leave.
        self.nodes.deliver(&mut self.core);
        count
    }

    /// Goes on where another router ended, as planned. To be called before this one runs.
    pub fn take_over(&mut self, from: Handover, plan: &Plan) -> TakenOver {
        let Handover { core, mut state, errors, load, elements, functions } = from;
        self.nodes.errors += errors;
        (self.core, self.load) = (core, load);
        let own = self.nodes.functions.names().iter().zip(&mut self.nodes.before.functions);
        for (name, before) in own {
            let of = functions.iter().find(|(function, _)| function == name);
            *before = of.map_or(0, |(_, packets)| *packets);
        }
        let mut done = TakenOver::default();
        for ElementCounts { name, tally, packets } in elements {
            let node = self.nodes.names.get(&name).copied().filter(|_| plan.keeps(&name));
            let Some(node) = node else { continue };
            self.nodes.before.elements[node] = packets;
            if let Some(cell) = &mut self.nodes.nodes[node].cell {
                cell.tally = tally;
            }
            done.elements += 1;
        }
        let gone = plan.sift(&mut state);
        done.unclaimed = gone.len() as u64 + self.import_at(state);
        gone.into_iter().for_each(|packet| self.core.pool.recycle(packet));
        done
    }
}
