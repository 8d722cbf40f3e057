//! Cubes compared one after the other.

use crate::Classifier;
use crate::block::{Layout, NO_RULE, find, lines};
use crate::rule_set::{Cube, Key, MAX_DIMENSIONS, RuleSet};
use crate::simd::{CUBES, CacheLine, Isa, Level, Task, run};

/// What a lookup costs besides its blocks, as [`Classifier::cost`] counts: in a list of one block,
/// and in a longer one, where the branch that ends the search is mostly mispredicted.
const FIXED_COST: [usize; 2] = [40, 140];
/// What a block of the list costs.
const BLOCK_COST: usize = 14;

/// A cube laid out to be compared without a branch, a cache line in size.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Packed {
    low: Key,
    /// Greatest number less the least.
    span: Key,
}

impl Packed {
    pub(crate) fn new(cube: &Cube) -> Self {
        let mut span = cube.high;
        span.iter_mut().zip(&cube.low).for_each(|(span, low)| *span -= low);
        Self { low: cube.low, span }
    }

    /// The cube, without its rule.
    pub(crate) fn unpacked(&self) -> Cube {
        let high = std::array::from_fn(|d| self.low[d].wrapping_add(self.span[d]));
        Cube { low: self.low, high, rule: 0 }
    }

    #[inline]
    pub(crate) fn contains(&self, key: &Key) -> bool {
        let outside = |d: usize| u32::from(key[d].wrapping_sub(self.low[d]) > self.span[d]);
        (0..MAX_DIMENSIONS).fold(0, |any, d| any | outside(d)) == 0
    }
}

/// The structure for few rules.
#[derive(Clone, Debug)]
pub struct Linear {
    level: Level,
    layout: Layout,
    /// Blocks of cubes in order.
    lines: Vec<CacheLine>,
    count: usize,
}

impl Linear {
    /// Takes the rules' cubes in order.
    pub fn new(rules: &RuleSet) -> Self {
        Self::at(Level::widest(), rules)
    }

    pub(crate) fn at(level: Level, rules: &RuleSet) -> Self {
        let (layout, mut lines) = (Layout::new(rules), Vec::new());
        layout.push(&mut lines, rules.cubes().iter());
        Self { level, layout, lines, count: rules.cubes().len() }
    }
}

struct Scan<'a> {
    list: &'a Linear,
    keys: &'a [Key],
    found: &'a mut [Option<u32>],
}

impl Task for Scan<'_> {
    #[inline(always)]
    fn run<const W: usize>(self, isa: impl Isa) {
        for (key, found) in self.keys.iter().zip(self.found) {
            let key = isa.spread(key, &self.list.layout.order);
            let blocks = self.list.lines.chunks_exact(lines(W));
            let mut rules = blocks.map(|block| find::<W>(isa, block, &key).rule);
            *found = rules.find(|&rule| rule != NO_RULE);
        }
    }
}

impl Classifier for Linear {
    fn lookup(&self, key: &Key) -> Option<u32> {
        let mut found = [None];
        self.lookup_batch(std::slice::from_ref(key), &mut found);
        found[0]
    }

    fn lookup_batch(&self, keys: &[Key], found: &mut [Option<u32>]) {
        let width = self.layout.width;
        run(self.level, width, Scan { list: self, keys, found: &mut found[..keys.len()] });
    }

    fn describe(&self) -> String {
        format!("a list of {} cubes", self.count)
    }

    fn memory(&self) -> usize {
        size_of_val(&self.lines[..])
    }

    fn cost(&self, key: &Key) -> usize {
        FIXED_COST[usize::from(self.count > CUBES)]
            + BLOCK_COST * self.layout.compared(&self.lines, key)
    }
}
