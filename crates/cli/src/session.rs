//! From a configuration's text to a router that can run.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use compiler::equivalence::{Verdict, prove_programs};
use compiler::{Chain, Synthesizer};
use dataplane::clock::Clock;
use dataplane::{Interpreted, InterpretedProgram, Listener, Router};
use elements::configure::{Devices, Files, Part};
use ir::program::verify;
use ir::{Diagnostic, FileId, Graph, Model, Node, Port, Program, Sources, Store};

/// Which code carries packets through the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// Each element's own.
    Native,
    /// The interpreter, on each element's model.
    Interpreted,
    /// The programs that the chain becomes, and each element's own code where none takes its
    /// place.
    #[default]
    Synthesised,
    /// The interpreter, on the programs that the chain becomes, and on the models of the elements
    /// that are left.
    SynthesisedInterpreted,
}

impl Path {
    fn is_interpreted(self) -> bool {
        matches!(self, Path::Interpreted | Path::SynthesisedInterpreted)
    }

    fn is_synthesised(self) -> bool {
        matches!(self, Path::Synthesised | Path::SynthesisedInterpreted)
    }
}

/// How a router is made.
pub struct Setup<'a> {
    /// Variables given on the command line.
    pub variables: Vec<(String, String)>,
    /// Reads further files.
    pub files: &'a mut dyn Files,
    /// Opens devices.
    pub devices: &'a mut dyn Devices,
    /// Tells the time.
    pub clock: Box<dyn Clock>,
    /// Takes messages and errors.
    pub listener: Box<dyn Listener>,
    /// Seed of random choices.
    pub seed: u64,
    /// Which code carries packets.
    pub path: Path,
}

/// Elaborates a configuration, makes its elements and connects them. Diagnostics, warnings too,
/// are added to `diagnostics`; `None` if there was an error among them.
pub fn start(
    sources: &mut Sources,
    file: FileId,
    setup: Setup<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Chain, Router)> {
    let options = compiler::Options { variables: setup.variables };
    let (chain, found) = compiler::elaborate(sources, file, &options, setup.files);
    diagnostics.extend(found);
    let chain = chain?;
    let make = Make {
        part: Part::default(),
        files: setup.files,
        devices: setup.devices,
        clock: setup.clock,
        listener: setup.listener,
        seed: setup.seed,
        path: setup.path,
    };
    let router = assemble(&chain, sources, make, diagnostics)?;
    Some((chain, router))
}

/// How a router is made of a chain.
pub struct Make<'a> {
    /// Which of the chain's workers it is for.
    pub part: Part,
    /// Reads further files.
    pub files: &'a mut dyn Files,
    /// Opens devices.
    pub devices: &'a mut dyn Devices,
    /// Tells the time.
    pub clock: Box<dyn Clock>,
    /// Takes messages and errors.
    pub listener: Box<dyn Listener>,
    /// Seed of random choices.
    pub seed: u64,
    /// Which code carries packets.
    pub path: Path,
}

/// Makes the elements of a chain and connects them. Diagnostics, warnings too, are added to
/// `diagnostics`; `None` if there was an error among them.
pub fn assemble(
    chain: &Chain,
    sources: &mut Sources,
    make: Make<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Router> {
    let mut elements =
        compiler::instantiate_part(chain, make.part, sources, make.files, diagnostics)?;
    if !elements.initialize(chain, sources, make.files, make.devices, diagnostics) {
        return None;
    }
    let mut elements = elements.elements;
    let store = make.path.is_interpreted().then(|| Rc::new(RefCell::new(Store::new())));
    if let Some(store) = &store {
        elements = elements
            .into_iter()
            .zip(&chain.graph.nodes)
            .map(|(element, node)| Interpreted::wrap(element, &node.name, store))
            .collect();
    }
    let mut router = Router::new(&chain.graph, elements, make.clock, make.seed, make.listener);
    if make.path.is_synthesised() {
        let mut installer = Installer::new(chain, store, &mut router);
        let programs = installer.synthesizer.synthesize().programs;
        let mut refused = installer.disproved(&programs);
        installer.installed.extend(refused.iter().map(|(entry, _)| *entry));
        refused.extend(installer.install(programs, &mut router));
        diagnostics.extend(refused.into_iter().map(|(entry, why)| {
            Diagnostic::warning(
                "not-synthesised",
                "packets go from element to element from here on",
            )
            .label(chain.graph.nodes[entry.node].span, why)
        }));
        router.set_planner(Box::new(move |router| installer.resume(router)));
    }
    Some(router)
}

/// After a synthesis, so many times as long as it took passes before the next: a handler that is
/// written all the time does not keep a chain from running.
const REST: u64 = 10;

/// Pairs of steps and rules that a proof may take before a chain starts, some tenths of a second.
const PROOF: u64 = 400_000;

/// Puts programs in the place of elements, and again when handlers changed what elements mean.
struct Installer {
    synthesizer: Synthesizer,
    graph: Graph,
    /// The state of elements that are interpreted, and of programs then.
    store: Option<Rc<RefCell<Store>>>,
    /// Entries that programs were made for.
    installed: HashSet<Port>,
    /// No synthesis before this time of the router's clock.
    rest: u64,
}

impl Installer {
    fn new(chain: &Chain, store: Option<Rc<RefCell<Store>>>, router: &mut Router) -> Self {
        let graph = chain.graph.clone();
        let models = graph.nodes.iter().map(|node| model(router, node)).collect();
        let synthesizer = Synthesizer::new(graph.clone(), models);
        Self { synthesizer, graph, store, installed: HashSet::new(), rest: 0 }
    }

    fn resume(&mut self, router: &mut Router) {
        let begin = router.time();
        if begin < self.rest {
            return;
        }
        for (id, node) in self.graph.nodes.iter().enumerate() {
            self.synthesizer.change(id, model(router, node));
        }
        for entry in router.stale() {
            self.installed.remove(&entry);
        }
        let programs = self.synthesizer.synthesize().programs;
        for (entry, why) in self.install(programs, router) {
            let name = &self.graph.nodes[entry.node].name;
            router.message(&format!("{name}: not synthesised again: {why}"));
        }
        let end = router.time();
        self.rest = end.saturating_add(end.saturating_sub(begin).saturating_mul(REST));
    }

    /// The entries whose programs would not do with every packet what the chain does.
    fn disproved(&self, programs: &[Program]) -> Vec<(Port, String)> {
        let (graph, models) = (&self.graph, self.synthesizer.models());
        let (mut proofs, _) = prove_programs(graph, models, programs, PROOF);
        proofs.retain(|proof| matches!(proof.verdict, Verdict::Different(_)));
        let wrong = programs.iter().map(|program| program.entry).filter(|entry| {
            let name = &graph.nodes[entry.node].name;
            proofs.iter().any(|proof| (&proof.entry.0, proof.entry.1) == (name, entry.port))
        });
        let why = "synthesis went wrong, as `catena verify` shows by a packet: a fault of Catena";
        wrong.map(|entry| (entry, why.to_owned())).collect()
    }

    /// Puts programs at entries that have none. Tells of those that cannot be carried out, where
    /// elements go on as they are.
    fn install(&mut self, programs: Vec<Program>, router: &mut Router) -> Vec<(Port, String)> {
        let mut native = Vec::new();
        for program in programs {
            debug_assert!(
                verify::is_well_formed(&program),
                "{:?} in\n{}",
                verify::verify(&program),
                program.text(&self.graph)
            );
            if !self.installed.insert(program.entry) {
                continue;
            }
            match &self.store {
                Some(store) => {
                    let stage = InterpretedProgram::new(program.clone(), store);
                    router.install(&program, Box::new(stage));
                }
                None => native.push(program),
            }
        }
        router.install_programs(native)
    }
}

fn model(router: &mut Router, node: &Node) -> Model {
    router.element(&node.name).map(|element| element.model()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ir::program::Step;

    use super::*;
    use crate::load::Disk;

    #[test]
    fn a_program_that_is_not_what_the_chain_means_is_found_out() {
        let mut sources = Sources::new();
        let text = "Idle -> c :: IPClassifier(udp, -) -> Discard; c[1] -> Discard;";
        let file = sources.add("chain.click", text);
        let (mut files, options) = (Disk::default(), compiler::Options::default());
        let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
        let chain = chain.expect("the chain is right");
        let made = compiler::instantiate(&chain, &mut sources, &mut files, &mut found);
        let elements = made.expect("so are its elements").elements;
        let models: Vec<Model> = elements.iter().map(|element| element.model()).collect();
        let mut installer = Installer {
            synthesizer: Synthesizer::new(chain.graph.clone(), models),
            graph: chain.graph,
            store: None,
            installed: HashSet::new(),
            rest: 0,
        };
        let mut programs = installer.synthesizer.synthesize().programs;
        assert_eq!((programs.len(), installer.disproved(&programs)), (1, Vec::new()));
        let turned = programs[0].steps.iter_mut().any(|step| match step {
            Step::Test { yes, no, .. } => {
                std::mem::swap(yes, no);
                true
            }
            Step::Switch { cases, otherwise, .. } => {
                cases.iter_mut().for_each(|case| std::mem::swap(&mut case.1, otherwise));
                true
            }
            _ => false,
        });
        assert!(turned, "{}", programs[0].text(&installer.graph));
        let disproved = installer.disproved(&programs);
        assert_eq!(disproved.iter().map(|d| d.0).collect::<Vec<_>>(), [programs[0].entry]);
    }
}
