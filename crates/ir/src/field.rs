//! Fields: every run of bits that a model can read or write.
//!
//! A field is a place: a base (the frame's first byte, a header, the annotation area), a bit
//! offset from it and a width. The named constants are the headers' fields; [`Field::bits`]
//! makes any other. Fields of one base overlap exactly when their bit ranges do.

use std::fmt;

use net::Header;
use net::annotation;

/// What a field's offset counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Base {
    /// The first data byte.
    Data,
    /// A header that was marked in the packet.
    Header(Header),
    /// The annotation area.
    Annotation,
    /// What the part of a program, or the device, that decided before hands over; see
    /// [`Handoff`](crate::program::End::Handoff). In programs alone.
    Carried,
    /// Properties of the packet that are not bytes of it; see [`meta`].
    Meta,
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Base::Data => "data",
            Base::Header(Header::Mac) => "mac",
            Base::Header(Header::Network) => "net",
            Base::Header(Header::Transport) => "transport",
            Base::Annotation => "anno",
            Base::Carried => "carried",
            Base::Meta => "meta",
        })
    }
}

/// A run of at most 128 bits at a place in the packet. Numbers are in network byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Field {
    /// What the offset counts from.
    pub base: Base,
    /// Offset in bits.
    pub offset: u16,
    /// Width in bits, 1 to 128.
    pub width: u16,
}

impl Field {
    /// The `width` bits at bit `offset` from `base`.
    pub const fn bits(base: Base, offset: u16, width: u16) -> Self {
        assert!(width >= 1 && width <= 128);
        Self { base, offset, width }
    }

    /// The `length` bytes at byte `offset` from `base`.
    pub const fn bytes(base: Base, offset: u16, length: u16) -> Self {
        Self::bits(base, offset * 8, length * 8)
    }

    /// The largest value that fits.
    pub const fn max(self) -> u128 {
        u128::MAX >> (128 - self.width)
    }

    /// The first byte that the field touches, and one past the last.
    pub const fn byte_range(self) -> (usize, usize) {
        (self.offset as usize / 8, (self.offset as usize + self.width as usize).div_ceil(8))
    }

    /// Whether the two share a bit.
    pub fn overlaps(self, other: Field) -> bool {
        let end = |f: Field| u32::from(f.offset) + u32::from(f.width);
        self.base == other.base
            && u32::from(self.offset) < end(other)
            && u32::from(other.offset) < end(self)
    }

    /// The field's name, if it has one.
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|(_, f)| *f == self).map(|(n, _)| *n)
    }

    /// The field of that name.
    pub fn named(name: &str) -> Option<Field> {
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, f)| *f)
    }

    /// All named fields.
    pub fn all_named() -> impl Iterator<Item = (&'static str, Field)> {
        NAMES.iter().copied()
    }
}

impl fmt::Display for Field {
    /// `ip.ttl`, or `net[64+8]` (bit offset and width) for a field without a name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}[{}+{}]", self.base, self.offset, self.width),
        }
    }
}

const DATA: Base = Base::Data;
const NET: Base = Base::Header(Header::Network);
const TRANSPORT: Base = Base::Header(Header::Transport);
const ANNO: Base = Base::Annotation;

macro_rules! fields {
    ($($(#[$doc:meta])* $module:ident { $($name:ident = $text:literal $base:ident $offset:expr, $width:expr;)* })*) => {
        $($(#[$doc])* #[allow(missing_docs)] pub mod $module {
            use super::*;
            $(pub const $name: Field = Field::bits($base, $offset, $width);)*
        })*
        static NAMES: &[(&str, Field)] = &[$($((concat!(stringify!($module), ".", $text), $module::$name),)*)*];
    };
}

const META: Base = Base::Meta;

fields! {
    /// Ethernet, at the first data byte; `vlan` fields hold where the type says so.
    eth {
        DST = "dst" DATA 0, 48; SRC = "src" DATA 48, 48; TYPE = "type" DATA 96, 16;
    }
    /// The first and second 802.1Q/802.1ad tag and the types behind them.
    vlan {
        TCI = "tci" DATA 112, 16; PCP = "pcp" DATA 112, 3; DEI = "dei" DATA 115, 1; ID = "id" DATA 116, 12;
        TYPE = "type" DATA 128, 16;
        TCI2 = "tci2" DATA 144, 16; PCP2 = "pcp2" DATA 144, 3; DEI2 = "dei2" DATA 147, 1; ID2 = "id2" DATA 148, 12;
        TYPE2 = "type2" DATA 160, 16;
    }
    /// IPv4 (RFC 791).
    ip {
        VERSION = "version" NET 0, 4; HL = "hl" NET 4, 4; TOS = "tos" NET 8, 8; DSCP = "dscp" NET 8, 6; ECN = "ecn" NET 14, 2;
        LEN = "len" NET 16, 16; ID = "id" NET 32, 16; FLAGS = "flags" NET 48, 3; DF = "df" NET 49, 1; MF = "mf" NET 50, 1;
        FRAG = "frag" NET 51, 13; FLAGS_FRAG = "flags_frag" NET 48, 16; TTL = "ttl" NET 64, 8; PROTO = "proto" NET 72, 8;
        CHECKSUM = "checksum" NET 80, 16; SRC = "src" NET 96, 32; DST = "dst" NET 128, 32;
    }
    /// IPv6 (RFC 8200).
    ip6 {
        VERSION = "version" NET 0, 4; CLASS = "class" NET 4, 8; DSCP = "dscp" NET 4, 6; ECN = "ecn" NET 10, 2;
        FLOW = "flow" NET 12, 20; PLEN = "plen" NET 32, 16; NEXT = "next" NET 48, 8; HLIM = "hlim" NET 56, 8;
        SRC = "src" NET 64, 128; DST = "dst" NET 192, 128;
    }
    /// What IPv6's extension headers have in common (RFC 8200), for one that follows the IPv6 header.
    ip6_ext {
        NEXT = "next" NET 320, 8; LEN = "len" NET 328, 8;
    }
    /// IPv6's fragment header (RFC 8200), where it follows the IPv6 header.
    ip6_frag {
        NEXT = "next" NET 320, 8; OFFSET = "offset" NET 336, 13; MORE = "more" NET 351, 1; ID = "id" NET 352, 32;
    }
    /// What TCP and UDP have in common.
    transport {
        SPORT = "sport" TRANSPORT 0, 16; DPORT = "dport" TRANSPORT 16, 16;
    }
    /// TCP (RFC 9293).
    tcp {
        SEQ = "seq" TRANSPORT 32, 32; ACK = "ack" TRANSPORT 64, 32; OFFSET = "offset" TRANSPORT 96, 4;
        FLAGS = "flags" TRANSPORT 104, 8; WINDOW = "window" TRANSPORT 112, 16; CHECKSUM = "checksum" TRANSPORT 128, 16;
        URGENT = "urgent" TRANSPORT 144, 16;
    }
    /// UDP (RFC 768).
    udp {
        LEN = "len" TRANSPORT 32, 16; CHECKSUM = "checksum" TRANSPORT 48, 16;
    }
    /// GRE (RFC 2784), at the transport header.
    gre {
        FLAGS = "flags" TRANSPORT 0, 13; VERSION = "version" TRANSPORT 13, 3; PROTO = "proto" TRANSPORT 16, 16;
    }
    /// VXLAN (RFC 7348), behind a UDP header.
    vxlan {
        FLAGS = "flags" TRANSPORT 64, 8; VNI = "vni" TRANSPORT 96, 24;
    }
    /// ICMP (RFC 792) and ICMPv6 (RFC 4443).
    icmp {
        TYPE = "type" TRANSPORT 0, 8; CODE = "code" TRANSPORT 8, 8; CHECKSUM = "checksum" TRANSPORT 16, 16;
        ID = "id" TRANSPORT 32, 16; SEQ = "seq" TRANSPORT 48, 16; REST = "rest" TRANSPORT 32, 32;
    }
    /// Network service header (RFC 8300), at the network header.
    nsh {
        VERSION = "version" NET 0, 2; TTL = "ttl" NET 4, 6; LENGTH = "length" NET 10, 6; MD_TYPE = "md_type" NET 20, 4;
        NEXT = "next" NET 24, 8; SPI = "spi" NET 32, 24; SI = "si" NET 56, 8;
    }
    /// ARP for Ethernet and IPv4 (RFC 826), at the network header.
    arp {
        HTYPE = "htype" NET 0, 16; PTYPE = "ptype" NET 16, 16; HLEN = "hlen" NET 32, 8; PLEN = "plen" NET 40, 8;
        OP = "op" NET 48, 16; SHA = "sha" NET 64, 48; SPA = "spa" NET 112, 32; THA = "tha" NET 144, 48; TPA = "tpa" NET 192, 32;
    }
    /// Annotations.
    anno {
        DST_IP = "dst_ip" ANNO (annotation::DST_IP * 8) as u16, 32;
        DST_IP6 = "dst_ip6" ANNO (annotation::DST_IP6 * 8) as u16, 128;
        PAINT = "paint" ANNO (annotation::PAINT * 8) as u16, 8;
        ICMP_PARAMETER_PROBLEM = "icmp_param" ANNO (annotation::ICMP_PARAMETER_PROBLEM * 8) as u16, 8;
        FIX_IP_SRC = "fix_ip_src" ANNO (annotation::FIX_IP_SRC * 8) as u16, 8;
        VLAN_TCI = "vlan_tci" ANNO (annotation::VLAN_TCI * 8) as u16, 16;
        AGGREGATE = "aggregate" ANNO (annotation::AGGREGATE * 8) as u16, 32;
        EXTRA_LENGTH = "extra_length" ANNO (annotation::EXTRA_LENGTH * 8) as u16, 32;
    }
    /// Properties of the packet. `avail_*` is the number of bytes from a header to the end of
    /// the data, 0 if the header is not set; tests on it guard every read of the header.
    meta {
        LEN = "len" META 0, 32;
        AVAIL_MAC = "avail_mac" META 32, 32; AVAIL_NET = "avail_net" META 64, 32; AVAIL_TRANSPORT = "avail_transport" META 96, 32;
        HAS_MAC = "has_mac" META 128, 1; HAS_NET = "has_net" META 136, 1; HAS_TRANSPORT = "has_transport" META 144, 1;
        TYPE = "type" META 152, 8; TIMESTAMP = "timestamp" META 160, 64;
        HEADROOM = "headroom" META 224, 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_resolve() {
        for (name, field) in Field::all_named() {
            assert_eq!(Field::named(name), Some(field));
            assert!(field.width >= 1 && field.width <= 128);
        }
        assert_eq!(ip::TTL.to_string(), "ip.ttl");
        assert_eq!(Field::bytes(Base::Data, 12, 2), eth::TYPE);
        assert_eq!(Field::bits(Base::Data, 4, 8).to_string(), "data[4+8]");
    }

    #[test]
    fn overlap_is_a_shared_bit_of_one_base() {
        assert!(ip::FLAGS_FRAG.overlaps(ip::FRAG));
        assert!(!ip::TTL.overlaps(ip::PROTO));
        assert!(!ip::VERSION.overlaps(eth::DST));
    }
}
