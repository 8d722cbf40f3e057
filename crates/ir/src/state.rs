//! Declared state and its reference semantics: counters, cells and flow tables, kept in the
//! simplest structures that can be right.

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
            StateKind::Flows { capacity } => StateValue::Flows(Flows::new(*capacity)),
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

/// A bidirectional flow table. A flow whose expiry has come is as good as gone: no lookup finds
/// it, and it is the first to make room.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    capacity: u64,
    next: u64,
    flows: BTreeMap<u64, Flow>,
    index: HashMap<Vec<u128>, (u64, usize)>,
}

impl PartialEq for Flows {
    /// Same flows, in whatever order they were added.
    fn eq(&self, other: &Self) -> bool {
        let sorted = |f: &Flows| {
            let mut all: Vec<Flow> = f.flows.values().cloned().collect();
            all.sort_by(|a, b| a.keys.cmp(&b.keys));
            all
        };
        self.capacity == other.capacity && sorted(self) == sorted(other)
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

    /// The flows, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.flows.values()
    }

    /// Number of flows, expired ones that were not yet removed included.
    pub fn len(&self) -> usize {
        self.flows.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.flows.is_empty()
    }

    /// The flow of a key and the direction (0 forward, 1 reverse) that the key is of.
    pub fn find(&self, key: &[u128], now: u64) -> Option<(&Flow, usize)> {
        let &(id, side) = self.index.get(key)?;
        Some((&self.flows[&id], side)).filter(|(flow, _)| flow.expiry > now)
    }

    /// Like [`Flows::find`], to change; keys must not be changed.
    pub fn find_mut(&mut self, key: &[u128], now: u64) -> Option<(&mut Flow, usize)> {
        let &(id, side) = self.index.get(key)?;
        let flow = self.flows.get_mut(&id)?;
        (flow.expiry > now).then_some((flow, side))
    }

    fn remove(&mut self, id: u64) {
        if let Some(flow) = self.flows.remove(&id) {
            for key in &flow.keys {
                if self.index.get(key).is_some_and(|&(owner, _)| owner == id) {
                    self.index.remove(key);
                }
            }
        }
    }

    /// Removes every flow whose expiry has come.
    pub fn expire(&mut self, now: u64) {
        let expired: Vec<u64> =
            self.flows.iter().filter(|(_, f)| f.expiry <= now).map(|(&id, _)| id).collect();
        expired.into_iter().for_each(|id| self.remove(id));
    }

    /// Adds a flow as [`crate::model::Op::FlowInsert`] says; `false` if there is no room for it.
    pub fn insert(&mut self, flow: Flow, now: u64) -> bool {
        for key in &flow.keys {
            if let Some(&(id, _)) = self.index.get(key) {
                self.remove(id);
            }
        }
        if self.flows.len() as u64 >= self.capacity {
            self.expire(now);
        }
        if self.flows.len() as u64 >= self.capacity {
            let evicted = self
                .flows
                .iter()
                .filter(|(_, f)| f.guarantee <= now)
                .min_by_key(|(id, f)| (f.expiry, **id))
                .map(|(&id, _)| id);
            match evicted {
                Some(id) => self.remove(id),
                None => return false,
            }
        }
        let id = self.next;
        self.next += 1;
        for (side, key) in flow.keys.iter().enumerate() {
            self.index.insert(key.clone(), (id, side));
        }
        self.flows.insert(id, flow);
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
    fn a_colliding_reverse_key_evicts_the_older_flow() {
        let mut flows = Flows::new(4);
        assert!(flows.insert(flow(1, 100, 50, 5), 0));
        assert!(flows.insert(flow(2, 100, 50, 5), 0));
        assert_eq!(flows.len(), 1);
        assert!(flows.find(&[1], 0).is_none());
    }
}
