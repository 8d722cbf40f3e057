//! `catena netbench run`.

use std::collections::HashSet;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bench::netbench::containers::{self, Container};
use bench::netbench::matrix::{Matrix, Wrong};
use bench::netbench::test_set::TestSet;
use bench::netbench::values::{Rates, Values};
use bench::netbench::{
    Between, Cell, Direction, Event, Peer, Progress, Reach, Request, Results, What, clean, dry_run,
    measure,
};
use clap::Args;
use dataplane::worker;
use engine::Disk;
use ir::Sources;

use crate::cores;
use crate::failure::Failure;
use crate::outputs;
use crate::signals::interrupt_flag;
use crate::terminal::{print, print_error};

/// Measure switches between pairs of applications, each in a network namespace of its own
///
/// Of each cell of the matrix, throughput (attempted, sent, received and lost packets a second) and round trips are
/// measured, and CPU time for a packet. Cells are run several times, in an order that the seed draws. Without options,
/// every switch that is here is measured with one pair, at 64 and 1500 bytes. Lists and ranges are such as 1,2,4 and
/// 64..1500x2 (each twice the one before).
///
/// A test set is a YAML file with matrices. Options stand above what it says. A file with the containers of Ara's framework is
/// one, too: its applications are measured with the options.
///
/// Ctrl-C takes down what was made, and reports what was measured.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXIT_STATUS)]
pub(crate) struct Run {
    /// A test set, or a file of containers
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Switches, as 'catena netbench list' has them, and catena:FILE for a chain; default: all that are here
    #[arg(long, value_name = "SWITCH,…", value_delimiter = ',')]
    switch: Vec<String>,
    /// Pairs of applications [default: 1]
    #[arg(long, value_name = "LIST")]
    pairs: Option<Values>,
    /// Bytes of a frame, without frame check sequence [default: 64,1500]
    #[arg(long, value_name = "LIST")]
    size: Option<Values>,
    /// Packets that a sender sends at once, and clients, too, if --latency-burst says nothing else [default: 32]
    #[arg(long, value_name = "LIST")]
    burst: Option<Values>,
    /// Packets that a client sends at once [default: 1]
    #[arg(long, value_name = "LIST")]
    latency_burst: Option<Values>,
    /// Packets per second of each sender, such as 100k,1M..20M+1M; as many as it can by default
    #[arg(long, value_name = "LIST")]
    rate: Option<Rates>,
    /// Measure throughput only
    #[arg(long, conflicts_with = "latency")]
    throughput: bool,
    /// Measure round trips only
    #[arg(long)]
    latency: bool,
    /// Packets per second of each client [default: 10000]
    #[arg(long, value_name = "N")]
    latency_rate: Option<u64>,
    /// Who of a pair sends: there (the first), back (the second), both (of every other pair the second) [default: there]
    #[arg(long, value_name = "DIRECTION,…", value_delimiter = ',')]
    direction: Vec<Direction>,
    /// Seconds of each measurement [default: 1]
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Seconds of the same load before each measurement, whose packets do not count [default: 0]
    #[arg(long, value_name = "SECONDS")]
    warm_up: Option<f64>,
    /// How often each cell is run [default: 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: Option<u16>,
    /// Cores of a switch; applications get the others, in cells of every switch alike [default: 1]
    #[arg(long, value_name = "LIST")]
    cores_for_switch: Option<Values>,
    /// CPUs to use, such as 0-3; default: all
    #[arg(long, value_name = "CPUS")]
    cores: Option<String>,
    /// How packets of the applications are carried, as 'catena netbench list' has it [default: af-packet-mmsg, or what ports
    /// of the switch are for]
    #[arg(long, value_name = "MODE,…", value_delimiter = ',')]
    io: Vec<String>,
    /// What each application runs in, as 'catena netbench list' has them [default: plain, a network namespace alone]
    #[arg(long, value_name = "RUNTIME,…", value_delimiter = ',', alias = "containers")]
    container: Vec<String>,
    /// Have applications write and read each byte of payloads
    #[arg(long)]
    touch: bool,
    /// Leave the host's settings as they are: without it, frequencies and interrupts are set while it measures, and put back
    #[arg(long)]
    keep_settings: bool,
    /// Measure between two hosts, which are reached by SSH as root: the first of each pair of applications is on the first
    /// host, its peer on the second. One host alone is the second, and this one the first
    #[arg(long, value_name = "HOST,HOST", value_delimiter = ',', requires = "uplink")]
    hosts: Vec<String>,
    /// Which host the second of a pair is on, where there are two: local (that of the first), remote (the other)
    /// [default: remote]
    #[arg(long, value_name = "PEER,…", value_delimiter = ',', requires = "hosts")]
    peer: Vec<Peer>,
    /// Interface of each host that leads to the other, and becomes a port of its switch meanwhile; one name is that of both
    #[arg(long, value_name = "INTERFACE,INTERFACE", value_delimiter = ',', requires = "hosts")]
    uplink: Vec<String>,
    /// Configuration of 'ssh' in the place of the user's
    #[arg(long, value_name = "FILE", requires = "hosts")]
    ssh_config: Option<PathBuf>,
    /// Run this program on other hosts; without it, this one is copied there for the time of the run
    #[arg(long, value_name = "PATH", requires = "hosts")]
    remote_program: Option<String>,
    /// Print the commands that make namespaces, switches and applications, and run nothing; also of switches that are not here
    #[arg(long, conflicts_with_all = ["hosts", "report", "profile_out", "json"])]
    dry_run: bool,
    /// Seed of the order of runs [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Write a page with figures, CSV and JSON into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Write what hops between processes cost as a cost profile
    #[arg(long, value_name = "FILE")]
    profile_out: Option<PathBuf>,
    /// Go on with the results in the folder of --report: only what they lack is measured
    #[arg(long, requires = "report")]
    resume: bool,
    /// Print one JSON document
    #[arg(long)]
    pub(super) json: bool,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  measured, or interrupted (SIGINT, SIGTERM) after something was
  1  something failed: a cell has no figures
  2  the command line is wrong";

pub(super) fn main(args: &Run) -> Result<ExitCode, Failure> {
    let (request, left_out) = understand(args)?;
    if args.dry_run {
        print(&dry_run(&request)?);
        return Ok(ExitCode::SUCCESS);
    }
    let is_here = request.between.as_ref().is_none_or(|between| between.hosts.contains(&None));
    if is_here && !rustix::process::geteuid().is_root() {
        return Err("network namespaces and links are made by root: use sudo".to_string().into());
    }
    if let Some(folder) = &args.report {
        std::fs::create_dir_all(folder)
            .map_err(|why| format!("--report {}: {why}", folder.display()))?;
        for name in FILES {
            outputs::check(&folder.join(name)).map_err(|why| format!("--report: {why}"))?;
        }
    }
    if let Some(file) = &args.profile_out {
        outputs::check(file).map_err(|why| format!("--profile-out: {why}"))?;
    }
    let flag = interrupt_flag();
    let (cleaned, running) = match is_here {
        true => clean().map_err(|why| why.to_string())?,
        false => (0, Vec::new()),
    };
    if cleaned > 0 {
        print_error("a run was killed: what it left behind is taken down\n");
    }
    let mut remarks: Vec<String> = running
        .iter()
        .map(|process| {
            format!("process {process} runs netbench, too: figures of both are disturbed")
        })
        .chain(left_out)
        .collect();
    for remark in remarks.iter().chain(&request.remarks()) {
        print_error(&format!("! {remark}\n"));
    }
    let earlier = match &args.report {
        Some(folder) if args.resume && folder.join(FILES[2]).exists() => Some(read(folder)?),
        _ => None,
    };
    let on_terminal = std::io::stderr().is_terminal();
    let mut written = Instant::now();
    let mut watch = |event: &Event<'_>| match event {
        Event::Starts(progress) if on_terminal => {
            print_error(&format!("\r\x1b[K{}", told(progress)));
        }
        Event::Starts(_) => {}
        Event::Failed(progress, why) => {
            let begin = if on_terminal { "\r\x1b[K" } else { "" };
            print_error(&format!("{begin}{}: failed: {why}\n", told(progress)));
        }
        // So that a crash costs a little only.
        Event::Measured(results) => {
            if let Some(folder) = &args.report
                && written.elapsed() > WRITTEN
            {
                let _ = write(results, folder);
                written = Instant::now();
            }
        }
    };
    let is_stopped = || flag.load(Ordering::Relaxed);
    // A page is read elsewhere, where the program lies in another place.
    let command = std::iter::once("catena".to_string()).chain(std::env::args().skip(1));
    let measured = measure(&request, (command.collect(), earlier), &is_stopped, &mut watch);
    if on_terminal {
        print_error("\r\x1b[K");
    }
    let mut results = measured?;
    remarks.append(&mut results.remarks);
    results.remarks = remarks;
    if let Some(folder) = &args.report {
        write(&results, folder)?;
    }
    if let Some(file) = &args.profile_out {
        super::write_profile(&results, file)?;
    }
    let is_empty = results.cells.iter().all(|result| result.samples.is_empty());
    match args.json {
        true => print(&(serde_json::to_string(&results).map_err(|why| why.to_string())? + "\n")),
        false => print(&results.render()),
    }
    let has_failed = results.failed() > 0 || is_empty;
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// A line about what runs.
fn told(progress: &Progress<'_>) -> String {
    let ((run, runs), cell) = (progress.run, progress.cell);
    let mut text =
        format!("{run}/{runs}: {}, {1}vs{1}, {2} bytes", cell.switch, cell.pairs, cell.size);
    if let Some(left) = progress.left {
        text += &format!(", {left:.0} s left");
    }
    text
}

/// How often results are written while it measures.
const WRITTEN: Duration = Duration::from_secs(5);

/// What a report consists of.
const FILES: [&str; 3] = ["index.html", "results.csv", "results.json"];

/// Reads the results of a report.
pub(super) fn read(folder: &Path) -> Result<Results, Failure> {
    let path = folder.join(FILES[2]);
    let shown = path.display();
    let text = std::fs::read_to_string(&path).map_err(|why| format!("{shown}: {why}"))?;
    Ok(Results::read(&text).map_err(|why| format!("{shown}: {why}"))?)
}

/// Writes a report.
pub(super) fn write(results: &Results, folder: &Path) -> Result<(), Failure> {
    let json = serde_json::to_string_pretty(results).map_err(|why| why.to_string())? + "\n";
    for (name, text) in FILES.iter().zip([results.page(FILES[1], FILES[2]), results.csv(), json]) {
        outputs::write(&folder.join(name), text)?;
    }
    Ok(())
}

/// What a file says.
#[derive(Default)]
struct Said {
    set: TestSet,
    containers: Vec<Container>,
    remarks: Vec<String>,
}

/// Reads a file of containers.
fn containers(path: &Path) -> Result<(Vec<Container>, Vec<String>), Failure> {
    let mut sources = Sources::new();
    let file = Disk::default().configuration(&mut sources, &path.display().to_string())?;
    let text = Arc::clone(sources.text(file));
    containers::parse(file, &text).map_err(|found| Failure::of(found, sources))
}

/// Reads a test set, or a file of containers.
fn said(path: &Path, at: (usize, bool)) -> Result<Said, Failure> {
    let mut sources = Sources::new();
    let file = Disk::default().configuration(&mut sources, &path.display().to_string())?;
    let text = Arc::clone(sources.text(file));
    if containers::is_listing(&text) {
        let read = containers::parse(file, &text).map_err(|found| Failure::of(found, sources))?;
        let set = TestSet { sets: vec![Matrix::default()], ..TestSet::default() };
        return Ok(Said { set, containers: read.0, remarks: read.1 });
    }
    let set = TestSet::parse(file, &text, at).map_err(|found| Failure::of(found, sources))?;
    let (containers, remarks) = match &set.containers {
        Some(name) => containers(&path.parent().unwrap_or(Path::new("")).join(name))?,
        None => <(Vec<Container>, Vec<String>)>::default(),
    };
    Ok(Said { set, containers, remarks })
}

/// Carriers between commas. Devices of DPDK's have arguments behind commas, too: `KEY=VALUE` belongs to the device before it.
fn carriers(words: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for word in words {
        match all.last_mut() {
            Some(last) if last.starts_with("dpdk:") && word.contains('=') => {
                *last = format!("{last},{word}");
            }
            _ => all.push(word.clone()),
        }
    }
    all
}

/// What options say.
fn matrix(args: &Run) -> Matrix {
    let some = |list: &Vec<String>| (!list.is_empty()).then(|| list.clone());
    let what = match (args.throughput, args.latency) {
        (true, _) => Some(What::Throughput),
        (_, true) => Some(What::Latency),
        _ => None,
    };
    Matrix {
        switch: some(&args.switch),
        pairs: args.pairs.clone(),
        size: args.size.clone(),
        burst: args.burst.clone(),
        latency_burst: args.latency_burst.clone(),
        rate: args.rate.clone(),
        latency_rate: args.latency_rate,
        cores_for_switch: args.cores_for_switch.clone(),
        io: some(&carriers(&args.io)),
        direction: (!args.direction.is_empty()).then(|| args.direction.clone()),
        touch: args.touch.then_some(true),
        what,
        seconds: args.seconds,
        warm_up: args.warm_up,
        container: some(&args.container),
        peer: (!args.peer.is_empty()).then(|| args.peer.clone()),
        has_two_hosts: !args.hosts.is_empty(),
        is_spoken_of: args.dry_run && !args.switch.is_empty(),
    }
}

/// The hosts that are measured between, if there are two.
fn between(
    args: &Run,
    program: &Path,
    cpus: Option<&Vec<usize>>,
) -> Result<Option<Between>, Failure> {
    let reach = |host: &String| Reach {
        host: host.clone(),
        configuration: args.ssh_config.clone(),
        program: args.remote_program.clone(),
        own: program.to_path_buf(),
    };
    let hosts = match &args.hosts[..] {
        [] => return Ok(None),
        [second] => [None, Some(reach(second))],
        [first, second] if first == second => {
            return Err(Failure::Usage(format!("--hosts: both are {first}")));
        }
        [first, second] => [Some(reach(first)), Some(reach(second))],
        _ => return Err(Failure::Usage("--hosts: takes one host or two".into())),
    };
    if let Some(host) = args.hosts.iter().find(|host| host.is_empty() || host.starts_with('-')) {
        return Err(Failure::Usage(format!("--hosts: '{host}' is no host")));
    }
    let uplinks = match &args.uplink[..] {
        [both] => [both.clone(), both.clone()],
        [first, second] => [first.clone(), second.clone()],
        _ => return Err(Failure::Usage("--uplink: takes an interface of each host".into())),
    };
    if let Some(name) = uplinks.iter().find(|name| !host::is_interface_name(name)) {
        return Err(Failure::Usage(format!("--uplink: '{name}' is no name of an interface")));
    }
    Ok(Some(Between { hosts, uplinks, cpus: cpus.cloned() }))
}

/// CPUs of a host at most.
const MOST_CPUS: usize = 1024;

/// What is to be measured, and remarks about what is not.
fn understand(args: &Run) -> Result<(Request, Vec<String>), Failure> {
    let all = worker::cpus();
    let Said { mut set, containers, mut remarks } = match &args.file {
        Some(path) => said(path, (all.len(), !args.hosts.is_empty()))?,
        None => Said::default(),
    };
    let chosen = match args.cores.as_ref().or(set.cores.as_ref()) {
        // The CPUs of other hosts are known there.
        Some(text) if !args.hosts.is_empty() => {
            Some(cores::parse(text, &(0..MOST_CPUS).collect::<Vec<_>>()).map_err(Failure::Usage)?)
        }
        Some(text) => Some(cores::parse(text, &all).map_err(Failure::Usage)?),
        None => None,
    };
    let cpus = match (&chosen, args.hosts.is_empty()) {
        (Some(chosen), _) => chosen.clone(),
        (None, true) => all,
        (None, false) => (0..MOST_CPUS).collect(),
    };
    if set.sets.is_empty() {
        set.sets.push(Matrix::default());
    }
    let mut cells: Vec<Cell> = Vec::new();
    let mut known = HashSet::new();
    for set in &set.sets {
        let mut matrix = matrix(args).over(set);
        if !containers.is_empty() && !args.hosts.is_empty() {
            let why = "--hosts: the containers of a file are all of one host";
            return Err(Failure::Usage(why.into()));
        }
        if !containers.is_empty() {
            if matrix.pairs.is_some() || matrix.what.is_some() {
                let why =
                    "the file of containers states how many pairs there are, and what they do";
                return Err(Failure::Usage(why.into()));
            }
            matrix.pairs = Some(Values(vec![containers.len() as u64 / 2]));
        }
        let wrong = |wrong: Wrong| {
            let dashes = if wrong.parameter.is_empty() { "" } else { "--" };
            Failure::Usage(format!("{dashes}{wrong}"))
        };
        let more = matrix.cells(cpus.len()).map_err(wrong)?;
        for remark in matrix.left_out().map_err(wrong)? {
            if !remarks.contains(&remark) {
                remarks.push(remark);
            }
        }
        // Sets may overlap.
        cells.extend(more.into_iter().filter(|cell| known.insert(format!("{cell:?}"))));
    }
    let program = std::env::current_exe().map_err(|why| format!("this program's file: {why}"))?;
    let repeat = args.repeat.map(usize::from).or(set.repeat).unwrap_or(3);
    let seed = args.seed.or(set.seed).unwrap_or(1);
    let keeps_settings = args.keep_settings;
    let between = between(args, &program, chosen.as_ref())?;
    let request =
        Request { cells, repeat, seed, containers, cpus, between, keeps_settings, program };
    Ok((request, remarks))
}
