//! The same access list for Catena, for nftables and for OpenFlow.

use std::fmt::Write;

use crate::support::{Data, Frames};

/// A prefix: its address and its length.
type Prefix = (u32, u8);

/// What a rule allows.
pub(crate) struct Rule {
    source: Prefix,
    destination: Prefix,
    protocol: Option<u8>,
    /// Ports of the destination, both ends included.
    ports: Option<(u16, u16)>,
}

/// An access list that denies what it does not allow, and frames that it allows.
pub(crate) struct List {
    pub(crate) rules: Vec<Rule>,
    pub(crate) frames: Vec<Vec<u8>>,
}

/// First octets that addresses of hosts have.
fn is_unicast(octet: u8) -> bool {
    matches!(octet, 1..=126 | 128..=223)
}

impl List {
    /// Reads a list and its traffic. Generated lists have addresses that a kernel does not route
    /// (multicast, class E, loopback): first octets are exchanged for others, the same everywhere, which changes
    /// nothing for lists whose prefixes have 8 bits or more. Frames are TCP and UDP, for this MAC address.
    pub(crate) fn read(data: &Data, rules: u32, to: [u8; 6]) -> Self {
        let set = ("acl1", rules);
        let text = data.text(set);
        let mut list: Vec<Rule> = text.lines().filter_map(Rule::parse).collect();
        let mut frames: Vec<Vec<u8>> = data.reaching(set, 60).iter().map(<[u8]>::to_vec).collect();
        frames.retain(|frame| matches!(frame[23], 6 | 17));
        let mut used = [false; 256];
        for rule in &list {
            for (address, length) in [rule.source, rule.destination] {
                assert!(length >= 8, "a prefix of {length} bits");
                used[(address >> 24) as usize] = true;
            }
        }
        for frame in &frames {
            used[usize::from(frame[26])] = true;
            used[usize::from(frame[30])] = true;
        }
        let mut free = (0..=255u8).filter(|&octet| is_unicast(octet) && !used[usize::from(octet)]);
        let mut exchange: [Option<u8>; 256] = [None; 256];
        for octet in (0..=255u8).filter(|&octet| used[usize::from(octet)]) {
            exchange[usize::from(octet)] =
                if is_unicast(octet) { Some(octet) } else { free.next() };
        }
        let exchanged = |(address, length): Prefix| {
            let octet = exchange[(address >> 24) as usize].unwrap_or((address >> 24) as u8);
            (address & 0xff_ffff | u32::from(octet) << 24, length)
        };
        for rule in &mut list {
            rule.source = exchanged(rule.source);
            rule.destination = exchanged(rule.destination);
        }
        frames
            .retain(|frame| [26, 30].iter().all(|&at| exchange[usize::from(frame[at])].is_some()));
        for frame in &mut frames {
            frame[..6].copy_from_slice(&to);
            for at in [26, 30] {
                frame[at] = exchange[usize::from(frame[at])].unwrap_or_default();
            }
        }
        let frames = Frames::of(frames).iter().map(<[u8]>::to_vec).collect();
        Self { rules: list, frames }
    }

    /// For IPFilter.
    pub(crate) fn click(&self) -> String {
        let mut text = String::new();
        for rule in &self.rules {
            let (source, destination) = (prefix(rule.source), prefix(rule.destination));
            let _ = write!(text, "allow src net {source} && dst net {destination}");
            if let Some(protocol) = rule.protocol {
                let _ = write!(text, " && ip proto {protocol}");
            }
            if let Some((first, last)) = rule.ports {
                let _ = write!(text, " && dst port >= {first} && dst port <= {last}");
            }
            text.push('\n');
        }
        text + "deny all\n"
    }

    /// For `nft -f`: forwarded packets are looked up in the list, and what leaves on eth1 gets its address. With
    /// `marked`, only the first packet of a flow is looked up; its verdict is kept with the flow. (The state
    /// `established` would not do: nobody answers.)
    pub(crate) fn nftables(&self, marked: bool) -> String {
        let mut text = "table ip catena {\n chain acl {\n  type filter hook forward priority 0; policy drop;\n".to_string();
        let accept = match marked {
            true => "ct mark set 1 accept",
            false => "accept",
        };
        if marked {
            text += "  ct mark 1 accept\n";
        }
        for rule in &self.rules {
            let (source, destination) = (prefix(rule.source), prefix(rule.destination));
            let _ = write!(text, "  ip saddr {source} ip daddr {destination}");
            if let Some(protocol) = rule.protocol {
                let _ = write!(text, " meta l4proto {protocol}");
            }
            if let Some((first, last)) = rule.ports {
                let _ = write!(text, " th dport {first}-{last}");
            }
            let _ = writeln!(text, " {accept}");
        }
        text += " }\n chain out {\n  type nat hook postrouting priority 100;\n  oifname \"eth1\" masquerade\n }\n}\n";
        text
    }

    /// For `ovs-ofctl add-flows`: what the list allows is translated by the datapath, and then routed.
    pub(crate) fn openflow(&self, address: &str, [from, to]: [&str; 2]) -> String {
        let mut text = String::new();
        let top = 60_000;
        for (i, rule) in self.rules.iter().enumerate() {
            let (source, destination) = (prefix(rule.source), prefix(rule.destination));
            let priority = top - i;
            let ports = rule
                .ports
                .map_or(vec![None], |ports| masks(ports).into_iter().map(Some).collect::<Vec<_>>());
            for port in ports {
                let _ = write!(
                    text,
                    "table=0,priority={priority},in_port=1,ip,nw_src={source},nw_dst={destination}"
                );
                if let Some(protocol) = rule.protocol {
                    let _ = write!(text, ",nw_proto={protocol}");
                }
                if let Some((port, mask)) = port {
                    let _ = write!(text, ",tp_dst={port:#x}/{mask:#x}");
                }
                let _ = writeln!(text, ",actions=ct(commit,nat(src={address}:1024-65535),table=1)");
            }
        }
        let _ = writeln!(text, "table=0,priority=0,actions=drop");
        let _ = writeln!(
            text,
            "table=1,priority=1,ip,actions=dec_ttl,mod_dl_src:{from},mod_dl_dst:{to},output:2"
        );
        text
    }
}

fn prefix((address, length): Prefix) -> String {
    format!("{}/{length}", std::net::Ipv4Addr::from_bits(address))
}

/// A range of ports as values and masks.
fn masks((first, last): (u16, u16)) -> Vec<(u16, u16)> {
    let (mut at, last) = (u32::from(first), u32::from(last));
    let mut all = Vec::new();
    while at <= last {
        let mut size = if at == 0 { 1 << 16 } else { at & at.wrapping_neg() };
        while at + size - 1 > last {
            size /= 2;
        }
        all.push((at as u16, !(size - 1) as u16));
        at += size;
    }
    all
}

impl Rule {
    /// A rule of the kinds that the lists have; `None` for the last, which denies all.
    fn parse(line: &str) -> Option<Self> {
        let clauses = line.strip_prefix("allow ")?;
        let mut rule = Self { source: (0, 0), destination: (0, 0), protocol: None, ports: None };
        for clause in clauses.split(" && ") {
            let words: Vec<&str> = clause.split_whitespace().collect();
            let number = |text: &str| text.parse::<u16>().expect("a number");
            let (mut first, mut last) = rule.ports.unwrap_or((0, u16::MAX));
            match words[..] {
                ["src", "host" | "net", address] => rule.source = parse_prefix(address),
                ["dst", "host" | "net", address] => rule.destination = parse_prefix(address),
                ["ip", "proto", protocol] => rule.protocol = Some(number(protocol) as u8),
                ["dst", "port", port] => rule.ports = Some((number(port), number(port))),
                ["dst", "port", ">=", port] => {
                    first = number(port);
                    rule.ports = Some((first, last));
                }
                ["dst", "port", "<=", port] => {
                    last = number(port);
                    rule.ports = Some((first, last));
                }
                _ => panic!("a clause of no known kind: {clause}"),
            }
        }
        Some(rule)
    }
}

fn parse_prefix(text: &str) -> Prefix {
    let (address, length) = text.split_once('/').unwrap_or((text, "32"));
    let address: std::net::Ipv4Addr = address.parse().expect("an address");
    (address.to_bits(), length.parse().expect("a length"))
}
