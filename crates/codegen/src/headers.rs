//! Headers as devices with a parser extract them: which of them the bits of a packet lie in, and what has to hold of the packet for
//! that.

use ir::field::{ip, ip6, meta};
use ir::layout::{Evidence, Facts, Header, Kind, Layout};
use ir::program::{Term, TermId};
use ir::{Base, Field, IntervalSet, Program};
use net::wire::{ether_type, ip_protocol};

use crate::Lack;

/// A header of the device's program. Their order is that in which they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Instance {
    Ethernet,
    /// The tag towards the cores, or from there.
    Tag,
    /// A tag that the chain pushes.
    Pushed,
    Vlan,
    InnerVlan,
    Arp,
    Ipv4,
    Ipv6,
    /// The first four bytes behind an IP header: the ports of TCP and UDP.
    Transport,
    Tcp,
    Udp,
    Icmp,
}

impl Instance {
    /// In the order in which they leave.
    pub(crate) const ALL: [Self; 12] = [
        Self::Ethernet,
        Self::Tag,
        Self::Pushed,
        Self::Vlan,
        Self::InnerVlan,
        Self::Arp,
        Self::Ipv4,
        Self::Ipv6,
        Self::Transport,
        Self::Tcp,
        Self::Udp,
        Self::Icmp,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "ethernet",
            Self::Tag => "tag",
            Self::Pushed => "pushed",
            Self::Vlan => "vlan",
            Self::InnerVlan => "inner_vlan",
            Self::Arp => "arp",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Transport => "transport",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Icmp => "icmp",
        }
    }

    /// The name of its type.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Tag | Self::Pushed | Self::Vlan | Self::InnerVlan => "vlan_t",
            Self::Ethernet => "ethernet_t",
            Self::Arp => "arp_t",
            Self::Ipv4 => "ipv4_t",
            Self::Ipv6 => "ipv6_t",
            Self::Transport => "transport_t",
            Self::Tcp => "tcp_t",
            Self::Udp => "udp_t",
            Self::Icmp => "icmp_t",
        }
    }

    /// Fields and their widths.
    pub(crate) fn fields(self) -> &'static [(&'static str, u16)] {
        match self {
            Self::Ethernet => &[("dst", 48), ("src", 48), ("ether_type", 16)],
            Self::Tag | Self::Pushed | Self::Vlan | Self::InnerVlan => {
                &[("pcp", 3), ("dei", 1), ("vid", 12), ("ether_type", 16)]
            }
            Self::Arp => &[
                ("htype", 16),
                ("ptype", 16),
                ("hlen", 8),
                ("plen", 8),
                ("op", 16),
                ("sha", 48),
                ("spa", 32),
                ("tha", 48),
                ("tpa", 32),
            ],
            Self::Ipv4 => &[
                ("version", 4),
                ("ihl", 4),
                ("dscp", 6),
                ("ecn", 2),
                ("len", 16),
                ("id", 16),
                ("flags", 3),
                ("frag", 13),
                ("ttl", 8),
                ("protocol", 8),
                ("checksum", 16),
                ("src", 32),
                ("dst", 32),
            ],
            Self::Ipv6 => &[
                ("version", 4),
                ("traffic_class", 8),
                ("flow_label", 20),
                ("payload_len", 16),
                ("next_header", 8),
                ("hop_limit", 8),
                ("src", 128),
                ("dst", 128),
            ],
            Self::Transport => &[("sport", 16), ("dport", 16)],
            Self::Tcp => &[
                ("seq", 32),
                ("ack", 32),
                ("offset", 4),
                ("flags", 12),
                ("window", 16),
                ("checksum", 16),
                ("urgent", 16),
            ],
            Self::Udp => &[("len", 16), ("checksum", 16)],
            Self::Icmp => &[("rest", 32)],
        }
    }

    pub(crate) fn bits(self) -> i32 {
        self.fields().iter().map(|field| i32::from(field.1)).sum()
    }
}

/// What has to hold of a packet.
pub(crate) type Need = (Field, IntervalSet);

/// A header at its place.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) instance: Instance,
    /// Its first bit, from the first bit of the data on.
    pub(crate) bit: i32,
    /// What says that it is there.
    pub(crate) needs: Vec<Need>,
}

fn need(bit: i32, width: u16, value: u128) -> Need {
    (
        Field::bits(Base::Data, u16::try_from(bit).unwrap_or(u16::MAX), width),
        IntervalSet::single(value),
    )
}

fn long_enough(bits: i32) -> Need {
    let bytes = u128::try_from(bits / 8).unwrap_or(0);
    (meta::LEN, IntervalSet::range(bytes, meta::LEN.max()))
}

/// The tags of packets, in order: the types that say that they follow.
pub(crate) fn tags(layout: &Layout) -> Vec<u128> {
    let is_tag =
        |header: &&Header| matches!(header.kind, Kind::Vlan | Kind::InnerVlan) && header.depth == 0;
    layout.headers().iter().filter(is_tag).filter_map(|header| Some(header.select?.value)).collect()
}

/// Which headers lie where in packets of a layout.
pub(crate) fn placed(layout: &Layout) -> Vec<Placed> {
    let mut all = Vec::new();
    let mut needs: Vec<Need> = Vec::new();
    let mut add = |instance: Instance, bit: i32, mut needs: Vec<Need>| {
        needs.push(long_enough(bit + instance.bits()));
        all.push(Placed { instance, bit, needs });
        bit + instance.bits()
    };
    let mut end = add(Instance::Ethernet, 0, Vec::new());
    for (tag, instance) in tags(layout).into_iter().zip([Instance::Vlan, Instance::InnerVlan]) {
        needs.push(need(end - 16, 16, tag));
        end = add(instance, end, needs.clone());
    }
    let Some(network) = layout.network().filter(|network| network.depth == 0) else { return all };
    if 8 * network.offset != end {
        return all;
    }
    let (instance, number) = match network.kind {
        Kind::Arp => (Instance::Arp, ether_type::ARP),
        Kind::Ipv4 => (Instance::Ipv4, ether_type::IPV4),
        _ => (Instance::Ipv6, ether_type::IPV6),
    };
    needs.push(need(end - 16, 16, number.into()));
    let from = end;
    end = add(instance, end, needs.clone());
    let behind =
        layout.headers().iter().find(|header| 8 * header.offset == end && header.depth == 0);
    let kind = behind.map(|header| header.kind);
    let protocol = match network.kind {
        Kind::Ipv4 if network.options != Some(true) => {
            needs.push(need(from + i32::from(ip::HL.offset), ip::HL.width, 5));
            Field::bits(Base::Data, (from as u16).saturating_add(ip::PROTO.offset), 8)
        }
        Kind::Ipv6 => Field::bits(Base::Data, (from as u16).saturating_add(ip6::NEXT.offset), 8),
        _ => return all,
    };
    // Extension headers are not extracted.
    let known = [ip_protocol::TCP, ip_protocol::UDP, ip_protocol::ICMPV6];
    let is = |number: u8| (protocol, IntervalSet::single(number.into()));
    let transport = match kind {
        Some(Kind::Tcp) => Some((Instance::Tcp, is(ip_protocol::TCP))),
        Some(Kind::Udp) => Some((Instance::Udp, is(ip_protocol::UDP))),
        Some(Kind::Icmp) => Some((Instance::Icmp, is(ip_protocol::ICMP))),
        Some(Kind::Icmp6) => Some((Instance::Icmp, is(ip_protocol::ICMPV6))),
        _ => None,
    };
    if network.kind == Kind::Ipv6 {
        let numbers = known.map(|number| IntervalSet::single(number.into()));
        needs.push((protocol, IntervalSet::union_of(&numbers)));
    }
    end = add(Instance::Transport, end, needs.clone());
    if let Some((instance, is)) = transport {
        needs.push(is);
        add(instance, end, needs);
    }
    all
}

/// Some bits of a field of a header.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) instance: Instance,
    pub(crate) field: &'static str,
    /// How many bits the field has, the lowest of those that are meant, and how many.
    pub(crate) of: u16,
    pub(crate) low: u16,
    pub(crate) width: u16,
}

impl Piece {
    /// How it is written.
    pub(crate) fn text(&self) -> String {
        let whole = format!("hdr.{}.{}", self.instance.name(), self.field);
        match self.width == self.of {
            true => whole,
            false => format!("{whole}[{}:{}]", self.low + self.width - 1, self.low),
        }
    }
}

/// The pieces that some bits of packets are, the highest first, with the headers that they lie in; `None` if they lie in no header.
pub(crate) fn pieces(all: &[Placed], bit: i32, width: u16) -> Option<Vec<(Piece, &Placed)>> {
    let (mut at, end) = (bit, bit + i32::from(width));
    let mut found = Vec::new();
    while at < end {
        let inside =
            |placed: &&Placed| (placed.bit..placed.bit + placed.instance.bits()).contains(&at);
        let placed = all.iter().find(inside)?;
        let mut from = placed.bit;
        for &(field, of) in placed.instance.fields() {
            let until = from + i32::from(of);
            if (from..until).contains(&at) {
                let stop = until.min(end);
                let piece = Piece {
                    instance: placed.instance,
                    field,
                    of,
                    low: (until - stop) as u16,
                    width: (stop - at) as u16,
                };
                found.push((piece, placed));
                at = stop;
                break;
            }
            from = until;
        }
    }
    Some(found)
}

/// Whether what is known of packets says that something holds.
pub(crate) fn is_implied(program: &Program, facts: &Facts, need: &Need) -> bool {
    let (field, set) = need;
    if *field == meta::LEN {
        let least = set.min().unwrap_or(0);
        return least <= 14 || u128::from(facts.least_length(program)) >= least;
    }
    let known = facts.bits(field.offset.into(), field.width.into());
    known.is_some_and(|known| known.is_subset(set))
}

/// Each once; of lengths the greatest.
pub(crate) fn once(needs: Vec<Need>) -> Vec<Need> {
    let mut all: Vec<Need> = Vec::new();
    for (field, set) in needs {
        match all.iter_mut().find(|known| known.0 == field) {
            Some(known) => known.1 = known.1.intersect(&set),
            None => all.push((field, set)),
        }
    }
    // Lengths come first.
    all.sort_by_key(|need| need.0 != meta::LEN);
    all
}

/// What a device that knows headers lacks to know a number.
pub(crate) fn lack(program: &Program, placed: &[Placed], term: TermId) -> Lack {
    let called = |field: Field| match pieces(placed, field.offset.into(), field.width).as_deref() {
        Some([(piece, _), ..]) => format!("{}.{}", piece.instance.name(), piece.field),
        _ => field.to_string(),
    };
    if program.verifies(term) {
        return Lack::Checksum;
    }
    match program.term(term) {
        Term::Input(field) if *field == meta::LEN => Lack::Length,
        Term::Input(field) => Lack::Field(called(*field)),
        Term::Sum16 { .. } => Lack::Checksum,
        Term::OnesSum(_) | Term::NonZero(_) => Lack::Number("a ones' complement sum"),
        Term::Bound(..) => Lack::Found,
        Term::Cell(..) => Lack::Cells,
        Term::Position(_) => Lack::Number("where a header is"),
        Term::Hash(..) => Lack::Number("a hash"),
        Term::Map(..) => Lack::Number("what a range map yields"),
        Term::Now => Lack::Clock,
        Term::Const(_) => Lack::Number("a number of that size"),
        _ => {
            let operands = program.term(term).operands();
            let worst = operands.iter().map(|&operand| lack(program, placed, operand));
            let is_simple = |lack: &Lack| {
                matches!(lack, Lack::Field(_) | Lack::Found | Lack::Number("a number of that size"))
            };
            worst.filter(|lack| !is_simple(lack)).min().unwrap_or(Lack::Number("a sum"))
        }
    }
}
