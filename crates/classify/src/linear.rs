//! Cubes compared one after the other.

use crate::Classifier;
use crate::rule_set::{Cube, Key, MAX_DIMENSIONS, RuleSet};

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

    #[inline]
    pub(crate) fn contains(&self, key: &Key) -> bool {
        let outside = |d: usize| u32::from(key[d].wrapping_sub(self.low[d]) > self.span[d]);
        (0..MAX_DIMENSIONS).fold(0, |any, d| any | outside(d)) == 0
    }
}

/// The structure for few rules.
#[derive(Clone, Debug, Default)]
pub struct Linear {
    cubes: Vec<Packed>,
    rules: Vec<u32>,
}

impl Linear {
    /// Takes the rules' cubes in order.
    pub fn new(rules: &RuleSet) -> Self {
        Self {
            cubes: rules.cubes().iter().map(Packed::new).collect(),
            rules: rules.cubes().iter().map(|c| c.rule).collect(),
        }
    }

    #[inline]
    fn position(&self, key: &Key) -> Option<usize> {
        self.cubes.iter().position(|c| c.contains(key))
    }
}

impl Classifier for Linear {
    #[inline]
    fn lookup(&self, key: &Key) -> Option<u32> {
        self.position(key).map(|i| self.rules[i])
    }

    fn describe(&self) -> String {
        format!("a list of {} cubes", self.cubes.len())
    }

    fn memory(&self) -> usize {
        size_of_val(&self.cubes[..]) + size_of_val(&self.rules[..])
    }

    fn cost(&self, key: &Key) -> usize {
        self.position(key).map_or(self.cubes.len(), |i| i + 1)
    }
}
