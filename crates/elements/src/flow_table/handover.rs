//! Flows that go from one table to another: to that of the chain that comes next, or of another worker.

use net::flow::FlowHash;

use super::destinations::Destinations;
use super::index::Index;
use super::slab::{NONE, Slab};
use super::taken::Taken;
use super::{ALL, Addresses, Class, Entries, Era, FlowOf, LONGEST_TICK, Table};

/// Flows, for each that another worker's table gives, that are passed over at the most to find its
/// place; beyond, it lives a little longer.
const MOST_STEPS: usize = 32;

/// All of a [`FlowTable`] but who watches it: what can go to another thread.
pub(crate) struct HandedOver<A = u64> {
    hash: FlowHash,
    clock: u64,
    /// See [`FlowTable::tick`].
    pub(crate) tick: u64,
    stamp: u32,
    flows: Slab<FlowOf<A>>,
    index: Index,
    classes: Vec<Class>,
    taken: Taken,
    counted: u32,
    changed: Option<u64>,
    groups: Vec<u16>,
}

/// The flows of a group of traffic classes, in the order in which they were touched.
pub(crate) struct GroupFlows<A = u64> {
    group: u16,
    pub(super) flows: Vec<FlowOf<A>>,
}

impl<A: Addresses> Table<A> {
    /// Gives away all flows as they stand; the table is empty then.
    pub(crate) fn hand_over(&mut self) -> HandedOver<A> {
        self.watchers.changed_all();
        self.tell_all(|follower, flow| follower.removed(flow));
        let mut classes: Vec<Class> = self.classes.iter().map(Class::emptied).collect();
        std::mem::swap(&mut classes, &mut self.classes);
        self.destinations = self.destinations.take().map(|_| Destinations::default());
        let taken = std::mem::replace(&mut self.taken, Taken::new(self.hash.clone(), self.sizes));
        HandedOver {
            hash: self.hash.clone(),
            clock: self.clock,
            tick: self.tick,
            stamp: self.stamp,
            flows: std::mem::replace(&mut self.flows, Slab::new()),
            index: std::mem::replace(&mut self.index, Index::new()),
            classes,
            taken,
            counted: std::mem::replace(&mut self.counted, ALL),
            changed: self.changed.take(),
            groups: std::mem::take(&mut self.groups),
        }
    }

    /// Takes the flows of another table as they are. The classes are that one's then: those that flows are to have
    /// must be asked for again. Flows that there is no room for are removed by [`FlowTable::expire`].
    pub(crate) fn take_over(&mut self, from: HandedOver<A>) {
        self.watchers.changed_all();
        self.tell_all(|follower, flow| follower.removed(flow));
        let pools = self.taken.pools().to_vec();
        let HandedOver {
            hash,
            clock,
            tick: _,
            stamp,
            flows,
            index,
            classes,
            taken,
            counted,
            changed,
            groups,
        } = from;
        *self = Self {
            hash,
            capacity: self.capacity,
            clock,
            tick: LONGEST_TICK,
            made: 0,
            stamp,
            flows,
            index,
            classes,
            taken,
            counted,
            changed,
            groups,
            destinations: self.destinations.take(),
            followers: std::mem::take(&mut self.followers),
            watchers: std::mem::take(&mut self.watchers),
            sizes: self.sizes,
        };
        if self.destinations.is_some() {
            self.count_destinations();
        }
        self.tell_all(|follower, flow| follower.added(flow));
        if self.taken.pools() != pools {
            self.taken = Taken::new(self.hash.clone(), self.sizes);
            pools.into_iter().for_each(|pool| self.watch(pool));
        }
    }

    /// Forgets the classes: flows have other timeouts from now on. Those that are there have them once a packet of
    /// theirs comes, or [`FlowTable::regroup`] looks at them.
    pub(crate) fn change_timeouts(&mut self) {
        self.classes.iter_mut().for_each(|class| class.era = Era::Before);
        self.changed = Some(self.clock);
    }

    /// Whether flows are left that were not looked at since timeouts changed.
    #[inline]
    pub(crate) fn is_mixed(&self) -> bool {
        self.changed.is_some()
    }

    /// Looks at some of the flows that had no packet since timeouts changed, those first that expire first:
    /// they do not live longer than they would had they come when that was. `class_of` gives a flow's class.
    #[cold]
    pub(crate) fn regroup(&mut self, class_of: impl Fn(&FlowOf<A>) -> Option<u16>) {
        let Some(changed) = self.changed else { return };
        for _ in 0..self.sizes.looked_at {
            let before = self.classes.iter().filter(|c| c.era == Era::Before && c.head != NONE);
            let first = before.map(|c| c.head).min_by_key(|&head| {
                let flow = self.flows.get(head);
                (flow.expiry, std::cmp::Reverse(self.age(flow)))
            });
            let Some(first) = first else {
                self.changed = None;
                return;
            };
            let Some(class) = class_of(self.flows.get(first)) else {
                self.remove(first);
                continue;
            };
            let Class { timeout, guarantee, .. } = self.classes[usize::from(class)];
            let latest = self.tick_end(changed).saturating_add(timeout);
            // Those of `class` have had packets since, and none expires before `latest`.
            let held = self.list(Era::Held(class), timeout, guarantee);
            let flow = *self.flows.get(first);
            self.unlink(&flow);
            self.link_last(first, held, flow.expiry.min(latest));
        }
    }

    /// Removes the flows that are not to be kept. All are looked at, at once.
    pub(crate) fn retain(&mut self, keep: impl Fn(&FlowOf<A>) -> bool) {
        for number in 0..self.flows.room() as u32 {
            let flow = self.flows.get(number);
            if flow.expiry != 0 && !keep(flow) {
                self.remove(number);
            }
        }
    }

    /// Changes the numbers that are the upper bytes of keys' maps; flows with one that there is none for any more
    /// are removed. All are looked up anew, at once.
    pub(crate) fn renumber(&mut self, number_of: impl Fn(u8) -> Option<u8>) {
        let map = |map: u16| Some(u16::from(number_of((map >> 8) as u8)?) << 8 | map & 0xff);
        self.retain(|flow| flow.sides.iter().all(|side| map(side.map).is_some()));
        self.index = Index::new();
        self.taken.clear();
        self.counted = 0;
        for number in 0..self.flows.room() as u32 {
            let flow = self.flows.get_mut(number);
            if flow.expiry == 0 {
                continue;
            }
            flow.sides.iter_mut().for_each(|side| side.map = map(side.map).unwrap_or(side.map));
            let flow = *flow;
            let hashes = flow.hashes(&self.hash);
            for side in flow.sides() {
                let entries = Entries { flows: &self.flows, hash: &self.hash };
                self.index.insert(hashes[side], number << 1 | side as u32, &entries);
            }
        }
    }

    /// Says which group of traffic classes a flow is of.
    #[inline]
    pub(crate) fn set_group(&mut self, number: u32, group: u16) {
        let at = number as usize;
        if at >= self.groups.len() {
            if group == 0 {
                return;
            }
            self.groups.resize(at + 1, 0);
        }
        self.groups[at] = group;
    }

    /// Puts all flows into the groups that they are said to be of, and removes those that are of none: how many.
    pub(crate) fn set_groups(
        &mut self,
        mut group_of: impl FnMut(&FlowOf<A>) -> Option<u16>,
    ) -> usize {
        let before = self.len();
        for number in 0..self.flows.room() as u32 {
            let flow = *self.flows.get(number);
            match (flow.expiry != 0).then(|| group_of(&flow)) {
                Some(Some(group)) => self.set_group(number, group),
                Some(None) => self.remove(number),
                None => {}
            }
        }
        before - self.len()
    }

    /// The group of traffic classes that a flow is of.
    pub(crate) fn group(&self, number: u32) -> u16 {
        self.groups.get(number as usize).copied().unwrap_or(0)
    }

    /// Gives away the flows of a group of traffic classes.
    pub(crate) fn export_group(&mut self, group: u16) -> GroupFlows<A> {
        let numbers = self.in_order().into_iter().map(|(number, _)| number);
        let numbers: Vec<u32> = numbers.filter(|&number| self.group(number) == group).collect();
        let flows = numbers.iter().map(|&number| *self.flows.get(number)).collect();
        numbers.into_iter().for_each(|number| self.remove(number));
        GroupFlows { group, flows }
    }

    /// Takes in flows of another worker's table, in the order in which they were touched there. They
    /// expire when they would have there. `class_of` gives a flow's class.
    pub(crate) fn import_group(
        &mut self,
        GroupFlows { group, flows }: GroupFlows<A>,
        now: u64,
        class_of: impl Fn(&FlowOf<A>) -> Option<u16>,
    ) {
        for flow in &flows {
            if let Some(class) = class_of(flow)
                && let Some(number) = self.insert(*flow, class, now)
            {
                self.set_group(number, group);
            }
        }
        // They are the last of their classes now. Where the last to expire among them belongs the
        // others come before.
        let mut places: Vec<Option<u32>> = vec![None; self.classes.len()];
        let mut steps = MOST_STEPS * (flows.len() + MOST_STEPS);
        for flow in flows.iter().rev() {
            let Some((number, _)) = self.holder(&self.hashed(flow.key(0))) else { continue };
            let added = *self.flows.get(number);
            let class = usize::from(added.class);
            self.unlink(&added);
            let mut at = places[class].unwrap_or(self.classes[class].tail);
            while at != NONE && self.flows.get(at).expiry > flow.expiry && steps > 0 {
                at = self.flows.get(at).previous;
                steps -= 1;
            }
            self.link_behind(at, number, flow.expiry);
            places[class] = Some(number);
        }
    }

    /// Puts a flow that is in no list into that of its class, behind another one or first; it
    /// expires then, but not before the other one.
    fn link_behind(&mut self, previous: u32, number: u32, expiry: u64) {
        let class = usize::from(self.flows.get(number).class);
        let (next, expiry) = match previous {
            NONE => (std::mem::replace(&mut self.classes[class].head, number), expiry),
            _ => {
                let previous = self.flows.get_mut(previous);
                (std::mem::replace(&mut previous.next, number), expiry.max(previous.expiry))
            }
        };
        match next {
            NONE => self.classes[class].tail = number,
            _ => self.flows.get_mut(next).previous = number,
        }
        self.classes[class].earliest = self.classes[class].earliest.min(expiry);
        let flow = self.flows.get_mut(number);
        (flow.previous, flow.next) = (previous, next);
        flow.expiry = expiry.min(flow.expiry);
    }
}
