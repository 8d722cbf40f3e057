//! Hash functions that models may use where a choice only has to be consistent.

/// A hash function, by name: a target that lacks it cannot compute what is made with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HashFunction {
    /// FNV-1a of 64 bits over the numbers' 16 big-endian bytes, with a final mix so that low bits
    /// depend on all.
    MixedFnv1a,
}

impl HashFunction {
    /// All.
    pub const ALL: &[Self] = &[Self::MixedFnv1a];

    /// Its name in the text forms.
    pub fn name(self) -> &'static str {
        match self {
            Self::MixedFnv1a => "mixed_fnv1a",
        }
    }

    /// Hashes numbers, in order.
    pub fn hash(self, numbers: impl IntoIterator<Item = u128>) -> u64 {
        match self {
            Self::MixedFnv1a => mixed_fnv1a(numbers),
        }
    }
}

fn mixed_fnv1a(numbers: impl IntoIterator<Item = u128>) -> u64 {
    let mut h = 0xcbf2_9ce4_8422_2325u64;
    for number in numbers {
        for byte in number.to_be_bytes() {
            h = (h ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    h ^= h >> 32;
    h = h.wrapping_mul(0xd6e8_feb8_6659_fd93);
    h ^ h >> 32
}
