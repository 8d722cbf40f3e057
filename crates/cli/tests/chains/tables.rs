//! Tables that lead to more places than make paths of their own.

use std::path::Path as Folder;

use compiler::Synthesizer;
use dataplane::latency::Of;
use engine::session::Path;
use ir::Model;
use ir::program::{Program, Term};

use crate::outcome::{drain, feed, tallies};
use crate::support::{MODES, Started, start};

const OUTPUTS: usize = 4;

/// Routes to so many networks over so many gateways, some networks inside of others.
fn routes(networks: usize, gateways: usize) -> String {
    let route = |i: usize| {
        let (high, low) = (i / 200, i % 200);
        let length = [24, 28, 16, 32][i % 4];
        let gateway = i * 7919 % gateways;
        let port = (i * 31 + gateway) % OUTPUTS;
        match gateway {
            0 => format!("20.{high}.{low}.0/{length} {port}"),
            _ => format!(
                "20.{high}.{low}.0/{length} 10.{}.{}.1 {port}",
                gateway / 250,
                gateway % 250
            ),
        }
    };
    (0..networks).map(route).collect::<Vec<_>>().join(", ")
}

/// A router that writes the gateway's address into the packet, and then one that routes by it.
fn chain(networks: usize, gateways: usize) -> String {
    let outputs = (0..OUTPUTS).map(|i| {
        format!(
            "rt[{i}] -> c{i} :: Counter -> StoreIPAddress(16) -> GetIPAddress(16) -> [0] next;
             next[{i}] -> ttl{i} :: DecIPTTL -> out{i} :: Queue(10000) -> Idle; ttl{i}[1] -> Discard;\n"
        )
    });
    let hops: Vec<String> = (1..gateways)
        .map(|i| {
            format!("10.{}.{}.0/24 9.{}.{}.9 {}", i / 250, i % 250, i % 256, i / 256, i % OUTPUTS)
        })
        .collect();
    format!(
        "in0 :: Idle -> CheckIPHeader -> GetIPAddress(16) -> rt :: RadixIPLookup({});
         next :: RadixIPLookup({}, 20.0.0.0/8 2);\n{}",
        routes(networks, gateways),
        hops.join(", "),
        outputs.collect::<String>()
    )
}

/// What the elements of a chain mean.
pub fn models(started: &mut Started) -> Vec<Model> {
    let Started { chain, router, .. } = started;
    let model = |node: &ir::Node| router.element(&node.name).expect("an element").model();
    chain.graph.nodes.iter().map(model).collect()
}

pub fn programs(started: &mut Started) -> Vec<Program> {
    let models = models(started);
    Synthesizer::new(started.chain.graph.clone(), models).synthesize().programs
}

#[test]
fn hundreds_of_gateways_are_the_same_in_every_mode() {
    let text = chain(3000, 700);
    let mut runs = MODES.map(|mode| {
        start("tables", &text, Folder::new("."), mode)
            .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"))
    });
    // The gateway is a number that is looked up, and no path is made for each.
    let programs = programs(&mut runs[0]);
    let maps = |program: &Program| program.terms.iter().any(|t| matches!(t, Term::Map(..)));
    assert!(programs.iter().any(maps));
    for program in &programs {
        assert!(program.steps.len() < 400, "{} steps", program.steps.len());
    }
    let random = &mut fastrand::Rng::with_seed(11);
    let mut left = 0;
    for _ in 0..40 {
        let frames: Vec<Vec<u8>> = (0..70)
            .map(|_| {
                let (high, low) = (random.u8(..17), random.u8(..210));
                let last = *random.choice(&[0, 1, 15, 16, 255]).expect("some");
                let ttl = random.u8(1..4);
                let words = format!("bare udp 10.0.0.1:9 > 20.{high}.{low}.{last}:9 ttl {ttl}");
                net::notation::parse(&words).expect("the words are right")
            })
            .collect();
        let seen = runs.each_mut().map(|run| {
            feed(run, "in0", &frames);
            let out = [0, 1, 2, 3].map(|i| drain(run, &format!("out{i}")));
            (out, tallies(&mut run.router))
        });
        for (mode, seen_here) in MODES.iter().zip(&seen) {
            assert_eq!(*seen_here, seen[0], "{mode:?}");
        }
        left += seen[0].0.iter().map(Vec::len).sum::<usize>();
    }
    assert!(left > 500, "only {left} packets left");
}

#[test]
fn a_large_table_that_changes_is_synthesised_again() {
    let text = chain(400, 300);
    let mut started = start("tables", &text, Folder::new("."), Path::Synthesised)
        .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"));
    let reads = |started: &mut Started| started.router.read_handler("c3.count").expect("a count");
    for (written, expected) in [("99.1.0.0/16 10.0.7.1 3", "1"), ("99.1.1.0/24 10.0.8.1 1", "1")] {
        started.router.write_handler("rt.add", written).expect("a route");
        started.router.round();
        let frame = net::notation::parse("bare udp 1.1.1.1:9 > 99.1.1.1:9").expect("words");
        feed(&mut started, "in0", &[frame]);
        assert_eq!(reads(&mut started), expected);
    }
}

/// An element `x` that keeps flows, and what must come to its inputs and handlers until it knows that of packets that
/// then come to input 0.
struct Learner {
    chain: &'static str,
    learns: &'static [(&'static str, &'static str)],
    inserts: &'static str,
    known: &'static str,
}

const LEARNERS: [Learner; 4] = [
    Learner {
        chain: "in0 :: Idle -> x :: EtherSwitch -> q0 :: Queue(100000) -> Idle;
                in1 :: Idle -> [1] x [1] -> q1 :: Queue(100000) -> Idle;",
        learns: &[
            ("in0", "eth 02:00:00:00:00:0a > 02:00:00:00:00:0b udp 10.0.0.1:1 > 10.0.0.2:1"),
            ("in1", "eth 02:00:00:00:00:0b > 02:00:00:00:00:0a udp 10.0.0.1:1 > 10.0.0.2:1"),
        ],
        inserts: "",
        known: "eth 02:00:00:00:00:0a > 02:00:00:00:00:0b udp 10.0.0.1:1 > 10.0.0.2:1",
    },
    Learner {
        chain: "in0 :: Idle -> SetIPAddress(10.0.0.2) -> x :: ARPQuerier(10.0.0.1/24, 02:00:00:00:00:11)
                    -> q0 :: Queue(100000) -> Idle;
                x[1] -> q1 :: Queue(100000) -> Idle; in1 :: Idle -> [1] x;",
        learns: &[],
        inserts: "10.0.0.2 02:00:00:00:00:22",
        known: "bare udp 10.0.0.1:1 > 10.0.0.2:1",
    },
    Learner {
        chain: "in0 :: Idle -> GetIP6Address(24) -> x :: IP6NDSolicitor(2001:db8::1, 02:00:00:00:00:11)
                    -> q0 :: Queue(100000) -> Idle;
                x[1] -> q1 :: Queue(100000) -> Idle; in1 :: Idle -> [1] x;",
        learns: &[],
        inserts: "2001:db8::2 02:00:00:00:00:22",
        known: "bare udp [2001:db8::9]:1 > [2001:db8::2]:1",
    },
    Learner {
        chain: "in0 :: Idle -> CheckIPHeader -> x :: IPRRSwitch -> q0 :: Queue(100000) -> Idle;
                x[1] -> q1 :: Queue(100000) -> Idle;",
        learns: &[("in0", "bare udp 10.0.0.1:1 > 10.0.0.2:1")],
        inserts: "",
        known: "bare udp 10.0.0.1:1 > 10.0.0.2:1",
    },
];

#[test]
fn programs_find_flows_of_any_width() {
    for Learner { chain, learns, inserts, known } in LEARNERS {
        let mut started = start("learner", chain, Folder::new("."), Path::Synthesised)
            .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"));
        let frame = |words| net::notation::parse(words).expect("the words are right");
        for (input, words) in learns {
            feed(&mut started, input, &[frame(words)]);
        }
        if !inserts.is_empty() {
            started.router.write_handler("x.insert", inserts).expect("an address");
        }
        started.router.sample_latency(true);
        let frames = vec![frame(known); 20];
        for _ in 0..600 {
            feed(&mut started, "in0", &frames);
        }
        let latencies = started.router.stats().latencies;
        let passes = |of: Of, name: &str| {
            latencies.iter().any(|latency| latency.of == of && latency.name.starts_with(name))
        };
        assert!(passes(Of::Program, ""), "{chain}: no burst was timed");
        assert!(!passes(Of::Element, "x"), "{chain}: packets of known flows came to the element");
    }
}

/// A station moves to another port in the middle of a burst. What the flow cache held of it before must not
/// be taken for what it holds of it afterwards.
#[test]
fn a_station_that_moves_within_a_burst_is_found_where_it_is() {
    let chain = "in0 :: Idle -> [0] s :: EtherSwitch; in1 :: Idle -> [1] s;
                 s[0] -> out0 :: Queue(10000) -> Idle; s[1] -> out1 :: Queue(10000) -> Idle;";
    let mut started = start("switch", chain, Folder::new("."), Path::Synthesised)
        .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"));
    let frame = |from: u8, to: u8| {
        let mut frame = vec![0; 60];
        frame[..6].fill(to);
        frame[6..12].fill(from);
        frame
    };
    let (known, moves) = (frame(2, 4), frame(4, 0xff));
    let mut burst = vec![known.clone(); 20];
    burst[3] = moves.clone();
    for _ in 0..200 {
        feed(&mut started, "in1", std::slice::from_ref(&moves));
        feed(&mut started, "in0", &vec![known.clone(); 20]);
        drain(&mut started, "out1");
        feed(&mut started, "in0", &burst);
        // Behind the frame that moves the station, all are for where they come from.
        assert_eq!(drain(&mut started, "out1").len(), 4);
    }
}
