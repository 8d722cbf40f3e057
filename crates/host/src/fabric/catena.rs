//! `catena`: chains of elements that `catena run` runs in a process of its own; a learning switch, unless a file says
//! otherwise.

use std::fmt::Write as _;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use super::{Fabric, Site, ended, near_end};
use crate::{Failure, Process};

/// A switch of elements.
pub(super) struct Switch {
    name: &'static str,
    summary: &'static str,
    /// The I/O mode.
    io: &'static str,
    /// The chain, if it is not the learning switch.
    chain: Option<PathBuf>,
}

impl Switch {
    pub(super) const AF_XDP: Self = Self {
        name: "catena",
        summary: "Catena's EtherSwitch in a process, over AF_XDP",
        io: "af-xdp",
        chain: None,
    };

    pub(super) const AF_PACKET: Self = Self {
        name: "catena-af-packet",
        summary: "Catena's EtherSwitch in a process, over AF_PACKET",
        io: "af-packet-mmsg",
        chain: None,
    };

    /// A chain of the user's, in the place of the learning switch.
    pub(super) fn chain(file: PathBuf) -> Self {
        Self { name: "catena", summary: "a chain in a process", io: "auto", chain: Some(file) }
    }
}

/// The learning switch, as a chain.
fn learning(ports: usize) -> String {
    let mut text = String::from("switch :: EtherSwitch;\n");
    for port in 0..ports {
        let name = near_end(port);
        let _ =
            writeln!(text, "FromDevice({name}) -> [{port}] switch [{port}] -> ToDevice({name});");
    }
    text
}

/// How often it is looked whether the process has ended while it starts.
const LOOK: Duration = Duration::from_millis(20);

impl Fabric for Switch {
    fn name(&self) -> String {
        match &self.chain {
            None => self.name.into(),
            Some(file) => format!("catena:{}", file.display()),
        }
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn has_processes(&self) -> bool {
        true
    }

    fn look(&self) -> Result<String, String> {
        Ok(format!("Catena {}", env!("CARGO_PKG_VERSION")))
    }

    fn start(&self, at: &Site<'_>, ports: usize) -> Result<Vec<Process>, Failure> {
        let folder = at.journal.folder();
        let file = match &self.chain {
            Some(file) => file.canonicalize().map_err(Failure::at(file))?,
            None => {
                let file = folder.join("switch.click");
                std::fs::write(&file, learning(ports)).map_err(Failure::at(&file))?;
                file
            }
        };
        // It says there when its interfaces are open.
        let address = folder.join("notify");
        let socket = UnixDatagram::bind(&address).map_err(Failure::at(&address))?;
        socket.set_read_timeout(Some(LOOK)).map_err(Failure::at(&address))?;
        let mut command = at.namespace.command(at.program);
        command.arg("run").arg(&file).args(["--control", "none", "--io", self.io]);
        for port in 0..ports {
            let name = near_end(port);
            command.arg("--in").arg(format!("{name}=dev:{name}"));
        }
        let cores: Vec<String> = at.cores.iter().map(usize::to_string).collect();
        command.arg("--cores").arg(cores.join(",")).env("NOTIFY_SOCKET", &address);
        let process = at.journal.start(&mut command, &at.output())?;
        loop {
            let mut said = [0; 256];
            match socket.recv(&mut said) {
                Ok(count) if said[..count].starts_with(b"READY=1") => return Ok(vec![process]),
                Err(why)
                    if !matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
                {
                    return Err(Failure::File(address, why));
                }
                _ if !process.is_running() => return Err(ended(folder)),
                _ if !(at.go_on)() => return Err(Failure::Interrupted),
                _ => {}
            }
        }
    }
}
