//! What a deployment was planned to give each chain, and what it gives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use compiler::partition::{is_tag, meter};
use control::openflow::Switch;
use engine::control::Client;
use engine::control::protocol::{Counters, CountersAnswer, LatencyOf};
use engine::control::rates::{CoreRates, Percentiles, Rates};
use host::Journal;
use ir::topology::Address;
use placement::{Delay, Plan, Site};
use serde::{Deserialize, Serialize};
use serde_json::json;
use view::paint::shown;
use view::placement::rate;
use view::table::{Table, grouped};

use super::chains::Joint;
use super::part::Part;
use crate::commands::place::Task;
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
    /// Seconds, and how many they may be.
    delay: f64,
    most_delay: Option<f64>,
    /// Of it, on cores.
    on_cores: f64,
    functions: Vec<Function>,
}

/// A function of a chain.
#[derive(Debug, Serialize, Deserialize)]
struct Function {
    name: String,
    /// The server where it is planned; none on the switch.
    on: Option<String>,
    /// The share of the chain's packets that come to it.
    share: f64,
    /// What a packet costs on a core, in cycles, and how that is known.
    cycles: f64,
    cost: String,
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
    hertz: f64,
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

    /// How much of a server is used, how much would be by the costs of the plan, and which of these are off.
    fn load(&self, server: &Server, got: &[Got], cores: &[CoreRates]) -> Vec<String> {
        let of = |chain: &'_ Chain, got: &Got| -> Vec<(String, f64, String)> {
            let here = chain.functions.iter().filter(|of| of.on.as_ref() == Some(&server.name));
            let line = |of: &Function| {
                let name = format!("{} of {}", shown(&of.name), shown(&chain.name));
                let cost =
                    format!("{} cycles a packet, {}", grouped(of.cycles.round() as u64), of.cost);
                (name, got.packets * of.share * of.cycles, cost)
            };
            here.map(line).filter(|(_, planned, _)| *planned > 0.0).collect()
        };
        let all: Vec<_> =
            self.chains.iter().zip(got).flat_map(|(chain, got)| of(chain, got)).collect();
        let planned: f64 = all.iter().map(|(_, planned, _)| planned).sum();
        let busy: f64 = cores.iter().map(|core| core.busy).sum();
        let hertz = |core: &CoreRates| {
            let known = core.cycles_per_packet.zip(core.ns_per_packet).filter(|(_, ns)| *ns > 0.0);
            known.map_or(server.hertz, |(cycles, ns)| cycles / ns * 1e9)
        };
        let spent: f64 = cores.iter().map(|core| core.busy * hertz(core)).sum();
        let said = format!("{}: {busy:.3} of {} cores busy", server.name, server.cpus.len());
        if planned == 0.0 || busy < LITTLE {
            return vec![said];
        }
        let times = spent / planned;
        let mut lines = vec![format!(
            "{said}; {:.3} by the costs of the plan, so functions there cost {times:.2} times what it says",
            planned / server.hertz
        )];
        if (1.0 / OFF..=OFF).contains(&times) {
            return lines;
        }
        match &all[..] {
            [(name, _, cost)] => lines.push(format!("  off: {name}: planned with {cost}")),
            all => {
                lines.push("  off is at least one of these, which no count tells apart:".into());
                lines.extend(
                    all.iter().map(|(name, _, cost)| format!("    {name}: planned with {cost}")),
                );
            }
        }
        lines
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
    let (mut loads, mut lines) = (Vec::new(), Vec::<String>::new());
    for (server, (mut client, then)) in clients {
        let now = match ask(server, Some(&mut client)) {
            Ok((_, now)) => now,
            Err(why) => {
                wrong.push(format!("{} does not answer: {why}", server.name));
                continue;
            }
        };
        let rates = Rates::between(&then, &now);
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
        loads.push((server, rates.cores));
    }
    let loads = loads.iter().flat_map(|(server, cores)| state.load(server, &got, cores));
    let lines: Vec<String> = loads.chain(lines).collect();
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
                "planned": {
                    "rate": chain.rate, "least": chain.least, "delay": chain.delay, "most_delay": chain.most_delay,
                },
                "delay": chain.takes(got),
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
        match chain.functions.iter().all(|of| of.on.is_none()) {
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

/// How many times more or less than planned a cost is that is off.
const OFF: f64 = 1.25;

/// Cores that are hardly busy: what packets cost there is not what they cost under load.
const LITTLE: f64 = 0.01;

impl Chain {
    /// How long half of its packets take: as planned, but on cores as measured.
    fn takes(&self, got: &Got) -> Option<f64> {
        let on_cores = got.delay.as_ref()?.p50 as f64 / 1e9;
        Some(self.delay - self.on_cores + on_cores)
    }
}

/// Whether a chain has what was planned, and what is off.
fn verdict(chain: &Chain, got: &Got) -> (bool, String) {
    let wanted = got.taken.min(chain.rate);
    let late = chain.takes(got).zip(chain.most_delay).filter(|(takes, most)| takes > most);
    match late {
        _ if got.taken == 0.0 => (true, "no traffic".into()),
        _ if got.given < NEARLY * got.taken.min(chain.least) => (
            false,
            format!("short of its least rate by {}", rate(got.taken.min(chain.least) - got.given)),
        ),
        Some((takes, most)) => {
            let [takes, most] = [takes, most].map(|time| format!("{:.1} us", time * 1e6));
            (false, format!("half of its packets take {takes} or more, of {most} at most"))
        }
        None if got.given < NEARLY * wanted => {
            (true, format!("{} less leave than were planned", rate(wanted - got.given)))
        }
        None if got.taken < NEARLY * chain.rate => (true, "less comes than was planned".into()),
        None => (true, "as planned".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, on: Option<&str>) -> Function {
        let (name, on) = (name.to_string(), on.map(Into::into));
        Function { name, on, share: 1.0, cycles: 1000.0, cost: "as the manifest says".into() }
    }

    fn state(functions: Vec<Function>) -> State {
        let chain = Chain {
            name: "c".into(),
            prefix: "c".into(),
            ingress: Vec::new(),
            egress: Vec::new(),
            rate: 1e9,
            least: 1e8,
            most: None,
            delay: 20e-6,
            most_delay: Some(50e-6),
            on_cores: 5e-6,
            functions,
        };
        let server = Server {
            name: "s1".into(),
            netns: None,
            interface: "eth0".into(),
            cores: 1,
            hertz: 2e9,
            cpus: vec![0],
            socket: String::new(),
            process: 0,
            part: Part::default(),
        };
        let (topology, control, failed, io, folder, tags) = Default::default();
        let (chains, servers) = (vec![chain], vec![server]);
        State { chains, servers, topology, control, failed, io, folder, tags }
    }

    fn got(p50: u64) -> Got {
        let (of, name) = (LatencyOf::Chain, "c".to_string());
        let delay = Percentiles { of, name, packets: 9, p50, p90: p50, p99: p50, p999: p50 };
        let (packets, taken, given) = (1e6, 1e9, 1e9);
        Got { packets, taken, given, dropped: BTreeMap::new(), delay: Some(delay) }
    }

    #[test]
    fn a_chain_whose_packets_take_too_long_is_not_well() {
        let state = state(Vec::new());
        assert_eq!(verdict(&state.chains[0], &got(35_000)), (true, "as planned".into()));
        let (is_well, why) = verdict(&state.chains[0], &got(35_100));
        assert!(!is_well);
        assert_eq!(why, "half of its packets take 50.1 us or more, of 50.0 us at most");
    }

    #[test]
    fn what_a_profile_says_wrong_is_named() {
        let core = |busy: f64| {
            let (worker, cpu, taken, given, dropped) = (0, Some(0), 1e6, 1e6, 0.0);
            let (ns_per_packet, cycles_per_packet) = (None, None);
            let (packets_per_round, waiting, held, flows) = (None, None, 0, 0);
            CoreRates {
                worker,
                cpu,
                taken,
                given,
                dropped,
                busy,
                ns_per_packet,
                cycles_per_packet,
                packets_per_round,
                waiting,
                held,
                flows,
            }
        };
        let one = state(vec![function("nat", Some("s1")), function("acl", None)]);
        let lines = |state: &State, busy| state.load(&state.servers[0], &[got(0)], &[core(busy)]);
        let [said] = &lines(&one, 0.6)[..] else { panic!("nothing is off") };
        assert!(said.contains("0.600 of 1 cores busy; 0.500 by the costs"), "{said}");
        let off = lines(&one, 0.65);
        let named = "  off: nat of c: planned with 1,000 cycles a packet, as the manifest says";
        assert_eq!(off[1..], [named]);
        let two = state(vec![function("nat", Some("s1")), function("acl", Some("s1"))]);
        assert_eq!(lines(&two, 1.0).len(), 1);
        assert_eq!(lines(&two, 0.5).len(), 4);
    }
}
