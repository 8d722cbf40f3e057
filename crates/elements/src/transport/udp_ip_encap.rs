//! UDPIPEncap.

use std::net::Ipv4Addr;

use click::config::Argument;
use ir::field::{anno, ip, meta, udp};
use ir::model::{Reg, StateKind, set_bytes};
use ir::{Base, Expr, Model, Op};
use net::wire::ip_protocol::UDP;
use net::wire::{Ipv4, Udp, ipv4};
use net::{Batch, Header, Packet, annotation};

use crate::argument::{FromArgument, Ip, parse_integer, parse_value};
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::ip::ip_encap::{Destination, TOO_LONG};
use crate::ip::ip_header::NETWORK;
use crate::names::Names;
use crate::transport::transport_checksum as transport;

element! {
    /// UDPIPEncap(SRC, SPORT, DST, DPORT [, CHECKSUM]) -- puts UDP and IP headers in front of packets
    ///
    /// The packets become UDP datagrams from port SPORT of SRC to port DPORT of DST, with TTL 250
    /// and identifications that count up from 0. DST may be DST_ANNO: then each packet's
    /// destination address annotation is taken; else the annotation is set to DST. The headers
    /// are marked. Unless CHECKSUM is false, the UDP checksum is computed. Packets that would be
    /// longer than 65,535 bytes are dropped.
    ///
    /// = HANDLERS
    ///
    /// src, sport, dst, dport (read, write): addresses and ports.
    ///
    /// = SEE ALSO
    ///
    /// IPEncap, StripIPHeader, Strip
    UDPIPEncap {
        category: Transport, ports: "1/1", processing: "a/a",
        samples: [
            ("100.0.0.1, 7000, 100.0.0.3, 7001, CHECKSUM true", 1, 1),
            ("100.0.0.1, domain, DST_ANNO, 7001, false", 1, 1),
            ("100.0.0.1, 1, DST_ANNO, 7001", 1, 1)
        ]
    }
}

/// See [`UDPIPEncap::CLASS`].
pub(crate) struct UDPIPEncap {
    source: Ipv4Addr,
    source_port: u16,
    /// The annotation's if `None`.
    destination: Option<u32>,
    destination_port: u16,
    checksum: bool,
    /// Identification of the next packet.
    id: Cells,
}

/// A UDP port, by number or name.
#[derive(Default)]
struct Port(u16);

impl FromArgument for Port {
    const EXPECTED: &'static str = "a UDP port's number or name";

    fn from_argument(argument: &Argument, names: &Names, element: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        let number = parse_integer(text).and_then(|n| u16::try_from(n).ok());
        number
            .or_else(|| names.find(element, text, |m| m.udp_port))
            .or_else(|| net::wire::service::port(text, UDP))
            .map(Self)
            .ok_or_else(|| format!("'{text}' is not {}", Self::EXPECTED))
    }
}

/// Bytes of both headers.
const HEADERS: usize = 28;

impl UDPIPEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["SRC", "SPORT", "DST", "DPORT", "CHECKSUM"]);
        let source: Ip = arguments.required("SRC");
        let source_port: Port = arguments.required("SPORT");
        let destination: Destination = arguments.required("DST");
        let destination_port: Port = arguments.required("DPORT");
        let checksum = arguments.optional("CHECKSUM").unwrap_or(true);
        arguments.finish()?;
        Ok(Self {
            source: source.0,
            source_port: source_port.0,
            destination: destination.0,
            destination_port: destination_port.0,
            checksum,
            id: Cells::new([0]),
        })
    }

    /// The headers with everything but lengths, checksums, identification and a destination that
    /// varies.
    fn template(&self) -> [u8; HEADERS] {
        let mut headers = [0; HEADERS];
        let (ip, udp) = headers.split_at_mut(ipv4::HEADER_LEN);
        if let (Some(mut ip), Some(mut udp)) = (Ipv4::new(ip), Udp::new(udp)) {
            ip.set_header_len(ipv4::HEADER_LEN);
            ip.set_ttl(250);
            ip.set_protocol(UDP);
            ip.set_src(self.source);
            ip.set_dst(self.destination.unwrap_or(0).into());
            udp.set_src_port(self.source_port);
            udp.set_dst_port(self.destination_port);
        }
        headers
    }

    fn encapsulate(&self, packet: &mut Packet, template: &[u8; HEADERS], id: u16) -> Verdict {
        let payload = packet.len();
        let Ok(length) = u16::try_from(payload + HEADERS) else { return Verdict::Drop(TOO_LONG) };
        let to = self.destination.unwrap_or(packet.annotations().u32(annotation::DST_IP));
        packet.annotations_mut().set_u32(annotation::DST_IP, to);
        packet.prepend(template);
        packet.set_ip_header(0, ipv4::HEADER_LEN);
        let (ip, udp) = packet.data_mut().split_at_mut(ipv4::HEADER_LEN);
        let (Some(mut ip), Some(mut udp)) = (Ipv4::new(ip), Udp::new(udp)) else {
            return Verdict::Pass;
        };
        ip.set_total_len(length);
        ip.set_id(id);
        ip.set_dst(to.into());
        ip.fill_checksum();
        let length = length - ipv4::HEADER_LEN as u16;
        udp.set_len(length);
        if self.checksum {
            udp.fill_checksum(ip.pseudo_header(length));
        }
        Verdict::Pass
    }
}

impl Element for UDPIPEncap {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let template = self.template();
        let mut id = self.id.get(0) as u16;
        cx.each(batch, |packet, _| {
            let verdict = self.encapsulate(packet, &template, id);
            if verdict == Verdict::Pass {
                id = id.wrapping_add(1);
            }
            verdict
        });
        self.id.set(0, id.into());
    }

    fn model(&self) -> Model {
        const ID: Reg = Reg(0);
        const TO: Reg = Reg(1);
        const SUM: Reg = Reg(2);
        let mut model = Model::default();
        let id = model.declare("id", StateKind::Cells { width: 16, initial: vec![0] });
        let to = self.destination.map_or(anno::DST_IP.get(), Expr::from);
        let mut block = vec![
            Op::when(meta::LEN.gt(0xffff - HEADERS), vec![Op::Drop(TOO_LONG)]),
            Op::Read(ID, id, 0u8.into()),
            Op::Write(id, 0u8.into(), Expr::from(ID) + 1u8),
            Op::Let(TO, to),
            anno::DST_IP.set(TO),
            Op::pull(-(HEADERS as i32)),
            Op::Mark(Header::Network, 0u8.into()),
            Op::Mark(Header::Transport, 20u8.into()),
        ];
        block.extend(set_bytes(Base::Data, 0, &self.template()));
        block.extend([ip::LEN.set(meta::LEN), ip::ID.set(ID), ip::DST.set(TO)]);
        let header = Expr::sum16(NETWORK, 0u8, 20u8) ^ 0xffffu16;
        block.extend([ip::CHECKSUM.set(header), udp::LEN.set(meta::AVAIL_TRANSPORT)]);
        if self.checksum {
            let sum = transport::model_sum(TO, &meta::AVAIL_TRANSPORT.get());
            block.extend([
                Op::Let(SUM, sum ^ 0xffffu16),
                udp::CHECKSUM.set(Expr::choose(Expr::from(SUM).eq(0u8), 0xffffu16, SUM)),
            ]);
        }
        block.push(Op::emit(0u8));
        model.inputs = vec![block];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.id.clone())
    }

    fn export(&mut self, name: &str, to: &mut ElementState) {
        self.id.export(name, "id", to);
    }

    fn import(&mut self, name: &str, from: &mut ElementState, _: u64) {
        self.id.import(name, "id", from);
    }

    fn handlers(&self) -> &'static [Handler] {
        const {
            &[
                Handler::both("src"),
                Handler::both("sport"),
                Handler::both("dst"),
                Handler::both("dport"),
            ]
        }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match (handler, self.destination) {
            ("src", _) => self.source.to_string(),
            ("sport", _) => self.source_port.to_string(),
            ("dport", _) => self.destination_port.to_string(),
            (_, Some(to)) => Ipv4Addr::from_bits(to).to_string(),
            (_, None) => "DST_ANNO".to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "src" => self.source = parse_value::<Ip>(value)?.0,
            "sport" => self.source_port = parse_value::<Port>(value)?.0,
            "dport" => self.destination_port = parse_value::<Port>(value)?.0,
            _ => self.destination = parse_value::<Destination>(value)?.0,
        }
        Ok(())
    }
}
