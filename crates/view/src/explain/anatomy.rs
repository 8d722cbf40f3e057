//! The layers of a packet and their fields, as people know them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use dataplane::trace::Seen;
use ir::Field;
use ir::field::{arp, eth, gre, icmp, ip, ip6, ip6_frag, nsh, tcp, transport, udp, vlan, vxlan};
use ir::layout::{Bytes, Header, Kind, Layout, Start};
use net::Header as Mark;
use net::wire::{EtherAddr, icmpv4, icmpv6, ip_protocol};

/// The headers of a packet. Marks say where they are; where there are none, the bytes are taken for
/// what they look like.
pub(super) fn layers(packet: &Seen) -> Layout {
    let data = packet.data();
    let bytes = Bytes(data);
    let mark = |header| {
        let at = packet.header_offset(header)?;
        i32::try_from(at).ok().filter(|at| *at >= 0)
    };
    let (mac, network) = (mark(Mark::Mac), mark(Mark::Network));
    let version = data.first().map(|byte| byte >> 4);
    let frame = match (mac, network, packet.header_offset(Mark::Network)) {
        (Some(mac), network, _) => network.is_none_or(|n| n >= mac + 14).then_some(mac),
        (None, Some(network), _) => (network >= 14).then_some(0),
        // The network header was stripped: nothing is known of what follows.
        (None, None, Some(_)) => None,
        (None, None, None) => (!bytes.begin_with_ip()).then_some(0),
    };
    let stripped = packet.header_offset(Mark::Network).is_some_and(|at| at < 0);
    let bare = (frame.is_none() && !stripped && matches!(version, Some(4 | 6))).then_some(0);
    let start = Start { frame, network: network.or(bare), transport: None, kind: None };
    Layout::parse(&bytes, start)
}

/// The fields of a frame, or of an IP packet without a link layer: their names, the bytes that they touch,
/// and their numbers in words.
pub fn fields_of(frame: &[u8], ethernet: bool) -> Vec<(String, Range<usize>, String)> {
    let first = |there: bool| there.then_some(0);
    let start = Start { frame: first(ethernet), network: first(!ethernet), ..Start::default() };
    let mut fields = Vec::new();
    for header in Layout::parse(&Bytes(frame), start).headers() {
        let Ok(at) = usize::try_from(header.offset) else { continue };
        for &field in header.kind.fields() {
            let (first, last) = within(header.kind, field).byte_range();
            if let Some(value) = read_in(frame, at, header.kind, field) {
                fields.push((
                    header.field_name(field),
                    at + first..at + last,
                    say((header.kind, field), value),
                ));
            }
        }
        let options = at + usize::from(header.kind.length())..at + usize::from(header.length);
        if let Some(bytes) = frame.get(options.clone()).filter(|bytes| !bytes.is_empty()) {
            let hex = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            fields.push((header.name() + ".options", options, hex));
        }
    }
    fields
}

/// A field of a header, counted from that header's first byte.
pub(super) fn within(kind: Kind, field: Field) -> Field {
    Field::bits(field.base, field.offset - kind.origin(), field.width)
}

/// The number of a field of a header that starts at an offset.
pub(super) fn read_in(data: &[u8], at: usize, kind: Kind, field: Field) -> Option<u128> {
    Bytes(data).read(at, within(kind, field))
}

/// A field, and the header that it lies in if that is known: ICMP's and ICMPv6's lie in the same places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) header: Option<Kind>,
    pub(crate) field: Field,
}

impl From<Field> for Placed {
    fn from(field: Field) -> Self {
        Self { header: None, field }
    }
}

impl From<(Kind, Field)> for Placed {
    fn from((header, field): (Kind, Field)) -> Self {
        Self { header: Some(header), field }
    }
}

/// A field's number in words.
pub(crate) fn say(field: impl Into<Placed>, value: u128) -> String {
    let Placed { header, field } = field.into();
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
        eth::TYPE | vlan::TYPE | vlan::TYPE2 => match ether_type(value as u16) {
            Some(name) => format!("{value:#06x} ({name})"),
            None => format!("{value:#06x}"),
        },
        ip::PROTO | ip6::NEXT => named(ip_protocol::name(value as u8)),
        icmp::TYPE if header == Some(Kind::Icmp6) => named(icmpv6::type_name(value as u8)),
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
pub(super) fn headers(packet: &Seen, range: Range<usize>) -> String {
    let data = packet.data();
    let starts = |header: &&Header| {
        let start = usize::try_from(header.offset).ok();
        let inside =
            |start| range.contains(&start) && start + usize::from(header.length) <= range.end;
        start.is_some_and(inside)
    };
    let layout = layers(packet);
    let said = layout.headers().iter().filter(starts).map(|layer| {
        let get = |field: Field| {
            let at = usize::try_from(layer.offset).ok();
            let value = at.and_then(|at| read_in(data, at, layer.kind, field));
            value.map_or_else(|| "?".to_string(), |value| say((layer.kind, field), value))
        };
        match layer.kind {
            Kind::Ethernet => {
                format!("Ethernet {} > {}, type {}", get(eth::SRC), get(eth::DST), get(eth::TYPE))
            }
            Kind::Vlan => format!("VLAN {}, type {}", get(vlan::ID), get(vlan::TYPE)),
            Kind::InnerVlan => {
                format!("VLAN {}, type {}", get(vlan::ID2), get(vlan::TYPE2))
            }
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
            Kind::Icmp6 => format!("ICMPv6 type {}", get(icmp::TYPE)),
            Kind::Gre => format!("GRE, type {}", get(gre::PROTO)),
            Kind::Vxlan => format!("VXLAN {}", get(vxlan::VNI)),
            Kind::Nsh => format!("NSH path {}, index {}", get(nsh::SPI), get(nsh::SI)),
            Kind::Extension => "IPv6 extension header".to_string(),
            Kind::Fragment => format!("IPv6 fragment {}", get(ip6_frag::OFFSET)),
            Kind::Ports => {
                format!("ports {} > {}", get(transport::SPORT), get(transport::DPORT))
            }
        }
    });
    said.collect::<Vec<_>>().join("; ")
}

/// A packet in words, with the link layer where it has one.
pub(super) fn describe(packet: &Seen) -> String {
    let layout = layers(packet);
    let first = layout.headers().first();
    let ethernet = first.is_some_and(|h| h.kind == Kind::Ethernet && h.offset == 0);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_icmp_for_ipv6_have_names_of_their_own() {
        let said = |frame: &[u8]| {
            let fields = fields_of(frame, false);
            fields.into_iter().find(|(name, ..)| name.ends_with(".type")).map(|found| found.2)
        };
        let mut packet = vec![0; 48];
        (packet[0], packet[6], packet[40]) = (0x60, 58, 128);
        assert_eq!(said(&packet).as_deref(), Some("128 (echo)"));
        packet[40] = 3;
        assert_eq!(said(&packet).as_deref(), Some("3 (timeexceeded)"));
        let packet = net::notation::parse("bare icmp 10.0.0.1 > 10.0.0.2 type 8").unwrap();
        assert_eq!(said(&packet).as_deref(), Some("8 (echo)"));
    }
}
