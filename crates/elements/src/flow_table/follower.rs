//! Who keeps what follows from the flows of a table.

use std::rc::Rc;

use super::{Addresses, FlowOf, Table};

/// What is derived from the flows of tables: it is told of each that comes and goes, those included that another table
/// hands over.
pub(crate) trait Follower<A = u64> {
    /// A table has this flow now.
    fn added(&self, flow: &FlowOf<A>);

    /// A table that had this flow has it no more.
    fn removed(&self, flow: &FlowOf<A>);
}

impl<A: Addresses> Table<A> {
    /// Tells a follower of all flows, now and from now on; once, however often it is called.
    pub(crate) fn follow(&mut self, follower: &Rc<dyn Follower<A>>) {
        if self.followers.iter().any(|known| Rc::ptr_eq(known, follower)) {
            return;
        }
        self.visit(0, usize::MAX, |flow| follower.added(flow));
        self.followers.push(Rc::clone(follower));
    }

    /// Calls for each flow and follower.
    pub(super) fn tell_all(&self, tell: impl Fn(&dyn Follower<A>, &FlowOf<A>)) {
        for follower in &self.followers {
            self.visit(0, usize::MAX, |flow| tell(follower.as_ref(), flow));
        }
    }
}
