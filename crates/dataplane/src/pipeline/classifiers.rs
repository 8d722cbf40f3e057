//! The classification steps of a program.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use classify::{Classifier, MAX_DIMENSIONS, RuleSet};
use ir::program::{ClassifyRule, Program, Step, StepId, Term, TermId};

/// Cubes that are worth a structure; more are tried one after the other.
const MAX_CUBES: usize = 1 << 20;

/// What a key matches.
pub(super) type Key = [u32; MAX_DIMENSIONS];

/// Finds the arm of the first rule that matches.
enum Structure {
    /// By the index of a rule.
    Built(Box<dyn Classifier>),
    /// The rules make too many cubes.
    List,
}

struct Classification {
    rules: Arc<[ClassifyRule]>,
    structure: Structure,
}

/// See the module.
pub(super) struct Classifiers {
    steps: HashMap<StepId, Rc<Classification>>,
}

/// The greatest value of a number that rules look at.
fn greatest(program: &Program, term: TermId) -> u32 {
    let width = match program.term(term) {
        Term::Input(field) => field.width,
        Term::Slice { width, .. } => u16::from(*width),
        Term::Fold(_) => 16,
        _ => 32,
    };
    u32::MAX >> (32 - width.clamp(1, 32))
}

fn build(rules: &[ClassifyRule], greatest: &[u32]) -> Structure {
    let mut set = RuleSet::new(greatest, MAX_CUBES);
    for (number, rule) in (0..).zip(rules) {
        for cube in rule.cubes.iter() {
            let narrow = |n: u128| u32::try_from(n).unwrap_or(u32::MAX);
            // What lies above 32 bits matches nothing.
            let sets: Vec<(usize, Vec<(u32, u32)>)> = cube
                .iter()
                .map(|(key, set)| {
                    let small = set.intervals().iter().filter(|i| i.0 <= u32::MAX.into());
                    (usize::from(*key), small.map(|&(l, h)| (narrow(l), narrow(h))).collect())
                })
                .collect();
            let sets: Vec<(usize, &[(u32, u32)])> =
                sets.iter().map(|(key, set)| (*key, &set[..])).collect();
            if sets.iter().any(|(key, _)| *key >= greatest.len())
                || set.push_rule(number, &sets).is_err()
            {
                return Structure::List;
            }
        }
    }
    Structure::Built(classify::build(&set))
}

impl Classifiers {
    pub(super) fn new(program: &Program) -> Self {
        let mut steps = HashMap::new();
        // Steps that differ in where they lead only share what they look up.
        let mut built: Vec<(Vec<u32>, Rc<Classification>)> = Vec::new();
        for (i, step) in program.steps.iter().enumerate() {
            let Step::Classify { keys, rules, .. } = step else { continue };
            let greatest: Vec<u32> = keys.iter().map(|&key| greatest(program, key)).collect();
            let same = |(g, c): &&(Vec<u32>, Rc<Classification>)| {
                *g == greatest && Arc::ptr_eq(&c.rules, rules)
            };
            let classification = match built.iter().find(same) {
                Some((_, known)) => Rc::clone(known),
                None => {
                    let structure = build(rules, &greatest);
                    let new = Rc::new(Classification { rules: Arc::clone(rules), structure });
                    built.push((greatest, Rc::clone(&new)));
                    new
                }
            };
            steps.insert(StepId(i as u32), classification);
        }
        Self { steps }
    }

    /// The arm that a key leads to at a step.
    pub(super) fn lookup(&self, step: StepId, key: &Key) -> Option<u32> {
        let Classification { rules, structure } = &**self.steps.get(&step)?;
        let rule = match structure {
            Structure::Built(classifier) => classifier.lookup(key)? as usize,
            Structure::List => rules.iter().position(|rule| {
                rule.cubes.iter().any(|cube| {
                    let inside = |(i, set): &(u8, ir::IntervalSet)| {
                        key.get(usize::from(*i)).is_some_and(|&n| set.contains(n.into()))
                    };
                    cube.iter().all(inside)
                })
            })?,
        };
        rules.get(rule).map(|rule| rule.arm)
    }

    /// The same for several keys.
    pub(super) fn lookup_batch(&self, step: StepId, keys: &[Key], found: &mut [Option<u32>]) {
        match self.steps.get(&step).map(|c| (&c.rules, &c.structure)) {
            Some((rules, Structure::Built(classifier))) => {
                classifier.lookup_batch(keys, found);
                for found in &mut found[..keys.len()] {
                    *found = found.and_then(|rule| rules.get(rule as usize)).map(|rule| rule.arm);
                }
            }
            _ => {
                for (key, found) in keys.iter().zip(found) {
                    *found = self.lookup(step, key);
                }
            }
        }
    }
}
