//! Which Ethernet addresses the neighbours on a link have, and the packets that wait to know one.

mod access;

use std::collections::{HashMap, VecDeque};

use click::config::Argument;
use ir::field::anno;
use ir::model::{Reg, StateKind};
use ir::state::{Flow, Flows};
use ir::{Op, Reason, Span, StateValue};
use net::wire::{EtherAddr, ether};
use net::{Annotations, Header, Packet, PacketType, annotation};

use crate::argument::{EtherAddress, FromArgument, Nanoseconds, parse_value};
use crate::configure::Arguments;
use crate::context::Context;
use crate::element_state::ElementState;
use crate::ethernet::ether_encap;
use crate::flow_access::Watchers;
use crate::listing::{self, ROWS, Record, Slice};
use crate::lru_table::LruTable;
use crate::names::Names;
use crate::token_bucket::TokenBucket;

/// Keywords that say how much is kept and how long.
pub(crate) const KEYWORDS: [&str; 8] = [
    "CAPACITY",
    "ENTRY_CAPACITY",
    "INCOMPLETE_CAPACITY",
    "ENTRY_PACKET_CAPACITY",
    "CAPACITY_SLIM_FACTOR",
    "TIMEOUT",
    "QUERY_RATE",
    "UNSOLICITED_RATE",
];

/// Too many packets wait for answers.
pub(crate) const NO_ROOM: Reason = Reason("neighbour-queue-full");
/// Too many addresses are asked for in too short a time.
const QUERY_LIMIT: Reason = Reason("neighbour-query-limit");
/// An answer that nobody asked for, and that is not believed.
pub(crate) const NOT_ASKED: Reason = Reason("neighbour-not-asked-for");
/// The answer did not come in time.
const UNANSWERED: Reason = Reason("neighbour-unanswered");

const SECOND: u64 = 1_000_000_000;

/// Entries of each list that are removed at most when one is added, because they are too old or
/// there is no room for them any more.
const REMOVED_AT_ONCE: usize = 2;

/// List of addresses whose Ethernet address is known, in the order in which they became so.
const KNOWN: usize = 0;
/// List of addresses that were asked for, without packets that wait for them.
const ASKED: usize = 1;
/// List of addresses that packets wait for.
const AWAITED: usize = 2;
/// List of addresses whose Ethernet address came without being asked for.
const UNSOLICITED: usize = 3;
/// Lists of incomplete entries (RFC 6583), in the order in which they make room.
const INCOMPLETE: [usize; 2] = [ASKED, AWAITED];
/// Lists of all others, in that order.
const COMPLETE: [usize; 2] = [UNSOLICITED, KNOWN];

/// How long answers take at most to queries for known addresses; longer than between two of these.
const ANSWER_TIME: u64 = 3 * SECOND;

/// A known address is asked for so many times of its neighbour alone, then of all.
const UNICAST_PROBES: u8 = 3;

/// What becomes of answers that nobody asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsolicited {
    /// They are dropped.
    Never,
    /// They add addresses that are not in the table; if one contradicts it, all are asked.
    New,
    /// They are believed.
    Always,
}

impl FromArgument for Unsolicited {
    const EXPECTED: &'static str = "never, new or always";

    fn from_argument(argument: &Argument, _: &Names, _: &str) -> Result<Self, String> {
        match argument.text.as_str() {
            "never" => Ok(Self::Never),
            "new" => Ok(Self::New),
            "always" => Ok(Self::Always),
            _ => Err(format!("'{}' is not {}", argument.text, Self::EXPECTED)),
        }
    }
}

/// Networks, each with where it was written, and the Ethernet address that they all have.
pub(crate) type Stations<N> = (Vec<(N, Span)>, EtherAddr);

/// The stations of `NETWORK ... ETH`; or where that is wrong, and why. `kind` is what a network is called.
pub(crate) fn parse_stations<N: FromArgument>(
    argument: &Argument,
    kind: &str,
    names: &Names,
    element: &str,
) -> Result<Stations<N>, (Argument, String)> {
    let mut networks = Vec::new();
    let mut ether: Option<EtherAddr> = None;
    for word in argument.words() {
        if let Ok(network) = N::from_argument(&word, names, element) {
            networks.push((network, word.span));
        } else if let Ok(address) = EtherAddr::from_argument(&word, names, element) {
            if ether.replace(address).is_some() {
                return Err((word, "there is more than one Ethernet address".into()));
            }
        } else {
            let why = format!("'{}' is neither {kind} nor an Ethernet address", word.text);
            return Err((word, why));
        }
    }
    // A name can stand for both an IP and an Ethernet address.
    let mut words = argument.words();
    let ether =
        ether.or_else(|| words.find_map(|w| EtherAddr::from_argument(&w, names, element).ok()));
    match ether {
        Some(_) if networks.is_empty() => Err((argument.clone(), format!("{kind} is missing"))),
        Some(ether) => Ok((networks, ether)),
        None => Err((argument.clone(), "an Ethernet address is missing".into())),
    }
}

/// Gives a frame that became an answer fresh annotations, but for the VLAN that it came in.
pub(crate) fn refresh(packet: &mut Packet) {
    let tci = packet.annotations().u16(annotation::VLAN_TCI);
    *packet.annotations_mut() = Annotations::default();
    packet.annotations_mut().set_u16(annotation::VLAN_TCI, tci);
    packet.set_packet_type(PacketType::Host);
    packet.set_timestamp(0);
    packet.clear_header(Header::Transport);
    ether_encap::mark(packet);
}

/// What [`refresh`] means.
pub(crate) fn model_refresh(tci: Reg) -> [Op; 5] {
    [
        Op::Let(tci, anno::VLAN_TCI.get()),
        Op::Fresh,
        anno::VLAN_TCI.set(tci),
        Op::Mark(Header::Mac, 0u8.into()),
        Op::Mark(Header::Network, ether::HEADER_LEN.into()),
    ]
}

/// An answer: an IP address and its Ethernet address.
#[derive(Clone, Copy)]
pub(crate) struct Answer {
    pub address: u128,
    pub ether: EtherAddr,
    /// What if it was not asked for.
    pub unsolicited: Unsolicited,
}

/// Who is to be asked for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// The neighbour whose address it was.
    Neighbour,
    /// Everybody.
    All,
}

/// Neighbour cache: IP addresses (of 32 or 128 bits), their Ethernet addresses, and the packets
/// that wait for them.
///
/// Known and incomplete entries are bounded apart, so that addresses that nobody has never
/// displace those of neighbours.
pub(crate) struct Neighbours {
    entries: LruTable<Entry>,
    watchers: Watchers,
    waiting: usize,
    capacity: usize,
    entry_capacity: usize,
    incomplete_capacity: usize,
    entry_packet_capacity: usize,
    slim_factor: usize,
    timeout: u64,
    /// Queries for addresses that are not known.
    queries: TokenBucket,
    /// Addresses that come without being asked for.
    unsolicited: TokenBucket,
    drops: u64,
}

/// What goes over to the table that replaces this one.
struct HandedOver {
    entries: LruTable<Entry>,
    waiting: usize,
    drops: u64,
}

struct Entry {
    /// `None` while it was asked for and not answered.
    ether: Option<EtherAddr>,
    live_at: u64,
    polled_at: u64,
    polls: u8,
    /// Whether the Ethernet address is an answer.
    asked: bool,
    /// Whether somebody else claimed the address.
    doubted: bool,
    waiting: VecDeque<Packet>,
}

impl Entry {
    fn new(ether: Option<EtherAddr>, live_at: u64) -> Self {
        Self {
            ether,
            live_at,
            polled_at: 0,
            polls: 0,
            asked: true,
            doubted: false,
            waiting: VecDeque::new(),
        }
    }

    /// The list that it belongs to.
    fn list(&self) -> usize {
        match (self.waiting.is_empty(), self.ether) {
            (false, _) => AWAITED,
            (true, None) => ASKED,
            (true, Some(_)) if self.asked => KNOWN,
            (true, Some(_)) => UNSOLICITED,
        }
    }

    /// Whether it is time to ask for the address (again).
    fn is_due(&self, now: u64) -> bool {
        let pause = if self.polls >= 10 { 2 * SECOND } else { SECOND / 10 };
        self.polls == 0 || now >= self.polled_at.saturating_add(pause)
    }

    /// Whether an answer would be one to a query.
    fn is_asked(&self, now: u64) -> bool {
        let lately = self.polls > 0 && now <= self.polled_at.saturating_add(ANSWER_TIME);
        self.ether.is_none() || lately
    }

    /// Notes that the address is asked for.
    fn poll(&mut self, now: u64) {
        self.polled_at = now;
        self.polls = self.polls.saturating_add(1);
    }
}

impl Neighbours {
    /// Takes the [`KEYWORDS`], which the caller has declared; addresses are believed for so many
    /// seconds unless TIMEOUT says else.
    pub(crate) fn configure(arguments: &mut Arguments<'_, '_>, seconds: u64) -> Self {
        let capacity = arguments.keyword("CAPACITY").unwrap_or(2048);
        let entry_capacity = arguments.keyword("ENTRY_CAPACITY").unwrap_or(1 << 16);
        let incomplete_capacity = arguments.keyword("INCOMPLETE_CAPACITY").unwrap_or(2048);
        let entry_packet_capacity = arguments.keyword("ENTRY_PACKET_CAPACITY").unwrap_or(0);
        let factor = arguments.keyword_argument("CAPACITY_SLIM_FACTOR");
        let slim_factor = match &factor {
            Some(word) => arguments.parse("CAPACITY_SLIM_FACTOR", word).unwrap_or(2),
            None => 2,
        };
        if let Some(word) = factor.filter(|_| slim_factor == 0) {
            arguments.error(&word, "CAPACITY_SLIM_FACTOR cannot be zero");
        }
        let queries = arguments.keyword("QUERY_RATE").unwrap_or(1000);
        let unsolicited = arguments.keyword("UNSOLICITED_RATE").unwrap_or(100);
        let timeout = arguments.keyword("TIMEOUT").unwrap_or(Nanoseconds(seconds * SECOND));
        Self {
            entries: LruTable::default(),
            watchers: Watchers::default(),
            waiting: 0,
            capacity,
            entry_capacity,
            incomplete_capacity,
            entry_packet_capacity,
            slim_factor,
            timeout: timeout.0,
            queries: TokenBucket::with_duration(queries, SECOND),
            unsolicited: TokenBucket::with_duration(unsolicited, SECOND),
            drops: 0,
        }
    }

    /// The last moment at which an entry that was set at a time is believed.
    fn last(&self, live_at: u64) -> u64 {
        if self.timeout == 0 { u64::MAX - 1 } else { live_at.saturating_add(self.timeout) }
    }

    /// The Ethernet address of an IP address, and when it became known.
    #[inline]
    pub(crate) fn lookup(&self, address: u128, now: u64) -> Option<(EtherAddr, u64)> {
        let entry = self.entries.get(address)?;
        let ether = entry.ether?;
        (now <= self.last(entry.live_at)).then_some((ether, entry.live_at))
    }

    /// Who is to be asked again for an address that is known, if it is time.
    pub(crate) fn probe(&mut self, address: u128, now: u64) -> Option<Probe> {
        let entry = self.entries.get_mut(address).filter(|entry| entry.is_due(now))?;
        let all = entry.doubted || entry.polls >= UNICAST_PROBES;
        entry.poll(now);
        Some(if all { Probe::All } else { Probe::Neighbour })
    }

    /// Removes some of the entries that are too old, and some that there is no room for when one
    /// more is known or, else, incomplete.
    fn make_room(&mut self, known: bool, now: u64, cx: &mut Context<'_>) {
        for list in [KNOWN, ASKED, AWAITED, UNSOLICITED] {
            for _ in 0..REMOVED_AT_ONCE {
                let is_old = |(_, entry): &(u128, &Entry)| now > self.last(entry.live_at);
                let Some((address, _)) = self.entries.oldest(list).filter(is_old) else { break };
                self.remove(address, cx);
            }
        }
        let (lists, capacity) = match known {
            true => (COMPLETE, self.entry_capacity),
            false => (INCOMPLETE, self.incomplete_capacity),
        };
        for _ in 0..REMOVED_AT_ONCE {
            let len: usize = lists.iter().map(|&list| self.entries.list_len(list)).sum();
            if capacity == 0 || len < capacity {
                break;
            }
            let oldest = lists.iter().find_map(|&list| self.entries.oldest(list));
            let Some((address, _)) = oldest else { break };
            self.remove(address, cx);
        }
    }

    /// Removes an entry, and gives it.
    fn take(&mut self, address: u128) -> Option<Entry> {
        self.note_change(address);
        self.entries.remove(address)
    }

    /// What programs found of an address does not hold any more.
    fn note_change(&self, address: u128) {
        if let Some(number) = self.entries.number_of(address) {
            self.watchers.changed_one(number);
        }
    }

    /// Removes an entry and drops the packets that waited.
    fn remove(&mut self, address: u128, cx: &mut Context<'_>) {
        for packet in self.take(address).into_iter().flat_map(|entry| entry.waiting) {
            self.waiting -= 1;
            self.drop(packet, UNANSWERED, cx);
        }
    }

    /// Has the entry of an address in the list that it belongs to.
    fn refile(&mut self, address: u128) {
        if let Some(list) = self.entries.get(address).map(Entry::list) {
            self.entries.refile(address, list);
        }
    }

    /// Takes an answer; gives the packets that waited for it, or `None` if it is not believed.
    /// `old` is after how many nanoseconds known addresses are asked for again, 0 for never.
    pub(crate) fn answer(
        &mut self,
        Answer { address, ether, unsolicited }: Answer,
        old: u64,
        now: u64,
        cx: &mut Context<'_>,
    ) -> Option<VecDeque<Packet>> {
        let last = |live_at| self.last(live_at);
        let known = self.entries.get(address);
        if known.is_some_and(|entry| entry.is_asked(now)) {
            return Some(self.insert(address, ether, true, now, cx));
        }
        let known = known.filter(|entry| now <= last(entry.live_at));
        let known = known.map(|entry| (entry.ether == Some(ether), entry.asked, entry.live_at));
        match (unsolicited, known) {
            (Unsolicited::Never, _) => None,
            // Others heard an answer to somebody who shares the address.
            (_, Some((true, asked, _))) => Some(self.insert(address, ether, asked, now, cx)),
            (Unsolicited::New, Some((false, _, live_at))) => {
                // Of those who claim an address within a second, the first is believed.
                if old > 0 && now >= live_at.saturating_add(SECOND) {
                    self.doubt(address, now.saturating_sub(old));
                }
                None
            }
            _ => {
                self.unsolicited.fill(now);
                let is_full =
                    self.entry_capacity > 0 && self.entries.list_len(KNOWN) >= self.entry_capacity;
                if self.unsolicited.available() == 0 || known.is_none() && is_full {
                    return None;
                }
                self.unsolicited.take(1);
                Some(self.insert(address, ether, false, now, cx))
            }
        }
    }

    /// Has an address be asked for again, of everybody, with the next packet.
    fn doubt(&mut self, address: u128, live_at: u64) {
        self.note_change(address);
        if let Some(entry) = self.entries.get_mut(address) {
            entry.doubted = true;
            entry.live_at = entry.live_at.min(live_at);
        }
    }

    /// Sets the Ethernet address of an IP address; gives the packets that waited for it.
    fn insert(
        &mut self,
        address: u128,
        ether: EtherAddr,
        asked: bool,
        now: u64,
        cx: &mut Context<'_>,
    ) -> VecDeque<Packet> {
        // A known address keeps its place, so that listings do not miss it.
        let is_known = self.entries.get(address).is_some_and(|entry| entry.ether.is_some());
        let before = if is_known { None } else { self.take(address) };
        match is_known {
            true => self.note_change(address),
            false => self.make_room(true, now, cx),
        }
        let entry = Entry { asked, ..Entry::new(Some(ether), now) };
        let list = entry.list();
        let before = self.entries.insert(address, entry, list).or(before);
        let waited = before.map(|entry| entry.waiting).unwrap_or_default();
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
        let before = self.entries.get(address);
        let is_new = before.is_none_or(|entry| entry.ether.is_some());
        let mut ask = before.is_none_or(|entry| entry.is_due(now));
        if ask {
            self.queries.fill(now);
            ask = self.queries.available() > 0;
            if is_new && !ask {
                self.drop(packet, QUERY_LIMIT, cx);
                return false;
            }
            self.queries.take(u64::from(ask));
        }
        if is_new {
            // One that was known has expired.
            let before = self.take(address);
            self.make_room(false, now, cx);
            let mut entry = before.unwrap_or_else(|| Entry::new(None, now));
            (entry.ether, entry.live_at, entry.doubted) = (None, now, false);
            let list = entry.list();
            self.entries.insert(address, entry, list);
        }
        let Some(entry) = self.entries.get_mut(address) else {
            self.drop(packet, NO_ROOM, cx);
            return false;
        };
        if self.timeout > 0 {
            // An address that is still asked for must not expire.
            entry.live_at = entry.live_at.max(now.saturating_sub(self.timeout));
        }
        if ask {
            entry.poll(now);
        }
        if self.entry_packet_capacity > 0 && entry.waiting.len() >= self.entry_packet_capacity {
            self.drop(packet, NO_ROOM, cx);
            return ask;
        }
        self.waiting += 1;
        if self.capacity > 0 && self.waiting > self.capacity {
            self.slim(cx);
        }
        if let Some(entry) = self.entries.get_mut(address) {
            entry.waiting.push_back(packet);
        }
        self.entries.refile(address, AWAITED);
        ask
    }

    fn drop(&mut self, packet: Packet, reason: Reason, cx: &mut Context<'_>) {
        self.drops += 1;
        cx.drop(packet, reason);
    }

    /// Drops a part of the packets that wait, those first that wait for what was first asked for.
    fn slim(&mut self, cx: &mut Context<'_>) {
        let target = (self.capacity - self.capacity / self.slim_factor).max(1);
        while self.waiting > target
            && let Some((address, _)) = self.entries.oldest(AWAITED)
        {
            while self.waiting > target
                && let Some(entry) = self.entries.get_mut(address)
                && let Some(packet) = entry.waiting.pop_front()
            {
                self.waiting -= 1;
                self.drop(packet, NO_ROOM, cx);
            }
            self.refile(address);
        }
    }

    fn clear(&mut self, cx: &mut Context<'_>) {
        self.watchers.changed_all();
        for packet in self.entries.drain().into_iter().flat_map(|(_, entry)| entry.waiting) {
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

    /// Writes the known addresses; of everything all entries, with the packets that wait.
    pub(crate) fn export(&mut self, owner: &str, to: &mut ElementState) {
        if to.is_all() {
            self.watchers.changed_all();
            let entries = std::mem::take(&mut self.entries);
            let waiting = std::mem::take(&mut self.waiting);
            to.native = Some(Box::new(HandedOver { entries, waiting, drops: self.drops }));
            return;
        }
        let mut flows = Flows::new(self.state_capacity());
        for (address, entry) in self.entries.iter() {
            let Some(ether) = entry.ether else { continue };
            let number = u128::from(ether.to_bits());
            let flow = Flow {
                keys: [vec![address], vec![address, 0]],
                values: [vec![number], vec![number]],
                common: vec![entry.live_at.into()],
                expiry: self.last(entry.live_at) + 1,
                guarantee: 0,
            };
            flows.insert(flow, 0);
        }
        to.set(owner, Self::STATE, StateValue::Flows(flows));
    }

    /// Takes the entries of another, or the known addresses; packets go on waiting. What there is no room for goes when
    /// the next one is added.
    pub(crate) fn import(&mut self, owner: &str, from: &mut ElementState) {
        if let Some(handed) = from.take_native::<HandedOver>() {
            self.watchers.changed_all();
            (self.entries, self.waiting) = (handed.entries, handed.waiting);
            self.drops = handed.drops;
        }
        let Some(StateValue::Flows(flows)) = from.declared.get(owner, Self::STATE) else { return };
        let known: HashMap<u128, (EtherAddr, u64)> = flows
            .iter()
            .filter_map(|flow| {
                let address = *flow.keys[0].first()?;
                let ether = (*flow.values[0].first()? as u64).to_be_bytes();
                let ether = EtherAddr(ether[2..].try_into().ok()?);
                Some((address, (ether, *flow.common.first()? as u64)))
            })
            .collect();
        self.watchers.changed_all();
        for (address, mut entry) in self.entries.drain() {
            entry.ether = entry.ether.filter(|_| known.contains_key(&address));
            if entry.ether.is_some() || !entry.waiting.is_empty() || entry.polls > 0 {
                let list = entry.list();
                self.entries.insert(address, entry, list);
            }
        }
        let mut known: Vec<_> = known.into_iter().collect();
        known.sort_unstable_by_key(|&(address, (_, live_at))| (live_at, address));
        for (address, (ether, live_at)) in known {
            let mut entry =
                self.entries.remove(address).unwrap_or_else(|| Entry::new(None, live_at));
            (entry.ether, entry.live_at) = (Some(ether), live_at);
            let list = entry.list();
            self.entries.insert(address, entry, list);
        }
    }

    /// Number of packets that wait.
    pub(crate) fn held(&self) -> usize {
        self.waiting
    }

    /// Reads one of the handlers count, length, drops and table.
    pub(crate) fn read(&self, handler: &str, now: u64, ip: fn(u128) -> String) -> String {
        match handler {
            "count" => self.entries.len().to_string(),
            "length" => self.waiting.to_string(),
            "drops" => self.drops.to_string(),
            _ => listing::whole(|from| self.list(handler, from, now, ip)),
        }
    }

    /// A slice of the handler table, by when entries were set.
    pub(crate) fn list(
        &self,
        handler: &str,
        from: u64,
        now: u64,
        ip: fn(u128) -> String,
    ) -> Option<Slice> {
        if handler != "table" {
            return None;
        }
        let row = |(address, entry): (u128, &Entry)| {
            let known = entry.ether.filter(|_| now <= self.last(entry.live_at));
            let ether = entry.ether.unwrap_or(EtherAddr::BROADCAST);
            let age = now.saturating_sub(entry.live_at);
            let (address, known) = (ip(address), u8::from(known.is_some()));
            let text = format!("{address} {known} {ether:#} {}.{:09}", age / SECOND, age % SECOND);
            Record::Row(entry.live_at, text)
        };
        let (entries, next) = self.entries.part(from, ROWS);
        Some(Slice { records: entries.map(row).collect(), next, ..Slice::default() })
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
            if ether.is_broadcast() {
                self.forget(address);
                return Ok(());
            }
            let waited = self.insert(address, ether, true, now, cx);
            // They leave with the next answer.
            self.waiting += waited.len();
            if let Some(entry) = self.entries.get_mut(address) {
                entry.waiting = waited;
            }
            self.refile(address);
        } else {
            self.forget(address);
        }
        Ok(())
    }

    /// Forgets the Ethernet address of an IP address. Packets that wait go on waiting.
    fn forget(&mut self, address: u128) {
        self.note_change(address);
        if let Some(entry) = self.entries.get_mut(address) {
            entry.ether = None;
            if entry.waiting.is_empty() {
                self.entries.remove(address);
            }
        }
    }
}
