//! The kernel's packet filter, which judges packets one by one.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use lab::live::Network;

/// A network namespace with rules of nftables.
pub(crate) struct Kernel(Network);

impl Kernel {
    /// Loads rules, and settings that a shell makes in /proc/sys/net.
    pub(crate) fn start(rules: &str, settings: &str) -> Self {
        let network = Network::new(&["kernel"]);
        let file = network.folder().join("rules.nft");
        std::fs::write(&file, rules).unwrap();
        let script = network.folder().join("play.py");
        std::fs::write(&script, include_str!("kernel/play.py")).unwrap();
        network.on("kernel", "nft", &["-f", file.to_str().unwrap()]);
        let settings = format!("cd /proc/sys/net; echo 1 > ipv4/ip_forward; {settings}");
        network.on("kernel", "sh", &["-c", &settings]);
        Self(network)
    }

    /// A folder as long as it runs.
    pub(crate) fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// The rules as it prints them.
    pub(crate) fn listing(&self) -> String {
        self.0.on("kernel", "nft", &["list", "ruleset"])
    }

    /// Passes each packet through, from one of two sides to the other; which of them left.
    pub(crate) fn verdicts<'a>(
        &self,
        packets: impl IntoIterator<Item = (usize, &'a [u8])>,
    ) -> Vec<bool> {
        let script = self.0.folder().join("play.py");
        let mut command = self.0.command("kernel", "python3");
        let mut player =
            command.arg(&script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut text = String::new();
        for (from, packet) in packets {
            let hex: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
            text += &format!("{from} {hex}\n");
        }
        let mut input = player.stdin.take().unwrap();
        let writing = std::thread::spawn(move || input.write_all(text.as_bytes()));
        let output = player.wait_with_output().unwrap();
        writing.join().unwrap().expect("the player reads all");
        assert!(output.status.success());
        let lines = output.stdout.split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty()).map(|line| line == b"1").collect()
    }
}
