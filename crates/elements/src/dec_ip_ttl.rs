//! DecIPTTL.

use ir::field::{anno, ip, meta};
use ir::model::reject;
use ir::{Expr, Model, Op, Reason};
use net::{Batch, checksum};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};

element! {
    /// DecIPTTL([KEYWORDS MULTICAST, ACTIVE]) -- decrements the IP time-to-live
    ///
    /// Expects IP packets with their header marked. A packet whose TTL is 0 or 1 has expired and
    /// goes unchanged to output 1, or is dropped if that is not connected. Otherwise the TTL is
    /// decremented and the checksum updated incrementally (RFC 1624).
    ///
    /// = KEYWORDS
    ///
    /// MULTICAST (bool, default true): whether packets to multicast addresses are decremented too.
    /// ACTIVE (bool, default true): if false, packets pass unchanged.
    ///
    /// = SEE ALSO
    ///
    /// CheckIPHeader, ICMPError
    DecIPTTL {
        ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 1), ("", 1, 2), ("MULTICAST false", 1, 2), ("ACTIVE false", 1, 1)]
    }
}

/// See [`DecIPTTL::CLASS`].
pub(crate) struct DecIPTTL {
    multicast: bool,
    active: bool,
    outputs: usize,
}

const EXPIRED: Reason = Reason("ttl-expired");
const NO_HEADER: Reason = Reason("no-ip-header");

impl DecIPTTL {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["MULTICAST", "ACTIVE"]);
        let multicast = arguments.keyword("MULTICAST").unwrap_or(true);
        let active = arguments.keyword("ACTIVE").unwrap_or(true);
        arguments.finish()?;
        Ok(Self { multicast, active, outputs })
    }
}

impl Element for DecIPTTL {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        if !self.active {
            return;
        }
        cx.each(batch, |packet, _| {
            let to = packet.annotations().u32(net::annotation::DST_IP);
            let Some(header) = packet.network_mut().and_then(|n| n.first_chunk_mut::<20>()) else {
                return Verdict::Drop(NO_HEADER);
            };
            if !self.multicast && to >> 28 == 0xe {
                return Verdict::Pass;
            }
            if header[8] <= 1 {
                return Verdict::Reject(1, EXPIRED);
            }
            let old = u16::from_be_bytes([header[8], header[9]]);
            header[8] -= 1;
            let sum = u16::from_be_bytes([header[10], header[11]]);
            let sum = checksum::update_u16(sum, old, old - 0x100);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        if !self.active {
            return Model::from_block(vec![Op::emit(0u8)]);
        }
        let mut block = vec![Op::when(meta::AVAIL_NET.lt(20u8), vec![Op::Drop(NO_HEADER)])];
        if !self.multicast {
            let multicast = (anno::DST_IP.get() >> 28u8).eq(0xeu8);
            block.push(Op::when(multicast, vec![Op::emit(0u8)]));
        }
        block.push(Op::when(ip::TTL.le(1u8), reject(1, self.outputs, EXPIRED)));
        // RFC 1624: ~(~checksum + ~old + new) with new = old - 0x0100.
        let sum = ((ip::CHECKSUM.get() ^ 0xffffu16) + 0xfeffu16).fold16() ^ 0xffffu16;
        block.extend([
            ip::TTL.set(ip::TTL.get() - 1u8),
            ip::CHECKSUM.set(sum),
            Op::Emit(Expr::from(0u8)),
        ]);
        Model::from_block(block)
    }
}
