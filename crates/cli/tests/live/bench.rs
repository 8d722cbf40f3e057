//! `catena bench` over interfaces.

use std::process::{Command, Stdio};

use lab::live::{Network, possible};
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
