//! How many packets came to each element and network function.
//!
//! They are counted where they leave: by connection, a batch at a time, where an element's native code
//! takes them; by exit, and told when somebody asks, where a program does.

use ir::{NodeId, Port};

use super::{Node, Nodes};

/// Packets that came to elements and network functions, by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// At an input; of an element that has none, those that left it.
    pub(super) elements: Vec<u64>,
    /// From outside, or from an element without inputs inside.
    pub(super) functions: Vec<u64>,
}

impl Node {
    /// Where packets go that leave by an output, so many; they are counted.
    #[inline]
    pub(super) fn leave(&mut self, output: usize, packets: usize) -> Option<Port> {
        let to = self.to.get(output).copied().flatten()?;
        self.left[output] += packets as u64;
        Some(to)
    }
}

impl Nodes {
    /// Counts packets that a program took through inputs, and on to another if they were not dropped.
    pub(super) fn passed(&mut self, through: &[Port], to: Option<Port>, packets: u64) {
        let next = through.iter().skip(1).copied().chain(to);
        for (from, to) in through.iter().zip(next) {
            let node = &mut self.nodes[from.node];
            // Several outputs that lead to one input are one here.
            if let Some(output) = node.to.iter().position(|&leads| leads == Some(to)) {
                node.left[output] += packets;
            }
        }
    }

    /// What came so far, as far as programs told.
    pub(super) fn arrivals(&self) -> Arrivals {
        let mut all = self.before.clone();
        let mut count = |from: Option<NodeId>, to: NodeId, packets: u64| {
            all.elements[to] += packets;
            if let Some(function) = self.functions.of(to)
                && from.and_then(|from| self.functions.of(from)) != Some(function)
            {
                all.functions[function] += packets;
            }
        };
        for (from, node) in self.elements().iter().enumerate() {
            for (to, &packets) in node.to.iter().zip(&node.left) {
                let Some(to) = *to else { continue };
                count(Some(from), self.behind_taps(to).node, packets);
                if node.inputs == 0 {
                    count(None, from, packets);
                }
            }
        }
        all
    }
}
