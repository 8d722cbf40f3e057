//! A chain that runs on its workers, and is changed while it runs.

mod state;
mod taps;
mod workers;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use compiler::Chain;
use dataplane::all_cores::AllCores;
use dataplane::change::{Declaration, Inventory, Plan};
use dataplane::clock::{RealClock, Time};
use dataplane::control_socket::Handlers;
use dataplane::io::{Bindings, Dispatch, Interfaces, Polling};
use dataplane::ports::{InUse, Ports};
use dataplane::stats::Stats;
use dataplane::worker::{self, Fleet, Prepared, Refused, Status, Swapped};
use dataplane::{Lifetime, Listener, ProgramUse, Router};
use elements::configure::WorkerShare;
use elements::device::ControlSocketRequest;
use elements::process::is_process_device;
use ir::model::StateKind;
use ir::{Diagnostic, FileId, Model, Sources, has_errors};

use crate::error::Error;
use crate::files::Disk;
use crate::findings::Findings;
use crate::installer;
use crate::session::{self, Cut, Path, Setup};
pub use state::{Imported, Share};
use taps::{Carrier, Taps};
pub use taps::{TapPoint, Tapping, Watcher};
pub use workers::{Moved, Workers};

/// A configuration with every text that it was made from, so that it can be made again as it was.
#[derive(Clone)]
pub struct Configuration {
    chain: Arc<Chain>,
    sources: Sources,
    files: Disk,
    file: FileId,
    /// What was warned of when it was read.
    warnings: Vec<Diagnostic>,
}

impl Configuration {
    /// Reads a configuration and works out the chain that it means.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(path: &str, options: &compiler::Options) -> Result<Self, Error> {
        let mut sources = Sources::new();
        let mut files = Disk::of(options);
        let file = files.configuration(&mut sources, path).map_err(Error::Unreadable)?;
        Self::of((sources, files, file), options)
    }

    /// The same for a text, which people know under a name.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_text(name: &str, text: &str, options: &compiler::Options) -> Result<Self, Error> {
        let mut sources = Sources::new();
        let file = sources.add(name, text);
        Self::of((sources, Disk::of(options), file), options)
    }

    fn of(
        (mut sources, mut files, file): (Sources, Disk, FileId),
        options: &compiler::Options,
    ) -> Result<Self, Error> {
        let (chain, found) = compiler::elaborate(&mut sources, file, options, &mut files);
        match chain.filter(|_| !has_errors(&found)) {
            Some(chain) => {
                Ok(Self { chain: Arc::new(chain), sources, files, file, warnings: found })
            }
            None => Err(Error::Configuration(Findings { diagnostics: found, sources })),
        }
    }

    /// The name that people know it by.
    pub fn name(&self) -> &str {
        self.sources.name(self.file)
    }

    /// Its text.
    pub fn text(&self) -> &str {
        self.sources.text(self.file)
    }

    /// What making it again takes: the chain, and the texts that it came from.
    pub(crate) fn parts(&self) -> (Arc<Chain>, Sources, Disk) {
        (Arc::clone(&self.chain), self.sources.clone(), self.files.clone())
    }

    /// Whether another is the same, read at the same time.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chain, &other.chain)
    }

    /// What was warned of when it was read.
    pub fn warnings(&self) -> Findings {
        Findings { diagnostics: self.warnings.clone(), sources: self.sources.clone() }
    }

    /// The texts that it was made from.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The chain that it means.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }
}

/// How the workers of a chain are made.
pub struct Options {
    /// The CPUs to bind them to, one each; `None` is a worker that is not bound.
    pub cpus: Vec<Option<usize>>,
    /// Seed of random choices.
    pub seed: u64,
    /// Which code carries packets.
    pub path: Path,
    /// What takes packets that come to a program: always the program, or the elements where they are faster.
    pub program_use: ProgramUse,
    /// How packets find their workers.
    pub dispatch: Dispatch,
    /// The interfaces that are open.
    pub interfaces: Interfaces,
    /// How workers without packets wait.
    pub polling: Polling,
    /// How long the chain that it starts with waits for its programs: elements run until they are
    /// synthesised and proven.
    pub patience: Duration,
    /// Whether programs are also installed whose proof was given up and whose exits packets cannot check.
    pub unproven: bool,
    /// What becomes of programs before they are installed, if anything.
    pub cut: Option<Cut>,
    /// Takes messages and errors of each worker.
    pub listener: fn() -> Box<dyn Listener>,
    /// What all that takes time goes by.
    pub time: Arc<dyn Time>,
}

impl Default for Options {
    /// A worker that is not bound, which says nothing; a chain starts within 0.3 seconds, with its programs or
    /// without.
    fn default() -> Self {
        Self {
            cpus: vec![None],
            seed: session::system_seed(),
            path: Path::default(),
            program_use: ProgramUse::WhereFaster,
            dispatch: Dispatch::default(),
            interfaces: Interfaces::default(),
            polling: Polling::default(),
            patience: Duration::from_millis(300),
            unproven: false,
            cut: None,
            listener: || Box::new(Silent),
            time: Arc::new(RealClock::new()),
        }
    }
}

/// Hears nothing.
struct Silent;

impl Listener for Silent {
    fn message(&mut self, _: &str) {}
    fn output(&mut self, _: &str) {}
    fn error(&mut self, _: &str, _: &str) {}
}

/// What to report of a router that was built in the background, or could not be.
#[derive(Default)]
struct Made {
    found: Vec<Diagnostic>,
    sources: Sources,
    files: Disk,
    inventory: Inventory,
    lifetime: Lifetime,
    sockets: Vec<(String, ControlSocketRequest)>,
    in_use: InUse,
    /// Why it must not run, though it could.
    refused: Option<String>,
}

impl Made {
    fn findings(&self) -> Findings {
        Findings { diagnostics: self.found.clone(), sources: self.sources.clone() }
    }
}

/// A configuration that runs or ran.
#[derive(Clone)]
struct Running {
    configuration: Configuration,
    inventory: Inventory,
    lifetime: Lifetime,
    sockets: Vec<(String, ControlSocketRequest)>,
    in_use: Vec<InUse>,
}

/// What a change of the chain came to.
#[derive(Debug)]
pub struct Changed {
    /// What became of state.
    pub plan: Plan,
    /// By worker; none if the change was only tried.
    pub swapped: Vec<Swapped>,
    /// Warnings.
    pub warnings: Findings,
    /// Why the change is made only if it is forced, if so.
    pub objection: Option<String>,
    /// How long it took to make the new routers, aside.
    pub preparation: Duration,
}

/// How far a change of the chain goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Everything is made, and nothing changed.
    Check,
    /// The chain is changed, unless that would end a run that would go on otherwise.
    Change,
    /// The chain is changed in any case.
    Force,
}

/// See the module.
pub struct Instance {
    fleet: Fleet,
    ports: Vec<Ports>,
    options: Options,
    running: Mutex<Running>,
    /// How programs of configurations are cut from now on.
    cut: Mutex<Option<Cut>>,
    former: Mutex<Option<Configuration>>,
    /// How many configurations have run.
    generation: AtomicU64,
    /// When it began.
    since: u64,
    /// One change at a time.
    changing: Mutex<()>,
    taps: Mutex<Taps>,
    /// Hears of every worker that comes to have nothing to do.
    rests: Mutex<Receiver<()>>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl From<Refused<Made>> for Error {
    fn from(refused: Refused<Made>) -> Self {
        match refused {
            Refused::Not(made) => match made.refused {
                Some(why) => Error::Other(why),
                None => {
                    let Made { found: diagnostics, sources, .. } = *made;
                    Error::Configuration(Findings { diagnostics, sources })
                }
            },
            Refused::Broken(why) => Error::Other(why),
        }
    }
}

/// An instance whose routers are made and do not run yet.
pub struct Staged {
    prepared: Prepared<Made>,
    configuration: Configuration,
    ports: Vec<Ports>,
    options: Options,
}

impl Staged {
    /// The control sockets that the elements of the first worker ask for.
    pub fn control_sockets(&self) -> Vec<(String, ControlSocketRequest)> {
        self.prepared.reports.first().map(|made| made.sockets.clone()).unwrap_or_default()
    }

    /// Whether the chain goes on for ever.
    pub fn is_endless(&self) -> bool {
        self.prepared.reports.first().is_some_and(|made| made.lifetime == Lifetime::Endless)
    }

    /// The elements that have flows, also together with others.
    pub fn flow_tables(&self) -> Vec<String> {
        let made = self.prepared.reports.first();
        made.map(|made| flow_tables(&made.inventory)).unwrap_or_default()
    }

    /// What was warned of when the routers were made.
    pub fn warnings(&self) -> Findings {
        self.prepared.reports.first().map(Made::findings).unwrap_or_default()
    }

    /// Lets the workers begin.
    ///
    /// # Errors
    /// If the system gives no sockets.
    pub fn begin(self) -> Result<Instance, Error> {
        let Self { mut prepared, configuration, ports, options } = self;
        let reports = std::mem::take(&mut prepared.reports);
        let settled = settle(configuration, reports);
        let since = options.time.now();
        let running = match options.dispatch.is_elastic() {
            true => options.dispatch.running(),
            false => options.cpus.len(),
        };
        let started = prepared.start(&options.cpus, running);
        let (fleet, rests) = started.map_err(|why| format!("a worker: {why}"))?;
        let instance = Instance {
            fleet,
            ports,
            cut: Mutex::new(options.cut.clone()),
            options,
            running: Mutex::new(settled),
            former: Mutex::new(None),
            generation: AtomicU64::new(1),
            since,
            changing: Mutex::new(()),
            taps: Mutex::default(),
            rests: Mutex::new(rests),
        };
        Ok(instance)
    }
}

/// How long [`Instance::wait`] waits before it looks again.
const LOOK: Duration = Duration::from_millis(100);

impl Instance {
    /// Runs a configuration whose devices are those that names are bound to.
    ///
    /// # Errors
    /// What is wrong with it, or with its devices.
    pub fn start(
        configuration: Configuration,
        bindings: Bindings,
        options: Options,
    ) -> Result<Self, Error> {
        let (dispatch, interfaces) = (options.dispatch.clone(), options.interfaces.clone());
        let bindings = Bindings { dispatch, interfaces, ..bindings };
        let ports = Ports::of_workers(&bindings, options.cpus.len());
        Self::stage(configuration, ports, options, |_| Ok(()))?.begin()
    }

    /// Makes the routers of a configuration, one for each of the workers, whose devices `ports`
    /// are. `ready` is called for each router.
    ///
    /// # Errors
    /// What is wrong.
    pub fn stage(
        configuration: Configuration,
        ports: Vec<Ports>,
        options: Options,
        ready: impl Fn(&mut Router) -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<Staged, Error> {
        let patience = options.time.patience(options.patience);
        let cut = options.cut.clone();
        match prepare(&configuration, &ports, (&options, patience, cut), ready, None) {
            Ok(prepared) => Ok(Staged { prepared, configuration, ports, options }),
            Err(refused) => Err(refused.into()),
        }
    }

    /// Waits until no worker has anything to do any more: the input came to an end, or an element stopped the
    /// chain. A chain on interfaces goes on for ever.
    pub fn wait(&self) {
        while !self.is_over(true) {
            self.rest(LOOK);
        }
    }

    /// Waits until a worker comes to have nothing to do, or so long by real time, lest what comes from outside is missed.
    #[expect(clippy::disallowed_methods, reason = "signals and clients come by real time")]
    pub fn rest(&self, so_long: Duration) {
        let _ = lock(&self.rests).recv_timeout(so_long);
    }

    /// Whether no worker will ever have anything to do again; `alone` if nobody can write handlers.
    pub fn is_over(&self, alone: bool) -> bool {
        let status = |worker| self.fleet.status(worker);
        let mut all = (0..self.fleet.len()).map(status);
        let has_ended = all.clone().any(|s| matches!(s, Status::Stopped | Status::Dead));
        all.all(|status| status != Status::Running) && (alone || has_ended)
    }

    /// What a handler reads, `ELEMENT.HANDLER`: counts of all workers are added up.
    ///
    /// # Errors
    /// The handler's.
    pub fn read(&self, handler: &str) -> Result<String, Error> {
        AllCores(&self.fleet).read(handler).map_err(Error::Handler)
    }

    /// Writes a handler on all workers.
    ///
    /// # Errors
    /// The handler's.
    pub fn write(&self, handler: &str, value: &str) -> Result<(), Error> {
        AllCores(&self.fleet).write(handler, value).map_err(Error::Handler)
    }

    /// How packets find their workers.
    pub fn dispatch(&self) -> &Dispatch {
        &self.options.dispatch
    }

    /// The workers.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Ends the workers and closes all devices.
    pub fn close(&self) {
        self.fleet.quit();
        for ports in &self.ports {
            ports.close_all_but(&InUse::default());
        }
    }

    /// Which code carries packets.
    pub fn path(&self) -> Path {
        self.options.path
    }

    /// How long it has been running.
    pub fn age(&self) -> Duration {
        self.elapsed(self.since)
    }

    /// What all that takes time goes by.
    pub fn time(&self) -> &dyn Time {
        &*self.options.time
    }

    /// The time since another.
    pub(crate) fn elapsed(&self, since: u64) -> Duration {
        Duration::from_nanos(self.time().now().saturating_sub(since))
    }

    /// How many configurations have run, counting returns to a former one.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How many configurations have run, and the one that runs.
    pub fn current(&self) -> (u64, Configuration) {
        (self.generation(), lock(&self.running).configuration.clone())
    }

    /// What the elements of a configuration that runs mean now, by its graph's nodes.
    ///
    /// # Errors
    /// A message.
    pub(crate) fn meaning(&self, configuration: &Configuration) -> Result<Vec<Model>, Error> {
        let graph = configuration.chain().graph.clone();
        let models = self.fleet.call(0, move |router| installer::models(router, &graph));
        models.ok_or(Error::WorkerDead)
    }

    /// Lets another configuration replace the one that runs; all state that can be carried over
    /// is.
    ///
    /// # Errors
    /// What is wrong with it; the old one runs on.
    pub fn change(&self, configuration: Configuration, extent: Extent) -> Result<Changed, Error> {
        self.change_and_cut(configuration, extent, None)
    }

    /// The same; programs are cut in another manner from then on, if one is given.
    ///
    /// # Errors
    /// What is wrong with it; the old one runs on, cut as it was.
    pub fn change_and_cut(
        &self,
        configuration: Configuration,
        extent: Extent,
        cut: Option<Cut>,
    ) -> Result<Changed, Error> {
        let _one = lock(&self.changing);
        let cut = cut.or_else(|| lock(&self.cut).clone());
        let begin = self.time().now();
        let only_try = extent == Extent::Check;
        let carrier = (!only_try).then(|| self.carrier());
        // What runs until then is the old chain.
        let (ports, options) = (&self.ports, (&self.options, Duration::MAX, cut.clone()));
        let taps = carrier.clone();
        let made = prepare(&configuration, ports, options, |_| Ok(()), taps);
        let prepared = made.map_err(|refused| {
            self.close_unused();
            Error::from(refused)
        })?;
        let preparation = self.elapsed(begin);
        let objection = {
            let running = lock(&self.running);
            let lifetime = prepared.reports.first().map(|made| &made.lifetime);
            let shorter = lifetime.filter(|new| new.is_shorter_than(&running.lifetime));
            shorter.map(|lifetime| format!("{}: {lifetime}", configuration.name()))
        };
        if let (Some(why), Extent::Change) = (&objection, extent) {
            prepared.dismiss();
            self.close_unused();
            return Err(Error::EndsSooner(why.clone()));
        }
        let new = prepared.reports.first().map(|made| &made.inventory);
        let old = lock(&self.running).inventory.clone();
        let plan = Plan::new(&old, &self.fleet.holdings(), new.unwrap_or(&Inventory::default()));
        let warnings = self.warnings(&configuration, &prepared.reports);
        if only_try {
            prepared.dismiss();
            self.close_unused();
            let swapped = Vec::new();
            return Ok(Changed { plan, swapped, warnings, objection, preparation });
        }
        let plan = Arc::new(plan);
        let (swapped, reports) = self.fleet.swap(prepared, &plan)?;
        carrier.iter().for_each(|carrier| self.carried(carrier));
        let running = settle(configuration, reports);
        *lock(&self.cut) = cut;
        let before = std::mem::replace(&mut *lock(&self.running), running);
        *lock(&self.former) = Some(before.configuration);
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.close_unused();
        let plan = Arc::unwrap_or_clone(plan);
        Ok(Changed { plan, swapped, warnings, objection, preparation })
    }

    /// Returns to the configuration that ran before.
    ///
    /// # Errors
    /// If there is none, or it cannot be made again.
    pub fn roll_back(&self, extent: Extent) -> Result<Changed, Error> {
        let former = lock(&self.former).clone();
        self.change(former.ok_or(Error::NothingBefore)?, extent)
    }

    /// What a new configuration is warned of: when it was read, of devices that the chain has elements for and the
    /// new one has not, and when its routers were made.
    fn warnings(&self, configuration: &Configuration, new: &[Made]) -> Findings {
        let Some(new) = new.first() else { return configuration.warnings() };
        let mut diagnostics = configuration.warnings.clone();
        if let Some(old) = lock(&self.running).in_use.first() {
            let name = configuration.name();
            // Programs end with the chain that had them, as is meant.
            let left = old.left_by(&new.in_use);
            let left = left.into_iter().filter(|device| !is_process_device(device));
            diagnostics.extend(left.map(|device| {
                let why = format!("{name}: no element names the device '{device}' any more");
                Diagnostic::warning("device-left", why)
            }));
        }
        diagnostics.extend(new.found.iter().cloned());
        Findings { diagnostics, sources: new.sources.clone() }
    }

    fn close_unused(&self) {
        let in_use = lock(&self.running).in_use.clone();
        for (ports, in_use) in self.ports.iter().zip(&in_use) {
            ports.close_all_but(in_use);
        }
    }

    /// What each worker has done, and all of them together.
    pub fn stats(&self) -> (Vec<(usize, Stats)>, Option<Stats>) {
        let all = self.fleet.call_all(|router| router.stats());
        let mut each = all.iter().map(|(_, stats)| stats);
        let mut sum = each.next().cloned();
        if let Some(sum) = &mut sum {
            each.for_each(|stats| sum.add(stats));
        }
        (all, sum)
    }

    /// How many packets wait in a worker's receive queues, by interface. Interfaces of which the kernel does not say are
    /// left out.
    pub fn waiting(&self, worker: usize) -> BTreeMap<String, u64> {
        self.options.interfaces.waiting(worker)
    }

    /// The elements that have flows, also together with others.
    pub fn flow_tables(&self) -> Vec<String> {
        flow_tables(&lock(&self.running).inventory)
    }

    /// The control sockets that the elements of the first worker ask for.
    pub fn control_sockets(&self) -> Vec<(String, ControlSocketRequest)> {
        lock(&self.running).sockets.clone()
    }
}

/// The elements that have flows, also together with others.
fn flow_tables(inventory: &Inventory) -> Vec<String> {
    let has_flows = |declaration: &&Declaration| {
        let is_flows = |(_, kind): &(_, StateKind)| matches!(kind, StateKind::Flows { .. });
        declaration.shares.is_some() || declaration.state.iter().any(is_flows)
    };
    inventory
        .elements
        .iter()
        .filter(has_flows)
        .map(|declaration| declaration.name.clone())
        .collect()
}

/// Makes the routers of a configuration, aside.
fn prepare(
    configuration: &Configuration,
    ports: &[Ports],
    (options, patience, cut): (&Options, Duration, Option<Cut>),
    ready: impl Fn(&mut Router) -> Result<(), String> + Send + Sync + 'static,
    taps: Option<Carrier>,
) -> Result<Prepared<Made>, Refused<Made>> {
    let (configuration, ports) = (configuration.clone(), ports.to_vec());
    let (seed, path, polling, listener) =
        (options.seed, options.path, options.polling, options.listener);
    let (unproven, program_use) = (options.unproven, options.program_use);
    let time = Arc::clone(&options.time);
    let make = move |part: WorkerShare| {
        let clock = time.clock().map_err(|e| {
            let refused = Some(format!("a worker's clock: {e}"));
            Box::new(Made { refused, ..Made::default() })
        })?;
        let Configuration { chain, mut sources, mut files, .. } = configuration.clone();
        let mut devices = ports[part.index].attach();
        let mut found = Vec::new();
        let setup = Setup {
            part,
            files: &mut files,
            devices: &mut devices,
            clock,
            listener: listener(),
            // Workers draw different numbers, and a run on one draws what it always did.
            seed: seed.wrapping_add(part.index as u64),
            path,
            background: Some(patience),
            program_use,
            cut: cut.clone(),
            unproven,
        };
        let router = session::assemble(&chain, &mut sources, setup, &mut found);
        let mut made = Made {
            found,
            sources,
            files,
            inventory: Inventory::default(),
            lifetime: Lifetime::default(),
            sockets: Vec::new(),
            in_use: devices.in_use(),
            refused: None,
        };
        let Some(mut router) = router.filter(|_| !has_errors(&made.found)) else {
            return Err(Box::new(made));
        };
        router.set_polling(polling);
        router.sample_latency(true);
        (made.inventory, made.sockets) = (router.inventory(), router.control_sockets());
        if let Some(taps) = &taps {
            taps.insert(&mut router, part.index, &configuration, &made.in_use);
        }
        made.refused = ready(&mut router).err();
        made.lifetime = router.lifetime();
        if made.refused.is_some() { Err(Box::new(made)) } else { Ok((router, made)) }
    };
    worker::prepare(&options.cpus, options.dispatch.groups(), make)
}

/// What is known of a configuration once it was made. All workers tell the same, so one is asked.
fn settle(configuration: Configuration, reports: Vec<Made>) -> Running {
    let in_use = reports.iter().map(|made| made.in_use.clone()).collect();
    match reports.into_iter().next() {
        Some(made) => {
            let Made { sources, files, inventory, lifetime, sockets, .. } = made;
            let configuration = Configuration { sources, files, ..configuration };
            Running { configuration, inventory, lifetime, sockets, in_use }
        }
        None => {
            let (inventory, sockets) = (Inventory::default(), Vec::new());
            Running { configuration, inventory, lifetime: Lifetime::default(), sockets, in_use }
        }
    }
}
