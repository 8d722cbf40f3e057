//! Whether a device and cores together do what the program did that was divided between them.

use std::collections::BTreeMap;

use foldhash::HashMap;
use ir::program::{Atom, Step, StepId, Term, TermId};
use ir::{NodeId, Port, Program};

use super::offload::leave_padding;
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
    /// device cannot cut it.
    ///
    /// # Errors
    /// If the parts do not fit together.
    pub fn prove(
        &self,
        program: &Program,
        device: &Program,
        is_wire: &dyn Fn(Port) -> bool,
        name: &(dyn Fn(NodeId) -> String + Sync),
    ) -> Result<Assured, Apart> {
        let together = join(device, &self.continuations)?;
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
        if self.trusted.is_empty() {
            return Ok(Assured { together: against(&before, &after), untrusted: None });
        }
        let mut known = Known::default();
        let trusted: Vec<(Atom, bool)> =
            self.trusted.iter().map(|(atom, holds)| (known.atom(program, atom), *holds)).collect();
        let assumed = [&before, &after].map(|whole| known.assume(whole, &trusted));
        let together = against(&assumed[0], &assumed[1]);
        Ok(Assured { together, untrusted: Some(against(&before, &after)) })
    }
}

impl Assured {
    /// Whether all was proven.
    pub fn holds(&self) -> bool {
        matches!(self.together.verdict, Verdict::Equal)
    }
}

/// Terms of several programs by numbers that all share.
#[derive(Default)]
struct Known(HashMap<Term, TermId>);

impl Known {
    fn term(&mut self, program: &Program, term: TermId) -> TermId {
        let mut of = program.term(term).clone();
        of.map_operands(|operand| self.term(program, operand));
        let next = TermId(self.0.len() as u32);
        *self.0.entry(of).or_insert(next)
    }

    fn atom(&mut self, program: &Program, atom: &Atom) -> Atom {
        match atom {
            Atom::Test(term, set) => Atom::Test(self.term(program, *term), set.clone()),
            Atom::Compare(op, a, b) => {
                Atom::Compare(*op, self.term(program, *a), self.term(program, *b))
            }
        }
    }

    /// The program of packets for which these conditions hold, or do not.
    fn assume(&mut self, program: &Program, trusted: &[(Atom, bool)]) -> Program {
        let mut ends: BTreeMap<StepId, StepId> = BTreeMap::new();
        let mut whole = program.clone();
        for (index, step) in program.steps.iter().enumerate().rev() {
            let at = StepId(index as u32);
            let mut end = at;
            if let Step::Test { atom, yes, no, .. } = step {
                let atom = self.atom(program, atom);
                if let Some((_, holds)) = trusted.iter().find(|(other, _)| *other == atom) {
                    end = ends[if *holds { yes } else { no }];
                }
            }
            whole.steps[index].map_next(|next| ends[&next]);
            ends.insert(at, end);
        }
        let root = ends[&StepId(0)];
        let reached = reach(&whole, [root]);
        restrict(&whole, &[], &reached, &BTreeMap::new()).normal()
    }
}
