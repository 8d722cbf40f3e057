//! CheckUDPHeader.

use ir::field::{ip, meta, udp};
use ir::model::{Block, Reg};
use ir::{Op, Reason};
use net::Packet;
use net::wire::Udp;
use net::wire::ip_protocol::UDP;
use net::wire::udp::HEADER_LEN;

use crate::configure::{Configure, Failed};
use crate::header_check::{Check, HeaderCheck, Reasons};
use crate::ip::ip_header;
use crate::transport::transport_checksum as transport;

element! {
    /// CheckUDPHeader([KEYWORDS VERBOSE, DETAILS, CHECKSUM]) -- checks UDP headers
    ///
    /// Expects IP packets with their header marked. A packet is invalid if it is not UDP, its
    /// UDP length is below 8 or reaches beyond its end, or it has a UDP checksum and that is
    /// wrong. Invalid packets go to output 1, or are dropped if that is not connected.
    ///
    /// = KEYWORDS
    ///
    /// CHECKSUM (bool, default true): whether the checksum is checked.
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
    /// CheckIPHeader, CheckTCPHeader, CheckICMPHeader, SetUDPChecksum
    CheckUDPHeader {
        category: Transport, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 2), ("CHECKSUM false, DETAILS true", 1, 1)]
    }
}

/// See [`CheckUDPHeader::CLASS`].
pub(crate) struct CheckUDPHeader {
    checksum: bool,
}

/// Not a UDP packet, or one without a marked IP header.
const NOT_UDP: Reason = Reason("not-udp");
/// The UDP length is below 8 bytes or beyond the packet.
const LENGTH: Reason = Reason("bad-udp-length");
/// The UDP checksum is wrong.
const CHECKSUM: Reason = Reason("bad-udp-checksum");

const REASONS: Reasons =
    &[(NOT_UDP, "not UDP"), (LENGTH, "bad packet length"), (CHECKSUM, "bad UDP checksum")];

impl CheckUDPHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<HeaderCheck<Self>, Failed> {
        let mut arguments = cx.arguments(&["VERBOSE", "DETAILS", "CHECKSUM"]);
        let checksum = arguments.keyword("CHECKSUM").unwrap_or(true);
        HeaderCheck::configure(arguments, "UDP", REASONS, Self { checksum })
    }
}

impl Check for CheckUDPHeader {
    fn check(&self, packet: &mut Packet) -> Result<(), Reason> {
        let ip = ip_header::view(packet).filter(|ip| ip.protocol() == UDP).ok_or(NOT_UDP)?;
        let udp = packet.transport().and_then(Udp::new).ok_or(LENGTH)?;
        let segment = udp.bytes().get(..usize::from(udp.len())).ok_or(LENGTH)?;
        if segment.len() < HEADER_LEN {
            return Err(LENGTH);
        }
        let present = self.checksum && udp.checksum() != 0;
        if present && transport::sum(ip, segment).checksum() != 0 {
            return Err(CHECKSUM);
        }
        Ok(())
    }

    fn model(&self, invalid: &dyn Fn(Reason) -> Block) -> Block {
        const TO: Reg = Reg(0);
        let length_fits = udp::LEN.ge(8u8).and(udp::LEN.le(meta::AVAIL_TRANSPORT));
        let mut block = vec![
            Op::when(ip_header::is_missing().or(ip::PROTO.ne(UDP)), invalid(NOT_UDP)),
            Op::when(meta::AVAIL_TRANSPORT.lt(8u8), invalid(LENGTH)),
            Op::when(length_fits.not(), invalid(LENGTH)),
        ];
        if self.checksum {
            let mut verify = transport::model_destination(TO);
            let sum = transport::model_sum(TO, &udp::LEN.get());
            verify.push(Op::when(sum.ne(0xffffu16), invalid(CHECKSUM)));
            block.push(Op::when(udp::CHECKSUM.ne(0u8), verify));
        }
        block
    }
}
