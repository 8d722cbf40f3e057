//! Where a system and its tester are: network namespaces of their own with virtual Ethernet between them, or here.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace that goes with the process that holds it, and that one with this one.
pub(crate) struct Namespace {
    holder: Child,
}

impl Namespace {
    /// # Errors
    /// In words: only root makes namespaces.
    fn new() -> Result<Self, String> {
        let mut command = Command::new("unshare");
        // It ends when its standard input does.
        command.args(["--net", "sh", "-c", "echo; exec cat >&2"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut holder =
            command.spawn().map_err(|e| missing("unshare", "package util-linux", &e))?;
        let mut first = [0];
        let is_there = match &mut holder.stdout {
            Some(out) => out.read_exact(&mut first).is_ok(),
            None => false,
        };
        if !is_there {
            let mut why = String::new();
            holder.stderr.iter_mut().for_each(|err| drop(err.read_to_string(&mut why)));
            let _ = holder.wait();
            return Err(format!("a network namespace: {} (it takes root)", why.trim()));
        }
        Ok(Self { holder })
    }

    fn path(&self) -> String {
        format!("/proc/{}/ns/net", self.holder.id())
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Where programs run.
#[derive(Default)]
pub(crate) struct Netns(Option<Namespace>);

impl Netns {
    /// A network namespace of its own, in which nothing sends packets of its own accord.
    pub(crate) fn new() -> Result<Self, String> {
        let place = Self(Some(Namespace::new()?));
        place.run("sysctl", &["-qw", "net.ipv6.conf.default.disable_ipv6=1"])?;
        Ok(place)
    }

    /// Has the kernel forward nothing there, and hold no nftables rules if a system before `has_rules`: what it does would
    /// count for the next one. Where no namespace was made, nothing is changed.
    pub(crate) fn reset(&self, has_rules: bool) -> Result<(), String> {
        if self.0.is_none() {
            return Ok(());
        }
        self.run("sysctl", &["-qw", "net.ipv4.ip_forward=0", "net.ipv6.conf.all.forwarding=0"])?;
        if has_rules {
            // Without nft, nobody has set any.
            self.run("sh", &["-c", "! command -v nft >&2 || exec nft flush ruleset"])?;
        }
        Ok(())
    }

    /// A command that runs there, in the place of the one that starts it.
    pub(crate) fn command(&self, program: &str) -> Command {
        let Some(namespace) = &self.0 else { return Command::new(program) };
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", namespace.path())).arg(program);
        command
    }

    /// Runs a program there to its end; what it printed.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        finished(self.command(program).args(arguments), program)
    }

    /// Has the calling thread be there.
    pub(crate) fn enter(&self) -> Result<(), String> {
        let Some(namespace) = &self.0 else { return Ok(()) };
        let path = namespace.path();
        let file = std::fs::File::open(&path).map_err(|e| format!("{path}: {e}"))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|e| format!("{path}: {e}"))
    }
}

/// Runs a command to its end; what it printed.
pub(crate) fn finished(command: &mut Command, name: &str) -> Result<String, String> {
    let done = command.stdin(Stdio::null()).output().map_err(|e| format!("{name}: {e}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&done.stderr);
    Err(format!("{name} failed ({}): {}", done.status, why.trim()))
}

/// Why a program does not start; `source` is where to get it.
pub(crate) fn missing(program: &str, source: &str, why: &std::io::Error) -> String {
    match why.kind() {
        std::io::ErrorKind::NotFound => format!("there is no '{program}' on the PATH ({source})"),
        _ => format!("{program}: {why}"),
    }
}

/// A system's namespace and its tester's, with a link for each port.
pub(crate) struct Links {
    pub(crate) system: Netns,
    pub(crate) tester: Netns,
}

/// A port of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Port {
    /// The system's interface.
    pub(crate) interface: String,
    /// The tester's, which is connected to it.
    pub(crate) tester: String,
    /// The system's address: frames that the tester sends are for it.
    pub(crate) address: String,
    pub(crate) tester_address: String,
}

impl Links {
    /// Namespaces with a pair of virtual Ethernet interfaces for each port, of so many queues.
    pub(crate) fn new(ports: &[Port], mtu: usize, queues: usize) -> Result<Self, String> {
        let links = Self { system: Netns::new()?, tester: Netns::new()? };
        let Some(there) = &links.system.0 else { return Ok(links) };
        let there = there.holder.id().to_string();
        let (mtu, queues) = (mtu.to_string(), queues.to_string());
        for port in ports {
            let Port { interface, tester, address, tester_address } = port;
            let common = ["mtu", &mtu, "numrxqueues", &queues, "numtxqueues", &queues];
            let near = ["link", "add", "name", tester, "address", tester_address];
            let far = ["type", "veth", "peer", "name", interface, "netns", &there];
            let address = ["address", address];
            let all = [&near[..], &common, &far, &address, &common].concat();
            links.tester.run("ip", &all)?;
            links.tester.run("ip", &["link", "set", "dev", tester, "up"])?;
            links.system.run("ip", &["link", "set", "dev", interface, "up"])?;
        }
        Ok(links)
    }
}
