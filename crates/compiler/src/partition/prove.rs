//! Whether a device and cores together do what the program did that was divided between them.

use std::collections::BTreeMap;

use ir::program::{Continuation, Exit, Step, StepId};
use ir::{NodeId, Port, Program};

use super::presumed::leave_padding;
use super::wire::to_wire;
use super::{Apart, Offload, join, reach, restrict};
use crate::prove::{BUDGET, Compared, Comparison, Verdict, View, compare};

/// What a proof of an [`Offload`] found.
#[derive(Clone, Debug)]
pub struct Assured {
    /// Whether the parts together are the program, wherever what is trusted holds.
    pub together: Compared,
    /// Whether they are without that: where it is trusted and does not hold, a packet on which they differ.
    pub untrusted: Option<Compared>,
}

impl Offload {
    /// Proves that what a device was given, and the parts that cores go on with, are the program that was
    /// divided: the same packets leave by the same wires, with the same counts, except for padding if the
    /// device cannot cut it. With the number `undecided`, packets go on at the beginning.
    ///
    /// # Errors
    /// If the parts do not fit together.
    pub fn prove(
        &self,
        program: &Program,
        device: &Program,
        undecided: Option<Continuation>,
        is_wire: &dyn Fn(Port) -> bool,
        name: &(dyn Fn(NodeId) -> String + Sync),
    ) -> Result<Assured, Apart> {
        let from_the_start =
            undecided.map(|_| Program { continuation: undecided, ..program.clone() });
        let parts: Vec<Program> =
            self.continuations.iter().cloned().chain(from_the_start).collect();
        let together = join(device, &parts)?;
        let seen = |mut program: Program| {
            for step in &mut program.steps {
                if let Step::Exit(exit) = step {
                    to_wire(exit, &is_wire);
                }
            }
            leave_padding(&mut program, &self.paddings);
            program.lower()
        };
        let (before, after) = (seen(program.clone()), seen(together));
        let against = |a: &Program, b: &Program| {
            let view = View::Whole;
            compare(&Comparison { a, b, names_a: name, names_b: name, view, budget: BUDGET })
        };
        let Some(trusted) = &self.trusted else {
            return Ok(Assured { together: against(&before, &after), untrusted: None });
        };
        let grafted = seen(graft(trusted, &after)?);
        let together = against(&seen(trusted.clone()), &grafted);
        Ok(Assured { together, untrusted: Some(against(&before, &after)) })
    }
}

impl Offload {
    /// The program that hands packets off to one part if all that is trusted holds of them, and to another if not.
    /// None if nothing is trusted.
    pub fn sort(&self, trusted: Continuation, others: Continuation) -> Option<Program> {
        let mut sort = self.trusted.clone()?;
        let last = sort.steps.len() - 1;
        for (at, step) in sort.steps.iter_mut().enumerate() {
            if let Step::Exit(_) = step {
                let to = if at == last { others } else { trusted };
                *step = Step::Exit(Box::new(Exit::handoff(to, Vec::new())));
            }
        }
        let reached = reach(&sort, [StepId(0)]);
        Some(restrict(&sort, &[], &reached, &BTreeMap::new()).normal())
    }
}

/// A program that goes on with another wherever the first ends, but for the last of its steps.
fn graft(first: &Program, then: &Program) -> Result<Program, Apart> {
    const THEN: Continuation = Continuation(u16::MAX);
    let last = StepId(first.steps.len() as u32 - 1);
    let mut front = first.clone();
    let on = StepId(last.0 + 1);
    for step in &mut front.steps {
        step.map_next(|next| match first.step(next) {
            Step::Exit(_) if next != last => on,
            _ => next,
        });
    }
    front.steps.push(Step::Exit(Box::new(Exit::handoff(THEN, Vec::new()))));
    let root = if matches!(first.step(StepId(0)), Step::Exit(_)) { on } else { StepId(0) };
    let reached = reach(&front, [root]);
    let front = restrict(&front, &[], &reached, &BTreeMap::new()).normal();
    join(&front, &[Program { continuation: Some(THEN), ..then.clone() }])
}

impl Assured {
    /// Whether all was proven.
    pub fn holds(&self) -> bool {
        matches!(self.together.verdict, Verdict::Equal)
    }
}
