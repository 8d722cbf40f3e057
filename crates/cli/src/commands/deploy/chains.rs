//! The chains of a plan as one, and whether the switch does of them what is planned there.

use std::collections::{BTreeMap, BTreeSet};

use compiler::partition::{Compiled, Divided, Site as Front};
use compiler::{Back, Joined, Joining, Taken, join};
use ir::topology::PortName;
use ir::{NodeId, Port, Processing};
use net::Pool;
use placement::{Placed, Plan, Problem, Site, Traffic};

use crate::commands::place::{Read, Task};
use crate::loaded::Loaded;

/// Chains that were joined.
pub(super) struct Joint<'a> {
    pub(super) chains: &'a [Read],
    pub(super) joined: Joined,
    /// By server: elements of each chain that it runs.
    runs: BTreeMap<String, Vec<(usize, NodeId)>>,
}

/// The share of tried frames that cores may take of what is planned on the switch, in percent.
const SPARED: usize = 1;

impl<'a> Joint<'a> {
    pub(super) fn of(task: &'a Task, plan: &Plan) -> Result<Self, Vec<String>> {
        let chains = &task.read;
        if chains.is_empty() {
            return Err(vec![
                "functions that are described by hand have no Click that could run: give each chain its Click".into(),
            ]);
        }
        let takes: Vec<Vec<Taken>> = chains.iter().map(|chain| taken(&chain.traffic)).collect();
        let mut seats =
            Seats { task, wrong: Vec::new(), return_paths: BTreeMap::new(), runs: BTreeMap::new() };
        let of = |(at, placed)| seats.chain(at, placed);
        let back: Vec<Vec<Back>> = plan.chains.iter().enumerate().map(of).collect();
        let Seats { wrong, runs, .. } = seats;
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let all = chains.iter().zip(&takes).zip(&back);
        let all = all.map(|((of, takes), back)| Joining {
            name: &of.name,
            chain: &of.chain,
            takes,
            back,
        });
        let joined = join(&all.collect::<Vec<_>>())?;
        Ok(Self { chains, joined, runs })
    }

    /// The names of elements that a server runs.
    pub(super) fn runs(&self, server: &str) -> Vec<String> {
        let name = |(chain, node): &(usize, NodeId)| {
            let name = &self.chains[*chain].chain.graph.nodes[*node].name;
            format!("{}/{name}", self.joined.parts[*chain].prefix)
        };
        let own = self.runs.get(server).into_iter().flatten();
        // What the switch does of a chain that is on one server counts there.
        let is_alone = |at: &usize| self.runs.keys().all(|of| of == server || !self.has(of, *at));
        let all: BTreeSet<usize> = own.clone().map(|(chain, _)| *chain).filter(is_alone).collect();
        let counters = all.into_iter().flat_map(|at| {
            let part = &self.joined.parts[at];
            let inside = format!("{}/", part.prefix);
            part.ingress.values().filter(move |name| !name.starts_with(&inside)).cloned()
        });
        own.map(name).chain(counters).collect()
    }

    fn has(&self, server: &str, chain: usize) -> bool {
        self.chains_of(server).any(|of| of == chain)
    }

    /// The numbers of chains that a server runs something of.
    pub(super) fn chains_of(&self, server: &str) -> impl Iterator<Item = usize> + '_ {
        self.runs.get(server).into_iter().flatten().map(|(chain, _)| *chain)
    }

    /// Functions that are planned on the switch, and that cores would run all the same.
    pub(super) fn lacks(
        &self,
        problem: &Problem,
        plan: &Plan,
        (switch, site): (&str, &Front),
        (loaded, compiled): (&Loaded, &Compiled),
    ) -> Vec<String> {
        let mut lacks = Vec::new();
        let mut pool = Pool::new();
        for (at, of) in self.chains.iter().enumerate() {
            let (Some(chain), Some(placed)) = (problem.chains.get(at), plan.chains.get(at)) else {
                continue;
            };
            let left = self.left(at, site, (loaded, compiled), &mut pool);
            for (function, site) in chain.functions.iter().zip(&placed.sites) {
                let full = of.functions.all.iter().find(|f| f.name == function.name);
                let Some(full) = full.filter(|_| *site == Site::Switch) else { continue };
                let element = |node: &NodeId| {
                    let name = &of.chain.graph.nodes[*node].name;
                    loaded.chain.find(&format!("{}/{name}", self.joined.parts[at].prefix))
                };
                let elements: BTreeSet<NodeId> = full.elements.iter().filter_map(element).collect();
                for (from, left) in &left {
                    let on_cores = left.iter().filter(|of| !of.is_disjoint(&elements)).count();
                    if on_cores * 100 <= left.len() * SPARED {
                        continue;
                    }
                    let mend = match from {
                        None => String::new(),
                        Some(server) => format!(
                            "`trust:` of the port that leads to '{server}' states what its frames are known to be; "
                        ),
                    };
                    lacks.push(format!(
                        "{0} of {1} is planned on '{switch}', and left to cores for {on_cores} of {2} packets that were tried: {mend}with \
                         `on: {{ {0}: [not switch] }}` it is planned on cores",
                        function.name,
                        of.name,
                        left.len(),
                    ));
                }
            }
        }
        lacks
    }

    /// By frame of a chain's traffic: the elements that a core runs for it, where frames come in, and where they come back from a
    /// server.
    fn left(
        &self,
        at: usize,
        site: &Front,
        (loaded, compiled): (&Loaded, &Compiled),
        pool: &mut Pool,
    ) -> Vec<(Option<String>, Vec<BTreeSet<NodeId>>)> {
        let of = &self.chains[at];
        let own: Vec<&String> = self.joined.parts[at].ingress.keys().collect();
        let mut follow = |part: &Divided, frame: &[u8]| {
            let packet = pool.packet(frame);
            let followed = part.follow(&packet, pool);
            pool.recycle(packet);
            let mut elements: BTreeSet<NodeId> = followed.ok()?.cores.into_iter().collect();
            // What receives and sends is no function.
            elements.retain(|node| *node < loaded.chain.graph.nodes.len());
            Some(elements)
        };
        let mut comes_in = Vec::new();
        for (number, frame) in of.frames.iter().enumerate() {
            let said = of.traffic.get(number % of.traffic.len().max(1));
            let wire = said.and_then(|said| said.from.as_ref()).or(own.first().copied());
            let is_of = |part: &&Divided| wire.is_none_or(|wire| part.wires.contains(wire));
            let Some(part) = compiled.parts.iter().find(is_of) else { continue };
            comes_in.extend(follow(part, frame));
        }
        let mut all = vec![(None, comes_in)];
        let prefix = format!("{}/", self.joined.parts[at].prefix);
        for part in &compiled.parts {
            let entry = &loaded.chain.graph.nodes[part.program.entry.node].name;
            let from = site.ports.get(&part.wires[0]).and_then(|port| port.from);
            let server = site.servers.iter().find(|server| Some(server.number) == from);
            if let Some(server) = server.filter(|_| entry.starts_with(&prefix)) {
                let elements = of.frames.iter().filter_map(|frame| follow(part, frame)).collect();
                all.push((Some(server.port.device.clone()), elements));
            }
        }
        all
    }
}

/// Where functions of chains are, and the return paths that this takes.
struct Seats<'a> {
    task: &'a Task,
    wrong: Vec<String>,
    /// What the names of wires begin with by which packets of a chain come back: each has a name of its own, whichever server
    /// it is from.
    return_paths: BTreeMap<String, usize>,
    runs: BTreeMap<String, Vec<(usize, NodeId)>>,
}

impl Seats<'_> {
    /// The connections of a chain by which packets come back from servers.
    fn chain(&mut self, at: usize, placed: &Placed) -> Vec<Back> {
        let Task { problem, read, rack, .. } = self.task;
        let (of, chain) = (&read[at], &problem.chains[at]);
        for group in placed.cores.iter().filter(|group| group.len() > 1) {
            let names: Vec<&str> =
                group.keys().map(|host| problem.hosts[*host].name.as_str()).collect();
            self.wrong.push(format!(
                "chain '{}': replicas of a group are planned on {}: a group runs on one server",
                of.name,
                names.join(", ")
            ));
        }
        let mut sites: BTreeMap<NodeId, Site> = BTreeMap::new();
        for (function, site) in chain.functions.iter().zip(&placed.sites) {
            let Some(known) = of.functions.all.iter().find(|f| f.name == function.name) else {
                continue;
            };
            if let Site::Card(_) = site {
                self.wrong.push(format!(
                    "{0} of {1} is planned on a card, which is not deployed: with `on: {{ {0}: [not card] }}` it is planned elsewhere",
                    function.name, of.name
                ));
            }
            for node in &known.elements {
                sites.insert(*node, *site);
                if let Site::Core(host) = site {
                    let name = problem.hosts[*host].name.clone();
                    self.runs.entry(name).or_default().push((at, *node));
                }
            }
        }
        let graph = &of.chain.graph;
        let mut ends: BTreeMap<(Port, usize), Vec<Port>> = BTreeMap::new();
        for edge in &graph.edges {
            let (from, to) = (sites.get(&edge.from.node), sites.get(&edge.to.node));
            let (Some(Site::Core(host)), Some(to)) = (from, to) else { continue };
            if *to == Site::Core(*host) {
                continue;
            }
            if graph.nodes[edge.to.node].inputs.get(edge.to.port) == Some(&Processing::Pull) {
                self.wrong.push(format!(
                    "chain '{}': {} pulls packets, and they would come from another device: `together:` keeps both on one",
                    of.name, graph.nodes[edge.to.node].name
                ));
            }
            let from = ends.entry((edge.to, *host)).or_default();
            if !from.contains(&edge.from) {
                from.push(edge.from);
            }
        }
        let mut all = Vec::new();
        for ((to, host), from) in ends {
            let server = &problem.hosts[host].name;
            let mut ports = rack.servers.get(server).into_iter().flat_map(|of| of.ports.keys());
            let is_linked = |port: &&String| {
                let port = PortName { device: server.clone(), port: (*port).clone() };
                rack.peer(&port).is_some_and(|peer| rack.switches.contains_key(&peer.device))
            };
            let Some(port) = ports.find(is_linked) else { continue };
            // Other chains may come and go.
            let mut name = Back::letters(&of.name);
            while self.return_paths.get(&name).is_some_and(|of| *of != at) {
                name.push('_');
            }
            self.return_paths.insert(name.clone(), at);
            all.push(Back { wire: format!("{server}.{port}/{name}-{}", all.len() + 1), from, to });
        }
        all
    }
}

/// What a chain takes of wires that it shares: its traffic, and what comes back to that.
fn taken(traffic: &[Traffic]) -> Vec<Taken> {
    let mut all = Vec::new();
    for of in traffic {
        let Some(wire) = &of.from else { continue };
        let (source, destination) = (of.source, of.destination);
        all.push(Taken { wire: wire.clone(), source, destination });
    }
    let said: BTreeSet<&String> = traffic.iter().filter_map(|of| of.from.as_ref()).collect();
    for of in traffic {
        if let Some(wire) = of.to.as_ref().filter(|wire| !said.contains(wire)) {
            let (source, destination) = (of.destination, of.source);
            all.push(Taken { wire: wire.clone(), source, destination });
        }
    }
    all
}
