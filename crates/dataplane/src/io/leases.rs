//! The maps of a device that goes by leases of flows: see [`codegen::ebpf::lease`].

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use codegen::ebpf::lease::{KEY, Leases, SLOTS, UNTIL, USED};

use super::bpf::AnyMap;
use super::sys::Mapping;

/// The maps of one table of flows. The slots are in memory, so a lease ends without a system call.
#[derive(Debug)]
pub struct LeaseMaps {
    index: AnyMap,
    slots: Mapping,
    of: Leases,
}

impl LeaseMaps {
    /// The maps with these numbers, without leases: whoever gave some before is gone.
    ///
    /// # Errors
    /// The kernel's; or if they are not made for leases of the table.
    pub fn open(index: u32, slots: u32, of: &Leases) -> io::Result<Self> {
        let (name, index) = AnyMap::by_id(index)?;
        let (other, slots) = AnyMap::by_id(slots)?;
        let bytes = 8 * of.words();
        let fits = index.sizes() == (8 * of.key as u32, 4) && slots.sizes() == (4, bytes as u32);
        if !fits || name != of.index_map() || other != of.slots_map() {
            return Err(io::Error::other("the maps are made for other leases"));
        }
        let slots = slots.mapped(bytes * SLOTS as usize)?;
        let maps = Self { index, slots, of: of.clone() };
        (0..SLOTS).for_each(|slot| maps.end(slot));
        while let Some(key) = maps.index.next(None)? {
            maps.index.remove(&key)?;
        }
        Ok(maps)
    }

    fn word(&self, slot: u32, word: usize) -> Option<&AtomicU64> {
        self.slots.long(8 * (u64::from(slot) * self.of.words() as u64 + word as u64))
    }

    fn set(&self, slot: u32, word: usize, number: u64) {
        if let Some(word) = self.word(slot, word) {
            word.store(number, Ordering::Release);
        }
    }

    /// Writes what a lease is of into a slot that is none.
    pub(crate) fn write(&self, slot: u32, key: &[u128], bound: &[u128]) {
        self.set(slot, USED, 0);
        for (word, number) in (KEY..).zip(key.iter().chain(bound)) {
            self.set(slot, word, *number as u64);
        }
    }

    /// Says when a lease ends, by the kernel's monotonic clock.
    pub(crate) fn prolong(&self, slot: u32, until: u64) {
        self.set(slot, UNTIL, until);
    }

    /// Ends a lease at once.
    pub(crate) fn end(&self, slot: u32) {
        if let Some(word) = self.word(slot, UNTIL) {
            word.store(0, Ordering::SeqCst);
        }
    }

    /// Whether packets came since this was asked last.
    pub(crate) fn take_use(&self, slot: u32) -> bool {
        self.word(slot, USED).is_some_and(|used| used.swap(0, Ordering::AcqRel) != 0)
    }

    fn key(&self, slot: u32) -> Vec<u8> {
        let number = |word| self.word(slot, word).map_or(0, |word| word.load(Ordering::Acquire));
        (KEY..KEY + self.of.key).flat_map(|word| number(word).to_ne_bytes()).collect()
    }

    /// Has the key of a slot lead to it.
    ///
    /// # Errors
    /// The kernel's, if there is no room.
    pub(crate) fn enter(&self, slot: u32) -> io::Result<()> {
        self.index.set(&self.key(slot), &slot.to_ne_bytes())
    }

    /// Has the key of a slot lead nowhere, if it leads to this one.
    pub(crate) fn leave(&self, slot: u32) {
        let key = self.key(slot);
        let leads = self.index.get(&key).is_ok_and(|all| *all == [slot.to_ne_bytes()]);
        if leads {
            // There it goes, if somebody was faster.
            let _ = self.index.remove(&key);
        }
    }
}

/// The kernel's monotonic clock, in nanoseconds.
pub(crate) fn monotonic() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (time.tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(time.tv_nsec as u64)
}
