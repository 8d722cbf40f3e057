//! Traffic with superbursts: flows that begin, send trains of packets, pause and end.
//!
//! Sizes, durations and arrivals follow what Ironside prints of its traces (§4.4.1). A whale is a flow with a train whose packets
//! come faster than a core serves them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::random::{LogUniform, Pareto, Random};
use crate::trace::{Arrival, Key, Trace};

/// What traffic is generated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Flows that begin in a second, on average.
    pub arrivals: f64,
    /// The same while many begin at once.
    pub peak: f64,
    /// Share of the time in which many begin at once.
    pub crowded: f64,
    /// Nanoseconds for which that lasts; it comes again and again at equal distances.
    pub crowd: f64,
    /// Share of flows that are a single packet.
    pub single: f64,
    /// Packets of the others, at the least and at the most.
    pub packets: [f64; 2],
    /// Shape of the distribution of packets over flows.
    pub shape: f64,
    /// Nanoseconds that a flow lasts at the most.
    pub duration: f64,
    /// Nanoseconds between packets of a flow, at the least and at the most, on average over its life.
    pub pace: [f64; 2],
    /// Packets of a train, on average.
    pub train: f64,
    /// Nanoseconds between packets of a train.
    pub gap: f64,
    /// Share of flows that are whales: they send a train that is faster than a core, and a last packet much later.
    pub whales: f64,
    /// Packets of a whale on average, nanoseconds between these, and nanoseconds before its last packet.
    pub whale: [f64; 3],
    /// Bytes of packets on average; they have 64, 576 or 1,514.
    pub size: f64,
    /// Seed of all choices.
    pub seed: u64,
}

impl Traffic {
    /// Like the backbone trace of Ironside's evaluation.
    pub fn backbone() -> Self {
        Self {
            arrivals: 31_200.0,
            peak: 51_200.0,
            crowded: 0.071,
            crowd: 8.8e6,
            single: 0.04,
            packets: [10.6, 208_000.0],
            shape: 3.0,
            duration: 52e9,
            pace: [100e3, 345e3],
            train: 6.0,
            gap: 1_200.0,
            whales: 0.001_4,
            whale: [360.0, 2_760.0, 250e6],
            size: 988.0,
            seed: 1,
        }
    }

    /// Like the trace of an autonomous system of Ironside's evaluation.
    pub fn autonomous_system() -> Self {
        Self {
            arrivals: 10_100.0,
            peak: 39_000.0,
            crowded: 0.06,
            crowd: 8.4e6,
            single: 0.29,
            packets: [17.1, 527_000.0],
            shape: 2.5,
            duration: 205e9,
            pace: [100e3, 426e3],
            train: 4.2,
            whales: 0.001_8,
            whale: [370.0, 8_080.0, 250e6],
            size: 976.0,
            ..Self::backbone()
        }
    }

    /// Whether it can be.
    ///
    /// # Errors
    /// What cannot.
    pub fn check(&self) -> Result<(), String> {
        let Self {
            arrivals,
            peak,
            crowded,
            crowd,
            single,
            packets,
            shape,
            duration,
            pace,
            train,
            gap,
            whales,
            whale,
            ..
        } = self;
        let is_share = |of: &f64| (0.0..=1.0).contains(of);
        let bad = [
            (
                !(0.0..=1e8).contains(arrivals) || !(0.0..=1e8).contains(peak),
                "arrivals and peak are 0 to 100,000,000",
            ),
            (
                ![crowded, whales, single].into_iter().all(is_share) || *crowded == 1.0,
                "crowded, whales and single are shares",
            ),
            (!(1.0..=1e12).contains(crowd), "crowd is 1 ns to 1,000 s"),
            (
                !(1.0..=4e9).contains(&packets[0])
                    || !(packets[0]..=4e9).contains(&packets[1])
                    || !(0.01..=10.0).contains(shape),
                "packets are two rising numbers from 1 on, shape is 0.01 to 10",
            ),
            (
                !(1.0..=1e12).contains(duration) || arrivals * duration > 1e17,
                "duration is 1 ns to 1,000 s, with 100,000,000 flows at the most",
            ),
            (
                !(1.0..=1e12).contains(&pace[0]) || !(pace[0]..=1e12).contains(&pace[1]),
                "pace is two rising times",
            ),
            (
                !(1.0..=1e6).contains(train) || !(0.0..=1e12).contains(gap),
                "train is 1 to 1,000,000 packets, gap up to 1,000 s",
            ),
            (
                !(1.0..=1e9).contains(&whale[0])
                    || !whale[1..].iter().all(|time| (0.0..=1e12).contains(time)),
                "whale is packets and two times in nanoseconds",
            ),
        ];
        bad.iter().find(|(is_bad, _)| *is_bad).map_or(Ok(()), |(_, why)| Err((*why).into()))
    }
}

/// A flow that lives.
#[derive(Clone, Debug)]
struct Life {
    key: Key,
    left: u32,
    /// Packets left of the train, and nanoseconds between these.
    train: (u32, u64),
    /// Nanoseconds of the pauses between trains, on average.
    pause: f64,
    is_whale: bool,
}

/// Chance that decides the size of a flow.
#[derive(Clone, Copy)]
struct Draw {
    /// Nothing of a flow of a single packet.
    packets: Option<f64>,
    pace: f64,
}

/// Traffic as it comes.
pub struct Generated {
    traffic: Traffic,
    packets: Pareto,
    paces: LogUniform,
    random: Random,
    /// Chance of whales, and of sizes: apart, so that dialling one changes nothing of the others.
    whales: Random,
    sizes: Random,
    lives: Vec<Life>,
    free: Vec<u32>,
    /// When the next packet of each flow comes.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// When the next flow begins, and the next whale.
    begins: u64,
    surfaces: u64,
    /// Whether many begin at once, and until when that is so.
    crowd: (bool, u64),
}

impl Generated {
    /// That of a seed, with those flows already in progress that would be.
    pub fn new(traffic: &Traffic) -> Self {
        let mut of = Self {
            traffic: traffic.clone(),
            packets: Pareto::new(traffic.packets[0], traffic.packets[1], traffic.shape),
            paces: LogUniform::new(traffic.pace[0], traffic.pace[1]),
            random: Random::new(traffic.seed),
            whales: Random::new(traffic.seed ^ 0x57a1e),
            sizes: Random::new(traffic.seed ^ 0x512e),
            lives: Vec::new(),
            free: Vec::new(),
            next: BinaryHeap::new(),
            begins: 0,
            surfaces: 0,
            crowd: (false, 0),
        };
        of.populate();
        of.surfaces = of.next_whale(0);
        of
    }

    /// Flows that began before the start and have not ended.
    fn populate(&mut self) {
        let (arrivals, duration) = (self.traffic.arrivals, self.traffic.duration);
        let count = (arrivals * duration / 1e9) as u64;
        // Nearly all of them have ended, which is plain from the draws: all but one in a thousand have fewer packets than this.
        let rare = 1.0 - 1e-3;
        let most = self.packets.of(rare) * self.traffic.pace[1] * 1.001;
        for _ in 0..count {
            let began = self.random.unit() * duration;
            let draw = self.draw();
            if began > most && draw.packets.is_none_or(|unit| unit < rare) {
                continue;
            }
            let (packets, pace) = self.size(draw);
            let lasts = packets * pace;
            if lasts > began {
                let left = (packets * (1.0 - began / lasts)).max(1.0);
                let at = self.random.exponential(pace * self.traffic.train) as u64;
                self.live(at, left, pace);
            }
        }
    }

    /// Draws what decides the size of a flow.
    fn draw(&mut self) -> Draw {
        let is_single = self.random.chance(self.traffic.single);
        let packets = (!is_single).then(|| self.random.unit());
        Draw { packets, pace: self.random.unit() }
    }

    /// Packets of a flow, and nanoseconds between these on average.
    fn size(&self, draw: Draw) -> (f64, f64) {
        let packets = draw.packets.map_or(1.0, |unit| self.packets.of(unit));
        (packets, self.paces.of(draw.pace).min(self.traffic.duration / packets))
    }

    fn live(&mut self, at: u64, packets: f64, pace: f64) {
        let pause = (pace - self.traffic.gap).max(1.0) * self.traffic.train;
        let mut life = Life {
            key: key(&mut self.random),
            left: packets as u32,
            train: (0, 0),
            pause,
            is_whale: false,
        };
        self.depart(&mut life);
        self.begin(at, life);
    }

    /// A flow of a single train, and a packet much later.
    fn whale(&mut self, at: u64) {
        let [packets, gap, pause] = self.traffic.whale;
        let count = 1 + self.whales.exponential(packets - 1.0) as u32;
        let life = Life {
            key: key(&mut self.whales),
            left: count + 1,
            train: (count, gap as u64),
            pause,
            is_whale: true,
        };
        self.begin(at, life);
    }

    fn begin(&mut self, at: u64, life: Life) {
        let number = match self.free.pop() {
            Some(number) => {
                self.lives[number as usize] = life;
                number
            }
            None => {
                self.lives.push(life);
                self.lives.len() as u32 - 1
            }
        };
        self.next.push(Reverse((at, number)));
    }

    /// Begins a train.
    fn depart(&mut self, life: &mut Life) {
        let Traffic { train, gap, .. } = self.traffic;
        life.train = (1 + self.random.exponential(train - 1.0) as u32, gap as u64);
    }

    /// Begins the next flow or whale, whichever is first.
    fn begin_next(&mut self) {
        if self.surfaces < self.begins {
            self.whale(self.surfaces);
            self.surfaces = self.next_whale(self.surfaces);
            return;
        }
        let at = self.begins;
        if at >= self.crowd.1 {
            let Traffic { crowd, crowded, .. } = self.traffic;
            let is_on = !self.crowd.0 && crowded > 0.0;
            let mean = if is_on { crowd } else { crowd * (1.0 - crowded) / crowded.max(1e-9) };
            self.crowd = (is_on, self.crowd.1.max(1) + 1 + mean.min(1e18) as u64);
        }
        let draw = self.draw();
        let (packets, pace) = self.size(draw);
        self.live(at, packets, pace);
        let Traffic { arrivals, peak, crowded, .. } = self.traffic;
        let calm = ((arrivals - crowded * peak) / (1.0 - crowded)).max(1.0);
        let rate = if self.crowd.0 { peak } else { calm };
        self.begins += 1 + self.random.exponential(1e9 / rate) as u64;
    }

    /// When the next whale comes, after a time.
    fn next_whale(&mut self, after: u64) -> u64 {
        let rate = self.traffic.arrivals * self.traffic.whales;
        match rate > 0.0 {
            true => after + 1 + self.whales.exponential(1e9 / rate).min(1e18) as u64,
            false => u64::MAX,
        }
    }

    /// Bytes of a packet.
    fn bytes(&mut self) -> u16 {
        // Of small and full packets as many as the mean asks for, and a tenth of 576 bytes.
        let full = ((self.traffic.size - 57.6 - 0.9 * 64.0) / (1514.0 - 64.0)).clamp(0.0, 0.9);
        match f64::from(self.sizes.below(1 << 20)) / f64::from(1 << 20) {
            share if share < full => 1514,
            share if share < full + 0.1 => 576,
            _ => 64,
        }
    }
}

/// A new flow.
fn key(random: &mut Random) -> Key {
    Key {
        source: random.below(u32::MAX),
        destination: random.below(u32::MAX),
        ports: [random.below(65_536) as u16, 443],
        protocol: 6,
    }
}

impl Trace for Generated {
    fn next(&mut self) -> Result<Option<Arrival>, String> {
        loop {
            let begins = self.begins.min(self.surfaces);
            let due = self.next.peek().map_or(begins, |Reverse((at, _))| *at);
            if begins <= due {
                self.begin_next();
                continue;
            }
            let Some(Reverse((at, number))) = self.next.pop() else { return Ok(None) };
            let mut life = self.lives[number as usize].clone();
            life.left = life.left.saturating_sub(1);
            let size = self.bytes();
            let arrival = Arrival { at, key: life.key, size };
            if life.left == 0 {
                self.free.push(number);
                return Ok(Some(arrival));
            }
            life.train.0 -= 1;
            let wait = match life.train.0 {
                0 if life.is_whale => {
                    life.train.0 = 1;
                    life.pause as u64
                }
                0 => {
                    self.depart(&mut life);
                    self.random.exponential(life.pause) as u64
                }
                _ => life.train.1,
            };
            self.next.push(Reverse((at + wait.max(1), number)));
            self.lives[number as usize] = life;
            return Ok(Some(arrival));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_packets_in_order() {
        let traffic = Traffic { duration: 1e9, ..Traffic::backbone() };
        let (mut a, mut b) = (Generated::new(&traffic), Generated::new(&traffic));
        let mut last = 0;
        for _ in 0..100_000 {
            let arrival = a.next().unwrap().unwrap();
            assert!(arrival.at >= last);
            last = arrival.at;
            assert_eq!(b.next().unwrap(), Some(arrival));
        }
    }

    #[test]
    fn bytes_and_arrivals_are_what_was_asked_for() {
        let traffic = Traffic { duration: 1e9, ..Traffic::backbone() };
        let mut of = Generated::new(&traffic);
        let mean = (0..200_000).map(|_| f64::from(of.bytes())).sum::<f64>() / 200_000.0;
        assert!((mean / 988.0 - 1.0).abs() < 0.02, "{mean}");
        let mut keys = std::collections::HashSet::new();
        let before = of.lives.len();
        let mut time = 0;
        while time < 1_000_000_000 {
            let arrival = of.next().unwrap().unwrap();
            time = arrival.at;
            keys.insert(arrival.key);
        }
        let began = keys.len() as f64 - before as f64;
        assert!((began / 31_200.0 - 1.0).abs() < 0.1, "{began}");
    }
}
