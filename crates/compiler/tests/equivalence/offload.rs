//! Programs that are divided between a device and cores: whatever the device lacks, they together do what the
//! program did.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use catena_compiler::partition::{Ends, Offload, Stay, from_wire, offload};
use catena_compiler::prove::Verdict;
use catena_compiler::synthesize_tables;
use codegen::{Device, File, Lack, Presumed, Presumption, Target, Unread};
use ir::field::meta;
use ir::layout::Layout;
use ir::program::{Continuation, End, Step, StepId, verify};
use ir::{Base, Field, IntervalSet, Port, Program};

use super::{Made, chains};

/// Lacks a share of what it is asked for, by a seed.
struct Lacking {
    seed: u64,
    /// Of ten things.
    lacks: u64,
    cuts: bool,
    /// Whether it presumes what it does not test.
    presumes: bool,
}

impl Lacking {
    /// The same wherever the same is asked.
    fn draw(&self, step: &Step) -> u64 {
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let words = match step {
            Step::Test { atom, .. } => format!("{atom:?}"),
            Step::Switch { on, .. } => format!("{on:?}"),
            step => format!("{step:?}"),
        };
        hasher.hash_one((words, self.seed))
    }

    fn can(&self, step: &Step, lack: Lack) -> Result<(), Lack> {
        match self.draw(step) % 10 < self.lacks {
            true => Err(lack),
            false => Ok(()),
        }
    }
}

impl Target for Lacking {
    fn name(&self) -> &'static str {
        "lacking"
    }

    fn cuts(&self) -> bool {
        self.cuts
    }

    fn decides(
        &self,
        program: &Program,
        step: StepId,
        _: &Layout,
    ) -> Result<Vec<Presumption>, Lack> {
        let step = program.step(step);
        // No device has flows yet.
        if let Step::Lookup { lookup, .. } = step
            && program.flows(*lookup).is_some()
        {
            return Err(Lack::Flows);
        }
        self.can(step, Lack::Length)?;
        if !self.presumes {
            return Ok(Vec::new());
        }
        let least = u128::from(self.draw(step) / 16 % 60);
        let long = Presumed::In(meta::LEN, IntervalSet::range(least, meta::LEN.max()));
        let length = Field::bytes(Base::Data, 16, 2);
        let fits = Presumed::Fits { field: length, times: 1, plus: 14, within: meta::LEN };
        let all = [(long, Lack::Length), (fits, Lack::Checksum)];
        let udp = (Field::bytes(Base::Data, 23, 1), IntervalSet::single(17));
        let when = if self.draw(step) & 4096 == 0 { Vec::new() } else { vec![udp] };
        let all =
            all.map(|(holds, lack)| Presumption { when: when.clone(), holds, lack: Some(lack) });
        // None, one, or both.
        let some = (self.draw(step) / 1024 % 4) as usize;
        Ok(all.into_iter().skip(some / 2).take(some).collect())
    }

    fn does(&self, program: &Program, step: StepId, _: &Layout) -> Result<Vec<Presumed>, Lack> {
        self.can(program.step(step), Lack::Cut)?;
        let protocol = Field::bytes(Base::Data, 23, 1);
        let some = Presumed::In(protocol, IntervalSet::range(1, 17));
        Ok((self.presumes && self.draw(program.step(step)) & 64 == 0)
            .then_some(some)
            .into_iter()
            .collect())
    }

    fn emit(&self, _: &Device<'_>) -> Result<Vec<File>, (usize, StepId, Lack)> {
        Ok(Vec::new())
    }

    fn read(&self, _: &[File], _: &Device<'_>) -> Result<Vec<Program>, Unread> {
        Ok(Vec::new())
    }
}

/// Queues lead to wires.
fn is_wire(made: &Made) -> impl Fn(Port) -> bool + '_ {
    |to| made.graph.nodes[to.node].outputs.contains(&ir::Processing::Pull)
}

fn programs(made: &Made) -> Vec<Program> {
    let tables = synthesize_tables(&made.graph, &made.models).programs;
    made.synthesis.programs.iter().chain(&tables).map(from_wire).collect()
}

fn divide(made: &Made, program: &Program, target: &Lacking, trust: bool) -> Offload {
    let is_wire = is_wire(made);
    let trusts = |lack: &Lack| trust && *lack == Lack::Length;
    let (ingress, first) = (vec![1], Continuation(1));
    let ends = Ends {
        is_wire: &is_wire,
        trust: &trusts,
        mtu: trust.then_some(1500),
        full: &BTreeMap::new(),
        ingress,
        first,
    };
    let parts = offload(program, target, &ends);
    for part in parts.continuations.iter().chain([&parts.segment.program]) {
        assert_eq!(verify::verify(part), [], "{part}");
    }
    assert_eq!(parts.segment.layouts.len(), parts.segment.program.steps.len());
    parts
}

#[test]
fn device_and_cores_together_are_the_program() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut done, mut decided, mut stays, mut differ) = (0, 0, 0, 0);
    for made in chains() {
        let names = |node: ir::NodeId| made.graph.nodes[node].name.clone();
        let is_wire = is_wire(&made);
        for program in programs(&made) {
            for lacks in [0, 1, 1, 2, 2, 3, 5, 10] {
                let (cuts, presumes) = (random.bool(), random.bool());
                let target = Lacking { seed: random.u64(..), lacks, cuts, presumes };
                let trust = random.bool();
                let parts = divide(&made, &program, &target, trust);
                let device = &parts.segment.program;
                let found =
                    parts.prove(&program, device, None, &is_wire, &names).expect("they fit");
                assert!(found.holds(), "{:?} of\n{program}\n{device}", found.together.verdict);
                if let Some(untrusted) = &found.untrusted {
                    differ += usize::from(matches!(untrusted.verdict, Verdict::Different(_)));
                }
                done += parts.classes.iter().filter(|class| class.done).count();
                decided += parts.classes.iter().filter(|class| !class.decided.is_empty()).count();
                stays += parts.classes.iter().filter(|class| !class.stays.is_empty()).count();
            }
        }
    }
    assert!(done > 100 && decided > 50 && stays > 100, "{done}, {decided}, {stays}");
    assert!(differ > 5, "{differ} differ where trust is wrong");
}

#[test]
fn a_device_that_lacks_nothing_does_all_but_elements_own_code() {
    let target = Lacking { seed: 1, lacks: 0, cuts: true, presumes: false };
    for made in chains() {
        for program in programs(&made) {
            let parts = divide(&made, &program, &target, false);
            for class in &parts.classes {
                let reasons = class.stays.iter().chain(&class.decided);
                let only = |stay: &Stay| matches!(stay.lack, Lack::Element | Lack::Flows);
                assert!(reasons.clone().all(only), "{class:?}");
                let Step::Exit(exit) = program.step(class.exit) else { panic!("no exit") };
                let dropped = matches!(exit.end, End::Drop { .. });
                assert!(class.done || reasons.count() > 0, "{class:?}");
                assert!(!dropped || class.done || !class.stays.is_empty(), "{class:?}");
            }
        }
    }
}

#[test]
fn mistakes_of_a_device_are_found() {
    let made = &chains()[0];
    let names = |node: ir::NodeId| made.graph.nodes[node].name.clone();
    let target = Lacking { seed: 4, lacks: 1, cuts: false, presumes: false };
    for program in programs(made) {
        let parts = divide(made, &program, &target, false);
        let is_wire = is_wire(made);
        let device = &parts.segment.program;
        let mut tried = 0;
        for at in 0..device.steps.len() {
            let mut wrong = device.clone();
            match &mut wrong.steps[at] {
                Step::Test { yes, no, .. } if yes != no => std::mem::swap(yes, no),
                Step::Exit(exit) => match &mut exit.end {
                    End::Handoff { to } if parts.continuations.len() > 1 => {
                        to.0 = 1 + to.0 % parts.continuations.len() as u16;
                    }
                    _ if exit.writes.bytes.pop().is_some() => {}
                    _ => continue,
                },
                _ => continue,
            }
            let found = parts.prove(&program, &wrong, None, &is_wire, &names);
            let equal = found.as_ref().is_ok_and(catena_compiler::partition::Assured::holds);
            // A packet that is told wrongly where to go on is decided anew there only if nothing is known.
            assert!(!equal, "step {at} of\n{device}");
            tried += 1;
        }
        assert!(tried >= 4, "{tried}");
    }
}
