//! The `catena` command.
#![forbid(unsafe_code)]

mod commands;
mod diagnostics;
mod dot;
mod drive;
mod explain;
mod family;
mod layout;
mod load;
mod manual;
mod picture;
pub mod session;
mod summary;
mod svg;
mod table;
mod terminal;
mod variables;

use std::ffi::OsString;
use std::io::Write;
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
    Run(commands::run::Run),
    Check(commands::check::Check),
    Elements(commands::elements::Elements),
    Explain(commands::explain::Explain),
    Flatten(commands::flatten::Flatten),
    Fmt(commands::fmt::Fmt),
    Graph(commands::graph::Graph),
}

/// Carries out a command line, the program's name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let result = match &cli.command {
        Command::Run(run) => commands::run::main(run),
        Command::Check(check) => commands::check::main(check),
        Command::Elements(elements) => commands::elements::main(elements),
        Command::Explain(explain) => commands::explain::main(explain),
        Command::Flatten(flatten) => commands::flatten::main(flatten),
        Command::Graph(graph) => commands::graph::main(graph),
        Command::Fmt(fmt) => commands::fmt::main(fmt),
    };
    result.unwrap_or_else(|why| {
        let _ = writeln!(std::io::stderr(), "error: {why}");
        ExitCode::FAILURE
    })
}
