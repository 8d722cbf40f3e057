//! An element executed by interpreting its model: the reference that native code is held to.

use std::cell::RefCell;
use std::rc::Rc;

use elements::Element;
use elements::configure::{Failed, Initialize};
use elements::context::Context;
use elements::device::{ControlSocketRequest, OwnedPorts, Wake};
use elements::element::{Handler, HandlerCalls, HandlerContext, NamedHandler, Traffic, Work};
use elements::element_state::ElementState;
use elements::interpreted::{Decisions, Interpreter};
use elements::listing::FlowRecord;
use ir::interp::FlowEvent;
use ir::model::Rule;
use ir::{Model, PrefixEntry, PrefixTable, Store};
use net::{Batch, Packet};

use crate::trace::{Decision, Trace};

/// Wraps an element so that packets go through its model instead of its native code. The state that
/// the model declares lives in a [`Store`] shared by all elements of the chain; the element's own
/// code still serves handlers, time, and packets for which the model is opaque, with the state
/// handed to and fro.
pub struct Interpreted {
    element: RefCell<Box<dyn Element>>,
    name: String,
    model: Model,
    store: Rc<RefCell<Store>>,
    /// Hears what the model decides.
    trace: Option<Rc<RefCell<Trace>>>,
}

impl Interpreted {
    /// Wraps `element`; one whose model is opaque for every packet and has no state is returned as
    /// it is.
    pub fn wrap(
        element: Box<dyn Element>,
        name: &str,
        store: &Rc<RefCell<Store>>,
    ) -> Box<dyn Element> {
        Self::traced(element, name, store, None)
    }

    /// Wraps `element` so that a trace hears what its model decides.
    pub(crate) fn traced(
        mut element: Box<dyn Element>,
        name: &str,
        store: &Rc<RefCell<Store>>,
        trace: Option<Rc<RefCell<Trace>>>,
    ) -> Box<dyn Element> {
        let model = element.model();
        if model.is_opaque() && model.state.is_empty() {
            return element;
        }
        let mut state = ElementState::declared(store.take());
        element.export(name, &mut state);
        store.replace(state.declared);
        Box::new(Self {
            element: RefCell::new(element),
            name: name.to_string(),
            model,
            store: Rc::clone(store),
            trace,
        })
    }

    /// Runs the element's native code with the declared state in its hands.
    fn native<R>(&mut self, now: u64, work: impl FnOnce(&mut dyn Element) -> R) -> R {
        let element = self.element.get_mut();
        let mut state = ElementState::declared(self.store.take());
        element.import(&self.name, &mut state, now);
        self.store.replace(state.declared);
        let result = work(&mut **element);
        let mut state = ElementState::declared(self.store.take());
        element.export(&self.name, &mut state);
        self.store.replace(state.declared);
        result
    }
}

/// A trace that learns what a model decides, if there is one.
struct Heard<'a>(Option<&'a RefCell<Trace>>);

impl Heard<'_> {
    fn decided(&self, decision: impl FnOnce() -> Decision) {
        if let Some(trace) = self.0 {
            trace.borrow_mut().decided(decision());
        }
    }
}

impl Decisions for Heard<'_> {
    fn matched(&mut self, rule: Option<&Rule>) {
        self.decided(|| Decision::matched(rule));
    }

    fn looked_up(&mut self, key: u128, table: &PrefixTable, entry: Option<&PrefixEntry>) {
        self.decided(|| Decision::looked_up(key, table.width(), entry));
    }

    fn flow(&mut self, event: FlowEvent<'_>) {
        self.decided(|| Decision::flow(event));
    }
}

impl Element for Interpreted {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let mut stay = cx.core.batch();
        for packet in batch.drain() {
            let trace = self.trace.clone();
            let mut heard = Heard(trace.as_deref());
            let run = Interpreter {
                model: &self.model,
                name: &self.name,
                store: &mut self.store.borrow_mut(),
                decisions: &mut heard,
            }
            .run(port, packet, &mut stay, cx);
            if let Err((packet, why)) = run {
                heard.decided(|| Decision::Opaque(why));
                let mut single = cx.core.batch();
                single.push(packet);
                self.native(cx.now(), |element| element.push(port, &mut single, cx));
                stay.append(&mut single);
                cx.core.recycle_batch(single);
            }
        }
        batch.append(&mut stay);
        cx.core.recycle_batch(stay);
    }

    fn model(&self) -> Model {
        self.model.clone()
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        if !to.is_copy() {
            return self.native(0, |element| element.export(name, to));
        }
        let own = self.store.borrow();
        let declared = |owner: &str, state: &str| {
            owner == self.name
                || self
                    .model
                    .state
                    .iter()
                    .any(|d| d.owner.as_deref() == Some(owner) && d.name == state)
        };
        for (owner, state, value) in own.iter().filter(|(owner, state, _)| declared(owner, state)) {
            to.declared.set(owner, state, value.clone());
        }
    }

    fn import(&mut self, name: &str, from: &mut ElementState, now: u64) {
        self.native(now, |element| element.import(name, from, now));
    }

    fn counted(&self) -> Option<(u64, u64)> {
        self.element.borrow().counted()?;
        Some(self.store.borrow().counter(&self.name, "count"))
    }

    fn held(&self) -> usize {
        self.element.borrow().held()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.element.borrow().queued(show);
    }

    fn waits_for_room(&self) -> bool {
        self.element.borrow().waits_for_room()
    }

    fn has_room(&self) -> Option<bool> {
        self.element.borrow().has_room()
    }

    fn has_packets(&self) -> Option<bool> {
        self.element.borrow().has_packets()
    }

    fn starts_over(&self) -> bool {
        self.element.borrow().starts_over()
    }

    fn parts_packets(&self) -> bool {
        self.element.borrow().parts_packets()
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.element.get_mut().initialize(cx)
    }

    fn has_task(&self) -> bool {
        self.element.borrow().has_task()
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        self.native(cx.now(), |element| element.run(cx))
    }

    fn owned(&self) -> Vec<OwnedPorts> {
        self.element.borrow().owned()
    }

    fn steer(&mut self, owned: &[OwnedPorts]) -> Result<(), String> {
        self.element.get_mut().steer(owned)
    }

    fn wait_on(&self) -> Option<Wake> {
        self.element.borrow().wait_on()
    }

    fn is_endless(&self) -> bool {
        self.element.borrow().is_endless()
    }

    fn stops_driver(&self) -> bool {
        self.element.borrow().stops_driver()
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        self.native(cx.now(), |element| element.wake(cx));
    }

    fn handler_calls(&self) -> HandlerCalls {
        self.element.borrow().handler_calls()
    }

    fn sees_frames_only(&self) -> bool {
        self.element.borrow().sees_frames_only()
    }

    fn makes_bare_packets(&self) -> bool {
        self.element.borrow().makes_bare_packets()
    }

    fn receives_frames(&self) -> bool {
        self.element.borrow().receives_frames()
    }

    fn on_stop(&mut self, cx: &mut Context<'_>) -> bool {
        self.native(cx.now(), |element| element.on_stop(cx))
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.native(cx.now(), |element| element.finish(cx));
    }

    fn traffic(&self) -> Option<Traffic> {
        self.element.borrow().traffic()
    }

    fn control_socket(&self) -> Option<ControlSocketRequest> {
        self.element.borrow().control_socket()
    }

    fn handlers(&self) -> &'static [Handler] {
        self.element.borrow().handlers()
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        self.element.borrow().named_handlers()
    }

    fn call(
        &mut self,
        handler: &str,
        parameter: &str,
        cx: &mut Context<'_>,
    ) -> Result<String, String> {
        self.native(cx.now(), |element| element.call(handler, parameter, cx))
    }

    fn read(
        &self,
        handler: &str,
        parameter: &str,
        cx: &HandlerContext<'_>,
    ) -> Result<String, String> {
        let mut element = self.element.borrow_mut();
        let mut state = ElementState::declared(self.store.take());
        element.import(&self.name, &mut state, cx.now);
        self.store.replace(state.declared);
        element.read(handler, parameter, cx)
    }

    fn remove_flow(&mut self, flow: &FlowRecord, cx: &HandlerContext<'_>) -> bool {
        self.native(cx.now, |element| element.remove_flow(flow, cx))
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        let result = self.native(cx.now(), |element| element.write(handler, value, cx));
        // What was written may have changed what the element means.
        self.model = self.element.get_mut().model();
        result
    }
}
