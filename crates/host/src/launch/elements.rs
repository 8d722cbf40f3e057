//! `catena run`, over interfaces of a namespace, or devices of DPDK's.

use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{Failure, Journal, Namespace, Process, log};

/// How often it is looked whether the process has ended while it starts.
const LOOK: Duration = Duration::from_millis(20);

/// A chain of elements in a namespace.
#[derive(Clone, Debug)]
pub(crate) struct Elements<'a> {
    /// The program `catena`.
    pub(crate) program: &'a Path,
    /// The chain's file.
    pub(crate) file: &'a Path,
    /// Options about how frames are carried.
    pub(crate) io: &'a [String],
    /// Variables of its environment.
    pub(crate) environment: Vec<(&'a str, &'a Path)>,
    /// The names of its devices, and what each is bound to.
    pub(crate) devices: &'a [(String, String)],
    pub(crate) cores: &'a [usize],
    /// The name of its log.
    pub(crate) name: &'a str,
}

impl Elements<'_> {
    /// The command that runs it.
    pub(crate) fn command(&self, namespace: &Namespace) -> Command {
        let mut command = namespace.command(self.program);
        command.arg("run").arg(self.file).args(["--control", "none"]).args(self.io);
        for (name, device) in self.devices {
            command.arg("--in").arg(format!("{name}={device}"));
        }
        command.envs(self.environment.iter().copied());
        let cores: Vec<String> = self.cores.iter().map(usize::to_string).collect();
        command.arg("--cores").arg(cores.join(","));
        command
    }

    /// Starts it, and waits until its interfaces are open.
    pub(crate) fn start(
        &self,
        namespace: &Namespace,
        journal: &Journal,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Process, Failure> {
        let folder = journal.folder();
        // It says there when its interfaces are open.
        let address = folder.join(format!("{}.notify", self.name));
        let _ = std::fs::remove_file(&address);
        let socket = UnixDatagram::bind(&address).map_err(Failure::at(&address))?;
        socket.set_read_timeout(Some(LOOK)).map_err(Failure::at(&address))?;
        let mut command = self.command(namespace);
        command.env("NOTIFY_SOCKET", &address);
        let [output, errors] = log::open(folder, self.name)?;
        command.process_group(0).stdin(Stdio::null()).stdout(output).stderr(errors);
        let process = journal.start_as_is(&mut command)?;
        // Who reads the log sees its end when all who write to it have ended.
        drop(command);
        loop {
            let mut said = [0; 256];
            match socket.recv(&mut said) {
                Ok(count) if said[..count].starts_with(b"READY=1") => break,
                Err(why)
                    if !matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    return Err(Failure::File(address, why));
                }
                _ if !process.is_running() => {
                    let said = log::tail(folder, self.name);
                    let said = said.unwrap_or_else(|| "it printed nothing".into());
                    let why = format!("the elements of '{}' ended: {said}", self.name);
                    return Err(Failure::Impossible(why));
                }
                _ if !go_on() => return Err(Failure::Interrupted),
                _ => {}
            }
        }
        let _ = std::fs::remove_file(&address);
        Ok(process)
    }
}
