//! The keyed hash of flow keys.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

/// A keyed hash of flows, for tables that face traffic meant to collide.
///
/// Two words are added to secret keys and multiplied (the NH construction: two different flows collide with a
/// probability of about 2^-64), and the 128-bit product is folded to 64 bits by one more multiplication.
/// It is a [`BuildHasher`] too, for other keys. Without the seed nothing is known about the order or the
/// distribution of hashes, and they must not leave the process: they are not cryptographic.
#[derive(Clone)]
pub struct FlowHash {
    keys: [u64; 4],
}

impl fmt::Debug for FlowHash {
    // The keys are secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowHash").finish_non_exhaustive()
    }
}

#[inline]
const fn multiply(a: u64, b: u64) -> u128 {
    a as u128 * b as u128
}

#[inline]
const fn fold(product: u128) -> u64 {
    product as u64 ^ (product >> 64) as u64
}

impl FlowHash {
    /// A hash with keys made from a secret seed.
    pub const fn new(seed: u64) -> FlowHash {
        // SplitMix64.
        let mut keys = [0; 4];
        let mut state = seed;
        let mut i = 0;
        while i < keys.len() {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            keys[i] = z ^ z >> 31;
            i += 1;
        }
        FlowHash { keys }
    }

    /// The hash of a key of two words.
    #[inline]
    pub fn two(&self, a: u64, b: u64) -> u64 {
        let [first, second, third, fourth] = self.keys;
        let sum = multiply(a.wrapping_add(first), b.wrapping_add(second));
        fold(multiply(sum as u64 ^ third, (sum >> 64) as u64 ^ fourth))
    }
}

impl BuildHasher for FlowHash {
    type Hasher = WordHasher;

    #[inline]
    fn build_hasher(&self) -> WordHasher {
        WordHasher { state: self.keys[0], key: self.keys[1] | 1, last: self.keys[3] }
    }
}

/// The [`Hasher`] of [`FlowHash`]: one multiplication a word.
#[derive(Clone)]
pub struct WordHasher {
    state: u64,
    key: u64,
    last: u64,
}

impl fmt::Debug for WordHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordHasher").finish_non_exhaustive()
    }
}

impl Hasher for WordHasher {
    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.state =
            fold(multiply(self.state ^ word, self.key)).wrapping_add(self.last.rotate_left(23));
    }

    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u16(&mut self, n: u16) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    #[inline]
    fn write_u128(&mut self, n: u128) {
        self.write_u64(n as u64);
        self.write_u64((n >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        fold(multiply(self.state ^ self.last, self.key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A flow's key as flow tables have it: addresses, and ports with the protocol.
    fn key(n: u64) -> (u64, u64) {
        ((0x0a00_0000 + (n >> 8)) << 32 | 0xc0a8_0001, (1024 + (n & 0xff)) << 32 | 80 << 16 | 6)
    }

    // The number of keys in each of 2^bits buckets must look random at both ends of the hash: the chi-squared
    // statistic of n buckets has mean n and standard deviation sqrt(2n).
    fn looks_uniform(hashes: &[u64]) {
        const BITS: u32 = 12;
        for shift in [0, 20, 64 - BITS] {
            let mut buckets = vec![0u32; 1 << BITS];
            for hash in hashes {
                buckets[(hash >> shift) as usize & ((1 << BITS) - 1)] += 1;
            }
            let n = buckets.len() as f64;
            let mean = hashes.len() as f64 / n;
            let chi: f64 = buckets.iter().map(|&b| (f64::from(b) - mean).powi(2) / mean).sum();
            assert!((chi - n).abs() < 6.0 * (2.0 * n).sqrt(), "shift {shift}: {chi} of {n}");
        }
    }

    #[test]
    fn neighbouring_flows_spread() {
        for seed in [0, 1, u64::MAX] {
            let hash = FlowHash::new(seed);
            let two = |(a, b)| hash.two(a, b);
            looks_uniform(&(0..100_000).map(|n| two(key(n))).collect::<Vec<_>>());
            looks_uniform(&(0..100_000).map(|n| hash.hash_one(key(n))).collect::<Vec<_>>());
            looks_uniform(&(0..100_000u32).map(|n| hash.hash_one(n)).collect::<Vec<_>>());
            looks_uniform(
                &(0..100_000u32).map(|n| hash.hash_one(n.to_string())).collect::<Vec<_>>(),
            );
        }
    }

    #[test]
    fn every_bit_and_the_seed_count() {
        let (a, b) = key(1);
        let flows: Vec<(u64, u64)> = (0..64)
            .flat_map(|bit| [(a ^ 1 << bit, b), (a, b ^ 1 << bit)])
            .chain([(a, b), (b, a)])
            .collect();
        let seen: HashSet<u64> = (0..9)
            .flat_map(|seed| flows.iter().map(move |&(a, b)| FlowHash::new(seed).two(a, b)))
            .collect();
        assert_eq!(seen.len(), 9 * flows.len());
    }
}
