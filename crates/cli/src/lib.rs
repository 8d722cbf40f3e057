//! The `catena` command.
#![forbid(unsafe_code)]

mod commands;
mod control;
mod cores;
mod diagnostics;
mod dot;
mod drive;
mod explain;
mod groups;
mod installer;
pub mod instance;
mod layout;
mod load;
mod log;
mod manual;
mod picture;
mod privileges;
pub mod session;
mod signals;
mod summary;
mod svg;
mod synth;
mod system_calls;
mod table;
mod terminal;
mod variables;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Catena runs chains of network functions, written in the Click language.
#[derive(Debug, Parser)]
#[command(name = "catena", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(Box<commands::run::Run>),
    Check(commands::check::Check),
    /// Click's own command line; also under the program's name 'click'
    Click,
    Ctl(commands::ctl::Ctl),
    Elements(commands::elements::Elements),
    Explain(commands::explain::Explain),
    Flatten(commands::flatten::Flatten),
    Fmt(commands::fmt::Fmt),
    Graph(commands::graph::Graph),
    Synth(commands::synth::Synth),
    Top(commands::top::Top),
    Verify(commands::verify::Verify),
}

/// Carries out a command line, the program's name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let (name, second) = (arguments.first(), arguments.get(1));
    let named = name.is_some_and(|name| commands::click::is_meant(name));
    if named || second.is_some_and(|word| word == "click") {
        let behind = arguments.iter().skip(if named { 1 } else { 2 });
        let words: Vec<String> = behind.map(|a| a.to_string_lossy().into_owned()).collect();
        return commands::click::main(&words);
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let text = error.render().to_string();
            if error.use_stderr() {
                terminal::print_error(&text);
            } else {
                terminal::print(&text);
            }
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let result = match &cli.command {
        Command::Run(run) => Ok(commands::run::main(run)),
        // Its command line is not clap's: it was dealt with above.
        Command::Click => Ok(ExitCode::SUCCESS),
        Command::Ctl(ctl) => commands::ctl::main(ctl),
        Command::Top(top) => commands::top::main(top),
        Command::Check(check) => commands::check::main(check),
        Command::Elements(elements) => commands::elements::main(elements),
        Command::Explain(explain) => commands::explain::main(explain),
        Command::Flatten(flatten) => commands::flatten::main(flatten),
        Command::Graph(graph) => commands::graph::main(graph),
        Command::Verify(verify) => commands::verify::main(verify),
        Command::Fmt(fmt) => commands::fmt::main(fmt),
        Command::Synth(synth) => commands::synth::main(synth),
    };
    let status = result.unwrap_or_else(|why| {
        terminal::print_error(&format!("error: {why}\n"));
        ExitCode::FAILURE
    });
    if terminal::failed() && status == ExitCode::SUCCESS { ExitCode::FAILURE } else { status }
}
