//! Header layout: which header lies where in a packet, and what its fields are called there.
//!
//! A [`Layout`] is parsed from [`Evidence`]: the conditions on a path through a program, the bytes
//! of a packet, or what an exit writes. One parser serves them all, so that people and targets call
//! a field by the same name. [`Layouts`] holds the layout of every step of a program, and
//! [`ParseGraph`] what a parser of its packets must extract.

mod bytes;
mod facts;
mod graph;
mod leaving;
mod parse;
#[cfg(test)]
mod tests;

pub use bytes::Bytes;
pub use facts::{Facts, Layouts};
pub use graph::{Availability, Edge, HeaderUse, ParseGraph, Usage};
pub use parse::{Evidence, Start};

use crate::field::{
    Field, arp, eth, gre, icmp, ip, ip6, ip6_ext, ip6_frag, nsh, tcp, transport, udp, vlan, vxlan,
};

/// A protocol's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Ethernet.
    Ethernet,
    /// The first VLAN tag, with the type behind it.
    Vlan,
    /// The second VLAN tag, with the type behind it.
    InnerVlan,
    /// ARP for Ethernet and IPv4.
    Arp,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// An extension header of IPv6 other than the fragment header.
    Extension,
    /// IPv6's fragment header.
    Fragment,
    /// ICMP.
    Icmp,
    /// ICMPv6.
    Icmp6,
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// Ports of TCP, UDP or another protocol that has them there; which one is not known.
    Ports,
    /// GRE.
    Gre,
    /// VXLAN.
    Vxlan,
    /// Network service header.
    Nsh,
}

impl Kind {
    /// Its name, with which those of its fields begin.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ethernet => "eth",
            Self::Vlan => "vlan",
            Self::InnerVlan => "vlan2",
            Self::Arp => "arp",
            Self::Ipv4 => "ip",
            Self::Ipv6 => "ip6",
            Self::Extension => "ip6_ext",
            Self::Fragment => "ip6_frag",
            Self::Icmp => "icmp",
            Self::Icmp6 => "icmp6",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Ports => "transport",
            Self::Gre => "gre",
            Self::Vxlan => "vxlan",
            Self::Nsh => "nsh",
        }
    }

    /// Bytes of it, without what not every packet has.
    pub const fn length(self) -> u16 {
        match self {
            Self::Ethernet => 14,
            Self::Vlan | Self::InnerVlan | Self::Gre | Self::Ports => 4,
            Self::Arp => 28,
            Self::Ipv4 | Self::Tcp => 20,
            Self::Ipv6 => 40,
            Self::Extension | Self::Fragment | Self::Udp => 8,
            Self::Icmp | Self::Icmp6 | Self::Vxlan | Self::Nsh => 8,
        }
    }

    /// The bit at which it starts where the offsets of its fields count from.
    pub const fn origin(self) -> u16 {
        match self {
            Self::Vlan => 112,
            Self::InnerVlan => 144,
            Self::Extension | Self::Fragment => 320,
            Self::Vxlan => 64,
            _ => 0,
        }
    }

    /// Whether it is a network header.
    pub const fn is_network(self) -> bool {
        matches!(self, Self::Ipv4 | Self::Ipv6 | Self::Arp)
    }

    /// Whether it belongs to the link layer.
    pub const fn is_link(self) -> bool {
        matches!(self, Self::Ethernet | Self::Vlan | Self::InnerVlan)
    }

    /// The fields that it is shown by; none overlap.
    pub const fn fields(self) -> &'static [Field] {
        match self {
            Self::Ethernet => &[eth::DST, eth::SRC, eth::TYPE],
            Self::Vlan => &[vlan::PCP, vlan::DEI, vlan::ID, vlan::TYPE],
            Self::InnerVlan => &[vlan::PCP2, vlan::DEI2, vlan::ID2, vlan::TYPE2],
            Self::Arp => &[arp::OP, arp::SHA, arp::SPA, arp::THA, arp::TPA],
            Self::Ipv4 => &[
                ip::VERSION,
                ip::HL,
                ip::DSCP,
                ip::ECN,
                ip::LEN,
                ip::ID,
                ip::DF,
                ip::MF,
                ip::FRAG,
                ip::TTL,
                ip::PROTO,
                ip::SRC,
                ip::DST,
                ip::CHECKSUM,
            ],
            Self::Ipv6 => &[
                ip6::VERSION,
                ip6::CLASS,
                ip6::FLOW,
                ip6::PLEN,
                ip6::NEXT,
                ip6::HLIM,
                ip6::SRC,
                ip6::DST,
            ],
            Self::Extension => &[ip6_ext::NEXT, ip6_ext::LEN],
            Self::Fragment => &[ip6_frag::NEXT, ip6_frag::OFFSET, ip6_frag::MORE, ip6_frag::ID],
            Self::Tcp => &[
                transport::SPORT,
                transport::DPORT,
                tcp::SEQ,
                tcp::ACK,
                tcp::OFFSET,
                tcp::FLAGS,
                tcp::WINDOW,
                tcp::URGENT,
                tcp::CHECKSUM,
            ],
            Self::Udp => &[transport::SPORT, transport::DPORT, udp::LEN, udp::CHECKSUM],
            Self::Icmp | Self::Icmp6 => &[icmp::TYPE, icmp::CODE, icmp::REST, icmp::CHECKSUM],
            Self::Ports => &[transport::SPORT, transport::DPORT],
            Self::Gre => &[gre::FLAGS, gre::VERSION, gre::PROTO],
            Self::Vxlan => &[vxlan::FLAGS, vxlan::VNI],
            Self::Nsh => {
                &[nsh::VERSION, nsh::TTL, nsh::LENGTH, nsh::MD_TYPE, nsh::NEXT, nsh::SPI, nsh::SI]
            }
        }
    }

    /// The parts of the catalogue that its fields are in.
    const fn families(self) -> &'static [&'static str] {
        match self {
            Self::Vlan | Self::InnerVlan => &["vlan"],
            Self::Tcp => &["transport", "tcp"],
            Self::Udp => &["transport", "udp"],
            Self::Icmp | Self::Icmp6 => &["icmp"],
            Self::Ethernet => &["eth"],
            Self::Arp => &["arp"],
            Self::Ipv4 => &["ip"],
            Self::Ipv6 => &["ip6"],
            Self::Extension => &["ip6_ext"],
            Self::Fragment => &["ip6_frag"],
            Self::Ports => &["transport"],
            Self::Gre => &["gre"],
            Self::Vxlan => &["vxlan"],
            Self::Nsh => &["nsh"],
        }
    }

    /// The fields of the catalogue that lie in it, and their names without the header's; some overlap.
    pub fn catalogue(self) -> impl Iterator<Item = (&'static str, Field)> {
        let inside = move |field: Field| {
            let end = self.origin() + 8 * self.length();
            field.offset >= self.origin() && field.offset + field.width <= end
        };
        Field::all_named().filter(move |(_, field)| inside(*field)).filter_map(
            move |(name, field)| {
                let (family, local) = name.split_once('.')?;
                self.families().contains(&family).then_some((local, field))
            },
        )
    }

    /// `ip.ttl`, `udp.sport`: the name of one of its fields.
    pub fn field_name(self, field: Field) -> String {
        match self.catalogue().find(|(_, known)| *known == field) {
            Some((local, _)) => self.prefixed(local),
            None => field.to_string(),
        }
    }

    fn prefixed(self, local: &str) -> String {
        // The second tag's fields are distinguished by their own names.
        let header = if self == Self::InnerVlan { Self::Vlan } else { self };
        format!("{}.{local}", header.name())
    }
}

/// How a header is found: the number of the field of the header before it that says that it follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Select {
    /// The field, as the catalogue has it.
    pub field: Field,
    /// Its number.
    pub value: u128,
}

/// A header at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// Its first byte, counted from the first data byte; negative if it was pushed before that.
    pub offset: i32,
    /// Bytes of it, as far as they are known.
    pub length: u16,
    /// Whether it has options: known of IPv4 only.
    pub options: Option<bool>,
    /// The number that says that it follows.
    pub select: Option<Select>,
    /// Whether it is only taken for what it is: nothing that was tested says so.
    pub assumed: bool,
    /// Number of tunnels that it is in.
    pub depth: u8,
}

impl Header {
    /// `ip`, `inner.ip`.
    pub fn name(&self) -> String {
        "inner.".repeat(self.depth.into()) + self.kind.name()
    }

    /// `ip.ttl`, `inner.ip.ttl`.
    pub fn field_name(&self, field: Field) -> String {
        "inner.".repeat(self.depth.into()) + &self.kind.field_name(field)
    }

    /// The first bit of a field of the catalogue that lies in it.
    pub fn bit(&self, field: Field) -> i32 {
        8 * self.offset + i32::from(field.offset) - i32::from(self.kind.origin())
    }

    fn end(&self) -> i32 {
        self.offset + i32::from(self.length)
    }
}

/// A named part of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// `ip.ttl`, or `ip.src[0+16]` for some bits of a field.
    pub text: String,
    /// The field of the catalogue that it is, if it is a whole one.
    pub field: Option<Field>,
    /// Index of the header that it lies in.
    pub header: usize,
}

/// The headers of a packet, in order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    headers: Vec<Header>,
}

impl Layout {
    /// The headers.
    pub fn headers(&self) -> &[Header] {
        &self.headers
    }

    /// The outermost network header.
    pub fn network(&self) -> Option<&Header> {
        self.headers.iter().find(|header| header.kind.is_network())
    }

    /// The name of `width` bits from bit `start` of the data on, if they lie in a field.
    pub fn name(&self, start: i32, width: u32) -> Option<Name> {
        let end = start + width as i32;
        let mut around = self.headers.iter().enumerate().rev();
        around.find_map(|(index, header)| {
            let from = 8 * header.offset;
            let inside = (from..8 * header.end()).contains(&start);
            let bits =
                |field: Field| (header.bit(field), header.bit(field) + i32::from(field.width));
            let name = |field: Field| header.field_name(field);
            let mut all = header.kind.catalogue().filter(|_| inside);
            if let Some((_, field)) = all.find(|(_, field)| bits(*field) == (start, end)) {
                return Some(Name { text: name(field), field: Some(field), header: index });
            }
            let around = |field: &&Field| bits(**field).0 <= start && end <= bits(**field).1;
            let field = header.kind.fields().iter().filter(|_| inside).find(around)?;
            let text = format!("{}[{}+{width}]", name(*field), start - bits(*field).0);
            Some(Name { text, field: None, header: index })
        })
    }

    /// The same for a field of the packet as it came in.
    pub fn name_of(&self, field: Field) -> Option<Name> {
        match field.base {
            crate::Base::Data => self.name(field.offset.into(), field.width.into()),
            _ => None,
        }
    }

    /// Where a field of that name is: its first bit, and its width.
    pub fn find(&self, name: &str) -> Option<(i32, u16)> {
        self.headers.iter().find_map(|header| {
            let mut all = header.kind.catalogue();
            let (_, field) = all.find(|(_, field)| header.field_name(*field) == name)?;
            Some((header.bit(field), field.width))
        })
    }

    /// The parts of some bits that have names of their own, in order: first bits and widths. What has
    /// no name is one part.
    pub fn parts(&self, start: i32, width: u32) -> Vec<(i32, u32)> {
        let end = start + width as i32;
        let mut parts: Vec<(i32, u32)> = Vec::new();
        let mut at = start;
        while at < end {
            let known = self.headers.iter().rev().find_map(|header| {
                let fits = |f: &&Field| header.bit(**f) == at && at + i32::from(f.width) <= end;
                header.kind.fields().iter().find(fits).map(|f| u32::from(f.width))
            });
            let width =
                known.unwrap_or_else(|| ((end - at) as u32).min(8 - at.rem_euclid(8) as u32));
            let is_field = |at, width| self.name(at, width).is_some_and(|n| n.field.is_some());
            match parts.last_mut() {
                Some((from, last)) if known.is_none() && !is_field(*from, *last) => *last += width,
                _ => parts.push((at, width)),
            }
            at += width as i32;
        }
        parts
    }
}
