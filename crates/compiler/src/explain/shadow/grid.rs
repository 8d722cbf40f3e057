//! Conditions as boxes over small numbers.
//!
//! Every run of bits that the rules tell apart is a dimension. Its numbers are cut at the ends of
//! all intervals that the rules ask for; what lies between two cuts is treated alike by all of
//! them and becomes one number, its rank. So a box is a pair of 32-bit ranks a dimension, however
//! wide the fields are, and nothing is lost.

use std::collections::{BTreeSet, HashMap};

use ir::{Cond, Cube, Field, HeaderSpace, IntervalSet, TooLarge};

/// A condition that makes more cubes or boxes than this is left out.
const MAX_OF_RULE: usize = 2048;
/// Cubes that turning a condition into a header space may go through.
const MAX_CUBES: usize = 256;
/// All boxes together may have so many sides.
const MAX_SIDES: usize = 1 << 20;

/// Least and greatest rank in a dimension.
pub(super) type Side = (u32, u32);

/// What is to be known of a rule's condition.
pub(super) enum Shape {
    /// Boxes from the first to before the second; none if no packet meets the condition.
    Boxes(u32, u32),
    /// It looks at more than fields.
    Unknown,
    /// It would make too many boxes.
    TooLarge,
}

/// The conditions of a list of rules as boxes.
pub(super) struct Grid {
    /// Number of dimensions.
    pub(super) dimensions: usize,
    /// One a rule.
    pub(super) shapes: Vec<Shape>,
    /// The box of everything.
    pub(super) full: Vec<Side>,
    /// The rule of each box.
    pub(super) rules: Vec<u32>,
    /// The boxes one after the other.
    sides: Vec<Side>,
    /// For each dimension and rank, the weight of all ranks below; one more for all.
    weights: Vec<Vec<u64>>,
}

/// A run of bits and where its numbers are cut: the first number of each rank.
struct Axis {
    field: Field,
    starts: Vec<u128>,
}

impl Grid {
    pub(super) fn new<'a>(conditions: impl Iterator<Item = &'a Cond>) -> Self {
        let mut spaces: Vec<Space> =
            conditions.map(|c| HeaderSpace::from_cond(c, MAX_CUBES)).collect();
        align(&mut spaces);
        let axes = axes(&spaces);
        let numbers: HashMap<Field, usize> =
            axes.iter().enumerate().map(|(i, axis)| (axis.field, i)).collect();
        let mut grid = Self {
            dimensions: axes.len(),
            shapes: Vec::with_capacity(spaces.len()),
            full: axes.iter().map(|a| (0, a.starts.len() as u32 - 1)).collect(),
            rules: Vec::with_capacity(spaces.len()),
            sides: Vec::with_capacity(spaces.len() * axes.len()),
            weights: axes.iter().map(Axis::weights).collect(),
        };
        for (rule, space) in (0..).zip(&spaces) {
            let first = grid.rules.len();
            let shape = match space {
                Ok(None) => Shape::Unknown,
                Err(TooLarge { .. }) => Shape::TooLarge,
                Ok(Some(space)) => {
                    let fits = space.cubes().iter().all(|cube| {
                        let sides = cube.fields().iter().map(|(field, set)| {
                            let dimension = numbers[field];
                            (dimension, axes[dimension].sides(set))
                        });
                        grid.push(rule, first, &sides.collect::<Vec<_>>())
                    });
                    if fits {
                        Shape::Boxes(first as u32, grid.rules.len() as u32)
                    } else {
                        grid.rules.truncate(first);
                        grid.sides.truncate(first * grid.dimensions);
                        Shape::TooLarge
                    }
                }
            };
            grid.shapes.push(shape);
        }
        grid
    }

    /// Adds the boxes of a cube; not all if there is no room.
    fn push(&mut self, rule: u32, first: usize, cube: &[(usize, Vec<Side>)]) -> bool {
        let product = cube.iter().try_fold(1usize, |n, (_, sides)| n.checked_mul(sides.len()));
        let boxes = product.and_then(|n| n.checked_add(self.rules.len())).unwrap_or(usize::MAX);
        if boxes - first > MAX_OF_RULE || boxes.saturating_mul(self.dimensions) > MAX_SIDES {
            return false;
        }
        // Counts through the intervals as through the digits of a number.
        let mut digits = vec![0; cube.len()];
        for _ in self.rules.len()..boxes {
            let at = self.sides.len();
            self.sides.extend_from_slice(&self.full);
            for ((dimension, sides), &digit) in cube.iter().zip(&digits) {
                self.sides[at + dimension] = sides[digit];
            }
            self.rules.push(rule);
            for ((_, sides), digit) in cube.iter().zip(&mut digits) {
                *digit = (*digit + 1) % sides.len();
                if *digit != 0 {
                    break;
                }
            }
        }
        true
    }

    /// The sides of a box.
    #[inline]
    pub(super) fn sides(&self, number: u32) -> &[Side] {
        let at = number as usize * self.dimensions;
        &self.sides[at..at + self.dimensions]
    }

    /// The rank at a place in a side, where the places of 32 bits are spread evenly over it.
    pub(super) fn rank(&self, dimension: usize, (low, high): Side, place: u32) -> u32 {
        let weights = &self.weights[dimension];
        let (from, to) = (weights[low as usize], weights[high as usize + 1]);
        let at = from + ((u128::from(to - from) * u128::from(place)) >> 32) as u64;
        weights.partition_point(|&weight| weight <= at) as u32 - 1
    }

    /// How much of a dimension lies between two ranks.
    #[inline]
    pub(super) fn weight(&self, dimension: usize, (low, high): Side) -> f64 {
        let weights = &self.weights[dimension];
        (weights[high as usize + 1] - weights[low as usize]) as f64
    }
}

/// The packets that meet a condition; `None` if it is about more than fields.
type Space = Result<Option<HeaderSpace>, TooLarge>;

/// Splits fields that share bits until any two are the same or apart.
fn align(spaces: &mut [Space]) {
    let fields = fields(spaces);
    // In the order of bases and offsets, a field that overlaps any overlaps its successor.
    if fields.windows(2).any(|pair| pair[0].overlaps(pair[1])) {
        for space in spaces {
            if let Ok(Some(whole)) = space {
                *space = whole.split_at(&fields, MAX_CUBES).map(Some);
            }
        }
    }
}

fn cubes(spaces: &[Space]) -> impl Iterator<Item = &Cube> {
    spaces.iter().flatten().flatten().flat_map(HeaderSpace::cubes)
}

/// The fields that spaces name, ascending.
fn fields(spaces: &[Space]) -> Vec<Field> {
    let fields = cubes(spaces).flat_map(|c| c.fields().iter().map(|e| e.0));
    let fields: BTreeSet<Field> = fields.collect();
    fields.into_iter().collect()
}

/// The dimensions that spaces need.
fn axes(spaces: &[Space]) -> Vec<Axis> {
    let fields = fields(spaces);
    let mut axes: Vec<Axis> =
        fields.into_iter().map(|field| Axis { field, starts: vec![0] }).collect();
    for cube in cubes(spaces) {
        let mut axis = axes.iter_mut();
        for (field, set) in cube.fields() {
            // Both ascend, and every field has its axis.
            let Some(axis) = axis.find(|a| a.field == *field) else { break };
            let greatest = Field::max(*field);
            for &(low, high) in set.intervals() {
                axis.starts.push(low);
                axis.starts.extend((high < greatest).then(|| high + 1));
            }
        }
    }
    for axis in &mut axes {
        axis.starts.sort_unstable();
        axis.starts.dedup();
    }
    axes
}

impl Axis {
    /// The intervals of a set, in ranks.
    fn sides(&self, set: &IntervalSet) -> Vec<Side> {
        let rank = |number| self.starts.partition_point(|&start| start <= number) as u32 - 1;
        set.intervals().iter().map(|&(low, high)| (rank(low), rank(high))).collect()
    }

    /// Running sums of how many numbers have each rank. For fields of more than 32 bits they are
    /// scaled down, and then at least 1: every weight is exact and none is 0.
    fn weights(&self) -> Vec<u64> {
        let scale = self.field.width.saturating_sub(32);
        let ends = self.starts[1..].iter().map(|next| next - 1).chain([self.field.max()]);
        let each = self.starts.iter().zip(ends).map(|(start, end)| ((end - start) >> scale) + 1);
        let sums = each.scan(0, |sum, weight| {
            *sum += weight as u64;
            Some(*sum)
        });
        std::iter::once(0).chain(sums).collect()
    }
}
