//! Bit vectors: for a thousand rules or two, and for more that overlap so much that no tree distinguishes them.
//!
//! Each dimension is cut into segments; a segment has a row of bits, one for every cube that reaches into it. A key takes
//! one segment of each dimension, and the first cube whose bits are all set is its own (Lakshman and Stiliadis). Where
//! segments of several dimensions make few combinations, each combination has a row in their place. A segment is found in
//! a table, or down a tree that compares sixteen bounds at once; rows are met a thousand cubes at once. Where rows would
//! take too much memory, neighbouring segments share one, and cubes are compared with the key, too.

use std::collections::HashMap;

use crate::Classifier;
use crate::block::NO_RULE;
use crate::linear::Packed;
use crate::rule_set::{Cube, Key, MAX_DIMENSIONS, RuleSet};
use crate::simd::{Bits, CacheLine, Isa, Level, Portable, Task, run};

/// Bytes that the rows of one dimension may take, and those of combinations.
const MEMORY: usize = 4 << 20;
const COMBINED_MEMORY: usize = 256 << 10;
/// Combinations of segments, at most, and at most so many for each cube.
const COMBINATIONS: usize = 1 << 16;
const COMBINATIONS_PER_CUBE: usize = 64;
/// The greatest number of dimensions that have tables, and numbers in one of their pages.
const TABULATED: u32 = 1 << 16;
const PAGE: usize = 64;
/// Pages of a table: a power of two, so that no place is outside.
const PAGES: usize = (TABULATED as usize / PAGE + 1).next_power_of_two();
/// Children of a node.
const FANOUT: usize = 16;
/// Cubes that a chunk of a row tells of.
const CHUNK: usize = Bits::COUNT;
/// Keys that a batch takes side by side.
const LANES: usize = 32;

/// What a lookup costs besides, as [`Classifier::cost`] counts.
const FIXED_COST: usize = 35;
/// What a look into a table costs, or a step down a tree.
const STEP_COST: usize = 8;
/// What a chunk of a row costs, of rows that take no more bytes than these.
const CHUNK_COST: [(usize, usize); 6] = [
    (48 << 10, 8),
    (192 << 10, 15),
    (448 << 10, 21),
    (768 << 10, 33),
    (2 << 20, 45),
    (usize::MAX, 62),
];
/// What a cube costs that is compared.
const CUBE_COST: usize = 30;

/// Finds the segments of a dimension of few numbers.
#[derive(Clone, Debug)]
struct Table {
    dimension: usize,
    /// The page of so many numbers in a row, for each. Pages that say the same, side by side, are one.
    pages: Box<[u16; PAGES]>,
    /// What each number's segment counts: less than there are combinations, or chunks of rows.
    counts: Vec<[u16; PAGE]>,
}

impl Table {
    fn new(dimension: usize, greatest: u32, starts: &[u32], stride: u32) -> Self {
        let (mut pages, mut counts) = (Box::new([0; PAGES]), Vec::new());
        let mut segment = 0;
        for (first, place) in (0..=greatest).step_by(PAGE).zip(pages.iter_mut()) {
            let page: [u16; PAGE] = std::array::from_fn(|i| {
                let number = first + i as u32;
                segment += usize::from(starts.get(segment).is_some_and(|&start| start <= number));
                (segment as u32 * stride) as u16
            });
            if counts.last() != Some(&page) {
                counts.push(page);
            }
            *place = (counts.len() - 1) as u16;
        }
        Self { dimension, pages, counts }
    }

    #[inline(always)]
    fn add(&self, keys: &[Key], at: &mut [u32; LANES]) {
        let (dimension, pages, counts) =
            (self.dimension % MAX_DIMENSIONS, &*self.pages, &self.counts[..]);
        for (key, at) in keys.iter().zip(at) {
            let number = key[dimension] as usize;
            let page = pages[number / PAGE % PAGES];
            *at += u32::from(counts[usize::from(page)][number % PAGE]);
        }
    }
}

/// Finds the segments of any dimension. All leaves are equally deep.
#[derive(Clone, Debug)]
struct Tree {
    dimension: usize,
    /// The first node of each level, the root's first.
    levels: Vec<usize>,
    /// For each child of a node but the first, the greatest number below it.
    nodes: Vec<CacheLine>,
    /// How much more a segment counts than the one before.
    stride: u32,
}

impl Tree {
    fn new(dimension: usize, starts: &[u32], stride: u32) -> Self {
        let (mut levels, mut nodes) = (Vec::new(), Vec::new());
        let mut child = 1;
        while child * FANOUT <= starts.len() {
            child *= FANOUT;
        }
        while child > 0 {
            levels.push(nodes.len());
            nodes.extend((0..=starts.len()).step_by(child * FANOUT).map(|first| {
                // No number is above the greatest.
                let mut node = CacheLine([u32::MAX; FANOUT]);
                let firsts = starts[first..].iter().skip(child - 1).step_by(child);
                node.0[..FANOUT - 1].iter_mut().zip(firsts).for_each(|(to, start)| *to = start - 1);
                node
            }));
            child /= FANOUT;
        }
        Self { dimension, levels, nodes, stride }
    }

    #[inline(always)]
    fn add(&self, isa: impl Isa, keys: &[Key], at: &mut [u32; LANES]) {
        match self.levels.len() {
            1 => self.add_down::<1>(isa, keys, at),
            2 => self.add_down::<2>(isa, keys, at),
            3 => self.add_down::<3>(isa, keys, at),
            _ => self.add_down::<4>(isa, keys, at),
        }
    }

    #[inline(always)]
    fn add_down<const LEVELS: usize>(&self, isa: impl Isa, keys: &[Key], at: &mut [u32; LANES]) {
        let levels: [&[CacheLine]; LEVELS] = std::array::from_fn(|i| &self.nodes[self.levels[i]..]);
        let (dimension, stride) = (self.dimension % MAX_DIMENSIONS, self.stride);
        for (key, at) in keys.iter().zip(at) {
            let number = key[dimension];
            let mut node = 0;
            for level in levels {
                node = FANOUT as u32 * node + isa.above(&level[node as usize], number);
            }
            *at += stride * node;
        }
    }
}

/// Adds what the segments of keys in a dimension count.
#[derive(Clone, Debug)]
enum Search {
    Table(Table),
    Tree(Tree),
}

impl Search {
    /// Of a dimension up to a number, of segments that start at these after the first, each of which counts so much more.
    fn new(dimension: usize, greatest: u32, starts: &[u32], stride: u32) -> Self {
        if greatest <= TABULATED {
            Self::Table(Table::new(dimension, greatest, starts, stride))
        } else {
            Self::Tree(Tree::new(dimension, starts, stride))
        }
    }

    fn steps(&self) -> usize {
        match self {
            Self::Table(_) => 1,
            Self::Tree(tree) => tree.levels.len(),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::Table(Table { pages, counts, .. }) => {
                size_of_val(&**pages) + size_of_val(&counts[..])
            }
            Self::Tree(tree) => size_of_val(&tree.nodes[..]),
        }
    }
}

/// Rows, and how to find a key's.
#[derive(Clone, Debug)]
struct Group {
    /// One for each dimension.
    searches: Vec<Search>,
    /// The first chunk of each combination's row. A single dimension counts in chunks itself.
    combinations: Vec<u16>,
    rows: Vec<Bits>,
}

impl Group {
    /// Where the keys' rows begin.
    #[inline(always)]
    fn find(&self, isa: impl Isa, keys: &[Key], at: &mut [u32; LANES]) {
        // No closure in place of a loop: as a function it would not be compiled for these instructions.
        for search in &self.searches {
            match search {
                Search::Table(table) => table.add(keys, at),
                Search::Tree(tree) => tree.add(isa, keys, at),
            }
        }
        if !self.combinations.is_empty() {
            for at in &mut at[..keys.len()] {
                *at = self.combinations[*at as usize].into();
            }
        }
    }
}

/// Segments of one dimension, or combinations of those of several.
struct Segments {
    /// Dimensions, and where their segments after the first start.
    dimensions: Vec<(usize, Vec<u32>)>,
    /// The row of each combination.
    combinations: Vec<u16>,
    rows: Vec<Bits>,
    /// Whether segments share rows.
    is_coarse: bool,
}

impl Segments {
    /// Of one dimension, with rows of so many chunks.
    fn new(rules: &RuleSet, dimension: usize, chunks: usize) -> Self {
        let (cubes, greatest) = (rules.cubes(), rules.greatest()[dimension]);
        let range = |cube: &Cube| (cube.low[dimension], cube.high[dimension]);
        let ends = |cube| [Some(range(cube).0), range(cube).1.checked_add(1)];
        let mut starts: Vec<u32> = cubes.iter().flat_map(ends).flatten().collect();
        starts.retain(|&start| start > 0 && start <= greatest);
        starts.sort_unstable();
        starts.dedup();
        let most = (MEMORY / (size_of::<Bits>() * chunks)).saturating_sub(1).max(1);
        let step = starts.len().div_ceil(most).max(1);
        let starts: Vec<u32> = starts.into_iter().step_by(step).collect();
        let segment = |number: u32| starts.partition_point(|&start| start <= number);
        let mut events = vec![(Vec::new(), Vec::new()); starts.len() + 1];
        for (i, cube) in cubes.iter().enumerate() {
            let (low, high) = range(cube);
            events[segment(low)].0.push(i);
            events[segment(high)].1.push(i);
        }
        let mut inside = vec![Bits::default(); chunks];
        let mut rows = Vec::with_capacity(chunks * events.len());
        for (begin, end) in events {
            begin.into_iter().for_each(|i| inside[i / CHUNK].flip(i % CHUNK));
            rows.extend_from_slice(&inside);
            end.into_iter().for_each(|i| inside[i / CHUNK].flip(i % CHUNK));
        }
        let combinations = (0..=starts.len() as u16).collect();
        Self { dimensions: vec![(dimension, starts)], combinations, rows, is_coarse: step > 1 }
    }

    /// Combined with another dimension's, unless these are too many.
    fn with(&self, other: &Self, chunks: usize, most: usize) -> Option<Self> {
        let count = self.combinations.len() * other.combinations.len();
        if count > most {
            return None;
        }
        let mut combinations = Vec::with_capacity(count);
        let mut rows = Vec::new();
        let mut numbers = HashMap::new();
        for theirs in other.rows.chunks(chunks) {
            let met: Vec<u16> = self
                .rows
                .chunks(chunks)
                .map(|ours| {
                    let row: Vec<Bits> = ours.iter().zip(theirs).map(|(a, b)| a.and(b)).collect();
                    let next = numbers.len() as u16;
                    *numbers.entry(row).or_insert_with_key(|row| {
                        rows.extend_from_slice(row);
                        next
                    })
                })
                .collect();
            if size_of_val(&rows[..]) > COMBINED_MEMORY {
                return None;
            }
            combinations.extend(self.combinations.iter().map(|&ours| met[usize::from(ours)]));
        }
        let dimensions = self.dimensions.iter().chain(&other.dimensions).cloned().collect();
        Some(Self { dimensions, combinations, rows, is_coarse: self.is_coarse || other.is_coarse })
    }

    fn group(self, rules: &RuleSet, chunks: usize) -> Group {
        let is_combined = self.dimensions.len() > 1;
        let mut stride = if is_combined { 1 } else { chunks };
        let search = |(dimension, starts): (usize, Vec<u32>)| {
            let greatest = rules.greatest()[dimension];
            let search = Search::new(dimension, greatest, &starts, stride as u32);
            stride *= starts.len() + 1;
            search
        };
        let searches = self.dimensions.into_iter().map(search).collect();
        let first = |row| row * chunks as u16;
        let combinations = self.combinations.into_iter().filter(|_| is_combined).map(first);
        Group { searches, combinations: combinations.collect(), rows: self.rows }
    }
}

/// The structure for a thousand rules or two, and for more that overlap a great deal.
#[derive(Clone, Debug)]
pub struct BitVector {
    level: Level,
    groups: Vec<Group>,
    /// Chunks of a row.
    chunks: usize,
    /// How many cubes there are.
    count: usize,
    /// The rule of each cube, and of every bit of a row.
    rules: Vec<u32>,
    /// The cubes, if segments share rows.
    cubes: Vec<Packed>,
}

impl BitVector {
    /// Takes the rules' cubes.
    pub fn new(rules: &RuleSet) -> Self {
        Self::at(Level::widest(), rules)
    }

    pub(crate) fn at(level: Level, rules: &RuleSet) -> Self {
        let cubes = rules.cubes();
        let chunks = cubes.len().div_ceil(CHUNK).max(1);
        let most = COMBINATIONS.min(COMBINATIONS_PER_CUBE * cubes.len());
        let tells =
            |d: &usize| cubes.iter().any(|c| c.low[*d] > 0 || c.high[*d] < rules.greatest()[*d]);
        // One dimension at least.
        let dimensions = (0..MAX_DIMENSIONS).filter(|d| *d == 0 || tells(d));
        let mut dimensions: Vec<Segments> =
            dimensions.map(|d| Segments::new(rules, d, chunks)).collect();
        dimensions.sort_by_key(|segments| segments.combinations.len());
        let mut groups: Vec<Segments> = Vec::new();
        for segments in dimensions {
            match groups
                .last_mut()
                .and_then(|last| Some((last.with(&segments, chunks, most)?, last)))
            {
                Some((combined, last)) => *last = combined,
                None => groups.push(segments),
            }
        }
        let is_coarse = groups.iter().any(|segments| segments.is_coarse);
        Self {
            level,
            groups: groups.into_iter().map(|segments| segments.group(rules, chunks)).collect(),
            chunks,
            count: cubes.len(),
            rules: cubes
                .iter()
                .map(|c| c.rule)
                .chain([NO_RULE; CHUNK])
                .take(chunks * CHUNK)
                .collect(),
            cubes: cubes.iter().filter(|_| is_coarse).map(Packed::new).collect(),
        }
    }

    /// The rules of keys whose rows, at these places, are one chunk each and say all. No branch depends on which bit is
    /// first.
    #[inline(always)]
    fn meet<const W: usize>(
        &self,
        isa: impl Isa,
        rows: &[&[Bits]; W],
        at: &[[u32; LANES]; W],
        found: &mut [Option<u32>],
    ) {
        let rules: &[u32; CHUNK] = self.rules.first_chunk().expect("a rule for each bit");
        for (lane, found) in found.iter_mut().enumerate() {
            let bits: [&Bits; W] =
                std::array::from_fn(|group| &rows[group][at[group][lane % LANES] as usize]);
            let words = isa.common(bits.into_iter());
            // Where no bit is common, it does not matter what is looked at.
            let word = words.trailing_zeros() as usize % Bits::WORDS;
            let common = bits.iter().fold(u64::MAX, |all, bits| all & bits.0[word]);
            let cube = word * (CHUNK / Bits::WORDS) + common.trailing_zeros() as usize;
            *found = (words != 0).then_some(rules[cube % CHUNK]);
        }
    }

    /// The first cube that holds the key, whose rows begin at these chunks.
    #[inline(always)]
    fn first<const W: usize>(
        &self,
        isa: impl Isa,
        rows: &[&[Bits]; W],
        at: [usize; W],
        key: &Key,
    ) -> Option<usize> {
        for chunk in 0..self.chunks {
            let bits: [&Bits; W] = std::array::from_fn(|group| &rows[group][at[group] + chunk]);
            let mut words = isa.common(bits.into_iter());
            while words != 0 {
                let word = words.trailing_zeros() as usize % Bits::WORDS;
                let mut common = bits.iter().fold(u64::MAX, |all, bits| all & bits.0[word]);
                while common != 0 {
                    let bit = common.trailing_zeros() as usize;
                    let cube = chunk * CHUNK + word * (CHUNK / Bits::WORDS) + bit;
                    if self.cubes.is_empty() || self.cubes[cube].contains(key) {
                        return Some(cube);
                    }
                    common &= common - 1;
                }
                words &= words - 1;
            }
        }
        None
    }

    /// How many chunks of rows and how many cubes are looked at for a key.
    fn looks(&self, key: &Key) -> [usize; 2] {
        let mut at = [[0; LANES]; MAX_DIMENSIONS];
        let groups = self.groups.iter().zip(&mut at);
        groups.for_each(|(group, at)| group.find(Portable, std::slice::from_ref(key), at));
        let mut cubes = 0;
        for chunk in 0..self.chunks {
            let groups = self.groups.iter().zip(&at);
            let rows = groups.map(|(group, at)| &group.rows[at[0] as usize + chunk]);
            let common = rows.copied().reduce(|a, b| a.and(&b)).unwrap_or_default();
            let holds = |&bit: &usize| {
                self.cubes.get(chunk * CHUNK + bit).is_none_or(|cube| cube.contains(key))
            };
            let mut set = (0..CHUNK).filter(|&bit| common.has(bit)).inspect(|_| cubes += 1);
            if set.find(holds).is_some() {
                return [chunk + 1, cubes];
            }
        }
        [self.chunks, cubes]
    }
}

struct Meet<'a> {
    vectors: &'a BitVector,
    keys: &'a [Key],
    found: &'a mut [Option<u32>],
}

impl Task for Meet<'_> {
    /// With `W` groups.
    #[inline(always)]
    fn run<const W: usize>(self, isa: impl Isa) {
        let Self { vectors, keys, found } = self;
        let groups: &[Group; W] = vectors.groups.first_chunk().expect("so many groups");
        let rows = groups.each_ref().map(|group| &group.rows[..]);
        for (keys, found) in keys.chunks(LANES).zip(found.chunks_mut(LANES)) {
            let mut at = [[0; LANES]; W];
            for (group, at) in groups.iter().zip(&mut at) {
                group.find(isa, keys, at);
            }
            if vectors.chunks == 1 && vectors.cubes.is_empty() {
                vectors.meet(isa, &rows, &at, found);
                continue;
            }
            for (lane, (key, found)) in keys.iter().zip(found).enumerate() {
                let at = std::array::from_fn(|group| at[group][lane % LANES] as usize);
                *found = vectors.first(isa, &rows, at, key).map(|cube| vectors.rules[cube]);
            }
        }
    }
}

impl Classifier for BitVector {
    fn lookup(&self, key: &Key) -> Option<u32> {
        let mut found = [None];
        self.lookup_batch(std::slice::from_ref(key), &mut found);
        found[0]
    }

    fn lookup_batch(&self, keys: &[Key], found: &mut [Option<u32>]) {
        let found = &mut found[..keys.len()];
        run(self.level, self.groups.len(), Meet { vectors: self, keys, found });
    }

    fn describe(&self) -> String {
        format!("bit vectors of {} cubes", self.count)
    }

    fn memory(&self) -> usize {
        let of = |group: &Group| {
            let searches: usize = group.searches.iter().map(Search::memory).sum();
            searches + size_of_val(&group.combinations[..]) + size_of_val(&group.rows[..])
        };
        let groups: usize = self.groups.iter().map(of).sum();
        groups + size_of_val(&self.cubes[..]) + size_of_val(&self.rules[..])
    }

    fn cost(&self, key: &Key) -> usize {
        let bytes = self.groups.iter().map(|group| size_of_val(&group.rows[..])).sum::<usize>();
        let chunk = CHUNK_COST.iter().find(|(most, _)| bytes <= *most).map_or(0, |cost| cost.1);
        let steps: usize =
            self.groups.iter().flat_map(|group| &group.searches).map(Search::steps).sum();
        let [chunks, cubes] = self.looks(key);
        let compared = if self.cubes.is_empty() { 0 } else { cubes };
        FIXED_COST + STEP_COST * steps + chunk * chunks * self.groups.len() + CUBE_COST * compared
    }
}
