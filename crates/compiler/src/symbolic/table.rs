//! Tables of prefixes as sets of numbers.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use ir::{IntervalSet, Mapping, PrefixTable};

type Intervals = Vec<(u128, u128)>;

/// What a table comes to.
pub(crate) struct Table {
    pub rows: Vec<Row>,
    /// For tables of many different rows: the keys that it has, and what it maps them to, column
    /// by column.
    columns: OnceLock<(IntervalSet, Vec<Arc<Mapping>>)>,
}

impl Table {
    pub(crate) fn new(table: &PrefixTable) -> Self {
        Self { rows: disjoint_rows(table), columns: OnceLock::new() }
    }

    pub(crate) fn columns(&self) -> &(IntervalSet, Vec<Arc<Mapping>>) {
        self.columns.get_or_init(|| {
            let keys = self.rows.iter().flat_map(|row| row.keys.intervals());
            let keys = IntervalSet::from_intervals(keys.copied().collect());
            let width = self.rows.iter().map(|row| row.numbers.len()).max().unwrap_or(0);
            let column = |at: usize| {
                let of_row = |row: &Row| {
                    let number = row.numbers.get(at).copied().unwrap_or(0);
                    let keys = row.keys.intervals().to_vec();
                    keys.into_iter().map(move |(low, high)| (low, high, number))
                };
                Arc::new(Mapping::new(self.rows.iter().flat_map(of_row).collect()))
            };
            (keys, (0..width).map(column).collect())
        })
    }
}

/// The keys whose lookup yields the same numbers.
pub(crate) struct Row {
    pub numbers: Vec<u128>,
    pub keys: IntervalSet,
}

/// The numbers that each different row of a table stands for: longer prefixes hide shorter ones.
fn disjoint_rows(table: &PrefixTable) -> Vec<Row> {
    let mut numbers: HashMap<&[u128], usize> = HashMap::new();
    let mut rows: Vec<(&[u128], Intervals)> = Vec::new();
    let mut add = |row, low: u128, high: u128| {
        if low > high {
            return;
        }
        let at = *numbers.entry(row).or_insert_with(|| {
            rows.push((row, Vec::new()));
            rows.len() - 1
        });
        rows[at].1.push((low, high));
    };
    // In order of their first numbers, shorter prefixes first: a stack holds those that are open.
    let mut open: Vec<(u128, &[u128])> = Vec::new();
    let mut at = 0u128;
    let last = |prefix: u128, length: u16| {
        IntervalSet::max(&IntervalSet::prefix(table.width(), prefix, length)).unwrap_or(0)
    };
    let mut done = false;
    for entry in table.entries() {
        let (prefix, length, row) = (entry.prefix, entry.length, &entry.row[..]);
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
    let row = |(numbers, all): (&[u128], _)| Row {
        numbers: numbers.to_vec(),
        keys: IntervalSet::from_intervals(all),
    };
    rows.into_iter().map(row).collect()
}
