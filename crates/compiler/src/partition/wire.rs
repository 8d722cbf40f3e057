//! What is known of packets where a wire brings them, and what a wire shows of those that leave.

use std::collections::BTreeMap;
use std::sync::Arc;

use ir::field::{eth, meta};
use ir::program::numbers::{Numbers, is_decided};
use ir::program::{Atom, End, Exit, Mark, Step, StepId, Term, TermId, Writes};
use ir::{Base, Field, IntervalSet, Port, Program};
use net::{Header, PacketType};

/// A header that is not marked; see [`Term::Position`].
const UNMARKED: u128 = 0x8000_0000;

/// The same program for frames as an interface receives them: annotations are zero, the MAC header is
/// marked, the type follows from the destination. Conditions that this decides are gone.
pub fn from_wire(program: &Program) -> Program {
    let numbers = [PacketType::Host, PacketType::Broadcast, PacketType::Multicast];
    let [host, broadcast, multicast] = numbers.map(|of| Term::Const(of as u128));
    let group = Field::bits(Base::Data, eth::DST.offset + 7, 1);
    let is = |term, value| Atom::Test(TermId(term), Arc::new(IntervalSet::single(value)));
    // Terms that the type is made from, before all others.
    let mut terms = vec![
        Term::Input(eth::DST),
        Term::Input(group),
        host,
        broadcast,
        multicast,
        Term::Choose(is(0, (1 << eth::DST.width) - 1), TermId(3), TermId(4)),
        Term::Choose(is(1, 1), TermId(5), TermId(2)),
    ];
    let packet_type = TermId(6);
    let mut moved = Vec::with_capacity(program.terms.len());
    for term in &program.terms {
        let known = match term {
            Term::Input(field) if field.base == Base::Annotation => Term::Const(0),
            Term::Position(Header::Mac) => Term::Const(0),
            Term::Position(_) => Term::Const(UNMARKED),
            Term::Input(field) if *field == meta::TYPE => {
                moved.push(packet_type);
                continue;
            }
            term => {
                let mut term = term.clone();
                term.map_operands(|operand| moved[operand.0 as usize]);
                term
            }
        };
        moved.push(TermId(terms.len() as u32));
        terms.push(known);
    }
    let mut whole = Program { terms, ..program.clone() };
    for lookup in &mut whole.lookups {
        lookup.key.iter_mut().for_each(|term| *term = moved[term.0 as usize]);
    }
    for step in &mut whole.steps {
        step.map_terms(|term| moved[term.0 as usize]);
    }
    decide(whole)
}

/// Without conditions that hold always or never, and with those on chosen numbers as conditions on what
/// chooses.
fn decide(program: Program) -> Program {
    let numbers = program.numbers();
    let mut ends: Vec<StepId> = Vec::new();
    // From the last step on, so that what a step leads to is there. In reverse order, then.
    let mut steps: Vec<Step> = Vec::new();
    let mut known: BTreeMap<(Atom, StepId, StepId), StepId> = BTreeMap::new();
    for step in program.steps.iter().rev() {
        let to = |next: StepId| ends[program.steps.len() - 1 - next.0 as usize];
        let end = match step {
            Step::Test { atom, yes, no, element } => {
                let mut test = |atom: Atom, yes: StepId, no: StepId| {
                    *known.entry((atom.clone(), yes, no)).or_insert_with(|| {
                        steps.push(Step::Test { atom, yes, no, element: *element });
                        StepId(steps.len() as u32 - 1)
                    })
                };
                ask(&program, &numbers, atom, [to(*yes), to(*no)], &mut test)
            }
            step => {
                let mut step = step.clone();
                step.map_next(to);
                steps.push(step);
                StepId(steps.len() as u32 - 1)
            }
        };
        ends.push(end);
    }
    let (root, last) = (ends[ends.len() - 1], steps.len() as u32 - 1);
    steps.reverse();
    for step in &mut steps {
        step.map_next(|next| StepId(last - next.0));
    }
    let whole = Program { steps, ..program };
    let reached = super::reach(&whole, [StepId(last - root.0)]);
    super::restrict(&whole, &[], &reached, &BTreeMap::new()).normal()
}

/// Where a condition leads, by what it leads to if it holds and if not.
fn ask(
    program: &Program,
    numbers: &[Numbers],
    atom: &Atom,
    [yes, no]: [StepId; 2],
    test: &mut impl FnMut(Atom, StepId, StepId) -> StepId,
) -> StepId {
    let Atom::Test(term, set) = atom else { return test(atom.clone(), yes, no) };
    if is_decided(numbers, atom) {
        return if set.contains(numbers[term.0 as usize].bounds.0) { yes } else { no };
    }
    let Term::Choose(by, a, b) = program.term(*term) else { return test(atom.clone(), yes, no) };
    let [a, b] =
        [a, b].map(|of| ask(program, numbers, &Atom::Test(*of, Arc::clone(set)), [yes, no], test));
    if a == b { a } else { ask(program, numbers, by, [a, b], test) }
}

/// What is seen of an exit on the wires behind some input ports: marks, annotations and the like are
/// gone, and so is all of a packet that is dropped. Whether it ends at such a port or a drop.
pub(super) fn to_wire(exit: &mut Exit, is_wire: &impl Fn(Port) -> bool) -> bool {
    let mut all = true;
    for copy in &mut exit.copies {
        all &= to_wire(copy, is_wire);
    }
    match &mut exit.end {
        End::Push { to, native } if is_wire(*to) => {
            exit.writes.marks = [Mark::Keep; 3];
            exit.writes.annotations.clear();
            exit.writes.packet_type = None;
            exit.writes.timestamp = None;
            exit.barrier = None;
            *native = false;
        }
        End::Drop { .. } => exit.writes = Writes::default(),
        End::Push { .. } | End::Handoff { .. } => return false,
    }
    all
}
