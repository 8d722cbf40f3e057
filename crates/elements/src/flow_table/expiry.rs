//! How flows expire: bit by bit, so that no packet pays for many flows of others.

use super::{AHEAD, ALL, Addresses, Entries, NONE, Table};

/// Flows of each class that a batch removes if many wait for it.
pub(super) const REMOVED_AT_ONCE: usize = 128;

impl<A: Addresses> Table<A> {
    /// Tells the time, before anything is done at that time, and removes some of the flows that expired, and of those
    /// that there is no room for: called for every batch. The flows of a tick expire together; their removal is spread
    /// over the next tick by removing few more than came since the batch before. What takes longer, or has no room, goes
    /// faster.
    #[inline]
    pub(crate) fn expire(&mut self, now: u64) {
        let made = std::mem::take(&mut self.made);
        let since = self.classes.iter().map(|class| class.earliest).min().unwrap_or(u64::MAX);
        let has_no_room = self.flows.len() as u64 > self.capacity;
        let is_late = has_no_room || since.saturating_add(self.tick) < now;
        let few = 1 + made + made / 8;
        self.remove_expired(now, if is_late { few.max(REMOVED_AT_ONCE) } else { few });
    }

    /// The same, but not more than `most` of each class.
    #[inline]
    pub(crate) fn remove_expired(&mut self, now: u64, most: usize) {
        self.clock = self.clock.max(now);
        self.index.move_bucket(&Entries { flows: &self.flows, hash: &self.hash });
        if self.counted < ALL {
            self.count(self.sizes.looked_at);
        }
        for class in 0..self.classes.len() {
            if self.classes[class].earliest <= now {
                self.expire_class(class, now, most);
            }
        }
        if self.flows.len() as u64 > self.capacity {
            self.shed(now, most);
        }
    }

    #[cold]
    fn expire_class(&mut self, class: usize, now: u64, most: usize) {
        let mut left = most;
        while left > 0 {
            let first = self.classes[class].head;
            let (all, expired) = self.prefetch_expired(first, now, left.min(AHEAD));
            if expired == 0 {
                let earliest = (first != NONE).then(|| self.flows.get(first).expiry);
                self.classes[class].earliest = earliest.unwrap_or(u64::MAX);
                return;
            }
            left -= expired;
            let all = &all[..expired];
            self.watchers.changed(all.iter().map(|&(number, _)| number));
            self.take_out_first(class, all);
        }
    }

    /// Removes the first flows of a class, which have keys with these hashes, and of which watchers were told.
    #[inline]
    fn take_out_first(&mut self, class: usize, all: &[(u32, [u64; 2])]) {
        let (Some(&(first, _)), Some(&(last, _))) = (all.first(), all.last()) else { return };
        let next = self.flows.get(last).next;
        self.classes[class].head = next;
        match next {
            NONE => self.classes[class].tail = NONE,
            _ => self.flows.get_mut(next).previous = NONE,
        }
        all.iter().for_each(|&(number, hashes)| self.forget(number, hashes));
        self.flows.remove_linked(first, last, all.len());
    }
}
