//! `podman`, which has runc start containers. It has all files of its own in the journal's folder, and asks no registry.

use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, getrlimit};

use super::oci::Oci;
use super::{Container, IN_MEMORY, Runtime, TASKS, group, quietly, version_of};
use crate::process::{MARK, PATH, absent, run};
use crate::{Failure, Journal, Process, cgroup};

#[derive(Debug)]
pub(super) struct Podman;

/// Processes and threads of one user at most: podman may have no more itself, whatever started it.
const MOST_TASKS: u64 = 32_768;

/// The file of a container's folder that has what podman knows it by.
const KNOWN: &str = "known";

/// The control group of a container, by what podman knows it by.
fn below(mark: &str, known: &str) -> String {
    format!("{}/libpod-{known}", group(mark))
}

/// A failure without the words of the command, which are many.
fn short(why: Failure) -> Failure {
    match why {
        Failure::Command(_, said) => Failure::Command("podman".into(), said),
        why => why,
    }
}

/// A folder beside that of the journal: podman refuses to have some of its files in one whose path is longer than 50 bytes. The mark is nobody
/// else's.
fn short_folder(mark: &str) -> PathBuf {
    Path::new("/tmp").join(group(mark))
}

/// Whether a folder is this user's, and no link.
fn is_own(folder: &Path) -> bool {
    let of = std::fs::symlink_metadata(folder);
    of.is_ok_and(|of| of.is_dir() && of.uid() == rustix::process::geteuid().as_raw())
}

/// The process whose number a file has.
fn open(path: &Path) -> Option<Process> {
    let number = std::fs::read_to_string(path).ok()?;
    number.trim().parse().ok().and_then(Process::open)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

impl Podman {
    /// The folder of its own files.
    fn state(journal: &Path) -> PathBuf {
        journal.join("podman")
    }

    /// The folder of runc's files.
    fn runc(journal: &Path) -> PathBuf {
        Self::state(journal).join("runc")
    }

    /// A command of it that has its own files in the folder of a journal.
    fn tool(journal: &Path, mark: &str) -> Command {
        let state = Self::state(journal);
        let mut command = Command::new("podman");
        command.env("CONTAINERS_CONF", state.join("containers.conf"));
        // By options, and not by that file: its monitors hand them on to the podman that cleans up.
        for (option, folder) in [
            ("--root", "files"),
            ("--tmpdir", "tmp"),
            ("--network-config-dir", "networks"),
            ("--volumepath", "volumes"),
        ] {
            command.arg(option).arg(state.join(folder));
        }
        let root = format!("root={}", Self::runc(journal).display());
        command.arg("--runroot").arg(short_folder(mark));
        command.args(["--storage-driver", "vfs", "--runtime-flag", &root]);
        command
    }

    /// Writes what has no options.
    fn configure(container: &Container) -> Result<(), Failure> {
        let state = Self::state(&container.journal);
        std::fs::create_dir_all(&state).map_err(Failure::at(&state))?;
        let short = short_folder(&container.mark);
        match DirBuilder::new().mode(0o700).create(&short) {
            // Of another container: what others made there is not used.
            Err(why) if why.kind() == ErrorKind::AlreadyExists && is_own(&short) => {}
            made => made.map_err(Failure::at(&short))?,
        }
        // What its monitors start ends with the rest, too.
        let variables = format!("\"{MARK}={}\", \"PATH={PATH}\"", container.mark);
        let text = format!(
            "[engine]\n\
             runtime = \"runc\"\n\
             cgroup_manager = \"cgroupfs\"\n\
             events_logger = \"none\"\n\
             lock_type = \"file\"\n\
             conmon_env_vars = [{variables}]\n"
        );
        let path = state.join("containers.conf");
        std::fs::write(&path, text).map_err(Failure::at(&path))
    }

    /// What podman knows a container by that was started to stay.
    fn known(container: &Container) -> Option<String> {
        let known = std::fs::read_to_string(container.bundle().ok()?.join(KNOWN)).ok()?;
        Some(known.trim().to_string())
    }

    /// A command that runs or makes a container, with all but its program.
    fn describe(container: &Container, what: &str) -> Result<Command, Failure> {
        Self::configure(container)?;
        let mut command = container.marked(Self::tool(&container.journal, &container.mark));
        // Its input and output are those of the command, without a monitor that carries them.
        command.args([what, "--log-driver", "passthrough", "--name", &container.id]);
        command.args(["--hostname", "catena", "--no-hosts", "--ipc", "none"]);
        if is_root() {
            command.args(["--cgroups", "no-conmon", "--cgroup-parent"]);
            command.arg(format!("/{}", group(&container.mark)));
        }
        command.args(["--security-opt", "no-new-privileges"]);
        command.args(["--security-opt", "apparmor=unconfined", "--security-opt"]);
        command.arg(match &container.calls {
            Some(calls) => {
                let file = container.write("seccomp.json", &calls.to_string())?;
                format!("seccomp={}", file.display())
            }
            None => "seccomp=unconfined".into(),
        });
        command.arg("--network").arg(match &container.namespace {
            Some(namespace) => format!("ns:{}", namespace.file().display()),
            None => "none".into(),
        });
        command.args(["--cap-drop", "all"]);
        for capability in &container.capabilities {
            command.args(["--cap-add", capability]);
        }
        // No more than this process may have.
        let own = |of| getrlimit(of).maximum.unwrap_or(u64::MAX);
        let descriptors =
            container.descriptors.unwrap_or_else(|| own(Resource::Nofile).min(65_536));
        let tasks = own(Resource::Nproc).min(MOST_TASKS);
        command.arg("--ulimit").arg(format!("nofile={descriptors}:{descriptors}"));
        command.arg("--ulimit").arg(format!("nproc={tasks}:{tasks}"));
        command.args(["--ulimit", "core=0:0"]);
        match container.limits {
            Some(of) if is_root() => {
                command.arg("--memory").arg(format!("{}b", of.memory));
                command.arg("--pids-limit").arg((of.threads + TASKS).to_string());
            }
            // Users have no control groups to give: what a program may write to is limited for each process, as it is without a container.
            Some(of) => {
                command.arg("--ulimit").arg(format!("data={0}:{0}", of.memory));
            }
            None => {}
        }
        command.arg("--user").arg(format!("{0}:{0}", container.user));
        command.args(["--workdir", &container.folder]);
        for variable in container.marked_environment() {
            command.arg("--env").arg(variable);
        }
        command.args(["--read-only", "--read-only-tmpfs=false"]);
        for (to, options) in IN_MEMORY.iter().filter(|(to, _)| *to != "/dev") {
            command.arg("--tmpfs").arg(format!("{to}:{}", options.join(",")));
        }
        Ok(command)
    }
}

impl Runtime for Podman {
    fn name(&self) -> &'static str {
        "podman"
    }

    fn summary(&self) -> &'static str {
        "a container by podman, with runc"
    }

    fn takes_users(&self) -> bool {
        true
    }

    fn look(&self) -> Result<String, String> {
        version_of("runc", "runc")?;
        version_of("podman", "podman")
    }

    fn command(&self, container: &Container) -> Result<Command, Failure> {
        let mut command = Self::describe(container, "run")?;
        command.arg("--rm").arg("--rootfs").arg(container.root()?).args(&container.words);
        Ok(command)
    }

    fn start(&self, container: &Container, stdio: [Stdio; 3]) -> Result<Process, Failure> {
        let bundle = container.bundle()?;
        let [number, monitor, known] = ["process", "monitor", KNOWN].map(|name| bundle.join(name));
        let mut create = Self::describe(container, "create")?;
        create.arg("--pidfile").arg(&number).arg("--conmon-pidfile").arg(&monitor);
        create.arg("--cidfile").arg(&known).arg("--rootfs").arg(container.root()?);
        run(create.args(&container.words), "").map_err(short)?;
        // The container is there after that, with this input and output, and its program does not run yet.
        let mut init = container.marked(Self::tool(&container.journal, &container.mark));
        let [input, output, errors] = stdio;
        init.args(["init", &container.id]).stdin(input).stdout(output).stderr(errors);
        let status = init.status().map_err(|why| absent(&init, why))?;
        drop(init);
        if !status.success() {
            let said = "the container is not made: its log has the reason".into();
            return Err(Failure::Command("podman".into(), said));
        }
        let gone = || Failure::Command("podman".into(), "the container ended at once".into());
        let process = open(&number).ok_or_else(gone)?;
        // Its monitor carries nothing, and would take the news of its end. Without it, this process is the parent, before the program asks who
        // that is.
        if let Some(monitor) = open(&monitor) {
            monitor.destroy();
        }
        // A group of its own has no share of real-time scheduling.
        cgroup::bring_to_own("cpu", process.number);
        let mut begin = container.marked(Self::tool(&container.journal, &container.mark));
        run(begin.args(["start", &container.id]), "").map_err(short)?;
        Ok(process)
    }

    fn memory_group(&self, container: &Container) -> Option<PathBuf> {
        let (root, _) = cgroup::root("memory").filter(|_| is_root())?;
        Some(root.join(below(&container.mark, &Self::known(container)?)))
    }

    fn end(&self, container: &Container) {
        // What its monitor would remove stays without it.
        let known = Self::known(container);
        if let Some(known) = &known {
            Oci::RUNC.delete(&Self::runc(&container.journal), known);
        }
        let mut remove = container.marked(Self::tool(&container.journal, &container.mark));
        quietly(remove.args(["rm", "--force", "--time", "0", "--ignore", &container.id]));
        if let Some(known) = &known {
            cgroup::remove_everywhere(&below(&container.mark, known));
        }
        container.remove_bundle();
    }

    fn clean(&self, journal: &Journal) {
        if Self::state(journal.folder()).is_dir() {
            Oci::RUNC.delete_all(&Self::runc(journal.folder()));
            let mut remove = journal.marked(Self::tool(journal.folder(), journal.mark()));
            quietly(remove.args(["rm", "--force", "--time", "0", "--all"]));
            // For users, it has a process that keeps their user namespace.
            if let Some(process) = open(&Self::state(journal.folder()).join("tmp/pause.pid")) {
                process.kill();
            }
            let _ = std::fs::remove_dir_all(short_folder(journal.mark()));
        }
    }
}
