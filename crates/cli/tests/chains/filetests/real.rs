//! Packets of filetests through real devices: Open vSwitch without a wire, and the kernel's XDP, do with each what was read
//! back from the artefact, which other tests compare with elements.

use std::collections::BTreeMap;
use std::path::PathBuf;

use codegen::{Device, Servers, ebpf};
use compiler::partition::{Division, Part};
use compiler::synthesize_tables;
use ir::model::Reason;
use ir::program::End;
use ir::program::interp::{Environment, interpret};
use ir::{NodeId, Span, Store};
use lab::front::{Front, wires};
use lab::ovs::{Sent, Switch};
use net::Pool;

use super::{Filetest, filetests, framed, parse};
use crate::ebpf::kernel::load;
use crate::filetests::format::Step;
use crate::support::{Mode, start_bound};
use crate::tables::models;

/// Ports of the switch: more than any filetest has.
const PORTS: u32 = 24;
/// Of XDP's verdicts.
const DROP: u32 = 1;
const PASS_ON: u32 = 4;
const ABORTED: u32 = 0;

struct World;

impl Environment for World {
    fn now(&self) -> u64 {
        0
    }

    fn note(&mut self, _: NodeId, _: Reason) {}
}

/// What the device's part does with a frame.
fn expected(part: &Part, division: &Division, cores: u32, frame: &[u8]) -> Option<Sent> {
    let mut packet = Pool::new().packet(frame);
    let exit = interpret(&part.device, &mut packet, &mut Store::default(), &mut World);
    let end = exit.unwrap_or_else(|fault| panic!("{fault:?}")).end;
    let bytes = packet.data().to_vec();
    match end {
        End::Drop { .. } => None,
        End::Push { to, .. } => Some(Sent { port: division.egress[&to], bytes }),
        End::Handoff { to } => {
            let [high, low] = to.0.to_be_bytes();
            let bytes = [&frame[..12], &[0x88, 0xa8, high, low], &frame[12..]].concat();
            Some(Sent { port: cores, bytes })
        }
    }
}

/// By part of a chain.
type Frames = Vec<Vec<Vec<u8>>>;

/// A filetest's chain for a device, the port to the cores, and its frames by part, until a handler changes the chain.
fn compile(test: &Filetest, name: &str, front: Front) -> Option<(Division, u32, Frames)> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("filetests-real").join(name);
    test.prepare(&folder);
    let mode = Mode::of(engine::session::Path::Native);
    let started = start_bound("chain", &test.text(true), &folder, mode, test.bindings(&folder));
    let mut started = started.ok()?;
    let models = models(&mut started);
    let graph = started.chain.graph.clone();
    let receives = |node: usize| {
        let element = started.router.element(&graph.nodes[node].name);
        element.is_some_and(elements::element::Element::receives_frames)
    };
    let frames: Vec<bool> = (0..graph.nodes.len()).map(receives).collect();
    let wires = wires(&graph, |node| frames[node]);
    let cores = wires.names().len() as u32 + 1;
    let origin = |node: NodeId, _: Option<Span>| graph.nodes[node].name.clone();
    let programs = synthesize_tables(&graph, &models).programs;
    let division = front.compile(&programs, &wires, &origin).ok()?;
    let mut all = vec![Vec::new(); division.parts.len()];
    for step in &test.steps {
        let (port, packet) = match step {
            Step::Packet(port, packet) => (port, packet),
            Step::Write(..) => break,
            Step::Wait(_) | Step::Read(..) => continue,
        };
        let frame = match test.header(*port) {
            Some(header) => framed(packet, header),
            None => packet.clone(),
        };
        let wire = format!("in{port}");
        let part = division.parts.iter().position(|part| part.wires.contains(&wire));
        if let Some(part) = part.filter(|_| (14..1500).contains(&frame.len())) {
            all[part].push(frame);
        }
    }
    Some((division, cores, all))
}

/// Compiles all filetests, strictly and with all trust, and has them run.
fn run_all(target: &'static str, mut run: impl FnMut(&str, &Division, u32, &[Vec<Vec<u8>>])) {
    let only = std::env::var("FILETEST").unwrap_or_default();
    let mut count = 0;
    for (name, text) in filetests().iter().filter(|(name, _)| name.contains(&only)) {
        let test = parse(text).expect("a filetest");
        for trusting in [false, true] {
            let Some((division, cores, frames)) =
                compile(&test, target, Front { target, trusting })
            else {
                continue;
            };
            let here: usize = frames.iter().map(Vec::len).sum();
            if here > 0 {
                run(name, &division, cores, &frames);
            }
            count += here;
        }
    }
    assert!(count > 1000 || !only.is_empty(), "{count} frames");
}

#[test]
fn a_switch_does_what_was_read_from_its_entries() {
    let mut switch = Switch::start(PORTS);
    run_all("ovs", |name, division, cores, frames| {
        switch.load(&String::from_utf8_lossy(&division.files[0].contents));
        for (part, frames) in division.parts.iter().zip(frames) {
            for (frame, sent) in frames.iter().zip(switch.send(part.ingress[0], frames)) {
                let wanted = expected(part, division, cores, frame);
                assert_eq!(sent.first(), wanted.as_ref(), "{name}: {frame:02x?}");
                assert!(sent.len() <= 1, "{name}: {frame:02x?}");
            }
        }
    });
}

#[test]
fn the_kernel_does_what_was_read_from_its_instructions() {
    run_all("ebpf", |name, division, cores, frames| {
        let segments = division.parts.iter().map(|part| part.offload.segment.clone()).collect();
        let origin = |node: NodeId, _: Option<Span>| format!("element {node}");
        let (egress, servers, meters) =
            (division.egress.clone(), Servers::default(), BTreeMap::new());
        let device = Device { segments, egress, cores, servers, meters, origin: &origin };
        let compiled = ebpf::compile(&device)
            .unwrap_or_else(|(_, step, lack)| panic!("{name}: {step:?}: {lack}"));
        let loaded = load(&compiled, None);
        for (number, (part, frames)) in division.parts.iter().zip(frames).enumerate() {
            for frame in frames {
                let ran = loaded.test_run(number, frame, 1).expect("it runs");
                let about = || format!("{name}: {frame:02x?}");
                match expected(part, division, cores, frame) {
                    None => assert_eq!(ran.verdict, DROP, "{}", about()),
                    // What is left is no frame.
                    Some(sent) if sent.bytes.len() < 14 => {
                        assert_eq!(ran.verdict, ABORTED, "{}", about());
                    }
                    Some(sent) => {
                        assert_eq!((ran.verdict, ran.frame), (PASS_ON, sent.bytes), "{}", about());
                    }
                }
            }
        }
    });
}
