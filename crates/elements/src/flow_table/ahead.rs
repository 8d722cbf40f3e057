//! Memory that is brought near before it is touched, for many flows at once.

use super::slab::NONE;
use super::{Flow, FlowTable, Key};

impl FlowTable {
    /// Brings a flow near.
    #[inline]
    pub(crate) fn prefetch(&self, number: u32) {
        self.flows.prefetch(number);
    }

    /// Brings near the flows before and behind one in its list.
    #[inline]
    pub(crate) fn prefetch_changes(&self, number: u32) {
        let Flow { previous, next, .. } = *self.flow(number);
        self.flows.prefetch(previous);
        self.flows.prefetch(next);
    }

    /// Brings near what removing the flows that expired changes, from a class's first one on: of so many at most. Gives
    /// how many these are.
    pub(super) fn prefetch_expired(&self, first: u32, now: u64, most: usize) -> usize {
        let (mut number, mut expired) = (first, 0);
        while expired < most && number != NONE {
            let flow = self.flows.get(number);
            if flow.expiry > now {
                break;
            }
            flow.sides().for_each(|side| self.expect(&flow.key(side)));
            (number, expired) = (flow.next, expired + 1);
        }
        expired
    }

    /// Brings near what adding, looking up or removing a flow with this key touches.
    pub(crate) fn expect(&self, key: &Key) {
        self.index.prefetch(self.hash(key));
        self.taken.prefetch(key);
    }

    /// Whether a key that was expected is probably a flow's. Brings that flow near.
    pub(crate) fn is_likely(&self, key: &Key) -> bool {
        let guess = self.index.guess(self.hash(key));
        guess.inspect(|guess| self.flows.prefetch(guess >> 1)).is_some()
    }
}
