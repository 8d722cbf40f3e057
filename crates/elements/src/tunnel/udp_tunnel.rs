//! Tunnels over UDP: headers that are the same for all packets, but for lengths, the destination, and a source port by
//! which flows are distinguished.

use std::net::Ipv4Addr;

use ir::field::{anno, eth, ip, ip6, meta, transport, udp};
use ir::hash::HashFunction;
use ir::model::{Block, Reg, set_bytes};
use ir::{Base, Cond, Expr, Field, IntervalSet, Model, Op, Reason};
use net::Header;
use net::checksum::Sum;
use net::wire::{self, ether, ether_type, ip_protocol, ipv4};

use crate::argument::{Ip, parse_value};
use crate::configure::Arguments;
use crate::ip::ip_encap::{Destination, TOO_LONG};
use crate::ip::ip_header::{FRAGMENT, unmarked};

/// Packets without an Ethernet header.
pub(super) const TOO_SHORT: Reason = Reason("too-short");
/// What is to be carried is not IP.
pub(super) const NOT_IP: Reason = Reason("not-ip");

/// Bytes of the tunnel's own header.
pub(super) const HEADER: usize = 8;

/// Where the UDP header begins.
const UDP: usize = ipv4::HEADER_LEN;
/// Where the tunnel's header begins.
const TUNNEL: usize = UDP + wire::udp::HEADER_LEN;
/// Bytes of all new headers.
const HEADERS: usize = TUNNEL + HEADER;

/// What a tunnel carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside {
    /// Ethernet frames.
    Frame,
    /// IPv4 and IPv6 packets; this byte of the header and the next hold their length.
    Ip { length_at: u16 },
}

/// The outer headers of a tunnel.
pub(super) struct UdpTunnel {
    source: Ipv4Addr,
    /// The annotation's if `None`.
    destination: Destination,
    /// A hash if `None`.
    source_port: Option<u16>,
    destination_port: u16,
    ttl: u8,
    tos: u8,
}

impl UdpTunnel {
    /// Reads SRC, DST, SPORT, DPORT (with this default), TTL and TOS.
    pub(super) fn of(arguments: &mut Arguments<'_, '_>, port: u16) -> Self {
        let source: Ip = arguments.required("SRC");
        let destination = arguments.required("DST");
        let source_port = arguments.keyword("SPORT");
        let destination_port = arguments.keyword("DPORT").unwrap_or(port);
        let ttl = arguments.keyword("TTL").unwrap_or(250);
        let tos = arguments.keyword("TOS").unwrap_or(0);
        let source = source.0;
        Self { source, destination, source_port, destination_port, ttl, tos }
    }

    /// The headers with all that does not vary; what varies is 0.
    fn template(&self, header: [u8; HEADER]) -> [u8; HEADERS] {
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
        headers[TUNNEL..].copy_from_slice(&header);
        headers
    }

    /// What the element means that puts these headers in front of packets.
    pub(super) fn model(&self, header: [u8; HEADER], inside: Inside) -> Model {
        const TO: Reg = Reg(0);
        const PORT: Reg = Reg(1);
        let template = self.template(header);
        let refused = match inside {
            Inside::Frame => Op::when(meta::LEN.lt(ether::HEADER_LEN), vec![Op::Drop(TOO_SHORT)]),
            Inside::Ip { .. } => {
                let is_ip = is_ip(4, 20).or(is_ip(6, 40));
                Op::when(is_ip.not(), vec![Op::Drop(NOT_IP)])
            }
        };
        let mut block = vec![
            refused,
            Op::when(meta::LEN.gt(0xffff - HEADERS), vec![Op::Drop(TOO_LONG)]),
            Op::Let(TO, self.destination.0.map_or(anno::DST_IP.get(), Expr::from)),
            anno::DST_IP.set(TO),
        ];
        match self.source_port {
            Some(port) => block.push(Op::Let(PORT, port.into())),
            None => block.extend(model_source_port(PORT, inside)),
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
        if let Inside::Ip { length_at } = inside {
            let length = Field::bytes(Base::Data, TUNNEL as u16 + length_at, 2);
            block.push(length.set(meta::LEN.get() - HEADERS as u16));
        }
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

    /// The handlers `src` and `dst`.
    pub(super) fn read(&self, handler: &str) -> String {
        match self.destination.0 {
            _ if handler == "src" => self.source.to_string(),
            Some(to) => Ipv4Addr::from_bits(to).to_string(),
            None => "DST_ANNO".to_string(),
        }
    }

    pub(super) fn write(&mut self, handler: &str, value: &str) -> Result<(), String> {
        if handler == "src" {
            self.source = parse_value::<Ip>(value)?.0;
        } else {
            self.destination = parse_value(value)?;
        }
        Ok(())
    }
}

/// Whether the data begin with an IP header of this version and length.
fn is_ip(version: u8, length: u16) -> Cond {
    meta::LEN.ge(length).and(Field::bits(Base::Data, 0, 4).eq(version))
}

/// Binds `port` to a port of 49152 to 65535 that the flow inside decides; uses this register and
/// three more from it on.
fn model_source_port(port: Reg, inside: Inside) -> Block {
    let behind = if inside == Inside::Frame { ether::HEADER_LEN as u16 } else { 0 };
    let at = |field: Field| unmarked(field, behind);
    let [source, destination, rest] = [1, 2, 3].map(|i| Reg(port.0 + i));
    // Ports of protocols that have them, if they lie behind an IP header of this length.
    let ports = |length: u16| Field::bytes(Base::Data, behind + length, 4);
    let has_ports = |protocol: Field, length: u16| {
        let with_ports = [ip_protocol::TCP, ip_protocol::UDP, ip_protocol::SCTP];
        let with_ports = with_ports.map(|p| (p.into(), p.into())).to_vec();
        let with_ports = IntervalSet::from_intervals(with_ports);
        meta::LEN.ge(behind + length + 4).and(at(protocol).is_in(with_ports))
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
    let holds = |kind: u16, version: u8, length: u16| match inside {
        Inside::Frame => eth::TYPE.eq(kind).and(meta::LEN.ge(behind + length)),
        Inside::Ip { .. } => is_ip(version, length),
    };
    let header = match inside {
        Inside::Frame => Field::bytes(Base::Data, 0, behind).get(),
        Inside::Ip { .. } => 0u8.into(),
    };
    let hash = Expr::Hash(
        HashFunction::MixedFnv1a,
        vec![header, source.into(), destination.into(), rest.into()],
    );
    let v6 = Op::when(holds(ether_type::IPV6, 6, 40), v6);
    vec![
        Op::Let(source, 0u8.into()),
        Op::Let(destination, 0u8.into()),
        Op::Let(rest, 0u8.into()),
        Op::If(holds(ether_type::IPV4, 4, 20), v4, vec![v6]),
        Op::Let(port, hash & 0x3fffu16 | 0xc000u16),
    ]
}
