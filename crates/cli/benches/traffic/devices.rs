//! What a chain reads from and writes to: the workload, and a device that keeps a count, and replies if servers do.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use dataplane::clock::VirtualClock;
use elements::configure::Devices;
use elements::device::{Device, DeviceRequest, Received};
use net::{Batch, Pool};

use crate::workload::{Frames, Workload, reply};

/// What came out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sent {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Of all bytes, if they are looked at: in this order, and in any.
    pub(crate) digest: u64,
    pub(crate) unordered: u64,
}

/// Devices of a chain.
pub(crate) struct Memory {
    workload: Rc<Workload>,
    /// The chain's clock, and how far it goes on with each packet.
    clock: (VirtualClock, u64),
    pub(crate) sent: Rc<Cell<Sent>>,
    /// How many packets came in.
    pub(crate) received: Rc<Cell<u64>>,
    digests: bool,
    /// Frames that servers reply to.
    pending: Rc<RefCell<VecDeque<[u8; REPLY]>>>,
}

/// Length of frames that servers reply to.
const REPLY: usize = 60;

impl Memory {
    pub(crate) fn new(workload: &Rc<Workload>, clock: (VirtualClock, u64), digests: bool) -> Self {
        let workload = Rc::clone(workload);
        let (sent, received, pending) = Default::default();
        Self { workload, clock, sent, received, digests, pending }
    }
}

impl Devices for Memory {
    fn open(&mut self, request: &DeviceRequest) -> Result<Box<dyn Device>, String> {
        let received = Rc::clone(&self.received);
        Ok(match request {
            DeviceRequest::CaptureOut { path, .. } => {
                let replies = self.workload.replies && path == "out";
                let pending = replies.then(|| Rc::clone(&self.pending));
                let sent = Rc::clone(&self.sent);
                Box::new(Sink { sent, digests: self.digests, pending })
            }
            DeviceRequest::CaptureIn { path } if path == "back-in" => {
                Box::new(Replies { pending: Rc::clone(&self.pending), received })
            }
            _ => {
                let frames = Frames::new(&self.workload);
                Box::new(Source { frames, clock: self.clock.clone(), received })
            }
        })
    }
}

/// Sends a workload's packets.
struct Source {
    frames: Frames,
    clock: (VirtualClock, u64),
    received: Rc<Cell<u64>>,
}

impl Device for Source {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        batch.extend((0..burst).map(|_| pool.packet(self.frames.next_frame())));
        self.received.set(self.received.get() + burst as u64);
        self.clock.0.advance(burst as u64 * self.clock.1);
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Err("only a source".into())
    }
}

/// Sends replies.
struct Replies {
    pending: Rc<RefCell<VecDeque<[u8; REPLY]>>>,
    received: Rc<Cell<u64>>,
}

impl Device for Replies {
    fn receive(
        &mut self,
        burst: usize,
        batch: &mut Batch,
        pool: &mut Pool,
    ) -> Result<Received, String> {
        let mut pending = self.pending.borrow_mut();
        let count = burst.min(pending.len());
        batch.extend(pending.drain(..count).map(|frame| pool.packet(&frame)));
        self.received.set(self.received.get() + count as u64);
        Ok(Received::More)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        pool.recycle_all(batch);
        Err("only a source".into())
    }
}

/// Counts what is sent.
struct Sink {
    sent: Rc<Cell<Sent>>,
    digests: bool,
    pending: Option<Rc<RefCell<VecDeque<[u8; REPLY]>>>>,
}

impl Device for Sink {
    fn receive(&mut self, _: usize, _: &mut Batch, _: &mut Pool) -> Result<Received, String> {
        Ok(Received::End)
    }

    fn send(&mut self, batch: &mut Batch, pool: &mut Pool) -> Result<(), String> {
        let mut sent = self.sent.get();
        for packet in batch.iter() {
            sent.packets += 1;
            sent.bytes += packet.len() as u64;
            if self.digests {
                let digest = digest(packet.data());
                sent.digest = mix(sent.digest, digest);
                sent.unordered = sent.unordered.wrapping_add(digest);
            }
        }
        self.sent.set(sent);
        if let Some(pending) = &self.pending {
            let mut pending = pending.borrow_mut();
            for packet in batch.iter() {
                if let Ok(mut frame) = <[u8; REPLY]>::try_from(packet.data())
                    && reply(&mut frame)
                {
                    pending.push_back(frame);
                }
            }
        }
        pool.recycle_all(batch);
        Ok(())
    }
}

fn digest(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |digest, word| {
        let mut eight = [0; 8];
        eight[..word.len()].copy_from_slice(word);
        mix(digest, u64::from_le_bytes(eight))
    })
}

fn mix(digest: u64, word: u64) -> u64 {
    (digest ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
