//! The socket by which a service is asked, and what it answers: a line of JSON each.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dataplane::guarded_path::GuardedPath;
use serde::{Deserialize, Serialize};

use super::{HostChain, Shared, locked, spawn};
use crate::Failure;
use crate::state::Store;

/// The version of requests and answers.
pub(super) const VERSION: u32 = 1;

/// Bytes of a request or an answer at most.
const LONGEST: u64 = 1 << 20;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a service is asked.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// How it does.
    Status,
    /// Another chain replaces the one that runs.
    Restart,
}

#[derive(Debug, Deserialize, Serialize)]
struct Asked {
    version: u32,
    request: Request,
}

/// What an NF does.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NfStatus {
    /// Its name.
    pub name: String,
    /// Its process.
    pub process: u32,
    /// Packets that came to it since it was started; so are the next three.
    pub received: u64,
    /// Packets that it passed on.
    pub passed: u64,
    /// Batches.
    pub batches: u64,
    /// Nanoseconds a packet takes it.
    pub ns_per_packet: Option<f64>,
    /// How often it woke when it had not the turn.
    pub out_of_turn: u64,
    /// Packets that it dropped since the service began, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Its own counters since it was started.
    pub counters: BTreeMap<String, u64>,
    /// Its state, if it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<NfState>,
}

/// How an NF's state is kept.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct NfState {
    /// What is wrong with the server, if something is.
    pub trouble: Option<String>,
    /// Requests for flows that the NF's runtime did not know.
    pub requests: u64,
    /// These flows.
    pub flows: u64,
    /// Of these, flows that had been read ahead.
    #[serde(default)]
    pub ahead: u64,
    /// Flows that could not be read.
    pub unread: u64,
    /// Updates.
    pub updates: u64,
    /// Updates that are stored.
    pub acknowledged: u64,
    /// Updates that wait to be stored.
    pub waiting: u64,
    /// Updates that found no room to wait.
    pub lost: u64,
    /// Requests to the server: each has what was asked for meanwhile.
    pub round_trips: u64,
    /// How often the server was connected to.
    pub connections: u64,
}

/// Packets that wait until state is stored.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct HeldStatus {
    /// Packets that wait.
    pub waiting: u64,
    /// Packets that waited, whatever became of them.
    pub waited: u64,
    /// Packets that were dropped, as it was not stored in time or there was no room to wait.
    pub dropped: u64,
    /// Packets that passed though it was not stored.
    pub passed: u64,
}

/// How a service does.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Status {
    /// The version of this answer.
    pub version: u32,
    /// The process of the service.
    pub process: u32,
    /// Seconds since it began.
    pub seconds: f64,
    /// What carries packets from one NF to the next: `shared`, or a kind of switch. With the latter, what is counted is what the
    /// kernel counts on interfaces, in both directions; batches there are none.
    pub fabric: String,
    /// Packets that came.
    pub received: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that were longer than a buffer.
    pub too_long: u64,
    /// Packets that were lost as their batch was in the hands of an NF that ended.
    pub lost_in_nf: u64,
    /// Packets that devices lost.
    pub lost_by_devices: u64,
    /// Batches.
    pub batches: u64,
    /// Packets of a batch at most.
    pub batch: u64,
    /// Nanoseconds a batch takes from the first NF to the last.
    pub ns_per_batch: Option<f64>,
    /// Chains that failed and were replaced.
    pub failures: u64,
    /// The chain that runs: how many were started before it, and itself.
    pub generation: u64,
    /// Whether another one stands by.
    pub spare: bool,
    /// Packets that wait until state is stored, if it is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldStatus>,
    /// Its NFs.
    pub nfs: Vec<NfStatus>,
    /// What is to be said.
    pub remarks: Vec<String>,
}

fn ratio(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

fn state_of(store: &Store) -> NfState {
    let (counts, waiting, trouble) = store.counts();
    NfState {
        trouble,
        requests: counts.requests,
        flows: counts.flows,
        ahead: counts.ahead,
        unread: counts.unread,
        updates: counts.updates,
        acknowledged: counts.acknowledged,
        waiting: waiting as u64,
        lost: counts.lost,
        round_trips: counts.round_trips,
        connections: counts.connections,
    }
}

/// How it does now.
pub(super) fn status(shared: &Shared, spec: &HostChain, begin: Instant) -> Status {
    let active = shared.active.load(Ordering::Acquire);
    let watched = locked(&shared.watched);
    let totals = locked(&shared.totals).clone();
    let chain = watched.iter().find(|chain| chain.number == active);
    let nfs = spec.nfs.iter().enumerate().map(|(at, nf)| {
        let seat = chain.and_then(|chain| chain.seats.get(at));
        let counts = seat.map(|seat| seat.page.counts()).unwrap_or_default();
        let names = seat.map(|seat| seat.names.clone()).unwrap_or_default();
        let reason = |number: u16| match number {
            nf::MALFORMED => "malformed".to_string(),
            nf::NO_STATE => "no-state".to_string(),
            other => names
                .reasons
                .get(usize::from(other))
                .cloned()
                .unwrap_or_else(|| format!("reason-{other}")),
        };
        let counter = |(number, name): (usize, &String)| {
            (name.clone(), seat.map_or(0, |seat| seat.page.counter(number)))
        };
        NfStatus {
            name: nf.name.clone(),
            process: seat.map_or(0, |seat| seat.running.process.number),
            received: counts.received,
            passed: counts.passed,
            batches: counts.batches,
            ns_per_packet: ratio(counts.busy, counts.received),
            out_of_turn: counts.out_of_turn,
            dropped: totals.dropped[at]
                .iter()
                .map(|(number, count)| (reason(*number), *count))
                .collect(),
            counters: names.counters.iter().enumerate().map(counter).collect(),
            state: shared.stores.get(at).filter(|_| names.has_state).map(|of| state_of(of)),
        }
    });
    Status {
        version: VERSION,
        process: std::process::id(),
        seconds: begin.elapsed().as_secs_f64(),
        fabric: "shared".into(),
        received: totals.received,
        sent: totals.sent,
        too_long: totals.too_long,
        lost_in_nf: totals.lost_in_nf,
        lost_by_devices: totals.not_sent,
        batches: totals.rounds,
        batch: shared.batch.load(Ordering::Relaxed),
        ns_per_batch: ratio(totals.busy, totals.rounds),
        failures: totals.failures,
        generation: active,
        held: (!shared.stores.is_empty()).then_some(HeldStatus {
            waiting: totals.held.waiting,
            waited: totals.held.waited,
            dropped: totals.held.dropped,
            passed: totals.held.opened,
        }),
        spare: watched.iter().any(|chain| chain.number > active),
        nfs: nfs.collect(),
        remarks: totals.lines,
    }
}

/// A service that can be asked.
pub(super) trait Served: Send + Sync {
    /// How it does.
    fn status(&self) -> Status;

    /// Has all of it begin anew.
    fn restart(&self);
}

/// Serves a socket from now on.
pub(super) fn serve(path: &Path, served: Arc<dyn Served>) -> Result<Server, Failure> {
    let made = GuardedPath::make(path).and_then(GuardedPath::listen);
    let (listener, file) = made.map_err(Failure::at(path))?;
    let is_over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&is_over);
    let work = move || {
        let file = file;
        // One after the other: answers are short, and nobody keeps others waiting for long.
        for stream in listener.incoming().flatten() {
            if ends.load(Ordering::Acquire) {
                break;
            }
            let _ = answer(&stream, served.as_ref());
        }
        drop(file);
    };
    let thread = Some(spawn("control", work)?);
    Ok(Server { path: path.to_path_buf(), is_over, thread })
}

/// Answers until it is dropped.
pub(super) struct Server {
    path: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // It waits for somebody to come. If nobody can, it goes on waiting, with nobody to know of it.
        if UnixStream::connect(&self.path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn answer(mut stream: &UnixStream, served: &dyn Served) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    let reply = match serde_json::from_str::<Asked>(&line) {
        Err(why) => Err(format!("not understood: {why}")),
        Ok(Asked { version, .. }) if version != VERSION => {
            Err(format!("version {version} is asked for, and this service has {VERSION}"))
        }
        Ok(Asked { request, .. }) => {
            if request == Request::Restart {
                served.restart();
            }
            Ok(served.status())
        }
    };
    let text = match reply {
        Ok(status) => serde_json::to_string(&serde_json::json!({ "ok": status })),
        Err(why) => serde_json::to_string(&serde_json::json!({ "error": why })),
    };
    writeln!(stream, "{}", text?)
}

/// Who asks a service.
#[derive(Debug)]
pub struct Client;

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Reply {
    Ok(Status),
    Error(String),
}

impl Client {
    /// Asks the service whose socket this is.
    ///
    /// # Errors
    /// If it does not answer, or refuses.
    pub fn ask(path: &Path, request: Request) -> Result<Status, Failure> {
        let failed = |why: std::io::Error| Failure::File(path.into(), why);
        let mut stream = UnixStream::connect(path).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        let asked = serde_json::to_string(&Asked { version: VERSION, request });
        writeln!(stream, "{}", asked.unwrap_or_default()).map_err(failed)?;
        let mut line = String::new();
        BufReader::new((&stream).take(LONGEST)).read_line(&mut line).map_err(failed)?;
        match serde_json::from_str(&line) {
            Ok(Reply::Ok(status)) => Ok(status),
            Ok(Reply::Error(why)) => Err(Failure::Impossible(why)),
            Err(why) => Err(Failure::Impossible(format!(
                "{}: an answer that is none: {why}",
                path.display()
            ))),
        }
    }
}
