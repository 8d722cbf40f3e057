//! Containers by runc: an image's files, read-only; no network, no capabilities, no new privileges.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, getrlimit};
use serde_json::{Value, json};

use super::{Environment, Packets, Running, Start};
use crate::confine::{self, User};
use crate::image::Image;
use crate::process::{MARK, needs};
use crate::{Failure, Journal, Process, cgroup};

/// Where the files of images are while a service runs: below, a folder that carries the mark of its journal. It is a place from which
/// programs may be run.
const FILES: &str = "/var/lib/catena/images";

/// The runtimes that have files of their own in the folder of a journal.
const RUNTIMES: [&str; 2] = ["runc", "crun"];

/// Tasks beyond an NF's threads: runc has some until it starts the NF.
const RUNC_TASKS: u32 = 24;

/// An image whose files are there.
#[derive(Clone, Debug)]
pub(crate) struct Runc {
    root: PathBuf,
    arguments: Vec<String>,
    environment: Vec<String>,
    folder: String,
}

impl Runc {
    /// Writes an image's files, once for all that run it.
    pub(crate) fn new(
        path: &Path,
        arguments: &[String],
        journal: &Journal,
    ) -> Result<Self, Failure> {
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::Impossible(
                "containers are started by root here: use sudo, or `program:` in the place of `image:`".into(),
            ));
        }
        needs(&["runc"])?;
        // Containers outlive the program that starts them: they become children of this process, not of the first of all.
        let subreaper = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        subreaper.map_err(|why| Failure::Impossible(format!("no parent of containers: {why}")))?;
        let image = Image::open(path).map_err(Failure::Impossible)?;
        let files = journal_files(journal);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&files)
            .map_err(Failure::at(&files))?;
        let root = files.join(image.digest());
        if !root.exists() {
            let unpacked = image.unpack(&root);
            unpacked.map_err(|why| Failure::Impossible(format!("{}: {why}", path.display())))?;
        }
        Ok(Self {
            root,
            arguments: if arguments.is_empty() { image.arguments() } else { arguments.to_vec() },
            environment: image.environment(),
            folder: image.folder(),
        })
    }

    /// The container's configuration, as the OCI runtime specification has it.
    fn configuration(&self, start: &Start<'_>, user: u32, id: &str, mark: &str) -> Value {
        let limits = start.limits;
        let (network, privileges, seccomp, descriptors) = match &start.packets {
            Packets::Shared(_) => {
                (json!({ "type": "network" }), &[][..], confine::oci(limits), confine::DESCRIPTORS)
            }
            Packets::Interfaces(namespace, privileges) => (
                json!({ "type": "network", "path": namespace.file() }),
                *privileges,
                confine::oci_of_programs(),
                confine::DESCRIPTORS_OF_PROGRAMS,
            ),
        };
        // No more than this process may have.
        let descriptors =
            getrlimit(Resource::Nofile).maximum.map_or(descriptors, |most| most.min(descriptors));
        let has: Vec<&str> = privileges.iter().map(|of| of.capability()).collect();
        let mut environment = self.environment.clone();
        environment.push(format!("{MARK}={mark}"));
        let namespaces = ["pid", "ipc", "uts", "mount", "cgroup"];
        let mut namespaces = namespaces.map(|kind| json!({ "type": kind })).to_vec();
        namespaces.push(network);
        let limit = |name: &str, most: u64| json!({ "type": name, "soft": most, "hard": most });
        let mount = |to: &str, kind: &str, options: &[&str]| json!({ "destination": to, "type": kind, "source": kind, "options": options });
        json!({
            "ociVersion": "1.0.2",
            "process": {
                "terminal": false,
                "user": { "uid": user, "gid": user },
                "args": self.arguments,
                "env": environment,
                "cwd": self.folder,
                "capabilities": {
                    "bounding": has, "effective": has, "inheritable": has, "permitted": has, "ambient": has,
                },
                "noNewPrivileges": true,
                "rlimits": [limit("RLIMIT_NOFILE", descriptors), limit("RLIMIT_CORE", 0)],
            },
            "root": { "path": self.root, "readonly": true },
            "hostname": "nf",
            "mounts": [
                mount("/proc", "proc", &["nosuid", "noexec", "nodev"]),
                mount("/dev", "tmpfs", &["nosuid", "noexec", "mode=755", "size=64k"]),
                mount("/tmp", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", "size=16m"]),
                mount("/run", "tmpfs", &["nosuid", "noexec", "nodev", "mode=1777", "size=16m"]),
            ],
            "linux": {
                "cgroupsPath": format!("/{id}"),
                "namespaces": namespaces,
                "resources": {
                    "memory": { "limit": limits.memory },
                    "pids": { "limit": limits.threads + RUNC_TASKS },
                    "devices": [{ "allow": false, "access": "rwm" }],
                },
                "seccomp": seccomp,
                "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/sched_debug", "/proc/timer_list"],
                "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
            },
        })
    }
}

impl Environment for Runc {
    fn start(&self, start: Start<'_>, journal: &Journal) -> Result<Running, Failure> {
        let id = format!("catena-{}-{}-{}", journal.mark(), start.chain, start.seat);
        let bundle = journal.folder().join("bundles").join(&id);
        std::fs::create_dir_all(&bundle).map_err(Failure::at(&bundle))?;
        let container = Container { state: state(journal, "runc"), bundle, id };
        let user = User::take()?;
        let configuration =
            self.configuration(&start, user.number(), &container.id, journal.mark());
        let started = container.start(&configuration, start, journal);
        if started.is_err() {
            container.delete();
        }
        Ok(Running {
            process: started?,
            container: Some(container),
            groups: Vec::new(),
            _user: Some(user),
        })
    }
}

/// A container that was made.
#[derive(Debug)]
pub(crate) struct Container {
    state: PathBuf,
    /// The folder of its configuration.
    bundle: PathBuf,
    id: String,
}

impl Container {
    fn start(
        &self,
        configuration: &Value,
        start: Start<'_>,
        journal: &Journal,
    ) -> Result<Process, Failure> {
        let path = self.bundle.join("config.json");
        std::fs::write(&path, configuration.to_string()).map_err(Failure::at(&path))?;
        let number = self.bundle.join("process");
        let mut create = self.runc(journal, "create");
        create.arg("--bundle").arg(&self.bundle).arg("--pid-file").arg(&number).arg(&self.id);
        let [output, errors] = start.output;
        let input = match start.packets {
            Packets::Shared(socket) => Stdio::from(socket),
            Packets::Interfaces(..) => Stdio::null(),
        };
        self.finish(create.stdin(input).stdout(output).stderr(errors))?;
        drop(create);
        let process = std::fs::read_to_string(&number).map_err(Failure::at(&number))?;
        let process = process.trim().parse().ok().and_then(Process::open);
        let gone = || Failure::Command("runc create".into(), "the container ended at once".into());
        let process = process.ok_or_else(gone)?;
        // A group of its own has no share of real-time scheduling.
        cgroup::bring_to_own("cpu", process.number);
        let mut begin = self.runc(journal, "start");
        self.finish(
            begin.arg(&self.id).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()),
        )?;
        Ok(process)
    }

    fn runc(&self, journal: &Journal, what: &str) -> Command {
        let mut command = journal.marked(Command::new("runc"));
        command.arg("--root").arg(&self.state);
        command.arg("--log").arg(self.bundle.join("log")).args(["--log-format", "json", what]);
        command
    }

    /// Runs a command of runc to its end.
    fn finish(&self, command: &mut Command) -> Result<(), Failure> {
        let status = command.status().map_err(|why| crate::process::absent(command, why))?;
        if status.success() {
            return Ok(());
        }
        let log = std::fs::read_to_string(self.bundle.join("log")).unwrap_or_default();
        let last = log.lines().rev().find_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            (line.get("level")? == "error")
                .then(|| line.get("msg")?.as_str().map(str::to_string))?
        });
        let said = last.unwrap_or_else(|| format!("{status}"));
        Err(Failure::Command("runc".into(), said))
    }

    /// What counts its memory.
    pub(crate) fn memory_group(&self) -> Option<PathBuf> {
        cgroup::root("memory").map(|(root, _)| root.join(&self.id))
    }

    /// Removes it, its group of processes, and its configuration.
    pub(crate) fn delete(&self) {
        delete("runc", &self.state, &self.id);
        let _ = std::fs::remove_dir_all(&self.bundle);
    }
}

fn delete(runtime: &str, state: &Path, id: &str) {
    let mut command = Command::new(runtime);
    command.arg("--root").arg(state).args(["delete", "--force", id]);
    let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// The folder of files that containers have, which goes with the journal.
pub(crate) fn journal_files(journal: &Journal) -> PathBuf {
    Path::new(FILES).join(journal.mark())
}

/// The folder of a runtime's own files.
pub(crate) fn state(journal: &Journal, runtime: &str) -> PathBuf {
    journal.folder().join(runtime)
}

/// Removes all containers of a journal, and the files of their images, once its processes have ended.
pub(crate) fn delete_all(journal: &Journal, has_ended: bool) {
    for runtime in RUNTIMES {
        let state = state(journal, runtime);
        for entry in std::fs::read_dir(&state).into_iter().flatten().flatten() {
            if let Some(id) = entry.file_name().to_str() {
                delete(runtime, &state, id);
            }
        }
    }
    if has_ended && !journal.mark().is_empty() {
        let _ = std::fs::remove_dir_all(journal_files(journal));
    }
}
