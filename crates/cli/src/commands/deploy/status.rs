//! What was deployed, and what it was planned to give each chain.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use compiler::partition::{is_tag, meter};
use control::openflow::Switch;
use host::Journal;
use ir::topology::Address;
use placement::{Delay, Plan, Site};
use serde::{Deserialize, Serialize};
use serde_json::json;
use view::paint::shown;
use view::placement::rate;
use view::table::Table;

use super::chains::Joint;
use super::part::Part;
use crate::commands::place::Task;
use crate::failure::Failure;

/// The file of the state in the folder of a deployment.
pub(super) const FILE: &str = "state.json";

/// How long the switch may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A greatest rate that a switch can be given.
fn limit(most: f64) -> Option<f64> {
    (most >= 1e3 && most / 1e3 < f64::from(u32::MAX)).then_some(most)
}

/// What was deployed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) chains: Vec<Chain>,
    pub(super) servers: Vec<Server>,
    /// The file of its topology.
    pub(super) topology: String,
    /// Where the switch is asked.
    pub(super) control: Option<String>,
    /// The server whose failure it is the backup for.
    pub(super) failed: Option<String>,
    /// The I/O mode of the servers.
    pub(super) io: Option<String>,
    /// The folder in which their chains' files are looked for.
    #[serde(default)]
    pub(super) folder: PathBuf,
    /// Numbers of tags and meters, by what they mean.
    #[serde(default)]
    pub(super) tags: BTreeMap<String, u16>,
}

/// A chain, and what is planned for it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Chain {
    pub(super) name: String,
    /// What its names begin with in the chains as one.
    pub(super) prefix: String,
    /// Elements that count what comes in.
    pub(super) ingress: Vec<String>,
    /// Elements that send.
    pub(super) egress: Vec<String>,
    /// Bits a second, and the least of them.
    pub(super) rate: f64,
    pub(super) least: f64,
    /// Its greatest rate, if the switch limits it to that.
    pub(super) most: Option<f64>,
    /// Seconds, and how many they may be.
    pub(super) delay: f64,
    pub(super) most_delay: Option<f64>,
    /// Of it, on cores.
    pub(super) on_cores: f64,
    pub(super) functions: Vec<Function>,
}

/// A function of a chain.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Function {
    pub(super) name: String,
    /// The server where it is planned; none on the switch.
    pub(super) on: Option<String>,
    /// The share of the chain's packets that come to it.
    pub(super) share: f64,
    /// What a packet costs on a core, in cycles, and how that is known.
    pub(super) cycles: f64,
    pub(super) cost: String,
}

/// A server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) netns: Option<String>,
    /// Its interface towards the switch.
    pub(super) interface: String,
    /// Cores that are planned, and their cycles a second.
    pub(super) cores: usize,
    pub(super) hertz: f64,
    /// Those that it has.
    pub(super) cpus: Vec<usize>,
    /// Where it is asked.
    pub(super) socket: String,
    /// Its process; 0 if it is not started yet.
    pub(super) process: u32,
    /// What it does.
    #[serde(default)]
    pub(super) part: Part,
}

impl Server {
    /// Has what another has that runs.
    pub(super) fn goes_on(&mut self, of: &Self) {
        self.cpus.clone_from(&of.cpus);
        self.socket.clone_from(&of.socket);
        self.process = of.process;
    }
}

impl State {
    /// Of a plan.
    pub(super) fn of(task: &Task, plan: &Plan, joint: &Joint<'_>) -> Self {
        let Task { problem, known: costs, rack, .. } = task;
        let mut cores: BTreeMap<usize, usize> = BTreeMap::new();
        let mut chains = Vec::new();
        for (at, (chain, placed)) in problem.chains.iter().zip(&plan.chains).enumerate() {
            for (host, count) in placed.cores.iter().flatten() {
                *cores.entry(*host).or_default() += count;
            }
            let delay = Delay::of(problem, chain, &placed.sites);
            let place = |site: &Site| site.host().map(|host| problem.hosts[host].name.clone());
            let known = &joint.chains[at].functions.all;
            let functions = chain.functions.iter().zip(&placed.sites).zip(chain.shares());
            // What stands for wires in a plan is no function.
            let functions =
                functions.filter(|((of, _), _)| known.iter().any(|f| f.name == of.name));
            let function = |((of, site), share): ((&placement::Function, &Site), f64)| {
                let mut costs = costs.iter();
                let cost =
                    costs.find(|known| known.chain == chain.name && known.function == of.name);
                Function {
                    name: of.name.clone(),
                    on: place(site),
                    share,
                    cycles: of.core_cycles,
                    cost: cost.map_or(String::new(), |known| known.cost.clone()),
                }
            };
            let part = &joint.joined.parts[at];
            chains.push(Chain {
                name: chain.name.clone(),
                prefix: part.prefix.clone(),
                ingress: part.ingress.values().cloned().collect(),
                egress: part.egress.clone(),
                rate: placed.rate,
                least: chain.slo.min,
                most: limit(chain.slo.max),
                delay: delay.total(),
                most_delay: chain.slo.delay,
                on_cores: delay.execution,
                functions: functions.map(function).collect(),
            });
        }
        // Where all is on the switch, somebody takes what that leaves.
        if cores.is_empty() && !problem.hosts.is_empty() {
            cores.insert(0, 1);
        }
        let server = |(host, count): (&usize, &usize)| {
            let name = problem.hosts[*host].name.clone();
            let netns = rack.servers.get(&name).and_then(|server| server.netns.clone());
            let (interface, cpus, socket, process, part) = Default::default();
            let hertz = problem.hosts[*host].hertz;
            Server { name, netns, interface, cores: *count, hertz, cpus, socket, process, part }
        };
        let control = rack.switches.values().find_map(|switch| switch.control.as_ref());
        let control = control.map(ToString::to_string);
        let servers = cores.iter().map(server).collect();
        let (topology, folder, tags) = Default::default();
        Self { chains, servers, topology, control, failed: None, io: None, folder, tags }
    }

    /// What the switch limits, by what the names of a chain begin with: bits a second.
    pub(super) fn limits(&self) -> impl Iterator<Item = (&str, f64)> {
        self.chains.iter().filter_map(|chain| Some((chain.prefix.as_str(), chain.most?)))
    }

    /// The number of a chain's meter.
    fn meter(&self, chain: &Chain) -> Option<u32> {
        chain.most?;
        self.tags.get(&meter(&chain.prefix)).copied().map(u32::from)
    }

    /// Whether numbers mean something else than before.
    pub(super) fn is_renumbered(&self, before: &Self) -> bool {
        let known: BTreeMap<u16, &String> = before.numbers().collect();
        self.numbers().any(|(number, means)| known.get(&number).is_some_and(|of| *of != means))
    }

    fn numbers(&self) -> impl Iterator<Item = (u16, &String)> {
        self.tags.iter().filter(|(name, _)| is_tag(name)).map(|(name, at)| (*at, name))
    }

    /// By chain: bits and packets that its meter dropped so far.
    pub(super) fn dropped(&self) -> Result<Vec<[u64; 2]>, String> {
        let none = || self.chains.iter().map(|_| [0; 2]).collect();
        let Some(address) = self.control.as_ref().filter(|_| self.limits().next().is_some()) else {
            return Ok(none());
        };
        let address: Address = address.parse()?;
        let mut switch =
            Switch::connect(&address, PATIENCE).map_err(|why| format!("the switch: {why}"))?;
        let all = switch.metered().map_err(|why| format!("the switch: {why}"))?;
        let of = |chain: &Chain| {
            let meter = self.meter(chain);
            let own = all.iter().find(|of| Some(of.meter) == meter);
            own.map_or([0; 2], |of| [of.bytes.saturating_mul(8), of.packets])
        };
        Ok(self.chains.iter().map(of).collect())
    }

    /// What was deployed, if anything was.
    pub(super) fn read(folder: &Path) -> Result<Option<Self>, Failure> {
        let path = folder.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|why| format!("{}: {why}", path.display()))?,
        };
        let state = serde_json::from_str(&text);
        Ok(Some(state.map_err(|why| format!("{}: {why}", path.display()))?))
    }

    /// Chains that servers have functions of that do not run yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &str> {
        let runs = |name: &String| {
            self.servers.iter().any(|server| server.name == *name && server.process != 0)
        };
        let waits = move |chain: &&Chain| {
            chain.functions.iter().any(|of| of.on.as_ref().is_some_and(|on| !runs(on)))
        };
        self.chains.iter().filter(waits).map(|chain| chain.name.as_str())
    }

    /// Forgets the processes of servers that do not run.
    pub(super) fn forget_ended(&mut self, journal: &Journal) {
        let running = journal.processes();
        for server in &mut self.servers {
            if !running.iter().any(|process| process.number == server.process) {
                server.process = 0;
            }
        }
    }

    /// Whether all its servers run.
    pub(super) fn is_running(&self, journal: &Journal) -> bool {
        let running = journal.processes();
        self.servers.iter().all(|of| running.iter().any(|process| process.number == of.process))
    }

    pub(super) fn to_text(&self) -> String {
        format!("{:#}\n", json!(self))
    }

    /// What runs where.
    pub(super) fn text(&self) -> String {
        let mut table = Table::new(["chain", "planned", "functions"]);
        for chain in &self.chains {
            let functions = chain.functions.iter();
            let functions: Vec<String> = functions
                .map(|of| {
                    format!("{} on {}", shown(&of.name), of.on.as_deref().unwrap_or("switch"))
                })
                .collect();
            table.row([shown(&chain.name).into(), rate(chain.rate), functions.join(", ")]);
        }
        let mut text = table.render() + "\n";
        for server in &self.servers {
            let cpus: Vec<String> = server.cpus.iter().map(usize::to_string).collect();
            let (name, cpus, socket) = (&server.name, cpus.join(", "), &server.socket);
            text += &format!("{name} runs on CPU {cpus}: `catena top --socket {socket}`\n");
        }
        text
    }
}
