//! ICMP for IPv6 (RFC 4443) with neighbor discovery (RFC 4861).

use super::{EtherAddr, cut, cut_mut, put_u16, put_u32, view};
use crate::checksum::Sum;
use std::net::Ipv6Addr;

/// Bytes of the header: type, code, checksum and a word whose meaning depends on the type.
pub const HEADER_LEN: usize = 8;
/// Bytes of a neighbor solicitation or advertisement without options.
pub const NEIGHBOR_LEN: usize = 24;

/// Message types.
pub mod message {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const PACKET_TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 4;
    /// Echo request.
    pub const ECHO: u8 = 128;
    /// Answer to an echo request.
    pub const ECHO_REPLY: u8 = 129;
    /// Router solicitation.
    pub const ROUTER_SOLICIT: u8 = 133;
    /// Router advertisement.
    pub const ROUTER_ADVERT: u8 = 134;
    /// Neighbor solicitation.
    pub const NEIGHBOR_SOLICIT: u8 = 135;
    /// Neighbor advertisement.
    pub const NEIGHBOR_ADVERT: u8 = 136;
    /// Redirect.
    pub const REDIRECT: u8 = 137;
}

const TYPES: &[(u8, &str)] = &[
    (message::UNREACHABLE, "unreachable"),
    (message::PACKET_TOO_BIG, "toobig"),
    (message::TIME_EXCEEDED, "timeexceeded"),
    (message::PARAMETER_PROBLEM, "parameterproblem"),
    (message::ECHO, "echo"),
    (message::ECHO_REPLY, "echo-reply"),
    (message::ROUTER_SOLICIT, "routersolicit"),
    (message::ROUTER_ADVERT, "routeradvert"),
    (message::NEIGHBOR_SOLICIT, "neighborsolicit"),
    (message::NEIGHBOR_ADVERT, "neighboradvert"),
    (message::REDIRECT, "redirect"),
];

/// The name of a message type, as those of ICMP for IPv4 are called.
pub fn type_name(number: u8) -> Option<&'static str> {
    TYPES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// The message type of a name.
pub fn type_by_name(name: &str) -> Option<u8> {
    TYPES.iter().find(|(_, known)| *known == name).map(|(number, _)| *number)
}

/// Flags of a neighbor advertisement, in the header's second word.
pub mod neighbor_flag {
    /// The sender is a router.
    pub const ROUTER: u32 = 0x8000_0000;
    /// An answer to a solicitation.
    pub const SOLICITED: u32 = 0x4000_0000;
    /// Replaces what the receiver knew.
    pub const OVERRIDE: u32 = 0x2000_0000;
}

/// Kinds of neighbor discovery options.
pub mod option {
    /// Link-layer address of the sender.
    pub const SOURCE_LINK_LAYER: u8 = 1;
    /// Link-layer address of the target.
    pub const TARGET_LINK_LAYER: u8 = 2;
    /// Prefix information.
    pub const PREFIX: u8 = 3;
    /// Redirected header.
    pub const REDIRECTED: u8 = 4;
    /// MTU.
    pub const MTU: u8 = 5;
}

/// True for error messages, which quote the packet that caused them and must cause none themselves.
#[inline]
pub const fn is_error(message_type: u8) -> bool {
    message_type < 128
}

view! {
    /// An ICMP message of IPv6.
    Icmpv6
}

impl<T: AsRef<[u8]>> Icmpv6<T> {
    /// Message type.
    #[inline]
    pub fn message_type(&self) -> u8 {
        self.fixed()[0]
    }

    /// Code.
    #[inline]
    pub fn code(&self) -> u8 {
        self.fixed()[1]
    }

    /// What follows the first 8 bytes; in an error message, the packet that caused it.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        cut(self.bytes(), HEADER_LEN, usize::MAX)
    }

    /// The target of a neighbor solicitation or advertisement; `None` for other types, and if it is cut off.
    #[inline]
    pub fn neighbor_target(&self) -> Option<Ipv6Addr> {
        use message::{NEIGHBOR_ADVERT, NEIGHBOR_SOLICIT};
        matches!(self.message_type(), NEIGHBOR_SOLICIT | NEIGHBOR_ADVERT).then_some(())?;
        self.payload().first_chunk::<16>().map(|&octets| octets.into())
    }

    /// The options of a neighbor solicitation or advertisement.
    #[inline]
    pub fn neighbor_options(&self) -> NeighborOptions<'_> {
        NeighborOptions { rest: cut(self.bytes(), NEIGHBOR_LEN, usize::MAX) }
    }

    /// True if the checksum over pseudo-header and buffer is right; the buffer must end with the message.
    #[inline]
    pub fn checksum_ok(&self, pseudo_header: Sum) -> bool {
        pseudo_header.plus(Sum::of(self.bytes())).checksum() == 0
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Icmpv6<T> {
    /// Sets the message type.
    #[inline]
    pub fn set_message_type(&mut self, message_type: u8) {
        self.fixed_mut()[0] = message_type;
    }

    /// Sets the code.
    #[inline]
    pub fn set_code(&mut self, code: u8) {
        self.fixed_mut()[1] = code;
    }

    /// Sets the checksum.
    #[inline]
    pub fn set_checksum(&mut self, checksum: u16) {
        put_u16(self.fixed_mut(), 2, checksum);
    }

    /// Sets the second word of the header.
    #[inline]
    pub fn set_rest(&mut self, word: u32) {
        put_u32(self.fixed_mut(), 4, word);
    }

    /// Sets the target of a neighbor message; false if the buffer does not hold it.
    #[inline]
    pub fn set_neighbor_target(&mut self, addr: Ipv6Addr) -> bool {
        let target = self.payload_mut().first_chunk_mut::<16>();
        target.map(|bytes| *bytes = addr.octets()).is_some()
    }

    /// Writes a link-layer option right behind a neighbor message's target; false if the buffer does not hold it.
    #[inline]
    pub fn set_link_layer_addr(&mut self, kind: u8, addr: EtherAddr) -> bool {
        let [a, b, c, d, e, f] = addr.0;
        let area = cut_mut(self.buffer.as_mut(), NEIGHBOR_LEN, usize::MAX).first_chunk_mut::<8>();
        area.map(|bytes| *bytes = [kind, 1, a, b, c, d, e, f]).is_some()
    }

    /// Computes the checksum anew over pseudo-header and buffer; the buffer must end with the message.
    #[inline]
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let checksum = pseudo_header.plus(Sum::of(self.bytes())).checksum();
        self.set_checksum(checksum);
    }

    /// What follows the first 8 bytes, for writing.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        cut_mut(self.buffer.as_mut(), HEADER_LEN, usize::MAX)
    }
}

/// A neighbor discovery option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighborOption<'a> {
    /// Its [kind](option).
    pub kind: u8,
    /// The bytes after kind and length.
    pub data: &'a [u8],
}

/// An option of length 0 or longer than the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadNeighborOption;

/// The options of a neighbor message in order; it ends after the first that does not fit.
#[derive(Clone, Debug)]
pub struct NeighborOptions<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for NeighborOptions<'a> {
    type Item = Result<NeighborOption<'a>, BadNeighborOption>;

    fn next(&mut self) -> Option<Self::Item> {
        let rest = std::mem::take(&mut self.rest);
        let &kind = rest.first()?;
        let length = rest.get(1).map_or(0, |&units| usize::from(units) * 8);
        Some(match rest.split_at_checked(length) {
            Some(([_, _, data @ ..], after)) => {
                self.rest = after;
                Ok(NeighborOption { kind, data })
            }
            _ => Err(BadNeighborOption),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checksum::pseudo_header_v6;

    #[test]
    fn neighbor_messages() {
        let target: Ipv6Addr = "fe80::1".parse().unwrap();
        let addr = EtherAddr([2, 0, 0, 0, 0, 9]);
        let pseudo = pseudo_header_v6(Ipv6Addr::LOCALHOST, target, 58, 32);
        let mut bytes = [0u8; 32];
        let mut icmp = Icmpv6::new(&mut bytes[..]).unwrap();
        icmp.set_message_type(message::NEIGHBOR_ADVERT);
        icmp.set_rest(neighbor_flag::SOLICITED | neighbor_flag::OVERRIDE);
        assert!(icmp.set_neighbor_target(target));
        assert!(icmp.set_link_layer_addr(option::TARGET_LINK_LAYER, addr));
        icmp.fill_checksum(pseudo);
        let icmp = Icmpv6::new(&bytes).unwrap();
        assert!(icmp.checksum_ok(pseudo));
        assert_eq!(icmp.neighbor_target(), Some(target));
        let options: Vec<_> = icmp.neighbor_options().collect();
        let data = &addr.0[..];
        assert_eq!(options, [Ok(NeighborOption { kind: option::TARGET_LINK_LAYER, data })]);
        assert_eq!(icmp.neighbor_options().count(), 1);
        bytes[0] = message::ECHO;
        assert_eq!(Icmpv6::new(&bytes).unwrap().neighbor_target(), None);
        assert_eq!(Icmpv6::new(&bytes).unwrap().payload().len(), 24);
    }

    #[test]
    fn cut_off_neighbor_messages() {
        let mut bytes = [0u8; 31];
        bytes[0] = message::NEIGHBOR_SOLICIT;
        let mut icmp = Icmpv6::new(&mut bytes[..23]).unwrap();
        assert!(!icmp.set_neighbor_target(Ipv6Addr::LOCALHOST));
        assert_eq!(icmp.neighbor_target(), None);
        assert_eq!(icmp.neighbor_options().count(), 0);
        let mut icmp = Icmpv6::new(&mut bytes[..]).unwrap();
        assert!(!icmp.set_link_layer_addr(1, EtherAddr::ZERO));
        assert_eq!(icmp.neighbor_options().collect::<Vec<_>>(), [Err(BadNeighborOption)]);
        bytes[25] = 1;
        let icmp = Icmpv6::new(&bytes).unwrap();
        assert_eq!(icmp.neighbor_options().collect::<Vec<_>>(), [Err(BadNeighborOption)]);
    }
}
