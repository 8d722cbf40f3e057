//! Programs in the kernel, frame by frame.

use std::collections::BTreeMap;

use codegen::ebpf::{self, Compiled};
use compiler::prove::differential::{Effort, Subject, record};
use compiler::synthesize;
use dataplane::io::Loaded;
use ir::model::Reason;
use ir::program::interp::{Environment, interpret};
use ir::program::{Effect, End, StepId, Term};
use ir::{NodeId, Program, StateValue, Store};
use net::{Packet, Pool};

use super::{device, subjects, without_leases};

const DROP: u32 = 1;
const REDIRECT: u32 = 4;
/// The host's loopback.
const SOMEWHERE: u32 = 1;
/// Longer frames take several pages.
const LONGEST: usize = 3400;

/// Without a clock; it knows at which step a program ended.
#[derive(Default)]
pub struct World {
    pub last: Option<StepId>,
}

impl Environment for World {
    fn now(&self) -> u64 {
        0
    }

    fn note(&mut self, _: NodeId, _: Reason) {}

    fn reached(&mut self, step: StepId) {
        self.last = Some(step);
    }
}

pub fn packet(frame: &[u8]) -> Packet {
    let mut pool = Pool::new();
    let mut packet = pool.alloc(frame.len());
    packet.data_mut().copy_from_slice(frame);
    packet
}

/// In the kernel; packets leave by all ports but one.
pub fn load(compiled: &Compiled, without: Option<u32>) -> Loaded {
    let loaded = Loaded::new(&compiled.object).unwrap_or_else(|rejected| {
        let block = rejected.instruction.and_then(|at| compiled.block(rejected.program?, at));
        panic!("in the block {block:?}: {rejected}")
    });
    if compiled.object.maps.iter().any(|map| map.name == "ports") {
        for port in (0..128_u32).filter(|port| Some(*port) != without) {
            let set = loaded.set("ports", &port.to_le_bytes(), &SOMEWHERE.to_le_bytes());
            set.unwrap_or_else(|error| panic!("port {port}: {error}"));
        }
    }
    loaded
}

/// Runs frames in the kernel and as the program says; gives how many exits they reached.
pub(super) fn run(name: &str, program: &Program, frames: &[Vec<u8>]) -> usize {
    let device = device(program);
    let compiled = ebpf::compile(&device)
        .unwrap_or_else(|(_, step, lack)| panic!("{name}: s{}: {lack}", step.0));
    let loaded = load(&compiled, None);
    let mut others: BTreeMap<u32, Loaded> = BTreeMap::new();
    let mut store = Store::new();
    let mut counted: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for frame in frames.iter().filter(|frame| (14..LONGEST).contains(&frame.len())) {
        let (mut expected, mut world) = (packet(frame), World::default());
        let exit = interpret(program, &mut expected, &mut store, &mut world)
            .unwrap_or_else(|fault| panic!("{name}: {fault:?} of {frame:02x?}"));
        let step = world.last.expect("it came to a step").0;
        let ran = loaded.test_run(0, frame, 1).expect("it runs");
        let count = counted.entry(step).or_default();
        *count = (count.0 + 1, count.1 + frame.len() as u64);
        let about = || format!("{name} s{step}: {frame:02x?}");
        let port = match exit.end {
            End::Drop { .. } => {
                assert_eq!(ran.verdict, DROP, "{}", about());
                continue;
            }
            // What is left is no frame.
            End::Push { .. } if expected.len() < 14 => {
                assert_eq!(ran.verdict, 0, "{}", about());
                continue;
            }
            End::Push { to, .. } => {
                assert_eq!(
                    (ran.verdict, &ran.frame[..]),
                    (REDIRECT, expected.data()),
                    "{}",
                    about()
                );
                device.egress[&to]
            }
            End::Handoff { to } => {
                let tag = [0x88, 0xa8, (to.0 >> 8) as u8, to.0 as u8];
                let tagged = [&frame[..12], &tag, &frame[12..]].concat();
                assert_eq!((ran.verdict, &ran.frame), (REDIRECT, &tagged), "{}", about());
                device.cores
            }
        };
        let other = others.entry(port).or_insert_with(|| load(&compiled, Some(port)));
        let ran = other.test_run(0, frame, 1).expect("it runs");
        assert_eq!(ran.verdict, 0, "by another port than {port}: {}", about());
    }
    let mut totals: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (at, (packets, bytes)) in &counted {
        let counters = loaded.counters("counters0", *at).expect("it counts");
        assert_eq!(counters[..2], [*packets, *bytes], "{name}: s{at}");
        let ir::program::Step::Exit(exit) = program.step(StepId(*at)) else { panic!("an exit") };
        let mut lengths = Vec::new();
        for effect in &exit.effects {
            let Effect::Count { counter, length } = effect else { continue };
            let bytes = if *program.term(*length) == Term::Input(ir::field::meta::LEN) {
                counters[1]
            } else {
                if !lengths.contains(length) {
                    lengths.push(*length);
                }
                let place = lengths.iter().position(|l| l == length).expect("it is there");
                counters[2 + place]
            };
            let owner = &program.state[usize::from(counter.0)];
            let total = totals.entry(format!("{} {}", owner.owner, owner.name)).or_default();
            *total = (total.0 + counters[0], total.1.wrapping_add(bytes));
        }
    }
    let mut found: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (owner, name, value) in store.iter() {
        if let StateValue::Counter { packets, bytes } = value
            && (*packets, *bytes) != (0, 0)
        {
            found.insert(format!("{owner} {name}"), (*packets, *bytes));
        }
    }
    assert_eq!(totals, found, "{name}");
    counted.len()
}

/// Frames for all exits, and others that are made from them.
pub fn frames(of: &super::Subject) -> BTreeMap<ir::Port, Vec<Vec<u8>>> {
    let programs = synthesize(&of.graph, &of.models).programs;
    let exits: usize = programs.iter().map(|program| program.exits().count()).sum();
    let state = Store::new();
    let subject =
        Subject { graph: &of.graph, models: &of.models, state: &state, programs: &programs };
    let effort = Effort { packets: (8 * exits).clamp(300, 6000), seed: 1 };
    let (_, sequences) = record(&subject, effort);
    let mut random = fastrand::Rng::with_seed(1);
    let mut all: BTreeMap<ir::Port, Vec<Vec<u8>>> = BTreeMap::new();
    for arrival in sequences.iter().flat_map(|sequence| &sequence.arrivals) {
        let frame = arrival.packet.frame.clone();
        let of = all.entry(arrival.at).or_default();
        let mut other = frame.clone();
        match random.u8(..4) {
            0 if !other.is_empty() => other.truncate(random.usize(..other.len())),
            1 => {
                let more = random.usize(..64);
                other.extend(std::iter::repeat_with(|| random.u8(..)).take(more));
            }
            _ => {
                for _ in 0..random.usize(1..4) {
                    let at = random.usize(..other.len().clamp(1, 80));
                    if let Some(byte) = other.get_mut(at) {
                        *byte = random.u8(..);
                    }
                }
            }
        }
        of.extend([frame, other]);
    }
    all
}

#[test]
fn chains_run_in_the_kernel() {
    let (mut reached, mut of) = (0, 0);
    for subject in subjects("ebpf-kernel") {
        let frames = frames(&subject);
        for (name, entry, program) in subject.segments() {
            reached += run(&name, &program, frames.get(&entry).map_or(&[], |all| all));
            of += without_leases(&program).exits().count();
        }
    }
    assert!(reached * 10 >= of * 6, "{reached} of {of} exits reached");
}

/// A check of the frame's end is taken out: what is rejected is shown where it stands.
#[test]
fn a_rejection_names_the_element() {
    let all = subjects("ebpf-rejection");
    let subject = all.iter().find(|subject| subject.name.ends_with("ten-routers.click")).unwrap();
    let (_, _, program) = subject.segments().remove(0);
    let mut compiled = ebpf::compile(&device(&program)).expect("it fits");
    for word in &mut compiled.object.programs[0].words {
        // `if r0 > r8 goto …` becomes `if r8 > r8 goto …`.
        if *word as u16 == 0x802d {
            *word |= 0x800;
        }
    }
    let rejected = Loaded::new(&compiled.object).expect_err("it is refused");
    let at = rejected.instruction.expect("it is at an instruction");
    let program = rejected.program.unwrap();
    let block = compiled.block(program, at).unwrap_or_else(|| panic!("{at}: {rejected}"));
    assert_eq!(subject.graph.nodes[block.element].name, "Classifier@2", "{rejected}");
}
