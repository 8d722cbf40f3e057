//! Address translation under traffic that answers: what left comes back from the other side, and
//! as the quotation of ICMP errors, while time passes. The elements' native code and their models
//! must agree on every packet and on all state, and packets with right checksums must leave with
//! right checksums.

use std::path::Path as Folder;

use engine::session::Path;
use ir::Port;
use net::checksum::{self, checksum};
use net::{Batch, Header, Packet, notation};

use crate::outcome::handlers;
use crate::support::{MODES, Started, start};
use lab::cases;

/// Chains whose elements named `x`, `y` and `er` are fed, and the number of `x`'s and `y`'s inputs.
const CHAINS: &[(&str, usize)] = &[
    ("x :: IPRewriter(pattern 100.0.0.1 1024-65535# - - 0 1, drop);
      y :: IPRewriter(drop, pattern - - 10.0.0.1 80 0 1);", 2),
    ("x :: IPRewriter(pattern 100.0.0.1 2000-2003 - - 0 1, keep 1 0, MAPPING_CAPACITY 4, UDP_GUARANTEE 0,
        TCP_GUARANTEE 1, TCP_NODATA_TIMEOUT 2, TCP_TIMEOUT 6, TCP_DONE_TIMEOUT 1);
      y :: IPRewriter(pattern 100.0.0.1 2002 100.0.0.9 - 0 0, pass 1, MAPPING_CAPACITY x, REPLY_ANNO 17);", 2),
    ("x :: IPRewriter(pattern 100.0.0.1 1024-1200? - - 0 1 y, drop, UDP_TIMEOUT 1, UDP_STREAMING_TIMEOUT 3);
      y :: IPRewriter(drop, keep 0 1 x, MAPPING_CAPACITY x, UDP_TIMEOUT 2, UDP_GUARANTEE 1);", 2),
    ("IPRewriterPatterns(p 100.0.0.1 1024-1025# - -);
      lb :: RoundRobinIPMapper(- - 10.0.0.1 - 0 1, p 0 1, 100.0.0.1 3000-3001# 10.0.0.2 8080 1 0);
      hash :: SourceIPHashMapper(4 9, - - 10.0.0.1 - 0 1 4, - - 10.0.0.2 81 0 1 7);
      x :: IPRewriter(lb, hash); y :: IPRewriter(pattern p 0 0, lb);", 2),
    ("x :: TCPRewriter(pattern 100.0.0.1 1024-65535 - - 0 1, drop, TCP_DONE_TIMEOUT 1, MAPPING_CAPACITY 3, GUARANTEE 0);
      y :: TCPRewriter(keep 0 1, pass 1);", 2),
    ("x :: UDPRewriter(pattern 100.0.0.1 1024-1030# - - 0 1, pass 1);
      y :: UDPRewriter(pattern - 1024-1030 10.0.0.1 - 0 1, drop, TIMEOUT 1, STREAMING_TIMEOUT 4, GUARANTEE 1);", 2),
    ("x :: IPAddrRewriter(pattern 100.0.0.1-100.0.0.2# - 0 1, drop, TIMEOUT 3, GUARANTEE 1, MAPPING_CAPACITY 2);
      y :: IPAddrRewriter(pattern 100.0.0.0/24 - 0 1, pass 1);", 2),
    ("x :: IPAddrPairRewriter(pattern 100.0.0.1-100.0.0.2# - 0 1, pattern - 10.0.0.1 1 0);
      y :: IPAddrPairRewriter(keep 0 1, drop, TIMEOUT 1, GUARANTEE 0);", 2),
    ("x :: ICMPPingRewriter(pattern 100.0.0.1 500-502# - - 0 1, pass 1);
      y :: ICMPPingRewriter(pattern 100.0.0.1 6-8 - - 0 1, drop, TIMEOUT 2, GUARANTEE 1, MAPPING_CAPACITY 3);", 2),
];

fn chain(text: &str, inputs: usize) -> String {
    let mut text = format!("{text}\nIdle -> er :: ICMPRewriter(x y:1, REPLY_ANNO 17);\n");
    for element in ["x", "y"] {
        for input in 0..inputs {
            text += &format!("Idle -> [{input}] {element};\n");
        }
        for output in 0..2 {
            text += &format!("{element}[{output}] -> {element}{output} :: Queue(1000) -> Idle;\n");
        }
    }
    for output in 0..3 {
        text += &format!("er[{output}] -> er{output} :: Queue(1000) -> Idle;\n");
    }
    text
}

const QUEUES: [&str; 7] = ["x0", "x1", "y0", "y1", "er0", "er1", "er2"];

/// An IP packet, and whether it is as it should be.
#[derive(Clone)]
struct Datagram {
    bytes: Vec<u8>,
    right: bool,
}

struct Traffic {
    rng: fastrand::Rng,
    /// What left, to be answered and quoted.
    left: Vec<Datagram>,
}

fn one<T: Copy>(rng: &mut fastrand::Rng, of: &[T]) -> T {
    of[rng.usize(..of.len())]
}

impl Traffic {
    fn new_packet(&mut self) -> Datagram {
        let rng = &mut self.rng;
        let host = |rng: &mut fastrand::Rng| {
            one(rng, &["10.0.0.1", "10.0.0.2", "100.0.0.1", "100.0.0.2", "8.8.8.8"])
        };
        let (src, dst) = (host(rng), host(rng));
        let port = |rng: &mut fastrand::Rng| one(rng, &[53u16, 80, 2001, 2002, 5000, 65535]);
        let (from, to) = (port(rng), port(rng));
        let payload = ["", "payload 'x'", "payload 'some text'"][rng.usize(..3)];
        let text = match rng.u8(..10) {
            0..3 => {
                let nosum = if rng.u8(..4) == 0 { "nosum" } else { "" };
                format!("udp {src}:{from} > {dst}:{to} {payload} {nosum}")
            }
            3..6 => {
                let flags = ["S", "A", "FA", "R", "SA", "PA"][rng.usize(..6)];
                format!("tcp {src}:{from} > {dst}:{to} flags {flags} {payload}")
            }
            6..8 => {
                let kind = if rng.bool() { 8 } else { 0 };
                let identifier = rng.u32(5..9);
                format!("icmp {src} > {dst} type {kind} rest {} {payload}", identifier << 16)
            }
            8 => {
                format!("ip {src} > {dst} proto {} payload '0123456789'", [33, 47][rng.usize(..2)])
            }
            _ => format!(
                "udp {src}:{from} > {dst}:{to} payload '01234567' mf frag {}",
                8 * rng.u16(..2)
            ),
        };
        let mut bytes = notation::parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        bytes.drain(..14);
        Datagram { bytes, right: true }
    }

    /// The other side's answer to something that left.
    fn answer(&mut self) -> Option<Datagram> {
        let mut answered = self.rng.choice(&self.left)?.clone();
        let ip = &mut answered.bytes;
        for i in 12..16 {
            ip.swap(i, i + 4);
        }
        let transport = usize::from(ip[0] & 0xf) * 4;
        let kind = *ip.get(transport)?;
        match ip[9] {
            6 | 17 | 33 if ip.len() >= transport + 4 => {
                ip.swap(transport, transport + 2);
                ip.swap(transport + 1, transport + 3);
            }
            1 if kind == 8 => {
                ip[transport] = 0;
                fix_checksums(ip);
            }
            _ => {}
        }
        // A connection goes on.
        if ip[9] == 6 && ip.len() >= transport + 20 {
            ip[transport + 13] = one(&mut self.rng, &[0x10u8, 0x11, 0x18, 0x04, 0x12]);
            fix_checksums(ip);
        }
        Some(answered)
    }

    /// An ICMP error about something that left.
    fn error(&mut self) -> Option<Datagram> {
        let quoted = self.rng.choice(&self.left)?.clone();
        let quotes = quoted.bytes.len().min([28, 36, 48, 100][self.rng.usize(..4)]);
        let to = &quoted.bytes[12..16];
        let from = match self.rng.bool() {
            true => &quoted.bytes[16..20],
            false => &[7, 7, 7, 7],
        };
        let kind = one(&mut self.rng, &[3u8, 4, 5, 11, 12, 8]);
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 1, 0, 0];
        ip.extend(from);
        ip.extend(to);
        ip.extend([kind, 1, 0, 0, 0, 0, 0, 0]);
        ip.extend(&quoted.bytes[..quotes]);
        let length = ip.len() as u16;
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        fix_checksums(&mut ip);
        Some(Datagram { bytes: ip, right: true })
    }

    fn next(&mut self) -> Datagram {
        let choice = self.rng.u8(..10);
        let known = match choice {
            0..5 => self.answer(),
            5..7 => self.error(),
            _ => None,
        };
        let mut datagram = known.unwrap_or_else(|| self.new_packet());
        let length = datagram.bytes.len();
        match self.rng.u8(..40) {
            0 => {
                datagram.bytes.truncate(self.rng.usize(..length));
                datagram.right = false;
            }
            1 => {
                let at = self.rng.usize(..length);
                datagram.bytes[at] ^= 1 << self.rng.u8(..8);
                datagram.right = false;
            }
            _ => {}
        }
        datagram
    }
}

/// Where the transport checksum is, if the packet has one that can be checked.
fn transport_checksum(ip: &[u8]) -> Option<usize> {
    let transport = usize::from(ip[0] & 0xf) * 4;
    let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff != 0;
    let at = match ip[9] {
        6 => 16,
        17 => 6,
        1 => 2,
        _ => return None,
    };
    (!fragment && ip.len() >= transport + at + 2).then_some(transport + at)
}

/// The sum that the transport checksum covers.
fn covered(ip: &[u8]) -> checksum::Sum {
    let transport = &ip[usize::from(ip[0] & 0xf) * 4..];
    let address = |at: usize| std::net::Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
    let sum = checksum::Sum::of(transport);
    match ip[9] {
        1 => sum,
        protocol => {
            let length = transport.len() as u16;
            sum.plus(checksum::pseudo_header_v4(address(12), address(16), protocol, length))
        }
    }
}

pub fn fix_checksums(ip: &mut [u8]) {
    ip[10..12].fill(0);
    let header = usize::from(ip[0] & 0xf) * 4;
    let sum = checksum(&ip[..header]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    if let Some(at) = transport_checksum(ip)
        && (ip[9] != 17 || ip[at..at + 2] != [0, 0])
    {
        ip[at..at + 2].fill(0);
        let sum = covered(ip).checksum();
        ip[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

fn assert_right(ip: &[u8]) {
    let header = usize::from(ip[0] & 0xf) * 4;
    assert_eq!(checksum(&ip[..header]), 0, "IP checksum of {ip:02x?}");
    let Some(at) = transport_checksum(ip) else { return };
    if ip[9] == 17 && ip[at..at + 2] == [0, 0] {
        return;
    }
    assert_eq!(covered(ip).checksum(), 0, "transport checksum of {ip:02x?}");
    // What is quoted must be right too.
    if ip[9] == 1 && matches!(ip[header], 3 | 4 | 5 | 11 | 12) {
        let quoted = &ip[header + 8..];
        assert_eq!(checksum(&quoted[..20]), 0, "quoted IP checksum of {ip:02x?}");
    }
}

fn packet(started: &mut Started, datagram: &Datagram, marked: bool) -> Packet {
    let mut packet = started.router.core().pool.packet(&datagram.bytes);
    if marked {
        let header = datagram.bytes.first().map_or(0, |b| usize::from(b & 0xf) * 4);
        packet.set_ip_header(0, header);
    } else if datagram.bytes.len().is_multiple_of(2) {
        packet.set_header_offset(Header::Network, 0);
    }
    packet
}

/// What left, by queue, with all annotations.
fn drain(started: &mut Started) -> Vec<(usize, Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    for (i, queue) in QUEUES.iter().enumerate() {
        let node = started.chain.graph.find(queue).expect("queues are declared");
        while let Some(packet) = started.router.pull(Port { node, port: 0 }) {
            all.push((i, packet.data().to_vec(), packet.annotations().bytes().to_vec()));
            started.router.core().pool.recycle(packet);
        }
    }
    all
}

fn tallies(started: &mut Started) -> Vec<String> {
    let lines = started.router.report();
    let mut all: Vec<String> = lines
        .flat_map(|(name, _, tally, _)| tally.lines().iter().map(move |l| format!("{name} {l:?}")))
        .collect();
    all.sort();
    all
}

fn talk(text: &str, inputs: usize, seed: u64, steps: usize) -> usize {
    let mut all = MODES.map(|mode| {
        start("translation", text, Folder::new("."), mode)
            .unwrap_or_else(|(d, _)| panic!("{text}: {d:?}"))
    });
    let mut traffic = Traffic { rng: fastrand::Rng::with_seed(seed), left: Vec::new() };
    let mut left = 0;
    for step in 0..steps {
        if traffic.rng.u8(..4) == 0 {
            let pauses = [1, 200_000_000, 1_100_000_000, 3_500_000_000];
            let pause = pauses[traffic.rng.usize(..pauses.len())];
            all.iter().for_each(|started| started.clock.advance(pause));
        }
        let target = one(&mut traffic.rng, &["x", "x", "y", "er"]);
        let port = if target == "er" { 0 } else { traffic.rng.usize(..inputs) };
        let burst: Vec<(Datagram, bool)> = (0..traffic.rng.usize(1..6))
            .map(|_| (traffic.next(), traffic.rng.u8(..30) != 0))
            .collect();
        let right = burst.iter().all(|(d, marked)| d.right && *marked);
        for started in &mut all {
            let node = started.chain.graph.find(target).expect("targets are declared");
            let mut batch = Batch::new();
            burst.iter().for_each(|(d, marked)| batch.push(packet(started, d, *marked)));
            started.router.push(Port { node, port }, batch);
        }
        let lefts = all.each_mut().map(drain);
        for (mode, left) in MODES.iter().zip(&lefts) {
            assert_eq!(lefts[0], *left, "{mode:?}, seed {seed}, step {step} of {text}");
        }
        for (queue, bytes, _) in lefts.into_iter().next().into_iter().flatten() {
            left += 1;
            if right {
                assert_right(&bytes);
            }
            if right && bytes.len() >= 28 && queue < 4 {
                traffic.left.push(Datagram { bytes, right });
                let at = traffic.left.len();
                if at > 12 {
                    traffic.left.swap_remove(traffic.rng.usize(..at));
                }
            }
        }
        let tallies = all.each_mut().map(tallies);
        for (mode, tallies_of) in MODES.iter().zip(&tallies) {
            assert_eq!(tallies[0], *tallies_of, "{mode:?}, seed {seed}, step {step} of {text}");
        }
        if step % 8 == 0 || step + 1 == steps {
            let states = all.each_mut().map(|s| s.router.state());
            for (mode, b) in MODES.iter().zip(&states) {
                let a = &states[0];
                assert!(a == b, "{mode:?}, seed {seed}, step {step} of {text}:\n{a:#?}\n{b:#?}");
            }
            for handler in ["x.table", "y.table", "x.table_size", "y.mapping_failures", "x.size"] {
                let values = all.each_mut().map(|s| s.router.read_handler(handler));
                for (mode, value) in MODES.iter().zip(&values) {
                    let place = format!("{mode:?}, seed {seed}, step {step} of {text}");
                    assert_eq!(values[0], *value, "{handler}, {place}");
                }
            }
        }
    }
    for started in &all {
        assert_eq!(started.heard.0.borrow().errors, Vec::<String>::new(), "seed {seed} of {text}");
    }
    left
}

/// `CASES` asks for more conversations of each chain.
#[test]
fn conversations_through_rewriters_conform_to_models() {
    for (text, inputs) in CHAINS {
        let text = chain(text, *inputs);
        let cases = cases(30);
        let left: usize = (0..cases).map(|seed| talk(&text, *inputs, seed, 60)).sum();
        // Most of what is sent must not simply be dropped.
        assert!(left > 30 * cases as usize, "only {left} packets left {text}");
    }
}

/// With nothing but new flows, a program stops looking packets up. What elements do then is the same,
/// and flows that come again are looked up again.
#[test]
fn a_flood_of_flows_is_translated_like_any() {
    const FLOOD: u32 = 170_000;
    const FEW: u32 = 100;
    let text = "in0 :: Idle -> Strip(0) -> MarkIPHeader -> ttl :: DecIPTTL
          -> x :: IPRewriter(pattern 100.0.0.1 1024-65535 - - 0 0, MAPPING_CAPACITY 200000, UDP_TIMEOUT 600)
          -> y :: IPRewriter(pattern 100.0.1.1 - - - 0 0, MAPPING_CAPACITY 200000, UDP_TIMEOUT 600)
          -> all :: Counter -> q :: Queue(1000) -> Idle; ttl[1] -> Discard;";
    let frame =
        notation::parse("bare udp 10.0.0.1:9 > 20.0.0.1:9 ttl 9").expect("the words are right");
    // A flood of flows, and then a few again and again.
    let flows = (0..FLOOD).chain((0..9 * u32::pow(2, 17)).map(|i| i % FEW));
    let sources: Vec<u32> = flows.collect();
    let seen = [Path::Native, Path::Synthesised].map(|path| {
        let mut started = start("flood", text, Folder::new("."), path)
            .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"));
        let node = started.chain.graph.find("in0").expect("it is declared");
        let to = started.chain.graph.successors(Port { node, port: 0 }).next().expect("an edge");
        let mut left = Vec::new();
        for sources in sources.chunks(250) {
            let mut batch = Batch::new();
            for source in sources {
                let mut packet = started.router.core().pool.packet(&frame);
                packet.data_mut()[12..16].copy_from_slice(&(0x0a00_0000 + source).to_be_bytes());
                batch.push(packet);
            }
            started.router.push(to, batch);
            let queue = started.chain.graph.find("q").expect("it is declared");
            while let Some(packet) = started.router.pull(Port { node: queue, port: 0 }) {
                left.push((packet.data()[8..24].to_vec(), packet.annotations().bytes().to_vec()));
                started.router.core().pool.recycle(packet);
            }
        }
        let of = ["x", "y"].map(|name| handlers(&mut started.router, name));
        (left, of, tallies(&mut started))
    });
    // There are not enough ports for all.
    let left = seen[0].0.len();
    assert!((sources.len() - FLOOD as usize..sources.len()).contains(&left), "{left} left");
    assert!(seen[0] == seen[1]);
}

/// Packets of a few connections that open and close all the time, several of each in a burst: what one changes holds for
/// the next, though both were looked up together.
#[test]
fn what_a_packet_changes_holds_for_the_next_of_a_burst() {
    let text = "in0 :: Idle -> Strip(0) -> MarkIPHeader
          -> x :: IPRewriter(pattern 100.0.0.1 1024-65535 - - 0 0) -> y :: IPRewriter(pattern 100.0.1.1 - - - 0 0)
          -> q :: Queue(1000) -> Idle;";
    let frame = notation::parse("bare tcp 10.0.0.1:9 > 20.0.0.1:9").expect("the words are right");
    let mut all = [Path::Native, Path::Synthesised].map(|path| {
        start("burst", text, Folder::new("."), path)
            .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"))
    });
    let mut rng = fastrand::Rng::with_seed(1);
    for burst in 0..2000 {
        let packets: Vec<(u8, u8)> = (0..32).map(|_| (rng.u8(..8), rng.u8(..8))).collect();
        for started in &mut all {
            let node = started.chain.graph.find("in0").expect("it is declared");
            let to = started.chain.graph.successors(Port { node, port: 0 }).next();
            let mut batch = Batch::new();
            for (source, flags) in &packets {
                let mut packet = started.router.core().pool.packet(&frame);
                (packet.data_mut()[15], packet.data_mut()[33]) = (*source, *flags);
                batch.push(packet);
            }
            started.router.push(to.expect("an edge"), batch);
            let queue = started.chain.graph.find("q").expect("it is declared");
            while let Some(packet) = started.router.pull(Port { node: queue, port: 0 }) {
                started.router.core().pool.recycle(packet);
            }
        }
        let [native, synthesised] = all.each_mut().map(|started| started.router.state());
        assert!(native == synthesised, "burst {burst}:\n{native:#?}\n{synthesised:#?}");
    }
}
