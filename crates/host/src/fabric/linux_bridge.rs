//! `linux-bridge`: the kernel's learning bridge.

use std::fmt::Write as _;

use super::{Fabric, Joins, Plan, Step, kernel_makes, near_end};
use crate::Failure;

pub(super) struct LinuxBridge;

impl Fabric for LinuxBridge {
    fn name(&self) -> String {
        "linux-bridge".into()
    }

    fn summary(&self) -> &'static str {
        "the kernel's learning bridge, over veth"
    }

    fn look(&self) -> Result<String, String> {
        kernel_makes("link add name a type bridge", "CONFIG_BRIDGE")
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let of_one = match at.joins {
            Joins::All => ports,
            Joins::Pairs => 2,
        };
        let mut text = String::new();
        for bridge in 0..ports.div_ceil(of_one) {
            let _ = writeln!(text, "link add name br{bridge} type bridge mcast_snooping 0");
            for port in (bridge * of_one..ports).take(of_one) {
                let near = near_end(port);
                let _ = writeln!(text, "link set dev {near} master br{bridge}");
                if at.joins == Joins::Pairs {
                    // There is but one port that a frame can go to.
                    let _ = writeln!(text, "link set dev {near} type bridge_slave learning off");
                }
            }
            let _ = writeln!(text, "link set dev br{bridge} up");
        }
        Ok(vec![Step::Ip(text)])
    }
}
