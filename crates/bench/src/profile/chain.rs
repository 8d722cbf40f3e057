//! A chain's profile: what a packet takes in memory, what of it the formula explains, and which network functions,
//! elements and programs take it.

use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use dataplane::ProgramUse;
use dataplane::clock::Time;
use dataplane::latency::Of;
use engine::session::Path as Execution;
use serde::{Deserialize, Serialize};
use view::flame::Frame;
use view::table::{Table, grouped};

use super::counters::{self, Count, Counters, Event, Missing};
use super::formula::{BySource, Decomposition, Source, decompose};
use super::sampling::{CodeShare, Sampled, ThreadSamplers, render_functions};
use super::{machine, process};
use crate::Machine;
use crate::machine::Environment;
use crate::measure::{Failed, Gauges, Request, Subject, Traffics, WARM};
use crate::report::{Cost, DISTURBED, Share, Traffic};

/// The version of the document's format.
pub const VERSION: u32 = 1;

/// A chain's profile. Times are nanoseconds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// The format's version.
    pub chain_profile: u32,
    /// The chain's file.
    pub chain: String,
    /// The network function that it is limited to.
    pub function: Option<String>,
    /// What it was measured on.
    pub environment: Environment,
    /// What came in.
    pub traffic: Vec<Traffic>,
    /// What a packet takes.
    pub cost: Cost,
    /// Packets while events were counted.
    pub packets: u64,
    /// Events of these packets.
    pub counts: Vec<Count>,
    /// What the formula says of a packet.
    pub decomposition: Decomposition,
    /// What the formula does not explain: computing, and events that were not counted. Less than nothing where accesses
    /// overlap.
    pub rest: f64,
    /// What network functions take element by element.
    pub functions: Vec<Share>,
    /// What elements take without programs.
    pub elements: Vec<Share>,
    /// What the programs take that the chain becomes.
    pub programs: Vec<Share>,
    /// The functions of the code that the thread was in, those first that took most; nothing of one network function.
    #[serde(default)]
    pub code: Vec<CodeShare>,
    /// What could not be counted.
    pub missing: Vec<Missing>,
    /// What a reader must know before he believes the figures.
    pub remarks: Vec<String>,
}

/// Profiles a chain in memory, on this thread; or one of its network functions.
///
/// # Errors
/// What is wrong with the chain, its traffic or the network function's name, or that it was stopped.
pub fn profile(
    request: &Request<'_>,
    function: Option<&str>,
    (time, machine): (&Arc<dyn Time>, &Machine),
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<Profile, Failed> {
    progress("reading the chain");
    let mut library = Traffics::new(request, &|_| ());
    let mut chain = Subject::load(request, Execution::Synthesised, time, &mut library)?;
    library.check(&chain)?;
    let traffic = library.described();
    let mut bare = Subject::bare(request, time, &library)?;
    let gauges = Gauges::new(request, (&**time, machine), is_stopped);

    progress("warming up");
    let frames = traffic.iter().map(|source| source.frames as u64).sum::<u64>();
    let warm = frames.max(WARM);
    chain.saturate(warm, is_stopped)?;
    bare.saturate(warm, is_stopped)?;

    progress("attributing time to network functions");
    let mut native = Subject::load(request, Execution::Native, time, &mut library)?;
    native.saturate(warm, is_stopped)?;
    let elements = gauges.shares(&mut native, &[Of::Element])?;
    let elements = of_function(elements, function)?;
    let functions = gauges.shares(&mut native, &[Of::Function])?;
    let functions: Vec<Share> =
        functions.into_iter().filter(|share| function.is_none_or(|f| f == share.name)).collect();
    // Programs are timed also where elements take less time.
    chain.router.programs().set_use(ProgramUse::Always);
    let programs = gauges.shares(&mut chain, &[Of::Program])?;
    chain.router.programs().set_use(ProgramUse::WhereFaster);
    let is_inside = |share: &Share| function.is_none_or(|f| belongs(&share.name) == Some(f));
    let programs = programs.into_iter().filter(is_inside).collect();

    progress("measuring what a packet costs");
    let cost = gauges.cost(&mut chain, &mut bare)?;

    progress("counting events");
    let wanted = (20.0 * request.effort.trial / 6.0 * 1e9 / cost.time.median.max(1.0)) as u64;
    let (packets, counts, missing) = count(&mut chain, wanted.max(1000), is_stopped)?;
    let mut remarks = library.remarks();
    let mut code = Vec::new();
    if function.is_none() {
        progress("sampling functions of the code");
        code = sample(&mut chain, wanted.max(1000), &mut remarks, is_stopped)?;
    }

    let costs = machine::measure(machine, &**time, false, progress, is_stopped)?;
    let events = BySource::per_packet(&[(counters::by_source(&counts), packets)]);
    let decomposition = decompose(&events, &costs.costs());
    let rest = cost.time.median - decomposition.total;
    let mut profile = Profile {
        chain_profile: VERSION,
        chain: request.chain.to_string(),
        function: function.map(str::to_string),
        environment: machine.environment(),
        traffic,
        cost,
        packets,
        counts,
        decomposition,
        rest,
        functions,
        elements,
        programs,
        code,
        missing,
        remarks,
    };
    profile.remark();
    Ok(profile)
}

/// Counts events while packets go through the chain.
fn count(
    chain: &mut Subject,
    packets: u64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(u64, Vec<Count>, Vec<Missing>), Failed> {
    let mut counters = Counters::open(None);
    let before = process::own_switches();
    counters.start();
    let moved = chain.saturate(packets, is_stopped)?;
    counters.stop();
    let switches = before.zip(process::own_switches()).map(|(a, b)| b.saturating_sub(a));
    let mut counts = counters.read();
    let mut missing = counters.missing;
    let is_counted = counts.iter().any(|count| count.event == Event::ContextSwitches);
    // The kernel tells a thread of its own, without any right.
    if let Some(switches) = switches.filter(|_| !is_counted) {
        counts.push(Count { event: Event::ContextSwitches, count: switches as f64 });
        missing.retain(|missing| missing.event != Event::ContextSwitches);
    }
    Ok((moved, counts, missing))
}

/// Parts that packets are sampled in: samples of each wait in a ring.
const PARTS: u64 = 40;

/// Samples the code while packets go through the chain.
fn sample(
    chain: &mut Subject,
    packets: u64,
    remarks: &mut Vec<String>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Vec<CodeShare>, Failed> {
    let mut samplers = ThreadSamplers::start(None, false);
    let mut sampled = Sampled::new(None, &Rc::default());
    for _ in 0..PARTS {
        samplers.run(true);
        chain.saturate(packets.div_ceil(PARTS), is_stopped)?;
        samplers.run(false);
        sampled.collect(&mut samplers);
    }
    remarks.append(&mut samplers.missing);
    remarks.extend(sampled.remarks());
    Ok(sampled.functions())
}

/// The network function that an element belongs to.
fn belongs(element: &str) -> Option<&str> {
    element.split_once('/').map(|(function, _)| function)
}

/// The elements of a network function, or all.
fn of_function(elements: Vec<Share>, function: Option<&str>) -> Result<Vec<Share>, Failed> {
    let Some(function) = function else { return Ok(elements) };
    let mut known: Vec<&str> = elements.iter().filter_map(|e| belongs(&e.name)).collect();
    known.sort_unstable();
    known.dedup();
    if !known.contains(&function) {
        let which = match known.is_empty() {
            true => "the chain has none that packets came to".into(),
            false => format!("packets came to {}", known.join(", ")),
        };
        return Err(Failed::Message(format!("no network function '{function}': {which}")));
    }
    Ok(elements.into_iter().filter(|e| belongs(&e.name) == Some(function)).collect())
}

/// Nanoseconds that were timed in a part, all its packets together.
fn spent(share: &Share) -> f64 {
    share.time * share.packets as f64
}

impl Profile {
    fn remark(&mut self) {
        if self.cost.disturbed > DISTURBED {
            self.remarks.push(format!(
                "the machine was busy: {:.0} % of the CPU's time went elsewhere; measure again when it is quiet",
                100.0 * self.cost.disturbed
            ));
        }
        if self.environment.debug_build {
            self.remarks.push(
                "this is a debug build: figures of a release build are several times better".into(),
            );
        }
    }

    /// The elements as a flame graph: the chain, its network functions, their elements; in nanoseconds per packet.
    pub fn flame(&self) -> Frame {
        // Elements that were timed together saw the same packets of the chain: the first sees all of them.
        let packets = self.elements.iter().map(|share| share.packets).max().unwrap_or(1).max(1);
        let mut whole = Frame { name: self.chain.clone(), own: 0.0, parts: Vec::new() };
        for share in &self.elements {
            let own = spent(share) / packets as f64;
            let leaf = |name: &str| Frame { name: name.into(), own, parts: Vec::new() };
            match share.name.split_once('/') {
                None => whole.parts.push(leaf(&share.name)),
                Some((function, element)) => {
                    let known = whole.parts.iter_mut().find(|part| part.name == function);
                    match known {
                        Some(known) => known.parts.push(leaf(element)),
                        None => whole.parts.push(Frame {
                            name: function.into(),
                            own: 0.0,
                            parts: vec![leaf(element)],
                        }),
                    }
                }
            }
        }
        whole
    }

    /// As tables.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let of = self.function.as_ref().map_or_else(String::new, |f| format!(", function {f}"));
        let _ = writeln!(out, "{}{of}: in memory, one core, no network card", self.chain);
        let _ = writeln!(out, "machine: {}", machine::describe(&self.environment));
        for source in &self.traffic {
            let _ = writeln!(out, "traffic: {}", source.describe());
        }
        let (low, high) = self.cost.time.confidence;
        let _ = writeln!(
            out,
            "\n{:.1} ns per packet ({low:.1}–{high:.1}); {:.1} ns of it without the chain\n",
            self.cost.time.median, self.cost.bare.median
        );
        self.render_decomposition(&mut out);
        let lists = [
            ("network functions", &self.functions),
            ("elements", &self.elements),
            ("as programs", &self.programs),
        ];
        for (title, shares) in lists.into_iter().filter(|(_, shares)| !shares.is_empty()) {
            let mut table = Table::new([title, "share", "ns per packet", "packets timed"]);
            let all: f64 = shares.iter().map(spent).sum();
            for share in shares {
                let part = if all > 0.0 { 100.0 * spent(share) / all } else { 0.0 };
                table.row([
                    share.name.clone(),
                    format!("{part:.1} %"),
                    format!("{:.1}", share.time),
                    grouped(share.packets),
                ]);
            }
            let _ = write!(out, "\n{}", table.render());
        }
        out += &render_functions(&self.code, " of the code");
        let reasons = counters::reasons(&self.missing);
        if !reasons.is_empty() || !self.remarks.is_empty() {
            out.push('\n');
        }
        for remark in reasons.iter().chain(&self.remarks) {
            let _ = writeln!(out, "! {remark}");
        }
        out
    }

    fn render_decomposition(&self, out: &mut String) {
        let mut table =
            Table::new(["source", "events per packet", "ns each", "ns per packet", "share"]);
        let whole = self.cost.time.median;
        let share = |time: f64| format!("{:.1} %", 100.0 * time / whole);
        let number = |n: Option<f64>, digits: usize| {
            n.map_or_else(|| "-".into(), |n| format!("{n:.digits$}"))
        };
        for term in &self.decomposition.terms {
            let digits = if matches!(term.source, Source::ContextSwitch | Source::SystemCall) {
                5
            } else {
                2
            };
            table.row([
                term.source.title().into(),
                number(term.count, digits),
                number(term.cost, 1),
                number(term.time, 1),
                term.time.map_or_else(|| "-".into(), share),
            ]);
        }
        let name = if self.decomposition.is_complete() {
            "computing"
        } else {
            "computing, and what was not counted"
        };
        table.row([
            name.into(),
            String::new(),
            String::new(),
            format!("{:.1}", self.rest),
            share(self.rest),
        ]);
        out.push_str(&table.render());
        let counted: Vec<String> = self
            .counts
            .iter()
            .map(|count| {
                format!("{} {:.3}", count.event.title(), count.count / self.packets.max(1) as f64)
            })
            .collect();
        let packets = grouped(self.packets);
        let _ =
            writeln!(out, "\ncounted over {packets} packets, per packet: {}", counted.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(name: &str, time: f64, packets: u64) -> Share {
        Share { name: name.into(), time, packets }
    }

    #[test]
    fn a_functions_elements_are_chosen_by_name() {
        let all = || vec![share("in", 1.0, 10), share("fw/a", 2.0, 10), share("nat/b", 3.0, 10)];
        assert_eq!(of_function(all(), None).unwrap(), all());
        assert_eq!(of_function(all(), Some("fw")).unwrap(), [share("fw/a", 2.0, 10)]);
        let refused = |elements, name| match of_function(elements, Some(name)) {
            Err(Failed::Message(why)) => why,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused(all(), "in"), "no network function 'in': packets came to fw, nat");
        assert!(
            refused(vec![share("in", 1.0, 1)], "fw")
                .ends_with("the chain has none that packets came to")
        );
    }
}
