//! REDQueue.

use ir::Model;
use net::{Batch, Packet};

use super::managed::{EARLY, FULL, Managed, RESET};
use crate::argument::{Nanoseconds, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::element_state::ElementState;
use crate::rate::show_real;

element! {
    /// REDQueue(MIN_THRESH, MAX_THRESH, MAX_P [, KEYWORDS]) -- stores packets in a queue with random early detection
    ///
    /// A first-in first-out queue with random early detection (Floyd and Jacobson, 1993): what Click's RED does
    /// in front of a queue, in one element. A moving average of the number of packets that wait is kept. While
    /// it is below MIN_THRESH, packets are taken in. From there to MAX_THRESH, the probability that one is
    /// marked or dropped grows from 0 to MAX_P, and from there to twice MAX_THRESH to 1; beyond, all are
    /// dropped. Without GENTLE, all are from MAX_THRESH on. Drops are spread evenly.
    ///
    /// Packets of IPv4 and IPv6 with their header marked that are ECN-capable (RFC 3168) are marked, as long as
    /// the average is not beyond MAX_THRESH; others go to output 1, or are dropped if that is not connected. So
    /// are new packets when CAPACITY wait.
    ///
    /// = KEYWORDS
    ///
    /// CAPACITY (number, default 1000): most that may wait.
    /// WEIGHT (number, default 0.002): how much a packet that comes adds to the average.
    /// PACKET_TIME (time, default 12us): how long a packet takes to be sent: the average falls while none waits.
    /// GENTLE (bool, default true): whether the probability grows beyond MAX_THRESH.
    /// ECN (bool, default true): whether packets are marked.
    ///
    /// = HANDLERS
    ///
    /// average (read): the average.
    /// length, byte_length, highwater_length (read): packets and bytes that wait; the most that waited.
    /// capacity (read, write): most that may wait.
    /// min_thresh, max_thresh, max_p (read, write): the arguments.
    /// drops, marks (read): packets that were dropped early, or marked.
    /// full (read): packets for which there was no room.
    /// reset_counts (write): resets these counts.
    /// reset (write): empties the queue; its packets go to output 1 or are dropped.
    ///
    /// = EXAMPLE
    ///
    /// ... -> REDQueue(50, 150, 0.1) -> BandwidthRatedUnqueue(12MBps) -> ...
    ///
    /// = SEE ALSO
    ///
    /// CoDelQueue, Queue, BandwidthRatedUnqueue
    REDQueue { category: Queue, ports: "1/1-2", processing: "h/lh", samples: [] }
}

/// See [`REDQueue::CLASS`].
pub(crate) struct REDQueue {
    queue: Managed,
    detection: Detection,
}

/// What becomes of a packet that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Taken,
    /// Marked, or dropped if it cannot be.
    Chosen,
    Dropped,
}

/// Random early detection: which packets are chosen.
#[derive(Debug)]
struct Detection {
    min: f64,
    max: f64,
    max_p: f64,
    weight: f64,
    /// Nanoseconds.
    packet_time: u64,
    is_gentle: bool,
    average: f64,
    /// Packets that were taken in since one was chosen.
    since: u32,
    /// Since when no packet waits, as of the last time that none did.
    idle_since: Option<u64>,
}

impl Detection {
    /// Takes the length of the queue into the average, as a packet comes.
    fn measure(&mut self, length: usize, now: u64) {
        match self.idle_since {
            // As many packets could have been sent, with none waiting. If this one is not taken in, none waits from now on, either.
            Some(since) if length == 0 && self.packet_time > 0 => {
                self.idle_since = Some(now);
                let missed = now.saturating_sub(since) / self.packet_time;
                let missed = i32::try_from(missed).unwrap_or(i32::MAX);
                self.average *= (1.0 - self.weight).powi(missed);
            }
            _ => self.average += self.weight * (length as f64 - self.average),
        }
    }

    /// The probability that a packet is chosen, if choices did not depend on each other.
    fn probability(&self) -> f64 {
        let Self { min, max, max_p, average, .. } = *self;
        match average {
            _ if average < min => 0.0,
            _ if average < max => max_p * (average - min) / (max - min),
            _ if self.is_gentle && average < 2.0 * max => {
                max_p + (1.0 - max_p) * (average - max) / max
            }
            _ => 1.0,
        }
    }

    /// What becomes of a packet; `random` is of 0 to 1.
    fn choose(&mut self, random: f64) -> Fate {
        let base = self.probability();
        if self.average < self.min {
            self.since = 0;
            return Fate::Taken;
        }
        if base >= 1.0 {
            self.since = 0;
            return Fate::Dropped;
        }
        // The longer none was chosen, the likelier: numbers between are uniform.
        let left = 1.0 - f64::from(self.since) * base;
        if base > 0.0 && (left <= 0.0 || random < base / left) {
            self.since = 0;
            return if self.average < self.max { Fate::Chosen } else { Fate::Dropped };
        }
        self.since = self.since.saturating_add(1);
        Fate::Taken
    }
}

impl REDQueue {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let span = cx.span();
        let keywords = &[
            "MIN_THRESH",
            "MAX_THRESH",
            "MAX_P",
            "CAPACITY",
            "WEIGHT",
            "PACKET_TIME",
            "GENTLE",
            "ECN",
        ];
        let mut arguments = cx.arguments(keywords);
        let min: u32 = arguments.required("MIN_THRESH");
        let max: u32 = arguments.required("MAX_THRESH");
        let max_p: f64 = arguments.required("MAX_P");
        let queue = Managed::of(&mut arguments);
        let weight: f64 = arguments.keyword("WEIGHT").unwrap_or(0.002);
        let packet_time = arguments.keyword("PACKET_TIME").unwrap_or(Nanoseconds(12_000));
        let is_gentle = arguments.keyword("GENTLE").unwrap_or(true);
        arguments.finish()?;
        if min >= max {
            return Err(cx.error(span, "MIN_THRESH is a number of packets below MAX_THRESH"));
        }
        if !(max_p > 0.0 && max_p <= 1.0 && weight > 0.0 && weight <= 1.0) {
            return Err(cx.error(span, "MAX_P and WEIGHT are above 0, and at most 1"));
        }
        let detection = Detection {
            min: min.into(),
            max: max.into(),
            max_p,
            weight,
            packet_time: packet_time.0,
            is_gentle,
            average: 0.0,
            since: 0,
            idle_since: None,
        };
        Ok(Self { queue, detection })
    }
}

impl Element for REDQueue {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        const PARTS: u64 = 1 << 53;
        let now = cx.now();
        for mut packet in batch.drain() {
            self.detection.measure(self.queue.len(), now);
            let random = cx.random(0, PARTS - 1) as f64 / PARTS as f64;
            let dropped = match self.detection.choose(random) {
                Fate::Taken => false,
                Fate::Chosen => !self.queue.mark(&mut packet),
                Fate::Dropped => {
                    self.queue.drops += 1;
                    true
                }
            };
            if dropped {
                cx.reject(1, packet, EARLY);
            } else if let Err(packet) = self.queue.push(packet, now) {
                cx.reject(1, packet, FULL);
            }
        }
    }

    fn pull(&mut self, _port: usize, cx: &mut Context<'_>) -> Option<Packet> {
        let (packet, _) = self.queue.pop()?;
        if self.queue.len() == 0 {
            self.detection.idle_since = Some(cx.now());
        }
        Some(packet)
    }

    fn model(&self) -> Model {
        Model::opaque("stores packets")
    }

    fn held(&self) -> usize {
        self.queue.len()
    }

    fn queued(&self, show: &mut dyn FnMut(&Packet)) {
        self.queue.iter().for_each(show);
    }

    fn has_packets(&self) -> Option<bool> {
        Some(self.queue.len() > 0)
    }

    fn export(&mut self, _: &str, to: &mut ElementState) {
        self.queue.export(to);
    }

    fn import(&mut self, _: &str, from: &mut ElementState, now: u64) {
        self.queue.import(from, now);
    }

    fn parts_packets(&self) -> bool {
        true
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::read("average"),
                Handler::count("length"),
                Handler::count("byte_length"),
                Handler::read("highwater_length"),
                Handler::both("capacity"),
                Handler::both("min_thresh"),
                Handler::both("max_thresh"),
                Handler::both("max_p"),
                Handler::count("drops"),
                Handler::count("marks"),
                Handler::count("full"),
                Handler::write("reset_counts"),
                Handler::write("reset"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "average" => show_real(self.detection.average),
            "min_thresh" => show_real(self.detection.min),
            "max_thresh" => show_real(self.detection.max),
            "max_p" => show_real(self.detection.max_p),
            _ => self.queue.read(handler).ok_or("there is no such handler")?,
        })
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        let detection = &mut self.detection;
        match handler {
            "min_thresh" | "max_thresh" => {
                let value = f64::from(parse_value::<u32>(value)?);
                let is_min = handler == "min_thresh";
                let (min, max) =
                    if is_min { (value, detection.max) } else { (detection.min, value) };
                if min >= max {
                    return Err("min_thresh is a number of packets below max_thresh".to_string());
                }
                (detection.min, detection.max) = (min, max);
            }
            "max_p" => {
                let value: f64 = parse_value(value)?;
                if !(value > 0.0 && value <= 1.0) {
                    return Err("max_p is above 0, and at most 1".to_string());
                }
                detection.max_p = value;
            }
            "capacity" => {
                self.queue.capacity = parse_value(value)?;
                while let Some(packet) = self.queue.excess() {
                    cx.drop(packet, FULL);
                }
            }
            "reset" => {
                while let Some((packet, _)) = self.queue.pop() {
                    cx.reject(1, packet, RESET);
                }
                detection.idle_since = Some(cx.now());
            }
            _ => self.queue.reset_counts(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detection(average: f64) -> Detection {
        Detection {
            min: 50.0,
            max: 150.0,
            max_p: 0.1,
            weight: 0.002,
            packet_time: 10,
            is_gentle: true,
            average,
            since: 0,
            idle_since: None,
        }
    }

    #[test]
    fn the_probability_follows_the_average() {
        for (average, expected) in [
            (0.0, 0.0),
            (49.9, 0.0),
            (50.0, 0.0),
            (100.0, 0.05),
            (150.0, 0.1),
            (225.0, 0.55),
            (300.0, 1.0),
            (1000.0, 1.0),
        ] {
            let found = detection(average).probability();
            assert!((found - expected).abs() < 1e-9, "{average}: {found}");
        }
        let abrupt = Detection { is_gentle: false, ..detection(150.0) };
        assert_eq!(abrupt.probability(), 1.0);
    }

    /// With a constant average, the packets from one that is chosen to the next are uniform of 1 to 1 / p (section 7 of
    /// the paper): their mean is 1 / 2p + 1 / 2.
    #[test]
    fn choices_are_spread_evenly() {
        let (mut detection, mut rng) = (detection(100.0), fastrand::Rng::with_seed(1));
        let (mut gaps, mut gap) = (Vec::new(), 0u32);
        for _ in 0..400_000 {
            gap += 1;
            if detection.choose(rng.f64()) == Fate::Chosen {
                gaps.push(std::mem::take(&mut gap));
            }
        }
        let (most, count) = (gaps[1..].iter().max(), (gaps.len() - 1) as f64);
        assert_eq!(most, Some(&20), "1 / p");
        let mean = f64::from(gaps[1..].iter().sum::<u32>()) / count;
        assert!((mean - 10.5).abs() < 0.1, "{mean}");
        for gap in 1..=20 {
            let share = gaps[1..].iter().filter(|found| **found == gap).count() as f64 / count;
            assert!((share - 0.05).abs() < 0.005, "{gap}: {share}");
        }
    }

    /// The average after n packets that find a queue of one length, and after an idle time (section 4 of the paper).
    #[test]
    fn the_average_moves_by_its_weight() {
        let mut detection = detection(0.0);
        (0..1000).for_each(|_| detection.measure(100, 0));
        let expected = 100.0 * (1.0 - 0.998f64.powi(1000));
        assert!((detection.average - expected).abs() < 1e-6, "{}", detection.average);
        detection.idle_since = Some(0);
        detection.measure(0, 5000);
        assert!((detection.average - expected * 0.998f64.powi(500)).abs() < 1e-6);
        // That packet was dropped: none waits still.
        detection.measure(0, 10_000);
        assert!((detection.average - expected * 0.998f64.powi(1000)).abs() < 1e-6);
    }

    #[test]
    fn nothing_is_chosen_below_and_all_is_dropped_beyond() {
        assert!((0..1000).all(|_| detection(49.0).choose(0.0) == Fate::Taken));
        assert!((0..1000).all(|_| detection(300.0).choose(0.999) == Fate::Dropped));
        assert_eq!(detection(200.0).choose(0.0), Fate::Dropped, "beyond, none is marked");
    }
}
