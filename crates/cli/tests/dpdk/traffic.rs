//! Real hosts speak with each other through devices of DPDK's.

use std::process::Stdio;

use crate::CATENA;
use crate::eal;
use lab::live::{Lab, Process, possible};

const WIRE: &str = "FromDevice(left) -> ToDevice(right); FromDevice(right) -> ToDevice(left);";

const AF_PACKET: [&str; 4] =
    ["--in", "left=dpdk:net_af_packet0,iface=eth0", "--in", "right=dpdk:net_af_packet1,iface=eth1"];

/// A driver of DPDK's takes no segments that were left to hardware.
fn segment_on_hosts(lab: &Lab) {
    for host in ["left", "right"] {
        lab.on(host, "ethtool", &["-K", "veth0", "tso", "off", "gso", "off"]);
    }
}

#[test]
fn tcp_with_partial_checksums_through_nat_by_net_af_packet() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    segment_on_hosts(&lab);
    let nat = include_str!("../../../../examples/home-router.click");
    let nat = nat.replace("Device(lan)", "Device(left)").replace("Device(wan)", "Device(right)");
    let running = lab.run(&nat, &[&AF_PACKET[..], &["--dpdk-eal", &eal(&lab, "")]].concat());
    let told = running.told();
    let line = "left: net_af_packet0,iface=eth0: dpdk, net_af_packet, DPDK ";
    assert!(told.contains(line), "{told}");
    lab.ping("left", &["10.2.0.2"]);
    lab.ping("left", &["-s", "1472", "10.2.0.2"]);
    lab.exchange("10.2.0.2", 1_000_000);
    running.stop();
}

#[test]
fn flows_are_spread_over_workers() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    segment_on_hosts(&lab);
    let arguments = [
        "--in",
        "left=dpdk:net_af_packet0,iface=eth0,qpairs=2",
        "--in",
        "right=dpdk:net_af_packet1,iface=eth1,qpairs=2",
        "--cores",
        "0,1",
        "--dpdk-eal",
        &eal(&lab, ""),
    ];
    let running = lab.run(WIRE, &arguments);
    let told = running.told();
    assert!(told.contains("flows to 2 workers by the kernel's symmetric hash"), "{told}");
    for _ in 0..8 {
        lab.exchange("10.9.0.3", 50_000);
    }
    running.stop();
}

/// Senders on several CPUs send one load together, each by its queue.
#[test]
fn several_senders_send_one_load() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let wire = lab.run(WIRE, &["--in", "left=eth0", "--in", "right=eth1", "--io", "af-packet"]);
    let mut command = lab.command("right", CATENA.0);
    command.args(["recv", "--in", "veth0", "--expect", "0=2002,1=2001", "--json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut receiver = Process::start(&mut command);
    receiver.wait_for(", mtu ");
    let device = "dpdk:net_af_packet0,iface=veth0,qpairs=2";
    let load = ["gen", "gen:flows=10,size=72", "--out", device, "--rate", "10k", "--json"];
    let more = ["--count", "4003", "--stamp", "--cores", "0,1", "--dpdk-eal", &eal(&lab, "gen")];
    let sent = lab.on("left", CATENA.0, &[&load[..], &more].concat());
    let sent: serde_json::Value = serde_json::from_str(&sent).unwrap();
    assert_eq!((&sent["packets"], &sent["lost"]), (&4003.into(), &serde_json::json!([])), "{sent}");
    let (code, out, err) = receiver.ended();
    assert_eq!(code, Some(0), "{err}");
    let receipt: serde_json::Value = serde_json::from_str(&out).unwrap();
    let received: Vec<u64> = (receipt["streams"].as_array().unwrap().iter())
        .map(|stream| stream["received"].as_u64().unwrap())
        .collect();
    assert_eq!(received, [2002, 2001], "{receipt}");
    wire.stop();
}

/// left - AF_PACKET - one Catena - `near`/`far` - another Catena - AF_PACKET - right.
#[track_caller]
fn between_two(near: &str, far: &str) {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let socket = lab.folder().join("socket").display().to_string();
    let bound =
        |side: &str, device: &str| format!("{side}=dpdk:{}", device.replace("SOCKET", &socket));
    let (near, far) = (bound("right", near), bound("left", far));
    let start = |arguments: &[&str], process: &str| {
        let eal = eal(&lab, process);
        let control = ["--io", "af-packet-mmsg", "--control", "none", "--dpdk-eal", &eal];
        lab.run(WIRE, &[arguments, &control].concat())
    };
    let one = start(&["--in", "left=eth0", "--in", &near], "one");
    let other = start(&["--in", &far, "--in", "right=eth1"], "other");
    lab.ping("left", &["10.9.0.3"]);
    lab.ping("right", &["-s", "1472", "10.9.0.2"]);
    lab.exchange("10.9.0.3", 1_000_000);
    other.stop();
    // Who is left goes on, and tells it.
    let mut one = one;
    one.wait_for("the link is down");
    one.stop();
    assert!(!std::path::Path::new(&socket).exists(), "the socket is left");
}

#[test]
fn two_processes_by_net_memif() {
    between_two(
        "net_memif0,role=server,socket=SOCKET,socket-abstract=no",
        "net_memif0,role=client,socket=SOCKET,socket-abstract=no",
    );
}

#[test]
fn two_processes_by_vhost_and_virtio_user() {
    between_two("net_vhost0,iface=SOCKET", "virtio_user0,path=SOCKET");
}
