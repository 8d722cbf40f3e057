//! Which takes a burst: a program, or the elements in whose place it stands.
//!
//! Both do the same, and share all state, so each burst may be processed by either. Which one takes less time depends on the
//! chain, the traffic and the processor, so both are timed on a few bursts now and then, and the faster one goes on until
//! the next trial. Databases choose among implementations of an operator likewise (Răducanu, Boncz, Zukowski: Micro
//! Adaptivity in Vectorwise, SIGMOD 2013).

use std::time::{Duration, Instant};

use super::warmth::{Filling, WARMING, Warmth};

/// Which bursts programs take, and which the elements in their place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramUse {
    /// The program takes all bursts. Nothing depends on time, so that runs repeat.
    #[default]
    Always,
    /// The program or the elements, whichever took less time when both were tried.
    WhereFaster,
    /// One or the other, drawn with this seed for each burst: for tests.
    Drawn(u64),
}

/// Who takes a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Program,
    Elements,
}

/// Bursts of a trial that are timed, half of which each one takes.
const TRIAL: u32 = 16;
/// Bursts that one takes in a row while they are timed.
const RUN: u32 = 4;
/// The least and the most bursts between trials.
const LEAST: u32 = 128;
const MOST: u32 = 1 << 14;
/// Trials cost at most the two-hundredth part, unless the program's flow cache fills.
const SHARE: f32 = 200.0;
/// Who takes bursts changes only for a gain of so much.
const GAIN: f32 = 0.98;
/// Between trials, one burst of so many is timed.
const WATCHED: u32 = 32;
/// A trial comes early once bursts take so many times what they took in the last one.
const SLOWER: f32 = 1.5;

/// Bursts that one of both took: nanoseconds and packets.
#[derive(Clone, Copy, Default)]
struct Taken {
    time: f32,
    packets: f32,
    /// The burst that took longest, which is left out: something else may have interrupted it.
    longest: (f32, f32),
}

impl Taken {
    fn add(&mut self, time: f32, packets: f32) {
        self.time += time;
        self.packets += packets;
        if time > self.longest.0 {
            self.longest = (time, packets);
        }
    }

    /// Nanoseconds per packet.
    fn cost(&self) -> Option<f32> {
        let packets = self.packets - self.longest.1;
        (packets > 0.0).then(|| (self.time - self.longest.0) / packets)
    }
}

/// What was learned of a program and its elements.
pub(super) struct Preference {
    by: By,
    /// Bursts until the next trial ends.
    left: u32,
    /// Bursts between the last trial and the next.
    interval: u32,
    taken: [Taken; 2],
    /// How long the program takes in relation to the elements, over some trials.
    ratio: Option<f32>,
    filling: Filling,
    /// Nanoseconds per packet of whoever takes bursts: in the last trial, and since.
    expected: f32,
    since: f32,
}

impl Default for Preference {
    fn default() -> Self {
        Self {
            by: By::Program,
            left: WARMING + TRIAL,
            interval: LEAST / 2,
            taken: Default::default(),
            ratio: None,
            filling: Filling::default(),
            expected: f32::INFINITY,
            since: 0.0,
        }
    }
}

impl Preference {
    /// Who takes the next burst, and whether it is to be timed.
    #[inline]
    pub(super) fn next(&mut self) -> (By, bool) {
        self.left = self.left.saturating_sub(1);
        if self.left >= TRIAL {
            let is_warming = self.left < TRIAL + self.filling.bursts();
            let by = if is_warming { By::Program } else { self.by };
            return (by, by == self.by && self.left.is_multiple_of(WATCHED));
        }
        let is_program = (self.left / RUN).is_multiple_of(2);
        (if is_program { By::Program } else { By::Elements }, true)
    }

    /// Who takes bursts between trials.
    pub(super) fn by(&self) -> By {
        self.by
    }

    /// A burst of so many packets was taken in this time; `warmth` is that of the program's flow cache.
    #[cold]
    pub(super) fn learn(&mut self, by: By, time: Duration, packets: usize, warmth: Warmth) {
        let (time, packets) = (time.as_nanos() as f32, packets as f32);
        if packets == 0.0 {
            return;
        }
        if self.left >= TRIAL {
            self.watch(time / packets);
            return;
        }
        if self.left == TRIAL - 1 {
            self.filling.begin(warmth);
        }
        self.taken[by as usize].add(time, packets);
        if self.left == 0 {
            self.judge(warmth);
        }
    }

    /// Whoever takes bursts took so many nanoseconds per packet between trials.
    fn watch(&mut self, cost: f32) {
        // A burst that was interrupted is no change of traffic.
        self.since += (cost.min(4.0 * self.expected) - self.since) / 8.0;
        if self.since > SLOWER * self.expected {
            self.interval = LEAST;
            self.left = TRIAL;
        }
    }

    /// A trial ended.
    fn judge(&mut self, warmth: Warmth) {
        let [program, elements] = std::mem::take(&mut self.taken).map(|taken| taken.cost());
        if let (Some(program), Some(elements)) = (program, elements)
            && elements > 0.0
        {
            let new = program / elements;
            let ratio = self.ratio.map_or(new, |ratio| (ratio + new) / 2.0);
            self.ratio = Some(ratio);
            let by = match self.by {
                By::Program if ratio * GAIN > 1.0 => By::Elements,
                By::Elements if ratio < GAIN => By::Program,
                by => by,
            };
            if by != self.by {
                (self.by, self.interval) = (by, LEAST / 2);
                self.filling.reset();
            }
            let (loss, bursts, expected) = match self.by {
                By::Program => (1.0 / ratio - 1.0, TRIAL / 2, program),
                By::Elements => (ratio - 1.0, TRIAL / 2 + self.filling.bursts(), elements),
            };
            (self.expected, self.since) = (expected, expected);
            let most = (loss * bursts as f32 * SHARE) as u32;
            self.interval = most.clamp(LEAST, MOST).min(self.interval * 2);
            match self.by {
                By::Program => self.filling.skip(warmth),
                By::Elements if self.filling.go_on(warmth, program, elements * GAIN) => {
                    self.interval = LEAST;
                }
                By::Elements => {}
            }
        }
        self.left = self.interval + self.filling.bursts() + TRIAL;
    }
}

/// A burst that is timed.
pub(super) struct Timed {
    pub(super) stage: u32,
    pub(super) by: By,
    packets: usize,
    begin: Instant,
    /// Deliveries that were on the stack already: once no more are left, the burst is at the end of its path.
    depth: usize,
}

#[expect(clippy::disallowed_methods, reason = "code takes real time, whatever time it simulates")]
impl Timed {
    #[cold]
    pub(super) fn begin(stage: u32, by: By, packets: usize, depth: usize) -> Self {
        Self { stage, by, packets, begin: Instant::now(), depth }
    }

    /// Whether it is at the end of its path, given how many deliveries are on the stack.
    #[inline]
    pub(super) fn is_over(&self, depth: usize) -> bool {
        depth <= self.depth
    }

    /// How long it took, and its packets.
    pub(super) fn end(&self) -> (Duration, usize) {
        (self.begin.elapsed(), self.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who took each of so many bursts of 32 packets that take this long by program and by elements.
    fn run(preference: &mut Preference, bursts: usize, cost: [u64; 2]) -> [usize; 2] {
        let mut taken = [0; 2];
        for _ in 0..bursts {
            let (by, is_timed) = preference.next();
            taken[by as usize] += 1;
            if is_timed {
                let time = Duration::from_nanos(32 * cost[by as usize]);
                preference.learn(by, time, 32, Warmth::default());
            }
        }
        taken
    }

    #[test]
    fn the_faster_one_takes_nearly_all() {
        for (cost, slower) in [([100, 50], 0), ([100, 300], 1), ([100, 1000], 1), ([100, 94], 0)] {
            let mut preference = Preference::default();
            run(&mut preference, 10_000, cost);
            let taken = run(&mut preference, 100_000, cost);
            let loss = taken[slower] as u64 * (cost[slower] - cost[1 - slower]);
            let all = 100_000 * cost[1 - slower];
            assert!(loss * 80 < all, "{cost:?}: {taken:?}");
        }
    }

    #[test]
    fn a_program_gets_the_time_to_fill_its_flow_cache() {
        // A packet with an entry takes a fifth of the time, so the program wins once about two thirds have one.
        let fill = |full: f32, cost: fn(f32) -> f32| {
            let (mut preference, mut warmth) = (Preference::default(), Warmth::default());
            let mut taken = [0; 2];
            for _ in 0..6_000 {
                let (by, is_timed) = preference.next();
                taken[by as usize] += 1;
                let came = warmth.packets as f32 / full;
                let hits = (came - 3.0).clamp(0.0, 1.0);
                if by == By::Program {
                    warmth.packets += 32;
                    warmth.found += (32.0 * hits) as u64;
                    warmth.seen += ((32.0 - 32.0 * hits) * came.min(3.0)) as u64;
                }
                let cost = [cost(hits), 50.0][by as usize];
                if is_timed {
                    preference.learn(by, Duration::from_nanos((32.0 * cost) as u64), 32, warmth);
                }
            }
            (preference.by(), taken)
        };
        for full in [1_000.0, 10_000.0] {
            let (by, taken) = fill(full, |hits| 100.0 - 80.0 * hits);
            assert_eq!(by, By::Program, "{full}: {taken:?}");
        }
        // One that hits do not help gives up.
        let (by, taken) = fill(10_000.0, |hits| 100.0 - 20.0 * hits);
        assert!(by == By::Elements && taken[0] < 3_000, "{taken:?}");
        // One without a flow cache does not try.
        let taken = run(&mut Preference::default(), 12_000, [100, 50]);
        assert!(taken[0] < 500, "{taken:?}");
    }

    #[test]
    fn a_change_of_traffic_is_noticed_before_the_next_trial() {
        let mut preference = Preference::default();
        run(&mut preference, 100_000, [50, 600]);
        let taken = run(&mut preference, 2_000, [900, 600]);
        assert!(taken[1] > 1_000, "{taken:?}");
        let taken = run(&mut preference, 6_000, [50, 600]);
        assert!(taken[0] > 3_000, "{taken:?}");
    }

    #[test]
    fn one_interrupted_burst_changes_nothing() {
        let mut preference = Preference::default();
        run(&mut preference, 10_000, [50, 60]);
        for burst in 0..100_000 {
            let (by, is_timed) = preference.next();
            let time = match by {
                By::Program if burst % 1_000 == 0 => 10_000_000,
                By::Program => 1_600,
                By::Elements => 1_920,
            };
            if is_timed {
                preference.learn(by, Duration::from_nanos(time), 32, Warmth::default());
            }
            assert_eq!(preference.by(), By::Program);
        }
    }

    #[test]
    fn empty_bursts_teach_nothing() {
        let mut preference = Preference::default();
        for _ in 0..100_000 {
            let (by, _) = preference.next();
            preference.learn(by, Duration::ZERO, 0, Warmth::default());
        }
        assert_eq!(preference.by(), By::Program);
    }
}
