//! The course of a measurement.

mod subject;

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use dataplane::ProgramUse;
use dataplane::clock::Time;
use dataplane::io::{Binding, Generator};
use dataplane::latency::Of;
use engine::Findings;
use engine::session::Path as Execution;
use hdrhistogram::Histogram;
use ir::has_errors;

use crate::arrivals::Arrivals;
use crate::live::Peer;
use crate::machine::{Clock, Environment, Meter};
use crate::memory::{Ended, Offered};
use crate::report::{
    self, AtSize, Cost, DISTURBED, Latency, PeerReport, Percentiles, Report, Share, Throughput,
    VERSION, count_disturbed, distribution, mean,
};
use crate::search::{Goal, Range, Trial, best_of, search};
use crate::statistics::{Samples, mpps};

pub(crate) use subject::{Subject, Traffics, mean_size};

/// What is to be measured.
pub struct Request<'a> {
    /// The chain's file; `-` is the standard input.
    pub chain: &'a str,
    /// Values of its variables.
    pub variables: Vec<(String, String)>,
    /// What `FromDevice(NAME)` reads. Where there is none of a name, it replaces the element of the name.
    pub inputs: HashMap<String, Binding>,
    /// Other names of interfaces, which also replace elements.
    pub devices: Vec<String>,
    /// What an input reads where nothing is said; generated traffic if nothing is said here either.
    pub traffic: Option<Binding>,
    /// Seed of the chain's random choices, and of arrivals.
    pub seed: u64,
    /// Sizes of generated frames that the throughput is found for besides.
    pub sizes: Vec<Size>,
    /// Who is compared.
    pub peers: Vec<Peer>,
    /// How packets arrive while latencies are taken. While the throughput is searched, they come at equal distances.
    pub arrivals: Arrivals,
    /// How long to measure.
    pub effort: Effort,
}

impl Request<'_> {
    /// The same of another chain.
    pub(crate) fn of_chain<'b>(&self, chain: &'b str) -> Request<'b> {
        Request {
            chain,
            variables: self.variables.clone(),
            inputs: self.inputs.clone(),
            devices: self.devices.clone(),
            traffic: self.traffic.clone(),
            seed: self.seed,
            sizes: Vec::new(),
            peers: Vec::new(),
            arrivals: self.arrivals,
            effort: self.effort,
        }
    }
}

/// Sizes of frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Size {
    pub(crate) name: String,
    /// In bytes without the frame check sequence; used in turn.
    pub(crate) frames: Vec<u16>,
}

/// Bytes of the frame check sequence.
const CHECK: u16 = 4;

impl FromStr for Size {
    type Err = String;

    /// A number of bytes with the frame check sequence, as RFC 2544 has it, or `imix`.
    fn from_str(text: &str) -> Result<Self, String> {
        let frames = match text {
            "imix" => Generator::IMIX.to_vec(),
            _ => {
                let size = text.parse::<u16>().ok().filter(|size| (64..=9220).contains(size));
                vec![
                    size.ok_or(
                        "sizes are 64 to 9220 bytes with the frame check sequence, or 'imix'",
                    )? - CHECK,
                ]
            }
        };
        Ok(Self { name: text.into(), frames })
    }
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Seconds of each trial of the throughput search. All else follows from it.
    pub trial: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { trial: 0.3 }
    }
}

/// Why nothing was measured.
#[derive(Debug)]
pub enum Failed {
    /// What is wrong with the chain.
    Chain(Findings),
    /// In words.
    Message(String),
    /// It was interrupted.
    Interrupted,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chain(findings) => {
                let errors =
                    findings.diagnostics.iter().filter(|d| has_errors(std::slice::from_ref(d)));
                let texts: Vec<&str> = errors.map(|d| d.message.as_str()).collect();
                f.write_str(&texts.join("; "))
            }
            Self::Message(why) => f.write_str(why),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl From<Ended> for Failed {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Interrupted => Self::Interrupted,
            Ended::Chain(why) => Self::Message(why),
        }
    }
}

/// Rounds of a chain and of none, in turns.
pub(crate) const ROUNDS: usize = 21;
/// Parts that the time under each load is divided in.
const PARTS: usize = 7;
/// Loads whose latencies are taken, as percentages of the non-drop rate.
const LOADS: [u32; 4] = [0, 10, 50, 90];
/// Packets per second that count as single ones.
const SINGLE: f64 = 10_000.0;
/// The greatest load that is tried is so many times what the chain took when it got as much as it took.
pub(crate) const HEADROOM: f64 = 2.0;
/// How close the bounds of a throughput are.
const WIDTH: f64 = 0.005;
/// Packets of a trial at the least, for each source.
const LEAST: f64 = 500.0;
/// Trials that decide about a load.
const TRIALS: u32 = 3;
/// Frames that are generated where nothing is said of traffic: 100 of each flow.
const BY_DEFAULT: u64 = 100_000;
/// Packets that go through a chain before anything is measured, at the least.
pub(crate) const WARM: u64 = 200_000;

/// Measures a chain in memory, on this thread. `progress` hears what comes next, `is_stopped` ends it.
///
/// # Errors
/// What is wrong with the chain or its traffic, or that it was stopped.
pub fn measure(
    request: &Request<'_>,
    (time, meter): (&Arc<dyn Time>, &dyn Meter),
    environment: Environment,
    progress: &mut dyn FnMut(&str),
    is_stopped: &dyn Fn() -> bool,
) -> Result<Report, Failed> {
    progress("reading the chain");
    let mut library = Traffics::new(request, &|_| ());
    let mut chain = Subject::load(request, Execution::Synthesised, time, &mut library)?;
    let traffic = library.described();
    library.check(&chain)?;
    if !request.sizes.is_empty() {
        library.check_sizes()?;
    }
    let mut bare = Subject::bare(request, time, &library)?;
    let gauges = Gauges::new(request, (&**time, meter), is_stopped);

    progress("warming up");
    let frames = traffic.iter().map(|source| source.frames as u64).sum::<u64>();
    let warm = frames.max(WARM);
    let before = chain.harness.left();
    let moved = chain.saturate(warm, is_stopped)?;
    let forwarded = (chain.harness.left() - before) as f64 / moved as f64;
    bare.saturate(warm, is_stopped)?;

    let mut peers = Vec::new();
    let mut others = Vec::new();
    for peer in &request.peers {
        let mut report = PeerReport::new(peer.to_string(), None, "a chain".into());
        match rival(request, peer, time, is_stopped) {
            Ok(subject) => {
                report.length = subject.0.length();
                others.push((peers.len(), subject));
            }
            Err(Failed::Interrupted) => return Err(Failed::Interrupted),
            Err(why) => report.failed = Some(why.to_string()),
        }
        peers.push(report);
    }

    progress("measuring what a packet costs");
    let mut costs = {
        let rivals = others.iter_mut().map(|(_, (subject, _))| subject);
        let mut all: Vec<&mut Subject> = std::iter::once(&mut chain).chain(rivals).collect();
        gauges.costs(&mut all, &mut bare)?
    };
    let cost = costs.remove(0);
    let capacity = 1e9 / cost.time.median;

    progress("searching for the throughput");
    let throughput = gauges.throughput(&mut chain, capacity)?;
    for ((place, (subject, share)), theirs) in others.iter_mut().zip(costs) {
        let report = &mut peers[*place];
        progress(&format!("searching for the throughput of {}", report.name));
        let pairs = theirs.time.values.iter().zip(&cost.time.values);
        let ratios = Samples::of(pairs.map(|(theirs, ours)| theirs / ours).collect());
        report.ratios.push(("time per packet".into(), ratios));
        report.throughput = gauges.throughput(subject, 1e9 / theirs.time.median)?;
        (report.forwarded, report.cost) = (*share, Some(theirs));
        report.note_forwarded(forwarded);
    }
    drop(others);

    let mut remarks = library.remarks();
    let latency =
        gauges.latencies((&throughput, forwarded), &mut remarks, progress, |load, arrivals| {
            let Subject { harness, router, .. } = &mut chain;
            Ok(harness.offer(router, load, arrivals, true, is_stopped)?)
        })?;

    progress("attributing time to network functions");
    remarks.extend(chain.router.programs().slower().into_iter().map(|entry| {
        format!("elements are faster than the program at {entry} with this traffic: they run in its place")
    }));
    // Programs are timed also where elements are faster.
    chain.router.programs().set_use(ProgramUse::Always);
    let programs = gauges.shares(&mut chain, &[Of::Program])?;
    let mut elements = Subject::load(request, Execution::Native, time, &mut library)?;
    elements.saturate(warm, is_stopped)?;
    let functions = gauges.shares(&mut elements, &[Of::Function, Of::Element])?;

    let mut sizes = Vec::new();
    for size in &request.sizes {
        progress(&format!("searching for the throughput with frames of {} bytes", size.name));
        sizes.push(gauges.at_size(request, time, size)?);
    }

    let mut report = Report {
        bench: VERSION,
        chain: request.chain.to_string(),
        length: chain.length(),
        place: report::in_memory(),
        cores: 1,
        environment,
        seed: request.seed,
        frame_size: mean_size(&traffic),
        traffic,
        arrivals: request.arrivals.to_string(),
        cost: Some(cost),
        throughput,
        latency,
        sizes,
        functions,
        programs,
        peers,
        forwarded,
        by_tester: false,
        remarks,
    };
    remark(&mut report);
    Ok(report)
}

/// Another chain under the same traffic, warmed up, and what leaves it of each packet.
fn rival(
    request: &Request<'_>,
    peer: &Peer,
    time: &Arc<dyn Time>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(Subject, f64), Failed> {
    let Peer::Chain(file) = peer else {
        return Err(Failed::Message(
            "it forwards between interfaces: measure over them, with --veth or --in and --out"
                .into(),
        ));
    };
    let request = request.of_chain(file);
    let mut library = Traffics::new(&request, &|_| ());
    let mut subject = Subject::load(&request, Execution::Synthesised, time, &mut library)?;
    if subject.harness.sources() == 0 {
        return Err(Failed::Message("it has no FromDevice or FromDump".into()));
    }
    let frames = library.described().iter().map(|source| source.frames as u64).sum::<u64>();
    let moved = subject.saturate(frames.max(WARM), is_stopped)?;
    let forwarded = subject.harness.left() as f64 / moved as f64;
    Ok((subject, forwarded))
}

/// Adds what the figures themselves give reason to say.
pub(crate) fn remark(report: &mut Report) {
    let busiest = report.disturbed();
    if busiest > DISTURBED {
        report.remarks.push(format!(
            "the machine was busy: {:.0} % of the CPU's time went elsewhere in the part that was disturbed most; measure again \
             when it is quiet",
            100.0 * busiest
        ));
    }
    if report.environment.debug_build {
        report.remarks.push(
            "this is a debug build: figures of a release build are several times better".into(),
        );
    }
    report.remarks.extend(report.environment.clock.iter().flat_map(Clock::remarks));
    let lossy = report.throughput.iter().find(|found| found.lower.is_none());
    if let Some((found, least)) = lossy.and_then(|found| Some((found, found.upper?))) {
        report.remarks.push(format!(
            "{}: packets are lost even at the least load that was tried, {} Mpps{}",
            found.goal,
            mpps(least),
            if report.latency.is_empty() { "; latencies were not taken" } else { "" }
        ));
    }
    for found in report.throughput.iter().filter(|found| !found.complete) {
        report.remarks.push(format!(
            "{}: loss did not grow with the load, so the bounds are farther apart than {} %",
            found.goal,
            100.0 * WIDTH
        ));
    }
}

/// What a measurement works with.
pub(crate) struct Gauges<'a> {
    meter: &'a dyn Meter,
    time: &'a dyn Time,
    /// While latencies are taken, with the seed.
    arrivals: (Arrivals, u64),
    effort: Effort,
    is_stopped: &'a dyn Fn() -> bool,
}

impl<'a> Gauges<'a> {
    pub(crate) fn new(
        request: &Request<'_>,
        (time, meter): (&'a dyn Time, &'a dyn Meter),
        is_stopped: &'a dyn Fn() -> bool,
    ) -> Self {
        let arrivals = (request.arrivals, request.seed);
        Self { meter, time, arrivals, effort: request.effort, is_stopped }
    }

    /// Does something, and says which share of the time was taken from it.
    pub(crate) fn watched<T>(
        &self,
        mut work: impl FnMut() -> Result<T, Failed>,
    ) -> Result<(T, f64), Failed> {
        let (begin, taken) = (self.time.now(), self.meter.taken());
        let done = work()?;
        let elapsed = self.time.now().saturating_sub(begin).max(1);
        let taken = self.meter.taken().saturating_sub(taken);
        Ok((done, (taken as f64 / elapsed as f64).min(1.0)))
    }

    /// CPU nanoseconds of a packet in a round.
    pub(crate) fn round(&self, subject: &mut Subject, packets: u64) -> Result<f64, Ended> {
        let cpu = self.meter.cpu_time();
        let moved = subject.saturate(packets, self.is_stopped)? as f64;
        Ok(self.meter.cpu_time().saturating_sub(cpu) as f64 / moved)
    }

    /// A cost of so much CPU time in each round. Cycles follow from the same time.
    pub(crate) fn cost_of(&self, time: Samples, bare: Samples, disturbed: f64) -> Cost {
        let cycles = self.meter.frequency().map(|frequency| time.median * frequency / 1e9);
        Cost { time, bare, cycles, disturbed }
    }

    pub(crate) fn cost(&self, chain: &mut Subject, bare: &mut Subject) -> Result<Cost, Failed> {
        let mut costs = self.costs(&mut [chain], bare)?;
        Ok(costs.remove(0))
    }

    /// What packets take in several chains, and in none, by turns.
    fn costs(&self, chains: &mut [&mut Subject], bare: &mut Subject) -> Result<Vec<Cost>, Failed> {
        // A round of a chain takes a sixth of a trial.
        let mut packets = Vec::new();
        for chain in chains.iter_mut() {
            let first = self.round(chain, WARM / 4)?;
            packets.push(((self.effort.trial / 6.0 * 1e9 / first.max(1.0)) as u64).max(1000));
        }
        let ((all, floor), disturbed) = self.watched(|| {
            let mut all = vec![Vec::new(); chains.len()];
            let mut floor = Vec::new();
            for _ in 0..ROUNDS {
                for ((chain, packets), times) in chains.iter_mut().zip(&packets).zip(&mut all) {
                    times.push(self.round(chain, *packets)?);
                }
                floor.push(self.round(bare, packets.first().copied().unwrap_or(WARM))?);
            }
            Ok((all, floor))
        })?;
        let bare = Samples::of(floor);
        let cost = |times| self.cost_of(Samples::of(times), bare.clone(), disturbed);
        Ok(all.into_iter().map(cost).collect())
    }

    fn throughput(&self, chain: &mut Subject, capacity: f64) -> Result<Vec<Throughput>, Failed> {
        // Of fewer packets, nobody sees whether those that wait become more.
        let min = (LEAST * chain.harness.sources() as f64 / self.effort.trial).min(capacity);
        let range = Range { min, max: HEADROOM * capacity };
        self.search(range, |load| {
            let (load, even) = ((load, self.effort.trial), (Arrivals::Constant, 0));
            Ok(chain.harness.offer(&mut chain.router, load, even, false, self.is_stopped)?.trial)
        })
    }

    /// Searches for the non-drop rate and the partial drop rate. A first trial that was disturbed, or of which nothing came,
    /// is repeated.
    pub(crate) fn search(
        &self,
        range: Range,
        mut trial: impl FnMut(f64) -> Result<Trial, Failed>,
    ) -> Result<Vec<Throughput>, Failed> {
        let goal = |loss_ratio| Goal { loss_ratio, width: WIDTH, trials: TRIALS };
        let goals = [goal(0.0), goal(0.005)];
        let mut taken = Vec::new();
        let found = search(&goals, range, |load| {
            let mut attempt = || self.watched(|| trial(load));
            // The search begins from what the first one forwards.
            let (done, disturbed) = match taken.is_empty() {
                true => best_of(attempt, |trial| 1.0 - trial.loss_ratio())?,
                false => attempt()?,
            };
            taken.push(disturbed);
            Ok::<_, Failed>(done)
        })?;
        // Trials of one goal come after those of the one before.
        let mut taken = taken.into_iter();
        let named = ["NDR", "PDR"].into_iter().zip(goals).zip(found);
        Ok(named
            .map(|((name, goal), found)| {
                let taken: Vec<f64> = taken.by_ref().take(found.trials as usize).collect();
                Throughput {
                    goal: name.into(),
                    loss_ratio: goal.loss_ratio,
                    lower: found.lower,
                    upper: found.upper,
                    throughput: found.throughput,
                    trials: found.trials,
                    complete: found.complete,
                    disturbed: mean(&taken),
                    disturbed_trials: count_disturbed(&taken),
                }
            })
            .collect())
    }

    /// Cost and throughput with generated frames of a size.
    fn at_size(
        &self,
        request: &Request<'_>,
        time: &Arc<dyn Time>,
        size: &Size,
    ) -> Result<AtSize, Failed> {
        let resize = |generator: &mut Generator| generator.sizes.clone_from(&size.frames);
        let mut library = Traffics::new(request, &resize);
        let mut chain = Subject::load(request, Execution::Synthesised, time, &mut library)?;
        let mut bare = Subject::bare(request, time, &library)?;
        for subject in [&mut chain, &mut bare] {
            subject.saturate(WARM, self.is_stopped)?;
        }
        let cost = self.cost(&mut chain, &mut bare)?;
        let throughput = self.throughput(&mut chain, 1e9 / cost.time.median)?;
        let frame_size = mean_size(&library.described());
        Ok(AtSize { size: size.name.clone(), frame_size, cost: Some(cost), throughput })
    }

    /// Latencies at parts of the non-drop rate that was found, if any packets leave the system.
    pub(crate) fn latencies(
        &self,
        (throughput, forwarded): (&[Throughput], f64),
        remarks: &mut Vec<String>,
        progress: &mut dyn FnMut(&str),
        mut offer: impl FnMut((f64, f64), (Arrivals, u64)) -> Result<Offered, Failed>,
    ) -> Result<Vec<Latency>, Failed> {
        let Some(most) = throughput.first().and_then(|ndr| ndr.lower) else {
            return Ok(Vec::new());
        };
        if forwarded == 0.0 {
            remarks.push("no packet leaves the chain: there are no latencies".into());
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for percent in LOADS {
            progress(&format!("taking latencies at {percent} % of the non-drop rate"));
            let rate = match percent {
                0 => SINGLE.min(most),
                _ => most * f64::from(percent) / 100.0,
            };
            all.extend(self.latency((percent, rate), &mut offer)?);
        }
        Ok(all)
    }

    /// Latencies at a load that `offer` offers; nothing if no packet that was due leaves the chain.
    fn latency(
        &self,
        (percent, rate): (u32, f64),
        mut offer: impl FnMut((f64, f64), (Arrivals, u64)) -> Result<Offered, Failed>,
    ) -> Result<Option<Latency>, Failed> {
        // Each part draws other times.
        let (process, seed) = self.arrivals;
        let mut part = |part: usize| {
            let arrivals = (process, seed.wrapping_add((part as u64) << 32));
            self.watched(|| offer((rate, self.effort.trial), arrivals))
        };
        let parts = (0..PARTS).map(&mut part).collect::<Result<Vec<_>, Failed>>()?;
        let (parts, shares): (Vec<_>, Vec<f64>) = parts.into_iter().unzip();
        let mut all: Option<Histogram<u64>> = None;
        let (mut offered, mut lost) = (0, 0);
        let (mut p50, mut p99) = (Vec::new(), Vec::new());
        for part in parts {
            (offered, lost) = (offered + part.trial.offered, lost + part.trial.lost);
            if let Some(percentiles) = Percentiles::of(&part.latencies) {
                p50.push(percentiles.p50 as f64);
                p99.push(percentiles.p99 as f64);
            }
            match &mut all {
                None => all = Some(part.latencies),
                Some(all) => all.add(part.latencies).expect("histograms of the same bounds"),
            }
        }
        let taken = all.and_then(|all| Some((Percentiles::of(&all)?, all)));
        Ok(taken.map(|(percentiles, all)| Latency {
            percent,
            rate,
            offered,
            lost,
            packets: all.len(),
            percentiles,
            distribution: distribution(&all),
            histogram: Some(all),
            p50: Samples::of(p50),
            p99: Samples::of(p99),
            disturbed: mean(&shares),
            disturbed_parts: count_disturbed(&shares),
        }))
    }

    /// What parts of a chain take: those of the first kind that there are any of.
    pub(crate) fn shares(&self, subject: &mut Subject, kinds: &[Of]) -> Result<Vec<Share>, Failed> {
        let first = self.round(subject, WARM / 4)?;
        // Of many bursts few are timed.
        let packets = ((2.0 * self.effort.trial * 1e9 / first.max(1.0)) as u64).max(WARM);
        self.shares_of(subject, kinds, packets)
    }

    /// The same over so many packets.
    pub(crate) fn shares_of(
        &self,
        subject: &mut Subject,
        kinds: &[Of],
        packets: u64,
    ) -> Result<Vec<Share>, Failed> {
        subject.router.sample_latency(true);
        subject.saturate(packets, self.is_stopped)?;
        let latencies = subject.router.stats().latencies;
        subject.router.sample_latency(false);
        let of = |kind: &Of| -> Vec<Share> {
            let timed = latencies.iter().filter(|l| l.of == *kind && l.histogram.count() > 0);
            timed
                .map(|latency| {
                    let packets = latency.histogram.count();
                    let time = latency.histogram.spent() as f64 / packets as f64;
                    Share { name: latency.name.clone(), time, packets }
                })
                .collect()
        };
        Ok(kinds.iter().map(of).find(|shares| !shares.is_empty()).unwrap_or_default())
    }
}
