//! Environments: what the processes of NFs run in, one file each.

mod native;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Stdio;

use crate::{Failure, Journal, Process};

pub(crate) use native::Native;

/// A program that is to become an NF.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [String],
    /// The NF's end of the socket to its host: its standard input.
    pub(crate) socket: OwnedFd,
    /// Where what it prints goes.
    pub(crate) output: [Stdio; 2],
}

/// What processes run in.
pub(crate) trait Environment: Send {
    /// Starts a program.
    fn start(&self, start: Start<'_>, journal: &Journal) -> Result<Process, Failure>;
}
