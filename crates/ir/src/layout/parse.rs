//! The parser: headers from what is known of a packet's bits.

use net::wire::{ether_type, ip_protocol};

use super::{Header, Kind, Layout, Select};
use crate::IntervalSet;
use crate::field::{Field, eth, gre, icmp, ip, ip6, ip6_ext, ip6_frag, nsh, transport, vlan};

/// What is known of a packet.
pub trait Evidence {
    /// The numbers that `width` bits can be, from bit `start` of the data on; `None` if nothing is
    /// known of them.
    fn bits(&self, start: i32, width: u32) -> Option<IntervalSet>;

    /// Whether the packet may have bytes up to there.
    fn reaches(&self, _end: i32) -> bool {
        true
    }
}

/// Where a packet's headers begin, as far as bytes do not say so: offsets in bytes from the first data byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// An Ethernet frame.
    pub frame: Option<i32>,
    /// The network header.
    pub network: Option<i32>,
    /// The transport header.
    pub transport: Option<i32>,
    /// What the network header is, where nothing else says so.
    pub kind: Option<Kind>,
}

impl Start {
    /// Where the headers of packets begin that came in with their network header there, as far as is
    /// known: a frame is taken to be before a network header that has room for it.
    pub fn of(evidence: &impl Evidence, network: Option<i32>, transport: Option<i32>) -> Self {
        let bit = i32::from(eth::TYPE.offset);
        let said = evidence.bits(bit, eth::TYPE.width.into());
        // Marks before the end of the frame's header are of frames that were made of it.
        let is_type = |set: &IntervalSet| {
            let known = set.as_single().is_some_and(is_followed);
            known || network.is_none_or(|at| at >= 14)
        };
        let frame = match network {
            _ if said.as_ref().is_some_and(is_type) => Some(0),
            Some(14 | 18 | 22) => Some(0),
            _ => None,
        };
        Self {
            frame,
            network: network.filter(|at| frame.is_none() || *at >= 14),
            transport,
            kind: None,
        }
    }
}

/// Whether a header follows that the parser knows.
fn is_followed(ether_type: u128) -> bool {
    use ether_type::{ARP, IPV4, IPV6, NSH, is_vlan};
    u16::try_from(ether_type).is_ok_and(|t| matches!(t, ARP | IPV4 | IPV6 | NSH) || is_vlan(t))
}

impl Layout {
    /// The headers of a packet.
    pub fn parse(evidence: &impl Evidence, start: Start) -> Self {
        let mut parser =
            Parser { evidence, start, headers: Vec::new(), depth: 0, select: None, assumed: false };
        match (start.frame, start.network) {
            (Some(at), _) => parser.ethernet(at),
            (None, Some(at)) => parser.marked(at, None),
            (None, None) => {}
        }
        // What elements mark behind the headers that are known is a header that they look for.
        let end = parser.headers.last().map(Header::end);
        let has_network = parser.headers.iter().any(|header| header.kind.is_network());
        if let (Some(at), Some(end)) = (start.network, end)
            && at >= end
            && has_network
        {
            (parser.depth, parser.select) = (1, None);
            parser.marked(at, None);
        }
        Self { headers: parser.headers }
    }
}

/// Headers of a packet that are parsed: hostile packets could have thousands.
const MOST_HEADERS: usize = 32;

/// A parser of one packet.
struct Parser<'a, E> {
    evidence: &'a E,
    start: Start,
    headers: Vec<Header>,
    depth: u8,
    /// What says that the next header follows.
    select: Option<Select>,
    /// Whether the next header is only taken for what it is.
    assumed: bool,
}

impl<E: Evidence> Parser<'_, E> {
    fn bits(&self, at: i32, field: Field) -> Option<IntervalSet> {
        self.evidence.bits(8 * at + i32::from(field.offset), field.width.into())
    }

    fn single(&self, at: i32, field: Field) -> Option<u128> {
        self.bits(at, field)?.as_single()
    }

    fn push(&mut self, kind: Kind, offset: i32, length: u16) -> bool {
        let is_there = self.evidence.reaches(offset + i32::from(length));
        if !is_there || self.headers.len() >= MOST_HEADERS {
            return false;
        }
        let (select, assumed, depth) = (self.select.take(), self.assumed, self.depth);
        self.headers.push(Header { kind, offset, length, options: None, select, assumed, depth });
        true
    }

    /// Notes what says that the next header follows.
    fn follows(&mut self, field: Field, value: Option<u128>) {
        self.select = value.map(|value| Select { field, value });
        self.assumed |= value.is_none();
    }

    fn is_outermost(&self) -> bool {
        self.depth == 0 && !self.headers.iter().any(|header| header.kind.is_network())
    }

    fn ethernet(&mut self, at: i32) {
        let bit = |at: i32| 8 * (at + 12);
        let mut said = self.evidence.bits(bit(at), 16);
        let marked = self.start.network.filter(|_| self.depth == 0).map(|network| network - at);
        if said.is_none() && marked.is_some_and(|length| !matches!(length, 14 | 18 | 22)) {
            // What is marked is not the header of such a frame.
            return;
        }
        if !self.push(Kind::Ethernet, at, 14) {
            return;
        }
        let (mut end, mut field) = (at + 14, eth::TYPE);
        for (tag, next) in [(Kind::Vlan, vlan::TYPE), (Kind::InnerVlan, vlan::TYPE2)] {
            let tags = |set: &IntervalSet| {
                let all = [ether_type::VLAN, ether_type::QINQ, ether_type::QINQ_OLD];
                let all: Vec<IntervalSet> =
                    all.iter().map(|t| IntervalSet::single((*t).into())).collect();
                set.is_subset(&IntervalSet::union_of(&all))
            };
            let assumed = said.is_none() && marked.is_some_and(|length| at + length > end);
            if !(assumed || said.as_ref().is_some_and(|set| !set.is_empty() && tags(set))) {
                break;
            }
            let value = said.as_ref().and_then(IntervalSet::as_single);
            let before = self.assumed;
            self.follows(field, value);
            self.assumed = before || assumed;
            if !self.push(tag, end, 4) {
                return;
            }
            (end, field) = (end + 4, next);
            said = self.evidence.bits(8 * (end - 2), 16);
        }
        self.typed(end, field, said);
    }

    /// What an Ethernet type says of what follows.
    fn typed(&mut self, at: i32, field: Field, said: Option<IntervalSet>) {
        let value = said.as_ref().and_then(IntervalSet::as_single);
        let Some(value) = value else {
            return self.marked(at, said);
        };
        self.follows(field, Some(value));
        match u16::try_from(value) {
            Ok(ether_type::IPV4) => self.ipv4(at),
            Ok(ether_type::IPV6) => self.ipv6(at),
            Ok(ether_type::NSH) => self.nsh(at),
            Ok(ether_type::ARP) => {
                self.push(Kind::Arp, at, 28);
            }
            Ok(ether_type::TEB) => self.tunnel(|parser| parser.ethernet(at)),
            _ => {
                self.select = None;
                // Frames may be of a type of their own, and carry IP all the same.
                if self.start.network == Some(at) && self.single(at, ip::VERSION).is_some() {
                    self.marked(at, None);
                }
            }
        }
    }

    /// A network header where one is marked, or the version says so, if its type may be.
    fn marked(&mut self, at: i32, types: Option<IntervalSet>) {
        let may_be = |t: u16| types.as_ref().is_none_or(|types| types.contains(t.into()));
        let version = self.single(at, ip::VERSION);
        let is_marked = self.start.network == Some(at);
        if !is_marked && (version.is_none() || !self.is_outermost()) {
            return;
        }
        self.assumed = true;
        match (version, self.start.kind) {
            (Some(6), _) if may_be(ether_type::IPV6) => self.ipv6(at),
            (None, Some(Kind::Ipv6)) if may_be(ether_type::IPV6) => self.ipv6(at),
            (None, Some(Kind::Arp)) if may_be(ether_type::ARP) => {
                self.push(Kind::Arp, at, 28);
            }
            (Some(4) | None, _) if may_be(ether_type::IPV4) => self.ipv4(at),
            _ => {}
        }
    }

    fn ipv4(&mut self, at: i32) {
        let words = self.bits(at, ip::HL);
        let version = self.bits(at, ip::VERSION);
        let is_other = version.as_ref().is_some_and(|version| !version.contains(4));
        let least = words.as_ref().and_then(IntervalSet::min).unwrap_or(0).max(5);
        let known = words.as_ref().and_then(IntervalSet::as_single);
        if is_other && version.is_some_and(|version| version.as_single().is_some()) {
            return;
        }
        let options = match words {
            _ if least > 5 => Some(true),
            Some(ref words) if words.intervals().iter().all(|i| i.1 <= 5) => Some(false),
            _ => None,
        };
        let outermost = self.is_outermost();
        if !self.push(Kind::Ipv4, at, 4 * least as u16) {
            return;
        }
        if let Some(header) = self.headers.last_mut() {
            header.options = options;
        }
        let marked =
            self.start.transport.filter(|to| outermost && (at + 20..=at + 60).contains(to));
        let next = match (known, marked, options) {
            (Some(words), ..) => at + 4 * words as i32,
            (_, Some(to), _) => to,
            (.., Some(true)) => return,
            _ => {
                self.assumed |= options.is_none();
                at + 20
            }
        };
        let is_later = self.bits(at, ip::FRAG).is_some_and(|offset| !offset.contains(0));
        if !is_later {
            self.protocol(next, ip::PROTO, self.bits(at, ip::PROTO));
        }
    }

    fn ipv6(&mut self, at: i32) {
        let version = self.bits(at, ip6::VERSION);
        let is_other = version.as_ref().is_some_and(|version| !version.contains(6));
        if is_other && version.is_some_and(|version| version.as_single().is_some()) {
            return;
        }
        if self.push(Kind::Ipv6, at, 40) && !is_other {
            self.protocol(at + 40, ip6::NEXT, self.bits(at, ip6::NEXT));
        }
    }

    /// What a protocol number says of what follows.
    fn protocol(&mut self, at: i32, field: Field, said: Option<IntervalSet>) {
        use ip_protocol::{
            DESTINATION_OPTIONS, GRE, HOP_BY_HOP, ICMP, ICMPV6, IPIP, IPV6, IPV6_FRAGMENT,
            IPV6_ROUTING, SCTP, TCP, UDP,
        };
        let value = said.as_ref().and_then(IntervalSet::as_single);
        let Some(value) = value else {
            let with_ports = [TCP, UDP, SCTP].map(|p| IntervalSet::single(p.into()));
            let with_ports = IntervalSet::union_of(&with_ports);
            let certain = said.as_ref().is_some_and(|said| said.is_subset(&with_ports));
            if said.is_none_or(|said| said.intersects(&with_ports)) {
                self.assumed |= !certain;
                self.push(Kind::Ports, at, 4);
            }
            return;
        };
        self.follows(field, Some(value));
        let is_ip6 = field != ip::PROTO;
        match u8::try_from(value) {
            Ok(TCP) => {
                self.push(Kind::Tcp, at, 20);
            }
            Ok(UDP) => self.udp(at),
            Ok(ICMP) => self.icmp(Kind::Icmp, at),
            Ok(ICMPV6) => self.icmp(Kind::Icmp6, at),
            Ok(SCTP) => {
                self.push(Kind::Ports, at, 4);
            }
            Ok(GRE) => self.gre(at),
            Ok(IPIP) => self.tunnel(|parser| parser.ipv4(at)),
            Ok(IPV6) => self.tunnel(|parser| parser.ipv6(at)),
            Ok(HOP_BY_HOP | IPV6_ROUTING | DESTINATION_OPTIONS) if is_ip6 => self.extension(at),
            Ok(IPV6_FRAGMENT) if is_ip6 => self.fragment(at),
            _ => self.select = None,
        }
    }

    fn tunnel(&mut self, inside: impl FnOnce(&mut Self)) {
        self.depth = self.depth.saturating_add(1);
        inside(self);
    }

    fn extension(&mut self, at: i32) {
        let at_header = at - i32::from(Kind::Extension.origin()) / 8;
        let words = self.single(at_header, ip6_ext::LEN);
        let length = 8 * (words.unwrap_or(0) as u16 + 1);
        if self.push(Kind::Extension, at, length) && words.is_some() {
            let next = self.bits(at_header, ip6_ext::NEXT);
            self.protocol(at + i32::from(length), ip6_ext::NEXT, next);
        }
    }

    fn fragment(&mut self, at: i32) {
        let at_header = at - i32::from(Kind::Fragment.origin()) / 8;
        let offset = self.bits(at_header, ip6_frag::OFFSET);
        let is_later = offset.is_some_and(|offset| !offset.contains(0));
        if self.push(Kind::Fragment, at, 8) && !is_later {
            self.protocol(at + 8, ip6_frag::NEXT, self.bits(at_header, ip6_frag::NEXT));
        }
    }

    fn icmp(&mut self, kind: Kind, at: i32) {
        let said = self.bits(at, icmp::TYPE);
        if !self.push(kind, at, 8) {
            return;
        }
        // Errors carry the packet that they are about.
        let errors = match kind {
            Kind::Icmp => IntervalSet::from_intervals(vec![(3, 5), (11, 12)]),
            _ => IntervalSet::range(1, 4),
        };
        let Some(said) = said.filter(|said| !said.is_empty() && said.is_subset(&errors)) else {
            return;
        };
        let value = said.as_single();
        self.select = value.map(|value| Select { field: icmp::TYPE, value });
        self.tunnel(|parser| match kind {
            Kind::Icmp => parser.ipv4(at + 8),
            _ => parser.ipv6(at + 8),
        });
    }

    fn udp(&mut self, at: i32) {
        let port = self.single(at, transport::DPORT);
        if !self.push(Kind::Udp, at, 8) || port != Some(net::wire::vxlan::PORT.into()) {
            return;
        }
        self.follows(transport::DPORT, port);
        if self.push(Kind::Vxlan, at + 8, 8) {
            self.tunnel(|parser| parser.ethernet(at + 16));
        }
    }

    fn gre(&mut self, at: i32) {
        let flag = |parser: &Self, bit: u16| {
            let flag = Field::bits(gre::FLAGS.base, bit, 1);
            parser.bits(at, flag).and_then(|set| set.as_single())
        };
        let flags = [flag(self, 0), flag(self, 2), flag(self, 3)];
        let is_routed = flag(self, 1) == Some(1);
        let words = flags.iter().filter(|flag| **flag == Some(1)).count() as u16;
        if !self.push(Kind::Gre, at, 4 + 4 * words) || is_routed {
            return;
        }
        self.assumed |= flags.contains(&None);
        let next = at + 4 + 4 * i32::from(words);
        let Some(value) = self.single(at, gre::PROTO) else { return };
        match u16::try_from(value) {
            Ok(ether_type::TEB) => {
                self.follows(gre::PROTO, Some(value));
                self.tunnel(|parser| parser.ethernet(next));
            }
            _ => self.tunnel(|parser| {
                parser.typed(next, gre::PROTO, Some(IntervalSet::single(value)));
            }),
        }
    }

    fn nsh(&mut self, at: i32) {
        let words = self.single(at, nsh::LENGTH).filter(|words| *words >= 2);
        let length = 4 * words.unwrap_or(2) as u16;
        if !self.push(Kind::Nsh, at, length) || words.is_none() {
            return;
        }
        let Some(next) = self.single(at, nsh::NEXT) else { return };
        self.follows(nsh::NEXT, Some(next));
        let at = at + i32::from(length);
        match next {
            1 => self.ipv4(at),
            2 => self.ipv6(at),
            3 => self.tunnel(|parser| parser.ethernet(at)),
            _ => self.select = None,
        }
    }
}
