//! `catena graph`: pictures of chains, and chains as JSON.

use std::io::stderr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use compiler::synthesize;
use dataplane::guarded_path;
use ir::{Sources, has_errors};
use view::picture::Picture;
use view::svg::Theme;
use view::{diagnostics, dot, json, svg};

use crate::limits::Limits;
use crate::loaded::make;
use crate::terminal::{colours, print, print_error};
use crate::{theme, variables};

/// Draw a chain as SVG or DOT, or write it as JSON
///
/// Compounds are boxes around their elements; packets flow from top to bottom; pull connections are
/// dashed. In a browser, pointing at a box or connection shows its configuration and place. A chain
/// with errors is drawn as far as it is known, and the exit status is 1.
///
/// JSON is for other programs. It has elements with class, configuration, place and ports, compounds, connections, and
/// programs with the elements that they execute; an element that is in none runs by itself. "version" is 1: members may
/// be added, and if one leaves or means something else, the version is another. Where the chain has errors,
/// "programs" is null.
#[derive(Args, Debug)]
pub(crate) struct Graph {
    /// Configuration file; `-` for standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// Output file; default: standard output
    #[arg(short, long, value_name = "FILE.svg|FILE.dot|FILE.json")]
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
    Json,
}

fn format(args: &Graph) -> Result<Format, String> {
    let ending = args.output.as_deref().and_then(Path::extension).and_then(|e| e.to_str());
    match (args.format, ending) {
        (Some(format), _) => Ok(format),
        (None, Some("svg")) => Ok(Format::Svg),
        (None, Some("dot" | "gv")) => Ok(Format::Dot),
        (None, Some("json")) => Ok(Format::Json),
        (None, None) if args.output.is_none() => Ok(Format::Svg),
        (None, _) => {
            Err("the output's name ends in neither .svg, .dot nor .json; choose with --format"
                .to_string())
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
    let mut failed = has_errors(&found);
    // A chain with errors may still be looked at, as far as it is known.
    let Some(chain) = chain else { return Ok(ExitCode::FAILURE) };
    let drawn = match format {
        Format::Dot => dot::write(&Picture::of(&chain, &sources), &chain.graph, sources.name(file)),
        Format::Svg => svg::draw(&Picture::of(&chain, &sources), sources.name(file), args.theme),
        Format::Json => {
            let beside =
                Path::new(&args.file).parent().map_or_else(PathBuf::new, Path::to_path_buf);
            let mut files = args.limits.disk();
            let made = (!failed).then(|| make(&mut sources, &mut files, file, &options, beside));
            let programs = match made {
                Some(Ok(made)) => Some(synthesize(&made.chain.graph, &made.models).programs),
                Some(Err(found)) => {
                    print_error(&diagnostics::render(&found, &sources, colours(&stderr())));
                    failed = true;
                    None
                }
                None => None,
            };
            let json = json::write(&chain.graph, programs.as_deref(), &sources, sources.name(file));
            format!("{json:#}\n")
        }
    };
    match &args.output {
        Some(path) if path.as_os_str() != "-" => {
            guarded_path::write(path, drawn).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        _ => print(&drawn),
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
