//! Network Service Header (RFC 8300).

use super::{cut, cut_mut, put_u32, u32_at, view};

/// Bytes of base header and service path header, which every NSH has.
pub const HEADER_LEN: usize = 8;
/// Bytes of the context of metadata type 1.
pub const CONTEXT_LEN: usize = 16;
/// Metadata type 1: four words of fixed context.
pub const MD_FIXED: u8 = 1;
/// Metadata type 2: none, or of variable length.
pub const MD_VARIABLE: u8 = 2;

/// What an NSH carries.
pub mod next_protocol {
    /// IPv4.
    pub const IPV4: u8 = 1;
    /// IPv6.
    pub const IPV6: u8 = 2;
    /// Ethernet.
    pub const ETHERNET: u8 = 3;
    /// Another NSH.
    pub const NSH: u8 = 4;
    /// MPLS.
    pub const MPLS: u8 = 5;
}

view! {
    /// An NSH and what it carries.
    Nsh
}

impl<T: AsRef<[u8]>> Nsh<T> {
    /// A view of the buffer, if it holds a header of version 0 whose length fits its metadata type and the
    /// buffer.
    #[inline]
    pub fn new_checked(buffer: T) -> Option<Self> {
        Self::new(buffer).filter(|nsh| {
            let length = nsh.header_len();
            let fits = match nsh.md_type() {
                MD_FIXED => length == HEADER_LEN + CONTEXT_LEN,
                _ => length >= HEADER_LEN,
            };
            nsh.version() == 0 && fits && length <= nsh.bytes().len()
        })
    }

    #[inline]
    fn base(&self) -> u32 {
        u32_at(self.fixed(), 0)
    }

    /// Version; 0.
    #[inline]
    pub fn version(&self) -> u8 {
        (self.base() >> 30) as u8
    }

    /// True for operations, administration and maintenance packets.
    #[inline]
    pub fn is_oam(&self) -> bool {
        self.base() & 1 << 29 != 0
    }

    /// Time to live, in service functions, 0 to 63.
    #[inline]
    pub fn ttl(&self) -> u8 {
        (self.base() >> 22 & 0x3f) as u8
    }

    /// Length of the whole header in bytes, as it says (0 to 252).
    #[inline]
    pub fn header_len(&self) -> usize {
        (self.base() >> 16 & 0x3f) as usize * 4
    }

    /// Metadata type.
    #[inline]
    pub fn md_type(&self) -> u8 {
        (self.base() >> 8 & 0xf) as u8
    }

    /// [What](next_protocol) the header carries.
    #[inline]
    pub fn next_protocol(&self) -> u8 {
        self.base() as u8
    }

    /// Service path identifier, 24 bits.
    #[inline]
    pub fn service_path(&self) -> u32 {
        u32_at(self.fixed(), 4) >> 8
    }

    /// Service index: the place in the path; each service function decrements it.
    #[inline]
    pub fn service_index(&self) -> u8 {
        self.fixed()[7]
    }

    /// The context headers, as far as the buffer holds them.
    #[inline]
    pub fn context(&self) -> &[u8] {
        cut(self.bytes(), HEADER_LEN, self.header_len())
    }

    /// What the header carries.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), self.header_len().max(HEADER_LEN), usize::MAX)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Nsh<T> {
    /// Writes a header of metadata type 2 without metadata, 8 bytes long: TTL up to 63, a path of 24 bits.
    #[inline]
    pub fn init(&mut self, ttl: u8, next_protocol: u8, service_path: u32, service_index: u8) {
        let length = (HEADER_LEN / 4) as u32;
        let base = u32::from(ttl & 0x3f) << 22 | length << 16 | u32::from(MD_VARIABLE) << 8;
        put_u32(self.fixed_mut(), 0, base | u32::from(next_protocol));
        put_u32(self.fixed_mut(), 4, service_path << 8 | u32::from(service_index));
    }

    /// Sets the time to live, up to 63.
    #[inline]
    pub fn set_ttl(&mut self, ttl: u8) {
        let base = self.base() & !(0x3f << 22) | u32::from(ttl & 0x3f) << 22;
        put_u32(self.fixed_mut(), 0, base);
    }

    /// Sets the service path, 24 bits.
    #[inline]
    pub fn set_service_path(&mut self, path: u32) {
        let index = self.service_index();
        put_u32(self.fixed_mut(), 4, path << 8 | u32::from(index));
    }

    /// Sets the service index.
    #[inline]
    pub fn set_service_index(&mut self, index: u8) {
        self.fixed_mut()[7] = index;
    }

    /// The context headers, for writing.
    #[inline]
    pub fn context_mut(&mut self) -> &mut [u8] {
        let end = self.header_len();
        cut_mut(self.buffer.as_mut(), HEADER_LEN, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0u8; 10];
        let mut nsh = Nsh::new(&mut bytes[..]).unwrap();
        nsh.init(63, next_protocol::ETHERNET, 0xabcdef, 255);
        assert_eq!(nsh.into_inner()[..8], [0x0f, 0xc2, 0x02, 0x03, 0xab, 0xcd, 0xef, 255]);
        let mut nsh = Nsh::new(&mut bytes[..]).unwrap();
        nsh.set_ttl(5);
        nsh.set_service_path(7);
        nsh.set_service_index(254);
        let nsh = Nsh::new_checked(&bytes).unwrap();
        assert_eq!((nsh.version(), nsh.is_oam(), nsh.ttl(), nsh.header_len()), (0, false, 5, 8));
        assert_eq!((nsh.md_type(), nsh.next_protocol()), (MD_VARIABLE, next_protocol::ETHERNET));
        assert_eq!((nsh.service_path(), nsh.service_index()), (7, 254));
        assert_eq!((nsh.context().len(), nsh.payload().len()), (0, 2));
    }

    #[test]
    fn refuses_what_does_not_agree() {
        let mut bytes = [0u8; 24];
        for (first, ok) in [
            ([0x0f, 0xc6, 1, 1], true),
            ([0x0f, 0xc2, 1, 1], false),
            ([0x0f, 0xc2, 2, 1], true),
            ([0x0f, 0xc1, 2, 1], false),
            ([0x0f, 0xc7, 2, 1], false),
            ([0x4f, 0xc6, 1, 1], false),
        ] {
            bytes[..4].copy_from_slice(&first);
            assert_eq!(Nsh::new_checked(&bytes).is_some(), ok, "{first:x?}");
            let nsh = Nsh::new(&bytes).unwrap();
            assert!(nsh.context().len() + nsh.payload().len() <= 16);
        }
        assert!(Nsh::new(&bytes[..7]).is_none());
    }
}
