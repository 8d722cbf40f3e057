//! Chains that are started in an execution mode, with a clock that tests move.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Debug, Formatter};
use std::io::Read;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use compiler::Chain;
use compiler::partition::{Partition, partition};
use dataplane::clock::VirtualClock;
use dataplane::io::Bindings;
use dataplane::{Listener, ProgramUse, Router, Transcript};
use elements::configure::{Files, WorkerShare, Zeroizing};
use engine::session::{self, Path, Setup};
use ir::program::{Continuation, StepId};
use ir::{Diagnostic, FileId, Program, Sources, has_errors};

use crate::front::{Front, wires};

/// How a chain is executed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Mode {
    /// Which code carries packets.
    pub path: Path,
    /// Whether programs are cut at random steps, and run in parts.
    pub cut: bool,
    /// Whether elements take some bursts, drawn at random, in the place of programs.
    pub drawn: bool,
    /// The device that stands in front of the cores.
    pub device: Option<Front>,
}

impl Mode {
    /// Packets are carried by this code, and that is all.
    pub const fn of(path: Path) -> Self {
        Self { path, cut: false, drawn: false, device: None }
    }

    /// Behind devices of every target, trusting and not. What was read back from the artefact is interpreted, and so is the cores' part.
    pub fn behind_devices() -> Vec<Self> {
        let path = Path::SynthesisedInterpreted;
        let fronts = codegen::targets().iter().flat_map(|target| {
            [false, true].map(|trusting| Front { target: target.label(), trusting })
        });
        fronts.map(|front| Self { device: Some(front), ..Self::of(path) }).collect()
    }

    /// Whether a chain of a collection is executed in this mode: behind each target, one half of them trust ports, and the other
    /// half do not, with `SOAK` all do both. That all become right for a target is proven elsewhere.
    pub fn is_for(&self, chain: &str) -> bool {
        let Some(Front { target, trusting }) = self.device else { return true };
        let sum: u32 = chain.bytes().chain(target.bytes()).map(u32::from).sum();
        trusting == sum.is_multiple_of(2) || std::env::var_os("SOAK").is_some()
    }
}

impl From<Path> for Mode {
    fn from(path: Path) -> Self {
        Self::of(path)
    }
}

impl Debug for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (cut, drawn) =
            (if self.cut { "Cut" } else { "" }, if self.drawn { "Drawn" } else { "" });
        write!(f, "{:?}{cut}{drawn}", self.path)?;
        let Some(Front { target, trusting }) = self.device else { return Ok(()) };
        write!(f, "Behind-{target}{}", if trusting { "-trusting" } else { "" })
    }
}

/// Every execution mode of a chain on cores alone.
pub const MODES: [Mode; 7] = [
    Mode::of(Path::Native),
    Mode::of(Path::Interpreted),
    Mode::of(Path::Synthesised),
    Mode { drawn: true, ..Mode::of(Path::Synthesised) },
    Mode::of(Path::SynthesisedInterpreted),
    Mode { cut: true, ..Mode::of(Path::Synthesised) },
    Mode { cut: true, ..Mode::of(Path::SynthesisedInterpreted) },
];

/// Programs are cut at so many steps at the most.
const CUTS: usize = 4;

/// The parts of programs that are cut at random steps, always the same for the same programs.
pub fn cut(programs: Vec<Program>) -> Vec<Program> {
    let mut random = fastrand::Rng::with_seed(programs.iter().map(|p| p.steps.len() as u64).sum());
    let mut parts = Vec::new();
    let mut first = Continuation(0);
    for program in programs {
        let steps = program.steps.len() as u32;
        let at = (0..random.usize(0..=CUTS)).map(|_| StepId(random.u32(..steps)));
        let Partition { front, continuations, .. } = partition(&program, &at.collect(), first);
        first.0 += continuations.len() as u16;
        parts.push(front);
        parts.extend(continuations);
    }
    parts
}

/// 2020-01-01, in nanoseconds.
pub const EPOCH: u64 = 1_577_836_800_000_000_000;

/// A transcript that the test can still read while the router writes it.
#[derive(Clone, Default)]
pub struct Heard(pub Rc<RefCell<Transcript>>);

impl Listener for Heard {
    fn message(&mut self, text: &str) {
        self.0.borrow_mut().message(text);
    }

    fn output(&mut self, text: &str) {
        self.0.borrow_mut().output(text);
    }

    fn error(&mut self, element: &str, text: &str) {
        self.0.borrow_mut().error(element, text);
    }
}

/// Reads files below a folder.
#[derive(Default)]
pub struct Folder {
    folder: PathBuf,
    read: HashMap<String, FileId>,
}

impl Files for Folder {
    fn read(&mut self, sources: &mut Sources, _: FileId, path: &str) -> Result<FileId, String> {
        if let Some(&file) = self.read.get(path) {
            return Ok(file);
        }
        let file = std::fs::File::open(self.folder.join(path)).map_err(|e| e.to_string())?;
        let mut text = String::new();
        let read = match path.ends_with(".gz") {
            true => flate2::read::MultiGzDecoder::new(file).read_to_string(&mut text),
            false => { file }.read_to_string(&mut text),
        };
        read.map_err(|e| e.to_string())?;
        let file = sources.add(path, text);
        self.read.insert(path.to_string(), file);
        Ok(file)
    }

    fn key(&mut self, _: &Sources, _: FileId, path: &str) -> Result<Zeroizing<String>, String> {
        let text = std::fs::read_to_string(self.folder.join(path));
        text.map(Zeroizing::new).map_err(|e| e.to_string())
    }

    /// Always the same, so that every mode seals packets alike.
    fn entropy(&mut self) -> Result<[u8; 16], String> {
        Ok([0xa5; 16])
    }
}

/// A chain that is ready to run.
pub struct Started {
    /// What it was elaborated to.
    pub chain: Chain,
    /// What runs it.
    pub router: Router,
    /// Its clock.
    pub clock: VirtualClock,
    /// What it printed.
    pub heard: Heard,
    /// How it is executed.
    pub mode: Mode,
}

/// Starts a chain, or gives its errors with the sources.
pub fn start(
    name: &str,
    text: &str,
    folder: &std::path::Path,
    mode: impl Into<Mode>,
) -> Result<Started, (Vec<Diagnostic>, Sources)> {
    let bindings = Bindings { folder: folder.to_path_buf(), ..Bindings::default() };
    start_bound(name, text, folder, mode, bindings)
}

/// The same, with interfaces bound.
pub fn start_bound(
    name: &str,
    text: &str,
    folder: &std::path::Path,
    mode: impl Into<Mode>,
    mut bindings: Bindings,
) -> Result<Started, (Vec<Diagnostic>, Sources)> {
    let mode = mode.into();
    let program_use = if mode.drawn { ProgramUse::Drawn(7) } else { ProgramUse::Always };
    let mut sources = Sources::new();
    let file = sources.add(name, text);
    let (clock, heard) = (VirtualClock::new(EPOCH), Heard::default());
    let mut files = Folder { folder: folder.to_path_buf(), ..Folder::default() };
    let options = compiler::Options::default();
    let (chain, mut diagnostics) = compiler::elaborate(&mut sources, file, &options, &mut files);
    let Some(chain) = chain else { return Err((diagnostics, sources)) };
    let cut = match mode.device {
        Some(front) => {
            // What is wrong is found once more.
            let mut found = Vec::new();
            let made = compiler::instantiate(&chain, &mut sources, &mut files, &mut found);
            let Some(made) = made else {
                diagnostics.extend(found);
                return Err((diagnostics, sources));
            };
            let wires = wires(&chain.graph, |node| made.elements[node].receives_frames());
            Some(front.divide(&chain.graph, wires))
        }
        None => mode.cut.then(|| Arc::new(cut) as session::Cut),
    };
    let setup = Setup {
        part: WorkerShare::default(),
        files: &mut files,
        devices: &mut bindings,
        clock: Box::new(clock.clone()),
        listener: Box::new(heard.clone()),
        seed: 7,
        path: mode.path,
        background: None,
        program_use,
        cut,
        unproven: false,
    };
    match session::assemble(&chain, &mut sources, setup, &mut diagnostics) {
        Some(router) if !has_errors(&diagnostics) => {
            Ok(Started { chain, router, clock, heard, mode })
        }
        _ => Err((diagnostics, sources)),
    }
}
