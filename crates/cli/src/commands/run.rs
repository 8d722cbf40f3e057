//! `catena run`: runs a chain to the end of its input.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Args;
use compiler::partition;
use dataplane::all_cores::AllCores;
use dataplane::change::{ElementPlan, Fate};
use dataplane::clock::RealClock;
use dataplane::control_socket::{ControlServer, SocketFiles};
use dataplane::io::{
    Binding, Bindings, Choice, Dispatch, DispatchMode, FaultInjection, Faults, Interfaces,
    Launcher, MOST_GROUPS, Polling, Process, Processes,
};
use dataplane::ports::Ports;
use dataplane::stats::Interval;
use dataplane::worker;
use dataplane::{ProgramUse, Router};
use elements::process::ProcessSpec;
use engine::control::metrics::MetricsSocket;
use engine::control::{ControlSocket, Controlled, Front};
use engine::groups::Grouping;
use engine::instance::{Changed, Configuration, Instance, Options};
use engine::privileges::User;
use engine::session::{Cut, Path, system_seed};
use engine::supervision::{Cause, Ended, Handle, Observer, Supervision};
use engine::{Error, Findings, control, system_calls};
use host::Programs;
use view::diagnostics;
use view::summary::Summary;
use view::table::grouped;

use super::check;
use super::offload::{Ahead, Counting, Division, Source};
use super::scale::ScaleOptions;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::log::{self, Log};
use crate::notify::ServiceManager;
use crate::presenter::Words;
use crate::signals::Signals;
use crate::terminal::{colours, print};
use crate::{cores, drive, mends, socket};

/// Run a chain on interfaces, captures or generated traffic
#[derive(Args, Debug)]
#[command(disable_help_flag = true, after_help = EXIT_STATUS)]
pub(crate) struct Run {
    /// Configuration file; `-` for standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// Bind FromDevice(NAME) to an interface, a capture file or generated traffic (gen:KEY=VALUE,…)
    ///
    /// An interface also becomes the output of ToDevice(NAME) unless --out binds that. dev:INTERFACE forces
    /// an interface, tap:INTERFACE creates a TAP interface, dpdk:DEVICE,… uses a DPDK device (if built with
    /// the feature dpdk). If no element names the device NAME, the device replaces the element NAME.
    #[arg(long = "in", value_name = "NAME=INTERFACE|FILE|gen:…")]
    inputs: Vec<String>,
    /// Bind ToDevice(NAME) to an interface or a capture file
    #[arg(long = "out", value_name = "NAME=INTERFACE|FILE")]
    outputs: Vec<String>,
    /// Run behind the switch of a rack, as `catena compile --topology` divides the chain
    ///
    /// Frames of all devices of the chain come over the interface that the topology links to the switch, with
    /// the tags that it sets, and leave over it with tags that name the switch's port.
    #[arg(long, value_name = "FILE.yaml", conflicts_with_all = ["inputs", "outputs"])]
    topology: Option<String>,
    /// Which server of the rack this is, if several are behind the switch
    #[arg(long, value_name = "NAME", requires = "topology")]
    server: Option<String>,
    /// Select the I/O mode of all interfaces, or of one
    ///
    /// Modes: auto (the best that works), af-xdp, af-packet-mmsg (many frames per system call),
    /// af-packet-ring (receive ring in shared memory), af-packet (one frame per system call). batch=N fixes
    /// the number of frames per batch, which otherwise follows the load; it also applies to interfaces
    /// without a choice of mode (tap0=batch=N). shared opens an interface that another run uses.
    #[arg(long, value_name = "[INTERFACE=]MODE[,batch=N][,shared]")]
    io: Vec<String>,
    /// Arguments of DPDK's environment abstraction layer, instead of --in-memory --no-telemetry
    #[cfg(feature = "dpdk")]
    #[arg(long, value_name = "ARGUMENTS", allow_hyphen_values = true)]
    dpdk_eal: Option<String>,
    /// Inject faults on all bound devices:
    /// drop=SHARE,duplicate=…,reorder=…,corrupt=…,short=…,down=…,seed=N, or none; 'catena ctl faults'
    /// changes them
    #[arg(long, value_name = "FAULT=SHARE,…")]
    faults: Option<Faults>,
    /// How workers wait for packets: adaptive (poll for a while, then sleep), busy (always poll), sleep
    /// (never poll) or yield (poll, in turns with others of this CPU)
    #[arg(long, value_name = "MODE", default_value = "adaptive")]
    poll: String,
    /// Read a handler after the run and print its value
    #[arg(short = 'h', value_name = "ELEMENT.HANDLER")]
    read: Vec<String>,
    /// Write a handler before the run
    #[arg(short = 'w', value_name = "ELEMENT.HANDLER=VALUE")]
    write: Vec<String>,
    /// Serve Click's ControlSocket protocol on a TCP port of this host
    #[arg(short = 'p', value_name = "PORT")]
    port: Vec<String>,
    /// Serve Click's ControlSocket protocol on a UNIX socket
    #[arg(short = 'u', value_name = "PATH")]
    unix: Vec<PathBuf>,
    /// Run a worker on each of these CPUs, pinned: 2, 0-3 or 0,2
    #[arg(long, value_name = "CPUS")]
    cores: Option<String>,
    /// Start with N active workers
    ///
    /// 'catena ctl workers' changes the number, up to one per CPU of --cores, or of all CPUs that this
    /// process may use. Packets of interfaces are dispatched to workers; captures and generated traffic
    /// (--in NAME=FILE, --in NAME=gen:…) come to the first worker alone.
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    #[command(flatten)]
    scaling: ScaleOptions,
    /// Select how packets are dispatched to workers
    ///
    /// Modes: auto, hash (symmetric hash: both directions of a flow meet), queue (the interface's receive
    /// queues), tags=mac or tags=vlan[:FIRST] (a MAC address or VLAN tag names the group of traffic
    /// classes, see 'catena ctl dispatch'), software (the first worker hands each flow to one of the
    /// others), hand-off (workers pass frames on to the worker that has the flow).
    #[arg(long, value_name = "MODE", default_value = "auto")]
    dispatch: String,
    /// Number of groups of traffic classes with --dispatch tags=…; default: one per class
    #[arg(long, value_name = "N")]
    groups: Option<usize>,
    /// Listen for 'catena ctl' and 'catena top' on this UNIX socket; 'none' disables it
    ///
    /// Chains on interfaces listen at the usual place by default.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Serve metrics to Prometheus over HTTP
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<String>,
    /// Switch to this user before the chain runs, and keep only the capabilities that interfaces need
    ///
    /// These are NET_ADMIN, NET_RAW, IPC_LOCK and BPF. Files are read and written as that user.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Restrict system calls to those that a run needs (seccomp); others fail with EPERM
    #[arg(long)]
    seccomp: bool,
    /// Seed of random choices such as ports, to repeat a run
    ///
    /// Without it, chains on interfaces are seeded by the system, differently at every start (RFC 6056).
    /// Runs on captures and generated traffic are seeded by 0, and repeat.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Process packets element by element; do not synthesise programs
    ///
    /// Results are the same except for the order of packets of one burst whose paths part and meet again,
    /// and of what is allocated in that order, such as ports. Elements process all packets of a burst that
    /// take one path before those of the next, as in FastClick; programs mostly keep the order of arrival.
    /// Packets on the same path never overtake each other, and with bursts of one packet nothing differs.
    #[arg(long)]
    no_synthesis: bool,
    /// Interpret models instead of running native code
    #[arg(long)]
    interpret: bool,
    /// Install programs that are neither proven nor checked by packets
    ///
    /// Programs are proven equal to the chain. A proof that takes too long is given up; then packets are
    /// made for each exit of the program and compared. If they do not reach every exit, elements process
    /// the packets instead, unless this option is given. Wrong programs are never installed.
    #[arg(long, conflicts_with = "no_synthesis")]
    unproven: bool,
    #[command(flatten)]
    limits: Limits,
    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Format of log messages on standard error
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log: Log,
    /// Print no progress and no summary
    #[arg(short, long)]
    quiet: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

const EXIT_STATUS: &str = "\
Exit status:
  0  the run was stopped (SIGINT, SIGTERM, 'catena ctl stop', the handler 'stop'), or ended as its
     chain says: its input came to an end, an element stopped it
  1  something failed: the chain is wrong, a device cannot be opened, an element met an error
  2  the command line is wrong
  3  the run ended by itself although its chain never ends, on interfaces or sources without a
     limit: another chain was swapped in by force, a handler changed what it does, a worker is dead";

/// `NAME=VALUE`, for an option of this name.
fn pair<'a>(option: &str, text: &'a str) -> Result<(&'a str, &'a str), String> {
    text.split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| format!("{option} takes NAME=VALUE, not '{text}'"))
}

fn bindings(run: &Run) -> Result<Bindings, String> {
    let beside = std::path::Path::new(&run.file).parent().unwrap_or(std::path::Path::new(""));
    let mut bindings = Bindings { beside: beside.to_path_buf(), ..Bindings::default() };
    for text in &run.inputs {
        let (name, value) = pair("--in", text)?;
        let source = Binding::source(value).map_err(|why| format!("--in {text}: {why}"))?;
        bindings.inputs.insert(name.to_string(), source);
    }
    for text in &run.outputs {
        let (name, value) = pair("--out", text)?;
        let sink = Binding::sink(value).map_err(|why| format!("--out {text}: {why}"))?;
        bindings.outputs.insert(name.to_string(), sink);
    }
    for (name, binding) in &bindings.inputs {
        if matches!(binding, Binding::Interface(_)) && !bindings.outputs.contains_key(name) {
            bindings.outputs.insert(name.clone(), binding.clone());
        }
    }
    check_receivers(&bindings)?;
    bindings.faults = run.faults.clone().map(FaultInjection::new);
    #[cfg(feature = "dpdk")]
    bindings.eal.clone_from(&run.dpdk_eal);
    if run.topology.is_none() {
        choose_io(&mut bindings, &run.io)?;
    }
    Ok(bindings)
}

/// Binds a chain's devices to the link to a switch. Gives what becomes of its programs then, how it is divided, and the switch
/// if it is reached.
fn go_behind(
    run: &Run,
    topology: &str,
    bindings: &mut Bindings,
) -> Result<(Cut, Arc<Division>, Option<Ahead>), Failure> {
    let chain = (run.file.as_str(), run.variables.as_slice(), run.limits);
    let source = Source::of(chain, (topology, run.server.as_deref()), (run.log, run.quiet));
    let mut behind = source.behind()?;
    let cut = Arc::new(partition::on_cores(&behind.compiled));
    let wires = std::mem::take(&mut behind.wires);
    let known = wires.first().map(|(_, uplink)| Arc::clone(&uplink.wires)).unwrap_or_default();
    let division = Arc::new(Division::of(&source, &behind, known, run.log));
    let ahead = Ahead::find(&source, behind, &division)?;
    for (name, uplink) in wires {
        bindings.inputs.insert(name.clone(), Binding::Uplink(uplink.clone()));
        bindings.outputs.insert(name, Binding::Uplink(uplink));
    }
    choose_io(bindings, &run.io)?;
    Ok((cut, division, ahead))
}

/// `--io [INTERFACE=]MODE`: how frames of interfaces are carried.
pub(super) fn choose_io(bindings: &mut Bindings, texts: &[String]) -> Result<(), String> {
    let parse = |text| match Choice::from_str(text) {
        Ok(choice) => Ok((text, choice)),
        Err(why) => Err(format!("--io {text}: {why}")),
    };
    let mut choices: Vec<_> =
        texts.iter().map(String::as_str).map(parse).collect::<Result<_, _>>()?;
    // What is said of one interface holds whatever is said of all.
    choices.sort_by_key(|(_, choice)| choice.interface.is_some());
    for (text, choice) in choices {
        if !bindings.choose(&choice) {
            return Err(match choice.interface {
                Some(name) => format!(
                    "--io {text}: no name is bound to the interface '{name}', or it has only one \
                     I/O mode"
                ),
                None => format!("--io {text}: no name is bound to an interface"),
            });
        }
    }
    Ok(())
}

/// Tells of names that something is bound to and no element has.
fn warn_of_unused(run: &Run, bindings: &Bindings) {
    let named = |texts: &[String], option: &'static str| -> Vec<(&'static str, String)> {
        texts.iter().filter_map(|text| Some((option, pair(option, text).ok()?.0.into()))).collect()
    };
    let outputs = named(&run.outputs, "--out");
    for (option, name) in named(&run.inputs, "--in").into_iter().chain(outputs.clone()) {
        let receives = option == "--in" && bindings.was_asked_for(&name, true);
        // What --in binds is sent to as well where --out says nothing else.
        let sends = option == "--out" || !outputs.iter().any(|(_, other)| *other == name);
        if !(receives || sends && bindings.was_asked_for(&name, false)) {
            run.log.warn(&format!(
                "{option} {name}=…: no element of the chain names the device '{name}'"
            ));
        }
    }
}

/// Frames of an interface cannot come in under two names.
fn check_receivers(bindings: &Bindings) -> Result<(), String> {
    let mut receivers: Vec<_> = bindings
        .inputs
        .iter()
        .filter_map(|(name, binding)| match binding {
            Binding::Interface(spec) => Some((&spec.name, name)),
            _ => None,
        })
        .collect();
    receivers.sort();
    match receivers.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(&[(interface, a), (_, b)]) => Err(format!(
            "'{a}' and '{b}' would both receive from {interface}, but a frame is received under one name only"
        )),
        _ => Ok(()),
    }
}

/// `--poll HOW`.
pub(super) fn polling(text: &str) -> Result<Polling, String> {
    match text {
        "adaptive" => Ok(Polling::Adaptive),
        "busy" => Ok(Polling::Busy),
        "sleep" => Ok(Polling::Sleep),
        "yield" => Ok(Polling::Yield),
        _ => Err(format!("--poll {text}: the modes are adaptive, busy, sleep and yield")),
    }
}

/// `--dispatch MODE` and `--groups N`: how packets find their workers, why so, and a line of that
/// where it matters.
fn dispatch(
    run: &Run,
    configuration: &Configuration,
    (workers, most): (usize, usize),
    bindings: &Bindings,
) -> Result<(Dispatch, String, Option<String>), String> {
    let asked: Option<DispatchMode> = match run.dispatch.as_str() {
        "auto" => None,
        text => Some(text.parse().map_err(|why| format!("--dispatch {why}"))?),
    };
    let dispatch_mode = asked.unwrap_or_default();
    let why = match asked {
        Some(_) => "asked for",
        None if most == 1 => "there is one worker",
        None => "the default",
    };
    let DispatchMode::Tags(_) = dispatch_mode else {
        if run.groups.is_some() {
            return Err("--groups needs --dispatch tags=mac or tags=vlan".to_string());
        }
        if dispatch_mode == DispatchMode::Hash
            && (run.workers.is_some() || run.scaling.scale.is_some())
            && most > 1
            && can_grow(run, bindings)
        {
            let line = format!(
                "dispatch: {dispatch_mode} ({why}) to {workers} of {most} workers; `catena ctl workers N` changes how many"
            );
            return Ok((Dispatch::elastic(workers, most), why.to_string(), Some(line)));
        }
        let what = match dispatch_mode {
            DispatchMode::Software => "; the first worker hands packets to the others",
            DispatchMode::HandOff => "; workers hand each other what is of others' flows",
            _ => "",
        };
        let line = (workers > 1).then(|| format!("dispatch: {dispatch_mode} ({why}){what}"));
        return Ok((Dispatch::new(dispatch_mode, workers, 0)?, why.to_string(), line));
    };
    if run.interpret {
        return Err(format!("--dispatch {dispatch_mode}: the interpreter does not support groups"));
    }
    if let Some(groups) = run.groups.filter(|groups| !(1..=MOST_GROUPS).contains(groups)) {
        return Err(format!("--groups {groups}: must be 1 to {MOST_GROUPS}"));
    }
    let grouping = Grouping::of(configuration, run.groups, workers)?;
    let (groups, classes) = (grouping.groups(), grouping.classes());
    if let Some(wanted) = run.groups.filter(|wanted| *wanted > groups) {
        return Err(format!(
            "--groups {wanted}: the chain's traffic classes make {groups}; those that share flows stay \
             together"
        ));
    }
    let line = format!(
        "dispatch: {dispatch_mode} ({why}), {classes} traffic classes in {groups} groups; `catena ctl dispatch` \
         lists their tags"
    );
    Ok((Dispatch::new(dispatch_mode, workers, groups)?, why.to_string(), Some(line)))
}

/// What there is to know where the first worker reads something alone.
const NOT_DISPATCHED: &str = "captures and generated traffic are not dispatched: the first worker takes all of them, \
    and groups count none";

/// Whether flows can go from worker to worker.
fn can_grow(run: &Run, bindings: &Bindings) -> bool {
    let has_no_choice = |binding: &Binding| match binding {
        Binding::Interface(spec) => spec.mode.is_some_and(|mode| !mode.is_choice()),
        Binding::Uplink(_) => true,
        _ => false,
    };
    !run.interpret && !bindings.inputs.values().chain(bindings.outputs.values()).any(has_no_choice)
}

/// The CPUs that workers can be bound to, and how many run at first.
fn cpus(run: &Run) -> Result<(Vec<Option<usize>>, usize), String> {
    let all = match &run.cores {
        Some(text) => cores::parse(text, &worker::cpus())?,
        None if run.workers.is_some() || run.scaling.scale.is_some() => worker::cpus(),
        None => return Ok((vec![None], 1)),
    };
    let most = all.len();
    let workers = run.workers.unwrap_or(if run.scaling.scale.is_some() { 1 } else { most });
    if !(1..=most).contains(&workers) {
        return Err(format!("--workers {workers}: there can be 1 to {most}, one for each CPU"));
    }
    Ok((all.into_iter().map(Some).collect(), workers))
}

/// Shows how far a run is, on a terminal.
struct Progress {
    shown: Option<Instant>,
    active: bool,
}

/// How often it is shown.
const PROGRESS: Duration = Duration::from_millis(250);

impl Progress {
    fn new(active: bool) -> Self {
        Self { shown: None, active: active && std::io::stderr().is_terminal() }
    }

    fn show(&mut self, instance: &Instance) {
        let age = instance.age();
        if !self.active || self.shown.map_or(age, |shown| shown.elapsed()) < PROGRESS {
            return;
        }
        self.shown = Some(Instant::now());
        let Some(stats) = instance.stats().1 else { return };
        let (taken, given) = stats.packets();
        let rate = Interval::of(age).rate(0, taken) / 1e6;
        log::progress(&format!("{} in, {} out, {rate:.2} Mpps", grouped(taken), grouped(given)));
    }
}

/// How long a chain on interfaces waits for its programs; elements run until they are there.
const LIVE_PATIENCE: Duration = Duration::from_millis(300);
/// The same of one that nobody waits for: what comes out does not depend on time unless that is long.
const FILE_PATIENCE: Duration = Duration::from_secs(20);

/// The socket that the command line asks for, or that a live chain has anyway, and what there is to
/// tell of it.
fn control_socket(
    run: &Run,
    is_live: bool,
    user: Option<&User>,
) -> Result<(Option<ControlSocket>, Option<String>), String> {
    let told = |socket: ControlSocket| {
        let line = format!("control: {}", socket.path().display());
        (Some(socket), Some(line))
    };
    match &run.control {
        Some(path) if path.as_os_str() == "none" => Ok((None, None)),
        Some(path) => {
            ControlSocket::open(path, user).map(told).map_err(|why| format!("--control {why}"))
        }
        None if is_live => Ok(match ControlSocket::open(&socket::default_path(), user) {
            Ok(socket) => told(socket),
            Err(why) => (
                None,
                Some(format!("no control socket: {why}; --control PATH places it elsewhere")),
            ),
        }),
        None => Ok((None, None)),
    }
}

/// Prints a line for the user unless output is to be quiet.
fn say(run: &Run, text: &str) {
    if !run.quiet {
        run.log.info(text);
    }
}

/// Logs what happens to a run, shows its progress, and notifies the service manager.
struct Reporter {
    log: Log,
    progress: Mutex<Progress>,
    manager: ServiceManager,
}

impl Observer for Reporter {
    fn looked(&self, instance: &Instance) {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).show(instance);
    }

    fn message(&self, text: &str) {
        self.log.info(text);
    }

    fn reloading(&self) {
        self.manager.tell("RELOADING=1");
    }

    fn reloaded(&self, file: &str, result: Result<&Changed, &Error>) {
        let log = self.log;
        match result {
            Ok(changed) => {
                log.warn(&render(&changed.warnings, false));
                log.warn(&what_is_lost(changed));
                let made = changed.preparation.as_secs_f64() * 1e3;
                let waited = changed.swapped.iter().map(|s| s.standstill).max();
                let waited = waited.unwrap_or_default().as_secs_f64() * 1e3;
                log.info(&format!(
                    "{file}: swapped in; built in {made:.1} ms; packets waited {waited:.3} ms at most"
                ));
            }
            Err(refusal) => {
                let why = match refusal {
                    Error::Configuration(findings) => render(findings, false),
                    refusal => mends::of(refusal),
                };
                let why = why.trim_end();
                log.error(&format!("{file}: reload refused; the running chain continues\n{why}"));
            }
        }
        self.manager.tell("READY=1");
    }
}

/// A line for each element whose state, or some of it, does not go on.
fn what_is_lost(changed: &Changed) -> String {
    let lines = changed.plan.lines.iter();
    let lost = lines.filter(|line| matches!(line.fate, Fate::Lost | Fate::Partly));
    let line = |line: &ElementPlan| {
        let (packets, flows) = (line.holding.packets, line.holding.flows);
        let (element, fate, why) = (&line.element, line.fate, &line.why);
        format!("{element}: its state is {fate} ({flows} flows, {packets} packets): {why}\n")
    };
    let mut text: String = lost.map(line).collect();
    let unclaimed: u64 = changed.swapped.iter().map(|s| s.taken.unclaimed).sum();
    if unclaimed > 0 {
        text +=
            &format!("{unclaimed} packets were dropped: no element of the new chain takes them\n");
    }
    text
}

/// What starts the programs of a chain, if this run may.
fn processes(run: &Run) -> Processes {
    let option = match (run.user.is_some(), run.seccomp) {
        (true, _) => Some("--user"),
        (_, true) => Some("--seccomp"),
        _ => None,
    };
    if let Some(option) = option {
        return Processes::new(Arc::new(Unprivileged(option)));
    }
    let log = run.log;
    let hear = Box::new(move |line: &str, is_error: bool| match is_error {
        true => log.error(line),
        false => log.info(line),
    });
    Processes::new(Arc::new(Programs::new(super::host::folder(), hear)))
}

/// Starts no programs, as this option of the run leaves no rights to.
struct Unprivileged(&'static str);

impl Launcher for Unprivileged {
    fn start(&self, _: &ProcessSpec) -> Result<Arc<dyn Process>, String> {
        Err(format!(
            "programs are started by root, and with {} nothing is: start the program by `catena host up`, and bind its \
             interfaces",
            self.0
        ))
    }
}

/// Runs the command.
pub(crate) fn main(run: &Run) -> ExitCode {
    let interfaces = Interfaces::default();
    let ended = execute(run, &interfaces);
    // Threads may have them still, whatever this came to.
    interfaces.leave();
    ended.unwrap_or_else(|why| {
        fail(run, &why);
        log::flush();
        ExitCode::FAILURE
    })
}

/// Shows why there is no run: where the summary was to go, in JSON, and in the log.
fn fail(run: &Run, why: &Failure) {
    if run.json {
        why.print(true);
    }
    match (run.log, why) {
        (Log::Text, _) if run.json => {}
        // Diagnostics, lines, say for themselves which are errors.
        (Log::Text, Failure::Findings(_)) => why.print(false),
        (log, Failure::Message(why)) => log.error(why),
        (log, _) => log.error(&why.text(false)),
    }
}

fn execute(run: &Run, interfaces: &Interfaces) -> Result<ExitCode, Failure> {
    let variables: Vec<(String, String)> = run
        .variables
        .iter()
        .map(|v| pair("a variable", v).map(|(n, v)| (n.to_string(), v.to_string())))
        .collect::<Result<_, _>>()?;
    let colour = run.log == Log::Text && colours(&std::io::stderr());
    let (mut cpus, workers) = cpus(run)?;
    let polling = polling(&run.poll)?;
    let mut bindings = Bindings { interfaces: interfaces.clone(), ..bindings(run)? };
    let names: BTreeSet<_> = bindings.inputs.keys().chain(bindings.outputs.keys()).collect();
    let devices = names.into_iter().map(|name| engine::session::device(name)).collect();
    let elaboration = compiler::Options { devices, ..run.limits.options(variables) };
    let of_user = |why| format!("--user {why}");
    let user = run.user.as_deref().map(User::find).transpose().map_err(of_user)?;
    let (control, line) =
        control_socket(run, bindings.is_live() || run.topology.is_some(), user.as_ref())?;
    user.as_ref().map_or(Ok(()), User::become_it).map_err(of_user)?;
    if run.seccomp {
        system_calls::keep_needed().map_err(|why| format!("--seccomp: {why}"))?;
    }
    // Nothing is read before, so that a user's configuration names no file that the user cannot read.
    let configuration = Configuration::read(&run.file, &elaboration)?;
    run.log.warn(&render(&configuration.warnings(), colour));
    line.iter().for_each(|line| say(run, line));
    let processes = processes(run);
    bindings.processes = Some(processes.clone());
    let topology = run.topology.as_deref();
    let behind = topology.map(|rack| go_behind(run, rack, &mut bindings)).transpose()?;
    let (cut, front, ahead) = match behind {
        None => (None, None, None),
        Some((cut, division, ahead)) => {
            let front: Arc<dyn Front> = division;
            (Some(cut), Some(front), ahead)
        }
    };
    let (dispatch, why, line) = dispatch(run, &configuration, (workers, cpus.len()), &bindings)?;
    let scaling = run.scaling.scaling(&dispatch, cpus.len(), bindings.is_live())?;
    let hear = run.scaling.hear(run.log)?;
    if !dispatch.is_elastic() {
        cpus.truncate(workers);
    }
    let by_queue = dispatch.mode() == DispatchMode::Queue;
    bindings.dispatch = dispatch.clone();
    line.iter().filter(|_| bindings.is_live()).for_each(|line| say(run, line));
    let options = Options {
        cpus,
        dispatch,
        interfaces: interfaces.clone(),
        seed: run.seed.unwrap_or_else(|| if bindings.is_live() { system_seed() } else { 0 }),
        path: match (run.no_synthesis, run.interpret) {
            (false, false) => Path::Synthesised,
            (false, true) => Path::SynthesisedInterpreted,
            (true, false) => Path::Native,
            (true, true) => Path::Interpreted,
        },
        program_use: if bindings.is_live() { ProgramUse::WhereFaster } else { ProgramUse::Always },
        polling,
        patience: if bindings.is_live() { LIVE_PATIENCE } else { FILE_PATIENCE },
        unproven: run.unproven,
        cut,
        listener: run.log.listener(),
        time: Arc::new(RealClock::new()),
    };
    let writes = run.write.clone();
    let ready = move |router: &mut Router| {
        writes.iter().try_for_each(|text| {
            let (handler, value) = text.split_once('=').unwrap_or((text, ""));
            router.write_handler(handler, value).map_err(|e| format!("-w {text}: {e}"))
        })
    };
    let mut sockets: Vec<_> =
        run.port.iter().map(|port| drive::tcp(port)).collect::<Result<_, _>>()?;
    sockets.extend(run.unix.iter().map(|path| drive::unix(path)));
    let files = SocketFiles::default();
    let mut server = ControlServer::open(Vec::new(), sockets, &files)?;
    let metrics = run.metrics.as_deref().map(MetricsSocket::open).transpose();
    let metrics = metrics.map_err(|why| format!("--metrics: {why}"))?;
    // From here on interfaces are changed, and must be as they were found when a signal comes.
    let left = (interfaces.clone(), control.as_ref().map(ControlSocket::file), processes.clone());
    let hangs_up = control.is_some() || bindings.is_live();
    let handle = Handle::default();
    let signals = Signals::catch(handle.clone(), hangs_up, move || {
        let (interfaces, socket, processes) = left;
        interfaces.leave();
        processes.end();
        files.remove_all();
        socket.iter().for_each(|socket| socket.remove());
    });
    if bindings.is_live() {
        run.log.write_aside();
    }
    let ports = Ports::of_workers(&bindings, options.cpus.len());
    let staged = Instance::stage(configuration, ports, options, ready)?;
    signals.started();
    for line in bindings.take_lines() {
        run.log.info(&line);
    }
    warn_of_unused(run, &bindings);
    let note = bindings.first_reads_alone().then(|| NOT_DISPATCHED.to_string());
    if let (Some(note), 2..) = (&note, workers) {
        run.log.warn(&format!("{workers} workers: {note}"));
    }
    if bindings.is_live() && workers > 1 && by_queue {
        for element in staged.flow_tables() {
            run.log.warn(&check::spread_by_queue(&element));
        }
    }
    let is_endless = staged.is_endless();
    server.extend(staged.control_sockets())?;
    let warnings = staged.warnings();
    let instance = staged.begin().map_err(|why| mends::of(&why))?;
    run.log.warn(&render(&warnings, colour));
    let controlled = Arc::new(Controlled {
        instance,
        elaboration,
        front,
        interfaces: bindings.names(),
        faults: bindings.faults.clone(),
        scaling,
        dispatch: control::dispatch::DispatchState::new(why, note),
        presenter: Box::new(Words),
        handle,
        answering: AtomicUsize::new(0),
    });
    if let Some(control) = &control {
        control.serve(Arc::clone(&controlled)).map_err(|e| format!("--control: {e}"))?;
    }
    if let Some(metrics) = metrics {
        let address = metrics.address();
        metrics.serve(Arc::clone(&controlled)).map_err(|e| format!("--metrics: {e}"))?;
        say(run, &format!("metrics: http://{address}/metrics"));
    }
    let count = |ahead: Ahead| ahead.count(Arc::clone(&controlled), run.log);
    let counting = ahead.map(count).transpose().map_err(|why| format!("offload: {why}"))?;
    let scaled = controlled.scale(hear).map_err(|why| format!("--scale: {why}"))?;
    let instance = &controlled.instance;
    let reporter = Arc::new(Reporter {
        log: run.log,
        progress: Mutex::new(Progress::new(!run.quiet && run.log == Log::Text)),
        manager: ServiceManager::from_environment(),
    });
    let supervision = Supervision {
        controlled: &controlled,
        sockets: &mut server,
        file: &run.file,
        // Whoever controls it can give it something to do.
        stays: control.is_some() && run.control.is_some(),
        observer: reporter.clone(),
    };
    reporter.manager.tell("READY=1");
    let is_stopped = supervision.run();
    log::wipe_progress();
    reporter.manager.tell("STOPPING=1");
    controlled.finish_answers();
    let elapsed = instance.age();
    counting.into_iter().for_each(Counting::end);
    // It ends with the run, which may have ended by itself.
    controlled.handle.stop();
    scaled.into_iter().for_each(|thread| drop(thread.join()));
    drop((server, control));
    let (out, ended) = finish(run, instance, elapsed, (is_stopped, is_endless));
    instance.close();
    // Whoever reads may take his time now.
    interfaces.leave();
    processes.end();
    log::flush();
    print(&out);
    Ok(ended)
}

fn render(findings: &Findings, colour: bool) -> String {
    diagnostics::render(&findings.diagnostics, &findings.sources, colour)
}

/// The exit status of a run that nobody stopped, and that was to go on for ever.
const ENDED_BY_ITSELF: u8 = 3;

/// Ends a run that somebody stopped, or nobody, and that was to go on for ever, or not; what there is
/// to show of it on the standard output, and its exit status.
fn finish(
    run: &Run,
    instance: &Instance,
    elapsed: Duration,
    (is_stopped, is_endless): (bool, bool),
) -> (String, ExitCode) {
    let fleet = instance.fleet();
    let Ended { was_stopped, mut failed, cause } = instance.finish();
    let was_stopped = was_stopped || is_stopped;
    let mut out = String::new();
    for handler in &run.read {
        match AllCores(fleet).read(handler) {
            Ok(value) => {
                let _ = writeln!(out, "{handler}:\n{value}\n");
            }
            Err(why) => {
                run.log.error(&format!("-h {handler}: {why}"));
                failed = true;
            }
        }
    }
    if !run.quiet
        && let Some(stats) = instance.stats().1
    {
        let summary = Summary::of(&stats, elapsed);
        let _ = match run.json {
            true => {
                let mut summary = summary.to_json();
                summary["stopped"] = was_stopped.into();
                writeln!(out, "{summary}")
            }
            false => write!(out, "{}", summary.render()),
        };
    }
    if was_stopped || !is_endless {
        return (out, if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let why = match cause {
        Cause::Dead => "a worker is dead",
        Cause::Driver => "an element of the chain stopped the driver",
        Cause::Nothing => "no element of the chain has anything to do any more",
    };
    run.log.error(&format!("the run ended by itself: {why}"));
    (out, ExitCode::from(ENDED_BY_ITSELF))
}
