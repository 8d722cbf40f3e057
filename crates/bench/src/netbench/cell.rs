//! Runs a cell: starts a switch, connects namespaces with an application each, and measures.

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
use super::{Cell, Setting};

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
        let name = format!("{:?}", self.role).to_lowercase();
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

/// What was made for a cell, which goes with this.
struct Made(Option<Journal>);

impl Made {
    fn journal(&mut self) -> &mut Journal {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // What is not gone stands in the journal still, and the next run takes it down.
        self.0.take().map(Journal::take_down);
    }
}

/// A switch with a namespace at each port.
struct Site<'a> {
    setting: &'a Setting<'a>,
    cell: &'a Cell,
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
    let mut made = Made(Some(Journal::begin(folder)?));
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
    let site =
        Site { setting, cell, journal: made.journal(), namespaces: &namespaces, switch: &switch };
    let mut sample = Sample { start_seconds: begin.elapsed().as_secs_f64(), ..Sample::default() };
    if setting.request.throughput {
        sample.throughput = Some(site.throughput()?);
    }
    if setting.request.round_trips {
        sample.round_trips = Some(site.round_trips()?);
    }
    Ok(sample)
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
    fn throughput(&self) -> Result<Throughput, Broken> {
        let load =
            Load { roles: [Role::Send, Role::Recv], rate: self.cell.rate, burst: self.cell.burst };
        let came = self.measure(&load)?;
        Ok(Throughput::of(&came.outcomes, &came.counted, came.switch))
    }

    fn round_trips(&self) -> Result<RoundTrips, Broken> {
        let load = Load {
            roles: [Role::Client, Role::Server],
            rate: Some(self.setting.request.latency_rate),
            burst: self.cell.latency_burst,
        };
        let came = self.measure(&load)?;
        Ok(RoundTrips::of(&came.outcomes, came.switch))
    }

    fn start(&self, load: &Load, port: usize) -> Result<Application, Broken> {
        let (pair, role) = (port / 2, load.roles[port % 2]);
        let setting = self.setting;
        let mut command = self.namespaces[port].command(&setting.request.program);
        command.args(["netbench", &format!("{role:?}").to_lowercase()]);
        for port in [port, port ^ 1] {
            command.arg(ip(port)).arg(mac(port));
        }
        let (cores, _) = setting.cores(self.cell.cores);
        let cpu = cores[port % cores.len()];
        command.args(["--raw", INTERFACE, "--orders", "--io", &setting.request.io]);
        command.args(["--size", &self.cell.size.to_string(), "--burst", &load.burst.to_string()]);
        command.args([
            "--seconds",
            &setting.request.seconds.to_string(),
            "--cpu",
            &cpu.to_string(),
        ]);
        command.args(["--stream", &pair.to_string()]);
        load.rate.iter().for_each(|rate| _ = command.args(["--rate", &rate.to_string()]));
        let shares = self.namespaces.len() > cores.len();
        command.args(["--poll", if shares { "sleep" } else { "adaptive" }]);
        if setting.request.touches {
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

    fn measure(&self, load: &Load) -> Result<Came, Broken> {
        let count = self.namespaces.len();
        let mut applications = Vec::new();
        let (said, hear) = channel();
        for port in 0..count {
            let mut application = self.start(load, port)?;
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
        let passive = (1..count).step_by(2);
        let active = (0..count).step_by(2);
        passive.clone().for_each(|port| talk.applications[port].order(Order::Start));
        talk.wait(State::Started, passive.clone())?;
        let busy = self.switch.cpu_time();
        active.clone().for_each(|port| talk.applications[port].order(Order::Start));
        talk.finish(active)?;
        let switch =
            busy.zip(self.switch.cpu_time()).map(|(before, after)| (after - before).as_secs_f64());
        for port in passive.clone() {
            let sent = talk.outcomes[port - 1].as_ref().map_or(0, |outcome| outcome.sent);
            talk.applications[port].order(Order::Stop(sent));
        }
        talk.finish(passive)?;
        let after = self.counted()?;
        let counted = before
            .iter()
            .zip(&after)
            .map(|(before, after)| [after[0] - before[0], after[1] - before[1]]);
        let mut outcomes = talk.outcomes.into_iter().flatten();
        let mut pairs = Vec::new();
        while let (Some(active), Some(passive)) = (outcomes.next(), outcomes.next()) {
            pairs.push([active, passive]);
        }
        Ok(Came { outcomes: pairs, counted: counted.collect(), switch })
    }

    /// What the kernel has counted on both interfaces of each pair, once nothing comes any more.
    fn counted(&self) -> Result<Vec<[u64; 2]>, Broken> {
        let read = || -> Result<Vec<[u64; 2]>, Broken> {
            let mut all = Vec::new();
            for pair in self.namespaces.chunks_exact(2) {
                let sent = pair[0].counters(INTERFACE)?.sent;
                all.push([sent, pair[1].counters(INTERFACE)?.received]);
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

/// What applications are to do.
struct Load {
    /// Who sends first, and who receives.
    roles: [Role; 2],
    rate: Option<u64>,
    burst: usize,
}

/// The address of the application at a port, of the network for benchmarks (RFC 2544).
fn ip(port: usize) -> String {
    format!("198.18.{}.{}", port / 250, port % 250 + 1)
}

/// What is said by applications.
struct Talk<'a> {
    site: &'a Site<'a>,
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
        let patience = PATIENCE + Duration::from_secs_f64(2.0 * self.site.setting.request.seconds);
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
