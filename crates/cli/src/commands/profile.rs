//! `catena profile`: where the time goes.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use bench::profile::machine;
use bench::{Failed, Machine};
use clap::{ArgGroup, Args};
use dataplane::clock::RealClock;

use crate::commands::bench::print_document;
use crate::failure::Failure;
use crate::log;
use crate::signals::interrupt_flag;

/// Profile a machine: the costs of memory, address translation, system calls and context switches
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, group = ArgGroup::new("what").required(true))]
pub(crate) struct Profile {
    /// Measure what this machine takes: loads by level of memory and stride, address translation, system
    /// calls, and context switches by scheduling policy
    #[arg(long, group = "what")]
    machine: bool,
    /// CPU to measure on; default: the last that may be used
    #[arg(long, value_name = "CPU")]
    cpu: Option<usize>,
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn main(args: &Profile) -> Result<ExitCode, Failure> {
    let machine = bind(args)?;
    let interrupted = interrupt_flag();
    let is_stopped = || interrupted.load(Ordering::Relaxed);
    let measured = machine::measure(&machine, &RealClock::new(), true, &mut progress(), &is_stopped);
    log::wipe_progress();
    let costs = measured.map_err(failure)?;
    print_document(args.json, &costs, || costs.render());
    Ok(ExitCode::SUCCESS)
}

fn bind(args: &Profile) -> Result<Machine, Failure> {
    let bound = Machine::bind(args.cpu);
    Ok(bound.map_err(|why| if args.cpu.is_some() { format!("--cpu: {why}") } else { why })?)
}

fn progress() -> impl FnMut(&str) {
    let shows_progress = std::io::stderr().is_terminal();
    move |what: &str| {
        if shows_progress {
            log::progress(&format!("profile: {what} …"));
        }
    }
}

fn failure(why: Failed) -> Failure {
    match why {
        Failed::Chain(findings) => Failure::Findings(findings),
        Failed::Message(why) => why.into(),
        Failed::Interrupted => "interrupted: nothing is reported".to_string().into(),
    }
}
