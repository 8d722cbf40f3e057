//! `sriov`: virtual functions of a network card. The card's own switch, which knows the MAC address of each, is between them.

use std::process::Command;

use super::{Ends, Fabric, Plan, Step, far_end, mac};
use crate::{Failure, is_interface_name};

/// The functions of a card.
#[derive(Default)]
pub(super) struct Sriov {
    /// The card's interface, if one is named.
    interface: Option<String>,
}

impl Sriov {
    pub(super) fn of(interface: &str) -> Self {
        Self { interface: Some(interface.into()) }
    }
}

impl Fabric for Sriov {
    fn name(&self) -> String {
        match &self.interface {
            Some(interface) => format!("sriov:{interface}"),
            None => "sriov".into(),
        }
    }

    fn summary(&self) -> &'static str {
        "virtual functions of a card, whose switch knows their MAC addresses"
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn learns(&self) -> bool {
        false
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some("is in a card")
    }

    fn look(&self) -> Result<String, String> {
        let needs = "a card with virtual functions, as sriov:INTERFACE";
        let interface = self.interface.as_deref().filter(|name| is_interface_name(name));
        let interface = interface.ok_or(needs)?;
        let path = format!("/sys/class/net/{interface}/device/sriov_totalvfs");
        match std::fs::read_to_string(path) {
            Ok(count) => Ok(format!("{interface}, {} virtual functions", count.trim())),
            Err(_) => Err(format!("{needs}; {interface} is none")),
        }
    }

    fn ends(&self) -> &'static [Ends] {
        &[Ends::Interfaces]
    }

    fn links(&self, _: usize, _: &[usize]) -> String {
        String::new()
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let card = self.interface.as_deref().unwrap_or("INTERFACE");
        let device = format!("/sys/class/net/{card}/device");
        let shell = |line: String| {
            let mut command = Command::new("sh");
            command.args(["-c", &line]);
            Step::Run(command, String::new())
        };
        let mut steps = vec![shell(format!("echo {ports} >{device}/sriov_numvfs"))];
        for port in 0..ports {
            let mut set = Command::new("ip");
            set.args(["link", "set", "dev", card, "vf", &port.to_string(), "mac", &mac(port)]);
            steps.push(Step::Run(set, String::new()));
            // Only the card's driver knows what the function's interface is called.
            let (far, to) = (far_end(port), &at.namespace.name);
            let function = format!("$(ls {device}/virtfn{port}/net)");
            steps.push(shell(format!("ip link set dev {function} netns {to} name {far}")));
        }
        Ok(steps)
    }
}
