//! What a measurement found: one document, which programs read as JSON and people as tables.
//!
//! Rates are packets per second, times nanoseconds, unless a name says otherwise.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use view::table::{Table, grouped};

use crate::arrivals::Arrivals;
use crate::live::Measured;
use crate::machine::Environment;
use crate::statistics::{Samples, Spread, mpps};

/// The version of the document's format: it changes when what is in it means something else.
pub const VERSION: u32 = 1;

/// A measurement of a chain.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The format's version.
    #[schemars(extend("const" = VERSION))]
    pub bench: u32,
    /// The chain's file.
    pub chain: String,
    /// Network functions that the chain consists of, its outermost compounds; nothing if it has none.
    #[serde(default)]
    pub length: Option<usize>,
    /// Where it ran: in memory, or over which interfaces.
    #[serde(default = "in_memory")]
    pub place: String,
    /// CPUs that it ran on; 0 if there was no chain.
    #[serde(default = "one")]
    pub cores: usize,
    /// What it was measured on.
    pub environment: Environment,
    /// Seed of the chain's random choices.
    #[serde(default)]
    pub seed: u64,
    /// What came in.
    pub traffic: Vec<Traffic>,
    /// The mean length of frames, with the frame check sequence, in bytes.
    pub frame_size: f64,
    /// How packets arrived while latencies were taken.
    #[serde(default = "at_equal_distances")]
    pub arrivals: String,
    /// What a packet takes when the chain gets as many as it takes; in memory only.
    pub cost: Option<Cost>,
    /// The non-drop rate, and the partial drop rate.
    pub throughput: Vec<Throughput>,
    /// Latencies under load, the least load first.
    pub latency: Vec<Latency>,
    /// The same for frames of other sizes, where they were asked for.
    #[serde(default)]
    pub sizes: Vec<AtSize>,
    /// What network functions take element by element; elements where the chain has no functions.
    pub functions: Vec<Share>,
    /// What the programs take that the chain becomes.
    pub programs: Vec<Share>,
    /// Other systems that were measured in the same rounds.
    #[serde(default)]
    pub peers: Vec<PeerReport>,
    /// Packets that left the chain for each that came in: less than 1 where some were dropped or ended in it, more where
    /// it made some.
    pub forwarded: f64,
    /// Whether the tester was the limit: the chain may take more.
    #[serde(default)]
    pub by_tester: bool,
    /// What a reader must know before he believes the figures.
    pub remarks: Vec<String>,
}

/// What reports say that are older than the choice.
fn at_equal_distances() -> String {
    Arrivals::Constant.to_string()
}

/// What reports say that are older than other places.
pub(crate) fn in_memory() -> String {
    "in memory, one core, no network card".into()
}

fn one() -> usize {
    1
}

/// What was found of another system.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PeerReport {
    /// Its name, or a chain's file.
    pub name: String,
    /// Its version, as it tells it.
    pub version: Option<String>,
    /// What it does with packets.
    pub does: String,
    /// Of a chain, as of the report.
    #[serde(default)]
    pub length: Option<usize>,
    /// What a packet takes when it gets as many as it takes; in memory only.
    pub cost: Option<Cost>,
    /// The non-drop rate, and the partial drop rate, in the first round.
    pub throughput: Vec<Throughput>,
    /// Latencies under load, in the first round.
    pub latency: Vec<Latency>,
    /// Of each goal, and of the cost: how many times as fast the chain is, in each round.
    pub ratios: Vec<(String, Samples)>,
    /// Whether the tester was slower than it or than the chain: the ratio is not of the two then.
    pub by_tester: bool,
    /// Packets that it sent for each that came in.
    pub forwarded: f64,
    /// What a reader must know.
    pub remark: Option<String>,
    /// Why there is nothing, or not all.
    pub failed: Option<String>,
    /// What was found so far.
    #[serde(skip)]
    pub(crate) found: Measured,
}

impl PeerReport {
    pub(crate) fn new(name: String, version: Option<String>, does: String) -> Self {
        Self {
            name,
            version,
            does,
            length: None,
            cost: None,
            throughput: Vec::new(),
            latency: Vec::new(),
            ratios: Vec::new(),
            by_tester: false,
            forwarded: 0.0,
            remark: None,
            failed: None,
            found: Measured::default(),
        }
    }

    /// Adds to what a reader must know.
    pub(crate) fn note(&mut self, what: String) {
        self.remark = Some(self.remark.take().map_or(what.clone(), |known| known + "; " + &what));
    }

    /// Notes if it forwards another share of the packets than the chain: ratios are of two different functions then.
    pub(crate) fn note_forwarded(&mut self, by_chain: f64) {
        if self.forwarded > 0.0 && (self.forwarded - by_chain).abs() > SAME_SHARE {
            let own = self.forwarded;
            self.note(format!(
                "it forwards {own:.2} packets for each that comes in, the chain {by_chain:.2}: they do not do the same"
            ));
        }
    }
}

/// Systems whose shares of forwarded packets differ by more do not do the same.
const SAME_SHARE: f64 = 0.02;

/// A source of packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Its name in the chain.
    pub name: String,
    /// What it is bound to.
    pub origin: String,
    /// How many frames it has; they are offered over and over.
    pub frames: usize,
    /// Their bytes, without frame check sequences.
    pub bytes: usize,
}

impl Traffic {
    /// In words, with the mean size of frames as RFC 2544 counts it.
    pub(crate) fn describe(&self) -> String {
        let Self { name, origin, .. } = self;
        let (frames, size) =
            (grouped(self.frames as u64), self.bytes as f64 / self.frames as f64 + 4.0);
        format!("{name}: {origin}: {frames} frames of {size:.0} bytes, over and over")
    }
}

/// What a packet takes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// CPU time of a packet.
    pub time: Samples,
    /// CPU time of a packet that goes from a source to a sink in memory and through no chain: part of the time above.
    pub bare: Samples,
    /// The median time in cycles of the time stamp counter, which runs at a constant rate whatever the core's is; nothing
    /// where it does not.
    pub cycles: Option<f64>,
    /// The share of the time that was taken from the thread.
    pub disturbed: f64,
}

/// What was found with frames of other sizes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AtSize {
    /// The size in bytes with the frame check sequence, or the name of a mix of sizes.
    pub size: String,
    /// The mean length of frames, with the frame check sequence, in bytes.
    pub frame_size: f64,
    /// What a packet takes when the chain gets as many as it takes; in memory only.
    pub cost: Option<Cost>,
    /// The non-drop rate, and the partial drop rate.
    pub throughput: Vec<Throughput>,
}

/// What was found for a goal.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Throughput {
    /// `NDR` or `PDR`.
    pub goal: String,
    /// The share of packets that may be lost.
    pub loss_ratio: f64,
    /// The greatest load that is within the goal; nothing if even the least is not.
    pub lower: Option<f64>,
    /// The least load that is not; nothing if even the greatest is.
    pub upper: Option<f64>,
    /// What is forwarded at the lower bound.
    pub throughput: f64,
    /// Trials that it took.
    pub trials: u32,
    /// Whether the bounds are as close as they should be.
    pub complete: bool,
    /// The share of the time that was taken from the thread.
    pub disturbed: f64,
    /// Trials of which more than 1 % of the time was taken: they may have lost packets for it.
    #[serde(default)]
    pub disturbed_trials: u32,
}

/// Latencies under a load, from when a packet was due until it left.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Latency {
    /// The load, as a percentage of the non-drop rate; 0 is single packets.
    pub percent: u32,
    /// The load.
    pub rate: f64,
    /// Packets that came.
    pub offered: u64,
    /// Of them, packets lost.
    pub lost: u64,
    /// Packets whose latency was taken.
    pub packets: u64,
    /// The percentiles of all of them.
    pub percentiles: Percentiles,
    /// Of all latencies, from the least on: a share of the packets, and the latency that they do not exceed.
    #[serde(default)]
    pub distribution: Vec<(f64, u64)>,
    /// All of them in nanoseconds; no part of the document.
    #[serde(skip)]
    pub histogram: Option<Histogram<u64>>,
    /// The median in each of the parts that the time was divided in.
    pub p50: Samples,
    /// The same for the 99th percentile.
    pub p99: Samples,
    /// The share of the time that was taken from the thread.
    pub disturbed: f64,
    /// Parts of the time of which more than 1 % was taken.
    #[serde(default)]
    pub disturbed_parts: u32,
}

/// Of many latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub p99_9: u64,
    pub p99_99: u64,
    pub max: u64,
    pub mean: f64,
    /// RFC 8219's packet delay variation: the 99.9th percentile less the minimum.
    pub pdv: u64,
}

impl Percentiles {
    /// Of what a histogram holds; nothing of nothing.
    pub fn of(values: &Histogram<u64>) -> Option<Self> {
        let at = |share| values.value_at_quantile(share);
        (!values.is_empty()).then(|| Self {
            min: values.min(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p99_9: at(0.999),
            p99_99: at(0.9999),
            max: values.max(),
            mean: values.mean(),
            pdv: at(0.999).saturating_sub(values.min()),
        })
    }
}

/// Points of a distribution for each halving of the share of packets that are left.
const POINTS: u32 = 4;

/// A histogram's distribution, finer where fewer packets are left.
pub(crate) fn distribution(values: &Histogram<u64>) -> Vec<(f64, u64)> {
    let points = values.iter_quantiles(POINTS);
    points.map(|point| (point.quantile_iterated_to(), point.value_iterated_to())).collect()
}

/// What a part of the chain takes, from bursts that were timed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Share {
    /// Its name.
    pub name: String,
    /// Time of each packet that came to it.
    pub time: f64,
    /// Packets that were timed.
    pub packets: u64,
}

/// Bytes of a frame on the wire besides its own and its check sequence: preamble, delimiter and gap.
const ON_WIRE: f64 = 20.0;

/// A disturbance above this share marks what it disturbed.
pub(crate) const DISTURBED: f64 = 0.01;

/// The mean of some shares.
pub(crate) fn mean(shares: &[f64]) -> f64 {
    // The sum of none is -0.
    (shares.iter().sum::<f64>() + 0.0) / shares.len().max(1) as f64
}

/// How many of some shares of the time mark what they were taken from.
pub(crate) fn count_disturbed(shares: &[f64]) -> u32 {
    shares.iter().filter(|share| **share > DISTURBED).count() as u32
}

impl Throughput {
    /// What of the search was disturbed, if anything.
    pub(crate) fn mark(&self) -> String {
        mark_parts(self.disturbed, (self.disturbed_trials, self.trials, "trials"))
    }
}

impl Latency {
    /// What of the time was disturbed, if any.
    pub(crate) fn mark(&self) -> String {
        let parts = self.p50.values.len() as u32;
        mark_parts(self.disturbed, (self.disturbed_parts, parts, "parts"))
    }
}

/// The share that was taken, and from how many of all parts.
fn mark_parts(disturbed: f64, (some, all, parts): (u32, u32, &str)) -> String {
    match some {
        0 => mark(disturbed),
        _ => format!(" *{:.0} %, {some} of {all} {parts}", 100.0 * disturbed),
    }
}

/// Bits a second of frames of a mean size at a rate: with check sequences (layer 2), and with all that they take on a
/// wire (layer 1).
pub fn bits(rate: f64, frame_size: f64) -> (f64, f64) {
    (rate * frame_size * 8.0, rate * (frame_size + ON_WIRE) * 8.0)
}

impl PeerReport {
    /// Who it is, and what it does.
    pub(crate) fn describe(&self) -> String {
        let version = self.version.as_ref().map_or_else(String::new, |v| format!(" ({v})"));
        format!("{}{version}: {}", self.name, self.does)
    }

    /// What a reader must know, and why there is nothing, or not all.
    pub(crate) fn remarks(&self) -> impl Iterator<Item = String> {
        let all = self.remark.iter().chain(&self.failed);
        all.map(|why| format!("{}: {why}", self.name))
    }

    /// The ratio of what was measured first, as people read it.
    pub(crate) fn ratio(&self) -> String {
        let Some((what, ratio)) = self.ratios.first() else { return "-".into() };
        let Spread { least, greatest, .. } = Spread::of(ratio.values.iter().copied());
        let limit = if self.by_tester { "; the tester is the limit" } else { "" };
        format!("{:.2} × as fast ({least:.2}–{greatest:.2}), {what}{limit}", ratio.median)
    }
}

impl Report {
    /// What was found for a goal.
    pub fn goal(&self, name: &str) -> Option<&Throughput> {
        self.throughput.iter().find(|found| found.goal == name)
    }

    /// The greatest share of the time that was taken from a part of the measurement.
    pub fn disturbed(&self) -> f64 {
        let sizes = self.sizes.iter();
        let sizes = sizes.flat_map(|at| {
            at.throughput.iter().map(|t| t.disturbed).chain(at.cost.iter().map(|c| c.disturbed))
        });
        let found = self.throughput.iter().map(|t| t.disturbed).chain(sizes);
        let found = found.chain(self.latency.iter().map(|l| l.disturbed));
        found.fold(self.cost.as_ref().map_or(0.0, |cost| cost.disturbed), f64::max)
    }

    /// The report as tables.
    pub fn render(&self) -> String {
        let mut out = String::new();
        self.render_head(&mut out);
        self.render_throughput(&mut out);
        self.render_peers(&mut out);
        self.render_sizes(&mut out);
        self.render_latency(&mut out);
        self.render_shares(&mut out);
        for remark in &self.remarks {
            let _ = writeln!(out, "! {remark}");
        }
        out
    }

    fn render_head(&self, out: &mut String) {
        let machine = &self.environment;
        let _ = writeln!(out, "{}: {}", self.chain, self.place);
        let kind = if machine.is_virtual { ", virtual machine" } else { "" };
        let cpu = machine.cpu.map_or_else(String::new, |cpu| format!(", on CPU {cpu}"));
        let (processor, kernel) = (&machine.processor, &machine.kernel);
        let cpus = machine.count_of_cpus();
        let _ = writeln!(out, "machine: {processor}, {cpus}{kind}{cpu}, Linux {kernel}");
        if let Some(clock) = &machine.clock {
            let _ = writeln!(out, "clock: {}", clock.describe());
        }
        for source in &self.traffic {
            let _ = writeln!(out, "traffic: {}", source.describe());
        }
        let _ = writeln!(out, "output: {:.2} packets for each that comes in", self.forwarded);
    }

    fn render_throughput(&self, out: &mut String) {
        out.push('\n');
        if let Some(cost) = &self.cost {
            let mark = mark(cost.disturbed);
            let (low, high) = cost.time.confidence;
            let cycles = cost.cycles.map_or_else(String::new, |c| format!(", {c:.0} cycles"));
            let _ = writeln!(
                out,
                "cost: {:.1} ns per packet ({low:.1}–{high:.1}){cycles}; {:.1} ns of it without the chain{mark}\n",
                cost.time.median, cost.bare.median
            );
        }
        out.push_str(&self.throughput_table().render());
        if let Some(each) = self.by_core() {
            let _ = writeln!(out, "{each}");
        }
    }

    /// The rates that were found for the goals.
    pub(crate) fn throughput_table(&self) -> Table {
        let mut table = Table::new([
            "throughput",
            "Mpps",
            "bounds",
            "Gb/s L2",
            "Gb/s L1",
            "trials",
            "disturbed",
        ]);
        for found in &self.throughput {
            let bound = |b: Option<f64>| b.map_or_else(|| "-".into(), mpps);
            let (layer_2, layer_1) = bits(found.throughput, self.frame_size);
            let incomplete = if found.complete { "" } else { " bounds apart" };
            table.row([
                format!("{} (loss ≤ {} %)", found.goal, found.loss_ratio * 100.0),
                mpps(found.throughput),
                format!("{} - {}", bound(found.lower), bound(found.upper)),
                format!("{:.2}", layer_2 / 1e9),
                format!("{:.2}", layer_1 / 1e9),
                found.trials.to_string(),
                format!("{}{incomplete}", found.mark()).trim().to_string(),
            ]);
        }
        table
    }

    /// What the NDR is for a core, where that is not said by the cost, and the tester is not the limit.
    pub(crate) fn by_core(&self) -> Option<String> {
        let found = self.throughput.first()?.throughput;
        if found <= 0.0
            || self.by_tester
            || self.cores == 0
            || (self.cores == 1 && self.cost.is_some())
        {
            return None;
        }
        let each = found / self.cores as f64;
        let cycles = self
            .environment
            .frequency
            .map_or_else(String::new, |frequency| format!(", {:.0} cycles", frequency / each));
        let of = match self.cores {
            1 => "a core".to_string(),
            cores => format!("each of {cores} cores"),
        };
        Some(format!("NDR of {of}: {} Mpps, {:.1} ns{cycles} for a packet", mpps(each), 1e9 / each))
    }

    fn render_peers(&self, out: &mut String) {
        if self.peers.is_empty() {
            return;
        }
        let _ = write!(out, "\n{}", self.peers_table().render());
        for peer in &self.peers {
            let _ = writeln!(out, "{}", peer.describe());
            for why in peer.remarks() {
                let _ = writeln!(out, "! {why}");
            }
        }
    }

    /// Other systems, beside the chain.
    pub(crate) fn peers_table(&self) -> Table {
        let titles = [
            "beside",
            "NDR, Mpps",
            "PDR, Mpps",
            "ns per packet",
            "p50, µs",
            "p99, µs",
            "the chain is",
        ];
        let mut table = Table::new(titles);
        for peer in &self.peers {
            let rate = |which: usize| {
                let found = peer.throughput.get(which);
                found.map_or("-".into(), |t| format!("{}{}", mpps(t.throughput), mark(t.disturbed)))
            };
            // At half of the throughput.
            let half = peer.latency.iter().find(|load| load.percent == 50);
            let micros = |of: fn(&Percentiles) -> u64| {
                half.map_or("-".into(), |load| format!("{:.2}", of(&load.percentiles) as f64 / 1e3))
            };
            table.row([
                peer.name.clone(),
                rate(0),
                rate(1),
                peer.cost.as_ref().map_or("-".into(), |cost| {
                    format!("{:.1}{}", cost.time.median, mark(cost.disturbed))
                }),
                micros(|p| p.p50),
                micros(|p| p.p99),
                peer.ratio(),
            ]);
        }
        table
    }

    fn render_sizes(&self, out: &mut String) {
        if self.sizes.is_empty() {
            return;
        }
        let _ = write!(out, "\n{}", self.sizes_table().render());
    }

    /// What was found with frames of other sizes.
    pub(crate) fn sizes_table(&self) -> Table {
        let titles = [
            "frames, bytes",
            "ns per packet",
            "NDR, Mpps",
            "PDR, Mpps",
            "NDR, Gb/s L2",
            "Gb/s L1",
            "disturbed",
        ];
        let mut table = Table::new(titles);
        for at in &self.sizes {
            let rates: Vec<f64> = at.throughput.iter().map(|found| found.throughput).collect();
            let rate = |which: usize| rates.get(which).copied().unwrap_or(0.0);
            let (layer_2, layer_1) = bits(rate(0), at.frame_size);
            let disturbed = at.throughput.iter().map(|t| t.disturbed);
            table.row([
                at.size.clone(),
                at.cost.as_ref().map_or("-".into(), |cost| format!("{:.1}", cost.time.median)),
                mpps(rate(0)),
                mpps(rate(1)),
                format!("{:.2}", layer_2 / 1e9),
                format!("{:.2}", layer_1 / 1e9),
                mark(disturbed.chain(at.cost.iter().map(|c| c.disturbed)).fold(0.0, f64::max))
                    .trim()
                    .to_string(),
            ]);
        }
        table
    }

    fn render_latency(&self, out: &mut String) {
        if self.latency.is_empty() {
            return;
        }
        let _ = write!(out, "\n{}", self.latency_table().render());
        if self.arrivals != at_equal_distances() {
            let _ = writeln!(out, "arrivals: {}, on average at these rates", self.arrivals);
        }
    }

    /// Latencies under load.
    pub(crate) fn latency_table(&self) -> Table {
        let titles = [
            "latency, µs at",
            "Mpps",
            "min",
            "p50",
            "p90",
            "p99",
            "p99.9",
            "p99.99",
            "max",
            "PDV",
            "lost",
            "disturbed",
        ];
        let mut table = Table::new(titles);
        let micros = |ns: u64| format!("{:.2}", ns as f64 / 1e3);
        for load in &self.latency {
            let p = &load.percentiles;
            table.row([
                format!("{} % of NDR", load.percent),
                mpps(load.rate),
                micros(p.min),
                micros(p.p50),
                micros(p.p90),
                micros(p.p99),
                micros(p.p99_9),
                micros(p.p99_99),
                micros(p.max),
                micros(p.pdv),
                grouped(load.lost),
                load.mark().trim().to_string(),
            ]);
        }
        table
    }

    fn render_shares(&self, out: &mut String) {
        let lists = [("element by element", &self.functions), ("as programs", &self.programs)];
        for (title, shares) in lists {
            if shares.is_empty() {
                continue;
            }
            let mut table = Table::new([title, "ns per packet", "packets timed"]);
            for share in shares {
                table.row([
                    share.name.clone(),
                    format!("{:.1}", share.time),
                    grouped(share.packets),
                ]);
            }
            let _ = write!(out, "\n{}", table.render());
        }
        if self.disturbed() > DISTURBED {
            out.push_str("\n* disturbed: other threads or virtual machines took this share of the CPU's time\n");
        }
        if !self.remarks.is_empty() {
            out.push('\n');
        }
    }
}

pub(crate) fn mark(disturbed: f64) -> String {
    if disturbed > DISTURBED { format!(" *{:.0} %", 100.0 * disturbed) } else { String::new() }
}
