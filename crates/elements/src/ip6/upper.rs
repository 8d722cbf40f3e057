//! What stands behind IPv6 headers, and in the packets that ICMPv6 errors quote.

use ir::Reason;
use net::Packet;
use net::checksum::{Sum, pseudo_header_v6};
use net::wire::ip_protocol::{
    AH, DESTINATION_OPTIONS, HOP_BY_HOP, ICMPV6, IPV6_FRAGMENT, IPV6_ROUTING, MOBILITY,
};
use net::wire::ipv6::{HEADER_LEN, Upper};
use net::wire::{Ipv6, icmpv6};
use std::net::Ipv6Addr;

use super::ip6_header::NO_HEADER;
use crate::flow_table::FlowKey;

/// Headers that [`Ipv6::upper`] looks behind.
pub(crate) const EXTENSIONS: [u8; 6] =
    [HOP_BY_HOP, IPV6_ROUTING, IPV6_FRAGMENT, AH, DESTINATION_OPTIONS, MOBILITY];

/// A part of a packet.
pub(crate) const FRAGMENT: Reason = Reason("fragment");
/// Extension headers that are cut off, or too many.
pub(crate) const BAD_EXTENSION: Reason = Reason("bad-extension-header");
/// The packet goes on from its destination to others (RFC 5095), so that its flow is not that of its addresses.
pub(crate) const SEGMENTS_LEFT: Reason = Reason("segments-left");

/// An ICMP error that goes to somebody who did not send what it quotes.
pub(crate) const BAD_QUOTE: Reason = Reason("bad-quote");

/// A key of IPv6.
pub(crate) type Key6 = FlowKey<[u128; 2]>;

/// A whole packet of IPv6.
#[derive(Clone, Copy)]
pub(crate) struct Whole<'a> {
    pub protocol: u8,
    pub src: u128,
    pub dst: u128,
    /// What stands behind all headers of IPv6.
    pub body: &'a [u8],
    /// Whether that is as long as the packet says.
    pub is_complete: bool,
}

impl<'a> Whole<'a> {
    /// That of a packet with a marked header.
    ///
    /// # Errors
    /// Why it is none.
    pub(crate) fn of(packet: &'a Packet) -> Result<Self, Reason> {
        Self::of_bytes(packet.network().unwrap_or_default())
    }

    fn of_bytes(bytes: &'a [u8]) -> Result<Self, Reason> {
        let ip = Ipv6::new(bytes).ok_or(NO_HEADER)?;
        let Upper { protocol, at, fragment, is_whole, has_segments_left } = ip.upper();
        // A packet that is all of its fragments is none (RFC 6946).
        if fragment.is_some_and(|word| word & !6 != 0) {
            return Err(FRAGMENT);
        }
        if !is_whole {
            return Err(BAD_EXTENSION);
        }
        if has_segments_left {
            return Err(SEGMENTS_LEFT);
        }
        let end = HEADER_LEN + ip.payload_len();
        let body = bytes.get(HEADER_LEN + at..end.min(bytes.len())).unwrap_or_default();
        let (src, dst) = (ip.src().to_bits(), ip.dst().to_bits());
        Ok(Self { protocol, src, dst, body, is_complete: end <= bytes.len() })
    }

    /// A number of two bytes of the body.
    pub(crate) fn half(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(*self.body.get(at..)?.first_chunk()?))
    }

    /// A number of four bytes of the body.
    pub(crate) fn word(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(*self.body.get(at..)?.first_chunk()?))
    }

    /// The key of its protocol, with ports that stand first in the body; what quotes fewer bytes has none.
    pub(crate) fn key(&self) -> Option<Key6> {
        let (src_port, dst_port) = (self.half(0)?, self.half(2)?);
        Some(Key6::new(self.protocol.into(), self.src, src_port, self.dst, dst_port))
    }

    /// The sum over the pseudo-header (RFC 8200, 8.1) and the body.
    pub(crate) fn sum(&self) -> Sum {
        let [src, dst] = [self.src, self.dst].map(Ipv6Addr::from_bits);
        pseudo_header_v6(src, dst, self.protocol, self.body.len() as u32).plus(Sum::of(self.body))
    }

    /// The packet that an ICMPv6 error quotes (RFC 4443, 3: the types 1 to 4). Without another packet, `None`.
    pub(crate) fn quoted(&self) -> Option<Result<Whole<'a>, Reason>> {
        let kind = *self.body.first().filter(|_| self.protocol == ICMPV6)?;
        if !matches!(kind, 1..=icmpv6::message::PARAMETER_PROBLEM) {
            return None;
        }
        let quoted = self.body.get(icmpv6::HEADER_LEN..).unwrap_or_default();
        if Ipv6::new(quoted).is_none_or(|ip| ip.version() != 6) {
            return Some(Err(BAD_QUOTE));
        }
        let quoted = Whole::of_bytes(quoted);
        // Whoever gets the error sent the packet.
        Some(quoted.and_then(|whole| (whole.src == self.dst).then_some(whole).ok_or(BAD_QUOTE)))
    }
}
