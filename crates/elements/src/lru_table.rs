//! LRU table: values under keys, of 128 bits by default, in lists from the oldest to the newest.
//!
//! Finding, adding, moving and removing a value cost the same however many there are, the first
//! and the last of a list are at hand, and growing moves a few entries at a time.

use std::hash::{BuildHasher, Hasher};

use net::flow::FlowHash;

use crate::flow_table::index::Index;
use crate::flow_table::slab::{Linked, NONE, Slab};

/// What values are found by.
pub(crate) trait LruKey: Copy + Eq {
    /// Of a place that holds nothing; it may be a key, too.
    const UNUSED: Self;

    fn hash(&self, hash: &FlowHash) -> u64;
}

impl LruKey for u128 {
    const UNUSED: Self = 0;

    #[inline]
    fn hash(&self, hash: &FlowHash) -> u64 {
        hash.two((self >> 64) as u64, *self as u64)
    }
}

/// See the module. Lists have numbers, the first of which is 0.
pub(crate) struct LruTable<V, K = u128> {
    /// Keyed with a secret, as keys come from packets.
    hash: FlowHash,
    nodes: Slab<Node<V, K>>,
    index: Index,
    lists: Vec<List>,
}

#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    len: usize,
}

const EMPTY: List = List { head: NONE, tail: NONE, len: 0 };

struct Node<V, K> {
    key: K,
    list: u32,
    previous: u32,
    next: u32,
    value: Option<V>,
}

impl<V, K: LruKey> Linked for Node<V, K> {
    const UNUSED: Self = Self { key: K::UNUSED, list: 0, previous: NONE, next: NONE, value: None };

    fn link(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl<V, K: LruKey> Default for LruTable<V, K> {
    /// An empty table, with a seed that nobody knows.
    fn default() -> Self {
        let seed = std::hash::RandomState::new().build_hasher().finish();
        let (hash, nodes, index) = (FlowHash::new(seed), Slab::new(), Index::new());
        Self { hash, nodes, index, lists: Vec::new() }
    }
}

impl<V, K: LruKey> LruTable<V, K> {
    /// Number of values in all lists.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Number of values in a list.
    pub(crate) fn list_len(&self, list: usize) -> usize {
        self.lists.get(list).map_or(0, |list| list.len)
    }

    #[inline]
    fn find(&self, key: K) -> Option<u32> {
        self.index.find(key.hash(&self.hash), |number| self.nodes.get(number).key == key)
    }

    /// What a key is found by: see [`LruTable::number`].
    #[inline]
    pub(crate) fn hash(&self, key: K) -> u64 {
        key.hash(&self.hash)
    }

    /// Prefetches what leads to a key with this hash.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// The number of a key with this hash. It is another's once the value was removed.
    #[inline]
    pub(crate) fn number(&self, key: K, hash: u64) -> Option<u32> {
        self.index.find(hash, |number| self.nodes.get(number).key == key)
    }

    /// The number of a key.
    #[inline]
    pub(crate) fn number_of(&self, key: K) -> Option<u32> {
        self.find(key)
    }

    /// The key, list and value of a number.
    #[inline]
    pub(crate) fn entry(&self, number: u32) -> Option<(K, usize, &V)> {
        let Node { key, list, value, .. } = self.nodes.get(number);
        Some((*key, *list as usize, value.as_ref()?))
    }

    /// Prefetches the value of a number.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        self.nodes.prefetch(number);
    }

    /// The value of a key.
    #[inline]
    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.nodes.get(self.find(key)?).value.as_ref()
    }

    /// The value of a key, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let number = self.find(key)?;
        self.nodes.get_mut(number).value.as_mut()
    }

    /// The oldest of a list, with its key.
    pub(crate) fn oldest(&self, list: usize) -> Option<(K, &V)> {
        self.iter_list(list).next()
    }

    /// Adds a value as the newest of a list; gives the one that its key had before. A key keeps its number.
    pub(crate) fn insert(&mut self, key: K, value: V, list: usize) -> Option<V> {
        if let Some(number) = self.find(key) {
            self.renew_number(number, list);
            return self.nodes.get_mut(number).value.replace(value);
        }
        let node = Node { key, list: list as u32, previous: NONE, next: NONE, value: Some(value) };
        let number = self.nodes.insert(node);
        let (hash, nodes) = (&self.hash, &self.nodes);
        let records = |number: u32| nodes.get(number).key.hash(hash);
        self.index.insert(key.hash(hash), number, &records);
        self.append(number, list);
        None
    }

    /// Makes a key's value the newest of a list.
    pub(crate) fn renew(&mut self, key: K, list: usize) {
        if let Some(number) = self.find(key) {
            self.renew_number(number, list);
        }
    }

    /// Makes the value of a number the newest of a list.
    #[inline]
    pub(crate) fn renew_number(&mut self, number: u32, list: usize) {
        self.unlink(number);
        self.append(number, list);
    }

    /// The value of a number, to change it.
    #[inline]
    pub(crate) fn value_mut(&mut self, number: u32) -> Option<&mut V> {
        self.nodes.get_mut(number).value.as_mut()
    }

    /// Bytes that each value takes, with its key; what leads to it included, at the most.
    pub(crate) const BYTES_EACH: u64 = size_of::<Node<V, K>>() as u64 + Index::BYTES_EACH;

    /// Puts a key's value into another list, as its newest; in its own it stays where it is.
    pub(crate) fn refile(&mut self, key: K, list: usize) {
        if self.find(key).is_some_and(|number| self.nodes.get(number).list as usize != list) {
            self.renew(key, list);
        }
    }

    /// Removes a key's value.
    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        let number = self.find(key)?;
        self.unlink(number);
        self.index.remove(key.hash(&self.hash), number);
        let value = self.nodes.get_mut(number).value.take();
        self.nodes.remove(number);
        value
    }

    fn append(&mut self, number: u32, list: usize) {
        if self.lists.len() <= list {
            self.lists.resize(list + 1, EMPTY);
        }
        let List { head, tail, len } = &mut self.lists[list];
        let previous = std::mem::replace(tail, number);
        *len += 1;
        match previous {
            NONE => *head = number,
            _ => self.nodes.get_mut(previous).next = number,
        }
        let node = self.nodes.get_mut(number);
        (node.previous, node.next, node.list) = (previous, NONE, list as u32);
    }

    fn unlink(&mut self, number: u32) {
        let &Node { previous, next, list, .. } = self.nodes.get(number);
        let List { head, tail, len } = &mut self.lists[list as usize];
        *len -= 1;
        match previous {
            NONE => *head = next,
            _ => self.nodes.get_mut(previous).next = next,
        }
        match next {
            NONE => *tail = previous,
            _ => self.nodes.get_mut(next).previous = previous,
        }
    }

    /// Keys and values of a list, the oldest first.
    pub(crate) fn iter_list(&self, list: usize) -> impl Iterator<Item = (K, &V)> {
        let mut number = self.lists.get(list).map_or(NONE, |list| list.head);
        std::iter::from_fn(move || {
            let node = (number != NONE).then(|| self.nodes.get(number))?;
            number = node.next;
            node.value.as_ref().map(|value| (node.key, value))
        })
    }

    /// Keys and values of all lists, list by list.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        (0..self.lists.len()).flat_map(|list| self.iter_list(list))
    }

    /// Keys and values of so many places from one on, in no order, and where the next ones are, if there may be any.
    pub(crate) fn part(
        &self,
        from: u64,
        most: usize,
    ) -> (impl Iterator<Item = (K, &V)>, Option<u64>) {
        let room = self.nodes.room();
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(room);
        let end = from.saturating_add(most).min(room);
        let all = (from..end).map(|number| self.nodes.get(number as u32));
        let used = all.filter_map(|node| Some((node.key, node.value.as_ref()?)));
        (used, (end < room).then_some(end as u64))
    }

    /// Removes all values, and gives them, list by list.
    pub(crate) fn drain(&mut self) -> Vec<(K, V)> {
        let keys: Vec<K> = self.iter().map(|(key, _)| key).collect();
        keys.into_iter().filter_map(|key| Some((key, self.remove(key)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u128, usize),
        Renew(u128, usize),
        Refile(u128, usize),
        Remove(u128),
    }

    fn step() -> impl Strategy<Value = Step> {
        let (key, list) = (0u128..30, 0usize..3);
        prop_oneof![
            3 => (key.clone(), list.clone()).prop_map(|(k, l)| Step::Insert(k << 70 | k, l)),
            1 => (key.clone(), list.clone()).prop_map(|(k, l)| Step::Renew(k << 70 | k, l)),
            1 => (key.clone(), list).prop_map(|(k, l)| Step::Refile(k << 70 | k, l)),
            1 => key.prop_map(|k| Step::Remove(k << 70 | k)),
        ]
    }

    proptest! {
        #[test]
        fn lists_are_in_the_order_of_age(steps in proptest::collection::vec(step(), 0..200)) {
            let mut table = LruTable::default();
            let (mut values, mut lists) = (HashMap::new(), [const { Vec::new() }; 3]);
            for (n, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(key, list) => {
                        lists.iter_mut().for_each(|list| list.retain(|k| *k != key));
                        lists[list].push(key);
                        prop_assert_eq!(table.insert(key, n, list), values.insert(key, n));
                    }
                    Step::Renew(key, list) | Step::Refile(key, list) => {
                        let renews = matches!(step, Step::Renew(..)) || !lists[list].contains(&key);
                        if values.contains_key(&key) && renews {
                            lists.iter_mut().for_each(|list| list.retain(|k| *k != key));
                            lists[list].push(key);
                        }
                        match step {
                            Step::Renew(..) => table.renew(key, list),
                            _ => table.refile(key, list),
                        }
                    }
                    Step::Remove(key) => {
                        lists.iter_mut().for_each(|list| list.retain(|k| *k != key));
                        prop_assert_eq!(table.remove(key), values.remove(&key));
                    }
                }
                for (list, keys) in lists.iter().enumerate() {
                    let expected: Vec<(u128, &usize)> =
                        keys.iter().map(|key| (*key, &values[key])).collect();
                    prop_assert_eq!(table.iter_list(list).collect::<Vec<_>>(), expected);
                    prop_assert_eq!(table.list_len(list), keys.len());
                }
                prop_assert_eq!(table.len(), values.len());
            }
            prop_assert_eq!(table.drain().into_iter().collect::<HashMap<_, _>>(), values);
            prop_assert_eq!(table.len(), 0);
        }
    }
}
