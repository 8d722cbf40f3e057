//! `catena`: chains of elements that `catena run` runs in a process of its own; a learning switch, unless a file says
//! otherwise.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{
    DPDK_FOLDER, Ends, Fabric, Joins, LOG, NO_INTERFACES, Plan, Site, Step, fabric_eal, near_end,
    needs_dpdk, telemetry,
};
use crate::launch::Elements;
use crate::{Counters, Failure, Process};

/// A switch of elements.
pub(super) struct Switch {
    name: &'static str,
    summary: &'static str,
    access: Access,
    /// The chain, if it is not the learning switch.
    chain: Option<PathBuf>,
}

/// How its ports have frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// By interfaces, in this I/O mode.
    Interfaces(&'static str),
    /// By DPDK's back end of vhost-user.
    Vhost,
    /// By DPDK's memif.
    Memif,
}

impl Switch {
    pub(super) const AF_XDP: Self = Self {
        name: "catena",
        summary: "Catena's EtherSwitch in a process, over AF_XDP",
        access: Access::Interfaces("af-xdp"),
        chain: None,
    };

    pub(super) const AF_PACKET: Self = Self {
        name: "catena-af-packet",
        summary: "Catena's EtherSwitch in a process, over AF_PACKET",
        access: Access::Interfaces("af-packet-mmsg"),
        chain: None,
    };

    pub(super) const VHOST: Self = Self {
        name: "catena-vhost",
        summary: "Catena's EtherSwitch in a process, over DPDK's vhost-user: for --io virtio-user",
        access: Access::Vhost,
        chain: None,
    };

    pub(super) const MEMIF: Self = Self {
        name: "catena-memif",
        summary: "Catena's EtherSwitch in a process, over DPDK's memif: for --io memif",
        access: Access::Memif,
        chain: None,
    };

    /// A chain of the user's, in the place of the learning switch.
    pub(super) fn chain(file: PathBuf) -> Self {
        let access = Access::Interfaces("auto");
        Self { name: "catena", summary: "a chain in a process", access, chain: Some(file) }
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

    fn ends(&self) -> &'static [Ends] {
        match self.access {
            Access::Interfaces(_) => &[Ends::Interfaces, Ends::Taps],
            Access::Vhost => &[Ends::Vhost],
            Access::Memif => &[Ends::Memif],
        }
    }

    fn unfit_for_chains(&self) -> Option<&'static str> {
        (!matches!(self.access, Access::Interfaces(_))).then_some(NO_INTERFACES)
    }

    fn counters(&self, folder: &Path, port: usize) -> Result<Option<Counters>, Failure> {
        telemetry::counters(folder, port).map(Some)
    }

    fn look(&self) -> Result<String, String> {
        if !matches!(self.access, Access::Interfaces(_)) {
            needs_dpdk()?;
        }
        Ok(format!("Catena {}", env!("CARGO_PKG_VERSION")))
    }

    fn steps(&self, at: &Plan<'_>, ports: usize) -> Result<Vec<Step>, Failure> {
        let (file, text) = self.file(at, ports)?;
        let mut steps: Vec<Step> =
            text.map(|text| Step::Write(file.clone(), text)).into_iter().collect();
        let devices = self.devices(at, ports);
        let command = self.elements(at, &file, &devices, &self.io(at)).command(at.namespace);
        steps.push(Step::Start(command));
        Ok(steps)
    }

    fn start(&self, at: &Site<'_>, ports: usize) -> Result<Vec<Process>, Failure> {
        let plan = at.plan();
        let (file, text) = self.file(&plan, ports)?;
        if let Some(text) = text {
            std::fs::write(&file, text).map_err(Failure::at(&file))?;
        }
        let devices = self.devices(&plan, ports);
        // Its devices are open when it is there.
        let io = self.io(&plan);
        let elements = self.elements(&plan, &file, &devices, &io);
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

    /// The device of each port, and what it is bound to.
    fn devices(&self, at: &Plan<'_>, ports: usize) -> Vec<(String, String)> {
        let device = |port| {
            let (name, socket) = (near_end(port), self.socket(at.folder, port));
            let socket = socket.display();
            let bound = match self.access {
                Access::Interfaces(_) => format!("dev:{name}"),
                Access::Vhost => format!("dpdk:net_vhost{port},iface={socket}"),
                Access::Memif => {
                    format!("dpdk:net_memif{port},role=server,socket={socket},socket-abstract=no")
                }
            };
            (name, bound)
        };
        (0..ports).map(device).collect()
    }

    fn elements<'a>(
        &'a self,
        at: &Plan<'a>,
        file: &'a Path,
        devices: &'a [(String, String)],
        io: &'a [String],
    ) -> Elements<'a> {
        let Plan { program, cores, folder, .. } = *at;
        let environment: &[_] = match self.access {
            Access::Interfaces(_) => &[],
            Access::Vhost | Access::Memif => &[(DPDK_FOLDER, folder)],
        };
        let environment = environment.to_vec();
        Elements { program, file, io, environment, devices, cores, name: LOG }
    }

    /// Options about how frames are carried.
    fn io(&self, at: &Plan<'_>) -> Vec<String> {
        let words = match self.access {
            Access::Interfaces(mode) => vec!["--io", mode],
            // A worker polls devices of DPDK's all the time, as DPDK's own programs do.
            Access::Vhost | Access::Memif => {
                return vec!["--dpdk-eal".into(), fabric_eal(at), "--poll".into(), "busy".into()];
            }
        };
        words.into_iter().map(str::to_string).collect()
    }
}
