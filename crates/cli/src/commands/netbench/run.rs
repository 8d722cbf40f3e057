//! `catena netbench run`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bench::netbench::values::{Rates, Values};
use bench::netbench::{Cell, Event, Progress, Request, Results, SIZES, clean, measure};
use clap::Args;
use dataplane::io::Choice;
use dataplane::worker;
use host::fabric;

use crate::cores;
use crate::failure::Failure;
use crate::numbers::within;
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
/// Ctrl-C takes down what was made, and reports what was measured.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXIT_STATUS)]
pub(crate) struct Run {
    /// Switches, as 'catena netbench list' has them, and catena:FILE for a chain; default: all that are here
    #[arg(long, value_name = "SWITCH,…", value_delimiter = ',')]
    switch: Vec<String>,
    /// Pairs of applications
    #[arg(long, value_name = "LIST", default_value = "1")]
    pairs: Values,
    /// Bytes of a frame, without frame check sequence
    #[arg(long, value_name = "LIST", default_value = "64,1500")]
    size: Values,
    /// Packets that a sender sends at once, and clients, too, if --latency-burst says nothing else
    #[arg(long, value_name = "LIST")]
    burst: Option<Values>,
    /// Packets that a client sends at once
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
    /// Packets per second of each client
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    latency_rate: u64,
    /// Seconds of each measurement
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = within(0.01, 1e5))]
    seconds: f64,
    /// How often each cell is run
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeat: u16,
    /// Cores of a switch; applications get the others, in cells of every switch alike
    #[arg(long, value_name = "LIST", default_value = "1")]
    cores_for_switch: Values,
    /// CPUs to use, such as 0-3; default: all
    #[arg(long, value_name = "CPUS")]
    cores: Option<String>,
    /// I/O mode of the applications, as in 'catena run'
    #[arg(long, value_name = "MODE[,batch=N]", default_value = "af-packet-mmsg")]
    io: String,
    /// Have applications write and read each byte of payloads
    #[arg(long)]
    touch: bool,
    /// Seed of the order of runs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a page with figures, CSV and JSON into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
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

/// Cells that a run may have at most.
const MOST_CELLS: usize = 100_000;

pub(super) fn main(args: &Run) -> Result<ExitCode, Failure> {
    let request = understand(args).map_err(Failure::Usage)?;
    if !rustix::process::geteuid().is_root() {
        return Err("network namespaces and links are made by root: use sudo".to_string().into());
    }
    if let Some(folder) = &args.report {
        std::fs::create_dir_all(folder)
            .map_err(|why| format!("--report {}: {why}", folder.display()))?;
        for name in FILES {
            outputs::check(&folder.join(name)).map_err(|why| format!("--report: {why}"))?;
        }
    }
    let flag = interrupt_flag();
    let (cleaned, running) = clean().map_err(|why| why.to_string())?;
    if cleaned > 0 {
        print_error("a run was killed: what it left behind is taken down\n");
    }
    let mut remarks: Vec<String> = running
        .iter()
        .map(|process| {
            format!("process {process} runs netbench, too: figures of both are disturbed")
        })
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
    let command = (std::env::args().collect(), earlier);
    let measured = measure(&request, command, &is_stopped, &mut watch);
    if on_terminal {
        print_error("\r\x1b[K");
    }
    let mut results = measured?;
    remarks.append(&mut results.remarks);
    results.remarks = remarks;
    if let Some(folder) = &args.report {
        write(&results, folder)?;
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

/// Reads the matrix.
fn understand(args: &Run) -> Result<Request, String> {
    let switches = match args.switch.is_empty() {
        true => {
            let here = fabric::all().into_iter().filter(|fabric| fabric.look().is_ok());
            here.map(|fabric| fabric.name()).collect()
        }
        false => {
            for name in &args.switch {
                let fabric = fabric::find(name).map_err(|why| format!("--switch: {why}"))?;
                fabric.look().map_err(|needs| format!("--switch {name}: it needs {needs}"))?;
            }
            args.switch.clone()
        }
    };
    if switches.is_empty() {
        return Err("no switch can run here: `catena netbench list` shows what they need".into());
    }
    args.io.parse::<Choice>().map_err(|why| format!("--io: {why}"))?;
    let limited = |option: &str, values: &Values, least: usize, most: usize| {
        let all: Vec<usize> = values.0.iter().map(|value| *value as usize).collect();
        match all.iter().find(|value| !(least..=most).contains(*value)) {
            Some(wrong) => Err(format!("{option} {wrong}: takes {least} to {most}")),
            None => Ok(all),
        }
    };
    let cpus = match &args.cores {
        Some(text) => cores::parse(text, &worker::cpus())?,
        None => worker::cpus(),
    };
    let sizes = limited("--size", &args.size, *SIZES.start(), *SIZES.end())?;
    let pairs = limited("--pairs", &args.pairs, 1, 64)?;
    let cores = limited("--cores-for-switch", &args.cores_for_switch, 1, cpus.len())?;
    let bursts = |values: &Option<Values>, option, default: usize| match values {
        Some(values) => limited(option, values, 1, 4096),
        None => Ok(vec![default]),
    };
    let burst = bursts(&args.burst, "--burst", 32)?;
    // Round trips are measured with the bursts of senders, if only these are given.
    let latency_burst = match (&args.latency_burst, &args.burst) {
        (None, Some(_)) => None,
        (given, _) => Some(bursts(given, "--latency-burst", 1)?),
    };
    let rates: Vec<Option<u64>> = match &args.rate {
        Some(rates) => rates.0.iter().copied().map(Some).collect(),
        None => vec![None],
    };
    let mut cells = Vec::new();
    for switch in &switches {
        for (&pairs, &size) in pairs.iter().flat_map(|p| sizes.iter().map(move |s| (p, s))) {
            for &burst in &burst {
                for &latency_burst in latency_burst.as_ref().unwrap_or(&vec![burst]) {
                    for &rate in &rates {
                        for &cores in &cores {
                            let switch = switch.clone();
                            cells.push(Cell {
                                switch,
                                pairs,
                                size,
                                burst,
                                latency_burst,
                                rate,
                                cores,
                            });
                        }
                    }
                }
            }
        }
        if cells.len() > MOST_CELLS {
            return Err(format!("the matrix has more than {MOST_CELLS} cells"));
        }
    }
    let program = std::env::current_exe().map_err(|why| format!("this program's file: {why}"))?;
    Ok(Request {
        cells,
        repeat: usize::from(args.repeat),
        seed: args.seed,
        seconds: args.seconds,
        throughput: !args.latency,
        round_trips: !args.throughput,
        latency_rate: args.latency_rate,
        io: args.io.clone(),
        touches: args.touch,
        cpus,
        program,
    })
}
