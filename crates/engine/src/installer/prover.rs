//! Proofs that programs do what their chain does.
//!
//! A chain is executed symbolically from the start for each proof, however its programs were made:
//! so what is kept from one synthesis to the next is proven, too.

use std::sync::mpsc::{Receiver, TryRecvError, channel};

use compiler::prove::{Assurance, assure_programs};
use dataplane::worker::aside;
use ir::{Graph, Model, Port, Program};

/// Programs, and the chain that they were made of.
pub(super) struct Task {
    pub(super) graph: Graph,
    pub(super) models: Vec<Model>,
    pub(super) programs: Vec<Program>,
}

/// A program that is not proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// Its entry.
    pub(super) entry: Port,
    /// What is known of it all the same.
    pub(super) assurance: Assurance,
    /// Whether another program has taken its place since.
    pub(super) replaced: bool,
}

impl Task {
    /// The programs that are not proven with so much effort for each.
    pub(super) fn run(&self, budget: u64) -> Vec<Finding> {
        let assured = assure_programs(&self.graph, &self.models, &self.programs, budget);
        let unproven = assured.into_iter().filter(|(_, found)| *found != Assurance::Proven);
        let finding = |(entry, assurance)| Finding { entry, assurance, replaced: false };
        unproven.map(finding).collect()
    }

    /// The same with little effort first, which is what a chain that starts waits for. What is neither proven then nor
    /// checked by packets is worth the effort `most`, as it is not installed otherwise.
    pub(super) fn run_first(&mut self, little: u64, most: u64) -> Vec<Finding> {
        let found = self.run(little);
        let is_unchecked = |f: &Finding| matches!(f.assurance, Assurance::Unchecked { .. });
        let (unchecked, mut settled): (Vec<_>, Vec<_>) = found.into_iter().partition(is_unchecked);
        if !unchecked.is_empty() {
            self.programs.retain(|p| unchecked.iter().any(|finding| finding.entry == p.entry));
            settled.extend(self.run(most));
        }
        settled
    }

    fn entries(&self) -> Vec<Port> {
        self.programs.iter().map(|program| program.entry).collect()
    }
}

/// A proof that another thread works at.
struct Running {
    /// What it is about, and whether that was replaced since.
    about: Vec<(Port, bool)>,
    done: Receiver<Vec<Finding>>,
}

/// Has programs that are in use already proven in another thread, one task after the other.
pub(super) struct Prover {
    /// Pairs of steps and rules that a proof may take.
    budget: u64,
    waiting: Option<Task>,
    running: Option<Running>,
}

impl Prover {
    /// One whose proofs take so many pairs of steps and rules at the most.
    pub(super) fn new(budget: u64) -> Self {
        Self { budget, waiting: None, running: None }
    }

    /// Whether there is something to prove.
    pub(super) fn is_busy(&self) -> bool {
        self.waiting.is_some() || self.running.is_some()
    }

    /// Takes programs to prove. Those that wait with the same entries are not asked about any more,
    /// nor are those behind taps that are gone; all others are programs of this chain, too.
    pub(super) fn add(&mut self, mut task: Task) {
        let entries = task.entries();
        if let Some(running) = &mut self.running {
            for (entry, replaced) in &mut running.about {
                *replaced |= entries.contains(entry);
            }
        }
        if let Some(mut before) = self.waiting.take() {
            let edges = &task.graph.edges;
            let is_connected =
                |node| edges.iter().any(|e| e.from.node == node || e.to.node == node);
            before.programs.retain(|program| {
                !entries.contains(&program.entry) && is_connected(program.entry.node)
            });
            task.programs.append(&mut before.programs);
        }
        self.waiting = Some(task).filter(|task| !task.programs.is_empty());
    }

    /// Continues, and returns what was found since the last call.
    pub(super) fn proceed(&mut self) -> Vec<Finding> {
        let found = self.found();
        if self.running.is_none()
            && let Some(task) = self.waiting.take()
        {
            let about = task.entries().into_iter().map(|entry| (entry, false)).collect();
            let (send, done) = channel();
            let budget = self.budget;
            let work = move || {
                // The chain may have ended.
                let _ = send.send(task.run(budget));
            };
            // Where there is no thread, nobody sends: it is as if the thread had died.
            drop(aside("proof", work));
            self.running = Some(Running { about, done });
        }
        found
    }

    fn found(&mut self) -> Vec<Finding> {
        let Some(Running { about, done }) = &self.running else { return Vec::new() };
        let mut found = match done.try_recv() {
            Ok(found) => found,
            Err(TryRecvError::Empty) => return Vec::new(),
            Err(TryRecvError::Disconnected) => {
                let finding = |&(entry, _): &_| {
                    let why = "the proof could not run".to_owned();
                    let assurance = Assurance::Unchecked { why, exits: (0, 0) };
                    Finding { entry, assurance, replaced: false }
                };
                about.iter().map(finding).collect()
            }
        };
        for finding in &mut found {
            finding.replaced = about.contains(&(finding.entry, true));
        }
        self.running = None;
        found
    }
}

#[cfg(test)]
mod tests {
    use compiler::synthesize;
    use elements::configure::Devices;
    use ir::Sources;
    use ir::program::Step;

    use super::*;
    use crate::closed::Closed;
    use crate::files::Disk;

    /// A chain with its programs.
    fn task() -> Task {
        // Neither is the same as symbolic execution comes to step by step: both proofs take some effort.
        let text = "Idle -> CheckIPHeader -> kind :: IPClassifier(tcp, udp, -);
                    kind[0] -> Queue -> Discard; kind[1] -> Queue -> Discard; kind[2] -> Discard;
                    Idle -> IPFilter(allow tcp, allow src port 5, allow all) -> DecIPTTL
                    -> IPFilter(allow udp, deny src host 1.2.3.4, allow all) -> Queue -> Discard;";
        let mut sources = Sources::new();
        let file = sources.add("chain", text);
        let (mut files, mut closed) = (Disk::default(), Closed::default());
        let options = compiler::Options::default();
        let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
        let chain = chain.expect("a chain");
        let made = compiler::instantiate(&chain, &mut sources, &mut files, &mut found);
        let mut made = made.expect("elements");
        let devices: &mut dyn Devices = &mut closed;
        assert!(made.initialize(&chain, &mut sources, &mut files, devices, &mut found));
        let models: Vec<Model> = made.elements.iter().map(|element| element.model()).collect();
        let programs = synthesize(&chain.graph, &models).programs;
        assert_eq!(programs.len(), 2);
        Task { graph: chain.graph, models, programs }
    }

    /// Swaps what a test leads to.
    fn spoil(program: &mut Program) -> Port {
        let test = program.steps.iter_mut().find_map(|step| match step {
            Step::Test { yes, no, .. } => Some((yes, no)),
            _ => None,
        });
        let (yes, no) = test.expect("a test");
        std::mem::swap(yes, no);
        program.entry
    }

    fn all(prover: &mut Prover) -> Vec<Finding> {
        let mut found = Vec::new();
        while prover.is_busy() {
            found.extend(prover.proceed());
            std::thread::yield_now();
        }
        found
    }

    #[test]
    fn a_wrong_program_is_found() {
        let mut prover = Prover::new(compiler::prove::BUDGET);
        prover.add(task());
        assert_eq!(all(&mut prover), []);
        let mut wrong = task();
        let entry = spoil(&mut wrong.programs[1]);
        prover.add(wrong);
        let wrong = Finding { entry, assurance: Assurance::Wrong, replaced: false };
        assert_eq!(all(&mut prover), [wrong]);
    }

    #[test]
    fn what_cannot_be_proven_is_checked_by_packets() {
        let mut tasks = [task(), task(), task()];
        let wrong = spoil(&mut tasks[1].programs[0]);
        // No packet comes to an exit that nothing leads to.
        let exit = tasks[2].programs[1].exits().next().expect("an exit").1.clone();
        tasks[2].programs[1].steps.push(Step::Exit(Box::new(exit)));
        let found = tasks.map(|task| task.run(0));
        for finding in &found[0] {
            assert!(matches!(finding.assurance, Assurance::Checked { .. }), "{finding:?}");
        }
        assert_eq!(found[0].len(), 2);
        assert_eq!((found[1][0].entry, &found[1][0].assurance), (wrong, &Assurance::Wrong));
        let Assurance::Unchecked { exits: (reached, all), .. } = found[2][1].assurance else {
            panic!("{:?}", found[2]);
        };
        assert_eq!(reached + 1, all);
    }

    #[test]
    fn what_packets_cannot_check_is_worth_more_effort_at_the_start() {
        let mut task = task();
        let exit = task.programs[1].exits().next().expect("an exit").1.clone();
        task.programs[1].steps.push(Step::Exit(Box::new(exit)));
        let first = task.programs[0].entry;
        let [finding] = &task.run_first(0, compiler::prove::BUDGET)[..] else {
            panic!("the second program is proven");
        };
        assert_eq!(finding.entry, first, "it is checked by packets");
    }

    #[test]
    fn what_was_replaced_is_told_of_as_such_or_not_proven_at_all() {
        let mut prover = Prover::new(compiler::prove::BUDGET);
        let (mut wrong, mut other) = (task(), task());
        let entry = spoil(&mut wrong.programs[0]);
        let beside = spoil(&mut other.programs[1]);
        prover.add(wrong);
        assert_eq!(prover.proceed(), []);
        // Now it is in the works. What comes next waits, and is replaced in part.
        prover.add(other);
        let mut right = task();
        right.programs.truncate(1);
        prover.add(right);
        let found = all(&mut prover);
        let finding = |entry, replaced| Finding { entry, assurance: Assurance::Wrong, replaced };
        assert_eq!(found, [finding(entry, true), finding(beside, false)]);
    }

    #[test]
    fn what_waits_behind_a_tap_that_is_gone_is_not_proven() {
        let mut prover = Prover::new(compiler::prove::BUDGET);
        let (mut waits, mut next) = (task(), task());
        waits.programs.remove(0);
        waits.programs[0].entry.node = waits.graph.nodes.len();
        prover.add(waits);
        next.programs.truncate(1);
        prover.add(next);
        assert_eq!(all(&mut prover), []);
    }
}
