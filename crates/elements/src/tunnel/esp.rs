//! Security associations of ESP (RFC 4303) in tunnel mode: packets are sealed, opened, and accepted once.

use ir::Reason;

use crate::cipher::{self, Algorithm, BLOCK, Cipher, NOT_AUTHENTIC, TAG};
use crate::configure::Arguments;

/// What packets are sealed with.
const ALGORITHMS: [Algorithm; 3] =
    [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm, Algorithm::Aes128CbcHmacSha256];

/// Bytes in front of the initialisation vector: index and sequence number.
pub(super) const HEAD: usize = 8;
/// Bytes behind the padding: its length, and the next header.
const TAIL: usize = 2;
/// Bytes behind a key of GCM that begin each nonce (RFC 4106).
const SALT: usize = 4;

/// The packet is cut off, or its length is none that the algorithm makes.
pub(super) const LENGTH: Reason = Reason("bad-esp-length");
/// The padding is not the one of RFC 4303.
const PADDING: Reason = Reason("bad-esp-padding");

/// The algorithm of an association, with its keys.
pub(super) struct Association {
    algorithm: Algorithm,
    cipher: Cipher,
    salt: [u8; SALT],
}

/// A text within a packet of ESP: where it begins and ends, and what it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inner {
    pub begin: usize,
    pub end: usize,
    /// The IP protocol.
    pub next: u8,
}

impl Association {
    /// Reads the arguments KEY and ALGORITHM.
    pub(super) fn of(arguments: &mut Arguments<'_, '_>) -> Option<Self> {
        let algorithm = Algorithm::argument(arguments, &ALGORITHMS);
        let salt = if algorithm.is_cbc() { 0 } else { SALT };
        let key = cipher::key(arguments, algorithm, algorithm.key_len() + salt)?;
        Self::new(algorithm, &key)
    }

    fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        let (key, rest) = key.split_at_checked(algorithm.key_len())?;
        let salt = rest.first_chunk().copied().unwrap_or_default();
        Some(Self { algorithm, cipher: Cipher::new(algorithm, key)?, salt })
    }

    pub(super) fn name(&self) -> &'static str {
        self.algorithm.name()
    }

    fn vector_len(&self) -> usize {
        if self.algorithm.is_cbc() { BLOCK } else { 8 }
    }

    /// Bytes of padding behind a text.
    fn padding(&self, length: usize) -> usize {
        let align = if self.algorithm.is_cbc() { BLOCK } else { 4 };
        (length + TAIL).next_multiple_of(align) - length - TAIL
    }

    /// Bytes that come in front of a text of this length, and behind it.
    pub(super) fn around(&self, length: usize) -> (usize, usize) {
        (HEAD + self.vector_len(), self.padding(length) + TAIL + TAG)
    }

    /// The nonce that an initialisation vector makes.
    fn nonce(&self, vector: &[u8]) -> ([u8; BLOCK], usize) {
        let (mut nonce, length) = ([0; BLOCK], self.algorithm.nonce_len());
        let salt = length.saturating_sub(vector.len()).min(SALT);
        nonce[..salt].copy_from_slice(&self.salt[..salt]);
        nonce[salt..length].copy_from_slice(vector);
        (nonce, length)
    }

    /// Seals the packet that lies in `bytes` with [`Association::around`] it, as one of this index and sequence
    /// number; `number` is used once. Whether it fits.
    #[must_use]
    pub(super) fn seal(
        &self,
        (index, sequence, next): (u32, u32, u8),
        number: [u8; BLOCK],
        bytes: &mut [u8],
        length: usize,
    ) -> bool {
        let padding = self.padding(length);
        let (head, rest) = bytes.split_at_mut(HEAD);
        let (vector, rest) = rest.split_at_mut(self.vector_len());
        let (text, tag) = rest.split_at_mut(length + padding + TAIL);
        head[..4].copy_from_slice(&index.to_be_bytes());
        head[4..].copy_from_slice(&sequence.to_be_bytes());
        self.cipher.nonce(number, vector);
        for (byte, value) in text[length..length + padding].iter_mut().zip(1..) {
            *byte = value;
        }
        text[length + padding..].copy_from_slice(&[padding as u8, next]);
        let (nonce, of) = self.nonce(vector);
        self.cipher.seal(&nonce[..of], head, text, tag)
    }

    /// Opens a packet in place.
    ///
    /// # Errors
    /// Why it is none of this association.
    pub(super) fn open(&self, bytes: &mut [u8]) -> Result<Inner, Reason> {
        let begin = HEAD + self.vector_len();
        let align = if self.algorithm.is_cbc() { BLOCK } else { 4 };
        let end = bytes.len().checked_sub(TAG).ok_or(LENGTH)?;
        let length = end.checked_sub(begin).ok_or(LENGTH)?;
        if length < align || length % align != 0 {
            return Err(LENGTH);
        }
        let (head, rest) = bytes.split_at_mut(HEAD);
        let (vector, rest) = rest.split_at_mut(begin - HEAD);
        let (text, tag) = rest.split_at_mut(length);
        let (nonce, of) = self.nonce(vector);
        if !self.cipher.open(&nonce[..of], head, text, tag) {
            return Err(NOT_AUTHENTIC);
        }
        let (text, tail) = text.split_at(length - TAIL);
        let padding = usize::from(tail[0]);
        let end = text.len().checked_sub(padding).ok_or(PADDING)?;
        if text[end..].iter().zip(1..).any(|(byte, value): (&u8, u8)| *byte != value) {
            return Err(PADDING);
        }
        Ok(Inner { begin, end: begin + end, next: tail[1] })
    }
}

/// Sequence numbers that were seen (RFC 4303, 3.4.3): those below the window are too old.
#[derive(Clone, Debug)]
pub(super) struct Window {
    highest: u32,
    /// A bit for each number of the window, by its remainder; empty if numbers are not looked at.
    seen: Vec<u64>,
}

impl Window {
    /// A window of so many numbers, rounded up to words.
    pub(super) fn new(size: usize) -> Self {
        Self { highest: 0, seen: vec![0; size.div_ceil(64)] }
    }

    fn bit(&self, sequence: u32) -> (usize, u64) {
        let at = sequence as usize % (self.seen.len() * 64);
        (at / 64, 1 << (at % 64))
    }

    /// Whether a number may be new.
    pub(super) fn allows(&self, sequence: u32) -> bool {
        if self.seen.is_empty() {
            return true;
        }
        let size = self.seen.len() as u64 * 64;
        let (word, bit) = self.bit(sequence);
        sequence != 0
            && (sequence > self.highest
                || u64::from(sequence) + size > u64::from(self.highest)
                    && self.seen[word] & bit == 0)
    }

    /// Notes a number that is allowed, once its packet is authentic.
    pub(super) fn note(&mut self, sequence: u32) {
        if self.seen.is_empty() {
            return;
        }
        if sequence > self.highest {
            let size = self.seen.len() as u32 * 64;
            let passed = (sequence - self.highest).min(size);
            for old in 0..passed {
                let (word, bit) = self.bit(sequence - old);
                self.seen[word] &= !bit;
            }
            self.highest = sequence;
        }
        let (word, bit) = self.bit(sequence);
        self.seen[word] |= bit;
    }

    /// Its state for a hot swap: the highest number, and the window.
    pub(super) fn export(&self) -> impl Iterator<Item = u64> + '_ {
        std::iter::once(self.highest.into()).chain(self.seen.iter().copied())
    }

    /// Takes what another exported. A window of another size refuses all numbers that the other one may have seen.
    pub(super) fn import(&mut self, numbers: &[u64]) {
        let Some((&highest, seen)) = numbers.split_first() else { return };
        self.highest = highest as u32;
        if seen.len() == self.seen.len() {
            self.seen.copy_from_slice(seen);
        } else {
            self.seen.fill(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_number_is_accepted_once() {
        let mut window = Window::new(64);
        let mut accept = |sequence| {
            let allowed = window.allows(sequence);
            if allowed {
                window.note(sequence);
            }
            allowed
        };
        assert!(!accept(0), "numbers begin with 1");
        for (sequence, is_new) in [
            (1, true),
            (1, false),
            (3, true),
            (2, true),
            (2, false),
            (66, true),
            (2, false),
            (3, false),
            (4, true),
            (200, true),
            (136, false),
            (137, true),
            (137, false),
            (u32::MAX, true),
            (u32::MAX, false),
            (u32::MAX - 63, true),
            (u32::MAX - 64, false),
        ] {
            assert_eq!(accept(sequence), is_new, "{sequence}");
        }
        let mut other = Window::new(64);
        other.import(&window.export().collect::<Vec<_>>());
        assert!(!other.allows(u32::MAX - 63) && other.allows(u32::MAX - 62));
        let mut larger = Window::new(128);
        larger.import(&window.export().collect::<Vec<_>>());
        assert!(!larger.allows(u32::MAX - 62));
        assert!(Window::new(0).allows(0));
    }

    /// Whatever the size, the window accepts what a set of all numbers accepts.
    #[test]
    fn a_window_does_what_a_set_does() {
        let mut rng = fastrand::Rng::with_seed(3);
        for size in [64, 128, 1024] {
            let (mut window, mut seen) = (Window::new(size), std::collections::HashSet::new());
            let mut highest = 0u32;
            for _ in 0..20_000 {
                let sequence = (highest + rng.u32(0..40)).saturating_sub(rng.u32(0..1200)).max(1);
                let is_new = sequence + size as u32 > highest && !seen.contains(&sequence);
                assert_eq!(window.allows(sequence), is_new, "{sequence} of {highest}, {size}");
                if is_new {
                    window.note(sequence);
                    seen.insert(sequence);
                    highest = highest.max(sequence);
                }
            }
        }
    }

    #[test]
    fn what_is_sealed_opens_and_nothing_else_does() {
        for algorithm in ALGORITHMS {
            let key: Vec<u8> = (0..52).collect();
            let salt = if algorithm.is_cbc() { 0 } else { SALT };
            let key = &key[..algorithm.key_len() + salt];
            let association = Association::new(algorithm, key).unwrap();
            for length in 0..70 {
                let text: Vec<u8> = (0..length as u8).collect();
                let (front, back) = association.around(length);
                let mut bytes = [&vec![0; front][..], &text, &vec![0; back]].concat();
                assert!(association.seal((7, 9, 4), [5; 16], &mut bytes, length));
                assert_eq!(bytes[..HEAD], [0, 0, 0, 7, 0, 0, 0, 9]);
                let sealed = bytes.clone();
                for at in 0..bytes.len() {
                    bytes[at] ^= 0x10;
                    assert_eq!(association.open(&mut bytes), Err(NOT_AUTHENTIC), "{at}");
                    bytes[at] ^= 0x10;
                    assert_eq!(bytes, sealed);
                }
                for cut in 0..bytes.len() {
                    assert!(association.open(&mut sealed[..cut].to_vec()).is_err());
                }
                let inner = association.open(&mut bytes).unwrap();
                assert_eq!((&bytes[inner.begin..inner.end], inner.next), (&text[..], 4));
            }
        }
    }
}
