//! `runc` and `crun`: runtimes that take a bundle as the OCI specifies it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{Container, IN_MEMORY, Runtime, TASKS, group, quietly, version_of};
use crate::process::absent;
use crate::{Failure, Journal, Process, cgroup};

/// A runtime.
#[derive(Debug)]
pub(super) struct Oci {
    program: &'static str,
    summary: &'static str,
    /// Whether it refuses control groups of version 1 where version 2 has controllers, too.
    takes_one_version: bool,
}

/// A program that is to run without the control groups of version 2, in a mount namespace of its own.
const WITHOUT_VERSION_2: &str = r#"umount /sys/fs/cgroup/unified && exec "$0" "$@""#;

impl Oci {
    pub(super) const RUNC: Self =
        Self { program: "runc", summary: "a container by runc", takes_one_version: false };
    pub(super) const CRUN: Self =
        Self { program: "crun", summary: "a container by crun", takes_one_version: true };

    /// A command of it that has its own files in the folder of a journal.
    fn tool(&self, journal: &Path) -> Command {
        self.tool_in(&self.state(journal))
    }

    /// The folder of its own files.
    fn state(&self, journal: &Path) -> PathBuf {
        journal.join(self.program)
    }

    /// The same with its own files in another folder.
    fn tool_in(&self, state: &Path) -> Command {
        let mut command = match self.takes_one_version && cgroup::is_hybrid() {
            true => {
                let mut command = Command::new("unshare");
                command.args(["--mount", "sh", "-c", WITHOUT_VERSION_2, self.program]);
                command
            }
            false => Command::new(self.program),
        };
        command.arg("--root").arg(state);
        command
    }

    /// Ends a container that is known in a folder of its own files.
    pub(super) fn delete(&self, state: &Path, id: &str) {
        quietly(self.tool_in(state).args(["delete", "--force", id]));
    }

    /// Ends all containers that are known there.
    pub(super) fn delete_all(&self, state: &Path) {
        for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
            if let Some(id) = entry.file_name().to_str() {
                self.delete(state, id);
            }
        }
    }

    /// A command whose failure is read from a log.
    fn logged(&self, container: &Container, bundle: &Path, what: &str) -> Command {
        let mut command = container.marked(self.tool(&container.journal));
        command.arg("--log").arg(bundle.join("log")).args(["--log-format", "json", what]);
        command
    }

    /// Runs such a command to its end.
    fn finish(&self, bundle: &Path, command: &mut Command) -> Result<(), Failure> {
        let status = command.status().map_err(|why| absent(command, why))?;
        if status.success() {
            return Ok(());
        }
        let log = std::fs::read_to_string(bundle.join("log")).unwrap_or_default();
        let last = log.lines().rev().find_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            (line.get("level")? == "error")
                .then(|| line.get("msg")?.as_str().map(str::to_string))?
        });
        let said = last.unwrap_or_else(|| format!("{status}"));
        Err(Failure::Command(self.program.into(), said))
    }
}

/// The container's control group.
fn group_of(container: &Container) -> String {
    format!("{}/{}", group(&container.mark), container.id)
}

/// The container's configuration, as the OCI runtime specification has it.
fn configuration(container: &Container) -> Result<Value, Failure> {
    let has = &container.capabilities;
    let mut namespaces =
        ["pid", "ipc", "uts", "mount", "cgroup"].map(|kind| json!({ "type": kind })).to_vec();
    namespaces.push(match &container.namespace {
        Some(namespace) => json!({ "type": "network", "path": namespace.file() }),
        None => json!({ "type": "network" }),
    });
    let mount = |to: &str, kind: &str, options: &[&str]| json!({ "destination": to, "type": kind, "source": kind, "options": options });
    let mut mounts = vec![mount("/proc", "proc", &["nosuid", "noexec", "nodev"])];
    mounts.extend(IN_MEMORY.map(|(to, options)| mount(to, "tmpfs", options)));
    if container.has_sys {
        mounts.push(mount("/sys", "sysfs", &["nosuid", "noexec", "nodev", "ro"]));
    }
    let limit = |name: &str, most: u64| json!({ "type": name, "soft": most, "hard": most });
    let mut limits = vec![limit("RLIMIT_CORE", 0)];
    limits.extend(container.descriptors.map(|most| limit("RLIMIT_NOFILE", most)));
    let mut resources = json!({ "devices": [{ "allow": false, "access": "rwm" }] });
    if let Some(of) = container.limits {
        resources["memory"] = json!({ "limit": of.memory });
        resources["pids"] = json!({ "limit": of.threads + TASKS });
    }
    let mut written = json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false,
            "user": { "uid": container.user, "gid": container.user },
            "args": container.words,
            "env": container.marked_environment(),
            "cwd": container.folder,
            "capabilities": {
                "bounding": has, "effective": has, "inheritable": has, "permitted": has, "ambient": has,
            },
            "noNewPrivileges": true,
            "rlimits": limits,
        },
        "root": { "path": container.root()?, "readonly": true },
        "hostname": "catena",
        "mounts": mounts,
        "linux": {
            // Below one of the journal: also the group of a container whose runtime was ended while it made it goes with that.
            "cgroupsPath": format!("/{}", group_of(container)),
            "namespaces": namespaces,
            "resources": resources,
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/sched_debug", "/proc/timer_list"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    });
    if let Some(calls) = &container.calls {
        written["linux"]["seccomp"] = calls.clone();
    }
    Ok(written)
}

impl Runtime for Oci {
    fn name(&self) -> &'static str {
        self.program
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn look(&self) -> Result<String, String> {
        version_of(self.program, self.program)
    }

    fn command(&self, container: &Container) -> Result<Command, Failure> {
        container.write("config.json", &configuration(container)?.to_string())?;
        let mut command = container.marked(self.tool(&container.journal));
        command.args(["run", "--bundle"]).arg(container.bundle()?).arg(&container.id);
        Ok(command)
    }

    fn start(&self, container: &Container, stdio: [Stdio; 3]) -> Result<Process, Failure> {
        container.write("config.json", &configuration(container)?.to_string())?;
        let bundle = container.bundle()?;
        let number = bundle.join("process");
        let mut create = self.logged(container, &bundle, "create");
        create.arg("--bundle").arg(&bundle).arg("--pid-file").arg(&number).arg(&container.id);
        let [input, output, errors] = stdio;
        self.finish(&bundle, create.stdin(input).stdout(output).stderr(errors))?;
        drop(create);
        let process = std::fs::read_to_string(&number).map_err(Failure::at(&number))?;
        let process = process.trim().parse().ok().and_then(Process::open);
        let gone = || Failure::Command(self.program.into(), "the container ended at once".into());
        let process = process.ok_or_else(gone)?;
        // A group of its own has no share of real-time scheduling.
        cgroup::bring_to_own("cpu", process.number);
        let mut begin = self.logged(container, &bundle, "start");
        begin.arg(&container.id).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.finish(&bundle, &mut begin)?;
        Ok(process)
    }

    fn memory_group(&self, container: &Container) -> Option<PathBuf> {
        cgroup::root("memory").map(|(root, _)| root.join(group_of(container)))
    }

    fn end(&self, container: &Container) {
        self.delete(&self.state(&container.journal), &container.id);
        container.remove_bundle();
    }

    fn clean(&self, journal: &Journal) {
        self.delete_all(&self.state(journal.folder()));
    }
}
