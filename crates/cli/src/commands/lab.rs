//! `catena lab`: a rack of network namespaces on this host.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use clap::Args;
use host::{Device, Failure as Unmade, Gone, Journal, Opened, Plan};

use crate::commands::compile::topology;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::signals::{Interrupt, interrupt_flag};
use crate::terminal::{print, print_error};

/// Make a rack of network namespaces on this host
///
/// A switch that takes flow entries is Open vSwitch with its userspace datapath, one that takes XDP programs a namespace
/// with interfaces. Each server is a namespace, and so is what stands at each wire. Links are pairs of veth.
///
/// The rack stays until Ctrl-C, or with --detach until --down. After a crash, the next `catena lab` or --down takes down what
/// was left. Nothing is touched that it did not make.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Lab {
    /// The rack
    topology: String,
    /// Leave the rack there
    #[arg(long)]
    detach: bool,
    /// Take the rack down
    #[arg(long, conflicts_with = "detach")]
    down: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Where journals of racks are.
const FOLDER: &str = "/run/catena/lab";

/// The folder of a rack: that of its file's name.
fn folder(path: &str) -> Result<PathBuf, String> {
    let name = Path::new(path).file_stem().and_then(|name| name.to_str());
    match name.filter(|name| !name.starts_with('.') && *name != "-") {
        Some(name) => Ok(Path::new(FOLDER).join(name)),
        None => Err(format!("{path}: a rack has the name of its file")),
    }
}

/// Runs the command.
pub(crate) fn main(args: &Lab) -> Result<ExitCode, Failure> {
    let folder = folder(&args.topology)?;
    if args.down {
        return down(&folder);
    }
    let path = &args.topology;
    let rack = topology(path, &args.limits)?;
    let plan = Plan::of(&rack).map_err(|wrong| {
        let lines: Vec<String> = wrong.iter().map(|why| format!("{path}: {why}")).collect();
        lines.join("\nerror: ")
    })?;
    let begin = Instant::now();
    let again = format!("`catena lab {path} --down` takes it down");
    match Journal::open(&folder).map_err(|why| held(&why, &again))? {
        Opened::Nothing => {}
        Opened::There(_) => return Err(format!("this rack is there already: {again}").into()),
        Opened::Left(journal) => {
            let gone = journal.take_down().map_err(words)?;
            print_error(&format!("a rack was left behind: {}\n", taken_down(gone)));
        }
    }
    // From here on, Ctrl-C takes down what was made.
    let interrupt = Interrupt::catch();
    let flag = interrupt_flag();
    let mut journal = Journal::begin(&folder).map_err(words)?;
    let made = plan.make(&mut journal, &|| !flag.load(Ordering::Relaxed));
    if let Err(why) = made {
        journal.take_down().map_err(words)?;
        // Commands in the foreground were interrupted, too.
        let why = if flag.load(Ordering::Relaxed) { Unmade::Interrupted } else { why };
        return Err(format!("{path}: {why}; what was made of the rack is taken down").into());
    }
    print(&format!("{}, in {:.1} s\n", shown(&plan), begin.elapsed().as_secs_f64()));
    if args.detach {
        journal.stay().map_err(words)?;
        print(&format!("{again}\n"));
        return Ok(ExitCode::SUCCESS);
    }
    print("Ctrl-C takes it down\n");
    interrupt.wait();
    let gone = journal.take_down().map_err(words)?;
    print(&format!("{}\n", taken_down(gone)));
    Ok(ExitCode::SUCCESS)
}

#[allow(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn words(why: Unmade) -> Failure {
    why.to_string().into()
}

fn held(why: &Unmade, again: &str) -> Failure {
    match why {
        Unmade::Held(_, Some(process)) => {
            format!("this rack is there already, made by process {process}: {again}").into()
        }
        why => why.to_string().into(),
    }
}

/// `--down`.
fn down(folder: &Path) -> Result<ExitCode, Failure> {
    let opened = match Journal::open(folder) {
        Err(held @ Unmade::Held(..)) => {
            // Its maker takes it down.
            Journal::stop(held).map_err(words)?;
            print("the rack is taken down by who made it\n");
            Journal::open(folder).map_err(words)?
        }
        other => other.map_err(words)?,
    };
    match opened {
        Opened::Nothing => print("nothing of this rack is there\n"),
        Opened::There(journal) | Opened::Left(journal) => {
            let gone = journal.take_down().map_err(words)?;
            print(&format!("{}\n", taken_down(gone)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn counted(count: usize, one: &str) -> String {
    match (count, one.strip_suffix('s')) {
        (1, _) => format!("1 {one}"),
        (_, Some(_)) => format!("{count} {one}es"),
        (_, None) => format!("{count} {one}s"),
    }
}

fn taken_down(gone: Gone) -> String {
    format!(
        "taken down: {}, {}",
        counted(gone.namespaces, "namespace"),
        counted(gone.processes, "process")
    )
}

/// What was made, and how one gets there.
fn shown(plan: &Plan) -> String {
    const SHOWN: usize = 40;
    let mut text = String::new();
    let width = plan.devices.keys().map(String::len).max().unwrap_or(0).min(20);
    let rank = |device: &Device| match device {
        Device::Switch(..) | Device::Xdp => 0,
        Device::Server => 1,
        Device::Host(_) => 2,
    };
    let mut devices: Vec<(&String, &Device)> = plan.devices.iter().collect();
    devices.sort_by_key(|(_, device)| rank(device));
    for (name, device) in devices.into_iter().take(SHOWN) {
        let (kind, more) = match device {
            Device::Switch(path, ports) => {
                let mut ports: Vec<&(String, u32)> = ports.iter().collect();
                ports.sort_by_key(|(_, number)| *number);
                let port = |(name, number): &&(String, u32)| format!("{name} {number}");
                let some: Vec<String> = ports.iter().take(8).map(port).collect();
                let dots = if ports.len() > some.len() { ", …" } else { "" };
                let ports = some.join(", ");
                ("Open vSwitch", format!("unix:{}, ports {ports}{dots}", path.display()))
            }
            Device::Xdp => ("XDP", String::new()),
            Device::Server => ("server", String::new()),
            Device::Host(host) => ("host", host.addresses.join(", ")),
        };
        let reached = format!("ip netns exec {name} …");
        let line = format!("{name:width$}  {kind:12}  {reached:0$}  {more}", width + 17);
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if plan.devices.len() > SHOWN {
        let _ = writeln!(text, "and {} more", plan.devices.len() - SHOWN);
    }
    let (devices, links) = (plan.devices.len(), plan.links());
    text + &format!("{}, {}", counted(devices, "namespace"), counted(links, "link"))
}
