//! VXLAN (RFC 7348).

use super::{cut, cut_mut, put_u32, u32_at, view};

/// Bytes of the header.
pub const HEADER_LEN: usize = 8;
/// The UDP port that IANA assigned.
pub const PORT: u16 = 4789;
/// The flag that says that the network identifier is valid.
pub const FLAG_VNI: u8 = 0x08;

view! {
    /// A VXLAN header and the Ethernet frame in it.
    Vxlan
}

impl<T: AsRef<[u8]>> Vxlan<T> {
    /// A view of the buffer, if its header's network identifier is valid.
    #[inline]
    pub fn new_checked(buffer: T) -> Option<Self> {
        Self::new(buffer).filter(|vxlan| vxlan.flags() & FLAG_VNI != 0)
    }

    /// Flags.
    #[inline]
    pub fn flags(&self) -> u8 {
        self.fixed()[0]
    }

    /// VXLAN network identifier, 24 bits.
    #[inline]
    pub fn vni(&self) -> u32 {
        u32_at(self.fixed(), 4) >> 8
    }

    /// The inner Ethernet frame.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), HEADER_LEN, usize::MAX)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Vxlan<T> {
    /// Writes the header for a network identifier of 24 bits.
    #[inline]
    pub fn init(&mut self, vni: u32) {
        put_u32(self.fixed_mut(), 0, u32::from(FLAG_VNI) << 24);
        put_u32(self.fixed_mut(), 4, vni << 8);
    }

    /// The inner Ethernet frame, for writing.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        cut_mut(self.buffer.as_mut(), HEADER_LEN, usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0u8; 9];
        assert!(Vxlan::new_checked(&bytes).is_none());
        Vxlan::new(&mut bytes[..]).unwrap().init(0x123456);
        assert_eq!(bytes, [8, 0, 0, 0, 0x12, 0x34, 0x56, 0, 0]);
        let vxlan = Vxlan::new_checked(&bytes).unwrap();
        assert_eq!((vxlan.vni(), vxlan.payload()), (0x123456, &[0][..]));
        assert!(Vxlan::new(&bytes[..7]).is_none());
    }
}
