//! What devices are given, and the topologies that say where they stand.

use std::collections::BTreeMap;

use codegen::openflow::codec;
use codegen::stages::{Action, Hardware, Key, MatchKind, Pipeline, Table, fit};
use codegen::{Device, File, Servers};
use compiler::partition::{Ends, from_wire, offload};
use ir::program::{Continuation, verify};
use ir::text::parse_programs;
use ir::topology::{Topology, Vocabulary};
use ir::{Diagnostic, FileId, NodeId, Port, Span};
use placement::{ByHand, Document, Manifest, Roomy, check};

/// IPv4 to port 2, ARP to cores, all else dropped.
const PROGRAM: &str = "\
program behind [0] c
elements 0 c, 1 q, 2 arp

s0: c switch data[96+16] {2048} s1, {2054} s2, else s3
s1: exit visited [0] c
  push [0] q
s2: exit visited [0] c
  push [0] arp
s3: exit visited [0] c
  drop no-match at c
";

/// Reads what a target's device was given: what is understood is a well-formed program.
fn read(target: &str, files: &[File]) {
    let read = parse_programs(FileId(0), PROGRAM).expect("a program");
    let program = from_wire(&read.programs[0]);
    let target = codegen::target(target).expect("a target");
    let is_wire = |port: Port| port.node == 1;
    let full = BTreeMap::new();
    let ends = |number: u32| Ends {
        is_wire: &is_wire,
        trust: &|_| true,
        mtu: Some(1500),
        full: &full,
        ingress: vec![number],
        first: Continuation(number as u16),
    };
    // Packets come back from the server with a number.
    let mut servers = Servers::default();
    servers.returns.extend(target.knows_servers().then_some((9, 3)));
    let numbers = [1].into_iter().chain(servers.returns.keys().copied());
    let origin = |_: NodeId, _: Option<Span>| String::new();
    let device = Device {
        segments: numbers.map(|number| offload(&program, target, &ends(number)).segment).collect(),
        egress: [(Port { node: 1, port: 0 }, 2)].into(),
        cores: 3,
        servers,
        meters: BTreeMap::new(),
        origin: &origin,
    };
    for program in target.read(files, &device).into_iter().flatten() {
        assert!(verify::is_well_formed(&program), "{program}");
    }
}

fn file(name: &str, data: &[u8]) -> File {
    File { name: name.into(), contents: data.to_vec() }
}

/// Flow entries.
pub fn flows(data: &[u8]) {
    read("ovs", &[file("flows.txt", data)]);
}

/// Rules of a card, as commands; behind a line of `=`, the same as JSON.
pub fn rules(data: &[u8]) {
    let end = data.windows(3).position(|line| line == b"\n=\n").unwrap_or(data.len());
    let (text, json) = (&data[..end], data.get(end + 3..).unwrap_or_default());
    read("rte_flow-mlx5", &[file("flows.txt", text), file("flows.json", json)]);
}

/// A P4 program, entries and commands, with a line of dashes between them.
pub fn p4(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split("\n-----\n");
    let mut part = |name: &str| file(name, parts.next().unwrap_or_default().as_bytes());
    let files = [part("catena.p4"), part("entries.json"), part("commands.txt")];
    read(if text.contains("<tna.p4>") { "p4 tna" } else { "p4" }, &files);
}

/// A specification for SWX, and entries of its tables `rules` and `routes`, with a line of dashes between them.
pub fn swx(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut parts = text.split("\n-----\n");
    let mut part = |name: &str| file(name, parts.next().unwrap_or_default().as_bytes());
    read("swx", &[part("catena.spec"), part("rules.txt"), part("routes.txt")]);
}

/// An object of XDP programs.
pub fn object(data: &[u8]) {
    read("ebpf", &[file("catena.o", data)]);
}

/// A device's room: what is wrong with it is said at a place in it, and what is right has room for small numbers.
pub fn device(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Hardware::parse(FileId(0), &text) {
        Err(found) => {
            let inside = |at: Span| at.start <= at.end && text.get(at.range()).is_some();
            let labels = found.iter().flat_map(|found| &found.labels);
            assert!(!found.is_empty() && labels.map(|label| label.span).all(inside), "{found:?}");
        }
        Ok(hardware) => {
            let mut pipeline = Pipeline::default();
            let field = pipeline.field("ip_dst", 32, Some("ipv4"));
            for kind in [MatchKind::Exact, MatchKind::Lpm] {
                let keys = vec![Key { field, kind }];
                let actions = vec![Action { writes: vec![field], data: 48, ..Action::default() }];
                pipeline.table(Table { keys, actions, entries: 5000, ..Table::default() });
            }
            let _ = fit(&pipeline, &hardware);
        }
    }
}

/// A topology: whatever is wrong with it is said at a place in it.
pub fn topology(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let vocabulary =
        Vocabulary { targets: &["ovs"], archs: &[], devices: &["hp-5130"], trust: &["lengths"] };
    if let Err(found) = Topology::parse(FileId(0), &text, vocabulary) {
        said_at_a_place(&text, &found);
    }
}

/// A manifest: the same, and chains of one without errors can be placed.
pub fn manifest(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Manifest::parse(FileId(0), &text, &mut ByHand) {
        Ok(manifest) => assert!(manifest.chains.iter().all(|chain| chain.faults().is_empty())),
        Err(found) => said_at_a_place(&text, &found),
    }
}

/// Chains and a rack that plans are read for.
const CHAINS: &str = "\
functions:
  ACL: { cycles: 985, on: [switch, core] }
  Encrypt: { cycles: 9123, on: [core, card] }
  Forward: { on: [switch] }
chains:
  - { name: a, chain: 'acl :: ACL -> Encrypt -> f :: Forward; acl[1] -> f', slo: { min: 1 Gbps, max: 9 Gbps } }
  - { name: b, chain: Encrypt -> ACL -> Forward, slo: { max: 3 Gbps, delay: 40 us } }
";
const RACK: &str = "\
switches: { tor: { target: ovs, ports: { a: { number: 1 }, b: { number: 2 } } } }
servers:
  s1: { cores: 4, clock: 2 GHz, ports: { eth0: { rate: 40 Gbps, card: 2 GHz } } }
  s2: { cores: 8, clock: 2 GHz, ports: { eth0: { rate: 40 Gbps } } }
links: [[tor.a, s1.eth0], [tor.b, s2.eth0]]
";

/// A plan: whatever it says, it is checked.
pub fn plan(data: &[u8]) {
    let Ok(document) = serde_json::from_slice::<Document>(data) else { return };
    let vocabulary = Vocabulary { targets: &["ovs"], archs: &[], devices: &[], trust: &[] };
    let rack = Topology::parse(FileId(0), RACK, vocabulary).expect("the rack is right");
    let manifest = Manifest::parse(FileId(0), CHAINS, &mut ByHand).expect("the chains are right");
    let problem = manifest.on(&rack).expect("they can be placed there");
    if let Ok(plan) = document.plan(&problem) {
        let _ = check(&problem, &Roomy, &plan);
    }
}

fn said_at_a_place(text: &str, found: &[Diagnostic]) {
    assert!(!found.is_empty(), "nothing is said against it");
    let inside = |at: Span| at.start <= at.end && text.get(at.range()).is_some();
    let labels = found.iter().flat_map(|found| &found.labels);
    assert!(labels.map(|label| label.span).all(inside), "{found:?}");
}

/// Messages of a switch: what is understood reads back from what it is written as.
pub fn openflow(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(length)) = codec::length(rest) {
        let Some((message, behind)) = rest.split_at_checked(length) else { break };
        rest = behind;
        let Ok((number, message)) = codec::decode(message) else { continue };
        let mut bytes = Vec::new();
        codec::encode(&message, number, &mut bytes);
        // What is not known is not kept whole.
        if !format!("{message:?}").contains("Other") {
            assert_eq!(codec::decode(&bytes), Ok((number, message)));
        }
    }
}
