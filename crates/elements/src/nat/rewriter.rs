//! What IPRewriter, TCPRewriter, UDPRewriter, IPAddrRewriter, IPAddrPairRewriter and
//! ICMPPingRewriter have in common: a table of flows, and a specification for each input of what
//! becomes of packets that belong to none.

mod backends;
mod configure;
mod handlers;
mod mapper;
mod model;
mod native;
mod pattern;
mod peer;
mod pool;
mod users;

use std::rc::Rc;

use ir::{Reason, StateValue};

use crate::device::OwnedPorts;
use crate::element_state::ElementState;
use crate::flow_table::{Flow, GroupFlows};
pub(crate) use backends::{Backend, Backends, Policy, Weighted};
pub(crate) use configure::parse_mapped;
pub(crate) use mapper::{Choice, Mapped, Mapper, Ring, TURN_STATE};
pub(crate) use model::{change16, change32, flows_kind};
pub(crate) use native::{Rewriter, Scheme};
pub(crate) use pattern::{
    NEXT_STATE, Order, Pattern, PatternRef, Patterns, echo_port, order, port_range,
};
use peer::Capacity;
pub(crate) use peer::{FlowSet, Joined, Peer};
pub(crate) use pool::{BlockOptions, Dependence, Options, Pool, Static};

/// The packet's network header is not marked or cut off.
pub(crate) const NO_HEADER: Reason = Reason("no-ip-header");
/// Another protocol, a later fragment, or a header that is cut off.
pub(crate) const NOT_TRANSLATABLE: Reason = Reason("not-translatable");
/// No flow, and the input makes none.
pub(crate) const NO_MAPPING: Reason = Reason("no-mapping");
/// No address or port is free.
pub(crate) const EXHAUSTED: Reason = Reason("pool-exhausted");
/// The table is full of flows that may not be evicted.
pub(crate) const FULL: Reason = Reason("flow-table-full");

/// Name of the declared state that the flows are.
pub(crate) const FLOWS_STATE: &str = "flows";
/// Name of the declared state that counts each input's failures to map.
pub(crate) const FAILURES_STATE: &str = "failures";

/// What a rewriter rewrites, and by what it knows flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// TCP and UDP, apart.
    Ip,
    /// TCP.
    Tcp,
    /// UDP, TCP and DCCP, as one protocol.
    Udp,
    /// Source addresses.
    Address,
    /// Pairs of addresses.
    Pair,
    /// Identifiers of ICMP echo.
    Ping,
}

/// How a connection's state is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// Bits 0 and 1: a FIN was sent forward, in reply (or an RST); bits 2 and 3: data was.
    Tcp,
    /// Bit 0: there was a reply; above, the number of packets, up to 3.
    Udp,
    /// Not at all.
    None,
}

impl Tracking {
    /// Index among a rewriter's [`Timeouts`].
    #[inline]
    pub(crate) fn class(self, state: u8) -> usize {
        match self {
            Tracking::Tcp if state & 3 == 3 => 2,
            Tracking::Tcp if state & 12 == 12 => 1,
            Tracking::Tcp => 0,
            Tracking::Udp if state > 6 => 4,
            Tracking::Udp | Tracking::None => 3,
        }
    }
}

/// Timeout and guarantee, in nanoseconds, of TCP connections without data in both directions,
/// with it, and ended; of other flows, and of those that stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timeouts {
    /// The timeout is not less than the guarantee.
    pub classes: [(u64, u64); 5],
}

/// Outputs of packets of a flow's direction, and of those of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ports {
    pub forward: u16,
    pub reply: u16,
}

/// What becomes of packets without a flow.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Drop,
    Pass(u16),
    Keep(Ports),
    Pattern(PatternRef, Ports),
    Map(Rc<Mapper>),
    /// What a mapper's pool lets in from outside.
    Inbound(Rc<Mapper>),
}

impl Action {
    /// The outputs of all new flows, if they have the same.
    #[inline]
    fn ports(&self) -> Option<Ports> {
        match self {
            Self::Keep(ports) | Self::Pattern(_, ports) => Some(*ports),
            Self::Drop | Self::Pass(_) | Self::Map(_) | Self::Inbound(_) => None,
        }
    }
}

impl Action {
    /// The pool that mappings are of.
    fn pool(&self) -> Option<&Pool> {
        match self {
            Self::Map(mapper) | Self::Inbound(mapper) => mapper.pool(),
            _ => None,
        }
    }
}

/// An input's specification.
#[derive(Clone)]
pub(crate) struct Spec {
    pub action: Action,
    /// The rewriter at which answers arrive, if it is another: its name, and where that stands.
    pub reply: Option<(String, ir::Span)>,
    /// Its number among those that share the capacity.
    pub reply_member: Option<u8>,
}

/// A rewriter but for how it processes packets.
pub(crate) struct Common {
    pub name: String,
    pub kind: Kind,
    pub specs: Vec<Spec>,
    pub peer: Rc<Peer>,
    /// Set when all elements are configured.
    pub joined: Option<Joined>,
    pub timeouts: Timeouts,
    /// Whether packets get what their flow says, and not annotations alone.
    pub rewrites: bool,
    pub dst_annotation: bool,
    /// The annotation that answers get from the packet that made the flow.
    pub reply_annotation: Option<usize>,
    /// By input.
    pub failures: Vec<u64>,
}

impl Common {
    fn member(&self) -> u8 {
        self.joined.as_ref().map_or(0, |j| j.member)
    }

    fn root(&self) -> &str {
        self.joined.as_ref().map_or(&self.name, |j| &j.root)
    }

    fn capacity(&self) -> u64 {
        match (&self.joined, &self.peer.capacity) {
            (Some(joined), _) => joined.set.borrow().table.capacity(),
            (None, Capacity::Own(capacity)) => *capacity,
            (None, Capacity::Of(_)) => 0,
        }
    }

    /// See [`crate::flow_table::FlowTable::tick`].
    fn tick(&self) -> u64 {
        self.joined.as_ref().map_or(0, |j| j.set.borrow().table.tick())
    }

    fn reply_member(&self, spec: &Spec) -> u8 {
        spec.reply_member.unwrap_or(self.member())
    }

    /// The patterns that an input may use.
    fn patterns<'a>(spec: &'a Spec) -> Box<dyn Iterator<Item = &'a PatternRef> + 'a> {
        match &spec.action {
            Action::Pattern(pattern, _) => Box::new(std::iter::once(pattern)),
            Action::Map(mapper) => Box::new(mapper.mapped.iter().map(|m| &m.pattern)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// What is allocated here, by each worker from its share.
    fn owned(&self) -> Vec<OwnedPorts> {
        self.specs.iter().flat_map(Self::patterns).filter_map(PatternRef::owned).collect()
    }

    /// Whether each new flow is given a number of a range.
    fn owns_all_flows(&self) -> bool {
        self.specs.iter().all(|spec| {
            let keeps = matches!(spec.action, Action::Keep(_));
            !keeps && Self::patterns(spec).all(|pattern| pattern.owned().is_some())
        })
    }

    /// See [`Pool::set_moving`].
    fn set_moving(&self, is_moving: bool) {
        for pool in self.specs.iter().filter_map(|spec| spec.action.pool()) {
            pool.set_moving(is_moving);
        }
    }

    /// Writes all state that the model refers to, that of others included: flows may be shared,
    /// and turns belong to the element that has the pattern. Flows are given away by the rewriter whose the capacity is.
    fn export(&self, to: &mut ElementState) {
        self.set_moving(true);
        if let Some(joined) = &self.joined {
            let (mut set, is_own) = (joined.set.borrow_mut(), joined.root == self.name);
            match to.group() {
                group if to.is_copy() => {
                    let flows = StateValue::Flows(set.export(group));
                    to.declared.set(&joined.root, FLOWS_STATE, flows);
                }
                None if is_own => to.native = Some(Box::new(set.hand_over())),
                Some(group) if is_own => to.native = Some(Box::new(set.export_group(group))),
                _ => {}
            }
        }
        self.set_moving(false);
        let failures = self.failures.iter().map(|&f| f.into()).collect();
        to.set(&self.name, FAILURES_STATE, StateValue::Cells(failures));
        for spec in &self.specs {
            Self::patterns(spec).for_each(|pattern| pattern.group.export(to));
            if let Action::Map(mapper) = &spec.action {
                mapper.export(to);
            }
        }
    }

    fn import(&mut self, from: &mut ElementState, now: u64) {
        self.set_moving(true);
        if let Some(joined) = &self.joined {
            let mut set = joined.set.borrow_mut();
            if let Some(flows) = from.take_native::<GroupFlows>() {
                set.import_group(*flows, now);
            } else if let Some(flows) = from.take_native::<peer::HandedOver>() {
                set.take_over(*flows, now);
            } else if let Some(StateValue::Flows(flows)) =
                from.declared.get(&joined.root, FLOWS_STATE)
            {
                set.import(flows);
            }
        }
        self.set_moving(false);
        let failures = from.declared.cells(&self.name, FAILURES_STATE);
        for (failures, &value) in self.failures.iter_mut().zip(failures) {
            *failures = u64::try_from(value).unwrap_or(u64::MAX);
        }
        for spec in &self.specs {
            Self::patterns(spec).for_each(|pattern| pattern.group.import(from));
            if let Action::Map(mapper) = &spec.action {
                mapper.import(from);
            }
        }
    }
}

/// What replacing addresses adds to a sum of 16-bit words, below 0xffff; see RFC 1624. Of any number of words together
/// the remainder by 0xffff is that of their sum.
pub(crate) fn address_delta(from: u64, to: u64) -> u16 {
    let halves = |addresses: u64| (addresses >> 32) + (addresses & 0xffff_ffff);
    ((halves(!from) + halves(to)) % 0xffff) as u16
}

/// What replacing ports adds to a sum of words, below 0xffff.
pub(crate) fn port_delta(from: u32, to: u32) -> u16 {
    ((u64::from(!from) + u64::from(to)) % 0xffff) as u16
}

/// Adds to the sum behind a checksum; `delta` is below 0xffff.
#[inline]
pub(crate) fn adjust(checksum: u16, delta: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(delta);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// The same for UDP, where 0 means that there is no checksum, and what comes to 0 is sent as
/// 0xffff (RFC 768).
#[inline]
pub(crate) fn adjust_udp(checksum: u16, delta: u16) -> u16 {
    match (checksum, adjust(checksum, delta)) {
        (0, _) => 0,
        (_, 0) => 0xffff,
        (_, adjusted) => adjusted,
    }
}

/// The sum of two deltas, or the delta of the reply direction.
#[inline]
pub(crate) fn add_deltas(a: u16, b: u16) -> u16 {
    ((u32::from(a) + u32::from(b)) % 0xffff) as u16
}

#[inline]
pub(crate) fn negative(delta: u16) -> u16 {
    if delta == 0 { 0 } else { 0xffff - delta }
}

impl Kind {
    /// What rewriting the forward direction adds to the sums behind the checksums of IP and of
    /// the transport protocol.
    pub(crate) fn deltas(self, flow: &Flow) -> [u16; 2] {
        let (from, to) = (flow.key(0), flow.rewritten(0));
        let addresses = address_delta(from.addresses, to.addresses);
        let transport = match self {
            Kind::Ip | Kind::Tcp | Kind::Udp => {
                add_deltas(addresses, port_delta(from.ports, to.ports))
            }
            Kind::Address | Kind::Pair => addresses,
            // Without a pseudo-header, only the identifier counts.
            Kind::Ping => port_delta(from.src_port().into(), to.src_port().into()),
        };
        [addresses, transport]
    }
}

#[cfg(test)]
mod tests {
    use net::checksum::checksum;

    use super::*;

    #[test]
    fn adjusted_checksums_are_those_of_what_was_written() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..20_000 {
            let mut header = [0u8; 24];
            rng.fill(&mut header);
            let old = u64::from_be_bytes(header[..8].try_into().unwrap());
            let old_ports = u32::from_be_bytes(header[8..12].try_into().unwrap());
            let before = checksum(&header);
            let (new, new_ports) = (rng.u64(..), rng.u32(..));
            header[..8].copy_from_slice(&new.to_be_bytes());
            header[8..12].copy_from_slice(&new_ports.to_be_bytes());
            let delta = add_deltas(address_delta(old, new), port_delta(old_ports, new_ports));
            let after = adjust(before, delta);
            assert_eq!(after, checksum(&header));
            assert_eq!(adjust(after, negative(delta)), before);
        }
    }

    #[test]
    fn a_udp_checksum_never_becomes_none() {
        // The sum of all words but the checksum comes to 0xffff, so the checksum to 0.
        let delta = word(0x1234, 0x1235);
        let before = !0xfffe;
        assert_eq!(adjust(before, delta), 0);
        assert_eq!(adjust_udp(before, delta), 0xffff);
        assert_eq!(adjust_udp(0, delta), 0);
    }

    fn word(from: u16, to: u16) -> u16 {
        port_delta(from.into(), to.into())
    }
}
