//! `catena`: chains of elements that `catena run` runs in a process of its own; a learning switch, unless a file says
//! otherwise.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Fabric, Joins, LOG, Plan, Site, Step, near_end};
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

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let (file, text) = self.file(at, ports)?;
        let mut steps: Vec<Step> =
            text.map(|text| Step::Write(file.clone(), text)).into_iter().collect();
        let interfaces: Vec<String> = (0..ports).map(near_end).collect();
        let command = self.elements(at, &file, &interfaces).command(at.namespace);
        steps.push(Step::Start(command));
        Ok(steps)
    }

    fn start(&self, at: &Site<'_>, ports: usize) -> Result<Vec<Process>, Failure> {
        let plan = at.plan();
        let (file, text) = self.file(&plan, ports)?;
        if let Some(text) = text {
            std::fs::write(&file, text).map_err(Failure::at(&file))?;
        }
        let interfaces: Vec<String> = (0..ports).map(near_end).collect();
        // Its interfaces are open when it is there.
        let elements = self.elements(&plan, &file, &interfaces);
        Ok(vec![elements.start(at.namespace, at.journal, at.go_on)?])
    }
}

impl Switch {
    /// The file of the chain, and its text if it is made.
    fn file(&self, at: &Plan<'_>, ports: usize) -> Result<(PathBuf, Option<String>), Failure> {
        if let Some(file) = &self.chain {
            return Ok((file.canonicalize().map_err(Failure::at(file))?, None));
        }
        let text = match at.joins {
            Joins::All => learning(ports),
            Joins::Pairs => pairs(ports),
        };
        Ok((at.folder.join(format!("{LOG}.click")), Some(text)))
    }

    fn elements<'a>(
        &self,
        at: &Plan<'a>,
        file: &'a Path,
        interfaces: &'a [String],
    ) -> Elements<'a> {
        let Plan { program, cores, .. } = *at;
        Elements { program, file, io: self.io, interfaces, cores, name: LOG }
    }
}
