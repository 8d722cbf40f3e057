//! `lxc`: a container of LXC, whose configuration is a file. Its monitor is the command that runs it.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Container, IN_MEMORY, Runtime, group, quietly, version_of};
use crate::{Failure, Journal, Process};

#[derive(Debug)]
pub(super) struct Lxc;

/// Where LXC has a lock for each container, below it the container's folder.
const LOCKS: &str = "/run/lxc/lock";

impl Lxc {
    /// The folder that its containers are known by.
    fn state(journal: &Path) -> PathBuf {
        journal.join("lxc")
    }
}

/// The container's configuration.
fn configuration(container: &Container) -> Result<String, Failure> {
    let none = || Failure::Impossible("a container of LXC without a network".into());
    let namespace = container.namespace.as_ref().ok_or_else(none)?;
    let (root, network) = (container.root()?.display(), namespace.file());
    let capabilities = container.capabilities.iter().map(|name| {
        let name = name.trim_start_matches("CAP_");
        name.to_lowercase()
    });
    let mut text = format!(
        "lxc.rootfs.path = dir:{root}\n\
         lxc.rootfs.options = ro\n\
         lxc.uts.name = catena\n\
         lxc.console.path = none\n\
         lxc.tty.max = 0\n\
         lxc.pty.max = 1\n\
         lxc.autodev = 0\n\
         lxc.apparmor.profile = unconfined\n\
         lxc.no_new_privs = 1\n\
         lxc.namespace.share.net = {}\n\
         lxc.cap.keep = {}\n\
         lxc.cgroup.dir = {}/{}\n\
         lxc.init.cwd = {}\n\
         lxc.mount.entry = proc proc proc nosuid,noexec,nodev 0 0\n\
         lxc.mount.entry = sysfs sys sysfs nosuid,noexec,nodev,ro 0 0\n",
        network.display(),
        capabilities.collect::<Vec<_>>().join(" "),
        group(&container.mark),
        container.id,
        container.folder,
    );
    for (to, options) in IN_MEMORY {
        let (to, options) = (to.trim_start_matches('/'), options.join(","));
        let _ = writeln!(text, "lxc.mount.entry = tmpfs {to} tmpfs {options} 0 0");
    }
    // It opens this one itself.
    text.push_str("lxc.mount.entry = /dev/null dev/null none bind,create=file 0 0\n");
    for variable in container.marked_environment() {
        let _ = writeln!(text, "lxc.environment = {variable}");
    }
    Ok(text)
}

impl Runtime for Lxc {
    fn name(&self) -> &'static str {
        "lxc"
    }

    fn summary(&self) -> &'static str {
        "a container by LXC"
    }

    fn look(&self) -> Result<String, String> {
        version_of("lxc-start", "lxc").map(|version| format!("lxc {version}"))
    }

    fn takes_functions(&self) -> bool {
        false
    }

    fn command(&self, container: &Container) -> Result<Command, Failure> {
        let file = container.write("config", &configuration(container)?)?;
        let state = Self::state(&container.journal);
        std::fs::create_dir_all(&state).map_err(Failure::at(&state))?;
        let mut command = container.marked(Command::new("lxc-start"));
        command.args(["--foreground", "--close-all-fds", "--lxcpath"]).arg(state);
        command.args(["--name", &container.id, "--rcfile"]).arg(file).arg("--");
        command.args(&container.words);
        Ok(command)
    }

    fn start(&self, _: &Container, _: [Stdio; 3]) -> Result<Process, Failure> {
        Err(Failure::Impossible("network functions are not started by LXC".into()))
    }

    fn end(&self, container: &Container) {
        let mut stop = Command::new("lxc-stop");
        stop.arg("--kill").arg("--lxcpath").arg(Self::state(&container.journal));
        quietly(stop.args(["--name", &container.id]));
        container.remove_bundle();
    }

    // A container ends with its monitor, which carries the journal's mark as the container does.
    fn clean(&self, journal: &Journal) {
        if let Ok(below) = journal.folder().strip_prefix("/") {
            let _ = std::fs::remove_dir_all(Path::new(LOCKS).join(below));
        }
    }
}
