//! Rules that change while keys are looked up.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::rule_set::{Cube, Key, MAX_RULE, RuleSet};
use crate::tuples::{Mixing, Tuples};
use crate::{Classifier, build};

/// Keys that a batch looks up side by side.
const LANES: usize = 64;
/// Tables and rules that are looked at for each cube, on average, to find one that covers it, and as many to find several
/// that do so together.
const EFFORT: usize = 64;
/// Parts of a cube that others left, beyond which it is not asked whether still others hold these.
const MOST_PARTS: usize = 256;

/// Rules by priority, the least of which wins, that can be added and removed one by one in
/// constant time.
///
/// Most lookups are answered by a structure made by [`build`] from the rules of some moment. Rules
/// added since then stand in a few hash tables, and those removed are marked; a lookup whose
/// answer was removed is answered by hash tables of the same rules. So rules that earlier ones
/// cover stand in hash tables only, for the time when one of these is removed. When
/// [`changes`](Self::changes) have become many, [`rebuild`](Self::rebuild) gives the work of
/// building anew to be done anywhere, such as in another thread, while rules change and keys are
/// looked up here; [`adopt`](Self::adopt) then takes the result.
pub struct Updatable {
    base: Arc<Base>,
    /// A bit for each cube of the base that was removed since.
    removed: Vec<u64>,
    /// Cubes added since the base was built.
    fresh: Tuples,
    /// Their rules, and the entries of each one's cubes.
    added: HashMap<u64, SmallVec<[u32; 2]>, Mixing>,
    /// Number of rules.
    len: usize,
    changes: usize,
    /// How often [`rebuild`](Self::rebuild) was called.
    asked: u64,
    /// The priorities of the rules that changed since.
    log: Vec<u64>,
}

/// A built structure and what it was built from.
struct Base {
    classifier: Box<dyn Classifier>,
    /// The same rules, numbered the same, for lookups that must pass some over.
    tuples: Tuples,
    /// Those that no key gets to while none is passed over: earlier ones hold all of theirs.
    shadowed: Tuples,
    greatest: Key,
    /// The rules' cubes in order of priority. The structure numbers them by place.
    cubes: Vec<Cube>,
    /// The priority of each.
    priorities: Vec<u64>,
    /// The place of each rule's first cube.
    places: HashMap<u64, u32, Mixing>,
}

/// Rules to build a structure from.
pub struct Rebuild {
    asked: u64,
    base: Arc<Base>,
    removed: Vec<u64>,
    fresh: Vec<(u64, Cube)>,
}

/// A structure that [`Updatable::adopt`] takes.
pub struct Rebuilt {
    asked: u64,
    base: Arc<Base>,
}

impl Base {
    fn new(greatest: Key, mut cubes: Vec<(u64, Cube)>) -> Self {
        cubes.sort_by_key(|c| c.0);
        cubes.truncate(MAX_RULE as usize);
        let mut rules = RuleSet::new(&greatest, cubes.len());
        let mut places = HashMap::with_capacity_and_hasher(cubes.len(), Mixing::default());
        let mut tuples = Tuples::new(greatest, cubes.len());
        let mut shadowed = Tuples::new(greatest, 0);
        let (mut effort, mut together) = (EFFORT * cubes.len(), EFFORT * cubes.len());
        for (place, (priority, cube)) in (0..).zip(&cubes) {
            places.entry(*priority).or_insert(place);
            if effort > 0 {
                let is_reached = Cell::new(true);
                let covers = |other: u64| {
                    is_reached.set(false);
                    cubes[other as usize].1.covers(cube)
                };
                let (cover, looked) = tuples.trace(&cube.low, u64::MAX, covers);
                effort = effort.saturating_sub(looked[0] + looked[1]);
                let mut of_several = || {
                    !is_reached.get()
                        && tuples.lookup(&cube.high, u64::MAX, |_| true).is_some()
                        && are_covering(&cubes[..place as usize], cube, &mut together)
                };
                if cover.is_some() || of_several() {
                    shadowed.insert(cube, place.into());
                    continue;
                }
            }
            tuples.insert(cube, place.into());
            let pushed = rules.push(Cube { rule: place, ..*cube });
            debug_assert_eq!(pushed, Ok(()), "there is room for as many as there are");
        }
        let (priorities, cubes) = cubes.into_iter().unzip();
        Self { classifier: build(&rules), tuples, shadowed, greatest, cubes, priorities, places }
    }

    /// The place of the first cube that holds a key and is not passed over.
    fn first(&self, key: &Key, wanted: impl Fn(u64) -> bool) -> Option<u64> {
        let first = self.tuples.lookup(key, u64::MAX, &wanted);
        self.shadowed.lookup(key, first.unwrap_or(u64::MAX), wanted).or(first)
    }

    /// Marks the cubes of a rule; whether it was here and not marked.
    fn mark(&self, priority: u64, bits: &mut [u64]) -> bool {
        let Some(&first) = self.places.get(&priority) else { return false };
        let first = first as usize;
        if is_set(bits, first) {
            return false;
        }
        let of_rule = self.priorities[first..].iter().take_while(|p| **p == priority);
        for (i, _) in (first..).zip(of_rule) {
            bits[i / 64] |= 1 << (i % 64);
        }
        true
    }
}

/// Whether some cubes together hold every key that another holds, if it takes no more looks at cubes than are left to find
/// out.
fn are_covering(all: &[(u64, Cube)], cube: &Cube, left: &mut usize) -> bool {
    let (mut parts, mut rest) = (vec![*cube], Vec::new());
    for (_, other) in all {
        *left = left.saturating_sub(parts.len());
        if *left == 0 || parts.len() > MOST_PARTS {
            return false;
        }
        if other.meets(cube) {
            for part in parts.drain(..) {
                match other.meets(&part) {
                    true => part.add_rest(other, &mut rest),
                    false => rest.push(part),
                }
            }
            std::mem::swap(&mut parts, &mut rest);
            if parts.is_empty() {
                return true;
            }
        }
    }
    false
}

impl Rebuild {
    /// Builds the structure, which takes its time.
    pub fn build(self) -> Rebuilt {
        let old = self.base.priorities.iter().copied().zip(self.base.cubes.iter().copied());
        let kept = old.enumerate().filter(|(i, _)| !is_set(&self.removed, *i));
        let cubes = kept.map(|(_, cube)| cube).chain(self.fresh).collect();
        Rebuilt { asked: self.asked, base: Arc::new(Base::new(self.base.greatest, cubes)) }
    }
}

fn is_set(bits: &[u64], i: usize) -> bool {
    bits.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 == 1)
}

impl Updatable {
    /// The rules of a set, whose numbers become their priorities.
    pub fn new(rules: &RuleSet) -> Self {
        Self::with_priorities(rules, u64::from)
    }

    /// The rules of a set, with these priorities.
    pub(crate) fn with_priorities(rules: &RuleSet, priority: impl Fn(u32) -> u64) -> Self {
        let cubes = rules.cubes().iter().map(|cube| (priority(cube.rule), *cube)).collect();
        let base = Arc::new(Base::new(*rules.greatest(), cubes));
        Self {
            removed: vec![0; base.cubes.len().div_ceil(64)],
            fresh: Tuples::new(base.greatest, 64),
            added: HashMap::default(),
            len: base.places.len(),
            changes: 0,
            asked: 0,
            log: Vec::new(),
            base,
        }
    }

    /// Adds a rule that matches the keys of any of these cubes, in place of the one that had the
    /// priority. Takes constant time. (With the greatest priority of all, it never matches.)
    pub fn insert(&mut self, priority: u64, cubes: &[Cube]) {
        self.take_out(priority);
        let sound = |cube: &&Cube| (0..cube.low.len()).all(|d| cube.low[d] <= cube.high[d]);
        let entries = cubes.iter().filter(sound).map(|cube| self.fresh.insert(cube, priority));
        self.added.insert(priority, entries.collect());
        self.len += 1;
        self.changed(priority);
    }

    /// Removes a rule; whether there was one. Takes constant time.
    pub fn remove(&mut self, priority: u64) -> bool {
        let was_there = self.take_out(priority);
        if was_there {
            self.changed(priority);
        }
        was_there
    }

    fn take_out(&mut self, priority: u64) -> bool {
        let was_there = match self.added.remove(&priority) {
            Some(entries) => {
                entries.into_iter().for_each(|entry| self.fresh.remove(entry));
                true
            }
            None => self.base.mark(priority, &mut self.removed),
        };
        self.len -= usize::from(was_there);
        was_there
    }

    fn changed(&mut self, priority: u64) {
        self.changes += 1;
        if self.asked > 0 {
            self.log.push(priority);
        }
    }

    /// How many rules were added and removed since what the structure was built from. Lookups
    /// slow down with each.
    pub fn changes(&self) -> usize {
        self.changes
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        let Base { tuples, shadowed, .. } = &*self.base;
        let tables = tuples.memory() + shadowed.memory() + self.fresh.memory();
        let rules = self.base.cubes.len() * size_of::<(Cube, u64, u64, u32)>();
        self.base.classifier.memory() + tables + rules
    }

    /// The priorities of the rules that are not in the structure that was built, because no key gets
    /// to any of their cubes while the rules before them stay; ascending. Some may be missed where
    /// there are very many.
    pub fn shadowed(&self) -> Vec<u64> {
        let mut shadowed = vec![false; self.base.cubes.len()];
        self.base.shadowed.cubes().for_each(|(place, _)| shadowed[place as usize] = true);
        let cubes: Vec<(u64, bool)> = self.base.priorities.iter().copied().zip(shadowed).collect();
        let rules = cubes.chunk_by(|a, b| a.0 == b.0);
        rules.filter(|rule| rule.iter().all(|cube| cube.1)).map(|rule| rule[0].0).collect()
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The work of building a structure from the rules as they are now.
    pub fn rebuild(&mut self) -> Rebuild {
        self.log = Vec::new();
        self.asked += 1;
        Rebuild {
            asked: self.asked,
            base: Arc::clone(&self.base),
            removed: self.removed.clone(),
            fresh: self.fresh.cubes().collect(),
        }
    }

    /// Takes the structure that was built from what the last [`rebuild`](Self::rebuild) gave; one
    /// from an earlier call is left aside. Takes time in proportion to the changes. Gives back
    /// what it has no more use for, to be dropped where there is time.
    pub fn adopt(&mut self, rebuilt: Rebuilt) -> Rebuilt {
        if rebuilt.asked != self.asked || Arc::ptr_eq(&rebuilt.base, &self.base) {
            return rebuilt;
        }
        let old = Rebuilt { asked: 0, base: std::mem::replace(&mut self.base, rebuilt.base) };
        self.removed = vec![0; self.base.cubes.len().div_ceil(64)];
        let mut log = std::mem::take(&mut self.log);
        log.sort_unstable();
        log.dedup();
        self.changes = log.len();
        for &priority in &log {
            self.base.mark(priority, &mut self.removed);
        }
        let fresh: Vec<(u64, Cube)> = self.fresh.cubes().collect();
        self.fresh.clear();
        self.added.retain(|priority, entries| {
            // A rule without cubes is in no base.
            let stays = entries.is_empty() || log.binary_search(priority).is_ok();
            entries.clear();
            stays
        });
        for (priority, cube) in &fresh {
            if let Some(entries) = self.added.get_mut(priority) {
                entries.push(self.fresh.insert(cube, *priority));
            }
        }
        old
    }

    /// The priority of the least rule that holds the key.
    pub fn lookup(&self, key: &Key) -> Option<u64> {
        let mut found = [None];
        self.lookup_batch(std::slice::from_ref(key), &mut found);
        found[0]
    }

    /// Looks several keys up at once.
    ///
    /// # Panics
    /// If `found` is shorter than `keys`.
    pub fn lookup_batch(&self, keys: &[Key], found: &mut [Option<u64>]) {
        self.lookup_each(keys, &mut found[..keys.len()], |priority| priority);
    }

    /// Looks several keys up and says what their priorities stand for.
    #[inline]
    pub(crate) fn lookup_each<T>(
        &self,
        keys: &[Key],
        found: &mut [Option<T>],
        of: impl Fn(u64) -> T,
    ) {
        let mut places = [None; LANES];
        for (keys, found) in keys.chunks(LANES).zip(found.chunks_mut(LANES)) {
            self.base.classifier.lookup_batch(keys, &mut places);
            if self.changes == 0 {
                for (found, place) in found.iter_mut().zip(&places) {
                    *found = place.map(|place| of(self.base.priorities[place as usize]));
                }
                continue;
            }
            for ((key, found), place) in keys.iter().zip(found).zip(&places) {
                let base = match place {
                    Some(place) if self.is_removed((*place).into()) => {
                        self.base.first(key, |place| !self.is_removed(place))
                    }
                    place => place.map(u64::from),
                };
                let base = base.map(|place| self.base.priorities[place as usize]);
                let added = self.fresh.lookup(key, base.unwrap_or(u64::MAX), |_| true);
                *found = added.or(base).map(&of);
            }
        }
    }

    /// What most keys are looked up in, for people.
    pub fn describe(&self) -> String {
        match self.changes {
            0 => self.base.classifier.describe(),
            changes => format!("{}, changed {changes} times", self.base.classifier.describe()),
        }
    }

    fn is_removed(&self, place: u64) -> bool {
        is_set(&self.removed, place as usize)
    }
}
