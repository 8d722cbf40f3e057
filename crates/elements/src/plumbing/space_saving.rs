//! Space-saving: the most frequent of many keys, in bounded memory (Metwally, Agrawal, El Abbadi 2005).
//!
//! A fixed number of keys is kept with a count each. A new key replaces the one with the least count and goes
//! on from there, and that count is its error: what it may never have had. So the count of a key is never too low, and
//! too high by its error at the most. No error exceeds what was counted in all, divided by the number of keys that are
//! kept; a key with a larger share is always among them.
//!
//! Counts are kept as a heap with four children a node. What is added to a count moves it down, as long as a child's
//! is less: most have no children. Whatever the counts are, a step takes at most as many moves as the heap is deep.

use std::hash::{BuildHasher, Hash, Hasher};

use net::flow::FlowHash;

/// Keys, a value with each, and their counts.
pub(crate) struct SpaceSaving<K, V> {
    hash: FlowHash,
    /// By hash, one more than the first entry; 0 if there is none.
    heads: Vec<u32>,
    entries: Vec<Entry<K, V>>,
    heap: Vec<Place>,
    most: usize,
}

/// A key that is kept.
struct Entry<K, V> {
    key: K,
    value: V,
    /// What of its count may belong to others.
    error: u64,
    /// Where it is in the heap.
    place: u32,
    /// One more than the next entry of this hash.
    next: u32,
}

/// A place in the heap.
#[derive(Clone, Copy)]
struct Place {
    count: u64,
    entry: u32,
}

/// A key, as it is shown.
pub(crate) struct Kept<'a, K, V> {
    pub key: &'a K,
    pub value: &'a V,
    pub error: u64,
}

const CHILDREN: usize = 4;

impl<K: Copy + Eq + Hash, V> SpaceSaving<K, V> {
    /// None yet, of at most so many.
    pub(crate) fn new(most: usize) -> Self {
        Self::with_seed(most, std::hash::RandomState::new().build_hasher().finish())
    }

    fn with_seed(most: usize, seed: u64) -> Self {
        let most = most.clamp(1, u32::MAX as usize / 2);
        Self {
            hash: FlowHash::new(seed),
            heads: vec![0; most.next_power_of_two()],
            entries: Vec::with_capacity(most),
            heap: Vec::with_capacity(most),
            most,
        }
    }

    /// Bytes that so many keys take.
    pub(crate) fn bytes_of(most: usize) -> u64 {
        let each = size_of::<Entry<K, V>>() + size_of::<Place>();
        (most as u64).saturating_mul(each as u64)
            + (most as u64).next_power_of_two() * size_of::<u32>() as u64
    }

    /// Bytes that are taken.
    #[cfg(test)]
    fn bytes(&self) -> u64 {
        let entries = self.entries.capacity() * size_of::<Entry<K, V>>();
        let heap = self.heap.capacity() * size_of::<Place>();
        (entries + heap + self.heads.capacity() * size_of::<u32>()) as u64
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// How many are kept at the most.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// What a key that is not kept has had at the most.
    pub(crate) fn least(&self) -> u64 {
        if self.entries.len() < self.most { 0 } else { self.heap.first().map_or(0, |p| p.count) }
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.heads.fill(0);
        self.entries.clear();
        self.heap.clear();
    }

    fn bucket(&self, key: &K) -> usize {
        self.hash.hash_one(key) as usize & (self.heads.len() - 1)
    }

    fn find(&self, key: &K, bucket: usize) -> Option<usize> {
        let mut next = self.heads[bucket];
        while next > 0 {
            let entry = &self.entries[next as usize - 1];
            if entry.key == *key {
                return Some(next as usize - 1);
            }
            next = entry.next;
        }
        None
    }

    /// The entry with this number, below [`SpaceSaving::len`].
    pub(crate) fn at(&self, entry: usize) -> Kept<'_, K, V> {
        let Entry { key, value, error, .. } = &self.entries[entry];
        Kept { key, value, error: *error }
    }

    /// The value of the entry with this number, and its key.
    pub(crate) fn at_mut(&mut self, entry: usize) -> (&K, &mut V) {
        let entry = &mut self.entries[entry];
        (&entry.key, &mut entry.value)
    }

    /// The value of a key, if it is kept.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let entry = self.find(key, self.bucket(key))?;
        Some(&mut self.entries[entry].value)
    }

    /// Adds to the count of a key, which is kept from then on, with this value if it is new. Gives what made room for
    /// it, and the key's value.
    #[inline]
    pub(crate) fn add(&mut self, key: K, weight: u64, value: V) -> (Option<(K, V)>, &mut V) {
        let bucket = self.bucket(&key);
        if let Some(entry) = self.find(&key, bucket) {
            self.grow(self.entries[entry].place as usize, weight);
            return (None, &mut self.entries[entry].value);
        }
        self.insert(key, bucket, weight, value)
    }

    fn insert(&mut self, key: K, bucket: usize, weight: u64, value: V) -> (Option<(K, V)>, &mut V) {
        let entry = self.entries.len();
        let next = self.heads[bucket];
        if entry < self.most {
            let place = entry as u32;
            self.entries.push(Entry { key, value, error: 0, place, next });
            self.heads[bucket] = place + 1;
            self.heap.push(Place { count: weight, entry: place });
            self.rise(entry);
            return (None, &mut self.entries[entry].value);
        }
        let Place { count: error, entry } = self.heap[0];
        self.unlink(entry as usize);
        // The new key's bucket may have been that of the old.
        let new = Entry { key, value, error, place: 0, next: self.heads[bucket] };
        let old = std::mem::replace(&mut self.entries[entry as usize], new);
        self.heads[bucket] = entry + 1;
        self.grow(0, weight);
        (Some((old.key, old.value)), &mut self.entries[entry as usize].value)
    }

    fn unlink(&mut self, entry: usize) {
        let number = entry as u32 + 1;
        let (bucket, next) = (self.bucket(&self.entries[entry].key), self.entries[entry].next);
        if self.heads[bucket] == number {
            self.heads[bucket] = next;
            return;
        }
        let mut before = self.heads[bucket];
        while before > 0 {
            let entry = &mut self.entries[before as usize - 1];
            if entry.next == number {
                entry.next = next;
                return;
            }
            before = entry.next;
        }
    }

    fn put(&mut self, at: usize, place: Place) {
        self.heap[at] = place;
        self.entries[place.entry as usize].place = at as u32;
    }

    /// Adds to a count, and moves it down to where it belongs.
    #[inline]
    fn grow(&mut self, at: usize, weight: u64) {
        let moved = &mut self.heap[at];
        moved.count = moved.count.saturating_add(weight);
        let (mut at, moved) = (at, *moved);
        while let Some(children) = self.heap.get(at * CHILDREN + 1..) {
            let children = children.iter().take(CHILDREN).zip(at * CHILDREN + 1..);
            let Some((least, child)) = children.min_by_key(|(place, _)| place.count) else { break };
            if least.count >= moved.count {
                break;
            }
            self.put(at, *least);
            at = child;
        }
        self.put(at, moved);
    }

    /// Moves the place that was added last up to where it belongs.
    fn rise(&mut self, mut at: usize) {
        let moved = self.heap[at];
        while at > 0 && self.heap[(at - 1) / CHILDREN].count > moved.count {
            let parent = (at - 1) / CHILDREN;
            self.put(at, self.heap[parent]);
            at = parent;
        }
        self.put(at, moved);
    }

    /// The keys with the largest counts, the largest first.
    pub(crate) fn top(&self, most: usize) -> Vec<Kept<'_, K, V>> {
        let mut largest: Vec<Place> = self.heap.clone();
        let order = |place: &Place| (std::cmp::Reverse(place.count), place.entry);
        if most < largest.len() {
            largest.select_nth_unstable_by_key(most, order);
            largest.truncate(most);
        }
        largest.sort_unstable_by_key(order);
        largest.into_iter().map(|place| self.at(place.entry as usize)).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn check(kept: &SpaceSaving<u64, ()>, truth: &HashMap<u64, u64>) {
        let total: u64 = truth.values().sum();
        let bound = if kept.len() < kept.most { 0 } else { total / kept.most as u64 };
        assert!(kept.least() <= bound, "{} > {bound}", kept.least());
        let count = |entry: &Entry<_, _>| kept.heap[entry.place as usize].count;
        let counts: Vec<u64> = kept.entries.iter().map(count).collect();
        let mut sum = 0;
        for (entry, &count) in counts.iter().enumerate() {
            let Kept { key, error, .. } = kept.at(entry);
            let truth = truth[key];
            assert!(count - error <= truth && truth <= count, "{key}: {count} {error} {truth}");
            assert!(error <= bound);
            sum += count;
        }
        assert_eq!(sum, total);
        for (key, truth) in truth {
            assert!(
                kept.find(key, kept.bucket(key)).is_some() || *truth <= kept.least(),
                "{key} was forgotten"
            );
        }
        for (at, place) in kept.heap.iter().enumerate().skip(1) {
            assert!(kept.heap[(at - 1) / CHILDREN].count <= place.count);
            assert_eq!(kept.entries[place.entry as usize].place as usize, at);
        }
        let top = kept.top(kept.most);
        let rank = |key: &u64| counts[kept.find(key, kept.bucket(key)).unwrap()];
        assert!(top.is_sorted_by_key(|kept| std::cmp::Reverse(rank(kept.key))));
        let largest = |most| kept.top(most).iter().map(|kept| *kept.key).collect::<Vec<_>>();
        assert_eq!(largest(3), largest(kept.most)[..kept.len().min(3)]);
    }

    proptest! {
        #[test]
        fn counts_are_within_their_errors(
            most in 1usize..20,
            steps in proptest::collection::vec((0u64..60, 1u64..1500), 0..400),
        ) {
            let mut kept = SpaceSaving::with_seed(most, 7);
            let mut truth = HashMap::new();
            for (key, weight) in steps {
                // Small keys are frequent.
                let key = key * key / 60;
                kept.add(key, weight, ());
                *truth.entry(key).or_insert(0) += weight;
            }
            check(&kept, &truth);
        }
    }

    #[test]
    fn a_million_flows_take_no_more_memory_than_was_said() {
        let mut kept = SpaceSaving::with_seed(1000, 1);
        let (before, said) = (kept.bytes(), SpaceSaving::<u64, ()>::bytes_of(1000));
        let mut rng = fastrand::Rng::with_seed(1);
        let mut truth = HashMap::new();
        for n in 0..1_000_000u64 {
            // Every hundredth packet is of a heavy flow.
            let key = if n % 100 == 0 { n / 100 % 3 } else { rng.u64(3..) };
            kept.add(key, 1, ());
            *truth.entry(key).or_insert(0) += 1;
        }
        assert_eq!(kept.bytes(), before);
        assert!(kept.bytes() <= said, "{} > {said}", kept.bytes());
        check(&kept, &truth);
        let mut heavy: Vec<u64> = kept.top(3).iter().map(|kept| *kept.key).collect();
        heavy.sort_unstable();
        assert_eq!(heavy, [0, 1, 2]);
        kept.clear();
        assert_eq!((kept.len(), kept.least(), kept.bytes()), (0, 0, before));
        check(&kept, &HashMap::new());
    }
}
