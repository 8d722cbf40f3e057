//! `catena deploy`: a plan on the devices of its topology.

mod chains;
mod change;
mod measure;
mod part;
mod rack;
mod server;
mod status;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use clap::Args;
use compiler::partition::Compiled;
use dataplane::guarded_path;
use engine::Disk;
use host::{Failure as Unmade, Journal, Opened, Process};
use ir::Sources;
use ir::quantity::{self, Unit};
use placement::{Document, MadeOf, Plan, check, without_hosts};

use crate::commands::compile::Rack;
use crate::commands::offload::{self, Offload};
use crate::commands::place::{self, Place, Task};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::loaded::Loaded;
use crate::signals::interrupt_flag;
use crate::terminal::{print, print_error};
use chains::Joint;
use change::Change;
pub(crate) use measure::Deployed;
use status::State;

/// Install a plan on the devices of its topology, and run its servers
///
/// The switch is given its parts of all chains at once, and each server runs the functions that are planned there, on as many
/// cores as are planned. If anything fails, all that was installed is taken back. A plan is refused if its chains, topology or
/// cost profiles are not those that it was made of, and if the switch cannot do what it counts on.
///
/// A rack has one plan: another one for the same topology replaces what is deployed. Servers that do the same by both
/// run on, with their flows.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Deploy {
    /// The plan, as `catena place -o` writes it
    plan: String,
    /// Show what each chain was planned to get and what it gets, and what is off; status 1 if a chain falls short
    #[arg(long)]
    status: bool,
    /// Take back what the plan installed
    #[arg(long, conflicts_with = "status")]
    down: bool,
    /// Deploy the plan's backup for the failure of this server
    #[arg(long, value_name = "SERVER", conflicts_with_all = ["status", "down"])]
    failed: Option<String>,
    /// How long rates are measured
    #[arg(long = "for", value_name = "TIME", default_value = "1 s", requires = "status", value_parser = time)]
    period: Duration,
    /// I/O mode of the servers' interfaces, as `catena run --io` has it
    #[arg(long, value_name = "MODE")]
    io: Option<String>,
    /// Print JSON
    #[arg(long, requires = "status")]
    pub(crate) json: bool,
    #[command(flatten)]
    limits: Limits,
}

fn time(text: &str) -> Result<Duration, String> {
    let seconds = quantity::parse(text, Unit::Time)?;
    match seconds > 0.0 && seconds <= 3600.0 {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err("up to an hour".into()),
    }
}

/// Where journals of deployments are.
const FOLDER: &str = "/run/catena/deploy";

/// The folder of a deployment, and its files.
struct Home {
    folder: PathBuf,
    /// The name of the topology's file, by which the switch knows what is installed.
    name: String,
}

impl Home {
    fn of(topology: &str) -> Result<Self, String> {
        let name = Path::new(topology).file_stem().and_then(|name| name.to_str());
        match name.filter(|name| !name.starts_with('.') && *name != "-") {
            Some(name) => Ok(Self { folder: Path::new(FOLDER).join(name), name: name.into() }),
            None => Err(format!("{topology}: a deployment has the name of its topology's file")),
        }
    }

    /// A place for files until it is decided that they are deployed.
    fn before(&self) -> Self {
        let own = format!(".{}.{}", self.name, std::process::id());
        let folder = Path::new(FOLDER).join(own);
        Self { folder, name: self.name.clone() }
    }

    /// Removes such of processes that were killed with theirs.
    fn remove_stale(&self) {
        let prefix = format!(".{}.", self.name);
        for entry in std::fs::read_dir(FOLDER).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let process = name.to_str().and_then(|name| name.strip_prefix(&prefix));
            let process = process.and_then(|process| process.parse::<u32>().ok());
            if process.is_some_and(|process| Process::has_ended_in(process, Duration::ZERO)) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// The chains as one.
    fn chain(&self) -> String {
        self.file(&format!("{}.click", self.name))
    }

    /// The plan.
    fn plan(&self) -> String {
        self.file("plan.json")
    }

    /// The topology, with what each server runs.
    fn topology(&self) -> String {
        self.file("rack.yaml")
    }
}

fn words(why: &Unmade) -> Failure {
    why.to_string().into()
}

/// Runs the command.
pub(crate) fn main(args: &Deploy) -> Result<ExitCode, Failure> {
    let path = &args.plan;
    let (text, document) = document(path, &args.limits.disk())?;
    let Some(made_of) = &document.made_of else { return Err(unknown_files(path).into()) };
    let at = Home::of(&made_of.topology)?;
    let deployed = State::read(&at.folder);
    if let Ok(Some(State { topology, .. })) = &deployed
        && *topology != made_of.topology
    {
        return Err(format!(
            "{path}: a plan for {topology} is deployed by the name '{}', which this plan's topology has, too: rename one of both files",
            at.name
        )
        .into());
    }
    if args.status {
        return measure::show(&at.folder, args.period, args.json);
    }
    let there = match Journal::open(&at.folder) {
        Err(Unmade::Held(_, Some(process))) => {
            return Err(format!("a plan is being deployed there by process {process}").into());
        }
        other => other.map_err(|why| words(&why))?,
    };
    let there = match there {
        Opened::Nothing => None,
        Opened::There(journal) if !args.down => Some(journal),
        Opened::There(journal) | Opened::Left(journal) => {
            if !args.down {
                print_error(
                    "an earlier deployment was cut short: what it installed is taken back\n",
                );
            }
            take_back(journal, &at, args)?;
            if args.down {
                return Ok(ExitCode::SUCCESS);
            }
            None
        }
    };
    if args.down {
        print("nothing is deployed there\n");
        return Ok(ExitCode::SUCCESS);
    }
    let again = format!("`catena deploy {path} --down` takes it back");
    let deployed = deployed?;
    if let (Some(journal), Some(state)) = (&there, &deployed)
        && state.failed == args.failed
        && std::fs::read_to_string(at.plan()).is_ok_and(|deployed| deployed == text)
        && state.is_running(journal)
    {
        return Err(format!("the plan is deployed already: {again}").into());
    }
    let there = there.map(|journal| (journal, deployed));
    deploy(args, (&text, &document, made_of), &at, (there, &again))
}

/// The deployment of a plan, to be watched.
///
/// # Errors
/// If the plan cannot be read, or nothing of its rack is deployed.
pub(crate) fn deployed(plan: &str) -> Result<Deployed, Failure> {
    let (_, document) = document(plan, &Disk::default())?;
    let made_of = document.made_of.ok_or_else(|| unknown_files(plan))?;
    Deployed::open(&Home::of(&made_of.topology)?.folder)
}

/// Takes back what was installed: entries first, so that nothing is handed to servers that are gone.
fn take_back(journal: Journal, at: &Home, args: &Deploy) -> Result<(), Failure> {
    if Path::new(&at.topology()).exists() {
        let remove = Offload::removing(&at.chain(), &at.topology(), args.limits);
        if let Err(why) = offload::main(&remove) {
            // A switch that is gone has nothing any more; servers end all the same.
            print_error(&format!("warning: {}\n", why.text(false).trim_end()));
        }
    }
    let gone = journal.take_down().map_err(|why| words(&why))?;
    print(&format!("{} of servers ended\n", super::lab::counted(gone.processes, "process")));
    Ok(())
}

fn unknown_files(path: &str) -> String {
    format!(
        "{path}: it does not say which files it was made of: write it anew with `catena place … -o`"
    )
}

/// Reads a plan that was written: its text, and what that says.
fn document(plan: &str, disk: &Disk) -> Result<(String, Document), Failure> {
    let mut sources = Sources::new();
    let file = disk.clone().configuration(&mut sources, plan)?;
    let text = sources.text(file).to_string();
    let document = serde_json::from_str(&text).map_err(|why| format!("{plan}: {why}"))?;
    Ok((text, document))
}

/// In what files differ from those that a plan was made of.
fn differences(plan: &MadeOf, now: &MadeOf) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, digest) in &plan.digests {
        match now.digests.get(file) {
            None => wrong.push(format!("{file} is not read any more")),
            Some(now) if now != digest => wrong.push(format!("{file} changed")),
            Some(_) => {}
        }
    }
    let more = now.digests.keys().filter(|file| !plan.digests.contains_key(*file));
    wrong.extend(more.map(|file| format!("{file} is read, too")));
    wrong
}

/// A plan whose files are as they were, and that holds.
fn planned(
    (path, failed): (&str, Option<&String>),
    document: &Document,
    made_of: &MadeOf,
    limits: Limits,
) -> Result<(Task, Plan), Failure> {
    // Files that chains name are looked for beside the manifest.
    let beside = Path::new(&made_of.manifest).parent().unwrap_or(Path::new("/"));
    std::env::set_current_dir(beside).map_err(|why| format!("{}: {why}", beside.display()))?;
    let task = place::task(&Place::of(made_of, limits), true)?;
    let place_anew = "place anew with `catena place`";
    let differ = differences(made_of, &task.made_of);
    if !differ.is_empty() {
        let differ = differ.join(", ");
        return Err(
            format!("{path}: the plan is for something else: {differ}; {place_anew}").into()
        );
    }
    let (plan, problem) = match failed {
        None => (document.plan(&task.problem), task.problem.clone()),
        Some(server) => {
            let at = task.problem.hosts.iter().position(|host| host.name == *server);
            let next = at.and_then(|at| Some((document.after(&task.problem, server)?, at)));
            let none = || format!("{path}: the plan has no backup for the failure of '{server}'");
            let (next, at) = next.ok_or_else(none)?;
            (next, without_hosts(&task.problem, &[at]))
        }
    };
    let plan = plan.map_err(|why| format!("{path}: {why}; {place_anew}"))?;
    check(&problem, &task.switch, &plan)
        .map_err(|wrong| format!("{path}: the plan does not hold:\n  {}", wrong.join("\n  ")))?;
    Ok((task, plan))
}

/// Writes the chains as one, and the rack that they run on.
fn write(at: &Home, chain: &str, rack: &str) -> Result<(), Failure> {
    for (path, text) in [(at.chain(), chain), (at.topology(), rack)] {
        guarded_path::write(path.as_ref(), text.as_bytes())
            .map_err(|why| format!("{path}: {why}"))?;
    }
    Ok(())
}

/// The chains as one, compiled for the switch: what it does of them is known before anything is touched.
fn compiled(
    at: &Home,
    joint: &Joint<'_>,
    rack: &str,
    limits: &Limits,
) -> Result<(Loaded, Rack, Arc<Compiled>), Failure> {
    at.remove_stale();
    let before = at.before();
    std::fs::create_dir_all(&before.folder)
        .map_err(|why| format!("{}: {why}", before.folder.display()))?;
    let made = (|| {
        write(&before, &joint.joined.text, rack)?;
        let (loaded, of) = Rack::load(&before.topology(), limits, &[], &before.chain())?;
        let compiled = Arc::new(of.sited.compile(&loaded, None)?);
        Ok((loaded, of, compiled))
    })();
    let _ = std::fs::remove_dir_all(&before.folder);
    made
}

fn deploy(
    args: &Deploy,
    (text, document, made_of): (&str, &Document, &MadeOf),
    at: &Home,
    (there, again): (Option<(Journal, Option<State>)>, &str),
) -> Result<ExitCode, Failure> {
    let path = &args.plan;
    let (task, plan) = planned((path, args.failed.as_ref()), document, made_of, args.limits)?;
    rack::check(&task.rack).map_err(|why| format!("{}: {why}", made_of.topology))?;
    let joint = Joint::of(&task, &plan).map_err(|wrong| wrong.join("\nerror: "))?;
    let mut state = State::of(&task, &plan, &joint);
    state.topology.clone_from(&made_of.topology);
    state.failed.clone_from(&args.failed);
    if let Some((_, Some(before))) = &there
        && before.control != state.control
    {
        let control = before.control.as_deref().unwrap_or("no switch");
        return Err(
            format!("a plan is deployed on another switch, at {control}: {again} first").into()
        );
    }
    // What keeps its meaning keeps its number.
    let known = match &there {
        Some((_, Some(before))) => before.tags.clone(),
        _ => BTreeMap::new(),
    };
    let text_of = |state: &State, tags| rack::text(&task.rack, &joint, state, tags);
    let none = BTreeMap::new();
    let made = compiled(at, &joint, &text_of(&state, &known), &args.limits);
    let (loaded, of, compiled) = match made {
        // There may be too few numbers.
        Err(_) if !known.is_empty() => compiled(at, &joint, &text_of(&state, &none), &args.limits)?,
        made => made?,
    };
    state.tags = part::tags(&loaded, &of, &compiled);
    let rack = text_of(&state, &state.tags);
    let parts = part::parts(&joint, (&loaded, &of, &compiled));
    state.io.clone_from(&args.io);
    state.folder = std::env::current_dir().unwrap_or_default();
    for server in &mut state.servers {
        let mut all = of.sited.site.servers.iter();
        let there = all.find(|there| there.port.device == server.name);
        server.interface = there.map_or(String::new(), |there| there.port.port.clone());
        server.part = parts.get(&server.name).cloned().unwrap_or_default();
    }
    let lacks =
        joint.lacks(&task.problem, &plan, (&of.switch, &of.sited.site), (&loaded, &compiled));
    if !lacks.is_empty() {
        let lacks = lacks.join("\n  ");
        return Err(Failure::from(format!(
            "{path}: the plan counts on what '{}' does not do; nothing is installed:\n  {lacks}",
            of.switch
        )));
    }
    // From here on, something is changed. The switch keeps the entries that are the same.
    let flag = interrupt_flag();
    let (mut former, mut change) = (None, Change::default());
    let mut journal = match there {
        None => Journal::begin(&at.folder).map_err(|why| words(&why))?,
        Some((mut journal, before)) => {
            if let Some(mut before) = before {
                before.forget_ended(&journal);
                change = Change::of(&mut state, &before);
                former = Some(Former::read(at, before)?);
            }
            journal.change(&change.former()).map_err(|why| words(&why))?;
            print("another plan was deployed\n");
            journal
        }
    };
    let is_interrupted = || flag.load(Ordering::Relaxed);
    let how = (args.io.as_deref(), &is_interrupted as &dyn Fn() -> bool);
    let installed = (|| {
        write(at, &joint.joined.text, &rack)?;
        change.begin((&mut journal, at), &mut state, how)?;
        if is_interrupted() {
            return Err("interrupted".to_string().into());
        }
        let install = Offload::installing(&at.chain(), &at.topology(), args.limits);
        install.run(&loaded, &of, &compiled)?;
        change.end((&mut journal, at), &mut state, how)?;
        print(&change.untouched());
        settle(at, &state, text)
    })();
    let Err(why) = installed else {
        journal.stay().map_err(|why| words(&why))?;
        print(&format!("{}{again}\n", state.text()));
        return Ok(ExitCode::SUCCESS);
    };
    if let Some(former) = former {
        print_error("the plan that was there is deployed again\n");
        match former.restore(at, &mut journal, (&change, args.limits)) {
            Ok(()) => return Err(why),
            Err(why) => print_error(&format!("warning: {}\n", why.text(false).trim_end())),
        }
    }
    print_error("what was installed is taken back\n");
    take_back(journal, at, args)?;
    Err(why)
}

/// Writes what is deployed. Servers look at the topology again when it is written: the switch has it now.
fn settle(at: &Home, state: &State, plan: &str) -> Result<(), Failure> {
    let written = std::fs::File::options().write(true).open(at.topology());
    let _ = written.and_then(|file| file.set_modified(SystemTime::now()));
    for (path, text) in [(at.file(status::FILE), &*state.to_text()), (at.plan(), plan)] {
        guarded_path::write(path.as_ref(), text.as_bytes())
            .map_err(|why| format!("{path}: {why}"))?;
    }
    Ok(())
}

/// A deployment that another one replaces.
struct Former {
    state: State,
    chain: String,
    rack: String,
    plan: String,
}

impl Former {
    fn read(at: &Home, state: State) -> Result<Self, Failure> {
        let [chain, rack, plan] = [at.chain(), at.topology(), at.plan()]
            .map(|path| std::fs::read_to_string(&path).map_err(|why| format!("{path}: {why}")));
        Ok(Self { state, chain: chain?, rack: rack?, plan: plan? })
    }

    /// Has it all as it was; servers that still run are not touched, and those that had failed stay away.
    fn restore(
        self,
        at: &Home,
        journal: &mut Journal,
        (change, limits): (&Change, Limits),
    ) -> Result<(), Failure> {
        let Self { mut state, chain, rack, plan } = self;
        let numbers: Vec<u32> = state.servers.iter().map(|server| server.process).collect();
        journal.change(&numbers).map_err(|why| words(&why))?;
        let failed = state.servers.extract_if(.., |server| server.process == 0).collect::<Vec<_>>();
        state.forget_ended(journal);
        write(at, &chain, &rack)?;
        change.swap_back(at);
        let io = state.io.clone();
        server::start_all(journal, at, &mut state, io.as_deref(), &|| false, &|_| true)?;
        offload::main(&Offload::installing(&at.chain(), &at.topology(), limits))?;
        state.servers.extend(failed);
        settle(at, &state, &plan)?;
        journal.stay().map_err(|why| words(&why))
    }
}
