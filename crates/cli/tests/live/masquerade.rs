//! NAPT beside the kernel's masquerade: the same packets, and what leaves is compared.

mod generated;

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::path::Path;

use lab::chain::{self, Started};
use lab::live::possible;
use lab::outcome::{drain, feed};
use net::checksum::{Sum, udp_absent};
use net::pcap::Reader;
use net::wire::{Icmpv4, Ipv4, Tcp, Udp};

use crate::kernel::Kernel;

/// Where packets come from.
const INSIDE: usize = 0;
const OUTSIDE: usize = 1;
/// The address of all hosts inside.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// A flow as hosts inside see it; a ping's identifier is its port inside.
#[derive(Clone, Copy, Debug)]
struct Flow {
    number: usize,
    protocol: u8,
    inside: (Ipv4Addr, u16),
    outside: (Ipv4Addr, u16),
}

impl Flow {
    fn name(&self) -> &'static str {
        match self.protocol {
            1 => "a ping",
            6 => "TCP",
            _ => "UDP",
        }
    }
}

/// Packets of a flow, or about it, that come one after the other.
struct Event {
    from: usize,
    what: String,
    flow: Flow,
    /// By the port that the flow has outside.
    packets: Box<dyn Fn(u16) -> Vec<Vec<u8>>>,
}

/// Something that translates: what leaves of a packet that comes from a side, and on which side.
trait Translate {
    fn pass(&mut self, from: usize, packet: &[u8]) -> Vec<(usize, Vec<u8>)>;
}

/// The kernel's masquerade.
fn masquerade() -> Kernel {
    // What is compared is the translation, not the check of windows.
    let settings = "echo 1 > netfilter/nf_conntrack_tcp_be_liberal";
    Kernel::start(include_str!("masquerade/rules.nft"), settings, Some(PUBLIC.to_string()))
}

impl Translate for Kernel {
    fn pass(&mut self, from: usize, packet: &[u8]) -> Vec<(usize, Vec<u8>)> {
        Kernel::pass(self, from, packet)
    }
}

/// The network function.
struct Napt(Started);

impl Napt {
    fn start() -> Self {
        let chain = format!(
            "require(nf); nat :: NAPT({PUBLIC}, MTU 65535);
             in0 :: Idle -> [0] nat [0] -> out0 :: Queue -> Idle;
             in1 :: Idle -> [1] nat [1] -> out1 :: Queue -> Idle;"
        );
        let started = chain::start("napt", &chain, Path::new("."), engine::session::Path::Native);
        Self(started.unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}")))
    }
}

impl Translate for Napt {
    fn pass(&mut self, from: usize, packet: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0], packet].concat();
        self.0.clock.advance(1000);
        feed(&mut self.0, &format!("in{from}"), &[frame]);
        let of = |side: usize, started: &mut Started| {
            let left = drain(started, &format!("out{side}"));
            left.into_iter().map(|seen| (side, seen.bytes()[14..].to_vec())).collect::<Vec<_>>()
        };
        [of(INSIDE, &mut self.0), of(OUTSIDE, &mut self.0)]
            .map(|left| {
                left.into_iter().map(|(side, packet)| (1 - side, packet)).collect::<Vec<_>>()
            })
            .concat()
    }
}

/// Puts fragments together that left together.
fn whole(left: Vec<(usize, Vec<u8>)>) -> Vec<(usize, Vec<u8>)> {
    let (fragments, mut all): (Vec<_>, Vec<_>) = left
        .into_iter()
        .partition(|(_, packet)| Ipv4::new(&packet[..]).is_some_and(|ip| ip.is_fragment()));
    let Some((side, first)) = fragments.iter().find(|(_, packet)| packet[6..8] == [0x20, 0]) else {
        all.extend(fragments);
        return all;
    };
    let mut parts: Vec<_> = fragments
        .iter()
        .filter_map(|(_, packet)| {
            let ip = Ipv4::new(&packet[..])?;
            Some((ip.fragment_offset(), ip.payload().to_vec()))
        })
        .collect();
    parts.sort();
    let header = usize::from(first[0] & 15) * 4;
    let mut joined = first[..header].to_vec();
    for (offset, part) in parts {
        assert_eq!(offset, joined.len() - header, "a fragment is missing");
        joined.extend(part);
    }
    let length = joined.len() as u16;
    let mut ip = Ipv4::new(&mut joined[..]).unwrap();
    ip.set_total_len(length);
    ip.set_fragment_word(0);
    ip.fill_checksum();
    all.push((*side, joined));
    all
}

/// Whether the checksum behind a header of IPv4 is right, if all that it is made of is there.
fn is_sound(ip: &Ipv4<&[u8]>) -> Option<bool> {
    let payload = ip.payload();
    if payload.len() + ip.header_len() < usize::from(ip.total_len()) {
        return None;
    }
    let pseudo = ip.pseudo_header(payload.len() as u16);
    match ip.protocol() {
        1 => Some(Sum::of(payload).fold() == 0xffff),
        6 => Some(Tcp::new(payload)?.checksum_ok(pseudo)),
        17 => Some(Udp::new(payload)?.checksum_ok(pseudo)),
        _ => None,
    }
}

/// A packet without what may differ: the port that the flow has outside, and the time to live. Whether checksums are
/// right stands in their places.
fn comparable(packet: &mut [u8], port: u16, is_quoted: bool) {
    const GONE: [u8; 2] = [0xee, 0xee];
    let Some(ip) = Ipv4::new(&packet[..]) else { return };
    let (header, protocol) = (ip.header_len(), ip.protocol());
    let ends = [ip.src(), ip.dst()];
    let (ip_sum, sum) = (ip.checksum_ok(), is_sound(&ip));
    if packet.len() < header + 8 {
        return;
    }
    packet[10..12].copy_from_slice(&[ip_sum.into(), 0]);
    if !is_quoted {
        packet[8] = 0;
    }
    let payload = &mut packet[header..];
    let place = match protocol {
        1 => 2,
        6 => 16,
        _ => 6,
    };
    if matches!(protocol, 1 | 6 | 17) && payload.len() >= place + 2 {
        let is_absent = protocol == 17 && udp_absent(u16::from_be_bytes([payload[6], payload[7]]));
        let mark = if is_absent { 9 } else { sum.map_or(2, u8::from) };
        payload[place..place + 2].copy_from_slice(&[mark, 0]);
    }
    match (protocol, payload[0]) {
        (1, 0 | 8) if ends.contains(&PUBLIC) && payload[4..6] == port.to_be_bytes() => {
            payload[4..6].copy_from_slice(&GONE);
        }
        (1, _) if Icmpv4::new(&payload[..]).is_some() && matches!(payload[0], 3..=5 | 11 | 12) => {
            comparable(&mut payload[8..], port, true);
        }
        (6 | 17, _) => {
            for (end, at) in ends.into_iter().zip([0, 2]) {
                if end == PUBLIC && payload[at..at + 2] == port.to_be_bytes() {
                    payload[at..at + 2].copy_from_slice(&GONE);
                }
            }
        }
        _ => {}
    }
}

/// A translator with the ports that it gave.
struct Side<T> {
    translator: T,
    ports: HashMap<usize, u16>,
    taken: HashMap<(u8, u16, Ipv4Addr, u16), usize>,
}

impl<T: Translate> Side<T> {
    fn new(translator: T) -> Self {
        Self { translator, ports: HashMap::new(), taken: HashMap::new() }
    }

    /// What leaves, without what may differ.
    fn play(&mut self, event: &Event) -> Vec<(usize, Vec<u8>)> {
        let Flow { number, protocol, inside, outside } = event.flow;
        let port = self.ports.get(&number).copied().unwrap_or(inside.1);
        let mut left = Vec::new();
        for packet in (event.packets)(port) {
            left.extend(self.translator.pass(event.from, &packet));
        }
        let mut left = whole(left);
        if event.from == INSIDE && !self.ports.contains_key(&number) {
            let given = left.iter().find_map(|(side, packet)| {
                let ip = Ipv4::new(&packet[..])?;
                let own = *side == OUTSIDE
                    && ip.protocol() == protocol
                    && ip.src() == PUBLIC
                    && ip.dst() == outside.0;
                let at = ip.header_len() + if protocol == 1 { 4 } else { 0 };
                let is_echo = protocol != 1 || packet.get(at - 4) == Some(&8);
                (own && is_echo).then(|| u16::from_be_bytes([packet[at], packet[at + 1]]))
            });
            if let Some(port) = given {
                self.ports.insert(number, port);
                let taken = self.taken.insert((protocol, port, outside.0, outside.1), number);
                assert_eq!(taken, None, "{} shares port {port}: {:?}", event.what, event.flow);
            }
        }
        let port = self.ports.get(&number).copied().unwrap_or(inside.1);
        left.iter_mut().for_each(|(_, packet)| comparable(packet, port, false));
        left
    }
}

/// What happened to a packet.
fn outcome(left: &[(usize, Vec<u8>)], from: usize) -> &'static str {
    match left {
        [] => "drops",
        [(side, _)] if *side != from => "passes",
        _ => "answers",
    }
}

/// A difference: what it is, and what NAPT and the kernel do.
type Difference<'a> = (&'a Event, [&'static str; 2], String);

/// The first difference of each flow: after it the two know different things.
fn differences(events: &[Event]) -> Vec<Difference<'_>> {
    let (mut ours, mut theirs) = (Side::new(Napt::start()), Side::new(masquerade()));
    let (mut apart, mut found, mut passed) = (HashSet::new(), Vec::new(), 0);
    for event in events {
        if apart.contains(&event.flow.number) {
            continue;
        }
        let [own, kernel] = [ours.play(event), theirs.play(event)];
        passed += usize::from(!own.is_empty() && own == kernel);
        if own != kernel {
            apart.insert(event.flow.number);
            let does = [outcome(&own, event.from), outcome(&kernel, event.from)];
            let does = if does == ["passes"; 2] { ["changes", "changes"] } else { does };
            found.push((event, does, format!("{own:02x?}\n{kernel:02x?}")));
        }
    }
    assert!(passed > 100, "only {passed} of {} packets leave alike", events.len());
    found
}

/// What differs, and why, is on this page.
const PAGE: &str = include_str!("../../../../docs/napt-masquerade.md");

/// A class of differences: what the page calls it, what NAPT and the kernel do, and texts that all are in what a packet is
/// called.
type Class = (&'static str, [&'static str; 2], &'static [&'static str]);

/// The first that fits counts.
const CLASSES: [Class; 9] = [
    ("errors of ICMP with a wrong checksum", ["passes", "drops"], &["with a wrong checksum about"]),
    (
        "packets with a wrong checksum of TCP, UDP or ICMP",
        ["passes", "drops"],
        &["packet with a wrong checksum of"],
    ),
    ("redirects", ["passes", "drops"], &["redirect"]),
    ("errors about answers to pings", ["drops", "passes"], &["from inside about a ping"]),
    (
        "packets from inside to the public port of a flow",
        ["passes", "drops"],
        &["packet from inside to where"],
    ),
    ("packets with a route to record", ["changes", "changes"], &["packet with a route to record"]),
    ("requests for a timestamp", ["drops", "passes"], &["request for a timestamp"]),
    ("packets of ESP", ["drops", "passes"], &["packet of ESP"]),
    ("segments that do not belong into the handshake", ["passes", "drops"], &["TCP from"]),
];

#[test]
fn generated_flows_are_translated_as_by_the_kernel() {
    if !possible() {
        return;
    }
    let events = generated::generated(1500);
    let mut counts = vec![0; CLASSES.len()];
    let mut others = std::collections::BTreeMap::<_, (usize, String)>::new();
    for (event, does, left) in differences(&events) {
        let fits =
            |class: &Class| class.1 == does && class.2.iter().all(|text| event.what.contains(text));
        match CLASSES.iter().position(fits) {
            Some(class) => counts[class] += 1,
            None => {
                let other = others.entry((event.what.clone(), does)).or_insert((0, left));
                other.0 += 1;
            }
        }
    }
    assert!(others.is_empty(), "not explained: {others:#?}");
    let rows: Vec<_> = CLASSES
        .iter()
        .zip(counts)
        .map(|((name, [ours, theirs], _), count)| {
            format!("| {name} | {ours} | {theirs} | {count} |")
        })
        .collect();
    let missing: Vec<_> = rows.iter().filter(|row| !PAGE.contains(*row)).collect();
    assert!(missing.is_empty(), "the page lacks {missing:#?}");
    let verbs = ["drops", "passes", "changes", "answers"].map(|verb| format!(" | {verb} | "));
    let listed = PAGE.lines().filter(|line| verbs.iter().any(|verb| line.contains(verb)));
    assert_eq!(listed.count(), CLASSES.len());
    let all = format!("{} packets of 1500 flows", events.len());
    assert!(PAGE.contains(&all), "{all}");
}

/// Makes the checksums of a packet right.
fn seal(packet: &mut [u8]) {
    let Some(mut ip) = Ipv4::new(packet) else { return };
    ip.set_ttl(64);
    ip.fill_checksum();
    let pseudo = ip.pseudo_header(ip.payload().len() as u16);
    match ip.protocol() {
        6 => drop(Tcp::new(ip.payload_mut()).map(|mut tcp| tcp.fill_checksum(pseudo))),
        _ => drop(Udp::new(ip.payload_mut()).map(|mut udp| udp.fill_checksum(pseudo))),
    }
}

/// The segments and datagrams of a capture; inside is who sends the first of a flow.
fn captured(file: &Path) -> Vec<Event> {
    let mut reader = Reader::in_memory(std::fs::read(file).unwrap()).unwrap();
    let (mut events, mut known) = (Vec::new(), HashMap::new());
    while let Some(record) = reader.next().unwrap() {
        let Some(ip) = record.data.get(14..).filter(|_| record.data[12..14] == [8, 0]) else {
            continue;
        };
        let Some(view) = Ipv4::new_checked(ip).filter(|ip| !ip.is_fragment()) else { continue };
        let (protocol, ends) = (view.protocol(), [view.src(), view.dst()]);
        let is_plain = |of: &Ipv4Addr| {
            !of.is_multicast()
                && !of.is_broadcast()
                && !of.is_loopback()
                && !of.is_unspecified()
                && !of.is_link_local()
        };
        if !matches!(protocol, 6 | 17) || !ends.iter().all(is_plain) || ends[1].octets()[3] == 255 {
            continue;
        }
        let Some(packet) = ip.get(..usize::from(view.total_len())) else { continue };
        let Some([a, b, c, d]) =
            view.payload().first_chunk::<4>().filter(|_| view.payload().len() >= 8)
        else {
            continue;
        };
        let ports = [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])];
        let [src, dst] = [(ends[0], ports[0]), (ends[1], ports[1])];
        let number = known.len();
        let (from, flow) = match known.get(&(protocol, dst, src)) {
            Some(&flow) => (OUTSIDE, flow),
            None => {
                let flow = Flow { number, protocol, inside: src, outside: dst };
                (INSIDE, *known.entry((protocol, src, dst)).or_insert(flow))
            }
        };
        let what = format!("{} {src:?} > {dst:?}", flow.name());
        let (mut packet, at) = (packet.to_vec(), view.header_len());
        seal(&mut packet);
        let packets = Box::new(move |port: u16| {
            let mut packet = packet.clone();
            if from == OUTSIDE {
                packet[16..20].copy_from_slice(&PUBLIC.octets());
                packet[at + 2..at + 4].copy_from_slice(&port.to_be_bytes());
                seal(&mut packet);
            }
            vec![packet]
        });
        events.push(Event { from, what, flow, packets });
    }
    events
}

#[test]
fn captures_are_translated_as_by_the_kernel() {
    let Some(folder) = lab::shared("data/pcap").filter(|_| possible()) else { return };
    for (name, differing) in [("instagram", 3), ("1kxun", 3), ("netflix", 1), ("gnutella", 0)] {
        let events = captured(&folder.join(name).with_extension("pcap"));
        let mut others = Vec::new();
        let mut count = 0;
        for (event, does, left) in differences(&events) {
            // The capture began after the flow, with what is no beginning for the kernel.
            let first = events.iter().find(|first| first.flow.number == event.flow.number);
            let is_first = first.is_some_and(|first| std::ptr::eq(first, event));
            count += 1;
            if !is_first || event.flow.protocol != 6 || does != ["passes", "drops"] {
                others.push((&event.what, does, left));
            }
        }
        assert!(others.is_empty(), "{name}: {others:#?}");
        assert_eq!(count, differing, "{name}");
        let row = format!("| {name}.pcap | {} | {differing} |", events.len());
        assert!(PAGE.contains(&row), "it is not on the page: {row}");
    }
}
