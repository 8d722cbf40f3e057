//! What each server does of the chains of a plan. A server whose part is the same by another plan is left alone.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use compiler::Back;
use compiler::partition::{Compiled, meter};
use ir::NodeId;
use ir::program::{Continuation, End};
use serde::{Deserialize, Serialize};

use super::chains::Joint;
use crate::commands::compile::Rack;
use crate::loaded::Loaded;

/// The part of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    /// By the number of a tag: where it goes on with packets that bear it.
    tags: BTreeMap<u16, String>,
    /// By the name of a chain that it runs something of, or counts: a digest of it.
    chains: BTreeMap<String, u64>,
}

impl Part {
    /// What is another than before, in words; none if nothing is.
    pub(super) fn differs(&self, before: &Self) -> Option<String> {
        if self == before {
            return None;
        }
        let mut words = Vec::new();
        for (name, digest) in &self.chains {
            match before.chains.get(name) {
                None => words.push(format!("chain '{name}' is new")),
                Some(known) if known != digest => words.push(format!("chain '{name}' changed")),
                Some(_) => {}
            }
        }
        let gone = before.chains.keys().filter(|name| !self.chains.contains_key(*name));
        words.extend(gone.map(|name| format!("chain '{name}' is gone")));
        if words.is_empty() {
            words.push("other packets are left to it".into());
        }
        Some(words.join(", "))
    }

    /// Whether it is less than before, and nothing else.
    pub(super) fn is_less(&self, before: &Self) -> bool {
        self.tags.iter().all(|(tag, means)| before.tags.get(tag) == Some(means))
            && self.chains.iter().all(|(name, of)| before.chains.get(name) == Some(of))
    }
}

/// The numbers of tags, of wires that packets come back by, and of meters, by what they mean: for the topology.
pub(super) fn tags(loaded: &Loaded, rack: &Rack, compiled: &Compiled) -> BTreeMap<String, u16> {
    let site = &rack.sited.site;
    let tags = compiled.tags(&loaded.chain.graph);
    let tags = tags.into_iter().map(|(tag, means)| (means, u32::from(tag.0)));
    let back = site.ports.iter().filter(|(_, port)| port.from.is_some());
    let back = back.map(|(wire, port)| (wire.clone(), port.number));
    let meters = site.limits.iter().map(|of| (meter(of.name()), of.meter));
    let all = tags.chain(back).chain(meters);
    all.filter_map(|(name, number)| Some((name, u16::try_from(number).ok()?))).collect()
}

/// The part of each server, by its name.
pub(super) fn parts(
    joint: &Joint<'_>,
    (loaded, rack, compiled): (&Loaded, &Rack, &Compiled),
) -> BTreeMap<String, Part> {
    let graph = &loaded.chain.graph;
    let site = &rack.sited.site;
    let digests: Vec<u64> = (0..joint.chains.len()).map(|at| digest(joint, rack, at)).collect();
    let names: Vec<&str> = site.servers.iter().map(|of| of.port.device.as_str()).collect();
    let mut parts: Vec<Part> = names.iter().map(|_| Part::default()).collect();
    // The chain that an element is of.
    let chain = |node: NodeId| {
        let name = &graph.nodes.get(node)?.name;
        joint.joined.parts.iter().position(|part| {
            let rest = name.strip_prefix(&part.prefix);
            rest.is_some_and(|rest| rest.starts_with('/') || rest.starts_with("_from_"))
        })
    };
    let add = |part: &mut Part, nodes: &BTreeSet<NodeId>| {
        for at in nodes.iter().filter_map(|node| chain(*node)) {
            part.chains.insert(joint.chains[at].name.clone(), digests[at]);
        }
    };
    for (server, name) in names.iter().enumerate() {
        for at in joint.chains_of(name) {
            parts[server].chains.insert(joint.chains[at].name.clone(), digests[at]);
        }
    }
    let tags = compiled.tags(graph);
    let of_port = |port: u32| site.servers.iter().position(|of| of.number == port);
    for part in &compiled.parts {
        for &tag in part.offload.handoffs.keys() {
            let Some(program) = part.offload.goes_on(&part.program, tag) else { continue };
            let port = compiled.servers.handoffs.get(&tag).copied().unwrap_or(compiled.cores);
            let Some(of) = of_port(port).and_then(|server| parts.get_mut(server)) else { continue };
            of.tags.insert(tag.0, means(&tags, tag));
            add(of, &program.elements());
        }
        // What the switch does alone, one of them counts.
        for (_, exit) in part.offload.segment.program.exits() {
            if let End::Handoff { .. } = exit.end {
                continue;
            }
            let passed = exit.visited.iter().map(|port| port.node);
            let server = site.server(passed.clone(), std::iter::empty());
            let server = server.unwrap_or_else(|[first, _]| first);
            if let Some(of) = parts.get_mut(server) {
                add(of, &passed.collect());
            }
        }
    }
    names.into_iter().map(Into::into).zip(parts).collect()
}

fn means(tags: &BTreeMap<Continuation, String>, tag: Continuation) -> String {
    tags.get(&tag).cloned().unwrap_or_default()
}

/// A digest of all that decides what a chain does on cores. Which server packets come back from does not count: wires by
/// which they do are known by their numbers.
fn digest(joint: &Joint<'_>, rack: &Rack, at: usize) -> u64 {
    let ports = &rack.sited.site.ports;
    let mut back: Vec<_> = ports.iter().filter(|(_, port)| port.from.is_some()).collect();
    // Some names begin with others.
    back.sort_by_key(|(wire, _)| Reverse(wire.len()));
    let part = &joint.joined.parts[at];
    let text = back.iter().fold(part.text.clone(), |text, (wire, port)| {
        let number = format!("\0{}", port.number);
        text.replace(wire.as_str(), &number).replace(&Back::letters(wire), &number)
    });
    let mut digest = DefaultHasher::new();
    (text, &part.taken, &part.ingress, &part.egress.len(), joint.chains[at].digest)
        .hash(&mut digest);
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(tags: &[(u16, &str)], chains: &[(&str, u64)]) -> Part {
        let tags = tags.iter().map(|(tag, means)| (*tag, (*means).to_string())).collect();
        let chains = chains.iter().map(|(name, of)| ((*name).to_string(), *of)).collect();
        Part { tags, chains }
    }

    #[test]
    fn what_differs_is_named() {
        let before = part(&[(1, "x"), (2, "y")], &[("a", 1), ("b", 2)]);
        assert_eq!(before.differs(&before), None);
        for (after, words, is_less) in [
            (part(&[(1, "x")], &[("a", 1)]), "chain 'b' is gone", true),
            (part(&[(1, "x")], &[("a", 1), ("b", 2)]), "other packets are left to it", true),
            (part(&[(1, "x")], &[("a", 3)]), "chain 'a' changed, chain 'b' is gone", false),
            (
                part(&[(1, "x"), (3, "z")], &[("a", 1), ("b", 2), ("c", 3)]),
                "chain 'c' is new",
                false,
            ),
            (part(&[(1, "y")], &[("a", 1)]), "chain 'b' is gone", false),
        ] {
            assert_eq!(after.differs(&before).as_deref(), Some(words));
            assert_eq!(after.is_less(&before), is_less, "{words}");
        }
    }
}
