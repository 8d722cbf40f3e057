//! IPMirror.

use ir::field::{anno, ip, meta, tcp, transport};
use ir::model::Reg;
use ir::{Expr, IntervalSet, Model, Op};
use net::wire::ip_protocol::{TCP, UDP};
use net::{Batch, Packet, annotation};

use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::{self, NO_HEADER};

element! {
    /// IPMirror([DST_ANNO]) -- swaps sources and destinations
    ///
    /// Expects IP packets with their header marked. Swaps source and destination address, and,
    /// of TCP and UDP packets that are no later fragments, the ports; of TCP also sequence and
    /// acknowledgment number. No checksum changes. Unless DST_ANNO is false, the destination
    /// address annotation is set.
    ///
    /// = SEE ALSO
    ///
    /// EtherMirror
    IPMirror {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [("", 1, 1), ("false", 1, 1)]
    }
}

/// See [`IPMirror::CLASS`].
pub(crate) struct IPMirror {
    annotate: bool,
}

impl IPMirror {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["DST_ANNO"]);
        let annotate = arguments.optional("DST_ANNO").unwrap_or(true);
        arguments.finish()?;
        Ok(Self { annotate })
    }

    fn mirror(&self, packet: &mut Packet) -> Verdict {
        let Some(mut ip) = ip_header::fixed_mut(packet) else { return Verdict::Drop(NO_HEADER) };
        let source = ip.src();
        ip.swap_addresses();
        let (protocol, is_first) = (ip.protocol(), !ip.is_later_fragment());
        if self.annotate {
            packet.annotations_mut().set_u32(annotation::DST_IP, source.to_bits());
        }
        if matches!(protocol, TCP | UDP)
            && is_first
            && let Some(bytes) = packet.transport_mut().filter(|t| t.len() >= 8)
        {
            bytes[..4].rotate_left(2);
            if protocol == TCP
                && let Some(numbers) = bytes.get_mut(4..12)
            {
                numbers.rotate_left(4);
            }
        }
        Verdict::Pass
    }
}

impl Element for IPMirror {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.mirror(packet));
    }

    fn model(&self) -> Model {
        const SOURCE: Reg = Reg(0);
        const PROTOCOL: Reg = Reg(1);
        const FIRST: Reg = Reg(2);
        let swap =
            |a: ir::Field, b: ir::Field, by: Reg| vec![Op::Let(by, a.get()), a.set(b), b.set(by)];
        let mut block = vec![Op::when(ip_header::is_missing(), vec![Op::Drop(NO_HEADER)])];
        block.extend(swap(ip::SRC, ip::DST, SOURCE));
        if self.annotate {
            block.push(anno::DST_IP.set(SOURCE));
        }
        block.push(Op::Let(PROTOCOL, ip::PROTO.get()));
        let protocols =
            IntervalSet::from_intervals(vec![(TCP.into(), TCP.into()), (UDP.into(), UDP.into())]);
        let has_ports = Expr::from(PROTOCOL)
            .is_in(protocols)
            .and(ip::FRAG.eq(0u8))
            .and(meta::AVAIL_TRANSPORT.ge(8u8));
        let mut ports = swap(transport::SPORT, transport::DPORT, FIRST);
        let numbers = Expr::from(PROTOCOL).eq(TCP).and(meta::AVAIL_TRANSPORT.ge(12u8));
        ports.push(Op::when(numbers, swap(tcp::SEQ, tcp::ACK, FIRST)));
        block.extend([Op::when(has_ports, ports), Op::emit(0u8)]);
        Model::from_block(block)
    }
}
