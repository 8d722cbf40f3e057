//! Conditions of flow entries: what the numbers that a program tests are called on a switch, and
//! which masks stand for a set of numbers.

use ir::layout::{Header, Kind};
use ir::program::{Exit, TermId};
use ir::{Base, IntervalSet};
use net::wire::{ether_type, ip_protocol};

use super::Dialect;
use super::action::{self, Action};
use crate::Lack;
use crate::number::Rows;
use crate::rule::{self, Key, Matcher, Packets, input_bits, lack, prefixes};

/// A field that flow entries match. Its order is that in which fields are written: each stands
/// behind those that it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Match {
    InPort,
    /// The number that tables hand on.
    State,
    EthDst,
    EthSrc,
    /// A tag: whether there is one ([`TAGGED`]), and its ID.
    VlanId,
    VlanPriority,
    EthType,
    ArpOp,
    ArpSpa,
    ArpTpa,
    ArpSha,
    ArpTha,
    IpProto,
    IpSrc,
    IpDst,
    IpDscp,
    IpEcn,
    IpTtl,
    /// Bit 0: a fragment. Bit 1: not the first.
    IpFrag,
    Ip6Src,
    Ip6Dst,
    Ip6Label,
    SourcePort,
    DestinationPort,
    TcpFlags,
    IcmpType,
    IcmpCode,
}

/// The bit of [`Match::VlanId`] that a frame with a tag has.
pub(super) const TAGGED: u128 = 0x1000;

/// Bit of [`Match::IpFrag`] that a fragment behind the first has.
const LATER: u128 = 2;

/// What the type of a frame is called whose type field holds a length.
const NO_TYPE: u128 = 0x5ff;

/// Types below this are lengths.
const FIRST_TYPE: u128 = 0x600;

/// Conditions that alternate are no more than this.
const MOST_ALTERNATIVES: usize = 1 << 14;

impl Key for Match {
    fn width(self) -> u16 {
        match self {
            Self::InPort | Self::State => 32,
            Self::EthDst | Self::EthSrc | Self::ArpSha | Self::ArpTha => 48,
            Self::VlanId => 13,
            Self::VlanPriority => 3,
            Self::EthType | Self::ArpOp | Self::SourcePort | Self::DestinationPort => 16,
            Self::ArpSpa | Self::ArpTpa | Self::IpSrc | Self::IpDst => 32,
            Self::IpProto | Self::IpTtl | Self::IcmpType | Self::IcmpCode => 8,
            Self::IpDscp => 6,
            Self::IpEcn | Self::IpFrag => 2,
            Self::Ip6Src | Self::Ip6Dst => 128,
            Self::Ip6Label => 20,
            Self::TcpFlags => 12,
        }
    }
}

impl Match {
    /// Whether entries may name some of its bits only.
    fn has_masks(self, dialect: Dialect) -> bool {
        match self {
            Self::State
            | Self::EthDst
            | Self::EthSrc
            | Self::VlanId
            | Self::ArpSpa
            | Self::ArpTpa
            | Self::ArpSha
            | Self::ArpTha
            | Self::IpSrc
            | Self::IpDst
            | Self::Ip6Src
            | Self::Ip6Dst
            | Self::Ip6Label => true,
            Self::SourcePort | Self::DestinationPort | Self::TcpFlags | Self::IpFrag => {
                dialect == Dialect::OpenVSwitch
            }
            _ => false,
        }
    }

    /// Whether the dialect has it at all.
    fn is_known(self, dialect: Dialect) -> bool {
        match self {
            Self::IpTtl | Self::IpFrag | Self::TcpFlags => dialect == Dialect::OpenVSwitch,
            _ => true,
        }
    }
}

/// A conjunction: some bits of some fields.
pub(super) type Conditions = rule::Conditions<Match>;

/// Where on a switch a number is that a program tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    /// Bits of a field from `low` on, where some conditions hold.
    Bits { field: Match, low: u16, width: u16, needs: Conditions },
    /// The type of a frame, with its tags.
    Type,
    /// How far into a datagram a fragment starts.
    Offset { needs: Conditions },
    /// The type-of-service byte.
    TypeOfService { needs: Conditions },
    /// So many bits from a bit of the transport header on, of which it depends on the protocol what
    /// they are; that is known, or each rule says it.
    Transport { start: u16, width: u16, protocols: Vec<u8>, needs: Conditions },
}

/// Finds fields of a step's packets.
#[derive(Clone, Copy)]
pub(super) struct Sight<'a> {
    pub(super) dialect: Dialect,
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

    /// Whether there is a tag in front of the network header: none, or one that the switch sees.
    fn tag(&self) -> Option<bool> {
        let has = |kind| self.packets.layout.headers().iter().any(|header| header.kind == kind);
        (!has(Kind::InnerVlan)).then(|| has(Kind::Vlan))
    }

    /// Conditions under which a header is there.
    pub(super) fn needs(&self, header: &Header) -> Option<Conditions> {
        if header.depth > 0 || header.offset < 0 {
            return None;
        }
        let network = |kind| {
            let network = self.packets.layout.network().filter(|network| network.kind == kind)?;
            self.needs(network)
        };
        let of = |protocol: u8| Conditions::exact(Match::IpProto, protocol.into());
        match header.kind {
            Kind::Ethernet => (header.offset == 0).then(Conditions::default),
            Kind::Vlan => {
                (header.offset == 14).then(|| Conditions::masked(Match::VlanId, TAGGED, TAGGED))
            }
            Kind::Arp | Kind::Ipv4 | Kind::Ipv6 => {
                let (tagged, ethernet) = (self.tag()?, self.packets.layout.headers().first()?);
                let first = ethernet.kind == Kind::Ethernet && ethernet.offset == 0;
                let at = if tagged { 18 } else { 14 };
                // The type was tested before, or packets of other types come here, too.
                if !first || header.offset != at || header.assumed {
                    return None;
                }
                let ether_type = match header.kind {
                    Kind::Arp => ether_type::ARP,
                    Kind::Ipv4 => ether_type::IPV4,
                    _ => ether_type::IPV6,
                };
                Some(Conditions::exact(Match::EthType, ether_type.into()))
            }
            Kind::Tcp => network(Kind::Ipv4)?.and(&of(ip_protocol::TCP)),
            Kind::Udp => network(Kind::Ipv4)?.and(&of(ip_protocol::UDP)),
            Kind::Icmp => network(Kind::Ipv4)?.and(&of(ip_protocol::ICMP)),
            _ => None,
        }
    }

    /// Where a number is seen.
    ///
    /// # Errors
    /// What the switch lacks.
    pub(super) fn find(&self, term: TermId) -> Result<Seen, Lack> {
        let lack = || lack(self.packets, term);
        let field = input_bits(self.packets.program, term).filter(|field| field.base == Base::Data);
        let field = field.ok_or_else(lack)?;
        self.see(i32::from(field.offset), field.width).ok_or_else(lack)
    }

    fn see(&self, start: i32, width: u16) -> Option<Seen> {
        let transport = self.transport(start, width);
        if transport.is_some() {
            return transport;
        }
        let header = self.header(start)?;
        let needs = self.needs(header)?;
        let at = start - 8 * header.offset;
        let end = at + i32::from(width);
        if header.kind == Kind::Ethernet && (at, end) == (96, 112) {
            return Some(Seen::Type);
        }
        if header.kind == Kind::Ipv4 && (at, end) == (51, 64) {
            let seen = Match::IpFrag.is_known(self.dialect);
            return seen.then_some(Seen::Offset { needs });
        }
        if header.kind == Kind::Ipv4 && (at, end) == (8, 16) {
            return Some(Seen::TypeOfService { needs });
        }
        use Match::{
            ArpOp, ArpSha, ArpSpa, ArpTha, ArpTpa, EthDst, EthSrc, EthType, Ip6Dst, Ip6Label,
            Ip6Src, IpDscp, IpDst, IpEcn, IpProto, IpSrc, IpTtl, VlanId, VlanPriority,
        };
        let fields: &[(i32, Match)] = match header.kind {
            Kind::Ethernet => &[(0, EthDst), (48, EthSrc)],
            Kind::Vlan => &[(0, VlanPriority), (3, VlanId), (16, EthType)],
            Kind::Arp => &[(48, ArpOp), (64, ArpSha), (112, ArpSpa), (144, ArpTha), (192, ArpTpa)],
            Kind::Ipv4 => {
                &[(8, IpDscp), (14, IpEcn), (64, IpTtl), (72, IpProto), (96, IpSrc), (128, IpDst)]
            }
            // Behind extension headers the switch takes the last one's protocol for the header's.
            Kind::Ipv6 => &[
                (4, IpDscp),
                (10, IpEcn),
                (12, Ip6Label),
                (56, IpTtl),
                (64, Ip6Src),
                (192, Ip6Dst),
            ],
            _ => &[],
        };
        let inside =
            |(from, field): &&(i32, Match)| *from <= at && end <= from + i32::from(field.width());
        let &(from, field) = fields.iter().find(inside)?;
        // The bit that says that there is a tag is no bit of the frame.
        if field == VlanId && at < from + 1 {
            return None;
        }
        let low = (from + i32::from(field.width()) - end) as u16;
        self.bits(field, low, width, needs)
    }

    fn bits(&self, field: Match, low: u16, width: u16, needs: Conditions) -> Option<Seen> {
        let whole = width == field.width();
        let known = field.is_known(self.dialect) && (whole || field.has_masks(self.dialect));
        known.then_some(Seen::Bits { field, low, width, needs })
    }

    /// Bits behind an IPv4 header.
    fn transport(&self, start: i32, width: u16) -> Option<Seen> {
        let network = self.packets.layout.network().filter(|network| network.kind == Kind::Ipv4)?;
        let mut needs = self.needs(network)?;
        let header = self.header(start);
        let at = match header {
            Some(header) if header.depth > 0 || header.offset <= network.offset => return None,
            Some(header) => 8 * header.offset,
            None if network.options == Some(true) => return None,
            None => 8 * (network.offset + 20),
        };
        let start = u16::try_from(start - at).ok().filter(|start| start + width <= 160)?;
        let certain = header.filter(|header| !header.assumed);
        let protocols = match header.map(|header| header.kind) {
            Some(Kind::Tcp) => vec![ip_protocol::TCP],
            Some(Kind::Udp) => vec![ip_protocol::UDP],
            Some(Kind::Icmp) => vec![ip_protocol::ICMP],
            Some(Kind::Ports) if certain.is_some() => {
                vec![ip_protocol::TCP, ip_protocol::UDP, ip_protocol::SCTP]
            }
            _ => Vec::new(),
        };
        if Match::IpFrag.is_known(self.dialect) {
            // Of fragments behind the first the switch knows no ports.
            needs = needs.and(&Conditions::masked(Match::IpFrag, 0, LATER))?;
        }
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
        use Match::{DestinationPort, IcmpCode, IcmpType, SourcePort, TcpFlags};
        let fields: &[(u16, Match)] = match protocol {
            ip_protocol::TCP => &[(0, SourcePort), (16, DestinationPort), (100, TcpFlags)],
            ip_protocol::UDP | ip_protocol::SCTP => &[(0, SourcePort), (16, DestinationPort)],
            ip_protocol::ICMP => &[(0, IcmpType), (8, IcmpCode)],
            _ => return None,
        };
        let inside =
            |(from, field): &&(u16, Match)| *from <= start && start + width <= from + field.width();
        let &(from, field) = fields.iter().find(inside)?;
        let needs = needs.and(&Conditions::exact(Match::IpProto, protocol.into()))?;
        self.bits(field, from + field.width() - start - width, width, needs)
    }

    /// Conditions of which one holds exactly where a number is in a set; at most one of them, if
    /// `protocols` are not given.
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
            Seen::Bits { field, low, width, needs } => {
                let numbers = match field.has_masks(self.dialect) {
                    true => prefixes(set, *width, MOST_ALTERNATIVES)?,
                    false => singles(set, u128::MAX >> (128 - width))?,
                };
                let shifted = numbers.iter().map(|(value, mask)| {
                    needs.and(&Conditions::masked(*field, value << low, mask << low))
                });
                Ok(shifted.flatten().collect())
            }
            Seen::Type => types(set),
            Seen::Offset { needs } => {
                let (first, later) = (set.contains(0), set.contains(1));
                // How far is not seen, only whether.
                let all = IntervalSet::range(1, 0x1fff).is_subset(set);
                if later != all || (!all && set.intervals().iter().any(|i| i.1 > 0)) {
                    return Err(None);
                }
                let one = |value| needs.and(&Conditions::masked(Match::IpFrag, value, LATER));
                let of = [(first, 0), (later, LATER)];
                Ok(of.iter().filter(|of| of.0).filter_map(|of| one(of.1)).collect())
            }
            Seen::TypeOfService { needs } => {
                let all = singles(set, 0xff)?;
                let of = all.iter().filter_map(|(value, _)| {
                    let dscp = Conditions::exact(Match::IpDscp, value >> 2);
                    needs.and(&dscp)?.and(&Conditions::exact(Match::IpEcn, value & 3))
                });
                Ok(of.collect())
            }
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
}

/// What a switch does where packets are sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Sends {
    pub(super) actions: Vec<Action>,
    /// What must be known of packets for these actions.
    pub(super) needs: Conditions,
}

impl Matcher for Dialect {
    type Key = Match;
    type Seen = Seen;
    type Exit = Sends;

    const MOST_RULES: usize = 1 << 20;

    fn find(&self, packets: Packets<'_>, term: TermId) -> Result<Seen, Lack> {
        Sight { dialect: *self, packets }.find(term)
    }

    fn within(
        &self,
        packets: Packets<'_>,
        seen: &Seen,
        set: &IntervalSet,
        protocols: Option<&[u8]>,
    ) -> Result<Vec<Conditions>, Option<usize>> {
        Sight { dialect: *self, packets }.within(seen, set, protocols)
    }

    fn field(seen: &Seen) -> Option<(Match, &Conditions)> {
        let Seen::Bits { field, low: 0, width, needs } = seen else { return None };
        (*width == field.width()).then_some((*field, needs))
    }

    fn is_protocol(seen: &Seen) -> bool {
        matches!(seen, Seen::Bits { field: Match::IpProto, .. })
    }

    fn sends(&self, packets: Packets<'_>, exit: &Exit, rows: &Rows) -> Result<Sends, Lack> {
        action::sends(*self, packets, exit, rows)
    }
}

/// Conditions on the type of a frame: the switch takes a tag's for that of a tagged frame, whichever
/// of both types a tag has, and does not distinguish lengths.
fn types(set: &IntervalSet) -> Result<Vec<Conditions>, Option<usize>> {
    let mut all = Vec::new();
    if set.contains(ether_type::VLAN.into()) {
        all.push(Conditions::masked(Match::VlanId, TAGGED, TAGGED));
    }
    let tags = [ether_type::VLAN, ether_type::QINQ].map(|tag| IntervalSet::single(tag.into()));
    let lengths = IntervalSet::range(0, FIRST_TYPE - 1);
    let mut rest = set.subtract(&IntervalSet::union_of(&tags));
    if lengths.is_subset(&rest) {
        rest = rest.subtract(&lengths).union(&IntervalSet::single(NO_TYPE));
    } else if rest.intersects(&lengths) {
        return Err(None);
    }
    let untagged = Conditions::masked(Match::VlanId, 0, TAGGED);
    for (value, _) in singles(&rest, 0xffff)? {
        all.extend(untagged.and(&Conditions::exact(Match::EthType, value)));
    }
    Ok(all)
}

/// The numbers of a set one by one.
fn singles(set: &IntervalSet, mask: u128) -> Result<Vec<(u128, u128)>, Option<usize>> {
    let count = usize::try_from(set.count()).ok();
    match count {
        Some(count) if count <= MOST_ALTERNATIVES => {}
        count => return Err(count),
    }
    let all = set.intervals().iter().flat_map(|&(low, high)| low..=high);
    Ok(all.map(|value| (value, mask)).collect())
}
