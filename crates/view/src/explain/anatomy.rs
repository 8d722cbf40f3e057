//! The layers of a packet and their fields, as people know them.

use std::net::{Ipv4Addr, Ipv6Addr};

use dataplane::trace::Seen;
use ir::Field;
use ir::field::{arp, eth, icmp, ip, ip6, tcp, transport, udp, vlan};
use net::Header;
use net::wire::{EtherAddr, icmpv4, ip_protocol};

/// A protocol's header in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ethernet,
    /// A VLAN tag of an Ethernet header; it counts from that header's start.
    Vlan,
    Arp,
    Ipv4,
    Ipv6,
    Tcp,
    Udp,
    Icmp,
    /// What TCP and UDP have in common.
    Transport,
}

/// A header and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) kind: Kind,
    /// Offset of what its fields count from, in bytes from the first data byte.
    pub(super) at: usize,
    /// Bytes that the header takes, and where they start.
    pub(super) start: usize,
    pub(super) length: usize,
}

impl Kind {
    /// The fields that are told apart; none overlap.
    pub(crate) fn fields(self) -> &'static [Field] {
        match self {
            Kind::Ethernet => &[eth::DST, eth::SRC, eth::TYPE],
            Kind::Vlan => &[vlan::PCP, vlan::DEI, vlan::ID, vlan::TYPE],
            Kind::Arp => &[arp::OP, arp::SHA, arp::SPA, arp::THA, arp::TPA],
            Kind::Ipv4 => &[
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
            Kind::Ipv6 => &[
                ip6::VERSION,
                ip6::CLASS,
                ip6::FLOW,
                ip6::PLEN,
                ip6::NEXT,
                ip6::HLIM,
                ip6::SRC,
                ip6::DST,
            ],
            Kind::Tcp => &[
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
            Kind::Udp => &[transport::SPORT, transport::DPORT, udp::LEN, udp::CHECKSUM],
            Kind::Icmp => &[icmp::TYPE, icmp::CODE, icmp::REST, icmp::CHECKSUM],
            Kind::Transport => &[transport::SPORT, transport::DPORT],
        }
    }

    /// How the names of all its fields begin, those too that overlap others.
    pub(crate) fn families(self) -> &'static [&'static str] {
        match self {
            Kind::Ethernet => &["eth."],
            Kind::Vlan => &["vlan."],
            Kind::Arp => &["arp."],
            Kind::Ipv4 => &["ip."],
            Kind::Ipv6 => &["ip6."],
            Kind::Tcp => &["transport.", "tcp."],
            Kind::Udp => &["transport.", "udp."],
            Kind::Icmp => &["icmp."],
            Kind::Transport => &["transport."],
        }
    }

    /// `ip.ttl`, `udp.sport`.
    pub(crate) fn name(self, field: Field) -> String {
        // Fields of different protocols may be the same place.
        let named = self.families().iter().find_map(|family| {
            let of = |(name, f): &(&'static str, Field)| *f == field && name.starts_with(family);
            Field::all_named().find(of)
        });
        let name = named.map_or_else(|| field.to_string(), |(name, _)| name.to_string());
        let family = match self {
            Kind::Tcp => "tcp",
            Kind::Udp => "udp",
            _ => return name,
        };
        match name.split_once('.') {
            Some((_, field)) => format!("{family}.{field}"),
            None => name,
        }
    }
}

/// The layers of a packet, from the first data byte on. Marks say where headers are; where there
/// are none, the bytes are taken for what they look like.
pub(super) fn layers(packet: &Seen) -> Vec<Layer> {
    let data = packet.data();
    let mark = |h| packet.header_offset(h).and_then(|at| usize::try_from(at).ok());
    let (mac, network) = (mark(Header::Mac), mark(Header::Network));
    let looks_like_ip = ip_length(data, 0).is_some();
    let ethernet = match (mac, network, packet.header_offset(Header::Network)) {
        (Some(mac), network, _) => network.is_none_or(|n| n >= mac + 14).then_some(mac),
        (None, Some(network), _) => (network >= 14).then_some(0),
        // The network header was stripped: nothing is known of what follows.
        (None, None, Some(_)) => None,
        (None, None, None) => (!looks_like_ip).then_some(0),
    };
    let mut layers = Vec::new();
    let mut next = network;
    let mut is_arp = false;
    if let Some(at) = ethernet.filter(|at| data.len() >= at + 14) {
        layers.push(Layer { kind: Kind::Ethernet, at, start: at, length: 14 });
        let mut end = at + 12;
        while let Some(&[high, low, ..]) = data.get(end..).filter(|d| d.len() >= 2) {
            let kind = u16::from_be_bytes([high, low]);
            is_arp = kind == 0x0806;
            if !matches!(kind, 0x8100 | 0x88a8) || data.len() < end + 6 {
                break;
            }
            layers.push(Layer { kind: Kind::Vlan, at: end - 12, start: end + 2, length: 4 });
            end += 4;
        }
        next = next.or(Some(end + 2));
    } else if next.is_none() && looks_like_ip {
        next = Some(0);
    }
    let Some(at) = next else { return layers };
    if is_arp && data.len() >= at + 28 {
        layers.push(Layer { kind: Kind::Arp, at, start: at, length: 28 });
        return layers;
    }
    let Some((kind, length, protocol)) = ip_length(data, at) else { return layers };
    layers.push(Layer { kind, at, start: at, length });
    let at = at + length;
    let (kind, length) = match protocol {
        Some(6) => (Kind::Tcp, 20),
        Some(17) => (Kind::Udp, 8),
        Some(1 | 58) => (Kind::Icmp, 8),
        _ => return layers,
    };
    if data.len() >= at + length {
        layers.push(Layer { kind, at, start: at, length });
    }
    layers
}

/// Which IP header starts there, its length, and the protocol behind it unless that is cut off.
fn ip_length(data: &[u8], at: usize) -> Option<(Kind, usize, Option<u8>)> {
    let header = data.get(at..)?;
    match header.first()? >> 4 {
        4 => {
            let length = usize::from(header[0] & 15) * 4;
            let whole = header.len() >= length.max(20) && length >= 20;
            let first = || u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
            whole.then(|| (Kind::Ipv4, length, first().then_some(header[9])))
        }
        6 => (header.len() >= 40).then(|| (Kind::Ipv6, 40, Some(header[6]))),
        _ => None,
    }
}

/// A field's number in bytes at an offset; `None` if they end before.
pub(super) fn read(data: &[u8], at: usize, field: Field) -> Option<u128> {
    let (first, last) = field.byte_range();
    let bytes = data.get(at.checked_add(first)?..at.checked_add(last)?)?;
    let mut value = 0u128;
    for bit in field.offset..field.offset + field.width {
        let byte = bytes[usize::from(bit) / 8 - first];
        value = value << 1 | u128::from(byte >> (7 - bit % 8) & 1);
    }
    Some(value)
}

/// A field's number in words.
pub(crate) fn say(field: Field, value: u128) -> String {
    let octets = value.to_be_bytes();
    let named = |name: Option<&str>| match name {
        Some(name) => format!("{value} ({name})"),
        None => value.to_string(),
    };
    match field {
        eth::DST | eth::SRC | arp::SHA | arp::THA => {
            EtherAddr(octets[10..].try_into().unwrap_or_default()).to_string()
        }
        ip::SRC | ip::DST | arp::SPA | arp::TPA | ir::field::anno::DST_IP => {
            Ipv4Addr::from_bits(value as u32).to_string()
        }
        ip6::SRC | ip6::DST | ir::field::anno::DST_IP6 => Ipv6Addr::from_bits(value).to_string(),
        eth::TYPE | vlan::TYPE => match ether_type(value as u16) {
            Some(name) => format!("{value:#06x} ({name})"),
            None => format!("{value:#06x}"),
        },
        ip::PROTO | ip6::NEXT => named(ip_protocol::name(value as u8)),
        icmp::TYPE => named(icmpv4::type_name(value as u8)),
        ir::field::meta::TYPE => {
            let types = [
                "host",
                "broadcast",
                "multicast",
                "other host",
                "outgoing",
                "loopback",
                "fastroute",
            ];
            let known = usize::try_from(value).ok().and_then(|value| types.get(value));
            known.map_or_else(|| value.to_string(), |name| name.to_string())
        }
        icmp::REST => format!("{value:#010x}"),
        // Both checksums of TCP and UDP, and those of IP and ICMP.
        ip::CHECKSUM | tcp::CHECKSUM | udp::CHECKSUM => format!("{value:#06x}"),
        arp::OP => {
            named([None, Some("request"), Some("reply")].get(value as usize).copied().flatten())
        }
        tcp::FLAGS => {
            let set = "FSRPAUEC".chars().enumerate().filter(|(i, _)| value >> i & 1 == 1);
            let letters: String = set.map(|(_, c)| c).collect();
            if letters.is_empty() { "none".to_string() } else { letters }
        }
        _ => value.to_string(),
    }
}

fn ether_type(value: u16) -> Option<&'static str> {
    Some(match value {
        0x0800 => "IPv4",
        0x0806 => "ARP",
        0x86dd => "IPv6",
        0x8100 => "VLAN",
        0x88a8 => "service VLAN",
        _ => return None,
    })
}

/// The headers that start within a range of bytes, in words: `Ethernet 02:… > 02:…, type IPv4`.
pub(super) fn headers(packet: &Seen, range: std::ops::Range<usize>) -> String {
    let data = packet.data();
    let said = layers(packet)
        .into_iter()
        .filter(|l| range.contains(&l.start) && l.start + l.length <= range.end)
        .map(|layer| {
            let get =
                |f: Field| read(data, layer.at, f).map_or_else(|| "?".to_string(), |v| say(f, v));
            match layer.kind {
                Kind::Ethernet => {
                    format!(
                        "Ethernet {} > {}, type {}",
                        get(eth::SRC),
                        get(eth::DST),
                        get(eth::TYPE)
                    )
                }
                Kind::Vlan => format!("VLAN {}, type {}", get(vlan::ID), get(vlan::TYPE)),
                Kind::Arp => "ARP".to_string(),
                Kind::Ipv4 => format!(
                    "IPv4 {} > {}, ttl {}, protocol {}",
                    get(ip::SRC),
                    get(ip::DST),
                    get(ip::TTL),
                    get(ip::PROTO)
                ),
                Kind::Ipv6 => format!("IPv6 {} > {}", get(ip6::SRC), get(ip6::DST)),
                Kind::Tcp => format!("TCP {} > {}", get(transport::SPORT), get(transport::DPORT)),
                Kind::Udp => format!("UDP {} > {}", get(transport::SPORT), get(transport::DPORT)),
                Kind::Icmp => format!("ICMP type {}", get(icmp::TYPE)),
                Kind::Transport => String::new(),
            }
        });
    said.collect::<Vec<_>>().join("; ")
}

/// A packet in words, with the link layer where it has one.
pub(super) fn describe(packet: &Seen) -> String {
    let ethernet = layers(packet).first().is_some_and(|l| l.kind == Kind::Ethernet && l.start == 0);
    let text = net::notation::describe(packet.data(), ethernet);
    // Where the link layer is is plain from what was said before.
    text.strip_prefix("bare ").map_or(text.clone(), |bare| match bare.starts_with("raw ") {
        true => format!("{} bytes: {}", packet.data().len(), &bare[4..]),
        false => bare.to_string(),
    })
}

/// The same, cut to a line.
pub(super) fn brief(packet: &Seen) -> String {
    cut(describe(packet), packet.data().len())
}

/// A frame in words, cut to a line.
pub fn brief_of(frame: &[u8], ethernet: bool) -> String {
    cut(net::notation::describe(frame, ethernet), frame.len())
}

fn cut(text: String, length: usize) -> String {
    match text.char_indices().nth(110) {
        Some((cut, _)) => format!("{}… ({length} bytes)", &text[..cut]),
        None => text,
    }
}
