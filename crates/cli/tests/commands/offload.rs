//! `catena offload`: the split, and installing it on Open vSwitch.

use std::process::{Command, Stdio};

use lab::live::until;
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
    // Puts an entry there by which the lab distinguishes frames: one of others.
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
    let counted = || -> [u64; 2] {
        let status = folder.run(with(&["--status", "--json"]));
        let json: Value = serde_json::from_str(&status.out).expect("JSON");
        ["leaves by dmz", "leaves by wan"].map(|ends| {
            let all = json["counted"].as_array().into_iter().flatten();
            let of = all.filter(|c| c["ends"].as_str().is_some_and(|e| e.starts_with(ends)));
            of.filter_map(|class| class["packets"].as_u64()).sum()
        })
    };
    // A busy switch may lose frames, and count those before.
    until("the switch lost no frame", || {
        let before = counted();
        let sent = switch.try_send(1, &frames);
        switch.settle();
        let Some(sent) = sent else { return false };
        let ports: Vec<u32> = sent.iter().flatten().map(|sent| sent.port).collect();
        assert_eq!(ports, [3, 3, 2]);
        let after = counted();
        assert_eq!([after[0] - before[0], after[1] - before[1]], [2, 1]);
        true
    });
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

/// TCP is the first server's, and comes back to be routed; UDP is the second's.
const BACK: &str = "\
FromDevice(lan) -> kind :: Classifier(12/0800 23/06, 12/0800 23/11, 12/0800);
kind[0] -> one :: Queue -> Unqueue -> ToDevice(s1.eth0/1);
kind[1] -> two :: Queue -> Unqueue -> ToDevice(wan);
kind[2] -> ToDevice(wan);
FromDevice(s1.eth0/1) -> behind :: Null -> Classifier(12/0800) -> Strip(14) -> CheckIPHeader -> DecIPTTL
  -> EtherEncap(0x0800, 02:00:00:00:01:01, 02:00:00:00:01:02) -> ToDevice(wan);
";

/// A rack with two servers.
fn two_servers(control: &str, runs: [&str; 2]) -> String {
    let [one, two] = runs;
    let trust = "trust: [lengths, ip-checksum, ip-options]";
    rack(control)
        .replace(
            "up: { number: 4 }",
            &format!("up: {{ number: 4, {trust} }}\n      other: {{ number: 5 }}"),
        )
        .replace(
            "s1: { ports",
            &format!("s2: {{ {two}ports: {{ eth0: {{}} }} }}\n  s1: {{ {one}ports"),
        )
        .replace("s1.eth0]]", "s1.eth0], [tor.other, s2.eth0]]")
        .replace(", dmz: tor.dmz", "")
}

/// A frame behind an 802.1ad tag.
fn tagged(id: u8, high: u8, frame: &[u8]) -> Vec<u8> {
    [&frame[..12], &[0x88, 0xa8, high, id], &frame[12..]].concat()
}

#[test]
fn servers_get_their_own_packets_and_send_some_back() {
    let mut switch = Switch::start(5);
    let folder = Folder::new();
    let control = format!("    control: unix:{}", switch.socket().display());
    folder
        .file("fw.click", BACK)
        .file("rack.yaml", two_servers(&control, ["runs: [one], ", "runs: [two], "]));
    switch.load("");
    let installed = folder.run(with(&["--install"]));
    assert_eq!(installed.code, Some(0), "{}", installed.err);
    let tcp = frame([20, 0, 0, 1]);
    let mut udp = tcp.clone();
    udp[23] = 17;
    let sent = switch.send(1, &[tcp.clone(), udp.clone()]);
    let [to_one, to_two] = [&sent[0][..], &sent[1][..]];
    for (sent, port, whole) in [(to_one, 4, &tcp), (to_two, 5, &udp)] {
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!((sent[0].port, &sent[0].bytes[12..14]), (port, &[0x88, 0xa8][..]));
        assert_eq!([&sent[0].bytes[..12], &sent[0].bytes[16..]].concat(), **whole);
    }
    // What comes back is routed: by the tag of the return path from the first server, and from there alone.
    let back = tagged(0xfe, 0x0f, &tcp);
    let sent = switch.send(4, &[back.clone(), tagged(2, 0, &udp)]);
    let [routed, passed] = [&sent[0][..], &sent[1][..]];
    assert_eq!((routed.len(), routed[0].port), (1, 2), "{routed:?}");
    let bytes = &routed[0].bytes;
    assert_eq!(
        (&bytes[..6], &bytes[12..14], bytes[22]),
        (&[2, 0, 0, 0, 1, 2][..], &[8, 0][..], 63)
    );
    assert_eq!((passed.len(), passed[0].port, &passed[0].bytes), (1, 2, &udp));
    assert!(switch.send(5, &[back, tagged(2, 0, &udp)])[0].is_empty());
    let shown = folder.run(with(&[]));
    assert!(shown.well().contains("s1.eth0/1 → tor"), "{}", shown.out);
}

#[test]
fn what_several_servers_run_is_said_and_parts_them() {
    let folder = Folder::new();
    folder.file("fw.click", BACK);
    for (runs, expected) in [
        (["", ""], "`runs:` of each states"),
        (["runs: [one], ", "runs: [tow], "], "'s2' is to run 'tow', which the chain does not have"),
        (["runs: [one, two], ", "runs: [two], "], "are both to run 'two'"),
    ] {
        folder.file("rack.yaml", two_servers("", runs));
        let refused = folder.run(with(&[]));
        assert!(refused.refused().contains(expected), "{expected}: {}", refused.err);
    }
    // A limit counts where packets come in from a wire.
    let limits = "limits: { behind: 1 Gbps }\n";
    folder.file("rack.yaml", two_servers("", ["runs: [one], ", "runs: [two], "]) + limits);
    let refused = folder.run(with(&[]));
    assert!(refused.refused().contains("'behind' cannot be limited"), "{}", refused.err);
    // One that says nothing runs nothing.
    folder.file("rack.yaml", two_servers("", ["runs: [one, two], ", ""]));
    let shown = folder.run(with(&[]));
    assert!(
        shown.well().contains("tor ↔ s1.eth0") && !shown.out.contains("s2.eth0"),
        "{}",
        shown.out
    );
    // Other devices know of one server.
    let rack =
        two_servers("", ["runs: [one], ", "runs: [two], "]).replace("target: ovs", "target: ebpf");
    folder.file("rack.yaml", rack);
    assert!(folder.run(with(&[])).refused().contains("hands packets to one server"));
    // What the device spares to test may lead to either: here, where the headers end.
    let early = BACK
        .replace("Classifier(12/0800 23/06, 12/0800 23/11, 12/0800)", "IPClassifier(tcp, udp, -)")
        .replace(
            "FromDevice(lan) ->",
            "FromDevice(lan) -> MarkIPHeader(14) -> Queue -> Unqueue ->",
        );
    folder
        .file("fw.click", early)
        .file("rack.yaml", two_servers("", ["runs: [one], ", "runs: [two], "]));
    let refused = folder.run(with(&[]));
    assert!(
        refused.refused().contains("both 's1' and 's2' may have to take some"),
        "{}",
        refused.err
    );
}

/// Of 30 frames as many pass as the meter holds, and later as many as the time since then fills it with.
#[test]
fn a_rate_is_limited_where_packets_come_in() {
    let mut switch = Switch::start(4);
    let folder = folder(&switch);
    let control = format!("    control: unix:{}", switch.socket().display());
    let limited = |limits: &str| rack(&control) + limits;
    folder.file("rack.yaml", limited("limits: { f: 800 kbps }\n"));
    switch.load("");
    assert_eq!(folder.run(with(&["--install"])).code, Some(0));
    switch.stop_clock();
    let mut long = frame([20, 0, 0, 1]);
    // As long as its IP header says.
    long[16..18].copy_from_slice(&986_u16.to_be_bytes());
    long.resize(1000, 0);
    long[24..26].copy_from_slice(&[0, 0]);
    let sum: u32 = long[14..34].chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1])).sum();
    long[24..26].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
    let passed = |switch: &mut Switch| {
        let sent = switch.send(1, &vec![long.clone(); 30]);
        sent.iter().filter(|sent| !sent.is_empty()).count()
    };
    // 80 kilobits at once; in 50 ms there are 40 more.
    assert_eq!(passed(&mut switch), 10);
    assert_eq!(passed(&mut switch), 0);
    switch.let_pass(50);
    assert_eq!(passed(&mut switch), 5);
    // Another limit replaces it, and no limit takes the meter away.
    folder.file("rack.yaml", limited("limits: { f: 1600 kbps }\n"));
    assert_eq!(folder.run(with(&["--install"])).code, Some(0));
    assert!(switch.flows(&["dump-meters", "br0"]).contains("rate=1600"));
    folder.file("rack.yaml", limited(""));
    assert_eq!(folder.run(with(&["--install"])).code, Some(0));
    assert!(!switch.flows(&["dump-meters", "br0"]).contains("rate="));
    // Nothing is changed if the meter is of others.
    folder.file("rack.yaml", limited("limits: { f: 800 kbps }\n"));
    switch.flows(&["add-meter", "br0", "meter=1,kbps,band=type=drop,rate=5"]);
    switch.flows(&["add-flow", "br0", "table=9,actions=meter:1,output:2"]);
    let refused = folder.run(with(&["--install"]));
    assert!(refused.refused().contains("entries of others use meter 1"), "{}", refused.err);
    assert!(switch.flows(&["dump-meters", "br0"]).contains("rate=5"));
    // A meter that others use, too, stays with their entries.
    switch.flows(&["del-flows", "br0", "table=9"]);
    assert_eq!(folder.run(with(&["--install"])).code, Some(0));
    switch.flows(&["add-flow", "br0", "table=9,actions=meter:1,output:2"]);
    assert_eq!(folder.run(with(&["--remove"])).code, Some(0));
    assert!(switch.flows(&["dump-meters", "br0"]).contains("rate=800"));
    assert!(entries(&switch).iter().any(|entry| entry.contains("meter:1")));
    // What would be given a wrong meter is not proven.
    folder.run(["compile", "fw.click", "--topology", "rack.yaml", "-o", "out"]).well();
    let flows = std::fs::read_to_string(folder.path().join("out/flows.txt")).unwrap();
    let verify = ["verify", "fw.click", "--topology", "rack.yaml", "--artefact", "out"];
    folder.run(verify).well();
    for other in [flows.replacen("meter:1", "meter:2", 1), flows.replacen("meter:1,", "", 1)] {
        folder.file("out/flows.txt", other);
        let refused = folder.run(verify);
        assert!(refused.err.contains("are to pass meter 1 alone"), "{}", refused.err);
        assert_eq!(refused.code, Some(2));
    }
    folder.file("rack.yaml", limited("limits: { f: 800 kbps, rt: 1 Gbps }\n"));
    let refused = folder.run(with(&[]));
    assert!(
        refused.refused().contains("the limits of 'f' and of 'rt' both apply"),
        "{}",
        refused.err
    );
    folder.file("rack.yaml", limited("limits: { g: 800 kbps }\n"));
    assert!(
        folder
            .run(with(&[]))
            .refused()
            .contains("'g' is to be limited, which the chain does not have")
    );
    let rack = limited("limits: { f: 800 kbps }\n").replace("target: ovs", "target: ebpf");
    folder.file("rack.yaml", rack);
    assert!(folder.run(with(&[])).refused().contains("it limits no rates"));
}
