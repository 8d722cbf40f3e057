//! `catena profile`: where the time of packets and processes goes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench::plot::{Curves, Look, Scale};
use bench::profile::capacity::measure_capacity;
use bench::profile::{chain, machine, process};
use bench::{Effort, Machine, Meter, Request, measure_costs};
use clap::{ArgGroup, Args};
use dataplane::clock::{RealClock, Time};
use dataplane::io::Binding;
use dataplane::worker;
use ir::costs::{Capacity, CostProfile, FrontierPoint, SustainedRate};
use view::flame::{self, Frame};
use view::svg::Theme;
use view::table::{Table, grouped};

use crate::commands::bench::{print_document, traffic, write_costs};
use crate::commands::sim::slo;
use crate::failure::Failure;
use crate::log::{self, steps};
use crate::numbers::within;
use crate::signals::interrupt_flag;
use crate::{outputs, theme, variables};

/// Profile a chain, processes or this machine: where time goes
///
/// Of a chain, which runs in memory on one core: what a packet takes; what of it are loads by level of
/// memory, address translation, context switches and system calls, by the formula of SCC (NFV profiler);
/// and which network functions, elements, programs and functions of the code take it. Events are counted
/// by perf_event; what cannot be counted, such as cache misses in most virtual machines, is reported with
/// the reason.
///
/// Of processes (--pid), each thread:
///
///   CPU                       time that it ran (RunTime), as a share of the time that it was watched
///   Wait/RunTime              time that it waited for I/O or anything else, to the time that it ran
///   SchedContention/RunTime   time that it was ready and had no CPU, to the time that it ran
///
/// and its context switches, page faults and system calls per second; of each process, the functions of
/// its code and of the kernel's that take its time, and which system calls it makes.
///
/// Of this machine (--machine): the costs that the formula uses.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXIT_STATUS,
    group = ArgGroup::new("what").required(true).args(["file", "pids", "machine"]))]
pub(crate) struct Profile {
    /// Configuration file of a chain; `-` for standard input
    file: Option<String>,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE", requires = "file", conflicts_with_all = ["pids", "machine"])]
    variables: Vec<String>,
    /// Profile a process, of a container its first one; several are also added up
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',',
        value_parser = clap::value_parser!(u32).range(1..=i32::MAX as i64))]
    pids: Vec<u32>,
    /// Profile the processes' descendants, too
    #[arg(long, requires = "pids", conflicts_with = "machine")]
    children: bool,
    /// Measure what this machine takes: loads by level of memory and stride, address translation, system
    /// calls, and context switches by scheduling policy
    #[arg(long, conflicts_with = "seconds")]
    machine: bool,
    /// Profile only the elements of this network function (outermost compound) of the chain
    #[arg(long, value_name = "NAME", requires = "file", conflicts_with_all = ["pids", "machine"])]
    nf: Option<String>,
    /// Write a flame graph: of the chain's network functions and elements, or of the processes' functions by their callers
    #[arg(long, value_name = "FILE.svg", conflicts_with = "machine")]
    flame: Option<PathBuf>,
    /// Write a cost profile of the chain for placement instead, as 'catena bench --costs' does
    #[arg(long, value_name = "FILE", requires = "file", conflicts_with_all = ["pids", "machine", "nf", "flame"])]
    costs: Option<PathBuf>,
    /// Measure how much a core does within an SLO: active flows against packets of an epoch, and flows against rates
    ///
    /// With --costs, the tables go into the cost profile.
    #[arg(long, requires_all = ["file", "slo"], conflicts_with_all = ["pids", "machine", "nf", "flame"])]
    capacity: bool,
    /// The SLO: 99th percentile of latencies, such as p99=200us
    #[arg(long, value_name = "[p99=]TIME", requires = "capacity", value_parser = slo)]
    slo: Option<u64>,
    /// Say whether the capacity in an earlier cost profile still holds; one of another chain, processor or batch is refused
    #[arg(long, value_name = "FILE", requires = "capacity")]
    against: Option<String>,
    /// Draw the frontier of --capacity
    #[arg(long, value_name = "FILE.svg", requires = "capacity")]
    plot: Option<PathBuf>,
    /// Colours of the flame graph; `auto` follows the viewer's preference
    #[arg(long, default_value = "auto", requires = "flame", value_parser = theme::parser())]
    theme: Theme,
    /// Bind FromDevice(NAME) to a capture file or generated traffic (gen:KEY=VALUE,…)
    ///
    /// Names that are not bound read what --traffic says.
    #[arg(long = "in", value_name = "NAME=FILE|gen:…", requires = "file", conflicts_with_all = ["pids", "machine"])]
    inputs: Vec<String>,
    /// What is offered where --in says no more: generated traffic or a capture
    ///
    /// Default: 1,000 flows of UDP in frames of 64 bytes.
    #[arg(long, value_name = "FILE|gen:…", requires = "file", conflicts_with_all = ["pids", "machine"])]
    traffic: Option<String>,
    /// How long to measure a chain, or to watch processes; Ctrl-C ends watching earlier
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, value_parser = within(0.01, 86_400.0))]
    seconds: f64,
    /// CPU to measure a chain or the machine on; default: the last that may be used
    #[arg(long, value_name = "CPU", conflicts_with = "pids")]
    cpu: Option<usize>,
    /// Seed of the chain's random choices
    #[arg(long, value_name = "N", default_value_t = 0, requires = "file", conflicts_with_all = ["pids", "machine"])]
    seed: u64,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  profiled; of processes that ended meanwhile, what was seen is printed
  1  something failed, or it was interrupted before there was anything to report
  2  the command line is wrong";

/// Trials of [`Effort`] that a chain's profile takes.
const TRIALS: f64 = 17.0;

pub(crate) fn main(args: &Profile) -> Result<ExitCode, Failure> {
    let outputs = [("--flame", &args.flame), ("--costs", &args.costs), ("--plot", &args.plot)];
    for (option, path) in outputs {
        if let Some(path) = path {
            outputs::check(path).map_err(|why| format!("{option}: {why}"))?;
        }
    }
    let interrupted = interrupt_flag();
    match &args.file {
        Some(file) => profile_chain(args, file, &interrupted)?,
        None if args.machine => profile_machine(args, &interrupted)?,
        None => profile_processes(args, &interrupted)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn profile_chain(args: &Profile, file: &str, interrupted: &AtomicBool) -> Result<(), Failure> {
    let request = Request {
        chain: file,
        variables: variables::all(&args.variables)?,
        inputs: inputs(&args.inputs).map_err(Failure::Usage)?,
        devices: Vec::new(),
        traffic: traffic(args.traffic.as_deref()).map_err(Failure::Usage)?,
        peers: Vec::new(),
        seed: args.seed,
        sizes: Vec::new(),
        arrivals: Default::default(),
        effort: Effort { trial: args.seconds / TRIALS },
    };
    // All of them: this thread is bound to one below.
    let cpus = worker::cpus();
    let machine = bind(args)?;
    let time: Arc<dyn Time> = Arc::new(RealClock::new());
    let is_stopped = || interrupted.load(Ordering::Relaxed);
    let capacity = match args.slo.filter(|_| args.capacity) {
        Some(slo) => {
            let with = (&time, &machine as &dyn Meter);
            let found = measure_capacity(&request, slo, with, &mut steps("profile"), &is_stopped);
            log::wipe_progress();
            let (capacity, mut remarks) = found?;
            if let Some(path) = &args.against {
                remarks.push(against(path, &capacity, &machine.environment().processor)?);
            }
            plot(args, file, &capacity)?;
            if args.costs.is_none() {
                print_document(args.json, &capacity, || shown(file, &capacity, &remarks));
                return Ok(());
            }
            Some((capacity, remarks))
        }
        None => None,
    };
    if let Some(path) = &args.costs {
        let with = (&time, &machine as &dyn Meter);
        let of = (machine.environment(), &cpus[..], &[] as &[usize]);
        let found = measure_costs((&request, None), with, of, &mut steps("profile"), &is_stopped);
        log::wipe_progress();
        let mut profile = found?;
        if let Some((capacity, remarks)) = capacity {
            profile.capacity = Some(capacity);
            profile.remarks.extend(remarks);
        }
        return write_costs(&profile, path, args.json);
    }
    let function = args.nf.as_deref();
    let found =
        chain::profile(&request, function, (&time, &machine), &mut steps("profile"), &is_stopped);
    log::wipe_progress();
    let profile = found?;
    let title = format!("{file}: time of elements, without programs");
    draw(args, &profile.flame(), &title, "ns per packet")?;
    print_document(args.json, &profile, || profile.render());
    Ok(())
}

/// What a core does, as tables.
fn shown(file: &str, of: &Capacity, remarks: &[String]) -> String {
    let mut text = format!(
        "{file}: what one core does with p99 = {:.1} us, in epochs of {:.1} us and batches of {}\n\n",
        of.slo as f64 / 1e3,
        of.epoch as f64 / 1e3,
        of.batch
    );
    let mut frontier = Table::new(["active flows", "packets in an epoch", "median"]);
    for FrontierPoint { flows, packets, median } in &of.frontier {
        frontier.row([flows.to_string(), packets.to_string(), median.to_string()]);
    }
    let mut rates = Table::new(["flows in turn", "packets/s"]);
    for SustainedRate { flows, rate } in &of.rates {
        rates.row([flows.to_string(), grouped(*rate as u64)]);
    }
    text.push_str(&format!("{}\n{}", frontier.render(), rates.render()));
    remarks.iter().for_each(|remark| text.push_str(&format!("! {remark}\n")));
    text
}

/// What a core does beside what an earlier profile has.
fn against(path: &str, new: &Capacity, processor: &str) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|why| format!("--against {path}: {why}"))?;
    let old: CostProfile = serde_json::from_str(&text)
        .map_err(|why| format!("--against {path}: it is no cost profile: {why}"))?;
    let wrong = |why: String| format!("--against {path}: {why}");
    let Some(capacity) = &old.capacity else {
        return Err(wrong("it has no capacity; measure it with --capacity --costs".into()).into());
    };
    capacity.check().map_err(wrong)?;
    capacity.is_of(&new.chain, new.batch, [&old.processor.name, processor]).map_err(wrong)?;
    if capacity.slo != new.slo {
        return Err(wrong(format!("its SLO is {:.1} us", capacity.slo as f64 / 1e3)).into());
    }
    let pairs = new.frontier.iter().filter_map(|point| {
        let old = capacity.frontier.iter().find(|of| of.flows == point.flows)?;
        Some((f64::from(point.median) / f64::from(old.median.max(1)) - 1.0) * 100.0)
    });
    let (low, high) =
        pairs.fold((f64::MAX, f64::MIN), |(low, high), of| (low.min(of), high.max(of)));
    match low <= high {
        true => Ok(format!("beside {path}, medians of the frontier are {low:+.0} to {high:+.0} %")),
        false => Err(wrong("the frontiers have no number of flows in common".into()).into()),
    }
}

/// Draws a frontier.
fn plot(args: &Profile, file: &str, of: &Capacity) -> Result<(), Failure> {
    let Some(path) = &args.plot else { return Ok(()) };
    let points = |value: fn(&FrontierPoint) -> u32| {
        let all = of.frontier.iter();
        all.map(|p| (f64::from(p.flows), f64::from(value(p)))).collect::<Vec<_>>()
    };
    let most = of.frontier.iter().map(|p| f64::from(p.median));
    let drawn = Curves {
        title: format!("{file}: packets in {:.1} us", of.epoch as f64 / 1e3),
        across: Scale::log("active flows", of.frontier.iter().map(|p| f64::from(p.flows))),
        up: Scale::linear("packets", most),
        series: vec![
            ("all but 1 %".into(), Look::Synthesised(2), points(|p| p.packets)),
            ("median".into(), Look::Reference(0), points(|p| p.median)),
        ],
    }
    .draw();
    Ok(outputs::write(path, drawn).map_err(|why| format!("--plot: {why}"))?)
}

fn draw(args: &Profile, whole: &Frame, title: &str, unit: &str) -> Result<(), Failure> {
    let Some(path) = &args.flame else { return Ok(()) };
    let drawn = flame::draw(whole, title, unit, args.theme);
    Ok(outputs::write(path, drawn).map_err(|why| format!("--flame: {why}"))?)
}

fn profile_machine(args: &Profile, interrupted: &AtomicBool) -> Result<(), Failure> {
    let (machine, time) = (bind(args)?, RealClock::new());
    let is_stopped = || interrupted.load(Ordering::Relaxed);
    let found = machine::measure(&machine, &time, true, &mut steps("profile"), &is_stopped);
    log::wipe_progress();
    let costs = found?;
    print_document(args.json, &costs, || costs.render());
    Ok(())
}

fn profile_processes(args: &Profile, interrupted: &AtomicBool) -> Result<(), Failure> {
    let mut pids = args.pids.clone();
    pids.sort_unstable();
    pids.dedup();
    if args.children {
        pids = process::with_descendants(&pids);
    }
    let time = RealClock::new();
    let mut wait = |length: Duration| {
        let now = Time::now(&time);
        time.wait_until(now.saturating_add(length.as_nanos() as u64));
        !interrupted.load(Ordering::Relaxed)
    };
    steps("profile")("watching");
    let found = process::watch(&pids, Duration::from_secs_f64(args.seconds), &time, &mut wait);
    log::wipe_progress();
    let mut report = found.map_err(|why| format!("--pid: {why}"))?;
    let whole = report.flame();
    if args.flame.is_some() && whole.is_none() {
        report.remarks.push("no function was sampled: --flame has nothing to draw".into());
    }
    print_document(args.json, &report, || report.render());
    whole
        .map_or(Ok(()), |whole| draw(args, &whole, "CPU time of functions, by their callers", "ms"))
}

fn bind(args: &Profile) -> Result<Machine, Failure> {
    Machine::bind(args.cpu).map_err(|why| match args.cpu {
        Some(_) => Failure::Usage(format!("--cpu: {why}")),
        None => why.into(),
    })
}

fn inputs(texts: &[String]) -> Result<HashMap<String, Binding>, String> {
    let mut inputs = HashMap::new();
    for text in texts {
        let pair =
            text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
        let (name, value) = pair.ok_or_else(|| format!("--in takes NAME=VALUE, not '{text}'"))?;
        let binding = Binding::source(value).map_err(|why| format!("--in {text}: {why}"))?;
        inputs.insert(name.to_string(), binding);
    }
    Ok(inputs)
}
