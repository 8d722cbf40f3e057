//! The classification steps of programs.
//!
//! A program that replaces another takes over what the other looked keys up in: as it
//! is if the rules are the same, changed where they differ in a few. What was changed is built
//! anew in another thread once so many keys were looked up that this is worth its time.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use classify::{Edit, MAX_DIMENSIONS, RuleList, RuleSet, edits};
use ir::IntervalSet;
use ir::program::{ClassifyRule, Program, Step, StepId, Term, TermId};

use super::cache::Missed;

/// Cubes that are worth a structure; more are tried one after the other.
const MAX_CUBES: usize = 1 << 20;
/// Rules that differ in more are looked up in something new.
const MAX_EDITS: usize = 64;
/// About what building takes for each rule, in nanoseconds.
const BUILD: u64 = 12_000;
/// About what a lookup loses when rules were changed, and that for each change, in nanoseconds.
const LOSS: [u64; 2] = [10, 1];

/// What a key matches.
pub(super) type Key = [u32; MAX_DIMENSIONS];

/// Finds the arm of the first rule that matches.
enum Structure {
    Built(Box<RuleList>),
    /// The rules make too many cubes.
    OneByOne,
}

/// Rules, and what keys are looked up in.
struct Classification {
    /// The greatest value of each key that there is or may come to be.
    greatest: Key,
    rules: Arc<[ClassifyRule]>,
    asked: Asked,
    structure: RefCell<Structure>,
    /// Keys that were looked up since the rules changed.
    lookups: Cell<u64>,
    /// Another thread's work.
    rebuild: RefCell<Option<Rebuild>>,
}

/// Sets that rules ask of a key are few up to so many.
const FEW_SETS: usize = 4;

/// By key: the sets that rules ask of it, if they are few, and how often they do.
struct Asked([Option<Vec<(IntervalSet, usize)>>; MAX_DIMENSIONS]);

impl Asked {
    fn of(rules: &[ClassifyRule]) -> Self {
        let mut asked = Self([const { Some(Vec::new()) }; _]);
        rules.iter().for_each(|rule| asked.add(rule));
        asked
    }

    fn add(&mut self, rule: &ClassifyRule) {
        for (key, set) in rule.cubes.iter().flatten() {
            let Some(place) = self.0.get_mut(usize::from(*key)) else { continue };
            let Some(sets) = place else { continue };
            let room = sets.len() < FEW_SETS;
            match sets.iter_mut().find(|(known, _)| known == set) {
                Some((_, times)) => *times += 1,
                None if room => sets.push((set.clone(), 1)),
                None => *place = None,
            }
        }
    }

    /// Takes back what was added. What is not few any more does not become few again.
    fn remove(&mut self, rule: &ClassifyRule) {
        for (key, set) in rule.cubes.iter().flatten() {
            let Some(Some(sets)) = self.0.get_mut(usize::from(*key)) else { continue };
            if let Some((_, times)) = sets.iter_mut().find(|(known, _)| known == set) {
                *times -= 1;
            }
            sets.retain(|(_, times)| *times > 0);
        }
    }
}

/// A structure that another thread builds.
struct Rebuild {
    rules: Arc<[ClassifyRule]>,
    built: Receiver<Structure>,
}

/// What the programs of a router look keys up in, and have in common.
#[derive(Default)]
pub(crate) struct Library {
    pub(super) missed: Rc<Missed>,
    all: RefCell<Vec<Rc<Classification>>>,
    /// Whether some of it was changed.
    changed: Cell<bool>,
}

/// What a program looks keys up in.
pub(super) struct Classifiers {
    steps: HashMap<StepId, Rc<Classification>>,
}

/// The greatest value of a number that rules look at.
fn greatest(program: &Program, term: TermId) -> u32 {
    match program.term(term) {
        Term::Const(value) => u32::try_from(*value).unwrap_or(u32::MAX),
        _ => u32::MAX >> (32 - program.width(term).min(32)),
    }
}

/// Adds the cubes of a rule to a set; whether it can hold them.
fn push(set: &mut RuleSet, number: u32, rule: &ClassifyRule) -> bool {
    rule.cubes.iter().all(|cube| {
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
        sets.iter().all(|(key, _)| *key < MAX_DIMENSIONS) && set.push_rule(number, &sets).is_ok()
    })
}

impl Structure {
    fn new(rules: &[ClassifyRule], greatest: &Key) -> Self {
        let mut set = RuleSet::new(greatest, MAX_CUBES);
        let fit = (0..).zip(rules).all(|(i, rule)| push(&mut set, i, rule));
        let arms: Vec<u32> = rules.iter().map(|rule| rule.arm).collect();
        match RuleList::new(&set, &arms) {
            Ok(list) if fit => Self::Built(Box::new(list)),
            _ => Self::OneByOne,
        }
    }

    /// What makes it one of other rules, if it is not too much.
    fn edits(&self, old: &[ClassifyRule], new: &[ClassifyRule]) -> Option<Vec<Edit>> {
        let same = |i: usize, j: usize| {
            let (old, new) = (&old[i], &new[j]);
            old.arm == new.arm && (Arc::ptr_eq(&old.cubes, &new.cubes) || old.cubes == new.cubes)
        };
        match self {
            Self::Built(_) => edits(old.len(), new.len(), MAX_EDITS, same),
            Self::OneByOne => None,
        }
    }

    /// Makes it one of other rules; of no use any more if that does not work out.
    fn change(&mut self, edits: &[Edit], new: &[ClassifyRule], greatest: &Key) -> bool {
        let Self::Built(list) = self else { return false };
        // From the end on, so that indices stay what they are.
        edits.iter().rev().all(|edit| {
            edit.old.clone().for_each(|_| list.remove(edit.old.start));
            edit.new.clone().rev().all(|i| {
                let mut set = RuleSet::new(greatest, MAX_CUBES);
                push(&mut set, 0, &new[i])
                    && list.insert(edit.old.start, new[i].arm, set.cubes()).is_ok()
            })
        })
    }

    fn changes(&self) -> usize {
        match self {
            Self::Built(list) => list.changes(),
            Self::OneByOne => 0,
        }
    }
}

impl Classification {
    /// Has it built anew if that is worth it, and takes what was built.
    fn tend(&self) {
        let rebuild = &mut *self.rebuild.borrow_mut();
        if let Some(Rebuild { rules, built }) = rebuild {
            // Where there is no thread any more, nothing will come.
            let Ok(mut new) = built.try_recv() else { return };
            let edits = new.edits(rules, &self.rules);
            if edits.is_some_and(|edits| new.change(&edits, &self.rules, &self.greatest)) {
                *self.structure.borrow_mut() = new;
            }
            *rebuild = None;
            self.lookups.set(0);
        }
        let changes = self.structure.borrow().changes() as u64;
        let lost = (LOSS[0] + LOSS[1] * changes).saturating_mul(self.lookups.get());
        if changes > 0 && lost > BUILD * self.rules.len() as u64 {
            let (done, built) = channel();
            let (rules, greatest) = (Arc::clone(&self.rules), self.greatest);
            let work = move || {
                // Nobody may be waiting any more.
                let _ = done.send(Structure::new(&rules, &greatest));
            };
            if crate::threads::aside("classifier", work).is_ok() {
                *rebuild = Some(Rebuild { rules: Arc::clone(&self.rules), built });
            }
        }
    }
}

impl Library {
    /// What keys are looked up in for these rules; `asked` are the greatest values of the keys.
    fn classification(&self, rules: &Arc<[ClassifyRule]>, asked: &[u32]) -> Rc<Classification> {
        let all = &mut *self.all.borrow_mut();
        let fits = |c: &Classification| c.greatest.iter().zip(asked).all(|(most, n)| n <= most);
        if let Some(known) = all.iter().find(|c| Arc::ptr_eq(&c.rules, rules) && fits(c)) {
            return Rc::clone(known);
        }
        // Of those that nobody uses, the one that differs least.
        let nearest = (0..all.len())
            .filter(|&at| Rc::strong_count(&all[at]) == 1 && fits(&all[at]))
            .filter_map(|at| Some((at, all[at].structure.borrow().edits(&all[at].rules, rules)?)))
            .min_by_key(|(_, edits)| {
                edits.iter().map(|e| e.old.len() + e.new.len()).sum::<usize>()
            });
        let taken_over = nearest.and_then(|(at, edits)| {
            let mut old = Rc::try_unwrap(all.swap_remove(at)).ok()?;
            for edit in &edits {
                old.rules[edit.old.clone()].iter().for_each(|rule| old.asked.remove(rule));
                rules[edit.new.clone()].iter().for_each(|rule| old.asked.add(rule));
            }
            old.rules = Arc::clone(rules);
            let changed = old.structure.get_mut().change(&edits, rules, &old.greatest);
            changed.then_some(old)
        });
        let new = taken_over.unwrap_or_else(|| {
            // Whatever a rule that comes later may ask, there is a dimension left for it.
            let mut greatest = [u32::MAX; MAX_DIMENSIONS];
            greatest.iter_mut().zip(asked).for_each(|(most, &asked)| *most = asked);
            Classification {
                structure: RefCell::new(Structure::new(rules, &greatest)),
                asked: Asked::of(rules),
                rules: Arc::clone(rules),
                lookups: Cell::new(0),
                rebuild: RefCell::new(None),
                greatest,
            }
        });
        self.changed.set(self.changed.get() || new.structure.borrow().changes() > 0);
        let new = Rc::new(new);
        all.push(Rc::clone(&new));
        new
    }

    /// Forgets what no program uses.
    pub(crate) fn tidy(&self) {
        self.all.borrow_mut().retain(|c| Rc::strong_count(c) > 1);
    }

    /// Has what was changed built anew in another thread when that is worth it, and takes what was
    /// built. To be called now and then.
    #[inline]
    pub(crate) fn tend(&self) {
        if self.changed.get() {
            self.tend_changed();
        }
    }

    #[cold]
    fn tend_changed(&self) {
        let all = self.all.borrow();
        all.iter().for_each(|c| c.tend());
        self.changed.set(all.iter().any(|c| c.structure.borrow().changes() > 0));
    }
}

impl Classifiers {
    pub(super) fn new(program: &Program, library: &Library) -> Self {
        let steps = program.steps.iter().zip(0..).filter_map(|(step, id)| {
            let Step::Classify { keys, rules, .. } = step else { return None };
            let asked: Vec<u32> = keys.iter().map(|&key| greatest(program, key)).collect();
            Some((StepId(id), library.classification(rules, &asked)))
        });
        Self { steps: steps.collect() }
    }

    /// The sets that rules ask of a key at a step, if they are few.
    pub(super) fn asked(
        &self,
        step: StepId,
        key: usize,
    ) -> Option<impl Iterator<Item = &IntervalSet>> {
        let of_key = self.steps.get(&step)?.asked.0.get(key)?.as_ref()?;
        Some(of_key.iter().map(|(set, _)| set))
    }

    /// The arm that a key leads to at a step.
    pub(super) fn lookup(&self, step: StepId, key: &Key) -> Option<u32> {
        let mut found = [None];
        self.lookup_batch(step, std::slice::from_ref(key), &mut found);
        found[0]
    }

    /// The same for several keys.
    pub(super) fn lookup_batch(&self, step: StepId, keys: &[Key], found: &mut [Option<u32>]) {
        let Some(classification) = self.steps.get(&step) else { return found.fill(None) };
        classification.lookups.set(classification.lookups.get() + keys.len() as u64);
        match &*classification.structure.borrow() {
            Structure::Built(list) => list.lookup_batch(keys, found),
            Structure::OneByOne => {
                for (key, found) in keys.iter().zip(found) {
                    let rules = &classification.rules;
                    *found = rules.iter().find(|rule| matches(rule, key)).map(|rule| rule.arm);
                }
            }
        }
    }
}

/// Whether a key is in one of a rule's cubes.
fn matches(rule: &ClassifyRule, key: &Key) -> bool {
    rule.cubes.iter().any(|cube| {
        cube.iter().all(|(i, set)| {
            key.get(usize::from(*i)).is_some_and(|&number| set.contains(number.into()))
        })
    })
}

#[cfg(test)]
mod tests {

    use super::*;

    const GREATEST: [u32; 2] = [u32::MAX, 0xffff];

    fn rule(random: &mut fastrand::Rng) -> ClassifyRule {
        let mut range = |most: u128| {
            let low = random.u128(..most);
            IntervalSet::range(low, random.u128(low..=most))
        };
        let cube = vec![(0, range(200)), (1, range(20))];
        ClassifyRule { cubes: [cube].into(), arm: random.u32(..4), number: 0, span: None }
    }

    fn check(classification: &Rc<Classification>, rules: &[ClassifyRule]) {
        let steps = HashMap::from([(StepId(0), Rc::clone(classification))]);
        let classifiers = Classifiers { steps };
        for key in (0..220).flat_map(|a| (0..22).map(move |b| [a, b, 0, 0, 0, 0, 0, 0])) {
            let expected = rules.iter().find(|rule| matches(rule, &key)).map(|rule| rule.arm);
            assert_eq!(classifiers.lookup(StepId(0), &key), expected, "{key:?}");
        }
    }

    #[test]
    fn a_list_that_is_not_used_any_more_becomes_one_that_differs_a_little() {
        let random = &mut fastrand::Rng::with_seed(1);
        let library = Library::default();
        let mut rules: Vec<ClassifyRule> = (0..300).map(|_| rule(random)).collect();
        let mut used = library.classification(&rules.clone().into(), &GREATEST);
        check(&used, &rules);
        for round in 1..=20 {
            drop(used);
            rules.remove(random.usize(..rules.len()));
            rules.insert(random.usize(..=rules.len()), rule(random));
            used = library.classification(&rules.clone().into(), &GREATEST);
            library.tidy();
            assert_eq!(library.all.borrow().len(), 1);
            assert_eq!(used.structure.borrow().changes(), 2 * round);
            check(&used, &rules);
        }
    }

    #[test]
    fn what_few_sets_are_asked_of_is_known_while_rules_change() {
        let random = &mut fastrand::Rng::with_seed(5);
        let library = Library::default();
        let rule = |random: &mut fastrand::Rng, sets: u128| {
            let mut rule = rule(random);
            let cube = vec![(0, IntervalSet::range(random.u128(..200), 200))];
            let narrow = (1, IntervalSet::range(random.u128(..sets), 20));
            rule.cubes = [cube.into_iter().chain([narrow]).collect()].into();
            rule
        };
        let mut rules: Vec<ClassifyRule> = (0..100).map(|_| rule(random, 2)).collect();
        let mut used = library.classification(&rules.clone().into(), &GREATEST);
        let change = |used, rules: &[ClassifyRule]| {
            drop(used);
            library.classification(&rules.to_vec().into(), &GREATEST)
        };
        let asked = |used: &Rc<Classification>, key: usize| {
            let steps = HashMap::from([(StepId(0), Rc::clone(used))]);
            let classifiers = Classifiers { steps };
            let sets = classifiers.asked(StepId(0), key)?;
            let mut lows: Vec<u128> = sets.map(|set| set.intervals()[0].0).collect();
            lows.sort_unstable();
            Some(lows)
        };
        for low in 10..30 {
            assert_eq!([asked(&used, 0), asked(&used, 1)], [None, Some(vec![0, 1])]);
            // A third set comes and goes.
            let mut third = rule(random, 1);
            third.cubes = [vec![(1, IntervalSet::range(low, 40))]].into();
            rules.insert(random.usize(..=rules.len()), third.clone());
            used = change(used, &rules);
            assert_eq!(asked(&used, 1), Some(vec![0, 1, low]));
            rules.retain(|rule| *rule != third);
            used = change(used, &rules);
        }
        rules.extend((0..50).map(|_| rule(random, 20)));
        assert_eq!(asked(&change(used, &rules), 1), None);
    }

    #[test]
    fn a_rule_may_ask_what_no_rule_asked_before() {
        let random = &mut fastrand::Rng::with_seed(4);
        let library = Library::default();
        let mut rules: Vec<ClassifyRule> = (0..300).map(|_| rule(random)).collect();
        for (place, least) in [(0, 3), (150, 0), (301, 7)] {
            drop(library.classification(&rules.clone().into(), &GREATEST));
            let cubes: Vec<_> = (0..20).map(|_| rule(random).cubes[0].clone()).collect();
            let with_third = |mut cube: Vec<_>| {
                cube.push((2, IntervalSet::range(least, 9)));
                cube
            };
            let cubes = cubes.into_iter().map(with_third).collect();
            rules.insert(place, ClassifyRule { cubes, arm: 5, number: 0, span: None });
            let used = library.classification(&rules.clone().into(), &[u32::MAX, 0xffff, 15]);
            assert!(used.structure.borrow().changes() > 0, "it was built anew");
            let steps = HashMap::from([(StepId(0), Rc::clone(&used))]);
            let classifiers = Classifiers { steps };
            for third in [0, 3, 8, 15] {
                for key in (0..220).flat_map(|a| (0..22).map(move |b| [a, b, third, 0, 0, 0, 0, 0]))
                {
                    let expected = rules.iter().find(|rule| matches(rule, &key)).map(|r| r.arm);
                    assert_eq!(classifiers.lookup(StepId(0), &key), expected, "{key:?}");
                }
            }
        }
    }

    #[test]
    fn a_number_that_is_known_fits_where_any_was_asked() {
        let terms = vec![Term::Const(0), Term::Const(300)];
        let (state, tables, lookups, steps) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let entry = ir::Port { node: 0, port: 0 };
        let program = Program { entry, continuation: None, terms, state, tables, lookups, steps };
        assert_eq!([0, 1].map(|term| greatest(&program, TermId(term))), [0, 300]);
    }

    #[test]
    fn a_list_in_use_stays_what_it_is() {
        let random = &mut fastrand::Rng::with_seed(2);
        let library = Library::default();
        let mut rules: Vec<ClassifyRule> = (0..100).map(|_| rule(random)).collect();
        let (list, before): (Arc<[_]>, _) = (rules.clone().into(), rules.clone());
        let old = library.classification(&list, &GREATEST);
        assert!(Rc::ptr_eq(&old, &library.classification(&list, &GREATEST)));
        rules.remove(50);
        let new = library.classification(&rules.clone().into(), &GREATEST);
        check(&old, &before);
        check(&new, &rules);
        assert_eq!(new.structure.borrow().changes(), 0);
    }

    #[test]
    fn what_was_changed_is_built_anew_after_many_lookups() {
        let random = &mut fastrand::Rng::with_seed(3);
        let library = Library::default();
        let mut rules: Vec<ClassifyRule> = (0..60).map(|_| rule(random)).collect();
        let mut used = library.classification(&rules.clone().into(), &GREATEST);
        let mut change = |used, rules: &mut Vec<ClassifyRule>| {
            drop(used);
            rules.insert(random.usize(..=rules.len()), rule(random));
            library.classification(&rules.clone().into(), &GREATEST)
        };
        used = change(used, &mut rules);
        library.tend();
        assert!(used.rebuild.borrow().is_none(), "a few lookups are not worth it");
        used.lookups.set(u64::MAX);
        library.tend();
        assert!(used.rebuild.borrow().is_some());
        // It is not lost if the rules change meanwhile.
        used = change(used, &mut rules);
        while used.rebuild.borrow().is_some() {
            library.tend();
            std::thread::yield_now();
        }
        assert_eq!(used.structure.borrow().changes(), 1);
        check(&used, &rules);
    }
}
