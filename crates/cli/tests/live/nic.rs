//! A chain whose stateless part the kernel's XDP does at the interfaces of one host, and a server behind it.

use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use lab::live::{Lab, Process, possible, until};
use serde_json::Value;

use crate::CATENA;
use crate::talk::Talk;

const ROUTER: &str = include_str!("rack.click");

const MTU: usize = 1500;

/// The hosts of a [`Lab`], interfaces between them in the middle, and a server behind these.
pub(crate) struct Nic {
    pub(crate) lab: Lab,
    chain: PathBuf,
    topology: PathBuf,
    pub(crate) socket: PathBuf,
}

impl Nic {
    pub(crate) fn new(chain: &str) -> Self {
        let mut lab = Lab::new(CATENA, MTU);
        for (host, mac) in [("left", "02:00:00:00:01:02"), ("right", "02:00:00:00:02:02")] {
            lab.ip(host, &["link", "set", "veth0", "address", mac]);
            // Programs see checksums as the host leaves them.
            lab.on(host, "ethtool", &["-K", "veth0", "tx", "off"]);
            lab.take_frames(host, "veth0");
        }
        lab.add("server");
        let ends = [("server", "eth0"), ("middle", "up0")];
        lab.link(ends, "02:00:00:00:00:09", &["mtu", &(MTU + 4).to_string()]);
        let namespace = lab.namespace("middle");
        let topology = format!(
            "switches:
  nic:
    target: ebpf
    control: xdp:netns={namespace}
    ports:
      eth0: {{ number: 1 }}
      eth1: {{ number: 2 }}
      up0: {{ number: 3 }}
servers:
  s1: {{ ports: {{ eth0: {{}} }} }}
links: [[nic.up0, s1.eth0]]
wires: {{ left: nic.eth0, right: nic.eth1 }}
"
        );
        let chain = lab.file("chain", chain);
        let rack = lab.folder().join("rack.yaml");
        std::fs::write(&rack, topology).unwrap();
        let socket = lab.folder().join("ctl.sock");
        Self { lab, chain, topology: rack, socket }
    }

    /// Another chain of the same name.
    fn change(&self, from: &str, to: &str) {
        let chain = std::fs::read_to_string(&self.chain).unwrap();
        assert!(chain.contains(from), "{from}");
        std::fs::write(&self.chain, chain.replace(from, to)).unwrap();
    }

    fn programs(&self) -> [Option<u64>; 3] {
        ["eth0", "eth1", "up0"].map(|interface| self.attached(interface))
    }

    fn offload(&self, options: &[&str]) -> Output {
        let mut command = Command::new(CATENA.0);
        command.arg("offload").arg(&self.chain).arg("--topology").arg(&self.topology);
        command.args(options).output().unwrap()
    }

    /// What the command prints, and whether all is as it should be.
    #[track_caller]
    pub(crate) fn told(&self, options: &[&str]) -> (bool, String) {
        let output = self.offload(options);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.stderr.is_empty(), "{options:?}: {}", text(&output.stderr));
        (output.status.success(), text(&output.stdout))
    }

    /// Why the command fails.
    #[track_caller]
    fn refusal(&self, options: &[&str]) -> String {
        let output = self.offload(options);
        assert!(!output.status.success(), "{options:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    pub(crate) fn serve(&self) -> Process {
        let mut command = self.lab.command("server", CATENA.0);
        command.arg("run").arg(&self.chain).arg("--topology").arg(&self.topology);
        command.arg("--control").arg(&self.socket).stdin(Stdio::null());
        let mut server = Process::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        server.wait_for(", mtu ");
        server
    }

    /// What the server counts of an element.
    fn element(&self, name: &str) -> Value {
        let said = CATENA.ctl(&self.socket, &["--json", "counters"]);
        let counters: Value = serde_json::from_str(&said).unwrap();
        let mut all = counters["all"]["elements"].as_array().unwrap().iter();
        all.find(|element| element["name"] == name).unwrap().clone()
    }

    pub(crate) fn count(&self, name: &str, direction: &str) -> u64 {
        self.element(name)[direction]["packets"].as_u64().unwrap()
    }

    /// Frames that an interface in the middle received and sent.
    fn frames(&self, interface: &str) -> [u64; 2] {
        self.frames_of("middle", interface)
    }

    /// Frames that an interface of a host received and sent.
    pub(crate) fn frames_of(&self, host: &str, interface: &str) -> [u64; 2] {
        let shown = self.lab.ip(host, &["-j", "-s", "link", "show", interface]);
        let links: Value = serde_json::from_str(&shown).unwrap();
        ["rx", "tx"].map(|direction| links[0]["stats64"][direction]["packets"].as_u64().unwrap())
    }

    /// The program that is attached to an interface: its number.
    fn attached(&self, interface: &str) -> Option<u64> {
        let shown = self.lab.ip("middle", &["-j", "-d", "link", "show", interface]);
        let links: Value = serde_json::from_str(&shown).unwrap();
        links[0]["xdp"]["prog"]["id"].as_u64()
    }
}

#[test]
fn interfaces_do_their_part_of_a_chain() {
    if !possible() {
        return;
    }
    let nic = Nic::new(ROUTER);
    let (well, none) = nic.told(&["--status"]);
    assert!(!well && none.contains("! no interface has the chain's programs"), "{none}");
    let (_, installed) = nic.told(&["--install"]);
    for interface in ["eth0 (port 1)", "eth1 (port 2)", "up0 (port 3)"] {
        assert!(installed.contains(&format!("{interface}: no program; attached")), "{installed}");
    }
    assert!(nic.told(&["--diff"]).0);
    let programs = nic.programs();
    assert!(programs.iter().all(Option::is_some), "{programs:?}");
    // Nothing differs, so nothing is changed.
    nic.told(&["--install"]);
    assert_eq!(programs, nic.programs());
    let server = nic.serve();
    let lab = &nic.lab;
    lab.ping("left", &["10.1.0.1"]);
    lab.ping("left", &["-s", "1472", "-M", "do", "10.2.0.2"]);
    lab.exchange("10.2.0.2", 300_000);
    let (well, status) = nic.told(&["--status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    let counted = |place: &str| -> u64 {
        let all = status["counted"].as_array().unwrap().iter();
        all.filter(|class| class["where"] == place).filter_map(|c| c["packets"].as_u64()).sum()
    };
    assert!(well && counted("done there") > 100, "{status}");
    // Elements count what the interfaces did, too: every frame came in somewhere, and what is denied is dropped.
    let denied = 5_u64;
    lab.at("left", move || {
        let socket = UdpSocket::bind("10.1.0.2:0").unwrap();
        (0..denied).for_each(|_| assert_eq!(socket.send_to(b"x", "10.2.0.2:9").unwrap(), 1));
    })
    .join()
    .unwrap();
    let [came, left] = ["eth0", "eth1"].map(|interface| nic.frames(interface));
    until("the run counts what interfaces did", || {
        let count = |name: &str, direction: &str| nic.count(name, direction);
        let came_in = [("FromDevice@5", came[0]), ("FromDevice@6", left[0])];
        came_in.iter().all(|(name, frames)| count(name, "in") == *frames)
            && count("ToDevice@8", "out") > 100
            && nic.element("filter")["dropped"].as_object().unwrap().values().any(|n| *n == denied)
    });
    let (_, status) = nic.told(&["--status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    let dropped = status["counted"].as_array().unwrap().iter();
    let dropped =
        dropped.filter(|class| class["ends"].as_str().unwrap().contains("dropped by filter"));
    assert_eq!(dropped.filter_map(|class| class["packets"].as_u64()).sum::<u64>(), denied);
    server.stop();
    let (_, removed) = nic.told(&["--remove"]);
    assert!(removed.contains("programs removed from eth0, eth1, up0"), "{removed}");
    assert_eq!(nic.attached("eth0"), None);
}

/// Connections go on while programs are exchanged, and when one is refused.
#[test]
fn programs_are_exchanged_between_two_frames() {
    if !possible() {
        return;
    }
    let nic = Nic::new(ROUTER);
    nic.told(&["--install"]);
    let server = nic.serve();
    let talk = Talk::begin(&nic.lab, "10.2.0.2", 10);
    talk.go_on(200);
    // Behind it, whatever is not as expected by the device is decided anew.
    for port in 10..15 {
        nic.change(&format!("dst port {}", port - 1), &format!("dst port {port}"));
        let (_, diff) = nic.told(&["--diff"]);
        assert!(diff.contains("of another version; to be replaced"), "{diff}");
        let before = nic.programs();
        let (_, changed) = nic.told(&["--install"]);
        assert!(changed.contains("of another version; replaced"), "{changed}");
        assert!(before.iter().zip(nic.programs()).all(|(before, now)| *before != now));
        talk.go_on(200);
    }
    talk.end();
    // A run that starts has to be the one that the interfaces work for.
    drop(server);
    nic.change("dst port 14", "dst port 15");
    let mut command = nic.lab.command("server", CATENA.0);
    command.arg("run").arg(&nic.chain).arg("--topology").arg(&nic.topology);
    let refused = Process::start(command.stdin(Stdio::null()).stderr(Stdio::piped())).end().2;
    assert!(refused.contains("holds another version of this chain"), "{refused}");
    assert!(refused.contains("eth0 has the chain's program, of another version"), "{refused}");
}

/// Only what is the chain's is touched, and all of it or nothing.
#[test]
fn interfaces_of_others_are_left_alone() {
    if !possible() {
        return;
    }
    let nic = Nic::new(ROUTER);
    nic.lab.take_frames("middle", "eth1");
    let others = nic.programs();
    let refused = nic.refusal(&["--install"]);
    assert!(
        refused.contains("a program of others is attached to 'eth1' (catena, id "),
        "{refused}"
    );
    let (well, status) = nic.told(&["--status"]);
    assert!(!well && status.contains("id ") && status.contains("; conflict"), "{status}");
    assert!(status.contains("has to be removed before --install"), "{status}");
    let (_, removed) = nic.told(&["--remove"]);
    assert!(removed.contains("no program of the chain is there"), "{removed}");
    assert_eq!(nic.programs(), others);
    nic.lab.ip("middle", &["link", "set", "eth1", "xdp", "off"]);
    // The driver refuses the second interface: the first has what it had.
    for (install, before) in [(false, [None; 3]), (true, [None; 3])] {
        if install {
            nic.told(&["--install"]);
            nic.lab.ip("middle", &["link", "set", "eth1", "xdp", "off"]);
            nic.change("dst port 9", "dst port 10");
        }
        let before = if install { nic.programs() } else { before };
        nic.lab.ip("right", &["link", "set", "veth0", "mtu", "9000"]);
        let refused = nic.refusal(&["--install"]);
        assert!(refused.contains("to 'eth1'") && refused.contains("MTU"), "{refused}");
        assert_eq!(nic.programs(), before);
        nic.lab.ip("right", &["link", "set", "veth0", "mtu", "1500"]);
    }
    // What others took away is named.
    let (well, status) = nic.told(&["--status"]);
    assert!(!well && status.contains("eth1 (port 2): no program; to be attached"), "{status}");
    // Another chain's are not this one's.
    let other = nic.lab.file("other", ROUTER);
    nic.told(&["--install"]);
    let nic = Nic { chain: other, ..nic };
    let refused = nic.refusal(&["--install"]);
    assert!(refused.contains("a program of another chain is attached to 'eth0'"), "{refused}");
    // What does not fit is named, with the mend.
    let topology = std::fs::read_to_string(&nic.topology).unwrap();
    for (from, to, expected) in [
        ("      eth1:", "      eth7:", "there is no interface 'eth7'"),
        ("xdp:netns=", "xdp:netns=no", "no network namespace 'no"),
        ("xdp:netns=", "unix:/run/", "takes ebpf, which `control: unix:/run/"),
        ("target: ebpf", "target: ovs", "takes ovs, which `control: xdp:netns="),
    ] {
        let wires = if from.contains("eth1") { ("nic.eth1", "nic.eth7") } else { ("", "") };
        std::fs::write(&nic.topology, topology.replace(from, to).replace(wires.0, wires.1))
            .unwrap();
        let refused = nic.refusal(&["--status"]);
        assert!(refused.contains(expected), "{refused}");
    }
}

/// A rule of a long list is an entry of a map: what the kernel runs stays the same, and still it is noticed.
#[test]
fn other_entries_of_maps_are_noticed() {
    if !possible() {
        return;
    }
    let nic = Nic::new(ROUTER);
    let rules: Vec<String> = (1..200).map(|n| format!("deny src host 10.3.{n}.7")).collect();
    nic.change("IPFilter(", &format!("IPFilter({}, ", rules.join(", ")));
    nic.told(&["--install"]);
    nic.change("10.3.77.7", "10.3.77.9");
    let (well, diff) = nic.told(&["--diff"]);
    assert!(!well && diff.contains(" differ; to be replaced"), "{diff}");
    nic.told(&["--install"]);
    assert!(nic.told(&["--diff"]).0);
}
