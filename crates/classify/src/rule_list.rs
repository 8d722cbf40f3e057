//! Rules in a list that changes rule by rule.

use std::ops::Range;

use crate::rule_set::{Cube, Key, RuleSet};
use crate::updatable::Updatable;

/// Bits of a priority that say where the rule leads.
const ARM_BITS: u32 = 16;
/// Rules are so far apart at the most, so that others fit between them.
const STEP: u64 = 1 << 24;
/// Where the first rule stands: as many fit before it as follow.
const FIRST: u64 = 1 << 46;
/// One past the last position that there is.
const END: u64 = 1 << (u64::BITS - ARM_BITS);

/// Where a rule leads to is above [`RuleList::MAX_ARM`], or there is no place left between two
/// rules: the list must be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

/// A list of rules of which the first that holds a key decides where it leads, its arm. Rules are
/// inserted and removed by their index, which takes little time: see [`Updatable`].
pub struct RuleList {
    rules: Updatable,
    /// The priority of each rule, ascending: its position, then its arm.
    priorities: Vec<u64>,
}

impl RuleList {
    /// The greatest arm.
    pub const MAX_ARM: u32 = (1 << ARM_BITS) - 1;

    /// The rules of a set, numbered from 0 by their index in the list; `arms` are where they lead.
    ///
    /// # Errors
    /// [`NoRoom`] if an arm is too great or there are too many rules.
    ///
    /// # Panics
    /// If the set has a rule without an arm.
    pub fn new(rules: &RuleSet, arms: &[u32]) -> Result<Self, NoRoom> {
        let step = (FIRST / (arms.len() as u64 + 1)).min(STEP);
        let priority = |(index, &arm): (u64, &u32)| match arm {
            0..=Self::MAX_ARM if step > 0 => Ok(priority(FIRST + index * step, arm)),
            _ => Err(NoRoom),
        };
        let priorities = (0..).zip(arms).map(priority).collect::<Result<Vec<u64>, _>>()?;
        let rules = Updatable::with_priorities(rules, |rule| priorities[rule as usize]);
        Ok(Self { rules, priorities })
    }

    /// Inserts a rule that holds the keys of any of these cubes, in front of the one with this
    /// index, or at the end if there is none.
    ///
    /// # Errors
    /// [`NoRoom`] if it cannot be inserted; the list stays as it was.
    pub fn insert(&mut self, index: usize, arm: u32, cubes: &[Cube]) -> Result<(), NoRoom> {
        let index = index.min(self.priorities.len());
        let position = |at: usize| self.priorities.get(at).map(|p| p >> ARM_BITS);
        let before = index.checked_sub(1).and_then(position);
        let new = match (before, position(index)) {
            (None, None) => FIRST,
            (None, Some(after)) if after > 0 => after - STEP.min(after.div_ceil(2)),
            (Some(before), None) if before + STEP < END => before + STEP,
            (Some(before), Some(after)) if after - before > 1 => before + (after - before) / 2,
            _ => return Err(NoRoom),
        };
        if arm > Self::MAX_ARM {
            return Err(NoRoom);
        }
        self.rules.insert(priority(new, arm), cubes);
        self.priorities.insert(index, priority(new, arm));
        Ok(())
    }

    /// Removes the rule with this index, if there is one.
    pub fn remove(&mut self, index: usize) {
        if index < self.priorities.len() {
            self.rules.remove(self.priorities.remove(index));
        }
    }

    /// The arm that a key leads to.
    pub fn lookup(&self, key: &Key) -> Option<u32> {
        let mut found = [None];
        self.lookup_batch(std::slice::from_ref(key), &mut found);
        found[0]
    }

    /// The same for several keys at once.
    ///
    /// # Panics
    /// If `found` is shorter than `keys`.
    pub fn lookup_batch(&self, keys: &[Key], found: &mut [Option<u32>]) {
        self.rules.lookup_each(keys, &mut found[..keys.len()], Self::arm);
    }

    /// The ranks of the rules that keys match: see [`Self::rank`].
    ///
    /// # Panics
    /// If `found` is shorter than `keys`.
    pub fn rank_batch(&self, keys: &[Key], found: &mut [Option<u64>]) {
        self.rules.lookup_batch(keys, found);
    }

    /// A number that is less than those of later rules and stays the same while the rule is in the
    /// list.
    pub fn rank(&self, index: usize) -> Option<u64> {
        self.priorities.get(index).copied()
    }

    /// The arm of the rule that has this rank.
    #[inline]
    pub fn arm(rank: u64) -> u32 {
        rank as u32 & Self::MAX_ARM
    }

    /// The indices of the rules that were left out of the structure when it was built, ascending;
    /// see [`Updatable::shadowed`].
    pub fn shadowed(&self) -> Vec<usize> {
        let shadowed = self.rules.shadowed().into_iter();
        shadowed.filter_map(|rank| self.priorities.binary_search(&rank).ok()).collect()
    }

    /// How many rules there are.
    pub fn len(&self) -> usize {
        self.priorities.len()
    }

    /// Whether there is no rule.
    pub fn is_empty(&self) -> bool {
        self.priorities.is_empty()
    }

    /// How many rules were inserted and removed since the list was made. Lookups slow down with
    /// each.
    pub fn changes(&self) -> usize {
        self.rules.changes()
    }

    /// What keys are looked up in, for people.
    pub fn describe(&self) -> String {
        self.rules.describe()
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.rules.memory() + size_of_val(&self.priorities[..])
    }
}

fn priority(position: u64, arm: u32) -> u64 {
    position << ARM_BITS | u64::from(arm)
}

/// A part of a list that another part replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// Indices in the old list.
    pub old: Range<usize>,
    /// Indices in the new list.
    pub new: Range<usize>,
}

/// Items are looked for so far ahead.
const AHEAD: usize = 64;

/// How a list of `old` items becomes one of `new`, in order, by comparing items; `None` if more
/// than `most` would be removed or inserted.
pub fn edits(
    old: usize,
    new: usize,
    most: usize,
    same: impl Fn(usize, usize) -> bool,
) -> Option<Vec<Edit>> {
    let (least, mut before, mut behind) = (old.min(new), 0, 0);
    while before < least && same(before, before) {
        before += 1;
    }
    while behind < least - before && same(old - behind - 1, new - behind - 1) {
        behind += 1;
    }
    let (old, new) = (old - behind, new - behind);
    let (mut i, mut j) = (before, before);
    let (mut edits, mut changed) = (Vec::new(), 0);
    while i < old || j < new {
        // Both go on with the nearest items that are the same.
        let nearest = (1..=2 * AHEAD).find_map(|sum| {
            let mut of_old = sum.saturating_sub(AHEAD)..=sum.min(AHEAD);
            let fits =
                |&by: &usize| i + by < old && j + sum - by < new && same(i + by, j + sum - by);
            of_old.find(fits).map(|by| (by, sum - by))
        });
        let (removed, added) = nearest.unwrap_or((old - i, new - j));
        changed += removed + added;
        if changed > most {
            return None;
        }
        edits.push(Edit { old: i..i + removed, new: j..j + added });
        (i, j) = (i + removed, j + added);
        while i < old && j < new && same(i, j) {
            (i, j) = (i + 1, j + 1);
        }
    }
    Some(edits)
}
