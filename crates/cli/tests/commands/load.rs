//! `catena gen` and `catena recv`, on captures.

use serde_json::Value;

use crate::program::{Ended, Folder};

fn send(folder: &Folder, file: &str, more: &[&str]) -> Ended {
    let arguments =
        ["gen", "gen:flows=50,size=60/590", "--out", file, "--rate", "10k", "--count", "400"];
    folder.run(arguments.iter().chain(more))
}

fn bytes(folder: &Folder, file: &str) -> Vec<u8> {
    std::fs::read(folder.path().join(file)).unwrap()
}

fn receive(folder: &Folder, file: &str, more: &[&str]) -> Value {
    let ended = folder.run(["recv", "--in", file, "--json"].iter().chain(more));
    serde_json::from_str(ended.well()).unwrap()
}

#[test]
fn one_seed_sends_the_same_packets() {
    let folder = Folder::new();
    let how = ["--arrivals", "poisson", "--stamp", "--seed"];
    for (file, seed) in [("a.pcap", "3"), ("b.pcap", "3"), ("c.pcap", "4")] {
        send(&folder, file, &[&how[..], &[seed]].concat()).well();
    }
    assert!(bytes(&folder, "a.pcap") == bytes(&folder, "b.pcap"));
    assert!(bytes(&folder, "a.pcap") != bytes(&folder, "c.pcap"));
}

#[test]
fn what_a_chain_did_to_a_load_is_counted() {
    let folder = Folder::new();
    let told = send(&folder, "a.pcap", &["--stamp", "--stream", "2"]);
    assert!(
        told.well().contains("sent: 400 packets") && told.out.contains("10,000 packets/s"),
        "{told:?}"
    );
    folder.file(
        "a.click",
        "FromDump(a.pcap, STOP true) -> turns :: RoundRobinSwitch; turns[0] -> out :: ToDump(b.pcap);
         turns[1] -> Discard; turns[2] -> twice :: Tee -> out; twice[1] -> out; turns[3] -> out;",
    );
    folder.run(["run", "a.click"]);
    let receipt = receive(&folder, "b.pcap", &["--expect", "400"]);
    let stream = &receipt["streams"][0];
    let of = |what: &str| stream[what].as_u64().unwrap();
    assert_eq!(
        (of("stream"), of("received"), of("lost"), of("duplicates")),
        (2, 300, 100, 100),
        "{receipt}"
    );
    let table = folder.run(["recv", "--in", "b.pcap", "--expect", "400", "--hgrm", "a.hgrm"]);
    assert!(table.well().contains("25.0000"), "{table:?}");
    assert!(folder.read("a.hgrm").contains("#[Max"), "{}", folder.read("a.hgrm"));
}

#[test]
fn captures_are_sent_at_recorded_and_scaled_times() {
    let folder = Folder::new();
    send(&folder, "a.pcap", &[]).well();
    for (speed, rate) in [("1", "10,000"), ("10", "100,000")] {
        let ended = folder.run(["gen", "a.pcap", "--out", "b.pcap", "--speed", speed]);
        assert!(ended.well().contains(rate), "{speed} {ended:?}");
    }
    // More than a capture has is sent by beginning anew.
    let ended = folder.run(["gen", "a.pcap", "--out", "b.pcap", "--count", "1000"]);
    assert!(ended.well().contains("sent: 1,000 packets"), "{ended:?}");
}

#[test]
fn a_capture_is_replayed_with_other_flows() {
    let folder = Folder::new();
    let rate = ["--rate", "10k"];
    folder
        .run(["gen", "gen:count=10,proto=udp+tcp6", "--out", "a.pcap"].iter().chain(&rate))
        .well();
    let replay = ["gen", "replay:a.pcap,rewrite=5", "--out", "b.pcap"];
    let ended = folder.run(replay.iter().chain(&rate));
    assert!(ended.well().contains("sent: 50 packets"), "{ended:?}");
    // The capture's own times are those of 10,000 packets a second.
    for (more, rate) in [(&[][..], "10,000"), (&["--speed", "4"], "40,000")] {
        let ended = folder.run(replay.iter().chain(more));
        let expected = [format!("offered: {rate} packets/s"), "sent: 50 packets".into()];
        assert!(expected.iter().all(|words| ended.well().contains(words)), "{ended:?}");
    }
    folder.file(
        "a.click",
        "FromDump(b.pcap, STOP true) -> c :: Classifier(12/0800, 12/86dd);
         c[0] -> Strip(14) -> CheckIPHeader -> CheckUDPHeader -> v4 :: Counter -> Discard;
         c[1] -> Discard;
         DriverManager(wait, print v4.count);",
    );
    let ended = folder.run(["run", "a.click"]);
    assert!(ended.well().lines().any(|line| line == "25"), "{ended:?}");
}

#[test]
fn rules_have_packets() {
    let folder = Folder::new();
    folder.file("a.rules", "0 tcp dst port 80\n1 src net 10.0.0.0/9\n2 icmp or ip frag\n3 all");
    folder.run(["gen", "gen:rules=a.rules,count=400", "--out", "a.pcap", "--rate", "1k"]).well();
    folder.file(
        "a.click",
        "FromDump(a.pcap, STOP true) -> Strip(14) -> CheckIPHeader -> f :: IPFilter(file a.rules);
         f[0] -> a :: Counter -> Discard; f[1] -> b :: Counter -> Discard;
         f[2] -> c :: Counter -> Discard; f[3] -> d :: Counter -> Discard;
         DriverManager(wait, print \"$(a.count) $(b.count) $(c.count) $(d.count)\");",
    );
    let ended = folder.run(["run", "a.click"]);
    assert!(ended.well().lines().any(|line| line == "100 100 100 100"), "{ended:?}");
    folder.file("a.rules", "allow tcp\nallow nonsense");
    let ended = folder.run(["gen", "gen:rules=a.rules", "--out", "b.pcap", "--rate", "1k"]);
    assert!(ended.refused().contains("a.rules: line 2: "), "{ended:?}");
}

#[test]
fn what_cannot_be_sent_or_received_is_refused() {
    let folder = Folder::new();
    let empty = b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x01\0\0\0";
    folder.file("empty.pcap", empty).file("text.pcap", "no capture");
    let cases: [(&[&str], &str); 7] = [
        (&["gen", "--out", "nowhere", "--rate", "1k"], "there is no interface 'nowhere'"),
        (&["gen", "empty.pcap", "--out", "a.pcap"], "there are no packets in it"),
        (&["gen", "text.pcap", "--out", "a.pcap"], "text.pcap: neither"),
        (&["gen", "none.pcap", "--out", "a.pcap"], "none.pcap: "),
        (&["recv", "--in", "none.pcap"], "none.pcap: "),
        (&["recv", "--in", "nowhere"], "there is no interface 'nowhere'"),
        (&["recv", "--in", "text.pcap"], "text.pcap: "),
    ];
    for (arguments, expected) in cases {
        let ended = folder.run(arguments);
        assert!(ended.refused().contains(expected), "{expected}: {ended:?}");
    }
    let misuses: [(&[&str], &str); 13] = [
        (&["gen", "--out", "a.pcap"], "say by --rate how many packets a second"),
        (&["gen", "--out", "a.pcap", "--rate", "10%"], "a capture file has no link"),
        (&["gen", "gen:nonsense=1", "--out", "a.pcap", "--rate", "1k"], "nonsense=1"),
        (
            &["gen", "replay:none.pcap,speed=2", "--out", "a.pcap", "--rate", "1k"],
            "'speed=2': a replay takes count=PACKETS, loops=N, rewrite=N",
        ),
        (
            &["gen", "gen:mix=syn-flood,size=100", "--out", "a.pcap", "--rate", "1k"],
            "'size=100': mix=syn-flood takes mix, proto, vlan, dst",
        ),
        (
            &["gen", "gen:proto=sctp", "--out", "a.pcap", "--rate", "1k"],
            "'proto=sctp': protocols are udp, tcp, icmp, udp6, tcp6, icmp6",
        ),
        (&["gen", "--out", "a.pcap", "--rate", "1k", "--count", "0"], "--count <N>"),
        (&["gen", "--out", "a.pcap", "--rate", "1k", "--seconds", "0"], "takes a number from"),
        (&["gen", "--out", "a.pcap", "--rate", "1k", "--cores", "x"], "takes CPU numbers"),
        (
            &["gen", "--out", "a.pcap", "--rate", "1k", "--cores", "0,1"],
            "--cores 0,1: a capture file has one writer",
        ),
        (
            &["gen", "--out", "lo", "--rate", "1k", "--cores", "0,1", "--stamp", "--stream", "255"],
            "streams after --stream go up to 255",
        ),
        (&["recv", "--in", "a.pcap", "--expect", "0"], "takes a number of packets"),
        (&["recv", "--in", "a.pcap", "--poll", "now"], "now"),
    ];
    for (arguments, expected) in misuses {
        let ended = folder.run(arguments);
        assert!(ended.misused().contains(expected), "{expected}: {ended:?}");
    }
    for arguments in [
        &["gen", "--out", "a.pcap", "--rate", "fast"][..],
        &["gen", "--out", "a.pcap", "--rate", "1k", "--arrivals", "daily"],
        &["gen", "--out", "a.pcap", "--rate", "1k", "--stream", "1"],
        &["gen", "--rate", "1k"],
        &["recv"],
    ] {
        assert_eq!(folder.run(arguments).code, Some(2), "{arguments:?}");
    }
}

/// What is expected is expected of each stream; of one that did not come at all, everything is lost.
#[test]
fn losses_are_told_by_stream() {
    let folder = Folder::new();
    for (file, stream) in [("a.pcap", "1"), ("b.pcap", "2")] {
        send(&folder, file, &["--stamp", "--stream", stream]).well();
    }
    folder.file(
        "both.click",
        "FromDump(a.pcap, STOP true) -> out :: ToDump(both.pcap);
         FromDump(b.pcap, STOP true) -> CheckLength(100) -> out;
         DriverManager(pause, pause, stop);",
    );
    folder.run(["run", "both.click"]);
    let receipt = receive(&folder, "both.pcap", &["--expect", "1=400,2=410,3=7"]);
    let streams = receipt["streams"].as_array().unwrap();
    let found: Vec<[u64; 4]> = streams
        .iter()
        .map(|s| ["stream", "sent", "received", "lost"].map(|what| s[what].as_u64().unwrap()))
        .collect();
    // Half of the frames are short.
    assert_eq!(found, [[1, 400, 400, 0], [2, 410, 200, 210], [3, 7, 0, 7]]);
}

#[test]
fn rules_without_packets_are_named() {
    let folder = Folder::new();
    folder.file("list", "allow tcp\ndeny tcp dst port 80\nallow udp dst port 53\ndeny all\n");
    let ended =
        folder.run(["gen", "gen:rules=list", "--out", "a.pcap", "--rate", "1k", "--count", "20"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    // The same list, compressed, gives the same packets.
    let compressed =
        std::process::Command::new("gzip").args(["-k", "list"]).current_dir(folder.path()).status();
    assert!(compressed.unwrap().success());
    let how = ["--out", "b.pcap", "--rate", "1k", "--count", "20"];
    folder.run([&["gen", "gen:rules=list.gz"], &how[..]].concat());
    assert!(bytes(&folder, "a.pcap") == bytes(&folder, "b.pcap"));
    let expected = "list: 1 of 4 rules have no packets, the first in line 2: rules before them match all that were drawn";
    assert!(ended.err.contains(expected), "{ended:?}");
    folder.file(
        "a.click",
        "FromDevice(in) -> Strip(14) -> CheckIPHeader -> IPFilter(file list) -> Discard;",
    );
    let report =
        folder.run(["bench", "a.click", "--trial", "0.002", "--in", "in=gen:rules=list", "--json"]);
    assert!(report.well().contains(expected), "{report:?}");
}
