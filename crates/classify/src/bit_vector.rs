//! Bit vectors: for rules that overlap so much that no tree tells them apart.
//!
//! Each dimension is cut into segments; a segment has a bit for every cube that reaches into it.
//! A key takes one segment of each dimension, and only cubes whose bit is set in all of them are
//! compared, in order (Lakshman and Stiliadis, with segments merged so that memory is bounded).

use crate::Classifier;
use crate::linear::Packed;
use crate::rule_set::{Key, MAX_DIMENSIONS, RuleSet};

/// Bytes that the bits of all dimensions may take together.
const MEMORY: usize = 16 << 20;

/// What finding a dimension's segment costs, as [`Classifier::cost`] counts, with its row in a
/// near cache and in a far one.
const SEARCH_COST: [usize; 2] = [120, 200];
/// Bits that a near cache holds, in 64-bit words.
const NEAR: usize = 1 << 17;
/// What a word of all rows costs.
const WORD_COST: usize = 10;
/// What a cube costs whose bits are all set.
const CUBE_COST: usize = 60;

#[derive(Clone, Debug)]
struct Dimension {
    dimension: usize,
    /// Where segments after the first start.
    starts: Vec<u32>,
    /// A row of bits for each segment.
    bits: Vec<u64>,
}

/// The structure for rules that overlap a great deal.
#[derive(Clone, Debug)]
pub struct BitVector {
    /// Words of a row.
    words: usize,
    dimensions: Vec<Dimension>,
    cubes: Vec<Packed>,
    rules: Vec<u32>,
}

impl BitVector {
    /// Takes the rules' cubes.
    pub fn new(rules: &RuleSet) -> Self {
        let cubes = rules.cubes();
        let words = cubes.len().div_ceil(64);
        let tells =
            |d: &usize| cubes.iter().any(|c| c.low[*d] > 0 || c.high[*d] < rules.greatest()[*d]);
        let used: Vec<usize> = (0..MAX_DIMENSIONS).filter(tells).collect();
        let most = (MEMORY / (8 * words.max(1) * used.len().max(1))).max(1);
        let dimension = |&d: &usize| {
            let greatest = rules.greatest()[d];
            let ends = |c: &crate::Cube| [Some(c.low[d]), c.high[d].checked_add(1)];
            let mut starts: Vec<u32> = cubes
                .iter()
                .flat_map(ends)
                .flatten()
                .filter(|&start| start > 0 && start <= greatest)
                .collect();
            starts.sort_unstable();
            starts.dedup();
            let step = starts.len().div_ceil(most).max(1);
            let starts: Vec<u32> = starts.into_iter().step_by(step).collect();
            let segment = |number: u32| starts.partition_point(|&s| s <= number);
            let mut events = vec![(Vec::new(), Vec::new()); starts.len() + 1];
            for (i, cube) in cubes.iter().enumerate() {
                events[segment(cube.low[d])].0.push(i);
                events[segment(cube.high[d])].1.push(i);
            }
            let mut inside = vec![0u64; words];
            let mut bits = Vec::with_capacity(words * events.len());
            for (begin, end) in events {
                begin.into_iter().for_each(|i| inside[i / 64] |= 1 << (i % 64));
                bits.extend_from_slice(&inside);
                end.into_iter().for_each(|i| inside[i / 64] &= !(1 << (i % 64)));
            }
            Dimension { dimension: d, starts, bits }
        };
        Self {
            words,
            dimensions: used.iter().map(dimension).filter(|d| !d.starts.is_empty()).collect(),
            cubes: cubes.iter().map(Packed::new).collect(),
            rules: cubes.iter().map(|c| c.rule).collect(),
        }
    }

    /// The first cube that holds the key, and what finding it cost.
    #[inline]
    fn find(&self, key: &Key) -> (Option<usize>, usize) {
        let mut rows: [&[u64]; MAX_DIMENSIONS] = [&[]; MAX_DIMENSIONS];
        for (row, dimension) in rows.iter_mut().zip(&self.dimensions) {
            let number = key[dimension.dimension];
            let segment = dimension.starts.partition_point(|&s| s <= number);
            *row = &dimension.bits[segment * self.words..][..self.words];
        }
        let rows = &rows[..self.dimensions.len()];
        let stored = self.words * self.dimensions.iter().map(|d| d.starts.len() + 1).sum::<usize>();
        let mut cost = SEARCH_COST[usize::from(stored > NEAR)] * rows.len();
        for word in 0..self.words {
            let mut bits = rows.iter().fold(u64::MAX, |all, row| all & row[word]);
            cost += WORD_COST;
            while bits != 0 {
                let i = word * 64 + bits.trailing_zeros() as usize;
                // Without dimensions, bits beyond the last cube are set too.
                if i < self.cubes.len() && self.cubes[i].contains(key) {
                    return (Some(i), cost);
                }
                bits &= bits - 1;
                cost += CUBE_COST;
            }
        }
        (None, cost)
    }
}

impl Classifier for BitVector {
    fn lookup(&self, key: &Key) -> Option<u32> {
        self.find(key).0.map(|i| self.rules[i])
    }

    fn describe(&self) -> String {
        format!("bit vectors of {} cubes", self.cubes.len())
    }

    fn memory(&self) -> usize {
        let rows: usize = self.dimensions.iter().map(|d| size_of_val(&d.bits[..])).sum();
        rows + size_of_val(&self.cubes[..]) + size_of_val(&self.rules[..])
    }

    fn cost(&self, key: &Key) -> usize {
        self.find(key).1
    }
}
