//! An element that is watched.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use elements::Element;
use elements::configure::{Failed, Initialize};
use elements::context::{Context, Outputs, Tallied, Tally};
use elements::device::ControlSocketRequest;
use elements::element::{Handler, HandlerContext, NamedHandler, Traffic, Work};
use elements::element_state::ElementState;
use ir::{Model, NodeId, Port, Reason};
use net::{Batch, Packet};

use super::{Fate, Inlet, Outcome, Seen, Step, StepId, Trace};

/// Wraps an element and tells a trace what passes through it.
pub(super) struct Observed {
    element: Box<dyn Element>,
    node: NodeId,
    trace: Rc<RefCell<Trace>>,
    /// Where the element takes packets in from, if it is a source.
    inlet: Option<Rc<RefCell<Inlet>>>,
    /// The element would make packets by itself: it is not let.
    silent: bool,
}

impl Observed {
    pub(super) fn new(
        element: Box<dyn Element>,
        node: NodeId,
        trace: Rc<RefCell<Trace>>,
        inlet: Option<Rc<RefCell<Inlet>>>,
        silent: bool,
    ) -> Self {
        Self { element, node, trace, inlet, silent }
    }

    /// Lets the element work and records what came in (`pushed` is a packet and its input), what
    /// went out and what was dropped. Returns the packets that stayed, or the one pulled.
    fn watch<R>(
        &mut self,
        pushed: Option<(usize, Packet)>,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut dyn Element, &mut Batch, &mut Context<'_>) -> R,
    ) -> (R, Batch) {
        let Self { element, node, trace, .. } = self;
        let node = *node;
        let mut batch = cx.core.batch();
        let pushed = pushed.map(|(port, packet)| {
            let (identity, seen) = (packet.identity(), Seen::of(&packet));
            batch.push(packet);
            (port, identity, seen)
        });
        let identity = pushed.as_ref().map(|p| p.1);
        let input = pushed.as_ref().map(|p| Port { node, port: p.0 });
        let passage = match (input, batch.iter().next()) {
            (Some(at), Some(packet)) => trace.borrow_mut().pass(at, packet, cx),
            _ => None,
        };
        let step = trace.borrow_mut().begin(node, pushed, cx.now());
        trace.borrow_mut().steps[step].passage = passage;
        let (tally, alive) = (cx.tally.clone(), cx.core.pool.outstanding());
        let mut outputs = Outputs::new(cx.outputs());
        let result = work(&mut **element, &mut batch, &mut cx.with_outputs(&mut outputs));
        let mut emitted: Vec<(usize, Batch)> = outputs.drain_reversed().collect();
        emitted.reverse();
        let left = emitted.iter().flat_map(|(port, batch)| batch.iter().map(move |p| (*port, p)));
        let left: Vec<(usize, &Packet)> = left.chain(batch.iter().map(|p| (0, p))).collect();
        let made = cx.core.pool.outstanding() as isize - alive as isize;
        let lost = grown(&tally, cx.tally);
        trace.borrow_mut().end(step, identity, &left, made, &lost);
        for (port, mut packets) in emitted {
            cx.emit_all(port, &mut packets);
            cx.core.recycle_batch(packets);
        }
        (result, batch)
    }
}

impl Trace {
    fn begin(&mut self, node: NodeId, pushed: Option<(usize, usize, Seen)>, time: u64) -> StepId {
        let mut step = Step::new(node, time, self.phase);
        if let Some((port, identity, seen)) = pushed {
            (step.input, step.before) = (Some(port), Some(seen));
            step.from = self.live.remove(&identity);
        }
        self.steps.push(step);
        let id = self.steps.len() - 1;
        self.link(id);
        self.open.push(id);
        self.pulled.push(Vec::new());
        id
    }

    /// Records what came of a step: the packets that left and their outputs, how many packets
    /// there are more than before, and what was dropped and noted.
    fn end(
        &mut self,
        step: StepId,
        pushed: Option<usize>,
        left: &[(usize, &Packet)],
        made: isize,
        lost: &[(Tallied, u64, u64)],
    ) {
        self.open.pop();
        let mut pulled = self.pulled.pop().unwrap_or_default();
        let came = pulled.len() + usize::from(pushed.is_some());
        let mut kept = came as isize + made - left.len() as isize;
        let mut sent = std::mem::take(&mut self.steps[step].outcomes);
        let mut drops: VecDeque<Reason> = VecDeque::new();
        for (line, dropped, noted) in lost {
            drops.extend(std::iter::repeat_n(line.reason, *dropped as usize));
            let notes = std::iter::repeat_n(line.reason, *noted as usize);
            self.steps[step].notes.extend(notes);
        }
        let mut visit = step;
        for (port, packet) in left {
            let identity = packet.identity();
            let mut made = false;
            if Some(identity) == pushed {
                visit = step;
            } else if let Some(i) = pulled.iter().position(|p| p.0 == identity) {
                let (_, seen, from) = pulled.remove(i);
                visit = self.visit(step, seen, from);
            } else if let Some(from) = self.live.remove(&identity) {
                // It was kept here, and comes out now.
                let seen = self.steps[from.0].outcomes[from.1].packet.clone();
                visit = self.visit(step, seen.unwrap_or_else(|| Seen::of(packet)), from);
            } else {
                made = true;
            }
            let outcome = Outcome { fate: Fate::Left(*port), made, ..Outcome::seen(packet) };
            self.finish(visit, outcome);
        }
        // Packets that were pulled and did not go on.
        for (identity, seen, from) in pulled {
            visit = self.visit(step, seen.clone(), from);
            let outcome = if let Some(i) = sent.iter().position(|o| o.identity == identity) {
                sent.remove(i)
            } else if let Some(reason) = drops.pop_front() {
                Outcome::dropped(reason)
            } else {
                kept -= 1;
                Outcome { packet: Some(seen), identity, ..Outcome::kept() }
            };
            self.finish(visit, outcome);
        }
        self.steps[step].outcomes.splice(0..0, sent);
        self.steps[step].outcomes.extend(drops.into_iter().map(Outcome::dropped));
        if let Some(identity) = pushed
            && left.iter().all(|(_, p)| p.identity() != identity)
        {
            let packet = self.steps[step].before.clone();
            let outcome = Outcome { packet, identity, ..Outcome::kept() };
            if kept > 0 {
                self.finish(step, outcome);
            } else if self.steps[step].outcomes.is_empty() {
                self.finish(step, Outcome { fate: Fate::UsedUp, ..outcome });
            }
        }
        let Step { outcomes, before, messages, .. } = &self.steps[step];
        let idle = outcomes.is_empty() && before.is_none() && messages.is_empty();
        if idle && step + 1 == self.steps.len() {
            self.steps.pop();
        }
    }

    /// Adds what became of a packet.
    fn finish(&mut self, step: StepId, outcome: Outcome) {
        if matches!(outcome.fate, Fate::Left(_) | Fate::Kept) {
            self.live.insert(outcome.identity, (step, self.steps[step].outcomes.len()));
        }
        self.steps[step].outcomes.push(outcome);
    }

    /// The visit of a packet that was not pushed: the step itself if it has none yet.
    fn visit(&mut self, step: StepId, seen: Seen, from: (StepId, usize)) -> StepId {
        let own = &self.steps[step];
        let id = if own.before.is_none() {
            step
        } else {
            let fresh = Step::new(own.node, own.time, self.phase);
            self.steps.push(fresh);
            self.steps.len() - 1
        };
        (self.steps[id].before, self.steps[id].from) = (Some(seen), Some(from));
        self.link(id);
        id
    }

    /// Tells the outcome that a step goes on from.
    pub(super) fn link(&mut self, step: StepId) {
        if let Some((from, outcome)) = self.steps[step].from
            && let Some(outcome) = self.steps[from].outcomes.get_mut(outcome)
        {
            outcome.next = Some(step);
        }
    }
}

/// What a tally grew by: dropped and noted.
pub(crate) fn grown(before: &Tally, after: &Tally) -> Vec<(Tallied, u64, u64)> {
    let old = |line: &Tallied| before.lines().iter().find(|l| l.reason == line.reason).copied();
    let grown = |line: &Tallied| {
        let (dropped, noted) = old(line).map_or((0, 0), |l| (l.dropped, l.noted));
        let (dropped, noted) =
            (line.dropped.saturating_sub(dropped), line.noted.saturating_sub(noted));
        (*line, dropped, noted)
    };
    after.lines().iter().map(grown).filter(|(_, d, n)| d + n > 0).collect()
}

impl Element for Observed {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let mut stay = cx.core.batch();
        for packet in batch.drain() {
            let ((), mut single) = self.watch(Some((port, packet)), cx, |element, batch, cx| {
                element.push(port, batch, cx);
            });
            stay.append(&mut single);
            cx.core.recycle_batch(single);
        }
        batch.append(&mut stay);
        cx.core.recycle_batch(stay);
    }

    fn pull(&mut self, port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        let ((), mut batch) = self.watch(None, cx, |element, batch, cx| {
            if let Some(packet) = element.pull(port, cx) {
                batch.push(packet);
            }
        });
        let packet = batch.pop();
        cx.core.recycle_batch(batch);
        if let Some(packet) = &packet {
            let mut trace = self.trace.borrow_mut();
            let identity = packet.identity();
            // Whoever pulls takes it from here.
            if let Some(from) = trace.live.remove(&identity)
                && let Some(pulled) = trace.pulled.last_mut()
            {
                pulled.push((identity, Seen::of(packet), from));
            }
        }
        packet
    }

    fn model(&self) -> Model {
        self.element.model()
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.element.export(name, to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, now: u64) {
        self.element.import(name, from, now);
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.element.initialize(cx)
    }

    fn has_task(&self) -> bool {
        !self.silent && self.element.has_task()
    }

    fn held(&self) -> usize {
        self.element.held()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.element.queued(show);
    }

    fn waits_for_room(&self) -> bool {
        self.element.waits_for_room()
    }

    fn has_room(&self) -> Option<bool> {
        self.element.has_room()
    }

    fn has_packets(&self) -> Option<bool> {
        self.element.has_packets()
    }

    fn run(&mut self, cx: &mut Context<'_>) -> Work {
        if let Some(inlet) = &self.inlet {
            let inlet = inlet.borrow();
            if inlet.waiting.is_empty() && !inlet.ended {
                return Work::Idle;
            }
        }
        let (work, batch) = self.watch(None, cx, |element, _, cx| element.run(cx));
        cx.core.recycle_batch(batch);
        work
    }

    fn wake(&mut self, cx: &mut Context<'_>) {
        if !self.silent {
            let ((), batch) = self.watch(None, cx, |element, _, cx| element.wake(cx));
            cx.core.recycle_batch(batch);
        }
    }

    fn on_stop(&mut self, cx: &mut Context<'_>) -> bool {
        self.element.on_stop(cx)
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.element.finish(cx);
    }

    fn traffic(&self) -> Option<Traffic> {
        self.element.traffic()
    }

    fn control_socket(&self) -> Option<ControlSocketRequest> {
        None
    }

    fn handlers(&self) -> &'static [Handler] {
        self.element.handlers()
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        self.element.named_handlers()
    }

    fn call(
        &mut self,
        handler: &str,
        parameter: &str,
        cx: &mut Context<'_>,
    ) -> Result<String, String> {
        self.element.call(handler, parameter, cx)
    }

    fn read(
        &self,
        handler: &str,
        parameter: &str,
        cx: &HandlerContext<'_>,
    ) -> Result<String, String> {
        self.element.read(handler, parameter, cx)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        let (result, batch) =
            self.watch(None, cx, |element, _, cx| element.write(handler, value, cx));
        cx.core.recycle_batch(batch);
        result
    }
}
