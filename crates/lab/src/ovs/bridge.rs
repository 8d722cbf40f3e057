//! A bridge between interfaces of a host, by Open vSwitch's userspace datapath.

use std::path::PathBuf;
use std::process::Command;

use super::Daemons;
use crate::live::{Network, until};

/// A bridge on a host. It drops everything until it is given entries.
pub struct Bridge {
    daemons: Daemons,
    /// The namespace of its host.
    namespace: String,
}

impl Bridge {
    /// Starts a bridge on a host; these interfaces become its ports, numbered from 1 on.
    pub fn start(network: &Network, host: &str, ports: &[&str]) -> Self {
        let mut bridge = vec!["datapath-type=netdev".to_string(), "fail-mode=secure".into()];
        for (name, number) in ports.iter().zip(1..) {
            let add = ["--", "add-port", "br0", name, "--", "set", "interface", name];
            bridge.extend(add.map(String::from));
            bridge.push(format!("ofport_request={number}"));
        }
        let namespace = network.namespace(host);
        Self { daemons: Daemons::start(switch(&namespace), &bridge), namespace }
    }

    /// Replaces all entries by those of a text.
    #[track_caller]
    pub fn load(&self, text: &str) {
        self.daemons.load(text);
    }

    /// Where it listens for who installs entries.
    pub fn socket(&self) -> PathBuf {
        self.daemons.folder.join("br0.mgmt")
    }

    /// Frames that a port received and sent.
    #[track_caller]
    pub fn packets(&self, port: u32) -> [u64; 2] {
        let said = self.daemons.flows(&["dump-ports", "br0", &port.to_string()]);
        let number = |of: &str| {
            let behind = said.split(&format!("{of} pkts=")).nth(1)?;
            behind.split(',').next()?.parse().ok()
        };
        let both = number("rx").zip(number("tx")).map(|(received, sent)| [received, sent]);
        both.unwrap_or_else(|| panic!("no counters in '{said}'"))
    }

    /// Kills the switch, as a crash would end it: it forgets all entries.
    pub fn kill(&mut self) {
        if let Some(switch) = self.daemons.switch.take() {
            switch.kill();
        }
    }

    /// Starts the switch again, with its ports and without entries.
    pub fn start_again(&mut self) {
        self.daemons.run_switch(switch(&self.namespace));
        let mut set = self.daemons.control(&["set-frags", "br0", "nx-match"]);
        until("the switch is back", || set.output().is_ok_and(|output| output.status.success()));
    }
}

/// The command that runs the switch on a host.
fn switch(namespace: &str) -> Command {
    let mut command = Command::new("ip");
    command.args(["netns", "exec", namespace, "ovs-vswitchd"]);
    command
}
