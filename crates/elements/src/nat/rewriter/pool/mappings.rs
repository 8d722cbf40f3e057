//! Mappings: which endpoints inside have which public ones, as the flows of tables say.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

use super::ports::PortSet;
use super::{Options, Static};
use crate::flow_table::{Flow, Key};

/// An address with a port, or an ICMP identifier.
pub(super) type Endpoint = (u32, u16);

/// What has a public endpoint of its own: an endpoint inside and, as far as mappings depend on it, the endpoint outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Inside {
    pub protocol: u8,
    pub endpoint: Endpoint,
    pub remote: Endpoint,
}

/// What a public endpoint stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub inside: Inside,
    /// How many flows use it.
    pub flows: u64,
    pub is_static: bool,
}

/// A host that has mappings.
#[derive(Debug)]
pub(super) struct Host {
    /// Where its mappings are.
    pub public: u32,
    pub mappings: u64,
    /// In the order in which it got them.
    pub blocks: Vec<Block>,
}

/// A public address and the number of a block of its ports.
pub(super) type Block = (u32, u16);

/// A block that a host got or returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    /// In nanoseconds.
    pub time: u64,
    pub host: u32,
    pub block: Block,
    pub is_given: bool,
}

/// Events that are kept for those who ask.
const EVENTS: usize = 4096;

/// See the module. All of it follows from flows and static mappings.
#[derive(Default)]
pub(super) struct Mappings {
    by_inside: HashMap<Inside, Endpoint>,
    by_public: HashMap<(u8, Endpoint), Mapping>,
    hosts: HashMap<u32, Host>,
    /// By protocol and public address: ports that mappings have.
    taken: HashMap<(u8, u32), PortSet>,
    /// By public address: blocks that hosts have.
    taken_blocks: HashMap<u32, PortSet>,
    /// Who has a block, and how many mappings are in it.
    blocks: HashMap<Block, (u32, u64)>,
    /// How many flows a public endpoint has with an address outside, if filters ask.
    remotes: HashMap<(u8, Endpoint, u32), u64>,
    pub events: VecDeque<Event>,
    /// How many of the last events were not printed yet.
    pub unprinted: usize,
    pub given: u64,
    pub returned: u64,
    /// The time of events.
    pub now: u64,
    /// Flows come from elsewhere: what they have they had before.
    pub is_moving: bool,
}

fn src(key: &Key) -> Endpoint {
    (key.src(), key.src_port())
}

fn dst(key: &Key) -> Endpoint {
    (key.dst(), key.dst_port())
}

impl Mappings {
    pub(super) fn new(options: &Options) -> Self {
        let mut mappings = Self::default();
        for &Static { protocol, inside, public } in &options.statics {
            let inside = Inside { protocol, endpoint: inside, remote: (0, 0) };
            mappings.begin(options, inside, public, true);
        }
        mappings
    }

    pub(super) fn public_of(&self, inside: &Inside) -> Option<Endpoint> {
        self.by_inside.get(inside).copied()
    }

    pub(super) fn at(&self, protocol: u8, public: Endpoint) -> Option<&Mapping> {
        self.by_public.get(&(protocol, public))
    }

    pub(super) fn host(&self, address: u32) -> Option<&Host> {
        self.hosts.get(&address)
    }

    /// Whether a public endpoint has a flow with an address outside.
    pub(super) fn knows(&self, protocol: u8, public: Endpoint, remote: u32) -> bool {
        self.remotes.contains_key(&(protocol, public, remote))
    }

    /// The ports of a public address that have mappings.
    pub(super) fn taken(&mut self, protocol: u8, public: u32) -> &PortSet {
        self.taken.entry((protocol, public)).or_default()
    }

    /// The blocks of a public address that hosts have.
    pub(super) fn taken_blocks(&mut self, public: u32) -> &PortSet {
        self.taken_blocks.entry(public).or_default()
    }

    fn begin(&mut self, options: &Options, inside: Inside, public: Endpoint, is_static: bool) {
        let Inside { protocol, endpoint, .. } = inside;
        self.by_inside.entry(inside).or_insert(public);
        let mapping = Mapping { inside, flows: u64::from(!is_static), is_static };
        self.by_public.insert((protocol, public), mapping);
        self.taken.entry((protocol, public.0)).or_default().insert(public.1);
        let host = self.hosts.entry(endpoint.0).or_insert_with(|| Host {
            public: public.0,
            mappings: 0,
            blocks: Vec::new(),
        });
        host.mappings += 1;
        let Some(number) = options.block_of(public.1).filter(|_| !is_static) else { return };
        let block = (public.0, number);
        match self.blocks.entry(block) {
            Entry::Occupied(mut taken) => taken.get_mut().1 += 1,
            Entry::Vacant(free) => {
                free.insert((endpoint.0, 1));
                host.blocks.push(block);
                self.taken_blocks.entry(public.0).or_default().insert(number);
                self.note(endpoint.0, block, true);
            }
        }
    }

    fn end(&mut self, options: &Options, protocol: u8, public: Endpoint) {
        let Some(Mapping { inside, .. }) = self.by_public.remove(&(protocol, public)) else {
            return;
        };
        if self.by_inside.get(&inside) == Some(&public) {
            self.by_inside.remove(&inside);
        }
        if let Some(taken) = self.taken.get_mut(&(protocol, public.0)) {
            taken.remove(public.1);
        }
        if let Some(number) = options.block_of(public.1) {
            self.leave_block((public.0, number));
        }
        let host = inside.endpoint.0;
        if let Some(known) = self.hosts.get_mut(&host) {
            known.mappings -= 1;
            if known.mappings == 0 {
                self.hosts.remove(&host);
            }
        }
    }

    /// A mapping of a block ended.
    fn leave_block(&mut self, block: Block) {
        let Some((host, mappings)) = self.blocks.get_mut(&block) else { return };
        let host = *host;
        *mappings -= 1;
        if *mappings > 0 {
            return;
        }
        self.blocks.remove(&block);
        if let Some(taken) = self.taken_blocks.get_mut(&block.0) {
            taken.remove(block.1);
        }
        if let Some(known) = self.hosts.get_mut(&host) {
            known.blocks.retain(|other| *other != block);
        }
        self.note(host, block, false);
    }

    fn note(&mut self, host: u32, block: Block, is_given: bool) {
        if self.is_moving {
            return;
        }
        if is_given {
            self.given += 1;
        } else {
            self.returned += 1;
        }
        if self.events.len() == EVENTS {
            self.events.pop_front();
        }
        self.events.push_back(Event { time: self.now, host, block, is_given });
        self.unprinted += 1;
    }

    /// The mappings that a flow uses: that of its source, and that of its destination.
    fn used(options: &Options, flow: &Flow) -> impl Iterator<Item = (Inside, Endpoint)> {
        let (from, to) = (flow.key(0), flow.rewritten(0));
        let protocol = from.map as u8;
        let source = (src(&from), src(&to), dst(&from));
        let destination = (dst(&to), dst(&from), src(&to));
        [source, destination].into_iter().filter_map(move |(inside, public, remote)| {
            let is_changed = inside.0 != public.0 && options.holds(public.0);
            is_changed.then(|| (options.inside(protocol, inside, remote), public))
        })
    }

    pub(super) fn add(&mut self, options: &Options, flow: &Flow) {
        for (inside, public) in Self::used(options, flow) {
            match self.by_public.get_mut(&(inside.protocol, public)) {
                Some(mapping) => mapping.flows += 1,
                None => self.begin(options, inside, public, false),
            }
        }
        for key in options.filtered(flow) {
            *self.remotes.entry(key).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, options: &Options, flow: &Flow) {
        for (inside, public) in Self::used(options, flow) {
            let Some(mapping) = self.by_public.get_mut(&(inside.protocol, public)) else {
                continue;
            };
            mapping.flows = mapping.flows.saturating_sub(1);
            if mapping.flows == 0 && !mapping.is_static {
                self.end(options, inside.protocol, public);
            }
        }
        for key in options.filtered(flow) {
            if let Entry::Occupied(mut count) = self.remotes.entry(key) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }

    /// All mappings, in order.
    pub(super) fn all(&self) -> Vec<((u8, Endpoint), Mapping)> {
        let mut all: Vec<_> = self.by_public.iter().map(|(k, m)| (*k, *m)).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all
    }

    /// All hosts, in order.
    pub(super) fn all_hosts(&self) -> Vec<(u32, &Host)> {
        let mut all: Vec<_> = self.hosts.iter().map(|(address, host)| (*address, host)).collect();
        all.sort_unstable_by_key(|(address, _)| *address);
        all
    }

    /// All blocks that hosts have, in order, with the host and its mappings there.
    pub(super) fn all_blocks(&self) -> Vec<(Block, (u32, u64))> {
        let mut all: Vec<_> = self.blocks.iter().map(|(block, who)| (*block, *who)).collect();
        all.sort_unstable_by_key(|(block, _)| *block);
        all
    }
}
