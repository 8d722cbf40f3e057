//! Fields that patterns match: what the numbers that a program tests are called on a card, and which masks
//! stand for a set of numbers.

use ir::layout::{Header, Kind, Layout};
use ir::program::{Program, Term, TermId};
use ir::{Base, IntervalSet};
use net::wire::{ether_type, ip_protocol};

use super::Driver;
use crate::Lack;
use crate::rule::{input_bits, prefixes};

/// A field of an item. In this order they are written: each stands behind those that say that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Key {
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

impl Key {
    pub(super) fn width(self) -> u16 {
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

    /// All its bits.
    pub(super) fn all(self) -> u128 {
        u128::MAX >> (128 - self.width())
    }
}

/// Alternatives of one set of numbers are no more than this.
const MOST_ALTERNATIVES: usize = 1 << 12;

/// A conjunction: some bits of some fields, in the order of the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Conditions(Vec<(Key, u128, u128)>);

impl Conditions {
    pub(super) fn exact(key: Key, value: u128) -> Self {
        Self::masked(key, value, key.all())
    }

    pub(super) fn masked(key: Key, value: u128, mask: u128) -> Self {
        match mask {
            0 => Self::default(),
            mask => Self(vec![(key, value & mask, mask)]),
        }
    }

    /// Fields, numbers and masks.
    pub(super) fn fields(&self) -> &[(Key, u128, u128)] {
        &self.0
    }

    pub(super) fn of(&self, key: Key) -> Option<(u128, u128)> {
        self.0.iter().find(|one| one.0 == key).map(|one| (one.1, one.2))
    }

    /// What matches both; `None` if nothing does.
    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        if !self.meets(other) {
            return None;
        }
        let mut all = self.0.clone();
        for &(key, value, mask) in &other.0 {
            match all.binary_search_by_key(&key, |one| one.0) {
                Ok(at) => (all[at].1, all[at].2) = (all[at].1 | value, all[at].2 | mask),
                Err(at) => all.insert(at, (key, value, mask)),
            }
        }
        Some(Self(all))
    }

    /// Whether some packet matches both.
    pub(super) fn meets(&self, other: &Self) -> bool {
        let differs = |(key, value, mask): &(Key, u128, u128)| {
            other.of(*key).is_some_and(|(v, m)| (value ^ v) & mask & m != 0)
        };
        !self.0.iter().any(differs)
    }

    /// Whether it matches whatever the other matches.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.0.iter().all(|(key, value, mask)| {
            other.of(*key).is_some_and(|(v, m)| mask & !m == 0 && (value ^ v) & mask == 0)
        })
    }
}

/// Where on a card a number is that a program tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
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
    pub(super) program: &'a Program,
    pub(super) layout: &'a Layout,
}

/// What is missing where a number is to be tested.
pub(super) fn lack(program: &Program, layout: &Layout, term: TermId) -> Lack {
    if program.verifies(term) {
        return Lack::Checksum;
    }
    match program.term(term) {
        Term::Input(field) if *field == ir::field::meta::LEN => Lack::Length,
        Term::Sum16 { .. } => Lack::Checksum,
        Term::OnesSum(_) => Lack::Number("a ones' complement sum"),
        Term::Bound(..) => Lack::Found,
        Term::Cell(..) => Lack::Cells,
        Term::Position(_) => Lack::Number("where a header is"),
        Term::Hash(..) => Lack::Number("a hash"),
        Term::Map(..) => Lack::Number("what a range map yields"),
        Term::Now => Lack::Clock,
        of => match input_bits(program, term) {
            Some(field) => {
                Lack::Field(layout.name_of(field).map_or(field.to_string(), |name| name.text))
            }
            None => {
                let worst = of.operands().into_iter().map(|of| lack(program, layout, of));
                let is_field = |lack: &Lack| matches!(lack, Lack::Field(_));
                worst.filter(|lack| !is_field(lack)).min().unwrap_or(Lack::Number("a sum"))
            }
        },
    }
}

impl Sight<'_> {
    /// The header that a bit lies in.
    fn header(&self, bit: i32) -> Option<&Header> {
        let inside = |header: &&Header| {
            let from = 8 * header.offset;
            (from..from + 8 * i32::from(header.length)).contains(&bit)
        };
        self.layout.headers().iter().rev().find(inside)
    }

    /// Conditions under which a header is there.
    fn needs(&self, header: &Header) -> Option<Conditions> {
        if header.depth > 0 || header.offset < 0 {
            return None;
        }
        let has = |kind| self.layout.headers().iter().any(|header| header.kind == kind);
        let ethernet = self.layout.headers().first()?;
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
        let lack = || lack(self.program, self.layout, term);
        let field = input_bits(self.program, term).filter(|field| field.base == Base::Data);
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
        let network = self.layout.network().filter(|network| network.kind == Kind::Ipv4)?;
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

/// The field that bits lie in, and the lowest bit of it that counts.
fn within(fields: &[(i32, Key)], at: i32, end: i32) -> Option<(Key, u16)> {
    let inside = |(from, key): &&(i32, Key)| *from <= at && end <= from + i32::from(key.width());
    let &(from, key) = fields.iter().find(inside)?;
    Some((key, (from + i32::from(key.width()) - end) as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conjunction_is_empty_where_bits_differ() {
        let a = Conditions::masked(Key::Destination, 0x0a00_0000, 0xff00_0000);
        let b = Conditions::masked(Key::Destination, 0x0a01_0000, 0xffff_0000);
        assert_eq!(a.and(&b), Some(b.clone()));
        assert!(a.covers(&b) && !b.covers(&a) && a.meets(&b));
        assert_eq!(b.and(&Conditions::exact(Key::Destination, 0x0a02_0000)), None);
        let both = Conditions::exact(Key::Ttl, 1).and(&Conditions::exact(Key::Tos, 2)).unwrap();
        assert_eq!(both.fields().iter().map(|f| f.0).collect::<Vec<_>>(), [Key::Tos, Key::Ttl]);
    }
}
