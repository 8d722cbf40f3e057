//! Flows of both IP versions: what their packets have in common.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use net::wire::ipv6::{self, Upper};
use net::wire::{Ipv6, ip_protocol, ipv4};
use net::{Packet, annotation};

/// Addresses, ports and protocol of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowKey {
    /// IPv4 addresses stand in the first four bytes.
    src: [u8; 16],
    dst: [u8; 16],
    /// 0 where the protocol has no ports, and for fragments.
    pub src_port: u16,
    pub dst_port: u16,
    pub protocol: u8,
    pub is_ipv6: bool,
}

/// Fields of a frame that something is said to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KeptFields {
    pub ether_src: bool,
    pub ether_dst: bool,
    src: bool,
    dst: bool,
    protocol: bool,
    src_port: bool,
    dst_port: bool,
}

impl KeptFields {
    /// What fields and sets of them are called.
    pub(crate) const NAMES: [&'static str; 8] =
        ["ether.src", "ether.dst", "ip.src", "ip.dst", "ip.protocol", "l4", "l4.src", "l4.dst"];

    /// Whether packets of different flows differ in them.
    pub(crate) fn is_flow(&self) -> bool {
        self.src && self.dst && self.protocol && self.src_port && self.dst_port
    }

    /// Adds what a name stands for, if it does for anything.
    pub(crate) fn add(&mut self, name: &str) -> bool {
        match name {
            "ether.src" => self.ether_src = true,
            "ether.dst" => self.ether_dst = true,
            "ip.src" => self.src = true,
            "ip.dst" => self.dst = true,
            "ip.protocol" => self.protocol = true,
            "l4" => (self.protocol, self.src_port, self.dst_port) = (true, true, true),
            "l4.src" => self.src_port = true,
            "l4.dst" => self.dst_port = true,
            _ => return false,
        }
        true
    }
}

/// What is read of an IP packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub key: FlowKey,
    /// Bytes of the IP packet, headers included.
    pub length: u64,
    /// What stands behind the IP headers; nothing of fragments.
    pub transport: &'a [u8],
}

/// VLAN tags that are looked behind at the most.
const MOST_TAGS: usize = 2;
fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

impl Hash for FlowKey {
    fn hash<H: Hasher>(&self, to: &mut H) {
        for word in self.src.as_chunks().0.iter().chain(self.dst.as_chunks().0) {
            to.write_u64(u64::from_le_bytes(*word));
        }
        let ports = u64::from(self.src_port) << 16 | u64::from(self.dst_port);
        to.write_u64(ports << 16 | u64::from(self.protocol) << 1 | u64::from(self.is_ipv6));
    }
}

impl FlowKey {
    fn address(&self, bytes: &[u8; 16]) -> IpAddr {
        match self.is_ipv6 {
            true => Ipv6Addr::from(*bytes).into(),
            false => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into(),
        }
    }

    pub(crate) fn src(&self) -> IpAddr {
        self.address(&self.src)
    }

    pub(crate) fn dst(&self) -> IpAddr {
        self.address(&self.dst)
    }

    /// What all packets with this source have in common, or with this destination: its first bits, in the place of
    /// the source. Bits beyond an address are ignored.
    pub(crate) fn network(&self, of_source: bool, bits: u8) -> Self {
        let address = if of_source { self.src } else { self.dst };
        let bits = u32::from(bits).min(if self.is_ipv6 { 128 } else { 32 });
        let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
        let src = (u128::from_be_bytes(address) & mask).to_be_bytes();
        Self { src, is_ipv6: self.is_ipv6, ..Self::NONE }
    }

    /// The same with nothing but what is kept.
    pub(crate) fn only(&self, kept: &KeptFields) -> Self {
        let all = *self;
        Self {
            src: if kept.src { all.src } else { [0; 16] },
            dst: if kept.dst { all.dst } else { [0; 16] },
            src_port: if kept.src_port { all.src_port } else { 0 },
            dst_port: if kept.dst_port { all.dst_port } else { 0 },
            protocol: if kept.protocol { all.protocol } else { 0 },
            is_ipv6: all.is_ipv6,
        }
    }

    /// What is of no packet.
    pub(crate) const NONE: Self =
        Self { src: [0; 16], dst: [0; 16], src_port: 0, dst_port: 0, protocol: 0, is_ipv6: false };

    /// The protocol's name, or its number.
    pub(crate) fn protocol_name(&self) -> String {
        ip_protocol::name(self.protocol).map_or_else(|| self.protocol.to_string(), String::from)
    }
}

/// `tcp 10.0.0.1:5000 > 10.0.0.2:80`.
impl fmt::Display for FlowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = |address: IpAddr, port| match (self.src_port, self.dst_port) {
            (0, 0) => address.to_string(),
            _ => SocketAddr::new(address, port).to_string(),
        };
        let (src, dst) = (end(self.src(), self.src_port), end(self.dst(), self.dst_port));
        write!(f, "{} {src} > {dst}", self.protocol_name())
    }
}

impl<'a> Seen<'a> {
    /// What an Ethernet frame holds; nothing if that is no IP packet, or an invalid one.
    pub(crate) fn of_frame(packet: &'a Packet) -> Option<Self> {
        // Bytes that a capture left out were there.
        let missing = packet.annotations().u32(annotation::EXTRA_LENGTH) as usize;
        Self::of_bytes(packet.data(), missing)
    }

    fn of_bytes(frame: &'a [u8], missing: usize) -> Option<Self> {
        let mut at = 12;
        for _ in 0..MOST_TAGS {
            if !matches!(be16(frame, at)?, 0x8100 | 0x88a8) {
                break;
            }
            at += 4;
        }
        let (kind, ip) = (be16(frame, at)?, &frame[at + 2..]);
        let seen = match kind {
            0x0800 => Self::of_ipv4(ip)?,
            0x86dd => Self::of_ipv6(ip)?,
            _ => return None,
        };
        (seen.length <= (ip.len() + missing) as u64).then_some(seen)
    }

    fn of_ipv4(ip: &'a [u8]) -> Option<Self> {
        let fixed: &[u8; ipv4::HEADER_LEN] = ip.first_chunk()?;
        let header = usize::from(fixed[0] & 15) * 4;
        let length = usize::from(be16(fixed, 2)?);
        if fixed[0] >> 4 != 4 || header < ipv4::HEADER_LEN || length < header {
            return None;
        }
        let (mut src, mut dst) = ([0; 16], [0; 16]);
        src[..4].copy_from_slice(&fixed[12..16]);
        dst[..4].copy_from_slice(&fixed[16..]);
        // More fragments, or an offset.
        let is_fragment = be16(fixed, 6)? & 0x3fff != 0;
        let key =
            FlowKey { src, dst, src_port: 0, dst_port: 0, protocol: fixed[9], is_ipv6: false };
        let end = length.min(ip.len());
        let transport = if is_fragment { None } else { ip.get(header..end) };
        Some(Self { key, length: length as u64, transport: &[] }.with(transport.unwrap_or(&[])))
    }

    fn of_ipv6(bytes: &'a [u8]) -> Option<Self> {
        let ip = Ipv6::new(bytes).filter(|ip| ip.version() == 6)?;
        let length = ipv6::HEADER_LEN + ip.payload_len();
        let Upper { protocol, at, fragment, is_whole, .. } = ip.upper();
        // A packet that is all of its fragments is none (RFC 6946).
        let is_fragment = fragment.is_some_and(|word| word & !6 != 0) || !is_whole;
        let (src, dst) = (ip.src().octets(), ip.dst().octets());
        let key = FlowKey { src, dst, src_port: 0, dst_port: 0, protocol, is_ipv6: true };
        let rest = bytes.get(ipv6::HEADER_LEN + at..length.min(bytes.len()));
        let seen = Self { key, length: length as u64, transport: &[] };
        Some(seen.with(rest.filter(|_| !is_fragment).unwrap_or(&[])))
    }

    fn with(mut self, transport: &'a [u8]) -> Self {
        self.transport = transport;
        let has_ports = ip_protocol::has_ports(self.key.protocol);
        if let (true, Some(src), Some(dst)) = (has_ports, be16(transport, 0), be16(transport, 2)) {
            (self.key.src_port, self.key.dst_port) = (src, dst);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use net::notation::parse;

    use super::*;

    fn shown(frame: &[u8]) -> Option<(String, u64)> {
        Seen::of_bytes(frame, 0).map(|seen| (seen.key.to_string(), seen.length))
    }

    fn of(text: &str) -> Option<(String, u64)> {
        shown(&parse(text).unwrap())
    }

    #[test]
    fn keys_are_of_both_versions_of_ip() {
        let is = |text: &str, shown: &str, length| {
            assert_eq!(of(text), Some((shown.to_string(), length)), "{text}");
        };
        is("udp 10.0.0.1:5 > 10.0.0.2:53", "udp 10.0.0.1:5 > 10.0.0.2:53", 28);
        is("vlan 7 tcp 10.0.0.1:5 > 10.0.0.2:53", "tcp 10.0.0.1:5 > 10.0.0.2:53", 40);
        is("udp 10.0.0.1:5 > 10.0.0.2:53 mf", "udp 10.0.0.1 > 10.0.0.2", 28);
        is("udp 10.0.0.1:5 > 10.0.0.2:53 frag 8", "udp 10.0.0.1 > 10.0.0.2", 20);
        is("udp 10.0.0.1:5 > 10.0.0.2:53 pad 9", "udp 10.0.0.1:5 > 10.0.0.2:53", 28);
        is("icmp 10.0.0.1 > 10.0.0.2", "icmp 10.0.0.1 > 10.0.0.2", 28);
        is("udp [2001:db8::1]:5 > [::2]:53", "udp [2001:db8::1]:5 > [::2]:53", 48);
        for none in ["arp who-has 10.0.0.1 tell 10.0.0.2", "udp 10.0.0.1:5 > 10.0.0.2:53 cut 40"] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    /// An IPv6 packet with these bytes behind its header.
    fn ipv6(next: u8, behind: &[u8]) -> Vec<u8> {
        let mut frame = parse("udp [::1]:1 > [::2]:2").unwrap();
        frame.truncate(54);
        frame[18..20].copy_from_slice(&(behind.len() as u16).to_be_bytes());
        frame[20] = next;
        frame.extend(behind);
        frame
    }

    #[test]
    fn networks_are_the_first_bits_of_an_address() {
        let key = |text: &str| Seen::of_bytes(&parse(text).unwrap(), 0).unwrap().key;
        let four = key("udp 10.1.2.3:5 > 10.0.0.2:53");
        let six = key("udp [2001:db8:1:2:3::1]:5 > [2001:db8::2]:53");
        let is = |key: FlowKey, of_source, bits, network: &str| {
            let made = key.network(of_source, bits);
            assert_eq!(made.src().to_string(), network);
            assert_eq!(made, FlowKey { src: made.src, is_ipv6: key.is_ipv6, ..FlowKey::NONE });
        };
        is(four, true, 32, "10.1.2.3");
        is(four, true, 200, "10.1.2.3");
        is(four, true, 17, "10.1.0.0");
        is(four, false, 31, "10.0.0.2");
        is(four, true, 0, "0.0.0.0");
        is(six, true, 64, "2001:db8:1:2::");
        is(six, false, 128, "2001:db8::2");
        is(six, true, 0, "::");
    }

    #[test]
    fn extension_headers_are_looked_behind() {
        let udp = [0, 7, 0, 9, 0, 8, 0, 0];
        let with = |next: u8, headers: &[&[u8]]| shown(&ipv6(next, &headers.concat())).unwrap().0;
        let options = [17, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(with(0, &[&options, &udp]), "udp [::1]:7 > [::2]:9");
        let authentication = [17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(with(51, &[&authentication, &udp]), "udp [::1]:7 > [::2]:9");
        let atomic = [17, 0, 0, 0, 0, 0, 0, 1];
        assert_eq!(with(44, &[&atomic, &udp]), "udp [::1]:7 > [::2]:9");
        let first = [17, 0, 0, 1, 0, 0, 0, 1];
        assert_eq!(with(44, &[&first, &udp]), "udp ::1 > ::2");
        assert_eq!(with(44, &[&[17, 0, 0, 8, 0, 0, 0, 1], &udp]), "udp ::1 > ::2");
    }

    #[test]
    fn whatever_is_cut_off_anywhere_is_read_to_its_end() {
        let udp = [0, 7, 0, 9, 0, 8, 0, 0];
        let headers = [[0u8, 0, 1, 4, 0, 0, 0, 0]; 12].concat();
        for frame in [ipv6(0, &[&headers[..], &udp].concat()), ipv6(43, &[6, 255, 0, 0])] {
            for length in 0..=frame.len() {
                let _ = Seen::of_bytes(&frame[..length], 0);
                let _ = Seen::of_bytes(&frame[..length], 2000);
            }
        }
        let frame = parse("tcp 10.0.0.1:5 > 10.0.0.2:53 opt 01010101").unwrap();
        for length in 0..frame.len() {
            let _ = Seen::of_bytes(&frame[..length], 2000);
        }
    }
}
