//! `plain`: nothing but the network namespace. Programs have the files of this host.

use std::process::Command;

use super::{Place, Runtime};
use crate::Failure;

pub(super) struct Plain;

impl Runtime for Plain {
    fn name(&self) -> &'static str {
        "plain"
    }

    fn summary(&self) -> &'static str {
        "a network namespace alone, with the files of this host"
    }

    fn look(&self) -> Result<String, String> {
        crate::process::needs(&["unshare"]).map_err(|why| why.to_string())?;
        Ok("Catena's own".into())
    }

    fn has_root(&self) -> bool {
        false
    }

    fn command(&self, at: &Place<'_>, arguments: &[String]) -> Result<Command, Failure> {
        let mut command = at.namespace.command(at.program);
        command.args(arguments);
        Ok(at.journal.marked(command))
    }
}
