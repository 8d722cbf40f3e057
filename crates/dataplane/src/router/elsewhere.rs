//! Packets that a device in front took care of: elements count them as if they had come here.

use ir::{NodeId, Port, Reason};

use super::Router;
use super::stage::Credit;

/// Packets that took one path. Elements are named, as the chain may have been changed: those that are there no more count
/// nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// How many packets.
    pub packets: u64,
    /// By element and declared counter: bytes.
    pub counters: Vec<(String, &'static str, u64)>,
    /// Where a reason is noted for each of them.
    pub noted: Vec<(String, Reason)>,
    /// Where all are dropped, why, and their bytes there.
    pub dropped: Option<(String, Reason, u64)>,
    /// Inputs that they passed, from the source on.
    pub passed: Vec<(String, usize)>,
    /// Sources and sinks, and the bytes that they took in or sent.
    pub traffic: Vec<(String, u64)>,
}

impl Router {
    /// Has elements count packets that a device took care of.
    pub fn credit(&mut self, elsewhere: &Elsewhere) {
        let Elsewhere { packets, counters, noted, dropped, passed, traffic } = elsewhere;
        let packets = *packets;
        let node = |router: &Self, name: &String| router.nodes.names.get(name).copied();
        let mut all: Vec<(NodeId, Credit)> = Vec::new();
        for (name, state, bytes) in counters {
            let credit = Credit::Count { state, packets, bytes: *bytes };
            all.extend(node(self, name).map(|node| (node, credit)));
        }
        for (name, reason) in noted {
            let credit = Credit::Noted { reason: *reason, packets };
            all.extend(node(self, name).map(|node| (node, credit)));
        }
        if let Some((name, reason, bytes)) = dropped {
            let credit = Credit::Dropped { reason: *reason, packets, bytes: *bytes };
            all.extend(node(self, name).map(|node| (node, credit)));
        }
        for (node, credit) in all {
            self.nodes.credit(node, credit);
        }
        let path: Option<Vec<Port>> = passed
            .iter()
            .map(|(name, port)| node(self, name).map(|node| Port { node, port: *port }))
            .collect();
        self.nodes.passed(&path.unwrap_or_default(), None, packets);
        for (name, bytes) in traffic {
            let cell = node(self, name).and_then(|node| self.nodes.nodes[node].cell.as_mut());
            if let Some(cell) = cell {
                cell.element.credit_traffic(packets, *bytes);
            }
        }
    }
}
