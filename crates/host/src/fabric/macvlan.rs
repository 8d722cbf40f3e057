//! `macvlan`: interfaces of the kernel's that share one below them, and reach each other in bridge mode.

use std::fmt::Write as _;

use super::{Fabric, MTU, Site, far_end, kernel_makes, mac};
use crate::{Failure, Process};

pub(super) struct Macvlan;

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

    fn links(&self, ports: usize, _: &[usize]) -> String {
        let mut text = format!(
            "link add name below mtu {MTU} type veth peer name other mtu {MTU}\n\
             link set dev below up\nlink set dev other up\n"
        );
        for port in 0..ports {
            let (far, mac) = (far_end(port), mac(port));
            let _ = writeln!(
                text,
                "link add link below name {far} address {mac} type macvlan mode bridge"
            );
        }
        text
    }

    fn start(&self, _: &Site<'_>, _: usize) -> Result<Vec<Process>, Failure> {
        Ok(Vec::new())
    }
}
