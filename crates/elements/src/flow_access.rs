//! Flows as they are declared, looked up in the tables of their owners, for whoever runs a chain
//! and not its elements.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// How many numbers a direction of a flow yields at the most.
pub const VALUES: usize = 6;
/// How many numbers the directions of a flow share at the most.
pub const COMMON: usize = 4;

/// What a lookup finds; see [`ir::Op::FlowLookup`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundFlow {
    /// The flow's number. It is another's once the flow was removed.
    pub number: u32,
    /// The direction's numbers.
    pub values: [u64; VALUES],
    /// The numbers that both directions share.
    pub common: [u64; COMMON],
    /// When it expires, in nanoseconds of the worker's clock.
    pub expiry: u64,
}

/// How many keys are looked up at once at the most.
pub const BURST: usize = 32;

/// The lanes of a mask, in order.
#[inline]
pub fn lanes_of(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = (mask != 0).then_some(mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(lane)
    })
}

/// What a burst of lookups finds, column by column: see [`FoundFlow`].
#[derive(Clone, Debug)]
pub struct FoundFlows {
    /// The keys that have a flow, a bit each; of all others the columns keep what they held.
    pub lanes: u32,
    /// Numbers of the flows.
    pub numbers: [u32; BURST],
    /// When they expire after a packet now that only prolongs them ([`FlowAccess::prolong`]), and until when they may not
    /// be evicted then; 0 if whatever comes changes more.
    pub expiries: [u64; BURST],
    /// See [`FoundFlows::expiries`].
    pub guarantees: [u64; BURST],
    /// Those that such a packet does not change: they were touched lately.
    pub settled: u32,
    /// The directions' numbers.
    pub values: [[u32; BURST]; VALUES],
    /// The numbers that both directions share.
    pub common: [[u32; BURST]; COMMON],
}

impl Default for FoundFlows {
    fn default() -> Self {
        Self {
            lanes: 0,
            numbers: [0; BURST],
            expiries: [0; BURST],
            guarantees: [0; BURST],
            settled: 0,
            values: [[0; BURST]; VALUES],
            common: [[0; BURST]; COMMON],
        }
    }
}

/// A table of flows that an element keeps.
pub trait FlowAccess {
    /// Removes flows that expired, a few at a time; to be called before a batch is looked up.
    fn expire(&mut self, now: u64);

    /// Number of flows, those that expired but were not removed yet included.
    fn count(&self) -> usize;

    /// The flow of a key, the key's numbers being those that the element's model looks up.
    fn find(&self, key: &[u64], now: u64) -> Option<FoundFlow>;

    /// Looks a burst of keys up, of which each column holds one number; sets what it finds for these lanes, and
    /// removes from [`FoundFlows::lanes`] those that have no flow.
    fn find_all(&self, key: &[&[u32; BURST]], lanes: u32, now: u64, found: &mut FoundFlows);

    /// Does what [`ir::Op::FlowUpdate`] does to a flow that was just found. Whether more changed
    /// than the time at which the flow expires.
    fn update(
        &mut self,
        number: u32,
        common: &[u64],
        expiry: u64,
        guarantee: u64,
        now: u64,
    ) -> bool;

    /// When a flow expires that was found and is not removed since.
    fn expiry(&self, number: u32) -> u64;

    /// Brings near what [`FlowAccess::expiry`] reads.
    fn prefetch(&self, number: u32);

    /// Brings near what else [`FlowAccess::prolong`] changes; to be called a while after
    /// [`FlowAccess::prefetch`].
    fn prefetch_changes(&self, number: u32);

    /// Does what an update does that changes nothing but the time; gives the new expiry.
    fn prolong(&mut self, number: u32, now: u64) -> u64;

    /// Has the table write down, from now on and as long as the log is in use, the numbers of
    /// flows that are removed, or of which more changes than when they expire.
    fn watch(&mut self, log: &Rc<FlowLog>, table: u16);
}

/// When there are so many changes that nobody asked for, the next are not written down.
const LONGEST: usize = 1 << 16;

/// Flows that changed, by table and number.
#[derive(Debug, Default)]
pub struct FlowLog {
    changes: RefCell<Vec<(u16, u32)>>,
    any: Cell<bool>,
    lost: Cell<bool>,
}

impl FlowLog {
    /// Whether nothing changed since it was last taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.any.get()
    }

    /// Flows of a table changed.
    pub(crate) fn add(&self, table: u16, numbers: impl Iterator<Item = u32>) {
        self.any.set(true);
        let mut changes = self.changes.borrow_mut();
        if changes.len() < LONGEST {
            changes.extend(numbers.map(|number| (table, number)));
        } else {
            self.lost.set(true);
        }
    }

    /// A flow of a table changed.
    #[inline]
    pub(crate) fn add_one(&self, table: u16, number: u32) {
        self.any.set(true);
        let mut changes = self.changes.borrow_mut();
        if changes.len() < LONGEST {
            changes.push((table, number));
        } else {
            self.lost.set(true);
        }
    }

    /// All flows of a table changed.
    pub(crate) fn add_all(&self) {
        self.any.set(true);
        self.lost.set(true);
    }

    /// Calls for each flow that changed, by table and number, and forgets it. `false` if more
    /// than those may have changed.
    pub fn take(&self, mut each: impl FnMut(u16, u32)) -> bool {
        self.any.set(false);
        self.changes.borrow_mut().drain(..).for_each(|(table, number)| each(table, number));
        !self.lost.replace(false)
    }
}
