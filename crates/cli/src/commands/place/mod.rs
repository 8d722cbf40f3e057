//! `catena place`: where the functions of chains run, so that each chain gets its SLO.

mod chains;
mod change;
mod inline;
mod switch;

use std::collections::BTreeMap;
use std::io::stdout;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use clap::builder::PossibleValuesParser;
use dataplane::guarded_path;
use ir::hash::HashFunction;
use ir::quantity::{self, Unit};
use ir::topology::Topology;
use ir::{Sources, nearest};
use placement::{
    Document, GUESS, MadeOf, Manifest, NotPlaced, Plan, Policy, Problem, Replication, check,
    explain, fair, place, without_hosts,
};
use serde_json::json;
use view::candidates::{Known, Matrix};
use view::paint::Paint;
use view::placement::Placement;
use view::svg::Theme;

use crate::commands::compile::topology;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::signals::interrupt_flag;
use crate::terminal::{colours, print, print_error};
use crate::{outputs, theme};
pub(crate) use chains::Read;

use chains::Chains;
use switch::CachedSwitch;

/// Place the functions of chains on a switch, cards and cores so that each chain gets its SLO
///
/// Chains share cores, links and the switch. The plan gives each chain at least its least rate, within its
/// delay, and gains most beyond. It says what bounds each chain, and what is left of each device. The same input
/// gives the same plan as long as the time suffices.
///
/// Policies: `improved` is Lemur's heuristic, then branch and bound as long as there is time; prices alone for very many chains.
/// `exact` finds the best plan, or what no plan exceeds. `lemur` is the heuristic alone, `two-choices`
/// asks two servers for their loads. The others are simple, for comparison.
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
    /// What is sought: that most is gained beyond the least rates (`gain`, the default), or that no chain gets more as long as one with
    /// less could have it; goes before what the manifest says
    #[arg(long, value_name = "OBJECTIVE", value_parser = ["gain", "fair"])]
    objective: Option<String>,
    /// How long a plan is looked for; the best until then is the answer. With `-o`, as long again for backups
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = time)]
    time: Duration,
    /// The share of cores, links and cards that is left unused
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = share)]
    headroom: f64,
    /// Which groups of functions run on several cores: all that can (`model`), or not those with branches and merges (`lemur`)
    #[arg(long, value_name = "RULES", default_value = "model", value_parser = ["model", "lemur"])]
    rules: String,
    /// Read a cost profile, as `catena bench CHAIN --costs FILE` writes it; later ones go before earlier ones
    #[arg(long, value_name = "COSTS.json")]
    costs: Vec<String>,
    /// Show which devices can run each function, with what, and why not; place nothing
    #[arg(long, conflicts_with_all = ["check", "output"])]
    matrix: bool,
    /// Say all about one chain of the plan
    #[arg(long, value_name = "CHAIN", conflicts_with_all = ["matrix", "json"])]
    explain: Option<String>,
    /// Draw the plan: devices, and chains through them
    #[arg(long, value_name = "FILE.svg", conflicts_with = "matrix")]
    svg: Option<PathBuf>,
    /// Colours of the drawing; `auto` follows the viewer's preference
    #[arg(long, default_value = "auto", requires = "svg", value_parser = theme::parser())]
    theme: Theme,
    /// Check this plan instead of looking for one, and say what the failure of each server would cost
    #[arg(long, value_name = "PLAN.json", conflicts_with = "from")]
    check: Option<String>,
    /// Move as little as possible from this plan: what changed, and chains whose server failed
    #[arg(long, value_name = "PLAN.json", conflicts_with = "objective")]
    from: Option<String>,
    /// A server that failed
    #[arg(long, value_name = "SERVER", requires = "from")]
    down: Vec<String>,
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

/// What is to be placed, and where.
pub(crate) struct Task {
    pub(crate) problem: Problem,
    /// Whether the manifest asks for max-min fairness.
    is_fair: bool,
    /// What is known of functions that are Click.
    pub(crate) known: Vec<Known>,
    /// The name of the switch.
    name: String,
    /// What it holds.
    pub(crate) switch: CachedSwitch,
    /// The rack.
    pub(crate) rack: Topology,
    /// What it was read from.
    pub(crate) made_of: MadeOf,
    /// The chains, if they are wanted.
    pub(crate) read: Vec<Read>,
}

impl Place {
    /// With which a plan was made.
    pub(crate) fn of(made_of: &MadeOf, limits: Limits) -> Self {
        Self {
            manifest: made_of.manifest.clone(),
            topology: made_of.topology.clone(),
            objective: None,
            policy: String::new(),
            time: Duration::ZERO,
            headroom: made_of.headroom,
            rules: if made_of.lemur { "lemur" } else { "model" }.into(),
            costs: made_of.costs.clone(),
            matrix: false,
            explain: None,
            svg: None,
            theme: Theme::Auto,
            check: None,
            from: None,
            down: Vec::new(),
            output: None,
            json: false,
            limits,
        }
    }

    /// What was read for a plan.
    fn made_of(&self, sources: &Sources) -> Result<MadeOf, Failure> {
        let absolute = |path: &str| {
            let path = std::path::absolute(path).map_err(|why| format!("{path}: {why}"))?;
            Ok::<String, String>(path.to_string_lossy().into_owned())
        };
        let mut digests = BTreeMap::new();
        // Of texts of one name the first is the file; the others were made from it.
        for (name, text) in sources.all() {
            let name = absolute(name)?;
            digests.entry(name).or_insert_with(|| digest(text));
        }
        Ok(MadeOf {
            manifest: absolute(&self.manifest)?,
            topology: absolute(&self.topology)?,
            costs: self.costs.iter().map(|path| absolute(path)).collect::<Result<_, _>>()?,
            headroom: self.headroom,
            lemur: self.rules == "lemur",
            digests,
        })
    }
}

/// A number that is another one if a text changed.
fn digest(text: &str) -> String {
    let chunk = |bytes: &[u8]| bytes.iter().fold(1, |sum: u128, byte| sum << 8 | u128::from(*byte));
    let chunks = text.as_bytes().chunks(15).map(chunk);
    format!("{:016x}", HashFunction::MixedFnv1a.hash(chunks))
}

/// Reads what is to be placed, and where; chains are kept if they are wanted.
pub(crate) fn task(args: &Place, are_wanted: bool) -> Result<Task, Failure> {
    let rack = topology(&args.topology, &args.limits)?;
    let mut sources = Sources::new();
    let mut files = args.limits.disk();
    let file = files.configuration(&mut sources, &args.manifest)?;
    files.configuration(&mut sources, &args.topology)?;
    let text = Arc::clone(sources.text(file));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let mut chains = Chains::new((sources, file, files), &args.limits, &rack, now)?;
    chains.read = are_wanted.then(Vec::new);
    for path in &args.costs {
        if let Err(found) = chains.profile(path) {
            return Err(Failure::of(found, chains.sources));
        }
    }
    let manifest = match Manifest::parse(file, &text, &mut chains) {
        Ok(manifest) => manifest,
        Err(found) => return Err(Failure::of(found, chains.sources)),
    };
    let is_fair = manifest.fair;
    let problem = manifest.on(&rack).map_err(|why| format!("{}: {why}", args.topology))?;
    let replication = if args.rules == "lemur" { Replication::Lemur } else { Replication::Model };
    let problem = Problem { headroom: args.headroom, replication, ..problem };
    let mut tables = std::mem::take(&mut chains.tables);
    let switch = CachedSwitch::new(chains.switch(), &problem, &mut tables);
    let made_of = args.made_of(&chains.sources)?;
    let read = chains.read.unwrap_or_default();
    let mut known = chains.known;
    // What the manifest says by hand goes before what was found.
    for known in &mut known {
        let chain = problem.chains.iter().find(|chain| chain.name == known.chain);
        let function =
            chain.and_then(|chain| chain.functions.iter().find(|of| of.name == known.function));
        if let Some(function) = function
            && function.core_cycles != known.cycles
        {
            known.cycles = function.core_cycles;
            known.is_guess &= function.waits > 0.0;
            known.cost = match function.waits > 0.0 {
                true => format!("{}, with hops to its process and back", known.cost),
                false => "as the manifest says".into(),
            };
        }
    }
    let name = rack.switches.keys().next().cloned().unwrap_or_default();
    Ok(Task { problem, is_fair, known, name, switch, rack, made_of, read })
}

/// Warns of guesses that SLOs rest on.
fn warn(known: &[Known]) {
    let guessed: Vec<&Known> = known.iter().filter(|of| of.is_guess).collect();
    let Some(first) = guessed.first() else { return };
    let (number, verb) = match guessed.len() {
        1 => (format!("{} of {} has", first.function, first.chain), "is"),
        n => (format!("{n} functions, such as {} of {}, have", first.function, first.chain), "are"),
    };
    print_error(&format!(
        "warning: {number} no cost profile and {verb} taken to cost {GUESS} cycles: the rates below rest on that guess. \
         `catena bench CHAIN --costs FILE` measures; --costs FILE reads it\n"
    ));
}

/// A plan that was written.
fn document(args: &Place, path: &String) -> Result<Document, Failure> {
    let mut sources = Sources::new();
    let file = args.limits.disk().configuration(&mut sources, path)?;
    Ok(serde_json::from_str(sources.text(file)).map_err(|why| format!("{path}: {why}"))?)
}

/// A plan, how it was found, and what else there is to say of it.
type Planned = (Plan, String, String);

/// The plan that is asked for.
fn plan(
    args: &Place,
    (problem, switch): (&Problem, &CachedSwitch),
    (down, fair_by_manifest): (&[usize], bool),
) -> Result<Planned, Failure> {
    let (end, interrupted) = (Instant::now() + args.time, interrupt_flag());
    let mut go_on = || Instant::now() < end && !interrupted.load(Ordering::Relaxed);
    if let Some(path) = &args.check {
        let document = document(args, path)?;
        let plan = document.plan(problem).map_err(|why| format!("{path}: {why}"))?;
        // What was written without backups, or by hand, gets them now.
        let mut with = Document::of(problem, &plan, &document.policy);
        with.backups = match document.backups.is_empty() {
            true => change::backups((problem, switch), &plan, &with, &mut go_on),
            false => document.backups,
        };
        let failures = change::failures((problem, switch), (&plan, &with));
        let failures = failures.map_err(|why| format!("{path}: {why}"))?;
        return Ok((plan, document.policy, failures));
    }
    if let Some(path) = &args.from {
        let document = document(args, path)?;
        let (plan, steps) = change::next((problem, switch), &document, down, &mut go_on)?;
        return Ok((plan, args.policy.clone(), steps));
    }
    let policy = Policy::named(&args.policy).unwrap_or(Policy::Improved);
    let is_fair = args.objective.as_ref().map_or(fair_by_manifest, |of| of == "fair");
    if is_fair && policy != Policy::Improved {
        return Err("--objective fair: `improved` is the only policy for it".to_string().into());
    }
    let found = match is_fair {
        true => fair(problem, switch, &mut go_on),
        false => place(problem, switch, policy, &mut go_on),
    };
    let plan = found.map_err(|why| {
        let conflicts =
            matches!(why, NotPlaced::Infeasible | NotPlaced::Alone(_) | NotPlaced::Switch(_));
        let end = Instant::now() + args.time.max(EXPLAINING);
        let mut go_on = || Instant::now() < end && !interrupted.load(Ordering::Relaxed);
        let explained = conflicts.then(|| explain(problem, switch, &mut go_on)).flatten();
        let explained = explained.map(|of| format!("\n{}", of.words(problem)));
        format!("{policy}: {}{}", why.words(problem), explained.unwrap_or_default())
    })?;
    Ok((plan, args.policy.clone(), String::new()))
}

/// Runs the command.
pub(crate) fn main(args: &Place) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.svg {
        outputs::check(path).map_err(|why| format!("--svg: {why}"))?;
    }
    let Task { problem, is_fair, known, name, switch, made_of, .. } = task(args, false)?;
    if args.matrix {
        let matrix = Matrix { known: &known };
        match args.json {
            true => print(&format!("{:#}\n", matrix.to_json())),
            false => print(&matrix.text(Paint(colours(&stdout())))),
        }
        return Ok(ExitCode::SUCCESS);
    }
    warn(&known);
    let down = change::down(&problem, &args.down)?;
    let problem = without_hosts(&problem, &down);
    let (plan, policy, more) = plan(args, (&problem, &switch), (&down, is_fair))?;
    let slacks = check(&problem, &switch, &plan)
        .map_err(|wrong| format!("the plan does not hold:\n  {}", wrong.join("\n  ")))?;
    let mut document = Document::of(&problem, &plan, &policy);
    document.made_of = Some(made_of);
    if args.output.is_some() {
        let (end, interrupted) = (Instant::now() + args.time, interrupt_flag());
        let mut go_on = || Instant::now() < end && !interrupted.load(Ordering::Relaxed);
        document.backups = change::backups((&problem, &switch), &plan, &document, &mut go_on);
        if let Some(left_out) = change::left_out(&problem, &document.backups) {
            print_error(&format!("warning: {left_out}\n"));
        }
    }
    let text = format!("{:#}\n", json!(document));
    if let Some(path) = &args.output {
        guarded_path::write(path, text.as_bytes())
            .map_err(|why| format!("{}: {why}", path.display()))?;
    }
    if let Some(path) = &args.svg {
        let what = (&problem, &plan, &slacks[..]);
        let drawn = view::rack::draw(what, (&args.manifest, &name), args.theme);
        outputs::write(path, drawn).map_err(|why| format!("--svg: {why}"))?;
    }
    if args.json {
        let slack = |slack: &placement::Slack| json!({"what": slack.what, "used": slack.used, "limit": slack.limit, "unit": slack.unit});
        let constraints: Vec<_> = slacks.iter().map(slack).collect();
        print(&format!("{:#}\n", json!({"plan": document, "constraints": constraints})));
    } else {
        let (known, paint) = (&known[..], Paint(colours(&stdout())));
        let shown =
            Placement { problem: &problem, plan: &plan, slacks: &slacks, known, switch: &switch };
        let text = match &args.explain {
            None => shown.text(paint),
            Some(chain) => shown.explain(chain, paint).ok_or_else(|| {
                let names = problem.chains.iter().map(|chain| chain.name.as_str());
                let near = nearest(chain, names).map(|near| format!(": did you mean '{near}'?"));
                format!("--explain: there is no chain '{chain}'{}", near.unwrap_or_default())
            })?,
        };
        print(&text);
        if !more.is_empty() {
            print(&format!("\n{more}"));
        }
    }
    Ok(ExitCode::SUCCESS)
}
