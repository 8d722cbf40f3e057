//! Cost profiles: what parts of a chain cost a packet, with traffic that makes them slow and traffic that does not.

use std::collections::BTreeSet;
use std::sync::Arc;

use dataplane::ProgramUse;
use dataplane::clock::Time;
use dataplane::io::{Generator, Mix, Protocol, RuleList as Rules};
use dataplane::latency::Of;
use engine::session::Path as Execution;
use ir::Model;
use ir::costs::{
    Cost, CostProfile, FunctionCost, IoCost, LinearCost, Processor, ProgramCost, Sample, VERSION,
    digest,
};
use ir::program::Step;

use crate::cores::beside_workers;
use crate::hand_off::measure_hand_off;
use crate::live::{self, Live};
use crate::machine::{Environment, Meter};
use crate::measure::{Failed, Gauges, Request, Subject, Traffics, WARM};
use crate::rule_list::RuleList;

/// A kind of traffic: its name, what is different about generated traffic, and how many flows it has then.
struct Kind {
    name: &'static str,
    change: fn(&mut Generator),
    flows: Flows,
}

/// How many flows traffic has.
#[derive(Clone, Copy, PartialEq)]
enum Flows {
    /// Any number.
    Any,
    /// So many, with equal shares of the packets.
    Equal(f64),
    /// Each packet is the first of its flow: they are offered once.
    New,
}

/// Packets of generated traffic: as many as are kept.
const PACKETS: u64 = 1 << 18;
/// Of packets of new flows, those before costs are taken.
const NEW_WARM: u64 = PACKETS / 4;

const KINDS: [Kind; 8] = [
    Kind { name: "as given", change: |_| (), flows: Flows::Any },
    Kind { name: "1 flow", change: |g| flows(g, 1, 0.0), flows: Flows::Equal(1.0) },
    Kind { name: "10,000 flows", change: |g| flows(g, 10_000, 0.0), flows: Flows::Equal(1e4) },
    Kind { name: "100,000 flows", change: |g| flows(g, 100_000, 0.0), flows: Flows::Equal(1e5) },
    Kind { name: "100,000 flows, Zipf 1.1", change: |g| flows(g, 100_000, 1.1), flows: Flows::Any },
    Kind { name: "new flows (SYN flood)", change: |g| attack(g, Mix::SynFlood), flows: Flows::New },
    Kind {
        name: "tuple space explosion",
        change: |g| attack(g, Mix::TupleSpace),
        flows: Flows::Any,
    },
    Kind { name: "frames of 1,518 bytes", change: |g| g.sizes = vec![1514], flows: Flows::Any },
];

fn flows(generator: &mut Generator, flows: u32, zipf: f64) {
    (generator.mix, generator.whales) = (Mix::Flows, 0);
    (generator.flows, generator.zipf, generator.count) = (flows, zipf, PACKETS);
}

/// An attack by TCP, of the IP version that the traffic has.
fn attack(generator: &mut Generator, mix: Mix) {
    let is_ipv4 =
        |protocol: &Protocol| matches!(protocol, Protocol::Udp | Protocol::Tcp | Protocol::Icmp);
    let protocol = match generator.protocols.iter().any(is_ipv4) {
        true => Protocol::Tcp,
        false => Protocol::Tcp6,
    };
    (generator.mix, generator.protocols, generator.count) = (mix, vec![protocol], PACKETS);
}

const METHOD: &str = "In bursts of 32 at full load. Cycles are time by the \
    frequency of the time stamp counter. Network functions and programs: time of sampled bursts by the monotonic clock, \
    divided by their packets; programs run wherever there are any. Packets of new flows \
    come once; all others over and over. Input and output: CPU time of a packet that is copied in and out without a chain. \
    Hand-off: two threads, each on its CPU, of which neither waits; cycles of a burst on each side less those of one that \
    stays on its core, median of 11 rounds. Cost per rule: the longest list of rules or routes of a function or program, cut to an \
    eighth, a quarter and a half.";

const OVER_INTERFACES: &str = " Input and output over interfaces: time of the rounds of a worker that had something to do, \
    divided by the packets that came in, median of 5 rounds, while the tester sends as fast as it can unless a rate is said; \
    waiting is left out. Receiving is a chain that discards; sending is what one takes more that sends.";

/// Measures what the parts of a chain cost. Where its sources are generated, with several kinds of traffic. `cpus` are those
/// that the process may use; on `others`, workers take packets through the chain while functions and programs are measured.
/// Input and output are also measured over the interfaces of `live`.
///
/// # Errors
/// As [`measure`](crate::measure()), or that the machine's cycle counter does not run evenly.
pub fn measure_costs(
    (request, live): (&Request<'_>, Option<&Live>),
    (time, meter): (&Arc<dyn Time>, &dyn Meter),
    (environment, cpus, others): (Environment, &[usize], &[usize]),
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<CostProfile, Failed> {
    let frequency = meter.frequency().ok_or_else(|| {
        Failed::Message(
            "costs are in cycles: this machine's time stamp counter does not run evenly".into(),
        )
    })?;
    let gauges = Gauges::new(request, (&**time, meter), is_stopped);
    let mut parts = || measure_parts(request, time, (&gauges, frequency), progress, is_stopped);
    let Parts { functions, programs, io, mut traffic } = match others {
        [] => parts()?,
        _ => beside_workers(request, others, time, parts)?,
    };
    let mut io: Vec<IoCost> = Cost::of(io)
        .map(|cost| IoCost {
            device: "memory".into(),
            driver: None,
            cost,
            receive: None,
            send: None,
        })
        .into_iter()
        .collect();
    progress("measuring a hand-off");
    let (mut hand_off, mut remarks) = (None, Vec::new());
    match (environment.cpu, environment.cpu.and_then(|own| other_cpu(cpus, own))) {
        (Some(own), Some(other)) => {
            hand_off = Some(measure_hand_off([other, own], meter, is_stopped)?);
        }
        _ => {
            remarks.push("the process has one CPU: the cost of a hand-off was not measured".into())
        }
    }
    if hand_off.is_some() && environment.is_virtual {
        remarks.push(
            "the CPUs are virtual: the cost of a hand-off depends on which cores the hypervisor runs them on".into(),
        );
    }
    let mut method = match others.len() {
        0 => "In memory, on one core. ".to_string(),
        1 => "In memory, on one core while another takes packets through the chain. ".into(),
        count => {
            format!("In memory, on one core while {count} others take packets through the chain. ")
        }
    } + METHOD;
    if let Some(live) = live {
        let found =
            live::measure_io(request, live, (time, meter), frequency, progress, is_stopped)?;
        io.extend(found.io);
        remarks.extend(found.remarks);
        remarks.extend(live::shared(request.chain, &live.cores, environment.cpu));
        let is_new = |name: &String| !traffic.contains(name);
        let new: Vec<String> = found.traffic.into_iter().filter(is_new).collect();
        traffic.extend(new);
        method += OVER_INTERFACES;
    }
    if environment.debug_build {
        remarks.push("this is a debug build: a release build costs several times less".into());
    }
    Ok(CostProfile {
        costs: VERSION,
        chain: request.chain.into(),
        processor: Processor {
            name: environment.processor,
            frequency,
            is_virtual: environment.is_virtual,
            kernel: environment.kernel,
        },
        unix_time: environment.unix_time,
        method,
        traffic,
        cores: 1 + others.len(),
        functions,
        programs,
        io,
        hand_off,
        hops: Vec::new(),
        capacity: None,
        remarks,
    })
}

/// What a chain consists of, and what it costs.
struct Parts {
    functions: Vec<FunctionCost>,
    programs: Vec<ProgramCost>,
    /// Input and output in memory.
    io: Vec<Sample>,
    /// The kinds of traffic.
    traffic: Vec<String>,
}

/// Measures functions and programs, with each kind of traffic and with fewer rules.
fn measure_parts(
    request: &Request<'_>,
    time: &Arc<dyn Time>,
    (gauges, frequency): (&Gauges<'_>, f64),
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<Parts, Failed> {
    let (mut functions, mut programs) = (Costs::default(), Costs::default());
    let (mut io, mut traffic, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for kind in &KINDS {
        progress(&format!("measuring costs with traffic {}", kind.name));
        let mut library = Traffics::new(request, &kind.change);
        let mut sample = |path: Execution, kinds: &[Of]| -> Result<_, Failed> {
            let mut subject = Subject::load(request, path, time, &mut library)?;
            subject.router.programs().set_use(ProgramUse::Always);
            let shares = match kind.flows {
                Flows::New => {
                    subject.saturate(NEW_WARM, is_stopped)?;
                    gauges.shares_of(&mut subject, kinds, PACKETS - NEW_WARM)?
                }
                Flows::Any | Flows::Equal(_) => {
                    subject.saturate(WARM, is_stopped)?;
                    gauges.shares(&mut subject, kinds)?
                }
            };
            Ok((shares, subject))
        };
        let (shares, _) = sample(Execution::Native, &[Of::Function, Of::Element])?;
        shares.iter().for_each(|share| functions.add(kind, share, frequency));
        let (shares, mut subject) = sample(Execution::Synthesised, &[Of::Program])?;
        shares.iter().for_each(|share| programs.add(kind, share, frequency));
        if traffic.is_empty() {
            made = programs_of(&mut subject);
        }
        let mut bare = Subject::bare(request, time, &library)?;
        bare.saturate(WARM, is_stopped)?;
        let nanoseconds = gauges.round(&mut bare, WARM)?;
        let cycles = nanoseconds * frequency / 1e9;
        io.push(Sample { traffic: kind.name.into(), cycles, packets: WARM });
        traffic.push(kind.name.to_string());
        // A capture is what it is.
        if library.captured().is_some() {
            break;
        }
    }
    let (mut function_costs, mut program_costs) = (Vec::new(), Vec::new());
    for (name, mut samples) in functions.0 {
        progress(&format!("measuring {name} with fewer rules"));
        let per_flow = per_flow(&samples);
        let list =
            over_rules(Part::Function(&name), request, time, (gauges, frequency), is_stopped)?;
        let (rules, per_rule) = samples_of_list(list, &mut samples);
        function_costs.extend(Cost::of(samples).map(|cost| FunctionCost {
            name,
            cost,
            per_flow,
            rules,
            per_rule,
        }));
    }
    for (entry, mut samples) in programs.0 {
        let Some(program) = made.iter().find(|program| program.entry == entry) else { continue };
        progress(&format!("measuring the program at {entry} with fewer rules"));
        let list =
            over_rules(Part::Program(program), request, time, (gauges, frequency), is_stopped)?;
        let (rules, per_rule) = samples_of_list(list, &mut samples);
        program_costs.extend(Cost::of(samples).map(|cost| ProgramCost {
            program: program.digest.clone(),
            entry,
            cost,
            rules,
            per_rule,
        }));
    }
    let mut costs =
        function_costs.iter().map(|f| &f.cost).chain(program_costs.iter().map(|p| &p.cost));
    if costs.any(|cost| cost.samples.iter().any(|sample| sample.traffic == EACH_RULE)) {
        traffic.push(EACH_RULE.into());
    }
    Ok(Parts { functions: function_costs, programs: program_costs, io, traffic })
}

/// The name of traffic whose packets are drawn for the rules of a function's list.
const EACH_RULE: &str = "packets for each rule";
/// Packets that are drawn for a list, at the least.
const DRAWN: usize = 10_000;
/// Of a list, these parts stay.
const DIVISORS: [usize; 4] = [8, 4, 2, 1];

/// What a function costs over the length of its longest list.
struct OverRules {
    rules: u64,
    /// Cycles by number of rules: with traffic as given, and with packets for each rule.
    points: [Vec<(f64, f64)>; 2],
    /// With packets for each rule, the whole list.
    each: Option<Sample>,
}

/// A part of a chain whose list is cut.
#[derive(Clone, Copy)]
enum Part<'a> {
    /// A network function or an element by its name, element by element.
    Function(&'a str),
    Program(&'a MadeProgram),
}

impl Part<'_> {
    /// Its name among those of what was timed.
    fn name(&self) -> &str {
        match self {
            Self::Function(name) => name,
            Self::Program(program) => &program.entry,
        }
    }

    fn kinds(&self) -> &'static [Of] {
        match self {
            Self::Function(_) => &[Of::Function, Of::Element],
            Self::Program(_) => &[Of::Program],
        }
    }

    fn execution(&self) -> Execution {
        match self {
            Self::Function(_) => Execution::Native,
            Self::Program(_) => Execution::Synthesised,
        }
    }

    /// Whether an element belongs to it.
    fn has(&self, element: &str) -> bool {
        match self {
            Self::Function(name) => element
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            Self::Program(program) => program.elements.iter().any(|of| of == element),
        }
    }
}

/// How long a list is, and what its length costs; adds the sample with packets for each of its rules.
fn samples_of_list(
    list: Option<OverRules>,
    samples: &mut Vec<Sample>,
) -> (Option<u64>, Option<LinearCost>) {
    let Some(list) = list else { return (None, None) };
    samples.extend(list.each);
    (Some(list.rules), steepest(&list.points))
}

/// Cuts the longest list of a part; nothing if it has none that can be cut.
fn over_rules(
    part: Part<'_>,
    request: &Request<'_>,
    time: &Arc<dyn Time>,
    (gauges, frequency): (&Gauges<'_>, f64),
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<OverRules>, Failed> {
    let load = |change: &dyn Fn(&mut Generator)| -> Result<_, Failed> {
        let mut library = Traffics::new(request, change);
        let mut subject = Subject::load(request, part.execution(), time, &mut library)?;
        subject.router.programs().set_use(ProgramUse::Always);
        Ok((subject, library.captured().is_none()))
    };
    let (mut subject, is_generated) = load(&|_| ())?;
    let nodes = &subject.chain.graph.nodes;
    let elements: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let own = elements.iter().filter(|element| part.has(element));
    let Some(list) = RuleList::longest_of(own, &mut subject.router) else {
        return Ok(None);
    };
    drop(subject);
    let mut found =
        OverRules { rules: list.count() as u64, points: Default::default(), each: None };
    for (for_each, points) in [false, true].into_iter().zip(&mut found.points) {
        for divisor in DIVISORS {
            let count = list.count() / divisor;
            let rules: Option<Arc<str>> = match for_each {
                true => list.rules(count).filter(|_| is_generated).map(Arc::from),
                false => None,
            };
            if for_each && rules.is_none() {
                break;
            }
            let (mut subject, _) = load(&|generator| {
                if let Some(rules) = &rules {
                    draw(generator, rules, count);
                }
            })?;
            if divisor > 1 && list.cut(count, &mut subject.router).is_err() {
                break;
            }
            subject.saturate(WARM, is_stopped)?;
            let shares = gauges.shares(&mut subject, part.kinds())?;
            let Some(share) = shares.iter().find(|share| share.name == part.name()) else { break };
            let cycles = share.time * frequency / 1e9;
            points.push((count as f64, cycles));
            if for_each && divisor == 1 {
                let traffic = EACH_RULE.into();
                found.each = Some(Sample { traffic, cycles, packets: share.packets });
            }
        }
    }
    Ok(Some(found))
}

/// Packets for each rule of a list.
fn draw(generator: &mut Generator, rules: &Arc<str>, count: usize) {
    let packets = count.max(DRAWN).min(PACKETS as usize) as u32;
    (generator.mix, generator.rules) = (Mix::Rules, Rules::Text(Arc::clone(rules)));
    generator.protocols = vec![Protocol::Tcp];
    (generator.flows, generator.count) = (packets, packets.into());
}

/// Of the lines through points with several kinds of traffic, the one with which costs grow most.
fn steepest(points: &[Vec<(f64, f64)>]) -> Option<LinearCost> {
    let lines = points.iter().filter_map(|points| LinearCost::through(points));
    lines.max_by(|a, b| a.slope.total_cmp(&b.slope))
}

/// The CPU that packets are handed from to this one: the last of the others.
fn other_cpu(cpus: &[usize], own: usize) -> Option<usize> {
    cpus.iter().copied().rfind(|&cpu| cpu != own)
}

/// The cost over the number of flows, where that is a line.
fn per_flow(samples: &[Sample]) -> Option<LinearCost> {
    let flows = |sample: &Sample| match KINDS.iter().find(|kind| kind.name == sample.traffic)?.flows
    {
        Flows::Equal(flows) => Some(flows),
        Flows::Any | Flows::New => None,
    };
    let points: Vec<_> =
        samples.iter().filter_map(|sample| Some((flows(sample)?, sample.cycles))).collect();
    LinearCost::through(&points)
}

/// Samples by the names of what they are of, in the order in which they came first.
#[derive(Default)]
struct Costs(Vec<(String, Vec<Sample>)>);

impl Costs {
    fn add(&mut self, kind: &Kind, share: &crate::report::Share, frequency: f64) {
        let cycles = share.time * frequency / 1e9;
        let sample = Sample { traffic: kind.name.into(), cycles, packets: share.packets };
        match self.0.iter_mut().find(|(name, _)| *name == share.name) {
            Some((_, samples)) => samples.push(sample),
            None => self.0.push((share.name.clone(), vec![sample])),
        }
    }
}

/// A program that a chain becomes.
struct MadeProgram {
    entry: String,
    digest: String,
    /// The elements on its paths.
    elements: Vec<String>,
}

fn programs_of(subject: &mut Subject) -> Vec<MadeProgram> {
    let graph = &subject.chain.graph;
    let models: Vec<Model> = graph
        .nodes
        .iter()
        .map(|node| subject.router.element(&node.name).map(|e| e.model()).unwrap_or_default())
        .collect();
    let programs = compiler::synthesize(graph, &models).programs;
    let name = |node: usize| graph.nodes[node].name.clone();
    let made = |program: &ir::Program| {
        let exits = program.steps.iter().filter_map(|step| match step {
            Step::Exit(exit) => Some(exit),
            _ => None,
        });
        let nodes: BTreeSet<usize> =
            exits.flat_map(|exit| exit.visited.iter().map(|port| port.node)).collect();
        MadeProgram {
            entry: name(program.entry.node),
            digest: digest(program, graph),
            elements: nodes.into_iter().map(name).collect(),
        }
    };
    programs.iter().map(made).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use dataplane::io::{Binding, Bindings};
    use elements::device::DeviceRequest;
    use net::{Batch, Pool};

    use super::*;
    use crate::traffic::Frames;

    /// Samples of all kinds of traffic, of simulated cycles.
    fn samples(cycles: impl Fn(&Kind) -> f64) -> Vec<Sample> {
        let sample =
            |kind: &Kind| Sample { traffic: kind.name.into(), cycles: cycles(kind), packets: 32 };
        KINDS.iter().map(sample).collect()
    }

    #[test]
    fn lines_go_over_equal_flows_alone() {
        let cycles = |kind: &Kind| match kind.flows {
            Flows::Equal(flows) => 50.0 + 0.01 * flows,
            // What would spoil a line.
            Flows::Any | Flows::New => 7.0,
        };
        let line = per_flow(&samples(cycles)).unwrap();
        assert!((line.base - 50.0).abs() < 1e-6 && (line.slope - 0.01).abs() < 1e-9, "{line:?}");
        assert_eq!(per_flow(&samples(|_| 50.0)), None);
        assert_eq!(per_flow(&samples(|_| 50.0)[..1]), None, "a capture has one kind");
    }

    #[test]
    fn all_kinds_can_be_generated() {
        for given in ["gen:", "gen:mix=connections", "gen:proto=icmp6"] {
            for kind in &KINDS {
                let mut bindings = Bindings::default();
                let Ok(Binding::Generator(mut generator)) = Binding::source(given) else {
                    panic!("{given} is generated");
                };
                (kind.change)(&mut generator);
                generator.count = 3000;
                bindings.inputs.insert("in".into(), Binding::Generator(generator));
                let request = DeviceRequest::Interface { name: "in".into(), receive: true };
                let frames = Frames::of(&mut *bindings.open_device(&request).unwrap()).unwrap();
                let (mut batch, mut pool) = (Batch::new(), Pool::new());
                frames.append(0, frames.count(), &mut batch, &mut pool);
                let different: HashSet<&[u8]> = batch.iter().map(|packet| packet.data()).collect();
                match kind.flows {
                    Flows::Any => assert_eq!(frames.count(), 3000, "{given}, {}", kind.name),
                    Flows::Equal(flows) => assert_eq!(different.len(), flows.min(3e3) as usize),
                    Flows::New => assert_eq!(different.len(), 3000, "{given}"),
                }
            }
        }
    }

    #[test]
    fn the_traffic_with_which_rules_cost_most_counts() {
        let points = |base: f64, slope: f64| -> Vec<(f64, f64)> {
            DIVISORS
                .map(|divisor| 800.0 / divisor as f64)
                .map(|rules| (rules, base + slope * rules))
                .to_vec()
        };
        let line = steepest(&[points(90.0, 0.5), points(50.0, 2.0)]).unwrap();
        assert!((line.base - 50.0).abs() < 1e-6 && (line.slope - 2.0).abs() < 1e-9, "{line:?}");
        assert_eq!(steepest(&[points(90.0, 0.5), Vec::new()]).unwrap().slope, 0.5);
        // Even cost, and cost that leaps where the list gets another structure.
        let leap = vec![(100.0, 900.0), (200.0, 100.0), (400.0, 110.0), (800.0, 120.0)];
        assert_eq!(steepest(&[points(90.0, 0.0), leap]), None);
    }

    #[test]
    fn packets_are_handed_between_two_cpus() {
        assert_eq!(other_cpu(&[0, 2, 3], 3), Some(2));
        assert_eq!(other_cpu(&[0, 2, 3], 0), Some(3));
        assert_eq!(other_cpu(&[3], 3), None);
    }
}
