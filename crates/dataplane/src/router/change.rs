//! A router that takes the place of another.

use std::collections::{BTreeSet, HashMap};

use super::{Node, Router};
use elements::Element;
use elements::context::Context;
use elements::handover_state::Scope;
use elements::listing::Tuple;
use ir::Store;
use ir::model::StateKind;

use crate::change::{Distributed, Estate, Handover, Heirloom, Inventory, Keeper, Plan, TakenOver};
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
        let keeper = |node: &Node| {
            let model = node.cell.as_ref().map(|cell| cell.element.model()).unwrap_or_default();
            let flows = |kind: &StateKind| matches!(kind, StateKind::Flows { .. });
            let shares = model.state.iter().filter(|declared| flows(&declared.kind));
            let shares = shares.filter_map(|declared| declared.owner.clone()).next();
            let own = model.state.into_iter().filter(|declared| declared.owner.is_none());
            Keeper {
                name: node.name.clone(),
                class: node.class.clone(),
                config: node.config.clone(),
                state: own.map(|declared| (declared.name, declared.kind)).collect(),
                shares,
                starts_over: node.cell.as_ref().is_some_and(|cell| cell.element.starts_over()),
            }
        };
        Inventory { elements: self.nodes.elements().iter().map(keeper).collect() }
    }

    /// What each element has done, and what came to network functions.
    pub(crate) fn counts(&mut self) -> (Vec<ElementStats>, Vec<FunctionStats>) {
        self.nodes.tell_ways(&mut self.core);
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
        self.nodes.tell_ways(&mut self.core);
        self.nodes.follow_no_further(None, "the configuration changed");
        let arrivals = self.nodes.arrivals();
        let mut elements = Vec::new();
        let count = self.nodes.elements;
        for (node, packets) in self.nodes.nodes[..count].iter_mut().zip(arrivals.elements) {
            let Some(cell) = &mut node.cell else { continue };
            let (handover_state, tally) =
                (cell.element.hand_over(Scope::All), std::mem::take(&mut cell.tally));
            elements.push(Heirloom { name: node.name.clone(), tally, packets, handover_state });
        }
        let functions = self.nodes.functions.names().iter().cloned();
        let functions = functions.zip(arrivals.functions).collect();
        // What was given away natively is empty now, and costs nothing to write down.
        let state = self.state();
        let seed = self.core.rng.u64(..);
        let core = std::mem::replace(&mut self.core, elements::context::Core::new(seed));
        let (errors, load) = (self.nodes.errors, self.load);
        Handover { core, state, errors, load, elements, functions }
    }

    /// Packets that elements hold and that do not go along with their groups.
    pub fn holds_back(&self) -> usize {
        let cells = self.nodes.nodes.iter().filter_map(|node| node.cell.as_ref());
        cells.filter(|cell| !cell.element.parts_packets()).map(|cell| cell.element.held()).sum()
    }

    /// Gives elements declared state, and takes it from them again: flows in the groups that dispatch finds them in,
    /// and all else.
    pub fn distribute(&mut self, state: &Store, dispatch: &Dispatch) -> Distributed {
        self.set_state(state);
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
        let has_state = |name: &str| state.iter().any(|(owner, ..)| owner == name);
        let mut lost = 0;
        for node in self.nodes.elements().iter().filter(|node| has_state(&node.name)) {
            let flows = node.cell.as_ref().and_then(|cell| cell.element.flows());
            lost += flows.map_or(0, |flows| flows.borrow_mut().regroup(&mut group_of));
        }
        let mut give = |group| {
            let is_table =
                |name: &str, element: &dyn Element| has_state(name) && element.flows().is_some();
            (group, self.export_of(group, is_table))
        };
        let flows = groups.into_iter().map(&mut give).collect();
        let mut rest = self.state();
        rest.retain(|owner, name| state.get(owner, name).is_some());
        Distributed { flows, rest, lost }
    }

    /// Gives away what elements keep of a group ([`net::Packet::group`]); this router goes on with
    /// all else.
    pub fn export_group(&mut self, group: u16) -> Estate {
        self.export_of(group, |_, _| true)
    }

    fn export_of(&mut self, group: u16, is_meant: impl Fn(&str, &dyn Element) -> bool) -> Estate {
        self.nodes.settle(&mut self.core);
        let mut all = Vec::new();
        for node in 0..self.nodes.nodes.len() {
            let Node { cell: Some(cell), name, .. } = &mut self.nodes.nodes[node] else { continue };
            if !is_meant(name, &*cell.element) {
                continue;
            }
            let mut handover_state = cell.element.hand_over(Scope::Group(group));
            for packet in &mut handover_state.packets {
                self.nodes.let_go(&mut self.core, packet);
            }
            if handover_state.native.is_some() || !handover_state.packets.is_empty() {
                all.push((self.nodes.nodes[node].name.clone(), handover_state));
            }
        }
        Estate(all)
    }

    /// Takes in what the router of another worker, of the same chain, gave away.
    pub fn import_group(&mut self, estate: Estate) {
        self.core.now = self.clock.now();
        for (name, handover_state) in estate.0 {
            handover_state.packets.iter().for_each(|packet| self.core.pool.adopt(packet));
            match self.nodes.names.get(&name).copied() {
                Some(node) => {
                    let take = |element: &mut dyn Element, cx: &mut Context<'_>| {
                        element.take_over(handover_state, cx);
                    };
                    self.nodes.lend(&mut self.core, node, take);
                }
                None => {
                    handover_state
                        .packets
                        .into_iter()
                        .for_each(|packet| self.core.pool.recycle(packet));
                }
            }
        }
        self.nodes.deliver(&mut self.core);
    }

    /// Goes on where another router ended, as planned. To be called before this one runs.
    pub fn take_over(&mut self, from: Handover, plan: &Plan) -> TakenOver {
        let Handover { core, mut state, errors, load, elements, functions } = from;
        self.nodes.errors += errors;
        (self.core, self.load) = (core, load);
        plan.sift(&mut state);
        self.set_state(&state);
        let own = self.nodes.functions.names().iter().zip(&mut self.nodes.before.functions);
        for (name, before) in own {
            let of = functions.iter().find(|(function, _)| function == name);
            *before = of.map_or(0, |(_, packets)| *packets);
        }
        let mut done = TakenOver::default();
        for Heirloom { name, tally, packets, mut handover_state } in elements {
            let node = self.nodes.names.get(&name).copied().filter(|_| plan.keeps(&name));
            let Some(node) = node else {
                done.unclaimed += handover_state.packets.len() as u64;
                handover_state.packets.drain(..).for_each(|packet| self.core.pool.recycle(packet));
                continue;
            };
            self.nodes.before.elements[node] = packets;
            if let Some(cell) = &mut self.nodes.nodes[node].cell {
                cell.tally = tally;
            }
            if !plan.carries_flows(&name) {
                handover_state.native = None;
            }
            self.nodes
                .lend(&mut self.core, node, |element, cx| element.take_over(handover_state, cx));
            done.elements += 1;
        }
        // Packets that there is no room for any more leave where such packets leave.
        self.nodes.deliver(&mut self.core);
        done
    }
}
