//! Programs that packets of a chain go through, beside a process that runs the chain itself: each is a host chain of one
//! function, between two interfaces that the chain has as devices.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use dataplane::io::{Launcher, Process};
use elements::process::{Api, Command, ProcessSpec};

use crate::confine::Limits;
use crate::container;
use crate::manifest::{
    Beside, Fabric, Files, Function, HostChain, Interfaces, LINK, Nf, PROGRAMS, Privilege, RUNTIME,
    is_name,
};
use crate::service::{Handle, SOCKET, Service};
use crate::{Journal, Opened};

/// What the names of their folders begin with; the number of the process that runs the chain is behind.
const PREFIX: &str = "run-";

/// How long it is watched before the chain relies on it: a program that cannot run ends at once.
const SETTLE: Duration = Duration::from_millis(100);

/// Hears what happens to programs, and whether packets do not go through one any more.
pub type Hear = Box<dyn Fn(&str, bool) + Send + Sync>;

/// Whether a host chain is a program of a chain that a process runs, by its name.
pub fn is_of_run(name: &str) -> bool {
    let mut numbers = name.strip_prefix(PREFIX).into_iter().flat_map(|of| of.splitn(3, '-'));
    let mut is_number = || numbers.next().is_some_and(|of| of.parse::<u32>().is_ok());
    is_number() && is_number()
}

/// Starts programs beside a chain.
pub struct Programs {
    /// The folder of host chains.
    folder: PathBuf,
    hear: Arc<Hear>,
    swept: Once,
    /// How many were started.
    started: AtomicU32,
}

impl Programs {
    /// None yet. `folder` is that of host chains.
    pub fn new(folder: PathBuf, hear: Hear) -> Self {
        let hear = Arc::new(hear);
        Self { folder, hear, swept: Once::new(), started: AtomicU32::new(0) }
    }

    /// Takes down what processes left that a crash ended.
    fn sweep(&self) {
        let all = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let left = all.filter(|entry| is_of_run(&entry.file_name().to_string_lossy()));
        for entry in left {
            if let Ok(Opened::There(journal) | Opened::Left(journal)) = Journal::open(&entry.path())
            {
                journal.end_forgotten();
                let taken = journal.take_down();
                let what = entry.file_name();
                (self.hear)(
                    &match taken {
                        Ok(_) => {
                            format!("what a crash left of '{}' was taken down", what.display())
                        }
                        Err(why) => {
                            format!("what a crash left of '{}' stays: {why}", what.display())
                        }
                    },
                    false,
                );
            }
        }
    }
}

/// What an element says of what runs, as host chains have it.
fn function(command: &Command) -> Result<Function, String> {
    let mut files = Beside { folder: PathBuf::new(), most: 0, variables: |_| None };
    let split = |words: &[String]| match words {
        [path, arguments @ ..] => Ok((path.clone(), arguments.to_vec())),
        [] => Err("nothing to run".to_string()),
    };
    match command {
        Command::Program(words) => {
            let (path, arguments) = split(words)?;
            Ok(Function::Program(files.program(&path)?, arguments))
        }
        Command::Image(words, runtime) => {
            let (path, arguments) = split(words)?;
            let runtime = runtime.clone().unwrap_or_else(|| RUNTIME.into());
            container::find_for_functions(&runtime)?;
            Ok(Function::Image { path: files.image(&path)?, arguments, runtime })
        }
    }
}

/// The chain of a program between two links with these names.
fn chain(spec: &ProcessSpec, name: &str, ends: &[String; 2]) -> Result<HostChain, String> {
    let function = function(&spec.command)?;
    let between = |what: &str| ends.clone().map(|end| format!("{what}{end}"));
    let (fabric, [input, output], config, writes, interfaces) = match &spec.api {
        Api::Interfaces { addresses, routes, forwards, privileges } => {
            let privileges = privileges.iter().filter_map(|name| Privilege::find(name));
            let interfaces = Interfaces {
                addresses: addresses.clone(),
                routes: routes.clone(),
                forward: *forwards,
                privileges: privileges.collect(),
            };
            (Fabric::Links("direct".into()), between(LINK), "", true, Some(interfaces))
        }
        // The chain has the kernel's end of two TAP interfaces, and who moves packets the other.
        Api::Runtime { config, writes } => {
            (Fabric::Shared, between("tap:"), config.as_str(), *writes, None)
        }
    };
    let mut limits = if interfaces.is_some() { PROGRAMS } else { Limits::default() };
    limits.memory = spec.memory.unwrap_or(limits.memory);
    limits.threads = spec.threads.unwrap_or(limits.threads);
    let mut chain = HostChain::alone(name, function, config.into(), input, output);
    chain.fabric = fabric;
    chain.core = spec.core;
    chain.nfs[0] = Nf { limits, interfaces, writes, ..chain.nfs[0].clone() };
    Ok(chain)
}

/// The part of an element's name that people know it by: `ids` of `ids/process`, as a name of a chain.
fn short(element: &str) -> String {
    let name = element.rsplit_once('/').map_or(element, |(compound, _)| compound);
    let good = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    name.chars().map(good).take(12).collect()
}

impl Launcher for Programs {
    fn start(&self, spec: &ProcessSpec) -> Result<Arc<dyn Process>, String> {
        self.swept.call_once(|| self.sweep());
        let (process, number) = (std::process::id(), self.started.fetch_add(1, Ordering::Relaxed));
        let nf = short(&spec.element);
        let name = format!("{PREFIX}{process}-{number}-{nf}");
        debug_assert!(is_name(&name), "{name}");
        let ends = ["a", "b"].map(|side| format!("ct{process:x}-{number:x}{side}"));
        let chain = chain(spec, &nf, &ends)?;
        let at = self.folder.join(&name);
        let journal = Journal::begin(&at).map_err(|why| why.to_string())?;
        let (started, starts) = channel();
        let hear = Arc::clone(&self.hear);
        let of = spec.element.clone();
        let work = move || {
            run(chain, journal, at.join(SOCKET), &started, &|line: &str, is_error| {
                hear(&format!("{of}: {line}"), is_error)
            })
        };
        let thread = std::thread::Builder::new().name(nf).spawn(work);
        let thread = thread.map_err(|why| format!("the system gives no thread: {why}"))?;
        let running = |handle| Running { ends, handle, thread: Mutex::new(Some(thread)) };
        let started = match starts.recv() {
            Ok(Ok(handle)) => running(handle),
            Ok(Err(why)) => return Err(why),
            Err(_) => return Err("it did not start".into()),
        };
        match starts.recv_timeout(SETTLE) {
            Ok(Err(why)) => Err(why),
            _ => Ok(Arc::new(started)),
        }
    }
}

/// Runs the chain of one program until it is told to end. Sends what ends it once it runs, or why it does not.
fn run(
    chain: HostChain,
    journal: Journal,
    control: PathBuf,
    started: &Sender<Result<Handle, String>>,
    hear: &dyn Fn(&str, bool),
) {
    let ends = [&chain.input, &chain.output]
        .map(|end| end.rsplit(':').next().unwrap_or_default().to_string());
    // There are no elements to be run.
    let service = match Service::new(chain, &Default::default(), journal) {
        Ok(service) => service,
        Err(why) => return drop(started.send(Err(why.to_string()))),
    };
    // The kernel has nothing to say on the chain's interfaces. Where there is no IPv6, it says nothing.
    for end in ends {
        let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{end}/disable_ipv6"), "1");
    }
    let (handle, mut is_running) = (service.handle(), false);
    let ran =
        service.run(Some(control), &mut |line| match std::mem::replace(&mut is_running, true) {
            // The first thing that is said is that it runs.
            false => drop(started.send(Ok(handle.clone()))),
            true => hear(line, false),
        });
    // Nobody waits for it any more where the chain runs.
    if let Err(why) = ran
        && started.send(Err(why.to_string())).is_err()
    {
        hear(&format!("it is given up: {why}; no packets go through it any more"), true);
    }
}

/// A program that runs.
struct Running {
    ends: [String; 2],
    handle: Handle,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Process for Running {
    fn ends(&self) -> &[String; 2] {
        &self.ends
    }

    fn end(&self) {
        self.handle.stop();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}
