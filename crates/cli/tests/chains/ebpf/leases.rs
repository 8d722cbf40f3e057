//! Leases of flows: what the kernel does with packets of flows that elements know, and when it goes by them no more.

use std::path::Path as Folder;

use codegen::Target;
use codegen::ebpf::{self, EBPF, Object, lease::SLOTS};
use compiler::partition::{Compiled, Lessor, Site, compile, lessors};
use dataplane::clock::Clock;
use dataplane::io::{LeaseMaps, Loaded};
use dataplane::{Lease, Leased};
use engine::session::Path;
use ir::model::Reason;
use ir::program::End;
use ir::program::interp::{Environment, interpret};
use ir::{NodeId, Port, Span, StateValue};
use net::Batch;

use super::kernel::{load, packet};
use crate::support::{Started, start};
use crate::tables::models;
use crate::targets::wires;

const NAT: &str = "
Idle -> a :: Strip(14) -> CheckIPHeader -> x :: IPClassifier(tcp or udp, -);
Idle -> b :: Strip(14) -> CheckIPHeader -> y :: IPClassifier(tcp or udp, -);
nat :: IPRewriter(pattern 192.0.2.1 1024-65535# - - 0 1, drop, CAPACITY 200000);
x[0] -> [0] nat;
y[0] -> [1] nat;
x[1], y[1] -> Discard;
nat[0] -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> there :: Queue(1000) -> Discard;
nat[1] -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:00:04) -> back :: Queue(1000) -> Discard;
";

const SECOND: u64 = 1_000_000_000;

/// What the device did with a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Did {
    /// It left.
    Left(Vec<u8>),
    /// It goes to a core.
    HandedOff,
    Dropped,
}

/// A chain that runs, and the device's part of it in the kernel.
struct Bed {
    started: Started,
    compiled: Compiled,
    loaded: Loaded,
}

fn origin(node: NodeId, _: Option<Span>) -> String {
    format!("element {node}")
}

struct World(u64);

impl Environment for World {
    fn now(&self) -> u64 {
        self.0
    }

    fn note(&mut self, _: NodeId, _: Reason) {}
}

impl Bed {
    fn new() -> Self {
        Self::of(NAT)
    }

    fn of(chain: &str) -> Self {
        let mut started = start("chain", chain, Folder::new("."), Path::Native)
            .unwrap_or_else(|(diagnostics, _)| panic!("{diagnostics:?}"));
        let models = models(&mut started);
        let graph = &started.chain.graph;
        let wires = wires(graph, &models);
        let site = Site::numbered(&wires, &[]);
        let compiled = compile(graph, &models, &wires, &EBPF, &site, &origin, None)
            .unwrap_or_else(|why| panic!("{why}"));
        for part in &compiled.parts {
            assert!(part.proof.holds(), "{:?}: {:?}", part.wires, part.proof.together.verdict);
        }
        let made = ebpf::compile(&compiled.device(&origin)).expect("it fits");
        let loaded = load(&made, None);
        Self { started, compiled, loaded }
    }

    fn give(&mut self) {
        let lease = |lessor: Lessor| {
            let id = |name: String| self.loaded.map_id(&name).unwrap();
            let (index, slots) = (id(lessor.of.index_map()), id(lessor.of.slots_map()));
            let maps = LeaseMaps::open(index, slots, &lessor.of).unwrap();
            let owner = lessor.of.owner.clone();
            let allows = move |key: &[u128], bound: &[u128], times, until| {
                lessor.allows(key, bound, times, until)
            };
            Lease { owner, maps, allows: Box::new(allows) }
        };
        let all = lessors(&self.compiled).into_iter().map(lease).collect();
        self.started.router.leases().give(all);
    }

    /// Renews leases until there is nothing left to do.
    fn round(&mut self) -> Leased {
        loop {
            let leased = self.started.router.leases().renew().expect("it gives leases");
            if !leased.more {
                return leased;
            }
        }
    }

    fn wait(&mut self, seconds: u64) {
        let clock = &mut self.started.clock;
        let until = clock.now() + seconds * SECOND;
        clock.wait_until(until);
    }

    fn part(&self, entry: &str) -> usize {
        let is_it = |node: NodeId| self.started.chain.graph.nodes[node].name == entry;
        self.compiled.parts.iter().position(|part| is_it(part.program.entry.node)).unwrap()
    }

    /// On a core.
    fn push(&mut self, entry: &str, text: &str) {
        let frame = net::notation::parse(text).unwrap();
        let packet = self.started.router.core().pool.packet(&frame);
        let mut batch = Batch::new();
        batch.push(packet);
        let node = self.compiled.parts[self.part(entry)].program.entry.node;
        self.started.router.push(Port { node, port: 0 }, batch);
    }

    /// On the device.
    fn send(&self, entry: &str, text: &str) -> Did {
        let frame = net::notation::parse(text).unwrap();
        let ran = self.loaded.test_run(self.part(entry), &frame, 1).unwrap();
        match ran.verdict {
            1 => Did::Dropped,
            3 | 4 if ran.frame.get(12..14) == Some(&[0x88, 0xa8]) => Did::HandedOff,
            3 | 4 => Did::Left(ran.frame),
            other => panic!("{text}: verdict {other}"),
        }
    }

    /// What elements would do, going by their flows.
    fn wanted(&mut self, entry: &str, text: &str) -> Did {
        let mut packet = packet(&net::notation::parse(text).unwrap());
        let mut state = self.started.router.state();
        let program = &self.compiled.parts[self.part(entry)].program;
        let now = self.started.clock.now();
        let exit = interpret(program, &mut packet, &mut state, &mut World(now)).unwrap();
        match exit.end {
            End::Push { .. } => Did::Left(packet.data().to_vec()),
            End::Drop { .. } => Did::Dropped,
            End::Handoff { .. } => Did::HandedOff,
        }
    }

    /// The device does it, and as elements would.
    #[track_caller]
    fn done(&mut self, entry: &str, text: &str) {
        let mut did = self.send(entry, text);
        if did == Did::HandedOff {
            // A machine that is busy may let a lease end.
            self.round();
            did = self.send(entry, text);
        }
        assert!(matches!(did, Did::Left(_)), "{text}: {did:?}");
        assert_eq!(did, self.wanted(entry, text), "{text}");
    }

    #[track_caller]
    fn handed_off(&self, entry: &str, text: &str) {
        assert_eq!(self.send(entry, text), Did::HandedOff, "{text}");
    }

    /// Flows that live.
    fn flows(&mut self) -> usize {
        let now = self.started.clock.now();
        let state = self.started.router.state();
        let all = state.iter().filter_map(|(.., value)| match value {
            StateValue::Flows(flows) => Some(flows.iter().filter(|f| f.expiry > now).count()),
            _ => None,
        });
        all.sum()
    }

    /// A TCP connection that is established, and a UDP flow.
    fn talk(&mut self) {
        self.push("a", "tcp 10.0.0.1:9 > 198.51.100.7:80 flags S");
        self.push("b", "tcp 198.51.100.7:80 > 192.0.2.1:1024 flags SA");
        for _ in 0..8 {
            self.push("a", "tcp 10.0.0.1:9 > 198.51.100.7:80 flags A payload 'question'");
            self.push("b", "tcp 198.51.100.7:80 > 192.0.2.1:1024 flags A payload 'answer'");
        }
        self.ask();
        assert_eq!(self.flows(), 2);
    }

    /// A UDP flow.
    fn ask(&mut self) {
        for _ in 0..8 {
            self.push("a", QUESTION);
            let answer = self.answer();
            self.push("b", &answer);
        }
    }

    /// A packet to the port that a UDP flow has outside.
    fn answer(&mut self) -> String {
        let state = self.started.router.state();
        let port = state.iter().find_map(|(.., value)| match value {
            StateValue::Flows(flows) => {
                flows.iter().find(|flow| flow.keys[1][0] == 17).map(|flow| flow.keys[1][4])
            }
            _ => None,
        });
        format!("udp 198.51.100.7:53 > 192.0.2.1:{}", port.unwrap())
    }
}

const QUESTION: &str = "udp 10.0.0.1:9 > 198.51.100.7:53 payload 'abc'";
const OUT: &str = "tcp 10.0.0.1:9 > 198.51.100.7:80 flags A payload 'more'";
const BACK: &str = "tcp 198.51.100.7:80 > 192.0.2.1:1024 flags A payload 'more'";

#[test]
fn packets_of_known_flows_need_no_core() {
    let mut bed = Bed::new();
    bed.talk();
    bed.handed_off("a", OUT);
    bed.give();
    bed.handed_off("a", OUT);
    let answer = bed.answer();
    assert_eq!(bed.round(), Leased { flows: 2, full: false, more: false });
    for (entry, text) in [
        ("a", OUT),
        ("b", BACK),
        ("a", "tcp 10.0.0.1:9 > 198.51.100.7:80 flags A"),
        ("b", "tcp 198.51.100.7:80 > 192.0.2.1:1024 flags PA payload 'x' tos 7 ttl 1"),
        ("a", "udp 10.0.0.1:9 > 198.51.100.7:53 payload 'abc'"),
        ("b", &answer),
        ("a", "udp 10.0.0.1:9 > 198.51.100.7:53 nosum payload 'abc'"),
        ("a", "udp 10.0.0.1:9 > 198.51.100.7:53 badl4sum payload 'abc' pad 20"),
    ] {
        bed.done(entry, text);
    }
    for (entry, text) in [
        ("a", "tcp 10.0.0.1:9 > 198.51.100.7:80 flags FA"),
        ("b", "tcp 198.51.100.7:80 > 192.0.2.1:1024 flags R"),
        ("a", "tcp 10.0.0.1:10 > 198.51.100.7:80 flags A payload 'x'"),
        ("a", "tcp 10.0.0.2:9 > 198.51.100.7:80 flags A payload 'x'"),
        ("a", "udp 10.0.0.1:9 > 198.51.100.7:80 payload 'x'"),
        ("b", "udp 198.51.100.8:53 > 192.0.2.1:1024 payload 'x'"),
        ("a", "udp 10.0.0.1:9 > 198.51.100.7:53 opt 01010101 payload 'x'"),
    ] {
        bed.handed_off(entry, text);
    }
    bed.started.router.leases().end();
    bed.handed_off("a", OUT);
}

/// Whatever changes a flow on a core ends its lease before anything else is done.
#[test]
fn a_lease_ends_when_its_flow_changes() {
    let mut bed = Bed::new();
    bed.talk();
    bed.give();
    bed.round();
    bed.done("b", BACK);
    bed.push("a", "tcp 10.0.0.1:9 > 198.51.100.7:80 flags FA");
    bed.handed_off("b", BACK);
    bed.done("a", QUESTION);
    // It is given anew, as the flow is now: what changes it back needs a core.
    assert_eq!(bed.round().flows, 2);
    bed.done("b", BACK);
    bed.handed_off("a", OUT);
    // Flows go at once that there is no room for.
    bed.started.router.write_handler("nat.capacity", "0").unwrap();
    assert_eq!(bed.flows(), 0);
    bed.handed_off("b", BACK);
    bed.handed_off("a", "udp 10.0.0.1:9 > 198.51.100.7:53 payload 'abc'");
    assert_eq!(bed.round().flows, 0);
}

/// Flows live as long as the device has packets of them, and no longer.
#[test]
fn flows_expire_by_what_the_device_had_of_them() {
    let mut bed = Bed::new();
    bed.ask();
    bed.give();
    bed.round();
    for _ in 0..3 {
        bed.wait(200);
        bed.done("a", QUESTION);
        assert_eq!(bed.round().flows, 1);
    }
    // It would have expired without its packets on the device.
    bed.wait(290);
    bed.round();
    bed.done("a", QUESTION);
    bed.round();
    bed.wait(290);
    bed.round();
    bed.done("a", &QUESTION.replace("abc", "last"));
    bed.round();
    // Before it expires, a core has its packets again.
    bed.wait(299);
    bed.round();
    bed.handed_off("a", QUESTION);
    assert_eq!((bed.flows(), bed.round().flows), (1, 0));
    bed.wait(20);
    assert_eq!(bed.flows(), 0);
}

/// A condition on the time comes out on the device as long as a lease lasts; before it comes out differently a core is asked.
#[test]
fn conditions_on_the_time_are_promised() {
    const ARP: &str = "
arp :: ARPQuerier(192.0.2.1, 02:00:00:00:00:01, POLL_TIMEOUT 60);
Idle -> a :: Strip(14) -> CheckIPHeader -> GetIPAddress(16) -> arp -> there :: Queue(1000) -> Discard;
Idle -> [1] arp;
";
    const TO: &str = "udp 10.0.0.1:9 > 192.0.2.7:53 payload 'abc'";
    let mut bed = Bed::of(ARP);
    bed.push("a", TO);
    bed.give();
    assert_eq!(bed.round().flows, 0);
    let reply = net::notation::parse("arp reply 192.0.2.7 is-at 02:00:00:00:00:07 to 192.0.2.1");
    let packet = bed.started.router.core().pool.packet(&reply.unwrap());
    let mut batch = Batch::new();
    batch.push(packet);
    let node = bed.started.chain.graph.find("arp").unwrap();
    bed.started.router.push(Port { node, port: 1 }, batch);
    assert_eq!(bed.round().flows, 1);
    bed.done("a", TO);
    bed.handed_off("a", "udp 10.0.0.1:9 > 192.0.2.8:53");
    bed.wait(50);
    bed.round();
    bed.done("a", TO);
    // Soon it is to be asked for again.
    bed.wait(8);
    bed.round();
    bed.handed_off("a", TO);
    assert_eq!(bed.round().flows, 0);
}

/// What there is no room for is left to cores.
#[test]
fn leases_are_bounded() {
    let mut bed = Bed::new();
    let most = SLOTS as usize / 2;
    let flow =
        |number: usize| format!("udp 10.{}.{}.1:9 > 198.51.100.7:53", number / 250, number % 250);
    (0..most + 100).for_each(|number| bed.push("a", &flow(number)));
    bed.give();
    assert_eq!(bed.round(), Leased { flows: most, full: true, more: false });
    let is_left = |bed: &Bed, number: usize| bed.send("a", &flow(number)) != Did::HandedOff;
    let left = (0..most + 100).filter(|number| is_left(&bed, *number)).count();
    assert!(left <= most, "{left}");
}

/// Instructions that are changed one by one.
#[test]
fn faults_in_lookups_of_flows_are_found() {
    let bed = Bed::new();
    let device = bed.compiled.device(&origin);
    let object = ebpf::object(&bed.compiled.files).unwrap();
    let name = |node: NodeId| format!("element {node}");
    let is_wire = |to: Port| bed.compiled.egress.contains_key(&to);
    let part = &bed.compiled.parts[0];
    let is_found = |object: &Object| match ebpf::decompile(object, 0, &device) {
        Err(_) => true,
        Ok(read) => {
            let proof = part.offload.prove(&part.program, &read, EBPF.undecided(), &is_wire, &name);
            proof.map_or(true, |proof| !proof.holds())
        }
    };
    assert!(!is_found(&object));
    let nothing = 0xbf | 2 << 8 | 2 << 12; // r2 = r2
    let code = |word: u64| word as u8;
    let words = &object.programs[0].words;
    let (first, _) = words
        .iter()
        .enumerate()
        .find(|(_, word)| **word == 160 << 32 | 0x85)
        .expect("it asks for the time");
    // From there on: the key, whether there is a lease, what is copied, and which packets change the flow.
    let mut tried = 0;
    for (at, &word) in words.iter().enumerate().skip(first).take(160) {
        let changed = match code(word) {
            // Comparisons of two numbers, and what is noted of packets.
            0x1d | 0x5d | 0x3d | 0xbd | 0x7a if word >> 8 & 0xf != 10 => nothing,
            // A number of a slot, or of the key, is another one.
            0x79 if word >> 12 & 0xf == 0 => word + (8 << 16),
            // Byte order.
            0xdc => word & !0xff | 0xd4,
            _ => continue,
        };
        tried += 1;
        let mut object = object.clone();
        object.programs[0].words[at] = changed;
        assert!(is_found(&object), "instruction {at}: {word:#x}");
    }
    assert!(tried > 20, "{tried} faults");
}
