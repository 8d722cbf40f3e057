//! The native flow table: bidirectional flows of packets of IPv4 or IPv6, with what
//! [`ir::state::Flows`] declares and nothing that grows with the number of flows on any packet.
//!
//! A flow is one cache line, or two of IPv6; each of its two keys is found through a hash with a secret seed. A
//! flow's timeout makes it a member of a class. All flows of a class live equally long after
//! their last packet, so a list in the order of last packets is also a list in the order of
//! expiry, and its head is the first to expire and the first to lose its guarantee. Hence neither
//! expiring nor choosing whom to evict searches. Time is counted in ticks ([`FlowTable::tick`]), so
//! that a flow moves in its list once a tick and is otherwise only read.

mod access;
mod ahead;
mod allocation;
mod declared;
mod destinations;
mod expiry;
mod follower;
mod handover;
pub(crate) mod index;
mod key;
mod sizes;
pub(crate) mod slab;
mod taken;

use std::hash::{BuildHasher, Hasher};
use std::ops::Range;
use std::rc::Rc;

use net::flow::FlowHash;

use crate::flow_access::Watchers;
use destinations::Destinations;
pub(crate) use follower::Follower;
pub(crate) use handover::{GroupFlows, HandedOver};
use index::{Index, Records};
pub(crate) use key::{Addresses, FlowKey, Hashed, HashedKey, Key};
use sizes::Sizes;
use slab::{Linked, NONE, Slab};
use taken::Taken;
pub(crate) use taken::{Numbers, Pool};

/// There are so many ticks in any timeout at least, unless they would be shorter than about an
/// eighth of a second.
const TICKS: u64 = 64;
const SHORTEST_TICK: u64 = (1 << 27) - 1;
/// About four seconds: what was touched within a tick is equally old to who must be evicted.
const LONGEST_TICK: u64 = (1 << 32) - 1;

/// The tick of flows with a timeout, see [`FlowTable::tick`].
pub(crate) fn tick(timeout: u64) -> u64 {
    let part = (timeout / TICKS).checked_ilog2().map_or(0, |bits| (1 << bits) - 1);
    part.clamp(SHORTEST_TICK, LONGEST_TICK)
}

/// Flows whose removal is prepared at once.
const AHEAD: usize = 32;

/// Candidates that are tried one by one before a pool's tree is asked; of a crowded pool fewer.
pub(crate) const TRIES: u32 = 16;
const TRIES_IF_CROWDED: u32 = 4;

/// One direction of a flow: the key of its packets, and the output that they leave on.
#[derive(Clone, Copy, Debug)]
struct Side<A> {
    addresses: A,
    ports: u32,
    map: u16,
    output: u16,
}

/// A flow. A packet of one direction (0 forward, 1 reverse) is rewritten to the reverse of the other direction's key.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct FlowOf<A> {
    sides: [Side<A>; 2],
    expiry: u64,
    previous: u32,
    next: u32,
    /// Its place in the order in which flows were touched; wraps.
    stamp: u32,
    /// What rewriting the forward direction adds to the sum of its IP header, and to the sum of
    /// its transport header with its pseudo-header; below 0xffff.
    pub deltas: [u16; 2],
    class: u16,
    /// The input specification that made it.
    pub input: u16,
    /// What its owner keeps of the connection's state.
    pub state: u8,
    /// The protocol of the packet that made it.
    pub protocol: u8,
    /// An annotation that its owner remembers.
    pub annotation: u8,
}

/// A flow of IPv4.
pub(crate) type Flow = FlowOf<u64>;

const _: () = assert!(size_of::<Flow>() == 64);
const _: () = assert!(size_of::<FlowOf<[u128; 2]>>() == 128);

impl<A: Addresses> Linked for FlowOf<A> {
    const UNUSED: Self = {
        let none = FlowKey { addresses: A::NONE, ports: 0, map: 0 };
        Self::new(none, none)
    };

    fn link(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl<A: Addresses> FlowOf<A> {
    /// A flow of packets with the key `from`, whose answers have the key `reply`.
    #[inline]
    pub(crate) const fn new(from: FlowKey<A>, reply: FlowKey<A>) -> Self {
        const fn side<A: Copy>(FlowKey { addresses, ports, map }: FlowKey<A>) -> Side<A> {
            Side { addresses, ports, map, output: 0 }
        }
        Self {
            sides: [side(from), side(reply)],
            expiry: 0,
            previous: NONE,
            next: NONE,
            stamp: 0,
            deltas: [0; 2],
            class: 0,
            input: 0,
            state: 0,
            protocol: 0,
            annotation: 0,
        }
    }

    /// The key of a direction (0 forward, 1 reverse).
    #[inline]
    pub(crate) fn key(&self, side: usize) -> FlowKey<A> {
        let Side { addresses, ports, map, output: _ } = self.sides[side];
        FlowKey { addresses, ports, map }
    }

    /// The output that packets of a direction leave on.
    #[inline]
    pub(crate) fn output(&self, side: usize) -> u16 {
        self.sides[side].output
    }

    /// Sets the outputs of both directions.
    #[inline]
    pub(crate) fn set_outputs(&mut self, [forward, reverse]: [u16; 2]) {
        self.sides[0].output = forward;
        self.sides[1].output = reverse;
    }

    /// What packets of a direction become; the map means nothing.
    #[inline]
    pub(crate) fn rewritten(&self, side: usize) -> FlowKey<A> {
        self.key(1 - side).reverse()
    }

    /// The hashes of its keys.
    #[inline]
    fn hashes(&self, hash: &FlowHash) -> [u64; 2] {
        [self.key(0).hash(hash), self.key(1).hash(hash)]
    }

    /// The directions that can be looked up. If both keys are the same, packets are of the
    /// reverse direction.
    #[inline]
    pub(crate) fn sides(&self) -> Range<usize> {
        usize::from(self.has_one_key())..2
    }

    /// Whether both keys are the same.
    #[inline]
    fn has_one_key(&self) -> bool {
        self.key(0) == self.key(1)
    }

    /// When it expires, in nanoseconds.
    pub(crate) fn expiry(&self) -> u64 {
        self.expiry
    }

    /// Its place in the order in which flows were touched; wraps.
    pub(crate) fn touched(&self) -> u32 {
        self.stamp
    }

    /// Says that it is the last of a class, behind another.
    #[inline]
    fn place(&mut self, previous: u32, class: u16, expiry: u64) {
        (self.previous, self.next) = (previous, NONE);
        (self.class, self.expiry) = (class, expiry);
    }
}

/// Which of the flows with the same timeout a class has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Era {
    /// Those that had a packet since timeouts changed.
    Now,
    /// Those that had none, and would be of this class if they had.
    Held(u16),
    /// Those that were not looked at since.
    Before,
}

/// Flows that live equally long after their last packet.
struct Class {
    era: Era,
    timeout: u64,
    /// 0 for none, else at most the timeout.
    guarantee: u64,
    head: u32,
    tail: u32,
    /// Nothing in it expires before.
    earliest: u64,
}

impl Class {
    /// One without flows.
    fn new(era: Era, timeout: u64, guarantee: u64) -> Self {
        Self { era, timeout, guarantee, head: NONE, tail: NONE, earliest: u64::MAX }
    }

    /// The same class without flows.
    fn emptied(&self) -> Self {
        Self::new(self.era, self.timeout, self.guarantee)
    }

    fn guarantee_of<A>(&self, flow: &FlowOf<A>) -> u64 {
        match self.guarantee {
            0 => 0,
            guarantee => flow.expiry.saturating_sub(self.timeout).saturating_add(guarantee),
        }
    }
}

/// What entries of the index lead to.
struct Entries<'a, A> {
    flows: &'a Slab<FlowOf<A>>,
    hash: &'a FlowHash,
}

impl<A: Addresses> Records for Entries<'_, A> {
    #[inline]
    fn hash(&self, entry: u32) -> u64 {
        self.flows.get(entry >> 1).key((entry & 1) as usize).hash(self.hash)
    }

    #[inline]
    fn prefetch(&self, entry: u32) {
        self.flows.prefetch(entry >> 1);
    }
}

/// A flow's number and the direction that was looked up.
pub(crate) type FlowHit = (u32, usize);

/// See the module.
pub(crate) struct Table<A: Addresses> {
    hash: FlowHash,
    capacity: u64,
    clock: u64,
    tick: u64,
    stamp: u32,
    flows: Slab<FlowOf<A>>,
    /// How many flows were made since [`FlowTable::expire`].
    made: usize,
    /// A flow's number and, in the lowest bit, the direction.
    index: Index,
    classes: Vec<Class>,
    taken: Taken,
    /// `taken` tells of flows with lower numbers only; [`ALL`] but for a while after pools changed.
    counted: u32,
    /// As long as flows are left that were not looked at since timeouts changed: when that was.
    changed: Option<u64>,
    /// By number, as far as any is of one: the groups of traffic classes that flows came with ([`net::Packet::group`]).
    groups: Vec<u16>,
    /// How many flows go where, if anybody asks.
    destinations: Option<Destinations<A>>,
    followers: Vec<Rc<dyn Follower<A>>>,
    watchers: Watchers,
    sizes: Sizes,
}

/// Flows of IPv4.
pub(crate) type FlowTable = Table<u64>;

impl<A: Addresses> Table<A> {
    /// Bytes that an empty table takes, roughly.
    pub(crate) const EMPTY: u64 = 128 << 10;

    /// An empty table for so many flows, with a seed that nobody knows.
    pub(crate) fn new(capacity: u64) -> Self {
        let seed = std::hash::RandomState::new().build_hasher().finish();
        Self::with_seed(capacity, seed, Sizes::USUAL)
    }

    fn with_seed(capacity: u64, seed: u64, sizes: Sizes) -> Self {
        let hash = FlowHash::new(seed);
        Self {
            capacity: capacity.min(MAX_CAPACITY),
            clock: 0,
            tick: LONGEST_TICK,
            stamp: 0,
            flows: Slab::new(),
            made: 0,
            index: Index::new(),
            classes: Vec::new(),
            taken: Taken::new(hash.clone(), sizes),
            counted: ALL,
            changed: None,
            groups: Vec::new(),
            destinations: None,
            followers: Vec::new(),
            watchers: Watchers::default(),
            sizes,
            hash,
        }
    }

    /// The class of flows that expire `timeout` after their last packet and may not be evicted
    /// for another before `guarantee` is over, in nanoseconds; 0 is no guarantee.
    pub(crate) fn class(&mut self, timeout: u64, guarantee: u64) -> u16 {
        let timeout = timeout.max(guarantee);
        self.tick = self.tick.min(tick(timeout));
        self.list(Era::Now, timeout, guarantee)
    }

    /// The class of such flows, in the place of one that will not be needed any more if it is new.
    fn list(&mut self, era: Era, timeout: u64, guarantee: u64) -> u16 {
        let same = |c: &Class| (c.era, c.timeout, c.guarantee) == (era, timeout, guarantee);
        let over = |c: &Class| c.era == Era::Before && c.head == NONE;
        let at = self.classes.iter().position(same).unwrap_or_else(|| {
            let class = Class::new(era, timeout, guarantee);
            let place = self.classes.iter().position(over);
            match place {
                Some(place) => self.classes[place] = class,
                None => self.classes.push(class),
            }
            place.unwrap_or(self.classes.len() - 1)
        });
        u16::try_from(at).expect("a few classes a rewriter, a few hundred rewriters")
    }

    /// Nanoseconds of a tick, less one: all ones. Timeouts count from the last nanosecond of the
    /// tick that a packet comes in.
    pub(crate) fn tick(&self) -> u64 {
        self.tick
    }

    #[inline]
    fn tick_end(&self, now: u64) -> u64 {
        now | self.tick
    }

    /// Number of flows, those that expired but were not removed yet included.
    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    /// How many flows it may hold.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Changes how many flows it may hold, giving up those that expire first, those with a
    /// guarantee last.
    pub(crate) fn set_capacity(&mut self, capacity: u64, now: u64) {
        self.capacity = capacity.min(MAX_CAPACITY);
        self.remove_expired(now, usize::MAX);
    }

    /// Gives up flows that there is no room for, but not more than `most`.
    #[cold]
    fn shed(&mut self, now: u64, most: usize) {
        let excess = self.flows.len() - self.capacity as usize;
        for _ in 0..excess.min(most) {
            let heads = self.classes.iter().filter(|c| c.head != NONE);
            let first = heads.min_by_key(|c| {
                let head = self.flows.get(c.head);
                (c.guarantee_of(head) > now, head.expiry, std::cmp::Reverse(self.age(head)))
            });
            let Some(first) = first.map(|c| c.head) else { return };
            self.remove(first);
        }
    }

    /// How long ago a flow was touched, in flows that were since.
    fn age(&self, flow: &FlowOf<A>) -> u32 {
        self.stamp.wrapping_sub(flow.stamp)
    }

    #[inline]
    pub(crate) fn flow(&self, number: u32) -> &FlowOf<A> {
        self.flows.get(number)
    }

    /// Sets what its owner keeps of a connection's state.
    #[inline]
    pub(crate) fn set_state(&mut self, number: u32, state: u8) {
        let flow = self.flows.get_mut(number);
        if flow.state != state {
            flow.state = state;
            self.watchers.changed_one(number);
        }
    }

    /// Sets the cells that are declared common and when a flow expires and may be evicted, as after a packet now; whether
    /// more changed than these times.
    #[inline]
    pub(crate) fn update(
        &mut self,
        number: u32,
        common: &[u128],
        (expiry, guarantee): (u64, u64),
        now: u64,
    ) -> bool {
        let class = self.flows.get(number).class;
        let next = self.class_until(expiry, guarantee, now, class).unwrap_or(class);
        let flow = self.flows.get_mut(number);
        let before = (flow.state, flow.input, flow.protocol, flow.annotation);
        if let &[state, input, protocol, annotation] = common {
            flow.state = state as u8;
            (flow.input, flow.protocol) = (input as u16, protocol as u8);
            flow.annotation = annotation as u8;
        }
        let after = (flow.state, flow.input, flow.protocol, flow.annotation);
        let changed = before != after || class != next;
        if changed {
            self.watchers.changed_one(number);
        }
        self.refresh(number, next, now);
        changed
    }

    /// The class whose flows expire and lose their guarantee at these times after a packet now; probably the one that is
    /// expected.
    pub(crate) fn class_until(
        &self,
        expiry: u64,
        guarantee: u64,
        now: u64,
        expected: u16,
    ) -> Option<u16> {
        let from = self.tick_end(now);
        let fits = |class: &Class| {
            let until = if class.guarantee == 0 { 0 } else { from.saturating_add(class.guarantee) };
            let same = from.saturating_add(class.timeout) == expiry && until == guarantee;
            same && class.era == Era::Now
        };
        if self.classes.get(usize::from(expected)).is_some_and(fits) {
            return Some(expected);
        }
        self.classes.iter().position(fits).and_then(|class| u16::try_from(class).ok())
    }

    /// When a flow expires after a packet now that leaves it in its class, and until when it may not be evicted then.
    #[inline]
    pub(crate) fn lasts_until(&self, flow: &FlowOf<A>, now: u64) -> Option<(u64, u64)> {
        let class = &self.classes[usize::from(flow.class)];
        let from = self.tick_end(now);
        let guarantee = if class.guarantee == 0 { 0 } else { from.saturating_add(class.guarantee) };
        let expiry = from.saturating_add(class.timeout);
        (class.era == Era::Now).then_some((expiry, guarantee))
    }

    /// A packet of the flow came that leaves it in its class; gives the new expiry.
    #[inline]
    pub(crate) fn prolong(&mut self, number: u32, now: u64) -> u64 {
        let class = self.flows.get(number).class;
        debug_assert!(self.classes[usize::from(class)].era == Era::Now, "it was touched before");
        self.touch(number, class, now);
        self.flows.get(number).expiry
    }

    /// A key with its hash.
    #[inline]
    pub(crate) fn hashed(&self, key: FlowKey<A>) -> HashedKey<A> {
        HashedKey { key, hash: key.hash(&self.hash) }
    }

    /// For each hash probably the flow of its key, if any; see [`FlowTable::is`].
    ///
    /// Each key's bucket was prefetched ([`FlowTable::prefetch_bucket`]), so that the processor waits for many cache lines
    /// at once.
    #[inline]
    pub(crate) fn guess<T>(
        &self,
        batch: &mut [T],
        with: impl Fn(&mut T) -> (u64, &mut Option<u32>),
    ) {
        let mut touched = 0;
        for item in batch {
            let (hash, guess) = with(item);
            *guess = self.index.guess(hash);
            touched ^= guess.map_or(0, |entry| self.flows.get(entry >> 1).expiry as u32);
        }
        std::hint::black_box(touched);
    }

    /// The flow that a guess is of, if it is right; it may have expired.
    #[inline]
    pub(crate) fn is(&self, guess: u32, key: &HashedKey<A>) -> Option<FlowHit> {
        let found = (guess >> 1, (guess & 1) as usize);
        let flow = self.flows.get(found.0);
        // One that was removed keeps its keys, which another flow may have by now.
        (flow.expiry != 0 && flow.key(found.1) == key.key).then_some(found)
    }

    /// The flow that has a key, even if it expired.
    #[inline]
    pub(crate) fn holder(&self, key: &HashedKey<A>) -> Option<FlowHit> {
        let same = |entry| self.flows.get(entry >> 1).key((entry & 1) as usize) == key.key;
        self.index.find(key.hash, same).map(|entry| (entry >> 1, (entry & 1) as usize))
    }

    /// The flow of a key.
    #[inline]
    pub(crate) fn lookup(&self, key: &FlowKey<A>, now: u64) -> Option<FlowHit> {
        self.holder(&self.hashed(*key)).filter(|&(number, _)| self.flows.get(number).expiry > now)
    }

    /// Whether no flow has a key. One that expired gives it up.
    pub(crate) fn is_free(&mut self, key: &HashedKey<A>, now: u64) -> bool {
        match self.holder(key) {
            Some((number, _)) if self.flows.get(number).expiry > now => false,
            Some((number, _)) => {
                self.remove(number);
                true
            }
            None => true,
        }
    }

    /// Removes the flow that has a key, if there is one.
    pub(crate) fn vacate(&mut self, key: &HashedKey<A>) {
        if let Some((number, _)) = self.holder(key) {
            self.remove(number);
        }
    }

    /// A packet of the flow came; the flow is of this class from now on.
    #[inline]
    pub(crate) fn touch(&mut self, number: u32, class: u16, now: u64) {
        if self.flows.get(number).class != class {
            self.watchers.changed_one(number);
        }
        self.refresh(number, class, now);
    }

    /// The same, where watchers know of another class.
    #[inline]
    fn refresh(&mut self, number: u32, class: u16, now: u64) {
        let expiry = self.tick_end(now).saturating_add(self.classes[usize::from(class)].timeout);
        let flow = *self.flows.get(number);
        if flow.expiry != expiry || flow.class != class {
            self.unlink(&flow);
            self.append(number, class, expiry);
        }
    }

    /// Takes a flow out of the list of its class.
    #[inline]
    fn unlink(&mut self, &FlowOf { previous, next, class, .. }: &FlowOf<A>) {
        let list = &mut self.classes[usize::from(class)];
        match previous {
            NONE => list.head = next,
            _ => self.flows.get_mut(previous).next = next,
        }
        match next {
            NONE => list.tail = previous,
            _ => self.flows.get_mut(next).previous = previous,
        }
    }

    /// Puts a flow that is in no list last, as it is touched.
    #[inline]
    fn append(&mut self, number: u32, class: u16, expiry: u64) {
        let stamp = self.stamp;
        self.link_last(number, class, expiry).stamp = stamp;
        self.stamp = stamp.wrapping_add(1);
    }

    #[inline]
    fn link_last(&mut self, number: u32, class: u16, expiry: u64) -> &mut FlowOf<A> {
        let previous = self.make_last(number, class, expiry);
        let flow = self.flows.get_mut(number);
        flow.place(previous, class, expiry);
        flow
    }

    /// Has the list of a class end with a flow that expires then; gives the one that was the last.
    #[inline]
    fn make_last(&mut self, number: u32, class: u16, expiry: u64) -> u32 {
        let list = &mut self.classes[usize::from(class)];
        let previous = std::mem::replace(&mut list.tail, number);
        list.earliest = list.earliest.min(expiry);
        match previous {
            NONE => list.head = number,
            _ => self.flows.get_mut(previous).next = number,
        }
        previous
    }

    /// Adds a flow of a class whose packet just came, or tells that there is no room; see
    /// [`Flows::insert`].
    pub(crate) fn insert(&mut self, flow: FlowOf<A>, class: u16, now: u64) -> Option<u32> {
        let keys = [0, 1].map(|side| self.hashed(flow.key(side)));
        keys.iter().for_each(|key| self.vacate(key));
        self.add(flow, keys.map(|key| key.hash), class, now)
    }

    /// The same for a flow whose keys, which have these hashes, no other has.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        mut flow: FlowOf<A>,
        hashes: [u64; 2],
        class: u16,
        now: u64,
    ) -> Option<u32> {
        self.clock = self.clock.max(now);
        let Class { timeout, guarantee, .. } = self.classes[usize::from(class)];
        let expiry = self.tick_end(now).saturating_add(timeout);
        let full = self.flows.len() as u64 >= self.capacity;
        if full && !self.make_room(expiry, guarantee != 0, now) {
            return None;
        }
        let number = self.flows.next();
        flow.place(self.make_last(number, class, expiry), class, expiry);
        flow.stamp = self.stamp;
        self.stamp = self.stamp.wrapping_add(1);
        if let Some(destinations) = &mut self.destinations {
            destinations.add(&flow);
        }
        self.followers.iter().for_each(|follower| follower.added(&flow));
        self.flows.insert(flow);
        self.made += 1;
        self.set_group(number, 0);
        let entries = Entries { flows: &self.flows, hash: &self.hash };
        let counted = number < self.counted;
        // Not a loop over the directions, for which the flow would have to lie in memory once more.
        if !flow.has_one_key() {
            self.index.insert(hashes[0], number << 1, &entries);
            if counted && let Some(key) = A::pooled(&flow.key(0)) {
                self.taken.add(key);
            }
        }
        self.index.insert(hashes[1], number << 1 | 1, &entries);
        if counted && let Some(key) = A::pooled(&flow.key(1)) {
            self.taken.add(key);
        }
        Some(number)
    }

    /// Gives up a flow for one that would expire at `expiry`, if it may.
    #[cold]
    fn make_room(&mut self, expiry: u64, guaranteed: bool, now: u64) -> bool {
        let mut first: Option<(u64, u32, u32)> = None;
        for class in self.classes.iter().filter(|c| c.head != NONE) {
            let head = self.flows.get(class.head);
            // Of heads, all expired ones are equally good.
            let may_go = head.expiry <= now || class.guarantee_of(head) <= now;
            let age = self.age(head);
            let sooner = |(e, a, _): (u64, u32, u32)| (head.expiry, a) < (e, age);
            if may_go && first.is_none_or(sooner) {
                first = Some((head.expiry, age, class.head));
            }
        }
        match first {
            Some((sooner, _, number)) if guaranteed || sooner <= now || expiry >= sooner => {
                self.remove(number);
                true
            }
            _ => false,
        }
    }

    /// Removes a flow.
    pub(crate) fn remove(&mut self, number: u32) {
        self.watchers.changed_one(number);
        self.take_out(number, self.flows.get(number).hashes(&self.hash));
    }

    /// Removes a flow whose keys have these hashes, and of which watchers were told.
    #[inline]
    fn take_out(&mut self, number: u32, hashes: [u64; 2]) {
        let flow = *self.flows.get(number);
        self.unlink(&flow);
        self.forget(number, hashes);
        self.flows.remove(number);
    }

    /// Has a flow that is to be removed found by none of its keys, which have these hashes.
    #[inline(always)]
    fn forget(&mut self, number: u32, hashes: [u64; 2]) {
        let flow = self.flows.get_mut(number);
        // No flow that lives has this one.
        flow.expiry = 0;
        if let Some(destinations) = &mut self.destinations {
            destinations.remove(flow);
        }
        self.followers.iter().for_each(|follower| follower.removed(flow));
        let counted = number < self.counted;
        for side in flow.sides() {
            self.index.remove(hashes[side], number << 1 | side as u32);
            if counted && let Some(key) = A::pooled(&flow.key(side)) {
                self.taken.remove(key);
            }
        }
    }

    /// Looks at so many more flows to see which numbers are taken.
    #[cold]
    fn count(&mut self, most: usize) {
        let room = self.flows.room();
        let end = room.min((self.counted as usize).saturating_add(most));
        for number in self.counted..end as u32 {
            let flow = self.flows.get(number);
            if flow.expiry != 0 {
                for side in flow.sides() {
                    if let Some(key) = A::pooled(&flow.key(side)) {
                        self.taken.add(key);
                    }
                }
            }
        }
        self.counted = if end == room { ALL } else { end as u32 };
    }

    /// Removes all flows.
    pub(crate) fn clear(&mut self) {
        self.watchers.changed_all();
        self.tell_all(|follower, flow| follower.removed(flow));
        (self.flows, self.index) = (Slab::new(), Index::new());
        self.taken.clear();
        self.groups.clear();
        self.destinations = self.destinations.take().map(|_| Destinations::default());
        (self.counted, self.changed) = (ALL, None);
        self.classes.iter_mut().for_each(|class| *class = class.emptied());
    }

    /// Calls for each of so many flows from a place on, in no order; where the next ones are, if
    /// there may be any, and how many flows have been touched, modulo 2^32.
    pub(crate) fn visit(
        &self,
        from: u64,
        most: usize,
        visit: impl FnMut(&FlowOf<A>),
    ) -> (Option<u64>, u32) {
        let room = self.flows.room();
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(room);
        let end = from.saturating_add(most).min(room);
        let all = (from..end).map(|number| self.flows.get(number as u32));
        all.filter(|flow| flow.expiry != 0).for_each(visit);
        ((end < room).then_some(end as u64), self.stamp)
    }

    /// All flows have lower numbers.
    pub(crate) fn room(&self) -> u32 {
        self.flows.room() as u32
    }

    /// Numbers of all flows, in the order in which they were touched, and their directions.
    pub(crate) fn in_order(&self) -> Vec<(u32, Range<usize>)> {
        let mut all = Vec::with_capacity(self.flows.len());
        for class in &self.classes {
            let mut number = class.head;
            while number != NONE {
                all.push(number);
                number = self.flows.get(number).next;
            }
        }
        all.sort_by_key(|&number| std::cmp::Reverse(self.age(self.flows.get(number))));
        all.into_iter().map(|number| (number, self.flows.get(number).sides())).collect()
    }
}

/// Greater than the number of any flow.
const ALL: u32 = u32::MAX;

/// The most flows that a table may hold: a number and a direction must fit 32 bits.
const MAX_CAPACITY: u64 = 0x7fff_fffe;

#[cfg(test)]
mod tests;
