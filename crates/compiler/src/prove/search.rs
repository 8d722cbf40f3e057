//! The search for packets that show that two chains differ.
//!
//! Candidates come from where the chains' programs differ, from all their paths, and from small
//! changes of those packets; in sequences, with answers and time passing, where there is state. To
//! find them, elements that hold packets back are taken to pass them on. Both chains run with them
//! then, and only what leaves them counts.

use ir::{Model, NodeId, Op, Port, Processing};

use super::differential::packets::{Aim, Traffic, simplifications};
use super::differential::{Arrival, Effort, Evidence, Subject, Walk, is_stateful};
use super::on_large_stack;
use super::replay::{Incoming, Replay, Sent, Shown};
use super::subjects::Subjects;
use crate::prove::witness::{Random, START, Witness, seeds};

/// Sequences of packets to chains with state have so many.
const LENGTH: usize = 24;

/// Bytes of a frame that a source gives, at the most: no capture holds a longer one.
const LONGEST: usize = 65_535;

/// How often chains run, at the most, to make a witness shorter.
const RUNS: usize = 160;

/// An output of sources, and where it leads.
pub(super) struct Entry {
    /// The source in each chain; none where a chain lacks it.
    pub(super) source: [Option<NodeId>; 2],
    /// The inputs that packets of it come to.
    pub(super) at: [Option<Port>; 2],
}

/// A chain in which elements pass on at once what they hold back or send out.
pub(super) fn opened(chain: &Subjects) -> Subjects {
    let mut opened = chain.clone();
    for (node, model) in opened.graph.nodes.iter_mut().zip(&mut opened.models) {
        if model.is_opaque() && !node.inputs.is_empty() && !node.outputs.is_empty() {
            *model = Model::from_block(vec![Op::emit(0u8)]);
        }
        node.inputs.iter_mut().for_each(|input| *input = Processing::Push);
    }
    opened
}

/// Looks for packets that two chains treat otherwise, candidates first: by the number of their
/// entries.
pub(super) fn search(
    chains: &[Subject<'_>; 2],
    entries: &[Entry],
    candidates: Vec<(usize, Witness)>,
    effort: Effort,
    replay: &mut dyn Replay,
) -> (Evidence, Option<Shown>) {
    let nothing =
        Evidence { packets: 0, sequences: 0, exits: (0, 0), disagreement: None, unclear: None };
    let search = || {
        let mut search = Search { chains, entries, replay, evidence: nothing.clone() };
        let shown = search.run(candidates, effort);
        (search.evidence, shown)
    };
    on_large_stack(search).unwrap_or((nothing, None))
}

struct Search<'a> {
    chains: &'a [Subject<'a>; 2],
    entries: &'a [Entry],
    replay: &'a mut dyn Replay,
    evidence: Evidence,
}

impl Search<'_> {
    fn run(&mut self, candidates: Vec<(usize, Witness)>, effort: Effort) -> Option<Shown> {
        // What sources make by themselves, and time.
        self.evidence.sequences = 1;
        if let Some(shown) = self.shown(Vec::new()) {
            return Some(shown);
        }
        let fed: Vec<usize> =
            (0..self.entries.len()).filter(|&number| self.is_fed(number)).collect();
        if fed.is_empty() {
            return None;
        }
        let mut random = Random(effort.seed);
        // Entries stand in for the inputs of one chain or the other.
        let place = |number: usize| Port { node: number, port: 0 };
        let mut queue: Vec<Arrival> = Vec::new();
        for (number, packet) in candidates {
            if fed.contains(&number) {
                queue.push(Arrival { at: place(number), packet });
            }
        }
        let share = (effort.packets / (2 * fed.len())).max(20);
        let mut aims = Vec::new();
        for &number in &fed {
            for (side, at) in self.entries[number].at.into_iter().enumerate().rev() {
                let of = &self.chains[side];
                let Some(program) = of.programs.iter().find(|p| Some(p.entry) == at) else {
                    continue;
                };
                let mut aim = Aim::new(program, place(number), of.graph, share, &mut random);
                let made = std::mem::take(&mut aim.packets).into_iter();
                queue.extend(made.map(|(packet, _)| Arrival { at: place(number), packet }));
                aims.push(aim);
            }
        }
        for packet in seeds() {
            let arrival = |&number: &usize| Arrival { at: place(number), packet: packet.clone() };
            queue.extend(fed.iter().map(arrival));
        }
        let stateful = self.chains.iter().any(|chain| is_stateful(chain.models));
        let most = effort.packets.max(queue.len().min(2 * effort.packets));
        let mut next = queue.into_iter();
        let mut kept: Vec<Arrival> = Vec::new();
        while self.evidence.packets < most {
            let chains = self.chains;
            let mut walk = Walk::new(&chains[0]);
            let mut traffic = Traffic::new(&aims, stateful);
            let (mut sequence, mut past) = (Vec::new(), Vec::new());
            let left = most - self.evidence.packets;
            let length = if stateful { left.min(LENGTH) } else { left };
            while sequence.len() < length {
                let made = next.next();
                kept.extend(made.clone());
                // What was made to order comes twice where the second time may be unlike the first.
                let times = if stateful && made.is_some() { 2 } else { 1 };
                let arrival =
                    made.unwrap_or_else(|| traffic.next(&kept, &past, walk.store(), &mut random));
                for _ in 0..times {
                    let mut arrival = arrival.clone();
                    traffic.stamp(&mut arrival, &walk, &mut random);
                    let entry = &self.entries[arrival.at.node];
                    let Witness { mut frame, now, .. } = arrival.packet.clone();
                    frame.truncate(LONGEST);
                    sequence.push(Incoming { at: entry.source, frame: frame.clone(), now });
                    arrival.packet = received(frame, now);
                    if let Some(at) = entry.at[0] {
                        let packet = arrival.packet.clone();
                        traffic.seen(&walk.step(&Arrival { at, packet }));
                    }
                    past.push(arrival);
                }
            }
            self.evidence.packets += sequence.len();
            self.evidence.sequences += 1;
            if let Some(shown) = self.shown(sequence) {
                return Some(self.shortened(shown));
            }
        }
        None
    }

    fn is_fed(&self, entry: usize) -> bool {
        let sources = self.entries[entry].source.into_iter().enumerate();
        let mut is_fed = sources.filter_map(|(side, source)| Some((side, source?)));
        is_fed.any(|(side, source)| self.replay.is_fed(side, source))
    }

    fn shown(&mut self, sequence: Vec<Incoming>) -> Option<Shown> {
        let left = self.replay.difference(&sequence)?;
        Some(Shown { sequence, left })
    }

    /// Fewer packets, and simpler ones, that still show a difference.
    fn shortened(&mut self, mut shown: Shown) -> Shown {
        let mut runs = 0;
        let mut attempt = |this: &mut Self, shown: &mut Shown, sequence: Vec<Incoming>| {
            runs += 1;
            let found = if runs > RUNS { None } else { this.shown(sequence) };
            let is_shown = found.is_some();
            if let Some(found) = found {
                *shown = found;
            }
            is_shown
        };
        // Up to the first packet after which they differ; of those before, as few as possible.
        let first = shown.only().into_iter().flatten().map(|sent: &Sent| sent.after).min();
        if let Some(end) = first.filter(|&end| (1..=shown.sequence.len()).contains(&end)) {
            let alone = vec![shown.sequence[end - 1].clone()];
            let until = shown.sequence[..end].to_vec();
            if !attempt(self, &mut shown, alone) && end < shown.sequence.len() {
                attempt(self, &mut shown, until);
            }
        }
        let mut size = shown.sequence.len();
        while size > 0 {
            let mut from = 0;
            while from + size < shown.sequence.len() {
                let mut fewer = shown.sequence.clone();
                fewer.drain(from..from + size);
                if !attempt(self, &mut shown, fewer) {
                    from += size;
                }
            }
            size /= 2;
        }
        for simpler in simplifications() {
            let mut sequence = shown.sequence.clone();
            let Some(last) = sequence.last_mut() else { break };
            let mut packet = Witness::new(std::mem::take(&mut last.frame));
            if simpler(&mut packet) {
                last.frame = packet.frame;
                attempt(self, &mut shown, sequence);
            }
        }
        // At once, if time does not matter.
        if shown.sequence.iter().any(|incoming| incoming.now != START) {
            let mut sequence = shown.sequence.clone();
            sequence.iter_mut().for_each(|incoming| incoming.now = START);
            attempt(self, &mut shown, sequence);
        }
        shown
    }
}

/// A frame as a device hands it on.
fn received(frame: Vec<u8>, now: u64) -> Witness {
    let packet_type = match frame.first() {
        Some(_) if frame.starts_with(&[0xff; 6]) => net::PacketType::Broadcast,
        Some(first) if first & 1 == 1 => net::PacketType::Multicast,
        _ => net::PacketType::Host,
    };
    let marks = [Some(0), None, None];
    Witness { marks, packet_type, timestamp: now, now, ..Witness::new(frame) }
}
