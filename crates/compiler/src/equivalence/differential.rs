//! A chain's programs against its elements' models, packet by packet.
//!
//! Packets are made for the programs' ways and from ordinary ones by small changes; where there is
//! state they come in sequences, with answers, TCP flags and time passing. The reference is the
//! interpretation of one model after the other, so a mistake in what makes programs from models is
//! seen here.

pub(super) mod packets;
mod walk;

use std::collections::HashMap;

use ir::model::StateKind;
use ir::{Graph, Model, Op, Port, Program, Store};

use walk::LOOP;
pub use walk::Walk;

use super::{Fate, Judgement, Observation, on_large_stack};
use crate::witness::{Random, Witness};

/// A chain and what takes its elements' place.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The chain.
    pub graph: &'a Graph,
    /// Its elements' models, in the order of the graph.
    pub models: &'a [Model],
    /// State at the beginning.
    pub state: &'a Store,
    /// The programs.
    pub programs: &'a [Program],
}

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// About how many packets.
    pub packets: usize,
    /// Where random choices start.
    pub seed: u64,
}

impl Effort {
    /// What is fitting for a chain of this size: the larger its rules, the fewer packets.
    pub fn fitting(models: &[Model]) -> Self {
        fn size(block: &[Op]) -> usize {
            let own = |op: &Op| match op {
                Op::Match { rules, .. } => rules.len(),
                Op::Lookup { table, .. } => table.len() / 8,
                _ => 0,
            };
            block.iter().map(|op| 1 + own(op) + op.blocks().map(|b| size(b)).sum::<usize>()).sum()
        }
        let all: usize = models.iter().flat_map(|m| &m.inputs).map(|b| size(b)).sum();
        Self { packets: (4_000_000 / all.max(1)).clamp(200, 4000), seed: 1 }
    }
}

/// A packet that comes to an input port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where it comes in.
    pub at: Port,
    /// The packet.
    pub packet: Witness,
}

/// Packets after which the two differ.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The packets; the two differ in what the last does.
    pub sequence: Vec<Arrival>,
    /// What the elements, or the first chain, do with it.
    pub elements: Observation,
    /// What the programs, or the second chain, do with it.
    pub programs: Observation,
}

/// What was tried and found.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// How many packets went both ways.
    pub packets: usize,
    /// How many sequences they made, each from the state at the beginning on.
    pub sequences: usize,
    /// Exits of programs that packets came to, of how many.
    pub exits: (usize, usize),
    /// The difference that was found, if one was.
    pub disagreement: Option<Disagreement>,
    /// Why some packets were not compared.
    pub unclear: Option<String>,
}

/// Takes packets through the elements and through the programs.
pub fn run(subject: &Subject<'_>, effort: Effort) -> Evidence {
    record(subject, effort).0
}

/// The same; also gives the sequences of packets, to take them other ways.
pub fn record(subject: &Subject<'_>, effort: Effort) -> (Evidence, Vec<Vec<Arrival>>) {
    let entries: Vec<(Port, Port)> = subject.programs.iter().map(|p| (p.entry, p.entry)).collect();
    let elements = Subject { programs: &[], ..*subject };
    let both = Both { a: elements, b: *subject, entries: &entries, judge: &whole, state: true };
    run_both(&both, effort)
}

/// Everything counts.
fn whole(elements: &Observation, programs: &Observation) -> Judgement {
    match endless(elements, programs) {
        Some(why) => Judgement::Unclear(why),
        None if elements == programs => Judgement::Same,
        None => Judgement::Different,
    }
}

/// Why a packet that goes round in circles is not compared.
pub(super) fn endless(a: &Observation, b: &Observation) -> Option<String> {
    let is_lost = |fate: &Fate| match fate {
        Fate::Dropped(at, reason, _) if *reason == LOOP => Some(format!(
            "packets that go round in circles, past thousands of elements, are not compared: one \
             was given up at '{at}'"
        )),
        _ => None,
    };
    a.fates.iter().chain(&b.fates).find_map(is_lost)
}

/// Takes packets through the programs of two chains, from each of these inputs of the first and of
/// the second on. Only what becomes of packets counts: what state is good for shows in those that
/// follow.
pub fn run_pair(
    a: &Subject<'_>,
    b: &Subject<'_>,
    entries: &[(Port, Port)],
    judge: Judge<'_>,
    effort: Effort,
) -> Evidence {
    run_both(&Both { a: *a, b: *b, entries, judge, state: false }, effort).0
}

/// Tells whether two did the same with a packet.
pub type Judge<'a> = &'a (dyn Fn(&Observation, &Observation) -> Judgement + Sync);

/// What is compared.
struct Both<'a> {
    a: Subject<'a>,
    b: Subject<'a>,
    /// Inputs of the one and of the other.
    entries: &'a [(Port, Port)],
    judge: Judge<'a>,
    /// Whether state, reasons and the elements on the way count.
    state: bool,
}

fn run_both(subject: &Both<'_>, effort: Effort) -> (Evidence, Vec<Vec<Arrival>>) {
    let nothing =
        Evidence { packets: 0, sequences: 0, exits: (0, 0), disagreement: None, unclear: None };
    on_large_stack(|| run_here(subject, effort)).unwrap_or((nothing, Vec::new()))
}

fn run_here(subject: &Both<'_>, effort: Effort) -> (Evidence, Vec<Vec<Arrival>>) {
    let mut sequences = Vec::new();
    let mut random = Random(effort.seed);
    let mut evidence = Evidence {
        packets: 0,
        sequences: 0,
        exits: (0, subject.b.programs.iter().map(|p| p.exits().count()).sum()),
        disagreement: None,
        unclear: None,
    };
    let state = |s: &Subject<'_>| {
        s.models.iter().flat_map(|m| &m.state).any(|s| s.kind != StateKind::Counter)
    };
    let stateful = state(&subject.a) || state(&subject.b);
    let entries: Vec<Port> = subject.entries.iter().map(|e| e.0).collect();
    if entries.is_empty() {
        return (evidence, sequences);
    }
    let mut reached = HashMap::new();
    let share = (effort.packets / (2 * entries.len())).max(20);
    let mut queue: Vec<Arrival> = Vec::new();
    let mut aims = Vec::new();
    // Packets are aimed at the ways of both, and come to both at the input of the first.
    for &(at, there) in subject.entries {
        for (side, entry) in [(&subject.b, there), (&subject.a, at)] {
            let Some(program) = side.programs.iter().find(|p| p.entry == entry) else { continue };
            let aim = packets::Aim::new(program, at, side.graph, share, &mut random);
            let made = aim.packets.iter().cloned();
            queue.extend(made.map(|packet| Arrival { at, packet }));
            aims.push(aim);
        }
    }
    for packet in crate::witness::seeds() {
        queue.extend(entries.iter().map(|&at| Arrival { at, packet: packet.clone() }));
    }
    let mut next = queue.into_iter();
    let mut kept: Vec<Arrival> = Vec::new();
    while evidence.packets < effort.packets {
        let mut pair = Pair::new(subject);
        evidence.sequences += 1;
        let mut sequence = packets::Sequence::new(&aims, stateful);
        let length = if stateful { 24 } else { 64 };
        'sequence: for _ in 0..length {
            let arrival = match next.next() {
                Some(arrival) => {
                    kept.push(arrival.clone());
                    Some(arrival)
                }
                None => None,
            };
            // What was made to order comes twice where the second time may be unlike the first.
            let times = if stateful && arrival.is_some() { 2 } else { 1 };
            let arrival =
                arrival.unwrap_or_else(|| sequence.next(&kept, &pair.elements, &mut random));
            for _ in 0..times {
                let mut arrival = arrival.clone();
                sequence.stamp(&mut arrival, &pair.elements, &mut random);
                let (judgement, elements, programs) = pair.step(&arrival);
                evidence.packets += 1;
                sequence.seen(arrival, &elements);
                if let Judgement::Unclear(why) = judgement {
                    // From here on their state differs.
                    evidence.unclear.get_or_insert(why);
                    break 'sequence;
                }
                if judgement == Judgement::Different {
                    let sequence = shorten(subject, sequence.past());
                    evidence.disagreement = Some(sequence.unwrap_or(Disagreement {
                        sequence: Vec::new(),
                        elements,
                        programs,
                    }));
                    return (evidence, sequences);
                }
            }
        }
        sequences.push(sequence.past());
        for exit in pair.programs.exits() {
            *reached.entry(*exit).or_insert(0u64) += 1;
        }
    }
    evidence.exits.0 = reached.len();
    (evidence, sequences)
}

/// Both, in one state.
struct Pair<'a> {
    elements: Walk<'a>,
    programs: Walk<'a>,
    both: &'a Both<'a>,
}

impl<'a> Pair<'a> {
    fn new(both: &'a Both<'a>) -> Self {
        Self { elements: Walk::new(&both.a), programs: Walk::new(&both.b), both }
    }

    fn step(&mut self, arrival: &Arrival) -> (Judgement, Observation, Observation) {
        let entry = self.both.entries.iter().find(|e| e.0 == arrival.at);
        let there = entry.map_or(arrival.at, |e| e.1);
        let mut a = self.elements.step(arrival);
        let mut b = self.programs.step(&Arrival { at: there, packet: arrival.packet.clone() });
        if !self.both.state {
            a.only_fates();
            b.only_fates();
        } else if self.elements.store() != self.programs.store() {
            (a.state, b.state) = (self.elements.state(), self.programs.state());
        }
        ((self.both.judge)(&a, &b), a, b)
    }
}

/// What the two do with the last packet of a sequence, if they differ then for the first time.
fn replay(subject: &Both<'_>, sequence: &[Arrival]) -> Option<(Observation, Observation)> {
    let mut pair = Pair::new(subject);
    for (i, arrival) in sequence.iter().enumerate() {
        let (judgement, a, b) = pair.step(arrival);
        if judgement != Judgement::Same {
            let last = judgement == Judgement::Different && i + 1 == sequence.len();
            return last.then_some((a, b));
        }
    }
    None
}

/// A shorter sequence, and a simpler packet, on which the two still differ.
fn shorten(subject: &Both<'_>, mut sequence: Vec<Arrival>) -> Option<Disagreement> {
    let mut found = replay(subject, &sequence)?;
    // Without everything before, without halves, without one at a time.
    let mut size = sequence.len();
    while size > 0 {
        let mut from = 0;
        while from + size < sequence.len() {
            let mut fewer = sequence.clone();
            fewer.drain(from..from + size);
            match replay(subject, &fewer) {
                Some(still) => (sequence, found) = (fewer, still),
                None => from += size,
            }
        }
        size /= 2;
    }
    for simpler in packets::simplifications() {
        let mut other = sequence.clone();
        let changed = other.last_mut().is_some_and(|last| simpler(&mut last.packet));
        if let Some(still) = changed.then(|| replay(subject, &other)).flatten() {
            (sequence, found) = (other, still);
        }
    }
    Some(Disagreement { sequence, elements: found.0, programs: found.1 })
}
