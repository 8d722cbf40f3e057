//! What rules of nftables compare: header fields, and their values.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;
use ir::IntervalSet;
use net::wire::ip_protocol;

use super::token::Token;
use crate::argument::parse_ipv4;
use crate::classify::pattern::expr::{Origin, PacketBytes, Pattern};
use crate::classify::pattern::text::Wrong;

const fn network(offset: u16, length: u8) -> PacketBytes {
    PacketBytes::new(Origin::Network, offset, length)
}

const fn transport(offset: u16, length: u8) -> PacketBytes {
    PacketBytes::new(Origin::Transport, offset, length)
}

pub(super) const PROTOCOL: PacketBytes = network(9, 1);
pub(super) const DESTINATION_PORT: PacketBytes = transport(2, 2);
/// The flags of TCP.
pub(super) const FLAGS: PacketBytes = transport(13, 1);

/// How values of a key are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    Address,
    Protocol,
    IcmpType,
    IcmpCode,
    Dscp,
    /// The version of IP, which is 4: `ipv4`, `ip`.
    Version,
    /// Of IPv6: no packet has it.
    Absent,
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    place: PacketBytes,
    mask: u32,
    shift: u32,
    kind: Kind,
    /// The protocol that has it.
    protocol: Option<u8>,
}

/// A test of all bits at a place.
pub(super) fn test(place: PacketBytes, set: IntervalSet) -> Pattern {
    Pattern::test(place, place.max(), set)
}

impl Key {
    /// By header and field.
    pub(super) fn of(header: &str, field: &str) -> Option<Self> {
        let protocol = match header {
            "tcp" | "udp" | "sctp" | "dccp" | "udplite" | "icmp" => ip_protocol::by_name(header),
            _ => None,
        };
        let key =
            |place: PacketBytes, kind| Self { place, mask: place.max(), shift: 0, kind, protocol };
        Some(match (header, field) {
            ("ip6" | "icmpv6", _) => key(PROTOCOL, Kind::Absent),
            ("ip", "saddr") => key(network(12, 4), Kind::Address),
            ("ip", "daddr") => key(network(16, 4), Kind::Address),
            ("ip", "protocol") | ("meta", "l4proto") => key(PROTOCOL, Kind::Protocol),
            ("ip", "length") | ("meta", "length") => key(network(2, 2), Kind::Number),
            ("ip", "id") => key(network(4, 2), Kind::Number),
            ("ip", "frag-off") => key(network(6, 2), Kind::Number),
            ("ip", "ttl") => key(network(8, 1), Kind::Number),
            ("ip", "dscp") => Self { mask: 0xfc, shift: 2, ..key(network(1, 1), Kind::Dscp) },
            ("meta", "nfproto" | "protocol") => key(PROTOCOL, Kind::Version),
            ("tcp" | "udp" | "sctp" | "dccp" | "udplite" | "th", "sport") => {
                key(transport(0, 2), Kind::Number)
            }
            ("tcp" | "udp" | "sctp" | "dccp" | "udplite" | "th", "dport") => {
                key(DESTINATION_PORT, Kind::Number)
            }
            ("icmp", "type") => key(transport(0, 1), Kind::IcmpType),
            ("icmp", "code") => key(transport(1, 1), Kind::IcmpCode),
            _ => return None,
        })
    }

    /// The same behind a mask, if it is a number.
    pub(super) fn masked(self, mask: u32) -> Option<Self> {
        let fits = self.kind == Kind::Number && mask > 0 && mask & !self.place.max() == 0;
        fits.then_some(Self { mask, ..self })
    }

    /// What must hold for a packet to have it.
    pub(super) fn needs(self) -> Pattern {
        match (self.kind, self.protocol) {
            (Kind::Absent, _) => Pattern::Const(false),
            (_, Some(protocol)) => test(PROTOCOL, IntervalSet::single(protocol.into())),
            _ => Pattern::Const(true),
        }
    }

    /// How many bits its numbers have.
    pub(super) fn width(self) -> u16 {
        8 * u16::from(self.place.length)
    }

    /// That its number, where it stands, is in a set.
    pub(super) fn holds(self, set: IntervalSet) -> Pattern {
        // What a complement holds beyond the mask is no number of it.
        let set = set.intersect(&IntervalSet::range(0, self.mask.into()));
        match self.kind {
            Kind::Version => Pattern::Const(set.contains(4)),
            Kind::Absent => Pattern::Const(false),
            _ if set.intervals().contains(&(0, self.mask.into())) => self.is_there(),
            _ => Pattern::test(self.place, self.mask, set),
        }
    }

    /// That a packet is long enough to have it.
    pub(super) fn is_there(self) -> Pattern {
        match self.place.is_fixed() {
            true => Pattern::Const(true),
            false => test(self.place, IntervalSet::full(self.width())),
        }
    }

    /// The numbers that are in an order to one.
    pub(super) fn ordered(self, order: &str, number: u128) -> IntervalSet {
        let most = u128::from(self.mask);
        let range = match order {
            "<" => number.checked_sub(1).map(|high| (0, high)),
            "<=" => Some((0, number)),
            ">" => Some((number + 1, most)),
            _ => Some((number, most)),
        };
        IntervalSet::from_intervals(range.filter(|(low, high)| low <= high).into_iter().collect())
    }

    /// The numbers that a value stands for.
    pub(super) fn range(self, value: Token<'_>) -> Result<(u128, u128), Wrong> {
        let text = value.text;
        let found = match self.kind {
            Kind::Absent => Some((0, 0)),
            _ if text == "*" => Some((0, self.mask)),
            Kind::Address => addresses(text),
            _ => self.one(text).map(|number| (number, number)).or_else(|| {
                let (low, high) = text.split_once('-')?;
                let range = (self.one(low)?, self.one(high)?);
                (range.0 <= range.1).then_some(range)
            }),
        };
        let what = match self.kind {
            Kind::Address if text.contains(':') => "an IPv4 address: rules are those of IPv4",
            Kind::Address => "an IPv4 address, network or range",
            Kind::Protocol => "a protocol",
            Kind::IcmpType => "a type of ICMP",
            Kind::IcmpCode => "a code of ICMP",
            Kind::Dscp => "a codepoint",
            Kind::Version => "a version of IP",
            Kind::Number | Kind::Absent => "a number",
        };
        let (low, high) = found.ok_or_else(|| {
            let wrong = value.wrong(format!("'{text}' is not {what}"));
            match self.kind {
                Kind::Number => wrong.help("`nft -n list ruleset` prints numbers for names"),
                _ => wrong,
            }
        })?;
        Ok((u128::from(low) << self.shift, u128::from(high) << self.shift))
    }

    /// A single number or name.
    fn one(self, text: &str) -> Option<u32> {
        let most = self.mask >> self.shift;
        let named = match self.kind {
            Kind::Protocol => ip_protocol::by_name(text).map(u32::from),
            Kind::IcmpType => by_name(&TYPES, text),
            Kind::IcmpCode => by_name(&CODES, text),
            Kind::Dscp => codepoint(text),
            Kind::Version => match text {
                "ipv4" | "ip" => Some(4),
                "ipv6" | "ip6" => Some(6),
                _ => return None,
            },
            Kind::Number | Kind::Address | Kind::Absent => None,
        };
        named.or_else(|| number(text)).filter(|&number| number <= most)
    }
}

/// A number, in hexadecimal behind `0x`.
pub(super) fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok().filter(|_| text.starts_with(|c: char| c.is_ascii_digit())),
    }
}

/// An address, a network, or a range of addresses.
fn addresses(text: &str) -> Option<(u32, u32)> {
    if let Some((low, high)) = text.split_once('-') {
        let range = (parse_ipv4(low)?.to_bits(), parse_ipv4(high)?.to_bits());
        return (range.0 <= range.1).then_some(range);
    }
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let network = Ipv4Net::new(parse_ipv4(address)?, length.parse().ok()?).ok()?;
    let [low, high] = [network.network(), network.broadcast()].map(Ipv4Addr::to_bits);
    Some((low, high))
}

/// Flags of TCP by name or number.
pub(super) fn flags(token: Token<'_>) -> Result<u8, Wrong> {
    let named = match token.text {
        "fin" => Some(0x01),
        "syn" => Some(0x02),
        "rst" => Some(0x04),
        "psh" => Some(0x08),
        "ack" => Some(0x10),
        "urg" => Some(0x20),
        "ecn" => Some(0x40),
        "cwr" => Some(0x80),
        text => number(text).and_then(|number| u8::try_from(number).ok()),
    };
    named.ok_or_else(|| token.wrong(format!("'{}' is not a flag of TCP", token.text)))
}

fn by_name(names: &[(&str, u8)], text: &str) -> Option<u32> {
    names.iter().find(|&&(name, _)| name == text).map(|&(_, number)| number.into())
}

/// A codepoint of differentiated services by its name (RFC 2474, 2597, 3246, 5865, 8622).
fn codepoint(text: &str) -> Option<u32> {
    match (text, text.as_bytes()) {
        ("ef", _) => Some(46),
        ("va", _) => Some(44),
        ("lephb", _) => Some(1),
        ("df" | "be", _) => Some(0),
        (_, &[b'c', b's', class @ b'0'..=b'7']) => Some(8 * u32::from(class - b'0')),
        (_, &[b'a', b'f', class @ b'1'..=b'4', drop @ b'1'..=b'3']) => {
            Some(8 * u32::from(class - b'0') + 2 * u32::from(drop - b'0'))
        }
        _ => None,
    }
}

/// What nftables calls types of ICMP.
const TYPES: [(&str, u8); 15] = [
    ("echo-reply", 0),
    ("destination-unreachable", 3),
    ("source-quench", 4),
    ("redirect", 5),
    ("echo-request", 8),
    ("router-advertisement", 9),
    ("router-solicitation", 10),
    ("time-exceeded", 11),
    ("parameter-problem", 12),
    ("timestamp-request", 13),
    ("timestamp-reply", 14),
    ("info-request", 15),
    ("info-reply", 16),
    ("address-mask-request", 17),
    ("address-mask-reply", 18),
];

/// What it calls codes of ICMP.
const CODES: [(&str, u8); 8] = [
    ("net-unreachable", 0),
    ("host-unreachable", 1),
    ("prot-unreachable", 2),
    ("port-unreachable", 3),
    ("frag-needed", 4),
    ("net-prohibited", 9),
    ("host-prohibited", 10),
    ("admin-prohibited", 13),
];
