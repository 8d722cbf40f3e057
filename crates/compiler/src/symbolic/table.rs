//! Tables of prefixes as sets of numbers.

use std::sync::{Arc, OnceLock};

use ir::{IntervalSet, PrefixRange, PrefixTable, RangeMap};

/// What a table comes to.
pub(crate) struct Table {
    /// The numbers that lookups yield, each different row once.
    rows: Vec<Arc<[u128]>>,
    /// Disjoint and in order.
    ranges: Vec<PrefixRange>,
    /// The places in `ranges`, row by row, and where those of each row begin.
    of_rows: Vec<u32>,
    begins: Vec<usize>,
    /// For tables of many different rows: the keys that it has, and what it maps them to, column
    /// by column.
    columns: OnceLock<(IntervalSet, Vec<Arc<RangeMap>>)>,
}

impl Table {
    pub(crate) fn new(table: &PrefixTable) -> Self {
        let (rows, ranges) = table.ranges();
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

    /// The numbers that rows have in a column.
    pub(crate) fn column(&self, at: usize) -> IntervalSet {
        let number = |row: &Arc<[u128]>| row.get(at).copied().unwrap_or(0);
        let mut numbers: Vec<u128> = self.rows.iter().map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        IntervalSet::from_intervals(numbers.into_iter().map(|n| (n, n)).collect())
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

    pub(crate) fn columns(&self) -> &(IntervalSet, Vec<Arc<RangeMap>>) {
        self.columns.get_or_init(|| PrefixTable::columns_of(&self.rows, &self.ranges))
    }
}
