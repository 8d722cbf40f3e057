//! Traffic in memory: frames that a capture or a generator gave once, offered over and over.

use std::collections::HashMap;

use dataplane::io::dispatch_hash;
use elements::configure::Part;
use elements::device::{Device, Received};
use net::{Batch, Pool};

/// Frames that are kept at the most.
const MOST_FRAMES: usize = 1 << 18;
/// Bytes of frames that are kept at the most.
const MOST_BYTES: usize = 64 << 20;

/// Frames, one after another.
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
    pub(crate) link_type: u32,
    /// Whether the source had more.
    pub(crate) is_cut: bool,
}

impl Frames {
    /// Takes what a device has, up to a limit.
    ///
    /// # Errors
    /// The device's, or that it has no frames.
    pub(crate) fn of(device: &mut dyn Device) -> Result<Self, String> {
        let (mut batch, mut pool) = (Batch::new(), Pool::new());
        let link_type = device.link_type();
        let mut frames = Self { bytes: Vec::new(), ends: Vec::new(), link_type, is_cut: false };
        loop {
            let received = device.receive(Batch::DEFAULT_BURST, &mut batch, &mut pool)?;
            for packet in batch.drain() {
                frames.is_cut |= !frames.push(packet.data());
                pool.recycle(packet);
            }
            if received == Received::End || frames.is_cut {
                break;
            }
        }
        if frames.ends.is_empty() { Err("there are no packets in it".into()) } else { Ok(frames) }
    }

    fn push(&mut self, frame: &[u8]) -> bool {
        let end = self.bytes.len() + frame.len();
        if self.ends.len() == MOST_FRAMES || end > MOST_BYTES {
            return false;
        }
        self.bytes.extend_from_slice(frame);
        self.ends.push(end);
        true
    }

    /// One after another.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        self.ends.iter().zip(starts).map(|(&end, start)| &self.bytes[start..end])
    }

    /// Those that dispatch by a hash brings to a worker; nothing if there are none.
    pub(crate) fn of_worker(&self, part: Part) -> Option<Self> {
        let (link_type, is_cut) = (self.link_type, self.is_cut);
        let mut own = Self { bytes: Vec::new(), ends: Vec::new(), link_type, is_cut };
        let is_own = |frame: &&[u8]| dispatch_hash(frame) as usize % part.count == part.index;
        self.iter().filter(is_own).for_each(|frame| _ = own.push(frame));
        (!own.ends.is_empty()).then_some(own)
    }

    /// The length of the longest, in bytes without the frame check sequence.
    pub(crate) fn longest(&self) -> usize {
        self.iter().map(<[u8]>::len).max().unwrap_or(0)
    }

    /// The station that most of them are for, if it is one.
    pub(crate) fn destination(&self) -> Option<String> {
        let mut counts: HashMap<[u8; 6], usize> = HashMap::new();
        for address in self.iter().filter_map(|frame| frame.first_chunk::<6>()) {
            *counts.entry(*address).or_default() += 1;
        }
        // The first bit on the wire is set in addresses of groups.
        let stations = counts.into_iter().filter(|(a, _)| a[0] & 1 == 0 && *a != [0; 6]);
        let (address, _) = stations.max_by_key(|(address, count)| (*count, *address))?;
        Some(address.map(|byte| format!("{byte:02x}")).join(":"))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Their bytes, without frame check sequences.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Appends so many of them to a batch, from a number on that counts on after the last.
    #[inline]
    pub(crate) fn append(&self, from: u64, count: usize, batch: &mut Batch, pool: &mut Pool) {
        let all = self.ends.len();
        let (mut next, mut left) = ((from % all as u64) as usize, count);
        while left > 0 {
            let ends = &self.ends[next..];
            let ends = &ends[..left.min(ends.len())];
            let mut start = next.checked_sub(1).map_or(0, |before| self.ends[before]);
            let frame = |&end: &usize| &self.bytes[std::mem::replace(&mut start, end)..end];
            pool.packets(batch, ends.iter().map(frame));
            (next, left) = (0, left - ends.len());
        }
    }
}
