//! `catena run`: runs a chain to the end of its input.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use dataplane::clock::RealClock;
use dataplane::control_socket::ControlServer;
use dataplane::io::{Binding, Bindings, Polling};
use dataplane::{Listener, Rest, Router};
use ir::{Sources, has_errors};

use crate::diagnostics;
use crate::drive;
use crate::load::{self, Disk};
use crate::session::{self, Path, Setup};
use crate::summary::Summary;
use crate::table::grouped;

/// Run a chain on captures or generated traffic, to the end of its input.
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Run {
    /// The configuration; `-` for the standard input
    file: String,
    /// Variables for the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// What FromDevice(NAME) receives from: an interface, to which ToDevice(NAME) then sends
    /// unless --out says otherwise; a capture file; or generated traffic, gen:KEY=VALUE,…
    #[arg(long = "in", value_name = "NAME=INTERFACE|FILE|gen:…")]
    inputs: Vec<String>,
    /// What ToDevice(NAME) sends to: an interface or a capture file
    #[arg(long = "out", value_name = "NAME=INTERFACE|FILE")]
    outputs: Vec<String>,
    /// How frames are carried from and to interfaces, or one of them: auto, af-packet-mmsg (many
    /// frames in a system call), af-packet (one)
    #[arg(long, value_name = "[INTERFACE=]MODE")]
    io: Vec<String>,
    /// What a chain without packets does: adaptive (polls for a while, then sleeps), busy
    #[arg(long, value_name = "HOW", default_value = "adaptive")]
    poll: String,
    /// Read a handler after the run and print it
    #[arg(short = 'h', value_name = "ELEMENT.HANDLER")]
    read: Vec<String>,
    /// Write a handler before the run
    #[arg(short = 'w', value_name = "ELEMENT.HANDLER=VALUE")]
    write: Vec<String>,
    /// Offer Click's ControlSocket protocol on a TCP port of this host
    #[arg(short = 'p', value_name = "PORT")]
    port: Vec<String>,
    /// Offer Click's ControlSocket protocol on a UNIX socket
    #[arg(short = 'u', value_name = "PATH")]
    unix: Vec<PathBuf>,
    /// Seed of random choices, to repeat a run
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Carry packets from element to element; do not synthesise the chain
    #[arg(long)]
    no_synthesis: bool,
    /// Carry packets through the interpreter of what the chain means, not through fast code
    #[arg(long)]
    interpret: bool,
    /// Print the summary as JSON
    #[arg(long)]
    json: bool,
    /// Print no progress and no summary
    #[arg(short, long)]
    quiet: bool,
    /// Print help
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Shows messages on the standard error.
pub(crate) struct Terminal;

impl Listener for Terminal {
    fn message(&mut self, text: &str) {
        let _ = writeln!(std::io::stderr(), "{text}");
    }

    fn output(&mut self, text: &str) {
        let mut out = std::io::stdout();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn error(&mut self, element: &str, text: &str) {
        let _ = writeln!(std::io::stderr(), "error: {element}: {text}");
    }
}

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
        bindings.inputs.insert(name.to_string(), Binding::source(value)?);
    }
    for text in &run.outputs {
        let (name, value) = pair("--out", text)?;
        bindings.outputs.insert(name.to_string(), Binding::sink(value));
    }
    for (name, binding) in &bindings.inputs {
        if matches!(binding, Binding::Interface(_)) && !bindings.outputs.contains_key(name) {
            bindings.outputs.insert(name.clone(), binding.clone());
        }
    }
    check_receivers(&bindings)?;
    for text in &run.io {
        let (interface, mode) = match text.split_once('=') {
            Some((interface, mode)) => (Some(interface), mode),
            None => (None, text.as_str()),
        };
        let mode = match mode {
            "auto" => None,
            mode => Some(mode.parse().map_err(|why| format!("--io {text}: {why}"))?),
        };
        if !bindings.set_mode(interface, mode) {
            return Err(match interface {
                Some(name) => format!("--io {text}: no name is bound to the interface '{name}'"),
                None => format!("--io {text}: no name is bound to an interface"),
            });
        }
    }
    Ok(bindings)
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
            "'{a}' and '{b}' would both receive from {interface}, and each frame comes once"
        )),
        _ => Ok(()),
    }
}

/// `--poll HOW`.
fn polling(text: &str) -> Result<Polling, String> {
    match text {
        "adaptive" => Ok(Polling::Adaptive),
        "busy" => Ok(Polling::Busy),
        _ => Err(format!("--poll {text}: there are adaptive and busy")),
    }
}

/// A flag that SIGINT and SIGTERM raise; a second one ends the process at once.
pub(crate) fn interrupt_flag() -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // Where signals cannot be caught, they end the process as they would have.
        let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&flag));
        let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
    }
    flag
}

/// Shows how far a run is, on a terminal.
struct Progress {
    shown: Option<Instant>,
    active: bool,
}

impl Progress {
    fn new(active: bool) -> Self {
        Self { shown: None, active: active && std::io::stderr().is_terminal() }
    }

    fn show(&mut self, router: &mut Router, start: Instant) {
        if !self.active || self.shown.unwrap_or(start).elapsed() < Duration::from_millis(250) {
            return;
        }
        self.shown = Some(Instant::now());
        let mut sum = |source| {
            let traffic = router.report().filter_map(|(.., t)| t).filter(|t| t.source == source);
            traffic.map(|t| t.packets).sum::<u64>()
        };
        let (taken, given) = (sum(true), sum(false));
        let rate = taken as f64 / start.elapsed().as_secs_f64() / 1e6;
        let line = format!("{} in, {} out, {rate:.2} Mpps", grouped(taken), grouped(given));
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}");
    }

    fn clear(&self) {
        if self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Runs the command.
pub(crate) fn main(run: &Run) -> Result<ExitCode, String> {
    let mut sources = Sources::new();
    let file = load::configuration(&mut sources, &run.file)?;
    let variables = run
        .variables
        .iter()
        .map(|v| pair("a variable", v).map(|(n, v)| (n.to_string(), v.to_string())))
        .collect::<Result<_, _>>()?;
    let mut found = Vec::new();
    let polling = polling(&run.poll)?;
    let mut bindings = bindings(run)?;
    let setup = Setup {
        variables,
        files: &mut Disk::default(),
        devices: &mut bindings,
        clock: Box::new(RealClock::new()),
        listener: Box::new(Terminal),
        seed: run.seed,
        path: match (run.no_synthesis, run.interpret) {
            (false, false) => Path::Synthesised,
            (false, true) => Path::SynthesisedInterpreted,
            (true, false) => Path::Native,
            (true, true) => Path::Interpreted,
        },
    };
    let started = session::start(&mut sources, file, setup, &mut found);
    let colour = std::io::stderr().is_terminal();
    let _ = write!(std::io::stderr(), "{}", diagnostics::render(&found, &sources, colour));
    let Some((_, mut router)) = started.filter(|_| !has_errors(&found)) else {
        return Ok(ExitCode::FAILURE);
    };
    for line in bindings.take_lines() {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    router.set_polling(polling);
    for text in &run.write {
        let (handler, value) = text.split_once('=').unwrap_or((text, ""));
        router.write_handler(handler, value).map_err(|e| format!("-w {text}: {e}"))?;
    }
    let mut sockets: Vec<_> =
        run.port.iter().map(|port| drive::tcp(port)).collect::<Result<_, _>>()?;
    sockets.extend(run.unix.iter().map(|path| drive::unix(path)));
    let mut server = ControlServer::open(&router, sockets)?;
    let interrupted = interrupt_flag();
    let mut progress = Progress::new(!run.quiet);
    let start = Instant::now();
    let mut rounds = 0u32;
    drive::drive(&mut router, &mut server, |router, rest| {
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(1024) || rest != Rest::Busy {
            progress.show(router, start);
        }
        interrupted.load(Ordering::Relaxed)
    });
    let elapsed = start.elapsed();
    router.finish();
    progress.clear();
    let mut failed = router.errors() > 0;
    let mut out = std::io::stdout().lock();
    for handler in &run.read {
        match router.read_handler(handler) {
            Ok(value) => {
                let _ = writeln!(out, "{handler}:\n{value}\n");
            }
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "error: -h {handler}: {why}");
                failed = true;
            }
        }
    }
    if !run.quiet {
        let summary = Summary::of(&mut router, elapsed);
        let _ = match run.json {
            true => writeln!(out, "{}", summary.to_json()),
            false => write!(out, "{}", summary.render()),
        };
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
