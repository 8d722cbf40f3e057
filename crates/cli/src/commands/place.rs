//! `catena place`: where the functions of chains run, so that each chain gets its SLO.

use std::io::stdout;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use clap::builder::PossibleValuesParser;
use dataplane::guarded_path;
use ir::Sources;
use ir::quantity::{self, Unit};
use placement::{
    Document, Manifest, NotPlaced, Plan, Policy, Problem, Replication, Roomy, check, explain, place,
};
use serde_json::json;
use view::placement::Placement;

use crate::commands::compile::topology;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::signals::interrupt_flag;
use crate::terminal::{colours, print};

/// Place the functions of chains on a switch, cards and cores so that each chain gets its SLO
///
/// Chains share cores, links and the switch. The plan gives each chain at least its least rate, within its
/// delay, and gains most beyond. It says what bounds each chain, and what is left of each device. The same input
/// gives the same plan as long as the time suffices.
///
/// Policies: `improved` is Lemur's heuristic, then chains placed anew, two at a time, as long as that gains something.
/// `exact` finds the best plan, or what no plan exceeds. `lemur` is the heuristic alone. The others are simple, for comparison.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Place {
    /// Manifest of the chains
    manifest: String,
    /// The rack
    #[arg(long, value_name = "FILE.yaml")]
    topology: String,
    /// How the plan is found
    #[arg(long, value_name = "POLICY", default_value = "improved", value_parser = policies())]
    policy: String,
    /// How long a plan is looked for; the best until then is the answer
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = time)]
    time: Duration,
    /// The share of cores, links and cards that is left unused
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    headroom: f64,
    /// Which groups of functions run on several cores: all that can (`model`), or not those with branches and merges (`lemur`)
    #[arg(long, value_name = "RULES", default_value = "model", value_parser = ["model", "lemur"])]
    rules: String,
    /// Check this plan instead of looking for one
    #[arg(long, value_name = "PLAN.json")]
    check: Option<String>,
    /// Write the plan
    #[arg(long, short, value_name = "PLAN.json")]
    output: Option<PathBuf>,
    /// Print JSON: the plan, and every constraint with what is used of it
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    limits: Limits,
}

fn policies() -> PossibleValuesParser {
    PossibleValuesParser::new(Policy::ALL.map(|(name, _)| name))
}

fn time(text: &str) -> Result<Duration, String> {
    let seconds = quantity::parse(text, Unit::Time)?;
    Duration::try_from_secs_f64(seconds).map_err(|why| why.to_string())
}

fn share(text: &str) -> Result<f64, String> {
    let share = quantity::parse(text, Unit::Share)?;
    if share < 1.0 { Ok(share) } else { Err("nothing would be left".into()) }
}

/// How long it is looked for why there is no plan, if not longer for the plan.
const EXPLAINING: Duration = Duration::from_secs(10);

/// Reads what is to be placed, and where.
fn problem(args: &Place) -> Result<Problem, Failure> {
    let mut sources = Sources::new();
    let file = args.limits.disk().configuration(&mut sources, &args.manifest)?;
    let text = Arc::clone(sources.text(file));
    let manifest = match Manifest::parse(file, &text) {
        Ok(manifest) => manifest,
        Err(found) => return Err(Failure::of(found, sources)),
    };
    let rack = topology(&args.topology, &args.limits)?;
    let problem = manifest.on(&rack).map_err(|why| format!("{}: {why}", args.topology))?;
    let replication = if args.rules == "lemur" { Replication::Lemur } else { Replication::Model };
    Ok(Problem { headroom: args.headroom, replication, ..problem })
}

/// The plan that is asked for, and how it was found.
fn plan(args: &Place, problem: &Problem) -> Result<(Plan, String), Failure> {
    if let Some(path) = &args.check {
        let mut sources = Sources::new();
        let file = args.limits.disk().configuration(&mut sources, path)?;
        let document: Document =
            serde_json::from_str(sources.text(file)).map_err(|why| format!("{path}: {why}"))?;
        let plan = document.plan(problem).map_err(|why| format!("{path}: {why}"))?;
        return Ok((plan, document.policy));
    }
    let (end, interrupted) = (Instant::now() + args.time, interrupt_flag());
    let mut go_on = || Instant::now() < end && !interrupted.load(Ordering::Relaxed);
    let policy = Policy::named(&args.policy).unwrap_or(Policy::Improved);
    let plan = place(problem, &Roomy, policy, &mut go_on).map_err(|why| {
        let conflicts = matches!(why, NotPlaced::Infeasible | NotPlaced::Alone(_));
        let end = Instant::now() + args.time.max(EXPLAINING);
        let mut go_on = || Instant::now() < end && !interrupted.load(Ordering::Relaxed);
        let explained = conflicts.then(|| explain(problem, &Roomy, &mut go_on)).flatten();
        let explained = explained.map(|of| format!("\n{}", of.words(problem)));
        format!("{policy}: {}{}", why.words(problem), explained.unwrap_or_default())
    })?;
    Ok((plan, args.policy.clone()))
}

/// Runs the command.
pub(crate) fn main(args: &Place) -> Result<ExitCode, Failure> {
    let problem = problem(args)?;
    let (plan, policy) = plan(args, &problem)?;
    let slacks = check(&problem, &Roomy, &plan)
        .map_err(|wrong| format!("the plan does not hold:\n  {}", wrong.join("\n  ")))?;
    let document = Document::of(&problem, &plan, &policy);
    let text = format!("{:#}\n", json!(document));
    if let Some(path) = &args.output {
        guarded_path::write(path, text.as_bytes())
            .map_err(|why| format!("{}: {why}", path.display()))?;
    }
    if args.json {
        let slack = |slack: &placement::Slack| json!({"what": slack.what, "used": slack.used, "limit": slack.limit, "unit": slack.unit});
        let constraints: Vec<_> = slacks.iter().map(slack).collect();
        print(&format!("{:#}\n", json!({"plan": document, "constraints": constraints})));
    } else {
        let shown = Placement { problem: &problem, plan: &plan, slacks: &slacks };
        print(&shown.text(view::paint::Paint(colours(&stdout()))));
    }
    Ok(ExitCode::SUCCESS)
}
