//! The flow table as programs look flows up in it.

use std::rc::Rc;

use smallvec::smallvec;

use super::{Addresses, FlowKey, HashedKey, Table};
use crate::flow_access::{
    BURST, COMMON, Column, FlowAccess, FlowLog, FoundFlow, FoundFlows, GroupOf, Leasable, columns,
    lanes_of,
};

impl<A: Addresses> FlowAccess for Table<A> {
    fn expire(&mut self, now: u64) {
        Table::expire(self, now);
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn find(&self, key: &[u128], now: u64) -> Option<FoundFlow> {
        let (number, side) = self.lookup(&FlowKey::from_numbers(key)?, now)?;
        let flow = self.flow(number);
        let to = flow.rewritten(side);
        Some(FoundFlow {
            number,
            values: smallvec![
                to.src().into(),
                to.src_port().into(),
                to.dst().into(),
                to.dst_port().into(),
                flow.output(side).into(),
                side as u128,
            ],
            common: smallvec![
                flow.state.into(),
                flow.input.into(),
                flow.protocol.into(),
                flow.annotation.into(),
            ],
            expiry: flow.expiry(),
        })
    }

    fn regroup(&mut self, group_of: &mut GroupOf<'_>) -> usize {
        self.set_groups(|flow| {
            let tuples = [0, 1].map(|side| flow.key(side).tuple());
            // Whoever has keys with other maps than protocols does this itself.
            group_of(Some((tuples, flow.key(0).map as u8)))
        })
    }

    fn key_columns(&self) -> &'static [u8] {
        &A::COLUMNS
    }

    #[inline(never)]
    fn find_all(&self, key: &[&Column], mut lanes: u32, now: u64, found: &mut FoundFlows) {
        found.lanes &= !lanes;
        found.settled &= !lanes;
        let words = usize::from(columns(A::WIDTH));
        let (dst_at, output_at) = (1 + words, 2 * (1 + words));
        let (Some((&map, rest)), Some(shared)) =
            (key.split_first(), found.common.first_chunk_mut::<COMMON>())
        else {
            return;
        };
        let (Some(src), Some(&src_port), Some(dst), Some(&dst_port)) = (
            rest.get(..words),
            rest.get(words),
            rest.get(dst_at..dst_at + words),
            rest.get(dst_at + words),
        ) else {
            return;
        };
        let Some(values) = found.values.get_mut(..output_at + 2) else { return };
        for lane in 0..BURST {
            // No flow has a key with numbers as great as that.
            let fits = (map[lane] | src_port[lane] | dst_port[lane]) >> 16 == 0;
            lanes &= !(u32::from(!fits) << lane);
        }
        let mut all = [HashedKey::default(); BURST];
        let mut guesses = [None; BURST];
        // Each loop touches memory that the one before prefetched.
        for lane in lanes_of(lanes) {
            let ports = (src_port[lane] as u16, dst_port[lane] as u16);
            let (Some(src), Some(dst)) = (A::read(src, lane), A::read(dst, lane)) else { return };
            let key = FlowKey::<A>::new(map[lane] as u16, src, ports.0, dst, ports.1);
            all[lane] = self.hashed(key);
            self.prefetch_bucket(&all[lane]);
        }
        for lane in lanes_of(lanes) {
            guesses[lane] = self.prefetch_entry(&all[lane]);
        }
        for lane in lanes_of(lanes) {
            let guessed = guesses[lane].and_then(|guess| self.is(guess, &all[lane]));
            let holder = guessed.or_else(|| self.holder(&all[lane]));
            let Some((number, side)) = holder else { continue };
            let flow = self.flow(number);
            if flow.expiry() <= now {
                continue;
            }
            let (expiry, guarantee) = self.lasts_until(flow, now).unwrap_or_default();
            found.settled |= u32::from(expiry == flow.expiry()) << lane;
            found.lanes |= 1 << lane;
            found.numbers[lane] = number;
            (found.expiries[lane], found.guarantees[lane]) = (expiry, guarantee);
            let to = flow.rewritten(side);
            A::write(to.src(), values, 0, lane);
            values[words][lane] = to.src_port().into();
            A::write(to.dst(), values, dst_at, lane);
            values[dst_at + words][lane] = to.dst_port().into();
            values[output_at][lane] = flow.output(side).into();
            values[output_at + 1][lane] = side as u32;
            let common: [u32; COMMON] = [
                flow.state.into(),
                flow.input.into(),
                flow.protocol.into(),
                flow.annotation.into(),
            ];
            for (column, value) in shared.iter_mut().zip(common) {
                column[lane] = value;
            }
        }
    }
    fn update(
        &mut self,
        number: u32,
        common: &[u128],
        expiry: u64,
        guarantee: u64,
        now: u64,
    ) -> bool {
        Table::update(self, number, common, (expiry, guarantee), now)
    }

    fn expiry(&self, number: u32) -> u64 {
        self.flow(number).expiry()
    }

    fn prefetch(&self, number: u32) {
        Table::prefetch(self, number);
    }

    fn prefetch_changes(&self, number: u32) {
        Table::prefetch_changes(self, number);
    }

    fn prolong(&mut self, number: u32, now: u64) -> u64 {
        Table::prolong(self, number, now)
    }

    fn leasable(
        &self,
        from: u64,
        most: usize,
        now: u64,
        each: &mut dyn FnMut(Leasable),
    ) -> Option<u64> {
        let (from, room) = (u32::try_from(from).unwrap_or(u32::MAX), self.room());
        let end = room.min(from.saturating_add(most as u32));
        for number in from..end {
            let flow = self.flow(number);
            let expiry = flow.expiry();
            if expiry > now
                && let Some(prolonged) = self.lasts_until(flow, now)
            {
                let keys = flow.sides().map(|side| flow.key(side).numbers().into_iter().collect());
                each(Leasable { number, keys: keys.collect(), expiry, prolonged });
            }
        }
        (end < room).then_some(end.into())
    }

    fn watch(&mut self, log: &Rc<FlowLog>, table: u16) {
        self.watchers.add(log, table);
    }
}
