//! `vpp`: FD.io's Vector Packet Processing, with a learning bridge domain of interfaces by AF_PACKET.

use std::fmt::Write as _;
use std::path::Path;

use super::{Fabric, NO_CHECKSUMS, Plan, Step, near_end, version_of};
use crate::Failure;

pub(super) struct Vpp;

const PROGRAM: &str = "vpp";

impl Fabric for Vpp {
    fn name(&self) -> String {
        "vpp".into()
    }

    fn summary(&self) -> &'static str {
        "FD.io's VPP: a learning bridge domain of interfaces by AF_PACKET"
    }

    fn has_processes(&self) -> bool {
        true
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some(NO_CHECKSUMS)
    }

    fn look(&self) -> Result<String, String> {
        version_of(PROGRAM, &["-c", "/dev/null", "--version"], "VPP", "packages of fd.io")
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let mut bridge = String::new();
        for port in (0..ports).map(near_end) {
            let _ = writeln!(
                bridge,
                "create host-interface name {port}\n\
                 set interface state host-{port} up\n\
                 set interface l2 bridge host-{port} 1"
            );
        }
        let (commands, configuration) = (at.folder.join("vpp.cli"), at.folder.join("vpp.conf"));
        let folder = at.folder.display();
        // The main thread, which does not forward if there are workers, shares a core with the first of these.
        let first = at.cores.first().copied().unwrap_or_default();
        let workers: Vec<String> = at.cores.iter().skip(1).map(usize::to_string).collect();
        let workers = match workers.is_empty() {
            true => String::new(),
            false => format!(" corelist-workers {}", workers.join(",")),
        };
        let text = format!(
            "unix {{ nodaemon runtime-dir {folder} cli-listen {folder}/vpp.sock exec {} }}\n\
             api-segment {{ prefix catena }}\n\
             cpu {{ main-core {first}{workers} }}\n\
             plugins {{ plugin dpdk_plugin.so {{ disable }} }}\n",
            commands.display()
        );
        let mut vpp = at.namespace.command(Path::new(PROGRAM));
        vpp.arg("-c").arg(&configuration);
        Ok(vec![Step::Write(commands, bridge), Step::Write(configuration, text), Step::Start(vpp)])
    }
}
