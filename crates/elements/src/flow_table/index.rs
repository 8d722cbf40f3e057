//! An index from hashes to the numbers of records that are kept elsewhere.
//!
//! Open addressing over buckets of eight slots, a cache line each. A bucket knows how many
//! entries passed it by because it was full, so a search ends at the first bucket that none
//! passed, and removing leaves nothing behind. The index doubles when half of the slots are taken, so that
//! hardly any entry passes its bucket by, which would cost a second cache line each time;
//! the entries move over with the insertions and batches that follow, a bucket with every other insertion and with each
//! batch, so that none is slow. Memory for them is touched with the insertions before, since the system clears pages
//! that are new.

/// Slots of a bucket.
const SLOTS: usize = 8;
/// Words of a bucket: tags of 16 bits (0: empty), numbers, the count of those passed by, and padding.
const WORDS: usize = 16;
const NUMBERS: usize = SLOTS / 2;
const PASSED: usize = NUMBERS + SLOTS;
const SMALLEST: usize = 16;

type Bucket = [u32; WORDS];

struct Buckets {
    /// Zeroed memory that is only touched when used, hence words rather than buckets.
    words: Vec<u32>,
    /// Where the first bucket starts, so that buckets are cache lines.
    start: usize,
    mask: usize,
}

impl Buckets {
    fn new(count: usize) -> Self {
        let mut words = vec![0; (count + 1) * WORDS];
        classify::prefer_huge_pages(&mut words);
        let start = words.as_ptr().align_offset(size_of::<Bucket>()).min(WORDS);
        Self { words, start, mask: count - 1 }
    }

    /// How many entries they may hold.
    #[inline]
    fn most(&self) -> usize {
        (self.mask + 1) * SLOTS / 2
    }

    /// From how many entries on the next, larger ones are prepared.
    #[inline]
    fn many(&self) -> usize {
        self.most() - self.most() / 4
    }

    /// Touches a bucket's memory.
    #[inline]
    fn touch(&mut self, at: usize) {
        if let Some(word) = self.words.get_mut(at * WORDS) {
            *word = 0;
        }
    }

    #[inline]
    fn get(&self, at: usize) -> &Bucket {
        &self.words[self.start..].as_chunks::<WORDS>().0[at & self.mask]
    }

    #[inline]
    fn prefetch(&self, at: usize) {
        classify::prefetch(self.words[self.start..].as_chunks::<WORDS>().0, at & self.mask);
    }

    #[inline]
    fn get_mut(&mut self, at: usize) -> &mut Bucket {
        let mask = self.mask;
        &mut self.words[self.start..].as_chunks_mut::<WORDS>().0[at & mask]
    }

    fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let tag = tag(hash);
        for step in 0..self.mask + 1 {
            let bucket = self.get(hash as usize + step);
            let found =
                Slots::with(bucket, tag).map(|slot| bucket[NUMBERS + slot]).find(|&n| same(n));
            if found.is_some() || bucket[PASSED] == 0 {
                return found;
            }
        }
        None
    }

    /// Adds an entry to the first bucket with room.
    #[inline]
    fn insert(&mut self, hash: u64, number: u32) {
        if !put(self.get_mut(hash as usize), hash, number) {
            self.insert_behind(hash, number);
        }
    }

    #[cold]
    fn insert_behind(&mut self, hash: u64, number: u32) {
        for step in 0..self.mask + 1 {
            let bucket = self.get_mut(hash as usize + step);
            if put(bucket, hash, number) {
                return;
            }
            bucket[PASSED] += 1;
        }
        debug_assert!(false, "the index is never full");
    }

    /// Removes an entry; whether it was there.
    fn remove(&mut self, hash: u64, wanted: u32) -> bool {
        for step in 0..self.mask + 1 {
            let bucket = self.get_mut(hash as usize + step);
            if take(bucket, hash, wanted) {
                for passed in 0..step {
                    self.get_mut(hash as usize + passed)[PASSED] -= 1;
                }
                return true;
            }
            if bucket[PASSED] == 0 {
                return false;
            }
        }
        false
    }
}

/// Puts an entry into a bucket; whether there was room.
#[inline]
fn put(bucket: &mut Bucket, hash: u64, number: u32) -> bool {
    let Some(slot) = Slots::with(bucket, 0).next() else { return false };
    bucket[slot / 2] |= u32::from(tag(hash)) << (slot % 2 * 16);
    bucket[NUMBERS + slot] = number;
    true
}

/// Takes an entry out of a bucket; whether it was there.
#[inline]
fn take(bucket: &mut Bucket, hash: u64, wanted: u32) -> bool {
    let found = Slots::with(bucket, tag(hash)).find(|&slot| bucket[NUMBERS + slot] == wanted);
    if let Some(slot) = found {
        bucket[slot / 2] &= !(0xffff << (slot % 2 * 16));
    }
    found.is_some()
}

#[inline]
fn tag(hash: u64) -> u16 {
    ((hash >> 48) as u16).max(1)
}

/// Slots of a bucket, a bit each.
struct Slots(u32);

impl Slots {
    /// Those with a tag.
    #[inline]
    fn with(bucket: &Bucket, tag: u16) -> Self {
        let tags = bucket.first_chunk().unwrap_or(&[0; NUMBERS]);
        Self(classify::equal_halves(tags, tag))
    }
}

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let slot = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        (slot < SLOTS).then_some(slot)
    }
}

/// The numbers in a bucket.
fn numbers(bucket: &Bucket) -> impl Iterator<Item = u32> + '_ {
    let Slots(empty) = Slots::with(bucket, 0);
    Slots(!empty).map(|slot| bucket[NUMBERS + slot])
}

/// What an index leads to.
pub(crate) trait Records {
    /// The hash of a record that is in the index.
    fn hash(&self, number: u32) -> u64;

    /// Prefetches what its hash is computed from.
    fn prefetch(&self, _number: u32) {}
}

impl<F: Fn(u32) -> u64> Records for F {
    fn hash(&self, number: u32) -> u64 {
        self(number)
    }
}

/// See the module.
pub(crate) struct Index {
    current: Buckets,
    /// Still holds what has not moved over yet, from bucket `moved` on.
    old: Option<Buckets>,
    moved: usize,
    /// Whether the next insertion moves a bucket.
    moves: bool,
    /// Those that follow when these are full, without entries, and how many of them were touched.
    next: Option<Buckets>,
    touched: usize,
    len: usize,
}

impl Index {
    /// Bytes that a record takes at the most, when the index has just doubled.
    pub(crate) const BYTES_EACH: u64 = (size_of::<Bucket>() / SLOTS * 4) as u64;

    pub(crate) fn new() -> Self {
        let current = Buckets::new(SMALLEST);
        Self { current, old: None, moved: 0, moves: false, next: None, touched: 0, len: 0 }
    }

    /// The first number under `hash` that is the `same`.
    #[inline]
    pub(crate) fn find(&self, hash: u64, same: impl FnMut(u32) -> bool) -> Option<u32> {
        // Most that is not there is not even similar to what is.
        let bucket = self.current.get(hash as usize);
        let similar = Slots::with(bucket, tag(hash)).0 != 0;
        if similar || bucket[PASSED] != 0 || self.grows() {
            return self.find_similar(hash, same);
        }
        None
    }

    #[inline(never)]
    fn find_similar(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        match (self.current.find(hash, &mut same), &self.old) {
            (None, Some(old)) => old.find(hash, same),
            (found, _) => found,
        }
    }

    /// Prefetches the first cache lines that `hash` leads to.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.current.prefetch(hash as usize);
        if let Some(old) = &self.old {
            old.prefetch(hash as usize);
        }
    }

    /// A number that is probably under `hash`, from one look at one cache line.
    #[inline]
    pub(crate) fn guess(&self, hash: u64) -> Option<u32> {
        let bucket = self.current.get(hash as usize);
        Slots::with(bucket, tag(hash)).next().map(|slot| bucket[NUMBERS + slot])
    }

    /// Adds a number, which must not be there yet.
    #[inline(always)]
    pub(crate) fn insert(&mut self, hash: u64, number: u32, records: &impl Records) {
        if self.grows() || self.len >= self.current.many() {
            self.make_room(records);
        }
        self.current.insert(hash, number);
        self.len += 1;
    }

    #[cold]
    fn make_room(&mut self, records: &impl Records) {
        self.moves = !self.moves;
        if self.moves {
            self.move_bucket(records);
        }
        if self.len < self.current.many() {
            return;
        }
        let count = (self.current.mask + 1) * 2;
        let next = self.next.get_or_insert_with(|| Buckets::new(count));
        if self.len < self.current.most() {
            // Half as many insertions come before these are full.
            (0..2).for_each(|more| next.touch(self.touched + more));
            self.touched += 2;
            return;
        }
        // Unless entries were removed and added all the while, nothing is left to move.
        while self.old.is_some() {
            self.move_bucket(records);
        }
        let larger = self.next.take().unwrap_or_else(|| Buckets::new(count));
        self.old = Some(std::mem::replace(&mut self.current, larger));
        (self.moved, self.touched) = (0, 0);
    }

    #[inline]
    pub(crate) fn remove(&mut self, hash: u64, number: u32) {
        // Nearly all are where they belong.
        let found = take(self.current.get_mut(hash as usize), hash, number)
            || self.remove_elsewhere(hash, number);
        debug_assert!(found, "only what was added is removed");
        self.len -= usize::from(found);
    }

    #[cold]
    fn remove_elsewhere(&mut self, hash: u64, number: u32) -> bool {
        self.current.remove(hash, number)
            || self.old.as_mut().is_some_and(|old| old.remove(hash, number))
    }

    /// Whether entries are left that must move over.
    #[inline]
    fn grows(&self) -> bool {
        self.old.is_some()
    }

    /// Moves a bucket over, if any is left.
    #[inline]
    pub(crate) fn move_bucket(&mut self, records: &impl Records) {
        if self.grows() {
            self.move_one(records);
        }
    }

    #[cold]
    fn move_one(&mut self, records: &impl Records) {
        let Some(old) = &mut self.old else { return };
        let bucket = old.get_mut(self.moved);
        let left = *bucket;
        // What passed this bucket by must still be found behind it.
        bucket[..NUMBERS].fill(0);
        let mut hashes = [0; SLOTS];
        for (number, hash) in numbers(&left).zip(&mut hashes) {
            *hash = records.hash(number);
            self.current.prefetch(*hash as usize);
        }
        for (number, hash) in numbers(&left).zip(hashes) {
            self.current.insert(hash, number);
        }
        self.moved += 1;
        if self.moved > old.mask {
            self.old = None;
        } else {
            // Until its turn comes, what the next one leads to is near.
            numbers(old.get(self.moved)).for_each(|number| records.prefetch(number));
            old.prefetch(self.moved + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: u32) -> u64 {
        ir::hash::HashFunction::MixedFnv1a.hash([u128::from(n)])
    }

    #[test]
    fn what_was_added_is_found_until_it_is_removed() {
        let mut index = Index::new();
        for n in 0..50_000u32 {
            index.insert(hash(n), n, &hash);
            if n % 3 == 0 {
                index.remove(hash(n / 2), n / 2);
                index.insert(hash(n / 2), n / 2, &hash);
            }
            assert_eq!(index.find(hash(n / 7), |m| m == n / 7), Some(n / 7));
        }
        for n in (0..50_000).step_by(2) {
            index.remove(hash(n), n);
        }
        for n in 0..50_000 {
            assert_eq!(index.find(hash(n), |m| m == n).is_some(), n % 2 == 1, "{n}");
        }
        assert_eq!(index.len, 25_000);
        for n in (1..50_000).step_by(2) {
            index.remove(hash(n), n);
        }
        let bucket_is_clean = |b: &Bucket| b[..NUMBERS] == [0; NUMBERS] && b[PASSED] == 0;
        assert!((0..=index.current.mask).all(|i| bucket_is_clean(index.current.get(i))));
    }

    #[test]
    fn it_grows_to_an_end_without_insertions() {
        let mut index = Index::new();
        let most = (SMALLEST * SLOTS / 2) as u32;
        for n in 0..=most {
            assert!(!index.grows());
            index.insert(hash(n), n, &hash);
        }
        for _ in 0..SMALLEST {
            assert!(index.grows());
            index.move_bucket(&hash);
        }
        assert!(!index.grows());
        assert!((0..=most).all(|n| index.find(hash(n), |m| m == n).is_some()));
    }

    #[test]
    fn equal_hashes_only_cost_time() {
        let mut index = Index::new();
        for n in 0..1000 {
            index.insert(7, n, &|_: u32| 7);
        }
        for n in 0..1000 {
            assert_eq!(index.find(7, |m| m == n), Some(n));
        }
        assert_eq!(index.find(7, |_| false), None);
    }

    #[test]
    fn no_insertion_moves_more_than_a_bucket() {
        let mut index = Index::new();
        for n in 0..100_000u32 {
            let hashed = std::cell::Cell::new(0);
            index.insert(hash(n), n, &|m: u32| {
                hashed.set(hashed.get() + 1);
                hash(m)
            });
            assert!(hashed.get() <= SLOTS);
        }
    }
}
