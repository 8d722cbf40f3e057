//! Who is told of flows that change.

use std::rc::Rc;

use super::FlowTable;
use crate::flow_access::FlowLog;

impl FlowTable {
    /// Writes changes down from now on, as those of table number `table`.
    pub(crate) fn log_changes(&mut self, log: &Rc<FlowLog>, table: u16) {
        self.watchers.retain(|(watcher, _)| watcher.strong_count() > 0);
        self.watchers.push((Rc::downgrade(log), table));
    }

    /// Tells watchers of flows that changed or go.
    #[inline]
    pub(super) fn changed(&self, numbers: impl Iterator<Item = u32> + Clone) {
        if !self.watchers.is_empty() {
            self.log(|log, table| log.add(table, numbers.clone()));
        }
    }

    /// Tells watchers of a flow that changed or goes.
    #[inline]
    pub(super) fn changed_one(&self, number: u32) {
        for (watcher, table) in &self.watchers {
            if let Some(log) = watcher.upgrade() {
                log.add_one(*table, number);
            }
        }
    }

    #[cold]
    pub(super) fn log(&self, write: impl Fn(&FlowLog, u16)) {
        let living = self.watchers.iter().filter_map(|(w, table)| Some((w.upgrade()?, *table)));
        living.for_each(|(log, table)| write(&log, table));
    }
}
