//! `catena deploy`: a plan on the devices of its topology.

mod chains;
mod server;
mod status;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use clap::Args;
use dataplane::guarded_path;
use host::{Failure as Unmade, Journal, Opened};
use ir::Sources;
use ir::quantity::{self, Unit};
use placement::{Document, MadeOf, check};

use crate::commands::compile::Rack;
use crate::commands::offload::{self, Offload};
use crate::commands::place::{self, Place, Task};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::signals::interrupt_flag;
use crate::terminal::{print, print_error};
use chains::Joint;
use status::State;

/// Install a plan on the devices of its topology, and run its servers
///
/// The switch is given its parts of all chains at once, and each server runs what is left to cores, on as many of them as are
/// planned. If anything fails, all that was installed is taken back. A plan is refused if its chains, topology or cost
/// profiles are not those that it was made of, and if the switch cannot do what it counts on.
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
    /// The name of the plan's file, by which the switch knows what is installed.
    name: String,
}

impl Home {
    fn of(plan: &str) -> Result<Self, String> {
        let name = Path::new(plan).file_stem().and_then(|name| name.to_str());
        match name.filter(|name| !name.starts_with('.') && *name != "-") {
            Some(name) => Ok(Self { folder: Path::new(FOLDER).join(name), name: name.into() }),
            None => Err(format!("{plan}: a deployment has the name of its plan's file")),
        }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }

    /// The chains as one.
    fn chain(&self) -> String {
        self.file(&format!("{}.click", self.name))
    }

    /// The topology as it was.
    fn topology(&self) -> String {
        self.file("rack.yaml")
    }
}

fn words(why: &Unmade) -> Failure {
    why.to_string().into()
}

/// Runs the command.
pub(crate) fn main(args: &Deploy) -> Result<ExitCode, Failure> {
    let at = Home::of(&args.plan)?;
    if args.status {
        return status::show(&at.folder, args.period, args.json);
    }
    let again = format!("`catena deploy {} --down` takes it back", args.plan);
    let opened = match Journal::open(&at.folder) {
        Err(Unmade::Held(_, Some(process))) => {
            return Err(format!("the plan is being deployed by process {process}").into());
        }
        other => other.map_err(|why| words(&why))?,
    };
    match opened {
        Opened::There(_) if !args.down => {
            return Err(format!("the plan is deployed already: {again}").into());
        }
        Opened::Nothing if args.down => print("nothing of this plan is installed\n"),
        Opened::Nothing => {}
        Opened::There(journal) | Opened::Left(journal) => {
            if !args.down {
                print_error(
                    "an earlier deployment was cut short: what it installed is taken back\n",
                );
            }
            take_back(journal, &at, args)?;
        }
    }
    if args.down {
        return Ok(ExitCode::SUCCESS);
    }
    deploy(args, &at, &again)
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

/// Reads a plan that was written.
fn document(args: &Deploy) -> Result<Document, Failure> {
    let mut sources = Sources::new();
    let file = args.limits.disk().configuration(&mut sources, &args.plan)?;
    let document = serde_json::from_str(sources.text(file));
    Ok(document.map_err(|why| format!("{}: {why}", args.plan))?)
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

fn deploy(args: &Deploy, at: &Home, again: &str) -> Result<ExitCode, Failure> {
    let path = &args.plan;
    let document = document(args)?;
    let Some(made_of) = &document.made_of else {
        return Err(format!(
            "{path}: it does not say which files it was made of: write it anew with `catena place … -o`"
        )
        .into());
    };
    // Files that chains name are looked for beside the manifest.
    let beside = Path::new(&made_of.manifest).parent().unwrap_or(Path::new("/"));
    std::env::set_current_dir(beside).map_err(|why| format!("{}: {why}", beside.display()))?;
    let task = place::task(&Place::of(made_of, args.limits), true)?;
    let place_anew = "place anew with `catena place`";
    let differ = differences(made_of, &task.made_of);
    if !differ.is_empty() {
        let differ = differ.join(", ");
        return Err(
            format!("{path}: the plan is for something else: {differ}; {place_anew}").into()
        );
    }
    let Task { problem, rack, read, .. } = &task;
    let plan = document.plan(problem).map_err(|why| format!("{path}: {why}; {place_anew}"))?;
    check(problem, &task.switch, &plan)
        .map_err(|wrong| format!("{path}: the plan does not hold:\n  {}", wrong.join("\n  ")))?;
    let joint = Joint::of(read).map_err(|wrong| wrong.join("\nerror: "))?;
    // Before anything is there, all is known that can be known.
    let flag = interrupt_flag();
    let mut journal = Journal::begin(&at.folder).map_err(|why| words(&why))?;
    let installed = (|| {
        let write = |path: &str, text: &str| {
            guarded_path::write(path.as_ref(), text.as_bytes())
                .map_err(|why| format!("{path}: {why}"))
        };
        write(&at.chain(), &joint.joined.text)?;
        let text = std::fs::read_to_string(&made_of.topology)
            .map_err(|why| format!("{}: {why}", made_of.topology))?;
        write(&at.topology(), &text)?;
        let (loaded, of) = Rack::load(&at.topology(), &args.limits, &[], &at.chain())?;
        let compiled = Arc::new(of.sited.compile(&loaded, None)?);
        let lacks = joint.lacks(problem, &plan, &of.switch, (&loaded, &compiled));
        if !lacks.is_empty() {
            let lacks = lacks.join("\n  ");
            return Err(Failure::from(format!(
                "{path}: the plan counts on what '{}' does not do; nothing is installed:\n  {lacks}",
                of.switch
            )));
        }
        let install = Offload::installing(&at.chain(), &at.topology(), args.limits);
        install.run(&loaded, &of, &compiled)?;
        let state = State::of(problem, &plan, &joint, rack);
        let state = server::start_all(&journal, at, state, args.io.as_deref(), &|| {
            flag.load(Ordering::Relaxed)
        })?;
        write(&at.file(status::FILE), &state.to_text())?;
        Ok(state)
    })();
    let state = match installed {
        Ok(state) => state,
        Err(why) => {
            print_error("what was installed is taken back\n");
            take_back(journal, at, args)?;
            return Err(why);
        }
    };
    journal.stay().map_err(|why| words(&why))?;
    print(&format!("{}{again}\n", state.text()));
    Ok(ExitCode::SUCCESS)
}
