//! A tree that finds the boxes which share a point with a given one.
//!
//! At a node, boxes before a cut in one dimension go to one side, boxes behind it to the other,
//! and those that it cuts to a third child: none is stored twice, and those which leave a
//! dimension open are distinguished by another. The tree is made for all boxes of a grid and then
//! filled with some.

use super::grid::{Grid, Side};

/// This many boxes are looked through one by one.
const LEAF: usize = 8;
/// A cut is chosen by looking at no more boxes than this.
const SAMPLE: usize = 64;

pub(super) struct Tree {
    nodes: Vec<Node>,
    /// Box numbers; a leaf has a run of them.
    items: Vec<u32>,
}

struct Node {
    /// How many boxes were put in below.
    filled: u32,
    kind: Kind,
}

enum Kind {
    /// Where its run of boxes starts.
    Leaf(u32),
    /// Below the cut, across it, from it on.
    Cut { dimension: u32, cut: u32, children: [Option<u32>; 3] },
}

impl Tree {
    /// An empty tree with a place for every box.
    pub(super) fn new(grid: &Grid) -> Self {
        let mut items: Vec<u32> = (0..grid.rules.len() as u32).collect();
        let mut tree = Self { nodes: Vec::new(), items: Vec::with_capacity(items.len()) };
        tree.add(grid, &mut items);
        tree
    }

    /// Adds a node for these boxes; their number shrinks by an eighth at least with every level.
    fn add(&mut self, grid: &Grid, items: &mut [u32]) -> Option<u32> {
        let number = (!items.is_empty()).then_some(self.nodes.len() as u32)?;
        self.nodes.push(Node { filled: 0, kind: Kind::Leaf(self.items.len() as u32) });
        let cut = if items.len() > LEAF { choose(grid, items, &grid.full) } else { None };
        let parts = cut.and_then(|(dimension, cut)| {
            let place = |item: &u32| place(grid.sides(*item)[dimension], cut);
            items.sort_by_key(place);
            let across = items.partition_point(|item| place(item) < 1);
            let behind = items.partition_point(|item| place(item) < 2);
            let largest = across.max(behind - across).max(items.len() - behind);
            (largest <= items.len() / 8 * 7).then_some((dimension, cut, across, behind))
        });
        match parts {
            None => self.items.extend_from_slice(items),
            Some((dimension, cut, across, behind)) => {
                let (before, rest) = items.split_at_mut(across);
                let (across, behind) = rest.split_at_mut(behind - across);
                let children =
                    [self.add(grid, before), self.add(grid, across), self.add(grid, behind)];
                let dimension = dimension as u32;
                self.nodes[number as usize].kind = Kind::Cut { dimension, cut, children };
            }
        }
        Some(number)
    }

    /// Puts a box of the grid in.
    pub(super) fn insert(&mut self, grid: &Grid, item: u32) {
        let mut at = 0;
        while let Some(node) = self.nodes.get_mut(at) {
            node.filled += 1;
            match node.kind {
                Kind::Leaf(start) => {
                    self.items[(start + node.filled - 1) as usize] = item;
                    return;
                }
                Kind::Cut { dimension, cut, children } => {
                    let child = place(grid.sides(item)[dimension as usize], cut);
                    at = children[usize::from(child)].map_or(usize::MAX, |child| child as usize);
                }
            }
        }
    }

    /// Adds the boxes that were put in and share a point with the box `query`. Returns how many
    /// nodes and boxes were looked at.
    pub(super) fn find(&self, grid: &Grid, query: &[Side], found: &mut Vec<u32>) -> u64 {
        let mut looked = 0;
        let mut waiting = Vec::with_capacity(32);
        waiting.extend((!self.nodes.is_empty()).then_some(0u32));
        while let Some(number) = waiting.pop() {
            let Node { filled, kind } = &self.nodes[number as usize];
            looked += 1;
            if *filled == 0 {
                continue;
            }
            match *kind {
                Kind::Leaf(start) => {
                    looked += u64::from(*filled);
                    let items = &self.items[start as usize..(start + filled) as usize];
                    found.extend(items.iter().filter(|&&item| meet(grid.sides(item), query)));
                }
                Kind::Cut { dimension, cut, children: [before, across, behind] } => {
                    let (low, high) = query[dimension as usize];
                    waiting.extend(behind.filter(|_| high >= cut));
                    waiting.extend(across);
                    waiting.extend(before.filter(|_| low < cut));
                }
            }
        }
        looked
    }
}

/// Whether two boxes share a point.
#[inline]
fn meet(one: &[Side], other: &[Side]) -> bool {
    one.iter().zip(other).all(|(a, b)| a.0 <= b.1 && b.0 <= a.1)
}

/// The child that a side belongs to.
#[inline]
fn place((low, high): Side, cut: u32) -> u8 {
    u8::from(high >= cut) + u8::from(low >= cut)
}

/// The dimension and the cut inside a piece with the fewest boxes across it and on its fuller
/// side, going by a sample of boxes that share a point with the piece. `None` if no box ends
/// inside it.
pub(super) fn choose(grid: &Grid, items: &[u32], piece: &[Side]) -> Option<(usize, u32)> {
    let step = items.len().div_ceil(SAMPLE).max(1);
    let sample: Vec<&[Side]> = items.iter().step_by(step).map(|&i| grid.sides(i)).collect();
    let mut best = None;
    let mut ends = Vec::with_capacity(2 * sample.len());
    for (dimension, &(least, greatest)) in piece.iter().enumerate() {
        ends.clear();
        for sides in &sample {
            let (low, high) = sides[dimension];
            ends.extend((low > least).then_some(low));
            ends.extend((high < greatest).then_some(high + 1));
        }
        ends.sort_unstable();
        for quarter in 1..4 {
            let Some(&cut) = ends.get(ends.len() * quarter / 4) else { break };
            let mut parts = [0usize; 3];
            sample.iter().for_each(|s| parts[usize::from(place(s[dimension], cut))] += 1);
            let cost = parts[1] + parts[0].max(parts[2]);
            if best.is_none_or(|(least, _, _)| cost < least) {
                best = Some((cost, dimension, cut));
            }
        }
    }
    best.map(|(_, dimension, cut)| (dimension, cut))
}
