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
use dataplane::io::{Binding, Bindings};
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
    /// What FromDevice(NAME) reads: a capture file or gen:KEY=VALUE,… (see below)
    #[arg(long = "in", value_name = "NAME=FILE|gen:…")]
    inputs: Vec<String>,
    /// Where ToDevice(NAME) writes: a capture file
    #[arg(long = "out", value_name = "NAME=FILE")]
    outputs: Vec<String>,
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
        bindings.outputs.insert(name.to_string(), Binding::Capture(value.into()));
    }
    Ok(bindings)
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
    let setup = Setup {
        variables,
        files: &mut Disk::default(),
        devices: &mut bindings(run)?,
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
