//! `ovs`: Open vSwitch as a learning switch, with its userspace datapath, over AF_PACKET, AF_XDP or DPDK.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{
    Ends, Fabric, Joins, NO_CHECKSUMS, NO_INTERFACES, Plan, Site, Step, near_end, needs_dpdk, steps,
};
use crate::ovs::{Access, Bridge, OpenVSwitch, WITH_DPDK};
use crate::process::run;
use crate::{Counters, Failure, Process};

/// Its ports are of a kind.
pub(super) struct Ovs {
    name: &'static str,
    summary: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    AfPacket,
    AfXdp,
    Dpdk,
    Vhost,
}

impl Ovs {
    pub(super) const AF_PACKET: Self = Self {
        name: "ovs",
        summary: "Open vSwitch's userspace datapath, over AF_PACKET",
        kind: Kind::AfPacket,
    };

    pub(super) const AF_XDP: Self = Self {
        name: "ovs-af-xdp",
        summary: "Open vSwitch's userspace datapath, over AF_XDP",
        kind: Kind::AfXdp,
    };

    pub(super) const DPDK: Self = Self {
        name: "ovs-dpdk",
        summary: "Open vSwitch with DPDK, over DPDK's driver for AF_PACKET",
        kind: Kind::Dpdk,
    };

    pub(super) const VHOST: Self = Self {
        name: "ovs-dpdk-vhost",
        summary: "Open vSwitch with DPDK, over vhost-user: for --io virtio-user",
        kind: Kind::Vhost,
    };

    fn access<'a>(&self, cores: &'a [usize]) -> Access<'a> {
        match self.kind {
            Kind::AfPacket => Access::AfPacket,
            Kind::AfXdp => Access::AfXdp(cores),
            Kind::Dpdk => Access::Dpdk(cores),
            Kind::Vhost => Access::Vhost(cores),
        }
    }

    fn ports(count: usize) -> Vec<(String, u32)> {
        (0..count).map(|port| (near_end(port), port as u32 + 1)).collect()
    }
}

fn does(joins: Joins) -> Bridge {
    match joins {
        Joins::All => Bridge::Learning,
        Joins::Pairs => Bridge::Entries,
    }
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
        match self.kind {
            Kind::AfPacket => None,
            Kind::AfXdp | Kind::Dpdk => Some(NO_CHECKSUMS),
            Kind::Vhost => Some(NO_INTERFACES),
        }
    }

    fn ends(&self) -> &'static [Ends] {
        match self.kind {
            Kind::Vhost => &[Ends::Vhost],
            // It has as many queues as links have, and a TAP interface has one.
            Kind::AfXdp => &[Ends::Interfaces],
            Kind::AfPacket | Kind::Dpdk => &[Ends::Interfaces, Ends::Taps],
        }
    }

    fn socket(&self, folder: &Path, port: usize) -> PathBuf {
        // Open vSwitch calls it after the port, among its own files.
        folder.join("ovs").join(near_end(port))
    }

    fn counters(&self, folder: &Path, port: usize) -> Result<Option<Counters>, Failure> {
        OpenVSwitch::at(&folder.join("ovs")).counters(port as u32 + 1)
    }

    fn look(&self) -> Result<String, String> {
        if self.kind == Kind::Vhost {
            needs_dpdk()?;
        }
        OpenVSwitch::is_here().map_err(|why| why.to_string())?;
        let program = match self.kind {
            Kind::Dpdk | Kind::Vhost if !Path::new(WITH_DPDK).exists() => {
                return Err(format!("the program {WITH_DPDK} (Debian: openvswitch-switch-dpdk)"));
            }
            Kind::Dpdk | Kind::Vhost => WITH_DPDK,
            _ => "ovs-vswitchd",
        };
        let said = run(Command::new(program).arg("--version"), "");
        let said = said.map_err(|why| why.to_string())?;
        let mut words = said.lines().filter_map(|line| line.split_whitespace().last());
        let version = words.next().unwrap_or("of an unknown version");
        let with = said.lines().find(|line| line.starts_with("DPDK "));
        let with = with.filter(|_| matches!(self.kind, Kind::Dpdk | Kind::Vhost));
        let with = with.map_or(String::new(), |dpdk| format!(" with {dpdk}"));
        Ok(format!("Open vSwitch {version}{with}"))
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let folder = at.folder.join("ovs");
        let mut switch = OpenVSwitch::at(&folder);
        switch.is_huge = at.is_huge;
        let (ports, access) = (Self::ports(ports), self.access(at.cores));
        let commands = switch.commands(at.namespace, does(at.joins), &ports, access);
        let run = commands.into_iter().map(|command| Step::Run(command, String::new()));
        Ok([Step::Folder(folder)].into_iter().chain(run).collect())
    }

    fn end(&self, folder: &Path, _: &str) -> String {
        // Daemons have written their numbers.
        format!("cat {}/ovs/*.pid | xargs -r kill || true\n", folder.display())
    }

    fn start(&self, at: &Site<'_>, ports: usize) -> Result<Vec<Process>, Failure> {
        steps::execute(self.steps(&at.plan(), ports)?, at)?;
        let switch = OpenVSwitch::at(&at.journal.folder().join("ovs"));
        if at.joins == Joins::Pairs {
            switch.join_pairs(at.journal, ports as u32)?;
        }
        Ok(vec![switch.process()?])
    }
}
