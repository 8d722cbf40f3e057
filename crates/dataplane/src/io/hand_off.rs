//! Frames that go from worker to worker: a bounded ring for each that hands on and each that it
//! hands on to, and another in which buffers come back, one for each frame, so that no worker's
//! pool runs dry.

use std::io::Result;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use ir::Reason;
use net::{Batch, Packet, Pool};
use rtrb::{Consumer, Producer, RingBuffer};

use super::port::{Losses, MOST};
use crate::wake::{Bell, Sleeper};

/// Frames that wait in a ring.
const CAPACITY: usize = 4096;

/// The worker that frames are for does not take them as fast as they come.
const FULL: Reason = Reason("hand-off-queue-full");

/// The channel to a worker.
struct To {
    frames: Producer<Packet>,
    buffers: Consumer<Packet>,
    bell: Arc<Bell>,
    /// What goes to it of the burst at hand.
    staged: Vec<Packet>,
}

/// The channel from a worker.
struct From {
    frames: Consumer<Packet>,
    buffers: Producer<Packet>,
}

/// A worker's channels to others and from others.
pub(super) struct HandOff {
    /// By worker, where there is one.
    to: Vec<Option<To>>,
    from: Vec<From>,
    /// The one that is asked first, in turn.
    first: usize,
    sleeper: Sleeper,
}

impl HandOff {
    /// The channels of so many workers; who hands on to whom, `hands_on` says.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn connect(
        workers: usize,
        hands_on: impl Fn(usize, usize) -> bool,
    ) -> Result<Vec<Self>> {
        let one = |_| {
            let (to, sleeper) = ((0..workers).map(|_| None).collect(), Sleeper::new()?);
            Ok(Self { to, from: Vec::new(), first: 0, sleeper })
        };
        let mut all = (0..workers).map(one).collect::<Result<Vec<Self>>>()?;
        for from in 0..workers {
            for to in (0..workers).filter(|&to| to != from && hands_on(from, to)) {
                let (frames, out) = RingBuffer::new(CAPACITY);
                // Between two looks at it no more can come back than was in flight, and a burst.
                let (back, buffers) = RingBuffer::new(CAPACITY + MOST);
                let bell = all[to].sleeper.bell();
                all[from].to[to] = Some(To { frames, buffers, bell, staged: Vec::new() });
                all[to].from.push(From { frames: out, buffers: back });
            }
        }
        Ok(all)
    }

    /// Becomes readable when this worker may sleep and is handed a frame.
    pub(super) fn descriptor(&self) -> RawFd {
        self.sleeper.signal().as_raw_fd()
    }

    /// Hands on the frames of a batch from this one on, each to the worker that `home` says; those
    /// for which it says none stay. Tells `count` of each worker how many it was handed.
    pub(super) fn hand_on(
        &mut self,
        at: usize,
        batch: &mut Batch,
        pool: &mut Pool,
        losses: &mut Losses,
        home: impl Fn(&Packet) -> Option<usize>,
        mut count: impl FnMut(usize, u64),
    ) {
        let mut came = Batch::default();
        batch.split_to(at, &mut came);
        for packet in came.drain() {
            match home(&packet).and_then(|to| self.to.get_mut(to)?.as_mut()) {
                Some(to) => to.staged.push(packet),
                None => batch.push(packet),
            }
        }
        for (number, to) in self.to.iter_mut().enumerate() {
            if let Some(to) = to
                && !to.staged.is_empty()
            {
                count(number, to.send(pool, losses));
            }
        }
    }

    /// Takes frames that others have handed on, up to so many; how many it were.
    pub(super) fn take(&mut self, most: usize, batch: &mut Batch, pool: &mut Pool) -> usize {
        let mut left = most;
        let (late, early) = self.from.split_at_mut(self.first);
        for from in early.iter_mut().chain(late) {
            left -= from.receive(left, batch, pool);
        }
        self.first = (self.first + 1) % self.from.len().max(1);
        most - left
    }

    /// How many frames others have handed on that were not taken.
    pub(super) fn waiting(&self) -> u64 {
        self.from.iter().map(|from| from.frames.slots() as u64).sum()
    }

    /// There was something to do: nobody needs to wake this worker.
    #[inline]
    pub(super) fn worked(&mut self) {
        self.sleeper.worked();
    }

    /// There was nothing to do: this worker may sleep, unless it takes something now.
    pub(super) fn rest(&mut self) {
        self.sleeper.rest();
    }
}

/// The giving end of a hand-off from one worker to another.
pub struct Giver {
    hand_off: HandOff,
    losses: Losses,
}

/// The taking end of a hand-off from one worker to another.
pub struct Taker(HandOff);

/// A hand-off from one worker to another without interfaces: for measuring what it costs.
///
/// # Errors
/// The kernel's.
pub fn hand_off() -> Result<(Giver, Taker)> {
    let mut ends = HandOff::connect(2, |from, _| from == 0)?;
    let taker = Taker(ends.remove(1));
    Ok((Giver { hand_off: ends.remove(0), losses: Losses::default() }, taker))
}

impl Giver {
    /// Hands on a batch; how many of its packets found room. The others are gone.
    pub fn give(&mut self, batch: &mut Batch, pool: &mut Pool) -> u64 {
        let mut given = 0;
        let count = |_, packets| given = packets;
        self.hand_off.hand_on(0, batch, pool, &mut self.losses, |_| Some(1), count);
        given
    }
}

impl Taker {
    /// Takes up to `most` packets, as a worker that never sleeps; how many they were.
    pub fn take(&mut self, most: usize, batch: &mut Batch, pool: &mut Pool) -> usize {
        let count = self.0.take(most, batch, pool);
        self.0.worked();
        count
    }
}

impl To {
    /// Sends what is staged; how many frames found room. The others are counted as lost.
    fn send(&mut self, pool: &mut Pool, losses: &mut Losses) -> u64 {
        if let Ok(chunk) = self.buffers.read_chunk(self.buffers.slots()) {
            for buffer in chunk {
                pool.adopt(&buffer);
                pool.recycle(buffer);
            }
        }
        let mut staged = self.staged.drain(..);
        let room = self.frames.slots().min(staged.len());
        let chunk = self.frames.write_chunk_uninit(room);
        let sent = chunk.map_or(0, |chunk| chunk.fill_from_iter(&mut staged));
        (0..sent).for_each(|_| pool.let_go());
        for packet in staged {
            losses.received(FULL, 1, packet.len() as u64);
            pool.recycle(packet);
        }
        self.bell.ring();
        sent as u64
    }
}

impl From {
    /// Takes up to so many frames, and gives a buffer back for each.
    fn receive(&mut self, most: usize, batch: &mut Batch, pool: &mut Pool) -> usize {
        let Ok(chunk) = self.frames.read_chunk(self.frames.slots().min(most)) else { return 0 };
        let (count, mut lent) = (chunk.len(), 0);
        for packet in chunk {
            pool.adopt(&packet);
            lent += usize::from(packet.is_lent());
            batch.push(packet);
        }
        if let Ok(chunk) = self.buffers.write_chunk_uninit(self.buffers.slots().min(count)) {
            let buffers = (0..chunk.len()).map(|i| {
                let buffer = if i < lent { pool.bare() } else { pool.alloc(0) };
                pool.let_go();
                buffer
            });
            chunk.fill_from_iter(buffers);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use elements::device::Event;

    use super::super::sys;
    use super::*;

    /// A worker with its pool.
    struct Worker {
        hand_off: HandOff,
        pool: Pool,
        losses: Losses,
    }

    fn workers() -> [Worker; 2] {
        let all = HandOff::connect(2, |_, _| true).unwrap();
        let worker = |hand_off| Worker { hand_off, pool: Pool::new(), losses: Losses::default() };
        let all: Vec<Worker> = all.into_iter().map(worker).collect();
        all.try_into().ok().unwrap()
    }

    impl Worker {
        /// Hands these numbers to the other one, but those that are even.
        fn hand_on(&mut self, numbers: std::ops::Range<u32>) -> (u64, Vec<u32>) {
            let mut batch = Batch::new();
            numbers.for_each(|n| batch.push(self.pool.packet(&n.to_be_bytes())));
            let (mut handed, home) =
                (0, |packet: &Packet| (packet.data()[3] % 2 == 1).then_some(1));
            let count = |to, frames| {
                assert_eq!(to, 1);
                handed += frames;
            };
            let Self { hand_off, pool, losses } = self;
            hand_off.hand_on(0, &mut batch, pool, losses, home, count);
            (handed, self.numbers(&mut batch))
        }

        fn numbers(&mut self, batch: &mut Batch) -> Vec<u32> {
            let number = |p: &Packet| u32::from_be_bytes(*p.data().first_chunk().unwrap());
            let numbers = batch.iter().map(number).collect();
            self.pool.recycle_all(batch);
            numbers
        }

        fn take(&mut self, most: usize) -> Vec<u32> {
            let mut batch = Batch::new();
            let count = self.hand_off.take(most, &mut batch, &mut self.pool);
            assert_eq!(count, batch.len());
            self.numbers(&mut batch)
        }

        fn is_rung(&self) -> bool {
            sys::wait_readable(&[self.hand_off.descriptor()], Duration::ZERO)
        }
    }

    #[test]
    fn frames_come_in_order_and_buffers_back() {
        let [mut one, mut other] = workers();
        for round in 0..100 {
            let first = round * 40;
            let (handed, kept) = one.hand_on(first..first + 40);
            assert_eq!((handed, kept.len()), (20, 20));
            assert!(kept.iter().all(|number| number % 2 == 0));
            assert_eq!(other.hand_off.waiting(), 20);
            let came = [other.take(7), other.take(100)].concat();
            assert_eq!(other.hand_off.waiting(), 0);
            let odd: Vec<u32> = (first..first + 40).filter(|number| number % 2 == 1).collect();
            assert_eq!(came, odd);
            assert_eq!((one.pool.outstanding(), other.pool.outstanding()), (0, 0));
        }
        // Neither pool grew beyond what a round takes.
        assert!(one.pool.created() <= 60 && other.pool.created() <= 20);
    }

    #[test]
    fn a_hand_off_alone_gives_and_takes() {
        let (mut giver, mut taker) = hand_off().unwrap();
        let (mut pool, mut other, mut batch) = (Pool::new(), Pool::new(), Batch::new());
        for round in 0..3 {
            (0..40u8).for_each(|n| batch.push(pool.packet(&[n])));
            assert_eq!((giver.give(&mut batch, &mut pool), batch.len()), (40, 0));
            assert_eq!(taker.take(30, &mut batch, &mut other), 30, "round {round}");
            assert_eq!(taker.take(30, &mut batch, &mut other), 10);
            assert!(batch.iter().map(|packet| packet.data()[0]).eq(0..40));
            other.recycle_all(&mut batch);
        }
        assert_eq!(taker.take(30, &mut batch, &mut other), 0);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let [mut one, mut other] = workers();
        let wanted = 2 * (CAPACITY as u32 + 10);
        let mut handed = 0;
        for first in (0..wanted).step_by(40) {
            handed += one.hand_on(first..(first + 40).min(wanted)).0;
        }
        assert_eq!(handed, CAPACITY as u64);
        let Some(Event::Lost { reason, packets, sending, .. }) = one.losses.next(false) else {
            panic!("nothing was counted");
        };
        assert_eq!((reason, packets, sending), (FULL, 10, false));
        assert_eq!(other.take(usize::MAX).len(), CAPACITY);
        assert_eq!(one.hand_on(0..2), (1, vec![0]));
    }

    #[test]
    fn a_bell_rings_once_for_who_may_sleep() {
        let [mut one, mut other] = workers();
        one.hand_on(0..2);
        assert!(!other.is_rung(), "it never said that it may sleep");
        assert_eq!(other.take(9), [1]);
        for round in 0..3 {
            other.hand_off.rest();
            assert!(other.take(9).is_empty() && !other.is_rung());
            one.hand_on(0..2);
            one.hand_on(2..4);
            assert!(other.is_rung(), "round {round}");
            assert_eq!(other.take(9), [1, 3]);
            match round {
                0 => other.hand_off.worked(),
                _ => other.hand_off.rest(),
            }
            assert!(!other.is_rung(), "it was heard");
        }
        other.hand_off.worked();
        one.hand_on(0..2);
        assert!(!other.is_rung(), "it is awake");
    }
}
