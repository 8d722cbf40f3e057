//! IPv4 (RFC 791).

use super::{cut, cut_mut, put_u16, u16_at, view};
use crate::checksum::{Sum, pseudo_header_v4, update_u16};
use std::net::Ipv4Addr;

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;
/// Bytes of the longest header.
pub const MAX_HEADER_LEN: usize = 60;

/// Flag in the fragment word: do not fragment.
pub const DF: u16 = 0x4000;
/// Flag in the fragment word: more fragments follow.
pub const MF: u16 = 0x2000;
/// The reserved flag of the fragment word.
pub const RF: u16 = 0x8000;

view! {
    /// An IPv4 packet.
    Ipv4
}

impl<T: AsRef<[u8]>> Ipv4<T> {
    /// A view of the buffer, if it holds a packet of version 4 whose header, with its options, and total length
    /// fit into one another and into the buffer.
    #[inline]
    pub fn new_checked(buffer: T) -> Option<Self> {
        Self::new(buffer).filter(|ip| {
            let (header, total) = (ip.header_len(), usize::from(ip.total_len()));
            ip.version() == 4
                && header >= HEADER_LEN
                && header <= total
                && total <= ip.bytes().len()
        })
    }

    /// Version; 4 in a valid packet.
    #[inline]
    pub fn version(&self) -> u8 {
        self.fixed()[0] >> 4
    }

    /// Length of the header with options, in bytes, as the header says (0 to 60).
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.fixed()[0] & 0xf) * 4
    }

    /// The whole former type-of-service byte: DSCP and ECN.
    #[inline]
    pub fn tos(&self) -> u8 {
        self.fixed()[1]
    }

    /// Explicit congestion notification, 0 to 3 (RFC 3168).
    #[inline]
    pub fn ecn(&self) -> u8 {
        self.tos() & 3
    }

    /// Length of header and payload in bytes, as the header says.
    #[inline]
    pub fn total_len(&self) -> u16 {
        u16_at(self.fixed(), 2)
    }

    /// Identification.
    #[inline]
    pub fn id(&self) -> u16 {
        u16_at(self.fixed(), 4)
    }

    /// Flags and fragment offset as one word.
    #[inline]
    pub fn fragment_word(&self) -> u16 {
        u16_at(self.fixed(), 6)
    }

    /// "Do not fragment".
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.fragment_word() & DF != 0
    }

    /// "More fragments".
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.fragment_word() & MF != 0
    }

    /// Fragment offset in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.fragment_word() & 0x1fff) * 8
    }

    /// True for every fragment of a datagram, the first too.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.fragment_word() & (MF | 0x1fff) != 0
    }

    /// True for all fragments of a datagram but the first: they begin with no transport header.
    #[inline]
    pub fn is_later_fragment(&self) -> bool {
        self.fragment_word() & 0x1fff != 0
    }

    /// Time to live.
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.fixed()[8]
    }

    /// Protocol of the payload.
    #[inline]
    pub fn protocol(&self) -> u8 {
        self.fixed()[9]
    }

    /// Header checksum.
    #[inline]
    pub fn checksum(&self) -> u16 {
        u16_at(self.fixed(), 10)
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> Ipv4Addr {
        let b = self.fixed();
        Ipv4Addr::new(b[12], b[13], b[14], b[15])
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        let b = self.fixed();
        Ipv4Addr::new(b[16], b[17], b[18], b[19])
    }

    /// The header with its options, as far as the buffer holds it.
    #[inline]
    pub fn header(&self) -> &[u8] {
        cut(self.bytes(), 0, self.header_len().max(HEADER_LEN))
    }

    /// The options; empty in most packets.
    #[inline]
    pub fn options(&self) -> Options<'_> {
        Options { area: cut(self.bytes(), HEADER_LEN, self.header_len()), at: 0 }
    }

    /// What follows the header, up to the total length, as far as the buffer holds it.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), self.header_len().max(HEADER_LEN), self.total_len().into())
    }

    // Nearly all headers have no options: for them the length is constant and the loop unrolled.
    #[inline]
    fn header_sum(&self) -> Sum {
        if self.header_len() <= HEADER_LEN { Sum::of(self.fixed()) } else { Sum::of(self.header()) }
    }

    /// True if the checksum is right for the header as far as the buffer holds it.
    #[inline]
    pub fn checksum_ok(&self) -> bool {
        self.header_sum().checksum() == 0
    }

    /// The sum of the pseudo-header for a transport header and payload of that many bytes.
    #[inline]
    pub fn pseudo_header(&self, length: u16) -> Sum {
        pseudo_header_v4(self.src(), self.dst(), self.protocol(), length)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ipv4<T> {
    /// Sets version 4 and the header length in bytes, a multiple of 4 up to 60.
    #[inline]
    pub fn set_header_len(&mut self, bytes: usize) {
        debug_assert!(bytes.is_multiple_of(4) && bytes <= MAX_HEADER_LEN);
        self.fixed_mut()[0] = 0x40 | (bytes / 4) as u8 & 0xf;
    }

    /// Sets DSCP and ECN together.
    #[inline]
    pub fn set_tos(&mut self, tos: u8) {
        self.fixed_mut()[1] = tos;
    }

    /// Sets the length of header and payload in bytes.
    #[inline]
    pub fn set_total_len(&mut self, bytes: u16) {
        put_u16(self.fixed_mut(), 2, bytes);
    }

    /// Sets the identification.
    #[inline]
    pub fn set_id(&mut self, id: u16) {
        put_u16(self.fixed_mut(), 4, id);
    }

    /// Sets flags and fragment offset (in units of 8 bytes) as one word.
    #[inline]
    pub fn set_fragment_word(&mut self, word: u16) {
        put_u16(self.fixed_mut(), 6, word);
    }

    /// Sets the time to live.
    #[inline]
    pub fn set_ttl(&mut self, ttl: u8) {
        self.fixed_mut()[8] = ttl;
    }

    /// Sets the protocol of the payload.
    #[inline]
    pub fn set_protocol(&mut self, protocol: u8) {
        self.fixed_mut()[9] = protocol;
    }

    /// Sets the header checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put_u16(self.fixed_mut(), 10, checksum);
    }

    /// Sets the source address.
    #[inline]
    pub fn set_src(&mut self, addr: Ipv4Addr) {
        self.fixed_mut()[12..16].copy_from_slice(&addr.octets());
    }

    /// Sets the destination address.
    #[inline]
    pub fn set_dst(&mut self, addr: Ipv4Addr) {
        self.fixed_mut()[16..20].copy_from_slice(&addr.octets());
    }

    /// Exchanges source and destination address.
    #[inline]
    pub fn swap_addresses(&mut self) {
        self.fixed_mut()[12..].rotate_left(4);
    }

    /// Sets DSCP and ECN together and updates the checksum (RFC 1624).
    #[inline]
    pub fn replace_tos(&mut self, tos: u8) {
        self.set_checksum(update_u16(self.checksum(), self.tos().into(), tos.into()));
        self.set_tos(tos);
    }

    /// Decrements a time-to-live above 0 and updates the checksum (RFC 1624): what is added to the complement
    /// of the checksum is the complement of the old word and the new one, which is less by 0x100.
    #[inline]
    pub fn decrement_ttl(&mut self) {
        self.set_ttl(self.ttl() - 1);
        let sum = u32::from(!self.checksum()) + (0xffff - 0x100);
        self.set_checksum(!((sum + (sum >> 16)) as u16));
    }

    /// Computes the header checksum anew.
    #[inline]
    pub fn fill_checksum(&mut self) {
        self.set_checksum(0);
        let checksum = self.header_sum().checksum();
        self.set_checksum(checksum);
    }

    /// The bytes of the options, for writing.
    #[inline]
    pub fn options_mut(&mut self) -> &mut [u8] {
        let end = self.header_len();
        cut_mut(self.buffer.as_mut(), HEADER_LEN, end)
    }

    /// What follows the header, for writing.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let (from, to) = (self.header_len().max(HEADER_LEN), self.total_len().into());
        cut_mut(self.buffer.as_mut(), from, to)
    }
}

/// Option kinds.
pub mod option {
    /// End of the list.
    pub const END: u8 = 0;
    /// Padding.
    pub const NOP: u8 = 1;
    /// Record route.
    pub const RECORD_ROUTE: u8 = 7;
    /// Timestamp.
    pub const TIMESTAMP: u8 = 68;
    /// Security.
    pub const SECURITY: u8 = 130;
    /// Loose source route.
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source route.
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Router alert (RFC 2113).
    pub const ROUTER_ALERT: u8 = 148;

    /// True if the option is copied into every fragment.
    #[inline]
    pub const fn is_copied(kind: u8) -> bool {
        kind & 0x80 != 0
    }
}

/// One option of an IPv4 or TCP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderOption<'a> {
    /// Kind, with all its flag bits.
    pub kind: u8,
    /// Offset of the kind byte from the start of the options.
    pub offset: usize,
    /// The bytes after kind and length; empty for a single-byte option.
    pub data: &'a [u8],
}

/// An option whose length does not fit, at this offset from the start of the options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadOption(pub usize);

/// The options of an IPv4 or TCP header in order; it ends at the end-of-list option, and after the first that
/// does not fit.
#[derive(Clone, Debug)]
pub struct Options<'a> {
    pub(super) area: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Options<'a> {
    /// The options in these bytes.
    #[inline]
    pub fn new(area: &'a [u8]) -> Self {
        Options { area, at: 0 }
    }

    /// The bytes of all options with their padding.
    #[inline]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.area
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<HeaderOption<'a>, BadOption>;

    fn next(&mut self) -> Option<Self::Item> {
        let offset = self.at;
        let kind = *self.area.get(offset)?;
        if kind == option::END {
            self.at = self.area.len();
            return None;
        }
        if kind == option::NOP {
            self.at += 1;
            return Some(Ok(HeaderOption { kind, offset, data: &[] }));
        }
        let end = self.area.get(offset + 1).map(|&length| offset + usize::from(length));
        let data = end.and_then(|end| self.area.get(offset + 2..end));
        Some(match (data, end) {
            (Some(data), Some(end)) => {
                self.at = end;
                Ok(HeaderOption { kind, offset, data })
            }
            _ => {
                self.at = self.area.len();
                Err(BadOption(offset))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ip_protocol;

    fn packet() -> [u8; 32] {
        let mut bytes = [0u8; 32];
        let mut ip = Ipv4::new(&mut bytes[..]).unwrap();
        ip.set_header_len(24);
        ip.set_tos(46 << 2 | 1);
        ip.set_total_len(30);
        ip.set_id(0x1234);
        ip.set_fragment_word(DF);
        ip.set_ttl(64);
        ip.set_protocol(ip_protocol::UDP);
        ip.set_src(Ipv4Addr::new(10, 0, 0, 1));
        ip.set_dst(Ipv4Addr::new(192, 168, 0, 2));
        ip.options_mut().copy_from_slice(&[1, 148, 2, 0]);
        ip.payload_mut().fill(0xaa);
        ip.fill_checksum();
        bytes
    }

    #[test]
    fn reads_what_was_written() {
        let bytes = packet();
        let ip = Ipv4::new_checked(&bytes).unwrap();
        assert_eq!(bytes[..10], [0x46, 0xb9, 0, 30, 0x12, 0x34, 0x40, 0, 64, 17]);
        assert_eq!((ip.version(), ip.header_len(), ip.tos(), ip.ecn()), (4, 24, 0xb9, 1));
        assert_eq!((ip.total_len(), ip.id(), ip.ttl(), ip.protocol()), (30, 0x1234, 64, 17));
        assert!(ip.dont_fragment() && !ip.more_fragments() && !ip.is_fragment());
        assert_eq!(ip.src(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(ip.dst(), Ipv4Addr::new(192, 168, 0, 2));
        assert_eq!(ip.payload(), [0xaa; 6]);
        assert!(ip.checksum_ok());
        let options: Vec<_> = ip.options().collect();
        assert_eq!(
            options,
            [
                Ok(HeaderOption { kind: 1, offset: 0, data: &[] }),
                Ok(HeaderOption { kind: 148, offset: 1, data: &[] })
            ]
        );
    }

    #[test]
    fn updates_keep_the_checksum() {
        let mut bytes = packet();
        let mut ip = Ipv4::new(&mut bytes[..]).unwrap();
        ip.replace_tos(0x12);
        ip.decrement_ttl();
        ip.swap_addresses();
        assert!(ip.checksum_ok());
        assert_eq!((ip.tos(), ip.ttl(), ip.dst()), (0x12, 63, Ipv4Addr::new(10, 0, 0, 1)));
    }

    #[test]
    fn a_flipped_bit_breaks_the_checksum() {
        let mut bytes = packet();
        bytes[8] ^= 1;
        assert!(!Ipv4::new(&bytes).unwrap().checksum_ok());
    }

    #[test]
    fn fragments() {
        let mut bytes = packet();
        let mut ip = Ipv4::new(&mut bytes[..]).unwrap();
        ip.set_fragment_word(MF | 185);
        assert!(ip.is_fragment() && ip.more_fragments());
        assert_eq!(ip.fragment_offset(), 1480);
        ip.set_fragment_word(MF);
        assert!(ip.is_fragment() && !ip.is_later_fragment());
        ip.set_fragment_word(1);
        assert!(ip.is_fragment() && ip.is_later_fragment() && !ip.more_fragments());
    }

    #[test]
    fn refuses_what_does_not_agree() {
        let good = packet();
        assert!(Ipv4::new_checked(&good[..30]).is_some());
        assert!(Ipv4::new_checked(&good[..29]).is_none());
        assert!(Ipv4::new(&good[..19]).is_none());
        for (at, value) in [(0, 0x66), (0, 0x44), (0, 0x4f), (3, 23), (3, 33)] {
            let mut bad = good;
            bad[at] = value;
            assert!(Ipv4::new_checked(&bad).is_none(), "byte {at} = {value:#x}");
        }
    }

    #[test]
    fn bad_options_end_the_list() {
        for (area, expected) in [
            (&[7u8][..], vec![Err(BadOption(0))]),
            (&[7, 0, 1, 1], vec![Err(BadOption(0))]),
            (&[7, 1, 1, 1], vec![Err(BadOption(0))]),
            (&[7, 5, 1, 1], vec![Err(BadOption(0))]),
            (&[0, 7, 1, 1], vec![]),
            (
                &[1, 7, 3, 4, 68, 9],
                vec![
                    Ok(HeaderOption { kind: 1, offset: 0, data: &[] }),
                    Ok(HeaderOption { kind: 7, offset: 1, data: &[4] }),
                    Err(BadOption(4)),
                ],
            ),
        ] {
            assert_eq!(Options { area, at: 0 }.collect::<Vec<_>>(), expected);
        }
    }
}
