//! What is refused, and how a chain on a device of DPDK's rests and ends.

use crate::CATENA;
use crate::eal;
use lab::live::{Lab, possible, until};

const LOOP: &str = "FromDevice(device) -> ToDevice(device);";

#[test]
fn what_cannot_be_opened_is_refused_with_the_mend() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let eal = eal(&lab, "");
    for (device, more, why) in [
        ("net_unheard0", &[][..], "no DPDK driver accepts 'net_unheard0'"),
        ("net_memif0,role=neither", &[], "Unknown role: neither"),
        ("net_memif0", &["--cores", "0,1"], "net_memif cannot spread flows over 2 workers"),
        ("net_ring0", &["--cores", "0,1", "--io", "fast"], "'fast' is not an I/O mode"),
        (
            "net_af_packet0,iface=eth0",
            &["--cores", "0,1"],
            "net_af_packet0 has 1 queue for 2 workers",
        ),
        ("net_af_packet0,iface=eth7", &[], "eth7"),
        ("net_ring0", &["--io", "af-xdp"], "no name is bound to an interface"),
    ] {
        let device = format!("device=dpdk:{device}");
        let told = lab.refusal(LOOP, &[&["--in", &device, "--dpdk-eal", &eal], more].concat());
        assert!(told.contains(why), "{device}: {told}");
    }
    let device = ["--in", "device=dpdk:net_ring0", "--dpdk-eal"];
    let told = lab.refusal(LOOP, &[&device[..], &["--bogus"]].concat());
    assert!(told.contains("DPDK does not start"), "{told}");
    assert!(told.contains("--dpdk-eal 'ARGUMENTS' changes how"), "{told}");
    let told = lab.refusal(LOOP, &[&device[..], &["--in-memory -m 99999999"]].concat());
    assert!(told.contains("echo 512 > /proc/sys/vm/nr_hugepages"), "{told}");
}

/// External ports of a translator are shared out among workers, and an answer may not find its own.
#[test]
fn it_is_told_when_answers_may_miss_their_worker() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let arguments = [
        "--in",
        "lan=dpdk:net_af_packet0,iface=eth0,qpairs=2",
        "--in",
        "wan=dpdk:net_af_packet1,iface=eth1,qpairs=2",
        "--cores",
        "0,1",
        "--dpdk-eal",
        &eal(&lab, ""),
    ];
    let nat = include_str!("../../../../examples/home-router.click");
    let mut running = lab.run(nat, &arguments);
    running.wait_for("by dpdk no answer is sure to find the worker");
    running.stop();
}

/// A driver that spreads frames by RSS is told to, and each worker gets its queue.
#[test]
fn every_worker_has_its_queue() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let (eal, chain) = (eal(&lab, ""), "FromDevice(device) -> Discard;");
    let arguments = ["--in", "device=dpdk:net_null0,size=60", "--cores", "0,1", "--dpdk-eal", &eal];
    let socket = lab.folder().join("ctl").display().to_string();
    let running = lab.run(chain, &[&arguments[..], &["--control", &socket]].concat());
    let told = running.told();
    assert!(told.contains("flows to 2 workers by RSS with a symmetric key"), "{told}");
    let catena = CATENA.0;
    until("both get frames", || {
        let counters =
            lab.on("middle", catena, &["ctl", "--socket", &socket, "--json", "counters"]);
        let counters: serde_json::Value = serde_json::from_str(&counters).unwrap();
        let workers = counters["workers"].as_array().unwrap();
        workers.len() == 2 && workers.iter().all(|worker| worker["in"].as_u64() > Some(0))
    });
    running.stop();
}

/// A device that never stops giving frames, on one that is let go at the end.
#[test]
fn nothing_is_received_that_cannot_be_sent_any_more() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let arguments = ["--in", "device=dpdk:net_null0,size=60", "--io", "net_null0=batch=8"];
    let running = lab.run(LOOP, &[&arguments[..], &["--dpdk-eal", &eal(&lab, "")]].concat());
    let end = running.stop();
    let counted = |class: &str| {
        let line = end.lines().find(|line| line.trim_start().starts_with(class));
        line.unwrap_or_default().split_whitespace().nth(2).unwrap_or_default().to_string()
    };
    assert!(!end.contains("not-sent"), "{end}");
    assert_ne!(counted("FromDevice"), "", "{end}");
    assert_eq!(counted("FromDevice"), counted("ToDevice"), "{end}");
}

#[test]
fn an_idle_chain_burns_no_core() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let chain = "FromDevice(device) -> Discard;
         Script(wait 1s, print \"now\", wait 1s, print \"then\", loop)";
    let eal = eal(&lab, "");
    let arguments = ["--in", "device=dpdk:net_ring0", "--dpdk-eal", &eal];
    let mut running = lab.run(chain, &arguments);
    running.wait_for_output("now");
    let before = running.processor_time();
    running.wait_for_output("then");
    let used = running.processor_time() - before;
    running.stop();
    assert!(used.as_millis() < 200, "{used:?} of a second of idleness");
}
