//! `macvlan`: interfaces of the kernel's that share one below them, and reach each other in bridge mode.

use super::{BELOW, Ends, Fabric, Plan, Step, above_one, kernel_makes, mac};
use crate::Failure;

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

    fn taken(&self, _: usize) -> String {
        BELOW.into()
    }

    fn ends(&self) -> &'static [Ends] {
        &[Ends::Interfaces]
    }

    fn links(&self, ports: usize, taken: &[usize]) -> String {
        above_one(ports, taken, |port| format!("address {} type macvlan mode bridge", mac(port)))
    }

    fn steps(&self, _: &Plan<'_>, _: usize) -> Result<Vec<Step>, Failure> {
        Ok(Vec::new())
    }
}
