//! Tables of prefixes as sets of numbers.

use std::collections::{BTreeMap, HashMap};

use ir::IntervalSet;
use ir::model::PrefixTable;

type Intervals = Vec<(u128, u128)>;

/// The keys whose lookup yields the same numbers.
pub(crate) struct Row {
    pub numbers: Vec<u128>,
    pub keys: IntervalSet,
}

/// The numbers that each different row of a table stands for: longer prefixes hide shorter ones.
pub(crate) fn disjoint_rows(table: &PrefixTable) -> Vec<Row> {
    let width = table.width;
    let mut unique: BTreeMap<(u128, u16), &[u128]> = BTreeMap::new();
    for entry in &table.entries {
        unique.insert((entry.prefix, entry.length), &entry.row);
    }
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
        IntervalSet::max(&IntervalSet::prefix(width, prefix, length)).unwrap_or(0)
    };
    let mut done = false;
    for ((prefix, length), row) in unique {
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
