//! `catena netbench`: virtual switches between applications in network namespaces.

mod agent;
mod application;
mod run;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bench::netbench::advice::Pattern;
use bench::netbench::application::Role;
use bench::netbench::{CARRIERS, Results, clean};
use clap::{Args, Subcommand};
use dataplane::io::HAS_DPDK;
use host::fabric::NEEDS_DPDK;
use host::{container, fabric};
use ir::quantity::{self, Unit};
use serde_json::json;
use view::table::Table;

use crate::failure::Failure;
use crate::outputs;
use crate::terminal::print;

/// Measure what virtual switches give applications in network namespaces
#[derive(Args, Debug)]
pub(crate) struct Netbench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Run(Box<run::Run>),
    List(List),
    Report(Report),
    /// Take down what a run left behind that was killed
    Clean,
    /// Send packets to 'catena netbench recv', and report what was sent
    Send(Box<application::Application>),
    /// Count packets of 'catena netbench send'
    Recv(Box<application::Application>),
    /// Send packets to 'catena netbench server', and report how long they took there and back
    Client(Box<application::Application>),
    /// Send packets of 'catena netbench client' back
    Server(Box<application::Application>),
    Agent(agent::Agent),
}

/// List switches, I/O modes and containers: which can run here, and what the others need
#[derive(Args, Debug)]
struct List {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Show results that 'catena netbench run --report' wrote, and write their page and CSV anew
#[derive(Args, Debug)]
struct Report {
    /// The folder
    folder: PathBuf,
    /// Compare them with those in another folder
    #[arg(long, value_name = "DIR")]
    compare: Option<PathBuf>,
    /// Recommend a switch for so many pairs of applications, frames of this size, and round trips of at most this time
    #[arg(long = "for", value_name = "PAIRS,BYTES[,TIME]", value_parser = pattern, conflicts_with = "compare")]
    pattern: Option<Pattern>,
    /// Write the page as Markdown, too, with its figures beside it
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write what hops between processes cost as a cost profile
    #[arg(long, value_name = "FILE")]
    profile_out: Option<PathBuf>,
    /// Print the results as one JSON document
    #[arg(long, conflicts_with = "compare")]
    json: bool,
}

/// A pattern of traffic, such as `2,64,50us`.
fn pattern(text: &str) -> Result<Pattern, String> {
    let wrong = || {
        "takes pairs of applications, bytes of a frame and perhaps a time, such as 2,64,50us"
            .to_string()
    };
    let words: Vec<&str> = text.split(',').collect();
    let (pairs, size) = match words[..] {
        [pairs, size] | [pairs, size, _] => (pairs.parse(), size.parse()),
        _ => return Err(wrong()),
    };
    let p99 = match words.get(2) {
        Some(time) => {
            let seconds = quantity::parse(time, Unit::Time)?;
            Some(Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?)
        }
        None => None,
    };
    let (pairs, size) = pairs.ok().zip(size.ok()).ok_or_else(wrong)?;
    Ok(Pattern { pairs, size, p99 })
}

/// Shows a report.
fn reported(args: &Report) -> Result<ExitCode, Failure> {
    let results = run::read(&args.folder)?;
    let other = args.compare.as_deref().map(run::read).transpose()?;
    run::write(&results, &args.folder)?;
    if let Some(file) = &args.markdown {
        write_markdown(&results, file)?;
    }
    if let Some(file) = &args.profile_out {
        write_profile(&results, file)?;
    }
    if let Some(pattern) = &args.pattern {
        print(&(results.recommended(pattern) + "\n"));
        return Ok(ExitCode::SUCCESS);
    }
    if args.json {
        print(&(serde_json::to_string(&results).map_err(|why| why.to_string())? + "\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let Some(other) = other else {
        print(&results.render());
        return Ok(ExitCode::SUCCESS);
    };
    match results.compared(&other) {
        Some(table) => print(&table.render()),
        None => return Err("the two have no cell in common".to_string().into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the page as Markdown, and its figures beside it.
fn write_markdown(results: &Results, file: &Path) -> Result<(), Failure> {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let (text, figures) = results.markdown(&name, &[results.machine.command.join(" ")]);
    for (name, svg) in figures {
        outputs::write(&file.with_file_name(name), svg)?;
    }
    Ok(outputs::write(file, text)?)
}

/// Writes the costs of hops.
pub(super) fn write_profile(results: &Results, file: &Path) -> Result<(), Failure> {
    let costs = serde_json::to_string_pretty(&results.costs()?).map_err(|why| why.to_string())?;
    Ok(outputs::write(file, costs + "\n")?)
}

impl Netbench {
    /// Whether it was asked for JSON.
    pub(crate) fn prints_json(&self) -> bool {
        match &self.what {
            What::Run(run) => run.json,
            What::List(list) => list.json,
            What::Report(report) => report.json,
            What::Clean => false,
            What::Agent(_) => true,
            What::Send(of) | What::Recv(of) | What::Client(of) | What::Server(of) => of.json,
        }
    }
}

pub(crate) fn main(args: &Netbench) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Run(run) => run::main(run),
        What::List(list) => {
            print(&listed(list.json));
            Ok(ExitCode::SUCCESS)
        }
        What::Report(report) => reported(report),
        What::Clean => {
            let (cleaned, running) = clean().map_err(|why| why.to_string())?;
            let mut text = format!("taken down: what {cleaned} runs left behind\n");
            for process in running {
                text += &format!("process {process} runs netbench still\n");
            }
            print(&text);
            Ok(ExitCode::SUCCESS)
        }
        What::Send(application) => application::main(application, Role::Send),
        What::Recv(application) => application::main(application, Role::Recv),
        What::Client(application) => application::main(application, Role::Client),
        What::Server(application) => application::main(application, Role::Server),
        What::Agent(agent) => agent::main(agent),
    }
}

/// The switches.
fn listed(as_json: bool) -> String {
    let all: Vec<_> = fabric::all().into_iter().map(|fabric| (fabric.look(), fabric)).collect();
    if as_json {
        let document = all.iter().map(|(look, fabric)| {
            json!({
                "switch": fabric.name(),
                "summary": fabric.summary(),
                "is_here": look.is_ok(),
                "version": look.as_ref().ok(),
                "needs": look.as_ref().err(),
                "is_tested": fabric.is_tested(),
            })
        });
        let containers = container::all().into_iter().map(|runtime| {
            let look = runtime.look();
            json!({
                "container": runtime.name(),
                "summary": runtime.summary(),
                "is_here": look.is_ok(),
                "version": look.as_ref().ok(),
                "needs": look.as_ref().err(),
            })
        });
        let (switches, containers) = (document.collect::<Vec<_>>(), containers.collect::<Vec<_>>());
        let modes = CARRIERS.into_iter().map(|(name, summary, is_dpdk)| {
            let is_here = HAS_DPDK || !is_dpdk;
            let needs = (!is_here).then_some(NEEDS_DPDK);
            json!({ "io": name, "summary": summary, "is_here": is_here, "needs": needs })
        });
        let modes = modes.collect::<Vec<_>>();
        let document = json!({ "switches": switches, "io": modes, "containers": containers });
        return format!("{document}\n");
    }
    let mut table =
        Table::new(["switch", "here", "tested", "version, or what it needs", "what it is"]);
    for (look, fabric) in &all {
        let (here, version) = match look {
            Ok(version) => ("yes", version.clone()),
            Err(needs) => ("no", needs.clone()),
        };
        let tested = if fabric.is_tested() { "yes" } else { "no" };
        table.row([fabric.name(), here.into(), tested.into(), version, fabric.summary().into()]);
    }
    let more = "catena:FILE is a chain of yours between the devices p0, p1 and so on, of two applications a pair\n\
                sriov:INTERFACE are virtual functions of that card\n\
                switches that are not tested are made by the manuals of what they run; 'catena netbench run --dry-run' prints their commands\n";
    let titles = ["container", "here", "version, or what it needs", "what it is"];
    let mut containers = Table::new(titles);
    for runtime in container::all() {
        let (here, version) = match runtime.look() {
            Ok(version) => ("yes", version),
            Err(needs) => ("no", needs),
        };
        let (name, summary) = (runtime.name().into(), runtime.summary().into());
        containers.row([name, here.into(), version, summary]);
    }
    let mut modes = Table::new(["--io", "here", "what it needs", "what it is"]);
    for (name, summary, is_dpdk) in CARRIERS {
        let (here, needs) = match HAS_DPDK || !is_dpdk {
            true => ("yes", ""),
            false => ("no", NEEDS_DPDK),
        };
        modes.row([name, here, needs, summary].map(String::from));
    }
    table.render() + "\n" + more + "\n" + &modes.render() + "\n" + &containers.render()
}
