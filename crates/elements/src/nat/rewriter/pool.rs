//! Address pool: the public addresses and ports that hosts inside share.
//!
//! Mappings follow from flows: a mapping begins with its first flow and ends with its last ([`Follower`]). So they come
//! along when flows go to another chain, and packets of known flows have nothing to do with them.

mod listing;
mod mappings;
mod ports;

use std::cell::RefCell;
use std::rc::Rc;

use ir::Reason;
use ir::hash::HashFunction;

use super::pattern::{New, Order, echo_port};
use super::users::Users;
use super::{EXHAUSTED, Joined, NO_MAPPING, Ports};
use crate::flow_table::{Flow, FlowTable, Follower, Hashed, Key};
use mappings::{Endpoint, Inside, Mappings};

/// The host has as many blocks of ports as it may have, and no port of them is free.
pub(crate) const HOST_LIMIT: Reason = Reason("host-port-limit");

/// Public addresses that are tried for a host at the most.
const MOST_TRIED: usize = 64;

/// What something depends on of the endpoint outside (RFC 4787 §4.1 and §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dependence {
    /// Nothing.
    Endpoint,
    /// Its address.
    Address,
    /// Its address and port.
    AddressPort,
}

impl Dependence {
    /// All, with their names.
    pub(crate) const ALL: [(&'static str, Self); 3] = [
        ("endpoint", Self::Endpoint),
        ("address", Self::Address),
        ("address-port", Self::AddressPort),
    ];
}

/// A mapping that is always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Static {
    pub protocol: u8,
    pub inside: (u32, u16),
    pub public: (u32, u16),
}

/// How ports are shared out in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockOptions {
    /// Ports of a block.
    pub size: u16,
    /// Blocks that a host may have.
    pub most: usize,
}

/// What a pool is configured with.
pub(crate) struct Options {
    /// Ranges of addresses, in ascending order and apart.
    pub addresses: Vec<(u32, u32)>,
    /// The ports that are given, and identifiers.
    pub ports: (u16, u16),
    pub order: Order,
    pub mapping: Dependence,
    pub filtering: Dependence,
    /// Whether even ports get even ones, and odd ones odd ones.
    pub keeps_parity: bool,
    pub blocks: Option<BlockOptions>,
    pub statics: Vec<Static>,
    /// Where packets from inside leave, and those from outside.
    pub outputs: Ports,
    /// Whether blocks that are given and returned are printed.
    pub prints: bool,
}

impl Options {
    /// Whether it is an address of the pool.
    pub(crate) fn holds(&self, address: u32) -> bool {
        let at = self.addresses.partition_point(|&(_, last)| last < address);
        self.addresses.get(at).is_some_and(|&(first, _)| first <= address)
    }

    /// How many addresses there are.
    fn count(&self) -> u32 {
        self.addresses.iter().map(|(first, last)| last - first + 1).sum()
    }

    fn address(&self, mut number: u32) -> u32 {
        for &(first, last) in &self.addresses {
            if number <= last - first {
                return first + number;
            }
            number -= last - first + 1;
        }
        self.addresses[0].0
    }

    /// Whether flows from outside may begin.
    pub(crate) fn lets_in(&self) -> bool {
        self.filtering != Dependence::AddressPort || !self.statics.is_empty()
    }

    /// What has a mapping of its own.
    fn inside(&self, protocol: u8, endpoint: Endpoint, remote: Endpoint) -> Inside {
        let remote = match self.mapping {
            Dependence::Endpoint => (0, 0),
            Dependence::Address => (remote.0, 0),
            // The number behind a ping's address is its own identifier.
            Dependence::AddressPort if protocol == 1 => (remote.0, 0),
            Dependence::AddressPort => remote,
        };
        Inside { protocol, endpoint, remote }
    }

    fn block_of(&self, port: u16) -> Option<u16> {
        let (low, high) = self.ports;
        let size = self.blocks?.size;
        let number = port.checked_sub(low)? / size;
        (port <= high && number < self.block_count(size)).then_some(number)
    }

    fn block_count(&self, size: u16) -> u16 {
        let (low, high) = self.ports;
        ((u32::from(high - low) + 1) / u32::from(size)) as u16
    }

    /// First and last port of a block.
    fn block_range(&self, number: u16, size: u16) -> (u16, u16) {
        let first = self.ports.0 + number * size;
        (first, first + (size - 1))
    }

    /// What filters ask about: public endpoints, each with an address outside.
    fn filtered(&self, flow: &Flow) -> impl Iterator<Item = (u8, Endpoint, u32)> {
        let (from, to) = (flow.key(0), flow.rewritten(0));
        let protocol = from.map as u8;
        let asks = self.filtering == Dependence::Address;
        let source = asks && from.src() != to.src() && self.holds(to.src());
        let destination = asks && from.dst() != to.dst() && self.holds(from.dst());
        let source = source.then(|| (protocol, (to.src(), to.src_port()), from.dst()));
        let destination = destination.then(|| (protocol, (from.dst(), from.dst_port()), to.src()));
        source.into_iter().chain(destination)
    }
}

/// What is derived from flows, which tables tell it of.
struct State {
    options: Options,
    mappings: RefCell<Mappings>,
}

impl Follower for State {
    fn added(&self, flow: &Flow) {
        self.mappings.borrow_mut().add(&self.options, flow);
    }

    fn removed(&self, flow: &Flow) {
        self.mappings.borrow_mut().remove(&self.options, flow);
    }
}

/// See the module.
pub(crate) struct Pool {
    state: Rc<State>,
    users: Users,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool")
            .field("addresses", &self.state.options.addresses)
            .finish_non_exhaustive()
    }
}

impl Pool {
    pub(crate) fn new(options: Options) -> Self {
        let mappings = RefCell::new(Mappings::new(&options));
        Self { state: Rc::new(State { options, mappings }), users: Users::default() }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.state.options
    }

    pub(crate) fn users(&self) -> &Users {
        &self.users
    }

    /// Says whose flows have mappings of the pool.
    pub(crate) fn used_by(&self, joined: &Joined) {
        let follower = Rc::clone(&self.state) as Rc<dyn Follower>;
        joined.set.borrow_mut().table.follow(&follower);
        self.users.add(joined);
    }

    /// Says that flows come which have their mappings already, or that all came.
    pub(crate) fn set_moving(&self, is_moving: bool) {
        self.state.mappings.borrow_mut().is_moving = is_moving;
    }

    /// The key of answers to a new flow from inside, and its outputs. What is sent to a public endpoint of the pool goes
    /// to whom it stands for (hairpinning, RFC 4787 §6).
    pub(super) fn choose(
        &self,
        new: &New<'_>,
        table: &mut FlowTable,
        now: u64,
        next: &std::cell::Cell<u64>,
        random: impl FnMut(u64, u64) -> u64,
    ) -> Result<(Hashed, Ports), Reason> {
        let options = self.options();
        let key = new.key;
        let protocol = key.map as u8;
        let (mut to, mut outputs) = (*key, options.outputs);
        if options.holds(key.dst()) {
            let inside = (!new.echo).then(|| self.inside_of(protocol, key)).flatten();
            let inside = inside.ok_or(NO_MAPPING)?;
            to.set_dst(inside.0);
            to.set_dst_port(inside.1);
            outputs.forward = outputs.reply;
        }
        let inside = (key.src(), key.src_port());
        let public = self.public_for(protocol, inside, key, now, next, random)?;
        to.set_src(public.0);
        to.set_src_port(public.1);
        if new.echo {
            to.set_dst_port(echo_port(public.1));
        }
        let reply = table.hashed(Key { map: new.reply_map, ..to.reverse() });
        table.vacate(&reply);
        Ok((reply, outputs))
    }

    /// The key of answers to a new flow from outside, and its outputs, if the filter lets it in.
    pub(super) fn let_in(&self, new: &New<'_>, table: &mut FlowTable) -> Option<(Hashed, Ports)> {
        let options = self.options();
        let key = new.key;
        let (protocol, public) = (key.map as u8, (key.dst(), key.dst_port()));
        if new.echo || !options.lets_in() || !options.holds(public.0) {
            return None;
        }
        let inside = {
            let mappings = self.state.mappings.borrow();
            let mapping = mappings.at(protocol, public)?;
            let lets_in = match options.filtering {
                Dependence::Endpoint => true,
                Dependence::Address => mappings.knows(protocol, public, key.src()),
                Dependence::AddressPort => false,
            };
            (lets_in || mapping.is_static).then_some(mapping.inside.endpoint)?
        };
        let mut to = *key;
        to.set_dst(inside.0);
        to.set_dst_port(inside.1);
        let reply = table.hashed(Key { map: new.reply_map, ..to.reverse() });
        table.vacate(&reply);
        let Ports { forward, reply: back } = options.outputs;
        Some((reply, Ports { forward: back, reply: forward }))
    }

    /// Whom a packet's destination stands for.
    fn inside_of(&self, protocol: u8, key: &Key) -> Option<Endpoint> {
        let mappings = self.state.mappings.borrow();
        mappings.at(protocol, (key.dst(), key.dst_port())).map(|mapping| mapping.inside.endpoint)
    }

    /// The public endpoint of packets with this source: that of the mapping, or one for a new mapping.
    fn public_for(
        &self,
        protocol: u8,
        source: Endpoint,
        key: &Key,
        now: u64,
        next: &std::cell::Cell<u64>,
        mut random: impl FnMut(u64, u64) -> u64,
    ) -> Result<Endpoint, Reason> {
        let options = self.options();
        let mut mappings = self.state.mappings.borrow_mut();
        mappings.now = now;
        let fixed = Inside { protocol, endpoint: source, remote: (0, 0) };
        let inside = options.inside(protocol, source, (key.dst(), key.dst_port()));
        let known = mappings.public_of(&fixed).or_else(|| mappings.public_of(&inside));
        if let Some(public) = known {
            return Ok(public);
        }
        let (low, high) = options.ports;
        let start = match options.order {
            Order::Turn => next.get().min(u64::from(high - low)),
            Order::Own | Order::Random => random(0, u64::from(high - low)),
        };
        let wish = Wish {
            protocol,
            host: source.0,
            own: (options.order == Order::Own && (low..=high).contains(&source.1))
                .then_some(source.1),
            odd: options.keeps_parity.then_some(source.1 & 1 == 1),
            start: low + start as u16,
        };
        let port = |mappings: &mut Mappings, public: u32| {
            options.port_at(mappings, public, &wish).map(|port| (public, port))
        };
        let found = match mappings.host(source.0).map(|host| host.public) {
            Some(public) => port(&mut mappings, public),
            None => {
                let count = options.count();
                let hash = HashFunction::MixedFnv1a.hash([u128::from(source.0)]);
                let first = (hash % u64::from(count)) as u32;
                let tried = (0..count.min(MOST_TRIED as u32)).map(|n| (first + n) % count);
                let mut found = Err(EXHAUSTED);
                for number in tried {
                    found = port(&mut mappings, options.address(number));
                    if found.is_ok() {
                        break;
                    }
                }
                found
            }
        };
        if let (Ok((_, port)), Order::Turn) = (found, options.order) {
            next.set((u64::from(port - low) + 1) % (u64::from(high - low) + 1));
        }
        found
    }
}

/// What port a new mapping is to have.
struct Wish {
    protocol: u8,
    host: u32,
    /// This one, if it is free.
    own: Option<u16>,
    /// An odd one, or an even one.
    odd: Option<bool>,
    /// Else the first one that is free from here on.
    start: u16,
}

impl Options {
    /// A port of a public address for a host.
    fn port_at(&self, mappings: &mut Mappings, public: u32, wish: &Wish) -> Result<u16, Reason> {
        let Some(BlockOptions { size, most }) = self.blocks else {
            return mappings.taken(wish.protocol, public).wished(self.ports, wish).ok_or(EXHAUSTED);
        };
        let has = mappings.host(wish.host).map_or(&[][..], |host| &host.blocks[..]);
        let is_full = has.len() >= most;
        let has: Vec<u16> = has.iter().filter(|b| b.0 == public).map(|b| b.1).collect();
        for number in has {
            let range = self.block_range(number, size);
            if let Some(port) = mappings.taken(wish.protocol, public).wished(range, wish) {
                return Ok(port);
            }
        }
        if is_full {
            return Err(HOST_LIMIT);
        }
        let all = (0, self.block_count(size) - 1);
        let near = wish.own.unwrap_or(wish.start);
        let first = ((near - self.ports.0) / size).min(all.1);
        let blocks = mappings.taken_blocks(public);
        let number = blocks.first_free(all, first, None).ok_or(EXHAUSTED)?;
        let range = self.block_range(number, size);
        mappings.taken(wish.protocol, public).wished(range, wish).ok_or(EXHAUSTED)
    }
}

impl ports::PortSet {
    /// A free port of a range as wished.
    fn wished(&self, range: (u16, u16), wish: &Wish) -> Option<u16> {
        let own = wish.own.filter(|own| (range.0..=range.1).contains(own) && !self.contains(*own));
        own.or_else(|| self.first_free(range, wish.start, wish.odd))
    }
}
