//! What structures do to keys with vector instructions, and the same without.
//!
//! An [`Isa`] is proof that the processor has some instructions. [`run`] picks the widest at run
//! time and compiles a [`Task`] once for each, so that structures are written once and safely.
#![allow(unsafe_code, reason = "vector instructions that not every processor has")]

use crate::rule_set::Key;

/// A cache line of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(crate) struct CacheLine(pub(crate) [u32; 16]);

/// Bits that are met with others at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(C, align(64))]
pub(crate) struct Bits(pub(crate) [u64; Self::WORDS]);

impl Bits {
    pub(crate) const WORDS: usize = 16;
    pub(crate) const COUNT: usize = 64 * Self::WORDS;

    pub(crate) fn has(&self, bit: usize) -> bool {
        self.0[bit / 64] >> (bit % 64) & 1 != 0
    }

    pub(crate) fn flip(&mut self, bit: usize) {
        self.0[bit / 64] ^= 1 << (bit % 64);
    }

    pub(crate) fn and(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
}

/// Cubes in a block.
pub(crate) const CUBES: usize = 4;

/// What a block says of one dimension: the least numbers of its cubes, then the complements of their greatest.
const SLOT: usize = 2 * CUBES;

/// A set of instructions that this processor has: proof of it, as nobody else makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Instructions);

/// The sets of instructions that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// What every processor has.
    Portable,
    /// 256-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Level {
    /// What every processor has.
    pub const PORTABLE: Self = Self(Instructions::Portable);

    /// Those that this processor has, the widest first.
    pub fn available() -> impl Iterator<Item = Self> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let common = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2");
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq");
            if common && wide {
                levels.push(Self(Instructions::Avx512));
            }
            if common {
                levels.push(Self(Instructions::Avx2));
            }
        }
        levels.push(Self::PORTABLE);
        levels.into_iter()
    }

    /// The widest that this processor has.
    pub fn widest() -> Self {
        Self::available().next().unwrap_or(Self::PORTABLE)
    }

    /// The instructions that the processor has.
    #[inline]
    pub fn instructions(self) -> Instructions {
        self.0
    }
}

/// Instructions at hand.
pub(crate) trait Isa: Copy {
    /// Which of the line's numbers are not above this one, a bit each.
    fn not_above(self, line: &CacheLine, number: u32) -> u32;

    /// How many of the line's first 15 numbers are not above this one.
    #[inline(always)]
    fn rank(self, bounds: &CacheLine, number: u32) -> u32 {
        (self.not_above(bounds, number) & 0x7fff).count_ones()
    }

    /// How many of the line's numbers this one is above.
    fn above(self, bounds: &CacheLine, number: u32) -> u32;

    /// In which words all of these have a bit in common, as bits; all, if there are none.
    fn common<'a>(self, of: impl Iterator<Item = &'a Bits>) -> u32;

    /// Which cubes of a block hold the key, as bits. For each of the key's first `W` numbers the block has half a
    /// line: the cubes' least numbers, then the complements of their greatest. The key's numbers stand in front of
    /// their complements.
    fn matches<const W: usize>(self, block: &[CacheLine], key: &CacheLine) -> u32;

    /// The key with its numbers put in this order, and behind them their complements.
    fn spread(self, key: &Key, order: &[u32; 8]) -> CacheLine;
}

/// Code to run with the instructions at hand, on blocks of `W` lines. `run` must be
/// `#[inline(always)]`.
pub(crate) trait Task {
    fn run<const W: usize>(self, isa: impl Isa);
}

/// Runs the task with the instructions of a level, for blocks of so many lines (1 to 8).
#[inline]
pub(crate) fn run(level: Level, width: usize, task: impl Task) {
    match width {
        1 => run_on::<1>(level, task),
        2 => run_on::<2>(level, task),
        3 => run_on::<3>(level, task),
        4 => run_on::<4>(level, task),
        5 => run_on::<5>(level, task),
        6 => run_on::<6>(level, task),
        7 => run_on::<7>(level, task),
        _ => run_on::<8>(level, task),
    }
}

fn run_on<const W: usize>(level: Level, task: impl Task) {
    match level.instructions() {
        Instructions::Portable => task.run::<W>(Portable),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is proof that the processor has the features.
        Instructions::Avx2 => unsafe { x86::with_avx2::<W>(task) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Instructions::Avx512 => unsafe { x86::with_avx512::<W>(task) },
    }
}

/// Prefetches an element's cache lines. It is harmless if there is none.
#[inline(always)]
pub fn prefetch<T>(elements: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let element = elements.as_ptr().wrapping_add(index).cast::<i8>();
        // SAFETY: prefetching reads nothing and faults nowhere, and x86-64 always has SSE.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(element.wrapping_add(offset)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (elements, index);
}

/// Which of eight 16-bit numbers equal another, a bit each; the lower half of a word comes first.
#[inline(always)]
pub fn equal_halves(words: &[u32; 4], other: u16) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{
            _mm_cmpeq_epi16, _mm_loadu_si128, _mm_movemask_epi8, _mm_packs_epi16, _mm_set1_epi16,
            _mm_setzero_si128,
        };
        // SAFETY: it reads four words, and x86-64 always has SSE2.
        let equal = unsafe {
            let words = _mm_loadu_si128(words.as_ptr().cast());
            let equal = _mm_cmpeq_epi16(words, _mm_set1_epi16(other.cast_signed()));
            _mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128()))
        };
        equal.cast_unsigned()
    }
    #[cfg(not(target_arch = "x86_64"))]
    equal_halves_portably(words, other)
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn equal_halves_portably(words: &[u32; 4], other: u16) -> u32 {
    let half = |at: usize| (words[at / 2] >> (at % 2 * 16)) as u16;
    (0..8).filter(|&at| half(at) == other).fold(0, |equal, at| equal | 1 << at)
}

/// What every processor has.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Isa for Portable {
    #[inline(always)]
    fn not_above(self, line: &CacheLine, number: u32) -> u32 {
        (0..).zip(&line.0).map(|(i, &b)| u32::from(b <= number) << i).sum()
    }

    #[inline(always)]
    fn above(self, bounds: &CacheLine, number: u32) -> u32 {
        bounds.0.iter().map(|&b| u32::from(b < number)).sum()
    }

    #[inline(always)]
    fn common<'a>(self, of: impl Iterator<Item = &'a Bits>) -> u32 {
        let all = of.fold(Bits([u64::MAX; Bits::WORDS]), |all, bits| all.and(bits));
        (0..).zip(&all.0).map(|(i, &word)| u32::from(word != 0) << i).sum()
    }

    #[inline(always)]
    fn matches<const W: usize>(self, block: &[CacheLine], key: &CacheLine) -> u32 {
        let mut outside = [0u32; CUBES];
        for (slot, d) in block.iter().flat_map(|line| line.0.as_chunks::<SLOT>().0).zip(0..W) {
            for (i, outside) in outside.iter_mut().enumerate() {
                *outside |=
                    u32::from(slot[i] > key.0[d]) | u32::from(slot[CUBES + i] > key.0[d + 8]);
            }
        }
        outside.iter().enumerate().map(|(i, &o)| (o ^ 1) << i).sum()
    }

    #[inline(always)]
    fn spread(self, key: &Key, order: &[u32; 8]) -> CacheLine {
        let number = |i: usize| key[order[i % 8] as usize % key.len()];
        CacheLine(std::array::from_fn(|i| if i < 8 { number(i) } else { !number(i) }))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Bits, CacheLine, Isa, Key, Task};

    #[derive(Clone, Copy)]
    pub(super) struct Avx2(());

    #[derive(Clone, Copy)]
    pub(super) struct Avx512(());

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
    pub(super) fn with_avx2<const W: usize>(task: impl Task) {
        task.run::<W>(Avx2(()));
    }

    #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,popcnt,bmi1,bmi2")]
    pub(super) fn with_avx512<const W: usize>(task: impl Task) {
        task.run::<W>(Avx512(()));
    }

    /// A half of a line.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn half<const UPPER: bool>(line: &CacheLine) -> __m256i {
        let start = if UPPER { 8 } else { 0 };
        // SAFETY: a line is 64 bytes aligned to 64, of which these are 32.
        unsafe { _mm256_load_si256(line.0.as_ptr().add(start).cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn spread(key: &Key, order: &[u32; 8]) -> CacheLine {
        // SAFETY: these are 32 bytes each, and need no alignment; a line is 64 bytes aligned to 64.
        unsafe {
            let key = _mm256_loadu_si256(key.as_ptr().cast());
            let order = _mm256_loadu_si256(order.as_ptr().cast());
            let permuted = _mm256_permutevar8x32_epi32(key, order);
            let mut line = CacheLine([0; 16]);
            let place: *mut __m256i = line.0.as_mut_ptr().cast();
            _mm256_store_si256(place, permuted);
            _mm256_store_si256(place.add(1), _mm256_xor_si256(permuted, _mm256_set1_epi32(-1)));
            line
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx2")]
    fn spread_wide(key: &Key, order: &[u32; 8]) -> CacheLine {
        // SAFETY: these are 32 bytes each, and need no alignment; a line is 64 bytes aligned to 64.
        unsafe {
            let key = _mm256_loadu_si256(key.as_ptr().cast());
            let order = _mm256_loadu_si256(order.as_ptr().cast());
            let permuted = _mm256_permutevar8x32_epi32(key, order);
            let complement = _mm256_xor_si256(permuted, _mm256_set1_epi32(-1));
            let mut line = CacheLine([0; 16]);
            let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(permuted), complement);
            _mm512_store_si512(line.0.as_mut_ptr().cast(), both);
            line
        }
    }

    impl Isa for Avx2 {
        #[inline(always)]
        fn not_above(self, line: &CacheLine, number: u32) -> u32 {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn not_above(line: &CacheLine, number: u32) -> u32 {
                let number = _mm256_set1_epi32(number.cast_signed());
                let not_above = |numbers| {
                    let equal = _mm256_cmpeq_epi32(_mm256_max_epu32(numbers, number), number);
                    _mm256_movemask_ps(_mm256_castsi256_ps(equal)).cast_unsigned()
                };
                not_above(half::<false>(line)) | not_above(half::<true>(line)) << 8
            }
            // SAFETY: an `Avx2` is made where the processor has these features only.
            unsafe { not_above(line, number) }
        }

        #[inline(always)]
        fn above(self, bounds: &CacheLine, number: u32) -> u32 {
            #[inline]
            #[target_feature(enable = "avx2,popcnt")]
            fn above(bounds: &CacheLine, number: u32) -> u32 {
                let number = _mm256_set1_epi32(number.cast_signed());
                let not_below = |bounds| {
                    let equal = _mm256_cmpeq_epi32(_mm256_max_epu32(bounds, number), bounds);
                    _mm256_movemask_ps(_mm256_castsi256_ps(equal))
                };
                let mask = not_below(half::<false>(bounds)) | not_below(half::<true>(bounds)) << 8;
                16 - mask.count_ones()
            }
            // SAFETY: an `Avx2` is made where the processor has these features only.
            unsafe { above(bounds, number) }
        }

        #[inline(always)]
        fn common<'a>(self, of: impl Iterator<Item = &'a Bits>) -> u32 {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn common<'a>(of: impl Iterator<Item = &'a Bits>) -> u32 {
                let mut all = [_mm256_set1_epi32(-1); 4];
                for bits in of {
                    for (all, words) in all.iter_mut().zip(bits.0.as_chunks::<4>().0) {
                        // SAFETY: these are 32 bytes, and aligned to as many.
                        let words = unsafe { _mm256_load_si256(words.as_ptr().cast()) };
                        *all = _mm256_and_si256(*all, words);
                    }
                }
                let empty = all.map(|all| {
                    let empty = _mm256_cmpeq_epi64(all, _mm256_setzero_si256());
                    _mm256_movemask_pd(_mm256_castsi256_pd(empty)).cast_unsigned()
                });
                !(empty[0] | empty[1] << 4 | empty[2] << 8 | empty[3] << 12) & 0xffff
            }
            // SAFETY: an `Avx2` is made where the processor has these features only.
            unsafe { common(of) }
        }

        #[inline(always)]
        fn matches<const W: usize>(self, block: &[CacheLine], key: &CacheLine) -> u32 {
            #[inline]
            #[target_feature(enable = "avx2")]
            fn matches<const W: usize>(block: &[CacheLine], key: &CacheLine) -> u32 {
                let flip = _mm256_set_epi32(-1, -1, -1, -1, 0, 0, 0, 0);
                let mut all = _mm256_set1_epi32(-1);
                let block = &block[..W.div_ceil(2)];
                for d in 0..W {
                    let line = &block[d / 2];
                    let slot = if d % 2 == 0 { half::<false>(line) } else { half::<true>(line) };
                    let number = _mm256_set1_epi32(key.0[d % 8].cast_signed());
                    let number = _mm256_xor_si256(number, flip);
                    let inside = _mm256_cmpeq_epi32(_mm256_max_epu32(slot, number), number);
                    all = _mm256_and_si256(all, inside);
                }
                let inside = _mm256_movemask_ps(_mm256_castsi256_ps(all)).cast_unsigned();
                inside & inside >> 4 & 0xf
            }
            // SAFETY: an `Avx2` is made where the processor has these features only.
            unsafe { matches::<W>(block, key) }
        }

        #[inline(always)]
        fn spread(self, key: &Key, order: &[u32; 8]) -> CacheLine {
            // SAFETY: an `Avx2` is made where the processor has these features only.
            unsafe { spread(key, order) }
        }
    }

    impl Isa for Avx512 {
        #[inline(always)]
        fn not_above(self, line: &CacheLine, number: u32) -> u32 {
            #[inline]
            #[target_feature(enable = "avx512f")]
            fn not_above(line: &CacheLine, number: u32) -> u32 {
                // SAFETY: a line is 64 bytes aligned to 64.
                let line = unsafe { _mm512_load_si512(line.0.as_ptr().cast()) };
                let number = _mm512_set1_epi32(number.cast_signed());
                u32::from(_mm512_cmple_epu32_mask(line, number))
            }
            // SAFETY: an `Avx512` is made where the processor has these features only.
            unsafe { not_above(line, number) }
        }

        #[inline(always)]
        fn above(self, bounds: &CacheLine, number: u32) -> u32 {
            #[inline]
            #[target_feature(enable = "avx512f,popcnt")]
            fn above(bounds: &CacheLine, number: u32) -> u32 {
                // SAFETY: a line is 64 bytes aligned to 64.
                let bounds = unsafe { _mm512_load_si512(bounds.0.as_ptr().cast()) };
                let number = _mm512_set1_epi32(number.cast_signed());
                u32::from(_mm512_cmplt_epu32_mask(bounds, number)).count_ones()
            }
            // SAFETY: an `Avx512` is made where the processor has these features only.
            unsafe { above(bounds, number) }
        }

        #[inline(always)]
        fn common<'a>(self, of: impl Iterator<Item = &'a Bits>) -> u32 {
            #[inline]
            #[target_feature(enable = "avx512f")]
            fn common<'a>(of: impl Iterator<Item = &'a Bits>) -> u32 {
                let mut all = [_mm512_set1_epi32(-1); 2];
                for bits in of {
                    for (all, words) in all.iter_mut().zip(bits.0.as_chunks::<8>().0) {
                        // SAFETY: these are 64 bytes, and aligned to as many.
                        let words = unsafe { _mm512_load_si512(words.as_ptr().cast()) };
                        *all = _mm512_and_si512(*all, words);
                    }
                }
                let [lower, upper] = all.map(|all| u32::from(_mm512_test_epi64_mask(all, all)));
                lower | upper << 8
            }
            // SAFETY: an `Avx512` is made where the processor has these features only.
            unsafe { common(of) }
        }

        #[inline(always)]
        fn matches<const W: usize>(self, block: &[CacheLine], key: &CacheLine) -> u32 {
            #[inline]
            #[target_feature(enable = "avx512f")]
            fn matches<const W: usize>(block: &[CacheLine], key: &CacheLine) -> u32 {
                // SAFETY: a line is 64 bytes aligned to 64.
                let load = |line: &CacheLine| unsafe { _mm512_load_si512(line.0.as_ptr().cast()) };
                let key = load(key);
                // The places of the first two numbers, and of their complements.
                let first = _mm512_set_epi32(9, 9, 9, 9, 1, 1, 1, 1, 8, 8, 8, 8, 0, 0, 0, 0);
                let mut all = 0xffff;
                for (i, line) in block[..W.div_ceil(2)].iter().enumerate() {
                    let place = _mm512_add_epi32(first, _mm512_set1_epi32(2 * i as i32));
                    let numbers = _mm512_permutexvar_epi32(place, key);
                    let inside = _mm512_cmple_epu32_mask(load(line), numbers);
                    all &= if 2 * i + 1 < W { inside } else { inside | 0xff00 };
                }
                let all = u32::from(all);
                let all = all & all >> 8;
                all & all >> 4 & 0xf
            }
            // SAFETY: an `Avx512` is made where the processor has these features only.
            unsafe { matches::<W>(block, key) }
        }

        #[inline(always)]
        fn spread(self, key: &Key, order: &[u32; 8]) -> CacheLine {
            // SAFETY: an `Avx512` is made where the processor has these features only.
            unsafe { spread_wide(key, order) }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Compare<'a> {
        lines: &'a [CacheLine],
        order: &'a [u32; 8],
        key: &'a Key,
        bits: &'a [Bits],
        found: &'a mut Vec<u32>,
    }

    impl Task for Compare<'_> {
        #[inline(always)]
        fn run<const W: usize>(self, isa: impl Isa) {
            self.found.extend(self.lines.iter().map(|line| isa.not_above(line, self.key[0])));
            self.found.extend(self.lines.iter().map(|line| isa.rank(line, self.key[0])));
            self.found.extend(self.lines.iter().map(|line| isa.above(line, self.key[0])));
            self.found.push(isa.common(self.bits.iter()));
            let key = isa.spread(self.key, self.order);
            self.found.push(isa.matches::<W>(self.lines, &key));
            self.found.extend(key.0);
        }
    }

    fn number() -> impl Strategy<Value = u32> {
        prop_oneof![any::<u32>(), 0u32..4, (u32::MAX - 3)..=u32::MAX]
    }

    proptest! {
        #[test]
        fn all_levels_agree(
            lines in prop::collection::vec(prop::array::uniform16(number()), 1..=8),
            key in prop::array::uniform8(number()),
            order in prop::array::uniform8(0u32..8),
            bits in prop::collection::vec(
                prop::array::uniform16(prop_oneof![any::<u64>(), Just(0), 0u64..4]),
                0..=4,
            ),
        ) {
            let lines: Vec<CacheLine> = lines.into_iter().map(CacheLine).collect();
            let bits: Vec<Bits> = bits.into_iter().map(Bits).collect();
            let of = |level| {
                let mut found = Vec::new();
                let (lines, bits, order, key) = (&lines, &bits, &order, &key);
                let task = Compare { lines, order, key, bits, found: &mut found };
                run(level, lines.len(), task);
                found
            };
            for level in Level::available() {
                prop_assert_eq!(of(level), of(Level::PORTABLE), "{:?}", level);
            }
        }

        #[test]
        fn equal_halves_are_told_one_by_one(
            halves in prop::array::uniform8(prop_oneof![any::<u16>(), 0u16..4, 0x7fffu16..=0x8001]),
            other in prop_oneof![any::<u16>(), 0u16..4, 0x7fffu16..=0x8001],
        ) {
            let mut words = [0; 4];
            for (at, half) in halves.iter().enumerate() {
                words[at / 2] |= u32::from(*half) << (at % 2 * 16);
            }
            let equal = equal_halves(&words, other);
            prop_assert_eq!(equal, equal_halves_portably(&words, other));
            for (at, half) in halves.into_iter().enumerate() {
                prop_assert_eq!(equal >> at & 1 == 1, half == other);
            }
            prop_assert_eq!(equal >> 8, 0);
        }
    }
}
