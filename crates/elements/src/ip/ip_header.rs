//! What elements that work on marked IPv4 headers have in common.

use click::config::Argument;
use ir::field::{ip, meta};
use ir::model::Block;
use ir::{Base, Cond, Expr, Field, Op, Reason};
use net::{Header, Packet, checksum};

use crate::configure::Arguments;

/// The packet has no marked IP header, or fewer than its 20 bytes.
pub(crate) const NO_HEADER: Reason = Reason("no-ip-header");

/// Base of the network header's fields.
pub(crate) const NETWORK: Base = Base::Header(Header::Network);
/// Base of the transport header's fields.
pub(crate) const TRANSPORT: Base = Base::Header(Header::Transport);

/// The bytes from the marked header to the end, its first 20 apart.
#[inline]
pub(crate) fn split(packet: &Packet) -> Option<(&[u8; 20], &[u8])> {
    packet.network()?.split_first_chunk()
}

/// The marked header's first 20 bytes.
#[inline]
pub(crate) fn fixed(packet: &Packet) -> Option<&[u8; 20]> {
    packet.header_chunk(Header::Network)
}

/// The marked header's first 20 bytes, to change.
#[inline]
pub(crate) fn fixed_mut(packet: &mut Packet) -> Option<&mut [u8; 20]> {
    packet.header_chunk_mut(Header::Network)
}

/// The header's length with options as it says itself, in bytes.
#[inline]
pub(crate) fn length(header: &[u8; 20]) -> usize {
    usize::from(header[0] & 0xf) * 4
}

/// The 16-bit number at a constant offset.
#[inline]
pub(crate) fn word(header: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// The 32-bit number at a constant offset.
#[inline]
pub(crate) fn long(header: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// Writes a 16-bit number at a constant offset.
#[inline]
pub(crate) fn put_word(header: &mut [u8], at: usize, value: u16) {
    header[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Sets the checksum of the header that `bytes` (at least 20) start with: of as much of it as
/// there is, and of 20 bytes if it claims fewer.
#[inline]
pub(crate) fn fill_checksum(bytes: &mut [u8]) {
    if let Some(mut header) = net::wire::Ipv4::new(bytes) {
        header.fill_checksum();
    }
}

/// Decrements a time-to-live above 0 and updates the checksum (RFC 1624): what is added to the
/// complement of the checksum is the complement of the old word and the new one, which is less
/// by 0x100.
#[inline]
pub(crate) fn decrement_ttl(header: &mut [u8; 20]) {
    header[8] -= 1;
    let sum = u32::from(!word(header, 10)) + (0xffff - 0x100);
    put_word(header, 10, !((sum + (sum >> 16)) as u16));
}

/// Replaces 16 bits of the header and updates the checksum (RFC 1624).
#[inline]
pub(crate) fn replace_word(header: &mut [u8; 20], at: usize, new: u16) {
    let sum = checksum::update_u16(word(header, 10), word(header, at), new);
    put_word(header, at, new);
    put_word(header, 10, sum);
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

/// Computes the checksum as [`fill_checksum`] does.
pub(crate) fn model_fill_checksum() -> Block {
    let length = says_length().max(20u8).min(meta::AVAIL_NET);
    vec![ip::CHECKSUM.set(0u8), ip::CHECKSUM.set(Expr::sum16(NETWORK, 0u8, length) ^ 0xffffu16)]
}

/// What [`decrement_ttl`] means.
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
