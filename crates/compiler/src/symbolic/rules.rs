//! Rules of a match as unions of conjunctions.

use std::collections::BTreeMap;
use std::sync::Arc;

use classify::edits;
use ir::model::Rule;
use ir::program::ClassifyRule;
use ir::{Cond, Expr, IntervalSet};

/// A rule may make so many conjunctions.
const CUBES_OF_RULE: usize = 256;

/// Rules that make no more conjunctions are tested one after the other, which tells more of the
/// packets behind them.
const FEW_CUBES: usize = 8;

/// Lists of rules that differ in more are read from the start.
const MAX_EDITS: usize = 64;

/// Rules as conjunctions of tests on expressions.
pub(crate) struct Rules {
    pub exprs: Vec<Expr>,
    pub rules: Arc<[ClassifyRule]>,
    pub cubes: usize,
    /// The arm of the first rule that takes all packets: none come to what is behind it.
    takes_all: Option<u32>,
    /// By arm and expression: the numbers that some rule of it lets through.
    pub hulls: BTreeMap<u32, Vec<Option<IntervalSet>>>,
    /// By rule.
    asked: Vec<Asked>,
    /// The rules that are not of the list that this one came out of.
    added: Vec<usize>,
}

/// A conjunction: what it asks of some expressions, by their index.
pub(super) type Cube = Vec<(u8, IntervalSet)>;

/// The expressions that a rule asks, as bits.
#[derive(Clone, Copy)]
struct Asked {
    any: Keys,
    /// In every conjunction.
    all: Keys,
}

/// A set of the first expressions.
type Keys = u32;

impl Asked {
    fn new(cubes: &[Cube]) -> Self {
        let bit = |key: u8| Keys::from(1u8).checked_shl(key.into()).unwrap_or(0);
        let of = |cube: &Cube| cube.iter().fold(0, |keys, (key, _)| keys | bit(*key));
        let sum = |asked: Self, keys| Self { any: asked.any | keys, all: asked.all & keys };
        cubes.iter().map(of).fold(Self { any: 0, all: Keys::MAX }, sum)
    }
}

impl Rules {
    pub(crate) fn new(rules: &[Rule]) -> Option<Self> {
        Self::of(rules, Vec::new(), |_| None)
    }

    /// The rules of a list that came out of another by a few changes.
    pub(crate) fn changed(rules: &[Rule], old: &[Rule], made: &Self) -> Option<Self> {
        let same = |i: usize, j: usize| {
            let (old, new): (&Rule, &Rule) = (&old[i], &rules[j]);
            Arc::ptr_eq(&old.when, &new.when)
        };
        let edits = edits(old.len(), rules.len(), MAX_EDITS, same)?;
        // By how many places rules moved, from some number on.
        let mut moved = edits.iter().peekable();
        let mut by = 0isize;
        if made.exprs.len() > Keys::BITS as usize {
            return None;
        }
        let new = Self::of(rules, made.exprs.clone(), |number| {
            while let Some(edit) = moved.peek() {
                if number < edit.new.start {
                    break;
                }
                if edit.new.contains(&number) {
                    return None;
                }
                by = edit.old.end as isize - edit.new.end as isize;
                moved.next();
            }
            let old = number.checked_add_signed(by)?;
            Some((Arc::clone(&made.rules.get(old)?.cubes), *made.asked.get(old)?))
        })?;
        // Expressions that only rules asked that are gone would still be computed.
        let asked = new.asked.iter().fold(0, |all, asked| all | asked.any);
        (asked.count_ones() as usize == new.exprs.len()).then_some(new)
    }

    /// Whether they are better tested one after the other.
    pub(super) fn are_few(&self) -> bool {
        self.cubes <= FEW_CUBES
    }

    /// Whether ways that fork on the whole list are the same as those of another.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.are_few() == other.are_few()
            && self.exprs == other.exprs
            && self.takes_all == other.takes_all
            && self.hulls == other.hulls
    }

    /// Whether each conjunction can hold of numbers of which this is known.
    pub(super) fn all_fit(&self, known: &[Option<IntervalSet>]) -> bool {
        let all = || self.rules.iter().all(|r| r.cubes.iter().all(|cube| fits(cube, known)));
        known.iter().all(Option::is_none) || all()
    }

    /// The same of the rules that are not of the list that this one came out of.
    pub(super) fn added_fit(&self, known: &[Option<IntervalSet>]) -> bool {
        let mut added = self.added.iter().map(|&number| &self.rules[number]);
        added.all(|rule| rule.cubes.iter().all(|cube| fits(cube, known)))
    }

    /// The rules of a list; `known` gives the conjunctions of those that have some already, by
    /// number, ascending.
    fn of(
        rules: &[Rule],
        mut exprs: Vec<Expr>,
        mut known: impl FnMut(usize) -> Option<(Arc<[Cube]>, Asked)>,
    ) -> Option<Self> {
        let mut made = Vec::with_capacity(rules.len());
        let (mut cubes, mut all_asked) = (0, Vec::with_capacity(rules.len()));
        let mut added = Vec::new();
        for (number, rule) in rules.iter().enumerate() {
            let (of_rule, asked) = match known(number) {
                Some(known) => known,
                None => {
                    added.push(number);
                    let new = expand(&rule.when, true, &mut exprs)?;
                    let asked = Asked::new(&new);
                    (new.into(), asked)
                }
            };
            all_asked.push(asked);
            cubes += of_rule.len();
            if cubes > 16 * rules.len() + 4096 {
                return None;
            }
            made.push(ClassifyRule {
                cubes: of_rule,
                arm: rule.arm,
                number: number as u32,
                span: rule.span,
            });
        }
        let last = made.iter().position(ClassifyRule::takes_all);
        let takes_all = last.map(|last| made[last].arm);
        let hulls =
            hulls(&made[..last.map_or(made.len(), |last| last + 1)], &all_asked, exprs.len());
        Some(Self { exprs, rules: made.into(), cubes, takes_all, hulls, asked: all_asked, added })
    }
}

/// Whether a conjunction can hold of numbers of which this is known.
fn fits(cube: &Cube, known: &[Option<IntervalSet>]) -> bool {
    let fits = |(key, set): &(u8, IntervalSet)| {
        known[usize::from(*key)].as_ref().is_none_or(|known| set.intersects(known))
    };
    cube.iter().all(fits)
}

/// By arm and expression: the numbers that some rule of it lets through, if they are few intervals.
fn hulls(
    rules: &[ClassifyRule],
    asked: &[Asked],
    exprs: usize,
) -> BTreeMap<u32, Vec<Option<IntervalSet>>> {
    // By arm: expressions that all of its rules ask.
    let mut open: BTreeMap<u32, Keys> = BTreeMap::new();
    let mut asked = asked.iter();
    for same_arm in rules.chunk_by(|a, b| a.arm == b.arm) {
        let keys = asked.by_ref().take(same_arm.len()).fold(Keys::MAX, |keys, a| keys & a.all);
        *open.entry(same_arm[0].arm).or_insert(Keys::MAX) &= keys;
    }
    let bit = |key: usize| Keys::from(1u8).checked_shl(key as u32).unwrap_or(0);
    let hull = |keys: Keys, at| (keys & bit(at) != 0).then(IntervalSet::empty);
    let hull = |(&arm, &keys): (&u32, &Keys)| (arm, (0..exprs).map(|at| hull(keys, at)).collect());
    let mut hulls: BTreeMap<u32, Vec<Option<IntervalSet>>> = open.iter().map(hull).collect();
    for same_arm in rules.chunk_by(|a, b| a.arm == b.arm) {
        let arm = &same_arm[0].arm;
        let (Some(open), Some(hulls)) = (open.get_mut(arm), hulls.get_mut(arm)) else { continue };
        if *open == 0 {
            continue;
        }
        for (key, set) in same_arm.iter().flat_map(|rule| rule.cubes.iter().flatten()) {
            let at = usize::from(*key);
            match hulls.get_mut(at) {
                Some(Some(hull)) if set.is_subset(hull) => {}
                Some(Some(hull)) if hull.intervals().len() <= 16 => *hull = hull.union(set),
                Some(hull) => (*hull, *open) = (None, *open & !bit(at)),
                None => {}
            }
        }
    }
    hulls
}

/// How many tests a condition is made of.
pub(super) fn tests(cond: &Cond) -> usize {
    match cond {
        Cond::All(parts) | Cond::Any(parts) => parts.iter().map(tests).sum(),
        Cond::Not(inner) => tests(inner),
        _ => 1,
    }
}

/// A condition, or its negation, as a union of conjunctions of tests.
fn expand(cond: &Cond, holds: bool, exprs: &mut Vec<Expr>) -> Option<Vec<Cube>> {
    match cond {
        Cond::Const(value) => Some(if *value == holds { vec![Vec::new()] } else { Vec::new() }),
        Cond::Test(expr, set) => {
            let width = match expr {
                Expr::Field(field) => field.width,
                _ => 128,
            };
            let key = match exprs.iter().position(|e| e == expr) {
                Some(at) => at as u8,
                None => {
                    exprs.push(expr.clone());
                    u8::try_from(exprs.len() - 1).ok()?
                }
            };
            let set = if holds { set.clone() } else { set.complement(width) };
            Some(if set.is_empty() { Vec::new() } else { vec![vec![(key, set)]] })
        }
        Cond::Not(inner) => expand(inner, !holds, exprs),
        Cond::All(parts) if holds => product(parts, holds, exprs),
        Cond::Any(parts) if !holds => product(parts, holds, exprs),
        Cond::All(parts) | Cond::Any(parts) => {
            let mut union = Vec::new();
            for part in parts {
                union.extend(expand(part, holds, exprs)?);
                if union.len() > CUBES_OF_RULE {
                    return None;
                }
            }
            Some(union)
        }
        Cond::Compare(..) | Cond::FlowExists(..) => None,
    }
}

fn product(parts: &[Cond], holds: bool, exprs: &mut Vec<Expr>) -> Option<Vec<Cube>> {
    let mut all: Vec<Cube> = vec![Vec::new()];
    for part in parts {
        let other = expand(part, holds, exprs)?;
        if all.len() * other.len() > CUBES_OF_RULE {
            return None;
        }
        let mut next = Vec::with_capacity(all.len() * other.len());
        for a in &all {
            for b in &other {
                let mut both = a.clone();
                let fits =
                    b.iter().all(|(key, set)| match both.iter_mut().find(|(k, _)| k == key) {
                        Some((_, old)) => {
                            *old = old.intersect(set);
                            !old.is_empty()
                        }
                        None => {
                            both.push((*key, set.clone()));
                            true
                        }
                    });
                if fits {
                    next.push(both);
                }
            }
        }
        all = next;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use ir::field::{ip, transport};
    use proptest::prelude::*;

    use super::*;

    fn rule(kind: u8, number: u8, arm: u32) -> Rule {
        let cond = match kind {
            0 => ip::TTL.eq(number),
            1 => ip::PROTO.eq(number).and(ip::TOS.eq(number).not()),
            2 => Cond::Any(vec![ip::TTL.eq(number), transport::DPORT.eq(u16::from(number))]),
            3 => ip::TTL.eq(number).and(ip::TTL.eq(1u8)),
            _ => Cond::Const(true),
        };
        Rule { when: cond.into(), arm, text: "".into(), span: None }
    }

    /// The rules with their expressions, in an order that does not depend on how they were made.
    fn plainly(made: &Rules) -> Vec<(u32, u32, Vec<Vec<String>>)> {
        let of_cube = |cube: &Cube| {
            let test = |(key, set): &(u8, IntervalSet)| {
                format!("{:?} in {set:?}", made.exprs[usize::from(*key)])
            };
            let mut tests: Vec<String> = cube.iter().map(test).collect();
            tests.sort();
            tests
        };
        let of_rule = |r: &ClassifyRule| (r.arm, r.number, r.cubes.iter().map(of_cube).collect());
        made.rules.iter().map(of_rule).collect()
    }

    proptest! {
        #[test]
        fn a_list_that_changed_is_as_good_as_new(
            rules in prop::collection::vec((0u8..5, 0u8..4, 0u32..3), 1..40),
            splices in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, prop::collection::vec((0u8..5, 0u8..4, 0u32..3), 0..3)), 1..5),
        ) {
            let of = |&(kind, number, arm): &(u8, u8, u32)| rule(kind, number, arm);
            let mut rules: Vec<Rule> = rules.iter().map(of).collect();
            let old = rules.clone();
            let made = Rules::new(&old).expect("they are conjunctions");
            for (at, removed, added) in splices {
                let at = at.index(rules.len() + 1);
                let end = (at + removed).min(rules.len());
                rules.splice(at..end, added.iter().map(of));
            }
            let new = Rules::new(&rules).expect("they are conjunctions");
            match Rules::changed(&rules, &old, &made) {
                Some(changed) => {
                    prop_assert_eq!(plainly(&changed), plainly(&new));
                    prop_assert_eq!(changed.cubes, new.cubes);
                    let by_expr = |made: &Rules| {
                        let of_arm = |(arm, hulls): (&u32, &Vec<Option<IntervalSet>>)| {
                            let of = |(e, hull)| (format!("{arm} {e:?}"), format!("{hull:?}"));
                            made.exprs.iter().zip(hulls).map(of).collect::<Vec<_>>()
                        };
                        let mut all: Vec<_> = made.hulls.iter().flat_map(of_arm).collect();
                        all.sort();
                        all
                    };
                    prop_assert_eq!(by_expr(&changed), by_expr(&new));
                }
                // Only if something is not asked, or not any more: rules that cannot match ask
                // nothing.
                None => {
                    let cubes = || new.rules.iter().flat_map(|rule| rule.cubes.iter());
                    let tests = || cubes().flat_map(|cube| cube.iter());
                    let mut all = made.exprs.iter().chain(&new.exprs);
                    let asked = |key: &u8| &new.exprs[usize::from(*key)];
                    prop_assert!(!all.all(|e| tests().any(|(key, _)| asked(key) == e)));
                }
            }
        }
    }
}
