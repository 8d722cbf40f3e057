//! ProtocolTranslator64.

use std::net::Ipv4Addr;
use std::ops::Range;

use ir::field::{anno, icmp, ip, ip6, meta, tcp, udp};
use ir::model::{Block, Reg, StateKind, StateRef};
use ir::{Base, Cond, Expr, Field, IntervalSet, Model, Op};
use net::checksum::Sum;
use net::wire::icmpv6::{is_error, message};
use net::wire::ip_protocol::{ICMP, TCP, UDP};
use net::wire::{Ipv6, ipv4};
use net::{Batch, Header, Packet, annotation};

use crate::argument::Ip;
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::ip::ip_header::{self, NETWORK};
use crate::ip6::embedding::{Embedding, NOT_EMBEDDED};
use crate::ip6::host_table::{NO_HOST, Sender};
use crate::ip6::icmp_translation::{Message, Mtus, NO_MESSAGE, echo6, error6};
use crate::ip6::ip6_header::{self, ICMP6, NO_HEADER};
use crate::ip6::translation::{
    AddressMap, AddressMaps, Headers, ICMP_FRAGMENT, LARGEST_TO_CUT, LENGTH, LOOP, NO_CHECKSUM,
    QUOTE, ROUTE, TOO_LONG, VERSION, checksum_at, drops, header4, headers6, put_word, replace,
    update_quoted, update_transport, updated, word_at,
};

element! {
    /// ProtocolTranslator64([SRC, DST, KEYWORDS]) -- translates IPv6 packets to IPv4
    ///
    /// Stateless translation of IP and ICMP (RFC 7915). Expects IPv6 packets with their header
    /// marked, and makes IPv4 packets of them, with marked headers. Addresses embed IPv4 addresses
    /// (RFC 6052): sources by the prefix SRC, destinations by DST, which is SRC if it is not given.
    /// Prefixes have 32, 40, 48, 56, 64 or 96 bits; SRC is ::ffff:0:0/96 by default, that of
    /// IPv4-mapped addresses. The destination annotation becomes the IPv4 destination.
    ///
    /// SRC may also name an IP6HostMapper: sources have any address then, and become what stands
    /// for them. Dropped are packets with a source that DST embeds (RFC 6146, 3.5), or that no host
    /// beyond the link can have, and those of a new host if there is no room for it.
    ///
    /// The traffic class, the hop limit and a fragment header are translated; hop-by-hop options,
    /// destination options and used up routing headers are left out. A packet that is no fragment
    /// may be cut on its path if it has at most 1260 bytes. Checksums of TCP, UDP and ICMP are
    /// updated; other protocols pass with theirs. ICMPv6 echo messages and errors become those of
    /// ICMP, and so do the packets that errors quote; extensions of errors (RFC 4884) are left out.
    ///
    /// Packets with a routing header that has segments left go unchanged to output 1, for
    /// ICMP6Error, with the pointer's annotation set, or are dropped if that is not connected.
    /// Dropped are packets whose addresses embed none, or one that no host can have; by
    /// 64:ff9b::/96, also one that is not global; UDP with the checksum 0; fragments of ICMPv6
    /// messages; and ICMPv6 messages that ICMP does not have, such as neighbour discovery.
    ///
    /// The hop limit does not change: DecIP6HLIM decrements it.
    ///
    /// = KEYWORDS
    ///
    /// ERROR_SRC (IPv4 address): source of ICMP errors from routers whose address embeds none (RFC
    ///   6791). Without it they are dropped.
    /// TOS (bool, default true): whether the traffic class becomes the type of service; if not, 0.
    /// MTU4, MTU6 (number, default 1500): the longest packets that the links on both sides take.
    ///
    /// = HANDLERS
    ///
    /// drops (read): packets that were not translated.
    ///
    /// = EXAMPLE
    ///
    /// ... -> CheckIP6Header -> DecIP6HLIM -> ProtocolTranslator64(2001:db8:a::/96, 64:ff9b::/96) -> ...
    ///
    /// = SEE ALSO
    ///
    /// ProtocolTranslator46, IP6HostMapper, IP6PrefixTranslator, IPRewriter
    ProtocolTranslator64 {
        category: Ip6, ports: "1/1-2", processing: "a/ah",
        samples: [
            ("", 1, 1),
            ("2001:db8:a::/96, 64:ff9b::/96", 1, 2),
            ("2001:db8::/32, ERROR_SRC 192.0.2.1, TOS false, MTU4 1300", 1, 2),
            ("2001:db8::/40, 2001:db8::/64", 1, 1),
            ("law_hosts, 2001:db8::/64, ERROR_SRC 192.0.2.1", 1, 2),
            ("law_few_hosts, 2001:db8::/32", 1, 1),
        ],
        prelude: "law_hosts :: IP6HostMapper(POOL 10.0.0.0/28);
                  law_few_hosts :: IP6HostMapper(POOL 10.0.0.0/29, CAPACITY 2, NETWORK_HOSTS 1);",
    }
}

/// See [`ProtocolTranslator64::CLASS`].
pub(crate) struct ProtocolTranslator64 {
    maps: AddressMaps,
    /// The prefix of destinations.
    servers: Embedding,
    error_source: Option<Ipv4Addr>,
    keeps_class: bool,
    mtus: Mtus,
    outputs: usize,
    /// Identification of the next packet of any ProtocolTranslator64.
    id: Cells,
}

/// Owner of the state that all share.
const OWNER: &str = "class ProtocolTranslator64";

impl ProtocolTranslator64 {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let id = Cells::clone(&cx.common(OWNER, || Cells::new([1])));
        let outputs = cx.outputs();
        let mut arguments = cx.arguments(&["SRC", "DST", "ERROR_SRC", "TOS", "MTU4", "MTU6"]);
        let source = arguments.next_plain();
        let source = AddressMap::hosts("SRC", source, &mut arguments);
        let source = source.unwrap_or(AddressMap::Embedded(Embedding::default()));
        let same = match &source {
            AddressMap::Embedded(embedding) => *embedding,
            AddressMap::Bound(..) => Embedding::default(),
        };
        let servers = arguments.optional("DST").unwrap_or(same);
        let destination = AddressMap::Embedded(servers);
        let error_source = arguments.keyword::<Ip>("ERROR_SRC").map(|ip| ip.0);
        let keeps_class = arguments.keyword("TOS").unwrap_or(true);
        let mtus = Mtus::of(&mut arguments);
        arguments.finish()?;
        let maps = AddressMaps { source, destination };
        Ok(Self { maps, servers, error_source, keeps_class, mtus, outputs, id })
    }

    fn translate(&self, packet: &mut Packet, now: u64) -> Verdict {
        let Some(ip) = ip6_header::view(packet) else { return Verdict::Drop(NO_HEADER) };
        let total = 40 + ip.payload_len();
        let Some(bytes) = ip.bytes().get(..total) else { return Verdict::Drop(LENGTH) };
        let mut headers = match headers6(bytes) {
            Ok(headers) => headers,
            Err((ROUTE, at)) if self.outputs > 1 => {
                let at = u8::try_from(at).unwrap_or(0);
                packet.annotations_mut().set_u8(annotation::ICMP_PARAMETER_PROBLEM, at);
                return Verdict::Reject(1, ROUTE);
            }
            Err((reason, _)) => return Verdict::Drop(reason),
        };
        if !self.keeps_class {
            headers.class = 0;
        }
        if headers.payload + 20 > u16::MAX.into() {
            return Verdict::Drop(TOO_LONG);
        }
        let payload = &bytes[headers.length..];
        let kind = payload.first().copied().unwrap_or(0);
        let is_about_error = headers.protocol == ICMP6 && is_error(kind);
        if matches!(self.maps.source, AddressMap::Bound(..)) && self.servers.contains(ip.src()) {
            return Verdict::Drop(LOOP);
        }
        let source = match self.maps.source.extract(ip.src(), now) {
            Err(_) if is_about_error => self.error_source.ok_or(NOT_EMBEDDED),
            // It is bound when the rest is known to be right.
            Err(NO_HOST) => Ok(Ipv4Addr::UNSPECIFIED),
            source => source,
        };
        let mut addresses = match (source, self.servers.extract(ip.dst())) {
            (Ok(source), Ok(destination)) => [source, destination],
            (Err(reason), _) | (_, Err(reason)) => return Verdict::Drop(reason),
        };
        if let Some(reason) = self.maps.refusal(addresses) {
            return Verdict::Drop(reason);
        }
        if headers.protocol == ICMP6 {
            if headers.is_part() {
                return Verdict::Drop(ICMP_FRAGMENT);
            }
            if is_about_error {
                return self.translate_error(packet, total, &headers, addresses, now);
            }
        }
        if let AddressMap::Bound(_, table) = &self.maps.source
            && addresses[0].is_unspecified()
        {
            match table.borrow_mut().bind(ip.src(), now) {
                Ok((_, stand_in)) => addresses[0] = stand_in,
                Err(reason) => return Verdict::Drop(reason),
            }
        }
        let old = Sum::of(&bytes[8..40]);
        let header = header4(&headers, self.id.get(0) as u16, addresses);
        let new = Sum::of(&header[12..]);
        let pseudo = ip.pseudo_header(ICMP6, headers.payload as u32);
        let Some(bytes) = packet.network_mut() else { return Verdict::Drop(NO_HEADER) };
        let payload = &mut bytes[headers.length..total];
        if headers.protocol == ICMP6 {
            let Some(kind) = echo6(kind) else { return Verdict::Drop(NO_MESSAGE) };
            let (Some(first), Some(checksum), Some(_)) =
                (word_at(payload, 0), word_at(payload, 2), word_at(payload, 6))
            else {
                return Verdict::Drop(LENGTH);
            };
            let word = u16::from(kind) << 8 | first & 0xff;
            let old = pseudo.plus(Sum::of_u16(first));
            put_word(payload, 0, word);
            put_word(payload, 2, updated(checksum, old, Sum::of_u16(word)));
        } else if headers.is_first() && checksum_at(headers.protocol).is_some() {
            if headers.protocol == UDP && word_at(payload, 6) == Some(0) {
                return Verdict::Drop(NO_CHECKSUM);
            }
            if update_transport(payload, headers.protocol, old, new).is_none() {
                return Verdict::Drop(LENGTH);
            }
        }
        self.maps.source.touch(addresses[0], Sender::Host, now);
        self.send(packet, headers.length..total, &headers, &header, addresses)
    }

    /// Sends the translated packet: new headers before the bytes that are kept.
    fn send(
        &self,
        packet: &mut Packet,
        kept: Range<usize>,
        from: &Headers,
        headers: &[u8],
        [_, destination]: [Ipv4Addr; 2],
    ) -> Verdict {
        if from.fragment.is_none() {
            let id = self.id.get(0) as u16;
            self.id.set(0, id.wrapping_add(1).into());
        }
        replace(packet, kept, headers, 20);
        packet.annotations_mut().set_dst_ip(destination);
        Verdict::Pass
    }

    /// Translates an ICMPv6 error of `total` bytes and what it quotes.
    fn translate_error(
        &self,
        packet: &mut Packet,
        total: usize,
        headers: &Headers,
        addresses: [Ipv4Addr; 2],
        now: u64,
    ) -> Verdict {
        let Some(bytes) = packet.network_mut() else { return Verdict::Drop(NO_HEADER) };
        let Some(outer) = Ipv6::new(&bytes[..total]) else { return Verdict::Drop(NO_HEADER) };
        let pseudo = outer.pseudo_header(ICMP6, headers.payload as u32);
        let message = &mut bytes[headers.length..total];
        let Some((icmp, packet_quoted)) = message.split_at_mut_checked(8) else {
            return Verdict::Drop(LENGTH);
        };
        let &mut [kind, code, _, _, a, b, c, d] = icmp else { return Verdict::Drop(LENGTH) };
        let checksum = word_at(icmp, 2).unwrap_or(0);
        let from = Message { kind, code, rest: u32::from_be_bytes([a, b, c, d]) };
        // Bytes of the quoted packet before extensions (RFC 4884).
        let end = match (kind, a) {
            (message::UNREACHABLE | message::TIME_EXCEEDED, eights @ 1..) => {
                packet_quoted.len().min(8 * usize::from(eights))
            }
            _ => packet_quoted.len(),
        };
        let (quoted, extensions) = packet_quoted.split_at_mut(end);
        let (Ok(inner), Some(ip)) = (headers6(quoted), Ipv6::new(&*quoted)) else {
            return Verdict::Drop(QUOTE);
        };
        if inner.length > quoted.len() || inner.payload + 20 > u16::MAX.into() {
            return Verdict::Drop(QUOTE);
        }
        let Some(to) = error6(from, self.mtus, inner.fragment.is_some()) else {
            return Verdict::Drop(NO_MESSAGE);
        };
        let embedded = match self.maps.reverse().extract(ip, now) {
            Ok(embedded) => embedded,
            Err(reason) => return Verdict::Drop(reason),
        };
        let mut echo = None;
        if inner.protocol == ICMP6 && inner.is_first() {
            let Some(kind) = quoted.get(inner.length).and_then(|&kind| echo6(kind)) else {
                return Verdict::Drop(QUOTE);
            };
            echo = Some((kind, [ip.pseudo_header(ICMP6, inner.payload as u32), Sum::ZERO]));
        }
        let class = |class: u8| if self.keeps_class { class } else { 0 };
        let inner_header = header4(&Headers { class: class(inner.class), ..inner }, 0, embedded);
        let mut old = pseudo.plus(Sum::of(&icmp[..2])).plus(Sum::of(&icmp[4..]));
        old = old.plus(Sum::of(&quoted[..inner.length])).plus(Sum::of(extensions));
        let sums = [Sum::of(&quoted[8..40]), Sum::of(&inner_header[12..])];
        let changed = update_quoted(&mut quoted[inner.length..], &inner, sums, echo);

        let kept = headers.length + 8 + inner.length..headers.length + 8 + end;
        let mut new = [0; 48];
        new[20] = to.kind;
        new[21] = to.code;
        new[24..28].copy_from_slice(&to.rest.to_be_bytes());
        new[28..].copy_from_slice(&inner_header);
        let sum = Sum::of(&new[20..]).plus(changed[1]);
        put_word(&mut new, 22, updated(checksum, old.plus(changed[0]), sum));
        let headers = Headers { payload: 28 + kept.len(), ..*headers };
        new[..20].copy_from_slice(&header4(&headers, self.id.get(0) as u16, addresses));
        self.send(packet, kept, &headers, &new, addresses)
    }
}

impl Element for ProtocolTranslator64 {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        cx.each(batch, |packet, _| self.translate(packet, now));
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let owner = Some(OWNER.to_string());
        let id = model.declare_of(owner, "id", StateKind::Cells { width: 16, initial: vec![1] });
        let hosts = self.maps.source.declare(&mut model);
        model.inputs = vec![self.block(id, hosts)];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.id.clone())
    }

    fn export(&mut self, _name: &str, to: &mut ElementState) {
        self.id.export(OWNER, "id", to);
        self.maps.source.export(to);
    }

    fn import(&mut self, _name: &str, from: &mut ElementState, now: u64) {
        self.id.import(OWNER, "id", from);
        self.maps.source.import(from, now);
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
const NEXT: Reg = Reg(2);
const PAYLOAD: Reg = Reg(3);
const CLASS: Reg = Reg(4);
const HOPS: Reg = Reg(5);
/// The folded sum of what a checksum covers no more.
const OLD: Reg = Reg(6);
const ID: Reg = Reg(7);
/// An echo message's first word.
const FIRST: Reg = Reg(8);
const SUM: Reg = Reg(9);
/// A host's binding.
const STATE: Reg = Reg(10);

const TRANSPORT: Base = Base::Header(Header::Transport);

fn reg(reg: Reg) -> Expr {
    reg.into()
}

/// A field behind an IPv6 header.
fn behind(offset: u16, bytes: u16) -> Field {
    Field::bytes(NETWORK, 40 + offset, bytes)
}

impl ProtocolTranslator64 {
    fn block(&self, id: StateRef, hosts: Option<StateRef>) -> Block {
        let drop_when = |cond: Cond, reason| Op::when(cond, vec![Op::Drop(reason)]);
        let numbers = |all: &[u8]| {
            IntervalSet::from_intervals(all.iter().map(|&n| (n.into(), n.into())).collect())
        };
        let is_echo = Cond::All(vec![
            ip6::PLEN.ge(8u8),
            meta::AVAIL_NET.ge(48u8),
            behind(0, 1).is_in(IntervalSet::range(128, 129)),
        ]);
        let other = numbers(&[0, ICMP, 43, 44, 60]);
        let rare = ip6::NEXT.is_in(other).or(ip6::NEXT.eq(ICMP6).and(is_echo.not()));
        let too_short = |protocol: u8, bytes: u16| {
            let short = ip6::PLEN.lt(bytes).or(meta::AVAIL_NET.lt(40 + bytes));
            drop_when(ip6::NEXT.eq(protocol).and(short), LENGTH)
        };
        let mut block = vec![
            drop_when(ip6_header::is_missing(), NO_HEADER),
            drop_when(meta::AVAIL_NET.get().lt(ip6::PLEN.get() + 40u8), LENGTH),
            drop_when(ip6::VERSION.ne(6u8), VERSION),
            Op::when(rare, vec![Op::Opaque("extension headers, and ICMPv6 other than echo")]),
            drop_when(ip6::PLEN.gt(u16::MAX - 20), TOO_LONG),
        ];
        match (&self.maps.source, hosts) {
            (AddressMap::Embedded(hosts), _) => block.extend(hosts.model_extract(ip6::SRC, SRC)),
            (AddressMap::Bound(..), Some(flows)) => block.extend([
                drop_when(self.servers.model_contains(ip6::SRC), LOOP),
                Op::FlowLookup {
                    flows,
                    key: vec![ip6::SRC.get()],
                    value: vec![SRC],
                    common: vec![STATE],
                    miss: vec![Op::Opaque("the first packet of a host")],
                },
            ]),
            (AddressMap::Bound(..), None) => {}
        }
        block.extend(self.servers.model_extract(ip6::DST, DST));
        block.extend(self.maps.source.model_refusal(SRC));
        block.extend(self.servers.model_refusal(DST));
        let class = if self.keeps_class { ip6::CLASS.get() } else { 0u8.into() };
        let addresses = || Expr::sum16(NETWORK, 8u8, 32u8);
        let pseudo = addresses() + ip6::PLEN.get() + ICMP6 + reg(FIRST);
        block.extend([
            too_short(TCP, 18),
            too_short(UDP, 8),
            drop_when(ip6::NEXT.eq(UDP).and(behind(6, 2).eq(0u8)), NO_CHECKSUM),
            Op::Let(NEXT, ip6::NEXT.get()),
            Op::Let(PAYLOAD, ip6::PLEN.get()),
            Op::Let(CLASS, class),
            Op::Let(HOPS, ip6::HLIM.get()),
            Op::If(
                ip6::NEXT.eq(ICMP6),
                vec![Op::Let(FIRST, behind(0, 2).get()), Op::Let(OLD, pseudo.fold16())],
                vec![Op::Let(FIRST, 0u8.into()), Op::Let(OLD, addresses())],
            ),
        ]);
        let touch =
            |flows| self.maps.source.model_touch(flows, ip6::SRC.get(), STATE, Sender::Host);
        block.extend(hosts.and_then(touch));
        block.extend([
            Op::Read(ID, id, 0u8.into()),
            Op::Write(id, 0u8.into(), (reg(ID) + 1u8) & 0xffffu16),
            Op::pull(Expr::Position(Header::Network) + 20u8),
            Op::Truncate(reg(PAYLOAD) + 20u8),
            Op::Unmark(Header::Mac),
            Op::Mark(Header::Network, 0u8.into()),
            Op::Mark(Header::Transport, 20u8.into()),
            Field::bytes(NETWORK, 0, 1).set(0x45u8),
            ip::TOS.set(CLASS),
            ip::LEN.set(reg(PAYLOAD) + 20u8),
            ip::ID.set(ID),
            ip::FLAGS_FRAG.set(Expr::choose(reg(PAYLOAD).gt(LARGEST_TO_CUT - 20), ipv4::DF, 0u8)),
            ip::TTL.set(HOPS),
            ip::PROTO.set(Expr::choose(reg(NEXT).eq(ICMP6), ICMP, NEXT)),
            ip::SRC.set(SRC),
            ip::DST.set(DST),
        ]);
        block.extend(ip_header::model_fill_checksum());
        let update = |checksum: Field, new: Expr| -> Op {
            let sum = (checksum.get() ^ 0xffffu16) + (reg(OLD) ^ 0xffffu16) + new;
            Op::Let(SUM, sum.fold16() ^ 0xffffu16)
        };
        let new = || Expr::sum16(NETWORK, 12u8, 8u8);
        let never = Expr::choose(reg(SUM).eq(0u8), 0xffffu16, SUM);
        // An echo request has type 128 and an echo reply 129, and 8 and 0 in ICMP.
        let kind = Expr::choose((reg(FIRST) >> 8u8).eq(128u8), 0x800u16, 0u8);
        block.extend([
            Op::when(reg(NEXT).eq(TCP), vec![update(tcp::CHECKSUM, new()), tcp::CHECKSUM.set(SUM)]),
            Op::when(
                reg(NEXT).eq(UDP),
                vec![update(udp::CHECKSUM, new()), udp::CHECKSUM.set(never)],
            ),
            Op::when(
                reg(NEXT).eq(ICMP6),
                vec![
                    Op::Let(FIRST, kind | reg(FIRST) & 0xffu8),
                    update(icmp::CHECKSUM, FIRST.into()),
                    Field::bytes(TRANSPORT, 0, 2).set(FIRST),
                    icmp::CHECKSUM.set(SUM),
                ],
            ),
            anno::DST_IP.set(DST),
            Op::emit(0u8),
        ]);
        block
    }
}
