//! `catena offload`: the split, and installing it on Open vSwitch.

use std::process::{Command, Stdio};

use lab::ovs::Switch;
use serde_json::Value;

use crate::program::Folder;

const CHAIN: &str = "\
FromDevice(lan) -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader
  -> f :: IPFilter(deny src net 10.9.0.0/16,
                   allow tcp dst port 80,
                   allow udp dst port 53,
                   deny all)
  -> rt :: RadixIPLookup(10.0.0.0/8 0, 20.0.0.0/8 1);
rt[0] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> Queue -> ToDevice(wan);
rt[1] -> DecIPTTL -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:03) -> Queue -> ToDevice(dmz);
FromDevice(wan) -> Discard;
";

/// A rack with a switch that listens there.
fn rack(control: &str) -> String {
    format!(
        "\
switches:
  tor:
    target: ovs
{control}
    ports:
      lan: {{ number: 1, trust: [lengths, ip-checksum, ip-options] }}
      wan: {{ number: 2 }}
      dmz: {{ number: 3 }}
      up: {{ number: 4 }}
servers:
  s1: {{ ports: {{ eth0: {{}} }} }}
links: [[tor.up, s1.eth0]]
wires: {{ lan: tor.lan, wan: tor.wan, dmz: tor.dmz }}
"
    )
}

fn folder(switch: &Switch) -> Folder {
    let folder = Folder::new();
    let control = format!("    control: unix:{}", switch.socket().display());
    folder.file("fw.click", CHAIN).file("rack.yaml", rack(&control));
    folder
}

const OFFLOAD: [&str; 4] = ["offload", "fw.click", "--topology", "rack.yaml"];

fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    OFFLOAD.iter().copied().chain(options.iter().copied()).collect()
}

/// All entries of a switch, without what changes by itself.
fn entries(switch: &Switch) -> Vec<String> {
    let text = switch.flows(&["--no-stats", "dump-flows", "br0"]);
    let mut all: Vec<String> = text.lines().map(|line| line.trim().to_string()).collect();
    all.sort();
    all
}

#[test]
fn the_split_needs_no_switch() {
    let folder = Folder::new();
    folder.file("fw.click", CHAIN).file("rack.yaml", rack(""));
    let shown = folder.run(with(&[]));
    for text in
        ["lan → tor  13 classes: 7 done there", "tor ↔ s1.eth0", "leaves by wan", "leaves by dmz"]
    {
        assert!(shown.well().contains(text), "{text}: {}", shown.out);
    }
    let json = |folder: &Folder| -> Value {
        serde_json::from_str(folder.run(with(&["--json"])).well()).expect("JSON")
    };
    let trusting = json(&folder);
    assert_eq!((&trusting["switch"], &trusting["server"]), (&"tor".into(), &"s1.eth0".into()));
    assert_eq!(trusting["tags"].as_array().map(Vec::len), Some(0));
    // Where nothing is trusted, all is handed over.
    let strict = rack("").replace(", trust: [lengths, ip-checksum, ip-options]", "");
    folder.file("rack.yaml", strict);
    let tag = &json(&folder)["tags"][0];
    assert_eq!(tag["vlan_id"], 1);
    assert!(tag["means"].as_str().is_some_and(|means| means.contains("fw.click:2")), "{tag}");
    let no_address = folder.run(with(&["--install"]));
    assert!(
        no_address
            .refused()
            .contains("rack.yaml: 'tor' does not say where it is reached: add `control:"),
        "{}",
        no_address.err
    );
}

/// `explain` follows a packet over switch and server, and the split is drawn.
#[test]
fn the_split_is_followed_and_drawn() {
    let folder = Folder::new();
    folder.file("fw.click", CHAIN).file("rack.yaml", rack(""));
    let explain = |packet: &str, option: &[&str]| {
        let words = ["explain", "fw.click", "--topology", "rack.yaml", "--packet", packet];
        folder.run(words.iter().chain(option))
    };
    let done = explain("udp 10.0.0.1:5000 > 20.0.0.1:53", &[]);
    for text in [
        "tor  comes in from lan (port 1)",
        "● f (fw.click:2)",
        "ip_dst=20.0.0.0/255.0.0.0,actions=",
        "leaves by dmz (port 3): no core sees it",
    ] {
        assert!(done.well().contains(text), "{text}: {}", done.out);
    }
    // What is left to cores has a tag, and is decided there.
    folder.file("rack.yaml", rack("").replace(", trust: [lengths, ip-checksum, ip-options]", ""));
    let left = explain("udp 10.0.0.1:5000 > 20.0.0.1:53", &[]);
    for text in [
        "→ to cores with VLAN ID ",
        "s1.eth0  a core goes on by VLAN ID ",
        "● CheckIPHeader@4 (fw.click:1)",
        "leaves by dmz (port 3)",
    ] {
        assert!(left.well().contains(text), "{text}: {}", left.out);
    }
    let json = explain("udp 10.0.0.1:5000 > 20.0.0.1:53", &["--json"]);
    let json: Value = serde_json::from_str(json.well()).expect("JSON");
    assert!(json["rack"][0]["vlan_id"].as_u64().is_some_and(|tag| tag > 0), "{}", json["rack"]);
    folder.run(with(&["--svg", "split.svg", "--theme", "light"])).well();
    let drawn = folder.read("split.svg");
    for text in
        ["<svg ", ">tor</text>", ">s1.eth0</text>", ">lan</text>", "VLAN ID 1", "lengths are not"]
    {
        assert!(drawn.contains(text), "{text}: {drawn}");
    }
    let both = folder.run(with(&["--svg", "split.svg", "--status"]));
    assert!(both.err.contains("cannot be used with"), "{}", both.err);
}

#[test]
fn a_chain_is_installed_changed_and_removed() {
    let mut switch = Switch::start(4);
    switch.flows(&["add-flow", "br0", "table=9,priority=3,actions=drop"]);
    let before = entries(&switch);
    let folder = folder(&switch);
    let none = folder.run(with(&["--status"]));
    assert_eq!(none.code, Some(1));
    assert!(none.out.contains("the switch has none of the chain's entries"), "{}", none.out);
    assert_eq!(folder.run(with(&["--diff"])).code, Some(1));
    let installed = folder.run(with(&["--install"]));
    assert!(installed.well().contains(" entries added, 0 changed, 0 removed, 0 as they were"));
    let there = entries(&switch);
    let same = format!("0 entries added, 0 changed, 0 removed, {} as they were", there.len() - 1);
    for option in ["--diff", "--install"] {
        assert!(folder.run(with(&[option])).well().contains(&same), "{option}");
    }
    assert_eq!(entries(&switch), there);
    // A rule's numbers change: so do its entries.
    folder.file("fw.click", CHAIN.replace("udp dst port 53", "udp dst port 54"));
    let diff = folder.run(with(&["--diff", "--json"]));
    assert_eq!(diff.code, Some(1));
    let json: Value = serde_json::from_str(&diff.out).expect("JSON");
    let count = |what: &str| json[what].as_array().map_or(0, Vec::len);
    let (added, changed, removed) = (count("added"), count("changed"), count("removed"));
    assert!(added > 0 && added == removed && changed == 0, "{}", diff.out);
    let all = |what: &str, text: &str| {
        let mut all = json[what].as_array().into_iter().flatten();
        all.all(|of| of.to_string().contains(text))
    };
    assert!(all("added", "udp_dst=0x36") && all("removed", "udp_dst=0x35"), "{}", diff.out);
    assert!(
        json["added"][0]["origin"].as_str().is_some_and(|o| o.contains("fw.click:4")),
        "{}",
        diff.out
    );
    folder.run(with(&["--install"])).well();
    // What others do is named, and set right.
    switch.flows(&["mod-flows", "br0", "table=0,in_port=1,actions=drop"]);
    let edited = folder.run(with(&["--status"]));
    assert_eq!(edited.code, Some(1));
    assert!(
        edited.out.contains("1 changed") && edited.out.contains("actions=drop\n+ "),
        "{}",
        edited.out
    );
    folder.run(with(&["--install"])).well();
    folder.run(with(&["--status"])).well();
    switch.kill();
    let dead = folder.run(with(&["--status"]));
    assert!(dead.refused().contains("is ovs-vswitchd running"), "{}", dead.err);
    switch.start_again();
    let forgot = folder.run(with(&["--status"]));
    assert!(
        forgot.out.contains("it was restarted") && forgot.out.contains("first fragments"),
        "{}",
        forgot.out
    );
    switch.flows(&["add-flow", "br0", "table=9,priority=3,actions=drop"]);
    folder.run(with(&["--install"])).well();
    // What does not even parse can be removed.
    folder.file("fw.click", "FromDevice(");
    let removed = folder.run(with(&["--remove"]));
    assert!(removed.well().contains(" entries removed"), "{}", removed.out);
    assert_eq!(entries(&switch), before);
    assert!(folder.run(with(&["--remove"])).well().contains("0 entries removed"));
}

/// A frame of TCP to port 80 of an address.
fn frame(to: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 0, 0, 0, 64, 6, 0, 0, 10, 1, 0, 2]);
    frame.extend(to);
    frame.extend([0x40, 0, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
    frame.resize(60, 0);
    let sum: u32 = frame[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[test]
fn packets_are_counted_by_class() {
    let mut switch = Switch::start(4);
    let folder = folder(&switch);
    // Puts an entry there by which the lab tells frames apart: one of others.
    switch.load("");
    let installed = folder.run(with(&["--install"]));
    assert_eq!(installed.code, Some(0), "{}", installed.err);
    assert!(
        installed.err.contains("an entry of others may take packets before that of"),
        "{}",
        installed.err
    );
    let frames: Vec<Vec<u8>> =
        [[20, 0, 0, 1], [20, 0, 0, 2], [10, 0, 0, 1]].into_iter().map(frame).collect();
    let sent = switch.send(1, &frames);
    let ports: Vec<u32> = sent.iter().flatten().map(|sent| sent.port).collect();
    assert_eq!(ports, [3, 3, 2]);
    switch.settle();
    let status = folder.run(with(&["--status", "--json"]));
    let json: Value = serde_json::from_str(&status.out).expect("JSON");
    let packets = |ends: &str| -> u64 {
        let all = json["counted"].as_array().into_iter().flatten();
        let of = all.filter(|c| c["ends"].as_str().is_some_and(|e| e.starts_with(ends)));
        of.filter_map(|class| class["packets"].as_u64()).sum()
    };
    assert_eq!((packets("leaves by dmz"), packets("leaves by wan")), (2, 1), "{}", status.out);
}

#[test]
fn what_a_switch_is_not_is_named() {
    let switch = Switch::start(3);
    let folder = folder(&switch);
    let missing = folder.run(with(&["--install"]));
    let err = missing.refused();
    assert!(err.contains("'tor.up' is port 4 in the topology; the switch has 1 (p1)"), "{err}");
    assert_eq!(entries(&switch), Vec::<String>::new());
    folder.file("rack.yaml", rack("    control: unix:/nonexistent/br0.mgmt"));
    for option in ["--install", "--diff", "--status", "--remove"] {
        let nobody = folder.run(with(&[option]));
        assert!(nobody.refused().contains("there is no such socket"), "{option}: {}", nobody.err);
    }
    folder.file("rack.yaml", rack("    control: br0"));
    let wrong = folder.run(with(&["--status"]));
    assert!(wrong.refused().contains("rack.yaml:4:"), "{}", wrong.err);
    for both in [["--install", "--remove"], ["--status", "--diff"]] {
        assert_eq!(folder.run(with(&both)).code, Some(2));
    }
}

/// Whenever it is killed, the switch has the old entries or the new ones.
#[test]
fn a_killed_installation_leaves_the_old_or_the_new() {
    let switch = Switch::start(4);
    let folder = folder(&switch);
    let rules = |port: u32| -> String {
        let all: Vec<String> = (0..300)
            .map(|n| format!("allow tcp dst port {port} && dst host 20.0.{}.{}", n / 200, n % 200))
            .collect();
        CHAIN.replace("allow tcp dst port 80", &all.join(",\n"))
    };
    let chains = [rules(80), rules(443)];
    let states = chains.clone().map(|chain| {
        folder.file("fw.click", chain);
        folder.run(with(&["--install"])).well();
        entries(&switch)
    });
    assert_ne!(states[0], states[1]);
    let (mut now, mut seen) = (1, [0, 0]);
    for round in 0u32..24 {
        folder.file("fw.click", &chains[1 - now]);
        let mut command: Command =
            folder.command(std::path::Path::new(env!("CARGO_BIN_EXE_catena")));
        let mut child = command.args(with(&["--install"])).stdin(Stdio::null()).spawn().unwrap();
        // Later each time; what it is at does not matter.
        for _ in 0..round * 3 {
            entries(&switch);
        }
        let _ = child.kill();
        child.wait().unwrap();
        let mut there = entries(&switch);
        if there != states[now] {
            // The switch may still be at what it was sent last.
            there = entries(&switch);
        }
        let state = states.iter().position(|state| *state == there);
        let state = state.unwrap_or_else(|| panic!("{} entries of both", there.len()));
        seen[usize::from(state != now)] += 1;
        now = state;
    }
    println!("old {}, new {}", seen[0], seen[1]);
}
