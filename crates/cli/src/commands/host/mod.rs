//! `catena host`: chains of network functions in processes of their own.

mod elements;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command as Program, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, Subcommand};
use host::manifest::{Beside, is_name};
use host::service::{Client, Log, Request, SOCKET, Status, log_path};
use host::{Failure as Unmade, HostChain, Journal, Opened, Service, doctor, is_of_run};
use ir::Sources;
use view::table::{Table, grouped};

use crate::failure::Failure;
use crate::limits::TextLimit;
use crate::signals::Interrupt;
use crate::terminal::{print, print_error};

/// Run a chain of network functions in processes of their own
#[derive(Args, Debug)]
pub(crate) struct Host {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Up(Up),
    Ps(Ps),
    Stats(Stats),
    Logs(Logs),
    Restart(Named),
    Down(Named),
    Doctor(Doctor),
    /// Run elements as a network function; the host service starts this
    #[command(hide = true)]
    Elements,
}

/// Start a chain
///
/// The manifest (`kind: HostChain`) lists network functions: Catena's elements, and programs made with the NF runtime.
/// Each runs in a process of its own. Packets stay in memory that they share, and go from one to the next by turn.
///
/// It runs until Ctrl-C, the end of a capture, or `catena host down`. After a crash, the next `up` or `down` takes down
/// what was left.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
struct Up {
    /// The manifest
    manifest: String,
    /// Run it in the background
    #[arg(long)]
    detach: bool,
    /// Write what happens to a file, too: chains that are replaced, and why it ended
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    #[command(flatten)]
    limit: TextLimit,
}

/// List chains that run
#[derive(Args, Debug)]
struct Ps {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Show what a chain counts
#[derive(Args, Debug)]
struct Stats {
    /// The chain: its manifest, or its name
    chain: String,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Show what network functions printed, and what happened to their chain
#[derive(Args, Debug)]
struct Logs {
    /// The chain: its manifest, or its name
    chain: String,
    /// The network function; all of them if none is named
    nf: Option<String>,
}

#[derive(Args, Debug)]
struct Named {
    /// The chain: its manifest, or its name
    chain: String,
}

/// Show what this host allows, and what to do about the rest
#[derive(Args, Debug)]
struct Doctor {
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// The folder of chains that run: root's, or the user's own.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(own) if !rustix::process::geteuid().is_root() => {
            PathBuf::from(own).join("catena/host")
        }
        _ => PathBuf::from("/run/catena/host"),
    }
}

/// The name of a chain: that of its file.
fn name(chain: &str) -> Result<String, Failure> {
    let name = Path::new(chain).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    match is_name(name) {
        true => Ok(name.to_string()),
        false => Err(format!(
            "{chain}: a chain has the name of its file: letters, digits and `_-`, at most 32"
        )
        .into()),
    }
}

impl Host {
    /// Whether it prints JSON.
    pub(crate) fn prints_json(&self) -> bool {
        match &self.what {
            What::Ps(Ps { json })
            | What::Stats(Stats { json, .. })
            | What::Doctor(Doctor { json }) => *json,
            _ => false,
        }
    }
}

/// Runs the command.
pub(crate) fn main(args: &Host) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Up(up) => start(up),
        What::Ps(ps) => list(ps),
        What::Stats(stats) => {
            let status = ask(&stats.chain, Request::Status)?;
            match stats.json {
                true => print(&format!("{}\n", serde_json::json!(status))),
                false => print(&shown(&status)),
            }
            Ok(ExitCode::SUCCESS)
        }
        What::Logs(logs) => show_logs(logs),
        What::Restart(named) => {
            ask(&named.chain, Request::Restart)?;
            Ok(ExitCode::SUCCESS)
        }
        What::Down(named) => down(&name(&named.chain)?),
        What::Doctor(doctor) => {
            examine(doctor);
            Ok(ExitCode::SUCCESS)
        }
        What::Elements => Ok(elements::main()),
    }
}

fn words(why: Unmade) -> Failure {
    Failure::Message(why.to_string())
}

fn ask(chain: &str, request: Request) -> Result<Status, Failure> {
    let name = name(chain)?;
    let at = folder().join(&name);
    if !at.exists() {
        return Err(none_runs(&name));
    }
    Client::ask(&at.join(SOCKET), request).map_err(words)
}

fn none_runs(name: &str) -> Failure {
    format!("no chain '{name}' runs: `catena host ps` lists those that do").into()
}

/// The log of a chain that runs in the background. It is there when the chain has ended, too.
fn background_log(name: &str) -> PathBuf {
    log_path(&folder(), name)
}

/// The program that runs elements as an NF.
pub(crate) fn runs_elements() -> Result<(PathBuf, Vec<String>), Failure> {
    let own = std::env::current_exe().map_err(|why| format!("this program is not found: {why}"))?;
    Ok((own, vec!["host".into(), "elements".into()]))
}

fn start(up: &Up) -> Result<ExitCode, Failure> {
    let path = &up.manifest;
    let name = name(path)?;
    let mut sources = Sources::new();
    let file = engine::Disk::up_to(up.limit.bytes()).configuration(&mut sources, path)?;
    let text = Arc::clone(sources.text(file));
    let beside = Path::new(path).parent().unwrap_or(Path::new("")).to_path_buf();
    let mut files = Beside {
        folder: beside,
        most: up.limit.bytes(),
        variables: |name| std::env::var(name).ok(),
    };
    let spec = HostChain::parse(file, &text, &mut files).map_err(|found| {
        // A line that is shown has no password.
        let mut shown = Sources::new();
        shown.add(path.as_str(), host::state::without_passwords(&text));
        Failure::of(found, shown)
    })?;
    let at = folder().join(&name);
    match Journal::open(&at) {
        Ok(Opened::Nothing) => {}
        Ok(Opened::There(journal) | Opened::Left(journal)) => {
            journal.end_forgotten();
            let gone = journal.take_down().map_err(words)?;
            print_error(&format!(
                "a chain was left behind: {} processes of it ended\n",
                gone.processes
            ));
        }
        Err(Unmade::Held(_, Some(process))) => {
            return Err(format!("the chain '{name}' runs already, in process {process}: `catena host down {name}` ends it").into());
        }
        Err(why) => return Err(words(why)),
    }
    if up.detach {
        return detach(up, &name, &at);
    }
    // From here on, Ctrl-C takes down what was made.
    let interrupt = Interrupt::catch();
    let journal = Journal::begin(&at).map_err(words)?;
    let mut log = up.log.as_deref().map(Log::open).transpose().map_err(words)?;
    let mut write = |line: &str| {
        if let Some(log) = &mut log {
            let _ = log.write(format!("{:.3} {line}\n", crate::log::now()).as_bytes());
        }
    };
    let ran = serve(spec, journal, Some(at.join(SOCKET)), interrupt, &mut |line| {
        print_error(&format!("{line}\n"));
        write(line);
    });
    match &ran {
        Ok(_) => write("it has ended"),
        Err(Failure::Message(why)) => write(&format!("it has ended: {why}")),
        Err(_) => write("it has ended by an error"),
    }
    print(&shown(&ran?));
    Ok(ExitCode::SUCCESS)
}

/// Runs a chain until its input ends or a signal comes.
pub(crate) fn serve(
    spec: HostChain,
    journal: Journal,
    control: Option<PathBuf>,
    interrupt: Interrupt,
    say: &mut dyn FnMut(&str),
) -> Result<Status, Failure> {
    let service = Service::new(spec, &runs_elements()?, journal).map_err(words)?;
    let (handle, is_over) = (service.handle(), Arc::new(AtomicBool::new(false)));
    let waits = Arc::clone(&is_over);
    let wait = move || {
        interrupt.wait();
        if !waits.load(Ordering::Relaxed) {
            handle.stop();
        }
    };
    std::thread::spawn(wait);
    let ran = service.run(control, say);
    is_over.store(true, Ordering::Relaxed);
    ran.map_err(words)
}

/// Starts it in the background, and waits until it answers.
fn detach(up: &Up, name: &str, at: &Path) -> Result<ExitCode, Failure> {
    use std::os::unix::process::CommandExt;
    let own = std::env::current_exe().map_err(|why| why.to_string())?;
    let mut command = Program::new(own);
    let log = up.log.clone().unwrap_or_else(|| background_log(name));
    if up.log.is_none() {
        // That of another run says nothing of this one.
        let _ = std::fs::remove_file(&log);
    }
    command.args(["host", "up", &up.manifest, "--log"]).arg(log).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|why| why.to_string())?;
    let mut errors = child.stderr.take();
    loop {
        if let Some(status) = child.try_wait().map_err(|why| why.to_string())? {
            let mut said = String::new();
            if let Some(errors) = &mut errors {
                let _ = std::io::Read::read_to_string(errors, &mut said);
            }
            print_error(&said);
            return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        if let Ok(status) = Client::ask(&at.join(SOCKET), Request::Status) {
            print(&format!(
                "{}`catena host down {name}` ends it\n",
                status.remarks.iter().fold(String::new(), |all, line| all + line + "\n")
            ));
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::park_timeout(Duration::from_millis(10));
    }
}

fn down(name: &str) -> Result<ExitCode, Failure> {
    let at = folder().join(name);
    let opened = match Journal::open(&at) {
        Err(Unmade::Held(_, of)) if is_of_run(name) => {
            let process = of.map_or_else(String::new, |process| format!(", process {process}"));
            return Err(format!(
                "'{name}' is a program of a chain that `catena run` runs{process}: it ends with that, or when a chain is swapped in that \
                 does not have it; `catena host restart` starts it anew"
            )
            .into());
        }
        Err(held @ Unmade::Held(..)) => {
            // Its maker takes it down.
            Journal::stop(held).map_err(words)?;
            print(&format!("the chain '{name}' has ended\n"));
            Journal::open(&at).map_err(words)?
        }
        Ok(Opened::Nothing) => return Err(none_runs(name)),
        other => other.map_err(words)?,
    };
    if let Opened::There(journal) | Opened::Left(journal) = opened {
        journal.end_forgotten();
        let gone = journal.take_down().map_err(words)?;
        print(&format!(
            "what a crash left of '{name}' is taken down: {} processes\n",
            gone.processes
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn list(ps: &Ps) -> Result<ExitCode, Failure> {
    let all = std::fs::read_dir(folder()).into_iter().flatten();
    let all = all.flatten().filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        all.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    let asked = names
        .iter()
        .map(|name| (name, Client::ask(&folder().join(name).join(SOCKET), Request::Status)));
    let asked: Vec<_> = asked.collect();
    if ps.json {
        let all = asked.iter().map(|(name, status)| match status {
            Ok(status) => serde_json::json!({ "chain": name, "status": status }),
            Err(why) => serde_json::json!({ "chain": name, "error": why.to_string() }),
        });
        print(&format!("{}\n", serde_json::Value::Array(all.collect())));
        return Ok(ExitCode::SUCCESS);
    }
    let mut table = Table::new(["chain", "NF", "process", "packets", "ns/packet", "dropped"]);
    for (name, status) in asked {
        match status {
            Err(_) => table.row([
                name.clone(),
                "does not answer: a crash left it".into(),
                String::new(),
                String::new(),
                String::new(),
                String::new(),
            ]),
            Ok(status) => status.nfs.iter().for_each(|nf| {
                let dropped: u64 = nf.dropped.values().sum();
                table.row([
                    name.clone(),
                    nf.name.clone(),
                    nf.process.to_string(),
                    grouped(nf.received),
                    nanoseconds(nf.ns_per_packet),
                    grouped(dropped),
                ]);
            }),
        }
    }
    match table.is_empty() {
        true => print("no chain runs\n"),
        false => print(&table.render()),
    }
    Ok(ExitCode::SUCCESS)
}

fn nanoseconds(of: Option<f64>) -> String {
    of.map_or_else(|| "-".to_string(), |of| format!("{of:.0}"))
}

/// What a chain counts, as people read it.
pub(crate) fn shown(status: &Status) -> String {
    let mut text = String::new();
    if status.fabric != "shared" {
        return shown_of_links(status);
    }
    let _ = writeln!(
        text,
        "{} packets came, {} were sent, in {} batches of up to {}; {} ns a batch",
        grouped(status.received),
        grouped(status.sent),
        grouped(status.batches),
        status.batch,
        nanoseconds(status.ns_per_batch)
    );
    let mut table =
        Table::new(["NF", "packets", "passed", "ns/packet", "out of turn", "dropped", "counters"]);
    for nf in &status.nfs {
        let list = |of: &std::collections::BTreeMap<String, u64>| {
            let all: Vec<String> =
                of.iter().map(|(name, count)| format!("{name} {}", grouped(*count))).collect();
            all.join(", ")
        };
        table.row([
            nf.name.clone(),
            grouped(nf.received),
            grouped(nf.passed),
            nanoseconds(nf.ns_per_packet),
            grouped(nf.out_of_turn),
            list(&nf.dropped),
            list(&nf.counters),
        ]);
    }
    text += &table.render();
    for (count, what) in [
        (status.too_long, "packets were longer than a buffer, and dropped"),
        (status.lost_in_nf, "packets were lost in the hands of an NF that ended"),
        (status.lost_by_devices, "packets were lost by devices"),
        (status.failures, "chains failed and were replaced"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "{} {what}", grouped(count));
        }
    }
    shown_state(status, &mut text);
    status.remarks.iter().for_each(|line| {
        let _ = writeln!(text, "{line}");
    });
    text
}

/// How the state of NFs is kept.
fn shown_state(status: &Status, text: &mut String) {
    let keeps = status.nfs.iter().filter_map(|nf| Some((nf, nf.state.as_ref()?)));
    let mut table = Table::new([
        "NF",
        "flows read",
        "ahead",
        "unread",
        "updates",
        "stored",
        "waiting",
        "lost",
        "round trips",
    ]);
    let mut count = 0;
    for (nf, state) in keeps.clone() {
        count += 1;
        table.row([
            nf.name.clone(),
            grouped(state.flows),
            grouped(state.ahead),
            grouped(state.unread),
            grouped(state.updates),
            grouped(state.acknowledged),
            grouped(state.waiting),
            grouped(state.lost),
            grouped(state.round_trips),
        ]);
    }
    if count > 0 {
        *text += &table.render();
    }
    for (nf, trouble) in keeps.filter_map(|(nf, state)| Some((nf, state.trouble.as_ref()?))) {
        let _ = writeln!(text, "the state of {}: {trouble}", nf.name);
    }
    let Some(held) = &status.held else { return };
    for (count, what) in [
        (held.waiting, "packets wait until state is stored"),
        (held.waited, "packets have waited for that"),
        (held.dropped, "packets were dropped, as it was not stored in time or too many waited"),
        (held.passed, "packets passed though it was not stored"),
    ] {
        if count > 0 {
            let _ = writeln!(text, "{} {what}", grouped(count));
        }
    }
}

/// The same of a chain whose NFs have interfaces.
fn shown_of_links(status: &Status) -> String {
    let mut text = format!(
        "{} frames came at the beginning, {} were sent at the end\n",
        grouped(status.received),
        grouped(status.sent)
    );
    let mut table = Table::new(["NF", "process", "frames in", "frames out"]);
    for nf in &status.nfs {
        let (received, passed) = (grouped(nf.received), grouped(nf.passed));
        table.row([nf.name.clone(), nf.process.to_string(), received, passed]);
    }
    text += &table.render();
    if status.failures > 0 {
        let _ = writeln!(text, "{} NFs ended and were started again", grouped(status.failures));
    }
    status.remarks.iter().for_each(|line| {
        let _ = writeln!(text, "{line}");
    });
    text
}

fn show_logs(logs: &Logs) -> Result<ExitCode, Failure> {
    let name = name(&logs.chain)?;
    let at = folder().join(&name);
    let nfs = match &logs.nf {
        Some(nf) if is_name(nf) => vec![nf.clone()],
        Some(nf) => return Err(format!("'{nf}' is no NF").into()),
        None => {
            let happened = std::fs::read(background_log(&name));
            if let Ok(bytes) = &happened {
                print(&crate::terminal::for_output(&String::from_utf8_lossy(bytes)));
            }
            if happened.is_ok() && !at.exists() {
                return Ok(ExitCode::SUCCESS);
            }
            ask(&logs.chain, Request::Status)?.nfs.into_iter().map(|nf| nf.name).collect()
        }
    };
    for nf in &nfs {
        let path = log_path(&at, nf);
        let bytes = std::fs::read(&path).map_err(|why| format!("{}: {why}", path.display()))?;
        if nfs.len() > 1 {
            print(&format!("{nf}:\n"));
        }
        print(&crate::terminal::for_output(&String::from_utf8_lossy(&bytes)));
    }
    Ok(ExitCode::SUCCESS)
}

fn examine(args: &Doctor) {
    let found = doctor::look();
    if args.json {
        let all = found.iter().map(|of| {
            serde_json::json!({ "what": of.what, "good": of.is_good, "found": of.found, "mend": of.mend })
        });
        print(&format!("{}\n", serde_json::Value::Array(all.collect())));
        return;
    }
    let width = found.iter().map(|of| of.what.len()).max().unwrap_or(0);
    for of in found {
        let sign = if of.is_good { "ok  " } else { "look" };
        print(&format!("{sign}  {:width$}  {}\n", of.what, of.found));
        if let Some(mend) = of.mend {
            print(&format!("      {:width$}  mend: {mend}\n", ""));
        }
    }
}
