//! `catena flatten`: configurations without compounds.

use std::io::stderr;
use std::process::ExitCode;

use clap::Args;
use ir::{Sources, has_errors};
use view::diagnostics;

use crate::limits::Limits;
use crate::terminal::{colours, print, print_error};
use crate::variables;

/// Print a configuration with compounds and variables expanded
///
/// The result has the same elements, names and connections.
#[derive(Args, Debug)]
pub(crate) struct Flatten {
    /// Configuration file; `-` for standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    #[command(flatten)]
    limits: Limits,
}

/// Runs the command.
pub(crate) fn main(args: &Flatten) -> Result<ExitCode, String> {
    let mut sources = Sources::new();
    let mut files = args.limits.disk();
    let file = files.configuration(&mut sources, &args.file)?;
    let options = args.limits.options(variables::all(&args.variables)?);
    let (chain, found) = compiler::elaborate(&mut sources, file, &options, &mut files);
    print_error(&diagnostics::render(&found, &sources, colours(&stderr())));
    let Some(chain) = chain.filter(|_| !has_errors(&found)) else {
        return Ok(ExitCode::FAILURE);
    };
    print(&compiler::flatten(&chain));
    Ok(ExitCode::SUCCESS)
}
