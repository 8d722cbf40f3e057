//! The host table as programs look hosts and stand-ins up in it.

use std::rc::Rc;

use smallvec::smallvec;

use super::{HostTable, Sender, state};
use crate::flow_access::{BURST, Column, FlowAccess, FlowLog, FoundFlow, FoundFlows, lanes_of};

impl HostTable {
    /// The binding that a number leads to, which is a host's address or a stand-in, and what it yields.
    fn binding(&self, key: u128, now: u64) -> Option<(u32, u128, u8)> {
        // No host has an address that is as small.
        let of_stand_in = u32::try_from(key).is_ok();
        let host = if of_stand_in { *self.stand_ins.get(key)? } else { key };
        let number = self.hosts.number_of(host)?;
        let (host, binding) = self.living(number, now)?;
        let value = if of_stand_in { host } else { binding.stand_in.into() };
        Some((number, value, binding.state))
    }
}

impl FlowAccess for HostTable {
    fn expire(&mut self, now: u64) {
        self.remove_expired(now);
    }

    fn count(&self) -> usize {
        self.hosts.len()
    }

    fn find(&self, key: &[u128], now: u64) -> Option<FoundFlow> {
        let &[key] = key else { return None };
        let (number, value, state) = self.binding(key, now)?;
        Some(FoundFlow {
            number,
            values: smallvec![value],
            common: smallvec![state.into()],
            expiry: self.expiry(number),
        })
    }

    fn key_columns(&self) -> &'static [u8] {
        &[4]
    }

    fn find_all(&self, key: &[&Column], lanes: u32, now: u64, found: &mut FoundFlows) {
        found.lanes &= !lanes;
        found.settled &= !lanes;
        let &[a, b, c, d] = key else { return };
        let mut keys = [0; BURST];
        for lane in lanes_of(lanes) {
            keys[lane] = [d, c, b, a].iter().fold(0, |n, word| n << 32 | u128::from(word[lane]));
            match u32::try_from(keys[lane]) {
                Ok(_) => self.stand_ins.prefetch_bucket(self.stand_ins.hash(keys[lane])),
                Err(_) => self.hosts.prefetch_bucket(self.hosts.hash(keys[lane])),
            }
        }
        for lane in lanes_of(lanes) {
            let Some((number, value, state)) = self.binding(keys[lane], now) else { continue };
            found.lanes |= 1 << lane;
            found.numbers[lane] = number;
            (found.expiries[lane], found.guarantees[lane]) = (0, 0);
            let from =
                if u32::try_from(keys[lane]).is_ok() { Sender::Server } else { Sender::Host };
            let (after, until) = self.after(state, from, now);
            if after == state {
                found.expiries[lane] = until;
                found.settled |= u32::from(until == self.expiry(number)) << lane;
            }
            for (column, word) in found.values.iter_mut().zip(0..4u32) {
                column[lane] = (value >> (32 * word)) as u32;
            }
            if let Some(column) = found.common.first_mut() {
                column[lane] = state.into();
            }
        }
    }

    fn update(&mut self, number: u32, common: &[u128], expiry: u64, _: u64, now: u64) -> bool {
        if self.living(number, now).is_none() {
            return false;
        }
        let state = common.first().map_or(state::NEW, |&state| state as u8);
        self.set(number, state, expiry)
    }

    fn expiry(&self, number: u32) -> u64 {
        self.hosts.entry(number).map_or(0, |(.., binding)| binding.expiry)
    }

    fn prefetch(&self, number: u32) {
        self.hosts.prefetch(number);
    }

    fn prefetch_changes(&self, _number: u32) {}

    fn prolong(&mut self, number: u32, now: u64) -> u64 {
        let Some((_, binding)) = self.living(number, now) else { return 0 };
        let until = self.expiry_after(binding.state, now);
        self.set(number, binding.state, until);
        until
    }

    fn watch(&mut self, log: &Rc<FlowLog>, table: u16) {
        self.watchers.add(log, table);
    }
}
