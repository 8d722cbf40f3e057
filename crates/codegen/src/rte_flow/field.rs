//! Fields that patterns match: what the numbers that a program tests are called on a card, and which masks
//! stand for a set of numbers.

use ir::layout::{Header, Kind};
use ir::program::{Exit, TermId};
use ir::{Base, IntervalSet};
use net::wire::{ether_type, ip_protocol};

use super::Driver;
use super::action::{self, Action};
use crate::Lack;
use crate::number::Rows;
use crate::rule::{self, Key as _, Matcher, Packets, input_bits, lack, prefixes};

/// A field of an item. In this order they are written: each stands behind those that say that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Key {
    EthDst,
    EthSrc,
    EthType,
    /// Whether there is a tag.
    Tagged,
    Tci,
    /// The type behind a tag.
    InnerType,
    Tos,
    Ttl,
    Protocol,
    Source,
    Destination,
    HopLimit,
    Source6,
    Destination6,
    SourcePort,
    DestinationPort,
    TcpFlags,
    IcmpType,
    IcmpCode,
}

impl rule::Key for Key {
    fn width(self) -> u16 {
        match self {
            Key::EthDst | Key::EthSrc => 48,
            Key::EthType | Key::Tci | Key::InnerType | Key::SourcePort | Key::DestinationPort => 16,
            Key::Tagged => 1,
            Key::Tos | Key::Ttl | Key::Protocol | Key::HopLimit => 8,
            Key::TcpFlags | Key::IcmpType | Key::IcmpCode => 8,
            Key::Source | Key::Destination => 32,
            Key::Source6 | Key::Destination6 => 128,
        }
    }
}

/// Alternatives of one set of numbers are no more than this.
const MOST_ALTERNATIVES: usize = 1 << 12;

/// A conjunction: some bits of some fields.
pub(crate) type Conditions = rule::Conditions<Key>;

/// A pattern of a list, and where it leads.
pub(super) type ListRule = rule::ListRule<Key>;

/// Where on a card a number is that a program tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Bits of a field from `low` on, where some conditions hold.
    Bits { key: Key, low: u16, width: u16, needs: Conditions },
    /// The type of a frame, with its tag.
    Type,
    /// How far into a datagram a fragment starts: no card is asked about fragments, so that it is taken to be 0.
    Offset,
    /// So many bits from a bit of the transport header on, of one of these protocols; none, if a rule has to say
    /// which.
    Transport { start: u16, width: u16, protocols: Vec<u8>, needs: Conditions },
}

/// Finds fields of a step's packets.
#[derive(Clone, Copy)]
pub(super) struct Sight<'a> {
    pub(super) driver: &'a Driver,
    pub(super) packets: Packets<'a>,
}

impl Sight<'_> {
    /// The header that a bit lies in.
    fn header(&self, bit: i32) -> Option<&Header> {
        let inside = |header: &&Header| {
            let from = 8 * header.offset;
            (from..from + 8 * i32::from(header.length)).contains(&bit)
        };
        self.packets.layout.headers().iter().rev().find(inside)
    }

    /// Conditions under which a header is there.
    fn needs(&self, header: &Header) -> Option<Conditions> {
        if header.depth > 0 || header.offset < 0 {
            return None;
        }
        let has = |kind| self.packets.layout.headers().iter().any(|header| header.kind == kind);
        let ethernet = self.packets.layout.headers().first()?;
        if ethernet.kind != Kind::Ethernet || ethernet.offset != 0 || has(Kind::InnerVlan) {
            return None;
        }
        let tagged = Conditions::exact(Key::Tagged, 1);
        match header.kind {
            Kind::Ethernet => Some(Conditions::default()),
            _ if header.assumed => None,
            Kind::Vlan if header.offset == 14 && self.driver.knows(Key::Tagged) => Some(tagged),
            Kind::Ipv4 | Kind::Ipv6 => {
                let number = match header.kind {
                    Kind::Ipv4 => ether_type::IPV4,
                    _ => ether_type::IPV6,
                };
                match (has(Kind::Vlan), header.offset) {
                    (false, 14) => self.untagged(number.into()),
                    (true, 18) if self.driver.knows(Key::InnerType) => {
                        tagged.and(&Conditions::exact(Key::InnerType, number.into()))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Frames of a type without a tag.
    fn untagged(&self, number: u128) -> Option<Conditions> {
        let of = Conditions::exact(Key::EthType, number);
        match self.driver.knows(Key::Tagged) {
            true => of.and(&Conditions::exact(Key::Tagged, 0)),
            false => Some(of),
        }
    }

    /// Where a number is seen.
    ///
    /// # Errors
    /// What the card lacks.
    pub(super) fn find(&self, term: TermId) -> Result<Seen, Lack> {
        let lack = || lack(self.packets, term);
        let field = input_bits(self.packets.program, term).filter(|field| field.base == Base::Data);
        let field = field.ok_or_else(lack)?;
        let (start, width) = (i32::from(field.offset), field.width);
        self.transport(start, width).or_else(|| self.see(start, width)).ok_or_else(lack)
    }

    fn see(&self, start: i32, width: u16) -> Option<Seen> {
        let header = self.header(start)?;
        let needs = self.needs(header)?;
        let at = start - 8 * header.offset;
        let end = at + i32::from(width);
        if header.kind == Kind::Ethernet && (at, end) == (96, 112) {
            return Some(Seen::Type);
        }
        if header.kind == Kind::Ipv4 && (at, end) == (51, 64) {
            return Some(Seen::Offset);
        }
        let fields: &[(i32, Key)] = match header.kind {
            Kind::Ethernet => &[(0, Key::EthDst), (48, Key::EthSrc)],
            Kind::Vlan => &[(0, Key::Tci), (16, Key::InnerType)],
            Kind::Ipv4 => &[
                (8, Key::Tos),
                (64, Key::Ttl),
                (72, Key::Protocol),
                (96, Key::Source),
                (128, Key::Destination),
            ],
            Kind::Ipv6 => &[(56, Key::HopLimit), (64, Key::Source6), (192, Key::Destination6)],
            _ => &[],
        };
        let (key, low) = within(fields, at, end)?;
        self.driver.knows(key).then_some(Seen::Bits { key, low, width, needs })
    }

    /// Bits behind an IPv4 header.
    fn transport(&self, start: i32, width: u16) -> Option<Seen> {
        let network = self.packets.layout.network().filter(|network| network.kind == Kind::Ipv4)?;
        let needs = self.needs(network)?;
        let header = self.header(start);
        let at = match header {
            Some(header) if header.depth > 0 || header.offset != network.offset + 20 => {
                return None;
            }
            Some(header) => 8 * header.offset,
            None if network.options == Some(true) => return None,
            None => 8 * (network.offset + 20),
        };
        let start = u16::try_from(start - at).ok().filter(|start| start + width <= 160)?;
        let protocols = match header.map(|header| (header.kind, header.assumed)) {
            Some((Kind::Tcp, _)) => vec![ip_protocol::TCP],
            Some((Kind::Udp, _)) => vec![ip_protocol::UDP],
            Some((Kind::Icmp, _)) => vec![ip_protocol::ICMP],
            Some((Kind::Ports, false)) => {
                vec![ip_protocol::TCP, ip_protocol::UDP, ip_protocol::SCTP]
            }
            _ => Vec::new(),
        };
        Some(Seen::Transport { start, width, protocols, needs })
    }

    /// Where bits of the header of a transport protocol are seen.
    fn of_protocol(
        &self,
        protocol: u8,
        start: u16,
        width: u16,
        needs: &Conditions,
    ) -> Option<Seen> {
        let fields: &[(i32, Key)] = match protocol {
            ip_protocol::TCP => {
                &[(0, Key::SourcePort), (16, Key::DestinationPort), (104, Key::TcpFlags)]
            }
            ip_protocol::UDP | ip_protocol::SCTP => {
                &[(0, Key::SourcePort), (16, Key::DestinationPort)]
            }
            ip_protocol::ICMP => &[(0, Key::IcmpType), (8, Key::IcmpCode)],
            _ => return None,
        };
        let (key, low) = within(fields, start.into(), i32::from(start + width))?;
        let needs = needs.and(&Conditions::exact(Key::Protocol, protocol.into()))?;
        self.driver.knows(key).then_some(Seen::Bits { key, low, width, needs })
    }

    /// Conditions of which one holds exactly where a number is in a set.
    ///
    /// # Errors
    /// How many there would be, if they can be counted.
    pub(super) fn within(
        &self,
        seen: &Seen,
        set: &IntervalSet,
        protocols: Option<&[u8]>,
    ) -> Result<Vec<Conditions>, Option<usize>> {
        match seen {
            Seen::Bits { key, low, width, needs } => {
                let masked = |(value, mask): &(u128, u128)| {
                    needs.and(&Conditions::masked(*key, value << low, mask << low))
                };
                Ok(prefixes(set, *width, MOST_ALTERNATIVES)?.iter().filter_map(masked).collect())
            }
            Seen::Type => self.types(set),
            // Fragments are presumed not to come.
            Seen::Offset if set.contains(0) => Ok(vec![Conditions::default()]),
            Seen::Offset => Err(None),
            Seen::Transport { start, width, protocols: known, needs } => {
                let of = protocols.unwrap_or(known);
                if of.is_empty() {
                    return Err(None);
                }
                let mut all = Vec::new();
                for &protocol in of {
                    let seen = self.of_protocol(protocol, *start, *width, needs).ok_or(None)?;
                    all.extend(self.within(&seen, set, None)?);
                }
                Ok(all)
            }
        }
    }

    /// Conditions on the type of a frame. Lengths in its place are presumed not to come.
    fn types(&self, set: &IntervalSet) -> Result<Vec<Conditions>, Option<usize>> {
        let mut all = Vec::new();
        let mut rest = set.subtract(&IntervalSet::range(0, super::LEAST_TYPE - 1));
        for tag in super::TAGS {
            if self.driver.knows(Key::Tagged) && tag == 0x8100 && rest.contains(tag) {
                all.push(Conditions::exact(Key::Tagged, 1));
            }
            rest = rest.subtract(&IntervalSet::single(tag));
        }
        let count = usize::try_from(rest.count()).ok();
        if count.is_none_or(|count| count > MOST_ALTERNATIVES) {
            return Err(count);
        }
        let single = rest.intervals().iter().flat_map(|&(low, high)| low..=high);
        all.extend(single.filter_map(|number| self.untagged(number)));
        Ok(all)
    }
}

impl Matcher for Driver {
    type Key = Key;
    type Seen = Seen;
    type Exit = Vec<Action>;

    const MOST_RULES: usize = 1 << 16;

    fn find(&self, packets: Packets<'_>, term: TermId) -> Result<Seen, Lack> {
        Sight { driver: self, packets }.find(term)
    }

    fn within(
        &self,
        packets: Packets<'_>,
        seen: &Seen,
        set: &IntervalSet,
        protocols: Option<&[u8]>,
    ) -> Result<Vec<Conditions>, Option<usize>> {
        Sight { driver: self, packets }.within(seen, set, protocols)
    }

    fn field(seen: &Seen) -> Option<(Key, &Conditions)> {
        let Seen::Bits { key, low: 0, width, needs } = seen else { return None };
        (*width == key.width()).then_some((*key, needs))
    }

    fn is_protocol(seen: &Seen) -> bool {
        matches!(seen, Seen::Bits { key: Key::Protocol, .. })
    }

    fn asks(seen: &Seen) -> bool {
        *seen != Seen::Offset
    }

    fn sends(&self, packets: Packets<'_>, exit: &Exit, rows: &Rows) -> Result<Vec<Action>, Lack> {
        action::actions(self, packets, exit, rows)
    }

    fn counts(&self) -> bool {
        self.counts
    }

    fn leads(&self) -> bool {
        self.groups
    }
}

/// The field that bits lie in, and the lowest bit of it that counts.
fn within(fields: &[(i32, Key)], at: i32, end: i32) -> Option<(Key, u16)> {
    let inside = |(from, key): &&(i32, Key)| *from <= at && end <= from + i32::from(key.width());
    let &(from, key) = fields.iter().find(inside)?;
    Some((key, (from + i32::from(key.width()) - end) as u16))
}
