//! ICMPError.

use std::net::Ipv4Addr;

use click::config::Argument;
use ir::field::{Base, anno, icmp, ip, meta};
use ir::model::{Block, Reg, StateKind, StateRef};
use ir::{Cond, Diagnostic, Expr, Field, IntervalSet, Model, Op, Reason};
use net::wire::icmpv4;
use net::wire::ip_protocol::ICMP;
use net::wire::ipv4::Options;
use net::wire::{Icmpv4, Ipv4};
use net::{Annotations, Batch, Header, Packet, PacketType, annotation};

use crate::argument::{FromArgument, Ip, parse_integer, parse_value};
use crate::cells::Cells;
use crate::configure::{Configure, Failed};
use crate::context::Context;
use crate::element::{Element, Handler, HandlerContext, Verdict};
use crate::element_state::ElementState;
use crate::ip::ip_header::{self, NETWORK, NO_HEADER};
use crate::ip::ip_options::{self, Walk};
use crate::names::Names;

element! {
    /// ICMPError(SRC, TYPE [, CODE, BADADDRS, KEYWORDS]) -- answers packets with ICMP errors
    ///
    /// Expects IP packets with their header marked, and turns each into an ICMP error message to
    /// its source, which quotes as much of it as fits into MTU bytes. No message is made about
    /// what must not cause one (RFC 1812, 4.3.2.7): ICMP errors, packets to broadcast or multicast
    /// addresses, later fragments, and packets whose source is not a single host; they are
    /// dropped. A source route is reversed into the message. The message has the source SRC,
    /// fresh annotations except for its destination address, and the fix-IP-source annotation,
    /// so that FixIPSrc puts in the address of the interface that it leaves on. With `-` for SRC, its source is the
    /// packet's destination, as if that host answered.
    ///
    /// TYPE is unreachable, sourcequench, redirect, timeexceeded, parameterproblem or its number;
    /// CODE is a code of that type by name (net, host, protocol, port, needfrag, transit,
    /// reassembly, erroratptr, missingopt …) or number, 0 by default. Redirects hold the
    /// destination address annotation, parameter problems the offset that IPGWOptions left in an
    /// annotation. BADADDRS lists further broadcast addresses.
    ///
    /// = KEYWORDS
    ///
    /// MTU (number, default 576): length of the longest message in bytes.
    /// PMTU (number, default 0): next-hop MTU in "fragmentation needed" messages (RFC 1191).
    /// SET_FIX_ANNO (bool, default true): whether the fix-IP-source annotation is set.
    /// LINK (number, default 0): bytes of the link-layer header, 32 at the most, that stay in front of the IP header, for
    /// Unstrip. With `LINK 14`, EtherMirror sends the message back.
    ///
    /// = HANDLERS
    ///
    /// src, mtu, pmtu (read, write): as configured.
    ///
    /// = EXAMPLE
    ///
    /// dt :: DecIPTTL; dt[1] -> ICMPError(18.26.4.24, timeexceeded, transit) -> ...
    ///
    /// = SEE ALSO
    ///
    /// DecIPTTL, FixIPSrc, IPGWOptions, IPFragmenter, ICMPPingResponder
    ICMPError {
        category: Ip, ports: "1/1", processing: "a/a",
        samples: [
            ("10.0.0.1, unreachable, host", 1, 1),
            ("10.0.0.1, timeexceeded, transit, 18.26.4.9 10.0.0.2, MTU 100", 1, 1),
            ("10.0.0.1, 3, needfrag, PMTU 1400, SET_FIX_ANNO false, MTU 20", 1, 1),
            ("10.0.0.1, redirect, host", 1, 1),
            ("10.0.0.1, parameterproblem", 1, 1),
            ("-, unreachable, port, LINK 14", 1, 1),
            ("-, unreachable, port, LINK 32, MTU 60", 1, 1)
        ]
    }
}

/// The address that messages come from; none, written `-`, is the packet's destination.
#[derive(Clone, Copy, Default)]
struct Source(Option<Ipv4Addr>);

impl FromArgument for Source {
    const EXPECTED: &'static str = "an IP address such as 10.0.0.1, or -";

    fn from_argument(word: &Argument, names: &Names, scope: &str) -> Result<Self, String> {
        match word.text.as_str() {
            "-" => Ok(Self(None)),
            _ => Ip::from_argument(word, names, scope).map(|address| Self(Some(address.0))),
        }
    }
}

/// See [`ICMPError::CLASS`].
pub(crate) struct ICMPError {
    /// None for the packet's destination.
    source: Option<Ipv4Addr>,
    message_type: u8,
    code: u8,
    bad_addresses: Vec<u32>,
    mtu: u16,
    path_mtu: u16,
    fix_source: bool,
    /// Bytes of the link-layer header that stay in front.
    link: u8,
    /// Identification of the next message of any ICMPError.
    id: Cells,
}

/// No ICMP error is sent about an ICMP error.
const ABOUT_ERROR: Reason = Reason("error-about-icmp-error");
/// No ICMP error is sent about a packet to a broadcast address (RFC 1812).
const ABOUT_BROADCAST: Reason = Reason("error-about-broadcast");
/// No ICMP error is sent about a frame that was a link-layer broadcast.
const ABOUT_LINK_BROADCAST: Reason = Reason("error-about-link-broadcast");
/// No ICMP error is sent to a source that is no single host.
const BAD_SOURCE: Reason = Reason("error-to-bad-source");
/// No ICMP error is sent about a fragment that is not the first.
const ABOUT_FRAGMENT: Reason = Reason("error-about-later-fragment");
/// No ICMP redirect is sent about a packet with a source route.
const ABOUT_SOURCE_ROUTE: Reason = Reason("redirect-of-source-route");

/// Owner of the state that all ICMPError elements share.
const OWNER: &str = "class ICMPError";

/// Code of parameter problem and unreachable messages that need more than zeros.
const ERROR_AT_POINTER: u8 = 0;
const FRAGMENTATION_NEEDED: u8 = 4;

/// Bytes of IP and ICMP headers of a message without options.
const HEADERS: usize = 28;
/// Bytes of a link-layer header that may stay.
const MOST_LINK: usize = 32;

impl ICMPError {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let id = Cells::clone(&cx.common(OWNER, || Cells::new([1])));
        let span = cx.span();
        let mut arguments = cx.arguments(&[
            "SRC",
            "TYPE",
            "CODE",
            "BADADDRS",
            "MTU",
            "PMTU",
            "SET_FIX_ANNO",
            "LINK",
        ]);
        let source: Source = arguments.required("SRC");
        let message_type = match arguments.keyword_argument("TYPE").or_else(|| arguments.next_raw())
        {
            Some(word) => {
                let number = parse_integer(&word.text).and_then(|n| u8::try_from(n).ok());
                match number.or_else(|| icmpv4::type_by_name(&word.text)) {
                    Some(number) if icmpv4::is_error(number) => number,
                    Some(_) => {
                        arguments.error(&word, format!("{} is no ICMP error type", word.text));
                        icmpv4::message::UNREACHABLE
                    }
                    None => {
                        arguments.error(&word, format!("'{}' is no ICMP type", word.text));
                        icmpv4::message::UNREACHABLE
                    }
                }
            }
            None => {
                let error = "ICMPError is missing its argument TYPE, an ICMP error type";
                arguments.report(Diagnostic::error("missing-argument", error).label(span, ""));
                icmpv4::message::UNREACHABLE
            }
        };
        let code = match arguments.keyword_argument("CODE").or_else(|| arguments.next_raw()) {
            Some(word) => {
                let number = parse_integer(&word.text).and_then(|n| u8::try_from(n).ok());
                let code = number.or_else(|| icmpv4::code_by_name(message_type, &word.text));
                if code.is_none() {
                    arguments.error(&word, format!("'{}' is no ICMP code of this type", word.text));
                }
                code.unwrap_or(0)
            }
            None => 0,
        };
        let mut bad_addresses = Vec::new();
        let list = arguments.keyword_argument("BADADDRS").or_else(|| arguments.next_raw());
        for word in list.iter().flat_map(|list| list.words()) {
            let address: Ip = arguments.parse("BADADDRS", &word).unwrap_or_default();
            bad_addresses.push(address.0.to_bits());
        }
        let mtu = arguments.keyword("MTU").unwrap_or(576);
        let path_mtu = arguments.keyword("PMTU").unwrap_or(0);
        let fix_source = arguments.keyword("SET_FIX_ANNO").unwrap_or(true);
        let link: u8 = arguments.keyword("LINK").unwrap_or(0);
        if usize::from(link) > MOST_LINK {
            let message = format!("LINK is {MOST_LINK} at the most");
            arguments.report(Diagnostic::error("bad-argument", message).label(span, ""));
        }
        arguments.finish()?;
        let source = source.0;
        Ok(Self { source, message_type, code, bad_addresses, mtu, path_mtu, fix_source, link, id })
    }

    /// Addresses of single hosts.
    fn is_unicast(&self, address: u32) -> bool {
        address != u32::MAX && address >> 28 != 0xe && !self.bad_addresses.contains(&address)
    }

    /// Addresses that a packet may come from (RFC 1812, 5.3.7).
    fn is_source(&self, address: u32) -> bool {
        let network = address >> 24;
        self.is_unicast(address) && network != 0 && network != 127 && network < 0xf0
    }

    /// Bytes that a message has room for: with its link-layer header, it is no longer than packets may be.
    fn room(&self) -> u16 {
        self.mtu.min(u16::MAX - u16::from(self.link))
    }

    /// The second word of the ICMP header.
    fn rest(&self, annotations: &Annotations) -> u32 {
        match (self.message_type, self.code) {
            (icmpv4::message::PARAMETER_PROBLEM, ERROR_AT_POINTER) => {
                u32::from(annotations.u8(annotation::ICMP_PARAMETER_PROBLEM)) << 24
            }
            (icmpv4::message::REDIRECT, _) => annotations.u32(annotation::DST_IP),
            (icmpv4::message::UNREACHABLE, FRAGMENTATION_NEEDED) => self.path_mtu.into(),
            _ => 0,
        }
    }

    fn turn(&self, packet: &mut Packet, now: u64) -> Verdict {
        let Some(ip) = ip_header::view(packet) else {
            return Verdict::Drop(NO_HEADER);
        };
        if ip.protocol() == ICMP {
            let quoted = packet.transport().and_then(|t| t.first_chunk());
            if quoted.is_none_or(|&[kind, _, _, _]| icmpv4::is_error(kind)) {
                return Verdict::Drop(ABOUT_ERROR);
            }
        }
        if !self.is_unicast(ip.dst().to_bits()) {
            return Verdict::Drop(ABOUT_BROADCAST);
        }
        if matches!(packet.packet_type(), PacketType::Broadcast | PacketType::Multicast) {
            return Verdict::Drop(ABOUT_LINK_BROADCAST);
        }
        let to = ip.src();
        if !self.is_source(to.to_bits()) {
            return Verdict::Drop(BAD_SOURCE);
        }
        if ip.is_later_fragment() {
            return Verdict::Drop(ABOUT_FRAGMENT);
        }
        let options = ip_options::of(ip);
        let mut route = SourceRoute::find(options.clone());
        if let Some(found) = &route {
            if self.message_type == icmpv4::message::REDIRECT {
                return Verdict::Drop(ABOUT_SOURCE_ROUTE);
            }
            let pointer = usize::from(packet.annotations().u8(annotation::ICMP_PARAMETER_PROBLEM));
            if self.is_at_pointer() && found.holds(pointer) {
                route = None;
            }
        }

        let mut reversed = [0u8; 40];
        let option = route.map_or(&[][..], |r| r.reverse(options.as_bytes(), &mut reversed));
        let headers = HEADERS + option.len();
        let second = self.rest(packet.annotations());
        let quoted = ip.bytes().len().min(usize::from(self.room()).saturating_sub(headers));
        let from = self.source.unwrap_or(ip.dst());
        let start = packet.header_offset(Header::Network).unwrap_or(0);
        if start >= 0 {
            packet.pull(start as usize)
        } else {
            packet.push(start.unsigned_abs())
        }
        packet.truncate(quoted);
        let mut link = [0; MOST_LINK];
        let link = &mut link[..usize::from(self.link)];
        packet.push(link.len());
        link.copy_from_slice(&packet.data()[..link.len()]);
        // The message, behind the same header.
        packet.push(headers);
        packet.data_mut()[..link.len()].copy_from_slice(link);
        packet.pull(link.len());
        let id = self.id.get(0) as u16;
        self.id.set(0, id.wrapping_add(1).into());

        let data = packet.data_mut();
        let length = data.len() as u16;
        let (header, message) = data.split_at_mut(headers - 8);
        header.fill(0);
        if let (Some(mut ip), Some(mut icmp)) = (Ipv4::new(header), Icmpv4::new(message)) {
            ip.set_header_len(headers - 8);
            ip.set_total_len(length);
            ip.set_id(id);
            ip.set_ttl(200);
            ip.set_protocol(ICMP);
            ip.set_src(from);
            ip.set_dst(to);
            ip.options_mut().copy_from_slice(option);
            ip.fill_checksum();
            icmp.set_message_type(self.message_type);
            icmp.set_code(self.code);
            icmp.set_rest(second);
            icmp.fill_checksum();
        }

        let mut annotations = Annotations::default();
        annotations.set_u32(annotation::DST_IP, to.to_bits());
        annotations.set_u8(annotation::FIX_IP_SRC, self.fix_source.into());
        *packet.annotations_mut() = annotations;
        packet.set_packet_type(PacketType::Host);
        packet.set_timestamp(now);
        packet.clear_header(Header::Mac);
        packet.set_ip_header(0, headers - 8);
        Verdict::Pass
    }

    fn is_at_pointer(&self) -> bool {
        (self.message_type, self.code) == (icmpv4::message::PARAMETER_PROBLEM, ERROR_AT_POINTER)
    }
}

/// A source route option that a message goes back along.
#[derive(Clone, Copy)]
struct SourceRoute {
    /// Where it starts in the options.
    at: usize,
    /// Its length in bytes.
    length: usize,
    /// Length of the part of it that was travelled, which is that of the option made of it.
    travelled: usize,
}

impl SourceRoute {
    /// The first source route whose pointer lies in it.
    fn find(options: Options<'_>) -> Option<Self> {
        options.map_while(Result::ok).find_map(|found| {
            let length = found.data.len() + 2;
            let pointer = usize::from(*found.data.first()?);
            let travelled = pointer >= 4 && pointer.is_multiple_of(4) && pointer <= length + 1;
            (ip_options::is_source_route(found.kind) && travelled).then(|| Self {
                at: found.offset,
                length,
                travelled: pointer - 1,
            })
        })
    }

    /// Whether it holds the byte at this offset from the start of the IP header.
    fn holds(&self, offset: usize) -> bool {
        (20 + self.at..20 + self.at + self.length).contains(&offset)
    }

    /// The option with the travelled addresses in reverse, padded to 32 bits.
    fn reverse<'r>(&self, options: &[u8], reversed: &'r mut [u8; 40]) -> &'r [u8] {
        let length = self.travelled;
        reversed[..3].copy_from_slice(&[options[self.at], length as u8, 4]);
        let addresses = options[self.at + 3..self.at + length].rchunks_exact(4);
        for (to, from) in reversed[3..].chunks_exact_mut(4).zip(addresses) {
            to.copy_from_slice(from);
        }
        &reversed[..length + 1]
    }
}

impl Element for ICMPError {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        cx.each(batch, |packet, _| self.turn(packet, now));
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let owner = Some(OWNER.to_string());
        let id = model.declare_of(owner, "id", StateKind::Cells { width: 16, initial: vec![1] });
        model.inputs = vec![self.block(id)];
        model
    }

    fn cells(&self, _name: &str) -> Option<Cells> {
        Some(self.id.clone())
    }

    fn export(&mut self, _name: &str, to: &mut ElementState) {
        self.id.export(OWNER, "id", to);
    }

    fn import(&mut self, _name: &str, from: &mut ElementState, _: u64) {
        self.id.import(OWNER, "id", from);
    }

    fn handlers(&self) -> &'static [Handler] {
        const { &[Handler::both("src"), Handler::both("mtu"), Handler::both("pmtu")] }
    }

    fn read(&self, handler: &str, _: &str, _: &HandlerContext<'_>) -> Result<String, String> {
        Ok(match handler {
            "src" => self.source.map_or_else(|| "-".to_string(), |source| source.to_string()),
            "mtu" => self.mtu.to_string(),
            _ => self.path_mtu.to_string(),
        })
    }

    fn write(&mut self, handler: &str, value: &str, _: &mut Context<'_>) -> Result<(), String> {
        match handler {
            "src" => self.source = parse_value::<Source>(value)?.0,
            "mtu" => self.mtu = parse_value(value)?,
            _ => self.path_mtu = parse_value(value)?,
        }
        Ok(())
    }
}

// Registers of the model.
const TO: Reg = Reg(0);
const SECOND: Reg = Reg(1);
const ID: Reg = Reg(2);
/// Length of the reversed source route with its padding, 0 if there is none.
const OPTION: Reg = Reg(3);
const POINTER: Reg = Reg(4);
/// The walk over the packet's options.
const OPTIONS: Walk = Walk::new(5);
/// Address number `k` of the reversed source route.
const fn address(k: u16) -> Reg {
    Reg(9 + k)
}
/// Source of the message.
const FROM: Reg = Reg(18);
/// The link-layer header, 16 bytes each.
const fn link(chunk: u16) -> Reg {
    Reg(19 + chunk)
}
/// Number of addresses that an option can hold.
const MAX_ADDRESSES: u16 = 9;

impl ICMPError {
    /// Single hosts, and addresses that a packet may come from.
    fn hosts(&self) -> (IntervalSet, IntervalSet) {
        let prefix = |first: u128, length| IntervalSet::prefix(32, first << 24, length);
        let mut bad: Vec<_> = self.bad_addresses.iter().map(|&a| (a.into(), a.into())).collect();
        bad.push((u32::MAX.into(), u32::MAX.into()));
        let none = IntervalSet::from_intervals(bad).union(&prefix(0xe0, 4));
        let no_source = none.union(&prefix(0, 8)).union(&prefix(127, 8)).union(&prefix(0xf0, 4));
        (none.complement(32), no_source.complement(32))
    }

    fn block(&self, id: StateRef) -> Block {
        let (hosts, sources) = self.hosts();
        let from = self.source.map_or_else(|| FROM.into(), |source| Expr::from(source.to_bits()));
        let drop_when = |cond: Cond, reason| Op::when(cond, vec![Op::Drop(reason)]);
        let errors = (0..=255u8).filter(|&t| icmpv4::is_error(t)).map(|t| (t.into(), t.into()));
        let error = icmp::TYPE.is_in(IntervalSet::from_intervals(errors.collect()));
        let about_error = meta::AVAIL_TRANSPORT.lt(4u8).or(error);
        let (broadcast, multicast) = (PacketType::Broadcast as u128, PacketType::Multicast as u128);
        let mut block = vec![
            drop_when(ip_header::is_missing(), NO_HEADER),
            drop_when(ip::PROTO.eq(ICMP).and(about_error), ABOUT_ERROR),
            drop_when(ip::DST.is_in(hosts).not(), ABOUT_BROADCAST),
            drop_when(
                meta::TYPE.is_in(IntervalSet::range(broadcast, multicast)),
                ABOUT_LINK_BROADCAST,
            ),
            drop_when(ip::SRC.is_in(sources).not(), BAD_SOURCE),
            drop_when(ip::FRAG.ne(0u8), ABOUT_FRAGMENT),
        ];
        let second = match (self.message_type, self.code) {
            (icmpv4::message::PARAMETER_PROBLEM, ERROR_AT_POINTER) => {
                anno::ICMP_PARAMETER_PROBLEM.get() << 24u8
            }
            (icmpv4::message::REDIRECT, _) => anno::DST_IP.get(),
            (icmpv4::message::UNREACHABLE, FRAGMENTATION_NEEDED) => self.path_mtu.into(),
            _ => 0u8.into(),
        };
        block.extend([
            Op::Let(TO, ip::SRC.get()),
            Op::Let(SECOND, second),
            Op::Let(OPTION, 0u8.into()),
        ]);
        block.extend(self.source.is_none().then(|| Op::Let(FROM, ip::DST.get())));
        block.extend(self.find_route());
        let room = Expr::from(self.room()).max(Expr::from(OPTION) + HEADERS) - OPTION - HEADERS;
        block.extend([
            // The message: new headers, and the start of the packet behind them.
            Op::pull(Expr::Position(Header::Network)),
            Op::Truncate(room),
        ]);
        let bytes = i32::from(self.link);
        if self.link > 0 {
            block.push(Op::pull(-bytes));
            block.extend(self.link_chunks().map(|(reg, field)| Op::Let(reg, field.get())));
            block.push(Op::pull(bytes));
        }
        block.extend([
            Op::Read(ID, id, 0u8.into()),
            Op::Write(id, 0u8.into(), Expr::from(ID) + 1u8),
            Op::pull(Expr::from(0u8) - OPTION - HEADERS),
        ]);
        if self.link > 0 {
            block.push(Op::pull(-bytes));
            block.extend(self.link_chunks().map(|(reg, field)| field.set(reg)));
            block.push(Op::pull(bytes));
        }
        block.extend([
            Op::Fresh,
            Op::Mark(Header::Network, 0u8.into()),
            Op::Mark(Header::Transport, Expr::from(OPTION) + 20u8),
            Field::bytes(NETWORK, 0, 1).set(Expr::from(OPTION) / 4u8 + 0x45u8),
            ip::TOS.set(0u8),
            ip::LEN.set(meta::LEN),
            ip::ID.set(ID),
            ip::FLAGS_FRAG.set(0u8),
            ip::TTL.set(200u8),
            ip::PROTO.set(ICMP),
            ip::SRC.set(from),
            ip::DST.set(TO),
        ]);
        block.push(Op::when(Expr::from(OPTION).gt(0u8), put_route()));
        block.extend(ip_header::model_fill_checksum());
        block.extend([
            icmp::TYPE.set(self.message_type),
            icmp::CODE.set(self.code),
            icmp::CHECKSUM.set(0u8),
            icmp::REST.set(SECOND),
            icmp::CHECKSUM
                .set(Expr::sum16(ip_header::TRANSPORT, 0u8, meta::AVAIL_TRANSPORT) ^ 0xffffu16),
            anno::DST_IP.set(TO),
            anno::FIX_IP_SRC.set(u8::from(self.fix_source)),
            meta::TIMESTAMP.set(Expr::Now),
            Op::emit(0u8),
        ]);
        block
    }

    /// The link-layer header in front of the data, by register.
    fn link_chunks(&self) -> impl Iterator<Item = (Reg, Field)> {
        let length = u16::from(self.link);
        (0..length.div_ceil(16)).map(move |chunk| {
            let bytes = (length - 16 * chunk).min(16);
            (link(chunk), Field::bytes(Base::Data, 16 * chunk, bytes))
        })
    }

    /// Looks for a source route as [`SourceRoute::find`] does and remembers it reversed.
    fn find_route(&self) -> Block {
        let Walk { at, kind, length, .. } = OPTIONS;
        let reg = Expr::from;
        let travelled = reg(POINTER)
            .ge(4u8)
            .and((reg(POINTER) % 4u8).eq(0u8))
            .and(reg(POINTER).le(reg(length) + 1u8));
        let each = vec![Op::when(
            ip_options::source_routes(kind).and(reg(length).gt(2u8)),
            vec![
                Op::Let(POINTER, Expr::load(NETWORK, reg(at) + 2u8, 8)),
                Op::when(travelled, vec![Op::Let(OPTION, reg(POINTER)), Op::Break]),
            ],
        )];
        let mut found = Vec::new();
        if self.message_type == icmpv4::message::REDIRECT {
            found.push(Op::Drop(ABOUT_SOURCE_ROUTE));
        } else {
            if self.is_at_pointer() {
                let pointer = || anno::ICMP_PARAMETER_PROBLEM.get();
                let inside = pointer().ge(at).and(pointer().lt(reg(at) + length));
                found.push(Op::when(inside, vec![Op::Let(OPTION, 0u8.into())]));
            }
            found.extend((0..MAX_ADDRESSES).map(|k| {
                let load = Expr::load(NETWORK, reg(at) + OPTION - (5 + 4 * k), 32);
                Op::when(reg(OPTION).ge(8 + 4 * k), vec![Op::Let(address(k), load)])
            }));
        }
        let mut block = OPTIONS.each(each, Vec::new());
        block.push(Op::when(reg(OPTION).gt(0u8), found));
        block
    }
}

/// Writes the source route that was found behind the new IP header.
fn put_route() -> Block {
    let reg = Expr::from;
    let byte = |at| Field::bytes(NETWORK, at, 1);
    let mut block =
        vec![byte(20).set(OPTIONS.kind), byte(21).set(reg(OPTION) - 1u8), byte(22).set(4u8)];
    block.extend((0..MAX_ADDRESSES).map(|k| {
        let put = Field::bytes(NETWORK, 23 + 4 * k, 4).set(address(k));
        Op::when(reg(OPTION).ge(8 + 4 * k), vec![put])
    }));
    let last = Op::Store { base: NETWORK, offset: reg(OPTION) + 19u8, width: 8, value: 0u8.into() };
    block.push(last);
    block
}
