//! Forwarding loops: where packets can go round, and how often one has.
//!
//! What is counted is how often a packet comes to an element at which a cycle begins. A program
//! counts for each of its exits what the elements on the path would have counted, so that a packet
//! that goes round for ever is dropped at the same element, after as many rounds, whoever carries it.

use ir::program::{End, Exit, Program};
use ir::{Graph, NodeId, Port, Processing, Reason};

use super::Nodes;

/// A packet went round in circles: the chain has a cycle that nothing breaks.
pub(super) const LOOP: Reason = Reason("loop");
/// How often a packet may come to beginnings of cycles: what a hop limit breaks takes 255 rounds.
const MAX_LOOPS: u32 = 1 << 10;
/// How often all packets of a burst together may, and the copies that are made of them.
pub(super) const MAX_TURNS: u32 = 1 << 18;

/// What cycles mean to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cycle {
    /// Packets get to no cycle from here.
    None,
    /// They get to one.
    Ahead,
    /// One begins here: each cycle of the chain leads through at least one such element.
    Begins,
}

/// How often packets came to beginnings of cycles.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoopCount {
    /// Those that are carried at present.
    pub(super) now: u32,
    /// All that were carried since the stack was empty.
    pub(super) turns: u32,
}

/// What cycles mean to each element of a graph, in its order.
pub(super) fn cycles(graph: &Graph) -> Vec<Cycle> {
    let mut next: Vec<Vec<NodeId>> = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        if graph.nodes[edge.to.node].inputs[edge.to.port] != Processing::Pull {
            next[edge.from.node].push(edge.to.node);
        }
    }
    // Depth first, from where packets come in: a cycle begins where it is closed.
    let is_source = |node: &NodeId| graph.nodes[*node].inputs.is_empty();
    let all = || 0..graph.nodes.len();
    let mut cycles = vec![Cycle::None; graph.nodes.len()];
    let (mut seen, mut open) = (vec![false; graph.nodes.len()], vec![false; graph.nodes.len()]);
    for root in all().filter(is_source).chain(all()) {
        let mut path = Vec::new();
        if !std::mem::replace(&mut seen[root], true) {
            open[root] = true;
            path.push((root, 0));
        }
        while let Some((at, done)) = path.last_mut() {
            let at = *at;
            let Some(&to) = next[at].get(*done) else {
                open[at] = false;
                path.pop();
                if cycles[at] == Cycle::None && next[at].iter().any(|&to| cycles[to] != Cycle::None)
                {
                    cycles[at] = Cycle::Ahead;
                }
                continue;
            };
            *done += 1;
            if open[to] {
                cycles[to] = Cycle::Begins;
            } else if !std::mem::replace(&mut seen[to], true) {
                open[to] = true;
                path.push((to, 0));
            }
        }
    }
    cycles
}

impl Nodes {
    /// Counts that packets come to an element; whether they went round too often.
    #[inline]
    pub(super) fn goes_round(&mut self, node: NodeId) -> bool {
        self.nodes[node].cycle == Cycle::Begins && {
            self.loops.now += 1;
            self.loops.turns += 1;
            self.loops.now > MAX_LOOPS || self.loops.turns > self.max_turns
        }
    }

    /// Whether a stage can take packets, on whose paths elements count at most so many more loops:
    /// none of them is to end within it.
    #[inline]
    pub(super) fn may_enter(&self, most: u32) -> bool {
        self.loops.now + most <= MAX_LOOPS && self.loops.turns <= self.max_turns
    }

    /// How many loops elements would have counted on the path to an exit; none matter where packets
    /// get to no further cycle.
    pub(super) fn loops_to(&self, exit: &Exit, leaving: &Exit) -> u32 {
        match leaving.end {
            End::Push { to, .. } if self.cycle(to) != Cycle::None => self.count(exit, leaving),
            _ => 0,
        }
    }

    /// The most loops that elements would have counted on a path through a program.
    pub(super) fn most_loops(&self, program: &Program) -> u32 {
        let all = program.exits().flat_map(|(_, exit)| exit.all().map(move |one| (exit, one)));
        all.map(|(exit, leaving)| self.count(exit, leaving)).max().unwrap_or(0)
    }

    /// How often the path to an exit, or that of one of its copies, comes to where cycles begin.
    fn count(&self, exit: &Exit, leaving: &Exit) -> u32 {
        let begins = |port: &&Port| self.cycle(**port) == Cycle::Begins;
        let mut path: Vec<Port> = leaving.visited.clone();
        // A copy's begins where it was made: on the packet's path, or on that of a copy.
        for _ in &exit.copies {
            let Some(&made) = path.first().filter(|made| exit.visited.first() != Some(made)) else {
                break;
            };
            let before = exit.all().find_map(|one| {
                let at = one.visited.iter().position(|&port| port == made)?;
                one.visited.get(..at).filter(|before| !before.is_empty())
            });
            path.splice(..0, before.into_iter().flatten().copied());
        }
        path.iter().filter(begins).count() as u32
    }

    fn cycle(&self, at: Port) -> Cycle {
        self.nodes[self.behind_taps(at).node].cycle
    }
}
