//! What a deployment gives each chain, beside what was planned.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use engine::control::Client;
use engine::control::protocol::{Counters, CountersAnswer, LatencyOf};
use engine::control::rates::{CoreRates, Percentiles, Rates};
use serde_json::{Value, json};
use view::paint::shown;
use view::placement::rate;
use view::table::{Table, grouped};

use super::status::{Chain, Function, Server, State};
use crate::failure::Failure;
use crate::terminal::print;

/// A deployment that is measured, from one time to the next.
struct Measuring {
    state: State,
    /// By server that answers: what it counted last.
    then: BTreeMap<String, (Client, CountersAnswer)>,
    /// By chain: bits and packets that its meter dropped so far, if the switch says so.
    dropped: Option<Vec<[u64; 2]>>,
    since: Instant,
    /// What did not answer.
    wrong: Vec<String>,
}

/// What was measured of a deployment.
pub(super) struct Measured {
    /// By chain: what it got, whether that is well, and what is off.
    chains: Vec<(Got, bool, String)>,
    /// Servers, with what their cores did.
    servers: Vec<(Server, Vec<CoreRates>)>,
    /// What there is to say of servers.
    lines: Vec<String>,
    wrong: Vec<String>,
}

impl Measuring {
    fn begin(state: State) -> Self {
        let (then, wrong) = (BTreeMap::new(), Vec::new());
        let mut measuring = Self { state, then, dropped: None, since: Instant::now(), wrong };
        measuring.dropped = measuring.dropped();
        for server in measuring.state.servers.clone() {
            measuring.ask(&server);
        }
        measuring
    }

    /// What did not answer before is asked again and again.
    fn wrong(&mut self, why: String) {
        if !self.wrong.contains(&why) {
            self.wrong.push(why);
        }
    }

    fn dropped(&mut self) -> Option<Vec<[u64; 2]>> {
        self.state.dropped().map_err(|why| self.wrong(why)).ok()
    }

    /// Asks a server what it counted; what it did since it was asked last.
    fn ask(&mut self, server: &Server) -> Option<Rates> {
        let before = self.then.remove(&server.name);
        let (client, before) = match before {
            Some((client, before)) => (Ok(client), Some(before)),
            None => (Client::connect(Path::new(&server.socket)), None),
        };
        let asked = client.map_err(|why| why.to_string()).and_then(|mut client| {
            let now = client.ask(Counters {}).map_err(|why| why.to_string())?;
            Ok((client, now))
        });
        match asked {
            Ok((client, now)) => {
                let rates = before.map(|before| Rates::between(&before, &now));
                self.then.insert(server.name.clone(), (client, now));
                rates
            }
            Err(why) => {
                self.wrong(format!("{} does not answer: {why}", server.name));
                None
            }
        }
    }

    /// What happened since it began, or since the last time.
    fn next(&mut self) -> Measured {
        let mut got: Vec<Got> = self.state.chains.iter().map(|_| Got::default()).collect();
        let (mut servers, mut lines) = (Vec::new(), Vec::new());
        for server in self.state.servers.clone() {
            let Some(rates) = self.ask(&server) else { continue };
            for (chain, got) in self.state.chains.iter().zip(&mut got) {
                got.add(chain, &rates);
            }
            let unclaimed = rates.drops.iter().filter(|drop| {
                let is_of = |chain: &Chain| drop.name.starts_with(&format!("{}/", chain.prefix));
                !self.state.chains.iter().any(is_of)
            });
            let unclaimed: f64 = unclaimed.map(|drop| drop.dropped).sum();
            if unclaimed > 0.0 {
                lines.push(format!(
                    "{}: {unclaimed:.0} frames a second are no chain's",
                    server.name
                ));
            }
            servers.push((server, rates.cores));
        }
        let before = self.dropped.take();
        self.dropped = self.dropped();
        let seconds = self.since.elapsed().as_secs_f64();
        self.since = Instant::now();
        for (at, (before, after)) in
            before.iter().flatten().zip(self.dropped.iter().flatten()).enumerate()
        {
            let rate = |of: usize| after[of].saturating_sub(before[of]) as f64 / seconds;
            got[at].exceed(&self.state.chains[at], [rate(0), rate(1)]);
        }
        let loads = servers.iter().flat_map(|(of, cores)| self.state.load(of, &got, cores));
        let lines = loads.collect::<Vec<_>>().into_iter().chain(lines).collect();
        let verdict = |(chain, got): (&Chain, Got)| {
            let (is_well, words) = verdict(chain, &got);
            (got, is_well, words)
        };
        let chains = self.state.chains.iter().zip(got).map(verdict).collect();
        Measured { chains, servers, lines, wrong: std::mem::take(&mut self.wrong) }
    }
}

impl Measured {
    fn is_well(&self) -> bool {
        self.wrong.is_empty() && self.chains.iter().all(|(_, is_well, _)| *is_well)
    }

    fn to_json(&self, state: &State) -> Value {
        let chain = |(chain, (got, is_well, verdict)): (&Chain, &(Got, bool, String))| {
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
        let chains: Vec<_> = state.chains.iter().zip(&self.chains).map(chain).collect();
        let load = |(server, cores): &(Server, Vec<CoreRates>)| json!({"name": server.name, "planned_cores": server.cores, "cores": cores});
        let load: Vec<_> = self.servers.iter().map(load).collect();
        json!({"chains": chains, "servers": self.lines, "load": load, "wrong": self.wrong})
    }

    /// By chain, what was planned and what it gets.
    fn chains(&self, state: &State) -> String {
        let mut table = Table::new([
            "chain", "planned", "least", "in", "out", "dropped", "delay", "on cores", "p50", "p99",
            "",
        ]);
        for (chain, (got, _, verdict)) in state.chains.iter().zip(&self.chains) {
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
        table.render()
    }

    /// What there is to say beside tables.
    fn remarks(&self) -> String {
        self.lines.iter().chain(&self.wrong).map(|line| format!("  {line}\n")).collect()
    }
}

/// `--status`.
pub(super) fn show(folder: &Path, period: Duration, as_json: bool) -> Result<ExitCode, Failure> {
    let state = State::read(folder)?.ok_or_else(|| NOTHING.to_string())?;
    let mut measuring = Measuring::begin(state);
    // Nobody sends: it is waited for as long.
    let (_sender, end) = channel::<()>();
    let _ = end.recv_timeout(period);
    let measured = measuring.next();
    let state = &measuring.state;
    match as_json {
        true => print(&format!("{:#}\n", measured.to_json(state))),
        false => print(&(measured.chains(state) + &measured.remarks())),
    }
    Ok(if measured.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const NOTHING: &str = "nothing is deployed there";

/// A deployment that is watched, whatever plans replace each other.
pub(crate) struct Deployed {
    file: PathBuf,
    /// What was deployed when it was looked at last.
    text: String,
    measuring: Measuring,
}

impl Deployed {
    /// That of a folder.
    pub(super) fn open(folder: &Path) -> Result<Self, Failure> {
        let state = State::read(folder)?.ok_or_else(|| NOTHING.to_string())?;
        let (text, measuring) = (state.to_text(), Measuring::begin(state));
        Ok(Self { file: folder.to_path_buf(), text, measuring })
    }

    /// What happened since it was opened, or since the last time, as text for people or as a line of JSON. With another plan, it
    /// begins anew: then nothing is known yet.
    ///
    /// # Errors
    /// If nothing is deployed any more.
    pub(crate) fn next(
        &mut self,
        as_json: bool,
        cores: impl Fn(&[(&str, &[CoreRates])]) -> String,
    ) -> Result<Option<String>, Failure> {
        let state = State::read(&self.file)?.ok_or_else(|| NOTHING.to_string())?;
        let text = state.to_text();
        if text != self.text {
            (self.text, self.measuring) = (text, Measuring::begin(state));
            return Ok(None);
        }
        let measured = self.measuring.next();
        let state = &self.measuring.state;
        if as_json {
            return Ok(Some(format!("{}\n", measured.to_json(state))));
        }
        let servers = measured.servers.iter().map(|(of, cores)| (of.name.as_str(), &cores[..]));
        let servers: Vec<_> = servers.collect();
        Ok(Some(format!("{}\n{}\n{}", measured.chains(state), cores(&servers), measured.remarks())))
    }
}

impl State {
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
}

/// What a chain got.
#[derive(Default)]
pub(super) struct Got {
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
    use super::super::part::Part;
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
