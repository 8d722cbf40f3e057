//! Pages: each written by one alone, the host or an NF, and read by others.
//!
//! The host's page lists a round's packets. An NF's page says of each of them, at the same position, what became of it.
//! So an NF can name no buffer that the host did not, none twice, and not change their order.

use std::io::Result;
use std::os::fd::AsFd;

use crate::abi::{ENTRY, MOST_COUNTERS, MOST_PACKETS, at, page_length};
use crate::memory::{Mapping, Memory};

/// How a chain's memory is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Buffers of a region.
    pub buffers: u32,
    /// Bytes of a buffer.
    pub buffer_size: u32,
    /// Packets of a round at most.
    pub capacity: u32,
}

impl Layout {
    /// Whether the ABI has it.
    pub fn is_valid(&self) -> bool {
        (1..=1 << 20).contains(&self.buffers)
            && (256..=1 << 16).contains(&self.buffer_size)
            && self.buffer_size.is_multiple_of(64)
            && (1..=MOST_PACKETS).contains(&self.capacity)
    }

    /// Bytes of a region.
    pub fn region(&self) -> usize {
        self.buffers as usize * self.buffer_size as usize
    }

    /// Bytes of a page.
    pub fn page(&self) -> usize {
        page_length(self.capacity)
    }

    /// Whether these bytes are in a buffer.
    pub fn has(&self, extent: Extent) -> bool {
        u32::from(extent.head).checked_add(extent.length).is_some_and(|end| end <= self.buffer_size)
    }
}

/// How NFs wait for their turn, as the host says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// In the kernel, until the one before wakes them.
    Baton,
    /// By yielding their core, again and again.
    Yield,
    /// In the kernel, as no packets come.
    Idle,
    /// Not at all: they end.
    Stop,
}

/// Where a packet's bytes are in its buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The first byte.
    pub head: u16,
    /// How many.
    pub length: u32,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// It was dropped before, or nothing was said.
    #[default]
    Absent,
    /// It goes on: these bytes of its buffer.
    Pass(Extent),
    /// It is dropped, for a reason of the NF's own.
    Drop(u16),
}

const PASS: u64 = 1;
const DROP: u64 = 2;

impl Verdict {
    fn word(self) -> u64 {
        match self {
            Self::Absent => 0,
            Self::Pass(of) => u64::from(of.length) | u64::from(of.head) << 32 | PASS << 48,
            Self::Drop(reason) => u64::from(reason) | DROP << 48,
        }
    }

    fn of(word: u64) -> Self {
        match word >> 48 {
            PASS => Self::Pass(Extent { head: (word >> 32) as u16, length: word as u32 }),
            DROP => Self::Drop(word as u16),
            _ => Self::Absent,
        }
    }
}

/// What the host says of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Its buffer.
    pub buffer: u32,
    /// A hash of its flow; 0 if it is not known.
    pub hash: u32,
    /// When it came: nanoseconds since 1970.
    pub time: u64,
    /// The port at which it came.
    pub port: u16,
    /// The group of its flow; 0 if it has none.
    pub group: u16,
}

/// What an NF's runtime counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that came.
    pub received: u64,
    /// Packets that went on.
    pub passed: u64,
    /// Packets that were dropped.
    pub dropped: u64,
    /// Packets that the one before passed on with bounds outside of their buffers.
    pub malformed: u64,
    /// How often it woke when it had not the turn.
    pub out_of_turn: u64,
    /// Nanoseconds in `process`.
    pub busy: u64,
    /// Rounds.
    pub batches: u64,
}

/// A page in the address space of this process.
#[derive(Debug)]
pub struct Page(Mapping);

impl Page {
    /// That of the layout, in memory.
    ///
    /// # Errors
    /// If it cannot be mapped.
    pub fn map(memory: &Memory, writable: bool) -> Result<Self> {
        memory.map(writable).map(Self)
    }

    pub(crate) fn attach(file: impl AsFd, layout: &Layout, writable: bool) -> Result<Self> {
        Mapping::new(file, layout.page(), writable).map(Self)
    }

    /// The last round that its owner finished.
    #[inline]
    pub fn round(&self) -> u64 {
        self.0.acquire(at::ROUND)
    }

    /// Says that a round is finished: all written before is seen by who reads this.
    #[inline]
    pub fn finish(&mut self, round: u64) {
        self.0.release(at::ROUND, round);
    }

    /// Packets of the round.
    #[inline]
    pub fn count(&self) -> u64 {
        self.0.load(at::COUNT)
    }

    /// Says how many packets the round has.
    #[inline]
    pub fn set_count(&mut self, count: u32) {
        self.0.store(at::COUNT, u64::from(count));
    }

    /// How to wait.
    #[inline]
    pub fn state(&self) -> State {
        match self.0.acquire(at::STATE) {
            0 => State::Baton,
            1 => State::Yield,
            2 => State::Idle,
            _ => State::Stop,
        }
    }

    /// Says how to wait.
    pub fn set_state(&mut self, state: State) {
        let number = match state {
            State::Baton => 0,
            State::Yield => 1,
            State::Idle => 2,
            State::Stop => 3,
        };
        self.0.release(at::STATE, number);
    }

    /// What became of the packet at a position.
    #[inline]
    pub fn verdict(&self, index: u32) -> Verdict {
        Verdict::of(self.0.load(entry(index)))
    }

    /// Says what became of it.
    #[inline]
    pub fn set_verdict(&mut self, index: u32, verdict: Verdict) {
        self.0.store(entry(index), verdict.word());
    }

    /// The number of the last update that the packet at a position waits for; 0 if it does not.
    #[inline]
    pub fn update(&self, index: u32) -> u64 {
        self.0.load(entry(index) + 8)
    }

    /// Says it.
    #[inline]
    pub fn set_update(&mut self, index: u32, number: u64) {
        self.0.store(entry(index) + 8, number);
    }

    /// What the host says of it.
    #[inline]
    pub fn arrival(&self, index: u32) -> Arrival {
        let [first, time, last] = [8, 16, 24].map(|more| self.0.load(entry(index) + more));
        Arrival {
            buffer: first as u32,
            hash: (first >> 32) as u32,
            time,
            port: last as u16,
            group: (last >> 16) as u16,
        }
    }

    /// Says it.
    #[inline]
    pub fn set_arrival(&mut self, index: u32, of: Arrival) {
        let at = entry(index);
        self.0.store(at + 8, u64::from(of.buffer) | u64::from(of.hash) << 32);
        self.0.store(at + 16, of.time);
        self.0.store(at + 24, u64::from(of.port) | u64::from(of.group) << 16);
    }

    /// What its owner's runtime counted.
    pub fn counts(&self) -> Counts {
        let of = |at: usize| self.0.load(at);
        Counts {
            received: of(at::RECEIVED),
            passed: of(at::PASSED),
            dropped: of(at::DROPPED),
            malformed: of(at::MALFORMED),
            out_of_turn: of(at::OUT_OF_TURN),
            busy: of(at::BUSY),
            batches: of(at::BATCHES),
        }
    }

    #[inline]
    pub(crate) fn set_counts(&mut self, counts: &Counts) {
        self.0.store(at::RECEIVED, counts.received);
        self.0.store(at::PASSED, counts.passed);
        self.0.store(at::DROPPED, counts.dropped);
        self.0.store(at::MALFORMED, counts.malformed);
        self.0.store(at::BUSY, counts.busy);
        self.0.store(at::BATCHES, counts.batches);
        self.set_out_of_turn(counts.out_of_turn);
    }

    #[inline]
    pub(crate) fn set_out_of_turn(&mut self, times: u64) {
        self.0.store(at::OUT_OF_TURN, times);
    }

    /// One of its owner's own counters.
    pub fn counter(&self, number: usize) -> u64 {
        if number < MOST_COUNTERS { self.0.load(at::COUNTERS + 8 * number) } else { 0 }
    }

    #[inline]
    pub(crate) fn set_counter(&mut self, number: usize, value: u64) {
        if number < MOST_COUNTERS {
            self.0.store(at::COUNTERS + 8 * number, value);
        }
    }
}

#[inline]
fn entry(index: u32) -> usize {
    at::ENTRIES + ENTRY * index as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { buffers: 8, buffer_size: 2048, capacity: 4 };

    #[test]
    fn what_is_written_is_read() {
        let memory = Memory::new("page", LAYOUT.page()).unwrap();
        let (mut own, other) =
            (Page::map(&memory, true).unwrap(), Page::map(&memory, false).unwrap());
        let arrival =
            Arrival { buffer: 7, hash: u32::MAX, time: u64::MAX - 1, port: 3, group: 65_535 };
        own.set_arrival(3, arrival);
        for verdict in [
            Verdict::Pass(Extent { head: 65_535, length: u32::MAX }),
            Verdict::Drop(31),
            Verdict::Absent,
        ] {
            own.set_verdict(3, verdict);
            assert_eq!(other.verdict(3), verdict);
        }
        for state in [State::Baton, State::Yield, State::Idle, State::Stop] {
            own.set_state(state);
            assert_eq!(other.state(), state);
        }
        assert_eq!(other.arrival(3), arrival);
        own.finish(9);
        assert_eq!(other.round(), 9);
    }

    #[test]
    fn extents_outside_of_a_buffer_are_found() {
        assert!(LAYOUT.has(Extent { head: 0, length: 2048 }));
        assert!(!LAYOUT.has(Extent { head: 1, length: 2048 }));
        assert!(!LAYOUT.has(Extent { head: u16::MAX, length: 0 }));
        assert!(!LAYOUT.has(Extent { head: 1, length: u32::MAX }));
    }

    #[test]
    fn any_word_is_a_verdict() {
        for word in [0, 1 << 48, 2 << 48, 3 << 48, u64::MAX, 0xffff_0000_0000_0000] {
            let _ = Verdict::of(word);
        }
        assert_eq!(Verdict::of(u64::MAX), Verdict::Absent);
    }
}
