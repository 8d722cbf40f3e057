//! The kernel's packet filter, through which packets pass one by one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use lab::live::Network;
use net::wire::{Ipv4, Ipv6};

/// A network namespace with rules of nftables and two interfaces, between which packets are forwarded.
pub(crate) struct Kernel {
    player: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    network: Network,
}

impl Kernel {
    /// Loads rules and makes settings, which a shell does in /proc/sys/net. The second interface has the address, if
    /// there is one.
    pub(crate) fn start(rules: &str, settings: &str, address: Option<String>) -> Self {
        let network = Network::new(&["kernel"]);
        let file = network.folder().join("rules.nft");
        std::fs::write(&file, rules).unwrap();
        let script = network.folder().join("play.py");
        std::fs::write(&script, include_str!("kernel/play.py")).unwrap();
        network.on("kernel", "nft", &["-f", file.to_str().unwrap()]);
        let settings = format!(
            "cd /proc/sys/net; echo 1 > ipv4/ip_forward; echo 1 > ipv6/conf/all/forwarding;
             echo 0 > ipv6/conf/default/disable_ipv6; {settings}"
        );
        network.on("kernel", "sh", &["-c", &settings]);
        let mut command = network.command("kernel", "python3");
        command.arg(&script).args(address).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut player = command.spawn().unwrap();
        let input = player.stdin.take();
        let output = BufReader::new(player.stdout.take().unwrap());
        Self { player, input, output, network }
    }

    /// A folder as long as it runs.
    pub(crate) fn folder(&self) -> &Path {
        self.network.folder()
    }

    /// The rules as it prints them.
    pub(crate) fn listing(&self) -> String {
        self.network.on("kernel", "nft", &["list", "ruleset"])
    }

    /// What leaves of a packet that comes from a side, and on which side.
    pub(crate) fn pass(&mut self, from: usize, packet: &[u8]) -> Vec<(usize, Vec<u8>)> {
        let hex: String = packet.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.input.as_mut().unwrap(), "{from} {hex}").unwrap();
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the player ended");
        let byte =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        line.split_whitespace()
            .map(|left| {
                let (side, hex) = left.split_once(':').unwrap();
                (side.parse().unwrap(), hex.as_bytes().chunks(2).map(byte).collect())
            })
            .collect()
    }

    /// Whether a packet that comes from a side leaves on the other.
    pub(crate) fn forwards(&mut self, from: usize, packet: &[u8]) -> bool {
        let left = self.pass(from, packet);
        left.iter().any(|(side, other)| *side != from && transport(other) == transport(packet))
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // It ends with its input.
        self.input = None;
        drop(self.player.wait());
    }
}

/// What is behind the IP header.
fn transport(packet: &[u8]) -> Option<&[u8]> {
    if let Some(ip) = Ipv6::new(packet).filter(|ip| ip.version() == 6) {
        return packet.get(40..40 + ip.payload_len());
    }
    let ip = Ipv4::new(packet)?;
    packet.get(ip.header_len()..usize::from(ip.total_len()))
}
