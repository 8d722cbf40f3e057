//! Processes of this host, with what whoever starts them may do.

use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{Environment, Start};
use crate::{Failure, Journal, Process};

/// The folder of programs that NFs start, if they do.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

#[derive(Debug)]
pub(crate) struct Native;

impl Environment for Native {
    fn start(&self, start: Start<'_>, journal: &Journal) -> Result<Process, Failure> {
        let [output, errors] = start.output;
        let mut command = Command::new(start.program);
        command.args(start.arguments).env_clear().env("PATH", PATH).process_group(0);
        command.stdin(start.socket).stdout(output).stderr(errors);
        journal.start_as_is(&mut command)
    }
}
