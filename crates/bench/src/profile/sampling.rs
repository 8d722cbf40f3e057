//! Samples of what threads do: the functions of the code that they are in, with their callers, and the system calls that
//! they make.
//!
//! perf_event interrupts a thread so many times a second of its CPU time, by the processor's cycles or, where a virtual
//! machine has no counter of them, by the kernel's clock. Callers are found by frame pointers: code that was built without
//! them has none, or few. Every system call is sampled at its tracepoint; where there are more than the ring has room for
//! until it is read, those that are there stand for the others.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroU32;
use std::rc::Rc;

use blazesym::Pid;
use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use perf_event::data::Record;
use perf_event::events::{Hardware, Software, Tracepoint};
use perf_event::{Builder, SampleFlag, Sampler};
use serde::{Deserialize, Serialize};
use syscalls::Sysno;
use view::flame::Frame;
use view::table::{Table, grouped};

use super::counters::{ENDED, is_refusal, reason, tracepoint};
use super::symbols::{Files, Maps, printable, symbolizer};

/// Samples a second of CPU time.
const FREQUENCY: u64 = 997;
/// Bytes of the ring that the kernel writes a thread's samples of code to, and its system calls.
const RING: usize = 1 << 15;
const CALLS: usize = 1 << 16;
/// Callers that are kept of a sample.
const DEPTH: usize = 48;
/// Different stacks, and different addresses, that are kept of a process: of others, the function alone.
const MOST: usize = 1 << 16;
/// Where a system call's number stands in its sample.
const NUMBER: std::ops::Range<usize> = 8..16;
/// Addresses from here on mark whose the next ones are.
const MARKS: u64 = u64::MAX - 4095;
/// Functions and system calls that tables have at the most.
const ROWS: usize = 20;

/// A function of the code, and how much of the time a process was in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CodeShare {
    /// Its name, or `[unknown]`.
    pub function: String,
    /// The file that it is in, or `[kernel]`; nothing if that is unknown.
    pub module: Option<String>,
    /// Samples that found a thread in it.
    pub samples: u64,
    /// Their share of all samples.
    pub share: f64,
}

/// A system call that a process made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallCount {
    /// Its name.
    pub name: String,
    /// How often; an estimate where there were many.
    pub count: f64,
}

/// Samplers of a thread.
pub(super) struct ThreadSamplers {
    code: Option<Sampler>,
    calls: Option<Sampler>,
    /// System calls whose names are known, or that stand for others of no known name.
    named: u64,
    /// What is not sampled, and why.
    pub(super) missing: Vec<String>,
}

impl ThreadSamplers {
    /// Samples a thread, or this one, from now on; its system calls only if they are asked for.
    pub(super) fn start(thread: Option<u32>, with_calls: bool) -> Self {
        let mut missing = Vec::new();
        let mut keep = |what: &str, opened: Result<Sampler, String>| match opened {
            Ok(sampler) => Some(sampler),
            Err(why) => {
                // What a thread did that is gone is not known anyway.
                let is_gone = why == ENDED;
                missing.extend((!is_gone).then(|| format!("{what} were not sampled: {why}")));
                None
            }
        };
        let (code, no_kernel) = match open_code(thread) {
            Ok((sampler, no_kernel)) => (Ok(sampler), no_kernel),
            Err(why) => (Err(reason(&why)), None),
        };
        let code = keep("functions of the code", code);
        let calls = match with_calls {
            true => keep("names of system calls", open_calls(thread)),
            false => None,
        };
        missing.extend(
            no_kernel.map(|why| format!("functions of the kernel were not sampled: {why}")),
        );
        Self { code, calls, named: 0, missing }
    }

    /// Samples what follows, or does not.
    pub(super) fn run(&mut self, on: bool) {
        for sampler in self.code.iter_mut().chain(&mut self.calls) {
            // One that cannot be switched samples on.
            let _ = if on { sampler.enable() } else { sampler.disable() };
        }
    }
}

fn observe(builder: &mut Builder<'_>, thread: Option<u32>) {
    if let Some(thread) = thread.and_then(|thread| i32::try_from(thread).ok()) {
        builder.observe_pid(thread);
    }
}

/// Opens a sampler of the code by the first event that there is; without the kernel's code where that is not permitted,
/// and why.
fn open_code(thread: Option<u32>) -> io::Result<(Sampler, Option<String>)> {
    let open = |mut builder: Builder<'_>, with_kernel: bool| {
        observe(&mut builder, thread);
        builder.sample_frequency(FREQUENCY).sample(SampleFlag::IP).sample(SampleFlag::CALLCHAIN);
        if with_kernel {
            builder.include_kernel();
        }
        let mut sampler = builder.build()?.sampled(RING)?;
        sampler.enable()?;
        Ok(sampler)
    };
    let with = |with_kernel| {
        open(Builder::new(Hardware::CPU_CYCLES), with_kernel)
            .or_else(|_| open(Builder::new(Software::CPU_CLOCK), with_kernel))
    };
    match with(true) {
        Err(refused) if is_refusal(&refused) => Ok((with(false)?, Some(reason(&refused)))),
        opened => Ok((opened?, None)),
    }
}

fn open_calls(thread: Option<u32>) -> Result<Sampler, String> {
    let mut builder = Builder::new(Tracepoint::with_id(tracepoint()?));
    observe(&mut builder, thread);
    builder.sample_period(1).sample(SampleFlag::RAW).include_kernel();
    let opened = builder.build().and_then(|counter| counter.sampled(CALLS));
    let mut sampler = opened.map_err(|error| reason(&error))?;
    sampler.enable().map_err(|error| reason(&error))?;
    Ok(sampler)
}

/// A function by its name, and the file that it is in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Function {
    name: String,
    module: Option<String>,
}

/// What was sampled of a process.
pub(super) struct Sampled {
    /// Its number; nothing for this one.
    pid: Option<u32>,
    symbolizer: Symbolizer,
    functions: HashMap<u64, Rc<Function>>,
    /// The outermost caller first.
    stacks: HashMap<Vec<Rc<Function>>, u64>,
    calls: HashMap<u64, f64>,
    samples: u64,
    lost: u64,
    /// System calls whose names are not known.
    unnamed: u64,
}

impl Sampled {
    pub(super) fn new(pid: Option<u32>, files: &Rc<Files>) -> Self {
        Self {
            pid,
            symbolizer: symbolizer(files),
            functions: HashMap::new(),
            stacks: HashMap::new(),
            calls: HashMap::new(),
            samples: 0,
            lost: 0,
            unnamed: 0,
        }
    }

    /// Takes what the samplers of a thread have, while the process is there.
    pub(super) fn collect(&mut self, samplers: &mut ThreadSamplers) {
        let mut chains: Vec<Vec<u64>> = Vec::new();
        while let Some(record) = samplers.code.as_mut().and_then(Sampler::next_record) {
            match record.parse_record() {
                Ok(Record::Sample(sample)) => {
                    let callers = sample.callchain().unwrap_or_default();
                    let callers = callers.iter().filter(|address| **address < MARKS);
                    let mut chain: Vec<u64> = callers.copied().take(DEPTH).collect();
                    if chain.is_empty() {
                        chain.extend(sample.ip());
                    }
                    // A return address is behind the call.
                    chain
                        .iter_mut()
                        .skip(1)
                        .for_each(|address| *address = address.saturating_sub(1));
                    chains.push(chain);
                }
                Ok(Record::Lost(lost)) => self.lost += lost.lost,
                _ => {}
            }
        }
        self.name(chains.iter().flatten().copied());
        for chain in chains.into_iter().filter(|chain| !chain.is_empty()) {
            self.samples += 1;
            let named = |address: &u64| self.functions.get(address).cloned();
            let unknown = || Rc::new(Function { name: UNKNOWN.into(), module: None });
            // Callers that are unknown are more likely no callers.
            let leaf = named(&chain[0]).unwrap_or_else(unknown);
            let callers = chain[1..].iter().map_while(named).take_while(|f| f.name != UNKNOWN);
            let mut stack: Vec<_> = std::iter::once(leaf).chain(callers).collect();
            if self.stacks.len() >= MOST {
                stack.truncate(1);
            }
            stack.reverse();
            *self.stacks.entry(stack).or_default() += 1;
        }
        let Some(calls) = &mut samplers.calls else { return };
        // Counted before they are taken: those that come meanwhile are not missed.
        let counted = calls.as_counter_mut().read().unwrap_or(0);
        let mut numbers: Vec<u64> = Vec::new();
        while let Some(record) = calls.next_record() {
            let Ok(Record::Sample(sample)) = record.parse_record() else { continue };
            let number = sample.raw().and_then(|raw| raw.get(NUMBER)?.try_into().ok());
            numbers.extend(number.map(u64::from_ne_bytes));
        }
        samplers.named += self.add_calls(&numbers, counted.saturating_sub(samplers.named));
    }

    /// Adds system calls by their numbers, of so many that were made. How many they stand for.
    fn add_calls(&mut self, numbers: &[u64], made: u64) -> u64 {
        let taken = numbers.len() as u64;
        if taken == 0 {
            // What was made shows with the next ones.
            return 0;
        }
        let all = made.max(taken);
        self.unnamed += all - taken;
        for number in numbers {
            if self.calls.len() < MOST || self.calls.contains_key(number) {
                *self.calls.entry(*number).or_default() += all as f64 / taken as f64;
            }
        }
        all
    }

    /// Finds the functions of addresses that are new.
    fn name(&mut self, addresses: impl Iterator<Item = u64>) {
        let mut new: Vec<u64> = addresses.filter(|a| !self.functions.contains_key(a)).collect();
        new.sort_unstable();
        new.dedup();
        new.truncate(MOST.saturating_sub(self.functions.len()));
        // The kernel's addresses are in the upper half, on all processors of 64 bits.
        let kernels = new.split_off(new.partition_point(|address| *address < 1 << 63));
        let pid = self.pid.and_then(NonZeroU32::new).map_or(Pid::Slf, Pid::Pid);
        let mut process = Process::new(pid);
        // A file of the process's names for its code would be read whatever it is.
        (process.debug_syms, process.perf_map) = (false, false);
        let named = self.symbolize(&Source::Process(process), &new);
        let kernel = Kernel { debug_syms: false, ..Kernel::default() };
        let of_kernel = self.symbolize(&Source::Kernel(kernel), &kernels);
        let maps = if new.is_empty() { Maps::default() } else { Maps::read(self.pid) };
        let users = new.into_iter().zip(named).map(|(address, name)| {
            let module = maps.name(address).map(str::to_string);
            (address, Rc::new(Function { name, module }))
        });
        let kernels = kernels.into_iter().zip(of_kernel).map(|(address, name)| {
            (address, Rc::new(Function { name, module: Some(KERNEL.into()) }))
        });
        self.functions.extend(users.chain(kernels));
    }

    /// The names of functions by their addresses.
    fn symbolize(&self, source: &Source<'_>, addresses: &[u64]) -> Vec<String> {
        let found = match addresses {
            [] => Vec::new(),
            _ => self.symbolizer.symbolize(source, Input::AbsAddr(addresses)).unwrap_or_default(),
        };
        let names = found.into_iter().map(|symbol| match symbol {
            Symbolized::Sym(symbol) => printable(&symbol.name),
            Symbolized::Unknown(_) => UNKNOWN.into(),
        });
        names.chain(std::iter::repeat(UNKNOWN.into())).take(addresses.len()).collect()
    }

    /// The functions, those first that took most.
    pub(super) fn functions(&self) -> Vec<CodeShare> {
        let mut counts: HashMap<&Function, u64> = HashMap::new();
        for (stack, count) in &self.stacks {
            if let Some(leaf) = stack.last() {
                *counts.entry(leaf).or_default() += count;
            }
        }
        let share = |(function, samples): (&Function, u64)| CodeShare {
            function: function.name.clone(),
            module: function.module.clone(),
            samples,
            share: samples as f64 / self.samples.max(1) as f64,
        };
        let mut shares: Vec<CodeShare> = counts.into_iter().map(share).collect();
        shares.sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.function.cmp(&b.function)));
        shares
    }

    /// The system calls, the most frequent first.
    pub(super) fn calls(&self) -> Vec<CallCount> {
        let name = |number: u64| {
            let known = usize::try_from(number).ok().and_then(Sysno::new);
            known.map_or_else(|| format!("number {number}"), |call| call.name().to_string())
        };
        let count = |(&number, &count): (&u64, &f64)| CallCount { name: name(number), count };
        let mut calls: Vec<CallCount> = self.calls.iter().map(count).collect();
        calls.sort_by(|a, b| b.count.total_cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
        calls
    }

    /// The stacks as a flame graph of so much time.
    pub(super) fn flame(&self, name: &str, time: f64) -> Frame {
        let mut whole = Frame { name: name.into(), own: 0.0, parts: Vec::new() };
        for (stack, count) in &self.stacks {
            let mut frame = &mut whole;
            for function in stack {
                let known = frame.parts.iter().position(|part| part.name == function.name);
                let at = known.unwrap_or_else(|| {
                    let name = function.name.clone();
                    frame.parts.push(Frame { name, own: 0.0, parts: Vec::new() });
                    frame.parts.len() - 1
                });
                frame = &mut frame.parts[at];
            }
            frame.own += time * *count as f64 / self.samples.max(1) as f64;
        }
        sort(&mut whole);
        whole
    }

    /// What a reader must know of them.
    pub(super) fn remarks(&self) -> Vec<String> {
        let lost = (self.lost > 0).then(|| {
            format!("{} samples of functions were lost: there were too many", grouped(self.lost))
        });
        let estimated = (self.unnamed > 0).then(|| {
            format!(
                "there were too many system calls: names of {} are estimated by the others",
                grouped(self.unnamed)
            )
        });
        lost.into_iter().chain(estimated).collect()
    }
}

const UNKNOWN: &str = "[unknown]";
const KERNEL: &str = "[kernel]";

/// Orders parts by their names, so that what is alike looks alike.
fn sort(frame: &mut Frame) {
    frame.parts.sort_by(|a, b| a.name.cmp(&b.name));
    frame.parts.iter_mut().for_each(sort);
}

/// Functions as a table; nothing if there are none.
pub(super) fn render_functions(shares: &[CodeShare], of: &str) -> String {
    let mut table = Table::new([&format!("functions{of}") as &str, "in", "share", "samples"]);
    for share in shares.iter().take(ROWS) {
        table.row([
            share.function.clone(),
            share.module.clone().unwrap_or_default(),
            format!("{:.1} %", 100.0 * share.share),
            grouped(share.samples),
        ]);
    }
    let rest = shares.get(ROWS..).unwrap_or_default();
    if !rest.is_empty() {
        let share: f64 = rest.iter().map(|share| share.share).sum();
        let samples = rest.iter().map(|share| share.samples).sum();
        let others = format!("{} others", grouped(rest.len() as u64));
        table.row([others, String::new(), format!("{:.1} %", 100.0 * share), grouped(samples)]);
    }
    if shares.is_empty() { String::new() } else { format!("\n{}", table.render()) }
}

/// System calls as a table; nothing if there are none.
pub(super) fn render_calls(calls: &[CallCount], seconds: f64, of: &str) -> String {
    let mut table = Table::new([&format!("system calls{of}") as &str, "a second"]);
    for call in calls.iter().take(ROWS) {
        table.row([call.name.clone(), format!("{:.1}", call.count / seconds)]);
    }
    if calls.is_empty() { String::new() } else { format!("\n{}", table.render()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str) -> Rc<Function> {
        Rc::new(Function { name: name.into(), module: None })
    }

    fn sampled(stacks: &[(&[&str], u64)]) -> Sampled {
        let mut sampled = Sampled::new(None, &Rc::default());
        for (stack, count) in stacks {
            let stack = stack.iter().map(|name| function(name)).collect();
            *sampled.stacks.entry(stack).or_default() += count;
            sampled.samples += count;
        }
        sampled
    }

    #[test]
    fn functions_have_the_samples_that_found_a_thread_in_them() {
        let sampled = sampled(&[(&["main", "a"], 3), (&["main", "a", "b"], 6), (&["b"], 1)]);
        let shares = sampled.functions();
        let found: Vec<_> = shares.iter().map(|s| (s.function.as_str(), s.samples)).collect();
        assert_eq!(found, [("b", 7), ("a", 3)]);
        assert_eq!(shares[0].share, 0.7);
        let flame = sampled.flame("all", 100.0);
        let main = flame.parts.iter().find(|part| part.name == "main").unwrap();
        assert!((flame.total() - 100.0).abs() < 1e-9 && (main.total() - 90.0).abs() < 1e-9);
        assert!((main.parts[0].own - 30.0).abs() < 1e-9, "{main:?}");
    }

    #[test]
    fn names_that_a_process_gives_its_code_are_not_read() {
        let pid = std::process::id();
        let file = std::path::PathBuf::from(format!("/tmp/perf-{pid}.map"));
        // So large that it has a mapping of its own, without a name.
        let code = vec![1u8; 1 << 22];
        let address = code.as_ptr() as u64 + (1 << 21);
        let own = Sampled::new as *const () as u64;
        std::fs::write(&file, format!("{:x} 1000 planted\n", address - 16)).unwrap();
        let mut sampled = Sampled::new(Some(pid), &Rc::default());
        sampled.name([address, own].into_iter());
        std::fs::remove_file(&file).unwrap();
        let names = [address, own].map(|address| sampled.functions[&address].name.as_str());
        assert!(names[0] == UNKNOWN && names[1].contains("Sampled"), "{names:?}");
        assert!(sampled.functions[&own].module.as_ref().unwrap().contains("bench"));
    }

    #[test]
    fn names_of_system_calls_add_up_to_all_that_were_made() {
        let mut sampled = sampled(&[]);
        // None was lost; one that was made meanwhile; three for each that is known.
        assert_eq!(sampled.add_calls(&[1, 1, 2], 3), 3);
        assert_eq!((sampled.add_calls(&[], 1), sampled.add_calls(&[2, 2], 1)), (0, 2));
        assert!(sampled.remarks().is_empty());
        assert_eq!(sampled.add_calls(&[1, 2], 6), 6);
        let counts: Vec<f64> = sampled.calls().iter().map(|call| call.count).collect();
        assert_eq!(counts, [6.0, 5.0]);
        assert!(sampled.remarks()[0].contains("names of 4 are estimated"));
    }

    #[test]
    fn a_threads_own_system_calls_are_all_counted() {
        let mut samplers = ThreadSamplers::start(None, true);
        for _ in 0..300 {
            std::hint::black_box(rustix::process::getppid());
        }
        samplers.run(false);
        let mut sampled = Sampled::new(None, &Rc::default());
        sampled.collect(&mut samplers);
        let calls = sampled.calls();
        let count = calls.iter().find(|call| call.name == "getppid").map(|call| call.count);
        // Where it is not permitted, that is said.
        let is_missing = samplers.missing.iter().any(|why| why.contains("names of system calls"));
        assert!(is_missing || count == Some(300.0), "{calls:?} {:?}", samplers.missing);
    }

    #[test]
    fn system_calls_have_names() {
        let mut sampled = sampled(&[]);
        sampled.calls.insert(Sysno::getppid.id() as u64, 12.0);
        sampled.calls.insert(1 << 40, 30.0);
        let calls = sampled.calls();
        assert_eq!(calls[0], CallCount { name: "number 1099511627776".into(), count: 30.0 });
        assert_eq!(calls[1], CallCount { name: "getppid".into(), count: 12.0 });
        assert!(render_calls(&calls, 2.0, "").contains("6.0"));
    }
}
