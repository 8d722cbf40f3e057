//! The internet checksum (RFC 1071), its incremental update (RFC 1624) and UDP's rules for zero (RFC 768).
//!
//! A [`Sum`] is a ones' complement sum that has not been folded yet; sums of parts add up to the sum of the
//! whole. A *checksum* is the folded sum's complement as it stands in a header, in host order.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A partial ones' complement sum of 16-bit words.
///
/// Equality compares the sums as numbers modulo 0xffff, so the two zeros of ones' complement are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// The sum of one 16-bit word.
    #[inline]
    pub const fn of_u16(word: u16) -> Sum {
        Sum(word as u64)
    }

    /// The sum of the two halves of a 32-bit word.
    #[inline]
    pub const fn of_u32(word: u32) -> Sum {
        Sum((word >> 16) as u64 + (word & 0xffff) as u64)
    }

    /// The sum of a byte string that starts on an even offset; an odd last byte is padded with zero.
    #[inline]
    pub fn of(data: &[u8]) -> Sum {
        // The sum does not depend on the byte order but for a final swap (RFC 1071, section 2 (B)), so words
        // are read as the machine reads them, 32 bits at a time: 2^32 of them fit the accumulator.
        let mut sum = 0u64;
        let (blocks, rest) = data.as_chunks::<32>();
        for block in blocks {
            for word in block.as_chunks::<4>().0 {
                sum += u64::from(u32::from_ne_bytes(*word));
            }
        }
        let (words, rest) = rest.as_chunks::<4>();
        for word in words {
            sum += u64::from(u32::from_ne_bytes(*word));
        }
        sum += u64::from(match *rest {
            [] => 0,
            [a] => u32::from(u16::from_ne_bytes([a, 0])),
            [a, b] => u32::from(u16::from_ne_bytes([a, b])),
            [a, b, c, ..] => u32::from_ne_bytes([a, b, c, 0]),
        });
        Sum(u64::from(u16::from_be(fold(sum))))
    }

    /// Adds another sum whose bytes follow at an even offset.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Sum) -> Sum {
        Sum(fold(self.0) as u64 + fold(other.0) as u64)
    }

    /// Adds a sum whose bytes start `offset` bytes after the start of this one: at an odd offset each byte
    /// lands in the other half of its word.
    #[inline]
    #[must_use]
    pub const fn plus_at(self, offset: usize, other: Sum) -> Sum {
        let other = fold(other.0);
        Sum(fold(self.0) as u64
            + if offset.is_multiple_of(2) { other } else { other.swap_bytes() } as u64)
    }

    /// The sum folded to 16 bits; 0 only if every word was 0.
    #[inline]
    pub const fn fold(self) -> u16 {
        fold(self.0)
    }

    /// The checksum: the complement of the folded sum. Over data that holds a right checksum it is 0.
    #[inline]
    pub const fn checksum(self) -> u16 {
        !fold(self.0)
    }
}

impl PartialEq for Sum {
    fn eq(&self, other: &Sum) -> bool {
        self.fold() % 0xffff == other.fold() % 0xffff
    }
}

impl Eq for Sum {}

#[inline]
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    sum as u16
}

/// The checksum of a byte string.
#[inline]
pub fn checksum(data: &[u8]) -> u16 {
    Sum::of(data).checksum()
}

/// The sum of the IPv4 pseudo-header that TCP and UDP cover (RFC 793, RFC 768); `length` is that of the
/// transport header and payload in bytes.
#[inline]
pub fn pseudo_header_v4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, length: u16) -> Sum {
    Sum(Sum::of_u32(src.to_bits()).0
        + Sum::of_u32(dst.to_bits()).0
        + u64::from(protocol)
        + u64::from(length))
}

/// The sum of the IPv6 pseudo-header (RFC 8200, section 8.1); `length` is that of the upper-layer packet in
/// bytes, `next_header` the upper-layer protocol.
#[inline]
pub fn pseudo_header_v6(src: Ipv6Addr, dst: Ipv6Addr, next_header: u8, length: u32) -> Sum {
    Sum(Sum::of(&src.octets()).0
        + Sum::of(&dst.octets()).0
        + Sum::of_u32(length).0
        + u64::from(next_header))
}

/// What a change of some words does to every checksum that covers them.
///
/// A rewritten address counts in the IP header's checksum and in the transport's: the change is collected
/// once and applied to both. Equation 3 of RFC 1624: HC' = ~(~HC + ~m + m').
#[derive(Clone, Copy, Debug, Default)]
pub struct Delta(u64);

impl Delta {
    /// No change.
    pub const NONE: Delta = Delta(0);

    /// Adds the change of a 16-bit word at an even offset.
    #[inline]
    #[must_use]
    pub const fn u16(self, old: u16, new: u16) -> Delta {
        Delta(self.0 + !old as u64 + new as u64)
    }

    /// Adds the change of a 32-bit word at an even offset.
    #[inline]
    #[must_use]
    pub const fn u32(self, old: u32, new: u32) -> Delta {
        Delta(self.0 + Sum::of_u32(!old).0 + Sum::of_u32(new).0)
    }

    /// Adds the change of a byte string at an even offset.
    #[inline]
    #[must_use]
    pub fn bytes(self, old: &[u8], new: &[u8]) -> Delta {
        Delta(self.0 + u64::from(!Sum::of(old).fold()) + u64::from(Sum::of(new).fold()))
    }

    /// Adds another change.
    #[inline]
    #[must_use]
    pub const fn plus(self, other: Delta) -> Delta {
        Delta(fold(self.0) as u64 + fold(other.0) as u64)
    }

    /// The checksum after the change.
    #[inline]
    pub const fn apply(self, checksum: u16) -> u16 {
        !fold(!checksum as u64 + self.0)
    }

    /// The UDP checksum field after the change: absent stays absent, and a computed 0 is sent as 0xffff.
    #[inline]
    pub const fn apply_udp(self, field: u16) -> u16 {
        if udp_absent(field) { field } else { udp_field(self.apply(field)) }
    }
}

/// The checksum after a 16-bit word at an even offset changed from `old` to `new`.
#[inline]
pub const fn update_u16(checksum: u16, old: u16, new: u16) -> u16 {
    Delta::NONE.u16(old, new).apply(checksum)
}

/// The checksum after a 32-bit word at an even offset changed from `old` to `new`.
#[inline]
pub const fn update_u32(checksum: u16, old: u32, new: u32) -> u16 {
    Delta::NONE.u32(old, new).apply(checksum)
}

/// The checksum after a byte string at an even offset changed from `old` to `new`.
#[inline]
pub fn update_bytes(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    Delta::NONE.bytes(old, new).apply(checksum)
}

/// True if a UDP checksum field says that the sender computed none (RFC 768).
#[inline]
pub const fn udp_absent(field: u16) -> bool {
    field == 0
}

/// What UDP sends for a computed checksum: 0 would mean "none", so it is sent as its other zero, 0xffff.
#[inline]
pub const fn udp_field(computed: u16) -> u16 {
    if computed == 0 { 0xffff } else { computed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 word by word.
    fn reference(data: &[u8]) -> u16 {
        let mut sum = 0u32;
        for pair in data.chunks(2) {
            sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn same(a: u16, b: u16) -> bool {
        a % 0xffff == b % 0xffff
    }

    #[test]
    fn example_of_rfc_1071() {
        let data = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::of(&data).fold(), 0xddf2);
        assert_eq!(checksum(&data), !0xddf2);
    }

    #[test]
    fn example_of_rfc_1624() {
        // Section 4: the case that equation 2 gets wrong.
        assert_eq!(update_u16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_header_with_its_checksum_sums_to_zero() {
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8,
            0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7,
        ];
        assert_eq!(checksum(&header), 0);
    }

    #[test]
    fn nothing_and_zeros() {
        assert_eq!(checksum(&[]), 0xffff);
        assert_eq!(checksum(&[0; 40]), 0xffff);
        assert_eq!(checksum(&[0xff; 40]), 0);
    }

    #[test]
    fn udp_zeros() {
        assert!(udp_absent(0));
        assert!(!udp_absent(0xffff));
        assert_eq!(udp_field(0), 0xffff);
        assert_eq!(udp_field(0x1234), 0x1234);
        assert_eq!(Delta::NONE.u16(1, 2).apply_udp(0), 0);
        // 0x0001 + 1 -> the sum becomes 0xffff, the checksum 0, the field 0xffff.
        assert_eq!(Delta::NONE.u16(0, 1).apply_udp(0x0001), 0xffff);
    }

    #[test]
    fn pseudo_headers_are_sums_of_their_bytes() {
        let (src, dst) = (Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::new(255, 254, 253, 252));
        let bytes = [10, 1, 2, 3, 255, 254, 253, 252, 0, 17, 0x12, 0x34];
        assert_eq!(pseudo_header_v4(src, dst, 17, 0x1234), Sum::of(&bytes));
        let (src, dst) = (Ipv6Addr::from_bits(u128::MAX - 7), Ipv6Addr::from_bits(1 << 77 | 9));
        let mut bytes = [&src.octets()[..], &dst.octets()[..]].concat();
        bytes.extend([0, 1, 0xff, 0xfe, 0, 0, 0, 58]);
        assert_eq!(pseudo_header_v6(src, dst, 58, 0x1fffe), Sum::of(&bytes));
    }

    proptest! {
        #[test]
        fn equals_the_reference(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(checksum(&data), reference(&data));
        }

        #[test]
        fn split_sums_equal_the_whole(data in prop::collection::vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()) {
            let at = at.index(data.len() + 1);
            let (a, b) = data.split_at(at);
            prop_assert_eq!(Sum::of(a).plus_at(at, Sum::of(b)).fold(), Sum::of(&data).fold());
            if at % 2 == 0 {
                prop_assert_eq!(Sum::of(a).plus(Sum::of(b)).checksum(), checksum(&data));
            }
        }

        #[test]
        fn incremental_equals_full(
            mut data in prop::collection::vec(any::<u8>(), 8..100),
            at in any::<prop::sample::Index>(),
            new in any::<[u8; 4]>(),
        ) {
            let before = checksum(&data);
            let at = at.index(data.len() - 3) & !1;
            let old: [u8; 4] = data[at..at + 4].try_into().unwrap();
            data[at..at + 4].copy_from_slice(&new);
            let after = checksum(&data);
            let (old32, new32) = (u32::from_be_bytes(old), u32::from_be_bytes(new));
            prop_assert!(same(update_u32(before, old32, new32), after));
            prop_assert!(same(update_bytes(before, &old, &new), after));
            let high = update_u16(before, (old32 >> 16) as u16, (new32 >> 16) as u16);
            prop_assert!(same(update_u16(high, old32 as u16, new32 as u16), after));
            let delta = Delta::NONE.u16((old32 >> 16) as u16, (new32 >> 16) as u16);
            let delta = delta.plus(Delta::NONE.u16(old32 as u16, new32 as u16));
            prop_assert!(same(delta.apply(before), after));
        }
    }
}
