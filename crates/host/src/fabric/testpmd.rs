//! `testpmd`: DPDK's forwarding example, which has what comes at a port leave at the other one of its pair.

use std::path::Path;
use std::process::Command;

use super::{
    DPDK_FOLDER, Ends, Fabric, NO_CHECKSUMS, NO_INTERFACES, Plan, Step, fabric_eal, near_end,
    needs_dpdk, telemetry,
};
use crate::process::run;
use crate::{Counters, Failure};

pub(super) struct Testpmd {
    /// Whether its ports are sockets of vhost-user; else they are interfaces, by AF_PACKET.
    is_vhost: bool,
}

impl Testpmd {
    pub(super) const AF_PACKET: Self = Self { is_vhost: false };
    pub(super) const VHOST: Self = Self { is_vhost: true };
}

const PROGRAM: &str = "dpdk-testpmd";

impl Fabric for Testpmd {
    fn name(&self) -> String {
        if self.is_vhost { "testpmd-vhost" } else { "testpmd" }.into()
    }

    fn summary(&self) -> &'static str {
        match self.is_vhost {
            false => "DPDK's testpmd between pairs of ports, over AF_PACKET: it learns nothing",
            true => {
                "DPDK's testpmd between pairs of ports, over vhost-user: for --io virtio-user; it learns nothing"
            }
        }
    }

    fn has_processes(&self) -> bool {
        true
    }

    fn learns(&self) -> bool {
        false
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some(if self.is_vhost { NO_INTERFACES } else { NO_CHECKSUMS })
    }

    fn ends(&self) -> &'static [Ends] {
        if self.is_vhost { &[Ends::Vhost] } else { &[Ends::Interfaces, Ends::Taps] }
    }

    fn counters(&self, folder: &Path, port: usize) -> Result<Option<Counters>, Failure> {
        telemetry::counters(folder, port).map(Some)
    }

    fn look(&self) -> Result<String, String> {
        if self.is_vhost {
            needs_dpdk()?;
        }
        // It ends with an error after it has printed its version and usage, on either output.
        let mut ask = Command::new(PROGRAM);
        ask.args(["-v", "--no-huge", "--no-pci", "--no-telemetry", "--help"]);
        let said = match run(&mut ask, "") {
            Ok(said) | Err(Failure::Command(_, said)) => said,
            Err(_) => return Err(format!("the program {PROGRAM} (Debian: dpdk-dev)")),
        };
        let version = said
            .lines()
            .find_map(|line| line.split('\'').nth(1).filter(|of| of.starts_with("DPDK")));
        Ok(version.unwrap_or("DPDK of an unknown version").into())
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        // The first thread only waits.
        let first = at.cores.first().copied().unwrap_or_default();
        let mut threads = format!("0@{first}");
        for (number, core) in at.cores.iter().enumerate() {
            threads += &format!(",{}@{core}", number + 1);
        }
        let mut command = at.namespace.command(Path::new(PROGRAM));
        command.args(["--lcores", &threads]).args(fabric_eal(at).split(' '));
        for port in 0..ports {
            let device = match self.is_vhost {
                false => format!("net_af_packet{port},iface={}", near_end(port)),
                true => {
                    format!("net_vhost{port},iface={}", self.socket(at.folder, port).display())
                }
            };
            command.args(["--vdev", &device]);
        }
        command.args(["--", "--forward-mode=io", "--port-topology=paired", "--auto-start"]);
        command.args(["--total-num-mbufs=65536", &format!("--nb-cores={}", at.cores.len().max(1))]);
        // Without a period it waits for a key.
        command.args(["--stats-period", "86400"]);
        if self.is_vhost {
            // Applications come later.
            command.arg("--disable-link-check");
        }
        // Its files go with the journal.
        command.env(DPDK_FOLDER, at.folder);
        Ok(vec![Step::Start(command)])
    }
}
