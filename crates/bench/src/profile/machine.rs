//! The costs of a machine: memory by level, address translation, system calls, context switches.

use std::fmt::Write as _;

use dataplane::clock::Time;
use serde::{Deserialize, Serialize};
use view::table::Table;

use super::caches::{self, Cache};
use super::formula::{BySource, Source};
use super::loads::{self, Latencies, Memory, Order};
use super::system;
use crate::machine::Environment;
use crate::measure::Failed;
use crate::statistics::Samples;
use crate::{Machine, Meter as _};

/// The version of the document's format.
pub const VERSION: u32 = 1;

/// What a machine takes. Times are nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// The format's version.
    pub machine_profile: u32,
    /// What it was measured on.
    pub environment: Environment,
    /// The data caches of the CPU, the first level first.
    pub caches: Vec<Cache>,
    /// The names of the orders of the latency curve's columns.
    pub orders: Vec<String>,
    /// What memory takes.
    pub memory: Latencies,
    /// What the operating system takes.
    pub system: system::Costs,
    /// The share of the time that was taken from the thread.
    pub disturbed: f64,
    /// What a reader must know before he believes the figures.
    pub remarks: Vec<String>,
}

/// Measures this machine. The latency curve takes most of the time; the formula does not need it.
///
/// # Errors
/// If it was stopped, or lacks what is measured.
pub fn measure(
    machine: &Machine,
    time: &dyn Time,
    with_curve: bool,
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<Costs, Failed> {
    let environment = machine.environment();
    let caches = environment.cpu.map(caches::of_cpu).unwrap_or_default();
    let largest = loads::largest(&caches, available());
    let (begin, taken) = (time.now(), machine.taken());
    progress("measuring the latency of memory");
    let mut memory = Memory::new(largest, machine);
    let found = loads::measure(&mut memory, (&caches, largest), with_curve, is_stopped);
    let memory = found.ok_or(Failed::Interrupted)?;
    progress("measuring system calls and context switches");
    let system = system::measure(time, machine).map_err(Failed::Message)?;
    if is_stopped() {
        return Err(Failed::Interrupted);
    }
    let elapsed = time.now().saturating_sub(begin).max(1);
    let disturbed = (machine.taken().saturating_sub(taken) as f64 / elapsed as f64).min(1.0);
    let orders = Order::CURVE.map(Order::title).to_vec();
    let mut costs = Costs {
        machine_profile: VERSION,
        environment,
        caches,
        orders,
        memory,
        system,
        disturbed,
        remarks: Vec::new(),
    };
    costs.remark(largest);
    Ok(costs)
}

/// Bytes of memory that the machine can spare.
fn available() -> usize {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kilobytes.map_or(256 << 20, |kilobytes| kilobytes.saturating_mul(1024))
}

impl Costs {
    fn remark(&mut self, largest: usize) {
        let mut remarks = Vec::new();
        if self.caches.is_empty() {
            remarks.push(
                "the kernel does not describe this CPU's caches: the latencies of levels are not known".into(),
            );
        } else if self.environment.is_virtual {
            remarks.push(
                "a virtual machine shares its last-level cache with others, which may leave it less than its size".into(),
            );
        }
        if let Some(last) = self.caches.last().filter(|last| largest < 4 * last.size) {
            remarks.push(format!(
                "there is too little memory to measure beyond the L{}: memory looks faster than it is",
                last.level
            ));
        }
        if self.disturbed > crate::report::DISTURBED {
            remarks.push(format!(
                "the machine was busy: {:.0} % of the CPU's time went elsewhere; measure again when it is quiet",
                100.0 * self.disturbed
            ));
        }
        if self.environment.debug_build {
            remarks
                .push("this is a debug build: the first levels look slower than they are".into());
        }
        self.remarks = remarks;
    }

    /// What the formula takes: nanoseconds of an event.
    pub fn costs(&self) -> BySource {
        let mut costs = BySource::default();
        // The last level is the formula's L3, however many there are.
        let last = self.caches.last().map(|cache| format!("L{}", cache.level));
        for level in &self.memory.levels {
            let source = match level.name.as_str() {
                "memory" => Source::Memory,
                "L1" => Source::L1,
                name if last.as_deref() == Some(name) => Source::L3,
                "L2" => Source::L2,
                _ => continue,
            };
            costs.set(source, Some(level.time.median));
        }
        // Each load's latency has it already.
        costs.set(Source::Tlb1, Some(0.0));
        costs.set(Source::Tlb2, Some(self.memory.second_tlb.cost()));
        costs.set(Source::Walk, Some(self.memory.walk.cost()));
        costs.set(Source::ContextSwitch, self.system.switch());
        costs.set(Source::SystemCall, Some(self.system.system_call.median));
        costs
    }

    /// As tables.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "machine: {}", describe(&self.environment));
        if !self.caches.is_empty() {
            let all = self.caches.iter().map(|cache| {
                let shared = if cache.shared.is_empty() {
                    String::new()
                } else {
                    format!(" (CPUs {})", cache.shared)
                };
                format!("L{} {}{shared}", cache.level, size(cache.size))
            });
            let _ = writeln!(out, "data caches: {}", all.collect::<Vec<_>>().join(", "));
        }
        self.render_memory(&mut out);
        self.render_system(&mut out);
        if !self.remarks.is_empty() {
            out.push('\n');
        }
        for remark in &self.remarks {
            let _ = writeln!(out, "! {remark}");
        }
        out
    }

    fn render_memory(&self, out: &mut String) {
        let mut table = Table::new(["memory", "working set", "ns per load", "95 %"]);
        for level in &self.memory.levels {
            let (median, confidence) = times(&level.time);
            table.row([level.name.clone(), size(level.measured), median, confidence]);
        }
        let _ = write!(out, "\n{}", table.render());
        let mut table =
            Table::new(["address translation", "pages", "ns more than dense lines", ""]);
        let translations =
            [("second-level TLB", &self.memory.second_tlb), ("page walk", &self.memory.walk)];
        for (name, translation) in translations {
            let (paged, dense) = (translation.paged.median, translation.dense.median);
            table.row([
                name.into(),
                translation.pages.to_string(),
                format!("{:.1}", translation.cost()),
                format!("{paged:.1} less {dense:.1}"),
            ]);
        }
        let _ = write!(out, "\n{}", table.render());
        if self.memory.curve.is_empty() {
            return;
        }
        let mut table = Table::new([
            "ns per load by stride",
            &self.orders[0],
            &self.orders[1],
            &self.orders[2],
            &self.orders[3],
            &self.orders[4],
            &self.orders[5],
            &self.orders[6],
        ]);
        for point in &self.memory.curve {
            let time = |column: usize| {
                point.times.get(column).map_or_else(String::new, |time| times(time).0)
            };
            table.row([
                size(point.bytes),
                time(0),
                time(1),
                time(2),
                time(3),
                time(4),
                time(5),
                time(6),
            ]);
        }
        let _ = write!(out, "\n{}", table.render());
    }

    fn render_system(&self, out: &mut String) {
        let mut table = Table::new(["operating system", "ns", "95 %"]);
        let mut row = |name: String, time: &Samples| {
            let (median, confidence) = times(time);
            table.row([name, median, confidence]);
        };
        row("system call".into(), &self.system.system_call);
        row("network I/O system call".into(), &self.system.io_call);
        let mut missing = String::new();
        for switch in &self.system.switches {
            let name = format!("context switch, {}", switch.policy.title());
            if let Some(time) = &switch.time {
                row(name.clone(), time);
            }
            if let Some(why) = &switch.missing {
                let _ = writeln!(missing, "! {name}: {why}");
            }
        }
        let _ = write!(out, "\n{}{missing}", table.render());
    }
}

/// A machine in a line.
pub(super) fn describe(machine: &Environment) -> String {
    let kind = if machine.is_virtual { ", virtual machine" } else { "" };
    let cpu = machine.cpu.map_or_else(String::new, |cpu| format!(", on CPU {cpu}"));
    let (processor, cpus, kernel) = (&machine.processor, machine.count_of_cpus(), &machine.kernel);
    format!("{processor}, {cpus}{kind}{cpu}, Linux {kernel}")
}

/// A median and its confidence interval, with digits that mean something.
fn times(time: &Samples) -> (String, String) {
    let digits = if time.median < 10.0 { 2 } else { usize::from(time.median < 100.0) };
    let (low, high) = time.confidence;
    (format!("{:.digits$}", time.median), format!("{low:.digits$}–{high:.digits$}"))
}

/// A size with its unit.
fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", bytes >> 10),
    }
}
