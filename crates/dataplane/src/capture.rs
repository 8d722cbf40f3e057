//! Capturing packets where they pass from one element to the next, see [`Taps::insert`].
//!
//! [`Taps::insert`]: crate::Taps::insert

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use elements::Element;
use elements::context::Context;
use elements::selector::{Selector, link_type_of};
use ir::Model;
use net::{Batch, Packet};

/// Bytes of packets that wait to be written at the most; what comes then is counted as missing.
const MOST_WAITING: usize = 64 << 20;
/// About what a packet takes besides its bytes.
const OVERHEAD: usize = 64;

/// A packet as it passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// The number that the place has where it passed.
    pub place: u32,
    /// The worker.
    pub worker: u32,
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// Link type of what its bytes begin with.
    pub link_type: u32,
    /// Its first bytes.
    pub data: Vec<u8>,
    /// How many it had.
    pub length: u32,
}

/// What happened to a capture, all its places and workers together.
#[derive(Debug, Default)]
pub struct Counts {
    /// Packets that were chosen.
    pub chosen: AtomicU64,
    /// Those of them that are missing, because others were still waiting to be written.
    pub missing: AtomicU64,
    /// Bytes that wait.
    waiting: AtomicUsize,
}

/// What is captured and where it goes to.
pub struct Capture<M> {
    /// Which packets.
    pub selector: Selector,
    /// Bytes of each that are kept at the most.
    pub snap_length: usize,
    /// What happened.
    pub counts: Arc<Counts>,
    /// Takes them, many at a time.
    pub to: Sender<M>,
}

impl<M> Clone for Capture<M> {
    fn clone(&self) -> Self {
        Self {
            selector: self.selector.clone(),
            snap_length: self.snap_length,
            counts: Arc::clone(&self.counts),
            to: self.to.clone(),
        }
    }
}

impl Counts {
    /// To be called when a packet was written, or will not be.
    pub fn written(&self, packet: &Captured) {
        self.waiting.fetch_sub(size(packet), Ordering::Relaxed);
    }
}

fn size(packet: &Captured) -> usize {
    packet.data.len() + OVERHEAD
}

impl<M: From<Vec<Captured>> + Send + 'static> Capture<M> {
    /// An element that captures what passes it on a worker.
    pub fn point(self, place: u32, worker: u32) -> Box<dyn Element> {
        Box::new(Point { capture: self, place, worker })
    }
}

struct Point<M> {
    capture: Capture<M>,
    place: u32,
    worker: u32,
}

impl<M: From<Vec<Captured>>> Point<M> {
    fn look<'p>(&self, packets: impl Iterator<Item = &'p Packet>, time: u64) {
        let Capture { selector, snap_length, counts, to } = &self.capture;
        let mut taken = Vec::new();
        let (mut chosen, mut missing) = (0, 0);
        for packet in packets.filter(|packet| selector.chooses(packet)) {
            chosen += 1;
            let bytes = packet.len().min(*snap_length) + OVERHEAD;
            if counts.waiting.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_WAITING {
                counts.waiting.fetch_sub(bytes, Ordering::Relaxed);
                missing += 1;
                continue;
            }
            taken.push(Captured {
                place: self.place,
                worker: self.worker,
                time,
                link_type: link_type_of(packet),
                data: packet.data().iter().copied().take(*snap_length).collect(),
                length: packet.len() as u32,
            });
        }
        if chosen > 0 {
            counts.chosen.fetch_add(chosen, Ordering::Relaxed);
            counts.missing.fetch_add(missing, Ordering::Relaxed);
        }
        if !taken.is_empty() {
            // Nobody may be there any more.
            let _ = to.send(M::from(taken));
        }
    }
}

impl<M: From<Vec<Captured>>> Element for Point<M> {
    fn push(&mut self, _: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        self.look(batch.iter(), cx.now());
    }

    fn pull(&mut self, _: usize, cx: &mut Context<'_>) -> Option<Packet> {
        let packet = cx.pull(0);
        self.look(packet.iter(), cx.now());
        packet
    }

    fn model(&self) -> Model {
        Model::opaque("packets are captured here")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::Pool;
    use std::sync::mpsc::channel;

    #[test]
    fn what_cannot_wait_is_missing_and_counted() {
        let (to, from) = channel::<Vec<Captured>>();
        let capture = Capture {
            selector: Selector::new("").unwrap(),
            snap_length: 1 << 20,
            counts: Arc::default(),
            to,
        };
        let counts = Arc::clone(&capture.counts);
        let point = Point { capture, place: 0, worker: 0 };
        let mut pool = Pool::new();
        let packet = pool.packet(&vec![7; 9000]);
        let fit = MOST_WAITING / (9000 + OVERHEAD);
        (0..fit + 3).for_each(|_| point.look([&packet].into_iter(), 1));
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!((of(&counts.chosen), of(&counts.missing)), (fit as u64 + 3, 3));
        // Once some were written, there is room.
        from.recv().unwrap().iter().for_each(|packet| counts.written(packet));
        point.look([&packet].into_iter(), 1);
        point.look([&packet].into_iter(), 1);
        assert_eq!(of(&counts.missing), 4);
        from.try_iter().flatten().for_each(|packet| counts.written(&packet));
        assert_eq!(counts.waiting.load(Ordering::Relaxed), 0);
    }
}
