//! What elements that work on marked IPv4 headers have in common.

use click::config::Argument;
use ir::field::{ip, meta};
use ir::model::Block;
use ir::{Base, Cond, Expr, Field, Op, Reason};
use net::wire::Ipv4;
use net::{Header, Packet};

use crate::configure::Arguments;

/// The packet has no marked IP header, or fewer than its 20 bytes.
pub(crate) const NO_HEADER: Reason = Reason("no-ip-header");

/// Base of the network header's fields.
pub(crate) const NETWORK: Base = Base::Header(Header::Network);
/// Base of the transport header's fields.
pub(crate) const TRANSPORT: Base = Base::Header(Header::Transport);

/// The packet from the marked header on.
#[inline]
pub(crate) fn view(packet: &Packet) -> Option<Ipv4<&[u8]>> {
    Ipv4::new(packet.network()?)
}

/// The packet from the marked header on, to change.
#[inline]
pub(crate) fn view_mut(packet: &mut Packet) -> Option<Ipv4<&mut [u8]>> {
    Ipv4::new(packet.network_mut()?)
}

/// The marked header's first 20 bytes.
#[inline]
pub(crate) fn fixed(packet: &Packet) -> Option<Ipv4<&[u8; 20]>> {
    packet.header_chunk(Header::Network).map(Ipv4::of)
}

/// The marked header's first 20 bytes, to change.
#[inline]
pub(crate) fn fixed_mut(packet: &mut Packet) -> Option<Ipv4<&mut [u8; 20]>> {
    packet.header_chunk_mut(Header::Network).map(Ipv4::of)
}

/// Parses where in the data something starts. Offsets beyond any headers are refused.
pub(crate) fn parse_offset(
    arguments: &mut Arguments<'_, '_>,
    name: &'static str,
    argument: &Argument,
) -> u16 {
    const MAX: u16 = 4096;
    let offset = arguments.parse(name, argument).unwrap_or(0);
    if offset > MAX {
        arguments.error(argument, format!("{offset} is out of range: 0 to {MAX}"));
        return 0;
    }
    offset
}

/// One of a header's two addresses.
#[derive(Clone, Copy)]
pub(crate) enum End {
    Source,
    Destination,
}

impl End {
    /// Its address.
    #[inline]
    pub(crate) fn address(self, ip: &Ipv4<impl AsRef<[u8]>>) -> u32 {
        match self {
            Self::Source => ip.src().to_bits(),
            Self::Destination => ip.dst().to_bits(),
        }
    }

    /// The field of a marked header that holds it.
    pub(crate) fn field(self) -> Field {
        match self {
            Self::Source => ip::SRC,
            Self::Destination => ip::DST,
        }
    }
}

// The same as parts of models.

/// No IP header is marked, or fewer than 20 bytes of it are there.
pub(crate) fn is_missing() -> Cond {
    meta::AVAIL_NET.lt(20u8)
}

/// The header's length with options as it says itself, in bytes.
pub(crate) fn says_length() -> Expr {
    ip::HL.get() * 4u8
}

/// "More fragments" and the fragment offset: 0 in packets that are no fragments.
pub(crate) const FRAGMENT: Field = Field::bits(NETWORK, 50, 14);

/// Computes the checksum as [`Ipv4::fill_checksum`] does.
pub(crate) fn model_fill_checksum() -> Block {
    let length = says_length().max(20u8).min(meta::AVAIL_NET);
    vec![ip::CHECKSUM.set(0u8), ip::CHECKSUM.set(Expr::sum16(NETWORK, 0u8, length) ^ 0xffffu16)]
}

/// What [`Ipv4::decrement_ttl`] means.
pub(crate) fn model_decrement_ttl() -> [Op; 2] {
    let sum = (ip::CHECKSUM.get() ^ 0xffffu16) + (0xffffu16 - 0x100);
    [ip::TTL.set(ip::TTL.get() - 1u8), ip::CHECKSUM.set(sum.fold16() ^ 0xffffu16)]
}

/// A checksum after 16-bit words that it covers changed (RFC 1624, equation 3).
pub(crate) fn model_update(
    checksum: impl Into<Expr>,
    changes: impl IntoIterator<Item = (Expr, Expr)>,
) -> Expr {
    let start = checksum.into() ^ 0xffffu16;
    let sum = changes.into_iter().fold(start, |sum, (old, new)| sum + (old ^ 0xffffu16) + new);
    sum.fold16() ^ 0xffffu16
}

/// The same for a 32-bit word: its halves as two changes.
pub(crate) fn halves(old: Expr, new: Expr) -> [(Expr, Expr); 2] {
    let (high, low) = (|e: &Expr| e.clone() >> 16u8, |e: &Expr| e.clone() & 0xffffu16);
    [(high(&old), high(&new)), (low(&old), low(&new))]
}

/// A field of a header that is not marked yet, at a byte offset from the first data byte.
pub(crate) fn unmarked(field: Field, offset: u16) -> Field {
    Field::bits(Base::Data, field.offset + offset * 8, field.width)
}

/// Bytes before the data that are kept at the most: those of an Ethernet header and several tags.
const MOST_REMOVED: i32 = 64;

/// What lies before a packet's data: bytes that were removed, such as an Ethernet header.
pub(crate) fn removed(packet: &Packet) -> Vec<u8> {
    let before = (1..=MOST_REMOVED).map_while(|back| packet.window::<1>(-back).map(|byte| byte[0]));
    let mut bytes: Vec<u8> = before.collect();
    bytes.reverse();
    bytes
}
