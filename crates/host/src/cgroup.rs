//! Control groups: where this process is, and groups that limit NFs. Both versions of the kernel's interface.

use std::path::{Path, PathBuf};

use crate::confine::Limits;
use crate::{Failure, Journal};

/// The controllers that limit NFs.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// What names of groups begin with, before the mark of their journal.
pub(crate) const PREFIX: &str = "catena-";

/// Where groups are mounted.
pub(crate) const MOUNT: &str = "/sys/fs/cgroup";

/// The group of this process in the hierarchy that has a controller, below where that is mounted; and whether it is version 2.
fn place(controller: &str) -> Option<(PathBuf, String, bool)> {
    let all = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let mut lines = all.lines().map(|line| line.splitn(3, ':').collect::<Vec<_>>());
    let has = |line: &Vec<&str>| line.len() == 3 && line[1].split(',').any(|of| of == controller);
    let root = Path::new(MOUNT);
    let group = |line: Vec<&str>| line[2].trim_start_matches('/').to_string();
    match lines.clone().find(has) {
        Some(line) => Some((root.join(controller), group(line), false)),
        None => {
            let line = lines.find(|line| line.len() == 3 && line[0] == "0")?;
            Some((root.to_path_buf(), group(line), true))
        }
    }
}

/// Where the hierarchy that has a controller is mounted, and whether it is version 2.
pub(crate) fn root(controller: &str) -> Option<(PathBuf, bool)> {
    place(controller).map(|(root, _, is_second)| (root, is_second))
}

/// The group of this process, and whether it is one of version 2.
pub(crate) fn own(controller: &str) -> Option<(PathBuf, bool)> {
    place(controller).map(|(root, group, is_second)| (root.join(group), is_second))
}

/// Moves a process to the group that this one has, in a hierarchy of version 1. In version 2 it would lose its other limits.
pub(crate) fn bring_to_own(controller: &str, process: u32) {
    if let Some((group, false)) = own(controller) {
        let _ = std::fs::write(group.join("cgroup.procs"), process.to_string());
    }
}

/// The groups of a service, below each of which each of its NFs has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Groups(Vec<PathBuf>);

impl Groups {
    /// Makes them, where root asks for them and that is allowed. They are in the journal before they are there.
    pub(crate) fn make(journal: &mut Journal) -> Result<Self, Failure> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::default());
        }
        let mut made: Vec<PathBuf> = Vec::new();
        for controller in CONTROLLERS {
            let Some((own, is_second)) = own(controller) else { continue };
            let group = own.join(format!("{PREFIX}{}", journal.mark()));
            if made.contains(&group) || !own.is_dir() {
                continue;
            }
            journal.add_group(&group)?;
            if std::fs::create_dir(&group).is_err() {
                continue;
            }
            if is_second {
                let all = CONTROLLERS.map(|of| format!("+{of}")).join(" ");
                let _ = std::fs::write(group.join("cgroup.subtree_control"), all);
            }
            made.push(group);
        }
        Ok(Self(made))
    }

    /// Gives a process groups of its own with these limits; which these are.
    pub(crate) fn enter(&self, name: &str, process: u32, limits: Limits) -> Vec<PathBuf> {
        let mut entered = Vec::new();
        for group in self.0.iter().map(|of| of.join(name)) {
            if std::fs::create_dir(&group).is_err() {
                continue;
            }
            for (file, most) in [
                ("memory.limit_in_bytes", limits.memory),
                ("memory.max", limits.memory),
                ("pids.max", u64::from(limits.threads)),
            ] {
                let path = group.join(file);
                if path.exists() {
                    let _ = std::fs::write(path, most.to_string());
                }
            }
            let _ = std::fs::write(group.join("cgroup.procs"), process.to_string());
            entered.push(group);
        }
        entered
    }
}

/// Removes a group in which no process is.
pub(crate) fn remove(group: &Path) {
    // A process leaves it a moment after its end is seen.
    const TRIES: u32 = 1000;
    for _ in 0..TRIES {
        match std::fs::remove_dir(group) {
            Err(why) if why.kind() == std::io::ErrorKind::ResourceBusy => std::thread::yield_now(),
            _ => return,
        }
    }
}

/// Removes a group and those below it.
pub(crate) fn remove_all(group: &Path) {
    let below = std::fs::read_dir(group).into_iter().flatten().flatten();
    below.filter(|of| of.path().is_dir()).for_each(|of| remove_all(&of.path()));
    remove(group);
}

/// Removes a group in all hierarchies, and those below it.
pub(crate) fn remove_everywhere(name: &str) {
    let mounts = std::fs::read_dir(MOUNT).into_iter().flatten().flatten().map(|of| of.path());
    let all = mounts.chain([PathBuf::from(MOUNT)]).map(|mount| mount.join(name));
    all.filter(|group| group.is_dir()).for_each(|group| remove_all(&group));
}

/// Whether controllers are in hierarchies of both versions.
pub(crate) fn is_hybrid() -> bool {
    let second = Path::new(MOUNT).join("unified/cgroup.controllers");
    std::fs::read_to_string(second).is_ok_and(|all| !all.trim().is_empty())
}

/// Whether the kernel ended a process of a group as there was no memory left for it.
pub(crate) fn ran_out_of_memory(group: &Path) -> bool {
    let ended = |file: &str| {
        let text = std::fs::read_to_string(group.join(file)).unwrap_or_default();
        text.lines().any(|line| line.strip_prefix("oom_kill ").is_some_and(|count| count != "0"))
    };
    ended("memory.oom_control") || ended("memory.events")
}
