//! Segments of chains: a program with its length and checksum tests taken for granted, as where the
//! ports of a rack are trusted.

use std::collections::{BTreeMap, BTreeSet};

use catena_lab::chain::Folder;
use codegen::{Device, File, Lack, Segment, Servers, Target};
use compiler::prove::{BUDGET, Comparison, Verdict, View, compare};
use compiler::synthesize_tables;
use compiler::{Options, elaborate, instantiate};
use elements::configure::Devices;
use elements::device::{Device as Interface, DeviceRequest, Received};
use ir::layout::Layouts;
use ir::program::interp::{Environment, interpret};
use ir::program::{
    Continuation, Effect, End, Exit, Mark, Step, StepId, Term, TermId, Writes, verify,
};
use ir::{FileId, NodeId, Port, Program, Sources, Span, Store};

use crate::frames;
use net::{Batch, Pool};

/// Opens whatever is asked for.
struct Anything;

impl Devices for Anything {
    fn open(&mut self, _: &DeviceRequest) -> Result<Box<dyn Interface>, String> {
        Ok(Box::new(Self))
    }
}

impl Interface for Anything {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        batch.drain().for_each(|p| pool.recycle(p));
        Ok(())
    }
}

/// A device's segment, and what its elements are called.
pub(crate) struct Made {
    pub(crate) segment: Segment,
    pub(crate) egress: BTreeMap<Port, u32>,
    names: BTreeMap<NodeId, String>,
    /// Steps that the device was spared.
    pub(crate) spared: Vec<Lack>,
}

/// The port towards the cores.
pub(crate) const CORES: u32 = 9;

impl Made {
    /// The segment of a program: what the target cannot decide is taken to go where most of the
    /// program is, and nothing but what the wire shows is written.
    pub(crate) fn of(
        target: &dyn Target,
        program: Program,
        names: BTreeMap<NodeId, String>,
    ) -> Self {
        let mut program = program;
        let mut egress = BTreeMap::new();
        for step in &mut program.steps {
            if let Step::Exit(exit) = step {
                plain(exit);
                if let End::Push { to, .. } = exit.end {
                    let next = egress.len() as u32 + 2;
                    egress.entry(to).or_insert(next);
                }
            }
        }
        let layouts = Layouts::of(&program);
        let taken = taken(&program);
        let mut to: Vec<StepId> = (0..program.steps.len() as u32).map(StepId).collect();
        let mut spared = Vec::new();
        let mut next = 0;
        for at in (0..program.steps.len()).rev() {
            let step = StepId(at as u32);
            let layout = layouts.at(step);
            let exit = matches!(program.step(step), Step::Exit(_));
            let lack =
                target.decides(&program, step, layout).and(target.does(&program, step, layout));
            let Err(lack) = lack else { continue };
            match &taken[at].iter().collect::<Vec<_>>()[..] {
                // All frames take one branch: the test is for others.
                [one] if !exit => to[at] = to[one.0 as usize],
                _ => {
                    let handoff = Exit::handoff(Continuation(next), Vec::new());
                    program.steps[at] = Step::Exit(Box::new(handoff));
                    next += 1;
                }
            }
            spared.push(lack);
        }
        // Steps that nothing leads to any more are left out.
        let root = to[0];
        let mut reached = vec![false; program.steps.len()];
        reached[root.0 as usize] = true;
        for at in 0..program.steps.len() {
            if reached[at] {
                let next: Vec<StepId> = program.steps[at].next().collect();
                next.iter().for_each(|next| reached[to[next.0 as usize].0 as usize] = true);
            }
        }
        let kept: Vec<usize> = (0..reached.len()).filter(|&at| reached[at]).collect();
        let number = |step: StepId| {
            let at = to[step.0 as usize].0 as usize;
            StepId(kept.binary_search(&at).unwrap() as u32)
        };
        let mut steps = Vec::new();
        for &at in &kept {
            let mut step = program.steps[at].clone();
            step.map_next(number);
            steps.push(step);
        }
        let layouts = kept.iter().map(|&at| layouts.at(StepId(at as u32)).clone()).collect();
        let program = Program { steps, ..program };
        assert_eq!(verify::verify(&program), [], "{program}");
        let segment = Segment { program, layouts, ingress: vec![1] };
        Self { segment, egress, names, spared }
    }

    /// The segment of a chain's first program.
    pub(crate) fn of_chain(target: &dyn Target, chain: &str) -> Self {
        let mut sources = Sources::new();
        let file = sources.add("chain.click", chain);
        let mut files = Folder::default();
        let (elaborated, found) = elaborate(&mut sources, file, &Options::default(), &mut files);
        let elaborated = elaborated.unwrap_or_else(|| panic!("{chain}: {found:?}"));
        let mut found = Vec::new();
        let made = instantiate(&elaborated, &mut sources, &mut files, &mut found);
        let mut made = made.unwrap_or_else(|| panic!("{chain}: {found:?}"));
        let well =
            made.initialize(&elaborated, &mut sources, &mut files, &mut Anything, &mut found);
        assert!(well, "{chain}: {found:?}");
        let graph = &elaborated.graph;
        let models: Vec<ir::Model> = made.elements.iter().map(|element| element.model()).collect();
        let synthesis = synthesize_tables(graph, &models);
        let names = (0..).zip(graph.nodes.iter().map(|node| node.name.clone())).collect();
        let program = synthesis.programs.into_iter().next().expect("a program");
        Self::of(target, program, names)
    }

    /// The same with frames that come in at these ports.
    pub(crate) fn at(mut self, ingress: Vec<u32>) -> Self {
        self.segment.ingress = ingress;
        self
    }

    fn device<T>(&self, then: impl FnOnce(&Device<'_>) -> T) -> T {
        let origin = |node: NodeId, span: Option<Span>| {
            let name = self.names.get(&node).map_or("?", String::as_str);
            format!(
                "{name} (chain.click{})",
                span.map_or(String::new(), |s| format!(":{}", s.start))
            )
        };
        then(&Device {
            segments: vec![self.segment.clone()],
            egress: self.egress.clone(),
            cores: CORES,
            servers: Servers::default(),
            meters: BTreeMap::new(),
            origin: &origin,
        })
    }

    #[track_caller]
    pub(crate) fn emit(&self, target: &dyn Target) -> String {
        let files = self.device(|device| target.emit(device));
        let files = files.unwrap_or_else(|lack| panic!("{lack:?}\n{}", self.segment.program));
        String::from_utf8(files.into_iter().next().unwrap().contents).unwrap()
    }

    /// The program that a text is.
    pub(crate) fn read(&self, target: &dyn Target, text: &str) -> Result<Program, codegen::Unread> {
        let file = File { name: "flows.txt".into(), contents: text.into() };
        let programs = self.device(|device| target.read(&[file], device))?;
        let program = programs.into_iter().next().unwrap();
        assert_eq!(verify::verify(&program), [], "{text}\n{program}");
        Ok(program)
    }

    /// Compares a program that was read with the segment's, for frames whose headers are right.
    pub(crate) fn compare(&self, read: &Program) -> Verdict {
        let lowered = |program: &Program| match program.has_prefixes() {
            true => program.clone().lower(),
            false => program.clone(),
        };
        let [a, b] = [&self.segment.program, read].map(|program| lowered(&sane(program)));
        let names =
            |node: NodeId| self.names.get(&node).cloned().unwrap_or_else(|| node.to_string());
        let comparison = Comparison {
            a: &a,
            b: &b,
            names_a: &names,
            names_b: &names,
            view: View::Whole,
            budget: BUDGET,
        };
        compare(&comparison).verdict
    }

    #[track_caller]
    pub(crate) fn prove(&self, target: &dyn Target) -> (String, Program) {
        let text = self.emit(target);
        let read = self.read(target, &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        match self.compare(&read) {
            Verdict::Equal => (text, read),
            Verdict::Different(difference) => {
                panic!("{difference:?}\n{}\n{text}\n{read}", self.segment.program)
            }
            other => panic!("{other:?}\n{}\n{text}\n{read}", self.segment.program),
        }
    }
}

/// By step, where good frames go from there.
fn taken(program: &Program) -> Vec<BTreeSet<StepId>> {
    let mut all = vec![BTreeSet::new(); program.steps.len()];
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..4000 {
        let frame = frames::good(&mut random);
        let mut path = Path::default();
        let mut packet = Pool::new().packet(&frame);
        interpret(program, &mut packet, &mut Store::default(), &mut path).unwrap();
        for pair in path.0.windows(2) {
            all[pair[0].0 as usize].insert(pair[1]);
        }
    }
    all
}

/// The steps that a packet comes to.
#[derive(Default)]
pub(crate) struct Path(Vec<StepId>);

impl Environment for Path {
    fn now(&self) -> u64 {
        0
    }

    fn note(&mut self, _: NodeId, _: ir::Reason) {}

    fn reached(&mut self, step: StepId) {
        self.0.push(step);
    }
}

/// Leaves of an exit what the wire shows.
fn plain(exit: &mut Exit) {
    if let End::Push { .. } = exit.end {
        exit.writes = Writes {
            start: exit.writes.start,
            bytes: std::mem::take(&mut exit.writes.bytes),
            marks: [Mark::Keep; 3],
            ..Writes::default()
        };
        exit.effects.retain(|effect| !matches!(effect, Effect::Set { .. }));
    }
}

/// Frames that a switch understands: no LLC, no service tag in front, and headers that are whole.
const SANE: &str = "program behind [0] e
elements 1 e

s0: e if meta.len in {18..65535} s1 else s26
s1: e switch data[96+16] {0..1535, 34984} s26, {2048} s2, {2054} s12, {33024} s15, else s27
s2: e if meta.len in {34..65535} s3 else s26
s3: e if data[116+4] == 5 s4 else s26
s4: e if data[192+16] in {0..65534} s5 else s26
s5: e if data[128+16] + 14 <= meta.len s6 else s26
s6: e if data[128+16] in {20..65535} s7 else s26
s7: e switch data[184+8] {0} s26, {6} s8, {1, 17} s11, else s27
s8: e if data[128+16] in {40..65535} s9 else s26
s9: e if data[368+4] in {5..15} s10 else s26
s10: e if data[368+4] * 4 + 20 <= data[128+16] s27 else s26
s11: e if data[128+16] in {28..65535} s27 else s26
s12: e if meta.len in {42..65535} s13 else s26
s13: e if data[112+48] == 00:01:08:00:06:04 s14 else s26
s14: e if data[160+16] in {0..255} s27 else s26
s15: e switch data[128+16] {0..1535} s26, {2048} s16, {2054, 33024, 34984} s26, else s27
s16: e if meta.len in {38..65535} s17 else s26
s17: e if data[148+4] == 5 s18 else s26
s18: e if data[224+16] in {0..65534} s19 else s26
s19: e if data[160+16] + 18 <= meta.len s20 else s26
s20: e if data[160+16] in {20..65535} s21 else s26
s21: e switch data[216+8] {0} s26, {6} s22, {1, 17} s25, else s27
s22: e if data[160+16] in {40..65535} s23 else s26
s23: e if data[400+4] in {5..15} s24 else s26
s24: e if data[400+4] * 4 + 20 <= data[160+16] s27 else s26
s25: e if data[160+16] in {28..65535} s27 else s26
s26: exit visited [0] e
  drop insane at e
s27: exit visited [0] e
  drop sane at e
";

/// Whether [`SANE`] says so of a frame.
pub(crate) fn is_sane(frame: &[u8]) -> bool {
    let guard = ir::text::parse_programs(FileId(0), SANE).unwrap();
    let mut packet = Pool::new().packet(frame);
    let path = &mut Path::default();
    let exit = interpret(&guard.programs[0], &mut packet, &mut Store::default(), path).unwrap();
    matches!(exit.end, End::Drop { reason, .. } if reason.0 == "sane")
}

/// The program behind tests of [`SANE`].
pub(crate) fn sane(program: &Program) -> Program {
    let guard = ir::text::parse_programs(FileId(0), SANE).unwrap_or_else(|e| panic!("{e:?}"));
    let guard = guard.programs.into_iter().next().unwrap();
    let mut joined = program.clone();
    let steps = guard.steps.len() as u32;
    let mut known: Vec<TermId> = Vec::new();
    for term in &guard.terms {
        let mut term: Term = term.clone();
        term.map_operands(|operand| known[operand.0 as usize]);
        let there = joined.terms.iter().position(|other| *other == term);
        known.push(TermId(there.unwrap_or_else(|| {
            joined.terms.push(term);
            joined.terms.len() - 1
        }) as u32));
    }
    let is_sane = |step: &Step| matches!(step, Step::Exit(exit) if matches!(exit.end, End::Drop { reason, .. } if reason.0 == "sane"));
    let mut all = Vec::new();
    for step in &guard.steps {
        let mut step = step.clone();
        step.map_terms(|term| known[term.0 as usize]);
        step.map_next(|next| match is_sane(guard.step(next)) {
            true => StepId(steps),
            false => next,
        });
        match &mut step {
            Step::Test { element, .. } | Step::Switch { element, .. } => {
                *element = program.entry.node
            }
            Step::Exit(exit) => {
                exit.visited = vec![program.entry];
                if let End::Drop { element, .. } = &mut exit.end {
                    *element = program.entry.node;
                }
            }
            _ => {}
        }
        all.push(step);
    }
    for step in &program.steps {
        let mut step = step.clone();
        step.map_next(|next| StepId(next.0 + steps));
        all.push(step);
    }
    joined.steps = all;
    joined.normal()
}
