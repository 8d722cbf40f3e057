//! Code compiled once for each set of vector instructions, and run with the widest that the
//! processor has. The code itself is the same for all, but for what compilers do not find in
//! loops: loops over columns become vector instructions by themselves.
#![allow(unsafe_code, reason = "instructions that not every processor has")]

pub(super) use classify::Level;

/// Instructions at hand: proof that the processor has them.
pub(super) trait Isa: Copy {
    /// The highest bit of each number, the first number's lowest.
    fn signs(self, numbers: &[u32; 32]) -> u32;
}

/// Code to run. `run` must be `#[inline(always)]`, and all that is to use the instructions.
pub(super) trait Task {
    type Result;

    fn run(self, isa: impl Isa) -> Self::Result;
}

/// Runs the task with the instructions of a level.
#[inline]
pub(super) fn run<T: Task>(level: Level, task: T) -> T::Result {
    match level {
        Level::Portable => with_any(task),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: levels come from `Level::available`, which found the features in the processor.
        Level::Avx2 => unsafe { x86::with_avx2(task) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx512 => unsafe { x86::with_avx512(task) },
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
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Isa, Task};

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
    pub(super) fn with_avx2<T: Task>(task: T) -> T::Result {
        task.run(Avx2(()))
    }

    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,avx512f,avx512vl,avx512bw,avx512dq")]
    pub(super) fn with_avx512<T: Task>(task: T) -> T::Result {
        task.run(Avx512(()))
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
