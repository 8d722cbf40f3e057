//! A chain for a device: divided, turned into an artefact, read back and proven.

use std::collections::{BTreeMap, BTreeSet};

use codegen::stages::{Hardware, fit};
use codegen::{Device, File, Lack, Segment, Servers, Tables, Target};
use ir::field::meta;
use ir::interp::Fault;
use ir::model::Reason;
use ir::program::interp::{Environment, interpret};
use ir::program::{Continuation, Effect, End, Exit, LookupId, Step, StepId, Term, Writes};
use ir::{Base, Graph, Model, NodeId, Port, Program, Store};
use net::{Packet, Pool};

use super::leases::settle;
use super::not_compiled::{NotCompiled, Origin, TAGS};
use super::offload::element;
use super::site::{Site, Trust};
use super::{Assured, Ends, Offload, Stay, Wires, from_wire, offload, tags};
use crate::synthesize_tables;

/// The part of a chain behind one entry.
#[derive(Clone, Debug)]
pub struct Divided {
    /// The wires whose frames come there.
    pub wires: Vec<String>,
    /// What the chain does with them.
    pub program: Program,
    /// How it is divided.
    pub offload: Offload,
    /// What was left to cores as the device has no room for it.
    pub full: BTreeSet<Stay>,
    /// Whether the artefact and the parts that cores go on with are that program.
    pub proof: Assured,
}

/// What a chain became for a device.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// By entry behind a wire.
    pub parts: Vec<Divided>,
    /// By input port: the device's port where packets leave that come there.
    pub egress: BTreeMap<Port, u32>,
    /// The device's port towards the cores.
    pub cores: u32,
    /// What it knows of servers.
    pub servers: Servers,
    /// By part and exit of its segment: the meter that its packets pass.
    pub meters: BTreeMap<(usize, StepId), u32>,
    /// The artefact.
    pub files: Vec<File>,
    /// Its tables, if it was emitted and consists of tables.
    pub tables: Option<Tables>,
}

impl Compiled {
    /// By number of a tag: what the place is known by where packets get it. The same place has the same name when the rest of the
    /// chain changes.
    pub fn tags(&self, graph: &Graph) -> BTreeMap<Continuation, String> {
        let parts = self.parts.iter();
        let parts = parts.map(|part| (&part.wires[..], &part.program, &part.offload));
        tags::keys(parts, |node| graph.nodes.get(node).map_or("", |of| of.name.as_str()))
    }

    /// What the device was given to run.
    pub fn device<'a>(&self, origin: Origin<'a>) -> Device<'a> {
        let segments = self.parts.iter().map(|part| part.offload.segment.clone()).collect();
        let (egress, servers) = (self.egress.clone(), self.servers.clone());
        let meters = self.meters.clone();
        Device { segments, egress, cores: self.cores, servers, meters, origin }
    }
}

/// Where packets of a capture are taken care of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// On the device.
    pub done: u64,
    /// On cores, which decide nothing again but what the device was spared.
    pub decided: u64,
    /// On cores, which have to decide, too.
    pub left: u64,
}

impl Share {
    /// Packets.
    pub fn all(&self) -> u64 {
        self.done + self.decided + self.left
    }
}

/// The path of a packet over a device and cores. Steps stand with the elements that they are about.
#[derive(Clone, Debug)]
pub struct DividedPath {
    /// What the device decided: steps of its segment.
    pub device: Vec<(StepId, NodeId)>,
    /// The number that the packet was handed off with, if it was.
    pub tag: Option<Continuation>,
    /// What cores asked and decided then.
    pub cores: Vec<NodeId>,
    /// The exit of the chain's program that it came to.
    pub exit: Option<StepId>,
}

/// Packets meet neither clocks nor flows on a device.
#[derive(Default)]
struct Wire {
    last: Option<StepId>,
    all: Vec<StepId>,
}

impl Environment for Wire {
    fn now(&self) -> u64 {
        0
    }

    fn note(&mut self, _: NodeId, _: Reason) {}

    fn reached(&mut self, step: StepId) {
        self.last = Some(step);
        self.all.push(step);
    }
}

/// Parts that a packet is handed to, one after the other, at most.
const MOST_PARTS: usize = 64;

impl Divided {
    /// Follows a packet over the device and cores.
    ///
    /// # Errors
    /// A [`Fault`] if the program is wrong.
    pub fn follow(&self, packet: &Packet, pool: &mut Pool) -> Result<DividedPath, Fault> {
        let mut run = |program: &Program| {
            let (mut packet, mut wire) = (pool.copy(packet), Wire::default());
            let end = interpret(program, &mut packet, &mut Store::default(), &mut wire);
            let end = end.map(|exit| exit.end);
            pool.recycle(packet);
            let steps = wire.all.into_iter().map(|step| (step, element(program, step)));
            end.map(|end| (end, steps.collect::<Vec<_>>()))
        };
        let exit = run(&self.program)?.1.last().map(|last| last.0);
        let (mut end, device) = run(&self.offload.segment.program)?;
        let (mut tag, mut cores) = (None, Vec::new());
        for _ in 0..MOST_PARTS {
            let End::Handoff { to } = end else { break };
            tag.get_or_insert(to);
            let mut parts = self.offload.continuations.iter();
            let Some(part) = parts.find(|part| part.continuation == Some(to)) else { break };
            let (next, steps) = run(part)?;
            end = next;
            cores.extend(steps.into_iter().map(|(_, element)| element));
        }
        cores.dedup();
        Ok(DividedPath { device, tag, cores, exit })
    }

    /// Counts where a packet is taken care of.
    ///
    /// # Errors
    /// A [`Fault`] if the program is wrong.
    pub fn count(&self, packet: &Packet, pool: &mut Pool, share: &mut Share) -> Result<(), Fault> {
        let mut run = |program: &Program, wire: &mut Wire| {
            let mut packet = pool.copy(packet);
            let end = interpret(program, &mut packet, &mut Store::default(), wire).map(|e| e.end);
            pool.recycle(packet);
            end
        };
        let mut wire = Wire::default();
        let End::Handoff { to } = run(&self.offload.segment.program, &mut wire)? else {
            share.done += 1;
            return Ok(());
        };
        let supposed = self.offload.handoffs.get(&to).and_then(|handoff| handoff.exit);
        if supposed.is_some() {
            run(&self.program, &mut wire)?;
        }
        match supposed.is_some() && supposed == wire.last {
            true => share.decided += 1,
            false => share.left += 1,
        }
        Ok(())
    }
}

/// Rules of a list that a proof compares within seconds, whatever the target. Longer lists are left to cores.
const PROVEN_RULES: usize = 1 << 14;

/// Lists that are too long for a proof.
fn too_long(program: &Program) -> BTreeMap<StepId, Lack> {
    let steps = (0..).map(StepId).zip(&program.steps);
    let long = steps.filter_map(|(at, step)| match step {
        Step::Classify { rules, .. } if rules.len() > PROVEN_RULES => {
            let what = "rules are too many to be proven in one list";
            Some((at, Lack::Room(what, rules.len(), PROVEN_RULES)))
        }
        _ => None,
    });
    long.collect()
}

/// What is left to cores before anything is tried.
fn left_out(program: &Program, target: &dyn Target, sought: Sought) -> BTreeMap<StepId, Lack> {
    let mut all = too_long(program);
    if target.leases() {
        all.extend(sought.left(program));
    }
    all
}

/// What of tables does not fit, and the step that is left to cores for it.
fn misfit(tables: Option<&Tables>, hardware: Option<&Hardware>) -> Option<(usize, StepId, Lack)> {
    let (tables, hardware) = (tables?, hardware?);
    let misfit = fit(&tables.pipeline, hardware).misfit?;
    let last = tables.steps.len().checked_sub(1)?;
    let table = misfit.table.map_or(last, |table| table.0 as usize);
    let (segment, step) = *tables.steps.get(table)?;
    Some((segment, step, misfit.lack))
}

/// What a chain's programs became for a device, before any of it is proven.
#[derive(Clone, Debug)]
pub struct Division {
    /// By entry behind a wire.
    pub parts: Vec<Part>,
    /// By input port: the device's port where packets leave that come there.
    pub egress: BTreeMap<Port, u32>,
    /// What the device knows of servers.
    pub servers: Servers,
    /// By part and exit of its segment: the meter that its packets pass.
    pub meters: BTreeMap<(usize, StepId), u32>,
    /// The artefact.
    pub files: Vec<File>,
    /// Its tables, if it was emitted and consists of tables.
    pub tables: Option<Tables>,
}

/// The part of a chain behind one entry, before it is proven.
#[derive(Clone, Debug)]
pub struct Part {
    /// The wires whose frames come there.
    pub wires: Vec<String>,
    /// The device's ports at which these are.
    pub ingress: Vec<u32>,
    /// What the chain does with them.
    pub program: Program,
    /// How it is divided.
    pub offload: Offload,
    /// What was left to cores as the device has no room for it.
    pub full: BTreeSet<Stay>,
    /// What the artefact has the device do, as it was read back.
    pub device: Program,
}

impl Part {
    /// How a packet ends on the device.
    ///
    /// # Errors
    /// A [`Fault`] if the program is wrong.
    pub(crate) fn ends(&self, mut packet: Packet, pool: &mut Pool) -> Result<End, Fault> {
        let mut wire = Wire::default();
        let end =
            interpret(&self.device, &mut packet, &mut Store::default(), &mut wire).map(|e| e.end);
        pool.recycle(packet);
        end
    }
}

/// Compiles a chain for a device. With `files`, these are read instead of what would be emitted.
///
/// # Errors
/// If there is nothing that the device could be given, or what it was given is not understood.
pub fn compile(
    graph: &Graph,
    models: &[Model],
    wires: &Wires,
    target: &dyn Target,
    site: &Site,
    origin: Origin<'_>,
    files: Option<Vec<File>>,
) -> Result<Compiled, NotCompiled> {
    let programs = synthesize_tables(graph, models).programs;
    let is_given = files.is_some();
    let mut best: Option<Result<Compiled, NotCompiled>> = None;
    // Flows are looked up on the device as far as that is proven, by part.
    let mut sought = vec![Sought::All; wires.ingress.len()];
    // Parts that are as they were are not proven again.
    let mut known = Vec::new();
    loop {
        let division =
            divide_seeking(&programs, wires, target, (site, origin), files.clone(), &sought);
        let made = division.and_then(|division| prove(graph, target, site, division, &mut known));
        let is_proven: Vec<bool> = match &made {
            Ok(made) => made.parts.iter().map(|part| part.proof.holds()).collect(),
            Err(_) => vec![false; sought.len()],
        };
        if !target.leases() || is_proven.iter().all(|proven| *proven) {
            return made;
        }
        // What differs in files that are given is told as of what they are most likely to be.
        if !(is_given && best.as_ref().is_some_and(Result::is_ok)) {
            best = Some(made);
        }
        let mut open = false;
        for (sought, is_proven) in sought.iter_mut().zip(is_proven) {
            if let Some(less) = sought.less().filter(|_| !is_proven) {
                (*sought, open) = (less, true);
            }
        }
        if !open {
            return best.unwrap_or(Err(NotCompiled::NoWires));
        }
    }
}

/// Which flows a device looks up, if it goes by any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sought {
    All,
    /// Those that packets prolong: others are of elements that look into the flows of others.
    Prolonged,
    None,
}

impl Sought {
    /// Fewer of them.
    fn less(self) -> Option<Self> {
        match self {
            Self::All => Some(Self::Prolonged),
            Self::Prolonged => Some(Self::None),
            Self::None => None,
        }
    }

    /// Lookups that are left to cores.
    fn left(self, program: &Program) -> BTreeMap<StepId, Lack> {
        let is_prolonged = |lookup: LookupId| {
            let effects = program.exits().flat_map(|(_, exit)| &exit.effects);
            let mut all = effects.filter_map(|effect| match effect {
                Effect::Update { lookup, .. } => Some(*lookup),
                _ => None,
            });
            all.any(|of| of == lookup)
        };
        let is_left = |lookup: LookupId| match self {
            Sought::All => false,
            Sought::Prolonged => !is_prolonged(lookup),
            Sought::None => true,
        };
        let steps = (0..).map(StepId).zip(&program.steps);
        let left = steps.filter_map(|(at, step)| match step {
            Step::Lookup { lookup, .. } if program.flows(*lookup).is_some() => {
                is_left(*lookup).then_some((at, Lack::Flows))
            }
            _ => None,
        });
        left.collect()
    }
}

/// Proves a division, with the proofs of earlier ones where these are of the same.
fn prove(
    graph: &Graph,
    target: &dyn Target,
    site: &Site,
    division: Division,
    known: &mut Vec<(Program, Divided)>,
) -> Result<Compiled, NotCompiled> {
    let Division { parts, egress, servers, meters, files, tables } = division;
    let name = |node: NodeId| graph.nodes[node].name.clone();
    let is_wire = |to: Port| egress.contains_key(&to);
    let prove = |part: Part| {
        let Part { wires, program, offload, full, device, .. } = part;
        let is_same = |(read, of): &&(Program, Divided)| {
            of.wires == wires
                && of.offload.segment.program == offload.segment.program
                && of.offload.continuations == offload.continuations
                && *read == device
        };
        let proof = match known.iter().find(is_same) {
            Some((_, of)) => of.proof.clone(),
            None => offload
                .prove(&program, &device, target.undecided(), &is_wire, &name)
                .map_err(|why| NotCompiled::Apart(why.to_string()))?,
        };
        let of = Divided { wires, program, offload, full, proof };
        if target.leases() {
            known.push((device, of.clone()));
        }
        Ok(of)
    };
    let parts = parts.into_iter().map(prove).collect::<Result<_, _>>()?;
    Ok(Compiled { parts, egress, cores: site.cores, servers, meters, files, tables })
}

/// The program of a wire that leads to another one, or to an element that is in no program.
fn through(entry: Port) -> Program {
    let exit = Exit {
        effects: Vec::new(),
        writes: Writes::default(),
        end: End::Push { to: entry, native: true },
        barrier: None,
        visited: Vec::new(),
        copies: Vec::new(),
    };
    let steps = vec![Step::Exit(Box::new(exit))];
    let (terms, state, tables, lookups) = Default::default();
    Program { entry, continuation: None, terms, state, tables, lookups, steps }
}

/// Whether a program goes by what a wire shows alone.
fn goes_by_bytes(program: &Program) -> bool {
    program.terms.iter().all(|term| match term {
        Term::Input(field) => field.base != Base::Annotation && *field != meta::TYPE,
        Term::Position(_) => false,
        _ => true,
    })
}

/// Divides programs, with whole tables, between a device and cores, and has the device's part emitted and read back. With
/// `files`, these are read instead of what would be emitted.
///
/// # Errors
/// If there is nothing that the device could be given, or what it was given is not understood.
pub fn divide(
    programs: &[Program],
    wires: &Wires,
    target: &dyn Target,
    site: &Site,
    origin: Origin<'_>,
    files: Option<Vec<File>>,
) -> Result<Division, NotCompiled> {
    let mut sought = Sought::All;
    loop {
        let all = vec![sought; wires.ingress.len()];
        let made = divide_seeking(programs, wires, target, (site, origin), files.clone(), &all);
        match sought.less() {
            // A key that is not read back is left to cores, too.
            Some(less) if target.leases() && matches!(made, Err(NotCompiled::Unread(_))) => {
                sought = less;
            }
            _ => return made,
        }
    }
}

fn divide_seeking(
    programs: &[Program],
    wires: &Wires,
    target: &dyn Target,
    (site, origin): (&Site, Origin<'_>),
    files: Option<Vec<File>>,
    sought: &[Sought],
) -> Result<Division, NotCompiled> {
    let port = |wire: &String| {
        let port = site.ports.get(wire).map(|port| port.number);
        port.ok_or_else(|| NotCompiled::NoPort(wire.clone()))
    };
    let mut egress = BTreeMap::new();
    let comes_back = |wire: &String| site.ports.get(wire).is_some_and(|port| port.from.is_some());
    let is_alone = site.servers.len() <= 1 && site.ports.values().all(|port| port.from.is_none());
    if !site.limits.is_empty() && !target.limits_rates() {
        return Err(NotCompiled::NoLimits);
    }
    if !is_alone && !target.knows_servers() {
        return Err(NotCompiled::OneServer);
    }
    for (to, wire) in &wires.egress {
        let number = port(wire)?;
        // Only servers send packets back.
        if !comes_back(wire) {
            egress.insert(*to, number);
        }
    }
    let is_wire = |to: Port| egress.contains_key(&to);
    let mut behind = Vec::new();
    for (entry, names) in &wires.ingress {
        let ingress = names.iter().map(port).collect::<Result<Vec<u32>, _>>()?;
        let program = match programs.iter().find(|program| program.entry == *entry) {
            Some(program) if names.iter().any(comes_back) && !goes_by_bytes(program) => {
                return Err(NotCompiled::Annotated(origin(entry.node, None)));
            }
            Some(program) => from_wire(program),
            None => through(*entry),
        };
        let program = match target.leases() {
            true => settle(program, &is_wire),
            false => program,
        };
        behind.push((names.clone(), ingress, program));
    }
    if behind.is_empty() {
        return Err(NotCompiled::NoWires);
    }
    // What does not fit is left to cores, and the rest is tried again.
    let mut full: Vec<BTreeMap<StepId, Lack>> =
        behind.iter().zip(sought).map(|(of, sought)| left_out(&of.2, target, *sought)).collect();
    let (parts, servers, meters, files, read, tables) = loop {
        let (mut first, mut handoffs) = (1, BTreeMap::new());
        let mut numbered: Vec<(&[String], &Program, Offload)> = Vec::new();
        for ((names, ingress, program), full) in behind.iter().zip(&full) {
            // What is so of frames from all wires.
            let trusted =
                |trust: &Trust| names.iter().all(|name| site.ports[name].trust.contains(trust));
            let trust = |lack: &Lack| {
                Trust::ALL.iter().any(|(_, trust)| trust.covers(lack) && trusted(trust))
            };
            let ends = Ends {
                is_wire: &is_wire,
                trust: &trust,
                mtu: trusted(&Trust::Mtu).then_some(1500),
                full,
                ingress: ingress.clone(),
                first: Continuation(first),
            };
            let part = offload(program, target, &ends);
            first = first.saturating_add(part.continuations.len() as u16);
            numbered.push((names, program, part));
        }
        if first > TAGS + 1 {
            return Err(NotCompiled::TooManyHandoffs(usize::from(first) - 1));
        }
        site.tags.number(&mut numbered)?;
        let mut parts: Vec<Offload> = numbered.into_iter().map(|(.., part)| part).collect();
        for ((.., program), part) in behind.iter().zip(&parts) {
            site.handoffs((program, part), &is_wire, origin, &mut handoffs)?;
        }
        let segments: Vec<Segment> = parts.iter().map(|part| part.segment.clone()).collect();
        let programs: Vec<&Program> = behind.iter().map(|(.., program)| program).collect();
        let servers = site.servers(handoffs);
        let meters = site.meters(&programs, &parts, &is_wire, origin)?;
        let (egress, cores) = (egress.clone(), site.cores);
        let device = Device { segments, egress, cores, servers, meters, origin };
        let emitted = match &files {
            Some(files) => Ok((files.clone(), None)),
            None => target.emit(&device).and_then(|files| {
                let tables = target.tables(&device);
                match misfit(tables.as_ref(), site.hardware.as_ref()) {
                    Some(misfit) => Err(misfit),
                    None => Ok((files, tables)),
                }
            }),
        };
        match emitted {
            Ok((files, tables)) => {
                let read = target.read(&files, &device).map_err(NotCompiled::Unread)?;
                for (segment, step, lack) in target.leaves(&device) {
                    if let Some(part) = parts.get_mut(segment) {
                        part.leave(step, lack, &read[segment]);
                    }
                }
                break (parts, device.servers, device.meters, files, read, tables);
            }
            Err((segment, step, lack)) => {
                let origin = parts.get(segment).and_then(|part| part.origin(step));
                match origin.and_then(|at| full[segment].insert(at, lack.clone())) {
                    None if origin.is_some() => {}
                    _ => return Err(NotCompiled::DoesNotFit(lack)),
                }
            }
        }
    };
    let part = |((((wires, ingress, program), full), offload), device)| {
        let stay = |(at, lack)| Stay { element: element(&program, at), lack };
        let full = BTreeMap::into_iter(full).filter(|(_, lack)| *lack != Lack::Flows);
        let full = full.map(stay).collect();
        Part { wires, ingress, program, offload, full, device }
    };
    let parts = behind.into_iter().zip(full).zip(parts).zip(read).map(part).collect();
    Ok(Division { parts, egress, servers, meters, files, tables })
}
