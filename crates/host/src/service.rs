//! The host service: it starts a chain, moves packets through it, watches its NFs, and replaces a chain that fails.
//!
//! Three threads: one moves packets; one starts NFs, which end with it; the calling one watches. A chain whose NFs have
//! interfaces (`linked`) needs the last alone.

mod coming;
mod control;
mod held;
mod linked;
mod mover;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dataplane::io::{Binding, Bindings, Choice};
use elements::device::{Device, DeviceRequest};
use nf::State;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::OwnedFd;

use crate::cgroup::Groups;
use crate::chain::{Chain, Program, Seat, Watched, assemble};
use crate::launch::{Environment, environment};
use crate::manifest::{Fabric, Function, HandOff, HostChain, Nf, Policy};
use crate::scheduler::{self, Class};
use crate::state::{self, Store};
use crate::{Failure, Journal};

pub use crate::log::{Log, path as log_path};
use control::Served;
pub use control::{Client, HeldStatus, NfState, NfStatus, Request, Status};
use held::Held;
use linked::Linked;
use mover::Mover;

/// The name of a service's socket, in the folder of its journal.
pub const SOCKET: &str = "control.sock";

/// Packets of a batch where the manifest does not say, to begin with.
const BATCH: u32 = 32;

/// Chains in a row that end before they processed a batch, until that is given up.
const MOST_FAILURES: u32 = 3;

/// Chains that end within [`WINDOW`], whatever they did, until that is given up.
const MOST_IN_WINDOW: usize = 16;
const WINDOW: Duration = Duration::from_secs(10);

/// What was counted, by the thread that moves packets: nothing of it is an NF's word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) too_long: u64,
    pub(crate) lost_in_nf: u64,
    pub(crate) not_sent: u64,
    pub(crate) rounds: u64,
    pub(crate) failures: u64,
    /// By NF, by reason.
    pub(crate) dropped: Vec<std::collections::BTreeMap<u16, u64>>,
    /// Nanoseconds of rounds.
    pub(crate) busy: u64,
    pub(crate) lines: Vec<String>,
    /// Packets that wait for state to be stored.
    pub(crate) held: held::Counts,
}

/// What a service is told from elsewhere.
#[derive(Debug)]
pub(crate) struct Orders {
    stop: AtomicBool,
    restart: AtomicBool,
    /// Becomes readable when there is something new.
    wake: OwnedFd,
}

impl Orders {
    fn new(journal: &Journal) -> Result<Arc<Self>, Failure> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = wake.map_err(|why| Failure::File(journal.folder().into(), why.into()))?;
        Ok(Arc::new(Self { stop: AtomicBool::new(false), restart: AtomicBool::new(false), wake }))
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn restart(&self) {
        self.restart.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits until one of these processes ends, something is asked for, or some time is over.
    fn wait(&self, processes: &[OwnedFd], longest: Duration) {
        let mut fds: Vec<PollFd<'_>> =
            processes.iter().map(|handle| PollFd::new(handle, PollFlags::IN)).collect();
        fds.push(PollFd::new(&self.wake, PollFlags::IN));
        let longest = Timespec {
            tv_sec: longest.as_secs() as i64,
            tv_nsec: i64::from(longest.subsec_nanos()),
        };
        let _ = poll(&mut fds, Some(&longest));
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    orders: Arc<Orders>,
    /// The chain that packets go through.
    active: AtomicU64,
    /// The packets of a batch at most.
    batch: AtomicU64,
    over: AtomicBool,
    totals: Mutex<Totals>,
    watched: Mutex<Vec<Watched>>,
    error: Mutex<Option<String>>,
    /// What the thread that watches is to say.
    said: Arc<Mutex<Vec<String>>>,
    /// The state of NFs, by their place in the chain; none if the chain keeps none.
    stores: Vec<Arc<Store>>,
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn wake(&self) {
        self.orders.wake();
    }

    fn is_stopped(&self) -> bool {
        self.orders.is_stopped()
    }
}

/// Ends a service from elsewhere.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Orders>);

impl Handle {
    /// Ends it.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
        self.0.wake();
    }
}

/// How NFs are scheduled and hand on, and why so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Their class; none if they are left as they are.
    pub class: Option<Class>,
    /// Whether they yield, or wait for a wake-up.
    pub yields: bool,
    /// Their core.
    pub core: usize,
    /// In words.
    pub why: String,
}

impl Chosen {
    /// What this host allows of what a manifest asks for.
    ///
    /// # Errors
    /// If what it insists on is refused.
    pub fn of(spec: &HostChain) -> Result<Self, Failure> {
        let core = match spec.core {
            Some(core) => known(core)?,
            None => scheduler::cores().last().copied().unwrap_or(0),
        };
        let shares_memory = spec.fabric == Fabric::Shared;
        let allowed = scheduler::may_be_fifo();
        let class = |policy| Class { policy, priority: spec.priority, slice: spec.slice };
        let (class, why) = match (spec.policy, allowed) {
            (Policy::Cooperative, _) if !shares_memory => {
                (class(Policy::Other), Policy::Other.to_string())
            }
            (Policy::Cooperative, Ok(())) => {
                (class(Policy::Fifo), "SCHED_FIFO, in the order of the chain".to_string())
            }
            (Policy::Cooperative, Err(why)) => (
                class(Policy::Other),
                format!("SCHED_OTHER, as FIFO is refused ({why}): `catena host doctor` shows more"),
            ),
            (policy @ (Policy::Fifo | Policy::RoundRobin), Err(why)) => {
                return Err(Failure::Impossible(format!(
                    "the kernel refuses {policy} here ({why}): `catena host doctor` says why; \
                     `policy: cooperative` takes what there is"
                )));
            }
            (policy, _) => (class(policy), policy.to_string()),
        };
        let is_real_time = matches!(class.policy, Policy::Fifo | Policy::RoundRobin);
        let yields = match spec.hand_off {
            HandOff::Auto => is_real_time,
            HandOff::Yield => true,
            HandOff::Baton => false,
        };
        let hand_off = match (&spec.fabric, yields) {
            (Fabric::Links(kind), _) => format!("links of {kind}"),
            (Fabric::Shared, true) => "hand-off by yield".into(),
            (Fabric::Shared, false) => "hand-off by baton".into(),
        };
        Ok(Self {
            class: Some(class),
            yields,
            core,
            why: format!("core {core}: {why}; {hand_off}"),
        })
    }
}

/// A core, if it is there.
fn known(core: usize) -> Result<usize, Failure> {
    let cores = scheduler::cores();
    if cores.contains(&core) {
        return Ok(core);
    }
    let all: Vec<String> = cores.iter().map(usize::to_string).collect();
    let all = all.join(", ");
    Err(Failure::Impossible(format!("there is no core {core} here: there are {all}")))
}

/// Runs a chain.
pub struct Service {
    prepared: Either,
    journal: Journal,
}

/// A chain whose NFs share memory, or have interfaces.
enum Either {
    Shared(Box<Prepared>),
    Linked(Linked),
}

/// What a service needs before it runs.
struct Prepared {
    spec: HostChain,
    chosen: Chosen,
    environments: Vec<Box<dyn Environment>>,
    devices: (Box<dyn Device + Send>, Box<dyn Device + Send>),
    shared: Arc<Shared>,
    /// Becomes readable when state was stored.
    stored: Arc<OwnedFd>,
    /// Chains that stand by.
    spares: bool,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service").field("journal", &self.journal).finish_non_exhaustive()
    }
}

/// What is said while a service runs.
pub type Say<'a> = &'a mut dyn FnMut(&str);

impl Service {
    /// Prepares one. `elements` is the program that runs elements as an NF, with its arguments.
    ///
    /// # Errors
    /// If an interface or a file cannot be opened, or what the manifest insists on is refused.
    pub fn new(spec: HostChain, elements: &Program, mut journal: Journal) -> Result<Self, Failure> {
        let prepared = match spec.fabric.clone() {
            Fabric::Shared => Prepared::new(spec, elements, &mut journal)
                .map(|prepared| Either::Shared(Box::new(prepared))),
            Fabric::Links(kind) => {
                Linked::new(spec, &kind, elements, &mut journal).map(Either::Linked)
            }
        };
        match prepared {
            Ok(prepared) => Ok(Self { prepared, journal }),
            Err(why) => {
                // Some of it may be there.
                let _ = journal.take_down();
                Err(why)
            }
        }
    }
}

impl Prepared {
    fn new(spec: HostChain, elements: &Program, journal: &mut Journal) -> Result<Self, Failure> {
        let chosen = Chosen::of(&spec)?;
        // What this process was handed by who started it is none of the NFs' business.
        crate::sys::keep_descriptors();
        let source = Binding::source(&spec.input).map_err(Failure::Impossible)?;
        // Interfaces leave by themselves when nobody has them any more, captures end.
        let spares = matches!(source, Binding::Interface(_) | Binding::Generator(_));
        let mut bindings = Bindings::default();
        bindings.inputs.insert("in".into(), source);
        let sink = Binding::sink(&spec.output).map_err(Failure::Impossible)?;
        let to_file = matches!(sink, Binding::Capture(_));
        bindings.outputs.insert("out".into(), sink);
        if spec.driver.is_some() {
            bindings.choose(&Choice {
                interface: None,
                mode: spec.driver,
                batch: None,
                shared: false,
            });
        }
        let mut open = |request| bindings.open_device(&request).map_err(Failure::Impossible);
        let input = open(DeviceRequest::Interface { name: "in".into(), receive: true })?;
        let output = match to_file {
            true => DeviceRequest::CaptureOut {
                path: spec.output.clone(),
                snap_length: net::pcap::Options::for_file_name(spec.output.as_ref()).snap_length,
                link_type: input.link_type(),
                nanoseconds: false,
                unbuffered: false,
            },
            false => DeviceRequest::Interface { name: "out".into(), receive: false },
        };
        let output = open(output)?;
        let groups = Groups::make(journal)?;
        let environment = |nf: &Nf| environment(&nf.function, elements, &groups, journal);
        let environments = spec.nfs.iter().map(environment).collect::<Result<_, _>>()?;
        let mut spec = spec;
        for nf in &mut spec.nfs {
            if let Function::Click(text) = &nf.function {
                nf.config.clone_from(text);
            }
        }
        let orders = Orders::new(journal)?;
        let stored = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let stored = stored.map_err(|why| Failure::File(journal.folder().into(), why.into()))?;
        let stored = Arc::new(stored);
        let said: Arc<Mutex<Vec<String>>> = Arc::default();
        let stores = stores(&spec, journal, (&stored, &said, &orders))?;
        let shared = Arc::new(Shared {
            orders,
            active: AtomicU64::new(0),
            batch: AtomicU64::new(u64::from(spec.batch.unwrap_or(BATCH))),
            over: AtomicBool::new(false),
            totals: Mutex::new(Totals {
                dropped: vec![Default::default(); spec.nfs.len()],
                ..Totals::default()
            }),
            watched: Mutex::new(Vec::new()),
            error: Mutex::new(None),
            said,
            stores,
        });
        let mut lines = bindings.take_lines();
        lines.push(chosen.why.clone());
        locked(&shared.totals).lines = lines;
        Ok(Self { spec, chosen, environments, devices: (input, output), shared, stored, spares })
    }
}

impl Service {
    /// What ends it.
    pub fn handle(&self) -> Handle {
        Handle(Arc::clone(match &self.prepared {
            Either::Shared(prepared) => &prepared.shared.orders,
            Either::Linked(linked) => linked.orders(),
        }))
    }

    /// Runs it until its input ends or it is stopped; then all of it is taken down.
    ///
    /// # Errors
    /// Why it ended before.
    pub fn run(self, control: Option<PathBuf>, say: Say<'_>) -> Result<Status, Failure> {
        let begin = Instant::now();
        let Self { prepared, journal } = self;
        let prepared = match prepared {
            Either::Shared(prepared) => *prepared,
            Either::Linked(linked) => return linked.run(control, journal, say),
        };
        let Prepared { spec, chosen, environments, devices, shared, stored, spares } = prepared;
        let journal = Arc::new(journal);
        let spec = Arc::new(spec);
        let mut threads = Vec::new();
        let mut server = None;
        let ran = (|| {
            let (ask, asked) = channel();
            let (started, starts) = channel();
            // From the largest batch that it may become.
            let capacity = spec.batch.unwrap_or(nf::MOST_PACKETS);
            let launcher = Launcher {
                spec: Arc::clone(&spec),
                environments,
                journal: Arc::clone(&journal),
                capacity,
                has_logs: control.is_some(),
                stores: shared.stores.clone(),
            };
            threads.push(spawn("launcher", move || launcher.serve(&asked, &started))?);
            let mut watch = Watch {
                folder: journal.folder(),
                shared: &shared,
                chosen: &chosen,
                ask,
                starts,
                failures: 0,
                ended: Vec::new(),
                asked: false,
                next: 0,
                waits: spec.state.as_ref().map_or(Duration::ZERO, |state| 3 * state.wait),
            };
            watch.ask();
            let first = watch.first()?;
            watch.say_what_is_lost(&spec, say);
            let class = format!("{} started: {}", count(spec.nfs.len(), "NF"), chosen.why);
            say(&class);
            if let Some(path) = control {
                let (shared, spec) = (Arc::clone(&shared), Arc::clone(&spec));
                server = Some(control::serve(&path, Arc::new(Serving { shared, spec, begin }))?);
            }
            let (give, take) = sync_channel(1);
            let mover = Mover {
                devices,
                shared: Arc::clone(&shared),
                chosen: chosen.clone(),
                spares: take,
                is_auto: spec.batch.is_none(),
                overhead: spec.overhead,
                held: Held::new(spec.state.clone()),
                stored: Arc::clone(&stored),
                is_new: false,
            };
            threads.push(spawn("mover", move || mover.run(first))?);
            let watched = watch.until_over(&give, spares, spec.timeout, say);
            drop(give);
            watched
        })();
        shared.orders.stop.store(true, Ordering::Relaxed);
        locked(&shared.watched).iter().for_each(Watched::fail);
        for thread in threads {
            let _ = thread.join();
        }
        shared.stores.iter().for_each(|store| store.end());
        locked(&shared.said).drain(..).for_each(|line| say(&line));
        let status = control::status(&shared, &spec, begin);
        drop(server);
        for chain in std::mem::take(&mut *locked(&shared.watched)) {
            chain.seats.iter().for_each(|seat| seat.running.destroy());
        }
        let error = locked(&shared.error).take();
        // All threads have ended, and with them who else had it.
        let taken = match Arc::try_unwrap(journal) {
            Ok(journal) => journal.take_down().map(drop),
            Err(_) => Err(Failure::Impossible("a thread has not ended: the journal stays".into())),
        };
        match error {
            Some(error) => Err(Failure::Impossible(error)),
            None => ran.and(taken).map(|()| status),
        }
    }
}

/// Who is woken when state was stored, and what is to be said, of whom.
type Told<'a> = (&'a Arc<OwnedFd>, &'a Arc<Mutex<Vec<String>>>, &'a Arc<Orders>);

/// The state of the chain's NFs, once the server was seen to be able to keep it.
fn stores(
    spec: &HostChain,
    journal: &Journal,
    (stored, said, orders): Told<'_>,
) -> Result<Vec<Arc<Store>>, Failure> {
    let Some(state) = &spec.state else { return Ok(Vec::new()) };
    let name = journal.folder().file_name().and_then(|name| name.to_str());
    let chain = name.unwrap_or("catena");
    let prefix = state.prefix.as_deref().unwrap_or(chain);
    if let Some(nf) = spec.nfs.first() {
        state::check(state, prefix, &nf.name, chain).map_err(|why| {
            Failure::Impossible(format!("the state of NFs, at {}: {why}", state.server.place()))
        })?;
    }
    let store = |nf: &Nf| {
        let (said, orders) = (Arc::clone(said), Arc::clone(orders));
        let lines = move |line| {
            locked(&said).push(line);
            orders.wake();
        };
        Store::new(&nf.name, (prefix, chain), state, Arc::clone(stored), Box::new(lines))
    };
    Ok(spec.nfs.iter().map(store).collect())
}

/// What a service is asked for while it runs.
struct Serving {
    shared: Arc<Shared>,
    spec: Arc<HostChain>,
    begin: Instant,
}

impl Served for Serving {
    fn status(&self) -> Status {
        control::status(&self.shared, &self.spec, self.begin)
    }

    fn restart(&self) {
        self.shared.orders.restart();
    }
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<std::thread::JoinHandle<T>, Failure> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map_err(|why| Failure::Impossible(format!("the system gives no thread: {why}")))
}

/// Starts chains, one after the other, as it is asked to. NFs end with the thread that started them.
struct Launcher {
    spec: Arc<HostChain>,
    environments: Vec<Box<dyn Environment>>,
    journal: Arc<Journal>,
    capacity: u32,
    /// Whether what NFs print goes to files.
    has_logs: bool,
    stores: Vec<Arc<Store>>,
}

type Started = Result<(Chain, Watched), Failure>;

impl Launcher {
    fn serve(self, asked: &Receiver<u64>, started: &Sender<Started>) {
        for number in asked {
            let made = assemble(
                &self.spec,
                &self.environments,
                number,
                (self.capacity, self.has_logs),
                &self.stores,
                &self.journal,
            );
            if started.send(made).is_err() {
                return;
            }
        }
    }
}

/// The thread that watches.
struct Watch<'a> {
    /// Where logs are.
    folder: &'a std::path::Path,
    shared: &'a Arc<Shared>,
    chosen: &'a Chosen,
    ask: Sender<u64>,
    starts: Receiver<Started>,
    /// Chains in a row that did nothing.
    failures: u32,
    /// When chains ended of late.
    ended: Vec<Instant>,
    /// Whether one is being started.
    asked: bool,
    next: u64,
    /// How long an NF may wait for state in one turn.
    waits: Duration,
}

impl Watch<'_> {
    fn ask(&mut self) {
        self.next += 1;
        self.asked = self.ask.send(self.next).is_ok();
    }

    /// Names NFs that keep state in a chain that keeps none.
    fn say_what_is_lost(&self, spec: &HostChain, say: Say<'_>) {
        let watched = locked(&self.shared.watched);
        let seats = watched.iter().flat_map(|chain| &chain.seats);
        for seat in seats.filter(|seat| seat.names.has_state && spec.state.is_none()) {
            say(&format!(
                "the NF '{}' keeps state of flows, which ends with it: `state:` in the manifest keeps it in Redis",
                seat.name
            ));
        }
    }

    /// Waits for the first chain.
    fn first(&mut self) -> Result<Chain, Failure> {
        let started = self.starts.recv().map_err(|_| Failure::Interrupted)?;
        self.enlist(started?)
    }

    /// Takes a chain that started among those that are watched.
    fn enlist(&mut self, (mut chain, watched): (Chain, Watched)) -> Result<Chain, Failure> {
        self.asked = false;
        let placed = watched.each_thread(|thread| {
            scheduler::pin(Some(thread), self.chosen.core)?;
            self.chosen.class.map_or(Ok(()), |class| scheduler::set_class(thread, class))
        });
        chain.set_state(State::Idle);
        locked(&self.shared.watched).push(watched);
        placed.map_err(|why| {
            Failure::Impossible(format!(
                "an NF cannot be scheduled as it is to be: {why}; `policy: other` needs nothing, and `catena host doctor` shows more"
            ))
        })?;
        Ok(chain)
    }

    /// Watches until packets end or something else does.
    fn until_over(
        &mut self,
        give: &SyncSender<Chain>,
        spares: bool,
        timeout: Duration,
        say: Say<'_>,
    ) -> Result<(), Failure> {
        let mut ready: Option<Chain> = None;
        // Who had the turn, in which round of which chain, since when.
        let mut since: Option<((u64, usize, u64), Instant)> = None;
        if spares {
            self.ask();
        }
        loop {
            if self.shared.is_stopped() || self.shared.over.load(Ordering::Acquire) {
                return Ok(());
            }
            self.wait(timeout.min(Duration::from_millis(200)) / 4);
            while let Ok(started) = self.starts.try_recv() {
                match started {
                    Ok(started) => ready = Some(self.enlist(started)?),
                    Err(why) => {
                        self.asked = false;
                        self.failures += 1;
                        say(&format!("a chain did not start: {why}"));
                    }
                }
            }
            let active = self.shared.active.load(Ordering::Acquire);
            let mut over = Vec::new();
            for (at, chain) in locked(&self.shared.watched).iter().enumerate() {
                if self.look_at(chain, active, timeout, &mut since, say) {
                    over.push(at);
                }
            }
            for at in over.into_iter().rev() {
                let chain = locked(&self.shared.watched).remove(at);
                self.failures = if chain.has_worked() { 0 } else { self.failures + 1 };
                self.ended.push(Instant::now());
                chain.seats.iter().for_each(|seat| seat.running.destroy());
                if ready.as_ref().is_some_and(|of| of.number == chain.number) {
                    ready = None;
                }
            }
            locked(&self.shared.said).drain(..).for_each(|line| say(&line));
            if self.failures >= MOST_FAILURES {
                let why = format!(
                    "{MOST_FAILURES} chains in a row ended before they had processed a batch"
                );
                return Err(Failure::Impossible(why));
            }
            self.ended.retain(|at| at.elapsed() < WINDOW);
            if self.ended.len() >= MOST_IN_WINDOW {
                let why = format!("{MOST_IN_WINDOW} chains ended within {} s", WINDOW.as_secs());
                return Err(Failure::Impossible(why));
            }
            let is_alone = locked(&self.shared.watched).is_empty();
            if ready.is_none() && !self.asked && (is_alone || spares) {
                let count = locked(&self.shared.watched).len();
                // One that runs, and one that stands by.
                if count < 2 {
                    self.ask();
                }
            }
            // The mover takes it when the one that it has fails.
            if let Some(chain) = ready.take() {
                let number = chain.number;
                match give.try_send(chain) {
                    Ok(()) => {}
                    Err(std::sync::mpsc::TrySendError::Full(chain)) => ready = Some(chain),
                    // Who moves packets has ended before this thread saw that all of it ends.
                    Err(_) if self.shared.over.load(Ordering::Acquire) => return Ok(()),
                    Err(_) => {
                        return Err(Failure::Impossible(format!(
                            "chain {number} has nobody to run it"
                        )));
                    }
                }
            }
        }
    }

    /// Whether a chain is over: one of its NFs ended, was silent for too long, or a restart is due.
    fn look_at(
        &self,
        chain: &Watched,
        active: u64,
        timeout: Duration,
        since: &mut Option<((u64, usize, u64), Instant)>,
        say: Say<'_>,
    ) -> bool {
        if chain.has_failed() {
            return true;
        }
        let is_broken = |seat: &&Seat| seat.session.as_ref().is_some_and(|of| of.is_broken());
        if let Some(seat) = chain.seats.iter().find(is_broken) {
            say(&format!(
                "the NF '{}' asks for state as the ABI has it not: its chain is replaced",
                seat.name
            ));
            chain.fail();
            return true;
        }
        let ended =
            chain.seats.iter().find_map(|seat| Some((seat, seat.running.process.ending()?)));
        if let Some((seat, ending)) = ended {
            if self.shared.over.load(Ordering::Acquire) {
                // It was told to.
                return false;
            }
            let why = match seat.running.has_used_all_memory() {
                true => format!("{ending}, as it used all of its memory"),
                false => ending,
            };
            say(&format!("the NF '{}' ended: {why}; its chain is replaced", seat.name));
            if let Some(printed) = crate::log::tail(self.folder, &seat.name) {
                say(&format!("  it printed: {printed}"));
            }
            chain.fail();
            return true;
        }
        if chain.number == active && self.shared.orders.restart.swap(false, Ordering::Relaxed) {
            say("the chain is replaced, as requested");
            chain.fail();
            return true;
        }
        let Some((seat, round)) = chain.turn() else { return false };
        let turn = (chain.number, seat, round);
        match since {
            Some((of, begin)) if *of == turn => {
                // It may wait for state, but not without end.
                let session = chain.seats[seat].session.as_ref();
                let waited = session.and_then(|session| session.waited());
                let from = waited.map_or(*begin, |at| at.max(*begin)).min(*begin + self.waits);
                if from.elapsed() < timeout {
                    return false;
                }
                let name = &chain.seats[seat].name;
                say(&format!(
                    "the NF '{name}' has kept a batch for more than {} ms: it is ended, and its chain replaced",
                    timeout.as_millis()
                ));
                chain.fail();
                true
            }
            _ => {
                *since = Some((turn, Instant::now()));
                false
            }
        }
    }

    /// Waits until an NF ends, something is asked for, or some time is over.
    fn wait(&self, longest: Duration) {
        let watched = locked(&self.shared.watched);
        let handles =
            watched.iter().flat_map(|chain| &chain.seats).map(|seat| seat.running.process.handle());
        let handles: Vec<OwnedFd> =
            handles.filter_map(|handle| handle.try_clone_to_owned().ok()).collect();
        drop(watched);
        self.shared.orders.wait(&handles, longest);
    }
}
