//! The addresses that a learning switch knows.

use std::rc::Rc;

use ir::state::{Flow, Flows};
use net::wire::EtherAddr;
use smallvec::smallvec;

use crate::flow_access::{
    BURST, Column, FlowAccess, FlowLog, FoundFlow, FoundFlows, Leasable, Watchers, lanes_of, set,
};
use crate::flow_table;
use crate::listing::{ROWS, Record, Slice};
use crate::lru_table::LruTable;

/// How many addresses are remembered; further ones replace the oldest.
pub(super) const CAPACITY: usize = 1 << 16;

/// Addresses with their ports.
///
/// All of a list live equally long after their last frame, so that the order of last frames is
/// that of expiry. Timeouts count from the end of a tick, so that most frames change nothing.
pub(super) struct Learned {
    /// How long addresses are remembered; 0 to learn nothing.
    pub(super) timeout: u64,
    ports: LruTable<Seen>,
    /// The timeout of each list; `None` for addresses that came in the order of their expiry.
    timeouts: Vec<Option<u64>>,
    /// Counts changes, to tell of addresses that expire together which changed first.
    next: u64,
    watchers: Watchers,
}

#[derive(Clone, Copy)]
pub(super) struct Seen {
    pub(super) port: usize,
    pub(super) expiry: u64,
    order: u64,
}

/// When an address expires that was seen now.
fn expiry(timeout: u64, now: u64) -> u64 {
    (now | flow_table::tick(timeout)).saturating_add(timeout)
}

impl Learned {
    pub(super) fn new(timeout: u64) -> Self {
        Self {
            timeout,
            ports: LruTable::default(),
            timeouts: Vec::new(),
            next: 0,
            watchers: Watchers::default(),
        }
    }

    /// The port of an address.
    pub(super) fn port(&self, address: u64, now: u64) -> Option<usize> {
        let seen = self.ports.get(address.into())?;
        (seen.expiry > now).then_some(seen.port)
    }

    /// A frame came from an address on a port.
    pub(super) fn learn(&mut self, address: u64, port: usize, now: u64) {
        let until = expiry(self.timeout, now);
        if let Some(number) = self.ports.number_of(address.into())
            && let Some((_, list, seen)) = self.ports.entry(number)
        {
            let is_known = seen.port == port && seen.expiry > now;
            if is_known && seen.expiry == until {
                return;
            }
            if !is_known || self.timeouts[list] != Some(self.timeout) {
                self.watchers.changed_one(number);
            }
        }
        let list = self.list(Some(self.timeout));
        self.add(address, port, until, list);
    }

    /// The list of a timeout, instead of one that became empty if it is new.
    fn list(&mut self, timeout: Option<u64>) -> usize {
        if let Some(list) = self.timeouts.iter().position(|&of| of == timeout) {
            return list;
        }
        let empty = (0..self.timeouts.len()).find(|&list| self.ports.list_len(list) == 0);
        let list = empty.unwrap_or(self.timeouts.len());
        self.timeouts.resize(self.timeouts.len().max(list + 1), None);
        self.timeouts[list] = timeout;
        list
    }

    fn add(&mut self, address: u64, port: usize, expiry: u64, list: usize) {
        let seen = Seen { port, expiry, order: self.next };
        self.next += 1;
        if let Some(known) = self.ports.get_mut(address.into()) {
            *known = seen;
            return self.ports.renew(address.into(), list);
        }
        if self.ports.len() >= CAPACITY {
            let oldest = (0..self.timeouts.len()).filter_map(|list| self.ports.oldest(list));
            let first = oldest.min_by_key(|(_, seen)| (seen.expiry, seen.order));
            if let Some((first, _)) = first {
                let number = self.ports.number_of(first);
                number.into_iter().for_each(|number| self.watchers.changed_one(number));
                self.ports.remove(first);
            }
        }
        self.ports.insert(address.into(), seen, list);
    }

    /// A slice of the addresses that have not expired, in their order, with their ports.
    pub(super) fn part(&self, from: u64, now: u64) -> Slice {
        let (all, next) = self.ports.part(from, ROWS);
        let row = |(address, seen): (u128, &Seen)| {
            let address = address as u64;
            let [_, _, ether @ ..] = address.to_be_bytes();
            Record::Row(address, format!("{:#} {}", EtherAddr(ether), seen.port))
        };
        let living = all.filter(|(_, seen)| seen.expiry > now);
        Slice { records: living.map(row).collect(), next, ..Slice::default() }
    }

    pub(super) fn export(&self) -> Flows {
        let mut flows = Flows::new(CAPACITY as u64);
        let mut all: Vec<_> = self.ports.iter().collect();
        all.sort_unstable_by_key(|(_, seen)| seen.order);
        for (address, seen) in all {
            let flow = Flow {
                keys: [vec![address], vec![address, 0]],
                values: [vec![seen.port as u128], vec![seen.port as u128]],
                common: Vec::new(),
                expiry: seen.expiry,
                guarantee: 0,
            };
            flows.insert(flow, 0);
        }
        flows
    }

    pub(super) fn import(&mut self, flows: &Flows) {
        self.watchers.changed_all();
        (self.ports, self.timeouts) = (LruTable::default(), Vec::new());
        let list = self.list(None);
        let mut all: Vec<&Flow> = flows.iter().collect();
        // Stable, so that of those that expire together the order stays.
        all.sort_by_key(|flow| flow.expiry);
        for flow in all {
            if let (Some(&address), Some(&port)) = (flow.keys[0].first(), flow.values[0].first()) {
                self.add(address as u64, port as usize, flow.expiry, list);
            }
        }
    }
}

impl FlowAccess for Learned {
    /// Addresses that expired make room when there is none.
    fn expire(&mut self, _now: u64) {}

    fn count(&self) -> usize {
        self.ports.len()
    }

    fn find(&self, key: &[u128], now: u64) -> Option<FoundFlow> {
        let &[address] = key else { return None };
        let number = self.ports.number_of(address)?;
        let (.., seen) = self.ports.entry(number)?;
        (seen.expiry > now).then(|| FoundFlow {
            number,
            values: smallvec![seen.port as u128],
            common: smallvec![],
            expiry: seen.expiry,
        })
    }

    fn key_columns(&self) -> &'static [u8] {
        &[2]
    }

    fn find_all(&self, key: &[&Column], lanes: u32, now: u64, found: &mut FoundFlows) {
        found.lanes &= !lanes;
        found.settled &= !lanes;
        let &[low, high] = key else { return };
        let mut all = [(0, 0); BURST];
        let mut numbers = [None; BURST];
        // Each loop touches memory that the one before prefetched.
        for lane in lanes_of(lanes) {
            let address = u128::from(high[lane]) << 32 | u128::from(low[lane]);
            all[lane] = (address, self.ports.hash(address));
            self.ports.prefetch_bucket(all[lane].1);
        }
        for lane in lanes_of(lanes) {
            let (address, hash) = all[lane];
            numbers[lane] = self.ports.number(address, hash);
        }
        for lane in lanes_of(lanes) {
            let entry = numbers[lane].and_then(|number| Some((number, self.ports.entry(number)?)));
            let Some((number, (_, list, seen))) = entry else { continue };
            if seen.expiry <= now {
                continue;
            }
            let until = self.timeouts[list].map_or(0, |timeout| expiry(timeout, now));
            found.settled |= u32::from(until == seen.expiry) << lane;
            found.lanes |= 1 << lane;
            found.numbers[lane] = number;
            (found.expiries[lane], found.guarantees[lane]) = (until, 0);
            set(&mut found.values, 0, lane, seen.port as u64);
        }
    }

    fn update(&mut self, number: u32, _: &[u128], expiry: u64, _: u64, now: u64) -> bool {
        let Some((address, list, &seen)) = self.ports.entry(number) else { return false };
        if seen.expiry <= now || seen.expiry == expiry {
            return false;
        }
        let changes = self.timeouts[list] != Some(self.timeout);
        if changes {
            self.watchers.changed_one(number);
        }
        let list = self.list(Some(self.timeout));
        self.add(address as u64, seen.port, expiry, list);
        changes
    }

    fn expiry(&self, number: u32) -> u64 {
        self.ports.entry(number).map_or(0, |(.., seen)| seen.expiry)
    }

    fn prefetch(&self, number: u32) {
        self.ports.prefetch(number);
    }

    fn prefetch_changes(&self, _number: u32) {}

    fn prolong(&mut self, number: u32, now: u64) -> u64 {
        let Some((address, list, &seen)) = self.ports.entry(number) else { return 0 };
        let until = self.timeouts[list].map_or(seen.expiry, |timeout| expiry(timeout, now));
        if until != seen.expiry {
            self.add(address as u64, seen.port, until, list);
        }
        until
    }

    fn leasable(
        &self,
        from: u64,
        most: usize,
        now: u64,
        each: &mut dyn FnMut(Leasable),
    ) -> Option<u64> {
        let (all, next) = self.ports.part(from, most);
        for (address, seen) in all {
            let Some(number) = self.ports.number_of(address) else { continue };
            let list = self.ports.entry(number).map(|(_, list, _)| self.timeouts[list]);
            if seen.expiry > now && list == Some(Some(self.timeout)) {
                let keys = smallvec![smallvec![address]];
                let prolonged = (expiry(self.timeout, now), 0);
                each(Leasable { number, keys, expiry: seen.expiry, prolonged });
            }
        }
        next
    }

    fn watch(&mut self, log: &Rc<FlowLog>, table: u16) {
        self.watchers.add(log, table);
    }
}
