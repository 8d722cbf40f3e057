//! A pipeline of DPDK's software switch runs between captures.

use std::fs;
use std::process::Command;

use crate::captures::{frames, unpacked};
use crate::{CATENA, eal};
use lab::live::{Lab, possible};

/// A chain whose classes all end on the device.
const CHAIN: &str = "FromDevice(a) -> kind :: Classifier(12/0800, -);
    kind [0] -> b :: ToDevice(b); kind [1] -> Discard;";

/// Runs a command well; what it prints.
#[track_caller]
fn catena(arguments: &[&str]) -> String {
    let ended = Command::new(CATENA.0).args(arguments).output().unwrap();
    let [printed, said] = [&ended.stdout, &ended.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(ended.status.success(), "{arguments:?}: {said}{printed}");
    printed.into_owned()
}

#[test]
fn a_capture_goes_through_a_pipeline() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let from = unpacked(&lab);
    let [chain, folder, to, cores, back] =
        ["chain.click", "out", "to.pcap", "cores.pcap", "back.pcap"]
            .map(|name| lab.folder().join(name).display().to_string());
    fs::write(&chain, CHAIN).unwrap();
    let trust = "lengths,ip-checksum,ip-options,mtu";
    catena(&["compile", &chain, "--target", "swx", "--trust", trust, "--output", &folder]);
    let came = frames(&from);
    let printed = catena(&[
        "swx",
        &folder,
        "--port",
        &format!("1=net_pcap0,rx_pcap={from},tx_pcap={back}"),
        "--port",
        &format!("2=net_pcap1,tx_pcap={to}"),
        "--port",
        &format!("3=net_pcap2,tx_pcap={cores}"),
        "--frames",
        &came.len().to_string(),
        "--dpdk-eal",
        &eal(&lab, "swx"),
    ]);
    let mut expected: Vec<Vec<u8>> =
        came.iter().filter(|frame| frame[12..14] == [8, 0]).cloned().collect();
    let mut left = frames(&to);
    expected.sort_unstable();
    left.sort_unstable();
    assert!(!expected.is_empty() && left == expected, "{printed}");
    assert!(frames(&cores).is_empty() && frames(&back).is_empty(), "{printed}");
    // Frames in and out by port, and each frame under the number of its exit.
    let numbers: Vec<u64> =
        printed.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers[..3], [1, came.len() as u64, 0], "{printed}");
    assert_eq!(numbers[3..6], [2, 0, expected.len() as u64], "{printed}");
    let exits: u64 = numbers[9..].chunks(2).map(|exit| exit[1]).sum();
    assert_eq!(exits, came.len() as u64, "{printed}");
}
