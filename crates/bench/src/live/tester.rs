//! The tester of RFC 2544: one thread that sends on some interfaces, receives on others, and knows packets by their
//! stamps.

use std::rc::Rc;
use std::sync::Arc;

use dataplane::clock::Time;
use dataplane::io::{Binding, Bindings, Choice, InterfaceSpec, Interfaces};
use elements::device::{Device, DeviceRequest, Received};
use hdrhistogram::Histogram;
use net::{Batch, Pool};

use crate::arrivals::Arrivals;
use crate::measure::Failed;
use crate::memory::{Backlog, Offered};
use crate::receive::Receiver;
use crate::search::Trial;
use crate::send::{BURST, Lost, Pace, Plan, Sender, Source, Step, Turns, note};
use crate::stamp::{HostClock, StampClock};
use crate::statistics::latencies;
use crate::traffic::Frames;

/// Frames over and over.
struct Endless {
    frames: Rc<Frames>,
    next: u64,
}

impl Device for Endless {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        self.frames.append(self.next, burst, batch, pool);
        self.next += burst as u64;
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Err("a source cannot be written to".into())
    }

    fn link_type(&self) -> u32 {
        self.frames.link_type
    }
}

/// An interface that the tester sends on.
struct Outlet {
    device: Box<dyn Device>,
    frames: Rc<Frames>,
    /// Of each frame that has room for a stamp, whether the system forwards it.
    forwarded: Vec<bool>,
    /// Packets that come back of each that is sent on it alone, where packets are only counted.
    share: f64,
}

/// What came of a load.
pub(crate) struct Outcome {
    pub(crate) offered: Offered,
    /// Whether the tester sent less than it should, or lost packets that came: the system is not to blame.
    pub(crate) is_testers: bool,
}

/// What the tester knows of time, and who ends or fails it.
pub(crate) struct Watch<'a> {
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
    /// Fails if the system has ended.
    pub(crate) check: &'a mut dyn FnMut() -> Result<(), String>,
}

/// The tester.
pub(crate) struct Tester {
    clock: Arc<dyn Time>,
    outlets: Vec<Outlet>,
    /// The interfaces that it receives on.
    inlets: Vec<Receiver<Box<dyn Device>>>,
    /// Loads that were offered: each has streams of its own.
    loads: u32,
    interfaces: Interfaces,
    /// The share of packets that have room for a stamp, and are known again: what is lost is lost of these. Where there
    /// are none, packets are only counted.
    pub(crate) known: f64,
    /// What its interfaces reported: that a link went down.
    pub(crate) notices: Vec<String>,
}

/// After the last packet was sent or came, packets are waited for so many nanoseconds.
const QUIET: u64 = 100_000_000;
/// How long a system may take until it forwards a packet, in nanoseconds.
const STARTING: u64 = 15_000_000_000;
/// Packets per second that any system forwards.
const SLOW: f64 = 20_000.0;
/// Seconds in which all frames are sent once to see which are forwarded, unless that is slower than `SLOW`.
const ONCE: f64 = 3.0;
/// All frames are sent so often at the most, until no new ones come back.
const MOST_ROUNDS: u32 = 8;
/// A rate that no tester reaches.
const UNREACHED: f64 = 1e9;
/// A sender that is slower than asked sends half of the packets later than this, in nanoseconds.
const LATE: u64 = 100_000;
/// Steps between looks whether the system is still there.
const LOOKS: u32 = 4096;

impl Tester {
    /// Opens interfaces in the namespace of this thread: those to send frames on, and those to receive on.
    pub(crate) fn open(
        outlets: &[(String, Rc<Frames>)],
        inlets: &[String],
        io: Option<&Choice>,
    ) -> Result<Self, String> {
        let interfaces = Interfaces::default();
        let mut bindings = Bindings { interfaces: interfaces.clone(), ..Bindings::default() };
        for (names, bound) in [
            (outlets.iter().map(|(name, _)| name).collect::<Vec<_>>(), &mut bindings.outputs),
            (inlets.iter().collect(), &mut bindings.inputs),
        ] {
            for name in names {
                let spec =
                    InterfaceSpec { name: name.clone(), mode: None, batch: None, shared: false };
                bound.insert(name.clone(), Binding::Interface(spec));
            }
        }
        io.into_iter().for_each(|choice| _ = bindings.choose(choice));
        let mut open = |name: &str, receive| -> Result<Box<dyn Device>, String> {
            Ok(bindings.open_device(&DeviceRequest::Interface { name: name.into(), receive })?)
        };
        let open_inlet = |name: &String| Ok::<_, String>(Receiver::new(open(name, true)?));
        let inlets = inlets.iter().map(open_inlet).collect::<Result<Vec<_>, _>>()?;
        let open_outlet = |(name, frames): &(String, Rc<Frames>)| {
            let forwarded = vec![true; frames.count()];
            Ok::<_, String>(Outlet {
                device: open(name, false)?,
                frames: Rc::clone(frames),
                forwarded,
                share: 1.0,
            })
        };
        let outlets = outlets.iter().map(open_outlet).collect::<Result<Vec<_>, _>>()?;
        let clock = Arc::new(HostClock::new(StampClock::Monotonic));
        Ok(Self { clock, outlets, inlets, loads: 0, interfaces, known: 1.0, notices: Vec::new() })
    }

    /// Waits until the system forwards packets, and finds which. How many packets come of each that is sent.
    pub(crate) fn settle(&mut self, watch: &mut Watch<'_>) -> Result<f64, Failed> {
        let begin = self.clock.now();
        loop {
            let probe = Load { rate: SLOW, count: Some(200), seconds: None, ..Load::default() };
            if self.load(&probe, watch)?.all > 0 {
                break;
            }
            if self.clock.now() > begin + STARTING {
                return Err(Failed::Message(format!(
                    "no packet came back within {} seconds: the system drops all of this traffic, or it is not \
                     connected to the tester",
                    STARTING / 1_000_000_000
                )));
            }
        }
        let longest = self.outlets.iter().map(|outlet| outlet.frames.count()).max().unwrap_or(0);
        let rate = (longest as f64 / ONCE).max(SLOW) * self.outlets.len() as f64;
        self.outlets.iter_mut().for_each(|outlet| outlet.forwarded.clear());
        let mut share = 0.0f64;
        // First packets of flows are not always forwarded, and a busy machine loses some.
        for round in 0..MOST_ROUNDS {
            let once = Load { rate, once: true, keeps: true, ..Load::default() };
            let loaded = self.load(&once, watch)?;
            let came = loaded.all as f64 / loaded.sent.max(1) as f64;
            let mut is_new = came > share;
            share = share.max(came);
            for (outlet, stamped) in self.outlets.iter_mut().zip(&loaded.stamped) {
                outlet.forwarded.resize(*stamped as usize, false);
            }
            let stamped: u64 = loaded.stamped.iter().sum();
            self.known = stamped as f64 / loaded.sent.max(1) as f64;
            for (stream, number) in loaded.stamps {
                let place = loaded.streams.iter().position(|known| *known == stream);
                let outlet = place.and_then(|at| self.outlets.get_mut(at));
                let mark = outlet.and_then(|outlet| outlet.forwarded.get_mut(number as usize));
                is_new |= mark.is_some_and(|mark| !std::mem::replace(mark, true));
            }
            if round > 0 && !is_new {
                break;
            }
        }
        // A system with a rate forwards each frame at some time, but not all of them in any round.
        let all: Vec<&bool> = self.outlets.iter().flat_map(|outlet| &outlet.forwarded).collect();
        let forwarded = all.iter().filter(|is_forwarded| ***is_forwarded).count();
        share = share.max(forwarded as f64 / all.len().max(1) as f64);
        if self.known == 0.0 {
            // Each frame counts for the part of it that comes back.
            for only in 0..self.outlets.len() {
                let alone = Load { rate, once: true, only: Some(only), ..Load::default() };
                let loaded = self.load(&alone, watch)?;
                self.outlets[only].share = loaded.all as f64 / loaded.sent.max(1) as f64;
            }
        }
        Ok(share)
    }

    /// Packets per second that the tester can send while it receives.
    pub(crate) fn capacity(&mut self, seconds: f64, watch: &mut Watch<'_>) -> Result<f64, Failed> {
        let load =
            Load { rate: UNREACHED, seconds: Some(1e3), stop: Some(seconds), ..Load::default() };
        Ok(self.load(&load, watch)?.rate)
    }

    /// Offers so many packets a second for so many seconds.
    pub(crate) fn offer(
        &mut self,
        (rate, seconds): (f64, f64),
        (arrivals, seed): (Arrivals, u64),
        watch: &mut Watch<'_>,
    ) -> Result<Outcome, Failed> {
        let load = Load { rate, seconds: Some(seconds), arrivals, seed, ..Load::default() };
        let loaded = self.load(&load, watch)?;
        let (expected, came) = match self.known > 0.0 {
            true => (loaded.expected, loaded.came),
            false => (loaded.counted as u64, loaded.all),
        };
        let lost = expected.saturating_sub(came).saturating_sub(loaded.lost_here);
        let mut lost = lost.max(loaded.growth);
        let mut is_testers = loaded.lost_here > 0;
        if loaded.slower {
            // It was not offered: nobody knows whether it would have been forwarded.
            lost += ((1.0 - loaded.rate / loaded.due) * expected as f64).max(1.0) as u64;
            is_testers = true;
        }
        let trial = Trial { offered: expected.max(1), lost: lost.min(expected.max(1)) };
        let offered = Offered { trial, latencies: loaded.latencies };
        Ok(Outcome { offered, is_testers })
    }

    fn load(&mut self, load: &Load, watch: &mut Watch<'_>) -> Result<Loaded, Failed> {
        let wrong = Failed::Message;
        let outlets = self.outlets.len();
        let streams: Vec<u8> = (0..outlets as u32)
            .map(|i| (self.loads.wrapping_mul(outlets as u32) + i) as u8)
            .collect();
        self.loads = self.loads.wrapping_add(1);
        for inlet in &mut self.inlets {
            inlet.begin();
            inlet.counting().stamps = load.keeps.then(Vec::new);
        }
        let plans: Vec<Plan> = (self.outlets.iter().zip(&streams).zip(0u64..))
            .map(|((outlet, &stream), number)| Plan {
                pace: Pace::Rate(
                    load.rate / outlets as f64,
                    load.arrivals,
                    load.seed.wrapping_add(number),
                ),
                count: match load.only {
                    Some(only) if only as u64 != number => Some(0),
                    _ if load.once => Some(outlet.frames.count() as u64),
                    _ => load.count,
                },
                seconds: load.seconds,
                stamp: Some((StampClock::Monotonic, stream)),
                turns: Turns::default(),
                burst: BURST,
            })
            .collect();
        let frames = self.outlets.iter().map(|outlet| Rc::clone(&outlet.frames));
        let mut opens: Vec<_> = frames
            .map(|frames| {
                move || {
                    let frames = Rc::clone(&frames);
                    Ok(Box::new(Endless { frames, next: 0 }) as Box<dyn Device>)
                }
            })
            .collect();
        let sources = opens.iter_mut().map(|open| Source::new(open));
        let mut sources = sources.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let senders = sources
            .iter_mut()
            .zip(&plans)
            .map(|(source, plan)| Sender::new(source, plan, Some(&*self.clock)));
        let mut senders = senders.collect::<Result<Vec<_>, _>>().map_err(wrong)?;

        let begin = self.clock.now();
        let stop = load.stop.map(|seconds| begin + (seconds * 1e9) as u64);
        let (mut last, mut rounds) = (begin, 0u32);
        let mut is_sent = false;
        let mut expected = 0;
        // Whether more and more packets wait is seen while a load lasts.
        let lasting = load.seconds.filter(|_| load.stop.is_none() && self.known > 0.0);
        let mut backlog =
            lasting.map(|seconds| Backlog::new((load.rate * seconds * self.known) as u64));
        loop {
            rounds = rounds.wrapping_add(1);
            if (watch.is_stopped)() {
                return Err(Failed::Interrupted);
            }
            if rounds.is_multiple_of(LOOKS) {
                (watch.check)().map_err(wrong)?;
            }
            if !is_sent {
                is_sent = true;
                for (sender, outlet) in senders.iter_mut().zip(&mut self.outlets) {
                    let step = sender.step(&mut *outlet.device).map_err(wrong)?;
                    is_sent &= step == Step::Done;
                }
                last = self.clock.now();
                is_sent |= stop.is_some_and(|stop| last >= stop);
            }
            for inlet in &mut self.inlets {
                if inlet.take().map_err(wrong)?.0 > 0 {
                    last = self.clock.now();
                }
            }
            let came = |inlets: &mut [Receiver<_>]| -> u64 {
                inlets.iter_mut().map(|inlet| inlet.counting().of_streams(&streams)).sum()
            };
            if !is_sent {
                if let Some(backlog) = &mut backlog {
                    let sent = senders.iter().map(Sender::stamped_and_sent).sum();
                    backlog.sample(sent, || {
                        let sent = senders.iter().zip(&self.outlets);
                        let expected: u64 =
                            sent.map(|(s, outlet)| outlet.expected(s.stamped_and_sent())).sum();
                        expected.saturating_sub(came(&mut self.inlets))
                    });
                }
                continue;
            }
            if expected == 0 {
                let sent = senders.iter().zip(&self.outlets);
                expected = sent.map(|(s, outlet)| outlet.expected(s.stamped())).sum::<u64>().max(1);
            }
            let has_all = self.known == 1.0 && came(&mut self.inlets) >= expected;
            if has_all || self.clock.now() > last + QUIET {
                break;
            }
        }
        (watch.check)().map_err(wrong)?;

        let mut loaded = Loaded { streams, ..Loaded::nothing() };
        loaded.growth = backlog.map_or(0, |backlog| backlog.growth());
        for (sender, outlet) in senders.into_iter().zip(&mut self.outlets) {
            let sent = sender.finish(&mut *outlet.device).map_err(wrong)?;
            sent.notices.into_iter().for_each(|text| note(&mut self.notices, text));
            loaded.sent += sent.packets;
            loaded.stamped.push(sent.stamped);
            let lost = Lost::sum(&sent.lost);
            // Which packets the device lost is not known.
            loaded.expected += outlet.expected(sent.stamped).saturating_sub(lost);
            loaded.counted += sent.packets.saturating_sub(lost) as f64 * outlet.share;
            let seconds = match load.stop {
                Some(seconds) => seconds,
                None => sent.seconds.unwrap_or(sent.due_seconds),
            };
            if seconds > 0.0 {
                loaded.rate += sent.packets.saturating_sub(lost) as f64 / seconds;
            }
            loaded.due += sent.offered.unwrap_or_default();
            // One stall makes a short load end late, too; a sender that is too slow is late more and more.
            let is_late = sent.lateness.is_some_and(|lateness| lateness.p50 > LATE);
            loaded.slower |= sent.slower && is_late && load.stop.is_none();
        }
        for inlet in &mut self.inlets {
            let counting = inlet.counting();
            loaded.came += counting.of_streams(&loaded.streams);
            loaded.all += counting.of_streams(&loaded.streams);
            // Where all have stamps, others are nobody's.
            if loaded.stamped.iter().sum::<u64>() < loaded.sent {
                loaded.all += counting.unstamped();
            }
            counting.notices.drain(..).for_each(|text| note(&mut self.notices, text));
            loaded.lost_here += counting.lost_here();
            loaded.latencies.add(counting.latencies()).expect("histograms of the same bounds");
            loaded.stamps.extend(counting.stamps.take().into_iter().flatten());
        }
        Ok(loaded)
    }
}

impl Drop for Tester {
    fn drop(&mut self) {
        self.interfaces.leave();
    }
}

impl Outlet {
    /// Of so many packets with stamps, those that are forwarded.
    fn expected(&self, packets: u64) -> u64 {
        if self.forwarded.is_empty() {
            return 0;
        }
        let count =
            |flags: &[bool]| flags.iter().filter(|is_forwarded| **is_forwarded).count() as u64;
        let all = self.forwarded.len() as u64;
        let rest = (packets % all) as usize;
        packets / all * count(&self.forwarded) + count(&self.forwarded[..rest])
    }
}

/// A load to offer.
#[derive(Default)]
struct Load {
    /// Packets per second, over all outlets.
    rate: f64,
    seconds: Option<f64>,
    /// Packets of each outlet.
    count: Option<u64>,
    /// Each outlet sends all of its frames once.
    once: bool,
    /// The only outlet that sends.
    only: Option<usize>,
    /// After so many seconds no more is sent, whatever is due.
    stop: Option<f64>,
    arrivals: Arrivals,
    seed: u64,
    /// Whether all stamps that come are kept.
    keeps: bool,
}

/// What came of it.
struct Loaded {
    streams: Vec<u8>,
    sent: u64,
    /// Of those sent on each outlet, packets with a stamp.
    stamped: Vec<u64>,
    /// Of those sent, packets that the system forwards, as far as packets are known.
    expected: u64,
    /// The same by outlets' shares.
    counted: f64,
    /// Packets with a stamp that came, each once.
    came: u64,
    /// All packets that came.
    all: u64,
    /// Packets by which those that wait became more.
    growth: u64,
    lost_here: u64,
    /// Packets per second that were sent, and that were due.
    rate: f64,
    due: f64,
    slower: bool,
    latencies: Histogram<u64>,
    stamps: Vec<(u8, u32)>,
}

impl Loaded {
    fn nothing() -> Self {
        Self {
            streams: Vec::new(),
            sent: 0,
            stamped: Vec::new(),
            expected: 0,
            counted: 0.0,
            came: 0,
            all: 0,
            growth: 0,
            lost_here: 0,
            rate: 0.0,
            due: 0.0,
            slower: false,
            latencies: latencies(),
            stamps: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use dataplane::io::Generator;
    use elements::device::Wake;

    use super::*;
    use crate::memory::tests::Simulated;

    /// A system in a wire: what it has taken, and what is done with each packet by its number since a load began.
    #[derive(Default)]
    struct Wire {
        on: VecDeque<Vec<u8>>,
        /// Packets of these flows are dropped by a rule.
        denied: Vec<u8>,
        /// Of the others each of this number is lost.
        loses: Option<u64>,
        /// So many are let through a second, by this clock; the others wait.
        rate: Option<(f64, Simulated)>,
        taken: u64,
        passed: u64,
        lost: u64,
    }

    struct End(Rc<RefCell<Wire>>);

    impl Device for End {
        fn receive(
            &mut self,
            burst: usize,
            batch: &mut Batch,
            pool: &mut Pool,
        ) -> Result<Received, String> {
            let wire = &mut *self.0.borrow_mut();
            let mut count = burst.min(wire.on.len());
            if let Some((rate, clock)) = &wire.rate {
                let most = (clock.now() as f64 / 1e9 * rate) as u64;
                count = count.min(most.saturating_sub(wire.passed) as usize);
                // What was not used is not saved.
                wire.passed = wire.passed.max(most.saturating_sub(1)) + count as u64;
            }
            wire.on.drain(..count).for_each(|frame| batch.push(pool.packet(&frame)));
            Ok(Received::More)
        }

        fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
            let wire = &mut *self.0.borrow_mut();
            for packet in batch.iter() {
                // The last byte of the source port distinguishes flows.
                if wire.denied.contains(&packet.data()[35]) {
                    continue;
                }
                wire.taken += 1;
                if wire.loses.is_some_and(|each| wire.taken.is_multiple_of(each)) {
                    wire.lost += 1;
                    continue;
                }
                wire.on.push_back(packet.data().to_vec());
            }
            pool.recycle_all(batch);
            Ok(())
        }

        fn link_type(&self) -> u32 {
            1
        }

        fn wait_on(&self) -> Option<Wake> {
            Some(Wake::Polled)
        }
    }

    fn tester(wire: &Rc<RefCell<Wire>>, size: u16) -> Tester {
        let generator =
            Generator { count: 100, flows: 10, sizes: vec![size], ..Generator::default() };
        let mut bindings = Bindings::default();
        bindings.inputs.insert("in".into(), Binding::Generator(generator));
        let request = DeviceRequest::Interface { name: "in".into(), receive: true };
        let frames = Rc::new(Frames::of(&mut *bindings.open_device(&request).unwrap()).unwrap());
        let (sending, receiving) = (End(Rc::clone(wire)), End(Rc::clone(wire)));
        let forwarded = vec![true; frames.count()];
        Tester {
            clock: Arc::new(Simulated::default()),
            outlets: vec![Outlet { device: Box::new(sending), frames, forwarded, share: 1.0 }],
            inlets: vec![Receiver::new(Box::new(receiving))],
            loads: 0,
            interfaces: Interfaces::default(),
            known: 1.0,
            notices: Vec::new(),
        }
    }

    fn watched<T>(work: impl FnOnce(&mut Watch<'_>) -> Result<T, Failed>) -> T {
        let mut check = || Ok(());
        work(&mut Watch { is_stopped: &|| false, check: &mut check }).unwrap()
    }

    /// What a rule drops is no loss, and what is lost is counted to the packet, with stamps and without.
    #[test]
    fn losses_are_told_from_what_rules_drop() {
        for size in [60, 52] {
            let wire = Rc::new(RefCell::new(Wire { denied: vec![1, 2], ..Wire::default() }));
            let mut tester = tester(&wire, size);
            let share = watched(|watch| tester.settle(watch));
            assert!((share - 0.8).abs() < 0.001, "{size}: {share}");
            assert_eq!(tester.known, if size == 60 { 1.0 } else { 0.0 });
            let even = (Arrivals::Constant, 0);
            let outcome = watched(|watch| tester.offer((50_000.0, 0.01), even, watch));
            assert_eq!(outcome.offered.trial, Trial { offered: 400, lost: 0 }, "{size}");
            wire.borrow_mut().taken = 0;
            wire.borrow_mut().loses = Some(8);
            let outcome = watched(|watch| tester.offer((50_000.0, 0.01), even, watch));
            assert_eq!(wire.borrow().lost, 50);
            assert_eq!(outcome.offered.trial, Trial { offered: 400, lost: 50 }, "{size}");
        }
    }

    /// No packet is lost in a trial that queues take in; what they take in is no throughput.
    #[test]
    fn packets_that_wait_more_and_more_are_lost() {
        let wire = Rc::new(RefCell::new(Wire::default()));
        let clock = Simulated::default();
        let mut tester = tester(&wire, 60);
        tester.clock = Arc::new(clock.clone());
        watched(|watch| tester.settle(watch));
        wire.borrow_mut().rate = Some((10_000.0, clock));
        let even = (Arrivals::Constant, 0);
        let mut offer = |rate: f64| {
            let outcome = watched(|watch| tester.offer((rate, 0.1), even, watch));
            outcome.offered.trial
        };
        let (within, beyond) = (offer(9_000.0), offer(11_000.0));
        assert_eq!(within, Trial { offered: 900, lost: 0 });
        // A hundred of 1,100.
        assert!((60..=140).contains(&beyond.lost) && beyond.offered == 1100, "{beyond:?}");
    }

    #[test]
    fn a_load_that_cannot_be_sent_is_the_testers_limit() {
        let wire = Rc::new(RefCell::new(Wire::default()));
        let mut tester = tester(&wire, 60);
        let even = (Arrivals::Constant, 0);
        // A packet for each nanosecond, where looking at the clock takes more.
        let outcome = watched(|watch| tester.offer((1e9, 0.001), even, watch));
        assert!(outcome.is_testers && outcome.offered.trial.lost > 0);
    }

    #[test]
    fn a_system_that_ended_ends_the_load() {
        let wire = Rc::new(RefCell::new(Wire { denied: (0..=255).collect(), ..Wire::default() }));
        let mut tester = tester(&wire, 60);
        let mut check = || Err("it is gone".to_string());
        let mut watch = Watch { is_stopped: &|| false, check: &mut check };
        let ended = tester.settle(&mut watch);
        assert!(matches!(ended, Err(Failed::Message(why)) if why == "it is gone"));
    }
}
