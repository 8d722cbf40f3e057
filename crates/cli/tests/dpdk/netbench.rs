//! `catena netbench` past the kernel: switches whose ports are sockets, and applications on devices of DPDK's.

use std::process::{Command, Stdio};

use lab::live::{Network, Process, possible, until};
use serde_json::Value;

use crate::CATENA;

fn netbench(arguments: &[&str]) -> Command {
    let mut command = Command::new(CATENA.0);
    command.args(["netbench", "run", "--keep-settings"]).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The cells of a run, and what it said.
#[track_caller]
fn measured(arguments: &[&str]) -> (Vec<Value>, String) {
    let load = ["--json", "--rate", "10k", "--burst", "4", "--seconds", "0.2", "--repeat", "1"];
    let process = Process::start(&mut netbench(&[&load[..], arguments].concat()));
    let name = format!("netbench{}-", process.id());
    let (code, text, told) = process.ended();
    assert_eq!(code, Some(0), "{told}");
    let there = |folder: &str| -> Vec<String> {
        let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|of| of.starts_with(&name)).collect()
    };
    let left =
        [there("/run/netns"), there("/run/catena/netbench"), there("/var/run/dpdk")].concat();
    assert_eq!(left, Vec::<String>::new());
    let results: Value = serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
    (results["cells"].as_array().cloned().unwrap_or_default(), told)
}

/// What was sent is what came, to the packet, each once and in order, and all of it came back.
#[track_caller]
fn everything_comes(cells: &[Value]) {
    for cell in cells {
        let sample = &cell["samples"][0];
        let (all, trips) = (&sample["throughput"], &sample["round_trips"]);
        let sent = 2000 * cell["pairs"].as_u64().unwrap_or_default();
        let shown = format!("{}, {}: {all}", cell["switch"], cell["io"]);
        for (what, expected) in [
            ("attempted", sent),
            ("sent", sent),
            ("received", sent),
            ("lost", 0),
            ("duplicates", 0),
            ("reordered", 0),
        ] {
            assert_eq!(all[what], expected, "{what}: {shown}");
        }
        // As the kernel counts on interfaces, and the switch at its sockets. Open vSwitch says nothing of vhost-user.
        let counted = ["counted_sent", "counted_received"].map(|what| all[what].as_u64());
        let expected = (cell["switch"] != "ovs-dpdk-vhost").then_some(sent);
        assert_eq!(counted, [expected; 2], "{shown}");
        assert_eq!((&trips["sent"], &trips["received"]), (&sent.into(), &sent.into()), "{shown}");
        assert!(trips["latency"]["p50"].as_u64() > Some(0), "{shown}");
    }
}

#[test]
fn what_was_sent_is_what_came_by_sockets() {
    if !possible() {
        return;
    }
    let switches = ["--switch", "catena-vhost,catena-memif,ovs-dpdk-vhost,testpmd-vhost"];
    for more in [
        &["--size", "64,1514", "--touch"][..],
        &["--size", "60", "--pairs", "2", "--direction", "both"],
    ] {
        let (cells, _) = measured(&[&switches[..], more].concat());
        assert!(cells.len() >= 4, "{}", cells.len());
        let io = |cell: &Value| match cell["switch"] == "catena-memif" {
            true => cell["io"] == "memif",
            false => cell["io"] == "virtio-user",
        };
        assert!(cells.iter().all(io), "{cells:?}");
        everything_comes(&cells);
    }
}

/// What the kernel says of huge pages: how many there are, and how many nobody has.
fn huge_pages() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    ["HugePages_Total:", "HugePages_Free:"].map(|name| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    })
}

/// Switch and applications have huge pages while they are measured; they are gone at the end, and after a run was killed.
#[test]
fn huge_pages_are_given_back() {
    if !possible() {
        return;
    }
    let before = huge_pages();
    let start = |more: &[&str]| {
        let mut run = Command::new(CATENA.0);
        run.args(["netbench", "run", "--switch", "catena-vhost", "--size", "64", "--rate", "1k"]);
        run.args(["--throughput", "--json"]).args(more);
        run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Process::start(&mut run)
    };
    let (code, text, told) = start(&["--seconds", "0.1", "--repeat", "1"]).ended();
    assert_eq!(code, Some(0), "{told}");
    let results: Value = serde_json::from_str(&text).unwrap();
    let settings = results["settings"].as_array().unwrap();
    assert!(settings.contains(&"huge pages: 1280 MB for DPDK".into()), "{settings:?}");
    assert_eq!(huge_pages(), before);

    let run = start(&["--seconds", "60", "--repeat", "1"]);
    let in_use = |[all, free]: [u64; 2]| all - free;
    until("they are in use", || in_use(huge_pages()) > in_use(before));
    run.kill();
    let clean = || {
        let mut clean = Command::new(CATENA.0);
        clean.args(["netbench", "clean"]).stdin(Stdio::null());
        Process::start(clean.stdout(Stdio::piped()).stderr(Stdio::piped())).ended()
    };
    until("they are given back", || {
        let (code, _, told) = clean();
        assert_eq!(code, Some(0), "{told}");
        huge_pages() == before
    });
}

/// Any driver of DPDK's is a carrier, also one of whose arguments commas are between.
#[test]
fn any_device_carries_packets() {
    if !possible() {
        return;
    }
    let io = "dpdk:net_af_packet0,iface=eth0,framesz=2048,virtio-user";
    let (cells, told) = measured(&["--switch", "linux-bridge", "--size", "64", "--io", io]);
    assert!(told.contains("linux-bridge is not measured with --io virtio-user"), "{told}");
    assert_eq!(cells.len(), 1);
    assert_eq!(cells[0]["io"], "dpdk:net_af_packet0,iface=eth0,framesz=2048");
    everything_comes(&cells);
}

#[test]
fn what_does_not_fit_is_refused() {
    for (arguments, expected) in [
        (
            &["--switch", "catena-vhost", "--io", "af-packet"][..],
            "its ports are sockets of vhost-user, not interfaces; it takes --io virtio-user",
        ),
        (
            &["--switch", "linux-bridge", "--io", "memif"],
            "its ports are interfaces or TAP interfaces, not sockets of memif",
        ),
        (
            &["--switch", "catena-memif", "--container", "runc"],
            "--io memif needs files of the host, which are not in it; takes --container plain",
        ),
        (&["--io", "dpdk:"], "dpdk: names no device"),
    ] {
        let (code, text, told) = Process::start(&mut netbench(arguments)).ended();
        assert_eq!(code, Some(2), "{arguments:?}: {told}{text}");
        assert!(told.contains(expected), "{arguments:?}: {told}");
    }
}

/// What a dry run prints measures what a run does.
#[test]
fn a_dry_run_prints_what_would_be_run() {
    if !possible() {
        return;
    }
    let network = Network::new(&[]);
    let here = CATENA.netbench_switches();
    let by_sockets: Vec<_> =
        here.iter().filter(|name| name.ends_with("vhost") || name.ends_with("memif")).collect();
    assert!(by_sockets.len() >= 4, "{here:?}");
    by_sockets.iter().for_each(|switch| CATENA.netbench_by_hand(&network, switch, &[]));
}
