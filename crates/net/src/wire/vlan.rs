//! VLAN tags: 802.1Q customer tags and 802.1ad service tags.

use super::{ether, ether_type, put_u16, u16_at, view};

/// Bytes of one tag as it lies after the type field that announces it: control information and next type.
pub const HEADER_LEN: usize = 4;

/// Tag control information: priority, drop eligibility and VLAN id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tci(pub u16);

impl Tci {
    /// VLAN id, 0 to 4095; 0 means priority only.
    #[inline]
    pub const fn vid(self) -> u16 {
        self.0 & 0xfff
    }
}

view! {
    /// A VLAN tag from its control information on; the type that announces it is the last field of what
    /// precedes it.
    Vlan
}

impl<T: AsRef<[u8]>> Vlan<T> {
    /// Control information.
    #[inline]
    pub fn tci(&self) -> Tci {
        Tci(u16_at(self.fixed(), 0))
    }

    /// Type of what follows the tag, possibly another tag.
    #[inline]
    pub fn ether_type(&self) -> u16 {
        u16_at(self.fixed(), 2)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Vlan<T> {
    /// Sets the control information.
    #[inline]
    pub fn set_tci(&mut self, tci: Tci) {
        put_u16(self.fixed_mut(), 0, tci.0);
    }

    /// Sets the type of what follows.
    #[inline]
    pub fn set_ether_type(&mut self, ether_type: u16) {
        put_u16(self.fixed_mut(), 2, ether_type);
    }
}

/// How many tags [`network`] passes over.
pub const MAX_TAGS: usize = 8;

/// Where the network header of an Ethernet frame lies and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Type after the last tag.
    pub ether_type: u16,
    /// Offset of the network header from the frame's start, in bytes.
    pub offset: usize,
    /// Control information of the outermost tag.
    pub outer: Option<Tci>,
    /// Control information of the tag inside it.
    pub inner: Option<Tci>,
}

/// Finds the network header of a frame behind its VLAN tags; `None` if the frame ends before, or has more than
/// [`MAX_TAGS`] tags.
#[inline]
pub fn network(frame: &[u8]) -> Option<Network> {
    let ethernet = ether::Ethernet::new(frame)?;
    let mut found = Network {
        ether_type: ethernet.ether_type(),
        offset: ether::HEADER_LEN,
        outer: None,
        inner: None,
    };
    for _ in 0..=MAX_TAGS {
        if !ether_type::is_vlan(found.ether_type) {
            return Some(found);
        }
        let tag = Vlan::new(frame.get(found.offset..)?)?;
        if found.outer.is_none() {
            found.outer = Some(tag.tci());
        } else if found.inner.is_none() {
            found.inner = Some(tag.tci());
        }
        found.ether_type = tag.ether_type();
        found.offset += HEADER_LEN;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_header_behind_tags() {
        let mut frame = [0u8; 40];
        frame[12..14].copy_from_slice(&[0x08, 0x00]);
        let plain = Network { ether_type: 0x800, offset: 14, outer: None, inner: None };
        assert_eq!(network(&frame), Some(plain));
        frame[12..22]
            .copy_from_slice(&[0x88, 0xa8, 0x20, 0x07, 0x81, 0x00, 0x00, 0x09, 0x86, 0xdd]);
        let double = Network {
            ether_type: 0x86dd,
            offset: 22,
            outer: Some(Tci(0x2007)),
            inner: Some(Tci(9)),
        };
        assert_eq!(network(&frame), Some(double));
        assert_eq!(network(&frame[..22]), Some(double));
        assert_eq!(network(&frame[..21]), None);
    }

    #[test]
    fn tags_without_end() {
        assert_eq!(network(&[0x81, 0x00].repeat(100)), None);
    }

    #[test]
    fn reads_and_writes() {
        let mut bytes = [0u8; 6];
        let mut tag = Vlan::new(&mut bytes[..]).unwrap();
        tag.set_tci(Tci(7 << 13 | 100));
        tag.set_ether_type(ether_type::ARP);
        assert_eq!(tag.tci().vid(), 100);
        assert_eq!(bytes, [0xe0, 100, 8, 6, 0, 0]);
    }
}
