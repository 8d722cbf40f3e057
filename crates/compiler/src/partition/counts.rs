//! What a chain counts for packets that a device took care of.
//!
//! A device counts by exit of its segment: packets, their bytes as they came in and, if it can, sums of the other
//! lengths that the chain counts. The exit says what cores would have counted for the same packets. A device that knows
//! frames' lengths only, as a switch does, takes the length that an IP header says for what lies behind its beginning:
//! padding behind short packets counts then, too.

use ir::field::{ip, ip6, meta};
use ir::layout::Layout;
use ir::model::{BinaryOp, Reason};
use ir::program::{Effect, End, Exit, Step, StepId, Term, TermId, Writes};
use ir::{NodeId, Port, Program};

use super::Offload;

/// What a device counted of packets that came to an exit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Packets.
    pub packets: u64,
    /// Their bytes, as they came in.
    pub bytes: u64,
    /// Sums of the other lengths that the exit counts, in the order in which its effects first name them; empty if the
    /// device has none.
    pub sums: Vec<u64>,
}

/// What the chain counts for packets at an exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credit {
    /// How many packets.
    pub packets: u64,
    /// By counter, its owner and name: the bytes that are added; none if the device cannot know them.
    pub counters: Vec<(String, &'static str, Option<u64>)>,
    /// Where a reason is noted for each of them.
    pub noted: Vec<(NodeId, Reason)>,
    /// Where all are dropped, why, and their bytes there.
    pub dropped: Option<(NodeId, Reason, Option<u64>)>,
    /// The inputs that they passed, in order.
    pub visited: Vec<Port>,
    /// Where they left, if not by a drop, and their bytes there.
    pub left: Option<(Port, Option<u64>)>,
}

impl Offload {
    /// What the chain counts for what a device counted at a step of its segment; `program` is the one that was divided.
    /// None for packets that were handed off, as cores count them, and for numbers of steps that are no exits.
    pub fn credit(&self, program: &Program, step: StepId, counted: &Counted) -> Option<Credit> {
        let segment = &self.segment.program;
        let exit_of = |program: &Program, at: StepId| -> Option<Exit> {
            match program.steps.get(at.0 as usize)? {
                Step::Exit(exit) => Some((**exit).clone()),
                _ => None,
            }
        };
        let exit = exit_of(segment, step)?;
        let none = Layout::default();
        let layout = self.segment.layouts.get(step.0 as usize).unwrap_or(&none);
        let mut others: Vec<TermId> = Vec::new();
        let (mut counters, mut noted) = (Vec::new(), Vec::new());
        for effect in &exit.effects {
            match effect {
                Effect::Count { counter, length } => {
                    let place = if *segment.term(*length) == Term::Input(meta::LEN) {
                        None
                    } else {
                        let known = others.iter().position(|other| other == length);
                        Some(known.unwrap_or_else(|| {
                            others.push(*length);
                            others.len() - 1
                        }))
                    };
                    let exact = match place {
                        None => Some(counted.bytes),
                        Some(place) => counted.sums.get(place).copied(),
                    };
                    let bytes = exact.or_else(|| total(segment, layout, *length, counted));
                    let of = segment.state.get(usize::from(counter.0))?;
                    counters.push((of.owner.clone(), of.name, bytes));
                }
                Effect::Note { element, reason } => noted.push((*element, *reason)),
                Effect::Update { .. } | Effect::Set { .. } => {}
            }
        }
        let (dropped, left) = match exit.end {
            End::Handoff { .. } => return None,
            End::Push { to, .. } => {
                let bytes = gone(segment, layout, &exit.writes, counted);
                (None, Some((to, bytes)))
            }
            End::Drop { element, reason } => {
                // The segment has nothing of what is written before a drop, which says how long packets are there.
                let writes = self.origin(step).and_then(|at| exit_of(program, at))?.writes;
                let bytes = gone(program, layout, &writes, counted);
                (Some((element, reason, bytes)), None)
            }
        };
        let packets = counted.packets;
        Some(Credit { packets, counters, noted, dropped, visited: exit.visited, left })
    }
}

/// The bytes of packets once they are written to.
fn gone(program: &Program, layout: &Layout, writes: &Writes, counted: &Counted) -> Option<u64> {
    match writes.length {
        Some(length) => total(program, layout, length, counted),
        None => counted.bytes.checked_add_signed(shifted(-writes.start, counted)),
    }
}

/// So many bytes more for each packet.
fn shifted(plus: i32, counted: &Counted) -> i64 {
    i64::from(plus).saturating_mul(i64::try_from(counted.packets).unwrap_or(i64::MAX))
}

/// The sum of a length over all packets, if it is a frame's with some bytes more or less.
fn total(program: &Program, layout: &Layout, length: TermId, counted: &Counted) -> Option<u64> {
    let beside = beside(program, layout, length)?;
    counted.bytes.checked_add_signed(shifted(beside, counted))
}

/// How much more a length is than that of the frame, padding aside.
fn beside(program: &Program, layout: &Layout, length: TermId) -> Option<i32> {
    let number = |term: TermId| match program.term(term) {
        Term::Const(number) => i32::try_from(*number).ok(),
        _ => None,
    };
    match program.term(length) {
        Term::Input(field) if *field == meta::LEN => Some(0),
        Term::Input(field) => {
            let (name, at) = (layout.name_of(*field)?.field?, i32::from(field.offset));
            // Where the header begins, and its length if that does not count.
            let (begin, header) = match name {
                _ if name == ip::LEN => ((at - 16) / 8, 0),
                _ if name == ip6::PLEN => ((at - 32) / 8, 40),
                _ => return None,
            };
            Some(-begin - header)
        }
        Term::Binary(BinaryOp::Add, a, b) => match (number(*a), number(*b)) {
            (_, Some(plus)) => beside(program, layout, *a)?.checked_add(plus),
            (Some(plus), _) => beside(program, layout, *b)?.checked_add(plus),
            _ => None,
        },
        Term::Binary(BinaryOp::Sub, a, b) => beside(program, layout, *a)?.checked_sub(number(*b)?),
        _ => None,
    }
}
