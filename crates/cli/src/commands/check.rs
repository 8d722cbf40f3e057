//! `catena check`: what is wrong with configurations.

use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use dataplane::io::Way;
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

/// Report every error and warning of configurations, without running them
///
/// Files are parsed, their compounds expanded and their elements configured. Devices are not opened;
/// an input that could not be read is a warning, and so are rules that can never match. Ends with
/// status 1 if there was an error.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// Configurations (`-` for the standard input), and values of their variables
    #[arg(value_name = "FILE|VAR=VALUE", required = true)]
    files: Vec<String>,
    /// Print JSON: for each file its diagnostics with their places
    #[arg(long)]
    pub(crate) json: bool,
    /// Warn of what does not go with packets that find their workers in this way, as for 'catena run'
    #[arg(long, value_name = "WAY")]
    dispatch: Option<Way>,
    /// Count warnings as errors
    #[arg(long)]
    strict: bool,
    /// Print nothing but errors and warnings
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
        "by --dispatch queue, packets of a flow of '{element}' may come to workers that do not know it; \
         --dispatch hash brings both directions of a flow to one worker"
    )
}

fn check(
    name: &str,
    variables: &[(String, String)],
    dispatch: Option<Way>,
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
        for (node, _) in nodes.filter(|(_, e)| dispatch == Some(Way::Queue) && has_flows(&***e)) {
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
