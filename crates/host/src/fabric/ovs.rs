//! `ovs`: Open vSwitch as a learning switch, with its userspace datapath, over AF_PACKET or AF_XDP.

use std::process::Command;

use super::{Fabric, Joins, NO_CHECKSUMS, Site, near_end};
use crate::ovs::{Bridge, OpenVSwitch};
use crate::process::run;
use crate::{Failure, Process};

/// Its ports are of a kind.
pub(super) struct Ovs {
    name: &'static str,
    summary: &'static str,
    /// Whether they are by AF_XDP, which threads of its own poll.
    is_xdp: bool,
}

impl Ovs {
    pub(super) const AF_PACKET: Self = Self {
        name: "ovs",
        summary: "Open vSwitch's userspace datapath, over AF_PACKET",
        is_xdp: false,
    };

    pub(super) const AF_XDP: Self = Self {
        name: "ovs-af-xdp",
        summary: "Open vSwitch's userspace datapath, over AF_XDP",
        is_xdp: true,
    };
}

impl Fabric for Ovs {
    fn name(&self) -> String {
        self.name.into()
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn has_processes(&self) -> bool {
        true
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        self.is_xdp.then_some(NO_CHECKSUMS)
    }

    fn look(&self) -> Result<String, String> {
        OpenVSwitch::is_here().map_err(|why| why.to_string())?;
        let said = run(Command::new("ovs-vswitchd").arg("--version"), "");
        let said = said.map_err(|why| why.to_string())?;
        let version = said.lines().next().and_then(|line| line.split_whitespace().last());
        Ok(format!("Open vSwitch {}", version.unwrap_or("of an unknown version")))
    }

    fn start(&self, at: &Site<'_>, ports: usize) -> Result<Vec<Process>, Failure> {
        let ports: Vec<_> = (0..ports).map(|port| (near_end(port), port as u32 + 1)).collect();
        let polls = if self.is_xdp { at.cores } else { &[] };
        let switch = OpenVSwitch::at(&at.journal.folder().join("ovs"));
        let does = match at.joins {
            Joins::All => Bridge::Learning,
            Joins::Pairs => Bridge::Entries,
        };
        switch.start(at.journal, at.namespace, does, &ports, polls)?;
        if at.joins == Joins::Pairs {
            switch.join_pairs(at.journal, ports.len() as u32)?;
        }
        Ok(vec![switch.process()?])
    }
}
