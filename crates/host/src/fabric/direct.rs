//! `direct`: a pair of virtual Ethernet interfaces for each pair of ports, with nothing in between.

use std::fmt::Write as _;

use super::{Ends, Fabric, MTU, Plan, QUEUES, Step, far_end, kernel_makes, mac};
use crate::Failure;

pub(super) struct Direct;

impl Fabric for Direct {
    fn name(&self) -> String {
        "direct".into()
    }

    fn summary(&self) -> &'static str {
        "no switch: a veth pair for each pair of applications, the limit"
    }

    fn look(&self) -> Result<String, String> {
        kernel_makes("link add name a type veth peer name b", "CONFIG_VETH")
    }

    fn ends(&self) -> &'static [Ends] {
        &[Ends::Interfaces]
    }

    fn learns(&self) -> bool {
        false
    }

    fn is_at(&self, taken: usize, port: usize) -> bool {
        taken == port ^ 1
    }

    fn taken(&self, port: usize) -> String {
        // It becomes what would be the other end.
        far_end(port ^ 1)
    }

    fn links(&self, ports: usize, taken: &[usize]) -> String {
        let mut text = String::new();
        let is_free = |port: &usize| !taken.contains(port) && !taken.contains(&(port + 1));
        for port in (0..ports).step_by(2).filter(is_free) {
            let [(near, near_mac), (far, far_mac)] =
                [port, port + 1].map(|port| (far_end(port), mac(port)));
            let _ = writeln!(
                text,
                "link add name {near} mtu {MTU} {QUEUES} address {near_mac} type veth peer name {far} mtu {MTU} {QUEUES} address {far_mac}"
            );
        }
        text
    }

    fn steps(&self, _: &Plan<'_>, _: usize) -> Result<Vec<Step>, Failure> {
        Ok(Vec::new())
    }
}
