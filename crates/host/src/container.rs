//! Container runtimes: what starts a program in a network namespace that is there, perhaps with a root file system of its own. They run
//! the applications of netbench and the images of network functions.

mod lxc;
mod oci;
mod plain;
mod podman;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, getrlimit};
use serde_json::Value;

use crate::process::MARK;
use crate::{Failure, Journal, Limits, Namespace, Process, cgroup, image};

/// A container runtime.
pub trait Runtime: std::fmt::Debug + Sync + Send {
    /// The name that users know it by.
    fn name(&self) -> &'static str;

    /// What it is, in a few words.
    fn summary(&self) -> &'static str;

    /// Its version, if it is here.
    ///
    /// # Errors
    /// What it needs.
    fn look(&self) -> Result<String, String>;

    /// Whether programs have a root file system of their own.
    fn has_root(&self) -> bool {
        true
    }

    /// Whether it starts network functions.
    fn takes_functions(&self) -> bool {
        true
    }

    /// Whether it does so for users without root's rights, too.
    fn takes_users(&self) -> bool {
        false
    }

    /// A command that runs a container to its end, on the command's own input and output.
    ///
    /// # Errors
    /// If its configuration cannot be written.
    fn command(&self, container: &Container) -> Result<Command, Failure>;

    /// Starts a container that stays. Its program is a child of this process, which is a subreaper.
    ///
    /// # Errors
    /// Why it does not start, as the runtime has it.
    fn start(&self, container: &Container, stdio: [Stdio; 3]) -> Result<Process, Failure>;

    /// The control group that counts the memory of a container that was started.
    fn memory_group(&self, _container: &Container) -> Option<PathBuf> {
        None
    }

    /// Ends a container at once, and removes what the runtime has of it.
    fn end(&self, _container: &Container) {}

    /// Ends all containers of a journal, and removes what is not in its folder.
    fn clean(&self, _journal: &Journal) {}
}

/// A container: a program, and what it finds, has and may use.
#[derive(Clone, Debug)]
pub struct Container {
    /// What its runtime knows it by.
    id: String,
    /// The mark of the journal whose processes these are.
    mark: String,
    /// The folder of that journal.
    journal: PathBuf,
    /// The program and its arguments.
    words: Vec<String>,
    /// Variables of its environment, `NAME=VALUE`.
    environment: Vec<String>,
    /// The folder that it begins in.
    folder: String,
    /// Its root file system, which it only reads; without one, it has the files of this host.
    root: Option<PathBuf>,
    /// Its network; without one, it has nothing.
    namespace: Option<Namespace>,
    user: u32,
    capabilities: Vec<&'static str>,
    /// Whether it finds `/sys`.
    has_sys: bool,
    limits: Option<Limits>,
    /// Descriptors at most.
    descriptors: Option<u64>,
    /// Which system calls it may make, as the OCI runtime specification has it.
    calls: Option<Value>,
}

/// What applications may do: open raw sockets and sockets for AF_XDP, lock memory for these, choose their CPU.
const OF_APPLICATIONS: [&str; 8] = [
    "CAP_NET_RAW",
    "CAP_NET_ADMIN",
    "CAP_NET_BIND_SERVICE",
    "CAP_IPC_LOCK",
    "CAP_SYS_NICE",
    "CAP_SYS_ADMIN",
    "CAP_BPF",
    "CAP_PERFMON",
];

/// Tasks beyond an NF's threads: a runtime has some until it starts the NF.
const TASKS: u32 = 24;

/// File systems in memory that containers can write to: where, and their options.
const IN_MEMORY: [(&str, &[&str]); 3] = [
    ("/dev", &["nosuid", "noexec", "mode=755", "size=64k"]),
    ("/tmp", &["nosuid", "noexec", "nodev", "mode=1777", "size=16m"]),
    ("/run", &["nosuid", "noexec", "nodev", "mode=1777", "size=16m"]),
];

/// What a network function has, and may use.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) words: Vec<String>,
    pub(crate) environment: Vec<String>,
    pub(crate) folder: String,
    pub(crate) root: PathBuf,
    pub(crate) namespace: Option<Namespace>,
    pub(crate) user: u32,
    pub(crate) capabilities: Vec<&'static str>,
    pub(crate) limits: Limits,
    pub(crate) descriptors: u64,
    pub(crate) calls: Value,
}

impl Container {
    /// One of an application: it may use raw sockets, and has the limits of this process.
    pub fn of_application(
        journal: &Journal,
        namespace: &Namespace,
        program: &Path,
        root: Option<&Root>,
        arguments: &[String],
    ) -> Self {
        let program =
            root.map_or_else(|| program.display().to_string(), |root| root.program.clone());
        Self {
            id: format!("catena-{}", namespace.name),
            mark: journal.mark().into(),
            journal: journal.folder().into(),
            words: [program].into_iter().chain(arguments.iter().cloned()).collect(),
            environment: root.map(|root| root.environment.clone()).unwrap_or_default(),
            folder: "/".into(),
            root: root.map(|root| root.path.clone()),
            namespace: Some(namespace.clone()),
            user: 0,
            capabilities: OF_APPLICATIONS.to_vec(),
            has_sys: true,
            limits: None,
            descriptors: None,
            calls: None,
        }
    }

    /// One of a network function.
    pub(crate) fn of_function(journal: &Journal, name: &str, of: Function) -> Self {
        // No more than this process may have.
        let most = getrlimit(Resource::Nofile).maximum;
        Self {
            id: format!("catena-{}-{name}", journal.mark()),
            mark: journal.mark().into(),
            journal: journal.folder().into(),
            words: of.words,
            environment: of.environment,
            folder: of.folder,
            root: Some(of.root),
            namespace: of.namespace,
            user: of.user,
            capabilities: of.capabilities,
            has_sys: false,
            limits: Some(of.limits),
            descriptors: Some(most.map_or(of.descriptors, |most| most.min(of.descriptors))),
            calls: Some(of.calls),
        }
    }

    /// The folder of what is written for it, which is made.
    fn bundle(&self) -> Result<PathBuf, Failure> {
        let bundle = self.journal.join("containers").join(&self.id);
        std::fs::create_dir_all(&bundle).map_err(Failure::at(&bundle))?;
        Ok(bundle)
    }

    /// Removes that folder.
    fn remove_bundle(&self) {
        let _ = std::fs::remove_dir_all(self.journal.join("containers").join(&self.id));
    }

    /// Writes a file to that folder.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.bundle()?.join(name);
        std::fs::write(&path, text).map_err(Failure::at(&path))?;
        Ok(path)
    }

    fn root(&self) -> Result<&Path, Failure> {
        let root = self.root.as_deref();
        root.ok_or_else(|| Failure::Impossible("a container without files".into()))
    }

    /// The variables of its environment with the journal's mark.
    fn marked_environment(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.mark);
        self.environment.iter().cloned().chain([mark]).collect()
    }

    /// A command of a runtime, which ends with the journal's other processes.
    fn marked(&self, mut command: Command) -> Command {
        command.env(MARK, &self.mark);
        command
    }
}

/// A root file system: a program with its shared libraries.
#[derive(Clone, Debug)]
pub struct Root {
    path: PathBuf,
    /// The program in it.
    program: String,
    /// Variables of its environment.
    environment: Vec<String>,
}

impl Root {
    /// Writes one, which goes with the journal.
    ///
    /// # Errors
    /// If a library is not found, or a file cannot be written.
    pub fn of(program: &Path, journal: &Journal) -> Result<Self, Failure> {
        let path = files(journal).join("root");
        let (program, environment) = image::lay_out(program, &path)?;
        Ok(Self { path, program, environment })
    }
}

/// Where root file systems are while they are used: below, a folder that carries the mark of its journal. It is a place from which programs
/// may be run.
const FILES: &str = "/var/lib/catena/images";

/// The folder of root file systems of a journal: root's, or below the user's own.
pub(crate) fn files(journal: &Journal) -> PathBuf {
    match rustix::process::geteuid().is_root() {
        true => Path::new(FILES).join(journal.mark()),
        false => journal.folder().join("images"),
    }
}

/// All of them.
pub fn all() -> [&'static dyn Runtime; 5] {
    [&plain::Plain, &oci::Oci::RUNC, &oci::Oci::CRUN, &podman::Podman, &lxc::Lxc]
}

/// The one of a name.
///
/// # Errors
/// If there is none, in words.
pub fn find(name: &str) -> Result<&'static dyn Runtime, String> {
    find_among(name, &all())
}

/// The one of a name that starts network functions.
///
/// # Errors
/// If there is none, in words.
pub(crate) fn find_for_functions(name: &str) -> Result<&'static dyn Runtime, String> {
    let all: Vec<_> = all().into_iter().filter(|runtime| runtime.takes_functions()).collect();
    find_among(name, &all)
}

fn find_among(name: &str, all: &[&'static dyn Runtime]) -> Result<&'static dyn Runtime, String> {
    let names: Vec<&str> = all.iter().map(|runtime| runtime.name()).collect();
    let found = all.iter().copied().find(|runtime| runtime.name() == name);
    found.ok_or_else(|| match ir::nearest(name, names.iter().copied()) {
        Some(near) => format!("there is no container runtime '{name}': did you mean '{near}'?"),
        None => format!("there is no container runtime '{name}'; they are {}", names.join(", ")),
    })
}

/// Removes all containers of a journal, and their root file systems once its processes have ended.
pub(crate) fn clean_all(journal: &Journal, has_ended: bool) {
    for runtime in all() {
        runtime.clean(journal);
    }
    if has_ended && !journal.mark().is_empty() {
        let _ = std::fs::remove_dir_all(files(journal));
        cgroup::remove_everywhere(&group(journal.mark()));
    }
}

/// The control group that has those of containers below it, where the runtime does not remove them itself.
fn group(mark: &str) -> String {
    format!("{}{mark}", cgroup::PREFIX)
}

/// The version of a program, or that it is needed.
fn version_of(program: &'static str, package: &str) -> Result<String, String> {
    match crate::run(Command::new(program).arg("--version"), "") {
        Ok(said) => {
            let line = said.lines().next().unwrap_or_default().trim();
            Ok(line.replace(" version", ""))
        }
        Err(_) => Err(format!("the program {program} (Debian: {package})")),
    }
}

/// Runs a command of a runtime to its end; what it printed is of no interest.
fn quietly(command: &mut Command) {
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
