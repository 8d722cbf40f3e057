//! What cores run behind a device: the whole of each program, and the parts that go on where the device stopped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ir::program::{Continuation, Exit, Step, StepId, Term, TermId};
use ir::{Base, Field, IntervalSet, Port, Program};

use super::Compiled;

/// Where a packet from a device says where the device stopped: the number of the continuation, or 0 if it says
/// nothing.
pub const TAG: Field = Field::bits(Base::Carried, 0, 16);

/// Adds to the programs of a chain the parts that go on where a device stopped, as long as they
/// are what it was compiled with; without them all is decided anew, which is always right.
pub fn on_cores(
    compiled: &Compiled,
) -> impl Fn(Vec<Program>) -> Vec<Program> + Send + Sync + use<> {
    let parts: BTreeMap<Port, Arc<[Program]>> = compiled
        .parts
        .iter()
        .map(|part| {
            let lowered = part.offload.continuations.iter().map(|part| part.clone().lower());
            (part.program.entry, lowered.collect())
        })
        .collect();
    // What the chain was when it was compiled: the first that comes.
    let first: Mutex<BTreeMap<Port, Program>> = Mutex::default();
    move |programs| {
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Vec::new();
        for program in programs {
            match parts.get(&program.entry) {
                Some(parts)
                    if *first.entry(program.entry).or_insert_with(|| program.clone())
                        == program =>
                {
                    all.push(branch(program, parts));
                    all.extend(parts.iter().cloned());
                }
                _ => all.push(program),
            }
        }
        all
    }
}

/// A program before which it is asked where a device stopped.
fn branch(mut program: Program, parts: &[Program]) -> Program {
    let numbers: Vec<_> = parts.iter().filter_map(|part| part.continuation).collect();
    if numbers.is_empty() {
        return program;
    }
    let before = 1 + numbers.len() as u32;
    for step in &mut program.steps {
        step.map_next(|next| StepId(before + next.0));
    }
    let on = TermId(program.terms.len() as u32);
    program.terms.push(Term::Input(TAG));
    let case =
        |(number, step): (&Continuation, u32)| (IntervalSet::single(number.0.into()), StepId(step));
    let root = Step::Switch {
        on,
        cases: numbers.iter().zip(1..).map(case).collect(),
        otherwise: StepId(before),
        element: program.entry.node,
    };
    let handoff = |number: Continuation| Step::Exit(Box::new(Exit::handoff(number, Vec::new())));
    let steps = std::mem::take(&mut program.steps);
    program.steps =
        [root].into_iter().chain(numbers.into_iter().map(handoff)).chain(steps).collect();
    program.normal()
}
