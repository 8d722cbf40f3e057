//! Systems that a chain is compared with, an adapter each.
//!
//! They forward whatever comes in on the first input to the first output, as simply as they can, unless rules or a script say
//! more: they are a floor for what the interfaces cost, or the same function by other means.

use std::fmt;
use std::process::{Command, Stdio};

use super::place::{finished, missing};
use super::system::{ENDS_WITH_PARENT, Running, Setting, mask, run_to_end};

/// A system that a chain is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Another chain, by its file.
    Chain(String),
    /// The kernel's routing, with the rules of an nftables file if there is one.
    Kernel {
        /// What `nft -f` takes.
        rules: Option<String>,
    },
    /// Open vSwitch with its datapath in user space.
    OpenVswitch,
    /// DPDK's testpmd on AF_PACKET devices.
    Testpmd,
    /// FastClick, which gets the same file.
    FastClick,
    /// VPP, which connects the interfaces on layer 2.
    Vpp,
}

impl From<&str> for Peer {
    fn from(text: &str) -> Self {
        match text {
            "kernel" => Self::Kernel { rules: None },
            "ovs" => Self::OpenVswitch,
            "testpmd" => Self::Testpmd,
            "fastclick" => Self::FastClick,
            "vpp" => Self::Vpp,
            other => match other.strip_prefix("kernel:") {
                Some(rules) => Self::Kernel { rules: Some(rules.into()) },
                None => Self::Chain(other.into()),
            },
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chain(file) => file,
            Self::Kernel { rules: None } => "kernel",
            Self::Kernel { rules: Some(file) } => return write!(f, "kernel:{file}"),
            Self::OpenVswitch => "ovs",
            Self::Testpmd => "testpmd",
            Self::FastClick => "fastclick",
            Self::Vpp => "vpp",
        })
    }
}

impl Peer {
    /// What it does with packets.
    pub(crate) fn does(&self) -> &'static str {
        match self {
            Self::Chain(_) => "a chain",
            Self::Kernel { rules: None } => "routes all packets from the input to the output",
            Self::Kernel { rules: Some(_) } => {
                "routes packets from the input to the output, with nftables rules"
            }
            Self::OpenVswitch => "forwards by one OpenFlow rule, in user space",
            Self::Testpmd => "forwards in io mode, over AF_PACKET",
            Self::FastClick => "runs the same file (this adapter has not been tried yet)",
            Self::Vpp => {
                "cross-connects the interfaces on layer 2, over AF_PACKET (this adapter has not been tried yet)"
            }
        }
    }

    /// Whether it leaves nftables rules where it ran.
    pub(crate) fn sets_rules(&self) -> bool {
        matches!(self, Self::Kernel { rules: Some(_) })
    }

    /// The program that tells its version, and where to get it.
    fn program(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Chain(_) | Self::Kernel { rules: None } => None,
            Self::Kernel { rules: Some(_) } => Some(("nft", "package nftables")),
            Self::OpenVswitch => Some(("ovs-vswitchd", "package openvswitch-switch")),
            Self::Testpmd => Some(("dpdk-testpmd", "package dpdk-dev")),
            Self::FastClick => {
                Some(("click", "it is built from https://github.com/tbarbette/fastclick"))
            }
            Self::Vpp => Some(("vpp", "https://fd.io has it")),
        }
    }

    /// Its version, as it tells it.
    ///
    /// # Errors
    /// If its program is not there: how to get it.
    pub(crate) fn version(&self) -> Result<Option<String>, String> {
        let kernel = matches!(self, Self::Kernel { .. })
            .then(|| format!("Linux {}", rustix::system::uname().release().to_string_lossy()));
        let Some((program, source)) = self.program() else { return Ok(kernel) };
        let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|why| missing(program, source, &why))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // testpmd does not know the option.
        let version = text.lines().next().map(str::trim).filter(|line| !line.is_empty());
        let all: Vec<String> = kernel.into_iter().chain(version.map(str::to_string)).collect();
        Ok((!all.is_empty()).then(|| all.join(", ")))
    }
}

/// The next host behind a system that routes.
const NEXT: [&str; 2] = ["169.254.254.2", "fe80::2"];

impl Running {
    /// Starts a system other than a chain.
    pub(super) fn start_peer(&mut self, peer: &Peer, setting: &Setting<'_>) -> Result<(), String> {
        let [input, output] = setting.ports.map(|port| port.interface.as_str());
        match peer {
            // A chain is started as the chain is that it is compared with.
            Peer::Chain(_) => Ok(()),
            Peer::Kernel { rules } => {
                route(setting)?;
                rules.as_deref().map_or(Ok(()), |file| filter(file, setting))
            }
            Peer::OpenVswitch => self.start_switch(setting),
            Peer::Testpmd => {
                let folder = self.folder()?;
                let mut command = setting.command("dpdk-testpmd");
                command.env("RUNTIME_DIRECTORY", &folder);
                let main = setting.cores.first().copied().unwrap_or(0);
                let lcores = (1..).zip(setting.cores).map(|(n, cpu)| format!("{n}@{cpu}"));
                let lcores: Vec<String> =
                    std::iter::once(format!("0@{main}")).chain(lcores).collect();
                command.args(["--no-pci", "--no-telemetry", "--no-huge", "-m", "256"]);
                command.arg("--file-prefix").arg(format!("catena-bench-{}", std::process::id()));
                command.arg("--vdev").arg(format!("net_af_packet0,iface={input}"));
                command.arg("--vdev").arg(format!("net_af_packet1,iface={output}"));
                command.args(["--lcores", &lcores.join(",")]);
                command.args(["--", "--forward-mode=io", "--auto-start", "--total-num-mbufs=8192"]);
                command.arg(format!("--nb-cores={}", setting.cores.len()));
                self.spawn(&mut command, "packages dpdk, dpdk-dev")
            }
            Peer::FastClick => {
                let mut command = setting.command("click");
                command.arg(setting.chain);
                self.spawn(&mut command, "FastClick")
            }
            Peer::Vpp => {
                let folder = self.folder()?;
                let script = folder.join("setup");
                let lines = format!(
                    "create host-interface name {input}\ncreate host-interface name {output}\n\
                     set interface state host-{input} up\nset interface state host-{output} up\n\
                     set interface l2 xconnect host-{input} host-{output}\n\
                     set interface l2 xconnect host-{output} host-{input}\n"
                );
                std::fs::write(&script, lines).map_err(|e| format!("{}: {e}", script.display()))?;
                let main = setting.cores.first().copied().unwrap_or(0);
                let mut command = setting.command("vpp");
                command.arg(format!(
                    "unix {{ nodaemon exec {} cli-listen {} }} cpu {{ main-core {main} }} plugins {{ plugin \
                     dpdk_plugin.so {{ disable }} }}",
                    script.display(),
                    folder.join("cli.sock").display()
                ));
                self.spawn(&mut command, "VPP")
            }
        }
    }

    fn start_switch(&mut self, setting: &Setting<'_>) -> Result<(), String> {
        let folder = self.folder()?;
        let at = |name: &str| folder.join(name).display().to_string();
        let (database, socket) = (at("conf.db"), at("db.sock"));
        let environment = |mut command: Command| {
            for name in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
                command.env(name, &folder);
            }
            command
        };
        let schema = "/usr/share/openvswitch/vswitch.ovsschema";
        finished(Command::new("ovsdb-tool").args(["create", &database, schema]), "ovsdb-tool")?;
        let package = "package openvswitch-switch";
        let [setpriv, options @ ..] = ENDS_WITH_PARENT;
        let mut server = Command::new(setpriv);
        let control = at("server.ctl");
        server.args(options).arg("ovsdb-server").args([
            &database,
            &format!("--remote=punix:{socket}"),
            "--unixctl",
            &control,
        ]);
        self.spawn(&mut environment(server), package)?;
        self.wait_for(&folder.join("db.sock"))?;
        let mut switch = setting.command("ovs-vswitchd");
        switch.args([&format!("unix:{socket}"), "--unixctl", &at("switch.ctl")]);
        self.spawn(&mut environment(switch), package)?;
        let mask = format!("{:x}", mask(setting.cores));
        let mut setup = Command::new("ovs-vsctl");
        setup.args(["--timeout=20", &format!("--db=unix:{socket}"), "init", "--", "set", "open"]);
        setup.args([".", &format!("other_config:pmd-cpu-mask={mask}"), "--", "add-br", "br0"]);
        setup.args(["--", "set", "bridge", "br0", "datapath_type=netdev", "fail-mode=secure"]);
        for (port, number) in setting.ports.into_iter().zip(1..) {
            let interface = &port.interface;
            setup.args(["--", "add-port", "br0", interface, "--", "set", "interface", interface]);
            setup.arg(format!("ofport_request={number}"));
        }
        finished(&mut environment(setup), "ovs-vsctl")?;
        let bridge = folder.join("br0.mgmt");
        self.wait_for(&bridge)?;
        let mut flow = Command::new("ovs-ofctl");
        let rule = "in_port=1,actions=output:2";
        flow.args(["add-flow", &format!("unix:{}", bridge.display()), rule]);
        finished(&mut environment(flow), "ovs-ofctl").map(drop)
    }
}

/// Has the kernel route everything to the output, on the first of the cores.
fn route(setting: &Setting<'_>) -> Result<(), String> {
    let [input, output] = setting.ports;
    let (interface, next) = (&output.interface, &output.tester_address);
    let [next4, next6] = NEXT;
    // The sending CPU would forward otherwise, which is the tester's.
    let script = format!(
        "mount -t sysfs sysfs /sys
         for queue in /sys/class/net/{0}/queues/rx-*; do echo {1:x} > $queue/rps_cpus; done
         for name in all {0} {interface}; do echo 0 > /proc/sys/net/ipv4/conf/$name/rp_filter; done
         for name in {0} {interface}; do echo 0 > /proc/sys/net/ipv6/conf/$name/disable_ipv6; done
         echo 1 > /proc/sys/net/ipv4/ip_forward
         echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
         ip address replace 169.254.254.1/30 dev {interface}
         ip neighbour replace {next4} lladdr {next} dev {interface}
         ip -6 neighbour replace {next6} lladdr {next} dev {interface}
         ip route replace default via {next4} dev {interface} onlink
         ip -6 route replace default via {next6} dev {interface} onlink",
        input.interface,
        mask(setting.cores)
    );
    let mut command = setting.place.command("unshare");
    finished(command.args(["--mount", "sh", "-ec", &script]), "setting up the kernel's routing")
        .map(drop)
}

/// Gives the kernel the nftables rules of a file, which finds the names of the interfaces in `$IN` and `$OUT`.
fn filter(file: &str, setting: &Setting<'_>) -> Result<(), String> {
    let mut command = setting.place.command("nft");
    for (name, port) in ["IN", "OUT"].into_iter().zip(setting.ports) {
        command.arg("--define").arg(format!("{name}={}", port.interface));
    }
    run_to_end(command.args(["--file", file]), "nft", setting.is_stopped)
}
