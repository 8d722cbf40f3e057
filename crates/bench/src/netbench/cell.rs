//! Runs a cell: starts a switch, connects namespaces with an application each, and measures.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use host::fabric::{Fabric, INTERFACE, Ports, Running, mac};
use host::{Failure, Journal, Namespace};

use super::application::{Order, Outcome, Role, State};
use super::results::{RoundTrips, Sample, Throughput};
use super::{Carrier, Cell, Container, Direction, Setting, What};

/// How long an application may take for a step, besides what it was told to take.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time between looks whether the switch has ended or it is to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Why a cell has no figures.
pub(super) enum Broken {
    /// It failed: why.
    Failed(String),
    /// It was interrupted.
    Interrupted,
}

impl From<Failure> for Broken {
    fn from(why: Failure) -> Self {
        match why {
            Failure::Interrupted => Self::Interrupted,
            why => Self::Failed(why.to_string()),
        }
    }
}

/// An application that runs in a namespace.
struct Application {
    role: Role,
    /// Its pair.
    pair: usize,
    child: Child,
    orders: Option<ChildStdin>,
    log: PathBuf,
}

/// What an application says.
enum Said {
    State(State),
    Outcome(Box<Outcome>),
    /// It has ended.
    Ended,
}

impl Application {
    fn order(&mut self, order: Order) {
        let line = match order {
            Order::Quiet => "quiet\n".to_string(),
            Order::Start => "start\n".into(),
            Order::Stop(packets) => format!("stop {packets}\n"),
        };
        // One that has ended says so on its own.
        self.orders.iter_mut().for_each(|orders| _ = orders.write_all(line.as_bytes()));
    }

    /// What it printed before it ended.
    fn failure(&mut self) -> Broken {
        drop(self.orders.take());
        let status = self.child.wait().map_or_else(|why| why.to_string(), |s| s.to_string());
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> =
            said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
        let last = if last.is_empty() { "it printed nothing".into() } else { last };
        let name = self.role;
        Broken::Failed(format!("{name} of pair {} ended ({status}): {last}", self.pair + 1))
    }
}

/// Lines of a log that are shown.
const LINES: usize = 3;

impl Drop for Application {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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

/// What was made, which goes with this.
pub(super) struct OwnedResources(Option<Journal>);

impl OwnedResources {
    /// Nothing yet.
    pub(super) fn begin(folder: &Path) -> Result<Self, Failure> {
        Ok(Self(Some(Journal::begin(folder)?)))
    }

    pub(super) fn journal(&mut self) -> &mut Journal {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for OwnedResources {
    fn drop(&mut self) {
        // What is not gone stands in the journal still, and the next run takes it down.
        self.0.take().map(Journal::take_down);
    }
}

/// A switch with a namespace at each port.
struct Site<'a> {
    setting: &'a Setting<'a>,
    cell: &'a Cell,
    carrier: &'a Carrier,
    journal: &'a Journal,
    namespaces: &'a [Namespace],
    switch: &'a Running,
}

/// Runs a cell once; what was measured. `folder` is that of its journal, whose name is that of its namespaces, too.
pub(super) fn run(
    setting: &Setting<'_>,
    fabric: &dyn Fabric,
    cell: &Cell,
    folder: &Path,
) -> Result<Sample, Broken> {
    let begin = Instant::now();
    let carrier: Carrier = cell.io.parse().map_err(Broken::Failed)?;
    let mut made = OwnedResources::begin(folder)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut namespaces = Vec::new();
    for port in 0..2 * cell.pairs {
        if (setting.is_stopped)() {
            return Err(Broken::Interrupted);
        }
        namespaces.push(made.journal().namespace(&format!("{name}-{port}"))?);
    }
    let (_, cores) = setting.cores(cell.cores);
    let ports = Ports::learning(namespaces.len());
    let name = format!("{name}-switch");
    let go_on = || !(setting.is_stopped)();
    let program = &setting.request.program;
    let switch = Running::start(fabric, made.journal(), &name, &ports, cores, program, &go_on)?;
    for (port, namespace) in namespaces.iter().enumerate() {
        switch.connect(made.journal(), port, namespace, INTERFACE)?;
    }
    let site = Site {
        setting,
        cell,
        carrier: &carrier,
        journal: made.journal(),
        namespaces: &namespaces,
        switch: &switch,
    };
    site.address()?;
    let start_seconds = begin.elapsed().as_secs_f64();
    let mut sample = Sample { start_seconds, ..Sample::default() };
    for kinds in site.phases() {
        if cell.warm_up > 0.0 {
            site.measure(&kinds, cell.warm_up)?;
        }
        let came = site.measure(&kinds, cell.seconds)?;
        let of = |kind: Kind| {
            let chosen = kinds.iter().enumerate().filter(move |(_, of)| **of == kind);
            chosen.map(|(pair, _)| pair)
        };
        let outcomes = |kind| -> Vec<[Outcome; 2]> {
            of(kind).map(|pair| came.outcomes[pair].clone()).collect()
        };
        let counted: Vec<[u64; 2]> = of(Kind::Throughput).map(|pair| came.counted[pair]).collect();
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
    /// What the kernel counted on the interfaces of those who send, and of those who receive, of each pair.
    counted: Vec<[u64; 2]>,
    /// The processor time of the switch in seconds.
    switch: Option<f64>,
}

impl Site<'_> {
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
        let is_back = match self.cell.direction {
            Direction::There => false,
            Direction::Back => true,
            Direction::Both => pair % 2 == 1,
        };
        2 * pair + usize::from(is_back)
    }

    /// The addresses of the application at a port.
    fn addresses(&self, port: usize) -> (String, String) {
        match self.setting.request.containers.get(port) {
            Some(container) => (container.ip.to_string(), container.mac.clone()),
            None => (ip(port), mac(port)),
        }
    }

    /// Gives namespaces the addresses that they do not have by themselves: MAC addresses that were asked for; and what the
    /// host's stack needs, where it carries packets. Without it the stack keeps out.
    fn address(&self) -> Result<(), Broken> {
        for (port, namespace) in self.namespaces.iter().enumerate() {
            let mut commands = String::new();
            let ((ip, own), (other_ip, other)) = (self.addresses(port), self.addresses(port ^ 1));
            if own != mac(port) {
                let _ = writeln!(commands, "link set dev {INTERFACE} address {own}");
            }
            if matches!(self.carrier, Carrier::Udp { .. }) {
                let _ = writeln!(
                    commands,
                    "address add {ip}/32 dev {INTERFACE}\n\
                     route add {other_ip}/32 dev {INTERFACE} src {ip}\n\
                     neigh replace {other_ip} lladdr {other} dev {INTERFACE} nud permanent"
                );
            }
            if !commands.is_empty() {
                namespace.ip(self.journal, &commands)?;
            }
        }
        Ok(())
    }

    fn start(&self, kinds: &[Kind], seconds: f64, port: usize) -> Result<Application, Broken> {
        let (pair, cell) = (port / 2, self.cell);
        let (role, rate, burst) = match kinds[pair] {
            Kind::Throughput => (Role::Send, cell.rate, cell.burst),
            Kind::RoundTrips => (Role::Client, Some(cell.latency_rate), cell.latency_burst),
        };
        let role = if port == self.active(pair) { role } else { role.peer() };
        let setting = self.setting;
        let mut command = self.namespaces[port].command(&setting.request.program);
        command.args(["netbench", &role.to_string()]);
        for port in [port, port ^ 1] {
            let (ip, mac) = self.addresses(port);
            command.arg(ip).arg(mac);
        }
        let (cores, _) = setting.cores(cell.cores);
        let cpu = cores[port % cores.len()];
        if matches!(self.carrier, Carrier::Frames(_)) {
            command.args(["--raw", INTERFACE]);
        }
        command.args(["--orders", "--io", &cell.io, "--size", &cell.size.to_string()]);
        command.args(["--burst", &burst.to_string(), "--seconds", &seconds.to_string()]);
        command.args(["--cpu", &cpu.to_string(), "--stream", &pair.to_string()]);
        rate.iter().for_each(|rate| _ = command.args(["--rate", &rate.to_string()]));
        let shares = self.namespaces.len() > cores.len();
        command.args(["--poll", if shares { "sleep" } else { "adaptive" }]);
        if cell.touches {
            command.arg("--touch");
        }
        let log = self.journal.folder().join(format!("{port}.log"));
        let file = File::create(&log)
            .map_err(|why| Broken::Failed(format!("{}: {why}", log.display())))?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        let mut command = self.journal.marked(command);
        let failed = |why| Broken::Failed(format!("{}: {why}", setting.request.program.display()));
        // What interrupts this process is not for its applications, which end when nobody has orders for them.
        let mut child = command.process_group(0).spawn().map_err(failed)?;
        let orders = child.stdin.take();
        Ok(Application { role, pair, child, orders, log })
    }

    fn measure(&self, kinds: &[Kind], seconds: f64) -> Result<Came, Broken> {
        let count = self.namespaces.len();
        let mut applications = Vec::new();
        let (said, hear) = channel();
        for port in 0..count {
            let mut application = self.start(kinds, seconds, port)?;
            if let Some(output) = application.child.stdout.take() {
                let said = said.clone();
                // It ends with the application.
                std::thread::spawn(move || {
                    for line in BufReader::new(output).lines().map_while(Result::ok) {
                        let what = match serde_json::from_str::<State>(&format!("\"{line}\"")) {
                            Ok(state) => Some(Said::State(state)),
                            Err(_) => serde_json::from_str(&line).ok().map(Said::Outcome),
                        };
                        what.into_iter().for_each(|what| _ = said.send((port, what)));
                    }
                    let _ = said.send((port, Said::Ended));
                });
            }
            applications.push(application);
        }
        let mut talk = Talk {
            site: self,
            seconds,
            applications,
            hear,
            states: vec![None; count],
            ended: vec![false; count],
            outcomes: vec![None; count],
        };
        let all = || 0..count;
        talk.wait(State::Ready, all())?;
        talk.wait(State::Connected, all())?;
        all().for_each(|port| talk.applications[port].order(Order::Quiet));
        talk.wait(State::Quiet, all())?;
        let before = self.counted()?;
        let active = || (0..kinds.len()).map(|pair| self.active(pair));
        let passive = || active().map(|port| port ^ 1);
        passive().for_each(|port| talk.applications[port].order(Order::Start));
        talk.wait(State::Started, passive())?;
        let busy = self.switch.cpu_time();
        active().for_each(|port| talk.applications[port].order(Order::Start));
        talk.finish(active())?;
        let switch =
            busy.zip(self.switch.cpu_time()).map(|(before, after)| (after - before).as_secs_f64());
        for port in passive() {
            let sent = talk.outcomes[port ^ 1].as_ref().map_or(0, |outcome| outcome.sent);
            talk.applications[port].order(Order::Stop(sent));
        }
        talk.finish(passive())?;
        let after = self.counted()?;
        let counted = before
            .iter()
            .zip(&after)
            .map(|(before, after)| [after[0] - before[0], after[1] - before[1]]);
        let mut of = |port: usize| talk.outcomes[port].take();
        let pairs = active()
            .zip(passive())
            .filter_map(|(active, passive)| Some([of(active)?, of(passive)?]));
        Ok(Came { outcomes: pairs.collect(), counted: counted.collect(), switch })
    }

    /// What the kernel has counted on both interfaces of each pair, once nothing comes any more.
    fn counted(&self) -> Result<Vec<[u64; 2]>, Broken> {
        let read = || -> Result<Vec<[u64; 2]>, Broken> {
            let mut all = Vec::new();
            for active in (0..self.cell.pairs).map(|pair| self.active(pair)) {
                let [from, to] = [active, active ^ 1].map(|port| &self.namespaces[port]);
                all.push([from.counters(INTERFACE)?.sent, to.counters(INTERFACE)?.received]);
            }
            Ok(all)
        };
        let mut last = read()?;
        for _ in 0..READS {
            let now = read()?;
            if now == last {
                break;
            }
            last = now;
        }
        Ok(last)
    }
}

/// Reads of counters until they stand still.
const READS: usize = 20;

/// The address of the application at a port, of the network for benchmarks (RFC 2544).
fn ip(port: usize) -> String {
    format!("198.18.{}.{}", port / 250, port % 250 + 1)
}

/// What is said by applications.
struct Talk<'a> {
    site: &'a Site<'a>,
    /// How long applications measure.
    seconds: f64,
    applications: Vec<Application>,
    hear: Receiver<(usize, Said)>,
    /// The last state that each was in.
    states: Vec<Option<State>>,
    ended: Vec<bool>,
    outcomes: Vec<Option<Outcome>>,
}

impl Talk<'_> {
    /// Waits until each of some applications has come to a state, or further.
    fn wait(&mut self, state: State, ports: impl Iterator<Item = usize>) -> Result<(), Broken> {
        let ports: Vec<usize> = ports.collect();
        let what = format!("say '{}'", write_state(state).trim_end());
        self.hear_until(&what, PATIENCE, &|talk| {
            ports.iter().copied().find(|port| talk.states[*port] < Some(state))
        })
    }

    /// Waits until some applications have ended, and what came of them is known.
    fn finish(&mut self, ports: impl Iterator<Item = usize>) -> Result<(), Broken> {
        let ports: Vec<usize> = ports.collect();
        let patience = PATIENCE + Duration::from_secs_f64(2.0 * self.seconds);
        self.hear_until("come to an end", patience, &|talk| {
            ports.iter().copied().find(|port| talk.outcomes[*port].is_none())
        })
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
                return Err(self.applications[port].failure());
            }
            match self.hear.recv_timeout(LOOK) {
                Ok((port, Said::State(state))) => self.states[port] = Some(state),
                Ok((port, Said::Outcome(outcome))) => self.outcomes[port] = Some(*outcome),
                Ok((port, Said::Ended)) => self.ended[port] = true,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Broken::Failed("all applications have ended".into()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if (self.site.setting.is_stopped)() {
                return Err(Broken::Interrupted);
            }
            self.site.switch.check()?;
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
