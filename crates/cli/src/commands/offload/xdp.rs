//! Attaching programs for XDP to interfaces of this host.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use codegen::ebpf;
use compiler::partition::{self, Divided, Lessor};
use control::xdp::{Artefact, Device, Failure as Refused, Plan, Port, State};
use dataplane::io::{LeaseMaps, XdpMode};
use ir::program::StepId;
use ir::topology::{Switch, Xdp};
use serde_json::{Value, json};
use view::offload::Counted;
use view::table::grouped;

use super::super::compile::{Rack, origin};
use super::ahead::{Holds, Totals};
use super::{Installation, Offload, Split, chain, status};
use crate::failure::Failure;
use crate::loaded::Loaded;
use crate::signals::interrupt_flag;
use crate::terminal::{print, print_error};

/// Interfaces by the numbers of the ports that they are.
fn interfaces(switch: &Switch) -> BTreeMap<u32, String> {
    switch.ports.iter().map(|(name, port)| (port.number, name.clone())).collect()
}

/// Takes a chain's programs away; what is said of that.
pub(super) fn remove(
    args: &Offload,
    site: &Xdp,
    switch: &Switch,
) -> Result<(String, Value), Refused> {
    let removed = Device::open(site, &interfaces(switch))?.remove(&chain(&args.file))?;
    let said = match removed.is_empty() {
        true => "no program of the chain is there".into(),
        false => format!("programs removed from {}", removed.join(", ")),
    };
    Ok((said, removed.into()))
}

/// What interfaces shall have, and what they have.
struct Compared {
    compiled: ebpf::Compiled,
    artefact: Artefact,
    device: Device,
}

/// Interfaces in front of a run: what they shall have, and what they count.
pub(super) struct Ahead {
    chain: String,
    site: Xdp,
    ports: BTreeMap<u32, String>,
    artefact: Artefact,
    steps: Vec<BTreeSet<u32>>,
    /// As they were when they were looked at last.
    device: Option<Device>,
    was_known: bool,
}

impl Ahead {
    fn plan(&mut self) -> Result<Plan, Refused> {
        let device = Device::open(&self.site, &self.ports)?;
        let plan = device.plan(&self.chain, &self.artefact)?;
        self.device = Some(device);
        Ok(plan)
    }

    /// Whether they hold what they shall have.
    pub(super) fn holds(&mut self) -> Holds {
        match self.plan() {
            Err(why) => Holds::Unknown(why.to_string()),
            Ok(plan) if plan.is_empty() => {
                let count = plan.ports.iter().filter(|port| port.program.is_some()).count();
                Holds::All(format!("{count} programs"))
            }
            Ok(plan) if plan.is_all_new() => Holds::Nothing,
            Ok(plan) => {
                let wrong = plan.ports.iter().filter(|port| !port.is_well());
                let wrong: Vec<String> = wrong
                    .map(|port| format!("{} has {}", port.interface, state(&port.state)))
                    .collect();
                Holds::Other(wrong.join(", "))
            }
        }
    }

    /// The programs that are as they shall be, if they are.
    pub(super) fn programs(&self) -> Option<Vec<u32>> {
        self.device.as_ref().map(|device| device.programs().into_values().collect())
    }

    /// The maps in which these tables of flows are leased.
    pub(super) fn lease_maps(&self, lessors: &[Lessor]) -> Result<Vec<LeaseMaps>, String> {
        let device = self.device.as_ref().ok_or("it is not reached")?;
        let all = lessors.iter().map(|lessor| device.lease_maps(&self.chain, &lessor.of));
        all.collect::<Result<_, _>>().map_err(|why| why.to_string())
    }

    /// What programs counted that are as they shall be, and whether others took their place: then these count from
    /// nothing.
    pub(super) fn counted(&mut self) -> Result<(Totals, bool), String> {
        let mut totals = Totals::new();
        if self.device.is_none() {
            if let Holds::Other(why) | Holds::Unknown(why) = self.holds() {
                self.device = None;
                return Err(why);
            }
            if self.was_known {
                return Ok((totals, true));
            }
        }
        self.was_known = true;
        let Some(device) = &self.device else { return Ok((totals, true)) };
        // Programs that were replaced are still there for those who hold them.
        let counted = device.counted(&self.chain, &self.steps).map_err(|why| why.to_string())?;
        for ((part, step), sums) in counted {
            let mut sums = sums.into_iter();
            let (packets, bytes) = (sums.next().unwrap_or(0), sums.next().unwrap_or(0));
            let counted = partition::Counted { packets, bytes, sums: sums.collect() };
            totals.insert((part, StepId(step)), counted);
        }
        let now = Device::open(&self.site, &self.ports).map_err(|why| why.to_string())?;
        let are_new = now.programs() != device.programs();
        if are_new {
            // Whether they are as they shall be is seen the next time.
            self.device = None;
        }
        Ok((totals, are_new))
    }
}

impl Installation<'_> {
    /// What is asked of the interfaces while the chain runs.
    pub(super) fn ahead_in_kernel(&self, site: &Xdp) -> Result<Ahead, Failure> {
        let (_, artefact) = self.artefact()?;
        let Rack { topology, switch, .. } = self.rack;
        Ok(Ahead {
            chain: self.name.clone(),
            site: site.clone(),
            ports: interfaces(&topology.switches[switch]),
            artefact,
            steps: self.steps(),
            device: None,
            was_known: false,
        })
    }

    /// The programs that the interfaces shall have: those that were proven.
    fn artefact(&self) -> Result<(ebpf::Compiled, Artefact), Failure> {
        let Loaded { sources, chain, .. } = self.loaded;
        let origin = origin(chain, sources);
        let device = self.compiled.device(&origin);
        let compiled = ebpf::compile(&device).map_err(|(_, _, lack)| format!("ebpf: {lack}"))?;
        if ebpf::object(&self.compiled.files).ok().as_ref() != Some(&compiled.object) {
            return Err(
                "what would be installed is not what was proven; this is a fault of Catena's"
                    .to_string()
                    .into(),
            );
        }
        let ingress: Vec<Vec<u32>> =
            device.segments.iter().map(|segment| segment.ingress.clone()).collect();
        let egress = device.egress.values().copied();
        let artefact = Artefact::new(compiled.object.clone(), &ingress, egress, device.cores);
        Ok((compiled, artefact))
    }

    /// By part: the exits that are counted.
    fn steps(&self) -> Vec<BTreeSet<u32>> {
        let exits =
            |part: &Divided| part.offload.segment.program.exits().map(|(step, _)| step.0).collect();
        self.compiled.parts.iter().map(exits).collect()
    }
}

impl Split<'_> {
    /// `--install`, `--diff` or `--status`.
    pub(super) fn xdp(&self, site: &Xdp) -> Result<ExitCode, Failure> {
        let mut all = self.compare(site)?;
        let chain = self.name.clone();
        if self.args.action.install {
            // Whoever interrupts it now gets the new state.
            let _flag = interrupt_flag();
            let plan = all.device.install(&chain, &all.artefact);
            let plan = plan.map_err(|why| self.refused(&why, &all.compiled))?;
            let left = all.device.plan(&chain, &all.artefact);
            let left = left.map_err(|why| self.refused(&why, &all.compiled))?;
            if !left.is_empty() {
                return Err(format!(
                    "'{}': what was attached is there no more as it was attached: somebody else changes it",
                    self.rack.switch
                )
                .into());
            }
            match self.args.json {
                true => print(&format!("{:#}\n", self.xdp_json(&plan))),
                false => print(&format!("{}{}", self.head(&all), changes(&plan, true))),
            }
            return Ok(ExitCode::SUCCESS);
        }
        let plan = all.device.plan(&chain, &all.artefact);
        let plan = plan.map_err(|why| self.refused(&why, &all.compiled))?;
        let mut json = self.xdp_json(&plan);
        let mut text = format!("{}{}", self.head(&all), changes(&plan, false));
        if self.args.action.status {
            let counted = self.xdp_counted(&all.device);
            let counted = counted.map_err(|why| self.refused(&why, &all.compiled))?;
            let offloaded = self.offloaded(&[]);
            json["counted"] = offloaded.counted_json(&counted);
            if !plan.is_all_new() {
                text += &offloaded.counted(&counted, self.args.limit, self.paint());
            }
            if plan.ports.iter().any(conflicts) {
                text += "! not all is as this chain was installed; what conflicts has to be removed before --install\n";
            } else if plan.is_all_new() {
                text += "! no interface has the chain's programs: this host was restarted, the interfaces were made anew, or they \
                         were never installed; --install attaches them\n";
            } else if !plan.is_empty() {
                text += "! not all is as this chain was installed: it was changed by others, or the chain was. --install sets it \
                         right\n";
            }
        }
        match self.args.json {
            true => print(&format!("{json:#}\n")),
            false => print(&text),
        }
        Ok(status(plan.is_empty()))
    }

    fn compare(&self, site: &Xdp) -> Result<Compared, Failure> {
        let Rack { topology, switch, .. } = self.rack;
        let (path, of) = (self.path, &topology.switches[switch]);
        let (compiled, artefact) = self.artefact()?;
        let opened = Device::open(site, &interfaces(of));
        let device = opened.map_err(|why| format!("{path}: '{switch}': {why}"))?;
        let needed = artefact.ports();
        for (_, about) in device.about().iter().filter(|(number, _)| needed.contains(number)) {
            if !about.is_up {
                print_error(&format!(
                    "warning: {path}: '{switch}.{0}' is down: `ip link set {0} up`\n",
                    about.interface
                ));
            }
        }
        Ok(Compared { compiled, artefact, device })
    }

    /// What the kernel refuses, at the element, file and line of the instruction.
    fn refused(&self, why: &Refused, compiled: &ebpf::Compiled) -> Failure {
        let Loaded { sources, chain, .. } = self.loaded;
        let at = match why {
            Refused::Rejected(rejected) => rejected
                .program
                .zip(rejected.instruction)
                .and_then(|(program, at)| compiled.block(program, at))
                .map(|block| origin(chain, sources)(block.element, block.span)),
            _ => None,
        };
        let at = at.map_or(String::new(), |at| format!("{at}: "));
        format!("'{}': {at}{why}", self.rack.switch).into()
    }

    fn head(&self, all: &Compared) -> String {
        let mode = match all.device.mode() {
            XdpMode::Driver => "driver mode",
            XdpMode::Generic => "generic mode",
            XdpMode::Card => "on the card",
        };
        let words: usize = all.compiled.object.programs.iter().map(|code| code.words.len()).sum();
        let entries: usize = all.compiled.object.maps.iter().map(|map| map.entries.len()).sum();
        format!(
            "{} (XDP, {mode}): {} instructions, {} map entries\n",
            self.rack.switch,
            grouped(words as u64),
            grouped(entries as u64),
        )
    }

    /// Packets and bytes by class.
    fn xdp_counted(&self, device: &Device) -> Result<Counted, Refused> {
        let counted = device.counted(&self.name, &self.steps())?;
        let two = |sums: Vec<u64>| [0, 1].map(|at| sums.get(at).copied().unwrap_or(0));
        Ok(counted
            .into_iter()
            .map(|((part, step), sums)| ((part, StepId(step)), two(sums)))
            .collect())
    }

    fn xdp_json(&self, plan: &Plan) -> Value {
        let port = |port: &Port| {
            json!({
                "port": port.number,
                "interface": port.interface,
                "state": state(&port.state),
                "is_well": port.is_well(),
            })
        };
        json!({
            "switch": self.rack.switch,
            "ports": plan.ports.iter().map(port).collect::<Vec<_>>(),
        })
    }
}

/// What is at an interface, in words.
fn state(state: &State) -> String {
    match state {
        State::Nothing => "no program".into(),
        State::Same => "the chain's program".into(),
        State::Differs(None) => "the chain's program, of another version".into(),
        State::Differs(Some(maps)) => {
            let maps: Vec<String> =
                maps.iter().map(|(map, count)| format!("{count} entries of {map}")).collect();
            format!("the chain's program, where {} differ", maps.join(", "))
        }
        State::Mode => "the chain's program, in another mode".into(),
        State::OtherChain => "a program of another chain".into(),
        State::Others(name, id) if name.is_empty() => format!("a program of others (id {id})"),
        State::Others(name, id) => format!("a program of others ({name}, id {id})"),
    }
}

/// Whether a program has to be removed before the chain's can be attached.
fn conflicts(port: &Port) -> bool {
    let is_other = matches!(port.state, State::Mode | State::OtherChain | State::Others(..));
    port.program.is_some() && is_other
}

/// What was changed, or would be, interface by interface.
fn changes(plan: &Plan, is_done: bool) -> String {
    let mut text = String::new();
    for port in &plan.ports {
        let there = state(&port.state);
        let change = match (port.is_well(), port.program.is_some(), &port.state) {
            (true, true, _) if plan.is_empty() => "as it should be",
            // Maps are shared, so all programs are exchanged.
            _ if conflicts(port) => "conflict",
            (_, true, State::Same | State::Differs(_)) if is_done => "replaced",
            (_, true, State::Same | State::Differs(_)) => "to be replaced",
            (_, true, _) if is_done => "attached",
            (_, true, _) => "to be attached",
            (false, false, _) if is_done => "removed",
            (false, false, _) => "to be removed",
            (true, false, _) => "none is needed",
        };
        text += &format!("  {} (port {}): {there}; {change}\n", port.interface, port.number);
    }
    text
}
