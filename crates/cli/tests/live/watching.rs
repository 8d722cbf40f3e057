//! Captures and traces of chains that run on several workers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::CATENA;
use crate::dispatch::{Numbers, Tagged};
use crate::traffic::nat;
use lab::live::possible;

/// A packet of a capture.
struct Captured {
    worker: u32,
    time: u64,
    data: Vec<u8>,
}

/// The packets of a pcapng file, with the workers that saw them (as queues of the interfaces).
fn read(bytes: &[u8]) -> Vec<Captured> {
    let word = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let half = |at: usize| u16::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let (mut at, mut all) = (0, Vec::new());
    while at < bytes.len() {
        let (kind, length) = (word(at), word(at + 4) as usize);
        if kind == 6 {
            let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            let captured = word(at + 20) as usize;
            let data = bytes[at + 28..at + 28 + captured].to_vec();
            let mut option = at + 28 + captured.next_multiple_of(4);
            while half(option) != 6 {
                option += 4 + usize::from(half(option + 2)).next_multiple_of(4);
            }
            all.push(Captured { worker: word(option + 4), time, data });
        }
        at += length;
    }
    all
}

/// Checks that packets are in the order of time, and of each flow and direction all there were
/// between the first and the last; the workers that saw them.
fn check(packets: &[Captured]) -> BTreeSet<u32> {
    assert!(packets.is_sorted_by_key(|packet| packet.time));
    let mut next: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    for Captured { data, .. } in packets {
        let number = u64::from_be_bytes(*data[42..].first_chunk().unwrap());
        let expected = next.entry(data[26..38].to_vec()).or_insert(number);
        assert_eq!(number, *expected);
        *expected += 1;
    }
    assert!(next.len() >= 4, "{next:?}");
    packets.iter().map(|packet| packet.worker).collect()
}

#[test]
fn captures_and_traces_see_all_workers() {
    if !possible() {
        return;
    }
    for how in [&["--dispatch", "hash"][..], &["--dispatch", "tags=mac", "--groups", "4"]] {
        let tagged = Tagged::run(&nat(), "af-xdp", how);
        let moves = how.len() > 2;
        if moves {
            tagged.tag(2);
        }
        let numbers = Numbers::begin(&tagged.lab);
        numbers.go_on(500);
        let file = tagged.lab.folder().join("left.pcapng");
        let mut capture = Command::new(CATENA.0);
        capture.args(["ctl", "--socket"]).arg(&tagged.socket);
        capture.args(["capture", "left", "udp", "-w"]).arg(&file);
        let mut capture = capture.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(capture.stderr.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert!(said.starts_with("capturing "), "{said}");
        for worker in [1, 0, 1] {
            numbers.go_on(500);
            if !moves {
                continue;
            }
            tagged.take(2, worker);
            let trace = ["--json", "trace", "-n", "3", "udp", "--in", "left"];
            let told = CATENA.ctl(&tagged.socket, &trace);
            let packets: Vec<Value> =
                told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            assert_eq!(packets.len(), 3, "{told}");
            assert!(packets.iter().all(|packet| packet["worker"] == worker), "{told}");
            let told = CATENA.ctl(&tagged.socket, &["trace", "-n", "1", "udp", "--in", "left"]);
            assert!(told.contains(&format!("at worker {worker}")), "{told}");
        }
        numbers.go_on(500);
        kill_process(Pid::from_raw(capture.id() as i32).unwrap(), Signal::INT).unwrap();
        assert!(capture.wait().unwrap().success());
        numbers.end();
        let packets = read(&std::fs::read(&file).unwrap());
        assert!(packets.len() > 2000, "{}", packets.len());
        let workers = check(&packets);
        assert!(!moves || workers == BTreeSet::from([0, 1]), "{workers:?}");
        tagged.running.stop();
    }
}

/// Follows packets of a host, which must all be seen by a worker and take a path, here its end, to a
/// device.
#[track_caller]
fn follow(tagged: &Tagged, source: &str, worker: u64, path: &str, device: &str) {
    let from = format!("udp && src host {source}");
    let told = CATENA.ctl(&tagged.socket, &["--json", "trace", "-n", "2", &from]);
    let packets: Vec<Value> =
        told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(packets.len(), 2, "{told}");
    for packet in &packets {
        assert!(packet["unfinished"].is_null() && packet["agrees"] == true, "{packet}");
        assert_eq!(packet["worker"], worker, "{packet}");
        let steps = packet["steps"].as_array().unwrap();
        let name = |step: &Value| match step["element"].as_str().unwrap() {
            name if name.contains('@') => step["class"].as_str().unwrap().to_string(),
            name => name.to_string(),
        };
        let names: Vec<String> = steps.iter().map(name).collect();
        assert!(names.join(" ").ends_with(path), "{names:?}");
        assert!(steps.iter().all(|step| step["place"]["line"].is_u64()), "{packet}");
        let last = &steps.last().unwrap()["outcomes"][0];
        assert_eq!((&last["fate"], &last["device"]), (&"sent".into(), &device.into()));
    }
}

/// Packets are followed through queues, on whatever worker: to an Unqueue and what is behind it, and
/// by a shaper to the device.
#[test]
fn packets_are_followed_through_queues_to_the_device() {
    if !possible() {
        return;
    }
    let chain = nat()
        .replace(
            "wan[0] -> ToDevice(",
            "wan[0] -> up :: Queue -> Unqueue(32) -> u :: Counter -> ToDevice(",
        )
        .replace(
            "lan[0] -> ToDevice(",
            "lan[0] -> down :: Queue -> s :: Shaper(1000000) -> ToDevice(",
        );
    assert!(chain.contains("up ::") && chain.contains("down ::"));
    let tagged = Tagged::run(&chain, "af-xdp", &["--dispatch", "tags=mac", "--groups", "4"]);
    tagged.tag(2);
    let numbers = Numbers::begin(&tagged.lab);
    for worker in [1, 0] {
        numbers.go_on(500);
        tagged.take(2, worker);
        follow(&tagged, "10.1.0.2", worker as u64, "up up Unqueue u ToDevice", "right");
        follow(&tagged, "10.2.0.2", worker as u64, "down down s ToDevice", "left");
    }
    let told = CATENA.ctl(&tagged.socket, &["trace", "-n", "1", "udp && src host 10.2.0.2"]);
    for part in ["waits in down", "and leaves it", "s :: Shaper", "leaves by left"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    numbers.go_on(500);
    numbers.end();
    tagged.running.stop();
}
