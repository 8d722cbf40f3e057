//! Leases: flows that a device in front goes by, so that their packets need not come here.
//!
//! Elements own flows, and do with them what they like: whatever changes more of a flow than when it expires ends its lease
//! before anything else is done. Now and then leases are renewed, and flows live longer that the device had packets of. A
//! lease ends by itself if nobody renews it, and long before its flow would expire, so a flow is never gone here
//! that a device goes by. When a lease ended by that, it is asked once more whether packets came.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use elements::flow_access::{FlowAccess, FlowLog, Leasable, Numbers};
use smallvec::SmallVec;

use super::Router;
use crate::io::{LeaseMaps, monotonic};
use codegen::ebpf::lease::SLOTS;

/// How long a lease lasts if it is not renewed, in nanoseconds.
const TERM: u64 = 2_000_000_000;
/// Flows that would expire within this time have no lease.
const RESERVE: u64 = 2 * TERM;
/// Flows that are looked at in one call.
const AT_ONCE: usize = 256;
/// Slots in a round whose keys are removed.
const ENDED_AT_ONCE: usize = 1024;
/// Flows that are looked at in a round to give leases of them; the next round goes on behind them.
const IN_ROUND: usize = 1 << 16;
/// Rounds without packets after which a lease makes room for others, if there is none left.
const IDLE: u8 = 8;

/// Until when a device may have a lease under a key of a flow, if it may: by the key, what lookups bind, the time and when
/// the flow expires, and until when it lives and may not be evicted if a packet comes now.
pub type Allows = dyn Fn(&[u128], &[u128], (u64, u64), (u64, u64)) -> Option<u64> + Send;

/// A table of flows, and the maps of a device that may have leases of them.
pub struct Lease {
    /// The element's full name.
    pub owner: String,
    /// The maps.
    pub maps: LeaseMaps,
    /// Of which flows.
    pub allows: Box<Allows>,
}

/// How leases stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leased {
    /// Flows with a lease.
    pub flows: usize,
    /// Whether there was no room for some.
    pub full: bool,
    /// Whether there is more to do at once.
    pub more: bool,
}

/// What a flow holds.
struct Held {
    slots: SmallVec<[u32; 2]>,
    /// It ended, and it is to be asked once more whether packets came.
    is_over: bool,
    idle: u8,
    /// It may last so long whatever packets come.
    until: u64,
}

/// Leases by flow, and slots whose leases ended.
#[derive(Default)]
struct Book {
    flows: HashMap<u32, Held>,
    ended: Vec<u32>,
}

impl Book {
    /// Ends the lease of a flow.
    fn end(&mut self, maps: &LeaseMaps, number: u32) {
        if let Some(held) = self.flows.remove(&number) {
            held.slots.iter().for_each(|slot| maps.end(*slot));
            self.ended.extend(held.slots);
        }
    }

    fn end_all(&mut self, maps: &LeaseMaps) {
        for (_, held) in self.flows.drain() {
            held.slots.iter().for_each(|slot| maps.end(*slot));
            self.ended.extend(held.slots);
        }
    }
}

/// Where a round is.
enum Round {
    Over,
    /// Flows whose leases are to be renewed.
    Renewing(Vec<u32>),
    /// So many flows are still to be looked at.
    Giving(usize),
}

struct Table {
    owner: String,
    flows: Rc<RefCell<dyn FlowAccess>>,
    maps: Rc<LeaseMaps>,
    allows: Box<Allows>,
    book: Rc<RefCell<Book>>,
    /// Tells of changes as long as it is kept.
    _log: Rc<FlowLog>,
    round: Round,
    /// Where flows are looked at next.
    place: u64,
    /// Slots that never were in use begin here.
    fresh: u32,
    free: Vec<u32>,
    /// Slots whose keys lead nowhere since this round: a program may still hold their numbers.
    resting: Vec<u32>,
    full: bool,
}

impl Table {
    fn new(lease: Lease, flows: Rc<RefCell<dyn FlowAccess>>) -> Self {
        let Lease { owner, maps, allows } = lease;
        let (maps, book) = (Rc::new(maps), Rc::new(RefCell::new(Book::default())));
        let log = {
            let (maps, book) = (Rc::clone(&maps), Rc::clone(&book));
            Rc::new(FlowLog::telling(move |changed| match changed {
                Some((_, number)) => book.borrow_mut().end(&maps, number),
                None => book.borrow_mut().end_all(&maps),
            }))
        };
        flows.borrow_mut().watch(&log, 0);
        Self {
            owner,
            flows,
            maps,
            allows,
            book,
            _log: log,
            round: Round::Over,
            place: 0,
            fresh: 0,
            free: Vec::new(),
            resting: Vec::new(),
            full: false,
        }
    }

    /// Does some of a round.
    fn renew(&mut self, now: u64) {
        let until = monotonic().saturating_add(TERM);
        if let Round::Over = self.round {
            self.begin();
        }
        match &mut self.round {
            Round::Over => {}
            Round::Renewing(flows) => {
                let rest = flows.split_off(flows.len().saturating_sub(AT_ONCE));
                let is_last = flows.is_empty();
                rest.into_iter().for_each(|number| self.renew_one(number, now, until));
                if is_last {
                    self.round = Round::Giving(IN_ROUND);
                }
            }
            Round::Giving(left) => {
                let left = left.saturating_sub(AT_ONCE);
                let mut found = Vec::new();
                let next = self.flows.borrow().leasable(self.place, AT_ONCE, now, &mut |flow| {
                    found.push(flow);
                });
                self.place = next.unwrap_or(0);
                found.into_iter().for_each(|flow| self.give(&flow, now, until));
                self.round = match next {
                    Some(_) if left > 0 => Round::Giving(left),
                    _ => Round::Over,
                };
            }
        }
    }

    fn begin(&mut self) {
        self.free.append(&mut self.resting);
        let mut book = self.book.borrow_mut();
        // What more ended is for the next rounds: packets wait.
        let rest = book.ended.len().saturating_sub(ENDED_AT_ONCE);
        self.resting.extend(book.ended.drain(rest..));
        self.resting.iter().for_each(|slot| self.maps.leave(*slot));
        self.round = Round::Renewing(book.flows.keys().copied().collect());
    }

    fn renew_one(&mut self, number: u32, now: u64, until: u64) {
        let held = |book: &Book| {
            book.flows.get(&number).map(|held| (held.slots.clone(), held.is_over, held.idle))
        };
        let Some((slots, is_over, idle)) = held(&self.book.borrow()) else { return };
        let used = slots.iter().fold(false, |used, slot| self.maps.take_use(*slot) | used);
        let expiry = self.flows.borrow().expiry(number);
        if used && expiry > now {
            self.flows.borrow_mut().prolong(number, now);
        }
        if is_over {
            self.book.borrow_mut().end(&self.maps, number);
            return;
        }
        let expiry = self.flows.borrow().expiry(number);
        let makes_room = self.full && idle >= IDLE && !used;
        let mut book = self.book.borrow_mut();
        // Whatever else changed has ended it.
        let Some(held) = book.flows.get_mut(&number) else { return };
        held.idle = if used { 0 } else { idle.saturating_add(1) };
        if makes_room || expiry.min(held.until) <= now.saturating_add(RESERVE) {
            held.is_over = true;
            slots.iter().for_each(|slot| self.maps.end(*slot));
        } else {
            slots.iter().for_each(|slot| self.maps.prolong(*slot, until));
        }
    }

    fn slot(&mut self) -> Option<u32> {
        self.free.pop().or_else(|| {
            let slot = (self.fresh < SLOTS).then_some(self.fresh)?;
            self.fresh += 1;
            Some(slot)
        })
    }

    fn give(&mut self, flow: &Leasable, now: u64, until: u64) {
        let is_new = !self.book.borrow().flows.contains_key(&flow.number);
        if !is_new || flow.expiry <= now.saturating_add(RESERVE) {
            return;
        }
        let mut sides: SmallVec<[(&Numbers, Numbers); 2]> = SmallVec::new();
        let mut last = u64::MAX;
        for key in &flow.keys {
            let Some(found) = self.flows.borrow().find(key, now) else { continue };
            let bound: Numbers = found.values.iter().chain(&found.common).copied().collect();
            if let Some(until) = (self.allows)(key, &bound, (now, flow.expiry), flow.prolonged) {
                // What expires is prolonged; what does not is bound to last.
                let is_bound = until < flow.expiry;
                last = if is_bound { until.min(last) } else { last };
                sides.push((key, bound));
            }
        }
        let mut slots: SmallVec<[u32; 2]> = SmallVec::new();
        for _ in &sides {
            slots.extend(self.slot());
        }
        if slots.len() < sides.len() {
            self.free.extend(slots);
            self.full = true;
            return;
        }
        if sides.is_empty() || last <= now.saturating_add(RESERVE) {
            self.free.extend(slots);
            return;
        }
        for (slot, (key, bound)) in slots.iter().zip(&sides) {
            self.maps.write(*slot, key, bound);
            self.maps.prolong(*slot, until);
        }
        let held = Held { slots: slots.clone(), is_over: false, idle: 0, until: last };
        self.book.borrow_mut().flows.insert(flow.number, held);
        if slots.iter().any(|slot| self.maps.enter(*slot).is_err()) {
            self.book.borrow_mut().end(&self.maps, flow.number);
            self.full = true;
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.book.borrow_mut().end_all(&self.maps);
    }
}

/// The leases that a router gave.
#[derive(Default)]
pub(super) struct Given(Vec<Table>);

/// The leases of flows that a router gives.
pub struct Leases<'a>(pub(super) &'a mut Router);

impl Leases<'_> {
    /// Gives leases of flows from now on, whenever [`Leases::renew`] is called. Elements that are not there, or have
    /// no flows, give none.
    pub fn give(&mut self, all: Vec<Lease>) {
        let mut given = Vec::new();
        for lease in all {
            let flows = self.0.element(&lease.owner).and_then(|element| element.flows());
            given.extend(flows.map(|flows| Table::new(lease, flows)));
        }
        self.0.leases = Given(given);
    }

    /// Renews leases, and gives others; none if there are none to give, as where elements have other tables since.
    pub fn renew(&mut self) -> Option<Leased> {
        let now = self.0.clock.now();
        let mut given = std::mem::take(&mut self.0.leases);
        for table in &given.0 {
            let flows = self.0.element(&table.owner)?.flows()?;
            if !std::ptr::addr_eq(Rc::as_ptr(&flows), Rc::as_ptr(&table.flows)) {
                return None;
            }
        }
        let mut all = Leased::default();
        for table in &mut given.0 {
            if let Round::Over = table.round {
                table.full &= table.free.is_empty() && table.fresh == SLOTS;
            }
            table.renew(now);
            all.flows += table.book.borrow().flows.len();
            all.full |= table.full;
        }
        // Tables take their turns; a round is over when it is for all.
        all.more = given.0.iter().any(|table| !matches!(table.round, Round::Over));
        let is_any = !given.0.is_empty();
        self.0.leases = given;
        is_any.then_some(all)
    }

    /// Ends all leases.
    pub fn end(&mut self) {
        self.0.leases = Given::default();
    }
}
