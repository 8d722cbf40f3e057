//! What is measured over interfaces: a chain as `catena run` runs it, or another system that forwards between them.
//!
//! Other systems forward whatever comes in on the first input to the first output, as plainly as they can, unless a
//! script says more: they are a floor for what the interfaces cost, or, with a script, the same function by other means.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use dataplane::clock::Time;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::folder::Folder;
use super::place::{Place, Port, finished, missing};
use crate::stamp::{HostClock, StampClock};

/// A system that a chain is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Another chain, by its file.
    Chain(String),
    /// The kernel's routing.
    Kernel,
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
            "kernel" => Self::Kernel,
            "ovs" => Self::OpenVswitch,
            "testpmd" => Self::Testpmd,
            "fastclick" => Self::FastClick,
            "vpp" => Self::Vpp,
            file => Self::Chain(file.into()),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Chain(file) => file,
            Self::Kernel => "kernel",
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
            Self::Kernel => "routes all packets from the input to the output",
            Self::OpenVswitch => "forwards by one OpenFlow rule, in user space",
            Self::Testpmd => "forwards in io mode, over AF_PACKET",
            Self::FastClick => "runs the same file (this adapter has not been tried yet)",
            Self::Vpp => {
                "cross-connects the interfaces on layer 2, over AF_PACKET (this adapter has not been tried yet)"
            }
        }
    }

    /// The program that tells its version, and where to get it.
    fn program(&self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Chain(_) | Self::Kernel => None,
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
        if *self == Self::Kernel {
            let release = rustix::system::uname().release().to_string_lossy().into_owned();
            return Ok(Some(format!("Linux {release}")));
        }
        let Some((program, source)) = self.program() else { return Ok(None) };
        let output = Command::new(program).arg("--version").stdin(Stdio::null()).output();
        let output = output.map_err(|why| missing(program, source, &why))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // testpmd does not know the option.
        Ok(text.lines().next().map(|line| line.trim().to_string()).filter(|line| !line.is_empty()))
    }
}

/// How `catena run` is called.
#[derive(Clone, Debug)]
pub struct Catena {
    /// The program.
    pub program: PathBuf,
    /// Values of the chain's variables.
    pub variables: Vec<String>,
    /// `--io`, if it is given.
    pub io: Option<String>,
}

/// What is to be started.
pub(crate) enum System<'a> {
    /// A chain, with the names that its elements have for interfaces.
    Chain {
        file: &'a str,
        catena: &'a Catena,
        inputs: &'a [(String, String)],
        outputs: &'a [(String, String)],
        /// Its control socket, if it is to have one.
        control: Option<&'a Path>,
    },
    Peer(&'a Peer),
}

/// Where, and on what, a system is started.
pub(crate) struct Setting<'a> {
    pub(crate) place: &'a Place,
    /// The input first, then the output.
    pub(crate) ports: [&'a Port; 2],
    pub(crate) cores: &'a [usize],
    /// The chain's file, for who can run it, too.
    pub(crate) chain: &'a str,
    /// A script that makes of a peer what the chain is.
    pub(crate) script: Option<&'a Path>,
    /// Whether waiting for the script is to end.
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
}

impl Setting<'_> {
    /// A program that will run there, on the CPUs of the system.
    fn command(&self, program: &str) -> Command {
        let mut command = self.place.command("taskset");
        command.args(["-c", &list(self.cores)]).args(ENDS_WITH_PARENT).arg(program);
        command
    }
}

/// A system that runs until it is dropped; nothing by default.
#[derive(Default)]
pub(crate) struct Running {
    name: String,
    /// With the files that their standard errors go to.
    processes: Vec<(Child, File)>,
    /// What they make goes with it, after they have ended.
    folder: Option<Folder>,
}

/// Has the program whose name follows killed when this one ends, however it ends.
const ENDS_WITH_PARENT: [&str; 3] = ["setpriv", "--pdeathsig", "KILL"];
/// How long a program may take to end when it is told to, in nanoseconds.
const ENDING: u64 = 5_000_000_000;
/// The time between looks whether it has, or is ready.
const LOOK: u64 = 2_000_000;
/// The next host behind a system that routes.
const NEXT: [&str; 2] = ["169.254.254.2", "fe80::2"];

impl Running {
    pub(crate) fn start(system: &System<'_>, setting: &Setting<'_>) -> Result<Self, String> {
        let name = match system {
            System::Chain { file, .. } => (*file).to_string(),
            System::Peer(peer) => peer.to_string(),
        };
        setting.place.stop_forwarding()?;
        let mut running = Self { name, processes: Vec::new(), folder: None };
        match system {
            System::Chain { file, catena, inputs, outputs, control } => {
                let mut command = setting.command(&catena.program.to_string_lossy());
                command.arg("run").arg(file).args(&catena.variables);
                for (option, names) in [("--in", inputs), ("--out", outputs)] {
                    for (name, interface) in *names {
                        // A name may begin with a dash.
                        command.arg(format!("{option}={name}=dev:{interface}"));
                    }
                }
                catena.io.iter().for_each(|io| _ = command.args(["--io", io]));
                command.args(["--cores", &list(setting.cores), "--control"]);
                command.arg(control.unwrap_or(Path::new("none")));
                running.spawn(&mut command, "")?;
            }
            System::Peer(peer) => running.start_peer(peer, setting)?,
        }
        if let (Some(script), System::Peer(_)) = (setting.script, system) {
            let [input, output] = setting.ports;
            let mut command = setting.place.command("sh");
            command.arg("-e").arg(script);
            command.envs([("IN", &input.interface), ("OUT", &output.interface)]);
            command.envs([("IN_MAC", &input.address), ("OUT_MAC", &output.address)]);
            command.env("NEXT_MAC", &output.tester_address);
            running.folder.iter().for_each(|folder| _ = command.env("FOLDER", folder.path()));
            run_script(&mut command, &script.display().to_string(), setting.is_stopped)?;
        }
        Ok(running)
    }

    fn start_peer(&mut self, peer: &Peer, setting: &Setting<'_>) -> Result<(), String> {
        let [input, output] = setting.ports.map(|port| port.interface.as_str());
        match peer {
            // A chain is started as the chain is that it is compared with.
            Peer::Chain(_) => Ok(()),
            Peer::Kernel => route(setting),
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

    /// A folder that goes with it.
    fn folder(&mut self) -> Result<PathBuf, String> {
        let made = Folder::new()?;
        let path = made.path().to_path_buf();
        self.folder = Some(made);
        Ok(path)
    }

    fn spawn(&mut self, command: &mut Command, source: &str) -> Result<(), String> {
        // What is said on a standard error that nobody reads would stop it.
        let unwritten = |e: std::io::Error| format!("a file for messages of {}: {e}", self.name);
        let log = tempfile::tempfile().map_err(unwritten)?;
        let err = log.try_clone().map_err(unwritten)?;
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(err);
        let program = command.get_program().to_string_lossy().into_owned();
        let process = command.spawn().map_err(|why| missing(&program, source, &why))?;
        self.processes.push((process, log));
        Ok(())
    }

    fn wait_for(&mut self, file: &Path) -> Result<(), String> {
        self.wait_until(&file.display().to_string(), || file.exists())
    }

    /// Waits until something is there.
    pub(crate) fn wait_until(
        &mut self,
        what: &str,
        mut is_there: impl FnMut() -> bool,
    ) -> Result<(), String> {
        let clock = HostClock::new(StampClock::Monotonic);
        let end = clock.now() + ENDING;
        while !is_there() {
            self.check()?;
            if clock.now() > end {
                return Err(format!("{}: {what} is not there after 5 s", self.name));
            }
            clock.wait_until(clock.now() + LOOK);
        }
        Ok(())
    }

    /// For how many nanoseconds its threads wanted to run so far, and could not.
    pub(crate) fn waited(&self) -> u64 {
        let threads = |process: &Child| std::fs::read_dir(format!("/proc/{}/task", process.id()));
        let threads = self.processes.iter().filter_map(|(process, _)| threads(process).ok());
        let waited = |thread: std::fs::DirEntry| -> Option<u64> {
            let schedstat = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
            schedstat.split(' ').nth(1)?.parse().ok()
        };
        threads.flatten().flatten().filter_map(waited).sum()
    }

    /// Fails if one of its processes has ended, and says what it said last.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        for (process, log) in &mut self.processes {
            let Ok(Some(status)) = process.try_wait() else { continue };
            let said = text(log);
            return Err(format!("{} ended ({status}): {}", self.name, reason(&said)));
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let clock = HostClock::new(StampClock::Monotonic);
        // Who needs another was started after it.
        for (process, _) in self.processes.iter_mut().rev() {
            if let Some(id) = Pid::from_raw(process.id() as i32)
                && process.try_wait().is_ok_and(|status| status.is_none())
            {
                let _ = kill_process(id, Signal::TERM);
            }
            let end = clock.now() + ENDING;
            while process.try_wait().is_ok_and(|status| status.is_none()) {
                if clock.now() > end {
                    let _ = process.kill();
                    let _ = process.wait();
                    break;
                }
                clock.wait_until(clock.now() + LOOK);
            }
        }
    }
}

/// Runs a script to its end, which may never come.
fn run_script(
    command: &mut Command,
    name: &str,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), String> {
    let explain = |why: std::io::Error| format!("{name}: {why}");
    let mut log = tempfile::tempfile().map_err(explain)?;
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(log.try_clone().map_err(explain)?);
    // What it started is stopped with it.
    let mut script = command.process_group(0).spawn().map_err(explain)?;
    let clock = HostClock::new(StampClock::Monotonic);
    loop {
        match script.try_wait().map_err(explain)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(format!("{name} failed ({status}): {}", text(&mut log).trim()));
            }
            None if is_stopped() => {
                let group = Pid::from_raw(script.id() as i32);
                group.map(|group| kill_process_group(group, Signal::KILL));
                let _ = script.wait();
                return Err(format!("{name} was stopped"));
            }
            None => clock.wait_until(clock.now() + LOOK),
        }
    }
}

/// Why a program ended, of what it said: from its first error on, or its last lines.
fn reason(said: &str) -> String {
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.len().saturating_sub(3);
    let first = lines.iter().position(|line| line.starts_with("error")).unwrap_or(last);
    lines[first..].iter().take(3).copied().collect::<Vec<_>>().join("; ")
}

/// All that was written to a file.
fn text(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
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

/// CPUs as a list for people and programs.
fn list(cores: &[usize]) -> String {
    let all: Vec<String> = cores.iter().map(usize::to_string).collect();
    all.join(",")
}

/// CPUs as a mask of bits.
fn mask(cores: &[usize]) -> u128 {
    cores.iter().filter(|&&cpu| cpu < 128).fold(0, |mask, &cpu| mask | 1 << cpu)
}
