//! Processes of this host. Where root starts them, each has a user of its own, and limits of memory by control groups.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Environment, Packets, Running, Start};
use crate::cgroup::Groups;
use crate::confine::User;
use crate::manifest::Privilege;
use crate::process::PATH;
use crate::script::{self, Script};
use crate::sys::{self, Confinement};
use crate::{Failure, Journal, confine};

/// A program with its arguments, and the control groups of its service.
#[derive(Debug)]
pub(crate) struct Native {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) groups: Groups,
}

impl Environment for Native {
    fn start(&self, start: Start<'_>, journal: &Journal) -> Result<Running, Failure> {
        let [output, errors] = start.output;
        let is_root = rustix::process::geteuid().is_root();
        // Kept until the program has started.
        let mut opened = None;
        let script = Script::of(&self.program)?;
        let path = match is_root && script.is_none() && !is_open_to_all(&self.program) {
            true => {
                let file = File::open(&self.program).map_err(Failure::at(&self.program))?;
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                opened = Some(file);
                path.into()
            }
            false => self.program.clone(),
        };
        let mut command = match script {
            // Its interpreter reads it, by its path, as the user that it becomes.
            Some(script) => {
                if let Some(closed) = script::closed(&self.program).filter(|_| is_root) {
                    return Err(Failure::Impossible(format!(
                        "{}: functions that root starts have users of their own, and not everybody can read {}: move \
                         it, or `chmod o+rX` that",
                        self.program.display(),
                        closed.display()
                    )));
                }
                let mut command = Command::new(script.interpreter);
                command.args(script.arguments).arg(path);
                command
            }
            None => {
                let mut command = Command::new(path);
                command.arg0(&self.program);
                command
            }
        };
        command.args(&self.arguments);
        command.env_clear().env("PATH", PATH).process_group(0);
        let user = if is_root { Some(User::take()?) } else { None };
        let (input, filters, descriptors, network, privileges) = match start.packets {
            Packets::Shared(socket) => {
                let filters = confine::filters(start.limits);
                (Stdio::from(socket), filters, confine::DESCRIPTORS, None, &[][..])
            }
            Packets::Interfaces(namespace, privileges) => (
                Stdio::null(),
                confine::filters_of_programs(),
                confine::DESCRIPTORS_OF_PROGRAMS,
                Some(namespace.open()?),
                privileges,
            ),
        };
        let confinement = Confinement {
            network,
            user: user.as_ref().map(|of| (of.number(), Privilege::capabilities(privileges))),
            filters: filters.map_err(|why| Failure::Impossible(format!("system calls: {why}")))?,
            limits: confine::limits(start.limits, descriptors, is_root),
        };
        sys::confine(&mut command, confinement);
        command.stdin(input).stdout(output).stderr(errors);
        let process = journal.start_as_is(&mut command);
        drop(opened);
        let process = process.map_err(|why| match why {
            Failure::Command(_, why) => {
                Failure::Impossible(format!("{} does not start: {why}", self.program.display()))
            }
            why => why,
        })?;
        let name = format!("{}-{}", start.chain, start.seat);
        let groups = self.groups.enter(&name, process.number, start.limits);
        Ok(Running { process, container: None, groups, _user: user })
    }
}

/// Whether whoever it is may run a program: its file, and all folders above it.
fn is_open_to_all(program: &Path) -> bool {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_path_buf());
    real.ancestors().all(|path| path.metadata().is_ok_and(|of| of.permissions().mode() & 1 != 0))
}
