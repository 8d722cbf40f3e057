//! `linux-bridge`: the kernel's learning bridge.

use std::fmt::Write as _;

use super::{Fabric, Site, kernel_makes, near_end};
use crate::{Failure, Process};

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

    fn start(&self, at: &Site<'_>, ports: usize) -> Result<Vec<Process>, Failure> {
        let mut text = String::from("link add name br0 type bridge mcast_snooping 0\n");
        for port in 0..ports {
            let _ = writeln!(text, "link set dev {} master br0", near_end(port));
        }
        text += "link set dev br0 up\n";
        at.namespace.ip(at.journal, &text)?;
        Ok(Vec::new())
    }
}
