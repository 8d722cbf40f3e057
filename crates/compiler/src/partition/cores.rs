//! What cores run behind a device: the whole of each program, and the parts that go on where the device stopped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use ir::program::{Continuation, Exit, Lookup, LookupId, Ref, Step, StepId, Term, TermId};
use ir::{Base, Field, IntervalSet, Port, Program};

use super::{Compiled, join, made, reach};

/// Where a packet from a device says where the device stopped: the number of the continuation, or 0 if it says
/// nothing.
pub const TAG: Field = Field::bits(Base::Carried, 0, 16);

/// Joins to the programs of a chain the parts that go on where a device stopped, as long as they
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
        let behind = |program: Program| match parts.get(&program.entry) {
            Some(parts)
                if *first.entry(program.entry).or_insert_with(|| program.clone()) == program =>
            {
                behind(program, parts)
            }
            _ => program,
        };
        programs.into_iter().map(behind).collect()
    }
}

/// A program that goes on where a packet's tag says, and without one is what it was. One program, as the packets of
/// a burst stop at many places of a device: each program has its own vectors, and its own lookups in advance.
pub fn behind(whole: Program, parts: &[Program]) -> Program {
    match join(&branch(whole.clone(), parts), parts) {
        Ok(joined) => share_lookups(joined),
        Err(_) => whole,
    }
}

/// Parts look for the same flows. A packet goes through one part, so lookups of one key in one table that different
/// parts make become one.
fn share_lookups(mut program: Program) -> Program {
    let Some(Step::Switch { cases, otherwise, .. }) = program.steps.first() else { return program };
    let roots: Vec<StepId> = cases.iter().map(|case| case.1).chain([*otherwise]).collect();
    // Some have numbers in their keys that others found: once those are one, their keys are equal.
    loop {
        let mut of_parts: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); program.lookups.len()];
        for (part, root) in roots.iter().enumerate() {
            for lookup in reach(&program, [*root]).into_iter().filter_map(|s| made(program.step(s)))
            {
                of_parts[usize::from(lookup.0)].insert(part);
            }
        }
        // By key and table: those that remain, and the parts that make them.
        let mut remaining: HashMap<&Lookup, Vec<(LookupId, BTreeSet<usize>)>> = HashMap::new();
        let mut to = Vec::with_capacity(program.lookups.len());
        for ((lookup, number), parts) in program.lookups.iter().zip(0..).zip(of_parts) {
            let remaining = remaining.entry(lookup).or_default();
            match remaining.iter_mut().find(|(_, others)| others.is_disjoint(&parts)) {
                Some((shared, others)) => {
                    to.push(*shared);
                    others.extend(parts);
                }
                None => {
                    to.push(LookupId(number));
                    remaining.push((LookupId(number), parts));
                }
            }
        }
        if to.iter().zip(0..).all(|(to, number)| to.0 == number) {
            return program;
        }
        let share = |lookup: &mut LookupId| *lookup = to[usize::from(lookup.0)];
        for term in &mut program.terms {
            if let Term::Bound(lookup, _) = term {
                share(lookup);
            }
        }
        for step in &mut program.steps {
            step.map_refs(|named| {
                if let Ref::Lookup(lookup) = named {
                    share(lookup);
                }
            });
        }
        program = program.normal();
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
