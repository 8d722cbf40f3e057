//! `catena check`: what is wrong with configurations.

use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use dataplane::io::DispatchMode;
use elements::Element;
use engine::{Closed, Findings};
use ir::model::StateKind;
use ir::{Diagnostic, Severity, Span};
use serde_json::{Value, json};
use view::diagnostics;
use view::paint::{Paint, count};

use crate::limits::Limits;
use crate::terminal::{colours, print};
use crate::variables;

/// Report all errors and warnings of configurations without running them
///
/// Files are parsed, compounds expanded and elements configured. Devices are not opened. Inputs that
/// cannot be read and rules that can never match are warnings. The exit status is 1 if there is an
/// error.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Configuration files (`-` for standard input), and values of their variables
    #[arg(value_name = "FILE|VAR=VALUE", required = true)]
    files: Vec<String>,
    /// Print diagnostics as JSON, with their places, for each file
    #[arg(long)]
    pub(crate) json: bool,
    /// Warn about elements that do not work with this dispatch mode of 'catena run'
    #[arg(long, value_name = "MODE")]
    dispatch: Option<DispatchMode>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    /// Print errors and warnings only
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    limits: Limits,
}

/// Everything that is found in one file.
struct Checked {
    name: String,
    findings: Findings,
    elements: usize,
}

impl Checked {
    fn count(&self, severity: Severity) -> usize {
        self.findings.diagnostics.iter().filter(|d| d.severity == severity).count()
    }
}

/// Why an element that has flows does not go with packets that are spread by queues.
pub(crate) fn spread_by_queue(element: &str) -> String {
    format!(
        "with --dispatch queue, packets of a flow of '{element}' may reach workers without the flow; \
         --dispatch hash dispatches both directions of a flow to one worker"
    )
}

fn check(
    name: &str,
    variables: &[(String, String)],
    dispatch: Option<DispatchMode>,
    limits: &Limits,
) -> Checked {
    let mut checked = Checked {
        name: if name == "-" { "<stdin>".into() } else { name.to_string() },
        findings: Findings::default(),
        elements: 0,
    };
    let Checked { findings: Findings { diagnostics, sources }, elements, .. } = &mut checked;
    let mut files = limits.disk();
    let file = match files.configuration(sources, name) {
        Ok(file) => file,
        Err(why) => {
            diagnostics.push(Diagnostic::error("unreadable-file", why));
            return checked;
        }
    };
    let options = limits.options(variables.to_vec());
    let (chain, found) = compiler::elaborate(sources, file, &options, &mut files);
    diagnostics.extend(found);
    let Some(chain) = chain else { return checked };
    *elements = chain.graph.nodes.len();
    if *elements == 0 && click::parse(sources, file).0.statements.is_empty() {
        let why = match sources.text(file).trim().is_empty() {
            true => "the configuration is empty",
            false => "the configuration is empty: it has only comments",
        };
        diagnostics
            .push(Diagnostic::warning("empty-configuration", why).label(Span::new(file, 0, 0), ""));
    }
    if let Some(mut made) = compiler::instantiate(&chain, sources, &mut files, diagnostics) {
        let before = diagnostics.len();
        let beside = Path::new(name).parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let mut closed = Closed::beside(beside);
        made.initialize(&chain, sources, &mut files, &mut closed, diagnostics);
        for diagnostic in diagnostics[before..].iter_mut().filter(|d| d.code == "device") {
            diagnostic.severity = Severity::Warning;
        }
        diagnostics.extend(compiler::shadowed_rules(&chain, &made));
        let nodes = chain.graph.nodes.iter().zip(&made.elements);
        let has_flows = |element: &dyn Element| {
            let kinds = element.model().state;
            kinds.iter().any(|state| matches!(state.kind, StateKind::Flows { .. }))
        };
        for (node, _) in
            nodes.filter(|(_, e)| dispatch == Some(DispatchMode::Queue) && has_flows(&***e))
        {
            let why = spread_by_queue(&node.name);
            diagnostics.push(Diagnostic::warning("flows-by-queue", why).label(node.span, ""));
        }
    }
    checked
}

/// Runs the command.
pub(crate) fn main(args: &Check) -> Result<ExitCode, String> {
    let (files, variables) = variables::split(&args.files);
    if files.is_empty() {
        return Err("no FILE is given, only variables".to_string());
    }
    let start = Instant::now();
    let (mut errors, mut warnings) = (0, 0);
    let mut reports = Vec::new();
    let colour = colours(&stdout());
    let paint = Paint(colour);
    for name in &files {
        let mut checked = check(name, &variables, args.dispatch, &args.limits);
        checked.findings.diagnostics.sort_by_key(|d| {
            let place = d.span().map(|s| (s.file, s.start));
            (std::cmp::Reverse(d.severity), place)
        });
        errors += checked.count(Severity::Error);
        warnings += checked.count(Severity::Warning);
        if args.json {
            reports.push(json!({
                "file": checked.name,
                "errors": checked.count(Severity::Error),
                "warnings": checked.count(Severity::Warning),
                "diagnostics": checked.findings.reported(),
            }));
            continue;
        }
        let Findings { diagnostics, sources } = &checked.findings;
        print(&diagnostics::render(diagnostics, sources, colour));
        if checked.findings.is_empty() && !args.quiet {
            let size = count(checked.elements, "element");
            print(&format!("{} {} ({size})\n", paint.green("ok"), checked.name));
        }
    }
    if args.json {
        print(&format!("{:#}\n", Value::Array(reports)));
    } else if !args.quiet && (errors + warnings > 0 || files.len() > 1) {
        let found = format!("{}, {}", count(errors, "error"), count(warnings, "warning"));
        let found = match (errors, warnings) {
            (0, 0) => paint.green(&found),
            (0, _) => paint.yellow(&found),
            _ => paint.red(&found),
        };
        let time =
            format!("{} in {:.2} s", count(files.len(), "file"), start.elapsed().as_secs_f64());
        print(&format!("{found} ({time})\n"));
    }
    let failed = errors > 0 || args.strict && warnings > 0;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
