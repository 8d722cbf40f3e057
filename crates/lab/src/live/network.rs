//! Hosts: network namespaces with links between them, which go with the test or bench that made them.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use codegen::ebpf::insn::{EXIT, set};
use codegen::ebpf::{Code, Object};
use dataplane::io::{Links, Loaded, XdpMode};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A verdict: the kernel goes on with the frame.
const XDP_PASS: i32 = 2;

/// MAC addresses of the two interfaces of the host in the middle.
pub const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

/// Why no namespaces can be made here.
pub fn impossible() -> Option<&'static str> {
    if !rustix::process::geteuid().is_root() {
        Some("network namespaces are made by root")
    } else if Command::new("ip").arg("-V").output().is_err() {
        Some("there is no program 'ip' (package iproute2)")
    } else {
        None
    }
}

/// Runs a program to its end; what it printed.
#[track_caller]
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}{text}");
    text
}

/// Hosts, and a folder for their files.
pub struct Network {
    name: String,
    hosts: Vec<String>,
    folder: PathBuf,
}

impl Network {
    /// Makes hosts without links.
    pub fn new(hosts: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catena{}n{count}", std::process::id());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut network = Self { name, hosts: Vec::new(), folder };
        hosts.iter().for_each(|host| network.add(host));
        network
    }

    /// Adds a host without links.
    pub fn add(&mut self, host: &str) {
        self.hosts.push(host.to_string());
        run(Command::new("ip").args(["netns", "add", &self.namespace(host)]));
        // No packets of IPv6's own accord: every frame on the links is one of the test's.
        let off = "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6";
        self.on(host, "sh", &["-c", off]);
    }

    /// Connects interfaces of two hosts, of which the first gets a MAC address. Both get the options of `ip link add`.
    pub fn link(&self, ends: [(&str, &str); 2], mac: &str, options: &[&str]) {
        let [(near, near_interface), (far, far_interface)] = ends;
        let (near_host, far_host) = (self.namespace(near), self.namespace(far));
        let first = ["link", "add", near_interface, "netns", &near_host, "address", mac];
        let second = ["type", "veth", "peer", "name", far_interface, "netns", &far_host];
        run(Command::new("ip").args(first).args(options).args(second).args(options));
        for (host, interface) in ends {
            self.ip(host, &["link", "set", interface, "up"]);
        }
    }

    /// Has the kernel take frames of an interface as they come, by a program for XDP that lets all pass. A veth at the other
    /// end only gets rid of frames that its own program sends back or redirects if there is one here, too.
    pub fn take_frames(&self, host: &str, interface: &str) {
        let words = vec![set(0, XDP_PASS), EXIT];
        let code = Code { name: "pass".into(), section: "xdp".into(), words, maps: Vec::new() };
        let object = Object { maps: Vec::new(), programs: vec![code] };
        let interface = interface.to_string();
        let attach = move || {
            let (mut links, loaded) = (Links::new().unwrap(), Loaded::new(&object).unwrap());
            let there = links.get(&interface).unwrap().expect("the interface");
            links.attach(there.index, XdpMode::Driver, (&loaded, 0), None).unwrap();
        };
        self.at(host, attach).join().expect("it is attached");
    }

    /// The name of a host's namespace.
    pub fn namespace(&self, host: &str) -> String {
        format!("{}{host}", self.name)
    }

    /// Runs `ip` on a host.
    #[track_caller]
    pub fn ip(&self, host: &str, arguments: &[&str]) -> String {
        run(Command::new("ip").args(["-n", &self.namespace(host)]).args(arguments))
    }

    /// A program that will run on a host, in the place of `ip`.
    pub fn command(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), program]);
        command
    }

    /// Runs a program on a host.
    #[track_caller]
    pub fn on(&self, host: &str, program: &str, arguments: &[&str]) -> String {
        run(self.command(host, program).args(arguments))
    }

    /// Runs a program on a host; it may fail.
    pub fn try_on(&self, host: &str, program: &str, arguments: &[&str]) -> Output {
        let output = self.command(host, program).args(arguments).output();
        output.unwrap_or_else(|e| panic!("{program}: {e}"))
    }

    /// Has the calling thread be on a host.
    pub fn enter(&self, host: &str) {
        enter(&self.namespace(host));
    }

    /// Does something on a host, in a thread of its own.
    pub fn at<T: Send + 'static>(
        &self,
        host: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let namespace = self.namespace(host);
        std::thread::spawn(move || {
            enter(&namespace);
            work()
        })
    }

    /// Writes a configuration; its path.
    pub fn file(&self, name: &str, chain: &str) -> PathBuf {
        let file = self.folder.join(format!("{name}.click"));
        std::fs::write(&file, chain).unwrap();
        file
    }

    /// The folder of the test's files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for host in &self.hosts {
            let _ = Command::new("ip").args(["netns", "del", &self.namespace(host)]).output();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Has the calling thread be in a namespace.
pub fn enter(namespace: &str) {
    let namespace = File::open(format!("/run/netns/{namespace}")).unwrap();
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
}
