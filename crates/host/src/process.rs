//! Programs: run to their end, or started to stay and found again by a mark in their environment.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

use crate::Failure;

/// The variable by which processes of a journal are known: they hand it on to those that they start.
pub(crate) const MARK: &str = "CATENA_JOURNAL";

/// The folders of programs that others start, where their own environment says nothing.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How long a process has to end once it was asked.
const PATIENCE: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Programs that end by themselves. Cut short, they would leave half of what they make, or of what they remove.
const FINISHES: [&str; 6] = ["ip", "runc", "crun", "podman", "conmon", "lxc-start"];

/// The packages of programs that are run.
const PACKAGES: [(&str, &str); 11] = [
    ("ip", "iproute2"),
    ("unshare", "util-linux"),
    ("ovsdb-tool", "openvswitch-switch"),
    ("ovsdb-server", "openvswitch-switch"),
    ("ovs-vswitchd", "openvswitch-switch"),
    ("ovs-vsctl", "openvswitch-switch"),
    ("ovs-ofctl", "openvswitch-switch"),
    ("runc", "runc"),
    ("crun", "crun"),
    ("podman", "podman"),
    ("lxc-start", "lxc"),
];

/// Why a command did not start.
pub(crate) fn absent(command: &Command, why: std::io::Error) -> Failure {
    let program = command.get_program().to_string_lossy().into_owned();
    let known = PACKAGES.iter().find(|(name, _)| *name == program);
    match known.filter(|_| why.kind() == ErrorKind::NotFound) {
        Some((_, package)) => Failure::NoProgram(program, package),
        None => Failure::Command(program, why.to_string()),
    }
}

/// A command as people would type it.
pub(crate) fn words(command: &Command) -> String {
    let arguments = command.get_args().map(|word| word.to_string_lossy().into_owned());
    let program = command.get_program().to_string_lossy().into_owned();
    let mut all: Vec<String> = [program].into_iter().chain(arguments).collect();
    const SHOWN: usize = 12;
    if all.len() > SHOWN {
        all.truncate(SHOWN);
        all.push("…".into());
    }
    all.join(" ")
}

/// The environment that the program of a process started with; nothing of one that has ended, or is the kernel's. While one program
/// becomes another there is none for a moment, or only the begin of the first one's, which is waited for: else the process would be
/// overlooked.
fn environment(number: u32) -> Vec<u8> {
    /// How long that takes at most on a busy host. There are processes that have no environment, and will have none.
    const PATIENCE: Duration = Duration::from_millis(50);
    /// Where it begins and ends in memory (proc_pid_stat(5)), counted from the state, the first behind the name.
    const PLACE: [usize; 2] = [47, 48];
    let begin = Instant::now();
    loop {
        let all = match std::fs::read(format!("/proc/{number}/environ")) {
            Err(why) if why.kind() == ErrorKind::PermissionDenied => return Vec::new(),
            other => other.unwrap_or_default(),
        };
        if std::fs::read_link(format!("/proc/{number}/exe")).is_err() {
            return all;
        }
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields.split(' '));
        let at = |place: &usize| fields.clone()?.nth(*place)?.parse::<usize>().ok();
        let [from, to] = PLACE.each_ref().map(at);
        let length = from.zip(to).and_then(|(from, to)| to.checked_sub(from)).unwrap_or(0);
        if length > 0 && length == all.len() || begin.elapsed() > PATIENCE {
            return all;
        }
        std::thread::yield_now();
    }
}

/// Whether a program is on the path.
pub(crate) fn needs(programs: &[&str]) -> Result<(), Failure> {
    for program in programs {
        let mut command = Command::new(program);
        command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().map_err(|why| absent(&command, why))?;
    }
    Ok(())
}

/// Runs a program to its end, with some input; what it printed.
///
/// # Errors
/// If it is not there, or fails.
pub fn run(command: &mut Command, input: &str) -> Result<String, Failure> {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().map_err(|why| absent(command, why))?;
    if let Some(mut to) = child.stdin.take() {
        let input = input.to_string();
        // It may print before it has read all. One that reads nothing says itself what is wrong.
        std::thread::spawn(move || drop(to.write_all(input.as_bytes())));
    }
    let output = child.wait_with_output();
    let output = output.map_err(|why| Failure::Command(words(command), why.to_string()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.success() {
        true => Ok(text),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(Failure::Command(words(command), format!("{said}{text}")))
        }
    }
}

/// A process that carries a mark.
#[derive(Debug)]
pub struct Process {
    /// Its number.
    pub number: u32,
    handle: OwnedFd,
}

impl Process {
    /// Starts a program that stays, with its output in a file. Ctrl-C at the terminal does not reach it.
    pub(crate) fn start(command: &mut Command, mark: &str, output: &Path) -> Result<Self, Failure> {
        let file = File::create(output).map_err(Failure::at(output))?;
        let second = file.try_clone().map_err(Failure::at(output))?;
        command.env(MARK, mark).process_group(0);
        command.stdin(Stdio::null()).stdout(file).stderr(second);
        Self::start_as_is(command, mark)
    }

    /// Starts a program whose input and output are decided.
    pub(crate) fn start_as_is(command: &mut Command, mark: &str) -> Result<Self, Failure> {
        let child = command.env(MARK, mark).spawn().map_err(|why| absent(command, why))?;
        Self::open(child.id())
            .ok_or_else(|| Failure::Command(words(command), "it ended at once".into()))
    }

    pub(crate) fn open(number: u32) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(number).ok()?)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        Some(Self { number, handle })
    }

    /// All processes that carry a mark, but for the one that asks.
    pub(crate) fn of_mark(mark: &str) -> Vec<Self> {
        let own = std::process::id();
        let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
        let number = |name: std::ffi::OsString| name.to_str()?.parse::<u32>().ok();
        let numbers = all.filter_map(|entry| number(entry.ok()?.file_name()));
        let line = format!("{MARK}={mark}");
        let bears = |number: u32| {
            environment(number).split(|byte| *byte == 0).any(|of| of == line.as_bytes())
        };
        let open = |number: u32| {
            // Once it is held, its number is nobody else's: whether it carries the mark is asked after that.
            let process = Self::open(number)?;
            bears(number).then_some(process)
        };
        numbers.filter(|number| *number != own).filter_map(open).collect()
    }

    /// The numbers of its threads.
    pub(crate) fn threads(&self) -> impl Iterator<Item = u32> {
        let all = std::fs::read_dir(format!("/proc/{}/task", self.number));
        let number = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse().ok();
        all.into_iter().flatten().flatten().filter_map(number)
    }

    /// Does this with each thread, but for those that end meanwhile: those of a runtime's do as the program starts.
    pub(crate) fn each_thread(&self, act: impl Fn(u32) -> io::Result<()>) -> io::Result<()> {
        self.threads().try_for_each(|thread| match act(thread) {
            Err(why) if why.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            done => done,
        })
    }

    /// The processor time that its threads have taken.
    pub(crate) fn cpu_time(&self) -> Duration {
        let taken = |thread: u32| -> Option<u64> {
            let path = format!("/proc/{}/task/{thread}/schedstat", self.number);
            std::fs::read_to_string(path).ok()?.split(' ').next()?.parse().ok()
        };
        Duration::from_nanos(self.threads().filter_map(taken).sum())
    }

    /// Whether it ended; waits so long for that.
    fn has_ended(&self, patience: Timespec) -> bool {
        let mut fds = [PollFd::new(&self.handle, PollFlags::IN)];
        poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0)
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        !self.has_ended(Timespec::default())
    }

    /// Ends it at once.
    pub(crate) fn kill(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::KILL);
    }

    /// Ends a child at once, and waits for that; how it ended.
    pub(crate) fn destroy(&self) -> Option<String> {
        self.kill();
        self.has_ended(PATIENCE);
        self.ending()
    }

    /// How a child ended that is about to.
    pub(crate) fn ending_soon(&self) -> Option<String> {
        self.has_ended(Timespec { tv_sec: 1, tv_nsec: 0 });
        self.ending()
    }

    /// How a child ended, if it has; its number may be another one's from then on.
    pub(crate) fn ending(&self) -> Option<String> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let ended = waitid(WaitId::PidFd(self.handle.as_fd()), options).ok()??;
        Some(match (ended.exit_status(), ended.terminating_signal()) {
            (Some(status), _) => format!("it exited with status {status}"),
            (_, Some(signal)) => format!("signal {signal} ended it"),
            _ => "it ended".into(),
        })
    }

    /// What becomes readable when it ends.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Has all of these end, and waits for that; however many they are, they have the same time for it.
    pub(crate) fn end_all(all: &[Self]) {
        let finishes = |process: &&Self| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", process.number));
            name.is_ok_and(|name| FINISHES.contains(&name.trim_end()))
        };
        let (finishing, others): (Vec<&Self>, Vec<&Self>) = all.iter().partition(finishes);
        let late = Self::late(finishing);
        let mut left: Vec<&Self> = others.into_iter().chain(late).collect();
        for signal in [Signal::TERM, Signal::KILL] {
            for process in &left {
                let _ = pidfd_send_signal(&process.handle, signal);
            }
            left = Self::late(left);
        }
    }

    /// Those that have not ended when all have had their time.
    fn late(mut all: Vec<&Self>) -> Vec<&Self> {
        let most = Duration::new(PATIENCE.tv_sec as u64, PATIENCE.tv_nsec as u32);
        let begin = Instant::now();
        all.retain(|process| !process.has_ended_within(most.saturating_sub(begin.elapsed())));
        all
    }

    /// All processes in network namespaces, by the kernel's numbers of these, that nobody outside of them waits for: what programs
    /// there started, whatever else they did to be forgotten.
    pub(crate) fn of_namespaces(numbers: &[u64]) -> Vec<Self> {
        use std::os::unix::fs::MetadataExt;
        let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
        let number = |name: std::ffi::OsString| name.to_str()?.parse::<u32>().ok();
        let inside = |process: u32| {
            let at = std::fs::metadata(format!("/proc/{process}/ns/net"));
            at.is_ok_and(|at| numbers.contains(&at.ino()))
        };
        let parent = |process: u32| -> Option<u32> {
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
        };
        let is_forgotten = |process: u32| {
            inside(process) && parent(process).is_some_and(|of| of == 1 || inside(of))
        };
        let open = |process: u32| {
            // Once it is held, its number is nobody else's.
            let held = Self::open(process)?;
            is_forgotten(process).then_some(held)
        };
        all.filter_map(|entry| number(entry.ok()?.file_name())).filter_map(open).collect()
    }

    /// Whether a process that is known by its number ends within so much time.
    pub fn has_ended_in(number: u32, most: Duration) -> bool {
        Self::open(number).is_none_or(|process| process.has_ended_within(most))
    }

    /// Whether it ends within so much time.
    pub(crate) fn has_ended_within(&self, most: Duration) -> bool {
        self.has_ended(Timespec {
            tv_sec: most.as_secs() as i64,
            tv_nsec: most.subsec_nanos().into(),
        })
    }

    /// Sends SIGTERM to a process that is known by its number, and waits for its end; whether it ended.
    pub(crate) fn stop(number: u32) -> bool {
        let Some(process) = Self::open(number) else { return true };
        let _ = pidfd_send_signal(&process.handle, Signal::TERM);
        // It takes down what it made, and that may be much.
        process.has_ended(Timespec { tv_sec: 60, tv_nsec: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that becomes one program after the other is there all the time.
    #[test]
    fn it_is_found_while_its_program_starts() {
        const AGAIN: &str = r#"[ "$1" -gt 400 ] || exec sh -c "$0" "$0" $(($1 + 1)); read end"#;
        let mark = format!("exec{}", std::process::id());
        let mut command = Command::new("sh");
        command.args(["-c", AGAIN, AGAIN, "0"]).env(MARK, &mark).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let number = child.id();
        let arguments = || std::fs::read_to_string(format!("/proc/{number}/cmdline"));
        let (mut looks, mut found) = (0, 0);
        while !arguments().is_ok_and(|all| all.ends_with("\x00401\0")) {
            assert_eq!(child.try_wait().unwrap(), None);
            looks += 1;
            found += Process::of_mark(&mark).iter().filter(|of| of.number == number).count();
        }
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(looks > 0);
        assert_eq!(found, looks);
    }
}
