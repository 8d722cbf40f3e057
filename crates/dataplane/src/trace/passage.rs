//! What a synthesised program would do with a packet that elements are about to process.

use std::collections::HashSet;

use elements::context::Context;
use ir::program::interp::{Environment, interpret};
use ir::program::{StateId, StepId};
use ir::{NodeId, Port, Program, Reason};
use net::Packet;

use super::{Seen, Trace};

/// A packet's path through a program. The program is only asked: elements process the packet.
#[derive(Clone, Debug)]
pub struct Passage {
    /// The program, as an index into those that the trace was given.
    pub program: usize,
    /// The steps that it came to; the last is an exit.
    pub steps: Vec<StepId>,
    /// The packet behind the exit. If it is dropped there, nothing was written to it.
    pub after: Seen,
}

/// Hears which steps a packet comes to, and what was not known there.
pub(crate) struct Steps {
    pub(crate) now: u64,
    pub(crate) reached: Vec<StepId>,
    pub(crate) missed: Vec<(StateId, Vec<u128>)>,
}

impl Steps {
    pub(crate) fn new(now: u64) -> Self {
        Self { now, reached: Vec::new(), missed: Vec::new() }
    }
}

impl Environment for Steps {
    fn now(&self) -> u64 {
        self.now
    }

    fn note(&mut self, _: NodeId, _: Reason) {}

    fn reached(&mut self, step: StepId) {
        self.reached.push(step);
    }

    fn missed(&mut self, flows: StateId, key: &[u128]) {
        self.missed.push((flows, key.to_vec()));
    }
}

impl Trace {
    /// Gives it the programs that the chain became.
    pub fn set_programs(&mut self, programs: Vec<Program>) {
        self.programs = programs.into();
    }

    /// Whether a packet comes to an input in the middle of a program that was asked about it.
    pub(crate) fn is_inside(&self, identity: usize, at: Port) -> bool {
        let within = self.inside.get(&identity);
        within.is_some_and(|(phase, ports)| *phase == self.phase && ports.contains(&at))
    }

    /// A program was asked about a packet that it takes through these inputs.
    pub(crate) fn enter(&mut self, identity: usize, visited: &[Port]) {
        let ports: HashSet<Port> = visited.iter().copied().collect();
        self.inside.insert(identity, (self.phase, ports));
    }

    /// Asks the program that begins at an input what becomes of a packet that comes there, unless
    /// it comes there in the middle of another.
    pub(super) fn pass(
        &mut self,
        at: Port,
        packet: &Packet,
        cx: &mut Context<'_>,
    ) -> Option<Passage> {
        let number = self.programs.iter().position(|p| p.entry == at)?;
        let identity = packet.identity();
        if self.is_inside(identity, at) {
            return None;
        }
        let programs = std::rc::Rc::clone(&self.programs);
        let store = self.store.clone()?;
        // Both are copies: the elements change the originals.
        let mut store = store.borrow().clone();
        let mut copy = cx.core.pool.copy(packet);
        let mut steps = Steps::new(cx.now());
        let exit = interpret(&programs[number], &mut copy, &mut store, &mut steps);
        let passage = exit.ok().map(|exit| {
            self.enter(identity, &exit.visited);
            Passage { program: number, steps: steps.reached, after: Seen::of(&copy) }
        });
        cx.core.pool.recycle(copy);
        passage
    }
}
