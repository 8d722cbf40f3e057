//! Trains: bursts of frames that differ in their stamps alone, each burst due at once.
//!
//! What [`crate::send`] does for packets of any source is done once for a train here: all of it has one due time, and is written
//! into copies of one frame. A device with memory of its own has these copies in it already.

use dataplane::clock::Time;
use elements::device::Device;
use net::wire::{Ipv4, Udp, ether};
use net::{Batch, Pool};

use super::frame::HEADERS;
use crate::send::{LEAD, Lost, OVERTIME, Step};
use crate::stamp::{self, Stamp, StampClock};

/// Where the checksum of UDP stands.
const CHECKSUM: usize = HEADERS - 2;
/// Where a stamp has its sequence number and, behind it, its due time.
const VARIES: usize = HEADERS + 6;

/// What is sent, and when.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// A frame of UDP over IPv4, complete but for the stamp.
    pub(super) frame: Vec<u8>,
    /// The stream of its stamps.
    pub(super) stream: u8,
    /// Packets per second, in trains of this many.
    pub(super) rate: f64,
    pub(super) burst: usize,
    /// Until when packets are due, in seconds.
    pub(super) seconds: Option<f64>,
    /// Whether each byte of a payload is written anew.
    pub(super) touches: bool,
}

/// What was sent of a load.
#[derive(Clone, Debug, Default)]
pub(super) struct Departed {
    /// Packets that the device took.
    pub(super) packets: u64,
    /// Of them, those that it lost.
    pub(super) lost: Vec<Lost>,
    /// Seconds in which they were sent.
    pub(super) seconds: f64,
    /// What the device reported.
    pub(super) notices: Vec<String>,
}

/// Writes stamps into copies of a frame, one after another.
struct Writer {
    /// The sum of all that the checksum covers, but for what varies.
    sum: u32,
    touches: bool,
    /// Packets that have a stamp.
    stamped: u64,
    due: u64,
    /// The share of the due time in the checksum.
    due_sum: u32,
}

impl Writer {
    fn set_due(&mut self, due: u64) {
        self.due = due;
        self.due_sum = (0..4).map(|word| (due >> (16 * word)) as u16).map(u32::from).sum();
    }

    /// Stamps a copy as the next.
    #[inline]
    fn write(&mut self, frame: &mut [u8]) {
        let sequence = self.stamped as u32;
        self.stamped += 1;
        let Some((number, time)) =
            frame.get_mut(VARIES..).and_then(|of| of.split_first_chunk_mut())
        else {
            return;
        };
        *number = sequence.to_be_bytes();
        if let Some(time) = time.first_chunk_mut() {
            *time = self.due.to_be_bytes();
        }
        if self.touches {
            return self.touch(frame);
        }
        // At most six words and a sum that is folded: two rounds of carries.
        let sum = self.sum + self.due_sum + (sequence >> 16) + (sequence & 0xffff);
        let sum = (sum & 0xffff) + (sum >> 16);
        let checksum = match !((sum & 0xffff) + (sum >> 16)) as u16 {
            0 => 0xffff,
            checksum => checksum,
        };
        if let Some(field) = frame.get_mut(CHECKSUM..).and_then(|of| of.first_chunk_mut()) {
            *field = checksum.to_be_bytes();
        }
    }

    /// Writes each byte behind the stamp, and the checksum.
    #[cold]
    fn touch(&mut self, frame: &mut [u8]) {
        let payload = frame.get_mut(HEADERS + stamp::LENGTH..).unwrap_or_default();
        payload.fill(self.stamped as u8);
        let Some(mut packet) = frame.get_mut(ether::HEADER_LEN..).and_then(Ipv4::new) else {
            return;
        };
        let length = packet.total_len().saturating_sub(packet.header_len() as u16);
        let pseudo = packet.pseudo_header(length);
        let datagram = Udp::new(packet.payload_mut());
        datagram.into_iter().for_each(|mut datagram| datagram.fill_checksum(pseudo));
    }
}

/// A sender of trains that its caller has take steps.
pub(super) struct Trains<'a> {
    load: Load,
    time: &'a dyn Time,
    writer: Writer,
    /// Whether the device has copies of the frame; nothing before it was asked.
    prepared: Option<bool>,
    start: u64,
    /// The number of the train that is sent now, and how many packets of it are still to be sent.
    train: u64,
    left: usize,
    /// Copies that the device has not taken yet, where it has none of its own.
    out: Batch,
    pool: Pool,
    /// The time, when it was last looked at.
    now: u64,
    departed: Departed,
}

impl<'a> Trains<'a> {
    /// The load starts soon.
    pub(super) fn new(mut load: Load, time: &'a dyn Time) -> Self {
        let clock = StampClock::Monotonic;
        // What has no room for a stamp is sent as it is.
        Stamp { clock, stream: load.stream, sequence: 0, due: 0 }.write(&mut load.frame);
        let field = load.frame.get(CHECKSUM..).and_then(|of| of.first_chunk());
        let sum = u32::from(!u16::from_be_bytes(*field.unwrap_or(&[0; 2])));
        let writer = Writer { sum, touches: load.touches, stamped: 0, due: 0, due_sum: 0 };
        let now = time.now();
        let mut trains = Self {
            load,
            time,
            writer,
            prepared: None,
            start: now + LEAD,
            train: 0,
            left: 0,
            out: Batch::new(),
            pool: Pool::new(),
            now,
            departed: Departed::default(),
        };
        trains.begin_train();
        trains
    }

    /// When the train that is sent now is due, from the start.
    fn due(&self) -> u64 {
        (self.train as f64 * self.load.burst.max(1) as f64 * 1e9 / self.load.rate) as u64
    }

    fn end(&self) -> Option<u64> {
        self.load.seconds.map(|seconds| (seconds * 1e9) as u64)
    }

    /// Has the next train ready, if one is due before the end.
    fn begin_train(&mut self) {
        let due = self.due();
        let is_over = self.end().is_some_and(|end| due >= end);
        self.left = if is_over { 0 } else { self.load.burst.max(1) };
        self.writer.set_due(self.start + due);
    }

    /// Packets that have got a stamp so far.
    pub(super) fn stamped(&self) -> u64 {
        self.writer.stamped
    }

    /// Sends what is due, as far as the device takes it at once.
    pub(super) fn step(&mut self, device: &mut dyn Device) -> Result<Step, String> {
        if self.left == 0 {
            return Ok(Step::Done);
        }
        // What was due when it was last looked at the clock is due now.
        if self.writer.due > self.now {
            self.now = self.time.now();
            if self.writer.due > self.now {
                return Ok(Step::Early(self.writer.due));
            }
        }
        let Self { writer, load, .. } = self;
        let is_prepared = *self.prepared.get_or_insert_with(|| device.prepare_copies(&load.frame));
        let taken = match is_prepared {
            true => device.send_prepared(self.left, &mut |frame| writer.write(frame))?,
            false => {
                if self.out.is_empty() {
                    for _ in 0..self.left {
                        let mut packet = self.pool.packet(&load.frame);
                        writer.write(packet.data_mut());
                        self.out.push(packet);
                    }
                }
                device.send(&mut self.out, &mut self.pool)?;
                self.left - self.out.len().min(self.left)
            }
        };
        self.departed.packets += taken as u64;
        self.left = self.left.saturating_sub(taken);
        self.collect(device);
        if self.left == 0 {
            self.train += 1;
            self.begin_train();
        }
        Ok(Step::Sent)
    }

    fn collect(&mut self, device: &mut dyn Device) {
        Lost::collect((&mut self.departed.lost, &mut self.departed.notices), device, true);
    }

    /// Whether it is so far behind that it would take many times as long as was asked.
    pub(super) fn is_far_behind(&self) -> bool {
        let end = self.end().map(|end| self.start + end + end.max(OVERTIME));
        end.is_some_and(|end| self.time.now() >= end)
    }

    /// What was sent.
    pub(super) fn finish(mut self, device: &mut dyn Device) -> Result<Departed, String> {
        let elapsed = self.time.now().saturating_sub(self.start);
        // All was sent: until the last was due, if that is longer.
        let due = if self.left == 0 { self.end() } else { None };
        self.departed.seconds = elapsed.max(due.unwrap_or(0)) as f64 / 1e9;
        self.pool.recycle_all(&mut self.out);
        device.flush()?;
        self.collect(device);
        Ok(self.departed)
    }
}

#[cfg(test)]
mod tests {
    use elements::device::{Event, Received};

    use super::super::frame::template;
    use super::super::frame::tests::{endpoint, is_right};
    use super::*;
    use crate::send::tests::Passing;

    /// A device with room for so many frames at a time, which may have copies of its own.
    struct Narrow {
        room: usize,
        copies: Option<Vec<u8>>,
        /// Copies that were changed and not sent.
        waiting: Vec<Vec<u8>>,
        sent: Vec<Vec<u8>>,
        lost: u64,
    }

    impl Narrow {
        fn new(room: usize) -> Self {
            Self { room, copies: None, waiting: Vec::new(), sent: Vec::new(), lost: 0 }
        }
    }

    impl Device for Narrow {
        fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
            Ok(Received::End)
        }

        fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
            for packet in batch.drain_first(self.room) {
                self.sent.push(packet.data().to_vec());
                pool.recycle(packet);
            }
            Ok(())
        }

        fn prepare_copies(&mut self, frame: &[u8]) -> bool {
            self.copies.as_mut().is_some_and(|copies| {
                *copies = frame.to_vec();
                true
            })
        }

        fn send_prepared(
            &mut self,
            count: usize,
            write: &mut dyn FnMut(&mut [u8]),
        ) -> Result<usize, String> {
            while self.waiting.len() < count {
                let mut copy = self.copies.clone().unwrap();
                write(&mut copy);
                self.waiting.push(copy);
            }
            let taken = count.min(self.room);
            self.sent.extend(self.waiting.drain(..taken));
            Ok(taken)
        }

        fn next_event(&mut self) -> Option<Event> {
            let packets = std::mem::take(&mut self.lost);
            let reason = ir::Reason("send-queue-full");
            (packets > 0).then_some(Event::Lost { reason, packets, bytes: 0, sending: true })
        }
    }

    /// No part of it is zero.
    const BEGIN: u64 = 0x0102_0304_0506_0708;

    fn load(size: usize, touches: bool) -> Load {
        let frame = template(&endpoint(1), &endpoint(2), size).unwrap();
        Load { frame, stream: 3, rate: 1e6, burst: 32, seconds: Some(0.0099), touches }
    }

    fn run(load: Load, device: &mut Narrow) -> (Departed, u64) {
        let time = Passing::from(BEGIN);
        let mut trains = Trains::new(load, &time);
        loop {
            match trains.step(device).unwrap() {
                Step::Sent => {}
                Step::Early(due) => time.wait_until(due),
                Step::Done => break,
            }
        }
        let stamped = trains.stamped();
        (trains.finish(device).unwrap(), stamped)
    }

    /// All of a train has one due time and numbers go on, whatever the device has room for, and whoever has the copies.
    #[test]
    fn every_packet_has_its_number_and_when_it_was_due() {
        for (size, touches) in [(60, false), (65, false), (1514, false), (60, true), (131, true)] {
            let mut found = Vec::new();
            for (room, copies) in
                [(usize::MAX, None), (7, None), (256, Some(Vec::new())), (5, Some(Vec::new()))]
            {
                let mut device = Narrow { copies, ..Narrow::new(room) };
                let (departed, stamped) = run(load(size, touches), &mut device);
                // Trains of 32 are due until 9.9 ms, one every 32 µs.
                assert_eq!((departed.packets, stamped, device.sent.len()), (9920, 9920, 9920));
                assert!((departed.seconds - 0.0099).abs() < 1e-4, "{departed:?}");
                for (number, frame) in (0u64..).zip(&device.sent) {
                    let due = BEGIN + LEAD + number / 32 * 32_000;
                    let (sequence, clock) = (number as u32, StampClock::Monotonic);
                    let stamp = Stamp { clock, stream: 3, sequence, due };
                    assert_eq!(Stamp::read(frame), Some(stamp));
                    assert!(is_right(frame), "{size} {touches} {number}");
                    let payload = &frame[HEADERS + stamp::LENGTH..];
                    let filled = if touches { (number + 1) as u8 } else { 0 };
                    assert!(payload.iter().all(|byte| *byte == filled), "{number}: {payload:?}");
                }
                found.push(device.sent);
            }
            assert!(found.windows(2).all(|of| of[0] == of[1]));
        }
    }

    #[test]
    fn what_the_device_lost_is_no_less_taken() {
        let mut device = Narrow { lost: 40, ..Narrow::new(usize::MAX) };
        let (departed, _) = run(load(64, false), &mut device);
        assert_eq!((departed.packets, Lost::sum(&departed.lost)), (9920, 40));
    }

    #[test]
    fn a_load_that_is_far_behind_is_given_up() {
        let time = Passing::from(BEGIN);
        let mut trains = Trains::new(load(64, false), &time);
        time.wait_until(BEGIN + LEAD + 9_900_000 + OVERTIME - 1);
        assert!(!trains.is_far_behind());
        let mut device = Narrow::new(1);
        assert_eq!(trains.step(&mut device), Ok(Step::Sent));
        time.wait_until(time.now() + 1);
        assert!(trains.is_far_behind());
        let departed = trains.finish(&mut device).unwrap();
        assert_eq!(departed.packets, 1);
        assert!(departed.seconds > 1.0, "{departed:?}");
    }
}
