//! What a device would do of one network function, if it had that alone.

use std::collections::BTreeMap;

use codegen::stages::{At, Hardware, Pipeline, fit};
use codegen::{Lack, Target};
use ir::program::{End, Step};
use ir::{Graph, Model, NodeId, Op, Port};
use net::{Packet, Pool};

use super::Function;
use crate::partition::{NotCompiled, Origin, Part, Site, Stay, Trust, Wires, divide};
use crate::synthesize_tables;

/// What a device does of a network function.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The share of packets that cores take all the same.
    pub left: f64,
    /// Whether that is a share of packets that were tried, not of traffic classes.
    pub is_tried: bool,
    /// Traffic classes that leave the function.
    pub classes: usize,
    /// Those of them that the device is done with.
    pub done: usize,
    /// What it leaves to cores and why; what concerns most packets first.
    pub stays: Vec<Stay>,
    /// Numbers of tags that packets have from there to cores.
    pub numbers: usize,
    /// Bytes of the artefact.
    pub bytes: usize,
    /// Its tables, if it consists of tables.
    pub pipeline: Option<Pipeline>,
    /// Stages that these take, if the device has stages and it fits.
    pub stages: Option<u32>,
}

/// The share of packets that a core may take of a function that runs on a device: those that are out of the ordinary, such as
/// expired ones.
const ODD: f64 = 0.01;

impl Candidate {
    /// Whether the function runs on the device, and cores take nothing but what is out of the ordinary.
    pub fn runs(&self) -> bool {
        self.done > 0 && self.left <= ODD
    }

    /// Entries of all tables.
    pub fn entries(&self) -> u64 {
        self.pipeline.iter().flat_map(|of| &of.tables).map(|table| table.entries).sum()
    }

    /// Tables.
    pub fn tables(&self) -> usize {
        self.pipeline.as_ref().map_or(0, |of| of.tables.len())
    }
}

/// What is around a function that a device would have.
pub struct Around<'a> {
    /// The device's room, if that is to be kept to.
    pub hardware: Option<&'a Hardware>,
    /// What frames are known to be that come to the chain.
    pub trust: &'a [Trust],
    /// Frames that are tried.
    pub frames: &'a [Vec<u8>],
    /// Where frames come into the chain.
    pub wires: &'a Wires,
    /// Words for elements.
    pub origin: Origin<'a>,
}

/// What a target does of a function: frames come to each of its inputs, and leave at each of its outputs. If it does not run
/// so, it is asked in its chain, of whose other functions there is only what says where headers are.
///
/// # Errors
/// Why it does nothing at all: of an element, if that is it.
pub fn candidate(
    (graph, models): (&Graph, &[Model]),
    function: &Function,
    target: &dyn Target,
    around: &Around<'_>,
) -> Result<Candidate, (Option<NodeId>, String)> {
    let inside = |node: NodeId| function.elements.binary_search(&node).is_ok();
    // Programs begin and end where the function does.
    let own = |(node, model): (NodeId, &Model)| match inside(node) {
        true => model.clone(),
        false => Model::opaque("is another function"),
    };
    let alone: Vec<Model> = models.iter().enumerate().map(own).collect();
    let mut wires = Wires::default();
    for edge in &graph.edges {
        match (inside(edge.from.node), inside(edge.to.node)) {
            (false, true) => {
                let name = format!("in{}", wires.ingress.len());
                wires.ingress.entry(edge.to).or_insert_with(|| vec![name]);
            }
            (true, false) => {
                let name = format!("out{}", wires.egress.len());
                wires.egress.entry(edge.to).or_insert(name);
            }
            _ => {}
        }
    }
    let found = ask((graph, &alone), &wires, target, around);
    if found.as_ref().is_ok_and(Candidate::runs) {
        return found;
    }
    // What packets pass before they come to it, and behind it.
    let mut is_there: Vec<bool> = (0..models.len()).map(inside).collect();
    for is_before in [true, false] {
        let mut waiting: Vec<NodeId> = function.elements.clone();
        while let Some(node) = waiting.pop() {
            for edge in &graph.edges {
                let (from, to) = match is_before {
                    true => (edge.to.node, edge.from.node),
                    false => (edge.from.node, edge.to.node),
                };
                if from == node && !std::mem::replace(&mut is_there[to], true) {
                    waiting.push(to);
                }
            }
        }
    }
    let mut wires = around.wires.clone();
    wires.ingress.retain(|port, _| is_there[port.node]);
    let is_end = |node: NodeId| wires.egress.keys().any(|port| port.node == node);
    let model = |(node, model): (NodeId, &Model)| match is_there[node] {
        true if inside(node) || is_end(node) || is_about_headers(model) => model.clone(),
        true => {
            let outputs = graph.edges.iter().filter(|edge| edge.from.node == node);
            let output = outputs.clone().find(|edge| is_there[edge.to.node]);
            let port = output.and_then(|edge| u8::try_from(edge.from.port).ok()).unwrap_or(0);
            Model::from_block(vec![Op::Emit(port.into())])
        }
        false => Model::opaque("is another function"),
    };
    let within: Vec<Model> = models.iter().enumerate().map(model).collect();
    match ask((graph, &within), &wires, target, around) {
        Ok(better) if better.runs() => Ok(better),
        // If it does nothing in either case, that which says why.
        Ok(other) if found.as_ref().is_ok_and(|found| found.stays.is_empty()) => Ok(other),
        _ => found,
    }
}

/// Rules by which a type of frames is told.
const FEW: usize = 2;

/// Whether an element says where headers are, or of what type a frame is, and keeps nothing but counts.
fn is_about_headers(model: &Model) -> bool {
    fn any(block: &[Op], is_it: &dyn Fn(&Op) -> bool) -> bool {
        block.iter().any(|op| is_it(op) || op.blocks().any(|block| any(block, is_it)))
    }
    let has = |is_it: &dyn Fn(&Op) -> bool| model.inputs.iter().any(|block| any(block, is_it));
    let places = |op: &Op| {
        matches!(op, Op::Pull(_) | Op::Mark(..) | Op::Unmark(_) | Op::Fresh)
            || matches!(op, Op::Match { rules, .. } if rules.len() <= FEW)
    };
    let is_other = |op: &Op| {
        matches!(op, Op::Opaque(_) | Op::Lookup { .. } | Op::Read(..) | Op::FlowLookup { .. })
            || matches!(op, Op::Match { rules, .. } if rules.len() > FEW)
    };
    has(&places) && !has(&is_other)
}

/// What a target does of the chain with some models.
fn ask(
    (graph, models): (&Graph, &[Model]),
    wires: &Wires,
    target: &dyn Target,
    around: &Around<'_>,
) -> Result<Candidate, (Option<NodeId>, String)> {
    let opaque = |port: &Port| models[port.node].is_opaque();
    if let Some(port) = wires.ingress.keys().find(|port| opaque(port)) {
        return Err((Some(port.node), Lack::Element.to_string()));
    }
    let mut site = Site::numbered(wires, around.trust);
    site.hardware = around.hardware.cloned();
    let programs = synthesize_tables(graph, models).programs;
    let division =
        divide(&programs, wires, target, &site, around.origin, None).map_err(|why| match why {
            NotCompiled::NoWires => (None, Lack::Element.to_string()),
            why => (None, why.to_string()),
        })?;
    let pipeline = division.tables.map(|tables| tables.pipeline);
    let stages =
        pipeline.as_ref().zip(around.hardware).and_then(|(pipeline, hardware)| {
            match fit(pipeline, hardware).at {
                At::Stages(placement) => Some(placement.stages),
                At::Tables(_) | At::Nowhere => None,
            }
        });
    let mut tried = Tried::default();
    for part in &division.parts {
        tried.part(part, around.frames);
    }
    let leaves = |part: &Part, class: &crate::partition::Class| match part.program.step(class.exit)
    {
        Step::Exit(exit) => {
            matches!(exit.end, End::Push { to, .. } if division.egress.contains_key(&to))
        }
        _ => false,
    };
    let mut reasons = tried.reasons;
    let (mut classes, mut done) = (0, 0);
    for part in &division.parts {
        for class in part.offload.classes.iter().filter(|class| leaves(part, class)) {
            classes += 1;
            if class.done {
                done += 1;
            } else {
                class.decided.iter().chain(&class.stays).for_each(|stay| {
                    reasons.entry(stay.clone()).or_insert(0);
                });
            }
        }
        part.full.iter().for_each(|stay| {
            *reasons.entry(stay.clone()).or_insert(0) += 1;
        });
    }
    // What is trusted is asked again only where something else is.
    let is_trusted = |stay: &Stay| around.trust.iter().any(|trust| trust.covers(&stay.lack));
    if reasons.keys().any(|stay| !is_trusted(stay)) {
        reasons.retain(|stay, _| !is_trusted(stay));
    }
    let mut stays: Vec<(Stay, u64)> = reasons.into_iter().collect();
    stays.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    // Packets that nearly all are dropped say nothing of those that are not.
    let is_tried = tried.sent + tried.left > 0 && (tried.sent + tried.left) * 100 >= tried.all;
    let left = match is_tried {
        true => tried.left as f64 / tried.all as f64,
        false => (classes - done) as f64 / classes.max(1) as f64,
    };
    Ok(Candidate {
        left,
        is_tried,
        classes,
        done,
        stays: stays.into_iter().map(|(stay, _)| stay).collect(),
        numbers: division.parts.iter().map(|part| part.offload.handoffs.len()).sum(),
        bytes: division.files.iter().map(|file| file.contents.len()).sum(),
        pipeline,
        stages,
    })
}

/// What became of frames.
#[derive(Default)]
struct Tried {
    all: u64,
    /// Sent on by the device.
    sent: u64,
    /// Left to cores.
    left: u64,
    /// Why, and for how many.
    reasons: BTreeMap<Stay, u64>,
}

impl Tried {
    fn part(&mut self, part: &Part, frames: &[Vec<u8>]) {
        let mut pool = Pool::new();
        for frame in frames {
            let packet: Packet = pool.packet(frame);
            // A fault of the program is the proof's to find.
            let Ok(end) = part.ends(packet, &mut pool) else { continue };
            self.all += 1;
            match end {
                End::Push { .. } => self.sent += 1,
                End::Drop { .. } => {}
                End::Handoff { to } => {
                    self.left += 1;
                    let handoff = part.offload.handoffs.get(&to);
                    for stay in handoff.iter().flat_map(|of| &of.why) {
                        *self.reasons.entry(stay.clone()).or_insert(0) += 1;
                    }
                }
            }
        }
    }
}
