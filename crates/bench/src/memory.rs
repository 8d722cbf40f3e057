//! A chain in memory: frames are copied from memory into a receive ring, go through the chain on this thread, and are
//! given back where they leave it. No network card, driver or system call takes part.
//!
//! The load is open: each packet is due at its time, whatever the chain is at, and waits in the ring until the chain
//! takes it. One that comes while the ring is full is lost, as is one that finds a queue of the chain full; what the
//! chain drops for other reasons is its function. Latency counts from when a packet was due, so that waiting
//! is never left out (coordinated omission).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use dataplane::clock::Time;
use dataplane::{Rest, Router};
use elements::configure::Devices;
use elements::device::{Device, DeviceRequest, Received};
use hdrhistogram::Histogram;
use net::{Batch, Pool};

use crate::arrivals::{Arrivals, DueTimes};
use crate::search::Trial;
use crate::statistics::{self, latencies};
use crate::traffic::Frames;

/// Packets that wait for a chain at the most, for each of its sources: the descriptors of a network card's usual
/// receive queue.
pub const RING: u64 = 1024;

/// Parts that a nanosecond is divided in.
const PARTS: f64 = 65_536.0;

/// When packets come.
enum Arrival {
    /// Not at all.
    Never,
    /// As many as are taken.
    AsTaken,
    /// So many, at equal distances.
    Constant { start: u64, gap: f64, count: u64 },
    /// So many frames from the first one on, at times that are drawn; the next is due at `next`.
    Drawn { start: u64, times: DueTimes, next: u64, first: u64, count: u64 },
}

/// A source of frames, and the ring before it.
struct Source {
    frames: Rc<Frames>,
    /// The distances at which they came, where that is known.
    distances: Option<Arc<[f64]>>,
    time: Arc<dyn Time>,
    arrival: Arrival,
    /// Packets that came, counted from the start of the load.
    came: u64,
    /// Of them, those that wait.
    ring: VecDeque<Range<u64>>,
    /// When those that wait were due, where times are drawn.
    due: VecDeque<u64>,
    waiting: u64,
    lost: u64,
    taken: u64,
    /// The number of the frame that comes next where as many come as are taken: each load goes on where the last ended.
    next: u64,
}

impl Source {
    fn begin(&mut self, arrival: Arrival) {
        self.arrival = arrival;
        (self.came, self.waiting, self.lost, self.taken) = (0, 0, 0, 0);
        self.ring.clear();
        self.due.clear();
    }

    /// Lets those into the ring that are due. Whether all have come and were taken or lost.
    fn is_over(&mut self) -> bool {
        let (due, count) = match &mut self.arrival {
            Arrival::Never | Arrival::AsTaken => return true,
            Arrival::Constant { start, gap, count } => {
                let elapsed = self.time.now().saturating_sub(*start) as f64;
                (((elapsed / *gap) as u64 + 1).min(*count), *count)
            }
            Arrival::Drawn { start, times, next, count, .. } => {
                let (now, mut due) = (self.time.now(), self.came);
                while due < *count && *next <= now {
                    if self.waiting + (due - self.came) < RING {
                        self.due.push_back(*next);
                    }
                    due += 1;
                    *next = *start + times.next_due();
                }
                (due, *count)
            }
        };
        if due > self.came {
            let accepted = (due - self.came).min(RING - self.waiting);
            if accepted > 0 {
                self.ring.push_back(self.came..self.came + accepted);
            }
            self.waiting += accepted;
            self.lost += due - self.came - accepted;
            self.came = due;
        }
        self.came == count && self.waiting == 0
    }

    fn take(&mut self, burst: usize, batch: &mut Batch, pool: &mut Pool) {
        let (offset, even) = match self.arrival {
            Arrival::Never => return,
            Arrival::AsTaken => {
                self.frames.append(self.next, burst, batch, pool);
                self.next = self.next.wrapping_add(burst as u64);
                self.taken += burst as u64;
                return;
            }
            Arrival::Constant { start, gap, .. } => (0, Some((start, gap))),
            Arrival::Drawn { first, .. } => (first, None),
        };
        self.is_over();
        let mut left = burst as u64;
        while let Some(range) = self.ring.front_mut().filter(|_| left > 0) {
            let count = left.min(range.end - range.start);
            let (first, before) = (range.start, batch.len());
            self.frames.append(offset + first, count as usize, batch, pool);
            let fresh = &mut batch.as_mut_slice()[before..];
            match even {
                Some((start, gap)) => {
                    // Whole numbers take less time, which counts for the chain: in parts of a nanosecond.
                    let parts = |nanoseconds: f64| (nanoseconds * PARTS) as u64;
                    let (mut after, gap) = (parts(first as f64 * gap), parts(gap));
                    for packet in fresh {
                        packet.set_timestamp(start + after / PARTS as u64);
                        after = after.wrapping_add(gap);
                    }
                }
                None => {
                    for packet in fresh {
                        packet.set_timestamp(self.due.pop_front().unwrap_or_default());
                    }
                }
            }
            range.start += count;
            if range.is_empty() {
                self.ring.pop_front();
            }
            (left, self.waiting, self.taken) =
                (left - count, self.waiting - count, self.taken + count);
        }
    }
}

/// What left the chain.
struct Sink {
    time: Arc<dyn Time>,
    packets: u64,
    /// From when packets that left were due, and how long they took.
    latencies: Option<(u64, Histogram<u64>)>,
}

struct SourceHandle(Rc<RefCell<Source>>);
struct SinkHandle(Rc<RefCell<Sink>>);

impl Device for SourceHandle {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        self.0.borrow_mut().take(burst, batch, pool);
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Err("a source cannot be written to".into())
    }

    fn link_type(&self) -> u32 {
        self.0.borrow().frames.link_type
    }
}

impl Device for SinkHandle {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        let sink = &mut *self.0.borrow_mut();
        sink.packets += batch.len() as u64;
        if let Some((since, latencies)) = &mut sink.latencies {
            let now = sink.time.now();
            // Packets that the chain made itself were not due at any time.
            for due in
                batch.iter().map(|p| p.timestamp()).filter(|due| (*since..=now).contains(due))
            {
                latencies.saturating_record(now - due);
            }
        }
        pool.recycle_all(batch);
        Ok(())
    }
}

/// What came of packets at a load.
pub(crate) struct Offered {
    pub(crate) trial: Trial,
    pub(crate) latencies: Histogram<u64>,
}

/// Why measuring ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It was interrupted.
    Interrupted,
    /// The chain does not go on.
    Chain(String),
}

/// The devices of a chain.
pub(crate) struct Harness {
    time: Arc<dyn Time>,
    sources: Vec<Rc<RefCell<Source>>>,
    sink: Rc<RefCell<Sink>>,
    /// The names of interfaces that frames go to.
    sinks: Vec<String>,
}

/// Rounds in a row in which a chain may take nothing that it could take.
const PATIENCE: u32 = 100_000;
/// Rounds that a chain may take to send what it holds after a load.
const RESIDUE: u32 = 10_000;
/// Nanoseconds that its queues may take to empty.
const DRAINING: u64 = 2_000_000_000;

impl Harness {
    pub(crate) fn new(time: Arc<dyn Time>) -> Self {
        let sink = Sink { time: Arc::clone(&time), packets: 0, latencies: None };
        Self { time, sources: Vec::new(), sink: Rc::new(RefCell::new(sink)), sinks: Vec::new() }
    }

    /// A device that frames come from.
    pub(crate) fn source(&mut self, frames: Rc<Frames>) -> Box<dyn Device> {
        let source = Source {
            distances: frames.distances(),
            frames,
            time: Arc::clone(&self.time),
            arrival: Arrival::Never,
            came: 0,
            ring: VecDeque::new(),
            due: VecDeque::new(),
            waiting: 0,
            lost: 0,
            taken: 0,
            next: 0,
        };
        let source = Rc::new(RefCell::new(source));
        self.sources.push(Rc::clone(&source));
        Box::new(SourceHandle(source))
    }

    /// The names of interfaces that frames go to, each once.
    pub(crate) fn sinks(&self) -> Vec<String> {
        self.sinks.clone()
    }

    /// A device that frames go to.
    pub(crate) fn sink(&self) -> Box<dyn Device> {
        Box::new(SinkHandle(Rc::clone(&self.sink)))
    }

    /// Whether it is known of the frames of all sources when they came.
    pub(crate) fn has_times(&self) -> bool {
        self.sources.iter().all(|source| source.borrow().distances.is_some())
    }

    /// How many sources the chain has.
    pub(crate) fn sources(&self) -> usize {
        self.sources.len()
    }

    fn begin(&self, mut arrival: impl FnMut(f64) -> Arrival) {
        for (source, number) in self.sources.iter().zip(0u32..) {
            source.borrow_mut().begin(arrival(f64::from(number)));
        }
    }

    fn sum(&self, count: impl Fn(&Source) -> u64) -> u64 {
        self.sources.iter().map(|source| count(&source.borrow())).sum()
    }

    /// Moves this many packets or a few more, as fast as the chain takes them. How many they were.
    ///
    /// # Errors
    /// If the chain takes none, or `is_stopped`.
    pub(crate) fn saturate(
        &self,
        router: &mut Router,
        packets: u64,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<u64, Ended> {
        self.begin(|_| Arrival::AsTaken);
        let (mut moved, mut idle) = (0, 0);
        while moved < packets {
            let rest = router.round();
            let now = self.sum(|source| source.taken);
            idle = if now == moved { idle + 1 } else { 0 };
            moved = now;
            check(rest, is_stopped)?;
            if idle > PATIENCE {
                self.begin(|_| Arrival::Never);
                return Err(Ended::Chain("the chain takes no packets from its sources".into()));
            }
        }
        self.begin(|_| Arrival::Never);
        self.settle(router, is_stopped)?;
        Ok(moved)
    }

    /// Has the chain take packets for some time as fast as it can, from a frame of each source on. How many it was done with in
    /// time; the last round is not among them, nor is what follows.
    ///
    /// # Errors
    /// If the chain stops, or `is_stopped`.
    pub(crate) fn saturate_for(
        &self,
        router: &mut Router,
        (from, nanoseconds): (u64, u64),
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<u64, Ended> {
        self.begin(|_| Arrival::AsTaken);
        self.sources.iter().for_each(|source| source.borrow_mut().next = from);
        let (mut done, end) = (0, self.time.now().saturating_add(nanoseconds));
        loop {
            check(router.round(), is_stopped)?;
            if self.time.now() > end {
                break;
            }
            done = self.sum(|source| source.taken);
        }
        self.begin(|_| Arrival::Never);
        self.settle(router, is_stopped)?;
        Ok(done)
    }

    /// Offers so many packets a second, over all sources, for so many seconds, as an arrival process has it, which is
    /// drawn by a seed. Latencies are kept only if they are asked for: keeping them takes time.
    ///
    /// # Errors
    /// If the chain stops, or `is_stopped`.
    pub(crate) fn offer(
        &self,
        router: &mut Router,
        (rate, seconds): (f64, f64),
        (arrivals, seed): (Arrivals, u64),
        with_latencies: bool,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Offered, Ended> {
        let sources = self.sources.len() as f64;
        let gap = 1e9 * sources / rate;
        let count = ((seconds * 1e9 / gap) as u64).max(1);
        let overflowed = overflows(router);
        let mut drawn = self.draw((rate / sources, count), (arrivals, seed)).into_iter();
        let start = self.time.now();
        self.sink.borrow_mut().latencies = with_latencies.then(|| (start, latencies()));
        self.begin(|number| {
            if let Some((mut times, first)) = drawn.next() {
                let next = start + times.next_due();
                return Arrival::Drawn { start, times, next, first, count };
            }
            // Sources take turns.
            let start = start + (number * gap / sources) as u64;
            Arrival::Constant { start, gap, count }
        });
        let is_over = || self.sources.iter().all(|source| source.borrow_mut().is_over());
        let mut backlog = Backlog::new(count.saturating_mul(self.sources.len() as u64));
        // A source that the chain reads looks for itself what is due.
        let mut taken = u64::MAX;
        loop {
            let before = std::mem::replace(&mut taken, self.sum(|source| source.taken));
            if (before == taken || before == u64::MAX) && is_over() {
                break;
            }
            check(router.round(), is_stopped)?;
            if !with_latencies {
                backlog.sample(self.sum(|source| source.came), || {
                    self.sum(|source| source.waiting) + queued(router)
                });
            }
        }
        let (came, missed) = (self.sum(|source| source.came), self.sum(|source| source.lost));
        self.begin(|_| Arrival::Never);
        self.drain(router, is_stopped)?;
        // Queues may also lose copies that the chain made.
        let lost = (missed + overflows(router) - overflowed).max(backlog.growth()).min(came);
        let latencies = self.sink.borrow_mut().latencies.take();
        let latencies = latencies.map_or_else(statistics::latencies, |(_, latencies)| latencies);
        Ok(Offered { trial: Trial { offered: came, lost }, latencies })
    }

    /// For each source the times at which so many packets are due, and the frame that they begin with; nothing if they come
    /// at equal distances. Recorded times begin where the seed has it: a load that is shorter than the capture is not always
    /// its head.
    fn draw(
        &self,
        (rate, count): (f64, u64),
        (arrivals, seed): (Arrivals, u64),
    ) -> Vec<(DueTimes, u64)> {
        if arrivals == Arrivals::Constant {
            return Vec::new();
        }
        let draw = |(source, number): (&Rc<RefCell<Source>>, u64)| {
            let seed = seed.wrapping_add(number);
            let distances = source.borrow().distances.clone();
            match distances.filter(|all| arrivals == Arrivals::Recorded && !all.is_empty()) {
                Some(distances) => {
                    let first = fastrand::Rng::with_seed(seed).u64(..distances.len() as u64);
                    (DueTimes::recorded(distances, rate, first, count), first)
                }
                None => (arrivals.times(rate, seed), 0),
            }
        };
        self.sources.iter().zip(0..).map(draw).collect()
    }

    /// Lets the chain send what it still holds.
    fn settle(&self, router: &mut Router, is_stopped: &dyn Fn() -> bool) -> Result<(), Ended> {
        for _ in 0..RESIDUE {
            let rest = router.round();
            check(rest, is_stopped)?;
            if rest != Rest::Busy {
                break;
            }
        }
        Ok(())
    }

    /// Lets the chain send what its queues hold, for two seconds at the most as RFC 2544 has it: a load begins without
    /// what is left of another one.
    fn drain(&self, router: &mut Router, is_stopped: &dyn Fn() -> bool) -> Result<(), Ended> {
        self.settle(router, is_stopped)?;
        let end = self.time.now().saturating_add(DRAINING);
        while queued(router) > 0 && self.time.now() < end {
            let rest = router.round();
            check(rest, is_stopped)?;
            if rest == Rest::Idle {
                break;
            }
        }
        Ok(())
    }

    /// Packets that left the chain.
    pub(crate) fn left(&self) -> u64 {
        self.sink.borrow().packets
    }
}

/// Packets that wait while a load is offered. If they become more and more, the system does not sustain the load, even if
/// its queues are long enough to lose none of them in a trial.
pub(crate) struct Backlog {
    /// Packets of the load.
    all: u64,
    /// A sample is taken once so many have come.
    next: u64,
    /// The least in the second quarter of the load, and in the last one: a stall of the machine passes.
    least: [Option<u64>; 2],
}

impl Backlog {
    const SAMPLES: u64 = 64;
    /// Growth that counts as none, as a share of the packets that came meanwhile, and in packets: bursts differ.
    const TOLERANCE: f64 = 0.005;
    const LEAST: u64 = 2;

    pub(crate) fn new(all: u64) -> Self {
        Self { all, next: 0, least: [None; 2] }
    }

    /// Looks how many wait, if it is time to, when so many have come.
    pub(crate) fn sample(&mut self, came: u64, waiting: impl FnOnce() -> u64) {
        if came < self.next {
            return;
        }
        self.next = came + (self.all / Self::SAMPLES).max(1);
        let least = match u128::from(came) * 4 / u128::from(self.all.max(1)) {
            1 => &mut self.least[0],
            3.. => &mut self.least[1],
            _ => return,
        };
        let waiting = waiting();
        *least = Some(least.map_or(waiting, |least| least.min(waiting)));
    }

    /// Packets of the load that the system did not keep up with.
    pub(crate) fn growth(&self) -> u64 {
        let [Some(before), Some(after)] = self.least else { return 0 };
        // The samples are half of the load apart.
        let growth = after.saturating_sub(before);
        let tolerated = (Self::TOLERANCE * self.all as f64 / 2.0) as u64;
        if growth > tolerated.max(Self::LEAST) { 2 * growth } else { 0 }
    }
}

/// Why packets are dropped that a queue of the chain has no room for.
const OVERFLOW: &str = "queue-full";

/// Packets that queues of a chain had no room for.
fn overflows(router: &mut Router) -> u64 {
    let elements = router.stats().elements;
    let lines = elements.iter().flat_map(|element| &element.tally);
    lines.filter(|line| line.reason.0 == OVERFLOW).map(|line| line.dropped).sum()
}

/// Packets that wait in queues of a chain.
fn queued(router: &Router) -> u64 {
    router.queued().values().sum()
}

fn check(rest: Rest, is_stopped: &dyn Fn() -> bool) -> Result<(), Ended> {
    match rest {
        Rest::Stopped => Err(Ended::Chain("an element of the chain stopped the driver".into())),
        _ if is_stopped() => Err(Ended::Interrupted),
        _ => Ok(()),
    }
}

/// Opens devices of a harness: each source has the frames that `frames` finds for it.
pub(crate) struct HarnessDevices<'a, F> {
    pub(crate) harness: &'a mut Harness,
    pub(crate) frames: F,
}

impl<F: FnMut(&DeviceRequest) -> Result<Rc<Frames>, String>> Devices for HarnessDevices<'_, F> {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        match request {
            DeviceRequest::CaptureOut { .. } => Ok(self.harness.sink()),
            DeviceRequest::Interface { receive: false, name } => {
                if !self.harness.sinks.contains(name) {
                    self.harness.sinks.push(name.clone());
                }
                Ok(self.harness.sink())
            }
            _ => {
                let frames = (self.frames)(request)?;
                Ok(self.harness.source(frames))
            }
        }
    }
}

#[cfg(test)]
mod overhead;

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use dataplane::clock::Clock;
    use dataplane::{ProgramUse, Transcript};
    use elements::configure::WorkerShare;
    use engine::Disk;
    use engine::session::{self, Path, Setup};
    use ir::Sources;

    use super::*;
    use crate::report::Percentiles;
    use crate::search::{Goal, Range, search};

    /// Nanoseconds that looking at the clock takes.
    pub(crate) const LOOK: u64 = 20;

    /// Time that passes only by looking at it, and as devices have it pass.
    #[derive(Clone)]
    pub(crate) struct Simulated {
        now: Arc<AtomicU64>,
        look: u64,
    }

    impl Default for Simulated {
        fn default() -> Self {
            Self::with_looks_of(LOOK)
        }
    }

    impl Simulated {
        /// Looking takes so many nanoseconds. The more it takes, the fewer are the rounds in which there is nothing to do.
        fn with_looks_of(look: u64) -> Self {
            // Packets that are due at 0 would have no time stamp.
            Self { now: Arc::new(AtomicU64::new(1_000_000_000)), look }
        }

        fn pass(&self, nanoseconds: u64) {
            self.now.fetch_add(nanoseconds, Ordering::Relaxed);
        }
    }

    impl Time for Simulated {
        fn now(&self) -> u64 {
            self.now.fetch_add(self.look, Ordering::Relaxed)
        }

        fn wait_until(&self, time: u64) {
            self.now.fetch_max(time, Ordering::Relaxed);
        }

        fn patience(&self, limit: Duration) -> Duration {
            limit
        }

        fn clock(&self) -> std::io::Result<Box<dyn Clock>> {
            Ok(Box::new(self.clone()))
        }
    }

    impl Clock for Simulated {
        fn now(&mut self) -> u64 {
            Time::now(self)
        }

        fn wait_until(&mut self, time: u64) {
            Time::wait_until(self, time);
        }
    }

    /// A sink that has time pass before it takes a packet: what it is told, for the packet's number.
    struct Slow<F> {
        sink: Box<dyn Device>,
        time: Simulated,
        delay: F,
        number: u64,
    }

    impl<F: FnMut(u64) -> u64> Device for Slow<F> {
        fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
            Ok(Received::End)
        }

        fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
            let packets: Vec<_> = batch.drain().collect();
            for packet in packets {
                self.time.pass((self.delay)(self.number));
                self.number += 1;
                batch.push(packet);
                self.sink.send(batch, pool)?;
            }
            Ok(())
        }
    }

    struct Devices<'a, F> {
        harness: &'a mut Harness,
        time: Simulated,
        delay: Option<F>,
    }

    impl<F: FnMut(u64) -> u64 + 'static> elements::configure::Devices for Devices<'_, F> {
        fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
            if let DeviceRequest::Interface { receive: true, .. } = request {
                let mut generated = dataplane::io::Bindings::default();
                let binding = dataplane::io::Binding::source("gen:count=100")?;
                generated.inputs.insert("in".into(), binding);
                let frames = Frames::of(&mut *generated.open_device(request)?)?;
                return Ok(self.harness.source(Rc::new(frames)));
            }
            let delay = self.delay.take().ok_or("one sink")?;
            Ok(Box::new(Slow {
                sink: self.harness.sink(),
                time: self.time.clone(),
                delay,
                number: 0,
            }))
        }
    }

    fn start(chain: &str, delay: impl FnMut(u64) -> u64 + 'static) -> (Harness, Router) {
        start_at(Simulated::default(), chain, delay)
    }

    fn start_at(
        time: Simulated,
        chain: &str,
        delay: impl FnMut(u64) -> u64 + 'static,
    ) -> (Harness, Router) {
        let mut harness = Harness::new(Arc::new(time.clone()));
        let mut sources = Sources::new();
        let file = sources.add("chain", chain);
        let setup = Setup {
            part: WorkerShare::default(),
            files: &mut Disk::default(),
            devices: &mut Devices { harness: &mut harness, time: time.clone(), delay: Some(delay) },
            clock: Box::new(time),
            listener: Box::new(Transcript::default()),
            seed: 1,
            path: Path::Native,
            background: None,
            program_use: ProgramUse::Always,
            cut: None,
            unproven: false,
        };
        let mut found = Vec::new();
        let started = session::start(&mut sources, file, Vec::new(), setup, &mut found);
        let (_, router) = started.unwrap_or_else(|| panic!("{found:?}"));
        (harness, router)
    }

    const BARE: &str = "FromDevice(in) -> ToDevice(out);";

    const EVEN: (Arrivals, u64) = (Arrivals::Constant, 1);

    fn offer(delay: impl FnMut(u64) -> u64 + 'static, load: (f64, f64)) -> Offered {
        let (harness, mut router) = start(BARE, delay);
        harness.offer(&mut router, load, EVEN, true, &|| false).unwrap()
    }

    fn is_close(found: u64, truth: u64) {
        assert!((found as f64 / truth as f64 - 1.0).abs() < 0.02, "{found}, should be {truth}");
    }

    #[test]
    fn known_delays_are_measured() {
        // Evenly from 1 to 51 µs, in an order that is none.
        let offered = offer(|number| 1000 + number * 7_919 % 5_000 * 10, (10_000.0, 0.5));
        assert_eq!(offered.trial, Trial { offered: 5_000, lost: 0 });
        let found = Percentiles::of(&offered.latencies).unwrap();
        is_close(found.p50, 26_000);
        is_close(found.p90, 46_000);
        is_close(found.p99, 50_500);
        is_close(found.p99_9, 50_950);
        is_close(found.max, 51_000);
        is_close(found.pdv, 50_950 - 1_000);
    }

    #[test]
    fn a_stall_is_seen_by_all_packets_that_were_due() {
        // Ten milliseconds a second: of the packets, 1 % wait, evenly from 0 to 10 ms.
        let stalls = |number| if number % 50_000 == 25_000 { 10_000_000 } else { 200 };
        let offered = offer(stalls, (50_000.0, 1.0));
        assert_eq!(offered.trial.lost, 0);
        let found = Percentiles::of(&offered.latencies).unwrap();
        is_close(found.p99_9, 9_000_000);
        is_close(found.max, 10_000_000);
        assert!(found.p90 < 2_000, "{found:?}");
    }

    #[test]
    fn a_known_share_is_lost() {
        // A packet takes a microsecond, so four of five get through.
        let (harness, mut router) = start(BARE, |_| 1000);
        let mut lose = |seconds| {
            let load = (1_250_000.0, seconds);
            harness.offer(&mut router, load, EVEN, false, &|| false).unwrap().trial.loss_ratio()
        };
        // The packets of a short overload wait in the ring, as many as would be lost in a long one.
        for (seconds, tolerated) in [(1.0, 0.02), (0.003, 0.1)] {
            let found = lose(seconds);
            assert!((found / 0.2 - 1.0).abs() < tolerated, "{seconds} {found}");
        }
    }

    #[test]
    fn packets_of_a_poisson_process_queue_as_theory_has_it() {
        // M/D/1: at 80 % of what the device serves, packets wait twice as long as they are served, on average.
        let (harness, mut router) = start(BARE, |_| 10_000);
        let arrivals = (Arrivals::Poisson, 3);
        let offered =
            harness.offer(&mut router, (80_000.0, 5.0), arrivals, true, &|| false).unwrap();
        assert_eq!(offered.trial, Trial { offered: 400_000, lost: 0 });
        let mean = offered.latencies.mean();
        assert!((mean / 30_000.0 - 1.0).abs() < 0.1, "{mean}");
        // At equal distances, nobody would wait.
        let even = harness.offer(&mut router, (80_000.0, 1.0), EVEN, true, &|| false).unwrap();
        assert!(even.latencies.mean() < 12_000.0, "{}", even.latencies.mean());
    }

    #[test]
    fn long_bursts_overflow_the_ring() {
        let (harness, mut router) = start(BARE, |_| 1000);
        let arrivals = ("bursts=10ms:30ms".parse().unwrap(), 3);
        let load = (500_000.0, 4.0);
        let offered = harness.offer(&mut router, load, arrivals, true, &|| false).unwrap();
        // Two million a second come while a million are served, and a thousand of them can wait.
        let found = offered.trial.loss_ratio();
        assert!((0.3..0.5).contains(&found), "{found}");
        assert_eq!(offered.latencies.len(), offered.trial.offered - offered.trial.lost);
        // Those that wait longest found the ring all but full, and a batch before it.
        let longest = offered.latencies.max();
        assert!((RING * 1000..(RING + 100) * 1000).contains(&longest), "{longest}");
    }

    #[test]
    fn what_finds_a_queue_full_is_lost() {
        let chain = "FromDevice(in, BURST 32) -> Queue(4) -> Unqueue(BURST 1) -> ToDevice(out);";
        let (harness, mut router) = start(chain, |_| 1000);
        let offered =
            harness.offer(&mut router, (2_000_000.0, 0.1), EVEN, false, &|| false).unwrap();
        assert!(offered.trial.loss_ratio() > 0.4, "{:?}", offered.trial);
        assert!(offered.latencies.is_empty());
        // What a chain drops by its rules is not.
        let (harness, mut router) = start(
            "FromDevice(in) -> s :: Switch(0); s[0] -> Discard; s[1] -> ToDevice(out);",
            |_| 0,
        );
        let offered = harness.offer(&mut router, (10_000.0, 0.1), EVEN, true, &|| false).unwrap();
        assert_eq!((offered.trial, harness.left()), (Trial { offered: 1000, lost: 0 }, 0));
    }

    #[test]
    fn the_throughput_of_a_device_with_a_known_limit_is_found() {
        for nanoseconds in [700, 3333] {
            let (harness, mut router) = start(BARE, move |_| nanoseconds);
            let goal = Goal { loss_ratio: 0.0, width: 0.005, trials: 3 };
            let limit = 1e9 / nanoseconds as f64;
            let range = Range { min: 1e4, max: 2.0 * limit };
            let trial = |load| {
                harness.offer(&mut router, (load, 0.5), EVEN, false, &|| false).map(|o| o.trial)
            };
            let found = search(&[goal], range, trial).unwrap()[0];
            assert!((found.throughput / limit - 1.0).abs() < 0.01, "{limit} {found:?}");
            assert!(found.trials <= 20, "{found:?}");
        }
    }

    #[test]
    fn what_queues_take_in_for_a_while_is_not_throughput() {
        // In a trial, the queue takes in a third of what is sent, and the ring a tenth.
        let rated = "FromDevice(in) -> Queue(600) -> RatedUnqueue(100000) -> ToDevice(out);";
        for (chain, nanoseconds, limit, seconds) in
            [(rated, 0, 100_000.0, 0.02), (BARE, 33_333, 30_000.0, 0.3)]
        {
            let time = Simulated::with_looks_of(500);
            let (harness, mut router) = start_at(time, chain, move |_| nanoseconds);
            let goal = Goal { loss_ratio: 0.0, width: 0.005, trials: 3 };
            let range = Range { min: limit / 5.0, max: 10.0 * limit };
            let trial = |load| {
                harness.offer(&mut router, (load, seconds), EVEN, false, &|| false).map(|o| o.trial)
            };
            let found = search(&[goal], range, trial).unwrap()[0];
            // The tokens of a rate are a per cent of so short a trial.
            assert!((found.throughput / limit - 1.0).abs() < 0.02, "{chain} {found:?}");
        }
    }

    #[test]
    fn runs_with_one_seed_are_the_same() {
        let run = || {
            let offered = offer(|number| number * 31 % 977, (900_000.0, 0.2));
            (
                offered.trial,
                offered
                    .latencies
                    .iter_recorded()
                    .map(|v| (v.value_iterated_to(), v.count_at_value()))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(run(), run());
    }

    #[test]
    fn a_chain_that_takes_nothing_or_stops_is_reported() {
        let (harness, mut router) = start("FromDevice(in, ACTIVE false) -> ToDevice(out);", |_| 0);
        let ended = harness.saturate(&mut router, 1000, &|| false).unwrap_err();
        assert_eq!(ended, Ended::Chain("the chain takes no packets from its sources".into()));
        let (harness, mut router) = start(BARE, |_| 0);
        let ended = harness.offer(&mut router, (1e6, 60.0), EVEN, true, &|| true).err();
        assert_eq!(ended, Some(Ended::Interrupted));
        router.stop();
        assert!(matches!(harness.saturate(&mut router, 1000, &|| false), Err(Ended::Chain(_))));
    }
}
