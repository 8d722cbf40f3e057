//! The `catena` command.
#![forbid(unsafe_code)]

mod commands;
mod diagnostics;
mod load;
pub mod session;
mod summary;
mod table;

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
    };
    result.unwrap_or_else(|why| {
        let _ = writeln!(std::io::stderr(), "error: {why}");
        ExitCode::FAILURE
    })
}
