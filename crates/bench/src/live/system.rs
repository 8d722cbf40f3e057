//! What is measured over interfaces: a chain as `catena run` runs it, or a [peer](Peer); its processes, which end with it.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dataplane::clock::Time;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::folder::Folder;
use super::peer::Peer;
use super::place::{Netns, Port, missing};
use crate::stamp::{HostClock, StampClock};

/// How `catena run` is called.
#[derive(Clone, Debug)]
pub struct Catena {
    /// The program.
    pub program: PathBuf,
    /// Values of the chain's variables.
    pub variables: Vec<String>,
    /// `--io`, if it is given.
    pub io: Option<String>,
}

/// What is to be started.
pub(crate) enum System<'a> {
    /// A chain, with the names that its elements have for interfaces.
    Chain {
        file: &'a str,
        catena: &'a Catena,
        inputs: &'a [(String, String)],
        outputs: &'a [(String, String)],
        /// Its control socket, if it is to have one.
        control: Option<&'a Path>,
    },
    Peer(&'a Peer),
}

/// Where, and on what, a system is started.
pub(crate) struct Setting<'a> {
    pub(crate) place: &'a Netns,
    /// The input first, then the output.
    pub(crate) ports: [&'a Port; 2],
    pub(crate) cores: &'a [usize],
    /// The chain's file, for who can run it, too.
    pub(crate) chain: &'a str,
    /// A script that makes of a peer what the chain is.
    pub(crate) script: Option<&'a Path>,
    /// Whether a system before may have left nftables rules.
    pub(crate) has_rules: bool,
    /// Whether waiting for `nft` and the script is to end.
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
}

impl Setting<'_> {
    /// A program that will run there, on the CPUs of the system.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = self.place.command("taskset");
        command.args(["-c", &list(self.cores)]).args(ENDS_WITH_PARENT).arg(program);
        command
    }
}

/// A system that runs until it is dropped; nothing by default.
#[derive(Default)]
pub(crate) struct Running {
    name: String,
    /// With the files that their standard errors go to.
    processes: Vec<(Child, File)>,
    /// What they make goes with it, after they have ended.
    folder: Option<Folder>,
}

/// Has the program whose name follows killed when this one ends, however it ends.
pub(super) const ENDS_WITH_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];
/// How long a program may take to end when it is told to, in nanoseconds.
const ENDING: u64 = 5_000_000_000;
/// The time between looks whether it has, or is ready.
const LOOK: u64 = 2_000_000;

impl Running {
    pub(crate) fn start(system: &System<'_>, setting: &Setting<'_>) -> Result<Self, String> {
        let name = match system {
            System::Chain { file, .. } => (*file).to_string(),
            System::Peer(peer) => peer.to_string(),
        };
        setting.place.reset(setting.has_rules)?;
        let mut running = Self { name, processes: Vec::new(), folder: None };
        match system {
            System::Chain { file, catena, inputs, outputs, control } => {
                let mut command = setting.command(&catena.program.to_string_lossy());
                command.arg("run").arg(file).args(&catena.variables);
                for (option, names) in [("--in", inputs), ("--out", outputs)] {
                    for (name, interface) in *names {
                        // A name may begin with a dash.
                        command.arg(format!("{option}={name}=dev:{interface}"));
                    }
                }
                catena.io.iter().for_each(|io| _ = command.args(["--io", io]));
                command.args(["--cores", &list(setting.cores), "--control"]);
                command.arg(control.unwrap_or(Path::new("none")));
                running.spawn(&mut command, "")?;
            }
            System::Peer(peer) => running.start_peer(peer, setting)?,
        }
        if let (Some(script), System::Peer(_)) = (setting.script, system) {
            let [input, output] = setting.ports;
            let mut command = setting.place.command("sh");
            command.arg("-e").arg(script);
            command.envs([("IN", &input.interface), ("OUT", &output.interface)]);
            command.envs([("IN_MAC", &input.address), ("OUT_MAC", &output.address)]);
            command.env("NEXT_MAC", &output.tester_address);
            running.folder.iter().for_each(|folder| _ = command.env("FOLDER", folder.path()));
            run_to_end(&mut command, &script.display().to_string(), setting.is_stopped)?;
        }
        Ok(running)
    }

    /// A folder that goes with it.
    pub(super) fn folder(&mut self) -> Result<PathBuf, String> {
        let made = Folder::new()?;
        let path = made.path().to_path_buf();
        self.folder = Some(made);
        Ok(path)
    }

    pub(super) fn spawn(&mut self, command: &mut Command, source: &str) -> Result<(), String> {
        // What is said on a standard error that nobody reads would stop it.
        let unwritten = |e: std::io::Error| format!("a file for messages of {}: {e}", self.name);
        let log = tempfile::tempfile().map_err(unwritten)?;
        let err = log.try_clone().map_err(unwritten)?;
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(err);
        let program = command.get_program().to_string_lossy().into_owned();
        let process = command.spawn().map_err(|why| missing(&program, source, &why))?;
        self.processes.push((process, log));
        Ok(())
    }

    pub(super) fn wait_for(&mut self, file: &Path) -> Result<(), String> {
        self.wait_until(&file.display().to_string(), || file.exists())
    }

    /// Waits until something is there.
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        mut is_there: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let clock = HostClock::new(StampClock::Monotonic);
        let end = clock.now() + ENDING;
        while !is_there() {
            self.check()?;
            if clock.now() > end {
                return Err(format!("{}: {what} is not there after 5 s", self.name));
            }
            clock.wait_until(clock.now() + LOOK);
        }
        Ok(())
    }

    /// For how many nanoseconds its threads wanted to run so far, and could not.
    pub(crate) fn waited(&self) -> u64 {
        let threads = |process: &Child| std::fs::read_dir(format!("/proc/{}/task", process.id()));
        let threads = self.processes.iter().filter_map(|(process, _)| threads(process).ok());
        let waited = |thread: std::fs::DirEntry| -> Option<u64> {
            let schedstat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            schedstat.split(' ').nth(1)?.parse().ok()
        };
        threads.flatten().flatten().filter_map(waited).sum()
    }

    /// Fails if one of its processes has ended, and says what it said last.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        for (process, log) in &mut self.processes {
            let Ok(Some(status)) = process.try_wait() else { continue };
            let said = text(log);
            return Err(format!("{} ended ({status}): {}", self.name, reason(&said)));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let clock = HostClock::new(StampClock::Monotonic);
        // Who needs another was started after it.
        for (process, _) in self.processes.iter_mut().rev() {
            if let Some(id) = Pid::from_raw(process.id() as i32)
                && process.try_wait().is_ok_and(|status| status.is_none())
            {
                let _ = kill_process(id, Signal::TERM);
            }
            let end = clock.now() + ENDING;
            while process.try_wait().is_ok_and(|status| status.is_none()) {
                if clock.now() > end {
                    let _ = process.kill();
                    let _ = process.wait();
                    break;
                }
                clock.wait_until(clock.now() + LOOK);
            }
        }
    }
}

/// Runs a script, or `nft`, to its end, which may never come.
pub(super) fn run_to_end(
    command: &mut Command,
    name: &str,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    let explain = |why: std::io::Error| format!("{name}: {why}");
    let mut log = tempfile::tempfile().map_err(explain)?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(log.try_clone().map_err(explain)?);
    // What it started is stopped with it.
    let mut script = command.process_group(0).spawn().map_err(explain)?;
    let clock = HostClock::new(StampClock::Monotonic);
    loop {
        match script.try_wait().map_err(explain)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(format!("{name} failed ({status}): {}", reason(&text(&mut log))));
            }
            None if is_stopped() => {
                let group = Pid::from_raw(script.id() as i32);
                group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = script.wait();
                return Err(format!("{name} was stopped"));
            }
            None => clock.wait_until(clock.now() + LOOK),
        }
    }
}

/// Why a program ended, of what it said: from its first error on, or its last lines.
fn reason(said: &str) -> String {
    // nft points with carets at what it refuses, which needs lines of their own.
    let is_mark = |line: &&str| line.chars().all(|c| c == '^' || c == '~');
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !is_mark(line)).collect();
    let last = lines.len().saturating_sub(3);
    let is_error = |line: &&str| line.starts_with("error") || line.contains(": Error: ");
    let first = lines.iter().position(is_error).unwrap_or(last);
    lines[first..].iter().take(3).copied().collect::<Vec<_>>().join("; ")
}

/// All that was written to a file.
fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// CPUs as a list for people and programs.
fn list(cores: &[usize]) -> String {
    let all: Vec<String> = cores.iter().map(usize::to_string).collect();
    all.join(",")
}

/// CPUs as a mask of bits.
pub(super) fn mask(cores: &[usize]) -> u128 {
    cores.iter().filter(|&&cpu| cpu < 128).fold(0, |mask, &cpu| mask | 1 << cpu)
}
