//! A window of what the sender of a TCP connection says, in order (RFC 9293).
//!
//! Where segments overlap, the bytes that came first count. What lies beyond the window, or behind too many gaps, is not
//! kept, and read once it comes again.

use std::ops::Range;

/// Bytes of a stream that are read at once, at the most.
pub(crate) const WINDOW: usize = 16 << 10;
/// Parts that may stand apart from what is there in order.
const MOST_PARTS: usize = 64;

/// See the module.
pub(crate) struct Window {
    /// Sequence number of the first byte.
    base: u32,
    /// Bytes that are kept at the most.
    limit: usize,
    bytes: Vec<u8>,
    /// How many bytes are there from the start without a gap.
    ready: usize,
    /// What is there beyond the first gap: in order, with gaps between.
    later: Vec<Range<usize>>,
}

impl Window {
    /// One that begins with this sequence number.
    pub(crate) fn new(base: u32, limit: usize) -> Self {
        Self { base, limit, bytes: Vec::new(), ready: 0, later: Vec::new() }
    }

    /// The bytes that are there in order.
    pub(crate) fn ready(&self) -> &[u8] {
        &self.bytes[..self.ready]
    }

    /// Bytes of memory.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.len() + self.later.len() * size_of::<Range<usize>>()
    }

    /// Whether a segment that begins there follows on what is ready, and nothing was there before it.
    pub(crate) fn is_next(&self, sequence: u32) -> bool {
        self.later.is_empty() && sequence.wrapping_sub(self.base) as usize == self.ready
    }

    /// Begins anew where a segment begins that lies beyond what could be kept: what is between went by unseen.
    pub(crate) fn restart_if_beyond(&mut self, sequence: u32) -> bool {
        let offset = sequence.wrapping_sub(self.base) as i32;
        let is_beyond = usize::try_from(offset).is_ok_and(|offset| offset >= self.limit);
        if is_beyond {
            *self = Self::new(sequence, self.limit);
        }
        is_beyond
    }

    /// Takes a segment's bytes in.
    pub(crate) fn add(&mut self, sequence: u32, payload: &[u8]) {
        // Half of all sequence numbers lie before the base (RFC 9293, 3.4).
        let offset = sequence.wrapping_sub(self.base) as i32;
        let (skipped, start) = match usize::try_from(offset) {
            Ok(start) => (0, start),
            Err(_) => (offset.unsigned_abs() as usize, 0),
        };
        let payload = payload.get(skipped..).unwrap_or_default();
        let end = start.saturating_add(payload.len()).min(self.limit);
        let from = start.max(self.ready);
        if from >= end {
            return;
        }
        if self.later.is_empty() && from == self.ready {
            self.bytes.truncate(from);
            self.bytes.extend_from_slice(&payload[from - start..end - start]);
            self.ready = end;
            return;
        }
        self.add_later((start, from..end), payload);
    }

    /// The same where parts stand apart, or will.
    fn add_later(&mut self, (start, new): (usize, Range<usize>), payload: &[u8]) {
        let touches = |part: &Range<usize>| part.start <= new.end && new.start <= part.end;
        let first = self.later.partition_point(|part| part.end < new.start);
        let count = self.later[first..].iter().take_while(|part| touches(part)).count();
        if count == 0 && new.start > self.ready && self.later.len() == MOST_PARTS {
            return;
        }
        if new.end > self.bytes.len() {
            self.bytes.resize(new.end, 0);
        }
        let (mut at, mut all) = (new.start, new.clone());
        for part in self.later.drain(first..first + count) {
            if at < part.start {
                self.bytes[at..part.start]
                    .copy_from_slice(&payload[at - start..part.start - start]);
            }
            at = at.max(part.end);
            all = all.start.min(part.start)..all.end.max(part.end);
        }
        if at < new.end {
            self.bytes[at..new.end].copy_from_slice(&payload[at - start..new.end - start]);
        }
        self.later.insert(first, all);
        self.settle();
    }

    /// Has what follows without a gap be ready.
    fn settle(&mut self) {
        let count = self.later.iter().take_while(|part| part.start <= self.ready).count();
        debug_assert!(count <= 1, "parts stand apart");
        for part in self.later.drain(..count) {
            self.ready = self.ready.max(part.end);
        }
    }

    /// Goes on behind so many bytes, which need not be there yet.
    pub(crate) fn consume(&mut self, bytes: u32) {
        let count = bytes as usize;
        self.bytes.drain(..count.min(self.bytes.len()));
        self.base = self.base.wrapping_add(bytes);
        self.ready = self.ready.saturating_sub(count);
        self.later.retain_mut(|part| {
            *part = part.start.saturating_sub(count)..part.end.saturating_sub(count);
            part.start < part.end
        });
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a window must hold: a byte for each place.
    #[derive(Default)]
    struct Reference(Vec<Option<u8>>);

    impl Reference {
        fn ready(&self) -> Vec<u8> {
            self.0.iter().map_while(|byte| *byte).collect()
        }
    }

    #[test]
    fn windows_hold_what_came_first() {
        for seed in 0..500 {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut base = random.u32(..);
            let (mut window, mut reference) = (Window::new(base, WINDOW), Reference::default());
            for _ in 0..60 {
                if random.u8(..8) == 0 {
                    let count = random.u32(..40);
                    window.consume(count);
                    base = base.wrapping_add(count);
                    reference.0.drain(..reference.0.len().min(count as usize));
                    continue;
                }
                let start = random.i32(-20..100);
                let payload: Vec<u8> = (0..random.u8(..30)).map(|_| random.u8(..)).collect();
                window.add(base.wrapping_add_signed(start), &payload);
                for (at, byte) in (start..).zip(payload) {
                    let Ok(at) = usize::try_from(at) else { continue };
                    if at >= reference.0.len() {
                        reference.0.resize(at + 1, None);
                    }
                    reference.0[at].get_or_insert(byte);
                }
                assert_eq!(window.ready(), reference.ready(), "{seed}");
            }
        }
    }

    #[test]
    fn gaps_are_bounded() {
        let mut window = Window::new(0, WINDOW);
        (0..5000).rev().for_each(|at| window.add(at * 2 + 1, b"x"));
        assert_eq!(window.later.len(), MOST_PARTS);
        assert!(window.memory() <= WINDOW + MOST_PARTS * 16);
        (0..2).for_each(|_| (0..10_000).for_each(|at| window.add(at, b"y")));
        assert_eq!((window.ready().len(), window.later.len()), (10_000, 0));
        window.add(0, &[b'z'; 40_000]);
        assert_eq!(window.ready().len(), WINDOW);
        assert!(!window.restart_if_beyond(u32::MAX) && !window.restart_if_beyond(16_383));
        assert!(window.restart_if_beyond(16_384) && window.is_next(16_384));
    }
}
