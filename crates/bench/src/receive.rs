//! The receiver: counts what arrives, and from the stamps in it what was lost, doubled or overtaken in transit, and how
//! long packets took since they were due.

use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::DerefMut;
use std::str::FromStr;

use dataplane::clock::Time;
use dataplane::io::{Polling, Waiter};
use elements::device::{Device, Received, Wake};
use hdrhistogram::Histogram;
use net::{Batch, Pool};
use serde::Serialize;
use view::table::{Table, grouped};

use crate::report::Percentiles;
use crate::send::{Lost, rounded};
use crate::stamp::{HostClock, Stamp, StampClock};
use crate::statistics::latencies;

/// How many packets were sent, as far as that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Of each stream that is not named.
    pub each: Option<u64>,
    /// Of streams by their number.
    pub streams: BTreeMap<u8, u64>,
}

impl FromStr for Expected {
    type Err = &'static str;

    /// `N`, or `STREAM=N,…`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const TAKES: &str =
            "takes a number of packets from 1 on, or STREAM=N,… with streams 0 to 255, each once";
        let mut expected = Self::default();
        for word in text.split(',') {
            let count = |digits: &str| digits.parse().ok().filter(|n| *n > 0).ok_or(TAKES);
            let is_new = match word.split_once('=') {
                None => expected.each.replace(count(word)?).is_none(),
                Some((stream, digits)) => {
                    let stream = stream.parse().map_err(|_| TAKES)?;
                    expected.streams.insert(stream, count(digits)?).is_none()
                }
            };
            is_new.then_some(()).ok_or(TAKES)?;
        }
        Ok(expected)
    }
}

impl Expected {
    fn of(&self, stream: u8) -> Option<u64> {
        self.streams.get(&stream).copied().or(self.each)
    }

    fn is_none(&self) -> bool {
        self.each.is_none() && self.streams.is_empty()
    }
}

/// When to stop receiving, besides when the device ends.
#[derive(Clone, Debug, Default)]
pub struct Until {
    /// Once so many packets have come, or the last of them: this many were sent.
    pub expected: Expected,
    /// After so many seconds.
    pub seconds: Option<f64>,
    /// Once nothing came for so many seconds, after something did.
    pub idle: Option<f64>,
}

/// Sequence numbers behind the greatest within which packets are known again.
const WINDOW: u64 = 1 << 16;

/// Which packets of a stream came.
struct Stream {
    /// The greatest sequence number that came.
    highest: Option<u64>,
    /// A bit for each number of the window: whether it came.
    seen: Vec<u64>,
    received: u64,
    duplicates: u64,
    reordered: u64,
    /// Packets older than the window: nobody knows whether they came before.
    ancient: u64,
}

impl Stream {
    fn new() -> Self {
        let seen = vec![0; (WINDOW / 64) as usize];
        Self { highest: None, seen, received: 0, duplicates: 0, reordered: 0, ancient: 0 }
    }

    /// Takes note of the packet with this number; whether it came for the first time.
    fn take(&mut self, sequence: u32) -> bool {
        // Numbers are modulo 2^32: the nearest is meant.
        let number = match self.highest {
            None => u64::from(sequence),
            Some(highest) => {
                let ahead = sequence.wrapping_sub(highest as u32) as i32;
                highest.checked_add_signed(i64::from(ahead)).unwrap_or(u64::from(sequence))
            }
        };
        let place = |number: u64| ((number % WINDOW / 64) as usize, 1u64 << (number % 64));
        let next = self.highest.map_or(0, |highest| highest + 1);
        if number >= next {
            if number - next >= WINDOW {
                self.seen.fill(0);
            } else {
                for skipped in next..number {
                    let (word, bit) = place(skipped);
                    self.seen[word] &= !bit;
                }
            }
            self.highest = Some(number);
        } else if next - number > WINDOW {
            self.ancient += 1;
            self.reordered += 1;
            self.received += 1;
            return true;
        } else {
            let (word, bit) = place(number);
            if self.seen[word] & bit != 0 {
                self.duplicates += 1;
                return false;
            }
            self.reordered += 1;
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
        self.received += 1;
        true
    }

    fn report(&self, stream: u8, expected: Option<u64>) -> StreamReport {
        let numbers = self.highest.map_or(0, |highest| highest + 1);
        let sent = expected.map_or(numbers, |expected| expected.max(numbers));
        StreamReport {
            stream,
            sent,
            received: self.received,
            lost: sent.saturating_sub(self.received),
            duplicates: self.duplicates,
            reordered: self.reordered,
        }
    }
}

/// What came of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamReport {
    /// Its number.
    pub stream: u8,
    /// Packets that were sent, as far as their numbers or what was expected tell.
    pub sent: u64,
    /// Of them, packets that came, each once.
    pub received: u64,
    /// Of them, packets that did not.
    pub lost: u64,
    /// Packets that had come before.
    pub duplicates: u64,
    /// Packets that came after one with a greater number (RFC 4737).
    pub reordered: u64,
}

/// What was received.
#[derive(Clone, Debug, Serialize)]
pub struct Receipt {
    /// All packets.
    pub packets: u64,
    /// Their bytes, without frame check sequences.
    pub bytes: u64,
    /// Packets without a stamp.
    pub unstamped: u64,
    /// Seconds from the first packet to the last.
    pub seconds: f64,
    /// Packets per second in that time; nothing of packets that came all at once, or of one.
    pub rate: Option<f64>,
    /// Bits per second in that time, with frame check sequences (layer 2).
    pub bits: Option<f64>,
    /// By number.
    pub streams: Vec<StreamReport>,
    /// From when packets were due until they were received, in nanoseconds; of each packet the first time.
    pub latency: Option<Percentiles>,
    /// The clock of the stamps.
    pub clock: Option<String>,
    /// Packets that were due after they came: the clocks of sender and receiver differ.
    pub early: u64,
    /// Packets whose latency cannot be had: their stamps are of another clock than the capture's times.
    pub other_clock: u64,
    /// Packets that this receiver lost, by reason: it was too slow.
    pub lost_here: Vec<Lost>,
    /// What a reader must know.
    pub remarks: Vec<String>,
    /// The latencies.
    #[serde(skip)]
    pub latencies: Histogram<u64>,
}

/// Packets that are asked for at a time.
const BURST: usize = 256;
/// The longest wait, after which it is looked whether to stop.
const LOOK: std::time::Duration = std::time::Duration::from_millis(10);

/// The clocks that stamps can be of, on this host.
struct Clocks {
    monotonic: HostClock,
    realtime: HostClock,
}

impl Clocks {
    /// The wall clock less the monotonic one: of several looks, the one that took least.
    fn ahead(&self) -> i64 {
        let looks = (0..10).map(|_| {
            let begin = self.monotonic.now();
            let (wall, end) = (self.realtime.now(), self.monotonic.now());
            (end - begin, wall.cast_signed().wrapping_sub(begin.cast_signed()))
        });
        looks.min().map_or(0, |(_, ahead)| ahead)
    }

    /// The time of a packet that comes now, or came at a time that a capture recorded, by the clock of its stamp.
    fn arrival(&self, clock: StampClock, recorded: Option<u64>) -> Option<u64> {
        match (clock, recorded) {
            (StampClock::Relative | StampClock::Realtime, Some(recorded)) => Some(recorded),
            (StampClock::Monotonic, Some(_)) | (StampClock::Relative, None) => None,
            (StampClock::Monotonic, None) => Some(self.monotonic.now()),
            (StampClock::Realtime, None) => Some(self.realtime.now()),
        }
    }
}

/// A device whose packets are counted as they come: for a thread that does something else in between. [`receive`] does
/// nothing else.
pub struct Receiver<D> {
    device: D,
    wake: Option<Wake>,
    clocks: Clocks,
    /// The wall clock less the monotonic one at first.
    ahead: i64,
    counting: Counting,
    pool: Pool,
    batch: Batch,
}

impl<D: DerefMut<Target: Device>> Receiver<D> {
    /// Has counted nothing yet.
    pub fn new(device: D) -> Self {
        let clocks = Clocks {
            monotonic: HostClock::new(StampClock::Monotonic),
            realtime: HostClock::new(StampClock::Realtime),
        };
        let (wake, ahead) = (device.wait_on(), clocks.ahead());
        let (pool, batch) = (Pool::new(), Batch::new());
        Self { device, wake, clocks, ahead, counting: Counting::new(), pool, batch }
    }

    /// Counts what has come: how many packets, and whether there may be more.
    ///
    /// # Errors
    /// The device's.
    pub fn take(&mut self) -> Result<(usize, Received), String> {
        let burst = self.device.burst().unwrap_or(BURST);
        if self.wake == Some(Wake::Polled)
            && let Some(count) = self.look(burst)?
        {
            self.counting.settle();
            self.collect();
            return Ok((count, Received::More));
        }
        let received = self.device.receive(burst, &mut self.batch, &mut self.pool)?;
        self.collect();
        let count = self.batch.len();
        if count > 0 {
            // All of a batch came by now.
            let now = self.clocks.monotonic.now();
            let realtime = LazyCell::new(|| self.clocks.realtime.now());
            for packet in self.batch.drain() {
                let recorded = self.wake.is_none().then(|| packet.timestamp());
                let arrival = |clock| match (clock, recorded) {
                    (StampClock::Realtime, None) => Some(*realtime),
                    (StampClock::Monotonic, None) => Some(now),
                    _ => self.clocks.arrival(clock, recorded),
                };
                self.counting.take(packet.data(), recorded.unwrap_or(now), arrival);
                self.pool.recycle(packet);
            }
            self.counting.settle();
        }
        Ok((count, received))
    }

    /// Counts frames where they lie, if the device shows them there; how many.
    fn look(&mut self, burst: usize) -> Result<Option<usize>, String> {
        let Self { device, clocks, counting, .. } = self;
        // All of a batch came by the time of the first.
        let (mut monotonic, mut realtime) = (None, None);
        device.receive_each(burst, &mut |frame| {
            let now = *monotonic.get_or_insert_with(|| clocks.monotonic.now());
            counting.take(frame, now, |clock| match clock {
                StampClock::Relative => None,
                StampClock::Monotonic => Some(now),
                StampClock::Realtime => {
                    Some(*realtime.get_or_insert_with(|| clocks.realtime.now()))
                }
            });
        })
    }

    fn collect(&mut self) {
        let Counting { lost_here, notices, .. } = &mut self.counting;
        Lost::collect((lost_here, notices), &mut *self.device, false);
    }

    /// What came so far.
    pub(crate) fn counting(&mut self) -> &mut Counting {
        &mut self.counting
    }

    /// Counts anew.
    pub(crate) fn begin(&mut self) {
        self.counting = Counting::new();
    }

    /// Whether all packets that are expected have come, or the last of each stream; not if none are.
    pub fn has(&self, expected: &Expected) -> bool {
        self.counting.has(expected)
    }

    /// What was received of what was sent, as far as that is known.
    ///
    /// # Errors
    /// The device's.
    pub fn finish(mut self, expected: &Expected) -> Result<Receipt, String> {
        self.device.flush()?;
        self.collect();
        let is_of_realtime = self.counting.clocks.contains(&StampClock::Realtime);
        let set = self.clocks.ahead().saturating_sub(self.ahead);
        let mut receipt = self.counting.report(expected, self.wake.is_none());
        if is_of_realtime && self.wake.is_some() {
            receipt.remarks.extend(was_set(set));
        }
        Ok(receipt)
    }
}

/// Nanoseconds that the wall clock may gain or lose unremarked while it is synchronised.
const SYNCHRONISED: u64 = 1_000_000;

/// What there is to say of latencies by a wall clock that was set by so many nanoseconds meanwhile.
fn was_set(by: i64) -> Option<String> {
    (by.unsigned_abs() > SYNCHRONISED).then(|| {
        format!(
            "the clock is not steady: it was set {} by {:.3} ms meanwhile; latencies are wrong by up to that",
            if by > 0 { "forward" } else { "back" },
            by.unsigned_abs() as f64 / 1e6
        )
    })
}

/// Counts what arrives at a device until it ends, or as was asked.
///
/// # Errors
/// The device's.
pub fn receive(
    device: &mut dyn Device,
    until: Until,
    polling: Polling,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Receipt, String> {
    let clock = HostClock::new(StampClock::Monotonic);
    let mut receiver = Receiver::new(device);
    let mut waiter = Waiter::new(polling);
    let nanoseconds = |seconds: f64| (seconds * 1e9) as u64;
    let end = until.seconds.map(|s| clock.now() + nanoseconds(s));
    let mut last_came = None;
    loop {
        let (count, received) = receiver.take()?;
        let now = clock.now();
        if count > 0 {
            last_came = Some(now);
            waiter.worked();
        }
        let is_idle = || {
            last_came.zip(until.idle).is_some_and(|(last, idle)| now >= last + nanoseconds(idle))
        };
        if received == Received::End
            || is_stopped()
            || end.is_some_and(|end| now >= end)
            || receiver.has(&until.expected)
            || is_idle()
        {
            break;
        }
        if count == 0 {
            match receiver.wake {
                Some(Wake::Readable(descriptor)) => waiter.wait(&[descriptor], false, LOOK),
                Some(Wake::Polled) => waiter.wait(&[], true, LOOK),
                None => {}
            }
        }
    }
    receiver.finish(&until.expected)
}

/// Packets that are counted.
pub(crate) struct Counting {
    packets: u64,
    bytes: u64,
    unstamped: u64,
    /// When the first and the last packet came.
    times: Option<(u64, u64)>,
    streams: BTreeMap<u8, Stream>,
    latencies: Histogram<u64>,
    /// A latency that is not recorded yet, and how many packets had it.
    same: (u64, u64),
    clocks: Vec<StampClock>,
    early: u64,
    other_clock: u64,
    lost_here: Vec<Lost>,
    /// What the device reported: that its link went down.
    pub(crate) notices: Vec<String>,
    /// The stream and the number of each stamp, where they are kept.
    pub(crate) stamps: Option<Vec<(u8, u32)>>,
}

/// Captures may have times in microseconds: this much before it was due, a packet came when it was due.
const TRUNCATED: u64 = 1000;

impl Counting {
    fn new() -> Self {
        Self {
            packets: 0,
            bytes: 0,
            unstamped: 0,
            times: None,
            streams: BTreeMap::new(),
            latencies: latencies(),
            same: (0, 0),
            clocks: Vec::new(),
            early: 0,
            other_clock: 0,
            lost_here: Vec::new(),
            notices: Vec::new(),
            stamps: None,
        }
    }

    /// Packets of these streams that came, each once.
    pub(crate) fn of_streams(&self, streams: &[u8]) -> u64 {
        let counted = self.streams.iter().filter(|(number, _)| streams.contains(number));
        counted.map(|(_, stream)| stream.received).sum()
    }

    /// Packets without a stamp.
    pub(crate) fn unstamped(&self) -> u64 {
        self.unstamped
    }

    /// Packets that the receiver lost itself.
    pub(crate) fn lost_here(&self) -> u64 {
        Lost::sum(&self.lost_here)
    }

    /// How long packets took.
    pub(crate) fn latencies(&self) -> &Histogram<u64> {
        &self.latencies
    }

    /// Counts a frame that came at a time.
    fn take(
        &mut self,
        frame: &[u8],
        time: u64,
        mut arrival: impl FnMut(StampClock) -> Option<u64>,
    ) {
        self.packets += 1;
        self.bytes += frame.len() as u64;
        let (first, last) = self.times.get_or_insert((time, time));
        (*first, *last) = ((*first).min(time), (*last).max(time));
        let Some(stamp) = Stamp::read(frame) else {
            self.unstamped += 1;
            return;
        };
        let stream = self.streams.entry(stamp.stream).or_insert_with(Stream::new);
        if !stream.take(stamp.sequence) {
            return;
        }
        self.stamps.iter_mut().for_each(|all| all.push((stamp.stream, stamp.sequence)));
        if !self.clocks.contains(&stamp.clock) {
            self.clocks.push(stamp.clock);
        }
        match arrival(stamp.clock) {
            None => self.other_clock += 1,
            Some(arrival) if arrival + TRUNCATED <= stamp.due => self.early += 1,
            Some(arrival) => {
                let latency = arrival.saturating_sub(stamp.due);
                if self.same.0 != latency {
                    self.settle();
                    self.same.0 = latency;
                }
                self.same.1 += 1;
            }
        }
    }

    /// Records the latency that the last packets had in common: those of a burst do, which were due at once and came at once.
    fn settle(&mut self) {
        let (latency, count) = std::mem::take(&mut self.same);
        if count > 0 {
            self.latencies.saturating_record_n(latency, count);
        }
    }

    /// Whether so many packets came of each stream that is named or that there is, or the last of them.
    fn has(&self, expected: &Expected) -> bool {
        let came = |stream: &Stream, sent: u64| {
            stream.received >= sent || stream.highest.is_some_and(|h| h + 1 >= sent)
        };
        let has_named = expected.streams.iter().all(|(number, sent)| {
            self.streams.get(number).is_some_and(|stream| came(stream, *sent))
        });
        let has_others = expected.each.is_none_or(|each| {
            let is_other = |number: &u8| !expected.streams.contains_key(number);
            self.streams.iter().filter(|(number, _)| is_other(number)).all(|(_, s)| came(s, each))
        });
        !expected.is_none() && !self.streams.is_empty() && has_named && has_others
    }

    fn report(mut self, expected: &Expected, is_capture: bool) -> Receipt {
        self.settle();
        // Of a stream that was sent, all may be lost.
        for number in expected.streams.keys() {
            self.streams.entry(*number).or_insert_with(Stream::new);
        }
        let (first, last) = self.times.unwrap_or_default();
        let seconds = (last - first) as f64 / 1e9;
        let per_second = |count: f64| (seconds > 0.0).then(|| count / seconds);
        // From the first to the last there is one distance less than there are packets.
        let intervals = self.packets.saturating_sub(1) as f64;
        let mean = self.bytes as f64 / self.packets.max(1) as f64 + 4.0;
        let clocks: Vec<String> = self.clocks.iter().map(StampClock::to_string).collect();
        let mut remarks = std::mem::take(&mut self.notices);
        if !self.lost_here.is_empty() {
            remarks.push(format!(
                "this receiver was too slow and lost packets itself: {}",
                Lost::render(&self.lost_here)
            ));
        }
        if self.early > 0 {
            remarks.push(format!(
                "{} packets came before they were due: the clocks of sender and receiver differ; between hosts, \
                 synchronise them and send with --clock realtime",
                grouped(self.early)
            ));
        }
        if self.other_clock > 0 {
            remarks.push(match is_capture {
                true => "no latencies: the capture's times are not of the clock of the stamps; send with --clock realtime".into(),
                false => "no latencies: the stamps count from the start of the load, not by a clock".into(),
            });
        }
        let ancient: u64 = self.streams.values().map(|stream| stream.ancient).sum();
        if ancient > 0 {
            remarks.push(format!(
                "{} packets came more than {} numbers late: duplicates among them are not known",
                grouped(ancient),
                grouped(WINDOW)
            ));
        }
        if self.unstamped == self.packets && self.packets > 0 {
            remarks.push("no packet has a stamp: 'catena gen --stamp' puts one in".into());
        }
        if self.packets == 0 {
            remarks.push("nothing came".into());
        }
        let reports = self
            .streams
            .iter()
            .map(|(number, stream)| stream.report(*number, expected.of(*number)));
        Receipt {
            packets: self.packets,
            bytes: self.bytes,
            unstamped: self.unstamped,
            seconds,
            rate: per_second(intervals),
            bits: per_second(intervals * mean * 8.0),
            streams: reports.collect(),
            latency: Percentiles::of(&self.latencies),
            clock: (!clocks.is_empty()).then(|| clocks.join(", ")),
            early: self.early,
            other_clock: self.other_clock,
            lost_here: self.lost_here,
            remarks,
            latencies: self.latencies,
        }
    }
}

impl Receipt {
    /// As people read it.
    pub fn render(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "received: {} packets, {} bytes, {} without a stamp",
            grouped(self.packets),
            grouped(self.bytes),
            grouped(self.unstamped)
        );
        if let Some((rate, bits)) = self.rate.zip(self.bits) {
            let (rate, megabits) = (rounded(rate), bits / 1e6);
            let _ = writeln!(
                out,
                "rate: {rate} packets/s, {megabits:.3} Mb/s L2, for {:.3} s",
                self.seconds
            );
        }
        if !self.streams.is_empty() {
            let titles =
                ["stream", "sent", "received", "lost", "lost, %", "duplicates", "reordered"];
            let mut table = Table::new(titles);
            for s in &self.streams {
                let share = 100.0 * s.lost as f64 / s.sent.max(1) as f64;
                table.row([
                    s.stream.to_string(),
                    grouped(s.sent),
                    grouped(s.received),
                    grouped(s.lost),
                    format!("{share:.4}"),
                    grouped(s.duplicates),
                    grouped(s.reordered),
                ]);
            }
            let _ = write!(out, "\n{}", table.render());
        }
        if let Some(p) = &self.latency {
            let titles =
                ["latency, µs", "p50", "p90", "p99", "p99.9", "p99.99", "max", "mean", "PDV"];
            let mut table = Table::new(titles);
            let micros = |ns: f64| format!("{:.2}", ns / 1e3);
            let values = [p.min, p.p50, p.p90, p.p99, p.p99_9, p.p99_99, p.max];
            let [min, p50, p90, p99, p99_9, p99_99, max] = values.map(|ns| micros(ns as f64));
            let min = format!("min {min}");
            table.row([
                min,
                p50,
                p90,
                p99,
                p99_9,
                p99_99,
                max,
                micros(p.mean),
                micros(p.pdv as f64),
            ]);
            let _ = write!(out, "\n{}", table.render());
            let clock = self.clock.as_deref().unwrap_or_default();
            let _ = writeln!(out, "from when packets were due, by the {clock} clock");
        }
        for remark in &self.remarks {
            let _ = writeln!(out, "! {remark}");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(numbers: impl IntoIterator<Item = u32>, expected: Option<u64>) -> [u64; 5] {
        let mut stream = Stream::new();
        numbers.into_iter().for_each(|number| _ = stream.take(number));
        let r = stream.report(0, expected);
        [r.sent, r.received, r.lost, r.duplicates, r.reordered]
    }

    #[test]
    fn loss_duplication_and_order_are_distinguished() {
        assert_eq!(report(0..1000, None), [1000, 1000, 0, 0, 0]);
        // Lost at the beginning, inside and, as far as it is known, at the end.
        assert_eq!(report([1, 2, 4, 5], None), [6, 4, 2, 0, 0]);
        assert_eq!(report([1, 2, 4, 5], Some(10)), [10, 4, 6, 0, 0]);
        assert_eq!(report([0, 1, 1, 2, 0], None), [3, 3, 0, 2, 0]);
        // 2 and 3 come after 4; 4 did not.
        assert_eq!(report([0, 1, 4, 2, 3, 5], None), [6, 6, 0, 0, 2]);
        // A late packet that comes twice is a duplicate the second time.
        assert_eq!(report([0, 2, 1, 1], None), [3, 3, 0, 1, 1]);
        assert_eq!(report([], Some(5)), [5, 0, 5, 0, 0]);
    }

    #[test]
    fn a_wall_clock_that_is_set_is_remarked() {
        assert_eq!((was_set(-1_000_000), was_set(900_000)), (None, None));
        let said = was_set(-2_500_000).unwrap();
        assert!(said.contains("not steady: it was set back by 2.500 ms"), "{said}");
        assert!(was_set(3_000_000_000).unwrap().contains("forward by 3000.000 ms"));
        let clocks = Clocks {
            monotonic: HostClock::new(StampClock::Monotonic),
            realtime: HostClock::new(StampClock::Realtime),
        };
        assert!(clocks.ahead() > 0, "1970 was before this machine started");
    }

    #[test]
    fn packets_are_expected_of_each_stream() {
        let expected = |text: &str| text.parse::<Expected>();
        for wrong in ["", "0", "1,2", "1=0", "256=1", "1=1,1=2", "x", "1=", "=1"] {
            assert!(expected(wrong).is_err(), "{wrong}");
        }
        let mut counting = Counting::new();
        let take = |counting: &mut Counting, stream: u8, number: u32| {
            counting.streams.entry(stream).or_insert_with(Stream::new).take(number);
        };
        let each = expected("3").unwrap();
        assert!(!counting.has(&each), "no stream has come");
        (0..3).for_each(|number| take(&mut counting, 0, number));
        assert!(counting.has(&each) && !counting.has(&Expected::default()));
        let named = expected("0=3,1=2,2=4").unwrap();
        assert!(!counting.has(&named), "1 and 2 have not come");
        [(1, 0), (1, 1), (2, 1), (2, 3)].into_iter().for_each(|(s, n)| take(&mut counting, s, n));
        assert!(counting.has(&named));
        let more = expected("0=5,1=2,2=4,9=7").unwrap();
        let lost: Vec<_> =
            counting.report(&more, false).streams.iter().map(|s| (s.stream, s.lost)).collect();
        assert_eq!(lost, [(0, 2), (1, 0), (2, 2), (9, 7)]);
    }

    #[test]
    fn numbers_begin_anew_after_the_greatest() {
        let begin = u32::MAX - 9;
        let mut stream = Stream::new();
        stream.highest = Some(u64::from(begin) - 1);
        for number in (0..20).map(|i| begin.wrapping_add(i)).chain([begin + 3]) {
            stream.take(number);
        }
        assert_eq!(stream.highest, Some((1 << 32) + 9));
        assert_eq!((stream.received, stream.duplicates, stream.reordered), (20, 1, 0));
    }

    #[test]
    fn gaps_of_any_length_are_forgotten_when_the_window_moves() {
        let window = WINDOW as u32;
        for gap in [1, 63, 64, window - 1, window, window + 1, 3 * window] {
            let after = [gap, gap + 1, gap + 1];
            let expected = u64::from(gap) + 2;
            let lost = expected - 3;
            assert_eq!(
                report([0].into_iter().chain(after), None),
                [expected, 3, lost, 1, 0],
                "{gap}"
            );
        }
        // All that was skipped may still come, once.
        let late = [window].into_iter().chain(1..window).chain(1..window);
        let all = u64::from(window);
        assert_eq!(report(late, None), [all + 1, all, 1, all - 1, all - 1]);
        // What is older than the window counts as come for the first time.
        let mut stream = Stream::new();
        [5, window + 5, 4].into_iter().for_each(|number| _ = stream.take(number));
        assert_eq!((stream.received, stream.ancient, stream.reordered), (3, 1, 1));
    }
}
