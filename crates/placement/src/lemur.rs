//! Lemur's published input (§2.6.1): the chains of table 2.2 with the cycles of its profiles, behind one switch.
//!
//! Where the text leaves something open, as to where the branches of chain 4 join again, what is here gives the numbers of
//! functions and the optima that follow from the published ones.

use crate::problem::{Chain, Edge, Function, Host, Kind, Problem, Replication, Slo};

/// A Gb/s.
const GBPS: f64 = 1e9;

/// A packet of 1,500 bytes.
const PACKET: f64 = 12_000.0;

/// A core's cycles in a second.
const HERTZ: f64 = 1.7e9;

/// A function of table 2.3: cycles on a core, what else can run it, and whether several cores can.
///
/// # Panics
/// There are 13.
pub fn function(class: &str, name: String) -> Function {
    let (core_cycles, on, replicates): (f64, &[Kind], bool) = match class {
        "BPF" => (976.0, &[Kind::Switch, Kind::Core], true),
        "ACL" => (985.0, &[Kind::Switch, Kind::Core], true),
        "Limiter" => (20.0, &[Kind::Core], false),
        "UrlFilter" => (6_994.0, &[Kind::Core], true),
        "Tunnel" => (289.0, &[Kind::Switch, Kind::Core], true),
        "Detunnel" => (230.0, &[Kind::Switch, Kind::Core], true),
        "Encrypt" => (9_123.0, &[Kind::Core], true),
        "LB" => (564.0, &[Kind::Switch, Kind::Core], true),
        "NAT" => (519.0, &[Kind::Switch, Kind::Core], false),
        "Dedup" => (33_186.0, &[Kind::Core], true),
        "Monitor" => (310.0, &[Kind::Core], true),
        "IPv4Fwd" => (0.0, &[Kind::Switch], true),
        "FastEncrypt" => (6_820.0, &[Kind::Card, Kind::Core], true),
        _ => panic!("no function {class}"),
    };
    Function {
        name,
        runs_on: on.to_vec(),
        core_cycles,
        // The card is "more than 10 times faster" (§2.6.3).
        card_cycles: core_cycles / 10.0,
        replicates,
        entries: 0,
        flows: 0,
        waits: 0.0,
    }
}

/// A chain of table 2.2, whose least rate is δ times what its slowest function does on one core.
///
/// # Panics
/// There are chains 1 to 5.
pub fn chain(number: usize, delta: f64) -> Chain {
    let (classes, branches): (&[&str], Vec<(usize, usize, f64)>) = match number {
        1 => (
            &["BPF", "ACL", "Limiter", "BPF", "UrlFilter", "Detunnel", "Encrypt", "IPv4Fwd"],
            vec![(0, 1, 0.5), (0, 5, 0.5), (1, 2, 1.0), (2, 3, 1.0), (3, 4, 0.5), (3, 5, 0.5)]
                .into_iter()
                .chain([(4, 5, 1.0), (5, 6, 1.0), (6, 7, 1.0)])
                .collect(),
        ),
        2 => (
            &["Encrypt", "LB", "NAT", "NAT", "NAT", "IPv4Fwd"],
            [(0, 1, 1.0)]
                .into_iter()
                .chain((2..5).flat_map(|nat| [(1, nat, 1.0 / 3.0), (nat, 5, 1.0)]))
                .collect(),
        ),
        3 => (
            &["Dedup", "ACL", "Limiter", "LB", "IPv4Fwd"],
            (0..4).map(|at| (at, at + 1, 1.0)).collect(),
        ),
        4 => (
            &[
                "Dedup", "ACL", "Monitor", "Tunnel", "BPF", "LB", "Limiter", "ACL", "LB",
                "Limiter", "ACL", "LB", "Limiter", "ACL", "IPv4Fwd",
            ],
            (0..4)
                .map(|at| (at, at + 1, 1.0))
                .chain([5, 8, 11].into_iter().flat_map(|at| {
                    [
                        (4, at, 1.0 / 3.0),
                        (at, at + 1, 1.0),
                        (at + 1, at + 2, 1.0),
                        (at + 2, 14, 1.0),
                    ]
                }))
                .collect(),
        ),
        5 => (
            &["ACL", "UrlFilter", "FastEncrypt", "IPv4Fwd"],
            (0..3).map(|at| (at, at + 1, 1.0)).collect(),
        ),
        _ => panic!("no chain {number}"),
    };
    let functions: Vec<Function> = classes
        .iter()
        .enumerate()
        .map(|(at, class)| function(class, format!("{class}{at}")))
        .collect();
    let slowest = functions.iter().map(|of| of.core_cycles).fold(0.0, f64::max);
    Chain {
        name: format!("chain {number}"),
        edges: branches.into_iter().map(|(from, to, share)| Edge { from, to, share }).collect(),
        // δ times what the slowest function does on one core.
        slo: Slo {
            min: delta * HERTZ * PACKET / slowest,
            max: 100.0 * GBPS,
            delay: None,
            price: 1.0,
        },
        functions,
        wishes: Vec::new(),
    }
}

/// Some chains behind a server of 16 cores, 2 of which take packets apart, with a link of 40 Gb/s; by Lemur's rules.
pub fn problem(chains: &[usize], delta: f64) -> Problem {
    Problem {
        chains: chains.iter().map(|number| chain(*number, delta)).collect(),
        hosts: vec![host("s1", 14)],
        packet_bits: PACKET,
        tag_bits: 0.0,
        replication: Replication::Lemur,
        headroom: 0.0,
    }
}

/// A server without a card.
pub fn host(name: &str, cores: usize) -> Host {
    Host {
        name: name.into(),
        cores,
        hertz: HERTZ,
        link_rate: 40.0 * GBPS,
        link_delay: 0.0,
        card: None,
    }
}
