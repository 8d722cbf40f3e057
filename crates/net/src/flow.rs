//! Flow keys and their keyed hash.

use crate::wire::ip_protocol;
use crate::wire::ipv4::Ipv4;
use crate::wire::ipv6::Ipv6;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6};

/// The five fields that name a flow of IPv4 packets in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Source port; 0 if the protocol has no ports.
    pub src_port: u16,
    /// Destination port; 0 if the protocol has no ports.
    pub dst_port: u16,
    /// Protocol.
    pub protocol: u8,
}

/// The five fields that name a flow of IPv6 packets in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKeyV6 {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Source port; 0 if the protocol has no ports.
    pub src_port: u16,
    /// Destination port; 0 if the protocol has no ports.
    pub dst_port: u16,
    /// Upper-layer protocol.
    pub protocol: u8,
}

// Source and destination port at the start of a transport header, in protocols that have them.
#[inline]
fn ports(protocol: u8, header: &[u8]) -> Option<(u16, u16)> {
    if !ip_protocol::has_ports(protocol) {
        return Some((0, 0));
    }
    let &[a, b, c, d] = header.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

#[inline]
fn last_word(src_port: u16, dst_port: u16, protocol: u8) -> u64 {
    u64::from(src_port) << 32 | u64::from(dst_port) << 16 | u64::from(protocol)
}

impl FlowKey {
    /// The flow of a packet; `None` if its ports are not in it, because it is a later fragment or cut off.
    #[inline]
    pub fn of<T: AsRef<[u8]>>(ip: &Ipv4<T>) -> Option<FlowKey> {
        let protocol = ip.protocol();
        if ip.fragment_offset() != 0 {
            return None;
        }
        let (src_port, dst_port) = ports(protocol, ip.payload())?;
        Some(FlowKey { src: ip.src(), dst: ip.dst(), src_port, dst_port, protocol })
    }

    /// The flow in the other direction.
    #[inline]
    #[must_use]
    pub const fn reverse(self) -> FlowKey {
        FlowKey {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            protocol: self.protocol,
        }
    }

    #[inline]
    fn words(self) -> [u64; 2] {
        let addrs = u64::from(self.src.to_bits()) << 32 | u64::from(self.dst.to_bits());
        [addrs, last_word(self.src_port, self.dst_port, self.protocol)]
    }
}

impl FlowKeyV6 {
    /// The flow of a packet; `None` if its ports are not in it, because it is a later fragment or cut off, or
    /// its extension headers cannot be walked.
    #[inline]
    pub fn of<T: AsRef<[u8]>>(ip: &Ipv6<T>) -> Option<FlowKeyV6> {
        let upper = ip.upper_layer().ok()?;
        if upper.fragment.is_some_and(|fragment| fragment.offset != 0) {
            return None;
        }
        let header = ip.payload().get(upper.offset - crate::wire::ipv6::HEADER_LEN..)?;
        let (src_port, dst_port) = ports(upper.protocol, header)?;
        Some(FlowKeyV6 {
            src: ip.src(),
            dst: ip.dst(),
            src_port,
            dst_port,
            protocol: upper.protocol,
        })
    }

    /// The flow in the other direction.
    #[inline]
    #[must_use]
    pub const fn reverse(self) -> FlowKeyV6 {
        FlowKeyV6 {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            protocol: self.protocol,
        }
    }

    #[inline]
    fn words(self) -> [u64; 5] {
        let (src, dst) = (self.src.to_bits(), self.dst.to_bits());
        let last = last_word(self.src_port, self.dst_port, self.protocol);
        [(src >> 64) as u64, src as u64, (dst >> 64) as u64, dst as u64, last]
    }
}

// Whole words, so that any hasher is fed in few steps.
impl Hash for FlowKey {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().iter().for_each(|&word| state.write_u64(word));
    }
}

impl Hash for FlowKeyV6 {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.words().iter().for_each(|&word| state.write_u64(word));
    }
}

fn write_protocol(f: &mut fmt::Formatter<'_>, protocol: u8) -> fmt::Result {
    match ip_protocol::name(protocol) {
        Some(name) => f.write_str(name),
        None => write!(f, "proto {protocol}"),
    }
}

/// `udp 10.0.0.1:5000 > 8.8.8.8:53`; without ports where the protocol has none.
impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_protocol(f, self.protocol)?;
        if ip_protocol::has_ports(self.protocol) {
            write!(f, " {}:{} > {}:{}", self.src, self.src_port, self.dst, self.dst_port)
        } else {
            write!(f, " {} > {}", self.src, self.dst)
        }
    }
}

/// `udp [2001:db8::1]:5000 > [2001:db8::2]:53`; without ports where the protocol has none.
impl fmt::Display for FlowKeyV6 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_protocol(f, self.protocol)?;
        if ip_protocol::has_ports(self.protocol) {
            let src = SocketAddrV6::new(self.src, self.src_port, 0, 0);
            let dst = SocketAddrV6::new(self.dst, self.dst_port, 0, 0);
            write!(f, " {src} > {dst}")
        } else {
            write!(f, " {} > {}", self.src, self.dst)
        }
    }
}

/// A keyed hash of flows, for tables that face traffic meant to collide.
///
/// Pairs of words are added to secret keys and multiplied (the NH construction: two different flows collide
/// with a probability of about 2^-64), and the 128-bit sum is folded to 64 bits by one more multiplication.
/// It is a [`BuildHasher`] too, for other keys. Without the seed nothing is known about the order or the
/// distribution of hashes, and they must not leave the process: they are not cryptographic.
#[derive(Clone)]
pub struct FlowHash {
    keys: [u64; 8],
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
        let mut keys = [0; 8];
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

    #[inline]
    fn pair(&self, at: usize, a: u64, b: u64) -> u128 {
        multiply(a.wrapping_add(self.keys[at]), b.wrapping_add(self.keys[at + 1]))
    }

    #[inline]
    fn finish(&self, sum: u128) -> u64 {
        fold(multiply(sum as u64 ^ self.keys[6], (sum >> 64) as u64 ^ self.keys[7]))
    }

    /// The hash of a key of two words.
    #[inline]
    pub fn two(&self, a: u64, b: u64) -> u64 {
        self.finish(self.pair(0, a, b))
    }

    /// The hash of an IPv4 flow.
    #[inline]
    pub fn v4(&self, key: &FlowKey) -> u64 {
        let [addrs, rest] = key.words();
        self.two(addrs, rest)
    }

    /// The hash of an IPv6 flow.
    #[inline]
    pub fn v6(&self, key: &FlowKeyV6) -> u64 {
        let [a, b, c, d, rest] = key.words();
        let sum = self.pair(0, a, b).wrapping_add(self.pair(2, c, d));
        self.finish(sum.wrapping_add(self.pair(4, rest, 0)))
    }
}

impl BuildHasher for FlowHash {
    type Hasher = WordHasher;

    #[inline]
    fn build_hasher(&self) -> WordHasher {
        WordHasher { state: self.keys[0], key: self.keys[1] | 1, last: self.keys[7] }
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
    use ip_protocol::{ICMP, TCP, UDP};
    use std::collections::HashSet;

    fn key(n: u32) -> FlowKey {
        FlowKey {
            src: Ipv4Addr::from_bits(0x0a00_0000 + (n >> 8)),
            dst: Ipv4Addr::new(192, 168, 0, 1),
            src_port: 1024 + (n & 0xff) as u16,
            dst_port: 80,
            protocol: TCP,
        }
    }

    fn key6(n: u32) -> FlowKeyV6 {
        let key = key(n);
        FlowKeyV6 {
            src: key.src.to_ipv6_mapped(),
            dst: key.dst.to_ipv6_mapped(),
            src_port: key.src_port,
            dst_port: key.dst_port,
            protocol: key.protocol,
        }
    }

    #[test]
    fn is_compact() {
        assert_eq!(size_of::<FlowKey>(), 14);
        assert_eq!(size_of::<FlowKeyV6>(), 38);
    }

    #[test]
    fn reverses() {
        let key = key(7);
        assert_ne!(key.reverse(), key);
        assert_eq!(key.reverse().src_port, 80);
        assert_eq!(key.reverse().reverse(), key);
        assert_eq!(key6(7).reverse().reverse(), key6(7));
    }

    #[test]
    fn displays() {
        assert_eq!(key(7).to_string(), "tcp 10.0.0.0:1031 > 192.168.0.1:80");
        let icmp = FlowKey { protocol: ICMP, src_port: 0, dst_port: 0, ..key(0) };
        assert_eq!(icmp.to_string(), "icmp 10.0.0.0 > 192.168.0.1");
        assert_eq!(
            FlowKey { protocol: 253, ..icmp }.to_string(),
            "proto 253 10.0.0.0 > 192.168.0.1"
        );
        let six = FlowKeyV6 { src: Ipv6Addr::LOCALHOST, protocol: UDP, ..key6(0) };
        assert_eq!(six.to_string(), "udp [::1]:1024 > [::ffff:192.168.0.1]:80");
    }

    #[test]
    fn of_packets() {
        let mut bytes = [0u8; 28];
        let mut ip = Ipv4::new(&mut bytes[..]).unwrap();
        ip.set_header_len(20);
        ip.set_total_len(28);
        ip.set_protocol(UDP);
        ip.set_src(Ipv4Addr::new(1, 2, 3, 4));
        ip.set_dst(Ipv4Addr::new(5, 6, 7, 8));
        ip.payload_mut()[..4].copy_from_slice(&[0, 53, 0x12, 0x34]);
        let expected = FlowKey {
            src: Ipv4Addr::new(1, 2, 3, 4),
            dst: Ipv4Addr::new(5, 6, 7, 8),
            src_port: 53,
            dst_port: 0x1234,
            protocol: UDP,
        };
        assert_eq!(FlowKey::of(&ip), Some(expected));
        ip.set_protocol(ICMP);
        assert_eq!(
            FlowKey::of(&ip),
            Some(FlowKey { src_port: 0, dst_port: 0, protocol: ICMP, ..expected })
        );
        ip.set_protocol(UDP);
        ip.set_total_len(23);
        assert_eq!(FlowKey::of(&ip), None);
        ip.set_total_len(28);
        ip.set_fragment_word(1);
        assert_eq!(FlowKey::of(&ip), None);
    }

    #[test]
    fn of_ipv6_packets_behind_extensions() {
        let mut bytes = [0u8; 60];
        let mut ip = Ipv6::new(&mut bytes[..]).unwrap();
        ip.set_first_word(0, 0);
        ip.set_payload_len(20);
        ip.set_next_header(ip_protocol::IPV6_FRAGMENT);
        ip.set_dst(Ipv6Addr::LOCALHOST);
        ip.payload_mut()[..12].copy_from_slice(&[UDP, 0, 0, 1, 0, 0, 0, 9, 0, 53, 0x12, 0x34]);
        let key = FlowKeyV6::of(&ip).unwrap();
        assert_eq!((key.src_port, key.dst_port, key.protocol), (53, 0x1234, UDP));
        assert_eq!((key.src, key.dst), (Ipv6Addr::UNSPECIFIED, Ipv6Addr::LOCALHOST));
        ip.payload_mut()[3] = 8;
        assert_eq!(FlowKeyV6::of(&ip), None, "later fragment");
        ip.set_payload_len(11);
        ip.payload_mut()[3] = 0;
        assert_eq!(FlowKeyV6::of(&ip), None, "cut off");
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
            looks_uniform(&(0..100_000).map(|n| hash.v4(&key(n))).collect::<Vec<_>>());
            looks_uniform(&(0..100_000).map(|n| hash.v4(&key(n).reverse())).collect::<Vec<_>>());
            looks_uniform(&(0..100_000).map(|n| hash.v6(&key6(n))).collect::<Vec<_>>());
            looks_uniform(&(0..100_000).map(|n| hash.hash_one(key(n))).collect::<Vec<_>>());
            looks_uniform(&(0..100_000u32).map(|n| hash.hash_one(n)).collect::<Vec<_>>());
            looks_uniform(
                &(0..100_000u32).map(|n| hash.hash_one(n.to_string())).collect::<Vec<_>>(),
            );
        }
    }

    #[test]
    fn every_field_and_the_seed_count() {
        let base = key(1);
        let flows = [
            base,
            FlowKey { src: Ipv4Addr::BROADCAST, ..base },
            FlowKey { dst: Ipv4Addr::BROADCAST, ..base },
            FlowKey { src_port: 1, ..base },
            FlowKey { dst_port: 1, ..base },
            FlowKey { protocol: UDP, ..base },
            base.reverse(),
        ];
        let seen: HashSet<u64> = (0..9)
            .flat_map(|seed| flows.iter().map(move |flow| FlowHash::new(seed).v4(flow)))
            .collect();
        assert_eq!(seen.len(), 9 * flows.len());
        let seen: HashSet<u64> = [
            key6(1),
            FlowKeyV6 { src: Ipv6Addr::from_bits(1 << 100), ..key6(1) },
            FlowKeyV6 { dst: Ipv6Addr::from_bits(1 << 100), ..key6(1) },
            FlowKeyV6 { protocol: UDP, ..key6(1) },
            key6(1).reverse(),
        ]
        .iter()
        .map(|flow| FlowHash::new(0).v6(flow))
        .collect();
        assert_eq!(seen.len(), 5);
    }
}
