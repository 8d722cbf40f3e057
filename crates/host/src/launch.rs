//! Environments: what the processes of NFs run in, one file each.

mod elements;
mod native;
mod packed;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;

use crate::cgroup::Groups;
use crate::chain::Program;
use crate::confine::{Limits, User};
use crate::container::{Container, Runtime};
use crate::manifest::{Function, Privilege};
use crate::{Failure, Journal, Namespace, Process, cgroup};

pub(crate) use elements::Elements;
pub(crate) use native::Native;
pub(crate) use packed::Packed;

/// An NF that is to start.
#[derive(Debug)]
pub(crate) struct Start<'a> {
    /// How often it, or its chain, was started before.
    pub(crate) chain: u64,
    /// Its place in the chain.
    pub(crate) seat: usize,
    pub(crate) limits: Limits,
    pub(crate) packets: Packets<'a>,
    /// Where what it prints goes.
    pub(crate) output: [Stdio; 2],
}

/// How packets come to an NF.
#[derive(Debug)]
pub(crate) enum Packets<'a> {
    /// In memory. This is its end of the socket to its host, its standard input.
    Shared(OwnedFd),
    /// By interfaces of a namespace, where it has privileges.
    Interfaces(&'a Namespace, &'a [Privilege]),
}

/// What the process of an NF runs in.
pub(crate) trait Environment: std::fmt::Debug + Send + Sync {
    /// Starts it.
    fn start(&self, start: Start<'_>, journal: &Journal) -> Result<Running, Failure>;
}

/// What runs a function; `elements` is the program that runs elements.
pub(crate) fn environment(
    function: &Function,
    elements: &Program,
    groups: &Groups,
    journal: &Journal,
) -> Result<Box<dyn Environment>, Failure> {
    let native = |program: &PathBuf, arguments: &[String]| Native {
        program: program.clone(),
        arguments: arguments.to_vec(),
        groups: groups.clone(),
    };
    Ok(match function {
        Function::Click(_) => Box::new(native(&elements.0, &elements.1)),
        Function::Program(path, arguments) => Box::new(native(path, arguments)),
        Function::Image { path, arguments, runtime } => {
            Box::new(Packed::new(path, arguments, runtime, journal)?)
        }
    })
}

/// An NF that was started.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) process: Process,
    /// What is removed after its end.
    container: Option<(&'static dyn Runtime, Container)>,
    groups: Vec<PathBuf>,
    /// Nobody else's while this is there.
    _user: Option<User>,
}

impl Running {
    /// One of which nothing has to be removed but its process.
    pub(crate) fn of(process: Process) -> Self {
        Self { process, container: None, groups: Vec::new(), _user: None }
    }

    /// Ends it at once, and removes what was made for it.
    pub(crate) fn destroy(&self) {
        self.process.destroy();
        if let Some((runtime, container)) = &self.container {
            runtime.end(container);
        }
        self.groups.iter().for_each(|group| cgroup::remove(group));
    }

    /// Whether the kernel ended it as it used more memory than it may. It has not been destroyed yet.
    pub(crate) fn has_used_all_memory(&self) -> bool {
        let container = self.container.as_ref();
        let container = container.and_then(|(runtime, container)| runtime.memory_group(container));
        self.groups.iter().chain(&container).any(|group| cgroup::ran_out_of_memory(group))
    }
}
