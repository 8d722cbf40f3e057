//! Host table: IPv6 hosts of any address, each bound to an IPv4 address that stands for it.
//!
//! The stand-in is where a stateful translator (RFC 6146) has the host's own address until its flows got a public one. It is
//! of a pool that no packet on the wire has.
//!
//! A binding whose host sent again after it got an answer is *established*: it stays until its time is over, whatever
//! others do. Other bindings live for a few minutes, and when the table is full, the one of the oldest packet goes. So a
//! scan from made up addresses takes nothing from hosts that are at work. A stand-in is given to another host only when
//! no flow that had it can be left.

mod access;

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::Ipv4Net;
use ir::model::StateKind;
use ir::state::{Flow, Flows};
use ir::{Reason, StateValue};

use crate::element_state::ElementState;
use crate::flow_access::Watchers;
use crate::flow_table::tick;
use crate::listing::{ROWS, Record, Slice};
use crate::lru_table::LruTable;

/// No host has the stand-in.
pub(crate) const NO_HOST: Reason = Reason("no-host");
/// The source is no address that a host beyond the link can have.
pub(crate) const BAD_SOURCE: Reason = Reason("bad-ip6-source");
/// There is no room for another host, or no stand-in.
pub(crate) const FULL: Reason = Reason("host-table-full");
/// The host's network has as many bindings as it may have.
pub(crate) const NETWORK_LIMIT: Reason = Reason("network-host-limit");

const SECOND: u64 = 1_000_000_000;
/// How long a binding lives that is not established: longer than flows that had one packet.
const BRIEF: u64 = 360 * SECOND;
/// Stand-ins are given by turns in so many blocks, each of which rests until flows are over.
const BLOCKS: usize = 256;
/// Stand-ins that are tried for a host at the most.
const MOST_TRIED: u32 = 64;
/// Bindings that are looked at when one more is needed, if their time is over.
const REMOVED_AT_ONCE: usize = 2;

/// How far a binding has come.
pub(crate) mod state {
    /// Its host has sent.
    pub(crate) const NEW: u8 = 0;
    /// It was answered.
    pub(crate) const ANSWERED: u8 = 1;
    /// It sent after that.
    pub(crate) const ESTABLISHED: u8 = 2;
}

/// Whose packet it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Host,
    Server,
}

/// The lists: established bindings, and others. In both, the order of packets is that of expiry.
const BRIEF_LIST: usize = 0;
const ESTABLISHED_LIST: usize = 1;

/// What a table is configured with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// The stand-ins.
    pub pool: Ipv4Net,
    /// Hosts at the most.
    pub capacity: u64,
    /// Hosts of a network of 64 bits at the most.
    pub network_hosts: usize,
    /// How long an established binding lives after its last packet, in nanoseconds: longer than any flow.
    pub timeout: u64,
}

#[derive(Clone, Copy, Debug)]
struct Binding {
    stand_in: u32,
    state: u8,
    expiry: u64,
}

/// See the module.
pub(crate) struct HostTable {
    options: Options,
    /// By the host's address.
    hosts: LruTable<Binding>,
    /// The host of each stand-in.
    stand_ins: LruTable<u128>,
    /// Bindings of each network of 64 bits.
    networks: LruTable<usize>,
    /// The stand-in that is tried next, counted from the pool's first.
    next: u32,
    /// When no flow is left of bindings that were removed, by block of the pool.
    free_at: Vec<u64>,
    evicted: u64,
    watchers: Watchers,
}

/// What goes to another configuration.
struct HandedOver {
    pool: Ipv4Net,
    hosts: LruTable<Binding>,
    next: u32,
    free_at: Vec<u64>,
    evicted: u64,
}

fn network(host: u128) -> u128 {
    host >> 64
}

/// Whether an address is none of a host beyond the link: unspecified, loopback, with an IPv4 address, of the link, of a group.
fn is_bad(host: u128) -> bool {
    host >> 48 == 0 || host >> 118 == 0xfe80 >> 6 || host >> 120 == 0xff
}

impl HostTable {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            hosts: LruTable::default(),
            stand_ins: LruTable::default(),
            networks: LruTable::default(),
            next: 0,
            free_at: vec![0; BLOCKS],
            evicted: 0,
            watchers: Watchers::default(),
        }
    }

    /// How long bindings live, by whether they are established.
    fn timeout(&self, is_established: bool) -> u64 {
        if is_established { self.options.timeout } else { self.options.timeout.min(BRIEF) }
    }

    /// Times that models compute with: the tick that a moment is rounded to, and what is added.
    pub(crate) fn lifetime(&self, is_established: bool) -> (u64, u64) {
        let timeout = self.timeout(is_established);
        (tick(timeout), timeout)
    }

    fn expiry_after(&self, state: u8, now: u64) -> u64 {
        let (tick, timeout) = self.lifetime(state == state::ESTABLISHED);
        (now | tick).saturating_add(timeout)
    }

    /// What a binding's state and expiry are after a packet now.
    fn after(&self, state: u8, from: Sender, now: u64) -> (u8, u64) {
        let state = match from {
            Sender::Host if state >= state::ANSWERED => state::ESTABLISHED,
            Sender::Host => state,
            Sender::Server => state.max(state::ANSWERED),
        };
        (state, self.expiry_after(state, now))
    }

    fn living(&self, number: u32, now: u64) -> Option<(u128, Binding)> {
        let (host, _, &binding) = self.hosts.entry(number)?;
        (binding.expiry > now).then_some((host, binding))
    }

    /// The number of a host's binding, and its stand-in.
    #[inline]
    pub(crate) fn find(&self, host: Ipv6Addr, now: u64) -> Option<(u32, Ipv4Addr)> {
        let number = self.hosts.number_of(host.to_bits())?;
        Some((number, self.living(number, now)?.1.stand_in.into()))
    }

    /// The number of a stand-in's binding, and its host.
    #[inline]
    pub(crate) fn host(&self, stand_in: Ipv4Addr, now: u64) -> Option<(u32, Ipv6Addr)> {
        let &host = self.stand_ins.get(stand_in.to_bits().into())?;
        let number = self.hosts.number_of(host)?;
        Some((number, self.living(number, now)?.0.into()))
    }

    /// A packet of a binding passes.
    #[inline]
    pub(crate) fn touch(&mut self, number: u32, from: Sender, now: u64) {
        let Some((_, binding)) = self.living(number, now) else { return };
        let (state, expiry) = self.after(binding.state, from, now);
        self.set(number, state, expiry);
    }

    /// Sets a binding's state and expiry; whether the state became another.
    fn set(&mut self, number: u32, state: u8, expiry: u64) -> bool {
        let Some(binding) = self.hosts.value_mut(number) else { return false };
        let is_other = binding.state != state;
        if binding.expiry != expiry || is_other {
            (binding.state, binding.expiry) = (state, expiry);
            self.hosts.renew_number(number, list_of(state));
        }
        if is_other {
            self.watchers.changed_one(number);
        }
        is_other
    }

    /// Binds a host that has no stand-in.
    pub(crate) fn bind(&mut self, host: Ipv6Addr, now: u64) -> Result<(u32, Ipv4Addr), Reason> {
        let host = host.to_bits();
        if is_bad(host) {
            return Err(BAD_SOURCE);
        }
        self.remove_expired(now);
        // It may be one that has expired.
        self.remove(host);
        let others = self.networks.get(network(host)).copied().unwrap_or(0);
        if others >= self.options.network_hosts {
            return Err(NETWORK_LIMIT);
        }
        for _ in 0..REMOVED_AT_ONCE {
            if (self.hosts.len() as u64) < self.options.capacity {
                break;
            }
            let (oldest, _) = self.hosts.oldest(BRIEF_LIST).ok_or(FULL)?;
            self.remove(oldest);
            self.evicted += 1;
        }
        if self.hosts.len() as u64 >= self.options.capacity {
            return Err(FULL);
        }
        let stand_in = self.stand_in(now).ok_or(FULL)?;
        let expiry = self.expiry_after(state::NEW, now);
        self.add(host, Binding { stand_in, state: state::NEW, expiry });
        let number = self.hosts.number_of(host).ok_or(FULL)?;
        Ok((number, stand_in.into()))
    }

    fn add(&mut self, host: u128, binding: Binding) {
        self.hosts.insert(host, binding, list_of(binding.state));
        self.stand_ins.insert(binding.stand_in.into(), host, 0);
        match self.networks.get_mut(network(host)) {
            Some(count) => *count += 1,
            None => _ = self.networks.insert(network(host), 1, 0),
        }
    }

    fn remove(&mut self, host: u128) {
        let Some(number) = self.hosts.number_of(host) else { return };
        self.watchers.changed_one(number);
        let Some(Binding { stand_in, state, expiry }) = self.hosts.remove(host) else { return };
        self.stand_ins.remove(stand_in.into());
        let count = self.networks.get_mut(network(host));
        let left = count.map_or(0, |count| {
            *count -= 1;
            *count
        });
        if left == 0 {
            self.networks.remove(network(host));
        }
        let last = expiry.saturating_sub(self.timeout(state == state::ESTABLISHED));
        self.rest(stand_in, last.saturating_add(self.options.timeout));
    }

    /// Has a stand-in rest until a time.
    fn rest(&mut self, stand_in: u32, until: u64) {
        let place = stand_in.wrapping_sub(self.first());
        if place >= self.size() {
            return;
        }
        let (block, size) = (place / self.block_size(), self.block_size());
        if let Some(free_at) = self.free_at.get_mut(block as usize) {
            *free_at = until.max(*free_at);
        }
        // It would come up in this turn.
        if block == self.next / size && place >= self.next && !self.next.is_multiple_of(size) {
            self.next = (block + 1) * size;
        }
    }

    fn first(&self) -> u32 {
        self.options.pool.network().to_bits()
    }

    /// Number of stand-ins: at most 2^30.
    fn size(&self) -> u32 {
        1 << (32 - u32::from(self.options.pool.prefix_len()))
    }

    fn block_size(&self) -> u32 {
        (self.size() / BLOCKS as u32).max(1)
    }

    /// A stand-in that nobody has and no flow can be left of.
    fn stand_in(&mut self, now: u64) -> Option<u32> {
        let (size, block_size) = (self.size(), self.block_size());
        for _ in 0..MOST_TRIED {
            let mut left = size / block_size;
            loop {
                if self.next >= size {
                    self.next = 0;
                }
                // Within a block, what follows was free when it was begun.
                let begins = self.next.is_multiple_of(block_size);
                if !begins || self.free_at[(self.next / block_size) as usize] <= now {
                    break;
                }
                left = left.checked_sub(1).filter(|&left| left > 0)?;
                self.next += block_size;
            }
            let stand_in = self.first() + self.next;
            self.next += 1;
            if self.stand_ins.get(stand_in.into()).is_none() {
                return Some(stand_in);
            }
        }
        None
    }

    fn remove_expired(&mut self, now: u64) {
        for list in [BRIEF_LIST, ESTABLISHED_LIST] {
            for _ in 0..REMOVED_AT_ONCE {
                let oldest = self.hosts.oldest(list).filter(|(_, binding)| binding.expiry <= now);
                let Some((host, _)) = oldest else { break };
                self.remove(host);
            }
        }
    }

    /// Name of the state that holds the bindings: one key is the host, which yields the stand-in, and the other the
    /// stand-in, which yields the host. The common cell is the binding's state.
    pub(crate) const STATE: &'static str = "hosts";

    /// What that state is.
    pub(crate) fn state_kind(&self) -> StateKind {
        StateKind::Flows { capacity: self.options.capacity, widths: vec![128, 8] }
    }

    /// Writes the bindings.
    pub(crate) fn export(&mut self, owner: &str, to: &mut ElementState) {
        if to.is_all() {
            self.watchers.changed_all();
            let Self { hosts, next, free_at, evicted, .. } =
                std::mem::replace(self, Self::new(self.options));
            let pool = self.options.pool;
            to.native = Some(Box::new(HandedOver { pool, hosts, next, free_at, evicted }));
            return;
        }
        let mut flows = Flows::new(self.options.capacity);
        for (host, binding) in self.hosts.iter() {
            let stand_in = u128::from(binding.stand_in);
            let flow = Flow {
                keys: [vec![host], vec![stand_in]],
                values: [vec![stand_in], vec![host]],
                common: vec![binding.state.into()],
                expiry: binding.expiry,
                guarantee: 0,
            };
            flows.insert(flow, 0);
        }
        to.set(owner, Self::STATE, StateValue::Flows(flows));
    }

    /// Takes the bindings of another. What there is no room for goes when the next one is added.
    pub(crate) fn import(&mut self, owner: &str, from: &mut ElementState, now: u64) {
        let mut all: Vec<(u128, Binding)> = Vec::new();
        if let Some(mut handed) = from.take_native::<HandedOver>() {
            all = handed.hosts.drain();
            if handed.pool == self.options.pool {
                (self.next, self.free_at) = (handed.next, handed.free_at);
            }
            self.evicted = handed.evicted;
        } else if let Some(StateValue::Flows(flows)) = from.declared.get(owner, Self::STATE) {
            let binding = |flow: &Flow| {
                let host = *flow.keys[0].first()?;
                let stand_in = u32::try_from(*flow.values[0].first()?).ok()?;
                let state = u8::try_from(*flow.common.first()?).ok()?;
                Some((host, Binding { stand_in, state, expiry: flow.expiry }))
            };
            all.extend(flows.iter().filter_map(binding));
        } else {
            return;
        }
        self.watchers.changed_all();
        (self.hosts, self.stand_ins) = (LruTable::default(), LruTable::default());
        self.networks = LruTable::default();
        // Lists are in the order of expiry.
        all.sort_by_key(|(_, binding)| binding.expiry);
        for (host, mut binding) in all {
            binding.expiry = binding.expiry.min(self.expiry_after(binding.state, now));
            self.add(host, binding);
        }
    }

    /// Reads one of the handlers count and evicted.
    pub(crate) fn read(&self, handler: &str) -> String {
        match handler {
            "evicted" => self.evicted.to_string(),
            _ => self.hosts.len().to_string(),
        }
    }

    /// A slice of the handler table, by stand-in.
    pub(crate) fn list(&self, from: u64, now: u64) -> Slice {
        let (all, next) = self.hosts.part(from, ROWS);
        let row = |(host, binding): (u128, &Binding)| {
            let (host, stand_in) = (Ipv6Addr::from(host), Ipv4Addr::from(binding.stand_in));
            let state = match binding.state {
                state::NEW => "new",
                state::ANSWERED => "answered",
                _ => "established",
            };
            Record::Row(binding.stand_in.into(), format!("{host} {stand_in} {state}"))
        };
        let living = all.filter(|(_, binding)| binding.expiry > now);
        Slice { records: living.map(row).collect(), next, ..Slice::default() }
    }
}

fn list_of(state: u8) -> usize {
    if state == state::ESTABLISHED { ESTABLISHED_LIST } else { BRIEF_LIST }
}

#[cfg(test)]
mod tests;
