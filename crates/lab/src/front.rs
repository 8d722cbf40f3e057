//! A device in front of a chain under test: what the chain's programs become for it and for cores.

use std::sync::Arc;

use codegen::Target;
use compiler::partition::{Division, NotCompiled, Part, Site, Trust, Wires, behind, divide};
use engine::session::Cut;
use ir::program::{Continuation, End, Step, Term, TermId, Write};
use ir::{Graph, NodeId, Port, Program, Span};
use net::{Header, Packet, PacketType};

/// A device, and what it may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    /// The name of its target.
    pub target: &'static str,
    /// Whether all that a port can be trusted in is trusted. Packets for which it does not hold pass the device by.
    pub trusting: bool,
}

/// Parts that the device itself does not hand packets off to.
const DEVICE: Continuation = Continuation(u16::MAX);
const PAST: Continuation = Continuation(u16::MAX - 1);
/// What cores run, with the tag of the place where the device stopped.
const CORES: Continuation = Continuation(u16::MAX - 2);

impl Front {
    /// Divides programs between the device and cores: what was read back from the artefact comes first, and hands
    /// packets off to the cores' parts. Programs behind no wire stay as they are.
    ///
    /// # Panics
    /// If there is nothing that the device can be given, or the artefact is not understood.
    pub fn divide(self, graph: &Graph, wires: Wires) -> Cut {
        let names: Vec<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
        Arc::new(move |programs: Vec<Program>| {
            let origin = |node: NodeId, _: Option<Span>| names[node].clone();
            let division = match self.compile(&programs, &wires, &origin) {
                Ok(division) => division,
                Err(NotCompiled::NoWires) => return programs,
                Err(why) => panic!("{}: {why}", self.target),
            };
            let undecided = codegen::target(self.target).and_then(|target| target.undecided());
            let mut all = Vec::new();
            let mut parts = division.parts.into_iter().peekable();
            for program in programs {
                match parts.next_if(|part| part.program.entry == program.entry) {
                    Some(part) => all.extend(together(part, program, undecided)),
                    None => all.push(program),
                }
            }
            all
        })
    }

    /// What programs become.
    ///
    /// # Errors
    /// If there is nothing that the device can be given, or the artefact is not understood.
    pub fn compile(
        self,
        programs: &[Program],
        wires: &Wires,
        origin: &dyn Fn(NodeId, Option<Span>) -> String,
    ) -> Result<Division, NotCompiled> {
        divide(programs, wires, self.target(), &self.site(wires), origin, None)
    }

    pub(crate) fn target(self) -> &'static dyn Target {
        codegen::target(self.target).expect("a target")
    }

    /// Where it stands: each wire has a port.
    pub(crate) fn site(self, wires: &Wires) -> Site {
        let all = Trust::ALL.map(|of| of.1);
        Site::numbered(wires, if self.trusting { &all } else { &[] })
    }

    /// Whether a packet is the one that was wanted, perhaps with padding behind it that a short frame had (IEEE 802.3
    /// §3.2.8), if the device cannot cut it.
    pub fn is_same(self, wanted: &[u8], got: &[u8]) -> bool {
        let cuts = codegen::target(self.target).is_some_and(Target::cuts);
        got == wanted || !cuts && got.starts_with(wanted) && got.len() <= PADDED
    }
}

/// The least frame, with what a chain may put around it.
const PADDED: usize = 60 + 64;

/// A part as what runs one after the other. What is not as trusted goes to the whole program.
fn together(part: Part, whole: Program, undecided: Option<Continuation>) -> Vec<Program> {
    let Part { offload, device, .. } = part;
    let mut all = Vec::new();
    let sort = offload.sort(DEVICE, PAST);
    let parts: Vec<Program> = offload.continuations.into_iter().map(Program::lower).collect();
    let device = tagging(device, undecided);
    match sort {
        Some(sort) => {
            all.push(sort);
            all.push(Program { continuation: Some(DEVICE), ..device });
            all.push(Program { continuation: Some(PAST), ..whole.clone() });
        }
        None => all.push(device),
    }
    all.push(Program { continuation: Some(CORES), ..behind(whole, &parts) });
    all
}

/// A device's program whose packets come to cores with the tag of the place where it stopped, or with none if it did
/// not decide anything.
fn tagging(mut device: Program, undecided: Option<Continuation>) -> Program {
    for at in 0..device.steps.len() {
        let Step::Exit(exit) = &mut device.steps[at] else { continue };
        let End::Handoff { to } = &mut exit.end else { continue };
        let tag = if Some(*to) == undecided { 0 } else { to.0 };
        *to = CORES;
        let value = TermId(device.terms.len() as u32);
        device.terms.push(Term::Const(tag.into()));
        exit.writes.carried.push(Write { offset: 0, length: 2, value });
    }
    device.normal()
}

/// The wires of a chain under test, given whose packets are frames: its own, those behind `in0`, `in1` …, which tests feed, and the
/// queues `out0`, `out1` …, which they empty.
pub fn wires(graph: &Graph, frames: impl Fn(usize) -> bool) -> Wires {
    let mut wires = Wires::of(graph, frames);
    let is_numbered = |node: usize, prefix: &str| {
        let number = graph.nodes[node].name.strip_prefix(prefix);
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
    };
    for node in 0..graph.nodes.len() {
        let name = &graph.nodes[node].name;
        let port = Port { node, port: 0 };
        if is_numbered(node, "out") {
            wires.egress.insert(port, name.clone());
        }
        if is_numbered(node, "in")
            && let Some(entry) = graph.successors(port).next()
            && graph.predecessors(entry).all(|from| is_numbered(from.node, "in"))
        {
            wires.ingress.entry(entry).or_default().push(name.clone());
        }
    }
    wires
}

/// Marks a frame as an interface does that received it.
pub fn receive(packet: &mut Packet) {
    packet.set_header_offset(Header::Mac, 0);
    let broadcast = packet.data().starts_with(&[0xff; 6]);
    let group = packet.data().first().is_some_and(|byte| byte & 1 == 1);
    packet.set_packet_type(match (broadcast, group) {
        (true, _) => PacketType::Broadcast,
        (_, true) => PacketType::Multicast,
        _ => PacketType::Host,
    });
}
