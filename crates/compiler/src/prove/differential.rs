//! A chain's programs against its elements' models, packet by packet.
//!
//! Packets are made for the programs' paths and from ordinary ones by small changes; where there is
//! state they come in sequences, with answers, TCP flags and time passing. For paths that lead
//! through tables of flows, the flows are made, too. The reference is the interpretation of one
//! model after the other, so a mistake in what makes programs from models is seen here.

pub(super) mod packets;
mod walk;

use std::collections::HashSet;

use ir::model::StateKind;
use ir::program::StepId;
use ir::{Graph, Model, Op, Port, Program, Store};

use walk::LOOP;
pub use walk::Walk;

use super::{Fate, Held, Judgement, Observation, on_large_stack};
use crate::prove::witness::{Random, START, Witness};

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

/// Packets that come one after the other to a chain in its first state.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Flows that are in its tables then.
    pub flows: Vec<Held>,
    /// The packets.
    pub arrivals: Vec<Arrival>,
}

/// Packets after which the two differ.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The packets; the two differ in what the last does.
    pub sequence: Sequence,
    /// What the elements, or the first chain, do with it.
    pub elements: Observation,
    /// What the programs, or the second chain, do with it.
    pub programs: Observation,
}

/// What was tried and found.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// How many packets went through both modes.
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

/// The same; also gives the sequences of packets, for other modes.
pub fn record(subject: &Subject<'_>, effort: Effort) -> (Evidence, Vec<Sequence>) {
    let nothing =
        Evidence { packets: 0, sequences: 0, exits: (0, 0), disagreement: None, unclear: None };
    on_large_stack(|| run_here(subject, effort)).unwrap_or((nothing, Vec::new()))
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

/// Whether what becomes of a packet may depend on those before.
pub(super) fn is_stateful(models: &[Model]) -> bool {
    models.iter().flat_map(|m| &m.state).any(|s| s.kind != StateKind::Counter)
}

fn run_here(subject: &Subject<'_>, effort: Effort) -> (Evidence, Vec<Sequence>) {
    let mut random = Random(effort.seed);
    let mut run = Run::new(subject);
    let stateful = is_stateful(subject.models);
    let entries: Vec<Port> = subject.programs.iter().map(|program| program.entry).collect();
    if entries.is_empty() {
        return run.ended();
    }
    let share = (effort.packets / (2 * entries.len())).max(20);
    let mut queue: Vec<Arrival> = Vec::new();
    let mut of_flows: Vec<(Arrival, Vec<Held>)> = Vec::new();
    let mut aims = Vec::new();
    for program in subject.programs {
        let at = program.entry;
        let mut aim = packets::Aim::new(program, at, subject.graph, share, &mut random);
        for (packet, flows) in std::mem::take(&mut aim.packets) {
            let arrival = Arrival { at, packet };
            queue.push(arrival.clone());
            if !flows.is_empty() {
                of_flows.push((arrival, flows));
            }
        }
        aims.push(aim);
    }
    for packet in crate::prove::witness::seeds() {
        queue.extend(entries.iter().map(|&at| Arrival { at, packet: packet.clone() }));
    }
    let mut next = queue.into_iter();
    let mut kept: Vec<Arrival> = Vec::new();
    // Those come last: a difference of packets alone is easier to follow.
    let others = effort.packets.saturating_sub(of_flows.len()).max(1);
    while run.evidence.packets < others {
        let mut pair = Pair::new(subject, Vec::new());
        let mut traffic = packets::Traffic::new(&aims, stateful);
        let left = others - run.evidence.packets;
        let length = left.min(if stateful { 24 } else { 64 });
        'sequence: for _ in 0..length {
            let made = next.next();
            kept.extend(made.clone());
            // What was made to order comes twice where the second time may be unlike the first.
            let times = if stateful && made.is_some() { 2 } else { 1 };
            let arrival = made.unwrap_or_else(|| {
                let (past, store) = (&pair.past.arrivals, pair.elements.store());
                traffic.next(&kept, past, store, &mut random)
            });
            for _ in 0..times {
                let mut arrival = arrival.clone();
                traffic.stamp(&mut arrival, &pair.elements, &mut random);
                match run.step(&mut pair, &arrival) {
                    Some(elements) => traffic.seen(&elements),
                    None => break 'sequence,
                }
            }
        }
        run.end(pair);
        if run.evidence.disagreement.is_some() {
            return run.ended();
        }
    }
    for (arrival, flows) in of_flows {
        let mut pair = Pair::new(subject, flows);
        run.step(&mut pair, &arrival);
        run.end(pair);
        if run.evidence.disagreement.is_some() {
            break;
        }
    }
    run.ended()
}

/// What came of sequences so far.
struct Run<'a> {
    subject: &'a Subject<'a>,
    evidence: Evidence,
    sequences: Vec<Sequence>,
    /// Exits that packets came to, by their program's entry.
    exits: HashSet<(Port, StepId)>,
}

impl<'a> Run<'a> {
    fn new(subject: &'a Subject<'a>) -> Self {
        let evidence = Evidence {
            packets: 0,
            sequences: 0,
            exits: (0, subject.programs.iter().map(|p| p.exits().count()).sum()),
            disagreement: None,
            unclear: None,
        };
        Self { subject, evidence, sequences: Vec::new(), exits: HashSet::new() }
    }

    /// Takes a packet through both; what the elements did with it if the programs did the same.
    fn step(&mut self, pair: &mut Pair<'_>, arrival: &Arrival) -> Option<Observation> {
        let (judgement, elements, programs) = pair.step(arrival);
        self.evidence.packets += 1;
        match judgement {
            Judgement::Same => return Some(elements),
            // Flows that are made to order may lead round in circles, as those of packets do not.
            Judgement::Unclear(_) if !pair.past.flows.is_empty() => {}
            Judgement::Unclear(why) => {
                // From here on their state differs.
                self.evidence.unclear.get_or_insert(why);
            }
            Judgement::Different => {
                let found = shorten(self.subject, pair.past.clone());
                self.evidence.disagreement = Some(found.unwrap_or(Disagreement {
                    sequence: Sequence::default(),
                    elements,
                    programs,
                }));
            }
        }
        None
    }

    /// A sequence is over.
    fn end(&mut self, pair: Pair<'_>) {
        self.evidence.sequences += 1;
        self.exits.extend(pair.programs.exits());
        self.sequences.push(pair.past);
    }

    fn ended(mut self) -> (Evidence, Vec<Sequence>) {
        self.evidence.exits.0 = self.exits.len();
        (self.evidence, self.sequences)
    }
}

/// Both, in one state.
struct Pair<'a> {
    elements: Walk<'a>,
    programs: Walk<'a>,
    past: Sequence,
}

impl<'a> Pair<'a> {
    fn new(subject: &'a Subject<'a>, flows: Vec<Held>) -> Self {
        let mut elements = Walk::new(&Subject { programs: &[], ..*subject });
        let mut programs = Walk::new(subject);
        elements.hold(&flows, START);
        programs.hold(&flows, START);
        Self { elements, programs, past: Sequence { flows, arrivals: Vec::new() } }
    }

    fn step(&mut self, arrival: &Arrival) -> (Judgement, Observation, Observation) {
        let mut a = self.elements.step(arrival);
        let mut b = self.programs.step(arrival);
        if self.elements.store() != self.programs.store() {
            (a.state, b.state) = (self.elements.state(), self.programs.state());
        }
        self.past.arrivals.push(arrival.clone());
        (whole(&a, &b), a, b)
    }
}

/// What the two do with the last packet of a sequence, if they differ then for the first time.
fn replay(subject: &Subject<'_>, sequence: &Sequence) -> Option<(Observation, Observation)> {
    let mut pair = Pair::new(subject, sequence.flows.clone());
    for (i, arrival) in sequence.arrivals.iter().enumerate() {
        let (judgement, a, b) = pair.step(arrival);
        if judgement != Judgement::Same {
            let last = judgement == Judgement::Different && i + 1 == sequence.arrivals.len();
            return last.then_some((a, b));
        }
    }
    None
}

/// A shorter sequence, and a simpler packet, on which the two still differ.
fn shorten(subject: &Subject<'_>, mut sequence: Sequence) -> Option<Disagreement> {
    let mut found = replay(subject, &sequence)?;
    // Without everything before, without halves, without one at a time.
    let mut size = sequence.arrivals.len();
    while size > 0 {
        let mut from = 0;
        while from + size < sequence.arrivals.len() {
            let mut fewer = sequence.clone();
            fewer.arrivals.drain(from..from + size);
            match replay(subject, &fewer) {
                Some(still) => (sequence, found) = (fewer, still),
                None => from += size,
            }
        }
        size /= 2;
    }
    for simpler in packets::simplifications() {
        let mut other = sequence.clone();
        let changed = other.arrivals.last_mut().is_some_and(|last| simpler(&mut last.packet));
        if let Some(still) = changed.then(|| replay(subject, &other)).flatten() {
            (sequence, found) = (other, still);
        }
    }
    Some(Disagreement { sequence, elements: found.0, programs: found.1 })
}
