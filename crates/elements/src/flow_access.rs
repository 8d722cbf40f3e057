//! Flows as they are declared, looked up in the tables of their owners, for whoever runs a chain
//! and not its elements.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::{Rc, Weak};

use smallvec::SmallVec;

use crate::listing::Tuple;

/// Numbers that a lookup yields. A few take no memory of their own.
pub type Numbers = SmallVec<[u128; 6]>;

/// What a lookup finds; see [`ir::Op::FlowLookup`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFlow {
    /// The flow's number. It is another's once the flow was removed.
    pub number: u32,
    /// The direction's numbers.
    pub values: Numbers,
    /// The numbers that both directions share.
    pub common: Numbers,
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

/// A number of each key of a burst.
pub type Column = [u32; BURST];

/// Columns that a burst of lookups has room for at least, so that tables of as many numbers need not ask.
pub const VALUES: usize = 6;
/// The same for the numbers that directions share.
pub const COMMON: usize = 4;

/// How many columns a number of so many bits takes: one for each 32 bits, the lowest first.
pub const fn columns(width: u16) -> u8 {
    match width.div_ceil(32) {
        0 | 1 => 1,
        many @ 2..=3 => many as u8,
        _ => 4,
    }
}

/// What a burst of lookups finds, column by column: see [`FoundFlow`].
#[derive(Clone, Debug)]
pub struct FoundFlows {
    /// The keys that have a flow, a bit each; of all others the columns keep what they held.
    pub lanes: u32,
    /// Numbers of the flows.
    pub numbers: Column,
    /// When they expire after a packet now that only prolongs them ([`FlowAccess::prolong`]), and until when they may not
    /// be evicted then; 0 if whatever comes changes more.
    pub expiries: [u64; BURST],
    /// See [`FoundFlows::expiries`].
    pub guarantees: [u64; BURST],
    /// Those that such a packet does not change: they were touched lately.
    pub settled: u32,
    /// The directions' numbers, each in [`columns`] of its declared width.
    pub values: Vec<Column>,
    /// The numbers that both directions share, likewise.
    pub common: Vec<Column>,
}

impl FoundFlows {
    /// Nothing yet, with room for so many columns of values and common numbers.
    pub fn new(values: usize, common: usize) -> Self {
        Self {
            lanes: 0,
            numbers: [0; BURST],
            expiries: [0; BURST],
            guarantees: [0; BURST],
            settled: 0,
            values: vec![[0; BURST]; values.max(VALUES)],
            common: vec![[0; BURST]; common.max(COMMON)],
        }
    }
}

/// Sets a number of a lane in the columns from `first` on.
#[inline]
pub(crate) fn set(columns: &mut [Column], first: usize, lane: usize, number: u64) {
    for (column, word) in columns.iter_mut().skip(first).zip([number as u32, (number >> 32) as u32])
    {
        column[lane] = word;
    }
}

/// A flow that others may go by for a while, who let the table know what packets it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leasable {
    /// Its number, see [`FoundFlow::number`].
    pub number: u32,
    /// The keys that it is found by.
    pub keys: SmallVec<[Numbers; 2]>,
    /// When it expires, in nanoseconds of the worker's clock.
    pub expiry: u64,
    /// When it expires, and until when it may not be evicted, after a packet now that only prolongs it.
    pub prolonged: (u64, u64),
}

/// Finds the group of a flow: by a packet of each direction and the protocol, unless its packets may have any ports.
pub type GroupOf<'a> = dyn FnMut(Option<([Tuple; 2], u8)>) -> Option<u16> + 'a;

/// A table of flows that an element keeps.
pub trait FlowAccess {
    /// Removes flows that expired, a few at a time; to be called before a batch is looked up.
    fn expire(&mut self, now: u64);

    /// Number of flows, those that expired but were not removed yet included.
    fn count(&self) -> usize;

    /// The flow of a key, the key's numbers being those that the element's model looks up.
    fn find(&self, key: &[u128], now: u64) -> Option<FoundFlow>;

    /// How many columns each number of a key takes in [`FlowAccess::find_all`], see [`columns`].
    fn key_columns(&self) -> &'static [u8];

    /// Looks up the keys of a burst, which stand in columns; sets what it finds for these lanes, and removes from
    /// [`FoundFlows::lanes`] those that have no flow.
    fn find_all(&self, key: &[&Column], lanes: u32, now: u64, found: &mut FoundFlows);

    /// Does what [`ir::Op::FlowUpdate`] does to a flow that was just found. Whether more changed
    /// than the time at which the flow expires.
    fn update(
        &mut self,
        number: u32,
        common: &[u128],
        expiry: u64,
        guarantee: u64,
        now: u64,
    ) -> bool;

    /// When a flow expires that was found and is not removed since.
    fn expiry(&self, number: u32) -> u64;

    /// Prefetches what [`FlowAccess::expiry`] reads.
    fn prefetch(&self, number: u32);

    /// Prefetches what else [`FlowAccess::prolong`] changes; to be called a while after
    /// [`FlowAccess::prefetch`].
    fn prefetch_changes(&self, number: u32);

    /// Does what an update does that changes nothing but the time; gives the new expiry.
    fn prolong(&mut self, number: u32, now: u64) -> u64;

    /// Puts each flow into the group of traffic classes that its packets are of; flows that are of none are removed:
    /// how many. Of a table that all workers have alike, nothing changes.
    fn regroup(&mut self, _group_of: &mut GroupOf<'_>) -> usize {
        0
    }

    /// Calls for each of so many flows from a place on, in no order, of which a device may have a lease; where the next
    /// ones are, if there may be any.
    fn leasable(
        &self,
        _from: u64,
        _most: usize,
        _now: u64,
        _each: &mut dyn FnMut(Leasable),
    ) -> Option<u64> {
        None
    }

    /// Has the table write down, from now on and as long as the log is in use, the numbers of
    /// flows that are removed, or of which more changes than when they expire.
    fn watch(&mut self, log: &Rc<FlowLog>, table: u16);
}

/// Who wants to know what changes in a table, and under which number each knows it.
#[derive(Default)]
pub(crate) struct Watchers(Vec<(Weak<FlowLog>, u16)>);

impl Watchers {
    /// Writes changes down from now on, as those of table number `table`.
    pub(crate) fn add(&mut self, log: &Rc<FlowLog>, table: u16) {
        self.0.retain(|(watcher, _)| watcher.strong_count() > 0);
        self.0.push((Rc::downgrade(log), table));
    }

    /// Flows changed or go.
    #[inline]
    pub(crate) fn changed(&self, numbers: impl Iterator<Item = u32> + Clone) {
        if !self.0.is_empty() {
            self.log(|log, table| log.add(table, numbers.clone()));
        }
    }

    /// A flow changed or goes.
    #[inline]
    pub(crate) fn changed_one(&self, number: u32) {
        for (watcher, table) in &self.0 {
            if let Some(log) = watcher.upgrade() {
                log.add_one(*table, number);
            }
        }
    }

    /// Any flow may have changed.
    pub(crate) fn changed_all(&self) {
        self.log(|log, _| log.add_all());
    }

    #[cold]
    fn log(&self, write: impl Fn(&FlowLog, u16)) {
        let living = self.0.iter().filter_map(|(w, table)| Some((w.upgrade()?, *table)));
        living.for_each(|(log, table)| write(&log, table));
    }
}

/// When there are so many changes that nobody asked for, the next are not written down.
const LONGEST: usize = 1 << 16;

/// Flows that changed, by table and number.
#[derive(Default)]
pub struct FlowLog {
    /// Who is told at once, in the place of the log.
    told: Option<Box<Told>>,
    changes: RefCell<Vec<(u16, u32)>>,
    any: Cell<bool>,
    lost: Cell<bool>,
}

/// Takes the table and number of a flow that changed, or is about to go; or that any flow may have.
type Told = dyn Fn(Option<(u16, u32)>);

impl fmt::Debug for FlowLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowLog").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl FlowLog {
    /// A log that writes nothing down, and tells of changes at once. Tables are borrowed meanwhile.
    pub fn telling(told: impl Fn(Option<(u16, u32)>) + 'static) -> Self {
        Self { told: Some(Box::new(told)), ..Self::default() }
    }

    /// Whether nothing changed since it was last taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        !self.any.get()
    }

    /// Flows of a table changed.
    fn add(&self, table: u16, numbers: impl Iterator<Item = u32>) {
        if let Some(told) = &self.told {
            return numbers.for_each(|number| told(Some((table, number))));
        }
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
    fn add_one(&self, table: u16, number: u32) {
        if let Some(told) = &self.told {
            return told(Some((table, number)));
        }
        self.any.set(true);
        let mut changes = self.changes.borrow_mut();
        if changes.len() < LONGEST {
            changes.push((table, number));
        } else {
            self.lost.set(true);
        }
    }

    /// All flows of a table changed.
    fn add_all(&self) {
        if let Some(told) = &self.told {
            return told(None);
        }
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
