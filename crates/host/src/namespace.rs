//! Network namespaces, as `ip netns` names them.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::process::{absent, run};
use crate::{Failure, Journal};

/// A network namespace that a journal has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// What the kernel knows it by. A name can be given to another one, this not.
    pub(crate) number: u64,
}

/// Packets that the kernel counted on an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Packets that came in.
    pub received: u64,
    /// Packets that went out.
    pub sent: u64,
}

/// Bytes of an interface's name at most.
const LONGEST: usize = 15;

/// Bytes of a namespace's name at most: one of a chain has the names of two.
const LONGEST_NAME: usize = 96;

/// Whether the kernel takes this as the name of an interface, and no command takes it for an option.
pub fn is_interface_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    (1..=LONGEST).contains(&name.len())
        && name.bytes().all(is_good)
        && !name.starts_with('-')
        && ![".", "..", "lo", "all", "default"].contains(&name)
}

/// Whether this can be the name of a namespace.
pub(crate) fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(is_good)
        && !name.starts_with(['-', '.'])
}

impl Namespace {
    fn path(name: &str) -> PathBuf {
        PathBuf::from("/run/netns").join(name)
    }

    /// Makes one. It is in the journal before it has its name.
    pub(crate) fn make(name: &str, journal: &mut Journal) -> Result<Self, Failure> {
        let taken = || Failure::Taken(format!("the network namespace '{name}'"));
        if Self::path(name).exists() {
            return Err(taken());
        }
        // Also what is run in between ends with the rest, if its maker is killed.
        let mut command = journal.marked(Command::new("unshare"));
        // It says which one it is in, and keeps it until it is told to end, or nobody is there to tell it.
        command.args(["--net", "sh", "-c", "readlink /proc/self/ns/net; read -r _"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut holder = command.spawn().map_err(|why| absent(&command, why))?;
        let mut said = String::new();
        if let Some(output) = holder.stdout.take() {
            let _ = BufReader::new(output).read_line(&mut said);
        }
        let digits = said.trim().strip_prefix("net:[").and_then(|rest| rest.strip_suffix(']'));
        let number = digits.and_then(|digits| digits.parse().ok());
        let named = match number {
            None => Err(Failure::Command("unshare --net".into(), "no namespace was made".into())),
            Some(number) => {
                let of = Self { name: name.to_string(), number };
                let named = journal.add_namespace(&of).and_then(|()| {
                    let pid = holder.id().to_string();
                    let mut attach = journal.marked(Command::new("ip"));
                    run(attach.args(["netns", "attach", name, &pid]), "")
                });
                // Somebody else was faster.
                match named {
                    Err(_) if Self::path(name).exists() && !of.is_there() => Err(taken()),
                    named => named.map(|_| of),
                }
            }
        };
        drop(holder.stdin.take());
        let _ = holder.wait();
        named
    }

    /// One that is only spoken of.
    pub(crate) fn planned(name: &str) -> Self {
        Self { name: name.into(), number: 0 }
    }

    /// Its file.
    pub(crate) fn file(&self) -> PathBuf {
        Self::path(&self.name)
    }

    /// Opens its file, by which others can be put into it.
    pub(crate) fn open(&self) -> Result<File, Failure> {
        File::open(self.file()).map_err(Failure::at(&self.file()))
    }

    /// Whether its name is still its own.
    pub(crate) fn is_there(&self) -> bool {
        std::fs::metadata(Self::path(&self.name)).is_ok_and(|of| of.ino() == self.number)
    }

    /// Takes its name away, and so itself, once nobody is in it any more. Whether it was there.
    pub(crate) fn remove(&self) -> Result<bool, Failure> {
        if !self.is_there() {
            remove_unattached(&Self::path(&self.name));
            return Ok(false);
        }
        run(Command::new("ip").args(["netns", "del", &self.name]), "").map(|_| true)
    }

    /// Does something there, in a thread of its own.
    ///
    /// # Errors
    /// If one cannot go there.
    pub(crate) fn run<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let enter = || {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(self.open()?.as_fd(), network)
                .map_err(|why| Failure::File(self.file(), why.into()))?;
            work()
        };
        let ended = std::thread::scope(|scope| scope.spawn(enter).join());
        ended.unwrap_or_else(|_| Err(Failure::Impossible("a thread panicked".into())))
    }

    /// Turns IPv6 off there: no addresses are made up, and nothing is sent for it.
    pub(crate) fn turn_off_ipv6(&self) -> Result<(), Failure> {
        // A kernel without IPv6 has nothing to turn off.
        match self.set("ipv6/conf/default/disable_ipv6", "1") {
            Err(Failure::File(_, why)) if why.kind() == std::io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Sets a parameter of the network there.
    pub(crate) fn set(&self, name: &str, value: &str) -> Result<(), Failure> {
        self.run(|| {
            let path = Path::new("/proc/sys/net").join(name);
            std::fs::write(&path, value).map_err(Failure::at(&path))
        })
    }

    /// A program that will run there, in the place of `ip`.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }

    /// What the kernel counted on an interface there.
    ///
    /// # Errors
    /// If it has none of this name.
    pub fn counters(&self, interface: &str) -> Result<Counters, Failure> {
        self.look(interface, |of| {
            let count = |what: &str| of["stats64"][what]["packets"].as_u64();
            Some(Counters { received: count("rx")?, sent: count("tx")? })
        })
    }

    /// The MAC address of an interface there.
    ///
    /// # Errors
    /// If it has none of this name.
    pub fn mac(&self, interface: &str) -> Result<String, Failure> {
        self.look(interface, |of| of["address"].as_str().map(str::to_string))
    }

    /// What `ip` knows of an interface there.
    fn look<T>(
        &self,
        interface: &str,
        read: impl FnOnce(&serde_json::Value) -> Option<T>,
    ) -> Result<T, Failure> {
        let mut ip = Command::new("ip");
        ip.args(["-n", &self.name, "-json", "-stats", "link", "show", "dev", interface]);
        let said = run(&mut ip, "")?;
        let all: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        read(&all[0]).ok_or_else(|| Failure::Command("ip -json -stats link".into(), said))
    }

    /// Runs commands of `ip` there.
    pub fn ip(&self, journal: &Journal, commands: &str) -> Result<(), Failure> {
        let mut ip = journal.marked(Command::new("ip"));
        run(ip.args(["-n", &self.name, "-batch", "-"]), commands).map(drop)
    }
}

/// Removes a namespace's file if none is attached to it: `ip`, which makes the file first, was ended before it attached one, as
/// by the first line that it writes to a pipe that nobody reads any more.
fn remove_unattached(path: &Path) {
    let of = |path: &Path| std::fs::symlink_metadata(path).ok();
    let (Some(file), Some(folder)) = (of(path), path.parent().and_then(of)) else { return };
    if file.is_file() && file.len() == 0 && file.dev() == folder.dev() {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_interfaces_are_those_of_the_kernel() {
        for name in ["eth0", "veth-1.2", "a@b", "abcdefghijklmno"] {
            assert!(is_interface_name(name), "{name}");
        }
        for name in
            ["", ".", "..", "lo", "all", "a b", "a/b", "abcdefghijklmnop", "-a", "é", "a\n", "a:b"]
        {
            assert!(!is_interface_name(name), "{name}");
        }
    }

    #[test]
    fn files_without_a_namespace_are_removed() {
        let folder = std::env::temp_dir().join(format!("catena{}unattached", std::process::id()));
        std::fs::create_dir(&folder).expect("it is new");
        let [empty, full] = ["empty", "full"].map(|name| folder.join(name));
        std::fs::write(&empty, "").expect("a file");
        std::fs::write(&full, "something").expect("a file");
        let absent = folder.join("absent");
        for path in [&empty, &full, &absent, &folder] {
            remove_unattached(path);
        }
        assert!(!empty.exists() && full.exists() && folder.exists());
        std::fs::remove_dir_all(&folder).expect("it was there");
        // A namespace's own file is none of those.
        remove_unattached(Path::new("/proc/self/ns/net"));
    }
}
