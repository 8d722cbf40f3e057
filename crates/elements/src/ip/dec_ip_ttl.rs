//! DecIPTTL.

use ir::field::{anno, ip};
use ir::model::reject;
use ir::{Model, Op, Reason};
use net::{Batch, annotation};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::{self, NO_HEADER};

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
        category: Ip, ports: "1/1-2", processing: "a/ah",
        samples: [("", 1, 1), ("", 1, 2), ("MULTICAST false", 1, 2), ("ACTIVE false", 1, 1)]
    }
}

/// See [`DecIPTTL::CLASS`].
pub(crate) struct DecIPTTL {
    multicast: bool,
    active: bool,
    outputs: usize,
}

/// The TTL is 0 or 1.
const EXPIRED: Reason = Reason("ttl-expired");

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
            let exempt =
                !self.multicast && packet.annotations().u32(annotation::DST_IP) >> 28 == 0xe;
            let Some(mut header) = ip_header::fixed_mut(packet) else {
                return Verdict::Drop(NO_HEADER);
            };
            if exempt {
                return Verdict::Pass;
            }
            if header.ttl() <= 1 {
                return Verdict::Reject(1, EXPIRED);
            }
            header.decrement_ttl();
            Verdict::Pass
        });
    }

    fn model(&self) -> Model {
        if !self.active {
            return Model::from_block(vec![Op::emit(0u8)]);
        }
        let mut block = vec![Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)])];
        if !self.multicast {
            let multicast = (anno::DST_IP.get() >> 28u8).eq(0xeu8);
            block.push(Op::when(multicast, vec![Op::emit(0u8)]));
        }
        block.push(Op::when(ip::TTL.le(1u8), reject(1, self.outputs, EXPIRED)));
        block.extend(ip_header::model_decrement_ttl());
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }
}
