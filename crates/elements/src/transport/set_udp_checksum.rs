//! SetUDPChecksum.

use ir::field::{meta, udp};
use ir::model::Reg;
use ir::{Expr, Model, Op, Reason};
use net::wire::Udp;
use net::{Batch, Packet, checksum};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::{self, NO_HEADER};
use crate::transport::transport_checksum as transport;

element! {
    /// SetUDPChecksum() -- computes the checksum of UDP packets
    ///
    /// Expects UDP packets with their IP header marked. Computes the checksum anew; one that
    /// comes to zero is sent as 0xffff (RFC 768). Packets that end before their UDP length says
    /// are dropped.
    ///
    /// = SEE ALSO
    ///
    /// CheckUDPHeader, SetIPChecksum, SetTCPChecksum
    SetUDPChecksum {
        category: Transport, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1)]
    }
}

/// See [`SetUDPChecksum::CLASS`].
pub(crate) struct SetUDPChecksum;

const LENGTH: Reason = Reason("bad-udp-length");

impl SetUDPChecksum {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        cx.arguments(&[]).finish()?;
        Ok(Self)
    }
}

fn set(packet: &mut Packet) -> Verdict {
    if ip_header::view(packet).is_none() {
        return Verdict::Drop(NO_HEADER);
    }
    let Some(mut udp) = packet.transport_mut().and_then(Udp::new_checked) else {
        return Verdict::Drop(LENGTH);
    };
    let length = usize::from(udp.len());
    udp.set_checksum(0);
    let Some(ip) = ip_header::view(packet) else { return Verdict::Pass };
    let segment = packet.transport().and_then(|t| t.get(..length)).unwrap_or(&[]);
    let sum = checksum::udp_field(transport::sum(ip, segment).checksum());
    if let Some(mut udp) = packet.transport_mut().and_then(Udp::new) {
        udp.set_checksum(sum);
    }
    Verdict::Pass
}

impl Element for SetUDPChecksum {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| set(packet));
    }

    fn model(&self) -> Model {
        const LENGTH_REG: Reg = Reg(0);
        const SUM: Reg = Reg(1);
        const TO: Reg = Reg(2);
        let length = || Expr::from(LENGTH_REG);
        let mut block = vec![
            Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
            Op::when(meta::AVAIL_TRANSPORT.lt(8u8), vec![Op::Drop(LENGTH)]),
            Op::Let(LENGTH_REG, udp::LEN.get()),
            Op::when(
                length().lt(8u8).or(length().gt(meta::AVAIL_TRANSPORT)),
                vec![Op::Drop(LENGTH)],
            ),
            udp::CHECKSUM.set(0u8),
        ];
        block.extend(transport::model_destination(TO));
        let sum = transport::model_sum(TO, &length());
        block.extend([
            Op::Let(SUM, sum ^ 0xffffu16),
            udp::CHECKSUM.set(Expr::choose(Expr::from(SUM).eq(0u8), 0xffffu16, SUM)),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }
}
