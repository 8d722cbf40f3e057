//! What a chain costs a core, in cycles.

use scale::{Frontier, Nanos, Splits};
use serde::{Deserialize, Serialize};

/// A network function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Cycles for a packet.
    pub cycles: u64,
    /// Cycles for 1,000 bytes of a packet.
    #[serde(default)]
    pub per_kilobyte: u64,
}

/// A chain, and what it costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chain {
    /// Its name.
    pub name: String,
    /// Its functions, in their order.
    pub functions: Vec<Function>,
    /// Cycles more for the first packet of a flow.
    pub setup: u64,
    /// Cycles more for a packet of a flow that its core has not served for `cools` nanoseconds.
    pub touch: u64,
    /// Nanoseconds after which the state of a flow has left the caches.
    pub cools: Nanos,
    /// Cycles more for the first packet of a flow on another core than before.
    pub adopt: u64,
    /// Where these figures are from.
    pub source: String,
}

impl Chain {
    /// Chains whose costs are fitted to what Ironside prints.
    pub const NAMES: [&'static str; 2] = ["chain1", "chain2"];

    /// A fitted chain. A full receive queue of 2,048 packets takes what Ironside's tables 4.3 and 4.4 print as p99 of Quadrant,
    /// about 3.0 and 5.5 ms; the cost of a flow is that of figure 4.3, where 160 packets or 80 flows are done in 200 µs.
    pub fn named(name: &str) -> Option<Self> {
        let of = |(name, cycles, per_kilobyte): (&str, u64, u64)| Function {
            name: name.into(),
            cycles,
            per_kilobyte,
        };
        let functions = match name {
            "chain1" => [("ACL", 1500, 0), ("LB", 1100, 0), ("Accounting", 900, 0)],
            "chain2" => [("ACL", 1500, 0), ("UrlFilter", 1900, 900), ("Encrypt", 1000, 1600)],
            _ => return None,
        };
        Some(Self {
            name: name.into(),
            functions: functions.map(of).to_vec(),
            setup: 2000,
            touch: 2100,
            cools: 100_000,
            adopt: 1000,
            source: "fitted to Ironside's tables 4.3 and 4.4 and figure 4.3".into(),
        })
    }

    /// Cycles for a packet of some bytes, of functions in a range.
    pub fn cycles(&self, size: u16, functions: std::ops::Range<usize>) -> u64 {
        let of =
            |function: &Function| function.cycles + function.per_kilobyte * u64::from(size) / 1000;
        self.functions[functions].iter().map(of).sum()
    }

    /// Cycles for a packet of all functions.
    pub fn all(&self, size: u16) -> u64 {
        self.cycles(size, 0..self.functions.len())
    }

    /// Cycles for so many packets of so many flows that are new: any of those that wait may be.
    fn together(&self, core: &CoreCosts, size: u16, (flows, packets): (u64, u64)) -> u64 {
        let batches = packets.div_ceil(core.batch.max(1) as u64);
        packets * self.all(size) + flows * (self.touch + self.setup) + batches * core.poll
    }

    /// Flows against packets that a core does in an epoch, in steps of a batch as long as there are whole ones.
    pub fn frontier(&self, core: &CoreCosts, size: u16, epoch: Nanos) -> Frontier {
        let cycles = core.cycles(epoch);
        let mut points = Vec::new();
        for flows in 0..MOST_FLOWS {
            let fits =
                |packets: u64| self.together(core, size, (flows.min(packets), packets)) <= cycles;
            let mut packets = 0;
            let step = (cycles / self.all(size).max(1)).next_power_of_two();
            let mut step = step.max(1);
            while step > 0 {
                if fits(packets + step) {
                    packets += step;
                }
                step /= 2;
            }
            let batch = core.batch.max(1) as u64;
            // Each flow has a packet.
            if packets < flows {
                break;
            }
            let whole = packets - packets % batch;
            points.push((flows as u32, if whole >= flows.max(1) { whole } else { packets } as u32));
        }
        Frontier::through(&points)
    }

    /// Flows active in an epoch against packets a second that a core bears, with a share of its time used.
    pub fn rates(&self, core: &CoreCosts, size: u16, (epoch, share): (Nanos, f64)) -> Frontier {
        let cycles = core.cycles(epoch) as f64 * share;
        let each = self.all(size) as f64 + core.poll as f64 / core.batch.max(1) as f64;
        let mut points = Vec::new();
        for flows in 0..MOST_FLOWS {
            let left = cycles - (flows * self.touch) as f64;
            let rate = left / each * 1e9 / epoch as f64;
            // A flow that is active has a packet.
            if left < each * flows as f64 || rate < 1.0 {
                break;
            }
            points.push((flows as u32, rate.min(4e9) as u32));
        }
        Frontier::through(&points)
    }

    /// Packets of one flow that a core does in an epoch if another one runs the last functions, by how many these are.
    pub fn splits(&self, core: &CoreCosts, size: u16, epoch: Nanos) -> Splits {
        let count = self.functions.len();
        let of = |last: usize| {
            let (head, tail) =
                (self.cycles(size, 0..count - last), self.cycles(size, count - last..count));
            (core.cycles(epoch).saturating_sub(self.touch) / head.max(tail).max(1)) as u32
        };
        Splits((1..count).map(of).collect())
    }
}

/// Flows of frontiers at the most.
const MOST_FLOWS: u64 = 4096;

/// What a core costs besides the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreCosts {
    /// Cycles in a second.
    pub hertz: u64,
    /// Packets of a batch at the most.
    pub batch: usize,
    /// Cycles to take a batch from a receive queue and to send it.
    pub poll: u64,
    /// Cycles to put a batch into a software queue (§4.4.6: 40).
    pub put: u64,
    /// Cycles to take a batch out of one (§4.4.6: 32).
    pub take: u64,
}

impl Default for CoreCosts {
    fn default() -> Self {
        Self { hertz: 2_800_000_000, batch: 32, poll: 150, put: 40, take: 32 }
    }
}

impl CoreCosts {
    /// Cycles in some time.
    pub fn cycles(&self, time: Nanos) -> u64 {
        (u128::from(time) * u128::from(self.hertz) / 1_000_000_000) as u64
    }

    /// The time of some cycles, rounded up.
    pub fn time(&self, cycles: u64) -> Nanos {
        let hertz = self.hertz.max(1);
        match cycles.checked_mul(1_000_000_000) {
            Some(all) => all.div_ceil(hertz),
            None => (u128::from(cycles) * 1_000_000_000).div_ceil(u128::from(hertz)) as u64,
        }
    }
}

/// Cycles that Ironside's core mapper takes with so many packets queued: table 4.9, with lines between.
pub(crate) fn mapper_cycles(queued: usize) -> u64 {
    const TABLE: [(u64, u64); 5] =
        [(0, 1300), (128, 4200), (256, 7100), (512, 7700), (1024, 12_200)];
    let queued = queued as u64;
    for pair in TABLE.windows(2) {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        if queued <= to {
            return low + (high - low) * (queued - from) / (to - from);
        }
    }
    12_200 * queued / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> Chain {
        let function = |cycles| Function { name: "f".into(), cycles, per_kilobyte: 0 };
        let functions = [1000, 2000, 500].map(function).to_vec();
        let (setup, touch, cools, adopt) = (0, 2800, 100_000, 0);
        Chain { name: "c".into(), functions, setup, touch, cools, adopt, source: String::new() }
    }

    /// By hand: 200 µs are 560,000 cycles; 3,500 a packet, 2,800 a flow, 150 a batch.
    #[test]
    fn frontiers_are_what_fits_into_an_epoch() {
        let core = CoreCosts::default();
        let frontier = chain().frontier(&core, 64, 200_000);
        assert_eq!(frontier.packets(1), 128, "158 packets would fit: four whole batches");
        // 96 packets take 336,450: 79 flows are left.
        assert_eq!(frontier.packets(79), 96);
        assert_eq!(frontier.packets(80), 95);
        // In 50 µs 38 packets of one flow fit: one batch. With 14 flows less than a batch.
        let short = chain().frontier(&core, 64, 50_000);
        assert_eq!((short.packets(1), short.packets(10), short.packets(14)), (32, 31, 28));
    }

    #[test]
    fn whales_are_worth_their_slower_half() {
        let splits = chain().splits(&CoreCosts::default(), 64, 200_000);
        assert_eq!(splits, Splits(vec![(560_000 - 2800) / 3000, (560_000 - 2800) / 2500]));
    }

    #[test]
    fn the_mapper_takes_what_table_4_9_prints() {
        assert_eq!(
            [128, 256, 512, 1024, 2048].map(mapper_cycles),
            [4200, 7100, 7700, 12_200, 24_400]
        );
        assert_eq!(mapper_cycles(192), 5650);
    }
}
