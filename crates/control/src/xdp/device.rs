//! Interfaces: what is attached there, and how they are given what shall be.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsFd;

use codegen::ebpf::lease::Leases;
use codegen::ebpf::{Object, counters_map};
use dataplane::io::{KernelProgram, LeaseMaps, Links, Loaded, There, XdpMode};
use ir::topology::Xdp;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::plan::{Artefact, Plan, Port, State};
use super::{Failure, is_any, name};

/// What an interface says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub interface: String,
    /// Whether it is switched on.
    pub is_up: bool,
}

/// A port, its interface, and the program that is attached.
#[derive(Debug)]
struct At {
    interface: String,
    there: There,
    found: Option<(KernelProgram, XdpMode)>,
}

/// Interfaces of this host.
#[derive(Debug)]
pub struct Device {
    site: Xdp,
    ports: BTreeMap<u32, At>,
}

impl Device {
    /// The interfaces of ports, by number.
    ///
    /// # Errors
    /// If one is not there, or the kernel does not say what is attached.
    pub fn open(site: &Xdp, ports: &BTreeMap<u32, String>) -> Result<Self, Failure> {
        let mut device = Self { site: site.clone(), ports: BTreeMap::new() };
        device.ports = device.within(|| {
            let mut links = Links::new()?;
            let at = |(number, interface): (&u32, &String)| {
                let there = links.get(interface).map_err(|why| Failure::of(interface, why))?;
                let there = there.ok_or_else(|| Failure::NoInterface(interface.clone()))?;
                let found = match there.program {
                    Some((id, mode)) => Some((KernelProgram::new(id)?, mode)),
                    None => None,
                };
                Ok((*number, At { interface: interface.clone(), there, found }))
            };
            ports.iter().map(at).collect::<Result<BTreeMap<u32, At>, Failure>>()
        })?;
        Ok(device)
    }

    /// Looks again what is attached.
    fn look_again(&mut self) -> Result<(), Failure> {
        let ports = self.ports.iter().map(|(number, at)| (*number, at.interface.clone())).collect();
        *self = Self::open(&self.site, &ports)?;
        Ok(())
    }

    /// Does something in the network namespace of the interfaces.
    fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, Failure> + Send,
    ) -> Result<T, Failure> {
        let Some(name) = &self.site.namespace else { return work() };
        let enter = || -> std::io::Result<()> {
            let namespace = File::open(format!("/run/netns/{name}"))?;
            Ok(move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?)
        };
        // A thread that entered a namespace cannot leave it.
        std::thread::scope(|scope| {
            let entered = scope.spawn(|| match enter() {
                Ok(()) => work(),
                Err(why) if why.kind() == std::io::ErrorKind::PermissionDenied => {
                    Err(Failure::Permission)
                }
                Err(why) => Err(Failure::NoNamespace(name.clone(), why)),
            });
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// What the interfaces say of themselves, by port.
    pub fn about(&self) -> BTreeMap<u32, About> {
        let about = |at: &At| About { interface: at.interface.clone(), is_up: at.there.is_up };
        self.ports.iter().map(|(number, at)| (*number, about(at))).collect()
    }

    /// The kernel's numbers of the programs that are attached, by port.
    pub fn programs(&self) -> BTreeMap<u32, u32> {
        let all = self.ports.iter();
        all.filter_map(|(number, at)| Some((*number, at.found.as_ref()?.0.id()))).collect()
    }

    /// Where programs run that are attached.
    pub fn mode(&self) -> XdpMode {
        if self.site.generic { XdpMode::Generic } else { XdpMode::Driver }
    }

    fn object(&self, artefact: &Artefact) -> Object {
        artefact.at(&self.ports.iter().map(|(number, at)| (*number, at.there.index)).collect())
    }

    fn load(&self, chain: &str, object: &Object) -> Result<Loaded, Failure> {
        // Maps of interfaces are filled in the namespace that these are in.
        self.within(|| Ok(Loaded::named(object, &name(chain))?))
    }

    /// What is attached, compared with what shall be.
    ///
    /// # Errors
    /// If the kernel does not take what shall be, or does not say what is.
    pub fn plan(&self, chain: &str, artefact: &Artefact) -> Result<Plan, Failure> {
        let object = self.object(artefact);
        let loaded = self.load(chain, &object)?;
        self.compare(chain, artefact, &object, &loaded)
    }

    fn compare(
        &self,
        chain: &str,
        artefact: &Artefact,
        object: &Object,
        loaded: &Loaded,
    ) -> Result<Plan, Failure> {
        let own = name(chain);
        let mut ports = Vec::new();
        for (&number, At { interface, found, .. }) in &self.ports {
            let program = artefact.programs.get(&number).copied();
            let state = match found {
                None => State::Nothing,
                Some((found, _)) if found.name() != own && is_any(found.name()) => {
                    State::OtherChain
                }
                Some((found, _)) if found.name() != own => {
                    State::Others(found.name().into(), found.id())
                }
                Some((_, mode)) if *mode != self.mode() => State::Mode,
                Some((found, _)) => match program {
                    Some(program) if loaded.tag(program)? == found.tag() => {
                        match changed(object, program, found)? {
                            maps if maps.is_empty() => State::Same,
                            maps => State::Differs(Some(maps)),
                        }
                    }
                    _ => State::Differs(None),
                },
            };
            ports.push(Port { number, interface: interface.clone(), state, program });
        }
        Ok(Plan { ports })
    }

    /// Gives the interfaces what they shall have; what was attached before. If anything is refused, they have what they had.
    ///
    /// An interface goes from the old program to the new one between two frames. Nothing is done to interfaces where all is
    /// as it shall be; else all of the chain's programs are new, as they share maps.
    ///
    /// # Errors
    /// Why nothing was changed.
    pub fn install(&mut self, chain: &str, artefact: &Artefact) -> Result<Plan, Failure> {
        let object = self.object(artefact);
        let loaded = self.load(chain, &object)?;
        let plan = self.compare(chain, artefact, &object, &loaded)?;
        for port in plan.ports.iter().filter(|port| port.program.is_some()) {
            match &port.state {
                State::Others(name, id) => {
                    return Err(Failure::Taken(port.interface.clone(), name.clone(), *id));
                }
                State::OtherChain => return Err(Failure::OtherChain(port.interface.clone())),
                State::Mode => return Err(Failure::Mode(port.interface.clone())),
                State::Nothing | State::Same | State::Differs(_) => {}
            }
        }
        if !plan.is_empty() {
            self.within(|| self.exchange(&plan, &loaded))?;
            self.look_again()?;
        }
        Ok(plan)
    }

    /// Exchanges programs, interface by interface; changes back what was changed if one is refused.
    fn exchange(&self, plan: &Plan, loaded: &Loaded) -> Result<(), Failure> {
        let (mode, mut links) = (self.mode(), Links::new()?);
        let own = |port: &Port| match port.state {
            State::Same | State::Differs(_) | State::Mode => {
                self.ports[&port.number].found.as_ref().map(|(found, mode)| (found, *mode))
            }
            State::Nothing | State::OtherChain | State::Others(..) => None,
        };
        let mut done: Vec<(&Port, usize)> = Vec::new();
        for port in &plan.ports {
            let At { interface, there, .. } = &self.ports[&port.number];
            let Some(program) = port.program else { continue };
            let was = own(port).map(|(found, _)| found);
            let Err(why) = links.attach(there.index, mode, (loaded, program), was) else {
                done.push((port, program));
                continue;
            };
            let why = Failure::of(interface, why);
            for (port, program) in done.into_iter().rev() {
                let At { interface, there, .. } = &self.ports[&port.number];
                let was = own(port).map(|(found, _)| found);
                if links.put_back(there.index, mode, was, (loaded, program)).is_err() {
                    return Err(Failure::Half(interface.clone(), Box::new(why)));
                }
            }
            return Err(why);
        }
        // What is not needed any more goes last: all else is as it shall be by now.
        for port in plan.ports.iter().filter(|port| port.program.is_none()) {
            if let Some((found, mode)) = own(port) {
                let At { interface, there, .. } = &self.ports[&port.number];
                links
                    .detach(there.index, mode, found)
                    .map_err(|why| Failure::of(interface, why))?;
            }
        }
        Ok(())
    }

    /// Takes the chain's programs away, and no others; the interfaces that had one.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn remove(&mut self, chain: &str) -> Result<Vec<String>, Failure> {
        let own = name(chain);
        let removed = self.within(|| {
            let (mut links, mut removed) = (Links::new()?, Vec::new());
            for At { interface, there, found } in self.ports.values() {
                if let Some((found, mode)) = found.as_ref().filter(|found| found.0.name() == own) {
                    let detached = links.detach(there.index, *mode, found);
                    detached.map_err(|why| Failure::of(interface, why))?;
                    removed.push(interface.clone());
                }
            }
            Ok(removed)
        })?;
        self.look_again()?;
        Ok(removed)
    }

    /// The maps in which the chain's programs have leases of a table of flows. Whoever opens them gives all leases anew.
    ///
    /// # Errors
    /// If there are none, or the kernel does not open them.
    pub fn lease_maps(&self, chain: &str, of: &Leases) -> Result<LeaseMaps, Failure> {
        let own = name(chain);
        let programs = self.ports.values().filter_map(|at| at.found.as_ref());
        for (found, _) in programs.filter(|(found, _)| found.name() == own) {
            let map = |name: String| found.maps().find(|(other, _)| *other == name);
            if let (Some(index), Some(slots)) = (map(of.index_map()), map(of.slots_map())) {
                return Ok(LeaseMaps::open(index.1, slots.1, of)?);
            }
        }
        Err(std::io::Error::other(format!("no program has leases of '{}'", of.owner)).into())
    }

    /// What the chain's programs counted, by segment and step: packets, bytes, and sums of other lengths.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn counted(
        &self,
        chain: &str,
        steps: &[BTreeSet<u32>],
    ) -> Result<BTreeMap<(usize, u32), Vec<u64>>, Failure> {
        let own = name(chain);
        let (mut counted, mut seen) = (BTreeMap::new(), BTreeSet::new());
        let programs = self.ports.values().filter_map(|at| at.found.as_ref());
        for (found, _) in programs.filter(|(found, _)| found.name() == own) {
            for (segment, steps) in steps.iter().enumerate() {
                let map = counters_map(segment);
                // Interfaces of a segment share its counters.
                let Some((_, id)) = found.maps().find(|(name, _)| *name == map) else { continue };
                if !seen.insert(id) {
                    continue;
                }
                for &step in steps {
                    let sums: &mut Vec<u64> = counted.entry((segment, step)).or_default();
                    for (at, more) in found.counters(&map, step)?.into_iter().enumerate() {
                        match sums.get_mut(at) {
                            Some(sum) => *sum = sum.saturating_add(more),
                            None => sums.push(more),
                        }
                    }
                }
            }
        }
        Ok(counted)
    }
}

/// Entries of the maps of a program that differ, by map; counters do of course.
fn changed(
    object: &Object,
    program: usize,
    found: &KernelProgram,
) -> Result<BTreeMap<String, usize>, Failure> {
    let mut all = BTreeMap::new();
    let used: BTreeSet<usize> = object.programs[program].maps.iter().map(|(_, map)| *map).collect();
    for map in used.into_iter().filter_map(|map| object.maps.get(map)) {
        let count = found.changed(map)?;
        if count > 0 {
            all.insert(map.name.clone(), count);
        }
    }
    Ok(all)
}
