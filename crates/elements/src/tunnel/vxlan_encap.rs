//! VXLANEncap.

use std::net::Ipv4Addr;

use click::config::Argument;
use ir::field::{anno, eth, ip, ip6, meta, transport, udp};
use ir::hash::HashFunction;
use ir::model::{Block, Reg, set_bytes};
use ir::{Base, Expr, Field, IntervalSet, Model, Op, Reason};
use net::Header;
use net::checksum::Sum;
use net::wire::{self, ether, ether_type, ip_protocol, ipv4, vxlan};

use crate::argument::{FromArgument, Ip, parse_integer, parse_value};
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext};
use crate::ip::ip_encap::{Destination, TOO_LONG};
use crate::ip::ip_header::{FRAGMENT, unmarked};
use crate::names::Names;

element! {
    /// VXLANEncap(VNI, SRC, DST [, KEYWORDS]) -- puts Ethernet frames into VXLAN packets
    ///
    /// Puts a VXLAN header (RFC 7348) with the network identifier VNI in front of each frame, and
    /// in front of that UDP and IP headers, from SRC to DST. DST may be DST_ANNO: then each
    /// packet's destination address annotation is taken; else the annotation is set to DST. The
    /// new headers are marked.
    ///
    /// The UDP source port is of 49152 to 65535. It is a hash of the frame's addresses and type
    /// and, behind them, of IP addresses, protocol and ports: packets of a flow take the same path,
    /// and those of many flows spread. The UDP checksum is 0. IP packets have "do not fragment"
    /// set and identification 0 (RFC 6864). Packets that would be longer than 65,535 bytes are
    /// dropped, and so are those too short for an Ethernet header.
    ///
    /// = KEYWORDS
    ///
    /// SPORT (port): a fixed UDP source port.
    /// DPORT (port, default 4789): the UDP destination port.
    /// TTL (number, default 250), TOS (number, default 0): fields of the IP header.
    ///
    /// = HANDLERS
    ///
    /// vni, src, dst (read, write): the arguments.
    ///
    /// = EXAMPLE
    ///
    /// ... -> VXLANEncap(5000, 192.0.2.1, 192.0.2.2) -> EtherEncap(0x0800, ...) -> ToDevice(...)
    ///
    /// = SEE ALSO
    ///
    /// VXLANDecap, UDPIPEncap, GREEncap
    VXLANEncap {
        category: Tunnel, ports: "1/1", processing: "a/a",
        samples: [
            ("5000, 192.0.2.1, 192.0.2.2", 1, 1),
            ("0xffffff, 192.0.2.1, DST_ANNO, SPORT 4000, DPORT 8472, TTL 3, TOS 0xb8", 1, 1)
        ]
    }
}

/// See [`VXLANEncap::CLASS`].
pub(crate) struct VXLANEncap {
    vni: Vni,
    source: Ipv4Addr,
    /// The annotation's if `None`.
    destination: Destination,
    /// A hash if `None`.
    source_port: Option<u16>,
    destination_port: u16,
    ttl: u8,
    tos: u8,
}

/// A VXLAN network identifier.
#[derive(Clone, Copy, Default)]
pub(crate) struct Vni(pub(crate) u32);

impl FromArgument for Vni {
    const EXPECTED: &'static str = "a VXLAN network identifier of 0 to 16777215";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        let text = argument.text.as_str();
        let number = parse_integer(text).and_then(|n| u32::try_from(n).ok());
        let vni = number.filter(|n| *n < 1 << 24).map(Self);
        vni.ok_or_else(|| format!("'{text}' is not {}", Self::EXPECTED))
    }
}

/// Packets without an Ethernet header.
pub(crate) const TOO_SHORT: Reason = Reason("too-short");

/// Where the UDP header begins.
const UDP: usize = ipv4::HEADER_LEN;
/// Where the VXLAN header begins.
const VXLAN: usize = UDP + wire::udp::HEADER_LEN;
/// Bytes of all new headers.
const HEADERS: usize = VXLAN + vxlan::HEADER_LEN;

impl VXLANEncap {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["VNI", "SRC", "DST", "SPORT", "DPORT", "TTL", "TOS"]);
        let vni = arguments.required("VNI");
        let source: Ip = arguments.required("SRC");
        let destination = arguments.required("DST");
        let source_port = arguments.keyword("SPORT");
        let destination_port = arguments.keyword("DPORT").unwrap_or(vxlan::PORT);
        let ttl = arguments.keyword("TTL").unwrap_or(250);
        let tos = arguments.keyword("TOS").unwrap_or(0);
        arguments.finish()?;
        let source = source.0;
        Ok(Self { vni, source, destination, source_port, destination_port, ttl, tos })
    }

    /// The headers with all that does not vary; what varies is 0.
    fn template(&self) -> [u8; HEADERS] {
        let mut headers = [0; HEADERS];
        if let Some(mut ip) = wire::Ipv4::new(&mut headers[..]) {
            ip.set_header_len(ipv4::HEADER_LEN);
            ip.set_tos(self.tos);
            ip.set_fragment_word(ipv4::DF);
            ip.set_ttl(self.ttl);
            ip.set_protocol(ip_protocol::UDP);
            ip.set_src(self.source);
            ip.set_dst(self.destination.0.unwrap_or(0).into());
        }
        if let Some(mut udp) = wire::Udp::new(&mut headers[UDP..]) {
            udp.set_dst_port(self.destination_port);
        }
        headers[VXLAN..].copy_from_slice(&vxlan::header(self.vni.0));
        headers
    }
}

/// Binds `port` to a port of 49152 to 65535 that the frame's flow decides; uses this register and
/// three more from it on.
fn model_source_port(port: Reg) -> Block {
    const BEHIND: u16 = ether::HEADER_LEN as u16;
    let at = |field: Field| unmarked(field, BEHIND);
    let [source, destination, rest] = [1, 2, 3].map(|i| Reg(port.0 + i));
    // Ports of protocols that have them, if they lie behind an IP header of this length.
    let ports = |length: u16| Field::bytes(Base::Data, BEHIND + length, 4);
    let has_ports = |protocol: Field, length: u16| {
        let with_ports = [ip_protocol::TCP, ip_protocol::UDP, ip_protocol::SCTP];
        let with_ports = with_ports.map(|p| (p.into(), p.into())).to_vec();
        let with_ports = IntervalSet::from_intervals(with_ports);
        meta::LEN.ge(BEHIND + length + 4).and(at(protocol).is_in(with_ports))
    };
    let is_whole = at(FRAGMENT).eq(0u8);
    let v4 = vec![
        Op::Let(source, at(ip::SRC).get()),
        Op::Let(destination, at(ip::DST).get()),
        Op::Let(rest, at(ip::PROTO).get()),
        Op::when(
            at(ip::HL).eq(5u8).and(is_whole).and(has_ports(ip::PROTO, 20)),
            vec![Op::Let(rest, Expr::from(rest) << 32u8 | ports(20))],
        ),
    ];
    let v6 = vec![
        Op::Let(source, at(ip6::SRC).get()),
        Op::Let(destination, at(ip6::DST).get()),
        Op::Let(rest, at(ip6::FLOW).get() << 8u8 | at(ip6::NEXT)),
        Op::when(
            has_ports(ip6::NEXT, 40),
            vec![Op::Let(rest, Expr::from(rest) << 32u8 | ports(40))],
        ),
    ];
    let holds = |kind: u16, length: u16| eth::TYPE.eq(kind).and(meta::LEN.ge(BEHIND + length));
    let header = Field::bytes(Base::Data, 0, BEHIND).get();
    let hash = Expr::Hash(
        HashFunction::MixedFnv1a,
        vec![header, source.into(), destination.into(), rest.into()],
    );
    vec![
        Op::Let(source, 0u8.into()),
        Op::Let(destination, 0u8.into()),
        Op::Let(rest, 0u8.into()),
        Op::If(holds(ether_type::IPV4, 20), v4, vec![Op::when(holds(ether_type::IPV6, 40), v6)]),
        Op::Let(port, hash & 0x3fffu16 | 0xc000u16),
    ]
}

impl Element for VXLANEncap {
    fn model(&self) -> Model {
        const TO: Reg = Reg(0);
        const PORT: Reg = Reg(1);
        let template = self.template();
        let mut block = vec![
            Op::when(meta::LEN.lt(ether::HEADER_LEN), vec![Op::Drop(TOO_SHORT)]),
            Op::when(meta::LEN.gt(0xffff - HEADERS), vec![Op::Drop(TOO_LONG)]),
            Op::Let(TO, self.destination.0.map_or(anno::DST_IP.get(), Expr::from)),
            anno::DST_IP.set(TO),
        ];
        match self.source_port {
            Some(port) => block.push(Op::Let(PORT, port.into())),
            None => block.extend(model_source_port(PORT)),
        }
        block.extend([
            Op::pull(-(HEADERS as i32)),
            Op::Mark(Header::Network, 0u8.into()),
            Op::Mark(Header::Transport, UDP.into()),
        ]);
        block.extend(set_bytes(Base::Data, 0, &template));
        // Of the template's bytes, the destination counts only if it does not vary.
        let constant = u32::from(!Sum::of(&template[..UDP]).checksum());
        let sum = Expr::from(constant) + meta::LEN;
        let sum = match self.destination.0 {
            Some(_) => sum,
            None => sum + (Expr::from(TO) >> 16u8) + (Expr::from(TO) & 0xffffu16),
        };
        block.extend([
            ip::LEN.set(meta::LEN),
            ip::DST.set(TO),
            ip::CHECKSUM.set(sum.fold16() ^ 0xffffu16),
            transport::SPORT.set(PORT),
            udp::LEN.set(meta::AVAIL_TRANSPORT),
            Op::emit(0u8),
        ]);
        Model::from_block(block)
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("vni"), Handler::both("src"), Handler::both("dst")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match (handler, self.destination.0) {
            ("vni", _) => self.vni.0.to_string(),
            ("src", _) => self.source.to_string(),
            (_, Some(to)) => Ipv4Addr::from_bits(to).to_string(),
            (_, None) => "DST_ANNO".to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "vni" => self.vni = parse_value(value)?,
            "src" => self.source = parse_value::<Ip>(value)?.0,
            _ => self.destination = parse_value(value)?,
        }
        Ok(())
    }
}
