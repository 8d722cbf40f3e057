//! How commands fail that were asked for JSON.

use serde_json::Value;

use crate::program::Folder;

const WRONG: &str = "FromDump(in.pcap)\n  -> Countr -> Discard;\n";

/// One JSON document on the standard output, nothing on the standard error, and the status as without.
#[test]
fn errors_are_json_where_it_is_asked_for() {
    let folder = Folder::new();
    folder.file("wrong.click", WRONG).file("right.click", "Idle -> Discard;");
    let commands: [(&[&str], &str); 16] = [
        (&["run", "wrong.click"], "unknown-class"),
        (&["run", "none.click"], "failed"),
        (&["run", "right.click", "--cores", "x"], "failed"),
        (&["synth", "wrong.click"], "unknown-class"),
        (&["synth", "none.click"], "failed"),
        (&["synth"], "failed"),
        (&["synth", "right.click", "--limit", "x"], "failed"),
        (&["explain", "wrong.click", "--packet", "udp 1.0.0.1:1 > 1.0.0.2:2"], "unknown-class"),
        (&["explain", "right.click"], "failed"),
        (&["verify", "wrong.click", "right.click"], "unknown-class"),
        (&["verify", "none.click"], "failed"),
        (&["verify", "right.click", "right.click", "right.click"], "failed"),
        (&["elements", "Countr"], "failed"),
        (&["ctl", "--socket", "none", "status"], "failed"),
        (&["top", "--socket", "none"], "failed"),
        (&["check", "X=1"], "failed"),
    ];
    for (command, code) in commands {
        let text = folder.run(command);
        let json = folder.run(command.iter().chain(&["--json"]));
        assert_eq!((json.code, json.err.as_str()), (text.code, ""), "{command:?}");
        assert!(json.code.is_some_and(|code| code > 0), "{command:?}");
        let document: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(document["errors"], 1, "{document}");
        let found = &document["diagnostics"][0];
        assert_eq!((&found["severity"], &found["code"]), (&"error".into(), &code.into()));
        // People read the same, once.
        let errors = ["error:", "error["].map(|prefix| text.err.matches(prefix).count());
        assert_eq!(errors.iter().sum::<usize>(), 1, "{}", text.err);
        let message = found["message"].as_str().unwrap().lines().next().unwrap();
        assert!(!message.starts_with("error") && text.err.contains(message), "{message}");
        if code == "unknown-class" {
            assert_eq!((found["labels"][0]["line"].as_u64(), text.out.as_str()), (Some(2), ""));
        }
    }
}
