//! Ethernet II and its addresses.

use super::{cut, cut_mut, put_u16, u16_at, view};
use std::fmt;
use std::str::FromStr;

/// Bytes of an Ethernet header without tags.
pub const HEADER_LEN: usize = 14;

/// A 48-bit Ethernet address.
///
/// It parses in both usual spellings, `00:1b:21:3c:9d:f8` and `00-1B-21-3C-9D-F8`, with one or two hexadecimal
/// digits each, and prints as the first; with `{:#}` as the second, as Click does.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherAddr(pub [u8; 6]);

impl EtherAddr {
    /// ff:ff:ff:ff:ff:ff.
    pub const BROADCAST: EtherAddr = EtherAddr([0xff; 6]);
    /// 00:00:00:00:00:00.
    pub const ZERO: EtherAddr = EtherAddr([0; 6]);

    /// True for the address of all stations.
    pub const fn is_broadcast(self) -> bool {
        matches!(self.0, [0xff, 0xff, 0xff, 0xff, 0xff, 0xff])
    }

    /// True for a group address; the broadcast address is one.
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// The address as a number of 48 bits.
    pub const fn to_bits(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

impl fmt::Display for EtherAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        if f.alternate() {
            write!(f, "{a:02X}-{b:02X}-{c:02X}-{d:02X}-{e:02X}-{g:02X}")
        } else {
            write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
        }
    }
}

impl fmt::Debug for EtherAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl From<[u8; 6]> for EtherAddr {
    fn from(bytes: [u8; 6]) -> Self {
        EtherAddr(bytes)
    }
}

/// Text that is not an Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseEtherAddrError;

impl fmt::Display for ParseEtherAddrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "not an Ethernet address (six bytes in hexadecimal, separated by ':' or by '-')",
        )
    }
}

impl std::error::Error for ParseEtherAddrError {}

impl FromStr for EtherAddr {
    type Err = ParseEtherAddrError;

    fn from_str(text: &str) -> Result<Self, ParseEtherAddrError> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut bytes = [0; 6];
        let mut parts = text.split(separator);
        for byte in &mut bytes {
            let part = parts.next().ok_or(ParseEtherAddrError)?;
            if !matches!(part.len(), 1 | 2) || !part.bytes().all(|c| c.is_ascii_hexdigit()) {
                return Err(ParseEtherAddrError);
            }
            *byte = u8::from_str_radix(part, 16).map_err(|_| ParseEtherAddrError)?;
        }
        match parts.next() {
            None => Ok(EtherAddr(bytes)),
            Some(_) => Err(ParseEtherAddrError),
        }
    }
}

view! {
    /// An Ethernet II frame without its frame check sequence.
    Ethernet
}

impl<T: AsRef<[u8]>> Ethernet<T> {
    /// Destination address.
    #[inline]
    pub fn dst(&self) -> EtherAddr {
        let [a, b, c, d, e, f, ..] = *self.fixed();
        EtherAddr([a, b, c, d, e, f])
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> EtherAddr {
        let [_, _, _, _, _, _, a, b, c, d, e, f, ..] = *self.fixed();
        EtherAddr([a, b, c, d, e, f])
    }

    /// The field after the addresses: an [ether type](super::ether_type), or a length if below 0x600.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16_at(self.fixed(), 12)
    }

    /// What follows the header.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), HEADER_LEN, usize::MAX)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Ethernet<T> {
    /// Sets the destination address.
    #[inline]
    pub fn set_dst(&mut self, addr: EtherAddr) {
        self.fixed_mut()[..6].copy_from_slice(&addr.0);
    }

    /// Sets the source address.
    #[inline]
    pub fn set_src(&mut self, addr: EtherAddr) {
        self.fixed_mut()[6..12].copy_from_slice(&addr.0);
    }

    /// Sets the ether type.
    #[inline]
    pub fn set_ether_type(&mut self, ether_type: u16) {
        put_u16(self.fixed_mut(), 12, ether_type);
    }

    /// What follows the header, for writing.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        cut_mut(self.buffer.as_mut(), HEADER_LEN, usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_parse_in_both_spellings() {
        let addr = EtherAddr([0, 0x1b, 0x21, 0x3c, 0x9d, 0xf8]);
        assert_eq!("00:1b:21:3c:9d:f8".parse(), Ok(addr));
        assert_eq!("00-1B-21-3C-9D-F8".parse(), Ok(addr));
        assert_eq!("0:1b:21:3C:9d:f8".parse(), Ok(addr));
        for bad in [
            "",
            "00",
            "00:11:22:33:44",
            "00:11:22:33:44:55:66",
            "00:11-22:33:44:55",
            "00:11:22:33:44:5g",
            "00:11:22:33:44:+5",
            "001:11:22:33:44:55",
            "00::22:33:44:55",
            "00:11:22:33:44:55 ",
            "é:11:22:33:44:55",
        ] {
            assert_eq!(bad.parse::<EtherAddr>(), Err(ParseEtherAddrError), "{bad}");
        }
    }

    #[test]
    fn addresses_print_in_both_spellings() {
        let addr = EtherAddr([0, 0x1b, 0x21, 0x3c, 0x9d, 0xf8]);
        assert_eq!(addr.to_string(), "00:1b:21:3c:9d:f8");
        assert_eq!(format!("{addr:#}"), "00-1B-21-3C-9D-F8");
    }

    #[test]
    fn kinds_of_addresses() {
        assert!(EtherAddr::BROADCAST.is_broadcast() && EtherAddr::BROADCAST.is_multicast());
        assert!(EtherAddr([1, 0, 0x5e, 0, 0, 1]).is_multicast());
        assert!(!EtherAddr::ZERO.is_multicast());
    }

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0u8; 20];
        let mut frame = Ethernet::new(&mut bytes[..]).unwrap();
        frame.set_dst(EtherAddr::BROADCAST);
        frame.set_src(EtherAddr([2, 3, 4, 5, 6, 7]));
        frame.set_ether_type(0x0800);
        frame.payload_mut()[0] = 0x45;
        assert_eq!(frame.dst(), EtherAddr::BROADCAST);
        assert_eq!(frame.src(), EtherAddr([2, 3, 4, 5, 6, 7]));
        assert_eq!(bytes[..15], [255, 255, 255, 255, 255, 255, 2, 3, 4, 5, 6, 7, 8, 0, 0x45]);
        assert_eq!(Ethernet::new(&bytes).unwrap().payload().len(), 6);
        assert!(Ethernet::new(&bytes[..13]).is_none());
    }
}
