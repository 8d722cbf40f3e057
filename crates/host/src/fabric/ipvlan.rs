//! `ipvlan`: interfaces above one of the kernel's, which share its MAC address and have an IP address each. It knows where these
//! are, and so carries packets of sockets alone.

use super::{BELOW, Ends, Fabric, Plan, Step, above_one, kernel_makes};
use crate::Failure;

pub(super) struct Ipvlan;

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

    fn ends(&self) -> &'static [Ends] {
        &[Ends::Interfaces]
    }

    fn links(&self, ports: usize, taken: &[usize]) -> String {
        above_one(ports, taken, |_| "type ipvlan mode l2 bridge".into())
    }

    fn steps(&self, _: &Plan<'_>, _: usize) -> Result<Vec<Step>, Failure> {
        Ok(Vec::new())
    }
}
