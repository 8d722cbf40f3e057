//! ICMPRewriter.

use std::rc::Rc;

use click::config::Argument;
use ir::field::{anno, icmp, ip, meta};
use ir::model::{Block, Reg, reject};
use ir::{Base, Cond, Diagnostic, Expr, Field, IntervalSet, Model, Op, Span};
use net::annotation::DST_IP;
use net::wire::Icmpv4;
use net::{Batch, Header, Packet};

use crate::argument::{AnnotationOffset, parse_integer};
use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::element::{Element, Verdict};
use crate::flow_table::{FlowHit, Key};
use crate::ip::icmp_quote::{NOT_ERROR, NOT_ICMP, QUOTED, Quote, checksum_offset};
use crate::ip::ip_header;
use crate::nat::rewriter::{
    FLOWS_STATE, Joined, Kind, NO_HEADER, NO_MAPPING, Peer, add_deltas, address_delta, adjust,
    adjust_udp, change16, change32, echo_port, flows_kind, port_delta,
};

element! {
    /// ICMPRewriter(REWRITERS [, KEYWORDS DST_ANNO, REPLY_ANNO]) -- rewrites ICMP errors about rewritten packets
    ///
    /// An ICMP error quotes the start of the packet that it is about. If a rewriter rewrote that
    /// packet, the error must be translated back: outside, so that it looks as if it were about
    /// the original, and inside. REWRITERS is a list of IPRewriters and their like, separated by
    /// spaces, whose flows are tried in order.
    ///
    /// Destination unreachable, source quench, redirect, time exceeded and parameter problem
    /// messages are translated: in the quoted header the addresses, and the ports or the
    /// identifier of an echo request; the destination of the error if it is the quoted source;
    /// the source of the error if it is the quoted destination (RFC 5508); and all checksums,
    /// incrementally. They leave on output 0, or, if `:OFFSET` stands behind the rewriter's name,
    /// on the output that the flow uses, plus OFFSET.
    ///
    /// Errors about unknown flows, and ICMP packets that are not errors, leave unchanged on
    /// output 1 if there is one, and are dropped otherwise. Packets of other protocols are
    /// dropped. Expects IP packets with their headers marked.
    ///
    /// = KEYWORDS
    ///
    /// DST_ANNO (bool, default true): whether the destination annotation is set to a new
    /// destination.
    /// REPLY_ANNO (annotation): a byte that errors about the forward direction get from the
    /// packet that made the flow.
    ///
    /// = EXAMPLE
    ///
    /// rw :: IPRewriter(pattern 100.0.0.1 1024-65535 - - 0 1, drop);
    /// from_outside -> c :: IPClassifier(tcp or udp, icmp) -> [1] rw;
    /// c[1] -> ICMPRewriter(rw) -> to_inside;
    ///
    /// = SEE ALSO
    ///
    /// IPRewriter, ICMPPingRewriter, ICMPError
    ICMPRewriter {
        category: Nat, ports: "1/1-", processing: "h/h", phase: Late,
        samples: [
            ("law_rw", 1, 1),
            ("law_kept", 1, 1),
            ("law_rw law_ping law_address law_pair law_udp:0, DST_ANNO false, REPLY_ANNO 3", 1, 2),
        ],
        prelude: "Idle -> law_rw :: IPRewriter(pattern 10.0.0.1 1024-65535 - - 0 0) -> Discard;
            Idle -> law_kept :: IPRewriter(pattern - 1-65535 10.0.0.1 - 0 0, REWRITE false) -> Discard;
            Idle -> law_ping :: ICMPPingRewriter(pattern 10.0.0.1 1024-65535 - - 0 0) -> Discard;
            Idle -> law_address :: IPAddrRewriter(pattern 10.0.0.1 - 0 0) -> Discard;
            Idle -> law_pair :: IPAddrPairRewriter(pattern 10.0.0.1 - 0 0) -> Discard;
            Idle -> law_udp :: UDPRewriter(pattern 10.0.0.1 1024-65535 - - 0 0) -> Discard;"
    }
}

/// One of the rewriters.
struct Source {
    /// Its full name, and where that stands.
    name: String,
    span: Span,
    /// What is added to a flow's output; if nothing, output 0 is used.
    offset: Option<u16>,
    /// Set when all elements are configured.
    rewriter: Option<(Rc<Peer>, Joined)>,
}

/// See [`ICMPRewriter::CLASS`].
pub(crate) struct ICMPRewriter {
    sources: Vec<Source>,
    outputs: usize,
    /// Whether the rewriters' packets keep addresses and ports, and errors about them do, too.
    keeps: bool,
    dst_annotation: bool,
    reply_annotation: Option<usize>,
}

impl ICMPRewriter {
    fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let (outputs, span) = (cx.outputs(), cx.span());
        let mut arguments = cx.arguments(&["DST_ANNO", "REPLY_ANNO"]);
        let dst_annotation = arguments.keyword("DST_ANNO").unwrap_or(true);
        let reply_annotation = arguments.keyword::<AnnotationOffset<1>>("REPLY_ANNO").map(|a| a.0);
        let words: Vec<Argument> =
            arguments.next_raw().map(|list| list.words().collect()).unwrap_or_default();
        if words.is_empty() {
            let error = Diagnostic::error("missing-argument", "no rewriter is named");
            arguments.report(error.label(span, ""));
        }
        let mut sources = Vec::new();
        for word in words {
            let (name, offset) = match word.text.split_once(':') {
                None => (word.text.as_str(), None),
                Some((name, offset)) => {
                    let number = parse_integer(offset).and_then(|o| u16::try_from(o).ok());
                    if number.is_none() {
                        arguments.error(&word, format!("'{offset}' is not a number of outputs"));
                    }
                    (name, number)
                }
            };
            match arguments.cx().resolve(name) {
                Some(name) => {
                    sources.push(Source { name, span: word.span, offset, rewriter: None });
                }
                None => arguments.error(&word, format!("there is no element '{name}'")),
            }
        }
        arguments.finish()?;
        Ok(Self { sources, outputs, keeps: false, dst_annotation, reply_annotation })
    }
}

/// What the quoted packet becomes.
struct Translation {
    src: u32,
    dst: u32,
    ports: u32,
    identifier: u16,
}

impl Source {
    /// The flow of answers to the quoted packet, and what the quoted packet becomes.
    fn find(&self, quote: &Quote, now: u64) -> Option<(&Joined, FlowHit, Translation)> {
        let (peer, joined) = self.rewriter.as_ref()?;
        let table = &joined.set.borrow().table;
        let map = u16::from(joined.member) << 8 | u16::from(peer.kind.map(quote.protocol));
        let ports = quote.ports.unwrap_or(0);
        let identifier = quote.identifier.unwrap_or(0);
        let key = |src, src_port, dst, dst_port| Key::new(map, src, src_port, dst, dst_port);
        let (dst_port, src_port) = (ports as u16, (ports >> 16) as u16);
        let same = || Translation { src: quote.src, dst: quote.dst, ports, identifier };
        let to = |(number, side): FlowHit| table.flow(number).rewritten(side);
        let (found, translation) = match peer.kind {
            Kind::Ip | Kind::Tcp | Kind::Udp => {
                let fits = match peer.kind {
                    Kind::Ip => quote.protocol == 6 || quote.protocol == 17,
                    Kind::Tcp => quote.protocol == 6,
                    _ => true,
                };
                quote.ports.filter(|_| fits)?;
                let found = table.lookup(&key(quote.dst, dst_port, quote.src, src_port), now)?;
                if peer.kind == Kind::Udp && table.flow(found.0).protocol != quote.protocol {
                    return None;
                }
                if !peer.rewrites {
                    return Some((joined, found, same()));
                }
                let to = to(found);
                let ports = to.reverse().ports;
                (found, Translation { src: to.dst(), dst: to.src(), ports, ..same() })
            }
            Kind::Address => {
                let found = table
                    .lookup(&key(quote.dst, 0, 0, 0), now)
                    .or_else(|| table.lookup(&key(0, 0, quote.src, 0), now))?;
                let to = to(found);
                let translation = match found.1 {
                    0 => Translation { dst: to.src(), ..same() },
                    _ => Translation { src: to.dst(), ..same() },
                };
                (found, translation)
            }
            Kind::Pair => {
                let found = table.lookup(&key(quote.dst, 0, quote.src, 0), now)?;
                let to = to(found);
                (found, Translation { src: to.dst(), dst: to.src(), ..same() })
            }
            Kind::Ping => {
                quote.identifier?;
                let answer = key(quote.dst, echo_port(identifier), quote.src, identifier);
                let found = table.lookup(&answer, now)?;
                let to = to(found);
                let identifier = to.dst_port();
                (found, Translation { src: to.dst(), dst: to.src(), identifier, ..same() })
            }
        };
        Some((joined, found, translation))
    }
}

fn pair(src: u32, dst: u32) -> u64 {
    u64::from(src) << 32 | u64::from(dst)
}

/// Writes a number into a header.
fn put<const N: usize>(header: Option<&mut [u8]>, at: usize, bytes: [u8; N]) {
    if let Some(place) = header.and_then(|h| h.get_mut(at..at + N)) {
        place.copy_from_slice(&bytes);
    }
}

/// What replacing a word adds to a sum of words.
fn word_delta(from: u16, to: u16) -> u16 {
    port_delta(from.into(), to.into())
}

impl ICMPRewriter {
    fn rewrite(&self, packet: &mut Packet, now: u64) -> Verdict {
        let quote = match Quote::of(packet) {
            Ok(quote) => quote,
            Err(NOT_ERROR) => return Verdict::Reject(1, NOT_ERROR),
            Err(reason) => return Verdict::Drop(reason),
        };
        let found = self.sources.iter().find_map(|s| Some((s, s.find(&quote, now)?)));
        let Some((source, (joined, (number, side), new))) = found else {
            return Verdict::Reject(1, NO_MAPPING);
        };
        let flow = *joined.set.borrow().table.flow(number);
        let target = if self.keeps { flow.rewritten(side).dst() } else { new.src };
        self.rewrite_outside(packet, &quote, &new, target);
        if let Some(at) = self.reply_annotation.filter(|_| side == 1) {
            packet.annotations_mut().set_u8(at, flow.annotation);
        }
        let delta = rewrite_inside(packet, &quote, &new);
        if let Some(mut message) = packet.transport_mut().and_then(Icmpv4::new) {
            message.set_checksum(adjust(message.checksum(), delta));
        }
        Verdict::To(source.offset.map_or(0, |o| usize::from(o) + usize::from(flow.output(side))))
    }

    /// Rewrites the IP header of the error itself; `target` is where it goes if it was for the quoted packet's source.
    fn rewrite_outside(&self, packet: &mut Packet, quote: &Quote, new: &Translation, target: u32) {
        let Some(mut ip) = ip_header::view_mut(packet) else { return };
        let (old_src, old_dst) = (ip.src().to_bits(), ip.dst().to_bits());
        let (mut src, mut dst) = (old_src, old_dst);
        let is_to_source = dst == quote.src;
        if is_to_source {
            dst = new.src;
        }
        if src == quote.dst {
            src = new.dst;
        }
        ip.set_src(src.into());
        ip.set_dst(dst.into());
        let delta = address_delta(pair(old_src, old_dst), pair(src, dst));
        ip.set_checksum(adjust(ip.checksum(), delta));
        if is_to_source && self.dst_annotation {
            packet.annotations_mut().set_u32(DST_IP, target);
        }
    }
}

/// Rewrites what is quoted, and returns what that adds to the message's sum.
fn rewrite_inside(packet: &mut Packet, quote: &Quote, new: &Translation) -> u16 {
    let mut message = packet.transport_mut();
    let addresses = address_delta(pair(quote.src, quote.dst), pair(new.src, new.dst));
    put(message.as_deref_mut(), QUOTED + 12, pair(new.src, new.dst).to_be_bytes());
    let checksum = adjust(quote.checksum, addresses);
    put(message.as_deref_mut(), QUOTED + 10, checksum.to_be_bytes());
    let mut delta = add_deltas(addresses, word_delta(quote.checksum, checksum));
    let numbers = if let Some(ports) = quote.ports {
        put(message.as_deref_mut(), quote.transport, new.ports.to_be_bytes());
        port_delta(ports, new.ports)
    } else if let Some(identifier) = quote.identifier {
        put(message.as_deref_mut(), quote.transport + 4, new.identifier.to_be_bytes());
        word_delta(identifier, new.identifier)
    } else {
        return delta;
    };
    delta = add_deltas(delta, numbers);
    if let Some(old) = quote.transport_checksum {
        let checksum = match quote.protocol {
            1 => adjust(old, numbers),
            17 => adjust_udp(old, add_deltas(addresses, numbers)),
            _ => adjust(old, add_deltas(addresses, numbers)),
        };
        let at = quote.transport + checksum_offset(quote.protocol);
        put(message, at, checksum.to_be_bytes());
        delta = add_deltas(delta, word_delta(old, checksum));
    }
    delta
}

impl Element for ICMPRewriter {
    fn push(&mut self, _port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let now = cx.now();
        cx.each(batch, |packet, _| self.rewrite(packet, now));
    }

    fn model(&self) -> Model {
        let mut model = Model::default();
        let block = self.block(&mut model);
        model.inputs = vec![block];
        model
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        let mut failed = false;
        for source in &mut self.sources {
            let found = cx.shared::<Peer>(&source.name);
            let joined = match &found {
                Some(peer) => peer.join(&|name| cx.shared::<Peer>(name)),
                None => Err(format!("'{}' is not a rewriter", source.name)),
            };
            let needed = found.as_ref().map_or(0, |p| p.outputs);
            let message = match (joined, source.offset) {
                (Err(message), _) => message,
                (Ok(_), Some(offset)) if usize::from(offset) + needed > self.outputs => {
                    format!("this takes outputs up to {}", usize::from(offset) + needed - 1)
                }
                (Ok(joined), _) => {
                    source.rewriter = found.map(|peer| (peer, joined));
                    continue;
                }
            };
            failed = true;
            cx.report(Diagnostic::error("bad-argument", message).label(source.span, ""));
        }
        let is_kept = |source: &Source| source.rewriter.as_ref().is_some_and(|of| !of.0.rewrites);
        self.keeps = self.sources.iter().any(is_kept);
        if let Some(other) = self.sources.iter().find(|source| is_kept(source) != self.keeps) {
            failed = true;
            let message =
                "flows of packets that are rewritten, and of those that are not, need one each";
            cx.report(Diagnostic::error("bad-argument", message).label(other.span, ""));
        }
        if failed { Err(Failed) } else { Ok(()) }
    }
}

// The model.

const PROTOCOL: Reg = Reg(0);
const SRC: Reg = Reg(1);
const DST: Reg = Reg(2);
/// Offset of the quoted transport header.
const AT: Reg = Reg(3);
/// Which numbers of it are quoted: see below.
const NUMBERS: Reg = Reg(4);
const SRC_PORT: Reg = Reg(5);
const DST_PORT: Reg = Reg(6);
const CHECKSUM: Reg = Reg(7);
/// Whether the transport checksum is quoted, and which it is.
const HAS_CHECKSUM: Reg = Reg(8);
const T_CHECKSUM: Reg = Reg(9);
/// The source that has the flow, counted from 1.
const FOUND: Reg = Reg(10);
// What a lookup yields.
const TO: [Reg; 6] = [Reg(11), Reg(12), Reg(13), Reg(14), Reg(15), Reg(16)];
const SIDE: Reg = TO[5];
const COMMON: [Reg; 4] = [Reg(17), Reg(18), Reg(19), Reg(20)];
const FLOW_PROTOCOL: Reg = COMMON[2];
const ANNOTATION: Reg = COMMON[3];
const N_SRC: Reg = Reg(21);
const N_DST: Reg = Reg(22);
const N_SRC_PORT: Reg = Reg(23);
const N_DST_PORT: Reg = Reg(24);
const OUTPUT: Reg = Reg(25);
const ADDRESSES: Reg = Reg(26);
const PORTS: Reg = Reg(27);
const SUM: Reg = Reg(28);
const N_CHECKSUM: Reg = Reg(29);
const DELTA: Reg = Reg(30);
const TO_SOURCE: Reg = Reg(31);
const FROM_DESTINATION: Reg = Reg(32);

/// Values of [`NUMBERS`]: none, ports, an identifier (in both port registers).
const IS_PORTS: u8 = 1;
const IS_IDENTIFIER: u8 = 2;

const MESSAGE: Base = Base::Header(Header::Transport);

fn reg(reg: Reg) -> Expr {
    reg.into()
}

/// 16 bits behind the start of the quoted transport header.
fn load(offset: u8) -> Expr {
    Expr::load(MESSAGE, reg(AT) + offset, 16)
}

fn store(offset: Expr, value: impl Into<Expr>) -> Op {
    Op::Store { base: MESSAGE, offset: reg(AT) + offset, width: 16, value: value.into() }
}

fn one_of(numbers: &[u8]) -> IntervalSet {
    IntervalSet::from_intervals(numbers.iter().map(|&n| (n.into(), n.into())).collect())
}

/// A checksum whose sum changes by a delta below 0xffff.
fn adjusted(checksum: Reg, delta: Expr) -> [Op; 2] {
    [
        Op::Let(SUM, (reg(checksum) ^ 0xffffu16) + delta),
        Op::Let(N_CHECKSUM, reg(SUM).fold16() ^ 0xffffu16),
    ]
}

impl ICMPRewriter {
    fn block(&self, model: &mut Model) -> Block {
        let quoted =
            |offset: u16, width: u16| Field::bits(MESSAGE, QUOTED as u16 * 8 + offset, width);
        let not_error = Cond::Any(vec![
            ip::FRAG.ne(0u8),
            meta::AVAIL_TRANSPORT.lt(28u8),
            icmp::TYPE.is_in(one_of(&[3, 4, 5, 11, 12])).not(),
            quoted(0, 4).ne(4u8),
            quoted(4, 4).lt(5u8),
        ]);
        let mut block = vec![
            Op::when(meta::AVAIL_NET.lt(20u8), vec![Op::Drop(NO_HEADER)]),
            Op::when(ip::PROTO.ne(1u8), vec![Op::Drop(NOT_ICMP)]),
            Op::when(not_error, reject(1, self.outputs, NOT_ERROR)),
            Op::Let(PROTOCOL, quoted(72, 8).get()),
            Op::Let(SRC, quoted(96, 32).get()),
            Op::Let(DST, quoted(128, 32).get()),
            Op::Let(CHECKSUM, quoted(80, 16).get()),
            Op::Let(AT, (quoted(4, 4).get() << 2u8) + QUOTED),
        ];
        block.extend(self.quoted_numbers(quoted(51, 13)));
        block.push(Op::Let(FOUND, 0u8.into()));
        for (number, source) in self.sources.iter().enumerate() {
            let lookup = source.lookup(number + 1, model);
            block.push(Op::when(reg(FOUND).eq(0u8), lookup));
        }
        block.push(Op::when(reg(FOUND).eq(0u8), reject(1, self.outputs, NO_MAPPING)));
        let addresses = (change32(SRC, N_SRC) + change32(DST, N_DST)) % 0xffffu16;
        block.push(Op::Let(ADDRESSES, addresses));
        block.extend(self.outside());
        block.extend(inside(quoted(96, 32), quoted(128, 32), quoted(80, 16)));
        block.extend([
            Op::Let(SUM, (icmp::CHECKSUM.get() ^ 0xffffu16) + reg(DELTA)),
            icmp::CHECKSUM.set(reg(SUM).fold16() ^ 0xffffu16),
            Op::emit(OUTPUT),
        ]);
        block
    }

    /// Binds the numbers of the quoted transport header.
    fn quoted_numbers(&self, fragment: Field) -> Block {
        let none = || Expr::from(0u8);
        let long = |bytes: u8| meta::AVAIL_TRANSPORT.get().ge(reg(AT) + bytes);
        let has_ports =
            Cond::All(vec![reg(PROTOCOL).is_in(one_of(&[6, 17, 33])), fragment.eq(0u8), long(8)]);
        let ports = vec![
            Op::Let(NUMBERS, IS_PORTS.into()),
            Op::Let(SRC_PORT, load(0)),
            Op::Let(DST_PORT, load(2)),
            Op::If(
                reg(PROTOCOL).eq(6u8),
                vec![Op::when(
                    long(18),
                    vec![Op::Let(HAS_CHECKSUM, 1u8.into()), Op::Let(T_CHECKSUM, load(16))],
                )],
                vec![Op::Let(HAS_CHECKSUM, 1u8.into()), Op::Let(T_CHECKSUM, load(6))],
            ),
        ];
        let is_request = Cond::All(vec![
            reg(PROTOCOL).eq(1u8),
            fragment.eq(0u8),
            long(6),
            Expr::load(MESSAGE, reg(AT), 8).eq(8u8),
        ]);
        let identifier = vec![
            Op::Let(NUMBERS, IS_IDENTIFIER.into()),
            Op::Let(SRC_PORT, load(4)),
            Op::Let(DST_PORT, load(4)),
            Op::Let(HAS_CHECKSUM, 1u8.into()),
            Op::Let(T_CHECKSUM, load(2)),
        ];
        let zero = [NUMBERS, SRC_PORT, DST_PORT, HAS_CHECKSUM, T_CHECKSUM];
        let mut block: Block = zero.into_iter().map(|r| Op::Let(r, none())).collect();
        block.push(Op::If(has_ports, ports, vec![Op::when(is_request, identifier)]));
        block
    }

    fn outside(&self) -> Block {
        let flag = |cond| Expr::choose(cond, 1u8, 0u8);
        let is = |r: Reg| reg(r).ne(0u8);
        let change = |r: Reg, old, new| Expr::choose(is(r), change32(old, new), 0u8);
        let mut to_source = vec![ip::DST.set(N_SRC)];
        if self.dst_annotation {
            to_source.push(anno::DST_IP.set(if self.keeps { TO[2] } else { N_SRC }));
        }
        let delta = change(TO_SOURCE, SRC, N_SRC) + change(FROM_DESTINATION, DST, N_DST);
        let mut block = vec![
            Op::Let(TO_SOURCE, flag(ip::DST.eq(reg(SRC)))),
            Op::Let(FROM_DESTINATION, flag(ip::SRC.eq(reg(DST)))),
            Op::when(is(TO_SOURCE), to_source),
            Op::when(is(FROM_DESTINATION), vec![ip::SRC.set(N_DST)]),
            Op::Let(SUM, (ip::CHECKSUM.get() ^ 0xffffu16) + delta % 0xffffu16),
            ip::CHECKSUM.set(reg(SUM).fold16() ^ 0xffffu16),
        ];
        if let Some(at) = self.reply_annotation {
            let byte = Field::bytes(Base::Annotation, at as u16, 1);
            block.push(Op::when(is(SIDE), vec![byte.set(ANNOTATION)]));
        }
        block
    }
}

/// Rewrites what is quoted, and binds what that adds to the message's sum.
fn inside(src: Field, dst: Field, checksum: Field) -> Block {
    let is_ports = || reg(NUMBERS).eq(IS_PORTS);
    let mut block = vec![src.set(N_SRC), dst.set(N_DST)];
    block.extend(adjusted(CHECKSUM, ADDRESSES.into()));
    block.extend([
        checksum.set(N_CHECKSUM),
        Op::Let(DELTA, (reg(ADDRESSES) + change16(CHECKSUM, N_CHECKSUM)) % 0xffffu16),
    ]);
    let both = change16(SRC_PORT, N_SRC_PORT) + change16(DST_PORT, N_DST_PORT);
    let ports = vec![
        store(0u8.into(), N_SRC_PORT),
        store(2u8.into(), N_DST_PORT),
        Op::Let(PORTS, both % 0xffffu16),
    ];
    let identifier = vec![
        store(4u8.into(), N_SRC_PORT),
        Op::Let(PORTS, change16(SRC_PORT, N_SRC_PORT) % 0xffffu16),
    ];
    // Only an identifier's checksum covers no addresses.
    let covered = Expr::choose(is_ports(), reg(ADDRESSES) + reg(PORTS), PORTS) % 0xffffu16;
    let mut transport: Block = adjusted(T_CHECKSUM, covered).into();
    let udp = || reg(PROTOCOL).eq(17u8);
    transport.extend([
        Op::when(udp().and(reg(N_CHECKSUM).eq(0u8)), vec![Op::Let(N_CHECKSUM, 0xffffu16.into())]),
        Op::when(udp().and(reg(T_CHECKSUM).eq(0u8)), vec![Op::Let(N_CHECKSUM, 0u8.into())]),
        store(
            Expr::choose(
                reg(PROTOCOL).eq(6u8),
                16u8,
                Expr::choose(reg(PROTOCOL).eq(1u8), 2u8, 6u8),
            ),
            N_CHECKSUM,
        ),
        Op::Let(DELTA, (reg(DELTA) + change16(T_CHECKSUM, N_CHECKSUM)) % 0xffffu16),
    ]);
    block.push(Op::when(
        reg(NUMBERS).ne(0u8),
        vec![
            Op::If(is_ports(), ports, identifier),
            Op::Let(DELTA, (reg(DELTA) + reg(PORTS)) % 0xffffu16),
            Op::when(reg(HAS_CHECKSUM).ne(0u8), transport),
        ],
    ));
    block
}

impl Source {
    /// Binds the translation, if this source has the flow.
    fn lookup(&self, number: usize, model: &mut Model) -> Block {
        let Some((peer, joined)) = &self.rewriter else { return Vec::new() };
        let capacity = joined.set.borrow().table.capacity();
        let kind = flows_kind(capacity);
        let known = |s: &ir::model::StateDecl| {
            s.owner.as_ref() == Some(&joined.root) && s.name == FLOWS_STATE
        };
        let flows = match model.state.iter().position(known) {
            Some(at) => ir::model::StateRef(at as u16),
            None => model.declare_of(Some(joined.root.clone()), FLOWS_STATE, kind),
        };
        let base = u16::from(joined.member) << 8;
        let map: Expr = match peer.kind {
            Kind::Ip => reg(PROTOCOL) + base,
            kind => (base | u16::from(kind.map(0))).into(),
        };
        let lookup = |key: [Expr; 4], miss: Block| Op::FlowLookup {
            flows,
            key: std::iter::once(map.clone()).chain(key).collect(),
            value: TO.into(),
            common: COMMON.into(),
            miss,
        };
        let unknown = || vec![Op::Let(FOUND, 0u8.into())];
        let none = || Expr::from(0u8);
        let found = Op::Let(FOUND, number.into());
        let [src, src_port, dst, dst_port, output, _] = TO;
        let new = |all: [Reg; 4]| {
            let to = [N_SRC, N_DST, N_SRC_PORT, N_DST_PORT].into_iter().zip(all);
            to.map(|(to, from)| Op::Let(to, from.into())).collect::<Block>()
        };
        let emit = match self.offset {
            Some(offset) => reg(output) + offset,
            None => none(),
        };
        let emit = Op::Let(OUTPUT, emit);
        let answer = [DST.into(), DST_PORT.into(), SRC.into(), SRC_PORT.into()];
        let mut block = vec![found];
        let applies = match peer.kind {
            Kind::Ip | Kind::Tcp | Kind::Udp => {
                block.push(lookup(answer, unknown()));
                if peer.kind == Kind::Udp {
                    // The quoted protocol must be that of the flow.
                    let other = reg(FLOW_PROTOCOL).ne(reg(PROTOCOL));
                    block.push(Op::when(reg(FOUND).ne(0u8), vec![Op::when(other, unknown())]));
                }
                let protocols: &[u8] = match peer.kind {
                    Kind::Ip => &[6, 17],
                    Kind::Tcp => &[6],
                    _ => &[6, 17, 33],
                };
                let translated = match peer.rewrites {
                    true => new([dst, src, dst_port, src_port]),
                    false => new([SRC, DST, SRC_PORT, DST_PORT]),
                };
                block.push(Op::when(reg(FOUND).ne(0u8), translated));
                let right = reg(PROTOCOL).is_in(one_of(protocols));
                Some(reg(NUMBERS).eq(IS_PORTS).and(right))
            }
            Kind::Address => {
                // The quoted destination may be a source that has a new address, …
                let forward = [DST.into(), none(), none(), none()];
                // … or the quoted source the new address of one.
                let reverse = [none(), none(), SRC.into(), none()];
                block.push(lookup(forward, vec![lookup(reverse, unknown())]));
                let translated = Op::If(
                    reg(SIDE).eq(0u8),
                    new([SRC, src, SRC_PORT, DST_PORT]),
                    new([dst, DST, SRC_PORT, DST_PORT]),
                );
                block.push(Op::when(reg(FOUND).ne(0u8), vec![translated]));
                None
            }
            Kind::Pair => {
                block.push(lookup([DST.into(), none(), SRC.into(), none()], unknown()));
                let translated = new([dst, src, SRC_PORT, DST_PORT]);
                block.push(Op::when(reg(FOUND).ne(0u8), translated));
                None
            }
            Kind::Ping => {
                let other = (reg(SRC_PORT) + 1u8) & 0xffffu16;
                block.push(lookup([DST.into(), other, SRC.into(), SRC_PORT.into()], unknown()));
                let translated = new([dst, src, dst_port, dst_port]);
                block.push(Op::when(reg(FOUND).ne(0u8), translated));
                Some(reg(NUMBERS).eq(IS_IDENTIFIER))
            }
        };
        block.push(Op::when(reg(FOUND).ne(0u8), vec![emit]));
        match applies {
            Some(applies) => vec![Op::when(applies, block)],
            None => block,
        }
    }
}
