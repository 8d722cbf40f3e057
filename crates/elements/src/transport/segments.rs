//! What segments of TCP, and other packets of IP, say of themselves, for those who read payloads.

use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use net::Packet;
use net::checksum::{Sum, pseudo_header_v6};
use net::flow::FlowHash;
use net::wire::ip_protocol::{ICMP, ICMPV6, TCP, UDP};
use net::wire::ipv6::{HEADER_LEN, Upper};
use net::wire::tcp::flag::{ACK, RST, SYN};
use net::wire::{Ipv4, Ipv6};

/// A packet as those see it who read payloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub protocol: u8,
    pub src: IpAddr,
    pub dst: IpAddr,
    /// 0 without ports.
    pub src_port: u16,
    pub dst_port: u16,
    /// Type and code of ICMP.
    pub icmp: Option<(u8, u8)>,
    pub tcp: Option<Segment>,
    /// Where the headers of IP end, from their beginning.
    pub at: usize,
    /// Whether the rest of the packet comes in others, or never.
    pub is_fragment: bool,
    pub payload: &'a [u8],
}

/// What a segment of TCP says of its place in a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Of its first byte of payload.
    pub sequence: u32,
    pub acknowledged: u32,
    pub flags: u8,
}

impl Segment {
    /// Whether it asks for a connection.
    pub(crate) fn is_syn(&self) -> bool {
        self.has(SYN) && !self.has(ACK) && !self.has(RST)
    }

    /// Whether all of these flags are set.
    pub(crate) fn has(&self, flags: u8) -> bool {
        self.flags & flags == flags
    }
}

impl Seen<'_> {
    /// Whether it is not the beginning of a connection of TCP.
    pub(crate) fn is_established(&self) -> bool {
        self.tcp.is_some_and(|tcp| tcp.has(ACK) && !tcp.has(SYN))
    }
}

/// Protocol, addresses, where what is behind the headers of IP begins and ends, and whether it is a fragment; none for fragments
/// but the first.
fn behind(network: &[u8]) -> Option<(u8, IpAddr, IpAddr, std::ops::Range<usize>, bool)> {
    if network.first()? >> 4 == 6 {
        let ip = Ipv6::new(network)?;
        let Upper { protocol, at, fragment, is_whole, .. } = ip.upper();
        // A packet that is all of its fragments is none (RFC 6946).
        let is_fragment = fragment.is_some_and(|word| word & !6 != 0);
        let is_later = fragment.is_some_and(|word| word >> 3 != 0);
        let end = (HEADER_LEN + ip.payload_len()).min(network.len());
        let is_there = is_whole && !is_later;
        return is_there.then(|| {
            (protocol, ip.src().into(), ip.dst().into(), HEADER_LEN + at..end, is_fragment)
        });
    }
    let ip = Ipv4::new(network).filter(|ip| ip.fragment_offset() == 0)?;
    let length = usize::from(ip.total_len()).min(network.len());
    let ends = (ip.src().into(), ip.dst().into());
    Some((ip.protocol(), ends.0, ends.1, ip.header_len()..length, ip.is_fragment()))
}

/// What a packet with a marked IPv4 or IPv6 header is; none without such a header, with one of TCP or UDP that is not
/// whole, and for fragments but the first. Of IPv6, TCP and whole datagrams of UDP with a wrong checksum are none, as their receiver
/// refuses them; CheckTCPHeader and CheckUDPHeader see to that with IPv4.
pub(crate) fn seen(packet: &Packet) -> Option<Seen<'_>> {
    let network = packet.network()?;
    let (protocol, src, dst, range, is_fragment) = behind(network)?;
    let (at, rest) = (range.start, network.get(range)?);
    let (icmp, tcp, payload) = (None, None, rest);
    let mut seen =
        Seen { protocol, src, dst, src_port: 0, dst_port: 0, icmp, tcp, at, is_fragment, payload };
    let headers = match (protocol, src) {
        (TCP, _) => {
            let header = rest.first_chunk::<20>()?;
            let number = |at| u32::from_be_bytes([0, 1, 2, 3].map(|i: usize| header[at + i]));
            if let (IpAddr::V6(from), IpAddr::V6(to)) = (src, dst)
                && pseudo_header_v6(from, to, TCP, rest.len() as u32).plus(Sum::of(rest)).fold()
                    != 0xffff
            {
                return None;
            }
            let flags = header[13];
            let sequence = number(4).wrapping_add((flags & SYN != 0).into());
            seen.tcp = Some(Segment { sequence, acknowledged: number(8), flags });
            usize::from(header[12] >> 4) * 4
        }
        (UDP, _) => {
            let checksum = rest.get(6..8)?;
            if let (IpAddr::V6(from), IpAddr::V6(to)) = (src, dst)
                && checksum != [0, 0]
                && !is_fragment
                && pseudo_header_v6(from, to, UDP, rest.len() as u32).plus(Sum::of(rest)).fold()
                    != 0xffff
            {
                return None;
            }
            8
        }
        (ICMP, IpAddr::V4(_)) | (ICMPV6, IpAddr::V6(_)) => {
            seen.icmp = Some((*rest.first()?, *rest.get(1)?));
            8
        }
        _ => return Some(seen),
    };
    if seen.icmp.is_none() {
        let ports = rest.first_chunk::<4>()?;
        seen.src_port = u16::from_be_bytes([ports[0], ports[1]]);
        seen.dst_port = u16::from_be_bytes([ports[2], ports[3]]);
    }
    seen.payload = rest.get(headers..).filter(|_| protocol != TCP || headers >= 20)?;
    Some(seen)
}

/// Keys of flows of TCP and UDP.
pub(crate) struct FlowKeys {
    /// IPv6 addresses and ports do not fit a key: two hashes of them do, with a secret that nobody knows.
    hashes: [FlowHash; 2],
}

impl FlowKeys {
    pub(crate) fn new() -> Self {
        let seed = || FlowHash::new(std::hash::RandomState::new().build_hasher().finish());
        Self { hashes: [seed(), seed()] }
    }

    fn key(&self, protocol: u8, from: (IpAddr, u16), to: (IpAddr, u16)) -> u128 {
        let ports = u128::from(from.1) << 16 | u128::from(to.1) | u128::from(protocol) << 32;
        if let (IpAddr::V4(from), IpAddr::V4(to)) = (from.0, to.0) {
            return ports << 64 | u128::from(from.to_bits()) << 32 | u128::from(to.to_bits());
        }
        let [high, low] = [0, 1].map(|at| {
            let mut hasher = self.hashes[at].build_hasher();
            for (address, _) in [from, to] {
                let address = match address {
                    IpAddr::V4(of) => of.to_ipv6_mapped(),
                    IpAddr::V6(of) => of,
                };
                hasher.write_u128(address.to_bits());
            }
            hasher.write_u64(ports as u64);
            u128::from(hasher.finish())
        });
        // No key of IPv4 has this bit.
        1 << 127 | high << 64 | low
    }

    /// The key of a packet's direction.
    pub(crate) fn of_direction(&self, seen: &Seen<'_>) -> u128 {
        self.key(seen.protocol, (seen.src, seen.src_port), (seen.dst, seen.dst_port))
    }

    /// The key of one of several connections that share a packet's direction, by its ID.
    pub(crate) fn of_connection(&self, seen: &Seen<'_>, id: &[u8]) -> u128 {
        let direction = self.of_direction(seen);
        let [high, low] = [0, 1].map(|at| {
            let mut hasher = self.hashes[at].build_hasher();
            hasher.write_u128(direction);
            hasher.write_u8(id.len() as u8);
            hasher.write(id);
            u128::from(hasher.finish())
        });
        1 << 127 | high << 64 | low
    }

    /// The key of both directions between two ends.
    pub(crate) fn of_ends(&self, protocol: u8, one: (IpAddr, u16), other: (IpAddr, u16)) -> u128 {
        self.key(protocol, one.min(other), one.max(other))
    }

    /// The key of both directions, and which of them, 0 or 1, a packet is of.
    pub(crate) fn of_both(&self, seen: &Seen<'_>) -> (u128, usize) {
        let (from, to) = ((seen.src, seen.src_port), (seen.dst, seen.dst_port));
        let side = usize::from(from > to);
        (self.of_ends(seen.protocol, from, to), side)
    }
}
