//! `testpmd`: DPDK's forwarding example, which has what comes at a port leave at the other one of its pair.

use std::process::Command;

use super::{Fabric, NO_CHECKSUMS, Plan, Step, near_end};
use crate::Failure;
use crate::process::run;

pub(super) struct Testpmd;

const PROGRAM: &str = "dpdk-testpmd";

impl Fabric for Testpmd {
    fn name(&self) -> String {
        "testpmd".into()
    }

    fn summary(&self) -> &'static str {
        "DPDK's testpmd between pairs of ports, over AF_PACKET: it learns nothing"
    }

    fn has_processes(&self) -> bool {
        true
    }

    fn learns(&self) -> bool {
        false
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some(NO_CHECKSUMS)
    }

    fn look(&self) -> Result<String, String> {
        // It ends with an error after it has printed its version and usage, on either output.
        let mut ask = Command::new(PROGRAM);
        ask.args(["--version", "--no-huge", "--no-pci", "--no-telemetry", "--help"]);
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
        let mut command = at.namespace.command(std::path::Path::new(PROGRAM));
        command.args(["--lcores", &threads, "--no-pci", "--no-telemetry"]);
        command.args(["--no-huge", "-m", "512", "--file-prefix", "catena"]);
        for port in 0..ports {
            command.args(["--vdev", &format!("net_af_packet{port},iface={}", near_end(port))]);
        }
        command.args(["--", "--forward-mode=io", "--port-topology=paired", "--auto-start"]);
        command.args(["--total-num-mbufs=65536", &format!("--nb-cores={}", at.cores.len().max(1))]);
        // Without a period it waits for a key.
        command.args(["--stats-period", "86400"]);
        // Its files go with the journal.
        command.env("RUNTIME_DIRECTORY", at.folder);
        Ok(vec![Step::Start(command)])
    }
}
