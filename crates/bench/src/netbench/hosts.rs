//! The hosts that cells run on: this one alone, or two with a link between them.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde::{Deserialize, Serialize};

use super::agent::Hello;
use super::far::{Far, Reach};
use super::side::{Answer, Ask, Broken, Said, Side};
use crate::machine::Environment;

/// Two hosts: the first application of each pair is on the first, its peer on the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Between {
    /// How each is reached; this host is not.
    pub hosts: [Option<Reach>; 2],
    /// The interface of each that leads to the other.
    pub uplinks: [String; 2],
    /// The CPUs that may be used on both; all of them if nothing is said.
    pub cpus: Option<Vec<usize>>,
}

/// A host that was measured on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HostOf {
    /// Its name.
    pub name: String,
    /// Its interface to the other.
    pub uplink: String,
    /// What it is.
    pub machine: Environment,
}

/// A host.
enum Host<'a> {
    Here(Box<Side<'a>>),
    Far(Box<Far>),
}

/// All hosts, and what their applications say.
pub(super) struct Hosts<'a> {
    all: Vec<Host<'a>>,
    between: Option<&'a Between>,
    cpus: Vec<Vec<usize>>,
    machines: Vec<HostOf>,
    is_stopped: &'a dyn Fn() -> bool,
    say: Sender<(usize, usize, Said)>,
    /// Of the application at a port of a host: the host, and the port's number there.
    pub(super) hear: Receiver<(usize, usize, Said)>,
}

/// The name of this host where there are two.
const HERE: &str = "this host";

impl<'a> Hosts<'a> {
    /// Reaches all of them. `go_on` is the opposite of `is_stopped`.
    pub(super) fn reach(
        program: &Path,
        cpus: &[usize],
        between: Option<&'a Between>,
        (is_stopped, go_on): (&'a dyn Fn() -> bool, &'a dyn Fn() -> bool),
    ) -> Result<Self, Broken> {
        let (say, hear) = channel();
        let (all, cpus, machines) = (Vec::new(), vec![cpus.to_vec()], Vec::new());
        let mut hosts = Self { all, between, cpus, machines, is_stopped, say, hear };
        let Some(between) = between else {
            let hear = hosts.hear(0);
            hosts.all.push(Host::Here(Box::new(Side::new(program.to_path_buf(), go_on, hear))));
            return Ok(hosts);
        };
        hosts.cpus.clear();
        for (side, reach) in between.hosts.iter().enumerate() {
            let hear = hosts.hear(side);
            let (name, hello) = match reach {
                None => {
                    hosts.all.push(Host::Here(Box::new(Side::new(
                        program.to_path_buf(),
                        go_on,
                        hear,
                    ))));
                    (HERE, Hello::own().map_err(Broken::Failed)?)
                }
                Some(reach) => {
                    let far = reach.connect(is_stopped, hear)?;
                    let hello = far.hello.clone();
                    hosts.all.push(Host::Far(Box::new(far)));
                    (reach.host.as_str(), hello)
                }
            };
            let chosen = between.cpus.clone().unwrap_or_else(|| hello.cpus.clone());
            if let Some(cpu) = chosen.iter().find(|cpu| !hello.cpus.contains(cpu)) {
                return Err(Broken::Failed(format!("host {name}: it has no CPU {cpu} to use")));
            }
            hosts.cpus.push(chosen);
            let uplink = between.uplinks[side].clone();
            hosts.machines.push(HostOf { name: name.into(), uplink, machine: hello.machine });
        }
        Ok(hosts)
    }

    /// Hears of the applications of a host.
    fn hear(&self, side: usize) -> super::side::Hear {
        let say = self.say.clone();
        Arc::new(move |place, said| {
            let _ = say.send((side, place, said));
        })
    }

    /// Connects again with hosts whose connection ended, and forgets what applications said that have ended.
    pub(super) fn restore(&mut self) -> Result<(), Broken> {
        for side in 0..self.all.len() {
            let Host::Far(far) = &self.all[side] else { continue };
            let reach = self.between.and_then(|between| between.hosts[side].as_ref());
            if let Some(reach) = reach.filter(|_| far.is_lost()) {
                let far = reach.connect(self.is_stopped, self.hear(side))?;
                self.all[side] = Host::Far(Box::new(far));
            }
        }
        while self.hear.try_recv().is_ok() {}
        Ok(())
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// Two hosts as results have them.
    pub(super) fn machines(&self) -> &[HostOf] {
        &self.machines
    }

    /// The name of one of two, before what is said of it.
    pub(super) fn prefix(&self, side: usize) -> String {
        self.machines.get(side).map_or(String::new(), |of| format!("{}: ", of.name))
    }

    /// The CPUs that may be used on one.
    pub(super) fn cpus(&self, side: usize) -> &[usize] {
        &self.cpus[side]
    }

    /// The interface of one to the other.
    pub(super) fn uplink(&self, side: usize) -> Option<String> {
        self.between.map(|between| between.uplinks[side].clone())
    }

    /// Asks one.
    pub(super) fn ask(&mut self, side: usize, ask: Ask) -> Result<Answer, Broken> {
        match &mut self.all[side] {
            Host::Far(far) => far.ask(&ask, self.is_stopped),
            Host::Here(here) => here.ask(ask).map_err(|why| match (why, self.machines.get(side)) {
                (Broken::Failed(why), Some(of)) => Broken::Failed(format!("{}: {why}", of.name)),
                (why, _) => why,
            }),
        }
    }
}
