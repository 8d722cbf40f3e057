//! The headers of packets that leave a program.

use net::Header as Mark;

use super::{Evidence, Header, Kind, Layout, Start};
use crate::IntervalSet;
use crate::program::{self, Program, Term, Write, Writes};

/// What is known of a packet that an exit has written to; offsets count from where the data started
/// as it came in.
struct Written<'a, E> {
    program: &'a Program,
    writes: &'a Writes,
    before: &'a E,
}

impl<E: Evidence> Evidence for Written<'_, E> {
    fn bits(&self, start: i32, width: u32) -> Option<IntervalSet> {
        let end = start + width as i32;
        let overlaps = |write: &&Write| {
            let first = 8 * write.offset;
            first < end && first + 8 * i32::from(write.length) > start
        };
        match self.writes.bytes.iter().find(overlaps) {
            Some(_) => written(self.program, self.writes, start, width).map(IntervalSet::single),
            None => self.before.bits(start, width),
        }
    }
}

/// The number that an exit always writes to some bits.
fn written(program: &Program, writes: &Writes, start: i32, width: u32) -> Option<u128> {
    let after = |write: &Write| 8 * (write.offset + i32::from(write.length)) - start;
    let covers = |write: &&Write| 8 * write.offset <= start && after(write) >= width as i32;
    let write = writes.bytes.iter().find(covers)?;
    // Bits of the number behind those that are asked for.
    let mut behind = after(write) as u32 - width;
    let mut value = write.value;
    loop {
        match program.term(value) {
            Term::Const(number) => {
                let mask = u128::MAX >> (128 - width.clamp(1, 128));
                return Some(number.checked_shr(behind).unwrap_or(0) & mask);
            }
            Term::Concat { high, width: cut, .. } if behind >= u32::from(*cut) => {
                (value, behind) = (*high, behind - u32::from(*cut));
            }
            Term::Concat { low, width: cut, .. } if behind + width <= u32::from(*cut) => {
                value = *low;
            }
            _ => return None,
        }
    }
}

/// Where an exit marks a header, if it is always the same place.
fn marked(program: &Program, writes: &Writes, header: Mark) -> Option<i32> {
    let program::Mark::At(term) = writes.marks[header as usize] else { return None };
    match program.term(term) {
        Term::Const(at) => i32::try_from(*at as i128).ok(),
        _ => None,
    }
}

/// The network header that the Ethernet type says is at a place, if an exit writes one before it.
pub(super) fn framed(program: &Program, writes: &Writes, network: i32) -> Option<Kind> {
    use net::wire::ether_type::{ARP, IPV4, IPV6};
    let said = written(program, writes, 8 * network - 16, 16)?;
    match u16::try_from(said) {
        Ok(IPV4) => Some(Kind::Ipv4),
        Ok(ARP) => Some(Kind::Arp),
        Ok(IPV6) => Some(Kind::Ipv6),
        _ => None,
    }
}

impl Layout {
    /// The layout of the packets of a path, of which `evidence` is known. `start` is where their
    /// headers begin; `writes` may put them into other frames, which says what they are too.
    pub fn coming_in(
        program: &Program,
        writes: &Writes,
        evidence: &impl Evidence,
        mut start: Start,
    ) -> Self {
        let to = marked(program, writes, Mark::Network);
        if let Some(network) = start.network.filter(|at| to.is_none_or(|to| to == *at)) {
            start.kind = framed(program, writes, network);
        }
        Self::parse(evidence, start)
    }

    /// The layout of the packets of this layout as they leave. Offsets still count from the first data
    /// byte as they came in. `evidence` is what is known of them as they came in.
    pub fn leaving(&self, program: &Program, writes: &Writes, evidence: &impl Evidence) -> Self {
        let before = self.network().map(|header| (header.offset, header.kind));
        let network = marked(program, writes, Mark::Network).or(before.map(|before| before.0));
        let Some(network) = network else { return self.clone() };
        let kind = before.filter(|before| before.0 == network).map(|before| before.1);
        let frame = marked(program, writes, Mark::Mac);
        let transport = marked(program, writes, Mark::Transport);
        let start = Start { frame, network: Some(network), transport, kind };
        let mut leaving = Self::parse(&Written { program, writes, before: evidence }, start);
        let overlaps = |a: &Header, b: &Header| a.offset < b.end() && b.offset < a.end();
        for header in &self.headers {
            let stays = frame.is_none() || !header.kind.is_link();
            if stays && !leaving.headers.iter().any(|other| overlaps(header, other)) {
                let outside =
                    |other: &&Header| other.offset < header.offset && !other.kind.is_link();
                let is_inner = leaving.headers.iter().any(|other| {
                    outside(&other) && other.kind.is_network() && header.kind.is_network()
                });
                let beside = leaving.headers.iter().rev().find(outside).map(|other| other.depth);
                let depth = beside.unwrap_or(0) + u8::from(is_inner);
                leaving.headers.push(Header { depth: depth.max(header.depth), ..*header });
                leaving.headers.sort_by_key(|header| header.offset);
            }
        }
        leaving
    }
}
