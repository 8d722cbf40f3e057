//! A world for the interpreter that remembers what happened.

use catena_ir as ir;
use ir::interp::{End, Environment, Fault, interpret};
use ir::model::Rule;
use ir::{Model, Reason, Store};
use net::{Packet, Pool};

pub(crate) struct World {
    pub(crate) pool: Pool,
    pub(crate) store: Store,
    pub(crate) seen: Seen,
}

/// What a model did to its surroundings, in order.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) now: u64,
    pub(crate) events: Vec<String>,
}

impl Environment for Seen {
    fn now(&self) -> u64 {
        self.now
    }

    fn random(&mut self, low: u64, high: u64) -> u64 {
        self.events.push(format!("random {low}..{high}"));
        high
    }

    fn emit_copy(&mut self, port: usize, packet: &Packet) {
        self.events.push(format!("copy to {port} of {:?}", packet.data()));
    }

    fn note(&mut self, reason: Reason) {
        self.events.push(format!("note {reason}"));
    }

    fn matched(&mut self, rule: Option<&Rule>) {
        self.events.push(format!("matched {}", rule.map_or("nothing", |r| &r.text)));
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self { pool: Pool::new(), store: Store::new(), seen: Seen { now: 1000, events: vec![] } }
    }

    /// Runs a model on input 0.
    pub(crate) fn run(&mut self, model: &Model, frame: &[u8]) -> Result<End, Fault> {
        let mut packet = self.pool.packet(frame);
        let end = self.run_on(model, &mut packet);
        self.pool.recycle(packet);
        end
    }

    pub(crate) fn run_on(&mut self, model: &Model, packet: &mut Packet) -> Result<End, Fault> {
        interpret(model, "e", 0, packet, &mut self.store, &mut self.seen)
    }
}
