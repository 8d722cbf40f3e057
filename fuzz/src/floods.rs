//! Clients, servers and floods, in words.

use net::notation::parse;
use net::wire::{Ipv4, Tcp};

use crate::fed::{ETHERNET, Fed};

const PROXY: &str = "
    in0 :: Idle -> Strip(14) -> CheckIPHeader -> sound :: IPClassifier(tcp, -) -> CheckTCPHeader -> [0] p :: SYNProxy(CAPACITY 4);
    sound[1] -> [0] p;
    in1 :: Idle -> Strip(14) -> CheckIPHeader -> answers :: IPClassifier(tcp, -) -> CheckTCPHeader -> [1] p;
    answers[1] -> [1] p;
    in2 :: Idle -> Strip(14) -> CheckIPHeader -> CheckTCPHeader -> [2] p;
    p[0] -> out0 :: Queue -> Idle; p[1] -> out1 :: Queue -> Idle;
    p[2] -> out2 :: Queue -> Idle; p[3] -> out3 :: Queue -> Idle;";
/// Connections that are remembered.
const CAPACITY: u64 = 4;

const DETECTOR: &str =
    "in :: Idle -> d :: FloodDetector(SYN_RATE 2, UDP_RATE 3, ICMP_RATE 2, RATE 4, SOURCES 1,
    DESTINATIONS 4, HOLD 1) -> out :: Queue -> Idle;";
/// Floods at one time: of each kind to each destination, and the one to all.
const FLOODS: usize = 4 * 4 + 1;
/// Events that are kept.
const EVENTS: usize = 100;
/// Times that a packet is repeated at the most.
const REPEATED: usize = 50;

const MILLISECOND: u64 = 1_000_000;

/// Whether the checksum of a segment is right, if it is one.
fn is_sound(packet: &[u8]) -> bool {
    let Some(ip) = Ipv4::new_checked(packet).filter(|ip| ip.protocol() == 6) else { return true };
    let payload = ip.payload();
    let whole = usize::from(ip.total_len()) <= packet.len() && !ip.is_fragment();
    !whole
        || Tcp::new(payload)
            .is_none_or(|tcp| tcp.checksum_ok(ip.pseudo_header(payload.len() as u16)))
}

/// Packets of clients and servers: memory is bounded, and checksums stay right.
///
/// A line is a number of milliseconds that pass, or the number of an input and a packet; `COOKIE` stands for what
/// acknowledges the last SYN-ACK.
pub fn syn_proxy(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (mut chain, mut cookie) = (Fed::start(PROXY), 0u32);
    for line in text.lines() {
        if let Ok(time) = line.parse::<u32>() {
            chain.pass_time(u64::from(time) * MILLISECOND);
        } else if let Some((side @ ("0" | "1" | "2"), packet)) = line.split_once(' ')
            && let Ok(frame) = parse(&packet.replace("COOKIE", &cookie.to_string()))
        {
            chain.feed(&format!("in{side}"), &frame);
        }
        for out in ["out0", "out1", "out2", "out3"] {
            for packet in chain.left(out) {
                assert!(is_sound(&packet), "{}", net::notation::describe(&packet, false));
                let segment = Ipv4::new(&packet[..])
                    .and_then(|ip| Tcp::new(ip.payload()).map(|tcp| tcp.seq()));
                if let Some(sequence) = segment.filter(|_| out == "out2") {
                    cookie = sequence.wrapping_add(1);
                }
            }
        }
        assert!(chain.count("p.count") <= CAPACITY);
    }
    assert!(chain.read("p.table").lines().count() as u64 <= CAPACITY + 1);
}

/// Packets in which floods are looked for: all pass as they came, and memory is bounded.
///
/// A line is a number of milliseconds that pass, or how often a packet comes, and the packet.
pub fn floods(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut chain = Fed::start(DETECTOR);
    for line in text.lines() {
        if let Ok(time) = line.parse::<u32>() {
            chain.pass_time(u64::from(time) * MILLISECOND);
            continue;
        }
        let Some((times, packet)) = line.split_once(' ') else { continue };
        let (Ok(times), Ok(frame)) = (times.parse::<usize>(), parse(packet)) else { continue };
        for number in 0..times.min(REPEATED) {
            let mut frame = frame.clone();
            // Each of another source.
            if let Some(byte) = frame.get_mut(ETHERNET + 15) {
                *byte = byte.wrapping_add(number as u8);
            }
            chain.feed("in", &frame);
            assert_eq!(chain.left("out"), [frame]);
        }
        assert!(chain.read("d.floods").lines().count() <= FLOODS);
        assert!(chain.read("d.events").lines().count() <= EVENTS);
    }
}
