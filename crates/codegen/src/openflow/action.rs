//! What an exit writes as actions of a switch.
//!
//! Fields that are set to constants, time to live that decreases and tags that are pushed or popped
//! are read off an exit. What a switch does besides, above all with checksums, is then imitated on
//! packets made for it: an exit can be done if the same bytes leave. That suffices here, as what was
//! emitted is read back and proven.

use ir::layout::{Kind, Layout};
use ir::program::{Exit, Program, Term, TermId, Writes};
use net::wire::ether_type;

use super::Dialect;
use super::condition::{Conditions, Match, Sends, Sight, TAGGED};
use crate::Lack;
use crate::number::{Rows, evaluate, ones};
use crate::rule::{Key as _, Packets};

/// What is done to a packet, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Action {
    /// Takes a tag off.
    PopTag,
    /// Puts a tag of a type on.
    PushTag(u16),
    /// Sets a field; a VLAN ID with its bit [`TAGGED`].
    Set(Match, u128),
    /// Counts the time to live down by one.
    Age,
}

/// Packets that an exit is tried on.
const SAMPLES: usize = 24;

/// Routers that a packet can pass at once.
const MOST_HOPS: u128 = 32;

/// What an exit's actions are, and what must be known of packets there.
///
/// # Errors
/// What the switch cannot do.
pub(super) fn sends(
    dialect: Dialect,
    packets: Packets<'_>,
    exit: &Exit,
    rows: &Rows,
) -> Result<Sends, Lack> {
    let writes = &exit.writes;
    if writes.length.is_some() {
        return Err(Lack::Cut);
    }
    let beside = writes.packet_type.is_some() || writes.timestamp.is_some();
    if beside
        || !writes.annotations.is_empty()
        || writes.marks.iter().any(|m| *m != Default::default())
    {
        return Err(Lack::Write("what no frame shows".into()));
    }
    if !writes.carried.is_empty() {
        return Err(Lack::Found);
    }
    let Packets { program, layout } = packets;
    let sight = Sight { dialect, packets };
    let change = Change { program, layout, writes, rows, sight };
    let (mut actions, mut needs) = change.tags()?;
    change.addresses(&mut actions)?;
    change.network(&mut actions, &mut needs)?;
    let hops = change.hops(&actions)?;
    actions.extend((0..hops.0).map(|_| Action::Age));
    if hops.0 > 0 {
        needs = change.with(&needs, Kind::Ipv4)?;
    }
    change.try_out(&actions, hops.1)?;
    Ok(Sends { actions, needs })
}

struct Change<'a> {
    program: &'a Program,
    layout: &'a Layout,
    writes: &'a Writes,
    rows: &'a Rows,
    sight: Sight<'a>,
}

/// What becomes of bits.
enum Bits {
    /// They stay.
    Same,
    /// They become this.
    Constant(u128),
    /// They are computed.
    Computed,
}

impl Change<'_> {
    fn header(&self, kind: Kind) -> Option<&ir::layout::Header> {
        self.layout.headers().iter().find(|header| header.kind == kind && header.depth == 0)
    }

    /// Conditions with those of a header.
    fn with(&self, needs: &Conditions, kind: Kind) -> Result<Conditions, Lack> {
        let header = self.header(kind);
        let more = header.and_then(|header| self.sight.needs(header));
        more.and_then(|more| needs.and(&more)).ok_or(Lack::Field(kind.name().into()))
    }

    /// What becomes of a bit of the data as it came in, or before it: of which bit, or which constant.
    fn bit(&self, at: i32) -> Option<Result<i32, bool>> {
        let byte = at.div_euclid(8);
        let inside =
            |w: &&ir::program::Write| (w.offset..w.offset + i32::from(w.length)).contains(&byte);
        let Some(write) = self.writes.bytes.iter().find(inside) else { return Some(Ok(at)) };
        let end = 8 * (write.offset + i32::from(write.length));
        self.bit_of(write.value, (end - 1 - at) as u32)
    }

    /// The bit that a bit of a term is; the lowest is 0.
    fn bit_of(&self, mut term: TermId, mut low: u32) -> Option<Result<i32, bool>> {
        // Every turn goes to an earlier term.
        loop {
            match self.program.term(term) {
                Term::Input(field) if field.base == ir::Base::Data => {
                    let within = low < u32::from(field.width);
                    let at = i32::from(field.offset + field.width) - 1 - low as i32;
                    return Some(if within { Ok(at) } else { Err(false) });
                }
                Term::Slice { of, low: from, width } if low < u32::from(*width) => {
                    (term, low) = (*of, low + u32::from(*from));
                }
                Term::Slice { .. } => return Some(Err(false)),
                Term::Concat { high, low: tail, width } => match low.checked_sub((*width).into()) {
                    Some(rest) => (term, low) = (*high, rest),
                    None => term = *tail,
                },
                _ => {
                    let value = evaluate(self.program, term, self.rows, None)?;
                    return Some(Err(value.checked_shr(low).unwrap_or(0) & 1 == 1));
                }
            }
        }
    }

    /// What becomes of bits that stood at `before`.
    fn bits(&self, start: i32, width: u16, before: i32) -> Bits {
        let all: Vec<_> = (0..i32::from(width)).map(|i| self.bit(start + i)).collect();
        if (0..).zip(&all).all(|(i, bit)| *bit == Some(Ok(before + i))) {
            return Bits::Same;
        }
        all.iter()
            .try_fold(0u128, |sum, bit| match bit {
                Some(Err(bit)) => Some(sum << 1 | u128::from(*bit)),
                _ => None,
            })
            .map_or(Bits::Computed, Bits::Constant)
    }

    /// Tags that are pushed, popped and rewritten.
    fn tags(&self) -> Result<(Vec<Action>, Conditions), Lack> {
        let (mut actions, mut needs) = (Vec::new(), Conditions::default());
        let start = self.writes.start;
        match start {
            0 => {}
            4 => {
                needs = self.with(&needs, Kind::Vlan).map_err(|_| Lack::Move(4))?;
                actions.push(Action::PopTag);
            }
            -4 => {
                let Bits::Constant(tag) = self.bits(8 * (start + 12), 32, 0) else {
                    return Err(Lack::Write("vlan.tci".into()));
                };
                let ether_type = (tag >> 16) as u16;
                let is_tag = matches!(ether_type, ether_type::VLAN | ether_type::QINQ);
                // The bit for frames that may be dropped is the one that says that there is a tag.
                if !is_tag || tag & TAGGED != 0 {
                    return Err(Lack::Write("vlan.type".into()));
                }
                actions.push(Action::PushTag(ether_type));
                actions.push(Action::Set(Match::VlanId, TAGGED | (tag & 0xfff)));
                actions.push(Action::Set(Match::VlanPriority, tag >> 13 & 7));
            }
            _ => return Err(Lack::Move(start)),
        }
        // A switch that changes a tag also clears the bit for frames that may be dropped.
        Ok((actions, needs))
    }

    /// Addresses of frames.
    fn addresses(&self, actions: &mut Vec<Action>) -> Result<(), Lack> {
        for (at, field, name) in [(0, Match::EthDst, "eth.dst"), (48, Match::EthSrc, "eth.src")] {
            match self.bits(8 * self.writes.start + at, 48, at) {
                Bits::Same => {}
                Bits::Constant(value) => actions.push(Action::Set(field, value)),
                Bits::Computed => return Err(Lack::Write(name.into())),
            }
        }
        Ok(())
    }

    /// Fields of IP.
    fn network(&self, actions: &mut Vec<Action>, needs: &mut Conditions) -> Result<(), Lack> {
        let Some(header) = self.header(Kind::Ipv4) else { return Ok(()) };
        for (from, field) in [(8, Match::IpDscp), (14, Match::IpEcn)] {
            let at = 8 * header.offset + from;
            match self.bits(at, field.width(), at) {
                Bits::Same => {}
                Bits::Constant(value) => {
                    *needs = self.with(needs, header.kind)?;
                    actions.push(Action::Set(field, value));
                }
                Bits::Computed => return Err(self.cannot_write(at, field.width())),
            }
        }
        Ok(())
    }

    fn cannot_write(&self, at: i32, width: u16) -> Lack {
        let name = self.layout.name(at, width.into()).map(|name| name.text);
        Lack::Write(name.unwrap_or_else(|| format!("data[{at}+{width}]")))
    }

    /// How many routers a packet passes, and the time to live that it had, if what is written says that.
    fn hops(&self, actions: &[Action]) -> Result<(u128, Option<u8>), Lack> {
        let Some(header) = self.header(Kind::Ipv4) else { return Ok((0, None)) };
        let at = 8 * (header.offset + 8);
        let (before, after) = match self.bits(at, 8, at) {
            Bits::Same => return Ok((0, None)),
            Bits::Constant(after) => (None, Some(after)),
            Bits::Computed => (Some(200u8), None),
        };
        // The last byte that it may become is found on a packet.
        for hops in 1..=MOST_HOPS {
            let before = before.map_or_else(|| after.map(|after| after + hops), |b| Some(b.into()));
            let before = before.and_then(|before| u8::try_from(before).ok());
            let Some(before) = before else { break };
            let aged = (0..hops).map(|_| Action::Age);
            let all: Vec<Action> = actions.iter().copied().chain(aged).collect();
            if self.try_one(&all, Some(before), 0).is_ok() {
                return Ok((hops, after.map(|_| before)));
            }
        }
        Err(Lack::Write("ip.ttl".into()))
    }

    /// # Errors
    /// What differs of a packet.
    fn try_out(&self, actions: &[Action], ttl: Option<u8>) -> Result<(), Lack> {
        (0..SAMPLES).try_for_each(|sample| self.try_one(actions, ttl, sample as u64))
    }

    fn try_one(&self, actions: &[Action], ttl: Option<u8>, sample: u64) -> Result<(), Lack> {
        let frame = self.sample(ttl, sample);
        let mut switched = Frame { bytes: frame.clone(), ip: self.ip() };
        actions.iter().for_each(|action| switched.act(*action));
        let written = self.write(&frame);
        let start = 8 * self.writes.start;
        if written.len() != switched.bytes.len() {
            return Err(Lack::Move(self.writes.start));
        }
        let differs = (0..).zip(written.iter().zip(&switched.bytes)).find(|(_, (a, b))| a != b);
        match differs {
            None => Ok(()),
            Some((at, _)) => {
                let at = start + 8 * at;
                let around = [16, 8, 32].into_iter().find_map(|width| {
                    [at, at - 8].into_iter().find_map(|at| self.layout.name(at, width))
                });
                Err(around.map_or_else(|| self.cannot_write(at, 8), |name| Lack::Write(name.text)))
            }
        }
    }

    fn ip(&self) -> Option<usize> {
        self.header(Kind::Ipv4).and_then(|header| usize::try_from(header.offset).ok())
    }

    /// A packet as the layout has it.
    fn sample(&self, ttl: Option<u8>, sample: u64) -> Vec<u8> {
        let mut state =
            sample.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x1234_5678_9abc_def1);
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        };
        let mut frame: Vec<u8> = (0..128).map(|_| random()).collect();
        for header in self.layout.headers() {
            let Some(select) = header.select else { continue };
            let before = self.layout.headers().iter().rev().find(|before| {
                before.offset < header.offset
                    && before.kind.catalogue().any(|(_, field)| field == select.field)
            });
            let Some(before) = before else { continue };
            let (at, width) = (before.bit(select.field), select.field.width);
            if let (Ok(at), 0) = (usize::try_from(at / 8), width % 8) {
                for (i, byte) in
                    frame[at.min(120)..].iter_mut().take(usize::from(width / 8)).enumerate()
                {
                    *byte = (select.value >> (width as usize - 8 * (i + 1))) as u8;
                }
            }
        }
        if let Some(ip) = self.ip().filter(|ip| *ip < 40) {
            frame[ip] = 0x45;
            frame[ip + 2..ip + 4].copy_from_slice(&((128 - ip) as u16).to_be_bytes());
            frame[ip + 6..ip + 8].fill(0);
            frame[ip + 8] = ttl.unwrap_or(MOST_HOPS as u8 + 1 + frame[ip + 8] % 200);
            // Some checksums are wrong: a switch adjusts them, and never makes them right.
            if sample.is_multiple_of(2) {
                frame[ip + 10..ip + 12].fill(0);
                let sum = !folded(words(&frame[ip..ip + 20]).sum());
                frame[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());
            }
        }
        frame
    }

    /// What the exit makes of a packet.
    fn write(&self, frame: &[u8]) -> Vec<u8> {
        let first = self.writes.bytes.iter().map(|write| write.offset).fold(0, i32::min);
        let mut bytes = vec![0; first.unsigned_abs() as usize];
        bytes.extend_from_slice(frame);
        for write in &self.writes.bytes {
            let value = evaluate(self.program, write.value, self.rows, Some(frame)).unwrap_or(0);
            for i in 0..i32::from(write.length) {
                let at = usize::try_from(write.offset - first + i).unwrap_or(usize::MAX);
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = (value >> (8 * (i32::from(write.length) - 1 - i)) & ones(8)) as u8;
                }
            }
        }
        let start = usize::try_from(self.writes.start - first).unwrap_or(0).min(bytes.len());
        bytes.split_off(start)
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    bytes.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
}

fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// A packet on a switch.
struct Frame {
    bytes: Vec<u8>,
    /// Where its IPv4 header is.
    ip: Option<usize>,
}

impl Frame {
    fn act(&mut self, action: Action) {
        match action {
            Action::PopTag => {
                self.bytes.drain(12..16);
                self.ip = self.ip.map(|ip| ip - 4);
            }
            Action::PushTag(ether_type) => {
                let [high, low] = ether_type.to_be_bytes();
                self.bytes.splice(12..12, [high, low, 0, 0]);
                self.ip = self.ip.map(|ip| ip + 4);
            }
            Action::Age => self.set(Match::IpTtl, None),
            Action::Set(field, value) => self.set(field, Some(value)),
        }
    }

    fn put(&mut self, at: usize, length: usize, value: u128) {
        let bytes = value.to_be_bytes();
        self.bytes[at..at + length].copy_from_slice(&bytes[16 - length..]);
    }

    fn set(&mut self, field: Match, value: Option<u128>) {
        match (field, value) {
            (Match::EthDst, Some(value)) => self.put(0, 6, value),
            (Match::EthSrc, Some(value)) => self.put(6, 6, value),
            (Match::VlanId, Some(value)) => {
                let priority = u128::from(self.bytes[14] & 0xe0) << 8;
                self.put(14, 2, priority | (value & 0xfff));
            }
            (Match::VlanPriority, Some(value)) => {
                let id = u128::from(self.bytes[14] & 0xf) << 8 | u128::from(self.bytes[15]);
                self.put(14, 2, value << 13 | id);
            }
            _ => self.set_network(field, value),
        }
    }

    /// Sets a field that the header's checksum covers.
    fn set_network(&mut self, field: Match, value: Option<u128>) {
        let Some(ip) = self.ip else { return };
        let at = match field {
            Match::IpDscp | Match::IpEcn => ip,
            Match::IpTtl => ip + 8,
            _ => return,
        };
        let word =
            |frame: &Self, at: usize| u16::from_be_bytes([frame.bytes[at], frame.bytes[at + 1]]);
        let before = word(self, at);
        match (field, value) {
            (Match::IpDscp, Some(value)) => {
                self.bytes[ip + 1] = (value << 2) as u8 | self.bytes[ip + 1] & 3;
            }
            (Match::IpEcn, Some(value)) => {
                self.bytes[ip + 1] = self.bytes[ip + 1] & !3 | value as u8;
            }
            _ => self.bytes[ip + 8] = self.bytes[ip + 8].wrapping_sub(1),
        }
        let sum = [!word(self, ip + 10), !before, word(self, at)];
        self.put(ip + 10, 2, (!folded(sum.into_iter().map(u32::from).sum())).into());
    }
}
