//! What network functions, programs, input and output cost on a machine: measured once, and read by whatever decides where
//! parts of a chain run and on how many cores.
//!
//! Cycles are of the time stamp counter, which runs at a constant rate whatever a core's is: divided by
//! [`Processor::frequency`] they are seconds. Costs are of a packet on one core that does nothing else; other cores may have
//! packets meanwhile ([`CostProfile::cores`]).

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::{Graph, Program};

/// The version of the document's format: it changes when what is in it means something else.
pub const VERSION: u32 = 1;

/// What parts of a chain cost on a machine. As JSON it is a document of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CostProfile {
    /// The format's version.
    #[cfg_attr(feature = "schema", schemars(extend("const" = VERSION)))]
    pub costs: u32,
    /// The chain's file.
    pub chain: String,
    /// What it was measured on.
    pub processor: Processor,
    /// When, in seconds since 1970.
    pub unix_time: u64,
    /// How it was measured, in words.
    pub method: String,
    /// Traffic that it was measured with, by name.
    pub traffic: Vec<String>,
    /// Cores that took packets through the chain while functions and programs were measured, with the measured one: they
    /// share caches and memory.
    #[serde(default = "one")]
    pub cores: usize,
    /// Network functions, run element by element; elements, where the chain has no functions.
    pub functions: Vec<FunctionCost>,
    /// The programs that take their place.
    pub programs: Vec<ProgramCost>,
    /// Devices.
    pub io: Vec<IoCost>,
    /// Handing a packet from one core to another; nothing if that was not measured.
    pub hand_off: Option<HandOffCost>,
    /// Going from one process to another by a virtual switch.
    #[serde(default)]
    pub hops: Vec<HopCost>,
    /// What a core does of the chain within an SLO; nothing if that was not measured.
    #[serde(default)]
    pub capacity: Option<Capacity>,
    /// What was not measured and why, and what to know about figures.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// Of profiles that are older than measuring with several.
fn one() -> usize {
    1
}

/// A processor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Processor {
    /// Its name.
    pub name: String,
    /// Cycles of its time stamp counter in a second.
    pub frequency: f64,
    /// Whether it is a virtual machine's.
    pub is_virtual: bool,
    /// The kernel's release.
    pub kernel: String,
}

/// What a packet costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Cycles with the traffic that costs least.
    pub min: f64,
    /// Cycles with all kinds of traffic on average.
    pub mean: f64,
    /// Cycles with the traffic that costs most.
    pub max: f64,
    /// With each kind of traffic.
    pub samples: Vec<Sample>,
}

/// What a packet of a kind of traffic costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sample {
    /// The traffic, by its name in the profile; of a hand-off, the size of its bursts.
    pub traffic: String,
    /// Cycles.
    pub cycles: f64,
    /// Packets that were timed.
    pub packets: u64,
}

impl Cost {
    /// Of samples; nothing of none.
    pub fn of(samples: Vec<Sample>) -> Option<Self> {
        let cycles = || samples.iter().map(|sample| sample.cycles);
        let (min, max) = (cycles().reduce(f64::min)?, cycles().reduce(f64::max)?);
        let mean = cycles().sum::<f64>() / samples.len() as f64;
        Some(Self { min, mean, max, samples })
    }
}

/// What a network function costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionCost {
    /// Its name in the chain.
    pub name: String,
    /// What it costs.
    pub cost: Cost,
    /// The cost over the number of flows, where that is a line.
    pub per_flow: Option<LinearCost>,
    /// How many rules or routes its longest list has that can be cut.
    #[serde(default)]
    pub rules: Option<u64>,
    /// The cost over the number of rules or routes in that list, where that is a line.
    #[serde(default)]
    pub per_rule: Option<LinearCost>,
}

/// What a core does of a chain within an SLO.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capacity {
    /// 16 hexadecimal digits that tell the chain from others.
    pub chain: String,
    /// The SLO: 99th percentile of latencies, in nanoseconds.
    pub slo: u64,
    /// Nanoseconds of an epoch: half of the SLO.
    pub epoch: u64,
    /// Packets of a batch at the most.
    pub batch: u32,
    /// Flows that are active in an epoch, against the packets that a core does in it.
    pub frontier: Vec<FrontierPoint>,
    /// Flows that take turns, against packets a second that a core sustains within the SLO.
    pub rates: Vec<SustainedRate>,
}

/// A point of the frontier: what a core does in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrontierPoint {
    /// Active flows.
    pub flows: u32,
    /// Packets that all but one in a hundred epochs did at the least.
    pub packets: u32,
    /// Packets that half of the epochs did at the least.
    pub median: u32,
}

/// The greatest rate that a core sustains within the SLO.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SustainedRate {
    /// Flows that take turns.
    pub flows: u32,
    /// Packets a second.
    pub rate: f64,
}

impl Capacity {
    /// Whether the tables can be: more flows never allow more.
    ///
    /// # Errors
    /// Which points contradict each other.
    pub fn check(&self) -> Result<(), String> {
        let points =
            |of: &[FrontierPoint]| of.iter().map(|p| (p.flows, f64::from(p.packets))).collect();
        let rates = self.rates.iter().map(|p| (p.flows, p.rate)).collect();
        for (name, points) in [("frontier", points(&self.frontier)), ("table of rates", rates)] {
            let points: Vec<(u32, f64)> = points;
            for pair in points.windows(2) {
                let [(few, high), (many, low)] = [pair[0], pair[1]];
                if few >= many {
                    return Err(format!("the {name} has {few} flows before {many}"));
                }
                if low > high {
                    return Err(format!(
                        "the {name} does not fall: {high} packets with {few} flows, and {low} with {many}; profile the chain again"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether it is of a chain, a processor and a batch.
    ///
    /// # Errors
    /// What it is of instead.
    pub fn is_of(&self, chain: &str, batch: u32, processors: [&str; 2]) -> Result<(), String> {
        let [own, other] = processors;
        let again = "; profile the chain again";
        if self.chain != chain {
            return Err(format!("it is of another chain ({}, not {chain}){again}", self.chain));
        }
        if own != other {
            return Err(format!("it was measured on {own}, and this is {other}{again}"));
        }
        match self.batch == batch {
            true => Ok(()),
            false => Err(format!("it is of batches of {}, not of {batch}{again}", self.batch)),
        }
    }

    /// Cycles of a packet, and those that a flow costs once in an epoch, on a processor of so many cycles a second; nothing if
    /// the frontier is not like that.
    pub fn flow_costs(&self, frequency: f64) -> Option<LinearCost> {
        let cycles = frequency * self.epoch as f64 / 1e9;
        let point = |of: &FrontierPoint| {
            (f64::from(of.flows) / f64::from(of.median), cycles / f64::from(of.median))
        };
        let points: Vec<_> = self.frontier.iter().filter(|p| p.median > 0).map(point).collect();
        LinearCost::through(&points)
    }
}

/// A cost that grows evenly with a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinearCost {
    /// Cycles at none.
    pub base: f64,
    /// Cycles more for each.
    pub slope: f64,
}

/// Share of the points' variance that a line explains at the least (its coefficient of determination).
const FIT: f64 = 0.95;

impl LinearCost {
    /// The line of least squares through points of different numbers; nothing if they do not lie on one, or do not grow.
    pub fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        if points.len() < 3 {
            return None;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let (xx, xy) = (sum(&|p| (p.0 - x).powi(2)), sum(&|p| (p.0 - x) * (p.1 - y)));
        let (slope, yy) = (xy / xx, sum(&|p| (p.1 - y).powi(2)));
        let fits = slope > 0.0 && xy * xy / (xx * yy) >= FIT;
        fits.then_some(Self { base: y - slope * x, slope })
    }
}

/// What a program costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramCost {
    /// Its digest, see [`digest`].
    pub program: String,
    /// The element where it begins.
    pub entry: String,
    /// What it costs.
    pub cost: Cost,
    /// How many rules or routes the longest list of its elements has that can be cut.
    #[serde(default)]
    pub rules: Option<u64>,
    /// The cost over the number of rules or routes in that list, where that is a line.
    #[serde(default)]
    pub per_rule: Option<LinearCost>,
}

/// What input and output on a kind of device cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IoCost {
    /// `memory`, where frames are copied in and out, or the I/O mode of interfaces, such as `af-xdp`.
    pub device: String,
    /// The interfaces' driver, such as `veth`; nothing in memory.
    #[serde(default)]
    pub driver: Option<String>,
    /// Input and output together.
    pub cost: Cost,
    /// Input alone; nothing in memory.
    #[serde(default)]
    pub receive: Option<Cost>,
    /// Output alone; nothing in memory.
    #[serde(default)]
    pub send: Option<Cost>,
}

/// What handing a packet from one core to another costs on each of them, beyond what it costs to keep it, while both have
/// packets all the time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HandOffCost {
    /// The CPU that gives and the CPU that takes.
    pub cpus: [usize; 2],
    /// Cost on the giving core, by size of the bursts.
    pub give: Cost,
    /// Cost on the taking core, by size of the bursts.
    pub take: Cost,
}

/// What it takes to go from one process to another by a virtual switch, with a kind of load. Rates are packets per second of
/// all pairs together, times are nanoseconds there and back, and cycles are of a packet in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopCost {
    /// The switch.
    pub switch: String,
    /// Its version.
    pub version: String,
    /// How processes carry packets, such as `af-packet-mmsg`.
    pub io: String,
    /// Pairs of processes.
    pub pairs: usize,
    /// Hosts that the processes of a pair are on: one, or two with a link between.
    #[serde(default = "one")]
    pub hosts: usize,
    /// Bytes of a frame, without frame check sequence.
    pub size: usize,
    /// Packets of a burst: of throughput, and of round trips.
    pub bursts: [usize; 2],
    /// Cores of the switch.
    pub cores: usize,
    /// Packets per second that came: the median of runs.
    pub throughput: Option<f64>,
    /// The median and the 99th percentile of round trips.
    pub round_trip: Option<[u64; 2]>,
    /// Cycles of who sends.
    pub send: Option<f64>,
    /// Cycles of who receives.
    pub receive: Option<f64>,
    /// Cycles of the switch's processes; nothing of a switch in the kernel, whose cycles are with who sends.
    pub forward: Option<f64>,
}

/// 16 hexadecimal digits that tell a program of a chain from others: FNV-1a of 64 bits over its text. It is another when
/// anything of the program changes, also a rule.
pub fn digest(program: &Program, graph: &Graph) -> String {
    digest_of(format_args!("{}", program.text(graph)))
}

/// 16 hexadecimal digits that tell a text from others.
pub fn digest_of(text: std::fmt::Arguments<'_>) -> String {
    struct Fnv(u64);
    impl std::fmt::Write for Fnv {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            for byte in text.bytes() {
                self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            Ok(())
        }
    }
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // It cannot fail: the writer does not.
    let _ = hash.write_fmt(text);
    format!("{:016x}", hash.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn capacity(frontier: &[(u32, u32)]) -> Capacity {
        let point =
            |&(flows, packets): &(u32, u32)| FrontierPoint { flows, packets, median: packets };
        Capacity {
            chain: "a".into(),
            slo: 200_000,
            epoch: 100_000,
            batch: 32,
            frontier: frontier.iter().map(point).collect(),
            rates: Vec::new(),
        }
    }

    #[test]
    fn frontiers_that_cannot_be_or_are_of_others_are_refused() {
        assert_eq!(capacity(&[(1, 160), (10, 128), (20, 128)]).check(), Ok(()));
        let why = capacity(&[(1, 96), (10, 128)]).check().unwrap_err();
        assert!(why.starts_with("the frontier does not fall: 96 packets with 1 flows"), "{why}");
        let why = capacity(&[(10, 96), (1, 64)]).check().unwrap_err();
        assert!(why.contains("10 flows before 1"), "{why}");
        let own = capacity(&[]);
        assert_eq!(own.is_of("a", 32, ["x", "x"]), Ok(()));
        for (chain, batch, other, expected) in [
            ("b", 32, "x", "another chain (a, not b)"),
            ("a", 64, "x", "batches of 32, not of 64"),
            ("a", 32, "y", "measured on x, and this is y"),
        ] {
            let why = own.is_of(chain, batch, ["x", other]).unwrap_err();
            assert!(why.contains(expected) && why.ends_with("profile the chain again"), "{why}");
        }
    }

    /// By hand: 100 µs at 1 GHz are 100,000 cycles; 1,000 a packet and 500 a flow.
    #[test]
    fn what_a_flow_costs_follows_from_a_frontier() {
        let done = |flows: u32| (flows, (100_000 - flows * 500) / 1000);
        let line = capacity(&[done(2), done(20), done(40), done(60)]).flow_costs(1e9).unwrap();
        assert!((line.base - 1000.0).abs() < 20.0 && (line.slope - 500.0).abs() < 20.0, "{line:?}");
        assert_eq!(capacity(&[]).flow_costs(1e9), None);
    }

    #[test]
    fn costs_have_least_mean_and_greatest() {
        let sample = |cycles| Sample { traffic: "t".into(), cycles, packets: 32 };
        let cost = Cost::of([30.0, 10.0, 20.0].map(sample).to_vec()).unwrap();
        assert_eq!((cost.min, cost.mean, cost.max), (10.0, 20.0, 30.0));
        assert_eq!(Cost::of(Vec::new()), None);
    }

    #[test]
    fn lines_go_through_points_that_lie_on_one() {
        let line = LinearCost::through(&[(1.0, 12.0), (2.0, 14.0), (10.0, 30.0)]).unwrap();
        assert!((line.base - 10.0).abs() < 1e-9 && (line.slope - 2.0).abs() < 1e-9, "{line:?}");
        let others = [
            vec![(1.0, 12.0), (2.0, 30.0), (10.0, 13.0)],
            vec![(1.0, 12.0), (2.0, 14.0)],
            vec![(1.0, 30.0), (2.0, 20.0), (3.0, 10.0)],
            vec![(1.0, 10.0), (2.0, 10.0), (3.0, 10.0)],
            vec![(1.0, 10.0); 3],
        ];
        for points in others {
            assert_eq!(LinearCost::through(&points), None, "{points:?}");
        }
    }
}
