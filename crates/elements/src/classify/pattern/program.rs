//! Patterns as a program of tests and jumps: the first rule that holds decides.

use net::wire::Ipv4;
use net::{Header, Packet};

use super::expr::{Origin, PacketBytes, Pattern};

/// Jumps from here on lead to the result that is this much less.
const RESULT: u32 = 1 << 31;

#[derive(Clone, Copy, Debug)]
struct Step {
    place: PacketBytes,
    mask: u32,
    low: u32,
    /// Greatest number less the least.
    span: u32,
    /// Where to go if the number is in the range.
    yes: u32,
    /// Where to go if it is not.
    no: u32,
    /// Where to go if there is no number.
    absent: u32,
}

/// Tests and jumps. Jumps lead backwards only, so that it ends.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    steps: Vec<Step>,
    entry: u32,
}

/// Where a packet's bytes are. Origins that it lacks are empty.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'p> {
    pub(super) data: &'p [u8],
    pub(super) mac: &'p [u8],
    pub(crate) network: &'p [u8],
    pub(crate) transport: &'p [u8],
}

impl<'p> Headers<'p> {
    /// Finds what tests look at.
    #[inline]
    pub(crate) fn of(packet: &'p Packet) -> Self {
        let at_least = |header, length| {
            packet.header(header).filter(|bytes| bytes.len() >= length).unwrap_or(&[])
        };
        let network = at_least(Header::Network, 20);
        let first_fragment = Ipv4::new(network).is_some_and(|ip| !ip.is_later_fragment());
        let transport = if first_fragment { at_least(Header::Transport, 0) } else { &[] };
        Self { data: packet.data(), mac: at_least(Header::Mac, 14), network, transport }
    }

    /// Finds it in a packet of IPv6 without extension headers.
    #[inline]
    pub(crate) fn of_ipv6(packet: &'p Packet) -> Self {
        let at_least = |header, length| {
            packet.header(header).filter(|bytes| bytes.len() >= length).unwrap_or(&[])
        };
        Self {
            data: packet.data(),
            mac: at_least(Header::Mac, 14),
            network: at_least(Header::Network, 40),
            transport: at_least(Header::Transport, 0),
        }
    }

    /// The same with an IP header that was not marked, and nothing in its place if it is none.
    pub(crate) fn with_ip(self, network: &'p [u8]) -> Self {
        let Some(ip) = Ipv4::new(network).filter(|ip| ip.header_len() >= 20) else {
            return self.without_ip();
        };
        let transport = network.get(ip.header_len()..);
        let transport = transport.filter(|_| !ip.is_later_fragment()).unwrap_or(&[]);
        Self { network, transport, ..self }
    }

    /// The same for what is not IP.
    pub(crate) fn without_ip(self) -> Self {
        Self { network: &[], transport: &[], ..self }
    }

    /// The number at a place.
    #[inline]
    pub(crate) fn number(&self, place: PacketBytes) -> Option<u32> {
        let bytes = match place.origin {
            Origin::Data => self.data,
            Origin::Mac => self.mac,
            Origin::Network | Origin::Network6 => self.network,
            Origin::Transport | Origin::Transport6 => self.transport,
        };
        let bytes = bytes.get(usize::from(place.offset)..)?;
        match place.length {
            1 => bytes.first().map(|&b| u32::from(b)),
            2 => bytes.first_chunk().map(|&b| u32::from(u16::from_be_bytes(b))),
            3 => bytes.first_chunk().map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c])),
            _ => bytes.first_chunk().map(|&b| u32::from_be_bytes(b)),
        }
    }
}

impl Program {
    /// The program that yields the result of the first pattern that holds, or `otherwise`.
    pub(crate) fn new<'a, I>(rules: I, otherwise: u32) -> Self
    where
        I: IntoIterator<Item = (&'a Pattern, u32)>,
        I::IntoIter: DoubleEndedIterator,
    {
        let mut program = Self { steps: Vec::new(), entry: RESULT + otherwise };
        for (pattern, result) in rules.into_iter().rev() {
            program.entry = program.add(pattern, RESULT + result, program.entry);
        }
        program
    }

    /// Adds what goes to `yes` or `no` as the pattern holds or not; gives where it starts.
    fn add(&mut self, pattern: &Pattern, yes: u32, no: u32) -> u32 {
        match pattern {
            Pattern::Const(true) => yes,
            Pattern::Const(false) => no,
            Pattern::Test(test) => {
                let mut next = no;
                for &(low, high) in test.set.intervals().iter().rev() {
                    let (low, span) = (low as u32, (high - low) as u32);
                    let (place, mask) = (test.place, test.mask);
                    self.steps.push(Step { place, mask, low, span, yes, no: next, absent: no });
                    next = self.steps.len() as u32 - 1;
                }
                next
            }
            Pattern::Not(inner) => self.add(inner, no, yes),
            Pattern::All(parts) => {
                parts.iter().rev().fold(yes, |entry, part| self.add(part, entry, no))
            }
            Pattern::Any(parts) => {
                parts.iter().rev().fold(no, |entry, part| self.add(part, yes, entry))
            }
            Pattern::Choose(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                let (then, otherwise) = (self.add(then, yes, no), self.add(otherwise, yes, no));
                self.add(condition, then, otherwise)
            }
        }
    }

    /// The result for a packet.
    #[inline]
    pub(crate) fn run(&self, headers: &Headers<'_>) -> u32 {
        let mut at = self.entry;
        while let Some(step) = self.steps.get(at as usize) {
            at = match headers.number(step.place) {
                Some(number) if (number & step.mask).wrapping_sub(step.low) <= step.span => {
                    step.yes
                }
                Some(_) => step.no,
                None => step.absent,
            };
        }
        at - RESULT
    }

    /// How many tests it has.
    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }
}
