//! Packets that may tell two execution modes apart.

use std::ops::Range;

use ir::field::{eth, icmp, ip, tcp, transport};
use ir::layout::{Header, Kind, Layout};
use ir::program::{LookupId, TermId};
use ir::state::StateValue;
use ir::{Field, Graph, IntervalSet, Port, Program, Store};
use net::checksum::checksum;

use super::{Arrival, Walk};
use crate::prove::decisions::{Decisions, View};
use crate::prove::witness::{Goal, Random, START, Witness, paths, seeds, solve};
use crate::prove::{Assumed, Fate, Held, Observation, goals, held};

/// Paths to a lookup that are remembered.
const HITS: usize = 3;

/// Packets that the search for a path begins with.
const ATTEMPTS: usize = 4;

/// What packets for a program are made from.
pub(in crate::prove) struct Aim {
    at: Port,
    decisions: Decisions,
    seeds: Vec<Witness>,
    /// Packets that each take another path, and the flows that are found on it.
    pub(in crate::prove) packets: Vec<(Witness, Vec<Held>)>,
    /// Lookups that find a flow, and what leads to them.
    hits: Vec<(LookupId, Vec<Goal>)>,
}

impl Aim {
    /// Makes at most `limit` packets for a program.
    pub(in crate::prove) fn new(
        program: &Program,
        at: Port,
        graph: &Graph,
        limit: usize,
        random: &mut Random,
    ) -> Self {
        let mut decisions = Decisions::default();
        let name = |node: ir::NodeId| graph.nodes[node].name.clone();
        let start = decisions.import(program, View::Whole, &name, &|node, _| name(node));
        let seeds = seeds();
        let (mut packets, mut hits) = (Vec::new(), Vec::<(LookupId, Vec<Goal>)>::new());
        for path in paths(&decisions, start, limit, random) {
            let (all, found) = goals(&decisions, &path);
            let from = &seeds[random.below(seeds.len() - ATTEMPTS)..];
            if let Some(values) = solve(&decisions.arena, &all, from, ATTEMPTS, random) {
                let flows = held(&[program], &decisions, &found, &values);
                packets.push((values.witness, flows));
            }
            for (i, assumed) in path.iter().enumerate() {
                let Assumed::Lookup(lookup, true) = assumed else { continue };
                if hits.iter().filter(|(l, _)| l == lookup).count() < HITS {
                    hits.push((*lookup, goals(&decisions, &path[..i]).0));
                }
            }
        }
        Self { at, decisions, seeds, packets, hits }
    }

    /// A packet of a flow that is in a table, in either direction.
    fn of_flow(&self, store: &Store, random: &mut Random) -> Option<Arrival> {
        let (lookup, goals) = self.hits.get(random.below(self.hits.len()))?;
        let lookup = self.decisions.arena.lookup(*lookup);
        let Some(StateValue::Flows(flows)) = store.get(&lookup.table.0, lookup.table.1) else {
            return None;
        };
        let flow = flows.iter().nth(random.below(flows.len()))?;
        let key = &flow.keys[random.below(2)];
        let mut goals = goals.clone();
        let same = |(&term, &value): (&TermId, &u128)| Goal::Set(term, IntervalSet::single(value));
        goals.extend(lookup.key.iter().zip(key).map(same));
        let found = solve(&self.decisions.arena, &goals, &self.seeds, 2, random)?;
        Some(Arrival { at: self.at, packet: found.witness })
    }
}

/// The outermost IPv4 header of a packet.
fn ipv4(frame: &[u8]) -> Option<Header> {
    let layout = Layout::of_bytes(frame);
    layout.headers().iter().find(|header| header.kind == Kind::Ipv4).copied()
}

/// The bytes that a field takes in a packet.
fn place(frame: &[u8], field: Field) -> Option<Range<usize>> {
    let bit = Layout::of_bytes(frame).header_of(field)?.bit(field);
    let first = usize::try_from(bit / 8).ok()?;
    let range = first..first + usize::from(field.width).div_ceil(8);
    (range.end <= frame.len()).then_some(range)
}

/// Sets a field of whole bytes, if the packet has it; says whether that changes it.
fn set(frame: &mut [u8], field: Field, number: u32) -> bool {
    let Some(range) = place(frame, field) else { return false };
    let number = number.to_be_bytes();
    let new = &number[number.len() - range.len()..];
    let changed = frame[range.clone()] != *new;
    frame[range].copy_from_slice(new);
    changed
}

/// Swaps two fields of one width.
fn swap(frame: &mut [u8], one: Field, other: Field) {
    if let (Some(one), Some(other)) = (place(frame, one), place(frame, other)) {
        one.zip(other).for_each(|(one, other)| frame.swap(one, other));
    }
}

/// Makes the IPv4 header's checksum right.
fn mend(frame: &mut [u8]) {
    let Some(header) = ipv4(frame) else { return };
    set(frame, ip::CHECKSUM, 0);
    let start = header.offset as usize;
    if let Some(bytes) = frame.get(start..start + usize::from(header.length)) {
        let sum = checksum(bytes);
        set(frame, ip::CHECKSUM, sum.into());
    }
}

/// How many bytes there are from the IPv4 header on.
fn left(frame: &[u8]) -> Option<u16> {
    Some((frame.len() - ipv4(frame)?.offset as usize) as u16)
}

/// Makes the IPv4 header's length that of the packet; says whether it was not.
fn fit(frame: &mut [u8]) -> bool {
    let Some(length) = left(frame) else { return false };
    let changed = set(frame, ip::LEN, length.into());
    mend(frame);
    changed
}

/// A packet changed a little.
fn mutate(packet: &Witness, random: &mut Random) -> Witness {
    let mut other = packet.clone();
    let frame = &mut other.frame;
    for _ in 0..=random.below(2) {
        match (random.below(12), left(frame)) {
            (0, _) => {
                let to = random.below(frame.len() + 1);
                frame.truncate(to);
            }
            (1, _) => {
                let to = frame.len() + random.below(40);
                frame.resize(to, 0x5a);
            }
            (2, _) => {
                let at = random.below(48);
                other.annotations[at] = random.next() as u8;
            }
            (3, Some(_)) => _ = set(frame, ip::TTL, [0, 1, 2, 3, 64, 255][random.below(6)]),
            (4, Some(_)) => _ = set(frame, ip::PROTO, [1, 2, 6, 17, 33, 50][random.below(6)]),
            (5, Some(_)) => {
                let value = [0, 1, 0x2000, 0x2001, 0x4000, 0x8000][random.below(6)];
                set(frame, ip::FLAGS_FRAG, value);
            }
            (6, Some(_)) => {
                let address =
                    [0u32, u32::MAX, 0x0a00_0001, 0x1400_0001, 0xe000_0001, random.next() as u32]
                        [random.below(6)];
                set(frame, if random.once_in(2) { ip::SRC } else { ip::DST }, address);
            }
            (7, Some(length)) => {
                let value = [length, length.wrapping_add(1), length.saturating_sub(1), 20, 19]
                    [random.below(5)];
                set(frame, ip::LEN, value.into());
            }
            (8, Some(_)) => {
                if let Some(at) = place(frame, ip::VERSION) {
                    frame[at.start] = 0x40 | [4, 5, 6, 8, 15][random.below(5)];
                }
            }
            (9, Some(_)) => {
                let port = [0u16, 1, 22, 53, 80, 443, 1023, 1024, 65535, random.next() as u16]
                    [random.below(10)];
                let field = if random.once_in(2) { transport::SPORT } else { transport::DPORT };
                set(frame, field, port.into());
            }
            _ => {
                if !frame.is_empty() {
                    let at = random.below(frame.len().min(64));
                    frame[at] ^= 1 << random.below(8);
                }
            }
        }
    }
    if !random.once_in(5) {
        mend(frame);
    }
    other
}

/// The answer to a packet: addresses and ports swapped.
fn answer(packet: &Witness, random: &mut Random) -> Option<Witness> {
    let mut other = Witness::new(packet.frame.clone());
    let frame = &mut other.frame;
    ipv4(frame)?;
    for (one, other) in
        [(eth::DST, eth::SRC), (ip::SRC, ip::DST), (transport::SPORT, transport::DPORT)]
    {
        swap(frame, one, other);
    }
    if let Some(kind) = place(frame, icmp::TYPE) {
        let kind = &mut frame[kind.start];
        *kind = if *kind == 8 { 0 } else { 8 };
    }
    flags(frame, random);
    set(frame, ip::TTL, 64);
    mend(frame);
    Some(other)
}

/// Sets some TCP flags.
fn flags(frame: &mut [u8], random: &mut Random) {
    set(frame, tcp::FLAGS, [0x02, 0x12, 0x10, 0x18, 0x11, 0x01, 0x04, 0x14][random.below(8)]);
}

/// Packets that follow one another through a chain with state.
pub(in crate::prove) struct Traffic<'a> {
    aims: &'a [Aim],
    stateful: bool,
    now: u64,
    /// Packets as they came out.
    came: Vec<Witness>,
}

impl<'a> Traffic<'a> {
    pub(in crate::prove) fn new(aims: &'a [Aim], stateful: bool) -> Self {
        Self { aims, stateful, now: START, came: Vec::new() }
    }

    /// The next packet: like one before, an answer, or another.
    pub(in crate::prove) fn next(
        &mut self,
        kept: &[Arrival],
        past: &[Arrival],
        store: &Store,
        random: &mut Random,
    ) -> Arrival {
        let any = |random: &mut Random| kept.get(random.below(kept.len())).cloned();
        let entry = |random: &mut Random| self.aims[random.below(self.aims.len())].at;
        if self.stateful && !past.is_empty() {
            let before = past[random.below(past.len())].clone();
            match random.below(8) {
                0 => return before,
                4 | 5 => {
                    let aim = &self.aims[random.below(self.aims.len())];
                    if let Some(mut arrival) = aim.of_flow(store, random) {
                        flags(&mut arrival.packet.frame, random);
                        return arrival;
                    }
                }
                1 | 2 => {
                    let out = self.came.get(random.below(self.came.len()));
                    let answered = out.and_then(|out| answer(out, random));
                    if let Some(packet) = answered {
                        return Arrival { at: entry(random), packet };
                    }
                }
                3 => {
                    let mut again = before;
                    flags(&mut again.packet.frame, random);
                    return again;
                }
                _ => {}
            }
        }
        let base = any(random).unwrap_or_else(|| {
            let seeds = seeds();
            let packet = seeds[random.below(seeds.len())].clone();
            Arrival { at: entry(random), packet }
        });
        Arrival { at: base.at, packet: mutate(&base.packet, random) }
    }

    /// Says when a packet comes: mostly soon, at times just when a flow expires.
    pub(in crate::prove) fn stamp(
        &mut self,
        arrival: &mut Arrival,
        walk: &Walk<'_>,
        random: &mut Random,
    ) {
        if self.stateful {
            let expiries: Vec<u64> = walk
                .store()
                .iter()
                .filter_map(|(_, _, value)| match value {
                    StateValue::Flows(flows) => Some(flows),
                    _ => None,
                })
                .flat_map(|flows| flows.iter())
                .flat_map(|flow| [flow.expiry, flow.guarantee])
                .filter(|&time| time > self.now && time < u64::MAX / 2)
                .collect();
            let step = match random.below(12) {
                0..=5 => 0,
                6 | 7 => 1_000_000,
                8 => 1_000_000_000,
                9 => 61_000_000_000,
                _ => match expiries.get(random.below(expiries.len())) {
                    Some(expiry) => expiry - self.now - random.next() % 2,
                    None => 0,
                },
            };
            self.now = self.now.saturating_add(step);
        }
        arrival.packet.now = self.now;
    }

    /// Remembers what a packet became.
    pub(in crate::prove) fn seen(&mut self, observed: &Observation) {
        for fate in &observed.fates {
            if let Fate::Arrived(_, packet) = fate {
                self.came.push((**packet).clone());
            }
        }
    }
}

pub(in crate::prove) type Simplification = Box<dyn Fn(&mut Witness) -> bool>;

/// Changes that make a packet easier to read; each says whether it changed something.
pub(in crate::prove) fn simplifications() -> Vec<Simplification> {
    let mut all: Vec<Simplification> = vec![
        Box::new(|packet| {
            let changed = packet.annotations.iter().any(|&b| b != 0);
            packet.annotations.fill(0);
            changed
        }),
        Box::new(|packet| std::mem::take(&mut packet.timestamp) != 0),
    ];
    for keep in [14usize, 20, 34, 42, 54, 60, 64] {
        all.push(Box::new(move |packet| {
            let longer = packet.frame.len() > keep;
            packet.frame.truncate(keep);
            longer
        }));
        // As a whole packet.
        all.push(Box::new(move |packet| {
            let longer = packet.frame.len() > keep;
            packet.frame.truncate(keep);
            fit(&mut packet.frame);
            longer
        }));
    }
    // What stands in the packet is made ordinary, as far as it does not matter.
    let seed = seeds().into_iter().next().map_or_else(Vec::new, |seed| seed.frame);
    let put = |field: Field| -> Simplification {
        let seed = seed.clone();
        Box::new(move |packet| {
            let (from, to) = (place(&seed, field), place(&packet.frame, field));
            let (Some(from), Some(to), Some(_)) = (from, to, ipv4(&packet.frame)) else {
                return false;
            };
            let changed = packet.frame[to.clone()] != seed[from.clone()];
            packet.frame[to].copy_from_slice(&seed[from]);
            mend(&mut packet.frame);
            changed
        })
    };
    let ports = [transport::SPORT, transport::DPORT];
    let of_ip = [ip::TOS, ip::ID, ip::FLAGS_FRAG, ip::TTL, ip::SRC, ip::DST];
    all.extend([eth::DST, eth::SRC, eth::TYPE].into_iter().chain(of_ip).chain(ports).map(put));
    all.push(Box::new(|packet| fit(&mut packet.frame)));
    for from in (0..64).step_by(4) {
        all.push(Box::new(move |packet| {
            let Some(ports) = place(&packet.frame, transport::DPORT) else { return false };
            let at = ports.end + 4 + from;
            let end = packet.frame.len().min(at + 4);
            let Some(bytes) = packet.frame.get_mut(at..end) else { return false };
            let changed = bytes.iter().any(|&b| b != 0);
            bytes.fill(0);
            changed
        }));
    }
    all
}
