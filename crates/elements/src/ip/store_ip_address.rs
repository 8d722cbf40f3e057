//! StoreIPAddress.

use std::net::Ipv4Addr;

use ir::field::{anno, ip, meta, tcp, udp};
use ir::model::{Reg, reject};
use ir::{Base, Expr, Field, Model, Op, Reason};
use net::checksum::Delta;
use net::wire::ip_protocol;
use net::wire::{Tcp, Udp};
use net::{Batch, Packet};

use crate::argument::Ip;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::ip::ip_header::{self, End, NO_HEADER};

element! {
    /// StoreIPAddress([ADDR,] OFFSET) -- writes an IP address into packets
    ///
    /// Writes ADDR, or the destination address annotation if ADDR is not given, OFFSET bytes
    /// behind the start of the data. A zero annotation is not written. Packets that end before
    /// go to output 1, or are dropped if that is not connected. No checksum is changed.
    ///
    /// OFFSET may be src or dst: then the source or destination address of the marked IP header
    /// is replaced, and the checksums of IP, TCP and UDP are updated incrementally.
    ///
    /// = SEE ALSO
    ///
    /// SetIPAddress, GetIPAddress, SetIPChecksum
    StoreIPAddress {
        category: Ip, ports: "1/1-2", processing: "a/ah",
        samples: [
            ("16", 1, 2), ("0.0.0.0, 12", 1, 1), ("7.7.7.7, 40", 1, 2),
            ("100.64.0.1, src", 1, 2), ("dst", 1, 1)
        ]
    }
}

/// See [`StoreIPAddress::CLASS`].
pub(crate) struct StoreIPAddress {
    /// The annotation's if `None`.
    address: Option<Ipv4Addr>,
    to: To,
    outputs: usize,
}

#[derive(Clone, Copy)]
enum To {
    /// So many bytes behind the start of the data.
    Data(u16),
    /// Into the marked IP header.
    Header(End),
}

const TOO_SHORT: Reason = Reason("too-short");

impl StoreIPAddress {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let outputs = cx.outputs();
        let span = cx.span();
        let mut arguments = cx.arguments(&["ADDR", "OFFSET"]);
        let offset = arguments.keyword_argument("OFFSET");
        let with_address = arguments.remaining() + usize::from(offset.is_some()) > 1;
        let address = match arguments.keyword_argument("ADDR") {
            Some(word) => arguments.parse::<Ip>("ADDR", &word),
            None if with_address => arguments.optional::<Ip>("ADDR"),
            None => None,
        };
        let to = match offset.or_else(|| arguments.next_raw()) {
            Some(word) if word.text.eq_ignore_ascii_case("src") => To::Header(End::Source),
            Some(word) if word.text.eq_ignore_ascii_case("dst") => To::Header(End::Destination),
            Some(word) => To::Data(ip_header::parse_offset(&mut arguments, "OFFSET", &word)),
            None => {
                let error = "StoreIPAddress is missing its argument OFFSET, a number, src or dst";
                let error = ir::Diagnostic::error("missing-argument", error);
                arguments.report(error.label(span, ""));
                To::Data(0)
            }
        };
        arguments.finish()?;
        Ok(Self { address: address.map(|a| a.0), to, outputs })
    }

    fn store(&self, packet: &mut Packet) -> Verdict {
        let address = self.address.unwrap_or(packet.annotations().dst_ip());
        if self.address.is_none() && address.is_unspecified() {
            return Verdict::Pass;
        }
        match self.to {
            To::Data(offset) => {
                let offset = usize::from(offset);
                let Some(bytes) = packet.data_mut().get_mut(offset..offset + 4) else {
                    return Verdict::Reject(1, TOO_SHORT);
                };
                bytes.copy_from_slice(&address.octets());
            }
            To::Header(end) => {
                let ip = ip_header::fixed_mut(packet).filter(|ip| ip.header_len() >= 20);
                let Some(mut ip) = ip else { return Verdict::Reject(1, NO_HEADER) };
                let delta = Delta::NONE.u32(end.address(&ip), address.to_bits());
                ip.set_checksum(delta.apply(ip.checksum()));
                match end {
                    End::Source => ip.set_src(address),
                    End::Destination => ip.set_dst(address),
                }
                if !ip.is_later_fragment() {
                    update_transport(ip.protocol(), packet, delta);
                }
            }
        }
        Verdict::Pass
    }
}

/// Updates the checksum of TCP or UDP after a change in the pseudo-header.
#[inline]
fn update_transport(protocol: u8, packet: &mut Packet, delta: Delta) {
    let Some(bytes) = packet.transport_mut() else { return };
    match protocol {
        ip_protocol::TCP => {
            if let Some(mut tcp) = Tcp::new(bytes) {
                tcp.set_checksum(delta.apply(tcp.checksum()));
            }
        }
        ip_protocol::UDP => {
            if let Some(mut udp) = Udp::new(bytes) {
                udp.set_checksum(delta.apply_udp(udp.checksum()));
            }
        }
        _ => {}
    }
}

impl Element for StoreIPAddress {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        cx.each(batch, |packet, _| self.store(packet));
    }

    fn model(&self) -> Model {
        const OLD: Reg = Reg(0);
        const SUM: Reg = Reg(1);
        let address = || match self.address {
            Some(address) => Expr::from(address.to_bits()),
            None => anno::DST_IP.get(),
        };
        let mut block = Vec::new();
        if self.address.is_none() {
            block.push(Op::when(anno::DST_IP.eq(0u8), vec![Op::emit(0u8)]));
        }
        match self.to {
            To::Data(offset) => block.extend([
                Op::when(meta::LEN.lt(offset + 4), reject(1, self.outputs, TOO_SHORT)),
                Field::bytes(Base::Data, offset, 4).set(address()),
            ]),
            To::Header(end) => {
                let field = end.field();
                let updated = |sum: Field| {
                    ip_header::model_update(sum, ip_header::halves(OLD.into(), address()))
                };
                let missing = ip_header::is_missing().or(ip::HL.lt(5u8));
                let present = |protocol, length: u8| {
                    ip::PROTO.eq(protocol).and(meta::AVAIL_TRANSPORT.ge(length))
                };
                let sent = Expr::choose(Expr::from(SUM).eq(0u8), 0xffffu16, SUM);
                block.extend([
                    Op::when(missing, reject(1, self.outputs, NO_HEADER)),
                    Op::Let(OLD, field.get()),
                    ip::CHECKSUM.set(updated(ip::CHECKSUM)),
                    field.set(address()),
                    Op::when(ip::FRAG.ne(0u8), vec![Op::emit(0u8)]),
                    Op::when(
                        present(ip_protocol::TCP, 20),
                        vec![tcp::CHECKSUM.set(updated(tcp::CHECKSUM)), Op::emit(0u8)],
                    ),
                    Op::when(
                        present(ip_protocol::UDP, 8).and(udp::CHECKSUM.ne(0u8)),
                        vec![Op::Let(SUM, updated(udp::CHECKSUM)), udp::CHECKSUM.set(sent)],
                    ),
                ]);
            }
        }
        block.push(Op::emit(0u8));
        Model::from_block(block)
    }
}
