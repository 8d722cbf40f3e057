//! Programs in the place of elements, and again when handlers changed what elements mean or taps
//! changed where packets pass. Those that a chain starts with are proven before; where that takes long,
//! the chain starts without them, and elements run until they are there. Those that are made again
//! while it runs are installed at once, and proven then.
//!
//! A proof that takes too long is given up. Such a program runs if packets made for each of its exits do what the
//! elements do, or if programs without a proof are asked for ([`How::unproven`]).

mod prover;

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use compiler::prove::{Assurance, BUDGET};
use compiler::{Chain, Synthesizer};
use dataplane::worker::aside;
use dataplane::{InterpretedProgram, Prepared, Router, Tapped};
use ir::program::verify;
use ir::{Edge, Graph, Model, Node, Port, Processing, Program, Store};
use prover::{Finding, Prover, Task};

use crate::session::Cut;

/// After a synthesis, so many times as long as it took passes before the next: a handler that is
/// written all the time does not keep a chain from running.
const REST: u64 = 10;

/// Reported when a chain starts without its programs, and once they are there.
const MEANWHILE: &str = "programs are being synthesised; elements run until then";
const READY: &str = "programs are synthesised and installed";

/// What is said of a program that is left out because it is neither proven nor checked.
const ALLOW: &str = "'catena run --unproven' installs it all the same";

/// What is said of a program that was found wrong.
const WRONG: &str = "synthesis went wrong, as `catena verify` shows by a packet: a fault of Catena";

/// Where the synthesizer is.
enum Workshop {
    Here(Box<Synthesizer>),
    /// In another thread, which gives it back with what it made and what it was given to tidy.
    Away(Receiver<Made>),
}

/// What another thread made.
struct Made {
    synthesizer: Box<Synthesizer>,
    programs: Vec<Prepared>,
    /// What proofs found that have run already.
    found: Vec<Finding>,
    /// Those made before that are still in their places.
    in_place: Vec<Prepared>,
}

/// How programs are made and installed.
#[derive(Clone)]
pub(crate) struct How {
    /// How long a chain waits for the programs that it starts with, which other threads make and
    /// prove, as they do with what is made again. If not given, all is made by the thread that asks,
    /// and what is made again is not proven.
    pub(crate) background: Option<Duration>,
    /// How programs are cut, if they are.
    pub(crate) cut: Option<Cut>,
    /// Whether it is reported when the chain runs without its programs.
    pub(crate) reports: bool,
    /// Whether programs are also installed that are neither proven nor checked by packets for all their exits.
    pub(crate) unproven: bool,
    /// When proofs are given up.
    pub(crate) budgets: Budgets,
}

/// Pairs of steps and rules that the proof of a program may take.
#[derive(Clone, Copy)]
pub(crate) struct Budgets {
    /// Before a chain starts: some tenths of a second.
    pub(crate) start: u64,
    /// While a chain runs, and before it starts for what packets cannot check.
    pub(crate) most: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { start: 400_000, most: BUDGET }
    }
}

/// See the module.
pub(crate) struct Installer {
    workshop: Workshop,
    graph: Graph,
    /// The taps that the synthesizer knows of.
    taps: Vec<Tapped>,
    /// The state of elements that are interpreted, and of programs then.
    store: Option<Rc<RefCell<Store>>>,
    /// Entries that programs were made for.
    installed: HashSet<Port>,
    /// The programs in their places and those taken out since the last synthesis. To give back the
    /// memory of a large one takes time, which other threads have.
    kept: Vec<Prepared>,
    prover: Prover,
    how: How,
    /// Whether the programs that the chain starts with are being made.
    starts: bool,
    /// When the synthesis that goes on began.
    begun: u64,
    /// No synthesis before this time of the router's clock.
    rest: u64,
}

impl Installer {
    /// For a chain whose elements are in a router.
    pub(crate) fn new(
        chain: &Chain,
        store: Option<Rc<RefCell<Store>>>,
        how: How,
        router: &mut Router,
    ) -> Self {
        let graph = chain.graph.clone();
        let models = models(router, &graph);
        let workshop = Workshop::Here(Box::new(synthesizer(&graph, models, store.is_some())));
        Self {
            workshop,
            graph,
            taps: Vec::new(),
            store,
            installed: HashSet::new(),
            kept: Vec::new(),
            prover: Prover::new(how.budgets.most),
            how,
            starts: true,
            begun: 0,
            rest: 0,
        }
    }

    /// Has all programs made and proven and puts them in their places, or leaves that to
    /// [`Self::resume`] if it takes too long. Reports those that are wrong or cannot be run, where
    /// elements go on as they are.
    #[expect(
        clippy::disallowed_methods,
        reason = "by the instance's time it was said how long by real time"
    )]
    pub(crate) fn install(&mut self, router: &mut Router) -> Vec<(Port, String)> {
        self.begin(router);
        let Workshop::Away(done) = &self.workshop else { return Vec::new() };
        let patience = self.how.background.unwrap_or(Duration::MAX);
        match done.recv_timeout(patience) {
            Ok(made) => {
                let made = self.receive(made);
                self.finish(router, made)
            }
            Err(_) => {
                self.report(router, MEANWHILE);
                Vec::new()
            }
        }
    }

    fn report(&self, router: &mut Router, text: &str) {
        if self.how.reports {
            router.message(text);
        }
    }

    /// A step towards programs for entries that lost theirs, and to proofs of those that have
    /// none; to be called until there are no such entries and it says that all is proven.
    pub(crate) fn resume(&mut self, router: &mut Router) -> bool {
        for finding in self.prover.proceed() {
            self.react(router, finding);
        }
        if router.programs().is_stale() || self.starts {
            self.make_again(router);
        }
        self.prover.is_busy() || self.starts
    }

    /// Takes a program out that was found wrong, and reports it.
    fn react(&mut self, router: &mut Router, finding: Finding) {
        let Finding { entry, assurance, replaced } = finding;
        let name = self.name(entry);
        let why = match assurance {
            Assurance::Wrong if replaced => {
                router.message(&format!("warning: {name}: the program before this one: {WRONG}"));
                return;
            }
            Assurance::Wrong => WRONG.to_owned(),
            Assurance::Unchecked { .. } if !replaced && !self.how.unproven => {
                format!("{assurance}; {ALLOW}")
            }
            _ => {
                if !replaced {
                    router.message(&noted(name, &assurance));
                }
                return;
            }
        };
        router.programs().uninstall(entry);
        router.message(&format!(
            "warning: {name}: its program is removed, packets go from element to element from here on: {why}"
        ));
    }

    fn name(&self, entry: Port) -> &str {
        self.graph.nodes.get(entry.node).map_or("tap", |node| &node.name)
    }

    fn make_again(&mut self, router: &mut Router) {
        let made = match &self.workshop {
            Workshop::Here(_) if router.time() < self.rest => return,
            Workshop::Here(_) => None,
            Workshop::Away(done) => match done.try_recv() {
                Ok(made) => Some(self.receive(made)),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    let models = models(router, &self.graph);
                    let fresh = synthesizer(&self.graph, models, self.store.is_some());
                    self.workshop = Workshop::Here(Box::new(fresh));
                    self.taps.clear();
                    return self.pause(router);
                }
            },
        };
        // What was made of something that changed meanwhile is of no use.
        let changed = self.learn(router);
        match made.filter(|_| !changed) {
            Some(made) => self.finish_late(router, made),
            None => {
                self.begin(router);
                if self.how.background.is_none()
                    && let Workshop::Away(done) = &self.workshop
                    && let Ok(made) = done.try_recv()
                {
                    let made = self.receive(made);
                    self.finish_late(router, made);
                }
            }
        }
    }

    /// Lets time pass before the next synthesis.
    fn pause(&mut self, router: &mut Router) {
        let end = router.time();
        self.rest = end.saturating_add(end.saturating_sub(self.begun).saturating_mul(REST));
    }

    /// Has the synthesizer know what elements mean now and where the taps are; whether any of it
    /// is new to it.
    fn learn(&mut self, router: &mut Router) -> bool {
        let Workshop::Here(synthesizer) = &mut self.workshop else { return false };
        let taps = router.taps().all();
        let mut changed = taps != self.taps;
        if changed {
            let graph = tapped(&self.graph, &taps);
            let (known, all) = (self.graph.nodes.len(), graph.nodes.len());
            let models = (known..all).map(|_| tap_model());
            synthesizer.rewire(graph, models, known);
            self.taps = taps;
        }
        for (id, node) in self.graph.nodes.iter().enumerate() {
            changed |= synthesizer.change(id, model(router, node));
        }
        changed
    }

    fn begin(&mut self, router: &mut Router) {
        self.begun = router.time();
        let (done, made) = channel();
        let away = Workshop::Away(made);
        let Workshop::Here(mut synthesizer) = std::mem::replace(&mut self.workshop, away) else {
            return;
        };
        let mut in_place = std::mem::take(&mut self.kept);
        let (starts, budgets, cut) = (self.starts, self.how.budgets, self.how.cut.clone());
        let work = move || {
            in_place.retain(Prepared::is_shared);
            let mut programs = synthesizer.synthesize().programs;
            let mut found = Vec::new();
            if starts {
                let mut first = task(&synthesizer, programs.clone());
                found = first.run_first(budgets.start, budgets.most);
            }
            if let Some(cut) = cut {
                programs = cut(programs);
            }
            let programs = programs.into_iter().map(Prepared::new).collect();
            // The chain may have ended.
            let _ = done.send(Made { synthesizer, programs, found, in_place });
        };
        if self.how.background.is_none() {
            work();
        } else if let Err(why) = aside("synthesis", work) {
            // The synthesizer is lost; another will be made.
            router.message(&format!("no thread to make programs: {why}"));
        }
    }

    fn receive(&mut self, made: Made) -> (Vec<Prepared>, Vec<Finding>) {
        self.workshop = Workshop::Here(made.synthesizer);
        self.kept.extend(made.in_place);
        (made.programs, made.found)
    }

    /// Installs what was made while the chain runs.
    fn finish_late(&mut self, router: &mut Router, made: (Vec<Prepared>, Vec<Finding>)) {
        let starts = self.starts;
        for (entry, why) in self.finish(router, made) {
            router.message(&match starts {
                true => format!(
                    "warning: {}: packets go from element to element from here on: {why}",
                    self.name(entry)
                ),
                false => format!("{}: not synthesised again: {why}", self.name(entry)),
            });
        }
        match starts {
            true => self.report(router, READY),
            false => self.pause(router),
        }
    }

    /// Puts what was made in its places; what is not proven is from now on.
    fn finish(
        &mut self,
        router: &mut Router,
        (programs, found): (Vec<Prepared>, Vec<Finding>),
    ) -> Vec<(Port, String)> {
        for entry in router.programs().stale() {
            self.installed.remove(&entry);
        }
        let mut refused: Vec<(Port, String)> = Vec::new();
        let mut open = Vec::new();
        for Finding { entry, assurance, .. } in found {
            match assurance {
                Assurance::Wrong => refused.push((entry, WRONG.to_owned())),
                Assurance::Unchecked { .. } if !self.how.unproven => {
                    refused.push((entry, format!("{assurance}; {ALLOW}")));
                }
                // Another thread may still find a proof.
                Assurance::Checked { .. } if self.how.background.is_some() => open.push(entry),
                _ => router.message(&noted(self.name(entry), &assurance)),
            }
        }
        let starts = std::mem::take(&mut self.starts);
        if let Workshop::Here(synthesizer) = &self.workshop
            && self.how.background.is_some()
        {
            let is_unproven = |program: &&Program| match starts {
                true => open.contains(&program.entry),
                false => !self.installed.contains(&program.entry),
            };
            let new = programs.iter().map(Prepared::program).filter(is_unproven);
            self.prover.add(task(synthesizer, new.cloned().collect()));
        }
        self.installed.extend(refused.iter().map(|(entry, _)| entry));
        refused.extend(self.put(router, programs));
        refused
    }

    /// Puts programs in their places where there are none.
    fn put(
        &mut self,
        router: &mut Router,
        programs: impl IntoIterator<Item = Prepared>,
    ) -> Vec<(Port, String)> {
        let mut native = Vec::new();
        let there = self.installed.clone();
        for prepared in programs {
            let program = prepared.program();
            debug_assert!(
                verify::is_well_formed(program),
                "{:?} in\n{}",
                verify::verify(program),
                program.text(&self.graph)
            );
            if there.contains(&program.entry) {
                continue;
            }
            self.installed.insert(program.entry);
            match &self.store {
                Some(store) => {
                    let stage = InterpretedProgram::new(program.clone(), store);
                    router.programs().install_stage(program, Box::new(stage));
                }
                None => native.push(prepared),
            }
        }
        self.kept.extend(native.iter().cloned());
        router.programs().install(native)
    }
}

/// What is said of a program that is installed without a proof.
fn noted(name: &str, assurance: &Assurance) -> String {
    format!("note: {name}: {assurance}")
}

/// What the elements of a graph mean now.
pub(crate) fn models(router: &mut Router, graph: &Graph) -> Vec<Model> {
    graph.nodes.iter().map(|node| model(router, node)).collect()
}

fn model(router: &mut Router, node: &Node) -> Model {
    router.element(&node.name).map(|element| element.model()).unwrap_or_default()
}

/// The interpreter runs programs with whole tables, the data plane those specialised for it.
fn synthesizer(graph: &Graph, models: Vec<Model>, interpreted: bool) -> Synthesizer {
    let synthesizer = Synthesizer::new(graph.clone(), models);
    if interpreted { synthesizer.whole_tables() } else { synthesizer }
}

/// Programs to prove, of a chain as a synthesizer knows it.
fn task(synthesizer: &Synthesizer, programs: Vec<Program>) -> Task {
    let (graph, models) = (synthesizer.graph().clone(), synthesizer.models().to_vec());
    Task { graph, models, programs }
}

/// What a tap means.
pub(crate) fn tap_model() -> Model {
    Model::opaque("packets are looked at here")
}

/// A graph with taps in its connections. Nodes that are no taps at present stand alone.
pub(crate) fn tapped(graph: &Graph, taps: &[Tapped]) -> Graph {
    let mut graph = graph.clone();
    let known = graph.nodes.len();
    let processing = |from: &Port, graph: &Graph| -> (Processing, ir::Span) {
        let mut from = *from;
        while from.node >= known
            && let Some(tap) = taps.iter().find(|tap| tap.node == from.node)
        {
            from = tap.from;
        }
        let edge = graph.edges.iter().find(|edge| edge.from == from);
        let span = edge.map_or_else(Default::default, |edge| edge.span);
        (graph.nodes[from.node].outputs[from.port], span)
    };
    let about: Vec<_> = taps.iter().map(|tap| processing(&tap.from, &graph)).collect();
    let last = taps.iter().map(|tap| tap.node + 1).max().unwrap_or(known);
    for node in known..last {
        let of = taps.iter().zip(&about).find(|(tap, _)| tap.node == node);
        let (kind, span) = of.map(|(_, about)| *about).unwrap_or_default();
        graph.nodes.push(Node {
            name: format!("tap {}", node - known),
            class: String::new(),
            config: String::new(),
            span,
            group: None,
            inputs: vec![kind],
            outputs: vec![kind],
        });
    }
    for (tap, (_, span)) in taps.iter().zip(about) {
        let port = Port { node: tap.node, port: 0 };
        graph.edges.retain(|edge| edge.from != tap.from || edge.to.node >= known);
        graph.edges.push(Edge { from: tap.from, to: port, span });
        if tap.to.node < known {
            graph.edges.push(Edge { from: port, to: tap.to, span });
        }
    }
    graph
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use dataplane::Transcript;
    use dataplane::clock::VirtualClock;
    use ir::Sources;

    use super::*;
    use crate::closed::Closed;
    use crate::files::Disk;

    /// What a router reports.
    #[derive(Clone, Default)]
    struct Heard(Rc<RefCell<Transcript>>);

    impl dataplane::Listener for Heard {
        fn message(&mut self, text: &str) {
            self.0.borrow_mut().message(text);
        }

        fn output(&mut self, _: &str) {}

        fn error(&mut self, _: &str, _: &str) {}
    }

    /// Packets do not come to an exit: nobody writes the handler that would send them there.
    const SWITCHED: &str =
        "InfiniteSource(ACTIVE false) -> Strip(14) -> CheckIPHeader -> s :: Switch(0);
        s[0] -> Discard; s[1] -> Discard;";

    /// Installs a chain's programs, of which no proof gets far. Gives the refused ones, and what was reported.
    fn install(text: &str, unproven: bool) -> (Vec<(Port, String)>, Vec<String>) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let mut sources = Sources::new();
        let file = sources.add("chain.click", text.to_string());
        let (mut files, mut closed) = (Disk::default(), Closed::beside(folder));
        let options = compiler::Options::default();
        let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
        let chain = chain.expect("a chain");
        let made = compiler::instantiate(&chain, &mut sources, &mut files, &mut found);
        let mut made = made.expect("elements");
        assert!(made.initialize(&chain, &mut sources, &mut files, &mut closed, &mut found));
        let heard = Heard::default();
        let clock = Box::new(VirtualClock::new(0));
        let listener = Box::new(heard.clone());
        let mut router = Router::new(&chain.graph, made.elements, clock, 0, listener);
        let budgets = Budgets { start: 0, most: 0 };
        let how = How { background: None, cut: None, reports: false, unproven, budgets };
        let refused = Installer::new(&chain, None, how, &mut router).install(&mut router);
        let messages = heard.0.borrow().messages.clone();
        (refused, messages)
    }

    #[test]
    fn programs_without_a_proof_run_if_packets_check_them_or_if_asked_for() {
        let checked = |text: &String| text.contains("but checked by");
        let (refused, reported) = install(include_str!("../../../examples/ip-router.click"), false);
        assert_eq!((refused, reported.len()), (Vec::new(), 4), "{reported:?}");
        assert!(reported.iter().all(checked), "{reported:?}");
        let (refused, reported) = install(SWITCHED, false);
        let [(_, why)] = &refused[..] else { panic!("{refused:?} {reported:?}") };
        assert!(why.contains("not proven (given up after") && why.ends_with(ALLOW), "{why}");
        assert_eq!(reported.len(), 0, "{reported:?}");
        let (refused, reported) = install(SWITCHED, true);
        assert_eq!((refused, reported.len()), (Vec::new(), 1), "{reported:?}");
    }
}
