//! Patterns as cubes for a classifier: each place that a rule set looks at becomes a dimension.

use std::collections::BTreeMap;

use classify::{Cube, Key, MAX_DIMENSIONS, RuleSet, TooManyCubes};
use ir::IntervalSet;

use super::expr::{Origin, PacketBytes, Pattern, Test};
use super::program::Headers;

/// A rule may make so many cubes.
const CUBES_OF_RULE: usize = 1024;
/// The rules may make so many cubes on average, and so many more.
const CUBES_PER_RULE: usize = 16;
const MORE_CUBES: usize = 4096;

/// What a dimension's numbers are made from. Places that a packet may lack have a number for
/// that, above all others.
#[derive(Clone, Debug)]
struct Dimension {
    place: PacketBytes,
    /// The bits that count.
    mask: u32,
    /// For a single byte: the number of its class. Values that all tests treat alike are one
    /// class, and classes are numbered so that most tests are a range of them.
    classes: Option<Box<[u8; 256]>>,
    /// The greatest number: the one for absence, if the place can be absent.
    greatest: u32,
}

/// Makes keys from packets.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    dimensions: Vec<Dimension>,
}

type Conjunction = Vec<(usize, IntervalSet)>;

/// The rules as cubes, numbered as given. `None` if they look at too many places, at places that
/// cubes cannot express, or make too many cubes.
pub(crate) fn cubes(rules: &[(&Pattern, u32)]) -> Option<(Keys, RuleSet)> {
    let mut tests: BTreeMap<(PacketBytes, u32), Vec<&Test>> = BTreeMap::new();
    let mut convertible = true;
    for (pattern, _) in rules {
        pattern.for_each_test(&mut |test| {
            // A whole word leaves no number for its absence; bytes outside IP are few.
            let word = test.place.length == 4 && !test.place.is_fixed();
            convertible &= !word && test.place.origin >= Origin::Network;
            let mask = if test.place.length == 1 { 0xff } else { test.mask };
            let of_place = tests.entry((test.place, mask)).or_default();
            if of_place.len() <= MAX_TESTS && !of_place.contains(&test) {
                of_place.push(test);
            }
        });
    }
    if !convertible || tests.len() > MAX_DIMENSIONS {
        return None;
    }
    let dimensions = tests.iter().map(|(&(place, mask), tests)| dimension(place, mask, tests));
    let keys = Keys { dimensions: dimensions.collect() };
    let greatest: Vec<u32> = keys.dimensions.iter().map(|d| d.greatest).collect();
    let mut set = RuleSet::new(&greatest, CUBES_PER_RULE * rules.len() + MORE_CUBES);
    for &(pattern, rule) in rules {
        keys.push(pattern, rule, &mut set)?;
    }
    Some((keys, set))
}

/// More different tests of a byte than this are in no classes of their own.
const MAX_TESTS: usize = 64;

fn dimension(place: PacketBytes, mask: u32, tests: &[&Test]) -> Dimension {
    let absent = u32::from(!place.is_fixed());
    if place.length > 1 || tests.len() > MAX_TESTS {
        return Dimension { place, mask, classes: None, greatest: mask.max(place.max()) + absent };
    }
    let signature = |value: u32| -> u64 {
        let passes = |t: &&Test| t.set.contains(u128::from(value & t.mask));
        tests.iter().fold(0, |all, t| all << 1 | u64::from(passes(t)))
    };
    let mut order: Vec<u64> = (0..256).map(signature).collect();
    let signatures = order.clone();
    // In the order of a Gray code, neighbours differ in few tests.
    let gray = |mut signature: u64| {
        for shift in [1, 2, 4, 8, 16, 32] {
            signature ^= signature >> shift;
        }
        signature
    };
    order.sort_unstable_by_key(|&s| gray(s));
    order.dedup();
    let class = |s: u64| order.binary_search_by_key(&gray(s), |&o| gray(o)).unwrap_or(0) as u8;
    let mut classes = Box::new([0; 256]);
    classes.iter_mut().zip(signatures).for_each(|(c, s)| *c = class(s));
    let greatest = order.len() as u32 - 1 + absent;
    Dimension { place, mask, classes: Some(classes), greatest }
}

impl Dimension {
    /// Whether the values of a class are all alike to a test.
    fn tells(&self, test: &Test) -> bool {
        let Some(classes) = &self.classes else { return true };
        let mut passes = [None; 256];
        (0..256u32).zip(&**classes).all(|(value, &class)| {
            let pass = test.set.contains(u128::from(value & test.mask));
            *passes[usize::from(class)].get_or_insert(pass) == pass
        })
    }

    /// The dimension's numbers that a test lets pass.
    fn set(&self, test: &Test) -> IntervalSet {
        if self.place.length > 1 {
            return test.set.clone();
        }
        let passing = (0..256u32).filter(|v| test.set.contains(u128::from(v & test.mask)));
        let number = |v: u32| match &self.classes {
            Some(classes) => u128::from(classes[v as usize]),
            None => u128::from(v),
        };
        IntervalSet::from_intervals(passing.map(|v| (number(v), number(v))).collect())
    }
}

impl Keys {
    /// Adds a rule to a set.
    fn push(&self, pattern: &Pattern, rule: u32, set: &mut RuleSet) -> Option<()> {
        for conjunction in self.expand(pattern, true).ok()? {
            let narrow = |&(low, high): &(u128, u128)| (low as u32, high as u32);
            let side = |s: &IntervalSet| s.intervals().iter().map(narrow).collect();
            let sides: Vec<Vec<(u32, u32)>> = conjunction.iter().map(|(_, s)| side(s)).collect();
            let sets: Vec<(usize, &[(u32, u32)])> =
                conjunction.iter().zip(&sides).map(|((d, _), s)| (*d, &s[..])).collect();
            set.push_rule(rule, &sets).ok()?;
        }
        Some(())
    }

    /// The cubes of a pattern that the keys were not made for; `None` if they say too little.
    pub(crate) fn cubes(&self, pattern: &Pattern) -> Option<Vec<Cube>> {
        let mut told = true;
        pattern.for_each_test(&mut |test| {
            told &= self.dimension(test).is_some_and(|(_, dimension)| dimension.tells(test));
        });
        let greatest: Vec<u32> = self.dimensions.iter().map(|d| d.greatest).collect();
        let mut set = RuleSet::new(&greatest, CUBES_OF_RULE);
        told.then(|| self.push(pattern, 0, &mut set))??;
        Some(set.cubes().to_vec())
    }

    /// The dimension that a test is about.
    fn dimension(&self, test: &Test) -> Option<(usize, &Dimension)> {
        let mask = if test.place.length == 1 { 0xff } else { test.mask };
        let same = |(_, d): &(usize, &Dimension)| d.place == test.place && d.mask == mask;
        self.dimensions.iter().enumerate().find(same)
    }

    /// The pattern, or its negation, as a union of conjunctions.
    fn expand(&self, pattern: &Pattern, holds: bool) -> Result<Vec<Conjunction>, TooManyCubes> {
        match pattern {
            Pattern::Const(value) => Ok(if *value == holds { vec![Vec::new()] } else { vec![] }),
            Pattern::Test(test) => {
                let (i, dimension) = self.dimension(test).ok_or(TooManyCubes)?;
                let mut set = dimension.set(test);
                if !holds {
                    let all = IntervalSet::range(0, u128::from(dimension.greatest));
                    set = all.subtract(&set);
                }
                Ok(if set.is_empty() { vec![] } else { vec![vec![(i, set)]] })
            }
            Pattern::Not(inner) => self.expand(inner, !holds),
            Pattern::All(parts) if holds => self.product(parts, holds),
            Pattern::Any(parts) if !holds => self.product(parts, holds),
            Pattern::All(parts) | Pattern::Any(parts) => {
                let mut union = Vec::new();
                for part in parts {
                    union.extend(self.expand(part, holds)?);
                    if union.len() > CUBES_OF_RULE {
                        return Err(TooManyCubes);
                    }
                }
                Ok(union)
            }
            Pattern::Choose(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                let yes = multiply(self.expand(condition, true)?, &self.expand(then, holds)?)?;
                let no = multiply(self.expand(condition, false)?, &self.expand(otherwise, holds)?)?;
                Ok(yes.into_iter().chain(no).collect())
            }
        }
    }

    fn product(&self, parts: &[Pattern], holds: bool) -> Result<Vec<Conjunction>, TooManyCubes> {
        parts
            .iter()
            .try_fold(vec![Vec::new()], |all, part| multiply(all, &self.expand(part, holds)?))
    }

    /// The key of a packet that has an IP header.
    #[inline]
    pub(crate) fn key(&self, headers: &Headers<'_>) -> Key {
        let mut key = [0; MAX_DIMENSIONS];
        for (number, dimension) in key.iter_mut().zip(&self.dimensions) {
            *number = match (headers.number(dimension.place), &dimension.classes) {
                (Some(value), None) => value & dimension.mask,
                (Some(value), Some(classes)) => u32::from(classes[value as usize & 0xff]),
                (None, _) => dimension.greatest,
            };
        }
        key
    }
}

/// Every conjunction of the one with every one of the other that anything can match.
fn multiply(
    one: Vec<Conjunction>,
    other: &[Conjunction],
) -> Result<Vec<Conjunction>, TooManyCubes> {
    if one.len().saturating_mul(other.len()) > CUBES_OF_RULE {
        return Err(TooManyCubes);
    }
    let mut product = Vec::with_capacity(one.len() * other.len());
    for a in one {
        for b in other {
            let mut both = a.clone();
            let fits = b.iter().all(|(dimension, set)| {
                match both.iter_mut().find(|(d, _)| d == dimension) {
                    Some((_, old)) => *old = old.intersect(set),
                    None => both.push((*dimension, set.clone())),
                }
                both.iter().all(|(_, set)| !set.is_empty())
            });
            if fits {
                product.push(both);
            }
        }
    }
    Ok(product)
}
