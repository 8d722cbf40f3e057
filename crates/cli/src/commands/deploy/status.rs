//! What a deployment was planned to give each chain, and what it gives.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use control::openflow::Switch;
use engine::control::Client;
use engine::control::protocol::{Counters, CountersAnswer, LatencyOf};
use engine::control::rates::{Percentiles, Rates};
use host::Journal;
use ir::topology::{Address, Topology};
use placement::{Delay, Plan, Problem, Site};
use serde::{Deserialize, Serialize};
use serde_json::json;
use view::paint::shown;
use view::placement::rate;
use view::table::Table;

use super::chains::Joint;
use crate::failure::Failure;
use crate::terminal::print;

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
    /// What cores do behind the switch.
    pub(super) work: u64,
    /// The I/O mode of the servers.
    pub(super) io: Option<String>,
}

/// A chain, and what is planned for it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Chain {
    name: String,
    /// What its names begin with in the chains as one.
    prefix: String,
    /// Elements that count what comes in.
    ingress: Vec<String>,
    /// Elements that send.
    egress: Vec<String>,
    /// Bits a second, and the least of them.
    rate: f64,
    least: f64,
    /// Its greatest rate, if the switch limits it to that.
    most: Option<f64>,
    /// Seconds.
    delay: f64,
    /// Of it, on cores.
    on_cores: f64,
    /// Its functions, and the servers where they are planned; none on the switch.
    functions: Vec<(String, Option<String>)>,
}

/// A server.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) netns: Option<String>,
    /// Its interface towards the switch.
    pub(super) interface: String,
    /// Cores that are planned.
    pub(super) cores: usize,
    /// Those that it has.
    pub(super) cpus: Vec<usize>,
    /// Where it is asked.
    pub(super) socket: String,
    /// Its process; 0 if it is not started yet.
    pub(super) process: u32,
}

impl State {
    /// Of a plan.
    pub(super) fn of(problem: &Problem, plan: &Plan, joint: &Joint<'_>, rack: &Topology) -> Self {
        let mut cores: BTreeMap<usize, usize> = BTreeMap::new();
        let mut chains = Vec::new();
        for (at, (chain, placed)) in problem.chains.iter().zip(&plan.chains).enumerate() {
            for (host, count) in placed.cores.iter().flatten() {
                *cores.entry(*host).or_default() += count;
            }
            let delay = Delay::of(problem, chain, &placed.sites);
            let place = |site: &Site| site.host().map(|host| problem.hosts[host].name.clone());
            let known = &joint.chains[at].functions.all;
            let functions = chain.functions.iter().zip(&placed.sites);
            // What stands for wires in a plan is no function.
            let functions = functions.filter(|(of, _)| known.iter().any(|f| f.name == of.name));
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
                on_cores: delay.execution,
                functions: functions.map(|(of, site)| (of.name.clone(), place(site))).collect(),
            });
        }
        // Where all is on the switch, somebody takes what that leaves.
        if cores.is_empty() && !problem.hosts.is_empty() {
            cores.insert(0, 1);
        }
        let server = |(host, count): (&usize, &usize)| {
            let name = problem.hosts[*host].name.clone();
            let netns = rack.servers.get(&name).and_then(|server| server.netns.clone());
            let (interface, cpus, socket, process) = Default::default();
            Server { name, netns, interface, cores: *count, cpus, socket, process }
        };
        let control = rack.switches.values().find_map(|switch| switch.control.as_ref());
        let control = control.map(ToString::to_string);
        let servers = cores.iter().map(server).collect();
        let (topology, work) = Default::default();
        Self { chains, servers, topology, control, failed: None, work, io: None }
    }

    /// Takes servers of an earlier plan over that run, and do the same by this one.
    pub(super) fn keep(&mut self, before: &Self, journal: &Journal) {
        if (self.work, &self.io) != (before.work, &before.io) {
            return;
        }
        let running = journal.processes();
        for server in &mut self.servers {
            let is_same = |of: &&Server| {
                of.name == server.name
                    && of.netns == server.netns
                    && of.interface == server.interface
                    && of.cores == server.cores
                    && running.iter().any(|process| process.number == of.process)
            };
            if let Some(of) = before.servers.iter().find(is_same) {
                server.cpus.clone_from(&of.cpus);
                server.socket.clone_from(&of.socket);
                server.process = of.process;
            }
        }
    }

    /// What the switch limits, by what the names of a chain begin with: bits a second.
    pub(super) fn limits(&self) -> impl Iterator<Item = (&str, f64)> {
        self.chains.iter().filter_map(|chain| Some((chain.prefix.as_str(), chain.most?)))
    }

    /// The number of a chain's meter: limits are numbered in the order of their names.
    fn meter(&self, chain: &Chain) -> Option<u32> {
        chain.most?;
        let before = self.limits().filter(|(name, _)| *name < chain.prefix.as_str()).count();
        u32::try_from(before + 1).ok()
    }

    /// By chain: bits and packets that its meter dropped so far.
    fn dropped(&self) -> Result<Vec<[u64; 2]>, String> {
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

    /// Whether all its servers run.
    pub(super) fn is_running(&self, journal: &Journal) -> bool {
        let running = journal.processes();
        self.servers.iter().all(|of| running.iter().any(|process| process.number == of.process))
    }

    pub(super) fn to_text(&self) -> String {
        format!("{:#}\n", json!(self))
    }

    /// How much of a server is used, and how much would be by the costs of the plan.
    fn load(&self, server: &Server, got: &[Got], busy: f64) -> String {
        let is_here =
            |chain: &Chain| chain.functions.iter().any(|(_, on)| on.as_ref() == Some(&server.name));
        let here = self.chains.iter().zip(got).filter(|(chain, _)| is_here(chain));
        let planned: f64 = here.map(|(chain, got)| got.packets * chain.on_cores).sum();
        let said = format!("{}: {busy:.3} of {} cores busy", server.name, server.cpus.len());
        match planned > 0.0 {
            true => format!(
                "{said}; {planned:.3} by the costs of the plan, so functions there cost {:.2} times what it says",
                busy / planned
            ),
            false => said,
        }
    }

    /// What runs where.
    pub(super) fn text(&self) -> String {
        let mut table = Table::new(["chain", "planned", "functions"]);
        for chain in &self.chains {
            let functions = chain.functions.iter();
            let functions: Vec<String> = functions
                .map(|(name, on)| {
                    format!("{} on {}", shown(name), on.as_deref().unwrap_or("switch"))
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

/// What a chain got.
#[derive(Default)]
struct Got {
    /// Packets a second that came.
    packets: f64,
    /// Bits a second.
    taken: f64,
    given: f64,
    /// Packets a second by reason.
    dropped: BTreeMap<String, f64>,
    /// On cores.
    delay: Option<Percentiles>,
}

/// `--status`.
pub(super) fn show(folder: &Path, period: Duration, as_json: bool) -> Result<ExitCode, Failure> {
    let state = State::read(folder)?.ok_or_else(|| "nothing is deployed there".to_string())?;
    let mut clients = Vec::new();
    let mut wrong = Vec::new();
    let dropped = |wrong: &mut Vec<String>| match state.dropped() {
        Ok(dropped) => dropped,
        Err(why) => {
            // It is asked twice.
            if !wrong.contains(&why) {
                wrong.push(why);
            }
            Vec::new()
        }
    };
    let before = dropped(&mut wrong);
    let begin = Instant::now();
    for server in &state.servers {
        match ask(server, None) {
            Ok(first) => clients.push((server, first)),
            Err(why) => wrong.push(format!("{} does not answer: {why}", server.name)),
        }
    }
    // Nobody sends: it is waited for as long.
    let (_sender, end) = channel::<()>();
    let _ = end.recv_timeout(period);
    let mut got: Vec<Got> = state.chains.iter().map(|_| Got::default()).collect();
    let mut lines = Vec::new();
    for (server, (mut client, then)) in clients {
        let now = match ask(server, Some(&mut client)) {
            Ok((_, now)) => now,
            Err(why) => {
                wrong.push(format!("{} does not answer: {why}", server.name));
                continue;
            }
        };
        let rates = Rates::between(&then, &now);
        let mut here: Vec<Got> = state.chains.iter().map(|_| Got::default()).collect();
        for (chain, got) in state.chains.iter().zip(&mut here) {
            got.add(chain, &rates);
        }
        lines.push(state.load(server, &here, rates.cores.iter().map(|core| core.busy).sum()));
        for (chain, got) in state.chains.iter().zip(&mut got) {
            got.add(chain, &rates);
        }
        let unclaimed = rates.drops.iter().filter(|drop| {
            !state.chains.iter().any(|chain| drop.name.starts_with(&format!("{}/", chain.prefix)))
        });
        let unclaimed: f64 = unclaimed.map(|drop| drop.dropped).sum();
        if unclaimed > 0.0 {
            lines.push(format!("{}: {unclaimed:.0} frames a second are no chain's", server.name));
        }
    }
    let after = dropped(&mut wrong);
    let seconds = begin.elapsed().as_secs_f64();
    for (at, (before, after)) in before.iter().zip(&after).enumerate() {
        let rate = |of: usize| after[of].saturating_sub(before[of]) as f64 / seconds;
        got[at].exceed(&state.chains[at], [rate(0), rate(1)]);
    }
    let verdicts: Vec<(bool, String)> =
        state.chains.iter().zip(&got).map(|(chain, got)| verdict(chain, got)).collect();
    let is_well = wrong.is_empty() && verdicts.iter().all(|(is_well, _)| *is_well);
    if as_json {
        let chains = state.chains.iter().zip(&got).zip(&verdicts);
        let chain = |((chain, got), (is_well, verdict)): ((&Chain, &Got), &(bool, String))| {
            json!({
                "name": chain.name,
                "planned": {"rate": chain.rate, "least": chain.least, "delay": chain.delay},
                "in": got.taken,
                "out": got.given,
                "dropped": got.dropped,
                "on_cores": got.delay,
                "is_well": is_well,
                "verdict": verdict,
            })
        };
        let chains: Vec<_> = chains.map(chain).collect();
        print(&format!("{:#}\n", json!({"chains": chains, "servers": lines, "wrong": wrong})));
    } else {
        let mut table = Table::new([
            "chain", "planned", "least", "in", "out", "dropped", "delay", "on cores", "p50", "p99",
            "",
        ]);
        for ((chain, got), (_, verdict)) in state.chains.iter().zip(&got).zip(&verdicts) {
            let micro = |seconds: f64| format!("{:.1} us", seconds * 1e6);
            let timed = |of: fn(&Percentiles) -> u64| {
                got.delay.as_ref().map_or("-".into(), |of_all| micro(of(of_all) as f64 / 1e9))
            };
            let most = got.dropped.iter().max_by(|a, b| a.1.total_cmp(b.1));
            let all: f64 = got.dropped.values().sum();
            table.row([
                shown(&chain.name).into(),
                rate(chain.rate),
                rate(chain.least),
                rate(got.taken),
                rate(got.given),
                most.map_or("-".into(), |(why, _)| format!("{all:.0}/s ({})", shown(why))),
                micro(chain.delay),
                micro(chain.on_cores),
                timed(|of| of.p50),
                timed(|of| of.p99),
                verdict.clone(),
            ]);
        }
        print(&table.render());
        for line in lines.iter().chain(&wrong) {
            print(&format!("  {line}\n"));
        }
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ask(server: &Server, client: Option<&mut Client>) -> Result<(Client, CountersAnswer), String> {
    let connect = || Client::connect(server.socket.as_ref()).map_err(|why| why.to_string());
    match client {
        None => {
            let mut client = connect()?;
            let answer = client.ask(Counters {}).map_err(|why| why.to_string())?;
            Ok((client, answer))
        }
        Some(client) => {
            let answer = client.ask(Counters {}).map_err(|why| why.to_string())?;
            Ok((connect()?, answer))
        }
    }
}

impl Got {
    /// Adds what the switch dropped as the chain exceeds its greatest rate, in bits and packets a second.
    fn exceed(&mut self, chain: &Chain, [bits, packets]: [f64; 2]) {
        if packets == 0.0 {
            return;
        }
        *self.dropped.entry("over its greatest rate".into()).or_default() += packets;
        // What the switch does with packets it counts before it drops some; servers count what comes to them.
        match chain.functions.iter().all(|(_, on)| on.is_none()) {
            true => self.given = (self.given - bits).max(0.0),
            false => self.taken += bits,
        }
    }

    /// Adds what a server did of a chain.
    fn add(&mut self, chain: &Chain, rates: &Rates) {
        for line in &rates.elements {
            if chain.ingress.contains(&line.name) {
                self.taken += line.bits.unwrap_or(0.0);
                self.packets += line.taken.or(line.packets).unwrap_or(0.0);
            }
            if chain.egress.contains(&line.name) {
                self.given += line.bits.unwrap_or(0.0);
            }
        }
        let prefix = format!("{}/", chain.prefix);
        for drop in rates.drops.iter().filter(|drop| drop.name.starts_with(&prefix)) {
            *self.dropped.entry(drop.reason.clone()).or_default() += drop.dropped;
        }
        let of_chain =
            |of: &&Percentiles| of.of == LatencyOf::Chain && chain.egress.contains(&of.name);
        let slowest = rates.latencies.iter().filter(of_chain).max_by_key(|of| of.p99);
        self.delay = self.delay.take().or(slowest.cloned());
    }
}

/// What is taken as met, of a rate.
const NEARLY: f64 = 0.95;

/// Whether a chain has what was planned, and what is off.
fn verdict(chain: &Chain, got: &Got) -> (bool, String) {
    let wanted = got.taken.min(chain.rate);
    match () {
        () if got.taken == 0.0 => (true, "no traffic".into()),
        () if got.given < NEARLY * got.taken.min(chain.least) => (
            false,
            format!("short of its least rate by {}", rate(got.taken.min(chain.least) - got.given)),
        ),
        () if got.given < NEARLY * wanted => {
            (true, format!("{} less leave than were planned", rate(wanted - got.given)))
        }
        () if got.taken < NEARLY * chain.rate => (true, "less comes than was planned".into()),
        () => (true, "as planned".into()),
    }
}
