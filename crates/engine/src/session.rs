//! From a configuration's text to a router that can run.

use std::cell::RefCell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use compiler::Chain;
use dataplane::clock::Clock;
use dataplane::{Interpreted, Listener, ProgramUse, Router};
use elements::configure::{Devices, Files, WorkerShare};
use ir::{Diagnostic, FileId, Program, Sources, Store};

use crate::installer::{Budgets, How, Installer};

/// Which code carries packets through the chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// Each element's own.
    Native,
    /// The interpreter, on each element's model.
    Interpreted,
    /// The programs that the chain becomes, and each element's native code where none takes its
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

    /// Whether programs replace elements.
    pub fn is_synthesised(self) -> bool {
        matches!(self, Path::Synthesised | Path::SynthesisedInterpreted)
    }
}

/// A seed of random choices that nobody can know.
pub fn system_seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// How a router is made.
pub struct Setup<'a> {
    /// Which of the chain's workers it is for.
    pub part: WorkerShare,
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
    /// How long a chain that starts waits for its programs, which other threads make and prove; so
    /// they do with programs that are made again, so that no packet waits for it. Whether elements or
    /// which program take a packet then depends on how long that takes. If not given, the thread
    /// that makes and runs the router does all that, and nothing depends on time.
    pub background: Option<Duration>,
    /// What takes packets that come to a program: always the program, or the elements where they are faster.
    pub program_use: ProgramUse,
    /// How programs are cut, if they are.
    pub cut: Option<Cut>,
    /// Whether programs are also installed whose proof was given up and whose exits packets cannot check.
    pub unproven: bool,
}

/// Cuts the programs of a chain in parts ([`compiler::partition`]), which all run here.
pub type Cut = Arc<dyn Fn(Vec<Program>) -> Vec<Program> + Send + Sync>;

/// Elaborates a configuration with variables given on the command line, makes its elements and
/// connects them. Diagnostics, warnings too, are added to `diagnostics`; `None` if there was an
/// error among them.
pub fn start(
    sources: &mut Sources,
    file: FileId,
    variables: Vec<(String, String)>,
    setup: Setup<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Chain, Router)> {
    let options = compiler::Options::of(variables);
    let (chain, found) = compiler::elaborate(sources, file, &options, setup.files);
    diagnostics.extend(found);
    let chain = chain?;
    let router = assemble(&chain, sources, setup, diagnostics)?;
    Some((chain, router))
}

/// A device as an element, for the place of the element that stands for it: what comes to it is sent, and what is
/// received leaves it.
pub fn device(name: &str) -> compiler::Device {
    let class = format!("{{ FromDevice({name}) -> output; input -> ToDevice({name}) }}");
    compiler::Device { name: name.into(), class }
}

/// Declares an element of a device's name: what is received leaves it, and what comes to it is sent, if it is to do that.
pub fn wire(device: &str, receives: bool, sends: bool) -> String {
    let receives =
        if receives { format!("FromDevice({device}) -> output;") } else { String::new() };
    let sends = if sends { format!("input -> ToDevice({device});") } else { String::new() };
    format!("{device} :: {{ {receives} {sends} }};\n")
}

/// Makes the elements of a chain and connects them. Diagnostics, warnings too, are added to
/// `diagnostics`; `None` if there was an error among them.
pub fn assemble(
    chain: &Chain,
    sources: &mut Sources,
    setup: Setup<'_>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Router> {
    let mut elements =
        compiler::instantiate_part(chain, setup.part, sources, setup.files, diagnostics)?;
    if !elements.initialize(chain, sources, setup.files, setup.devices, diagnostics) {
        return None;
    }
    let mut elements = elements.elements;
    let store = setup.path.is_interpreted().then(|| Rc::new(RefCell::new(Store::new())));
    if let Some(store) = &store {
        elements = elements
            .into_iter()
            .zip(&chain.graph.nodes)
            .map(|(element, node)| Interpreted::wrap(element, &node.name, store))
            .collect();
    }
    let mut router = Router::new(&chain.graph, elements, setup.clock, setup.seed, setup.listener);
    if setup.path.is_synthesised() {
        router.programs().set_use(setup.program_use);
        let how = How {
            background: setup.background,
            cut: setup.cut,
            reports: setup.part.index == 0,
            unproven: setup.unproven,
            budgets: Budgets::default(),
        };
        let mut installer = Installer::new(chain, store, how, &mut router);
        let refused = installer.install(&mut router);
        diagnostics.extend(refused.into_iter().map(|(entry, why)| {
            Diagnostic::warning(
                "not-synthesised",
                "packets go from element to element from here on",
            )
            .label(chain.graph.nodes[entry.node].span, why)
        }));
        router.programs().set_planner(Box::new(move |router| installer.resume(router)));
    }
    Some(router)
}
