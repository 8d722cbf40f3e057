//! One host of a cell: a switch, a network namespace at each of its ports, and applications in them. What it does is asked
//! for by an [`Ask`], which can come from elsewhere.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Write as _};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use host::container::{self, Container, Root, Runtime};
use host::fabric::{self, Ends, Fabric, INTERFACE, Joins, Ports, Running};
use host::tuning::{self, Tuned};
use host::{Counters, Failure, Journal, Namespace, Process};
use serde::{Deserialize, Serialize};

use super::application::{MEMORY, Order, Outcome, Role, State};
use super::{Carrier, FOLDER, clean};

/// Why a cell has no figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Broken {
    /// It failed: why.
    Failed(String),
    /// It was interrupted.
    Interrupted,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<Failure> for Broken {
    fn from(why: Failure) -> Self {
        match why {
            Failure::Interrupted => Self::Interrupted,
            why => Self::Failed(why.to_string()),
        }
    }
}

/// What a host is asked to do. Ports are those of its own switch.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Ask {
    /// Whether a switch can run there.
    Look(String),
    /// Sets what makes measurements repeatable, until the end.
    Tune { cpus: Vec<usize>, quiet: Vec<usize>, megabytes: u64 },
    /// Starts a switch.
    Begin(Begin),
    /// Runs commands of `ip` in the namespace at a port.
    Ip { port: usize, commands: String },
    /// Starts an application there.
    Start { port: usize, role: Role, pair: usize, container: String, words: Vec<String> },
    /// Tells it something.
    Order { port: usize, order: Order },
    /// What the kernel counted on its interface, or the switch at its socket.
    Counters { port: usize },
    /// The processor time of the switch.
    CpuTime,
    /// Whether the switch still runs.
    Check,
    /// What an application printed that has ended.
    Last { port: usize },
    /// Ends all applications.
    Stop,
    /// Takes the switch down.
    End,
}

/// A switch that is to start.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Begin {
    /// The number of the run.
    pub(super) number: usize,
    pub(super) switch: String,
    /// Ports with a namespace each.
    pub(super) ports: usize,
    /// The interface that is one more port, to the other host.
    pub(super) uplink: Option<String>,
    /// The cores of its processes.
    pub(super) cores: Vec<usize>,
    /// How packets of applications are carried.
    pub(super) io: String,
}

/// A switch that was started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Begun {
    /// Seconds that it took until all namespaces were connected.
    pub(super) seconds: f64,
    /// The MAC addresses of interfaces that have one of their own: those that are the uplink itself.
    pub(super) macs: Vec<Option<String>>,
    /// What applications open to be at each port: an interface, or a socket.
    pub(super) opened: Vec<String>,
}

/// What a host answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Done,
    /// The version of a switch, or what it needs.
    Version(Result<String, String>),
    Tuned(Tuned),
    Begun(Begun),
    /// Nothing if the switch does not know.
    Counters(Option<Counters>),
    /// Seconds.
    CpuTime(Option<f64>),
    Last(String),
}

/// What an application says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    /// Its state, so many seconds after its start.
    State(State, f64),
    Outcome(Box<Outcome>),
    /// It has ended.
    Ended,
}

/// Hears of the application at a port.
pub(super) type Hear = Arc<dyn Fn(usize, Said) + Send + Sync>;

/// An application that runs in a namespace.
struct Application {
    role: Role,
    pair: usize,
    child: Child,
    runtime: &'static dyn Runtime,
    container: Container,
    orders: Option<ChildStdin>,
    /// Reads what it says, to its end.
    reader: Option<JoinHandle<()>>,
    log: PathBuf,
}

/// How long another run may take to give an interface back.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between looks whether it is there.
const LOOK: Duration = Duration::from_millis(50);
/// Lines of a log that are shown.
pub(super) const LINES: usize = 5;

/// The last lines of what a program printed.
pub(super) fn last(said: &str) -> String {
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LINES)..].join("; ");
    if last.is_empty() { "it printed nothing".into() } else { last }
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
    fn last(&mut self) -> String {
        drop(self.orders.take());
        let status = self.child.wait().map_or_else(|why| why.to_string(), |s| s.to_string());
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        format!("{} of pair {} ended ({status}): {}", self.role, self.pair + 1, last(&said))
    }

    /// Ends it, of which nothing is heard after this.
    fn end(mut self) {
        drop(self.orders.take());
        let _ = self.child.kill();
        self.runtime.end(&self.container);
        let _ = self.child.wait();
        self.reader.take().map(JoinHandle::join);
    }
}

/// What was made, which goes with this.
struct OwnedResources(Option<Journal>);

impl OwnedResources {
    /// Nothing yet. The name of the folder is that of namespaces, too.
    fn begin(name: &str) -> Result<Self, Failure> {
        Ok(Self(Some(Journal::begin(&Path::new(FOLDER).join(name))?)))
    }

    fn journal(&mut self) -> &mut Journal {
        self.0.as_mut().expect("it is there until it is dropped")
    }
}

impl Drop for OwnedResources {
    fn drop(&mut self) {
        // What is not gone stands in the journal still, and the next run takes it down.
        self.0.take().map(Journal::take_down);
    }
}

/// A switch with a namespace at each port. What ends first stands first.
struct Site {
    applications: Vec<Option<Application>>,
    switch: Running,
    fabric: Box<dyn Fabric>,
    namespaces: Vec<Namespace>,
    /// Namespaces whose interface may stand on the uplink, which goes back without it.
    on_uplink: Vec<Namespace>,
    /// How packets of applications are carried.
    carrier: Carrier,
    journal: OwnedResources,
}

impl Site {
    /// What the kernel or the switch counted of the frames of the application at a port, if either knows.
    fn counters(&mut self, port: usize) -> Result<Option<Counters>, Broken> {
        let connected = at(&mut self.namespaces, port)?;
        let of = (&*self.fabric, self.carrier.ends());
        Ok(self.switch.counters(of, port, connected)?)
    }

    /// Ends all applications.
    fn stop(&mut self) {
        for application in self.applications.iter_mut().filter_map(Option::take) {
            application.end();
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop();
        for namespace in &self.on_uplink {
            // The kernel removes namespaces later, and what is in them.
            let _ = namespace.ip(self.journal.journal(), &format!("link del dev {INTERFACE}"));
        }
    }
}

/// The host that this process runs on.
pub(super) struct Side<'a> {
    /// The program `catena`.
    program: PathBuf,
    go_on: &'a dyn Fn() -> bool,
    hear: Hear,
    /// Settings, which are put back with it.
    settings: Option<OwnedResources>,
    /// Whether there are huge pages for DPDK.
    is_huge: bool,
    site: Option<Site>,
    /// The files of containers, and what they go with.
    root: Option<(Root, OwnedResources)>,
}

impl<'a> Side<'a> {
    pub(super) fn new(program: PathBuf, go_on: &'a dyn Fn() -> bool, hear: Hear) -> Self {
        Self { program, go_on, hear, settings: None, is_huge: false, site: None, root: None }
    }

    /// Does what is asked for.
    pub(super) fn ask(&mut self, ask: Ask) -> Result<Answer, Broken> {
        match ask {
            Ask::Look(switch) => {
                Ok(Answer::Version(fabric::find(&switch).and_then(|fabric| fabric.look())))
            }
            Ask::Tune { cpus, quiet, megabytes } => {
                let name = format!("netbench{}-host", std::process::id());
                let made = self.settings.insert(OwnedResources::begin(&name)?);
                let tuned = tuning::tune(made.journal(), &cpus, &quiet, megabytes)?;
                self.is_huge = tuned.has_huge_pages;
                Ok(Answer::Tuned(tuned))
            }
            Ask::Begin(begin) => self.begin(&begin).map(Answer::Begun),
            Ask::Ip { port, commands } => {
                let site = self.site()?;
                let namespace = at(&mut site.namespaces, port)?;
                namespace.ip(site.journal.journal(), &commands)?;
                Ok(Answer::Done)
            }
            Ask::Start { port, role, pair, container, words } => {
                self.start(port, (role, pair), &container, words)
            }
            Ask::Order { port, order } => {
                let application = at(&mut self.site()?.applications, port)?;
                application.iter_mut().for_each(|application| application.order(order));
                Ok(Answer::Done)
            }
            Ask::Counters { port } => Ok(Answer::Counters(self.site()?.counters(port)?)),
            Ask::CpuTime => {
                let time = self.site()?.switch.cpu_time();
                Ok(Answer::CpuTime(time.map(|time| time.as_secs_f64())))
            }
            Ask::Check => {
                self.site()?.switch.check()?;
                Ok(Answer::Done)
            }
            Ask::Last { port } => {
                let application = at(&mut self.site()?.applications, port)?;
                let said = application.as_mut().map(Application::last);
                Ok(Answer::Last(said.unwrap_or_else(|| "it was not started".into())))
            }
            Ask::Stop => {
                self.site()?.stop();
                Ok(Answer::Done)
            }
            Ask::End => {
                self.site = None;
                Ok(Answer::Done)
            }
        }
    }

    fn site(&mut self) -> Result<&mut Site, Broken> {
        self.site.as_mut().ok_or_else(|| Broken::Failed("no switch was started".into()))
    }

    fn begin(&mut self, of: &Begin) -> Result<Begun, Broken> {
        self.site = None;
        let begin = Instant::now();
        let switch = fabric::find(&of.switch).map_err(Broken::Failed)?;
        let carrier: Carrier = of.io.parse().map_err(Broken::Failed)?;
        let ends = carrier.ends();
        let taken: Vec<(usize, String)> =
            of.uplink.iter().map(|name| (of.ports, name.clone())).collect();
        if of.uplink.is_some() {
            switch
                .look()
                .map_err(|needs| Broken::Failed(format!("{}: it needs {needs}", switch.name())))?;
            if matches!(ends, Ends::Vhost | Ends::Memif) {
                let why = format!(
                    "{}: its ports are {}, and none can be the uplink",
                    switch.name(),
                    ends.describe()
                );
                return Err(Broken::Failed(why));
            }
            if !switch.learns() && of.ports > 1 {
                let why =
                    "joins two ports, so one application of a host has the uplink: takes 1 pair";
                return Err(Broken::Failed(format!("{} {why}", switch.name())));
            }
        }
        of.uplink.iter().try_for_each(|name| self.await_uplink(name))?;
        let name = format!("netbench{}-{}", std::process::id(), of.number);
        let mut journal = OwnedResources::begin(&name)?;
        let mut namespaces = Vec::new();
        for port in 0..of.ports {
            if !(self.go_on)() {
                return Err(Broken::Interrupted);
            }
            namespaces.push(journal.journal().namespace(&format!("{name}-{port}"))?);
        }
        let count = of.ports + taken.len();
        let (joins, is_huge) = (Joins::All, self.is_huge);
        let ports = Ports { count, taken: &taken, joins, ends, is_huge };
        let running = Running::start(
            &*switch,
            journal.journal(),
            &format!("{name}-switch"),
            &ports,
            &of.cores,
            &self.program,
            self.go_on,
        )?;
        let (mut macs, mut on_uplink, mut opened) = (Vec::new(), Vec::new(), Vec::new());
        for (port, namespace) in namespaces.iter().enumerate() {
            opened.push(ends.opened(&*switch, journal.journal().folder(), port));
            if ends != Ends::Interfaces {
                macs.push(None);
                continue;
            }
            running.connect(journal.journal(), port, namespace, INTERFACE)?;
            let is_uplink = taken.iter().any(|(taken, _)| switch.is_at(*taken, port));
            macs.push(is_uplink.then(|| namespace.mac(INTERFACE)).transpose()?);
            if of.uplink.is_some() && !is_uplink {
                on_uplink.push(namespace.clone());
            }
        }
        let applications = namespaces.iter().map(|_| None).collect();
        self.site = Some(Site {
            applications,
            switch: running,
            fabric: switch,
            namespaces,
            on_uplink,
            carrier,
            journal,
        });
        Ok(Begun { seconds: begin.elapsed().as_secs_f64(), macs, opened })
    }

    /// Waits for an interface that another run has, and is about to give back.
    fn await_uplink(&self, name: &str) -> Result<(), Broken> {
        let begin = Instant::now();
        loop {
            let mut ip = Command::new("ip");
            let Err(why) = host::run(ip.args(["link", "show", "dev", name]), "") else {
                return Ok(());
            };
            let (_, running) = clean()?;
            let other = running.into_iter().find(|process| *process != std::process::id());
            let Some(other) = other.filter(|_| begin.elapsed() < PATIENCE) else {
                return Err(Broken::Failed(format!("--uplink {name}: {why}")));
            };
            if !(self.go_on)() {
                return Err(Broken::Interrupted);
            }
            Process::has_ended_in(other, LOOK);
        }
    }

    /// The files of containers, which are made once.
    fn root(&mut self) -> Result<Root, Failure> {
        if let Some((root, _)) = &self.root {
            return Ok(root.clone());
        }
        let name = format!("netbench{}-files", std::process::id());
        let mut made = OwnedResources::begin(&name)?;
        let root = Root::of(&self.program, made.journal())?;
        self.root = Some((root.clone(), made));
        Ok(root)
    }

    fn start(
        &mut self,
        port: usize,
        (role, pair): (Role, usize),
        container: &str,
        words: Vec<String>,
    ) -> Result<Answer, Broken> {
        let runtime = container::find(container).map_err(Broken::Failed)?;
        let root = runtime.has_root().then(|| self.root()).transpose()?;
        let (program, hear) = (self.program.clone(), Arc::clone(&self.hear));
        let is_huge = self.is_huge;
        let site = self.site()?;
        let namespace = match site.carrier.ends() {
            // A TAP interface is opened where it is.
            Ends::Taps => site.switch.namespace().clone(),
            Ends::Interfaces | Ends::Vhost | Ends::Memif => at(&mut site.namespaces, port)?.clone(),
        };
        let journal = site.journal.journal();
        let log = journal.folder().join(format!("{port}.log"));
        let file = File::create(&log)
            .map_err(|why| Broken::Failed(format!("{}: {why}", log.display())))?;
        let mut arguments = vec!["netbench".to_string(), role.to_string()];
        arguments.extend(words);
        if site.carrier.is_dpdk() && is_huge {
            arguments.extend(["--dpdk-eal".into(), fabric::eal(MEMORY, true, false)]);
        }
        let begin = Instant::now();
        let container =
            Container::of_application(journal, &namespace, &program, root.as_ref(), &arguments);
        let mut command = runtime.command(&container)?;
        if site.carrier.is_dpdk() {
            // Folders that DPDK makes go with the journal.
            command.env("RUNTIME_DIRECTORY", journal.folder());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(file);
        // What interrupts this process is not for its applications, which end when nobody has orders for them.
        let spawned = command.process_group(0).spawn();
        let mut child = spawned.map_err(|why| {
            Broken::Failed(format!("{}: {why}", command.get_program().to_string_lossy()))
        })?;
        let orders = child.stdin.take();
        let reader = child.stdout.take().map(|output| {
            std::thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    let what = match serde_json::from_str::<State>(&format!("\"{line}\"")) {
                        Ok(state) => Some(Said::State(state, begin.elapsed().as_secs_f64())),
                        Err(_) => serde_json::from_str(&line).ok().map(Said::Outcome),
                    };
                    what.into_iter().for_each(|what| hear(port, what));
                }
                hear(port, Said::Ended);
            })
        });
        let application =
            Application { role, pair, child, runtime, container, orders, reader, log };
        if let Some(before) = site.applications[port].replace(application) {
            before.end();
        }
        Ok(Answer::Done)
    }
}

/// What is at a port, if there is one of this number.
fn at<T>(all: &mut [T], port: usize) -> Result<&mut T, Broken> {
    all.get_mut(port).ok_or_else(|| Broken::Failed(format!("there is no port {port}")))
}
