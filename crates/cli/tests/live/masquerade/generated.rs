//! Flows as a generator plays them, with packets about them that are odd, or come from others.

use std::collections::HashSet;
use std::net::Ipv4Addr;

use net::notation::parse;
use net::wire::Ipv4;

use super::{Event, Flow, INSIDE, OUTSIDE, PUBLIC};

/// Another host outside, and a router on the path.
const OTHER: &str = "203.0.113.66";
const ROUTER: &str = "203.0.113.7";

/// A packet in words, without a link layer.
pub(super) fn packet(words: &str) -> Vec<u8> {
    parse(&format!("bare {words}")).unwrap_or_else(|why| panic!("{why}: {words}"))
}

/// Cuts a packet of IPv4 in two behind so many bytes.
fn fragments(packet: &[u8], at: usize) -> [Vec<u8>; 2] {
    let (header, payload) = packet.split_at(20);
    [(0, &payload[..at], 0x2000), (at, &payload[at..], 0)].map(|(offset, part, more)| {
        let mut fragment = [header, part].concat();
        let length = fragment.len() as u16;
        let mut ip = Ipv4::new(&mut fragment[..]).unwrap();
        ip.set_total_len(length);
        ip.set_fragment_word(more | (offset / 8) as u16);
        ip.fill_checksum();
        fragment
    })
}

/// What a flow's packets are in words: by the direction, the port outside, and what follows.
fn words(flow: Flow, from: usize, port: u16, rest: &str) -> String {
    let Flow { protocol, inside: (host, own), outside: (server, far), .. } = flow;
    match (protocol, from) {
        (1, INSIDE) => {
            format!("icmp {host} > {server} type echo rest {} {rest}", u32::from(own) << 16 | 5)
        }
        (1, _) => format!(
            "icmp {server} > {PUBLIC} type echo-reply rest {} {rest}",
            u32::from(port) << 16 | 5
        ),
        (6, INSIDE) => format!("tcp {host}:{own} > {server}:{far} {rest}"),
        (6, _) => format!("tcp {server}:{far} > {PUBLIC}:{port} {rest}"),
        (_, INSIDE) => format!("udp {host}:{own} > {server}:{far} {rest}"),
        _ => format!("udp {server}:{far} > {PUBLIC}:{port} {rest}"),
    }
}

/// What a packet of the flow looks like outside, for errors that quote it.
fn quoted(flow: Flow, port: u16) -> String {
    let Flow { protocol, outside: (server, far), .. } = flow;
    match protocol {
        1 => format!("icmp {PUBLIC} > {server} type echo rest {}", u32::from(port) << 16 | 5),
        6 => format!("tcp {PUBLIC}:{port} > {server}:{far} flags A seq 7 ack 9"),
        _ => format!("udp {PUBLIC}:{port} > {server}:{far} payload 'asked'"),
    }
}

/// What a packet from outside looks like inside.
fn received(flow: Flow) -> String {
    let Flow { protocol, inside: (host, own), outside: (server, far), .. } = flow;
    match protocol {
        1 => format!("icmp {server} > {host} type echo-reply rest {}", u32::from(own) << 16 | 5),
        6 => format!("tcp {server}:{far} > {host}:{own} flags A seq 9 ack 7"),
        _ => format!("udp {server}:{far} > {host}:{own} payload 'told'"),
    }
}

/// Packets by the port that the flow has outside.
type Made = Box<dyn Fn(u16) -> Vec<Vec<u8>>>;

fn one(make: impl Fn(u16) -> String + 'static) -> Made {
    Box::new(move |port| vec![packet(&make(port))])
}

/// Errors of ICMP, as type, code and the word behind them.
const ERRORS: [(&str, &str); 7] = [
    ("port unreachable", "type 3 code 3"),
    ("host unreachable", "type 3 code 1"),
    ("fragmentation needed", "type 3 code 4 rest 1280"),
    ("source quench", "type 4 code 0"),
    ("redirect", "type 5 code 1 rest 3405803783"),
    ("time exceeded", "type 11 code 0"),
    ("parameter problem", "type 12 code 0 rest 335544320"),
];

/// A packet that is odd, or comes from somebody else.
fn odd(flow: Flow, random: &mut fastrand::Rng) -> (usize, String, Made) {
    let Flow { protocol, inside: (host, own), outside: (server, far), .. } = flow;
    let name = flow.name();
    let (error, kind) = *random.choice(&ERRORS).unwrap();
    let usual = if protocol == 6 {
        "flags PA seq 7 ack 9 payload 'oddly long payload'"
    } else {
        "payload 'oddly long payload'"
    };
    let both = |what: &str, rest: &'static str, random: &mut fastrand::Rng| {
        let from = random.usize(0..2);
        let who = ["inside", "outside"][from];
        (
            from,
            format!("{what} of {name} from {who}"),
            one(move |port| words(flow, from, port, &format!("{usual} {rest}"))),
        )
    };
    match random.u8(..24) {
        0..=2 => {
            let from = if random.bool() { server.to_string() } else { ROUTER.into() };
            (
                OUTSIDE,
                format!("{error} about {name}"),
                one(move |port| {
                    format!("icmp {from} > {PUBLIC} {kind} payload ({})", quoted(flow, port))
                }),
            )
        }
        3 => (
            OUTSIDE,
            format!("{error} about {name} that quotes 8 bytes"),
            one(move |port| {
                format!("icmp {ROUTER} > {PUBLIC} {kind} payload ({} cut 28)", quoted(flow, port))
            }),
        ),
        4 => (
            OUTSIDE,
            format!("{error} with a wrong checksum about {name}"),
            one(move |port| {
                format!("icmp {ROUTER} > {PUBLIC} {kind} payload ({}) badl4sum", quoted(flow, port))
            }),
        ),
        5 => (
            OUTSIDE,
            format!("{error} about {name} that is not known"),
            one(move |_| {
                format!("icmp {ROUTER} > {PUBLIC} {kind} payload ({})", quoted(flow, 60_000))
            }),
        ),
        6 => (
            INSIDE,
            format!("{error} from inside about {name}"),
            one(move |_| format!("icmp {host} > {server} {kind} payload ({})", received(flow))),
        ),
        7 => (
            OUTSIDE,
            format!("packet of another host to {name}"),
            one(move |port| {
                words(Flow { outside: (OTHER.parse().unwrap(), far), ..flow }, OUTSIDE, port, usual)
            }),
        ),
        8 => (
            OUTSIDE,
            format!("packet of another port to {name}"),
            one(move |port| {
                words(Flow { outside: (server, far + 1), ..flow }, OUTSIDE, port, usual)
            }),
        ),
        9 => (
            OUTSIDE,
            format!("packet to a port that nobody has, beside {name}"),
            one(move |_| words(flow, OUTSIDE, 60_001, usual)),
        ),
        10 | 11 => both("packet with a wrong checksum", "badl4sum", random),
        12 => both("packet with a wrong checksum of IP", "badsum", random),
        13 => both("packet with options that mean nothing", "opt 01010101", random),
        14 => both("packet with a route to record", "opt 0707040000000000", random),
        15 => both("packet with other bits of IP", "tos 187 id 777 df", random),
        16 | 17 => {
            let (from, is_reversed) = (random.usize(0..2), random.bool());
            let who = ["inside", "outside"][from];
            let order = if is_reversed { "reversed fragments" } else { "fragments" };
            (
                from,
                format!("{order} of {name} from {who}"),
                Box::new(move |port| {
                    let [first, second] = fragments(&packet(&words(flow, from, port, usual)), 24);
                    if is_reversed { vec![second, first] } else { vec![first, second] }
                }),
            )
        }
        18 => (
            INSIDE,
            "packet of ESP".into(),
            one(move |_| format!("ip {host} > {server} proto 50 payload 00000101")),
        ),
        19 => (
            INSIDE,
            "request for a timestamp".into(),
            one(move |_| {
                format!(
                    "icmp {host} > {server} type 13 rest {} payload 000000010000000000000000",
                    u32::from(own) << 16
                )
            }),
        ),
        20 => (
            OUTSIDE,
            "ping from outside".into(),
            one(move |_| format!("icmp {server} > {PUBLIC} type echo rest 99")),
        ),
        21 => (
            INSIDE,
            format!("packet from inside to where {name} is outside"),
            one(move |port| {
                let beside = Ipv4Addr::from_bits(host.to_bits() ^ 0x80);
                let hairpin = Flow { inside: (beside, own), outside: (PUBLIC, port), ..flow };
                words(hairpin, INSIDE, port, usual)
            }),
        ),
        22 => (
            OUTSIDE,
            format!("packet to {name} from the public address"),
            one(move |port| words(Flow { outside: (PUBLIC, far), ..flow }, OUTSIDE, port, usual)),
        ),
        _ if protocol == 6 => both("reset", "flags R seq 7", random),
        _ if protocol == 17 => both("packet without a checksum", "nosum", random),
        _ => (
            INSIDE,
            "ping again".into(),
            one(move |port| words(flow, INSIDE, port, "payload 'again'")),
        ),
    }
}

/// The usual packets of a flow.
fn usual(flow: Flow, random: &mut fastrand::Rng) -> Vec<(usize, String, Made)> {
    let name = flow.name();
    let step = |from: usize, what: &str, rest: &'static str| -> (usize, String, Made) {
        let who = ["inside", "outside"][from];
        (
            from,
            format!("{what} of {name} from {who}"),
            one(move |port| words(flow, from, port, rest)),
        )
    };
    if flow.protocol != 6 {
        let (asked, told) = ("payload 'asked'", "payload 'told, and more'");
        let count = random.usize(1..4);
        return (0..count)
            .flat_map(|_| [step(INSIDE, "request", asked), step(OUTSIDE, "answer", told)])
            .collect();
    }
    let mut steps = vec![
        step(INSIDE, "SYN", "flags S seq 1 tcpopt 020405b4"),
        step(OUTSIDE, "SYN-ACK", "flags SA seq 1 ack 2"),
        step(INSIDE, "ACK", "flags A seq 2 ack 2"),
        step(INSIDE, "data", "flags PA seq 2 ack 2 payload 'asked'"),
        step(OUTSIDE, "data", "flags PA seq 2 ack 7 payload 'told'"),
        step(OUTSIDE, "FIN", "flags FA seq 6 ack 7"),
        step(INSIDE, "FIN", "flags FA seq 7 ack 7"),
        step(OUTSIDE, "ACK", "flags A seq 7 ack 8"),
    ];
    match random.u8(..12) {
        // It began before.
        0 => drop(steps.drain(..3)),
        1 => drop(steps.drain(..2)),
        2 => {
            steps[1] = step(OUTSIDE, "SYN that crosses", "flags S seq 1");
            steps[2] = step(INSIDE, "SYN-ACK", "flags SA seq 1 ack 2");
            steps.insert(3, step(OUTSIDE, "SYN-ACK", "flags SA seq 1 ack 2"));
        }
        _ => {}
    }
    steps
}

/// Flows with an odd packet each.
pub(super) fn generated(count: usize) -> Vec<Event> {
    let (mut known, mut events, mut number) = (HashSet::new(), Vec::new(), 0);
    let mut random = fastrand::Rng::with_seed(24);
    while number < count {
        let protocol = *random.choice(&[1, 6, 6, 17, 17]).unwrap();
        let port = 2000 + random.u16(..120);
        // So few that several want the same port.
        let inside = (Ipv4Addr::new(10, 1, 0, random.u8(1..5)), port);
        let outside =
            (Ipv4Addr::new(192, 0, 2, random.u8(1..5)), if protocol == 1 { 0 } else { 80 });
        if !known.insert((protocol, inside, outside)) {
            continue;
        }
        let flow = Flow { number, protocol, inside, outside };
        let mut steps = usual(flow, &mut random);
        let at = random.usize(1..=steps.len());
        steps.insert(at, odd(flow, &mut random));
        let of = |(place, (from, what, packets)): (usize, (usize, String, Made))| {
            let what = if place > at { format!("{what}, later") } else { what };
            Event { from, what, flow, packets }
        };
        events.extend(steps.into_iter().enumerate().map(of));
        number += 1;
    }
    events
}
