//! Arrival processes: when packets are due.
//!
//! Times come from a rate, a process and a seed alone, so that two runs have the same. They do not depend on whether
//! anything was sent or taken: the load is open.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A process by which packets arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// At equal distances, as RFC 2544 has it.
    #[default]
    Constant,
    /// With distances that are distributed exponentially: many sources that know nothing of each other.
    Poisson,
    /// On and off: at equal distances for a while, then not at all for a while. Both last for times that are distributed
    /// exponentially; their means are in nanoseconds. The rate while it is on is so much greater that the mean is what
    /// was asked for.
    Bursts {
        /// The mean of the times with packets.
        on: f64,
        /// The mean of the times without.
        off: f64,
    },
    /// So many packets at once, at equal distances.
    Trains(u32),
    /// At the distances that a capture recorded, scaled to the mean rate.
    Recorded,
}

impl Arrivals {
    /// What can be asked for, for help texts.
    pub const NAMES: &'static str = "constant, poisson, trains=N with N packets at once, bursts=ON:OFF with mean durations such as 200us:1ms, or recorded";

    /// The times at which packets are due, in nanoseconds from the start of the load, at a mean rate in packets per
    /// second. Those of a capture come by [`DueTimes::recorded`]; here they are at equal distances.
    pub fn times(self, rate: f64, seed: u64) -> DueTimes {
        let gap = 1e9 / rate;
        let mut times = DueTimes {
            arrivals: self,
            gap,
            random: fastrand::Rng::with_seed(seed),
            number: 0,
            time: 0.0,
            silence: 0.0,
            on_until: 0.0,
            distances: Arc::default(),
        };
        if let Self::Bursts { on, off } = self {
            times.gap = gap * on / (on + off);
            times.on_until = times.exponential(on);
        }
        times
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Poisson => f.write_str("poisson"),
            Self::Recorded => f.write_str("recorded"),
            Self::Trains(packets) => write!(f, "trains={packets}"),
            Self::Bursts { on, off } => write!(f, "bursts={}us:{}us", on / 1e3, off / 1e3),
        }
    }
}

/// Nanoseconds of a duration such as `10us`.
fn duration(text: &str) -> Option<f64> {
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(at);
    let unit = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let time = number.parse::<f64>().ok()? * unit;
    (1.0..=3.6e12).contains(&time).then_some(time)
}

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "constant" => Ok(Self::Constant),
            None if text == "poisson" => Ok(Self::Poisson),
            None if text == "recorded" => Ok(Self::Recorded),
            Some(("trains", packets)) => {
                let packets = packets.parse().ok().filter(|packets| (1..=65_536).contains(packets));
                let packets = packets.ok_or_else(|| {
                    format!("'{text}': trains=N takes a number of packets from 1 to 65536, such as trains=32")
                })?;
                Ok(Self::Trains(packets))
            }
            Some(("bursts", means)) => {
                let means = means.split_once(':');
                let means = means.and_then(|(on, off)| Some((duration(on)?, duration(off)?)));
                let (on, off) = means.ok_or_else(|| {
                    format!("'{text}': bursts=ON:OFF takes two durations of 1ns to 1h, such as bursts=200us:1ms")
                })?;
                Ok(Self::Bursts { on, off })
            }
            _ => Err(format!("'{text}': arrivals are {}", Self::NAMES)),
        }
    }
}

/// Times at which packets are due, one after another.
#[derive(Clone, Debug)]
pub struct DueTimes {
    arrivals: Arrivals,
    /// The mean distance; of bursts, that while they last.
    gap: f64,
    random: fastrand::Rng,
    number: u64,
    /// Time that passed so far; of bursts, that while they were on.
    time: f64,
    /// Time that bursts were off.
    silence: f64,
    /// When the burst ends, as `time` goes.
    on_until: f64,
    /// The distances of a capture's packets to the next one, over and over.
    distances: Arc<[f64]>,
}

impl DueTimes {
    /// At distances from each packet to the next, over and over, from a packet on: so many of them are scaled to a mean
    /// rate in packets per second.
    pub fn recorded(distances: Arc<[f64]>, rate: f64, first: u64, count: u64) -> Self {
        let mut times = Arrivals::Recorded.times(rate, 0);
        if let Ok(all @ 1..) = u64::try_from(distances.len()) {
            let rest = distances.iter().cycle().skip((first % all) as usize);
            let rest = rest.take((count % all) as usize);
            let loops = (count / all) as f64 * distances.iter().sum::<f64>();
            let sum = loops + rest.sum::<f64>();
            // Packets that came all at once come so again.
            times.gap *= if sum > 0.0 { count as f64 / sum } else { 1.0 };
            times.number = first;
        }
        times.distances = distances;
        times
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.random.f64()).ln() * mean
    }

    /// When the next packet is due: not before the one before it.
    pub fn next_due(&mut self) -> u64 {
        match self.arrivals {
            Arrivals::Recorded if !self.distances.is_empty() => {
                let due = self.time;
                let at = (self.number % self.distances.len() as u64) as usize;
                self.time += self.distances[at] * self.gap;
                self.number += 1;
                return due as u64;
            }
            Arrivals::Constant | Arrivals::Recorded => self.time = self.number as f64 * self.gap,
            Arrivals::Trains(packets) => {
                let packets = u64::from(packets.max(1));
                self.time = (self.number / packets * packets) as f64 * self.gap;
            }
            Arrivals::Poisson => self.time += self.exponential(self.gap),
            Arrivals::Bursts { on, off } => {
                while self.time >= self.on_until {
                    self.silence += self.exponential(off);
                    self.on_until += self.exponential(on);
                }
                let due = self.time + self.silence;
                self.time += self.gap;
                self.number += 1;
                return due as u64;
            }
        }
        self.number += 1;
        self.time as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(arrivals: &str, rate: f64, seed: u64, count: usize) -> Vec<u64> {
        let mut times = arrivals.parse::<Arrivals>().unwrap().times(rate, seed);
        (0..count).map(|_| times.next_due()).collect()
    }

    /// Mean and variance of how many packets are due in each slot of so many nanoseconds.
    fn counts(times: &[u64], slot: u64) -> (f64, f64) {
        let slots = times.last().unwrap() / slot;
        let mut counts = vec![0f64; slots as usize];
        for time in times {
            if let Some(count) = counts.get_mut((time / slot) as usize) {
                *count += 1.0;
            }
        }
        let mean = counts.iter().sum::<f64>() / slots as f64;
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / slots as f64;
        (mean, variance)
    }

    #[track_caller]
    fn is_close(found: f64, truth: f64, by: f64) {
        assert!((found / truth - 1.0).abs() < by, "{found}, should be {truth}");
    }

    #[test]
    fn constant_distances_do_not_drift() {
        let times = draw("constant", 3e6, 1, 3_000_001);
        assert_eq!((times[0], times[3], times[3_000_000]), (0, 1000, 1_000_000_000));
    }

    #[test]
    fn trains_have_all_their_packets_at_once_and_the_rate() {
        let times = draw("trains=4", 1e6, 1, 4001);
        assert_eq!(times[..9], [0, 0, 0, 0, 4000, 4000, 4000, 4000, 8000]);
        assert_eq!(times[4000], 4_000_000);
    }

    #[test]
    fn recorded_distances_are_scaled_and_come_again() {
        let due = |distances: &[f64], first, count| -> Vec<u64> {
            let mut times = DueTimes::recorded(Arc::from(distances), 1e6, first, count);
            (0..=count).map(|_| times.next_due()).collect()
        };
        let odd = [0.5, 2.0, 0.5];
        assert_eq!(due(&odd, 0, 6), [0, 500, 2500, 3000, 3500, 5500, 6000]);
        // The rate is that of the packets that are offered, wherever they begin.
        assert_eq!(due(&odd, 1, 2), [0, 1600, 2000]);
        assert_eq!(due(&odd, 5, 4), [0, 571, 1142, 3428, 4000]);
        for (first, count) in [(0, 1), (1, 7), (2, 300)] {
            assert!(due(&odd, first, count).last().unwrap().abs_diff(count * 1000) <= 1);
        }
        assert_eq!((due(&[0.0], 3, 3), due(&[], 3, 3)), (vec![0; 4], vec![0, 1000, 2000, 3000]));
    }

    #[test]
    fn counts_of_a_poisson_process_vary_as_much_as_their_mean() {
        for seed in 1..4 {
            let times = draw("poisson", 1e6, seed, 1_000_000);
            let (mean, variance) = counts(&times, 100_000);
            is_close(mean, 100.0, 0.01);
            is_close(variance, 100.0, 0.05);
            // A distance is longer than its mean with the probability 1/e.
            let longer = times.windows(2).filter(|pair| pair[1] - pair[0] > 1000).count();
            is_close(longer as f64 / 1e6, (-1f64).exp(), 0.01);
        }
    }

    #[test]
    fn bursts_have_the_rate_and_the_lengths_that_were_asked_for() {
        let times = draw("bursts=100us:900us", 1e6, 5, 2_000_000);
        let elapsed = *times.last().unwrap() as f64;
        is_close(times.len() as f64 / elapsed * 1e9, 1e6, 0.05);
        // Ten times the rate while they last, and silence between them.
        let pauses: Vec<u64> =
            times.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 101).collect();
        let mean = pauses.iter().sum::<u64>() as f64 / pauses.len() as f64;
        is_close(mean, 900_100.0, 0.05);
        let packets = times.len() as f64 / pauses.len() as f64;
        is_close(packets, 1000.0, 0.05);
        let gaps = times.windows(2).map(|pair| pair[1] - pair[0]);
        assert_eq!(
            gaps.filter(|gap| *gap == 100 || *gap == 99).count() + pauses.len(),
            times.len() - 1
        );
        // Far more varied than a Poisson process.
        let (mean, variance) = counts(&times, 100_000);
        assert!(variance > 100.0 * mean, "{mean} {variance}");
    }

    #[test]
    fn a_seed_says_it_all_and_time_does_not_go_back() {
        for arrivals in ["constant", "poisson", "bursts=1us:5ms"] {
            let times = draw(arrivals, 5e5, 9, 10_000);
            assert_eq!(times, draw(arrivals, 5e5, 9, 10_000));
            assert!(times.is_sorted(), "{arrivals}");
            assert_eq!(arrivals == "constant", times == draw(arrivals, 5e5, 10, 10_000));
        }
    }

    #[test]
    fn text_is_understood_or_refused() {
        for text in ["constant", "poisson", "trains=32", "bursts=0.5us:2500us"] {
            assert_eq!(text.parse::<Arrivals>().unwrap().to_string(), text);
        }
        let wrong = [
            "",
            "trains=0",
            "trains=",
            "Poisson",
            "bursts",
            "bursts=1:2",
            "bursts=1ms",
            "bursts=0s:1s",
            "bursts=1s:-1s",
            "bursts=1ms:2h",
            "poisson=1",
        ];
        for wrong in wrong {
            assert!(wrong.parse::<Arrivals>().is_err(), "{wrong}");
        }
    }
}
