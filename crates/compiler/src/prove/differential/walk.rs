//! A packet's way from element to element, or from program to program.

use std::collections::{HashMap, HashSet};

use ir::interp::{self, interpret};
use ir::model::Reason;
use ir::program::{self, StepId};
use ir::state::StateValue;
use ir::{Graph, Model, NodeId, Port, Program, Store};
use net::{Packet, Pool};

use super::{Arrival, Subject};
use crate::prove::witness::{Random, Witness};
use crate::prove::{Fate, Held, Observation, Queue, observe};

/// Elements that one packet and its copies may visit, besides each of the chain once.
const MAX_VISITS: usize = 4096;
/// Packets that visited more.
pub(super) const LOOP: Reason = Reason("loop");
const UNCONNECTED: Reason = Reason("unconnected-output");
const NO_PORT: Reason = Reason("no-such-port");

/// A chain with its state.
pub struct Walk<'a> {
    graph: &'a Graph,
    models: &'a [Model],
    programs: HashMap<Port, &'a Program>,
    /// Where each output port leads.
    to: HashMap<Port, Port>,
    store: Store,
    pool: Pool,
    /// Exits that packets came to, by their program's entry.
    exits: HashSet<(Port, StepId)>,
    packets: u64,
}

/// What a walk notes on the way.
struct Notes<'a> {
    graph: &'a Graph,
    now: u64,
    random: Random,
    notes: Vec<(String, Reason)>,
    /// Copies and the ports that they leave on.
    copies: Vec<(usize, Packet)>,
    pool: &'a mut Pool,
    element: NodeId,
    step: StepId,
}

impl interp::Environment for Notes<'_> {
    fn now(&self) -> u64 {
        self.now
    }

    fn random(&mut self, low: u64, high: u64) -> u64 {
        match (high - low).checked_add(1) {
            Some(count) => low + self.random.next() % count,
            None => self.random.next(),
        }
    }

    fn emit_copy(&mut self, port: usize, packet: &Packet) {
        self.copies.push((port, self.pool.copy(packet)));
    }

    fn note(&mut self, reason: Reason) {
        self.notes.push((self.graph.nodes[self.element].name.clone(), reason));
    }
}

impl program::interp::Environment for Notes<'_> {
    fn now(&self) -> u64 {
        self.now
    }

    fn note(&mut self, element: NodeId, reason: Reason) {
        self.notes.push((self.graph.nodes[element].name.clone(), reason));
    }

    fn reached(&mut self, step: StepId) {
        self.step = step;
    }
}

impl<'a> Walk<'a> {
    /// A chain in its first state. Packets go through programs where there are some.
    pub fn new(subject: &Subject<'a>) -> Self {
        let mut store = subject.state.clone();
        for (model, node) in subject.models.iter().zip(&subject.graph.nodes) {
            for declared in &model.state {
                store.entry(&node.name, declared);
            }
        }
        Self {
            graph: subject.graph,
            models: subject.models,
            programs: subject.programs.iter().map(|p| (p.entry, p)).collect(),
            to: subject.graph.edges.iter().map(|e| (e.from, e.to)).collect(),
            store,
            pool: Pool::new(),
            exits: HashSet::new(),
            packets: 0,
        }
    }

    /// The exits that packets came to.
    pub fn exits(&self) -> impl Iterator<Item = &(Port, StepId)> {
        self.exits.iter()
    }

    /// The state.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// State as it is compared.
    pub fn state(&self) -> Vec<(String, String, StateValue)> {
        observe::state_of(&self.store)
    }

    /// Puts flows into its tables.
    pub fn hold(&mut self, flows: &[Held], now: u64) {
        observe::hold(&mut self.store, flows, now);
    }

    fn name(&self, node: NodeId) -> String {
        self.graph.nodes[node].name.clone()
    }

    /// Takes a packet on its way until it is gone or its code is the element's own.
    pub fn step(&mut self, arrival: &Arrival) -> Observation {
        let mut seen = Observation {
            fates: Vec::new(),
            notes: Vec::new(),
            state: Vec::new(),
            visited: Vec::new(),
        };
        self.packets += 1;
        // Fresh buffers: what lies around a packet must not come from another.
        self.pool = Pool::new();
        let mut random = Random(self.packets);
        // Whether the element's own code must take it.
        let mut waiting = vec![(arrival.at, arrival.packet.packet(&mut self.pool), false)];
        let mut visits = 0;
        let now = arrival.packet.now;
        while let Some((at, mut packet, native)) = waiting.pop() {
            if visits > MAX_VISITS + self.graph.nodes.len() {
                seen.fates.push(self.dropped(at.node, LOOP, packet.len()));
                self.pool.recycle(packet);
                continue;
            }
            let mut notes = Notes {
                graph: self.graph,
                now,
                random: random.clone(),
                notes: Vec::new(),
                copies: Vec::new(),
                pool: &mut self.pool,
                element: at.node,
                step: StepId(0),
            };
            let program = self.programs.get(&at).filter(|_| !native).copied();
            if let Some(program) = program {
                let result =
                    program::interp::interpret(program, &mut packet, &mut self.store, &mut notes);
                seen.notes.append(&mut notes.notes);
                let step = notes.step;
                self.exits.insert((at, step));
                match result {
                    Err(fault) => {
                        seen.fates.push(Fate::Fault(fault.to_string()));
                        self.pool.recycle(packet);
                    }
                    Ok(exit) => {
                        // A wrong program may lead nowhere for ever.
                        visits += exit.visited.len().max(1);
                        let visited = exit.visited.iter().map(|p| (self.name(p.node), p.port));
                        seen.visited.extend(visited);
                        match exit.end {
                            program::End::Push { to, native } => {
                                waiting.push((to, packet, native));
                            }
                            program::End::Drop { element, reason } => {
                                seen.fates.push(self.dropped(element, reason, packet.len()));
                                self.pool.recycle(packet);
                            }
                            program::End::Handoff { .. } => waiting.push((at, packet, true)),
                        }
                    }
                }
                continue;
            }
            visits += 1;
            let name = &self.graph.nodes[at.node].name;
            let model = &self.models[at.node];
            let end = interpret(model, name, at.port, &mut packet, &mut self.store, &mut notes);
            let (mut noted, copies) =
                (std::mem::take(&mut notes.notes), std::mem::take(&mut notes.copies));
            random = notes.random;
            seen.notes.append(&mut noted);
            seen.visited.push((self.name(at.node), at.port));
            let mut leaving: Vec<(usize, Packet)> = copies;
            match end {
                Err(fault) => {
                    seen.fates.push(Fate::Fault(fault.to_string()));
                    self.pool.recycle(packet);
                }
                Ok(interp::End::Drop(reason)) => {
                    seen.fates.push(self.dropped(at.node, reason, packet.len()));
                    self.pool.recycle(packet);
                }
                Ok(interp::End::Opaque(_)) => {
                    let queue = Queue { element: self.name(at.node), port: at.port, native: true };
                    seen.fates.push(Fate::Arrived(queue, Box::new(Witness::of(&packet, now))));
                    self.pool.recycle(packet);
                }
                Ok(interp::End::Emit(port)) => leaving.push((port, packet)),
            }
            // What is emitted first goes on first.
            for (port, packet) in leaving.into_iter().rev() {
                let from = Port { node: at.node, port };
                if let Some(&to) = self.to.get(&from) {
                    waiting.push((to, packet, false));
                    continue;
                }
                let known = port < self.graph.nodes[at.node].outputs.len();
                let reason = if known { UNCONNECTED } else { NO_PORT };
                seen.fates.push(self.dropped(at.node, reason, packet.len()));
                self.pool.recycle(packet);
            }
        }
        seen.visited.sort();
        seen.notes.sort();
        seen
    }

    fn dropped(&self, node: NodeId, reason: Reason, length: usize) -> Fate {
        Fate::Dropped(self.name(node), reason, length)
    }
}
