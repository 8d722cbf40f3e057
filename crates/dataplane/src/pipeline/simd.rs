//! Code compiled once for each set of vector instructions, and run with the widest that the
//! processor has. The code itself is the same for all, but for what compilers do not find in
//! loops: loops over columns become vector instructions by themselves.
#![allow(unsafe_code, reason = "instructions that not every processor has")]

use classify::Instructions;
pub(super) use classify::Level;

/// Packets that are computed with at once.
pub(super) const LANES: usize = elements::flow_access::BURST;

/// A number of each packet.
pub(super) type Column = [u32; LANES];

/// Instructions at hand: proof that the processor has them.
pub(super) trait Isa: Copy {
    /// The highest bit of each number, the first number's lowest.
    fn signs(self, numbers: &[u32; 32]) -> u32;

    /// Big-endian words of rows: the first of each row, the second of each, and so on.
    fn words(self, rows: [&[u8; 4 * EIGHT]; EIGHT]) -> [[u32; EIGHT]; EIGHT];
}

/// Words in a row, and rows, that are transposed at once.
pub(super) const EIGHT: usize = 8;

/// Code to run. `run` must be `#[inline(always)]`, and all that is to use the instructions.
pub(super) trait Task {
    type Result;

    fn run(self, isa: impl Isa) -> Self::Result;
}

/// Runs the task with the instructions of a level.
#[inline]
pub(super) fn run<T: Task>(level: Level, task: T) -> T::Result {
    match level.instructions() {
        Instructions::Portable => with_any(task),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is proof that the processor has the features.
        Instructions::Avx2 => unsafe { x86::with_avx2(task) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Instructions::Avx512 => unsafe { x86::with_avx512(task) },
    }
}

#[inline(never)]
fn with_any<T: Task>(task: T) -> T::Result {
    task.run(Portable)
}

/// What every processor has.
#[derive(Clone, Copy)]
struct Portable;

impl Isa for Portable {
    #[inline(always)]
    fn signs(self, numbers: &[u32; 32]) -> u32 {
        let bits = numbers.iter().enumerate().map(|(lane, number)| number >> 31 << lane);
        bits.fold(0, |all, bit| all | bit)
    }

    #[inline(always)]
    fn words(self, rows: [&[u8; 4 * EIGHT]; EIGHT]) -> [[u32; EIGHT]; EIGHT] {
        let word = |row: usize, at: usize| u32::from_be_bytes(rows[row].as_chunks().0[at]);
        std::array::from_fn(|at| std::array::from_fn(|row| word(row, at)))
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{EIGHT, Isa, Task};

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
    pub(super) fn with_avx2<T: Task>(task: T) -> T::Result {
        task.run(Avx2(()))
    }

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) fn with_avx512<T: Task>(task: T) -> T::Result {
        task.run(Avx512(()))
    }

    /// [`Isa::words`] by vectors of eight.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn transposed(rows: [&[u8; 4 * EIGHT]; EIGHT]) -> [[u32; EIGHT]; EIGHT] {
        let reverse = _mm256_broadcastsi128_si256(_mm_set_epi8(
            12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3,
        ));
        let rows = rows.map(|row| {
            // SAFETY: a row is as long as a vector.
            let row = unsafe { _mm256_loadu_si256(row.as_ptr().cast()) };
            _mm256_shuffle_epi8(row, reverse)
        });
        // In each half of a vector: pairs of words of two rows, then four rows' first words and
        // so on, and then the halves of two such.
        let two = |a, b| (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let four = |a, b| (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
        let fours = |at: usize| {
            let (a, b) = two(rows[at], rows[at + 1]);
            let (c, d) = two(rows[at + 2], rows[at + 3]);
            let ((first, second), (third, fourth)) = (four(a, c), four(b, d));
            [first, second, third, fourth]
        };
        let (low, high) = (fours(0), fours(4));
        std::array::from_fn(|at| {
            let (low, high) = (low[at % 4], high[at % 4]);
            let whole = match at {
                ..4 => _mm256_permute2x128_si256::<0x20>(low, high),
                _ => _mm256_permute2x128_si256::<0x31>(low, high),
            };
            let mut numbers = [0; EIGHT];
            // SAFETY: eight numbers are a vector.
            unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), whole) };
            numbers
        })
    }

    /// Only [`with_avx2`] makes one.
    #[derive(Clone, Copy)]
    struct Avx2(());

    impl Isa for Avx2 {
        #[inline(always)]
        fn signs(self, numbers: &[u32; 32]) -> u32 {
            let (eights, _) = numbers.as_chunks::<8>();
            eights.iter().enumerate().fold(0, |signs, (at, eight)| {
                // SAFETY: the processor has AVX2, and eight numbers are a vector.
                let mask = unsafe {
                    let vector = _mm256_loadu_si256(eight.as_ptr().cast());
                    _mm256_movemask_ps(_mm256_castsi256_ps(vector))
                };
                signs | (mask as u32) << (8 * at)
            })
        }

        #[inline(always)]
        fn words(self, rows: [&[u8; 4 * EIGHT]; EIGHT]) -> [[u32; EIGHT]; EIGHT] {
            // SAFETY: the processor has AVX2.
            unsafe { transposed(rows) }
        }
    }

    /// Only [`with_avx512`] makes one.
    #[derive(Clone, Copy)]
    struct Avx512(());

    impl Isa for Avx512 {
        #[inline(always)]
        fn signs(self, numbers: &[u32; 32]) -> u32 {
            let (low, high) = numbers.split_at(16);
            // SAFETY: the processor has AVX-512 DQ, and sixteen numbers are a vector.
            let [low, high] = [low, high].map(|half| unsafe {
                _mm512_movepi32_mask(_mm512_loadu_si512(half.as_ptr().cast()))
            });
            u32::from(low) | u32::from(high) << 16
        }

        #[inline(always)]
        fn words(self, rows: [&[u8; 4 * EIGHT]; EIGHT]) -> [[u32; EIGHT]; EIGHT] {
            // SAFETY: the processor has AVX2.
            unsafe { transposed(rows) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Signs([u32; 32]);

    impl Task for Signs {
        type Result = u32;

        #[inline(always)]
        fn run(self, isa: impl Isa) -> u32 {
            isa.signs(&self.0)
        }
    }

    struct Words<'a>([&'a [u8; 4 * EIGHT]; EIGHT]);

    impl Task for Words<'_> {
        type Result = [[u32; EIGHT]; EIGHT];

        #[inline(always)]
        fn run(self, isa: impl Isa) -> Self::Result {
            isa.words(self.0)
        }
    }

    #[test]
    fn words_are_the_same_with_all_instructions() {
        let rows: [[u8; 4 * EIGHT]; EIGHT] =
            std::array::from_fn(|row| std::array::from_fn(|at| (row * 32 + at) as u8));
        for level in Level::available() {
            let words = run(level, Words(rows.each_ref()));
            for (at, row) in (0..EIGHT).flat_map(|at| (0..EIGHT).map(move |row| (at, row))) {
                let wanted = u32::from_be_bytes(rows[row].as_chunks().0[at]);
                assert_eq!(words[at][row], wanted, "{level:?}, word {at} of row {row}");
            }
        }
    }

    #[test]
    fn signs_are_the_same_with_all_instructions() {
        let number = |bit| if bit % 3 == 0 { u32::MAX } else { 0x7fff_ffff };
        let numbers: [u32; 32] = std::array::from_fn(number);
        let wanted = (0..32).filter(|bit| bit % 3 == 0).fold(0, |all, bit| all | 1 << bit);
        for level in Level::available() {
            assert_eq!(run(level, Signs(numbers)), wanted, "{level:?}");
            for bit in 0..32 {
                let mut one = [0; 32];
                one[bit] = 1 << 31;
                assert_eq!(run(level, Signs(one)), 1 << bit, "{level:?}");
            }
        }
    }
}
