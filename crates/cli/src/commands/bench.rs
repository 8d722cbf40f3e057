//! `catena bench`: how fast a chain is.

mod hgrm;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bench::arrivals::Arrivals;
use bench::compare::compare;
use bench::live::{Catena, Link, Peer};
use bench::schema::Document;
use bench::{
    Effort, Live, Machine, Meter, Report, Request, Size, measure, measure_costs, measure_live,
    measure_on_cores,
};
use clap::Args;
use dataplane::clock::{RealClock, Time};
use dataplane::io::{Binding, Choice};
use dataplane::worker;
use ir::costs::{Cost, CostProfile, LinearCost};
use view::table::Table;

use crate::failure::Failure;
use crate::numbers::within;
use crate::signals::interrupt_flag;
use crate::terminal::{print, print_error};
use crate::{cores, log, outputs, variables};

/// Measure a chain: throughput, latency under load, cost of each network function
///
/// The chain runs in memory on one core, without network cards; figures leave out what cards and drivers
/// take. With --veth, or --in and --out, it runs over interfaces as 'catena run' has it, and the tester of
/// RFC 2544 sends on one side and receives on the other. Captures are read once and offered over and over;
/// nothing is written. Reported are
///
///   cost            CPU time of a packet when the chain gets as many as it takes, with the 95 % confidence
///                   interval of the median; and the part of it that copying frames in and out takes
///   NDR, PDR        the greatest load without loss, and with 0.5 % of loss (MLRsearch, RFC 9971): packets
///                   are due at equal distances and wait in a ring of 1,024; what comes while it is full is
///                   lost. What the chain drops by its rules is not lost
///   latency         from when a packet was due until it left, at parts of the NDR; PDV is RFC 8219's
///   per function    time of bursts that were timed, element by element, and of the programs
///
/// Loads are of all sources together. A share of the time that other threads or virtual machines took is
/// marked.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXIT_STATUS)]
pub(crate) struct Bench {
    /// Configuration file; `-` for standard input
    #[arg(required_unless_present_any = ["compare", "schema", "via"])]
    file: Option<String>,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// Bind FromDevice(NAME) to a capture file or generated traffic (gen:KEY=VALUE,…), or to an interface
    ///
    /// If no FromDevice has the NAME, it replaces the element NAME, as with 'catena run'. Without
    /// NAME=, an interface is for the only FromDevice. Names that are not bound read what --traffic says.
    #[arg(long = "in", value_name = "NAME=FILE|gen:…|[NAME=]INTERFACE")]
    inputs: Vec<String>,
    /// Bind ToDevice(NAME) to an interface, and measure over interfaces; NAME= may be left out for the only one
    #[arg(long = "out", value_name = "[NAME=]INTERFACE", conflicts_with = "compare")]
    outputs: Vec<String>,
    /// What is offered where --in says no more: generated traffic or a capture
    ///
    /// Default: 1,000 flows of UDP in frames of 64 bytes.
    #[arg(long, value_name = "FILE|gen:…", conflicts_with = "compare")]
    traffic: Option<String>,
    /// Measure over virtual Ethernet, in network namespaces that are made for it (as root)
    ///
    /// Frames are sent to the station that most of them are for: the chain's interfaces get that address.
    #[arg(long, conflicts_with_all = ["compare", "outputs", "via"])]
    veth: bool,
    /// The tester's interfaces: it sends on FROM and receives on TO
    ///
    /// They are connected to the chain's; for virtual Ethernet they are found. Without a chain, what lies
    /// between them is measured, whatever it is.
    #[arg(long, value_name = "FROM,TO", conflicts_with = "compare")]
    via: Option<String>,
    /// Compare with another system in the same rounds: a chain's file, kernel, kernel:RULES, ovs, testpmd, fastclick or
    /// vpp
    ///
    /// Reported is how many times as fast the chain is, with the least and the greatest of the rounds. All but
    /// chains forward what comes in to the output, as simply as they can, and need --veth; fastclick runs the
    /// same file. RULES is a file for 'nft -f', in which $IN and $OUT are the interfaces.
    #[arg(long = "vs", value_name = "FILE|PEER", conflicts_with_all = ["compare", "costs"])]
    peers: Vec<String>,
    /// Shell script that makes of a peer what the chain is, run in its namespace once it has started
    ///
    /// It finds IN and OUT (interfaces), IN_MAC, OUT_MAC and NEXT_MAC (the tester's) in its environment, and
    /// for ovs the FOLDER of its sockets.
    #[arg(long, value_name = "FILE", requires = "peers")]
    vs_script: Option<PathBuf>,
    /// CPUs that the chain runs on, such as 2-3, a worker on each; default: the last that may be used
    ///
    /// In memory, each worker has the flows that a hash brings to it, as with 'catena run --dispatch hash'. With --costs,
    /// those of the first are measured, while the others take packets through the chain.
    #[arg(long, value_name = "CPUS", conflicts_with = "compare")]
    cores: Option<String>,
    /// I/O mode of the chain's interfaces, as in 'catena run'
    #[arg(long, value_name = "MODE[,batch=N]", conflicts_with = "compare")]
    io: Option<String>,
    /// I/O mode of the tester's interfaces
    #[arg(long, value_name = "MODE[,batch=N]", conflicts_with = "compare")]
    via_io: Option<Choice>,
    /// Seconds of each trial of the throughput search; rounds and loads follow from it
    #[arg(long, value_name = "SECONDS", default_value_t = 0.3, value_parser = within(0.001, 60.0))]
    trial: f64,
    /// How packets arrive while latencies are taken: constant, poisson, bursts=ON:OFF or recorded
    ///
    /// ON and OFF are the mean durations of bursts and of the pauses between them, such as 200us:1ms. recorded
    /// has the distances of captures, scaled to the load; in memory only. The throughput is searched with packets at equal distances, as RFC 2544 has it.
    #[arg(long, value_name = "PROCESS", default_value = "constant")]
    arrivals: Arrivals,
    /// CPU to measure on; default: the last that may be used. Over interfaces: the tester's, the last that the
    /// chain does not have
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Sizes of generated frames to find cost and throughput for besides: bytes with the frame check sequence, or imix
    ///
    /// imix is simple IMIX: of twelve frames, seven of 64 bytes, four of 594 and one of 1,518.
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',')]
    sizes: Vec<Size>,
    /// Seed of the chain's random choices, and of arrivals
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Fail if the NDR is less than this many million packets per second
    #[arg(long, value_name = "MPPS", value_parser = within(0.0, 1e6))]
    min_mpps: Option<f64>,
    /// Fail if the 99th percentile of latency is more than this many microseconds at any load
    #[arg(long, value_name = "MICROSECONDS", value_parser = within(0.0, 1e9))]
    max_p99_us: Option<f64>,
    /// Compare two reports that --json printed; fail if the new one is worse
    ///
    /// A figure is worse if it differs by more than --tolerance and its 95 % confidence interval leaves no
    /// doubt. The interval holds for repeats within a run: machines also differ from run to run.
    #[arg(long, value_names = ["OLD.json", "NEW.json"], num_args = 2,
        conflicts_with_all = ["file", "inputs", "min_mpps", "max_p99_us", "cpu", "trial", "seed", "sizes", "arrivals"])]
    compare: Option<Vec<String>>,
    /// Difference that counts as none, in per cent
    ///
    /// Default: 5.
    #[arg(long, value_name = "PERCENT", value_parser = within(0.0, 1000.0))]
    tolerance: Option<f64>,
    /// Write a page with tables and plots, and beside it the JSON document: FILE with .json in place of its extension
    #[arg(long, value_name = "FILE", conflicts_with = "compare")]
    html: Option<PathBuf>,
    /// Write the latencies at each load, in microseconds, as HdrHistogram's tools read them: NAME-10.hgrm and so on
    ///
    /// NAME is the chain's in a folder; or a file's, whose extension .hgrm may be left out. 10 is the load in per cent
    /// of the NDR.
    #[arg(long, value_name = "FOLDER|NAME", conflicts_with_all = ["compare", "costs"])]
    hgrm: Option<PathBuf>,
    /// Write a cost profile instead: cycles per packet of functions, programs, input and output, hand-off to another core
    ///
    /// Where all traffic is generated, it is measured with one flow and with many, with Zipf's shares, with new flows,
    /// with a tuple space explosion, and in long frames. With --veth, or --in and --out, input and output are also
    /// measured over interfaces, in each I/O mode or in that of --io.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["compare", "html", "min_mpps", "max_p99_us", "sizes"])]
    costs: Option<PathBuf>,
    /// Print the JSON Schema of what --json prints (report) or --costs writes (costs); measures nothing
    #[arg(long, value_name = "DOCUMENT", exclusive = true)]
    schema: Option<Document>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  measured, and within --min-mpps and --max-p99-us; nothing is worse
  1  something failed, a limit was missed, something is worse, or it was interrupted
  2  the command line is wrong";

pub(crate) fn main(args: &Bench) -> Result<ExitCode, Failure> {
    if let Some(document) = args.schema {
        print(&format!("{:#}\n", document.schema().to_value()));
        return Ok(ExitCode::SUCCESS);
    }
    match &args.compare {
        Some(files) => run_comparison(args, files),
        None => run_measurement(args),
    }
}

fn run_comparison(args: &Bench, files: &[String]) -> Result<ExitCode, Failure> {
    let tolerance = args.tolerance.unwrap_or(5.0);
    let [old, new] = files else { return Err("--compare takes two files".to_string().into()) };
    let comparison = compare(&read(old)?, &read(new)?, tolerance / 100.0);
    print_document(args.json, &comparison, || comparison.render());
    if comparison.is_empty() {
        return Err("--compare: the reports have no figure in common".to_string().into());
    }
    Ok(if comparison.is_worse() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn read(file: &str) -> Result<Report, Failure> {
    const MOST: u64 = 64 << 20;
    let bytes = engine::read_bytes(file, MOST).map_err(|e| format!("{file}: {e}"))?;
    let report: Report = serde_json::from_slice(&bytes)
        .map_err(|e| format!("{file}: not a report of 'catena bench --json': {e}"))?;
    match report.bench {
        bench::report::VERSION => Ok(report),
        other => {
            Err(format!("{file}: a report of version {other}, which this catena does not read")
                .into())
        }
    }
}

pub(crate) fn print_document(
    as_json: bool,
    document: &impl serde::Serialize,
    text: impl FnOnce() -> String,
) {
    match as_json.then(|| serde_json::to_string(document)) {
        Some(Ok(json)) => print(&(json + "\n")),
        Some(Err(why)) => print_error(&format!("error: {why}\n")),
        None => print(&text()),
    }
}

fn run_measurement(args: &Bench) -> Result<ExitCode, Failure> {
    if args.tolerance.is_some() {
        return Err(Failure::Usage("--tolerance is for --compare".into()));
    }
    let mut ports = Ports::parse(args).map_err(Failure::Usage)?;
    // All of them: this thread is bound to one below.
    let allowed = worker::cpus();
    let request = Request {
        chain: args.file.as_deref().unwrap_or_default(),
        variables: variables::all(&args.variables)?,
        devices: ports.names(),
        inputs: std::mem::take(&mut ports.traffic),
        traffic: traffic(args.traffic.as_deref()).map_err(Failure::Usage)?,
        peers: peers(&args.peers).map_err(Failure::Usage)?,
        seed: args.seed,
        sizes: args.sizes.clone(),
        arrivals: args.arrivals,
        effort: Effort { trial: args.trial },
    };
    let cores = match &args.cores {
        Some(text) => cores::parse(text, &allowed).map_err(Failure::Usage)?,
        None => allowed.iter().rev().take(1).copied().collect(),
    };
    let live = ports.live(args, &cores, &request.peers).map_err(Failure::Usage)?;
    let on_several = live.is_none() && cores.len() > 1;
    if live.is_some() && args.arrivals == Arrivals::Recorded {
        let why = "--arrivals recorded is for measuring in memory; catena gen sends captures at recorded times";
        return Err(Failure::Usage(why.into()));
    }
    if on_several && (args.cpu.is_some() || !args.peers.is_empty()) {
        let why = "--cores in memory, with more than one, takes neither --cpu nor --vs";
        return Err(Failure::Usage(why.into()));
    }
    // What cannot be written is said before anything is measured.
    let html =
        args.html.as_deref().map(|page| Ok::<_, String>((page, raw_beside(page)?))).transpose()?;
    let hgrm =
        args.hgrm.as_deref().map(|to| hgrm::start_of_names(to, request.chain)).transpose()?;
    for (option, path) in html
        .iter()
        .flat_map(|(page, raw)| [("--html", *page), ("--html", raw.as_path())])
        .chain(args.costs.as_deref().map(|path| ("--costs", path)))
    {
        outputs::check(path).map_err(|why| format!("{option}: {why}"))?;
    }
    hgrm.iter().try_for_each(hgrm::check)?;
    let cpu = match &live {
        _ if args.cpu.is_some() => args.cpu,
        Some(_) => allowed.iter().rev().find(|cpu| !cores.contains(cpu)).copied(),
        None => cores.first().copied(),
    };
    // Of costs, those of the first core are measured, while the others work.
    let is_bound = !on_several || args.costs.is_some();
    let machine = if is_bound { Machine::bind(cpu) } else { Machine::unbound() };
    let machine = machine.map_err(|why| match args.cpu {
        Some(_) => Failure::Usage(format!("--cpu: {why}")),
        None => why.into(),
    })?;
    let time: Arc<dyn Time> = Arc::new(RealClock::new());
    let interrupted = interrupt_flag();
    let mut environment = machine.environment();
    environment.command = std::env::args().collect();
    let mut progress = log::steps("bench");
    let is_stopped = || interrupted.load(Ordering::Relaxed);
    let with = (&time, &machine as &dyn Meter);
    if let Some(file) = &args.costs {
        let others: &[usize] = if on_several { &cores[1..] } else { &[] };
        let (what, machine) = ((&request, live.as_ref()), (environment, &allowed[..], others));
        let found = measure_costs(what, with, machine, &mut progress, &is_stopped);
        log::wipe_progress();
        write_costs(&found?, file, args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let measured = match &live {
        Some(live) => measure_live(&request, live, with, environment, &mut progress, &is_stopped),
        None if on_several => {
            measure_on_cores(&request, &cores, &time, environment, &mut progress, &is_stopped)
        }
        None => measure(&request, with, environment, &mut progress, &is_stopped),
    };
    log::wipe_progress();
    let report = measured?;
    print_document(args.json, &report, || report.render());
    if let Some((page, raw)) = &html {
        write_page(&report, page, raw)?;
    }
    if let Some(start) = &hgrm {
        hgrm::write(&report.latency, start)?;
    }
    let missed = missed(args, &report);
    missed.iter().for_each(|why| print_error(&format!("error: {why}\n")));
    Ok(if missed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What `--traffic` says.
pub(crate) fn traffic(text: Option<&str>) -> Result<Option<Binding>, String> {
    let bound =
        text.map(|text| Binding::source(text).map_err(|why| format!("--traffic {text}: {why}")));
    bound.transpose()
}

/// Writes a cost profile to a file, and prints it.
pub(crate) fn write_costs(
    profile: &CostProfile,
    file: &Path,
    as_json: bool,
) -> Result<(), Failure> {
    let json = serde_json::to_string(profile).map_err(|e| e.to_string())? + "\n";
    outputs::write(file, &json).map_err(|why| format!("--costs: {why}"))?;
    print(&if as_json { json } else { render_costs(profile) });
    Ok(())
}

/// A cost profile as tables.
fn render_costs(profile: &CostProfile) -> String {
    let row = |table: &mut Table, name: &str, cost: &Cost| {
        table.row([
            name.to_string(),
            format!("{:.0}", cost.min),
            format!("{:.0}", cost.mean),
            format!("{:.0}", cost.max),
        ]);
    };
    let mut table = Table::new(["cycles per packet", "min", "mean", "max"]);
    for function in &profile.functions {
        row(&mut table, &function.name, &function.cost);
    }
    let line = |what: &str, name: &str, line: &LinearCost| {
        format!("{name}: {:.1} cycles and {:.4} for each {what}\n", line.base, line.slope)
    };
    let of_functions = profile.functions.iter().flat_map(|function| {
        let of_flows = function.per_flow.iter().map(|l| line("flow", &function.name, l));
        of_flows.chain(function.per_rule.iter().map(|l| line("rule", &function.name, l)))
    });
    let of_programs = profile.programs.iter().flat_map(|program| {
        program.per_rule.iter().map(|l| line("rule", &format!("program at {}", program.entry), l))
    });
    let lines: String = of_functions.chain(of_programs).collect();
    for program in &profile.programs {
        row(
            &mut table,
            &format!("program at {} ({})", program.entry, program.program),
            &program.cost,
        );
    }
    for io in &profile.io {
        let driver = io.driver.as_ref().map_or_else(String::new, |driver| format!(" on {driver}"));
        let sides = [("input", &io.receive), ("output", &io.send)];
        for (side, cost) in sides.into_iter().filter_map(|(side, c)| Some((side, c.as_ref()?))) {
            row(&mut table, &format!("{side}, {}{driver}", io.device), cost);
        }
        row(&mut table, &format!("input and output, {}{driver}", io.device), &io.cost);
    }
    if let Some(hand_off) = &profile.hand_off {
        let [from, to] = hand_off.cpus;
        row(&mut table, &format!("hand-off from CPU {from} to {to}, giving"), &hand_off.give);
        row(&mut table, &format!("hand-off from CPU {from} to {to}, taking"), &hand_off.take);
    }
    let remarks: String = profile.remarks.iter().map(|remark| format!("! {remark}\n")).collect();
    let processor = &profile.processor;
    let cores = match profile.cores {
        1 => String::new(),
        cores => format!(", while {cores} cores work"),
    };
    format!(
        "{}: {}, {:.2} GHz{cores}\ntraffic: {}\n\n{}{lines}{remarks}",
        profile.chain,
        processor.name,
        processor.frequency / 1e9,
        profile.traffic.join("; "),
        table.render()
    )
}

/// The document beside a page.
fn raw_beside(page: &Path) -> Result<PathBuf, String> {
    let (raw, shown) = (page.with_extension("json"), page.display());
    match page.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()) {
        _ if page.is_dir() => Err(format!("--html {shown}: is a folder; it takes a file's name")),
        _ if raw == page => {
            Err(format!("--html {shown}: the JSON document beside it would have this name"))
        }
        Some(folder) => Err(format!("--html {shown}: there is no folder {}", folder.display())),
        None => Ok(raw),
    }
}

fn write_page(report: &Report, page: &Path, raw: &Path) -> Result<(), String> {
    let name = raw.file_name().unwrap_or_default().to_string_lossy();
    let json = serde_json::to_string(report).map_err(|e| e.to_string())?;
    for (path, text) in [(page, report.page(&name)), (raw, json)] {
        outputs::write(path, text).map_err(|why| format!("--html: {why}"))?;
    }
    Ok(())
}

/// Who is compared.
fn peers(names: &[String]) -> Result<Vec<Peer>, String> {
    let peer = |name: &String| match Peer::from(name.as_str()) {
        Peer::Chain(file) if !Path::new(&file).exists() => Err(format!(
            "--vs {file}: neither a file nor kernel, kernel:RULES, ovs, testpmd, fastclick or vpp"
        )),
        Peer::Kernel { rules: Some(file) } if !Path::new(&file).is_file() => {
            Err(format!("--vs {name}: there is no file '{file}' with nftables rules"))
        }
        peer => Ok(peer),
    };
    names.iter().map(peer).collect()
}

/// What a chain's names are bound to.
struct Ports {
    traffic: HashMap<String, Binding>,
    inputs: Vec<(Option<String>, String)>,
    outputs: Vec<(Option<String>, String)>,
}

impl Ports {
    fn parse(args: &Bench) -> Result<Self, String> {
        let mut ports = Self { traffic: HashMap::new(), inputs: Vec::new(), outputs: Vec::new() };
        let split = |text: &str| match text.split_once('=') {
            // Keys of generated traffic have values, too.
            Some((name, value)) if !name.contains(':') => {
                (Some(name.to_string()), value.to_string())
            }
            _ => (None, text.to_string()),
        };
        for text in &args.inputs {
            let (name, value) = split(text);
            if value.is_empty() || name.as_ref().is_some_and(String::is_empty) {
                return Err(format!("--in takes NAME=VALUE or an interface, not '{text}'"));
            }
            let binding = Binding::source(&value).map_err(|why| format!("--in {text}: {why}"))?;
            match (name, binding) {
                (name, Binding::Interface(spec)) => ports.inputs.push((name, spec.name)),
                (Some(name), binding) => _ = ports.traffic.insert(name, binding),
                (None, _) => {
                    return Err(format!(
                        "--in takes NAME=VALUE, not '{text}'; --traffic {text} is offered to all inputs"
                    ));
                }
            }
        }
        for text in &args.outputs {
            let (name, value) = split(text);
            match Binding::sink(&value).map_err(|why| format!("--out {text}: {why}"))? {
                Binding::Interface(spec) => ports.outputs.push((name, spec.name)),
                _ => return Err(format!("--out {text}: takes an interface; nothing is written")),
            }
        }
        Ok(ports)
    }

    /// The names that are bound to interfaces.
    fn names(&self) -> Vec<String> {
        self.inputs.iter().chain(&self.outputs).filter_map(|(name, _)| name.clone()).collect()
    }

    /// How to measure over interfaces, if that is asked for.
    fn live(self, args: &Bench, cores: &[usize], peers: &[Peer]) -> Result<Option<Live>, String> {
        let tester = args.via.as_deref().map(|text| match text.split_once(',') {
            Some((from, to)) if !from.is_empty() && !to.is_empty() && !to.contains(',') => {
                Ok([from.to_string(), to.to_string()])
            }
            _ => Err(format!("--via {text}: takes the tester's two interfaces, FROM,TO")),
        });
        let tester = tester.transpose()?;
        let has_interfaces = !self.inputs.is_empty() || !self.outputs.is_empty();
        let other = peers.iter().find(|peer| !matches!(peer, Peer::Chain(_)));
        if let (Some(peer), false) = (other, args.veth) {
            return Err(format!(
                "--vs {peer} changes how the host forwards: it takes --veth, in whose namespaces it does no harm"
            ));
        }
        if let Some(script) = &args.vs_script {
            let shown = script.display();
            if other.is_none() {
                return Err(format!(
                    "--vs-script {shown}: no --vs names a peer that it could set up"
                ));
            }
            std::fs::File::open(script).map_err(|why| format!("--vs-script {shown}: {why}"))?;
        }
        let link = match args.veth {
            true if has_interfaces => {
                return Err("--veth makes interfaces: none can be bound with --in".into());
            }
            true => Link::Veth,
            false if has_interfaces || tester.is_some() => {
                Link::Interfaces { inputs: self.inputs, outputs: self.outputs, tester }
            }
            false if args.io.is_some() || args.via_io.is_some() => {
                return Err(
                    "--io and --via-io are for interfaces: --veth, or --in and --out".into()
                );
            }
            false => return Ok(None),
        };
        if args.costs.is_some() && args.file.is_none() {
            return Err("--costs is of a chain: name its file".into());
        }
        let program = std::env::current_exe().map_err(|e| format!("catena's own program: {e}"))?;
        let catena = Catena { program, variables: args.variables.clone(), io: args.io.clone() };
        Ok(Some(Live {
            link,
            catena,
            cores: cores.to_vec(),
            io: args.via_io.clone(),
            script: args.vs_script.clone(),
        }))
    }
}

/// The limits that a report misses.
fn missed(args: &Bench, report: &Report) -> Vec<String> {
    let mut missed = Vec::new();
    if let Some(least) = args.min_mpps {
        let found = report.goal("NDR").map_or(0.0, |ndr| ndr.throughput / 1e6);
        if found.is_nan() || found < least {
            missed.push(format!("--min-mpps {least}: the NDR is {found:.3} Mpps"));
        }
    }
    if let Some(most) = args.max_p99_us {
        if report.latency.is_empty() {
            missed.push(format!("--max-p99-us {most}: no latencies were taken"));
        }
        for load in &report.latency {
            let found = load.percentiles.p99 as f64 / 1e3;
            if found > most {
                missed.push(format!(
                    "--max-p99-us {most}: {found:.2} µs at {} % of the NDR",
                    load.percent
                ));
            }
        }
    }
    missed
}
