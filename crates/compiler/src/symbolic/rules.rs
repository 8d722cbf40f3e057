//! Rules of a match as unions of conjunctions.

use std::collections::BTreeMap;
use std::sync::Arc;

use ir::model::Rule;
use ir::program::ClassifyRule;
use ir::{Cond, Expr, IntervalSet};

/// A rule may make so many conjunctions.
const CUBES_OF_RULE: usize = 256;

/// Rules as conjunctions of tests on expressions.
pub(crate) struct Rules {
    pub exprs: Vec<Expr>,
    pub rules: Arc<[ClassifyRule]>,
    pub cubes: usize,
    /// By arm and expression: the numbers that some rule of it lets through.
    pub hulls: BTreeMap<u32, Vec<Option<IntervalSet>>>,
}

type Cube = Vec<(u8, IntervalSet)>;

impl Rules {
    pub(crate) fn new(rules: &[Rule]) -> Option<Self> {
        let mut exprs: Vec<Expr> = Vec::new();
        let mut made = Vec::with_capacity(rules.len());
        let mut cubes = 0;
        let mut hulls: BTreeMap<u32, Vec<Option<IntervalSet>>> = BTreeMap::new();
        for (number, rule) in rules.iter().enumerate() {
            let of_rule = expand(&rule.when, true, &mut exprs)?;
            cubes += of_rule.len();
            if cubes > 16 * rules.len() + 4096 {
                return None;
            }
            made.push(ClassifyRule {
                cubes: of_rule.into(),
                arm: rule.arm,
                number: number as u32,
                span: rule.span,
            });
        }
        for rule in &made {
            let hull = hulls
                .entry(rule.arm)
                .or_insert_with(|| vec![Some(IntervalSet::empty()); exprs.len()]);
            for cube in rule.cubes.iter() {
                for (at, hull) in hull.iter_mut().enumerate() {
                    let set = cube.iter().find(|(k, _)| usize::from(*k) == at).map(|(_, s)| s);
                    *hull = match (hull.take(), set) {
                        (Some(hull), Some(set)) if hull.intervals().len() <= 16 => {
                            Some(hull.union(set))
                        }
                        _ => None,
                    };
                }
            }
        }
        Some(Self { exprs, rules: made.into(), cubes, hulls })
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
