//! Tables of prefixes as sets of numbers.

use std::sync::{Arc, OnceLock};

use foldhash::HashMap;
use ir::{IntervalSet, Mapping, PrefixTable};

/// Least and greatest key, and the row that they yield.
type Range = (u128, u128, u32);

/// What a table comes to.
pub(crate) struct Table {
    /// The numbers that lookups yield, each different row once.
    rows: Vec<Arc<[u128]>>,
    /// Disjoint and in order.
    ranges: Vec<Range>,
    /// The places in `ranges`, row by row, and where those of each row begin.
    of_rows: Vec<u32>,
    begins: Vec<usize>,
    /// For tables of many different rows: the keys that it has, and what it maps them to, column
    /// by column.
    columns: OnceLock<(IntervalSet, Vec<Arc<Mapping>>)>,
}

impl Table {
    pub(crate) fn new(table: &PrefixTable) -> Self {
        let (rows, ranges) = disjoint_ranges(table);
        let mut begins = vec![0; rows.len() + 1];
        ranges.iter().for_each(|range| begins[range.2 as usize + 1] += 1);
        (1..begins.len()).for_each(|row| begins[row] += begins[row - 1]);
        let (mut of_rows, mut next) = (vec![0; ranges.len()], begins.clone());
        for (place, range) in (0..).zip(&ranges) {
            let next = &mut next[range.2 as usize];
            of_rows[*next] = place;
            *next += 1;
        }
        Self { rows, ranges, of_rows, begins, columns: OnceLock::new() }
    }

    /// The numbers of a row.
    pub(crate) fn numbers(&self, row: usize) -> &[u128] {
        &self.rows[row]
    }

    /// The keys whose lookup yields a row.
    pub(crate) fn keys(&self, row: usize) -> IntervalSet {
        let places = &self.of_rows[self.begins[row]..self.begins[row + 1]];
        let interval = |&place: &u32| {
            let (low, high, _) = self.ranges[place as usize];
            (low, high)
        };
        IntervalSet::from_intervals(places.iter().map(interval).collect())
    }

    /// The rows that keys of a set yield, if they are at most so many.
    pub(crate) fn rows_of(&self, keys: &IntervalSet, most: usize) -> Option<Vec<usize>> {
        let mut rows = Vec::new();
        let mut ranges = &self.ranges[..];
        'keys: for &(low, high) in keys.intervals() {
            ranges = &ranges[ranges.partition_point(|range| range.1 < low)..];
            for range in ranges.iter().take_while(|range| range.0 <= high) {
                let row = range.2 as usize;
                if !rows.contains(&row) {
                    rows.push(row);
                }
                if rows.len() > most {
                    return None;
                }
                if rows.len() == self.rows.len() {
                    break 'keys;
                }
            }
        }
        rows.sort_unstable();
        Some(rows)
    }

    pub(crate) fn columns(&self) -> &(IntervalSet, Vec<Arc<Mapping>>) {
        self.columns.get_or_init(|| {
            let keys = self.ranges.iter().map(|&(low, high, _)| (low, high)).collect();
            let width = self.rows.iter().map(|row| row.len()).max().unwrap_or(0);
            let column = |at: usize| {
                let number = |&(low, high, row): &Range| {
                    (low, high, self.rows[row as usize].get(at).copied().unwrap_or(0))
                };
                Arc::new(Mapping::new(self.ranges.iter().map(number).collect()))
            };
            (IntervalSet::from_intervals(keys), (0..width).map(column).collect())
        })
    }
}

/// The different rows of a table and the ranges of keys that yield each: longer prefixes hide
/// shorter ones.
fn disjoint_ranges(table: &PrefixTable) -> (Vec<Arc<[u128]>>, Vec<Range>) {
    let (mut rows, mut ranges) = (Vec::new(), Vec::new());
    let mut known: HashMap<Arc<[u128]>, u32> = HashMap::default();
    let mut add = |row: &Arc<[u128]>, low: u128, high: u128| {
        if low > high {
            return;
        }
        let number = known.get(row).copied().unwrap_or_else(|| {
            let next = rows.len() as u32;
            rows.push(Arc::clone(row));
            known.insert(Arc::clone(row), next);
            next
        });
        ranges.push((low, high, number));
    };
    // In order of their first numbers, shorter prefixes first: a stack holds those that are open.
    let mut open: Vec<(u128, &Arc<[u128]>)> = Vec::new();
    let mut at = 0u128;
    let last = |prefix: u128, length: u16| {
        IntervalSet::max(&IntervalSet::prefix(table.width(), prefix, length)).unwrap_or(0)
    };
    let mut done = false;
    for entry in table.entries() {
        let (prefix, length, row) = (entry.prefix, entry.length, &entry.row);
        while let Some(&(end, outer)) = open.last() {
            if end >= prefix {
                if prefix > at {
                    add(outer, at, prefix - 1);
                }
                break;
            }
            add(outer, at, end);
            at = end + 1;
            open.pop();
        }
        at = prefix;
        open.push((last(prefix, length), row));
    }
    while let Some((end, row)) = open.pop() {
        if !done {
            add(row, at, end);
        }
        match end.checked_add(1) {
            Some(next) => at = next,
            None => done = true,
        }
    }
    (rows, ranges)
}
