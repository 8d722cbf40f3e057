//! Plans on racks of namespaces: chains that share a switch, and the server behind it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use lab::live::network::run;
use lab::live::{PATIENCE, Process, bytes, possible, until};
use serde_json::Value;

use crate::CATENA;
use crate::namespaces::{Rack, said};

pub(crate) const FUNCTIONS: &str = include_str!("../../../../examples/lab/functions.click");

pub(crate) const RACK: &str = "\
switches:
  XXtor:
    target: ovs
    control: unix:CONTROL
    ports:
      left: { number: 1, trust: [lengths, ip-checksum, ip-options, mtu] }
      right: { number: 2, trust: [lengths, ip-checksum, ip-options, mtu] }
      up: { number: 3, trust: [lengths, ip-checksum, ip-options, mtu] }
servers:
  s1:
    netns: XXs1
    cores: 2
    clock: 2.1 GHz
    ports: { eth0: { rate: 10 Gbps, delay: 5 us } }
links: [[XXtor.up, s1.eth0]]
wires: { XXleft: XXtor.left, XXright: XXtor.right }
hosts:
  XXleft: { addresses: [10.1.0.2/24, 10.8.0.2/24], gateway: 10.1.0.1, mac: 02:00:00:00:01:02 }
  XXright: { addresses: [10.2.0.2/24, 10.99.0.1/24], gateway: 10.2.0.1, mac: 02:00:00:00:02:02 }
";

pub(crate) const HEAD: &str = "\
packet: 700 bytes
require: [functions.click]
";

/// That the switch does all of.
pub(crate) const ROUTER: &str = "  - name: router
    chain: |
      XXleft -> there :: Side(10.1.0.1, 02:00:00:00:00:01, 02:00:00:00:00:02, 02:00:00:00:02:02) -> XXright;
      XXright -> back :: Side(10.2.0.1, 02:00:00:00:00:02, 02:00:00:00:00:01, 02:00:00:00:01:02) -> XXleft;
      there[1] -> XXleft;
      back[1] -> XXright
    traffic:
      - { in: XXleft, out: XXright, src: 10.1.0.0/24 }
      - { in: XXright, out: XXleft, dst: 10.1.0.0/24 }
      - { in: XXright, dst: 10.2.0.1/32 }
    slo: { min: 100 Mbps, max: 1 Gbps }
";

/// A translator, that is the server's.
pub(crate) const NAT: &str = "  - name: nat-8
    chain: |
      nat :: Nat(10.8.0.1, 02:00:00:00:00:01, 02:00:00:00:01:02, 10.2.0.8, 02:00:00:00:00:08, 02:00:00:00:02:02);
      XXleft -> nat -> XXleft;
      XXright -> [1] nat [1] -> XXright
    traffic:
      - { in: XXleft, out: XXright, src: 10.8.0.0/24 }
      - { in: XXright, dst: 10.2.0.8/32 }
    slo: { min: 100 Mbps, max: 1 Gbps }
";

/// Both. Whose a frame is, its addresses say.
fn chains() -> String {
    format!("{HEAD}chains:\n{ROUTER}{NAT}")
}

/// Two translators, for which there is room on two servers; on one there is for the least that they need.
fn two() -> String {
    let nat = NAT.replace("100 Mbps, max: 1 Gbps", "1 Gbps, max: 6 Gbps");
    let other = nat.replace('8', "9");
    format!("{HEAD}functions: {{ nat: {{ cycles: 1000 }} }}\nchains:\n{nat}{other}")
}

pub(crate) fn deploy(plan: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(CATENA.0);
    command.arg("deploy").arg(plan).args(arguments).stdin(Stdio::null());
    command
}

#[track_caller]
fn refused(plan: &Path, text: &str) {
    refused_with(plan, &[], text);
}

#[track_caller]
fn refused_with(plan: &Path, arguments: &[&str], text: &str) {
    let output: Output = deploy(plan, arguments).output().unwrap();
    assert!(!output.status.success() && said(&output).contains(text), "{text}: {}", said(&output));
}

/// A rack that is made, and the plan of its chains.
fn planned(name: &str, chains: &str) -> (Rack, std::path::PathBuf) {
    planned_on(RACK, name, chains)
}

pub(crate) fn planned_on(topology: &str, name: &str, chains: &str) -> (Rack, std::path::PathBuf) {
    let mut rack = Rack::write(name, topology).make();
    rack.write_beside("functions.click", FUNCTIONS);
    let manifest = rack.write_beside("chains.yaml", chains);
    let plan = rack.place(&manifest);
    (rack, plan)
}

/// Does something in a namespace.
pub(crate) fn at<T: Send + 'static>(
    namespace: String,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    std::thread::spawn(move || {
        lab::live::network::enter(&namespace);
        work()
    })
}

/// Sends bytes from the left to an address of the right, and back.
fn exchange(rack: &Rack, address: &'static str, count: usize) {
    let (to, from) = channel();
    let server = at(rack.namespace("right"), move || {
        let listener = TcpListener::bind((address, 0)).unwrap();
        to.send(listener.local_addr().unwrap()).unwrap();
        let (mut stream, peer) = listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut received = vec![0; count];
        stream.read_exact(&mut received).unwrap();
        stream.write_all(&received).unwrap();
        peer.ip().to_string()
    });
    let client = at(rack.namespace("left"), move || {
        let mut stream = TcpStream::connect_timeout(&from.recv().unwrap(), PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&bytes(count)).unwrap();
        let mut received = vec![0; count];
        stream.read_exact(&mut received).unwrap();
        received
    });
    assert!(client.join().expect("an answer") == bytes(count), "bytes changed in transit");
    let peer = server.join().expect("a connection");
    let known = match address {
        "10.99.0.1" => "10.2.0.8",
        "10.99.1.1" => "10.2.0.9",
        _ => "10.1.0.2",
    };
    assert_eq!(peer, known);
}

pub(crate) fn chain<'v>(status: &'v Value, name: &str) -> &'v Value {
    let mut all = status["chains"].as_array().unwrap().iter();
    all.find(|chain| chain["name"] == name).unwrap()
}

#[test]
fn two_chains_share_a_switch_and_a_server() {
    if !possible() {
        return;
    }
    let (rack, plan) = planned("e", &chains());
    let told = run(&mut deploy(&plan, &[]));
    for text in ["there on switch, back on switch", "nat on s1", "--down` takes it back"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    refused(&plan, "is deployed already");
    run(&mut rack.within("left", "ping", &["-n", "-c", "3", "-i", "0.01", "-w", "20", "10.2.0.2"]));
    let through = ["route", "add", "10.99.0.0/24", "via", "10.8.0.1", "src", "10.8.0.2"];
    run(&mut rack.within("left", "ip", &through));
    // More than one core has flows of the translator.
    for _ in 0..4 {
        exchange(&rack, "10.99.0.1", 100_000);
    }
    exchange(&rack, "10.2.0.2", 100_000);
    // Both chains are seen, each with its own packets, wherever they were processed.
    let mut flood = rack.within("left", "ping", &["-q", "-n", "-i", "0.002", "10.2.0.2"]);
    let flood = Process::start(flood.stdout(Stdio::null()));
    let mut status = Value::Null;
    until("the router's packets are counted", || {
        let said = deploy(&plan, &["--status", "--json", "--for", "100 ms"]).output().unwrap();
        status = serde_json::from_slice(&said.stdout).unwrap();
        chain(&status, "router")["out"].as_f64().unwrap() > 0.0
    });
    drop(flood);
    assert_eq!(chain(&status, "nat-8")["in"], 0.0, "{status}");
    assert!(rack.entries() > 20);
    let down = run(&mut deploy(&plan, &["--down"]));
    assert!(down.contains("1 process of servers ended"), "{down}");
    assert_eq!(rack.entries(), 0);
    assert_eq!(run(&mut deploy(&plan, &["--down"])), "nothing is deployed there\n");
}

#[test]
fn a_plan_for_something_else_is_refused() {
    if !possible() {
        return;
    }
    let chains = chains();
    let (rack, plan) = planned("f", &chains);
    rack.write_beside("functions.click", &FUNCTIONS.replace("DecIPTTL -> ", ""));
    refused(&plan, "functions.click changed; place anew");
    rack.write_beside("functions.click", FUNCTIONS);
    rack.write_beside("chains.yaml", &chains.replace("100 Mbps", "110 Mbps"));
    refused(&plan, "chains.yaml changed; place anew");
    rack.write_beside("chains.yaml", &chains);
    let topology = std::fs::read_to_string(&rack.file).unwrap();
    std::fs::write(&rack.file, topology.replace("10 Gbps", "11 Gbps")).unwrap();
    refused(&plan, "changed; place anew");
    std::fs::write(&rack.file, topology).unwrap();
    let text = std::fs::read_to_string(&plan).unwrap();
    let cores = text.replace("\"cores\": 2", "\"cores\": 3");
    assert_ne!(cores, text);
    std::fs::write(&plan, cores).unwrap();
    refused(&plan, "the plan does not hold");
    std::fs::write(&plan, "{}").unwrap();
    refused(&plan, "missing field");
    // Both take whatever comes from the left.
    let both = chains.replace("    traffic:\n", "    on: {}\n    traffic:\n");
    let both = both.replace(", src: 10.1.0.0/24", "").replace(", src: 10.8.0.0/24", "");
    let manifest = rack.write_beside("both.yaml", &both);
    let mut rack = rack;
    let plan = rack.place(&manifest);
    refused(&plan, "chains 'router' and 'nat-8' both take all frames from wire");
    assert_eq!(rack.entries(), 0);
}

/// A server that does not start, and a switch that leaves to cores what is planned there.
#[test]
fn all_is_taken_back_if_anything_fails() {
    if !possible() {
        return;
    }
    let (mut rack, plan) = planned("g", &chains());
    run(&mut rack.within("s1", "ip", &["link", "del", "eth0"]));
    refused(&plan, "server 's1' does not run");
    assert_eq!(rack.entries(), 0);
    let down = run(&mut deploy(&plan, &["--down"]));
    assert_eq!(down, "nothing is deployed there\n");
    // What comes back from the translator is not trusted.
    let topology = std::fs::read_to_string(&rack.file).unwrap();
    let doubted = topology.replace("3, trust: [lengths, ip-checksum, ip-options, mtu]", "3");
    assert_ne!(doubted, topology);
    std::fs::write(&rack.file, doubted).unwrap();
    let manifest = rack.write_beside("bounce.yaml", BOUNCE);
    let plan = rack.place(&manifest);
    refused(&plan, "`trust:` of the port that leads to 's1'");
    std::fs::write(&rack.file, topology + "limits: { nat: 1 Gbps }\n").unwrap();
    let plan = rack.place(&manifest);
    refused(&plan, "`limits:` is not for plans");
    assert_eq!(rack.entries(), 0);
}

/// A translator on cores, and a router on the switch behind it.
const BOUNCE: &str = "\
packet: 700 bytes
require: [functions.click]
chains:
  - name: both
    chain: |
      XXleft -> nat :: Nat(10.8.0.1, 02:00:00:00:00:01, 02:00:00:00:01:02, 10.2.0.8, 02:00:00:00:00:08, 02:00:00:00:02:02);
      nat[1] -> side :: Side(10.2.0.1, 02:00:00:00:00:02, 02:00:00:00:00:08, 02:00:00:00:02:02) -> XXright;
      nat -> XXleft;
      side[1] -> XXright;
      XXright -> [1] nat
    traffic: [{ in: XXleft, out: XXright, src: 10.8.0.0/24 }]
    on: { side: [switch] }
    slo: { infinite-pipe: 10 Mbps }
";

#[test]
fn packets_come_back_from_cores_to_the_switch() {
    if !possible() {
        return;
    }
    let (rack, plan) = planned("i", BOUNCE);
    let told = run(&mut deploy(&plan, &[]));
    assert!(told.contains("nat on s1, side on switch"), "{told}");
    let through = ["route", "add", "10.99.0.0/24", "via", "10.8.0.1", "src", "10.8.0.2"];
    run(&mut rack.within("left", "ip", &through));
    // The router takes no answers of ARP from the translator.
    let neighbour = ["neigh", "add", "10.2.0.8", "lladdr", "02:00:00:00:00:08", "dev", "eth0"];
    run(&mut rack.within("right", "ip", &neighbour));
    exchange(&rack, "10.99.0.1", 100_000);
    // They met the entry for packets that come back, and none was left to the server a second time.
    until("they are counted", || rack.packets("dl_vlan=4094 ") >= 60);
    let said = deploy(&plan, &["--status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(chain(&status, "both")["dropped"], serde_json::json!({}), "{status}");
    // The same chain as another plan: it replaces what is deployed, and nothing changes.
    let text = std::fs::read_to_string(&plan).unwrap();
    std::fs::write(&plan, text.replace("\"policy\": \"improved\"", "\"policy\": \"mine\""))
        .unwrap();
    let told = run(&mut deploy(&plan, &[]));
    assert!(told.contains("\ns1 runs on, untouched\n"), "{told}");
    assert!(told.contains("0 entries added"), "{told}");
    exchange(&rack, "10.99.0.1", 1000);
}

/// Has the left reach an address of the right by each of the two translators; the addresses.
pub(crate) fn routed(rack: &Rack) -> [&'static str; 2] {
    for (of, via, source) in [("0", "10.8.0.1", "10.8.0.2"), ("1", "10.9.0.1", "10.9.0.2")] {
        let network = format!("10.99.{of}.0/24");
        let through = ["route", "add", &network, "via", via, "src", source];
        run(&mut rack.within("left", "ip", &through));
    }
    ["10.99.0.1", "10.99.1.1"]
}

#[test]
fn a_server_that_fails_is_replaced_by_another() {
    if !possible() {
        return;
    }
    let topology = RACK
        .replace("  s1:", "  s2: { netns: XXs2, cores: 2, clock: 2.1 GHz, ports: { eth0: { rate: 10 Gbps, delay: 5 us } } }\n  s1:")
        .replace("servers:", "      other: { number: 4 }\nservers:")
        .replace("s1.eth0]]", "s1.eth0], [XXtor.other, s2.eth0]]")
        .replace("10.8.0.2/24", "10.8.0.2/24, 10.9.0.2/24")
        .replace("10.99.0.1/24", "10.99.0.1/24, 10.99.1.1/24");
    let (rack, plan) = planned_on(&topology, "k", &two());
    let told = run(&mut deploy(&plan, &[]));
    assert!(told.contains("nat on s1") && told.contains("nat on s2"), "{told}");
    let all = routed(&rack);
    all.iter().for_each(|address| exchange(&rack, address, 50_000));
    // Each server sees packets of its own chain alone.
    let output = deploy(&plan, &["--status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(status["wrong"], serde_json::json!([]), "{status}");
    rack.end_server("s2");
    let manifest = rack.folder().join("chains.yaml");
    let next = rack.place_from(&manifest, &plan, &["--down", "s2"]);
    let told = run(&mut deploy(&next, &[]));
    assert!(told.contains("nat on s1") && !told.contains("nat on s2"), "{told}");
    all.iter().for_each(|address| exchange(&rack, address, 50_000));
    // The plan has a backup for each single failure, made beforehand.
    let told = run(&mut deploy(&plan, &["--failed", "s1"]));
    assert!(told.contains("nat on s2") && !told.contains("nat on s1"), "{told}");
    all.iter().for_each(|address| exchange(&rack, address, 50_000));
    refused_with(&plan, &["--failed", "s1"], "deployed already");
    // And back to the plan itself.
    let told = run(&mut deploy(&plan, &[]));
    assert!(told.contains("nat on s1") && told.contains("nat on s2"), "{told}");
    all.iter().for_each(|address| exchange(&rack, address, 50_000));
    // Another rack whose file has the same name.
    let (text, folder) = (std::fs::read_to_string(&plan).unwrap(), rack.folder().to_str().unwrap());
    let file = rack.file.to_str().unwrap();
    let other = text.replace(file, &file.replacen(folder, "/another", 1));
    let other = rack.write_beside("other.json", &other);
    refused(&other, "rename one of both files");
    refused_with(&other, &["--down"], "rename one of both files");
    let output = deploy(&plan, &["--failed", "s3"]).output().unwrap();
    assert!(said(&output).contains("no backup for the failure of 's3'"), "{}", said(&output));
}

/// Opens a connection from the left to an address of the right, where all is sent back.
fn open(rack: &Rack, address: &'static str) -> TcpStream {
    let (to, from) = channel();
    at(rack.namespace("right"), move || {
        let listener = TcpListener::bind((address, 0)).unwrap();
        to.send(listener.local_addr().unwrap()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        std::io::copy(&mut &stream, &mut &stream)
    });
    let connect = move || TcpStream::connect_timeout(&from.recv().unwrap(), PATIENCE).unwrap();
    let stream = at(rack.namespace("left"), connect).join().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[track_caller]
fn comes_back(mut stream: &TcpStream, count: usize) {
    stream.write_all(&bytes(count)).unwrap();
    let mut received = vec![0; count];
    stream.read_exact(&mut received).expect("an answer");
    assert!(received == bytes(count), "bytes changed in transit");
}

#[test]
fn servers_that_do_the_same_by_another_plan_run_on() {
    if !possible() {
        return;
    }
    let server = |name: &str| {
        format!(
            "  {name}: {{ netns: XX{name}, cores: 2, clock: 2.1 GHz, ports: {{ eth0: {{ rate: 10 Gbps, delay: 5 us }} }} }}\n"
        )
    };
    let port =
        |text: &str| format!("      {text}, trust: [lengths, ip-checksum, ip-options, mtu] }}\n");
    let topology = RACK
        .replace("  s1:", &(server("s2") + &server("s3") + "  s1:"))
        .replace(
            "servers:",
            &(port("other: { number: 4") + &port("third: { number: 5") + "servers:"),
        )
        .replace("s1.eth0]]", "s1.eth0], [XXtor.other, s2.eth0], [XXtor.third, s3.eth0]]")
        .replace("10.8.0.2/24", "10.8.0.2/24, 10.9.0.2/24")
        .replace("10.99.0.1/24", "10.99.0.1/24, 10.99.1.1/24");
    // What leaves a translator comes back to the switch, by a wire that has the server's name.
    let filter = "filter :: Filter(deny tcp dst port 25, allow all)";
    let filtered = two()
        .replace("nat [1] -> XXright", &format!("nat [1] -> {filter} -> XXright"))
        .replace("    traffic:", "    on: { filter: [switch] }\n    traffic:");
    let (rack, plan) = planned_on(&topology, "l", &(filtered + ROUTER));
    let told = run(&mut deploy(&plan, &[]));
    assert!(told.contains("nat on s1") && told.contains("nat on s2"), "{told}");
    let all = routed(&rack);
    // A translator that is started anew would give the connection the port of the first one.
    exchange(&rack, all[1], 1000);
    let stream = open(&rack, all[1]);
    comes_back(&stream, 50_000);
    let text = std::fs::read_to_string(&plan).unwrap();
    let next =
        rack.write_beside("next.json", &text.replace("\"host\": \"s1\"", "\"host\": \"s3\""));
    let told = run(&mut deploy(&next, &[]));
    for text in ["\ns3 started\n", "\ns1 ended: nothing is planned there\n", "\ns2 ", "nat on s3"] {
        assert!(told.contains(text), "{text}: {told}");
    }
    assert!(!told.contains("s2 restarted") && !told.contains("away"), "{told}");
    comes_back(&stream, 50_000);
    all.iter().for_each(|address| exchange(&rack, address, 50_000));
    // What the switch does alone is counted by the first server, which is another one now.
    let mut flood = rack.within("left", "ping", &["-q", "-n", "-i", "0.002", "10.2.0.2"]);
    let flood = Process::start(flood.stdout(Stdio::null()));
    until("the router's packets are counted", || {
        let said = deploy(&next, &["--status", "--json", "--for", "100 ms"]).output().unwrap();
        let status: Value = serde_json::from_slice(&said.stdout).unwrap();
        chain(&status, "router")["out"].as_f64().unwrap() > 0.0
    });
    drop(flood);
    // If the first plan cannot be restored, all is as it was.
    run(&mut rack.within("s1", "ip", &["link", "del", "eth0"]));
    refused(&plan, "server 's1' does not run");
    comes_back(&stream, 50_000);
    all.iter().for_each(|address| exchange(&rack, address, 50_000));
    refused(&next, "deployed already");
}

#[test]
fn a_deployment_that_was_cut_short_is_taken_back_by_the_next() {
    if !possible() {
        return;
    }
    let (rack, plan) = planned("h", &chains());
    // So it is left by a process that is killed while it compiles. No process has this number.
    let left = format!("/run/catena/deploy/.{}.4194305", rack.name);
    std::fs::create_dir_all(&left).unwrap();
    for is_down in [true, false] {
        let process = Process::start(deploy(&plan, &[]).stdout(Stdio::null()));
        until("entries are there", || rack.entries() > 0);
        process.kill();
        if is_down {
            run(&mut deploy(&plan, &["--down"]));
            assert_eq!(rack.entries(), 0);
        }
    }
    // It may have been done before it was killed: then it is there.
    let _ = deploy(&plan, &[]).output().unwrap();
    run(&mut rack.within("left", "ping", &["-n", "-c", "1", "-w", "20", "10.2.0.2"]));
    assert!(!Path::new(&left).exists());
}
