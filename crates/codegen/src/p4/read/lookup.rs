//! Tables that are lookups of the segment: what they find stays one number, however many entries there are.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ir::program::{Entries, LookupId, Program, Term, TermId};
use ir::{IntervalSet, PrefixTable};

use super::entries::{Entry, Match};
use super::machine::{Argument, Continuation, Machine, Next, State, Stop, Val};
use crate::symbolic::graph::Rules;

/// Entries from which on a table is compared with lookups.
const LEAST: usize = 64;

/// What entries do alike: their action, and by argument the number of the value of a row that it is, or a number.
type Group = (usize, Vec<Result<u8, u128>>);

impl Machine<'_> {
    /// The lookup that a table is, if its entries are those of one, and what they do depends on what was found.
    pub(super) fn looked_up(
        &mut self,
        keys: &[Val],
        entries: &[Entry],
        (default, values): (usize, &[u128]),
        at: usize,
        state: &State,
    ) -> Result<Option<Next>, Stop> {
        let Some(program) = self.of.filter(|_| entries.len() >= LEAST) else { return Ok(None) };
        // All other keys are numbers that are known.
        let open = |of: &&(usize, &Val)| of.1.of.is_none_or(|of| self.terms.value(of).is_none());
        let all: Vec<(usize, &Val)> = keys.iter().enumerate().collect();
        let mut is_open = all.iter().filter(open);
        let (Some(&(key, Val { width, of: Some(number) })), None) =
            (is_open.next(), is_open.next())
        else {
            return Ok(None);
        };
        let mut left: Vec<(u128, u16, &Entry)> = Vec::new();
        for entry in entries {
            self.spend()?;
            let mut matches = true;
            for (at, (of, value)) in entry.matches.iter().zip(keys).enumerate() {
                let value = value.of.and_then(|of| self.terms.value(of));
                matches &= match (*of, value) {
                    _ if at == key => true,
                    (Match::Exact(is), Some(value)) => is == value,
                    (Match::Any, _) => true,
                    _ => return Ok(None),
                };
            }
            if !matches {
                continue;
            }
            let (prefix, length) = match entry.matches[key] {
                Match::Exact(value) => (value, *width),
                Match::Prefix(value, length) => (value, length),
                Match::Any => (0, 0),
                _ => return Ok(None),
            };
            // The first that matches counts: it has to be the longest.
            if left.last().is_some_and(|last| last.1 < length) {
                return Ok(None);
            }
            left.push((prefix, length, entry));
        }
        if left.len() < LEAST {
            return Ok(None);
        }
        let Some((lookup, rows)) = lookup(program, *number, *width, &left) else { return Ok(None) };
        let Some(groups) = groups(&left, &rows) else { return Ok(None) };
        let bound = |machine: &mut Self, index: u8| {
            let of = machine.terms.add(Term::Bound(lookup, index));
            let value = |row: &Arc<[u128]>| row.get(usize::from(index)).copied().unwrap_or(0);
            if rows.iter().all(|row| value(row) != 0) {
                machine.terms.is_never_zero(of);
            }
            of
        };
        let mut places = Vec::new();
        for (action, arguments) in &groups.all {
            let of = |argument: &Result<u8, u128>| match *argument {
                Ok(index) => Argument::Found(bound(self, index)),
                Err(value) => Argument::Number(value),
            };
            let arguments = arguments.iter().map(of).collect();
            places.push(Continuation {
                at: at + 1,
                first: Some((*action, arguments)),
                state: state.clone(),
            });
        }
        let miss = places.len();
        let values = values.iter().map(|value| Argument::Number(*value)).collect();
        places.push(Continuation {
            at: at + 1,
            first: Some((default, values)),
            state: state.clone(),
        });
        let mut rules: Rules = Vec::new();
        let mut keys = Vec::new();
        if let Some((index, numbers)) = groups.by {
            keys.push(bound(self, index));
            for (place, numbers) in numbers.into_iter().enumerate() {
                let numbers = numbers.into_iter().map(|number| (number, number));
                rules.push((
                    vec![(0, IntervalSet::from_intervals(numbers.collect::<Vec<_>>()))],
                    place,
                ));
            }
        } else {
            rules.push((Vec::new(), 0));
        }
        Ok(Some(Next::Lookup { lookup, keys, rules, places, miss }))
    }
}

/// The lookup of that number whose entries these are, and their rows.
fn lookup(
    program: &Program,
    number: TermId,
    width: u16,
    left: &[(u128, u16, &Entry)],
) -> Option<(LookupId, Vec<Arc<[u128]>>)> {
    let mask = |length: u16| u128::MAX.checked_shl(u32::from(width - length)).unwrap_or(0);
    (0..).map(LookupId).zip(&program.lookups).find_map(|(id, of)| {
        let Entries::Prefixes(table) = &program.tables.get(usize::from(of.table.0))?.entries else {
            return None;
        };
        let table: &PrefixTable = table;
        if of.key[..] != [number] || table.width() != width || table.len() != left.len() {
            return None;
        }
        let mut known: HashMap<(u128, u16), &Arc<[u128]>> =
            table.entries().map(|entry| ((entry.prefix, entry.length), &entry.row)).collect();
        let row = |(prefix, length, _): &(u128, u16, &Entry)| {
            known.remove(&(prefix & mask(*length), *length)).cloned()
        };
        let rows: Option<Vec<Arc<[u128]>>> = left.iter().map(row).collect();
        rows.map(|rows| (id, rows))
    })
}

struct Groups {
    all: Vec<Group>,
    /// The value of a row by which they are distinguished, and by group the numbers that it is.
    by: Option<(u8, Vec<Vec<u128>>)>,
}

/// What entries do, distinguished by one value of their rows; `None` if no value tells.
fn groups(left: &[(u128, u16, &Entry)], rows: &[Arc<[u128]>]) -> Option<Groups> {
    let values =
        rows.iter().map(|row| row.len()).max().unwrap_or(0).min(usize::from(u8::MAX)) as u8;
    let value = |row: &Arc<[u128]>, index: u8| row.get(usize::from(index)).copied().unwrap_or(0);
    // By action and argument: the value of the row that it always is, if it is not always the same number.
    let mut of: BTreeMap<(usize, usize), Option<u8>> = BTreeMap::new();
    for (_, _, entry) in left {
        for argument in 0..entry.arguments.len() {
            of.entry((entry.action, argument)).or_insert_with(|| {
                let mine = || {
                    let all = left.iter().zip(rows);
                    all.filter(|(of, _)| of.2.action == entry.action)
                };
                let number = |of: &(u128, u16, &Entry)| of.2.arguments.get(argument).copied();
                let first = entry.arguments[argument];
                if mine().all(|(of, _)| number(of) == Some(first)) {
                    return None;
                }
                let is =
                    |index: &u8| mine().all(|(of, row)| number(of) == Some(value(row, *index)));
                (0..values).find(is)
            });
        }
    }
    let mut all: Vec<Group> = Vec::new();
    let mut index: HashMap<Group, usize> = HashMap::new();
    let mut mine = Vec::with_capacity(left.len());
    for (_, _, entry) in left {
        let argument = |(at, value): (usize, &u128)| match of.get(&(entry.action, at)) {
            Some(Some(index)) => Ok(*index),
            _ => Err(*value),
        };
        let group: Group =
            (entry.action, entry.arguments.iter().enumerate().map(argument).collect());
        let next = all.len();
        let at = *index.entry(group.clone()).or_insert(next);
        if at == next {
            all.push(group);
        }
        mine.push(at);
    }
    if all.len() == 1 {
        return Some(Groups { all, by: None });
    }
    (0..values).find_map(|index| {
        let mut told: BTreeMap<u128, usize> = BTreeMap::new();
        for (row, group) in rows.iter().zip(&mine) {
            if *told.entry(value(row, index)).or_insert(*group) != *group {
                return None;
            }
        }
        let mut numbers: Vec<Vec<u128>> = vec![Vec::new(); all.len()];
        told.into_iter().for_each(|(number, group)| numbers[group].push(number));
        Some(Groups { all: all.clone(), by: Some((index, numbers)) })
    })
}
