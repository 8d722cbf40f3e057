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

/// The page's firewall and its nftables rules forward the same packets, rules of one system are gone before the next one starts,
/// and rules that nft refuses are marked.
#[test]
fn the_kernel_is_given_nftables_rules() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/howto-bench.md");
    let page = std::fs::read_to_string(page).unwrap();
    // Each file's name stands in a comment of its first line.
    for name in ["firewall.click", "firewall.rules", "firewall.nft"] {
        let is_named =
            |line: &str| ["// ", "# "].iter().any(|mark| line.strip_prefix(mark) == Some(name));
        let begins = page.lines().position(is_named);
        let lines = page.lines().skip(begins.unwrap()).take_while(|line| *line != "```");
        let text: String = lines.map(|line| line.to_string() + "\n").collect();
        std::fs::write(network.folder().join(name), text).unwrap();
    }
    std::fs::write(network.folder().join("refused.nft"), "table inet a {\n  chian b { }\n}\n")
        .unwrap();
    let (code, out, err) = bench(
        &network,
        &[
            "firewall.click",
            "--veth",
            // As many packets for each rule: two of four allow.
            "--traffic=gen:rules=firewall.rules,flows=400,count=1000",
            "--trial=0.005",
            "--json",
            "--vs=kernel:firewall.nft",
            "--vs=kernel",
            "--vs=kernel:refused.nft",
        ],
    );
    assert_eq!(code, Some(0), "{out}{err}");
    let report: Value = serde_json::from_str(&out).unwrap();
    let peers = report["peers"].as_array().unwrap();
    let [rules, plain, refused] = &peers[..] else { panic!("{report}") };
    let version = rules["version"].as_str().unwrap();
    assert!(version.starts_with("Linux ") && version.contains("nftables"), "{version}");
    // Of what is sent slowly, a busy machine loses some at times.
    for report in [&report, rules] {
        let forwarded = report["forwarded"].as_f64().unwrap();
        assert!((0.3..0.55).contains(&forwarded), "{report}");
    }
    assert!(plain["forwarded"].as_f64().unwrap() > 0.6, "{plain}");
    assert!(plain["remark"].as_str().unwrap().contains("they do not do the same"), "{plain}");
    let why = refused["failed"].as_str().unwrap();
    assert!(why.contains("nft failed") && why.contains("refused.nft:2:"), "{why}");
}

/// Input and output have costs of their own in each I/O mode that is asked for; waiting is none of them.
#[test]
fn costs_of_input_and_output_are_measured_over_interfaces() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    network.file("a", CHAIN);
    let traffic = ["--traffic", "gen:flows=10,count=1000,size=64", "--trial", "0.005"];
    let measure = |more: &[&str]| -> Value {
        let all = [&["a.click", "--veth", "--costs", "c.json", "--json"], &traffic[..], more];
        let (code, out, err) = bench(&network, &all.concat());
        assert_eq!(code, Some(0), "{out}{err}");
        serde_json::from_str(&out).unwrap()
    };
    let profile = measure(&["--io", "af-packet-mmsg"]);
    let [memory, packet] = &profile["io"].as_array().unwrap()[..] else { panic!("{profile}") };
    assert_eq!((&memory["device"], &memory["receive"]), (&"memory".into(), &Value::Null));
    assert_eq!((&packet["device"], &packet["driver"]), (&"af-packet-mmsg".into(), &"veth".into()));
    let loads = ["as given", "as given, 10,000 a second", "frames of 1,518 bytes"];
    for (at, load) in loads.iter().enumerate() {
        let [both, receive, send] = ["cost", "receive", "send"].map(|side| {
            let sample = &packet[side]["samples"][at];
            assert_eq!(sample["traffic"], *load, "{sample}");
            assert!(sample["packets"].as_u64().unwrap() > 0, "{sample}");
            sample["cycles"].as_f64().unwrap()
        });
        assert!(receive > 0.0 && both > 0.0, "{packet}");
        assert!(send == 0.0 || (receive + send - both).abs() < 1e-6 * both, "{packet}");
        assert!(profile["traffic"].as_array().unwrap().contains(&(*load).into()), "{profile}");
    }
    // All modes; what a mode needs may be missing.
    let profile = measure(&[]);
    let measured = profile["io"].as_array().unwrap().len() - 1;
    let missed = profile["remarks"].as_array().unwrap().iter();
    let missed = missed.filter(|r| r.as_str().unwrap().contains(" was not measured: ")).count();
    assert_eq!(measured + missed, 4, "{profile}");
    assert!(measured >= 3, "{profile}");
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

/// What lies in the file system for what it started is removed, whatever ends the measurement.
#[test]
fn folders_go_with_it_when_it_is_killed() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    network.file("a", CHAIN);
    let temporary = network.folder().join("tmp");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(CATENA.0);
    command.current_dir(network.folder()).env("TMPDIR", &temporary);
    command.args(["bench", "a.click", "--veth", "--trial", "0.001", "--costs", "c.json"]);
    command.args(["--traffic", "gen:flows=10,count=100", "--io", "af-packet"]);
    let mut bench = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let mut chain = None;
    until("a chain runs", || {
        chain = child(bench.id(), "run");
        chain.is_some()
    });
    let count = || std::fs::read_dir(&temporary).unwrap().count();
    assert_eq!(count(), 1);
    bench.kill().unwrap();
    bench.wait().unwrap();
    until("the folder is gone", || count() == 0);
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
