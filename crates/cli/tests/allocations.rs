//! In steady state, moving packets allocates nothing.
//!
//! Alone in its binary, because it counts every allocation of the process's allocator.

#[path = "chains/support.rs"]
#[allow(dead_code, unreachable_pub, clippy::print_stderr)]
mod support;

use engine::session::Path;
use ir::Port;
use net::notation;

use support::Started;

/// Chains whose steady state must not allocate; `input` is where packets are pushed in.
const CHAINS: &[(&str, &str)] = &[
    ("bare forwarding", "Idle -> input :: Null -> Discard;"),
    (
        "router",
        "Idle -> input :: Strip(14) -> CheckIPHeader(INTERFACES 172.16.1.1/24) -> GetIPAddress(16)
           -> rt :: RadixIPLookup(20.0.0.0/8 0, 0.0.0.0/0 1);
         rt[1] -> Discard;
         rt[0] -> DropBroadcasts -> dt :: DecIPTTL -> FixIPSrc(172.16.1.1) -> fr :: IPFragmenter(1500)
           -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;
         dt[1] -> ICMPError(172.16.1.1, timeexceeded) -> Discard;
         fr[1] -> ICMPError(172.16.1.1, unreachable, needfrag) -> Discard;",
    ),
    (
        "access list and NAPT",
        "Idle -> input :: Strip(14) -> CheckIPHeader
           -> IPFilter(allow dst port 53, allow src net 10.0.0.0/8 && tcp, deny all)
           -> rw :: IPRewriter(pattern 30.0.0.1 1024-65535 - - 0 1)
           -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;
         rw[1] -> Discard;",
    ),
    (
        "long access list",
        "Idle -> input :: Strip(14) -> CheckIPHeader
           -> f :: IPFilter(deny src 10.0.0.3, deny src 10.0.0.5, allow src 10.0.0.7 && udp, deny dst 20.0.0.9,
             allow dst 20.0.0.11 and tcp dst port 80, deny dst 20.0.0.13 and src port 2013, allow src port 2015,
             deny dst port 81 and src 10.0.0.0/28, allow dst port 82 and src 10.0.0.16/28, allow dst port 53,
             deny src 10.0.0.21 and dst port 80, allow src 10.0.0.23, deny dst 20.0.0.25, allow dst 20.0.0.24/29)
           -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;",
    ),
    ("queue and copies", "Idle -> input :: Tee -> q :: Queue -> Unqueue -> Discard; input[1] -> Discard;"),
];

/// A burst of different flows, some expired, some refused.
fn burst() -> Vec<Vec<u8>> {
    (0..32u32)
        .map(|i| {
            let ttl = if i == 5 { 1 } else { 64 };
            let (kind, port) = if i % 2 == 0 { ("udp", 53) } else { ("tcp", 80 + i % 3) };
            let text =
                format!("{kind} 10.0.0.{i}:{} > 20.0.0.{i}:{port} ttl {ttl} size 60", 2000 + i);
            notation::parse(&text).expect("the words are right")
        })
        .collect()
}

fn push(started: &mut Started, to: Port, frames: &[Vec<u8>]) {
    let core = started.router.core();
    let mut batch = core.batch();
    for frame in frames {
        batch.push(core.pool.packet(frame));
    }
    started.router.push(to, batch);
    started.router.round();
}

#[test]
fn steady_state_allocates_nothing() {
    let frames = burst();
    for ((name, text), path) in
        CHAINS.iter().flat_map(|chain| [Path::Native, Path::Synthesised].map(|path| (chain, path)))
    {
        let started = support::start(name, text, std::path::Path::new("."), path);
        let mut started = started.unwrap_or_else(|(d, _)| panic!("{name}: {d:?}"));
        let node = started.chain.graph.find("input").expect("input is declared");
        let to = Port { node, port: 0 };
        // A rule that is inserted later is looked up beside the others.
        for change in [None, Some("1 deny src 10.0.0.1")] {
            if let Some(rule) = change {
                match started.router.has_handler("f.rule_insert", true) {
                    true => started.router.write_handler("f.rule_insert", rule).expect("a rule"),
                    false => continue,
                }
            }
            for _ in 0..100 {
                push(&mut started, to, &frames);
            }
            let info = allocation_counter::measure(|| {
                for _ in 0..100 {
                    push(&mut started, to, &frames);
                }
            });
            assert_eq!(info.count_total, 0, "{name}, {path:?}: allocations in 100 bursts");
        }
    }
}
