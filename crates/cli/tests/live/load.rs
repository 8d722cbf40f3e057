//! Traffic that is sent and received on its own.

use std::process::Stdio;

use lab::live::{Lab, Network, Process, possible, until};
use serde_json::Value;

use crate::CATENA;

/// Receives on the right until the last packet has come.
fn receive(lab: &Lab, packets: &str, io: &str) -> Process {
    let mut command = lab.command("right", CATENA.0);
    command.args(["recv", "--in", "veth0", "--expect", packets, "--json", "--io", io]);
    command.args(["--hgrm"]).arg(lab.folder().join("latencies.hgrm"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiver = Process::start(&mut command);
    receiver.wait_for(", mtu ");
    receiver
}

/// Of IPv4 packets all go to the right whose number in the stamp does not end with two bits that are set.
const CHAIN: &str = "FromDevice(left) -> c :: Classifier(12/0800 51/03%03, 12/0800, -);
    c[0] -> Discard; c[1] -> ToDevice(right); c[2] -> Discard;";

/// What a chain loses is seen by its number, on each kind of device.
#[test]
fn losses_of_a_chain_are_counted_by_a_receiver() {
    if !possible() {
        return;
    }
    for io in ["af-xdp", "af-packet"] {
        let lab = Lab::new(CATENA, 1500);
        let running = lab.run(CHAIN, &["--in", "left=eth0", "--out", "right=eth1", "--io", io]);
        let receiver = receive(&lab, "4001", io);
        let sent = ["gen", "gen:flows=10,size=72", "--out", "veth0", "--rate", "20k"];
        let more = ["--count", "4001", "--stamp", "--stream", "7", "--json", "--io", io];
        let sent = lab.on("left", CATENA.0, &[&sent[..], &more].concat());
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            (&sent["packets"], &sent["stamped"]),
            (&4001.into(), &4001.into()),
            "{io} {sent}"
        );
        let (code, out, err) = receiver.ended();
        assert_eq!(code, Some(0), "{io} {err}");
        let receipt: Value = serde_json::from_str(&out).unwrap();
        let stream = &receipt["streams"][0];
        let of = |what: &str| stream[what].as_u64().unwrap();
        assert_eq!(of("stream"), 7, "{io} {receipt}");
        assert_eq!((of("sent"), of("received"), of("lost")), (4001, 3001, 1000), "{io} {receipt}");
        assert_eq!((of("duplicates"), of("reordered")), (0, 0), "{io} {receipt}");
        let latencies = std::fs::read_to_string(lab.folder().join("latencies.hgrm")).unwrap();
        assert!(latencies.contains("Total count    =         3001"), "{latencies}");
        running.stop();
    }
}

/// Senders on several CPUs send one load together, each its own stream of it.
#[test]
fn several_senders_send_one_load() {
    if !possible() {
        return;
    }
    for io in ["af-xdp", "af-packet", "af-packet-ring"] {
        let lab = Lab::new(CATENA, 1500);
        let running = lab.run(CHAIN, &["--in", "left=eth0", "--out", "right=eth1", "--io", io]);
        let mut command = lab.command("right", CATENA.0);
        command.args(["recv", "--in", "veth0", "--expect", "7=2002,8=2001", "--json", "--io", io]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut receiver = Process::start(&mut command);
        receiver.wait_for(", mtu ");
        let sent = ["gen", "gen:flows=10,size=72", "--out", "veth0", "--rate", "20k", "--json"];
        let more = ["--count", "4003", "--stamp", "--stream", "7", "--cores", "0,1", "--io", io];
        let sent = lab.on("left", CATENA.0, &[&sent[..], &more].concat());
        let sent: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(
            (&sent["packets"], &sent["stamped"]),
            (&4003.into(), &4003.into()),
            "{io} {sent}"
        );
        let each =
            serde_json::json!([{"stream": 7, "packets": 2002}, {"stream": 8, "packets": 2001}]);
        assert_eq!(sent["streams"], each, "{io}");
        let (code, out, err) = receiver.ended();
        assert_eq!(code, Some(0), "{io} {err}");
        let receipt: Value = serde_json::from_str(&out).unwrap();
        let found: Vec<[u64; 4]> = (receipt["streams"].as_array().unwrap().iter())
            .map(|s| ["stream", "sent", "received", "lost"].map(|what| s[what].as_u64().unwrap()))
            .collect();
        // The chain drops a quarter of each stream, but not the last packets.
        assert_eq!(found, [[7, 2002, 1502, 500], [8, 2001, 1501, 500]], "{io} {receipt}");
        running.stop();
    }
}

/// The same by a TAP interface, of which each sender has a queue.
#[test]
fn several_senders_share_a_tap_interface() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    lab.ip("left", &["tuntap", "add", "dev", "tap7", "mode", "tap", "multi_queue"]);
    lab.ip("left", &["link", "set", "tap7", "up"]);
    let mut command = lab.command("left", CATENA.0);
    command.args(["recv", "--in", "tap7", "--expect", "7=2002,8=2001", "--json"]);
    command.args(["--io", "af-packet"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiver = Process::start(&mut command);
    receiver.wait_for(", mtu ");
    let sent = ["gen", "gen:flows=10,size=72", "--out", "tap:tap7", "--rate", "10k", "--json"];
    let more = ["--count", "4003", "--stamp", "--stream", "7", "--cores", "0,1"];
    let sent = lab.on("left", CATENA.0, &[&sent[..], &more].concat());
    let (code, out, err) = receiver.ended();
    assert_eq!(code, Some(0), "{err}");
    let receipt: Value = serde_json::from_str(&out).unwrap();
    let found: Vec<[u64; 2]> = (receipt["streams"].as_array().unwrap().iter())
        .map(|s| ["stream", "received"].map(|what| s[what].as_u64().unwrap()))
        .collect();
    assert_eq!(found, [[7, 2002], [8, 2001]], "{receipt} of {sent}");
}

/// Whoever is interrupted says what was sent or received.
#[test]
fn interrupted_senders_and_receivers_report() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    lab.ip("left", &["link", "set", "veth0", "down"]);
    let refused =
        lab.try_on("left", CATENA.0, &["gen", "--out", "veth0", "--rate", "1k", "--count", "1"]);
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && why.contains("veth0 is down"), "{why}");
    lab.ip("left", &["link", "set", "veth0", "up"]);
    let start = |host: &str, arguments: &[&str]| {
        let mut command = lab.command(host, CATENA.0);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = Process::start(&mut command);
        process.wait_for(", mtu ");
        process
    };
    for (host, arguments, expected) in [
        ("left", &["gen", "--out", "veth0", "--rate", "1k", "--seconds", "600"][..], "interrupted"),
        ("right", &["recv", "--in", "veth0"], "received: "),
    ] {
        let process = start(host, arguments);
        process.interrupt();
        let (code, out, err) = process.ended();
        assert!(code == Some(0) && out.contains(expected), "{code:?} {out} {err}");
    }
}

/// What is sent where nothing is connected is lost, also where the kernel does not say so; a link that is switched off is reported.
#[test]
fn what_is_sent_on_a_link_that_is_down_is_lost() {
    if !possible() {
        return;
    }
    for io in ["af-xdp", "af-packet"] {
        let network = Network::new(&["left", "right"]);
        network.link([("left", "veth0"), ("right", "veth0")], "02:00:00:00:00:01", &[]);
        let start = |more: &[&str]| {
            let mut command = network.command("left", CATENA.0);
            command.args(["gen", "gen:flows=10", "--out", "veth0", "--json", "--io", io]);
            command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            Process::start(&mut command)
        };
        let mut sender = start(&["--rate", "1k", "--seconds", "600"]);
        sender.wait_for(", mtu ");
        network.ip("left", &["link", "set", "veth0", "down"]);
        sender.interrupt();
        let (code, out, err) = sender.ended();
        assert_eq!(code, Some(0), "{io} {err}");
        assert!(out.contains("veth0: the link is switched off"), "{io} {out}");
        network.ip("right", &["link", "set", "veth0", "down"]);
        network.ip("left", &["link", "set", "veth0", "up"]);
        let shown = || network.ip("left", &["link", "show", "veth0"]);
        until("the carrier is lost", || shown().contains("NO-CARRIER"));
        let (code, out, err) = start(&["--rate", "100k", "--count", "200"]).ended();
        assert_eq!(code, Some(0), "{io} {err}");
        let sent: Value = serde_json::from_str(&out).unwrap();
        let lost = serde_json::json!([{"reason": "link-down", "packets": 200}]);
        assert_eq!((&sent["lost"], &sent["slower"]), (&lost, &true.into()), "{io} {sent}");
    }
}
