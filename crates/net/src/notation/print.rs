//! Frames put into words.

use std::fmt::Write;

use super::{DESTINATION, MAX_DEPTH, SOURCE, TCP_FLAGS, parse, parse_nested};
use crate::wire::{Arp, Ethernet, Icmpv4, Ipv4, Ipv6, Tcp, Udp};
use crate::wire::{arp, ip_protocol, ipv4, ipv6, tcp, vlan};

/// Describes a frame, with its Ethernet header or without (`ethernet` false), in words that
/// [`parse`] makes the same bytes of. What words cannot say is given as raw bytes.
pub fn describe(frame: &[u8], ethernet: bool) -> String {
    let says = |text: &String| parse(text).is_ok_and(|f| f == frame);
    let plain = describe_loosely(frame, ethernet, 0);
    let bad = || plain.as_ref().map(|text| format!("{text} badl4sum"));
    match plain.clone().filter(says).or_else(|| bad().filter(says)) {
        Some(text) => text,
        _ => format!("bare raw {}", hex(frame)).trim_end().to_string(),
    }
}

/// Describes the headers of a frame that [`describe`] may not have words for, as far as they can be
/// read: lengths and checksums may be others.
pub fn describe_headers(frame: &[u8], ethernet: bool) -> Option<String> {
    describe_loosely(frame, ethernet, 0)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, b| {
        let _ = write!(text, "{b:02x}");
        text
    })
}

/// A description that may leave things out: [`describe`] finds out whether it does.
fn describe_loosely(frame: &[u8], ethernet: bool, depth: u32) -> Option<String> {
    let mut text = String::new();
    let (mut ether_type, mut network) = (0x0800, frame);
    if ethernet {
        let found = vlan::network(frame)?;
        let header = Ethernet::new(frame)?;
        let (destination, source) = (header.dst(), header.src());
        if (source, destination) != (SOURCE, DESTINATION) {
            let _ = write!(text, "eth {source} > {destination} ");
        }
        let mut at = 12;
        while let Some(&[a, b, c, d]) = frame.get(at..at + 4) {
            let name = match [a, b] {
                [0x81, 0x00] => "vlan",
                [0x88, 0xa8] => "svlan",
                _ => break,
            };
            let _ = write!(text, "{name} {} ", u16::from_be_bytes([c, d]));
            at += 4;
        }
        (ether_type, network) = (found.ether_type, frame.get(found.offset..)?);
    } else {
        text.push_str("bare ");
        if network.first().is_some_and(|b| b >> 4 == 6) {
            ether_type = 0x86dd;
        }
    }
    match ether_type {
        0x0800 => describe_ipv4(network, &mut text, depth)?,
        0x86dd => describe_ipv6(network, &mut text, depth)?,
        0x0806 => describe_arp(network, &mut text)?,
        _ => return None,
    }
    Some(text)
}

fn describe_arp(bytes: &[u8], text: &mut String) -> Option<()> {
    let message = Arp::new(bytes)?;
    let (sender, target) = (message.sender_ip(), message.target_ip());
    let _ = match message.operation() {
        arp::REQUEST => write!(text, "arp who-has {target} tell {sender}"),
        _ => write!(text, "arp reply {sender} is-at {} to {target}", message.sender_ether()),
    };
    Some(())
}

fn describe_ipv4(packet: &[u8], text: &mut String, depth: u32) -> Option<()> {
    let ip = Ipv4::new(packet)?;
    let (header_length, total) = (ip.header_len(), usize::from(ip.total_len()));
    let body = packet.get(header_length..total.min(packet.len()))?;
    let mut more = String::new();
    if ip.ttl() != 64 {
        let _ = write!(more, " ttl {}", ip.ttl());
    }
    if ip.tos() != 0 {
        let _ = write!(more, " tos {}", ip.tos());
    }
    if ip.id() != 0 {
        let _ = write!(more, " id {}", ip.id());
    }
    for (set, name) in [(ip.dont_fragment(), " df"), (ip.more_fragments(), " mf")] {
        if set {
            more.push_str(name);
        }
    }
    if header_length > ipv4::HEADER_LEN {
        let _ = write!(more, " opt {}", hex(ip.options().as_bytes()));
    }
    if !ip.checksum_ok() {
        more.push_str(" badsum");
    }
    let ends = (ip.src().to_string(), ip.dst().to_string());
    transport(text, ip.protocol(), ends, ip.fragment_offset(), body, &more, (1, depth));
    if total < packet.len() {
        let _ = write!(text, " pad {}", packet.len() - total);
    }
    Some(())
}

fn describe_ipv6(packet: &[u8], text: &mut String, depth: u32) -> Option<()> {
    let ip = Ipv6::new(packet)?;
    let mut more = String::new();
    if ip.hop_limit() != 64 {
        let _ = write!(more, " ttl {}", ip.hop_limit());
    }
    if ip.traffic_class() != 0 {
        let _ = write!(more, " tos {}", ip.traffic_class());
    }
    let ends = (ip.src().to_string(), ip.dst().to_string());
    transport(text, ip.next_header(), ends, 0, ip.payload(), &more, (58, depth));
    let padding = packet.len().saturating_sub(ipv6::HEADER_LEN + ip.payload_len());
    if padding > 0 {
        let _ = write!(text, " pad {padding}");
    }
    Some(())
}

/// A transport header that there are words for.
enum Layer4<'a> {
    Tcp(Tcp<&'a [u8]>),
    Udp(Udp<&'a [u8]>),
    /// Of IPv4 or IPv6: what words say lies at the same offsets.
    Icmp(Icmpv4<&'a [u8]>),
}

impl<'a> Layer4<'a> {
    fn of(protocol: u8, icmp: u8, body: &'a [u8]) -> Option<Self> {
        match protocol {
            ip_protocol::TCP => Tcp::new(body).map(Self::Tcp),
            ip_protocol::UDP => Udp::new(body).map(Self::Udp),
            _ if protocol == icmp => Icmpv4::new(body).map(Self::Icmp),
            _ => None,
        }
    }
}

fn transport(
    text: &mut String,
    protocol: u8,
    (source, destination): (String, String),
    fragment: usize,
    body: &[u8],
    more: &str,
    (icmp, depth): (u8, u32),
) {
    let socket = |address: &str, port: u16| {
        if address.contains(':') {
            format!("[{address}]:{port}")
        } else {
            format!("{address}:{port}")
        }
    };
    let header = if fragment > 0 { None } else { Layer4::of(protocol, icmp, body) };
    let payload = match header {
        Some(Layer4::Udp(udp)) => {
            let ends = (socket(&source, udp.src_port()), socket(&destination, udp.dst_port()));
            let _ = write!(text, "udp {} > {}{more}", ends.0, ends.1);
            if udp.checksum() == 0 {
                text.push_str(" nosum");
            }
            &body[8..]
        }
        Some(Layer4::Tcp(segment)) => {
            let ends =
                (socket(&source, segment.src_port()), socket(&destination, segment.dst_port()));
            let _ = write!(text, "tcp {} > {}{more}", ends.0, ends.1);
            let flags = segment.flags();
            if flags != tcp::flag::ACK {
                let flags: String = TCP_FLAGS
                    .chars()
                    .enumerate()
                    .filter(|(i, _)| flags >> i & 1 == 1)
                    .map(|(_, c)| c)
                    .collect();
                let _ = write!(text, " flags {}", if flags.is_empty() { "." } else { &flags });
            }
            for (name, value, usual) in [
                ("seq", segment.seq(), 0),
                ("ack", segment.ack(), 0),
                ("win", segment.window().into(), 65535),
            ] {
                if value != usual {
                    let _ = write!(text, " {name} {value}");
                }
            }
            let header = segment.header_len().clamp(20, body.len());
            if header > 20 {
                let _ = write!(text, " tcpopt {}", hex(&body[20..header]));
            }
            &body[header..]
        }
        Some(Layer4::Icmp(message)) => {
            let kind = message.message_type();
            let _ = write!(text, "icmp {source} > {destination}{more} type {kind}");
            if message.code() != 0 {
                let _ = write!(text, " code {}", message.code());
            }
            if message.rest() != 0 {
                let _ = write!(text, " rest {}", message.rest());
            }
            &body[8..]
        }
        None => {
            let name =
                ip_protocol::name(protocol).map_or_else(|| protocol.to_string(), str::to_string);
            let _ = write!(text, "ip {source} > {destination}{more} proto {name}");
            if fragment != 0 {
                let _ = write!(text, " frag {fragment}");
            }
            body
        }
    };
    // ICMP errors quote packets; IPv4 and IPv6 tunnels hold them.
    let quotes = match protocol {
        1 => matches!(body.first(), Some(3 | 4 | 5 | 11 | 12)),
        4 | 41 => true,
        _ => false,
    };
    if quotes
        && depth < MAX_DEPTH
        && let Some(inner) = describe_loosely(payload, false, depth + 1)
        && parse_nested(&inner, depth + 1).is_ok_and(|p| p == payload)
    {
        let _ = write!(text, " payload ({})", inner.trim_start_matches("bare "));
    } else if !payload.is_empty() {
        let _ = write!(text, " payload {}", hex(payload));
    }
}
