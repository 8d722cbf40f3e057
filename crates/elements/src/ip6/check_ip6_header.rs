//! CheckIP6Header and MarkIP6Header.

use ir::field::{ip6, meta};
use ir::model::Block;
use ir::{Expr, IntervalSet, Model, Op, Reason};
use net::wire::Ipv6;
use net::wire::ipv6::HEADER_LEN;
use net::{Batch, Header, Packet};

use crate::argument::{Ip6, parse_integer};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::Element;
use crate::header_check::{Check, HeaderCheck, Reasons};
use crate::ip::ip_header;
use crate::ip6::ip6_header;

element! {
    /// CheckIP6Header([BADADDRS, OFFSET, KEYWORDS VERBOSE, DETAILS]) -- checks IPv6 headers and marks them
    ///
    /// Looks at the IPv6 header OFFSET bytes (by default 0) behind the start of the data. A packet
    /// is invalid if it is too short, its version is not 6, its payload length is more than there
    /// is, or its source is a group's address (RFC 4291, 2.7) or one of the list BADADDRS. Invalid
    /// packets go to output 1, or are dropped if that is not connected. On valid packets the
    /// header is marked, what follows it as the transport header, and bytes beyond the payload
    /// length are cut off.
    ///
    /// = KEYWORDS
    ///
    /// VERBOSE (bool, default false): whether a message is shown for each invalid packet.
    /// DETAILS (bool, default false): whether there is a handler drop_details.
    ///
    /// = HANDLERS
    ///
    /// count (read): valid packets.
    /// drops (read): invalid packets.
    /// drop_details (read): invalid packets by reason.
    ///
    /// = SEE ALSO
    ///
    /// MarkIP6Header, GetIP6Address, DecIP6HLIM
    CheckIP6Header {
        category: Ip6, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 1), ("2001:db8::1 ::, 0, DETAILS true", 1, 2), ("OFFSET 14", 1, 2)]
    }
}

/// See [`CheckIP6Header::CLASS`].
pub(crate) struct CheckIP6Header {
    offset: u16,
    bad_sources: Vec<u128>,
}

const TINY: Reason = Reason("tiny-packet");
const VERSION: Reason = Reason("bad-ip-version");
const LENGTH: Reason = Reason("bad-ip-length");
const SOURCE: Reason = Reason("bad-source-address");

const REASONS: Reasons = &[
    (TINY, "tiny packet"),
    (VERSION, "bad IP version"),
    (LENGTH, "bad IP length"),
    (SOURCE, "bad source address"),
];

impl CheckIP6Header {
    fn configure(cx: &mut Configure<'_>) -> Result<HeaderCheck<Self>, Failed> {
        let mut arguments = cx.arguments(&["BADADDRS", "OFFSET", "VERBOSE", "DETAILS"]);
        let mut list = arguments.keyword_argument("BADADDRS");
        let mut offset = arguments.keyword_argument("OFFSET");
        if list.is_none() {
            list = arguments.next_raw();
            // One number alone is an offset, as of CheckIPHeader.
            if list.as_ref().is_some_and(|l| parse_integer(&l.text).is_some()) && offset.is_none() {
                offset = list.take();
            }
        }
        let offset = offset.or_else(|| arguments.next_raw());
        let offset = offset.map_or(0, |o| ip_header::parse_offset(&mut arguments, "OFFSET", &o));
        let mut bad_sources = Vec::new();
        for word in list.iter().flat_map(|list| list.words()) {
            let address: Ip6 = arguments.parse("BADADDRS", &word).unwrap_or_default();
            bad_sources.push(address.0.to_bits());
        }
        HeaderCheck::configure(arguments, "IP6", REASONS, Self { offset, bad_sources })
    }
}

impl Check for CheckIP6Header {
    fn check(&self, packet: &mut Packet) -> Result<(), Reason> {
        let offset = usize::from(self.offset);
        let bytes = packet.data().get(offset..).unwrap_or(&[]);
        let ip = Ipv6::new(bytes).ok_or(TINY)?;
        if ip.version() != 6 {
            return Err(VERSION);
        }
        let length = ip.payload_len();
        if HEADER_LEN + length > bytes.len() {
            return Err(LENGTH);
        }
        let source = ip.src();
        if source.is_multicast() || self.bad_sources.contains(&source.to_bits()) {
            return Err(SOURCE);
        }
        packet.set_ip_header(offset, 40);
        packet.truncate(offset + 40 + length);
        Ok(())
    }

    fn model(&self, invalid: &dyn Fn(Reason) -> Block) -> Block {
        let field = |field| Expr::from(ip_header::unmarked(field, self.offset));
        let end = || field(ip6::PLEN) + self.offset + 40u8;
        let bad = self.bad_sources.iter().map(|&a| (a, a)).collect();
        let bad = IntervalSet::from_intervals(bad).union(&ip6_header::groups());
        vec![
            Op::when(meta::LEN.lt(self.offset + 40), invalid(TINY)),
            Op::when(field(ip6::VERSION).ne(6u8), invalid(VERSION)),
            Op::when(end().gt(meta::LEN), invalid(LENGTH)),
            Op::when(field(ip6::SRC).is_in(bad), invalid(SOURCE)),
            Op::Mark(Header::Network, self.offset.into()),
            Op::Mark(Header::Transport, (self.offset + 40).into()),
            Op::Truncate(end()),
        ]
    }
}

element! {
    /// MarkIP6Header([OFFSET]) -- marks where IPv6 headers are, without checking them
    ///
    /// Marks the IPv6 header OFFSET bytes (by default 0) behind the start of the data, and the
    /// transport header 40 bytes behind it.
    ///
    /// = SEE ALSO
    ///
    /// CheckIP6Header, MarkIPHeader
    MarkIP6Header {
        category: Ip6, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("14", 1, 1)]
    }
}

/// See [`MarkIP6Header::CLASS`].
pub(crate) struct MarkIP6Header {
    offset: u16,
}

impl MarkIP6Header {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["OFFSET"]);
        let offset = arguments.keyword_argument("OFFSET").or_else(|| arguments.next_raw());
        let offset = offset.map_or(0, |o| ip_header::parse_offset(&mut arguments, "OFFSET", &o));
        arguments.finish()?;
        Ok(Self { offset })
    }
}

impl Element for MarkIP6Header {
    fn push(&mut self, _port: usize, batch: &mut Batch, _cx: &mut Context<'_>) {
        for packet in batch.iter_mut() {
            packet.set_ip_header(self.offset.into(), 40);
        }
    }

    fn model(&self) -> Model {
        Model::from_block(vec![
            Op::Mark(Header::Network, self.offset.into()),
            Op::Mark(Header::Transport, (self.offset + 40).into()),
            Op::emit(0u8),
        ])
    }
}
