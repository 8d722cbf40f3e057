//! `catena netbench`: virtual switches between applications in network namespaces.

mod application;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use bench::netbench::application::Role;
use bench::netbench::clean;
use clap::{Args, Subcommand};
use host::fabric;
use serde_json::json;
use view::table::Table;

use crate::failure::Failure;
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
}

/// List switches: which can run here, and what the others need
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
    /// Print the results as one JSON document
    #[arg(long, conflicts_with = "compare")]
    json: bool,
}

/// Shows a report.
fn reported(args: &Report) -> Result<ExitCode, Failure> {
    let results = run::read(&args.folder)?;
    let other = args.compare.as_deref().map(run::read).transpose()?;
    run::write(&results, &args.folder)?;
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

impl Netbench {
    /// Whether it was asked for JSON.
    pub(crate) fn prints_json(&self) -> bool {
        match &self.what {
            What::Run(run) => run.json,
            What::List(list) => list.json,
            What::Report(report) => report.json,
            What::Clean => false,
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
            })
        });
        return format!("{}\n", json!({ "switches": document.collect::<Vec<_>>() }));
    }
    let mut table = Table::new(["switch", "here", "version, or what it needs", "what it is"]);
    for (look, fabric) in &all {
        let (here, version) = match look {
            Ok(version) => ("yes", version.clone()),
            Err(needs) => ("no", needs.clone()),
        };
        table.row([fabric.name(), here.into(), version, fabric.summary().into()]);
    }
    let more = "catena:FILE is a chain of yours between the devices p0, p1 and so on, of two applications a pair\n";
    table.render() + "\n" + more
}
