//! A packet's path from element to element, or from program to program.

use std::collections::{HashMap, HashSet};

use ir::interp::{self, interpret};
use ir::model::Reason;
use ir::program::{self, Exit, StepId};
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

/// What is next for a packet.
enum Next {
    /// It comes to an input; perhaps the element's native code must take it.
    Comes { native: bool },
    /// It is dropped at the element.
    Dropped(Reason),
}

/// What a walk notes on the path.
struct Notes<'a> {
    graph: &'a Graph,
    now: u64,
    random: Random,
    notes: Vec<(String, Reason)>,
    /// Copies and the ports that they leave on.
    copies: Vec<(usize, Packet)>,
    /// Copies that a program made, with their exits.
    left: Vec<(Exit, Packet)>,
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

    fn copy(&mut self, packet: &Packet) -> Packet {
        self.pool.copy(packet)
    }

    fn copied(&mut self, exit: &Exit, copy: Packet) {
        self.left.push((exit.clone(), copy));
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

    /// Takes a packet along its path until it is gone or its code is the element's own.
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
        let first = arrival.packet.packet(&mut self.pool);
        let mut waiting = vec![(arrival.at, first, Next::Comes { native: false })];
        let mut visits = 0;
        let now = arrival.packet.now;
        while let Some((at, mut packet, next)) = waiting.pop() {
            let native = match next {
                Next::Comes { native } => native,
                Next::Dropped(reason) => {
                    seen.fates.push(self.dropped(at.node, reason, packet.len()));
                    self.pool.recycle(packet);
                    continue;
                }
            };
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
                left: Vec::new(),
                pool: &mut self.pool,
                element: at.node,
                step: StepId(0),
            };
            let program = self.programs.get(&at).filter(|_| !native).copied();
            if let Some(program) = program {
                let result =
                    program::interp::interpret(program, &mut packet, &mut self.store, &mut notes);
                seen.notes.append(&mut notes.notes);
                let (step, mut leaving) = (notes.step, std::mem::take(&mut notes.left));
                self.exits.insert((at, step));
                match result {
                    Err(fault) => {
                        seen.fates.push(Fate::Fault(fault.to_string()));
                        self.pool.recycle(packet);
                    }
                    Ok(exit) => {
                        // The path of a copy begins where the packet's own was already.
                        let own = exit.visited.iter();
                        let all =
                            own.chain(exit.copies.iter().flat_map(|c| c.visited.iter().skip(1)));
                        let all: Vec<_> = all.map(|p| (self.name(p.node), p.port)).collect();
                        // A wrong program may lead nowhere for ever.
                        visits += all.len().max(1);
                        seen.visited.extend(all);
                        leaving.push((Exit { copies: Vec::new(), ..exit.clone() }, packet));
                        // What leaves first goes on first.
                        waiting.extend(leaving.into_iter().rev().map(
                            |(exit, packet)| match exit.end {
                                program::End::Push { to, native } => {
                                    (to, packet, Next::Comes { native })
                                }
                                program::End::Drop { element, reason } => {
                                    (Port { node: element, port: 0 }, packet, Next::Dropped(reason))
                                }
                                program::End::Handoff { .. } => {
                                    (at, packet, Next::Comes { native: true })
                                }
                            },
                        ));
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
                let known = port < self.graph.nodes[at.node].outputs.len();
                let reason = if known { UNCONNECTED } else { NO_PORT };
                waiting.push(match self.to.get(&from) {
                    Some(&to) => (to, packet, Next::Comes { native: false }),
                    None => (from, packet, Next::Dropped(reason)),
                });
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
