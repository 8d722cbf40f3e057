//! Packets that tshark takes apart.

use std::collections::BTreeSet;
use std::process::Command;

use net::pcap::Reader;

use crate::program::Folder;
use crate::scapy::scapy;

/// Algorithms as ESPTunnel and as tshark call them, the bytes of their first key, and what tshark calls the second.
const ALGORITHMS: [(&str, &str, u8, &str); 3] = [
    ("aes-128-gcm", "AES-GCM with 16 octet ICV [RFC4106]", 20, "NULL"),
    ("aes-256-gcm", "AES-GCM with 16 octet ICV [RFC4106]", 36, "NULL"),
    ("aes-128-cbc-hmac-sha256", "AES-CBC [RFC3602]", 16, "HMAC-SHA-256-128 [RFC4868]"),
];

fn digits(bytes: impl IntoIterator<Item = u8>) -> String {
    bytes.into_iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The IP packets of a capture of frames.
fn packets(folder: &Folder, name: &str) -> BTreeSet<String> {
    let mut reader = Reader::in_memory(std::fs::read(folder.path().join(name)).unwrap()).unwrap();
    let mut all = BTreeSet::new();
    while let Some(record) = reader.next().unwrap() {
        all.insert(digits(record.data[14..].iter().copied()));
    }
    all
}

#[test]
fn esp_is_decrypted_by_tshark() {
    let folder = Folder::new();
    scapy("esp.py", "seal", folder.path());
    let plain = packets(&folder, "plain.pcap");
    for (algorithm, cipher, length, of_tag) in ALGORITHMS {
        let second = if of_tag == "NULL" { length..length } else { 16..48 };
        let [first, second] = [digits(0..length), digits(second)];
        folder.file("key", format!("{first}{second}"));
        let chain = format!(
            "require(nf); FromDump(plain.pcap, STOP true) -> ESPTunnel(0x1001, 192.0.2.1, 192.0.2.2, key,
               02:00:00:00:00:01, 02:00:00:00:00:02, ALGORITHM {algorithm}, MTU 2000) -> ToDump(sealed.pcap);
             DriverManager(pause);"
        );
        folder.file("chain.click", &chain);
        folder.run(["run", "chain.click", "-q"]).well();
        let second = if second.is_empty() { second } else { format!("0x{second}") };
        let association = [
            "IPv4",
            "192.0.2.1",
            "192.0.2.2",
            "0x1001",
            cipher,
            &format!("0x{first}"),
            of_tag,
            &second,
            "32-bit",
        ];
        let association = association.map(|word| format!("\"{word}\"")).join(",");
        let mut command = Command::new("tshark");
        command.current_dir(folder.path()).args([
            "-r",
            "sealed.pcap",
            "-o",
            "esp.enable_encryption_decode:TRUE",
        ]);
        command.args([
            "-o",
            "esp.enable_authentication_check:TRUE",
            "-o",
            &format!("uat:esp_sa:{association}"),
        ]);
        command.args(["-T", "fields", "-e", "esp.icv_good", "-e", "esp.contained_data"]);
        let output = command.output().expect("the package tshark is needed");
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        let opened = told.lines().map(|line| {
            let (is_good, inner) = line.split_once('\t').unwrap_or((line, ""));
            assert!(matches!(is_good, "1" | "True"), "{algorithm}: {line}");
            inner.to_string()
        });
        let opened: BTreeSet<_> = opened.collect();
        assert_eq!(opened, plain, "{algorithm}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
