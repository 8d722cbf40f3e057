//! `vale`: the learning switch of netmap, in the kernel.

use std::path::Path;

use super::{Fabric, NO_CHECKSUMS, Plan, Step, near_end};
use crate::Failure;

pub(super) struct Vale;

const PROGRAM: &str = "vale-ctl";
/// The device of netmap's module.
const DEVICE: &str = "/dev/netmap";

impl Fabric for Vale {
    fn name(&self) -> String {
        "vale".into()
    }

    fn summary(&self) -> &'static str {
        "netmap's learning switch, in the kernel"
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        Some(NO_CHECKSUMS)
    }

    fn look(&self) -> Result<String, String> {
        match Path::new(DEVICE).exists() {
            true => Ok("netmap".into()),
            false => Err(format!(
                "{DEVICE} and the program {PROGRAM}: netmap's kernel module, built from its source, github.com/luigirizzo/netmap"
            )),
        }
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let attach = |port: usize| {
            let mut command = at.namespace.command(Path::new(PROGRAM));
            command.args(["-a", &format!("vale0:{}", near_end(port))]);
            Step::Run(command, String::new())
        };
        Ok((0..ports).map(attach).collect())
    }
}
