//! Counters of the processor and the kernel, by perf_event.
//!
//! Generic hardware events are the same on processors of any vendor. Virtual machines often have none. What cannot be
//! counted is reported with the reason.

use std::io;
use std::sync::OnceLock;

use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Software, Tracepoint};
use perf_event::{Builder, Counter};
use serde::{Deserialize, Serialize};

use super::formula::{BySource, Source};

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Event {
    Cycles,
    Instructions,
    L1dLoads,
    L1dLoadMisses,
    LlcLoads,
    LlcLoadMisses,
    DtlbLoads,
    DtlbLoadMisses,
    ContextSwitches,
    CpuMigrations,
    PageFaults,
    SystemCalls,
}

/// Where tracefs may be mounted.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

impl Event {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::Cycles,
        Self::Instructions,
        Self::L1dLoads,
        Self::L1dLoadMisses,
        Self::LlcLoads,
        Self::LlcLoadMisses,
        Self::DtlbLoads,
        Self::DtlbLoadMisses,
        Self::ContextSwitches,
        Self::CpuMigrations,
        Self::PageFaults,
        Self::SystemCalls,
    ];

    /// Its name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Instructions => "instructions",
            Self::L1dLoads => "L1d loads",
            Self::L1dLoadMisses => "L1d load misses",
            Self::LlcLoads => "LLC loads",
            Self::LlcLoadMisses => "LLC load misses",
            Self::DtlbLoads => "dTLB loads",
            Self::DtlbLoadMisses => "dTLB load misses",
            Self::ContextSwitches => "context switches",
            Self::CpuMigrations => "CPU migrations",
            Self::PageFaults => "page faults",
            Self::SystemCalls => "system calls",
        }
    }

    /// Whether the kernel itself makes it happen: it cannot be counted outside of the kernel's code.
    fn is_of_kernel(self) -> bool {
        matches!(self, Self::ContextSwitches | Self::CpuMigrations | Self::SystemCalls)
    }

    fn builder(self) -> Result<Builder<'static>, String> {
        let cache = |which, result| Builder::new(Cache { which, operation: CacheOp::READ, result });
        Ok(match self {
            Self::Cycles => Builder::new(Hardware::CPU_CYCLES),
            Self::Instructions => Builder::new(Hardware::INSTRUCTIONS),
            Self::L1dLoads => cache(CacheId::L1D, CacheResult::ACCESS),
            Self::L1dLoadMisses => cache(CacheId::L1D, CacheResult::MISS),
            Self::LlcLoads => cache(CacheId::LL, CacheResult::ACCESS),
            Self::LlcLoadMisses => cache(CacheId::LL, CacheResult::MISS),
            Self::DtlbLoads => cache(CacheId::DTLB, CacheResult::ACCESS),
            Self::DtlbLoadMisses => cache(CacheId::DTLB, CacheResult::MISS),
            Self::ContextSwitches => Builder::new(Software::CONTEXT_SWITCHES),
            Self::CpuMigrations => Builder::new(Software::CPU_MIGRATIONS),
            Self::PageFaults => Builder::new(Software::PAGE_FAULTS),
            Self::SystemCalls => Builder::new(Tracepoint::with_id(tracepoint()?)),
        })
    }

    /// Opens its counter, for a thread or for this one.
    fn open(self, thread: Option<u32>) -> Result<Counter, String> {
        let mut builder = self.builder()?;
        if let Some(thread) = thread {
            builder.observe_pid(i32::try_from(thread).map_err(|e| e.to_string())?);
        }
        builder.include_kernel();
        let opened = match builder.build() {
            Err(refused) if is_refusal(&refused) && !self.is_of_kernel() => {
                builder.exclude_kernel(true).build()
            }
            other => other,
        };
        opened.map_err(|error| reason(&error))
    }
}

/// The number of the tracepoint at which system calls begin; it stays the same while the kernel runs.
pub(super) fn tracepoint() -> Result<u64, String> {
    static FOUND: OnceLock<Result<u64, String>> = OnceLock::new();
    FOUND.get_or_init(find_tracepoint).clone()
}

fn find_tracepoint() -> Result<u64, String> {
    const ID: &str = "events/raw_syscalls/sys_enter/id";
    let mut refusal = None;
    let number = |id: &str| id.trim().parse().map_err(|_| format!("{ID}: not a number: {id}"));
    for folder in TRACEFS {
        match std::fs::read_to_string(format!("{folder}/{ID}")) {
            Ok(id) => return number(&id),
            Err(error) if is_refusal(&error) => refusal = Some(format!("{folder}: {error}")),
            Err(_) => {}
        }
    }
    match read_unmounted(ID) {
        Ok(id) => number(&id),
        Err(_) => Err(refusal.unwrap_or_else(|| {
            "tracefs is not mounted, and it takes root to look into it: mount -t tracefs tracefs /sys/kernel/tracing".into()
        })),
    }
}

/// Reads a file of tracefs without mounting it anywhere.
fn read_unmounted(file: &str) -> io::Result<String> {
    use rustix::fs::{Mode, OFlags, openat};
    use rustix::mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen,
    };
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let file = openat(&mount, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    io::read_to_string(std::fs::File::from(file))
}

pub(super) fn is_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// The reason of a thread that is gone.
pub(super) const ENDED: &str = "the thread ended";

/// Why a counter was not opened.
pub(super) fn reason(error: &io::Error) -> String {
    use rustix::io::Errno;
    match Errno::from_io_error(error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL) => {
            "this processor, or the virtual machine, has no such counter".into()
        }
        Some(Errno::NOSYS) => "the kernel has no perf_event".into(),
        Some(Errno::PERM | Errno::ACCESS) => {
            let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
            let level = level.unwrap_or_else(|_| "unknown".into());
            format!(
                "not permitted: it takes CAP_PERFMON; kernel.perf_event_paranoid is {}",
                level.trim()
            )
        }
        Some(Errno::SRCH) => ENDED.into(),
        _ => error.to_string(),
    }
}

/// How often an event happened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// What happened.
    pub event: Event,
    /// How often; an estimate where events took turns on the processor's counters.
    pub count: f64,
}

/// What could not be counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What it is.
    pub event: Event,
    /// Why not.
    pub why: String,
}

/// Counters of a thread.
pub struct Counters {
    open: Vec<(Event, Counter)>,
    /// What cannot be counted.
    pub missing: Vec<Missing>,
}

impl Counters {
    /// Opens them for a thread, or for this one. They count nothing yet.
    pub fn open(thread: Option<u32>) -> Self {
        let (mut open, mut missing) = (Vec::new(), Vec::new());
        for event in Event::ALL {
            match event.open(thread) {
                Ok(counter) => open.push((event, counter)),
                Err(why) => missing.push(Missing { event, why }),
            }
        }
        Self { open, missing }
    }

    /// Counts from now on.
    pub fn start(&mut self) {
        self.drop_failing("it cannot be started", Counter::enable);
    }

    /// Counts no longer.
    pub fn stop(&mut self) {
        self.drop_failing("it cannot be stopped", Counter::disable);
    }

    fn drop_failing(&mut self, what: &str, mut act: impl FnMut(&mut Counter) -> io::Result<()>) {
        let missing = &mut self.missing;
        self.open.retain_mut(|(event, counter)| match act(counter) {
            Ok(()) => true,
            Err(error) => {
                missing.push(Missing { event: *event, why: format!("{what}: {error}") });
                false
            }
        });
    }

    /// What was counted. Counters that the processor never ran count nothing.
    pub fn read(&mut self) -> Vec<Count> {
        let read = |(event, counter): &mut (Event, Counter)| {
            let found = counter.read_count_and_time().ok()?;
            let count = scaled(found.count, (found.time_enabled, found.time_running))?;
            Some(Count { event: *event, count })
        };
        self.open.iter_mut().filter_map(read).collect()
    }
}

/// An estimate for the whole time from what was counted in a part of it.
fn scaled(count: u64, (enabled, running): (u64, u64)) -> Option<f64> {
    match (enabled, running) {
        (0, _) => Some(count as f64),
        (_, 0) => None,
        (enabled, running) => Some(count as f64 * enabled as f64 / running as f64),
    }
}

/// Reasons, each once, with the events that they keep from being counted.
pub fn reasons(missing: &[Missing]) -> Vec<String> {
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for Missing { event, why } in missing {
        match all.iter_mut().find(|(known, _)| known == why) {
            Some((_, events)) if events.contains(&event.title()) => {}
            Some((_, events)) => events.push(event.title()),
            None => all.push((why, vec![event.title()])),
        }
    }
    all.iter().map(|(why, events)| format!("not counted: {}: {why}", events.join(", "))).collect()
}

/// The formula's events from what was counted. Generic events do not tell hits of the second TLB from those of the first:
/// they count as the first's.
pub fn by_source(counts: &[Count]) -> BySource {
    let of = |event| counts.iter().find(|count| count.event == event).map(|count| count.count);
    // Estimates of events that took turns may contradict each other.
    let less = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| (a - b).max(0.0));
    let mut all = BySource::default();
    all.set(Source::L1, less(of(Event::L1dLoads), of(Event::L1dLoadMisses)));
    all.set(Source::L2, less(of(Event::L1dLoadMisses), of(Event::LlcLoads)));
    all.set(Source::L3, less(of(Event::LlcLoads), of(Event::LlcLoadMisses)));
    all.set(Source::Memory, of(Event::LlcLoadMisses));
    all.set(Source::Tlb1, less(of(Event::DtlbLoads), of(Event::DtlbLoadMisses)));
    all.set(Source::Tlb2, all.get(Source::Tlb1).map(|_| 0.0));
    all.set(Source::Walk, of(Event::DtlbLoadMisses));
    all.set(Source::ContextSwitch, of(Event::ContextSwitches));
    all.set(Source::SystemCall, of(Event::SystemCalls));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_counted_or_says_why_not() {
        let mut counters = Counters::open(None);
        counters.start();
        // Pages that were not touched before fault.
        let pages = std::hint::black_box(vec![1u8; 16 << 20]);
        counters.stop();
        let counts = counters.read();
        assert_eq!(pages[4096], 1);
        for event in Event::ALL {
            let counted = counts.iter().any(|count| count.event == event);
            let missing = counters.missing.iter().find(|missing| missing.event == event);
            assert!(counted != missing.is_some(), "{event:?} {counts:?} {:?}", counters.missing);
        }
        if let Some(faults) = counts.iter().find(|count| count.event == Event::PageFaults) {
            assert!(faults.count >= 8.0, "{faults:?}");
        }
        // No thread has this number.
        let gone = Counters::open(Some(i32::MAX as u32));
        assert_eq!(gone.missing.len(), Event::ALL.len());
    }

    #[test]
    fn the_formula_gets_hits_from_loads_and_misses() {
        let count = |(event, count)| Count { event, count };
        let counts = [
            (Event::L1dLoads, 1000.0),
            (Event::L1dLoadMisses, 100.0),
            (Event::LlcLoads, 30.0),
            (Event::LlcLoadMisses, 5.0),
            (Event::DtlbLoads, 900.0),
            (Event::DtlbLoadMisses, 2.0),
            (Event::ContextSwitches, 3.0),
        ];
        let found = by_source(&counts.map(count));
        let expected = [900.0, 70.0, 25.0, 5.0, 898.0, 0.0, 2.0, 3.0];
        let found: Vec<_> = Source::ALL.map(|source| found.get(source)).to_vec();
        assert_eq!(found[..8], expected.map(Some));
        assert_eq!(found[8], None);
        // More misses than loads are none.
        let odd = by_source(&[(Event::L1dLoads, 1.0), (Event::L1dLoadMisses, 2.0)].map(count));
        assert_eq!((odd.get(Source::L1), odd.get(Source::L2)), (Some(0.0), None));
    }

    #[test]
    fn counts_are_scaled_to_the_whole_time() {
        assert_eq!(scaled(10, (100, 50)), Some(20.0));
        assert_eq!((scaled(10, (100, 0)), scaled(0, (0, 0))), (None, Some(0.0)));
    }

    #[test]
    fn reasons_are_given_once() {
        let missing = |event, why: &str| Missing { event, why: why.into() };
        let all = [
            missing(Event::Cycles, "none"),
            missing(Event::SystemCalls, "no tracefs"),
            missing(Event::Instructions, "none"),
            missing(Event::Cycles, "none"),
        ];
        let expected =
            ["not counted: cycles, instructions: none", "not counted: system calls: no tracefs"];
        assert_eq!(reasons(&all), expected);
        let why = |errno: rustix::io::Errno| reason(&errno.into());
        assert!(why(rustix::io::Errno::ACCESS).contains("perf_event_paranoid is "));
        assert!(why(rustix::io::Errno::NOENT).contains("no such counter"));
    }
}
