//! GTPDecap.

use ir::field::{ip, meta, transport, udp};
use ir::model::{Block, Reg, reject};
use ir::{Expr, Field, Model, Op, Reason};
use net::Header;
use net::wire::{self, ip_protocol};

use super::gtp_encap::{DATA, PORT};
use super::udp_tunnel::HEADER;
use crate::configure::{Configure, Failed};
use crate::element::Element;
use crate::ip::ip_header::{self, FRAGMENT, TRANSPORT};

element! {
    /// GTPDecap(TEID [, DPORT]) -- takes IP packets out of packets of GTP-U
    ///
    /// Expects IP packets whose IP and transport headers are marked, as CheckIPHeader does. Of G-PDUs
    /// (3GPP TS 29.281) with the tunnel endpoint identifier TEID, all headers up to the packet inside are
    /// removed, and so is what follows it. No header of it is marked: CheckIPHeader or CheckIP6Header
    /// comes next. Sequence numbers are not looked at. Up to four extension headers are passed over: the
    /// PDU session container, and those that need not be understood.
    ///
    /// What is no GTP-U (not UDP, to another port than DPORT, or a fragment), is another message than a
    /// G-PDU, or has another identifier, goes to output 1 as it came, or is dropped if that is not
    /// connected. Packets are dropped whose lengths do not agree, that are of another version, that have
    /// more extension headers, or one that must be understood. UDP checksums are not looked at:
    /// CheckUDPHeader does that.
    ///
    /// = KEYWORDS
    ///
    /// DPORT (port, default 2152): the UDP destination port of GTP-U.
    ///
    /// = HANDLERS
    ///
    /// teid (read, write): the tunnel endpoint identifier.
    ///
    /// = EXAMPLE
    ///
    /// ... -> Strip(14) -> CheckIPHeader -> CheckUDPHeader -> GTPDecap(0x10) -> CheckIPHeader -> ...
    ///
    /// = SEE ALSO
    ///
    /// GTPEncap, GENEVEDecap, CheckIPHeader, CheckUDPHeader
    GTPDecap {
        category: Tunnel, ports: "1/1-2", processing: "a/ah",
        samples: [("16", 1, 2), ("5000, DPORT 53", 1, 1)]
    }
}

/// See [`GTPDecap::CLASS`].
pub(crate) struct GTPDecap {
    teid: u32,
    port: u16,
    outputs: usize,
}

/// Not a UDP packet to the port of GTP-U.
const NOT_GTP: Reason = Reason("not-gtp");
/// The tunnel endpoint identifier is another one.
const OTHER_TEID: Reason = Reason("other-teid");
/// The message is about the tunnel, and holds no packet of a user.
const NOT_DATA: Reason = Reason("not-gtp-data");
const UDP_LENGTH: Reason = Reason("bad-udp-length");
/// A length of GTP is beyond the datagram.
const LENGTH: Reason = Reason("bad-gtp-length");
/// The version of GTP is not 1, or it is GTP'.
const VERSION: Reason = Reason("bad-gtp-version");
/// There are more extension headers than are passed over, or one must be understood.
const EXTENSION: Reason = Reason("gtp-extension");

/// Where the header of GTP begins in a datagram.
const GTP: u16 = wire::udp::HEADER_LEN as u16;
/// Bytes of a datagram in front of optional fields.
const HEADERS: u16 = GTP + HEADER as u16;
/// Bytes of the optional fields, of which the last is the type of the next extension header.
const OPTIONAL: u16 = 4;
/// Extension headers that are passed over.
const MOST_EXTENSIONS: usize = 4;
/// The extension header of 5G's user plane.
const PDU_SESSION: u8 = 0x85;

impl GTPDecap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["TEID", "DPORT"]);
        let teid = arguments.required("TEID");
        let port = arguments.keyword("DPORT").unwrap_or(PORT);
        arguments.finish()?;
        Ok(Self { teid, port, outputs: cx.outputs() })
    }
}

/// Bytes of the message behind its first eight.
const LEN: Reg = Reg(0);
/// The type of the next extension header.
const NEXT: Reg = Reg(1);
/// Where it begins in the datagram.
const AT: Reg = Reg(2);
/// Its length.
const STEP: Reg = Reg(3);

/// Passes over the extension headers that are left, `more` at the most.
fn pass_over(more: usize) -> Block {
    let next = Expr::from(NEXT);
    if more == 0 {
        return vec![Op::when(next.ne(0u8), vec![Op::Drop(EXTENSION)])];
    }
    // The first bit of the type: whoever receives it must understand it.
    let is_strange = next.clone().ge(0x80u8).and(next.clone().ne(PDU_SESSION));
    let end = || Expr::from(LEN) + HEADERS;
    let mut each = vec![
        Op::when(is_strange, vec![Op::Drop(EXTENSION)]),
        Op::when(Expr::from(AT).ge(end()), vec![Op::Drop(LENGTH)]),
        Op::Let(STEP, Expr::load(TRANSPORT, AT, 8) * 4u8),
        Op::when(Expr::from(STEP).eq(0u8), vec![Op::Drop(LENGTH)]),
        Op::Let(AT, Expr::from(AT) + STEP),
        Op::when(Expr::from(AT).gt(end()), vec![Op::Drop(LENGTH)]),
        Op::Let(NEXT, Expr::load(TRANSPORT, Expr::from(AT) - 1u8, 8)),
    ];
    each.extend(pass_over(more - 1));
    vec![Op::when(next.ne(0u8), each)]
}

/// Removes what is in front of the packet inside, which is of this length.
fn take_out(front: Expr, length: Expr) -> Block {
    vec![
        Op::pull(Expr::Position(Header::Transport) + front),
        Op::Truncate(length),
        Op::Unmark(Header::Network),
        Op::Unmark(Header::Transport),
        Op::emit(0u8),
    ]
}

impl Element for GTPDecap {
    fn model(&self) -> Model {
        let reject = |reason| reject(1, self.outputs, reason);
        let is_udp =
            ip_header::is_missing().not().and(ip::PROTO.eq(ip_protocol::UDP)).and(FRAGMENT.eq(0u8));
        let fits = udp::LEN.ge(HEADERS).and(udp::LEN.le(meta::AVAIL_TRANSPORT));
        let bytes = |at: u16, count: u16| Field::bytes(TRANSPORT, GTP + at, count);
        let flags = |at: u16, width: u16| Field::bits(TRANSPORT, GTP * 8 + at, width);
        // The next type is there if one of the flags says so, and counts if the first does.
        let next = Field::bytes(TRANSPORT, HEADERS + OPTIONAL - 1, 1);
        let mut with_options = vec![
            Op::when(Expr::from(LEN).lt(OPTIONAL), vec![Op::Drop(LENGTH)]),
            Op::Let(NEXT, 0u8.into()),
            Op::when(flags(5, 1).eq(1u8), vec![Op::Let(NEXT, next.get())]),
            Op::Let(AT, (HEADERS + OPTIONAL).into()),
        ];
        with_options.extend(pass_over(MOST_EXTENSIONS));
        with_options.extend(take_out(AT.into(), Expr::from(LEN) + HEADERS - AT));
        Model::from_block(vec![
            Op::when(is_udp.not(), reject(NOT_GTP)),
            Op::when(meta::AVAIL_TRANSPORT.lt(HEADERS), vec![Op::Drop(UDP_LENGTH)]),
            Op::when(transport::DPORT.ne(self.port), reject(NOT_GTP)),
            Op::when(fits.not(), vec![Op::Drop(UDP_LENGTH)]),
            Op::when(flags(0, 4).ne(3u8), vec![Op::Drop(VERSION)]),
            Op::when(bytes(1, 1).ne(DATA), reject(NOT_DATA)),
            Op::when(bytes(4, 4).ne(self.teid), reject(OTHER_TEID)),
            Op::Let(LEN, bytes(2, 2).get()),
            Op::when((Expr::from(LEN) + HEADERS).gt(udp::LEN), vec![Op::Drop(LENGTH)]),
            Op::If(flags(5, 3).eq(0u8), take_out(HEADERS.into(), LEN.into()), with_options),
        ])
    }

    value_handler!("teid", teid);
}
