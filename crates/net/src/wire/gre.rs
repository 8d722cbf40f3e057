//! GRE (RFC 2784) with key and sequence number (RFC 2890).

/// Bytes of a header without optional fields.
pub const HEADER_LEN: usize = 4;

/// Flag: a checksum follows.
pub const CHECKSUM: u16 = 0x8000;
/// Flag: routing information follows (obsolete, RFC 1701).
pub const ROUTING: u16 = 0x4000;
/// Flag: a key follows.
pub const KEY: u16 = 0x2000;
/// Flag: a sequence number follows.
pub const SEQUENCE: u16 = 0x1000;
