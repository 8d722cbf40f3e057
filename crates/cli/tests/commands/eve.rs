//! Alerts of DPI as jq reads them.

use std::process::Command;

use crate::program::Folder;

#[test]
fn alerts_are_read_by_jq() {
    let folder = Folder::new();
    let rule = r#"alert udp any any -> any 53 (msg:"a \"quoted\" name, \\ and é"; content:"example"; rev:3; sid:7;)"#;
    folder.file("eve.rules", rule);
    let chain = r#"require(nf);
        InfiniteSource(DATA "an example", LIMIT 3, STOP true) -> UDPIPEncap(10.0.0.1, 4000, 10.0.0.2, 53)
          -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> d :: DPI(eve.rules) -> Discard;"#;
    folder.file("chain.click", chain);
    let ended = folder.run(["run", "chain.click", "-q", "-h", "d/rules.alerts"]);
    // The first line names the handler.
    let alerts: String = ended
        .well()
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| format!("{line}\n"))
        .collect();
    folder.file("eve.json", alerts);
    let mut command = Command::new("jq");
    command.current_dir(folder.path()).args(["-r", "-s"]);
    let fields = "map(select(.event_type == \"alert\" and (.timestamp | test(\"^[0-9-]+T[0-9:.]+[+]0000$\")))
        | [.src_ip, .src_port, .dest_ip, .dest_port, .proto, .alert.signature_id, .alert.rev, .alert.action, .alert.signature]
        | map(tostring) | join(\" \")) | .[]";
    command.args([fields, "eve.json"]);
    let output = command.output().expect("the package jq is needed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let read = "10.0.0.1 4000 10.0.0.2 53 UDP 7 3 allowed a \"quoted\" name, \\ and é\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), read.repeat(3));
}
