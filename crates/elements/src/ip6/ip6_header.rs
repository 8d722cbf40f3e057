//! What elements that work on marked IPv6 headers have in common.

use ir::field::meta;
use ir::{Base, Cond, Expr, IntervalSet, Reason};
use net::Packet;
use net::wire::Ipv6;

/// The packet has no marked IPv6 header, or fewer than its 40 bytes.
pub(crate) const NO_HEADER: Reason = Reason("no-ip6-header");

/// Number of ICMP for IPv6.
pub(crate) const ICMP6: u8 = 58;

/// The packet from the marked header on.
#[inline]
pub(crate) fn view(packet: &Packet) -> Option<Ipv6<&[u8]>> {
    Ipv6::new(packet.network()?)
}

/// The packet from the marked header on, to change.
#[inline]
pub(crate) fn view_mut(packet: &mut Packet) -> Option<Ipv6<&mut [u8]>> {
    Ipv6::new(packet.network_mut()?)
}

// The same as parts of models.

/// No IPv6 header is marked, or fewer than 40 bytes of it are there.
pub(crate) fn is_missing() -> Cond {
    meta::AVAIL_NET.lt(40u8)
}

/// Addresses of groups (RFC 4291, 2.7).
pub(crate) fn groups() -> IntervalSet {
    IntervalSet::prefix(128, 0xff << 120, 8)
}

/// The folded sum over the pseudo-header (RFC 8200, 8.1) and the ICMP message of `length` bytes
/// behind an IPv6 header without extension headers, which starts at byte `at` from `base`.
pub(crate) fn icmp_sum(base: Base, at: u16, length: &Expr) -> Expr {
    let addresses = Expr::sum16(base, at + 8, 32u8);
    let message = Expr::sum16(base, at + 40, length.clone());
    (addresses + message + length.clone() + ICMP6).fold16()
}
