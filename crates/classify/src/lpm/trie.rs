//! A trie whose nodes count bits, changed in place.

use std::ops::RangeInclusive;

use super::{Address, MANY, Prefixes};
use crate::simd::prefetch;

/// In references: a number or nothing follows, not the index of a node.
const LEAF: u32 = 1 << 31;
/// The reference to no number.
const NOTHING: u32 = u32::MAX;
/// Bits that a node distinguishes.
const STRIDE: u8 = 6;
/// Children of a node.
const CHILDREN: usize = 1 << STRIDE;
/// Bits that the table distinguishes, for some prefixes and for many.
const DIRECT: [u8; 2] = [16, 18];
/// Addresses that a batch takes down the trie side by side.
const LANES: usize = 32;

#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Which children are nodes.
    nodes: u64,
    /// Where among the other children a run of equal references starts.
    runs: u64,
    /// Index of the first child that is a node.
    first_node: u32,
    /// Index of the first run.
    first_run: u32,
}

impl Node {
    /// The node or the run that a child is.
    #[inline(always)]
    fn child(&self, child: usize) -> (bool, u32) {
        let up_to = u64::MAX >> (63 - child % CHILDREN);
        let is_node = self.nodes >> child & 1 == 1;
        let (bits, first) =
            if is_node { (self.nodes, self.first_node) } else { (self.runs, self.first_run) };
        (is_node, first.wrapping_add((bits & up_to).count_ones()).wrapping_sub(1))
    }
}

/// A node's children, apart.
struct Children {
    /// References to numbers, of those that are no nodes.
    leaves: [u32; CHILDREN],
    nodes: [Option<Node>; CHILDREN],
}

/// Slices of a few elements each, those given back used again.
#[derive(Clone, Debug, Default)]
struct Pool<T> {
    elements: Vec<T>,
    /// Where slices of each length are free.
    free: Vec<Vec<u32>>,
}

impl<T: Copy + Default> Pool<T> {
    fn take(&mut self, elements: &[T]) -> u32 {
        let count = elements.len();
        match self.free.get_mut(count).and_then(Vec::pop) {
            Some(at) => {
                self.elements[at as usize..][..count].copy_from_slice(elements);
                at
            }
            None => {
                let at = self.elements.len() as u32;
                self.elements.extend_from_slice(elements);
                at
            }
        }
    }

    fn give_back(&mut self, at: u32, count: usize) {
        if count > 0 {
            self.free.resize(self.free.len().max(count + 1), Vec::new());
            self.free[count].push(at);
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Trie {
    /// Bits that index the table.
    bits: u8,
    direct: Vec<u32>,
    nodes: Pool<Node>,
    leaves: Pool<u32>,
}

impl Trie {
    pub(super) fn new<A: Address>(prefixes: &Prefixes<A>) -> Self {
        let bits = DIRECT[usize::from(prefixes.map.len() >= MANY)];
        let direct = vec![NOTHING; 1 << bits];
        let mut trie = Self { bits, direct, nodes: Pool::default(), leaves: Pool::default() };
        trie.fill(prefixes, 0, (1 << bits) - 1);
        trie
    }

    /// Whether the table is of the right size for so many prefixes, or nearly.
    pub(super) fn suits(&self, prefixes: usize) -> bool {
        let few = self.bits == DIRECT[0];
        if few { prefixes < 2 * MANY } else { prefixes >= MANY / 2 }
    }

    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.direct[..])
            + size_of_val(&self.nodes.elements[..])
            + size_of_val(&self.leaves.elements[..])
    }

    #[inline]
    pub(super) fn lookup<A: Address>(&self, address: A) -> Option<u32> {
        let mut at = self.direct[address.bits(0, self.bits)];
        let mut offset = self.bits;
        while at & LEAF == 0 {
            let (is_node, index) =
                self.nodes.elements[at as usize].child(address.bits(offset, STRIDE));
            at = if is_node { index } else { self.leaves.elements[index as usize] };
            offset += STRIDE;
        }
        (at != NOTHING).then_some(at & !LEAF)
    }

    /// Looks addresses up side by side: all take a step before any takes the next, and each step
    /// prefetches what the next one reads. `everywhere` is found where there is no prefix.
    #[inline(always)]
    pub(super) fn lookup_batch<A: Address>(
        &self,
        addresses: &[A],
        everywhere: Option<u32>,
        found: &mut [Option<u32>],
    ) {
        let (nodes, leaves) = (&self.nodes.elements[..], &self.leaves.elements[..]);
        for (addresses, found) in addresses.chunks(LANES).zip(found.chunks_mut(LANES)) {
            for address in addresses {
                prefetch(&self.direct, address.bits(0, self.bits));
            }
            // A node, a leaf, or (with no bit set) the index of a leaf's run.
            let mut at = [NOTHING; LANES];
            let mut run = [u32::MAX; LANES];
            let mut walking = [0u8; LANES];
            let mut left = 0;
            for (lane, address) in addresses.iter().enumerate() {
                at[lane] = self.direct[address.bits(0, self.bits)];
                let walks = at[lane] & LEAF == 0;
                prefetch(nodes, if walks { at[lane] as usize } else { 0 });
                walking[left % LANES] = lane as u8;
                left += usize::from(walks);
            }
            let mut offset = self.bits;
            while left > 0 {
                let mut still = 0;
                for i in 0..left.min(LANES) {
                    let lane = usize::from(walking[i]) % LANES;
                    let child = addresses[lane].bits(offset, STRIDE);
                    let (is_node, index) = nodes[at[lane] as usize].child(child);
                    at[lane] = index;
                    run[lane] = if is_node { u32::MAX } else { index };
                    prefetch(nodes, if is_node { index as usize } else { 0 });
                    prefetch(leaves, if is_node { 0 } else { index as usize });
                    walking[still % LANES] = lane as u8;
                    still += usize::from(is_node);
                }
                left = still;
                offset += STRIDE;
            }
            for ((found, &at), &run) in found.iter_mut().zip(&at).zip(&run) {
                let reference = leaves.get(run as usize).copied().unwrap_or(at);
                *found = if reference == NOTHING { everywhere } else { Some(reference & !LEAF) };
            }
        }
    }

    /// Fills entries `first..=last` of the table anew.
    fn fill<A: Address>(&mut self, prefixes: &Prefixes<A>, first: usize, last: usize) {
        let bits = self.bits;
        let low = A::from_first(first, bits);
        let high = A::from_first(last, bits).last(bits);
        let common = ((first ^ last) << (usize::BITS - u32::from(bits))).leading_zeros();
        let common = common.min(u32::from(bits)) as u8;
        let around = prefixes.longest(low, common).map_or(NOTHING, |v| v | LEAF);
        for slot in first..=last {
            self.release(self.direct[slot]);
        }
        self.direct[first..=last].fill(around);
        let mut long: Vec<(A, u8, u32)> = Vec::new();
        for (address, length, value) in prefixes.within(low, high) {
            if length > bits {
                long.push((address, length, value | LEAF));
            } else {
                let until = address.last(length).bits(0, bits).min(last);
                self.direct[address.bits(0, bits)..=until].fill(value | LEAF);
            }
        }
        for group in long.chunk_by(|a, b| a.0.bits(0, bits) == b.0.bits(0, bits)) {
            let slot = group[0].0.bits(0, bits);
            let node = self.grow(bits, group, self.direct[slot]);
            self.direct[slot] = self.nodes.take(&[node]);
        }
    }

    /// Makes the node that distinguishes bits from `offset` on, of prefixes that are longer than
    /// `offset` bits and have these in common.
    fn grow<A: Address>(&mut self, offset: u8, prefixes: &[(A, u8, u32)], around: u32) -> Node {
        let mut children =
            Children { leaves: [around; CHILDREN], nodes: [const { None }; CHILDREN] };
        self.plant(&mut children, offset, prefixes);
        self.pack(&children)
    }

    /// Puts prefixes that are longer than `offset` bits over a node's children.
    fn plant<A: Address>(
        &mut self,
        children: &mut Children,
        offset: u8,
        prefixes: &[(A, u8, u32)],
    ) {
        let reach = offset + STRIDE;
        for &(address, length, value) in prefixes.iter().filter(|p| p.1 <= reach) {
            children.leaves[span(address, length, offset)].fill(value);
        }
        let long: Vec<_> = prefixes.iter().copied().filter(|p| p.1 > reach).collect();
        for group in long.chunk_by(|a, b| a.0.bits(offset, STRIDE) == b.0.bits(offset, STRIDE)) {
            let child = group[0].0.bits(offset, STRIDE);
            children.nodes[child] = Some(self.grow(reach, group, children.leaves[child]));
        }
    }

    /// Stores children; gives their node.
    fn pack(&mut self, children: &Children) -> Node {
        let mut node = Node::default();
        let (mut nodes, mut runs) = ([Node::default(); CHILDREN], [0; CHILDREN]);
        let (mut node_count, mut run_count) = (0, 0);
        for (i, (child, &leaf)) in children.nodes.iter().zip(&children.leaves).enumerate() {
            match child {
                Some(child) => {
                    node.nodes |= 1 << i;
                    nodes[node_count] = *child;
                    node_count += 1;
                }
                None if run_count == 0 || runs[run_count - 1] != leaf => {
                    node.runs |= 1 << i;
                    runs[run_count] = leaf;
                    run_count += 1;
                }
                None => {}
            }
        }
        node.first_node = self.nodes.take(&nodes[..node_count]);
        node.first_run = self.leaves.take(&runs[..run_count]);
        node
    }

    /// Takes a node's children apart, and gives their places back.
    fn unpack(&mut self, node: &Node) -> Children {
        let mut children =
            Children { leaves: [NOTHING; CHILDREN], nodes: [const { None }; CHILDREN] };
        let mut leaf = NOTHING;
        for i in 0..CHILDREN {
            match node.child(i) {
                (true, index) => children.nodes[i] = Some(self.nodes.elements[index as usize]),
                (false, index) => leaf = self.leaves.elements[index as usize],
            }
            children.leaves[i] = leaf;
        }
        self.nodes.give_back(node.first_node, node.nodes.count_ones() as usize);
        self.leaves.give_back(node.first_run, node.runs.count_ones() as usize);
        children
    }

    /// Gives back all that stands below a reference of the table.
    fn release(&mut self, at: u32) {
        if at & LEAF == 0 {
            let node = self.nodes.elements[at as usize];
            self.release_below(&node);
            self.nodes.give_back(at, 1);
        }
    }

    fn release_below(&mut self, node: &Node) {
        for child in self.unpack(node).nodes.iter().flatten() {
            self.release_below(child);
        }
    }

    /// Takes a change of this prefix over from `prefixes`.
    pub(super) fn update<A: Address>(&mut self, prefixes: &Prefixes<A>, address: A, length: u8) {
        let slot = address.bits(0, self.bits);
        if length <= self.bits || self.direct[slot] & LEAF != 0 {
            let last = address.last(length).bits(0, self.bits);
            return self.fill(prefixes, slot, last);
        }
        // The nodes down to the one that the prefix ends in, or to the last there is.
        let mut path = vec![(self.direct[slot], self.bits)];
        while let Some(&(at, offset)) = path.last()
            && length > offset + STRIDE
            && let (true, index) =
                self.nodes.elements[at as usize].child(address.bits(offset, STRIDE))
        {
            path.push((index, offset + STRIDE));
        }
        let Some((at, offset)) = path.pop() else { return };
        let node = self.nodes.elements[at as usize];
        let mut children = self.unpack(&node);
        self.renew(&mut children, offset, prefixes, address, length);
        let mut node = self.pack(&children);
        let mut uniform = uniform(&children);
        self.nodes.elements[at as usize] = node;
        // A node that distinguishes nothing goes.
        while let (Some(leaf), Some((above, offset))) = (uniform, path.pop()) {
            let parent = self.nodes.elements[above as usize];
            let mut children = self.unpack(&parent);
            let child = address.bits(offset, STRIDE);
            self.release_below(&node);
            (children.nodes[child], children.leaves[child]) = (None, leaf);
            node = self.pack(&children);
            self.nodes.elements[above as usize] = node;
            uniform = self::uniform(&children);
        }
        if let (Some(leaf), true) = (uniform, path.is_empty()) {
            self.release(self.direct[slot]);
            self.direct[slot] = leaf;
        }
    }

    /// Does the children of a node anew that a prefix longer than `offset` bits covers, or the
    /// one that it lies in.
    fn renew<A: Address>(
        &mut self,
        children: &mut Children,
        offset: u8,
        prefixes: &Prefixes<A>,
        address: A,
        length: u8,
    ) {
        let reach = (offset + STRIDE).min(A::BITS);
        let covered = span(address, length.min(reach), offset);
        if length <= reach {
            let cover = prefixes.longest(address, length).map_or(NOTHING, |v| v | LEAF);
            children.leaves[covered.clone()].fill(cover);
        }
        for child in &mut children.nodes[covered] {
            if let Some(node) = child.take() {
                self.release_below(&node);
            }
        }
        let space = length.min(reach);
        let (low, high) = (address.first(space), address.last(space));
        let inside = prefixes.within(low, high).filter(|(_, length, _)| *length > space);
        let inside: Vec<_> =
            inside.map(|(address, length, value)| (address, length, value | LEAF)).collect();
        self.plant(children, offset, &inside);
    }
}

/// The one reference that all children are, if so.
fn uniform(children: &Children) -> Option<u32> {
    let leaf = children.leaves[0];
    let same = children.nodes.iter().all(Option::is_none)
        && children.leaves.iter().all(|other| *other == leaf);
    same.then_some(leaf)
}

/// The children that a prefix covers of a node that distinguishes bits from `offset` on; it is at
/// most as long as the node reaches.
fn span<A: Address>(address: A, length: u8, offset: u8) -> RangeInclusive<usize> {
    let reach = offset + STRIDE;
    let last = address.last(length).bits(offset, STRIDE);
    // Bits beyond the address are 0 in lookups; filling what they could be does no harm.
    let beyond = if reach > A::BITS { (1 << (reach - A::BITS)) - 1 } else { 0 };
    address.bits(offset, STRIDE)..=last | beyond
}
