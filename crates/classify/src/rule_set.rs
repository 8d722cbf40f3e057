//! Rules to classify by: cubes in a space of a few dimensions.

/// The most dimensions that keys can have.
pub const MAX_DIMENSIONS: usize = 8;

/// The greatest number that a rule can have.
pub const MAX_RULE: u32 = (1 << 31) - 2;

/// What is looked up: a number for each dimension, none above that dimension's greatest, and 0 in
/// those beyond the last.
pub type Key = [u32; MAX_DIMENSIONS];

/// The keys whose every number lies in a range, and the rule that they match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cube {
    /// Least number in each dimension.
    pub low: Key,
    /// Greatest number in each dimension.
    pub high: Key,
    /// The rule that the keys match. The least rule wins.
    pub rule: u32,
}

impl Cube {
    /// Whether it holds the key.
    #[inline]
    pub fn contains(&self, key: &Key) -> bool {
        (0..MAX_DIMENSIONS).all(|d| self.low[d] <= key[d] && key[d] <= self.high[d])
    }

    /// Whether it holds every key that `other` holds.
    pub(crate) fn covers(&self, other: &Cube) -> bool {
        (0..MAX_DIMENSIONS).all(|d| self.low[d] <= other.low[d] && other.high[d] <= self.high[d])
    }

    /// Whether it holds a key that `other` holds.
    pub(crate) fn meets(&self, other: &Cube) -> bool {
        (0..MAX_DIMENSIONS).all(|d| self.low[d] <= other.high[d] && other.low[d] <= self.high[d])
    }

    /// Adds disjoint cubes that hold the keys that `other`, which it meets, does not hold.
    pub(crate) fn add_rest(mut self, other: &Cube, rest: &mut Vec<Cube>) {
        for d in 0..MAX_DIMENSIONS {
            if self.low[d] < other.low[d] {
                let mut below = self;
                below.high[d] = other.low[d] - 1;
                rest.push(below);
                self.low[d] = other.low[d];
            }
            if other.high[d] < self.high[d] {
                let mut above = self;
                above.low[d] = other.high[d] + 1;
                rest.push(above);
                self.high[d] = other.high[d];
            }
        }
    }
}

/// A rule's sets of intervals make too many cubes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyCubes;

/// An ordered set of rules. A rule is a conjunction: for each dimension, a union of intervals.
#[derive(Clone, Debug)]
pub struct RuleSet {
    /// The greatest number of each dimension; 0 beyond the last.
    greatest: Key,
    cubes: Vec<Cube>,
    limit: usize,
}

impl RuleSet {
    /// No rules over dimensions with these greatest numbers, at most [`MAX_DIMENSIONS`]. The set
    /// will not hold more than `limit` cubes.
    ///
    /// # Panics
    /// If there are too many dimensions.
    pub fn new(greatest: &[u32], limit: usize) -> Self {
        let mut all = [0; MAX_DIMENSIONS];
        all[..greatest.len()].copy_from_slice(greatest);
        Self { greatest: all, cubes: Vec::new(), limit }
    }

    /// The cube that holds every key.
    pub fn everything(&self, rule: u32) -> Cube {
        Cube { low: [0; MAX_DIMENSIONS], high: self.greatest, rule }
    }

    /// Adds a cube. Those of lesser rules must have been added before.
    ///
    /// # Errors
    /// [`TooManyCubes`] if there is no room for it, or its rule is above [`MAX_RULE`].
    pub fn push(&mut self, cube: Cube) -> Result<(), TooManyCubes> {
        if self.cubes.len() >= self.limit || cube.rule > MAX_RULE {
            return Err(TooManyCubes);
        }
        debug_assert!(self.cubes.last().is_none_or(|c| c.rule <= cube.rule), "rules out of order");
        if (0..MAX_DIMENSIONS).all(|d| cube.low[d] <= cube.high[d]) {
            self.cubes.push(cube);
        }
        Ok(())
    }

    /// Adds a rule that matches where, for every `(dimension, intervals)`, the key's number lies
    /// in one of the closed intervals. Dimensions that are not mentioned do not matter.
    ///
    /// # Errors
    /// [`TooManyCubes`] if there is no room for the cubes that this makes.
    pub fn push_rule(
        &mut self,
        rule: u32,
        sets: &[(usize, &[(u32, u32)])],
    ) -> Result<(), TooManyCubes> {
        let count = sets.iter().try_fold(1usize, |n, (_, set)| n.checked_mul(set.len()));
        if count.is_none_or(|n| n > self.limit - self.cubes.len()) {
            return Err(TooManyCubes);
        }
        let mut cubes = vec![self.everything(rule)];
        for &(dimension, intervals) in sets {
            let narrowed = cubes.iter().flat_map(|cube| {
                intervals.iter().map(move |&(low, high)| {
                    let mut cube = *cube;
                    cube.low[dimension] = cube.low[dimension].max(low);
                    cube.high[dimension] = cube.high[dimension].min(high);
                    cube
                })
            });
            cubes = narrowed.collect();
        }
        cubes.into_iter().try_for_each(|cube| self.push(cube))
    }

    /// The cubes in order of their rules.
    pub fn cubes(&self) -> &[Cube] {
        &self.cubes
    }

    /// The greatest number of each dimension.
    pub fn greatest(&self) -> &Key {
        &self.greatest
    }
}
