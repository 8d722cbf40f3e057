//! Runs a cell: has hosts start switches with an application at each port, and measures.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use host::fabric::{Ends, INTERFACE, mac};
use std::sync::mpsc::RecvTimeoutError;

use super::application::{Order, Outcome, Role, State};
use super::hosts::Hosts;
use super::results::{Counted, RoundTrips, Sample, Throughput};
use super::side::{Answer, Ask, Begin, Begun, Broken, Said};
use super::{Carrier, Cell, Container, Direction, Peer, Setting, What};

/// How long an application may take for a step, besides what it was told to take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time between looks whether the switch has ended or it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// The line of an order.
pub fn read_order(line: &str) -> Option<Order> {
    match line.trim().split_once(' ') {
        None if line.trim() == "quiet" => Some(Order::Quiet),
        None if line.trim() == "start" => Some(Order::Start),
        Some(("stop", packets)) => packets.parse().ok().map(Order::Stop),
        _ => None,
    }
}

/// The line of a state.
pub fn write_state(state: State) -> String {
    format!("{state:?}\n").to_lowercase()
}

/// Switches with an application at each port.
struct Site<'a, 'b> {
    setting: &'a Setting<'a>,
    cell: &'a Cell,
    carrier: &'a Carrier,
    hosts: &'a mut Hosts<'b>,
    /// MAC addresses that interfaces have by themselves and keep, by port.
    macs: Vec<Option<String>>,
    /// What applications open, by port.
    opened: Vec<String>,
}

/// Runs a cell once, whose number this is; what was measured.
pub(super) fn run(
    setting: &Setting<'_>,
    hosts: &mut Hosts<'_>,
    cell: &Cell,
    number: usize,
) -> Result<Sample, Broken> {
    let carrier: Carrier = cell.io.parse().map_err(Broken::Failed)?;
    hosts.restore()?;
    let macs = vec![None; 2 * cell.pairs];
    let opened = vec![String::new(); 2 * cell.pairs];
    let mut site = Site { setting, cell, carrier: &carrier, hosts, macs, opened };
    let measured = site.run(number);
    // A host that is no longer there takes all down by itself.
    for side in 0..cell.peer.hosts() {
        let _ = site.hosts.ask(side, Ask::End);
    }
    measured
}

/// What a pair is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A sender and a receiver.
    Throughput,
    /// A client and a server.
    RoundTrips,
}

/// What came of the applications of a cell.
struct Came {
    /// Of each pair: of who sends first, and of who receives.
    outcomes: Vec<[Outcome; 2]>,
    /// What was counted at the ports of those who send, and of those who receive, of each pair.
    counted: Vec<Counted>,
    /// The processor time of the switch in seconds.
    switch: Option<f64>,
    /// Seconds that each application took to start.
    starts: Vec<f64>,
}

impl Site<'_, '_> {
    /// Which host a port is on, and its number there.
    fn place(&self, port: usize) -> (usize, usize) {
        let hosts = self.cell.peer.hosts();
        (port % hosts, port / hosts)
    }

    /// The port with a number on a host.
    fn port(&self, side: usize, place: usize) -> usize {
        place * self.cell.peer.hosts() + side
    }

    /// Asks the host of a port.
    fn ask(&mut self, port: usize, ask: impl FnOnce(usize) -> Ask) -> Result<Answer, Broken> {
        let (side, port) = self.place(port);
        self.hosts.ask(side, ask(port))
    }

    /// Starts switches, and gives addresses; the seconds that it took until all namespaces were connected.
    fn begin(&mut self, number: usize) -> Result<f64, Broken> {
        let count = self.cell.peer.hosts();
        let mut start_seconds = 0.0;
        for side in 0..count {
            let (_, cores) = super::cores(self.hosts.cpus(side), self.cell.cores);
            let begin = Begin {
                number,
                switch: self.cell.switch.clone(),
                ports: 2 * self.cell.pairs / count,
                uplink: self.hosts.uplink(side).filter(|_| self.cell.peer == Peer::Remote),
                cores: cores.to_vec(),
                io: self.cell.io.clone(),
            };
            match self.hosts.ask(side, Ask::Begin(begin))? {
                Answer::Begun(Begun { seconds, macs, opened }) => {
                    start_seconds += seconds;
                    for (place, opened) in opened.into_iter().enumerate() {
                        self.opened[place * count + side] = opened;
                    }
                    for (place, mac) in macs.into_iter().enumerate() {
                        self.macs[place * count + side] = mac;
                    }
                }
                other => return Err(odd(&other)),
            }
        }
        self.address()?;
        Ok(start_seconds)
    }

    fn run(&mut self, number: usize) -> Result<Sample, Broken> {
        let cell = self.cell;
        let mut sample = Sample { start_seconds: self.begin(number)?, ..Sample::default() };
        // When who is connected leaves, DPDK's driver of memif unmaps memory that a worker may be reading: the switch would crash.
        let renews = self.carrier.ends() == Ends::Memif;
        for (at, kinds) in self.phases().into_iter().enumerate() {
            if renews && at > 0 {
                self.begin(number)?;
            }
            if cell.warm_up > 0.0 {
                self.measure(&kinds, cell.warm_up)?;
                if renews {
                    self.begin(number)?;
                }
            }
            let came = self.measure(&kinds, cell.seconds)?;
            sample.container_seconds.extend(&came.starts);
            let of = |kind: Kind| {
                let chosen = kinds.iter().enumerate().filter(move |(_, of)| **of == kind);
                chosen.map(|(pair, _)| pair)
            };
            let outcomes = |kind| -> Vec<[Outcome; 2]> {
                of(kind).map(|pair| came.outcomes[pair].clone()).collect()
            };
            let counted: Vec<Counted> =
                of(Kind::Throughput).map(|pair| came.counted[pair]).collect();
            if !counted.is_empty() {
                let outcomes = outcomes(Kind::Throughput);
                sample.throughput = Some(Throughput::of(&outcomes, &counted, came.switch));
            }
            if of(Kind::RoundTrips).next().is_some() {
                sample.round_trips = Some(RoundTrips::of(&outcomes(Kind::RoundTrips), came.switch));
            }
        }
        Ok(sample)
    }

    /// What pairs are for, in one measurement after the other.
    fn phases(&self) -> Vec<Vec<Kind>> {
        let containers = &self.setting.request.containers;
        if !containers.is_empty() {
            let kind = |pair: &[Container]| match pair[0].role {
                Role::Client | Role::Server => Kind::RoundTrips,
                Role::Send | Role::Recv => Kind::Throughput,
            };
            return vec![containers.chunks_exact(2).map(kind).collect()];
        }
        let all = |kind| vec![kind; self.cell.pairs];
        match self.cell.what {
            What::Both => vec![all(Kind::Throughput), all(Kind::RoundTrips)],
            What::Throughput => vec![all(Kind::Throughput)],
            What::Latency => vec![all(Kind::RoundTrips)],
        }
    }

    /// The port of the application of a pair that sends or asks.
    fn active(&self, pair: usize) -> usize {
        active(self.cell.direction, pair)
    }

    /// The addresses of the application at a port.
    fn addresses(&self, port: usize) -> (String, String) {
        match self.setting.request.containers.get(port) {
            Some(container) => (container.ip.to_string(), container.mac.clone()),
            None => (ip(port), self.macs[port].clone().unwrap_or_else(|| mac(port))),
        }
    }

    /// Gives namespaces the addresses that they do not have by themselves: MAC addresses that were asked for; and what the
    /// host's stack needs, where it carries packets. Without it the stack keeps out.
    fn address(&mut self) -> Result<(), Broken> {
        for port in 0..2 * self.cell.pairs {
            let (_, place) = self.place(port);
            let mut commands = String::new();
            let all = [port, port ^ 1].map(|port| self.addresses(port));
            // What has no interface has the address in its frames alone.
            let has_interface = self.carrier.ends() == Ends::Interfaces;
            if has_interface && self.macs[port].is_none() && all[0].1 != mac(place) {
                let _ = writeln!(commands, "link set dev {INTERFACE} address {}", all[0].1);
            }
            commands += &for_stack(self.carrier, &all);
            if !commands.is_empty() {
                self.ask(port, |port| Ask::Ip { port, commands })?;
            }
        }
        Ok(())
    }

    fn start(&mut self, kinds: &[Kind], seconds: f64, port: usize) -> Result<(), Broken> {
        let (pair, cell) = (port / 2, self.cell);
        let (role, rate, burst) = match kinds[pair] {
            Kind::Throughput => (Role::Send, cell.rate, cell.burst),
            Kind::RoundTrips => (Role::Client, Some(cell.latency_rate), cell.latency_burst),
        };
        let role = if port == self.active(pair) { role } else { role.peer() };
        let (side, place) = self.place(port);
        let (cores, _) = super::cores(self.hosts.cpus(side), cell.cores);
        let runs = Runs {
            addresses: [port, port ^ 1].map(|port| self.addresses(port)),
            cpu: cores[place % cores.len()],
            shares: 2 * cell.pairs / cell.peer.hosts() > cores.len(),
            pair,
            rate,
            burst,
            seconds,
            opened: self.opened[port].clone(),
        };
        let mut words = runs.words(cell, self.carrier);
        words.push("--orders".into());
        let container = cell.container.clone();
        self.ask(port, |port| Ask::Start { port, role, pair, container, words }).map(drop)
    }

    /// The processor time of all switches, in seconds.
    fn cpu_time(&mut self) -> Result<Option<f64>, Broken> {
        let mut sum = None;
        for side in 0..self.cell.peer.hosts() {
            match self.hosts.ask(side, Ask::CpuTime)? {
                Answer::CpuTime(None) => {}
                Answer::CpuTime(Some(seconds)) => sum = Some(sum.unwrap_or(0.0) + seconds),
                other => return Err(odd(&other)),
            }
        }
        Ok(sum)
    }

    fn measure(&mut self, kinds: &[Kind], seconds: f64) -> Result<Came, Broken> {
        let count = 2 * self.cell.pairs;
        let mut talk = Talk {
            site: self,
            seconds,
            states: vec![None; count],
            ended: vec![false; count],
            outcomes: vec![None; count],
            starts: Vec::new(),
        };
        let came = talk.measure(kinds);
        for side in 0..self.cell.peer.hosts() {
            let stopped = self.hosts.ask(side, Ask::Stop);
            if came.is_ok() {
                stopped?;
            }
        }
        // What they said before they ended.
        while self.hosts.hear.try_recv().is_ok() {}
        came
    }

    /// What the kernel or the switch has counted at both ports of each pair, once nothing comes any more.
    fn counted(&mut self) -> Result<Vec<Counted>, Broken> {
        let (mut last, mut same) = (self.count()?, 0);
        for _ in 0..READS {
            // A switch that shares its CPU may not have had it meanwhile.
            std::thread::park_timeout(APART);
            let now = self.count()?;
            same = if now == last { same + 1 } else { 0 };
            last = now;
            if same == STILL {
                break;
            }
        }
        Ok(last)
    }

    fn count(&mut self) -> Result<Vec<Counted>, Broken> {
        let mut all = Vec::new();
        for pair in 0..self.cell.pairs {
            let active = self.active(pair);
            let mut of = |port: usize| match self.ask(port, |port| Ask::Counters { port })? {
                Answer::Counters(counters) => Ok(counters),
                other => Err(odd(&other)),
            };
            let (sent, received) = (of(active)?, of(active ^ 1)?);
            all.push(sent.zip(received).map(|(of, other)| [of.sent, other.received]));
        }
        Ok(all)
    }
}

/// The port of the application of a pair that sends or asks.
pub(super) fn active(direction: Direction, pair: usize) -> usize {
    let is_back = match direction {
        Direction::There => false,
        Direction::Back => true,
        Direction::Both => pair % 2 == 1,
    };
    2 * pair + usize::from(is_back)
}

/// Commands of `ip` that give a namespace what the host's stack needs, where it carries packets.
pub(super) fn for_stack(carrier: &Carrier, addresses: &[(String, String); 2]) -> String {
    let [(ip, _), (other_ip, other)] = addresses;
    match carrier {
        Carrier::Udp { .. } => format!(
            "address add {ip}/32 dev {INTERFACE}\n\
             route add {other_ip}/32 dev {INTERFACE} src {ip}\n\
             neigh replace {other_ip} lladdr {other} dev {INTERFACE} nud permanent\n"
        ),
        _ => String::new(),
    }
}

/// How an application is run.
pub(super) struct Runs {
    /// Its own IP and MAC address, and its peer's.
    pub(super) addresses: [(String, String); 2],
    pub(super) cpu: usize,
    /// Whether its core has others.
    pub(super) shares: bool,
    pub(super) pair: usize,
    pub(super) rate: Option<u64>,
    pub(super) burst: usize,
    pub(super) seconds: f64,
    /// What it opens to be at its port.
    pub(super) opened: String,
}

impl Runs {
    /// Its words behind its role.
    pub(super) fn words(&self, cell: &Cell, carrier: &Carrier) -> Vec<String> {
        let mut words = Vec::new();
        for (ip, mac) in &self.addresses {
            words.extend([ip.clone(), mac.clone()]);
        }
        let mut option = |name: &str, value: String| words.extend([format!("--{name}"), value]);
        if carrier.needs_name() {
            option("raw", self.opened.clone());
        }
        option("io", cell.io.clone());
        option("size", cell.size.to_string());
        option("burst", self.burst.to_string());
        option("seconds", self.seconds.to_string());
        option("cpu", self.cpu.to_string());
        option("stream", self.pair.to_string());
        self.rate.iter().for_each(|rate| option("rate", rate.to_string()));
        let poll = match (self.shares, carrier.is_dpdk()) {
            (false, _) => "adaptive",
            (true, false) => "sleep",
            // Nothing would wake them.
            (true, true) => "yield",
        };
        option("poll", poll.into());
        if cell.touches {
            words.push("--touch".into());
        }
        words
    }
}

/// An answer to what was not asked.
fn odd(answer: &Answer) -> Broken {
    Broken::Failed(format!("an answer to another question: {answer:?}"))
}

/// Reads of counters until they stand still, at most.
const READS: usize = 100;
/// Reads that are alike when they do.
const STILL: usize = 5;
/// The time between two.
const APART: Duration = Duration::from_millis(10);

/// The address of the application at a port, of the network for benchmarks (RFC 2544).
pub(super) fn ip(port: usize) -> String {
    format!("198.18.{}.{}", port / 250, port % 250 + 1)
}

/// What is said by applications.
struct Talk<'a, 'b, 'c> {
    site: &'a mut Site<'b, 'c>,
    /// How long applications measure.
    seconds: f64,
    /// The last state that each was in.
    states: Vec<Option<State>>,
    ended: Vec<bool>,
    outcomes: Vec<Option<Outcome>>,
    /// Seconds that each took until its interface was open.
    starts: Vec<f64>,
}

impl Talk<'_, '_, '_> {
    fn measure(&mut self, kinds: &[Kind]) -> Result<Came, Broken> {
        let all = 0..self.states.len();
        for port in all.clone() {
            self.site.start(kinds, self.seconds, port)?;
        }
        let active: Vec<usize> = (0..kinds.len()).map(|pair| self.site.active(pair)).collect();
        let passive: Vec<usize> = active.iter().map(|port| port ^ 1).collect();
        self.wait(State::Ready, all.clone())?;
        self.wait(State::Connected, all.clone())?;
        for port in all.clone() {
            self.order(port, Order::Quiet)?;
        }
        self.wait(State::Quiet, all)?;
        let before = self.site.counted()?;
        for port in &passive {
            self.order(*port, Order::Start)?;
        }
        self.wait(State::Started, passive.iter().copied())?;
        let busy = self.site.cpu_time()?;
        for port in &active {
            self.order(*port, Order::Start)?;
        }
        self.finish(&active)?;
        let switch = busy.zip(self.site.cpu_time()?).map(|(before, after)| after - before);
        for port in &passive {
            let sent = self.outcomes[port ^ 1].as_ref().map_or(0, |outcome| outcome.sent);
            self.order(*port, Order::Stop(sent))?;
        }
        self.finish(&passive)?;
        let after = self.site.counted()?;
        let counted = before.iter().zip(&after).map(|(before, after)| {
            let (before, after) = before.zip(*after)?;
            // One that was counted anew is not known.
            Some([after[0].checked_sub(before[0])?, after[1].checked_sub(before[1])?])
        });
        let counted = counted.collect();
        let mut of = |port: usize| self.outcomes[port].take();
        let pairs = active
            .iter()
            .zip(&passive)
            .filter_map(|(active, passive)| Some([of(*active)?, of(*passive)?]));
        let outcomes = pairs.collect();
        Ok(Came { outcomes, counted, switch, starts: std::mem::take(&mut self.starts) })
    }

    fn order(&mut self, port: usize, order: Order) -> Result<(), Broken> {
        self.site.ask(port, |port| Ask::Order { port, order }).map(drop)
    }

    /// Waits until each of some applications has come to a state, or further.
    fn wait(&mut self, state: State, ports: impl Iterator<Item = usize>) -> Result<(), Broken> {
        let ports: Vec<usize> = ports.collect();
        let what = format!("say '{}'", write_state(state).trim_end());
        self.hear_until(&what, PATIENCE, &|talk| {
            ports.iter().copied().find(|port| talk.states[*port] < Some(state))
        })
    }

    /// Waits until some applications have ended, and what came of them is known.
    fn finish(&mut self, ports: &[usize]) -> Result<(), Broken> {
        let patience = PATIENCE + Duration::from_secs_f64(2.0 * self.seconds);
        self.hear_until("come to an end", patience, &|talk| {
            ports.iter().copied().find(|port| talk.outcomes[*port].is_none())
        })
    }

    /// What an application said.
    fn hear(&mut self, port: usize, said: Said) {
        match said {
            Said::State(state, seconds) => {
                if state == State::Ready {
                    self.starts.push(seconds);
                }
                self.states[port] = Some(state);
            }
            Said::Outcome(outcome) => self.outcomes[port] = Some(*outcome),
            Said::Ended => self.ended[port] = true,
        }
    }

    /// Hears of applications until none is missing.
    fn hear_until(
        &mut self,
        what: &str,
        patience: Duration,
        missing: &dyn Fn(&Self) -> Option<usize>,
    ) -> Result<(), Broken> {
        let end = Instant::now() + patience;
        while let Some(port) = missing(self) {
            if self.ended[port] {
                return Err(match self.site.ask(port, |port| Ask::Last { port })? {
                    Answer::Last(said) => Broken::Failed(said),
                    other => odd(&other),
                });
            }
            match self.site.hosts.hear.recv_timeout(LOOK) {
                Ok((side, place, said)) => self.hear(self.site.port(side, place), said),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Broken::Failed("all applications have ended".into()));
                }
                // It is looked at while nobody says anything.
                Err(RecvTimeoutError::Timeout) => {
                    for side in 0..self.site.cell.peer.hosts() {
                        self.site.hosts.ask(side, Ask::Check)?;
                    }
                }
            }
            if (self.site.setting.is_stopped)() {
                return Err(Broken::Interrupted);
            }
            if Instant::now() > end {
                return Err(Broken::Failed(format!(
                    "after {} s, not all applications {what}: nothing may come through the switch",
                    patience.as_secs()
                )));
            }
        }
        Ok(())
    }
}
