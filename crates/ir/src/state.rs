//! Declared state and its reference semantics: counters, cells and flow tables, kept in the
//! simplest structures that can be right.

pub mod snapshot;

use std::collections::{BTreeMap, HashMap};

use crate::model::{StateDecl, StateKind};

/// The value of one piece of state.
#[derive(Clone, Debug, PartialEq)]
pub enum StateValue {
    /// Packets and bytes.
    Counter {
        /// Packets counted.
        packets: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// Numbers.
    Cells(Vec<u128>),
    /// A flow table.
    Flows(Flows),
}

impl StateValue {
    /// The value that state of this kind starts with.
    pub fn initial(kind: &StateKind) -> Self {
        match kind {
            StateKind::Counter => StateValue::Counter { packets: 0, bytes: 0 },
            StateKind::Cells { initial, .. } => StateValue::Cells(initial.clone()),
            StateKind::Flows { capacity, .. } => StateValue::Flows(Flows::new(*capacity)),
        }
    }
}

/// A flow: two keys that lead to it, what each yields, and what both share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Keys of the forward and the reverse direction.
    pub keys: [Vec<u128>; 2],
    /// What lookups of each direction yield.
    pub values: [Vec<u128>; 2],
    /// Cells that both directions share.
    pub common: Vec<u128>,
    /// When it expires, in nanoseconds of the worker's clock.
    pub expiry: u64,
    /// Until when it may not be evicted for another flow.
    pub guarantee: u64,
}

/// A bidirectional flow table.
///
/// A flow whose expiry has come is as good as gone: no lookup finds it, it takes no room, and
/// two tables that differ only in such flows are equal. Flows have an order: a flow comes last
/// when it is added, and again whenever its expiry or its guarantee changes. Of flows that expire
/// at the same time the one that is first in this order is evicted first.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    capacity: u64,
    next: u64,
    /// The latest time that the table has heard of.
    clock: u64,
    /// No flow expires before.
    earliest: u64,
    /// By their place in the order.
    flows: BTreeMap<u64, Flow>,
    /// Place and direction (0 forward, 1 reverse) of each key.
    index: HashMap<Vec<u128>, (u64, usize)>,
}

impl PartialEq for Flows {
    /// Same capacity and same flows, in whatever order, at the later of the two tables' times.
    fn eq(&self, other: &Self) -> bool {
        let clock = self.clock.max(other.clock);
        let living = |flows: &Flows| {
            let mut all: Vec<Flow> =
                flows.flows.values().filter(|f| f.expiry > clock).cloned().collect();
            all.sort_by(|a, b| a.keys.cmp(&b.keys));
            all
        };
        self.capacity == other.capacity && living(self) == living(other)
    }
}

impl Flows {
    /// An empty table for so many flows.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// How many flows it may hold.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Makes room for this many flows; of those for which there is none, those with a guarantee stay, then the last to
    /// expire.
    pub fn resize(&mut self, capacity: u64) {
        self.capacity = capacity;
        let excess = (self.flows.len() as u64).saturating_sub(capacity);
        if excess > 0 {
            let guaranteed = |flow: &Flow| flow.guarantee > self.clock;
            let mut order: Vec<(bool, u64, u64)> =
                self.flows.iter().map(|(&place, f)| (guaranteed(f), f.expiry, place)).collect();
            order.sort_unstable();
            for (.., place) in order.into_iter().take(excess as usize) {
                self.remove(place);
            }
        }
    }

    /// The flows in their order, those that expired but were not removed yet included.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values()
    }

    /// Number of flows, those that expired but were not removed yet included.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The latest time, in nanoseconds, that the table was asked or changed at.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The flow of a key and the direction (0 forward, 1 reverse) that the key is of.
    pub fn find(&self, key: &[u128], now: u64) -> Option<(&Flow, usize)> {
        let &(place, side) = self.index.get(key)?;
        self.flows.get(&place).filter(|flow| flow.expiry > now).map(|flow| (flow, side))
    }

    /// Changes the flow of a key as [`crate::model::Op::FlowUpdate`] says.
    pub fn update(
        &mut self,
        key: &[u128],
        common: Vec<u128>,
        expiry: u64,
        guarantee: u64,
        now: u64,
    ) {
        self.clock = self.clock.max(now);
        let Some(&(place, _)) = self.index.get(key) else { return };
        let Some(flow) = self.flows.get_mut(&place).filter(|flow| flow.expiry > now) else {
            return;
        };
        flow.common = common;
        self.earliest = self.earliest.min(expiry);
        if (flow.expiry, flow.guarantee) != (expiry, guarantee) {
            (flow.expiry, flow.guarantee) = (expiry, guarantee);
            let flow = self.flows.remove(&place);
            let to = self.next;
            self.next += 1;
            for key in flow.iter().flat_map(|f| &f.keys) {
                if let Some((owner, _)) = self.index.get_mut(key) {
                    *owner = to;
                }
            }
            self.flows.extend(flow.map(|f| (to, f)));
        }
    }

    fn remove(&mut self, place: u64) {
        if let Some(flow) = self.flows.remove(&place) {
            for key in &flow.keys {
                self.index.remove(key);
            }
        }
    }

    /// Removes every flow whose expiry has come.
    pub fn expire(&mut self, now: u64) {
        self.clock = self.clock.max(now);
        if now < self.earliest {
            return;
        }
        let expired: Vec<u64> =
            self.flows.iter().filter(|(_, f)| f.expiry <= now).map(|(&id, _)| id).collect();
        expired.into_iter().for_each(|id| self.remove(id));
        self.earliest = self.flows.values().map(|f| f.expiry).min().unwrap_or(u64::MAX);
    }

    /// Adds a flow as [`crate::model::Op::FlowInsert`] says; `false` if there is no room for it.
    ///
    /// First, flows under either of its keys are removed, then those whose expiry has come. If
    /// the table is full nevertheless, the first to expire of the flows whose guarantee is over
    /// makes room, unless the new flow has no guarantee and expires earlier still.
    pub fn insert(&mut self, flow: Flow, now: u64) -> bool {
        for key in &flow.keys {
            if let Some(&(place, _)) = self.index.get(key) {
                self.remove(place);
            }
        }
        self.expire(now);
        if self.flows.len() as u64 >= self.capacity {
            let candidates = self.flows.iter().filter(|(_, f)| f.guarantee <= now);
            let first = candidates.min_by_key(|(place, f)| (f.expiry, **place));
            match first.map(|(&place, first)| (place, first.expiry)) {
                Some((place, expiry)) if flow.guarantee > now || flow.expiry >= expiry => {
                    self.remove(place);
                }
                _ => return false,
            }
        }
        let place = self.next;
        self.next += 1;
        // If both keys are the same, later packets are of the reverse direction, as in Click.
        for (side, key) in flow.keys.iter().enumerate() {
            self.index.insert(key.clone(), (place, side));
        }
        self.earliest = self.earliest.min(flow.expiry);
        self.flows.insert(place, flow);
        true
    }
}

/// The state of all elements of a chain, by owner and name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    values: BTreeMap<(String, String), StateValue>,
}

impl Store {
    /// No state yet; a piece comes to be with its initial value when it is first asked for.
    pub fn new() -> Self {
        Self::default()
    }

    /// The state that `element` means by a declaration.
    pub fn entry(&mut self, element: &str, declared: &StateDecl) -> &mut StateValue {
        let owner = declared.owner.as_deref().unwrap_or(element);
        self.values
            .entry((owner.to_string(), declared.name.to_string()))
            .or_insert_with(|| StateValue::initial(&declared.kind))
    }

    /// The named state of an element, if there is any.
    pub fn get(&self, element: &str, name: &str) -> Option<&StateValue> {
        self.values.get(&(element.to_string(), name.to_string()))
    }

    /// Sets the named state of an element.
    pub fn set(&mut self, element: &str, name: &str, value: StateValue) {
        self.values.insert((element.to_string(), name.to_string()), value);
    }

    /// Cells of an element, or an empty slice.
    pub fn cells(&self, element: &str, name: &str) -> &[u128] {
        match self.get(element, name) {
            Some(StateValue::Cells(cells)) => cells,
            _ => &[],
        }
    }

    /// Packets and bytes of a counter of an element, or zeros.
    pub fn counter(&self, element: &str, name: &str) -> (u64, u64) {
        match self.get(element, name) {
            Some(&StateValue::Counter { packets, bytes }) => (packets, bytes),
            _ => (0, 0),
        }
    }

    /// The named state of an element, if there is any, to change it.
    pub fn get_mut(&mut self, element: &str, name: &str) -> Option<&mut StateValue> {
        self.values.get_mut(&(element.to_string(), name.to_string()))
    }

    /// Keeps the state for which `keep`, given owner and name, says so, and forgets the rest.
    pub fn retain(&mut self, keep: impl Fn(&str, &str) -> bool) {
        self.values.retain(|(owner, name), _| keep(owner, name));
    }

    /// All state: owner, name, value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &StateValue)> {
        self.values.iter().map(|((owner, name), value)| (owner.as_str(), name.as_str(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(forward: u128, reverse: u128, expiry: u64, guarantee: u64) -> Flow {
        Flow {
            keys: [vec![forward], vec![reverse]],
            values: [vec![1], vec![2]],
            common: vec![0],
            expiry,
            guarantee,
        }
    }

    #[test]
    fn both_directions_find_the_flow_until_it_expires() {
        let mut flows = Flows::new(4);
        assert!(flows.insert(flow(1, 101, 10, 0), 0));
        assert_eq!(flows.find(&[1], 9).map(|f| f.1), Some(0));
        assert_eq!(flows.find(&[101], 9).map(|f| f.1), Some(1));
        assert_eq!(flows.find(&[1], 10), None);
    }

    #[test]
    fn a_full_table_evicts_by_expiry_but_honours_guarantees() {
        let mut flows = Flows::new(2);
        assert!(flows.insert(flow(1, 101, 50, 5), 0));
        assert!(flows.insert(flow(2, 102, 40, 5), 0));
        assert!(!flows.insert(flow(3, 103, 60, 5), 0));
        assert!(flows.insert(flow(3, 103, 60, 5), 5));
        assert!(flows.find(&[2], 5).is_none() && flows.find(&[1], 5).is_some());
    }

    #[test]
    fn a_flow_without_guarantee_does_not_displace_one_that_lives_longer() {
        let mut flows = Flows::new(1);
        assert!(flows.insert(flow(1, 101, 50, 0), 1));
        assert!(!flows.insert(flow(2, 102, 49, 0), 1));
        assert!(flows.insert(flow(2, 102, 50, 0), 1));
        assert!(flows.find(&[1], 1).is_none());
        assert!(!Flows::new(0).insert(flow(1, 101, 50, 5), 1));
    }

    #[test]
    fn of_flows_that_expire_together_the_one_touched_last_stays() {
        let mut flows = Flows::new(2);
        assert!(flows.insert(flow(1, 101, 40, 0), 1));
        assert!(flows.insert(flow(2, 102, 50, 0), 1));
        flows.update(&[101], vec![7], 50, 0, 2);
        assert!(flows.insert(flow(3, 103, 60, 0), 3));
        assert_eq!(flows.find(&[1], 3).map(|(f, _)| f.common.clone()), Some(vec![7]));
        assert!(flows.find(&[2], 3).is_none());
    }

    #[test]
    fn expired_flows_do_not_count() {
        let (mut a, mut b) = (Flows::new(2), Flows::new(2));
        assert!(a.insert(flow(1, 101, 10, 0), 1) && a != b);
        b.expire(10);
        assert_eq!(a, b);
    }

    #[test]
    fn a_colliding_reverse_key_evicts_the_older_flow() {
        let mut flows = Flows::new(4);
        assert!(flows.insert(flow(1, 100, 50, 5), 0));
        assert!(flows.insert(flow(2, 100, 50, 5), 0));
        assert_eq!(flows.len(), 1);
        assert!(flows.find(&[1], 0).is_none());
    }
}
