//! The inputs of the examples: an access list and captures, made from seeds.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::Ipv4Addr;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use net::notation;
use net::pcap::{Options, Writer};

use crate::{Result, command};

/// Rules of the ISP's access list, the last one included.
const RULES: usize = 8550;

/// Makes the files, or, to check, says which are not what would be made.
pub(crate) fn run(check: bool) -> Result {
    let mut stale = Vec::new();
    for (name, made) in files()? {
        let path = command::root().join("examples").join(name);
        if check {
            let mut stands = Vec::new();
            // What matters is what is in the files; how well it is compressed may change.
            let file = std::fs::File::open(&path);
            if file.is_err()
                || GzDecoder::new(file?).read_to_end(&mut stands).is_err()
                || stands != made
            {
                stale.push(format!("examples/{name}"));
            }
        } else {
            let mut encoder = GzEncoder::new(std::fs::File::create(&path)?, Compression::best());
            encoder.write_all(&made)?;
            encoder.finish()?;
        }
    }
    match stale.is_empty() {
        true => Ok(()),
        false => {
            Err(format!("not as `cargo xtask examples` makes them: {}", stale.join(", ")).into())
        }
    }
}

fn files() -> Result<Vec<(&'static str, Vec<u8>)>> {
    let rules = access_list();
    Ok(vec![
        ("isp-edge.rules.gz", text(&rules).into_bytes()),
        ("published/acl.rules.gz", text(published(&rules)).into_bytes()),
        ("isp-customers.pcap.gz", capture(&customers(&rules))?),
        ("lan.pcap.gz", capture(&framed(lan(), "02:00:00:00:10:05", "02:00:00:00:10:01"))?),
        ("wan.pcap.gz", capture(&framed(wan(), "02:00:00:00:20:fe", "02:00:00:00:20:01"))?),
    ])
}

/// A rule of the access list: what is allowed, as prefixes and ranges of destination ports.
struct Rule {
    source: (u32, u8),
    destination: (u32, u8),
    protocol: u8,
    ports: (u16, u16),
}

/// Rules like an ISP's: customers' networks, mostly single hosts, to services, most specific first.
fn access_list() -> Vec<Rule> {
    let mut rng = fastrand::Rng::with_seed(8550);
    let networks: Vec<u32> = (0..60).map(|_| 0x0a00_0000 | rng.u32(..) & 0x00ff_ff00).collect();
    let servers: Vec<u32> =
        (0..400).map(|_| (rng.u32(1..224) << 24) | rng.u32(..) & 0x00ff_ffff).collect();
    let services: [u16; 16] =
        [80, 443, 53, 22, 25, 110, 143, 993, 995, 123, 1521, 1723, 3306, 5060, 5632, 8080];
    let mut rules: Vec<Rule> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    while rules.len() < RULES - 1 {
        let source_length = *rng.choice(&[32u8, 32, 32, 32, 31, 31, 30, 29, 24, 23]).unwrap_or(&32);
        let destination_length =
            *rng.choice(&[32u8, 32, 32, 32, 31, 30, 28, 24, 22]).unwrap_or(&32);
        let source = rng.choice(&networks).unwrap_or(&0) | rng.u32(0..256);
        let destination = rng.choice(&servers).unwrap_or(&0) | rng.u32(0..4);
        let protocol = *rng.choice(&[6u8, 6, 6, 6, 6, 6, 17, 17, 1]).unwrap_or(&6);
        let ports = match (protocol, rng.u8(0..20)) {
            (1, _) => (0, u16::MAX),
            (_, 0) => (1024, u16::MAX),
            (_, 1) => (0, u16::MAX),
            (_, 2..6) => {
                let port = rng.u16(1024..20000);
                (port, port)
            }
            _ => {
                let port = *rng.choice(&services).unwrap_or(&80);
                (port, port)
            }
        };
        let cut = |address: u32, length: u8| address & (u32::MAX << (32 - length));
        let rule = Rule {
            source: (cut(source, source_length), source_length),
            destination: (cut(destination, destination_length), destination_length),
            protocol,
            ports,
        };
        if seen.insert((rule.source, rule.destination, rule.protocol, rule.ports)) {
            rules.push(rule);
        }
    }
    rules.sort_by_key(|r| std::cmp::Reverse(u16::from(r.source.1) + u16::from(r.destination.1)));
    rules
}

/// The list in the pattern language of IPFilter.
fn text<'a>(rules: impl IntoIterator<Item = &'a Rule>) -> String {
    let mut text = String::new();
    let end = |kind: &str, (address, length): (u32, u8)| match length {
        32 => format!("{kind} host {}", Ipv4Addr::from_bits(address)),
        _ => format!("{kind} net {}/{length}", Ipv4Addr::from_bits(address)),
    };
    for rule in rules {
        let _ =
            write!(text, "allow {} && {}", end("src", rule.source), end("dst", rule.destination));
        let _ = write!(text, " && ip proto {}", rule.protocol);
        let _ = match rule.ports {
            (0, u16::MAX) => Ok(()),
            (low, u16::MAX) => write!(text, " && dst port >= {low}"),
            (port, _) => write!(text, " && dst port {port}"),
        };
        text.push('\n');
    }
    text.push_str("deny all\n");
    text
}

/// A list of 1,500 rules, as in the papers: every sixth one, up to so many.
fn published(rules: &[Rule]) -> Vec<&Rule> {
    rules.iter().step_by(6).chain(rules.iter().skip(1).step_by(6)).take(1500).collect()
}

/// What the ISP's customers send: mostly allowed, some not, some expired, some broken.
fn customers(rules: &[Rule]) -> Vec<String> {
    let mut rng = fastrand::Rng::with_seed(1);
    let flows: Vec<&Rule> = (0..300).filter_map(|_| rng.choice(rules)).collect();
    let mut packets = Vec::new();
    for i in 0..3000u32 {
        // A few flows send most of the packets.
        let which = (rng.f64() * rng.f64() * flows.len() as f64) as usize;
        let rule = flows[which];
        let (host, port) = (rng.u32(0..1 << (32 - rule.source.1).min(3)), 20_000 + which as u16);
        let source = Ipv4Addr::from_bits(rule.source.0 | host);
        let destination = Ipv4Addr::from_bits(rule.destination.0);
        let size = *rng.choice(&[60, 60, 60, 120, 576, 1400]).unwrap_or(&60);
        let ttl = if i % 97 == 0 { 1 } else { 64 };
        let service = if rule.ports.1 == u16::MAX { 4000 } else { rule.ports.0 };
        let tail = format!("ttl {ttl} id {} size {size}", i & 0xffff);
        packets.push(match (i % 50, rule.protocol) {
            // Nobody allowed this one.
            (7, _) => format!("udp {source}:{port} > 192.0.2.{}:9 {tail}", i % 250),
            (13, _) => format!("tcp {source}:{port} > {destination}:{service} {tail} badsum"),
            (29, _) => format!("arp who-has 10.255.255.254 tell {source}"),
            (_, 6) => format!("tcp {source}:{port} > {destination}:{service} flags PA {tail}"),
            (_, 17) => format!("udp {source}:{port} > {destination}:{service} {tail}"),
            _ => format!(
                "icmp {source} > {destination} type 8 rest {} {tail}",
                u32::from(port) << 16 | i
            ),
        });
    }
    packets
}

/// Packets of a local network: to other networks, to the router itself, and to nobody.
fn lan() -> Vec<String> {
    let mut packets = vec!["arp who-has 10.0.0.1 tell 10.0.0.5".to_string()];
    packets.extend(
        (5..45).map(|h| format!("arp reply 10.0.0.{h} is-at 02:00:00:00:10:{h:02x} to 10.0.0.1")),
    );
    for i in 0..400u32 {
        let source = format!("10.0.0.{}", 5 + i % 40);
        let ttl = 1 + i % 12;
        let (sport, id) = (3000 + i % 40, i);
        packets.push(match i % 20 {
            3 => format!("icmp {source} > 10.0.0.1 type 8 rest {i} id {id}"),
            9 => format!(
                "udp {source}:{sport} > 20.0.{}.9:53 ttl {ttl} id {id} size 1500 df",
                i % 10
            ),
            12 => format!("tcp {source}:{sport} > 20.3.0.9:80 ttl {ttl} id {id} badsum"),
            15 => format!("udp {source}:{sport} > 203.0.113.9:1234 ttl 40 id {id}"),
            17 => format!("udp {source}:{sport} > 203.0.113.9:4321 ttl 40 id {id}"),
            n if n % 2 == 0 => {
                format!("udp {source}:{sport} > 20.{}.0.9:53 ttl {ttl} id {id} size 200", i % 10)
            }
            _ => format!(
                "tcp {source}:{sport} > 20.{}.0.9:80 ttl {} id {id} flags S",
                i % 10,
                40 + ttl
            ),
        });
    }
    packets
}

/// Packets from outside: answers, probes of every port, and broken ones.
fn wan() -> Vec<String> {
    let mut packets = vec!["arp reply 20.0.0.254 is-at 02:00:00:00:20:fe to 20.0.0.1".to_string()];
    for i in 0..200u32 {
        packets.push(match i % 8 {
            0 => format!("udp 20.0.0.9:53 > 10.0.0.{}:3000 ttl 60 id {i} size 300", 5 + i % 40),
            1 => format!("tcp 20.9.0.9:{} > 198.51.100.1:{} flags S id {i}", 40000 + i, 1 + i),
            2 => format!("icmp 20.1.0.1 > 10.0.0.7 type 8 rest {i} id {i}"),
            3 => format!("udp 20.2.0.9:53 > 198.51.100.1:{} id {i} badsum", 1024 + i),
            _ => format!(
                "tcp 20.{}.0.9:80 > 10.0.0.{}:3000 flags A id {i} size 600",
                i % 10,
                5 + i % 40
            ),
        });
    }
    packets
}

/// Puts an Ethernet header in front of each packet: from a host to the router.
fn framed(packets: Vec<String>, from: &str, to: &str) -> Vec<String> {
    packets.iter().map(|packet| format!("eth {from} > {to} {packet}")).collect()
}

/// A capture of packets in words, a tenth of a millisecond apart.
fn capture(packets: &[String]) -> Result<Vec<u8>> {
    let mut writer = Writer::new(Vec::new(), &Options::default())?;
    // 2026-01-01.
    let mut time = 1_767_225_600_000_000_000u64;
    for packet in packets {
        let frame = notation::parse(packet).map_err(|why| format!("{packet}: {why}"))?;
        writer.write(time, &frame, frame.len() as u32)?;
        time += 100_000;
    }
    Ok(writer.finish()?)
}
