//! The neighbour cache as programs look addresses up in it.

use std::rc::Rc;

use smallvec::smallvec;

use super::Neighbours;
use crate::flow_access::{
    BURST, Column, FlowAccess, FlowLog, FoundFlow, FoundFlows, Leasable, lanes_of, set,
};

impl FlowAccess for Neighbours {
    /// Entries that are too old are removed when others are added.
    fn expire(&mut self, _now: u64) {}

    fn count(&self) -> usize {
        self.entries.len()
    }

    fn find(&self, key: &[u128], now: u64) -> Option<FoundFlow> {
        let &[address] = key else { return None };
        let number = self.entries.number_of(address)?;
        let (ether, live_at) = self.known(number, now)?;
        Some(FoundFlow {
            number,
            values: smallvec![ether.into()],
            common: smallvec![live_at.into()],
            expiry: self.last(live_at) + 1,
        })
    }

    /// Of addresses of 32 bits the other columns are 0.
    fn key_columns(&self) -> &'static [u8] {
        &[4]
    }

    fn find_all(&self, key: &[&Column], lanes: u32, now: u64, found: &mut FoundFlows) {
        found.lanes &= !lanes;
        found.settled &= !lanes;
        let &[a, b, c, d] = key else { return };
        let mut all = [(0, 0); BURST];
        let mut numbers = [None; BURST];
        // Each loop touches memory that the one before prefetched.
        for lane in lanes_of(lanes) {
            let address = [d, c, b, a].iter().fold(0, |n, word| n << 32 | u128::from(word[lane]));
            all[lane] = (address, self.entries.hash(address));
            self.entries.prefetch_bucket(all[lane].1);
        }
        for lane in lanes_of(lanes) {
            let (address, hash) = all[lane];
            numbers[lane] = self.entries.number(address, hash);
        }
        for lane in lanes_of(lanes) {
            let Some(number) = numbers[lane] else { continue };
            let Some((ether, live_at)) = self.known(number, now) else { continue };
            found.lanes |= 1 << lane;
            found.numbers[lane] = number;
            (found.expiries[lane], found.guarantees[lane]) = (0, 0);
            set(&mut found.values, 0, lane, ether);
            set(&mut found.common, 0, lane, live_at);
        }
    }

    /// Nobody declares such updates: answers are not flows' packets.
    fn update(&mut self, _: u32, _: &[u128], _: u64, _: u64, _: u64) -> bool {
        false
    }

    fn expiry(&self, number: u32) -> u64 {
        self.entries.entry(number).map_or(0, |(.., entry)| self.last(entry.live_at) + 1)
    }

    fn prefetch(&self, number: u32) {
        self.entries.prefetch(number);
    }

    fn prefetch_changes(&self, _number: u32) {}

    fn prolong(&mut self, number: u32, _now: u64) -> u64 {
        self.expiry(number)
    }

    fn leasable(
        &self,
        from: u64,
        most: usize,
        now: u64,
        each: &mut dyn FnMut(Leasable),
    ) -> Option<u64> {
        let (all, next) = self.entries.part(from, most);
        for (address, _) in all {
            let Some(number) = self.entries.number_of(address) else { continue };
            if self.known(number, now).is_some() {
                let (keys, expiry) = (smallvec![smallvec![address]], self.expiry(number));
                // Packets do not change it.
                each(Leasable { number, keys, expiry, prolonged: (expiry, 0) });
            }
        }
        next
    }

    fn watch(&mut self, log: &Rc<FlowLog>, table: u16) {
        self.watchers.add(log, table);
    }
}

impl Neighbours {
    /// The Ethernet address of an entry, and when it became known.
    #[inline]
    fn known(&self, number: u32, now: u64) -> Option<(u64, u64)> {
        let (.., entry) = self.entries.entry(number)?;
        let ether = entry.ether?;
        (now <= self.last(entry.live_at)).then_some((ether.to_bits(), entry.live_at))
    }
}
