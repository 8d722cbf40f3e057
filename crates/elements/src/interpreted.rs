//! Packets through the reference interpreter, in an element's place in a chain.

use ir::interp::{End, Environment, FlowEvent, interpret};
use ir::model::Rule;
use ir::{Model, PrefixEntry, PrefixTable, Reason, Store};
use net::{Batch, Packet};

use crate::context::Context;
use crate::element::Element;
use crate::element_state::ElementState;

/// A packet was lost to a model that is wrong.
const FAULT: Reason = Reason("model-fault");

/// Learns what a model decides.
pub trait Decisions {
    /// A rule of a list matched, or none.
    fn matched(&mut self, _rule: Option<&Rule>) {}
    /// A key was looked up in a table.
    fn looked_up(&mut self, _key: u128, _table: &PrefixTable, _entry: Option<&PrefixEntry>) {}
    /// A flow table was looked into or changed.
    fn flow(&mut self, _event: FlowEvent<'_>) {}
}

impl Decisions for () {}

struct Surroundings<'a, 'b> {
    cx: &'a mut Context<'b>,
    stay: &'a mut Batch,
    decisions: &'a mut dyn Decisions,
}

impl Environment for Surroundings<'_, '_> {
    fn now(&self) -> u64 {
        self.cx.now()
    }

    fn random(&mut self, low: u64, high: u64) -> u64 {
        self.cx.random(low, high)
    }

    fn emit_copy(&mut self, port: usize, packet: &Packet) {
        if port == 0 {
            // What stays is delivered last; what came before the copy must not be.
            self.cx.emit_all(0, self.stay);
        }
        let copy = self.cx.core.pool.copy(packet);
        self.cx.emit(port, copy);
    }

    fn note(&mut self, reason: Reason) {
        self.cx.tally.note(reason);
    }

    fn matched(&mut self, rule: Option<&Rule>) {
        self.decisions.matched(rule);
    }

    fn looked_up(&mut self, key: u128, table: &PrefixTable, entry: Option<&PrefixEntry>) {
        self.decisions.looked_up(key, table, entry);
    }

    fn flow(&mut self, event: FlowEvent<'_>) {
        self.decisions.flow(event);
    }
}

/// An element's model, and what it runs on.
pub struct Interpreter<'a> {
    /// The model.
    pub model: &'a Model,
    /// The name under which `store` has the element's own state.
    pub name: &'a str,
    /// The state that the model declares.
    pub store: &'a mut Store,
    /// Who learns what the model decides.
    pub decisions: &'a mut dyn Decisions,
}

impl Interpreter<'_> {
    /// Runs the model on a packet that came in on `port`. Packets for output 0 are added to `stay`.
    ///
    /// # Errors
    /// The packet as it came, and why, if the model leaves it to the element's native code.
    pub fn run(
        &mut self,
        port: usize,
        mut packet: Packet,
        stay: &mut Batch,
        cx: &mut Context<'_>,
    ) -> Result<(), (Packet, &'static str)> {
        let Self { model, name, store, decisions } = self;
        let mut surroundings = Surroundings { cx, stay, decisions: &mut **decisions };
        match interpret(model, name, port, &mut packet, store, &mut surroundings) {
            Ok(End::Emit(0)) if cx.outputs() > 0 => stay.push(packet),
            Ok(End::Emit(port)) => cx.emit(port, packet),
            Ok(End::Drop(reason)) => cx.drop(packet, reason),
            Ok(End::Opaque(why)) => return Err((packet, why)),
            Err(fault) => {
                cx.error(&fault.to_string());
                cx.drop(packet, FAULT);
            }
        }
        Ok(())
    }
}

/// [`Element::push`] of an element without code of its own.
pub(crate) fn push<E: Element + ?Sized>(
    element: &mut E,
    port: usize,
    batch: &mut Batch,
    cx: &mut Context<'_>,
) {
    let (model, mut store) = (element.model(), ElementState::copy_of(element, ""));
    let mut stay = cx.core.batch();
    let mut interpreter =
        Interpreter { model: &model, name: "", store: &mut store, decisions: &mut () };
    for packet in batch.drain() {
        if let Err((packet, why)) = interpreter.run(port, packet, &mut stay, cx) {
            cx.error(&format!("the model leaves packets to code that is not there: {why}"));
            cx.drop(packet, FAULT);
        }
    }
    element.import("", &mut ElementState::declared(store), cx.now());
    batch.append(&mut stay);
    cx.core.recycle_batch(stay);
}
