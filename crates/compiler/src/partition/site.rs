//! Where a device stands: ports at which wires of the chain are, and servers behind it.

use std::collections::{BTreeMap, BTreeSet};

use codegen::stages::Hardware;
use codegen::{Lack, Servers};
use ir::program::{Continuation, End, Step, StepId};
use ir::topology::{PortName, Switch, SwitchPort, Topology};
use ir::{Graph, NodeId, Port, Program};

use super::not_compiled::{NotCompiled, Origin, TAGS};
use super::offload::element;
use super::{Offload, Tags, Wires, reach};

/// What frames are known to be where they come in, so that it need not be tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Trust {
    /// Frames have types (Ethernet II) and 60 bytes at least, and hold what the lengths in their headers say.
    Lengths,
    /// Checksums of IPv4 headers are right.
    IpChecksum,
    /// IPv4 headers have version 4 and no options.
    IpOptions,
    /// IP packets have at most 1,500 bytes.
    Mtu,
}

impl Trust {
    /// All, with their names.
    pub const ALL: [(&str, Self); 4] = [
        ("lengths", Self::Lengths),
        ("ip-checksum", Self::IpChecksum),
        ("ip-options", Self::IpOptions),
        ("mtu", Self::Mtu),
    ];

    /// What frames are known to be that come in at a port.
    fn of(port: &SwitchPort) -> Vec<Self> {
        let is_named = |name: &str| port.trust.iter().any(|trust| trust == name);
        Self::ALL.iter().filter(|(name, _)| is_named(name)).map(|of| of.1).collect()
    }

    /// Whether it replaces a test that a device cannot make.
    pub fn covers(self, lack: &Lack) -> bool {
        match (self, lack) {
            (Trust::Lengths, Lack::Length) | (Trust::IpChecksum, Lack::Checksum) => true,
            (Trust::Lengths, Lack::Field(name)) => {
                ["ip.len", "ip6.plen", "eth.type", "vlan.type"].contains(&name.as_str())
            }
            (Trust::IpOptions, Lack::Field(name)) => name == "ip.hl" || name == "ip.version",
            _ => false,
        }
    }
}

/// A port of a device at which a wire of the chain is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePort {
    /// Its number.
    pub number: u32,
    /// What frames are known to be that come in there.
    pub trust: Vec<Trust>,
    /// It is no port: packets come back with this number from the server behind that port of the device.
    pub from: Option<u32>,
}

/// A server behind a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAt {
    /// Its port.
    pub port: PortName,
    /// The device's port that leads there.
    pub number: u32,
    /// The elements that it runs, if others run the rest.
    pub runs: Option<BTreeSet<NodeId>>,
    /// Those that lead to one of these.
    leads: BTreeSet<NodeId>,
}

/// A rate that packets are not to exceed.
#[derive(Clone, Debug, PartialEq)]
pub struct RateLimit {
    /// The name of the element or compound.
    name: String,
    /// The elements that they go through.
    elements: BTreeSet<NodeId>,
    /// Bits a second.
    pub rate: f64,
    /// The number of its meter.
    pub meter: u32,
}

impl RateLimit {
    /// The name of the element or compound that is limited.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Where a device stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    /// Its ports, by the chain's wires.
    pub ports: BTreeMap<String, SitePort>,
    /// Its port towards the cores: towards the first server, if there are several.
    pub cores: u32,
    /// Servers, if a topology says which.
    pub servers: Vec<ServerAt>,
    /// What the device has room for, if that is known.
    pub hardware: Option<Hardware>,
    /// Limits.
    pub limits: Vec<RateLimit>,
    /// Numbers of tags that are known.
    pub tags: Tags,
}

impl Site {
    /// Ports from 1 on in the order of the wires' names, and one more towards the cores.
    pub fn numbered(wires: &Wires, trust: &[Trust]) -> Self {
        let names = wires.names();
        let cores = names.len() as u32 + 1;
        let port = |(name, number): (&str, u32)| {
            (name.to_string(), SitePort { number, trust: trust.to_vec(), from: None })
        };
        Self { ports: names.into_iter().zip(1..).map(port).collect(), cores, ..Self::default() }
    }

    /// The switch that the chain's wires come to, by name, and where it stands.
    ///
    /// # Errors
    /// If there is no such switch, in words.
    pub fn of<'t>(
        topology: &'t Topology,
        graph: &Graph,
        wires: &Wires,
    ) -> Result<(&'t str, Self), String> {
        let mut found: Option<(&str, &Switch)> = None;
        let (mut ports, mut back) = (BTreeMap::new(), Vec::new());
        for wire in wires.names() {
            if let Some(server) = comes_back(topology, wire) {
                back.push((wire, server));
                continue;
            }
            let at = topology.wires.get(wire);
            let at = at.ok_or_else(|| format!("the topology has no wire '{wire}'"))?;
            let there = topology.switches.get_key_value(&at.device);
            let Some((name, switch)) = there else {
                return Err(format!(
                    "the wire '{wire}' comes to '{}', which is no switch",
                    at.device
                ));
            };
            if let Some((other, _)) = found.filter(|(other, _)| other != name) {
                return Err(format!(
                    "wires come to '{other}' and to '{name}': one switch has to have them all"
                ));
            }
            found = Some((name, switch));
            let port = &switch.ports[&at.port];
            let (number, trust) = (port.number, Trust::of(port));
            ports.insert(wire.into(), SitePort { number, trust, from: None });
        }
        let (name, switch) = found.ok_or_else(|| NotCompiled::NoWires.to_string())?;
        let servers = servers(topology, graph, (name, switch))?;
        let tags = Tags::of(topology, graph);
        // Numbers that no port has.
        let has_port = |number: u32| switch.ports.values().any(|of| of.number == number);
        let is_free = |number: &u32| {
            !has_port(*number) && !u16::try_from(*number).is_ok_and(|number| tags.has(number))
        };
        let mut free = (1..=u32::from(TAGS)).rev().filter(is_free);
        // A wire keeps its number if another server has it.
        back.sort_by_key(|(wire, _)| wire.rsplit_once('/').map(|(server, name)| (name, server)));
        let names = wires.names();
        for (wire, server) in back {
            let from = topology.peer(&server).filter(|port| port.device == name);
            let from = from.and_then(|port| switch.ports.get(&port.port));
            let from = from.ok_or_else(|| {
                format!(
                    "no link leads from '{name}' to '{}.{}', where '{wire}' comes from",
                    server.device, server.port
                )
            })?;
            let known = tags.of_wire(wire, &names).map(u32::from);
            let known = known.filter(|number| {
                !has_port(*number) && ports.values().all(|of: &SitePort| of.number != *number)
            });
            let number = known.or_else(|| free.next());
            let number = number.ok_or("packets come back in too many places")?;
            let trust = Trust::of(from);
            ports.insert(wire.into(), SitePort { number, trust, from: Some(from.number) });
        }
        let hardware = switch.device.as_deref().map(Hardware::known).transpose()?;
        let cores = servers.first().map_or(0, |server| server.number);
        // A meter that is known keeps its number, and is not another's at once.
        let mut free = (1..=u16::MAX).filter(|number| !tags.has_meter(*number));
        let limit = |(of, rate): (&String, &f64)| match elements_of(graph, of) {
            elements if elements.is_empty() => {
                Err(format!("'{of}' is to be limited, which the chain does not have"))
            }
            elements => {
                let meter = tags.of_meter(of).or_else(|| free.next());
                let meter = u32::from(meter.ok_or("there are too many limits")?);
                Ok(RateLimit { name: of.clone(), elements, rate: *rate, meter })
            }
        };
        let limits = topology.limits.iter().map(limit).collect::<Result<_, _>>()?;
        Ok((name, Self { ports, cores, servers, hardware, limits, tags }))
    }

    /// The names of servers and their ports.
    pub fn server_names(&self) -> String {
        let name = |of: &ServerAt| format!("{}.{}", of.port.device, of.port.port);
        self.servers.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    /// What a device knows of servers, if handoffs are to these ports.
    pub(super) fn servers(&self, handoffs: BTreeMap<Continuation, u32>) -> Servers {
        let returns = self.ports.values().filter_map(|port| Some((port.number, port.from?)));
        let others = self.servers.iter().skip(1).map(|server| server.number);
        Servers { others: others.collect(), handoffs, returns: returns.collect() }
    }

    /// The server that runs some elements, and what is behind others: the first, if any can.
    ///
    /// # Errors
    /// Two that both are to.
    pub fn server(
        &self,
        elements: impl Iterator<Item = NodeId> + Clone,
        behind: impl Iterator<Item = NodeId> + Clone,
    ) -> Result<usize, [usize; 2]> {
        let is_there = |server: &ServerAt| {
            let is_own = |node| server.runs.as_ref().is_some_and(|runs| runs.contains(&node));
            elements.clone().any(is_own) || behind.clone().any(|node| server.leads.contains(&node))
        };
        let mut all = (0..).zip(&self.servers).filter(|(_, server)| is_there(server));
        match (all.next(), all.next()) {
            (Some((one, _)), Some((other, _))) => Err([one, other]),
            (one, _) => Ok(one.map_or(0, |(at, _)| at)),
        }
    }

    /// By part and exit of its segment: the meter that its packets pass where they come in.
    ///
    /// # Errors
    /// Two limits that apply to the same packets, or one that applies to none. Packets that are out of the ordinary may have two:
    /// then they have none.
    pub(super) fn meters(
        &self,
        programs: &[&Program],
        parts: &[Offload],
        is_wire: &impl Fn(Port) -> bool,
        origin: Origin<'_>,
    ) -> Result<BTreeMap<(usize, StepId), u32>, NotCompiled> {
        let comes_back = |number: &u32| {
            self.ports.values().any(|port| port.number == *number && port.from.is_some())
        };
        let mut all = BTreeMap::new();
        for (at, (program, part)) in programs.iter().zip(parts).enumerate() {
            if self.limits.is_empty() || part.segment.ingress.iter().any(comes_back) {
                continue;
            }
            for (step, exit) in part.segment.program.exits() {
                let (mut element, mut is_odd) = (program.entry.node, false);
                let mut through: BTreeSet<NodeId> =
                    exit.visited.iter().map(|port| port.node).collect();
                match exit.end {
                    End::Drop { .. } => continue,
                    End::Push { to, .. } => {
                        element = to.node;
                        through.insert(to.node);
                    }
                    End::Handoff { to } => {
                        let Some(handoff) = part.handoffs.get(&to) else { continue };
                        let (own, behind) = goes_through(program, handoff.at, is_wire);
                        element = handoff.why.first().map_or(element, |stay| stay.element);
                        is_odd = handoff.is_odd;
                        through.extend(own.iter().chain(&behind));
                    }
                }
                let is_of = |limit: &RateLimit| !limit.elements.is_disjoint(&through);
                let mut limits = self.limits.iter().filter(|limit| is_of(limit));
                match (limits.next(), limits.next()) {
                    (Some(limit), None) => drop(all.insert((at, step), limit.meter)),
                    (Some(one), Some(other)) if !is_odd => {
                        let both = [one.name.clone(), other.name.clone()];
                        return Err(NotCompiled::TwoLimits(origin(element, None), both));
                    }
                    _ => {}
                }
            }
        }
        match self.limits.iter().find(|limit| all.values().all(|used| *used != limit.meter)) {
            None => Ok(all),
            Some(limit) => Err(NotCompiled::NoneLimited(limit.name.clone())),
        }
    }

    /// By continuation of a program that was divided: the port towards the server that goes on, if that is not the first. Packets
    /// for which what the device was spared does not hold go where the others go.
    pub(super) fn handoffs(
        &self,
        (program, part): (&Program, &Offload),
        is_wire: &impl Fn(Port) -> bool,
        origin: Origin<'_>,
        all: &mut BTreeMap<Continuation, u32>,
    ) -> Result<(), NotCompiled> {
        for (&to, handoff) in part.handoffs.iter().filter(|_| self.servers.len() > 1) {
            let (own, behind) = goes_through(program, handoff.at, is_wire);
            let first = handoff.why.first();
            match self.server(own.iter().copied(), behind.iter().copied()) {
                Ok(0) => {}
                Ok(server) => drop(all.insert(to, self.servers[server].number)),
                // One of them has to take packets that are out of the ordinary.
                Err(_) if handoff.is_odd => {}
                Err(both) => {
                    let element = first.map_or(program.entry.node, |stay| stay.element);
                    let both = both.map(|at| self.servers[at].port.device.clone());
                    return Err(NotCompiled::TwoServers(origin(element, None), both));
                }
            }
        }
        Ok(())
    }
}

/// The elements that a program goes through from a step on, and those of their native code that are behind it.
fn goes_through(
    program: &Program,
    from: StepId,
    is_wire: &impl Fn(Port) -> bool,
) -> (BTreeSet<NodeId>, BTreeSet<NodeId>) {
    let (mut own, mut behind) = (BTreeSet::new(), BTreeSet::new());
    for at in reach(program, [from]) {
        own.insert(element(program, at));
        let Step::Exit(exit) = program.step(at) else { continue };
        for exit in exit.all() {
            own.extend(exit.visited.iter().map(|port| port.node));
            if let End::Push { to, .. } = exit.end
                && !is_wire(to)
            {
                behind.insert(to.node);
            }
        }
    }
    (own, behind)
}

/// The element of a name, or those of a compound.
fn elements_of(graph: &Graph, name: &str) -> BTreeSet<NodeId> {
    let within = format!("{name}/");
    let nodes = graph.nodes.iter().enumerate();
    let found = nodes.filter(|(_, node)| node.name == name || node.name.starts_with(&within));
    found.map(|(node, _)| node).collect()
}

/// The port of a server that packets come back from by a wire: `server.port/name`.
fn comes_back(topology: &Topology, wire: &str) -> Option<PortName> {
    let (server, port) = wire.rsplit_once('/')?.0.split_once('.')?;
    let known = topology.servers.get(server)?.ports.contains_key(port);
    known.then(|| PortName { device: server.into(), port: port.into() })
}

/// Servers behind a switch: those that say what they run, or one that runs all.
fn servers(
    topology: &Topology,
    graph: &Graph,
    (name, switch): (&str, &Switch),
) -> Result<Vec<ServerAt>, String> {
    let mut all = Vec::new();
    for (port, of) in &switch.ports {
        let here = PortName { device: name.into(), port: port.clone() };
        let Some(peer) = topology.peer(&here) else { continue };
        if let Some(server) = topology.servers.get(&peer.device) {
            all.push((peer, of.number, server));
        }
    }
    all.sort_by(|(one, ..), (other, ..)| {
        (&one.device, &one.port).cmp(&(&other.device, &other.port))
    });
    if all.iter().any(|(.., server)| server.runs.is_some()) {
        all.retain(|(.., server)| server.runs.is_some());
    }
    match &all[..] {
        [] => return Err(format!("no link leads from '{name}' to a server")),
        [(one, ..), (other, ..), ..] if all.iter().any(|(.., of)| of.runs.is_none()) => {
            return Err(format!(
                "links lead from '{name}' to servers '{}' and '{}': `runs:` of each states which elements and compounds of the chain it runs",
                one.device, other.device
            ));
        }
        _ => {}
    }
    let mut taken: BTreeMap<NodeId, &str> = BTreeMap::new();
    let mut servers = Vec::new();
    for (port, number, server) in all {
        let mut runs = BTreeSet::new();
        for of in server.runs.iter().flatten() {
            let found = elements_of(graph, of);
            if found.is_empty() {
                return Err(format!(
                    "'{}' is to run '{of}', which the chain does not have",
                    port.device
                ));
            }
            runs.extend(found);
        }
        for node in &runs {
            if let Some(other) = taken.insert(*node, &port.device) {
                let name = &graph.nodes[*node].name;
                return Err(format!("'{other}' and '{}' are both to run '{name}'", port.device));
            }
        }
        let mut leads = runs.clone();
        let mut waiting: Vec<NodeId> = runs.iter().copied().collect();
        while let Some(node) = waiting.pop() {
            let before = graph.edges.iter().filter(|edge| edge.to.node == node);
            waiting.extend(before.map(|edge| edge.from.node).filter(|node| leads.insert(*node)));
        }
        let runs = server.runs.is_some().then_some(runs);
        servers.push(ServerAt { port: port.clone(), number, runs, leads });
    }
    Ok(servers)
}
