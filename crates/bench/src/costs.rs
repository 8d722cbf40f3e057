//! Cost profiles: what parts of a chain cost a packet, with traffic that makes them slow and traffic that does not.

use std::sync::Arc;

use dataplane::ProgramUse;
use dataplane::clock::Time;
use dataplane::io::Generator;
use dataplane::latency::Of;
use engine::session::Path as Execution;
use ir::Model;
use ir::costs::{
    Cost, CostProfile, FunctionCost, IoCost, Line, Processor, ProgramCost, Sample, VERSION, digest,
};

use crate::machine::{Environment, Meter};
use crate::measure::{Failed, Lab, Request, Subject, Traffics, WARM};

/// A kind of traffic: its name, what is different about generated traffic, and how many flows it has then.
struct Kind {
    name: &'static str,
    change: fn(&mut Generator),
    flows: Option<f64>,
}

/// Packets of generated traffic; with as many flows, each is of a flow that was not there before for as long as flows
/// are remembered.
const PACKETS: u64 = 1 << 18;

const KINDS: [Kind; 6] = [
    Kind { name: "as given", change: |_| (), flows: None },
    Kind { name: "1 flow", change: |g| flows(g, 1, 0.0), flows: Some(1.0) },
    Kind { name: "10,000 flows", change: |g| flows(g, 10_000, 0.0), flows: Some(1e4) },
    Kind { name: "100,000 flows", change: |g| flows(g, 100_000, 0.0), flows: Some(1e5) },
    Kind { name: "100,000 flows, Zipf 1.1", change: |g| flows(g, 100_000, 1.1), flows: None },
    Kind { name: "frames of 1,518 bytes", change: |g| g.sizes = vec![1514], flows: None },
];

fn flows(generator: &mut Generator, flows: u32, zipf: f64) {
    (generator.flows, generator.zipf, generator.count) = (flows, zipf, PACKETS);
}

const METHOD: &str = "In memory, on one core, in bursts of 32 at full load. Network functions and programs: time of sampled \
    bursts by the thread's clock, divided by their packets; programs run wherever there are any. Input and output: CPU time \
    of a packet that is copied in and out without a chain.";

/// Measures what the parts of a chain cost. Where its sources are generated, with several kinds of traffic.
///
/// # Errors
/// As [`measure`](crate::measure()), or that the machine's cycle counter does not run evenly.
pub fn measure_costs(
    request: &Request<'_>,
    (time, meter): (&Arc<dyn Time>, &dyn Meter),
    environment: Environment,
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<CostProfile, Failed> {
    let frequency = meter.frequency().ok_or_else(|| {
        Failed::Message(
            "costs are in cycles: this machine's time stamp counter does not run evenly".into(),
        )
    })?;
    let lab = Lab::new(request, (&**time, meter), is_stopped);
    let (mut functions, mut programs) = (Costs::default(), Costs::default());
    let (mut io, mut traffic, mut digests) = (Vec::new(), Vec::new(), Vec::new());
    for kind in &KINDS {
        progress(&format!("measuring costs with traffic {}", kind.name));
        let mut library = Traffics::new(request, &kind.change);
        let mut sample = |path: Execution, kinds: &[Of]| -> Result<_, Failed> {
            let mut subject = Subject::load(request, path, time, &mut library)?;
            subject.router.set_program_use(ProgramUse::Always);
            subject.saturate(WARM, is_stopped)?;
            Ok((lab.shares(&mut subject, kinds, request.effort)?, subject))
        };
        let (shares, _) = sample(Execution::Native, &[Of::Function, Of::Element])?;
        shares.iter().for_each(|share| functions.add(kind, share, frequency));
        let (shares, mut subject) = sample(Execution::Synthesised, &[Of::Program])?;
        shares.iter().for_each(|share| programs.add(kind, share, frequency));
        if traffic.is_empty() {
            digests = digests_of(&mut subject);
        }
        let mut bare = Subject::bare(request, time, &library)?;
        bare.saturate(WARM, is_stopped)?;
        let (nanoseconds, _) = lab.round(&mut bare, WARM)?;
        let cycles = nanoseconds * frequency / 1e9;
        io.push(Sample { traffic: kind.name.into(), cycles, packets: WARM });
        traffic.push(kind.name.to_string());
        // A capture is what it is.
        if library.captured().is_some() {
            break;
        }
    }
    let functions = functions.0.into_iter().filter_map(|(name, samples)| {
        let flows = |sample: &Sample| KINDS.iter().find(|kind| kind.name == sample.traffic)?.flows;
        let points: Vec<_> =
            samples.iter().filter_map(|sample| Some((flows(sample)?, sample.cycles))).collect();
        Some(FunctionCost { name, cost: Cost::of(samples)?, per_flow: Line::through(&points) })
    });
    let programs = programs.0.into_iter().filter_map(|(entry, samples)| {
        let (_, program) = digests.iter().find(|(name, _)| *name == entry)?;
        Some(ProgramCost { program: program.clone(), entry, cost: Cost::of(samples)? })
    });
    let io = Cost::of(io).map(|cost| IoCost { device: "memory".into(), cost });
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
        method: METHOD.into(),
        traffic,
        functions: functions.collect(),
        programs: programs.collect(),
        io: io.into_iter().collect(),
        hand_off: None,
    })
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

/// The names of programs' entries, and their digests.
fn digests_of(subject: &mut Subject) -> Vec<(String, String)> {
    let graph = &subject.chain.graph;
    let models: Vec<Model> = graph
        .nodes
        .iter()
        .map(|node| subject.router.element(&node.name).map(|e| e.model()).unwrap_or_default())
        .collect();
    let programs = compiler::synthesize(graph, &models).programs;
    let named = |program: &ir::Program| {
        (graph.nodes[program.entry.node].name.clone(), digest(program, graph))
    };
    programs.iter().map(named).collect()
}
