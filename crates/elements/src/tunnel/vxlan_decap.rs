//! VXLANDecap.

use ir::field::{ip, meta, transport, udp};
use ir::model::{Reg, reject};
use ir::{Expr, Field, Model, Op, Reason};
use net::Header;
use net::wire::{self, ether, ip_protocol, vxlan};

use crate::configure::{Configure, Failed};
use crate::element::Element;
use crate::ip::ip_header::{self, FRAGMENT, TRANSPORT};
use crate::tunnel::udp_tunnel::TOO_SHORT;
use crate::tunnel::vxlan_encap::Vni;

element! {
    /// VXLANDecap(VNI [, DPORT]) -- takes Ethernet frames out of VXLAN packets
    ///
    /// Expects IP packets whose IP and transport headers are marked, as CheckIPHeader does. Of
    /// VXLAN packets (RFC 7348) with the network identifier VNI, all headers up to the inner
    /// Ethernet frame are removed, and so is what follows the UDP datagram. The frame's header is
    /// marked.
    ///
    /// What is no VXLAN packet (not UDP, to another port than DPORT, or a fragment), or has another
    /// network identifier, goes to output 1 as it came, or is dropped if that is not connected.
    /// Packets are dropped whose UDP length is wrong, that end before the frame's header does, or
    /// whose flags say that they have no network identifier. UDP checksums are not looked at:
    /// CheckUDPHeader does that.
    ///
    /// = KEYWORDS
    ///
    /// DPORT (port, default 4789): the UDP destination port of VXLAN packets.
    ///
    /// = HANDLERS
    ///
    /// vni (read, write): the network identifier.
    ///
    /// = EXAMPLE
    ///
    /// ... -> Strip(14) -> CheckIPHeader -> CheckUDPHeader -> d :: VXLANDecap(5000) -> ...
    ///
    /// = SEE ALSO
    ///
    /// VXLANEncap, CheckIPHeader, CheckUDPHeader, GREDecap
    VXLANDecap {
        category: Tunnel, ports: "1/1-2", processing: "a/ah",
        samples: [("5921370", 1, 2), ("5000, DPORT 53", 1, 1)]
    }
}

/// See [`VXLANDecap::CLASS`].
pub(crate) struct VXLANDecap {
    vni: Vni,
    port: u16,
    outputs: usize,
}

/// Not a UDP packet to the VXLAN port.
const NOT_VXLAN: Reason = Reason("not-vxlan");
/// The VXLAN network identifier is another one.
const OTHER_VNI: Reason = Reason("other-vni");
const LENGTH: Reason = Reason("bad-udp-length");
/// The VXLAN header does not have the flags of RFC 7348.
const FLAGS: Reason = Reason("bad-vxlan-flags");

/// Where the VXLAN header begins in a datagram.
const VXLAN: u16 = wire::udp::HEADER_LEN as u16;
/// Bytes of a datagram in front of the frame.
const HEADERS: u16 = VXLAN + vxlan::HEADER_LEN as u16;

impl VXLANDecap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["VNI", "DPORT"]);
        let vni = arguments.required("VNI");
        let port = arguments.keyword("DPORT").unwrap_or(vxlan::PORT);
        arguments.finish()?;
        Ok(Self { vni, port, outputs: cx.outputs() })
    }
}

impl Element for VXLANDecap {
    fn model(&self) -> Model {
        const LEN: Reg = Reg(0);
        let reject = |reason| reject(1, self.outputs, reason);
        let is_udp =
            ip_header::is_missing().not().and(ip::PROTO.eq(ip_protocol::UDP)).and(FRAGMENT.eq(0u8));
        let fits = udp::LEN.ge(HEADERS).and(udp::LEN.le(meta::AVAIL_TRANSPORT));
        let flag = Field::bytes(TRANSPORT, VXLAN, 1).get() & vxlan::FLAG_VNI;
        Model::from_block(vec![
            Op::when(is_udp.not(), reject(NOT_VXLAN)),
            Op::when(meta::AVAIL_TRANSPORT.lt(VXLAN), vec![Op::Drop(LENGTH)]),
            Op::when(transport::DPORT.ne(self.port), reject(NOT_VXLAN)),
            Op::when(fits.not(), vec![Op::Drop(LENGTH)]),
            Op::when(flag.eq(0u8), vec![Op::Drop(FLAGS)]),
            Op::when(Field::bytes(TRANSPORT, VXLAN + 4, 3).ne(self.vni.0), reject(OTHER_VNI)),
            Op::Let(LEN, udp::LEN.get() - HEADERS),
            Op::when(Expr::from(LEN).lt(ether::HEADER_LEN), vec![Op::Drop(TOO_SHORT)]),
            Op::pull(Expr::Position(Header::Transport) + HEADERS),
            Op::Truncate(LEN.into()),
            Op::Mark(Header::Mac, 0u8.into()),
            Op::Unmark(Header::Network),
            Op::Unmark(Header::Transport),
            Op::emit(0u8),
        ])
    }

    value_handler!("vni", vni.0);
}
