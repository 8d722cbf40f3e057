//! From a configuration's text to a router that can run.

use std::cell::RefCell;
use std::rc::Rc;

use compiler::Chain;
use dataplane::clock::Clock;
use dataplane::{Interpreted, InterpretedProgram, Listener, Router};
use elements::configure::{Devices, Files};
use ir::{Diagnostic, FileId, Model, Sources, Store};

/// Which code carries packets through the elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// Each element's own.
    #[default]
    Native,
    /// The interpreter, on each element's model.
    Interpreted,
    /// The interpreter, on the programs that the chain becomes, and on the models of the elements
    /// that are left.
    SynthesisedInterpreted,
    /// The programs that the chain becomes, and each element's own code where none takes its
    /// place.
    Synthesised,
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
    let mut elements = compiler::instantiate(&chain, sources, setup.files, diagnostics)?;
    if !elements.initialize(&chain, sources, setup.files, setup.devices, diagnostics) {
        return None;
    }
    let mut elements = elements.elements;
    let models: Vec<Model> = elements.iter().map(|element| element.model()).collect();
    let store = Rc::new(RefCell::new(Store::new()));
    if matches!(setup.path, Path::Interpreted | Path::SynthesisedInterpreted) {
        elements = elements
            .into_iter()
            .zip(&chain.graph.nodes)
            .map(|(element, node)| Interpreted::wrap(element, &node.name, &store))
            .collect();
    }
    let mut router = Router::new(&chain.graph, elements, setup.clock, setup.seed, setup.listener);
    if setup.path == Path::SynthesisedInterpreted {
        for program in compiler::synthesize(&chain.graph, &models).programs {
            debug_assert!(
                ir::program::verify::is_well_formed(&program),
                "{:?} in\n{}",
                ir::program::verify::verify(&program),
                program.text(&chain.graph)
            );
            let stage = InterpretedProgram::new(program.clone(), &store);
            router.install(&program, Box::new(stage));
        }
    }
    if setup.path == Path::Synthesised {
        let programs = compiler::synthesize(&chain.graph, &models).programs;
        // Where a program cannot be carried out, elements go on as they are.
        router.install_programs(programs);
    }
    Some((chain, router))
}
