//! `bess`: the Berkeley Extensible Software Switch. Its forwarder learns nothing: it is given the MAC address of each port.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::{Fabric, Plan, Step, mac, near_end, version_of};
use crate::Failure;

pub(super) struct Bess;

const DAEMON: &str = "bessd";
const CONTROL: &str = "bessctl";

impl Fabric for Bess {
    fn name(&self) -> String {
        "bess".into()
    }

    fn summary(&self) -> &'static str {
        "BESS: L2Forward with the MAC addresses of the ports, over DPDK's driver for AF_PACKET; it learns nothing"
    }

    fn has_processes(&self) -> bool {
        true
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn learns(&self) -> bool {
        false
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some("knows addresses that are set beforehand")
    }

    fn look(&self) -> Result<String, String> {
        version_of(DAEMON, &["--version"], "BESS", "built from its source, github.com/NetSys/bess")
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let mut text = String::new();
        for (worker, core) in at.cores.iter().enumerate() {
            let _ = writeln!(text, "bess.add_worker({worker}, {core})");
        }
        text += "switch::L2Forward()\n";
        let workers = at.cores.len().max(1);
        for port in 0..ports {
            let (name, mac) = (near_end(port), mac(port));
            let _ = writeln!(
                text,
                "{name}::PMDPort(vdev='net_af_packet{port},iface={name}')\n\
                 in{port}::PortInc(port={name}) -> switch\n\
                 switch:{port} -> PortOut(port={name})\n\
                 switch.add(entries=[{{'addr': '{mac}', 'gate': {port}}}])\n\
                 in{port}.attach_task(wid={})",
                port % workers
            );
        }
        let script = at.folder.join("switch.bess");
        let mut daemon = at.namespace.command(Path::new(DAEMON));
        daemon.args(["-f", "-no_crashlog", "-m", "0"]);
        let mut run = Command::new("ip");
        run.args(["netns", "exec", &at.namespace.name, CONTROL, "run", "file"]).arg(&script);
        Ok(vec![Step::Write(script, text), Step::Start(daemon), Step::Run(run, String::new())])
    }
}
