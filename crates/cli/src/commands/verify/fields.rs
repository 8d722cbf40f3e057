//! Frames field by field, to say what differs between two of them.

use std::net::{Ipv4Addr, Ipv6Addr};

use net::wire::{EtherAddr, ether_type, ip_protocol};

/// A field's name, its first byte and its last, and what it holds in words.
type Field = (&'static str, usize, usize, String);

/// How one frame differs from another: field by field where both have the same headers.
pub(super) fn difference(mine: &[u8], theirs: &[u8], ethernet: bool) -> Vec<String> {
    let mut parts = Vec::new();
    if mine.len() != theirs.len() {
        parts.push(format!("length {}, not {}", mine.len(), theirs.len()));
    }
    let (here, there) = (fields(mine, ethernet), fields(theirs, ethernet));
    let places = |all: &[Field]| all.iter().map(|f| (f.0, f.1, f.2)).collect::<Vec<_>>();
    if places(&here) != places(&there) {
        let headers = |all: &[Field]| all.iter().map(|field| field.0).collect::<Vec<_>>();
        if headers(&here) != headers(&there) {
            parts.push("other headers".into());
            return parts;
        }
    }
    for ((name, _, _, one), (_, _, _, other)) in here.iter().zip(&there) {
        if one != other {
            parts.push(format!("{name} {one}, not {other}"));
        }
    }
    let end = |all: &[Field]| all.iter().map(|field| field.2 + 1).max().unwrap_or(0);
    let (a, b) = (mine.get(end(&here)..), theirs.get(end(&there)..));
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    if a.iter().zip(b).any(|(a, b)| a != b) {
        let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(0);
        parts.push(format!("payload from byte {at} on {:02x}, not {:02x}", a[at], b[at]));
    }
    parts
}

fn fields(frame: &[u8], ethernet: bool) -> Vec<Field> {
    let mut all = Fields { frame, all: Vec::new() };
    let (mut at, mut kind) = (0, 0x0800);
    if ethernet {
        if frame.len() < 14 {
            return Vec::new();
        }
        all.ether("destination MAC", 0);
        all.ether("source MAC", 6);
        at = 12;
        loop {
            let Some(number) = all.number(at, 2) else { return all.all };
            if !matches!(number, 0x8100 | 0x88a8) {
                kind = number as u16;
                let name = ether_type::name(kind).map_or(format!("{kind:#06x}"), str::to_string);
                all.all.push(("Ethernet type", at, at + 1, name));
                at += 2;
                break;
            }
            all.add("VLAN tag", at + 2, 2, |tag| format!("{} priority {}", tag & 0xfff, tag >> 13));
            at += 4;
        }
    } else if frame.first().is_some_and(|byte| byte >> 4 == 6) {
        kind = 0x86dd;
    }
    match kind {
        0x0800 => all.ipv4(at),
        0x86dd => all.ipv6(at),
        _ => {}
    }
    all.all
}

struct Fields<'a> {
    frame: &'a [u8],
    all: Vec<Field>,
}

impl Fields<'_> {
    fn number(&self, at: usize, length: usize) -> Option<u128> {
        let bytes = self.frame.get(at..at + length)?;
        Some(bytes.iter().fold(0, |number, &byte| number << 8 | u128::from(byte)))
    }

    fn add(&mut self, name: &'static str, at: usize, length: usize, show: impl Fn(u128) -> String) {
        if let Some(number) = self.number(at, length) {
            self.all.push((name, at, at + length - 1, show(number)));
        }
    }

    fn plain(&mut self, name: &'static str, at: usize, length: usize) {
        self.add(name, at, length, |number| number.to_string());
    }

    fn sum(&mut self, name: &'static str, at: usize) {
        self.add(name, at, 2, |number| format!("{number:#06x}"));
    }

    fn ether(&mut self, name: &'static str, at: usize) {
        if let Some(bytes) = self.frame.get(at..at + 6).and_then(|b| b.try_into().ok()) {
            self.all.push((name, at, at + 5, EtherAddr(bytes).to_string()));
        }
    }

    fn ipv4(&mut self, at: usize) {
        let Some(&first) = self.frame.get(at).filter(|&&byte| byte >> 4 == 4) else { return };
        let header = usize::from(first & 15) * 4;
        if header < 20 || self.frame.len() < at + header {
            return;
        }
        self.plain("IP header words", at, 1);
        self.add("DSCP", at + 1, 1, |tos| (tos >> 2).to_string());
        self.add("ECN", at + 1, 1, |tos| (tos & 3).to_string());
        self.plain("IP length", at + 2, 2);
        self.plain("IP identification", at + 4, 2);
        self.add("fragment", at + 6, 2, |bits| {
            let flags = [(0x4000, "DF "), (0x2000, "MF ")];
            let flags = flags.iter().filter(|(bit, _)| bits & bit != 0).map(|flag| flag.1);
            format!("{}offset {}", flags.collect::<String>(), (bits & 0x1fff) * 8)
        });
        self.plain("TTL", at + 8, 1);
        self.add("protocol", at + 9, 1, protocol);
        self.sum("IP checksum", at + 10);
        for (name, at) in [("source", at + 12), ("destination", at + 16)] {
            self.add(name, at, 4, |bits| Ipv4Addr::from_bits(bits as u32).to_string());
        }
        if header > 20 {
            let options = &self.frame[at + 20..at + header];
            let options = options.iter().map(|byte| format!("{byte:02x}")).collect();
            self.all.push(("IP options", at + 20, at + header - 1, options));
        }
        let is_first = self.number(at + 6, 2).is_some_and(|bits| bits & 0x1fff == 0);
        if is_first && let Some(protocol) = self.number(at + 9, 1) {
            self.transport(protocol, at + header);
        }
    }

    fn ipv6(&mut self, at: usize) {
        if self.frame.len() < at + 40 {
            return;
        }
        self.add("traffic class", at, 2, |bits| (bits >> 4 & 0xff).to_string());
        self.add("flow label", at, 4, |bits| (bits & 0xfffff).to_string());
        self.plain("IP length", at + 4, 2);
        self.add("next header", at + 6, 1, protocol);
        self.plain("hop limit", at + 7, 1);
        for (name, at) in [("source", at + 8), ("destination", at + 24)] {
            self.add(name, at, 16, |bits| Ipv6Addr::from_bits(bits).to_string());
        }
        if let Some(protocol) = self.number(at + 6, 1) {
            self.transport(protocol, at + 40);
        }
    }

    fn transport(&mut self, protocol: u128, at: usize) {
        if matches!(protocol, 6 | 17) {
            self.plain("source port", at, 2);
            self.plain("destination port", at + 2, 2);
        }
        match protocol {
            6 => {
                self.plain("TCP sequence number", at + 4, 4);
                self.plain("TCP acknowledgement", at + 8, 4);
                self.add("TCP flags", at + 13, 1, |flags| {
                    let names = "FSRPAUEC".chars().enumerate();
                    names.filter(|(bit, _)| flags >> bit & 1 == 1).map(|name| name.1).collect()
                });
                self.plain("TCP window", at + 14, 2);
                self.sum("TCP checksum", at + 16);
            }
            17 => {
                self.plain("UDP length", at + 4, 2);
                self.sum("UDP checksum", at + 6);
            }
            1 | 58 => {
                self.plain("ICMP type", at, 1);
                self.plain("ICMP code", at + 1, 1);
                self.sum("ICMP checksum", at + 2);
            }
            _ => {}
        }
    }
}

/// A protocol by its name.
fn protocol(number: u128) -> String {
    let name = u8::try_from(number).ok().and_then(ip_protocol::name);
    name.map_or_else(|| number.to_string(), str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(text: &str) -> Vec<u8> {
        net::notation::parse(text).expect("a frame")
    }

    #[test]
    fn fields_are_named() {
        let one = frame("udp 10.0.0.1:5000 > 20.0.0.1:53 ttl 64 tos 4");
        let other = frame("udp 10.0.0.1:5000 > 20.0.0.1:53 ttl 63 tos 8");
        let parts = difference(&one, &other, true);
        assert!(parts.contains(&"TTL 64, not 63".to_string()), "{parts:?}");
        assert!(parts.contains(&"DSCP 1, not 2".to_string()), "{parts:?}");
        assert!(parts.iter().all(|part| !part.starts_with("source")), "{parts:?}");
        let other = frame("tcp 10.0.0.1:5000 > 20.0.0.1:53 ttl 64 tos 4");
        assert!(difference(&one, &other, true).contains(&"other headers".to_string()));
        assert!(difference(&one, &one, true).is_empty());
        // What is cut off ends no program.
        for end in 0..one.len() {
            difference(&one[..end], &one, true);
        }
    }

    #[test]
    fn protocols_have_names() {
        assert_eq!((protocol(17), protocol(6)), ("udp".to_string(), "tcp".to_string()));
    }
}
