//! Flows that collide: hashes without a secret, and the flows that have the same one.

use std::net::IpAddr;

use super::frame::Headers;

/// A hash of flows that everybody can compute. All are affine over GF(2): how two flows' hashes differ depends only on
/// which bits of the flows differ, so flows with one hash follow from linear algebra.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FloodedHash {
    /// RSS: Toeplitz with the key of Microsoft's specification.
    #[default]
    Toeplitz,
    /// CRC32C, whatever it begins with, as of `rte_hash_crc`.
    Crc32c,
}

/// The key of Microsoft's specification of RSS.
const RSS_KEY: [u8; 40] = [
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
    0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
    0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
];

/// Bits in which colliding flows may differ, the ones to take first first: 24 of the source address, then the source
/// port, then the destination port.
const FREE: [u32; 56] = {
    let mut bits = [0; 56];
    let mut i = 0;
    while i < 56 {
        bits[i] = if i < 24 {
            32 + i as u32
        } else if i < 40 {
            i as u32 - 8
        } else {
            i as u32 - 40
        };
        i += 1;
    }
    bits
};

impl FloodedHash {
    /// All of them, with the names that `hash=` takes.
    pub(super) const ALL: [(&'static str, Self); 2] =
        [("toeplitz", Self::Toeplitz), ("crc32c", Self::Crc32c)];

    /// The hash of source address, destination address, source port and destination port, in network byte order.
    pub(super) fn of(self, headers: &Headers) -> u32 {
        let mut key = [0; 36];
        let length = match (headers.source, headers.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                key[..4].copy_from_slice(&source.octets());
                key[4..8].copy_from_slice(&destination.octets());
                8
            }
            (source, destination) => {
                let octets = |address: IpAddr| match address {
                    IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                    IpAddr::V6(address) => address.octets(),
                };
                key[..16].copy_from_slice(&octets(source));
                key[16..32].copy_from_slice(&octets(destination));
                32
            }
        };
        key[length..length + 2].copy_from_slice(&headers.ports.0.to_be_bytes());
        key[length + 2..length + 4].copy_from_slice(&headers.ports.1.to_be_bytes());
        let key = &key[..length + 4];
        match self {
            Self::Toeplitz => toeplitz(key),
            Self::Crc32c => crc32c::crc32c(key),
        }
    }
}

/// At most as many bytes as the key has room for.
fn toeplitz(data: &[u8]) -> u32 {
    let bit = |at: usize| u32::from(RSS_KEY[at / 8] >> (7 - at % 8) & 1);
    let window = |at: usize| (at..at + 32).fold(0, |window, at| window << 1 | bit(at));
    let is_set = |at: &usize| data[at / 8] >> (7 - at % 8) & 1 == 1;
    (0..data.len() * 8).filter(is_set).fold(0, |hash, at| hash ^ window(at))
}

/// Flows that have the same hash.
pub(super) struct Collisions {
    base: Headers,
    /// Differences that leave the hash as it is; so do all sums (exclusive or) of them, which are all different.
    basis: Vec<u64>,
}

impl Collisions {
    /// Flows with the hash of this one. The first 2^8 differ from it in source address and source port, others in the
    /// destination port besides.
    pub(super) fn new(hash: FloodedHash, base: Headers) -> Self {
        let zero = hash.of(&base);
        let mut basis = Vec::new();
        // Sums of differences by the highest bit in which the hash differs then.
        let mut pivots = [None; 32];
        for bit in FREE {
            let mut difference = 1 << bit;
            let mut of_hash = hash.of(&vary(base, difference)) ^ zero;
            while let Some(highest) = of_hash.checked_ilog2() {
                let Some((other_hash, other)) = pivots[highest as usize] else {
                    pivots[highest as usize] = Some((of_hash, difference));
                    break;
                };
                of_hash ^= other_hash;
                difference ^= other;
            }
            if of_hash == 0 {
                basis.push(difference);
            }
        }
        Self { base, basis }
    }

    /// A flow by its number, of 2^24 at least.
    pub(super) fn get(&self, number: u32) -> Headers {
        let of_bits = self.basis.iter().enumerate().filter(|(i, _)| number >> i & 1 == 1);
        vary(self.base, of_bits.fold(0, |sum, (_, difference)| sum ^ difference))
    }
}

/// Flows that [`Collisions`] has at least: each of 56 free bits but for 32 of the hash doubles them.
pub(super) const MAX_COLLISIONS: u32 = 1 << 24;

/// A flow that differs in these bits: the lower 24 of the source address, source port, destination port.
fn vary(mut headers: Headers, difference: u64) -> Headers {
    let address = (difference >> 32) as u32;
    headers.source = match headers.source {
        IpAddr::V4(source) => IpAddr::V4((source.to_bits() ^ address).into()),
        IpAddr::V6(source) => IpAddr::V6((source.to_bits() ^ u128::from(address)).into()),
    };
    headers.ports.0 ^= (difference >> 16) as u16;
    headers.ports.1 ^= difference as u16;
    headers
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::frame::Segment;
    use super::*;

    fn headers(source: &str, destination: &str, ports: (u16, u16)) -> Headers {
        let [source, destination] = [source, destination].map(|address| address.parse().unwrap());
        Headers { source, destination, ports, segment: Segment::PLAIN }
    }

    #[test]
    fn toeplitz_is_the_one_that_microsoft_specifies() {
        // "Verifying the RSS Hash Calculation".
        let v4 = headers("66.9.149.187", "161.142.100.80", (2794, 1766));
        assert_eq!(FloodedHash::Toeplitz.of(&v4), 0x51cc_c178);
        let v6 = headers("3ffe:2501:200:1fff::7", "3ffe:2501:200:3::1", (2794, 1766));
        assert_eq!(FloodedHash::Toeplitz.of(&v6), 0x4020_7d3d);
    }

    #[test]
    fn flows_are_different_and_collide() {
        let bases = [
            headers("10.0.0.1", "20.0.0.1", (1024, 80)),
            headers("2001:2::1", "2001:2::2", (1024, 80)),
        ];
        for (hash, base) in FloodedHash::ALL
            .iter()
            .flat_map(|(_, hash)| bases.iter().map(move |base| (*hash, *base)))
        {
            let collisions = Collisions::new(hash, base);
            assert!(1 << collisions.basis.len() >= MAX_COLLISIONS, "{hash:?}");
            let mut flows = HashSet::new();
            for number in (0..2000).chain(MAX_COLLISIONS - 100..MAX_COLLISIONS) {
                let flow = collisions.get(number);
                assert_eq!(hash.of(&flow), hash.of(&base), "{hash:?} {flow:?}");
                assert!(number >= 256 || flow.ports.1 == 80, "{hash:?} {flow:?}");
                assert!(flows.insert((flow.source, flow.ports)));
            }
        }
    }
}
