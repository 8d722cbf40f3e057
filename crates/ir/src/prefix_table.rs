//! Tables that are looked up by longest prefix. Tables that have much in common share it, so that
//! one of many entries changes at little cost and what two tables differ in is soon found.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;

use crate::diagnostic::Span;
use crate::interval::IntervalSet;
use crate::range_map::RangeMap;

/// Entries of a new piece. One of twice as many is cut in two.
const PIECE: usize = 256;

/// A longest-prefix-match table.
#[derive(Clone, Debug)]
pub struct PrefixTable {
    width: u16,
    /// In order of prefix and length; none is empty.
    pieces: Vec<Arc<Vec<PrefixEntry>>>,
    /// How many entries there are of each length.
    lengths: BTreeMap<u16, usize>,
}

/// Least and greatest key of a range, and the number of the row that it yields.
pub type PrefixRange = (u128, u128, u32);

/// One prefix and the numbers it yields.
#[derive(Clone, Debug)]
pub struct PrefixEntry {
    /// The prefix, with zero bits behind it.
    pub prefix: u128,
    /// Its length in bits.
    pub length: u16,
    /// The numbers it yields.
    pub row: Arc<[u128]>,
    /// Where it was written; `None` of one that a handler added.
    pub span: Option<Span>,
}

/// Entries that do the same are equal, wherever they were written.
impl PartialEq for PrefixEntry {
    fn eq(&self, other: &Self) -> bool {
        (self.place(), &self.row) == (other.place(), &other.row)
    }
}

impl Eq for PrefixEntry {}

impl PrefixEntry {
    fn place(&self) -> (u128, u16) {
        (self.prefix, self.length)
    }
}

impl PrefixTable {
    /// A table for keys of so many bits; of several entries with one prefix the last counts.
    pub fn new(width: u16, entries: impl IntoIterator<Item = PrefixEntry>) -> Self {
        let mut all: Vec<PrefixEntry> = entries.into_iter().collect();
        // The last of equals is the one to keep.
        all.reverse();
        all.sort_by_key(PrefixEntry::place);
        all.dedup_by(|next, kept| next.place() == kept.place());
        let mut lengths = BTreeMap::new();
        for entry in &all {
            *lengths.entry(entry.length).or_default() += 1;
        }
        let pieces = all.chunks(PIECE).map(|piece| Arc::new(piece.to_vec())).collect();
        Self { width, pieces, lengths }
    }

    /// Width of the key in bits.
    pub fn width(&self) -> u16 {
        self.width
    }

    /// All entries, in order of prefix and length.
    pub fn entries(&self) -> impl Iterator<Item = &PrefixEntry> {
        self.pieces.iter().flat_map(|piece| piece.iter())
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.lengths.values().sum()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Where an entry is or would be: the piece, and the place in it.
    fn find(&self, place: (u128, u16)) -> (usize, Result<usize, usize>) {
        let behind = self.pieces.partition_point(|piece| piece[0].place() <= place);
        let at = behind.saturating_sub(1);
        let found = self
            .pieces
            .get(at)
            .map_or(Err(0), |piece| piece.binary_search_by_key(&place, PrefixEntry::place));
        (at, found)
    }

    /// Adds an entry, or takes it for the one of its prefix.
    pub fn insert(&mut self, entry: PrefixEntry) {
        let (at, place) = self.find(entry.place());
        if self.pieces.is_empty() {
            self.pieces.push(Arc::default());
        }
        let piece = Arc::make_mut(&mut self.pieces[at]);
        match place {
            Ok(place) => piece[place] = entry,
            Err(place) => {
                *self.lengths.entry(entry.length).or_default() += 1;
                piece.insert(place, entry);
                if piece.len() >= 2 * PIECE {
                    let upper = piece.split_off(PIECE);
                    self.pieces.insert(at + 1, Arc::new(upper));
                }
            }
        }
    }

    /// Takes the entry of a prefix out.
    pub fn remove(&mut self, prefix: u128, length: u16) {
        let (at, Ok(place)) = self.find((prefix, length)) else { return };
        let piece = Arc::make_mut(&mut self.pieces[at]);
        piece.remove(place);
        if piece.is_empty() {
            self.pieces.remove(at);
        }
        if let Some(count) = self.lengths.get_mut(&length) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&length);
            }
        }
    }

    /// The entry of a prefix.
    pub fn get(&self, prefix: u128, length: u16) -> Option<&PrefixEntry> {
        let (at, place) = self.find((prefix, length));
        self.pieces.get(at)?.get(place.ok()?)
    }

    /// The entry with the longest prefix of `key`.
    pub fn lookup(&self, key: u128) -> Option<&PrefixEntry> {
        self.lengths.keys().rev().find_map(|&length| {
            let free = u32::from(self.width.saturating_sub(length));
            let prefix = key.checked_shr(free).and_then(|k| k.checked_shl(free)).unwrap_or(0);
            self.get(prefix, length)
        })
    }

    /// The different rows of a table and the ranges of keys that yield each: longer prefixes hide
    /// shorter ones.
    pub fn ranges(&self) -> (Vec<Arc<[u128]>>, Vec<PrefixRange>) {
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
            IntervalSet::max(&IntervalSet::prefix(self.width, prefix, length)).unwrap_or(0)
        };
        let mut done = false;
        for entry in self.entries() {
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

    /// How many bits the numbers of a column have; at least one.
    pub fn number_width(&self, column: usize) -> u16 {
        let numbers = self.entries().filter_map(|entry| entry.row.get(column));
        let most = numbers.max().copied().unwrap_or(0);
        (128 - most.leading_zeros()).max(1) as u16
    }

    /// The keys that it has, and what it maps them to, number by number of its rows.
    pub fn columns(&self) -> (IntervalSet, Vec<Arc<RangeMap>>) {
        let (rows, ranges) = self.ranges();
        Self::columns_of(&rows, &ranges)
    }

    /// The same of what [`PrefixTable::ranges`] came to.
    pub fn columns_of(
        rows: &[Arc<[u128]>],
        ranges: &[PrefixRange],
    ) -> (IntervalSet, Vec<Arc<RangeMap>>) {
        let keys = ranges.iter().map(|&(low, high, _)| (low, high)).collect();
        let width = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        let column = |at: usize| {
            let number = |&(low, high, row): &PrefixRange| {
                (low, high, rows[row as usize].get(at).copied().unwrap_or(0))
            };
            Arc::new(RangeMap::new(ranges.iter().map(number).collect()))
        };
        (IntervalSet::from_intervals(keys), (0..width).map(column).collect())
    }
}

impl PartialEq for PrefixTable {
    fn eq(&self, other: &Self) -> bool {
        if (self.width, &self.lengths) != (other.width, &other.lengths) {
            return false;
        }
        // What both share need not be looked at.
        let (mut a, mut b) = (&self.pieces[..], &other.pieces[..]);
        while let ([x, a_rest @ ..], [y, b_rest @ ..]) = (a, b)
            && Arc::ptr_eq(x, y)
        {
            (a, b) = (a_rest, b_rest);
        }
        while let ([a_rest @ .., x], [b_rest @ .., y]) = (a, b)
            && Arc::ptr_eq(x, y)
        {
            (a, b) = (a_rest, b_rest);
        }
        a.iter().flat_map(|piece| piece.iter()).eq(b.iter().flat_map(|piece| piece.iter()))
    }
}

impl Eq for PrefixTable {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn entry(prefix: u128, length: u16, number: u128) -> PrefixEntry {
        PrefixEntry { prefix, length, row: [number].into(), span: None }
    }

    /// A table that changes is what a new one with its entries would be, and finds the same.
    #[test]
    fn changes_come_to_what_a_new_table_is() {
        let random = &mut fastrand::Rng::with_seed(3);
        let mut table = PrefixTable::new(16, []);
        let mut known = BTreeMap::new();
        let (mut before, mut most) = (table.clone(), 0);
        for round in 0..20_000u32 {
            let length = random.u16(4..=16);
            let prefix = u128::from(random.u16(..) >> (16 - length) << (16 - length));
            // It grows, and shrinks to nothing.
            let share = if round < 12_000 { 0.75 } else { 0.1 };
            let any = random.usize(..known.len().max(1));
            if random.f64() < share {
                let new = entry(prefix, length, random.u128(..4));
                known.insert((prefix, length), new.row[0]);
                table.insert(new);
            } else if let Some(&(prefix, length)) = known.keys().nth(any) {
                known.remove(&(prefix, length));
                table.remove(prefix, length);
                table.remove(prefix, length);
            }
            most = most.max(known.len());
            if round % 500 == 0 || round > 19_900 {
                let new = || known.iter().map(|(&(p, l), &n)| entry(p, l, n));
                assert_eq!(table, PrefixTable::new(16, new()));
                assert_eq!(table == before, table.entries().eq(before.entries()));
                assert!(table.pieces.iter().all(|piece| (1..2 * PIECE).contains(&piece.len())));
                for _ in 0..20 {
                    let key = u128::from(random.u16(..));
                    let inside = |e: &PrefixEntry| (key ^ e.prefix) >> (16 - e.length) == 0;
                    let longest = new().filter(inside).max_by_key(|e| e.length);
                    assert_eq!(table.lookup(key), longest.as_ref());
                }
                before = table.clone();
            }
        }
        assert!(most > 4 * PIECE, "{most}");
    }

    #[test]
    fn the_last_entry_of_a_prefix_counts() {
        let table = PrefixTable::new(8, [entry(16, 4, 1), entry(0, 0, 2), entry(16, 4, 3)]);
        assert_eq!(table.entries().map(|e| e.row[0]).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(table.lookup(17).map(|e| e.row[0]), Some(3));
        assert_eq!(table.lookup(0xff).map(|e| e.row[0]), Some(2));
        assert_eq!(
            PrefixTable::new(128, [entry(0, 0, 1)]).lookup(u128::MAX).map(|e| e.length),
            Some(0)
        );
    }
}
