//! The trait of classification structures, and the choice among them.

use crate::rule_set::{Cube, Key, RuleSet};
use crate::{BitVector, Forest, Linear};

/// Finds the least rule that a key matches.
pub trait Classifier: Send + Sync {
    /// The least rule that holds the key, if any.
    fn lookup(&self, key: &Key) -> Option<u32>;

    /// Looks several keys up at once, which hides the latency of memory.
    ///
    /// # Panics
    /// If `found` is shorter than `keys`.
    fn lookup_batch(&self, keys: &[Key], found: &mut [Option<u32>]) {
        for (key, found) in keys.iter().zip(&mut found[..keys.len()]) {
            *found = self.lookup(key);
        }
    }

    /// What it is, for people.
    fn describe(&self) -> String;

    /// Bytes of memory that it takes.
    fn memory(&self) -> usize;

    /// About what a lookup of `key` in a batch costs, in tenths of a nanosecond on a server's
    /// processor. Only how costs compare matters.
    fn cost(&self, key: &Key) -> usize;
}

/// More cubes than this are not compared one after the other.
const LIST: usize = 256;
/// A list that costs no more is good enough.
const CHEAP: usize = 110;
/// Bit vectors are tried for so many cubes, and for more where a forest costs more than [`DEAR`]: their memory grows
/// with the square.
const MANY: usize = 2048;
const DEAR: usize = 800;

/// Builds the structure that answers fastest for these rules, as far as keys at the corners of
/// their cubes tell.
pub fn build(rules: &RuleSet) -> Box<dyn Classifier> {
    let keys: Vec<Key> = points(rules).into_iter().chain(corners(rules)).collect();
    let count = rules.cubes().len();
    let mut best: (usize, Box<dyn Classifier>) = (usize::MAX, Box::new(Linear::new(rules)));
    let mut offer = |candidate: Box<dyn Classifier>| {
        let cost = mean_cost(&*candidate, &keys);
        if cost < best.0 {
            best = (cost, candidate);
        }
        best.0
    };
    if count <= LIST && offer(Box::new(Linear::new(rules))) <= CHEAP {
        return best.1;
    }
    let cost = offer(Box::new(Forest::new(rules)));
    if count <= MANY || cost > DEAR {
        offer(Box::new(BitVector::new(rules)));
    }
    best.1
}

/// What lookups cost on average.
pub(crate) fn mean_cost(classifier: &dyn Classifier, keys: &[Key]) -> usize {
    keys.iter().map(|key| classifier.cost(key)).sum::<usize>() / keys.len().max(1)
}

/// Random points of cubes, and mixtures of two: keys that match, and keys that almost do.
pub(crate) fn points(rules: &RuleSet) -> Vec<Key> {
    let mut state = 1u64;
    let point = |cube: &Cube| -> Key {
        std::array::from_fn(|d| {
            // A linear congruential generator, whose high bits are random enough.
            state = state.wrapping_mul(0xda94_2042_e4dd_58b5).wrapping_add(0x9e37_79b9_7f4a_7c15);
            let size = u64::from(cube.high[d] - cube.low[d]) + 1;
            cube.low[d] + (((state >> 32) * size) >> 32) as u32
        })
    };
    let points: Vec<Key> = some(rules).map(point).collect();
    let mixed = points.iter().zip(points.iter().skip(1)).map(|(a, b)| mixture(a, b)).step_by(2);
    points.iter().copied().chain(mixed).collect()
}

/// Mixtures of the corners of cubes, with which structures have most trouble.
fn corners(rules: &RuleSet) -> impl Iterator<Item = Key> {
    some(rules).zip(some(rules).skip(1)).map(|(a, b)| mixture(&a.low, &b.high)).step_by(2)
}

/// Cubes from all over the rules.
fn some(rules: &RuleSet) -> impl Iterator<Item = &Cube> {
    rules.cubes().iter().step_by(rules.cubes().len().div_ceil(512).max(1))
}

/// Every other number from either key.
fn mixture(a: &Key, b: &Key) -> Key {
    std::array::from_fn(|d| if d % 2 == 0 { b[d] } else { a[d] })
}
