//! Packets beside those of scapy, an implementation of many protocols for Python.

use std::path::Path;
use std::process::Command;

use crate::program::Folder;

/// Runs a script of this folder with scapy.
pub(crate) fn scapy(script: &str, argument: &str, folder: &Path) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands/scapy").join(script);
    let mut command = Command::new("/usr/bin/python3");
    let output = command.arg(script).arg(argument).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "the package python3-scapy is needed; {said}");
}

#[test]
fn esp_is_that_of_scapy_in_both_directions() {
    let folder = Folder::new();
    scapy("esp.py", "seal", folder.path());
    let ends = "02:00:00:00:00:01, 02:00:00:00:00:02";
    for (algorithm, length) in
        [("aes-128-gcm", 20u8), ("aes-256-gcm", 36), ("aes-128-cbc-hmac-sha256", 48)]
    {
        let key: String = (0..length).map(|byte| format!("{byte:02x}")).collect();
        folder.file("key", &key);
        let chain = format!(
            "require(nf);
            FromDump(plain.pcap, STOP true)
              -> ESPTunnel(0x1001, 192.0.2.1, 192.0.2.2, key, {ends}, ALGORITHM {algorithm}, MTU 2000)
              -> ToDump(sealed-{algorithm}.pcap);
            FromDump(by-scapy-{algorithm}.pcap, STOP true)
              -> ESPDetunnel(0x1001, key, {ends}, ALGORITHM {algorithm}, REPLAY 64)
              -> ToDump(opened-{algorithm}.pcap);
            DriverManager(pause, pause);",
        );
        folder.file("chain.click", &chain);
        folder.run(["run", "chain.click", "-q"]).well();
    }
    scapy("esp.py", "open", folder.path());
}

#[test]
fn tunnels_are_those_of_scapy_in_both_directions() {
    let folder = Folder::new();
    scapy("tunnels.py", "make", folder.path());
    let (ends, outside) = ("02:00:00:00:00:01, 02:00:00:00:00:02", "192.0.2.1, 192.0.2.2");
    let into = [
        ("geneve", format!("GENEVETunnel(5000, {outside}, {ends}, SPORT 4000)")),
        ("gtp", format!("GTPTunnel(16, {outside}, {ends}, SPORT 4000)")),
        ("pppoe", format!("PPPoETunnel(7, {ends})")),
    ];
    let out_of = [
        ("geneve", "GENEVEDetunnel(5000)".to_string()),
        ("geneve-options", "GENEVEDetunnel(5000)".to_string()),
        ("gtp", format!("GTPDetunnel(16, {ends})")),
        ("gtp-5g", format!("GTPDetunnel(16, {ends})")),
        ("gtp-sequence", format!("GTPDetunnel(16, {ends})")),
        ("pppoe", format!("PPPoEDetunnel(7, {ends})")),
    ];
    let mut chain = "require(nf);\n".to_string();
    for (name, tunnel) in &into {
        chain +=
            &format!("FromDump(plain.pcap, STOP true) -> {tunnel} -> ToDump(into-{name}.pcap);\n");
    }
    for (name, tunnel) in &out_of {
        chain += &format!(
            "FromDump(by-scapy-{name}.pcap, STOP true) -> {tunnel} -> ToDump(out-of-{name}.pcap);\n"
        );
    }
    let pauses = vec!["pause"; into.len() + out_of.len()].join(", ");
    folder.file("chain.click", chain + &format!("DriverManager({pauses});\n"));
    folder.run(["run", "chain.click", "-q"]).well();
    scapy("tunnels.py", "compare", folder.path());
}

#[test]
fn translations_between_versions_of_ip_are_those_of_scapy() {
    let folder = Folder::new();
    scapy("translation.py", "make", folder.path());
    let chain = "
        FromDump(six.pcap, STOP true) -> Strip(14) -> CheckIP6Header
          -> ProtocolTranslator64(2001:db8:a::/96, 64:ff9b::/96, ERROR_SRC 192.0.2.9)
          -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDump(made-four.pcap);
        FromDump(four.pcap, STOP true) -> Strip(14) -> CheckIPHeader
          -> ProtocolTranslator46(64:ff9b::/96, 2001:db8:a::/96)
          -> EtherEncap(0x86dd, 02:00:00:00:00:01, 02:00:00:00:00:02) -> ToDump(made-six.pcap);
        DriverManager(pause, pause);";
    folder.file("chain.click", chain);
    folder.run(["run", "chain.click", "-q"]).well();
    scapy("translation.py", "compare", folder.path());
}
