//! IPv6 and its extension headers (RFC 8200).

use super::{cut, cut_mut, ip_protocol, put_bits, put_u16, u16_at, u32_at, view};
use crate::checksum::{Sum, pseudo_header_v6};
use std::fmt;
use std::net::Ipv6Addr;

/// Bytes of the fixed header.
pub const HEADER_LEN: usize = 40;
/// Bytes of a fragment header.
pub const FRAGMENT_HEADER_LEN: usize = 8;
/// How many extension headers a walk follows.
pub const MAX_EXTENSIONS: usize = 16;

view! {
    /// An IPv6 packet.
    Ipv6
}

impl<T: AsRef<[u8]>> Ipv6<T> {
    /// A view of the buffer, if it holds a packet of version 6 whose payload length fits into the buffer.
    #[inline]
    pub fn new_checked(buffer: T) -> Option<Self> {
        Self::new(buffer)
            .filter(|ip| ip.version() == 6 && HEADER_LEN + ip.payload_len() <= ip.bytes().len())
    }

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

    /// Differentiated services code point, 0 to 63.
    #[inline]
    pub fn dscp(&self) -> u8 {
        self.traffic_class() >> 2
    }

    /// Explicit congestion notification, 0 to 3.
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.traffic_class() & 3
    }

    /// Flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        u32_at(self.fixed(), 0) & 0xf_ffff
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

    /// The extension headers.
    #[inline]
    pub fn extensions(&self) -> Extensions<'_> {
        Extensions::new(self.next_header(), self.payload())
    }

    /// Finds the payload's protocol behind all extension headers.
    #[inline]
    pub fn upper_layer(&self) -> Result<UpperLayer, BadExtension> {
        let mut walk = self.extensions();
        let mut fragment = None;
        for header in walk.by_ref() {
            let header = header?;
            if header.kind == ip_protocol::IPV6_FRAGMENT {
                fragment = Fragment::of(header.bytes);
            }
        }
        Ok(UpperLayer { protocol: walk.next, offset: HEADER_LEN + walk.at, fragment })
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

    /// Sets the flow label, 20 bits.
    #[inline]
    pub fn set_flow_label(&mut self, label: u32) {
        let class = self.traffic_class();
        self.set_first_word(class, label);
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

    /// What follows the fixed header, for writing.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = HEADER_LEN + self.payload_len();
        cut_mut(self.buffer.as_mut(), HEADER_LEN, end)
    }
}

/// The fields of a fragment header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Offset in bytes.
    pub offset: usize,
    /// More fragments follow.
    pub more: bool,
    /// Identification.
    pub id: u32,
}

impl Fragment {
    /// The fields of a fragment header's bytes.
    #[inline]
    pub fn of(header: &[u8]) -> Option<Fragment> {
        let header: &[u8; FRAGMENT_HEADER_LEN] = header.first_chunk()?;
        let word = u16_at(header, 2);
        Some(Fragment {
            offset: (word & 0xfff8).into(),
            more: word & 1 != 0,
            id: u32_at(header, 4),
        })
    }
}

/// What a packet carries behind its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpperLayer {
    /// Protocol; [`ip_protocol::NO_NEXT`] if nothing follows.
    pub protocol: u8,
    /// Offset from the start of the IPv6 header, in bytes; at most the packet's length.
    pub offset: usize,
    /// The last fragment header, if any. If its offset is not 0, the bytes at `offset` are not the protocol's
    /// header but a later part of it or of its payload.
    pub fragment: Option<Fragment>,
}

/// Why a walk over extension headers ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadExtension {
    /// A header does not fit into the payload; its offset from the payload's start in bytes.
    CutOff(usize),
    /// There are more than [`MAX_EXTENSIONS`].
    TooMany,
}

impl fmt::Display for BadExtension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadExtension::CutOff(at) => {
                write!(f, "IPv6 extension header at payload byte {at} is cut off")
            }
            BadExtension::TooMany => write!(f, "more than {MAX_EXTENSIONS} IPv6 extension headers"),
        }
    }
}

impl std::error::Error for BadExtension {}

/// One extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extension<'a> {
    /// Its kind: hop-by-hop or destination options, routing, fragment or authentication.
    pub kind: u8,
    /// Offset from the start of the payload, in bytes.
    pub offset: usize,
    /// The whole header; the first byte is the kind of the next.
    pub bytes: &'a [u8],
}

/// A walk over extension headers.
///
/// It ends before the first header of another kind, behind the fragment header of a later fragment (what
/// follows it is not a header), and after the first error.
#[derive(Clone, Debug)]
pub struct Extensions<'a> {
    payload: &'a [u8],
    next: u8,
    at: usize,
    left: usize,
    ended: bool,
}

impl<'a> Extensions<'a> {
    /// A walk over a payload whose first header is of kind `next_header`.
    #[inline]
    pub fn new(next_header: u8, payload: &'a [u8]) -> Self {
        Extensions { payload, next: next_header, at: 0, left: MAX_EXTENSIONS, ended: false }
    }

    fn fail(&mut self, error: BadExtension) -> Option<Result<Extension<'a>, BadExtension>> {
        self.ended = true;
        Some(Err(error))
    }
}

impl<'a> Iterator for Extensions<'a> {
    type Item = Result<Extension<'a>, BadExtension>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let kind = self.next;
        if self.ended || !is_extension(kind) {
            return None;
        }
        if self.left == 0 {
            return self.fail(BadExtension::TooMany);
        }
        self.left -= 1;
        let offset = self.at;
        let rest = &self.payload[offset..];
        let Some(&[next, length]) = rest.first_chunk() else {
            return self.fail(BadExtension::CutOff(offset));
        };
        let length = match kind {
            ip_protocol::IPV6_FRAGMENT => FRAGMENT_HEADER_LEN,
            ip_protocol::AH => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        let Some(bytes) = rest.get(..length) else {
            return self.fail(BadExtension::CutOff(offset));
        };
        self.next = next;
        self.at += length;
        if kind == ip_protocol::IPV6_FRAGMENT && Fragment::of(bytes).is_some_and(|f| f.offset != 0)
        {
            self.ended = true;
        }
        Some(Ok(Extension { kind, offset, bytes }))
    }
}

/// True for the kinds of header that a walk passes over.
#[inline]
pub const fn is_extension(kind: u8) -> bool {
    matches!(
        kind,
        ip_protocol::HOP_BY_HOP
            | ip_protocol::IPV6_ROUTING
            | ip_protocol::IPV6_FRAGMENT
            | ip_protocol::DESTINATION_OPTIONS
            | ip_protocol::AH
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ip_protocol::{AH, DESTINATION_OPTIONS, HOP_BY_HOP, IPV6_FRAGMENT, IPV6_ROUTING, TCP, UDP};

    fn packet(next: u8, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN + payload.len()];
        let mut ip = Ipv6::new(&mut bytes[..]).unwrap();
        ip.set_first_word(0, 0);
        ip.set_payload_len(payload.len() as u16);
        ip.set_next_header(next);
        ip.payload_mut().copy_from_slice(payload);
        bytes
    }

    #[test]
    fn reads_what_was_written() {
        let mut bytes = packet(UDP, &[7; 8]);
        let mut ip = Ipv6::new(&mut bytes[..]).unwrap();
        ip.set_first_word(0xb9, 0xabcde);
        ip.set_hop_limit(64);
        ip.set_src(Ipv6Addr::LOCALHOST);
        ip.set_dst("2001:db8::1:2".parse().unwrap());
        assert_eq!(
            (ip.traffic_class(), ip.dscp(), ip.ecn(), ip.flow_label()),
            (0xb9, 46, 1, 0xabcde)
        );
        ip.set_traffic_class(0x12);
        assert_eq!((ip.version(), ip.traffic_class(), ip.flow_label()), (6, 0x12, 0xabcde));
        ip.set_flow_label(0x54321);
        assert_eq!((ip.version(), ip.traffic_class(), ip.flow_label()), (6, 0x12, 0x54321));
        let ip = Ipv6::new_checked(&bytes).unwrap();
        assert_eq!((ip.hop_limit(), ip.next_header(), ip.payload_len()), (64, UDP, 8));
        assert_eq!(ip.src(), Ipv6Addr::LOCALHOST);
        assert_eq!(ip.dst(), "2001:db8::1:2".parse::<Ipv6Addr>().unwrap());
        assert_eq!(ip.payload(), [7; 8]);
        assert_eq!(bytes[..8], [0x61, 0x25, 0x43, 0x21, 0, 8, UDP, 64]);
    }

    #[test]
    fn refuses_what_does_not_agree() {
        let mut bytes = packet(UDP, &[0; 8]);
        assert!(Ipv6::new_checked(&bytes[..47]).is_none());
        assert!(Ipv6::new(&bytes[..39]).is_none());
        bytes[0] = 0x40;
        assert!(Ipv6::new_checked(&bytes).is_none());
    }

    #[test]
    fn walks_every_kind() {
        let mut payload = vec![];
        payload.extend([DESTINATION_OPTIONS, 0, 1, 4, 0, 0, 0, 0]); // hop-by-hop
        payload.extend([IPV6_ROUTING, 1]); // destination options, 16 bytes
        payload.extend([0; 14]);
        payload.extend([IPV6_FRAGMENT, 0, 0, 0, 0, 0, 0, 0]); // routing
        payload.extend([AH, 9, 0, 1, 0, 0, 0, 42]); // first fragment; the second byte is reserved
        payload.extend([TCP, 4]); // authentication, 24 bytes
        payload.extend([0; 22]);
        payload.extend([0xee; 20]);
        let bytes = packet(HOP_BY_HOP, &payload);
        let ip = Ipv6::new_checked(&bytes).unwrap();
        let kinds: Vec<_> =
            ip.extensions().map(|h| h.map(|h| (h.kind, h.offset, h.bytes.len()))).collect();
        assert_eq!(
            kinds,
            [
                Ok((HOP_BY_HOP, 0, 8)),
                Ok((DESTINATION_OPTIONS, 8, 16)),
                Ok((IPV6_ROUTING, 24, 8)),
                Ok((IPV6_FRAGMENT, 32, 8)),
                Ok((AH, 40, 24)),
            ]
        );
        let fragment = Some(Fragment { offset: 0, more: true, id: 42 });
        assert_eq!(ip.upper_layer(), Ok(UpperLayer { protocol: TCP, offset: 104, fragment }));
    }

    #[test]
    fn stops_behind_a_later_fragment() {
        let bytes = packet(IPV6_FRAGMENT, &[HOP_BY_HOP, 0, 0x05, 0xa8, 0, 0, 0, 1, 9, 9, 9]);
        let ip = Ipv6::new_checked(&bytes).unwrap();
        let fragment = Some(Fragment { offset: 1448, more: false, id: 1 });
        assert_eq!(ip.upper_layer(), Ok(UpperLayer { protocol: HOP_BY_HOP, offset: 48, fragment }));
    }

    #[test]
    fn no_extension() {
        let bytes = packet(TCP, &[]);
        let ip = Ipv6::new_checked(&bytes).unwrap();
        assert_eq!(ip.upper_layer(), Ok(UpperLayer { protocol: TCP, offset: 40, fragment: None }));
    }

    #[test]
    fn cut_off_and_endless() {
        for (payload, at) in [
            (&[][..], 0),
            (&[UDP], 0),
            (&[UDP, 0, 0, 0, 0, 0, 0], 0),
            (&[HOP_BY_HOP, 0, 0, 0, 0, 0, 0, 0, UDP, 1], 8),
        ] {
            let bytes = packet(HOP_BY_HOP, payload);
            let ip = Ipv6::new_checked(&bytes).unwrap();
            assert_eq!(ip.upper_layer(), Err(BadExtension::CutOff(at)));
        }
        let bytes = packet(HOP_BY_HOP, &[0; 8 * (MAX_EXTENSIONS + 1)]);
        let ip = Ipv6::new_checked(&bytes).unwrap();
        assert_eq!(ip.upper_layer(), Err(BadExtension::TooMany));
        assert_eq!(ip.extensions().count(), MAX_EXTENSIONS + 1);
    }
}
