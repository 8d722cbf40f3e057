//! `catena synth`: what a chain becomes.

use std::collections::BTreeMap;
use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use compiler::Note;
use compiler::equivalence::{BUDGET, Proof, Verdict, prove_programs};
use dataplane::place;
use engine::Closed;
use ir::{Model, NodeId, Program, Severity, Sources, has_errors};
use view::paint::Paint;
use view::svg::Theme;
use view::synth::{self, Cost, Report};

use crate::failure::Failure;
use crate::limits::Limits;
use crate::terminal::{colours, print};
use crate::{theme, variables};

/// Show what a chain becomes: a program that decides, and then does everything at once
///
/// A chain is not run element by element: what its elements do to a packet is brought together in
/// a program for each input. For the longest path to each egress, two lines compare what the chain's
/// elements and the program do to a packet:
///
///   elements       elements that it visits; the program counts as one
///   decisions      conditions, rules, routes and flows that decide what comes next
///   reads          places in the packet that are read: by each element anew, by the program once
///   writes         runs of bytes that are written
///   sums checked   checksums that are verified
///   sums written   checksums that are computed or updated
///   flow lookups   lookups in tables of flows
///   tables         lookups in route tables and lists of rules; lists of a few rules become conditions
///   headers moved  headers that are stripped or pushed
///
/// Places that overlap count once, and sums over a header are no reads. Where several paths lead to
/// a class, the shortest is counted, of the elements as of the program.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Synth {
    /// The configuration; `-` for the standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// Show the traffic classes, those that leave the chain first: which packets belong to them,
    /// what is done to them, where they go, and which elements say so
    #[arg(long)]
    classes: bool,
    /// Classes that are shown of each program; 0 for all
    #[arg(long, value_name = "N", default_value_t = 12)]
    limit: usize,
    /// Only classes that go to (or are dropped by, or for the reason) TEXT
    #[arg(long, value_name = "TEXT")]
    egress: Option<String>,
    /// Print the programs as text
    #[arg(long, conflicts_with_all = ["classes", "json", "svg", "egress"])]
    program: bool,
    /// Print the headers that the programs look at: which follows which, by which field, how many bytes
    /// of each must be there, and what is done with its fields; with `--json` as one document
    #[arg(long, conflicts_with_all = ["classes", "svg", "egress", "program"])]
    headers: bool,
    /// Print JSON: every class with its conditions, operations and their elements
    #[arg(long, conflicts_with_all = ["classes", "svg", "egress"])]
    pub(crate) json: bool,
    /// Draw the chain and its programs side by side; `-` for the standard output
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["classes", "egress"])]
    svg: Option<PathBuf>,
    /// Colours of the picture; `auto` is as the viewer likes it
    #[arg(long, default_value = "auto", value_parser = theme::parser(), requires = "svg")]
    theme: Theme,
    #[command(flatten)]
    limits: Limits,
}

/// Runs the command.
pub(crate) fn main(args: &Synth) -> Result<ExitCode, Failure> {
    let mut sources = Sources::new();
    let mut files = args.limits.disk();
    let file = files.configuration(&mut sources, &args.file)?;
    let options = args.limits.options(variables::all(&args.variables)?);
    let start = Instant::now();
    let (chain, mut found) = compiler::elaborate(&mut sources, file, &options, &mut files);
    let mut models: Option<Vec<Model>> = None;
    if let Some(chain) = &chain
        && let Some(mut made) = compiler::instantiate(chain, &mut sources, &mut files, &mut found)
    {
        let before = found.len();
        let beside = Path::new(&args.file).parent().map_or_else(PathBuf::new, Path::to_path_buf);
        let mut closed = Closed::beside(beside);
        made.initialize(chain, &mut sources, &mut files, &mut closed, &mut found);
        // Devices are not opened: what they cannot do does not matter.
        let mut at = 0;
        found.retain(|d| {
            at += 1;
            at <= before || d.code != "device"
        });
        models = Some(made.elements.iter().map(|e| e.model()).collect());
    }
    let elaboration = start.elapsed();
    found.retain(|d| d.severity == Severity::Error);
    let (Some(chain), Some(models)) = (chain, models.filter(|_| !has_errors(&found))) else {
        return Err(Failure::of(found, sources));
    };
    let start = Instant::now();
    let mut synthesis = compiler::synthesize(&chain.graph, &models);
    let mut cost = Cost { elaboration, synthesis: start.elapsed(), ..Cost::default() };
    if args.program {
        let texts = synthesis.programs.iter().map(|p| p.text(&chain.graph).to_string());
        print(&texts.collect::<Vec<_>>().join("\n"));
        return Ok(ExitCode::SUCCESS);
    }
    if args.headers {
        let (programs, chain) = (&synthesis.programs, &chain.graph);
        print(&match args.json {
            true => format!("{:#}\n", synth::headers::to_json(programs, chain)),
            false => synth::headers::text(programs, chain, Paint(colours(&stdout()))),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let start = Instant::now();
    let proofs = prove_programs(&chain.graph, &models, &synthesis.programs, BUDGET);
    cost.proof = start.elapsed();
    let start = Instant::now();
    for Proof { at, verdict, .. } in proofs {
        let message = match verdict {
            Verdict::Equal => {
                cost.proven += 1;
                continue;
            }
            Verdict::Different(_) => {
                "the program is wrong and would not be used, see `catena verify`".to_string()
            }
            Verdict::Unproven(why) => format!("the program is not proven: {why}"),
        };
        synthesis.notes.push(Note { element: at.node, message });
    }
    synthesis.notes.extend(covered_rules(&synthesis.programs));
    let gainless = synthesis.programs.iter().filter(|program| !dataplane::pays(program));
    synthesis.notes.extend(gainless.map(|program| {
        let message =
            "`catena run` leaves packets that come here to the elements, which take no longer";
        Note { element: program.entry.node, message: message.to_string() }
    }));
    let mut report = Report::of(&chain, &sources, sources.name(file), &models, &synthesis, cost);
    (report.cost.description, report.cost.peak) = (start.elapsed(), peak());
    let paint = Paint(colours(&stdout()));
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let egress = args.egress.as_deref();
    if let Some(path) = &args.svg {
        let drawn = synth::picture::draw(&report, args.theme);
        if path.as_os_str() == "-" {
            print(&drawn);
        } else {
            place::write(path, drawn).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    } else if args.json {
        print(&format!("{:#}\n", synth::json::to_json(&report)));
    } else if args.classes || egress.is_some() {
        print(&synth::text::classes(&report, egress, limit, paint));
    } else {
        print(&synth::text::summary(&report, paint));
    }
    Ok(ExitCode::SUCCESS)
}

/// Rules that are not looked up, in none of the lists that they are in.
fn covered_rules(programs: &[Program]) -> impl Iterator<Item = Note> {
    let mut lists: BTreeMap<NodeId, BTreeMap<u32, bool>> = BTreeMap::new();
    for (element, rules) in programs.iter().flat_map(dataplane::covered_rules) {
        let list = lists.entry(element).or_default();
        for (number, is_covered) in rules {
            *list.entry(number).or_insert(true) &= is_covered;
        }
    }
    lists.into_iter().filter_map(|(element, list)| {
        let covered = list.values().filter(|covered| **covered).count();
        let message = format!(
            "{covered} of {} rules can never match, as earlier ones cover them: they are left out",
            list.len()
        );
        (covered > 0).then_some(Note { element, message })
    })
}

/// The most memory that the process had so far, in bytes, where the system tells.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
