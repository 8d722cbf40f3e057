//! The rewriters that use a mapper.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use ir::StateValue;

use super::{FLOWS_STATE, FlowSet, Joined};
use crate::element_state::ElementState;

/// The flows of rewriters that use a mapper, with the name that these have.
#[derive(Default)]
pub(crate) struct Users(RefCell<Vec<(String, Weak<RefCell<FlowSet>>)>>);

impl Users {
    pub(super) fn add(&self, joined: &Joined) {
        let mut users = self.0.borrow_mut();
        if users.iter().all(|(root, _)| *root != joined.root) {
            users.push((joined.root.clone(), Rc::downgrade(&joined.set)));
        }
    }

    /// Calls for the flows of each.
    pub(super) fn each(&self, mut each: impl FnMut(&str, &mut FlowSet)) {
        for (root, set) in self.0.borrow().iter() {
            if let Some(set) = set.upgrade() {
                each(root, &mut set.borrow_mut());
            }
        }
    }

    /// Writes down the flows, which what handlers say depends on.
    pub(crate) fn export_flows(&self, to: &mut ElementState) {
        if to.is_copy() {
            let group = to.group();
            self.each(|root, set| {
                to.declared.set(root, FLOWS_STATE, StateValue::Flows(set.export(group)));
            });
        }
    }

    /// Takes the flows that [`Users::export_flows`] wrote.
    pub(crate) fn import_flows(&self, from: &ElementState) {
        self.each(|root, set| {
            if let Some(StateValue::Flows(flows)) = from.declared.get(root, FLOWS_STATE) {
                set.import(flows);
            }
        });
    }
}
