//! Traffic in memory: frames that a capture or a generator gave once, offered over and over.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dataplane::io::dispatch_hash;
use elements::configure::WorkerShare;
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
    /// When each frame came, as far as its source knows: 0 is unknown.
    times: Vec<u64>,
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
        let mut frames = Self::none(link_type, false);
        loop {
            let received = device.receive(Batch::DEFAULT_BURST, &mut batch, &mut pool)?;
            for packet in batch.drain() {
                frames.is_cut |= !frames.push(packet.data(), packet.timestamp());
                pool.recycle(packet);
            }
            if received == Received::End || frames.is_cut {
                break;
            }
        }
        if frames.ends.is_empty() { Err("there are no packets in it".into()) } else { Ok(frames) }
    }

    fn none(link_type: u32, is_cut: bool) -> Self {
        Self { bytes: Vec::new(), ends: Vec::new(), times: Vec::new(), link_type, is_cut }
    }

    fn push(&mut self, frame: &[u8], time: u64) -> bool {
        let end = self.bytes.len() + frame.len();
        if self.ends.len() == MOST_FRAMES || end > MOST_BYTES {
            return false;
        }
        self.bytes.extend_from_slice(frame);
        self.ends.push(end);
        self.times.push(time);
        true
    }

    /// One after another.
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        self.ends.iter().zip(starts).map(|(&end, start)| &self.bytes[start..end])
    }

    /// Those that dispatch by a hash brings to a worker; nothing if there are none.
    pub(crate) fn of_worker(&self, part: WorkerShare) -> Option<Self> {
        let mut own = Self::none(self.link_type, self.is_cut);
        let is_own =
            |(frame, _): &(&[u8], u64)| dispatch_hash(frame) as usize % part.count == part.index;
        let all = self.iter().zip(self.times.iter().copied());
        all.filter(is_own).for_each(|(frame, time)| _ = own.push(frame, time));
        (!own.ends.is_empty()).then_some(own)
    }

    /// How many flows they are of.
    pub(crate) fn flows(&self) -> usize {
        self.iter().map(dispatch_hash).collect::<HashSet<_>>().len()
    }

    /// A frame of each flow, in groups of so many flows: each group takes turns for so many frames. Nothing if there are fewer
    /// flows.
    pub(crate) fn grouped(&self, flows: usize, length: usize) -> Option<Self> {
        let mut known = HashSet::new();
        let all: Vec<&[u8]> = self.iter().filter(|of| known.insert(dispatch_hash(of))).collect();
        if all.len() < flows || flows == 0 {
            return None;
        }
        let mut grouped = Self::none(self.link_type, self.is_cut);
        for group in all.chunks_exact(flows) {
            let bytes = group.iter().map(|of| of.len()).max().unwrap_or(0) * length;
            let is_full = grouped.ends.len() + length > MOST_FRAMES
                || grouped.bytes.len() + bytes > MOST_BYTES;
            if is_full && !grouped.ends.is_empty() {
                break;
            }
            group.iter().cycle().take(length).for_each(|frame| _ = grouped.push(frame, 0));
        }
        Some(grouped)
    }

    /// The distances from each frame to the next, with a mean of 1; that of the last is the mean. Nothing if their times are
    /// not known.
    pub(crate) fn distances(&self) -> Option<Arc<[f64]>> {
        let between = |pair: &[u64]| pair[1].saturating_sub(pair[0]) as f64;
        let mut distances: Vec<f64> = self.times.windows(2).map(between).collect();
        let mean = distances.iter().sum::<f64>() / distances.len().max(1) as f64;
        if mean <= 0.0 || self.times[1..].contains(&0) {
            return None;
        }
        distances.iter_mut().for_each(|distance| *distance /= mean);
        distances.push(1.0);
        Some(distances.into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_a_frame_of_each_flow_in_turn() {
        let mut frames = Frames::none(1, false);
        let frame = |flow: u8| {
            let mut frame = [0u8; 42];
            frame[12..15].copy_from_slice(&[8, 0, 0x45]);
            (frame[23], frame[26], frame[30]) = (17, 10, flow);
            frame
        };
        [1, 1, 2, 3, 2, 4, 5].iter().for_each(|flow| _ = frames.push(&frame(*flow), 0));
        let flows = |of: &Frames| of.iter().map(|frame| frame[30]).collect::<Vec<_>>();
        let grouped = frames.grouped(2, 5).unwrap();
        assert_eq!(flows(&grouped), [1, 2, 1, 2, 1, 3, 4, 3, 4, 3]);
        assert!(frames.grouped(6, 8).is_none());
    }

    #[test]
    fn distances_are_of_times_that_are_known() {
        let distances = |times: &[u64]| {
            let mut frames = Frames::none(1, false);
            times.iter().for_each(|time| _ = frames.push(b"frame", *time));
            frames.distances().map(|distances| distances.to_vec())
        };
        // A capture's first packet may be of the time 0, and one may go back a little.
        assert_eq!(distances(&[0, 10, 40]), Some(vec![0.5, 1.5, 1.0]));
        assert_eq!(distances(&[10, 20, 15, 25]), Some(vec![1.5, 0.0, 1.5, 1.0]));
        for unknown in [&[0, 0, 0][..], &[5, 0, 7], &[7], &[7, 7]] {
            assert_eq!(distances(unknown), None, "{unknown:?}");
        }
    }
}
