//! CheckICMPHeader.

use ir::field::{icmp, ip, meta};
use ir::model::Block;
use ir::{Expr, IntervalSet, Op, Reason};
use net::Packet;
use net::wire::Icmpv4;
use net::wire::icmpv4::{self, message};
use net::wire::ip_protocol::ICMP;

use crate::configure::{Configure, Failed};
use crate::header_check::{Check, HeaderCheck, Reasons};
use crate::ip::ip_header::{self, TRANSPORT};

element! {
    /// CheckICMPHeader([KEYWORDS VERBOSE, DETAILS]) -- checks ICMP headers
    ///
    /// Expects IP packets with their header marked. A packet is invalid if it is not ICMP, has
    /// not the length that its type needs, or its checksum is wrong. Errors must quote at least
    /// 28 bytes; timestamps have exactly 20 bytes, information requests and replies exactly 8.
    /// Invalid packets go to output 1, or are dropped if that is not connected.
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
    /// CheckIPHeader, CheckTCPHeader, CheckUDPHeader, ICMPError
    CheckICMPHeader {
        category: Ip, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 2), ("DETAILS true", 1, 1)]
    }
}

/// See [`CheckICMPHeader::CLASS`].
pub(crate) struct CheckICMPHeader;

const NOT_ICMP: Reason = Reason("not-icmp");
/// The packet is shorter than its ICMP header.
const LENGTH: Reason = Reason("bad-icmp-length");
/// The ICMP checksum is wrong.
const CHECKSUM: Reason = Reason("bad-icmp-checksum");

const REASONS: Reasons =
    &[(NOT_ICMP, "not ICMP"), (LENGTH, "bad packet length"), (CHECKSUM, "bad ICMP checksum")];

/// Least and greatest length of a message of this type.
fn lengths(message_type: u8) -> (usize, usize) {
    match message_type {
        error if icmpv4::is_error(error) => (8 + 28, usize::MAX),
        message::TIMESTAMP | message::TIMESTAMP_REPLY => (20, 20),
        message::INFO_REQUEST | message::INFO_REPLY => (8, 8),
        _ => (8, usize::MAX),
    }
}

impl CheckICMPHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<HeaderCheck<Self>, Failed> {
        let arguments = cx.arguments(&["VERBOSE", "DETAILS"]);
        HeaderCheck::configure(arguments, "ICMP", REASONS, Self)
    }
}

impl Check for CheckICMPHeader {
    fn check(&self, packet: &mut Packet) -> Result<(), Reason> {
        if ip_header::view(packet).is_none_or(|ip| ip.protocol() != ICMP) {
            return Err(NOT_ICMP);
        }
        let message = packet.transport().and_then(Icmpv4::new).ok_or(LENGTH)?;
        let (least, most) = lengths(message.message_type());
        if message.bytes().len() < least || message.bytes().len() > most {
            return Err(LENGTH);
        }
        if message.checksum_ok() { Ok(()) } else { Err(CHECKSUM) }
    }

    fn model(&self, invalid: &dyn Fn(Reason) -> Block) -> Block {
        let types = |wanted: (usize, usize)| {
            let types = (0..=255u8).filter(|&t| lengths(t) == wanted);
            icmp::TYPE
                .is_in(IntervalSet::from_intervals(types.map(|t| (t.into(), t.into())).collect()))
        };
        let wrong = types((36, usize::MAX))
            .and(meta::AVAIL_TRANSPORT.lt(36u8))
            .or(types((20, 20)).and(meta::AVAIL_TRANSPORT.ne(20u8)))
            .or(types((8, 8)).and(meta::AVAIL_TRANSPORT.ne(8u8)));
        let sum = Expr::sum16(TRANSPORT, 0u8, meta::AVAIL_TRANSPORT);
        vec![
            Op::when(ip_header::is_missing().or(ip::PROTO.ne(ICMP)), invalid(NOT_ICMP)),
            Op::when(meta::AVAIL_TRANSPORT.lt(8u8).or(wrong), invalid(LENGTH)),
            Op::when(sum.ne(0xffffu16), invalid(CHECKSUM)),
        ]
    }
}
