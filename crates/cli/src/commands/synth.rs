//! `catena synth`: what a chain becomes.

use std::io::stdout;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use compiler::prove::{Assurance, BUDGET, Verdict, assure_programs, prove_programs};
use compiler::{Chain, Note};
use dataplane::guarded_path;
use ir::program::LookupId;
use ir::text::parse_programs;
use ir::{Program, Sources};
use view::paint::{Paint, count};
use view::svg::Theme;
use view::synth::{self, Cost, Report};

use crate::failure::Failure;
use crate::limits::Limits;
use crate::loaded::{Loaded, load};
use crate::terminal::{colours, print};
use crate::theme;

/// Show the programs that a chain becomes, and what they save
///
/// A chain is not run element by element. For each input, all that its elements do to a packet becomes
/// one program. For the longest path to each egress, two lines compare what elements and program do to
/// a packet:
///
///   elements       elements that it visits; the program counts as one
///   decisions      conditions, rules, routes and flows that decide what comes next
///   reads          places in the packet that are read: by each element anew, by the program once
///   writes         runs of bytes that are written
///   sums checked   checksums that are verified
///   sums written   checksums that are computed or updated
///   flow lookups   lookups in tables of flows
///   tables         lookups in route tables and rule lists; lists of a few rules become conditions
///   headers moved  headers that are stripped or pushed
///
/// Places that overlap count once, and sums over a header are no reads. Where several paths lead to a
/// class, the shortest counts.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Synth {
    /// Configuration file; `-` for standard input
    #[arg(required_unless_present = "read")]
    file: Option<String>,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// Show traffic classes: which packets belong to them, what is done to them, where they go
    ///
    /// Classes that leave the chain come first. Each condition and operation names its element, file and
    /// line.
    #[arg(long)]
    classes: bool,
    /// Number of classes shown per program, or entries per table; 0 for all
    #[arg(long, value_name = "N", default_value_t = 12)]
    limit: usize,
    /// Show only classes that go to TEXT, or are dropped by or for the reason TEXT
    #[arg(long, value_name = "TEXT")]
    egress: Option<String>,
    /// Print programs as text, which --read reads
    #[arg(long, conflicts_with_all = ["classes", "json", "svg", "egress"])]
    program: bool,
    /// Print each table once: owner, keys and how they match, capacity, actions, default, entries
    #[arg(long, conflicts_with_all = ["classes", "svg", "egress", "program"])]
    tables: bool,
    /// Read programs from text (`-` for standard input) and print them; with FILE, check them against its
    /// chain
    #[arg(long, value_name = "FILE.prog",
        conflicts_with_all = ["classes", "json", "svg", "egress", "program", "tables"])]
    read: Option<String>,
    /// Report only whether the programs read are well formed, and equal to the chain of FILE
    #[arg(long, requires = "read")]
    check: bool,
    /// Print the parse graph: which header follows which by which field, required bytes, and use of fields
    ///
    /// With --json it is one document.
    #[arg(long, conflicts_with_all = ["classes", "svg", "egress", "program"])]
    headers: bool,
    /// Print JSON: every class with its conditions, operations and their elements
    #[arg(long, conflicts_with_all = ["classes", "svg", "egress"])]
    pub(crate) json: bool,
    /// Draw the chain and its programs side by side; `-` for standard output
    #[arg(long, value_name = "FILE.svg", conflicts_with_all = ["classes", "egress"])]
    svg: Option<PathBuf>,
    /// Colours of the picture; `auto` follows the viewer's preference
    #[arg(long, default_value = "auto", value_parser = theme::parser(), requires = "svg")]
    theme: Theme,
    #[command(flatten)]
    limits: Limits,
}

/// Elements whose flows programs look up in vain, as there is no table that programs can read: `tables` has those of
/// which there is one.
fn without_table(programs: &[Program], chain: &Chain, tables: &[bool]) -> Vec<Note> {
    let mut notes = Vec::new();
    for program in programs {
        for (lookup, number) in program.lookups.iter().zip(0..) {
            let Some(state) = program.flows_of(LookupId(number)) else { continue };
            let mut owners = chain.find(&state.owner).into_iter().chain([state.element]);
            if !owners.any(|node| tables.get(node).copied().unwrap_or(false)) {
                let message = format!(
                    "programs find no flow here, and `catena run` leaves packets to the element: '{}' of '{}' is no \
                     table that programs can read (Element::flows)",
                    state.name, state.owner
                );
                let note = Note { element: lookup.element, message };
                if !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
    }
    notes
}

/// Prints or checks programs that were written as text.
fn read(args: &Synth, name: &str) -> Result<ExitCode, Failure> {
    let mut sources = Sources::new();
    let file = args.limits.disk().configuration(&mut sources, name)?;
    let text = Arc::clone(sources.text(file));
    let read = match parse_programs(file, &text) {
        Ok(read) => read,
        Err(found) => return Err(Failure::of(found, sources)),
    };
    if read.programs.is_empty() {
        return Err(
            format!("{name} holds no programs; `catena synth FILE --program` prints some").into()
        );
    }
    if !args.check {
        let texts = read.programs.iter().map(|p| p.text_by(&read.names).to_string());
        print(&texts.collect::<Vec<_>>().join("\n"));
    }
    let mut wrong = Vec::new();
    let mut told = String::from("well formed");
    if let Some(name) = &args.file {
        let Loaded { chain, models, .. } = load(&args.limits, &args.variables, name)?;
        let of = |node: &usize| chain.graph.nodes.get(*node).map(|node| node.name.as_str());
        if let Some((node, known)) = read.names.iter().find(|(node, n)| of(node) != Some(n)) {
            let message = format!("element {node} is {known:?} in the programs, but not in {name}");
            return Err(message.into());
        }
        let elements = read.programs.iter().flat_map(Program::elements);
        if let Some(node) = elements.max().filter(|node| *node >= chain.graph.nodes.len()) {
            return Err(format!("there is no element #{node} in {name}").into());
        }
        told += &format!(", and what {name} means");
        for proof in prove_programs(&chain.graph, &models, &read.programs, BUDGET) {
            let why = match proof.verdict {
                Verdict::Equal => continue,
                Verdict::Different(_) => "does not do what the chain does".into(),
                Verdict::Unproven(why) => format!("is not proven: {why}"),
            };
            let (element, port) = proof.entry;
            wrong.push(format!("the program behind [{port}] {element} {why}"));
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join("; ").into());
    }
    if args.check {
        let steps = read.programs.iter().map(|p| p.steps.len()).sum();
        let (programs, steps) = (count(read.programs.len(), "program"), count(steps, "step"));
        print(&format!("{name}: {programs}, {steps}: {told}\n"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the command.
pub(crate) fn main(args: &Synth) -> Result<ExitCode, Failure> {
    if let Some(programs) = &args.read {
        return read(args, programs);
    }
    let name = args.file.as_deref().unwrap_or("-");
    let Loaded { sources, file, chain, models, tables, elaboration, .. } =
        load(&args.limits, &args.variables, name)?;
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let paint = Paint(colours(&stdout()));
    if args.tables {
        let programs = compiler::synthesize_tables(&chain.graph, &models).programs;
        let (graph, models, programs, sources) =
            (&chain.graph, &models[..], &programs[..], &sources);
        let tabled = synth::tables::Tabled { graph, models, programs, sources };
        print(&match args.json {
            true => format!("{:#}\n", tabled.to_json()),
            false => tabled.text(limit, paint),
        });
        return Ok(ExitCode::SUCCESS);
    }
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
    let assured = assure_programs(&chain.graph, &models, &synthesis.programs, BUDGET);
    cost.proof = start.elapsed();
    let start = Instant::now();
    for (at, assurance) in assured {
        let message = match assurance {
            Assurance::Proven => {
                cost.proven += 1;
                continue;
            }
            Assurance::Wrong => {
                format!("{assurance}: `catena run` leaves it out, `catena verify` shows why")
            }
            Assurance::Checked { .. } => assurance.to_string(),
            Assurance::Unchecked { .. } => {
                format!("{assurance}: `catena run` leaves it out unless `--unproven` is given")
            }
        };
        synthesis.notes.push(Note { element: at.node, message });
    }
    synthesis.notes.extend(shadowed_rules(&models));
    synthesis.notes.extend(without_table(&synthesis.programs, &chain, &tables));
    let mut report = Report::of(&chain, &sources, sources.name(file), &models, &synthesis, cost);
    (report.cost.description, report.cost.peak) = (start.elapsed(), peak());
    let egress = args.egress.as_deref();
    if let Some(path) = &args.svg {
        let drawn = synth::picture::draw(&report, args.theme);
        if path.as_os_str() == "-" {
            print(&drawn);
        } else {
            guarded_path::write(path, drawn).map_err(|e| format!("{}: {e}", path.display()))?;
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

/// Rules that no packet gets to.
fn shadowed_rules(models: &[ir::Model]) -> impl Iterator<Item = Note> {
    let counts = compiler::count_shadowed_rules(models).into_iter();
    counts.map(|(element, shadowed, all)| {
        let message = format!(
            "{shadowed} of {all} rules can never match, as earlier ones shadow them: `catena check` names them"
        );
        Note { element, message }
    })
}

/// The most memory that the process had so far, in bytes, where the system reports it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        synth: Synth,
    }

    #[test]
    fn a_lookup_without_a_table_is_reported() {
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/home-router.click");
        let args = Line::parse_from(["synth", example]).synth;
        let Ok(Loaded { chain, models, tables, .. }) = load(&args.limits, &args.variables, example)
        else {
            panic!("{example} is a chain");
        };
        let programs = compiler::synthesize(&chain.graph, &models).programs;
        assert_eq!(without_table(&programs, &chain, &tables), []);
        let none = vec![false; tables.len()];
        let reported = without_table(&programs, &chain, &none);
        let flows = chain.find("flows").unwrap();
        let of = reported.iter().find(|note| note.element == flows).unwrap();
        assert!(of.message.contains("'flows' of 'flows' is no table"), "{}", of.message);
    }
}
