//! A packet that is traced through a router that runs, and what is made of it.

use std::collections::HashMap;
use std::sync::Arc;

use ir::{NodeId, Port, Program, Reason};
use net::Packet;

use super::{Decision, Fate, Outcome, Passage, Seen, Step, StepId, Trace};

/// Visits of one packet that are reported; what goes round in circles is not traced for ever.
const MOST_VISITS: usize = 1000;

/// Hears all visits of a packet, and why it was not traced to its end, if it was not.
type Tell = Box<dyn FnOnce(Vec<Step>, Option<&'static str>)>;

/// Where a packet is.
enum At {
    /// Between elements, towards one, from an outcome of a step; from nowhere at first.
    Path(Option<(StepId, usize)>),
    /// With an element that works.
    Inside(StepId),
    /// In an element that has it since an outcome of a step.
    Kept(StepId, usize),
}

/// A packet's path, and that of all that is made of it.
pub(crate) struct Journey {
    /// The tap where it begins.
    pub(crate) tap: NodeId,
    /// What the chain became.
    pub(crate) programs: Arc<[Program]>,
    /// Nanoseconds of the clock.
    pub(crate) began: u64,
    pub(crate) trace: Trace,
    /// By identity.
    at: HashMap<usize, At>,
    visits: usize,
    tell: Tell,
}

impl Journey {
    pub(crate) fn new(tap: NodeId, programs: Arc<[Program]>, tell: Tell) -> Self {
        let trace = Trace { phase: 1, ..Trace::default() };
        Self { tap, programs, began: 0, trace, at: HashMap::new(), visits: 0, tell }
    }

    /// A packet sets out.
    pub(crate) fn begin(&mut self, packet: &Packet, now: u64) {
        self.began = now;
        self.at.insert(packet.identity(), At::Path(None));
    }

    /// Whether a packet is known to it that is between elements.
    pub(crate) fn expects(&self, packet: &Packet) -> bool {
        matches!(self.at.get(&packet.identity()), Some(At::Path(_)))
    }

    /// A packet comes to an element by an input, or was pulled by it.
    pub(crate) fn arrive(
        &mut self,
        node: NodeId,
        input: Option<usize>,
        packet: &Packet,
        now: u64,
    ) -> StepId {
        let from = match self.at.remove(&packet.identity()) {
            Some(At::Path(from)) => from,
            _ => None,
        };
        self.visits += 1;
        let step = self.step(node, Some(Seen::of(packet)), from, now);
        self.trace.steps[step].input = input;
        self.at.insert(packet.identity(), At::Inside(step));
        step
    }

    fn step(
        &mut self,
        node: NodeId,
        before: Option<Seen>,
        from: Option<(StepId, usize)>,
        now: u64,
    ) -> StepId {
        let step = Step { before, from, ..Step::new(node, now, self.trace.phase) };
        self.trace.steps.push(step);
        let step = self.trace.steps.len() - 1;
        self.trace.link(step);
        step
    }

    /// What is known of a visit before the element worked.
    pub(crate) fn about(
        &mut self,
        step: StepId,
        passage: Option<Passage>,
        decisions: Vec<Decision>,
    ) {
        let step = &mut self.trace.steps[step];
        (step.passage, step.decisions) = (passage, decisions);
    }

    /// A packet left an element. One of another identity is a copy, or was `made`.
    pub(crate) fn leave(&mut self, from: Port, packet: &Packet, is_connected: bool, now: u64) {
        let identity = packet.identity();
        let (step, made) = match self.at.remove(&identity) {
            Some(At::Inside(step)) => (step, false),
            Some(At::Kept(step, outcome)) => {
                let before = Some(Seen::of(packet));
                (self.step(from.node, before, Some((step, outcome)), now), false)
            }
            _ => match self.trace.steps.iter().rposition(|step| step.node == from.node) {
                Some(step) => (step, true),
                None => (self.step(from.node, None, None, now), true),
            },
        };
        let outcomes = &mut self.trace.steps[step].outcomes;
        outcomes.push(Outcome { fate: Fate::Left(from.port), made, ..Outcome::seen(packet) });
        if is_connected {
            self.at.insert(identity, At::Path(Some((step, outcomes.len() - 1))));
        }
    }

    /// The packets that an element has, by identity, once it has worked and what left it has left.
    pub(crate) fn in_element(&self, node: NodeId) -> Vec<usize> {
        let has = |at: &At| match at {
            At::Path(_) => false,
            At::Inside(step) | At::Kept(step, _) => self.trace.steps[*step].node == node,
        };
        self.at.iter().filter(|(_, at)| has(at)).map(|(identity, _)| *identity).collect()
    }

    /// An element keeps a packet that it has.
    pub(crate) fn keep(&mut self, identity: usize) {
        if let Some(At::Inside(step)) = self.at.get(&identity) {
            let (step, packet) = (*step, self.trace.steps[*step].before.clone());
            let outcomes = &mut self.trace.steps[step].outcomes;
            outcomes.push(Outcome { packet, identity, ..Outcome::kept() });
            self.at.insert(identity, At::Kept(step, outcomes.len() - 1));
        }
    }

    /// The path of a packet ends that an element has.
    pub(crate) fn end(&mut self, identity: usize, node: NodeId, fate: Fate, now: u64) {
        let step = match self.at.remove(&identity) {
            Some(At::Inside(step)) => step,
            Some(At::Kept(from, outcome)) => {
                let before = self.trace.steps[from].outcomes[outcome].packet.clone();
                self.step(node, before, Some((from, outcome)), now)
            }
            _ => return,
        };
        let step = &mut self.trace.steps[step];
        let packet = step.before.clone().filter(|_| !matches!(fate, Fate::Dropped(_)));
        let ended = Outcome { fate, packet, identity, ..Outcome::kept() };
        // What others were made of ended with that.
        if ended.fate != Fate::UsedUp || step.outcomes.is_empty() {
            step.outcomes.push(ended);
        }
    }

    /// Reasons that were counted without a drop while an element had a packet.
    pub(crate) fn note(&mut self, node: NodeId, notes: Vec<Reason>) {
        if let Some(step) = self.trace.steps.iter_mut().rfind(|step| step.node == node) {
            step.notes.extend(notes);
        }
    }

    /// Why it is not traced any further, if there is anything left to trace.
    pub(crate) fn goes_too_far(&self) -> Option<&'static str> {
        (self.visits > MOST_VISITS).then_some("it goes round in circles")
    }

    /// Whether nothing is left to trace.
    pub(crate) fn is_over(&self) -> bool {
        self.at.is_empty()
    }

    /// Tells of it; why it was not traced to its end, if it was not.
    pub(crate) fn tell(self, why: Option<&'static str>) {
        (self.tell)(self.trace.steps, why);
    }
}
