//! `ipvlan`: interfaces above one of the kernel's, which share its MAC address and have an IP address each. It knows where these
//! are, and so carries packets of sockets alone.

use std::fmt::Write as _;

use super::{Fabric, MTU, Plan, Step, far_end, kernel_makes};
use crate::Failure;

pub(super) struct Ipvlan;

/// The interface below.
const BELOW: &str = "below";

impl Fabric for Ipvlan {
    fn name(&self) -> String {
        "ipvlan".into()
    }

    fn summary(&self) -> &'static str {
        "interfaces above one, which share its MAC address: it finds IP addresses, so takes sockets alone (--io udp)"
    }

    fn look(&self) -> Result<String, String> {
        kernel_makes(&self.links(1, &[]), "CONFIG_IPVLAN")
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some("finds IP addresses")
    }

    fn taken(&self, _: usize) -> String {
        BELOW.into()
    }

    fn links(&self, ports: usize, taken: &[usize]) -> String {
        let mut text = match taken.is_empty() {
            true => format!(
                "link add name {BELOW} mtu {MTU} type veth peer name other mtu {MTU}\n\
                 link set dev {BELOW} up\nlink set dev other up\n"
            ),
            false => String::new(),
        };
        for port in (0..ports).filter(|port| !taken.contains(port)) {
            let far = far_end(port);
            let _ = writeln!(text, "link add link {BELOW} name {far} type ipvlan mode l2 bridge");
        }
        text
    }

    fn steps(&self, _: &Plan<'_>, _: usize) -> Result<Vec<Step>, Failure> {
        Ok(Vec::new())
    }
}
