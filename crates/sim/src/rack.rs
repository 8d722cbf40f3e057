//! The rack that is simulated: what there is, and how long each part of it takes.

use scale::Nanos;
use serde::{Deserialize, Serialize};

use crate::chain::CoreCosts;

/// A rack. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rack {
    /// Cores of each server that packets may have.
    pub servers: Vec<u32>,
    /// What a core costs.
    pub core: CoreCosts,
    /// Bits a second of a server's link.
    pub link: u64,
    /// From the switch to a receive queue and back, without transmission.
    pub wire: Nanos,
    /// Packets that a receive queue holds (fitted: the p99 that Ironside prints of Metron and Quadrant is that of a full one).
    pub ring: usize,
    /// Packets that a software queue holds.
    pub queue: usize,
    /// Buckets of a NIC's table (Ironside §4.3.3: 128 or 512).
    pub buckets: u32,
    /// Traffic classes that the switch tells apart for Metron.
    pub classes: u32,
    /// Entries of the switch for prefixes.
    pub entries: u32,
    /// Until the NIC follows a change of its table (§4.3.3: "millisecond-level").
    pub nic_update: Nanos,
    /// Until the switch follows a change of its rules (§4.4.2: "hundreds of milliseconds").
    pub switch_update: Nanos,
    /// A round trip to the rack's controller (§4.4.2: "extra millisecond-level delays").
    pub controller: Nanos,
    /// Until a core that was added polls.
    pub start: Nanos,
    /// Until an auxiliary core has left its other work.
    pub wake: Nanos,
}

impl Default for Rack {
    /// Ironside's testbed (§4.4.1): five servers of 64 cores at 2.8 GHz with links of 100 Gbps.
    fn default() -> Self {
        Self {
            servers: vec![64; 5],
            core: CoreCosts::default(),
            link: 100_000_000_000,
            wire: 5_000,
            ring: 2048,
            queue: 8192,
            buckets: 512,
            classes: 4096,
            entries: 4096,
            nic_update: 2_000_000,
            switch_update: 200_000_000,
            controller: 1_000_000,
            start: 100_000,
            wake: 2_000,
        }
    }
}

impl Rack {
    /// Cores of all servers.
    pub fn cores(&self) -> u32 {
        self.servers.iter().sum()
    }

    /// The first core of a server.
    pub fn first(&self, server: usize) -> u32 {
        self.servers[..server].iter().sum()
    }
}
