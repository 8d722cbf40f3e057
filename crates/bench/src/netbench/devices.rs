//! Devices of applications, with what is done with their frames besides.

use std::cell::Cell;
use std::rc::Rc;

use elements::device::{Device, Event, Received, Wake};
use net::{Batch, Pool};

/// What was done since the begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) attempted: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// The sum of all round trips, in nanoseconds.
    pub(super) round_trips: Option<f64>,
}

/// A device whose frames are read byte by byte.
pub(super) struct Touched(pub(super) Box<dyn Device>);

impl Device for Touched {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let received = self.0.receive(burst, batch, pool)?;
        for packet in batch.iter() {
            let sum = packet.data().iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
            std::hint::black_box(sum);
        }
        Ok(received)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        self.0.send(batch, pool)
    }

    fn wait_on(&self) -> Option<Wake> {
        self.0.wait_on()
    }

    fn next_event(&mut self) -> Option<Event> {
        self.0.next_event()
    }

    fn burst(&self) -> Option<usize> {
        self.0.burst()
    }

    fn flush(&mut self) -> Result<(), String> {
        self.0.flush()
    }
}

/// A device that sends, of which it is known how much.
pub(super) struct Counted {
    pub(super) device: Box<dyn Device>,
    pub(super) done: Rc<Cell<Totals>>,
    /// Whether others that want the CPU have a turn after each burst.
    pub(super) yields: bool,
}

impl Counted {
    /// The device took so many packets.
    fn took(&mut self, packets: usize) {
        let mut done = self.done.get();
        (done.attempted, done.sent) = (done.attempted + packets as u64, done.sent + packets as u64);
        self.done.set(done);
        if self.yields {
            std::thread::yield_now();
        }
    }
}

impl Device for Counted {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        self.device.receive(burst, batch, pool)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        let before = batch.len();
        let sent = self.device.send(batch, pool);
        self.took(before - batch.len());
        sent
    }

    fn prepare_copies(&mut self, frame: &[u8]) -> bool {
        self.device.prepare_copies(frame)
    }

    fn send_prepared(
        &mut self,
        count: usize,
        write: &mut dyn FnMut(&mut [u8]),
    ) -> Result<usize, String> {
        let sent = self.device.send_prepared(count, write);
        self.took(*sent.as_ref().unwrap_or(&0));
        sent
    }

    fn next_event(&mut self) -> Option<Event> {
        let event = self.device.next_event();
        if let Some(Event::Lost { packets, sending: true, .. }) = event {
            let mut done = self.done.get();
            done.sent = done.sent.saturating_sub(packets);
            self.done.set(done);
        }
        event
    }

    fn burst(&self) -> Option<usize> {
        self.device.burst()
    }

    fn flush(&mut self) -> Result<(), String> {
        self.device.flush()
    }
}

/// What stands where a device was.
pub(super) struct Nothing;

impl Device for Nothing {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Ok(())
    }
}
