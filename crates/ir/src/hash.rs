//! The hash that models may use where a choice only has to be consistent (FNV-1a, 64 bits, over
//! the numbers' 16 big-endian bytes, with a final mix so that low bits depend on all).

/// Hashes numbers, in order.
pub fn hash(numbers: impl IntoIterator<Item = u128>) -> u64 {
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
