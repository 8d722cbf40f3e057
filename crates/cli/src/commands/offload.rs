//! `catena offload`: what the devices of a rack do of a chain, and installing that on them.

use std::io::stdout;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use codegen::openflow::{self, Class, Entry};
use compiler::partition::Compiled;
use compiler::prove::Verdict;
use control::openflow::{About, Foreign, Mark, Plan, Site, Switch};
use ir::program::StepId;
use ir::topology::{Address, PortName, Topology};
use serde_json::{Value, json};
use view::offload::{Counted, Offloaded};
use view::paint::Paint;

use super::compile::{Rack, origin, shares, topology};
use crate::failure::Failure;
use crate::limits::Limits;
use crate::loaded::{Loaded, load};
use crate::terminal::{colours, print, print_error};

/// How long a switch may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Entries that are shown one by one, unless all are asked for.
const SHOWN: usize = 12;

/// Show what a rack's devices do of a chain, or install it on them
///
/// Without an option, the split is shown: what the switch does of each traffic class, what frames carry
/// between switch and cores, and what is left to cores. Nothing is touched.
///
/// --install gives the switch its flow entries in one bundle: all of them, or nothing if it refuses one.
/// Of what it has already, only what differs is changed. Entries of others are never touched.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Offload {
    /// Configuration file; `-` for standard input
    file: String,
    /// Values of variables of the configuration
    #[arg(value_name = "VAR=VALUE")]
    variables: Vec<String>,
    /// The rack; `control:` of its switch says where that listens
    #[arg(long, value_name = "FILE.yaml")]
    topology: String,
    #[command(flatten)]
    action: Action,
    /// Count where the packets of a capture are taken care of; WIRE is the device or file that they come from
    #[arg(long, value_name = "[WIRE=]FILE.pcap")]
    traffic: Vec<String>,
    /// Also install what is given up to be proven
    #[arg(long, requires = "install")]
    unproven: bool,
    /// Number of classes, tags and entries shown; 0 for all
    #[arg(long, value_name = "N", default_value_t = SHOWN)]
    limit: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    limits: Limits,
}

/// What is done with the switch.
#[derive(Args, Debug)]
#[group(multiple = false)]
struct Action {
    /// Give the switch what it lacks, and take away what it has too much
    #[arg(long)]
    install: bool,
    /// Show what --install would change; status 1 if that is anything
    #[arg(long)]
    diff: bool,
    /// Show what is installed, how many packets of each class the switch took, and what was changed by others; status 1 if
    /// the switch has not what it should have
    #[arg(long)]
    status: bool,
    /// Take the chain's entries away, and no others
    #[arg(long)]
    remove: bool,
}

/// What a chain's entries are known by: the name of its file, without folder and ending.
fn mark(file: &str) -> Mark {
    let name = Path::new(file).file_stem().map(|name| name.to_string_lossy());
    Mark::of(name.as_deref().unwrap_or(file))
}

/// A switch that is reached.
struct Reached<'a> {
    name: &'a str,
    address: &'a Address,
    switch: Switch,
}

/// The switches of a topology that say where they listen, and of these the one of that name only.
fn reach<'a>(
    path: &str,
    topology: &'a Topology,
    only: Option<&str>,
) -> Result<Vec<Reached<'a>>, Failure> {
    let mut all = Vec::new();
    for (name, switch) in &topology.switches {
        let (Some(address), true) = (&switch.control, only.is_none_or(|only| only == name)) else {
            continue;
        };
        let switch = Switch::connect(address, PATIENCE);
        let switch = switch.map_err(|why| format!("{path}: '{name}' at {address}: {why}"))?;
        all.push(Reached { name, address, switch });
    }
    match all.is_empty() {
        false => Ok(all),
        true => {
            let which = only.map_or("no switch".into(), |name| format!("'{name}' does not"));
            let says = if only.is_some() { "say" } else { "says" };
            Err(format!(
                "{path}: {which} {says} where it listens: add `control: unix:/var/run/openvswitch/BRIDGE.mgmt` or \
                 `control: tcp:HOST:6653` to it"
            )
            .into())
        }
    }
}

/// A chain that was compiled for the switch of a rack.
struct Split<'a> {
    args: &'a Offload,
    loaded: &'a Loaded,
    rack: &'a Rack,
    compiled: &'a Compiled,
}

/// Runs the command.
pub(crate) fn main(args: &Offload) -> Result<ExitCode, Failure> {
    if args.action.remove {
        // A chain that can no longer be compiled can be removed.
        return remove(args);
    }
    let loaded = load(&args.limits, &args.variables, &args.file)?;
    let rack = Rack::load(&args.topology, &loaded, &args.limits)?;
    let compiled = rack.sited.compile(&loaded, None)?;
    let split = Split { args, loaded: &loaded, rack: &rack, compiled: &compiled };
    match &args.action {
        Action { install: true, .. } => split.install(),
        Action { diff: true, .. } => split.diff(),
        Action { status: true, .. } => split.status(),
        _ => split.show(),
    }
}

/// `--remove`.
fn remove(args: &Offload) -> Result<ExitCode, Failure> {
    let topology = topology(&args.topology, &args.limits)?;
    let mut documents = Vec::new();
    for Reached { name, address, mut switch } in reach(&args.topology, &topology, None)? {
        let removed = switch.remove(mark(&args.file));
        let removed = removed.map_err(|why| format!("'{name}' at {address}: {why}"))?;
        match args.json {
            true => documents.push(json!({ "switch": name, "removed": removed })),
            false => print(&format!("{name} ({address}): {} removed\n", entries(removed))),
        }
    }
    if args.json {
        print(&format!("{:#}\n", Value::Array(documents)));
    }
    Ok(ExitCode::SUCCESS)
}

/// `1 entry`, `2 entries`.
fn entries(count: usize) -> String {
    if count == 1 { "1 entry".into() } else { format!("{count} entries") }
}

impl Split<'_> {
    fn paint(&self) -> Paint {
        Paint(colours(&stdout()))
    }

    fn server(&self) -> String {
        let name = |port: &PortName| format!("{}.{}", port.device, port.port);
        self.rack.sited.site.server.as_ref().map(name).unwrap_or_default()
    }

    /// Without an option.
    fn show(&self) -> Result<ExitCode, Failure> {
        let shares = shares(&self.args.traffic, self.compiled)?;
        let offloaded = self.offloaded(&shares);
        match self.args.json {
            true => {
                let mut json = offloaded.to_json();
                json["switch"] = self.rack.switch.clone().into();
                json["server"] = self.server().into();
                json["tags"] = offloaded.tags_json();
                print(&format!("{json:#}\n"));
            }
            false => {
                let (limit, paint) = (self.args.limit, self.paint());
                let tags = offloaded.tags(&self.server(), limit, paint);
                print(&format!("{}\n{tags}", offloaded.text(limit, paint)));
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn offloaded<'a>(&'a self, shares: &'a [Option<compiler::partition::Share>]) -> Offloaded<'a> {
        let Loaded { sources, chain, models, .. } = self.loaded;
        let target = &self.rack.switch;
        Offloaded { chain, sources, models, target, compiled: self.compiled, shares }
    }

    /// The entries that the switch shall have: those that were proven.
    fn entries(&self) -> Result<Vec<Entry>, Failure> {
        let Loaded { sources, chain, .. } = self.loaded;
        let target = self.rack.sited.target.name();
        let origin = origin(chain, sources);
        let device = self.compiled.device(&origin);
        let none = || {
            format!("'{target}' is nothing that is installed: load what `catena compile` writes")
        };
        let entries = openflow::entries(target, &device).ok_or_else(none)?;
        let entries = entries.map_err(|(_, _, lack)| format!("{target}: {lack}"))?;
        let proven =
            |text: String| self.compiled.files.iter().any(|file| file.contents == text.as_bytes());
        match openflow::text(target, &entries).is_some_and(proven) {
            true => Ok(entries),
            false => {
                Err("what would be installed is not what was proven; this is a fault of Catena's"
                    .to_string()
                    .into())
            }
        }
    }

    /// That the switch and cores together do what the chain does.
    fn proven(&self) -> Result<(), Failure> {
        for part in &self.compiled.parts {
            match &part.proof.together.verdict {
                Verdict::Equal => {}
                Verdict::Unproven(_) if self.args.unproven => {}
                Verdict::Unproven(why) => {
                    return Err(format!(
                        "what the switch would be given is not proven to do what the chain does ({why}); it is installed only \
                         with --unproven"
                    )
                    .into());
                }
                Verdict::Different(_) => {
                    return Err(
                        "what the switch would be given does not do what the chain does; nothing is installed. `catena verify \
                         --topology` shows a packet"
                            .to_string()
                            .into(),
                    );
                }
            }
        }
        Ok(())
    }

    /// The switch, which has to be what the topology says.
    fn reach(&self, entries: &[Entry]) -> Result<Reached<'_>, Failure> {
        let Rack { topology, switch, sited } = self.rack;
        let path = &self.args.topology;
        let reached = reach(path, topology, Some(switch))?.into_iter().next();
        let reached = reached.ok_or_else(|| format!("{path}: there is no '{switch}'"))?;
        let of = &topology.switches[switch];
        let used = |number: u32| {
            number == sited.site.cores
                || sited.site.ports.values().any(|port| port.number == number)
        };
        let ports = of.ports.iter().filter(|(_, port)| used(port.number));
        let site = Site {
            is_ovs: self.is_ovs(),
            ports: ports.map(|(name, port)| (port.number, format!("{switch}.{name}"))).collect(),
        };
        let mut wrong = Vec::new();
        for odd in reached.switch.odd(&site, entries) {
            match odd.is_passing() {
                true => print_error(&format!("warning: {path}: {odd}\n")),
                false => wrong.push(format!("{path}: '{switch}' at {}: {odd}", reached.address)),
            }
        }
        match wrong.is_empty() {
            true => Ok(reached),
            false => Err(wrong.join("\nerror: ").into()),
        }
    }

    fn is_ovs(&self) -> bool {
        self.rack.sited.target.name() == "ovs"
    }

    /// What has to change.
    fn plan(&self, reached: &mut Reached<'_>, entries: Vec<Entry>) -> Result<Plan, Failure> {
        let there = reached.switch.entries().map_err(|why| self.failed(reached, &why))?;
        Ok(Plan::new(there, entries, mark(&self.args.file)))
    }

    fn failed(&self, reached: &Reached<'_>, why: &control::openflow::Failure) -> Failure {
        format!("'{}' at {}: {why}", reached.name, reached.address).into()
    }

    /// Names entries of others that meet the chain's.
    fn warn(&self, plan: &Plan) {
        for foreign in self.some(&plan.foreign) {
            print_error(&format!("warning: {}\n", met(foreign)));
        }
        let more = plan.foreign.len().saturating_sub(self.some(&plan.foreign).len());
        if more > 0 {
            print_error(&format!("warning: and {more} more; --limit 0 shows all\n"));
        }
    }

    fn some<'a, T>(&self, all: &'a [T]) -> &'a [T] {
        match self.args.limit {
            0 => all,
            limit => &all[..limit.min(all.len())],
        }
    }

    /// `--install`.
    fn install(&self) -> Result<ExitCode, Failure> {
        self.proven()?;
        let entries = self.entries()?;
        let mut reached = self.reach(&entries)?;
        let start = Instant::now();
        let plan = self.plan(&mut reached, entries.clone())?;
        self.warn(&plan);
        let apply = |switch: &mut Switch| {
            if self.is_ovs() {
                switch.show_fragments()?;
            }
            if !plan.is_empty() {
                switch.apply(&plan)?;
            }
            Ok(())
        };
        apply(&mut reached.switch).map_err(|why| self.failed(&reached, &why))?;
        let took = start.elapsed();
        // What it has now is read back.
        let left = self.plan(&mut reached, entries)?;
        if !left.is_empty() {
            return Err(format!(
                "'{}' at {}: the switch confirmed, and has {} other than it was given: somebody else changes it",
                reached.name,
                reached.address,
                self::entries(left.add.len() + left.change.len() + left.remove.len()),
            )
            .into());
        }
        if self.args.json {
            print(&format!("{:#}\n", self.plan_json(&reached, &plan)));
        } else {
            print(&format!(
                "{} ({}): {}, in {:.1} ms\n",
                reached.name,
                reached.address,
                summary(&plan),
                took.as_secs_f64() * 1e3
            ));
        }
        Ok(ExitCode::SUCCESS)
    }

    /// `--diff`.
    fn diff(&self) -> Result<ExitCode, Failure> {
        let entries = self.entries()?;
        let mut reached = self.reach(&entries)?;
        let plan = self.plan(&mut reached, entries)?;
        let fragments = self.fragments(&mut reached)?;
        match self.args.json {
            true => print(&format!("{:#}\n", self.plan_json(&reached, &plan))),
            false => {
                self.warn(&plan);
                print(&format!("{} ({}): {}\n", reached.name, reached.address, summary(&plan)));
                self.print_plan(&plan);
                if fragments {
                    print("! first fragments do not show their ports: --install changes that\n");
                }
            }
        }
        Ok(status(plan.is_empty() && !fragments))
    }

    /// Whether the switch treats fragments in another way than the entries need.
    fn fragments(&self, reached: &mut Reached<'_>) -> Result<bool, Failure> {
        match self.is_ovs() {
            false => Ok(false),
            true => {
                let shown = reached.switch.shows_fragments();
                shown.map(|shown| !shown).map_err(|why| self.failed(reached, &why))
            }
        }
    }

    /// `--status`.
    fn status(&self) -> Result<ExitCode, Failure> {
        let entries = self.entries()?;
        let all = entries.len();
        let mut reached = self.reach(&entries)?;
        let plan = self.plan(&mut reached, entries)?;
        let fragments = self.fragments(&mut reached)?;
        let counted = counted(&plan);
        let offloaded = self.offloaded(&[]);
        if self.args.json {
            let mut json = self.plan_json(&reached, &plan);
            json["counted"] = offloaded.counted_json(&counted);
            print(&format!("{json:#}\n"));
            return Ok(status(plan.is_empty() && !fragments));
        }
        self.warn(&plan);
        let About { made, .. } = reached.switch.about();
        let there = plan.stay.len() + plan.change.len();
        let mut text = format!(
            "{} ({}): {there} of {} installed, {} {}\n",
            reached.name,
            reached.address,
            self::entries(all),
            made.hardware,
            made.software,
        );
        text += &offloaded.counted(&counted, self.args.limit, self.paint());
        print(&text);
        if plan.is_all_new() && all > 0 {
            print(
                "! the switch has none of the chain's entries: it was restarted, or they were never installed; --install \
                 puts them there\n",
            );
        } else if !plan.is_empty() {
            print(&format!(
                "! the switch is not as this chain was installed: {}; it was edited, or the chain was. --install sets it \
                 right\n",
                summary(&plan)
            ));
            self.print_plan(&plan);
        }
        if fragments {
            print("! first fragments do not show their ports: --install changes that\n");
        }
        Ok(status(plan.is_empty() && !fragments))
    }

    fn print_plan(&self, plan: &Plan) {
        for flow in self.some(&plan.remove) {
            print(&format!("- {flow}\n"));
        }
        for change in self.some(&plan.change) {
            print(&format!(
                "- {}\n+ {}  # {}\n",
                change.from.flow, change.to.flow, change.to.origin
            ));
        }
        for entry in self.some(&plan.add) {
            print(&format!("+ {}  # {}\n", entry.flow, entry.origin));
        }
        let parts = [plan.remove.len(), plan.change.len(), plan.add.len()];
        let shown = if self.args.limit == 0 { usize::MAX } else { self.args.limit };
        let more: usize = parts.iter().map(|count| count.saturating_sub(shown)).sum();
        if more > 0 {
            print(&format!("  … {more} more; --limit 0 shows all\n"));
        }
    }

    fn plan_json(&self, reached: &Reached<'_>, plan: &Plan) -> Value {
        let entry =
            |entry: &Entry| json!({ "entry": entry.flow.to_string(), "origin": *entry.origin });
        json!({
            "switch": reached.name,
            "address": reached.address.to_string(),
            "added": plan.add.iter().map(entry).collect::<Vec<_>>(),
            "changed": plan.change.iter().map(|change| json!({
                "from": change.from.flow.to_string(),
                "to": change.to.flow.to_string(),
                "origin": *change.to.origin,
            })).collect::<Vec<_>>(),
            "removed": plan.remove.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "same": plan.stay.len(),
            "warnings": plan.foreign.iter().map(met).collect::<Vec<_>>(),
        })
    }
}

fn status(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn summary(plan: &Plan) -> String {
    let renumbered = plan.change.iter().filter(|change| !change.is_of_packets()).count();
    let changed = plan.change.len() - renumbered;
    let mut said = format!(
        "{} added, {changed} changed, {} removed, {} as they were",
        entries(plan.add.len()),
        plan.remove.len(),
        plan.stay.len()
    );
    if renumbered > 0 {
        said += &format!(", {renumbered} counted for another class");
    }
    said
}

/// An entry of others beside the chain's.
fn met(foreign: &Foreign) -> String {
    let whose = match Mark::is_any_on(foreign.stats.flow.cookie) {
        true => "another chain",
        false => "others",
    };
    let what = match (foreign.is_in_the_way(), foreign.comes_first()) {
        (true, _) => "stands where one of the chain's has to stand, of",
        (false, true) => "may take packets before that of",
        (false, false) => "no longer gets the packets of that of",
    };
    format!("an entry of {whose} {what} {}: {}", foreign.meets.origin, foreign.stats.flow)
}

/// Packets by class.
fn counted(plan: &Plan) -> Counted {
    let mut counted = Counted::new();
    let there = plan.stay.iter().chain(plan.change.iter().map(|change| &change.from));
    for stats in there {
        if let Some(Class::Exit(segment, step)) = Class::of(stats.flow.cookie) {
            let sum = counted.entry((segment.into(), StepId(step))).or_default();
            for (sum, more) in sum.iter_mut().zip([stats.packets, stats.bytes]) {
                *sum = sum.saturating_add(more);
            }
        }
    }
    counted
}
