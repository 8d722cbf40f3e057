//! Chains that are measured, and their traffic.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use compiler::Chain;
use dataplane::clock::Time;
use dataplane::io::{Binding, Bindings, Generator, Uplink};
use dataplane::{ProgramUse, Router, Transcript};
use elements::configure::WorkerShare;
use elements::device::DeviceRequest;
use engine::session::{self, Path as Execution, Setup};
use engine::{Disk, Findings};
use ir::{Diagnostic, Sources, has_errors};

use super::{BY_DEFAULT, CHECK, Failed, Request};
use crate::arrivals::Arrivals;
use crate::memory::{Ended, Harness, HarnessDevices, Offered};
use crate::report::Traffic;
use crate::traffic::Frames;

/// The mean length of frames, with the frame check sequence.
pub(crate) fn mean_size(traffic: &[Traffic]) -> f64 {
    let (frames, bytes) = traffic.iter().fold((0, 0), |(f, b), t| (f + t.frames, b + t.bytes));
    bytes as f64 / frames as f64 + f64::from(CHECK)
}

/// The traffic of a chain's sources, read once.
pub(crate) struct Traffics<'a> {
    bindings: Bindings,
    /// What is different about generated traffic.
    change: &'a dyn Fn(&mut Generator),
    /// By what it is of; in the order in which the chain asks for it.
    read: Vec<(DeviceRequest, Traffic, Rc<Frames>)>,
    /// What a name reads that nothing is said of.
    unsaid: Option<Binding>,
    /// Frames that are generated where nothing is said of traffic.
    pub(crate) by_default: u64,
    /// Names that were bound to generated traffic because nothing was said of them.
    unnamed: Vec<String>,
    /// Which worker's flows are read, of how many.
    pub(crate) part: WorkerShare,
    /// Flows that take turns in a group, and for how many frames, if they are to.
    pub(crate) groups: Option<(usize, usize)>,
    /// How packets are to arrive while latencies are taken.
    arrivals: Arrivals,
}

impl<'a> Traffics<'a> {
    pub(crate) fn new(request: &Request<'_>, change: &'a dyn Fn(&mut Generator)) -> Self {
        let beside = Path::new(request.chain).parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let bindings = Bindings { beside, inputs: request.inputs.clone(), ..Bindings::default() };
        Self {
            bindings,
            change,
            read: Vec::new(),
            unsaid: request.traffic.clone(),
            by_default: BY_DEFAULT,
            unnamed: Vec::new(),
            part: WorkerShare::default(),
            groups: None,
            arrivals: request.arrivals,
        }
    }

    pub(crate) fn frames(&mut self, request: &DeviceRequest) -> Result<Rc<Frames>, String> {
        if let Some((_, _, frames)) = self.read.iter().find(|(known, ..)| known == request) {
            return Ok(Rc::clone(frames));
        }
        let (name, origin) = match request {
            DeviceRequest::Interface { name, .. } => {
                let binding = self.bindings.inputs.entry(name.clone()).or_insert_with(|| {
                    self.unsaid.clone().unwrap_or_else(|| {
                        self.unnamed.push(name.clone());
                        let count = self.by_default;
                        Binding::Generator(Generator { count, ..Generator::default() })
                    })
                });
                if let Binding::Generator(generator) = binding {
                    (self.change)(generator);
                }
                if let Binding::Replay(replay) = binding {
                    replay.timed = self.arrivals == Arrivals::Recorded;
                }
                let origin = match binding {
                    Binding::Generator(generator) => generator.to_string(),
                    Binding::Capture(path) => path.display().to_string(),
                    Binding::Replay(replay) => replay.path.display().to_string(),
                    Binding::Interface(spec) | Binding::Uplink(Uplink { interface: spec, .. }) => {
                        return Err(format!(
                            "'{name}' is bound to the interface {}, and traffic is a capture or generated: \
                             --in {name}=FILE or --in {name}=gen:…",
                            spec.name
                        ));
                    }
                };
                (name.clone(), origin)
            }
            DeviceRequest::CaptureIn { path } | DeviceRequest::CaptureOut { path, .. } => {
                (path.clone(), "capture".to_string())
            }
        };
        let mut device = self.bindings.open_device(request)?;
        let mut frames =
            Frames::of(&mut *device).map_err(|why| match why.starts_with("there are no") {
                true => format!("{origin}: {why}"),
                false => why,
            })?;
        if self.part.count > 1 {
            frames = frames.of_worker(self.part).ok_or_else(|| {
                format!(
                    "{name}: no flow goes to worker {} of {}; there are too few",
                    self.part.index + 1,
                    self.part.count
                )
            })?;
        }
        if let Some((flows, length)) = self.groups {
            frames = frames
                .grouped(flows, length)
                .ok_or_else(|| format!("{origin}: it has fewer than {flows} flows"))?;
        }
        let frames = Rc::new(frames);
        let traffic = Traffic { name, origin, frames: frames.count(), bytes: frames.bytes() };
        self.read.push((request.clone(), traffic, Rc::clone(&frames)));
        Ok(frames)
    }

    /// Flows of the source that has the fewest.
    pub(crate) fn flows(&self) -> usize {
        self.read.iter().map(|(.., frames)| frames.flows()).min().unwrap_or(0)
    }

    pub(crate) fn described(&self) -> Vec<Traffic> {
        self.read.iter().map(|(_, traffic, _)| traffic.clone()).collect()
    }

    /// Refuses a chain that reads nothing, and names that it does not have.
    pub(crate) fn check(&self, chain: &Subject) -> Result<(), Failed> {
        if chain.harness.sources() == 0 {
            let why = "the chain has no FromDevice or FromDump: nothing can be offered to it";
            return Err(Failed::Message(why.into()));
        }
        if self.arrivals == Arrivals::Recorded && !chain.harness.has_times() {
            let why = "--arrivals recorded takes captures with times for all inputs of the chain";
            return Err(Failed::Message(why.into()));
        }
        self.check_names()
    }

    /// Refuses names that the chain does not have.
    pub(crate) fn check_names(&self) -> Result<(), Failed> {
        let mut names: Vec<_> = self.bindings.inputs.keys().collect();
        names.sort();
        let is_read = |name: &str| {
            let mut all = self.read.iter();
            all.any(|(request, ..)| matches!(request, DeviceRequest::Interface { name: n, .. } if n == name))
        };
        match names.into_iter().find(|name| !is_read(name)) {
            Some(name) => Err(Failed::Message(format!(
                "--in {name}=…: no FromDevice of the chain has the name '{name}'"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses sources whose frames cannot have other sizes.
    pub(crate) fn check_sizes(&self) -> Result<(), Failed> {
        match self.captured() {
            Some(name) => Err(Failed::Message(format!(
                "--sizes: '{name}' is read from a capture, whose frames have sizes of their own"
            ))),
            None => Ok(()),
        }
    }

    /// The names of interfaces that the chain reads.
    ///
    /// # Errors
    /// If it also reads captures.
    pub(crate) fn names(&self) -> Result<Vec<String>, String> {
        let name = |request: &DeviceRequest| match request {
            DeviceRequest::Interface { name, .. } => Ok(name.clone()),
            DeviceRequest::CaptureIn { path } | DeviceRequest::CaptureOut { path, .. } => {
                Err(format!(
                    "the chain reads the capture '{path}', and over interfaces it reads interfaces only: --in NAME=… puts one \
                     in the place of the element NAME"
                ))
            }
        };
        self.read.iter().map(|(request, ..)| name(request)).collect()
    }

    /// A source that is not generated.
    pub(crate) fn captured(&self) -> Option<&str> {
        let is_generated = |request: &DeviceRequest| match request {
            DeviceRequest::Interface { name, .. } => {
                matches!(self.bindings.inputs.get(name), Some(Binding::Generator(_)))
            }
            DeviceRequest::CaptureIn { .. } | DeviceRequest::CaptureOut { .. } => false,
        };
        let captured = self.read.iter().find(|(request, ..)| !is_generated(request));
        captured.map(|(_, traffic, _)| traffic.name.as_str())
    }

    pub(crate) fn remarks(&self) -> Vec<String> {
        let defaults = self.unnamed.iter().map(|name| {
            format!(
                "{name}: its traffic is not bound; --in {name}=FILE or --in {name}=gen:… binds it"
            )
        });
        // Each worker of several opens its traffic anew.
        let lines: BTreeSet<String> = self.bindings.take_lines().into_iter().collect();
        let cut = self.read.iter().filter(|(.., frames)| frames.is_cut).map(|(_, traffic, _)| {
            format!("{}: only the first {} frames are used", traffic.name, traffic.frames)
        });
        defaults.chain(cut).chain(lines).collect()
    }
}

/// A chain that can be measured.
pub(crate) struct Subject {
    pub(crate) chain: Chain,
    pub(crate) router: Router,
    pub(crate) harness: Harness,
}

/// How many network functions a chain consists of: its outermost compounds; nothing if it has none.
fn length(chain: &Chain) -> Option<usize> {
    let functions = chain.graph.nodes.iter().filter_map(|node| node.name.split_once('/'));
    let names: BTreeSet<&str> = functions.map(|(function, _)| function).collect();
    (!names.is_empty()).then_some(names.len())
}

impl Subject {
    pub(crate) fn load(
        request: &Request<'_>,
        path: Execution,
        time: &Arc<dyn Time>,
        traffics: &mut Traffics<'_>,
    ) -> Result<Self, Failed> {
        let (mut sources, mut files) = (Sources::new(), Disk::default());
        let (file, options) = Self::read(request, &mut sources, &mut files)?;
        let how = (path, traffics.part, request.seed);
        Self::start((sources, file, files), &options, how, time, |r| traffics.frames(r))
    }

    /// Reads the file of a chain, and says how it is elaborated.
    fn read(
        request: &Request<'_>,
        sources: &mut Sources,
        files: &mut Disk,
    ) -> Result<(ir::FileId, compiler::Options), Failed> {
        let file = files.configuration(sources, request.chain).map_err(Failed::Message)?;
        let names: BTreeSet<&String> = request.inputs.keys().chain(&request.devices).collect();
        let options = compiler::Options {
            devices: names.into_iter().map(|name| session::device(name)).collect(),
            ..compiler::Options::of(request.variables.clone())
        };
        Ok((file, options))
    }

    /// The first source, and no chain.
    pub(crate) fn bare(
        request: &Request<'_>,
        time: &Arc<dyn Time>,
        traffics: &Traffics<'_>,
    ) -> Result<Self, Failed> {
        let mut sources = Sources::new();
        let file = sources.add("bare", "FromDevice(source) -> ToDevice(sink);");
        let frames = |_: &DeviceRequest| {
            let first = traffics.read.first().map(|(.., frames)| Rc::clone(frames));
            first.ok_or_else(|| "no traffic".to_string())
        };
        let how = (Execution::Native, WorkerShare::default(), request.seed);
        let options = compiler::Options::of(Vec::new());
        Self::start((sources, file, Disk::default()), &options, how, time, frames)
    }

    fn start(
        (mut sources, file, mut files): (Sources, ir::FileId, Disk),
        options: &compiler::Options,
        (path, part, seed): (Execution, WorkerShare, u64),
        time: &Arc<dyn Time>,
        frames: impl FnMut(&DeviceRequest) -> Result<Rc<Frames>, String>,
    ) -> Result<Self, Failed> {
        let mut harness = Harness::new(Arc::clone(time));
        let clock = time.clock().map_err(|e| Failed::Message(format!("a clock: {e}")))?;
        let mut found: Vec<Diagnostic> = Vec::new();
        let wrong = |diagnostics, sources| Failed::Chain(Findings { diagnostics, sources });
        let (chain, diagnostics) = compiler::elaborate(&mut sources, file, options, &mut files);
        found.extend(diagnostics);
        let Some(chain) = chain else { return Err(wrong(found, sources)) };
        let setup = Setup {
            part,
            files: &mut files,
            devices: &mut HarnessDevices { harness: &mut harness, frames },
            clock,
            listener: Box::new(Transcript::default()),
            seed,
            path,
            background: None,
            program_use: ProgramUse::WhereFaster,
            cut: None,
            unproven: false,
        };
        match session::assemble(&chain, &mut sources, setup, &mut found) {
            Some(router) if !has_errors(&found) => Ok(Self { chain, router, harness }),
            _ => Err(wrong(found, sources)),
        }
    }

    /// The length of its chain.
    pub(crate) fn length(&self) -> Option<usize> {
        length(&self.chain)
    }

    /// The length of a chain that is not to run.
    pub(crate) fn length_of(request: &Request<'_>) -> Option<usize> {
        let (mut sources, mut files) = (Sources::new(), Disk::default());
        let (file, options) = Self::read(request, &mut sources, &mut files).ok()?;
        length(&compiler::elaborate(&mut sources, file, &options, &mut files).0?)
    }

    pub(crate) fn saturate(
        &mut self,
        packets: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<u64, Ended> {
        self.harness.saturate(&mut self.router, packets, is_stopped)
    }

    /// What it is done with in some time, from a frame of each source on.
    pub(crate) fn saturate_for(
        &mut self,
        load: (u64, u64),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<u64, Ended> {
        self.harness.saturate_for(&mut self.router, load, is_stopped)
    }

    /// Offers a rate for some seconds, and takes latencies.
    pub(crate) fn offer(
        &mut self,
        load: (f64, f64),
        arrivals: (Arrivals, u64),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Offered, Ended> {
        self.harness.offer(&mut self.router, load, arrivals, true, is_stopped)
    }
}
