//! Fabrics: virtual switches between network namespaces, a file each.
//!
//! A fabric runs in a namespace of its own. It has so many ports, and cores that its processes are bound to. What is
//! connected to a port gets an interface, `eth0`, with the MAC address of that port.

mod bess;
mod catena;
mod direct;
mod ipvlan;
mod linux_bridge;
mod macvlan;
mod ovs;
mod snabb;
mod sriov;
mod steps;
mod telemetry;
mod testpmd;
mod vale;
mod vpp;
mod xdp_redirect;

use std::fmt::Write as _;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

pub use steps::{Step, shown};

use crate::process::run;
use crate::{Counters, Failure, Journal, Namespace, Process, log, scheduler};

/// The interface of a namespace that is connected to a port.
pub const INTERFACE: &str = "eth0";

/// Bytes of an IP packet on a link.
const MTU: u32 = 1500;

/// A kind of virtual switch.
pub trait Fabric: Sync + Send {
    /// The name that users know it by.
    fn name(&self) -> String;

    /// What it is, in a few words.
    fn summary(&self) -> &'static str;

    /// Whether it has processes, which want cores of their own; else the kernel switches on the core of who sends.
    fn has_processes(&self) -> bool {
        false
    }

    /// Its version, if it can run here.
    ///
    /// # Errors
    /// What it needs.
    fn look(&self) -> Result<String, String>;

    /// Why packets of a chain of programs cannot go through it, if they cannot.
    fn unfit_for_chains(&self) -> Option<&'static str> {
        None
    }

    /// Whether it learns which addresses are at which port; else it joins two ports.
    fn learns(&self) -> bool {
        true
    }

    /// Whether an interface that is a port in the place of a link is itself what is connected to another port.
    fn is_at(&self, _taken: usize, _port: usize) -> bool {
        false
    }

    /// What its ports can be for who is connected; the first is what they are if nothing else is asked for.
    fn ends(&self) -> &'static [Ends] {
        &[Ends::Interfaces, Ends::Taps]
    }

    /// The socket of a port, if ports are sockets; files are in this folder.
    fn socket(&self, folder: &Path, port: usize) -> PathBuf {
        folder.join(format!("{}.socket", near_end(port)))
    }

    /// The name of an interface in the fabric's namespace that is a port, in the place of a link.
    fn taken(&self, port: usize) -> String {
        near_end(port)
    }

    /// Commands of `ip` in the fabric's namespace that make its ports, but for those that are [taken](Self::taken). The
    /// other end of each is called as `far_end` says, and has the port's MAC address.
    fn links(&self, ports: usize, taken: &[usize]) -> String {
        let mut text = String::new();
        for port in (0..ports).filter(|port| !taken.contains(port)) {
            let (near, far) = (near_end(port), far_end(port));
            let _ = writeln!(
                text,
                "link add name {far} mtu {MTU} {QUEUES} address {} type veth peer name {near} mtu {MTU} {QUEUES}\n\
                 link set dev {near} up",
                mac(port)
            );
        }
        text
    }

    /// Lines of a shell that end what its steps started, in a namespace of this name.
    fn end(&self, _folder: &Path, namespace: &str) -> String {
        match self.has_processes() {
            true => format!("ip netns pids {namespace} | xargs -r kill || true\n"),
            false => String::new(),
        }
    }

    /// What a port that is a socket has received and sent, if the fabric knows now; files are in this folder. Ports that are
    /// interfaces are counted by the kernel: [`Running::counters`] has either.
    ///
    /// # Errors
    /// If the fabric does not answer.
    fn counters(&self, _folder: &Path, port: usize) -> Result<Option<Counters>, Failure> {
        Err(Failure::Impossible(format!("{} does not count port {port}", self.name())))
    }

    /// Whether it runs in Catena's tests. Others are made by the manuals of what they run.
    fn is_tested(&self) -> bool {
        true
    }

    /// What starts it once its links are there, step by step.
    ///
    /// # Errors
    /// If something that is read for it is not there.
    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure>;

    /// Starts it once its links are there; its processes.
    ///
    /// # Errors
    /// What did not start.
    fn start(&self, at: &Site<'_>, ports: usize) -> Result<Vec<Process>, Failure> {
        steps::execute(self.steps(&at.plan(), ports)?, at)
    }
}

/// What a port is for who is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// An interface that its namespace gets.
    Interfaces,
    /// A TAP interface in the fabric's namespace, whose other end is a program.
    Taps,
    /// A socket of vhost-user, where a program has a virtio device.
    Vhost,
    /// A socket of memif, a shared memory interface.
    Memif,
}

impl Ends {
    /// What it is, in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Interfaces => "interfaces",
            Self::Taps => "TAP interfaces",
            Self::Vhost => "sockets of vhost-user",
            Self::Memif => "sockets of memif",
        }
    }

    /// Commands of `ip` in a fabric's namespace that make its ports, but for those that are taken.
    fn links(self, fabric: &dyn Fabric, ports: usize, taken: &[usize]) -> String {
        match self {
            Self::Interfaces => fabric.links(ports, taken),
            Self::Taps => {
                let free = (0..ports).filter(|port| !taken.contains(port)).map(near_end);
                free.map(|name| {
                    format!(
                        "tuntap add dev {name} mode tap\nlink set dev {name} mtu {MTU}\nlink set dev {name} up\n"
                    )
                })
                .collect()
            }
            Self::Vhost | Self::Memif => String::new(),
        }
    }

    /// What a program in a namespace opens to be at a port.
    pub fn opened(self, fabric: &dyn Fabric, folder: &Path, port: usize) -> String {
        match self {
            Self::Interfaces => INTERFACE.into(),
            Self::Taps => near_end(port),
            Self::Vhost | Self::Memif => fabric.socket(folder, port).display().to_string(),
        }
    }
}

/// What it takes to have DPDK.
pub const NEEDS_DPDK: &str =
    "a build with the feature dpdk (`cargo build --release --features catena-cli/dpdk`)";

/// Why a fabric of sockets cannot run in this build, if it cannot: programs at its ports need DPDK, too.
fn needs_dpdk() -> Result<(), String> {
    match dataplane::io::HAS_DPDK {
        true => Ok(()),
        false => Err(NEEDS_DPDK.into()),
    }
}

/// What DPDK is started with in a process of its own, with so many megabytes: no card; pages that programs share as files without a
/// name, huge ones or of the usual size; and no files but the socket of telemetry, if others are to read counters.
pub fn eal(megabytes: u32, is_huge: bool, counts: bool) -> String {
    let pages = if is_huge { "--in-memory --single-file-segments" } else { "--no-huge" };
    let telemetry = if counts { "" } else { " --no-telemetry" };
    format!("--no-pci {pages} -m {megabytes} --no-shconf{telemetry}")
}

/// Megabytes that DPDK has in a fabric, and more that Open vSwitch takes.
pub const MEGABYTES: u32 = 1024;

/// The same for a fabric. What DPDK has of files, the socket of its counters among them, is below [`telemetry::folder`].
fn fabric_eal(at: &Plan<'_>) -> String {
    eal(512, at.is_huge, true)
}

/// Where DPDK makes its folder.
const DPDK_FOLDER: &str = "RUNTIME_DIRECTORY";

/// Where a fabric is, or would be.
#[derive(Clone, Copy, Debug)]
pub struct Plan<'a> {
    /// The folder of its files.
    folder: &'a Path,
    namespace: &'a Namespace,
    /// The cores of its processes.
    cores: &'a [usize],
    /// The program `catena`.
    program: &'a Path,
    joins: Joins,
    /// Whether DPDK is to have huge pages.
    is_huge: bool,
}

/// Why programs cannot be joined by some: interfaces of theirs leave checksums half done.
const NO_CHECKSUMS: &str = "leaves checksums half done that interfaces are to complete";

/// Why programs cannot be joined by some.
const NO_INTERFACES: &str = "has sockets of DPDK's for ports, and no interfaces";

/// Queues of virtual Ethernet: as many as the workers of most.
pub(crate) const LINK_QUEUES: u32 = 4;
const QUEUES: &str = "numrxqueues 4 numtxqueues 4";

/// Between which ports frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joins {
    /// Between all of them: it learns which addresses are at which port.
    All,
    /// Between ports 0 and 1, 2 and 3, and so on.
    Pairs,
}

/// Where a fabric is started.
pub struct Site<'a> {
    journal: &'a Journal,
    namespace: &'a Namespace,
    /// The cores of its processes.
    cores: &'a [usize],
    /// The program `catena`.
    program: &'a Path,
    joins: Joins,
    is_huge: bool,
    /// How long it is waited for.
    go_on: &'a dyn Fn() -> bool,
}

impl<'a> Site<'a> {
    fn plan(&self) -> Plan<'a> {
        let Self { journal, namespace, cores, program, joins, is_huge, .. } = *self;
        Plan { folder: journal.folder(), namespace, cores, program, joins, is_huge }
    }
}

/// The name of a fabric's files in the journal's folder. No NF has it: it has a dot.
const LOG: &str = "the.switch";

/// The MAC address of a port.
pub fn mac(port: usize) -> String {
    format!("02:00:00:00:{:02x}:{:02x}", port >> 8 & 0xff, port & 0xff)
}

/// The interface of the fabric at a port.
fn near_end(port: usize) -> String {
    format!("p{port}")
}

/// The interface at a port that goes to who is connected.
fn far_end(port: usize) -> String {
    format!("f{port}")
}

/// All kinds.
pub fn all() -> Vec<Box<dyn Fabric>> {
    vec![
        Box::new(direct::Direct),
        Box::new(linux_bridge::LinuxBridge),
        Box::new(macvlan::Macvlan),
        Box::new(ipvlan::Ipvlan),
        Box::new(xdp_redirect::XdpRedirect),
        Box::new(ovs::Ovs::AF_PACKET),
        Box::new(ovs::Ovs::AF_XDP),
        Box::new(ovs::Ovs::DPDK),
        Box::new(ovs::Ovs::VHOST),
        Box::new(testpmd::Testpmd::AF_PACKET),
        Box::new(testpmd::Testpmd::VHOST),
        Box::new(catena::Switch::AF_XDP),
        Box::new(catena::Switch::AF_PACKET),
        Box::new(catena::Switch::VHOST),
        Box::new(catena::Switch::MEMIF),
        Box::new(vpp::Vpp),
        Box::new(snabb::Snabb),
        Box::new(bess::Bess),
        Box::new(sriov::Sriov::default()),
        Box::new(vale::Vale),
    ]
}

/// The kind of a name. `catena:FILE` is a chain whose elements have the devices `p0`, `p1` and so on.
///
/// # Errors
/// If there is none, in words.
pub fn find(name: &str) -> Result<Box<dyn Fabric>, String> {
    if let Some(file) = name.strip_prefix("catena:") {
        return match Path::new(file).is_file() {
            true => Ok(Box::new(catena::Switch::chain(file.into()))),
            false => Err(format!("there is no chain {file}")),
        };
    }
    if let Some(interface) = name.strip_prefix("sriov:") {
        return Ok(Box::new(sriov::Sriov::of(interface)));
    }
    let mut all = all();
    let names: Vec<String> = all.iter().map(|fabric| fabric.name()).collect();
    match names.iter().position(|known| known == name) {
        Some(at) => Ok(all.swap_remove(at)),
        None => Err(match ir::nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("there is no switch '{name}': did you mean '{near}'?"),
            None => format!("there is no switch '{name}'; the switches are {}", names.join(", ")),
        }),
    }
}

/// The interface below those of ports.
const BELOW: &str = "below";

/// Commands of `ip` that make ports above one interface, each of what follows its name.
fn above_one(ports: usize, taken: &[usize], of: impl Fn(usize) -> String) -> String {
    // The other end of what is below is of no use.
    let mut text = match taken.is_empty() {
        true => format!(
            "link add name {BELOW} mtu {MTU} type veth peer name other mtu {MTU}\n\
             link set dev {BELOW} up\nlink set dev other up\n"
        ),
        false => String::new(),
    };
    for port in (0..ports).filter(|port| !taken.contains(port)) {
        let _ = writeln!(text, "link add link {BELOW} name {} {}", far_end(port), of(port));
    }
    text
}

/// Whether the kernel makes links by these commands of `ip`, in a namespace that goes at once; its release.
fn kernel_makes(commands: &str, option: &str) -> Result<String, String> {
    let mut command = Command::new("unshare");
    match run(command.args(["--net", "ip", "-batch", "-"]), commands) {
        Ok(_) => {
            let release = std::fs::read_to_string("/proc/sys/kernel/osrelease");
            Ok(format!("Linux {}", release.unwrap_or_default().trim()))
        }
        Err(Failure::Command(_, said)) if said.contains("Unknown device type") => {
            Err(format!("a kernel with {option}"))
        }
        Err(Failure::Command(_, said)) if said.contains("not permitted") => Err("root".into()),
        Err(why) => Err(why.to_string()),
    }
}

/// The version of a program that is run, or that it is needed, and where it comes from.
fn version_of(program: &str, ask: &[&str], name: &str, from: &str) -> Result<String, String> {
    match run(Command::new(program).args(ask), "") {
        Ok(said) | Err(Failure::Command(_, said)) if !said.contains("No such file") => {
            let word =
                said.split_whitespace().find(|word| word.contains(|c: char| c.is_ascii_digit()));
            Ok(format!("{name} {}", word.unwrap_or("of an unknown version")))
        }
        _ => Err(format!("the program {program} ({from})")),
    }
}

/// The ports of a fabric.
#[derive(Clone, Copy, Debug)]
pub struct Ports<'a> {
    /// How many there are.
    pub count: usize,
    /// Ports that interfaces of this host become.
    pub taken: &'a [(usize, String)],
    /// Between which frames go.
    pub joins: Joins,
    /// What they are, but for those that are taken.
    pub ends: Ends,
    /// Whether DPDK is to have huge pages, which are there.
    pub is_huge: bool,
}

impl Ports<'_> {
    /// So many, of a switch that learns addresses.
    pub fn learning(count: usize) -> Self {
        Self { count, taken: &[], joins: Joins::All, ends: Ends::Interfaces, is_huge: false }
    }
}

/// Lines of a shell that would start a fabric, and connect namespaces to its first ports.
///
/// # Errors
/// If something that is read for it is not there.
pub fn lines(
    (fabric, ends): (&dyn Fabric, Ends),
    (folder, name): (&Path, &str),
    connected: &[String],
    cores: &[usize],
    program: &Path,
) -> Result<String, Failure> {
    let namespace = Namespace::planned(name);
    let mut text = String::new();
    for name in connected.iter().map(String::as_str).chain([name]) {
        let _ = writeln!(
            text,
            "ip netns add {name}\nip netns exec {name} sysctl -q -w net.ipv6.conf.default.disable_ipv6=1"
        );
    }
    let ports = connected.len();
    text += &steps::ip(name, &ends.links(fabric, ports, &[]));
    let plan =
        Plan { folder, namespace: &namespace, cores, program, joins: Joins::All, is_huge: false };
    for step in fabric.steps(&plan, ports)? {
        text += &step.lines(name);
    }
    for port in (0..ports).filter(|_| matches!(ends, Ends::Vhost | Ends::Memif)) {
        let socket = steps::quoted(&fabric.socket(folder, port).to_string_lossy());
        let _ = writeln!(text, "while ! test -S {socket}; do sleep 0.1; done");
    }
    for (port, to) in connected.iter().enumerate().filter(|_| ends == Ends::Interfaces) {
        let far = far_end(port);
        let _ = writeln!(text, "ip -n {name} link set dev {far} netns {to}");
        text += &steps::ip(to, &named(&far, INTERFACE));
    }
    Ok(text)
}

/// Commands of `ip` that give an interface that has come to a namespace its name there.
fn named(far: &str, name: &str) -> String {
    format!("link set dev {far} name {name}\nlink set dev {name} up\n")
}

/// A fabric that runs.
#[derive(Debug)]
pub struct Running {
    namespace: Namespace,
    processes: Vec<Process>,
    folder: PathBuf,
}

impl Running {
    /// Starts a fabric in a namespace of this name.
    ///
    /// # Errors
    /// What was not made or did not start; what was is in the journal.
    pub fn start(
        fabric: &dyn Fabric,
        journal: &mut Journal,
        name: &str,
        ports: &Ports<'_>,
        cores: &[usize],
        program: &Path,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Self, Failure> {
        let namespace = journal.namespace(name)?;
        for (port, interface) in ports.taken {
            journal.take_interface(interface, &namespace, &fabric.taken(*port))?;
        }
        let taken: Vec<usize> = ports.taken.iter().map(|(port, _)| *port).collect();
        namespace.ip(journal, &ports.ends.links(fabric, ports.count, &taken))?;
        let Ports { joins, is_huge, .. } = *ports;
        let site = Site { journal, namespace: &namespace, cores, program, joins, is_huge, go_on };
        let processes = fabric.start(&site, ports.count)?;
        if matches!(ports.ends, Ends::Vhost | Ends::Memif) {
            for port in 0..ports.count {
                await_socket(&site, &processes, &fabric.socket(journal.folder(), port))?;
            }
        }
        for process in &processes {
            let bound = process.each_thread(|thread| scheduler::bind(Some(thread), cores));
            bound
                .map_err(|why| Failure::Impossible(format!("cores of {}: {why}", fabric.name())))?;
        }
        let folder = journal.folder().to_path_buf();
        Ok(Self { namespace, processes, folder })
    }

    /// Gives a namespace the interface of a port, under a name.
    ///
    /// # Errors
    /// What `ip` says.
    pub fn connect(
        &self,
        journal: &mut Journal,
        port: usize,
        to: &Namespace,
        name: &str,
    ) -> Result<(), Failure> {
        let far = far_end(port);
        journal.moves_interface(&far, to, name)?;
        self.namespace.ip(journal, &format!("link set dev {far} netns {}", to.name))?;
        to.ip(journal, &named(&far, name))
    }

    /// Gives the namespace of this process the interface of a port, under a name.
    ///
    /// # Errors
    /// If it has one of this name, or what `ip` says.
    pub(crate) fn connect_here(
        &self,
        journal: &Journal,
        port: usize,
        name: &str,
    ) -> Result<(), Failure> {
        let (far, here) = (far_end(port), std::process::id());
        let moved = format!("link set dev {far} netns {here} name {name}");
        self.namespace.ip(journal, &moved).map_err(|why| match why {
            Failure::Command(_, said) if said.contains("File exists") => {
                Failure::Taken(format!("the interface '{name}'"))
            }
            why => why,
        })?;
        run(journal.marked(Command::new("ip")).args(["link", "set", "dev", name, "up"]), "")
            .map(drop)
    }

    /// What who is connected to a port has received and sent: as the kernel counts, where it is an interface or a TAP
    /// interface, and as the fabric does, where it is a socket. Nothing if the fabric does not know.
    ///
    /// # Errors
    /// If nobody says.
    pub fn counters(
        &self,
        (fabric, ends): (&dyn Fabric, Ends),
        port: usize,
        connected: &Namespace,
    ) -> Result<Option<Counters>, Failure> {
        let of_port = match ends {
            Ends::Interfaces => return connected.counters(INTERFACE).map(Some),
            Ends::Taps => Some(self.namespace.counters(&near_end(port))?),
            Ends::Vhost | Ends::Memif => fabric.counters(&self.folder, port)?,
        };
        Ok(of_port.map(|of| Counters { received: of.sent, sent: of.received }))
    }

    /// Its namespace.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The processor time that its processes have taken; nothing of one that has none.
    pub fn cpu_time(&self) -> Option<Duration> {
        let used = || self.processes.iter().map(Process::cpu_time).sum();
        (!self.processes.is_empty()).then(used)
    }

    /// What becomes readable when one of its processes ends.
    pub(crate) fn handles(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.processes.iter().map(Process::handle)
    }

    /// Fails if one of its processes has ended.
    ///
    /// # Errors
    /// What it printed last.
    pub fn check(&self) -> Result<(), Failure> {
        check(&self.processes, &self.folder)
    }
}

/// How long a process may take until it listens.
const PATIENCE: Duration = Duration::from_secs(20);
/// The time between looks whether it does.
const LOOK: Duration = Duration::from_millis(20);

/// Waits until a process of a fabric listens at a socket.
fn await_socket(at: &Site<'_>, processes: &[Process], socket: &Path) -> Result<(), Failure> {
    let begin = Instant::now();
    while !socket.exists() {
        if !(at.go_on)() {
            return Err(Failure::Interrupted);
        }
        check(processes, at.journal.folder())?;
        if begin.elapsed() > PATIENCE {
            let why = format!("the switch does not listen at {}", socket.display());
            return Err(Failure::Impossible(why));
        }
        // It is waited for the first; the others are looked at in each round.
        match processes.first() {
            Some(process) => _ = process.has_ended_within(LOOK),
            None => return Err(ended(None, at.journal.folder())),
        }
    }
    Ok(())
}

/// Fails if one of a fabric's processes has ended.
fn check(processes: &[Process], folder: &Path) -> Result<(), Failure> {
    match processes.iter().find(|process| !process.is_running()) {
        None => Ok(()),
        Some(process) => Err(ended(process.ending(), folder)),
    }
}

/// That a fabric's process ended, and how, if that is known.
fn ended(how: Option<String>, folder: &Path) -> Failure {
    let said = log::tail(folder, LOG).unwrap_or_else(|| "it printed nothing".into());
    let how = how.map_or(String::new(), |how| format!(" ({how})"));
    Failure::Impossible(format!("the switch ended{how}: {said}"))
}
