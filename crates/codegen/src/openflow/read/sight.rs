//! What Open vSwitch knows of a packet: the fields of a flow key, each a part of the packet or a
//! constant, by what was found out of the packet so far.
//!
//! Headers that are cut off, or whose lengths contradict each other, are not there: all their fields
//! are 0. So are those of transport headers of later fragments.

use ir::model::{BinaryOp, CompareOp};
use ir::program::Atom;
use ir::{Field, IntervalSet};

use super::text::Name;
use crate::draft::{Terms, data};

/// Types of frames that are lengths are below.
const FIRST_TYPE: u128 = 0x600;

/// The type of a frame that has none.
const NO_TYPE: u128 = 0x5ff;

/// Where the type of a frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Typed {
    /// Where it usually does.
    Here,
    /// Behind LLC and SNAP headers.
    Snap,
    /// Nowhere.
    Nowhere,
}

/// What follows the frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Network {
    Ip,
    Arp,
    Ip6,
    /// Nothing that is known, or a header that is not right.
    None,
}

/// What follows an IPv4 header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Transport {
    Tcp,
    Udp,
    Icmp,
    Sctp,
    None,
}

/// What was found out of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sight {
    tagged: Option<bool>,
    typed: Option<Typed>,
    network: Option<Network>,
    /// How many checks the header passed that its type says follows.
    checks: u8,
    /// How many kinds of headers the type is not.
    kinds: u8,
    small_op: Option<bool>,
    later: Option<bool>,
    fragment: Option<bool>,
    /// Words of the IPv4 header.
    words: Option<u8>,
    transport: Option<Transport>,
    protocols: u8,
    /// Whether all of the transport header is there.
    whole: Option<bool>,
    /// Whether the protocol is 0.
    zero: Option<bool>,
    /// Whether the checksum of the IPv4 header is 0xffff.
    negative_zero: Option<bool>,
    /// Whether the type of service is what it is to become.
    same_service: Option<bool>,
}

/// What is known of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Constant(u128),
    /// These bits of the packet as it came in.
    Bits(Field),
    /// A tag is there, and these bits are its ID.
    Tag(Field),
}

/// What is to be found out first: whether a condition holds, and what is known then.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) atom: Atom,
    pub(super) yes: Sight,
    pub(super) no: Sight,
}

/// A field, or the question that is open.
pub(super) type Answer = Result<Seen, Box<Question>>;

impl Sight {
    fn ask(atom: Atom, yes: Sight, no: Sight) -> Box<Question> {
        Box::new(Question { atom, yes, no })
    }

    /// Whether bits are in a range.
    fn within(terms: &mut Terms, field: Field, low: u128, high: u128) -> Atom {
        Atom::Test(terms.input(field), IntervalSet::range(low, high).into())
    }

    /// Whether the packet has so many bytes.
    fn reaches(terms: &mut Terms, bytes: u16) -> Atom {
        Self::within(terms, ir::field::meta::LEN, bytes.into(), u32::MAX.into())
    }

    /// Whether there is a tag.
    pub(super) fn tagged(&self, terms: &mut Terms) -> Result<bool, Box<Question>> {
        if let Some(tagged) = self.tagged {
            return Ok(tagged);
        }
        let no = Sight { tagged: Some(false), checks: 0, ..*self };
        if self.checks == 0 {
            let types = IntervalSet::from_intervals(vec![(0x8100, 0x8100), (0x88a8, 0x88a8)]);
            let atom = Atom::Test(terms.input(data(96, 16)), types.into());
            return Err(Self::ask(atom, Sight { checks: 1, ..*self }, no));
        }
        // A tag that is cut off, with the type behind it, is none.
        let yes = Sight { tagged: Some(true), checks: 0, ..*self };
        Err(Self::ask(Self::reaches(terms, 18), yes, no))
    }

    /// The first bit behind a frame's addresses and tag.
    fn after_tag(&self, terms: &mut Terms) -> Result<u16, Box<Question>> {
        Ok(if self.tagged(terms)? { 128 } else { 96 })
    }

    fn typed(&self, terms: &mut Terms) -> Result<Typed, Box<Question>> {
        let at = self.after_tag(terms)?;
        if let Some(typed) = self.typed {
            return Ok(typed);
        }
        let nowhere = Sight { typed: Some(Typed::Nowhere), checks: 0, ..*self };
        let next = Sight { checks: self.checks + 1, ..*self };
        Err(match self.checks {
            0 => {
                let atom = Self::within(terms, data(at, 16), FIRST_TYPE, 0xffff);
                Self::ask(atom, Sight { typed: Some(Typed::Here), ..*self }, next)
            }
            1 => Self::ask(Self::reaches(terms, at / 8 + 10), next, nowhere),
            2 => {
                let snap = 0xaaaa_0300_0000;
                Self::ask(Self::within(terms, data(at + 16, 48), snap, snap), next, nowhere)
            }
            _ => {
                let atom = Self::within(terms, data(at + 64, 16), FIRST_TYPE, 0xffff);
                let snap = Sight { typed: Some(Typed::Snap), checks: 0, ..*self };
                Self::ask(atom, snap, nowhere)
            }
        })
    }

    /// The bits of the type.
    fn type_bits(&self, terms: &mut Terms) -> Result<Option<Field>, Box<Question>> {
        let at = self.after_tag(terms)?;
        Ok(match self.typed(terms)? {
            Typed::Here => Some(data(at, 16)),
            Typed::Snap => Some(data(at + 64, 16)),
            Typed::Nowhere => None,
        })
    }

    /// What follows, and at which byte.
    fn network(&self, terms: &mut Terms) -> Result<(Network, u16), Box<Question>> {
        let Some(bits) = self.type_bits(terms)? else { return Ok((Network::None, 0)) };
        let at = (bits.offset + 16) / 8;
        if let Some(network) = self.network {
            return Ok((network, at));
        }
        let none = Sight { network: Some(Network::None), checks: 0, ..*self };
        let next = Sight { checks: self.checks + 1, ..*self };
        let kind = |network| Sight { network: Some(network), checks: 0, ..*self };
        if self.checks == 0 {
            // Which header it is: the first of these.
            let other = match self.kinds {
                2 => none,
                kinds => Sight { kinds: kinds + 1, ..*self },
            };
            let types = match self.kinds {
                0 => IntervalSet::single(0x0800),
                1 => IntervalSet::from_intervals(vec![(0x0806, 0x0806), (0x8035, 0x8035)]),
                _ => IntervalSet::single(0x86dd),
            };
            let atom = Atom::Test(terms.input(bits), types.into());
            return Err(Self::ask(atom, next, other));
        }
        let from = 8 * at;
        Err(match (self.kinds, self.checks) {
            (0, 1) => Self::ask(Self::reaches(terms, at + 20), next, none),
            (0, 2) => Self::ask(Self::within(terms, data(from + 4, 4), 5, 15), next, none),
            (0, 3) => {
                let (length, all) =
                    (terms.input(data(from + 16, 16)), terms.input(ir::field::meta::LEN));
                let end = terms.with(BinaryOp::Add, length, at.into());
                Self::ask(Atom::Compare(CompareOp::Le, end, all), next, none)
            }
            (0, _) => {
                let (words, length) =
                    (terms.input(data(from + 4, 4)), terms.input(data(from + 16, 16)));
                let header = terms.with(BinaryOp::Mul, words, 4);
                Self::ask(Atom::Compare(CompareOp::Le, header, length), kind(Network::Ip), none)
            }
            (1, 1) => Self::ask(Self::reaches(terms, at + 28), next, none),
            (1, _) => {
                let head = 0x0001_0800_0604;
                let atom = Self::within(terms, data(from, 48), head, head);
                Self::ask(atom, kind(Network::Arp), none)
            }
            (_, 1) => Self::ask(Self::reaches(terms, at + 40), next, none),
            _ => {
                let (length, all) =
                    (terms.input(data(from + 32, 16)), terms.input(ir::field::meta::LEN));
                let end = terms.with(BinaryOp::Add, length, (at + 40).into());
                Self::ask(Atom::Compare(CompareOp::Le, end, all), kind(Network::Ip6), none)
            }
        })
    }

    /// The first byte of the IPv4 header, if there is one.
    pub(super) fn ip(&self, terms: &mut Terms) -> Result<Option<u16>, Box<Question>> {
        let (network, at) = self.network(terms)?;
        Ok((network == Network::Ip).then_some(at))
    }

    /// Whether the frame is of type IPv4, whatever follows.
    pub(super) fn is_ip_frame(&self, terms: &mut Terms) -> Result<bool, Box<Question>> {
        self.network(terms)?;
        Ok(self.network.is_some() && self.kinds == 0)
    }

    /// Whether the protocol of an IPv4 packet is 0: its header is never written then.
    pub(super) fn is_zero_protocol(
        &self,
        terms: &mut Terms,
        ip: u16,
    ) -> Result<bool, Box<Question>> {
        if self.transport.is_some_and(|transport| transport != Transport::None) {
            return Ok(false);
        }
        let atom = Self::within(terms, data(8 * ip + 72, 8), 0, 0);
        let known = |zero| Sight { zero: Some(zero), ..*self };
        self.zero.ok_or_else(|| Self::ask(atom, known(true), known(false)))
    }

    /// Whether a change of the type of service, of these bits to this number, is none that the
    /// checksum shows: a switch leaves both alone if the number is there already, which makes a
    /// difference for a checksum of 0xffff.
    pub(super) fn is_same_service(
        &self,
        terms: &mut Terms,
        ip: u16,
        (offset, width): (u16, u16),
        value: u128,
    ) -> Result<bool, Box<Question>> {
        let checksum = Self::within(terms, data(8 * ip + 80, 16), 0xffff, 0xffff);
        let known = |negative_zero| Sight { negative_zero: Some(negative_zero), ..*self };
        match self.negative_zero {
            None => return Err(Self::ask(checksum, known(true), known(false))),
            Some(false) => return Ok(false),
            Some(true) => {}
        }
        let atom = Self::within(terms, data(8 * ip + offset, width), value, value);
        let known = |same| Sight { same_service: Some(same), ..*self };
        self.same_service.ok_or_else(|| Self::ask(atom, known(true), known(false)))
    }

    fn later(&self, terms: &mut Terms, ip: u16) -> Result<bool, Box<Question>> {
        let atom = Self::within(terms, data(8 * ip + 51, 13), 0, 0);
        let known = |later| Sight { later: Some(later), ..*self };
        self.later.ok_or_else(|| Self::ask(atom, known(false), known(true)))
    }

    fn fragment(&self, terms: &mut Terms, ip: u16) -> Result<bool, Box<Question>> {
        if self.later(terms, ip)? {
            return Ok(true);
        }
        let atom = Self::within(terms, data(8 * ip + 50, 1), 1, 1);
        let known = |fragment| Sight { fragment: Some(fragment), ..*self };
        self.fragment.ok_or_else(|| Self::ask(atom, known(true), known(false)))
    }

    /// Words of the IPv4 header.
    fn words(&self, terms: &mut Terms, ip: u16) -> Result<u8, Box<Question>> {
        let next = match self.words {
            None => 5,
            Some(words) if words < 0x80 => return Ok(words),
            Some(tried) => tried & 0xf,
        };
        let yes = Sight { words: Some(next), ..*self };
        let no = Sight { words: Some(if next == 14 { 15 } else { 0x80 | (next + 1) }), ..*self };
        let atom = Self::within(terms, data(8 * ip + 4, 4), next.into(), next.into());
        Err(Self::ask(atom, yes, no))
    }

    /// What follows the IPv4 header by its protocol, whether or not it is there.
    fn transport(&self, terms: &mut Terms, ip: u16) -> Result<Transport, Box<Question>> {
        if let Some(transport) = self.transport {
            return Ok(transport);
        }
        let kinds = [
            (6, Transport::Tcp),
            (17, Transport::Udp),
            (1, Transport::Icmp),
            (132, Transport::Sctp),
        ];
        let (number, kind) = kinds[usize::from(self.protocols) % kinds.len()];
        let yes = Sight { transport: Some(kind), ..*self };
        let no = match self.protocols {
            3 => Sight { transport: Some(Transport::None), ..*self },
            tried => Sight { protocols: tried + 1, ..*self },
        };
        let atom = Self::within(terms, data(8 * ip + 72, 8), number, number);
        Err(Self::ask(atom, yes, no))
    }

    /// The transport header of an IPv4 packet, and its first bit, if all of it is there.
    pub(super) fn transport_header(
        &self,
        terms: &mut Terms,
    ) -> Result<Option<(Transport, u16)>, Box<Question>> {
        let Some(ip) = self.ip(terms)? else { return Ok(None) };
        let transport = self.transport(terms, ip)?;
        let least = match transport {
            Transport::Tcp => 20,
            Transport::Udp | Transport::Icmp => 8,
            Transport::Sctp => 12,
            Transport::None => return Ok(None),
        };
        if self.later(terms, ip)? {
            return Ok(None);
        }
        let words = self.words(terms, ip)?;
        let length = data(8 * ip + 16, 16);
        let from = 8 * (ip + 4 * u16::from(words));
        let Some(whole) = self.whole else {
            let known = |whole| Sight { whole: Some(whole), checks: 0, ..*self };
            let next = Sight { checks: self.checks + 1, ..*self };
            let is_tcp = transport == Transport::Tcp;
            return Err(match self.checks {
                0 => {
                    let least = u128::from(words) * 4 + least;
                    let atom = Self::within(terms, length, least, 0xffff);
                    Self::ask(atom, if is_tcp { next } else { known(true) }, known(false))
                }
                // A header of TCP says itself how long it is.
                1 => Self::ask(Self::within(terms, data(from + 96, 4), 5, 15), next, known(false)),
                _ => {
                    let (words, all) = (terms.input(data(from + 96, 4)), terms.input(length));
                    let header = terms.with(BinaryOp::Mul, words, 4);
                    let end = terms.with(BinaryOp::Add, header, u128::from((from - 8 * ip) / 8));
                    let atom = Atom::Compare(CompareOp::Le, end, all);
                    Self::ask(atom, known(true), known(false))
                }
            });
        };
        Ok(whole.then_some((transport, from)))
    }

    /// A field of the packet as it came in; registers and the port are none.
    pub(super) fn field(&self, terms: &mut Terms, name: Name) -> Answer {
        let zero = Ok(Seen::Constant(0));
        let bits = |offset, width| Ok(Seen::Bits(data(offset, width)));
        match name {
            Name::EthDst => bits(0, 48),
            Name::EthSrc => bits(48, 48),
            Name::Vlan => match self.tagged(terms)? {
                true => Ok(Seen::Tag(data(116, 12))),
                false => zero,
            },
            Name::Priority => match self.tagged(terms)? {
                true => bits(112, 3),
                false => zero,
            },
            // Found out already.
            Name::EthType if self.network.is_some() && self.kinds == 0 => {
                Ok(Seen::Constant(0x0800))
            }
            Name::EthType => Ok(self.type_bits(terms)?.map_or(Seen::Constant(NO_TYPE), Seen::Bits)),
            Name::ArpOp | Name::ArpSpa | Name::ArpTpa | Name::ArpSha | Name::ArpTha => {
                let (network, at) = self.network(terms)?;
                if network != Network::Arp {
                    return zero;
                }
                let from = 8 * at;
                match name {
                    Name::ArpOp => {
                        // The switch keeps eight bits of it.
                        let atom = Self::within(terms, data(from + 48, 16), 0, 0xff);
                        let known = |small| Sight { small_op: Some(small), ..*self };
                        let small = self.small_op;
                        match small.ok_or_else(|| Self::ask(atom, known(true), known(false)))? {
                            true => bits(from + 48, 16),
                            false => zero,
                        }
                    }
                    Name::ArpSha => bits(from + 64, 48),
                    Name::ArpSpa => bits(from + 112, 32),
                    Name::ArpTha => bits(from + 144, 48),
                    _ => bits(from + 192, 32),
                }
            }
            Name::Source6 | Name::Destination6 | Name::Label6 => {
                let (network, at) = self.network(terms)?;
                match (network, name) {
                    (Network::Ip6, Name::Source6) => bits(8 * at + 64, 128),
                    (Network::Ip6, Name::Label6) => bits(8 * at + 12, 20),
                    (Network::Ip6, _) => bits(8 * at + 192, 128),
                    _ => zero,
                }
            }
            Name::Dscp | Name::Ecn | Name::Ttl => {
                let (network, at) = self.network(terms)?;
                let from = 8 * at;
                match (network, name) {
                    (Network::Ip, Name::Dscp) => bits(from + 8, 6),
                    (Network::Ip, Name::Ecn) => bits(from + 14, 2),
                    (Network::Ip, _) => bits(from + 64, 8),
                    (Network::Ip6, Name::Dscp) => bits(from + 4, 6),
                    (Network::Ip6, Name::Ecn) => bits(from + 10, 2),
                    (Network::Ip6, _) => bits(from + 56, 8),
                    _ => zero,
                }
            }
            Name::Protocol | Name::Source | Name::Destination | Name::Fragment | Name::Later => {
                let Some(ip) = self.ip(terms)? else { return zero };
                let from = 8 * ip;
                match name {
                    Name::Protocol => bits(from + 72, 8),
                    Name::Source => bits(from + 96, 32),
                    Name::Destination => bits(from + 128, 32),
                    Name::Later => Ok(Seen::Constant(self.later(terms, ip)?.into())),
                    _ => Ok(Seen::Constant(self.fragment(terms, ip)?.into())),
                }
            }
            Name::SourcePort
            | Name::DestinationPort
            | Name::TcpFlags
            | Name::IcmpType
            | Name::IcmpCode => {
                let Some((transport, from)) = self.transport_header(terms)? else { return zero };
                let has_ports = transport != Transport::Icmp;
                match name {
                    Name::SourcePort if has_ports => bits(from, 16),
                    Name::DestinationPort if has_ports => bits(from + 16, 16),
                    Name::TcpFlags if transport == Transport::Tcp => bits(from + 100, 12),
                    Name::IcmpType if transport == Transport::Icmp => bits(from, 8),
                    Name::IcmpCode if transport == Transport::Icmp => bits(from + 8, 8),
                    _ => zero,
                }
            }
            Name::InPort | Name::Register | Name::Metadata => zero,
        }
    }
}
