//! Telling people and programs what happened to packets in a chain.

mod anatomy;
mod difference;
mod json;
mod narrative;
mod synthesised;

use dataplane::trace::{Fate, Step, StepId, Trace};
use ir::{Graph, Port, Sources};

use crate::synth::Report;

pub(crate) use anatomy::{Placed, say};
pub use anatomy::{brief_of, fields_of};
pub use json::to_json;
pub use narrative::{numbers, tell};

/// What happened, and where.
pub struct Story<'a> {
    /// The chain.
    pub graph: &'a Graph,
    /// The texts that it was made from.
    pub sources: &'a Sources,
    /// What happened.
    pub trace: &'a Trace,
    /// What was sent in, in words, and where.
    pub packets: &'a [(String, String)],
    /// What the chain became, if that is to be shown, too.
    pub report: Option<&'a Report<'a>>,
}

impl Story<'_> {
    /// The steps that follow from nothing that was seen, by what was sent in before them.
    fn beginnings(&self, phase: usize) -> Vec<StepId> {
        let steps = self.trace.steps.iter().enumerate();
        let begins = |(_, s): &(usize, &Step)| {
            let seen = s.before.is_some() || !s.outcomes.is_empty() || !s.messages.is_empty();
            s.phase == phase && s.from.is_none() && seen
        };
        steps.filter(begins).map(|(i, _)| i).collect()
    }

    /// Where an output leads to.
    fn after(&self, step: &Step, port: usize) -> Option<Port> {
        self.graph.successors(Port { node: step.node, port }).next()
    }

    /// Whether an outcome is the packet's own going on, and not a copy's or another packet's.
    fn goes_on(&self, step: &Step, outcome: usize) -> bool {
        let outcome = &step.outcomes[outcome];
        matches!(outcome.fate, Fate::Left(_) | Fate::Kept) && !outcome.made
    }
}
