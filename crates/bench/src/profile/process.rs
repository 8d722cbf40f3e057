//! Processes by their numbers: time that they run, wait for events and wait for a CPU.
//!
//! SCC's terms (§6.3.2.1): of each thread, *RunTime* is what it spent on a CPU, *SchedContention* what it was ready to run
//! and did not, and *Wait* the rest, in which it waited for I/O or anything else. The first two are the kernel's
//! (`/proc/PID/task/TID/schedstat`).

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use dataplane::clock::Time;
use serde::{Deserialize, Serialize};
use view::flame::Frame;
use view::table::{Table, grouped};

use super::counters::{Count, Counters, Event, Missing, reasons};
use super::sampling::{
    CallCount, CodeShare, Sampled, ThreadSamplers, render_calls, render_functions,
};
use super::symbols::{Files, printable};

/// The version of the document's format.
pub const VERSION: u32 = 1;

/// Threads are looked for so often: one that lives shorter may be overlooked.
const STEP: Duration = Duration::from_millis(50);
/// Threads that are counted and sampled at the same time; of others, times alone are taken.
const MOST: usize = 512;
/// Threads that ended and are still listed; of others, what they did is in their process's total alone.
const ENDED: usize = 1024;
/// Threads that a process's table has at the most.
const ROWS: usize = 50;
/// Open files that a thread takes, and that everything else may take.
const FILES: (usize, usize) = (Event::ALL.len() + 2, 128);

/// What processes did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The format's version.
    pub process_profile: u32,
    /// How long they were watched.
    pub seconds: f64,
    /// Each of them.
    pub processes: Vec<Process>,
    /// All of them together.
    pub total: Usage,
    /// What could not be counted.
    pub missing: Vec<Missing>,
    /// What a reader must know before he believes the figures.
    pub remarks: Vec<String>,
}

/// What a process did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Whether it ended meanwhile.
    pub ended: bool,
    /// Its threads together.
    pub total: Usage,
    /// Each of its threads.
    pub threads: Vec<Thread>,
    /// The functions of the code that it was in, those first that took most.
    #[serde(default)]
    pub functions: Vec<CodeShare>,
    /// The system calls that it made, the most frequent first.
    #[serde(default)]
    pub system_calls: Vec<CallCount>,
    /// Its functions by their callers, in milliseconds; no part of the document.
    #[serde(skip)]
    flame: Option<Frame>,
}

/// What a thread did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Whether it ended meanwhile: what it did last is not counted.
    pub ended: bool,
    /// What it did.
    pub usage: Usage,
}

/// Time and events. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// On a CPU.
    pub run: u64,
    /// Ready to run, and not on a CPU.
    pub contention: u64,
    /// Neither: waiting for I/O or anything else.
    pub wait: u64,
    /// Wait to run time; nothing if it did not run.
    pub wait_per_run: Option<f64>,
    /// Time ready and not on a CPU to run time; nothing if it did not run.
    pub contention_per_run: Option<f64>,
    /// Context switches in which it gave up the CPU.
    pub voluntary: u64,
    /// Context switches in which the CPU was taken from it.
    pub involuntary: u64,
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// What perf_event counted.
    pub counts: Vec<Count>,
}

impl Usage {
    fn between(first: &Snapshot, last: &Snapshot, counts: Vec<Count>) -> Self {
        let run = last.run.saturating_sub(first.run);
        let contention = last.contention.saturating_sub(first.contention);
        let elapsed = last.at.saturating_sub(first.at);
        let usage = Self {
            run,
            contention,
            wait: elapsed.saturating_sub(run + contention),
            voluntary: last.voluntary.saturating_sub(first.voluntary),
            involuntary: last.involuntary.saturating_sub(first.involuntary),
            minor_faults: last.minor_faults.saturating_sub(first.minor_faults),
            major_faults: last.major_faults.saturating_sub(first.major_faults),
            counts,
            ..Self::default()
        };
        usage.with_ratios()
    }

    fn with_ratios(mut self) -> Self {
        let per_run = |time: u64| (self.run > 0).then(|| time as f64 / self.run as f64);
        (self.wait_per_run, self.contention_per_run) =
            (per_run(self.wait), per_run(self.contention));
        self
    }

    fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        for usage in all {
            sum.run += usage.run;
            sum.contention += usage.contention;
            sum.wait += usage.wait;
            sum.voluntary += usage.voluntary;
            sum.involuntary += usage.involuntary;
            sum.minor_faults += usage.minor_faults;
            sum.major_faults += usage.major_faults;
            for count in &usage.counts {
                match sum.counts.iter_mut().find(|known| known.event == count.event) {
                    Some(known) => known.count += count.count,
                    None => sum.counts.push(*count),
                }
            }
        }
        sum.with_ratios()
    }

    /// How often an event happened.
    pub fn count(&self, event: Event) -> Option<f64> {
        self.counts.iter().find(|count| count.event == event).map(|count| count.count)
    }
}

/// What the kernel says of a thread at a time.
#[derive(Clone, Debug, Default, PartialEq)]
struct Snapshot {
    at: u64,
    run: u64,
    contention: u64,
    voluntary: u64,
    involuntary: u64,
    minor_faults: u64,
    major_faults: u64,
}

/// Run time and time ready, of `/proc/PID/task/TID/schedstat`.
fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()??, words.next()??))
}

/// Voluntary and involuntary context switches, of `/proc/PID/task/TID/status`.
fn parse_status(text: &str) -> Option<(u64, u64)> {
    let field = |name| {
        let value = text.lines().find_map(|line| line.strip_prefix(name))?;
        value.trim().parse().ok()
    };
    Some((field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?))
}

/// The state, and minor and major page faults, of `/proc/PID/task/TID/stat`. Names may hold spaces and parentheses.
fn parse_stat(text: &str) -> Option<(char, u64, u64)> {
    let (_, behind) = text.rsplit_once(')')?;
    let words: Vec<&str> = behind.split_whitespace().collect();
    Some((words.first()?.chars().next()?, words.get(7)?.parse().ok()?, words.get(9)?.parse().ok()?))
}

/// Context switches of this thread, voluntary and involuntary, without any right.
pub(super) fn own_switches() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status").ok()?;
    parse_status(&status).map(|(voluntary, involuntary)| voluntary + involuntary)
}

/// Where the kernel describes processes.
struct Proc(PathBuf);

impl Proc {
    fn threads(&self, pid: u32) -> io::Result<Vec<u32>> {
        let entries = std::fs::read_dir(self.0.join(format!("{pid}/task")))?;
        let number =
            |entry: io::Result<std::fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        Ok(entries.filter_map(number).collect())
    }

    fn name(&self, pid: u32, tid: u32) -> String {
        let name = std::fs::read(self.0.join(format!("{pid}/task/{tid}/comm")));
        printable(String::from_utf8_lossy(&name.unwrap_or_default()).trim_end())
    }

    /// A thread as it is now; `None` if it ended.
    fn snapshot(&self, pid: u32, tid: u32, at: u64) -> Result<Option<Snapshot>, String> {
        let folder = self.0.join(format!("{pid}/task/{tid}"));
        let read = |name: &str| match std::fs::read_to_string(folder.join(name)) {
            Ok(text) => Ok(Some(text)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(format!("{}: {error}", folder.join(name).display())),
        };
        let odd = |name: &str| format!("{}: not understood", folder.join(name).display());
        let Some(stat) = read("stat")? else { return Ok(None) };
        let (state, minor_faults, major_faults) = parse_stat(&stat).ok_or_else(|| odd("stat"))?;
        // Ended, and not waited for by its parent.
        if matches!(state, 'Z' | 'X') {
            return Ok(None);
        }
        let Some(schedstat) = read("schedstat")? else {
            // The kernel has it for all threads or for none.
            return match folder.join("stat").exists() {
                true => Err("this kernel has no /proc/PID/schedstat (CONFIG_SCHED_INFO)".into()),
                false => Ok(None),
            };
        };
        let (run, contention) = parse_schedstat(&schedstat).ok_or_else(|| odd("schedstat"))?;
        let Some(status) = read("status")? else { return Ok(None) };
        let (voluntary, involuntary) = parse_status(&status).ok_or_else(|| odd("status"))?;
        Ok(Some(Snapshot {
            at,
            run,
            contention,
            voluntary,
            involuntary,
            minor_faults,
            major_faults,
        }))
    }
}

/// Whether something is no longer there: its files cannot be opened, or no longer be read.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::SRCH)
}

/// A thread that is watched.
struct Watched {
    name: String,
    first: Snapshot,
    last: Snapshot,
    /// While it lives, and if there are not too many.
    gauges: Option<(Counters, ThreadSamplers)>,
    counts: Vec<Count>,
    ended: bool,
}

/// How many threads can still be counted and sampled, and what is said of them all.
struct Gauges {
    left: usize,
    /// Threads for which none was left.
    without: u64,
    missing: Vec<Missing>,
    remarks: Vec<String>,
}

impl Gauges {
    /// As many as this process may open files for.
    fn new() -> Self {
        let limit =
            raise_limit().map_or(usize::MAX, |limit| limit.try_into().unwrap_or(usize::MAX));
        let left = (limit.saturating_sub(FILES.1) / FILES.0).min(MOST);
        Self { left, without: 0, missing: Vec::new(), remarks: Vec::new() }
    }

    /// Counters and samplers of a thread, if any are left.
    fn start(&mut self, tid: u32) -> Option<(Counters, ThreadSamplers)> {
        if self.left == 0 {
            self.without += 1;
            return None;
        }
        self.left -= 1;
        let mut counters = Counters::open(Some(tid));
        counters.start();
        let mut samplers = ThreadSamplers::start(Some(tid), true);
        for one in counters.missing.drain(..) {
            if self.missing.iter().all(|known| known.event != one.event) {
                self.missing.push(one);
            }
        }
        for why in samplers.missing.drain(..) {
            if !self.remarks.contains(&why) {
                self.remarks.push(why);
            }
        }
        Some((counters, samplers))
    }

    fn into_remarks(self) -> (Vec<Missing>, Vec<String>) {
        let Self { without, missing, mut remarks, .. } = self;
        if without > 0 {
            remarks.push(format!(
                "there were too many threads: {} were neither counted nor sampled, and have times alone",
                grouped(without)
            ));
        }
        (missing, remarks)
    }
}

/// Raises the number of files that this process may open as far as it may. How many they are; nothing without a limit.
fn raise_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let before = getrlimit(Resource::Nofile);
    let mut raised = before;
    raised.current = raised.maximum;
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => before.current,
    }
}

/// A process that is watched.
struct WatchedProcess {
    pid: u32,
    name: String,
    threads: BTreeMap<u32, Watched>,
    /// Threads that ended and are listed no more, and what they did.
    unlisted: (u64, Usage),
    sampled: Sampled,
}

impl WatchedProcess {
    fn unlist(&mut self, thread: Watched) {
        let usage = Usage::between(&thread.first, &thread.last, thread.counts);
        let (count, sum) = &mut self.unlisted;
        (*count, *sum) = (*count + 1, Usage::sum([&*sum, &usage].into_iter()));
    }
}

/// Watches processes, and their threads that come and go, for so long. `wait` waits for the time that it is given, and
/// says whether to go on.
///
/// # Errors
/// If one of them does not exist or may not be looked at.
pub fn watch(
    pids: &[u32],
    length: Duration,
    time: &dyn Time,
    wait: &mut dyn FnMut(Duration) -> bool,
) -> Result<Report, String> {
    watch_in(&Proc("/proc".into()), pids, length, time, wait)
}

fn watch_in(
    proc: &Proc,
    pids: &[u32],
    length: Duration,
    time: &dyn Time,
    wait: &mut dyn FnMut(Duration) -> bool,
) -> Result<Report, String> {
    let begin = time.now();
    let mut gauges = Gauges::new();
    let files = Rc::<Files>::default();
    let mut all: Vec<WatchedProcess> = Vec::new();
    for &pid in pids {
        let (name, sampled) = (proc.name(pid, pid), Sampled::new(Some(pid), &files));
        let (threads, unlisted) = (BTreeMap::new(), (0, Usage::default()));
        let mut process = WatchedProcess { pid, name, threads, unlisted, sampled };
        look(proc, (time, None), &mut gauges, &mut process)?;
        if process.threads.is_empty() {
            return Err(format!("no process {pid}"));
        }
        all.push(process);
    }
    let end = begin.saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
    let mut before = time.now();
    loop {
        let left = Duration::from_nanos(end.saturating_sub(time.now()));
        let goes_on = !left.is_zero() && wait(left.min(STEP));
        let now = time.now();
        let mut lives = false;
        for process in &mut all {
            lives |= look(proc, (time, Some(before)), &mut gauges, process)?;
        }
        before = now;
        if !goes_on || !lives {
            break;
        }
    }
    let seconds = time.now().saturating_sub(begin) as f64 / 1e9;
    let mut report = report(all, seconds, gauges);
    report.remarks.extend(files.remark());
    Ok(report)
}

/// Looks at the threads of a process. Whether any is left.
fn look(
    proc: &Proc,
    (time, before): (&dyn Time, Option<u64>),
    gauges: &mut Gauges,
    process: &mut WatchedProcess,
) -> Result<bool, String> {
    let pid = process.pid;
    let present = match proc.threads(pid) {
        Ok(present) => present,
        Err(error) if is_gone(&error) => Vec::new(),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Err(format!("process {pid}: not permitted to look at it"));
        }
        Err(error) => return Err(format!("process {pid}: {error}")),
    };
    for &tid in &present {
        if process.threads.get(&tid).is_some_and(|watched| !watched.ended) {
            continue;
        }
        // Opening counters takes a while, in which it may end.
        let Some(seen) = proc.snapshot(pid, tid, time.now())? else { continue };
        let started = gauges.start(tid);
        let now = proc.snapshot(pid, tid, time.now())?.unwrap_or(seen);
        // One that came meanwhile began with nothing.
        let first = match before {
            Some(at) => Snapshot { at, ..Snapshot::default() },
            None => now.clone(),
        };
        let name = proc.name(pid, tid);
        let (counts, ended) = (Vec::new(), false);
        let watched = Watched { name, first, last: now, gauges: started, counts, ended };
        // The number of one that ended may be another's.
        if let Some(other) = process.threads.insert(tid, watched) {
            process.unlist(other);
        }
    }
    let (mut listed, mut beyond) = (0, Vec::new());
    for (&tid, watched) in &mut process.threads {
        if watched.ended {
            listed += 1;
            continue;
        }
        match proc.snapshot(pid, tid, time.now())? {
            Some(now) => watched.last = now,
            None => watched.ended = true,
        }
        if let Some((counters, samplers)) = &mut watched.gauges {
            watched.counts = counters.read();
            process.sampled.collect(samplers);
            if watched.ended {
                (watched.gauges, gauges.left) = (None, gauges.left + 1);
            }
        }
        if watched.ended {
            listed += 1;
            beyond.extend((listed > ENDED).then_some(tid));
        }
    }
    for tid in beyond {
        if let Some(thread) = process.threads.remove(&tid) {
            process.unlist(thread);
        }
    }
    Ok(process.threads.values().any(|watched| !watched.ended))
}

fn report(all: Vec<WatchedProcess>, seconds: f64, gauges: Gauges) -> Report {
    let (missing, mut remarks) = gauges.into_remarks();
    let mut processes = Vec::new();
    for WatchedProcess { pid, name, threads: watched, unlisted, sampled } in all {
        let mut threads = Vec::new();
        for (tid, watched) in watched {
            let usage = Usage::between(&watched.first, &watched.last, watched.counts);
            threads.push(Thread { tid, name: watched.name, ended: watched.ended, usage });
        }
        let ended = threads.iter().all(|thread| thread.ended);
        if ended {
            remarks.push(format!("process {pid} ended; what it did last is not counted"));
        }
        if unlisted.0 > 0 {
            remarks.push(format!(
                "of process {pid}, {} threads that ended are not listed: they are in its total alone",
                grouped(unlisted.0)
            ));
        }
        let listed = threads.iter().map(|thread| &thread.usage);
        let total = Usage::sum(listed.chain([&unlisted.1]));
        remarks.extend(sampled.remarks());
        let (functions, system_calls) = (sampled.functions(), sampled.calls());
        let flame = sampled.flame(&format!("{name} ({pid})"), total.run as f64 / 1e6);
        let flame = (!functions.is_empty()).then_some(flame);
        processes.push(Process {
            pid,
            name,
            ended,
            total,
            threads,
            functions,
            system_calls,
            flame,
        });
    }
    let total = Usage::sum(processes.iter().map(|process| &process.total));
    Report { process_profile: VERSION, seconds, processes, total, missing, remarks }
}

impl Report {
    /// The functions of all processes by their callers, in milliseconds; nothing if none was sampled.
    pub fn flame(&self) -> Option<Frame> {
        let parts: Vec<Frame> = self.processes.iter().filter_map(|p| p.flame.clone()).collect();
        let name = format!("{:.2} seconds", self.seconds);
        (!parts.is_empty()).then_some(Frame { name, own: 0.0, parts })
    }

    /// As tables.
    pub fn render(&self) -> String {
        let mut out = format!("{:.2} seconds\n", self.seconds);
        let mut table = Table::new([
            "process, thread",
            "name",
            "CPU",
            "Wait/RunTime",
            "SchedContention/RunTime",
            "voluntary/s",
            "involuntary/s",
            "faults/s",
            "major/s",
            "system calls/s",
            "",
        ]);
        let seconds = self.seconds.max(1e-9);
        let rate = |count: f64| format!("{:.0}", count / seconds);
        let mut row = |number: String, name: &str, usage: &Usage, ended: bool| {
            let ratio = |r: Option<f64>| r.map_or_else(|| "-".into(), |r| format!("{r:.2}"));
            table.row([
                number,
                name.to_string(),
                format!("{:.1} %", usage.run as f64 / seconds / 1e7),
                ratio(usage.wait_per_run),
                ratio(usage.contention_per_run),
                rate(usage.voluntary as f64),
                rate(usage.involuntary as f64),
                rate(usage.minor_faults as f64),
                rate(usage.major_faults as f64),
                usage.count(Event::SystemCalls).map_or_else(|| "-".into(), rate),
                if ended { "ended".into() } else { String::new() },
            ]);
        };
        for process in &self.processes {
            row(process.pid.to_string(), &process.name, &process.total, process.ended);
            let threads = process.threads.iter().filter(|_| process.threads.len() > 1);
            // Threads that rest are often many.
            let (mut ran, mut others): (Vec<_>, Vec<_>) =
                threads.partition(|thread| thread.usage.run > 0 || thread.ended);
            if ran.len() > ROWS {
                ran.sort_by_key(|thread| Reverse(thread.usage.run));
                others.extend(ran.split_off(ROWS));
            }
            for thread in ran {
                row(format!("  {}", thread.tid), &thread.name, &thread.usage, thread.ended);
            }
            if !others.is_empty() {
                let usage = Usage::sum(others.iter().map(|thread| &thread.usage));
                row(format!("  {} others", grouped(others.len() as u64)), "", &usage, false);
            }
        }
        if self.processes.len() > 1 {
            row("together".into(), "", &self.total, false);
        }
        let _ = write!(out, "\n{}", table.render());
        // What the first table does not have already.
        let is_shown = |event| {
            matches!(event, Event::SystemCalls | Event::ContextSwitches | Event::PageFaults)
        };
        let mut table = Table::new(["counted, together", "a second"]);
        for count in self.total.counts.iter().filter(|count| !is_shown(count.event)) {
            table.row([count.event.title().into(), rate(count.count)]);
        }
        if !table.is_empty() {
            let _ = write!(out, "\n{}", table.render());
        }
        for process in &self.processes {
            let of = match self.processes.len() {
                1 => String::new(),
                _ => format!(" of {} ({})", process.name, process.pid),
            };
            out += &render_functions(&process.functions, &of);
            out += &render_calls(&process.system_calls, seconds, &of);
        }
        let reasons = reasons(&self.missing);
        if !reasons.is_empty() || !self.remarks.is_empty() {
            out.push('\n');
        }
        for remark in reasons.iter().chain(&self.remarks) {
            let _ = writeln!(out, "! {remark}");
        }
        out
    }
}

/// Descendants of processes, and the processes themselves: children come behind their parents.
pub fn with_descendants(pids: &[u32]) -> Vec<u32> {
    descendants(Path::new("/proc"), pids)
}

fn descendants(root: &Path, pids: &[u32]) -> Vec<u32> {
    let mut all: Vec<u32> = Vec::new();
    let mut left: Vec<u32> = pids.iter().rev().copied().collect();
    while let Some(pid) = left.pop() {
        if all.contains(&pid) {
            continue;
        }
        all.push(pid);
        let tasks = std::fs::read_dir(root.join(format!("{pid}/task"))).into_iter().flatten();
        for task in tasks.flatten() {
            let children = std::fs::read_to_string(task.path().join("children"));
            left.extend(
                children.unwrap_or_default().split_whitespace().flat_map(str::parse::<u32>),
            );
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::Relaxed;

    use dataplane::clock::Clock;

    use super::*;

    /// Time that passes while it is waited.
    #[derive(Default)]
    struct Waited(AtomicU64);

    impl Time for Waited {
        fn now(&self) -> u64 {
            self.0.load(Relaxed)
        }

        fn wait_until(&self, time: u64) {
            self.0.store(time, Relaxed);
        }

        fn patience(&self, limit: Duration) -> Duration {
            limit
        }

        fn clock(&self) -> io::Result<Box<dyn Clock>> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    /// A folder as `/proc` is.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("catena-profile-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_dir_all(&path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// Run and ready time in milliseconds, switches, and faults.
        fn thread(&self, (pid, tid): (u32, u32), name: &str, [run, ready, v, i, f]: [u64; 5]) {
            let folder = self.0.join(format!("{pid}/task/{tid}"));
            std::fs::create_dir_all(&folder).unwrap();
            let write = |name: &str, text: String| std::fs::write(folder.join(name), text).unwrap();
            write("comm", format!("{name}\n"));
            write("schedstat", format!("{} {} 7\n", run * 1_000_000, ready * 1_000_000));
            write(
                "status",
                format!(
                    "Name:\t{name}\nvoluntary_ctxt_switches:\t{v}\nnonvoluntary_ctxt_switches:\t{i}\n"
                ),
            );
            write("stat", format!("{tid} ({name}) S 1 1 1 0 -1 4194304 {f} 0 2 0 5 5 0\n"));
        }

        fn end(&self, pid: u32, tid: u32) {
            std::fs::remove_dir_all(self.0.join(format!("{pid}/task/{tid}"))).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Numbers that no thread of this machine has: counters are not opened for others' threads.
    const PID: u32 = 2_000_000_000;

    fn watch_folder(
        folder: &Folder,
        pids: &[u32],
        milliseconds: u64,
        mut step: impl FnMut(u64) -> bool,
    ) -> Result<Report, String> {
        let (time, mut steps) = (Waited::default(), 0..);
        let mut wait = |length: Duration| {
            time.0.fetch_add(length.as_nanos() as u64, Relaxed);
            step(steps.next().unwrap() + 1)
        };
        let length = Duration::from_millis(milliseconds);
        watch_in(&Proc(folder.0.clone()), pids, length, &time, &mut wait)
    }

    #[test]
    fn time_is_divided_into_running_waiting_and_contention() {
        let folder = Folder::new("divided");
        folder.thread((PID, PID), "router (a) b", [1000, 500, 10, 1, 100]);
        let found = watch_folder(&folder, &[PID], 1000, |_| {
            folder.thread((PID, PID), "router (a) b", [1100, 700, 40, 3, 150]);
            true
        });
        let found = found.unwrap();
        let usage = &found.processes[0].threads[0].usage;
        let millis = [usage.run, usage.contention, usage.wait].map(|time| time / 1_000_000);
        assert_eq!(millis, [100, 200, 700]);
        // Table 6.5 has these columns.
        assert_eq!((usage.wait_per_run, usage.contention_per_run), (Some(7.0), Some(2.0)));
        assert_eq!((usage.voluntary, usage.involuntary), (30, 2));
        assert_eq!((usage.minor_faults, usage.major_faults), (50, 0));
        assert_eq!((found.seconds, found.processes[0].name.as_str()), (1.0, "router (a) b"));
        let text = found.render();
        for words in ["10.0 %", "7.00", "2.00", "! not counted: "] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }

    #[test]
    fn processes_and_threads_add_up() {
        let folder = Folder::new("together");
        folder.thread((PID, PID), "a", [0, 0, 0, 0, 0]);
        folder.thread((PID + 2, PID + 2), "b", [0, 0, 0, 0, 0]);
        let found = watch_folder(&folder, &[PID, PID + 2], 400, |step| {
            folder.thread((PID, PID), "a", [100, 0, 1, 0, 0]);
            folder.thread((PID + 2, PID + 2), "b", [300, 100, 2, 0, 0]);
            // A thread that comes in the fourth step, and one that goes again.
            if step == 4 {
                folder.thread((PID, PID + 1), "late", [10, 0, 5, 0, 0]);
            }
            if step == 6 {
                folder.end(PID, PID + 1);
            }
            true
        });
        let found = found.unwrap();
        let late = &found.processes[0].threads[1];
        assert_eq!((late.name.as_str(), late.ended, late.usage.run), ("late", true, 10_000_000));
        // It was seen in the steps 4 and 5.
        assert_eq!(late.usage.wait / 1_000_000, 90);
        assert_eq!(found.processes[0].total.run, 110_000_000);
        assert_eq!((found.total.run, found.total.voluntary), (410_000_000, 8));
        assert!(found.render().contains("together"), "{}", found.render());
    }

    #[test]
    fn of_too_many_threads_some_have_times_alone() {
        let folder = Folder::new("many");
        let threads = Gauges::new().left as u32 + 3;
        for tid in PID..PID + threads {
            folder.thread((PID, tid), "a\u{1b}[31m", [0; 5]);
        }
        let found = watch_folder(&folder, &[PID], 100, |_| {
            folder.thread((PID, PID + threads - 1), "a", [20, 0, 0, 0, 0]);
            true
        });
        let found = found.unwrap();
        let last = found.processes[0].threads.last().unwrap();
        assert_eq!((last.usage.run, last.usage.counts.len()), (20_000_000, 0));
        assert!(!last.name.contains('\u{1b}'), "{:?}", last.name);
        let said = "3 were neither counted nor sampled";
        assert!(found.remarks.iter().any(|remark| remark.contains(said)), "{found:?}");
        // Gauges of one that ended are for others.
        let mut gauges = Gauges { left: 1, ..Gauges::new() };
        assert!(gauges.start(PID).is_some() && gauges.start(PID).is_none());
        assert_eq!(gauges.without, 1);
    }

    #[test]
    fn of_threads_that_end_some_are_listed_and_all_are_counted() {
        let folder = Folder::new("short");
        folder.thread((PID, PID), "a", [0; 5]);
        let threads = ENDED as u32 + 5;
        let at = |tid: u32, ms: u64| folder.thread((PID, tid), "b", [ms, 0, 1, 0, 0]);
        let found = watch_folder(&folder, &[PID], 400, |step| {
            match step {
                1 => (PID + 1..PID + threads).for_each(|tid| at(tid, 1)),
                2 => (PID + 1..PID + threads).for_each(|tid| folder.end(PID, tid)),
                // Another by the number of one that ended.
                4 => at(PID + 1, 2),
                _ => {}
            }
            true
        });
        let found = found.unwrap();
        let process = &found.processes[0];
        assert_eq!(process.threads.len(), 1 + ENDED);
        assert_eq!(process.total.run, (u64::from(threads) + 1) * 1_000_000);
        assert_eq!(process.total.voluntary, u64::from(threads));
        let text = found.render();
        assert!(text.contains("5 threads that ended are not listed"), "{:?}", found.remarks);
        assert!(text.lines().filter(|line| line.ends_with("ended")).count() <= ROWS, "{text}");
    }

    #[test]
    fn an_end_or_an_interrupt_is_reported() {
        let folder = Folder::new("ends");
        folder.thread((PID, PID), "a", [0, 0, 0, 0, 0]);
        let found = watch_folder(&folder, &[PID], 60_000, |step| {
            match step {
                1 => folder.thread((PID, PID), "a", [20, 0, 0, 0, 0]),
                2 => folder.end(PID, PID),
                _ => panic!("it has ended"),
            }
            true
        });
        let found = found.unwrap();
        assert!(found.processes[0].ended && found.total.run == 20_000_000, "{found:?}");
        assert_eq!(found.seconds, 0.1);
        assert!(found.render().contains(&format!("! process {PID} ended")), "{}", found.render());
        folder.thread((PID, PID), "a", [0, 0, 0, 0, 0]);
        let found = watch_folder(&folder, &[PID], 60_000, |_| false).unwrap();
        assert_eq!((found.seconds, found.total.run, found.total.wait_per_run), (0.05, 0, None));
        assert!(!found.processes[0].ended && found.remarks.is_empty());
    }

    #[test]
    fn what_cannot_be_watched_is_refused() {
        let folder = Folder::new("refused");
        let watch = || watch_folder(&folder, &[PID], 100, |_| true).unwrap_err();
        assert_eq!(watch(), format!("no process {PID}"));
        folder.thread((PID, PID), "a", [0, 0, 0, 0, 0]);
        let thread = folder.0.join(format!("{PID}/task/{PID}"));
        std::fs::write(thread.join("schedstat"), "nonsense").unwrap();
        assert!(watch().ends_with("schedstat: not understood"), "{}", watch());
        std::fs::remove_file(thread.join("schedstat")).unwrap();
        assert!(watch().contains("CONFIG_SCHED_INFO"), "{}", watch());
        // A zombie has ended.
        std::fs::write(thread.join("stat"), format!("{PID} (a) Z 1 1 1 0 -1 0 0 0 0 0 0\n"))
            .unwrap();
        assert_eq!(watch(), format!("no process {PID}"));
    }

    #[test]
    fn descendants_are_found() {
        let folder = Folder::new("descendants");
        for (pid, children) in [(1, "2 5 "), (2, "3"), (3, ""), (5, "1")] {
            folder.thread((pid, pid), "a", [0; 5]);
            std::fs::write(folder.0.join(format!("{pid}/task/{pid}/children")), children).unwrap();
        }
        assert_eq!(descendants(&folder.0, &[1]), [1, 5, 2, 3]);
        assert_eq!(descendants(&folder.0, &[3, 3, 9]), [3, 9]);
    }

    #[test]
    fn this_thread_is_known_to_the_kernel() {
        assert!(own_switches().is_some());
    }
}
