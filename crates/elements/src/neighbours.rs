//! Which Ethernet addresses the neighbours on a link have, and the packets that wait to know one.

use std::collections::{HashMap, VecDeque};

use ir::model::StateKind;
use ir::state::{Flow, Flows};
use ir::{Reason, StateValue, Store};
use net::Packet;
use net::wire::EtherAddr;

use crate::argument::{EtherAddress, Nanoseconds, parse_value};
use crate::configure::Arguments;
use crate::context::Context;
use crate::legacy::Legacy;

/// Keywords that say how much is kept and how long.
pub(crate) const KEYWORDS: [&str; 5] =
    ["CAPACITY", "ENTRY_CAPACITY", "ENTRY_PACKET_CAPACITY", "CAPACITY_SLIM_FACTOR", "TIMEOUT"];

/// Too many packets wait for answers.
pub(crate) const NO_ROOM: Reason = Reason("neighbour-queue-full");
/// The answer did not come in time.
const UNANSWERED: Reason = Reason("neighbour-unanswered");

const SECOND: u64 = 1_000_000_000;

/// IP addresses (of 32 or 128 bits), their Ethernet addresses, and the packets that wait for them.
pub(crate) struct Neighbours {
    entries: HashMap<u128, Entry>,
    waiting: usize,
    capacity: usize,
    entry_capacity: usize,
    entry_packet_capacity: usize,
    slim_factor: usize,
    timeout: u64,
    drops: u64,
    /// Counts how often entries were set, to tell which is older.
    age: u64,
    next_slim: u64,
}

/// What goes over to the table that takes this one's place.
struct HandedOver {
    entries: HashMap<u128, Entry>,
    waiting: usize,
    drops: u64,
    age: u64,
}

struct Entry {
    /// `None` while it was asked for and not answered.
    ether: Option<EtherAddr>,
    live_at: u64,
    polled_at: u64,
    polls: u8,
    waiting: VecDeque<Packet>,
    age: u64,
}

impl Entry {
    /// Whether it is time to ask for the address (again); then it is taken as asked for.
    fn poll(&mut self, now: u64) -> bool {
        let pause = if self.polls >= 10 { 2 * SECOND } else { SECOND / 10 };
        let due = now >= self.polled_at.saturating_add(pause);
        if due {
            self.polled_at = now;
            self.polls = self.polls.saturating_add(1);
        }
        due
    }
}

impl Neighbours {
    /// Takes the [`KEYWORDS`], which the caller has declared; addresses are believed for so many
    /// seconds unless TIMEOUT says else.
    pub(crate) fn configure(arguments: &mut Arguments<'_, '_>, seconds: u64) -> Self {
        let capacity = arguments.keyword("CAPACITY").unwrap_or(2048);
        let entry_capacity = arguments.keyword("ENTRY_CAPACITY").unwrap_or(1 << 16);
        let entry_packet_capacity = arguments.keyword("ENTRY_PACKET_CAPACITY").unwrap_or(0);
        let factor = arguments.keyword_argument("CAPACITY_SLIM_FACTOR");
        let slim_factor = match &factor {
            Some(word) => arguments.parse("CAPACITY_SLIM_FACTOR", word).unwrap_or(2),
            None => 2,
        };
        if let Some(word) = factor.filter(|_| slim_factor == 0) {
            arguments.error(&word, "CAPACITY_SLIM_FACTOR cannot be zero");
        }
        let timeout = arguments.keyword("TIMEOUT").unwrap_or(Nanoseconds(seconds * SECOND));
        Self {
            entries: HashMap::new(),
            waiting: 0,
            capacity,
            entry_capacity,
            entry_packet_capacity,
            slim_factor,
            timeout: timeout.0,
            drops: 0,
            age: 0,
            next_slim: 0,
        }
    }

    /// The last moment at which an entry that was set at a time is believed.
    fn last(&self, live_at: u64) -> u64 {
        if self.timeout == 0 { u64::MAX - 1 } else { live_at.saturating_add(self.timeout) }
    }

    /// The Ethernet address of an IP address, and when it became known.
    #[inline]
    pub(crate) fn lookup(&self, address: u128, now: u64) -> Option<(EtherAddr, u64)> {
        let entry = self.entries.get(&address)?;
        let ether = entry.ether?;
        (now <= self.last(entry.live_at)).then_some((ether, entry.live_at))
    }

    /// Whether the address is known, or was asked for.
    pub(crate) fn contains(&self, address: u128) -> bool {
        self.entries.contains_key(&address)
    }

    /// Whether it is time to ask again for an address that is known.
    pub(crate) fn poll(&mut self, address: u128, now: u64) -> bool {
        self.entries.get_mut(&address).is_some_and(|entry| entry.poll(now))
    }

    /// Whether there would be too many addresses with so many more.
    fn is_over_full(&self, more: usize) -> bool {
        self.entry_capacity > 0 && self.entries.len() + more > self.entry_capacity
    }

    fn ensure(&mut self, address: u128, now: u64, cx: &mut Context<'_>) -> &mut Entry {
        let new = usize::from(!self.entries.contains_key(&address));
        if self.is_over_full(new) || now >= self.next_slim {
            self.slim(now, new, cx);
            self.next_slim = now.saturating_add(self.timeout.max(SECOND));
        }
        self.age += 1;
        self.entries.entry(address).or_insert_with(|| Entry {
            ether: None,
            live_at: now,
            polled_at: now.saturating_sub(SECOND),
            polls: 0,
            waiting: VecDeque::new(),
            age: self.age,
        })
    }

    /// Sets the Ethernet address of an IP address; gives the packets that waited for it.
    pub(crate) fn insert(
        &mut self,
        address: u128,
        ether: EtherAddr,
        now: u64,
        cx: &mut Context<'_>,
    ) -> VecDeque<Packet> {
        let entry = self.ensure(address, now, cx);
        entry.ether = (!ether.is_broadcast()).then_some(ether);
        entry.live_at = now;
        entry.polls = 0;
        entry.polled_at = now.saturating_sub(SECOND);
        let waited = std::mem::take(&mut entry.waiting);
        let age = self.age;
        self.entries.entry(address).and_modify(|entry| entry.age = age);
        self.waiting -= waited.len();
        waited
    }

    /// Lets a packet wait for an address that is not known. Whether it is time to ask for it.
    pub(crate) fn wait(
        &mut self,
        address: u128,
        packet: Packet,
        now: u64,
        cx: &mut Context<'_>,
    ) -> bool {
        let (timeout, entry_packet_capacity) = (self.timeout, self.entry_packet_capacity);
        let entry = self.ensure(address, now, cx);
        if timeout > 0 {
            // An address that is still asked for must not expire.
            entry.live_at = entry.live_at.max(now.saturating_sub(timeout));
        }
        if entry_packet_capacity > 0 && entry.waiting.len() >= entry_packet_capacity {
            self.drop(packet, NO_ROOM, cx);
            return false;
        }
        let ask = entry.poll(now);
        self.waiting += 1;
        if self.capacity > 0 && self.waiting > self.capacity {
            self.slim(now, 0, cx);
        }
        self.ensure(address, now, cx).waiting.push_back(packet);
        ask
    }

    fn drop(&mut self, packet: Packet, reason: Reason, cx: &mut Context<'_>) {
        self.drops += 1;
        cx.drop(packet, reason);
    }

    /// Removes what is too old or too much, oldest first, to make room for `new` addresses.
    fn slim(&mut self, now: u64, new: usize, cx: &mut Context<'_>) {
        let mut oldest: Vec<(u64, u64, u128)> =
            self.entries.iter().map(|(&address, e)| (e.live_at, e.age, address)).collect();
        oldest.sort_unstable();
        let mut rest = Vec::new();
        for (live_at, _, address) in oldest {
            if now > self.last(live_at) || self.is_over_full(new) {
                let entry = self.entries.remove(&address);
                for packet in entry.into_iter().flat_map(|entry| entry.waiting) {
                    self.waiting -= 1;
                    self.drop(packet, UNANSWERED, cx);
                }
            } else {
                rest.push(address);
            }
        }
        if self.capacity == 0 || self.waiting <= self.capacity {
            return;
        }
        let target = (self.capacity - self.capacity / self.slim_factor).max(1);
        for address in rest {
            while self.waiting > target {
                let entry = self.entries.get_mut(&address);
                let Some(packet) = entry.and_then(|entry| entry.waiting.pop_front()) else { break };
                self.waiting -= 1;
                self.drop(packet, NO_ROOM, cx);
            }
        }
    }

    fn clear(&mut self, cx: &mut Context<'_>) {
        let entries = std::mem::take(&mut self.entries);
        for packet in entries.into_values().flat_map(|entry| entry.waiting) {
            self.drop(packet, UNANSWERED, cx);
        }
        self.waiting = 0;
    }

    /// Name of the state that holds the known addresses: the key is the IP address, the value
    /// the Ethernet address, and the common cell when it became known.
    pub(crate) const STATE: &'static str = "neighbours";

    /// What that state is.
    pub(crate) fn state_kind(&self) -> StateKind {
        StateKind::Flows { capacity: self.state_capacity(), widths: vec![48, 64] }
    }

    fn state_capacity(&self) -> u64 {
        if self.entry_capacity == 0 { u64::MAX } else { self.entry_capacity as u64 }
    }

    /// Writes the known addresses.
    pub(crate) fn export(&self, owner: &str, store: &mut Store) {
        let mut flows = Flows::new(self.state_capacity());
        for (&address, entry) in &self.entries {
            let Some(ether) = entry.ether else { continue };
            let number = ether.0.iter().fold(0u128, |n, &b| n << 8 | u128::from(b));
            let flow = Flow {
                keys: [vec![address], vec![address, 0]],
                values: [vec![number], vec![number]],
                common: vec![entry.live_at.into()],
                expiry: self.last(entry.live_at) + 1,
                guarantee: 0,
            };
            flows.insert(flow, 0);
        }
        store.set(owner, Self::STATE, StateValue::Flows(flows));
    }

    /// Takes over the known addresses; packets go on waiting.
    pub(crate) fn import(&mut self, owner: &str, store: &Store) {
        let Some(StateValue::Flows(flows)) = store.get(owner, Self::STATE) else { return };
        let known: HashMap<u128, (EtherAddr, u64)> = flows
            .iter()
            .filter_map(|flow| {
                let address = *flow.keys[0].first()?;
                let ether = (*flow.values[0].first()? as u64).to_be_bytes();
                let ether = EtherAddr(ether[2..].try_into().ok()?);
                Some((address, (ether, *flow.common.first()? as u64)))
            })
            .collect();
        for (address, entry) in &mut self.entries {
            if !known.contains_key(address) {
                entry.ether = None;
            }
        }
        self.entries.retain(|_, entry| {
            entry.ether.is_some() || !entry.waiting.is_empty() || entry.polls > 0
        });
        for (address, (ether, live_at)) in known {
            self.age += 1;
            let age = self.age;
            let entry = self.entries.entry(address).or_insert_with(|| Entry {
                ether: None,
                live_at,
                polled_at: live_at.saturating_sub(SECOND),
                polls: 0,
                waiting: VecDeque::new(),
                age,
            });
            (entry.ether, entry.live_at) = (Some(ether), live_at);
        }
    }

    /// Number of packets that wait.
    pub(crate) fn held(&self) -> usize {
        self.waiting
    }

    /// Gives away all entries, with the packets that wait.
    pub(crate) fn hand_over(&mut self) -> Legacy {
        let entries = std::mem::take(&mut self.entries);
        let handed =
            HandedOver { entries, waiting: self.waiting, drops: self.drops, age: self.age };
        self.waiting = 0;
        Legacy { native: Some(Box::new(handed)), ..Legacy::default() }
    }

    /// Takes the entries of another. What there is no room for goes when the next one is added.
    pub(crate) fn take_over(&mut self, mut legacy: Legacy) {
        if let Some(handed) = legacy.take_native::<HandedOver>() {
            (self.entries, self.waiting) = (handed.entries, handed.waiting);
            (self.drops, self.age) = (handed.drops, handed.age);
        }
    }

    /// Reads one of the handlers count, length, drops and table.
    pub(crate) fn read(&self, handler: &str, now: u64, ip: fn(u128) -> String) -> String {
        match handler {
            "count" => self.entries.len().to_string(),
            "length" => self.waiting.to_string(),
            "drops" => self.drops.to_string(),
            _ => self.describe(now, ip),
        }
    }

    fn describe(&self, now: u64, ip: fn(u128) -> String) -> String {
        let mut all: Vec<_> = self.entries.iter().collect();
        all.sort_unstable_by_key(|(address, entry)| (entry.live_at, **address));
        let line = |(&address, entry): (&u128, &Entry)| {
            let known = entry.ether.filter(|_| now <= self.last(entry.live_at));
            let ether = entry.ether.unwrap_or(EtherAddr::BROADCAST);
            let age = now.saturating_sub(entry.live_at);
            format!(
                "{} {} {ether:#} {}.{:09}\n",
                ip(address),
                u8::from(known.is_some()),
                age / SECOND,
                age % SECOND
            )
        };
        all.into_iter().map(line).collect()
    }

    /// Writes one of the handlers insert, delete and clear.
    pub(crate) fn write(
        &mut self,
        handler: &str,
        value: &str,
        cx: &mut Context<'_>,
        parse_ip: fn(&str) -> Result<u128, String>,
    ) -> Result<(), String> {
        let mut words = value.split_whitespace();
        let mut word = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
        if handler == "clear" {
            self.clear(cx);
            return Ok(());
        }
        let address = parse_ip(word("the IP address")?)?;
        let now = cx.now();
        if handler == "insert" {
            let ether = parse_value::<EtherAddress>(word("the Ethernet address")?)?;
            let waited = self.insert(address, ether, now, cx);
            // They go out with the next answer or packet that asks for them.
            self.waiting += waited.len();
            self.entries.entry(address).and_modify(|entry| entry.waiting = waited);
        } else if let Some(entry) = self.entries.get_mut(&address) {
            entry.ether = None;
        }
        Ok(())
    }
}
