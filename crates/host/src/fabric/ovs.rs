//! `ovs`: Open vSwitch as a learning switch, with its userspace datapath.

use std::process::Command;

use super::{Fabric, Joins, Site, near_end};
use crate::ovs::{Bridge, OpenVSwitch};
use crate::process::run;
use crate::{Failure, Process};

pub(super) struct Ovs;

impl Fabric for Ovs {
    fn name(&self) -> String {
        "ovs".into()
    }

    fn summary(&self) -> &'static str {
        "Open vSwitch's userspace datapath, over AF_PACKET"
    }

    fn has_processes(&self) -> bool {
        true
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
        let switch = OpenVSwitch::at(&at.journal.folder().join("ovs"));
        let does = match at.joins {
            Joins::All => Bridge::Learning,
            Joins::Pairs => Bridge::Entries,
        };
        switch.start(at.journal, at.namespace, does, &ports)?;
        if at.joins == Joins::Pairs {
            switch.join_pairs(at.journal, ports.len() as u32)?;
        }
        Ok(vec![switch.process()?])
    }
}
