//! IPv6 (RFC 8200).

use super::ip_protocol::{
    AH, DESTINATION_OPTIONS, HOP_BY_HOP, IPV6_FRAGMENT, IPV6_ROUTING, MOBILITY,
};
use super::{cut, cut_mut, put_bits, put_u16, u16_at, view};
use crate::checksum::{Sum, pseudo_header_v6};
use std::net::Ipv6Addr;

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;

/// Extension headers that are looked behind.
const MOST_EXTENSIONS: usize = 16;

/// What stands behind extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper {
    /// Its protocol; if not all headers are there, the number of the one that is not.
    pub protocol: u8,
    /// Where it begins, from the end of the fixed header on.
    pub at: usize,
    /// The word of a fragment header: offset in 8 bytes (13 bits), two bits, and whether more fragments follow.
    pub fragment: Option<u16>,
    /// Whether all headers are there.
    pub is_whole: bool,
    /// Whether a routing header has segments left: the destination is not the last one.
    pub has_segments_left: bool,
}

view! {
    /// An IPv6 packet.
    Ipv6
}

impl<T: AsRef<[u8]>> Ipv6<T> {
    /// Version; 6 in a valid packet.
    #[inline]
    pub fn version(&self) -> u8 {
        self.fixed()[0] >> 4
    }

    /// Traffic class: DSCP and ECN.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (u16_at(self.fixed(), 0) >> 4) as u8
    }

    /// Explicit congestion notification, 0 to 3.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// Length in bytes of what follows the fixed header, as the header says; 0 in a jumbogram (RFC 2675).
    #[inline]
    pub fn payload_len(&self) -> usize {
        u16_at(self.fixed(), 4).into()
    }

    /// Kind of the header that follows: an extension header or the payload's protocol.
    #[inline]
    pub fn next_header(&self) -> u8 {
        self.fixed()[6]
    }

    /// Hop limit.
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.fixed()[7]
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> Ipv6Addr {
        let octets: [u8; 16] = self.fixed()[8..24].try_into().expect("16 bytes");
        octets.into()
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> Ipv6Addr {
        let octets: [u8; 16] = self.fixed()[24..40].try_into().expect("16 bytes");
        octets.into()
    }

    /// What follows the fixed header, up to the payload length, as far as the buffer holds it.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), HEADER_LEN, HEADER_LEN + self.payload_len())
    }

    /// What stands behind the extension headers (RFC 8200, section 4; RFC 4302), of which at most 16 are looked at.
    pub fn upper(&self) -> Upper {
        let payload = self.payload();
        let mut upper = Upper {
            protocol: self.next_header(),
            at: 0,
            fragment: None,
            is_whole: true,
            has_segments_left: false,
        };
        for _ in 0..MOST_EXTENSIONS {
            let rest = payload.get(upper.at..).unwrap_or_default();
            let size = |unit: usize, least: usize| {
                rest.get(1).map(|size| (usize::from(*size) + least) * unit)
            };
            let size = match upper.protocol {
                HOP_BY_HOP | IPV6_ROUTING | DESTINATION_OPTIONS | MOBILITY => size(8, 1),
                AH => size(4, 2),
                IPV6_FRAGMENT => Some(8),
                _ => return upper,
            };
            let Some(size) = size.filter(|size| *size <= rest.len()) else { break };
            if upper.protocol == IPV6_FRAGMENT {
                upper.fragment = Some(u16_at(rest, 2));
            }
            upper.has_segments_left |= upper.protocol == IPV6_ROUTING && rest[3] != 0;
            (upper.protocol, upper.at) = (rest[0], upper.at + size);
            // What follows in another fragment is no header.
            if upper.fragment.is_some_and(|word| word & !7 != 0) {
                return upper;
            }
        }
        upper.is_whole = false;
        upper
    }

    /// The sum of the pseudo-header for an upper-layer packet of that many bytes.
    ///
    /// The destination is the header's: with a routing header that has segments left, the final destination
    /// counts instead (RFC 8200, section 8.1).
    #[inline]
    pub fn pseudo_header(&self, protocol: u8, length: u32) -> Sum {
        pseudo_header_v6(self.src(), self.dst(), protocol, length)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv6<T> {
    /// Writes version 6, traffic class and flow label (20 bits).
    #[inline]
    pub fn set_first_word(&mut self, traffic_class: u8, flow_label: u32) {
        let word = 6 << 28 | u32::from(traffic_class) << 20 | flow_label & 0xf_ffff;
        self.fixed_mut()[..4].copy_from_slice(&word.to_be_bytes());
    }

    /// Sets the traffic class.
    #[inline]
    pub fn set_traffic_class(&mut self, class: u8) {
        let b = self.fixed_mut();
        put_bits(&mut b[0], 0x0f, class >> 4);
        put_bits(&mut b[1], 0xf0, class << 4);
    }

    /// Sets the length in bytes of what follows the fixed header.
    #[inline]
    pub fn set_payload_len(&mut self, bytes: u16) {
        put_u16(self.fixed_mut(), 4, bytes);
    }

    /// Sets the kind of the header that follows.
    #[inline]
    pub fn set_next_header(&mut self, kind: u8) {
        self.fixed_mut()[6] = kind;
    }

    /// Sets the hop limit.
    #[inline]
    pub fn set_hop_limit(&mut self, limit: u8) {
        self.fixed_mut()[7] = limit;
    }

    /// Sets the source address.
    #[inline]
    pub fn set_src(&mut self, addr: Ipv6Addr) {
        self.fixed_mut()[8..24].copy_from_slice(&addr.octets());
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_dst(&mut self, addr: Ipv6Addr) {
        self.fixed_mut()[24..40].copy_from_slice(&addr.octets());
    }

    /// Exchanges source and destination address.
    #[inline]
    pub fn swap_addresses(&mut self) {
        self.fixed_mut()[8..].rotate_left(16);
    }

    /// What follows the fixed header, for writing.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = HEADER_LEN + self.payload_len();
        cut_mut(self.buffer.as_mut(), HEADER_LEN, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ip_protocol::UDP;

    #[test]
    fn reads_what_was_written() {
        let mut bytes = [0; HEADER_LEN + 8];
        let mut ip = Ipv6::new(&mut bytes[..]).unwrap();
        ip.set_first_word(0xb9, 0xabcde);
        assert_eq!((ip.version(), ip.traffic_class(), ip.ecn()), (6, 0xb9, 1));
        ip.set_traffic_class(0x12);
        assert_eq!((ip.version(), ip.traffic_class()), (6, 0x12));
        ip.set_payload_len(8);
        ip.set_next_header(UDP);
        ip.set_hop_limit(64);
        ip.set_src(Ipv6Addr::LOCALHOST);
        ip.set_dst("2001:db8::1:2".parse().unwrap());
        ip.payload_mut().copy_from_slice(&[7; 8]);
        let ip = Ipv6::new(&bytes).unwrap();
        assert_eq!((ip.hop_limit(), ip.next_header(), ip.payload_len()), (64, UDP, 8));
        assert_eq!(ip.src(), Ipv6Addr::LOCALHOST);
        assert_eq!(ip.dst(), "2001:db8::1:2".parse::<Ipv6Addr>().unwrap());
        assert_eq!(ip.payload(), [7; 8]);
        assert_eq!(bytes[..8], [0x61, 0x2a, 0xbc, 0xde, 0, 8, UDP, 64]);
        let mut ip = Ipv6::new(&mut bytes[..]).unwrap();
        ip.swap_addresses();
        assert_eq!(ip.dst(), Ipv6Addr::LOCALHOST);
        assert!(Ipv6::new(&bytes[..HEADER_LEN - 1]).is_none());
    }

    #[test]
    fn extension_headers_are_looked_behind() {
        let upper = |next: u8, payload: &[u8]| {
            let mut bytes = [&[0x60, 0, 0, 0][..], &[0; 36], payload].concat();
            let mut ip = Ipv6::new(&mut bytes[..]).unwrap();
            ip.set_payload_len(payload.len() as u16);
            ip.set_next_header(next);
            let Upper { protocol, at, fragment, is_whole, .. } = Ipv6::new(&bytes).unwrap().upper();
            (protocol, at, fragment, is_whole)
        };
        assert_eq!(upper(UDP, &[1; 8]), (UDP, 0, None, true));
        let options = [DESTINATION_OPTIONS, 0, 0, 0, 0, 0, 0, 0];
        let long = [&[IPV6_ROUTING, 1][..], &[0; 14]].concat();
        let authentication = [&[UDP, 4][..], &[0; 22]].concat();
        let routing = [AH, 0, 0, 0, 0, 0, 0, 0];
        let all = [&options[..], &long, &routing, &authentication, &[9; 8]].concat();
        assert_eq!(upper(HOP_BY_HOP, &all), (UDP, 56, None, true));
        assert_eq!(upper(HOP_BY_HOP, &all[..31]), (IPV6_ROUTING, 24, None, false));
        assert_eq!(upper(HOP_BY_HOP, &[]), (HOP_BY_HOP, 0, None, false));
        let fragment = |low: u8| [HOP_BY_HOP, 0, 0, low, 0, 0, 0, 1];
        let first = [&fragment(1)[..], &[UDP, 0, 0, 0, 0, 0, 0, 0], &[9; 8]].concat();
        assert_eq!(upper(IPV6_FRAGMENT, &first), (UDP, 16, Some(1), true));
        assert_eq!(upper(IPV6_FRAGMENT, &fragment(8)), (HOP_BY_HOP, 8, Some(8), true));
        // A header of its own, for ever.
        assert!(!upper(HOP_BY_HOP, &[0; 4096]).3);
    }
}
