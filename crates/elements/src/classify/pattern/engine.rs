//! How rules are executed: as cubes that keys are looked up in where there are many, else as a
//! program.

use std::rc::Rc;

use classify::{Key, NoRoom, RuleList};
use net::Batch;

use super::cubes::{Keys, cubes};
use super::expr::Pattern;
use super::filter::CompiledRule;
use super::program::{Headers, Program};
use super::version::Version;

/// A program of more tests than this is replaced by a classifier.
const MANY_TESTS: usize = 32;
/// So many rules may stand beside the classifier that its keys say nothing of.
const MAX_UNLISTED: usize = 16;
/// The classifier is built anew after so many changes, and one for so many rules.
const CHANGES: usize = 128;
const RULES_PER_CHANGE: usize = 8;

/// Finds the arm of the first rule that matches.
pub(super) enum Engine {
    Program(Program),
    Lookup(Box<Lookup>),
}

/// Looks packets' keys up.
pub(super) struct Lookup {
    keys: Keys,
    /// All rules; those that the keys say nothing of without cubes.
    list: RuleList,
    /// Rules that came later and look at something that is not in the keys, with the rank that
    /// they have in the list.
    unlisted: Vec<(u64, Program)>,
    /// The keys of a batch and what they matched.
    batch: Vec<Key>,
    found: Vec<Option<u64>>,
}

/// Stands for the arm of a packet that is still to be looked up.
const PENDING: u32 = u32::MAX;

fn patterns(rules: &[Rc<CompiledRule>]) -> impl DoubleEndedIterator<Item = (&Pattern, u32)> {
    rules.iter().map(|made| (&made.rule.pattern, made.rule.arm))
}

impl Engine {
    pub(super) fn new(rules: &[Rc<CompiledRule>], otherwise: u32) -> Self {
        let mut tests = 0;
        for (pattern, _) in patterns(rules) {
            pattern.for_each_test(&mut |test| tests += test.set.intervals().len());
        }
        match Lookup::new(rules).filter(|_| tests > MANY_TESTS) {
            Some(lookup) => Self::Lookup(Box::new(lookup)),
            None => Self::Program(Program::new(patterns(rules), otherwise)),
        }
    }

    /// Takes over that rules from an index on were removed and others, which are among `rules`,
    /// inserted.
    pub(super) fn change(
        &mut self,
        rules: &[Rc<CompiledRule>],
        index: usize,
        removed: usize,
        inserted: usize,
        otherwise: u32,
    ) {
        let new = &rules[index..index + inserted];
        let done = match self {
            Self::Program(_) => Err(NoRoom),
            Self::Lookup(lookup) => lookup.change(index, removed, new),
        };
        if done.is_err() {
            *self = Self::new(rules, otherwise);
        }
    }

    /// For people.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Program(program) => format!("a program of {} tests\n", program.len()),
            Self::Lookup(lookup) => {
                let kilobytes = lookup.list.memory().div_ceil(1024);
                format!("{}, {kilobytes} KB\n", lookup.list.describe())
            }
        }
    }
}

impl Lookup {
    fn new(rules: &[Rc<CompiledRule>]) -> Option<Self> {
        let numbered: Vec<(&Pattern, u32)> =
            patterns(rules).zip(0..).map(|((pattern, _), number)| (pattern, number)).collect();
        let (keys, set) = cubes(&numbered)?;
        let arms: Vec<u32> = patterns(rules).map(|(_, arm)| arm).collect();
        let list = RuleList::new(&set, &arms).ok()?;
        Some(Self { keys, list, unlisted: Vec::new(), batch: Vec::new(), found: Vec::new() })
    }

    fn change(
        &mut self,
        index: usize,
        removed: usize,
        new: &[Rc<CompiledRule>],
    ) -> Result<(), NoRoom> {
        for _ in 0..removed {
            if let Some(rank) = self.list.rank(index) {
                self.unlisted.retain(|rule| rule.0 != rank);
            }
            self.list.remove(index);
        }
        for (index, made) in (index..).zip(new) {
            let (pattern, arm) = (&made.rule.pattern, made.rule.arm);
            match self.keys.cubes(pattern) {
                Some(cubes) => self.list.insert(index, arm, &cubes)?,
                None => {
                    self.list.insert(index, arm, &[])?;
                    let rank = self.list.rank(index).ok_or(NoRoom)?;
                    self.unlisted.push((rank, Program::new([(pattern, 1)], 0)));
                }
            }
        }
        let most = CHANGES + self.list.len() / RULES_PER_CHANGE;
        match self.unlisted.len() <= MAX_UNLISTED && self.list.changes() <= most {
            true => Ok(()),
            false => Err(NoRoom),
        }
    }

    /// Appends the arms that packets take; `headerless` says so for those without an IP header, and `otherwise` is that of
    /// packets that nothing matches.
    pub(super) fn arms(
        &mut self,
        batch: &Batch,
        version: Version,
        (headerless, otherwise): (&Program, u32),
        arms: &mut Vec<u32>,
    ) {
        let first = arms.len();
        self.batch.clear();
        for packet in batch.iter() {
            version.with(packet, |headers| {
                if headers.network.is_empty() {
                    arms.push(headerless.run(headers));
                } else {
                    arms.push(PENDING);
                    self.batch.push(self.keys.key(headers));
                }
            });
        }
        self.found.resize(self.batch.len(), None);
        self.list.rank_batch(&self.batch, &mut self.found);
        let pending =
            arms[first..].iter_mut().zip(batch.iter()).filter(|(arm, _)| **arm == PENDING);
        for ((arm, packet), &found) in pending.zip(&self.found) {
            let found = match self.unlisted.is_empty() {
                true => found,
                false => version.with(packet, |headers| self.with_unlisted(headers, found)),
            };
            *arm = found.map_or(otherwise, RuleList::arm);
        }
    }

    /// The least rank of what was found and of the unlisted that match.
    #[cold]
    fn with_unlisted(&self, headers: &Headers<'_>, found: Option<u64>) -> Option<u64> {
        let matching = self.unlisted.iter().filter(|(_, program)| program.run(headers) == 1);
        matching.map(|&(rank, _)| rank).chain(found).min()
    }
}
