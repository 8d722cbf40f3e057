//! `catena nfs`, and what its manuals show.

use std::fs;

use compiler::library::FUNCTIONS;
use net::pcap::{Options, Writer};
use serde_json::Value;

use crate::program::Folder;

#[test]
fn every_function_is_listed_once() {
    let folder = Folder::new();
    let out = folder.run(["nfs"]).well().to_string();
    for of in FUNCTIONS {
        let line = format!("  {} ", of.name);
        assert_eq!(out.lines().filter(|l| l.starts_with(&line)).count(), 1, "{}", of.name);
    }
    let json: Value = serde_json::from_str(folder.run(["nfs", "--json"]).well()).unwrap();
    let names: Vec<_> = json.as_array().unwrap().iter().map(|of| of["name"].clone()).collect();
    assert_eq!(names, FUNCTIONS.iter().map(|of| of.name).collect::<Vec<_>>());
}

#[test]
fn a_manual_ends_with_what_the_example_becomes() {
    let folder = Folder::new();
    let out = folder.run(["nfs", "ACL"]).well().to_string();
    assert!(out.starts_with("ACL(FILE [, KEYWORDS])\n    lets pass"), "{out}");
    assert!(out.contains("\nIPV6\n"), "{out}");
    assert!(out.contains("      require(nf);\n      FromDevice(lan) -> ACL(acl.rules)"), "{out}");
    assert!(
        out.contains("FILE acl.rules\n      deny src net 10.9.0.0/16\n      allow udp"),
        "{out}"
    );
    assert!(
        out.contains(
            "    opaque: nothing\n    left to elements: some packets of IPFilter\n    openflow: "
        ),
        "{out}"
    );
    let json: Value = serde_json::from_str(folder.run(["nfs", "NAPT", "--json"]).well()).unwrap();
    let becomes = &json["example_becomes"];
    assert_eq!(becomes["programs"], becomes["proven"]);
    let opaque = becomes["opaque"].as_array().unwrap();
    let fragments = opaque.iter().find(|of| of["element"] == "IPReassembler").unwrap();
    assert_eq!(fragments["why"], "keeps fragments");
    let targets = becomes["targets"].as_array().unwrap();
    assert!(targets.iter().any(|of| of["target"] == "ebpf" && of["done"].as_u64() > Some(0)));
    let text = folder.run(["nfs", "NAPT", "--text"]).well().to_string();
    assert!(text.contains("\nelementclass NAPT {"), "{text}");
}

#[test]
fn a_name_that_is_not_there_brings_the_nearest() {
    let folder = Folder::new();
    assert_eq!(
        folder.run(["nfs", "NATP"]).refused(),
        "error: there is no network function 'NATP'; did you mean NAPT?\n"
    );
    assert!(folder.run(["nfs", "Zebra"]).refused().contains("'catena nfs' lists all"));
    assert!(folder.run(["nfs", "--text"]).misused().contains("NAME"));
}

/// Frames that every interface of an example receives: what there is on networks, and what should not be.
fn frames() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Options::default()).unwrap();
    for text in [
        "udp 10.0.0.1:5000 > 8.8.8.8:53 payload 'query'",
        "tcp 10.0.0.1:5000 > 8.8.8.8:80 flags S",
        "icmp 10.0.0.1 > 8.8.8.8 type echo rest 7",
        "udp 8.8.8.8:53 > 203.0.113.1:5000",
        "udp 10.0.0.1:1 > 10.0.0.2:2 ttl 1",
        "udp 10.0.0.1:1 > 10.0.0.2:2 badsum",
        "udp 10.0.0.1:1 > 10.0.0.2:2 frag 8",
        "arp who-has 10.1.0.1 tell 10.1.0.2",
        "udp [2001:db8::1]:1 > [2001:db8:1::2]:2",
        "udp [2001:db8:a::a00:1]:5000 > [64:ff9b::808:808]:53 payload 'query'",
        "vlan 7 udp 10.0.0.1:1 > 10.0.0.2:2",
        "ip 192.0.2.1 > 192.0.2.2 proto 4 payload (udp 10.0.0.1:1 > 10.0.0.2:2)",
        "ip 192.0.2.1 > 192.0.2.2 proto 47 payload \
         20000800000000074500001c00000000401166cf0a0000010a000002000100020008ebd8",
        "udp 192.0.2.1:4000 > 192.0.2.2:4789 nosum payload \
         080000000013880002000000000202000000000188cc",
        "udp 192.0.2.1:4000 > 192.0.2.2:6081 nosum payload \
         00006558001388000200000000020200000000010800",
        "udp 192.0.2.1:4000 > 192.0.2.2:2152 nosum payload \
         30ff001c000000104500001c00000000401166cf0a0000010a000002000100020008ebd8",
        "bare raw 020000000002020000000001886411000007001e00214500001c00000000401166cf0a0000010a000002000100020008ebd8",
        "ip 192.0.2.1 > 192.0.2.2 proto 50 payload \
         00001001000000013030303030303030675fb5293ce5ee4dda70cebb85c624be7857324a152ab1f0d12fbc0818be07fe10662ddbe7bd2de30837ae6c6c15fa42259ff179",
        "raw 0800",
    ] {
        let frame = net::notation::parse(text).unwrap();
        writer.write(0, &frame, frame.len() as u32).unwrap();
    }
    writer.finish().unwrap()
}

/// Its example is what a program does, and nothing else. It takes root's rights and never ends; tests of live chains run it.
const STARTS_A_PROGRAM: &str = "ThirdParty";

#[test]
fn every_example_is_good_is_proven_and_runs() {
    let frames = frames();
    for of in FUNCTIONS {
        let folder = Folder::new();
        folder.run(["nfs", of.name, "-o", "."]).well();
        assert!(folder.run(["check", of.file]).well().starts_with("ok"), "{}", of.name);
        let json: Value =
            serde_json::from_str(folder.run(["synth", of.file, "--json"]).well()).unwrap();
        let is_synthesised = !json["programs"].as_array().unwrap().is_empty();
        assert_eq!(is_synthesised, of.name != STARTS_A_PROGRAM, "{}", of.name);
        folder.run(["verify", of.file]).well();
        if of.name == STARTS_A_PROGRAM {
            continue;
        }
        let text = folder.read(of.file);
        let mut words = vec!["run".to_string(), "-q".into(), of.file.to_string()];
        for wire in ["lan", "wan", "inside", "proxy", "probe", "trunk", "six", "four"] {
            if text.contains(&format!("FromDevice({wire})")) {
                folder.file(&format!("{wire}.pcap"), &frames);
                words.extend(["--in".into(), format!("{wire}={wire}.pcap")]);
            }
            if text.contains(&format!("ToDevice({wire})")) {
                words.extend(["--out".into(), format!("{wire}={wire}.out.pcap")]);
            }
        }
        folder.run(&words).well();
        let left = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap());
        let left = left.filter(|of| of.file_name().to_string_lossy().ends_with(".out.pcap"));
        // A capture's own header takes 24 bytes.
        let bytes: u64 = left.map(|of| of.metadata().unwrap().len().saturating_sub(24)).sum();
        assert!(bytes > 0, "{}: no frame left", of.name);
    }
}

#[test]
fn a_function_that_is_not_required_is_named_with_what_makes_it_known() {
    let folder = Folder::new();
    folder.file("a.click", "Idle -> Limiter(1Mbps) -> Discard;");
    let ended = folder.run(["check", "a.click"]);
    ended.refused();
    assert!(ended.out.contains("`require(nf)` before its first use"), "{}", ended.out);
}
