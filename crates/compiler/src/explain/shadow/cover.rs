//! Which rules of a list can never match, and which others see to that.

use std::ops::Range;

use ir::Cond;

use super::grid::{Grid, Shape, Side};
use super::tree::{Tree, choose};

/// What is known of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Some packet, as far as the fields alone tell, gets to it.
    Alive,
    /// No packet meets its condition.
    Empty,
    /// Every packet that meets it meets one of these earlier ones, which are alive themselves.
    /// Ascending; none can be spared, unless it would take too much work to find out.
    Shadowed(Vec<u32>),
    /// It looks at more than fields.
    Unknown,
    /// To find out takes too much work.
    TooMuchWork,
}

/// Work that may still be done, counted in sides of boxes that are looked at.
pub(crate) struct Budget {
    left: u64,
    /// What one rule may take of it.
    of_rule: u64,
}

impl Default for Budget {
    /// A third of a second or so.
    fn default() -> Self {
        Self { left: 1 << 28, of_rule: 1 << 24 }
    }
}

impl Budget {
    #[cfg(test)]
    pub(crate) fn of(work: u64) -> Self {
        Self { left: work, of_rule: work }
    }

    fn take(&mut self, work: u64) -> Result<(), Exhausted> {
        let enough = work <= self.left;
        self.left = self.left.saturating_sub(work);
        if enough { Ok(()) } else { Err(Exhausted) }
    }

    /// Does something with no more of the budget than one rule may take.
    fn within<T>(&mut self, work: impl FnOnce(&mut Budget) -> T) -> T {
        let mut part = Budget { left: self.left.min(self.of_rule), ..*self };
        let before = part.left;
        let done = work(&mut part);
        self.left -= before - part.left;
        done
    }
}

/// There is nothing left of the budget.
struct Exhausted;

/// The fate of each rule of a list, in the order of precedence.
pub(crate) fn fates<'a>(
    conditions: impl Iterator<Item = &'a Cond>,
    budget: &mut Budget,
) -> Vec<Fate> {
    let grid = Grid::new(conditions);
    let mut search = Search::new(&grid);
    let fate = |shape: &Shape| {
        let own = match *shape {
            Shape::Unknown => return Fate::Unknown,
            Shape::TooLarge => return Fate::TooMuchWork,
            Shape::Boxes(start, end) => start..end,
        };
        let fate = budget.within(|budget| search.fate(own.clone(), budget));
        let fate = fate.unwrap_or(Fate::TooMuchWork);
        if !matches!(fate, Fate::Shadowed(_)) {
            own.for_each(|number| search.tree.insert(&grid, number));
        }
        fate
    };
    grid.shapes.iter().map(fate).collect()
}

/// Subtracts boxes from boxes.
struct Search<'a> {
    grid: &'a Grid,
    /// The boxes of earlier rules but for those that still earlier ones cover.
    tree: Tree,
    /// Boxes that may cover a piece: each piece that is being taken apart has a run of them.
    boxes: Vec<u32>,
    /// Pieces that are still to be covered: their sides, and the run of boxes to do it with.
    pieces: Vec<Side>,
    runs: Vec<(usize, usize)>,
    /// The piece at hand, and one over the weight of each of its sides.
    piece: Vec<Side>,
    scale: Vec<f64>,
    /// Where points are taken; any sequence would do.
    random: u64,
}

/// This many more points of a box are tried before it is taken apart.
const POINTS: usize = 3;

/// Boxes that fill less than this part of a piece cannot cover it, however sums are rounded.
const FULL: f64 = 1.0 - 1e-9;
/// A piece is first cut in two where no box fills this part of it.
const LARGE: f64 = 1.0 / 16.0;

impl<'a> Search<'a> {
    fn new(grid: &'a Grid) -> Self {
        Self {
            grid,
            tree: Tree::new(grid),
            boxes: Vec::new(),
            pieces: Vec::new(),
            runs: Vec::new(),
            piece: Vec::with_capacity(grid.dimensions),
            scale: Vec::with_capacity(grid.dimensions),
            random: 1,
        }
    }

    /// The fate of a rule with these boxes.
    fn fate(&mut self, own: Range<u32>, budget: &mut Budget) -> Result<Fate, Exhausted> {
        if own.is_empty() {
            return Ok(Fate::Empty);
        }
        let grid = self.grid;
        let mut used = Vec::new();
        // The rules that have a box around each box so far, and the boxes with none around.
        let mut alone: Option<Vec<u32>> = None;
        let mut open = Vec::new();
        for number in own.clone() {
            // Boxes around the box have every point of it.
            if !self.stab(number, budget)? {
                return Ok(Fate::Alive);
            }
            let sides = grid.sides(number);
            self.boxes.retain(|&other| contains(grid.sides(other), sides));
            let rules = self.boxes.iter().map(|&other| grid.rules[other as usize]);
            let mut around: Vec<u32> = rules.collect();
            around.sort_unstable();
            match around.first() {
                Some(first) => used.push(*first),
                None => open.push(number),
            }
            alone = Some(match alone {
                None => around,
                Some(mut before) => {
                    before.retain(|rule| around.binary_search(rule).is_ok());
                    before
                }
            });
        }
        if let Some(first) = alone.iter().flatten().next() {
            return Ok(Fate::Shadowed(vec![*first]));
        }
        for _ in 0..POINTS {
            for &number in &open {
                if !self.stab(number, budget)? {
                    return Ok(Fate::Alive);
                }
            }
        }
        for number in open {
            self.find(number, budget)?;
            if !self.is_covered(number, budget, &mut used)? {
                return Ok(Fate::Alive);
            }
        }
        used.sort_unstable();
        used.dedup();
        // Later rules take less of the packets: they are the first to be tried without.
        for i in (0..used.len()).rev() {
            let mut fewer = used.clone();
            fewer.remove(i);
            match self.are_enough(&fewer, own.clone(), budget) {
                Ok(true) => used = fewer,
                Ok(false) => {}
                Err(Exhausted) => break,
            }
        }
        Ok(Fate::Shadowed(used))
    }

    /// Whether these rules cover a rule with these boxes.
    fn are_enough(
        &mut self,
        rules: &[u32],
        own: Range<u32>,
        budget: &mut Budget,
    ) -> Result<bool, Exhausted> {
        for number in own {
            self.find(number, budget)?;
            let grid = self.grid;
            self.boxes.retain(|&other| rules.binary_search(&grid.rules[other as usize]).is_ok());
            if !self.is_covered(number, budget, &mut Vec::new())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Finds the boxes that share a point with a box.
    fn find(&mut self, number: u32, budget: &mut Budget) -> Result<(), Exhausted> {
        let (grid, boxes) = (self.grid, &mut self.boxes);
        boxes.clear();
        let looked = self.tree.find(grid, grid.sides(number), boxes);
        budget.take(looked * self.sides())
    }

    /// Finds the boxes that have some point of a box, and returns whether there are any.
    fn stab(&mut self, number: u32, budget: &mut Budget) -> Result<bool, Exhausted> {
        let (grid, boxes) = (self.grid, &mut self.boxes);
        self.piece.clear();
        for (dimension, &side) in grid.sides(number).iter().enumerate() {
            self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let rank = grid.rank(dimension, side, (self.random >> 32) as u32);
            self.piece.push((rank, rank));
        }
        boxes.clear();
        let looked = self.tree.find(grid, &self.piece, boxes);
        budget.take(looked * self.sides())?;
        Ok(!self.boxes.is_empty())
    }

    /// What looking at a box takes of the budget.
    fn sides(&self) -> u64 {
        self.grid.dimensions as u64 + 1
    }

    /// Whether the boxes that were found cover a box; adds the rules that it takes.
    fn is_covered(
        &mut self,
        number: u32,
        budget: &mut Budget,
        used: &mut Vec<u32>,
    ) -> Result<bool, Exhausted> {
        let grid = self.grid;
        self.pieces.clear();
        self.pieces.extend_from_slice(grid.sides(number));
        self.runs.clear();
        self.runs.push((0, self.boxes.len()));
        while let Some((start, end)) = self.runs.pop() {
            let at = self.pieces.len() - grid.dimensions;
            self.piece.clear();
            self.piece.extend(self.pieces.drain(at..));
            self.scale.clear();
            let weights = self.piece.iter().enumerate().map(|(d, &side)| grid.weight(d, side));
            self.scale.extend(weights.map(f64::recip));
            // Runs behind this one belong to pieces that are done with.
            self.boxes.truncate(end);
            budget.take((end - start + 1) as u64 * self.sides())?;
            let (mut filled, mut largest) = (0.0, (0.0, 0));
            for i in start..end {
                let number = self.boxes[i];
                let share = self.share(number);
                if share > largest.0 {
                    largest = (share, number);
                }
                if share > 0.0 {
                    filled += share;
                    self.boxes.push(number);
                }
            }
            if filled < FULL {
                return Ok(false);
            }
            let run = (end, self.boxes.len());
            if largest.0 < LARGE {
                budget.take((run.1 - run.0) as u64 * self.sides())?;
            }
            if largest.0 >= LARGE || !self.cut_through(run) {
                used.push(grid.rules[largest.1 as usize]);
                self.cut_out(grid.sides(largest.1), run);
            }
        }
        Ok(true)
    }

    /// The part of the piece that a box fills.
    #[inline]
    fn share(&self, number: u32) -> f64 {
        let mut share = 1.0;
        for (d, (&(a, b), &(low, high))) in
            self.grid.sides(number).iter().zip(&self.piece).enumerate()
        {
            let (from, to) = (a.max(low), b.min(high));
            if from > to {
                return 0.0;
            }
            if (from, to) != (low, high) {
                share *= self.grid.weight(d, (from, to)) * self.scale[d];
            }
        }
        share
    }

    /// Cuts the piece in two where its boxes fall apart best.
    fn cut_through(&mut self, run: (usize, usize)) -> bool {
        let cut = choose(self.grid, &self.boxes[run.0..run.1], &self.piece);
        let Some((dimension, cut)) = cut else { return false };
        let (low, high) = self.piece[dimension];
        for half in [(low, cut - 1), (cut, high)] {
            self.piece[dimension] = half;
            self.pieces.extend_from_slice(&self.piece);
            self.runs.push(run);
        }
        true
    }

    /// What is left of the piece without a box becomes pieces.
    fn cut_out(&mut self, sides: &[Side], run: (usize, usize)) {
        for (d, &(a, b)) in sides.iter().enumerate() {
            let (low, high) = self.piece[d];
            let (below, above) =
                ((low < a).then(|| (low, a - 1)), (b < high).then(|| (b + 1, high)));
            for rest in [below, above].into_iter().flatten() {
                self.piece[d] = rest;
                self.pieces.extend_from_slice(&self.piece);
                self.runs.push(run);
            }
            self.piece[d] = (low.max(a), high.min(b));
        }
    }
}

/// Whether a box holds another one.
fn contains(outer: &[Side], inner: &[Side]) -> bool {
    outer.iter().zip(inner).all(|(o, i)| o.0 <= i.0 && i.1 <= o.1)
}
