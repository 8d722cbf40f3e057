//! Numbers of tags that outlive a change of the chain: where packets are handed off is known by what cores do there, so it
//! keeps its number as long as they do the same. A number is never given to something else at once: packets on their path
//! between switch and servers would be taken for others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use ir::hash::HashFunction;
use ir::program::{Continuation, End, Step};
use ir::topology::Topology;
use ir::{Graph, Program};

use super::Offload;
use super::not_compiled::{NotCompiled, TAGS};

/// Numbers that are known, and the names of elements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tags {
    known: BTreeMap<String, u16>,
    names: Vec<String>,
}

/// What the meter of a limit is known by.
pub fn meter(limit: &str) -> String {
    format!("meter({limit})")
}

/// Whether a name is a meter's: those of tags and of wires end otherwise.
fn is_meter(name: &str) -> bool {
    name.starts_with("meter(") && name.ends_with(')')
}

/// Whether a name is that of a place where packets get a tag.
pub fn is_tag(name: &str) -> bool {
    name.contains(' ') && !is_meter(name)
}

impl Tags {
    pub(super) fn of(topology: &Topology, graph: &Graph) -> Self {
        let names = graph.nodes.iter().map(|node| node.name.clone()).collect();
        Self { known: topology.tags.clone(), names }
    }

    /// The number of a wire that packets come back by. One that is new takes that of a wire of another server that has the same
    /// name behind the slash and is gone.
    pub(super) fn of_wire(&self, wire: &str, all: &[&str]) -> Option<u16> {
        let behind = |wire: &str| wire.rsplit_once('/').map(|(_, name)| name.to_string());
        let own = behind(wire)?;
        let is_gone = |of: &&String| {
            behind(of).is_some_and(|name| name == own) && !all.contains(&of.as_str())
        };
        let moved = || self.known.keys().find(is_gone).map(|of| self.known[of]);
        self.known.get(wire).copied().or_else(moved)
    }

    /// Whether a number of a tag is known, whatever it is for.
    pub(super) fn has(&self, number: u16) -> bool {
        self.known.iter().any(|(name, known)| *known == number && !is_meter(name))
    }

    /// The number of a limit's meter.
    pub(super) fn of_meter(&self, limit: &str) -> Option<u16> {
        self.known.get(&meter(limit)).copied()
    }

    /// Whether a meter has a number.
    pub(super) fn has_meter(&self, number: u16) -> bool {
        self.known.iter().any(|(name, known)| *known == number && is_meter(name))
    }

    /// Gives the places where parts hand packets off the numbers that are known of them, and others free ones; nothing, if none
    /// is known. With each part stand its wires and its program.
    pub(super) fn number(
        &self,
        parts: &mut [(&[String], &Program, Offload)],
    ) -> Result<(), NotCompiled> {
        if self.known.is_empty() {
            return Ok(());
        }
        let name = |node: usize| self.names.get(node).map_or("", String::as_str);
        let all = parts.iter().map(|(wires, program, part)| (*wires, *program, part));
        let keys = keys(all, name);
        let known: BTreeMap<Continuation, u16> =
            keys.iter().filter_map(|(at, key)| Some((*at, *self.known.get(key)?))).collect();
        let tags = self.known.iter().filter(|(name, _)| is_tag(name));
        let taken: BTreeSet<u16> = tags.map(|(_, at)| *at).collect();
        let mut free = (1..=TAGS).filter(|number| !taken.contains(number));
        let mut numbers = BTreeMap::new();
        for at in keys.keys() {
            let number = known.get(at).copied().or_else(|| free.next());
            let number = number.ok_or(NotCompiled::TooManyHandoffs(keys.len() + taken.len()))?;
            numbers.insert(*at, Continuation(number));
        }
        parts.iter_mut().for_each(|(.., part)| part.renumber(&numbers));
        Ok(())
    }
}

/// By number: what the places are known by where parts hand packets off. With each part stand its wires and its program.
pub(super) fn keys<'a>(
    parts: impl Iterator<Item = (&'a [String], &'a Program, &'a Offload)>,
    name: impl Fn(usize) -> &'a str + Copy,
) -> BTreeMap<Continuation, String> {
    let (mut all, mut taken) = (BTreeMap::new(), BTreeSet::new());
    for (wires, program, part) in parts {
        let wire = wires.first().map_or("", String::as_str);
        for (&number, handoff) in &part.handoffs {
            let Some(rest) = part.goes_on(program, number) else { continue };
            let mut text = rest.portable_text(|node| name(node)).to_string();
            // What is asked before.
            for stay in &handoff.why {
                let _ = write!(text, "{} {:?}", name(stay.element), stay.lack);
            }
            let digest = HashFunction::MixedFnv1a.hash(text.bytes().map(u128::from));
            let mut key = format!("{wire} {digest:016x}");
            // What is alike is known by its order.
            while !taken.insert(key.clone()) {
                key.push('+');
            }
            all.insert(number, key);
        }
    }
    all
}

impl Offload {
    /// Gives continuations other numbers.
    fn renumber(&mut self, numbers: &BTreeMap<Continuation, Continuation>) {
        let of = |number: Continuation| numbers.get(&number).copied().unwrap_or(number);
        for step in &mut self.segment.program.steps {
            if let Step::Exit(exit) = step
                && let End::Handoff { to } = &mut exit.end
            {
                *to = of(*to);
            }
        }
        for part in &mut self.continuations {
            part.continuation = part.continuation.map(of);
        }
        let handoffs = std::mem::take(&mut self.handoffs);
        self.handoffs = handoffs.into_iter().map(|(number, at)| (of(number), at)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_known_by_what_they_mean() {
        let known = [("s1.eth0/a-1", 4094), ("lan 00ff", 3), ("meter(nat)", 3)];
        let known = known.map(|(name, number)| (name.to_string(), number)).into();
        let tags = Tags { known, names: Vec::new() };
        assert_eq!(tags.of_wire("s1.eth0/a-1", &["s1.eth0/a-1"]), Some(4094));
        // The path back of another server, unless the first has it still.
        assert_eq!(tags.of_wire("s2.eth0/a-1", &["s2.eth0/a-1"]), Some(4094));
        assert_eq!(tags.of_wire("s2.eth0/a-1", &["s1.eth0/a-1", "s2.eth0/a-1"]), None);
        assert_eq!(tags.of_wire("s1.eth0/b-1", &["s1.eth0/b-1"]), None);
        assert_eq!((tags.of_meter("nat"), tags.of_meter("lan 00ff")), (Some(3), None));
        assert!(tags.has(4094) && tags.has(3) && !tags.has(4));
        assert!(tags.has_meter(3) && !tags.has_meter(4094));
        assert!(is_tag("lan 00ff") && !is_tag("s1.eth0/a-1") && !is_tag("meter(a b)"));
    }
}
