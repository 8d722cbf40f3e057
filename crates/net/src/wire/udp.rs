//! UDP (RFC 768).

use super::{cut, put_u16, u16_at, view};
use crate::checksum::{Sum, udp_absent, udp_field};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

view! {
    /// A UDP datagram.
    Udp
}

impl<T: AsRef<[u8]>> Udp<T> {
    /// A view of the buffer, if it holds a datagram whose length is at least that of its header and fits into it.
    #[inline]
    pub fn new_checked(buffer: T) -> Option<Self> {
        Self::new(buffer).filter(|udp| (HEADER_LEN..=udp.bytes().len()).contains(&udp.len().into()))
    }

    /// Source port.
    #[inline]
    pub fn src_port(&self) -> u16 {
        u16_at(self.fixed(), 0)
    }

    /// Destination port.
    #[inline]
    pub fn dst_port(&self) -> u16 {
        u16_at(self.fixed(), 2)
    }

    /// Length of header and payload in bytes, as the header says.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // a header field, not a container's size
    pub fn len(&self) -> u16 {
        u16_at(self.fixed(), 4)
    }

    /// Checksum field; 0 if the sender computed none.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.fixed(), 6)
    }

    /// What follows the header, up to the length, as far as the buffer holds it.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), HEADER_LEN, self.len().into())
    }

    // Header and payload: what the checksum covers besides the pseudo-header.
    fn covered(&self) -> &[u8] {
        cut(self.bytes(), 0, usize::from(self.len()).max(HEADER_LEN))
    }

    /// True if the checksum is absent or right for pseudo-header, header and payload.
    #[inline]
    pub fn checksum_ok(&self, pseudo_header: Sum) -> bool {
        udp_absent(self.checksum()) || pseudo_header.plus(Sum::of(self.covered())).checksum() == 0
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Udp<T> {
    /// Sets the source port.
    #[inline]
    pub fn set_src_port(&mut self, port: u16) {
        put_u16(self.fixed_mut(), 0, port);
    }

    /// Sets the destination port.
    #[inline]
    pub fn set_dst_port(&mut self, port: u16) {
        put_u16(self.fixed_mut(), 2, port);
    }

    /// Sets the length of header and payload in bytes.
    #[inline]
    pub fn set_len(&mut self, bytes: u16) {
        put_u16(self.fixed_mut(), 4, bytes);
    }

    /// Sets the checksum field.
    #[inline]
    pub fn set_checksum(&mut self, field: u16) {
        put_u16(self.fixed_mut(), 6, field);
    }

    /// Computes the checksum anew over pseudo-header, header and payload; it never becomes 0.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let checksum = pseudo_header.plus(Sum::of(self.covered())).checksum();
        self.set_checksum(udp_field(checksum));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::pseudo_header_v4;
    use std::net::Ipv4Addr;

    #[test]
    fn reads_what_was_written() {
        let mut bytes = *b"\0\0\0\0\0\0\0\0abcdef";
        let pseudo = pseudo_header_v4(Ipv4Addr::new(1, 2, 3, 4), Ipv4Addr::new(5, 6, 7, 8), 17, 11);
        let mut udp = Udp::new(&mut bytes[..]).unwrap();
        udp.set_src_port(5353);
        udp.set_dst_port(53);
        udp.set_len(11);
        assert!(udp.checksum_ok(pseudo), "absent");
        udp.fill_checksum(pseudo);
        assert_ne!(udp.checksum(), 0);
        assert!(udp.checksum_ok(pseudo));
        let udp = Udp::new_checked(&bytes).unwrap();
        assert_eq!((udp.src_port(), udp.dst_port(), udp.len()), (5353, 53, 11));
        assert_eq!(udp.payload(), b"abc");
        bytes[9] ^= 1;
        assert!(!Udp::new(&bytes).unwrap().checksum_ok(pseudo));
    }

    #[test]
    fn a_computed_zero_is_sent_as_ones() {
        let mut bytes = [0u8; 8];
        let mut udp = Udp::new(&mut bytes[..]).unwrap();
        udp.set_len(8);
        // Ports that make the sum 0xffff.
        udp.set_src_port(0xffff - 8);
        udp.fill_checksum(Sum::ZERO);
        assert_eq!(udp.checksum(), 0xffff);
        assert!(udp.checksum_ok(Sum::ZERO));
    }

    #[test]
    fn refuses_what_does_not_agree() {
        let mut bytes = [0u8; 10];
        for (length, ok) in [(0, false), (7, false), (8, true), (10, true), (11, false)] {
            bytes[5] = length;
            assert_eq!(Udp::new_checked(&bytes).is_some(), ok, "{length}");
            assert!(Udp::new(&bytes).unwrap().payload().len() <= 2);
        }
        assert!(Udp::new(&bytes[..7]).is_none());
    }
}
