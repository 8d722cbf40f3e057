//! `catena bench` over interfaces.

use std::process::{Command, Stdio};

use lab::live::{Network, Process, possible, until};
use rustix::process::Signal;
use serde_json::Value;

use crate::CATENA;

/// What the tester sends has ten flows; packets of one are dropped.
const CHAIN: &str =
    "FromDevice(in) -> Strip(14) -> CheckIPHeader -> IPFilter(deny src port 1024, allow all)
    -> Unstrip(14) -> ToDevice(out);";

fn bench(network: &Network, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(CATENA.0);
    command.current_dir(network.folder()).arg("bench").args(arguments);
    let ended = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

/// Trials are short: what comes out is no measurement, but all of it comes out. What cannot be measured is marked.
#[test]
fn chains_and_other_systems_take_turns_over_virtual_ethernet() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    network.file("a", CHAIN);
    network.file("b", "FromDevice(in) -> ToDevice(out);");
    network.file("broken", "FromDevice(in) -> Nonsense -> ToDevice(out);");
    let (code, out, err) = bench(
        &network,
        &[
            "a.click",
            "--veth",
            "--traffic",
            "gen:flows=10,count=1000,size=64",
            "--trial",
            "0.005",
            "--json",
            "--vs=kernel",
            "--vs=b.click",
            "--vs=broken.click",
            "--vs=fastclick",
        ],
    );
    assert_eq!(code, Some(0), "{out}{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let number = |value: &Value| value.as_f64().unwrap();
    assert!(report["place"].as_str().unwrap().starts_with("over virtual Ethernet"), "{report}");
    // One flow of ten is dropped; of what is sent slowly, a busy machine loses some at times.
    assert!((0.5..0.95).contains(&number(&report["forwarded"])), "{report}");
    assert_eq!(report["throughput"].as_array().unwrap().len(), 2, "{report}");
    let peers = report["peers"].as_array().unwrap();
    let [kernel, other, broken, fastclick] = &peers[..] else { panic!("{report}") };
    for peer in [kernel, other] {
        assert!(peer["failed"].is_null(), "{peer}");
        assert!(number(&peer["forwarded"]) > number(&report["forwarded"]), "{peer}");
        assert_eq!(peer["throughput"].as_array().unwrap().len(), 2, "{peer}");
    }
    assert!(kernel["version"].as_str().unwrap().starts_with("Linux "), "{kernel}");
    assert!(broken["failed"].as_str().unwrap().contains("Nonsense"), "{broken}");
    let why = fastclick["failed"].as_str().unwrap();
    assert!(why.contains("there is no 'click' on the PATH (it is built from"), "{why}");
}

/// The process that another one started whose first argument is this.
fn child(parent: u32, first: &str) -> Option<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{id}/{file}"));
        let is_child = read("status").is_ok_and(|s| s.contains(&format!("\nPPid:\t{parent}\n")));
        is_child && read("cmdline").is_ok_and(|line| line.split('\0').nth(1) == Some(first))
    })
}

/// Nobody is left to end what it started.
#[test]
fn what_it_started_ends_with_it_when_it_is_killed() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    network.file("a", CHAIN);
    let mut command = Command::new(CATENA.0);
    command.current_dir(network.folder()).args(["bench", "a.click", "--veth", "--trial", "60"]);
    let mut bench = command.stdin(Stdio::null()).spawn().unwrap();
    let mut chain = None;
    until("the chain is run", || {
        chain = child(bench.id(), "run");
        chain.is_some()
    });
    bench.kill().unwrap();
    bench.wait().unwrap();
    // Where nobody waits for it, it stays as a zombie.
    let status = format!("/proc/{}/status", chain.unwrap());
    until("the chain has ended", || {
        std::fs::read_to_string(&status).map_or(true, |status| status.contains("State:\tZ"))
    });
}

/// A script that never ends does not keep it from ending, and ends with it.
#[test]
fn an_interrupt_ends_a_peers_script() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    network.file("a", CHAIN);
    let folder = network.folder();
    std::fs::write(folder.join("hang.sh"), "sleep 1000 & echo $! > sleep; wait").unwrap();
    let mut command = Command::new(CATENA.0);
    command.current_dir(folder).args(["bench", "a.click", "--veth", "--trial", "0.001"]);
    command.args(["--vs", "kernel", "--vs-script", "hang.sh"]);
    command.args(["--traffic", "gen:flows=10,count=100"]).stderr(Stdio::piped());
    let mut bench = Process::start(&mut command);
    let mut sleep = String::new();
    until("the script runs", || {
        sleep = std::fs::read_to_string(folder.join("sleep")).unwrap_or_default();
        sleep.ends_with('\n')
    });
    bench.signal(Signal::TERM);
    bench.wait_for("interrupted: nothing is reported");
    let status = format!("/proc/{}/status", sleep.trim());
    until("the script's child has ended", || {
        std::fs::read_to_string(&status).map_or(true, |status| status.contains("State:\tZ"))
    });
}

/// Without a chain, what lies between two interfaces is measured: a bridge.
#[test]
fn whatever_lies_between_is_measured() {
    if !possible() {
        return;
    }
    let network = Network::new(&["left", "middle", "right"]);
    for (host, port, mac) in
        [("left", "eth0", "02:00:00:00:01:01"), ("right", "eth1", "02:00:00:00:01:02")]
    {
        network.link([("middle", port), (host, "veth0")], mac, &[]);
    }
    network.ip("middle", &["link", "add", "br0", "type", "bridge"]);
    for port in ["eth0", "eth1"] {
        network.ip("middle", &["link", "set", port, "master", "br0"]);
    }
    network.ip("middle", &["link", "set", "br0", "up"]);
    // The tester has both ends.
    network.ip("right", &["link", "set", "veth0", "name", "veth1"]);
    network.ip("right", &["link", "set", "veth1", "netns", &network.namespace("left")]);
    network.ip("left", &["link", "set", "veth1", "up"]);
    let measure = |more: &[&str]| {
        let all = ["bench", "--via", "veth0,veth1", "--traffic", "gen:flows=10,count=500"];
        network.try_on("left", CATENA.0, &[&all[..], more].concat())
    };
    let ended = measure(&["--trial", "0.005", "--json"]);
    let report: Value = serde_json::from_slice(&ended.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&ended.stderr)));
    assert_eq!(report["chain"], "veth0 to veth1", "{report}");
    assert!(report["forwarded"].as_f64().unwrap() > 0.8, "{report}");
    network.ip("left", &["link", "set", "veth1", "down"]);
    let ended = measure(&[]);
    let why = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && why.contains("veth1 is down"), "{why}");
}
