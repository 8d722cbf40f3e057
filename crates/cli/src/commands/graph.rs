//! `catena graph`: pictures of chains.

use std::io::stderr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use dataplane::place;
use ir::{Sources, has_errors};
use view::picture::Picture;
use view::svg::Theme;
use view::{diagnostics, dot, svg};

use crate::limits::Limits;
use crate::terminal::{colours, print, print_error};
use crate::{theme, variables};

/// Draw a chain: compounds as boxes with their elements inside
///
/// Packets flow from top to bottom. Wires over which packets are pulled are dashed. Pointing at a
/// box or wire in a browser shows its configuration and its place in the file. A chain with errors is
/// drawn as far as it is known, and the status is 1.
#[derive(Args, Debug)]
pub(crate) struct Graph {
    /// The configuration; `-` for the standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// Where the picture goes; by default to the standard output
    #[arg(short, long, value_name = "FILE.svg|FILE.dot")]
    output: Option<PathBuf>,
    /// The picture's format; by default as the output's name ends, or SVG
    #[arg(long)]
    format: Option<Format>,
    /// Colours of an SVG picture; `auto` is as the viewer likes it
    #[arg(long, default_value = "auto", value_parser = theme::parser())]
    theme: Theme,
    #[command(flatten)]
    limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Svg,
    Dot,
}

fn format(args: &Graph) -> Result<Format, String> {
    let ending = args.output.as_deref().and_then(Path::extension).and_then(|e| e.to_str());
    match (args.format, ending) {
        (Some(format), _) => Ok(format),
        (None, Some("svg")) => Ok(Format::Svg),
        (None, Some("dot" | "gv")) => Ok(Format::Dot),
        (None, None) if args.output.is_none() => Ok(Format::Svg),
        (None, _) => {
            Err("the output's name ends in neither .svg nor .dot; choose with --format".to_string())
        }
    }
}

/// Runs the command.
pub(crate) fn main(args: &Graph) -> Result<ExitCode, String> {
    let format = format(args)?;
    let mut sources = Sources::new();
    let mut files = args.limits.disk();
    let file = files.configuration(&mut sources, &args.file)?;
    let options = args.limits.options(variables::all(&args.variables)?);
    let (chain, found) = compiler::elaborate(&mut sources, file, &options, &mut files);
    print_error(&diagnostics::render(&found, &sources, colours(&stderr())));
    let failed = has_errors(&found);
    // A chain with errors may still be looked at, as far as it is known.
    let Some(chain) = chain else { return Ok(ExitCode::FAILURE) };
    let picture = Picture::of(&chain, &sources);
    let drawn = match format {
        Format::Dot => dot::write(&picture, &chain.graph, sources.name(file)),
        Format::Svg => svg::draw(&picture, sources.name(file), args.theme),
    };
    match &args.output {
        Some(path) if path.as_os_str() != "-" => {
            place::write(path, drawn).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        _ => print(&drawn),
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
