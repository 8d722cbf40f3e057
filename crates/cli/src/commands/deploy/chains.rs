//! The chains of a plan as one, and whether the switch does of them what is planned there.

use std::collections::BTreeSet;

use compiler::partition::{Compiled, Divided};
use compiler::{Joined, Joining, Taken, join};
use ir::NodeId;
use net::Pool;
use placement::{Plan, Problem, Site, Traffic};

use crate::commands::place::Read;
use crate::loaded::Loaded;

/// Chains that were joined.
pub(super) struct Joint<'a> {
    pub(super) chains: &'a [Read],
    pub(super) joined: Joined,
}

/// The share of tried frames that cores may take of what is planned on the switch, in percent.
const SPARED: usize = 1;

impl<'a> Joint<'a> {
    pub(super) fn of(chains: &'a [Read]) -> Result<Self, Vec<String>> {
        if chains.is_empty() {
            return Err(vec![
                "functions that are described by hand have no Click that could run: give each chain its Click".into(),
            ]);
        }
        let takes: Vec<Vec<Taken>> = chains.iter().map(|chain| taken(&chain.traffic)).collect();
        let all = chains.iter().zip(&takes);
        let all = all.map(|(of, takes)| Joining { name: &of.name, chain: &of.chain, takes });
        let joined = join(&all.collect::<Vec<_>>())?;
        Ok(Self { chains, joined })
    }

    /// Functions that are planned on the switch, and that cores would run all the same.
    pub(super) fn lacks(
        &self,
        problem: &Problem,
        plan: &Plan,
        switch: &str,
        (loaded, compiled): (&Loaded, &Compiled),
    ) -> Vec<String> {
        let mut lacks = Vec::new();
        let mut pool = Pool::new();
        for (at, of) in self.chains.iter().enumerate() {
            let (Some(chain), Some(placed)) = (problem.chains.get(at), plan.chains.get(at)) else {
                continue;
            };
            let left = self.left(at, (loaded, compiled), &mut pool);
            // By function, each behind those that lead to it: the one on cores that packets come from.
            let mut behind: Vec<Option<usize>> = Vec::new();
            for number in 0..chain.functions.len() {
                let before = chain.edges.iter().filter(|edge| edge.to == number);
                let mut before = before.map(|edge| match placed.sites[edge.from] {
                    Site::Switch => behind.get(edge.from).copied().flatten(),
                    _ => Some(edge.from),
                });
                behind.push(before.find_map(|from| from));
            }
            for ((function, site), behind) in chain.functions.iter().zip(&placed.sites).zip(&behind)
            {
                let known = of.functions.all.iter().any(|f| f.name == function.name);
                if let (Some(behind), Site::Switch, true) = (behind, site, known) {
                    lacks.push(format!(
                        "{0} of {1} is planned on '{switch}' behind {2}, from which packets do not come back to it: with \
                         `on: {{ {0}: [not switch] }}` it is planned on cores",
                        function.name, of.name, chain.functions[*behind].name,
                    ));
                    continue;
                }
                let full = of.functions.all.iter().find(|f| f.name == function.name);
                let Some(full) = full.filter(|_| *site == Site::Switch) else { continue };
                let element = |node: &NodeId| {
                    let name = &of.chain.graph.nodes[*node].name;
                    loaded.chain.find(&format!("{}/{name}", self.joined.parts[at].prefix))
                };
                let elements: BTreeSet<NodeId> = full.elements.iter().filter_map(element).collect();
                let on_cores = left.iter().filter(|of| !of.is_disjoint(&elements)).count();
                if on_cores * 100 > left.len() * SPARED {
                    lacks.push(format!(
                        "{} of {} is planned on '{switch}', and left to cores for {on_cores} of {} packets that were tried: with \
                         `on: {{ {}: [not switch] }}` it is planned on cores",
                        function.name,
                        of.name,
                        left.len(),
                        function.name,
                    ));
                }
            }
        }
        lacks
    }

    /// By frame of a chain's traffic: the elements that a core runs for it.
    fn left(
        &self,
        at: usize,
        (loaded, compiled): (&Loaded, &Compiled),
        pool: &mut Pool,
    ) -> Vec<BTreeSet<NodeId>> {
        let of = &self.chains[at];
        let own: Vec<&String> = self.joined.parts[at].ingress.keys().collect();
        let mut all = Vec::new();
        for (number, frame) in of.frames.iter().enumerate() {
            let said = of.traffic.get(number % of.traffic.len().max(1));
            let wire = said.and_then(|said| said.from.as_ref()).or(own.first().copied());
            let is_of = |part: &&Divided| wire.is_none_or(|wire| part.wires.contains(wire));
            let Some(part) = compiled.parts.iter().find(is_of) else { continue };
            let packet = pool.packet(frame);
            if let Ok(followed) = part.follow(&packet, pool) {
                let mut elements: BTreeSet<NodeId> = followed.cores.into_iter().collect();
                // What receives and sends is no function.
                elements.retain(|node| *node < loaded.chain.graph.nodes.len());
                all.push(elements);
            }
            pool.recycle(packet);
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
