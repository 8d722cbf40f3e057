//! `plain`: nothing but the network namespace. Programs have the files of this host.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Container, Runtime};
use crate::{Failure, Process};

#[derive(Debug)]
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

    fn takes_functions(&self) -> bool {
        false
    }

    fn command(&self, container: &Container) -> Result<Command, Failure> {
        let none = || Failure::Impossible("an application without a network".into());
        let namespace = container.namespace.as_ref().ok_or_else(none)?;
        let [program, arguments @ ..] = &*container.words else {
            return Err(Failure::Impossible("an application without a program".into()));
        };
        let mut command = namespace.command(Path::new(program));
        command.args(arguments);
        Ok(container.marked(command))
    }

    fn start(&self, _: &Container, _: [Stdio; 3]) -> Result<Process, Failure> {
        Err(Failure::Impossible("images are not started without a root file system".into()))
    }
}
