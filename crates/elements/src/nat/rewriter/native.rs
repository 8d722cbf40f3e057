//! Rewriting packets natively.

use std::marker::PhantomData;
use std::rc::Rc;

use std::cell::RefCell;

use ir::{Model, Reason};
use net::annotation::DST_IP;
use net::{Batch, Packet};

use super::backends::NO_BACKEND;
use super::pattern::New;
use super::{
    Action, Common, EXHAUSTED, FULL, FlowSet, Kind, NO_HEADER, NO_MAPPING, NOT_TRANSLATABLE, Ports,
    Spec, adjust, adjust_udp, negative,
};
use crate::configure::{Configure, Failed, Initialize};
use crate::context::Context;
use crate::device::OwnedPorts;
use crate::element::{Element, Handler, HandlerContext, NamedHandler, Verdict};
use crate::element_state::ElementState;
use crate::flow_access::FlowAccess;
use crate::flow_table::{Flow, FlowTable, Hashed, Key};
use crate::ip::ip_header;
use crate::listing::{FlowRecord, Slice};

/// Which rewriter it is; known when the code is made, so that it holds what it needs only.
pub(crate) trait Scheme: 'static {
    const KIND: Kind;
}

/// A rewriter.
pub(crate) struct Rewriter<S> {
    common: Common,
    /// What was seen of the packets of a batch.
    seen: Vec<Seen>,
    /// By packet: the key of answers to the flow that it probably makes, where one is tried before any is drawn.
    expected: Vec<Option<Hashed>>,
    scheme: PhantomData<S>,
}

/// TCP flags, and one more for payload.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PAYLOAD: u8 = 0x80;
/// Of ICMP echo, whether it is a reply.
const IS_REPLY: u8 = 1;
/// Of what has addresses only, whether the transport header is not in a later fragment.
const FIRST: u8 = 1;

/// What a packet is to a rewriter.
#[derive(Clone, Copy)]
struct Seen {
    at: Hashed,
    /// See [`crate::flow_table::FlowTable::guess`].
    guess: Option<u32>,
    /// Why there is no key.
    odd: Option<Reason>,
    protocol: u8,
    /// See [`FIN`] and its like.
    flags: u8,
    /// The packet's group.
    group: u16,
}

fn without_key(reason: Reason) -> Seen {
    let at = Hashed::default();
    Seen { at, guess: None, odd: Some(reason), protocol: 0, flags: 0, group: 0 }
}

#[inline(always)]
fn see(kind: Kind, packet: &Packet, member: u8, table: &FlowTable) -> Seen {
    let Some(ip) = packet.network().and_then(|n| n.first_chunk::<20>()) else {
        return without_key(NO_HEADER);
    };
    let &[b0, _, l0, l1, _, _, f0, f1, _, protocol, _, _, addresses @ ..] = ip;
    let addresses = u64::from_be_bytes(addresses);
    let later = u16::from_be_bytes([f0, f1]) & 0x1fff != 0;
    let transport = packet.transport().unwrap_or(&[]);
    let mut flags = 0;
    let (addresses, ports) = match kind {
        Kind::Ip | Kind::Tcp | Kind::Udp => {
            let known = match kind {
                Kind::Ip => protocol == 6 || protocol == 17,
                Kind::Tcp => protocol == 6,
                _ => protocol == 6 || protocol == 17 || protocol == 33,
            };
            if !known || later {
                return without_key(NOT_TRANSLATABLE);
            }
            let ports = if protocol == 6 {
                let Some(tcp) = transport.first_chunk::<18>() else {
                    return without_key(NOT_TRANSLATABLE);
                };
                let headers = (u16::from(b0 & 0xf) + u16::from(tcp[12] >> 4)) << 2;
                let payload = headers < u16::from_be_bytes([l0, l1]);
                flags = tcp[13] & (FIN | SYN | RST) | if payload { PAYLOAD } else { 0 };
                *tcp.first_chunk::<4>().unwrap_or(&[0; 4])
            } else {
                let Some(udp) = transport.first_chunk::<8>() else {
                    return without_key(NOT_TRANSLATABLE);
                };
                *udp.first_chunk::<4>().unwrap_or(&[0; 4])
            };
            (addresses, u32::from_be_bytes(ports))
        }
        Kind::Address => {
            flags = if later { 0 } else { FIRST };
            (addresses & !0xffff_ffff, 0)
        }
        Kind::Pair => {
            flags = if later { 0 } else { FIRST };
            (addresses, 0)
        }
        Kind::Ping => {
            let Some(&[kind, _, _, _, i0, i1]) = transport.first_chunk::<6>() else {
                return without_key(NOT_TRANSLATABLE);
            };
            if protocol != 1 || later || (kind != 8 && kind != 0) {
                return without_key(NOT_TRANSLATABLE);
            }
            let identifier = u16::from_be_bytes([i0, i1]);
            let other = super::pattern::echo_port(identifier);
            let (src_port, dst_port) = match kind {
                8 => (identifier, other),
                _ => {
                    flags = IS_REPLY;
                    (other, identifier)
                }
            };
            (addresses, u32::from(src_port) << 16 | u32::from(dst_port))
        }
    };
    let map = u16::from(member) << 8 | u16::from(kind.map(protocol));
    let at = table.hashed(Key { addresses, ports, map });
    Seen { at, guess: None, odd: None, protocol, flags, group: packet.group() }
}

/// The connection's state after a packet of a direction.
#[inline(always)]
fn next_state(kind: Kind, seen: &Seen, side: usize, state: u8) -> u8 {
    match kind.tracking(seen.protocol) {
        super::Tracking::Tcp => {
            let done = 1 << side;
            let mut state = state;
            if seen.flags & RST != 0 {
                state |= 3;
            } else if seen.flags & FIN != 0 {
                state |= done;
            } else if seen.flags & (SYN | PAYLOAD) != 0 {
                state &= !done;
            }
            if seen.flags & PAYLOAD != 0 {
                state |= 4 << side;
            }
            state
        }
        super::Tracking::Udp => {
            let state = state | side as u8;
            if state < 6 { state + 2 } else { state }
        }
        super::Tracking::None => state,
    }
}

/// Updates a checksum at a byte offset of a header.
#[inline(always)]
fn adjust_at(header: &mut [u8], at: usize, adjust: impl FnOnce(u16) -> u16) {
    if let Some(sum) = header.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *sum = adjust(u16::from_be_bytes(*sum)).to_be_bytes();
    }
}

/// Rewrites a packet as its flow says.
#[inline(always)]
fn rewrite(kind: Kind, packet: &mut Packet, seen: &Seen, flow: &Flow, side: usize) {
    let to = flow.rewritten(side);
    let [ip_delta, delta] = match side {
        0 => flow.deltas,
        _ => flow.deltas.map(negative),
    };
    let Some(ip) = packet.network_mut().and_then(|n| n.first_chunk_mut::<20>()) else { return };
    if let Some(addresses) = ip.last_chunk_mut::<8>() {
        let kept = match (kind, side) {
            (Kind::Address, 0) => u64::from(u32::MAX),
            (Kind::Address, _) => u64::MAX << 32,
            _ => 0,
        };
        let before = u64::from_be_bytes(*addresses);
        *addresses = (before & kept | to.addresses & !kept).to_be_bytes();
    }
    adjust_at(ip, 10, |sum| adjust(sum, ip_delta));
    let Some(transport) = packet.transport_mut() else { return };
    let checksum = |transport: &mut [u8]| match seen.protocol {
        6 => adjust_at(transport, 16, |sum| adjust(sum, delta)),
        17 => adjust_at(transport, 6, |sum| adjust_udp(sum, delta)),
        _ => adjust_at(transport, 6, |sum| adjust(sum, delta)),
    };
    match kind {
        Kind::Ip | Kind::Tcp | Kind::Udp => {
            if let Some(ports) = transport.first_chunk_mut::<4>() {
                *ports = to.ports.to_be_bytes();
            }
            checksum(transport);
        }
        Kind::Address | Kind::Pair => {
            let long_enough = match seen.protocol {
                6 => transport.len() >= 18,
                17 | 33 => transport.len() >= 8,
                _ => false,
            };
            if seen.flags & FIRST != 0 && long_enough {
                checksum(transport);
            }
        }
        Kind::Ping => {
            let identifier = if side == 0 { to.src_port() } else { to.dst_port() };
            // The message may end within the sequence number, so there is no view of it.
            if let Some(place) = transport.get_mut(4..).and_then(|rest| rest.first_chunk_mut()) {
                *place = identifier.to_be_bytes();
            }
            adjust_at(transport, 2, |sum| adjust(sum, delta));
            // Of the two zeros, a message without a set bit has 0xffff.
            if transport.iter().all(|&b| b == 0) {
                adjust_at(transport, 2, |_| 0xffff);
            }
        }
    }
}

/// A packet that has no flow yet.
struct NewFlow<'a> {
    seen: &'a Seen,
    /// Whether a flow that expired has the packet's key.
    expired: bool,
    /// The key of answers that is tried first, if it is known already.
    expected: Option<&'a Hashed>,
}

impl Common {
    /// Adds a flow for a packet that has none, as the input's specification says.
    #[inline(never)]
    fn create<S: Scheme>(
        &mut self,
        input: usize,
        new_flow: NewFlow<'_>,
        (set, classes): (&mut FlowSet, &[u16; 5]),
        packet: &Packet,
        cx: &mut Context<'_>,
    ) -> Result<u32, Verdict> {
        let now = cx.now();
        let NewFlow { seen, expired, expected } = new_flow;
        let ports = self.specs.get(input).and_then(|spec| spec.action.ports());
        let (reply, ports) = match (expected, ports) {
            (Some(reply), Some(ports)) if set.table.holder(reply).is_none() => (*reply, ports),
            _ => self.choose(input, seen, set, cx)?,
        };
        if expired {
            set.table.vacate(&seen.at);
        }
        let mut flow = Flow::new(seen.at.key, reply.key);
        flow.set_outputs([ports.forward, ports.reply]);
        flow.deltas = S::KIND.deltas(&flow);
        flow.input = input as u16;
        flow.protocol = seen.protocol;
        flow.annotation = self.reply_annotation.map_or(0, |at| packet.annotations().u8(at));
        flow.state = next_state(S::KIND, seen, 0, 0);
        let tracking = S::KIND.tracking(seen.protocol);
        let (first, class) = (classes[tracking.class(0)], classes[tracking.class(flow.state)]);
        let hashes = [seen.at.hash, reply.hash];
        let Some(number) = set.table.add(flow, hashes, first, now) else {
            return Err(self.fail(input, FULL));
        };
        if let Some(pool) = self.specs.get(input).and_then(|spec| spec.action.pool()) {
            let name = &self.name;
            pool.lines().iter().for_each(|line| cx.message(&format!("{name}: {line}")));
        }
        set.table.set_group(number, seen.group);
        if class != first {
            set.table.touch(number, class, now);
        }
        Ok(number)
    }

    /// The key of answers to a new flow, which no other flow has any more, and its outputs.
    #[inline(never)]
    fn choose(
        &mut self,
        input: usize,
        seen: &Seen,
        set: &mut FlowSet,
        cx: &mut Context<'_>,
    ) -> Result<(Hashed, Ports), Verdict> {
        let now = cx.now();
        let Some(spec) = self.specs.get(input) else { return Err(Verdict::Drop(NO_MAPPING)) };
        if self.answers_nothing(seen) {
            return Err(self.refuse(input, NO_MAPPING));
        }
        let new = self.new_flow(spec, seen);
        let mut random = |low, high| cx.random(low, high);
        let chosen = match &spec.action {
            Action::Drop => return Err(Verdict::Drop(NO_MAPPING)),
            Action::Pass(output) => return Err(Verdict::To(usize::from(*output))),
            Action::Keep(ports) => {
                let reply = set.table.hashed(new.unchanged());
                set.table.vacate(&reply);
                Some((reply, *ports))
            }
            Action::Pattern(pattern, ports) => {
                let reply = pattern.choose(&new, &mut set.table, now, random);
                reply.map(|reply| (reply, *ports))
            }
            Action::Map(mapper) => {
                let chosen = mapper.choose(&new, &mut set.table, now, &mut random);
                let rejects_to = mapper.rejects_to();
                return chosen.map_err(|reason| match rejects_to {
                    Some(output) if reason == NO_BACKEND => Verdict::To(usize::from(output)),
                    _ => self.fail(input, reason),
                });
            }
            Action::Inbound(mapper) => {
                let let_in = mapper.pool().and_then(|pool| pool.let_in(&new, &mut set.table));
                return let_in.ok_or(Verdict::Drop(NO_MAPPING));
            }
        };
        chosen.ok_or_else(|| self.fail(input, EXHAUSTED))
    }

    /// Whether a packet that has no flow is an answer of ICMP echo, which makes none.
    #[inline]
    fn answers_nothing(&self, seen: &Seen) -> bool {
        self.kind == Kind::Ping && seen.flags & IS_REPLY != 0
    }

    /// What a flow is made from for a packet, by an input's specification.
    #[inline]
    fn new_flow<'a>(&self, spec: &Spec, seen: &'a Seen) -> New<'a> {
        let key = &seen.at.key;
        let reply_map = key.map & 0xff | u16::from(self.reply_member(spec)) << 8;
        New { key, reply_map, echo: self.kind == Kind::Ping, group: seen.group }
    }

    /// Prefetches the buckets of flows that packets of an input will probably make, and keeps the keys of
    /// their answers that will be tried first.
    fn prefetch_replies(
        &self,
        input: usize,
        seen: &[Seen],
        expected: &mut Vec<Option<Hashed>>,
        set: &FlowSet,
        rng: &fastrand::Rng,
    ) {
        expected.clear();
        let makes_one =
            |seen: &Seen| seen.guess.is_none() && seen.odd.is_none() && !self.answers_nothing(seen);
        if !seen.iter().any(makes_one) {
            return;
        }
        let Some(spec) = self.specs.get(input) else { return };
        let pattern = match &spec.action {
            Action::Pattern(pattern, _) => Some(pattern),
            Action::Keep(_) => None,
            _ => return,
        };
        // The numbers that creating flows will draw.
        let mut rng = rng.clone();
        let mut random = |low, high| rng.u64(low..=high);
        let expect = |key| {
            let key = set.table.hashed(key);
            set.table.prefetch_bucket(&key);
            key
        };
        for seen in seen {
            let own = if makes_one(seen) {
                let new = self.new_flow(spec, seen);
                pattern.map_or_else(|| Some(new.unchanged()), |pattern| pattern.own_reply(&new))
            } else {
                None
            };
            expected.push(own.map(expect));
        }
        let Some(pattern) = pattern else { return };
        let mut others = 0;
        for (own, seen) in expected.iter().zip(seen) {
            if own.map_or_else(|| makes_one(seen), |own| set.table.is_likely(&own)) {
                expect(pattern.other_reply(&self.new_flow(spec, seen), others, &mut random));
                others += 1;
            }
        }
    }

    fn fail(&mut self, input: usize, reason: Reason) -> Verdict {
        self.failures[input] = self.failures[input].wrapping_add(1);
        Verdict::Drop(reason)
    }

    /// What becomes of a packet that cannot have a flow.
    fn refuse(&self, input: usize, reason: Reason) -> Verdict {
        match self.specs.get(input).map(|s| &s.action) {
            Some(Action::Pass(output)) if reason != NO_HEADER => Verdict::To(usize::from(*output)),
            _ => Verdict::Drop(reason),
        }
    }
}

impl<S: Scheme> Rewriter<S> {
    pub(crate) fn configure(cx: &mut Configure<'_>) -> Result<Self, Failed> {
        let common = Common::configure(S::KIND, cx)?;
        Ok(Self { common, seen: Vec::new(), expected: Vec::new(), scheme: PhantomData })
    }
}

impl<S: Scheme> Element for Rewriter<S> {
    fn push(&mut self, port: usize, batch: &mut Batch, cx: &mut Context<'_>) {
        let Some(joined) = &self.common.joined else { return };
        let (now, member) = (cx.now(), joined.member);
        let shared = Rc::clone(&joined.set);
        let mut borrowed = shared.borrow_mut();
        let set = &mut *borrowed;
        let classes = set.classes(member);
        set.expire(now);
        self.seen.clear();
        for packet in batch.iter() {
            let seen = see(S::KIND, packet, member, &set.table);
            set.table.prefetch_bucket(&seen.at);
            self.seen.push(seen);
        }
        set.table.guess(&mut self.seen, |seen| (seen.at.hash, &mut seen.guess));
        self.common.prefetch_replies(port, &self.seen, &mut self.expected, set, &cx.core.rng);
        let (common, mut all) = (&mut self.common, self.seen.iter().enumerate());
        let expected = &self.expected;
        cx.each(batch, |packet, cx| {
            let Some((at, seen)) = all.next() else { return Verdict::Drop(NO_MAPPING) };
            if let Some(reason) = seen.odd {
                return common.refuse(port, reason);
            }
            let guessed = seen.guess.and_then(|guess| set.table.is(guess, &seen.at));
            let holder = guessed.or_else(|| set.table.holder(&seen.at));
            let mut found = holder.filter(|&(number, _)| set.table.flow(number).expiry() > now);
            if S::KIND == Kind::Address && found.is_none() {
                // Then the destination may be the new address of some source.
                let dst = ip_header::view(packet).map_or(0, |ip| ip.dst().to_bits());
                found = set.table.lookup(&Key::new(seen.at.key.map, 0, 0, dst, 0), now);
            }
            let (number, side) = match found {
                Some((number, side)) => {
                    let before = set.table.flow(number).state;
                    let state = next_state(S::KIND, seen, side, before);
                    if state != before {
                        set.table.set_state(number, state);
                    }
                    let class = classes[S::KIND.tracking(seen.protocol).class(state)];
                    set.table.touch(number, class, now);
                    (number, side)
                }
                None => {
                    let expected = expected.get(at).and_then(Option::as_ref);
                    let new_flow = NewFlow { seen, expired: holder.is_some(), expected };
                    match common.create::<S>(port, new_flow, (set, &classes), packet, cx) {
                        Ok(number) => (number, 0),
                        Err(verdict) => return verdict,
                    }
                }
            };
            let flow = set.table.flow(number);
            if common.rewrites {
                rewrite(S::KIND, packet, seen, flow, side);
            }
            let output = usize::from(flow.output(side));
            let annotate = S::KIND != Kind::Address || side == 1;
            if common.dst_annotation && annotate {
                packet.annotations_mut().set_u32(DST_IP, flow.rewritten(side).dst());
            }
            if let Some(at) = common.reply_annotation.filter(|_| side == 1) {
                packet.annotations_mut().set_u8(at, flow.annotation);
            }
            Verdict::To(output)
        });
    }

    fn model(&self) -> Model {
        super::model::Builder::build(&self.common)
    }

    fn export(&mut self, _name: &str, to: &mut ElementState) {
        self.common.export(to);
    }

    fn import(&mut self, _name: &str, from: &mut ElementState, now: u64) {
        self.common.import(from, now);
    }

    fn owned(&self) -> Vec<OwnedPorts> {
        self.common.owned()
    }

    fn owns_all_flows(&self) -> bool {
        self.common.owns_all_flows()
    }

    fn flows(&self) -> Option<Rc<RefCell<dyn FlowAccess>>> {
        let joined = self.common.joined.as_ref()?;
        Some(Rc::clone(&joined.set) as Rc<RefCell<dyn FlowAccess>>)
    }

    fn initialize(&mut self, cx: &mut Initialize<'_>) -> Result<(), Failed> {
        self.common.initialize(cx)
    }

    fn handlers(&self) -> &'static [Handler] {
        self.common.handlers()
    }

    fn named_handlers(&self) -> Vec<NamedHandler> {
        self.common.named_handlers()
    }

    fn read(
        &self,
        handler: &str,
        parameter: &str,
        cx: &HandlerContext<'_>,
    ) -> Result<String, String> {
        self.common.read(handler, parameter, cx)
    }

    fn list(&self, handler: &str, from: u64, cx: &HandlerContext<'_>) -> Option<Slice> {
        self.common.list(handler, from, cx.now)
    }

    fn remove_flow(&mut self, flow: &FlowRecord, cx: &HandlerContext<'_>) -> bool {
        self.common.remove_flow(flow, cx.now)
    }

    fn write(&mut self, handler: &str, value: &str, cx: &mut Context<'_>) -> Result<(), String> {
        self.common.write(handler, value, cx)
    }
}
