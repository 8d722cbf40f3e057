//! Controlling an instance that runs: requests and answers, each a line of JSON, on a UNIX socket.
//!
//! A request is an object with the member `do`; the answer is an object with `ok`, or with `error`
//! and a text for people. `catena ctl` shows both with `--json`. Some answers go on, see `stream`.

mod capture;
pub mod dispatch;
mod edge;
mod flows;
pub mod metrics;
mod server;
mod stream;
mod trace;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dataplane::all_cores::AllCores;
use dataplane::change::{Line, Plan};
use dataplane::control_socket::Handlers;
use dataplane::io::FaultInjection;
use dataplane::latency::Latency;
use dataplane::stats::{ElementStats, FunctionStats, Stats};
use dataplane::worker::Status;
use serde_json::{Map, Value, json};

use crate::findings::Findings;
use crate::instance::{Changed, Configuration, Extent, Instance, Refusal};
use stream::Stream;

pub use server::ControlSocket;
pub use trace::Followed;

/// The longest request in bytes: a configuration can be part of it.
pub const LONGEST: usize = 1 << 24;

/// Has connections served from now on, each by a thread of this name; those beyond `most` at a
/// time are told so, and turned away.
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
                std::thread::park_timeout(Duration::from_millis(100));
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

/// How long the end of a run waits for answers.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Puts into words what clients show to people.
pub trait Presenter: Send + Sync {
    /// What is wrong with a configuration, or may not be as it was meant.
    fn findings(&self, findings: &Findings) -> String;

    /// The same for programs: an array.
    fn diagnostics(&self, findings: &Findings) -> Value;

    /// What happened to a packet that was followed: for programs, an object, and for people, with colours or
    /// without.
    fn followed(&self, followed: &Followed<'_>, colours: bool) -> (Value, String);
}

/// An instance with what its configurations are read with.
pub struct Controlled {
    /// What is controlled.
    pub instance: Instance,
    /// How its configurations are elaborated.
    pub elaboration: compiler::Options,
    /// What is told of its dispatch.
    pub dispatch: dispatch::Told,
    /// Names that devices have in the chain, with the interfaces that they are bound to.
    pub interfaces: Vec<(String, String)>,
    /// Faults on its devices, if they were asked for.
    pub faults: Option<FaultInjection>,
    /// Words for clients.
    pub presenter: Box<dyn Presenter>,
    /// Ends the run.
    pub stop: Box<dyn Fn() + Send + Sync>,
    /// Requests that are being answered.
    pub answering: AtomicUsize,
}

type Answer = Result<Value, Failure>;

/// Why a request fails.
struct Failure {
    message: String,
    /// If it is a configuration that is wrong, what is.
    diagnostics: Option<Value>,
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, diagnostics: None }
    }
}

fn text<'a>(request: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    request.get(name).and_then(Value::as_str).ok_or_else(|| format!("'{name}' is missing"))
}

/// The request of a line.
fn parse(line: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(request)) => Ok(request),
        Ok(_) => Err("a request is an object".to_string()),
        Err(e) => Err(format!("not JSON: {e}")),
    }
}

/// The line of an answer.
fn render(answer: Answer) -> Value {
    match answer {
        Ok(value) => json!({ "ok": value }),
        Err(Failure { message, diagnostics: None }) => json!({ "error": message }),
        Err(Failure { message, diagnostics }) => {
            json!({ "error": message, "diagnostics": diagnostics })
        }
    }
}

/// A number of a request, or another if there is none.
fn number(request: &Map<String, Value>, name: &str, otherwise: u64) -> Result<u64, String> {
    match request.get(name) {
        None | Some(Value::Null) => Ok(otherwise),
        Some(value) => value.as_u64().ok_or_else(|| format!("'{name}' is no number")),
    }
}

/// A number that must be there.
fn index(request: &Map<String, Value>, name: &str) -> Result<usize, String> {
    let number = request.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    number.ok_or_else(|| format!("'{name}' is missing, or no number"))
}

/// How far a change goes that is asked for.
fn extent(request: &Map<String, Value>) -> Result<Extent, String> {
    let is = |name: &str| request.get(name).and_then(Value::as_bool).unwrap_or(false);
    match (is("check"), is("force")) {
        (true, true) => Err("'check' changes nothing that could be forced".to_string()),
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
        let begin = Instant::now();
        while self.answering.load(Ordering::Acquire) > 0 && begin.elapsed() < LAST_WORDS {
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    /// Whether the answer to a request goes on.
    fn goes_on(request: &Map<String, Value>) -> bool {
        matches!(request.get("do").and_then(Value::as_str), Some("capture" | "trace"))
    }

    /// Carries out a request whose answer goes on; gives its end.
    ///
    /// # Errors
    /// If the client is gone.
    fn follow(
        self: &Arc<Self>,
        request: &Map<String, Value>,
        stream: &mut Stream,
    ) -> std::io::Result<Answer> {
        let answer = match text(request, "do") {
            Ok("capture") => capture::serve(self, request, stream),
            _ => trace::serve(self, request, stream),
        };
        answer.map(|answer| answer.map_err(Failure::from))
    }

    /// Carries out a request.
    fn answer(&self, request: &Map<String, Value>) -> Answer {
        match text(request, "do")? {
            "swap" => self.swap(request),
            "rollback" => self.changed(self.instance.roll_back(extent(request)?)),
            action => Ok(self.act(action, request)?),
        }
    }

    /// Carries out what does not change the configuration.
    fn act(&self, action: &str, request: &Map<String, Value>) -> Result<Value, String> {
        let mut all = AllCores(self.instance.fleet());
        match action {
            "read" => all.read(text(request, "handler")?).map(Value::from),
            "write" => {
                let value = request.get("value").and_then(Value::as_str).unwrap_or("");
                all.write(text(request, "handler")?, value).map(|()| Value::Null)
            }
            "handlers" => self.handlers(request.get("element").and_then(Value::as_str)),
            "counters" => Ok(self.counters()),
            "dispatch" => self.dispatch.to_json(&self.instance),
            "move" => {
                let (group, worker) = (index(request, "group")?, index(request, "worker")?);
                let moved = self.instance.move_group(group, worker)?;
                Ok(json!({
                    "waited_ms": milliseconds(moved.waited), "packets": moved.packets,
                    "held_back": moved.held_back,
                }))
            }
            "flows" => flows::answer(&self.instance, request),
            "faults" => self.faults(request.get("set").and_then(Value::as_str)),
            "balance" => dispatch::balance(&self.instance),
            "status" => Ok(self.status()),
            "stop" => {
                (self.stop)();
                Ok(Value::Null)
            }
            other => Err(format!(
                "there is no '{other}', only read, write, handlers, counters, flows, dispatch, move, balance, faults, \
                 status, swap, rollback, capture, trace and stop"
            )),
        }
    }

    /// Lets the configuration in a file take the place of the one that runs.
    ///
    /// # Errors
    /// What is wrong with it; the old one runs on.
    pub fn reload(&self, path: &str, extent: Extent) -> Result<Changed, Refusal> {
        self.change(Configuration::read(path, &self.elaboration)?, extent)
    }

    fn change(&self, configuration: Configuration, extent: Extent) -> Result<Changed, Refusal> {
        if configuration.chain().graph.nodes.is_empty() {
            // A file that is about to be written, most likely.
            let why = format!("{}: it is empty; no chain was found in it", configuration.name());
            return Err(Refusal::Other(why));
        }
        self.instance.change(configuration, extent)
    }

    fn swap(&self, request: &Map<String, Value>) -> Answer {
        let extent = extent(request)?;
        let path = text(request, "path")?;
        let Some(text) = request.get("text").and_then(Value::as_str) else {
            return self.changed(self.reload(path, extent));
        };
        let read = Configuration::of_text(path, text, &self.elaboration);
        self.changed(read.and_then(|read| self.change(read, extent)))
    }

    /// What is answered to whoever asked for a change.
    fn changed(&self, changed: Result<Changed, Refusal>) -> Answer {
        let shown = |findings: &Findings| self.presenter.findings(findings);
        match changed {
            Ok(changed) => Ok(changed_json(&changed, &shown(&changed.warnings))),
            Err(Refusal::Diagnostics(findings)) => Err(Failure {
                message: shown(&findings).trim_end().to_string(),
                diagnostics: Some(self.presenter.diagnostics(&findings)),
            }),
            Err(refusal) => Err(refusal.to_string().into()),
        }
    }

    /// What faults happen from now on.
    fn faults(&self, set: Option<&str>) -> Result<Value, String> {
        let injection = self.faults.as_ref().ok_or(
            "devices cannot have faults; 'catena run --faults none' lets them have some later",
        )?;
        if let Some(text) = set {
            injection.set(text.parse()?);
        }
        Ok(injection.get().to_string().into())
    }

    fn handlers(&self, element: Option<&str>) -> Result<Value, String> {
        let fleet = self.instance.fleet();
        let named = |name: String| {
            let list = move |router: &mut dataplane::Router| {
                router.read_handler(&match name.as_str() {
                    "" => "handlers".to_string(),
                    name => format!("{name}.handlers"),
                })
            };
            let list = fleet.call(0, list).unwrap_or(Err("the worker is dead".to_string()))?;
            let line = |line: &str| {
                let (name, access) = line.split_once('\t')?;
                Some(json!({
                    "name": name, "read": access.contains('r'), "write": access.contains('w'),
                }))
            };
            Ok::<_, String>(Value::from(list.lines().filter_map(line).collect::<Vec<_>>()))
        };
        if let Some(element) = element {
            return named(element.to_string());
        }
        let (_, configuration) = self.instance.current();
        let nodes = &configuration.chain().graph.nodes;
        let all = nodes.iter().map(|node| Ok((node.name.clone(), named(node.name.clone())?)));
        Ok(Value::Object(all.collect::<Result<_, String>>()?))
    }

    fn status(&self) -> Value {
        let (generation, configuration) = self.instance.current();
        let fleet = self.instance.fleet();
        let worker = |worker: usize| {
            let status = match fleet.status(worker) {
                Status::Running => "running",
                Status::Idle => "idle",
                Status::Stopped => "stopped",
                Status::Dead => "dead",
            };
            json!({ "worker": worker, "cpu": fleet.cpu(worker), "status": status })
        };
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "seconds": self.instance.age().as_secs_f64(),
            "configuration": configuration.name(),
            "generation": generation,
            "elements": configuration.chain().graph.nodes.len(),
            "workers": (0..fleet.len()).map(worker).collect::<Vec<_>>(),
        })
    }

    /// What each worker and all together have done.
    fn counters(&self) -> Value {
        let (each, sum) = self.instance.stats();
        let fleet = self.instance.fleet();
        let worker = |(worker, stats): &(usize, Stats)| {
            let mut value = stats_json(stats);
            value["worker"] = json!(worker);
            value["cpu"] = json!(fleet.cpu(*worker));
            value["mhz"] = json!(megahertz(fleet.cpu(*worker)));
            value
        };
        json!({
            "workers": each.iter().map(worker).collect::<Vec<_>>(),
            "all": sum.as_ref().map(stats_json),
        })
    }
}

/// How fast a CPU runs, or the first one, if the system tells.
fn megahertz(cpu: Option<usize>) -> Option<f64> {
    let all = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let speeds = all.lines().filter(|line| line.starts_with("cpu MHz"));
    speeds.filter_map(|line| line.split(':').nth(1)?.trim().parse().ok()).nth(cpu.unwrap_or(0))
}

fn stats_json(stats: &Stats) -> Value {
    let (taken, given) = stats.packets();
    json!({
        "now": stats.now,
        "rounds": stats.load.rounds,
        "buffers": stats.buffers,
        "busy": stats.load.busy,
        "in": taken,
        "out": given,
        "elements": stats.elements.iter().map(element_json).collect::<Vec<_>>(),
        "functions": stats.functions.iter().map(function_json).collect::<Vec<_>>(),
        "latencies": stats.latencies.iter().map(latency_json).collect::<Vec<_>>(),
    })
}

/// Each bucket is the greatest number of nanoseconds in it, and how many packets it has.
fn latency_json(latency: &Latency) -> Value {
    let buckets: Vec<_> = latency.histogram.buckets().collect();
    json!({
        "of": metrics::kind(latency.of), "name": latency.name,
        "sum": latency.histogram.sum(), "buckets": buckets,
    })
}

fn function_json(function: &FunctionStats) -> Value {
    json!({ "name": function.name, "packets": function.packets })
}

fn element_json(element: &ElementStats) -> Value {
    let mut value =
        json!({ "name": element.name, "class": element.class, "packets": element.packets });
    if let Some(traffic) = element.traffic {
        let side = if traffic.source { "in" } else { "out" };
        value[side] = json!({ "packets": traffic.packets, "bytes": traffic.bytes });
    }
    if let Some((packets, bytes)) = element.counter {
        value["counted"] = json!({ "packets": packets, "bytes": bytes });
    }
    let lines = |of: fn(&elements::context::Tallied) -> u64| -> Map<String, Value> {
        let lines = element.tally.iter().filter(|line| of(line) > 0);
        lines.map(|line| (line.reason.0.to_string(), of(line).into())).collect()
    };
    for (name, lines) in [("dropped", lines(|l| l.dropped)), ("errors", lines(|l| l.noted))] {
        if !lines.is_empty() {
            value[name] = Value::Object(lines);
        }
    }
    if element.holding.packets > 0 {
        value["held"] = element.holding.packets.into();
    }
    if element.holding.flows > 0 {
        value["flows"] = element.holding.flows.into();
    }
    value
}

fn plan_json(plan: &Plan) -> Value {
    let line = |line: &Line| {
        json!({
            "element": line.element, "class": line.class, "fate": line.fate.to_string(),
            "state": line.state, "packets": line.holding.packets, "flows": line.holding.flows,
            "why": line.why,
        })
    };
    plan.lines.iter().map(line).collect::<Vec<_>>().into()
}

fn changed_json(changed: &Changed, warnings: &str) -> Value {
    let standstills: Vec<f64> =
        changed.swapped.iter().map(|s| milliseconds(s.standstill)).collect();
    let unclaimed: u64 = changed.swapped.iter().map(|s| s.taken.unclaimed).sum();
    json!({
        "changed": !changed.swapped.is_empty(),
        "plan": plan_json(&changed.plan),
        "loses": changed.plan.loses(),
        "unclaimed_packets": unclaimed,
        "preparation_ms": milliseconds(changed.preparation),
        "standstill_ms": standstills,
        "warnings": warnings,
        "objection": changed.objection,
    })
}
