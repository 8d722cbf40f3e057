//! What rewriters mean.

use std::collections::BTreeMap;

use ir::field::{Base, anno, icmp, ip, meta, tcp, transport, udp};
use ir::model::{Block, FlowSide, Reg, StateKind, StateRef};
use ir::{Cond, Expr, Field, IntervalSet, Model, Op, Reason};
use net::Header;

use super::backends::NO_BACKEND;
use super::pattern::{NEXT_STATE, PatternRef, Patterns};
use super::{
    Action, Common, EXHAUSTED, FAILURES_STATE, FLOWS_STATE, FULL, Kind, NO_HEADER, NO_MAPPING,
    NOT_TRANSLATABLE, Spec, Tracking,
};

// The key that the packet is looked up by.
const MAP: Reg = Reg(0);
const SRC: Reg = Reg(1);
const SRC_PORT: Reg = Reg(2);
const DST: Reg = Reg(3);
const DST_PORT: Reg = Reg(4);
// What it becomes.
pub(super) const N_SRC: Reg = Reg(5);
pub(super) const N_SRC_PORT: Reg = Reg(6);
pub(super) const N_DST: Reg = Reg(7);
pub(super) const N_DST_PORT: Reg = Reg(8);
// The rest of what the flow says.
const OUTPUT: Reg = Reg(9);
const SIDE: Reg = Reg(10);
const STATE: Reg = Reg(11);
const INPUT: Reg = Reg(12);
const PROTOCOL: Reg = Reg(13);
const ANNOTATION: Reg = Reg(14);
// For the choice of a new flow.
pub(super) const NEXT: Reg = Reg(15);
pub(super) const FOUND: Reg = Reg(16);
pub(super) const FORWARD: Reg = Reg(17);
pub(super) const REPLY: Reg = Reg(18);
pub(super) const TURN: Reg = Reg(19);
pub(super) const HASH: Reg = Reg(20);
/// See [`super::backends`].
pub(super) const BACKEND: Reg = Reg(28);
const FAILURES: Reg = Reg(21);
// Of the packet.
const FLAGS: Reg = Reg(22);
const PAYLOAD: Reg = Reg(23);
const IP_DELTA: Reg = Reg(24);
const DELTA: Reg = Reg(25);
const SUM: Reg = Reg(26);
/// Its protocol.
const PROTO: Reg = Reg(27);

const TRANSPORT: Base = Base::Header(Header::Transport);
/// DCCP's checksum (RFC 4340), where UDP's is too.
const DCCP_CHECKSUM: Field = udp::CHECKSUM;

/// A model in the making, and what of its rewriter its parts need to know.
pub(crate) struct Builder<'a> {
    common: &'a Common,
    model: Model,
    /// Which rewriter answers arrive at, of those that share the flows.
    reply_member: u8,
    /// Destination address and port that a new flow has before its pattern is applied, if not the packet's.
    destination: Option<[Expr; 2]>,
}

/// The flows of rewriters: source address and port, destination address and port, output and
/// direction; then the connection's state, the input, the protocol, and an annotation.
pub(crate) fn flows_kind(capacity: u64) -> StateKind {
    StateKind::Flows { capacity, widths: vec![32, 16, 32, 16, 16, 1, 8, 16, 8, 8] }
}

/// What replacing a 16-bit word adds to a sum of words.
pub(crate) fn change16(old: impl Into<Expr>, new: impl Into<Expr>) -> Expr {
    (old.into() ^ 0xffffu16) + new.into()
}

/// What replacing a 32-bit word adds to a sum of words.
pub(crate) fn change32(old: Reg, new: Reg) -> Expr {
    let high = |r: Reg| Expr::from(r) >> 16u8;
    let low = |r: Reg| Expr::from(r) & 0xffffu16;
    change16(high(old), high(new)) + change16(low(old), low(new))
}

/// Updates a checksum by what was added to its sum (RFC 1624).
fn update(checksum: Field, delta: Reg) -> Block {
    vec![
        Op::Let(SUM, (checksum.get() ^ 0xffffu16) + Expr::from(delta)),
        checksum.set(Expr::from(SUM).fold16() ^ 0xffffu16),
    ]
}

/// Updates a UDP checksum: 0 means that there is none, and one that comes to 0 is sent as 0xffff
/// (RFC 768).
fn update_udp(delta: Reg) -> Block {
    let checksum = udp::CHECKSUM;
    let updated = [
        Op::Let(SUM, (checksum.get() ^ 0xffffu16) + Expr::from(delta)),
        Op::Let(SUM, Expr::from(SUM).fold16() ^ 0xffffu16),
        checksum.set(Expr::choose(Expr::from(SUM).eq(0u8), 0xffffu16, SUM)),
    ];
    vec![Op::when(checksum.ne(0u8), updated.into())]
}

impl<'a> Builder<'a> {
    /// The whole model of a rewriter.
    pub(super) fn build(common: &'a Common) -> Model {
        let mut builder = Self {
            common,
            model: Model::default(),
            reply_member: common.member(),
            destination: None,
        };
        builder.flows();
        let inputs = (0..common.specs.len()).map(|input| builder.input(input)).collect();
        builder.model.inputs = inputs;
        builder.model
    }

    /// Declares a piece of state, once.
    pub(crate) fn declare(&mut self, owner: &str, name: &'static str, kind: StateKind) -> StateRef {
        let owner = Some(owner).filter(|o| *o != self.common.name).map(str::to_string);
        let known = self.model.state.iter().position(|s| s.owner == owner && s.name == name);
        match known {
            Some(at) => StateRef(at as u16),
            None => self.model.declare_of(owner, name, kind),
        }
    }

    /// The table of flows.
    pub(crate) fn flows(&mut self) -> StateRef {
        let root = self.common.root().to_string();
        self.declare(&root, FLOWS_STATE, flows_kind(self.common.capacity()))
    }

    /// Where the turns of some patterns are.
    pub(crate) fn next(&mut self, group: &Patterns) -> StateRef {
        let initial = vec![0; group.patterns.len()];
        self.declare(&group.owner, NEXT_STATE, StateKind::Cells { width: 64, initial })
    }

    /// Whether keys are those of ICMP echo.
    pub(crate) fn is_echo(&self) -> bool {
        self.common.kind == Kind::Ping
    }

    /// The packet's key.
    pub(crate) fn key(&self) -> [Expr; 5] {
        [MAP, SRC, SRC_PORT, DST, DST_PORT].map(Expr::from)
    }

    /// Has patterns be applied to packets with this destination.
    pub(super) fn direct(&mut self, destination: Option<[Expr; 2]>) {
        self.destination = destination;
    }

    /// What a pattern is applied to: source address and port, destination address and port.
    pub(super) fn directed(&self) -> [Expr; 4] {
        let [_, src, src_port, dst, dst_port] = self.key();
        let [dst, dst_port] = self.destination.clone().unwrap_or([dst, dst_port]);
        [src, src_port, dst, dst_port]
    }

    /// The key that answers will have.
    pub(crate) fn reply_key(&self) -> Vec<Expr> {
        let (own, reply) = (self.common.member(), self.reply_member);
        let map = match self.common.kind {
            Kind::Ip if own != reply => (Expr::from(MAP) & 0xffu8) + (u16::from(reply) << 8),
            Kind::Ip => MAP.into(),
            kind => (u16::from(reply) << 8 | u16::from(kind.map(0))).into(),
        };
        let dst_port = match self.is_echo() {
            true => (Expr::from(N_SRC_PORT) + 1u8) & 0xffffu16,
            false => N_DST_PORT.into(),
        };
        vec![map, N_DST.into(), dst_port, N_SRC.into(), N_SRC_PORT.into()]
    }

    fn input(&mut self, input: usize) -> Block {
        let spec = &self.common.specs[input];
        self.reply_member = self.common.reply_member(spec);
        let refuse = |reason: Reason| match spec.action {
            Action::Pass(output) => vec![Op::emit(output)],
            _ => vec![Op::Drop(reason)],
        };
        let mut block = vec![Op::when(meta::AVAIL_NET.lt(20u8), vec![Op::Drop(NO_HEADER)])];
        if let Some(strange) = self.not_translatable() {
            block.push(Op::when(strange, refuse(NOT_TRANSLATABLE)));
        }
        block.extend(self.read_packet());
        let create = match self.common.kind {
            Kind::Ping => {
                let mut create = vec![Op::when(icmp::TYPE.ne(8u8), refuse(NO_MAPPING))];
                create.extend(self.create(input));
                create
            }
            _ => self.create(input),
        };
        let flows = self.flows();
        let lookup = |key: [Expr; 5], miss: Block| Op::FlowLookup {
            flows,
            key: key.into(),
            value: vec![N_SRC, N_SRC_PORT, N_DST, N_DST_PORT, OUTPUT, SIDE],
            common: vec![STATE, INPUT, PROTOCOL, ANNOTATION],
            miss,
        };
        let miss = match self.common.kind {
            // Then the destination may be the new address of some source.
            Kind::Address => {
                let mut again = vec![Op::Let(SRC, 0u8.into()), Op::Let(DST, ip::DST.get())];
                let mut neither = vec![Op::Let(SRC, ip::SRC.get()), Op::Let(DST, 0u8.into())];
                neither.extend(create);
                again.push(lookup(self.key(), neither));
                again
            }
            _ => create,
        };
        block.push(lookup(self.key(), miss));
        block.extend(self.expected());
        block.extend(self.rewrite_packet());
        block.extend(self.touch());
        block.push(Op::emit(OUTPUT));
        block
    }

    /// What flows say that patterns of this rewriter have made. Others are there after a swap from
    /// a rewriter with other patterns, or by rewriters that share the table.
    fn expected(&self) -> Block {
        type Given = Option<[Option<IntervalSet>; 4]>;
        let given = |pattern: &PatternRef| Some(pattern.given(self.is_echo()));
        let made_by = |spec: &Spec| match &spec.action {
            Action::Drop | Action::Pass(_) | Action::Inbound(_) => Vec::new(),
            Action::Keep(ports) => vec![(*ports, None)],
            Action::Pattern(pattern, ports) => vec![(*ports, given(pattern))],
            Action::Map(mapper) => {
                mapper.mapped.iter().map(|m| (m.ports, given(&m.pattern))).collect()
            }
        };
        // With the sides of flows that leave there.
        let mut by_output: BTreeMap<u16, (Given, IntervalSet)> = BTreeMap::new();
        for (ports, given) in self.common.specs.iter().flat_map(made_by) {
            for (output, given, side) in [(ports.forward, given, 0), (ports.reply, None, 1)] {
                let side = IntervalSet::single(side);
                let joined = match by_output.remove(&output) {
                    None => (given, side),
                    Some((others, sides)) => {
                        let all = others.zip(given).map(|(mut all, given)| {
                            for (all, given) in all.iter_mut().zip(given) {
                                *all = all.take().zip(given).map(|(a, b)| a.union(&b));
                            }
                            all
                        });
                        (all, sides.union(&side))
                    }
                };
                by_output.insert(output, joined);
            }
        }
        let asks_side = matches!(self.common.kind, Kind::Address | Kind::Ping);
        let of_output = |(output, (given, sides)): (u16, (Given, IntervalSet))| {
            let side = Some(sides).filter(|sides| asks_side && sides.as_single().is_some());
            let numbers = [N_SRC, N_SRC_PORT, N_DST, N_DST_PORT].into_iter();
            let numbers = numbers.zip(given.into_iter().flatten()).chain([(SIDE, side)]);
            let expected: Block = numbers
                .filter_map(|(number, set)| Some(Op::Expect(Expr::from(number).is_in(set?))))
                .collect();
            (!expected.is_empty()).then(|| Op::when(Expr::from(OUTPUT).eq(output), expected))
        };
        by_output.into_iter().filter_map(of_output).collect()
    }

    /// When the packet has no key.
    fn not_translatable(&self) -> Option<Cond> {
        let protocols = |all: &[u8]| {
            let singles = all.iter().map(|&p| (u128::from(p), u128::from(p)));
            ip::PROTO.is_in(IntervalSet::from_intervals(singles.collect())).not()
        };
        let later = ip::FRAG.ne(0u8);
        let cut = |least: u8| meta::AVAIL_TRANSPORT.lt(least);
        let tcp_cut = || ip::PROTO.eq(6u8).and(cut(18));
        let any = match self.common.kind {
            Kind::Address | Kind::Pair => return None,
            Kind::Ip => vec![protocols(&[6, 17]), later, cut(8), tcp_cut()],
            Kind::Tcp => vec![protocols(&[6]), later, cut(18)],
            Kind::Udp => vec![protocols(&[6, 17, 33]), later, cut(8), tcp_cut()],
            Kind::Ping => {
                let echo = IntervalSet::from_intervals(vec![(0, 0), (8, 8)]);
                vec![protocols(&[1]), later, cut(6), icmp::TYPE.is_in(echo).not()]
            }
        };
        Some(Cond::Any(any))
    }

    /// Binds the key, and what the connection's state depends on.
    fn read_packet(&self) -> Block {
        let kind = self.common.kind;
        let base = u16::from(self.common.member()) << 8;
        let map = match kind {
            Kind::Ip if base == 0 => ip::PROTO.get(),
            Kind::Ip => ip::PROTO.get() + base,
            _ => (base | u16::from(kind.map(0))).into(),
        };
        let reply = || icmp::TYPE.ne(8u8);
        let identifier =
            |plus_one: Cond| (icmp::ID.get() + Expr::choose(plus_one, 1u8, 0u8)) & 0xffffu16;
        let none = || Expr::from(0u8);
        let (src_port, dst, dst_port) = match kind {
            Kind::Ip | Kind::Tcp | Kind::Udp => {
                (transport::SPORT.get(), ip::DST.get(), transport::DPORT.get())
            }
            Kind::Address => (none(), none(), none()),
            Kind::Pair => (none(), ip::DST.get(), none()),
            Kind::Ping => (identifier(reply()), ip::DST.get(), identifier(reply().not())),
        };
        let mut block = vec![
            Op::Let(MAP, map),
            Op::Let(SRC, ip::SRC.get()),
            Op::Let(SRC_PORT, src_port),
            Op::Let(DST, dst),
            Op::Let(DST_PORT, dst_port),
            Op::Let(PROTO, ip::PROTO.get()),
        ];
        if matches!(kind, Kind::Ip | Kind::Tcp) {
            let headers = (ip::HL.get() + tcp::OFFSET.get()) << 2u8;
            let tcp_only = vec![
                Op::Let(FLAGS, tcp::FLAGS.get()),
                Op::Let(PAYLOAD, Expr::choose(headers.lt(ip::LEN.get()), 1u8, 0u8)),
            ];
            block.push(Op::when(ip::PROTO.eq(6u8), tcp_only));
        }
        block
    }

    /// Counts a failure and drops.
    fn fail(&mut self, input: usize, reason: Reason) -> Block {
        let initial = vec![0; self.common.specs.len()];
        let kind = StateKind::Cells { width: 64, initial };
        let failures = self.declare(&self.common.name, FAILURES_STATE, kind);
        vec![
            Op::Read(FAILURES, failures, input.into()),
            Op::Write(failures, input.into(), Expr::from(FAILURES) + 1u8),
            Op::Drop(reason),
        ]
    }

    /// Adds a flow as the input's specification says.
    fn create(&mut self, input: usize) -> Block {
        let common = self.common;
        let (mut block, forward, reply): (Block, Expr, Expr) = match &common.specs[input].action {
            Action::Drop => return vec![Op::Drop(NO_MAPPING)],
            Action::Pass(output) => return vec![Op::emit(*output)],
            Action::Inbound(mapper) => {
                let opens = mapper.pool().is_some_and(|pool| pool.options().lets_in());
                return vec![match opens && common.kind != Kind::Ping {
                    true => Op::Opaque("filters by mappings of a pool"),
                    false => Op::Drop(NO_MAPPING),
                }];
            }
            Action::Keep(ports) => {
                let [_, src, src_port, dst, dst_port] = self.key();
                let block = vec![
                    Op::Let(N_SRC, src),
                    Op::Let(N_SRC_PORT, src_port),
                    Op::Let(N_DST, dst),
                    Op::Let(N_DST_PORT, dst_port),
                ];
                (block, ports.forward.into(), ports.reply.into())
            }
            Action::Pattern(pattern, ports) => {
                let exhausted = self.fail(input, EXHAUSTED);
                let block = pattern.model(self, exhausted, None);
                (block, ports.forward.into(), ports.reply.into())
            }
            Action::Map(mapper) => {
                let fail = self.fail(input, EXHAUSTED);
                let none = match mapper.rejects_to() {
                    Some(output) => vec![Op::emit(output)],
                    None => self.fail(input, NO_BACKEND),
                };
                (mapper.model(self, fail, none), FORWARD.into(), REPLY.into())
            }
        };
        let annotation = match common.reply_annotation {
            Some(at) => Field::bytes(Base::Annotation, at as u16, 1).get(),
            None => 0u8.into(),
        };
        let (expiry, guarantee) = self.lifetime(|tracking| match tracking {
            Tracking::Tcp => common.timeouts.classes[0].0.into(),
            Tracking::Udp | Tracking::None => common.timeouts.classes[3].0.into(),
        });
        let to = [N_SRC, N_SRC_PORT, N_DST, N_DST_PORT].map(Expr::from);
        let [_, src, src_port, dst, dst_port] = self.key();
        let full = self.fail(input, FULL);
        block.extend([
            Op::Let(OUTPUT, forward.clone()),
            Op::Let(SIDE, 0u8.into()),
            Op::Let(STATE, 0u8.into()),
            Op::Let(INPUT, input.into()),
            Op::Let(PROTOCOL, PROTO.into()),
            Op::Let(ANNOTATION, annotation),
            Op::FlowInsert {
                flows: self.flows(),
                forward: FlowSide {
                    key: self.key().into(),
                    value: to.into_iter().chain([forward, 0u8.into()]).collect(),
                },
                reverse: FlowSide {
                    key: self.reply_key(),
                    value: vec![dst, dst_port, src, src_port, reply, 1u8.into()],
                },
                common: vec![STATE.into(), INPUT.into(), PROTOCOL.into(), ANNOTATION.into()],
                expiry,
                guarantee,
                full,
            },
        ]);
        block
    }

    /// Expiry and guarantee from now on, given the timeout in a state.
    fn lifetime(&self, timeout: impl Fn(Tracking) -> Expr) -> (Expr, Expr) {
        let common = self.common;
        let from = || Expr::Now | common.tick();
        let guaranteed = |nanoseconds: u64| match nanoseconds {
            0 => Expr::from(0u8),
            n => from() + n,
        };
        let (tcp, other) = (common.timeouts.classes[0].1, common.timeouts.classes[3].1);
        let is_tcp = || Expr::from(PROTO).eq(6u8);
        match common.kind {
            Kind::Ip => (
                from() + Expr::choose(is_tcp(), timeout(Tracking::Tcp), timeout(Tracking::Udp)),
                Expr::choose(is_tcp(), guaranteed(tcp), guaranteed(other)),
            ),
            Kind::Tcp => (from() + timeout(Tracking::Tcp), guaranteed(tcp)),
            Kind::Udp => (from() + timeout(Tracking::Udp), guaranteed(other)),
            _ => (from() + timeout(Tracking::None), guaranteed(other)),
        }
    }

    /// Writes the packet's new addresses, ports and checksums.
    fn rewrite_packet(&self) -> Block {
        let common = self.common;
        let kind = common.kind;
        let addresses = (change32(SRC, N_SRC) + change32(DST, N_DST)) % 0xffffu16;
        let mut block = vec![Op::Let(IP_DELTA, addresses)];
        let ports = change16(SRC_PORT, N_SRC_PORT) + change16(DST_PORT, N_DST_PORT);
        match kind {
            Kind::Ip | Kind::Tcp | Kind::Udp => {
                block.push(Op::Let(DELTA, (Expr::from(IP_DELTA) + ports) % 0xffffu16));
            }
            Kind::Address | Kind::Pair => block.push(Op::Let(DELTA, IP_DELTA.into())),
            // Without a pseudo-header, only the identifier counts.
            Kind::Ping => block.push(Op::Let(
                DELTA,
                Expr::choose(
                    Expr::from(SIDE).eq(0u8),
                    change16(SRC_PORT, N_SRC_PORT),
                    change16(DST_PORT, N_DST_PORT),
                ) % 0xffffu16,
            )),
        }
        let reply_annotation = common.reply_annotation.map(|at| {
            let byte = Field::bytes(Base::Annotation, at as u16, 1);
            Op::when(Expr::from(SIDE).ne(0u8), vec![byte.set(ANNOTATION)])
        });
        if !common.rewrites {
            let destination = common.dst_annotation.then(|| anno::DST_IP.set(N_DST));
            return destination.into_iter().chain(reply_annotation).collect();
        }
        let destination = [
            Some(ip::DST.set(N_DST)),
            common.dst_annotation.then(|| anno::DST_IP.set(N_DST)),
            reply_annotation,
        ];
        let destination = destination.into_iter().flatten();
        if kind == Kind::Address {
            let forward = vec![ip::SRC.set(N_SRC)];
            block.push(Op::If(Expr::from(SIDE).eq(0u8), forward, destination.collect()));
        } else {
            block.push(ip::SRC.set(N_SRC));
            block.extend(destination);
        }
        block.extend(update(ip::CHECKSUM, IP_DELTA));
        block.extend(self.rewrite_transport());
        block
    }

    fn rewrite_transport(&self) -> Block {
        let ports = || [transport::SPORT.set(N_SRC_PORT), transport::DPORT.set(N_DST_PORT)];
        let tcp = update(tcp::CHECKSUM, DELTA);
        let with_ports = |block: Block| ports().into_iter().chain(block).collect::<Block>();
        let is = |protocol: u8| Expr::from(PROTO).eq(protocol);
        match self.common.kind {
            Kind::Tcp => with_ports(tcp),
            Kind::Ip => with_ports(vec![Op::If(is(6), tcp, update_udp(DELTA))]),
            Kind::Udp => with_ports(vec![Op::If(
                is(6),
                tcp,
                vec![Op::If(is(17), update_udp(DELTA), update(DCCP_CHECKSUM, DELTA))],
            )]),
            Kind::Address | Kind::Pair => {
                let long = |least: u8| meta::AVAIL_TRANSPORT.ge(least);
                let any = vec![
                    Op::when(is(6).and(long(18)), tcp),
                    Op::when(is(17).and(long(8)), update_udp(DELTA)),
                    Op::when(is(33).and(long(8)), update(DCCP_CHECKSUM, DELTA)),
                ];
                vec![Op::when(ip::FRAG.eq(0u8), any)]
            }
            Kind::Ping => {
                let identifier = Expr::choose(Expr::from(SIDE).eq(0u8), N_SRC_PORT, N_DST_PORT);
                let mut block = vec![icmp::ID.set(identifier)];
                block.extend(update(icmp::CHECKSUM, DELTA));
                // Of the two zeros, a message without a set bit has 0xffff.
                let all_zero = Expr::sum16(TRANSPORT, 0u8, meta::AVAIL_TRANSPORT.get()).eq(0u8);
                let zero = icmp::CHECKSUM.eq(0u8).and(all_zero);
                block.push(Op::when(zero, vec![icmp::CHECKSUM.set(0xffffu16)]));
                block
            }
        }
    }

    /// Follows the connection's state, and prolongs the flow's life.
    fn touch(&mut self) -> Block {
        let common = self.common;
        let state = || Expr::from(STATE);
        let bit = |bits: u8| Expr::from(bits) << Expr::from(SIDE);
        let flag = |bit: u8| (Expr::from(FLAGS) & bit).ne(0u8);
        let payload = || Expr::from(PAYLOAD).ne(0u8);
        let tcp = vec![
            Op::Let(
                STATE,
                Expr::choose(
                    flag(4),
                    state() | 3u8,
                    Expr::choose(
                        flag(1),
                        state() | bit(1),
                        Expr::choose(flag(2).or(payload()), state() & (bit(1) ^ 0xffu8), state()),
                    ),
                ),
            ),
            Op::Let(STATE, Expr::choose(payload(), state() | bit(4), state())),
        ];
        let udp = vec![
            Op::Let(STATE, state() | Expr::from(SIDE)),
            Op::Let(STATE, Expr::choose(state().lt(6u8), state() + 2u8, state())),
        ];
        let mut block = match common.kind {
            Kind::Ip => vec![Op::If(Expr::from(PROTO).eq(6u8), tcp, udp)],
            Kind::Tcp => tcp,
            Kind::Udp => udp,
            _ => Vec::new(),
        };
        let timeout = |class: usize| common.timeouts.classes[class].0;
        let (expiry, guarantee) = self.lifetime(|tracking| match tracking {
            Tracking::Tcp => Expr::choose(
                (state() & 3u8).eq(3u8),
                timeout(2),
                Expr::choose((state() & 12u8).eq(12u8), timeout(1), timeout(0)),
            ),
            Tracking::Udp => Expr::choose(state().gt(6u8), timeout(4), timeout(3)),
            Tracking::None => timeout(3).into(),
        });
        block.push(Op::FlowUpdate {
            flows: self.flows(),
            key: self.key().into(),
            common: vec![STATE.into(), INPUT.into(), PROTOCOL.into(), ANNOTATION.into()],
            expiry,
            guarantee,
        });
        block
    }
}
