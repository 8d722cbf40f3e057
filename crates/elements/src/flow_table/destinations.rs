//! How many flows go to a server.

use std::collections::HashMap;

use super::{Addresses, FlowOf, Table};

/// Numbers of flows by the address that they are rewritten to, and by address and port.
pub(super) struct Destinations<A: Addresses>(HashMap<(A::Address, u16), u64>);

impl<A: Addresses> Default for Destinations<A> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

/// An address with any port, and the address with its port.
fn keys<A: Addresses>(flow: &FlowOf<A>) -> [(A::Address, u16); 2] {
    let to = flow.rewritten(0);
    [(to.dst(), 0), (to.dst(), to.dst_port())]
}

impl<A: Addresses> Destinations<A> {
    pub(super) fn add(&mut self, flow: &FlowOf<A>) {
        for key in keys(flow) {
            *self.0.entry(key).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, flow: &FlowOf<A>) {
        for key in keys(flow) {
            if let Some(count) = self.0.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.0.remove(&key);
                }
            }
        }
    }
}

impl<A: Addresses> Table<A> {
    /// Counts from now on how many flows go where.
    pub(crate) fn count_destinations(&mut self) {
        let mut destinations = Destinations::default();
        self.visit(0, usize::MAX, |flow| destinations.add(flow));
        self.destinations = Some(destinations);
    }

    /// How many flows go to an address, and to this port if it is not 0; 0 if they are not counted.
    pub(crate) fn flows_to(&self, address: A::Address, port: u16) -> u64 {
        let counted = self.destinations.as_ref().and_then(|d| d.0.get(&(address, port)));
        counted.copied().unwrap_or(0)
    }
}
