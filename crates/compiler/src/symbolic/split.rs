//! Lists of rules of which only some can match, or that look at more things than keys have room for.
//!
//! What is known of a packet, such as what was written to it, decides some tests. Few rules look at all of them: who knows the protocol need not ask for the flags of TCP and the
//! type of ICMP. So packets are distinguished by what has few values first, until what the rules ask
//! of them besides fits into a key.

use std::borrow::Cow;
use std::sync::Arc;

use ir::IntervalSet;
use ir::program::ClassifyRule;

use super::rules::{Cube, Rules};

/// Packets are split into so many paths at once at the most.
const MAX_CASES: usize = 8;

/// What is to be done with packets that come to a list of rules.
pub(super) enum Split {
    /// All of them match the same rule, with this arm, or none.
    One(Option<u32>),
    /// They are looked up by these expressions.
    Keys(Vec<usize>, Arc<[ClassifyRule]>),
    /// They are distinguished by one: rules treat the numbers of each set alike.
    Cases(usize, Vec<IntervalSet>),
    /// Nothing that has few values distinguishes them.
    TooMany,
}

/// How to look packets up of which it is known in which set each expression is; keys have room for
/// so many.
pub(super) fn split(table: &Rules, known: &[IntervalSet], room: usize) -> Split {
    let rules = left(&table.rules, known);
    let asked = asked(rules.iter().flat_map(|(_, cubes)| cubes.iter()), known.len());
    if asked.len() > room {
        let cases = asked.iter().filter_map(|&key| {
            let cases = cases(&rules, key, &known[key])?;
            let most = cases.iter().map(|case| {
                let fits = |cube: &&Cube| test(cube, key).is_none_or(|set| set.intersects(case));
                let cubes = rules.iter().flat_map(|(_, cubes)| cubes.iter()).filter(fits);
                self::asked(cubes, known.len()).iter().filter(|&&k| k != key).count()
            });
            Some((most.max()?, cases.len(), key, cases))
        });
        let best = cases.min_by_key(|&(asked, cases, key, _)| (asked, cases, key));
        return best.map_or(Split::TooMany, |(_, _, key, cases)| Split::Cases(key, cases));
    }
    if asked.is_empty() {
        return Split::One(rules.first().map(|(rule, _)| rule.arm));
    }
    let place = |key: u8| asked.iter().position(|&k| k == usize::from(key)).map(|at| at as u8);
    let places: Vec<_> = (0..known.len()).map(|key| place(key as u8)).collect();
    let rules = rules.into_iter().map(|(rule, cubes)| match cubes {
        Cow::Borrowed(_) if asked.len() == known.len() => rule.clone(),
        cubes => {
            let of =
                |(key, set): &(u8, IntervalSet)| Some((places[usize::from(*key)]?, set.clone()));
            let of = |cube: &Cube| cube.iter().filter_map(of).collect();
            ClassifyRule { cubes: cubes.iter().map(of).collect(), ..rule.clone() }
        }
    });
    let rules = rules.collect();
    Split::Keys(asked, rules)
}

/// A rule and its conjunctions, or what is left of them.
type Left<'a> = (&'a ClassifyRule, Cow<'a, [Cube]>);

/// The rules that such packets can match, with what they ask beside what is known.
fn left<'a>(rules: &'a [ClassifyRule], known: &[IntervalSet]) -> Vec<Left<'a>> {
    let mut all = Vec::new();
    for rule in rules {
        let intersects = |(key, set): &(u8, IntervalSet)| set.intersects(&known[usize::from(*key)]);
        let is_implied = |(key, set): &(u8, IntervalSet)| known[usize::from(*key)].is_subset(set);
        let is_open = |test: &&(u8, IntervalSet)| intersects(test) && !is_implied(test);
        let cubes = match rule.cubes.iter().flatten().all(|test| is_open(&test)) {
            true => Cow::Borrowed(&rule.cubes[..]),
            false => {
                let fits = |cube: &&Cube| cube.iter().all(intersects);
                let rest = |cube: &Cube| cube.iter().filter(is_open).cloned().collect();
                rule.cubes.iter().filter(fits).map(rest).collect()
            }
        };
        let takes_all = cubes.iter().any(Vec::is_empty);
        if !cubes.is_empty() {
            all.push((rule, cubes));
        }
        if takes_all {
            break;
        }
    }
    all
}

/// What some conjunction asks, ascending.
fn asked<'a>(cubes: impl Iterator<Item = &'a Cube>, exprs: usize) -> Vec<usize> {
    let mut asked = vec![false; exprs];
    cubes.flatten().for_each(|(key, _)| asked[usize::from(*key)] = true);
    (0..exprs).filter(|&key| asked[key]).collect()
}

/// What a conjunction asks of an expression.
fn test(cube: &Cube, key: usize) -> Option<&IntervalSet> {
    cube.iter().find(|(k, _)| usize::from(*k) == key).map(|(_, set)| set)
}

/// The numbers that all conjunctions treat alike, if that makes few sets.
fn cases(rules: &[Left<'_>], key: usize, known: &IntervalSet) -> Option<Vec<IntervalSet>> {
    let mut cases = vec![known.clone()];
    let cubes = rules.iter().flat_map(|(_, cubes)| cubes.iter());
    for set in cubes.filter_map(|cube| test(cube, key)) {
        if cases.iter().all(|case| !case.intersects(set) || case.is_subset(set)) {
            continue;
        }
        let parts = cases.iter().flat_map(|case| [case.intersect(set), case.subtract(set)]);
        cases = parts.filter(|part| !part.is_empty()).collect();
        if cases.len() > MAX_CASES {
            return None;
        }
    }
    Some(cases)
}
