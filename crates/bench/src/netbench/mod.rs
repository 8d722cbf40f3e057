//! Netbench: which virtual switch between containers, and what it gives them.
//!
//! A [`Request`] is a matrix of [`Cell`]s. Each is run several times, in an order that a seed draws, so that drift of the
//! machine favours no switch: a switch is started, each [application] is put into a network namespace as a process of its
//! own, and throughput and round trips are measured.

pub mod advice;
mod agent;
pub mod application;
mod carrier;
mod cell;
pub mod containers;
mod devices;
mod dry;
mod far;
mod frame;
mod hosts;
mod markdown;
pub mod matrix;
mod page;
mod profile;
pub mod results;
mod side;
pub mod test_set;
mod trains;
pub mod values;

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Instant;

use host::fabric::{self, Ends, Fabric};
use host::{Failure, Journal, Opened};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
pub use agent::serve;
pub use carrier::{CARRIERS, Carrier};
pub use cell::{read_order, write_state};
pub use containers::Container;
pub use dry::dry_run;
pub use far::Reach;
pub use frame::{Endpoint, SIZES};
use hosts::Hosts;
pub use hosts::{Between, HostOf};
pub use results::Results;
use side::{Answer, Ask, Broken};

/// What is run: a switch, and how it is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The switch.
    pub switch: String,
    /// Pairs of applications.
    pub pairs: usize,
    /// Bytes of a frame, without frame check sequence.
    pub size: usize,
    /// Packets that a sender sends at once.
    pub burst: usize,
    /// Packets that a client sends at once.
    pub latency_burst: usize,
    /// Packets per second of each sender; as many as it can if nothing is said.
    pub rate: Option<u64>,
    /// Packets per second of each client.
    pub latency_rate: u64,
    /// Cores of the switch.
    pub cores: usize,
    /// How packets of applications are carried, as [`Carrier`] has it.
    pub io: String,
    /// Who of a pair sends.
    pub direction: Direction,
    /// Which host the second of a pair is on.
    pub peer: Peer,
    /// Whether applications write and read each byte of payloads.
    pub touches: bool,
    /// What is measured.
    pub what: What,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// Seconds of the same load before each, whose packets do not count.
    pub warm_up: f64,
    /// What applications run in, as container runtimes are called.
    #[serde(default = "plain")]
    pub container: String,
}

/// The containers that netbench makes without any program.
fn plain() -> String {
    "plain".into()
}

/// Who of a pair sends, or asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The first.
    There,
    /// The second.
    Back,
    /// The first of one pair, the second of the next.
    Both,
}

impl FromStr for Direction {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(text, &[("there", Self::There), ("back", Self::Back), ("both", Self::Both)])
    }
}

/// Which host the second of a pair is on; the first is always on the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    /// The same.
    Local,
    /// The other of two.
    Remote,
}

impl Peer {
    /// How many hosts a cell takes.
    fn hosts(self) -> usize {
        match self {
            Self::Local => 1,
            Self::Remote => 2,
        }
    }
}

impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(text, &[("local", Self::Local), ("remote", Self::Remote)])
    }
}

/// What is measured of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// Throughput, then round trips.
    Both,
    /// Throughput alone.
    Throughput,
    /// Round trips alone.
    Latency,
}

impl FromStr for What {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all =
            [("both", Self::Both), ("throughput", Self::Throughput), ("latency", Self::Latency)];
        named(text, &all)
    }
}

/// What a name stands for.
fn named<T: Copy>(text: &str, all: &[(&str, T)]) -> Result<T, String> {
    let names = || all.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let found = all.iter().find(|(name, _)| *name == text);
    found.map(|(_, of)| *of).ok_or_else(|| format!("'{text}': takes {}", names()))
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Request {
    /// The cells.
    pub cells: Vec<Cell>,
    /// How often each is run.
    pub repeat: usize,
    /// Draws the order.
    pub seed: u64,
    /// The containers, two of a pair one after the other; if there are none, Catena has addresses for as many as a cell has.
    pub containers: Vec<Container>,
    /// The CPUs that may be used.
    pub cpus: Vec<usize>,
    /// The hosts that are measured between; this one alone if nothing is said.
    pub between: Option<Between>,
    /// Whether settings of the host stay as they are; else frequencies and interrupts are set while it measures.
    pub keeps_settings: bool,
    /// The program `catena`.
    pub program: PathBuf,
}

/// What all runs have in common.
struct Setting<'a> {
    request: &'a Request,
    is_stopped: &'a dyn Fn() -> bool,
}

/// The cores of applications, and of the switch: the last, in every cell alike, also for a switch that has no processes. Where
/// there are too few, they share all.
fn cores(cpus: &[usize], switch: usize) -> (&[usize], &[usize]) {
    match cpus.len().checked_sub(switch) {
        Some(at @ 1..) => cpus.split_at(at),
        _ => (cpus, cpus),
    }
}

/// How far it is.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// The run, from 1 on, of so many.
    pub run: (usize, usize),
    /// What runs.
    pub cell: &'a Cell,
    /// Seconds that are left, about; nothing before the first run has ended.
    pub left: Option<f64>,
}

/// What is heard of a measurement.
#[derive(Debug)]
pub enum Event<'a> {
    /// A run starts.
    Starts(&'a Progress<'a>),
    /// A run failed: why.
    Failed(&'a Progress<'a>, &'a str),
    /// A run has ended: all that was measured so far.
    Measured(&'a Results),
}

/// Where journals are.
const FOLDER: &str = "/run/catena/netbench";

impl Request {
    /// What a reader should know before it runs on this host: cores that are shared.
    pub fn remarks(&self) -> Vec<String> {
        match self.between {
            Some(_) => Vec::new(),
            None => {
                let mut all = shared(&self.cells, (0, &self.cpus));
                all.extend(untested(&self.cells));
                all
            }
        }
    }

    /// The runs in the order in which they come: each repetition has all cells, in an order of its own.
    fn runs(&self) -> Vec<usize> {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut all = Vec::new();
        for _ in 0..self.repeat {
            let mut round: Vec<usize> = (0..self.cells.len()).collect();
            random.shuffle(&mut round);
            all.extend(round);
        }
        all
    }
}

/// What a reader should know of cores that are shared on hosts.
fn remarks(cells: &[Cell], hosts: &Hosts<'_>) -> Vec<String> {
    let of = |side: usize| {
        let all = shared(cells, (side, hosts.cpus(side)));
        let prefix = hosts.prefix(side);
        all.into_iter().map(move |remark| format!("{prefix}{remark}"))
    };
    let mut all: Vec<String> = (0..hosts.count()).flat_map(of).collect();
    all.extend(untested(cells));
    all
}

/// Switches that no test of Catena runs.
fn untested(cells: &[Cell]) -> Vec<String> {
    let mut names: Vec<&str> = cells.iter().map(|cell| cell.switch.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| fabric::find(name).is_ok_and(|fabric| !fabric.is_tested()));
    names.iter().map(|name| format!("{name} is untested: no test of Catena runs it")).collect()
}

/// CPUs of a host that applications of cells share.
fn shared(cells: &[Cell], (side, cpus): (usize, &[usize])) -> Vec<String> {
    let mut remarks: Vec<String> = Vec::new();
    for cell in cells.iter().filter(|cell| side < cell.peer.hosts()) {
        let (applications, switch) = cores(cpus, cell.cores);
        let list = |all: &[usize]| {
            let all: Vec<String> = all.iter().map(usize::to_string).collect();
            let plural = if all.len() == 1 { "" } else { "s" };
            format!("CPU{plural} {}", all.join(","))
        };
        let count = 2 * cell.pairs / cell.peer.hosts();
        let remark = if std::ptr::eq(applications, switch) {
            format!(
                "the switch is to have {} of {} CPUs, so nothing is left for applications: both share {}",
                cell.cores,
                cpus.len(),
                list(applications)
            )
        } else if count > applications.len() {
            format!(
                "{count} applications share {}, in cells of every switch alike; a switch with processes has {}",
                list(applications),
                list(switch)
            )
        } else {
            continue;
        };
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }
    remarks
}

/// Takes down what runs have left that ended without doing so; how many these were, and processes that run netbench now.
///
/// # Errors
/// What could not be taken down.
pub fn clean() -> Result<(usize, Vec<u32>), Failure> {
    let (mut cleaned, mut running) = (0, Vec::new());
    let Ok(all) = std::fs::read_dir(FOLDER) else { return Ok((cleaned, running)) };
    for folder in all.flatten() {
        match Journal::open(&folder.path()) {
            Ok(Opened::Nothing) => {}
            Ok(Opened::Left(journal) | Opened::There(journal)) => {
                journal.take_down()?;
                cleaned += 1;
            }
            Err(Failure::Held(_, process)) => running.extend(process),
            Err(why) => return Err(why),
        }
    }
    Ok((cleaned, running))
}

/// A switch, and its version: on two hosts, those of both.
type Versioned = (Box<dyn Fabric>, String);

/// The switches of cells.
fn switches(request: &Request, hosts: &mut Hosts<'_>) -> Result<Vec<Versioned>, String> {
    let mut known: Vec<(String, String)> = Vec::new();
    let mut all = Vec::new();
    for cell in &request.cells {
        let version = match known.iter().find(|(name, _)| *name == cell.switch) {
            Some((_, version)) => version.clone(),
            None => {
                let mut versions: Vec<String> = Vec::new();
                for side in 0..hosts.count() {
                    let version = match hosts.ask(side, Ask::Look(cell.switch.clone())) {
                        Ok(Answer::Version(version)) => version.unwrap_or_default(),
                        Ok(_) => String::new(),
                        Err(why) => return Err(why.to_string()),
                    };
                    if !versions.contains(&version) {
                        versions.push(version);
                    }
                }
                let version = versions.join(" | ");
                known.push((cell.switch.clone(), version.clone()));
                version
            }
        };
        all.push((fabric::find(&cell.switch)?, version));
    }
    Ok(all)
}

/// Megabytes in huge pages that DPDK has use for in a cell: where switch and applications share memory.
fn huge_pages(cell: &Cell) -> u64 {
    let ends = cell.io.parse::<Carrier>().map(|carrier| carrier.ends());
    match ends {
        Ok(Ends::Vhost | Ends::Memif) => {
            u64::from(fabric::MEGABYTES) + 2 * cell.pairs as u64 * u64::from(application::MEMORY)
        }
        _ => 0,
    }
}

/// Sets what makes measurements repeatable, on all hosts; what was set, and what was not.
fn tune(request: &Request, hosts: &mut Hosts<'_>) -> Result<Vec<String>, String> {
    let mut settings = Vec::new();
    let of_switch = request.cells.iter().map(|cell| cell.cores).max().unwrap_or(1);
    let megabytes = request.cells.iter().map(huge_pages).max().unwrap_or(0);
    for side in 0..hosts.count() {
        let cpus = hosts.cpus(side).to_vec();
        let quiet = cores(&cpus, of_switch).1.to_vec();
        let ask = Ask::Tune { cpus, quiet, megabytes };
        let Answer::Tuned(tuned) = hosts.ask(side, ask).map_err(|why| why.to_string())? else {
            continue;
        };
        let not_set = tuned.not_set.into_iter().map(|what| format!("not set: {what}"));
        let prefix = hosts.prefix(side);
        settings.extend(tuned.set.into_iter().chain(not_set).map(|what| format!("{prefix}{what}")));
    }
    Ok(settings)
}

/// Runs all cells, but for what `earlier` results have. When it is interrupted, what was measured is reported.
///
/// # Errors
/// If nothing can be measured at all, or the earlier results were measured otherwise.
pub fn measure(
    request: &Request,
    (command, earlier): (Vec<String>, Option<Results>),
    is_stopped: &dyn Fn() -> bool,
    watch: &mut dyn FnMut(&Event<'_>),
) -> Result<Results, String> {
    let mut environment = Machine::unbound()?.environment();
    environment.command = command;
    let go_on = || !is_stopped();
    let between = request.between.as_ref();
    let mut hosts = Hosts::reach(&request.program, &request.cpus, between, (is_stopped, &go_on))
        .map_err(|why| why.to_string())?;
    let setting = Setting { request, is_stopped };
    let switches = switches(request, &mut hosts)?;
    let mut results = Results::begin(request, environment, &switches, hosts.machines());
    results.remarks = remarks(&request.cells, &hosts);
    if let Some(earlier) = earlier {
        results.take_over(earlier)?;
    }
    let mut there: Vec<usize> = results.cells.iter().map(|of| of.samples.len()).collect();
    let mut runs = request.runs();
    runs.retain(|at| match there[*at].checked_sub(1) {
        Some(fewer) => {
            there[*at] = fewer;
            false
        }
        None => true,
    });
    // They are put back with the hosts.
    if !request.keeps_settings && !runs.is_empty() {
        results.settings = tune(request, &mut hosts)?;
    }
    let begin = Instant::now();
    for (number, &at) in runs.iter().enumerate() {
        let done = begin.elapsed().as_secs_f64();
        let left = (number > 0).then(|| done / number as f64 * (runs.len() - number) as f64);
        let cell = &request.cells[at];
        let progress = Progress { run: (number + 1, runs.len()), cell, left };
        watch(&Event::Starts(&progress));
        let ran = match is_stopped() {
            true => Err(Broken::Interrupted),
            false => cell::run(&setting, &mut hosts, cell, number),
        };
        match ran {
            Ok(sample) => results.cells[at].samples.push(sample),
            // Commands in the foreground were interrupted, too.
            Err(_) if is_stopped() => results.interrupted = true,
            Err(Broken::Interrupted) => results.interrupted = true,
            Err(Broken::Failed(why)) => {
                watch(&Event::Failed(&progress, &why));
                results.cells[at].failures.push(why);
            }
        }
        if results.interrupted {
            break;
        }
        watch(&Event::Measured(&results));
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(pairs: usize, cpus: &[usize]) -> Request {
        let cell = |switch: &str| Cell { pairs, ..matrix::tests::cell(switch) };
        Request {
            cells: ["a", "b", "c", "d", "e"].map(cell).into(),
            repeat: 3,
            seed: 7,
            containers: Vec::new(),
            cpus: cpus.into(),
            between: None,
            keeps_settings: true,
            program: PathBuf::new(),
        }
    }

    #[test]
    fn each_repetition_has_all_cells_in_an_order_of_its_own() {
        let request = request(1, &[0, 1]);
        let runs = request.runs();
        assert_eq!(runs, request.runs());
        assert_ne!(runs, Request { seed: 8, ..request.clone() }.runs());
        assert_ne!(runs[..5], runs[5..10]);
        for round in runs.chunks(5) {
            let mut sorted = round.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3, 4]);
        }
    }

    #[test]
    fn cores_that_are_shared_are_said() {
        assert_eq!(cores(&[0, 1, 2, 3], 1), (&[0, 1, 2][..], &[3][..]));
        assert_eq!(cores(&[4], 1), (&[4][..], &[4][..]));
        assert_eq!(request(1, &[0, 1, 2]).remarks(), Vec::<String>::new());
        let shared = request(1, &[0, 1]).remarks();
        assert_eq!(shared.len(), 1);
        assert!(shared[0].starts_with("2 applications share CPU 0, "), "{shared:?}");
        assert!(request(2, &[0, 1, 2]).remarks()[0].starts_with("4 applications share CPUs 0,1"));
        assert!(request(1, &[5]).remarks()[0].contains("both share CPU 5"));
    }
}
