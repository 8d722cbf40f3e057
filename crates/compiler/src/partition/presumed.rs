//! What a device presumes of packets, as it cannot test it: a core asks that first.

use std::collections::BTreeSet;
use std::sync::Arc;

use codegen::{Lack, Presumption};
use ir::field::{ip, ip6, meta};
use ir::layout::{Facts, Layouts};
use ir::model::{BinaryOp, CompareOp};
use ir::program::{Atom, Exit, Step, StepId, Term, TermId};
use ir::{Base, Field, IntervalSet, Program};

/// A [`codegen::Presumption`] over a program's terms.
#[derive(Clone, Debug)]
pub(super) struct Presumed {
    /// Conditions that packets meet of which it is presumed, and what is.
    pub(super) atoms: Vec<Atom>,
    pub(super) lack: Lack,
}

/// Bytes that frames have at least, without their check sequence (IEEE 802.3 §3.2.7): what asks for no more asks
/// whether headers are there.
pub(super) const LEAST_FRAME: u128 = 60;

/// A condition over a program's terms, to which those are added that it has not got.
pub(super) fn atom(terms: &mut Vec<Term>, presumed: &codegen::Presumed) -> Atom {
    let mut term = |term: Term| {
        let at = terms.iter().position(|known| *known == term).unwrap_or_else(|| {
            terms.push(term);
            terms.len() - 1
        });
        TermId(at as u32)
    };
    match presumed {
        codegen::Presumed::In(field, set) => {
            Atom::Test(term(Term::Input(*field)), Arc::new(set.clone()))
        }
        codegen::Presumed::Fits { field, times, plus, within } => {
            let mut sum = term(Term::Input(*field));
            for (op, number, neutral) in [(BinaryOp::Mul, *times, 1), (BinaryOp::Add, *plus, 0)] {
                if number != neutral {
                    let number = term(Term::Const(number.into()));
                    sum = term(Term::Binary(op, sum, number));
                }
            }
            Atom::Compare(CompareOp::Le, sum, term(Term::Input(*within)))
        }
    }
}

/// What is presumed, as far as it is not known; none if it holds, or is of no packet.
pub(super) fn presume(
    program: &mut Program,
    facts: Option<&Facts>,
    presumption: &Presumption,
) -> Option<Presumed> {
    let lack = presumption.lack.clone()?;
    let mut atoms = Vec::new();
    for (field, set) in &presumption.when {
        let condition = codegen::Presumed::In(*field, set.clone());
        let condition = atom(&mut program.terms, &condition);
        match facts.and_then(|facts| truth(facts, program, &condition)) {
            Some(true) => {}
            Some(false) => return None,
            None => atoms.push(condition),
        }
    }
    let holds = atom(&mut program.terms, &presumption.holds);
    if facts.and_then(|facts| truth(facts, program, &holds)) == Some(true) {
        return None;
    }
    atoms.push(holds);
    Some(Presumed { atoms, lack })
}

/// Whether a condition holds, if that is known.
pub(super) fn truth(facts: &Facts, program: &Program, atom: &Atom) -> Option<bool> {
    let Atom::Test(term, set) = atom else { return None };
    let (low, high) = facts.range(program, *term)?;
    let known = IntervalSet::range(u128::try_from(low).ok()?, u128::try_from(high).ok()?);
    match known.is_subset(set) {
        true => Some(true),
        false => (!known.intersects(set)).then_some(false),
    }
}

/// Lengths that packets are cut to, as that of an IP header says: a field and what is added to it.
pub(super) type Paddings = BTreeSet<(Field, u128)>;

/// Those of a program: what lies behind is padding (IEEE 802.3 §3.2.8).
pub(super) fn paddings(program: &Program, layouts: &Layouts) -> Paddings {
    let cut = |(step, exit): (StepId, &Exit)| {
        let (field, plus) = sum(program, exit.writes.length?)?;
        let name = layouts.at(step).name_of(field)?;
        (name.field == Some(ip::LEN) || name.field == Some(ip6::PLEN)).then_some((field, plus))
    };
    program.exits().filter_map(cut).collect()
}

/// The field and the number that are added up in a term.
fn sum(program: &Program, term: TermId) -> Option<(Field, u128)> {
    let (of, plus) = match program.term(term) {
        Term::Binary(BinaryOp::Add, a, b) => match (program.term(*a), program.term(*b)) {
            (of, Term::Const(plus)) | (Term::Const(plus), of) => (of, *plus),
            _ => return None,
        },
        of => (of, 0),
    };
    match of {
        Term::Input(field) if field.base == Base::Data => Some((*field, plus)),
        _ => None,
    }
}

/// What a device presumes that leaves the end of packets which an exit cuts: that it is the padding of a short frame.
pub(super) fn uncut(
    program: &Program,
    step: StepId,
    paddings: &Paddings,
    terms: &mut Vec<Term>,
) -> Option<Presumed> {
    let Step::Exit(exit) = program.step(step) else { return None };
    let length = exit.writes.length?;
    sum(program, length).filter(|of| paddings.contains(of))?;
    let long = IntervalSet::range(LEAST_FRAME + 1, meta::LEN.max());
    let is_long = atom(terms, &codegen::Presumed::In(meta::LEN, long));
    let Atom::Test(whole, _) = is_long else { return None };
    let holds = Atom::Compare(CompareOp::Le, whole, length);
    Some(Presumed { atoms: vec![is_long, holds], lack: Lack::Length })
}

/// Leaves padding behind packets.
pub(super) fn leave_padding(program: &mut Program, paddings: &Paddings) {
    let is_padding = |term: &TermId| sum(program, *term).is_some_and(|of| paddings.contains(&of));
    let uncut: Vec<usize> = (0..program.steps.len())
        .filter(|&at| match &program.steps[at] {
            Step::Exit(exit) => exit.writes.length.as_ref().is_some_and(is_padding),
            _ => false,
        })
        .collect();
    for at in uncut {
        if let Step::Exit(exit) = &mut program.steps[at] {
            exit.writes.length = None;
        }
    }
}
