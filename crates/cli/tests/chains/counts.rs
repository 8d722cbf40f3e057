//! Counters of devices: what the chain counts for packets that never came to a core is what its elements would have
//! counted.

use std::collections::BTreeMap;
use std::path::Path as Folder;

use codegen::openflow::Class;
use codegen::{Device, Servers, ebpf};
use compiler::partition::{Counted, Division};
use compiler::synthesize_tables;
use dataplane::io::Loaded;
use engine::session::Path;
use ir::program::StepId;
use ir::{NodeId, Port, Span, StateValue};
use lab::front::{Front, receive, wires};
use lab::ovs::{Sent, Switch};
use net::Batch;

use crate::outcome::tallies;
use crate::support::{Started, start};
use crate::tables::models;

const CHAIN: &str = "
    in0 :: Idle -> all :: Counter -> c :: Classifier(12/0800, 12/0806);
    c[1] -> arp :: Counter -> Discard;
    c[0] -> Strip(14) -> CheckIPHeader -> ip :: Counter
      -> acl :: IPFilter(deny src net 10.9.0.0/16, deny udp dst port 53, allow all) -> ttl :: DecIPTTL
      -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> sent :: Counter -> out0 :: Queue(1000) -> Idle;
    ttl[1] -> late :: Counter -> Discard;";

fn frames() -> Vec<Vec<u8>> {
    let frame = |words: &str| net::notation::parse(words).expect("a packet");
    let mut frames: Vec<Vec<u8>> = (60..90)
        .map(|size| frame(&format!("udp 10.0.0.1:1 > 20.0.0.1:{size} size {size}")))
        .collect();
    frames.extend((70..75).map(|size| frame(&format!("tcp 10.9.0.1:1 > 20.0.0.1:2 size {size}"))));
    frames.extend((80..87).map(|size| frame(&format!("udp 10.0.0.1:1 > 20.0.0.1:53 size {size}"))));
    frames.push(frame("udp 10.0.0.1:1 > 20.0.0.1:2 ttl 1 size 200"));
    for kind in [[0x08, 0x06], [0x88, 0xb5], [0x08, 0x06]] {
        let mut other = vec![2; 12];
        other.extend(kind);
        other.resize(64, 0);
        frames.push(other);
    }
    frames
}

/// Counters by owner and name, and drops by element and reason: packets and bytes.
type Counts = BTreeMap<(String, String), (u64, u64)>;

/// What the elements count.
fn expected(frames: &[Vec<u8>]) -> (Started, Counts) {
    let started = start("chain", CHAIN, Folder::new("."), Path::Native);
    let mut started = started.unwrap_or_else(|(found, _)| panic!("{found:?}"));
    let graph = &started.chain.graph;
    let node = graph.find("in0").expect("it is declared");
    let to = graph.successors(Port { node, port: 0 }).next().expect("it is connected");
    for frame in frames {
        let mut packet = started.router.core().pool.packet(frame);
        receive(&mut packet);
        let mut batch = Batch::new();
        batch.push(packet);
        started.router.push(to, batch);
    }
    let mut counts = Counts::new();
    for (owner, name, value) in started.router.state().iter() {
        if let StateValue::Counter { packets, bytes } = value
            && *packets > 0
        {
            counts.insert((owner.to_string(), name.to_string()), (*packets, *bytes));
        }
    }
    for (element, reason, dropped, bytes, _) in tallies(&mut started.router) {
        if dropped > 0 {
            counts.insert((element, reason), (dropped, bytes));
        }
    }
    (started, counts)
}

fn divide(front: Front, started: &mut Started) -> Division {
    let models = models(started);
    let graph = &started.chain.graph;
    let programs = synthesize_tables(graph, &models).programs;
    let wires = wires(graph, |_| false);
    let origin = |node: NodeId, _: Option<Span>| graph.nodes[node].name.clone();
    front.compile(&programs, &wires, &origin).unwrap_or_else(|why| panic!("{why}"))
}

/// What a device's counters stand for.
fn credited(
    started: &Started,
    division: &Division,
    counted: impl Fn(usize, StepId) -> Counted,
) -> Counts {
    let mut counts = Counts::new();
    let mut add = |of: (String, String), packets: u64, bytes: Option<u64>| {
        let all = counts.entry(of).or_default();
        *all = (all.0 + packets, all.1 + bytes.expect("the device knows the length"));
    };
    for (number, part) in division.parts.iter().enumerate() {
        for (step, _) in part.offload.segment.program.exits() {
            let counted = counted(number, step);
            let credit = part.offload.credit(&part.program, step, &counted);
            let Some(credit) = credit.filter(|credit| credit.packets > 0) else { continue };
            for (owner, name, bytes) in credit.counters {
                add((owner, name.into()), credit.packets, bytes);
            }
            if let Some((element, reason, bytes)) = credit.dropped {
                let name = started.chain.graph.nodes[element].name.clone();
                add((name, reason.to_string()), credit.packets, bytes);
            }
        }
    }
    counts
}

#[test]
fn flow_entries_count_as_elements() {
    let frames = frames();
    let (mut started, _) = expected(&[]);
    let division = divide(Front { target: "ovs", trusting: true }, &mut started);
    let part = &division.parts[0];
    let wire = division.egress.values().next();
    let mut switch = Switch::start(4);
    switch.load(&String::from_utf8_lossy(&division.files[0].contents));
    let sent = switch.send(part.ingress[0], &frames);
    // Cores count what is handed to them.
    let is_done = |sent: &Vec<Sent>| sent.iter().all(|sent| Some(&sent.port) == wire);
    let done: Vec<Vec<u8>> = frames
        .into_iter()
        .zip(&sent)
        .filter_map(|(frame, sent)| is_done(sent).then_some(frame))
        .collect();
    assert!(done.len() >= 42, "{} frames are done", done.len());
    let (_, wanted) = expected(&done);
    let entries = switch.counters();
    let got = credited(&started, &division, |segment, step| {
        let cookie = Class::Exit(segment as u16, step.0).number();
        let [packets, bytes] = entries.get(&cookie).copied().unwrap_or_default();
        Counted { packets, bytes, sums: Vec::new() }
    });
    assert_eq!(got, wanted);
}

#[test]
fn programs_in_the_kernel_count_as_elements() {
    let frames = frames();
    let (mut started, wanted) = expected(&frames);
    let division = divide(Front { target: "ebpf", trusting: false }, &mut started);
    let segments = division.parts.iter().map(|part| part.offload.segment.clone()).collect();
    let origin = |node: NodeId, _: Option<Span>| format!("element {node}");
    let (egress, servers, meters) = (division.egress.clone(), Servers::default(), BTreeMap::new());
    let device = Device { segments, egress, cores: 100, servers, meters, origin: &origin };
    let compiled =
        ebpf::compile(&device).unwrap_or_else(|(_, step, lack)| panic!("{step:?}: {lack}"));
    let loaded = Loaded::new(&compiled.object).unwrap_or_else(|why| panic!("{why}"));
    for frame in &frames {
        loaded.test_run(0, frame, 1).expect("it runs");
    }
    let got = credited(&started, &division, |segment, step| {
        let counters = loaded.counters(&format!("counters{segment}"), step.0).expect("it counts");
        Counted { packets: counters[0], bytes: counters[1], sums: counters[2..].to_vec() }
    });
    assert_eq!(got, wanted);
}
