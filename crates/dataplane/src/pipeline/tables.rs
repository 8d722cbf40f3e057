//! The tables that a program looks flows up in.

use std::cell::RefCell;
use std::rc::Rc;

use elements::flow_access::{FlowAccess, FlowLog, FoundFlow, FoundFlows};
use ir::program::LookupId;
use smallvec::SmallVec;

use super::lanes::Column;

/// A table that elements keep.
pub(crate) type Table = Rc<RefCell<dyn FlowAccess>>;

/// See the module.
pub(super) struct Tables {
    all: Vec<Table>,
    /// The number of the table that each lookup is in; of one that is never made, `None`.
    of: Vec<Option<u16>>,
    /// By table: the lookups in it.
    lookups: Vec<Vec<u16>>,
    pub(super) log: Rc<FlowLog>,
}

impl Tables {
    /// `of` gives the table of each lookup, or `None` if it finds nothing whatever happens.
    pub(super) fn new(of: Vec<Option<Table>>) -> Self {
        let mut tables =
            Self { all: Vec::new(), of: Vec::new(), lookups: Vec::new(), log: Rc::default() };
        for (table, lookup) in of.into_iter().zip(0..) {
            let number = table.map(|table| match tables.number(&table) {
                Some(number) => number,
                None => {
                    let number = tables.all.len() as u16;
                    table.borrow_mut().watch(&tables.log, number);
                    tables.all.push(table);
                    tables.lookups.push(Vec::new());
                    number
                }
            });
            if let Some(number) = number {
                tables.lookups[usize::from(number)].push(lookup);
            }
            tables.of.push(number);
        }
        tables
    }

    /// The number of a table, if it is one of these.
    pub(super) fn number(&self, table: &Table) -> Option<u16> {
        let same = |t: &Table| std::ptr::addr_eq(Rc::as_ptr(t), Rc::as_ptr(table));
        self.all.iter().position(same).map(|number| number as u16)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The number of a lookup's table.
    pub(super) fn of(&self, lookup: LookupId) -> Option<u16> {
        self.of[usize::from(lookup.0)]
    }

    /// How a lookup's table wants its keys, see [`FlowAccess::key_columns`].
    pub(super) fn key_columns(&self, lookup: LookupId) -> Option<&'static [u8]> {
        Some(self.all[usize::from(self.of(lookup)?)].borrow().key_columns())
    }

    /// All tables, by number.
    pub(super) fn all(&self) -> &[Table] {
        &self.all
    }

    /// The lookups in a table.
    #[inline]
    pub(super) fn lookups(&self, table: u16) -> &[u16] {
        &self.lookups[usize::from(table)]
    }

    pub(super) fn expire(&self, now: u64) {
        self.all.iter().for_each(|table| table.borrow_mut().expire(now));
    }

    pub(super) fn find(&self, lookup: LookupId, key: &[u128], now: u64) -> Option<FoundFlow> {
        let table = self.of(lookup)?;
        self.all[usize::from(table)].borrow().find(key, now)
    }

    /// Looks a burst of keys up, of which each column holds one number.
    pub(super) fn find_all<'a>(
        &self,
        lookup: LookupId,
        key: impl Iterator<Item = &'a Column>,
        (lanes, now): (u32, u64),
        found: &mut FoundFlows,
    ) {
        match self.of(lookup) {
            Some(table) => {
                let key: SmallVec<[&Column; 8]> = key.collect();
                self.all[usize::from(table)].borrow().find_all(&key, lanes, now, found);
            }
            None => found.lanes &= !lanes,
        }
    }

    /// Updates a flow, to common cells, expiry and guarantee; whether more changed than when it
    /// expires.
    pub(super) fn update(
        &self,
        lookup: LookupId,
        (number, common, expiry, guarantee): (u32, &[u128], u64, u64),
        now: u64,
    ) -> bool {
        let Some(table) = self.of(lookup) else { return false };
        let mut table = self.all[usize::from(table)].borrow_mut();
        table.update(number, common, expiry, guarantee, now)
    }

    pub(super) fn expiry(&self, table: u16, number: u32) -> u64 {
        self.all[usize::from(table)].borrow().expiry(number)
    }

    pub(super) fn prefetch(&self, table: u16, number: u32) {
        self.all[usize::from(table)].borrow().prefetch(number);
    }

    pub(super) fn prefetch_changes(&self, table: u16, number: u32) {
        self.all[usize::from(table)].borrow().prefetch_changes(number);
    }

    pub(super) fn prolong(&self, table: u16, number: u32, now: u64) -> u64 {
        self.all[usize::from(table)].borrow_mut().prolong(number, now)
    }
}
