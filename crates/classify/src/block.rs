//! Cubes in blocks of eight that are compared with a key at once.

use crate::rule_set::{Cube, Key, MAX_DIMENSIONS, MAX_RULE, RuleSet};
use crate::simd::{CUBES, Isa, Line, prefetch};

/// Says that no rule matches: greater than any rule.
pub(crate) const NO_RULE: u32 = MAX_RULE + 1;
/// In the last rule of a block: the list goes on in the next block.
const CONTINUES: u32 = 1 << 31;

/// Blocks of cubes, a line for each dimension that tells rules apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    dimensions: Vec<u8>,
    /// The order that puts these dimensions first in keys.
    order: [u32; MAX_DIMENSIONS],
    lines: Vec<Line>,
    /// The rules of each block's cubes, in order.
    rules: Vec<[u32; CUBES]>,
}

impl Blocks {
    /// No blocks, for cubes of this set.
    pub(crate) fn for_rules(rules: &RuleSet) -> Self {
        let all = rules.everything(0);
        let tells = |d: &usize| {
            rules.cubes().iter().any(|c| (c.low[*d], c.high[*d]) != (all.low[*d], all.high[*d]))
        };
        let mut dimensions: Vec<u8> = (0..MAX_DIMENSIONS).filter(tells).map(|d| d as u8).collect();
        if dimensions.is_empty() {
            dimensions.push(0);
        }
        let mut order = [0; MAX_DIMENSIONS];
        order.iter_mut().zip(&dimensions).for_each(|(place, &d)| *place = d.into());
        Self { dimensions, order, ..Self::default() }
    }

    /// Adds a list of cubes, of which there is one at least. Gives its first block.
    pub(crate) fn push<'a>(&mut self, cubes: impl ExactSizeIterator<Item = &'a Cube>) -> usize {
        let first = self.rules.len();
        let mut left = cubes.len();
        let mut cubes = cubes.into_iter();
        while left > 0 {
            let mut block = [Cube::default(); CUBES];
            let count = left.min(CUBES);
            block.iter_mut().zip(&mut cubes).for_each(|(place, cube)| *place = *cube);
            // The last cube fills the block up: it matches no earlier than where it stands.
            let last = block[count - 1];
            block[count..].fill(last);
            for &d in &self.dimensions {
                let d = usize::from(d);
                self.lines.push(Line(std::array::from_fn(|i| match i.checked_sub(CUBES) {
                    None => block[i].low[d],
                    Some(i) => block[i].high[d] - block[i].low[d],
                })));
            }
            left -= count;
            let mut rules = block.map(|cube| cube.rule);
            rules[CUBES - 1] |= if left > 0 { CONTINUES } else { 0 };
            self.rules.push(rules);
        }
        first
    }

    /// Adds a block in which nothing is found.
    pub(crate) fn push_empty(&mut self) -> usize {
        self.lines.extend(self.dimensions.iter().map(|_| Line([0; 16])));
        self.rules.push([NO_RULE; CUBES]);
        self.rules.len() - 1
    }

    /// The dimensions that tell rules apart.
    pub(crate) fn dimensions(&self) -> &[u8] {
        &self.dimensions
    }

    /// What lookups need. `W` is [`Self::width`].
    #[inline(always)]
    pub(crate) fn view<const W: usize>(&self) -> View<'_, W> {
        View { lines: self.lines.as_chunks().0, rules: &self.rules, order: self.order }
    }

    /// How many blocks of a list are compared until the key's is found, and its rule or
    /// [`NO_RULE`].
    pub(crate) fn compared(&self, first: usize, key: &Key) -> (usize, u32) {
        let width = self.width();
        for (i, (lines, rules)) in
            self.lines[first * width..].chunks(width).zip(&self.rules[first..]).enumerate()
        {
            let holds = |c: &usize| {
                self.dimensions.iter().zip(lines).all(|(&d, Line(line))| {
                    key[usize::from(d)].wrapping_sub(line[*c]) <= line[CUBES + c]
                })
            };
            match (0..CUBES).find(holds) {
                Some(c) => return (i + 1, rules[c] & !CONTINUES),
                None if rules[CUBES - 1] & CONTINUES == 0 => return (i + 1, NO_RULE),
                None => {}
            }
        }
        (0, NO_RULE)
    }

    /// The order that puts the dimensions that tell rules apart first in keys.
    pub(crate) fn order(&self) -> &[u32; MAX_DIMENSIONS] {
        &self.order
    }

    /// Lines of a block.
    pub(crate) fn width(&self) -> usize {
        self.dimensions.len()
    }

    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.lines[..]) + size_of_val(&self.rules[..])
    }
}

/// Blocks of `W` lines.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, const W: usize> {
    lines: &'a [[Line; W]],
    rules: &'a [[u32; CUBES]],
    order: [u32; MAX_DIMENSIONS],
}

impl<const W: usize> View<'_, W> {
    /// The key with those dimensions first that tell rules apart: so others take it.
    #[inline(always)]
    pub(crate) fn permuted(&self, isa: impl Isa, key: &Key) -> Key {
        isa.permute(key, &self.order)
    }

    /// The first rule of a list that holds the permuted key, or [`NO_RULE`].
    #[inline(always)]
    pub(crate) fn find(&self, isa: impl Isa, first: usize, key: &Key) -> u32 {
        let mut block = first;
        loop {
            let found = isa.matches(&self.lines[block], key);
            let rules = &self.rules[block];
            // Whether a cube is found is anyone's guess, but few lists are long: one branch.
            let continues = rules[CUBES - 1] & CONTINUES;
            if continues > found.wrapping_neg() {
                block += 1;
                continue;
            }
            let rule = rules[found.trailing_zeros() as usize % CUBES] & !CONTINUES;
            return if found == 0 { NO_RULE } else { rule };
        }
    }

    /// Brings a block near.
    #[inline(always)]
    pub(crate) fn prefetch(&self, block: usize) {
        prefetch(self.lines, block);
        prefetch(self.rules, block);
    }
}
