//! `macvlan`: interfaces of the kernel's that share one below them, and reach each other in bridge mode.

use std::fmt::Write as _;

use super::{Fabric, MTU, Plan, Step, far_end, kernel_makes, mac};
use crate::Failure;

pub(super) struct Macvlan;

/// The interface below.
const BELOW: &str = "below";

impl Fabric for Macvlan {
    fn name(&self) -> String {
        "macvlan".into()
    }

    fn summary(&self) -> &'static str {
        "interfaces with a MAC address each above one, in bridge mode"
    }

    fn look(&self) -> Result<String, String> {
        kernel_makes(&self.links(1, &[]), "CONFIG_MACVLAN")
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some("learns addresses")
    }

    fn taken(&self, _: usize) -> String {
        BELOW.into()
    }

    fn links(&self, ports: usize, taken: &[usize]) -> String {
        // The other end of what is below is of no use.
        let mut text = match taken.is_empty() {
            true => format!(
                "link add name {BELOW} mtu {MTU} type veth peer name other mtu {MTU}\n\
                 link set dev {BELOW} up\nlink set dev other up\n"
            ),
            false => String::new(),
        };
        for port in (0..ports).filter(|port| !taken.contains(port)) {
            let (far, mac) = (far_end(port), mac(port));
            let _ = writeln!(
                text,
                "link add link {BELOW} name {far} address {mac} type macvlan mode bridge"
            );
        }
        text
    }

    fn steps(&self, _: &Plan<'_>, _: usize) -> Result<Vec<Step>, Failure> {
        Ok(Vec::new())
    }
}
