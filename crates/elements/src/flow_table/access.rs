//! The flow table as programs look flows up in it.

use std::rc::Rc;

use smallvec::smallvec;

use super::{FlowTable, Hashed, Key};
use crate::flow_access::{
    BURST, COMMON, Column, FlowAccess, FlowLog, FoundFlow, FoundFlows, GroupOf, Leasable, VALUES,
    lanes_of,
};

impl FlowAccess for FlowTable {
    fn expire(&mut self, now: u64) {
        FlowTable::expire(self, now);
    }

    fn count(&self) -> usize {
        self.len()
    }

    fn find(&self, key: &[u128], now: u64) -> Option<FoundFlow> {
        let (number, side) = self.lookup(&Key::from_numbers(key)?, now)?;
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
        &[1; 5]
    }

    #[inline(never)]
    fn find_all(&self, key: &[&Column], mut lanes: u32, now: u64, found: &mut FoundFlows) {
        found.lanes &= !lanes;
        found.settled &= !lanes;
        let &[map, src, src_port, dst, dst_port] = key else { return };
        let (Some(values), Some(shared)) =
            (found.values.first_chunk_mut::<VALUES>(), found.common.first_chunk_mut::<COMMON>())
        else {
            return;
        };
        for lane in 0..BURST {
            // No flow has a key with numbers as great as that.
            let fits = (map[lane] | src_port[lane] | dst_port[lane]) >> 16 == 0;
            lanes &= !(u32::from(!fits) << lane);
        }
        let mut all = [Hashed::default(); BURST];
        let mut guesses = [None; BURST];
        // Each loop touches memory that the one before prefetched.
        for lane in lanes_of(lanes) {
            let ports = (src_port[lane] as u16, dst_port[lane] as u16);
            let key = Key::new(map[lane] as u16, src[lane], ports.0, dst[lane], ports.1);
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
            let numbers = [
                to.src(),
                to.src_port().into(),
                to.dst(),
                to.dst_port().into(),
                flow.output(side).into(),
                side as u32,
            ];
            for (column, value) in values.iter_mut().zip(numbers) {
                column[lane] = value;
            }
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
        FlowTable::update(self, number, common, (expiry, guarantee), now)
    }

    fn expiry(&self, number: u32) -> u64 {
        self.flow(number).expiry()
    }

    fn prefetch(&self, number: u32) {
        FlowTable::prefetch(self, number);
    }

    fn prefetch_changes(&self, number: u32) {
        FlowTable::prefetch_changes(self, number);
    }

    fn prolong(&mut self, number: u32, now: u64) -> u64 {
        FlowTable::prolong(self, number, now)
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
