//! A full table costs a packet no more than a constant.
//!
//! Every table that packets fill is filled to the half and to the end. Each time, instructions are
//! counted that further packets take, for which something is to be added. Callgrind counts
//! them: the test runs itself under it.

#[path = "chains/support.rs"]
#[allow(dead_code, unreachable_pub, clippy::print_stderr)]
mod support;

use std::collections::BTreeSet;
use std::fmt::Write;

use dataplane::Router;
use elements::registry::CLASSES;
use engine::session::Path;
use ir::Port;
use lab::callgrind;
use net::{Batch, notation};

use support::Started;

/// Packets whose instructions are counted, at each level.
const MEASURED: u32 = 512;

/// How many times as much a packet may take when a table is full.
const MOST: u64 = 3;

/// Fewer instructions are a constant in any case: to drop a packet takes more than to queue it.
const FEW: u64 = 250;

/// Packets, each with the input of `t` that it comes to.
type Frames = Vec<(usize, Vec<u8>)>;

struct Case {
    name: &'static str,
    /// A chain with the element `t` that has the table.
    chain: &'static str,
    /// What adds one thing to the table.
    add: fn(u32) -> Frames,
    /// How many things fill it.
    room: u32,
    path: Path,
}

const fn native(
    name: &'static str,
    chain: &'static str,
    room: u32,
    add: fn(u32) -> Frames,
) -> Case {
    Case { name, chain, add, room, path: Path::Native }
}

const CASES: &[Case] = &[
    native(
        "neighbours that answered, ARP",
        "Idle -> t :: ARPQuerier(10.0.0.1/8, 2:0:0:0:0:1, QUERY_RATE 0, ENTRY_CAPACITY 2048) -> Discard;
         Idle -> [1] t;",
        2048,
        |n| vec![(0, to_next_hop(n)), (1, arp_reply(n))],
    ),
    native(
        "neighbours that answered, shared",
        "a :: ARPTable(QUERY_RATE 0, ENTRY_CAPACITY 2048);
         Idle -> t :: ARPQuerier(10.0.0.1/8, 2:0:0:0:0:1, TABLE a) -> Discard;
         Idle -> [1] t;",
        2048,
        |n| vec![(0, to_next_hop(n)), (1, arp_reply(n))],
    ),
    native(
        "neighbours that nobody asked for, ARP",
        "Idle -> t :: ARPQuerier(10.0.0.1/8, 2:0:0:0:0:1, UNSOLICITED_RATE 0, ENTRY_CAPACITY 2048)
           -> Discard;
         Idle -> [1] t;",
        2048,
        |n| vec![(1, arp_reply(n))],
    ),
    native(
        "neighbours that do not answer, ARP",
        "Idle -> t :: ARPQuerier(10.0.0.1/8, 2:0:0:0:0:1, QUERY_RATE 0, CAPACITY 16384) -> Discard; Idle -> [1] t;",
        2048,
        |n| vec![(0, to_next_hop(n))],
    ),
    native(
        "neighbours whose packets were dropped, ARP",
        "Idle -> t :: ARPQuerier(10.0.0.1/8, 2:0:0:0:0:1, QUERY_RATE 0, CAPACITY 4, INCOMPLETE_CAPACITY 8192)
           -> Discard;
         Idle -> [1] t;",
        8192,
        |n| vec![(0, to_next_hop(n))],
    ),
    native(
        "packets that wait for a neighbour",
        "Idle -> t :: ARPQuerier(10.0.0.1/8, 2:0:0:0:0:1) -> Discard; Idle -> [1] t;",
        2048,
        |_| vec![(0, to_next_hop(7))],
    ),
    native(
        "neighbours that answered, ND",
        "Idle -> t :: IP6NDSolicitor(fd00::1, 2:0:0:0:0:1, QUERY_RATE 0, ENTRY_CAPACITY 2048) -> Discard;
         Idle -> [1] t;",
        2048,
        |n| vec![(0, to_next_hop6(n)), (1, advertisement(n))],
    ),
    native(
        "neighbours that do not answer, ND",
        "Idle -> t :: IP6NDSolicitor(fd00::1, 2:0:0:0:0:1, QUERY_RATE 0, CAPACITY 16384) -> Discard; Idle -> [1] t;",
        2048,
        |n| vec![(0, to_next_hop6(n))],
    ),
    native(
        "hosts of a translator",
        "hosts :: IP6HostMapper(CAPACITY 4096);
         Idle -> t :: MarkIP6Header -> ProtocolTranslator64(hosts, 64:ff9b::/96) -> Discard;",
        4096,
        |n| vec![(0, from_host6(n))],
    ),
    native(
        "addresses of a switch",
        "Idle -> t :: EtherSwitch -> Discard; Idle -> [1] t [1] -> Discard;",
        65_536,
        |n| vec![(0, ethernet(n))],
    ),
    native(
        "connections that are tracked",
        "Idle -> t :: TCPTracker(CAPACITY 4096, CHECKSUM false) -> Discard; Idle -> [1] t [1] -> Discard;",
        4096,
        |n| vec![(1, tcp(n, 1, n, 53))],
    ),
    native(
        "connections over IPv6 that are tracked",
        "Idle -> x :: TCP6Tracker(CAPACITY 4096, CHECKSUM false) -> Discard; x [1] -> Discard;
         Idle -> t :: MarkIP6Header -> [1] x;",
        4096,
        |n| vec![(0, tcp6(n))],
    ),
    native(
        "flows of UDP over IPv6",
        "Idle -> x :: IP6FlowTracker(CAPACITY 4096) -> Discard; x [1] -> Discard;
         Idle -> t :: MarkIP6Header -> [1] x;",
        4096,
        |n| vec![(0, from_host6(n))],
    ),
    native(
        "hosts of a pool with blocks of ports",
        "p :: PoolMapper(9.9.8.0/23 0 0, BLOCK 64, LOG false);
         Idle -> t :: IPRewriter(p, MAPPING_CAPACITY 4096) -> Discard;",
        4096,
        |n| vec![(0, udp(n, 1, n, 53))],
    ),
    native(
        "flows of a balancer",
        "Idle -> t :: IPRRSwitch(CAPACITY 4096) -> Discard; t[1] -> Discard;",
        4096,
        |n| vec![(0, udp(n, 1, 7, 53))],
    ),
    native(
        "flows of a translator",
        "Idle -> t :: IPRewriter(pattern 9.9.9.9 1024-65535 - - 0 0, MAPPING_CAPACITY 4096) -> Discard;",
        4096,
        |n| vec![(0, udp(n, 1, n, 53))],
    ),
    Case {
        name: "flows of a translator, synthesised",
        chain: "Idle -> t :: MarkIPHeader
                  -> IPRewriter(pattern 9.9.9.9 1024-65535 - - 0 0, MAPPING_CAPACITY 4096) -> Discard;",
        add: |n| vec![(0, udp(n, 1, n, 53))],
        room: 4096,
        path: Path::Synthesised,
    },
    native(
        "flows of TCP",
        "Idle -> t :: TCPRewriter(pattern 9.9.9.9 1024-65535 - - 0 0, MAPPING_CAPACITY 4096) -> Discard;",
        4096,
        |n| vec![(0, tcp(n, 1, n, 80))],
    ),
    native(
        "a pool of 4,096 ports",
        "Idle -> t :: IPRewriter(pattern 9.9.9.9 10000-14095 - - 0 0) -> Discard;",
        4096,
        |n| vec![(0, udp(n, 1, 7, 53))],
    ),
    native(
        "a pool of 1,000 ports in turn",
        "Idle -> t :: IPRewriter(pattern 9.9.9.9 10000-10999# - - 0 0) -> Discard;",
        1000,
        |n| vec![(0, udp(n, 1, 7, 53))],
    ),
    native(
        "a pool of 600 ports",
        "Idle -> t :: IPRewriter(pattern 9.9.9.9 10000-10599? - - 0 0) -> Discard;",
        600,
        |n| vec![(0, udp(n, 1, 7, 53))],
    ),
    native(
        "a pool of 256 ports",
        "Idle -> t :: IPRewriter(pattern 9.9.9.9 10000-10255 - - 0 0) -> Discard;",
        256,
        |n| vec![(0, udp(n, 1, 7, 53))],
    ),
    native(
        "a pool of 63 ports",
        "Idle -> t :: UDPRewriter(pattern 9.9.9.9 10000-10062 - - 0 0) -> Discard;",
        63,
        |n| vec![(0, udp(n, 1, 7, 53))],
    ),
    native(
        "a pool of 254 addresses",
        "Idle -> t :: IPAddrRewriter(pattern 9.9.9.1-9.9.9.254 - 0 0) -> Discard;",
        254,
        |n| vec![(0, udp(n, 1, 7, 53))],
    ),
    native(
        "a pool of 256 identifiers",
        "Idle -> t :: ICMPPingRewriter(pattern 9.9.9.9 10000-10255 - - 0 0) -> Discard;",
        256,
        |n| vec![(0, ping(n, 1, 7))],
    ),
    native(
        "pools of two patterns in turn",
        "m :: RoundRobinIPMapper(9.9.9.9 10000-10255 - - 0 0, 9.9.9.8 10000-10255 - - 0 0);
         Idle -> t :: IPRewriter(m) -> Discard;",
        512,
        |n| vec![(0, udp(n, 1, 7, 53))],
    ),
    native(
        "packets of which fragments are missing",
        "Idle -> t :: IPReassembler(HIMEM 98304) -> Discard;",
        2048,
        |n| vec![(0, fragment(n, 1))],
    ),
    native(
        "a packet of which every other fragment is missing",
        "Idle -> t :: IPReassembler -> Discard;",
        2048,
        |n| vec![(0, fragment(7, 2 * n + 1))],
    ),
    native("a queue", "Idle -> t :: Queue(2048) -> Idle;", 2048, |n| vec![(0, ethernet(n))]),
    native(
        "a queue that drops the oldest",
        "Idle -> t :: FrontDropQueue(2048) -> Idle;",
        2048,
        |n| vec![(0, ethernet(n))],
    ),
    native("a queue of CoDel", "Idle -> t :: CoDelQueue(2048) -> Idle;", 2048, |n| {
        vec![(0, ethernet(n))]
    }),
    native(
        "a queue of RED",
        "Idle -> t :: REDQueue(5, 1500, 0.1, CAPACITY 2048) -> Idle;",
        2048,
        |n| vec![(0, ethernet(n))],
    ),
    native(
        "flows of a balancer of servers, round robin",
        "servers :: BackendMapper(- - - - 0 0, BACKENDS 10.0.0.1 10.0.0.2);
         Idle -> t :: IPRewriter(servers, MAPPING_CAPACITY 4096) -> Discard;",
        4096,
        |n| vec![(0, udp(n, 1, n, 53))],
    ),
    native(
        "flows of a balancer of servers, least connections",
        "servers :: BackendMapper(- - - - 0 0, BACKENDS 10.0.0.1 10.0.0.2, POLICY least-connections);
         Idle -> t :: IPRewriter(servers, MAPPING_CAPACITY 4096) -> Discard;",
        4096,
        |n| vec![(0, udp(n, 1, n, 53))],
    ),
    native(
        "payloads that may repeat",
        "Idle -> t :: DedupPayload(MEMORY 65536) -> Discard;",
        1024,
        |n| vec![(0, with_payload(n))],
    ),
    native(
        "annotations that are remembered",
        "Idle -> t :: RestoreAnno(ip.src ip.dst l4, CAPACITY 2048) -> Discard;
         Idle -> [1] t [1] -> Discard;",
        2048,
        |n| vec![(0, udp(n, 1, 1, 53))],
    ),
    native(
        "buckets of hosts",
        "Idle -> t :: FlowRatedSplitter(1000, PER src, CAPACITY 4096) -> Discard;",
        4096,
        |n| vec![(0, udp(n, 1, 1, 53))],
    ),
    native(
        "streams that rules search",
        "Idle -> t :: SnortFilter(tests/full_tables.rules, MEMORY 1000000) -> Discard;",
        4096,
        |n| vec![(0, request(n))],
    ),
    native(
        "streams of requests",
        "Idle -> t :: URLFilter(/dev/null, MEMORY 1000000) -> Discard;",
        4096,
        |n| vec![(0, request(n))],
    ),
];

/// Classes whose tables are those of others that cases have.
const ALIKE: [(&str, &str); 9] = [
    ("FullNoteQueue", "Queue"),
    ("NotifierQueue", "Queue"),
    ("QuickNoteQueue", "Queue"),
    ("SimpleQueue", "Queue"),
    ("ThreadSafeQueue", "Queue"),
    ("IPAddrPairRewriter", "IPAddrRewriter"),
    ("RedupPayload", "DedupPayload"),
    ("ARPTable", "ARPQuerier"),
    ("SYNProxy", "FlowRatedSplitter"),
];

fn ethernet(n: u32) -> Vec<u8> {
    let [a, b, c, d] = n.to_be_bytes();
    [&[2, 0, 0, 0, 0, 9, 2, 1, a, b, c, d, 0x88, 0xb5][..], &[0; 46]].concat()
}

/// An IPv4 packet from and to two of many addresses.
fn ip(protocol: u8, from: u32, to: u32, payload: &[u8]) -> Vec<u8> {
    let mut header = [0x45, 0, 0, (20 + payload.len()) as u8, 0, 1, 0, 0, 64, protocol];
    header[4..6].copy_from_slice(&(from as u16).to_be_bytes());
    let addresses = [0x0a01_0000 + from, 0x1401_0000 + to].map(u32::to_be_bytes);
    let mut packet = [&header[..], &[0; 2], addresses.as_flattened(), payload].concat();
    let sum = net::checksum::Sum::of(&packet).checksum();
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn ports(from: u16, to: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (from.to_be_bytes(), to.to_be_bytes());
    [a, b, c, d]
}

fn udp(from: u32, from_port: u16, to: u32, to_port: u16) -> Vec<u8> {
    ip(17, from, to, &[&ports(from_port, to_port)[..], &[0, 8, 0, 0]].concat())
}

fn tcp(from: u32, from_port: u16, to: u32, to_port: u16) -> Vec<u8> {
    let rest = [0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0x10, 0, 0, 0, 0, 0];
    ip(6, from, to, &[&ports(from_port, to_port)[..], &rest].concat())
}

/// Sixty bytes that no other packet has.
fn with_payload(n: u32) -> Vec<u8> {
    let mut bytes = [0; 60];
    fastrand::Rng::with_seed(n.into()).fill(&mut bytes);
    ip(17, 1, 1, &[&ports(1, 1)[..], &[0, 68, 0, 0], &bytes].concat())
}

/// The first bytes of a request, in a stream of its own.
fn request(n: u32) -> Vec<u8> {
    let rest = [0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 0x10, 0, 0, 0, 0, 0];
    ip(6, n, 1, &[&ports(1, 80)[..], &rest, b"GET /a HTTP/1.1\r\nHost: "].concat())
}

fn ping(from: u32, identifier: u16, to: u32) -> Vec<u8> {
    let [a, b] = identifier.to_be_bytes();
    ip(1, from, to, &[8, 0, 0, 0, a, b, 0, 1])
}

/// Eight bytes of a packet, after so many times eight bytes; others follow.
fn fragment(id: u32, at: u32) -> Vec<u8> {
    let mut packet = ip(99, id, 1, &[1; 8]);
    packet[6..8].copy_from_slice(&(0x2000 | at as u16).to_be_bytes());
    packet
}

/// The address of a neighbour.
fn neighbour(n: u32) -> [u8; 4] {
    (0x0a01_0000 + n).to_be_bytes()
}

/// A packet to a neighbour; where it is to go is its destination.
fn to_next_hop(n: u32) -> Vec<u8> {
    let mut packet = udp(1, 1, 1, 1);
    packet[16..20].copy_from_slice(&neighbour(n));
    packet
}

fn arp_reply(n: u32) -> Vec<u8> {
    let (address, [a, b, c, d]) = (neighbour(n), n.to_be_bytes());
    let ether = [2, 1, a, b, c, d];
    let head = [0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 2];
    let us = [2, 0, 0, 0, 0, 1];
    [&us[..], &ether, &head, &ether, &address, &us, &[10, 0, 0, 1]].concat()
}

fn to_next_hop6(n: u32) -> Vec<u8> {
    let text = format!("bare udp [fd00::1]:1 > [fd00::2:{:x}:{:x}]:2", n >> 16, n & 0xffff);
    notation::parse(&text).expect("the words are right")
}

/// A packet of a host in a network of its own to one of IPv4.
fn from_host6(n: u32) -> Vec<u8> {
    let host = format!("fd00:0:{:x}:{:x}::1", n >> 16, n & 0xffff);
    let text = format!("bare udp [{host}]:1 > [64:ff9b::808:808]:2");
    notation::parse(&text).expect("the words are right")
}

/// A SYN of a host in a network of its own.
fn tcp6(n: u32) -> Vec<u8> {
    let host = format!("fd00:0:{:x}:{:x}::1", n >> 16, n & 0xffff);
    let text = format!("bare tcp [{host}]:1 > [fd00::2]:2 flags S");
    notation::parse(&text).expect("the words are right")
}

fn advertisement(n: u32) -> Vec<u8> {
    let (high, low) = (n >> 16, n & 0xffff);
    let text = format!(
        "eth 02:00:00:00:00:22 > 02:00:00:00:00:01 icmp fd00::2:{high:x}:{low:x} > fd00::1 ttl 255 \
         type 136 rest 0x60000000 payload fd0000000000000000000002{n:08x}0201020000000022"
    );
    notation::parse(&text).expect("the words are right")
}

/// Where a case's packets go.
struct Running {
    started: Started,
    add: fn(u32) -> Frames,
    added: u32,
}

impl Running {
    fn start(case: &Case) -> Self {
        let started = support::start(case.name, case.chain, std::path::Path::new("."), case.path);
        let started = started.unwrap_or_else(|(d, _)| panic!("{}: {d:?}", case.name));
        Self { started, add: case.add, added: 0 }
    }

    /// Packets that add so many things, in bursts.
    fn bursts(&mut self, things: u32) -> Vec<(Port, Batch)> {
        let node = self.started.chain.graph.find("t").expect("every case has it");
        let mut bursts: Vec<(Port, Batch)> = Vec::new();
        let core = self.started.router.core();
        for n in self.added..self.added + things {
            for (port, frame) in (self.add)(n) {
                let packet = prepared(core.pool.packet(&frame));
                match bursts.last_mut() {
                    Some((to, batch)) if to.port == port && batch.len() < 32 => batch.push(packet),
                    _ => {
                        let mut batch = core.batch();
                        batch.push(packet);
                        bursts.push((Port { node, port }, batch));
                    }
                }
            }
        }
        self.added += things;
        bursts
    }
}

/// A packet as the elements before would have left it.
fn prepared(mut packet: net::Packet) -> net::Packet {
    match packet.data()[0] {
        0x45 => {
            let to = packet.data()[16..20].try_into().map_or(0, u32::from_be_bytes);
            packet.annotations_mut().set_u32(net::annotation::DST_IP, to);
            packet.set_ip_header(0, 20);
        }
        0x60 => {
            let to: [u8; 16] = packet.data()[24..40].try_into().expect("sixteen bytes");
            packet.annotations_mut().bytes_mut()[net::annotation::DST_IP6..][..16]
                .copy_from_slice(&to);
        }
        _ => {}
    }
    packet
}

#[inline(never)]
fn push_all(router: &mut Router, bursts: Vec<(Port, Batch)>) {
    for (to, batch) in bursts {
        router.push(to, batch);
        router.round();
    }
}

/// Functions that push packets, with names that callgrind tells apart.
macro_rules! counted {
    ($($name:ident)*) => {
        $(
            #[inline(never)]
            fn $name(router: &mut Router, bursts: Vec<(Port, Batch)>) {
                push_all(router, bursts);
                // Else the call could be a jump, and two functions one.
                std::hint::black_box(stringify!($name));
            }
        )*

        /// Two for each case, and some to spare.
        const COUNTED: &[(&str, fn(&mut Router, Vec<(Port, Batch)>))] =
            &[$((stringify!($name), $name)),*];
    };
}
counted! {
    counted_a0 counted_a1 counted_a2 counted_a3 counted_a4 counted_a5 counted_a6 counted_a7
    counted_b0 counted_b1 counted_b2 counted_b3 counted_b4 counted_b5 counted_b6 counted_b7
    counted_c0 counted_c1 counted_c2 counted_c3 counted_c4 counted_c5 counted_c6 counted_c7
    counted_d0 counted_d1 counted_d2 counted_d3 counted_d4 counted_d5 counted_d6 counted_d7
    counted_e0 counted_e1 counted_e2 counted_e3 counted_e4 counted_e5 counted_e6 counted_e7
    counted_f0 counted_f1 counted_f2 counted_f3 counted_f4 counted_f5 counted_f6 counted_f7
    counted_g0 counted_g1 counted_g2 counted_g3 counted_g4 counted_g5 counted_g6 counted_g7
    counted_h0 counted_h1 counted_h2 counted_h3 counted_h4 counted_h5 counted_h6 counted_h7
    counted_i0 counted_i1 counted_i2 counted_i3 counted_i4 counted_i5 counted_i6 counted_i7
    counted_j0 counted_j1 counted_j2 counted_j3 counted_j4 counted_j5 counted_j6 counted_j7
}

/// Fills all tables.
fn run_all() {
    for (case, functions) in CASES.iter().zip(COUNTED.as_chunks::<2>().0) {
        let mut running = Running::start(case);
        // Once half full, once full; then something has been removed, too.
        let levels = [case.room / 2, case.room * 5 / 4 + 64];
        for (level, (_, push_counted)) in levels.into_iter().zip(functions) {
            while running.added < level {
                let bursts = running.bursts((level - running.added).min(1024));
                push_all(&mut running.started.router, bursts);
            }
            let bursts = running.bursts(measured(case));
            push_counted(&mut running.started.router, bursts);
        }
    }
}

/// Of small tables, fewer packets are counted, so that what is half full is so at the end.
fn measured(case: &Case) -> u32 {
    MEASURED.min(case.room / 8)
}

#[test]
fn a_full_table_costs_a_packet_no_more_than_a_constant() {
    assert!(2 * CASES.len() <= COUNTED.len(), "there are functions for all cases");
    if callgrind::is_counting() {
        return run_all();
    }
    let functions: Vec<&str> = COUNTED.iter().map(|(name, _)| *name).collect();
    let counts =
        callgrind::count("a_full_table_costs_a_packet_no_more_than_a_constant", &functions);
    let (mut table, mut slow) = (String::new(), Vec::new());
    for (case, counts) in CASES.iter().zip(counts.as_chunks::<2>().0) {
        let [half, full] = counts.map(|count| count / u64::from(measured(case)));
        writeln!(table, "{half:>8} {full:>8}  {}", case.name).expect("text");
        assert!(half > 0, "{}: nothing was counted", case.name);
        if full > FEW.max(MOST * half) {
            slow.push(case.name);
        }
    }
    let heading = "instructions a packet, with tables half full and full:";
    assert!(slow.is_empty(), "{slow:?}\n{heading}\n{table}");
}

/// What keywords call the size of a table that packets fill.
const SIZES: [&str; 3] = ["CAPACITY", "HIMEM", "MEMORY"];

#[test]
fn every_class_with_a_bounded_table_has_a_case() {
    let words: BTreeSet<&str> =
        CASES.iter().flat_map(|case| case.chain.split(|c: char| !c.is_alphanumeric())).collect();
    let has_size = |text: &str| {
        text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .any(|word| SIZES.iter().any(|size| word.ends_with(size)))
    };
    let bounded = CLASSES.iter().filter(|class| has_size(class.manual)).map(|class| class.name);
    // The memory of a program is no table of ours.
    let bounded: BTreeSet<&str> = bounded.filter(|name| *name != "Process").collect();
    let is_alike =
        |name: &str| ALIKE.iter().any(|(class, other)| *class == name && words.contains(other));
    let missing: Vec<&&str> =
        bounded.iter().filter(|name| !words.contains(*name) && !is_alike(name)).collect();
    assert!(missing.is_empty(), "their full tables are not tested: {missing:?}");
    assert!(ALIKE.iter().all(|(class, _)| bounded.contains(class)), "all have a size: {ALIKE:?}");
}
