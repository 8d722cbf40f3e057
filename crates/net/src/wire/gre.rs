//! GRE (RFC 2784) with key and sequence number (RFC 2890).

use super::{cut, cut_mut, put_u16, u16_at, u32_at, view};
use crate::checksum::Sum;

/// Bytes of a header without optional fields.
pub const HEADER_LEN: usize = 4;

/// Flag: a checksum follows.
pub const CHECKSUM: u16 = 0x8000;
/// Flag: routing information follows (obsolete, RFC 1701).
pub const ROUTING: u16 = 0x4000;
/// Flag: a key follows.
pub const KEY: u16 = 0x2000;
/// Flag: a sequence number follows.
pub const SEQUENCE: u16 = 0x1000;

view! {
    /// A GRE packet.
    Gre
}

impl<T: AsRef<[u8]>> Gre<T> {
    /// A view of the buffer, if it holds a packet of version 0 without routing and with all its optional fields.
    #[inline]
    pub fn new_checked(buffer: T) -> Option<Self> {
        Self::new(buffer).filter(|gre| {
            gre.version() == 0
                && gre.flags() & ROUTING == 0
                && gre.header_len() <= gre.bytes().len()
        })
    }

    /// The first word: flags and version.
    #[inline]
    pub fn flags(&self) -> u16 {
        u16_at(self.fixed(), 0)
    }

    /// Version; PPTP's is 1.
    #[inline]
    pub fn version(&self) -> u8 {
        (self.flags() & 7) as u8
    }

    /// Ether type of the payload.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16_at(self.fixed(), 2)
    }

    /// Length of the header with the optional fields that the flags announce, in bytes.
    #[inline]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + 4 * (self.flags() & (CHECKSUM | KEY | SEQUENCE)).count_ones() as usize
    }

    // The optional word behind those that `before` announces.
    fn optional(&self, flag: u16, before: u16) -> Option<u32> {
        let flags = self.flags();
        (flags & flag != 0).then_some(())?;
        let at = HEADER_LEN + 4 * (flags & before).count_ones() as usize;
        self.bytes().get(at..at + 4).map(|word| u32_at(word, 0))
    }

    /// Checksum.
    #[inline]
    pub fn checksum(&self) -> Option<u16> {
        self.optional(CHECKSUM, 0).map(|word| (word >> 16) as u16)
    }

    /// Key.
    #[inline]
    pub fn key(&self) -> Option<u32> {
        self.optional(KEY, CHECKSUM)
    }

    /// Sequence number.
    #[inline]
    pub fn sequence(&self) -> Option<u32> {
        self.optional(SEQUENCE, CHECKSUM | KEY)
    }

    /// What follows the header in the buffer.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), self.header_len(), usize::MAX)
    }

    /// True if the checksum is absent or right for the buffer; the buffer must end with the packet.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        self.flags() & CHECKSUM == 0 || Sum::of(self.bytes()).checksum() == 0
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Gre<T> {
    /// Writes a header without optional fields.
    #[inline]
    pub fn init(&mut self, ether_type: u16) {
        put_u16(self.fixed_mut(), 0, 0);
        put_u16(self.fixed_mut(), 2, ether_type);
    }

    /// What follows the header, for writing.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let from = self.header_len();
        cut_mut(self.buffer.as_mut(), from, usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields() {
        let bytes = [0xb0, 0, 8, 0, 0xab, 0xcd, 0, 0, 0, 0, 0, 5, 0, 0, 0, 6, 0x45];
        let gre = Gre::new_checked(&bytes).unwrap();
        assert_eq!((gre.ether_type(), gre.header_len()), (0x800, 16));
        assert_eq!((gre.checksum(), gre.key(), gre.sequence()), (Some(0xabcd), Some(5), Some(6)));
        assert_eq!(gre.payload(), [0x45]);
        assert!(!gre.checksum_ok());
        assert!(Gre::new_checked(&bytes[..15]).is_none());
        assert_eq!(Gre::new(&bytes[..15]).unwrap().sequence(), None);

        let bytes = [0x20, 0, 0x86, 0xdd, 0, 0, 0, 9];
        let gre = Gre::new_checked(&bytes).unwrap();
        assert_eq!((gre.checksum(), gre.key(), gre.sequence()), (None, Some(9), None));
    }

    #[test]
    fn checksum() {
        let mut bytes = [0x80, 0, 8, 0, 0, 0, 0, 0, 1, 2, 3];
        let sum = crate::checksum::checksum(&bytes);
        bytes[4..6].copy_from_slice(&sum.to_be_bytes());
        assert!(Gre::new_checked(&bytes).unwrap().checksum_ok());
    }

    #[test]
    fn refuses_other_versions_and_routing() {
        assert!(Gre::new_checked(&[0, 1, 0x88, 0x0b]).is_none());
        assert!(Gre::new_checked(&[0x40, 0, 8, 0]).is_none());
        let mut bytes = [0xff; 5];
        let mut gre = Gre::new(&mut bytes[..]).unwrap();
        gre.init(0x800);
        gre.payload_mut()[0] = 7;
        assert_eq!(bytes, [0, 0, 8, 0, 7]);
    }
}
