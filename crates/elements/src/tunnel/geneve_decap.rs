//! GENEVEDecap.

use ir::field::{ip, meta, transport, udp};
use ir::model::{Block, Reg, reject};
use ir::{Expr, Field, Model, Op, Reason};
use net::Header;
use net::wire::{self, ether, ip_protocol};

use super::geneve_encap::{FRAMES, PORT};
use super::udp_tunnel::{HEADER, TOO_SHORT};
use crate::configure::{Configure, Failed};
use crate::element::Element;
use crate::ip::ip_header::{self, FRAGMENT, TRANSPORT};
use crate::tunnel::vxlan_encap::Vni;

element! {
    /// GENEVEDecap(VNI [, DPORT]) -- takes Ethernet frames out of GENEVE packets
    ///
    /// Expects IP packets whose IP and transport headers are marked, as CheckIPHeader does. Of GENEVE
    /// packets (RFC 8926) with the network identifier VNI that hold a frame, all headers up to that
    /// frame are removed, options too, and so is what follows the UDP datagram. The frame's header is
    /// marked.
    ///
    /// What is no GENEVE packet (not UDP, to another port than DPORT, or a fragment), holds no frame or
    /// has another network identifier, goes to output 1 as it came, or is dropped if that is not
    /// connected. Packets are dropped whose UDP length is wrong, that end before the frame's header
    /// does, that are of another version, that are control packets, or that have critical options,
    /// as none is known here. UDP checksums are not looked at: CheckUDPHeader does that.
    ///
    /// = KEYWORDS
    ///
    /// DPORT (port, default 6081): the UDP destination port of GENEVE packets.
    ///
    /// = HANDLERS
    ///
    /// vni (read, write): the network identifier.
    ///
    /// = EXAMPLE
    ///
    /// ... -> Strip(14) -> CheckIPHeader -> CheckUDPHeader -> d :: GENEVEDecap(5000) -> ...
    ///
    /// = SEE ALSO
    ///
    /// GENEVEEncap, VXLANDecap, CheckIPHeader, CheckUDPHeader
    GENEVEDecap {
        category: Tunnel, ports: "1/1-2", processing: "a/ah",
        samples: [("5921370", 1, 2), ("5000, DPORT 53", 1, 1)]
    }
}

/// See [`GENEVEDecap::CLASS`].
pub(crate) struct GENEVEDecap {
    vni: Vni,
    port: u16,
    outputs: usize,
}

/// Not a UDP packet to the GENEVE port.
const NOT_GENEVE: Reason = Reason("not-geneve");
/// The GENEVE network identifier is another one.
const OTHER_VNI: Reason = Reason("other-vni");
/// The GENEVE packet holds no Ethernet frame.
const OTHER_PROTOCOL: Reason = Reason("other-protocol");
const LENGTH: Reason = Reason("bad-udp-length");
/// The version of GENEVE is not 0.
const VERSION: Reason = Reason("bad-geneve-version");
/// The packet is about the tunnel, and holds nothing for others.
const CONTROL: Reason = Reason("geneve-control");
/// An option must be understood, and none is.
const CRITICAL: Reason = Reason("geneve-critical-option");

/// Where the GENEVE header begins in a datagram.
const GENEVE: u16 = wire::udp::HEADER_LEN as u16;
/// Bytes of a datagram in front of options.
const HEADERS: u16 = GENEVE + HEADER as u16;

impl GENEVEDecap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["VNI", "DPORT"]);
        let vni = arguments.required("VNI");
        let port = arguments.keyword("DPORT").unwrap_or(PORT);
        arguments.finish()?;
        Ok(Self { vni, port, outputs: cx.outputs() })
    }
}

impl Element for GENEVEDecap {
    fn model(&self) -> Model {
        const LEN: Reg = Reg(0);
        const OPTIONS: Reg = Reg(1);
        let reject = |reason| reject(1, self.outputs, reason);
        let is_udp =
            ip_header::is_missing().not().and(ip::PROTO.eq(ip_protocol::UDP)).and(FRAGMENT.eq(0u8));
        let fits = udp::LEN.ge(HEADERS).and(udp::LEN.le(meta::AVAIL_TRANSPORT));
        let bits = |at: u16, width: u16| Field::bits(TRANSPORT, GENEVE * 8 + at, width);
        // Most packets have no options: where their frames begin does not depend on the packet.
        let take_out = |options: Expr, length: Expr| -> Block {
            vec![
                Op::when(length.clone().lt(ether::HEADER_LEN), vec![Op::Drop(TOO_SHORT)]),
                Op::pull(Expr::Position(Header::Transport) + HEADERS + options),
                Op::Truncate(length),
                Op::Mark(Header::Mac, 0u8.into()),
                Op::Unmark(Header::Network),
                Op::Unmark(Header::Transport),
                Op::emit(0u8),
            ]
        };
        Model::from_block(vec![
            Op::when(is_udp.not(), reject(NOT_GENEVE)),
            Op::when(meta::AVAIL_TRANSPORT.lt(HEADERS), vec![Op::Drop(LENGTH)]),
            Op::when(transport::DPORT.ne(self.port), reject(NOT_GENEVE)),
            Op::when(fits.not(), vec![Op::Drop(LENGTH)]),
            Op::when(bits(0, 2).ne(0u8), vec![Op::Drop(VERSION)]),
            Op::when(bits(8, 1).ne(0u8), vec![Op::Drop(CONTROL)]),
            Op::when(bits(9, 1).ne(0u8), vec![Op::Drop(CRITICAL)]),
            Op::when(bits(16, 16).ne(FRAMES), reject(OTHER_PROTOCOL)),
            Op::when(bits(32, 24).ne(self.vni.0), reject(OTHER_VNI)),
            Op::Let(LEN, udp::LEN.get() - HEADERS),
            Op::Let(OPTIONS, bits(2, 6).get() * 4u8),
            Op::when(Expr::from(LEN).lt(OPTIONS), vec![Op::Drop(TOO_SHORT)]),
            Op::If(
                Expr::from(OPTIONS).eq(0u8),
                take_out(0u8.into(), LEN.into()),
                take_out(OPTIONS.into(), Expr::from(LEN) - OPTIONS),
            ),
        ])
    }

    value_handler!("vni", vni.0);
}
