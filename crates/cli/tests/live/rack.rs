//! A chain in a rack: hosts at a switch, and a server behind it that does what the switch does not.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use lab::live::{Lab, MACS, Process, possible, until};
use lab::ovs::Bridge;
use serde_json::Value;

use crate::CATENA;
use crate::talk::{Datagrams, Talk};
use crate::traffic::nat;

const ROUTER: &str = include_str!("rack.click");

/// The MTU of the hosts, and that of the link to the server: frames have a tag there.
const MTU: usize = 1500;
const UPLINK: usize = MTU + 4;

/// The switch's ports.
const LEFT: u32 = 1;
const SERVER: u32 = 3;

/// What may be trusted of frames from hosts that are known.
const TRUST: &str = "lengths, ip-checksum, ip-options";

/// The hosts of a [`Lab`], a switch between them in the middle, and a server behind it.
struct Rack {
    lab: Lab,
    bridge: Bridge,
    chain: PathBuf,
    topology: PathBuf,
    flows: String,
    socket: PathBuf,
    server: Option<Process>,
}

impl Rack {
    fn new(chain: &str, trust: &str, uplink: usize) -> Self {
        let mut lab = Lab::new(CATENA, MTU);
        for (host, mac) in [("left", "02:00:00:00:01:02"), ("right", "02:00:00:00:02:02")] {
            lab.ip(host, &["link", "set", "veth0", "address", mac]);
            // The switch takes checksums that are left to it, but no more than one segment at a time.
            lab.ip(host, &["link", "set", "veth0", "gso_max_segs", "1"]);
        }
        lab.add("server");
        let mtu = uplink.to_string();
        let ends = [("server", "eth0"), ("middle", "up0")];
        lab.link(ends, "02:00:00:00:00:09", &["mtu", &mtu]);
        let bridge = Bridge::start(&lab, "middle", &["eth0", "eth1", "up0"]);
        let topology = format!(
            "switches:
  tor:
    target: ovs
    ports:
      left: {{ number: 1, trust: [{trust}] }}
      right: {{ number: 2, trust: [{trust}] }}
      up: {{ number: 3 }}
servers:
  s1:
    ports:
      eth0: {{}}
links:
  - [tor.up, s1.eth0]
wires:
  left: tor.left
  right: tor.right
"
        );
        let chain = lab.file("chain", chain);
        let rack = lab.folder().join("rack.yaml");
        std::fs::write(&rack, topology).unwrap();
        let folder = lab.folder().join("compiled");
        let mut compile = Command::new(CATENA.0);
        compile.arg("compile").arg(&chain).arg("--topology").arg(&rack).arg("-o").arg(&folder);
        lab::live::network::run(&mut compile);
        let flows = std::fs::read_to_string(folder.join("flows.txt")).unwrap();
        bridge.load(&flows);
        let socket = lab.folder().join("ctl.sock");
        Self { lab, bridge, chain, topology: rack, flows, socket, server: None }
    }

    /// Starts the server; it is ready when it has its programs.
    fn serve(&mut self, arguments: &[&str]) -> &Process {
        let mut command = self.lab.command("server", CATENA.0);
        command.arg("run").arg(&self.chain).arg("--topology").arg(&self.topology);
        command.arg("--control").arg(&self.socket).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut server = Process::start(&mut command);
        server.wait_for(", mtu ");
        self.server.insert(server)
    }

    /// Packets that the server received, by wire, as it counts them itself.
    fn received(&self) -> u64 {
        let said = CATENA.ctl(&self.socket, &["--json", "counters"]);
        let counters: Value = serde_json::from_str(&said).unwrap();
        let all = counters["all"]["elements"].as_array().unwrap().iter();
        all.filter_map(|element| element["in"]["packets"].as_u64()).sum()
    }

    /// Has the topology say where the switch listens. What `ovs-ofctl` loaded there, as nobody's, goes.
    fn say_where(&self) {
        self.bridge.load("");
        let topology = std::fs::read_to_string(&self.topology).unwrap();
        let control = format!("target: ovs\n    control: unix:{}", self.bridge.socket().display());
        std::fs::write(&self.topology, topology.replace("target: ovs", &control)).unwrap();
    }

    /// Gives the switch what it lacks.
    fn install(&self) {
        let mut command = Command::new(CATENA.0);
        command.arg("offload").arg(&self.chain).arg("--topology").arg(&self.topology);
        lab::live::network::run(command.arg("--install"));
    }

    /// Another chain of the same name.
    fn change(&self, from: &str, to: &str) {
        let chain = std::fs::read_to_string(&self.chain).unwrap();
        assert!(chain.contains(from), "{from}");
        std::fs::write(&self.chain, chain.replace(from, to)).unwrap();
    }

    /// Packets that came from a device of the chain, as the server counts them.
    fn came(&self, name: &str) -> u64 {
        let said = CATENA.ctl(&self.socket, &["--json", "counters"]);
        let counters: Value = serde_json::from_str(&said).unwrap();
        let mut all = counters["all"]["elements"].as_array().unwrap().iter();
        all.find(|element| element["name"] == name).unwrap()["in"]["packets"].as_u64().unwrap()
    }

    /// What a ping that gets an error as its answer prints.
    fn error(&self, arguments: &[&str]) -> String {
        let all = [&["-n", "-c", "1", "-W", "5"], arguments].concat();
        String::from_utf8_lossy(&self.lab.try_on("left", "ping", &all).stdout).into_owned()
    }
}

#[test]
fn a_link_without_room_for_tags_is_named() {
    if !possible() {
        return;
    }
    for (mtu, narrow) in [(MTU, true), (UPLINK, false)] {
        let told = Rack::new(ROUTER, "", mtu).serve(&[]).told();
        assert_eq!(told.contains("has no room for tags"), narrow, "{told}");
    }
}

/// The switch decides, and every packet comes to the server with a tag that says what.
#[test]
fn a_switch_that_trusts_nobody_hands_all_packets_to_the_server() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg", "af-packet-ring", "af-packet"] {
        let mut rack = Rack::new(ROUTER, "", UPLINK);
        let told = rack.serve(&["--io", mode]).told();
        assert!(told.contains(&format!(" eth0: {mode}")), "{told}");
        let lab = &rack.lab;
        // Of the router itself, through it, of full length, in fragments, and expired.
        lab.ping("left", &["10.1.0.1"]);
        lab.ping("right", &["10.1.0.2"]);
        lab.ping("left", &["-s", "1472", "-M", "do", "10.2.0.2"]);
        lab.ping("left", &["-s", "4000", "10.2.0.2"]);
        let told = rack.error(&["-t", "1", "10.2.0.2"]);
        assert!(told.contains("Time to live exceeded"), "{told}");
        lab.exchange("10.2.0.2", 300_000);
        let [received, sent] = rack.bridge.packets(SERVER);
        let [from_left, _] = rack.bridge.packets(LEFT);
        assert!(sent > from_left && received > 0, "{received} {sent} {from_left}");
        // Hosts may still send: a last acknowledgement, a question about a neighbour.
        let sent = || rack.bridge.packets(SERVER)[1];
        until("every one is counted", || rack.received() == sent());
    }
}

/// The router without what answers ARP.
fn without_arp() -> String {
    let parts = [
        ("Classifier(12/0806 20/0001, 12/0800, -)", "Classifier(12/0800, -)"),
        ("  kind[0] -> ARPResponder($ip $mac) -> [0] output;\n", ""),
        ("kind[1] ->", "kind[0] ->"),
        ("kind[2] ->", "kind[1] ->"),
    ];
    parts.iter().fold(ROUTER.to_string(), |chain, (part, with)| {
        assert!(chain.contains(part), "{part}");
        chain.replace(part, with)
    })
}

/// Tells the hosts for good whom they send to.
fn lead(lab: &Lab) {
    for (host, gateway, mac) in [("left", "10.1.0.1", MACS[0]), ("right", "10.2.0.1", MACS[1])] {
        let known =
            ["neigh", "replace", gateway, "lladdr", mac, "dev", "veth0", "nud", "permanent"];
        lab.ip(host, &known);
    }
}

/// The switch forwards by itself; what expires comes to the server, which knows what errors are.
#[test]
fn a_switch_that_trusts_hosts_forwards_by_itself() {
    if !possible() {
        return;
    }
    let mut rack = Rack::new(&without_arp(), TRUST, UPLINK);
    lead(&rack.lab);
    // As long as it is alone.
    rack.lab.ping("left", &["-s", "1472", "-M", "do", "10.2.0.2"]);
    rack.lab.ping("left", &["-s", "4000", "10.2.0.2"]);
    rack.lab.exchange("10.2.0.2", 300_000);
    let [_, sent] = rack.bridge.packets(SERVER);
    assert_eq!(sent, 0);
    rack.serve(&[]);
    for _ in 0..3 {
        let told = rack.error(&["-t", "1", "10.2.0.2"]);
        assert!(told.contains("Time to live exceeded"), "{told}");
    }
    rack.lab.ping("left", &["10.1.0.1"]);
    assert_eq!((rack.received(), rack.bridge.packets(SERVER)), (6, [6, 6]));
}

/// A run refuses a switch that has another version of its chain, and counts what its own did.
#[test]
fn a_run_knows_what_its_switch_holds_and_counts() {
    if !possible() {
        return;
    }
    let mut rack = Rack::new(&without_arp(), TRUST, UPLINK);
    rack.say_where();
    lead(&rack.lab);
    let told = rack.serve(&[]).told();
    assert!(told.contains("holds nothing of this chain"), "{told}");
    rack.server.take();
    rack.install();
    let told = rack.serve(&[]).told();
    assert!(told.contains("holds this chain: "), "{told}");
    rack.lab.exchange("10.2.0.2", 100_000);
    let on_wire = |rack: &Rack| rack.bridge.packets(LEFT)[0];
    until("the run counts what the switch did", || rack.came("FromDevice@5") == on_wire(&rack));
    let came = on_wire(&rack);
    // It was restarted and given its entries again: it counts from nothing.
    rack.bridge.kill();
    rack.bridge.start_again();
    rack.install();
    rack.lab.ping("left", &["10.2.0.2"]);
    until("the run counts again", || rack.came("FromDevice@5") >= came + 3);
    rack.server.take();
    // Another rule, and another version.
    rack.change("dst port 9", "dst port 10");
    let mut command = rack.lab.command("server", CATENA.0);
    command.arg("run").arg(&rack.chain).arg("--topology").arg(&rack.topology);
    let refused = Process::start(command.stdin(Stdio::null()).stderr(Stdio::piped())).end().2;
    for text in ["holds another version of this chain", "udp_dst=0x9", "catena offload "] {
        assert!(refused.contains(text), "{text}: {refused}");
    }
}

/// Connections go on when the switch or the server was gone: all that they need is in the chain.
#[test]
fn a_chain_without_state_goes_on_after_crashes() {
    if !possible() {
        return;
    }
    let mut rack = Rack::new(ROUTER, "", UPLINK);
    rack.serve(&[]);
    let talk = Talk::begin(&rack.lab, "10.2.0.2", 10);
    talk.go_on(200);
    for _ in 0..2 {
        rack.bridge.kill();
        rack.bridge.start_again();
        let flows = rack.flows.clone();
        rack.bridge.load(&flows);
        talk.go_on(200);
        rack.server.take().expect("it runs").kill();
        rack.serve(&[]);
        talk.go_on(200);
    }
    talk.end();
}

/// A translator is the server's; addresses of neighbours are found, and found again.
#[test]
fn hundreds_of_connections_are_translated_behind_a_switch() {
    if !possible() {
        return;
    }
    for mode in ["af-xdp", "af-packet-mmsg"] {
        let mut rack = Rack::new(&nat(), "", UPLINK);
        rack.serve(&["--io", mode]);
        rack.lab.ip("right", &["addr", "add", "10.2.0.3/24", "dev", "veth0"]);
        rack.lab.ping("left", &["10.2.0.2"]);
        let talk = Talk::begin(&rack.lab, "10.2.0.2", 200);
        talk.go_on(1000);
        let datagrams = Datagrams::begin(&rack.lab, "10.2.0.2");
        datagrams.go_on(200);
        // The server has the flows: they outlive a switch.
        rack.bridge.kill();
        rack.bridge.start_again();
        let flows = rack.flows.clone();
        rack.bridge.load(&flows);
        talk.go_on(1000);
        talk.end();
        datagrams.end();
        rack.server.take().expect("it runs").kill();
        rack.serve(&["--io", mode]);
        rack.lab.exchange("10.2.0.2", 100_000);
    }
}

/// Connections go on while rules change on the switch and its server, again and again, and both crash in between. A
/// hundred times if `SOAK` is set, as `cargo xtask soak` does.
#[test]
fn soak_rules_change_under_connections() {
    if !possible() {
        return;
    }
    let changes = if std::env::var_os("SOAK").is_some() { 100 } else { 2 };
    let mut rack = Rack::new(ROUTER, "", UPLINK);
    rack.say_where();
    rack.install();
    rack.serve(&[]);
    let talk = Talk::begin(&rack.lab, "10.2.0.2", 20);
    talk.go_on(100);
    for port in 10..10 + changes {
        rack.change(&format!("dst port {},", port - 1), &format!("dst port {port},"));
        // First the server, which decides anew then, and understands old tags and new ones.
        CATENA.ctl(&rack.socket, &["swap", rack.chain.to_str().unwrap()]);
        talk.go_on(20);
        rack.install();
        talk.go_on(20);
        match port % 10 {
            0 => {
                rack.bridge.kill();
                rack.bridge.start_again();
                rack.install();
            }
            1 => {
                rack.server.take().expect("it runs").kill();
                rack.serve(&[]);
            }
            _ => {}
        }
        talk.go_on(20);
    }
    talk.end();
}
