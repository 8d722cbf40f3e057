//! CheckTCPHeader.

use ir::field::{ip, meta, tcp};
use ir::model::{Block, Reg};
use ir::{Op, Reason};
use net::Packet;
use net::wire::Tcp;
use net::wire::ip_protocol::TCP;

use crate::configure::{Configure, Failed};
use crate::header_check::{Check, HeaderCheck, Reasons};
use crate::ip::ip_header;
use crate::transport::transport_checksum as transport;

element! {
    /// CheckTCPHeader([KEYWORDS VERBOSE, DETAILS, CHECKSUM]) -- checks TCP headers
    ///
    /// Expects IP packets with their header marked. A packet is invalid if it is not TCP, ends
    /// before its IP length says, its TCP header length is below 20 or more than there is, or its
    /// checksum is wrong. Invalid packets go to output 1, or are dropped if that is not connected.
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
    /// CheckIPHeader, CheckUDPHeader, CheckICMPHeader, SetTCPChecksum
    CheckTCPHeader {
        category: Transport, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 2), ("CHECKSUM false, DETAILS true", 1, 1)]
    }
}

/// See [`CheckTCPHeader::CLASS`].
pub(crate) struct CheckTCPHeader {
    pub(crate) checksum: bool,
}

/// Not a TCP packet, or one without a marked IP header.
pub(crate) const NOT_TCP: Reason = Reason("not-tcp");
/// The packet is shorter than its TCP header.
pub(crate) const LENGTH: Reason = Reason("bad-tcp-length");
/// The TCP checksum is wrong.
pub(crate) const CHECKSUM: Reason = Reason("bad-tcp-checksum");

const REASONS: Reasons =
    &[(NOT_TCP, "not TCP"), (LENGTH, "bad packet length"), (CHECKSUM, "bad TCP checksum")];

impl CheckTCPHeader {
    fn configure(cx: &mut Configure<'_>) -> Result<HeaderCheck<Self>, Failed> {
        let mut arguments = cx.arguments(&["VERBOSE", "DETAILS", "CHECKSUM"]);
        let checksum = arguments.keyword("CHECKSUM").unwrap_or(true);
        HeaderCheck::configure(arguments, "TCP", REASONS, Self { checksum })
    }
}

impl Check for CheckTCPHeader {
    fn check(&self, packet: &mut Packet) -> Result<(), Reason> {
        let ip = ip_header::view(packet).filter(|ip| ip.protocol() == TCP).ok_or(NOT_TCP)?;
        let tcp = packet.transport().and_then(Tcp::new).ok_or(LENGTH)?;
        let length = usize::from(ip.total_len()).checked_sub(ip.header_len());
        let segment = length.and_then(|length| tcp.bytes().get(..length)).ok_or(LENGTH)?;
        if tcp.header_len() < 20 || tcp.header_len() > segment.len() {
            return Err(LENGTH);
        }
        if self.checksum && transport::sum(ip, segment).checksum() != 0 {
            return Err(CHECKSUM);
        }
        Ok(())
    }

    fn model(&self, invalid: &dyn Fn(Reason) -> Block) -> Block {
        const TO: Reg = Reg(0);
        let length = ip::LEN.get() - ip_header::says_length();
        let header_length = || tcp::OFFSET.get() * 4u8;
        let fits = ip::LEN
            .ge(ip_header::says_length())
            .and(length.clone().le(meta::AVAIL_TRANSPORT))
            .and(tcp::OFFSET.ge(5u8))
            .and(header_length().le(length.clone()));
        let mut block = vec![
            Op::when(ip_header::is_missing().or(ip::PROTO.ne(TCP)), invalid(NOT_TCP)),
            Op::when(meta::AVAIL_TRANSPORT.lt(20u8), invalid(LENGTH)),
            Op::when(fits.not(), invalid(LENGTH)),
        ];
        if self.checksum {
            block.extend(transport::model_destination(TO));
            let sum = transport::model_sum(TO, &length);
            block.push(Op::when(sum.ne(0xffffu16), invalid(CHECKSUM)));
        }
        block
    }
}
