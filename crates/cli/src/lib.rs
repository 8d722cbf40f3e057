//! The `catena` command.
#![forbid(unsafe_code)]

mod commands;
mod constants;
mod cores;
mod drive;
mod failure;
mod limits;
mod loaded;
mod log;
mod manual;
mod mends;
mod notify;
mod numbers;
mod outputs;
mod presenter;
mod signals;
mod socket;
mod terminal;
mod theme;
mod variables;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Failure;

/// Catena runs chains of network functions, written in the Click language.
#[derive(Debug, Parser)]
#[command(name = "catena", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Bench(Box<commands::bench::Bench>),
    Run(Box<commands::run::Run>),
    Check(commands::check::Check),
    /// Run Click's own command line; also used when the program's name is 'click'
    Click,
    Compile(commands::compile::Compile),
    Ctl(commands::ctl::Ctl),
    Deploy(commands::deploy::Deploy),
    Elements(commands::elements::Elements),
    Explain(commands::explain::Explain),
    Flatten(commands::flatten::Flatten),
    Fmt(commands::fmt::Fmt),
    Gen(commands::r#gen::Gen),
    Graph(commands::graph::Graph),
    Host(commands::host::Host),
    Lab(commands::lab::Lab),
    Netbench(Box<commands::netbench::Netbench>),
    Nf(commands::nf::Nf),
    Nfs(commands::nfs::Nfs),
    Offload(commands::offload::Offload),
    Place(commands::place::Place),
    Profile(commands::profile::Profile),
    Recv(commands::recv::Recv),
    /// Print the reference of commands as Markdown
    #[command(hide = true)]
    Reference,
    Scale(commands::scale::Scale),
    Sim(commands::sim::Sim),
    Swx(commands::swx::Swx),
    Synth(commands::synth::Synth),
    Top(commands::top::Top),
    Verify(commands::verify::Verify),
}

impl Command {
    /// Whether it was asked for JSON.
    fn prints_json(&self) -> bool {
        match self {
            Self::Bench(bench) => bench.json,
            Self::Run(run) => run.json,
            Self::Offload(offload) => offload.json,
            Self::Profile(profile) => profile.json,
            Self::Check(check) => check.json,
            Self::Compile(compile) => compile.json,
            Self::Ctl(ctl) => ctl.json,
            Self::Deploy(deploy) => deploy.json,
            Self::Elements(elements) => elements.json,
            Self::Explain(explain) => explain.json,
            Self::Gen(generator) => generator.json,
            Self::Place(place) => place.json,
            Self::Recv(recv) => recv.json,
            Self::Scale(scale) => scale.prints_json(),
            Self::Sim(sim) => sim.prints_json(),
            Self::Host(host) => host.prints_json(),
            Self::Netbench(netbench) => netbench.prints_json(),
            Self::Nfs(nfs) => nfs.json,
            Self::Synth(synth) => synth.json,
            Self::Top(top) => top.json,
            Self::Verify(verify) => verify.json,
            Self::Click
            | Self::Flatten(_)
            | Self::Fmt(_)
            | Self::Graph(_)
            | Self::Lab(_)
            | Self::Nf(_)
            | Self::Reference
            | Self::Swx(_) => false,
        }
    }
}

/// Checks a command line, the program's name first, without running it.
///
/// # Errors
/// What is wrong with it.
pub fn check_arguments(arguments: &[&str]) -> Result<(), String> {
    match Cli::try_parse_from(arguments) {
        Err(error) if error.use_stderr() => Err(error.render().to_string()),
        _ => Ok(()),
    }
}

/// Runs a command line, the program's name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let (name, second) = (arguments.first(), arguments.get(1));
    let named = name.is_some_and(|name| commands::click::is_meant(name));
    if named || second.is_some_and(|word| word == "click") {
        let behind = arguments.iter().skip(if named { 1 } else { 2 });
        let words: Vec<String> = behind.map(|a| a.to_string_lossy().into_owned()).collect();
        return commands::click::main(&words);
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render().to_string();
            let as_json = || arguments.iter().take_while(|a| *a != "--").any(|a| a == "--json");
            if !error.use_stderr() {
                terminal::print(&text);
            } else if as_json() {
                let why = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
                Failure::from(why.to_string()).print(true);
            } else {
                terminal::print_error(&text);
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let result = match &cli.command {
        Command::Bench(bench) => commands::bench::main(bench),
        Command::Run(run) => Ok(commands::run::main(run)),
        // Its command line is not clap's: it was dealt with above.
        Command::Click => Ok(ExitCode::SUCCESS),
        Command::Reference => Ok(commands::reference::main(Cli::command())),
        Command::Compile(compile) => commands::compile::main(compile),
        Command::Place(place) => commands::place::main(place),
        Command::Offload(offload) => commands::offload::main(offload),
        Command::Ctl(ctl) => commands::ctl::main(ctl),
        Command::Deploy(deploy) => commands::deploy::main(deploy),
        Command::Top(top) => commands::top::main(top),
        Command::Check(check) => commands::check::main(check).map_err(Failure::from),
        Command::Elements(elements) => commands::elements::main(elements).map_err(Failure::from),
        Command::Explain(explain) => commands::explain::main(explain),
        Command::Flatten(flatten) => commands::flatten::main(flatten).map_err(Failure::from),
        Command::Gen(generator) => commands::r#gen::main(generator),
        Command::Recv(recv) => commands::recv::main(recv),
        Command::Graph(graph) => commands::graph::main(graph).map_err(Failure::from),
        Command::Host(host) => commands::host::main(host),
        Command::Lab(lab) => commands::lab::main(lab),
        Command::Netbench(netbench) => commands::netbench::main(netbench),
        Command::Nf(nf) => commands::nf::main(nf),
        Command::Nfs(nfs) => commands::nfs::main(nfs),
        Command::Profile(profile) => commands::profile::main(profile),
        Command::Verify(verify) => Ok(commands::verify::main(verify)),
        Command::Fmt(fmt) => commands::fmt::main(fmt).map_err(Failure::from),
        Command::Scale(scale) => commands::scale::main(scale),
        Command::Sim(sim) => commands::sim::main(sim),
        Command::Swx(swx) => commands::swx::main(swx),
        Command::Synth(synth) => commands::synth::main(synth),
    };
    let status = result.unwrap_or_else(|why| {
        why.print(cli.command.prints_json());
        why.status()
    });
    if terminal::failed() && status == ExitCode::SUCCESS { ExitCode::FAILURE } else { status }
}
