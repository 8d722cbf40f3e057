//! Frames that a device of DPDK's carries come out as they went in.

use std::fs::File;
use std::path::Path;

use net::pcap::Reader;

use crate::eal;
use crate::lab::{Lab, possible};

/// A capture, unpacked where DPDK can read it.
fn unpacked(lab: &Lab) -> String {
    let packed = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lan.pcap.gz"));
    let to = lab.folder().join("in.pcap");
    let mut from = flate2::read::MultiGzDecoder::new(File::open(packed).unwrap());
    std::io::copy(&mut from, &mut File::create(&to).unwrap()).unwrap();
    to.display().to_string()
}

/// The frames of a capture.
fn frames(path: &str) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(File::open(path).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        frames.push(record.data.to_vec());
    }
    frames
}

/// Runs a chain that stops of its own accord.
#[track_caller]
fn run(lab: &Lab, chain: &str, device: &str) {
    let bound = format!("device=dpdk:{device}");
    let arguments = ["--in", &bound, "--dpdk-eal", &eal(lab, ""), "--control", "none"];
    let (well, text, told) = lab.start_on("middle", chain, &arguments).end();
    assert!(well, "{told}{text}");
}

#[test]
fn a_capture_goes_through_net_pcap_unchanged() {
    if !possible() {
        return;
    }
    let lab = Lab::new(1500);
    let (from, to) = (unpacked(&lab), lab.folder().join("out.pcap").display().to_string());
    let all = frames(&from);
    assert!(all.len() > 100);
    let chain = format!(
        "FromDevice(device) -> ToDevice(device) -> Counter(COUNT_CALL {} stop) -> Discard;",
        all.len()
    );
    run(&lab, &chain, &format!("net_pcap0,rx_pcap={from},tx_pcap={to}"));
    assert!(frames(&to) == all, "frames changed on the way");
}

#[test]
fn a_capture_goes_through_net_ring_unchanged() {
    if !possible() {
        return;
    }
    let lab = Lab::new(1500);
    let (from, to) = (unpacked(&lab), lab.folder().join("out.pcap").display().to_string());
    let all = frames(&from);
    // The ring holds 1024 frames; it gets them eight at a time, and each time they are taken out.
    let chain = format!(
        "FromDump({from}, BURST 8) -> ToDevice(device);
         FromDevice(device) -> Counter(COUNT_CALL {} stop) -> ToDump({to});",
        all.len()
    );
    run(&lab, &chain, "net_ring0");
    assert!(frames(&to) == all, "frames changed on the way");
}
