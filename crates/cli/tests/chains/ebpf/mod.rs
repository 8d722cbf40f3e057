//! Programs as eBPF: what the kernel does to frames is what the reference interpreter does, and what is
//! read back from an object is proven to be the program.

pub mod kernel;
mod leases;
mod lists;
mod proof;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use codegen::ebpf::{self, lease::timed};
use codegen::{Device, Lack, Segment, Servers, Target};
use compiler::synthesize_tables;
use engine::session;
use ir::field::meta;
use ir::layout::Layouts;
use ir::program::{Atom, Continuation, End, Exit, Mark, Step, StepId, Term, Writes};
use ir::{Base, Graph, Model, NodeId, Port, Program, Span};

use crate::filetests;
use crate::programs::chain;
use crate::support::Started;
use crate::tables::models;

/// Names of elements, without more.
fn origin(node: NodeId, _: Option<Span>) -> String {
    format!("element {node}")
}

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_path_buf()
}

/// Of an exit to a port nothing is left but what the wire shows.
fn on_a_wire(exit: &mut Exit) {
    if let End::Push { .. } = exit.end {
        let Writes { start, length, bytes, .. } = std::mem::take(&mut exit.writes);
        exit.writes = Writes { start, length, bytes, marks: [Mark::Keep; 3], ..Writes::default() };
    }
}

/// A program for packets that come in as from a wire. What the device cannot do is handed off; so are lookups of flows, if
/// it has no room for what is behind them.
pub fn segment(program: &Program) -> Program {
    let made = segment_with(program, true);
    match ebpf::compile(&device(&made)) {
        Err((_, _, Lack::Room(..))) => segment_with(program, false),
        _ => made,
    }
}

/// The same, with lookups of flows or without.
fn segment_with(program: &Program, flows: bool) -> Program {
    let mut program = program.clone();
    for term in &mut program.terms {
        match term {
            Term::Input(field) if field.base == Base::Annotation => *term = Term::Const(0),
            Term::Input(field) if *field == meta::TYPE => *term = Term::Const(0),
            Term::Position(_) => *term = Term::Const(0x8000_0000),
            _ => {}
        }
    }
    let mut number = 0;
    for step in &mut program.steps {
        if let Step::Exit(exit) = step {
            on_a_wire(exit);
        }
    }
    let layouts = Layouts::of(&program);
    let whole = program.clone();
    for (index, step) in program.steps.iter_mut().enumerate() {
        let at = StepId(index as u32);
        // What is promised depends on where it leads.
        let is_timed = matches!(step, Step::Test { atom, .. } if timed(&whole, atom).is_some());
        let is_left = match step {
            Step::Lookup { lookup, .. } => !flows && whole.flows(*lookup).is_some(),
            _ => is_timed,
        };
        if is_left || ebpf::EBPF.decides(&whole, at, layouts.at(at)).is_err() {
            number += 1;
            let exit = Exit::handoff(Continuation(number), Vec::new());
            *step = Step::Exit(Box::new(exit));
        }
    }
    reachable(program).normal()
}

/// A segment that hands off where it would look flows up.
fn without_flows(segment: &Program) -> Program {
    let mut program = segment.clone();
    for step in &mut program.steps {
        if let Step::Lookup { lookup, .. } = step
            && segment.flows(*lookup).is_some()
        {
            *step = Step::Exit(Box::new(Exit::handoff(Continuation(4000), Vec::new())));
        }
    }
    reachable(program).normal()
}

/// The program as it goes for packets of which no flow is leased.
fn without_leases(segment: &Program) -> Program {
    let mut program = segment.clone();
    for step in &mut program.steps {
        if let Step::Lookup { lookup, hit, miss } = step
            && segment.flows(*lookup).is_some()
        {
            *hit = *miss;
        }
    }
    reachable(program)
}

/// The program without steps that no step leads to, and without those that constants decide.
fn reachable(mut program: Program) -> Program {
    let decided: Vec<Option<StepId>> = program.steps.iter().map(|s| decided(&program, s)).collect();
    let to = |mut at: StepId| {
        while let Some(next) = decided[at.0 as usize] {
            at = next;
        }
        at
    };
    for step in &mut program.steps {
        step.map_next(to);
    }
    // The first step stays, whatever decides it.
    let mut reached = vec![false; program.steps.len()];
    reached[0] = true;
    for (index, step) in program.steps.iter().enumerate() {
        if reached[index] {
            step.next().for_each(|next| reached[next.0 as usize] = true);
        }
    }
    let mut count = 0;
    let numbers: Vec<u32> = reached
        .iter()
        .map(|reached| {
            count += u32::from(*reached);
            count.wrapping_sub(1)
        })
        .collect();
    let mut steps: Vec<Step> = program
        .steps
        .into_iter()
        .zip(&reached)
        .filter(|(_, reached)| **reached)
        .map(|(step, _)| step)
        .collect();
    for step in &mut steps {
        step.map_next(|next| StepId(numbers[next.0 as usize]));
    }
    Program { steps, ..program }
}

/// Where a step leads that constants decide.
fn decided(program: &Program, step: &Step) -> Option<StepId> {
    match step {
        Step::Test { atom: Atom::Test(term, set), yes, no, .. } => match program.term(*term) {
            Term::Const(value) => Some(if set.contains(*value) { *yes } else { *no }),
            _ => None,
        },
        Step::Switch { on, cases, otherwise, .. } => match program.term(*on) {
            Term::Const(value) => {
                let case = cases.iter().find(|(set, _)| set.contains(*value));
                Some(case.map_or(*otherwise, |case| case.1))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Ports of a device, by the ports of the chain that packets leave by.
pub fn egress(program: &Program) -> BTreeMap<Port, u32> {
    let mut all = BTreeMap::new();
    for (_, exit) in program.exits() {
        if let End::Push { to, .. } = exit.end {
            let next = all.len() as u32 + 2;
            all.entry(to).or_insert(next);
        }
    }
    all
}

/// A device for one program.
pub fn device(program: &Program) -> Device<'static> {
    Device {
        segments: vec![Segment { program: program.clone(), layouts: Vec::new(), ingress: vec![1] }],
        egress: egress(program),
        cores: 100,
        servers: Servers::default(),
        meters: BTreeMap::new(),
        origin: &origin,
    }
}

/// A chain under test.
pub struct Subject {
    pub name: String,
    pub graph: Graph,
    pub models: Vec<Model>,
}

impl Subject {
    /// Its segments: what stands for which program.
    pub fn segments(&self) -> Vec<(String, Port, Program)> {
        let programs = synthesize_tables(&self.graph, &self.models).programs;
        let name = |at: Port| format!("{} {}", self.name, self.graph.nodes[at.node].name);
        programs.iter().map(|of| (name(of.entry), of.entry, segment(of))).collect()
    }
}

/// Takes all chains of examples, filetests and golden programs; `FILETEST` says which.
pub fn subjects(folder: &str) -> Vec<Subject> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(folder);
    let only = std::env::var("FILETEST").unwrap_or_default();
    let mut all = Vec::new();
    for (name, begin) in filetests::chains(&folder) {
        if !name.contains(&only) {
            continue;
        }
        let Some(mut started) = begin(session::Path::Native.into()) else { continue };
        let models = models(&mut started);
        let Started { chain, .. } = started;
        all.push(Subject { name, graph: chain.graph, models });
    }
    for folder in ["examples", "filetests/programs"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
            if path.extension().is_some_and(|e| e == "click") && name.contains(&only) {
                let (chain, models) = chain(&path);
                all.push(Subject { name, graph: chain.graph, models });
            }
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}
