//! SetTCPChecksum.

use ir::field::{ip, meta, tcp};
use ir::model::Reg;
use ir::{Expr, Model, Op, Reason};
use net::wire::Tcp;
use net::{Batch, Packet};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::{self, NO_HEADER};
use crate::transport::transport_checksum as transport;

element! {
    /// SetTCPChecksum([FIXOFF]) -- computes the checksum of TCP packets
    ///
    /// Expects TCP packets with their IP header marked. Computes the checksum anew. Packets that
    /// end before their IP length says, or that are too short for TCP, are dropped. If FIXOFF is
    /// true, TCP header lengths that cannot be are corrected first.
    ///
    /// = SEE ALSO
    ///
    /// CheckTCPHeader, SetIPChecksum, SetUDPChecksum
    SetTCPChecksum {
        category: Transport, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("true", 1, 1)]
    }
}

/// See [`SetTCPChecksum::CLASS`].
pub(crate) struct SetTCPChecksum {
    fix_offset: bool,
}

const LENGTH: Reason = Reason("bad-tcp-length");

impl SetTCPChecksum {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["FIXOFF"]);
        let fix_offset = arguments.optional("FIXOFF").unwrap_or(false);
        arguments.finish()?;
        Ok(Self { fix_offset })
    }

    fn set(&self, packet: &mut Packet) -> Verdict {
        let Some(ip) = ip_header::view(packet) else { return Verdict::Drop(NO_HEADER) };
        let (length, is_fragment) =
            (usize::from(ip.total_len()).checked_sub(ip.header_len()), ip.is_fragment());
        let segment = length.and_then(|n| packet.transport_mut()?.get_mut(..n));
        let Some(mut tcp) = segment.and_then(Tcp::new) else { return Verdict::Drop(LENGTH) };
        let length = tcp.bytes().len();
        if self.fix_offset {
            let fixed = match tcp.header_len() {
                0..20 => 20,
                header if header > length && !is_fragment => length & !3,
                header => header,
            };
            tcp.set_header_len(fixed);
        }
        tcp.set_checksum(0);
        let Some(ip) = ip_header::view(packet) else { return Verdict::Pass };
        let segment = packet.transport().and_then(|t| t.get(..length)).unwrap_or(&[]);
        let sum = transport::sum(ip, segment).checksum();
        if let Some(mut tcp) = packet.transport_mut().and_then(Tcp::new) {
            tcp.set_checksum(sum);
        }
        Verdict::Pass
    }
}

impl Element for SetTCPChecksum {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.set(packet));
    }

    fn model(&self) -> Model {
        const LENGTH_REG: Reg = Reg(0);
        const TO: Reg = Reg(1);
        let length = || Expr::from(LENGTH_REG);
        let mut block = vec![
            Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)]),
            Op::when(ip::LEN.lt(ip_header::says_length() + 20u8), vec![Op::Drop(LENGTH)]),
            Op::Let(LENGTH_REG, ip::LEN.get() - ip_header::says_length()),
            Op::when(length().gt(meta::AVAIL_TRANSPORT), vec![Op::Drop(LENGTH)]),
        ];
        if self.fix_offset {
            let too_long = (tcp::OFFSET.get() * 4u8).gt(length()).and(ip_header::FRAGMENT.eq(0u8));
            block.push(Op::If(
                tcp::OFFSET.lt(5u8),
                vec![tcp::OFFSET.set(5u8)],
                vec![Op::when(too_long, vec![tcp::OFFSET.set(length() / 4u8)])],
            ));
        }
        block.push(tcp::CHECKSUM.set(0u8));
        block.extend(transport::model_destination(TO));
        let sum = transport::model_sum(TO, &length());
        block.extend([tcp::CHECKSUM.set(sum ^ 0xffffu16), Op::emit(0u8)]);
        Model::from_block(block)
    }
}
