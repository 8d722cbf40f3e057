//! `catena`: chains of elements that `catena run` runs in a process of its own; a learning switch, unless a file says
//! otherwise.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::{Fabric, Joins, LOG, Site, near_end};
use crate::launch::Elements;
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

/// What comes at a port leaves at the other one of its pair.
fn pairs(ports: usize) -> String {
    let mut text = String::new();
    for port in 0..ports {
        let _ =
            writeln!(text, "FromDevice({}) -> ToDevice({});", near_end(port), near_end(port ^ 1));
    }
    text
}

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
                let file = folder.join(format!("{LOG}.click"));
                let text = match at.joins {
                    Joins::All => learning(ports),
                    Joins::Pairs => pairs(ports),
                };
                std::fs::write(&file, text).map_err(Failure::at(&file))?;
                file
            }
        };
        let interfaces: Vec<String> = (0..ports).map(near_end).collect();
        let elements = Elements {
            program: at.program,
            file: &file,
            io: self.io,
            interfaces: &interfaces,
            cores: at.cores,
            name: LOG,
        };
        Ok(vec![elements.start(at.namespace, at.journal, at.go_on)?])
    }
}
