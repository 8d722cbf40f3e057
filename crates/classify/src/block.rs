//! Cubes in blocks of four that are compared with a key at once.

use crate::rule_set::{Cube, Key, MAX_DIMENSIONS, MAX_RULE, RuleSet};
use crate::simd::{CUBES, CacheLine, Isa};

/// Says that no rule matches: greater than any rule.
pub(crate) const NO_RULE: u32 = MAX_RULE + 1;

/// Half a line.
const SLOT: usize = 2 * CUBES;
/// Where the last half line, which has the cubes' rules, says [`NO_RULE`], and whether the list goes on in the next block.
const NOTHING: usize = CUBES;
const CONTINUES: usize = CUBES + 1;

/// Lines of a block whose cubes differ in so many dimensions: half a line for each, and another one for the rules.
pub(crate) const fn lines(width: usize) -> usize {
    width / 2 + 1
}

/// How cubes of a set are laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// How many dimensions tell the rules apart, one at least.
    pub(crate) width: usize,
    /// The order that puts these dimensions first in keys.
    pub(crate) order: [u32; MAX_DIMENSIONS],
}

/// What a key finds in a block.
pub(crate) struct BlockMatch {
    /// The first rule that holds the key, or [`NO_RULE`].
    pub(crate) rule: u32,
    /// 1 if there is no such rule, and the list goes on in the next block.
    pub(crate) continues: u32,
}

impl Layout {
    pub(crate) fn new(rules: &RuleSet) -> Self {
        let all = rules.everything(0);
        let tells = |d: &usize| {
            rules.cubes().iter().any(|c| (c.low[*d], c.high[*d]) != (all.low[*d], all.high[*d]))
        };
        let mut order = [0; MAX_DIMENSIONS];
        let mut width = 0;
        for d in (0..MAX_DIMENSIONS).filter(tells) {
            order[width] = d as u32;
            width += 1;
        }
        Self { width: width.max(1), order }
    }

    /// The dimensions that distinguish rules.
    pub(crate) fn dimensions(&self) -> impl Iterator<Item = usize> {
        self.order[..self.width].iter().map(|&d| d as usize)
    }

    /// Adds a list of cubes, of which there is one at least, as blocks in a row.
    pub(crate) fn push<'a>(
        &self,
        to: &mut Vec<CacheLine>,
        cubes: impl ExactSizeIterator<Item = &'a Cube>,
    ) {
        let mut left = cubes.len();
        let mut cubes = cubes.into_iter();
        while left > 0 {
            let mut block = [Cube::default(); CUBES];
            let count = left.min(CUBES);
            block.iter_mut().zip(&mut cubes).for_each(|(place, cube)| *place = *cube);
            // The last cube fills the block up: it matches no earlier than where it stands.
            let last = block[count - 1];
            block[count..].fill(last);
            left -= count;
            let mut rules = [0; SLOT];
            rules[..CUBES].copy_from_slice(&block.map(|cube| cube.rule));
            rules[NOTHING] = NO_RULE;
            rules[CONTINUES] = u32::from(left > 0);
            let bounds = |d: usize| -> [u32; SLOT] {
                std::array::from_fn(|i| match i.checked_sub(CUBES) {
                    None => block[i].low[d],
                    Some(i) => !block[i].high[d],
                })
            };
            let slots: Vec<[u32; SLOT]> = self.dimensions().map(bounds).chain([rules]).collect();
            to.extend(slots.chunks(2).map(|slots| {
                let mut line = CacheLine([0; 16]);
                line.0.iter_mut().zip(slots.as_flattened()).for_each(|(to, from)| *to = *from);
                line
            }));
        }
    }

    /// How many blocks of a list are compared until a rule is found.
    pub(crate) fn compared(&self, list: &[CacheLine], key: &Key) -> usize {
        for (block, i) in list.chunks(lines(self.width)).zip(1..) {
            let slots: Vec<&[u32]> = block.iter().flat_map(|line| line.0.chunks(SLOT)).collect();
            let holds = |c: usize| {
                self.dimensions().zip(&slots).all(|(d, s)| (s[c]..=!s[CUBES + c]).contains(&key[d]))
            };
            if slots[self.width][CONTINUES] == 0 || (0..CUBES).any(holds) {
                return i;
            }
        }
        0
    }
}

/// Compares a key, spread in the order of the layout, with the block of `W` dimensions at the head of some lines.
#[inline(always)]
pub(crate) fn find<const W: usize>(
    isa: impl Isa,
    block: &[CacheLine],
    key: &CacheLine,
) -> BlockMatch {
    let block = &block[..lines(W)];
    let matches = isa.matches::<W>(block, key);
    let rules = &block[W / 2].0[W % 2 * SLOT..][..SLOT];
    let rule = rules[(matches | 1 << NOTHING).trailing_zeros() as usize % SLOT];
    BlockMatch { rule, continues: u32::from(matches == 0) & rules[CONTINUES] }
}
