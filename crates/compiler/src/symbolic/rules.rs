//! Rules of a match as unions of conjunctions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use classify::{MAX_DIMENSIONS, edits};
use ir::field::meta;
use ir::model::Rule;
use ir::program::ClassifyRule;
use ir::{Cond, Expr, Field, IntervalSet};

/// A rule may make so many conjunctions.
const CUBES_OF_RULE: usize = 256;

/// Rules that make no more conjunctions are tested one after the other, which tells more of the
/// packets behind them.
const FEW_CUBES: usize = 8;

/// Lists of rules that differ in more are read from the start.
const MAX_EDITS: usize = 64;

/// Bytes that there are, from the start or from a header on.
const AVAILABLE: [Field; 4] = [meta::LEN, meta::AVAIL_MAC, meta::AVAIL_NET, meta::AVAIL_TRANSPORT];

/// The table that [`crate::synthesize_tables`] makes of a list of rules: what its keys are, and its entries. `None` if
/// they are no conjunctions of tests.
pub fn table_of_rules(rules: &[Rule]) -> Option<(Vec<Expr>, Arc<[ClassifyRule]>)> {
    let made = Rules::new(rules)?;
    let table = made.of_headers();
    let keys = table.keys.iter().map(|at| made.exprs[*at].clone()).collect::<Option<_>>()?;
    Some((keys, Arc::clone(&table.rules)))
}

/// Rules as conjunctions of tests on expressions.
pub(crate) struct Rules {
    /// None where rules asked one before the list changed: the others keep their places, so that
    /// conjunctions stay as they are.
    pub exprs: Vec<Option<Expr>>,
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
    of_headers: OnceLock<OfHeaders>,
}

/// Rules for packets that have all headers that rules look at.
pub(super) struct OfHeaders {
    /// Expressions for bytes that there are, by their index, and how many are enough.
    pub needed: Vec<(usize, IntervalSet)>,
    /// The other expressions.
    pub keys: Vec<usize>,
    /// The rules over these.
    pub rules: Arc<[ClassifyRule]>,
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

/// The set of one expression.
fn bit(at: usize) -> Keys {
    Keys::from(1u8).checked_shl(at as u32).unwrap_or(0)
}

impl Asked {
    fn new(cubes: &[Cube]) -> Self {
        let of = |cube: &Cube| cube.iter().fold(0, |keys, (key, _)| keys | bit((*key).into()));
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
        // Where there are too many for keys, it matters how many there are.
        let is_wasteful = new.exprs.len() > MAX_DIMENSIONS && new.exprs.contains(&None);
        (!is_wasteful).then_some(new)
    }

    /// Whether they are better tested one after the other.
    pub(super) fn are_few(&self) -> bool {
        self.cubes <= FEW_CUBES
    }

    /// Whether paths that fork on the whole list are the same as those of another.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.are_few() == other.are_few()
            && self.exprs == other.exprs
            && self.takes_all == other.takes_all
            && self.hulls == other.hulls
    }

    /// The rules for packets that have all headers that rules look at; made once.
    pub(super) fn of_headers(&self) -> &OfHeaders {
        self.of_headers.get_or_init(|| {
            let needed: Vec<(usize, IntervalSet)> =
                (0..self.exprs.len()).filter_map(|at| Some((at, self.needed(at)?))).collect();
            let is_needed = |at: usize| needed.iter().any(|needed| needed.0 == at);
            let keys: Vec<usize> = (0..self.exprs.len()).filter(|&at| !is_needed(at)).collect();
            let rules = match needed.is_empty() {
                true => Arc::clone(&self.rules),
                false => self.rules.iter().map(|rule| rule_over(rule, &keys)).collect(),
            };
            OfHeaders { needed, keys, rules }
        })
    }

    /// How many bytes are enough for all rules, if that is all that they ask of an expression.
    fn needed(&self, at: usize) -> Option<IntervalSet> {
        let Some(Expr::Field(field)) = self.exprs[at] else { return None };
        let asked = self.rules.iter().flat_map(|rule| rule.cubes.iter().flatten());
        let mut sets = asked.filter(|(key, _)| usize::from(*key) == at).map(|(_, set)| set);
        let least = |set: &IntervalSet| match set.intervals() {
            [(low, high)] if *high >= field.max() => Some(*low),
            _ => None,
        };
        AVAILABLE.contains(&field).then_some(())?;
        let most = sets.try_fold(0, |most: u128, set| Some(most.max(least(set)?)))?;
        Some(IntervalSet::range(most, field.max()))
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
        mut exprs: Vec<Option<Expr>>,
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
                    let known = exprs.len();
                    let mut new = expand(&rule.when, true, &mut exprs)?;
                    forget_unasked(&mut new, &mut exprs, known);
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
        let any = all_asked.iter().fold(0, |any, asked| any | asked.any);
        let unasked = |at: &usize| *at < Keys::BITS as usize && any & bit(*at) == 0;
        (0..exprs.len()).filter(unasked).for_each(|at| exprs[at] = None);
        exprs.truncate(exprs.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
        let last = made.iter().position(ClassifyRule::takes_all);
        let takes_all = last.map(|last| made[last].arm);
        let hulls =
            hulls(&made[..last.map_or(made.len(), |last| last + 1)], &all_asked, exprs.len());
        Some(Self {
            exprs,
            rules: made.into(),
            cubes,
            takes_all,
            hulls,
            asked: all_asked,
            added,
            of_headers: OnceLock::new(),
        })
    }
}

/// A rule that asks some expressions only.
fn rule_over(rule: &ClassifyRule, keys: &[usize]) -> ClassifyRule {
    let over = |(key, set): &(u8, IntervalSet)| {
        let at = keys.binary_search(&usize::from(*key)).ok()?;
        Some((at as u8, set.clone()))
    };
    let cubes = rule.cubes.iter().map(|cube| cube.iter().filter_map(over).collect()).collect();
    ClassifyRule { cubes, ..rule.clone() }
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
    let hull = |keys: Keys, at| (keys & bit(at) != 0).then(IntervalSet::empty);
    let hull = |(&arm, &keys): (&u32, &Keys)| (arm, (0..exprs).map(|at| hull(keys, at)).collect());
    let mut hulls: BTreeMap<u32, Vec<Option<IntervalSet>>> = open.iter().map(hull).collect();
    for same_arm in rules.chunk_by(|a, b| a.arm == b.arm) {
        let arm = &same_arm[0].arm;
        let (Some(open), Some(hulls)) = (open.get_mut(arm), hulls.get_mut(arm)) else { continue };
        // Mostly the first few tell that there is nothing to be told.
        let mut rules = same_arm.iter();
        while *open != 0
            && let Some(rule) = rules.next()
        {
            for (key, set) in rule.cubes.iter().flatten() {
                let at = usize::from(*key);
                match hulls.get_mut(at) {
                    Some(Some(hull)) if set.is_subset(hull) => {}
                    Some(Some(hull)) if hull.intervals().len() <= 16 => *hull = hull.union(set),
                    Some(hull) => (*hull, *open) = (None, *open & !bit(at)),
                    None => {}
                }
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

/// Takes expressions out, from some number on, that only conjunctions asked that cannot hold.
fn forget_unasked(cubes: &mut [Cube], exprs: &mut Vec<Option<Expr>>, known: usize) {
    for at in (known..exprs.len()).rev() {
        let all = || cubes.iter().flatten();
        if all().all(|(key, _)| usize::from(*key) != at) {
            exprs.remove(at);
            let behind = cubes.iter_mut().flatten().filter(|(key, _)| usize::from(*key) > at);
            behind.for_each(|(key, _)| *key -= 1);
        }
    }
}

/// A condition, or its negation, as a union of conjunctions of tests.
fn expand(cond: &Cond, holds: bool, exprs: &mut Vec<Option<Expr>>) -> Option<Vec<Cube>> {
    match cond {
        Cond::Const(value) => Some(if *value == holds { vec![Vec::new()] } else { Vec::new() }),
        Cond::Test(expr, set) => {
            let width = match expr {
                Expr::Field(field) => field.width,
                _ => 128,
            };
            let known = exprs.iter().position(|e| e.as_ref() == Some(expr));
            // Free places are taken last: classifiers were built for numbers as large as stood there.
            let free = || exprs.iter().position(|e| e.is_none() && exprs.len() >= MAX_DIMENSIONS);
            let at = known.or_else(free).unwrap_or(exprs.len());
            if at == exprs.len() {
                exprs.push(None);
            }
            exprs[at].get_or_insert_with(|| expr.clone());
            let key = u8::try_from(at).ok()?;
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

fn product(parts: &[Cond], holds: bool, exprs: &mut Vec<Option<Expr>>) -> Option<Vec<Cube>> {
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
        // More than keys have room for.
        let rare = [ip::LEN, ip::ID, ip::SRC, ip::DST, transport::SPORT, ip::CHECKSUM];
        let cond = match kind {
            0 => ip::TTL.eq(number),
            1 => ip::PROTO.eq(number).and(ip::TOS.eq(number).not()),
            2 => Cond::Any(vec![ip::TTL.eq(number), transport::DPORT.eq(u16::from(number))]),
            3 => ip::TOS.eq(number).and(ip::TTL.eq(number)).and(ip::TTL.eq(9u8)),
            4 => Cond::Const(true),
            // Of what the first asks of all, nothing is left.
            5 => Cond::Any(vec![
                ip::ID.eq(number).and(ip::TTL.eq(1u8)).and(ip::TTL.eq(2u8)),
                ip::SRC.eq(u32::from(number)),
            ]),
            kind => rare[usize::from(kind) % rare.len()].eq(u16::from(number)),
        };
        Rule { when: cond.into(), arm, text: "".into(), span: None }
    }

    fn rules(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Rule>> {
        let kind = prop_oneof![4 => 0u8..5, 1 => 5u8..12];
        prop::collection::vec((kind, 0u8..4, 0u32..3).prop_map(|(k, n, a)| rule(k, n, a)), count)
    }

    /// The rules, and what each arm lets through, with their expressions, in an order that does not
    /// depend on how they were made.
    fn comparable(made: &Rules) -> impl PartialEq + std::fmt::Debug {
        let of_cube = |cube: &Cube| {
            let test = |(key, set): &(u8, IntervalSet)| {
                let expr = made.exprs[usize::from(*key)].as_ref().expect("an expression");
                format!("{expr:?} in {set:?}")
            };
            let mut tests: Vec<String> = cube.iter().map(test).collect();
            tests.sort();
            tests
        };
        let of_rule =
            |r: &ClassifyRule| (r.arm, r.number, r.cubes.iter().map(of_cube).collect::<Vec<_>>());
        let of_arm = |(arm, hulls): (&u32, &Vec<Option<IntervalSet>>)| {
            assert_eq!(hulls.len(), made.exprs.len());
            let of =
                |(e, hull): (&Option<Expr>, _)| Some(format!("{arm} {:?} {hull:?}", e.as_ref()?));
            made.exprs.iter().zip(hulls).filter_map(of).collect::<Vec<_>>()
        };
        let mut hulls: Vec<_> = made.hulls.iter().flat_map(of_arm).collect();
        hulls.sort();
        let rules: Vec<_> = made.rules.iter().map(of_rule).collect();
        (rules, hulls, made.cubes, made.exprs.iter().flatten().count())
    }

    proptest! {
        #[test]
        fn a_list_that_changed_is_as_good_as_new(
            mut rules in rules(1..40),
            splices in prop::collection::vec((any::<prop::sample::Index>(), 0usize..3, rules(0..3)), 1..12),
        ) {
            let mut made = Rules::new(&rules).expect("they are conjunctions");
            prop_assert!(!made.exprs.contains(&None));
            for (at, removed, added) in splices {
                let old = rules.clone();
                // A rule asks two at the most.
                let most = made.exprs.len() + 2 * added.len();
                let at = at.index(rules.len() + 1);
                let end = (at + removed).min(rules.len());
                rules.splice(at..end, added);
                let new = Rules::new(&rules).expect("they are conjunctions");
                prop_assert!(!new.exprs.contains(&None));
                made = match Rules::changed(&rules, &old, &made) {
                    Some(changed) => {
                        prop_assert_eq!(comparable(&changed), comparable(&new));
                        prop_assert!(changed.exprs.len() <= MAX_DIMENSIONS.max(new.exprs.len()));
                        // What other rules ask stays where it is.
                        for (old, new) in made.exprs.iter().zip(&changed.exprs) {
                            prop_assert!(old.is_none() || new.is_none() || old == new);
                        }
                        changed
                    }
                    None => {
                        prop_assert!(most > MAX_DIMENSIONS);
                        new
                    }
                };
            }
        }
    }
}
