//! TCP (RFC 9293).

pub use super::ipv4::{BadOption, HeaderOption, Options};
use super::{cut, put_bits, put_u16, put_u32, u16_at, u32_at, view};
use crate::checksum::Sum;

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;

/// Flags in their byte.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgment number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;
    /// ECN echo.
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced.
    pub const CWR: u8 = 0x80;
}

/// Option kinds.
pub mod option {
    /// End of the list.
    pub const END: u8 = 0;
    /// Padding.
    pub const NOP: u8 = 1;
    /// Maximum segment size.
    pub const MSS: u8 = 2;
    /// Window scale.
    pub const WINDOW_SCALE: u8 = 3;
    /// Selective acknowledgment permitted.
    pub const SACK_PERMITTED: u8 = 4;
    /// Selective acknowledgment.
    pub const SACK: u8 = 5;
    /// Timestamps.
    pub const TIMESTAMPS: u8 = 8;
}

view! {
    /// A TCP segment.
    Tcp
}

impl<T: AsRef<[u8]>> Tcp<T> {
    /// A view of the buffer, if it holds a segment whose header, with its options, fits into it.
    #[inline]
    pub fn new_checked(buffer: T) -> Option<Self> {
        Self::new(buffer).filter(|tcp| (HEADER_LEN..=tcp.bytes().len()).contains(&tcp.header_len()))
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

    /// Sequence number.
    #[inline]
    pub fn seq(&self) -> u32 {
        u32_at(self.fixed(), 4)
    }

    /// Acknowledgment number.
    #[inline]
    pub fn ack(&self) -> u32 {
        u32_at(self.fixed(), 8)
    }

    /// Length of the header with options, in bytes, as the header says (0 to 60).
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.fixed()[12] >> 4) * 4
    }

    /// The byte of [flags](flag).
    #[inline]
    pub fn flags(&self) -> u8 {
        self.fixed()[13]
    }

    /// Receive window, unscaled.
    #[inline]
    pub fn window(&self) -> u16 {
        u16_at(self.fixed(), 14)
    }

    /// Checksum.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.fixed(), 16)
    }

    /// The options.
    #[inline]
    pub fn options(&self) -> Options<'_> {
        Options { area: cut(self.bytes(), HEADER_LEN, self.header_len()), at: 0 }
    }

    /// True if the checksum over pseudo-header and buffer is right; the buffer must end with the segment.
    #[inline]
    pub fn checksum_ok(&self, pseudo_header: Sum) -> bool {
        pseudo_header.plus(Sum::of(self.bytes())).checksum() == 0
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Tcp<T> {
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

    /// Sets the sequence number.
    #[inline]
    pub fn set_seq(&mut self, seq: u32) {
        put_u32(self.fixed_mut(), 4, seq);
    }

    /// Sets the acknowledgment number.
    #[inline]
    pub fn set_ack(&mut self, ack: u32) {
        put_u32(self.fixed_mut(), 8, ack);
    }

    /// Sets the header length in bytes, a multiple of 4 up to 60.
    #[inline]
    pub fn set_header_len(&mut self, bytes: usize) {
        debug_assert!(bytes.is_multiple_of(4) && bytes <= 60);
        put_bits(&mut self.fixed_mut()[12], 0xf0, (bytes * 4) as u8);
    }

    /// Sets the byte of [flags](flag).
    #[inline]
    pub fn set_flags(&mut self, flags: u8) {
        self.fixed_mut()[13] = flags;
    }

    /// Sets the receive window.
    #[inline]
    pub fn set_window(&mut self, window: u16) {
        put_u16(self.fixed_mut(), 14, window);
    }

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put_u16(self.fixed_mut(), 16, checksum);
    }

    /// Computes the checksum anew over pseudo-header and buffer; the buffer must end with the segment.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let checksum = pseudo_header.plus(Sum::of(self.bytes())).checksum();
        self.set_checksum(checksum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::pseudo_header_v4;
    use std::net::Ipv4Addr;

    #[test]
    fn reads_what_was_written() {
        let mut bytes = *b"....................\x02\x04\x05\xb4odd";
        bytes[..HEADER_LEN].fill(0);
        let mut tcp = Tcp::new(&mut bytes[..]).unwrap();
        tcp.set_src_port(40000);
        tcp.set_dst_port(443);
        tcp.set_seq(0x01020304);
        tcp.set_ack(0xfffefdfc);
        tcp.set_header_len(24);
        tcp.set_flags(flag::SYN | flag::ACK);
        tcp.set_window(0x2000);
        let pseudo = pseudo_header_v4(Ipv4Addr::new(1, 2, 3, 4), Ipv4Addr::new(5, 6, 7, 8), 6, 27);
        tcp.fill_checksum(pseudo);
        let tcp = Tcp::new_checked(&bytes).unwrap();
        assert_eq!((tcp.src_port(), tcp.dst_port()), (40000, 443));
        assert_eq!((tcp.seq(), tcp.ack()), (0x01020304, 0xfffefdfc));
        assert_eq!((tcp.header_len(), tcp.flags(), tcp.window()), (24, 0x12, 0x2000));
        assert!(tcp.checksum_ok(pseudo));
        let mss = HeaderOption { kind: 2, offset: 0, data: &[5, 0xb4] };
        assert_eq!(tcp.options().collect::<Vec<_>>(), [Ok(mss)]);
        bytes[26] ^= 0x80;
        assert!(!Tcp::new_checked(&bytes).unwrap().checksum_ok(pseudo));
    }

    #[test]
    fn refuses_what_does_not_agree() {
        let mut bytes = [0u8; 24];
        for (length, ok) in
            [(0x40, false), (0x50, true), (0x60, true), (0x70, false), (0xf0, false)]
        {
            bytes[12] = length;
            assert_eq!(Tcp::new_checked(&bytes).is_some(), ok, "{length:#x}");
            let tcp = Tcp::new(&bytes).unwrap();
            assert!(tcp.options().count() <= 4);
        }
        assert!(Tcp::new(&bytes[..19]).is_none());
    }
}
