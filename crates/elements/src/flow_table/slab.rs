//! Records under stable numbers, in chunks, so that growing never moves any.

/// Records of the first chunk; each further one has twice as many.
const FIRST: usize = 1024;

/// A record that has room for the number of another while it is not in use.
pub(super) trait Linked: Copy {
    fn link(&mut self) -> &mut u32;
}

/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// See the module.
pub(super) struct Slab<T> {
    /// All but the last are full. Memory is only touched when used.
    chunks: Vec<Vec<T>>,
    /// The first record that was given up and is not in use again.
    free: u32,
    used: usize,
}

/// The chunk of a record, and its place there.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let number = number as usize + FIRST;
    let size = number.ilog2();
    ((size - FIRST.ilog2()) as usize, number ^ 1 << size)
}

impl<T: Linked> Slab<T> {
    pub(super) fn new() -> Self {
        Self { chunks: Vec::new(), free: NONE, used: 0 }
    }

    /// Number of records in use.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Number of records that were ever in use: no number is greater.
    pub(super) fn room(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> &T {
        let (chunk, at) = place(number);
        &self.chunks[chunk][at]
    }

    /// Brings a record near.
    #[inline]
    pub(super) fn prefetch(&self, number: u32) {
        let (chunk, at) = place(number);
        if let Some(chunk) = self.chunks.get(chunk) {
            classify::prefetch(chunk, at);
        }
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> &mut T {
        let (chunk, at) = place(number);
        &mut self.chunks[chunk][at]
    }

    /// Keeps a record and tells its number.
    #[inline]
    pub(super) fn insert(&mut self, record: T) -> u32 {
        self.used += 1;
        if self.free == NONE {
            return self.grow(record);
        }
        let number = self.free;
        let place = self.get_mut(number);
        let next = *place.link();
        *place = record;
        self.free = next;
        // Where the next one will be kept.
        self.prefetch(next);
        number
    }

    #[inline(never)]
    fn grow(&mut self, record: T) -> u32 {
        let size = FIRST << self.chunks.len();
        if self.chunks.last().is_none_or(|last| last.len() == size / 2) {
            let mut chunk = Vec::with_capacity(size);
            classify::prefer_large_pages(chunk.spare_capacity_mut());
            self.chunks.push(chunk);
        }
        let at = self.chunks.len() - 1;
        let chunk = &mut self.chunks[at];
        chunk.push(record);
        ((FIRST << at) - FIRST + chunk.len() - 1) as u32
    }

    /// Gives a record up, and what is left of it.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> &mut T {
        let free = std::mem::replace(&mut self.free, number);
        self.used -= 1;
        let record = self.get_mut(number);
        *record.link() = free;
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked for (u32, u32) {
        fn link(&mut self) -> &mut u32 {
            &mut self.0
        }
    }

    #[test]
    fn records_stay_where_they_are() {
        let mut slab = Slab::new();
        for n in 0..10_000 {
            assert_eq!(slab.insert((0, n)), n);
        }
        for n in (0..10_000).step_by(3) {
            slab.remove(n);
        }
        assert_eq!((slab.len(), slab.room()), (6666, 10_000));
        (0..3334).for_each(|n| assert_eq!(slab.insert((0, n)) % 3, 0));
        assert_eq!(slab.insert((0, 0)), 10_000);
        assert!((0..10_000u32).all(|n| n.is_multiple_of(3) || slab.get(n).1 == n));
    }
}
