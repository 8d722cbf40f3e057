//! How many flows go to a server.

use std::collections::HashMap;

use super::{Flow, FlowTable};

/// Numbers of flows by the address that they are rewritten to, and by address and port.
#[derive(Default)]
pub(super) struct Destinations(HashMap<(u32, u16), u64>);

/// An address with any port, and the address with its port.
fn keys(flow: &Flow) -> [(u32, u16); 2] {
    let to = flow.rewritten(0);
    [(to.dst(), 0), (to.dst(), to.dst_port())]
}

impl Destinations {
    pub(super) fn add(&mut self, flow: &Flow) {
        for key in keys(flow) {
            *self.0.entry(key).or_default() += 1;
        }
    }

    pub(super) fn remove(&mut self, flow: &Flow) {
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

impl FlowTable {
    /// Counts from now on how many flows go where.
    pub(crate) fn count_destinations(&mut self) {
        let mut destinations = Destinations::default();
        self.visit(0, usize::MAX, |flow| destinations.add(flow));
        self.destinations = Some(destinations);
    }

    /// How many flows go to an address, and to this port if it is not 0; 0 if they are not counted.
    pub(crate) fn flows_to(&self, address: u32, port: u16) -> u64 {
        let counted = self.destinations.as_ref().and_then(|d| d.0.get(&(address, port)));
        counted.copied().unwrap_or(0)
    }
}
