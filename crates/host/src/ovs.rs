//! Open vSwitch with its userspace datapath: a database and a switch of its own, without systemd, and apart from whatever
//! other Open vSwitch runs on the host.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::fabric::{LINK_QUEUES, MEGABYTES};
use crate::process::{needs, run};
use crate::{Counters, Failure, Journal, Namespace, Process};

/// What is run.
const PROGRAMS: [&str; 5] =
    ["ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"];

/// Where Debian has the database's schema.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

const DATABASE: &str = "--db=unix:db.sock";

/// How its ports have frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access<'a> {
    /// By AF_PACKET.
    AfPacket,
    /// By AF_XDP, which threads on these cores poll.
    AfXdp(&'a [usize]),
    /// By DPDK's driver for AF_PACKET, which threads on these cores poll.
    Dpdk(&'a [usize]),
    /// By vhost-user, at sockets in its folder which threads on these cores poll.
    Vhost(&'a [usize]),
}

/// Where Debian has the switch that is built with DPDK.
pub(crate) const WITH_DPDK: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";

/// The file of the switch's number.
const PID: &str = "ovs-vswitchd.pid";

/// What its bridge does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bridge {
    /// It drops everything until it is given entries.
    Entries,
    /// It learns which addresses are at which port.
    Learning,
}

/// The name of the only bridge.
pub(crate) const BRIDGE: &str = "br0";

/// A running switch with one bridge.
#[derive(Debug)]
pub struct OpenVSwitch {
    folder: PathBuf,
    /// Whether DPDK is to have huge pages.
    pub(crate) is_huge: bool,
}

impl OpenVSwitch {
    /// That it can be run here.
    pub(crate) fn is_here() -> Result<(), Failure> {
        needs(&PROGRAMS)
    }

    /// The one whose files are in a folder.
    pub(crate) fn at(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), is_huge: false }
    }

    /// Starts it in a namespace; interfaces there become its ports of these numbers.
    pub(crate) fn start(
        &self,
        journal: &Journal,
        namespace: &Namespace,
        does: Bridge,
        ports: &[(String, u32)],
        access: Access<'_>,
    ) -> Result<(), Failure> {
        std::fs::create_dir(&self.folder).map_err(Failure::at(&self.folder))?;
        for command in self.commands(namespace, does, ports, access) {
            run(&mut journal.marked(command), "")?;
        }
        Ok(())
    }

    /// The commands that start it, once its folder is there.
    pub(crate) fn commands(
        &self,
        namespace: &Namespace,
        does: Bridge,
        ports: &[(String, u32)],
        access: Access<'_>,
    ) -> Vec<Command> {
        let mut create = self.tool("ovsdb-tool");
        create.args(["create", "conf.db", SCHEMA]);
        let daemon = ["--detach", "--no-chdir", "-vconsole:off", "-vsyslog:off"];
        let mut database = self.tool("ovsdb-server");
        database.args(["--remote=punix:db.sock", "--pidfile", "--log-file"]);
        database.args(daemon).arg("conf.db");
        // Hosts leave checksums and segments to their interfaces, and the switch has to be told so.
        // Frames from servers have a tag in front of those that hosts set.
        let mut set = vec!["set".to_string(), "Open_vSwitch".into(), ".".into()];
        if let Access::AfXdp(cores) | Access::Dpdk(cores) | Access::Vhost(cores) = access {
            let mask = cores.iter().fold(0u128, |mask, core| mask | 1 << core);
            set.push(format!("other_config:pmd-cpu-mask={mask:#x}"));
        }
        match access {
            Access::AfPacket => set.push("other_config:userspace-tso-enable=true".into()),
            // Its ports leave nothing to interfaces.
            Access::AfXdp(_) => {}
            Access::Dpdk(_) | Access::Vhost(_) => {
                set.push("other_config:dpdk-init=true".into());
                // Pages of usual size do, as nothing is given to a card.
                let pages = match self.is_huge {
                    true => "--in-memory --single-file-segments",
                    false => "--no-huge --legacy-mem",
                };
                let memory = format!("--no-pci {pages} -m {MEGABYTES} --no-telemetry");
                if matches!(access, Access::Vhost(_)) {
                    // Else those of vhost-user share 262,144 buffers, which are in no cache.
                    set.push("other_config:per-port-memory=true".into());
                }
                set.push(format!("other_config:dpdk-extra={memory}"));
            }
        }
        set.push("other_config:vlan-limit=2".into());
        let mut init = self.tool("ovs-vsctl");
        init.args([DATABASE, "--no-wait", "init", "--"]).args(set);
        let mut vswitchd = self.tool("ip");
        vswitchd.args(["netns", "exec", &namespace.name]);
        match access {
            Access::Dpdk(_) | Access::Vhost(_) => {
                vswitchd.arg(WITH_DPDK).env("RUNTIME_DIRECTORY", &self.folder)
            }
            _ => vswitchd.arg("ovs-vswitchd"),
        };
        vswitchd.args(["--disable-system", &format!("--pidfile={PID}")]);
        vswitchd.arg("--log-file=ovs-vswitchd.log").args(daemon).arg("unix:db.sock");
        let add = ["--timeout=60", "add-br", BRIDGE, "--", "set", "bridge", BRIDGE];
        let mut bridge = self.tool("ovs-vsctl");
        bridge.arg(DATABASE).args(add).arg("datapath-type=netdev");
        bridge.arg(match does {
            Bridge::Entries => "fail-mode=secure",
            Bridge::Learning => "fail-mode=standalone",
        });
        for (at, (name, number)) in ports.iter().enumerate() {
            bridge.args(["--", "add-port", BRIDGE, name, "--", "set", "interface", name]);
            bridge.arg(format!("ofport_request={number}"));
            match access {
                Access::AfPacket => {}
                Access::AfXdp(_) => {
                    bridge.args(["type=afxdp", &format!("options:n_rxq={LINK_QUEUES}")]);
                }
                Access::Dpdk(_) => {
                    let device = format!("options:dpdk-devargs=net_af_packet{at},iface={name}");
                    bridge.args(["type=dpdk", &device]);
                }
                // It listens, so that who is at the port may come and go.
                Access::Vhost(_) => {
                    bridge.arg("type=dpdkvhostuser");
                }
            }
        }
        vec![create, database, init, vswitchd, bridge]
    }

    /// Has what comes at ports 1, 3, and so on leave at the next, and in reverse.
    pub(crate) fn join_pairs(&self, journal: &Journal, ports: u32) -> Result<(), Failure> {
        use std::fmt::Write;
        let mut entries = String::new();
        for port in 1..=ports {
            let to = ((port - 1) ^ 1) + 1;
            let _ = writeln!(entries, "in_port={port},actions=output:{to}");
        }
        let mut add = journal.marked(self.tool("ovs-ofctl"));
        add.args(["add-flows", &format!("unix:{}", self.socket().display()), "-"]);
        run(&mut add, &entries).map(drop)
    }

    /// What the port of this number has received and sent. Nothing if the switch does not say, as that of version 3.1 of vhost-user.
    ///
    /// # Errors
    /// If the switch does not answer.
    pub(crate) fn counters(&self, number: u32) -> Result<Option<Counters>, Failure> {
        let mut ask = self.tool("ovs-ofctl");
        ask.args(["dump-ports", &format!("unix:{}", self.socket().display()), &number.to_string()]);
        let said = run(&mut ask, "")?;
        parse_counters(&said).ok_or_else(|| Failure::Command("ovs-ofctl dump-ports".into(), said))
    }

    /// Where its bridge listens for who installs entries.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!("{BRIDGE}.mgmt"))
    }

    /// The process that forwards.
    pub(crate) fn process(&self) -> Result<Process, Failure> {
        let path = self.folder.join(PID);
        let text = std::fs::read_to_string(&path).map_err(Failure::at(&path))?;
        let process = text.trim().parse().ok().and_then(Process::open);
        process.ok_or_else(|| Failure::Impossible("ovs-vswitchd has ended".into()))
    }

    fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
            command.env(variable, &self.folder);
        }
        command.current_dir(&self.folder);
        command
    }
}

/// The packets of a port in what `ovs-ofctl dump-ports` prints, where a question mark stands for what is not known.
fn parse_counters(said: &str) -> Option<Option<Counters>> {
    let count = |what: &str| {
        let digits = said.split_once(&format!("{what} pkts="))?.1.split(',').next()?;
        if digits == "?" { Some(None) } else { digits.parse().ok().map(Some) }
    };
    let (received, sent) = (count("rx")?, count("tx")?);
    Some(received.zip(sent).map(|(received, sent)| Counters { received, sent }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read() {
        let said = "OFPST_PORT reply (xid=0x2): 1 ports\n  port  \"p0\": rx pkts=2012, bytes=128768, drop=0, errs=0, frame=0, over=0, crc=0\n           tx pkts=12, bytes=768, drop=0, errs=0, coll=0\n";
        let counters = parse_counters(said).unwrap();
        assert_eq!(counters, Some(Counters { received: 2012, sent: 12 }));
        assert_eq!(parse_counters(&said.replace("tx pkts=12", "tx pkts=?")), Some(None));
        assert!(parse_counters(&said.replace("tx pkts=12", "tx pkts=x")).is_none());
        assert!(parse_counters("").is_none());
    }
}
