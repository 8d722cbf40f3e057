//! Numbers that no flow has yet, from the pools of rewriters of IPv4.

use super::{ALL, Addresses, FlowTable, Hashed, Key, Pool, TRIES, TRIES_IF_CROWDED, Table};

impl<A: Addresses> Table<A> {
    /// Makes [`FlowTable::allocate`] fast for a pool, however few of its numbers are free.
    pub(crate) fn watch(&mut self, pool: Pool) {
        if self.taken.watch(pool) && self.flows.len() > 0 {
            self.taken.clear();
            self.counted = 0;
        }
    }
}

impl FlowTable {
    /// The first number from `start` to `high`, then from `low` on, whose key no flow has, and that key; see
    /// [`ir::Op::Allocate`]. `pool` is what the numbers are watched as, if they are.
    #[inline]
    pub(crate) fn allocate(
        &mut self,
        (low, high): (u32, u32),
        start: u32,
        pool: Option<Pool>,
        key_of: impl Fn(u32) -> Key,
        now: u64,
    ) -> Option<(u32, Hashed)> {
        let start = start.clamp(low, high);
        let mut number = start;
        for tried in 0..(high - low).saturating_add(1).min(TRIES) {
            let is_large = high - low >= TRIES;
            if tried == TRIES_IF_CROWDED && is_large && self.is_crowded(pool, &key_of(start)) {
                break;
            }
            let key = self.hashed(key_of(number));
            if self.is_free(&key, now) {
                return Some((number, key));
            }
            number = if number == high { low } else { number + 1 };
        }
        if high - low < TRIES {
            return None;
        }
        self.allocate_from_many((low, high), (start, number), pool, key_of, now)
    }

    /// Whether a pool's tree knows most of the numbers that are taken.
    fn is_crowded(&self, pool: Option<Pool>, key: &Key) -> bool {
        let known = pool.filter(|pool| self.counted == ALL && self.taken.watches(*pool));
        known.is_some_and(|pool| self.taken.is_crowded(pool, key))
    }

    /// The same when the numbers from `start` to `number` are taken, and that one is next.
    #[cold]
    fn allocate_from_many(
        &mut self,
        (low, high): (u32, u32),
        (start, mut number): (u32, u32),
        pool: Option<Pool>,
        key_of: impl Fn(u32) -> Key,
        now: u64,
    ) -> Option<(u32, Hashed)> {
        if self.counted < ALL {
            self.count(usize::MAX);
        }
        // A small pool has few numbers that its tree is yet to learn.
        let crowded = pool.filter(|pool| {
            let is_small = high - low < self.sizes.small_pool && self.taken.watches(*pool);
            is_small || self.is_crowded(Some(*pool), &key_of(start))
        });
        for tried in TRIES..=high - low {
            // The tree knows nothing of expiry. As long as flows that expired are to be removed it is not asked, and of
            // these go only about as many as numbers are tried: no packet waits for all.
            if crowded.is_some() && tried % self.sizes.removed == TRIES {
                self.remove_expired(now, self.sizes.removed as usize);
                if self.classes.iter().all(|class| class.earliest > now) {
                    break;
                }
            }
            let key = self.hashed(key_of(number));
            if self.is_free(&key, now) {
                return Some((number, key));
            }
            number = if number == high { low } else { number + 1 };
        }
        let pool = crowded?;
        self.first_free(pool, (start, high), &key_of, now)
            .or_else(|| self.first_free(pool, (low, start), &key_of, now))
    }

    /// The first number of a crowded pool that no flow has, and its key, if none of them expired.
    fn first_free(
        &mut self,
        pool: Pool,
        (from, to): (u32, u32),
        key_of: impl Fn(u32) -> Key,
        now: u64,
    ) -> Option<(u32, Hashed)> {
        loop {
            let number = self.taken.first_free(pool, &key_of(from), from, to)?;
            let key = self.hashed(key_of(number));
            if self.is_free(&key, now) {
                return Some((number, key));
            }
            self.taken.note(pool, &key.key);
        }
    }
}
