//! Controlling an instance that runs: an instance answers on a [`ControlSocket`] what a [`Client`] asks, in the
//! [`protocol`].

mod capture;
mod client;
pub mod dispatch;
mod edge;
mod flows;
pub mod metrics;
pub mod protocol;
pub mod rates;
mod server;
mod stream;
mod trace;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use dataplane::change::{self, ElementPlan};
use dataplane::io::FaultInjection;
use dataplane::latency::{Latency, Of};
use dataplane::stats::{ElementStats, FunctionStats, Stats};
use dataplane::worker::Status;
use elements::context::Tallied;
use serde_json::Value;

use crate::error::Error;
use crate::findings::Findings;
use crate::instance::{Changed, Configuration, Extent, Imported, Instance, Moved, Share, Workers};
use crate::scaling::{Decision, Scaling};
use crate::session::Cut;
use crate::supervision::Handle;
use protocol::{
    Ask, CountersAnswer, Counts, ElementCounts, ElementHandlers, ElementState, Fate,
    FunctionCounts, Handler, LatencyCounts, LatencyOf, Refusal, Reply, Request, ScalingAnswer,
    ScalingDecision, StateImported, StatusAnswer, Traffic, Worker, WorkerCounts, WorkerStatus,
    WorkersAnswer,
};

pub use client::{Client, Failure, Received};
pub use server::ControlSocket;
pub use trace::PacketTrace;

/// The longest request in bytes: a configuration can be part of it.
pub const LONGEST: usize = 1 << 24;

/// Has connections served from now on, each by a thread of this name; those beyond `most` at a
/// time get an error, and are turned away.
///
/// # Errors
/// If the system gives no thread.
fn accept<S: Send + 'static>(
    name: &'static str,
    most: usize,
    next: impl Fn() -> std::io::Result<S> + Send + 'static,
    converse: impl Fn(S) + Send + Sync + 'static,
    turn_away: impl Fn(S) + Send + 'static,
) -> std::io::Result<()> {
    let thread = move || std::thread::Builder::new().name(name.into());
    let (open, converse) = (Arc::new(AtomicUsize::new(0)), Arc::new(converse));
    let accept = move || {
        loop {
            let Ok(stream) = next() else {
                // Out of descriptors, most likely: there may be some again.
                give_back_time();
                continue;
            };
            if open.fetch_add(1, Ordering::AcqRel) >= most {
                open.fetch_sub(1, Ordering::AcqRel);
                turn_away(stream);
                continue;
            }
            let (converse, count) = (Arc::clone(&converse), Arc::clone(&open));
            let serve = move || {
                converse(stream);
                count.fetch_sub(1, Ordering::AcqRel);
            };
            if thread().spawn(serve).is_err() {
                open.fetch_sub(1, Ordering::AcqRel);
            }
        }
    };
    thread().spawn(accept).map(drop)
}

/// Waits for other threads to give back what the system has too few of.
#[expect(clippy::disallowed_methods, reason = "what the system has changes by real time")]
fn give_back_time() {
    std::thread::park_timeout(Duration::from_millis(100));
}

/// How long the end of a run waits for answers.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Puts into words what clients show to people.
pub trait Presenter: Send + Sync {
    /// What is wrong with a configuration, or may not be as it was meant.
    fn findings(&self, findings: &Findings) -> String;

    /// What happened to a packet that was traced: for programs, an object, and for people, with colours or
    /// without.
    fn packet_trace(&self, packet_trace: &PacketTrace<'_>, colours: bool) -> (Value, String);
}

/// A device in front of an instance, for which configurations are divided.
pub trait Front: Send + Sync {
    /// How programs are cut of the configuration in a file; none if they are to be cut as they were.
    fn divide(&self, path: &str) -> Option<Cut>;

    /// What was divided last runs now.
    fn runs(&self);
}

/// An instance with what its configurations are read with.
pub struct Controlled {
    /// What is controlled.
    pub instance: Instance,
    /// How its configurations are elaborated.
    pub elaboration: compiler::Options,
    /// What scales it, if anything does.
    pub scaling: Option<Scaling>,
    /// What is reported of its dispatch.
    pub dispatch: dispatch::DispatchState,
    /// What is in front of it, if anything is.
    pub front: Option<Arc<dyn Front>>,
    /// Names that devices have in the chain, with the interfaces that they are bound to.
    pub interfaces: Vec<(String, String)>,
    /// Faults on its devices, if they were asked for.
    pub faults: Option<FaultInjection>,
    /// Words for clients.
    pub presenter: Box<dyn Presenter>,
    /// Ends the run, or has its configuration read again.
    pub handle: Handle,
    /// Requests that are being answered.
    pub answering: AtomicUsize,
}

/// The answer to a request, or its end.
type Answer = Result<Value, Error>;

/// The answer to a request of this kind.
fn answer<R: Ask>(_: &R, answer: Result<R::Answer, Error>) -> Answer {
    serde_json::to_value(answer?).map_err(|e| Error::Other(e.to_string()))
}

/// The line of an answer.
fn render(answer: Answer, presenter: &dyn Presenter) -> String {
    let reply = match answer {
        Ok(value) => Reply::Ok(value),
        Err(why) => Reply::Error(refusal(&why, presenter)),
    };
    // What was made of JSON can be written as JSON.
    reply.line().unwrap_or_default()
}

fn refusal(why: &Error, presenter: &dyn Presenter) -> Refusal {
    let (message, diagnostics) = match why {
        Error::Configuration(findings) => {
            (presenter.findings(findings).trim_end().to_string(), findings.reported())
        }
        why => (why.to_string(), Vec::new()),
    };
    Refusal { code: why.code().to_string(), message, diagnostics }
}

/// How far a change goes that is asked for.
fn extent(check: bool, force: bool) -> Result<Extent, Error> {
    match (check, force) {
        (true, true) => {
            Err(Error::Request("'check' changes nothing that could be forced".to_string()))
        }
        (true, false) => Ok(Extent::Check),
        (false, true) => Ok(Extent::Force),
        (false, false) => Ok(Extent::Change),
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

impl Controlled {
    /// Waits until whoever asked for something has the answer, so that a run that a request ended
    /// does not end before; not for long, nor for answers that go on.
    pub fn finish_answers(&self) {
        self.instance.comes_to_be(LAST_WORDS, || self.answering.load(Ordering::Acquire) == 0);
    }

    /// Executes a request.
    fn answer(&self, request: &Request) -> Answer {
        match request {
            Request::Read(asked) => answer(asked, self.instance.read(&asked.handler)),
            Request::Write(asked) => {
                answer(asked, self.instance.write(&asked.handler, &asked.value))
            }
            Request::Handlers(asked) => answer(asked, self.handlers(asked.element.as_deref())),
            Request::Counters(asked) => answer(asked, Ok(self.counters())),
            Request::Flows(asked) => answer(asked, flows::list(&self.instance, asked)),
            Request::RemoveFlow(asked) => answer(asked, flows::remove(&self.instance, asked)),
            Request::Dispatch(asked) => answer(asked, self.dispatch.report(&self.instance)),
            Request::Move(asked) => {
                let moved = self.instance.move_group(asked.group, asked.worker);
                answer(asked, moved.map(moved_answer))
            }
            Request::Balance(asked) => answer(asked, dispatch::balance(&self.instance)),
            Request::Workers(asked) => answer(asked, self.workers(asked.count)),
            Request::Scaling(asked) => answer(asked, self.scaling(asked.since)),
            Request::ExportState(asked) => {
                let share = match (asked.group, asked.worker) {
                    (Some(group), _) => Share::Group(group),
                    (None, Some(worker)) => Share::Worker(worker),
                    (None, None) => Share::All,
                };
                answer(asked, self.instance.export_state(share))
            }
            Request::ImportState(asked) => {
                let imported = self.instance.import_state(&asked.text);
                let taken =
                    |Imported { elements, flows, lost }| StateImported { elements, flows, lost };
                answer(asked, imported.map(taken))
            }
            Request::Faults(asked) => answer(asked, self.faults(asked.set.as_deref())),
            Request::Status(asked) => answer(asked, Ok(self.status())),
            Request::Swap(asked) => answer(asked, self.swap(asked)),
            Request::Rollback(asked) => {
                let changed = extent(asked.check, asked.force)
                    .and_then(|extent| self.instance.roll_back(extent));
                answer(asked, self.changed(changed))
            }
            Request::Stop(asked) => {
                self.handle.stop();
                answer(asked, Ok(()))
            }
            Request::Capture(_) | Request::Trace(_) => {
                Err(Error::Request("this answer goes on".to_string()))
            }
        }
    }

    /// Replaces the configuration that runs with the one in a file.
    ///
    /// # Errors
    /// What is wrong with it; the old one runs on.
    pub fn reload(&self, path: &str, extent: Extent) -> Result<Changed, Error> {
        let configuration = Configuration::read(path, &self.elaboration)?;
        let front = self.front.as_ref().filter(|_| extent != Extent::Check);
        let cut = front.and_then(|front| front.divide(path));
        let is_divided = cut.is_some();
        let changed = self.change(configuration, extent, cut)?;
        front.iter().filter(|_| is_divided).for_each(|front| front.runs());
        Ok(changed)
    }

    fn change(
        &self,
        configuration: Configuration,
        extent: Extent,
        cut: Option<Cut>,
    ) -> Result<Changed, Error> {
        if configuration.chain().graph.nodes.is_empty() {
            return Err(Error::Empty(configuration.name().to_string()));
        }
        self.instance.change_and_cut(configuration, extent, cut)
    }

    fn swap(&self, asked: &protocol::Swap) -> Result<protocol::Changed, Error> {
        let extent = extent(asked.check, asked.force)?;
        let Some(text) = &asked.text else {
            return self.changed(self.reload(&asked.path, extent));
        };
        let read = Configuration::of_text(&asked.path, text, &self.elaboration);
        self.changed(read.and_then(|read| self.change(read, extent, None)))
    }

    /// What is answered to whoever asked for a change.
    fn changed(&self, changed: Result<Changed, Error>) -> Result<protocol::Changed, Error> {
        let changed = changed?;
        Ok(changed_answer(&changed, self.presenter.findings(&changed.warnings)))
    }

    /// What faults happen from now on.
    fn faults(&self, set: Option<&str>) -> Result<String, Error> {
        let injection = self.faults.as_ref().ok_or(Error::NoFaults)?;
        if let Some(text) = set {
            injection.set(text.parse().map_err(Error::Faults)?);
        }
        Ok(injection.get().to_string())
    }

    fn handlers(&self, element: Option<&str>) -> Result<Vec<ElementHandlers>, Error> {
        let fleet = self.instance.fleet();
        let of = |element: String| {
            let handler = match element.as_str() {
                "" => "handlers".to_string(),
                element => format!("{element}.handlers"),
            };
            let list = move |router: &mut dataplane::Router| router.read_handler(&handler);
            let list = fleet.call(0, list).ok_or(Error::WorkerDead)?;
            let list = list.map_err(Error::Handler)?;
            let line = |line: &str| {
                let (name, access) = line.split_once('\t')?;
                let (read, write) = (access.contains('r'), access.contains('w'));
                Some(Handler { name: name.to_string(), read, write })
            };
            Ok(ElementHandlers { element, handlers: list.lines().filter_map(line).collect() })
        };
        if let Some(element) = element {
            return Ok(vec![of(element.to_string())?]);
        }
        let (_, configuration) = self.instance.current();
        configuration.chain().graph.nodes.iter().map(|node| of(node.name.clone())).collect()
    }

    /// How many workers take packets, from now on if a number is asked for.
    fn workers(&self, count: Option<usize>) -> Result<WorkersAnswer, Error> {
        let moved = match count {
            None => Moved::default(),
            Some(count) => self.instance.set_workers(count)?,
        };
        let Workers { running: workers, most } = self.instance.workers();
        let note = self.dispatch.note().map(str::to_string).filter(|_| most > 1);
        Ok(WorkersAnswer { workers, most, note, moved: moved_answer(moved) })
    }

    /// What scales the run, and what it decided since so many seconds ago.
    fn scaling(&self, since: Option<f64>) -> Result<ScalingAnswer, Error> {
        let scaling = self.scaling.as_ref().ok_or(Error::NoScaling)?;
        let age = self.instance.age().as_secs_f64();
        let since = since.map_or(0.0, |since| (age - since).max(0.0));
        let decisions = scaling.decisions((since * 1e9) as u64);
        let Workers { running: workers, most } = self.instance.workers();
        Ok(ScalingAnswer {
            policy: scaling.policy().to_string(),
            seconds: age,
            workers,
            most,
            decisions: decisions.iter().map(ScalingDecision::from).collect(),
        })
    }

    fn status(&self) -> StatusAnswer {
        let (generation, configuration) = self.instance.current();
        let fleet = self.instance.fleet();
        let worker = |worker: usize| {
            let status = match fleet.status(worker) {
                Status::Running => WorkerStatus::Running,
                Status::Idle => WorkerStatus::Idle,
                Status::Stopped => WorkerStatus::Stopped,
                Status::Parked => WorkerStatus::Parked,
                Status::Dead => WorkerStatus::Dead,
            };
            Worker { worker, cpu: fleet.cpu(worker), status }
        };
        StatusAnswer {
            version: env!("CARGO_PKG_VERSION").to_string(),
            pid: std::process::id(),
            seconds: self.instance.age().as_secs_f64(),
            configuration: configuration.name().to_string(),
            generation,
            elements: configuration.chain().graph.nodes.len(),
            workers: (0..fleet.len()).map(worker).collect(),
        }
    }

    /// What each worker and all together have done.
    fn counters(&self) -> CountersAnswer {
        let (each, sum) = self.instance.stats();
        let fleet = self.instance.fleet();
        let worker = |(worker, stats): &(usize, Stats)| {
            let cpu = fleet.cpu(*worker);
            let (mhz, waiting) = (megahertz(cpu), self.instance.waiting(*worker));
            WorkerCounts { worker: *worker, cpu, mhz, waiting, counts: stats.into() }
        };
        CountersAnswer {
            workers: each.iter().map(worker).collect(),
            all: sum.as_ref().map(Counts::from),
        }
    }
}

impl From<&Decision> for ScalingDecision {
    fn from(decision: &Decision) -> Self {
        let Decision { seen, actions, notes, groups, waited_ms, failed } = decision;
        Self {
            seconds: seen.at as f64 / 1e9,
            workers: seen.dedicated().count(),
            load: seen.cores.iter().map(|of| of.load).sum(),
            why: notes.iter().map(|note| note.why.clone()).collect(),
            orders: scale::told(actions),
            groups: *groups,
            waited_ms: *waited_ms,
            failed: failed.clone(),
        }
    }
}

fn moved_answer(moved: Moved) -> protocol::Moved {
    let Moved { groups, waited, packets, held_back } = moved;
    protocol::Moved { groups, waited_ms: milliseconds(waited), packets, held_back }
}

/// How fast a CPU runs, or the first one, if the system reports it.
fn megahertz(cpu: Option<usize>) -> Option<f64> {
    let all = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let speeds = all.lines().filter(|line| line.starts_with("cpu MHz"));
    speeds.filter_map(|line| line.split(':').nth(1)?.trim().parse().ok()).nth(cpu.unwrap_or(0))
}

impl From<&Stats> for Counts {
    fn from(stats: &Stats) -> Self {
        let (taken, given) = stats.packets();
        let function = |function: &FunctionStats| FunctionCounts {
            name: function.name.clone(),
            packets: function.packets,
        };
        Self {
            now: stats.now,
            rounds: stats.load.rounds,
            buffers: stats.buffers,
            busy: stats.load.busy,
            taken,
            given,
            elements: stats.elements.iter().map(ElementCounts::from).collect(),
            functions: stats.functions.iter().map(function).collect(),
            latencies: stats.latencies.iter().map(LatencyCounts::from).collect(),
        }
    }
}

impl From<&Latency> for LatencyCounts {
    fn from(latency: &Latency) -> Self {
        let of = match latency.of {
            Of::Chain => LatencyOf::Chain,
            Of::Function => LatencyOf::Function,
            Of::Program => LatencyOf::Program,
            Of::Element => LatencyOf::Element,
        };
        let histogram = &latency.histogram;
        let buckets = histogram.buckets().collect();
        Self { of, name: latency.name.clone(), sum: histogram.sum(), buckets }
    }
}

impl From<&ElementStats> for ElementCounts {
    fn from(element: &ElementStats) -> Self {
        let traffic = |source: bool| {
            let traffic = element.traffic.filter(|traffic| traffic.source == source);
            traffic.map(|traffic| Traffic { packets: traffic.packets, bytes: traffic.bytes })
        };
        let lines = |of: fn(&Tallied) -> u64| {
            let lines = element.tally.iter().filter(|line| of(line) > 0);
            lines.map(|line| (line.reason.0.to_string(), of(line))).collect()
        };
        Self {
            name: element.name.clone(),
            class: element.class.clone(),
            packets: element.packets,
            taken: traffic(true),
            given: traffic(false),
            counted: element.counter.map(|(packets, bytes)| Traffic { packets, bytes }),
            dropped: lines(|line| line.dropped),
            errors: lines(|line| line.noted),
            held: element.holding.packets as u64,
            flows: element.holding.flows as u64,
        }
    }
}

impl From<&ElementPlan> for ElementState {
    fn from(line: &ElementPlan) -> Self {
        let fate = match line.fate {
            change::Fate::Kept => Fate::Kept,
            change::Fate::Partly => Fate::Partly,
            change::Fate::Lost => Fate::Lost,
            change::Fate::New => Fate::New,
        };
        Self {
            element: line.element.clone(),
            class: line.class.clone(),
            fate,
            state: line.state.iter().map(|name| name.to_string()).collect(),
            packets: line.holding.packets as u64,
            flows: line.holding.flows as u64,
            why: line.why.clone(),
        }
    }
}

fn changed_answer(changed: &Changed, warnings: String) -> protocol::Changed {
    protocol::Changed {
        changed: !changed.swapped.is_empty(),
        plan: changed.plan.lines.iter().map(ElementState::from).collect(),
        loses: changed.plan.loses(),
        unclaimed_packets: changed.swapped.iter().map(|s| s.taken.unclaimed).sum(),
        preparation_ms: milliseconds(changed.preparation),
        standstill_ms: changed.swapped.iter().map(|s| milliseconds(s.standstill)).collect(),
        warnings,
        objection: changed.objection.clone(),
    }
}
