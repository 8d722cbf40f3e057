//! The versions of IP: where their headers have what patterns test.

use ir::field::{ip6, meta};
use ir::{Cond, Op};
use net::Packet;
use net::wire::Ipv6;
use net::wire::ip_protocol::IPV6_FRAGMENT;
use net::wire::ipv6::HEADER_LEN;

use super::expr::{Origin, PacketBytes};
use super::program::Headers;
use crate::ip::ip_header;
use crate::ip6::upper::EXTENSIONS;

/// A version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    #[default]
    V4,
    V6,
}

impl Version {
    /// The protocol. Of IPv6, that behind extension headers: see [`Version::with`].
    pub(super) fn protocol(self) -> PacketBytes {
        match self {
            Self::V4 => PacketBytes::new(Origin::Network, 9, 1),
            Self::V6 => PacketBytes::new(Origin::Network6, 6, 1),
        }
    }

    /// Both addresses, in words of four bytes.
    pub(super) fn addresses(self) -> [Vec<PacketBytes>; 2] {
        let (first, words) = match self {
            Self::V4 => (12, 1),
            Self::V6 => (8, 4),
        };
        [0, words].map(|before| {
            let word = |word: u16| PacketBytes::new(self.network(), first + 4 * word, 4);
            (before..before + words).map(word).collect()
        })
    }

    pub(super) fn network(self) -> Origin {
        match self {
            Self::V4 => Origin::Network,
            Self::V6 => Origin::Network6,
        }
    }

    pub(super) fn transport(self) -> Origin {
        match self {
            Self::V4 => Origin::Transport,
            Self::V6 => Origin::Transport6,
        }
    }

    /// Calls with a packet's headers. IPv6 that has extension headers is shown without them: as if the fixed header named
    /// the protocol behind them. A part of a packet is of the protocol 44, and has no transport header; nor has a packet
    /// whose extension headers are cut off or too many, which is of the protocol of the first that cannot be read.
    #[inline]
    pub(super) fn with<T>(self, packet: &Packet, call: impl FnOnce(&Headers<'_>) -> T) -> T {
        if self == Self::V4 {
            return call(&Headers::of(packet));
        }
        let headers = Headers::of_ipv6(packet);
        match headers.network.get(6) {
            Some(next) if EXTENSIONS.contains(next) => Self::without_extensions(headers, call),
            _ => call(&headers),
        }
    }

    #[cold]
    fn without_extensions<T>(headers: Headers<'_>, call: impl FnOnce(&Headers<'_>) -> T) -> T {
        let (Some(ip), Some(fixed)) =
            (Ipv6::new(headers.network), headers.network.first_chunk::<HEADER_LEN>())
        else {
            return call(&headers);
        };
        let upper = ip.upper();
        // A packet that is all of its fragments is none (RFC 6946).
        let is_fragment = upper.fragment.is_some_and(|word| word & !6 != 0);
        let mut fixed = *fixed;
        fixed[6] = if is_fragment { IPV6_FRAGMENT } else { upper.protocol };
        let end = (HEADER_LEN + ip.payload_len()).min(headers.network.len());
        let behind = headers.network.get(HEADER_LEN + upper.at..end);
        let transport = behind.filter(|_| upper.is_whole && !is_fragment).unwrap_or_default();
        call(&Headers { network: &fixed, transport, ..headers })
    }

    /// As part of a model: no header is marked.
    pub(super) fn is_missing(self) -> Cond {
        match self {
            Self::V4 => ip_header::is_missing(),
            Self::V6 => meta::AVAIL_NET.lt(HEADER_LEN as u8),
        }
    }

    /// As part of a model: what comes before rules are tested on packets with a header.
    pub(super) fn first(self) -> Option<Op> {
        let has_extension = || EXTENSIONS.map(|kind| ip6::NEXT.eq(kind)).to_vec();
        (self == Self::V6).then(|| {
            Op::when(Cond::Any(has_extension()), vec![Op::Opaque("looks behind extension headers")])
        })
    }
}
