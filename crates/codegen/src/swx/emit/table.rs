//! Tables: keys, and what their entries match and lead to.

use std::collections::BTreeSet;

use ir::IntervalSet;
use ir::program::TermId;

use super::super::change::{LONG, in_front_of};
use super::number::{Numbers, WORD, pieces};
use crate::Lack;
use crate::number::ones;
use crate::rule::prefixes;

/// Entries of a table.
pub(super) const MOST_ENTRIES: usize = 1 << 17;

/// A number as a key: the bits of an operand that it is.
#[derive(Clone, Debug)]
pub(super) struct Key {
    /// What is looked up; none where the number is computed first.
    operand: Option<String>,
    term: TermId,
    /// Bits of the operand, the lowest of those that count, and how many.
    of: u16,
    low: u16,
    width: u16,
}

/// How a table's key field is matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) width: u16,
}

/// An entry: value and mask of each key; the first that matches counts.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) matches: Vec<(u128, u128)>,
    pub(super) call: Call,
    pub(super) origin: String,
}

/// An action with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) action: String,
    pub(super) arguments: Vec<(String, u128)>,
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// The elements whose table it is.
    pub(super) origins: Vec<String>,
    pub(super) keys: Vec<Field>,
    pub(super) is_exact: bool,
    pub(super) entries: Vec<Entry>,
}

impl Table {
    /// Whether it takes long to be built anew: another one stands in front of it, for changes.
    pub(super) fn is_long(&self) -> bool {
        !self.is_exact && self.entries.len() > LONG
    }

    /// The table in front of it.
    pub(super) fn front(&self) -> Self {
        let origins = vec![format!("Changes of {}, until it is built anew", self.name)];
        Self { name: in_front_of(&self.name), origins, entries: Vec::new(), ..self.clone() }
    }

    /// Whether it is the same as one with these keys and entries, whoever's they are.
    pub(super) fn is(&self, keys: &[Field], is_exact: bool, entries: &[Entry]) -> bool {
        let same = |(a, b): (&Entry, &Entry)| (&a.matches, &a.call) == (&b.matches, &b.call);
        (&self.keys[..], self.is_exact, self.entries.len()) == (keys, is_exact, entries.len())
            && self.entries.iter().zip(entries).all(same)
    }

    pub(super) fn actions(&self) -> BTreeSet<&str> {
        self.entries.iter().map(|entry| entry.call.action.as_str()).collect()
    }
}

/// A row of a table that is made: what each key has to be, `None` if that does not matter.
pub(super) struct Line {
    pub(super) sets: Vec<Option<IntervalSet>>,
    pub(super) call: Call,
    pub(super) origin: String,
}

/// A number as a key.
///
/// # Errors
/// It is neither computed nor looked up as it is.
pub(super) fn key(numbers: &mut Numbers<'_>, term: TermId) -> Result<Key, Lack> {
    let width = numbers.program.width(term).max(1);
    if let Some(operand) = numbers.operand(term) {
        return Ok(Key { operand: Some(operand), term, of: width, low: 0, width });
    }
    // Some bits of what is moved as a whole only.
    if let Some(field) = crate::rule::input_bits(numbers.program, term)
        && let Some(all) = pieces(numbers.placed, field.offset.into(), field.width)
        && let [piece] = &all[..]
        && piece.container.width > WORD
    {
        let (of, low) = (piece.container.width, piece.low);
        let (instance, operand) = (piece.placed.instance, piece.operand());
        numbers.read.insert(instance);
        return Ok(Key { operand: Some(operand), term, of, low, width });
    }
    let lines = numbers.code.lines.len();
    let computed = numbers.bits(term, 0, width, 0);
    numbers.code.lines.truncate(lines);
    computed?;
    Ok(Key { operand: None, term, of: width.next_multiple_of(8), low: 0, width })
}

/// Writes the instructions that put the numbers into the key fields.
pub(super) fn load(numbers: &mut Numbers<'_>, keys: &[Key]) -> Result<Vec<Field>, Lack> {
    let mut fields: Vec<Field> = Vec::new();
    for key in keys {
        let at = fields.iter().filter(|field| field.width == key.of).count();
        let name = numbers.code.key(key.of, at);
        let operand = match &key.operand {
            Some(operand) => operand.clone(),
            None => {
                numbers.bits(key.term, 0, key.width, 0)?;
                numbers.code.number(0)?
            }
        };
        numbers.code.run(format!("mov {name} {operand}"));
        fields.push(Field { name, width: key.of });
    }
    Ok(fields)
}

impl Key {
    /// What an entry matches where all bits count.
    fn all(&self) -> u128 {
        ones(self.of.into())
    }

    fn place(&self, value: u128, mask: u128) -> (u128, u128) {
        let up = |bits: u128| bits.checked_shl(self.low.into()).unwrap_or(0);
        (up(value), up(mask))
    }

    /// Values and masks for a set.
    fn matches(&self, set: &IntervalSet, is_exact: bool) -> Result<Vec<(u128, u128)>, Lack> {
        let set = set.intersect(&IntervalSet::range(0, ones(self.width.into())));
        if is_exact {
            return Ok(set.as_single().map(|value| (value, self.all())).into_iter().collect());
        }
        // Bits above those of the number are 0.
        let above = match self.operand.is_none() {
            true => self.all() & !ones(self.width.into()),
            false => 0,
        };
        let all = match set.as_masked(self.width) {
            Some(one) => vec![one],
            None => prefixes(&set, self.width, 1 << 12)
                .map_err(|entries| Lack::Match("a number".into(), entries))?,
        };
        Ok(all
            .into_iter()
            .map(|(value, mask)| {
                let (value, mask) = self.place(value, mask);
                (value, mask | if mask == 0 { 0 } else { above })
            })
            .collect())
    }
}

/// Whether entries match exactly: every line says one number for every key.
pub(super) fn is_exact(keys: &[Key], lines: &[Line]) -> bool {
    let whole = |key: &Key| key.operand.is_none() || key.of == key.width;
    keys.iter().all(whole)
        && lines.iter().all(|line| {
            line.sets.iter().all(|set| set.as_ref().is_some_and(|set| set.as_single().is_some()))
        })
}

/// The entries of lines.
///
/// # Errors
/// There would be too many.
pub(super) fn entries(keys: &[Key], lines: Vec<Line>, is_exact: bool) -> Result<Vec<Entry>, Lack> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut seen: BTreeSet<Vec<(u128, u128)>> = BTreeSet::new();
    for line in lines {
        let mut all: Vec<Vec<(u128, u128)>> = vec![Vec::new()];
        for (key, set) in keys.iter().zip(&line.sets) {
            let some = match set {
                None => vec![(0, 0)],
                Some(set) => key.matches(set, is_exact)?,
            };
            if all.len().saturating_mul(some.len()) > MOST_ENTRIES {
                return Err(Lack::Room("entries", MOST_ENTRIES + 1, MOST_ENTRIES));
            }
            let with = |one: &Vec<(u128, u128)>| -> Vec<Vec<(u128, u128)>> {
                some.iter().map(|more| one.iter().copied().chain([*more]).collect()).collect()
            };
            all = all.iter().flat_map(with).collect();
        }
        for matches in all {
            // Of equal ones the first counts.
            if seen.insert(matches.clone()) {
                let (call, origin) = (line.call.clone(), line.origin.clone());
                entries.push(Entry { matches, call, origin });
            }
        }
        if entries.len() > MOST_ENTRIES {
            return Err(Lack::Room("entries", entries.len(), MOST_ENTRIES));
        }
    }
    Ok(entries)
}
