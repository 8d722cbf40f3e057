//! Frames that a device of DPDK's carries come out as they went in.

use std::fs::File;
use std::path::Path;

use net::pcap::{Options, Reader, Writer};

use crate::CATENA;
use crate::eal;
use lab::live::{Lab, possible};

/// A capture, unpacked where DPDK can read it.
pub(crate) fn unpacked(lab: &Lab) -> String {
    let packed = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/lan.pcap.gz"));
    let to = lab.folder().join("in.pcap");
    let mut from = flate2::read::MultiGzDecoder::new(File::open(packed).unwrap());
    std::io::copy(&mut from, &mut File::create(&to).unwrap()).unwrap();
    to.display().to_string()
}

/// The frames of a capture.
pub(crate) fn frames(path: &str) -> Vec<Vec<u8>> {
    let mut reader = Reader::open(File::open(path).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        frames.push(record.data.to_vec());
    }
    frames
}

/// Writes a capture of these frames.
fn capture(to: &str, frames: &[impl AsRef<[u8]>]) {
    let file = std::io::BufWriter::new(File::create(to).unwrap());
    let mut writer = Writer::new(file, &Options::default()).unwrap();
    for (i, frame) in frames.iter().enumerate() {
        let frame = frame.as_ref();
        writer.write(i as u64, frame, frame.len() as u32).unwrap();
    }
    writer.finish().unwrap();
}

/// Runs a chain that stops of its own accord; what it prints.
#[track_caller]
fn run(lab: &Lab, chain: &str, device: &str) -> String {
    let bound = format!("device=dpdk:{device}");
    let arguments = ["--in", &bound, "--dpdk-eal", &eal(lab, ""), "--control", "none"];
    let (well, text, told) = lab.start_on("middle", chain, &arguments).end();
    assert!(well, "{told}{text}");
    text
}

#[test]
fn a_capture_goes_through_net_pcap_unchanged() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let (from, to) = (unpacked(&lab), lab.folder().join("out.pcap").display().to_string());
    let all = frames(&from);
    assert!(all.len() > 100);
    let chain = format!(
        "FromDevice(device) -> ToDevice(device) -> Counter(COUNT_CALL {} stop) -> Discard;",
        all.len()
    );
    run(&lab, &chain, &format!("net_pcap0,rx_pcap={from},tx_pcap={to}"));
    assert!(frames(&to) == all, "frames changed in transit");
}

#[test]
fn a_capture_goes_through_net_ring_unchanged() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let (from, to) = (unpacked(&lab), lab.folder().join("out.pcap").display().to_string());
    let all = frames(&from);
    // The ring holds 1024 frames; it gets them eight at a time, and each time they are taken out.
    let chain = format!(
        "FromDump({from}, BURST 8) -> ToDevice(device);
         FromDevice(device) -> Counter(COUNT_CALL {} stop) -> ToDump({to});",
        all.len()
    );
    run(&lab, &chain, "net_ring0");
    assert!(frames(&to) == all, "frames changed in transit");
}

#[test]
fn a_long_queue_and_copies_leave_the_device_buffers_to_receive_into() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let (from, to) = (unpacked(&lab), lab.folder().join("out.pcap").display().to_string());
    // More frames than the device has buffers.
    let few = frames(&from);
    let all: Vec<&Vec<u8>> = few.iter().cycle().take(10_000).collect();
    capture(&from, &all);
    // All are held until the last has come; then each is changed, and a copy of it is dropped.
    let chain = "FromDevice(device) -> Counter(COUNT_CALL 10000 out.active true) -> Queue(10000)
           -> out :: Unqueue(ACTIVE false) -> Strip(6) -> Unstrip(4) -> copies :: Tee
           -> StoreData(0, \\<00>) -> Discard;
         copies [1] -> Counter(COUNT_CALL 10000 stop) -> ToDevice(device);";
    run(&lab, chain, &format!("net_pcap0,rx_pcap={from},tx_pcap={to}"));
    let changed = frames(&to);
    assert_eq!(changed.len(), all.len());
    assert!(changed.iter().zip(&all).all(|(came, went)| came[..] == went[2..]), "frames changed");
}

#[test]
fn frames_without_a_whole_header_are_counted() {
    if !possible() {
        return;
    }
    let lab = Lab::new(CATENA, 1500);
    let [from, to] = ["in.pcap", "out.pcap"].map(|f| lab.folder().join(f).display().to_string());
    let mut all: Vec<Vec<u8>> =
        (0..100).map(|n| vec![n; if n % 3 == 0 { 13 } else { 60 }]).collect();
    capture(&from, &all);
    all.retain(|frame| frame.len() > 13);
    let chain = "FromDevice(device) -> ToDevice(device) -> Counter(COUNT_CALL 66 stop) -> Discard;";
    let text = run(&lab, chain, &format!("net_pcap0,rx_pcap={from},tx_pcap={to}"));
    assert!(frames(&to) == all, "whole frames were changed or lost");
    let counted = text.lines().find(|line| line.contains("runt")).unwrap_or_default();
    let words: Vec<&str> = counted.split_whitespace().collect();
    assert!(counted.trim_start().starts_with("FromDevice@"), "they are not sent: {text}");
    assert!(words.ends_with(&["runt", "34", "442"]), "{text}");
}
