//! Host chains: the manifests of `catena host up`.

mod interfaces;
mod state;
mod written;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dataplane::io::Mode;

use ir::quantity::{self, Unit};
use ir::yaml::Reading;
use ir::{Diagnostic, FileId, nearest};
use serde_saphyr::Spanned;

use crate::confine::Limits;
use crate::container;
use crate::image::Image;
use crate::state::State;

pub(crate) use interfaces::{INTERFACES, LINK};
pub use interfaces::{Interfaces, Privilege};

/// A chain of network functions in processes of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct HostChain {
    /// Its NFs, in the order of the chain.
    pub nfs: Vec<Nf>,
    /// What carries packets from one to the next.
    pub fabric: Fabric,
    /// Where packets come from, as a chain's input is bound: an interface, `tap:NAME`, `gen:…` or a capture file.
    pub input: String,
    /// Where they go to.
    pub output: String,
    /// How frames of interfaces are carried; the best mode that works if nothing is said.
    pub driver: Option<Mode>,
    /// Packets of a batch at most; by their costs if nothing is said.
    pub batch: Option<u32>,
    /// The scheduling class.
    pub policy: Policy,
    /// The slice of `other` and `batch`.
    pub slice: Option<Duration>,
    /// The priority of real-time classes.
    pub priority: u32,
    /// The core of all NFs; the last that there is if nothing is said.
    pub core: Option<usize>,
    /// The core of the switch's processes, if it has some; that of NFs if nothing is said.
    pub switch_core: Option<usize>,
    /// What separates NFs of the chain.
    pub within: Within,
    /// How the turn goes from one to the next.
    pub hand_off: HandOff,
    /// The share of time that handing off may take.
    pub overhead: f64,
    /// How long an NF may keep a batch.
    pub timeout: Duration,
    /// Where state of flows is kept; in NFs alone if nothing is said.
    pub state: Option<State>,
}

/// A network function of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nf {
    /// Its name.
    pub name: String,
    /// What it is.
    pub function: Function,
    /// Its configuration.
    pub config: String,
    /// Whether it may write to packets.
    pub writes: bool,
    /// What it may use.
    pub limits: Limits,
    /// What it finds in its namespace, if it is a program between two interfaces.
    pub interfaces: Option<Interfaces>,
}

impl Nf {
    /// One that may write to packets, and has no configuration.
    pub fn new(name: &str, function: Function) -> Self {
        Self {
            name: name.to_string(),
            function,
            config: String::new(),
            writes: true,
            limits: Limits::default(),
            interfaces: None,
        }
    }
}

/// What carries packets from one NF to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fabric {
    /// Memory.
    Shared,
    /// Links of a kind of switch.
    Links(String),
}

/// What a network function is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Function {
    /// Elements: an expression, or a file's text.
    Click(String),
    /// A program and its arguments.
    Program(PathBuf, Vec<String>),
    /// An image, an OCI layout.
    Image {
        /// Its file or folder.
        path: PathBuf,
        /// Arguments in the place of its own.
        arguments: Vec<String>,
        /// The name of the container runtime that starts it.
        runtime: String,
    },
}

/// A list of choices: names, and what they stand for.
type Choices<T, const N: usize> = [(&'static str, T); N];

/// The scheduling class of a chain's NFs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// FIFO, in the order of the chain; where that is refused, `other`.
    Cooperative,
    /// SCHED_OTHER.
    Other,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_RR.
    RoundRobin,
    /// SCHED_FIFO.
    Fifo,
}

impl std::fmt::Display for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Other => "SCHED_OTHER",
            Self::Batch => "SCHED_BATCH",
            Self::RoundRobin => "SCHED_RR",
            Self::Cooperative | Self::Fifo => "SCHED_FIFO",
        })
    }
}

/// All of them.
pub const POLICIES: Choices<Policy, 5> = [
    ("cooperative", Policy::Cooperative),
    ("other", Policy::Other),
    ("batch", Policy::Batch),
    ("rr", Policy::RoundRobin),
    ("fifo", Policy::Fifo),
];

/// What separates the NFs of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    /// They share memory, each in its turn.
    Temporal,
    /// Each copies packets to memory of its own.
    Copy,
}

const WITHIN: Choices<Within, 2> = [("temporal", Within::Temporal), ("copy", Within::Copy)];

/// How the turn goes from one NF to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOff {
    /// As the scheduling class has it.
    Auto,
    /// By sched_yield.
    Yield,
    /// Each waits in the kernel until the one before wakes it.
    Baton,
}

const HAND_OFF: Choices<HandOff, 3> =
    [("auto", HandOff::Auto), ("yield", HandOff::Yield), ("baton", HandOff::Baton)];

/// NFs of a chain at most.
pub const MOST_NFS: usize = 32;

/// Reads what a manifest names.
pub trait Files {
    /// The text of a file, by its path as the manifest has it.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn text(&mut self, path: &str) -> Result<String, String>;

    /// What a variable of the environment has.
    fn variable(&mut self, name: &str) -> Option<String>;

    /// Where a program is.
    ///
    /// # Errors
    /// Why it cannot be run.
    fn program(&mut self, path: &str) -> Result<PathBuf, String>;

    /// Where an image is that this host can run.
    ///
    /// # Errors
    /// Why it cannot.
    fn image(&mut self, path: &str) -> Result<PathBuf, String>;
}

impl HostChain {
    /// Reads a manifest.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn parse(file: FileId, text: &str, files: &mut dyn Files) -> Result<Self, Vec<Diagnostic>> {
        let help = "a host chain begins with `kind: HostChain`, and has `nfs:`, `chain:` and `io:`";
        let (written, mut found) =
            Reading::of::<written::HostChain>(file, text, "host-chain", Some(help))?;
        let chain = read(&written, &mut found, files);
        if found.found.is_empty() { Ok(chain) } else { Err(found.found) }
    }

    /// One program by itself, between two files or interfaces.
    pub fn alone(
        name: &str,
        function: Function,
        config: String,
        input: String,
        output: String,
    ) -> Self {
        Self {
            nfs: vec![Nf { config, ..Nf::new(name, function) }],
            fabric: Fabric::Shared,
            input,
            output,
            driver: None,
            batch: None,
            policy: Policy::Other,
            slice: None,
            priority: PRIORITY,
            core: None,
            switch_core: None,
            within: Within::Temporal,
            hand_off: HandOff::Baton,
            overhead: OVERHEAD,
            timeout: TIMEOUT,
            state: None,
        }
    }
}

const PRIORITY: u32 = 10;
const OVERHEAD: f64 = 0.05;
const TIMEOUT: Duration = Duration::from_millis(100);

fn choose<T: Copy>(
    found: &mut Reading,
    what: &str,
    text: Option<&Spanned<String>>,
    choices: &[(&'static str, T)],
    default: T,
) -> T {
    let Some(text) = text else { return default };
    if let Some((_, of)) = choices.iter().find(|(name, _)| *name == text.value) {
        return *of;
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    found.wrong(
        text,
        format!("'{}' is no {what}", text.value),
        Some(format!("one of {}", names.join(", "))),
    );
    default
}

fn duration(found: &mut Reading, text: &Spanned<String>) -> Duration {
    Duration::try_from_secs_f64(found.quantity(text, Unit::Time)).unwrap_or(Duration::MAX)
}

fn read(written: &written::HostChain, found: &mut Reading, files: &mut dyn Files) -> HostChain {
    if written.kind.value != "HostChain" {
        let message =
            format!("a manifest of kind '{}', and not of `kind: HostChain`", written.kind.value);
        found.wrong(&written.kind, message, None);
    }
    let fabric = fabric(written, found);
    let mut nfs: Vec<Nf> = Vec::new();
    for nf in &written.nfs {
        if !is_name(&nf.name.value) {
            let message = format!("'{}' cannot be the name of an NF", nf.name.value);
            found.wrong(&nf.name, message, Some("letters, digits and `_-`, at most 32".into()));
        } else if nfs.iter().any(|other| other.name == nf.name.value) {
            found.wrong(&nf.name, format!("two NFs have the name '{}'", nf.name.value), None);
        }
        let runtime = runtime(nf, written.runtime.as_ref(), found);
        nfs.push(Nf {
            name: nf.name.value.clone(),
            function: function(nf, runtime, found, files),
            config: nf.config.as_ref().map(|config| config.value.clone()).unwrap_or_default(),
            writes: choose(
                found,
                "choice for `writes`",
                nf.writes.as_ref(),
                &[("none", false), ("payload", true), ("all", true)],
                true,
            ),
            limits: limits(nf, found),
            interfaces: interfaces(nf, &fabric, found),
        });
    }
    let nfs = in_order(&written.chain, nfs, found);
    let io = &written.io;
    let driver =
        io.driver.as_ref().filter(|driver| driver.value != "auto").and_then(|driver| {
            driver.value.parse().map_err(|why| found.wrong(driver, why, None)).ok()
        });
    let batch = io.batch.as_ref().filter(|batch| batch.value != "auto").and_then(|batch| {
        let number =
            batch.value.parse().ok().filter(|number| (1..=nf::MOST_PACKETS).contains(number));
        if number.is_none() {
            let message = format!("'{}' is no batch", batch.value);
            found.wrong(
                batch,
                message,
                Some(format!("`auto`, or 1 to {} packets", nf::MOST_PACKETS)),
            );
        }
        number
    });
    if fabric != Fabric::Shared {
        for end in [&io.input, &io.output] {
            let name = end.value.strip_prefix(LINK).unwrap_or(&end.value);
            if !crate::is_interface_name(name) {
                let message = format!("'{}' is no end of a chain of links", end.value);
                let help = "an interface of this host, or `veth:NAME`, which is made";
                found.wrong(end, message, Some(help.into()));
            }
        }
    }
    let schedule = &written.schedule;
    let policy =
        choose(found, "scheduling class", schedule.policy.as_ref(), &POLICIES, Policy::Cooperative);
    let slice = schedule.slice.as_ref().map(|slice| {
        let of = duration(found, slice);
        if matches!(policy, Policy::Cooperative | Policy::Fifo) {
            let help = Some("leave `slice` out".into());
            found.wrong(slice, "this scheduling class has no slices".into(), help);
        } else if policy == Policy::RoundRobin {
            let message = "the quantum of SCHED_RR is the whole system's".into();
            let help = "write it to /proc/sys/kernel/sched_rr_timeslice_ms, and leave `slice` out";
            found.wrong(slice, message, Some(help.into()));
        } else if !(100..=100_000).contains(&of.as_micros()) {
            let message = "the kernel keeps slices between 0.1 and 100 ms".into();
            found.wrong(slice, message, None);
        }
        of
    });
    if let Some(priority) = schedule.priority.as_ref().filter(|of| !(1..=98).contains(&of.value)) {
        found.wrong(priority, "priorities are 1 to 98".into(), None);
    }
    let nothing = written::Isolation::default();
    let isolation = written.isolation.as_ref().map_or(&nothing, |of| &of.value);
    if fabric != Fabric::Shared {
        let help = || Some("`fabric: shared` has it".to_string());
        if let Some(isolation) = &written.isolation {
            found.wrong(isolation, "`isolation` is of NFs that share memory".into(), help());
        }
        if let Some(batch) = &io.batch {
            found.wrong(batch, "`batch` is of NFs that share memory".into(), help());
        }
    } else if let Some(switch) = &schedule.switch {
        found.wrong(switch, "NFs that share memory have no switch".into(), None);
    }
    let overhead = isolation.overhead.as_ref().map_or(OVERHEAD, |text| {
        let share = found.quantity(text, Unit::Share);
        if !(0.001..=1.0).contains(&share) {
            found.wrong(text, "the share is 0.1 to 100 %".into(), None);
        }
        share
    });
    let timeout = isolation.timeout.as_ref().map_or(TIMEOUT, |text| {
        let of = duration(found, text);
        if !(1..=60_000).contains(&of.as_millis()) {
            found.wrong(text, "timeouts are 1 ms to 60 s".into(), None);
        }
        of
    });
    let state = written.state.as_ref().and_then(|state| state::read(state, &fabric, found, files));
    HostChain {
        nfs,
        fabric,
        input: io.input.value.clone(),
        output: io.output.value.clone(),
        driver,
        batch,
        policy,
        slice,
        priority: schedule.priority.as_ref().map_or(PRIORITY, |priority| priority.value),
        core: schedule.core.as_ref().map(|core| core.value),
        switch_core: schedule.switch.as_ref().map(|core| core.value),
        within: choose(found, "separation", isolation.within.as_ref(), &WITHIN, Within::Temporal),
        hand_off: choose(found, "hand-off", isolation.hand_off.as_ref(), &HAND_OFF, HandOff::Auto),
        overhead,
        timeout,
        state,
    }
}

/// Names of links in manifests, and the kind of switch that makes them.
const LINKS: Choices<&str, 2> = [("b2b", "direct"), ("bridge", "linux-bridge")];

fn fabric(written: &written::HostChain, found: &mut Reading) -> Fabric {
    let Some(fabric) = written.fabric.as_ref().filter(|of| of.value != "shared") else {
        return Fabric::Shared;
    };
    let name = LINKS.iter().find(|(name, _)| *name == fabric.value);
    let name = name.map_or(fabric.value.as_str(), |(_, kind)| kind);
    match crate::fabric::find(name) {
        Ok(of) => {
            if let Some(why) = of.unfit_for_chains() {
                let message = format!("'{name}' {why}, and cannot have packets go through a chain");
                found.wrong(fabric, message, Some("`b2b`, `bridge` or `ovs`".into()));
            }
        }
        Err(_) => {
            let known = ["shared", "b2b", "bridge", "ovs", "catena", "catena-af-packet"];
            let help = match nearest(&fabric.value, known) {
                Some(near) => format!("'{near}'?"),
                None => format!("one of {}", known.join(", ")),
            };
            found.wrong(fabric, format!("'{}' is no fabric", fabric.value), Some(help));
        }
    }
    Fabric::Links(name.to_string())
}

/// What an NF finds in its namespace, if it is a program between interfaces.
fn interfaces(nf: &written::Nf, fabric: &Fabric, found: &mut Reading) -> Option<Interfaces> {
    let is_program = choose(
        found,
        "interface between NFs and packets",
        nf.api.as_ref(),
        &[("nf", false), ("veth", true)],
        false,
    );
    match (is_program, fabric) {
        (true, _) if nf.click.is_some() => {
            let help = "leave `api` out: elements have the devices `eth0` and `eth1` there";
            found.wrong(&nf.name, "elements are no program".into(), Some(help.into()));
        }
        (true, Fabric::Shared) => {
            let help = "`fabric: b2b`, `bridge` or `ovs` for the chain";
            let message = "a program between interfaces shares no memory".into();
            found.wrong(&nf.name, message, Some(help.into()));
        }
        (false, Fabric::Links(_)) if nf.click.is_none() => {
            let help = "`fabric: shared` for the chain; or `api: veth`, if it is a program between two interfaces";
            let message = "an NF of the runtime has no interfaces".into();
            found.wrong(&nf.name, message, Some(help.into()));
        }
        (true, Fabric::Links(_)) => {
            if let Some(config) = &nf.config {
                let help = "arguments of the program are behind its name";
                let message = "`config` is of NFs with the runtime".into();
                found.wrong(config, message, Some(help.into()));
            }
            return Some(interfaces::read(nf, found));
        }
        (false, _) => interfaces::refuse(nf, found),
    }
    None
}

/// Bytes of memory of an NF.
const MEMORY: std::ops::RangeInclusive<u64> = 16 << 20..=1 << 40;

/// What elements may use if nothing is said. Their chain is proven in a thread, whose stack has half a gigabyte of addresses.
const ELEMENTS: Limits = Limits { memory: 1 << 30, threads: 4 };

/// What programs between interfaces may use if nothing is said: they have processes, too.
pub(crate) const PROGRAMS: Limits = Limits { memory: 512 << 20, threads: 64 };

/// Threads of an NF at most.
const MOST_THREADS: u32 = 1024;

fn limits(nf: &written::Nf, found: &mut Reading) -> Limits {
    let is_program = nf.api.as_ref().is_some_and(|api| api.value == "veth");
    let mut limits = match (nf.click.is_some(), is_program) {
        (true, _) => ELEMENTS,
        (_, true) => PROGRAMS,
        _ => Limits::default(),
    };
    if let Some(memory) = &nf.memory {
        limits.memory = (found.quantity(memory, Unit::Length) / 8.0) as u64;
        if !MEMORY.contains(&limits.memory) {
            found.wrong(memory, "an NF has 16 MiB of memory to 1 TiB".into(), None);
        }
    }
    if let Some(threads) = &nf.threads {
        limits.threads = threads.value;
        if !(1..=MOST_THREADS).contains(&threads.value) {
            found.wrong(threads, format!("an NF has 1 to {MOST_THREADS} threads"), None);
        }
    }
    limits
}

/// The container runtime of images, if nothing is said.
pub(crate) const RUNTIME: &str = "runc";

/// The container runtime of an NF; one of the chain is for all images.
fn runtime(nf: &written::Nf, of_chain: Option<&Spanned<String>>, found: &mut Reading) -> String {
    if let Some(own) = nf.runtime.as_ref().filter(|_| nf.image.is_none()) {
        let help = Some("leave `runtime` out".into());
        found.wrong(own, "a container runtime starts images alone".into(), help);
    }
    let Some(named) = nf.runtime.as_ref().or(of_chain) else { return RUNTIME.into() };
    if let Err(why) = container::find_for_functions(&named.value) {
        found.wrong(named, why, None);
    }
    named.value.clone()
}

fn function(
    nf: &written::Nf,
    runtime: String,
    found: &mut Reading,
    files: &mut dyn Files,
) -> Function {
    let nothing = Function::Click(String::new());
    match (&nf.click, &nf.program, &nf.image) {
        (Some(click), None, None) if click.value.ends_with(".click") => {
            match files.text(&click.value) {
                Ok(text) => Function::Click(text),
                Err(why) => {
                    found.wrong(click, why, None);
                    nothing
                }
            }
        }
        (Some(click), None, None) => {
            Function::Click(format!("input -> {} -> output;", click.value))
        }
        (None, None, Some(image)) => {
            let (path, arguments) = words(&image.value);
            match files.image(&path) {
                Ok(path) => Function::Image { path, arguments, runtime },
                Err(why) => {
                    found.wrong(image, why, None);
                    nothing
                }
            }
        }
        (None, Some(program), None) => {
            let (path, arguments) = words(&program.value);
            match files.program(&path) {
                Ok(path) => Function::Program(path, arguments),
                Err(why) => {
                    found.wrong(program, why, None);
                    nothing
                }
            }
        }
        _ => {
            let message =
                format!("'{}' is one thing: elements, a program, or an image", nf.name.value);
            found.wrong(
                &nf.name,
                message,
                Some("`click: fw.click`, `program: ./acl` or `image: acl.oci`".into()),
            );
            nothing
        }
    }
}

/// A path, and arguments.
fn words(text: &str) -> (String, Vec<String>) {
    let mut words = text.split_whitespace().map(str::to_string);
    (words.next().unwrap_or_default(), words.collect())
}

/// The NFs that a chain names, in its order.
fn in_order(chain: &Spanned<String>, mut nfs: Vec<Nf>, found: &mut Reading) -> Vec<Nf> {
    let mut ordered: Vec<Nf> = Vec::new();
    let mut seen = BTreeSet::new();
    for name in chain.value.split("->").map(str::trim) {
        if !seen.insert(name) {
            let message =
                format!("'{name}' comes twice in the chain: a chain goes through each NF once");
            found.wrong(chain, message, None);
        } else if let Some(at) = nfs.iter().position(|nf| nf.name == name) {
            ordered.push(nfs.remove(at));
        } else {
            let help = nearest(name, nfs.iter().map(|nf| nf.name.as_str()));
            let help = help.map_or("`chain: fw -> nat`".into(), |near| format!("'{near}'?"));
            found.wrong(chain, format!("there is no NF '{name}'"), Some(help));
        }
    }
    for nf in nfs {
        let message = format!("the NF '{}' has no place in the chain", nf.name);
        found.wrong(chain, message, None);
    }
    if ordered.len() > MOST_NFS {
        found.wrong(chain, format!("a chain has at most {MOST_NFS} NFs"), None);
    }
    ordered
}

/// Whether this can be the name of an NF or a chain.
pub fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    (1..=32).contains(&name.len()) && name.bytes().all(is_good) && !name.starts_with('-')
}

/// Files of this host; relative paths count from a folder.
#[derive(Debug)]
pub struct Beside {
    /// The manifest's folder.
    pub folder: PathBuf,
    /// Bytes of a text at most.
    pub most: u64,
    /// The environment.
    pub variables: fn(&str) -> Option<String>,
}

impl Files for Beside {
    fn text(&mut self, path: &str) -> Result<String, String> {
        use std::io::Read;
        let at = self.folder.join(path);
        let wrong = |why: std::io::Error| format!("{}: {why}", at.display());
        let mut text = String::new();
        let file = std::fs::File::open(&at).map_err(wrong)?;
        file.take(self.most + 1).read_to_string(&mut text).map_err(wrong)?;
        match text.len() as u64 > self.most {
            true => Err(format!("{}: more than {} bytes", at.display(), self.most)),
            false => Ok(text),
        }
    }

    fn variable(&mut self, name: &str) -> Option<String> {
        (self.variables)(name)
    }

    fn program(&mut self, path: &str) -> Result<PathBuf, String> {
        let at = self.folder.join(path);
        let is_there = Path::exists(&at);
        match rustix::fs::access(&at, rustix::fs::Access::EXEC_OK) {
            Ok(()) if at.is_file() => std::path::absolute(&at).map_err(|why| why.to_string()),
            _ if !is_there => Err(format!("there is no program {}", at.display())),
            _ => Err(format!("{} is no program that may be run: `chmod +x`?", at.display())),
        }
    }

    fn image(&mut self, path: &str) -> Result<PathBuf, String> {
        let at = self.folder.join(path);
        Image::open(&at)?;
        std::path::absolute(&at).map_err(|why| why.to_string())
    }
}

/// A quantity of time, for command lines.
///
/// # Errors
/// What was expected.
pub fn time(text: &str) -> Result<Duration, String> {
    let seconds = quantity::parse(text, Unit::Time)?;
    Duration::try_from_secs_f64(seconds).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Given;

    impl Files for Given {
        fn text(&mut self, path: &str) -> Result<String, String> {
            match path {
                "fw.click" => Ok("input -> output;".into()),
                "password" => Ok("secret\n".into()),
                "empty" => Ok("\n".into()),
                _ => Err(format!("{path}: none")),
            }
        }

        fn variable(&mut self, name: &str) -> Option<String> {
            (name == "CATENA_PASSWORD").then(|| "secret".into())
        }

        fn program(&mut self, path: &str) -> Result<PathBuf, String> {
            Ok(path.into())
        }

        fn image(&mut self, path: &str) -> Result<PathBuf, String> {
            match path {
                "ids.oci" => Ok(path.into()),
                _ => Err(format!("{path}: no image")),
            }
        }
    }

    fn wrong(text: &str) -> String {
        match HostChain::parse(FileId(0), text, &mut Given) {
            Ok(chain) => panic!("{chain:?}"),
            Err(found) => found.iter().map(|of| format!("{}\n", of.message)).collect(),
        }
    }

    const GOOD: &str = "kind: HostChain\nnfs:\n  - {name: fw, click: fw.click}\n  - {name: acl, program: ./acl -v, config: 'deny all', writes: none}\n  \
        - {name: ids, image: ids.oci, memory: 64 MiB, threads: 4}\n\
        chain: acl -> fw -> ids\nio: {in: a, out: b, driver: af-packet, batch: 64}\n\
        schedule: {policy: batch, slice: 20 ms, core: 1}\nisolation: {within: copy, hand-off: baton, overhead: 10%, timeout: 1 s}\n";

    #[test]
    fn a_manifest_is_read() {
        let chain = HostChain::parse(FileId(0), GOOD, &mut Given).expect("it is good");
        let names: Vec<&str> = chain.nfs.iter().map(|nf| nf.name.as_str()).collect();
        assert_eq!(names, ["acl", "fw", "ids"]);
        let image = |runtime: &str| Function::Image {
            path: "ids.oci".into(),
            arguments: vec![],
            runtime: runtime.into(),
        };
        assert_eq!(chain.nfs[2].function, image("runc"));
        for (from, to, runtime) in [
            ("image: ids.oci", "image: ids.oci, runtime: podman", "podman"),
            ("nfs:", "runtime: crun\nnfs:", "crun"),
        ] {
            let text = GOOD.replace(from, to);
            let chain = HostChain::parse(FileId(0), &text, &mut Given).expect("it is good");
            assert_eq!(chain.nfs[2].function, image(runtime));
        }
        assert_eq!(chain.nfs[2].limits, Limits { memory: 64 << 20, threads: 4 });
        assert_eq!(chain.nfs[0].function, Function::Program("./acl".into(), vec!["-v".into()]));
        assert!(!chain.nfs[0].writes && chain.nfs[1].writes);
        assert_eq!((chain.batch, chain.core, chain.within), (Some(64), Some(1), Within::Copy));
        assert_eq!((chain.policy, chain.slice), (Policy::Batch, Some(Duration::from_millis(20))));
    }

    const STATE: &str = "state: {redis: 'rediss://ops@db:6380/2', durability: strict, ca: fw.click, password-file: password, \
        away: closed, wait: 2 s, hold: 9, cache: 2048, expire: 60 s, prefix: edge}\n";

    #[test]
    fn where_state_is_kept_is_read() {
        let chain = HostChain::parse(FileId(0), &format!("{GOOD}{STATE}"), &mut Given);
        let chain = chain.expect("it is good");
        assert!(!format!("{chain:?}").contains("secret"));
        let state = chain.state.expect("it is there");
        assert_eq!(state.server.password, Some(crate::state::Secret("secret".into())));
        assert_eq!((state.server.port, state.server.database, state.hold), (6380, 2, 9));
        assert_eq!((state.cache, state.wait.as_secs()), (2048, 2));
        let text = STATE.replace("password-file: password", "password-env: CATENA_PASSWORD");
        let chain = HostChain::parse(FileId(0), &format!("{GOOD}{text}"), &mut Given);
        let password = chain.unwrap().state.unwrap().server.password;
        assert_eq!(password, Some(crate::state::Secret("secret".into())));
        for (from, to, said) in [
            ("rediss:", "http:", "begins with `redis://`"),
            ("db:6380", "", "it names no host"),
            ("6380", "x", "the port is a number"),
            ("ops@", "ops:word@", "stands in two places"),
            ("rediss:", "redis:", "`ca` is of TLS"),
            ("ca: fw.click", "ca: x.pem", "x.pem: none"),
            ("password-file: password", "password-file: none", "none: none"),
            ("password-file: password", "password-file: empty", "an empty password"),
            (
                "password-file: password",
                "password-env: CATENA_NO_SUCH",
                "no variable 'CATENA_NO_SUCH'",
            ),
            ("strict", "always", "'always' is no durability"),
            ("closed", "shut", "'shut' is no policy"),
            ("wait: 2 s", "wait: 2 h", "1 ms to 60 s"),
            ("hold: 9", "hold: 0", "packets wait"),
            ("cache: 2048", "cache: 1", "has 1024 to"),
            ("expire: 60 s", "expire: 1 ms", "1 s or longer"),
            ("prefix: edge", "prefix: 'a:b'", "what keys begin with"),
            ("durability: strict, ", "", "missing field"),
        ] {
            assert!(STATE.contains(from), "{from}");
            let found = wrong(&format!("{GOOD}{}", STATE.replace(from, to)));
            assert!(found.contains(said), "{from} -> {to}: {found}");
            assert!(!found.contains("secret") && !found.contains("word@"), "{found}");
        }
    }

    #[test]
    fn everything_that_is_wrong_is_said() {
        let change = |from: &str, to: &str| {
            assert!(GOOD.contains(from), "{from}");
            wrong(&GOOD.replace(from, to))
        };
        for (from, to, said) in [
            ("HostChain", "Chain", "of kind 'Chain'"),
            ("name: acl", "name: fw", "two NFs have the name 'fw'"),
            ("acl -> fw", "acl -> fw -> acl", "'acl' comes twice"),
            ("acl -> fw", "acl -> fv", "there is no NF 'fv'"),
            ("acl -> fw", "fw", "the NF 'acl' has no place"),
            ("click: fw.click", "click: x.click", "x.click: none"),
            ("click: fw.click", "writes: all", "'fw' is one thing"),
            ("image: ids.oci", "image: x.oci", "x.oci: no image"),
            ("image: ids.oci", "image: ids.oci, runtime: crum", "did you mean 'crun'?"),
            ("image: ids.oci", "image: ids.oci, runtime: lxc", "they are runc, crun, podman"),
            ("nfs:", "runtime: plain\nnfs:", "they are runc, crun, podman"),
            ("writes: none", "runtime: crun", "starts images alone"),
            ("memory: 64 MiB", "memory: 64", "'64' has no unit"),
            ("memory: 64 MiB", "memory: 64 kB", "16 MiB of memory"),
            ("threads: 4", "threads: 0", "1 to 1024 threads"),
            ("batch: 64", "batch: 0", "'0' is no batch"),
            ("driver: af-packet", "driver: x", "'x' is not an I/O mode"),
            ("slice: 20 ms", "slice: 20", "'20' has no unit"),
            ("policy: batch", "policy: fifo", "this scheduling class has no slices"),
            ("policy: batch", "policy: rr", "the quantum of SCHED_RR"),
            ("within: copy", "within: c", "'c' is no separation"),
            ("timeout: 1 s", "timeout: 1 us", "timeouts are 1 ms to 60 s"),
            ("nfs:", "fabric: ofs\nnfs:", "'ofs' is no fabric"),
            ("nfs:", "fabric: macvlan\nnfs:", "'macvlan' learns addresses"),
            ("nfs:", "fabric: b2b\nnfs:", "an NF of the runtime has no interfaces"),
            ("writes: none", "api: veth", "shares no memory"),
            ("writes: none", "forward: true", "`forward` of an NF that has no interfaces"),
            ("core: 1", "switch: 1", "have no switch"),
            ("io: {in", "io: {on", "unknown field"),
        ] {
            let found = change(from, to);
            assert!(found.contains(said), "{from} -> {to}: {found}");
        }
        assert!(wrong("").contains("missing field") || !wrong("").is_empty());
    }
}
