//! Prefetching for many flows at once: memory is asked for before it is touched.

use super::slab::NONE;
use super::{AHEAD, Addresses, FlowOf, HashedKey, Table};

impl<A: Addresses> Table<A> {
    /// Prefetches a flow.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        self.flows.prefetch(number);
    }

    /// Prefetches the flows before and behind one in its list.
    #[inline]
    pub(crate) fn prefetch_changes(&self, number: u32) {
        let FlowOf { previous, next, .. } = *self.flow(number);
        self.flows.prefetch(previous);
        self.flows.prefetch(next);
    }

    /// Prefetches what removing the flows that expired changes, from a class's first one on: of so many at most. Gives
    /// their numbers with the hashes of their keys, and how many they are.
    pub(super) fn prefetch_expired(
        &self,
        first: u32,
        now: u64,
        most: usize,
    ) -> ([(u32, [u64; 2]); AHEAD], usize) {
        let mut all = [(NONE, [0; 2]); AHEAD];
        let mut number = first;
        for (expired, place) in all.iter_mut().take(most).enumerate() {
            if number == NONE {
                return (all, expired);
            }
            // Flows that came one after the other mostly lie so, too.
            self.flows.prefetch(number.wrapping_add(AHEAD as u32));
            let flow = self.flow(number);
            if flow.expiry > now {
                return (all, expired);
            }
            *place = (number, flow.hashes(&self.hash));
            place.1.iter().for_each(|&hash| self.index.prefetch(hash));
            number = flow.next;
        }
        (all, most)
    }

    /// Prefetches the bucket that a key is looked up in.
    #[inline]
    pub(crate) fn prefetch_bucket(&self, key: &HashedKey<A>) {
        self.index.prefetch(key.hash);
    }

    /// For a key whose bucket was prefetched, a guess of its flow, which is prefetched; see [`FlowTable::is`].
    #[inline]
    pub(crate) fn prefetch_entry(&self, key: &HashedKey<A>) -> Option<u32> {
        self.index.guess(key.hash).inspect(|entry| self.flows.prefetch(entry >> 1))
    }

    /// Whether a key whose bucket was prefetched is probably a flow's, which is prefetched.
    #[inline]
    pub(crate) fn is_likely(&self, key: &HashedKey<A>) -> bool {
        self.prefetch_entry(key).is_some()
    }
}
