//! Frames put into words.

use std::fmt::Write;

use super::{DESTINATION, MAX_DEPTH, SOURCE, TCP_FLAGS, parse, parse_nested};
use crate::wire::{EtherAddr, ip_protocol, vlan};

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
        let (destination, source) =
            (EtherAddr(frame[..6].try_into().ok()?), EtherAddr(frame[6..12].try_into().ok()?));
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
        0x0800 => ipv4(network, &mut text, depth)?,
        0x86dd => ipv6(network, &mut text, depth)?,
        0x0806 => arp(network, &mut text)?,
        _ => return None,
    }
    Some(text)
}

fn arp(arp: &[u8], text: &mut String) -> Option<()> {
    let ip =
        |at: usize| Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(arp.get(at..at + 4)?).ok()?));
    match arp.get(6..8)? {
        [0, 1] => {
            let _ = write!(text, "arp who-has {} tell {}", ip(24)?, ip(14)?);
        }
        _ => {
            let ether = EtherAddr(arp.get(8..14)?.try_into().ok()?);
            let _ = write!(text, "arp reply {} is-at {ether} to {}", ip(14)?, ip(24)?);
        }
    }
    Some(())
}

fn ipv4(packet: &[u8], text: &mut String, depth: u32) -> Option<()> {
    let header_length = usize::from(packet.first()? & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let header = packet.get(..header_length.max(20))?;
    let body = packet.get(header_length..total.min(packet.len()))?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let address = |at: usize| {
        std::net::Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3])
    };
    let fragment = (word(6) & 0x1fff) * 8;
    let mut more = String::new();
    if header[8] != 64 {
        let _ = write!(more, " ttl {}", header[8]);
    }
    if header[1] != 0 {
        let _ = write!(more, " tos {}", header[1]);
    }
    if word(4) != 0 {
        let _ = write!(more, " id {}", word(4));
    }
    for (bit, name) in [(0x4000, " df"), (0x2000, " mf")] {
        if word(6) & bit != 0 {
            more.push_str(name);
        }
    }
    if header.len() > 20 {
        let _ = write!(more, " opt {}", hex(&header[20..]));
    }
    if crate::checksum::Sum::of(header).checksum() != 0 {
        more.push_str(" badsum");
    }
    let ends = (address(12).to_string(), address(16).to_string());
    transport(text, header[9], ends, fragment, body, &more, (1, depth));
    if total < packet.len() {
        let _ = write!(text, " pad {}", packet.len() - total);
    }
    Some(())
}

fn ipv6(packet: &[u8], text: &mut String, depth: u32) -> Option<()> {
    let header = packet.get(..40)?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let body = packet.get(40..(40 + length).min(packet.len()))?;
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("16 bytes");
        std::net::Ipv6Addr::from(octets).to_string()
    };
    let mut more = String::new();
    if header[7] != 64 {
        let _ = write!(more, " ttl {}", header[7]);
    }
    let class = header[0] << 4 | header[1] >> 4;
    if class != 0 {
        let _ = write!(more, " tos {class}");
    }
    transport(text, header[6], (address(8), address(24)), 0, body, &more, (58, depth));
    if 40 + length < packet.len() {
        let _ = write!(text, " pad {}", packet.len() - 40 - length);
    }
    Some(())
}

fn transport(
    text: &mut String,
    protocol: u8,
    (source, destination): (String, String),
    fragment: u16,
    body: &[u8],
    more: &str,
    (icmp, depth): (u8, u32),
) {
    let word = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
    let long = |at: usize| u32::from(word(at)) << 16 | u32::from(word(at + 2));
    let socket = |address: &str, port: u16| {
        if address.contains(':') {
            format!("[{address}]:{port}")
        } else {
            format!("{address}:{port}")
        }
    };
    let payload = match (protocol, body.len()) {
        (17, 8..) if fragment == 0 => {
            let _ = write!(
                text,
                "udp {} > {}{more}",
                socket(&source, word(0)),
                socket(&destination, word(2))
            );
            if word(6) == 0 {
                text.push_str(" nosum");
            }
            &body[8..]
        }
        (6, 20..) if fragment == 0 => {
            let _ = write!(
                text,
                "tcp {} > {}{more}",
                socket(&source, word(0)),
                socket(&destination, word(2))
            );
            if body[13] != 0x10 {
                let flags: String = TCP_FLAGS
                    .chars()
                    .enumerate()
                    .filter(|(i, _)| body[13] >> i & 1 == 1)
                    .map(|(_, c)| c)
                    .collect();
                let _ = write!(text, " flags {}", if flags.is_empty() { "." } else { &flags });
            }
            for (name, value, usual) in
                [("seq", long(4), 0), ("ack", long(8), 0), ("win", word(14).into(), 65535)]
            {
                if value != usual {
                    let _ = write!(text, " {name} {value}");
                }
            }
            &body[20..]
        }
        (p, 8..) if p == icmp && fragment == 0 => {
            let _ = write!(text, "icmp {source} > {destination}{more} type {}", body[0]);
            if body[1] != 0 {
                let _ = write!(text, " code {}", body[1]);
            }
            if long(4) != 0 {
                let _ = write!(text, " rest {}", long(4));
            }
            &body[8..]
        }
        _ => {
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
