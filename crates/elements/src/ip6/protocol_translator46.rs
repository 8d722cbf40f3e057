//! ProtocolTranslator46.

use std::net::Ipv6Addr;

use click::config::Argument;
use ir::field::{anno, icmp, ip, ip6, meta, tcp, udp};
use ir::model::{Block, Reg, StateRef};
use ir::{Base, Cond, Expr, Field, IntervalSet, Model, Op};
use net::checksum::{Sum, pseudo_header_v6, udp_field};
use net::wire::Ipv4;
use net::wire::icmpv4::{is_error, message};
use net::wire::ip_protocol::{ICMP, TCP, UDP};
use net::{Batch, Header, Packet};

use crate::argument::FromArgument;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::ip::ip_header::{self, FRAGMENT, NETWORK, NO_HEADER};
use crate::ip6::embedding::Embedding;
use crate::ip6::host_table::{NO_HOST, Sender};
use crate::ip6::icmp_translation::{LEAST_MTU, Message, Mtus, NO_MESSAGE, echo4, error4};
use crate::ip6::ip6_header::ICMP6;
use crate::ip6::translation::{
    AddressMap, AddressMaps, Headers, ICMP_FRAGMENT, IGMP, LENGTH, NO_CHECKSUM, PROTOCOL, QUOTE,
    ROUTE, VERSION, checksum_at, drops, header6, headers4, put_word, replace, update_quoted,
    update_transport, updated, word_at,
};
use crate::names::Names;

element! {
    /// ProtocolTranslator46([SRC, DST, KEYWORDS]) -- translates IPv4 packets to IPv6
    ///
    /// Stateless translation of IP and ICMP (RFC 7915). Expects IPv4 packets with their header
    /// marked, and makes IPv6 packets of them, with marked headers. Addresses are embedded in IPv6
    /// addresses (RFC 6052): sources with the prefix SRC, destinations with DST, which is SRC if it
    /// is not given. Prefixes have 32, 40, 48, 56, 64 or 96 bits; SRC is ::ffff:0:0/96 by default,
    /// that of IPv4-mapped addresses. The destination annotation becomes the IPv6 destination.
    ///
    /// DST may also name an IP6HostMapper: destinations stand for the hosts that it has bound, and
    /// packets to others are dropped.
    ///
    /// The type of service and the time-to-live are translated, options are left out. Fragments
    /// get a fragment header; other packets have none, whatever their "don't fragment" bit says.
    /// Checksums of TCP, UDP and ICMP are updated; other protocols pass with theirs. ICMP echo
    /// messages and errors become those of ICMPv6, and so do the packets that errors quote;
    /// extensions of errors (RFC 4884) are left out, and errors have at most 1280 bytes.
    ///
    /// Packets with a source route that is not used up go unchanged to output 1, for ICMPError, or
    /// are dropped if that is not connected. Dropped are packets with an address that no host can
    /// have; by 64:ff9b::/96, also one that is not global; fragments of ICMP messages; IGMP; and
    /// ICMP messages that ICMPv6 does not have, such as redirects.
    ///
    /// The time-to-live does not change: DecIPTTL decrements it. Packets that become too long for
    /// the path are the business of IPFragmenter.
    ///
    /// = KEYWORDS
    ///
    /// UDP_ZERO (compute or drop, default compute): what becomes of UDP packets without a checksum.
    ///   Fragments of those are dropped.
    /// TOS (bool, default true): whether the type of service becomes the traffic class; if not, 0.
    /// MTU4, MTU6 (number, default 1500): the longest packets that the links on both sides take.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets that were not translated.
    ///
    /// = EXAMPLE
    ///
    /// ... -> CheckIPHeader -> DecIPTTL -> ProtocolTranslator46(64:ff9b::/96, 2001:db8:a::/96) -> ...
    ///
    /// = SEE ALSO
    ///
    /// ProtocolTranslator64, IP6HostMapper, IPFragmenter
    ProtocolTranslator46 {
        category: Ip6, ports: "1/1-2", processing: "a/ah",
        samples: [
            ("", 1, 1),
            ("64:ff9b::/96, 2001:db8:a::/96, UDP_ZERO drop", 1, 2),
            ("2001:db8::/40, 2001:db8::/64, TOS false, MTU6 1300", 1, 2),
            ("64:ff9b::/96, law_hosts", 1, 2),
        ],
        prelude: "law_hosts :: IP6HostMapper(POOL 10.0.0.0/28);",
    }
}

/// See [`ProtocolTranslator46::CLASS`].
pub(crate) struct ProtocolTranslator46 {
    maps: AddressMaps,
    /// The prefix of sources.
    servers: Embedding,
    no_checksum: NoChecksum,
    keeps_class: bool,
    mtus: Mtus,
}

/// What becomes of UDP packets without a checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum NoChecksum {
    #[default]
    Compute,
    Drop,
}

impl FromArgument for NoChecksum {
    const EXPECTED: &'static str = "compute or drop";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        match argument.text.as_str() {
            "compute" => Ok(Self::Compute),
            "drop" => Ok(Self::Drop),
            other => Err(format!("'{other}' is not {}", Self::EXPECTED)),
        }
    }
}

impl ProtocolTranslator46 {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let mut arguments = cx.arguments(&["SRC", "DST", "UDP_ZERO", "TOS", "MTU4", "MTU6"]);
        let servers = arguments.optional("SRC").unwrap_or_default();
        let source = AddressMap::Embedded(servers);
        let hosts = arguments.next_plain();
        let destination = AddressMap::hosts("DST", hosts, &mut arguments);
        let destination = destination.unwrap_or_else(|| source.clone());
        let no_checksum = arguments.keyword("UDP_ZERO").unwrap_or_default();
        let keeps_class = arguments.keyword("TOS").unwrap_or(true);
        let mtus = Mtus::of(&mut arguments);
        arguments.finish()?;
        let maps = AddressMaps { source, destination };
        Ok(Self { maps, servers, no_checksum, keeps_class, mtus })
    }

    fn translate(&self, packet: &mut Packet, now: u64) -> Verdict {
        let Some(ip) = ip_header::view(packet) else { return Verdict::Drop(NO_HEADER) };
        let total = usize::from(ip.total_len());
        let Some(bytes) = ip.bytes().get(..total) else { return Verdict::Drop(LENGTH) };
        let mut headers = match headers4(bytes) {
            Ok(headers) => headers,
            Err(ROUTE) => return Verdict::Reject(1, ROUTE),
            Err(reason) => return Verdict::Drop(reason),
        };
        if !self.keeps_class {
            headers.class = 0;
        }
        if let Some(reason) = self.maps.refusal([ip.src(), ip.dst()]) {
            return Verdict::Drop(reason);
        }
        let stand_in = ip.dst();
        let addresses = match self.maps.embed(ip, now) {
            Ok(addresses) => addresses,
            Err(reason) => return Verdict::Drop(reason),
        };
        let kind = bytes.get(headers.length).copied().unwrap_or(0);
        if headers.protocol == ICMP {
            if headers.is_part() {
                return Verdict::Drop(ICMP_FRAGMENT);
            }
            if is_error(kind) {
                return self.translate_error(packet, total, &headers, addresses, now);
            }
        }
        let old = Sum::of(&bytes[12..20]);
        let mut header = [0; 48];
        let length = header6(&headers, addresses, &mut header);
        let new = Sum::of(&header[8..40]);
        let Some(bytes) = packet.network_mut() else { return Verdict::Drop(NO_HEADER) };
        let payload = &mut bytes[headers.length..total];
        if headers.protocol == ICMP {
            let Some(kind) = echo4(kind) else { return Verdict::Drop(NO_MESSAGE) };
            let (Some(first), Some(checksum), Some(_)) =
                (word_at(payload, 0), word_at(payload, 2), word_at(payload, 6))
            else {
                return Verdict::Drop(LENGTH);
            };
            let word = u16::from(kind) << 8 | first & 0xff;
            let new = pseudo(addresses, headers.payload).plus(Sum::of_u16(word));
            put_word(payload, 0, word);
            put_word(payload, 2, updated(checksum, Sum::of_u16(first), new));
        } else if headers.is_first() && checksum_at(headers.protocol).is_some() {
            if headers.protocol == UDP && word_at(payload, 6) == Some(0) {
                if headers.is_part() || self.no_checksum == NoChecksum::Drop {
                    return Verdict::Drop(NO_CHECKSUM);
                }
                let length = word_at(payload, 4).unwrap_or(0);
                let Some(datagram) = payload.get(..length.into()).filter(|d| d.len() >= 8) else {
                    return Verdict::Drop(LENGTH);
                };
                let [source, destination] = addresses;
                let sum = pseudo_header_v6(source, destination, UDP, length.into());
                let checksum = udp_field(sum.plus(Sum::of(datagram)).checksum());
                put_word(payload, 6, checksum);
            } else if update_transport(payload, headers.protocol, old, new).is_none() {
                return Verdict::Drop(LENGTH);
            }
        }
        self.maps.destination.touch(stand_in, Sender::Server, now);
        replace(packet, headers.length..total, &header[..length], 40);
        packet.annotations_mut().set_dst_ip6(addresses[1]);
        Verdict::Pass
    }

    /// Translates an ICMP error of `total` bytes and what it quotes.
    fn translate_error(
        &self,
        packet: &mut Packet,
        total: usize,
        headers: &Headers,
        addresses: [Ipv6Addr; 2],
        now: u64,
    ) -> Verdict {
        let Some(bytes) = packet.network_mut() else { return Verdict::Drop(NO_HEADER) };
        let message = &mut bytes[headers.length..total];
        let Some((icmp, packet_quoted)) = message.split_at_mut_checked(8) else {
            return Verdict::Drop(LENGTH);
        };
        let &mut [kind, code, _, _, a, b, c, d] = icmp else { return Verdict::Drop(LENGTH) };
        let checksum = word_at(icmp, 2).unwrap_or(0);
        let from = Message { kind, code, rest: u32::from_be_bytes([a, b, c, d]) };
        // Bytes of the quoted packet before extensions (RFC 4884).
        let is_extended = matches!(
            kind,
            message::UNREACHABLE | message::TIME_EXCEEDED | message::PARAMETER_PROBLEM
        );
        let mut end = packet_quoted.len();
        if is_extended && b != 0 {
            end = end.min(4 * usize::from(b));
        }
        let (Ok(inner), Some(ip)) =
            (headers4(&packet_quoted[..end]), Ipv4::new(&packet_quoted[..end]))
        else {
            return Verdict::Drop(QUOTE);
        };
        let Some(to) = error4(from, self.mtus, ip.total_len()) else {
            return Verdict::Drop(NO_MESSAGE);
        };
        let mut echo = None;
        let embedded = match self.maps.reverse().embed(ip, now) {
            Ok(embedded) => embedded,
            Err(reason) => return Verdict::Drop(reason),
        };
        if inner.protocol == ICMP && inner.is_first() {
            let first = packet_quoted[..end].get(inner.length);
            let Some(kind) = first.and_then(|&kind| echo4(kind)) else {
                return Verdict::Drop(QUOTE);
            };
            echo = Some((kind, [Sum::ZERO, pseudo(embedded, inner.payload)]));
        }
        let mut inner_header = [0; 48];
        let class = if self.keeps_class { inner.class } else { 0 };
        let length = header6(&Headers { class, ..inner }, embedded, &mut inner_header);
        // An ICMPv6 error has no more bytes than every link takes.
        let end = end.min(inner.length + LEAST_MTU as usize - 48 - length);
        let (quoted, rest) = packet_quoted.split_at_mut(end);
        let old = Sum::of(&icmp[..2]).plus(Sum::of(&icmp[4..]));
        let old = old.plus(Sum::of(&quoted[..inner.length])).plus(Sum::of(rest));
        let sums = [Sum::of(&quoted[12..20]), Sum::of(&inner_header[8..40])];
        let changed = update_quoted(&mut quoted[inner.length..], &inner, sums, echo);

        let kept = headers.length + 8 + inner.length..headers.length + 8 + end;
        let mut new = [0; 96];
        new[40] = to.kind;
        new[41] = to.code;
        new[44..48].copy_from_slice(&to.rest.to_be_bytes());
        new[48..].copy_from_slice(&inner_header);
        let headers = Headers { payload: 8 + length + kept.len(), ..*headers };
        let mut sum = Sum::of(&new[40..48 + length]).plus(changed[1]);
        sum = sum.plus(pseudo(addresses, headers.payload));
        put_word(&mut new, 42, updated(checksum, old.plus(changed[0]), sum));
        let mut outer = [0; 48];
        header6(&headers, addresses, &mut outer);
        new[..40].copy_from_slice(&outer[..40]);
        replace(packet, kept, &new[..48 + length], 40);
        packet.annotations_mut().set_dst_ip6(addresses[1]);
        Verdict::Pass
    }
}

/// The sum of an ICMPv6 message's pseudo-header.
fn pseudo([source, destination]: [Ipv6Addr; 2], length: usize) -> Sum {
    pseudo_header_v6(source, destination, ICMP6, length as u32)
}

impl Element for ProtocolTranslator46 {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        cx.each(batch, |packet, _| self.translate(packet, now));
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let hosts = self.maps.destination.declare(&mut model);
        model.inputs = vec![self.block(hosts)];
        model
    }

    fn export(&mut self, _name: &str, to: &mut ElementState) {
        self.maps.destination.export(to);
    }

    fn import(&mut self, _name: &str, from: &mut ElementState, now: u64) {
        self.maps.destination.import(from, now);
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::count("drops")] }
    }

    fn read(&self, _: &str, _: &str, cx: &HandlerContext<'_>) -> Result<String, String> {
        Ok(drops(cx))
    }
}

// The model.

const SRC: Reg = Reg(0);
const DST: Reg = Reg(1);
const PROTO: Reg = Reg(2);
const PAYLOAD: Reg = Reg(3);
const CLASS: Reg = Reg(4);
const HOPS: Reg = Reg(5);
/// The folded sum of what a checksum covers no more.
const OLD: Reg = Reg(6);
/// An echo message's first word.
const FIRST: Reg = Reg(7);
const SUM: Reg = Reg(8);
/// The IPv6 destination.
const HOST: Reg = Reg(9);
/// Its binding, if it has one.
const STATE: Reg = Reg(10);

const TRANSPORT: Base = Base::Header(Header::Transport);

fn reg(reg: Reg) -> Expr {
    reg.into()
}

/// A field behind an IPv4 header without options.
fn behind(offset: u16, bytes: u16) -> Field {
    Field::bytes(NETWORK, 20 + offset, bytes)
}

impl ProtocolTranslator46 {
    fn block(&self, hosts: Option<StateRef>) -> Block {
        let drop_when = |cond: Cond, reason| Op::when(cond, vec![Op::Drop(reason)]);
        let has = |bytes: u16| ip::LEN.ge(20 + bytes).and(meta::AVAIL_NET.ge(20 + bytes));
        let pair = |a: u8, b: u8| {
            IntervalSet::from_intervals(vec![(a.into(), a.into()), (b.into(), b.into())])
        };
        let (echo_reply, echo) = (message::ECHO_REPLY, message::ECHO);
        let is_echo = Cond::All(vec![has(8), behind(0, 1).is_in(pair(echo_reply, echo))]);
        let rare = Cond::Any(vec![
            ip::HL.ne(5u8),
            FRAGMENT.ne(0u8),
            ip::PROTO.eq(ICMP).and(is_echo.not()),
            ip::PROTO.eq(UDP).and(has(8)).and(behind(6, 2).eq(0u8)),
        ]);
        let too_short = |protocol: u8, bytes: u16| {
            drop_when(ip::PROTO.eq(protocol).and(has(bytes).not()), LENGTH)
        };
        let mut block = vec![
            drop_when(ip_header::is_missing(), NO_HEADER),
            drop_when(meta::AVAIL_NET.get().lt(ip::LEN.get()).or(ip::LEN.lt(20u8)), LENGTH),
            drop_when(ip::VERSION.ne(4u8), VERSION),
            Op::when(
                rare,
                vec![Op::Opaque("options, fragments, ICMP other than echo, UDP without checksum")],
            ),
            drop_when(ip::PROTO.is_in(pair(ICMP6, IGMP)), PROTOCOL),
            Op::Let(SRC, ip::SRC.get()),
            Op::Let(DST, ip::DST.get()),
        ];
        block.extend(self.servers.model_refusal(SRC));
        block.extend(self.maps.destination.model_refusal(DST));
        block.extend(match (&self.maps.destination, hosts) {
            (AddressMap::Embedded(hosts), _) => Some(Op::Let(HOST, hosts.model_embed(DST))),
            (AddressMap::Bound(..), flows) => flows.map(|flows| Op::FlowLookup {
                flows,
                key: vec![DST.into()],
                value: vec![HOST],
                common: vec![STATE],
                miss: vec![Op::Drop(NO_HOST)],
            }),
        });
        let class = if self.keeps_class { ip::TOS.get() } else { 0u8.into() };
        block.extend([too_short(TCP, 18), too_short(UDP, 8)]);
        let touch =
            |flows| self.maps.destination.model_touch(flows, DST.into(), STATE, Sender::Server);
        block.extend(hosts.and_then(touch));
        block.extend([
            Op::Let(PROTO, ip::PROTO.get()),
            Op::Let(PAYLOAD, ip::LEN.get() - 20u8),
            Op::Let(CLASS, class),
            Op::Let(HOPS, ip::TTL.get()),
            Op::If(
                ip::PROTO.eq(ICMP),
                vec![Op::Let(FIRST, behind(0, 2).get()), Op::Let(OLD, FIRST.into())],
                vec![Op::Let(FIRST, 0u8.into()), Op::Let(OLD, Expr::sum16(NETWORK, 12u8, 8u8))],
            ),
            Op::pull(Expr::Position(Header::Network) - 20u8),
            Op::Truncate(reg(PAYLOAD) + 40u8),
            Op::Unmark(Header::Mac),
            Op::Mark(Header::Network, 0u8.into()),
            Op::Mark(Header::Transport, 40u8.into()),
            Field::bytes(NETWORK, 0, 4).set(reg(CLASS) << 20u8 | 0x6000_0000u32),
            ip6::PLEN.set(PAYLOAD),
            ip6::NEXT.set(Expr::choose(reg(PROTO).eq(ICMP), ICMP6, PROTO)),
            ip6::HLIM.set(HOPS),
            ip6::SRC.set(self.servers.model_embed(SRC)),
            ip6::DST.set(HOST),
        ]);
        let update = |checksum: Field, new: Expr| -> Op {
            let sum = (checksum.get() ^ 0xffffu16) + (reg(OLD) ^ 0xffffu16) + new;
            Op::Let(SUM, sum.fold16() ^ 0xffffu16)
        };
        let new = || Expr::sum16(NETWORK, 8u8, 32u8);
        let never = Expr::choose(reg(SUM).eq(0u8), 0xffffu16, SUM);
        // An echo request has type 8 and an echo reply 0, and 128 and 129 in ICMPv6.
        let kind = Expr::choose((reg(FIRST) >> 8u8).eq(echo), 0x8000u16, 0x8100u16);
        let pseudo = new() + PAYLOAD + ICMP6 + FIRST;
        block.extend([
            Op::when(
                reg(PROTO).eq(TCP),
                vec![update(tcp::CHECKSUM, new()), tcp::CHECKSUM.set(SUM)],
            ),
            Op::when(
                reg(PROTO).eq(UDP),
                vec![update(udp::CHECKSUM, new()), udp::CHECKSUM.set(never)],
            ),
            Op::when(
                reg(PROTO).eq(ICMP),
                vec![
                    Op::Let(FIRST, kind | reg(FIRST) & 0xffu8),
                    update(icmp::CHECKSUM, pseudo),
                    Field::bytes(TRANSPORT, 0, 2).set(FIRST),
                    icmp::CHECKSUM.set(SUM),
                ],
            ),
            anno::DST_IP6.set(HOST),
            Op::emit(0u8),
        ]);
        block
    }
}
