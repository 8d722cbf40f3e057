//! The sender: offers frames to a device, each at its time, whatever the device is at.
//!
//! The load is open: when a packet is due follows from the rate and the arrival process, or from the times that a
//! capture recorded, never from when packets before it were sent. A sender that falls behind sends all that is due as soon
//! as it can, and says how late it was.

mod sent;

use std::collections::VecDeque;
use std::str::FromStr;

use dataplane::clock::Time;
use elements::device::{Device, Received};
use hdrhistogram::Histogram;
use net::{Batch, Packet, Pool};

use crate::arrivals::{Arrivals, DueTimes};
use crate::stamp::{Stamp, StampClock};
use crate::statistics::latencies;

use sent::complete;
pub use sent::{Lost, Sent, SentStream};
pub(crate) use sent::{note, rounded};

/// A rate that is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Packets per second.
    Packets(f64),
    /// A share of what the link carries.
    OfLink(f64),
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "'{text}': a rate is packets per second, such as 250, 100k or 1.5M, or a share of the link such as 10%"
            )
        };
        let (digits, scale) = match text.char_indices().last() {
            Some((at, '%')) => (&text[..at], 0.01),
            Some((at, 'k' | 'K')) => (&text[..at], 1e3),
            Some((at, 'M' | 'm')) => (&text[..at], 1e6),
            Some((at, 'G' | 'g')) => (&text[..at], 1e9),
            _ => (text, 1.0),
        };
        let is_number = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let number: f64 = digits.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
        let rate = if text.ends_with('%') {
            Self::OfLink(number * scale)
        } else {
            Self::Packets(number * scale)
        };
        match rate {
            Self::OfLink(share) if (1e-9..=1.0).contains(&share) => Ok(rate),
            Self::Packets(rate_of) if (1e-3..=1e9).contains(&rate_of) => Ok(rate),
            _ => Err(wrong()),
        }
    }
}

/// When packets are due.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// At so many packets per second, by a process that a seed draws.
    Rate(f64, Arrivals, u64),
    /// At the times that the capture recorded, so many times as fast.
    Recorded(f64),
}

/// What is to be sent.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When packets are due.
    pub pace: Pace,
    /// How many: the source begins anew where it has fewer. What the source has, once, if neither this nor `seconds` is
    /// given.
    pub count: Option<u64>,
    /// Until when packets are due, in seconds.
    pub seconds: Option<f64>,
    /// The clock and the stream of the stamps that packets get, if they get any.
    pub stamp: Option<(StampClock, u8)>,
    /// Which of the packets are sent; others are another sender's.
    pub turns: Turns,
    /// Packets that the device is given at a time, at most.
    pub burst: usize,
}

/// Which packets of a load a sender sends: senders of one load take turns, so all of them together send what one would,
/// each packet at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// The sender's place, from 0 on.
    pub index: u64,
    /// How many senders there are.
    pub count: u64,
}

impl Default for Turns {
    /// All of them.
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl Plan {
    /// Whether the source begins anew at its end.
    fn goes_on(&self) -> bool {
        self.count.is_some() || self.seconds.is_some()
    }

    /// From the start until when packets are due, in nanoseconds.
    fn end(&self) -> Option<u64> {
        self.seconds.map(|seconds| (seconds * 1e9) as u64)
    }

    /// From the start until it is given up, in nanoseconds.
    fn given_up(&self) -> Option<u64> {
        self.end().map(|end| end + end.max(OVERTIME))
    }

    /// Of the packets that are to be sent, this sender's.
    fn own_count(&self) -> Option<u64> {
        let Turns { index, count } = self.turns;
        self.count.map(|all| (all + count - 1).saturating_sub(index) / count.max(1))
    }
}

/// Where frames come from: a device that is opened again when it ends and there is to be more.
pub struct Source<'a> {
    open: &'a mut dyn FnMut() -> Result<Box<dyn Device>, String>,
    device: Box<dyn Device>,
    /// Frames that the device had since it was opened.
    frames: u64,
    batch: Batch,
    ended: bool,
}

/// Link type number of Ethernet.
const ETHERNET: u32 = 1;

impl<'a> Source<'a> {
    /// Opens the device for the first time.
    ///
    /// # Errors
    /// The device's, or that its frames are not of Ethernet.
    pub fn new(
        open: &'a mut dyn FnMut() -> Result<Box<dyn Device>, String>,
    ) -> Result<Self, String> {
        let device = open()?;
        if device.link_type() != ETHERNET {
            return Err("its packets are not Ethernet frames".into());
        }
        Ok(Self { open, device, frames: 0, batch: Batch::new(), ended: false })
    }

    /// The next frame, and whether the source began anew with it; none at the end, unless it is to go `on`.
    fn next(&mut self, on: bool, pool: &mut Pool) -> Result<Option<(Packet, bool)>, String> {
        let mut anew = false;
        while self.batch.is_empty() {
            if self.ended {
                if self.frames == 0 {
                    return Err("there are no packets in it".into());
                }
                if !on {
                    return Ok(None);
                }
                self.device = (self.open)()?;
                (self.frames, self.ended, anew) = (0, false, true);
            }
            let received = self.device.receive(BURST, &mut self.batch, pool)?;
            self.frames += self.batch.len() as u64;
            self.ended = received == Received::End;
            // The first is taken first.
            self.batch.as_mut_slice().reverse();
        }
        Ok(self.batch.pop().map(|packet| (packet, anew)))
    }

    /// The mean length of the first frames, without frame check sequences; the source begins anew.
    ///
    /// # Errors
    /// The device's, or that it has no frames.
    pub fn mean_length(&mut self) -> Result<f64, String> {
        const SAMPLE: u64 = 10_000;
        let (mut pool, mut bytes, mut count) = (Pool::new(), 0, 0);
        while count < SAMPLE {
            let Some((packet, _)) = self.next(false, &mut pool)? else { break };
            (bytes, count) = (bytes + packet.len(), count + 1);
            pool.recycle(packet);
        }
        self.device = (self.open)()?;
        (self.frames, self.ended) = (0, false);
        pool.recycle_all(&mut self.batch);
        Ok(bytes as f64 / count as f64)
    }
}

/// When packets are due, from the start of the load.
enum Schedule {
    Drawn(DueTimes),
    Recorded {
        speed: f64,
        /// The time of the first packet of this round.
        first: Option<u64>,
        /// When this round began.
        begin: f64,
        last: f64,
        packets: u64,
    },
}

impl Schedule {
    fn next_due(&mut self, recorded: u64, anew: bool) -> Result<u64, String> {
        let (speed, first, begin, last, packets) = match self {
            Self::Drawn(times) => return Ok(times.next_due()),
            Self::Recorded { speed, first, begin, last, packets } => {
                (*speed, first, begin, last, packets)
            }
        };
        if anew {
            // A mean distance after the last.
            let mean = *last / (*packets - 1).max(1) as f64;
            if mean <= 0.0 {
                let why = "its packets came all at once, so that its end is not known; --rate sets how many are sent a second";
                return Err(why.into());
            }
            (*begin, *first) = (*last + mean, None);
        }
        // The first may be of the time 0.
        if recorded == 0 && first.is_some() {
            return Err("its packets have no times; --rate sets how many are sent a second".into());
        }
        let first = *first.get_or_insert(recorded);
        // Some captures go back a little.
        let due = *begin + recorded.saturating_sub(first) as f64 / speed;
        *last = last.max(due);
        *packets += 1;
        Ok(*last as u64)
    }
}

/// Frames that are prepared before they are due, and given to a device at a time unless a plan says another number.
pub const BURST: usize = 64;
/// From the start until the first packet can be due, in nanoseconds.
pub(crate) const LEAD: u64 = 1_000_000;
/// The longest wait in one piece, in nanoseconds: it is looked then whether to stop.
pub(crate) const LOOK: u64 = 10_000_000;
/// How much longer than a load lasts, at least, a sender may take for it, in nanoseconds.
pub(crate) const OVERTIME: u64 = 1_000_000_000;

/// Sends frames, each when it is due by `time`. Without a time they are written at once, with the times at which they were
/// due from 0 on.
///
/// # Errors
/// The source's or the device's.
pub fn send(
    device: &mut dyn Device,
    source: &mut Source<'_>,
    plan: &Plan,
    time: Option<&dyn Time>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Sent, String> {
    send_from(device, source, plan, time.map(|time| (time, time.now() + LEAD)), is_stopped)
}

/// The same where the load starts at a time, which several senders of a load have in common.
///
/// # Errors
/// The source's or the device's.
pub fn send_from(
    device: &mut dyn Device,
    source: &mut Source<'_>,
    plan: &Plan,
    time: Option<(&dyn Time, u64)>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Sent, String> {
    let mut sender = Sender::starting(source, plan, time)?;
    // What is far behind would take many times as long as was asked.
    let end = plan.given_up().zip(time).map(|(over, (_, start))| start + over);
    let time = time.map(|(time, _)| time);
    let is_over = || time.zip(end).is_some_and(|(time, end)| time.now() >= end);
    loop {
        match sender.step(device)? {
            _ if is_stopped() || is_over() => break,
            Step::Sent => {}
            Step::Early(due) => {
                time.into_iter().for_each(|time| time.wait_until(due.min(time.now() + LOOK)));
            }
            Step::Done => break,
        }
    }
    sender.finish(device)
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The device took some of what was due.
    Sent,
    /// Nothing is due before this time.
    Early(u64),
    /// All was sent.
    Done,
}

/// A sender that its caller has take steps.
pub(crate) struct Sender<'a, 's> {
    source: &'a mut Source<'s>,
    plan: &'a Plan,
    time: Option<&'a dyn Time>,
    schedule: Schedule,
    pool: Pool,
    /// What is due next, the first of all before the load starts.
    ready: Batch,
    first: Option<(Packet, bool)>,
    /// What is due now, and when it was.
    out: Batch,
    dues: VecDeque<(u64, u64)>,
    /// Packets that were drawn from the source, also for other senders.
    drawn: u64,
    exhausted: bool,
    start: u64,
    last_due: u64,
    late: Histogram<u64>,
    sent: Sent,
}

impl<'a, 's> Sender<'a, 's> {
    /// The load starts soon.
    pub(crate) fn new(
        source: &'a mut Source<'s>,
        plan: &'a Plan,
        time: Option<&'a dyn Time>,
    ) -> Result<Self, String> {
        Self::starting(source, plan, time.map(|time| (time, time.now() + LEAD)))
    }

    /// Has the first packet ready. The load starts at the time that stands behind the clock.
    fn starting(
        source: &'a mut Source<'s>,
        plan: &'a Plan,
        time: Option<(&'a dyn Time, u64)>,
    ) -> Result<Self, String> {
        let mut pool = Pool::new();
        let schedule = match plan.pace {
            Pace::Rate(rate, arrivals, seed) => Schedule::Drawn(arrivals.times(rate, seed)),
            Pace::Recorded(speed) => {
                Schedule::Recorded { speed, first: None, begin: 0.0, last: 0.0, packets: 0 }
            }
        };
        let first = source.next(plan.goes_on(), &mut pool)?;
        Ok(Self {
            source,
            plan,
            time: time.map(|(time, _)| time),
            schedule,
            pool,
            ready: Batch::new(),
            first,
            out: Batch::new(),
            dues: VecDeque::new(),
            drawn: 0,
            exhausted: false,
            start: time.map_or(0, |(_, start)| start),
            last_due: 0,
            late: latencies(),
            sent: Sent::nothing(),
        })
    }

    /// Sends what is due, as far as the device takes it at once.
    pub(crate) fn step(&mut self, device: &mut dyn Device) -> Result<Step, String> {
        self.prepare()?;
        if self.out.is_empty() {
            let Some(next) = self.ready.iter().next() else { return Ok(Step::Done) };
            let count = match self.time {
                None => self.ready.len(),
                Some(time) => {
                    let (now, next) = (time.now(), next.timestamp());
                    if next > now {
                        return Ok(Step::Early(next));
                    }
                    self.ready.iter().take_while(|packet| packet.timestamp() <= now).count()
                }
            };
            self.out.extend(self.ready.drain_first(count));
            self.dues.extend(self.out.iter().map(|p| (p.timestamp(), p.len() as u64)));
        }
        device.send(&mut self.out, &mut self.pool)?;
        let now = self.time.map(|time| time.now());
        let gone = self.dues.len() - self.out.len();
        for (due, length) in self.dues.drain(..gone) {
            (self.sent.packets, self.sent.bytes) =
                (self.sent.packets + 1, self.sent.bytes + length);
            self.last_due = due - self.start;
            now.into_iter().for_each(|now| self.late.saturating_record(now.saturating_sub(due)));
        }
        Lost::collect((&mut self.sent.lost, &mut self.sent.notices), device, true);
        Ok(Step::Sent)
    }

    /// Has packets ready before they are due.
    fn prepare(&mut self) -> Result<(), String> {
        let most = self.plan.count.unwrap_or(u64::MAX);
        let end = self.plan.end();
        while self.ready.len() < self.plan.burst.max(1) && !self.exhausted {
            let next = match self.first.take() {
                _ if self.drawn == most => None,
                None => self.source.next(self.plan.goes_on(), &mut self.pool)?,
                first => first,
            };
            let Some((mut packet, anew)) = next else {
                self.exhausted = true;
                break;
            };
            let due = self.schedule.next_due(packet.timestamp(), anew)?;
            if end.is_some_and(|end| due >= end) {
                self.exhausted = true;
                self.pool.recycle(packet);
                break;
            }
            let Turns { index, count } = self.plan.turns;
            self.drawn += 1;
            if (self.drawn - 1) % count.max(1) != index {
                self.pool.recycle(packet);
                continue;
            }
            packet.set_timestamp(self.start + due);
            if let Some((clock, stream)) = self.plan.stamp {
                let sequence = self.sent.stamped as u32;
                let stamp = Stamp { clock, stream, sequence, due: self.start + due };
                self.sent.stamped += u64::from(stamp.write(packet.data_mut()));
            }
            self.ready.push(packet);
        }
        Ok(())
    }

    /// Packets that have got a stamp so far.
    pub(crate) fn stamped(&self) -> u64 {
        self.sent.stamped
    }

    /// Of these, about those that the device took.
    pub(crate) fn stamped_and_sent(&self) -> u64 {
        self.sent.stamped.saturating_sub((self.ready.len() + self.out.len()) as u64)
    }

    /// What was sent; interrupted if there is more to send.
    pub(crate) fn finish(mut self, device: &mut dyn Device) -> Result<Sent, String> {
        self.prepare()?;
        self.sent.interrupted = !(self.exhausted && self.ready.is_empty() && self.out.is_empty());
        let elapsed = self.time.map(|time| time.now().saturating_sub(self.start));
        self.pool.recycle_all(&mut self.ready);
        self.pool.recycle_all(&mut self.out);
        device.flush()?;
        Lost::collect((&mut self.sent.lost, &mut self.sent.notices), device, true);
        complete(&mut self.sent, self.plan, (self.last_due, elapsed), &self.late);
        Ok(self.sent)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use dataplane::clock::Clock;
    use dataplane::io::{Binding, Bindings};
    use elements::device::{DeviceRequest, Event};

    use super::*;

    /// Time that passes as the device has it, and when it is waited for.
    pub(crate) struct Passing(std::sync::atomic::AtomicU64);

    impl From<u64> for Passing {
        fn from(begin: u64) -> Self {
            Self(begin.into())
        }
    }

    impl Passing {
        fn pass(&self, nanoseconds: u64) {
            self.0.fetch_add(nanoseconds, std::sync::atomic::Ordering::Relaxed);
        }
    }

    impl Time for Passing {
        fn now(&self) -> u64 {
            self.0.load(std::sync::atomic::Ordering::Relaxed)
        }

        fn wait_until(&self, time: u64) {
            self.0.fetch_max(time, std::sync::atomic::Ordering::Relaxed);
        }

        fn patience(&self, limit: Duration) -> Duration {
            limit
        }

        fn clock(&self) -> std::io::Result<Box<dyn Clock>> {
            Err(std::io::ErrorKind::Unsupported.into())
        }
    }

    /// A device that takes a while for each packet, and room for so many at a time.
    struct Slow<'a> {
        time: &'a Passing,
        delay: u64,
        room: usize,
        /// When each packet was due and sent, and what it was.
        sent: Vec<(u64, u64, Vec<u8>)>,
        lost: u64,
    }

    impl Device for Slow<'_> {
        fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
            Ok(Received::End)
        }

        fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
            let count = self.room.min(batch.len());
            for packet in batch.drain_first(count) {
                self.time.pass(self.delay);
                self.sent.push((packet.timestamp(), self.time.now(), packet.data().to_vec()));
                pool.recycle(packet);
            }
            Ok(())
        }

        fn next_event(&mut self) -> Option<Event> {
            let packets = std::mem::take(&mut self.lost);
            let reason = ir::Reason("send-queue-full");
            (packets > 0).then_some(Event::Lost { reason, packets, bytes: 0, sending: true })
        }
    }

    const BEGIN: u64 = 5_000_000_000;

    fn open(text: &str) -> impl FnMut() -> Result<Box<dyn Device>, String> {
        let mut bindings = Bindings::default();
        bindings.inputs.insert("in".into(), Binding::source(text).unwrap());
        let request = DeviceRequest::Interface { name: "in".into(), receive: true };
        move || Ok(bindings.open_device(&request)? as Box<dyn Device>)
    }

    fn plan(rate: f64, count: u64) -> Plan {
        let pace = Pace::Rate(rate, Arrivals::Constant, 1);
        let stamp = Some((StampClock::Monotonic, 3));
        Plan {
            pace,
            count: Some(count),
            seconds: None,
            stamp,
            turns: Turns::default(),
            burst: BURST,
        }
    }

    type Log = Vec<(u64, u64, Vec<u8>)>;

    fn run(source: &str, plan: &Plan, (delay, room, lost): (u64, usize, u64)) -> (Sent, Log) {
        let time = Passing(BEGIN.into());
        let mut device = Slow { time: &time, delay, room, sent: Vec::new(), lost };
        let mut open = open(source);
        let mut source = Source::new(&mut open).unwrap();
        let sent = send(&mut device, &mut source, plan, Some(&time), &|| false).unwrap();
        (sent, device.sent)
    }

    #[test]
    fn each_packet_is_sent_when_it_is_due_and_says_so() {
        let (sent, log) = run("gen:count=10", &plan(1e6, 1000), (100, usize::MAX, 0));
        assert_eq!((sent.packets, sent.stamped, sent.slower), (1000, 1000, false));
        for (number, (due, time, frame)) in (0u64..).zip(&log) {
            assert_eq!((*due, *time), (BEGIN + LEAD + number * 1000, due + 100));
            let (sequence, clock) = (number as u32, StampClock::Monotonic);
            let stamp = Stamp { clock, stream: 3, sequence, due: *due };
            assert_eq!(Stamp::read(frame), Some(stamp));
        }
        assert!((sent.offered.unwrap() - 1e6).abs() < 1.0, "{sent:?}");
        assert!((sent.achieved.unwrap() - 1e6).abs() < 1e3, "{sent:?}");
        assert_eq!(sent.lateness.unwrap().max, 100);
    }

    #[test]
    fn a_stall_does_not_change_when_packets_are_due() {
        let stalls = |delay| run("gen", &plan(1e6, 5000), (delay, 7, 0));
        let dues = |log: &Log| log.iter().map(|(due, ..)| *due).collect::<Vec<_>>();
        let (quick, slow) = (stalls(10), stalls(3000));
        assert_eq!(dues(&quick.1), dues(&slow.1));
        // It takes three microseconds for each packet; the last is as late as all of them together.
        assert!(!quick.0.slower && slow.0.slower, "{:?}", slow.0);
        assert!((slow.0.achieved.unwrap() / 333_333.0 - 1.0).abs() < 0.01, "{:?}", slow.0);
        assert!((slow.0.lateness.unwrap().max as f64 / 1e7 - 1.0).abs() < 0.01, "{:?}", slow.0);
        let remarks = slow.0.remarks(&plan(1e6, 5000));
        assert!(remarks[0].starts_with("slower than asked: 333,"), "{remarks:?}");
    }

    /// Senders that take turns send together what one would send, when it would; each numbers its own.
    #[test]
    fn several_senders_share_a_load() {
        let source = "gen:flows=50,size=imix,zipf=1";
        let pace = Pace::Rate(1e6, Arrivals::Poisson, 7);
        let whole = Plan { pace, stamp: None, ..plan(1e6, 1001) };
        let (alone, mut expected) = run(source, &whole, (0, usize::MAX, 0));
        let (mut found, mut all) = (Vec::new(), Vec::new());
        for index in 0..3 {
            let own = Plan { turns: Turns { index, count: 3 }, ..whole.clone() };
            let (sent, log) = run(source, &own, (0, usize::MAX, 0));
            assert_eq!(sent.packets, [334, 334, 333][index as usize]);
            found.extend(log);
            all.push(sent);
        }
        found.sort_by_key(|(due, ..)| *due);
        expected.sort_by_key(|(due, ..)| *due);
        let packets =
            |log: Log| -> Vec<_> { log.into_iter().map(|(due, _, f)| (due, f)).collect() };
        assert_eq!(packets(found), packets(expected));
        let sum = Sent::together(all);
        assert_eq!((sum.packets, sum.bytes), (alone.packets, alone.bytes));
        assert!((sum.offered.unwrap() / alone.offered.unwrap() - 1.0).abs() < 0.02, "{sum:?}");
        assert!(!sum.slower && !sum.interrupted, "{sum:?}");
        // Numbers of each begin at 0.
        let (turns, stamp) = (Turns { index: 1, count: 2 }, Some((StampClock::Monotonic, 4)));
        let (sent, log) = run(source, &Plan { turns, stamp, ..whole }, (0, usize::MAX, 0));
        assert_eq!(sent.streams, [SentStream { stream: 4, packets: sent.stamped }]);
        let numbers = log.iter().filter_map(|(_, _, frame)| Some(Stamp::read(frame)?.sequence));
        assert!(numbers.eq(0..sent.stamped as u32));
    }

    #[test]
    fn losses_of_the_device_are_no_achievement() {
        let (sent, _) = run("gen", &plan(1e6, 1000), (10, 64, 250));
        assert_eq!(sent.lost, [Lost { reason: "send-queue-full".into(), packets: 250 }]);
        assert!(sent.slower && sent.achieved.unwrap() < 760_000.0, "{sent:?}");
    }

    #[test]
    fn a_load_ends_by_count_by_time_or_with_its_source() {
        let count = |count, seconds| {
            let plan = Plan { count, seconds, ..plan(1e5, 0) };
            run("gen:count=300", &plan, (10, 64, 0)).0
        };
        assert_eq!(count(None, None).packets, 300);
        assert_eq!(count(Some(1000), None).packets, 1000);
        let timed = count(None, Some(0.02));
        assert_eq!((timed.packets, timed.due_seconds), (2000, 0.02));
        assert_eq!(count(Some(100), Some(0.02)).packets, 100);
    }

    #[test]
    fn a_load_that_is_far_behind_ends() {
        let load = |delay| {
            let plan = Plan { count: None, seconds: Some(0.01), ..plan(1e8, 0) };
            run("gen", &plan, (delay, 64, 0)).0
        };
        // A million packets in a second for a load of ten milliseconds are in time; one in four seconds is not.
        let late = load(1_000);
        assert_eq!((late.packets, late.slower, late.interrupted), (1_000_000, true, false));
        let behind = load(10_000);
        assert!(behind.slower && behind.interrupted, "{behind:?}");
        assert!((101_000..101_100).contains(&behind.packets), "{behind:?}");
        assert!((behind.offered.unwrap() / 1e8 - 1.0).abs() < 0.01, "{behind:?}");
        let plan = Plan { count: None, seconds: Some(0.01), ..plan(1e8, 0) };
        assert!(behind.remarks(&plan).iter().any(|why| why.starts_with("too far behind")));
    }

    #[test]
    fn it_stops_when_asked() {
        let time = Passing(BEGIN.into());
        let (delay, room) = (10, 64);
        let mut device = Slow { time: &time, delay, room, sent: Vec::new(), lost: 0 };
        let mut open = open("gen");
        let mut source = Source::new(&mut open).unwrap();
        let looks = Cell::new(0);
        let is_stopped = || looks.replace(looks.get() + 1) == 100;
        let sent = send(&mut device, &mut source, &plan(10.0, 1000), Some(&time), &is_stopped);
        let sent = sent.unwrap();
        assert!(sent.interrupted && !sent.slower && sent.packets < 100, "{sent:?}");
        assert!((sent.offered.unwrap() / 10.0 - 1.0).abs() < 0.2, "{sent:?}");
    }

    #[test]
    fn recorded_times_are_kept_scaled_and_repeated() {
        let schedule = |speed| {
            let (begin, last) = (0.0, 0.0);
            let mut schedule = Schedule::Recorded { speed, first: None, begin, last, packets: 0 };
            // The third was recorded a little before the second; then all begins anew.
            [
                (1000, false),
                (1300, false),
                (1299, false),
                (1600, false),
                (1000, true),
                (1300, false),
            ]
            .map(|(recorded, anew)| schedule.next_due(recorded, anew).unwrap())
        };
        assert_eq!(schedule(1.0), [0, 300, 300, 600, 800, 1100]);
        assert_eq!(schedule(2.0), [0, 150, 150, 300, 400, 550]);
        let (first, begin, last) = (None, 0.0, 0.0);
        let mut none = Schedule::Recorded { speed: 1.0, first, begin, last, packets: 0 };
        assert_eq!(none.next_due(0, false), Ok(0));
        assert!(none.next_due(0, false).unwrap_err().contains("--rate"));
        // Packets of the same time have no distance to begin anew after.
        let mut flat = Schedule::Recorded { speed: 1.0, first, begin, last, packets: 0 };
        let due = [5, 5].map(|recorded| flat.next_due(recorded, false));
        assert_eq!(due, [Ok(0), Ok(0)]);
        assert!(flat.next_due(5, true).unwrap_err().contains("--rate"));
    }

    #[test]
    fn packets_that_are_due_at_once_are_slower_than_asked() {
        let plan = Plan { count: Some(300), seconds: None, ..plan(1e15, 0) };
        let sent = run("gen", &plan, (10, 64, 0)).0;
        assert!(sent.slower && sent.offered.unwrap() > 1e10, "{sent:?}");
        let text = sent.render(&plan);
        assert!(text.contains(" µs") && !text.contains("0.0 packets/s"), "{text}");
    }

    #[test]
    fn one_packet_has_no_rate() {
        let plan = plan(1e6, 1);
        let sent = run("gen", &plan, (10, 64, 0)).0;
        assert_eq!(
            (sent.packets, sent.offered, sent.achieved, sent.slower),
            (1, None, None, false)
        );
        let sum = Sent::together([sent.clone(), sent.clone()]);
        assert_eq!((sum.packets, sum.offered, sum.achieved), (2, None, None));
        assert!(!sent.render(&plan).contains("packets/s"), "{}", sent.render(&plan));
    }

    #[test]
    fn rates_are_understood_or_refused() {
        for (text, rate) in [
            ("250", Rate::Packets(250.0)),
            ("100k", Rate::Packets(1e5)),
            ("1.5M", Rate::Packets(1.5e6)),
            ("10%", Rate::OfLink(0.1)),
        ] {
            assert_eq!(text.parse(), Ok(rate));
        }
        for wrong in ["", "k", "0", "-1", "1e6", "101%", "0%", "nan", "inf", "1T", "2G"] {
            assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
        }
    }
}
