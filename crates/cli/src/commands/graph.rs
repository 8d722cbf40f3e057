//! `catena graph`: pictures of chains.

use std::io::stderr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use dataplane::guarded_path;
use ir::{Sources, has_errors};
use view::picture::Picture;
use view::svg::Theme;
use view::{diagnostics, dot, svg};

use crate::limits::Limits;
use crate::terminal::{colours, print, print_error};
use crate::{theme, variables};

/// Draw a chain as SVG or DOT
///
/// Compounds are boxes around their elements; packets flow from top to bottom; pull connections are
/// dashed. In a browser, pointing at a box or connection shows its configuration and place. A chain
/// with errors is drawn as far as it is known, and the exit status is 1.
#[derive(Args, Debug)]
pub(crate) struct Graph {
    /// Configuration file; `-` for standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// Output file; default: standard output
    #[arg(short, long, value_name = "FILE.svg|FILE.dot")]
    output: Option<PathBuf>,
    /// Format; default: as the output file's name ends, or SVG
    #[arg(long)]
    format: Option<Format>,
    /// Colours of an SVG picture; `auto` follows the viewer's preference
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
            guarded_path::write(path, drawn).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        _ => print(&drawn),
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
