//! Lists of hundreds of rules that look at more than a key has room for.

use std::path::Path as Folder;

use fastrand::Rng;
use ir::program::Step;

use crate::outcome::{drain, feed, tallies};
use crate::support::{MODES, start};
use crate::tables::programs;

const OUTPUTS: usize = 3;
const PORTS: [u16; 6] = [22, 53, 80, 443, 1023, 8080];

fn some(random: &mut Rng, texts: &[&str]) -> String {
    (*random.choice(texts).expect("some")).to_string()
}

/// A rule as people write them: addresses, a protocol with what belongs to it, and now and then
/// something of the IP header; `more` than packets can be distinguished for.
fn rule(random: &mut Rng, more: bool) -> String {
    let mut parts = Vec::new();
    for (side, network) in [("src", 10), ("dst", 20)] {
        let (net, host) = (random.u8(..12), random.u8(1..4));
        match random.u8(..4) {
            0 => parts.push(format!("{side} host {network}.0.{net}.{host}")),
            1 | 2 => parts.push(format!("{side} net {network}.0.{net}.0/24")),
            _ if side == "dst" && parts.is_empty() => return rule(random, more),
            _ => {}
        }
    }
    let port = |random: &mut Rng| PORTS[random.usize(..PORTS.len())];
    match random.u8(..8) {
        0..4 => {
            parts.push(format!("tcp dst port {}", port(random)));
            if random.bool() {
                let flags = ["tcp opt syn", "not tcp opt ack", "tcp opt rst", "tcp opt fin"];
                parts.push(some(random, &flags));
            }
        }
        4..6 => parts.push(format!("udp src port > {}", port(random))),
        6 => parts.push(some(random, &["icmp type echo", "icmp type 3", "icmp[1] 4"])),
        _ => {}
    }
    if random.u8(..3) == 0 {
        let header = ["ip ttl < 3", "ip tos 16", "ip dscp 46", "ip frag", "ip len > 100"];
        parts.push(some(random, &header));
    }
    if more && random.u8(..4) == 0 {
        parts.push(some(random, &["tcp win > 100", "ip id > 9", "ip[1] & 3 1", "tcp opt psh"]));
    }
    let action = some(random, &["allow", "deny", "1", "2"]);
    format!("{action} {}", parts.join(" && "))
}

/// A packet that such rules tell apart.
fn packet(random: &mut Rng) -> Vec<u8> {
    let mut side = |network| format!("{network}.0.{}.{}", random.u8(..13), random.u8(1..5));
    let (from, to) = (side(10), side(20));
    let mut port = || match random.u8(..7) {
        6 => 40_000,
        n => PORTS[usize::from(n)],
    };
    let (source, destination) = (port(), port());
    let mut words = match random.u8(..8) {
        0..4 => {
            let flags = some(random, &["S", "SA", "A", "RA", "FA"]);
            format!("tcp {from}:{source} > {to}:{destination} flags {flags}")
        }
        4..6 => format!("udp {from}:{source} > {to}:{destination}"),
        6 => format!("icmp {from} > {to} type {} code {}", random.u8(..9), random.u8(3..6)),
        _ => {
            // Also such of which the transport protocol's header is not all there.
            let protocol = some(random, &["1", "6", "17", "47"]);
            let bytes = some(random, &["", "payload 00", "payload 00350050", "payload 0303005000"]);
            format!("ip {from} > {to} proto {protocol} {bytes}")
        }
    };
    words += &some(random, &["", " ttl 1", " ttl 3"]);
    words += &some(random, &["", "", " tos 16", " tos 184"]);
    words += &some(random, &["", "", "", " mf", " frag 64", " size 180"]);
    words += &some(random, &["", "", "", " opt 01010101"]);
    net::notation::parse(&format!("bare {words}")).expect("the words are right")
}

fn chain(random: &mut Rng, more: bool) -> String {
    let rules: Vec<String> = (0..400).map(|_| rule(random, more)).collect();
    let outputs = (0..OUTPUTS).map(|i| {
        format!(
            "fw[{i}] -> c{i} :: Counter -> ttl{i} :: DecIPTTL -> out{i} :: Queue(10000) -> Idle;
             ttl{i}[1] -> Discard;\n"
        )
    });
    let outputs: String = outputs.collect();
    format!("in0 :: Idle -> CheckIPHeader -> fw :: IPFilter({});\n{outputs}", rules.join(",\n"))
}

#[test]
fn rules_that_look_at_many_things_are_the_same_in_every_mode() {
    compare(false);
}

#[test]
fn what_rules_that_look_at_too_many_things_take_is_left_to_the_element() {
    compare(true);
}

/// Takes packets through a list in every mode; some are left to the element's native code if rules
/// look at `too_much`.
fn compare(too_much: bool) {
    let random = &mut Rng::with_seed(5);
    let text = chain(random, too_much);
    let mut runs = MODES.map(|mode| {
        start("lists", &text, Folder::new("."), mode)
            .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"))
    });
    // It is looked up in several lists.
    let programs = programs(&mut runs[0]);
    let steps = || programs.iter().flat_map(|program| &program.steps);
    let lists = steps().filter(|step| matches!(step, Step::Classify { .. })).count();
    assert!((2..100).contains(&lists), "{lists} lists");
    let is_too_many = |barrier| {
        use ir::program::Barrier::{TooManyAlternatives, TooManyKeys};
        matches!(barrier, TooManyAlternatives | TooManyKeys)
    };
    let too_many =
        |step: &Step| matches!(step, Step::Exit(exit) if exit.barrier.is_some_and(is_too_many));
    assert_eq!(steps().any(too_many), too_much);
    let mut left = [0; OUTPUTS];
    for _ in 0..60 {
        let frames: Vec<Vec<u8>> = (0..100).map(|_| packet(random)).collect();
        let seen = runs.each_mut().map(|run| {
            feed(run, "in0", &frames);
            let out = [0, 1, 2].map(|i| drain(run, &format!("out{i}")));
            (out, tallies(&mut run.router))
        });
        for (mode, seen_here) in MODES.iter().zip(&seen) {
            assert_eq!(*seen_here, seen[0], "{mode:?}");
        }
        left.iter_mut().zip(&seen[0].0).for_each(|(left, seen)| *left += seen.len());
    }
    assert!(left.iter().all(|&left| left > 200), "{left:?} packets left");
}

/// Rules of a list behind which flows are translated: what a flow's packets have in common decides with what differs.
fn rule_for_flows(random: &mut Rng) -> String {
    let net = format!("src net 10.0.{}.0/24", random.u8(..12));
    let port = format!("dst port {}", PORTS[random.usize(..PORTS.len())]);
    let more = ["", "", " && ip len > 100", " && tcp opt syn", " && ip ttl < 3", " && ip frag"];
    let (action, more) = (some(random, &["allow", "deny", "1"]), some(random, &more));
    format!("{action} {net} && {port}{more}")
}

/// Packets of a flow that rules tell apart take the same paths in every execution mode, however often the flow
/// came before.
#[test]
fn packets_of_a_flow_that_rules_tell_apart_are_the_same_in_every_mode() {
    let random = &mut Rng::with_seed(6);
    let rules: Vec<String> = (0..300).map(|_| rule_for_flows(random)).collect();
    let text = format!(
        "in0 :: Idle -> CheckIPHeader -> fw :: IPFilter({});
         fw[0] -> ttl :: DecIPTTL -> rw :: IPRewriter(pattern 30.0.0.1 1024-65535# - - 0 1)
             -> out0 :: Queue(10000) -> Idle;
         fw[1] -> out1 :: Queue(10000) -> Idle; ttl[1] -> Discard; rw[1] -> Discard;",
        rules.join(",\n")
    );
    let mut runs = MODES.map(|mode| {
        start("flows", &text, Folder::new("."), mode)
            .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"))
    });
    let packet = |random: &mut Rng| {
        let (net, port) = (random.u8(..13), PORTS[random.usize(..PORTS.len())]);
        let flags = some(random, &["S", "A", "A", "PA"]);
        let more =
            some(random, &["", " ttl 2", " mf", " frag 64"]) + &some(random, &["", " size 180"]);
        let words = format!("bare tcp 10.0.{net}.1:9 > 20.0.0.1:{port} flags {flags}{more}");
        net::notation::parse(&words).expect("the words are right")
    };
    let mut left = [0; 2];
    for _ in 0..40 {
        let frames: Vec<Vec<u8>> = (0..100).map(|_| packet(random)).collect();
        let seen = runs.each_mut().map(|run| {
            feed(run, "in0", &frames);
            let out = [0, 1].map(|i| drain(run, &format!("out{i}")));
            (out, tallies(&mut run.router))
        });
        for (mode, seen_here) in MODES.iter().zip(&seen) {
            assert_eq!(*seen_here, seen[0], "{mode:?}");
        }
        left.iter_mut().zip(&seen[0].0).for_each(|(left, seen)| *left += seen.len());
    }
    assert!(left.iter().all(|&left| left > 200), "{left:?} packets left");
}
